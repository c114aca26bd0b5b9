package ledger

import (
	"fmt"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// Refunds of tickets (A21): BeginRefund makes them VOID and says what money is due, RecordPayment (model_money.go) that it is
// back, ReleaseSeats lets others have the places.

func (m *Model) beginRefund(c BeginRefund) Result {
	if answer, ok := m.known(c.Customer, OpRefund, c.Key); ok {
		return answer
	}
	o := m.orders[c.Order]
	if o == nil {
		return refuse(fault.OrderUnknown, "")
	}
	if c.By == ByCustomer && o.Customer != c.Customer {
		return refuse(fault.WrongCustomer, "")
	}
	for _, ticket := range c.Tickets {
		if t := m.tickets[ticket]; t == nil || t.Order != o.ID {
			return refuse(fault.TicketUnknown, "")
		}
	}
	tickets := m.ticketsToRefund(c, o)
	if field := refundProblem(c, tickets); field != "" {
		return refuseField(fault.Invalid, field)
	}
	if f := m.notRefundable(c, o, tickets); f != nil {
		return Result{Fault: f}
	}
	kept, rule := m.keptOf(c, tickets)
	due := totalOf(tickets) - kept
	if due > m.moneyLeft(o) {
		return refuse(fault.Conflict, "less was captured than the tickets cost")
	}
	row := Refund{Order: o.ID, State: RefundRequested, Currency: o.Currency, Reason: c.Reason, By: c.Customer, Created: m.now}
	switch c.By {
	case ByCustomer:
		row.Reason = ReasonCustomer
	case ByEvent:
		row.Reason = ReasonEventCancelled
	}
	first := row
	first.ID, first.From, first.FeeKept, first.Rule = c.IDs[0], o.ID, kept, rule
	for _, t := range tickets {
		first.Tickets = append(first.Tickets, t.ID)
		t.State, t.Refund = TicketVoid, first.ID
	}
	if due == 0 {
		first.State = RefundDone
		m.refunds[first.ID] = &first
		m.publish(o, NoticeRefundDone, "refund_id", first.ID.Text(id.Refund))
	} else {
		m.requestRefunds(row, c.IDs, m.draw(o, due))
		r := m.refunds[first.ID]
		r.Tickets, r.FeeKept, r.Rule = first.Tickets, first.FeeKept, first.Rule
	}
	m.endIfAllBack(o, row.Reason)
	m.remember(c.Customer, OpRefund, c.Key, first.ID)
	return m.refundAnswer(m.refunds[first.ID])
}

// ticketsToRefund are those named, else all that are valid and may be meant, by id.
func (m *Model) ticketsToRefund(c BeginRefund, o *Order) []*Ticket {
	var tickets []*Ticket
	for _, t := range m.ticketsOf(o) {
		all := len(c.Tickets) == 0 && t.State != TicketVoid
		if c.By == ByCustomer {
			all = all && t.State == TicketValid && t.Customer == o.Customer
		}
		if all || slices.Contains(c.Tickets, t.ID) {
			tickets = append(tickets, t)
		}
	}
	return tickets
}

// refundProblem is the first field of a refund that cannot be, "" where all can.
func refundProblem(c BeginRefund, tickets []*Ticket) string {
	used := slices.ContainsFunc(tickets, func(t *Ticket) bool { return t.State == TicketUsed })
	switch {
	case c.By < ByCustomer || c.By > ByEvent:
		return "by"
	case len(c.Tickets) > len(tickets):
		return "tickets"
	case len(c.IDs) < RefundPartsMax:
		return "ids"
	case c.By == ByOrganizer && (c.Fee < 0 || c.Fee > totalOf(tickets)):
		return "fee"
	case c.By == ByOrganizer && c.Used && used && c.Reason == "":
		return "reason"
	}
	return ""
}

func (m *Model) notRefundable(c BeginRefund, o *Order, tickets []*Ticket) *fault.Error {
	e := m.events[o.Event]
	if c.By == ByCustomer && e.Refunds.Until <= m.now {
		return fault.New(fault.NotRefundable, "the event does not allow it now")
	}
	if c.By == ByEvent && e.State != Cancelled {
		return fault.New(fault.NotRefundable, "the event is %s", e.State)
	}
	for _, t := range tickets {
		if c.By == ByCustomer && t.Customer != o.Customer {
			return fault.New(fault.NotRefundable, "ticket %d was passed on", t.ID)
		}
	}
	if o.State != OrderPaid || len(tickets) == 0 {
		return fault.New(fault.Conflict, "the order is %s, with nothing to give back", o.State)
	}
	for _, t := range tickets {
		mayUsed := c.By == ByEvent || c.By == ByOrganizer && c.Used
		if t.State == TicketVoid || t.State == TicketUsed && !mayUsed || m.marked(t) {
			return fault.New(fault.Conflict, "ticket %d is %s, or being exchanged", t.ID, t.State)
		}
	}
	if !m.moneyTaken(o) {
		return &fault.Error{Code: fault.PaymentInProgress, Order: o.ID}
	}
	return nil
}

// keptOf is what is kept of all tickets together, and by which rule.
func (m *Model) keptOf(c BeginRefund, tickets []*Ticket) (kept int64, rule string) {
	switch c.By {
	case ByOrganizer:
		return c.Fee, "organizer"
	case ByEvent:
		return 0, "event"
	}
	r := m.events[m.orders[c.Order].Event].Refunds
	for _, t := range tickets {
		kept += r.Kept(t.Total)
	}
	return kept, fmt.Sprintf("customer %d bp + %d", r.FeeBP, r.FeePlace)
}

// A modelPart is money that lies in one payment.
type modelPart struct {
	order             id.ID // whose payment it is
	provider, payment string
	amount            int64
}

// draw takes money out of what an order has: its own payment first, then what came over from earlier ones. Of a fund
// nothing is promised anew: that was done when it was made.
func (m *Model) draw(o *Order, amount int64) []modelPart {
	var parts []modelPart
	if p := m.ownPayment(o); p != nil {
		if n := min(amount, p.Captured-p.Promised); n > 0 {
			p.Promised += n
			amount -= n
			parts = append(parts, modelPart{o.ID, p.Provider, p.ID, n})
		}
	}
	for i := range o.Funds {
		f := &o.Funds[i]
		if n := min(amount, f.Left); n > 0 {
			f.Left -= n
			amount -= n
			parts = append(parts, modelPart{f.Order, f.Provider, f.Payment, n})
		}
	}
	if amount > 0 {
		panic(fmt.Sprintf("ledger: order %d has %d less than its tickets cost (I6)", o.ID, amount))
	}
	return parts
}

// requestRefunds makes a refund like row for each part.
func (m *Model) requestRefunds(row Refund, ids []id.ID, parts []modelPart) {
	for i, part := range parts {
		r := row
		r.ID, r.From, r.Provider, r.Payment, r.Amount = ids[i], part.order, part.provider, part.payment, part.amount
		m.refunds[r.ID] = &r
		m.publish(m.orders[r.Order], NoticeRefundRequested, "refund_id", r.ID.Text(id.Refund))
	}
}

// whole says whether a refund gives back a payment that should not have been made: it is of no tickets' money.
func (m *Model) whole(r *Refund) bool {
	p := m.payments[modelPayment{r.From, r.Payment}]
	return p != nil && p.Refund == r.ID
}

// endIfAllBack makes an order REFUNDED when all its tickets are, and their money is back.
func (m *Model) endIfAllBack(o *Order, reason string) {
	for _, r := range m.refunds {
		if r.Order == o.ID && r.State == RefundRequested && !m.whole(r) {
			return
		}
	}
	if o.State == OrderPaid && len(m.validTickets(o)) == 0 {
		m.endRefunded(o, reason)
	}
}

func (m *Model) endRefunded(o *Order, reason string) {
	o.State, o.Reason = OrderRefunded, reason
	m.publish(o, NoticeRefunded)
}

func (m *Model) refuseRefund(c RefuseRefund) Result {
	r := m.refunds[c.Refund]
	switch {
	case r == nil:
		return refuse(fault.RefundUnknown, "")
	case r.State != RefundRequested:
		return refuse(fault.Conflict, "the refund is %s", r.State)
	case c.Try < r.Try || c.Try == r.Try && r.Refused != "":
		answer := m.refundAnswer(r)
		answer.Repeat = true
		return answer
	case c.Try > r.Try:
		return refuse(fault.Conflict, "try %d was not made yet", c.Try)
	}
	r.Refused = c.Reason
	if r.Refused == "" {
		r.Refused = "refused"
	}
	m.publish(m.orders[r.Order], NoticeRefundRefused, "refund_id", r.ID.Text(id.Refund))
	return m.refundAnswer(r)
}

func (m *Model) retryRefund(c RetryRefund) Result {
	r := m.refunds[c.Refund]
	switch {
	case r == nil:
		return refuse(fault.RefundUnknown, "")
	case r.State != RefundRequested || r.Refused == "" || c.Try != r.Try+1:
		return refuse(fault.Conflict, "the refund is %s, at try %d", r.State, r.Try)
	}
	r.Try, r.Refused = c.Try, ""
	m.publish(m.orders[r.Order], NoticeRefundRequested, "refund_id", r.ID.Text(id.Refund))
	return m.refundAnswer(r)
}

func (m *Model) releaseSeats(c ReleaseSeats) Result {
	r := m.refunds[c.Refund]
	switch {
	case r == nil:
		return refuse(fault.RefundUnknown, "")
	case r.State == RefundRequested:
		return refuse(fault.Conflict, "the money is not back yet")
	case r.State == RefundSeatReleased || len(r.Tickets) == 0:
		answer := m.refundAnswer(r)
		answer.Repeat = true
		return answer
	}
	var tickets []*Ticket
	for _, ticket := range r.Tickets {
		tickets = append(tickets, m.tickets[ticket])
	}
	o := m.orders[r.Order]
	m.placesBack(o, tickets, r.Reason)
	r.State = RefundSeatReleased
	m.publish(o, NoticeSeatsReleased, "refund_id", r.ID.Text(id.Refund))
	return m.refundAnswer(r)
}

// placesBack lets others have the places of an order's tickets that are VOID.
func (m *Model) placesBack(o *Order, tickets []*Ticket, why string) {
	h, e := m.holds[o.Hold], m.events[o.Event]
	var lines []Line
	for _, t := range tickets {
		line := &h.Lines[t.Place]
		if line.Seat >= 0 {
			if s := e.seats[line.Seat]; s.state != Sold || s.claim != h.ID || s.epoch != line.Epoch {
				panic(fmt.Sprintf("ledger: seat %d is not sold by hold %d", line.Seat, h.ID))
			}
			m.freeSeat(e, line.Seat)
		}
		lines = append(lines, *line)
		line.Gone, t.Gone = true, true
		if int(t.Place) < len(o.Documents) {
			o.Documents[t.Place] = ""
		}
	}
	if h.Area >= 0 {
		m.freePlaces(e, h.Area, len(tickets))
	}
	m.step(h, "sold", "released", why, lines)
	if !slices.ContainsFunc(h.Lines, func(l Line) bool { return !l.Gone }) {
		h.State, h.Order = HoldReleased, 0
	}
}
