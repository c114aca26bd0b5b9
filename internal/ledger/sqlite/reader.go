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

const eventColumns = `event_id, version, state, body`

func scanEvent(row scanner) (ledger.Event, error) {
	var event id.ID
	var version int64
	var state ledger.EventState
	var body string
	if err := row.Scan(&event, &version, &state, &body); err != nil {
		return ledger.Event{}, found(err)
	}
	e, err := decide.DecodeEvent(body, event, version, state)
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
		err = rows.Scan(&v.Capacity, &v.Held, &v.Sold)
		return v, err
	}, `SELECT SUM(capacity), SUM(held), SUM(sold) FROM buckets WHERE event_id = ? GROUP BY area ORDER BY area`, int64(event))
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

const holdColumns = `event_id, customer_id, state, area, lines, draws, currency, created_at, expires_at, extended_count, window_used, order_id, session_id, exchange_of, offer_id`

func (r *reader) Hold(ctx context.Context, hold id.ID) (ledger.Hold, error) {
	h, err := scanHold(r.db.QueryRowContext(ctx, `SELECT `+holdColumns+` FROM holds WHERE hold_id = ?`, int64(hold)), hold)
	if err != nil {
		return ledger.Hold{}, found(err)
	}
	return h.Hold, nil
}

const orderColumns = `hold_id, event_id, customer_id, state, reason, amount, currency, provider, payment_id, allow_other, rescued, attempt_open, documents, created_at, updated_at, sequence`

func (r *reader) Order(ctx context.Context, order id.ID) (ledger.Order, error) {
	o, err := scanOrder(r.db.QueryRowContext(ctx, `SELECT `+orderColumns+` FROM orders WHERE order_id = ?`, int64(order)), order)
	if err != nil {
		return ledger.Order{}, found(err)
	}
	return r.withTickets(ctx, o.Order)
}

func (r *reader) withTickets(ctx context.Context, o ledger.Order) (_ ledger.Order, err error) {
	o.Tickets, err = query(ctx, r.db, func(rows *sql.Rows) (t ledger.Ticket, err error) {
		t.Order = o.ID
		return t, scanTicket(rows, &t, &t.ID)
	}, `SELECT ticket_id, event_id, customer_id, state, seat_index, area, category, total FROM tickets WHERE order_id = ? ORDER BY ticket_id`, int64(o.ID))
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

func (r *reader) Ticket(ctx context.Context, ticket id.ID) (t ledger.Ticket, err error) {
	t.ID = ticket
	err = scanTicket(r.db.QueryRowContext(ctx,
		`SELECT order_id, event_id, customer_id, state, seat_index, area, category, total FROM tickets WHERE ticket_id = ?`, int64(ticket)), &t, &t.Order)
	return t, found(err)
}

func (r *reader) PendingOrders(ctx context.Context, before ledger.Time, most int) ([]ledger.Order, error) {
	return r.someOrders(ctx, `SELECT order_id FROM orders WHERE state = 1 AND updated_at < ? ORDER BY order_id LIMIT ?`, int64(before), most)
}

func (r *reader) OpenPayments(ctx context.Context, most int) ([]ledger.OpenPayment, error) {
	return query(ctx, r.db, func(rows *sql.Rows) (o ledger.OpenPayment, err error) {
		p := &o.Payment
		var refund ledger.Refund
		err = rows.Scan(&p.Order, &p.Provider, &p.ID, &p.Currency, &p.State, &p.Authorized, &p.Captured, &p.Voided, &p.Refunded, &p.Refund,
			&refund.ID, &refund.State, &refund.Amount, &refund.Currency, &refund.Reason, &refund.Created)
		if refund.ID != 0 {
			refund.Order, refund.Provider, refund.Payment = p.Order, p.Provider, p.ID
			o.Refund = &refund
		}
		return o, err
	}, `SELECT p.order_id, p.provider, p.payment_id, p.currency, p.state, p.authorized, p.captured, p.voided, p.refunded, p.refund_id,
	           0, 0, 0, '', '', 0
	    FROM payments p JOIN orders o ON o.order_id = p.order_id
	    WHERE p.state = 1 AND p.refund_id = 0 AND o.state = 2 AND o.payment_id = p.payment_id
	    UNION ALL
	    SELECT p.order_id, p.provider, p.payment_id, p.currency, p.state, p.authorized, p.captured, p.voided, p.refunded, p.refund_id,
	           r.refund_id, r.state, r.amount, r.currency, r.reason, r.created_at
	    FROM refunds r JOIN payments p ON p.order_id = r.order_id AND p.provider = r.provider AND p.payment_id = r.payment_id
	    WHERE r.state = 1
	    ORDER BY 1, 3, 11 LIMIT ?`, most)
}

func (r *reader) Payments(ctx context.Context, order id.ID) ([]ledger.Payment, error) {
	return query(ctx, r.db, func(rows *sql.Rows) (p ledger.Payment, err error) {
		p.Order = order
		return p, rows.Scan(&p.Provider, &p.ID, &p.Currency, &p.State, &p.Authorized, &p.Captured, &p.Voided, &p.Refunded, &p.Refund)
	}, `SELECT provider, payment_id, currency, state, authorized, captured, voided, refunded, refund_id FROM payments
	    WHERE order_id = ? ORDER BY provider, payment_id`, int64(order))
}

func (r *reader) Now(context.Context) (ledger.Time, error) {
	return r.ledger.clock(), nil
}

func (r *reader) NextExpiry(ctx context.Context) (t ledger.Time, err error) {
	err = r.db.QueryRowContext(ctx, `SELECT COALESCE((SELECT expires_at FROM holds INDEXED BY holds_live WHERE state = 1 ORDER BY expires_at, hold_id LIMIT 1), 0)`).Scan(&t)
	return t, err
}

func (r *reader) Unpublished(ctx context.Context, most int, skip []id.ID) ([]ledger.Notice, error) {
	leave, err := json.Marshal(skip)
	if err != nil {
		return nil, err
	}
	return query(ctx, r.db, func(rows *sql.Rows) (n ledger.Notice, err error) {
		return n, rows.Scan(&n.Order, &n.Sequence, &n.Kind, &n.Alert, &n.Body, &n.At)
	}, `SELECT order_id, sequence, kind, alert, body, created_at FROM outbox INDEXED BY outbox_unpublished
	    WHERE published_at IS NULL AND order_id NOT IN (SELECT value FROM json_each(?)) ORDER BY order_id, sequence LIMIT ?`,
		strings.Replace(string(leave), "null", "[]", 1), most)
}
