package audit

import (
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// I6 is looked at from three sides. Of an order: what came in, less what went back and what moved on to orders that
// exchanged it, is what its valid tickets cost and what was kept. Of the same order: so much is promised to nobody else.
// And of a payment: what is promised of it is what refunds took and later orders have of it, what went back is what its
// refunds say.

// refundRow checks one refund and reads what it is of.
func (s *sale) refundRow(r *refundRow) {
	s.a.saw(CheckMoney, 1)
	name := r.name()
	tickets, err := parseIDs(r.text)
	if err != nil {
		s.bad(CheckReferences, "%s: its tickets cannot be read", name)
	}
	r.tickets = tickets
	if r.state < ledger.RefundRequested || r.state > ledger.RefundSeatReleased {
		s.bad(CheckReferences, "%s has no state (%d)", name, r.state)
	}
	if r.amount < 0 || r.feeKept < 0 {
		s.bad(CheckMoney, "%s is of an amount below 0", name)
	}
	s.a.requested(s.event, r)
	switch p := s.paymentOf(r); {
	case r.payment == "" && (r.amount != 0 || r.state == ledger.RefundRequested):
		s.bad(CheckMoney, "%s gives back %d of no payment", name, r.amount)
	case r.payment == "":
	case r.from != s.id: // that order looks at the payment
	case p == nil:
		s.bad(CheckReferences, "the payment %s of %s is not there", r.payment, name)
	case r.currency != p.currency:
		s.bad(CheckMoney, "%s is in %s, its payment in %s", name, r.currency, p.currency)
	}
}

// requested counts a refund in its event's figures.
func (a *audit) requested(event id.ID, r *refundRow) {
	t := a.events[event]
	if t == nil {
		return
	}
	t.Kept += r.feeKept
	switch {
	case r.state != ledger.RefundRequested:
	case r.refused == "":
		t.Refunds.Requested++
	default:
		t.Refunds.Refused++
	}
}

// whole says whether a refund gives back a payment that bought nothing: it is of no tickets.
func (s *sale) whole(r *refundRow) bool {
	p := s.paymentOf(r)
	return p != nil && p.refund == r.id
}

// money checks the order's payments and their sum (I6). What is due (a capture, a refund) counts as done: it is in flight,
// and the sum must come out right by it.
func (s *sale) money() {
	own, promised := int64(0), int64(0) // taken by the payment that made it PAID
	for i := range s.payments {
		p := &s.payments[i]
		s.a.saw(CheckMoney, 1)
		s.paymentAlone(p)
		whole := s.paymentRefunds(p)
		if t := s.a.events[s.event]; t != nil {
			t.Captured += p.captured
			t.Refunded += p.refunded
		}
		taken := p.captured
		if s.paymentDue(p) {
			taken += p.authorized
		}
		switch {
		case s.isOwn(p):
			own, promised = s.paidInFull(p, taken), p.promised
		case s.state != ledger.OrderPending && taken > 0 && taken != whole:
			s.bad(CheckI6, "payment %s took %d, gave %d back, and bought nothing", p.id, taken, whole)
		}
	}
	s.payer()
	s.sum(own, promised)
}

// paidInFull checks that what was taken is what the order is over, and gives what the sum is to come out right by: less
// than was agreed is reported here, once.
func (s *sale) paidInFull(p *paymentRow, taken int64) int64 {
	if p.state == ledger.PaymentCaptureRefused {
		return 0
	}
	if taken != s.amount {
		s.bad(CheckI6, "payment %s took %d, %d were agreed", p.id, taken, s.amount)
	}
	return s.amount
}

// sum holds what came in against what went out and what is left.
func (s *sale) sum(own, promised int64) {
	var back, moved, tickets, fees int64
	for i := range s.refunds {
		r := &s.refunds[i]
		fees += r.feeKept
		s.refundDue(r)
		if !s.whole(r) {
			back += r.amount
		}
	}
	for i := range s.later {
		if l := &s.later[i]; l.state == ledger.OrderPaid || l.state == ledger.OrderRefunded {
			moved += l.credit
		}
	}
	for i := range s.tickets {
		if s.tickets[i].valid() {
			tickets += s.tickets[i].total
		}
	}
	switch {
	case s.state == ledger.OrderPending:
	case own+s.credit-back-moved != tickets+fees:
		s.bad(CheckI6, "with what is due, it took %d, %d came over, %d went back and %d moved on; its valid tickets cost %d, fees kept are %d",
			own, s.credit, back, moved, tickets, fees)
	case s.sold():
		s.unpromised(own-promised, tickets, fees)
	}
}

// unpromised checks what of the order's money is promised to nobody else: in its own payment, and in those of its funds.
func (s *sale) unpromised(left, tickets, fees int64) {
	for _, f := range s.funds {
		left += f.Left
	}
	if left != tickets+fees {
		s.bad(CheckI6, "%d of its money is not promised to anybody; its valid tickets cost %d, fees kept are %d", left, tickets, fees)
	}
}

// refundDue notes money that is still to go back.
func (s *sale) refundDue(r *refundRow) {
	switch {
	case r.state != ledger.RefundRequested:
	case r.refused != "":
		s.refused = true
	default:
		s.due = append(s.due, "refund to be made")
	}
	if r.payment == "" || s.whole(r) || r.from == s.id && r.payment == s.payment {
		return
	}
	mine := slices.ContainsFunc(s.funds, func(f fund) bool { return f.Order == r.from && f.Provider == r.provider && f.Payment == r.payment })
	if !mine {
		s.bad(CheckI6, "%s gives back payment %s of %s, in which it has no money", r.name(), r.payment, orderText(r.from))
	}
}

// isOwn says whether a payment made the order PAID.
func (s *sale) isOwn(p *paymentRow) bool {
	return s.sold() && s.amount > 0 && p.provider == s.orderRow.provider && p.id == s.payment
}

// paymentOf is the order's own payment that a refund gives back, nil where it is not there or another order's.
func (s *sale) paymentOf(r *refundRow) *paymentRow {
	if r.from != s.id {
		return nil
	}
	return s.paymentBy(r.provider, r.payment)
}

func (s *sale) paymentBy(provider, payment string) *paymentRow {
	for i := range s.payments {
		if p := &s.payments[i]; p.provider == provider && p.id == payment {
			return p
		}
	}
	return nil
}

// paymentAlone checks that the amounts of a payment are what its state says.
func (s *sale) paymentAlone(p *paymentRow) {
	ok := p.authorized >= 0
	switch p.state {
	case ledger.PaymentAuthorized, ledger.PaymentCaptureRefused:
		ok = ok && p.captured == 0 && p.voided == 0 && p.refunded == 0
	case ledger.PaymentCaptured:
		ok = ok && p.captured >= 0 && p.captured <= p.authorized && p.voided == 0 && p.refunded == 0
	case ledger.PaymentVoided:
		ok = ok && p.voided == p.authorized && p.captured == 0 && p.refunded == 0
	case ledger.PaymentRefunded:
		ok = ok && p.captured <= p.authorized && p.refunded >= 0 && p.refunded <= p.captured && p.voided == 0
	default:
		s.bad(CheckReferences, "payment %s has no state (%d)", p.id, p.state)
		return
	}
	if !ok {
		s.bad(CheckMoney, "payment %s is %s with authorized %d, captured %d, voided %d, refunded %d",
			p.id, p.state, p.authorized, p.captured, p.voided, p.refunded)
	}
	if p.currency != s.currency && p.refund == 0 {
		s.bad(CheckMoney, "payment %s is in %s, the order in %s", p.id, p.currency, s.currency)
	}
}

// refundsOf walks the refunds that are done with a payment, whoever's tickets they are of.
func (s *sale) refundsOf(p *paymentRow, yield func(r *refundRow)) {
	for _, list := range [][]refundRow{s.refunds, s.given} {
		for i := range list {
			if list[i].of(p) {
				yield(&list[i])
			}
		}
	}
}

// paymentRefunds checks that what the refunds of a payment gave back is what the payment says went back, and that they and
// the orders that have money of it are those to which it is promised. whole is what is given back because it bought nothing.
func (s *sale) paymentRefunds(p *paymentRow) (whole int64) {
	var back, promised int64
	found := p.refund == 0
	s.refundsOf(p, func(r *refundRow) {
		if r.id == p.refund {
			found = true
			whole += r.amount
		} else {
			promised += r.amount
		}
		if r.state >= ledger.RefundDone {
			back += r.amount
		}
	})
	for i := range s.lent {
		if l := &s.lent[i]; l.Provider == p.provider && l.Payment == p.id {
			promised += l.Left
		}
	}
	if !found {
		s.bad(CheckReferences, "payment %s is given back by %s, which is not there", p.id, refundText(p.refund))
	}
	taken := p.state == ledger.PaymentCaptured || p.state == ledger.PaymentRefunded
	if taken && back != p.refunded {
		s.bad(CheckMoney, "payment %s says %d refunded, its refunds %d", p.id, p.refunded, back)
	}
	if promised != p.promised {
		s.bad(CheckMoney, "payment %s says %d promised; its refunds and later orders have %d of it", p.id, p.promised, promised)
	}
	if whole+promised > p.captured && (taken || promised > 0) {
		s.bad(CheckI6, "of payment %s %d are captured, and %d given back or promised", p.id, p.captured, whole+promised)
	}
	return whole
}

// paymentDue says whether a payment is to be captured. Reserved money that nothing will take or let go is a fault.
func (s *sale) paymentDue(p *paymentRow) bool {
	if p.state != ledger.PaymentAuthorized {
		return false
	}
	switch {
	case s.state == ledger.OrderPaid && s.payment == p.id && p.refund == 0:
		s.due = append(s.due, "capture due")
		return true
	case p.refund == 0 && s.state != ledger.OrderPending: // else the refund will, or who pays is not known yet
		s.bad(CheckI6, "payment %s is authorized, and nothing will capture or void it", p.id)
	}
	return false
}

// payer checks the payment that made the order PAID.
func (s *sale) payer() {
	if !s.sold() {
		return
	}
	if p := s.paymentBy(s.orderRow.provider, s.payment); p != nil {
		if s.state == ledger.OrderPaid && s.amount > 0 && (p.state == ledger.PaymentVoided || p.state == ledger.PaymentCaptureRefused) {
			s.bad(CheckI6, "it is PAID by payment %s, which is %s", p.id, p.state)
		}
		return
	}
	if s.amount > 0 {
		s.bad(CheckI6, "it is %s by payment %q, which is not there", s.state, s.payment)
	}
}
