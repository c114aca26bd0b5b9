-- The gate: who is blocked, and evidence of machines that is kept with orders for people to look at. Its twin is
-- ../postgres/00008_gate.sql: a test compares the two.

-- +goose Up
CREATE TABLE blocks (
    id           INTEGER NOT NULL PRIMARY KEY,
    organizer_id INTEGER NOT NULL, -- 0: everywhere
    kind         TEXT   NOT NULL, -- network, customer, device
    target       TEXT   NOT NULL,
    reason       TEXT   NOT NULL,
    by_id        INTEGER NOT NULL, -- the customer who made it; 0: the operator's command
    at_ms        INTEGER NOT NULL,
    until_ms     INTEGER NOT NULL,
    UNIQUE (organizer_id, kind, target)
) STRICT;
CREATE INDEX blocks_by_end ON blocks (until_ms);

-- One row: raised with every change of blocks, and locked while they change.
CREATE TABLE block_version (
    one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL
) STRICT;
INSERT INTO block_version (one, version) VALUES (1, 0);

CREATE TABLE order_evidence (
    order_id INTEGER NOT NULL PRIMARY KEY,
    event_id INTEGER NOT NULL,
    at_ms    INTEGER NOT NULL,
    score    INTEGER NOT NULL,
    signals  TEXT   NOT NULL -- guard.Evidence as JSON: no address, no name
) STRICT;
CREATE INDEX order_evidence_by_event ON order_evidence (event_id, order_id);

-- +goose Down
DROP TABLE order_evidence;
DROP TABLE block_version;
DROP TABLE blocks;
