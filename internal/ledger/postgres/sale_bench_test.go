package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/postgres"
	"onsale/internal/pgserver"
)

// BenchmarkSale sells an arena in pairs through the batcher: hold, begin payment, confirm, with tickets and outbox.
func BenchmarkSale(b *testing.B) {
	const seats, callers = 50_000, 2_000
	for range b.N {
		b.StopTimer()
		shop := newShop(b, open(b, postgres.Options{URL: pgserver.DatabaseForTest(b)}), seats)
		next := make(chan int32, seats)
		for s := int32(0); s < seats; s += 2 {
			next <- s
		}
		close(next)
		var wg sync.WaitGroup
		b.StartTimer()
		start := time.Now()
		for range callers {
			wg.Go(func() {
				for s := range next {
					if err := shop.buy(s, s+1); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		b.ReportMetric(seats/time.Since(start).Seconds(), "seats/s")
		b.StopTimer()
		stats := shop.batcher.Stats()
		b.ReportMetric(float64(stats.Commands)/float64(stats.Batches), "commands/batch")
		b.ReportMetric(stats.ApplyTime.Seconds()/time.Since(start).Seconds(), "in-Apply")
		shop.close(b)
	}
}

// A shop is a ledger with one event, behind a batcher.
type shop struct {
	ledger  *postgres.Ledger
	batcher *ledger.Batcher
	ids     *id.Generator
	event   ledger.Event
}

func newShop(tb testing.TB, l *postgres.Ledger, seats int) *shop {
	tb.Helper()
	s := &shop{ledger: l, batcher: ledger.NewBatcher(l, ledger.BatcherOptions{}), ids: id.NewGenerator(0, time.Now, 0, nil)}
	now := ledger.TimeOf(time.Now())
	s.event = ledger.Event{ID: s.ids.MustNext(0), Version: 1, State: ledger.OnSale, PlanHash: "x", SaleOpens: now - 60_000, SaleCloses: now + 1e9,
		HoldTTL: 600_000, PaymentWindow: 300_000, ExtendMax: 1, SeatsPerHoldMax: 4, Currency: "EUR",
		Tiers: []ledger.Tier{{Face: 5000, Fee: 500, TaxBP: 700}}, Limits: []ledger.Limit{{Scope: ledger.PerEvent, Max: 4}}}
	layout := &ledger.Layout{PlanHash: "x", Section: make([]int16, seats), Category: make([]int16, seats), Run: make([]int32, seats), Quality: make([]int32, seats)}
	if _, err := s.batcher.Do(context.Background(), ledger.SetEvent{Event: s.event, Layout: layout}); err != nil {
		tb.Fatal(err)
	}
	return s
}

func (s *shop) close(tb testing.TB) {
	tb.Helper()
	if err := s.batcher.Close(context.Background()); err != nil {
		tb.Fatal(err)
	}
	if err := s.ledger.Close(); err != nil {
		tb.Fatal(err)
	}
}

// buy is a whole sale of two seats, with idempotency keys as the API sends them.
func (s *shop) buy(seats ...int32) error {
	ctx := context.Background()
	customer := s.ids.MustNext(0)
	key := customer.Text("key")
	h, err := s.batcher.Do(ctx, ledger.HoldSeats{ID: s.ids.MustNext(0), Event: s.event.ID, Customer: customer, Seats: seats,
		Key: ledger.Key{Value: key, Fields: []ledger.KeyField{{Name: "seats", Hash: "h"}}}})
	if err != nil {
		return err
	}
	o, err := s.batcher.Do(ctx, ledger.BeginPayment{Order: s.ids.MustNext(0), Hold: h.Hold.ID, Customer: customer, Provider: "instant",
		Key: ledger.Key{Value: key, Fields: []ledger.KeyField{{Name: "hold", Hash: "h"}}}})
	if err != nil {
		return err
	}
	_, err = s.batcher.Do(ctx, ledger.Confirm{Order: o.Order.ID, Payment: "pay", Amount: o.Order.Amount, Currency: "EUR", Captured: true,
		Tickets: []id.ID{s.ids.MustNext(0), s.ids.MustNext(0)}, Refund: s.ids.MustNext(0), RescueHold: s.ids.MustNext(0)})
	return err
}
