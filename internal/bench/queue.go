package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/redisserver"
)

// The queue's designs beside Onsale, and where joins are kept.
const (
	// ZSet is the textbook's line: a sorted set in Redis, a rank looked up on each poll, the first of it taken out each second.
	ZSet = "zset"

	StoreMemory = "memory"
	StoreRedis  = "redis"
)

// Bounds of a queue's bench.
const (
	FansMax      = 5_000_000
	ProcessesMax = 16

	askers     = 512 // goroutines that join, or poll, at once
	pollSlice  = 64  // polls between two looks at the clock
	stays      = 2 * time.Second
	queueRate  = 500
	queueRoom  = 800 // people inside at once: the rate binds in the first second, this afterwards
	queueParts = 3 * time.Second
	saleTime   = 8 * time.Second
)

// QueueOptions say what `bench queue` does.
type QueueOptions struct {
	Fans      int
	Designs   []string
	Store     string // of onsale
	Processes int    // of onsale, each with its share of the fans; more than one need Redis and PostgreSQL
	// PollFor is how long people poll, SaleFor how long they are let in. Default 3 s and 8 s.
	PollFor, SaleFor time.Duration
	// Node is the command line that starts one more process, which calls QueueNode. Needed with several processes.
	Node []string
}

// A QueueResult is what one design did.
type QueueResult struct {
	Bench           string   `json:"bench"` // queue
	Design          string   `json:"design"`
	Store           string   `json:"store"`
	Ledger          string   `json:"ledger,omitempty"` // "": the design has none
	Processes       int      `json:"processes"`
	Fans            int      `json:"fans"`
	JoinsPerS       float64  `json:"joins_per_s"`
	PollsPerS       float64  `json:"polls_per_s"`
	BytesPerFan     float64  `json:"bytes_per_fan"`      // of the process that has the store, and of Redis
	StoreOpsPerPoll float64  `json:"store_ops_per_poll"` // to a thousandth; what a node asks anyway is in it
	Overtakes       int64    `json:"overtakes"`          // people called before somebody with a smaller position, or who entered before they were called
	Rate            int      `json:"rate_per_s"`         // R
	ActiveMax       int      `json:"active_max"`         //
	MaxActiveSeen   int      `json:"max_active_seen"`    //
	AdmittedMax     int      `json:"admitted_per_s_max"` // in any second
	Admitted        int      `json:"admitted"`           // in all
	Errors          int64    `json:"errors"`             //
	Machine         *Machine `json:"machine,omitempty"`  //
	Redis           string   `json:"redis,omitempty"`    // its version
	SaleSeconds     float64  `json:"sale_seconds"`       // for which people were let in
}

// Faulty says what of a result is no measurement but a fault: nil where it is good. Only our own design promises anything.
func (r *QueueResult) Faulty() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(r.Design+" "+format, args...))
		}
	}
	fault(r.Errors > 0, "had %d errors", r.Errors)
	if r.Design == Onsale {
		fault(r.Overtakes > 0, "let %d people overtake", r.Overtakes)
		fault(r.MaxActiveSeen > r.ActiveMax, "had %d people inside, at most %d may be", r.MaxActiveSeen, r.ActiveMax)
		fault(r.AdmittedMax > r.Rate, "let %d in within a second, at most %d may be", r.AdmittedMax, r.Rate)
		fault(r.StoreOpsPerPoll >= 0.001, "asked the store %.3f times a poll", r.StoreOpsPerPoll)
		fault(r.Admitted == 0, "let nobody in")
	}
	return errors.Join(errs...)
}

// Queue measures every design, each on a fresh database and a fresh Redis of its own.
func (h *Host) Queue(ctx context.Context, o QueueOptions) ([]QueueResult, error) {
	if o.PollFor == 0 {
		o.PollFor = queueParts
	}
	if o.SaleFor == 0 {
		o.SaleFor = saleTime
	}
	switch {
	case o.Fans < askers || o.Fans > FansMax:
		return nil, fmt.Errorf("%d to %d fans, not %d", askers, FansMax, o.Fans)
	case o.Processes < 1 || o.Processes > ProcessesMax:
		return nil, fmt.Errorf("1 to %d processes, not %d", ProcessesMax, o.Processes)
	case o.Store != StoreMemory && o.Store != StoreRedis:
		return nil, fmt.Errorf("store %q is not one of %s, %s", o.Store, StoreMemory, StoreRedis)
	case o.Processes > 1 && (o.Store != StoreRedis || h.ledger != Postgres):
		return nil, errors.New("several processes share a store and a ledger: --store redis --ledger postgres")
	case o.Processes > 1 && len(o.Node) == 0:
		return nil, errors.New("it is not known how to start another process")
	}
	if err := checkDesigns(o.Designs, []string{Onsale, ZSet}); err != nil {
		return nil, err
	}
	results := make([]QueueResult, 0, len(o.Designs))
	for _, design := range o.Designs {
		r, err := h.queue(ctx, design, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", design, err)
		}
		results = append(results, r)
		runtime.GC() // the next one's heap is its own
	}
	return results, nil
}

func (h *Host) queue(ctx context.Context, design string, o QueueOptions) (r QueueResult, err error) {
	r = QueueResult{Bench: "queue", Design: design, Store: StoreRedis, Processes: 1, Fans: o.Fans, Rate: queueRate, ActiveMax: queueRoom, Machine: &h.Machine}
	if design == Onsale {
		r.Store, r.Ledger, r.Processes = o.Store, h.ledger, o.Processes
	}
	var server *redisserver.Server
	if r.Store == StoreRedis {
		if server, err = redisserver.Start(redisserver.Options{Dir: h.dir}); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		if r.Redis, err = server.Info(ctx, "redis_version"); err != nil {
			return r, err
		}
	}
	if design == ZSet {
		return r, queueZSet(ctx, server, o, &r)
	}
	at, err := h.fresh(ctx)
	if err != nil {
		return r, err
	}
	return r, errors.Join(at.queueOnsale(ctx, server, o, &r), at.remove(ctx))
}

// together lets many do something for all of n, and says how many failed and how long it took.
func together(n int, do func(i int) error) (failed int64, took time.Duration) {
	var next, errs atomic.Int64
	var crowd sync.WaitGroup
	began := time.Now()
	for range askers {
		crowd.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if do(i) != nil {
					errs.Add(1)
				}
			}
		})
	}
	crowd.Wait()
	return errs.Load(), time.Since(began)
}

// polling lets many ask again and again, each for people far apart, until the time is over.
func polling(n int, length time.Duration, poll func(i int) error) (polls, failed int64, took time.Duration) {
	var all, errs atomic.Int64
	var crowd sync.WaitGroup
	began := time.Now()
	for a := range askers {
		crowd.Go(func() {
			const step = 7919 // a prime: who is asked about next lies elsewhere in memory
			for i := a * (n / askers); time.Since(began) < length; {
				for range pollSlice {
					if poll(i) != nil {
						errs.Add(1)
					}
					i = (i + step) % n
				}
				all.Add(pollSlice)
			}
		})
	}
	crowd.Wait()
	return all.Load(), errs.Load(), time.Since(began)
}

func thousandth(x float64) float64 { return math.Round(x*1000) / 1000 }

// WriteQueueTable prints results side by side.
func WriteQueueTable(out io.Writer, results []QueueResult) error {
	var b strings.Builder
	line := func(what string, of func(*QueueResult) string) {
		fmt.Fprintf(&b, "%-22s", what)
		for i := range results {
			fmt.Fprintf(&b, "%16s", of(&results[i]))
		}
		b.WriteByte('\n')
	}
	count := func(what string, of func(*QueueResult) float64) {
		line(what, func(r *QueueResult) string { return grouped(int64(of(r) + 0.5)) })
	}
	line("design", func(r *QueueResult) string { return r.Design })
	line("store", func(r *QueueResult) string { return r.Store })
	count("processes", func(r *QueueResult) float64 { return float64(r.Processes) })
	count("fans", func(r *QueueResult) float64 { return float64(r.Fans) })
	count("joins/s", func(r *QueueResult) float64 { return r.JoinsPerS })
	count("polls/s", func(r *QueueResult) float64 { return r.PollsPerS })
	count("bytes a fan", func(r *QueueResult) float64 { return r.BytesPerFan })
	line("store operations/poll", func(r *QueueResult) string { return fmt.Sprintf("%.3f", r.StoreOpsPerPoll) })
	count("overtakes", func(r *QueueResult) float64 { return float64(r.Overtakes) })
	line("most inside", func(r *QueueResult) string { return fmt.Sprintf("%d of %d", r.MaxActiveSeen, r.ActiveMax) })
	line("most let in a second", func(r *QueueResult) string { return fmt.Sprintf("%d of %d", r.AdmittedMax, r.Rate) })
	count("let in", func(r *QueueResult) float64 { return float64(r.Admitted) })
	count("errors", func(r *QueueResult) float64 { return float64(r.Errors) })
	for i := range results[1:] {
		if other := results[i+1].PollsPerS; other > 0 {
			fmt.Fprintf(&b, "%s does %.2f times the polls/s of %s\n", results[0].Design, results[0].PollsPerS/other, results[i+1].Design)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
