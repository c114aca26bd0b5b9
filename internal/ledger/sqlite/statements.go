package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
)

// statements are prepared once on the writing connection. The tags are their texts. Those that write rows are direct.
type statements struct {
	begin  *sql.Stmt `sql:"BEGIN IMMEDIATE"`
	commit *sql.Stmt `sql:"COMMIT"`
	clock  *direct   `sql:"UPDATE clock SET now = ?"`

	event     *sql.Stmt `sql:"SELECT version, state, sequence, body FROM events WHERE event_id = ?"`
	layout    *sql.Stmt `sql:"SELECT body FROM layouts WHERE plan_hash = ?"`
	seats     *sql.Stmt `sql:"SELECT seat_index, state, claim_id, epoch, when_free, returned_at FROM seats WHERE event_id = ? AND seat_index >= ? AND seat_index < ?"`
	buckets   *sql.Stmt `sql:"SELECT number, capacity, held, sold, returned, returned_at FROM buckets WHERE event_id = ? AND area = ? ORDER BY number"`
	hold      *sql.Stmt `sql:"SELECT event_id, customer_id, state, area, lines, draws, currency, created_at, expires_at, extended_count, window_used, order_id, session_id, exchange_of, offer_id, exchanged, ended_at FROM holds WHERE hold_id = ?"`
	order     *sql.Stmt `sql:"SELECT hold_id, event_id, customer_id, state, reason, amount, currency, provider, payment_id, allow_other, rescued, attempt_open, documents, created_at, updated_at, sequence, exchange_of, credit, funds FROM orders WHERE order_id = ?"`
	payment   *sql.Stmt `sql:"SELECT currency, state, authorized, captured, voided, refunded, refund_id, promised FROM payments WHERE order_id = ? AND provider = ? AND payment_id = ?"`
	refund    *sql.Stmt `sql:"SELECT refund_id, order_id, from_order, provider, payment_id, tickets, state, amount, fee_kept, rule, currency, reason, by_id, refused, try_count, created_at FROM refunds WHERE refund_id = ?"`
	refundsOf *sql.Stmt `sql:"SELECT refund_id, order_id, from_order, provider, payment_id, tickets, state, amount, fee_kept, rule, currency, reason, by_id, refused, try_count, created_at FROM refunds WHERE order_id = ? ORDER BY refund_id"`
	tickets   *sql.Stmt `sql:"SELECT ticket_id, order_id, event_id, customer_id, state, seat_index, area, category, total, place, was_id, exchange_hold, refund_id, gone FROM tickets WHERE order_id = ? ORDER BY ticket_id"`
	ticketOf  *sql.Stmt `sql:"SELECT order_id FROM tickets WHERE ticket_id = ?"`
	received  *sql.Stmt `sql:"SELECT t.ticket_id, t.order_id, t.event_id, t.customer_id, t.state, t.seat_index, t.area, t.category, t.total, t.place, t.was_id, t.exchange_hold, t.refund_id, t.gone FROM tickets t INDEXED BY tickets_passed_on JOIN orders o ON o.order_id = t.order_id WHERE t.was_id <> 0 AND t.event_id = ? AND t.gone = 0 AND o.customer_id <> t.customer_id"`
	uses      *sql.Stmt `sql:"SELECT event_id, at, ticket_id, device, gate, by_id, offline, conflict, undone_at, undone_by, why FROM checkins WHERE ticket_id = ? ORDER BY at, device"`
	key       *sql.Stmt `sql:"SELECT subject_id, fields, created_at FROM idempotency_keys WHERE customer_id = ? AND operation = ? AND key = ?"`
	limit     *sql.Stmt `sql:"SELECT count FROM limits WHERE scope = ? AND of_id = ? AND category = ? AND subject = ?"`
	quota     *sql.Stmt `sql:"SELECT count FROM quotas WHERE event_id = ? AND category = ? AND section = ?"`
	wish      *sql.Stmt `sql:"SELECT wish_id, event_id, customer_id, state, quantity, least, categories, sections, together, price_max, line_order, hold_id, offer_count, created_at, updated_at, sequence FROM wishes WHERE wish_id = ?"`
	wishOf    *sql.Stmt `sql:"SELECT wish_id, event_id, customer_id, state, quantity, least, categories, sections, together, price_max, line_order, hold_id, offer_count, created_at, updated_at, sequence FROM wishes WHERE customer_id = ? AND event_id = ? ORDER BY wish_id DESC LIMIT 1"`
	expired   *sql.Stmt `sql:"SELECT hold_id FROM holds INDEXED BY holds_live WHERE state = 1 AND expires_at <= ?1 AND (?2 = 0 OR customer_id = ?2) AND (?3 = 0 OR event_id = ?3) AND (?4 < 0 OR area = ?4) ORDER BY expires_at, hold_id LIMIT ?5"`
	free      *sql.Stmt `sql:"SELECT seat_index FROM seats WHERE event_id = ? AND state = 0 ORDER BY seat_index"`
	claims    *sql.Stmt `sql:"SELECT hold_id FROM holds WHERE event_id = ? AND state IN (1, 4) ORDER BY hold_id"`
	documents *sql.Stmt `sql:"SELECT order_id, documents FROM orders o WHERE event_id = ? AND (state IN (1, 2) OR state = 5 AND EXISTS (SELECT 1 FROM holds h WHERE h.hold_id = o.hold_id AND h.state = 4)) AND documents <> '[]' ORDER BY order_id"`

	room        *sql.Stmt `sql:"SELECT version, body FROM rooms WHERE event_id = ?"`
	session     *sql.Stmt `sql:"SELECT session_id, event_id, customer_id, lane, number, position, entered_at, expires_at, ended_at, why FROM sessions WHERE session_id = ?"`
	sessionOf   *sql.Stmt `sql:"SELECT session_id, event_id, customer_id, lane, number, position, entered_at, expires_at, ended_at, why FROM sessions WHERE event_id = ? AND lane = ? AND number = ?"`
	sessionsDue *sql.Stmt `sql:"SELECT session_id FROM sessions INDEXED BY sessions_open WHERE event_id = ? AND ended_at = 0 AND expires_at <= ? ORDER BY expires_at, session_id LIMIT ?"`
	codeUsed    *sql.Stmt `sql:"SELECT 1 FROM code_uses WHERE event_id = ? AND lane = ? AND code = ? AND customer_id = ?"`
	codeCount   *sql.Stmt `sql:"SELECT number FROM code_uses WHERE event_id = ? AND lane = ? AND code = ? ORDER BY number DESC LIMIT 1"`
	unpaid      *sql.Stmt `sql:"SELECT hold_id, ended_at, area, lines FROM holds INDEXED BY holds_unpaid WHERE customer_id = ? AND event_id = ? AND ended_at > 0 AND ended_at > ? AND offer_id = 0 AND exchange_of = 0 ORDER BY ended_at DESC LIMIT ?"`

	eventPut    *direct   `sql:"INSERT INTO events (event_id, version, state, sequence, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT (event_id) DO UPDATE SET version = excluded.version, state = excluded.state, sequence = excluded.sequence, body = excluded.body"`
	layoutAdd   *direct   `sql:"INSERT INTO layouts (plan_hash, body) VALUES (?, ?) ON CONFLICT (plan_hash) DO NOTHING"`
	versionAdd  *direct   `sql:"INSERT INTO seats_versions (event_id, version) VALUES (?, 0)"`
	seatsAdd    *direct   `sql:"WITH RECURSIVE n (i) AS (SELECT 0 WHERE ?2 > 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2) INSERT INTO seats (event_id, seat_index) SELECT ?1, i FROM n"`
	bucketAdd   *direct   `sql:"INSERT INTO buckets (event_id, area, number, capacity) VALUES (?, ?, ?, ?)"`
	seatSet     *direct   `sql:"UPDATE seats SET state = ?, claim_id = ?, epoch = ?, when_free = ?, returned_at = ? WHERE event_id = ? AND seat_index >= ? AND seat_index < ? AND state = ? AND claim_id = ? AND epoch = ?"`
	bucketSet   *direct   `sql:"UPDATE buckets SET capacity = ?, held = ?, sold = ?, returned = ?, returned_at = ? WHERE event_id = ? AND area = ? AND number = ?"`
	holdAdd     *direct   `sql:"INSERT INTO holds (hold_id, event_id, customer_id, state, area, lines, draws, currency, created_at, expires_at, extended_count, window_used, order_id, session_id, exchange_of, offer_id, exchanged, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"`
	holdSet     *direct   `sql:"UPDATE holds SET state = ?, expires_at = ?, extended_count = ?, window_used = ?, order_id = ?, ended_at = ? WHERE hold_id = ?"`
	holdMark    *direct   `sql:"UPDATE holds SET extended_count = ?, window_used = ?, order_id = ? WHERE hold_id = ?"`
	holdRemake  *direct   `sql:"UPDATE holds SET lines = ?, draws = ?, exchanged = ? WHERE hold_id = ?"`
	orderAdd    *direct   `sql:"INSERT INTO orders (order_id, hold_id, event_id, customer_id, state, reason, amount, currency, provider, payment_id, allow_other, rescued, attempt_open, documents, created_at, updated_at, sequence, exchange_of, credit, funds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"`
	orderSet    *direct   `sql:"UPDATE orders SET hold_id = ?, state = ?, reason = ?, payment_id = ?, rescued = ?, attempt_open = ?, updated_at = ?, sequence = ? WHERE order_id = ?"`
	orderRemake *direct   `sql:"UPDATE orders SET documents = ?, credit = ?, funds = ? WHERE order_id = ?"`
	paymentPut  *direct   `sql:"INSERT INTO payments (order_id, provider, payment_id, currency, state, authorized, captured, voided, refunded, refund_id, promised) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (order_id, provider, payment_id) DO UPDATE SET state = excluded.state, authorized = excluded.authorized, captured = excluded.captured, voided = excluded.voided, refunded = excluded.refunded, refund_id = excluded.refund_id, promised = excluded.promised"`
	refundAdd   *direct   `sql:"INSERT INTO refunds (refund_id, order_id, from_order, provider, payment_id, tickets, state, amount, fee_kept, rule, currency, reason, by_id, refused, try_count, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"`
	refundSet   *direct   `sql:"UPDATE refunds SET state = ?, refused = ?, try_count = ? WHERE refund_id = ?"`
	ticketAdd   *direct   `sql:"INSERT INTO tickets (ticket_id, order_id, event_id, customer_id, state, seat_index, area, category, total, place, was_id, exchange_hold, refund_id, gone) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"`
	ticketSet   *direct   `sql:"UPDATE tickets SET state = ?, exchange_hold = ?, refund_id = ?, gone = ? WHERE ticket_id = ?"`
	useAdd      *direct   `sql:"INSERT INTO checkins (event_id, at, ticket_id, device, gate, by_id, offline, conflict, undone_at, undone_by, why) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"`
	useSet      *direct   `sql:"UPDATE checkins SET undone_at = ?, undone_by = ?, why = ? WHERE event_id = ? AND at = ? AND ticket_id = ? AND device = ?"`
	keyPut      *direct   `sql:"INSERT INTO idempotency_keys (customer_id, operation, key, subject_id, fields, created_at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (customer_id, operation, key) DO UPDATE SET subject_id = excluded.subject_id, fields = excluded.fields, created_at = excluded.created_at"`
	limitPut    *direct   `sql:"INSERT INTO limits (scope, of_id, category, subject, count) VALUES (?, ?, ?, ?, ?) ON CONFLICT (scope, of_id, category, subject) DO UPDATE SET count = excluded.count"`
	quotaPut    *direct   `sql:"INSERT INTO quotas (event_id, category, section, count) VALUES (?, ?, ?, ?) ON CONFLICT (event_id, category, section) DO UPDATE SET count = excluded.count"`
	wishAdd     *direct   `sql:"INSERT INTO wishes (wish_id, event_id, customer_id, state, quantity, least, categories, sections, together, price_max, line_order, hold_id, offer_count, created_at, updated_at, sequence) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"`
	wishSet     *direct   `sql:"UPDATE wishes SET state = ?, quantity = ?, least = ?, categories = ?, sections = ?, together = ?, price_max = ?, hold_id = ?, offer_count = ?, updated_at = ?, sequence = ? WHERE wish_id = ?"`
	noticeAdd   *direct   `sql:"INSERT INTO outbox (order_id, sequence, kind, alert, body, created_at) VALUES (?, ?, ?, ?, ?, ?)"`
	historyAdd  *direct   `sql:"INSERT INTO history (event_id, claim_id, was, becomes, why, seats, places, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"`
	versionUp   *sql.Stmt `sql:"UPDATE seats_versions SET version = version + 1 WHERE event_id = ? RETURNING version"`
	changeAdd   *direct   `sql:"INSERT INTO changes (event_id, version, body, at) VALUES (?, ?, ?, ?)"`

	roomPut    *direct `sql:"INSERT INTO rooms (event_id, version, body) VALUES (?, ?, ?) ON CONFLICT (event_id) DO UPDATE SET version = excluded.version, body = excluded.body"`
	sessionAdd *direct `sql:"INSERT INTO sessions (session_id, event_id, customer_id, lane, number, position, entered_at, expires_at, ended_at, why) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"`
	sessionSet *direct `sql:"UPDATE sessions SET expires_at = ?, ended_at = ?, why = ? WHERE session_id = ?"`
	ruleAdd    *direct `sql:"INSERT INTO room_rules (event_id, at, mode, rate, active_max, turn, paused, closed) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"`
	callAdd    *direct `sql:"INSERT INTO room_calls (event_id, lane, at, clock, was, watermark) VALUES (?, ?, ?, ?, ?, ?)"`
	codeAdd    *direct `sql:"INSERT INTO code_uses (event_id, lane, code, number, customer_id, max, at) VALUES (?, ?, ?, ?, ?, ?, ?)"`

	pruneKeys    *direct `sql:"DELETE FROM idempotency_keys WHERE (customer_id, operation, key) IN (SELECT customer_id, operation, key FROM idempotency_keys WHERE created_at < ? ORDER BY created_at LIMIT ?)"`
	pruneHolds   *direct `sql:"DELETE FROM holds WHERE hold_id IN (SELECT hold_id FROM holds WHERE state IN (2, 3) AND expires_at < ?1 AND NOT EXISTS (SELECT 1 FROM orders WHERE orders.customer_id = holds.customer_id AND orders.hold_id = holds.hold_id) ORDER BY expires_at LIMIT ?2)"`
	pruneChanges *direct `sql:"DELETE FROM changes WHERE (event_id, version) IN (SELECT event_id, version FROM changes WHERE at < ?1 ORDER BY at LIMIT ?2)"`

	leaseGet   *sql.Stmt `sql:"SELECT holder, fence, until_at FROM leases WHERE name = ?"`
	leasePut   *sql.Stmt `sql:"INSERT INTO leases (name, holder, fence, until_at) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, fence = excluded.fence, until_at = excluded.until_at"`
	published  *sql.Stmt `sql:"UPDATE outbox SET published_at = ? WHERE order_id = ? AND sequence = ? AND published_at IS NULL"`
	pruneSent  *sql.Stmt `sql:"DELETE FROM outbox WHERE (order_id, sequence) IN (SELECT order_id, sequence FROM outbox WHERE published_at < ? ORDER BY published_at, order_id, sequence LIMIT ?)"`
	leaseFence *sql.Stmt `sql:"SELECT 1 FROM leases WHERE name = ? AND fence = ? AND until_at > ?"`
}

func prepare(ctx context.Context, conn *sql.Conn) (*statements, error) {
	s := &statements{}
	for i := range reflect.TypeFor[statements]().NumField() {
		text := reflect.TypeFor[statements]().Field(i).Tag.Get("sql")
		var err error
		switch at := s.at(i).(type) {
		case **sql.Stmt:
			*at, err = conn.PrepareContext(ctx, text)
		case **direct:
			*at, err = prepareDirect(ctx, conn, text)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("preparing %q: %w", text, err), s.close())
		}
	}
	return s, nil
}

// at is the address of the i-th statement.
func (s *statements) at(i int) any {
	f := reflect.ValueOf(s).Elem().Field(i)
	return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Interface()
}

func (s *statements) close() error {
	var err error
	for i := range reflect.TypeFor[statements]().NumField() {
		switch at := s.at(i).(type) {
		case **sql.Stmt:
			if *at != nil {
				err = errors.Join(err, (*at).Close())
			}
		case **direct:
			if *at != nil {
				err = errors.Join(err, (*at).stmt.Close())
			}
		}
	}
	return err
}
