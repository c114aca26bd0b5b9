package postgres

import (
	"context"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// This file is what refunds, exchanges, transfers and the door want locked. They name a refund or a ticket; the order
// behind it, under whose lock it is, is learned first. An exchange has two orders, with two holds, perhaps of two events:
// they are locked with all others of their kind, by id.

// refundNamed is the refund that a command is about, 0 none.
func refundNamed(c ledger.Command) id.ID {
	switch c := c.(type) {
	case ledger.RefuseRefund:
		return c.Refund
	case ledger.RetryRefund:
		return c.Refund
	case ledger.ReleaseSeats:
		return c.Refund
	case ledger.RecordPayment:
		if c.State != ledger.PaymentCaptureRefused { // that one names a new refund
			return c.Refund
		}
	}
	return 0
}

// ticketsNamed are the tickets that a command is about.
func ticketsNamed(c ledger.Command) []id.ID {
	switch c := c.(type) {
	case ledger.Transfer:
		return []id.ID{c.Ticket}
	case ledger.CheckIn:
		return []id.ID{c.Ticket}
	case ledger.UndoCheckIn:
		return []id.ID{c.Ticket}
	case ledger.HoldSeats:
		return c.Exchange.Tickets
	case ledger.HoldPlaces:
		return c.Exchange.Tickets
	}
	return nil
}

func (t *transaction) orderOfTicket(ticket id.ID) id.ID {
	if k, ok := t.l.facts.tickets.Get(ticket); ok {
		return k.Order
	}
	return 0
}

func (t *transaction) orderOfRefund(refund id.ID) id.ID {
	if k, ok := t.l.facts.refunds.Get(refund); ok {
		return k.Order
	}
	return 0
}

// ordersBehind gives the orders of the refunds and tickets that a command names.
func (t *transaction) ordersBehind(c ledger.Command, each func(id.ID)) {
	each(t.orderOfRefund(refundNamed(c)))
	for _, k := range ticketsNamed(c) {
		each(t.orderOfTicket(k))
	}
}

// exchangedBy is the order whose tickets are exchanged by the hold that a command is about, 0 none.
func (t *transaction) exchangedBy(c ledger.Command) id.ID {
	hold := holdOf(c)
	if o, ok := t.l.facts.orders.Get(orderOf(c)); ok {
		if o.Exchange != 0 {
			return o.Exchange
		}
		hold = o.Hold
	}
	if h, ok := t.l.facts.holds.Get(hold); ok {
		return h.Exchange
	}
	return 0
}

func (t *transaction) learnRefunds(ctx context.Context, commands []ledger.Command) error {
	u := unknown[*decide.Refund]{get: t.l.facts.refunds.Get}
	for _, c := range commands {
		u.ask(refundNamed(c))
	}
	for k := range t.batch.missed.refunds {
		u.ask(k)
	}
	if len(u.ids) == 0 {
		return nil
	}
	var row refundScan
	p := t.pipeline()
	p.rows(`SELECT `+refundColumns+` FROM shard.refunds r WHERE r.refund_id = ANY ($1::bigint[])`, []any{u.ids}, row.dest(), func() error {
		r, err := row.row()
		t.l.facts.refunds.Put(r.ID, r)
		return err
	})
	return p.send(ctx, t.conn)
}

// learnTickets finds the tickets that commands name, and those whose seats are to be released: somebody else may have
// them, under whose limits they count.
func (t *transaction) learnTickets(ctx context.Context, commands []ledger.Command) error {
	u := unknown[*decide.Ticket]{get: t.l.facts.tickets.Get}
	for _, c := range commands {
		for _, k := range ticketsNamed(c) {
			u.ask(k)
		}
		if c, ok := c.(ledger.ReleaseSeats); ok {
			if r, ok := t.l.facts.refunds.Get(c.Refund); ok && r.State != ledger.RefundSeatReleased {
				for _, k := range r.Tickets {
					u.ask(k)
				}
			}
		}
	}
	for k := range t.batch.missed.tickets {
		u.ask(k)
	}
	if len(u.ids) == 0 {
		return nil
	}
	for _, k := range u.ids {
		t.source.asked.add(id.ID(k))
	}
	var row ticketScan
	p := t.pipeline()
	p.rows(`SELECT `+ticketColumns+` FROM shard.tickets t WHERE t.ticket_id = ANY ($1::bigint[])`, []any{u.ids}, row.dest(), func() error {
		k := &decide.Ticket{Ticket: row.take()}
		t.l.facts.tickets.Put(k.ID, k)
		return nil
	})
	return p.send(ctx, t.conn)
}

// learnExchanges finds the orders whose tickets are exchanged, and their holds.
func (t *transaction) learnExchanges(ctx context.Context, commands []ledger.Command) error {
	orders := unknown[*decide.Order]{get: t.l.facts.orders.Get}
	for _, c := range commands {
		orders.ask(t.exchangedBy(c))
	}
	if err := t.readOrders(ctx, orders.ids); err != nil {
		return err
	}
	holds := unknown[*decide.Hold]{get: t.l.facts.holds.Get}
	for _, c := range commands {
		if o, ok := t.l.facts.orders.Get(t.exchangedBy(c)); ok {
			holds.ask(o.Hold)
		}
	}
	return t.readHolds(ctx, holds.ids)
}

// refund adds a refund with its order.
func (s *lockset) refund(refund id.ID) *decide.Refund {
	if refund == 0 {
		return nil
	}
	s.refunds.add(refund)
	r, ok := s.facts.refunds.Get(refund)
	if !ok {
		return nil
	}
	s.order(r.Order)
	return r
}

// ticket adds a ticket's order.
func (s *lockset) ticket(ticket id.ID) (*decide.Ticket, *decide.Order) {
	t, ok := s.facts.tickets.Get(ticket)
	if !ok {
		return nil, nil
	}
	s.order(t.Order)
	o, _ := s.facts.orders.Get(t.Order)
	return t, o
}

func (s *lockset) recordPayment(c ledger.RecordPayment) {
	hold := s.order(c.Order)
	if c.State == ledger.PaymentCaptureRefused {
		s.end(hold)
		s.documentsOf(c.Order)
		return
	}
	if r := s.refund(c.Refund); r != nil && c.State == ledger.PaymentRefunded {
		s.allRefunds.add(r.Order)
	}
}

// gone adds what the places of an order free when they go back, all of them.
func (s *lockset) gone(order id.ID) {
	o, ok := s.facts.orders.Get(order)
	if !ok {
		return
	}
	s.documentsOf(order)
	h, ok := s.facts.holds.Get(o.Hold)
	if !ok {
		return
	}
	s.places(&h.Hold)
	if e, layout := s.facts.event(h.Event); e != nil {
		s.counters(e, layout, &h.Hold)
	}
}

// received adds the counters of what somebody else than the buyer has.
func (s *lockset) received(t *decide.Ticket, customer id.ID) {
	if e, layout := s.facts.event(t.Event); e != nil {
		place := decide.PlaceOf(t)
		place.Customer = customer
		decide.Counters(e, layout, place, s.limits.add, func(decide.QuotaKey) {})
	}
}

func (s *lockset) releaseSeats(c ledger.ReleaseSeats) {
	r := s.refund(c.Refund)
	if r == nil || r.State == ledger.RefundSeatReleased {
		return
	}
	s.gone(r.Order)
	for _, k := range r.Tickets {
		if t, o := s.ticket(k); o != nil && t.Customer != o.Customer {
			s.received(t, t.Customer)
		}
	}
}

func (s *lockset) transfer(c ledger.Transfer) {
	s.ticket(s.key(decide.IdemKey{Customer: c.Customer, Operation: ledger.OpTransfer, Value: c.Key.Value}))
	t, o := s.ticket(c.Ticket)
	if o == nil {
		return
	}
	for _, customer := range []id.ID{c.To, t.Customer} {
		if customer != o.Customer {
			s.received(t, customer)
		}
	}
	documents := []string{c.Document}
	if int(t.Place) < len(o.Documents) {
		documents = append(documents, o.Documents[t.Place])
	}
	s.documents(t.Event, documents)
}

// exchange adds the order whose tickets a new hold is to exchange; and those of tickets that are of another, and refused.
func (s *lockset) exchange(c ledger.Exchange) {
	s.order(c.Order)
	for _, k := range c.Tickets {
		s.ticket(k)
	}
}

// swap adds what an exchange gives back and counts anew.
func (s *lockset) swap(o *decide.Order, h *decide.Hold) {
	s.order(o.Exchange)
	s.gone(o.Exchange)
	full := h.Hold
	full.Exchanged = nil
	if e, layout := s.facts.event(h.Event); e != nil {
		s.counters(e, layout, &h.Hold)
		s.counters(e, layout, &full)
	}
}
