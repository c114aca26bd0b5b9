package ledgertest

import (
	"context"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

var boundScenarios = []scenario{
	{"A9: a hold of places first ends the area's expired holds", func(w *world) {
		first := w.given(w.holdPlaces(alice, 0, 3)).Hold
		w.pass(second)
		next := w.given(w.holdPlaces(alice, 0, 3)).Hold
		w.pass(holdTTL - second)
		// Only one of the two has run out; it is not enough, and it has ended all the same.
		w.no(fault.PlacesTaken, w.holdPlaces(bob, 0, 4), anArea(0), aHold(first.ID))
		w.pass(second)
		c := w.holdPlaces(bob, 0, 6)
		w.ok(c, anArea(0), aHold(next.ID), aHold(c.ID))
	}},
	{"A9: while there is enough, expired holds are let be", func(w *world) {
		w.given(w.holdPlaces(alice, 0, 3))
		w.given(w.holdPlaces(alice, 1, 3))
		w.pass(holdTTL)
		c := w.holdPlaces(bob, 0, 3)
		w.ok(c, anArea(0), aHold(c.ID))
	}},
	{"A9: a limit counts no expired hold, in any event", func(w *world) {
		limit := func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerShow, Max: 2}} }
		w.set(limit)
		w.setOf(otherEvent, limit)
		here := w.held(alice, 0)
		there := w.holdPlaces(alice, 0, 1)
		there.Event = otherEvent
		w.given(there)
		w.pass(holdTTL - 1)
		w.no(fault.LimitReached, w.holdSeats(alice, 1))
		w.pass(1)
		c := w.holdSeats(alice, 1)
		w.ok(c, "seat 0", "seat 1", "area 0 of 2", aHold(here.ID), aHold(there.ID), aHold(c.ID))
	}},
	{"A10: the limit of an event counts held and bought", func(w *world) {
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 4}} })
		w.paid(alice, 0)
		h := w.held(alice, 1, 2)
		w.same("which limit", w.no(fault.LimitReached, w.holdSeats(alice, 3, 4)).Field, "event")
		w.no(fault.LimitReached, w.holdPlaces(alice, 0, 2))
		c := w.holdPlaces(alice, 0, 1)
		w.ok(c, anArea(0), aHold(c.ID))
		w.no(fault.LimitReached, w.holdSeats(alice, 3))
		w.given(w.holdSeats(bob, 3, 4, 5, 6)) // another customer
		elsewhere := w.holdSeats(alice, 0, 1, 2, 3)
		elsewhere.Event = otherEvent
		w.given(elsewhere)
		w.given(ledger.Release{Hold: h.ID, Customer: alice})
		w.no(fault.LimitReached, w.holdSeats(alice, 8, 9, 10))
		w.given(w.holdSeats(alice, 8, 9))
	}},
	{"I9: parallel requests of one customer never pass a limit", func(w *world) {
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 3}} })
		results := w.apply(w.holdSeats(alice, 0, 1), w.holdSeats(alice, 2, 3), w.holdSeats(alice, 4), w.holdPlaces(alice, 0, 1))
		var won []bool
		for _, r := range results {
			won = append(won, r.Fault == nil)
		}
		w.same("who won", won, []bool{true, false, true, false})
		w.wantSeats(ledger.Available, 2, 3)
	}},
	{"A10: the limit of a category", func(w *world) {
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerCategory, Category: 1, Max: 2}} })
		w.given(w.holdPlaces(alice, 1, 1)) // the area is of category 1
		w.given(w.holdSeats(alice, 0, 1, 2, 3))
		w.same("which limit", w.no(fault.LimitReached, w.holdSeats(alice, 4, 8, 9)).Field, "category")
		w.given(w.holdSeats(alice, 4, 8))
		w.no(fault.LimitReached, w.holdPlaces(alice, 1, 1))
		w.given(w.holdSeats(alice, 5))
	}},
	{"A10: the limit of a show counts the show's events that have one", func(w *world) {
		limit := func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerShow, Max: 3}} }
		w.set(limit)
		elsewhere := w.holdSeats(alice, 0, 1)
		elsewhere.Event = otherEvent
		w.given(elsewhere)
		w.given(w.holdSeats(alice, 0, 1, 2)) // the other event has no limit, so it does not count
		w.setOf(otherEvent, limit)
		w.same("which limit", w.no(fault.LimitReached, w.holdSeats(alice, 3)).Field, "show")
		w.given(w.holdSeats(bob, 3))
		w.given(ledger.SetEvent{Event: bigEvent(3, 4), Layout: bigLayout(4)})
		another := w.holdSeats(alice, 0, 1)
		another.Event = 3
		w.setOf(3, limit)
		w.given(another) // of another show
		w.setOf(otherEvent, func(e *ledger.Event) { e.Limits = nil })
		w.no(fault.LimitReached, w.holdSeats(alice, 4))
		h := w.given(w.holdSeats(carol, 4)).Hold
		w.given(w.pay(w.pending(h), "p"))
		w.no(fault.LimitReached, w.holdSeats(carol, 5, 6, 7))
	}},
	{"A10: limits are looked at in their order, documents' not here", func(w *world) {
		w.set(func(e *ledger.Event) {
			e.Limits = []ledger.Limit{
				{Scope: ledger.PerDocument, Max: 0}, {Scope: ledger.PerShow, Max: 1}, {Scope: ledger.PerEvent, Max: 1},
			}
		})
		w.same("which limit", w.no(fault.LimitReached, w.holdSeats(alice, 0, 1)).Field, "show")
		w.given(w.holdSeats(alice, 0))
	}},
	{"A10: a limit set later counts what was claimed before", func(w *world) {
		w.paid(alice, 0, 1)
		w.held(alice, 2)
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 3}} })
		w.no(fault.LimitReached, w.holdSeats(alice, 3))
		w.set(func(e *ledger.Event) {
			e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 4}, {Scope: ledger.PerCategory, Category: 0, Max: 3}}
		})
		w.same("which limit", w.no(fault.LimitReached, w.holdSeats(alice, 3)).Field, "category")
		w.given(w.holdSeats(alice, 8))
	}},
	{"A10: the limit of an identity document", func(w *world) {
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerDocument, Max: 2}} })
		first := w.begin(w.held(alice, 0, 1))
		first.Documents = []string{"x", "y"}
		o := w.given(first).Order
		w.same("the order's documents", o.Documents, first.Documents)
		second := w.begin(w.held(bob, 2, 3))
		second.Documents = []string{"x", "x"}
		w.same("which limit", w.no(fault.LimitReached, second).Field, "document")
		second.Documents = []string{"x", "z"}
		w.given(second)
		third := w.begin(w.held(carol, 4))
		third.Documents = []string{"x"}
		w.no(fault.LimitReached, third)
		w.given(ledger.FailPayment{Order: o.ID, Reason: "declined"})
		w.given(third)
		three := w.begin(w.held(dave, 5, 6, 7))
		three.Documents = []string{"n", "n", "n"} // too many in one request
		w.no(fault.LimitReached, three)
	}},
	{"A10: an order that ended before takes nobody's document away when a limit comes", func(w *world) {
		ended := w.begin(w.held(alice, 0))
		ended.Documents = []string{"x"}
		o := w.given(ended).Order
		w.given(ledger.FailPayment{Order: o.ID, Reason: "declined"})
		going := w.begin(w.held(bob, 1))
		going.Documents = []string{"x"}
		w.given(going)
		e, err := w.ledger.Event(context.Background(), mainEvent)
		if err != nil {
			w.Fatal(err)
		}
		e.Version++
		e.Limits = []ledger.Limit{{Scope: ledger.PerDocument, Max: 1}}
		for _, r := range w.apply( // in one batch: the ended order's row changes, then the limit comes
			ledger.RecordPayment{Order: o.ID, Payment: "late", State: ledger.PaymentAuthorized, Amount: o.Amount},
			ledger.SetEvent{Event: e},
		) {
			if r.Fault != nil {
				w.Fatal(r.Fault)
			}
		}
		third := w.begin(w.held(carol, 2))
		third.Documents = []string{"x"}
		w.same("which limit", w.no(fault.LimitReached, third).Field, "document")
	}},
	{"A11: a quota bounds what is on sale, by category and section", func(w *world) {
		w.set(func(e *ledger.Event) {
			e.Quotas = []ledger.Quota{{Category: 1, Section: 1, Max: 3}, {Category: 0, Section: -1, Max: 4}}
		})
		w.given(w.holdPlaces(alice, 1, 1))
		w.paid(bob, 8)
		w.same("which bound", w.no(fault.PlacesTaken, w.holdSeats(carol, 9, 10)).Field, "quota")
		w.no(fault.PlacesTaken, w.holdPlaces(carol, 1, 2))
		w.given(w.holdSeats(carol, 9))
		w.no(fault.PlacesTaken, w.holdPlaces(carol, 1, 1))
		w.given(w.holdSeats(dave, 0, 4))
		w.no(fault.PlacesTaken, w.holdSeats(dave, 1, 2, 3))
		w.given(w.holdSeats(dave, 1, 2))
		w.given(w.holdPlaces(dave, 0, 6)) // under no quota
	}},
	{"A11: a quota grows at its times, and may shrink", func(w *world) {
		w.set(func(e *ledger.Event) {
			e.Quotas = []ledger.Quota{{Category: -1, Section: 0, Max: 1, Steps: []ledger.QuotaStep{
				{At: start + 1000, Max: 3}, {At: start + 2000, Max: 2},
			}}}
		})
		w.given(w.holdSeats(alice, 0))
		w.no(fault.PlacesTaken, w.holdSeats(bob, 1))
		w.pass(second)
		w.given(w.holdSeats(bob, 1))
		w.pass(second)
		w.no(fault.PlacesTaken, w.holdSeats(bob, 2))
	}},
	{"A9, A11: a quota first ends expired holds under it", func(w *world) {
		w.set(func(e *ledger.Event) { e.Quotas = []ledger.Quota{{Category: -1, Section: 1, Max: 3}} })
		under := w.held(alice, 8, 0)
		places := w.given(w.holdPlaces(bob, 1, 2)).Hold
		w.held(alice, 1) // not under the quota
		w.pass(holdTTL)
		c := w.holdSeats(carol, 9, 10)
		w.ok(c, things(aSeat(0, 8, 9, 10), anArea(1), aHold(under.ID), aHold(places.ID), aHold(c.ID))...)
		w.wantSeats(ledger.Held, 1)
	}},
	{"A9: only so many expired holds end in one command", func(w *world) {
		const extra = 2
		e := bigEvent(3, 2*ledger.ExpireBoundMax)
		e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: ledger.ExpireBoundMax + extra}}
		w.given(ledger.SetEvent{Event: e, Layout: bigLayout(2 * ledger.ExpireBoundMax)})
		hold := func(seat int) ledger.HoldSeats {
			return ledger.HoldSeats{ID: w.id(), Event: 3, Customer: alice, Seats: []int32{int32(seat)}}
		}
		var old []id.ID
		for seat := range ledger.ExpireBoundMax + extra {
			c := hold(seat)
			w.given(c)
			old = append(old, c.ID)
		}
		w.pass(holdTTL)
		w.given(hold(100))
		for i, hold := range old {
			want := ledger.HoldExpired
			if i >= ledger.ExpireBoundMax {
				want = ledger.HoldLive
			}
			if got := w.holdNow(hold).State; got != want {
				w.Errorf("expired hold %d of %d is %s, want %s", i, len(old), got, want)
			}
		}
		r := w.given(ledger.Sweep{Event: 3})
		w.same("what is left for Sweep", []any{r.Count, r.More}, []any{extra, false})
	}},
}
