-- People: what customers say of themselves, sign-ins by e-mailed code, organizers' roles, attendees, the audit log, the
-- list of erasures. A verified address is an identity whose issuer is 'email'. Its twin is ../postgres/00002_people.sql.

-- +goose Up
ALTER TABLE customers ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE customers ADD COLUMN locale TEXT NOT NULL DEFAULT '';
ALTER TABLE customers ADD COLUMN erased_ms INTEGER NOT NULL DEFAULT 0; -- 0: not

-- Nothing here tells the address, the browser or the digits (E2).
CREATE TABLE sign_in_codes (
    ask        BLOB   NOT NULL PRIMARY KEY, -- SHA-256 of browser and address
    kid        TEXT   NOT NULL,
    sum        BLOB   NOT NULL,             -- keyed hash of the code
    tries      INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX sign_in_codes_by_expiry ON sign_in_codes (expires_ms);

-- When mails were sent to an address, or asked for from a network: a keyed hash of it.
CREATE TABLE sign_in_mails (
    subject BLOB   NOT NULL PRIMARY KEY,
    stamps  BLOB   NOT NULL, -- milliseconds, 8 bytes each, oldest first
    last_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX sign_in_mails_by_last ON sign_in_mails (last_ms);

CREATE TABLE sign_ins (
    token       BLOB   NOT NULL PRIMARY KEY, -- SHA-256 of it
    id          INTEGER NOT NULL UNIQUE,
    customer_id INTEGER NOT NULL REFERENCES customers (id) DEFERRABLE INITIALLY DEFERRED,
    method      TEXT   NOT NULL,
    created_ms  INTEGER NOT NULL,
    seen_ms     INTEGER NOT NULL,
    expires_ms  INTEGER NOT NULL
) STRICT;
CREATE INDEX sign_ins_by_customer ON sign_ins (customer_id, created_ms);
CREATE INDEX sign_ins_by_expiry ON sign_ins (expires_ms);
CREATE INDEX sign_ins_by_seen ON sign_ins (seen_ms);

CREATE TABLE roles (
    organizer_id INTEGER NOT NULL REFERENCES organizers (id),
    customer_id  INTEGER NOT NULL REFERENCES customers (id),
    role         TEXT   NOT NULL,
    created_ms   INTEGER NOT NULL,
    PRIMARY KEY (organizer_id, customer_id)
) STRICT;
CREATE INDEX roles_by_customer ON roles (customer_id);

CREATE TABLE invitations (
    id           INTEGER NOT NULL PRIMARY KEY,
    token        BLOB   NOT NULL UNIQUE, -- SHA-256 of it
    organizer_id INTEGER NOT NULL REFERENCES organizers (id),
    email        TEXT   NOT NULL,
    role         TEXT   NOT NULL,
    by_id        INTEGER NOT NULL, -- the customer who invited, 0 for the operator's command
    created_ms   INTEGER NOT NULL,
    expires_ms   INTEGER NOT NULL,
    UNIQUE (organizer_id, email)
) STRICT;
CREATE INDEX invitations_by_expiry ON invitations (expires_ms);
CREATE INDEX invitations_by_email ON invitations (email);

-- Who is named on the ticket of a place of an order. Of a document its keyed hash and the last four characters (E8).
CREATE TABLE attendees (
    order_id       INTEGER NOT NULL,
    place          INTEGER NOT NULL,
    event_id       INTEGER NOT NULL,
    customer_id    INTEGER NOT NULL,
    name           TEXT   NOT NULL,
    document_type  TEXT   NOT NULL,
    document_hash  TEXT   NOT NULL,
    document_last4 TEXT   NOT NULL,
    updated_ms     INTEGER NOT NULL,
    PRIMARY KEY (order_id, place)
) STRICT;
CREATE INDEX attendees_by_event ON attendees (event_id, order_id, place);
CREATE INDEX attendees_by_customer ON attendees (customer_id);
CREATE INDEX attendees_with_document ON attendees (event_id) WHERE document_type <> '';

-- Who changed what; ids only (E10).
CREATE TABLE audit_log (
    id           INTEGER NOT NULL PRIMARY KEY,
    at_ms        INTEGER NOT NULL,
    actor_id     INTEGER NOT NULL, -- the customer, 0 for the operator's command
    organizer_id INTEGER NOT NULL, -- 0 for the whole program
    role         TEXT   NOT NULL,
    action       TEXT   NOT NULL,
    target       TEXT   NOT NULL,
    details      TEXT   NOT NULL -- JSON
) STRICT;
CREATE INDEX audit_log_by_organizer ON audit_log (organizer_id, id);

-- A restored backup erases these again (F2).
CREATE TABLE erasures (
    customer_id INTEGER NOT NULL PRIMARY KEY,
    at_ms       INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE erasures;
DROP TABLE audit_log;
DROP TABLE attendees;
DROP TABLE invitations;
DROP TABLE roles;
DROP TABLE sign_ins;
DROP TABLE sign_in_mails;
DROP TABLE sign_in_codes;
ALTER TABLE customers DROP COLUMN erased_ms;
ALTER TABLE customers DROP COLUMN locale;
ALTER TABLE customers DROP COLUMN name;
