package joinlog

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"onsale/internal/id"
	"onsale/internal/waitingroom"
)

// An index has at most 40 bytes a record, at any size.
func TestIndexIsSmall(t *testing.T) {
	sizes := []int{300_000, 1_000_000}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, n := range sizes {
		heap := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		x := newIndex()
		for i := range n {
			x.join(id.ID(1<<50+i*2048), 0, int64(i), true, int64(i)*recordBytes)
		}
		each := float64(heap()-before) / float64(n)
		if each > 40 {
			t.Errorf("%d records: %.1f bytes each", n, each)
		}
		if x.current(id.ID(1<<50+(n-1)*2048)) == nil {
			t.Error("the last one is not there")
		}
	}
}

// One caller that gathers, as the waiting room's service does.
func BenchmarkAppendBatches(b *testing.B) {
	for _, size := range []int{1000, 8192} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l, err := Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			n := 0
			for b.Loop() {
				records := make([]waitingroom.Record, size)
				for i := range records {
					n++
					records[i] = join(n)
				}
				if _, err := l.Append(b.Context(), records); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "joins/s")
		})
	}
}

// Many callers with one join each.
func BenchmarkAppendAlone(b *testing.B) {
	l, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	var n atomic.Int64
	b.SetParallelism(2000)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := l.Append(b.Context(), []waitingroom.Record{join(int(n.Add(1)))}); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "joins/s")
}

func BenchmarkReplay(b *testing.B) {
	const count = 1_000_000
	dir := b.TempDir()
	l, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	for n := 0; n < count; {
		records := make([]waitingroom.Record, 10_000)
		for i := range records {
			n++
			records[i] = join(n ^ 3 + 1) // nearly in order
		}
		if _, err := l.Append(b.Context(), records); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			l := OpenRead(dir)
			if _, err := l.Next(b.Context(), event); err != nil {
				b.Fatal(err)
			}
			_ = l.Close()
		}
		b.ReportMetric(count*float64(b.N)/b.Elapsed().Seconds(), "joins/s")
	})
	for _, sorted := range []bool{false, true} {
		b.Run(fmt.Sprint("sorted=", sorted), func(b *testing.B) {
			l := OpenRead(dir)
			defer l.Close()
			if _, err := l.Next(b.Context(), event); err != nil {
				b.Fatal(err)
			}
			var took time.Duration
			for b.Loop() {
				start := time.Now()
				if err := l.Replay(b.Context(), event, sorted, func(waitingroom.Record) error { return nil }); err != nil {
					b.Fatal(err)
				}
				took += time.Since(start)
			}
			b.ReportMetric(count*float64(b.N)/took.Seconds(), "joins/s")
		})
	}
}
