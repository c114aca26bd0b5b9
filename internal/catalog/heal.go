package catalog

import (
	"context"
	"errors"
	"time"

	"onsale/internal/id"
)

// healPage is how many events Heal reads at once.
const healPage = 100

// Heal sends the ledger every event whose current version it may not have, because of a crash or a ledger that was away
// between the two writes. Sending what is there already is harmless. It answers how many were sent, and what failed.
func (s *Service) Heal(ctx context.Context) (sent int, failed error) {
	return s.healAll(ctx, s.o.Store.Unsent)
}

// Restore is Heal for all events that are not over, also those that the store believes to be sent: for the start of the
// program, since the ledger may have been restored from a backup.
func (s *Service) Restore(ctx context.Context) (sent int, failed error) {
	q := Query{Drafts: true, From: s.now().Add(-24 * time.Hour), Max: healPage}
	return s.healAll(ctx, func(ctx context.Context, after id.ID, _ int) ([]Event, error) {
		if after != 0 {
			last, err := s.o.Store.Event(ctx, after)
			if err != nil {
				return nil, err
			}
			q.After = Cursor{Starts: last.Starts, Event: last.ID}
		}
		return s.o.Store.Events(ctx, q)
	})
}

func (s *Service) healAll(ctx context.Context, next func(ctx context.Context, after id.ID, max int) ([]Event, error)) (sent int, failed error) {
	var after id.ID
	for {
		events, err := next(ctx, after, healPage)
		if err != nil {
			return sent, errors.Join(failed, err)
		}
		for i := range events {
			if err := s.send(ctx, &events[i]); err != nil {
				failed = errors.Join(failed, err)
				s.o.Log.Error("an event was not sent to the ledger", "event", events[i].ID.Text(id.Event), "error", err)
			} else {
				sent++
			}
			if ctx.Err() != nil {
				return sent, ctx.Err()
			}
		}
		if len(events) < healPage {
			return sent, failed
		}
		after = events[len(events)-1].ID
	}
}

// Run heals once in a while, until the context ends. After each round it calls done (which may be nil).
func (s *Service) Run(ctx context.Context, every time.Duration, done func(sent int, failed error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			sent, failed := s.Heal(ctx)
			if sent > 0 {
				s.o.Log.Info("events sent to the ledger again", "count", sent)
			}
			if done != nil {
				done(sent, failed)
			}
		}
	}
}
