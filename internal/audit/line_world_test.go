package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"onsale/internal/draw"
	codes "onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/waitingroom"
)

// The line is an event with a waiting room: 2 of the presale and 6 others are drawn, one joins later. 3 may come in a second,
// 4 may be inside. Names: {v}s is the session of visitor v, {v}c the customer; a is the first of the presale, d … h are called
// in the order of the draw.

var lineK = [32]byte{7: 1}

// A joinLog is the log of joins.
type joinLog map[id.ID][]waitingroom.Record

func (l joinLog) Replay(_ context.Context, event id.ID, sorted bool, each func(waitingroom.Record) error) error {
	var err error
	for _, r := range l[event] {
		if !sorted || r.Drawn && !r.Left {
			err = errors.Join(err, each(r))
		}
	}
	return err
}

func (w *world) lineEvent() ledger.Event {
	e := hallEvent(w.names["line"], w.names["queue"])
	e.SaleOpens = *w.clock + ledger.Time(10*second)
	e.SaleCloses = e.SaleOpens + ledger.Time(24*hour)
	e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 2}}
	e.Room = ledger.RoomRule{
		Mode: ledger.RoomOn, Opens: *w.clock - 1, Rate: 3, ActiveMax: 4, Turn: minute, Stay: 10 * minute,
		Lanes: []ledger.LaneRule{{Key: "presale", Weight: 2}, {Key: "general", Weight: 1}},
	}
	return e
}

// join gives a visitor a number.
func (w *world) join(name string, lane int, number int64, drawn bool) {
	customer := w.names[name+"c"]
	if customer == 0 {
		customer = w.new(name + "c")
	}
	w.log[w.names["line"]] = append(w.log[w.names["line"]], waitingroom.Record{
		Event: w.names["line"], Customer: customer, Lane: lane, Number: number, At: int64(*w.clock), Drawn: drawn, Entry: [16]byte{1, byte(lane), byte(number)},
	})
}

// listHash is the hash of the list of joins.
func (w *world) listHash() [32]byte {
	w.t.Helper()
	var b bytes.Buffer
	list, err := draw.NewListWriter(&b, []string{"presale", "general"})
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.log.Replay(w.t.Context(), w.names["line"], true, func(r waitingroom.Record) error { return list.Add(r.Lane, r.Number, r.Entry) })
	sum, _, err2 := list.Close()
	if err = errors.Join(err, err2); err != nil {
		w.t.Fatal(err)
	}
	return sum
}

// claim lets the visitor with a number come in.
func (w *world) claim(name, lane string, number int64) ledger.Session {
	w.t.Helper()
	r := w.do(ledger.Enter{Session: w.new(name + "s"), Event: w.names["line"], Customer: w.names[name+"c"], Lane: lane, Number: number})
	return *r.Session
}

// refused makes a command that must be refused.
func (w *world) refused(c ledger.Command, want codes.Code) {
	w.t.Helper()
	b, err := w.l.Apply(context.Background(), []ledger.Command{c})
	if err != nil || b.Results[0].Fault == nil || b.Results[0].Fault.Code != want {
		w.t.Fatalf("%T: %v, want %s (%v)", c, b.Results[0].Fault, want, err)
	}
}

// callAll makes steps of calling until everybody who joined is called.
func (w *world) callAll(joined ...ledger.LaneCount) {
	w.t.Helper()
	for range 100 {
		w.pass(ledger.RoomTick)
		r := w.do(ledger.Advance{Event: w.names["line"], Joined: joined, Available: 30, Report: ledger.RoomReport{Node: -1}})
		done := true
		for i, l := range r.Room.Lanes {
			done = done && l.Watermark == joined[i].Count
		}
		if done {
			return
		}
	}
	w.t.Fatal("after 10 s not everybody is called")
}

func (w *world) holdInside(name, session string, seats ...int32) *ledger.Hold {
	w.t.Helper()
	return w.do(ledger.HoldSeats{ID: w.new(name + "h"), Event: w.names["line"], Customer: w.names[session+"c"], Session: w.names[session+"s"], Seats: seats}).Hold
}

// queue goes each way of the waiting room once.
func (w *world) queue() {
	w.t.Helper()
	line := w.new("line")
	w.new("queue")
	e := w.lineEvent()
	e.Room.ActiveMax = 20
	w.do(ledger.SetEvent{Event: e, Layout: hallLayout()})
	w.do(ledger.RoomCommit{Event: line, Commitment: draw.Commitment(lineK)})
	for i, lane := range []string{"presale", "general"} {
		w.do(ledger.RoomNumbers{Event: line, Lane: lane, Upto: 10 + int64(i)})
	}
	w.join("a", 0, 0, true)
	w.join("b", 0, 1, true)
	for i := range int64(6) {
		w.join(fmt.Sprintf("n%d", i), 1, i, true)
	}
	for _, v := range []string{"a", "b"} {
		w.do(ledger.TakeCode{Event: line, Lane: "presale", Code: "hash", Max: 2, Customer: w.names[v+"c"]})
	}
	w.pass(10 * second)
	list := w.listHash()
	w.do(ledger.RoomFreeze{Event: line, Lanes: []ledger.LaneCount{{Lane: "presale", Count: 2}, {Lane: "general", Count: 6}}, ListHash: hex.EncodeToString(list[:])})
	w.do(ledger.RoomDraw{Event: line, K: hex.EncodeToString(lineK[:])})
	w.join("tail", 1, 6, false)
	w.callAll(ledger.LaneCount{Lane: "presale", Count: 2}, ledger.LaneCount{Lane: "general", Count: 7})
	e.Version, e.Room.ActiveMax = 2, 4
	w.do(ledger.SetEvent{Event: e})
	w.comeIn(draw.NewOrder(draw.LaneKey(draw.Seed(lineK, "", 8, list), "general"), 6))

	// A rule that lets more in, then none, then one again.
	e.Version, e.Room.Rate, e.Room.ActiveMax = 3, 5, 8
	w.do(ledger.SetEvent{Event: e})
	w.pass(second)
	w.claim("tail", "general", 6)
	w.holdInside("tail", "tail", 16)
	e.Version, e.Room.Mode = 4, ledger.RoomOff
	w.do(ledger.SetEvent{Event: e})
	w.pass(second)
	w.do(ledger.HoldSeats{ID: w.new("openh"), Event: line, Customer: w.new("openc"), Seats: []int32{17}})
	w.pass(second)
	e.Version, e.Room.Mode = 5, ledger.RoomOn
	w.do(ledger.SetEvent{Event: e})
	w.pass(second)
}

// comeIn lets the first ones in: three in a second, four inside, and another when one of them has left.
func (w *world) comeIn(order *draw.Order) {
	w.t.Helper()
	visitor := func(position int64) (name string, number int64) {
		number = order.Number(position)
		return fmt.Sprintf("n%d", number), number
	}
	*w.clock = (*w.clock/1000 + 1) * 1000 // three in one second
	w.claim("a", "presale", 0)
	for i, as := range []string{"d", "e", "f"} {
		name, number := visitor(int64(i))
		w.names[as+"c"] = w.names[name+"c"]
		if as == "f" {
			w.refused(ledger.Enter{Session: 1, Event: w.names["line"], Customer: w.names["fc"], Lane: "general", Number: number}, codes.NextIn)
			w.pass(second)
		}
		w.claim(as, "general", number)
		w.names[as+"n"] = id.ID(number)
	}
	w.pass(second)
	name, number := visitor(3)
	w.names["gc"] = w.names[name+"c"]
	w.refused(ledger.Enter{Session: 1, Event: w.names["line"], Customer: w.names["gc"], Lane: "general", Number: number}, codes.NextIn)
	w.do(ledger.Leave{Session: w.names["ds"], Customer: w.names["dc"]})
	w.claim("g", "general", number)
	w.pass(ledger.RoomTick)

	w.confirm("inside", w.begin("inside", w.holdInside("inside", "a", 0, 1)), true) // which ends the session
	w.holdInside("kept", "e", 12)
	w.do(ledger.HoldPlaces{ID: w.new("stoodh"), Event: w.names["line"], Customer: w.names["fc"], Session: w.names["fs"], Area: 0, Quantity: 2})
	w.refused(ledger.HoldSeats{ID: 9, Event: w.names["line"], Customer: w.names["dc"], Session: w.names["ds"], Seats: []int32{13}}, codes.AdmissionExpired)
}
