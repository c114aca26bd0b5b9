package inventory

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// benchBoard is a board of an arena of 50,000 seats of which the others are sold.
func benchBoard(free func(layout *venue.Layout, seat int32, r *rand.Rand) bool) *Board {
	plan := venue.Generate(venue.GenerateOptions{Seats: 50_000, Seed: 1})
	layout := plan.Layout()
	b := newBoard(1, newFinder(layout), Rules{})
	snapshot := ledger.Snapshot{Version: 1, Now: 1000, Seats: make([]ledger.SeatState, layout.SeatCount)}
	snapshot.Event = ledger.Event{ID: 1, SaleCloses: ledger.Time(1) << 50}
	for c := range plan.Categories {
		snapshot.Event.Tiers = append(snapshot.Event.Tiers, ledger.Tier{Category: int16(c)})
	}
	r := rand.New(rand.NewPCG(7, 7))
	for i := range snapshot.Seats {
		if !free(layout, int32(i), r) {
			snapshot.Seats[i].State = ledger.Sold
		}
	}
	start := time.UnixMilli(1000)
	if err := b.load(&snapshot, start, start); err != nil {
		panic(err)
	}
	return b
}

// BenchmarkFind measures best available on 50,000 seats, claims and locks included.
func BenchmarkFind(b *testing.B) {
	half := func(_ *venue.Layout, _ int32, r *rand.Rand) bool { return r.IntN(2) == 0 }
	worst := func(layout *venue.Layout, seat int32, r *rand.Rand) bool {
		return layout.Quality[seat] > venue.QualityMax/2 && r.IntN(2) == 0
	}
	all := func(*venue.Layout, int32, *rand.Rand) bool { return true }
	few := func(r *rand.Rand) Wish { return Wish{Quantity: 1 + r.IntN(6), Category: -1, Section: -1} }
	quantity := func(n int) func(*rand.Rand) Wish {
		return func(*rand.Rand) Wish { return Wish{Quantity: n, Category: -1, Section: -1} }
	}
	for _, bench := range []struct {
		name    string
		free    func(*venue.Layout, int32, *rand.Rand) bool
		wish    func(*rand.Rand) Wish
		callers int
	}{
		{"half sold, pairs", half, quantity(2), 1},
		{"half sold, 1 to 6", half, few, 1},
		{"half sold, 1 to 6 of a category", half, func(r *rand.Rand) Wish { w := few(r); w.Category = r.IntN(3); return w }, 1},
		{"half sold, groups of 8", half, quantity(8), 1},
		{"half sold, groups of 12", half, quantity(12), 1},
		{"half sold, groups of 30", half, quantity(30), 1},
		{"half sold, accessible", half, func(r *rand.Rand) Wish { w := few(r); w.Accessible = 1; return w }, 1},
		{"best half gone, 1 to 6", worst, few, 1},
		{"nothing sold, pairs", all, quantity(2), 1},
		{"half sold, 1 to 6, 2 callers", half, few, 2},
		{"half sold, 1 to 6, 64 callers", half, few, 64},
	} {
		b.Run(bench.name, func(b *testing.B) {
			board := benchBoard(bench.free)
			var mu sync.Mutex
			var took []time.Duration
			var next atomic.Int64
			var callers sync.WaitGroup
			clock := time.UnixMilli(2000)
			b.ResetTimer()
			for caller := range bench.callers {
				callers.Go(func() {
					r := rand.New(rand.NewPCG(uint64(caller), 3))
					own := make([]time.Duration, 0, b.N/bench.callers+1)
					for next.Add(1) <= int64(b.N) {
						w := bench.wish(r)
						start := time.Now()
						_, _, claimed := board.Find(w, clock, nil, 0)
						own = append(own, time.Since(start))
						board.Unclaim(claimed)
					}
					mu.Lock()
					took = append(took, own...)
					mu.Unlock()
				})
			}
			callers.Wait()
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "median-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
		})
	}
}
