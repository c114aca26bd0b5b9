package postgres

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// The statements of the lock phase, in the order of RULES A3. Each gets its keys sorted, and n is a key's place among
// them: ORDER BY n is the order of the primary key, the same on every node, and it is by this order that rows are locked.
// What a locking statement returns is the newest committed version of the row that it locked, also where it had to wait
// (its conditions are on the primary key alone); docs/LOCKING.md says why that is enough.
const (
	// The turnstile stands before the event's row: a queue in which a change of the event is not overtaken for ever by
	// batches that share the row.
	sqlTurnstileShared = `SELECT pg_advisory_xact_lock_shared(-e) FROM unnest($1::bigint[]) AS e`
	sqlTurnstile       = `SELECT pg_advisory_xact_lock(-e) FROM unnest($1::bigint[]) AS e`

	// The body comes along only where the row is not the one that is known.
	sqlEvents = `SELECT k.n, e.version, e.state, e.sequence, CASE WHEN e.version = k.version AND e.state = k.state AND e.sequence = k.sequence THEN '' ELSE e.body END
 FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[]) WITH ORDINALITY AS k(event_id, version, state, sequence, n)
 JOIN shard.events e ON e.event_id = k.event_id ORDER BY k.n FOR `
	sqlEventsShare  = sqlEvents + `SHARE OF e`
	sqlEventsUpdate = sqlEvents + `UPDATE OF e`

	// A key's row is never changed, and that there is none is not believed: the row is inserted with its effect, and
	// where another node was first, that fails (see write.go). Keys are read behind the locks: who had to wait for one that
	// the same key's first request held, finds the key and repeats its answer.
	sqlKeys = `SELECT k.n, i.subject_id, i.fields, i.created_at
 FROM unnest($1::bigint[], $2::text[], $3::text[]) WITH ORDINALITY AS k(customer_id, operation, key, n)
 JOIN shard.idempotency_keys i ON i.customer_id = k.customer_id AND i.operation = k.operation AND i.key = k.key`

	sqlLimits = `SELECT k.n, l.count FROM unnest($1::smallint[], $2::bigint[], $3::smallint[], $4::bytea[]) WITH ORDINALITY AS k(scope, of_id, category, subject, n)
 JOIN shard.limits l ON l.scope = k.scope AND l.of_id = k.of_id AND l.category = k.category AND l.subject = k.subject ORDER BY k.n FOR UPDATE OF l`

	sqlQuotas = `SELECT k.n, q.count FROM unnest($1::bigint[], $2::smallint[], $3::smallint[]) WITH ORDINALITY AS k(event_id, category, section, n)
 JOIN shard.quotas q ON q.event_id = k.event_id AND q.category = k.category AND q.section = k.section ORDER BY k.n FOR UPDATE OF q`

	// Documents and funds change only of orders that were paid: those of others are known.
	sqlOrders = `SELECT k.n, o.hold_id, o.state, o.reason, o.payment_id, o.rescued, o.attempt_open, o.updated_at, o.sequence,
 o.credit, CASE WHEN o.state IN (2, 5) THEN o.documents ELSE '' END, CASE WHEN o.state IN (2, 5) THEN o.funds ELSE '' END
 FROM unnest($1::bigint[]) WITH ORDINALITY AS k(order_id, n) JOIN shard.orders o ON o.order_id = k.order_id ORDER BY k.n FOR UPDATE OF o`

	// Whoever writes payments, refunds, tickets or their uses has the order's row locked: these need no locks of their own.
	sqlPayments = `SELECT ` + paymentColumns + `, ` + refundColumns + ` FROM unnest($1::bigint[]) AS k(order_id)
 JOIN shard.payments p ON p.order_id = k.order_id LEFT JOIN shard.refunds r ON r.refund_id = nullif(p.refund_id, 0)`
	sqlRefunds   = `SELECT ` + refundColumns + ` FROM unnest($1::bigint[]) AS k(refund_id) JOIN shard.refunds r ON r.refund_id = k.refund_id`
	sqlRefundsOf = `SELECT ` + refundColumns + ` FROM unnest($1::bigint[]) AS k(order_id) JOIN shard.refunds r ON r.order_id = k.order_id ORDER BY r.refund_id`
	sqlUses      = `SELECT ` + useColumns + ` FROM unnest($1::bigint[]) AS k(ticket_id) JOIN shard.checkins c ON c.ticket_id = k.ticket_id ORDER BY c.at, c.device`
	sqlTickets   = `SELECT ` + ticketColumns + ` FROM unnest($1::bigint[]) AS k(order_id) JOIN shard.tickets t ON t.order_id = k.order_id ORDER BY t.ticket_id`

	// The lists change only of holds that were sold: those of others are known.
	sqlHolds = `SELECT k.n, h.state, h.expires_at, h.extended_count, h.window_used, h.order_id, h.ended_at, CASE WHEN h.state IN (2, 4) THEN h.lines ELSE '' END,
 CASE WHEN h.state IN (2, 4) THEN h.draws ELSE '' END, CASE WHEN h.state IN (2, 4) THEN h.exchanged ELSE '' END
 FROM unnest($1::bigint[]) WITH ORDINALITY AS k(hold_id, n) JOIN shard.holds h ON h.hold_id = k.hold_id ORDER BY k.n FOR UPDATE OF h`

	sqlBuckets = `SELECT k.n, b.number, b.capacity, b.held, b.sold, b.returned, b.returned_at FROM unnest($1::bigint[], $2::integer[]) WITH ORDINALITY AS k(event_id, area, n)
 JOIN shard.buckets b ON b.event_id = k.event_id AND b.area = k.area ORDER BY k.n, b.number FOR UPDATE OF b`

	sqlSeats = `SELECT k.n, s.state, s.claim_id, s.epoch, s.when_free, s.returned_at
 FROM unnest($1::bigint[], $2::integer[]) WITH ORDINALITY AS k(event_id, seat_index, n)
 JOIN shard.seats s ON s.event_id = k.event_id AND s.seat_index = k.seat_index ORDER BY k.n FOR UPDATE OF s`

	// The clock is read behind the locks. Where the hold that runs out first is not due, no hold is: most questions for
	// expired holds are answered by that.
	sqlClock = `SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
 coalesce((SELECT expires_at FROM shard.holds WHERE state = 1 ORDER BY expires_at, hold_id LIMIT 1), 0)`
)

// column turns keys into an argument.
func column[K any, V any](keys []K, value func(K) V) []V {
	list := make([]V, len(keys))
	for i, k := range keys {
		list[i] = value(k)
	}
	return list
}

// sorted are the keys of a set in an order that is the same on every node.
func sorted[K comparable](s set[K], compare func(a, b K) int) []K {
	keys := make([]K, 0, len(s))
	for k := range s {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compare)
	return keys
}

func asInt64(i id.ID) int64 { return int64(i) }

// lock locks and reads every row of the lock set, in one round trip.
func (t *transaction) lock(ctx context.Context) error {
	p := t.pipeline()
	t.lockEvents(p)
	t.lockLimits(p)
	t.lockQuotas(p)
	t.lockWishes(p)
	t.lockSessions(p)
	t.lockRooms(p)
	t.lockOrders(p)
	t.lockHolds(p)
	t.lockBuckets(p)
	t.lockSeats(p)
	t.readKeys(p)
	t.readUnpaid(p)
	var now, soonest int64
	p.rows(sqlClock, nil, []any{&now, &soonest}, func() error {
		t.now, t.source.soonest = ledger.Time(now), ledger.Time(soonest)
		return nil
	})
	return p.send(ctx, t.conn)
}

func (t *transaction) lockEvents(p *pipeline) {
	keys := sorted(t.set.events, cmp.Compare[id.ID])
	t.source.events = make(map[id.ID]*ledger.Event, len(keys))
	if len(keys) == 0 {
		return
	}
	ids := column(keys, asInt64)
	versions, states, sequences := make([]int64, len(keys)), make([]int16, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		t.source.events[k] = nil
		if e, ok := t.l.facts.events.Get(k); ok {
			versions[i], states[i], sequences[i] = e.Version, int16(e.State), e.Sequence
		}
	}
	turnstile, events := sqlTurnstileShared, sqlEventsShare
	if t.set.exclusive {
		turnstile, events = sqlTurnstile, sqlEventsUpdate
	}
	p.exec(turnstile, ids)
	var n int64
	var row eventScan
	p.rows(events, []any{ids, versions, states, sequences}, []any{&n, &row.version, &row.state, &row.sequence, &row.body}, func() error {
		k := keys[n-1]
		if e, ok := t.l.facts.events.Get(k); ok && row.body == "" {
			t.source.events[k] = e
			return nil
		}
		row.event = int64(k)
		e, err := row.take()
		if err != nil {
			return err
		}
		t.source.events[k] = e
		t.l.facts.events.Put(k, e)
		return nil
	})
}

func (t *transaction) readKeys(p *pipeline) {
	keys := sorted(t.set.keys, compareKeys)
	t.source.keys = make(map[decide.IdemKey]*decide.Key, len(keys))
	if len(keys) == 0 {
		return
	}
	for _, k := range keys {
		t.source.keys[k] = nil
	}
	var n, subject, created int64
	var fields string
	p.rows(sqlKeys, []any{
		column(keys, func(k decide.IdemKey) int64 { return int64(k.Customer) }),
		column(keys, func(k decide.IdemKey) string { return k.Operation }),
		column(keys, func(k decide.IdemKey) string { return k.Value }),
	}, []any{&n, &subject, &fields, &created}, func() error {
		k := keys[n-1]
		list, err := decide.DecodeFields(fields)
		t.source.keys[k] = &decide.Key{IdemKey: k, Subject: id.ID(subject), Fields: list, Created: ledger.Time(created)}
		t.l.facts.keys.Put(k, id.ID(subject))
		return err
	})
}

func compareKeys(a, b decide.IdemKey) int {
	return cmp.Or(cmp.Compare(a.Customer, b.Customer), strings.Compare(a.Operation, b.Operation), strings.Compare(a.Value, b.Value))
}

func compareLimits(a, b decide.LimitKey) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Of, b.Of), cmp.Compare(a.Category, b.Category), strings.Compare(a.Subject, b.Subject))
}

func compareQuotas(a, b decide.QuotaKey) int {
	return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Category, b.Category), cmp.Compare(a.Section, b.Section))
}

func compareAreas(a, b decide.AreaKey) int {
	return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Area, b.Area))
}

func compareSeats(a, b decide.SeatKey) int {
	return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Index, b.Index))
}

func (t *transaction) lockLimits(p *pipeline) {
	keys := sorted(t.set.limits, compareLimits)
	t.source.limits = make(map[decide.LimitKey]*int, len(keys))
	if len(keys) == 0 {
		return
	}
	for _, k := range keys {
		t.source.limits[k] = nil
	}
	var n int64
	var count int32
	p.rows(sqlLimits, []any{
		column(keys, func(k decide.LimitKey) int16 { return int16(k.Scope) }),
		column(keys, func(k decide.LimitKey) int64 { return int64(k.Of) }),
		column(keys, func(k decide.LimitKey) int16 { return k.Category }),
		column(keys, func(k decide.LimitKey) []byte { return []byte(k.Subject) }),
	}, []any{&n, &count}, func() error {
		stored := int(count)
		t.source.limits[keys[n-1]] = &stored
		return nil
	})
}

func (t *transaction) lockQuotas(p *pipeline) {
	keys := sorted(t.set.quotas, compareQuotas)
	t.source.quotas = make(map[decide.QuotaKey]*int, len(keys))
	if len(keys) == 0 {
		return
	}
	for _, k := range keys {
		t.source.quotas[k] = nil
	}
	var n int64
	var count int32
	p.rows(sqlQuotas, []any{
		column(keys, func(k decide.QuotaKey) int64 { return int64(k.Event) }),
		column(keys, func(k decide.QuotaKey) int16 { return k.Category }),
		column(keys, func(k decide.QuotaKey) int16 { return k.Section }),
	}, []any{&n, &count}, func() error {
		stored := int(count)
		t.source.quotas[keys[n-1]] = &stored
		return nil
	})
}

// lockOrders locks orders and reads what hangs on them.
func (t *transaction) lockOrders(p *pipeline) {
	s := t.source
	keys := sorted(t.set.orders, cmp.Compare[id.ID])
	s.orders = make(map[id.ID]*decide.Order, len(keys))
	if len(keys) > 0 {
		ids := column(keys, asInt64)
		for _, k := range keys {
			s.orders[k] = nil
		}
		var n int64
		var row orderScan
		p.rows(sqlOrders, []any{ids}, []any{&n, &row.hold, &row.state, &row.reason, &row.payment, &row.rescued, &row.open, &row.updated, &row.sequence,
			&row.credit, &row.documents, &row.funds}, func() error { return s.lockedOrder(keys[n-1], &row) })
		var pay paymentScan
		var of refundScan
		p.rows(sqlPayments, []any{ids}, append(pay.dest(), of.dest()...), func() error {
			v := &decide.Payment{Payment: pay.take()}
			s.pays[decide.PaymentKey{Order: v.Order, Provider: v.Provider, Payment: v.ID}] = v
			if of.refund == 0 {
				return nil
			}
			r, err := of.row()
			s.refunds[r.ID] = r
			return err
		})
		t.readTickets(p, keys)
	}
	t.readRefunds(p)
	t.readUses(p)
}

// readRefunds reads the refunds that are named, and all of the orders of which all are wanted.
func (t *transaction) readRefunds(p *pipeline) {
	s := t.source
	if len(t.set.refunds) > 0 {
		for k := range t.set.refunds {
			s.refunds[k] = nil
		}
		var row refundScan
		p.rows(sqlRefunds, []any{column(sorted(t.set.refunds, cmp.Compare[id.ID]), asInt64)}, row.dest(), func() error {
			r, err := row.row()
			s.refunds[r.ID] = r
			known := *r
			t.l.facts.refunds.Put(r.ID, &known)
			return err
		})
	}
	if len(t.set.allRefunds) > 0 {
		for k := range t.set.allRefunds {
			s.allRefunds[k] = nil
		}
		var row refundScan
		p.rows(sqlRefundsOf, []any{column(sorted(t.set.allRefunds, cmp.Compare[id.ID]), asInt64)}, row.dest(), func() error {
			r, err := row.row()
			s.allRefunds[r.Order] = append(s.allRefunds[r.Order], r)
			return err
		})
	}
}

func (t *transaction) readUses(p *pipeline) {
	if len(t.set.uses) == 0 {
		return
	}
	for k := range t.set.uses {
		t.source.uses[k] = nil
	}
	var row useScan
	p.rows(sqlUses, []any{column(sorted(t.set.uses, cmp.Compare[id.ID]), asInt64)}, row.dest(), func() error {
		u := &decide.CheckIn{CheckedIn: row.take()}
		t.source.uses[u.Ticket] = append(t.source.uses[u.Ticket], u)
		return nil
	})
}

// readTickets reads the tickets of orders, but not of those that were PENDING when last seen, which have none. Where that
// was long ago, they are missing, and read in the next round.
func (t *transaction) readTickets(p *pipeline, orders []id.ID) {
	var ids []int64
	for _, k := range orders {
		if o, ok := t.l.facts.orders.Get(k); !ok || o.State != ledger.OrderPending {
			ids = append(ids, int64(k))
			t.source.tickets[k] = nil
		}
	}
	if len(ids) == 0 {
		return
	}
	var ticket ticketScan
	p.rows(sqlTickets, []any{ids}, ticket.dest(), func() error {
		v := &decide.Ticket{Ticket: ticket.take()}
		t.source.tickets[v.Order] = append(t.source.tickets[v.Order], v)
		return nil
	})
}

func (t *transaction) lockHolds(p *pipeline) {
	s := t.source
	keys := sorted(t.set.holds, cmp.Compare[id.ID])
	s.holds = make(map[id.ID]*decide.Hold, len(keys))
	if len(keys) == 0 {
		return
	}
	for _, k := range keys {
		s.holds[k] = nil
	}
	var n int64
	var row holdScan
	p.rows(sqlHolds, []any{column(keys, asInt64)}, []any{&n, &row.state, &row.expires, &row.extended, &row.window, &row.order,
		&row.ended, &row.lines, &row.draws, &row.exchanged}, func() error { return s.lockedHold(keys[n-1], &row) })
}

func (t *transaction) lockBuckets(p *pipeline) {
	keys := sorted(t.set.areas, compareAreas)
	t.source.buckets = make(map[decide.AreaKey][]*decide.Bucket, len(keys))
	if len(keys) == 0 {
		return
	}
	for _, k := range keys {
		t.source.buckets[k] = nil
	}
	var n int64
	var number int16
	var capacity, held, sold, returned int32
	var at int64
	p.rows(sqlBuckets, []any{
		column(keys, func(k decide.AreaKey) int64 { return int64(k.Event) }),
		column(keys, func(k decide.AreaKey) int32 { return k.Area }),
	}, []any{&n, &number, &capacity, &held, &sold, &returned, &at}, func() error {
		k := keys[n-1]
		t.source.buckets[k] = append(t.source.buckets[k], &decide.Bucket{
			AreaKey: k, Number: number, Capacity: capacity, Held: held, Sold: sold, Returned: returned, ReturnedAt: ledger.Time(at),
		})
		return nil
	})
}

func (t *transaction) lockSeats(p *pipeline) {
	keys := sorted(t.set.seats, compareSeats)
	t.source.seats = make(map[decide.SeatKey]*decide.Seat, len(keys))
	if len(keys) == 0 {
		return
	}
	for _, k := range keys {
		t.source.seats[k] = nil
	}
	rows := make([]decide.Seat, len(keys)) // one allocation for all
	var n, claim, epoch, returned int64
	var state, when int16
	p.rows(sqlSeats, []any{
		column(keys, func(k decide.SeatKey) int64 { return int64(k.Event) }),
		column(keys, func(k decide.SeatKey) int32 { return k.Index }),
	}, []any{&n, &state, &claim, &epoch, &when, &returned}, func() error {
		s := &rows[n-1]
		s.SeatKey = keys[n-1]
		s.State, s.Claim, s.Epoch = ledger.Availability(state), id.ID(claim), epoch
		s.WhenFree, s.ReturnedAt = when != 0, ledger.Time(returned)
		s.WasState, s.WasClaim, s.WasEpoch = s.State, s.Claim, s.Epoch
		t.source.seats[s.SeatKey] = s
		t.l.facts.sawSeat(s)
		return nil
	})
}
