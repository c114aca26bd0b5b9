package ledgertest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Broken names the first invariant (DESIGN 3) that does not hold in a ledger, by reading the named holds and orders of
// it. It shares nothing with the ledger's own decisions.
func Broken(ctx context.Context, l ledger.Ledger, holds, orders []id.ID) error {
	s, err := readStock(ctx, l, holds, orders)
	if err != nil {
		return err
	}
	for _, e := range s.events {
		if err := s.brokenIn(ctx, l, e); err != nil {
			return fmt.Errorf("event %d: %w", e.ID, err)
		}
		if err := s.brokenRoom(ctx, l, e); err != nil {
			return fmt.Errorf("event %d: %w", e.ID, err)
		}
	}
	for _, order := range slices.Sorted(maps.Keys(s.orders)) {
		if err := s.brokenOrder(s.orders[order]); err != nil {
			return err
		}
		if err := s.brokenMoney(s.orders[order]); err != nil {
			return err
		}
	}
	return s.brokenPayments()
}

// A stock is all that was read.
type stock struct {
	events   []ledger.Event
	holds    map[id.ID]ledger.Hold
	orders   map[id.ID]ledger.Order
	refunds  []ledger.Refund
	payments map[paid]ledger.Payment
}

// A paid is by what a payment is known.
type paid struct {
	order    id.ID
	provider string
	payment  string
}

func readStock(ctx context.Context, l ledger.Ledger, holds, orders []id.ID) (stock, error) {
	s := stock{holds: map[id.ID]ledger.Hold{}, orders: map[id.ID]ledger.Order{}, payments: map[paid]ledger.Payment{}}
	var err error
	if s.events, err = l.Events(ctx); err != nil {
		return s, err
	}
	for _, hold := range holds {
		if h, err := l.Hold(ctx, hold); err == nil {
			s.holds[hold] = h
		} else if !isNotFound(err) {
			return s, err
		}
	}
	for _, order := range slices.Compact(slices.Sorted(slices.Values(orders))) {
		o, err := l.Order(ctx, order)
		if isNotFound(err) {
			continue
		} else if err != nil {
			return s, err
		}
		s.orders[order] = o
		refunds, err := l.RefundsOf(ctx, order)
		if err != nil {
			return s, err
		}
		s.refunds = append(s.refunds, refunds...)
		payments, err := l.Payments(ctx, order)
		if err != nil {
			return s, err
		}
		for _, p := range payments {
			s.payments[paid{order, p.Provider, p.ID}] = p
		}
	}
	return s, nil
}

// brokenIn is what is wrong with who has an event's seats and places.
func (s *stock) brokenIn(ctx context.Context, l ledger.Ledger, e ledger.Event) error {
	now, err := l.Snapshot(ctx, e.ID)
	if err != nil {
		return err
	}
	claims := map[int32][]string{} // who has each seat
	areas := make([]ledger.AreaState, len(now.Areas))
	states := make([]ledger.Availability, len(now.Seats))
	going := map[id.ID]int{}
	for _, h := range s.holds {
		if h.Event != e.ID || h.State != ledger.HoldLive {
			continue
		}
		for _, line := range h.Lines {
			if h.Area >= 0 {
				areas[h.Area].Held++
				continue
			}
			states[line.Seat] = ledger.Held
			claims[line.Seat] = append(claims[line.Seat], fmt.Sprintf("hold %d", h.ID))
		}
	}
	for _, o := range s.orders {
		if o.Event != e.ID {
			continue
		}
		if o.State == ledger.OrderPending || o.State == ledger.OrderPaid {
			going[o.Hold]++
		}
		for _, t := range o.Tickets {
			if t.Gone { // what was given back, but not released yet, is sold
				continue
			}
			if t.Area >= 0 {
				areas[t.Area].Sold++
				continue
			}
			states[t.Seat] = ledger.Sold
			claims[t.Seat] = append(claims[t.Seat], fmt.Sprintf("ticket %d", t.ID))
		}
	}
	for _, seat := range slices.Sorted(maps.Keys(claims)) {
		if len(claims[seat]) > 1 {
			return fmt.Errorf("I1: seat %d has %v", seat, claims[seat])
		}
	}
	for i, seat := range now.Seats {
		if held := seat.State == ledger.Held || seat.State == ledger.Sold; (held || states[i] != 0) && states[i] != seat.State {
			return fmt.Errorf("I1: seat %d is %s, by its claims %s", i, seat.State, states[i])
		}
	}
	for i, a := range now.Areas {
		if a.Held != areas[i].Held || a.Sold != areas[i].Sold || a.Held+a.Sold > a.Capacity {
			return fmt.Errorf("I2: area %d is %+v, by its claims %+v", i, a, areas[i])
		}
	}
	for hold, n := range going {
		if n > 1 {
			return fmt.Errorf("A13: hold %d has %d orders PENDING or PAID", hold, n)
		}
	}
	return s.brokenLimits(e)
}

// brokenLimits counts again what every customer claimed in an event since its limits were set last. What took the place of
// something else, or was passed on, is bound otherwise.
func (s *stock) brokenLimits(e ledger.Event) error {
	for _, l := range e.Limits {
		counts := map[id.ID]int{}
		for _, h := range s.holds {
			counted := h.State == ledger.HoldLive || h.State == ledger.HoldSold
			if h.Event != e.ID || !counted || h.Exchange != 0 || h.Created <= e.LimitsAt {
				continue
			}
			for _, line := range h.Lines {
				if !line.Gone && (l.Scope == ledger.PerEvent || l.Scope == ledger.PerCategory && line.Category == l.Category) {
					counts[h.Customer]++
				}
			}
		}
		for customer, n := range counts {
			if n > l.Max {
				return fmt.Errorf("I9: customer %d has %d places under the limit %+v", customer, n, l)
			}
		}
	}
	return nil
}

// brokenOrder is what is wrong with an order's tickets.
func (s *stock) brokenOrder(o ledger.Order) error {
	h, known := s.holds[o.Hold]
	valid := 0
	for _, t := range o.Tickets {
		if t.State != ledger.TicketVoid {
			valid++
		}
	}
	sold := o.State == ledger.OrderPaid || o.State == ledger.OrderRefunded
	switch {
	case !known:
		return fmt.Errorf("order %d is for hold %d, which is not there", o.ID, o.Hold)
	case !sold && len(o.Tickets) > 0:
		return fmt.Errorf("I7: order %d is %s with %d tickets", o.ID, o.State, len(o.Tickets))
	case o.State == ledger.OrderRefunded && valid > 0:
		return fmt.Errorf("I7: order %d is REFUNDED with %d valid tickets", o.ID, valid)
	case o.State == ledger.OrderPaid && valid == 0 && !s.waits(o):
		return fmt.Errorf("I7: order %d is PAID without a valid ticket, and nothing is due", o.ID)
	case o.State == ledger.OrderPaid && valid > 0 && (h.State != ledger.HoldSold || h.Order != o.ID):
		return fmt.Errorf("I7: order %d is PAID by a hold that is %s for order %d", o.ID, h.State, h.Order)
	case o.State != ledger.OrderPending && o.AttemptOpen:
		return fmt.Errorf("A19: order %d is %s with an open attempt", o.ID, o.State)
	case h.State == ledger.HoldSold && len(h.Exchanged) > 0:
		return fmt.Errorf("A10: hold %d is sold and still counts less", h.ID)
	}
	if !sold {
		return nil
	}
	for i, line := range h.Lines {
		if err := s.brokenPlace(o, int32(i), line); err != nil {
			return err
		}
	}
	return nil
}

// waits says whether money of an order's tickets is on its way back.
func (s *stock) waits(o ledger.Order) bool {
	return slices.ContainsFunc(s.refunds, func(r ledger.Refund) bool {
		return r.Order == o.ID && r.State == ledger.RefundRequested && !s.whole(r)
	})
}

// whole says whether a refund gives back a payment that bought nothing.
func (s *stock) whole(r ledger.Refund) bool {
	return s.payments[paid{r.From, r.Provider, r.Payment}].Refund == r.ID
}

// brokenPlace is what is wrong with one place of an order: it has one ticket that is valid, or was given back by one refund;
// all others were passed on.
func (s *stock) brokenPlace(o ledger.Order, place int32, line ledger.Line) error {
	was := map[id.ID]bool{}
	for _, t := range o.Tickets {
		was[t.Was] = true
	}
	var last []ledger.Ticket
	for _, t := range o.Tickets {
		switch {
		case t.Place != place:
			continue
		case was[t.ID]:
			if t.State != ledger.TicketVoid || !t.Gone || t.Refund != 0 {
				return fmt.Errorf("I7: ticket %d was passed on: %+v", t.ID, t)
			}
			continue
		}
		last = append(last, t)
	}
	if len(last) != 1 {
		return fmt.Errorf("I7: place %d of order %d has %d tickets", place, o.ID, len(last))
	}
	t := last[0]
	refunds := 0
	for _, r := range s.refunds {
		if slices.Contains(r.Tickets, t.ID) {
			refunds++
		}
	}
	captureRefused := o.State == ledger.OrderRefunded && o.Reason == ledger.ReasonCaptureRefused
	switch void := t.State == ledger.TicketVoid; {
	case t.Seat != line.Seat || t.Category != line.Category || t.Total != line.Total:
		return fmt.Errorf("I7: ticket %d is for another place than line %+v: %+v", t.ID, line, t)
	case t.Gone != line.Gone || t.Gone && !void || void != (t.Refund != 0):
		return fmt.Errorf("I7: ticket %d and line %+v: %+v", t.ID, line, t)
	case refunds > 1 || !captureRefused && void != (refunds == 1):
		return fmt.Errorf("A21: ticket %d, %s, is in %d refunds", t.ID, t.State, refunds)
	}
	return nil
}
