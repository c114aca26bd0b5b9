package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

const refundColumns = `refund_id, order_id, from_order, provider, payment_id, tickets, state, amount, fee_kept, rule, currency, reason, by_id, refused, try_count, created_at`

// Refund implements ledger.Reader.
func (r *reader) Refund(ctx context.Context, refund id.ID) (ledger.Refund, error) {
	row, err := scanRefund(r.db.QueryRowContext(ctx, `SELECT `+refundColumns+` FROM refunds WHERE refund_id = ?`, int64(refund)))
	if err != nil {
		return ledger.Refund{}, found(err)
	}
	return row.Refund, nil
}

func (r *reader) refunds(ctx context.Context, where string, args ...any) ([]ledger.Refund, error) {
	return query(ctx, r.db, func(rows *sql.Rows) (ledger.Refund, error) {
		row, err := scanRefund(rows)
		if err != nil {
			return ledger.Refund{}, err
		}
		return row.Refund, nil
	}, `SELECT `+refundColumns+` FROM refunds WHERE `+where, args...)
}

// RefundsOf implements ledger.Reader.
func (r *reader) RefundsOf(ctx context.Context, order id.ID) ([]ledger.Refund, error) {
	return r.refunds(ctx, `order_id = ? ORDER BY refund_id`, int64(order))
}

// UnreleasedRefunds implements ledger.Reader.
func (r *reader) UnreleasedRefunds(ctx context.Context, most int) ([]ledger.Refund, error) {
	return r.refunds(ctx, `state = 2 AND tickets <> '[]' ORDER BY refund_id LIMIT ?`, most)
}

// RefusedRefunds implements ledger.Reader.
func (r *reader) RefusedRefunds(ctx context.Context, before id.ID, most int) ([]ledger.Refund, error) {
	return r.refunds(ctx, `state = 1 AND refused <> '' AND refund_id < ? ORDER BY refund_id DESC LIMIT ?`, int64(cmp.Or(before, maxID)), most)
}

// maxID is greater than any id.
const maxID = id.ID(1<<63 - 1)

// OrdersOfEvent implements ledger.Reader.
func (r *reader) OrdersOfEvent(ctx context.Context, event id.ID, find ledger.OrderFilter, most int) ([]ledger.Order, error) {
	return r.someOrders(ctx, `SELECT order_id FROM orders WHERE event_id = ?1 AND order_id > ?2 AND (?3 = 0 OR customer_id = ?3) AND (?4 = 0 OR state = ?4)
	    ORDER BY order_id LIMIT ?5`, int64(event), int64(find.After), int64(find.Customer), int64(find.State), most)
}

// TicketsOf implements ledger.Reader.
func (r *reader) TicketsOf(ctx context.Context, customer, before id.ID, most int) ([]ledger.Ticket, error) {
	return query(ctx, r.db, readTicket, `SELECT `+ticketColumns+` FROM tickets WHERE ticket_id IN (
	      SELECT t.ticket_id FROM orders o JOIN tickets t ON t.order_id = o.order_id WHERE o.customer_id = ?1 AND t.was_id = 0
	      UNION ALL SELECT ticket_id FROM tickets WHERE customer_id = ?1 AND was_id <> 0)
	    AND customer_id = ?1 AND state <> 3 AND ticket_id < ?2 ORDER BY ticket_id DESC LIMIT ?3`, int64(customer), int64(cmp.Or(before, maxID)), most)
}

const useColumns = `event_id, at, ticket_id, device, gate, by_id, offline, conflict, undone_at, undone_by, why`

func readUse(rows *sql.Rows) (ledger.CheckedIn, error) {
	u, err := scanUse(rows)
	return u.CheckedIn, err
}

// CheckIns implements ledger.Reader.
func (r *reader) CheckIns(ctx context.Context, event id.ID, after ledger.CheckInCursor, conflicts bool, most int) ([]ledger.CheckedIn, error) {
	only := ""
	if conflicts {
		only = ` AND conflict <> ''`
	}
	return query(ctx, r.db, readUse, `SELECT `+useColumns+` FROM checkins WHERE event_id = ? AND (at, ticket_id, device) > (?, ?, ?)`+only+`
	    ORDER BY at, ticket_id, device LIMIT ?`, int64(event), int64(after.At), int64(after.Ticket), after.Device, most)
}

// CheckInsOf implements ledger.Reader.
func (r *reader) CheckInsOf(ctx context.Context, ticket id.ID) ([]ledger.CheckedIn, error) {
	return query(ctx, r.db, readUse, `SELECT `+useColumns+` FROM checkins WHERE ticket_id = ? ORDER BY at, device`, int64(ticket))
}

// Figures implements ledger.Reader: at one instant, by one read transaction.
func (r *reader) Figures(ctx context.Context, event id.ID) (f ledger.Figures, err error) {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, ignoreDone(tx.Rollback())) }()
	if _, err = scanEvent(tx.QueryRowContext(ctx, `SELECT `+eventColumns+` FROM events WHERE event_id = ?`, int64(event))); err != nil {
		return f, err
	}
	_, err = query(ctx, tx, func(rows *sql.Rows) (_ struct{}, err error) {
		var state, n int
		if err = rows.Scan(&state, &n); err == nil && state < len(f.Orders) {
			f.Orders[state] = n
		}
		return struct{}{}, err
	}, `SELECT state, count(*) FROM orders WHERE event_id = ? GROUP BY state`, int64(event))
	if err != nil {
		return f, err
	}
	f.Tickets, err = query(ctx, tx, func(rows *sql.Rows) (t ledger.TicketFigures, err error) {
		return t, rows.Scan(&t.Category, &t.Valid, &t.Used, &t.Void, &t.Total)
	}, `SELECT t.category, sum(t.state = 1), sum(t.state = 2), sum(t.state = 3 AND t.refund_id <> 0), sum(CASE WHEN t.state < 3 THEN t.total ELSE 0 END)
	    FROM orders o JOIN tickets t ON t.order_id = o.order_id WHERE o.event_id = ? GROUP BY t.category ORDER BY t.category`, int64(event))
	if err != nil {
		return f, err
	}
	err = tx.QueryRowContext(ctx, `SELECT coalesce(sum(p.captured), 0), coalesce(sum(p.refunded), 0)
	    FROM orders o JOIN payments p ON p.order_id = o.order_id WHERE o.event_id = ?`, int64(event)).Scan(&f.Paid, &f.Refunded)
	if err != nil {
		return f, err
	}
	err = tx.QueryRowContext(ctx, `SELECT coalesce(sum(r.fee_kept), 0), coalesce(sum(r.state = 1 AND r.refused = ''), 0), coalesce(sum(r.state = 1 AND r.refused <> ''), 0)
	    FROM orders o JOIN refunds r ON r.order_id = o.order_id WHERE o.event_id = ?`, int64(event)).Scan(&f.Kept, &f.RefundsRequested, &f.RefundsRefused)
	if err != nil {
		return f, err
	}
	err = tx.QueryRowContext(ctx, `SELECT count(*) FROM checkins WHERE event_id = ? AND conflict <> ''`, int64(event)).Scan(&f.Conflicts)
	return f, err
}

// ClaimHistory implements ledger.Reader.
func (r *reader) ClaimHistory(ctx context.Context, holds []id.ID) ([]ledger.ClaimStep, error) {
	list, err := idList(holds)
	if err != nil {
		return nil, err
	}
	return query(ctx, r.db, func(rows *sql.Rows) (s ledger.ClaimStep, err error) {
		var seats string
		if err = rows.Scan(&s.Hold, &s.From, &s.To, &s.Why, &seats, &s.Places, &s.At); err == nil {
			s.Seats, err = decide.ParseClaims(seats)
		}
		return s, err
	}, `SELECT claim_id, was, becomes, why, seats, places, at FROM history WHERE claim_id IN (SELECT value FROM json_each(?)) AND claim_id <> 0
	    ORDER BY at, history_id`, list)
}

// NoticesOf implements ledger.Reader.
func (r *reader) NoticesOf(ctx context.Context, order id.ID) ([]ledger.Notice, error) {
	return query(ctx, r.db, readNotice, `SELECT order_id, sequence, kind, alert, body, created_at FROM outbox WHERE order_id = ? ORDER BY sequence`, int64(order))
}
