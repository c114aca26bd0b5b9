package postgres

import (
	"context"
	"maps"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// A source answers from the rows that a transaction has locked. A key with a nil row is locked too, as far as that can
// be: there is no such row. A key that is not there was not asked for in time: it is noted for the next round.
type source struct {
	ctx    context.Context
	t      *transaction
	missed *wants
	// free are the seats that were free by a plain read, of events in which a rescue looks for others. guessed says that
	// the decisions went on with some of them although they are not locked: they are worth nothing then, but have found in
	// one round what all rescues of the batch want.
	free    map[id.ID]set[int32]
	guessed bool

	events     map[id.ID]*ledger.Event
	keys       map[decide.IdemKey]*decide.Key
	limits     map[decide.LimitKey]*int
	quotas     map[decide.QuotaKey]*int
	orders     map[id.ID]*decide.Order
	pays       map[decide.PaymentKey]*decide.Payment // of the orders
	refunds    map[id.ID]*decide.Refund
	tickets    map[id.ID][]*decide.Ticket  // by order
	allRefunds map[id.ID][]*decide.Refund  // by order
	uses       map[id.ID][]*decide.CheckIn // by ticket
	asked      set[id.ID]                  // tickets and refunds that were looked for before the locks
	holds      map[id.ID]*decide.Hold
	buckets    map[decide.AreaKey][]*decide.Bucket
	seats      map[decide.SeatKey]*decide.Seat
	wishes     map[id.ID]*decide.Wish

	roomRows

	expired map[expiredOf]*found
	soonest ledger.Time            // when the first live hold runs out, 0 where there is none
	frozen  map[id.ID]*decide.Hold // holds of an event whose own row is locked for change: nobody else can write them
}

func newSource(ctx context.Context, t *transaction) *source {
	return &source{
		ctx: ctx, t: t, missed: &t.batch.missed,
		pays: map[decide.PaymentKey]*decide.Payment{}, refunds: map[id.ID]*decide.Refund{}, tickets: map[id.ID][]*decide.Ticket{},
		allRefunds: map[id.ID][]*decide.Refund{}, uses: map[id.ID][]*decide.CheckIn{}, asked: set[id.ID]{},
		expired: map[expiredOf]*found{},
	}
}

// lockedOrder takes up a locked order. What never changes is remembered; where it is not, the order is missing.
func (s *source) lockedOrder(order id.ID, row *orderScan) error {
	known, ok := s.t.l.facts.orders.Get(order)
	if !ok {
		s.missed.orders.add(order)
		delete(s.orders, order)
		return nil
	}
	if row.documents != "" {
		if err := row.takeMoney(&known.Order); err != nil {
			return err
		}
	}
	known.Hold, known.State, known.Reason, known.Payment = id.ID(row.hold), ledger.OrderState(row.state), row.reason, row.payment
	known.Rescued, known.AttemptOpen = row.rescued != 0, row.open != 0
	known.Updated, known.Sequence = ledger.Time(row.updated), row.sequence
	copied := *known
	s.orders[order] = &copied
	return nil
}

// lockedHold takes up a locked hold.
func (s *source) lockedHold(hold id.ID, row *holdScan) error {
	known, ok := s.t.l.facts.holds.Get(hold)
	if !ok {
		s.missed.holds.add(hold)
		delete(s.holds, hold)
		return nil
	}
	if row.lines != "" {
		if err := row.takeLists(&known.Hold, &known.Draws); err != nil {
			return err
		}
	}
	known.State, known.Expires, known.Extended = ledger.HoldState(row.state), ledger.Time(row.expires), int(row.extended)
	known.Window, known.Order, known.Ended = row.window != 0, id.ID(row.order), ledger.Time(row.ended)
	copied := *known
	s.holds[hold] = &copied
	return nil
}

// Event implements decide.Source.
func (s *source) Event(event id.ID) (*ledger.Event, error) {
	if e, ok := s.events[event]; ok {
		return e, nil
	}
	s.missed.events.add(event)
	return nil, decide.ErrMissing
}

// Layout implements decide.Source. Layouts never change, so they need no lock.
func (s *source) Layout(hash string) (*ledger.Layout, error) {
	if l, ok := s.t.l.facts.layouts.Get(hash); ok {
		return l, nil
	}
	if err := s.t.learnLayouts(s.ctx, []string{hash}); err != nil {
		return nil, err
	}
	l, _ := s.t.l.facts.layouts.Get(hash)
	return l, nil
}

// Seat implements decide.Source.
func (s *source) Seat(k decide.SeatKey) (*decide.Seat, error) {
	if r, ok := s.seats[k]; ok {
		return r, nil
	}
	s.missed.seats.add(k)
	if s.free[k.Event].has(k.Index) && s.t.batch.round < roundsMax {
		s.guessed = true
		return &decide.Seat{SeatKey: k}, nil
	}
	return nil, decide.ErrMissing
}

// Buckets implements decide.Source.
func (s *source) Buckets(k decide.AreaKey) ([]*decide.Bucket, error) {
	if b, ok := s.buckets[k]; ok {
		return b, nil
	}
	s.missed.areas.add(k)
	return nil, decide.ErrMissing
}

// Hold implements decide.Source.
func (s *source) Hold(hold id.ID) (*decide.Hold, error) {
	if h, ok := s.holds[hold]; ok {
		return h, nil
	}
	if h, ok := s.frozen[hold]; ok {
		return h, nil
	}
	s.missed.holds.add(hold)
	return nil, decide.ErrMissing
}

// Order implements decide.Source.
func (s *source) Order(order id.ID) (*decide.Order, error) {
	if o, ok := s.orders[order]; ok {
		return o, nil
	}
	s.missed.orders.add(order)
	return nil, decide.ErrMissing
}

// Payment implements decide.Source: all payments of a locked order were read.
func (s *source) Payment(k decide.PaymentKey) (*decide.Payment, error) {
	if _, ok := s.orders[k.Order]; ok {
		return s.pays[k], nil
	}
	s.missed.orders.add(k.Order)
	return nil, decide.ErrMissing
}

// Refund implements decide.Source.
func (s *source) Refund(refund id.ID) (*decide.Refund, error) {
	r, ok := s.refunds[refund]
	if !ok {
		s.missed.refunds.add(refund)
		return nil, decide.ErrMissing
	}
	if r == nil {
		return nil, nil
	}
	if _, locked := s.orders[r.Order]; !locked { // by its order's lock alone it may be decided on
		s.missed.orders.add(r.Order)
		return nil, decide.ErrMissing
	}
	return r, nil
}

// RefundsOf implements decide.Source.
func (s *source) RefundsOf(order id.ID) ([]*decide.Refund, error) {
	if r, ok := s.allRefunds[order]; ok {
		return r, nil
	}
	s.missed.allRefunds.add(order)
	return nil, decide.ErrMissing
}

// TicketOrder implements decide.Source. It never changes, so it needs no lock.
func (s *source) TicketOrder(ticket id.ID) (id.ID, error) {
	if t, ok := s.t.l.facts.tickets.Get(ticket); ok {
		return t.Order, nil
	}
	if s.asked.has(ticket) {
		return 0, nil
	}
	s.missed.tickets.add(ticket)
	return 0, decide.ErrMissing
}

// CheckIns implements decide.Source.
func (s *source) CheckIns(ticket id.ID) ([]*decide.CheckIn, error) {
	if u, ok := s.uses[ticket]; ok {
		return u, nil
	}
	s.missed.uses.add(ticket)
	return nil, decide.ErrMissing
}

// Tickets implements decide.Source.
func (s *source) Tickets(order id.ID) ([]*decide.Ticket, error) {
	if t, ok := s.tickets[order]; ok {
		return t, nil
	}
	if o := s.orders[order]; o != nil && o.State != ledger.OrderPaid && o.State != ledger.OrderRefunded {
		return nil, nil // it has none, as the locked row says
	}
	s.missed.orders.add(order)
	return nil, decide.ErrMissing
}

// Key implements decide.Source.
func (s *source) Key(k decide.IdemKey) (*decide.Key, error) {
	if r, ok := s.keys[k]; ok {
		return r, nil
	}
	s.missed.keys.add(k)
	return nil, decide.ErrMissing
}

// Limit implements decide.Source.
func (s *source) Limit(k decide.LimitKey) (int, error) {
	if n, ok := s.limits[k]; ok {
		if n == nil {
			return 0, nil
		}
		return *n, nil
	}
	s.missed.limits.add(k)
	return 0, decide.ErrMissing
}

// Quota implements decide.Source.
func (s *source) Quota(k decide.QuotaKey) (int, error) {
	if n, ok := s.quotas[k]; ok {
		if n == nil {
			return 0, nil
		}
		return *n, nil
	}
	s.missed.quotas.add(k)
	return 0, decide.ErrMissing
}

// Expired implements decide.Source. Where the hold that runs out first is not due, there are none; else they must have
// been asked for before the locks, so that they could be locked.
func (s *source) Expired(k decide.ExpiredKey, now ledger.Time) ([]id.ID, error) {
	if s.soonest == 0 || s.soonest > now {
		return nil, nil
	}
	q := expiredOf{Customer: k.Customer, Event: k.Event, Area: k.Area}
	f := s.expired[q]
	if f == nil || now > f.until || (!f.complete && len(f.holds) < k.Max) {
		s.missed.expired[q] = max(s.missed.expired[q], k.Max)
		return nil, decide.ErrMissing
	}
	var ids []id.ID
	for _, h := range f.holds {
		if h.Expires <= now && len(ids) < k.Max {
			ids = append(ids, h.ID)
		}
	}
	return ids, nil
}

// Free implements decide.Source. It is a plain read: which of them is taken is decided on the seats' own rows, once they
// are locked.
func (s *source) Free(event id.ID) ([]int32, error) {
	free, known := s.free[event]
	if !known {
		free = set[int32]{}
		var index int32
		p := s.t.pipeline()
		p.rows(`SELECT seat_index FROM shard.seats WHERE event_id = $1 AND state = 0`, []any{int64(event)}, []any{&index}, func() error {
			free.add(index)
			return nil
		})
		if err := p.send(s.ctx, s.t.conn); err != nil {
			return nil, err
		}
		if s.free == nil {
			s.free = map[id.ID]set[int32]{}
		}
		s.free[event] = free
	}
	return slices.Collect(maps.Keys(free)), nil
}

// Claims implements decide.Source. Only a SetEvent asks, which has the event's row locked for change: nobody else can
// make, change or end a hold of the event now.
func (s *source) Claims(event id.ID) ([]id.ID, error) {
	if !s.t.set.exclusive || !s.t.set.events.has(event) {
		s.missed.events.add(event)
		return nil, decide.ErrMissing
	}
	if s.frozen == nil {
		s.frozen = map[id.ID]*decide.Hold{}
	}
	var ids []id.ID
	var row holdScan
	p := s.t.pipeline()
	p.rows(`SELECT `+holdColumns+` FROM shard.holds WHERE event_id = $1 AND state IN (1, 4) ORDER BY hold_id`, []any{int64(event)}, row.dest(), func() error {
		h, err := row.take()
		if err != nil {
			return err
		}
		ids = append(ids, h.ID)
		s.frozen[h.ID] = h
		return nil
	})
	return ids, p.send(s.ctx, s.t.conn)
}

// Documents implements decide.Source, under the same lock as Claims.
func (s *source) Documents(event id.ID) ([]decide.OrderDocuments, error) {
	var all []decide.OrderDocuments
	var order int64
	var text string
	p := s.t.pipeline()
	p.rows(`SELECT order_id, documents FROM shard.orders o WHERE event_id = $1 AND documents <> '[]'
	    AND (state IN (1, 2) OR state = 5 AND EXISTS (SELECT 1 FROM shard.holds h WHERE h.hold_id = o.hold_id AND h.state = 4)) ORDER BY order_id`,
		[]any{int64(event)}, []any{&order, &text}, func() error {
			list, err := decide.DecodeDocuments(text)
			all = append(all, decide.OrderDocuments{Order: id.ID(order), Documents: list})
			return err
		})
	return all, p.send(s.ctx, s.t.conn)
}

// Received implements decide.Source, under the same lock as Claims.
func (s *source) Received(event id.ID) ([]*decide.Ticket, error) {
	var all []*decide.Ticket
	var row ticketScan
	p := s.t.pipeline()
	p.rows(`SELECT `+ticketColumns+` FROM shard.tickets t JOIN shard.orders o ON o.order_id = t.order_id
	    WHERE t.was_id <> 0 AND t.event_id = $1 AND t.gone = 0 AND o.customer_id <> t.customer_id`,
		[]any{int64(event)}, row.dest(), func() error {
			all = append(all, &decide.Ticket{Ticket: row.take()})
			return nil
		})
	return all, p.send(s.ctx, s.t.conn)
}
