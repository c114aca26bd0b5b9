package demo

import (
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// afterwards compares what was said after the sale: refunds, tickets that were passed on, and the doors. And it looks at
// every ticket there is: none is void, and none used, unless somebody asked for that.
func (c *checker) afterwards() {
	for _, s := range c.later.refunds {
		c.refund(s)
	}
	for i := range c.later.passed {
		c.passed(&c.later.passed[i])
	}
	for i := range c.later.checkIns {
		c.checkIn(&c.later.checkIns[i])
	}
	for number, o := range c.ledger.orders {
		for ticket, t := range o.tickets {
			c.ticket(number, o, ticket, t)
		}
	}
	for ticket, uses := range c.ledger.checkIns {
		for _, u := range uses {
			if !c.later.entries[ticket] {
				c.bad("%s was let in, and nobody was at a door with it", ticket.Text(id.Ticket))
			}
			if u.undone && !c.later.undos[ticket] {
				c.bad("a use of %s is undone, and nobody asked for that", ticket.Text(id.Ticket))
			}
		}
	}
}

// allAsked says whether somebody asked for something after which each of these tickets is void.
func (c *checker) allAsked(tickets []id.ID) bool {
	return len(tickets) > 0 && !slices.ContainsFunc(tickets, func(t id.ID) bool { return c.later.voids[t] == "" })
}

func (c *checker) ticket(order id.ID, o *storedOrder, number id.ID, t storedTicket) {
	name := number.Text(id.Ticket)
	refused := o.state == ledger.OrderRefunded && o.reason == ledger.ReasonCaptureRefused
	if t.state == ledger.TicketVoid && c.later.voids[number] == "" && !refused {
		c.bad("%s of %s, which is %s, is void, and nobody asked for that", name, order.Text(id.Order), o.state)
	}
	if t.state == ledger.TicketUsed && !c.later.entries[number] {
		c.bad("%s is used, and nobody was at a door with it", name)
	}
	if t.state == ledger.TicketUsed && !slices.ContainsFunc(c.ledger.checkIns[number], func(u storedUse) bool { return !u.conflict && !u.undone }) {
		c.bad("%s is used, and no use of it is written down", name)
	}
}

func (c *checker) refund(s *backSaid) {
	name := s.Refund.Text(id.Refund)
	r := c.ledger.back[s.Refund]
	if r == nil {
		c.bad("%s was acknowledged and is not in the ledger", name)
		return
	}
	switch {
	case r.order != s.Booking:
		c.bad("%s is of another booking than was said", name)
	case !slices.Equal(slices.Sorted(slices.Values(r.tickets)), slices.Sorted(slices.Values(s.Tickets))):
		c.bad("%s is of other tickets than was said", name)
	case r.amount != s.Amount || r.kept != s.Kept:
		c.bad("%s gives %d back and keeps %d, %d and %d were said", name, r.amount, r.kept, s.Amount, s.Kept)
	case int(r.state)-1 < slices.Index(stages, s.State):
		c.bad("%s was acknowledged as %s and is %s", name, s.State, r.state)
	}
	o := c.ledger.orders[r.order]
	for _, t := range r.tickets {
		if o == nil || o.tickets[t].state != ledger.TicketVoid || o.tickets[t].refund != s.Refund {
			c.bad("%s was given back by %s and is valid, or another's", t.Text(id.Ticket), name)
		}
	}
}

func (c *checker) passed(s *passedSaid) {
	name := s.Ticket.Text(id.Ticket)
	o := c.ledger.orders[s.Booking]
	if o == nil {
		c.bad("%s was passed on, and its booking is not in the ledger", name)
		return
	}
	t, ok := o.tickets[s.Ticket]
	if !ok || t.was != s.Was || t.state == ledger.TicketVoid && c.later.voids[s.Ticket] == "" {
		c.bad("%s was passed on as %s, which is not there or void", s.Was.Text(id.Ticket), name)
		return
	}
	c.customer(name, s.To, t.customer)
	if o.tickets[s.Was].state != ledger.TicketVoid {
		c.bad("%s was passed on and is not void", s.Was.Text(id.Ticket))
	}
}

func (c *checker) checkIn(s *checkInSaid) {
	name := s.Ticket.Text(id.Ticket)
	uses := c.ledger.checkIns[s.Ticket]
	i := slices.IndexFunc(uses, func(u storedUse) bool { return u.at == s.At && u.device == s.Device })
	switch {
	case i < 0:
		c.bad("a use of %s by %s was acknowledged and is not in the ledger", name, s.Device)
	case uses[i].offline != s.Offline || uses[i].conflict != s.Conflict:
		c.bad("a use of %s by %s is another than was said", name, s.Device)
	case s.Undone && !uses[i].undone:
		c.bad("a use of %s by %s was acknowledged as undone and is not", name, s.Device)
	}
}
