-- What handlers of the outbox still have to do: mails and webhooks, as ids (E10). Its twin is ../sqlite/00003_outbox.sql: a
-- test compares the two. A claimed row is one whose due_ms lies ahead; fence counts the claims.

-- +goose Up
CREATE TABLE mail_jobs (
    key         text   NOT NULL PRIMARY KEY,
    kind        text   NOT NULL,
    customer_id bigint NOT NULL,
    order_id    bigint NOT NULL,
    event_id    bigint NOT NULL,
    refund_id   bigint NOT NULL,
    ticket_id   bigint NOT NULL,
    word        text   NOT NULL,
    version     bigint NOT NULL,
    bulk        bigint NOT NULL, -- 1: news of an event
    state       text   NOT NULL, -- due, ended, dead
    tries       bigint NOT NULL,
    fence       bigint NOT NULL,
    last        text   NOT NULL, -- what went wrong: a mail server's status, never its text
    created_ms  bigint NOT NULL,
    due_ms      bigint NOT NULL  -- of an ended or dead one: since when
);
CREATE INDEX mail_jobs_due ON mail_jobs (bulk, due_ms) WHERE state = 'due';
CREATE INDEX mail_jobs_by_state ON mail_jobs (state, due_ms);

-- What customers of an event know of it.
CREATE TABLE mail_told (
    event_id bigint NOT NULL PRIMARY KEY,
    version  bigint NOT NULL,
    changes  bigint NOT NULL, -- how many they were told of
    document text   NOT NULL  -- mail.Event as JSON
);

-- Runs that bring news of an event to all its customers.
CREATE TABLE mail_runs (
    event_id   bigint NOT NULL,
    kind       text   NOT NULL,
    version    bigint NOT NULL,
    changes    bigint NOT NULL,
    was        text   NOT NULL, -- mail.Event as JSON
    becomes    text   NOT NULL,
    cursor     bigint NOT NULL, -- orders up to this one have their jobs
    made       bigint NOT NULL,
    done       bigint NOT NULL, -- 1: yes
    fence      bigint NOT NULL,
    created_ms bigint NOT NULL,
    due_ms     bigint NOT NULL,
    PRIMARY KEY (event_id, kind, version)
);
CREATE INDEX mail_runs_open ON mail_runs (created_ms) WHERE done = 0;

CREATE TABLE webhook_endpoints (
    id           bigint NOT NULL PRIMARY KEY,
    organizer_id bigint NOT NULL REFERENCES organizers (id),
    url          text   NOT NULL,
    kinds        text   NOT NULL, -- separated by spaces; '' is all
    state        text   NOT NULL, -- on, off
    sealed       bytea  NOT NULL, -- the secret
    old_sealed   bytea  NOT NULL, -- the one before, empty for none
    old_until_ms bigint NOT NULL, -- it signs too until then
    created_ms   bigint NOT NULL,
    UNIQUE (organizer_id, url)
);

CREATE TABLE webhook_deliveries (
    endpoint_id bigint NOT NULL REFERENCES webhook_endpoints (id),
    message     text   NOT NULL,
    kind        text   NOT NULL,
    body        text   NOT NULL,
    state       text   NOT NULL, -- due, ended, dead
    tries       bigint NOT NULL,
    fence       bigint NOT NULL,
    status      bigint NOT NULL, -- of the last answer, 0 for none
    last        text   NOT NULL,
    created_ms  bigint NOT NULL,
    due_ms      bigint NOT NULL, -- of an ended or dead one: since when
    PRIMARY KEY (endpoint_id, message)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_ms) WHERE state = 'due';
CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (state, due_ms);
CREATE INDEX webhook_deliveries_by_time ON webhook_deliveries (endpoint_id, created_ms);

-- +goose Down
DROP TABLE webhook_deliveries, webhook_endpoints, mail_runs, mail_told, mail_jobs;
