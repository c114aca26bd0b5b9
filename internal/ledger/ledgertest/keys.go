package ledgertest

import (
	"onsale/internal/fault"
	"onsale/internal/ledger"
)

func keyOf(value string, fields ...string) ledger.Key {
	k := ledger.Key{Value: value}
	for i := 0; i+1 < len(fields); i += 2 {
		k.Fields = append(k.Fields, ledger.KeyField{Name: fields[i], Hash: fields[i+1]})
	}
	return k
}

var keyScenarios = []scenario{
	{"A12: a repeated hold answers the hold as it is now, also expired or released", func(w *world) {
		c := w.holdSeats(alice, 0, 1)
		c.Key = keyOf("k", "event", "1", "seats", "01")
		h := w.given(c).Hold
		repeat := c
		repeat.ID = w.id()
		w.same("the repeat's hold", w.again(repeat).Hold, h)
		w.reopen()
		w.pass(second)
		w.same("after the program ended", w.again(repeat).Hold, h)
		w.given(ledger.Release{Hold: h.ID, Customer: alice})
		w.same("the hold, released", w.again(repeat).Hold.State, ledger.HoldReleased)
		w.set(func(e *ledger.Event) { e.State = ledger.Cancelled })
		w.again(repeat)
		w.wantSeats(ledger.Available, 0, 1)
	}},
	{"A12: keys last at least as long as they must, through sweeps", func(w *world) {
		c := w.holdSeats(alice, 0)
		c.Key = keyOf("k", "seats", "0")
		w.given(c)
		w.pass(holdTTL)
		w.given(ledger.Sweep{})
		w.pass(ledger.KeepAnswers - holdTTL - 1)
		w.given(ledger.Sweep{})
		c.ID = w.id()
		w.same("the hold", w.again(c).Hold.State, ledger.HoldExpired)
	}},
	{"A12: the same key for another request names the field", func(w *world) {
		c := w.holdSeats(alice, 0)
		c.Key = keyOf("k", "event", "1", "seats", "0", "session", "9")
		w.given(c)
		for _, other := range []struct {
			fields []string
			field  string
		}{
			{[]string{"event", "1", "seats", "1", "session", "8"}, "seats"},
			{[]string{"session", "8", "seats", "0", "event", "2"}, "event"},
			{[]string{"event", "1", "seats", "0"}, "session"},
			{[]string{"event", "1", "seats", "0", "session", "9", "offer", "3"}, "offer"},
		} {
			again := w.holdSeats(alice, 1)
			again.Key = keyOf("k", other.fields...)
			w.same("the field", w.no(fault.KeyReused, again).Field, other.field)
		}
		places := w.holdPlaces(alice, 0, 1)
		places.Key = keyOf("k", "event", "1", "area", "0")
		w.same("a hold of places has the same scope", w.no(fault.KeyReused, places).Field, "seats")
		reordered := w.holdSeats(alice, 0)
		reordered.Key = keyOf("k", "session", "9", "seats", "0", "event", "1")
		w.again(reordered)
	}},
	{"A12: a key belongs to one customer and one operation", func(w *world) {
		a := w.holdSeats(alice, 0)
		a.Key = keyOf("k", "seats", "0")
		h := w.given(a).Hold
		b := w.holdSeats(bob, 1)
		b.Key = keyOf("k", "seats", "1")
		w.given(b)
		pay := w.begin(h)
		pay.Key = keyOf("k", "hold", "h")
		w.given(pay)
		again := w.holdSeats(bob, 2)
		again.Key = b.Key
		w.again(again)
	}},
	{"A12: refusals are not kept", func(w *world) {
		blocking := w.held(bob, 0)
		c := w.holdSeats(alice, 0)
		c.Key = keyOf("k", "seats", "0")
		w.no(fault.SeatsTaken, c)
		w.given(ledger.Release{Hold: blocking.ID, Customer: bob})
		w.ok(c, "seat 0", aHold(c.ID))
		c.ID = w.id()
		w.again(c)
		other := w.holdPlaces(alice, 0, 7)
		other.Key = keyOf("other", "quantity", "7")
		w.no(fault.Invalid, other)
		other.Quantity, other.Key = 1, keyOf("other", "quantity", "1")
		w.given(other)
	}},
	{"I5: twice in one batch is once", func(w *world) {
		c := w.holdPlaces(alice, 0, 2)
		c.Key = keyOf("k", "area", "0")
		twice := c
		twice.ID = w.id()
		results := w.apply(c, twice)
		if results[1].Fault != nil || !results[1].Repeat || results[1].Hold.ID != c.ID {
			w.Errorf("the second is answered %+v", results[1])
		}
		w.wantArea(0, 2, 0)
	}},
	{"A12: a repeated booking answers the order as it is now", func(w *world) {
		h := w.held(alice, 0)
		c := w.begin(h)
		c.Key = keyOf("k", "hold", "h", "token", "t")
		o := w.given(c).Order
		repeat := c
		repeat.Order = w.id()
		w.same("PENDING", w.again(repeat).Order.State, ledger.OrderPending)
		w.given(w.pay(o, "p"))
		r := w.again(repeat)
		w.same("PAID", r.Order.State, ledger.OrderPaid)
		w.same("its hold", r.Hold.State, ledger.HoldSold)
		repeat.Key = keyOf("k", "hold", "h", "token", "u")
		w.same("another card", w.no(fault.KeyReused, repeat).Field, "token")
	}},
	{"A12: a declined booking stays declined for its key, another key is another order", func(w *world) {
		h := w.held(alice, 0)
		c := w.begin(h)
		c.Key = keyOf("k", "token", "t")
		o := w.given(c).Order
		w.given(ledger.FailPayment{Order: o.ID, Reason: "declined"})
		repeat := c
		repeat.Order = w.id()
		r := w.again(repeat)
		w.same("the order", []any{r.Order.ID, r.Order.State}, []any{o.ID, ledger.OrderFailed})
		next := w.begin(h)
		next.Key = keyOf("k2", "token", "u")
		w.given(next)
	}},
	{"no key is no key", func(w *world) {
		a, b := w.holdSeats(alice, 0), w.holdSeats(alice, 1)
		a.Key, b.Key = keyOf("", "seats", "0"), keyOf("", "seats", "1")
		w.given(a)
		w.ok(b, "seat 1", aHold(b.ID))
	}},
}
