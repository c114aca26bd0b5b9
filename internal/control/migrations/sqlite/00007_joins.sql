-- Who has which number of an event's line (waitingroom.Log), where the data folder is not one machine's own.
-- Its twin is ../postgres/00007_joins.sql: a test compares the two.

-- +goose Up
CREATE TABLE joins (
    event_id    INTEGER NOT NULL,
    lane        INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    customer_id INTEGER NOT NULL,
    at_ms       INTEGER NOT NULL,
    drawn       INTEGER NOT NULL, -- 1: taken before the freeze
    identity    BLOB NOT NULL, -- empty for none
    entry       BLOB NOT NULL,
    present     INTEGER NOT NULL, -- 0: given up
    left_ms     INTEGER NOT NULL, -- 0: not
    listed      INTEGER NOT NULL, -- 0: given up before the list was sealed
    PRIMARY KEY (event_id, lane, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX joins_present ON joins (event_id, customer_id) WHERE present = 1;

-- The lists of drawn joins. Who adds a drawn join or ends one locks its row against being sealed.
CREATE TABLE join_lists (
    event_id  INTEGER NOT NULL PRIMARY KEY,
    sealed_ms INTEGER NOT NULL -- 0: not yet
) STRICT;

-- +goose Down
DROP TABLE join_lists;
DROP TABLE joins;
