package postgres

import (
	"context"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// found is what a plain read said about holds whose time is up.
type found struct {
	holds    []*decide.Hold // as read, by (Expires, ID)
	until    ledger.Time    // those with Expires <= until were asked for
	complete bool           // there are no more
}

// learn finds by plain reads, before anything is locked, what the lock set has to know and memory does not: one
// statement for each kind of thing, none where all is known. What it reads may be old by the time of the locks; then the
// decisions miss a row, and the next round learns again.
func (t *transaction) learn(ctx context.Context, commands []ledger.Command) error {
	now := t.l.reader.about()
	t.set = newLockset(&t.l.facts, now)
	if err := t.learnWishes(ctx, commands); err != nil {
		return err
	}
	for _, c := range commands { // only Sweep asks without having been told that something is missing
		if s, ok := c.(ledger.Sweep); ok {
			t.set.sweep(s)
		}
	}
	for q, most := range t.batch.missed.expired {
		t.set.expired[q] = max(t.set.expired[q], most)
	}
	if err := t.findExpired(ctx, now+margin); err != nil {
		return err
	}
	if err := t.learnRefunds(ctx, commands); err != nil {
		return err
	}
	if err := t.learnTickets(ctx, commands); err != nil {
		return err
	}
	if err := t.learnOrders(ctx, commands); err != nil {
		return err
	}
	if err := t.learnHolds(ctx, commands); err != nil {
		return err
	}
	if err := t.learnExchanges(ctx, commands); err != nil {
		return err
	}
	if err := t.learnRooms(ctx, commands); err != nil {
		return err
	}
	if err := t.learnEvents(ctx, commands); err != nil {
		return err
	}
	for _, c := range commands {
		t.set.command(c)
	}
	for _, f := range t.source.expired {
		for _, h := range f.holds {
			t.set.hold(h.ID)
			t.set.order(h.Order)
		}
	}
	t.set.more(&t.batch.missed)
	return nil
}

const sqlExpired = `SELECT k.n, h.* FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::integer[]) WITH ORDINALITY AS k(customer_id, event_id, area, most, n),
 LATERAL (SELECT ` + holdColumns + ` FROM shard.holds WHERE state = 1 AND expires_at <= $5
  AND (k.customer_id = 0 OR customer_id = k.customer_id) AND (k.event_id = 0 OR event_id = k.event_id) AND (k.area < 0 OR area = k.area)
  ORDER BY expires_at, hold_id LIMIT k.most) AS h ORDER BY k.n, h.expires_at, h.hold_id`

func (t *transaction) findExpired(ctx context.Context, until ledger.Time) error {
	if len(t.set.expired) == 0 {
		return nil
	}
	var asked []expiredOf
	var customers, events []int64
	var areas, most []int32
	for q, n := range t.set.expired {
		asked = append(asked, q)
		customers, events = append(customers, int64(q.Customer)), append(events, int64(q.Event))
		areas, most = append(areas, q.Area), append(most, int32(n))
	}
	p := t.pipeline()
	var n int64
	var row holdScan
	p.rows(sqlExpired, []any{customers, events, areas, most, int64(until)}, append([]any{&n}, row.dest()...), func() error {
		h, err := row.take()
		if err != nil {
			return err
		}
		t.l.facts.holds.Put(h.ID, h)
		f := t.source.expired[asked[n-1]]
		if f == nil {
			f = &found{}
			t.source.expired[asked[n-1]] = f
		}
		f.holds = append(f.holds, h)
		return nil
	})
	if err := p.send(ctx, t.conn); err != nil {
		return err
	}
	for i, q := range asked {
		f := t.source.expired[q]
		if f == nil {
			f = &found{}
			t.source.expired[q] = f
		}
		f.until, f.complete = until, len(f.holds) < int(most[i])
	}
	return nil
}

// unknown collects the ids of which nothing is remembered, each once.
type unknown[V any] struct {
	get  func(id.ID) (V, bool)
	seen set[id.ID]
	ids  []int64
}

func (u *unknown[V]) ask(i id.ID) {
	if i == 0 || u.seen.has(i) {
		return
	}
	if _, ok := u.get(i); !ok {
		if u.seen == nil {
			u.seen = set[id.ID]{}
		}
		u.seen.add(i)
		u.ids = append(u.ids, int64(i))
	}
}

func orderOf(c ledger.Command) id.ID {
	switch c := c.(type) {
	case ledger.Confirm:
		return c.Order
	case ledger.FailPayment:
		return c.Order
	case ledger.RecordPayment:
		return c.Order
	case ledger.BeginRefund:
		return c.Order
	case ledger.HoldSeats:
		return c.Exchange.Order
	case ledger.HoldPlaces:
		return c.Exchange.Order
	}
	return 0
}

func holdOf(c ledger.Command) id.ID {
	switch c := c.(type) {
	case ledger.Extend:
		return c.Hold
	case ledger.Release:
		return c.Hold
	case ledger.BeginPayment:
		return c.Hold
	}
	return 0
}

func (t *transaction) learnOrders(ctx context.Context, commands []ledger.Command) error {
	u := unknown[*decide.Order]{get: t.l.facts.orders.Get}
	for _, c := range commands {
		u.ask(orderOf(c))
		t.offersBehind(c, func(h id.ID) {
			if known, ok := t.l.facts.holds.Get(h); ok {
				u.ask(known.Order)
			}
		})
		if h := holdOf(c); h != 0 {
			if known, ok := t.l.facts.holds.Get(h); ok {
				u.ask(known.Order)
			}
		}
		t.ordersBehind(c, u.ask)
	}
	for o := range t.batch.missed.orders {
		u.ask(o)
	}
	for k := range t.batch.missed.tickets {
		u.ask(t.orderOfTicket(k))
	}
	for k := range t.batch.missed.refunds {
		u.ask(t.orderOfRefund(k))
	}
	for _, f := range t.source.expired {
		for _, h := range f.holds {
			u.ask(h.Order)
		}
	}
	return t.readOrders(ctx, u.ids)
}

func (t *transaction) readOrders(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	p := t.pipeline()
	var row orderScan
	p.rows(`SELECT `+orderColumns+` FROM shard.orders WHERE order_id = ANY ($1::bigint[])`, []any{ids}, row.dest(), func() error {
		o, err := row.take()
		if err == nil {
			t.l.facts.orders.Put(o.ID, o)
		}
		return err
	})
	return p.send(ctx, t.conn)
}

func (t *transaction) learnHolds(ctx context.Context, commands []ledger.Command) error {
	u := unknown[*decide.Hold]{get: t.l.facts.holds.Get}
	ofOrder := func(order id.ID) {
		if o, ok := t.l.facts.orders.Get(order); ok {
			u.ask(o.Hold)
		}
	}
	ofSeats := func(event id.ID, seats []int32) {
		for _, s := range seats {
			u.ask(t.l.facts.claim(decide.SeatKey{Event: event, Index: s}))
		}
	}
	for _, c := range commands {
		u.ask(holdOf(c))
		t.offersBehind(c, u.ask)
		ofOrder(orderOf(c))
		t.ordersBehind(c, ofOrder)
		switch c := c.(type) {
		case ledger.HoldSeats:
			ofSeats(c.Event, c.Seats)
		case ledger.Block:
			ofSeats(c.Event, c.Seats)
		case ledger.Unblock:
			ofSeats(c.Event, c.Seats)
		case ledger.Offer:
			if w := t.set.known[c.Wish]; w != nil {
				ofSeats(w.Event, c.Seats)
			}
		}
	}
	for h := range t.batch.missed.holds {
		u.ask(h)
	}
	for o := range t.batch.missed.orders {
		ofOrder(o)
	}
	return t.readHolds(ctx, u.ids)
}

func (t *transaction) readHolds(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	p := t.pipeline()
	var row holdScan
	p.rows(`SELECT `+holdColumns+` FROM shard.holds WHERE hold_id = ANY ($1::bigint[])`, []any{ids}, row.dest(), func() error {
		h, err := row.take()
		if err == nil {
			t.l.facts.holds.Put(h.ID, h)
		}
		return err
	})
	return p.send(ctx, t.conn)
}

func (t *transaction) learnEvents(ctx context.Context, commands []ledger.Command) error {
	u := unknown[*ledger.Event]{get: t.l.facts.events.Get}
	ofHold := func(hold id.ID) {
		if h, ok := t.l.facts.holds.Get(hold); ok {
			u.ask(h.Event)
		}
	}
	ofOrder := func(order id.ID) {
		if o, ok := t.l.facts.orders.Get(order); ok {
			u.ask(o.Event)
			if before, ok := t.l.facts.orders.Get(o.Exchange); ok {
				u.ask(before.Event)
			}
		}
	}
	for _, c := range commands {
		u.ask(c.EventHint())
		if w := t.set.known[wishNamed(c)]; w != nil {
			u.ask(w.Event)
		}
		ofHold(holdOf(c))
		ofOrder(orderOf(c))
		t.ordersBehind(c, ofOrder)
		ofOrder(t.exchangedBy(c))
	}
	for h := range t.batch.missed.holds {
		ofHold(h)
	}
	for e := range t.batch.missed.events {
		u.ask(e)
	}
	for _, f := range t.source.expired {
		for _, h := range f.holds {
			u.ask(h.Event)
		}
	}
	if len(u.ids) == 0 {
		return nil
	}
	var plans []string
	p := t.pipeline()
	var row eventScan
	p.rows(`SELECT `+eventColumns+` FROM shard.events WHERE event_id = ANY ($1::bigint[])`, []any{u.ids}, row.dest(), func() error {
		e, err := row.take()
		if err != nil {
			return err
		}
		t.l.facts.events.Put(e.ID, e)
		if _, ok := t.l.facts.layouts.Get(e.PlanHash); !ok && !slices.Contains(plans, e.PlanHash) {
			plans = append(plans, e.PlanHash)
		}
		return nil
	})
	if err := p.send(ctx, t.conn); err != nil || len(plans) == 0 {
		return err
	}
	return t.learnLayouts(ctx, plans)
}

func (t *transaction) learnLayouts(ctx context.Context, plans []string) error {
	p := t.pipeline()
	var body []byte
	p.rows(`SELECT body FROM shard.layouts WHERE plan_hash = ANY ($1::text[])`, []any{plans}, []any{&body}, func() error {
		l, err := decide.DecodeLayout(body)
		if err == nil {
			t.l.facts.layouts.Put(l.PlanHash, l)
		}
		return err
	})
	return p.send(ctx, t.conn)
}
