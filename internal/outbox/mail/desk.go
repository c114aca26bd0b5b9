package mail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Bounds of a desk.
const (
	workersDefault       = 4
	bulkPerSecondDefault = 10
	urgentMaxDefault     = 1000
	pageOrders           = 200 // of a run, in one step
	holdFor              = 5 * time.Minute
	sendTimeout          = time.Minute
	stopGrace            = 5 * time.Second // for mails that are under way
	storeTimeout         = 10 * time.Second

	retryFirst   = 30 * time.Second
	retryMax     = time.Hour
	triesMin     = 10 // however old a job is
	giveUpAfter  = 3 * 24 * time.Hour
	keepEnded    = 8 * 24 * time.Hour // longer than the outbox keeps notices: none comes again after that
	keepDead     = 90 * 24 * time.Hour
	pruneMax     = 1000
	pruneEvery   = time.Hour
	deadPerAlert = time.Hour // an organizer's owners hear of dead letters at most so often
)

// Options say how a desk works.
type Options struct {
	Site   Site
	Sender Sender
	Facts  Facts
	Store  Store
	// Workers is how many mails are sent at once; one worker more only sends what is urgent. Defaults to 4.
	Workers int
	// BulkPerSecond bounds news of events, so that a mail server is not flooded with them. Defaults to 10.
	BulkPerSecond int
	// UrgentMax is how many codes and invitations may wait; more are refused. Defaults to 1000.
	UrgentMax int
	// Interval is how often it looks without being woken. Defaults to 1 s.
	Interval time.Duration
	// Tick replaces the ticker of Interval.
	Tick <-chan time.Time
	// Now is the clock. Defaults to the machine's.
	Now func() time.Time
	// Log is told of what fails, by ids. Defaults to slog.Default.
	Log *slog.Logger
	// Dead is told of each mail that will never be delivered; may be nil.
	Dead func(Kind)
	// Passed is called after each look at the store; may be nil.
	Passed func()
}

// Stats are counters since the desk was made.
type Stats struct {
	Sent      int64
	NoAddress int64 // customers who cannot be written to
	Nothing   int64 // nothing was to be told any more
	Retried   int64
	Dead      int64
	Dropped   int64 // urgent mails that were too old, or refused since too many waited
	Urgent    int   // waiting now
}

// A Desk sends what is to be sent: first codes and invitations, which wait in memory, then jobs, then news of events.
type Desk struct {
	o     Options
	wakes []chan struct{} // of the workers
	feed  chan struct{}

	running sync.Mutex
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu     sync.Mutex
	urgent []*urgent
	jobs   []Job // claimed
	stats  Stats

	// Only the feeder touches these.
	tokens  float64
	counted time.Time
	pruned  time.Time
}

// NewDesk makes a desk.
func NewDesk(o Options) *Desk {
	o.Workers = cmp.Or(o.Workers, workersDefault)
	o.BulkPerSecond = cmp.Or(o.BulkPerSecond, bulkPerSecondDefault)
	o.UrgentMax = cmp.Or(o.UrgentMax, urgentMaxDefault)
	o.Interval = cmp.Or(o.Interval, time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	d := &Desk{o: o, feed: make(chan struct{}, 1)}
	for range o.Workers + 1 {
		d.wakes = append(d.wakes, make(chan struct{}, 1))
	}
	return d
}

// Start begins to work in the background. Starting a running desk does nothing; a stopped one may be started again.
func (d *Desk) Start() {
	d.running.Lock()
	defer d.running.Unlock()
	if d.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	sending, stopSending := context.WithCancel(context.Background())
	d.cancel = cancel
	d.done.Go(func() { d.feeder(ctx) })
	var workers sync.WaitGroup
	for i := range d.wakes {
		workers.Go(func() { d.worker(ctx, sending, i) })
	}
	d.done.Go(func() {
		<-ctx.Done()
		grace := time.AfterFunc(stopGrace, stopSending)
		workers.Wait()
		grace.Stop()
		stopSending()
	})
}

// Stop ends the work after the mails under way, and returns when all is done. Jobs that were taken and not sent are due
// again; whoever waits for an urgent mail is told that it was not sent. Stopping twice is harmless.
func (d *Desk) Stop() {
	d.running.Lock()
	defer d.running.Unlock()
	if d.cancel == nil {
		return
	}
	d.cancel()
	d.done.Wait()
	d.cancel = nil
	d.mu.Lock()
	jobs, waiting := d.jobs, d.urgent
	d.jobs, d.urgent = nil, nil
	d.mu.Unlock()
	for _, u := range waiting {
		u.answer(errStopped)
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	for _, j := range jobs {
		if err := d.o.Store.DelayJob(ctx, j, 0, j.Last); err != nil {
			break // they are due by themselves in a while
		}
	}
}

// Wake lets the desk look for new jobs at once. It never waits.
func (d *Desk) Wake() { signal(d.feed) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (d *Desk) wakeWorkers() {
	for _, w := range d.wakes {
		signal(w)
	}
}

// Stats are the counters now.
func (d *Desk) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Urgent = len(d.urgent)
	return s
}

func (d *Desk) count(f func(*Stats)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.stats)
}

// Resend mails an order's tickets again, to the customer who bought them. Asking twice within a minute is once.
func (d *Desk) Resend(ctx context.Context, order ledger.Order) error {
	now := d.o.Now()
	err := d.o.Store.PutJobs(ctx, []Job{{
		Key:  fmt.Sprintf("%s.%s.again.%d", order.ID.Text(id.Order), KindTickets, now.Unix()/60),
		Kind: KindTickets, Customer: order.Customer, Order: order.ID, Event: order.Event, Created: now,
	}})
	d.Wake()
	return err
}

// Alert mails an alert that no notice tells of, a stopped sale, to the owners of the event's organizer. The same once.
func (d *Desk) Alert(ctx context.Context, alert string, event id.ID) error {
	now := d.o.Now()
	key := fmt.Sprintf("%s.%s.%d", event.Text(id.Event), KindAlert, now.Unix()/int64(deadPerAlert.Seconds()))
	jobs, err := alertJobs(ctx, d.o.Facts, key, alert, event, now)
	if err != nil {
		return err
	}
	if err := d.o.Store.PutJobs(ctx, jobs); err != nil {
		return err
	}
	d.Wake()
	return nil
}

func (d *Desk) worker(ctx, sending context.Context, i int) {
	for ctx.Err() == nil {
		if u := d.takeUrgent(); u != nil {
			d.sendUrgent(sending, u)
			continue
		}
		if i > 0 { // worker 0 is kept for what is urgent
			if j, ok := d.takeJob(); ok {
				d.sendJob(sending, j)
				continue
			}
			signal(d.feed)
		}
		select {
		case <-ctx.Done():
		case <-d.wakes[i]:
		}
	}
}

func (d *Desk) takeJob() (Job, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.jobs) == 0 {
		return Job{}, false
	}
	j := d.jobs[0]
	d.jobs = d.jobs[1:]
	return j, true
}

func (d *Desk) sendJob(ctx context.Context, j Job) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := d.deliver(ctx, j)
	note, stop := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout) // what happened is written down also while stopping
	defer stop()
	if err := d.settle(note, j, err); err != nil {
		d.o.Log.LogAttrs(ctx, slog.LevelWarn, "a mail's job was not written down", slog.String("job", j.Key), slog.Any("error", err))
	}
}

func (d *Desk) deliver(ctx context.Context, j Job) error {
	m, err := message(ctx, d.o.Facts, d.o.Store, j)
	if err != nil {
		return err
	}
	composed, err := Compose(d.o.Site, m)
	if err != nil {
		d.o.Log.LogAttrs(ctx, slog.LevelError, "a mail cannot be written", slog.String("job", j.Key), slog.Any("error", err))
		return &PermanentError{Status: "compose"}
	}
	return d.o.Sender.Send(ctx, composed)
}

// settle writes down what became of a job.
func (d *Desk) settle(ctx context.Context, j Job, err error) error {
	status, final := permanent(err)
	switch {
	case err == nil:
		d.count(func(s *Stats) { s.Sent++ })
		return d.o.Store.EndJob(ctx, j)
	case errors.Is(err, errNoAddress):
		d.count(func(s *Stats) { s.NoAddress++ })
		return d.o.Store.EndJob(ctx, j)
	case errors.Is(err, errNothing):
		d.count(func(s *Stats) { s.Nothing++ })
		return d.o.Store.EndJob(ctx, j)
	case final:
		return d.kill(ctx, j, status)
	case j.Tries+1 >= triesMin && d.o.Now().Sub(j.Created) > giveUpAfter:
		return d.kill(ctx, j, "gave up")
	}
	after := min(retryMax, retryFirst<<min(j.Tries, 16))
	d.count(func(s *Stats) { s.Retried++ })
	d.o.Log.LogAttrs(ctx, slog.LevelWarn, "mail not sent", slog.String("job", j.Key), slog.Int("tries", j.Tries+1), slog.Duration("again_in", after),
		slog.Any("error", err))
	return d.o.Store.DelayJob(ctx, j, after, temporaryStatus(err))
}

// temporaryStatus is what is stored of an error: one word, since texts of servers may hold addresses.
func temporaryStatus(err error) string {
	var t *TemporaryError
	if errors.As(err, &t) {
		return t.Status
	}
	return "not reached"
}

// kill keeps a job as a dead letter, and tells the owners.
func (d *Desk) kill(ctx context.Context, j Job, status string) error {
	if err := d.o.Store.KillJob(ctx, j, status); err != nil {
		return err
	}
	d.count(func(s *Stats) { s.Dead++ })
	d.o.Log.LogAttrs(ctx, slog.LevelError, "mail given up", slog.String("job", j.Key), slog.String("kind", string(j.Kind)), slog.String("status", status))
	if d.o.Dead != nil {
		d.o.Dead(j.Kind)
	}
	if j.Kind == KindAlert || j.Event == 0 {
		return nil // an alert about an alert would not arrive either
	}
	return d.Alert(ctx, AlertDeadLetter, j.Event)
}

// Revive makes dead letters due again, as after a wrong address was mended.
func (d *Desk) Revive(ctx context.Context, keys []string) (int, error) {
	n, err := d.o.Store.ReviveJobs(ctx, keys)
	d.Wake()
	return n, err
}
