package booking

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/sandbox"
)

// After a hot sale a capture is due for every booking; one after the other they would take hours.
func TestRecoverManyAtOnce(t *testing.T) {
	inWorlds(t, []scenario{
		{"A18: captures do not wait for each other", func(w *world) []int64 {
			if !w.options.Authorize {
				return nil // there is nothing to capture
			}
			const count = 6
			w.options.RecoverAtOnce = count
			w.restart()
			var orders []ledger.Order
			for i := range count {
				orders = append(orders, w.mustBook(w.request(w.hold(alice, int32(i)), sandbox.TokenSure, fmt.Sprint(i))))
			}
			var there sync.WaitGroup
			there.Add(count)
			w.meddling(func(op string, call func() error) error {
				if op == "Capture" { // each waits until all have come
					there.Done()
					there.Wait()
				}
				return call()
			})
			if done := w.recover(); done.Captured != count || done.Failed != 0 || done.More {
				w.Errorf("recovered %+v", done)
			}
			for _, o := range orders {
				w.wantMoney(o, seatPrice, payment.Captured)
			}
			return nil
		}},
	})
}

// A round has an end, and says that there is more.
func TestRecoverEndsWhereTheProviderIsAway(t *testing.T) {
	const count = 100
	r := &round{Service: New(Options{RecoverAtOnce: 4}), done: &Recovered{}}
	var mu sync.Mutex
	var seen []int
	list := make([]int, count)
	for i := range list {
		list[i] = i
	}
	err := each(t.Context(), r, list, func(i int) {
		mu.Lock()
		seen = append(seen, i)
		mu.Unlock()
		r.unanswered(payment.ErrUnknown)
	})
	if err != nil || len(seen) < awayMax || len(seen) > awayMax+4+1 {
		t.Errorf("%d of %d were tried, %v; want about %d", len(seen), count, err, awayMax)
	}
	r.unanswered(nil)
	seen = nil
	if err := each(t.Context(), r, list, func(i int) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, i)
	}); err != nil {
		t.Error(err)
	}
	if slices.Sort(seen); !slices.Equal(seen, list) {
		t.Errorf("tried %v", seen)
	}
}
