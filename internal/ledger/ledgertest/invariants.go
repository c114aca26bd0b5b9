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
	events, err := l.Events(ctx)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := brokenIn(ctx, l, e, holds, orders); err != nil {
			return fmt.Errorf("event %d: %w", e.ID, err)
		}
	}
	return nil
}

func brokenIn(ctx context.Context, l ledger.Ledger, e ledger.Event, holds, orders []id.ID) error {
	s, err := l.Snapshot(ctx, e.ID)
	if err != nil {
		return err
	}
	claims := map[int32][]string{} // who has each seat
	areas := make([]ledger.AreaState, len(s.Areas))
	states := make([]ledger.Availability, len(s.Seats))
	pendingOf := map[id.ID]int{}
	for _, hold := range slices.Compact(slices.Sorted(slices.Values(holds))) {
		h, err := l.Hold(ctx, hold)
		if isNotFound(err) || err == nil && (h.Event != e.ID || h.State != ledger.HoldLive) {
			continue
		} else if err != nil {
			return err
		}
		for _, line := range h.Lines {
			if h.Area >= 0 {
				areas[h.Area].Held++
				continue
			}
			states[line.Seat] = ledger.Held
			claims[line.Seat] = append(claims[line.Seat], fmt.Sprintf("hold %d", hold))
		}
	}
	for _, order := range slices.Compact(slices.Sorted(slices.Values(orders))) {
		o, err := l.Order(ctx, order)
		if isNotFound(err) || err == nil && o.Event != e.ID {
			continue
		} else if err != nil {
			return err
		}
		if o.State == ledger.OrderPending || o.State == ledger.OrderPaid {
			pendingOf[o.Hold]++
		}
		h, err := l.Hold(ctx, o.Hold)
		if err != nil {
			return err
		}
		if err := brokenOrder(o, h); err != nil {
			return err
		}
		for _, t := range o.Tickets {
			if t.State == ledger.TicketVoid {
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
	for i, seat := range s.Seats {
		if held := seat.State == ledger.Held || seat.State == ledger.Sold; (held || states[i] != 0) && states[i] != seat.State {
			return fmt.Errorf("I1: seat %d is %s, by its claims %s", i, seat.State, states[i])
		}
	}
	for i, a := range s.Areas {
		if a.Held != areas[i].Held || a.Sold != areas[i].Sold || a.Held+a.Sold > a.Capacity {
			return fmt.Errorf("I2: area %d is %+v, by its claims %+v", i, a, areas[i])
		}
	}
	for hold, n := range pendingOf {
		if n > 1 {
			return fmt.Errorf("A13: hold %d has %d orders PENDING or PAID", hold, n)
		}
	}
	return nil
}

// brokenOrder is what is wrong with an order by itself.
func brokenOrder(o ledger.Order, h ledger.Hold) error {
	valid := 0
	var paid int64
	for _, t := range o.Tickets {
		if t.State != ledger.TicketVoid {
			valid++
			paid += t.Total
		}
	}
	switch {
	case o.State == ledger.OrderPaid && (valid != len(h.Lines) || paid != o.Amount || h.State != ledger.HoldSold):
		return fmt.Errorf("I7: order %d is PAID with %d tickets of %d, for %d of %d, and a hold that is %s",
			o.ID, valid, len(h.Lines), paid, o.Amount, h.State)
	case o.State != ledger.OrderPaid && valid > 0:
		return fmt.Errorf("I7: order %d is %s with %d valid tickets", o.ID, o.State, valid)
	case o.State != ledger.OrderPending && o.AttemptOpen:
		return fmt.Errorf("A19: order %d is %s with an open attempt", o.ID, o.State)
	}
	return nil
}
