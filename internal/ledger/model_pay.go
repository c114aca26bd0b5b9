package ledger

import (
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
)

func (m *Model) beginPayment(c BeginPayment) Result {
	if answer, ok := m.known(c.Customer, OpBooking, c.Key); ok {
		return answer
	}
	h := m.holds[c.Hold]
	if h == nil {
		return refuse(fault.HoldUnknown, "")
	}
	if h.Customer != c.Customer {
		return refuse(fault.WrongCustomer, "")
	}
	if h.Order != 0 {
		return Result{Fault: &fault.Error{Code: fault.PaymentInProgress, Order: h.Order}}
	}
	if !h.Live(m.now) {
		m.expireIfDue(h)
		return refuse(fault.HoldExpired, "")
	}
	e := m.events[h.Event]
	if f := e.Paying(); f != nil {
		return Result{Fault: f}
	}
	given, f := m.exchangedNow(h, e)
	if f != nil {
		return Result{Fault: f}
	}
	if m.overDocumentLimit(e, c.Documents, given) {
		return refuseField(fault.LimitReached, "document")
	}
	if len(c.Documents) > len(h.Lines) || e.Documents && countIf(c.Documents, func(d string) bool { return d != "" }) < len(h.Lines) {
		return refuseField(fault.Invalid, "documents")
	}
	if !h.Window {
		h.Expires = max(h.Expires, m.now+Time(e.PaymentWindow))
		h.Window = true
		m.stays(h)
	}
	amount := h.Total()
	if h.Exchange != 0 {
		amount = max(0, h.Total()+m.exchangeFee(given)-totalOf(given))
	}
	o := &Order{
		ID: c.Order, Hold: h.ID, Event: h.Event, Customer: h.Customer, State: OrderPending,
		Amount: amount, Currency: h.Currency, Provider: c.Provider, AllowOther: c.AllowOther, Exchange: h.Exchange,
		AttemptOpen: amount > 0, Documents: slices.Clone(c.Documents), Created: m.now, Updated: m.now,
	}
	m.orders[o.ID] = o
	h.Order = o.ID
	m.publish(o, NoticePending)
	m.remember(c.Customer, OpBooking, c.Key, o.ID)
	return m.answer(o)
}

// overDocumentLimit says whether one of the documents would stand for too many places. Where it stands on a ticket that is
// given up for this, one place is freed.
func (m *Model) overDocumentLimit(e *modelEvent, documents []string, given []*Ticket) bool {
	for _, l := range e.Limits {
		if l.Scope != PerDocument {
			continue
		}
		for _, document := range documents {
			wanted := countIf(documents, func(d string) bool { return d == document })
			for _, t := range given {
				if t.Event == e.ID && m.documentOf(t) == document {
					wanted--
				}
			}
			if document != "" && wanted > 0 && m.hasDocument(e, document)+wanted > l.Max {
				return true
			}
		}
	}
	return false
}

// documentOf is the document that stands for a ticket's place, "" for none.
func (m *Model) documentOf(t *Ticket) string {
	documents := m.orders[t.Order].Documents
	if int(t.Place) >= len(documents) {
		return ""
	}
	return documents[t.Place]
}

func (m *Model) confirm(c Confirm) Result {
	o := m.orders[c.Order]
	if o == nil {
		return refuse(fault.OrderUnknown, "")
	}
	if c.Payment == "" && o.Amount > 0 {
		return refuseField(fault.Invalid, "payment")
	}
	p := m.payments[modelPayment{o.ID, c.Payment}]
	if p != nil && p.State == PaymentCaptured { // what was taken is known already
		c.Amount, c.Currency = p.Captured, p.Currency
	} else if p != nil && p.State == PaymentAuthorized {
		c.Amount, c.Currency = p.Authorized, p.Currency
	}
	if (o.State == OrderPaid || o.State == OrderRefunded) && o.Payment == c.Payment {
		return m.asBefore(o, 0)
	}
	// A payment that was given back, or is no more: nothing can be bought with it, and there is nothing to give back.
	if p != nil && (p.Refund != 0 || p.State != PaymentAuthorized && p.State != PaymentCaptured) {
		return m.asBefore(o, p.Refund)
	}
	h := m.holds[o.Hold]
	if len(c.Tickets) < len(h.Lines) {
		return refuseField(fault.Invalid, "tickets")
	}
	if o.Exchange != 0 && len(c.Exchange) < RefundPartsMax+1 {
		return refuseField(fault.Invalid, "exchange")
	}
	e := m.events[o.Event]
	if o.State == OrderPending {
		switch {
		case c.Amount != o.Amount || c.Currency != o.Currency:
			m.endOrder(o, OrderFailed, ReasonWrongAmount)
			return m.giveBack(c, o, ReasonWrongAmount)
		case e.Paying() != nil:
			m.endOrder(o, OrderFailed, ReasonEventCancelled)
			return m.giveBack(c, o, ReasonEventCancelled)
		case h.Live(m.now) && (h.Area >= 0 || len(m.owned(h)) == len(h.Lines)):
			if o.Exchange != 0 {
				return m.confirmExchange(c, o, h)
			}
			return m.sell(c, o, h)
		}
		m.expireIfDue(h)
	}
	if o.State == OrderPending {
		if claim := m.rescue(c, o, h); claim != nil {
			o.Hold, o.Rescued = claim.ID, true
			return m.sell(c, o, claim)
		}
		m.endOrder(o, OrderExpired, ReasonLate)
	}
	if o.State == OrderPaid {
		return m.giveBack(c, o, ReasonSecondPayment)
	}
	return m.giveBack(c, o, ReasonLate)
}

// sell makes an order PAID: the hold's seats are sold, and each line is a ticket.
func (m *Model) sell(c Confirm, o *Order, h *Hold) Result {
	e := m.events[h.Event]
	if h.State == HoldLive { // what was rescued is sold already
		h.State = HoldSold
		m.step(h, "live", "sold", "confirm", h.Lines)
	}
	for i, line := range h.Lines {
		if line.Seat >= 0 {
			e.seats[line.Seat].state = Sold
		}
		t := Ticket{
			ID: c.Tickets[i], Order: o.ID, Event: o.Event, Customer: o.Customer, State: TicketValid,
			Seat: line.Seat, Area: h.Area, Category: line.Category, Total: line.Total,
			Place: int32(i),
		}
		m.tickets[t.ID] = &t
	}
	o.State, o.Payment, o.AttemptOpen = OrderPaid, c.Payment, false
	m.bought(h)
	m.publish(o, NoticePaid)
	if o.Amount > 0 {
		if p := m.paymentArrived(c, o); p.State == PaymentAuthorized {
			m.publish(o, NoticeCaptureDue)
		}
	}
	return m.answer(o)
}

// paymentArrived writes what a Confirm says of its payment. What was captured was authorized, and a captured payment
// stays so.
func (m *Model) paymentArrived(c Confirm, o *Order) *Payment {
	key := modelPayment{o.ID, c.Payment}
	p := m.payments[key]
	if p == nil {
		p = &Payment{
			Order: o.ID, Provider: o.Provider, ID: c.Payment, Currency: c.Currency,
			State: PaymentAuthorized, Authorized: c.Amount,
		}
		m.payments[key] = p
	}
	if c.Captured && p.State == PaymentAuthorized {
		p.State, p.Captured, p.Authorized = PaymentCaptured, c.Amount, max(p.Authorized, c.Amount)
	}
	return p
}

// giveBack asks for a payment to be given back. It leaves the order as it is. Of nothing, nothing is given back.
func (m *Model) giveBack(c Confirm, o *Order, reason string) Result {
	if c.Amount == 0 {
		return m.answer(o)
	}
	p := m.paymentArrived(c, o)
	p.Refund = c.Refund
	m.refunds[c.Refund] = &Refund{
		ID: c.Refund, Order: o.ID, From: o.ID, Provider: o.Provider, Payment: c.Payment, State: RefundRequested,
		Amount: c.Amount, Currency: c.Currency, Reason: reason, Created: m.now,
	}
	m.publish(o, NoticeGiveBack, "refund_id", c.Refund.Text(id.Refund))
	r := m.answer(o)
	r.Refund = m.refundNow(c.Refund)
	return r
}

// endOrder ends a PENDING order without a sale. Its hold may have another one.
func (m *Model) endOrder(o *Order, state OrderState, reason string) {
	o.State, o.Reason, o.AttemptOpen = state, reason, false
	if h := m.holds[o.Hold]; h.Order == o.ID {
		h.Order = 0
	}
	m.publish(o, map[OrderState]string{OrderFailed: NoticeFailed, OrderExpired: NoticeExpired}[state])
}

func (m *Model) failPayment(c FailPayment) Result {
	o := m.orders[c.Order]
	switch {
	case o == nil:
		return refuse(fault.OrderUnknown, "")
	case o.State == OrderPaid || o.State == OrderRefunded:
		return refuse(fault.Conflict, "the order is %s", o.State)
	case o.State != OrderPending:
		return m.asBefore(o, 0)
	case c.Cancelled:
		m.endOrder(o, OrderExpired, c.Reason)
	default:
		m.endOrder(o, OrderFailed, c.Reason)
	}
	return m.answer(o)
}
