package ledgertest

import (
	"context"
	"fmt"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

var organizerScenarios = []scenario{
	{"SetEvent by version", func(w *world) {
		e := hallEvent(mainEvent)
		e.Version, e.State = 5, ledger.Paused
		w.ok(ledger.SetEvent{Event: e}, anEvent...)
		w.again(ledger.SetEvent{Event: e})
		same := e
		same.State = ledger.OnSale
		w.again(ledger.SetEvent{Event: same})
		same.Version = 4
		w.no(fault.Conflict, ledger.SetEvent{Event: same})
		got, err := w.ledger.Event(context.Background(), mainEvent)
		if err != nil {
			w.Fatal(err)
		}
		e.LimitsAt, e.Sequence = start, 2
		w.same("the row", got, e)
	}},
	{"A1: an event made in a batch sells in the same batch", func(w *world) {
		const fresh id.ID = 9
		places, seats, again := w.holdPlaces(alice, 0, 4), w.holdSeats(bob, 2, 3), w.holdSeats(carol, 3)
		places.Event, seats.Event, again.Event = fresh, fresh, fresh
		late := w.holdPlaces(dave, 0, 3)
		late.Event = fresh
		changed := hallEvent(fresh)
		changed.Version, changed.Limits = 2, []ledger.Limit{{Scope: ledger.PerEvent, Max: 4}}
		r := w.apply(ledger.SetEvent{Event: hallEvent(fresh), Layout: hallLayout()}, places, seats, again, late,
			ledger.SetEvent{Event: changed}, ledger.Sweep{Event: fresh}, ledger.Block{Event: fresh, Seats: []int32{0}})
		for i, want := range []fault.Code{"", "", "", fault.SeatsTaken, fault.PlacesTaken, "", "", ""} {
			var got fault.Code
			if r[i].Fault != nil {
				got = r[i].Fault.Code
			}
			w.same(fmt.Sprintf("the answer to command %d", i), got, want)
		}
		w.reopen()
		s := w.snapshot(fresh)
		w.same("area 0", s.Areas[0], ledger.AreaState{Capacity: 6, Held: 4})
		w.same("the seats", []ledger.Availability{s.Seats[0].State, s.Seats[1].State, s.Seats[2].State, s.Seats[3].State},
			[]ledger.Availability{ledger.Blocked, ledger.Available, ledger.Held, ledger.Held})
		w.given(ledger.Release{Hold: places.ID, Customer: alice})
		w.given(ledger.Release{Hold: seats.ID, Customer: bob})
	}},
	{"A10: a limit comes and goes however many customers it counts", func(w *world) {
		const big, customers = 9, 40
		layout := hallLayout()
		layout.PlanHash, layout.Areas[0].Capacity = "hall-big", customers+10
		e := hallEvent(big)
		e.PlanHash = layout.PlanHash
		w.apply(ledger.SetEvent{Event: e, Layout: layout})
		customer := func(i int) id.ID { return id.ID(500 + i) }
		document := func(i int) string { return fmt.Sprintf("document %d", i) }
		place := func(i int) ledger.HoldPlaces {
			h := w.holdPlaces(customer(i), 0, 1)
			h.Event = big
			return h
		}
		begin := func(i int, h *ledger.Hold) ledger.BeginPayment {
			b := w.begin(h)
			b.Documents = []string{document(i)}
			return b
		}
		for i := range customers {
			w.given(begin(i, w.given(place(i)).Hold))
		}
		e.Version, e.Limits = 2, []ledger.Limit{{Scope: ledger.PerEvent, Max: 1}, {Scope: ledger.PerDocument, Max: 1}}
		w.given(ledger.SetEvent{Event: e})
		w.no(fault.LimitReached, place(0))
		w.no(fault.LimitReached, place(customers-1))
		h := w.given(place(customers)).Hold
		w.no(fault.LimitReached, begin(1, h))
		w.given(begin(customers, h))
		e.Version, e.Limits = 3, []ledger.Limit{{Scope: ledger.PerShow, Max: 1}}
		w.given(ledger.SetEvent{Event: e})
		w.no(fault.LimitReached, place(customers/2))
		e.Version, e.Limits = 4, nil
		w.given(ledger.SetEvent{Event: e})
		w.given(place(0))
	}},
	{"SetEvent keeps every field of the row", func(w *world) {
		e := hallEvent(mainEvent)
		e.Organizer, e.Show, e.Version, e.State = 51, 61, 1<<60, ledger.Ended
		e.SaleOpens, e.SaleCloses = start-5, start+5
		e.HoldTTL, e.PaymentWindow, e.ExtendMax, e.SeatsPerHoldMax = 1, 0, 7, ledger.SeatsPerHoldCap
		e.Currency, e.TaxIncluded, e.Returns = "JPY", false, ledger.ReturnsWaitlist
		e.Tiers = []ledger.Tier{{Category: 3, Name: "Gallery, 樓座", Face: 1, Fee: 2, TaxBP: 3}}
		e.Limits = []ledger.Limit{{Scope: ledger.PerCategory, Category: 3, Max: 2}, {Scope: ledger.PerDocument, Max: 1}}
		e.Quotas = []ledger.Quota{{Category: -1, Section: 4, Max: 9, Steps: []ledger.QuotaStep{{At: start, Max: 1}}}}
		e.Refunds = ledger.RefundRule{Until: start + 1, FeeBP: 10_000, FeePlace: 3}
		e.Exchanges, e.Transfers = ledger.ExchangeRule{Until: start + 2, Fee: 4}, ledger.TransferRule{Until: start + 3}
		e.Documents = true
		e.LimitsAt, e.Sequence = 77, 78 // not the caller's to say
		w.ok(ledger.SetEvent{Event: e}, anEvent...)
		e.LimitsAt, e.Sequence, e.Returns = start, 2, ledger.ReturnsAvailable // what it was
		w.reopen()
		got, err := w.ledger.Event(context.Background(), mainEvent)
		if err != nil {
			w.Fatal(err)
		}
		w.same("the row", got, e)
		all, err := w.ledger.Events(context.Background())
		if err != nil {
			w.Fatal(err)
		}
		slices.SortFunc(all, func(a, b ledger.Event) int { return int(a.ID - b.ID) })
		other := hallEvent(otherEvent)
		other.LimitsAt, other.Sequence = start, 1
		w.same("all rows", all, []ledger.Event{e, other})
		w.pass(minute)
		e.Version, e.Sequence = e.Version+1, 3
		w.given(ledger.SetEvent{Event: e})
		got, err = w.ledger.Event(context.Background(), mainEvent)
		if err != nil {
			w.Fatal(err)
		}
		w.same("the row, its limits as before", got, e)
	}},
	{"the plan of an event never changes, and it needs one", func(w *world) {
		e := hallEvent(mainEvent)
		e.Version, e.PlanHash = 2, "another"
		layout := hallLayout()
		layout.PlanHash = "another"
		w.no(fault.Conflict, ledger.SetEvent{Event: e, Layout: layout})
		e.PlanHash = planHash
		layout = hallLayout()
		layout.Category[0] = 1 // ignored: the seats are there
		w.ok(ledger.SetEvent{Event: e, Layout: layout}, anEvent...)
		w.same("the category", w.held(alice, 0).Lines[0].Category, int16(0))
		w.no(fault.Invalid, ledger.SetEvent{Event: hallEvent(9)})
	}},
	{"SetEvent refuses what cannot be", func(w *world) {
		for name, change := range map[string]func(e *ledger.Event){
			"face below 0":    func(e *ledger.Event) { e.Tiers[0].Face = -1 },
			"face too large":  func(e *ledger.Event) { e.Tiers[0].Face = 1_000_000_000_001 },
			"fee below 0":     func(e *ledger.Event) { e.Tiers[1].Fee = -1 },
			"fee too large":   func(e *ledger.Event) { e.Tiers[1].Fee = 1_000_000_000_001 },
			"tax below 0":     func(e *ledger.Event) { e.Tiers[0].TaxBP = -1 },
			"tax too large":   func(e *ledger.Event) { e.Tiers[0].TaxBP = 10_001 },
			"no hold time":    func(e *ledger.Event) { e.HoldTTL = 0 },
			"no seats a hold": func(e *ledger.Event) { e.SeatsPerHoldMax = 0 },
			"too many a hold": func(e *ledger.Event) { e.SeatsPerHoldMax = ledger.SeatsPerHoldCap + 1 },
			"no plan":         func(e *ledger.Event) { e.PlanHash = "" },
			"no version":      func(e *ledger.Event) { e.Version = 0 },
			"negative window": func(e *ledger.Event) { e.PaymentWindow = -1 },
			"odd limit":       func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: 9, Max: 1}} },
			"no scope":        func(e *ledger.Event) { e.Limits = []ledger.Limit{{Max: 1}} },
			"limit twice": func(e *ledger.Event) {
				e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 1}, {Scope: ledger.PerEvent, Category: 1, Max: 2}}
			},
			"show limit without show": func(e *ledger.Event) { e.Show, e.Limits = 0, []ledger.Limit{{Scope: ledger.PerShow, Max: 1}} },
			"tier twice":              func(e *ledger.Event) { e.Tiers[1].Category = 0 },
			"quota twice":             func(e *ledger.Event) { e.Quotas = []ledger.Quota{{Max: 1}, {Max: 2}} },
			"quota below 0":           func(e *ledger.Event) { e.Quotas = []ledger.Quota{{Max: -1}} },
			"steps backwards": func(e *ledger.Event) {
				e.Quotas = []ledger.Quota{{Max: 1, Steps: []ledger.QuotaStep{{At: 2, Max: 1}, {At: 1, Max: 1}}}}
			},
			"closes at once": func(e *ledger.Event) { e.SaleCloses = e.SaleOpens },
			"no currency":    func(e *ledger.Event) { e.Currency = "" },
			"long currency":  func(e *ledger.Event) { e.Currency = "EURO" },
		} {
			e := hallEvent(9)
			change(&e)
			if f := w.no(fault.Invalid, ledger.SetEvent{Event: e, Layout: hallLayout()}); f.Field == "" {
				w.Errorf("%s: no field is named", name)
			}
			if e.Version == 0 || e.PlanHash == "" {
				continue // for an event that is there, that is a conflict
			}
			e.ID, e.Version = mainEvent, 2
			w.no(fault.Invalid, ledger.SetEvent{Event: e})
		}
		for _, change := range []func(l *ledger.Layout){
			func(l *ledger.Layout) { l.Section = l.Section[1:] },
			func(l *ledger.Layout) { l.Category = l.Category[1:] },
			func(l *ledger.Layout) { l.Run = l.Run[1:] },
			func(l *ledger.Layout) { l.Quality = l.Quality[1:] },
		} {
			layout := hallLayout()
			change(layout)
			w.no(fault.Invalid, ledger.SetEvent{Event: hallEvent(9), Layout: layout})
		}
	}},
	{"an event without seats, and one without areas", func(w *world) {
		standing := hallLayout()
		standing.PlanHash = "standing"
		standing.Section, standing.Category, standing.Run, standing.Quality = nil, nil, nil, nil
		e := hallEvent(9)
		e.PlanHash = standing.PlanHash
		w.given(ledger.SetEvent{Event: e, Layout: standing})
		s := w.snapshot(9)
		w.same("its seats and areas", []int{len(s.Seats), len(s.Areas)}, []int{0, 2})
		w.given(ledger.SetEvent{Event: bigEvent(10, 70), Layout: bigLayout(70)})
		s = w.snapshot(10)
		w.same("its seats and areas", []int{len(s.Seats), len(s.Areas)}, []int{70, 0})
	}},
	{"A11: Block keeps back what is free, or nothing", func(w *world) {
		w.held(alice, 3)
		w.paid(alice, 4)
		f := w.no(fault.SeatsTaken, ledger.Block{Event: mainEvent, Seats: []int32{4, 0, 3}})
		w.same("the taken ones", f.Seats, []int32{3, 4})
		c := ledger.Block{Event: mainEvent, Seats: []int32{1, 0}}
		w.same("the count", w.ok(c, aSeat(0, 1)...).Count, 2)
		w.same("again", w.ok(c).Count, 0)
		w.same("the taken ones", w.no(fault.SeatsTaken, w.holdSeats(bob, 0, 2)).Seats, []int32{0})
	}},
	{"Block may take the seats of an expired hold", func(w *world) {
		h := w.held(alice, 0, 1)
		w.pass(holdTTL)
		c := ledger.Block{Event: mainEvent, Seats: []int32{0}}
		w.same("the count", w.ok(c, things(aSeat(0, 1), aHold(h.ID))...).Count, 1)
		w.wantSeats(ledger.Blocked, 0)
		w.wantSeats(ledger.Available, 1)
	}},
	{"A11: with WhenFree, seats are blocked when they are freed", func(w *world) {
		released, expired := w.held(alice, 0), w.held(alice, 1)
		o := w.pending(w.held(alice, 2))
		c := w.pay(o, "p")
		c.Captured = false
		w.given(c)
		block := ledger.Block{Event: mainEvent, Seats: []int32{0, 1, 2, 3}, WhenFree: true}
		w.same("the count", w.ok(block, "seat 3").Count, 4)
		w.same("again", w.ok(block).Count, 0)
		w.reopen()
		w.ok(ledger.Release{Hold: released.ID, Customer: alice}, "seat 0", aHold(released.ID))
		w.pass(holdTTL)
		w.same("a seat that is blocked on the way", w.no(fault.SeatsTaken, w.holdSeats(bob, 1), "seat 1", aHold(expired.ID)).Seats, []int32{1})
		w.given(record(o, ledger.PaymentCaptureRefused, 0, w.id()))
		w.wantSeats(ledger.Blocked, 0, 1, 2, 3)
	}},
	{"A11: a marked seat is blocked also while returns are for the waitlist", func(w *world) {
		w.returns(ledger.ReturnsWaitlist)
		h := w.held(alice, 0, 1)
		w.given(ledger.Block{Event: mainEvent, Seats: []int32{0}, WhenFree: true})
		w.given(ledger.Release{Hold: h.ID, Customer: alice})
		w.wantSeats(ledger.Blocked, 0)
		w.wantSeats(ledger.Returned, 1)
		w.same("the taken ones", w.no(fault.SeatsTaken, ledger.Block{Event: mainEvent, Seats: []int32{0, 1, 2}}).Seats, []int32{1})
	}},
	{"Unblock gives back what is blocked, and takes marks away", func(w *world) {
		h := w.held(alice, 2)
		w.given(ledger.Block{Event: mainEvent, Seats: []int32{0, 1, 2}, WhenFree: true})
		c := ledger.Unblock{Event: mainEvent, Seats: []int32{0, 2, 3}}
		w.same("the count", w.ok(c, "seat 0").Count, 2)
		w.same("again", w.ok(c).Count, 0)
		w.given(ledger.Release{Hold: h.ID, Customer: alice})
		w.wantSeats(ledger.Available, 0, 2)
		w.wantSeats(ledger.Blocked, 1)
		w.given(w.holdSeats(bob, 0))
	}},
	{"A23: unblocked seats are returned while returns are for the waitlist", func(w *world) {
		w.given(ledger.Block{Event: mainEvent, Seats: []int32{0}})
		w.returns(ledger.ReturnsWaitlist)
		w.ok(ledger.Unblock{Event: mainEvent, Seats: []int32{0}}, "seat 0")
		w.wantSeats(ledger.Returned, 0)
		w.pass(ledger.ReturnedPatience - 1)
		w.no(fault.SeatsTaken, w.holdSeats(bob, 0))
		w.pass(1)
		w.given(w.holdSeats(bob, 0))
	}},
	{"refusals of Block and Unblock come in their order", func(w *world) {
		for _, seats := range [][]int32{nil, {0, seatNone, 0}} {
			w.no(fault.EventUnknown, ledger.Block{Event: 999, Seats: seats})
			w.no(fault.EventUnknown, ledger.Unblock{Event: 999, Seats: seats})
			w.no(fault.Invalid, ledger.Block{Event: mainEvent, Seats: seats})
			w.no(fault.Invalid, ledger.Unblock{Event: mainEvent, Seats: seats})
		}
		w.held(alice, 0)
		f := w.no(fault.SeatUnknown, ledger.Block{Event: mainEvent, Seats: []int32{0, seatNone, -1}})
		w.same("the unknown seats", f.Seats, []int32{-1, seatNone})
		f = w.no(fault.SeatUnknown, ledger.Unblock{Event: mainEvent, Seats: []int32{hallSeats}})
		w.same("the unknown seats", f.Seats, []int32{hallSeats})
	}},
	{"seats without a price may be blocked", func(w *world) {
		w.ok(ledger.Block{Event: mainEvent, Seats: []int32{seatUnpriced}}, "seat 12")
	}},
	{"A6: Stop ends all selling, until somebody has looked", func(w *world) {
		h := w.held(alice, 0)
		w.no(fault.EventUnknown, ledger.Stop{Event: 999})
		w.ok(ledger.Stop{Event: mainEvent}, anEvent...)
		w.ok(ledger.Stop{Event: mainEvent})
		w.reopen()
		w.no(fault.NotOnSale, w.holdSeats(bob, 1))
		w.no(fault.NotOnSale, w.begin(h))
		elsewhere := w.holdSeats(bob, 1)
		elsewhere.Event = otherEvent
		w.given(elsewhere)
		w.given(ledger.Release{Hold: h.ID, Customer: alice})
		row := hallEvent(mainEvent) // a change, or the catalog sending it again
		row.Version = 2
		w.given(ledger.SetEvent{Event: row})
		w.no(fault.NotOnSale, w.holdSeats(bob, 1))
		w.again(ledger.SetEvent{Event: row})
		w.ok(ledger.SetEvent{Event: row, Looked: true}, anEvent...)
		w.again(ledger.SetEvent{Event: row, Looked: true})
		w.given(w.holdSeats(bob, 1))
	}},
}
