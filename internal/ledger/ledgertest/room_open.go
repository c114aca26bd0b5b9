package ledgertest

import (
	"context"
	"encoding/hex"
	"strings"

	"onsale/internal/draw"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// drawn gives the main event a room with a draw, which has said nothing yet.
func (w *world) drawn(change func(e *ledger.Event)) ledger.RoomCommit {
	w.Helper()
	e := w.set(func(e *ledger.Event) {
		roomOn(e)
		e.Room.Arrival = false
		if change != nil {
			change(e)
		}
	})
	return ledger.RoomCommit{Event: mainEvent, Commitment: draw.Commitment(roomKey), Source: e.Room.Source}
}

func freezeOf(counts ...ledger.LaneCount) ledger.RoomFreeze {
	return ledger.RoomFreeze{Event: mainEvent, Lanes: counts, ListHash: listHash}
}

var roomOpenScenarios = []scenario{
	{"C3: what is published comes in one order", func(w *world) {
		commit := w.drawn(func(e *ledger.Event) { e.Room.Source, e.Room.Opens = "a beacon", start+ledger.Time(minute) })
		numbers := ledger.RoomNumbers{Event: mainEvent, Lane: general, Upto: 10}
		freeze := freezeOf(ledger.LaneCount{Lane: general, Count: 7})
		key := ledger.RoomDraw{Event: mainEvent, Value: "4711", Provable: true, K: hex.EncodeToString(roomKey[:])}

		w.no(fault.Conflict, commit) // it opens in a minute
		w.no(fault.Conflict, numbers)
		w.no(fault.Conflict, freeze)
		w.no(fault.Conflict, key)
		w.pass(minute)
		w.same("waiting", w.ok(commit, "room").Room.Phase, ledger.RoomWaiting)
		w.again(commit)
		w.no(fault.Conflict, key)
		w.ok(numbers, "room")
		w.ok(freeze, "room")
		w.again(freeze)
		again := freeze
		again.Lanes = []ledger.LaneCount{{Lane: general, Count: 8}}
		w.same("the N that counts", w.again(again).Room.Lanes[0].N, int64(7))
		w.no(fault.Conflict, w.advance())
		r := w.ok(key, "room").Room
		w.again(key)
		w.same("open", r.Phase, ledger.RoomOpen)
		w.same("K", r.K, key.K)
		w.same("provable", r.Provable, true)
		w.again(commit)
		other := commit
		other.Source = "another"
		w.no(fault.Conflict, other)
	}},
	{"C3: K is what was committed to", func(w *world) {
		w.given(w.drawn(nil))
		w.given(freezeOf(ledger.LaneCount{Lane: general}))
		for _, k := range []string{"", "00", strings.Repeat("0", 64), strings.ToUpper(hex.EncodeToString(roomKey[:])), strings.Repeat("x", 64)} {
			w.no(fault.Invalid, ledger.RoomDraw{Event: mainEvent, K: k})
		}
		w.no(fault.Invalid, ledger.RoomDraw{Event: mainEvent, K: hex.EncodeToString(roomKey[:]), Value: "1", Provable: true}) // from nowhere
		w.ok(ledger.RoomDraw{Event: mainEvent, K: hex.EncodeToString(roomKey[:])}, "room")
	}},
	{"C3: the public value is waited for, and no longer", func(w *world) {
		w.given(w.drawn(func(e *ledger.Event) { e.Room.Source = "a beacon" }))
		w.given(freezeOf(ledger.LaneCount{Lane: general}))
		key := ledger.RoomDraw{Event: mainEvent, K: hex.EncodeToString(roomKey[:])}
		w.pass(ledger.RoomDrawWaitDefault - 1)
		w.no(fault.Conflict, key)
		key.Provable = true
		w.no(fault.Invalid, key)
		key.Provable = false
		w.pass(1)
		w.same("provable", w.ok(key, "room").Room.Provable, false)
	}},
	{"C2: numbers are below a mark that was raised before", func(w *world) {
		w.given(w.drawn(nil))
		n := ledger.RoomNumbers{Event: mainEvent, Lane: general, Upto: 1000}
		w.ok(n, "room")
		w.again(n)
		n.Upto = 999
		w.again(n)
		n.Upto = ledger.RoomNumbersMax + 1
		w.no(fault.Invalid, n)
		n.Upto, n.Lane = 10, "another"
		w.no(fault.Invalid, n)
		n.Event = 999
		w.no(fault.EventUnknown, n)
		w.no(fault.Conflict, freezeOf(ledger.LaneCount{Lane: general, Count: 1001}))
		w.ok(freezeOf(ledger.LaneCount{Lane: general, Count: 1000}), "room")
		w.ok(ledger.RoomNumbers{Event: mainEvent, Lane: general, Upto: 2000}, "room") // the tail
	}},
	{"C2: the line is frozen when the sale opens, every lane of it", func(w *world) {
		w.given(w.drawn(func(e *ledger.Event) {
			e.SaleOpens = start + ledger.Time(minute)
			e.Room.Lanes = []ledger.LaneRule{{Key: general, Weight: 1}, {Key: presale, Weight: 1}}
		}))
		g, p := ledger.LaneCount{Lane: general}, ledger.LaneCount{Lane: presale}
		w.no(fault.Conflict, freezeOf(g, p))
		w.pass(minute)
		for _, lanes := range [][]ledger.LaneCount{nil, {g}, {g, g}, {g, {Lane: "another"}}, {g, p, p}, {g, {Lane: presale, Count: -1}}} {
			w.no(fault.Invalid, freezeOf(lanes...))
		}
		bad := freezeOf(g, p)
		bad.ListHash = ""
		w.no(fault.Invalid, bad)
		w.ok(freezeOf(p, g), "room")
	}},
	{"C4: first come, first served has no draw", func(w *world) {
		c := w.drawn(func(e *ledger.Event) { e.Room.Arrival = true })
		w.no(fault.Invalid, c)
		c.Commitment = ""
		w.ok(c, "room")
		w.given(ledger.RoomNumbers{Event: mainEvent, Lane: general, Upto: 5})
		f := freezeOf(ledger.LaneCount{Lane: general, Count: 5})
		f.ListHash = ""
		w.same("open", w.ok(f, "room").Room.Phase, ledger.RoomOpen)
		w.again(ledger.RoomDraw{Event: mainEvent})
	}},
	{"C3: a draw has a commitment", func(w *world) {
		c := w.drawn(nil)
		for _, commitment := range []string{"", "00", strings.Repeat("g", 64)} {
			bad := c
			bad.Commitment = commitment
			w.no(fault.Invalid, bad)
		}
		c.Event = otherEvent
		w.no(fault.Conflict, c) // it has no room
		c.Event = 999
		w.no(fault.EventUnknown, c)
	}},
	{"a room that is closed for good takes nobody", func(w *world) {
		w.given(w.drawn(nil))
		w.set(func(e *ledger.Event) { e.Room.Closed = true })
		w.no(fault.Conflict, ledger.RoomNumbers{Event: mainEvent, Lane: general, Upto: 1})
		w.no(fault.Conflict, freezeOf(ledger.LaneCount{Lane: general}))
		w.no(fault.Conflict, w.drawn(func(e *ledger.Event) { e.Room.Closed = true }))
	}},
	{"a rule that cannot be is refused", func(w *world) {
		e := hallEvent(mainEvent)
		e.Version = 100
		roomOn(&e)
		for field, change := range map[string]func(r *ledger.RoomRule){
			"room.mode":         func(r *ledger.RoomRule) { r.Mode = 3 },
			"room.rate":         func(r *ledger.RoomRule) { r.Rate = 0 },
			"room.rate_min":     func(r *ledger.RoomRule) { r.RateAuto = true },
			"room.active_max":   func(r *ledger.RoomRule) { r.ActiveMax = ledger.RoomActiveMax + 1 },
			"room.turn_ms":      func(r *ledger.RoomRule) { r.Turn = ledger.RoomTurnMax + 1 },
			"room.stay_ms":      func(r *ledger.RoomRule) { r.Stay = -1 },
			"room.draw_wait_ms": func(r *ledger.RoomRule) { r.DrawWait = -1 },
			"room.opens":        func(r *ledger.RoomRule) { r.Opens = -1 },
			"room.lanes":        func(r *ledger.RoomRule) { r.Lanes = []ledger.LaneRule{{Key: "a", Weight: 1}, {Key: "a", Weight: 1}} },
		} {
			bad := e
			change(&bad.Room)
			w.same("the field", w.no(fault.Invalid, ledger.SetEvent{Event: bad}).Field, field)
		}
		e.Holding.UnpaidMax = ledger.UnpaidHoldsMax + 1
		w.same("the field", w.no(fault.Invalid, ledger.SetEvent{Event: e}).Field, "holding.unpaid_max")
	}},
	{"C1: a presale code is used so often, and once by each customer", func(w *world) {
		w.drawn(func(e *ledger.Event) { e.Room.Lanes = []ledger.LaneRule{{Key: presale, Weight: 1}} })
		c := ledger.TakeCode{Event: mainEvent, Lane: presale, Code: "abc", Max: 2, Customer: alice}
		w.same("uses", w.ok(c, "codes").Count, 1)
		w.same("uses", w.again(c).Count, 1)
		c.Customer = bob
		w.same("uses", w.ok(c, "codes").Count, 2)
		c.Customer = carol
		w.no(fault.CodeUsedUp, c)
		w.reopen()
		w.no(fault.CodeUsedUp, c)
		c.Customer = alice
		w.again(c)
		c.Customer, c.Max = carol, 3
		w.ok(c, "codes")
		c.Code = "another"
		w.ok(c, "codes")
		for _, bad := range []func(c *ledger.TakeCode){
			func(c *ledger.TakeCode) { c.Code = "" }, func(c *ledger.TakeCode) { c.Max = 0 }, func(c *ledger.TakeCode) { c.Lane = general },
		} {
			wrong := c
			bad(&wrong)
			w.no(fault.Invalid, wrong)
		}
		c.Event = 999
		w.no(fault.EventUnknown, c)
	}},
	{"C1: a code's uses in one batch", func(w *world) {
		w.drawn(nil)
		var commands []ledger.Command
		for i := range 6 {
			commands = append(commands, ledger.TakeCode{Event: mainEvent, Lane: general, Code: "abc", Max: 3, Customer: id.ID(200 + i/2)})
		}
		commands = append(commands, ledger.TakeCode{Event: mainEvent, Lane: general, Code: "abc", Max: 3, Customer: alice})
		results := w.apply(commands...)
		for i, r := range results[:6] {
			if r.Fault != nil || r.Repeat != (i%2 == 1) {
				w.Errorf("use %d: %+v", i, r)
			}
		}
		w.same("one too many", results[6].Fault.Code, fault.CodeUsedUp)
		n, err := w.ledger.CodeUses(context.Background(), mainEvent, general, "abc")
		if err != nil || n != 3 {
			w.Errorf("%d uses, %v", n, err)
		}
	}},
}
