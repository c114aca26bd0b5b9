package door

import (
	"context"
	"testing"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

func TestListByGate(t *testing.T) {
	both(t, func(w *world) {
		seats, floor := w.buy(tonight, ann, 0, 1, 2), w.stand(tonight, bea, 2)
		tomorrows := w.buy(tomorrow, ann, 0)[0]
		_, err := w.scan(seats[1], "north", "d1")
		w.must(err)
		w.void(seats[2])
		w.void(floor[1])
		passed := *w.do(ledger.Transfer{ID: w.id(), Ticket: floor[0].ID, Customer: bea, To: ann}).Ticket
		const valid, used, void = ledger.TicketValid, ledger.TicketUsed, ledger.TicketVoid
		voids := map[id.ID]ledger.TicketState{seats[2].ID: void, floor[0].ID: void, floor[1].ID: void}
		for gate, more := range map[string]map[id.ID]ledger.TicketState{
			"north": {seats[0].ID: valid, seats[1].ID: used},
			"south": {passed.ID: valid},
			"stage": {seats[0].ID: valid, seats[1].ID: used, passed.ID: valid},
			"":      {seats[0].ID: valid, seats[1].ID: used, passed.ID: valid},
		} {
			got := w.listed(gate)
			if len(got) != len(more)+len(voids) {
				w.Errorf("E6: the list of gate %q has %d tickets: %v", gate, len(got), got)
			}
			for _, want := range []map[id.ID]ledger.TicketState{more, voids} {
				for number, state := range want {
					if got[number].State != state {
						w.Errorf("E6: in the list of gate %q ticket %d is %v", gate, number, got[number])
					}
				}
			}
			if _, there := got[tomorrows.ID]; there {
				w.Errorf("a ticket of tomorrow is in the list of gate %q", gate)
			}
		}
		_, err = w.door.List(context.Background(), tonight, "west", 0)
		w.refused(err, fault.Invalid, "gate")
		_, err = w.door.List(context.Background(), 77, "", 0)
		w.refused(err, fault.EventUnknown, "")
	})
}

func TestListPages(t *testing.T) {
	w := newWorld(t, onModel, ListOrdersMax+1)
	want := ListOrdersMax + 1
	for seat := range want {
		w.buy(tonight, ann, int32(seat))
	}
	page, err := w.door.List(context.Background(), tonight, "", 0)
	w.must(err)
	if len(page.Tickets) != ListOrdersMax || page.Next == 0 || page.Now != w.clock.Now() {
		t.Errorf("I13: the first page has %d tickets, next %d", len(page.Tickets), page.Next)
	}
	if got := len(w.listed("")); got != want {
		t.Errorf("all pages have %d tickets, not %d", got, want)
	}
	c, err := w.door.Counts(context.Background(), tonight)
	w.must(err)
	if c.Tickets != want {
		t.Errorf("%d are counted, not %d", c.Tickets, want)
	}
}

func TestSync(t *testing.T) {
	both(t, func(w *world) {
		seats := w.buy(tonight, ann, 0, 1, 2, 3)
		tomorrows := w.buy(tomorrow, ann, 0)[0]
		w.void(seats[2])
		_, err := w.scan(seats[1], "stage", "d9")
		w.must(err)
		first := w.uses(seats[1])[0]
		at := func(d ledger.Duration) time.Time { return (w.clock.Now() + ledger.Time(d)).Std() }
		facts := []Fact{
			{seats[0].ID, at(-minute), "north"},                    // right
			{seats[0].ID, at(-minute / 2), "north"},                // a copy, at the same device
			{seats[1].ID, at(-2 * minute), "north"},                // used elsewhere, though later: the accepted one stays
			{seats[2].ID, at(-minute), "north"},                    // void
			{tomorrows.ID, at(-minute), "north"},                   // of another event
			{5, at(-minute), "north"},                              // of nobody
			{seats[3].ID, at(-ledger.CheckInPastMax), "north"},     // too long ago
			{seats[3].ID, at(ledger.CheckInAheadMax + 1), "north"}, // the device's clock is wrong
			{seats[3].ID, time.Time{}, "north"},
			{seats[3].ID, at(-minute), "nörth"},
			{seats[3].ID, at(ledger.CheckInAheadMax), "north"}, // as far ahead as may be
		}
		codes := []fault.Code{"", "", "", "", fault.WrongEvent, fault.TicketUnknown, fault.Invalid, fault.Invalid, fault.Invalid, fault.Invalid, ""}
		conflicts := []string{"", ledger.ConflictUsed, ledger.ConflictUsed, ledger.ConflictVoid, "", "", "", "", "", "", ""}
		for _, again := range []bool{false, true} { // sent twice
			for i, o := range w.sync("d1", facts...) {
				if fault.CodeOf(o.Err) != codes[i] || o.Use.Conflict != conflicts[i] || o.Err == nil && (o.Repeat != again || !o.Use.Offline || o.Use.By != dora) {
					w.Errorf("again %v, fact %d: %+v", again, i, o)
				}
				if i == 1 && (o.First == nil || *o.First != w.uses(seats[0])[0]) || i == 2 && (o.First == nil || *o.First != first) {
					w.Errorf("E6: fact %d does not say which use was the first: %+v", i, o.First)
				}
			}
		}
		for i, n := range []int{2, 2, 1, 1} {
			if uses := w.uses(seats[i]); len(uses) != n {
				w.Errorf("E6: of ticket %d are written down %+v", i, uses)
			}
		}
		if now := w.uses(seats[1]); now[1] != first {
			w.Errorf("E6: the accepted use was overwritten: %+v", now)
		}
		w.state(seats[0], ledger.TicketUsed)
		w.state(seats[2], ledger.TicketVoid)
		w.alerted(seats[0].Order, 3)
	})
}

// alerted wants so many alerts about conflicts at the door.
func (w *world) alerted(order id.ID, want int) {
	w.Helper()
	notices, err := w.ledger.NoticesOf(context.Background(), order)
	w.must(err)
	got := 0
	for _, n := range notices {
		if n.Kind == ledger.NoticeCheckInConflict && n.Alert {
			got++
		}
	}
	if got != want {
		w.Errorf("E6: %d alerts about conflicts, not %d", got, want)
	}
}

func TestSyncAfterUndo(t *testing.T) {
	both(t, func(w *world) {
		one := w.buy(tonight, ann, 0)[0]
		in := Fact{one.ID, w.clock.Now().Std(), "north"}
		w.sync("d1", in)
		_, err := w.door.Undo(context.Background(), tonight, one.ID, otto, "went out")
		w.must(err)
		if o := w.sync("d1", in)[0]; !o.Repeat || o.Use.Undone == 0 {
			w.Errorf("an old fact, told again, undoes the undoing: %+v", o)
		}
		w.state(one, ledger.TicketValid)
		w.clock.Advance(minute)
		if o := w.sync("d2", Fact{one.ID, w.clock.Now().Std(), "stage"})[0]; o.Err != nil || o.Use.Conflict != "" {
			w.Errorf("back in: %+v", o)
		}
		w.state(one, ledger.TicketUsed)
		w.alerted(one.Order, 0)
	})
}

func TestSyncFromTwoDevicesInTheSameMillisecond(t *testing.T) {
	both(t, func(w *world) {
		one := w.buy(tonight, ann, 0)[0]
		in := Fact{one.ID, w.clock.Now().Std(), "north"}
		a, b := w.sync("d1", in)[0], w.sync("d2", in)[0]
		if a.Use.Conflict != "" || b.Repeat || b.Use.Conflict != ledger.ConflictUsed || b.First == nil || b.First.Device != "d1" {
			w.Errorf("E6: a copy at a second device is told as %+v, after %+v", b, a)
		}
	})
}

func TestSyncLimits(t *testing.T) {
	w := newWorld(t, onModel, 20)
	one := w.buy(tonight, ann, 0)[0]
	ctx := context.Background()
	facts := make([]Fact, SyncMax+1)
	for i := range facts {
		facts[i] = Fact{one.ID, (w.clock.Now() - ledger.Time(i)).Std(), "north"}
	}
	_, err := w.door.Sync(ctx, tonight, "d1", dora, facts)
	w.refused(err, fault.Invalid, "facts")
	_, err = w.door.Sync(ctx, tonight, "", dora, facts[:1])
	w.refused(err, fault.Invalid, "device")
	_, err = w.door.Sync(ctx, tonight, "d\x001", dora, facts[:1])
	w.refused(err, fault.Invalid, "device")
	if len(w.uses(one)) > 0 {
		t.Error("a refused sync wrote something down")
	}
	got := w.sync("d1", facts[:SyncMax]...)
	if len(got) != SyncMax || got[0].Use.Conflict != "" || got[1].Use.Conflict != ledger.ConflictUsed {
		t.Fatalf("I13: as many as may be come to %d outcomes", len(got))
	}
	w.refused(got[SyncMax-1].Err, fault.Conflict, "") // so many conflicts of one ticket say nothing new
	if n := len(w.uses(one)); n != 1+ledger.ConflictsMax {
		t.Errorf("I13: %d uses are written down", n)
	}
}
