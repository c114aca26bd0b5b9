-- Waiting rooms: presale codes, lists of members, the sealed keys of draws, and who changed what of an event. Its twin is
-- ../sqlite/00009_room.sql: a test compares the two.

-- +goose Up
-- Neither codes nor addresses are kept, only keyed hashes of them. Their uses are counted in the shard.
CREATE TABLE presale_codes (
    event_id   bigint  NOT NULL,
    lane       text    NOT NULL,
    code       bytea   NOT NULL,
    uses_max   bigint  NOT NULL,
    label      text    NOT NULL,
    created_ms bigint  NOT NULL,
    PRIMARY KEY (event_id, lane, code)
);

CREATE TABLE lane_members (
    event_id   bigint  NOT NULL,
    lane       text    NOT NULL,
    member     bytea   NOT NULL,
    created_ms bigint  NOT NULL,
    PRIMARY KEY (event_id, lane, member)
);

-- The secret of an event's draw, sealed by the master key until it is published.
CREATE TABLE draw_secrets (
    event_id   bigint  NOT NULL PRIMARY KEY,
    sealed     bytea   NOT NULL,
    created_ms bigint  NOT NULL
);

-- What was done to an event, each change in the transaction that makes it; ids only (E10).
CREATE TABLE event_log (
    event_id bigint  NOT NULL,
    seq      bigint  NOT NULL, -- from 1, without gaps
    at_ms    bigint  NOT NULL,
    actor_id bigint  NOT NULL, -- the customer, 0 for the operator's command or the program itself
    role     text    NOT NULL,
    action   text    NOT NULL,
    version  bigint  NOT NULL, -- of the event after it, 0 where it is no edit
    changes  text    NOT NULL, -- JSON: [{"field", "before", "after"}, …]
    PRIMARY KEY (event_id, seq)
);

-- +goose Down
DROP TABLE event_log;
DROP TABLE draw_secrets;
DROP TABLE lane_members;
DROP TABLE presale_codes;
