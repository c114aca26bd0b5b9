package decide

import (
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// An exchange is the tickets of an order that a hold is to take the place of, or does (A22). nil is none.
type exchange struct {
	order   *Order
	event   *eventRow // the order's
	tickets []*Ticket // by id
}

// exchange finds what a hold of an event is to exchange, and refuses what may not be.
func (w *Work) exchange(event, customer id.ID, c ledger.Exchange) (*exchange, error) {
	if c.Order == 0 && len(c.Tickets) == 0 {
		return nil, nil
	}
	e, err := w.event(event)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, fault.New(fault.EventUnknown, "")
	}
	sorted := slices.Sorted(slices.Values(c.Tickets))
	if len(sorted) > ledger.SeatsPerHoldCap || len(slices.Compact(sorted)) < len(c.Tickets) {
		return nil, invalid("tickets", "at most %d tickets, each once", ledger.SeatsPerHoldCap)
	}
	x := &exchange{}
	if x.order, err = w.order(c.Order); err != nil {
		return nil, err
	}
	if x.order == nil {
		return nil, fault.New(fault.OrderUnknown, "")
	}
	if err := w.exchangeTickets(x, c.Tickets); err != nil {
		return nil, err
	}
	if x.order.Customer != customer && on(GuardCustomer) {
		return nil, fault.New(fault.WrongCustomer, "")
	}
	if len(c.Tickets) > 0 && slices.ContainsFunc(x.tickets, func(t *Ticket) bool { return t.Customer != customer }) && on(GuardCustomer) {
		return nil, fault.New(fault.WrongCustomer, "a ticket was passed on")
	}
	if x.event, err = w.event(x.order.Event); err != nil {
		return nil, err
	}
	return x, w.exchangeable(x, e, 0)
}

// exchangeTickets finds the tickets that are named of an order; none: the VALID ones that are its customer's.
func (w *Work) exchangeTickets(x *exchange, named []id.ID) error {
	all, err := w.ticketsOf(x.order.ID)
	if err != nil {
		return err
	}
	if len(named) == 0 {
		for _, t := range all {
			if t.State == ledger.TicketValid && t.Customer == x.order.Customer {
				x.tickets = append(x.tickets, t)
			}
		}
	}
	for _, ticket := range named {
		t, o, err := w.ticket(ticket)
		switch {
		case err != nil:
			return err
		case t == nil:
			return fault.New(fault.TicketUnknown, "")
		case o.ID != x.order.ID:
			return invalid("tickets", "all of one booking")
		}
		x.tickets = append(x.tickets, t)
	}
	ticketsSort(x.tickets)
	return nil
}

// exchangeable refuses an exchange for places of an event that may not be begun: by the rule, because of the tickets, or
// because of the money. hold is the hold that has marked the tickets already, 0 none.
func (w *Work) exchangeable(x *exchange, e *eventRow, hold id.ID) error {
	parts := len(x.order.Funds)
	if x.order.Amount > 0 {
		parts++
	}
	switch {
	case x.event.Exchanges.Until <= w.Now:
		return fault.New(fault.NotExchangeable, "the event does not allow it now")
	case x.event.Paying() != nil && on(GuardCancelled):
		return fault.New(fault.NotExchangeable, "the event is %s", x.event.State)
	case e.ID != x.event.ID && (e.Show == 0 || e.Show != x.event.Show):
		return fault.New(fault.NotExchangeable, "the event is of another show")
	case e.Currency != x.order.Currency:
		return fault.New(fault.NotExchangeable, "the event has another currency")
	case parts > ledger.RefundPartsMax-1:
		return fault.New(fault.NotExchangeable, "exchanged too often")
	case x.order.State != ledger.OrderPaid:
		return fault.New(fault.Conflict, "the booking is %s", x.order.State)
	case len(x.tickets) == 0:
		return fault.New(fault.Conflict, "the booking has no ticket that could be exchanged")
	}
	for _, t := range x.tickets {
		if t.State != ledger.TicketValid {
			return fault.New(fault.Conflict, "a ticket is %s", t.State)
		}
	}
	if err := w.unmarked(x.tickets, hold); err != nil {
		return err
	}
	money, err := w.purseOf(x.order)
	if err != nil {
		return err
	}
	return money.lacks(totalOf(x.tickets))
}

// places are what the hold remembers of the tickets.
func (x *exchange) places() []ledger.ExchangedPlace {
	if x == nil {
		return nil
	}
	places := make([]ledger.ExchangedPlace, len(x.tickets))
	for i, t := range x.tickets {
		places[i] = ledger.ExchangedPlace{Ticket: t.ID, Event: t.Event, Category: t.Category}
	}
	return places
}

// mark marks the tickets as being exchanged by a hold.
func (w *Work) mark(x *exchange, hold id.ID) {
	if x == nil {
		return
	}
	for _, t := range x.tickets {
		w.ticketSet(t).Exchange = hold
	}
}

// exchangedBy finds what a hold is to take the place of.
func (w *Work) exchangedBy(h *Hold) (*exchange, error) {
	x := &exchange{}
	var err error
	if x.order, err = w.order(h.Exchange); err != nil {
		return nil, err
	}
	if x.order == nil {
		return nil, invariant(h.Event, "hold %d exchanges order %d, which is not there", h.ID, h.Exchange)
	}
	if x.event, err = w.event(x.order.Event); err != nil {
		return nil, err
	}
	all, err := w.ticketsOf(x.order.ID)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if slices.ContainsFunc(h.Exchanged, func(p ledger.ExchangedPlace) bool { return p.Ticket == t.ID }) {
			x.tickets = append(x.tickets, t)
		}
	}
	return x, nil
}

// documents are those of the tickets' places, where the order is of this event.
func (x *exchange) documents(event id.ID) []string {
	if x.order.Event != event {
		return nil
	}
	var documents []string
	for _, t := range x.tickets {
		if int(t.Place) < len(x.order.Documents) {
			documents = append(documents, x.order.Documents[t.Place])
		}
	}
	return documents
}

// fee is what the old event's rule keeps of the tickets.
func (x *exchange) fee() (fee int64) {
	for _, t := range x.tickets {
		fee += min(x.event.Exchanges.Fee, t.Total)
	}
	return fee
}

// due is what is to be paid for a hold beside what the tickets cost.
func (x *exchange) due(h *Hold) int64 {
	return max(0, h.Total()+x.fee()-totalOf(x.tickets))
}

// swap is the Confirm of an exchange: the old tickets give their places and their money back, the new ones are made.
func (w *Work) swap(e *eventRow, o *Order, h *Hold, c ledger.Confirm) (ledger.Result, error) {
	x, err := w.exchangedBy(h)
	if err != nil {
		return ledger.Result{}, err
	}
	old := totalOf(x.tickets)
	money, err := w.swappable(x, h, old)
	if no, err := refused(err); err != nil {
		return ledger.Result{}, err
	} else if no {
		return w.refuse(o, c, ledger.OrderFailed, ledger.ReasonNotExchangeable)
	}
	if !c.Captured && o.Amount > 0 {
		return ledger.Result{}, invalid("captured", "an exchange is paid by money that is captured")
	}
	// What was agreed when the payment began holds: the amount, and with it what moves and what is kept.
	credit := h.Total() - o.Amount
	kept := old - credit
	if o.Amount == 0 {
		kept = min(x.fee(), kept)
	}
	if credit < 0 || kept < 0 {
		return ledger.Result{}, invariant(o.Event, "order %d is exchanged for tickets that are worth less", o.ID)
	}
	if err := w.swapPlaces(e, x, h); err != nil {
		return ledger.Result{}, err
	}
	w.orderRemake(o).Credit = credit
	for _, d := range w.promise(money, credit) {
		o.Funds = append(slices.Clip(o.Funds), ledger.Fund{Order: d.from, Provider: d.provider, Payment: d.payment, Left: d.amount})
	}
	w.swapOld(x, o, c, kept, w.promise(money, old-credit-kept))
	return w.sell(e, o, h, c)
}

// swappable refuses a swap where the tickets are not any more what the hold is to take the place of. The rest was agreed
// when the payment began.
func (w *Work) swappable(x *exchange, h *Hold, old int64) (*purse, error) {
	switch {
	case x.event.Paying() != nil && on(GuardCancelled):
		return nil, fault.New(fault.NotExchangeable, "the event is %s", x.event.State)
	case x.order.State != ledger.OrderPaid && on(GuardExchangeValid):
		return nil, fault.New(fault.Conflict, "the booking is %s", x.order.State)
	case len(x.tickets) < len(h.Exchanged):
		return nil, invariant(h.Event, "hold %d exchanges tickets that are not there", h.ID)
	}
	for _, t := range x.tickets {
		if (t.State != ledger.TicketValid || t.Exchange != h.ID) && on(GuardExchangeValid) {
			return nil, fault.New(fault.Conflict, "a ticket is %s", t.State)
		}
	}
	money, err := w.purseOf(x.order)
	if err != nil {
		return nil, err
	}
	return money, money.lacks(old)
}

// swapPlaces gives the old places back and makes the counters exact: the hold counts in full from now on.
func (w *Work) swapPlaces(e *eventRow, x *exchange, h *Hold) error {
	var m lacking
	if err := m.note(w.countLimits(e, &h.Hold, -1)); err != nil {
		return err
	}
	if err := m.note(w.placesGone(x.order, x.tickets, ledger.ReasonExchanged)); err != nil {
		return err
	}
	w.holdRemake(h).Exchanged = nil
	if err := m.note(w.countLimits(e, &h.Hold, 1)); err != nil {
		return err
	}
	return m.err
}

// swapOld writes what becomes of the old tickets and their order.
func (w *Work) swapOld(x *exchange, o *Order, c ledger.Confirm, kept int64, back []moneyDraw) {
	r := w.refundSet(&Refund{Row: Row{New: true}, Refund: ledger.Refund{
		ID: c.Exchange[0], Order: x.order.ID, From: x.order.ID, Tickets: ticketIDs(x.tickets), State: ledger.RefundSeatReleased,
		FeeKept: kept, Rule: "exchange", Currency: x.order.Currency, Reason: ledger.ReasonExchanged, By: o.Customer, Created: w.Now,
	}})
	for _, t := range x.tickets {
		w.ticketSet(t)
		t.State, t.Refund = ledger.TicketVoid, r.ID
	}
	w.notice(x.order, ledger.NoticeExchanged, false, r.ID, fact{"exchange", o.ID, id.Order})
	for _, d := range w.refundsNew(c.Exchange[1:], ledger.Refund{
		Order: x.order.ID, Currency: x.order.Currency, Reason: ledger.ReasonDifference, By: o.Customer,
	}, back) {
		w.notice(x.order, ledger.NoticeRefundRequested, false, d.ID)
	}
	if all := w.tickets[x.order.ID]; !slices.ContainsFunc(all, valid) {
		w.orderGone(x.order, ledger.ReasonExchanged, r.ID)
	}
}

// exchangeAgain is what BeginPayment looks at: whether the hold may still take the place of its tickets.
func (w *Work) exchangeAgain(e *eventRow, h *Hold) (*exchange, error) {
	x, err := w.exchangedBy(h)
	if err != nil {
		return nil, err
	}
	return x, w.exchangeable(x, e, h.ID)
}
