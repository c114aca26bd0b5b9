-- Search follows the catalog by what has changed lately (catalog.Store.Versions).
-- Its twin is ../sqlite/00005_catalog_changes.sql: a test compares the two.

-- +goose Up
CREATE INDEX events_by_update ON events (updated_ms);
CREATE INDEX shows_by_update ON shows (updated_ms);

-- +goose Down
DROP INDEX events_by_update;
DROP INDEX shows_by_update;
