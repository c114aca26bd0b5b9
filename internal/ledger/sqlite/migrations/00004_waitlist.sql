-- +goose Up

-- The waitlist (A23): what people wish for, and places of areas that are promised to them. The same columns stand in the
-- PostgreSQL dialect.

ALTER TABLE buckets ADD COLUMN returned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE buckets ADD COLUMN returned_at INTEGER NOT NULL DEFAULT 0;

CREATE TABLE wishes (
  wish_id     INTEGER PRIMARY KEY,
  event_id    INTEGER NOT NULL,
  customer_id INTEGER NOT NULL,
  state       INTEGER NOT NULL,
  quantity    INTEGER NOT NULL,
  least       INTEGER NOT NULL,
  categories  TEXT    NOT NULL,          -- a list of numbers; []: any with a price
  sections    TEXT    NOT NULL,          -- a list of numbers; []: any
  together    INTEGER NOT NULL,
  price_max   INTEGER NOT NULL,          -- 0: any
  line_order  INTEGER NOT NULL,          -- of those with as many offers the smaller goes first
  hold_id     INTEGER NOT NULL,          -- the last offer, 0 none
  offer_count INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  sequence    INTEGER NOT NULL           -- of its last notice
);
-- A customer waits, or is offered something, once an event.
CREATE UNIQUE INDEX wishes_one_open ON wishes (event_id, customer_id) WHERE state IN (1, 2);
CREATE INDEX wishes_customer ON wishes (customer_id, event_id, wish_id);
CREATE INDEX wishes_line ON wishes (event_id, state, offer_count, line_order, wish_id);
