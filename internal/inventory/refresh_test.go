package inventory

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// I13: while the ledger hangs when it is read, nobody waits for it without bound, and once it answers all is well.
func TestReadsThatHangAreGivenUp(t *testing.T) {
	for name, distrust := range map[string]bool{"changes": false, "snapshot": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, rowsPlan(nil, []string{"...."}))
				n := w.node(Options{}, Rules{})
				if _, err := n.seats(1, 0, 1, 2, 3); err != nil {
					t.Fatal(err)
				}
				b := n.Board(hotEvent)
				if distrust {
					b.doubt()
				}
				w.pass(10 * FreshFor)
				w.ledger.setHang(true)
				start := time.Now()
				var all sync.WaitGroup
				all.Go(func() { n.Refresh(t.Context()) })
				synctest.Wait() // it holds the board's slot
				for customer := range id.ID(60) {
					all.Go(func() {
						_, err := n.best(10+customer, 2)
						wantFault(t, err, fault.NoSeatsFound)
						if took := time.Since(start); took >= FreshFor {
							t.Errorf("a buyer waited %s for a read that hangs", took)
						}
					})
				}
				gone, leave := context.WithCancel(t.Context())
				leave()
				if err := n.refreshStale(gone, b); err == nil || time.Since(start) > 0 {
					t.Errorf("who has gone away waited %s, %v", time.Since(start), err)
				}
				all.Wait()
				if took := time.Since(start); took > SnapshotMax {
					t.Errorf("the background waited %s", took)
				}
				asked := time.Now()
				n.release(t.Context(), &releaser{})
				if took := time.Since(asked); took >= FreshFor {
					t.Errorf("the releaser waited %s", took)
				}
				w.ledger.setHang(false)
				n.Refresh(t.Context())
				if !b.Fresh(w.now()) {
					t.Error("the board does not recover")
				}
			})
		})
	}
}

// A fail-over has lost commits that boards and clients have heard of: the board takes what is so at once, says no for
// nothing that was lost, and sends its clients to the new picture.
func TestALedgerThatFellBack(t *testing.T) {
	plan := rowsPlan(nil, []string{"......"})
	w := newWorld(t, plan)
	n := w.node(Options{}, Rules{})
	b := n.Board(hotEvent)
	for seat := range int32(4) {
		if _, err := n.seats(1, seat); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := n.Subscribe(hotEvent, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	take(stream)
	lost := b.Version()
	other := newWorld(t, plan) // the standby, which has only one of them
	other.apply(ledger.HoldSeats{ID: other.next(), Event: hotEvent, Customer: 1, Seats: []int32{0}})
	w.ledger.failOver(other.ledger.Ledger)
	wantLedger := func() {
		t.Helper()
		s, err := w.ledger.Snapshot(t.Context(), hotEvent)
		if err != nil {
			t.Fatal(err)
		}
		wantPicture(t, b, &s)
	}

	n.Refresh(t.Context())
	wantLedger()
	if b.Version() >= lost || !b.Fresh(w.now()) {
		t.Errorf("the board is at %d of %d, or does not trust itself", b.Version(), lost)
	}
	if d, ok, err := n.Delta(hotEvent, lost); ok || err != nil || d.Version != b.Version() {
		t.Errorf("a client with what was lost is told %+v, %v", d, err)
	}
	n.Flush()
	if got := take(stream); got != string(resetFrame(b.Version())) {
		t.Errorf("the stream says %q", got)
	}
	h, err := n.seats(2, 1)
	wantHeld(t, h, err, Together, 1)
	wantLedger()
	n.Flush()
	if got := take(stream); got != string(seatsFrame(&Delta{Since: 2, Version: 3, Held: []int32{1}})) {
		t.Errorf("the stream goes on with %q", got)
	}

	// An outcome that is unknown may be of a commit that is lost, too.
	b.doubt()
	other = newWorld(t, plan)
	w.ledger.failOver(other.ledger.Ledger)
	n.Refresh(t.Context())
	wantLedger()
}

// A hold that no Sweep ends is tried once a second, not ten times; those that one ends are still ended promptly.
func TestTheReleaserHasABrake(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"......"}))
	n := w.node(Options{}, Rules{})
	var r releaser
	ticks := func(count int) (sweeps int64) {
		before := n.Stats().Sweeps
		for range count {
			n.release(t.Context(), &r)
			w.pass(100 * time.Millisecond)
		}
		return n.Stats().Sweeps - before
	}
	w.ledger.left = ledger.TimeOf(w.now()) - 5
	if got := ticks(100); got < 9 || got > 11 {
		t.Errorf("%d sweeps in 10 s for a hold that stays", got)
	}
	w.ledger.left = 0
	if got := ticks(20); got > 2 {
		t.Errorf("%d sweeps for nothing", got)
	}
	for seat := range int32(5) { // they end one after the other, a tick apart
		if _, err := n.seats(1, seat); err != nil {
			t.Fatal(err)
		}
		w.pass(100 * time.Millisecond)
	}
	w.pass(holdTTL.Std() - 600*time.Millisecond)
	ticks(18) // it learns of them, and then ends each in its tick
	s, err := w.ledger.Snapshot(t.Context(), hotEvent)
	if err != nil {
		t.Fatal(err)
	}
	for seat, state := range s.Seats {
		if state.State != ledger.Available {
			t.Errorf("seat %d, whose hold ended a while ago, is %s", seat, state.State)
		}
	}
}
