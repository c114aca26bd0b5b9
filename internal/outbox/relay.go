// Package outbox publishes what the ledger has committed: every notice at least once, in order for each order (I12).
//
// The one idea: the ledger writes a notice in the transaction of the change that it tells of, and the Relay hands it on
// and then marks that very row. There is no cursor over ids, which commit out of order. Whatever goes wrong in between (a
// crash, a lost lease, a receiver that fails) only makes a notice come again; a receiver that minds drops those it has
// seen by (order, sequence), see Dedup. One worker at a time does it, by a fenced lease, but two do no harm.
//
// Start reading at Relay.pass.
package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Bounds of a relay.
const (
	batchDefault  = 512
	skipDefault   = 1024
	pruneBound    = 1000 // rows that one statement deletes
	pruneRounds   = 20   // such statements a pass
	pruneInterval = time.Hour

	backoffFirst = time.Second
	backoffMax   = 5 * time.Minute

	// Keep is how long published notices stay (A24).
	Keep = 7 * 24 * time.Hour
)

// A Source is where notices come from. A ledger is one.
type Source interface {
	ledger.Outbox
	ledger.Leases
}

// A Handler receives notices. It may be given one twice, and must answer before its context ends. An error means: not
// now; the notice, and with it those after it of the same order, come again later.
type Handler interface {
	Handle(ctx context.Context, n ledger.Notice) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, n ledger.Notice) error

// Handle implements Handler.
func (f HandlerFunc) Handle(ctx context.Context, n ledger.Notice) error { return f(ctx, n) }

// Options say how a relay works.
type Options struct {
	// Name is the lease's: relays of one name take turns. Defaults to "outbox".
	Name string
	// Holder tells this relay from others of the same name. Defaults to a random text.
	Holder string
	// TTL is how long the lease lasts without being renewed. Defaults to 10 s.
	TTL time.Duration
	// Timeout is how long one handler may take for one notice. Defaults to a quarter of TTL.
	Timeout time.Duration
	// Interval is how often the relay looks without being nudged: the safety net. Defaults to 1 s.
	Interval time.Duration
	// Tick replaces the ticker of Interval.
	Tick <-chan time.Time
	// Now is the clock, for renewing, backing off and pruning. Defaults to the machine's.
	Now func() time.Time
	// BatchMax is how many notices are read at once. Defaults to 512.
	BatchMax int
	// SkipMax is how many orders may wait for a failing receiver while others go on; beyond it all wait. Defaults to 1024.
	SkipMax int
	// Log is told what fails. Defaults to slog.Default.
	Log *slog.Logger
	// Passed is called after each pass with what it did.
	Passed func(Pass)
}

// A Pass is what one look at the outbox did.
type Pass struct {
	Leader    bool // it held the lease
	Published int
	Failed    int // orders whose receiver failed
	Pruned    int
	Err       error // the source's
}

// Stats are counters since the relay was made.
type Stats struct {
	Published int64
	Failures  int64
	Pruned    int64
	Passes    int64
	Fenced    int64 // how often the lease was lost to another
	Waiting   int   // orders that wait for a failing receiver now
	Leader    bool
}

// A Relay publishes. Start it, Nudge it after commits, Stop it.
type Relay struct {
	source   Source
	handlers []Handler
	o        Options
	nudge    chan struct{}

	running sync.Mutex // held by Start and Stop
	cancel  context.CancelFunc
	done    chan struct{}

	// Only the loop touches these.
	lease   ledger.Lease
	held    bool
	renewed time.Time
	pruned  time.Time
	waiting map[id.ID]*wait
	skipped int  // orders left out by the last read
	full    bool // as many as may be

	mu    sync.Mutex
	stats Stats
}

// A wait is an order whose receiver failed.
type wait struct {
	until time.Time
	tries int
}

// NewRelay makes a relay that gives each notice to all handlers, in their order.
func NewRelay(source Source, handlers []Handler, o Options) *Relay {
	o.Name = cmp.Or(o.Name, "outbox")
	o.TTL = cmp.Or(o.TTL, 10*time.Second)
	o.Timeout = cmp.Or(o.Timeout, o.TTL/4)
	o.Interval = cmp.Or(o.Interval, time.Second)
	o.BatchMax = cmp.Or(o.BatchMax, batchDefault)
	o.SkipMax = cmp.Or(o.SkipMax, skipDefault)
	if o.Holder == "" {
		o.Holder = rand.Text()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Relay{source: source, handlers: handlers, o: o, nudge: make(chan struct{}, 1), waiting: map[id.ID]*wait{}}
}

// Start begins to work in the background. Starting a running relay does nothing; a stopped one may be started again.
func (r *Relay) Start() {
	r.running.Lock()
	defer r.running.Unlock()
	if r.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.done = cancel, make(chan struct{})
	go r.loop(ctx, r.done)
}

// Stop ends the work after the notice at hand, gives the lease back and returns when all is done. What was handed on and
// not marked comes again. Stopping twice is harmless.
func (r *Relay) Stop() {
	r.running.Lock()
	defer r.running.Unlock()
	if r.cancel == nil {
		return
	}
	r.cancel()
	<-r.done
	r.cancel = nil
}

// Nudge lets the relay look at once. It never waits.
func (r *Relay) Nudge() {
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// Stats are the counters now.
func (r *Relay) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

func (r *Relay) loop(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	tick := r.o.Tick
	if tick == nil {
		ticker := time.NewTicker(r.o.Interval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		r.report(ctx, r.pass(ctx))
		nudge := r.nudge
		if !r.held {
			nudge = nil // while another leads, every commit here need not ask for the lease
		}
		select {
		case <-ctx.Done():
			r.giveUp()
			return
		case <-tick:
		case <-nudge:
		}
	}
}

func (r *Relay) report(ctx context.Context, p Pass) {
	if errors.Is(p.Err, ledger.ErrFenced) {
		r.held = false
	}
	r.mu.Lock()
	r.stats.Passes++
	r.stats.Published += int64(p.Published)
	r.stats.Failures += int64(p.Failed)
	r.stats.Pruned += int64(p.Pruned)
	if errors.Is(p.Err, ledger.ErrFenced) {
		r.stats.Fenced++
	}
	r.stats.Waiting, r.stats.Leader = len(r.waiting), r.held
	r.mu.Unlock()
	if p.Err != nil && ctx.Err() == nil {
		r.o.Log.LogAttrs(ctx, slog.LevelWarn, "outbox pass failed", slog.String("lease", r.o.Name), slog.Any("error", p.Err))
	}
	if r.o.Passed != nil {
		r.o.Passed(p)
	}
}

// pass publishes all that can be published now.
func (r *Relay) pass(ctx context.Context) (p Pass) {
	for ctx.Err() == nil {
		if p.Err = r.renew(ctx); p.Err != nil || !r.held {
			return p
		}
		p.Leader = true
		notices, err := r.next(ctx)
		if err != nil || len(notices) == 0 {
			p.Err = err
			break
		}
		done, failed, err := r.hand(ctx, notices)
		p.Failed += failed
		if len(done) > 0 {
			if p.Err = r.mark(ctx, done); p.Err != nil {
				return p
			}
			p.Published += len(done)
		}
		if err != nil {
			p.Err = err
			return p
		}
	}
	if p.Err == nil && ctx.Err() == nil {
		p.Pruned, p.Err = r.prune(ctx)
	}
	return p
}

// mark marks what has been handed on. A stop must not make it come again, so it is not heard here.
func (r *Relay) mark(ctx context.Context, done []ledger.Notice) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.TTL)
	defer cancel()
	if err := r.source.MarkPublished(ctx, r.lease, done); err != nil {
		return fmt.Errorf("marking %d notices: %w", len(done), err)
	}
	return nil
}

// renew takes the lease, or renews it when a third of its time has gone.
func (r *Relay) renew(ctx context.Context) error {
	now := r.o.Now()
	if r.held && now.Sub(r.renewed) < r.o.TTL/3 && !now.Before(r.renewed) {
		return nil
	}
	lease, ok, err := r.source.Acquire(ctx, r.o.Name, r.o.Holder, ledger.Duration(r.o.TTL.Milliseconds()))
	if err != nil {
		return fmt.Errorf("taking the lease %s: %w", r.o.Name, err)
	}
	r.lease, r.held, r.renewed = lease, ok, now
	return nil
}

// next reads notices, but of no order that waits for a failing receiver.
func (r *Relay) next(ctx context.Context) ([]ledger.Notice, error) {
	now := r.o.Now()
	skip := make([]id.ID, 0, len(r.waiting))
	for order, w := range r.waiting {
		switch {
		case w.until.After(now):
			skip = append(skip, order)
		case now.Sub(w.until) > backoffMax: // it has not come again: another relay has published it
			delete(r.waiting, order)
		}
	}
	r.skipped = len(skip)
	if full := r.skipped >= r.o.SkipMax; full {
		if !r.full {
			r.o.Log.LogAttrs(ctx, slog.LevelError, "outbox waits: receivers fail for too many orders", slog.Int("orders", r.skipped))
		}
		r.full = true
		return nil, nil
	}
	r.full = false
	return r.source.Unpublished(ctx, r.o.BatchMax, skip)
}

// hand gives notices to the handlers, as far as they take them. The error is the source's; done is to be marked anyway.
func (r *Relay) hand(ctx context.Context, notices []ledger.Notice) (done []ledger.Notice, failed int, err error) {
	var stuck id.ID // notices come order by order
	for _, n := range notices {
		if n.Order == stuck {
			continue
		}
		if ctx.Err() != nil {
			return done, failed, nil
		}
		if err := r.renew(ctx); err != nil {
			return done, failed, err
		}
		if !r.held {
			return done, failed, ledger.ErrFenced
		}
		if err := r.handOne(ctx, n); err != nil {
			if ctx.Err() != nil {
				return done, failed, nil // it was the stop that failed it
			}
			stuck = n.Order
			failed++
			r.delay(ctx, n, err)
			if r.skipped++; r.skipped >= r.o.SkipMax {
				return done, failed, nil
			}
			continue
		}
		delete(r.waiting, n.Order)
		done = append(done, n)
	}
	return done, failed, nil
}

func (r *Relay) handOne(ctx context.Context, n ledger.Notice) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	for _, h := range r.handlers {
		if err := h.Handle(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// delay lets an order wait, twice as long each time.
func (r *Relay) delay(ctx context.Context, n ledger.Notice, cause error) {
	w := r.waiting[n.Order]
	if w == nil {
		w = &wait{}
		r.waiting[n.Order] = w
	}
	pause := min(backoffMax, backoffFirst<<min(w.tries, 20))
	w.tries++
	w.until = r.o.Now().Add(pause)
	r.o.Log.LogAttrs(ctx, slog.LevelWarn, "notice not delivered", slog.String("order", n.Order.Text(id.Order)), slog.Int64("sequence", n.Sequence),
		slog.String("kind", n.Kind), slog.Int("tries", w.tries), slog.Duration("again_in", pause), slog.Any("error", cause))
}

// prune deletes what was published long ago, now and then.
func (r *Relay) prune(ctx context.Context) (pruned int, err error) {
	now := r.o.Now()
	if !r.pruned.IsZero() && now.Sub(r.pruned) < pruneInterval {
		return 0, nil
	}
	for range pruneRounds {
		n, err := r.source.PrunePublished(ctx, r.lease, ledger.TimeOf(now.Add(-Keep)), pruneBound)
		pruned += n
		if err != nil {
			return pruned, fmt.Errorf("pruning: %w", err)
		}
		if n < pruneBound {
			r.pruned = now
			break
		}
	}
	return pruned, nil
}

// giveUp gives the lease back, so that another need not wait for its end.
func (r *Relay) giveUp() {
	if !r.held {
		return
	}
	r.held = false
	ctx, cancel := context.WithTimeout(context.Background(), r.o.TTL)
	defer cancel()
	if err := r.source.ReleaseLease(ctx, r.lease); err != nil {
		r.o.Log.LogAttrs(ctx, slog.LevelWarn, "lease not given back", slog.String("lease", r.o.Name), slog.Any("error", err))
	}
	r.mu.Lock()
	r.stats.Leader = false
	r.mu.Unlock()
}
