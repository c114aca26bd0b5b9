package inventory

import (
	"context"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/ledger"
)

// A want is what a board needs from the ledger.
type want uint8

const (
	wantNothing  want = iota
	wantSnapshot      // it has no picture, or does not trust it
	wantChanges       // it has heard of later changes than it has
	wantConfig        // the event's own row has changed
)

func (b *Board) wants() want {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.loaded || b.distrust:
		return wantSnapshot
	case !b.complete():
		return wantChanges
	case b.reread:
		return wantConfig
	}
	return wantNothing
}

// doubt says that the outcome of a commit is unknown, or that changes are lost: only a snapshot tells.
func (b *Board) doubt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mistrust()
	b.publish()
}

func (b *Board) setRules(r Rules) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rules = r.withDefaults(b.layout)
	b.publish()
}

// Fresh says whether the board has heard from the ledger lately enough to say no (B1).
func (b *Board) Fresh(clock time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fresh(clock)
}

// Run does the background work until ctx ends: it keeps the boards fresh, sends the streams and releases expired holds.
// When it returns, every seat stream has ended. It may be run again.
func (s *Service) Run(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { s.every(ctx, s.options.RefreshEvery, s.nudge, func() { s.Refresh(ctx) }) })
	work.Go(func() { s.every(ctx, s.options.GatherEvery, nil, s.Flush) })
	work.Go(func() { s.every(ctx, s.options.BeatEvery, nil, s.Beat) })
	if !s.options.NoPromptRelease {
		r := releaser{}
		work.Go(func() { s.every(ctx, s.options.ReleaseEvery, nil, func() { s.release(ctx, &r) }) })
	}
	if !s.options.NoSweep {
		work.Go(func() { s.every(ctx, s.options.SweepEvery, nil, func() { s.Sweep(ctx) }) })
	}
	work.Wait()
	s.hub.endAll()
}

func (s *Service) every(ctx context.Context, every time.Duration, nudge <-chan struct{}, do func()) {
	ticks, stop := s.options.Tick(every)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		case <-nudge:
		}
		do()
	}
}

// Flush sends to the streams what has changed since the last time (B3). Run does it.
func (s *Service) Flush() { s.hub.flush() }

// Beat sends the streams' heartbeat (B2). Run does it.
func (s *Service) Beat() { s.hub.beat() }

// Refresh asks the ledger for what others have changed, for every board. Run does it.
func (s *Service) Refresh(ctx context.Context) {
	for _, b := range s.all() {
		limit := RefreshMax
		if b.wants() == wantSnapshot {
			limit = SnapshotMax
		}
		if err := s.refresh(ctx, b, limit); err != nil && ctx.Err() == nil {
			s.options.Logger.Warn("a board cannot be refreshed", "event", int64(b.event), "error", err)
		}
	}
}

// refresh brings one board up to date within a time.
func (s *Service) refresh(ctx context.Context, b *Board, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := b.startRefreshing(ctx); err != nil {
		return err
	}
	defer b.endRefreshing()
	return s.refreshLocked(ctx, b)
}

// startRefreshing waits until nobody else asks the ledger for this board.
func (b *Board) startRefreshing(ctx context.Context) error {
	select {
	case b.refreshing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Board) endRefreshing() { <-b.refreshing }

// refreshLocked is refresh, with b.refreshing held.
func (s *Service) refreshLocked(ctx context.Context, b *Board) error {
	b.tried = s.options.Now()
	var err error
	for range ReloadsMax {
		if b.wants() == wantSnapshot {
			err = s.snapshot(ctx, b)
		} else {
			err = s.follow(ctx, b)
		}
		if err == nil && b.wants() == wantConfig {
			var row ledger.Event
			if row, err = s.batcher.Ledger().Event(ctx, b.event); err == nil {
				b.reconfigure(row)
			}
		}
		if err != nil || b.wants() == wantNothing {
			return err
		}
	}
	return nil // the event moves faster than we can look; its next change, or the next time, brings us further
}

// refreshStale brings a board up to date where nobody else has done so, or tried to, meanwhile: of the many who find
// nothing on a stale board one asks the ledger, and the others wait for that alone, and never longer than RefreshMax.
func (s *Service) refreshStale(ctx context.Context, b *Board) error {
	asked := s.options.Now()
	ctx, cancel := context.WithTimeout(ctx, RefreshMax)
	defer cancel()
	if err := b.startRefreshing(ctx); err != nil {
		return err
	}
	defer b.endRefreshing()
	if b.tried.After(asked) || b.Fresh(s.options.Now()) {
		return nil
	}
	return s.refreshLocked(ctx, b)
}

func (s *Service) snapshot(ctx context.Context, b *Board) error {
	s.counters.snapshots.Add(1)
	asked := s.options.Now()
	picture, err := s.batcher.Ledger().Snapshot(ctx, b.event)
	if err != nil {
		return err
	}
	return b.load(&picture, asked, s.options.Now())
}

// follow reads the changes since the board's version.
func (s *Service) follow(ctx context.Context, b *Board) error {
	s.counters.refreshes.Add(1)
	for {
		asked, version := s.options.Now(), b.Version()
		changes, gap, err := s.batcher.Ledger().ChangesSince(ctx, b.event, version, RefreshChangesMax)
		if err != nil {
			return err
		}
		if gap {
			b.doubt()
			return nil
		}
		for i := range changes {
			b.apply(&changes[i], changes[i].At, asked, false)
		}
		if len(changes) < RefreshChangesMax {
			b.confirm(version+int64(len(changes)), asked)
			return nil
		}
	}
}

// A releaser knows when the next hold of the shard runs out.
type releaser struct {
	asked time.Time   // when the ledger was asked
	due   time.Time   // by our clock; zero: none
	next  ledger.Time // what the ledger said; 0: none
}

// release sends a Sweep as soon as a hold has run out. New holds run out later than those there are, or so nearly that
// asking once a second is prompt enough. A hold that a Sweep leaves behind (of a stopped event, or one too many) is not
// swept again at once: it would be ten times a second, for ever.
func (s *Service) release(ctx context.Context, r *releaser) {
	clock := s.options.Now()
	due := !r.due.IsZero() && !clock.Before(r.due)
	if due {
		s.Sweep(ctx)
	}
	if !due && !r.asked.IsZero() && clock.Sub(r.asked) < time.Second {
		return
	}
	before := r.next
	r.asked, r.due, r.next = clock, time.Time{}, 0
	ctx, cancel := context.WithTimeout(ctx, RefreshMax)
	defer cancel()
	reader := s.batcher.Ledger()
	next, err := reader.NextExpiry(ctx)
	if err != nil || next == 0 {
		return
	}
	now, err := reader.Now(ctx)
	if err != nil {
		return
	}
	r.next, r.due = next, clock.Add(ledger.Duration(next-now).Std())
	if due && next <= before && next <= now {
		r.due = clock.Add(sweepAgain)
	}
}

// Sweep ends the expired holds of the shard. Run does it, promptly and, as a safety net, from time to time; nothing's
// correctness depends on either.
func (s *Service) Sweep(ctx context.Context) {
	for range SweepsMax {
		s.counters.sweeps.Add(1)
		r, err := s.batcher.Do(ctx, ledger.Sweep{Max: SweepMax})
		if err != nil {
			if code := fault.CodeOf(err); ctx.Err() == nil && code != fault.Busy && code != fault.OutcomeUnknown {
				s.options.Logger.Warn("expired holds cannot be swept", "error", err)
			}
			return
		}
		if !r.More {
			return
		}
	}
}
