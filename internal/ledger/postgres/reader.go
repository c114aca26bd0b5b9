package postgres

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// reader answers from committed state on connections of its own.
type reader struct {
	pool     *pgxpool.Pool
	override func() ledger.Time // the clock of tests; nil: the server's
	latest   atomic.Int64       // the greatest time that this node has seen, and when (by its own clock)
	latestAt atomic.Int64
}

// saw keeps the greatest time (A5: the shard's clock never goes back).
func (r *reader) saw(now ledger.Time) {
	for {
		last := r.latest.Load()
		if int64(now) <= last {
			return
		}
		if r.latest.CompareAndSwap(last, int64(now)) {
			r.latestAt.Store(time.Now().UnixMilli())
			return
		}
	}
}

func (r *reader) last() ledger.Time { return ledger.Time(r.latest.Load()) }

// about is what the shard's clock shows, as far as this node can tell without asking.
func (r *reader) about() ledger.Time {
	if r.override != nil {
		return max(r.override(), r.last())
	}
	if last := r.last(); last != 0 {
		return last + ledger.Time(max(0, time.Now().UnixMilli()-r.latestAt.Load()))
	}
	return ledger.TimeOf(time.Now())
}

// sqlNow is the shard's clock: the server's, unless $1 is a test's.
const sqlNow = `coalesce($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)`

// given is the argument of sqlNow.
func (r *reader) given() *int64 {
	if r.override == nil {
		return nil
	}
	now := int64(max(r.override(), r.last()))
	return &now
}

// Now implements ledger.Reader.
func (r *reader) Now(ctx context.Context) (ledger.Time, error) {
	var now int64
	if err := r.pool.QueryRow(ctx, `SELECT `+sqlNow, r.given()).Scan(&now); err != nil {
		return 0, err
	}
	return max(ledger.Time(now), r.last()), nil
}

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// list collects the rows of a query: dest is where the columns are put, take makes a row of them.
//
// A read outside a transaction that meets a connection which has died (its server was started again) is made again on
// another one.
func list[T any](ctx context.Context, q querier, dest []any, take func() (T, error), sql string, args ...any) (all []T, err error) {
	pool, outside := q.(*pgxpool.Pool)
	for try := int32(0); ; try++ {
		all, err = listOnce(ctx, q, dest, take, sql, args...)
		if err == nil || !outside || !died(err) || ctx.Err() != nil || try > pool.Config().MaxConns {
			return all, err
		}
	}
}

// died says whether an error is that of a connection which was there and is no more. One that cannot be made is another
// thing: the server is away, and asking again at once does not help.
func died(err error) bool {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return false
	}
	var line net.Error
	return errors.As(err, &line) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || pgconn.SafeToRetry(err) ||
		sqlState(err) == "57P01" // the server said good-bye
}

func listOnce[T any](ctx context.Context, q querier, dest []any, take func() (T, error), sql string, args ...any) (all []T, err error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		v, err := take()
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// one is the only row of a query, or ledger.ErrNotFound.
func one[T any](ctx context.Context, q querier, dest []any, take func() (T, error), sql string, args ...any) (v T, err error) {
	all, err := list(ctx, q, dest, take, sql, args...)
	if err != nil {
		return v, err
	}
	if len(all) == 0 {
		return v, ledger.ErrNotFound
	}
	return all[0], nil
}

const sqlEvent = `SELECT ` + eventColumns + ` FROM shard.events`

func readEvent(ctx context.Context, q querier, event id.ID) (ledger.Event, error) {
	var row eventScan
	e, err := one(ctx, q, row.dest(), row.take, sqlEvent+` WHERE event_id = $1`, int64(event))
	if err != nil {
		return ledger.Event{}, err
	}
	return *e, nil
}

// Event implements ledger.Reader.
func (r *reader) Event(ctx context.Context, event id.ID) (ledger.Event, error) {
	return readEvent(ctx, r.pool, event)
}

// Events implements ledger.Reader.
func (r *reader) Events(ctx context.Context) ([]ledger.Event, error) {
	var row eventScan
	return list(ctx, r.pool, row.dest(), func() (ledger.Event, error) {
		e, err := row.take()
		if err != nil {
			return ledger.Event{}, err
		}
		return *e, nil
	}, sqlEvent+` ORDER BY event_id`)
}

// Layout implements ledger.Reader.
func (r *reader) Layout(ctx context.Context, planHash string) (*ledger.Layout, error) {
	var body []byte
	return one(ctx, r.pool, []any{&body}, func() (*ledger.Layout, error) { return decide.DecodeLayout(body) },
		`SELECT body FROM shard.layouts WHERE plan_hash = $1`, planHash)
}

// Snapshot implements ledger.Reader. One REPEATABLE READ transaction is one instant.
func (r *reader) Snapshot(ctx context.Context, event id.ID) (s ledger.Snapshot, err error) {
	tx, err := r.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, ignoreClosed(tx.Rollback(context.WithoutCancel(ctx)))) }()
	if s.Event, err = readEvent(ctx, tx, event); err != nil {
		return s, err
	}
	var now int64
	if err = tx.QueryRow(ctx, `SELECT version, `+sqlNow+` FROM shard.seats_versions WHERE event_id = $2`, r.given(), int64(event)).Scan(&s.Version, &now); err != nil {
		return s, err
	}
	s.Now = max(ledger.Time(now), r.last())
	var state int16
	var expires int64
	s.Seats, err = list(ctx, tx, []any{&state, &expires}, func() (ledger.SeatState, error) {
		return ledger.SeatState{State: ledger.Availability(state), Expires: ledger.Time(expires)}, nil
	}, `SELECT s.state, coalesce(h.expires_at, 0) FROM shard.seats s LEFT JOIN shard.holds h ON h.hold_id = CASE WHEN s.state = 1 THEN s.claim_id END
	    WHERE s.event_id = $1 ORDER BY s.seat_index`, int64(event))
	if err != nil {
		return s, err
	}
	var capacity, held, sold, returned int32
	s.Areas, err = list(ctx, tx, []any{&capacity, &held, &sold, &returned}, func() (ledger.AreaState, error) {
		return ledger.AreaState{Capacity: capacity, Held: held, Sold: sold, Returned: returned}, nil
	}, `SELECT sum(capacity)::integer, sum(held)::integer, sum(sold)::integer, sum(returned)::integer FROM shard.buckets WHERE event_id = $1 GROUP BY area ORDER BY area`, int64(event))
	return s, err
}

func ignoreClosed(err error) error {
	if errors.Is(err, pgx.ErrTxClosed) {
		return nil
	}
	return err
}

// ChangesSince implements ledger.Reader. A version that lies ahead of the stored one (of a restored backup) is a gap too.
func (r *reader) ChangesSince(ctx context.Context, event id.ID, version int64, most int) ([]ledger.Change, bool, error) {
	var current, stored, at int64
	var body string
	changes, err := list(ctx, r.pool, []any{&current, &stored, &body, &at}, func() (c ledger.Change, err error) {
		c = ledger.Change{Event: event, Version: stored, At: ledger.Time(at)}
		if stored == 0 {
			return c, nil
		}
		return c, decide.ParseChange(body, &c)
	}, `SELECT v.version, coalesce(c.version, 0), coalesce(c.body, ''), coalesce(c.at, 0) FROM shard.seats_versions v LEFT JOIN LATERAL
	    (SELECT version, body, at FROM shard.changes c WHERE c.event_id = v.event_id AND c.version > $2 ORDER BY c.version LIMIT $3) AS c ON true
	    WHERE v.event_id = $1 ORDER BY c.version`, int64(event), version, clip(most))
	switch {
	case err != nil:
		return nil, false, err
	case len(changes) == 0:
		return nil, false, ledger.ErrNotFound
	case changes[0].Version == 0:
		return nil, current != version, nil
	}
	return changes, changes[0].Version != version+1, nil
}

// clip is a count as LIMIT takes it.
func clip(most int) int64 { return int64(max(0, min(most, math.MaxInt32))) }

// Hold implements ledger.Reader.
func (r *reader) Hold(ctx context.Context, hold id.ID) (ledger.Hold, error) {
	var row holdScan
	h, err := one(ctx, r.pool, row.dest(), row.take, `SELECT `+holdColumns+` FROM shard.holds WHERE hold_id = $1`, int64(hold))
	if err != nil {
		return ledger.Hold{}, err
	}
	return h.Hold, nil
}

// Order implements ledger.Reader.
func (r *reader) Order(ctx context.Context, order id.ID) (ledger.Order, error) {
	orders, err := r.orders(ctx, `SELECT `+orderColumns+` FROM shard.orders WHERE order_id = $1`, int64(order))
	if err != nil {
		return ledger.Order{}, err
	}
	if len(orders) == 0 {
		return ledger.Order{}, ledger.ErrNotFound
	}
	return orders[0], nil
}

// orders reads orders and then their tickets. An order that becomes PAID in between shows as it was, with its tickets.
func (r *reader) orders(ctx context.Context, sql string, args ...any) ([]ledger.Order, error) {
	var row orderScan
	orders, err := list(ctx, r.pool, row.dest(), func() (ledger.Order, error) {
		o, err := row.take()
		if err != nil {
			return ledger.Order{}, err
		}
		return o.Order, nil
	}, sql, args...)
	if err != nil || len(orders) == 0 {
		return orders, err
	}
	place := make(map[id.ID]int, len(orders))
	ids := make([]int64, len(orders))
	for i := range orders {
		place[orders[i].ID] = i
		ids[i] = int64(orders[i].ID)
	}
	var t ticketScan
	tickets, err := list(ctx, r.pool, t.dest(), func() (ledger.Ticket, error) { return t.take(), nil },
		`SELECT `+ticketColumns+` FROM shard.tickets t WHERE t.order_id = ANY ($1::bigint[]) ORDER BY t.ticket_id`, ids)
	for _, ticket := range tickets {
		o := &orders[place[ticket.Order]]
		if o.State == ledger.OrderPaid || o.State == ledger.OrderRefunded {
			o.Tickets = append(o.Tickets, ticket)
		}
	}
	return orders, err
}

// OrdersOf implements ledger.Reader.
func (r *reader) OrdersOf(ctx context.Context, customer, before id.ID, most int) ([]ledger.Order, error) {
	before = cmp.Or(before, id.ID(math.MaxInt64))
	return r.orders(ctx, `SELECT `+orderColumns+` FROM shard.orders WHERE customer_id = $1 AND order_id < $2 ORDER BY order_id DESC LIMIT $3`,
		int64(customer), int64(before), clip(most))
}

// Ticket implements ledger.Reader.
func (r *reader) Ticket(ctx context.Context, ticket id.ID) (ledger.Ticket, error) {
	var row ticketScan
	return one(ctx, r.pool, row.dest(), func() (ledger.Ticket, error) { return row.take(), nil },
		`SELECT `+ticketColumns+` FROM shard.tickets t WHERE t.ticket_id = $1`, int64(ticket))
}

// PendingOrders implements ledger.Reader.
func (r *reader) PendingOrders(ctx context.Context, before ledger.Time, most int) ([]ledger.Order, error) {
	return r.orders(ctx, `SELECT `+orderColumns+` FROM shard.orders WHERE state = 1 AND updated_at < $1 ORDER BY updated_at, order_id LIMIT $2`,
		int64(before), clip(most))
}

// OpenPayments implements ledger.Reader.
func (r *reader) OpenPayments(ctx context.Context, most int) ([]ledger.OpenPayment, error) {
	var p paymentScan
	var of refundScan
	return list(ctx, r.pool, append(p.dest(), of.dest()...), func() (ledger.OpenPayment, error) {
		open := ledger.OpenPayment{Payment: p.take()}
		if of.refund != 0 {
			refund, err := of.take()
			open.Refund = &refund
			return open, err
		}
		return open, nil
	}, `(SELECT `+paymentColumns+`, `+refundColumns+` FROM shard.payments p JOIN shard.orders o ON o.order_id = p.order_id
	      LEFT JOIN shard.refunds r ON false
	      WHERE p.state = 1 AND p.refund_id = 0 AND o.state = 2 AND o.provider = p.provider AND o.payment_id = p.payment_id ORDER BY p.order_id, p.payment_id LIMIT $1)
	    UNION ALL
	    (SELECT `+paymentColumns+`, `+refundColumns+` FROM shard.refunds r
	      JOIN shard.payments p ON p.order_id = r.from_order AND p.provider = r.provider AND p.payment_id = r.payment_id
	      WHERE r.state = 1 AND r.refused = '' ORDER BY p.order_id, p.payment_id, r.refund_id LIMIT $1)
	    ORDER BY 1, 3, 12 LIMIT $1`, clip(most))
}

// Payments implements ledger.Reader.
func (r *reader) Payments(ctx context.Context, order id.ID) ([]ledger.Payment, error) {
	var p paymentScan
	return list(ctx, r.pool, p.dest(), func() (ledger.Payment, error) { return p.take(), nil },
		`SELECT `+paymentColumns+` FROM shard.payments p WHERE p.order_id = $1 ORDER BY p.provider, p.payment_id`, int64(order))
}

// NextExpiry implements ledger.Reader.
func (r *reader) NextExpiry(ctx context.Context) (ledger.Time, error) {
	var at int64
	err := r.pool.QueryRow(ctx, `SELECT coalesce((SELECT expires_at FROM shard.holds WHERE state = 1 ORDER BY expires_at, hold_id LIMIT 1), 0)`).Scan(&at)
	return ledger.Time(at), err
}
