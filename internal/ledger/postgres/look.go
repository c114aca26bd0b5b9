package postgres

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// Refund implements ledger.Reader.
func (r *reader) Refund(ctx context.Context, refund id.ID) (ledger.Refund, error) {
	var row refundScan
	return one(ctx, r.pool, row.dest(), row.take, `SELECT `+refundColumns+` FROM shard.refunds r WHERE r.refund_id = $1`, int64(refund))
}

func (r *reader) refunds(ctx context.Context, where string, args ...any) ([]ledger.Refund, error) {
	var row refundScan
	return list(ctx, r.pool, row.dest(), row.take, `SELECT `+refundColumns+` FROM shard.refunds r WHERE `+where, args...)
}

// RefundsOf implements ledger.Reader.
func (r *reader) RefundsOf(ctx context.Context, order id.ID) ([]ledger.Refund, error) {
	return r.refunds(ctx, `r.order_id = $1 ORDER BY r.refund_id`, int64(order))
}

// UnreleasedRefunds implements ledger.Reader.
func (r *reader) UnreleasedRefunds(ctx context.Context, most int) ([]ledger.Refund, error) {
	return r.refunds(ctx, `r.state = 2 AND r.tickets <> '[]' ORDER BY r.refund_id LIMIT $1`, clip(most))
}

// RefusedRefunds implements ledger.Reader.
func (r *reader) RefusedRefunds(ctx context.Context, before id.ID, most int) ([]ledger.Refund, error) {
	return r.refunds(ctx, `r.state = 1 AND r.refused <> '' AND r.refund_id < $1 ORDER BY r.refund_id DESC LIMIT $2`,
		int64(cmp.Or(before, id.ID(math.MaxInt64))), clip(most))
}

// OrdersOfEvent implements ledger.Reader.
func (r *reader) OrdersOfEvent(ctx context.Context, event id.ID, find ledger.OrderFilter, most int) ([]ledger.Order, error) {
	return r.orders(ctx, `SELECT `+orderColumns+` FROM shard.orders WHERE event_id = $1 AND order_id > $2 AND ($3::bigint = 0 OR customer_id = $3)
	    AND ($4::smallint = 0 OR state = $4) ORDER BY order_id LIMIT $5`,
		int64(event), int64(find.After), int64(find.Customer), int16(find.State), clip(most))
}

// TicketsOf implements ledger.Reader.
func (r *reader) TicketsOf(ctx context.Context, customer, before id.ID, most int) ([]ledger.Ticket, error) {
	var row ticketScan
	return list(ctx, r.pool, row.dest(), func() (ledger.Ticket, error) { return row.take(), nil }, `SELECT `+ticketColumns+` FROM shard.tickets t WHERE t.ticket_id IN (
	      SELECT own.ticket_id FROM shard.orders o JOIN shard.tickets own ON own.order_id = o.order_id WHERE o.customer_id = $1 AND own.was_id = 0
	      UNION ALL SELECT passed.ticket_id FROM shard.tickets passed WHERE passed.customer_id = $1 AND passed.was_id <> 0)
	    AND t.customer_id = $1 AND t.state <> 3 AND t.ticket_id < $2 ORDER BY t.ticket_id DESC LIMIT $3`,
		int64(customer), int64(cmp.Or(before, id.ID(math.MaxInt64))), clip(most))
}

func (r *reader) uses(ctx context.Context, where string, args ...any) ([]ledger.CheckedIn, error) {
	var row useScan
	return list(ctx, r.pool, row.dest(), func() (ledger.CheckedIn, error) { return row.take(), nil },
		`SELECT `+useColumns+` FROM shard.checkins c WHERE `+where, args...)
}

// CheckIns implements ledger.Reader.
func (r *reader) CheckIns(ctx context.Context, event id.ID, after ledger.CheckInCursor, conflicts bool, most int) ([]ledger.CheckedIn, error) {
	only := ""
	if conflicts {
		only = ` AND c.conflict <> ''`
	}
	return r.uses(ctx, `c.event_id = $1 AND (c.at, c.ticket_id, c.device) > ($2::bigint, $3::bigint, $4::text)`+only+`
	    ORDER BY c.at, c.ticket_id, c.device LIMIT $5`, int64(event), int64(after.At), int64(after.Ticket), after.Device, clip(most))
}

// CheckInsOf implements ledger.Reader.
func (r *reader) CheckInsOf(ctx context.Context, ticket id.ID) ([]ledger.CheckedIn, error) {
	return r.uses(ctx, `c.ticket_id = $1 ORDER BY c.at, c.device`, int64(ticket))
}

// Figures implements ledger.Reader. One REPEATABLE READ transaction is one instant.
func (r *reader) Figures(ctx context.Context, event id.ID) (f ledger.Figures, err error) {
	tx, err := r.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, ignoreClosed(tx.Rollback(context.WithoutCancel(ctx)))) }()
	if _, err = readEvent(ctx, tx, event); err != nil {
		return f, err
	}
	var state, category int16
	var n, total int64
	var valid, used, void int64
	_, err = list(ctx, tx, []any{&state, &n}, func() (int, error) {
		if int(state) < len(f.Orders) {
			f.Orders[state] = int(n)
		}
		return 0, nil
	}, `SELECT state, count(*) FROM shard.orders WHERE event_id = $1 GROUP BY state`, int64(event))
	if err != nil {
		return f, err
	}
	f.Tickets, err = list(ctx, tx, []any{&category, &valid, &used, &void, &total}, func() (ledger.TicketFigures, error) {
		return ledger.TicketFigures{Category: category, Valid: int(valid), Used: int(used), Void: int(void), Total: total}, nil
	}, `SELECT t.category, count(*) FILTER (WHERE t.state = 1), count(*) FILTER (WHERE t.state = 2), count(*) FILTER (WHERE t.state = 3 AND t.refund_id <> 0),
	      coalesce(sum(t.total) FILTER (WHERE t.state < 3), 0)::bigint
	    FROM shard.orders o JOIN shard.tickets t ON t.order_id = o.order_id WHERE o.event_id = $1 GROUP BY t.category ORDER BY t.category`, int64(event))
	if err != nil {
		return f, err
	}
	err = tx.QueryRow(ctx, `SELECT coalesce(sum(p.captured), 0)::bigint, coalesce(sum(p.refunded), 0)::bigint
	    FROM shard.orders o JOIN shard.payments p ON p.order_id = o.order_id WHERE o.event_id = $1`, int64(event)).Scan(&f.Paid, &f.Refunded)
	if err != nil {
		return f, err
	}
	err = tx.QueryRow(ctx, `SELECT coalesce(sum(r.fee_kept), 0)::bigint, count(*) FILTER (WHERE r.state = 1 AND r.refused = ''), count(*) FILTER (WHERE r.state = 1 AND r.refused <> '')
	    FROM shard.orders o JOIN shard.refunds r ON r.order_id = o.order_id WHERE o.event_id = $1`, int64(event)).Scan(&f.Kept, &f.RefundsRequested, &f.RefundsRefused)
	if err != nil {
		return f, err
	}
	err = tx.QueryRow(ctx, `SELECT count(*) FROM shard.checkins WHERE event_id = $1 AND conflict <> ''`, int64(event)).Scan(&f.Conflicts)
	return f, err
}

// ClaimHistory implements ledger.Reader.
func (r *reader) ClaimHistory(ctx context.Context, holds []id.ID) ([]ledger.ClaimStep, error) {
	var hold, at int64
	var was, becomes, why, seats string
	var places int32
	return list(ctx, r.pool, []any{&hold, &was, &becomes, &why, &seats, &places, &at}, func() (ledger.ClaimStep, error) {
		s := ledger.ClaimStep{Hold: id.ID(hold), From: was, To: becomes, Why: why, Places: int(places), At: ledger.Time(at)}
		var err error
		s.Seats, err = decide.ParseClaims(seats)
		return s, err
	}, `SELECT claim_id, was, becomes, why, seats, places, at FROM shard.history WHERE claim_id = ANY ($1::bigint[]) AND claim_id <> 0
	    ORDER BY at, history_id`, column(holds, asInt64))
}

// NoticesOf implements ledger.Reader.
func (r *reader) NoticesOf(ctx context.Context, order id.ID) ([]ledger.Notice, error) {
	var of, sequence, at int64
	var kind, body string
	var alert int16
	return list(ctx, r.pool, []any{&of, &sequence, &kind, &alert, &body, &at}, func() (ledger.Notice, error) {
		return ledger.Notice{Order: id.ID(of), Sequence: sequence, Kind: kind, Alert: alert != 0, Body: []byte(body), At: ledger.Time(at)}, nil
	}, `SELECT order_id, sequence, kind, alert, body, created_at FROM shard.outbox WHERE order_id = $1 ORDER BY sequence`, int64(order))
}
