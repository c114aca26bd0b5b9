package ledgertest

import (
	"context"
	"math"

	"onsale/internal/draw"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

var roomScenarios = []scenario{
	{"C7: who is called enters once, and a repeated claim is the same session", func(w *world) {
		w.called(10, nil)
		c := w.enter(alice, 3)
		r := w.ok(c, "room", aSession(c.Session))
		at := w.clock.Now()
		want := ledger.Session{
			ID: c.Session, Event: mainEvent, Customer: alice, Lane: general, Number: 3, Position: 3, Entered: at,
			Expires: at + ledger.Time(ledger.RoomStayDefault),
		}
		w.same("the session", *r.Session, want)
		w.same("inside", r.Room.Inside, 1)
		again := w.enter(alice, 3)
		w.same("the same session", w.again(again).Session.ID, c.Session)
		w.no(fault.Conflict, w.enter(bob, 3)) // somebody else with the same number
		w.given(ledger.Leave{Session: c.Session, Customer: alice})
		w.no(fault.Conflict, again)
	}},
	{"C7: a number whose session has run out is used", func(w *world) {
		w.called(10, nil)
		w.entered(alice, 3)
		w.pass(ledger.RoomStayDefault)
		w.no(fault.Conflict, w.enter(alice, 3))
	}},
	{"C7: only who is called enters", func(w *world) {
		w.called(10, nil)
		w.given(ledger.RoomNumbers{Event: mainEvent, Lane: general, Upto: 20})
		for _, number := range []int64{10, 19, 20, 1000, -1} {
			w.no(fault.NotAdmitted, w.enter(alice, number))
		}
		c := w.enter(alice, 3)
		c.Lane = "another"
		w.no(fault.NotAdmitted, c)
		c.Lane, c.Event = general, 999
		w.no(fault.EventUnknown, c)
		c.Event = otherEvent
		w.no(fault.Conflict, c)
	}},
	{"I10: at most R enter in each second of the clock", func(w *world) {
		w.called(10, func(e *ledger.Event) { e.Room.Rate = 2 })
		w.nextSecond()
		w.pass(300)
		w.entered(alice, 0)
		w.pass(300)
		w.entered(bob, 1)
		w.same("until the next second", w.retry(w.enter(carol, 2), "room"), ledger.Duration(400))
		w.again(w.enter(alice, 0)) // who is inside is not kept out by R
		w.pass(399)
		w.same("until the next second", w.retry(w.enter(carol, 2), "room"), ledger.Duration(1))
		w.pass(1)
		w.entered(carol, 2)
		w.entered(dave, 3)
		w.no(fault.NextIn, w.enter(alice+100, 4), "room")
	}},
	{"I10: R that is lowered holds at once", func(w *world) {
		w.called(10, nil)
		w.nextSecond()
		w.entered(alice, 0)
		w.entered(bob, 1)
		w.set(func(e *ledger.Event) { e.Room.Rate = 1 })
		w.no(fault.NextIn, w.enter(carol, 2), "room")
		w.nextSecond()
		w.entered(carol, 2)
		w.no(fault.NextIn, w.enter(dave, 3), "room")
	}},
	{"I10: no more than ActiveMax are inside", func(w *world) {
		w.called(10, func(e *ledger.Event) { e.Room.ActiveMax = 2 })
		s := w.entered(alice, 0)
		w.entered(bob, 1)
		w.nextSecond()
		w.same("somewhen", w.retry(w.enter(carol, 2), "room"), second)
		w.ok(ledger.Leave{Session: s.ID, Customer: alice}, "room", aSession(s.ID))
		w.entered(carol, 2)
		w.no(fault.NextIn, w.enter(dave, 3), "room")
	}},
	{"C7: a claim that finds the room full ends sessions whose time is up", func(w *world) {
		w.called(10, func(e *ledger.Event) { e.Room.ActiveMax, e.Room.Stay = 2, 30*second })
		first := w.entered(alice, 0)
		w.pass(10 * second)
		w.entered(bob, 1)
		w.pass(20 * second) // to the millisecond
		c := w.enter(carol, 2)
		w.ok(c, "room", aSession(first.ID), aSession(c.Session))
		ended := w.session(first.ID)
		w.same("why", ended.Why, ledger.SessionExpired)
		w.same("when", ended.Ended, w.clock.Now())
		w.same("inside", w.room().Inside, 2)
	}},
	{"C7: who was called before goes before who was called later", func(w *world) {
		w.called(10, func(e *ledger.Event) { e.Room.Rate = 1 })
		w.nextSecond()
		w.entered(alice, 5)
		w.no(fault.NextIn, w.enter(carol, 7), "room")
		w.no(fault.NextIn, w.enter(bob, 2), "room")
		w.nextSecond()
		w.no(fault.NextIn, w.enter(carol, 7), "room") // there is a place, and it is bob's
		w.no(fault.NextIn, w.enter(dave, 9), "room")
		w.entered(bob, 2)
		w.nextSecond()
		w.no(fault.NextIn, w.enter(dave, 9), "room")
		w.entered(carol, 7)
		w.nextSecond()
		w.entered(dave, 9)
	}},
	{"C7: who does not come again within the patience loses the place before the others", func(w *world) {
		w.called(10, func(e *ledger.Event) { e.Room.Rate = 1 })
		w.nextSecond()
		w.entered(alice, 5)
		w.no(fault.NextIn, w.enter(bob, 2), "room")
		w.pass(ledger.RoomKnockPatience)
		w.no(fault.NextIn, w.enter(carol, 7), "room")
		w.pass(1)
		w.entered(carol, 7)
		w.same("nobody knocks", len(w.room().Knocks), 0)
	}},
	{"C8: late: only while nobody called on time waits", func(w *world) {
		w.called(4, func(e *ledger.Event) { e.Room.Turn = 20 * second })
		w.ticks(21 * second)
		w.given(ledger.RoomNumbers{Event: mainEvent, Lane: general, Upto: 8})
		w.tick()
		w.set(func(e *ledger.Event) { e.Room.Rate = 1 })
		w.nextSecond()
		w.entered(dave, 7)
		w.no(fault.NextIn, w.enter(alice, 0), "room") // late
		w.no(fault.NextIn, w.enter(bob, 5), "room")   // on time
		w.nextSecond()
		w.no(fault.NextIn, w.enter(alice, 0), "room")
		w.entered(bob, 5)
		w.nextSecond()
		w.entered(alice, 0)
	}},
	{"C7: who knocks stays on time, however long it takes", func(w *world) {
		w.called(6, func(e *ledger.Event) { e.Room.Turn, e.Room.Rate = 20*second, 1 })
		w.nextSecond()
		w.entered(dave, 5)
		w.no(fault.NextIn, w.enter(alice, 4), "room")
		for range 25 {
			w.nextSecond()
			w.ticks(second - ledger.RoomTick)
			w.set(func(e *ledger.Event) { e.Room.Rate = 1 })
		}
		// By now the turn is over for everybody who has not knocked.
		if knocks := w.room().Knocks; len(knocks) != 0 {
			w.Errorf("alice has not come again, and still knocks: %+v", knocks)
		}
		w.nextSecond()
		w.entered(bob, 3)
		w.no(fault.NextIn, w.enter(alice, 4), "room")
		if k := w.room().Knocks; len(k) != 1 || !k[0].Late {
			w.Errorf("alice did not knock in time: %+v", k)
		}
	}},
	{"C8: while it is paused nobody enters and turns do not run out", func(w *world) {
		w.called(4, func(e *ledger.Event) { e.Room.Turn = 20 * second })
		clock := w.room().Clock
		w.set(func(e *ledger.Event) { e.Room.Paused = true })
		w.no(fault.Paused, w.enter(alice, 0))
		w.ticks(60 * second)
		w.same("the turns' clock", w.room().Clock, clock)
		w.set(func(e *ledger.Event) { e.Room.Paused = false })
		w.tick()
		w.set(func(e *ledger.Event) { e.Room.Rate = 1 })
		w.nextSecond()
		w.entered(bob, 1)
		w.no(fault.NextIn, w.enter(alice, 0), "room")
		if k := w.room().Knocks; len(k) != 1 || k[0].Late {
			w.Errorf("alice is late after a pause: %+v", k)
		}
		w.set(func(e *ledger.Event) { e.State = ledger.Paused })
		w.no(fault.Paused, w.enter(alice, 0))
	}},
	{"C8: who knocks when a pause begins goes before the others when it ends", func(w *world) {
		w.called(6, func(e *ledger.Event) { e.Room.Turn = 20 * second })
		w.ticks(10 * second)
		w.set(func(e *ledger.Event) { e.Room.Rate = 1 })
		w.nextSecond()
		w.entered(dave, 5)
		w.no(fault.NextIn, w.enter(alice, 4), "room")
		w.ticks(14 * second) // her turn is over, but for her knock
		w.set(func(e *ledger.Event) { e.Room.Paused = true })
		w.ticks(5 * minute)
		w.set(func(e *ledger.Event) { e.Room.Paused, e.Room.Rate = false, 1 })
		w.nextSecond()
		w.no(fault.NextIn, w.enter(bob, 3), "room")
		w.entered(alice, 4)
	}},
	{"a room that is switched off with people inside ends their sessions", func(w *world) {
		w.called(2, func(e *ledger.Event) { e.Room.Stay = 30 * second })
		s := w.entered(alice, 0)
		w.given(ledger.RoomNumbers{Event: mainEvent, Lane: general, Upto: 8})
		w.set(func(e *ledger.Event) { e.Room.Mode = ledger.RoomOff })
		w.ticks(30 * second)
		w.same("why", w.session(s.ID).Why, ledger.SessionExpired)
		w.same("inside", w.room().Inside, 0)
		w.same("who is called", w.room().Lanes[0].Watermark, int64(2))
		w.no(fault.Conflict, w.advance())
	}},
	{"C7: while it is full turns do not run out", func(w *world) {
		w.called(4, func(e *ledger.Event) { e.Room.ActiveMax, e.Room.Stay = 1, 2*minute })
		w.entered(alice, 0)
		clock := w.room().Clock
		w.ticks(30 * second)
		w.same("the turns' clock", w.room().Clock, clock)
	}},
	{"C7: nobody enters when the sale is over, closed, or not open yet", func(w *world) {
		w.roomed(10, nil)
		w.no(fault.NotAdmitted, w.enter(alice, 0))
		w.tick()
		w.set(func(e *ledger.Event) { e.Room.Closed = true })
		w.no(fault.NotOnSale, w.enter(alice, 0))
		w.set(func(e *ledger.Event) { e.Room.Closed = false; e.State = ledger.Ended })
		w.no(fault.NotOnSale, w.enter(alice, 0))
		w.set(func(e *ledger.Event) { e.State = ledger.OnSale; e.SaleCloses = w.clock.Now() })
		w.no(fault.NotOnSale, w.enter(alice, 0))
	}},
	{"C4: positions are those of the draw", func(w *world) {
		const n = 200
		w.called(n, func(e *ledger.Event) { e.Room.Arrival = false })
		key := draw.LaneKey(draw.Seed(roomKey, "", n, [32]byte{}), general)
		seen := map[int64]bool{}
		for number := range int64(n) {
			s := w.entered(id.ID(5000+number), number)
			w.same("the position", s.Position, draw.Position(key, n, number))
			seen[s.Position] = true
		}
		w.same("positions", len(seen), n)
	}},
	{"C6: who does not come does not keep the last seats from the line for a whole turn", func(w *world) {
		w.roomed(10, nil)
		called := func(d ledger.Duration) int64 {
			for range d / ledger.RoomTick {
				w.pass(ledger.RoomTick)
				a := w.advance()
				a.Available = 2
				w.given(a)
			}
			return w.room().Lanes[0].Watermark
		}
		w.same("at once", called(20*second), int64(1))
		w.same("and when that one has not come", called(2*second), int64(2))
		w.same("no more than that", called(15*second), int64(2))
		w.entered(alice, 1)
		w.same("while somebody chooses", called(30*second), int64(2))
	}},
	{"C6: a step is made once in each tick, whoever asks", func(w *world) {
		w.roomed(1000, nil)
		w.pass(ledger.RoomTick)
		c := w.advance()
		first := w.ok(c, "room", "calls")
		if first.Count < 100 || first.Count > 150 {
			w.Errorf("%d are called in a tenth of a second at 1000 a second", first.Count)
		}
		w.again(c)
		c.Joined[0].Count = 2
		w.again(c)
		w.pass(ledger.RoomTick)
		w.ok(w.advance(), "room", "calls")
	}},
	{"C6: nobody is called who has no number", func(w *world) {
		w.roomed(5, nil)
		w.given(ledger.RoomNumbers{Event: mainEvent, Lane: general, Upto: 20})
		w.ticks(second)
		w.same("the watermark", w.room().Lanes[0].Watermark, int64(20))
		w.pass(ledger.RoomTick)
		c := w.advance()
		c.Joined[0].Count = 1000 // more than the high-water mark
		w.given(c)
		w.same("the watermark", w.room().Lanes[0].Watermark, int64(20))
		w.same("joined", w.room().Lanes[0].Joined, int64(20))
	}},
	{"C6: no more are called than there are seats for", func(w *world) {
		w.roomed(1000, nil)
		w.pass(second)
		c := w.advance()
		c.Available = 10
		w.same("called", w.given(c).Count, 5) // 10 seats ÷ 2.5 × 1.2, rounded up
		w.pass(second)
		w.same("called", w.given(c).Count, 0)
		w.entered(alice, 0)
		w.pass(second)
		c.Holding = 1
		w.same("called", w.given(c).Count, 1) // alice has a hold now
		w.pass(second)
		c.Available, c.PerBuyer = 0, 4000
		w.same("called", w.given(c).Count, 0)
	}},
	{"C6: no more are called than can be inside", func(w *world) {
		w.roomed(1000, func(e *ledger.Event) { e.Room.ActiveMax = 70 })
		w.ticks(5 * second)
		w.same("called", w.room().Lanes[0].Watermark, int64(100)) // of whom seven in ten come
		for number := range int64(70) {
			w.entered(id.ID(5000+number), number)
		}
		w.ticks(5 * second)
		w.same("called", w.room().Lanes[0].Watermark, int64(100))
	}},
	{"C5: lanes share by weight, and what one cannot use goes to the others", func(w *world) {
		w.roomed(10_000, func(e *ledger.Event) {
			e.Room.Lanes = []ledger.LaneRule{{Key: general, Weight: 1}, {Key: presale, Weight: 3}}
			e.Room.Rate, e.Room.ActiveMax = 100, 100_000
		})
		w.ticks(10 * second)
		r := w.room()
		total := r.Lanes[0].Watermark + r.Lanes[1].Watermark
		if share := r.Lanes[1].Watermark * 1000 / total; share < 745 || share > 755 || total < 1300 {
			w.Errorf("presale got %d of %d, %d ‰", r.Lanes[1].Watermark, total, share)
		}
		c := w.advance()
		w.set(func(e *ledger.Event) { e.Room.Lanes = append(e.Room.Lanes, ledger.LaneRule{Key: "late", Weight: 1000}) })
		w.ticks(second) // nobody is in the new lane: the others go on
		if r := w.room(); r.Lanes[0].Watermark+r.Lanes[1].Watermark < total+130 || len(r.Lanes) != 3 {
			w.Errorf("an empty lane takes a share: %+v", r.Lanes)
		}
		w.again(c)
	}},
	{"C9: Advance ends sessions whose time is up, a bounded number", func(w *world) {
		n := int64(ledger.SessionsEndMax + 10)
		w.called(n, func(e *ledger.Event) { e.Room.Rate, e.Room.ActiveMax, e.Room.Stay = 10_000, 10_000, minute })
		var commands []ledger.Command
		for number := range n {
			commands = append(commands, w.enter(id.ID(5000+number), number))
		}
		w.apply(commands...)
		w.same("inside", w.room().Inside, int(n))
		w.pass(minute)
		w.given(w.advance())
		w.same("inside", w.room().Inside, 10)
		w.tick()
		w.same("inside", w.room().Inside, 0)
	}},
	{"C7: what is refused is refused in one order", func(w *world) {
		w.called(4, func(e *ledger.Event) { e.Room.Rate = 1 })
		w.nextSecond()
		w.entered(alice, 0)
		w.set(func(e *ledger.Event) { e.Room.Paused, e.Room.Closed = true, true; e.State = ledger.Ended })
		w.again(w.enter(alice, 0))
		w.no(fault.Conflict, w.enter(bob, 0))
		w.no(fault.Paused, w.enter(bob, 100))
		w.set(func(e *ledger.Event) { e.Room.Paused = false })
		w.no(fault.NotOnSale, w.enter(bob, 100))
	}},
	{"C12: a room goes on where it was after the program ends", func(w *world) {
		w.called(10, func(e *ledger.Event) { e.Room.Rate = 1 })
		w.nextSecond()
		w.entered(alice, 5)
		w.no(fault.NextIn, w.enter(bob, 2), "room")
		before := w.picture()
		w.reopen()
		w.same("the picture", w.picture(), before)
		w.no(fault.NextIn, w.enter(carol, 7), "room")
		w.nextSecond()
		w.no(fault.NextIn, w.enter(carol, 7), "room")
		w.entered(bob, 2)
		w.again(w.enter(alice, 5))
	}},
	{"A5: a clock that goes back does not give R again", func(w *world) {
		w.called(10, func(e *ledger.Event) { e.Room.Rate = 1 })
		w.nextSecond()
		w.entered(alice, 0)
		w.given(w.advance())
		w.pass(-900)
		w.same("until the next second", w.retry(w.enter(bob, 1), "room"), second)
		w.again(w.advance())
		w.pass(1500)
		w.same("until the next second", w.retry(w.enter(bob, 1), "room"), ledger.Duration(400))
		w.pass(400)
		w.entered(bob, 1)
	}},
	{"C6: what was in force is written down", func(w *world) {
		w.roomed(10, nil)
		w.set(func(e *ledger.Event) { e.Room.Rate = 7 })
		w.set(func(e *ledger.Event) { e.Tiers[0].Face = 1 })
		w.pass(second)
		w.set(func(e *ledger.Event) { e.Room.Mode = ledger.RoomOff })
		w.set(func(e *ledger.Event) { e.Room.Rate = 8 })
		w.set(func(e *ledger.Event) { e.Room.Mode, e.Room.Paused = ledger.RoomAuto, true })
		forces, err := w.ledger.Forces(context.Background(), mainEvent)
		if err != nil {
			w.Fatal(err)
		}
		f := ledger.RoomForce{Event: mainEvent, At: start, Mode: ledger.RoomOn, Rate: 1000, ActiveMax: 1000, Turn: ledger.RoomTurnDefault}
		want := []ledger.RoomForce{f, f, f, f}
		want[1].Rate = 7
		want[2].Rate, want[2].Mode, want[2].At = 7, ledger.RoomOff, start+ledger.Time(second)
		want[3] = ledger.RoomForce{
			Event: mainEvent, At: start + ledger.Time(second), Mode: ledger.RoomAuto, Rate: 8, ActiveMax: 1000, Turn: ledger.RoomTurnDefault, Paused: true,
		}
		w.same("what was in force", forces, want)
	}},
	{"C6: reports move R where it is automatic", func(w *world) {
		w.roomed(10_000, func(e *ledger.Event) {
			e.Room.RateAuto, e.Room.Rate, e.Room.RateMin, e.Room.ActiveMax = true, 100, 10, 100_000
		})
		w.same("R at first", w.room().Rate, 50)
		w.nextSecond()
		c := w.advance()
		c.Report = ledger.RoomReport{Node: 1, P99: 500, Holds: 100}
		w.given(c)
		w.pass(second)
		w.given(w.advance())
		w.same("R when holds are slow", w.room().Rate, 35)
		w.same("nothing is counted twice", len(w.room().Reports), 0)
		forces, err := w.ledger.Forces(context.Background(), mainEvent)
		if err != nil || len(forces) != 2 || forces[1].Rate != 35 {
			w.Errorf("what was in force: %+v, %v", forces, err)
		}
		c.Report.At = math.MaxInt64 // the ledger's to set
		w.pass(ledger.RoomTick)
		w.given(c)
		w.same("a report's time", w.room().Reports[0].At, w.clock.Now())
	}},
}
