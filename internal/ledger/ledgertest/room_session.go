package ledgertest

import (
	"context"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// bought sells seats in a session.
func (w *world) boughtIn(s *ledger.Session, seats ...int32) {
	w.Helper()
	h := w.given(w.holdIn(s, seats...)).Hold
	if r := w.given(w.pay(w.pending(h), "pay")); r.Order.State != ledger.OrderPaid {
		w.Fatalf("the order is %s", r.Order.State)
	}
}

var sessionScenarios = []scenario{
	{"I11: a new hold needs a live session of its customer in its event", func(w *world) {
		w.called(10, nil)
		w.no(fault.NotAdmitted, w.holdSeats(alice, 0))
		w.no(fault.NotAdmitted, w.holdPlaces(alice, 0, 1))
		s := w.entered(alice, 0)
		c := w.holdSeats(bob, 0)
		c.Session = s.ID
		w.no(fault.NotAdmitted, c) // alice's
		c.Session = 4711
		w.no(fault.NotAdmitted, c)
		c = w.holdIn(s, 0)
		w.ok(c, things(aSeat(0), aHold(c.ID))...)
		w.same("the hold's session", w.holdNow(c.ID).Session, s.ID)
		p := w.holdPlaces(alice, 0, 1)
		p.Session = s.ID
		w.ok(p, anArea(0), aHold(p.ID))
	}},
	{"I11: a session of another event is none", func(w *world) {
		w.called(10, nil)
		s := w.entered(alice, 0)
		w.setOf(otherEvent, roomOn)
		c := w.holdIn(s, 0)
		c.Event = otherEvent
		w.no(fault.NotAdmitted, c)
	}},
	{"I11: a session that has ended lets nobody hold", func(w *world) {
		w.called(10, nil)
		s := w.entered(alice, 0)
		w.pass(ledger.RoomStayDefault - 1)
		w.given(w.holdIn(s, 0)) // and now it lasts as long as this
		w.same("expires", w.session(s.ID).Expires, w.clock.Now()+ledger.Time(holdTTL))
		w.pass(holdTTL)
		w.no(fault.AdmissionExpired, w.holdIn(s, 1))
		other := w.entered(bob, 1)
		w.given(ledger.Leave{Session: other.ID, Customer: bob})
		w.no(fault.AdmissionExpired, w.holdIn(other, 1))
	}},
	{"I11: auto needs one too, off needs none", func(w *world) {
		w.called(10, nil)
		w.set(func(e *ledger.Event) { e.Room.Mode = ledger.RoomAuto })
		w.no(fault.NotAdmitted, w.holdSeats(alice, 0))
		w.set(func(e *ledger.Event) { e.Room.Mode = ledger.RoomOff })
		w.given(w.holdSeats(alice, 0))
	}},
	{"I11: holds made while it was off go on when it is on", func(w *world) {
		w.called(10, nil)
		w.set(func(e *ledger.Event) { e.Room.Mode = ledger.RoomOff })
		first, second := w.held(alice, 0), w.held(bob, 1)
		w.set(func(e *ledger.Event) { e.Room.Mode = ledger.RoomOn })
		w.pass(minute)
		w.given(ledger.Extend{Hold: first.ID, Customer: alice})
		w.given(w.pay(w.pending(first), "pay"))
		w.given(ledger.Release{Hold: second.ID, Customer: bob})
		w.no(fault.NotAdmitted, w.holdSeats(bob, 1))
	}},
	{"A12: a repeat is a repeat, whatever has become of the session", func(w *world) {
		w.called(10, nil)
		s := w.entered(alice, 0)
		c := w.holdIn(s, 0)
		c.Key = ledger.Key{Value: "k"}
		w.given(c)
		w.given(ledger.Leave{Session: s.ID, Customer: alice})
		w.again(c)
		c.Session = 0
		w.again(c)
	}},
	{"C9: an exchange needs a session too", func(w *world) {
		w.allow()
		o := w.paid(alice, 0)
		w.called(10, nil)
		c := w.exchange(o, nil, 5)
		w.no(fault.NotAdmitted, c)
		c.Session = w.entered(alice, 0).ID
		w.given(c)
	}},
	{"C9: a session lasts as long as its hold, extended or being paid", func(w *world) {
		w.called(10, func(e *ledger.Event) { e.Room.Stay = minute })
		s := w.entered(alice, 0)
		c := w.holdIn(s, 0)
		h := w.ok(c, things(aSeat(0), aHold(c.ID), aSession(s.ID))...).Hold
		w.same("expires", w.session(s.ID).Expires, h.Expires)
		w.pass(minute)
		h = w.ok(ledger.Extend{Hold: h.ID, Customer: alice}, things(aSeat(0), aHold(h.ID), aSession(s.ID))...).Hold
		w.same("expires", w.session(s.ID).Expires, h.Expires)
		w.pass(8 * minute)
		b := w.begin(h)
		r := w.ok(b, things(aSeat(0), aHold(h.ID), aSession(s.ID), anOrder(b.Order))...)
		w.same("expires", w.session(s.ID).Expires, r.Hold.Expires)
		w.given(w.holdIn(s, 1)) // it is still live
	}},
	{"C9: what is bought ends the session, unless limits leave places", func(w *world) {
		limited := func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 2}} }
		w.called(10, limited)
		s := w.entered(alice, 0)
		w.boughtIn(s, 0)
		w.same("it goes on", w.session(s.ID).Ended, ledger.Time(0))
		h := w.given(w.holdIn(s, 1)).Hold
		o := w.pending(h)
		w.ok(w.pay(o, "pay"), things(aSeat(1), aHold(h.ID), anOrder(o.ID), "room", aSession(s.ID))...)
		ended := w.session(s.ID)
		w.same("why", ended.Why, ledger.SessionPaid)
		w.same("inside", w.room().Inside, 0)
		w.no(fault.AdmissionExpired, w.holdIn(s, 2))
	}},
	{"C9: without a limit there are always places left", func(w *world) {
		w.called(10, nil)
		s := w.entered(alice, 0)
		w.boughtIn(s, 0)
		w.same("it goes on", w.session(s.ID).Ended, ledger.Time(0))
		w.boughtIn(s, 1)
	}},
	{"C9: the show's limit counts as well", func(w *world) {
		w.called(10, func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerShow, Max: 1}} })
		s := w.entered(alice, 0)
		w.boughtIn(s, 0)
		w.same("why", w.session(s.ID).Why, ledger.SessionPaid)
	}},
	{"C9: a rescue ends the session as any sale does", func(w *world) {
		w.called(10, func(e *ledger.Event) {
			e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 1}}
			e.Room.Stay = hour
		})
		s := w.entered(alice, 0)
		o := w.pending(w.given(w.holdIn(s, 0)).Hold)
		w.pass(holdTTL + window)
		r := w.given(w.pay(o, "pay"))
		w.same("rescued", r.Order.Rescued, true)
		w.same("why", w.session(s.ID).Why, ledger.SessionPaid)
		w.same("inside", w.room().Inside, 0)
	}},
	{"C9: a sale whose session has ended changes no session", func(w *world) {
		w.called(10, func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 1}} })
		s := w.entered(alice, 0)
		h := w.given(w.holdIn(s, 0)).Hold
		w.given(ledger.Leave{Session: s.ID, Customer: alice})
		o := w.pending(h)
		w.ok(w.pay(o, "pay"), things(aSeat(0), aHold(h.ID), anOrder(o.ID))...)
	}},
	{"C9: leaving ends a session once", func(w *world) {
		w.called(10, nil)
		s := w.entered(alice, 0)
		c := ledger.Leave{Session: s.ID, Customer: bob}
		w.no(fault.NotAdmitted, c)
		w.no(fault.NotAdmitted, ledger.Leave{Session: 4711, Customer: alice})
		c.Customer = alice
		w.ok(c, "room", aSession(s.ID))
		w.same("inside", w.room().Inside, 0)
		w.again(c)
		late := w.entered(bob, 1)
		w.pass(ledger.RoomStayDefault)
		c = ledger.Leave{Session: late.ID, Customer: bob}
		r := w.ok(c, "room", aSession(late.ID))
		w.same("as a repeat", r.Repeat, true)
		w.same("why", r.Session.Why, ledger.SessionExpired)
	}},
	{"A1: a session is made, used and left in one batch", func(w *world) {
		w.called(10, func(e *ledger.Event) { e.Room.ActiveMax = 1 })
		enter := w.enter(alice, 0)
		h := w.holdSeats(alice, 0)
		h.Session = enter.Session
		late := w.holdSeats(alice, 1)
		late.Session = enter.Session
		leave := ledger.Leave{Session: enter.Session, Customer: alice}
		for i, r := range w.apply(enter, w.enter(alice, 0), w.enter(bob, 1), h, leave, late, leave, w.enter(alice, 0), w.enter(bob, 1)) {
			want := []fault.Code{"", "", fault.NextIn, "", "", fault.AdmissionExpired, "", fault.Conflict, ""}[i]
			var got fault.Code
			if r.Fault != nil {
				got = r.Fault.Code
			}
			if got != want {
				w.Errorf("command %d of the batch: %q, want %q", i, got, want)
			}
		}
		w.same("inside", w.room().Inside, 1)
	}},
	{"the figures of a room", func(w *world) {
		ctx := context.Background()
		w.called(10, nil)
		a, b, c := w.entered(alice, 0), w.entered(bob, 1), w.entered(carol, 2)
		w.boughtIn(a, 0, 1)
		w.given(w.holdIn(b, 2))
		h := w.given(w.holdIn(c, 3)).Hold
		w.given(ledger.Release{Hold: h.ID, Customer: carol})
		w.given(w.holdIn(a, 4))
		w.entered(dave, 3)
		w.given(ledger.Leave{Session: c.ID, Customer: carol})
		f, err := w.ledger.RoomFigures(ctx, mainEvent)
		if err != nil {
			w.Fatal(err)
		}
		w.same("the figures", f, ledger.RoomFigures{Entered: 4, Inside: 3, Holding: 2, Paid: 1, HoldsEnded: 2, HoldsSold: 1, PlacesSold: 2})
		all, err := w.ledger.Sessions(ctx, mainEvent, a.ID, 2)
		if err != nil || len(all) != 2 || all[0].ID != b.ID || all[1].ID != c.ID {
			w.Errorf("sessions behind the first: %+v, %v", all, err)
		}
		s, err := w.ledger.SessionOfNumber(ctx, ledger.SessionNumber{Event: mainEvent, Lane: general, Number: 1})
		if err != nil || s.ID != b.ID {
			w.Errorf("the session of number 1: %+v, %v", s, err)
		}
		for _, n := range []ledger.SessionNumber{{Event: mainEvent, Lane: general, Number: 9}, {Event: otherEvent, Lane: general, Number: 1}, {Event: mainEvent, Lane: presale, Number: 1}} {
			if _, err := w.ledger.SessionOfNumber(ctx, n); !isNotFound(err) {
				w.Errorf("%+v: %v", n, err)
			}
		}
		if _, err := w.ledger.Session(ctx, 4711); !isNotFound(err) {
			w.Errorf("an unknown session: %v", err)
		}
		if _, err := w.ledger.Room(ctx, otherEvent); !isNotFound(err) {
			w.Errorf("an unknown room: %v", err)
		}
	}},
}

// unpaid lets a hold of a customer run out or be released.
func (w *world) unpaid(customer id.ID, release bool, seats ...int32) {
	w.Helper()
	h := w.held(customer, seats...)
	if release {
		w.given(ledger.Release{Hold: h.ID, Customer: customer})
		return
	}
	w.pass(holdTTL)
	w.given(ledger.Sweep{})
}

var restScenarios = []scenario{
	{"C15: after so many unpaid holds a customer rests", func(w *world) {
		w.set(func(e *ledger.Event) { e.Holding = ledger.HoldingRule{UnpaidMax: 3, Rest: 30 * minute} })
		w.unpaid(alice, true, 0)
		w.unpaid(alice, false, 1)
		w.pass(minute)
		w.unpaid(alice, true, 2)
		f := w.no(fault.HoldRest, w.holdSeats(alice, 3))
		w.same("until", ledger.Duration(f.RetryAfter.Milliseconds()), 30*minute)
		w.no(fault.HoldRest, w.holdPlaces(alice, 0, 1))
		w.given(w.holdSeats(bob, 3))
		w.pass(30*minute - 1)
		w.no(fault.HoldRest, w.holdSeats(alice, 4)) // though only one has ended within the rest by now
		w.pass(1)
		w.given(w.holdSeats(alice, 4))
	}},
	{"C15: those that ended long before do not count", func(w *world) {
		w.set(func(e *ledger.Event) { e.Holding = ledger.HoldingRule{UnpaidMax: 2, Rest: 5 * minute} })
		w.unpaid(alice, true, 0)
		w.pass(5 * minute)
		w.unpaid(alice, true, 1)
		w.given(w.holdSeats(alice, 2))
	}},
	{"C15: what was paid does not count, nor what was given back then", func(w *world) {
		w.allow()
		w.set(func(e *ledger.Event) { e.Holding = ledger.HoldingRule{UnpaidMax: 1, Rest: hour, SeatRest: hour} })
		o := w.paid(alice, 0)
		r := w.given(w.refundBy(o, 0)).Refund
		w.given(ledger.RecordPayment{Order: o.ID, Payment: r.Payment, State: ledger.PaymentRefunded, Amount: r.Amount, Refund: r.ID})
		w.given(ledger.ReleaseSeats{Refund: r.ID})
		w.given(w.holdSeats(alice, 0))
	}},
	{"C15: another event's do not count, and an exchange is never refused", func(w *world) {
		w.allow()
		o := w.paid(alice, 0)
		w.set(func(e *ledger.Event) { e.Holding = ledger.HoldingRule{UnpaidMax: 1, Rest: hour} })
		w.unpaid(alice, true, 5)
		w.no(fault.HoldRest, w.holdSeats(alice, 6))
		x := w.given(w.exchange(o, nil, 6)).Hold
		w.given(ledger.Release{Hold: x.ID, Customer: alice})
		c := w.holdSeats(alice, 6)
		c.Event = otherEvent
		w.given(c)
		w.pass(hour)
		w.given(w.holdSeats(alice, 7)) // the exchange's hold did not count
	}},
	{"C15: a seat that was lost unpaid is for others first", func(w *world) {
		w.set(func(e *ledger.Event) { e.Holding = ledger.HoldingRule{SeatRest: minute} })
		w.unpaid(alice, true, 0, 1)
		w.pass(10 * second)
		w.unpaid(alice, true, 2)
		f := w.no(fault.HoldRest, w.holdSeats(alice, 1, 2, 3))
		w.same("the seats", f.Seats, []int32{1, 2})
		w.same("until", ledger.Duration(f.RetryAfter.Milliseconds()), minute)
		w.given(w.holdSeats(alice, 3))
		w.given(w.holdPlaces(alice, 0, 1))
		w.pass(50 * second)
		w.given(w.holdSeats(bob, 2))
		w.given(w.holdSeats(alice, 0))
	}},
	{"C15: who takes a seat over from their own expired hold rests as well", func(w *world) {
		w.set(func(e *ledger.Event) { e.Holding = ledger.HoldingRule{SeatRest: minute} })
		h := w.held(alice, 0)
		w.pass(holdTTL)
		w.no(fault.HoldRest, w.holdSeats(alice, 0), things(aSeat(0), aHold(h.ID))...)
		w.given(w.holdSeats(bob, 0))
	}},
	{"C15: an expired hold ended when its time was up, whoever wrote it down when", func(w *world) {
		w.set(func(e *ledger.Event) { e.Holding = ledger.HoldingRule{UnpaidMax: 1, Rest: 5 * minute} })
		h := w.held(alice, 0)
		w.pass(holdTTL + 4*minute)
		w.given(ledger.Sweep{})
		w.same("ended", w.holdNow(h.ID).Ended, h.Expires)
		f := w.no(fault.HoldRest, w.holdSeats(alice, 1))
		w.same("until", ledger.Duration(f.RetryAfter.Milliseconds()), minute)
	}},
	{"C15: holds ended and refused in one batch", func(w *world) {
		w.set(func(e *ledger.Event) { e.Holding = ledger.HoldingRule{UnpaidMax: 2, Rest: hour} })
		a, b := w.holdSeats(alice, 0), w.holdSeats(alice, 1)
		results := w.apply(a, b, ledger.Release{Hold: a.ID, Customer: alice}, w.holdSeats(alice, 2), ledger.Release{Hold: b.ID, Customer: alice}, w.holdSeats(alice, 3))
		w.same("the fourth", results[3].Fault == nil, true)
		w.same("the last", results[5].Fault.Code, fault.HoldRest)
	}},
}
