package audit

import (
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// refundRow checks one refund and reads what it is of.
func (s *sale) refundRow(r *refundRow) {
	s.a.saw(CheckMoney, 1)
	name := r.id.Text(id.Refund)
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
	switch p := s.paymentOf(r); {
	case p == nil:
		s.bad(CheckReferences, "the payment %s of %s is not there", r.payment, name)
	case r.currency != p.currency:
		s.bad(CheckMoney, "%s is in %s, its payment in %s", name, r.currency, p.currency)
	}
}

// money checks the order's payments and their sum (I6). What is due (a capture, a refund) counts as done: it is in flight,
// and the sum must come out right by it.
func (s *sale) money() {
	var captured, refunded, tickets, fees int64
	for i := range s.payments {
		p := &s.payments[i]
		s.a.saw(CheckMoney, 1)
		s.paymentAlone(p)
		s.paymentRefunds(p)
		if t := s.a.events[s.event]; t != nil {
			t.Captured += p.captured
			t.Refunded += p.refunded
		}
		captured += p.captured
		refunded += p.refunded
		if s.paymentDue(p) {
			captured += p.authorized
		}
	}
	for i := range s.refunds {
		r := &s.refunds[i]
		fees += r.feeKept
		if r.state == ledger.RefundRequested {
			s.due = append(s.due, "refund to be made")
			if p := s.paymentOf(r); p != nil && p.captured > 0 {
				refunded += r.amount
			}
		}
	}
	for i := range s.tickets {
		if s.tickets[i].valid() {
			tickets += s.tickets[i].total
		}
	}
	s.payer()
	if s.state != ledger.OrderPending && captured-refunded != tickets+fees {
		s.bad(CheckI6, "with what is due, captured are %d and refunded %d; its valid tickets cost %d, fees kept are %d", captured, refunded, tickets, fees)
	}
}

// paymentOf is the payment that a refund gives back, nil where it is not there.
func (s *sale) paymentOf(r *refundRow) *paymentRow {
	for i := range s.payments {
		if p := &s.payments[i]; p.provider == r.provider && p.id == r.payment {
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

// paymentRefunds checks that what the refunds of a payment gave back is what the payment says went back.
func (s *sale) paymentRefunds(p *paymentRow) {
	back := int64(0)
	found := p.refund == 0
	for i := range s.refunds {
		r := &s.refunds[i]
		if r.provider != p.provider || r.payment != p.id {
			continue
		}
		found = found || r.id == p.refund
		if r.state >= ledger.RefundDone {
			back += r.amount
		}
	}
	if !found {
		s.bad(CheckReferences, "payment %s is given back by %s, which is not there", p.id, p.refund.Text(id.Refund))
	}
	if (p.state == ledger.PaymentCaptured || p.state == ledger.PaymentRefunded) && back != p.refunded {
		s.bad(CheckMoney, "payment %s says %d refunded, its refunds %d", p.id, p.refunded, back)
	}
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
	if s.state != ledger.OrderPaid && s.state != ledger.OrderRefunded {
		return
	}
	for i := range s.payments {
		p := &s.payments[i]
		if p.provider != s.orderRow.provider || p.id != s.payment {
			continue
		}
		if s.state == ledger.OrderPaid && (p.state == ledger.PaymentVoided || p.state == ledger.PaymentCaptureRefused) {
			s.bad(CheckI6, "it is PAID by payment %s, which is %s", p.id, p.state)
		}
		return
	}
	if s.amount > 0 {
		s.bad(CheckI6, "it is %s by payment %q, which is not there", s.state, s.payment)
	}
}
