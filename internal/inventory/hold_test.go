package inventory

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// B1: the board says no where it is sure, and the ledger is not asked.
func TestBoardRefusesOnlyWhatItIsSureOf(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"........"}))
	n := w.node(Options{}, Rules{})
	h, err := n.seats(1, 0, 1)
	wantHeld(t, h, err, Together, 0, 1)
	n.do(ledger.Block{Event: hotEvent, Seats: []int32{5}})
	applied, _ := w.ledger.figures()

	_, err = n.seats(2, 5, 1, 2)
	wantFault(t, err, fault.SeatsTaken, 5, 1)
	if now, _ := w.ledger.figures(); now != applied || n.Stats().BoardRefused != 1 {
		t.Fatalf("the ledger was asked (%d commands), stats %+v", now-applied, n.Stats())
	}

	// Not heard of the ledger for too long: it decides.
	w.pass(FreshFor)
	_, err = n.seats(2, 1, 2)
	wantFault(t, err, fault.SeatsTaken, 1)
	if now, _ := w.ledger.figures(); now != applied+1 || n.Stats().BoardRefused != 1 {
		t.Fatalf("the ledger was not asked (%d commands), stats %+v", now-applied, n.Stats())
	}

	// I4: out of time, whether or not anyone swept it.
	w.pass(holdTTL.Std() - FreshFor - 100*time.Millisecond)
	n.Refresh(t.Context())
	_, err = n.seats(2, 1, 2) // within the margin: the ledger decides
	wantFault(t, err, fault.SeatsTaken, 1)
	if st := n.Stats(); st.BoardRefused != 1 {
		t.Fatalf("refused by the board: %+v", st)
	}
	w.pass(100 * time.Millisecond)
	h, err = n.seats(2, 1, 2)
	wantHeld(t, h, err, Together, 1, 2)
	if s := n.Board(hotEvent).Picture().Seat(0); s != ShownAvailable {
		t.Fatalf("seat 0 is shown as %d: the hold that ran out ends wholly", s)
	}
}

// I5: a repeat gets its hold again, also where its own seats look taken, or nothing is left.
func TestRepeatsAreNotRefusedByTheBoard(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"...."}))
	n := w.node(Options{}, Rules{HandPicked: OrphanRefuse, FewSeats: -1, SplitReleaseBefore: -1})
	first, err := n.HoldSeats(t.Context(), n.claim(1, "k1"), []int32{0, 1})
	wantHeld(t, first, err, Together, 0, 1)
	again, err := n.HoldSeats(t.Context(), n.claim(1, "k1"), []int32{0, 1})
	wantHeld(t, again, err, Together, 0, 1)
	if !again.Repeat || again.Hold.ID != first.Hold.ID {
		t.Fatalf("repeat %+v", again)
	}
	wish := Wish{Quantity: 2, Category: -1, Section: -1}
	first, err = n.HoldBest(t.Context(), n.claim(2, "k2"), wish)
	wantHeld(t, first, err, Together, 2, 3)
	again, err = n.HoldBest(t.Context(), n.claim(2, "k2"), wish)
	wantHeld(t, again, err, Together, 2, 3)
	if !again.Repeat || again.Hold.ID != first.Hold.ID {
		t.Fatalf("repeat %+v", again)
	}
	_, err = n.HoldBest(t.Context(), n.claim(3, "k3"), wish)
	wantFault(t, err, fault.NoSeatsFound)

	// Expired, and choosing the same again would leave an orphan: still a repeat.
	w.pass(holdTTL.Std())
	again, err = n.HoldSeats(t.Context(), n.claim(1, "k1"), []int32{0, 1})
	if err != nil || !again.Repeat {
		t.Fatalf("repeat of an expired hold: %+v, %v", again, err)
	}
	_, err = n.HoldSeats(t.Context(), n.claim(1, "k4"), []int32{0, 1, 2})
	wantFault(t, err, fault.OrphanSeat, 3)
}

// I5: what has become of the event since does not take a repeat its answer.
func TestRepeatsOutliveTheEventsSettings(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"....."}))
	n := w.node(Options{}, Rules{})
	wish := Wish{Quantity: 3, Category: -1, Section: -1}
	first, err := n.HoldBest(t.Context(), n.claim(1, "k"), wish)
	wantHeld(t, first, err, Together, 0, 1, 2)
	for _, what := range []struct {
		name   string
		happen func()
		fresh  fault.Code // what a new request is told
	}{
		{"fewer seats a hold", func() { n.do(w.setEvent(func(e *ledger.Event) { e.SeatsPerHoldMax = 2 })); n.Refresh(t.Context()) }, fault.Invalid},
		{"not loaded any more", func() { n.Unload(hotEvent) }, fault.EventUnknown},
		{"cancelled", func() { n.do(w.setEvent(func(e *ledger.Event) { e.State = ledger.Cancelled })) }, fault.NotOnSale},
	} {
		what.happen()
		again, err := n.HoldBest(t.Context(), n.claim(1, "k"), wish)
		if err != nil || !again.Repeat || again.Hold.ID != first.Hold.ID {
			t.Errorf("%s: repeat %+v, %v", what.name, again, err)
		}
		_, err = n.HoldBest(t.Context(), n.claim(2, "new"), wish)
		wantFault(t, err, what.fresh)
	}
}

func TestHoldBestStepByStep(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"... ...", "......"}, []string{"....", ".aca"}))
	n := w.node(Options{}, Rules{})
	wish := func(q int) Wish { return Wish{Quantity: q, Category: -1, Section: -1} }
	hold := func(wish Wish) (Held, error) { return n.HoldBest(t.Context(), n.claim(1, ""), wish) }

	h, err := hold(wish(2)) // 0 1 would leave 2 alone, and so would any other pair of that row
	wantHeld(t, h, err, Together, 6, 7)
	h, err = hold(wish(3))
	wantHeld(t, h, err, Together, 0, 1, 2)
	strict := wish(5)
	strict.Adjacency, strict.Section = SameRow, 0
	_, err = hold(strict)
	wantFault(t, err, fault.NoSeatsFound)
	strict.Adjacency = SameSection
	h, err = hold(strict)
	wantHeld(t, h, err, SameSection, 3, 8, 9, 10, 11)
	accessible := wish(2)
	accessible.Accessible = 1
	h, err = hold(accessible)
	wantHeld(t, h, err, Together, 18, 19) // 17 18 would leave two orphans, 16 17 no companion's place
	nearby := wish(4)
	nearby.Section = 0 // has two left
	h, err = hold(nearby)
	wantHeld(t, h, err, Anywhere, 12, 13, 14, 15)
	h, err = hold(wish(3)) // ordinary seats first, across sections; the accessible one stays
	wantHeld(t, h, err, Anywhere, 4, 5, 16)
	h, err = hold(wish(1)) // nothing else is left
	wantHeld(t, h, err, Together, 17)
	_, err = hold(wish(1))
	wantFault(t, err, fault.NoSeatsFound)

	for _, bad := range []Wish{
		{Quantity: 0, Category: -1, Section: -1}, {Quantity: 21, Category: -1, Section: -1}, {Quantity: 1, Category: 9, Section: -1},
		{Quantity: 1, Category: -1, Section: 2}, {Quantity: 1, Category: -1, Section: -1, Accessible: 2}, {Quantity: 1, Category: -2, Section: -1},
		{Quantity: 1, Category: -1, Section: -1, Adjacency: 9},
	} {
		if _, err := hold(bad); fault.CodeOf(err) != fault.Invalid || fault.Of(err).Field == "" {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	other := n.claim(1, "")
	other.Event = 99
	_, err = n.HoldBest(t.Context(), other, wish(1))
	wantFault(t, err, fault.EventUnknown)
	_, err = n.HoldSeats(t.Context(), other, []int32{1})
	wantFault(t, err, fault.EventUnknown)
}

// Many at once: no seat is sent to the ledger twice by one node, and everyone who can be served is.
func TestHoldBestManyAtOnce(t *testing.T) {
	plan := venue.Generate(venue.GenerateOptions{Seats: 600, Seed: 3})
	w := newWorld(t, plan)
	n := w.node(Options{}, Rules{})
	var callers sync.WaitGroup
	var mu sync.Mutex
	owner := map[int32]id.ID{}
	for customer := range 320 {
		callers.Go(func() {
			h, err := n.best(id.ID(customer+1), 2)
			if err != nil {
				if code := fault.CodeOf(err); code != fault.NoSeatsFound {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, seat := range h.Hold.Seats() {
				if before, twice := owner[seat]; twice {
					t.Errorf("seat %d was held for %d and %d", seat, before, h.Hold.ID)
				}
				owner[seat] = h.Hold.ID
			}
		})
	}
	callers.Wait()
	if len(owner) != 600 {
		t.Errorf("%d of 600 seats held by 320 pairs", len(owner))
	}
	// One node claims what it sends, so looks are lost only by those for whom nothing unclaimed was left.
	if st := n.Stats(); st.Lost > 20*2 {
		t.Errorf("%d looks were lost: %+v", st.Lost, st)
	}
	for word := range n.Board(hotEvent).claimed {
		if n.Board(hotEvent).claimed[word] != 0 {
			t.Fatal("claims are left")
		}
	}
}

// Another node sells too: what was lost is looked for again.
func TestHoldBestLooksAgain(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"....", "....", "...."}))
	here, there := w.node(Options{}, Rules{}), w.node(Options{}, Rules{})
	h, err := there.best(1, 2)
	wantHeld(t, h, err, Together, 0, 1)
	h, err = here.best(2, 2) // does not know yet
	wantHeld(t, h, err, Together, 2, 3)
	if st := here.Stats(); st.Lost != 1 || st.Looks != 2 || st.Held != 1 {
		t.Fatalf("%+v", st)
	}
	for range 4 {
		if _, err := there.best(1, 2); err != nil && fault.CodeOf(err) != fault.NoSeatsFound {
			t.Fatal(err)
		}
	}
	_, err = here.best(2, 2)
	if code := fault.CodeOf(err); code != fault.NoSeatsFound {
		t.Fatalf("nothing is left: %v", err)
	}
}

// With seats lost at every look it gives up, and says so.
func TestHoldBestGivesUp(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"..", "..", "..", "..", "..", ".."}))
	n := w.node(Options{LooksMax: 3}, Rules{})
	for _, seat := range []int32{0, 2, 4, 6, 8, 10} {
		w.apply(ledger.HoldSeats{ID: w.next(), Event: hotEvent, Customer: 9, Seats: []int32{seat}})
	}
	_, err := n.best(1, 2)
	if f := fault.Of(err); f == nil || f.Code != fault.Busy || f.RetryAfter == 0 || n.Stats().Lost != 3 {
		t.Fatalf("%v, %+v", err, n.Stats())
	}
	n.Refresh(t.Context())
	_, err = n.HoldBest(t.Context(), n.claim(1, ""), Wish{Quantity: 2, Category: -1, Section: -1, Adjacency: Together})
	wantFault(t, err, fault.NoSeatsFound)
}

// C11: sold_out is said only where nothing can come back.
func TestSoldOut(t *testing.T) {
	for _, areas := range [][]venue.Area{nil, {{ID: "floor", Capacity: 3}}} {
		w := newWorld(t, rowsPlan(areas, []string{"...."}))
		n := w.node(Options{}, Rules{})
		n.do(ledger.Block{Event: hotEvent, Seats: []int32{2, 3}})
		h, err := n.best(1, 2)
		wantHeld(t, h, err, Together, 0, 1)
		order := n.do(ledger.BeginPayment{Order: w.next(), Hold: h.Hold.ID, Customer: 1, Provider: "p"}).Order
		if len(areas) > 0 {
			_, err = n.best(2, 1)
			wantFault(t, err, fault.NoSeatsFound)
			p, err := n.HoldPlaces(t.Context(), n.claim(2, ""), 0, 3)
			if err != nil || p.Hold.Area != 0 || p.Step != 0 {
				t.Fatalf("%+v, %v", p, err)
			}
			_, err = n.HoldPlaces(t.Context(), n.claim(2, ""), 0, 1)
			wantFault(t, err, fault.PlacesTaken)
			places := n.do(ledger.BeginPayment{Order: w.next(), Hold: p.Hold.ID, Customer: 2, Provider: "p"}).Order
			sell(n, places, 3)
		}
		_, err = n.best(2, 1)
		wantFault(t, err, fault.NoSeatsFound) // a hold may come back
		sell(n, order, 2)
		_, err = n.best(2, 1)
		wantFault(t, err, fault.SoldOut)
		_, before := w.ledger.figures()
		_, err = n.best(3, 1)
		wantFault(t, err, fault.SoldOut)
		if _, now := w.ledger.figures(); now != before {
			t.Errorf("a snapshot was taken twice for the same version")
		}
		n.do(ledger.Unblock{Event: hotEvent, Seats: []int32{3}})
		h, err = n.best(3, 1)
		wantHeld(t, h, err, Together, 3)
	}
}

func sell(n *node, order *ledger.Order, tickets int) {
	c := ledger.Confirm{Order: order.ID, Payment: "pay", Amount: order.Amount, Currency: order.Currency, Captured: true,
		Refund: n.w.next(), RescueHold: n.w.next()}
	for range tickets {
		c.Tickets = append(c.Tickets, n.w.next())
	}
	n.do(c)
}

func TestOrphanRule(t *testing.T) {
	plan := rowsPlan(nil, []string{"......"})
	for _, c := range []struct {
		name  string
		rules Rules
		pass  time.Duration
		code  fault.Code
		alone []int32
	}{
		{"off", Rules{FewSeats: -1}, 0, "", nil},
		{"warn", Rules{HandPicked: OrphanWarn}, 0, "", []int32{0, 3}},
		{"refuse", Rules{HandPicked: OrphanRefuse}, 0, fault.OrphanSeat, []int32{0, 3}},
		{"few seats left", Rules{HandPicked: OrphanRefuse, FewSeats: 6}, 0, "", nil},
		{"a day before the end", Rules{HandPicked: OrphanRefuse}, closes.Std().Sub(opens.Std()) - 24*time.Hour, "", nil},
		{"a day before the end, never lifted", Rules{HandPicked: OrphanRefuse, SplitReleaseBefore: -1}, closes.Std().Sub(opens.Std()) - 24*time.Hour, fault.OrphanSeat, []int32{0, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, plan)
			n := w.node(Options{}, c.rules)
			n.do(ledger.Block{Event: hotEvent, Seats: []int32{4}}) // 5 has been alone since
			w.pass(c.pass)
			h, err := n.seats(1, 2, 1)
			if c.code != "" {
				wantFault(t, err, c.code, c.alone...)
				return
			}
			wantHeld(t, h, err, Together, 1, 2)
			if !slices.Equal(h.Orphans, c.alone) {
				t.Fatalf("warned of %v, want %v", h.Orphans, c.alone)
			}
		})
	}
}

// A lapsed hold is free for best available, with nobody sweeping; while freed seats go to the waitlist it is not.
func TestExpiredAndReturnedSeats(t *testing.T) {
	for _, mode := range []ledger.ReturnsMode{ledger.ReturnsAvailable, ledger.ReturnsWaitlist} {
		w := newWorld(t, rowsPlan(nil, []string{".."}), func(e *ledger.Event) { e.Returns = mode })
		n := w.node(Options{}, Rules{})
		late := w.node(Options{}, Rules{})
		_, err := n.best(1, 2)
		if err != nil {
			t.Fatal(err)
		}
		_, err = n.best(2, 2)
		wantFault(t, err, fault.NoSeatsFound)
		w.pass(holdTTL.Std())
		if mode == ledger.ReturnsAvailable {
			h, err := n.best(2, 2)
			wantHeld(t, h, err, Together, 0, 1)
			continue
		}
		_, err = n.best(2, 2)
		wantFault(t, err, fault.NoSeatsFound)
		n.Sweep(t.Context())
		if p := n.Board(hotEvent).Picture(); p.Seat(0) != ShownHeld {
			t.Fatalf("a returned seat is shown as %d", p.Seat(0))
		}
		_, err = n.best(2, 2)
		wantFault(t, err, fault.NoSeatsFound)
		late.Board(hotEvent).doubt() // its snapshot does not say since when
		late.Refresh(t.Context())
		w.pass(ledger.ReturnedPatience.Std())
		_, err = n.seats(2, 0) // the board does not refuse what may be had
		if err != nil {
			t.Fatal(err)
		}
		late.Refresh(t.Context())
		h, err := late.best(2, 1)
		wantHeld(t, h, err, Together, 1)
	}
}

// A commit of which nobody knows: the board takes a snapshot and says no again only then.
func TestUnknownOutcome(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"...."}))
	n := w.node(Options{}, Rules{})
	w.ledger.mu.Lock()
	w.ledger.lose = 1
	w.ledger.mu.Unlock()
	_, err := n.seats(1, 0, 1)
	wantFault(t, err, fault.OutcomeUnknown)
	if n.Board(hotEvent).Fresh(w.now()) {
		t.Fatal("the board trusts itself")
	}
	_, err = n.seats(2, 1) // the ledger is asked
	wantFault(t, err, fault.SeatsTaken, 1)
	n.Refresh(t.Context())
	s, err := w.ledger.Snapshot(context.Background(), hotEvent)
	if err != nil {
		t.Fatal(err)
	}
	wantPicture(t, n.Board(hotEvent), &s)
	_, err = n.seats(2, 1)
	wantFault(t, err, fault.SeatsTaken, 1)
	if st := n.Stats(); st.BoardRefused != 1 {
		t.Fatalf("%+v", st)
	}
}

// The event's own row decides what is for sale.
func TestConfigReachesTheBoard(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{".."}, []string{".."}))
	n := w.node(Options{}, Rules{})
	n.do(w.setEvent(func(e *ledger.Event) { e.Tiers = e.Tiers[1:] }))
	if d, ok := n.Board(hotEvent).Delta(0); ok {
		t.Fatalf("a difference since before loading: %+v", d)
	}
	n.Refresh(t.Context())
	h, err := n.best(1, 2)
	wantHeld(t, h, err, Together, 2, 3)
	_, err = n.HoldBest(t.Context(), n.claim(1, ""), Wish{Quantity: 1, Category: 0, Section: -1})
	wantFault(t, err, fault.NoSeatsFound)
}

func TestLoad(t *testing.T) {
	plan := rowsPlan(nil, []string{".."})
	w := newWorld(t, plan)
	n := w.node(Options{}, Rules{})
	if err := n.Load(t.Context(), hotEvent, plan, Rules{HandPicked: OrphanRefuse}); err != nil || n.Board(hotEvent).handPicked() != OrphanRefuse {
		t.Fatalf("loaded again: %v", err)
	}
	if err := n.Load(t.Context(), 99, plan, Rules{}); err == nil || n.Board(99) != nil {
		t.Fatalf("an event that is not there was loaded: %v", err)
	}
	other := rowsPlan(nil, []string{"..."})
	if err := n.Load(t.Context(), hotEvent, other, Rules{}); err == nil {
		t.Fatal("loaded with another plan")
	}
	n.Unload(hotEvent)
	if err := n.Load(t.Context(), hotEvent, other, Rules{}); err == nil || n.Board(hotEvent) != nil {
		t.Fatalf("loaded with a plan that is not the ledger's: %v", err)
	}
	_, err := n.Picture(hotEvent)
	wantFault(t, err, fault.EventUnknown)
	_, _, err = n.Delta(hotEvent, 1)
	wantFault(t, err, fault.EventUnknown)
	_, err = n.Subscribe(hotEvent, 1)
	wantFault(t, err, fault.EventUnknown)
}
