package booking

import (
	"context"
	"errors"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

const (
	// waitlistEvery is how often each event's waitlist is looked at: well below the 2 s in which what nobody wants is to be
	// back in the sale.
	waitlistEvery = 500 * time.Millisecond
	// eventsEvery is how often the worker looks which events have a waitlist.
	eventsEvery = ledger.Time(2_000)

	waitlistLease = "waitlist"
	leaseTTL      = ledger.Duration(10_000)
	leaseRenew    = ledger.Time(3_000)
)

// Run serves every event that has a waitlist until ctx ends. Of all nodes one does it at a time, by a lease: when that one dies
// another goes on within 10 s, and what is returned meanwhile is anybody's after ledger.ReturnedPatience.
func (w *Waitlist) Run(ctx context.Context) {
	tick := w.o.Tick
	if tick == nil {
		ticker := time.NewTicker(waitlistEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	r := runner{Waitlist: w}
	defer r.end(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		done, err := r.pass(ctx)
		if err != nil && ctx.Err() == nil {
			w.o.Logger.WarnContext(ctx, "serving the waitlists failed and will be tried again", "error", err)
		}
		if w.o.Passed != nil {
			w.o.Passed(done, err)
		}
	}
}

// A runner is what one Run knows from pass to pass.
type runner struct {
	*Waitlist
	lease   ledger.Lease
	held    bool
	renewed ledger.Time

	events   []id.ID
	listed   ledger.Time    // when they were, 0: not yet
	finished map[id.ID]bool // events whose sale is over, and nobody is on their list
}

// pass is one round for every event, where this process holds the lease.
func (r *runner) pass(ctx context.Context) (all Served, err error) {
	l := r.o.Shard.Ledger()
	now, err := l.Now(ctx)
	if err != nil {
		return all, err
	}
	if !r.held || now >= r.renewed+leaseRenew || now < r.renewed {
		if r.lease, r.held, err = l.Acquire(ctx, waitlistLease, r.o.Holder, leaseTTL); err != nil || !r.held {
			return all, err
		}
		r.renewed = now
	}
	if r.listed == 0 || now >= r.listed+eventsEvery || now < r.listed {
		if err := r.list(ctx, now); err != nil {
			return all, err
		}
		r.listed = now
	}
	for _, event := range r.events {
		done, failed := r.Serve(ctx, event)
		all.add(done)
		if failed != nil {
			err = errors.Join(err, failed) // one event keeps no other waiting
		}
		if ctx.Err() != nil {
			break
		}
	}
	return all, err
}

func (d *Served) add(o Served) {
	d.Settled, d.Offered, d.Released = d.Settled+o.Settled, d.Offered+o.Offered, d.Released+o.Released
	d.Turned, d.More = d.Turned || o.Turned, d.More || o.More
}

// list finds the events to serve: those that have a waitlist, and those whose freed places still go to one. Where the sale is
// over, only until nobody is on the list any more.
func (r *runner) list(ctx context.Context, now ledger.Time) error {
	all, err := r.o.Shard.Ledger().Events(ctx)
	if err != nil {
		return err
	}
	r.events = r.events[:0]
	finished := map[id.ID]bool{}
	for i := range all {
		e := &all[i]
		if !e.Waitlist && e.Returns != ledger.ReturnsWaitlist {
			continue
		}
		if saleOver(e, now) {
			if finished[e.ID] = r.finished[e.ID]; !finished[e.ID] {
				open, err := r.anyOpen(ctx, e.ID)
				if err != nil {
					return err
				}
				finished[e.ID] = !open
			}
		}
		if !finished[e.ID] {
			r.events = append(r.events, e.ID)
		}
	}
	r.finished = finished
	r.forget(r.events)
	return nil
}

func (w *Waitlist) anyOpen(ctx context.Context, event id.ID) (bool, error) {
	for _, state := range []ledger.WishState{ledger.WishOffered, ledger.WishWaiting} {
		found, err := w.o.Shard.Ledger().Wishes(ctx, event, state, ledger.WishCursor{}, 1)
		if err != nil || len(found) > 0 {
			return true, err
		}
	}
	return false, nil
}

// forget lets go of what is remembered of events that are not served any more.
func (w *Waitlist) forget(but []id.ID) {
	keep := make(map[id.ID]*memory, len(but))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, event := range but {
		if m := w.memories[event]; m != nil {
			keep[event] = m
		}
	}
	w.memories = keep
}

// end gives the lease back, so that another node need not wait for it.
func (r *runner) end(ctx context.Context) {
	if !r.held {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := r.o.Shard.Ledger().ReleaseLease(ctx, r.lease); err != nil {
		r.o.Logger.WarnContext(ctx, "the lease of the waitlists was not given back", "error", err)
	}
}
