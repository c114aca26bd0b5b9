package ledger

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"onsale/internal/id"
)

// What the model answers is copied, so that no caller shares memory with it.

func cloneEvent(e Event) Event {
	e.Tiers = slices.Clone(e.Tiers)
	e.Limits = slices.Clone(e.Limits)
	e.Quotas = slices.Clone(e.Quotas)
	for i := range e.Quotas {
		e.Quotas[i].Steps = slices.Clone(e.Quotas[i].Steps)
	}
	e.Room.Lanes = slices.Clone(e.Room.Lanes)
	return e
}

func (m *Model) holdNow(hold id.ID) *Hold {
	h := *m.holds[hold]
	h.Lines = slices.Clone(h.Lines)
	h.Exchanged = slices.Clone(h.Exchanged)
	return &h
}

func (m *Model) orderNow(order id.ID) *Order {
	o := *m.orders[order]
	o.Documents = slices.Clone(o.Documents)
	o.Funds = slices.Clone(o.Funds)
	for _, t := range m.ticketsOf(&o) {
		o.Tickets = append(o.Tickets, *t)
	}
	return &o
}

func (m *Model) ticketNow(ticket id.ID) *Ticket {
	t := *m.tickets[ticket]
	return &t
}

// ticketsOf are all tickets of an order, those passed on too, by id.
func (m *Model) ticketsOf(o *Order) []*Ticket {
	var tickets []*Ticket
	for _, t := range m.tickets {
		if t.Order == o.ID {
			tickets = append(tickets, t)
		}
	}
	slices.SortFunc(tickets, func(a, b *Ticket) int { return cmp.Compare(a.ID, b.ID) })
	return tickets
}

// validTickets are those of an order that count (A4).
func (m *Model) validTickets(o *Order) []*Ticket {
	return slices.DeleteFunc(m.ticketsOf(o), func(t *Ticket) bool { return t.State == TicketVoid })
}

func (m *Model) refundNow(refund id.ID) *Refund {
	if r := m.refunds[refund]; r != nil {
		copied := *r
		copied.Tickets = slices.Clone(r.Tickets)
		return &copied
	}
	return nil
}

// refundAnswer is the answer about a refund, and the order whose tickets or money it gives back.
func (m *Model) refundAnswer(r *Refund) Result {
	return Result{Order: m.orderNow(r.Order), Refund: m.refundNow(r.ID)}
}

// answer is the answer about an order that is or was to be sold: the order and its hold.
func (m *Model) answer(o *Order) Result {
	return Result{Order: m.orderNow(o.ID), Hold: m.holdNow(o.Hold)}
}

// Event is the row of an event.
func (m *Model) Event(_ context.Context, event id.ID) (Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.events[event]
	if e == nil {
		return Event{}, ErrNotFound
	}
	return cloneEvent(e.Event), nil
}

// Events are all rows, by id.
func (m *Model) Events(context.Context) ([]Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Event
	for _, event := range slices.Sorted(maps.Keys(m.events)) {
		all = append(all, cloneEvent(m.events[event].Event))
	}
	return all, nil
}

// Layout is that of an event's plan, as it came with the first event on it.
func (m *Model) Layout(_ context.Context, planHash string) (*Layout, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		if l := e.layout; l.PlanHash == planHash {
			l.Section, l.Category, l.Run = slices.Clone(l.Section), slices.Clone(l.Category), slices.Clone(l.Run)
			l.Quality, l.Areas = slices.Clone(l.Quality), slices.Clone(l.Areas)
			return &l, nil
		}
	}
	return nil, ErrNotFound
}

// Snapshot is the picture of one event.
func (m *Model) Snapshot(_ context.Context, event id.ID) (Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.events[event]
	if e == nil {
		return Snapshot{}, ErrNotFound
	}
	s := Snapshot{Event: cloneEvent(e.Event), Version: e.version, Now: m.clock(), Seats: m.seatStates(e)}
	for i, a := range e.layout.Areas {
		held := 0
		for _, h := range m.holds {
			if h.State == HoldLive && h.Event == event && h.Area == int32(i) {
				held += len(h.Lines)
			}
		}
		s.Areas = append(s.Areas, AreaState{
			Capacity: int32(a.Capacity), Held: int32(held), Returned: int32(e.areas[i].returned),
			Sold: int32(a.Capacity - e.areas[i].returned - m.areaFree(e, int32(i)) - held),
		})
	}
	return s, nil
}

// ChangesSince are an event's changes after a version; the model keeps them all.
func (m *Model) ChangesSince(_ context.Context, event id.ID, version int64, maxCount int) ([]Change, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.events[event]
	if e == nil {
		return nil, false, ErrNotFound
	}
	var later []Change
	for _, c := range e.changes {
		if c.Version > version && len(later) < maxCount {
			c.Seats, c.Areas = slices.Clone(c.Seats), slices.Clone(c.Areas)
			later = append(later, c)
		}
	}
	return later, version > e.version, nil
}

// Hold is a hold as it is now.
func (m *Model) Hold(_ context.Context, hold id.ID) (Hold, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holds[hold] == nil {
		return Hold{}, ErrNotFound
	}
	return *m.holdNow(hold), nil
}

// Order is an order as it is now, with its tickets.
func (m *Model) Order(_ context.Context, order id.ID) (Order, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.orders[order] == nil {
		return Order{}, ErrNotFound
	}
	return *m.orderNow(order), nil
}

// Ticket is a ticket as it is now.
func (m *Model) Ticket(_ context.Context, ticket id.ID) (Ticket, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tickets[ticket]
	if t == nil {
		return Ticket{}, ErrNotFound
	}
	return *t, nil
}

// OrdersOf are a customer's orders, newest first.
func (m *Model) OrdersOf(_ context.Context, customer, before id.ID, maxCount int) ([]Order, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ordersWhere(maxCount,
		func(o *Order) bool { return o.Customer == customer && (before == 0 || o.ID < before) },
		func(a, b *Order) int { return cmp.Compare(b.ID, a.ID) }), nil
}

// PendingOrders are the orders PENDING and untouched since before an instant, oldest first.
func (m *Model) PendingOrders(_ context.Context, before Time, maxCount int) ([]Order, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ordersWhere(maxCount,
		func(o *Order) bool { return o.State == OrderPending && o.Updated < before },
		func(a, b *Order) int { return cmp.Or(cmp.Compare(a.Updated, b.Updated), cmp.Compare(a.ID, b.ID)) }), nil
}

func (m *Model) ordersWhere(maxCount int, which func(*Order) bool, order func(a, b *Order) int) []Order {
	var found []*Order
	for _, o := range m.orders {
		if which(o) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, order)
	var answer []Order
	for _, o := range found[:min(len(found), maxCount)] {
		answer = append(answer, *m.orderNow(o.ID))
	}
	return answer
}

// Payments are those known of an order.
func (m *Model) Payments(_ context.Context, order id.ID) ([]Payment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var known []Payment
	for _, p := range m.payments {
		if p.Order == order {
			known = append(known, *p)
		}
	}
	slices.SortFunc(known, func(a, b Payment) int { return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.ID, b.ID)) })
	return known, nil
}

// OpenPayments are the payments that something is due for, by order, payment and refund.
func (m *Model) OpenPayments(_ context.Context, maxCount int) ([]OpenPayment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var open []OpenPayment
	for _, p := range m.payments {
		if o := m.orders[p.Order]; p.State == PaymentAuthorized && p.Refund == 0 && o.State == OrderPaid && o.Payment == p.ID {
			open = append(open, OpenPayment{Payment: *p})
		}
	}
	for _, r := range m.refunds {
		if r.State == RefundRequested && r.Refused == "" {
			open = append(open, OpenPayment{Payment: *m.payments[modelPayment{r.From, r.Payment}], Refund: m.refundNow(r.ID)})
		}
	}
	refund := func(o OpenPayment) id.ID {
		if o.Refund == nil {
			return 0
		}
		return o.Refund.ID
	}
	return page(open, maxCount, func(a, b OpenPayment) int {
		return cmp.Or(cmp.Compare(a.Payment.Order, b.Payment.Order), cmp.Compare(a.Payment.ID, b.Payment.ID), cmp.Compare(refund(a), refund(b)))
	}), nil
}

// Now is the shard's clock.
func (m *Model) Now(context.Context) (Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock(), nil
}

func (m *Model) clock() Time { return max(m.now, m.source()) }

// NextExpiry is when the next live hold runs out.
func (m *Model) NextExpiry(context.Context) (Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var next Time
	for _, h := range m.holds {
		if h.State == HoldLive && (next == 0 || h.Expires < next) {
			next = h.Expires
		}
	}
	return next, nil
}

// The outbox.

type modelNotice struct {
	Notice
	published   bool
	publishedAt Time
}

// Unpublished are the notices not marked yet, in the order in which they were made.
func (m *Model) Unpublished(_ context.Context, maxCount int, skip []id.ID) ([]Notice, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var waiting []Notice
	for _, n := range m.notices {
		if !n.published && len(waiting) < maxCount && !slices.Contains(skip, n.Order) {
			copied := n.Notice
			copied.Body = slices.Clone(n.Body)
			waiting = append(waiting, copied)
		}
	}
	return waiting, nil
}

// MarkPublished marks notices as published.
func (m *Model) MarkPublished(_ context.Context, lease Lease, notices []Notice) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.leads(lease) {
		return ErrFenced
	}
	for i := range m.notices {
		n := &m.notices[i]
		named := func(o Notice) bool { return o.Order == n.Order && o.Sequence == n.Sequence }
		if !n.published && slices.ContainsFunc(notices, named) {
			n.published, n.publishedAt = true, m.clock()
		}
	}
	return nil
}

// PrunePublished deletes notices published before an instant.
func (m *Model) PrunePublished(_ context.Context, lease Lease, before Time, maxCount int) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.leads(lease) {
		return 0, ErrFenced
	}
	count := 0
	m.notices = slices.DeleteFunc(m.notices, func(n modelNotice) bool {
		gone := n.published && n.publishedAt < before && count < maxCount
		if gone {
			count++
		}
		return gone
	})
	return count, nil
}

// Leases.

func (m *Model) leads(l Lease) bool {
	held, ok := m.leases[l.Name]
	return ok && held.Holder == l.Holder && held.Fence == l.Fence && held.Until > m.clock()
}

// Acquire takes or renews a lease.
func (m *Model) Acquire(_ context.Context, name, holder string, ttl Duration) (Lease, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.leases[name]
	if held.Until > m.clock() && held.Holder != holder {
		return Lease{}, false, nil
	}
	if held.Holder != holder || held.Until <= m.clock() {
		held.Fence++
	}
	held.Name, held.Holder, held.Until = name, holder, m.clock()+Time(ttl)
	m.leases[name] = held
	return held, true, nil
}

// ReleaseLease gives a lease back.
func (m *Model) ReleaseLease(_ context.Context, lease Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leads(lease) {
		held := m.leases[lease.Name]
		held.Until = 0
		m.leases[lease.Name] = held
	}
	return nil
}
