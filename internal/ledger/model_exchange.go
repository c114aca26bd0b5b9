package ledger

import (
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// Exchange (A22): a hold marks the tickets that it is to take the place of; the Confirm of its order swaps them, in one
// step. Until then the old tickets are as good as ever, but for going back or on to somebody else.

// ticketsToExchange are the tickets that a hold for an event is to take the place of, by id; none without an Exchange.
func (m *Model) ticketsToExchange(e *modelEvent, customer id.ID, x Exchange) ([]*Ticket, *fault.Error) {
	if x.Order == 0 && len(x.Tickets) == 0 {
		return nil, nil
	}
	named := slices.Sorted(slices.Values(x.Tickets))
	if len(named) > SeatsPerHoldCap || len(slices.Compact(slices.Clone(named))) < len(named) {
		return nil, &fault.Error{Code: fault.Invalid, Field: "tickets"}
	}
	o := m.orders[x.Order]
	if o == nil {
		return nil, fault.New(fault.OrderUnknown, "")
	}
	for _, ticket := range x.Tickets {
		switch t := m.tickets[ticket]; {
		case t == nil:
			return nil, fault.New(fault.TicketUnknown, "")
		case t.Order != o.ID:
			return nil, &fault.Error{Code: fault.Invalid, Field: "tickets"}
		}
	}
	if o.Customer != customer {
		return nil, fault.New(fault.WrongCustomer, "")
	}
	var given []*Ticket
	for _, t := range m.ticketsOf(o) {
		all := len(named) == 0 && t.State == TicketValid && t.Customer == customer
		if all || slices.Contains(named, t.ID) {
			given = append(given, t)
		}
	}
	for _, t := range given {
		if t.Customer != customer {
			return nil, fault.New(fault.WrongCustomer, "")
		}
	}
	return given, m.notExchangeable(e, o, given, 0)
}

// notExchangeable is the fault with which tickets of an order cannot be given up for places of an event now, nil where they
// can. hold is the one that has marked them already, 0 for none.
func (m *Model) notExchangeable(e *modelEvent, o *Order, given []*Ticket, hold id.ID) *fault.Error {
	old := m.events[o.Event]
	parts := len(o.Funds)
	if o.Amount > 0 {
		parts++
	}
	switch {
	case old.Exchanges.Until <= m.now || old.Paying() != nil:
		return fault.New(fault.NotExchangeable, "the event does not allow it now")
	case e.ID != old.ID && (e.Show == 0 || e.Show != old.Show):
		return fault.New(fault.NotExchangeable, "another show")
	case e.Currency != o.Currency:
		return fault.New(fault.NotExchangeable, "another currency")
	case parts > RefundPartsMax-1:
		return fault.New(fault.NotExchangeable, "exchanged too often")
	case o.State != OrderPaid || len(given) == 0:
		return fault.New(fault.Conflict, "nothing to exchange")
	}
	for _, t := range given {
		if t.State != TicketValid || m.marked(t) && t.Exchange != hold {
			return fault.New(fault.Conflict, "ticket %d is %s, or being exchanged", t.ID, t.State)
		}
	}
	if !m.moneyTaken(o) {
		return &fault.Error{Code: fault.PaymentInProgress, Order: o.ID}
	}
	if totalOf(given) > m.moneyLeft(o) {
		return fault.New(fault.Conflict, "less was captured than the tickets cost")
	}
	return nil
}

// marked says whether a live hold is to take a ticket's place.
func (m *Model) marked(t *Ticket) bool {
	h := m.holds[t.Exchange]
	return h != nil && h.Live(m.now)
}

// ownPayment is the payment that made an order PAID; nil where it cost nothing (more).
func (m *Model) ownPayment(o *Order) *Payment {
	if o.Amount == 0 {
		return nil
	}
	return m.payments[modelPayment{o.ID, o.Payment}]
}

// moneyTaken says whether nothing is to be captured any more of what an order cost.
func (m *Model) moneyTaken(o *Order) bool {
	p := m.ownPayment(o)
	return p == nil || p.State == PaymentCaptured || p.State == PaymentRefunded
}

// moneyLeft is what an order has that is promised to nobody. It is at least what its valid tickets cost, unless the provider
// captured less than it had authorized.
func (m *Model) moneyLeft(o *Order) int64 {
	var left int64
	if p := m.ownPayment(o); p != nil {
		left = p.Captured - p.Promised
	}
	for _, f := range o.Funds {
		left += f.Left
	}
	return left
}

func exchangedPlaces(given []*Ticket) []ExchangedPlace {
	var places []ExchangedPlace
	for _, t := range given {
		places = append(places, ExchangedPlace{Ticket: t.ID, Event: t.Event, Category: t.Category})
	}
	return places
}

func (m *Model) markExchanged(h *Hold, given []*Ticket) {
	h.Exchanged = exchangedPlaces(given)
	for _, t := range given {
		t.Exchange = h.ID
	}
}

// exchangedNow are the tickets that a hold is to take the place of, if that may still be begun.
func (m *Model) exchangedNow(h *Hold, e *modelEvent) ([]*Ticket, *fault.Error) {
	if h.Exchange == 0 {
		return nil, nil
	}
	given := m.exchangedBy(h)
	return given, m.notExchangeable(e, m.orders[h.Exchange], given, h.ID)
}

func (m *Model) exchangedBy(h *Hold) []*Ticket {
	var given []*Ticket
	for _, x := range h.Exchanged {
		given = append(given, m.tickets[x.Ticket])
	}
	return given
}

func totalOf(tickets []*Ticket) int64 {
	var sum int64
	for _, t := range tickets {
		sum += t.Total
	}
	return sum
}

// exchangeFee is what is kept of tickets that are given up, by their event's rule as it is now.
func (m *Model) exchangeFee(given []*Ticket) int64 {
	var sum int64
	for _, t := range given {
		sum += min(t.Total, m.events[t.Event].Exchanges.Fee)
	}
	return sum
}

// confirmExchange swaps, or gives the payment back where the old tickets are not what they were. The hold is live.
func (m *Model) confirmExchange(c Confirm, o *Order, h *Hold) Result {
	old, given := m.orders[o.Exchange], m.exchangedBy(h)
	possible := old.State == OrderPaid && m.events[old.Event].Paying() == nil && totalOf(given) <= m.moneyLeft(old)
	for _, t := range given {
		possible = possible && t.State == TicketValid && t.Exchange == h.ID
	}
	if !possible {
		m.endOrder(o, OrderFailed, ReasonNotExchangeable)
		return m.giveBack(c, o, ReasonNotExchangeable)
	}
	p := m.payments[modelPayment{o.ID, c.Payment}]
	if o.Amount > 0 && !c.Captured && (p == nil || p.State != PaymentCaptured) {
		return refuseField(fault.Invalid, "captured")
	}
	m.swap(c, o, h, old, given)
	return m.sell(c, o, h)
}

// swap gives the old tickets up for the order: what they cost is partly kept (the fee), partly counts for the order (its
// credit), and partly goes back. What the customer agreed to pay on top was fixed when the payment began; so is the credit.
func (m *Model) swap(c Confirm, o *Order, h *Hold, old *Order, given []*Ticket) {
	credit := h.Total() - o.Amount
	rest := totalOf(given) - credit
	kept := rest
	if o.Amount == 0 {
		kept = min(rest, m.exchangeFee(given))
	}
	o.Credit = credit
	for _, part := range m.draw(old, credit) {
		o.Funds = append(o.Funds, Fund{Order: part.order, Provider: part.provider, Payment: part.payment, Left: part.amount})
	}
	row := Refund{Order: old.ID, From: old.ID, Currency: old.Currency, By: o.Customer, Created: m.now}
	up := row // the tickets, given up
	up.ID, up.State, up.Reason = c.Exchange[0], RefundSeatReleased, ReasonExchanged
	up.FeeKept, up.Rule = kept, "exchange"
	for _, t := range given {
		up.Tickets = append(up.Tickets, t.ID)
		t.State, t.Refund = TicketVoid, up.ID
	}
	m.refunds[up.ID] = &up
	m.placesBack(old, given, ReasonExchanged)
	m.publish(old, NoticeExchanged, "refund_id", up.ID.Text(id.Refund), "exchange", o.ID.Text(id.Order))

	row.State, row.Reason = RefundRequested, ReasonDifference
	m.requestRefunds(row, c.Exchange[1:], m.draw(old, rest-kept))
	if len(m.validTickets(old)) == 0 {
		m.endRefunded(old, ReasonExchanged)
	}
	h.Exchanged = nil
}
