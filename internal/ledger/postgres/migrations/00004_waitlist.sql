-- +goose Up

-- The waitlist (A23): what people wish for, and places of areas that are promised to them. The same columns stand in the SQLite
-- dialect.

ALTER TABLE buckets ADD COLUMN returned integer NOT NULL DEFAULT 0;
ALTER TABLE buckets ADD COLUMN returned_at bigint NOT NULL DEFAULT 0;

CREATE TABLE wishes (
  wish_id     bigint   PRIMARY KEY,
  event_id    bigint   NOT NULL,
  customer_id bigint   NOT NULL,
  state       smallint NOT NULL,
  quantity    integer  NOT NULL,
  least       integer  NOT NULL,
  categories  text     NOT NULL,         -- a list of numbers; []: any with a price
  sections    text     NOT NULL,         -- a list of numbers; []: any
  together    smallint NOT NULL,
  price_max   bigint   NOT NULL,         -- 0: any
  line_order  bigint   NOT NULL,         -- of those with as many offers the smaller goes first
  hold_id     bigint   NOT NULL,         -- the last offer, 0 none
  offer_count integer  NOT NULL,
  created_at  bigint   NOT NULL,
  updated_at  bigint   NOT NULL,
  sequence    bigint   NOT NULL          -- of its last notice
);
-- A customer waits, or is offered something, once an event.
CREATE UNIQUE INDEX wishes_one_open ON wishes (event_id, customer_id) WHERE state IN (1, 2);
CREATE INDEX wishes_customer ON wishes (customer_id, event_id, wish_id);
CREATE INDEX wishes_line ON wishes (event_id, state, offer_count, line_order, wish_id);
