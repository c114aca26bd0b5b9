package door

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/ledgertest"
	"onsale/internal/ticket"
)

// both runs a test on the model and on a file.
func both(t *testing.T, test func(w *world)) {
	for name, open := range map[string]func(*testing.T, *ledgertest.Clock) ledger.Ledger{"model": onModel, "sqlite": onSQLite} {
		t.Run(name, func(t *testing.T) { test(newWorld(t, open, 20)) })
	}
}

func TestScanOnce(t *testing.T) {
	both(t, func(w *world) {
		seats := w.buy(tonight, ann, 0, 1)
		in, err := w.scan(seats[0], "north", "d1")
		w.must(err)
		if in.Ticket.State != ledger.TicketUsed || in.Use.Gate != "north" || in.Use.Device != "d1" || in.Use.By != dora || in.Use.At != w.clock.Now() {
			w.Errorf("let in by %+v", in)
		}
		if in.Place.Section != "A" || in.Place.Seat != w.plan.Seats[seats[0].Seat].ID || in.Place.Area != "" || !slices.Equal(in.Place.Gates, []string{"north", "stage"}) {
			w.Errorf("the place is %+v", in.Place)
		}
		w.clock.Advance(minute)
		again, err := w.scan(seats[0], "stage", "d2")
		w.refused(err, fault.TicketUsed, "")
		if again.Use != in.Use {
			w.Errorf("E6: the first use is told as %+v, not %+v", again.Use, in.Use)
		}
		if uses := w.uses(seats[0]); len(uses) != 1 {
			w.Errorf("E6: a refused use is written down: %+v", uses)
		}
		w.state(seats[1], ledger.TicketValid)
		w.refusedAtLast(seats[1])
	})
}

// refusedAtLast gives a ticket back, and wants it refused.
func (w *world) refusedAtLast(t ledger.Ticket) {
	w.Helper()
	w.void(t)
	_, err := w.scan(t, "north", "d1")
	w.refused(err, fault.TicketVoid, "")
}

func TestScanAtOnceFromTwoNodes(t *testing.T) {
	w := newWorld(t, onSQLite, 20)
	one := w.buy(tonight, ann, 0)[0]
	code := w.code(one)
	doors := []*Service{w.door, w.another()}
	var in, used int
	var mu sync.Mutex
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			entry, err := doors[n%2].CheckIn(context.Background(), Scan{Event: tonight, Code: code, Device: "d" + string(rune('a'+n))})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				in++
			case fault.CodeOf(err) == fault.TicketUsed && entry.Use.At != 0:
				used++
			default:
				w.Errorf("neither in nor used: %+v, %v", entry, err)
			}
		})
	}
	all.Wait()
	if in != 1 || used != 15 {
		t.Errorf("E6: %d got in with one ticket, %d were told of the first", in, used)
	}
}

func TestCodesThatOpenNothing(t *testing.T) {
	w := newWorld(t, onModel, 20)
	good := w.buy(tonight, ann, 0)[0]
	other := w.buy(tomorrow, ann, 0)[0]
	said := ticket.Ticket{ID: int64(good.ID), EventID: int64(tonight), Index: good.Seat}
	sign := func(kid string, seed byte, said ticket.Ticket) string {
		text, err := ticket.Sign(ticket.Key{KID: kid, Private: key(seed), Test: said.Test}, said)
		w.must(err)
		return text
	}
	test := said
	test.Test = true
	unknown := said
	unknown.ID = 5
	borrowed := said // the number of tomorrow's ticket under tonight's name, signed by us
	borrowed.ID = int64(other.ID)
	for name, c := range map[string]struct {
		scan  Scan
		code  fault.Code
		field string
	}{
		"nothing":            {Scan{}, fault.Invalid, "code"},
		"no code of ours":    {Scan{Code: "HTTPS://EXAMPLE.COM"}, fault.Invalid, "code"},
		"endless":            {Scan{Code: strings.Repeat("A", 10_000)}, fault.Invalid, "code"},
		"forged":             {Scan{Code: sign(realKID, 3, said)}, fault.Invalid, "code"},
		"by an unknown key":  {Scan{Code: sign("9Z9Z9Z9Z", 1, said)}, fault.Invalid, "code"},
		"a TEST ticket":      {Scan{Code: sign(testKID, 2, test)}, fault.Invalid, "code"},
		"a TEST key's":       {Scan{Code: sign(testKID, 2, said)}, fault.Invalid, "code"},
		"of another event":   {Scan{Code: w.code(other)}, fault.WrongEvent, ""},
		"another's number":   {Scan{Code: sign(realKID, 1, borrowed)}, fault.WrongEvent, ""},
		"of no ticket":       {Scan{Code: sign(realKID, 1, unknown)}, fault.TicketUnknown, ""},
		"number unknown":     {Scan{Ticket: 5}, fault.TicketUnknown, ""},
		"number of tomorrow": {Scan{Ticket: other.ID}, fault.WrongEvent, ""},
		"gate unknown":       {Scan{Code: w.code(good), Gate: "west"}, fault.Invalid, "gate"},
		"gate too long":      {Scan{Code: w.code(good), Gate: strings.Repeat("g", GateBytesMax+1)}, fault.Invalid, "gate"},
		"device too long":    {Scan{Code: w.code(good), Device: strings.Repeat("d", DeviceBytesMax+1)}, fault.Invalid, "device"},
		"device unprintable": {Scan{Code: w.code(good), Device: "d\n1"}, fault.Invalid, "device"},
		"the wrong gate":     {Scan{Code: w.code(good), Gate: "south"}, fault.WrongGate, ""},
	} {
		c.scan.Event = tonight
		entry, err := w.door.CheckIn(context.Background(), c.scan)
		f := fault.Of(err)
		if err == nil || f.Code != c.code || f.Field != c.field {
			t.Errorf("%s: got %+v, %v, not %s %s", name, entry, err, c.code, c.field)
		}
		if name == "the wrong gate" && !strings.Contains(f.Detail, "north or stage") {
			t.Errorf("it does not say where to go: %q", f.Detail)
		}
	}
	w.state(good, ledger.TicketValid)
	w.state(other, ledger.TicketValid)
	if len(w.uses(good))+len(w.uses(other)) > 0 {
		t.Error("a refused code is written down as a use")
	}
}

func TestTestDoorLetsOnlyTestTicketsIn(t *testing.T) {
	w := newWorld(t, onModel, 20)
	one := w.buy(tonight, ann, 0)[0]
	o := w.door.o
	o.Test = true
	sandbox := New(o)
	_, err := sandbox.CheckIn(context.Background(), Scan{Event: tonight, Code: w.code(one)})
	if f := w.refused(err, fault.Invalid, "code"); strings.Contains(f.Detail, "sandbox") {
		t.Errorf("E1: a real ticket at the door of a test sale is said to be of a sandbox: %q", f.Detail)
	}
	code, err := ticket.Sign(ticket.Key{KID: testKID, Private: key(2), Test: true}, ticket.Ticket{ID: int64(one.ID), EventID: int64(tonight), Index: one.Seat, Test: true})
	w.must(err)
	_, err = sandbox.CheckIn(context.Background(), Scan{Event: tonight, Code: " " + code + "\n"})
	w.must(err)
	w.state(one, ledger.TicketUsed)
}

func TestGatesOfAnEvent(t *testing.T) {
	w := newWorld(t, onModel, 20)
	floor := w.stand(tonight, ann, 2)
	_, err := w.scan(floor[0], "north", "d1")
	w.refused(err, fault.WrongGate, "")
	in, err := w.scan(floor[0], "south", "d1")
	w.must(err)
	if in.Place.Section != "FLOOR" || in.Place.Area != w.plan.Areas[0].ID || in.Place.Seat != "" {
		t.Errorf("the place is %+v", in.Place)
	}
	if _, err = w.scan(floor[1], "", "d1"); err != nil { // any will do
		t.Error(err)
	}
	w.events.of[tonight].Gates = []catalog.Gate{{Key: "south", Sections: []string{"FLOOR"}}}
	_, err = w.scan(w.buy(tonight, bea, 0)[0], "south", "d1")
	if f := w.refused(err, fault.WrongGate, ""); !strings.Contains(f.Detail, "box office") {
		t.Errorf("no gate leads there, and it says %q", f.Detail)
	}
}

func TestTransferredTicketOpensByItsNewCodeOnly(t *testing.T) {
	both(t, func(w *world) {
		old := w.buy(tonight, ann, 0)[0]
		passed := *w.do(ledger.Transfer{ID: w.id(), Ticket: old.ID, Customer: ann, To: bea}).Ticket
		_, err := w.scan(old, "", "d1")
		w.refused(err, fault.TicketVoid, "")
		_, err = w.scan(passed, "", "d1")
		w.must(err)
		c, err := w.door.Counts(context.Background(), tonight)
		w.must(err)
		if c.Tickets != 1 || c.Entered != 1 {
			w.Errorf("one person came by one ticket, and it counts %+v", *c)
		}
	})
}

func TestUndoAndAgain(t *testing.T) {
	both(t, func(w *world) {
		one := w.buy(tonight, ann, 0)[0]
		ctx := context.Background()
		_, err := w.scan(one, "north", "d1")
		w.must(err)
		_, err = w.door.Undo(ctx, tonight, one.ID, otto, "")
		w.refused(err, fault.Invalid, "reason")
		_, err = w.door.Undo(ctx, tonight, one.ID, otto, strings.Repeat("x", ReasonRunesMax+1))
		w.refused(err, fault.Invalid, "reason")
		_, err = w.door.Undo(ctx, tomorrow, one.ID, otto, "went out")
		w.refused(err, fault.WrongEvent, "")
		w.state(one, ledger.TicketUsed)
		undone, err := w.door.Undo(ctx, tonight, one.ID, otto, "went out")
		w.must(err)
		if undone.Use.Undone != w.clock.Now() || undone.Use.UndoneBy != otto || undone.Use.Why != "went out" || undone.Ticket.State != ledger.TicketValid || undone.Place.Section != "A" {
			w.Errorf("undone as %+v", undone)
		}
		repeat, err := w.door.Undo(ctx, tonight, one.ID, otto, "went out")
		w.must(err)
		if !repeat.Repeat || repeat.Ticket.ID != one.ID {
			w.Errorf("undone again: %+v", repeat)
		}
		again, err := w.scan(one, "north", "d1") // in the same millisecond, at the same device
		w.must(err)
		uses := w.uses(one)
		if len(uses) != 2 || uses[0].Undone == 0 || uses[1].Undone != 0 || again.Use != uses[1] {
			w.Errorf("E6: the undone use does not stay written down beside the new one: %+v", uses)
		}
		w.void(one)
		_, err = w.door.Undo(ctx, tonight, one.ID, otto, "went out")
		w.refused(err, fault.Conflict, "")
	})
}

func TestCounts(t *testing.T) {
	both(t, func(w *world) {
		ctx := context.Background()
		seats, floor := w.buy(tonight, ann, 0, 1, 2), w.stand(tonight, bea, 2)
		w.buy(tomorrow, ann, 0)
		for _, in := range []struct {
			t    ledger.Ticket
			gate string
		}{{seats[0], "north"}, {seats[1], "stage"}, {floor[0], "stage"}} {
			_, err := w.scan(in.t, in.gate, "d1")
			w.must(err)
		}
		_, err := w.door.Undo(ctx, tonight, seats[1].ID, otto, "went out")
		w.must(err)
		w.void(floor[1])
		w.sync("d2", Fact{Ticket: seats[0].ID, At: w.clock.Now().Std(), Gate: "stage"})
		c, err := w.door.Counts(ctx, tonight)
		w.must(err)
		if c.Tickets != 4 || c.Entered != 2 || c.Conflicts != 1 || c.At != w.clock.Now() ||
			!maps.Equal(c.Gates, map[string]int{"north": 1, "stage": 1}) || !maps.Equal(c.Sections, map[string]int{"A": 1, "FLOOR": 1}) {
			w.Errorf("the counts are %+v", *c)
		}
		_, err = w.door.Counts(ctx, 77)
		w.refused(err, fault.EventUnknown, "")
	})
}

// away is a shard whose commits have an unknown outcome.
type away struct{ Shard }

func (a away) Do(ctx context.Context, c ledger.Command) (ledger.Result, error) {
	if _, err := a.Shard.Do(ctx, c); err != nil {
		return ledger.Result{}, err
	}
	return ledger.Result{}, &fault.Error{Code: fault.OutcomeUnknown}
}

func TestAnswerLost(t *testing.T) {
	w := newWorld(t, onModel, 20)
	one := w.buy(tonight, ann, 0)[0]
	o := w.door.o
	o.Shard = away{w.batcher}
	lossy := New(o)
	ctx := context.Background()
	_, err := lossy.CheckIn(ctx, Scan{Event: tonight, Code: w.code(one), Gate: "north", Device: "d1"})
	w.refused(err, fault.OutcomeUnknown, "")
	first, err := w.scan(one, "north", "d1") // the device asks again, and finds its own use
	w.refused(err, fault.TicketUsed, "")
	if first.Use.Device != "d1" || first.Use.Gate != "north" {
		t.Errorf("the device cannot tell its own use: %+v", first.Use)
	}
	two := w.buy(tonight, ann, 1)[0]
	facts := []Fact{{Ticket: two.ID, At: w.clock.Now().Std(), Gate: "north"}}
	lost, err := lossy.Sync(ctx, tonight, "d1", dora, facts)
	w.must(err)
	w.refused(lost[0].Err, fault.OutcomeUnknown, "")
	if found := w.sync("d1", facts...)[0]; found.Err != nil || !found.Repeat || found.Use.Conflict != "" {
		t.Errorf("sent again it is %+v", found)
	}
}

func (w *world) sync(device string, facts ...Fact) []Outcome {
	w.Helper()
	outcomes, err := w.door.Sync(context.Background(), tonight, device, dora, facts)
	w.must(err)
	return outcomes
}

// listed are an event's list as a device at a gate loads it, all pages.
func (w *world) listed(gate string) map[id.ID]Listed {
	w.Helper()
	all := map[id.ID]Listed{}
	var after id.ID
	for {
		page, err := w.door.List(context.Background(), tonight, gate, after)
		w.must(err)
		for _, l := range page.Tickets {
			if _, twice := all[l.Ticket]; twice {
				w.Errorf("ticket %d is listed twice", l.Ticket)
			}
			all[l.Ticket] = l
		}
		if after = page.Next; after == 0 {
			return all
		}
	}
}
