package waitingroom

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"onsale/internal/draw"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// How a room opens. Freezing is three steps, each of which may be the last before a crash, and each of which gives the same when
// it is done again by whomever: the store is frozen (no drawn number after), the list is sealed (no drawn join after), and only
// then N and the list's hash become the ledger's. Until that is so nobody gets a number of the tail, so that a store that is lost in
// between changes nothing for anybody: N is another then, and the list is the same.

const (
	// otherNodes is how long a freeze waits, where the store is shared, for joins that are on their way on other nodes. One
	// that takes longer finds the list sealed and gets a number of the tail.
	otherNodes = 250 * time.Millisecond
	// landPatience is how long a freeze waits for joins of its own node.
	landPatience = time.Second
	// storePatience is how long a freeze waits for a store that is away. Then N is the high-water mark, below which all
	// drawn numbers are, and the sale opens all the same.
	storePatience = 5 * time.Second
	// beaconPatience is how long one look for the public value may take: less than a step, so that a beacon that hangs leaves the
	// time to draw without it.
	beaconPatience = 2 * time.Second
)

func commitment(k [32]byte) string { return draw.Commitment(k) }

// freeze ends the waiting phase.
func (k *keeper) freeze(ctx context.Context, p *picture) (time.Duration, error) {
	s, h := k.s, k.h
	counts, err := s.o.Store.Freeze(ctx, h.event)
	switch {
	case err == nil:
		k.frozenAt = time.Time{}
	case k.frozenAt.IsZero():
		k.frozenAt = s.o.Now()
		fallthrough
	case s.o.Now().Sub(k.frozenAt) < storePatience:
		if errors.Is(err, ErrUnknown) {
			s.lost(h, err.Error())
		}
		return drawEvery, fmt.Errorf("freeze the store: %w", err)
	default:
		s.o.Logger.Error("waiting room: the sale opens without the store; numbers of its last block that nobody has are drawn too",
			"event", int64(h.event), "error", err)
		counts = nil
		s.lost(h, "it was away when the sale opened")
	}
	landing, cancel := context.WithTimeout(ctx, landPatience)
	_ = h.flights.land(landing) // whoever is not done then finds the list sealed
	cancel()
	if run, err := s.o.Store.Run(ctx); err != nil || run != "" {
		select {
		case <-time.After(otherNodes):
		case <-ctx.Done():
			return drawEvery, ctx.Err()
		}
	}
	if err := s.o.Log.Seal(ctx, h.event); err != nil {
		return drawEvery, fmt.Errorf("seal the list of joins: %w", err)
	}
	room, _, err := s.readRoom(ctx, h.event) // the lanes and marks of now
	if err != nil {
		return drawEvery, err
	}
	hash, next, err := s.writeList(ctx, &room, io.Discard)
	if err != nil {
		return drawEvery, err
	}
	command := ledger.RoomFreeze{Event: h.event, ListHash: hex.EncodeToString(hash[:]), Lanes: frozenLanes(&room, counts, next)}
	result, err := s.o.Ledger.Do(ctx, command)
	if err != nil {
		k.read = time.Time{}
		return drawEvery, err
	}
	s.learn(h, *result.Room, true)
	return tick, nil
}

// frozenLanes is N of each lane: what the store has given out, or, where it is not known, the high-water mark; and never less than
// next, so that every number of the sealed list is drawn: a store that was lost after it was frozen, and mended before the list
// was sealed, has given more of them.
func frozenLanes(room *ledger.Room, counts []Count, next []int64) []ledger.LaneCount {
	lanes := make([]ledger.LaneCount, len(room.Lanes))
	for i, l := range room.Lanes {
		lanes[i].Lane = l.Key
		if counts == nil {
			lanes[i].Count = l.HighWater
		}
	}
	for _, c := range counts {
		if c.Lane < len(lanes) {
			lanes[c.Lane].Count = min(c.Count, room.Lanes[c.Lane].HighWater)
		}
	}
	for i := range lanes {
		lanes[i].Count = max(lanes[i].Count, next[i])
	}
	return lanes
}

// writeList writes the list of an event's drawn joins, and gives its hash and, by lane, the number behind its greatest.
func (s *Service) writeList(ctx context.Context, room *ledger.Room, to io.Writer) (hash [32]byte, next []int64, err error) {
	keys := make([]string, len(room.Lanes))
	for i, l := range room.Lanes {
		keys[i] = l.Key
	}
	w, err := draw.NewListWriter(to, keys)
	if err != nil {
		return hash, nil, err
	}
	next = make([]int64, len(keys))
	err = s.o.Log.Replay(ctx, room.Event, true, func(r Record) error {
		if err := w.Add(r.Lane, r.Number, r.Entry); err != nil {
			return err
		}
		next[r.Lane] = r.Number + 1 // they come in order
		return nil
	})
	if err != nil {
		return hash, nil, fmt.Errorf("read the list of joins: %w", err)
	}
	hash, _, err = w.Close()
	return hash, next, err
}

// WriteList writes the list of joins whose hash is published, as draw.ListWriter does.
//
// Faults: event_unknown; conflict (not frozen yet); busy. Other errors are those of writing.
func (s *Service) WriteList(ctx context.Context, event id.ID, to io.Writer) error {
	room, committed, err := s.readRoom(ctx, event)
	if err != nil {
		return err
	}
	if !committed {
		if _, err := s.hall(ctx, event); err != nil {
			return err
		}
	}
	if room.Phase < ledger.RoomDrawing {
		return fault.New(fault.Conflict, "the list of joins is fixed when the sale opens")
	}
	_, _, err = s.writeList(ctx, &room, to)
	return err
}

// draw makes the draw when the public value is in, or will not come (C3).
func (k *keeper) draw(ctx context.Context, p *picture, now ledger.Time) error {
	s, h := k.s, k.h
	room := &p.room
	waits := now < room.Frozen+ledger.Time(p.rule.Room.DrawWaitFor())
	if room.Source != "" && s.o.Beacon != nil {
		asking, cancel := context.WithTimeout(ctx, beaconPatience)
		value, public, err := s.o.Beacon.Value(asking, room.Source)
		cancel()
		switch {
		case err == nil && value != "" && len(value) <= DrawValueBytesMax:
			// A value that was public before the list was fixed proves nothing.
			return s.drawWith(ctx, h, value, !public.Before(room.Frozen.Std()))
		case err == nil:
			err = fmt.Errorf("it has %d bytes", len(value))
			fallthrough
		case !errors.Is(err, ErrNoValue) && waits:
			return fmt.Errorf("the public value: %w", err)
		}
	}
	if room.Source != "" && waits {
		return nil
	}
	return s.drawWith(ctx, h, "", false)
}

// drawWith publishes K. Whoever is first draws; another value after that changes nothing, and whoever brings it is told.
func (s *Service) drawWith(ctx context.Context, h *hall, value string, provable bool) error {
	secret, err := s.o.Draw(ctx, h.event)
	if err != nil {
		return s.away("read K", err)
	}
	result, err := s.o.Ledger.Do(ctx, ledger.RoomDraw{Event: h.event, Value: value, Provable: provable, K: hex.EncodeToString(secret[:])})
	if err != nil {
		return err
	}
	s.learn(h, *result.Room, true)
	h.wake()
	if result.Repeat && value != "" && result.Room.Value != value {
		return fault.New(fault.Conflict, "the draw was made already")
	}
	return nil
}
