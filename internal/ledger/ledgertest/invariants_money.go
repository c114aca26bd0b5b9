package ledgertest

import (
	"fmt"

	"onsale/internal/ledger"
)

// I6 is looked at twice, and from two sides: of each order, whether what came in is what its valid tickets cost, what was
// kept, and what went out again; and of each payment, whether all that was promised of it was promised to somebody.

// brokenMoney is what is wrong with what an order took and gave.
func (s *stock) brokenMoney(o ledger.Order) error {
	if o.State != ledger.OrderPaid && o.State != ledger.OrderRefunded {
		if o.Credit != 0 || len(o.Funds) > 0 {
			return fmt.Errorf("I6: order %d is %s and has a credit", o.ID, o.State)
		}
		return nil
	}
	own, inFlight := s.owned(o)
	out, kept, price := int64(0), int64(0), int64(0)
	for _, r := range s.refunds {
		if r.Order == o.ID && !s.whole(r) {
			out, kept = out+r.Amount, kept+r.FeeKept
		}
	}
	for _, later := range s.orders {
		if later.Exchange == o.ID {
			out += later.Credit
		}
	}
	for _, t := range o.Tickets {
		if t.State != ledger.TicketVoid {
			price += t.Total
		}
	}
	if own+o.Credit-out != price+kept {
		return fmt.Errorf("I6: order %d has %d of its own and %d of an earlier one, gave %d, but its tickets cost %d and %d was kept",
			o.ID, own, o.Credit, out, price, kept)
	}
	left := int64(0)
	for _, f := range o.Funds {
		if f.Left < 0 {
			return fmt.Errorf("I6: order %d has less than nothing of %+v", o.ID, f)
		}
		left += f.Left
	}
	if p := s.payments[paid{o.ID, o.Provider, o.Payment}]; own > 0 {
		left += own - p.Promised
		if p.Promised > 0 && inFlight {
			return fmt.Errorf("I6: money of order %d was promised before it was there", o.ID)
		}
	}
	if left != price+kept {
		return fmt.Errorf("I6: order %d has %d left, but its tickets cost %d and %d was kept", o.ID, left, price, kept)
	}
	return nil
}

// owned is what an order's own payment brings it; inFlight: it is not captured yet.
func (s *stock) owned(o ledger.Order) (amount int64, inFlight bool) {
	p := s.payments[paid{o.ID, o.Provider, o.Payment}]
	if o.Amount == 0 || p.State == ledger.PaymentCaptureRefused {
		return 0, false
	}
	return o.Amount, p.State == ledger.PaymentAuthorized
}

// brokenPayments is what is wrong with a payment: more given back than was taken, or not what its refunds say.
func (s *stock) brokenPayments() error {
	promised, refunded := map[paid]int64{}, map[paid]int64{}
	for _, r := range s.refunds {
		if r.Payment == "" {
			if r.Amount != 0 {
				return fmt.Errorf("I6: refund %d gives %d back of no payment", r.ID, r.Amount)
			}
			continue
		}
		key := paid{r.From, r.Provider, r.Payment}
		p, known := s.payments[key]
		if !known {
			return fmt.Errorf("I6: refund %d is of payment %+v, which is not there", r.ID, key)
		}
		if !s.whole(r) {
			promised[key] += r.Amount
		}
		if r.State != ledger.RefundRequested && p.State == ledger.PaymentRefunded {
			refunded[key] += r.Amount
		}
	}
	for _, o := range s.orders {
		for _, f := range o.Funds {
			promised[paid{f.Order, f.Provider, f.Payment}] += f.Left
		}
	}
	for key, p := range s.payments {
		switch {
		case p.Promised != promised[key]:
			return fmt.Errorf("I6: %d of payment %+v is promised, but refunds and orders have %d of it", p.Promised, p, promised[key])
		case p.Refunded != refunded[key]:
			return fmt.Errorf("I6: %d of payment %+v is given back, by its refunds %d", p.Refunded, p, refunded[key])
		case p.Refunded > p.Captured || p.Promised > p.Captured || p.Captured > p.Authorized:
			return fmt.Errorf("I6: payment %+v", p)
		}
	}
	return nil
}
