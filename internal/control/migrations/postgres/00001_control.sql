-- The control database: who sells, what is sold, who buys. The only place of names, addresses and documents (DESIGN 9).
-- Times are Unix milliseconds (…_ms). Its twin is ../sqlite/00001_control.sql: a test compares the two.

-- +goose Up
CREATE TABLE organizers (
    id         bigint NOT NULL PRIMARY KEY,
    key        text   NOT NULL UNIQUE,
    name       text   NOT NULL,
    created_ms bigint NOT NULL
);

CREATE TABLE shows (
    id           bigint NOT NULL PRIMARY KEY,
    organizer_id bigint NOT NULL REFERENCES organizers (id),
    key          text   NOT NULL,
    document     text   NOT NULL, -- catalog.Show as JSON
    updated_ms   bigint NOT NULL,
    UNIQUE (organizer_id, key)
);

-- A plan is named by the hash of its content: there is one of it, whoever has it.
CREATE TABLE plans (
    hash       text   NOT NULL PRIMARY KEY,
    seat_count bigint NOT NULL,
    body       bytea  NOT NULL, -- gzip of its JSON
    created_ms bigint NOT NULL
);

CREATE TABLE plan_owners (
    organizer_id bigint NOT NULL REFERENCES organizers (id),
    hash         text   NOT NULL REFERENCES plans (hash),
    name         text   NOT NULL,
    created_ms   bigint NOT NULL,
    PRIMARY KEY (organizer_id, hash)
);

CREATE TABLE events (
    id           bigint NOT NULL PRIMARY KEY,
    organizer_id bigint NOT NULL REFERENCES organizers (id),
    show_id      bigint NOT NULL REFERENCES shows (id),
    key          text   NOT NULL,
    version      bigint NOT NULL,
    sent_version bigint NOT NULL, -- the greatest that the ledger is known to have
    state        text   NOT NULL,
    plan_hash    text   NOT NULL REFERENCES plans (hash),
    city         text   NOT NULL, -- folded
    search       text   NOT NULL, -- folded
    starts_ms    bigint NOT NULL,
    document     text   NOT NULL, -- catalog.Event as JSON
    updated_ms   bigint NOT NULL,
    UNIQUE (show_id, key)
);
CREATE INDEX events_by_start ON events (starts_ms, id);
CREATE INDEX events_unsent ON events (id) WHERE sent_version < version;

CREATE TABLE customers (
    id         bigint NOT NULL PRIMARY KEY,
    created_ms bigint NOT NULL
);

-- The only place of a token's sub (A7).
CREATE TABLE identities (
    issuer      text   NOT NULL,
    sub         text   NOT NULL,
    customer_id bigint NOT NULL REFERENCES customers (id) DEFERRABLE INITIALLY DEFERRED,
    created_ms  bigint NOT NULL,
    PRIMARY KEY (issuer, sub)
);
CREATE INDEX identities_by_customer ON identities (customer_id);

-- Keys are sealed; the master key is never here (E3).
CREATE TABLE keys (
    kid        text   NOT NULL PRIMARY KEY,
    purpose    text   NOT NULL,
    algorithm  text   NOT NULL,
    state      text   NOT NULL,
    sealed     bytea  NOT NULL,
    created_ms bigint NOT NULL
);
CREATE UNIQUE INDEX keys_active ON keys (purpose) WHERE state = 'active';

-- Who makes ids under which node number, and how far numbers are given out (A7).
CREATE TABLE nodes (
    node          bigint NOT NULL PRIMARY KEY,
    high_water_ms bigint NOT NULL, -- since the epoch of ids
    holder        text   NOT NULL,
    fence         bigint NOT NULL,
    until_ms      bigint NOT NULL -- by the database's clock
);

CREATE TABLE meta (
    name  text  NOT NULL PRIMARY KEY,
    value bytea NOT NULL
);

-- +goose Down
DROP TABLE meta, nodes, keys, identities, customers, events, plan_owners, plans, shows, organizers;
