-- The control database: who sells, what is sold, who buys. The only place of names, addresses and documents (DESIGN 9).
-- Times are Unix milliseconds (…_ms). Its twin is ../postgres/00001_control.sql: a test compares the two.

-- +goose Up
CREATE TABLE organizers (
    id         INTEGER NOT NULL PRIMARY KEY,
    key        TEXT   NOT NULL UNIQUE,
    name       TEXT   NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE shows (
    id           INTEGER NOT NULL PRIMARY KEY,
    organizer_id INTEGER NOT NULL REFERENCES organizers (id),
    key          TEXT   NOT NULL,
    document     TEXT   NOT NULL, -- catalog.Show as JSON
    updated_ms   INTEGER NOT NULL,
    UNIQUE (organizer_id, key)
) STRICT;

-- A plan is named by the hash of its content: there is one of it, whoever has it.
CREATE TABLE plans (
    hash       TEXT   NOT NULL PRIMARY KEY,
    seat_count INTEGER NOT NULL,
    body       BLOB  NOT NULL, -- gzip of its JSON
    created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE plan_owners (
    organizer_id INTEGER NOT NULL REFERENCES organizers (id),
    hash         TEXT   NOT NULL REFERENCES plans (hash),
    name         TEXT   NOT NULL,
    created_ms   INTEGER NOT NULL,
    PRIMARY KEY (organizer_id, hash)
) STRICT;

CREATE TABLE events (
    id           INTEGER NOT NULL PRIMARY KEY,
    organizer_id INTEGER NOT NULL REFERENCES organizers (id),
    show_id      INTEGER NOT NULL REFERENCES shows (id),
    key          TEXT   NOT NULL,
    version      INTEGER NOT NULL,
    sent_version INTEGER NOT NULL, -- the greatest that the ledger is known to have
    state        TEXT   NOT NULL,
    plan_hash    TEXT   NOT NULL REFERENCES plans (hash),
    city         TEXT   NOT NULL, -- folded
    search       TEXT   NOT NULL, -- folded
    starts_ms    INTEGER NOT NULL,
    document     TEXT   NOT NULL, -- catalog.Event as JSON
    updated_ms   INTEGER NOT NULL,
    UNIQUE (show_id, key)
) STRICT;
CREATE INDEX events_by_start ON events (starts_ms, id);
CREATE INDEX events_unsent ON events (id) WHERE sent_version < version;

CREATE TABLE customers (
    id         INTEGER NOT NULL PRIMARY KEY,
    created_ms INTEGER NOT NULL
) STRICT;

-- The only place of a token's sub (A7).
CREATE TABLE identities (
    issuer      TEXT   NOT NULL,
    sub         TEXT   NOT NULL,
    customer_id INTEGER NOT NULL REFERENCES customers (id) DEFERRABLE INITIALLY DEFERRED,
    created_ms  INTEGER NOT NULL,
    PRIMARY KEY (issuer, sub)
) STRICT;
CREATE INDEX identities_by_customer ON identities (customer_id);

-- Keys are sealed; the master key is never here (E3).
CREATE TABLE keys (
    kid        TEXT   NOT NULL PRIMARY KEY,
    purpose    TEXT   NOT NULL,
    algorithm  TEXT   NOT NULL,
    state      TEXT   NOT NULL,
    sealed     BLOB  NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX keys_active ON keys (purpose) WHERE state = 'active';

-- Who makes ids under which node number, and how far numbers are given out (A7).
CREATE TABLE nodes (
    node          INTEGER NOT NULL PRIMARY KEY,
    high_water_ms INTEGER NOT NULL, -- since the epoch of ids
    holder        TEXT   NOT NULL,
    fence         INTEGER NOT NULL,
    until_ms      INTEGER NOT NULL -- by the database's clock
) STRICT;

CREATE TABLE meta (
    name  TEXT  NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;

-- +goose Down
DROP TABLE meta;
DROP TABLE nodes;
DROP TABLE keys;
DROP TABLE identities;
DROP TABLE customers;
DROP TABLE events;
DROP TABLE plan_owners;
DROP TABLE plans;
DROP TABLE shows;
DROP TABLE organizers;
