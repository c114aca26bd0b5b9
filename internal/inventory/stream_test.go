package inventory

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// take is the next frame, "" where none waits, "end" where the stream has ended.
func take(s *Subscription) string {
	select {
	case f, ok := <-s.Frames():
		if !ok {
			return "end"
		}
		return string(f)
	default:
		return ""
	}
}

func wantFrames(t testing.TB, s *Subscription, want ...string) {
	t.Helper()
	for _, w := range append(want, "") {
		if got := take(s); got != w {
			t.Fatalf("frame %q, want %q", got, w)
		}
	}
}

func TestStream(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"......"}))
	n := w.node(Options{}, Rules{})
	first, err := n.Subscribe(hotEvent, -1)
	if err != nil {
		t.Fatal(err)
	}
	wantFrames(t, first, "event: version\ndata: {\"version\":1}\n\n")
	for _, seat := range []int32{4, 1} {
		if _, err := n.seats(1, seat); err != nil {
			t.Fatal(err)
		}
	}
	wantFrames(t, first) // gathered, not sent one by one
	n.Flush()
	n.Flush()
	wantFrames(t, first, "event: seats\nid: 3\ndata: {\"since\":1,\"version\":3,\"held\":[1,4]}\n\n")

	// Another client comes back with what it had, while something is not flushed yet: nothing is missed.
	n.do(ledger.Block{Event: hotEvent, Seats: []int32{0}})
	second, err := n.Subscribe(hotEvent, 2)
	if err != nil {
		t.Fatal(err)
	}
	wantFrames(t, second, "event: seats\nid: 4\ndata: {\"since\":2,\"version\":4,\"held\":[1],\"sold\":[0]}\n\n")
	n.Flush()
	both := "event: seats\nid: 4\ndata: {\"since\":3,\"version\":4,\"sold\":[0]}\n\n"
	wantFrames(t, first, both)
	wantFrames(t, second, both)

	// Too long ago for a difference: a snapshot is needed.
	third, err := n.Subscribe(hotEvent, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantFrames(t, third, "event: reset\ndata: {\"version\":4}\n\n")
	n.Beat()
	wantFrames(t, third, "event: version\ndata: {\"version\":4}\n\n")

	// What nobody listened to is not sent later.
	for _, s := range []*Subscription{first, second, third} {
		s.Close()
		s.Close()
	}
	n.do(ledger.Unblock{Event: hotEvent, Seats: []int32{0}})
	n.Flush()
	fourth, err := n.Subscribe(hotEvent, 5)
	if err != nil {
		t.Fatal(err)
	}
	n.Flush()
	wantFrames(t, fourth, "event: version\ndata: {\"version\":5}\n\n")
	n.do(w.setEvent(func(e *ledger.Event) { e.State = ledger.Paused }))
	n.Flush()
	wantFrames(t, fourth, "event: seats\nid: 6\ndata: {\"since\":5,\"version\":6,\"config\":true}\n\n")
	n.Unload(hotEvent)
	if got := take(fourth); got != "end" || n.Stats().Subscribers != 0 {
		t.Fatalf("%q after unloading, %+v", got, n.Stats())
	}
}

// B3: who does not keep up is dropped and holds nobody back. I13: both bounds, reached.
func TestStreamBounds(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"......"}))
	n := w.node(Options{SubscribersMax: 2}, Rules{})
	slow, err := n.Subscribe(hotEvent, -1)
	if err != nil {
		t.Fatal(err)
	}
	quick, err := n.Subscribe(hotEvent, -1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Subscribe(hotEvent, -1)
	wantFault(t, err, fault.Busy)
	for range FramesMax + 5 {
		n.Beat()
		for take(quick) != "" {
		}
	}
	frames := 0
	for got := take(slow); got != "end"; got = take(slow) {
		if frames++; got == "" {
			t.Fatal("the slow one was not dropped")
		}
	}
	if frames != FramesMax || !slow.Slow() || quick.Slow() || n.Stats().SlowDropped != 1 || n.Stats().Subscribers != 1 {
		t.Fatalf("%d frames, slow %v %v, %+v", frames, slow.Slow(), quick.Slow(), n.Stats())
	}
	again, err := n.Subscribe(hotEvent, 1) // it comes back
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// The background work on a clock of its own: gathered frames, heartbeat, others' changes, prompt release.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rowsPlan(nil, []string{"......"}), func(e *ledger.Event) { e.SaleOpens = 0; e.HoldTTL = 20_000 })
		w.ledger.Ledger = ledger.NewModel(func() ledger.Time { return ledger.TimeOf(time.Now()) })
		event := ledger.Event{ID: hotEvent, Version: 1, State: ledger.OnSale, PlanHash: w.plan.Hash(), SaleCloses: closes, HoldTTL: 20_000,
			SeatsPerHoldMax: 9, Currency: "EUR", Tiers: []ledger.Tier{{Category: 0, Name: "t", Face: 1}}}
		w.apply(ledger.SetEvent{Event: event, Layout: ledgerLayout(w.plan)})
		batcher := ledger.NewBatcher(w.ledger, ledger.BatcherOptions{Logger: w.quiet})
		n := &node{Service: New(batcher, Options{Logger: w.quiet}), batcher: batcher, w: w}
		if err := n.Load(t.Context(), hotEvent, w.plan, Rules{}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { n.Run(ctx) })
		s, err := n.Subscribe(hotEvent, 1)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		frame := func(kind string) (string, time.Duration) {
			for {
				f := string(<-s.Frames())
				if f == "" || strings.HasPrefix(f, "event: "+kind) {
					return f, time.Since(began)
				}
			}
		}
		if _, at := frame("version"); at != 0 {
			t.Errorf("the first frame came after %s", at)
		}
		if _, at := frame("version"); at != time.Second {
			t.Errorf("the heartbeat came after %s", at)
		}
		h, err := n.best(1, 2)
		if err != nil {
			t.Fatal(err)
		}
		if f, at := frame("seats"); at > 1200*time.Millisecond || !strings.Contains(f, `"held":[0,1]`) {
			t.Errorf("%q after %s", f, at)
		}
		w.apply(ledger.HoldSeats{ID: w.next(), Event: hotEvent, Customer: 5, Seats: []int32{5}})
		if f, at := frame("seats"); at > 2200*time.Millisecond || !strings.Contains(f, `"held":[5]`) {
			t.Errorf("another node's change: %q after %s", f, at)
		}
		ends := h.Hold.Expires.Std().Sub(began)
		if f, at := frame("seats"); at < ends || at > ends+300*time.Millisecond || !strings.Contains(f, `"available":[0,1]`) {
			t.Errorf("released: %q after %s, the hold ended after %s", f, at, ends)
		}
		stop()
		run.Wait()
		if f, _ := frame("none"); f != "" {
			t.Errorf("the stream goes on: %q", f)
		}
		n.Close()
		if err := batcher.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Nothing's correctness depends on either release path: with both off, expired seats sell.
func TestRunWithoutReleasing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rowsPlan(nil, []string{".."}))
		n := w.node(Options{NoPromptRelease: true, NoSweep: true}, Rules{})
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { n.Run(ctx) })
		for customer := range 5 {
			h, err := n.best(id.ID(customer+1), 2)
			wantHeld(t, h, err, Together, 0, 1)
			_, err = n.best(99, 2)
			wantFault(t, err, fault.NoSeatsFound)
			w.pass(holdTTL.Std())
		}
		if st := n.Stats(); st.Sweeps != 0 {
			t.Errorf("%+v", st)
		}
		stop()
		run.Wait()
	})
}

// Started and stopped twice, with buyers, clients and loading all at once; run it with -race.
func TestServiceUnderStress(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := newWorld(t, rowsPlan(nil, []string{"....................", "...................."}), func(e *ledger.Event) { e.HoldTTL = 50 })
	batcher := ledger.NewBatcher(w.ledger, ledger.BatcherOptions{Logger: w.quiet})
	n := &node{Service: New(batcher, Options{Now: w.now, Logger: w.quiet, RefreshEvery: time.Millisecond, GatherEvery: time.Millisecond,
		BeatEvery: time.Millisecond, SweepEvery: time.Millisecond, ReleaseEvery: time.Millisecond}), batcher: batcher, w: w}
	for round := range 2 {
		ctx, stop := context.WithCancel(context.Background())
		var run, buyers sync.WaitGroup
		run.Go(func() { n.Run(ctx) })
		if err := n.Load(ctx, hotEvent, w.plan, Rules{}); err != nil {
			t.Fatal(err)
		}
		for buyer := range 16 {
			buyers.Go(func() {
				for k := range 40 {
					s, err := n.Subscribe(hotEvent, int64(k))
					if err != nil && fault.CodeOf(err) != fault.EventUnknown {
						t.Error(err)
					}
					if k%2 == 0 {
						_, err = n.best(id.ID(buyer+1), 1+k%3)
					} else {
						_, err = n.seats(id.ID(buyer+1), int32(buyer), int32(k))
					}
					switch fault.CodeOf(err) {
					case "", fault.NoSeatsFound, fault.SeatsTaken, fault.Invalid, fault.EventUnknown, fault.Busy:
					default:
						t.Error(err)
					}
					w.pass(5 * time.Millisecond)
					if s != nil && k%3 > 0 {
						take(s)
						s.Close()
					}
					if k == 20 && buyer == 0 && round == 1 {
						n.Unload(hotEvent)
						if err := n.Load(ctx, hotEvent, w.plan, Rules{}); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		buyers.Wait()
		stop()
		run.Wait()
		if st := n.Stats(); st.Subscribers != 0 {
			t.Errorf("after stopping: %+v", st)
		}
	}
	n.Refresh(context.Background())
	s, err := w.ledger.Snapshot(context.Background(), hotEvent)
	if err != nil {
		t.Fatal(err)
	}
	wantPicture(t, n.Board(hotEvent), &s)
	n.Close()
	if err := batcher.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// BenchmarkFlush is what 10,000 clients of one event cost in each tenth of a second of a rush.
func BenchmarkFlush(b *testing.B) {
	w := newWorld(b, rowsPlan(nil, []string{strings.Repeat(".", 200)}))
	n := w.node(Options{}, Rules{})
	var clients []*Subscription
	for range 10_000 {
		s, err := n.Subscribe(hotEvent, -1)
		if err != nil {
			b.Fatal(fmt.Errorf("subscribe: %w", err))
		}
		take(s)
		clients = append(clients, s)
	}
	board := n.Board(hotEvent)
	for b.Loop() {
		c := ledger.Change{Event: hotEvent, Version: board.Version() + 1}
		for seat := range int32(100) {
			c.Seats = append(c.Seats, ledger.SeatChange{Index: seat, State: ledger.Sold})
		}
		board.apply(&c, opens, w.now(), true)
		n.Flush()
		b.StopTimer()
		for _, s := range clients {
			take(s)
		}
		b.StartTimer()
	}
}
