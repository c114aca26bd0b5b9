package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// reader answers from committed state on connections of its own.
type reader struct {
	db     *sql.DB
	ledger *Ledger
}

// found turns "no rows" into ledger.ErrNotFound.
func found(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.ErrNotFound
	}
	return err
}

const eventColumns = `event_id, version, state, sequence, body`

func scanEvent(row scanner) (ledger.Event, error) {
	var event id.ID
	var version, sequence int64
	var state ledger.EventState
	var body string
	if err := row.Scan(&event, &version, &state, &sequence, &body); err != nil {
		return ledger.Event{}, found(err)
	}
	e, err := decide.DecodeEvent(body, event, version, state, sequence)
	if err != nil {
		return ledger.Event{}, err
	}
	return *e, nil
}

func (r *reader) Event(ctx context.Context, event id.ID) (ledger.Event, error) {
	return scanEvent(r.db.QueryRowContext(ctx, `SELECT `+eventColumns+` FROM events WHERE event_id = ?`, int64(event)))
}

// query collects the rows of a query.
func query[T any](ctx context.Context, db interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, scan func(*sql.Rows) (T, error), text string, args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, scan)
}

func (r *reader) Events(ctx context.Context) ([]ledger.Event, error) {
	return query(ctx, r.db, func(rows *sql.Rows) (ledger.Event, error) { return scanEvent(rows) },
		`SELECT `+eventColumns+` FROM events ORDER BY event_id`)
}

func (r *reader) Layout(ctx context.Context, planHash string) (*ledger.Layout, error) {
	var body []byte
	if err := r.db.QueryRowContext(ctx, `SELECT body FROM layouts WHERE plan_hash = ?`, planHash).Scan(&body); err != nil {
		return nil, found(err)
	}
	return decide.DecodeLayout(body)
}

func (r *reader) Snapshot(ctx context.Context, event id.ID) (s ledger.Snapshot, err error) {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one read transaction: one instant
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, ignoreDone(tx.Rollback())) }()
	if s.Event, err = scanEvent(tx.QueryRowContext(ctx, `SELECT `+eventColumns+` FROM events WHERE event_id = ?`, int64(event))); err != nil {
		return s, err
	}
	if err = tx.QueryRowContext(ctx, `SELECT version FROM seats_versions WHERE event_id = ?`, int64(event)).Scan(&s.Version); err != nil {
		return s, err
	}
	s.Seats, err = query(ctx, tx, func(rows *sql.Rows) (v ledger.SeatState, err error) {
		err = rows.Scan(&v.State, &v.Expires)
		return v, err
	}, `SELECT s.state, CASE WHEN s.state = 1 THEN COALESCE(h.expires_at, 0) ELSE 0 END FROM seats s
	    LEFT JOIN holds h ON s.state = 1 AND h.hold_id = s.claim_id WHERE s.event_id = ? ORDER BY s.seat_index`, int64(event))
	if err != nil {
		return s, err
	}
	s.Areas, err = query(ctx, tx, func(rows *sql.Rows) (v ledger.AreaState, err error) {
		err = rows.Scan(&v.Capacity, &v.Held, &v.Sold, &v.Returned)
		return v, err
	}, `SELECT SUM(capacity), SUM(held), SUM(sold), SUM(returned) FROM buckets WHERE event_id = ? GROUP BY area ORDER BY area`, int64(event))
	if err != nil {
		return s, err
	}
	s.Now, err = r.Now(ctx)
	return s, err
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

func (r *reader) ChangesSince(ctx context.Context, event id.ID, version int64, most int) ([]ledger.Change, bool, error) {
	// The version first: a change that is committed between the two reads must not look like one that is lost.
	var current int64
	if err := r.db.QueryRowContext(ctx, `SELECT version FROM seats_versions WHERE event_id = ?`, int64(event)).Scan(&current); err != nil {
		return nil, false, found(err)
	}
	changes, err := query(ctx, r.db, func(rows *sql.Rows) (c ledger.Change, err error) {
		c.Event = event
		var body string
		if err = rows.Scan(&c.Version, &body, &c.At); err != nil {
			return c, err
		}
		return c, decide.ParseChange(body, &c)
	}, `SELECT version, body, at FROM changes WHERE event_id = ? AND version > ? ORDER BY version LIMIT ?`, int64(event), version, most)
	if err != nil {
		return nil, false, err
	}
	if len(changes) > 0 {
		return changes, changes[0].Version != version+1, nil
	}
	return nil, current != version, nil
}

const holdColumns = `event_id, customer_id, state, area, lines, draws, currency, created_at, expires_at, extended_count, window_used, order_id, session_id, exchange_of, offer_id, exchanged, ended_at`

func (r *reader) Hold(ctx context.Context, hold id.ID) (ledger.Hold, error) {
	h, err := scanHold(r.db.QueryRowContext(ctx, `SELECT `+holdColumns+` FROM holds WHERE hold_id = ?`, int64(hold)), hold)
	if err != nil {
		return ledger.Hold{}, found(err)
	}
	return h.Hold, nil
}

const orderColumns = `hold_id, event_id, customer_id, state, reason, amount, currency, provider, payment_id, allow_other, rescued, attempt_open, documents, created_at, updated_at, sequence, exchange_of, credit, funds`

func (r *reader) Order(ctx context.Context, order id.ID) (ledger.Order, error) {
	o, err := scanOrder(r.db.QueryRowContext(ctx, `SELECT `+orderColumns+` FROM orders WHERE order_id = ?`, int64(order)), order)
	if err != nil {
		return ledger.Order{}, found(err)
	}
	return r.withTickets(ctx, o.Order)
}

const ticketColumns = `ticket_id, order_id, event_id, customer_id, state, seat_index, area, category, total, place, was_id, exchange_hold, refund_id, gone`

func readTicket(rows *sql.Rows) (ledger.Ticket, error) {
	t, err := scanTicket(rows)
	return t.Ticket, err
}

func (r *reader) withTickets(ctx context.Context, o ledger.Order) (_ ledger.Order, err error) {
	o.Tickets, err = query(ctx, r.db, readTicket, `SELECT `+ticketColumns+` FROM tickets WHERE order_id = ? ORDER BY ticket_id`, int64(o.ID))
	return o, err
}

// someOrders reads order ids by a query, then each order.
func (r *reader) someOrders(ctx context.Context, text string, args ...any) ([]ledger.Order, error) {
	ids, err := query(ctx, r.db, scanID, text, args...)
	if err != nil {
		return nil, err
	}
	orders := make([]ledger.Order, len(ids))
	for i, v := range ids {
		if orders[i], err = r.Order(ctx, v); err != nil {
			return nil, err
		}
	}
	return orders, nil
}

func (r *reader) OrdersOf(ctx context.Context, customer, before id.ID, most int) ([]ledger.Order, error) {
	before = cmp.Or(before, id.ID(1<<63-1))
	return r.someOrders(ctx, `SELECT order_id FROM orders WHERE customer_id = ? AND order_id < ? ORDER BY order_id DESC LIMIT ?`,
		int64(customer), int64(before), most)
}

func (r *reader) Ticket(ctx context.Context, ticket id.ID) (ledger.Ticket, error) {
	t, err := scanTicket(r.db.QueryRowContext(ctx, `SELECT `+ticketColumns+` FROM tickets WHERE ticket_id = ?`, int64(ticket)))
	if err != nil {
		return ledger.Ticket{}, found(err)
	}
	return t.Ticket, nil
}

func (r *reader) PendingOrders(ctx context.Context, before ledger.Time, most int) ([]ledger.Order, error) {
	return r.someOrders(ctx, `SELECT order_id FROM orders WHERE state = 1 AND updated_at < ? ORDER BY order_id LIMIT ?`, int64(before), most)
}

const paymentColumns = `p.order_id, p.provider, p.payment_id, p.currency, p.state, p.authorized, p.captured, p.voided, p.refunded, p.refund_id, p.promised`

// paymentDest is where the columns of a payment are put.
func paymentDest(p *ledger.Payment) []any {
	return []any{&p.Order, &p.Provider, &p.ID, &p.Currency, &p.State, &p.Authorized, &p.Captured, &p.Voided, &p.Refunded, &p.Refund, &p.Promised}
}

func (r *reader) OpenPayments(ctx context.Context, most int) ([]ledger.OpenPayment, error) {
	open, err := query(ctx, r.db, func(rows *sql.Rows) (o ledger.OpenPayment, err error) {
		var refund id.ID
		if err = rows.Scan(append(paymentDest(&o.Payment), &refund)...); err == nil && refund != 0 {
			o.Refund = &ledger.Refund{ID: refund}
		}
		return o, err
	}, `SELECT `+paymentColumns+`, 0
	    FROM payments p JOIN orders o ON o.order_id = p.order_id
	    WHERE p.state = 1 AND p.refund_id = 0 AND o.state = 2 AND o.payment_id = p.payment_id
	    UNION ALL
	    SELECT `+paymentColumns+`, r.refund_id
	    FROM refunds r JOIN payments p ON p.order_id = r.from_order AND p.provider = r.provider AND p.payment_id = r.payment_id
	    WHERE r.state = 1 AND r.refused = ''
	    ORDER BY 1, 3, 12 LIMIT ?`, most)
	if err != nil {
		return nil, err
	}
	for i := range open {
		if open[i].Refund == nil {
			continue
		}
		if *open[i].Refund, err = r.Refund(ctx, open[i].Refund.ID); err != nil {
			return nil, err
		}
	}
	return open, nil
}

func (r *reader) Payments(ctx context.Context, order id.ID) ([]ledger.Payment, error) {
	return query(ctx, r.db, func(rows *sql.Rows) (p ledger.Payment, err error) { return p, rows.Scan(paymentDest(&p)...) },
		`SELECT `+paymentColumns+` FROM payments p WHERE order_id = ? ORDER BY provider, payment_id`, int64(order))
}

func (r *reader) Now(context.Context) (ledger.Time, error) {
	return r.ledger.clock(), nil
}

func (r *reader) NextExpiry(ctx context.Context) (t ledger.Time, err error) {
	err = r.db.QueryRowContext(ctx, `SELECT COALESCE((SELECT expires_at FROM holds INDEXED BY holds_live WHERE state = 1 ORDER BY expires_at, hold_id LIMIT 1), 0)`).Scan(&t)
	return t, err
}

func (r *reader) Unpublished(ctx context.Context, most int, skip []id.ID) ([]ledger.Notice, error) {
	leave, err := idList(skip)
	if err != nil {
		return nil, err
	}
	return query(ctx, r.db, readNotice, `SELECT order_id, sequence, kind, alert, body, created_at FROM outbox INDEXED BY outbox_unpublished
	    WHERE published_at IS NULL AND order_id NOT IN (SELECT value FROM json_each(?)) ORDER BY order_id, sequence LIMIT ?`, leave, most)
}

func readNotice(rows *sql.Rows) (n ledger.Notice, err error) {
	return n, rows.Scan(&n.Order, &n.Sequence, &n.Kind, &n.Alert, &n.Body, &n.At)
}

// idList is a list of ids as json_each takes it.
func idList(ids []id.ID) (string, error) {
	text, err := json.Marshal(ids)
	return strings.Replace(string(text), "null", "[]", 1), err
}
