package ledgertest

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"onsale/internal/draw"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// What scenarios say about the waiting room of the main event. The things that its commands change are named "room" (its row),
// "calls", "rules" (what was in force), "session 1001" and "codes".

const (
	general = "general"
	presale = "presale"
)

// roomKey is K of the scenarios' draws.
var roomKey = [draw.KeyBytes]byte{0xab, 2, 3}

var listHash = hex.EncodeToString(make([]byte, 32))

// roomOn gives an event a waiting room that is never in the way: a scenario makes narrow what it is about.
func roomOn(e *ledger.Event) {
	e.Room = ledger.RoomRule{Mode: ledger.RoomOn, Arrival: true, Rate: 1000, ActiveMax: 1000}
}

// roomed gives the main event a waiting room, changed as the scenario wants, and opens it with so many numbers of each lane.
func (w *world) roomed(n int64, change func(e *ledger.Event)) ledger.Event {
	w.Helper()
	e := w.set(func(e *ledger.Event) {
		roomOn(e)
		if change != nil {
			change(e)
		}
	})
	c := ledger.RoomCommit{Event: mainEvent, Source: e.Room.Source}
	if !e.Room.Arrival {
		c.Commitment = draw.Commitment(roomKey)
	}
	w.given(c)
	freeze := ledger.RoomFreeze{Event: mainEvent}
	if !e.Room.Arrival {
		freeze.ListHash = listHash
	}
	for _, l := range e.Room.LaneRules() {
		w.given(ledger.RoomNumbers{Event: mainEvent, Lane: l.Key, Upto: n})
		freeze.Lanes = append(freeze.Lanes, ledger.LaneCount{Lane: l.Key, Count: n})
	}
	w.given(freeze)
	if !e.Room.Arrival {
		w.given(ledger.RoomDraw{Event: mainEvent, K: hex.EncodeToString(roomKey[:])})
	}
	return e
}

// called opens a room of which so many people are called at once.
func (w *world) called(n int64, change func(e *ledger.Event)) {
	w.Helper()
	e := w.roomed(n, change)
	w.set(func(e *ledger.Event) { e.Room.Rate, e.Room.ActiveMax, e.Room.Mode = 1000, 1000, ledger.RoomOn })
	for range 100 {
		if w.tick().Room.Lanes[0].Watermark == n {
			break
		}
	}
	if r := w.room(); r.Lanes[0].Watermark != n {
		w.Fatalf("only %d of %d are called", r.Lanes[0].Watermark, n)
	}
	w.set(func(now *ledger.Event) { now.Room = e.Room })
}

// advance is a step of somebody who knows of many seats.
func (w *world) advance() ledger.Advance {
	c := ledger.Advance{Event: mainEvent, Available: 100_000, Report: ledger.RoomReport{Node: -1}}
	for _, l := range w.room().Lanes {
		c.Joined = append(c.Joined, ledger.LaneCount{Lane: l.Key, Count: l.HighWater})
	}
	return c
}

// tick makes a step after the time that one takes.
func (w *world) tick() ledger.Result {
	w.Helper()
	w.pass(ledger.RoomTick)
	return w.given(w.advance())
}

// ticks makes steps for a time.
func (w *world) ticks(d ledger.Duration) {
	w.Helper()
	for range d / ledger.RoomTick {
		w.tick()
	}
}

// nextSecond lets the clock come to the beginning of its next second.
func (w *world) nextSecond() {
	w.pass(second - ledger.Duration(int64(w.clock.Now())%int64(second)))
}

func (w *world) room() ledger.Room {
	w.Helper()
	r, err := w.ledger.Room(context.Background(), mainEvent)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) session(session id.ID) ledger.Session {
	w.Helper()
	s, err := w.ledger.Session(context.Background(), session)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

func (w *world) enter(customer id.ID, number int64) ledger.Enter {
	return ledger.Enter{Session: w.id(), Event: mainEvent, Customer: customer, Lane: general, Number: number}
}

// entered lets a customer in.
func (w *world) entered(customer id.ID, number int64) *ledger.Session {
	w.Helper()
	return w.given(w.enter(customer, number)).Session
}

// holdIn holds seats in a session.
func (w *world) holdIn(s *ledger.Session, seats ...int32) ledger.HoldSeats {
	c := w.holdSeats(s.Customer, seats...)
	c.Session = s.ID
	return c
}

// retry is how long a refused claim is to wait.
func (w *world) retry(c ledger.Enter, changed ...string) ledger.Duration {
	w.Helper()
	return ledger.Duration(w.no(fault.NextIn, c, changed...).RetryAfter.Milliseconds())
}

func aSession(session id.ID) string { return fmt.Sprintf("session %d", session) }

// pictureRooms adds what can be read of waiting rooms.
func (b *book) pictureRooms(l ledger.Ledger, p map[string]string) error {
	ctx := context.Background()
	rooms, err := l.Rooms(ctx)
	if err != nil {
		return err
	}
	for _, room := range rooms {
		of := ""
		if room.Event != mainEvent {
			of = fmt.Sprintf(" of %d", room.Event)
		}
		p["room"+of] = fmt.Sprintf("%+v", room)
		for _, lane := range room.Lanes {
			calls, err := l.Calls(ctx, room.Event, lane.Key, 0, math.MaxInt32)
			if err != nil {
				return err
			}
			if len(calls) > 0 {
				p["calls"+of] += fmt.Sprintf("%s %+v; ", lane.Key, calls)
			}
		}
		sessions, err := l.Sessions(ctx, room.Event, 0, math.MaxInt32)
		if err != nil {
			return err
		}
		for _, s := range sessions {
			p[aSession(s.ID)] = fmt.Sprintf("%+v", s)
		}
	}
	for event := range b.boards {
		forces, err := l.Forces(ctx, event)
		if err != nil {
			return err
		}
		if len(forces) > 0 {
			p[fmt.Sprintf("rules of %d", event)] = fmt.Sprintf("%+v", forces)
		}
	}
	for _, c := range b.codes {
		n, err := l.CodeUses(ctx, c.Event, c.Lane, c.Code)
		if err != nil {
			return err
		}
		if n > 0 {
			p["codes"] += fmt.Sprintf("%s %s of %d: %d; ", c.Lane, c.Code, c.Event, n)
		}
	}
	return nil
}

// noteCode remembers a presale code.
func (b *book) noteCode(c ledger.TakeCode) {
	same := func(o ledger.TakeCode) bool { return o.Event == c.Event && o.Lane == c.Lane && o.Code == c.Code }
	if !slices.ContainsFunc(b.codes, same) {
		b.codes = append(b.codes, c)
	}
}
