package ledgertest

import (
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// lost makes an order whose hold has run out while it was being paid, and is the order and its hold.
func lost(w *world, allowOther bool, seats ...int32) (*ledger.Order, *ledger.Hold) {
	w.Helper()
	h := w.held(alice, seats...)
	c := w.begin(h)
	c.AllowOther = allowOther
	o := w.given(c).Order
	w.pass(holdTTL)
	return o, h
}

// rescued confirms and says which seats the customer got.
func rescued(w *world, o *ledger.Order, seats ...int32) {
	w.Helper()
	old := w.holdNow(o.Hold)
	c := w.pay(o, "p")
	r := w.ok(c, things(anOrder(o.ID), aSeat(seats...), aHold(c.RescueHold))...)
	if r.Order.State != ledger.OrderPaid || !r.Order.Rescued || r.Order.Hold != c.RescueHold || r.Refund != nil {
		w.Fatalf("not rescued: %+v", r.Order)
	}
	w.same("the new claim", r.Hold.Seats(), seats)
	w.same("its state", []any{r.Hold.State, r.Hold.ID, r.Hold.Order}, []any{ledger.HoldSold, c.RescueHold, o.ID})
	w.same("its price", r.Hold.Total(), old.Total())
	w.same("the amount", r.Order.Amount, o.Amount)
	for i, t := range r.Order.Tickets {
		w.same("the ticket's seat", t.Seat, seats[i])
	}
	w.wantSeats(ledger.Sold, seats...)
	w.again(c)
}

// late confirms in vain: the money goes back, and nothing else changes but what is named.
func late(w *world, o *ledger.Order, changed ...string) {
	w.Helper()
	r := w.ok(w.pay(o, "p"), things(anOrder(o.ID), aHold(o.Hold), aDue(o.ID, "p"), changed)...)
	if r.Refund == nil || r.Order.State != ledger.OrderExpired || r.Order.Reason != ledger.ReasonLate || len(r.Order.Tickets) > 0 {
		w.Fatalf("late money was not given back: %+v", r)
	}
	w.same("the refund's reason", r.Refund.Reason, ledger.ReasonLate)
	w.same("the notices", w.kinds(o.ID), []string{ledger.NoticePending, ledger.NoticeExpired, ledger.NoticeGiveBack})
}

func take(w *world, seats ...int32) {
	w.Helper()
	for _, seat := range seats {
		w.held(bob, seat)
	}
}

var rescueScenarios = []scenario{
	{"A17: the same seats by a new claim, where they are free", func(w *world) {
		o, h := lost(w, false, 0, 8)
		w.given(ledger.Sweep{})
		rescued(w, o, 0, 8)
		w.same("the old hold", w.holdNow(h.ID).State, ledger.HoldExpired)
		claim := w.holdNow(w.orderNow(o.ID).Hold)
		w.same("the claims' numbers", []int64{claim.Lines[0].Epoch, claim.Lines[1].Epoch}, []int64{2, 2})
		w.same("its times", []ledger.Time{claim.Created, claim.Expires}, []ledger.Time{start + ledger.Time(holdTTL), start + ledger.Time(holdTTL)})
	}},
	{"I4, A17: an unswept expired hold gives no ticket, but a rescue does", func(w *world) {
		o, h := lost(w, false, 0, 1)
		c := w.pay(o, "p")
		r := w.ok(c, things(anOrder(o.ID), aSeat(0, 1), aHold(h.ID), aHold(c.RescueHold))...)
		w.same("the order", []any{r.Order.State, r.Order.Rescued}, []any{ledger.OrderPaid, true})
		w.same("the old hold", w.holdNow(h.ID).State, ledger.HoldExpired)
		w.again(ledger.Release{Hold: h.ID, Customer: alice})
		w.wantSeats(ledger.Sold, 0, 1)
	}},
	{"I4: an expired hold whose seats are taken gives no ticket", func(w *world) {
		o, _ := lost(w, false, 0, 1)
		take(w, 1)
		late(w, o)
		w.wantSeats(ledger.Available, 0)
		w.wantSeats(ledger.Held, 1)
	}},
	{"A17: other seats only where the customer allowed it", func(w *world) {
		o, _ := lost(w, false, 2, 3)
		take(w, 3)
		late(w, o)
	}},
	{"A17: lost neighbours become the best neighbours that are no worse", func(w *world) {
		o, _ := lost(w, true, 2, 3)
		take(w, 3)
		rescued(w, o, 0, 1)
	}},
	{"A17: the next best run, in another row", func(w *world) {
		o, _ := lost(w, true, 2, 3)
		take(w, 3, 0)
		rescued(w, o, 4, 5)
	}},
	{"A17: each no worse, not only their sum", func(w *world) {
		// Left in category 0 are 1 2 (20 30) and 5 6 7 (22 32 42); lost were 4 5 (12 22).
		o, _ := lost(w, true, 4, 5)
		take(w, 4, 0, 3)
		late(w, o)
	}},
	{"A17: neighbours must be in one run", func(w *world) {
		// 3 and 4 have successive numbers but are not neighbours; nor are 1 and 3.
		o, _ := lost(w, true, 6, 7)
		take(w, 7, 6, 2, 5, 0)
		late(w, o)
		w.wantSeats(ledger.Available, 1, 3, 4)
	}},
	{"A17: lost single seats become the best single seats", func(w *world) {
		o, _ := lost(w, true, 1, 7)
		take(w, 1, 4)
		rescued(w, o, 0, 5) // 10 and 22 for 20 and 42; 5 (22) is before 2 (30)
	}},
	{"A17: single seats no worse by rank, or none", func(w *world) {
		// Lost were 0 and 3 (10 40); left are 4 and 1 (12 20): 12 is worse than 10.
		o, _ := lost(w, true, 0, 3)
		take(w, 0)
		late(w, o)
	}},
	{"A17: one seat becomes the best one", func(w *world) {
		o, _ := lost(w, true, 7)
		take(w, 7, 0)
		rescued(w, o, 4)
	}},
	{"A17: never seats of another category, nor for seats of several", func(w *world) {
		o, _ := lost(w, true, 7, 8)
		take(w, 8)
		late(w, o)
	}},
	{"A17: the worst seats of a category have no equals", func(w *world) {
		o, _ := lost(w, true, 8)
		take(w, 8)
		late(w, o)
	}},
	{"A17: seats held by expired holds are taken for the same seats", func(w *world) {
		o, _ := lost(w, false, 0, 1)
		other := w.held(bob, 1, 2)
		w.pass(holdTTL)
		c := w.pay(o, "p")
		r := w.ok(c, things(anOrder(o.ID), aSeat(0, 1, 2), aHold(other.ID), aHold(c.RescueHold))...)
		w.same("the order", r.Order.State, ledger.OrderPaid)
		w.wantSeats(ledger.Available, 2)
		w.same("the claim's number", w.holdNow(c.RescueHold).Lines[1].Epoch, int64(3))
	}},
	{"A17: the new claim obeys the limits", func(w *world) {
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 2}} })
		o, _ := lost(w, true, 0, 1)
		w.given(w.holdSeats(alice, 5))
		late(w, o)
		w.wantSeats(ledger.Available, 0, 1)
	}},
	{"A17: the new claim obeys the quotas", func(w *world) {
		w.set(func(e *ledger.Event) { e.Quotas = []ledger.Quota{{Category: 0, Section: -1, Max: 2}} })
		o, _ := lost(w, true, 0, 1)
		take(w, 5)
		late(w, o)
	}},
	{"A17: where the quota refuses the same seats, as good ones under another", func(w *world) {
		w.given(ledger.SetEvent{Event: twinEvent(3), Layout: twinLayout()})
		c := ledger.HoldSeats{ID: w.id(), Event: 3, Customer: alice, Seats: []int32{0, 1}}
		begin := w.begin(w.given(c).Hold)
		begin.AllowOther = true
		o := w.given(begin).Order
		w.pass(holdTTL)
		w.given(ledger.HoldSeats{ID: w.id(), Event: 3, Customer: bob, Seats: []int32{2}})
		w.setOf(3, func(e *ledger.Event) { e.Quotas = []ledger.Quota{{Category: -1, Section: 0, Max: 2}} })
		pay := w.pay(o, "p")
		r := w.ok(pay, things(anOrder(o.ID), aHold(c.ID), aHold(pay.RescueHold), "seat 0 of 3", "seat 1 of 3", "seat 4 of 3", "seat 5 of 3")...)
		w.same("the new claim", r.Hold.Seats(), []int32{4, 5})
	}},
	{"A17: without an id for a new claim there is no rescue", func(w *world) {
		o, h := lost(w, true, 0)
		w.given(ledger.Sweep{})
		c := w.pay(o, "p")
		c.RescueHold = 0
		r := w.ok(c, things(anOrder(o.ID), aHold(h.ID), aDue(o.ID, "p"))...)
		w.same("the order", r.Order.State, ledger.OrderExpired)
	}},
	{"A9, A17: expired holds under a limit end before the rescue is refused", func(w *world) {
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 3}} })
		h := w.held(alice, 0, 1)
		o := w.pending(h)
		second := w.held(alice, 5)
		w.pass(holdTTL)
		w.given(ledger.Sweep{Max: 1})
		third := w.held(alice, 6)
		w.pass(holdTTL)
		w.same("the second has ended", w.holdNow(second.ID).State, ledger.HoldLive)
		c := w.pay(o, "p")
		r := w.ok(c, things(anOrder(o.ID), aSeat(0, 1, 5, 6), aHold(second.ID), aHold(third.ID), aHold(c.RescueHold))...)
		w.same("the order", r.Order.State, ledger.OrderPaid)
	}},
	{"A17: a rescue in a paused or ended event, and past its window", func(w *world) {
		for i, state := range []ledger.EventState{ledger.Paused, ledger.Ended, ledger.OnSale} {
			w.set(func(e *ledger.Event) { e.State, e.SaleCloses = ledger.OnSale, start+ledger.Time(24*hour) })
			o, _ := lost(w, false, int32(i))
			w.given(ledger.Sweep{})
			w.set(func(e *ledger.Event) { e.State, e.SaleCloses = state, start+1 })
			rescued(w, o, int32(i))
		}
	}},
	{"A17: no rescue in a cancelled event", func(w *world) {
		o, h := lost(w, true, 0)
		w.given(ledger.Sweep{})
		w.set(func(e *ledger.Event) { e.State = ledger.Cancelled })
		r := w.ok(w.pay(o, "p"), things(anOrder(o.ID), aHold(h.ID), aDue(o.ID, "p"))...)
		w.same("the order", []any{r.Order.State, r.Order.Reason}, []any{ledger.OrderFailed, ledger.ReasonEventCancelled})
	}},
	{"A17: returned seats may be claimed by their own order, blocked ones not", func(w *world) {
		w.returns(ledger.ReturnsWaitlist)
		o, _ := lost(w, false, 0)
		w.given(ledger.Sweep{})
		w.wantSeats(ledger.Returned, 0)
		rescued(w, o, 0)
		o, h := lost(w, true, 1)
		w.given(ledger.Block{Event: mainEvent, Seats: []int32{1}, WhenFree: true})
		w.wantSeats(ledger.Returned, 1) // Block has ended the hold
		w.same("the hold", w.holdNow(h.ID).State, ledger.HoldExpired)
		w.returns(ledger.ReturnsAvailable)
		o2, _ := lost(w, false, 9)
		w.given(ledger.Block{Event: mainEvent, Seats: []int32{9}})
		w.wantSeats(ledger.Blocked, 9)
		late(w, o2)
		rescued(w, o, 1)
	}},
	{"A17: a rescue of places in the same area", func(w *world) {
		h := w.given(w.holdPlaces(alice, 1, 2)).Hold
		o := w.pending(h)
		w.pass(holdTTL)
		w.given(ledger.Sweep{})
		c := w.pay(o, "p")
		r := w.ok(c, things(anOrder(o.ID), anArea(1), aHold(c.RescueHold))...)
		w.same("the order", []any{r.Order.State, r.Order.Rescued, len(r.Order.Tickets)}, []any{ledger.OrderPaid, true, 2})
		w.same("the claim", []any{r.Hold.Area, len(r.Hold.Lines)}, []any{int32(1), 2})
		w.wantArea(1, 0, 2)
	}},
	{"A17: no rescue of places where there are not enough", func(w *world) {
		h := w.given(w.holdPlaces(alice, 1, 2)).Hold
		c := w.begin(h)
		c.AllowOther = true
		o := w.given(c).Order
		w.pass(holdTTL)
		w.given(w.holdPlaces(bob, 1, 2))
		late(w, o)
		w.wantArea(1, 2, 0)
	}},
	{"A9, A17: a rescue of places ends the area's expired holds", func(w *world) {
		h := w.given(w.holdPlaces(alice, 1, 2)).Hold
		o := w.pending(h)
		w.pass(holdTTL)
		other := w.given(w.holdPlaces(bob, 1, 3)).Hold
		w.pass(holdTTL)
		c := w.pay(o, "p")
		w.ok(c, things(anOrder(o.ID), anArea(1), aHold(other.ID), aHold(c.RescueHold))...)
		w.wantArea(1, 0, 2)
	}},
	{"I4: a free order whose hold has run out gets no ticket, swept or not", func(w *world) {
		for _, sweep := range []bool{true, false} {
			h := w.given(w.holdPlaces(alice, 0, 1)).Hold
			o := w.pending(h)
			w.pass(holdTTL)
			if sweep {
				w.given(ledger.Sweep{})
			}
			c := w.pay(o, "")
			r := w.apply(c)[0]
			if r.Fault != nil {
				w.Fatal(r.Fault)
			}
			w.same("the order", []any{r.Order.State, len(r.Order.Tickets)}, []any{ledger.OrderExpired, 0})
			w.wantArea(0, 0, 0)
		}
	}},
	{"a free order that is late has nothing to give back, whatever payment is told of, swept or not", func(w *world) {
		for _, sweep := range []bool{true, false} {
			h := w.given(w.holdPlaces(alice, 0, 1)).Hold
			o := w.pending(h)
			w.given(record(o, ledger.PaymentCaptured, 0, 0))
			w.pass(holdTTL)
			if sweep {
				w.given(ledger.Sweep{})
			}
			r := w.given(w.pay(o, "p"))
			w.same("the answer", []any{r.Order.State, r.Refund == nil}, []any{ledger.OrderExpired, true})
			w.same("the notices", w.kinds(o.ID), []string{ledger.NoticePending, ledger.NoticePayment, ledger.NoticeExpired})
			if due := duePayment(w, o.ID); due != nil {
				w.Errorf("due: %+v", due)
			}
		}
	}},
	{"A13: after a rescue the old hold cannot be paid again", func(w *world) {
		o, h := lost(w, false, 0)
		w.given(ledger.Sweep{})
		rescued(w, o, 0)
		f := w.no(fault.PaymentInProgress, w.begin(h))
		w.same("the order in the way", f.Order, o.ID)
		w.same("the old hold's order", w.holdNow(h.ID).Order, id.ID(o.ID))
	}},
}

// twinLayout has two sections of one category, 0–3 and 4–7, of which the second is a little better.
func twinLayout() *ledger.Layout {
	return &ledger.Layout{
		PlanHash: "twins", Section: []int16{0, 0, 0, 0, 1, 1, 1, 1}, Category: make([]int16, 8),
		Run: []int32{0, 0, 0, 0, 1, 1, 1, 1}, Quality: []int32{1, 1, 1, 1, 0, 0, 0, 0},
	}
}

func twinEvent(event id.ID) ledger.Event {
	e := hallEvent(event)
	e.PlanHash = twinLayout().PlanHash
	return e
}
