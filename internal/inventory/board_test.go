package inventory

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// Random histories from two nodes and from outside: every board is the ledger's picture whenever it is at its version,
// what it is sure of is so, and a difference turns an old picture into the new one.
func TestBoardsFollowTheLedger(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 4))
		plan := rowsPlan([]venue.Area{{ID: "a", Capacity: 9}, {ID: "b", Capacity: 4}}, []string{"......", "... ..."}, []string{".ac.", "...."})
		w := newWorld(t, plan)
		nodes := []*node{w.node(Options{}, Rules{}), w.node(Options{}, Rules{})}
		old := map[*node]*Picture{}
		var holds []ledger.Hold
		for step := range 150 {
			n := nodes[r.IntN(2)]
			c := randomCommand(r, w, holds)
			checkSure(t, w, n, c)
			if result, err := n.batcher.Do(context.Background(), c); err == nil && result.Hold != nil {
				holds = append(holds, *result.Hold)
			}
			if r.IntN(4) == 0 {
				w.pass(time.Duration(r.IntN(200_000)) * time.Millisecond)
			}
			if r.IntN(25) == 0 {
				n.Board(hotEvent).doubt()
			}
			if r.IntN(3) > 0 {
				continue
			}
			if r.IntN(50) == 0 {
				n.do(w.setEvent(func(e *ledger.Event) { e.Returns = ledger.ReturnsMode(r.IntN(2)) }))
			}
			n.Refresh(t.Context())
			s, err := w.ledger.Snapshot(context.Background(), hotEvent)
			if err != nil {
				t.Fatal(err)
			}
			wantPicture(t, n.Board(hotEvent), &s)
			checkFree(t, seed, step, w, n.Board(hotEvent), &s)
			if before := old[n]; before != nil {
				checkDelta(t, before, n)
			}
			old[n] = n.Board(hotEvent).Picture()
		}
	}
}

func randomCommand(r *rand.Rand, w *world, holds []ledger.Hold) ledger.Command {
	var seats []int32
	for seat := range int32(20) {
		if r.IntN(10) == 0 {
			seats = append(seats, seat)
		}
	}
	customer := id.ID(1 + r.IntN(3))
	if len(holds) > 0 {
		h := holds[r.IntN(len(holds))]
		switch r.IntN(10) {
		case 0, 1:
			return ledger.Release{Hold: h.ID, Customer: h.Customer}
		case 2:
			return ledger.Extend{Hold: h.ID, Customer: h.Customer}
		case 3:
			return ledger.BeginPayment{Order: w.next(), Hold: h.ID, Customer: h.Customer}
		}
	}
	switch r.IntN(10) {
	case 0:
		return ledger.Block{Event: hotEvent, Seats: seats, WhenFree: r.IntN(2) == 0}
	case 1, 2:
		return ledger.Unblock{Event: hotEvent, Seats: seats}
	case 3:
		return ledger.Sweep{Event: hotEvent, Max: 1 + r.IntN(4)}
	case 4, 5:
		return ledger.HoldPlaces{ID: w.next(), Event: hotEvent, Customer: customer, Area: int32(r.IntN(2)), Quantity: 1 + r.IntN(4)}
	}
	return ledger.HoldSeats{ID: w.next(), Event: hotEvent, Customer: customer, Seats: seats}
}

// checkSure says that the ledger refuses whatever the board is sure of.
func checkSure(t *testing.T, w *world, n *node, c ledger.Command) {
	t.Helper()
	h, ok := c.(ledger.HoldSeats)
	if !ok {
		return
	}
	n.Refresh(t.Context()) // of changes less than 2 s old the board may be ignorant (B1)
	for _, seat := range n.Board(hotEvent).Taken(h.Seats, w.now()) {
		s, err := w.ledger.Snapshot(context.Background(), hotEvent)
		if err != nil {
			t.Fatal(err)
		}
		state := s.Seats[seat]
		if state.State != ledger.Sold && state.State != ledger.Blocked && (state.State != ledger.Held || state.Expires <= s.Now) {
			t.Fatalf("the board is sure of seat %d, which is %s until %d at %d", seat, state.State, state.Expires, s.Now)
		}
	}
}

// checkFree compares the free set with what follows from the ledger's picture.
func checkFree(t *testing.T, seed uint64, step int, w *world, b *Board, s *ledger.Snapshot) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lapse(b.now(w.now()))
	for i, seat := range s.Seats {
		want := seat.State == ledger.Available
		switch {
		case seat.State == ledger.Held && seat.Expires <= s.Now:
			want = s.Event.Returns == ledger.ReturnsAvailable
		case seat.State == ledger.Returned:
			continue // since when, a snapshot does not say
		}
		if b.free.Has(int32(i)) != want {
			t.Fatalf("seed %d, step %d: seat %d, %s until %d at %d, is free on the board: %v", seed, step, i, seat.State, seat.Expires, s.Now, !want)
		}
	}
}

// checkDelta applies a difference, as a client gets it, to an old picture.
func checkDelta(t *testing.T, before *Picture, n *node) {
	t.Helper()
	d, ok, err := n.Delta(hotEvent, before.Version)
	if !ok || err != nil {
		t.Fatalf("no difference since %d: %v", before.Version, err)
	}
	var sent struct {
		Since, Version        int64
		Available, Held, Sold []int32
		Areas                 [][2]int32
		Config                bool
	}
	if err := json.Unmarshal(d.JSON(), &sent); err != nil {
		t.Fatal(err)
	}
	got := &Picture{Packed: slices.Clone(before.Packed), Areas: slices.Clone(before.Areas)}
	for shows, seats := range [][]int32{sent.Available, sent.Held, sent.Sold} {
		for _, seat := range seats {
			shift := uint(seat&3) * 2
			got.Packed[seat>>2] = got.Packed[seat>>2]&^(3<<shift) | byte(shows)<<shift
		}
	}
	for _, a := range sent.Areas {
		got.Areas[a[0]] = a[1]
	}
	want := n.Board(hotEvent).Picture()
	if sent.Since != before.Version || sent.Version != want.Version || !slices.Equal(got.Packed, want.Packed) || !slices.Equal(got.Areas, want.Areas) {
		t.Fatalf("%d with %s is not %d", before.Version, d.JSON(), want.Version)
	}
}

// A hole in what the board hears is mended by reading what is missing, and changes that were known are not applied twice.
func TestBoardGap(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"......"}))
	here, there := w.node(Options{}, Rules{}), w.node(Options{}, Rules{})
	for _, seat := range []int32{0, 1} {
		if _, err := there.seats(1, seat); err != nil {
			t.Fatal(err)
		}
	}
	h, err := here.seats(2, 3)
	wantHeld(t, h, err, Together, 3)
	b := here.Board(hotEvent)
	if b.Version() != 1 || b.Fresh(w.now()) {
		t.Fatalf("the board took over version 4 at version %d, or trusts itself", b.Version())
	}
	select {
	case <-here.nudge:
	default:
		t.Fatal("nobody was told that the board has a gap")
	}
	_, before := w.ledger.figures()
	here.Refresh(t.Context())
	if _, after := w.ledger.figures(); after != before {
		t.Error("the whole picture was read where three changes would do: while others sell on, it is never the last one")
	}
	s, err := w.ledger.Snapshot(context.Background(), hotEvent)
	if err != nil {
		t.Fatal(err)
	}
	wantPicture(t, b, &s)
	stale := ledger.Change{Event: hotEvent, Version: 2, Seats: []ledger.SeatChange{{Index: 3, State: ledger.Sold}}}
	b.apply(&stale, s.Now, w.now(), true)
	wantPicture(t, b, &s)
	old := ledger.Snapshot{Event: s.Event, Version: s.Version - 1, Seats: make([]ledger.SeatState, 6)}
	if err := b.load(&old, w.now(), w.now()); err != nil {
		t.Fatal(err)
	}
	wantPicture(t, b, &s) // a snapshot from before is of no use
	if err := b.load(&ledger.Snapshot{Version: 99}, w.now(), w.now()); err == nil {
		t.Fatal("a snapshot of another plan was taken over")
	}
	alien := ledger.Change{Event: hotEvent, Version: s.Version + 1, Seats: []ledger.SeatChange{{Index: 6, State: ledger.Sold}}}
	b.apply(&alien, s.Now, w.now(), true)
	if b.Version() != s.Version || b.Fresh(w.now()) {
		t.Fatal("a change of a seat that is not there was taken over")
	}
}

// A board that does not trust itself takes over no change until it has a snapshot, and then those that came meanwhile.
func TestBoardDistrust(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"......"}))
	n := w.node(Options{}, Rules{})
	b := n.Board(hotEvent)
	b.doubt()
	old, err := w.ledger.Snapshot(context.Background(), hotEvent) // asked for before the change below
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.seats(1, 3); err != nil {
		t.Fatal(err)
	}
	if b.Version() != old.Version || b.wants() != wantSnapshot {
		t.Fatalf("version %d, wants %d", b.Version(), b.wants())
	}
	if err := b.load(&old, w.now(), w.now()); err != nil {
		t.Fatal(err)
	}
	if b.wants() != wantChanges {
		t.Fatalf("wants %d after the snapshot, not what it has missed", b.wants())
	}
	n.Refresh(t.Context())
	s, err := w.ledger.Snapshot(context.Background(), hotEvent)
	if err != nil {
		t.Fatal(err)
	}
	wantPicture(t, b, &s)
	if !b.Fresh(w.now()) {
		t.Fatal("it does not trust itself")
	}
}

// Of many who find nothing on a stale board one asks the ledger, and nobody stands in line to ask it again.
func TestStaleBoardIsAskedForOnce(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"...."}))
	n := w.node(Options{}, Rules{})
	if _, err := n.seats(1, 0, 1, 2, 3); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * FreshFor)
	before := n.Stats().Refreshes
	var all sync.WaitGroup
	for customer := range id.ID(60) {
		all.Go(func() {
			_, err := n.best(10+customer, 2)
			wantFault(t, err, fault.NoSeatsFound)
		})
	}
	all.Wait()
	if asked := n.Stats().Refreshes - before; asked != 1 {
		t.Errorf("the ledger was asked %d times", asked)
	}
}

// What one request is about to take, another does not find, as long as there is anything else.
func TestClaims(t *testing.T) {
	plan := venue.Generate(venue.GenerateOptions{Seats: 2000, Seed: 5})
	w := newWorld(t, plan)
	b := w.node(Options{}, Rules{}).Board(hotEvent)
	wish := Wish{Quantity: 2, Category: -1, Section: -1}
	seats, _, claimed := b.Find(wish, w.now(), nil, 0)
	if !slices.Equal(seats, claimed) {
		t.Fatalf("found %v, claimed %v", seats, claimed)
	}
	b.Unclaim(claimed)
	again, _, claimed := b.Find(wish, w.now(), nil, 0)
	if !slices.Equal(seats, again) {
		t.Fatalf("%v was given back, %v found", seats, again)
	}
	b.Unclaim(claimed)
	if elsewhere, _, claimed := b.Find(wish, w.now(), seats, 0); slices.Contains(elsewhere, seats[0]) || slices.Contains(elsewhere, seats[1]) {
		t.Fatalf("%v is to be avoided, %v found", seats, elsewhere)
	} else {
		b.Unclaim(claimed)
	}

	var finders sync.WaitGroup
	var mu sync.Mutex
	found := map[int32]bool{}
	for range 40 {
		finders.Go(func() {
			for range 20 {
				seats, _, claimed := b.Find(wish, w.now(), nil, 0)
				mu.Lock()
				for _, seat := range seats {
					if found[seat] {
						t.Errorf("seat %d was found for two", seat)
					}
					found[seat] = true
				}
				mu.Unlock()
				if !slices.Equal(seats, claimed) {
					t.Errorf("found %v, claimed %v", seats, claimed)
				}
			}
		})
	}
	finders.Wait()
	everything := make([]int32, 2000)
	for i := range everything {
		everything[i] = int32(i)
	}
	b.Claim(everything)
	if seats, step, claimed := b.Find(wish, w.now(), nil, 0); step != Together || len(seats) != 2 || len(claimed) != 0 {
		t.Fatalf("all is claimed and nothing held: found %v, claimed %v; the ledger decides", seats, claimed)
	}
}

// The bound on what a board remembers, reached.
func TestRecentIsBounded(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"......"}))
	n := w.node(Options{}, Rules{})
	b := n.Board(hotEvent)
	for k := range RecentVersionsMax + 10 {
		c := ledger.Command(ledger.Block{Event: hotEvent, Seats: []int32{2}})
		if k%2 == 1 {
			c = ledger.Unblock{Event: hotEvent, Seats: []int32{2}}
		}
		n.do(c)
	}
	last := b.Version()
	if d, ok := b.Delta(last - RecentVersionsMax); !ok || len(d.Available) != 1 || d.Version != last {
		t.Fatalf("%+v, %v", d, ok)
	}
	if _, ok := b.Delta(last - RecentVersionsMax - 1); ok {
		t.Fatal("it remembers more than it should")
	}
	if d, ok := b.Delta(last + 5); !ok || d.Version != last+5 || len(d.Available) != 0 {
		t.Fatalf("a client ahead of this node: %+v, %v", d, ok)
	}
	var r recent
	r.push(recentChange{version: 9, seats: make([]int32, RecentSeatsMax+1)})
	if r.from != 9 || len(r.list) != 0 || r.count != 0 {
		t.Fatalf("%d, %d, %d", r.from, len(r.list), r.count)
	}
}

func TestLapsesAreBounded(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{".."}))
	b := w.node(Options{}, Rules{}).Board(hotEvent)
	for k := range 5000 {
		c := ledger.Change{Event: hotEvent, Version: b.Version() + 1, Seats: []ledger.SeatChange{{State: ledger.Held, Expires: opens + 5_000_000 - ledger.Time(k)}}}
		b.apply(&c, opens, w.now(), true)
	}
	if len(b.lapses) > 4*2+1024 {
		t.Fatalf("%d lapses are remembered of two seats", len(b.lapses))
	}
}

func TestPictureFormats(t *testing.T) {
	w := newWorld(t, rowsPlan([]venue.Area{{ID: "a", Capacity: 300}}, []string{"......"}))
	n := w.node(Options{}, Rules{})
	if _, err := n.seats(1, 1, 2); err != nil {
		t.Fatal(err)
	}
	n.do(ledger.Block{Event: hotEvent, Seats: []int32{5}})
	p, err := n.Picture(hotEvent)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"event_id":"evt_0000000000007","version":3,"seat_count":6,"seats":"FAg=","areas":[300]}`
	if string(p.JSON()) != want {
		t.Errorf("JSON is %s, want %s", p.JSON(), want)
	}
	if raw, _ := base64.StdEncoding.DecodeString("FAg="); !slices.Equal(raw, p.Packed) || p.Seat(1) != ShownHeld || p.Seat(5) != ShownSold || p.Seat(0) != ShownAvailable {
		t.Errorf("packed is %x", p.Packed)
	}
	octets := "OSB\x01" + "\x00\x00\x00\x00\x00\x00\x00\x03" + "\x00\x00\x00\x06" + "\x00\x00\x00\x01" + "\x00\x00\x01\x2c" + "\x14\x08"
	if string(p.Octets()) != octets {
		t.Errorf("octets are %q, want %q", p.Octets(), octets)
	}
	if got, err := ParseOctets(p.Octets()); err != nil || got.Version != 3 || got.Seats != 6 || !slices.Equal(got.Areas, p.Areas) || !slices.Equal(got.Packed, p.Packed) {
		t.Errorf("read back %+v, %v", got, err)
	}
	if p.ETag(true) != `"3j"` || p.ETag(false) != `"3b"` {
		t.Errorf("tags %s %s", p.ETag(true), p.ETag(false))
	}
	if same, _ := n.Picture(hotEvent); same != p {
		t.Error("the picture was made twice for one version")
	}
}

func FuzzParseOctets(f *testing.F) {
	f.Add([]byte("OSB\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x06\x00\x00\x00\x01\x00\x00\x01\x2c\x14\x08"))
	f.Add([]byte("OSB\x01\x00\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, octets []byte) {
		p, err := ParseOctets(octets)
		if err != nil {
			return
		}
		for seat := range int32(p.Seats) {
			p.Seat(seat)
		}
		if again := p.Octets(); !slices.Equal(again, octets) {
			t.Fatalf("%q is read as %q", octets, again)
		}
	})
}
