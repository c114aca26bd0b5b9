package ledger

import (
	"cmp"
	"fmt"
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
	if m.overDocumentLimit(e, c.Documents) {
		return refuseField(fault.LimitReached, "document")
	}
	if !h.Window {
		h.Expires = max(h.Expires, m.now+Time(e.PaymentWindow))
		h.Window = true
	}
	o := &Order{
		ID: c.Order, Hold: h.ID, Event: h.Event, Customer: h.Customer, State: OrderPending,
		Amount: h.Total(), Currency: h.Currency, Provider: c.Provider, AllowOther: c.AllowOther,
		AttemptOpen: h.Total() > 0, Documents: slices.Clone(c.Documents), Created: m.now, Updated: m.now,
	}
	m.orders[o.ID] = o
	h.Order = o.ID
	m.publish(o, NoticePending)
	m.remember(c.Customer, OpBooking, c.Key, 0, o.ID)
	return m.answer(o)
}

// overDocumentLimit counts an identity document's places by the orders that name it, those of this request included.
func (m *Model) overDocumentLimit(e *modelEvent, documents []string) bool {
	for _, l := range e.Limits {
		if l.Scope != PerDocument {
			continue
		}
		for i, document := range documents {
			is := func(d string) bool { return d == document }
			n := countIf(documents[:i+1], is)
			for _, o := range m.orders {
				if o.Event == e.ID && (o.State == OrderPending || o.State == OrderPaid) {
					n += countIf(o.Documents, is)
				}
			}
			if n > l.Max {
				return true
			}
		}
	}
	return false
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
	h.State = HoldSold
	for i, line := range h.Lines {
		if line.Seat >= 0 {
			e.seats[line.Seat].state = Sold
		}
		t := Ticket{
			ID: c.Tickets[i], Order: o.ID, Event: o.Event, Customer: o.Customer, State: TicketValid,
			Seat: line.Seat, Area: h.Area, Category: line.Category, Total: line.Total,
		}
		m.tickets[t.ID] = &t
		o.Tickets = append(o.Tickets, Ticket{ID: t.ID})
	}
	o.State, o.Payment, o.AttemptOpen = OrderPaid, c.Payment, false
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
		ID: c.Refund, Order: o.ID, Provider: o.Provider, Payment: c.Payment, State: RefundRequested,
		Amount: c.Amount, Currency: c.Currency, Reason: reason, Created: m.now,
	}
	m.publish(o, NoticeGiveBack)
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

// rescue makes a new claim for an order whose hold is gone but whose money has come (A17): on the same places, or on
// seats as good, if the customer allowed it. The new claim obeys the same quotas and limits as any. nil: none is possible.
func (m *Model) rescue(c Confirm, o *Order, lost *Hold) *Hold {
	if c.RescueHold == 0 {
		return nil
	}
	e := m.events[lost.Event]
	claim := &Hold{
		ID: c.RescueHold, Event: lost.Event, Customer: lost.Customer, State: HoldSold, Area: lost.Area,
		Lines: slices.Clone(lost.Lines), Currency: lost.Currency, Created: m.now, Expires: m.now,
		Window: true, Order: o.ID,
	}
	if lost.Area >= 0 {
		if !m.areaServes(e, lost.Area, len(lost.Lines)) || m.overBounds(e, o.Customer, e.placesOf(claim)) != nil {
			return nil
		}
		m.holds[claim.ID] = claim
		return claim
	}
	if !m.allFree(e, lost) || m.overBounds(e, o.Customer, e.placesOf(claim)) != nil {
		seats := m.seatsAsGood(e, lost)
		if !o.AllowOther || seats == nil {
			return nil
		}
		for i := range claim.Lines {
			claim.Lines[i].Seat = seats[i]
		}
		if m.overBounds(e, o.Customer, e.placesOf(claim)) != nil {
			return nil
		}
	}
	m.claimSeats(e, claim, Sold)
	m.holds[claim.ID] = claim
	return claim
}

// allFree says whether nobody has the seats of a lost hold, after ending those of its takers whose time is up.
func (m *Model) allFree(e *modelEvent, lost *Hold) bool {
	for _, line := range lost.Lines {
		m.expireHolderOf(e, line.Seat)
	}
	for _, line := range lost.Lines {
		if s := e.seats[line.Seat].state; s != Available && s != Returned {
			return false
		}
	}
	return true
}

// seatsAsGood finds seats of the same category, each no worse than the lost one of the same rank, ascending by index;
// together where the lost ones were together. nil: there are none.
func (m *Model) seatsAsGood(e *modelEvent, lost *Hold) []int32 {
	quality := func(seat int32) int32 { return e.layout.Quality[seat] }
	var wanted []int32 // the qualities lost, best first
	for _, line := range lost.Lines {
		if line.Category != lost.Lines[0].Category {
			return nil
		}
		wanted = append(wanted, quality(line.Seat))
	}
	slices.Sort(wanted)
	n := len(wanted)

	var candidates []int32
	for i := range e.seats {
		seat := int32(i)
		if e.seats[seat].state == Available && e.layout.Category[seat] == lost.Lines[0].Category && quality(seat) <= wanted[n-1] {
			candidates = append(candidates, seat)
		}
	}
	slices.SortFunc(candidates, func(a, b int32) int {
		return cmp.Or(cmp.Compare(quality(a), quality(b)), cmp.Compare(a, b))
	})
	candidates = candidates[:min(len(candidates), CandidatesMax)]

	// offers are the choices to compare: with the lost seats together every run of n, else the n best.
	var offers [][]int32
	if e.neighbours(lost.Seats()) {
		slices.Sort(candidates)
		for i := 0; i+n <= len(candidates); i++ {
			if run := candidates[i : i+n]; e.neighbours(run) {
				offers = append(offers, run)
			}
		}
	} else if n <= len(candidates) {
		offers = append(offers, candidates[:n])
	}
	var best []int32
	bestSum := 0
	for _, offer := range offers {
		var have []int32
		sum := 0
		for _, seat := range offer {
			have = append(have, quality(seat))
			sum += int(quality(seat))
		}
		slices.Sort(have)
		asGood := true
		for i := range have {
			asGood = asGood && have[i] <= wanted[i]
		}
		if asGood && (best == nil || sum < bestSum) {
			best, bestSum = slices.Sorted(slices.Values(offer)), sum
		}
	}
	return best
}

// neighbours says whether ascending seats are side by side.
func (e *modelEvent) neighbours(seats []int32) bool {
	for i := 1; i < len(seats); i++ {
		if seats[i] != seats[i-1]+1 || e.layout.Run[seats[i]] != e.layout.Run[seats[i-1]] {
			return false
		}
	}
	return true
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

func (m *Model) recordRefunded(c RecordPayment, o *Order, p *Payment) Result {
	r := m.refunds[c.Refund]
	switch {
	case p == nil || r == nil || r.Order != o.ID || r.Payment != p.ID:
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
	return m.recorded(o, r.ID)
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
	if o.State != OrderPaid || o.Payment != p.ID {
		return m.recorded(o, 0)
	}
	for i := range o.Tickets {
		m.tickets[o.Tickets[i].ID].State = TicketVoid
	}
	h := m.holds[o.Hold]
	m.freeSeats(h)
	h.State, h.Order = HoldReleased, 0
	o.State, o.Reason = OrderRefunded, ReasonCaptureRefused
	m.refunds[c.Refund] = &Refund{
		ID: c.Refund, Order: o.ID, Provider: o.Provider, Payment: p.ID, State: RefundSeatReleased,
		Currency: o.Currency, Reason: ReasonCaptureRefused, Created: m.now,
	}
	m.publish(o, NoticeCaptureRefused)
	m.publish(o, NoticeRefunded)
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

// publish puts a notice of an order into the outbox, with the next number of that order (A24).
func (m *Model) publish(o *Order, kind string) {
	o.Sequence++
	o.Updated = m.now
	m.notices = append(m.notices, modelNotice{Notice: Notice{
		Order: o.ID, Sequence: o.Sequence, Kind: kind, At: m.now,
		Alert: kind == NoticeGiveBack || kind == NoticeCaptureRefused,
		Body:  fmt.Appendf(nil, `{"booking_id":%q}`, o.ID.Text(id.Order)),
	}})
}
