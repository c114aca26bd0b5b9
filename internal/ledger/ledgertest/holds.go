package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

var holdScenarios = []scenario{
	{"I3: a hold takes all its seats or none", func(w *world) {
		c := w.holdSeats(alice, 2, 0, 1)
		h := w.ok(c, things(aSeat(0, 1, 2), aHold(c.ID))...).Hold
		w.same("the seats, ascending", h.Seats(), []int32{0, 1, 2})
		f := w.no(fault.SeatsTaken, w.holdSeats(bob, 3, 2, 1, 4))
		w.same("the taken ones, ascending", f.Seats, []int32{1, 2})
		w.wantSeats(ledger.Available, 3, 4)
	}},
	{"a hold says what it fixed", func(w *world) {
		c := w.holdSeats(alice, 8, 3)
		c.Session = 7 // there is no waiting room, so it is in no session
		h := w.given(c).Hold
		want := &ledger.Hold{
			ID: c.ID, Event: mainEvent, Customer: alice, State: ledger.HoldLive, Area: -1, Currency: "EUR",
			Created: start, Expires: start + ledger.Time(holdTTL),
			Lines: []ledger.Line{
				{Seat: 3, Epoch: 1, Category: 0, Face: 5000, Fee: 250, Tax: 343, Total: 5250},
				{Seat: 8, Epoch: 1, Category: 1, Face: 3000, Tax: 196, Total: 3000},
			},
		}
		w.same("the hold", h, want)
		stored := w.holdNow(c.ID)
		w.same("the stored hold", &stored, want)
		w.same("the seat's expiry", w.seat(3).Expires, h.Expires)
	}},
	{"a hold of places says what it fixed", func(w *world) {
		c := w.holdPlaces(alice, 1, 2)
		h := w.ok(c, anArea(1), aHold(c.ID)).Hold
		line := ledger.Line{Seat: -1, Category: 1, Face: 3000, Tax: 196, Total: 3000}
		w.same("the hold", h, &ledger.Hold{
			ID: c.ID, Event: mainEvent, Customer: alice, State: ledger.HoldLive, Area: 1, Currency: "EUR",
			Created: start, Expires: start + ledger.Time(holdTTL), Lines: []ledger.Line{line, line},
		})
		w.wantArea(1, 2, 0)
	}},
	{"I2: an area never gives more than it has", func(w *world) {
		w.given(w.holdPlaces(alice, 0, 4))
		w.no(fault.PlacesTaken, w.holdPlaces(bob, 0, 3))
		c := w.holdPlaces(bob, 0, 2)
		w.ok(c, anArea(0), aHold(c.ID))
		w.no(fault.PlacesTaken, w.holdPlaces(carol, 0, 1))
		w.wantArea(0, 6, 0)
		c = w.holdPlaces(carol, 1, 3)
		w.ok(c, anArea(1), aHold(c.ID))
	}},
	{"refusals of HoldSeats come in their order", func(w *world) {
		many := w.holdSeats(alice, 0, 1, 2, 3, 4, 5, 6)
		unknownEvent := w.holdSeats(alice)
		unknownEvent.Event = 999
		w.no(fault.EventUnknown, unknownEvent)
		w.no(fault.Invalid, w.holdSeats(alice))
		w.no(fault.Invalid, many)
		many.Seats[0] = seatNone
		w.no(fault.Invalid, many)
		f := w.no(fault.SeatUnknown, w.holdSeats(alice, 0, seatNone, 0, -1))
		w.same("the unknown seats", f.Seats, []int32{-1, seatNone})
		w.no(fault.Invalid, w.holdSeats(alice, 0, 1, 0))
		w.no(fault.Invalid, w.holdSeats(alice, 0, seatUnpriced))
		w.given(w.holdSeats(bob, 0))
		w.no(fault.Invalid, w.holdSeats(alice, 0, seatUnpriced))
		w.set(func(e *ledger.Event) { e.State = ledger.Paused })
		w.no(fault.Paused, w.holdSeats(alice))
	}},
	{"refusals of HoldPlaces come in their order", func(w *world) {
		unknownEvent := w.holdPlaces(alice, 0, 1)
		unknownEvent.Event = 999
		w.no(fault.EventUnknown, unknownEvent)
		w.no(fault.Invalid, w.holdPlaces(alice, areaNone, 0))
		w.no(fault.Invalid, w.holdPlaces(alice, areaNone, -1))
		w.no(fault.Invalid, w.holdPlaces(alice, 0, 7))
		w.no(fault.SeatUnknown, w.holdPlaces(alice, areaNone, 1))
		w.no(fault.SeatUnknown, w.holdPlaces(alice, -1, 1))
		w.set(func(e *ledger.Event) { e.Tiers = e.Tiers[:2] })
		w.no(fault.Invalid, w.holdPlaces(alice, 0, 1))
		w.set(func(e *ledger.Event) { e.State = ledger.Ended })
		w.no(fault.NotOnSale, w.holdPlaces(alice, areaNone, 0))
	}},
	{"A1: a batch answers as its commands would one by one", func(w *world) {
		first, second, third := w.holdSeats(alice, 0, 1), w.holdSeats(bob, 1, 2), w.holdSeats(carol, 2, 3)
		order, tickets := w.id(), w.ids(2)
		results := w.apply(
			first, second, third,
			ledger.Release{Hold: first.ID, Customer: alice},
			w.holdSeats(bob, 1),
			ledger.BeginPayment{Order: order, Hold: third.ID, Customer: carol, Provider: "sandbox"},
			ledger.Confirm{Order: order, Payment: "p", Amount: 10500, Currency: "EUR", Captured: true, Tickets: tickets, Refund: w.id(), RescueHold: w.id()},
			w.holdSeats(dave, 0, 2),
			w.holdSeats(dave, 0),
		)
		var codes []fault.Code
		for _, r := range results {
			code := fault.Code("")
			if r.Fault != nil {
				code = r.Fault.Code
			}
			codes = append(codes, code)
		}
		w.same("the answers", codes, []fault.Code{"", fault.SeatsTaken, "", "", "", "", "", fault.SeatsTaken, ""})
		w.same("the taken seats", results[7].Fault.Seats, []int32{2})
		w.wantSeats(ledger.Held, 0, 1)
		w.wantSeats(ledger.Sold, 2, 3)
	}},
	{"A1: a batch has bounds, and beyond them nothing happens", func(w *world) {
		commands := make([]ledger.Command, ledger.BatchCommandsMax+1)
		for i := range commands {
			commands[i] = w.holdSeats(alice, 0)
		}
		before := w.picture()
		if _, err := w.ledger.Apply(context.Background(), commands); err == nil {
			w.Error("a batch that is too large was accepted")
		}
		w.changedExactly(before, "the batch", nil)
		w.given(commands[0])
	}},
	{"an empty batch tells the time", func(w *world) {
		batch, err := w.ledger.Apply(context.Background(), nil)
		if err != nil || batch.Now != start || len(batch.Results) != 0 || len(batch.Changes) != 0 {
			w.Errorf("got %+v, %v", batch, err)
		}
	}},
	{"A5: the clock never goes back, and what expired stays so", func(w *world) {
		h := w.held(alice, 0)
		w.pass(holdTTL)
		w.no(fault.HoldExpired, ledger.Extend{Hold: h.ID, Customer: alice}, "seat 0", aHold(h.ID))
		w.clock.Advance(-holdTTL)
		w.reopen()
		if w.harness.WaitsForClock {
			w.no(fault.Busy, ledger.Extend{Hold: h.ID, Customer: alice})
			w.no(fault.Busy, w.holdSeats(bob, 0))
			w.pass(holdTTL - 1000) // one second behind is borne
		}
		w.no(fault.HoldExpired, ledger.Extend{Hold: h.ID, Customer: alice})
		if now, err := w.ledger.Now(context.Background()); err != nil || now < start+ledger.Time(holdTTL) {
			w.Errorf("the clock went back to %d (%v)", now, err)
		}
		later := w.held(bob, 0)
		if later.Created < start+ledger.Time(holdTTL) {
			w.Errorf("a batch was decided by a clock that went back: %d", later.Created)
		}
	}},
	{"A5: live means that the expiry is still ahead", func(w *world) {
		w.held(alice, 0)
		w.pass(holdTTL - 1)
		w.no(fault.SeatsTaken, w.holdSeats(bob, 0))
		w.pass(1)
		w.given(w.holdSeats(bob, 0))
	}},
	{"expired seats sell, with no Sweep at all", func(w *world) {
		old := w.held(alice, 0, 1, 2)
		w.pass(holdTTL)
		c := w.holdSeats(bob, 1)
		// The expired hold ends wholly: its other seats are free as well.
		w.ok(c, things(aSeat(0, 1, 2), aHold(old.ID), aHold(c.ID))...)
		w.wantSeats(ledger.Available, 0, 2)
		w.same("the old hold", w.holdNow(old.ID).State, ledger.HoldExpired)
		w.same("the new claim's number", w.holdNow(c.ID).Lines[0].Epoch, int64(2))
	}},
	{"a refused hold may still end expired ones", func(w *world) {
		old := w.held(alice, 0, 1)
		w.pass(holdTTL)
		w.held(carol, 5)
		f := w.no(fault.SeatsTaken, w.holdSeats(bob, 0, 5), "seat 0", "seat 1", aHold(old.ID))
		w.same("the taken ones", f.Seats, []int32{5})
	}},
	{"A8: a late message of A touches nothing that B took since", func(w *world) {
		a := w.held(alice, 0, 1)
		o := w.pending(a)
		w.pass(holdTTL)
		b := w.given(w.holdSeats(bob, 0, 1)).Hold
		late := func() {
			w.no(fault.PaymentInProgress, ledger.Release{Hold: a.ID, Customer: alice})
			w.no(fault.HoldExpired, ledger.Extend{Hold: a.ID, Customer: alice})
			w.ok(ledger.Sweep{})
		}
		late()
		pay := w.pay(o, "late")
		r := w.ok(pay, things(anOrder(o.ID), aHold(a.ID), "due for 1002 by late")...)
		if r.Refund == nil || r.Order.State != ledger.OrderExpired || len(r.Order.Tickets) > 0 {
			w.Errorf("late money was not given back: %+v", r)
		}
		w.same("the repeat's refund", w.again(pay).Refund, r.Refund)
		w.again(ledger.Release{Hold: a.ID, Customer: alice})
		ob := w.pending(b)
		w.given(w.pay(ob, "b"))
		w.again(ledger.Release{Hold: a.ID, Customer: alice})
		w.again(pay)
		w.again(ledger.FailPayment{Order: o.ID, Reason: "declined"})
		w.wantSeats(ledger.Sold, 0, 1)
	}},
	{"A8: each claim on a seat has the next number, however it ended", func(w *world) {
		for n := int64(1); n <= 3; n++ {
			h := w.held(alice, 4)
			w.same("the epoch", h.Lines[0].Epoch, n)
			w.given(ledger.Release{Hold: h.ID, Customer: alice})
			w.reopen()
		}
	}},
	{"Release gives back the whole hold, once", func(w *world) {
		h := w.held(alice, 0, 8)
		other := w.held(alice, 1)
		release := ledger.Release{Hold: h.ID, Customer: alice}
		w.no(fault.HoldUnknown, ledger.Release{Hold: 999, Customer: alice})
		w.no(fault.WrongCustomer, ledger.Release{Hold: h.ID, Customer: bob})
		r := w.ok(release, things(aSeat(0, 8), aHold(h.ID))...)
		w.same("the state", r.Hold.State, ledger.HoldReleased)
		w.again(release)
		w.held(bob, 0, 8)
		w.again(release)
		w.pass(holdTTL)
		w.ok(ledger.Release{Hold: other.ID, Customer: alice}, "seat 1", aHold(other.ID))
		w.same("one whose time is up", w.holdNow(other.ID).State, ledger.HoldExpired)
		w.again(ledger.Release{Hold: other.ID, Customer: alice})
	}},
	{"Release of places", func(w *world) {
		h := w.given(w.holdPlaces(alice, 0, 4)).Hold
		w.ok(ledger.Release{Hold: h.ID, Customer: alice}, anArea(0), aHold(h.ID))
		w.wantArea(0, 0, 0)
		w.given(w.holdPlaces(bob, 0, 6))
	}},
	{"Release of what is being paid or sold is refused", func(w *world) {
		h := w.held(alice, 0)
		o := w.pending(h)
		w.same("the order in the way", w.no(fault.PaymentInProgress, ledger.Release{Hold: h.ID, Customer: alice}).Order, o.ID)
		w.given(w.pay(o, "p"))
		w.no(fault.Conflict, ledger.Release{Hold: h.ID, Customer: alice})
		w.pass(2 * holdTTL)
		w.no(fault.Conflict, ledger.Release{Hold: h.ID, Customer: alice})
	}},
	{"A14: extension once, from now, at most twice the hold time", func(w *world) {
		h := w.held(alice, 0, 1)
		extend := ledger.Extend{Hold: h.ID, Customer: alice}
		w.no(fault.HoldNotExtendable, extend) // it would not last longer
		w.pass(4 * minute)
		w.no(fault.HoldUnknown, ledger.Extend{Hold: 999, Customer: alice})
		w.no(fault.WrongCustomer, ledger.Extend{Hold: h.ID, Customer: bob})
		r := w.ok(extend, things(aSeat(0, 1), aHold(h.ID))...)
		w.same("the expiry", r.Hold.Expires, start+ledger.Time(14*minute))
		w.same("the count", r.Hold.Extended, 1)
		w.pass(4 * minute)
		w.no(fault.HoldNotExtendable, extend)
	}},
	{"A14: total life is at most twice the hold time", func(w *world) {
		w.set(func(e *ledger.Event) { e.ExtendMax = 3 })
		h := w.held(alice, 0)
		extend := ledger.Extend{Hold: h.ID, Customer: alice}
		w.pass(9 * minute)
		w.given(extend)
		w.pass(9 * minute)
		w.same("the expiry", w.given(extend).Hold.Expires, start+ledger.Time(2*holdTTL))
		w.pass(minute)
		w.no(fault.HoldNotExtendable, extend)
		w.pass(minute)
		w.no(fault.HoldExpired, extend, "seat 0", aHold(h.ID))
	}},
	{"Extend of what ended or is being paid is refused", func(w *world) {
		released, expired, sold, paying := w.held(alice, 0), w.held(alice, 1), w.held(alice, 2), w.held(alice, 3)
		w.given(ledger.Release{Hold: released.ID, Customer: alice})
		w.given(w.pay(w.pending(sold), "p"))
		o := w.pending(paying)
		w.pass(minute)
		w.no(fault.HoldExpired, ledger.Extend{Hold: released.ID, Customer: alice})
		w.no(fault.HoldExpired, ledger.Extend{Hold: sold.ID, Customer: alice})
		f := w.no(fault.PaymentInProgress, ledger.Extend{Hold: paying.ID, Customer: alice})
		w.same("the order in the way", f.Order, o.ID)
		w.pass(holdTTL)
		w.no(fault.HoldExpired, ledger.Extend{Hold: expired.ID, Customer: alice}, "seat 1", aHold(expired.ID))
	}},
	{"Sweep ends what ran out first first, so many, of one event or all", func(w *world) {
		var holds []*ledger.Hold
		for seat := range int32(4) {
			holds = append(holds, w.held(alice, seat))
			w.pass(second)
		}
		elsewhere := w.holdSeats(alice, 5)
		elsewhere.Event = otherEvent
		w.given(elsewhere)
		w.pass(holdTTL)
		live := w.held(bob, 9)
		r := w.ok(ledger.Sweep{Event: mainEvent, Max: 1}, "seat 0", aHold(holds[0].ID))
		w.same("count and more", []any{r.Count, r.More}, []any{1, true})
		r = w.ok(ledger.Sweep{Event: mainEvent}, things(aSeat(1, 2, 3), aHold(holds[1].ID), aHold(holds[2].ID), aHold(holds[3].ID))...)
		w.same("count and more", []any{r.Count, r.More}, []any{3, false})
		r = w.ok(ledger.Sweep{}, "seat 5 of 2", aHold(elsewhere.ID))
		w.same("count and more", []any{r.Count, r.More}, []any{1, false})
		w.same("nothing left", w.ok(ledger.Sweep{}).Count, 0)
		w.same("an unknown event", w.ok(ledger.Sweep{Event: 999}).Count, 0)
		w.same("the live one", w.holdNow(live.ID).State, ledger.HoldLive)
	}},
	{"Sweep gives places back", func(w *world) {
		h := w.given(w.holdPlaces(alice, 0, 6)).Hold
		w.pass(holdTTL)
		w.ok(ledger.Sweep{}, anArea(0), aHold(h.ID))
		w.wantArea(0, 0, 0)
	}},
	{"A5: what was acknowledged is there after the program ended", func(w *world) {
		w.held(alice, 0, 1)
		w.paid(bob, 2)
		w.pending(w.held(carol, 3))
		w.given(w.holdPlaces(alice, 0, 2))
		w.given(ledger.Block{Event: mainEvent, Seats: []int32{9}})
		before := w.picture()
		w.reopen()
		w.changedExactly(before, "reopening", nil)
		w.no(fault.SeatsTaken, w.holdSeats(dave, 0))
		w.no(fault.SeatsTaken, w.holdSeats(dave, 2))
	}},
	{"an Apply whose context is done does nothing", func(w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		before := w.picture()
		_, err := w.ledger.Apply(ctx, []ledger.Command{w.holdSeats(alice, 0)})
		if err == nil || errors.Is(err, ledger.ErrOutcomeUnknown) {
			w.Errorf("got %v, want an error that says that nothing happened", err)
		}
		w.changedExactly(before, "the cancelled batch", nil)
	}},
	{"A6: only an event on sale, in its window, takes holds", func(w *world) {
		for _, c := range []struct {
			state ledger.EventState
			code  fault.Code
		}{
			{ledger.Draft, fault.NotOnSale}, {ledger.Paused, fault.Paused}, {ledger.Ended, fault.NotOnSale},
			{ledger.Cancelled, fault.NotOnSale}, {ledger.Stopped, fault.NotOnSale},
		} {
			w.set(func(e *ledger.Event) { e.State = c.state })
			w.no(c.code, w.holdSeats(alice, 0))
			w.no(c.code, w.holdPlaces(alice, 0, 1))
		}
		w.set(func(e *ledger.Event) { e.State, e.SaleOpens, e.SaleCloses = ledger.OnSale, start+1000, start+2000 })
		w.no(fault.NotOnSale, w.holdSeats(alice, 0))
		w.pass(second - 1)
		w.no(fault.NotOnSale, w.holdPlaces(alice, 0, 1))
		w.pass(1)
		w.given(w.holdSeats(alice, 0))
		w.pass(second - 1)
		w.given(w.holdPlaces(alice, 0, 1))
		w.pass(1)
		w.no(fault.NotOnSale, w.holdSeats(alice, 1))
		w.no(fault.NotOnSale, w.holdPlaces(alice, 0, 1))
	}},
	{"A6: paused, ended or past the window, live holds may pay; cancelled or stopped they may not", func(w *world) {
		for i, c := range []struct {
			state ledger.EventState
			pays  bool
		}{
			{ledger.OnSale, true}, {ledger.Paused, true}, {ledger.Ended, true},
			{ledger.Draft, false}, {ledger.Cancelled, false}, {ledger.Stopped, false},
		} {
			w.set(func(e *ledger.Event) { e.State, e.SaleCloses = ledger.OnSale, start+ledger.Time(24*hour) })
			h := w.held(alice, int32(i))
			w.pass(second)
			w.set(func(e *ledger.Event) { e.State, e.SaleCloses = c.state, start+1 })
			if !c.pays {
				w.no(fault.NotOnSale, w.begin(h))
				continue
			}
			o := w.pending(h)
			w.same("the order", w.given(w.pay(o, "p")).Order.State, ledger.OrderPaid)
		}
	}},
	{"A23: while returns are for the waitlist, freed seats are returned", func(w *world) {
		released, expired, looked := w.held(alice, 0), w.held(alice, 1), w.held(alice, 2)
		w.returns(ledger.ReturnsWaitlist)
		w.ok(ledger.Release{Hold: released.ID, Customer: alice}, "seat 0", aHold(released.ID))
		w.wantSeats(ledger.Returned, 0)
		w.no(fault.SeatsTaken, w.holdSeats(bob, 0))
		w.pass(holdTTL)
		// The seat of an expired hold is freed on the way, and so it is returned, too.
		w.no(fault.SeatsTaken, w.holdSeats(bob, 1), "seat 1", aHold(expired.ID))
		w.wantSeats(ledger.Returned, 1)
		w.ok(ledger.Sweep{}, "seat 2", aHold(looked.ID))
		w.wantSeats(ledger.Returned, 2)
		w.given(w.holdSeats(bob, 0)) // returned for longer than anybody is patient
		w.pass(ledger.ReturnedPatience - 1)
		w.no(fault.SeatsTaken, w.holdSeats(bob, 1, 2))
		w.pass(1)
		c := w.holdSeats(bob, 1, 2)
		w.ok(c, things(aSeat(1, 2), aHold(c.ID))...)
	}},
	{"A23: returned seats stay so when returns are for all again", func(w *world) {
		w.returns(ledger.ReturnsWaitlist)
		h := w.held(alice, 0)
		w.given(ledger.Release{Hold: h.ID, Customer: alice})
		w.returns(ledger.ReturnsAvailable)
		w.no(fault.SeatsTaken, w.holdSeats(bob, 0))
		w.pass(ledger.ReturnedPatience)
		w.given(w.holdSeats(bob, 0))
	}},
	{"A2: a text that cannot be kept refuses its command alone", func(w *world) {
		h := w.held(bob, 1)
		bad := w.holdSeats(alice, 2)
		good := w.holdSeats(alice, 3)
		long := strings.Repeat("x", ledger.TextBytesMax)
		var commands []ledger.Command
		for _, text := range []string{"\xff", "a\x00b", long + "x"} {
			bad.Key = ledger.Key{Value: text}
			begin := w.begin(h)
			begin.Documents = []string{text}
			commands = append(commands, bad, begin, ledger.FailPayment{Order: 999, Reason: text})
		}
		bad.Key = keyOf("k", "field", "\xff")
		commands = append(commands, bad)
		bad.Key = ledger.Key{Value: strings.Repeat("x", ledger.KeyBytesMax+1)}
		commands = append(commands, bad, good)
		results := w.apply(commands...)
		for i, r := range results[:len(results)-1] {
			if r.Fault == nil || r.Fault.Code != fault.Invalid {
				w.Errorf("command %d with a bad text is answered %v", i, r.Fault)
			}
		}
		if f := results[len(results)-1].Fault; f != nil {
			w.Errorf("the good command was refused: %v", f)
		}
		w.wantSeats(ledger.Available, 2)
		begin := w.begin(h)
		begin.Documents = []string{long}
		w.given(begin)
		fits := w.holdSeats(alice, 4)
		fits.Key = keyOf(strings.Repeat("k", ledger.KeyBytesMax), "f", long)
		w.given(fits)
		w.again(fits)
	}},
	{"two holds of one customer are two holds", func(w *world) {
		a, b := w.held(alice, 0), w.held(alice, 1)
		w.ok(ledger.Release{Hold: a.ID, Customer: alice}, "seat 0", aHold(a.ID))
		w.same("the other one", w.holdNow(b.ID).State, ledger.HoldLive)
	}},
	{"the largest hold", func(w *world) {
		const seats = ledger.SeatsPerHoldCap
		w.given(ledger.SetEvent{Event: bigEvent(3, seats+1), Layout: bigLayout(seats + 1)})
		all := make([]int32, seats+1)
		for i := range all {
			all[i] = int32(i)
		}
		c := ledger.HoldSeats{ID: w.id(), Event: 3, Customer: alice, Seats: all}
		w.no(fault.Invalid, c)
		c.Seats = slices.Clone(all[1:])
		var changed []string
		for _, seat := range aSeat(c.Seats...) {
			changed = append(changed, seat+" of 3")
		}
		h := w.ok(c, things(changed, aHold(c.ID))...).Hold
		o := w.pending(h)
		w.same("its tickets", len(w.given(w.pay(o, "p")).Order.Tickets), seats)
	}},
}

// bigLayout has so many seats, all alike, side by side.
func bigLayout(seats int) *ledger.Layout {
	return &ledger.Layout{
		PlanHash: fmt.Sprint("big-", seats), Section: make([]int16, seats), Category: make([]int16, seats),
		Run: make([]int32, seats), Quality: make([]int32, seats),
	}
}

func bigEvent(event id.ID, seats int) ledger.Event {
	e := hallEvent(event)
	e.PlanHash = bigLayout(seats).PlanHash
	e.Show = theShow + event
	e.SeatsPerHoldMax = ledger.SeatsPerHoldCap
	return e
}
