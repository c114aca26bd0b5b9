-- The gate: who is blocked, and evidence of machines that is kept with orders for people to look at. Its twin is
-- ../sqlite/00008_gate.sql: a test compares the two.

-- +goose Up
CREATE TABLE blocks (
    id           bigint NOT NULL PRIMARY KEY,
    organizer_id bigint NOT NULL, -- 0: everywhere
    kind         text   NOT NULL, -- network, customer, device
    target       text   NOT NULL,
    reason       text   NOT NULL,
    by_id        bigint NOT NULL, -- the customer who made it; 0: the operator's command
    at_ms        bigint NOT NULL,
    until_ms     bigint NOT NULL,
    UNIQUE (organizer_id, kind, target)
);
CREATE INDEX blocks_by_end ON blocks (until_ms);

-- One row: raised with every change of blocks, and locked while they change.
CREATE TABLE block_version (
    one     bigint NOT NULL PRIMARY KEY CHECK (one = 1),
    version bigint NOT NULL
);
INSERT INTO block_version (one, version) VALUES (1, 0);

CREATE TABLE order_evidence (
    order_id bigint NOT NULL PRIMARY KEY,
    event_id bigint NOT NULL,
    at_ms    bigint NOT NULL,
    score    bigint NOT NULL,
    signals  text   NOT NULL -- guard.Evidence as JSON: no address, no name
);
CREATE INDEX order_evidence_by_event ON order_evidence (event_id, order_id);

-- +goose Down
DROP TABLE order_evidence;
DROP TABLE block_version;
DROP TABLE blocks;
