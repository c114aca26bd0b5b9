package decide

import (
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// notice writes one change of an order to the outbox, with the order's next sequence (A24).
func (w *Work) notice(o *Order, kind string, alert bool, refund id.ID, facts ...fact) {
	w.orderSet(o)
	o.Sequence++
	body := appendFacts(AppendNotice(make([]byte, 0, noticeSize), &o.Order, refund), facts)
	w.Out.Notices = append(w.Out.Notices, ledger.Notice{Order: o.ID, Sequence: o.Sequence, Kind: kind, Alert: alert, Body: body, At: w.Now})
}

func (w *Work) recordPayment(c ledger.RecordPayment) (ledger.Result, error) {
	o, err := w.order(c.Order)
	if err != nil {
		return ledger.Result{}, err
	}
	if o == nil {
		return ledger.Result{}, fault.New(fault.OrderUnknown, "")
	}
	p, err := w.payment(PaymentKey{o.ID, o.Provider, c.Payment})
	if err != nil {
		return ledger.Result{}, err
	}
	if c.Amount < 0 || c.Payment == "" {
		return ledger.Result{}, invalid("amount", "a payment has an id and an amount of at least 0")
	}
	if p == nil {
		return w.paymentNew(o, c)
	}
	switch c.State {
	case ledger.PaymentAuthorized:
		return w.orderAnswer(o.ID, ledger.Result{Repeat: true})
	case ledger.PaymentCaptured:
		return w.captured(o, p, c)
	case ledger.PaymentVoided:
		return w.voided(o, p, c)
	case ledger.PaymentRefunded:
		return w.refunded(o, p, c)
	case ledger.PaymentCaptureRefused:
		return w.captureRefused(o, p, c)
	}
	return ledger.Result{}, invalid("state", "%d is no state of a payment", c.State)
}

func doesNotFollow(p *Payment) error {
	return fault.New(fault.Conflict, "the payment is %s", p.State)
}

func (w *Work) paymentNew(o *Order, c ledger.RecordPayment) (ledger.Result, error) {
	p := &Payment{Row: Row{New: true}, Payment: ledger.Payment{
		Order: o.ID, Provider: o.Provider, ID: c.Payment, Currency: o.Currency, State: c.State, Authorized: c.Amount,
	}}
	switch c.State {
	case ledger.PaymentAuthorized:
	case ledger.PaymentCaptured:
		p.Captured = c.Amount
	default:
		return ledger.Result{}, fault.New(fault.Conflict, "the payment is not known")
	}
	w.paymentSet(p)
	w.notice(o, ledger.NoticePayment, false, 0)
	return w.orderAnswer(o.ID, ledger.Result{})
}

func (w *Work) captured(o *Order, p *Payment, c ledger.RecordPayment) (ledger.Result, error) {
	switch {
	case p.State == ledger.PaymentCaptured || p.State == ledger.PaymentRefunded:
		return w.orderAnswer(o.ID, ledger.Result{Repeat: true})
	case p.State != ledger.PaymentAuthorized:
		return ledger.Result{}, doesNotFollow(p)
	case c.Amount > p.Authorized:
		return ledger.Result{}, fault.New(fault.Conflict, "only %d was authorized", p.Authorized)
	}
	w.paymentSet(p)
	p.State, p.Captured = ledger.PaymentCaptured, c.Amount
	w.notice(o, ledger.NoticePayment, false, 0)
	return w.orderAnswer(o.ID, ledger.Result{})
}

func (w *Work) voided(o *Order, p *Payment, c ledger.RecordPayment) (ledger.Result, error) {
	switch p.State {
	case ledger.PaymentVoided:
		return w.orderAnswer(o.ID, ledger.Result{Repeat: true})
	case ledger.PaymentAuthorized:
	default:
		return ledger.Result{}, doesNotFollow(p)
	}
	if o.State == ledger.OrderPaid && o.Payment == p.ID {
		return ledger.Result{}, fault.New(fault.Conflict, "there are tickets for it: that is a refused capture")
	}
	r, err := w.settled(o, p, c)
	if err != nil {
		return ledger.Result{}, err
	}
	if r == nil && p.Refund != 0 { // a void is of the whole, and so it settles what gives back the whole
		if r, err = w.refund(p.Refund); err != nil {
			return ledger.Result{}, err
		}
	}
	w.paymentSet(p)
	p.State, p.Voided = ledger.PaymentVoided, p.Authorized
	w.settle(r)
	w.notice(o, ledger.NoticePayment, false, p.Refund)
	return w.orderAnswer(o.ID, ledger.Result{Refund: r.view()})
}

// settled finds the refund that a record settles: nil where it names none.
func (w *Work) settled(o *Order, p *Payment, c ledger.RecordPayment) (*Refund, error) {
	if c.Refund == 0 {
		return nil, nil
	}
	r, err := w.refund(c.Refund)
	if err != nil {
		return nil, err
	}
	if r == nil || r.From != o.ID || r.Provider != p.Provider || r.Payment != p.ID {
		return nil, fault.New(fault.Conflict, "there is no such refund of this payment")
	}
	return r, nil
}

func (w *Work) settle(r *Refund) {
	if r != nil && r.State == ledger.RefundRequested {
		w.refundSet(r)
		r.State = ledger.RefundDone
	}
}

func (w *Work) refunded(o *Order, p *Payment, c ledger.RecordPayment) (ledger.Result, error) {
	r, err := w.settled(o, p, c)
	switch {
	case err != nil:
		return ledger.Result{}, err
	case r == nil:
		return ledger.Result{}, fault.New(fault.Conflict, "there is no such refund of this payment")
	case r.State != ledger.RefundRequested:
		return w.orderAnswer(o.ID, ledger.Result{Repeat: true, Refund: r.view()})
	case p.State != ledger.PaymentCaptured && p.State != ledger.PaymentRefunded:
		return ledger.Result{}, doesNotFollow(p)
	case p.Refunded+c.Amount > p.Captured:
		return ledger.Result{}, fault.New(fault.Conflict, "only %d is left of it", p.Captured-p.Refunded)
	case c.Amount != r.Amount:
		return ledger.Result{}, invalid("amount", "the refund is of %d", r.Amount)
	}
	w.paymentSet(p)
	p.State = ledger.PaymentRefunded
	p.Refunded += c.Amount
	w.settle(r)
	w.notice(o, ledger.NoticePayment, false, r.ID)
	if p.Refund != r.ID { // of tickets, or of what an exchange left over; perhaps of a later order
		of, err := w.order(r.Order)
		if err != nil {
			return ledger.Result{}, err
		}
		if of == nil {
			return ledger.Result{}, invariant(o.Event, "refund %d is of order %d, which is not there", r.ID, r.Order)
		}
		w.notice(of, ledger.NoticeRefundDone, false, r.ID)
		if err := w.orderMayEnd(of, r); err != nil {
			return ledger.Result{}, err
		}
	}
	return w.orderAnswer(o.ID, ledger.Result{Refund: r.view()})
}

// captureRefused undoes a sale whose authorized money the provider has finally refused to hand over (A18).
func (w *Work) captureRefused(o *Order, p *Payment, c ledger.RecordPayment) (ledger.Result, error) {
	switch p.State {
	case ledger.PaymentCaptureRefused:
		return w.orderAnswer(o.ID, ledger.Result{Repeat: true})
	case ledger.PaymentAuthorized:
	default:
		return ledger.Result{}, doesNotFollow(p)
	}
	if c.Refund == 0 {
		return ledger.Result{}, invalid("refund", "the refund's id is needed")
	}
	if o.State != ledger.OrderPaid || o.Payment != p.ID || o.Amount == 0 { // its tickets are not paid with it
		w.paymentSet(p)
		p.State = ledger.PaymentCaptureRefused
		w.notice(o, ledger.NoticePayment, false, 0)
		return w.orderAnswer(o.ID, ledger.Result{})
	}
	tickets, err := w.ticketsOf(o.ID)
	if err != nil {
		return ledger.Result{}, err
	}
	h, err := w.hold(o.Hold)
	if err != nil {
		return ledger.Result{}, err
	}
	e, err := w.event(o.Event)
	if err != nil {
		return ledger.Result{}, err
	}
	if err := w.receivedBack(e, o, tickets); err != nil {
		return ledger.Result{}, err
	}
	if err := w.giveBack(h, ledger.Sold); err != nil {
		return ledger.Result{}, err
	}
	if err := w.countDocuments(e.Event, o.Documents, -1); err != nil {
		return ledger.Result{}, err
	}
	for _, t := range tickets {
		if valid(t) {
			w.ticketSet(t)
			t.State, t.Refund, t.Gone = ledger.TicketVoid, c.Refund, true
		}
	}
	w.holdRemake(h)
	w.note(h, "sold", "released", ledger.ReasonCaptureRefused)
	h.State, h.Order = ledger.HoldReleased, 0
	h.Lines = slices.Clone(h.Lines)
	for i := range h.Lines {
		h.Lines[i].Gone = true
	}
	w.paymentSet(p)
	p.State = ledger.PaymentCaptureRefused
	r := w.refundSet(&Refund{Row: Row{New: true}, Refund: ledger.Refund{
		ID: c.Refund, Order: o.ID, From: o.ID, Provider: o.Provider, Payment: p.ID, State: ledger.RefundSeatReleased,
		Currency: o.Currency, Reason: ledger.ReasonCaptureRefused, Created: w.Now,
	}})
	w.orderSet(o)
	o.State, o.Reason = ledger.OrderRefunded, ledger.ReasonCaptureRefused
	w.notice(o, ledger.NoticeCaptureRefused, true, r.ID)
	w.notice(o, ledger.NoticeRefunded, false, r.ID)
	return w.orderAnswer(o.ID, ledger.Result{Refund: r.view()})
}

// receivedBack takes the places that others than the buyer have from what counts for them.
func (w *Work) receivedBack(e *eventRow, o *Order, tickets []*Ticket) error {
	var m lacking
	for _, t := range tickets {
		if !valid(t) || t.Customer == o.Customer {
			continue
		}
		if err := m.note(w.countLimits(e, PlaceOf(t), -1)); err != nil {
			return err
		}
	}
	return m.err
}
