-- +goose Up

-- The shard's schema: what is sold, to whom (ids only), and what became of it. The same tables and columns stand in the
-- SQLite dialect under the same number. States are the numbers of the ledger package; times are Unix milliseconds;
-- money is minor units; yes and no are 1 and 0, so that one query reads both dialects. No foreign keys on purpose (their
-- share locks on the one event row are contention): `audit` checks every reference.
--
-- Texts in keys are compared as bytes (COLLATE "C"): the order does not change with the system's locales.
--
-- Rows that are written again and again have room beside them in their page (fillfactor), so that the new version needs
-- no new index entry where no indexed column changes.

CREATE TABLE events (
  event_id bigint   PRIMARY KEY,
  version  bigint   NOT NULL,
  state    smallint NOT NULL,
  body     text     NOT NULL              -- the rest of ledger.Event, JSON
);

CREATE TABLE layouts (
  plan_hash text  COLLATE "C" PRIMARY KEY,
  body      bytea NOT NULL                -- ledger.Layout, see ledger/decide codec
);

CREATE TABLE seats_versions (
  event_id bigint PRIMARY KEY,
  version  bigint NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE seats (
  event_id    bigint   NOT NULL,
  seat_index  integer  NOT NULL,
  state       smallint NOT NULL DEFAULT 0,
  claim_id    bigint   NOT NULL DEFAULT 0,
  epoch       bigint   NOT NULL DEFAULT 0,
  when_free   smallint NOT NULL DEFAULT 0,
  returned_at bigint   NOT NULL DEFAULT 0,
  PRIMARY KEY (event_id, seat_index)
) WITH (fillfactor = 50);

CREATE TABLE buckets (
  event_id bigint   NOT NULL,
  area     integer  NOT NULL,
  number   smallint NOT NULL,
  capacity integer  NOT NULL,
  held     integer  NOT NULL DEFAULT 0,
  sold     integer  NOT NULL DEFAULT 0,
  PRIMARY KEY (event_id, area, number)
) WITH (fillfactor = 10);

CREATE TABLE holds (
  hold_id        bigint   PRIMARY KEY,
  event_id       bigint   NOT NULL,
  customer_id    bigint   NOT NULL,
  state          smallint NOT NULL,
  area           integer  NOT NULL,       -- -1: seats
  lines          text     NOT NULL,       -- see ledger/decide codec
  draws          text     NOT NULL,
  currency       text     NOT NULL,
  created_at     bigint   NOT NULL,
  expires_at     bigint   NOT NULL,
  extended_count integer  NOT NULL DEFAULT 0,
  window_used    smallint NOT NULL DEFAULT 0,
  order_id       bigint   NOT NULL DEFAULT 0,
  session_id     bigint   NOT NULL DEFAULT 0,
  exchange_of    bigint   NOT NULL DEFAULT 0,
  offer_id       bigint   NOT NULL DEFAULT 0
);
CREATE INDEX holds_live ON holds (expires_at, hold_id) WHERE state = 1;
CREATE INDEX holds_ended ON holds (expires_at) WHERE state IN (2, 3);

CREATE TABLE orders (
  order_id     bigint   PRIMARY KEY,
  hold_id      bigint   NOT NULL,
  event_id     bigint   NOT NULL,
  customer_id  bigint   NOT NULL,
  state        smallint NOT NULL,
  reason       text     NOT NULL DEFAULT '',
  amount       bigint   NOT NULL,
  currency     text     NOT NULL,
  provider     text     NOT NULL,
  payment_id   text     NOT NULL DEFAULT '',
  allow_other  smallint NOT NULL DEFAULT 0,
  rescued      smallint NOT NULL DEFAULT 0,
  attempt_open smallint NOT NULL DEFAULT 0,
  documents    text     NOT NULL DEFAULT '[]',
  created_at   bigint   NOT NULL,
  updated_at   bigint   NOT NULL,
  sequence     bigint   NOT NULL DEFAULT 0
);
-- A13: a hold has at most one order that is PENDING or PAID.
CREATE UNIQUE INDEX orders_one_per_hold ON orders (hold_id) WHERE state IN (1, 2);
CREATE INDEX orders_pending ON orders (order_id) WHERE state = 1;
CREATE INDEX orders_customer ON orders (customer_id, order_id);

CREATE TABLE payments (
  order_id   bigint   NOT NULL,
  provider   text     COLLATE "C" NOT NULL,
  payment_id text     COLLATE "C" NOT NULL,
  currency   text     NOT NULL,
  state      smallint NOT NULL,
  authorized bigint   NOT NULL DEFAULT 0,
  captured   bigint   NOT NULL DEFAULT 0,
  voided     bigint   NOT NULL DEFAULT 0,
  refunded   bigint   NOT NULL DEFAULT 0,
  refund_id  bigint   NOT NULL DEFAULT 0,
  PRIMARY KEY (order_id, provider, payment_id)
);
CREATE INDEX payments_authorized ON payments (order_id) WHERE state = 1;

CREATE TABLE refunds (
  refund_id  bigint   PRIMARY KEY,
  order_id   bigint   NOT NULL,
  provider   text     NOT NULL,
  payment_id text     NOT NULL,
  tickets    text     NOT NULL DEFAULT '[]',
  state      smallint NOT NULL,
  amount     bigint   NOT NULL,
  fee_kept   bigint   NOT NULL DEFAULT 0,
  rule       text     NOT NULL DEFAULT '',
  currency   text     NOT NULL,
  reason     text     NOT NULL,
  created_at bigint   NOT NULL
);
CREATE INDEX refunds_requested ON refunds (refund_id) WHERE state = 1;

CREATE TABLE tickets (
  ticket_id   bigint   PRIMARY KEY,
  order_id    bigint   NOT NULL,
  event_id    bigint   NOT NULL,
  customer_id bigint   NOT NULL,
  state       smallint NOT NULL,
  seat_index  integer,                    -- NULL: a place
  area        integer,                    -- NULL: a seat
  category    smallint NOT NULL,
  total       bigint   NOT NULL
);
-- The last line of I1: were all else wrong, the second sale of a seat fails here (A4: USED counts).
CREATE UNIQUE INDEX tickets_one_per_seat ON tickets (event_id, seat_index) WHERE state IN (1, 2) AND seat_index IS NOT NULL;
CREATE INDEX tickets_order ON tickets (order_id);

CREATE TABLE idempotency_keys (
  customer_id bigint NOT NULL,
  operation   text   COLLATE "C" NOT NULL,
  key         text   COLLATE "C" NOT NULL,
  subject_id  bigint NOT NULL,            -- the hold or order that was its effect
  fields      text   NOT NULL,
  created_at  bigint NOT NULL,
  PRIMARY KEY (customer_id, operation, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

CREATE TABLE limits (
  scope    smallint NOT NULL,
  of_id    bigint   NOT NULL,             -- event or show
  category smallint NOT NULL,             -- -1: any
  subject  bytea    NOT NULL,             -- customer, or a document's keyed hash
  count    integer  NOT NULL,
  PRIMARY KEY (scope, of_id, category, subject)
) WITH (fillfactor = 80);

CREATE TABLE quotas (
  event_id bigint   NOT NULL,
  category smallint NOT NULL,
  section  smallint NOT NULL,
  count    integer  NOT NULL,
  PRIMARY KEY (event_id, category, section)
) WITH (fillfactor = 10);

CREATE TABLE outbox (
  order_id     bigint   NOT NULL,
  sequence     bigint   NOT NULL,
  kind         text     NOT NULL,
  alert        smallint NOT NULL DEFAULT 0,
  body         text     NOT NULL,
  created_at   bigint   NOT NULL,
  published_at bigint,                    -- NULL: not yet
  PRIMARY KEY (order_id, sequence)
);
CREATE INDEX outbox_unpublished ON outbox (order_id, sequence) WHERE published_at IS NULL;
CREATE INDEX outbox_published ON outbox (published_at) WHERE published_at IS NOT NULL;

CREATE TABLE webhooks (
  provider   text     COLLATE "C" NOT NULL,
  event_id   text     COLLATE "C" NOT NULL, -- the provider's
  order_ref  text     NOT NULL,
  payment_id text     NOT NULL,
  amount     bigint   NOT NULL,
  currency   text     NOT NULL,
  dead       smallint NOT NULL DEFAULT 0, -- 1: its order is not known
  at         bigint   NOT NULL,
  PRIMARY KEY (provider, event_id)
);
CREATE INDEX webhooks_age ON webhooks (dead, at);

CREATE TABLE history (
  history_id bigint   GENERATED ALWAYS AS IDENTITY (CACHE 256) PRIMARY KEY,
  event_id   bigint   NOT NULL,
  claim_id   bigint   NOT NULL,           -- 0: an organizer's block
  was        text     NOT NULL,
  becomes    text     NOT NULL,
  why        text     NOT NULL,
  seats      text     NOT NULL,           -- [[seat index, epoch], …]
  places     integer  NOT NULL DEFAULT 0,
  at         bigint   NOT NULL
);

CREATE TABLE changes (
  event_id bigint NOT NULL,
  version  bigint NOT NULL,
  body     text   NOT NULL,               -- see ledger/decide codec
  at       bigint NOT NULL,
  PRIMARY KEY (event_id, version)
);
CREATE INDEX changes_age ON changes (at);

CREATE TABLE leases (
  name     text   COLLATE "C" PRIMARY KEY,
  holder   text   NOT NULL,
  fence    bigint NOT NULL,
  until_at bigint NOT NULL
);

-- A time by which something was decided, raised when changes are deleted: a node that starts while the server's clock has
-- gone back knows from it and from the changes that are left (A5).
CREATE TABLE clock (
  clock_id smallint PRIMARY KEY CHECK (clock_id = 1),
  now      bigint   NOT NULL
);
INSERT INTO clock (clock_id, now) VALUES (1, 0);

-- Dead versions go early, a little at a time: these tables change all over within the minutes of a rush.
ALTER TABLE seats            SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE holds            SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE orders           SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE limits           SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE outbox           SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE idempotency_keys SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
