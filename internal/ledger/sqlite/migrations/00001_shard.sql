-- +goose Up

-- The shard's schema: what is sold, to whom (ids only), and what became of it. The same tables and columns stand in the
-- PostgreSQL dialect under the same number. States are the numbers of the ledger package; times are Unix milliseconds;
-- money is minor units. No foreign keys on purpose: `audit` checks every reference.

CREATE TABLE events (
  event_id INTEGER PRIMARY KEY,
  version  INTEGER NOT NULL,
  state    INTEGER NOT NULL,
  body     TEXT    NOT NULL              -- the rest of ledger.Event, JSON
);

CREATE TABLE layouts (
  plan_hash TEXT PRIMARY KEY,
  body      BLOB NOT NULL                -- ledger.Layout, see ledger/decide codec
);

CREATE TABLE seats_versions (
  event_id INTEGER PRIMARY KEY,
  version  INTEGER NOT NULL
);

CREATE TABLE seats (
  event_id    INTEGER NOT NULL,
  seat_index  INTEGER NOT NULL,
  state       INTEGER NOT NULL DEFAULT 0,
  claim_id    INTEGER NOT NULL DEFAULT 0,
  epoch       INTEGER NOT NULL DEFAULT 0,
  when_free   INTEGER NOT NULL DEFAULT 0,
  returned_at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (event_id, seat_index)
) WITHOUT ROWID;

CREATE TABLE buckets (
  event_id INTEGER NOT NULL,
  area     INTEGER NOT NULL,
  number   INTEGER NOT NULL,
  capacity INTEGER NOT NULL,
  held     INTEGER NOT NULL DEFAULT 0,
  sold     INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (event_id, area, number)
) WITHOUT ROWID;

CREATE TABLE holds (
  hold_id        INTEGER PRIMARY KEY,
  event_id       INTEGER NOT NULL,
  customer_id    INTEGER NOT NULL,
  state          INTEGER NOT NULL,
  area           INTEGER NOT NULL,       -- -1: seats
  lines          TEXT    NOT NULL,       -- see ledger/decide codec
  draws          TEXT    NOT NULL,
  currency       TEXT    NOT NULL,
  created_at     INTEGER NOT NULL,
  expires_at     INTEGER NOT NULL,
  extended_count INTEGER NOT NULL DEFAULT 0,
  window_used    INTEGER NOT NULL DEFAULT 0,
  order_id       INTEGER NOT NULL DEFAULT 0,
  session_id     INTEGER NOT NULL DEFAULT 0,
  exchange_of    INTEGER NOT NULL DEFAULT 0,
  offer_id       INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX holds_live ON holds (expires_at, hold_id) WHERE state = 1;
CREATE INDEX holds_ended ON holds (expires_at) WHERE state IN (2, 3);

CREATE TABLE orders (
  order_id     INTEGER PRIMARY KEY,
  hold_id      INTEGER NOT NULL,
  event_id     INTEGER NOT NULL,
  customer_id  INTEGER NOT NULL,
  state        INTEGER NOT NULL,
  reason       TEXT    NOT NULL DEFAULT '',
  amount       INTEGER NOT NULL,
  currency     TEXT    NOT NULL,
  provider     TEXT    NOT NULL,
  payment_id   TEXT    NOT NULL DEFAULT '',
  allow_other  INTEGER NOT NULL DEFAULT 0,
  rescued      INTEGER NOT NULL DEFAULT 0,
  attempt_open INTEGER NOT NULL DEFAULT 0,
  documents    TEXT    NOT NULL DEFAULT '[]',
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  sequence     INTEGER NOT NULL DEFAULT 0
);
-- A13: a hold has at most one order that is PENDING or PAID.
CREATE UNIQUE INDEX orders_one_per_hold ON orders (hold_id) WHERE state IN (1, 2);
CREATE INDEX orders_pending ON orders (order_id) WHERE state = 1;
CREATE INDEX orders_customer ON orders (customer_id, order_id);

CREATE TABLE payments (
  order_id   INTEGER NOT NULL,
  provider   TEXT    NOT NULL,
  payment_id TEXT    NOT NULL,
  currency   TEXT    NOT NULL,
  state      INTEGER NOT NULL,
  authorized INTEGER NOT NULL DEFAULT 0,
  captured   INTEGER NOT NULL DEFAULT 0,
  voided     INTEGER NOT NULL DEFAULT 0,
  refunded   INTEGER NOT NULL DEFAULT 0,
  refund_id  INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (order_id, provider, payment_id)
) WITHOUT ROWID;
CREATE INDEX payments_authorized ON payments (order_id) WHERE state = 1;

CREATE TABLE refunds (
  refund_id  INTEGER PRIMARY KEY,
  order_id   INTEGER NOT NULL,
  provider   TEXT    NOT NULL,
  payment_id TEXT    NOT NULL,
  tickets    TEXT    NOT NULL DEFAULT '[]',
  state      INTEGER NOT NULL,
  amount     INTEGER NOT NULL,
  fee_kept   INTEGER NOT NULL DEFAULT 0,
  rule       TEXT    NOT NULL DEFAULT '',
  currency   TEXT    NOT NULL,
  reason     TEXT    NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX refunds_requested ON refunds (refund_id) WHERE state = 1;

CREATE TABLE tickets (
  ticket_id   INTEGER PRIMARY KEY,
  order_id    INTEGER NOT NULL,
  event_id    INTEGER NOT NULL,
  customer_id INTEGER NOT NULL,
  state       INTEGER NOT NULL,
  seat_index  INTEGER,                   -- NULL: a place
  area        INTEGER,                   -- NULL: a seat
  category    INTEGER NOT NULL,
  total       INTEGER NOT NULL
);
-- The last line of I1: were all else wrong, the second sale of a seat fails here (A4: USED counts).
CREATE UNIQUE INDEX tickets_one_per_seat ON tickets (event_id, seat_index) WHERE state IN (1, 2) AND seat_index IS NOT NULL;
CREATE INDEX tickets_order ON tickets (order_id);

CREATE TABLE idempotency_keys (
  customer_id INTEGER NOT NULL,
  operation   TEXT    NOT NULL,
  key         TEXT    NOT NULL,
  subject_id  INTEGER NOT NULL,          -- the hold or order that was its effect
  fields      TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  PRIMARY KEY (customer_id, operation, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

CREATE TABLE limits (
  scope    INTEGER NOT NULL,
  of_id    INTEGER NOT NULL,             -- event or show
  category INTEGER NOT NULL,             -- -1: any
  subject  BLOB    NOT NULL,             -- customer, or a document's keyed hash
  count    INTEGER NOT NULL,
  PRIMARY KEY (scope, of_id, category, subject)
) WITHOUT ROWID;

CREATE TABLE quotas (
  event_id INTEGER NOT NULL,
  category INTEGER NOT NULL,
  section  INTEGER NOT NULL,
  count    INTEGER NOT NULL,
  PRIMARY KEY (event_id, category, section)
) WITHOUT ROWID;

CREATE TABLE outbox (
  order_id     INTEGER NOT NULL,
  sequence     INTEGER NOT NULL,
  kind         TEXT    NOT NULL,
  alert        INTEGER NOT NULL DEFAULT 0,
  body         TEXT    NOT NULL,
  created_at   INTEGER NOT NULL,
  published_at INTEGER,                  -- NULL: not yet
  PRIMARY KEY (order_id, sequence)
) WITHOUT ROWID;
CREATE INDEX outbox_unpublished ON outbox (order_id, sequence) WHERE published_at IS NULL;
CREATE INDEX outbox_published ON outbox (published_at) WHERE published_at IS NOT NULL;

CREATE TABLE webhooks (
  provider   TEXT    NOT NULL,
  event_id   TEXT    NOT NULL,           -- the provider's
  order_ref  TEXT    NOT NULL,
  payment_id TEXT    NOT NULL,
  amount     INTEGER NOT NULL,
  currency   TEXT    NOT NULL,
  dead       INTEGER NOT NULL DEFAULT 0, -- 1: its order is not known
  at         INTEGER NOT NULL,
  PRIMARY KEY (provider, event_id)
) WITHOUT ROWID;
CREATE INDEX webhooks_age ON webhooks (dead, at);

CREATE TABLE history (
  history_id INTEGER PRIMARY KEY,
  event_id   INTEGER NOT NULL,
  claim_id   INTEGER NOT NULL,           -- 0: an organizer's block
  was        TEXT    NOT NULL,
  becomes    TEXT    NOT NULL,
  why        TEXT    NOT NULL,
  seats      TEXT    NOT NULL,           -- [[seat index, epoch], …]
  places     INTEGER NOT NULL DEFAULT 0,
  at         INTEGER NOT NULL
);

CREATE TABLE changes (
  event_id INTEGER NOT NULL,
  version  INTEGER NOT NULL,
  body     TEXT    NOT NULL,             -- see ledger/decide codec
  at       INTEGER NOT NULL,
  PRIMARY KEY (event_id, version)
) WITHOUT ROWID;
CREATE INDEX changes_age ON changes (at);

CREATE TABLE leases (
  name     TEXT PRIMARY KEY,
  holder   TEXT    NOT NULL,
  fence    INTEGER NOT NULL,
  until_at INTEGER NOT NULL
);

CREATE TABLE clock (
  clock_id INTEGER PRIMARY KEY CHECK (clock_id = 1),
  now      INTEGER NOT NULL
);
INSERT INTO clock (clock_id, now) VALUES (1, 0);
