package ledger

import (
	"onsale/internal/fault"
	"onsale/internal/id"
)

func (m *Model) recordPayment(c RecordPayment) Result {
	o := m.orders[c.Order]
	if o == nil {
		return refuse(fault.OrderUnknown, "")
	}
	if c.Payment == "" || c.Amount < 0 || c.State == 0 || c.State > PaymentCaptureRefused {
		return refuseField(fault.Invalid, "amount")
	}
	p := m.payments[modelPayment{o.ID, c.Payment}]
	switch c.State {
	case PaymentAuthorized:
		return m.recordAuthorized(c, o, p)
	case PaymentCaptured:
		return m.recordCaptured(c, o, p)
	case PaymentVoided:
		return m.recordVoided(c, o, p)
	case PaymentRefunded:
		return m.recordRefunded(c, o, p)
	}
	return m.recordCaptureRefused(c, o, p)
}

func (m *Model) recordAuthorized(c RecordPayment, o *Order, p *Payment) Result {
	if p != nil {
		return m.asBefore(o, 0)
	}
	m.payments[modelPayment{o.ID, c.Payment}] = &Payment{
		Order: o.ID, Provider: o.Provider, ID: c.Payment, Currency: o.Currency,
		State: PaymentAuthorized, Authorized: c.Amount,
	}
	return m.recorded(o, 0)
}

func (m *Model) recordCaptured(c RecordPayment, o *Order, p *Payment) Result {
	switch {
	case p == nil:
		p = &Payment{Order: o.ID, Provider: o.Provider, ID: c.Payment, Currency: o.Currency, Authorized: c.Amount}
		m.payments[modelPayment{o.ID, c.Payment}] = p
	case p.State == PaymentCaptured || p.State == PaymentRefunded:
		return m.asBefore(o, 0)
	case p.State != PaymentAuthorized:
		return refuse(fault.Conflict, "the payment is %s", p.State)
	case c.Amount > p.Authorized:
		return refuse(fault.Conflict, "%d was authorized", p.Authorized)
	}
	p.State, p.Captured = PaymentCaptured, c.Amount
	return m.recorded(o, 0)
}

func (m *Model) recordVoided(c RecordPayment, o *Order, p *Payment) Result {
	switch {
	case p == nil:
		return refuse(fault.Conflict, "no such payment")
	case p.State == PaymentVoided:
		return m.asBefore(o, 0)
	case p.State != PaymentAuthorized:
		return refuse(fault.Conflict, "the payment is %s", p.State)
	case o.State == OrderPaid && o.Payment == p.ID:
		return refuse(fault.Conflict, "there are tickets for it: that is a refused capture (I6)")
	case c.Refund != 0 && c.Refund != p.Refund:
		return refuse(fault.Conflict, "no such refund")
	}
	p.State, p.Voided = PaymentVoided, p.Authorized // a void is of the whole, and so it settles what gives back the whole
	if r := m.refunds[p.Refund]; r != nil {
		r.State = RefundDone
	}
	return m.recorded(o, p.Refund)
}

// recordRefunded settles a refund. The payment is of the order that the command names; the tickets, after an exchange, may be
// of another order.
func (m *Model) recordRefunded(c RecordPayment, o *Order, p *Payment) Result {
	r := m.refunds[c.Refund]
	switch {
	case p == nil || r == nil || r.From != o.ID || r.Payment != p.ID:
		return refuse(fault.Conflict, "no such payment or refund")
	case r.State != RefundRequested:
		return m.asBefore(o, r.ID)
	case p.State != PaymentCaptured && p.State != PaymentRefunded:
		return refuse(fault.Conflict, "the payment is %s", p.State)
	case p.Refunded+c.Amount > p.Captured:
		return refuse(fault.Conflict, "%d of %d was refunded", p.Refunded, p.Captured)
	case c.Amount != r.Amount:
		return refuseField(fault.Invalid, "amount")
	}
	r.State = RefundDone
	p.State, p.Refunded = PaymentRefunded, p.Refunded+c.Amount
	m.publish(o, NoticePayment)
	if !m.whole(r) {
		of := m.orders[r.Order]
		m.publish(of, NoticeRefundDone, "refund_id", r.ID.Text(id.Refund))
		m.endIfAllBack(of, r.Reason)
	}
	answer := m.answer(o)
	answer.Refund = m.refundNow(r.ID)
	return answer
}

func (m *Model) recordCaptureRefused(c RecordPayment, o *Order, p *Payment) Result {
	switch {
	case p == nil:
		return refuse(fault.Conflict, "no such payment")
	case p.State == PaymentCaptureRefused:
		return m.asBefore(o, 0)
	case p.State != PaymentAuthorized:
		return refuse(fault.Conflict, "the payment is %s", p.State)
	case c.Refund == 0:
		return refuseField(fault.Invalid, "refund")
	}
	p.State = PaymentCaptureRefused
	if o.State != OrderPaid || m.ownPayment(o) != p { // nothing was bought with it
		return m.recorded(o, 0)
	}
	for _, t := range m.validTickets(o) {
		t.State, t.Refund, t.Gone = TicketVoid, c.Refund, true
	}
	h := m.holds[o.Hold]
	m.freeSeats(h)
	m.step(h, "sold", "released", ReasonCaptureRefused, h.Lines)
	for i := range h.Lines {
		h.Lines[i].Gone = true
	}
	h.State, h.Order = HoldReleased, 0
	o.State, o.Reason = OrderRefunded, ReasonCaptureRefused
	m.refunds[c.Refund] = &Refund{
		ID: c.Refund, Order: o.ID, From: o.ID, Provider: o.Provider, Payment: p.ID, State: RefundSeatReleased,
		Currency: o.Currency, Reason: ReasonCaptureRefused, Created: m.now,
	}
	m.publish(o, NoticeCaptureRefused, "refund_id", c.Refund.Text(id.Refund))
	m.publish(o, NoticeRefunded, "refund_id", c.Refund.Text(id.Refund))
	r := m.answer(o)
	r.Refund = m.refundNow(c.Refund)
	return r
}

func (m *Model) recorded(o *Order, refund id.ID) Result {
	m.publish(o, NoticePayment)
	r := m.answer(o)
	r.Refund = m.refundNow(refund)
	return r
}

// asBefore is the answer to what has had its effect before.
func (m *Model) asBefore(o *Order, refund id.ID) Result {
	r := m.answer(o)
	r.Repeat, r.Refund = true, m.refundNow(refund)
	return r
}
