package inventory

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
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
