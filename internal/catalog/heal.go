package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// healPage is how many events Heal reads at once.
const healPage = 100

// Heal sends the ledger every event whose current version it may not have, because of a crash or a ledger that was away
// between the two writes. Sending what is there already is harmless. It answers how many were sent, and what failed.
func (s *Service) Heal(ctx context.Context) (sent int, failed error) {
	sent, err := s.healAll(ctx, s.o.Store.Unsent, func(_ *Event, err error) error {
		failed = errors.Join(failed, err)
		return nil
	})
	return sent, errors.Join(failed, err)
}

// An EventError says why one event is not in order.
type EventError struct {
	Event id.ID
	Err   error
}

func (e *EventError) Error() string { return e.Event.Text(id.Event) + ": " + e.Err.Error() }

func (e *EventError) Unwrap() error { return e.Err }

// Restore is Heal for all events that are not over, also those that the store believes to be sent: for the start of the
// program, since the ledger may have been restored from a backup. refused are events that the ledger will not have or
// whose plan cannot be read: the others are sent all the same. An error says that the store or the ledger is away.
func (s *Service) Restore(ctx context.Context) (sent int, refused []*EventError, err error) {
	q := Query{Drafts: true, From: s.now().Add(-24 * time.Hour), Max: healPage}
	sent, err = s.healAll(ctx, func(ctx context.Context, after id.ID, _ int) ([]Event, error) {
		if after != 0 {
			last, err := s.o.Store.Event(ctx, after)
			if err != nil {
				return nil, err
			}
			q.After = Cursor{Starts: last.Starts, Event: last.ID}
		}
		return s.o.Store.Events(ctx, q)
	}, func(e *Event, err error) error {
		if code := fault.CodeOf(err); code == fault.Busy || code == fault.OutcomeUnknown {
			return fmt.Errorf("the ledger is away: %w", err)
		}
		refused = append(refused, &EventError{Event: e.ID, Err: err})
		return nil
	})
	return sent, refused, err
}

// healAll sends page after page. failed is told of each event that was not sent; its error, as that of a page, ends it.
func (s *Service) healAll(ctx context.Context, next func(ctx context.Context, after id.ID, max int) ([]Event, error),
	failed func(*Event, error) error) (sent int, err error) {
	var after id.ID
	for {
		events, err := next(ctx, after, healPage)
		if err != nil {
			return sent, err
		}
		for i := range events {
			if err := s.send(ctx, &events[i]); err != nil {
				s.o.Log.Error("an event was not sent to the ledger", "event", events[i].ID.Text(id.Event), "error", err)
				if err := failed(&events[i], err); err != nil {
					return sent, err
				}
			} else {
				sent++
			}
			if ctx.Err() != nil {
				return sent, ctx.Err()
			}
		}
		if len(events) < healPage {
			return sent, nil
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
