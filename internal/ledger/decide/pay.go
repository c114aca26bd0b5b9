package decide

import (
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

func (w *Work) beginPayment(c ledger.BeginPayment) (ledger.Result, error) {
	key := IdemKey{c.Customer, ledger.OpBooking, c.Key.Value}
	subject, err := w.repeat(key, c.Key.Fields)
	if err != nil {
		return ledger.Result{}, err
	}
	if subject != 0 {
		return w.orderAnswer(subject, ledger.Result{Repeat: true})
	}
	h, err := w.holdOf(c.Hold, c.Customer)
	if err != nil {
		return ledger.Result{}, err
	}
	if h.Order != 0 && on(GuardOneOrder) {
		return ledger.Result{}, &fault.Error{Code: fault.PaymentInProgress, Order: h.Order}
	}
	if err := w.live(h); err != nil {
		return ledger.Result{}, err
	}
	e, err := w.event(h.Event)
	if err != nil {
		return ledger.Result{}, err
	}
	if f := e.Paying(); f != nil && on(GuardCancelled) {
		return ledger.Result{}, f
	}
	amount := h.Total()
	var freed []string
	if h.Exchange != 0 {
		x, err := w.exchangeAgain(e, h)
		if err != nil {
			return ledger.Result{}, err
		}
		amount = x.due(h)
		freed = x.documents(e.ID)
	}
	if err := w.allowDocuments(e.Event, c.Documents, freed); err != nil {
		return ledger.Result{}, err
	}
	if err := documentsFit(e.Event, h, c.Documents); err != nil {
		return ledger.Result{}, err
	}
	o := &Order{Row: Row{New: true}, Order: ledger.Order{
		ID: c.Order, Hold: h.ID, Event: h.Event, Customer: h.Customer, State: ledger.OrderPending,
		Amount: amount, Currency: h.Currency, Provider: c.Provider, AllowOther: c.AllowOther, AttemptOpen: amount > 0,
		Documents: c.Documents, Exchange: h.Exchange, Created: w.Now,
	}}
	if err := w.countDocuments(e.Event, c.Documents, 1); err != nil {
		return ledger.Result{}, err
	}
	w.orderSet(o)
	w.holdSet(h)
	h.Order = o.ID
	if !h.Window {
		h.Window = true
		w.expiryMove(h, max(h.Expires, w.Now+ledger.Time(e.PaymentWindow)))
		if err := w.stays(h); err != nil {
			return ledger.Result{}, err
		}
	}
	w.keyAdd(key, o.ID, c.Key.Fields)
	w.notice(o, ledger.NoticePending, false, 0)
	return ledger.Result{Order: o.view(), Hold: h.view()}, nil
}

// documentsFit refuses documents that are not those of a hold's places.
func documentsFit(e *ledger.Event, h *Hold, documents []string) error {
	switch {
	case len(documents) > len(h.Lines):
		return invalid("documents", "there are %d places", len(h.Lines))
	case e.Documents && (len(documents) < len(h.Lines) || slices.Contains(documents, "")):
		return invalid("documents", "each place needs one")
	}
	return nil
}

// view is a copy of the order as it is now, for an answer.
func (o *Order) view() *ledger.Order {
	v := o.Order
	return &v
}

// orderAnswer fills an answer with an order, its tickets and its hold as they are now.
func (w *Work) orderAnswer(order id.ID, r ledger.Result) (ledger.Result, error) {
	o, err := w.order(order)
	if err != nil {
		return ledger.Result{}, err
	}
	if o == nil {
		return ledger.Result{}, fault.New(fault.OrderUnknown, "")
	}
	if r, err = w.ticketsAnswer(o, r); err != nil {
		return ledger.Result{}, err
	}
	h, err := w.hold(o.Hold)
	if err != nil {
		return ledger.Result{}, err
	}
	if h != nil {
		r.Hold = h.view()
	}
	return r, nil
}

// ticketsAnswer fills an answer with an order and its tickets as they are now.
func (w *Work) ticketsAnswer(o *Order, r ledger.Result) (ledger.Result, error) {
	r.Order = o.view()
	if o.State != ledger.OrderPaid && o.State != ledger.OrderRefunded {
		return r, nil
	}
	tickets, err := w.ticketsOf(o.ID)
	if err != nil {
		return ledger.Result{}, err
	}
	for _, t := range tickets {
		r.Order.Tickets = append(r.Order.Tickets, t.Ticket)
	}
	return r, nil
}

func (w *Work) confirm(c ledger.Confirm) (ledger.Result, error) {
	o, err := w.order(c.Order)
	if err != nil {
		return ledger.Result{}, err
	}
	if o == nil {
		return ledger.Result{}, fault.New(fault.OrderUnknown, "")
	}
	if c.Payment == "" && o.Amount > 0 {
		return ledger.Result{}, invalid("payment", "only an order of amount 0 is confirmed without a payment")
	}
	h, err := w.hold(o.Hold)
	if err != nil {
		return ledger.Result{}, err
	}
	if h == nil {
		return ledger.Result{}, invariant(o.Event, "order %d has no hold", o.ID)
	}
	paid := o.State == ledger.OrderPaid || o.State == ledger.OrderRefunded
	if paid && (o.Payment == c.Payment || !on(GuardSamePaid)) {
		return w.orderAnswer(o.ID, ledger.Result{Repeat: true})
	}
	known, err := w.payment(PaymentKey{o.ID, o.Provider, c.Payment})
	if err != nil {
		return ledger.Result{}, err
	}
	// A payment that was given back, or is no more: nothing can be bought with it, and there is nothing to give back.
	if known != nil { // what was taken or reserved is written down already
		switch known.State {
		case ledger.PaymentCaptured:
			c.Amount, c.Currency, c.Captured = known.Captured, known.Currency, true
		case ledger.PaymentAuthorized:
			c.Amount, c.Currency = known.Authorized, known.Currency
		}
	}
	if known != nil && (known.Refund != 0 || known.State != ledger.PaymentAuthorized && known.State != ledger.PaymentCaptured) {
		r, err := w.refund(known.Refund)
		if err != nil {
			return ledger.Result{}, err
		}
		return w.orderAnswer(o.ID, ledger.Result{Repeat: true, Refund: r.view()})
	}
	if len(c.Tickets) < len(h.Lines) {
		return ledger.Result{}, invalid("tickets", "%d ids are needed", len(h.Lines))
	}
	if o.Exchange != 0 && len(c.Exchange) < ledger.RefundPartsMax+1 {
		return ledger.Result{}, invalid("exchange", "%d ids are needed", ledger.RefundPartsMax+1)
	}
	if o.State != ledger.OrderPending {
		reason := ledger.ReasonLate
		if o.State == ledger.OrderPaid {
			reason = ledger.ReasonSecondPayment
		}
		return w.givePayment(o, c, reason)
	}
	return w.confirmPending(o, h, c)
}

// view is a copy of the refund as it is now, for an answer.
func (r *Refund) view() *ledger.Refund {
	if r == nil {
		return nil
	}
	v := r.Refund
	return &v
}

func (w *Work) confirmPending(o *Order, h *Hold, c ledger.Confirm) (ledger.Result, error) {
	e, err := w.event(o.Event)
	if err != nil {
		return ledger.Result{}, err
	}
	switch {
	case (c.Amount != o.Amount || c.Currency != o.Currency) && on(GuardAmount):
		return w.refuse(o, c, ledger.OrderFailed, ledger.ReasonWrongAmount)
	case e.Paying() != nil && on(GuardCancelled):
		return w.refuse(o, c, ledger.OrderFailed, ledger.ReasonEventCancelled)
	}
	if h.Live(w.Now) || (h.State == ledger.HoldLive && !on(GuardHoldLive)) {
		if o.Exchange != 0 {
			return w.swap(e, o, h, c)
		}
		return w.sell(e, o, h, c)
	}
	if h.State == ledger.HoldLive {
		if err := w.expire(h, "paid late"); err != nil {
			return ledger.Result{}, err
		}
	}
	if o.State != ledger.OrderPending { // nothing was to be paid, so it ended with its hold
		return w.orderAnswer(o.ID, ledger.Result{})
	}
	if o.Exchange != 0 { // never rescued: the old tickets stay
		return w.refuse(o, c, ledger.OrderExpired, ledger.ReasonLate)
	}
	rescued, err := w.rescue(e, o, h, c)
	if err != nil {
		return ledger.Result{}, err
	}
	if rescued != nil {
		o.Rescued = true
		w.orderSet(o)
		return w.sold(o, rescued, c)
	}
	return w.refuse(o, c, ledger.OrderExpired, ledger.ReasonLate)
}

// sell turns a live hold's claim into a sale.
func (w *Work) sell(e *eventRow, o *Order, h *Hold, c ledger.Confirm) (ledger.Result, error) {
	if h.Area >= 0 {
		buckets, err := w.area(h.Event, h.Area)
		if err != nil {
			return ledger.Result{}, err
		}
		if err := w.placesSell(e, h, buckets); err != nil {
			return ledger.Result{}, err
		}
	} else {
		seats := make([]*Seat, len(h.Lines))
		var missing error
		for i, l := range h.Lines {
			s, err := w.seat(h.Event, l.Seat)
			if err != nil {
				missing = err
				continue
			}
			if owns := s.State == ledger.Held && s.Claim == h.ID && s.Epoch == l.Epoch; !owns && on(GuardOwner) {
				return ledger.Result{}, invariant(h.Event, "live hold %d does not own its seat %d", h.ID, l.Seat)
			}
			seats[i] = s
		}
		if missing != nil {
			return ledger.Result{}, missing
		}
		for i, s := range seats {
			w.take(s, h, h.Lines[i].Epoch, ledger.Sold)
		}
	}
	w.holdSet(h)
	w.note(h, h.State.String(), "sold", "confirm")
	h.State = ledger.HoldSold
	return w.sold(o, h, c)
}

func (w *Work) placesSell(e *eventRow, h *Hold, buckets []*Bucket) error {
	for _, d := range h.Draws {
		for _, b := range buckets {
			if b.Number != d.Bucket {
				continue
			}
			w.bucketSet(b)
			b.Held -= d.Count
			b.Sold += d.Count
			if b.Held < 0 {
				return invariant(e.ID, "bucket %d of area %d would hold fewer than no places", b.Number, b.Area)
			}
		}
	}
	return nil
}

// sold makes the tickets of an order whose hold is sold.
func (w *Work) sold(o *Order, h *Hold, c ledger.Confirm) (ledger.Result, error) {
	w.orderSet(o)
	o.State, o.Payment, o.AttemptOpen, o.Hold = ledger.OrderPaid, c.Payment, false, h.ID
	tickets := make([]*Ticket, len(h.Lines))
	for i, l := range h.Lines {
		tickets[i] = w.ticketSet(&Ticket{Row: Row{New: true}, Ticket: ledger.Ticket{
			ID: c.Tickets[i], Order: o.ID, Event: o.Event, Customer: o.Customer, State: ledger.TicketValid,
			Seat: l.Seat, Area: h.Area, Category: l.Category, Total: l.Total, Place: int32(i),
		}})
	}
	w.tickets[o.ID] = tickets
	ticketsSort(tickets)
	if err := w.bought(h); err != nil {
		return ledger.Result{}, err
	}
	w.notice(o, ledger.NoticePaid, false, 0)
	if o.Amount > 0 {
		p, err := w.paymentSeen(o, c)
		if err != nil {
			return ledger.Result{}, err
		}
		if p.State == ledger.PaymentAuthorized {
			w.notice(o, ledger.NoticeCaptureDue, false, 0)
		}
	}
	return w.orderAnswer(o.ID, ledger.Result{})
}

// paymentSeen writes down a payment that a provider has told of.
func (w *Work) paymentSeen(o *Order, c ledger.Confirm) (*Payment, error) {
	p, err := w.payment(PaymentKey{o.ID, o.Provider, c.Payment})
	if err != nil {
		return nil, err
	}
	if p == nil {
		p = &Payment{Row: Row{New: true}, Payment: ledger.Payment{
			Order: o.ID, Provider: o.Provider, ID: c.Payment, Currency: c.Currency, State: ledger.PaymentAuthorized, Authorized: c.Amount,
		}}
	}
	if c.Captured && p.State == ledger.PaymentAuthorized {
		p.State, p.Captured, p.Authorized = ledger.PaymentCaptured, c.Amount, max(p.Authorized, c.Amount)
	}
	return w.paymentSet(p), nil
}

// refuse ends a PENDING order whose payment does not make it PAID, and gives the payment back.
func (w *Work) refuse(o *Order, c ledger.Confirm, state ledger.OrderState, reason string) (ledger.Result, error) {
	if err := w.orderEnd(o, state, reason); err != nil {
		return ledger.Result{}, err
	}
	return w.givePayment(o, c, reason)
}

// givePayment asks for one payment to be given back, whatever its order is (A16).
func (w *Work) givePayment(o *Order, c ledger.Confirm, reason string) (ledger.Result, error) {
	if c.Amount == 0 { // of nothing, nothing is given back
		return w.orderAnswer(o.ID, ledger.Result{})
	}
	p, err := w.paymentSeen(o, c)
	if err != nil {
		return ledger.Result{}, err
	}
	r := w.refundSet(&Refund{Row: Row{New: true}, Refund: ledger.Refund{
		ID: c.Refund, Order: o.ID, From: o.ID, Provider: o.Provider, Payment: c.Payment, State: ledger.RefundRequested,
		Amount: c.Amount, Currency: c.Currency, Reason: reason, Created: w.Now,
	}})
	p.Refund = r.ID
	w.notice(o, ledger.NoticeGiveBack, true, r.ID)
	return w.orderAnswer(o.ID, ledger.Result{Refund: r.view()})
}

// orderEnd ends a PENDING order without a sale.
func (w *Work) orderEnd(o *Order, state ledger.OrderState, reason string) error {
	e, err := w.event(o.Event)
	if err != nil {
		return err
	}
	h, err := w.hold(o.Hold)
	if err != nil {
		return err
	}
	if err := w.countDocuments(e.Event, o.Documents, -1); err != nil {
		return err
	}
	w.orderSet(o)
	o.State, o.Reason, o.AttemptOpen = state, reason, false
	if h != nil && h.Order == o.ID {
		w.holdSet(h)
		h.Order = 0
	}
	kind := ledger.NoticeFailed
	if state == ledger.OrderExpired {
		kind = ledger.NoticeExpired
	}
	w.notice(o, kind, false, 0)
	return nil
}

func (w *Work) failPayment(c ledger.FailPayment) (ledger.Result, error) {
	o, err := w.order(c.Order)
	if err != nil {
		return ledger.Result{}, err
	}
	if o == nil {
		return ledger.Result{}, fault.New(fault.OrderUnknown, "")
	}
	switch o.State {
	case ledger.OrderPaid, ledger.OrderRefunded:
		return ledger.Result{}, fault.New(fault.Conflict, "the booking is %s", o.State)
	case ledger.OrderFailed, ledger.OrderExpired:
		return w.orderAnswer(o.ID, ledger.Result{Repeat: true})
	}
	state := ledger.OrderFailed
	if c.Cancelled {
		state = ledger.OrderExpired
	}
	if err := w.orderEnd(o, state, c.Reason); err != nil {
		return ledger.Result{}, err
	}
	return w.orderAnswer(o.ID, ledger.Result{})
}
