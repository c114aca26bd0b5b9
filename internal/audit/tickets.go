package audit

import (
	"cmp"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Each place of what was sold has one ticket that nobody passed on: it is valid, or was given back by one refund. Those
// before it in its chain are VOID and gone.

// places compares the tickets with the places of the hold (I3, I7).
func (s *sale) places() {
	if len(s.tickets) > 0 && !s.sold() {
		s.bad(CheckI7, "it is %s, and has %d tickets", s.state, len(s.tickets))
		return
	}
	if !s.sold() {
		return
	}
	last := s.lastOfEach()
	valid, gone := 0, 0
	for i, t := range last {
		l := &s.hold.lines[i]
		if l.gone {
			gone++
		}
		if t == nil {
			continue
		}
		if t.valid() {
			valid++
		}
		if t.gone != l.gone {
			s.bad(CheckI7, "place %d and its %s do not agree whether it has gone back", i, ticketText(t))
		}
	}
	switch {
	case len(s.tickets) == 0:
		s.bad(CheckI7, "it is %s and has no ticket", s.state)
	case s.state == ledger.OrderRefunded && valid > 0:
		s.bad(CheckI7, "it is REFUNDED, and %d tickets are valid", valid)
	case s.state == ledger.OrderRefunded && s.reason != ledger.ReasonExchanged && s.waits():
		s.bad(CheckI7, "it is REFUNDED, and money of its tickets is still to go back")
	case s.state == ledger.OrderPaid && valid == 0 && !s.waits():
		s.bad(CheckI7, "it is PAID and has no valid ticket left")
	case gone < len(s.hold.lines) && s.hold.state != ledger.HoldSold:
		s.bad(CheckI4, "it is %s, but its hold %s is in state %d", s.state, holdText(s.hold.id), s.hold.state)
	}
}

// lastOfEach finds the ticket of each place that nobody passed on, nil where there is not just one, for just that place.
func (s *sale) lastOfEach() []*ticketRow {
	last := make([]*ticketRow, len(s.hold.lines))
	n, fit := 0, true
	for i := range s.tickets {
		t := &s.tickets[i]
		if s.passedOn(t) > 0 {
			continue
		}
		n++
		if t.place < 0 || int(t.place) >= len(last) || last[t.place] != nil {
			fit = false
			continue
		}
		l := s.hold.lines[t.place]
		fit = fit && t.seat == l.seat && t.area == s.hold.area && t.category == l.category && t.total == l.total
		last[t.place] = t
	}
	if n > 0 && (!fit || n != len(last)) {
		s.bad(CheckI3, "its %d tickets are not for the %d places of its hold", n, len(last))
	}
	return last
}

// passedOn counts the tickets that one became.
func (s *sale) passedOn(t *ticketRow) (n int) {
	if !s.transferred { // as nearly always
		return 0
	}
	for i := range s.tickets {
		if s.tickets[i].was == t.id {
			n++
		}
	}
	return n
}

// waits says whether money of the order's tickets is still to go back.
func (s *sale) waits() bool {
	return slices.ContainsFunc(s.refunds, func(r refundRow) bool { return r.state == ledger.RefundRequested && !s.whole(&r) })
}

// documentsGone checks that no document stands for a place that has gone back. An order that was not paid may have been
// followed by one of the same hold that was; and where money was refused, all went at once.
func (s *sale) documentsGone() {
	documents, err := parseDocuments(s.documents)
	if err != nil || !s.sold() || s.reason == ledger.ReasonCaptureRefused { // the first is reported by the walk over events
		return
	}
	if len(documents) > len(s.hold.lines) {
		s.bad(CheckReferences, "it has %d documents for %d places", len(documents), len(s.hold.lines))
		return
	}
	for i, d := range documents {
		if d != "" && s.hold.lines[i].gone {
			s.bad(CheckTickets, "place %d has gone back, and a document still stands for it", i)
		}
	}
}

// pasts checks what each ticket says of how it came and went.
func (s *sale) pasts() {
	for i := range s.tickets {
		t := &s.tickets[i]
		s.a.saw(CheckTickets, 1)
		s.cameFrom(t)
		passed := s.passedOn(t)
		name := ticketText(t)
		switch {
		case passed > 1:
			s.bad(CheckTickets, "%s was passed on as %d tickets", name, passed)
		case t.valid() && (passed > 0 || t.refund != 0 || t.gone):
			s.bad(CheckTickets, "%s is valid, but was passed on or given back", name)
		case t.valid():
		case passed > 0 && (t.refund != 0 || !t.gone):
			s.bad(CheckTickets, "%s was passed on, and is in a refund or has not gone", name)
		case passed == 0 && t.refund == 0:
			s.bad(CheckI7, "%s is void, and nobody refunded it", name)
		case t.refund != 0:
			s.wentBack(t)
		}
	}
}

// cameFrom checks a ticket against the one that it was before.
func (s *sale) cameFrom(t *ticketRow) {
	if t.event != s.event || (t.was == 0 && t.customer != s.customer) {
		s.bad(CheckReferences, "%s is of another event or customer", ticketText(t))
	}
	if t.was == 0 {
		return
	}
	old := s.ticket(t.was)
	switch {
	case old == nil || old == t:
		s.bad(CheckTickets, "%s was %s, which is not there", ticketText(t), t.was.Text(id.Ticket))
	case old.seat != t.seat || old.area != t.area || old.category != t.category || old.total != t.total || old.place != t.place:
		s.bad(CheckTickets, "%s is for another place than %s was", ticketText(t), ticketText(old))
	case old.customer == t.customer:
		s.bad(CheckTickets, "%s was passed on by its customer to themselves", ticketText(old))
	case old.valid():
		s.bad(CheckTickets, "%s was passed on as %s, and is still valid", ticketText(old), ticketText(t))
	}
}

// wentBack checks a ticket against the refund that it names.
func (s *sale) wentBack(t *ticketRow) {
	name := ticketText(t)
	i := slices.IndexFunc(s.refunds, func(r refundRow) bool { return r.id == t.refund })
	if i < 0 {
		s.bad(CheckTickets, "%s went back by %s, which is not there", name, t.refund.Text(id.Refund))
		return
	}
	r := &s.refunds[i]
	refusedMoney := len(r.tickets) == 0 && r.reason == ledger.ReasonCaptureRefused // it names no tickets: all are meant (A18)
	switch {
	case !refusedMoney && !slices.Contains(r.tickets, t.id):
		s.bad(CheckTickets, "%s went back by %s, which does not name it", name, r.name())
	case t.gone != (r.state == ledger.RefundSeatReleased):
		s.bad(CheckTickets, "%s and %s do not agree whether its place has gone back", name, r.name())
	}
}

// refundsOfTickets checks that each ticket is in one refund at most, and went back by it (A21).
func (s *sale) refundsOfTickets() {
	for i := range s.refunds {
		r := &s.refunds[i]
		total := int64(0)
		for k, ticket := range r.tickets {
			t := s.ticket(ticket)
			switch {
			case t == nil:
				s.bad(CheckTickets, "%s is of %s, which is not there", r.name(), ticket.Text(id.Ticket))
				continue
			case slices.Contains(r.tickets[:k], ticket) || t.refund != r.id:
				s.bad(CheckTickets, "%s is in %s, but went back by %s", ticketText(t), r.name(), refundText(t.refund))
			}
			total += t.total
		}
		if r.feeKept > total {
			s.bad(CheckMoney, "of the tickets of %s, which cost %d, %d are kept", r.name(), total, r.feeKept)
		}
		if r.state == ledger.RefundSeatReleased && len(r.tickets) == 0 && r.reason != ledger.ReasonCaptureRefused {
			s.bad(CheckTickets, "%s has released seats, and is of no ticket", r.name())
		}
	}
}

func refundText(refund id.ID) string {
	if refund == 0 {
		return "no refund"
	}
	return refund.Text(id.Refund)
}

// ticket finds one of the order's: they are sorted.
func (s *sale) ticket(ticket id.ID) *ticketRow {
	i, ok := slices.BinarySearchFunc(s.tickets, ticket, func(t ticketRow, v id.ID) int { return cmp.Compare(t.id, v) })
	if !ok {
		return nil
	}
	return &s.tickets[i]
}
