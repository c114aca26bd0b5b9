package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"onsale/internal/ledger"
)

// barePostgres runs set-based statements, each for the whole batch by arrays and unnest, all statements of a transaction
// in one round trip.
type barePostgres struct {
	hall *hall
	conn *pgx.Conn
}

// barePlans make every plan go by the primary keys: the tables are fresh and have no statistics, and a plan that is
// guessed from none was seen to cost ten times as much.
const barePlans = `SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off;
	SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; SET synchronous_commit = on; SET search_path = shard`

func openBarePostgres(ctx context.Context, url string, h *hall) (*barePostgres, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, barePlans); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return &barePostgres{hall: h, conn: conn}, nil
}

func (s *barePostgres) close(ctx context.Context) error { return s.conn.Close(ctx) }

// A bareBatchOf queues the statements of one transaction with the number of rows that each must change.
type bareBatchOf struct {
	pgx.Batch
	want []int64
}

func (b *bareBatchOf) do(rows int, text string, args ...any) {
	b.Queue(text, args...)
	b.want = append(b.want, int64(rows))
}

// in runs a transaction that ends with the change row, as a batch of ours does.
func (s *barePostgres) in(ctx context.Context, now ledger.Time, change string, queue func(*bareBatchOf)) (err error) {
	var b bareBatchOf
	b.do(0, `BEGIN`)
	queue(&b)
	b.do(1, `WITH raised AS (UPDATE seats_versions SET version = version + 1 WHERE event_id = $1 RETURNING event_id, version)
		INSERT INTO changes (event_id, version, body, at) SELECT event_id, version, $2, $3 FROM raised`, int64(s.hall.event.ID), change, int64(now))
	b.do(0, `COMMIT`)
	results := s.conn.SendBatch(ctx, &b.Batch)
	defer func() { err = errors.Join(err, results.Close()) }()
	for i, want := range b.want {
		tag, err := results.Exec()
		if err != nil {
			return err
		}
		if got := tag.RowsAffected(); got != want {
			return fmt.Errorf("bare statement %d changed %d rows instead of %d", i, got, want)
		}
	}
	return nil
}

// column makes the array of one column.
func column[T any](parties []party, of func(*party) T) []T {
	list := make([]T, len(parties))
	for i := range parties {
		list[i] = of(&parties[i])
	}
	return list
}

// perSeat makes the array of one column of a table that has a row for each seat.
func perSeat[T any](parties []party, of func(p *party, k int) T) []T {
	var list []T
	for i := range parties {
		for k := range parties[i].seats {
			list = append(list, of(&parties[i], k))
		}
	}
	return list
}

func holdIDs(parties []party) []int64 {
	return column(parties, func(p *party) int64 { return int64(p.hold) })
}

func (s *barePostgres) hold(ctx context.Context, parties []party, now ledger.Time) error {
	event, expires := int64(s.hall.event.ID), s.hall.expires(now)
	return s.in(ctx, now, s.hall.change(parties, ledger.Held, expires), func(b *bareBatchOf) {
		seats := perSeat(parties, func(p *party, k int) int32 { return p.seats[k] })
		b.do(len(seats), `UPDATE seats s SET state = 1, claim_id = u.claim_id, epoch = s.epoch + 1
			FROM unnest($2::integer[], $3::bigint[]) AS u(seat_index, claim_id) WHERE s.event_id = $1 AND s.seat_index = u.seat_index AND s.state = 0`,
			event, seats, perSeat(parties, func(p *party, _ int) int64 { return int64(p.hold) }))
		b.do(len(parties), `INSERT INTO holds (hold_id, event_id, customer_id, state, area, lines, draws, currency, created_at, expires_at)
			SELECT u.hold_id, $1, u.customer_id, 1, -1, u.lines, '[]', $2, $3, $4 FROM unnest($5::bigint[], $6::bigint[], $7::text[]) AS u(hold_id, customer_id, lines)`,
			event, currency, int64(now), int64(expires), holdIDs(parties), column(parties, func(p *party) int64 { return int64(p.customer) }),
			column(parties, func(p *party) string { return p.linesText }))
		b.do(len(parties), `INSERT INTO limits (scope, of_id, category, subject, count)
			SELECT 1, $1, -1, u.subject, u.count FROM unnest($2::bytea[], $3::integer[]) AS u(subject, count)`,
			event, column(parties, func(p *party) []byte { return p.subject }), column(parties, func(p *party) int32 { return int32(len(p.seats)) }))
		s.history(b, parties, now, "", "live", "hold")
	})
}

func (s *barePostgres) history(b *bareBatchOf, parties []party, now ledger.Time, was, becomes, why string) {
	b.do(len(parties), `INSERT INTO history (event_id, claim_id, was, becomes, why, seats, places, at)
		SELECT $1, u.claim_id, $2, $3, $4, u.seats, 0, $5 FROM unnest($6::bigint[], $7::text[]) AS u(claim_id, seats)`,
		int64(s.hall.event.ID), was, becomes, why, int64(now), holdIDs(parties), column(parties, func(p *party) string { return p.claimsText }))
}

func (s *barePostgres) notices(b *bareBatchOf, parties []party, now ledger.Time, sequence int, kind string, body func(*party) string) {
	b.do(len(parties), `INSERT INTO outbox (order_id, sequence, kind, body, created_at)
		SELECT u.order_id, $1, $2, u.body, $3 FROM unnest($4::bigint[], $5::text[]) AS u(order_id, body)`,
		sequence, kind, int64(now), column(parties, func(p *party) int64 { return int64(p.order) }), column(parties, body))
}

func (s *barePostgres) begin(ctx context.Context, parties []party, now ledger.Time) error {
	event, window := int64(s.hall.event.ID), int64(now)+int64(s.hall.event.PaymentWindow)
	return s.in(ctx, now, s.hall.change(nil, 0, 0), func(b *bareBatchOf) {
		orders := column(parties, func(p *party) int64 { return int64(p.order) })
		b.do(len(parties), `INSERT INTO orders (order_id, hold_id, event_id, customer_id, state, amount, currency, provider, attempt_open, created_at, updated_at, sequence)
			SELECT u.order_id, u.hold_id, $1, u.customer_id, 1, u.amount, $2, 'instant', 1, $3, $3, 1
			FROM unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]) AS u(order_id, hold_id, customer_id, amount)`,
			event, currency, int64(now), orders, holdIDs(parties), column(parties, func(p *party) int64 { return int64(p.customer) }),
			column(parties, func(p *party) int64 { return p.amount }))
		b.do(len(parties), `UPDATE holds h SET order_id = u.order_id, window_used = 1, expires_at = greatest(h.expires_at, $1)
			FROM unnest($2::bigint[], $3::bigint[]) AS u(hold_id, order_id) WHERE h.hold_id = u.hold_id AND h.state = 1`, window, holdIDs(parties), orders)
		s.notices(b, parties, now, 1, ledger.NoticePending, func(p *party) string { return p.pending })
	})
}

func (s *barePostgres) confirm(ctx context.Context, parties []party, now ledger.Time) error {
	event := int64(s.hall.event.ID)
	return s.in(ctx, now, s.hall.change(parties, ledger.Sold, 0), func(b *bareBatchOf) {
		seats := perSeat(parties, func(p *party, k int) int32 { return p.seats[k] })
		orders := column(parties, func(p *party) int64 { return int64(p.order) })
		payments, amounts := column(parties, func(p *party) string { return p.payment }), column(parties, func(p *party) int64 { return p.amount })
		b.do(len(parties), `UPDATE orders o SET state = 2, payment_id = u.payment_id, attempt_open = 0, updated_at = $1, sequence = 2
			FROM unnest($2::bigint[], $3::text[]) AS u(order_id, payment_id) WHERE o.order_id = u.order_id AND o.state = 1`, int64(now), orders, payments)
		b.do(len(parties), `INSERT INTO payments (order_id, provider, payment_id, currency, state, authorized, captured)
			SELECT u.order_id, 'instant', u.payment_id, $1, 2, u.amount, u.amount FROM unnest($2::bigint[], $3::text[], $4::bigint[]) AS u(order_id, payment_id, amount)`,
			currency, orders, payments, amounts)
		b.do(len(parties), `UPDATE holds h SET state = 4 FROM unnest($1::bigint[]) AS u(hold_id) WHERE h.hold_id = u.hold_id AND h.state = 1`, holdIDs(parties))
		b.do(len(seats), `UPDATE seats s SET state = 2 FROM unnest($2::integer[], $3::bigint[]) AS u(seat_index, claim_id)
			WHERE s.event_id = $1 AND s.seat_index = u.seat_index AND s.state = 1 AND s.claim_id = u.claim_id`,
			event, seats, perSeat(parties, func(p *party, _ int) int64 { return int64(p.hold) }))
		b.do(len(seats), `INSERT INTO tickets (ticket_id, order_id, event_id, customer_id, state, seat_index, category, total, place)
			SELECT u.ticket_id, u.order_id, $1, u.customer_id, 1, u.seat_index, u.category, u.total, u.place
			FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::integer[], $6::smallint[], $7::bigint[], $8::integer[]) AS u(ticket_id, order_id, customer_id, seat_index, category, total, place)`,
			event, perSeat(parties, func(p *party, k int) int64 { return int64(p.tickets[k]) }), perSeat(parties, func(p *party, _ int) int64 { return int64(p.order) }),
			perSeat(parties, func(p *party, _ int) int64 { return int64(p.customer) }), seats,
			perSeat(parties, func(p *party, k int) int16 { return p.lines[k].Category }), perSeat(parties, func(p *party, k int) int64 { return p.lines[k].Total }),
			perSeat(parties, func(_ *party, k int) int32 { return int32(k) }))
		s.notices(b, parties, now, 2, ledger.NoticePaid, func(p *party) string { return p.paid })
		s.history(b, parties, now, "live", "sold", "confirm")
	})
}
