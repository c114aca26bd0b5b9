package sqlite_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/sqlite"
)

// BenchmarkSale sells an arena in pairs through the batcher: hold, begin payment, confirm, with tickets and outbox.
func BenchmarkSale(b *testing.B) {
	const seats, callers = 50_000, 2_000
	ctx := context.Background()
	for range b.N {
		b.StopTimer()
		l, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "shard.db"), sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		ids := id.NewGenerator(0, time.Now, 0, nil)
		now := ledger.TimeOf(time.Now())
		event := ledger.Event{ID: ids.MustNext(0), Version: 1, State: ledger.OnSale, PlanHash: "x", SaleOpens: now - 1, SaleCloses: now + 1e9,
			HoldTTL: 600_000, PaymentWindow: 300_000, ExtendMax: 1, SeatsPerHoldMax: 4, Currency: "EUR",
			Tiers: []ledger.Tier{{Face: 5000, Fee: 500, TaxBP: 700}}, Limits: []ledger.Limit{{Scope: ledger.PerEvent, Max: 4}}}
		layout := &ledger.Layout{PlanHash: "x", Section: make([]int16, seats), Category: make([]int16, seats), Run: make([]int32, seats), Quality: make([]int32, seats)}
		batcher := ledger.NewBatcher(l, ledger.BatcherOptions{})
		if r, err := batcher.Do(ctx, ledger.SetEvent{Event: event, Layout: layout}); err != nil || r.Fault != nil {
			b.Fatal(err, r.Fault)
		}
		b.StartTimer()
		var wg sync.WaitGroup
		next := make(chan int32, seats)
		for s := int32(0); s < seats; s += 2 {
			next <- s
		}
		close(next)
		start := time.Now()
		for range callers {
			wg.Go(func() {
				for s := range next {
					customer := ids.MustNext(0)
					h, err := batcher.Do(ctx, ledger.HoldSeats{ID: ids.MustNext(0), Event: event.ID, Customer: customer, Seats: []int32{s, s + 1}})
					if err != nil || h.Fault != nil {
						b.Error(err, h.Fault)
						return
					}
					o, err := batcher.Do(ctx, ledger.BeginPayment{Order: ids.MustNext(0), Hold: h.Hold.ID, Customer: customer, Provider: "instant"})
					if err != nil || o.Fault != nil {
						b.Error(err, o.Fault)
						return
					}
					c, err := batcher.Do(ctx, ledger.Confirm{Order: o.Order.ID, Payment: "pay", Amount: o.Order.Amount, Currency: "EUR", Captured: true,
						Tickets: []id.ID{ids.MustNext(0), ids.MustNext(0)}})
					if err != nil || c.Fault != nil || c.Order.State != ledger.OrderPaid {
						b.Error(err, c.Fault)
						return
					}
				}
			})
		}
		wg.Wait()
		b.ReportMetric(seats/time.Since(start).Seconds(), "seats/s")
		b.StopTimer()
		if err := batcher.Close(ctx); err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
