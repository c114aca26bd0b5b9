package waitingroom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"onsale/internal/ledger"
)

// How a store that has lost something is mended (C12). What counts is elsewhere: which numbers were given at all is bounded by the
// high-water mark in the ledger, who has which is in the log, and on every signed ticket. So a store is filled from these, its
// counters beginning at the high-water mark; joins are told to come again meanwhile, while calling and entering go on.
//
// Several nodes may do it at once: nothing that they do lowers anything.

// mendPatience is how long one attempt may take, for two million joins over a network.
const mendPatience = 2 * time.Minute

// rememberBatch is how many records go into the store at once.
const rememberBatch = 1_024

// lost says that the store cannot be trusted with an event: nobody joins until it is mended.
func (s *Service) lost(h *hall, why string) {
	h.mu.Lock()
	was := h.state
	h.suspect = true
	if was == storeGood {
		h.state = storeUnknown
	}
	h.mu.Unlock()
	if was == storeGood {
		s.counters.recoveries.Add(1)
		s.o.Logger.Warn("waiting room: the store has lost something and is mended from the log", "event", int64(h.event), "why", why)
	}
	h.wake()
}

// watchStore looks whether the store has lost something, and has it mended. It never waits for that: calling goes on.
func (k *keeper) watchStore(ctx context.Context, p *picture) {
	s, h := k.s, k.h
	h.mu.Lock()
	state := h.state
	h.mu.Unlock()
	switch {
	case state == storeMending:
		return
	case state == storeGood && !k.due(&k.stored, storeEvery):
		return
	case state == storeGood:
		s.checkStore(ctx, h)
		k.endStore(ctx, p)
		return
	case !k.due(&k.stored, drawEvery):
		return
	}
	h.mu.Lock()
	h.state = storeMending
	h.mu.Unlock()
	k.mending.Go(func() {
		ctx, cancel := context.WithTimeout(s.life, mendPatience)
		defer cancel()
		err := s.mend(ctx, h)
		h.mu.Lock()
		h.state = storeGood
		if err != nil {
			h.state = storeUnknown
		}
		h.mu.Unlock()
		if err != nil && s.life.Err() == nil {
			s.o.Logger.Warn("waiting room: the store is not mended yet", "event", int64(h.event), "error", err)
		}
		h.wake()
	})
}

// checkStore compares the store with what is known of it.
func (s *Service) checkStore(ctx context.Context, h *hall) {
	h.mu.Lock()
	run := h.run
	seen := make([]int64, len(h.lanes)) // what is known before the question must be in the answer
	for i := range h.lanes {
		seen[i] = h.lanes[i].seen
	}
	h.mu.Unlock()
	counts, err := s.o.Store.Counts(ctx, h.event)
	now, errRun := s.o.Store.Run(ctx)
	switch {
	case errors.Is(err, ErrUnknown):
		s.lost(h, err.Error())
		return
	case err != nil || errRun != nil:
		return // away: joins say so themselves
	case now != run:
		s.lost(h, "its life is another")
		return
	}
	for i, n := range seen {
		if told := countOf(counts, i); told < n {
			s.lost(h, fmt.Sprintf("lane %d has given %d numbers, it says %d", i, n, told))
			return
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range seen {
		h.lanes[i].seen = max(h.lanes[i].seen, countOf(counts, i))
	}
}

func countOf(counts []Count, lane int) int64 {
	for _, c := range counts {
		if c.Lane == lane {
			return c.Count
		}
	}
	return 0
}

// endStore lets nobody join any more when the room is over.
func (k *keeper) endStore(ctx context.Context, p *picture) {
	if p.rule.Room.Closed || k.s.shardNow() >= p.rule.SaleCloses {
		_ = k.s.o.Store.Restore(ctx, k.h.event, State{Phase: Ended}) // joins are refused before they come to the store
	}
}

// mend makes the store good for an event. Where it is good already, since another node has seen to it, it only looks.
func (s *Service) mend(ctx context.Context, h *hall) error {
	h.mu.Lock()
	suspect := h.suspect
	h.mu.Unlock()
	run, err := s.o.Store.Run(ctx)
	if err != nil {
		return err
	}
	room, committed, err := s.readRoom(ctx, h.event)
	if err != nil {
		return err
	}
	if !committed {
		return errors.New("the room is not open for waiting yet")
	}
	s.learn(h, room, true)
	next, err := s.o.Log.Next(ctx, h.event)
	if err != nil {
		return fmt.Errorf("read the log of joins: %w", err)
	}
	counts, err := s.o.Store.Counts(ctx, h.event)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return err
	}
	good := err == nil && !suspect
	for _, c := range next {
		good = good && countOf(counts, c.Lane) >= c.Count
	}
	state := State{Phase: Waiting, Lanes: make([]LaneState, len(room.Lanes))}
	if room.Phase > ledger.RoomWaiting {
		state.Phase = Tail
	}
	for i, l := range room.Lanes {
		state.Lanes[i] = LaneState{Next: max(l.HighWater, l.N, countOf(next, i)), Limit: l.HighWater}
		if good {
			state.Lanes[i].Next = countOf(counts, i)
		}
	}
	if !good {
		if err := s.refill(ctx, h); err != nil {
			return err
		}
	}
	if err := s.o.Store.Restore(ctx, h.event, state); err != nil {
		return err
	}
	// A store that was lost once more meanwhile is found by its run, or by its counters, at the next look.
	h.mu.Lock()
	defer h.mu.Unlock()
	h.run, h.suspect = run, false
	for i := range state.Lanes {
		h.lanes[i].limit, h.lanes[i].seen = state.Lanes[i].Limit, max(h.lanes[i].seen, state.Lanes[i].Next)
	}
	return nil
}

// refill tells the store who has which number.
func (s *Service) refill(ctx context.Context, h *hall) error {
	batch := make([]Record, 0, rememberBatch)
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := s.o.Store.Remember(ctx, batch)
		batch = batch[:0]
		return err
	}
	err := s.o.Log.Replay(ctx, h.event, false, func(r Record) error {
		if batch = append(batch, r); len(batch) < rememberBatch {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}
