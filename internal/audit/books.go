package audit

import (
	"context"
	"fmt"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// unknownGrace is how long money under an unknown order id may lie before the recovery job gives it back (A20).
const unknownGrace = ledger.Duration(60 * 60 * 1000)

// noticeGrace is how long a payment may lie at the provider before the ledger has heard of it: of a second payment of an
// order it hears by webhook alone, and webhooks are late on a busy day.
const noticeGrace = ledger.Duration(10 * 60 * 1000)

// books are the provider's, by order id.
type books struct {
	name    string // "": any
	byOrder map[string][]payment.Payment
}

// readBooks reads the whole list, nil where there is no provider.
func readBooks(ctx context.Context, list payment.Lister) (*books, error) {
	if list == nil {
		return nil, nil
	}
	b := &books{byOrder: map[string][]payment.Payment{}}
	if named, ok := list.(interface{ Name() string }); ok {
		b.name = named.Name()
	}
	for cursor := ""; ; {
		page, err := list.List(ctx, cursor)
		if err != nil {
			return nil, err
		}
		for _, p := range page.Payments {
			b.byOrder[p.OrderID] = append(b.byOrder[p.OrderID], p)
		}
		if page.Next == "" {
			return b, nil
		}
		if page.Next == cursor {
			return nil, fmt.Errorf("the cursor %q leads to itself", cursor)
		}
		cursor = page.Next
	}
}

// provider compares an order's payments with the provider's list, both ways.
func (s *sale) provider() {
	b := s.a.books
	if b == nil {
		return
	}
	key := orderText(s.id)
	theirs := b.byOrder[key]
	delete(b.byOrder, key)
	for i := range theirs {
		s.a.report.provider(&theirs[i])
		s.compare(&theirs[i])
	}
	for i := range s.payments {
		p := &s.payments[i]
		if b.name != "" && p.provider != b.name {
			continue
		}
		if !slices.ContainsFunc(theirs, func(t payment.Payment) bool { return t.ID == p.id }) {
			s.differs("payment %s is not in the provider's list", p.id)
		}
	}
}

// differs reports a difference, unless the order changed after the provider's list was read.
func (s *sale) differs(format string, args ...any) {
	if s.updated >= s.a.began {
		s.due = append(s.due, "changed during the audit")
		return
	}
	s.bad(CheckI6, format, args...)
}

// compare judges one payment of the provider's list.
func (s *sale) compare(t *payment.Payment) {
	i := slices.IndexFunc(s.payments, func(p paymentRow) bool {
		return p.id == t.ID && (s.a.books.name == "" || p.provider == s.a.books.name)
	})
	if i < 0 {
		switch {
		case !t.State.Paid():
		case s.state == ledger.OrderPending && s.open:
			s.due = append(s.due, "paid at the provider")
		case ledger.TimeOf(t.CreatedAt) > s.a.now-ledger.Time(noticeGrace):
			s.due = append(s.due, "another payment at the provider, whose notice is still to come")
		default:
			s.differs("the provider has payment %s %s, %d captured and %d refunded; the ledger has none such", t.ID, t.State, t.CapturedMinor, t.RefundedMinor)
		}
		return
	}
	p := &s.payments[i]
	captureDue := p.state == ledger.PaymentAuthorized && p.refund == 0
	due := int64(0) // may have gone back before the ledger heard
	s.refundsOf(p, func(r *refundRow) {
		if r.state == ledger.RefundRequested {
			due += r.amount
		}
	})
	refusedOrVoid := p.state == ledger.PaymentVoided || p.state == ledger.PaymentCaptureRefused
	switch more := t.RefundedMinor - p.refunded; {
	case t.Currency != p.currency:
		s.differs("payment %s is in %s at the provider, in %s here", t.ID, t.Currency, p.currency)
	case t.CapturedMinor != p.captured && !(captureDue && t.CapturedMinor == p.authorized && s.state != ledger.OrderFailed && s.state != ledger.OrderExpired):
		s.differs("the provider has captured %d of payment %s, the ledger %d", t.CapturedMinor, t.ID, p.captured)
	case more < 0 || more > due:
		s.differs("the provider has refunded %d of payment %s, the ledger %d", t.RefundedMinor, t.ID, p.refunded)
	case t.State == payment.Authorized && p.state != ledger.PaymentAuthorized && p.state != ledger.PaymentCaptureRefused:
		s.differs("payment %s is authorized at the provider, %s here", t.ID, p.state)
	case t.State == payment.Authorized && t.AuthorizedMinor != p.authorized:
		s.differs("the provider has authorized %d of payment %s, the ledger %d", t.AuthorizedMinor, t.ID, p.authorized)
	case !t.State.Paid() && !refusedOrVoid && !captureDue && due == 0:
		s.differs("payment %s is %s at the provider, %s here", t.ID, t.State, p.state)
	default:
		s.compareRefunds(p, t)
	}
}

// compareRefunds compares the refunds of a payment one by one: the provider knows each by its key, or an earlier try's.
func (s *sale) compareRefunds(p *paymentRow, t *payment.Payment) {
	theirs := map[string]*payment.Refund{}
	for i := range t.Refunds {
		if r := &t.Refunds[i]; r.State == payment.RefundDone {
			theirs[r.ID] = r
		}
	}
	s.refundsOf(p, func(r *refundRow) {
		var done *payment.Refund
		for try := 0; try <= r.try; try++ {
			key := refundKey(r, try)
			if found := theirs[key]; found != nil {
				if done != nil {
					s.differs("the provider has given %s back twice, as %s and %s", r.name(), done.ID, key)
				}
				done = found
				delete(theirs, key)
			}
		}
		switch {
		case done == nil && r.state >= ledger.RefundDone && r.amount > 0 && p.captured > 0:
			s.differs("the ledger has %d given back by %s, the provider has no such refund", r.amount, r.name())
		case done != nil && done.AmountMinor != r.amount:
			s.differs("the provider has given %d back by %s, the ledger %d", done.AmountMinor, r.name(), r.amount)
		}
	})
	for i := range t.Refunds {
		if r := theirs[t.Refunds[i].ID]; r != nil {
			s.differs("the provider has given %d of payment %s back by %s, which the ledger does not know", r.AmountMinor, t.ID, r.ID)
		}
	}
}

// refundKey is a refund's idempotency key at the provider: its id, and after a refusal the number of the try.
func refundKey(r *refundRow, try int) string {
	if try == 0 {
		return r.name()
	}
	return r.name() + "-" + itoa(try)
}

// booksLeft judges what the provider has of orders that the ledger does not.
func (a *audit) booksLeft() {
	if a.books == nil || a.opts.Event != 0 {
		return
	}
	keys := make([]string, 0, len(a.books.byOrder))
	for k := range a.books.byOrder {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		for _, p := range a.books.byOrder[k] {
			a.report.provider(&p)
			if !p.State.Paid() || (p.State == payment.Captured && p.RefundedMinor == p.CapturedMinor) {
				continue
			}
			if ledger.TimeOf(p.CreatedAt) > a.now-ledger.Time(unknownGrace) {
				order, _ := id.Parse(id.Order, k)
				a.report.inFlight(order, "unknown order at the provider")
				continue
			}
			a.bad(CheckI6, 0, "payment "+p.ID, "the provider has %d captured and %d refunded under order %q, which is not there", p.CapturedMinor, p.RefundedMinor, k)
		}
	}
}
