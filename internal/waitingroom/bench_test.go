package waitingroom_test

import (
	"context"
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/joinlog"
	"onsale/internal/waitingroom/waitingroomtest"
)

// crowd is how many people the benchmarks have wait.
const crowd = 2_000_000

// crowdWorld is a room of one node in front of the model, by the machine's clock: open for waiting until it is told otherwise.
type crowdWorld struct {
	*waitingroom.Service
	model *ledger.Model
	event id.ID
	rule  ledger.Event
	open  func() // opens the sale
}

func newCrowd(b *testing.B, log waitingroom.Log) *crowdWorld {
	b.Helper()
	w := &crowdWorld{model: ledger.NewModel(now), event: 1 << 40}
	batcher := ledger.NewBatcher(w.model, ledger.BatcherOptions{Logger: quiet})
	s, err := waitingroom.New(waitingroom.Options{
		Store: waitingroom.NewMemory(), Log: log, Ledger: batcher, Reader: w.model, Keys: newKeys(b), ListKey: []byte("the key of all lists"),
		Draw:  func(context.Context, id.ID) ([32]byte, error) { return [32]byte{1}, nil },
		NewID: func(id.ID) (id.ID, error) { return 1, nil }, Issuer: "https://tickets.example", Logger: quiet,
	})
	if err != nil {
		b.Fatal(err)
	}
	w.Service = s
	w.rule = ledger.Event{
		ID: w.event, Organizer: 1, Show: 2, State: ledger.OnSale, PlanHash: "plan", SaleOpens: now() + 3_600_000, SaleCloses: now() + 7_200_000,
		HoldTTL: 600_000, PaymentWindow: 300_000, SeatsPerHoldMax: 10, Currency: "EUR", Tiers: []ledger.Tier{{Name: "A", Face: 5000}},
		Room: ledger.RoomRule{Mode: ledger.RoomOn, Opens: now() - 1, Rate: 2000, ActiveMax: 5000, Lanes: []ledger.LaneRule{{Key: "general", Weight: 1}}},
	}
	w.set(b, batcher)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		s.Close()
		<-ended
		_ = batcher.Close(context.Background())
	})
	w.until(b, func() bool { return s.Ready() })
	w.open = func() {
		w.rule.SaleOpens = now()
		w.set(b, batcher)
		s.Changed(w.event)
		w.until(b, func() bool {
			v, err := s.View(context.Background(), w.event)
			return err == nil && v.Room.Phase == ledger.RoomOpen
		})
	}
	return w
}

func (w *crowdWorld) set(b *testing.B, batcher *ledger.Batcher) {
	b.Helper()
	w.rule.Version++
	layout := &ledger.Layout{PlanHash: "plan", Section: []int16{0}, Category: []int16{0}, Run: []int32{0}, Quality: []int32{0}}
	if _, err := batcher.Do(context.Background(), ledger.SetEvent{Event: w.rule, Layout: layout}); err != nil {
		b.Fatal(err)
	}
}

func (w *crowdWorld) until(b *testing.B, is func() bool) {
	b.Helper()
	for range 60_000 {
		if is() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	b.Fatal("it does not come to it")
}

// join lets customers 1…count join from many goroutines, each with a document, and gives every strideth's ticket.
func (w *crowdWorld) join(b *testing.B, count, stride int) []string {
	b.Helper()
	const callers = 2_048
	tickets := make([]string, count/stride)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				n := next.Add(1)
				if n > int64(count) || failed.Load() != nil {
					return
				}
				var identity waitingroom.Identity
				binary.LittleEndian.PutUint64(identity[:], uint64(n)*0x9e3779b97f4a7c15)
				place, err := w.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: id.ID(n << 20), Identity: identity})
				if err != nil {
					failed.Store(&err)
					return
				}
				if int(n)%stride == 0 {
					tickets[int(n)/stride-1] = place.QueueID
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		b.Fatal(*err)
	}
	return tickets
}

// BenchmarkJoin2M lets two million people join, each with a document: store, log, and a signed ticket.
func BenchmarkJoin2M(b *testing.B) {
	for name, open := range map[string]func(b *testing.B) waitingroom.Log{
		"memory": func(*testing.B) waitingroom.Log { return &waitingroomtest.Log{} },
		"file": func(b *testing.B) waitingroom.Log {
			l, err := joinlog.Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = l.Close() })
			return l
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				before := heap()
				w := newCrowd(b, open(b))
				b.StartTimer()
				start := time.Now()
				w.join(b, crowd, crowd)
				b.ReportMetric(crowd/time.Since(start).Seconds(), "joins/s")
				b.StopTimer()
				b.ReportMetric(float64(heap()-before)/crowd, "bytes/fan")
				b.ReportMetric(float64(w.Stats().JoinBatches), "appends")
				runtime.KeepAlive(w)
				b.StartTimer()
			}
		})
	}
}

func benchmarkPosition(b *testing.B, people int) {
	w := newCrowd(b, &waitingroomtest.Log{})
	tickets := w.join(b, people, people/1_000)
	w.open()
	if st, err := w.Place(tickets[0]); err != nil || !st.Known || !st.Drawn {
		b.Fatalf("%+v, %v", st, err)
	}
	b.Run("place", func(b *testing.B) { // on its own, so that the crowd gathers once
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for n := 0; pb.Next(); n++ {
				if _, err := w.Place(tickets[n%len(tickets)]); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "positions/s")
	})
}

// BenchmarkPosition10k and BenchmarkPosition2M ask for positions with signed tickets. It costs the same.
func BenchmarkPosition10k(b *testing.B) { benchmarkPosition(b, 10_000) }

// BenchmarkPosition2M is the same with two million.
func BenchmarkPosition2M(b *testing.B) { benchmarkPosition(b, crowd) }
