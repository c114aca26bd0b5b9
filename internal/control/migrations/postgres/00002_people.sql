-- People: what customers say of themselves, sign-ins by e-mailed code, organizers' roles, attendees, the audit log, the
-- list of erasures. A verified address is an identity whose issuer is 'email'. Its twin is ../sqlite/00002_people.sql.

-- +goose Up
ALTER TABLE customers ADD COLUMN name text NOT NULL DEFAULT '';
ALTER TABLE customers ADD COLUMN locale text NOT NULL DEFAULT '';
ALTER TABLE customers ADD COLUMN erased_ms bigint NOT NULL DEFAULT 0; -- 0: not

-- Nothing here tells the address, the browser or the digits (E2).
CREATE TABLE sign_in_codes (
    ask        bytea  NOT NULL PRIMARY KEY, -- SHA-256 of browser and address
    kid        text   NOT NULL,
    sum        bytea  NOT NULL,             -- keyed hash of the code
    tries      bigint NOT NULL,
    expires_ms bigint NOT NULL
);
CREATE INDEX sign_in_codes_by_expiry ON sign_in_codes (expires_ms);

-- When mails were sent to an address, or asked for from a network: a keyed hash of it.
CREATE TABLE sign_in_mails (
    subject bytea  NOT NULL PRIMARY KEY,
    stamps  bytea  NOT NULL, -- milliseconds, 8 bytes each, oldest first
    last_ms bigint NOT NULL
);
CREATE INDEX sign_in_mails_by_last ON sign_in_mails (last_ms);

CREATE TABLE sign_ins (
    token       bytea  NOT NULL PRIMARY KEY, -- SHA-256 of it
    id          bigint NOT NULL UNIQUE,
    customer_id bigint NOT NULL REFERENCES customers (id) DEFERRABLE INITIALLY DEFERRED,
    method      text   NOT NULL,
    created_ms  bigint NOT NULL,
    seen_ms     bigint NOT NULL,
    expires_ms  bigint NOT NULL
);
CREATE INDEX sign_ins_by_customer ON sign_ins (customer_id, created_ms);
CREATE INDEX sign_ins_by_expiry ON sign_ins (expires_ms);
CREATE INDEX sign_ins_by_seen ON sign_ins (seen_ms);

CREATE TABLE roles (
    organizer_id bigint NOT NULL REFERENCES organizers (id),
    customer_id  bigint NOT NULL REFERENCES customers (id),
    role         text   NOT NULL,
    created_ms   bigint NOT NULL,
    PRIMARY KEY (organizer_id, customer_id)
);
CREATE INDEX roles_by_customer ON roles (customer_id);

CREATE TABLE invitations (
    id           bigint NOT NULL PRIMARY KEY,
    token        bytea  NOT NULL UNIQUE, -- SHA-256 of it
    organizer_id bigint NOT NULL REFERENCES organizers (id),
    email        text   NOT NULL,
    role         text   NOT NULL,
    by_id        bigint NOT NULL, -- the customer who invited, 0 for the operator's command
    created_ms   bigint NOT NULL,
    expires_ms   bigint NOT NULL,
    UNIQUE (organizer_id, email)
);
CREATE INDEX invitations_by_expiry ON invitations (expires_ms);
CREATE INDEX invitations_by_email ON invitations (email);

-- Who is named on the ticket of a place of an order. Of a document its keyed hash and the last four characters (E8).
CREATE TABLE attendees (
    order_id       bigint NOT NULL,
    place          bigint NOT NULL,
    event_id       bigint NOT NULL,
    customer_id    bigint NOT NULL,
    name           text   NOT NULL,
    document_type  text   NOT NULL,
    document_hash  text   NOT NULL,
    document_last4 text   NOT NULL,
    updated_ms     bigint NOT NULL,
    PRIMARY KEY (order_id, place)
);
CREATE INDEX attendees_by_event ON attendees (event_id, order_id, place);
CREATE INDEX attendees_by_customer ON attendees (customer_id);
CREATE INDEX attendees_with_document ON attendees (event_id) WHERE document_type <> '';

-- Who changed what; ids only (E10).
CREATE TABLE audit_log (
    id           bigint NOT NULL PRIMARY KEY,
    at_ms        bigint NOT NULL,
    actor_id     bigint NOT NULL, -- the customer, 0 for the operator's command
    organizer_id bigint NOT NULL, -- 0 for the whole program
    role         text   NOT NULL,
    action       text   NOT NULL,
    target       text   NOT NULL,
    details      text   NOT NULL -- JSON
);
CREATE INDEX audit_log_by_organizer ON audit_log (organizer_id, id);

-- A restored backup erases these again (F2).
CREATE TABLE erasures (
    customer_id bigint NOT NULL PRIMARY KEY,
    at_ms       bigint NOT NULL
);

-- +goose Down
DROP TABLE erasures, audit_log, attendees, invitations, roles, sign_ins, sign_in_mails, sign_in_codes;
ALTER TABLE customers DROP COLUMN erased_ms;
ALTER TABLE customers DROP COLUMN locale;
ALTER TABLE customers DROP COLUMN name;
