-- Accents do not tell cities and titles apart: which program folded a row is kept, so that a later one folds it anew.
-- Its twin is ../postgres/00006_fold.sql: a test compares the two.

-- +goose Up
ALTER TABLE events ADD COLUMN fold_version INTEGER NOT NULL DEFAULT 0;
CREATE INDEX events_by_fold ON events (fold_version);

-- +goose Down
DROP INDEX events_by_fold;
ALTER TABLE events DROP COLUMN fold_version;
