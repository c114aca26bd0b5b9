-- +goose Up

-- The waiting room: its row, who is inside, and the evidence of who was called by what rule. The same tables and columns stand in
-- the SQLite dialect.

ALTER TABLE holds ADD COLUMN ended_at bigint NOT NULL DEFAULT 0;  -- without a sale; 0: it has not
CREATE INDEX holds_unpaid ON holds (customer_id, event_id, ended_at) WHERE ended_at > 0;
CREATE INDEX holds_session ON holds (event_id, session_id) WHERE session_id <> 0;

CREATE TABLE rooms (
  event_id bigint PRIMARY KEY,
  version  bigint NOT NULL,
  body     text   NOT NULL              -- see ledger/decide room codec
) WITH (fillfactor = 10);

CREATE TABLE sessions (
  session_id  bigint PRIMARY KEY,
  event_id    bigint NOT NULL,
  customer_id bigint NOT NULL,
  lane        text COLLATE "C" NOT NULL,
  number      bigint NOT NULL,
  position    bigint NOT NULL,
  entered_at  bigint NOT NULL,
  expires_at  bigint NOT NULL,
  ended_at    bigint NOT NULL DEFAULT 0, -- 0: not written down yet
  why         text   NOT NULL DEFAULT ''
) WITH (fillfactor = 70);
-- The last line of I10: were all else wrong, the second entry of a number fails here.
CREATE UNIQUE INDEX sessions_number ON sessions (event_id, lane, number);
CREATE INDEX sessions_event ON sessions (event_id, session_id);
CREATE INDEX sessions_open ON sessions (event_id, expires_at, session_id) WHERE ended_at = 0;

CREATE TABLE room_rules (
  rule_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id   bigint NOT NULL,
  at         bigint NOT NULL,
  mode       smallint NOT NULL,
  rate       bigint NOT NULL,
  active_max bigint NOT NULL,
  turn       bigint NOT NULL,
  paused     smallint NOT NULL,
  closed     smallint NOT NULL
);
CREATE INDEX room_rules_event ON room_rules (event_id, rule_id);

CREATE TABLE room_calls (
  call_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id  bigint NOT NULL,
  lane      text COLLATE "C" NOT NULL,
  at        bigint NOT NULL,
  clock     bigint NOT NULL,
  was       bigint NOT NULL,            -- the watermark before
  watermark bigint NOT NULL
);
CREATE INDEX room_calls_lane ON room_calls (event_id, lane, at, call_id);

CREATE TABLE code_uses (
  event_id    bigint NOT NULL,
  lane        text COLLATE "C" NOT NULL,
  code        text COLLATE "C" NOT NULL,  -- a keyed hash
  number      bigint NOT NULL,         -- the first use is 1
  customer_id bigint NOT NULL,
  max         bigint NOT NULL,
  at          bigint NOT NULL,
  PRIMARY KEY (event_id, lane, code, number)
);
CREATE UNIQUE INDEX code_uses_customer ON code_uses (event_id, lane, code, customer_id);
