-- +goose Up

-- Money goes both ways: refunds of tickets, exchanges, transfers, and the door. The same columns stand in the SQLite dialect.

ALTER TABLE events ADD COLUMN sequence bigint NOT NULL DEFAULT 0;  -- of its last notice
ALTER TABLE holds ADD COLUMN exchanged text NOT NULL DEFAULT '[]';  -- [[ticket, event, category], …]
ALTER TABLE orders ADD COLUMN exchange_of bigint NOT NULL DEFAULT 0;
ALTER TABLE orders ADD COLUMN credit bigint NOT NULL DEFAULT 0;
ALTER TABLE orders ADD COLUMN funds text NOT NULL DEFAULT '[]';
ALTER TABLE payments ADD COLUMN promised bigint NOT NULL DEFAULT 0;
ALTER TABLE refunds ADD COLUMN from_order bigint NOT NULL DEFAULT 0;
UPDATE refunds SET from_order = order_id;
ALTER TABLE refunds ADD COLUMN by_id bigint NOT NULL DEFAULT 0;
ALTER TABLE refunds ADD COLUMN refused text NOT NULL DEFAULT '';
ALTER TABLE refunds ADD COLUMN try_count integer NOT NULL DEFAULT 0;
CREATE INDEX refunds_order ON refunds (order_id);
CREATE INDEX refunds_unreleased ON refunds (refund_id) WHERE state = 2 AND tickets <> '[]';
CREATE INDEX refunds_refused ON refunds (refund_id) WHERE refused <> '';
ALTER TABLE tickets ADD COLUMN place integer NOT NULL DEFAULT 0;
ALTER TABLE tickets ADD COLUMN was_id bigint NOT NULL DEFAULT 0;
ALTER TABLE tickets ADD COLUMN exchange_hold bigint NOT NULL DEFAULT 0;
ALTER TABLE tickets ADD COLUMN refund_id bigint NOT NULL DEFAULT 0;
ALTER TABLE tickets ADD COLUMN gone smallint NOT NULL DEFAULT 0;
CREATE INDEX tickets_passed_on ON tickets (customer_id, ticket_id) WHERE was_id <> 0;
CREATE INDEX orders_event ON orders (event_id, order_id);

-- What was sold before: tickets are in the order of their hold's places, and only a refused capture made one void.
UPDATE tickets SET place = (SELECT count(*) FROM tickets o WHERE o.order_id = tickets.order_id AND o.ticket_id < tickets.ticket_id);
UPDATE tickets SET gone = 1, refund_id = COALESCE((SELECT max(r.refund_id) FROM refunds r WHERE r.order_id = tickets.order_id AND r.reason = 'capture_refused'), 0)
  WHERE state = 3;
-- Their holds' lines get the mark of version 2 (see ledger/decide codec): [[1],[…7 numbers],…] becomes [[2],[…,1],…].
UPDATE holds SET lines = '[[2],' || replace(substr(lines, 6, length(lines) - 7), '],[', ',1],[') || ',1]]'
  WHERE lines LIKE '[[1],%' AND hold_id IN (SELECT o.hold_id FROM orders o WHERE o.state = 5 AND o.reason = 'capture_refused');

-- A use of a ticket at a door, as a fact: never overwritten (E6).
CREATE TABLE checkins (
  event_id  bigint NOT NULL,
  at        bigint NOT NULL,
  ticket_id bigint NOT NULL,
  device    text COLLATE "C" NOT NULL,
  gate      text NOT NULL,
  by_id     bigint NOT NULL,
  offline   smallint NOT NULL,
  conflict  text NOT NULL,              -- '': let in by right
  undone_at bigint NOT NULL DEFAULT 0,
  undone_by bigint NOT NULL DEFAULT 0,
  why       text NOT NULL DEFAULT '',
  PRIMARY KEY (event_id, at, ticket_id, device)
);
CREATE INDEX checkins_ticket ON checkins (ticket_id, at);
CREATE INDEX checkins_conflict ON checkins (event_id, at) WHERE conflict <> '';
CREATE INDEX history_claim ON history (claim_id);
