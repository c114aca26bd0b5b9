package mail

import (
	"context"
	"log/slog"
	"time"

	"onsale/internal/id"
)

// feeder keeps the workers in jobs, goes on with runs, and prunes.
func (d *Desk) feeder(ctx context.Context) {
	tick := d.o.Tick
	if tick == nil {
		ticker := time.NewTicker(d.o.Interval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		if err := d.look(ctx); err != nil && ctx.Err() == nil {
			d.o.Log.LogAttrs(ctx, slog.LevelWarn, "mails wait: the jobs cannot be read", slog.Any("error", err))
		}
		d.expireUrgent()
		d.wakeIfReady()
		if d.o.Passed != nil {
			d.o.Passed()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		case <-d.feed:
		}
	}
}

// wakeIfReady wakes workers only for something that they can take, or the two would wake each other for ever.
func (d *Desk) wakeIfReady() {
	d.mu.Lock()
	ready := len(d.jobs) > 0
	now := d.o.Now()
	for _, u := range d.urgent {
		ready = ready || !u.due.After(now)
	}
	d.mu.Unlock()
	if ready {
		d.wakeWorkers()
	}
}

func (d *Desk) look(ctx context.Context) error {
	for ctx.Err() == nil {
		more, err := d.fill(ctx)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return d.prune(ctx)
}

// fill claims jobs as long as there is room for them. more says that a run has made some.
func (d *Desk) fill(ctx context.Context) (more bool, err error) {
	room := d.room()
	if room == 0 {
		return false, nil
	}
	jobs, err := d.o.Store.ClaimJobs(ctx, false, holdFor, room)
	if err != nil {
		return false, err
	}
	d.add(jobs)
	if room = min(room-len(jobs), d.bulkAllowed()); room == 0 {
		return false, nil
	}
	bulk, err := d.o.Store.ClaimJobs(ctx, true, holdFor, room)
	if err != nil {
		return false, err
	}
	d.tokens -= float64(len(bulk))
	d.add(bulk)
	if len(bulk) == room {
		return false, nil
	}
	return d.goOn(ctx) // no bulk job waits: make some
}

// room is how many jobs may be claimed beside those that wait: few, since another node may be idle.
func (d *Desk) room() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(0, 2*d.o.Workers-len(d.jobs))
}

func (d *Desk) add(jobs []Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.jobs = append(d.jobs, jobs...)
}

// bulkAllowed is how many bulk mails the rate allows now.
func (d *Desk) bulkAllowed() int {
	now := d.o.Now()
	if !d.counted.IsZero() && now.After(d.counted) {
		d.tokens += now.Sub(d.counted).Seconds() * float64(d.o.BulkPerSecond)
	}
	d.counted = now
	d.tokens = min(d.tokens, float64(d.o.BulkPerSecond))
	return max(0, int(d.tokens))
}

// goOn makes the jobs of the next page of a run.
func (d *Desk) goOn(ctx context.Context) (bool, error) {
	run, ok, err := d.o.Store.ClaimRun(ctx, holdFor)
	if err != nil || !ok {
		return false, err
	}
	orders, err := d.o.Facts.OrdersOfEvent(ctx, run.Event, run.Cursor, pageOrders)
	if err != nil {
		return false, err
	}
	var jobs []Job
	for i := range orders {
		o := &orders[i]
		gone, err := goneByCancellation(ctx, d.o.Facts, &run, o)
		if err != nil {
			return false, err
		}
		jobs = append(jobs, recipients(&run, o, gone)...)
		run.Cursor = o.ID
	}
	now := d.o.Now()
	for i := range jobs {
		jobs[i].Created = now
	}
	run.Made += len(jobs)
	run.Done = len(orders) < pageOrders
	if err := d.o.Store.AdvanceRun(ctx, run, jobs); err != nil {
		return false, err
	}
	d.o.Log.LogAttrs(ctx, slog.LevelInfo, "news of an event", slog.String("event", run.Event.Text(id.Event)), slog.String("kind", string(run.Kind)),
		slog.Int("mails", run.Made), slog.Bool("done", run.Done))
	return true, nil
}

func (d *Desk) prune(ctx context.Context) error {
	now := d.o.Now()
	if now.Sub(d.pruned) < pruneEvery {
		return nil
	}
	n, err := d.o.Store.PruneJobs(ctx, now.Add(-keepEnded), now.Add(-keepDead), pruneMax)
	if err == nil && n < pruneMax {
		d.pruned = now
	}
	return err
}
