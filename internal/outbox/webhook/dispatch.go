package webhook

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"onsale/internal/id"
)

// Schedule is how long a delivery waits after each try that failed: the last one is three days after the first. Each wait
// is up to a tenth longer, by chance, so that what failed together does not come together.
var Schedule = []time.Duration{
	5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 20 * time.Hour,
}

const (
	holdFor      = 2 * time.Minute // longer than a post and its note take
	storeTimeout = 10 * time.Second
	pruneMax     = 1000
	pruneEvery   = time.Hour

	statusGone = 410 // HTTP's "it is not here any more"
)

// A Poster posts a message. An error says, in words of ours, why there was no answer. It returns within some seconds.
type Poster interface {
	Post(ctx context.Context, url string, headers map[string]string, body string) (status int, err error)
}

// Options say how a dispatcher works.
type Options struct {
	Store  Store
	Poster Poster
	Sealer Sealer
	// Interval is how often it looks without being woken. Defaults to 1 s.
	Interval time.Duration
	Tick     <-chan time.Time // replaces the ticker of Interval
	Now      func() time.Time // defaults to the machine's
	Chance   func() float64   // 0 ≤ x < 1, for the waits. Defaults to math/rand
	Log      *slog.Logger     // told of what fails, by ids. Defaults to slog.Default
	Dead     func(kind string)
}

// Stats are counters since the dispatcher was made.
type Stats struct {
	Delivered int64
	Failed    int64 // tries
	Dead      int64
	Talking   int // endpoints now
}

// A Dispatcher delivers what is due.
type Dispatcher struct {
	o    Options
	wake chan struct{}

	running sync.Mutex
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu      sync.Mutex
	talking map[id.ID]bool
	stats   Stats
	pruned  time.Time // only the loop touches it
}

// NewDispatcher makes one.
func NewDispatcher(o Options) *Dispatcher {
	o.Interval = cmp.Or(o.Interval, time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Chance == nil {
		o.Chance = rand.Float64
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Dispatcher{o: o, wake: make(chan struct{}, 1), talking: map[id.ID]bool{}}
}

// Start begins to work in the background. Starting a running dispatcher does nothing; a stopped one may be started again.
func (d *Dispatcher) Start() {
	d.running.Lock()
	defer d.running.Unlock()
	if d.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	d.done.Go(func() { d.loop(ctx) })
}

// Stop breaks off posts under way, which are due again, and returns when all is done. Stopping twice is harmless.
func (d *Dispatcher) Stop() {
	d.running.Lock()
	defer d.running.Unlock()
	if d.cancel == nil {
		return
	}
	d.cancel()
	d.done.Wait()
	d.cancel = nil
}

// Wake lets the dispatcher look at once. It never waits.
func (d *Dispatcher) Wake() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Stats are the counters now.
func (d *Dispatcher) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Talking = len(d.talking)
	return s
}

func (d *Dispatcher) loop(ctx context.Context) {
	tick := d.o.Tick
	if tick == nil {
		ticker := time.NewTicker(d.o.Interval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		if err := d.look(ctx); err != nil && ctx.Err() == nil {
			d.o.Log.LogAttrs(ctx, slog.LevelWarn, "webhooks wait: they cannot be read", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		case <-d.wake:
		}
	}
}

// look begins to talk with each endpoint that has something due and is not being talked with.
func (d *Dispatcher) look(ctx context.Context) error {
	due, err := d.o.Store.DueEndpoints(ctx, EndpointsAtOnceMax)
	if err != nil {
		return err
	}
	for _, e := range due {
		d.mu.Lock()
		busy := d.talking[e.ID] || len(d.talking) >= EndpointsAtOnceMax
		if !busy {
			d.talking[e.ID] = true
		}
		d.mu.Unlock()
		if busy {
			continue
		}
		d.done.Go(func() {
			d.talk(ctx, e)
			d.mu.Lock()
			delete(d.talking, e.ID)
			d.mu.Unlock()
		})
	}
	return d.prune(ctx)
}

// talk delivers to one endpoint until nothing is due there.
func (d *Dispatcher) talk(ctx context.Context, e Endpoint) {
	secrets, err := d.secrets(&e)
	if err != nil {
		d.o.Log.LogAttrs(ctx, slog.LevelError, "a webhook's secret cannot be opened", slog.String("endpoint", e.ID.Text(Prefix)), slog.Any("error", err))
		return
	}
	for ctx.Err() == nil {
		claimed, err := d.o.Store.Claim(ctx, e.ID, holdFor, ParallelMax)
		if err != nil && ctx.Err() == nil {
			d.o.Log.LogAttrs(ctx, slog.LevelWarn, "webhooks wait: they cannot be taken", slog.Any("error", err))
		}
		if err != nil || len(claimed) == 0 {
			return
		}
		var posts sync.WaitGroup
		gone := make([]bool, len(claimed))
		for i := range claimed {
			posts.Go(func() { gone[i] = d.deliver(ctx, &e, claimed[i], secrets) == statusGone })
		}
		posts.Wait()
		for _, g := range gone {
			if g {
				d.switchOff(ctx, e)
				return
			}
		}
		// Its settings may have changed since: another URL, another secret, off.
		if e, err = d.o.Store.Endpoint(ctx, e.ID); err != nil || !e.On {
			return
		}
		if secrets, err = d.secrets(&e); err != nil {
			return
		}
	}
}

func (d *Dispatcher) secrets(e *Endpoint) ([]string, error) {
	sealed := [][]byte{e.Sealed}
	if len(e.OldSealed) > 0 && d.o.Now().Before(e.OldUntil) {
		sealed = append(sealed, e.OldSealed)
	}
	var secrets []string
	for _, s := range sealed {
		secret, err := d.o.Sealer.Open(sealName(e.ID), s)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, string(secret))
	}
	return secrets, nil
}

// deliver posts one message and writes down what came of it. It answers the status.
func (d *Dispatcher) deliver(ctx context.Context, e *Endpoint, one Delivery, secrets []string) int {
	headers, err := Headers(one.Message, d.o.Now(), one.Body, secrets...)
	status := 0
	if err == nil {
		status, err = d.o.Poster.Post(ctx, e.URL, headers, one.Body)
	}
	note, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout) // also while stopping
	defer cancel()
	after := time.Duration(0)
	one.Status, one.Last = status, ""
	switch {
	case err == nil && status >= 200 && status <= 299:
		one.State = Ended
		one.Tries++
		d.count(func(s *Stats) { s.Delivered++ })
	case ctx.Err() != nil: // it was the stop that broke it off
	default:
		if err != nil {
			one.Last = err.Error()
		}
		after = d.failed(ctx, &one)
	}
	if err := d.o.Store.Settle(note, one, after); err != nil {
		d.o.Log.LogAttrs(ctx, slog.LevelWarn, "a webhook's delivery was not written down", slog.String("message", one.Message), slog.Any("error", err))
	}
	return status
}

// failed says when a delivery is tried again, or makes it a dead letter.
func (d *Dispatcher) failed(ctx context.Context, one *Delivery) time.Duration {
	d.count(func(s *Stats) { s.Failed++ })
	level := slog.LevelInfo
	var after time.Duration
	if one.Tries < len(Schedule) {
		after = Schedule[one.Tries] + time.Duration(float64(Schedule[one.Tries])*d.o.Chance()/10)
	} else {
		one.State = Dead
		level = slog.LevelWarn
		d.count(func(s *Stats) { s.Dead++ })
		if d.o.Dead != nil {
			d.o.Dead(one.Kind)
		}
	}
	one.Tries++
	d.o.Log.LogAttrs(ctx, level, "webhook not delivered", slog.String("endpoint", one.Endpoint.Text(Prefix)), slog.String("message", one.Message),
		slog.Int("status", one.Status), slog.Int("tries", one.Tries), slog.String("state", one.State), slog.Duration("again_in", after))
	return after
}

// switchOff heeds 410 Gone: the endpoint wants no more.
func (d *Dispatcher) switchOff(ctx context.Context, e Endpoint) {
	current, err := d.o.Store.Endpoint(ctx, e.ID)
	if err != nil || current.URL != e.URL {
		return
	}
	current.On = false
	if err := d.o.Store.SetEndpoint(ctx, current); err != nil {
		return // the next 410 does it
	}
	d.o.Log.LogAttrs(ctx, slog.LevelWarn, "a webhook is switched off: it answered 410 Gone", slog.String("endpoint", e.ID.Text(Prefix)))
}

func (d *Dispatcher) count(f func(*Stats)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.stats)
}

func (d *Dispatcher) prune(ctx context.Context) error {
	now := d.o.Now()
	if now.Sub(d.pruned) < pruneEvery {
		return nil
	}
	n, err := d.o.Store.Prune(ctx, now.Add(-keepEnded), now.Add(-keepDead), pruneMax)
	if err == nil && n < pruneMax {
		d.pruned = now
	}
	return err
}
