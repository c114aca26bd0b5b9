-- +goose Up

-- The waiting room: its row, who is inside, and the evidence of who was called by what rule. The same tables and columns stand in
-- the PostgreSQL dialect.

ALTER TABLE holds ADD COLUMN ended_at INTEGER NOT NULL DEFAULT 0;  -- without a sale; 0: it has not
CREATE INDEX holds_unpaid ON holds (customer_id, event_id, ended_at) WHERE ended_at > 0;
CREATE INDEX holds_session ON holds (event_id, session_id) WHERE session_id <> 0;

CREATE TABLE rooms (
  event_id INTEGER PRIMARY KEY,
  version  INTEGER NOT NULL,
  body     TEXT    NOT NULL              -- see ledger/decide room codec
);

CREATE TABLE sessions (
  session_id  INTEGER PRIMARY KEY,
  event_id    INTEGER NOT NULL,
  customer_id INTEGER NOT NULL,
  lane        TEXT    NOT NULL,
  number      INTEGER NOT NULL,
  position    INTEGER NOT NULL,
  entered_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  ended_at    INTEGER NOT NULL DEFAULT 0, -- 0: not written down yet
  why         TEXT    NOT NULL DEFAULT ''
);
-- The last line of I10: were all else wrong, the second entry of a number fails here.
CREATE UNIQUE INDEX sessions_number ON sessions (event_id, lane, number);
CREATE INDEX sessions_event ON sessions (event_id, session_id);
CREATE INDEX sessions_open ON sessions (event_id, expires_at, session_id) WHERE ended_at = 0;

CREATE TABLE room_rules (
  rule_id    INTEGER PRIMARY KEY,
  event_id   INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  mode       INTEGER NOT NULL,
  rate       INTEGER NOT NULL,
  active_max INTEGER NOT NULL,
  turn       INTEGER NOT NULL,
  paused     INTEGER NOT NULL,
  closed     INTEGER NOT NULL
);
CREATE INDEX room_rules_event ON room_rules (event_id, rule_id);

CREATE TABLE room_calls (
  call_id   INTEGER PRIMARY KEY,
  event_id  INTEGER NOT NULL,
  lane      TEXT    NOT NULL,
  at        INTEGER NOT NULL,
  clock     INTEGER NOT NULL,
  was       INTEGER NOT NULL,            -- the watermark before
  watermark INTEGER NOT NULL
);
CREATE INDEX room_calls_lane ON room_calls (event_id, lane, at, call_id);

CREATE TABLE code_uses (
  event_id    INTEGER NOT NULL,
  lane        TEXT    NOT NULL,
  code        TEXT    NOT NULL,          -- a keyed hash
  number      INTEGER NOT NULL,          -- the first use is 1
  customer_id INTEGER NOT NULL,
  max         INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  PRIMARY KEY (event_id, lane, code, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX code_uses_customer ON code_uses (event_id, lane, code, customer_id);
