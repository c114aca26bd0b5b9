-- Waiting rooms: presale codes, lists of members, the sealed keys of draws, and who changed what of an event. Its twin is
-- ../postgres/00009_room.sql: a test compares the two.

-- +goose Up
-- Neither codes nor addresses are kept, only keyed hashes of them. Their uses are counted in the shard.
CREATE TABLE presale_codes (
    event_id   INTEGER NOT NULL,
    lane       TEXT    NOT NULL,
    code       BLOB    NOT NULL,
    uses_max   INTEGER NOT NULL,
    label      TEXT    NOT NULL,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (event_id, lane, code)
) STRICT;

CREATE TABLE lane_members (
    event_id   INTEGER NOT NULL,
    lane       TEXT    NOT NULL,
    member     BLOB    NOT NULL,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (event_id, lane, member)
) STRICT;

-- The secret of an event's draw, sealed by the master key until it is published.
CREATE TABLE draw_secrets (
    event_id   INTEGER NOT NULL PRIMARY KEY,
    sealed     BLOB    NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;

-- What was done to an event, each change in the transaction that makes it; ids only (E10).
CREATE TABLE event_log (
    event_id INTEGER NOT NULL,
    seq      INTEGER NOT NULL, -- from 1, without gaps
    at_ms    INTEGER NOT NULL,
    actor_id INTEGER NOT NULL, -- the customer, 0 for the operator's command or the program itself
    role     TEXT    NOT NULL,
    action   TEXT    NOT NULL,
    version  INTEGER NOT NULL, -- of the event after it, 0 where it is no edit
    changes  TEXT    NOT NULL, -- JSON: [{"field", "before", "after"}, …]
    PRIMARY KEY (event_id, seq)
) STRICT;

-- +goose Down
DROP TABLE event_log;
DROP TABLE draw_secrets;
DROP TABLE lane_members;
DROP TABLE presale_codes;
