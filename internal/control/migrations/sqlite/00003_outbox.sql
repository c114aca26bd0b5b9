-- What handlers of the outbox still have to do: mails and webhooks, as ids (E10). Its twin is ../postgres/00003_outbox.sql: a
-- test compares the two. A claimed row is one whose due_ms lies ahead; fence counts the claims.

-- +goose Up
CREATE TABLE mail_jobs (
    key         TEXT   NOT NULL PRIMARY KEY,
    kind        TEXT   NOT NULL,
    customer_id INTEGER NOT NULL,
    order_id    INTEGER NOT NULL,
    event_id    INTEGER NOT NULL,
    refund_id   INTEGER NOT NULL,
    ticket_id   INTEGER NOT NULL,
    word        TEXT   NOT NULL,
    version     INTEGER NOT NULL,
    bulk        INTEGER NOT NULL, -- 1: news of an event
    state       TEXT   NOT NULL, -- due, ended, dead
    tries       INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    last        TEXT   NOT NULL, -- what went wrong: a mail server's status, never its text
    created_ms  INTEGER NOT NULL,
    due_ms      INTEGER NOT NULL  -- of an ended or dead one: since when
) STRICT;
CREATE INDEX mail_jobs_due ON mail_jobs (bulk, due_ms) WHERE state = 'due';
CREATE INDEX mail_jobs_by_state ON mail_jobs (state, due_ms);

-- What customers of an event know of it.
CREATE TABLE mail_told (
    event_id INTEGER NOT NULL PRIMARY KEY,
    version  INTEGER NOT NULL,
    changes  INTEGER NOT NULL, -- how many they were told of
    document TEXT   NOT NULL  -- mail.Event as JSON
) STRICT;

-- Runs that bring news of an event to all its customers.
CREATE TABLE mail_runs (
    event_id   INTEGER NOT NULL,
    kind       TEXT   NOT NULL,
    version    INTEGER NOT NULL,
    changes    INTEGER NOT NULL,
    was        TEXT   NOT NULL, -- mail.Event as JSON
    becomes    TEXT   NOT NULL,
    cursor     INTEGER NOT NULL, -- orders up to this one have their jobs
    made       INTEGER NOT NULL,
    done       INTEGER NOT NULL, -- 1: yes
    fence      INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    due_ms     INTEGER NOT NULL,
    PRIMARY KEY (event_id, kind, version)
) STRICT;
CREATE INDEX mail_runs_open ON mail_runs (created_ms) WHERE done = 0;

CREATE TABLE webhook_endpoints (
    id           INTEGER NOT NULL PRIMARY KEY,
    organizer_id INTEGER NOT NULL REFERENCES organizers (id),
    url          TEXT   NOT NULL,
    kinds        TEXT   NOT NULL, -- separated by spaces; '' is all
    state        TEXT   NOT NULL, -- on, off
    sealed       BLOB  NOT NULL, -- the secret
    old_sealed   BLOB  NOT NULL, -- the one before, empty for none
    old_until_ms INTEGER NOT NULL, -- it signs too until then
    created_ms   INTEGER NOT NULL,
    UNIQUE (organizer_id, url)
) STRICT;

CREATE TABLE webhook_deliveries (
    endpoint_id INTEGER NOT NULL REFERENCES webhook_endpoints (id),
    message     TEXT   NOT NULL,
    kind        TEXT   NOT NULL,
    body        TEXT   NOT NULL,
    state       TEXT   NOT NULL, -- due, ended, dead
    tries       INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    status      INTEGER NOT NULL, -- of the last answer, 0 for none
    last        TEXT   NOT NULL,
    created_ms  INTEGER NOT NULL,
    due_ms      INTEGER NOT NULL, -- of an ended or dead one: since when
    PRIMARY KEY (endpoint_id, message)
) STRICT;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_ms) WHERE state = 'due';
CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (state, due_ms);
CREATE INDEX webhook_deliveries_by_time ON webhook_deliveries (endpoint_id, created_ms);

-- +goose Down
DROP TABLE webhook_deliveries;
DROP TABLE webhook_endpoints;
DROP TABLE mail_runs;
DROP TABLE mail_told;
DROP TABLE mail_jobs;
