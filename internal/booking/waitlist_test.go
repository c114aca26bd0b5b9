package booking

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/ledgertest"
	"onsale/internal/ledger/sqlite"
)

// A listWorld is a ledger with one event that has a waitlist, and its worker. Time passes only when it is told to.
type listWorld struct {
	tb
	clock  *ledgertest.Clock
	ids    *id.Generator
	store  ledger.Ledger
	list   *Waitlist
	meddle func(c ledger.Command) error // before each command of the worker; nil: nothing

	mu     sync.Mutex
	offers []ledger.Offer // that were made
}

// theStores are the ledgers that the waitlist is tested on.
var theStores = map[string]func(t *testing.T, clock *ledgertest.Clock) ledger.Ledger{
	"model": func(_ *testing.T, clock *ledgertest.Clock) ledger.Ledger { return ledger.NewModel(clock.Now) },
	"sqlite": func(t *testing.T, clock *ledgertest.Clock) ledger.Ledger {
		l, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "ledger.db"), sqlite.Options{Now: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		return l
	},
}

func newListWorld(t tb, store ledger.Ledger, clock *ledgertest.Clock, change func(*ledger.Event)) *listWorld {
	w := &listWorld{tb: t, clock: clock, store: store}
	w.ids = id.NewGenerator(1, clockTime(clock), 0, nil)
	e := hallEvent()
	e.Waitlist = true
	if change != nil {
		change(&e)
	}
	w.ok(ledger.SetEvent{Event: e, Layout: hallLayout()})
	w.restart()
	return w
}

// restart makes a worker that remembers nothing.
func (w *listWorld) restart() {
	w.list = NewWaitlist(WaitlistOptions{Shard: w, IDs: w.ids, Logger: quiet()})
}

// Do implements Shard, for the worker and what its customers ask of it.
func (w *listWorld) Do(ctx context.Context, c ledger.Command) (ledger.Result, error) {
	if w.meddle != nil {
		if err := w.meddle(c); err != nil {
			return ledger.Result{}, err
		}
	}
	b, err := w.store.Apply(ctx, []ledger.Command{c})
	if err != nil {
		return ledger.Result{}, err
	}
	if o, is := c.(ledger.Offer); is && b.Results[0].Fault == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.offers = append(w.offers, o)
	}
	return b.Results[0], nil
}

// Ledger implements Shard.
func (w *listWorld) Ledger() ledger.Reader { return w.store }

func (w *listWorld) apply(c ledger.Command) ledger.Result {
	w.Helper()
	b, err := w.store.Apply(context.Background(), []ledger.Command{c})
	if err != nil {
		w.Fatalf("%T: %v", c, err)
	}
	return b.Results[0]
}

func (w *listWorld) ok(c ledger.Command) ledger.Result {
	w.Helper()
	r := w.apply(c)
	if r.Fault != nil {
		w.Fatalf("%T: %v", c, r.Fault)
	}
	return r
}

func (w *listWorld) hold(customer id.ID, seats ...int32) *ledger.Hold {
	w.Helper()
	return w.ok(ledger.HoldSeats{ID: w.ids.MustNext(0), Event: theEvent, Customer: customer, Seats: seats}).Hold
}

func (w *listWorld) pay(hold id.ID) {
	w.Helper()
	h, err := w.store.Hold(context.Background(), hold)
	if err != nil {
		w.Fatalf("hold: %v", err)
	}
	o := w.ok(ledger.BeginPayment{Order: w.ids.MustNext(0), Hold: h.ID, Customer: h.Customer, Provider: "p"}).Order
	c := ledger.Confirm{Order: o.ID, Payment: "pay", Amount: o.Amount, Currency: o.Currency, Captured: true}
	for range h.Lines {
		c.Tickets = append(c.Tickets, w.ids.MustNext(0))
	}
	w.ok(c)
}

// wish puts a wish for so many seats or places of categories on the list.
func (w *listWorld) wish(customer id.ID, quantity int, categories ...int16) ledger.Wish {
	w.Helper()
	r, err := w.list.Add(context.Background(), WishRequest{Event: theEvent, Customer: customer, Quantity: quantity, Categories: categories, Position: -1})
	if err != nil {
		w.Fatalf("a wish: %v", err)
	}
	return r
}

func (w *listWorld) serve() Served {
	w.Helper()
	done, err := w.list.Serve(context.Background(), theEvent)
	if err != nil {
		w.Fatalf("serving: %v", err)
	}
	return done
}

// pass lets time go by, and expired holds end.
func (w *listWorld) pass(d ledger.Duration) {
	w.Helper()
	w.clock.Advance(d)
	w.ok(ledger.Sweep{})
}

func (w *listWorld) now(wish ledger.Wish) ledger.Wish {
	w.Helper()
	r, err := w.store.Wish(context.Background(), wish.ID)
	if err != nil {
		w.Fatalf("wish: %v", err)
	}
	return r
}

func (w *listWorld) wantWish(wish ledger.Wish, state ledger.WishState) ledger.Wish {
	w.Helper()
	r := w.now(wish)
	if r.State != state {
		w.Fatalf("the wish is %s, want %s", r.State, state)
	}
	return r
}

func (w *listWorld) snapshot() ledger.Snapshot {
	w.Helper()
	s, err := w.store.Snapshot(context.Background(), theEvent)
	if err != nil {
		w.Fatalf("snapshot: %v", err)
	}
	return s
}

func (w *listWorld) wantSeat(seat int32, state ledger.Availability) {
	w.Helper()
	if got := w.snapshot().Seats[seat].State; got != state {
		w.Fatalf("seat %d is %s, want %s", seat, got, state)
	}
}

func (w *listWorld) wantReturns(mode ledger.ReturnsMode) {
	w.Helper()
	if got := w.snapshot().Event.Returns; got != mode {
		w.Fatalf("returns %d, want %d", got, mode)
	}
}

// onStores runs a test on each ledger.
func onStores(t *testing.T, change func(*ledger.Event), test func(w *listWorld)) {
	for name, open := range theStores {
		t.Run(name, func(t *testing.T) {
			clock := ledgertest.NewClock(1_800_000_000_000)
			store := open(t, clock)
			defer func() {
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			}()
			test(newListWorld(t, store, clock, change))
		})
	}
}

// The whole way of a seat: its hold expires, it is offered, not taken, passed on, bought; and when nobody waits any more it
// goes back to the sale at once.
func TestWhatComesBackIsOfferedAndPassedOn(t *testing.T) {
	onStores(t, nil, func(w *listWorld) {
		w.hold(bob, 0, 1, 2, 3)
		second := w.hold(bob, 4, 5, 6, 7)
		first, next := w.wish(alice, 1, 0), w.wish(carol, 1, 0)
		if done := w.serve(); !done.Turned || done.Offered != 0 {
			t.Fatalf("the first round: %+v", done)
		}
		w.wantReturns(ledger.ReturnsWaitlist)
		w.pay(second.ID)
		w.pass(10 * minute)
		w.wantSeat(0, ledger.Returned)
		done := w.serve()
		if done.Offered != 2 || done.Released != 2 {
			t.Fatalf("four seats for two who wait: %+v", done)
		}
		w.wantSeat(0, ledger.Held)
		w.wantSeat(2, ledger.Available)
		standing, err := w.list.Mine(context.Background(), theEvent, alice)
		if err != nil || standing.Hold == nil || standing.Hold.Offer != first.ID || standing.Hold.Expires != w.clock.Now()+ledger.Time(OfferTTL) {
			t.Fatalf("alice's offer: %+v, %v", standing, err)
		}
		if _, err := w.list.Withdraw(context.Background(), theEvent, alice); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("withdrawn while it is offered: %v", err)
		}
		w.hold(bob, 2, 3)
		w.pay(w.wantWish(first, ledger.WishOffered).Hold)
		w.serve()
		w.wantWish(first, ledger.WishTaken)
		w.wantReturns(ledger.ReturnsAvailable) // nobody waits
		third := w.wish(alice, 1, 0)
		w.serve()
		w.wantReturns(ledger.ReturnsWaitlist)
		w.pass(15 * minute) // carol lets hers lapse, and so does bob
		w.serve()
		w.wantWish(third, ledger.WishOffered) // she has had none before
		if r := w.wantWish(next, ledger.WishOffered); r.Offers != 2 {
			t.Errorf("carol has had %d offers", r.Offers)
		}
		w.pay(w.now(third).Hold)
		for range ledger.WishOffersMax { // carol wants none
			w.pass(15 * minute)
			w.serve()
		}
		w.wantWish(next, ledger.WishEnded)
		w.serve()
		w.wantReturns(ledger.ReturnsAvailable)
		for i, seat := range w.snapshot().Seats[:4] {
			if seat.State != ledger.Available && seat.State != ledger.Sold {
				t.Errorf("seat %d is %s", i, seat.State)
			}
		}
		if _, err := w.list.Add(context.Background(), WishRequest{Event: theEvent, Customer: carol, Quantity: 1, Position: -1}); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("a fourth offer could be had: %v", err)
		}
	})
}

func TestWhoStoodInTheLineGoesBeforeWhoCameLater(t *testing.T) {
	onStores(t, nil, func(w *listWorld) {
		h := w.hold(bob, 0, 1, 2, 3)
		w.hold(bob, 4, 5, 6, 7)
		late := w.wish(alice, 1, 0)
		r, err := w.list.Add(context.Background(), WishRequest{Event: theEvent, Customer: carol, Quantity: 1, Categories: []int16{0}, Position: 1 << 39})
		if err != nil {
			t.Fatal(err)
		}
		w.serve()
		w.ok(ledger.Release{Hold: h.ID, Customer: bob})
		w.serve()
		w.wantWish(r, ledger.WishOffered)
		w.wantWish(late, ledger.WishOffered)
		if w.offers[0].Wish != r.ID {
			t.Error("who came later was offered the better seat")
		}
	})
}

// free are the seats that anybody may hold.
func (w *listWorld) free() (seats []int32) {
	for i, s := range w.snapshot().Seats {
		if s.State == ledger.Available {
			seats = append(seats, int32(i))
		}
	}
	return seats
}

func clockTime(c *ledgertest.Clock) func() time.Time {
	return func() time.Time { return c.Now().Std() }
}

func TestFreedSeatsGoToTheSaleWhileTheyCanBeBought(t *testing.T) {
	onStores(t, nil, func(w *listWorld) {
		h := w.hold(bob, 0, 1)
		w.wish(alice, 2, 0) // there are six more
		if done := w.serve(); done.Turned {
			t.Error("freed seats are kept for the list though alice could buy")
		}
		w.ok(ledger.Release{Hold: h.ID, Customer: bob})
		w.wantSeat(0, ledger.Available)
		r, err := w.list.Add(context.Background(), WishRequest{Event: theEvent, Customer: carol, Quantity: 5, Together: true, Position: -1})
		if err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(second)
		if done := w.serve(); !done.Turned {
			t.Error("carol finds nothing, and nothing is kept for her")
		}
		if _, err := w.list.Withdraw(context.Background(), theEvent, carol); err != nil {
			t.Fatal(err)
		}
		w.wantWish(r, ledger.WishWithdrawn)
		if _, err := w.list.Withdraw(context.Background(), theEvent, alice); err != nil {
			t.Fatal(err)
		}
		w.serve()
		w.wantReturns(ledger.ReturnsAvailable)
	})
}

func TestWhoIsAtTheirLimitIsPassedOver(t *testing.T) {
	limit := func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 4}} }
	onStores(t, limit, func(w *listWorld) {
		w.hold(alice, 0, 1, 2, 3)
		h := w.hold(bob, 4, 5, 6, 7)
		full, next := w.wish(alice, 1, 0), w.wish(carol, 1, 0)
		w.serve()
		w.ok(ledger.Release{Hold: h.ID, Customer: bob})
		if done := w.serve(); done.Offered != 1 || done.Released != 3 {
			t.Errorf("%+v", done)
		}
		w.wantWish(full, ledger.WishWaiting)
		w.wantWish(next, ledger.WishOffered)
	})
}

func TestPlacesOfAnAreaAreOffered(t *testing.T) {
	onStores(t, nil, func(w *listWorld) {
		h := w.ok(ledger.HoldPlaces{ID: w.ids.MustNext(0), Event: theEvent, Customer: bob, Area: areaPaid, Quantity: 3}).Hold
		w.ok(ledger.HoldPlaces{ID: w.ids.MustNext(0), Event: theEvent, Customer: bob, Area: areaPaid, Quantity: 1})
		two := w.wish(alice, 2, 2)
		w.serve()
		w.wantReturns(ledger.ReturnsWaitlist)
		w.ok(ledger.Release{Hold: h.ID, Customer: bob})
		if done := w.serve(); done.Offered != 1 || done.Released != 1 {
			t.Errorf("%+v", done)
		}
		w.wantWish(two, ledger.WishOffered)
		if a := w.snapshot().Areas[areaPaid]; a.Returned != 0 || a.Free() != 1 || a.Held != 3 {
			t.Errorf("the area: %+v", a)
		}
	})
}

func TestNothingIsOfferedWhileTheSalePausesOrIsOver(t *testing.T) {
	onStores(t, nil, func(w *listWorld) {
		h := w.hold(bob, 0, 1, 2, 3)
		w.hold(bob, 4, 5, 6, 7)
		wish := w.wish(alice, 1, 0)
		w.serve()
		set := func(version int64, change func(*ledger.Event)) {
			e := w.snapshot().Event
			e.Version = version
			change(&e)
			w.ok(ledger.SetEvent{Event: e})
		}
		set(2, func(e *ledger.Event) { e.State = ledger.Paused })
		w.ok(ledger.Release{Hold: h.ID, Customer: bob})
		w.serve()
		w.wantWish(wish, ledger.WishWaiting)
		w.wantSeat(0, ledger.Returned)
		set(3, func(e *ledger.Event) { e.State = ledger.OnSale })
		w.serve()
		w.wantWish(wish, ledger.WishOffered)
		next := w.wish(carol, 1, 0)
		set(4, func(e *ledger.Event) { e.State = ledger.Ended })
		w.serve()
		w.wantWish(next, ledger.WishEnded)
		w.wantWish(wish, ledger.WishOffered) // they may still pay
		w.pass(OfferTTL)
		w.serve()
		w.wantWish(wish, ledger.WishEnded)
	})
}

// Nothing is read again of an event to which nothing has happened, but for what a worker must always look at.
func TestAQuietEventIsLeftAlone(t *testing.T) {
	onStores(t, nil, func(w *listWorld) {
		w.hold(bob, 0, 1, 2, 3)
		w.hold(bob, 4, 5, 6, 7)
		w.wish(alice, 1, 0)
		w.serve()
		commands := 0
		w.meddle = func(ledger.Command) error { commands++; return nil }
		for range 5 {
			w.serve()
		}
		if commands != 0 {
			t.Errorf("%d commands for nothing", commands)
		}
	})
}

var errCrash = errors.New("the process ended")

// A crash before or after any command of the worker leaves nothing that the next round does not mend.
func TestACrashBetweenTwoStepsIsMended(t *testing.T) {
	for _, after := range []bool{false, true} {
		for crash := 1; ; crash++ {
			if crash > 20 {
				t.Fatal("the worker never comes to its end without a crash")
			}
			crashed := false
			t.Run(fmt.Sprint(crash, after), func(t *testing.T) {
				clock := ledgertest.NewClock(1_800_000_000_000)
				crashed = crashOnce(newListWorld(t, ledger.NewModel(clock.Now), clock, nil), crash, after)
			})
			if !crashed {
				break
			}
		}
	}
}

// crashOnce ends the worker at its so-many-th command, and says whether it came to that.
func crashOnce(w *listWorld, crash int, after bool) (crashed bool) {
	ctx := context.Background()
	busy := w.hold(bob, 0, 1, 2, 3)
	w.hold(bob, 4, 5, 6, 7)
	wishes := []ledger.Wish{w.wish(alice, 2, 0), w.wish(carol, 1, 0)}
	n := 0
	w.meddle = func(c ledger.Command) error {
		if n++; n != crash {
			return nil
		}
		crashed = true
		if after {
			w.apply(c)
		}
		return errCrash
	}
	round := func() {
		if _, err := w.list.Serve(ctx, theEvent); err != nil {
			if !errors.Is(err, errCrash) {
				w.Fatalf("serving: %v", err)
			}
			w.restart()
			w.serve()
		}
	}
	round() // turns to the list
	w.ok(ledger.Release{Hold: busy.ID, Customer: bob})
	round() // offers
	holds := map[id.ID]bool{}
	for _, wish := range wishes {
		h, err := w.store.Hold(ctx, w.wantWish(wish, ledger.WishOffered).Hold)
		if err != nil || !h.Live(w.clock.Now()) || len(h.Lines) != wish.Quantity || holds[h.ID] {
			w.Fatalf("the offer's hold: %+v, %v", h, err)
		}
		holds[h.ID] = true
	}
	w.pay(w.now(wishes[0]).Hold)
	w.pay(w.now(wishes[1]).Hold)
	round() // nobody waits any more
	w.wantWish(wishes[0], ledger.WishTaken)
	w.wantWish(wishes[1], ledger.WishTaken)
	w.wantReturns(ledger.ReturnsAvailable)
	for i, s := range w.snapshot().Seats[:4] {
		if s.State != ledger.Sold && s.State != ledger.Available {
			w.Fatalf("seat %d is %s", i, s.State)
		}
	}
	return crashed
}

// Whatever happens: what is offered fits, nobody who waited before would have had it, nothing stays returned while anybody may
// buy, and nobody has two offers. Two workers that serve at once change nothing of that.
func TestRandomHistoriesOfAWaitlist(t *testing.T) {
	offered, checks := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		clock := ledgertest.NewClock(1_800_000_000_000)
		w := newListWorld(rt, ledger.NewModel(clock.Now), clock, nil)
		other := NewWaitlist(WaitlistOptions{Shard: w, IDs: w.ids, Logger: quiet()})
		w.meddle = func(c ledger.Command) error {
			if o, is := c.(ledger.Offer); is {
				w.fair(o)
				checks++
			}
			return nil
		}
		customers := []id.ID{alice, bob, carol, 104, 105, 106}
		customer := func() id.ID { return rapid.SampledFrom(customers).Draw(rt, "customer") }
		holds := []*ledger.Hold{w.hold(bob, 0, 1, 2, 3), w.hold(bob, 4, 5, 6, 7)} // nothing is left, and somebody waits
		w.wish(alice, 2, 0)
		w.serve()
		w.ok(ledger.Release{Hold: holds[0].ID, Customer: bob})
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "kind") {
			case 0, 1:
				if free := w.free(); len(free) > 0 {
					n := rapid.IntRange(1, min(4, len(free))).Draw(rt, "seats")
					holds = append(holds, w.hold(customer(), free[:n]...))
				}
			case 2:
				if r := w.apply(ledger.HoldPlaces{
					ID: w.ids.MustNext(0), Event: theEvent, Customer: customer(), Area: areaPaid, Quantity: rapid.IntRange(1, 3).Draw(rt, "places"),
				}); r.Fault == nil {
					holds = append(holds, r.Hold)
				}
			case 3, 4:
				if len(holds) > 0 {
					h := rapid.SampledFrom(holds).Draw(rt, "hold")
					w.apply(ledger.Release{Hold: h.ID, Customer: h.Customer})
				}
			case 5, 6:
				r := WishRequest{
					Event: theEvent, Customer: customer(), Quantity: rapid.IntRange(1, 3).Draw(rt, "quantity"), Together: rapid.Bool().Draw(rt, "together"),
					Least: 1, Position: rapid.Int64Range(-1, 5).Draw(rt, "position"),
				}
				r.Categories = rapid.SampledFrom([][]int16{nil, {0}, {2}}).Draw(rt, "categories")
				if _, err := w.list.Add(context.Background(), r); err != nil && fault.CodeOf(err) != fault.Conflict {
					rt.Fatalf("a wish: %v", err)
				}
			case 7:
				w.pass(rapid.SampledFrom([]ledger.Duration{second, minute, 10 * minute, 15 * minute}).Draw(rt, "time"))
			case 8:
				c := customer()
				if s, err := w.list.Mine(context.Background(), theEvent, c); err == nil && s.Hold != nil && rapid.Bool().Draw(rt, "pay") {
					w.pay(s.Hold.ID)
				} else if err == nil && s.Hold != nil {
					w.apply(ledger.Release{Hold: s.Hold.ID, Customer: c})
				}
			case 9:
				if rapid.Bool().Draw(rt, "both") {
					if _, err := other.Serve(context.Background(), theEvent); err != nil {
						rt.Fatalf("the other worker: %v", err)
					}
				}
				w.serve()
				w.nothingWaits()
			}
		}
		w.serve()
		w.nothingWaits()
		offered += len(w.offers)
	})
	if offered == 0 || checks < offered {
		t.Errorf("%d offers, %d looked at: the test says nothing", offered, checks)
	}
}

// fair is wrong where somebody who goes first waits for what an offer is of.
func (w *listWorld) fair(o ledger.Offer) {
	w.Helper()
	ctx := context.Background()
	to, err := w.store.Wish(ctx, o.Wish)
	if err != nil {
		w.Fatalf("wish: %v", err)
	}
	back, err := w.store.Returned(ctx, theEvent, 100)
	if err != nil {
		w.Fatalf("returned: %v", err)
	}
	e := w.snapshot().Event
	if to.State != ledger.WishWaiting {
		return // another worker was first; the ledger refuses it
	}
	p := pick{seats: slices.Sorted(slices.Values(o.Seats)), area: o.Area, quantity: o.Quantity}
	if why := fits(&e, hallLayout(), &to, back, p); why != "" {
		return // what was read is old; the ledger refuses it
	}
	waiting, err := w.store.Wishes(ctx, theEvent, ledger.WishWaiting, ledger.WishCursor{}, 100)
	if err != nil {
		w.Fatalf("wishes: %v", err)
	}
	of := ledger.ReturnedPlaces{Seats: p.seats, Areas: make([]int32, len(back.Areas))}
	if len(p.seats) == 0 {
		of.Areas[p.area] = int32(p.quantity)
	}
	for _, before := range waiting {
		if before.Cursor().Compare(to.Cursor()) >= 0 {
			break
		}
		if _, wants := newStock(&e, hallLayout(), of).match(&before); wants {
			w.Fatalf("%+v is offered to %+v, before %+v", p, to, before)
		}
	}
}

// nothingWaits is wrong where, after a round, a place waits on the list.
func (w *listWorld) nothingWaits() {
	w.Helper()
	back, err := w.store.Returned(context.Background(), theEvent, 100)
	if err != nil {
		w.Fatalf("returned: %v", err)
	}
	if len(back.Seats) > 0 || slices.Max(back.Areas) > 0 {
		w.Fatalf("after a round %+v wait on the list", back)
	}
	offers := map[id.ID]int{}
	for _, o := range w.offers {
		if h, err := w.store.Hold(context.Background(), o.Hold); err == nil && h.Live(w.clock.Now()) {
			if offers[h.Customer]++; offers[h.Customer] > 1 {
				w.Fatalf("customer %d has two offers", h.Customer)
			}
		}
	}
}
