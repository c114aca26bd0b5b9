-- Who has which number of an event's line (waitingroom.Log), where the data folder is not one machine's own.
-- Its twin is ../sqlite/00007_joins.sql: a test compares the two.

-- +goose Up
CREATE TABLE joins (
    event_id    bigint NOT NULL,
    lane        bigint NOT NULL,
    number      bigint NOT NULL,
    customer_id bigint NOT NULL,
    at_ms       bigint NOT NULL,
    drawn       bigint NOT NULL, -- 1: taken before the freeze
    identity    bytea NOT NULL, -- empty for none
    entry       bytea NOT NULL,
    present     bigint NOT NULL, -- 0: given up
    left_ms     bigint NOT NULL, -- 0: not
    listed      bigint NOT NULL, -- 0: given up before the list was sealed
    PRIMARY KEY (event_id, lane, number)
);
CREATE UNIQUE INDEX joins_present ON joins (event_id, customer_id) WHERE present = 1;

-- The lists of drawn joins. Who adds a drawn join or ends one locks its row against being sealed.
CREATE TABLE join_lists (
    event_id  bigint NOT NULL PRIMARY KEY,
    sealed_ms bigint NOT NULL -- 0: not yet
);

-- +goose Down
DROP TABLE join_lists;
DROP TABLE joins;
