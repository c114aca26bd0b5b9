//go:build negativecontrol

package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// Negative shows that each guard of the decisions is needed: a short history in which nothing is wrong with the guard in
// force, and in which what is stored is wrong without it. The ledgers that open makes must have their own last lines (the
// unique indexes orders_one_per_hold, tickets_one_per_seat and wishes_one_open) taken away, since those would hide what the
// guard does.
func Negative(t *testing.T, open Open) {
	shown := map[decide.Guard]bool{}
	for _, c := range slices.Concat(controls, shopControls, roomControls, wishControls) {
		shown[c.guard] = true
		t.Run(string(c.guard), func(t *testing.T) {
			if err := c.run(t, open, false); err != nil {
				t.Errorf("with the guard: %v", err)
			}
			err := c.run(t, open, true)
			if err == nil {
				t.Error("without the guard nothing is wrong: either it guards nothing, or this history does not need it")
			}
			t.Logf("without the guard: %v", err)
		})
	}
	for _, g := range decide.Guards {
		if !shown[g] {
			t.Errorf("guard %s has no negative control", g)
		}
	}
}

// A control is a history that needs a guard: it is prepared, the guard is perhaps taken out, what it guards against is
// tried, and wrong says what is wrong with what is stored.
type control struct {
	guard   decide.Guard
	prepare func(w *world) (try []ledger.Command)
	wrong   func(w *world, tried []ledger.Command) error
}

func (c control) run(t *testing.T, open Open, without bool) (wrong error) {
	t.Run(map[bool]string{false: "with", true: "without"}[without], func(t *testing.T) {
		w := newWorld(t, open)
		try := c.prepare(w)
		if without {
			defer decide.TakeOut(c.guard)()
		}
		for _, command := range try {
			_, err := w.ledger.Apply(context.Background(), []ledger.Command{command})
			var broken *ledger.InvariantError
			if err != nil && !errors.As(err, &broken) {
				t.Fatal(err)
			}
		}
		wrong = c.wrong(w, try)
	})
	return wrong
}

// exists is a hold that may not have been made.
func (w *world) exists(hold id.ID) *ledger.Hold {
	h, err := w.ledger.Hold(context.Background(), hold)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return &h
}

// unwanted is wrong where a command made a hold.
func unwanted(why string) func(*world, []ledger.Command) error {
	return func(w *world, tried []ledger.Command) error {
		if h := w.exists(tried[len(tried)-1].(ledger.HoldSeats).ID); h != nil {
			return fmt.Errorf("%s: hold %d of customer %d is %s", why, h.ID, h.Customer, h.State)
		}
		return nil
	}
}

// broken is wrong where an invariant does not hold.
func broken(w *world, tried []ledger.Command) error {
	var holds, orders []id.ID
	for i := id.ID(1001); i <= w.lastID; i++ { // every number that the history gave out
		holds, orders = append(holds, i), append(orders, i)
	}
	return Broken(context.Background(), w.ledger, holds, orders)
}

// paidWrongly is wrong where the order of a Confirm is PAID.
func paidWrongly(why string) func(*world, []ledger.Command) error {
	return func(w *world, tried []ledger.Command) error {
		o := w.orderNow(tried[len(tried)-1].(ledger.Confirm).Order)
		if o.State == ledger.OrderPaid {
			return fmt.Errorf("%s: order %d is PAID with %d tickets", why, o.ID, len(o.Tickets))
		}
		return nil
	}
}

var controls = []control{
	{decide.GuardSeatFree, func(w *world) []ledger.Command {
		w.held(alice, 0)
		return []ledger.Command{w.holdSeats(bob, 0)}
	}, broken},
	{decide.GuardPlaces, func(w *world) []ledger.Command {
		w.given(w.holdPlaces(alice, 1, 3))
		return []ledger.Command{w.holdPlaces(bob, 1, 2)}
	}, broken},
	{decide.GuardHoldLive, func(w *world) []ledger.Command {
		c := w.pay(w.pending(w.held(alice, 0)), "pay")
		c.RescueHold = 0
		w.pass(holdTTL + window)
		return []ledger.Command{c}
	}, paidWrongly("I4: the hold had run out")},
	{decide.GuardOwner, func(w *world) []ledger.Command {
		restore := decide.TakeOut(decide.GuardSeatFree)
		defer restore()
		lost := w.held(alice, 0)
		w.held(bob, 0) // seat 0 is bob's now, though alice's hold says that it is hers
		return []ledger.Command{ledger.Release{Hold: lost.ID, Customer: alice}}
	}, func(w *world, _ []ledger.Command) error {
		if s := w.seat(0); s.State != ledger.Held {
			return fmt.Errorf("I1: seat 0 is %s, and bob holds it", s.State)
		}
		return nil
	}},
	{decide.GuardKey, func(w *world) []ledger.Command {
		first, second := w.holdSeats(alice, 0), w.holdSeats(alice, 1)
		first.Key, second.Key = ledger.Key{Value: "k"}, ledger.Key{Value: "k"}
		w.given(first)
		return []ledger.Command{second}
	}, unwanted("I5: the key had its effect before")},
	{decide.GuardAmount, func(w *world) []ledger.Command {
		c := w.pay(w.pending(w.held(alice, 0)), "pay")
		c.Amount = 1
		return []ledger.Command{c}
	}, paidWrongly("I6: 1 was paid of 5250")},
	{decide.GuardOneOrder, func(w *world) []ledger.Command {
		h := w.held(alice, 0)
		w.pending(h)
		return []ledger.Command{w.begin(h)}
	}, broken},
	{decide.GuardSamePaid, func(w *world) []ledger.Command {
		o := w.pending(w.held(alice, 0))
		first, second := w.pay(o, "pay"), w.pay(o, "another")
		w.given(first)
		return []ledger.Command{second}
	}, func(w *world, tried []ledger.Command) error {
		open, err := w.ledger.OpenPayments(context.Background(), 10)
		if err != nil {
			w.Fatal(err)
		}
		for _, o := range open {
			if o.Payment.ID == "another" && o.Refund != nil {
				return nil
			}
		}
		return errors.New("I6: the second payment is not given back")
	}},
	{decide.GuardLimit, func(w *world) []ledger.Command {
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 1}} })
		w.held(alice, 0)
		return []ledger.Command{w.holdSeats(alice, 1)}
	}, unwanted("I9: at most 1 a customer")},
	{decide.GuardDocument, func(w *world) []ledger.Command {
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerDocument, Max: 1}} })
		first, second := w.begin(w.held(alice, 0)), w.begin(w.held(bob, 1))
		first.Documents, second.Documents = []string{"d"}, []string{"d"}
		w.given(first)
		return []ledger.Command{second}
	}, func(w *world, tried []ledger.Command) error {
		o, err := w.ledger.Order(context.Background(), tried[0].(ledger.BeginPayment).Order)
		if err == nil {
			return fmt.Errorf("I9: at most 1 a document, order %d is %s", o.ID, o.State)
		}
		return nil
	}},
	{decide.GuardQuota, func(w *world) []ledger.Command {
		w.set(func(e *ledger.Event) { e.Quotas = []ledger.Quota{{Category: 0, Section: -1, Max: 1}} })
		w.held(alice, 0)
		return []ledger.Command{w.holdSeats(bob, 1)}
	}, unwanted("A11: 1 is on sale")},
	{decide.GuardWindow, func(w *world) []ledger.Command {
		w.set(func(e *ledger.Event) { e.SaleCloses = start + ledger.Time(minute) })
		w.pass(minute)
		return []ledger.Command{w.holdSeats(alice, 0)}
	}, unwanted("A6: the sale has closed")},
	{decide.GuardCustomer, func(w *world) []ledger.Command {
		return []ledger.Command{ledger.Release{Hold: w.held(alice, 0).ID, Customer: bob}}
	}, func(w *world, tried []ledger.Command) error {
		if h := w.holdNow(tried[0].(ledger.Release).Hold); h.State != ledger.HoldLive {
			return fmt.Errorf("bob ended alice's hold: it is %s", h.State)
		}
		return nil
	}},
	{decide.GuardCancelled, func(w *world) []ledger.Command {
		o := w.pending(w.held(alice, 0))
		w.set(func(e *ledger.Event) { e.State = ledger.Cancelled })
		return []ledger.Command{w.pay(o, "pay")}
	}, paidWrongly("A6: the event is cancelled")},
	{decide.GuardReturned, func(w *world) []ledger.Command {
		h := w.held(alice, 0)
		w.returns(ledger.ReturnsWaitlist)
		w.given(ledger.Release{Hold: h.ID, Customer: alice})
		return []ledger.Command{w.holdSeats(bob, 0)}
	}, unwanted("A23: the seat is promised to the waitlist")},
	{decide.GuardExtend, func(w *world) []ledger.Command {
		h := w.held(alice, 0)
		w.pass(minute)
		w.given(ledger.Extend{Hold: h.ID, Customer: alice})
		w.pass(minute)
		return []ledger.Command{ledger.Extend{Hold: h.ID, Customer: alice}}
	}, func(w *world, tried []ledger.Command) error {
		if h := w.holdNow(tried[0].(ledger.Extend).Hold); h.Extended > 1 {
			return fmt.Errorf("A14: hold %d was extended %d times", h.ID, h.Extended)
		}
		return nil
	}},
}
