package waitingroom

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"onsale/internal/draw"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// joinTries is how often one join asks the store again: for more numbers, for one behind a list that was sealed meanwhile.
const joinTries = 32

// Join gives a customer a number, or the one that they have, whatever lane is asked for. What it answers is durable.
//
// A number that was used up, by a session that has ended, is given up, and the customer gets one at the tail (C7).
//
// Faults: event_unknown; conflict (the event has no waiting room); not_on_sale (not open for joining yet, or over); invalid
// (lane); already_in_line; busy, with RetryAfter (store, log or ledger away, being mended, too many joins at once, or the draw is
// just being frozen).
func (s *Service) Join(ctx context.Context, r JoinRequest) (Place, error) {
	ctx, cancel := context.WithTimeout(ctx, JoinPatience)
	defer cancel()
	place, err := s.join(ctx, r)
	switch {
	case err == nil:
		s.counters.joins.Add(1)
		if place.New {
			s.counters.joinsNew.Add(1)
		}
		return place, nil
	case errors.Is(err, context.DeadlineExceeded):
		err = &fault.Error{Code: fault.Busy, RetryAfter: retrySoon, Cause: err}
	}
	if fault.CodeOf(err) == fault.Busy {
		s.counters.joinsBusy.Add(1)
	}
	return Place{}, err
}

func (s *Service) join(ctx context.Context, r JoinRequest) (Place, error) {
	h, err := s.hall(ctx, r.Event)
	if err != nil {
		return Place{}, err
	}
	p := h.picture.Load()
	if f := p.joinable(s.shardNow()); f != nil {
		return Place{}, f
	}
	h.mu.Lock()
	good := h.state == storeGood
	h.mu.Unlock()
	if !p.committed || p.room.Phase == ledger.RoomClosed || !good {
		h.wake()
		return Place{}, busy("the waiting room is being opened")
	}
	lane, ok := p.lane(r.Lane)
	if !ok {
		return Place{}, &fault.Error{Code: fault.Invalid, Field: "lane", Detail: "there is no such lane"}
	}
	asked := Join{Event: r.Event, Customer: r.Customer, Lane: lane, Identity: r.Identity}
	for range joinTries {
		place, again, err := s.tryJoin(ctx, h, asked)
		if !again {
			return place, err
		}
	}
	return Place{}, busy("the store does not come to an end with this join")
}

func busy(detail string) *fault.Error {
	return &fault.Error{Code: fault.Busy, RetryAfter: retrySoon, Detail: detail}
}

// tryJoin takes a number and makes it durable. again says that something was done about what stood in the way.
func (s *Service) tryJoin(ctx context.Context, h *hall, asked Join) (place Place, again bool, err error) {
	defer h.flights.begin()()
	limit := h.limit(asked.Lane)
	joined, err := s.o.Store.Join(ctx, asked)
	if err != nil {
		return s.refusedJoin(ctx, h, asked.Lane, limit, err)
	}
	h.saw(joined)
	s.raiseAhead(h, joined)
	room := &h.picture.Load().room
	if joined.Lane >= len(room.Lanes) {
		return Place{}, false, busy("a new lane is being opened")
	}
	frozen := room.Phase > ledger.RoomWaiting
	if !joined.Drawn && !frozen {
		// N is not durable yet. Were the store lost now, another N could take this number into the draw.
		h.wake()
		return Place{}, false, busy("the draw is being frozen")
	}
	if frozen && joined.Drawn != (joined.Number < room.Lanes[joined.Lane].N) {
		return Place{}, false, s.void(ctx, h, asked.Customer, joined, "it is on the wrong side of N")
	}
	record, err := s.record(ctx, h, asked, joined)
	switch {
	case errors.Is(err, ErrSealed), errors.Is(err, ErrNumberTaken) && !joined.New:
		// It came too late for the list: the number is void, the next one is of the tail. Or the customer is just leaving: the log
		// knows it already, the store does not yet.
		if err := s.o.Store.Leave(ctx, h.event, asked.Customer, joined.Number); err != nil {
			return Place{}, false, s.away("give a number back", err)
		}
		return Place{}, true, nil
	case errors.Is(err, ErrNumberTaken):
		return Place{}, false, s.void(ctx, h, asked.Customer, joined, "the log has it as another's")
	case err != nil:
		return Place{}, false, err
	}
	if record.Lane >= len(room.Lanes) {
		return Place{}, false, busy("a new lane is being opened")
	}
	if used, err := s.usedUp(ctx, h, &record); err != nil || used {
		return Place{}, used, err
	}
	isNew := joined.New && record.Number == joined.Number && record.Lane == joined.Lane
	place, err = s.place(&record, room.Lanes[record.Lane].Key, isNew)
	if isNew && room.Phase == ledger.RoomOpen {
		h.wake() // nobody may wait for the next look where nobody has to wait at all (C10)
	}
	return place, false, err
}

// refusedJoin does something about a store's refusal, where it can.
func (s *Service) refusedJoin(ctx context.Context, h *hall, lane int, limit int64, refusal error) (Place, bool, error) {
	switch {
	case errors.Is(refusal, ErrLimit):
		if err := s.raise(ctx, h, lane, limit); err != nil {
			return Place{}, false, err
		}
		return Place{}, true, nil
	case errors.Is(refusal, ErrIdentityTaken):
		return Place{}, false, &fault.Error{Code: fault.AlreadyInLine}
	case errors.Is(refusal, ErrUnknown), errors.Is(refusal, ErrClosed):
		// The rule lets people join: the store has lost the event, or its phase.
		s.lost(h, refusal.Error())
		return Place{}, false, busy("the store is being mended")
	}
	return Place{}, false, s.away("take a number", refusal)
}

// void gives a number back that cannot be right: the store has lost writes.
func (s *Service) void(ctx context.Context, h *hall, customer id.ID, joined Joined, why string) error {
	s.lost(h, why)
	if err := s.o.Store.Leave(ctx, h.event, customer, joined.Number); err != nil {
		return s.away("give a number back", err)
	}
	return busy("the store is being mended")
}

// record is the join as it counts: what the log has of the customer, or this one, made durable.
func (s *Service) record(ctx context.Context, h *hall, asked Join, joined Joined) (Record, error) {
	if !joined.New {
		if r, ok, err := s.o.Log.Of(ctx, h.event, asked.Customer); err != nil {
			return Record{}, s.away("read the log of joins", err)
		} else if ok && r.Lane == joined.Lane && r.Number == joined.Number {
			return r, nil
		}
	}
	r := Record{
		Event: h.event, Customer: asked.Customer, Lane: joined.Lane, Number: joined.Number, Drawn: joined.Drawn,
		At: int64(s.shardNow()), Identity: asked.Identity, Entry: draw.Entry(h.listKey, asked.Customer),
	}
	done, err := s.appender.append(ctx, r)
	if err != nil {
		return Record{}, err
	}
	if done.Err != nil {
		return Record{}, done.Err
	}
	if done.Record.Number != r.Number || done.Record.Lane != r.Lane {
		// The store has forgotten a customer: what the log has counts, and this number is void.
		if err := s.o.Store.Remember(ctx, []Record{done.Record}); err != nil {
			return Record{}, s.away("mend a number", err)
		}
	}
	return done.Record, nil
}

// usedUp looks whether a number that was called has had its session, and gives it up where that has ended.
func (s *Service) usedUp(ctx context.Context, h *hall, r *Record) (bool, error) {
	p := h.picture.Load()
	position, known := p.position(r.Lane, r.Number)
	if !known || position >= p.room.Lanes[r.Lane].Watermark {
		return false, nil
	}
	session, err := s.o.Reader.SessionOfNumber(ctx, ledger.SessionNumber{Event: r.Event, Lane: p.room.Lanes[r.Lane].Key, Number: r.Number})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return false, nil
	case err != nil:
		return false, s.away("read a session", err)
	case session.Live(s.shardNow()):
		return false, nil
	}
	return true, s.giveUp(ctx, *r)
}

// giveUp ends a number: first in the log, which counts.
func (s *Service) giveUp(ctx context.Context, r Record) error {
	r.Left, r.At = true, int64(s.shardNow())
	done, err := s.appender.append(ctx, r)
	if err == nil {
		err = done.Err
	}
	if err != nil {
		return s.away("write the log of joins", err)
	}
	if err := s.o.Store.Leave(ctx, r.Event, r.Customer, r.Number); err != nil {
		return s.away("give a number up", err)
	}
	return nil
}

// place signs a number that is durable.
func (s *Service) place(r *Record, lane string, isNew bool) (Place, error) {
	now := s.o.Now()
	ticket, err := s.sealer.sign(queueTicket{
		event: r.Event, customer: r.Customer, lane: r.Lane, number: r.Number, drawn: r.Drawn, issued: now.Unix(),
	}, now)
	if err != nil {
		return Place{}, fault.Wrap(fault.Internal, err)
	}
	return Place{QueueID: ticket, Lane: lane, Number: r.Number, Drawn: r.Drawn, Entry: hex.EncodeToString(r.Entry[:]), New: isNew}, nil
}

// listKey is the key of an event's list. Each event's has its own, so that nobody is followed from one list to another.
func listKey(secret []byte, event id.ID) []byte {
	var text [8]byte
	binary.BigEndian.PutUint64(text[:], uint64(event))
	key := hmac.New(sha256.New, secret)
	key.Write(text[:])
	return key.Sum(nil)
}

// High-water marks.

// saw takes note of a number that the store gave.
func (h *hall) saw(j Joined) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if j.Lane < len(h.lanes) {
		h.lanes[j.Lane].seen = max(h.lanes[j.Lane].seen, j.Number+1)
	}
}

// joined is how many numbers of a lane were given out, as far as this node knows. It is called under mu.
func (h *hall) joined(p *picture, lane int) int64 {
	known := h.lanes[lane].seen
	if lane < len(p.room.Lanes) {
		known = max(known, p.room.Lanes[lane].Joined)
	}
	return known
}

// raiseAhead raises a lane's mark in the background when half of what it allows is used, so that no join waits for it.
func (s *Service) raiseAhead(h *hall, j Joined) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if j.Lane >= len(h.lanes) {
		return
	}
	l := &h.lanes[j.Lane]
	if !j.New || l.raising || l.limit == 0 || j.Number+l.block/2 < l.limit {
		return
	}
	limit := l.limit
	l.raising = s.background(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, JoinPatience)
		defer cancel()
		if err := s.raise(ctx, h, j.Lane, limit); err != nil && s.life.Err() == nil {
			s.o.Logger.Warn("waiting room: the high-water mark is not raised ahead", "event", int64(h.event), "error", err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lanes[j.Lane].raising = false
	})
}

// limit is the store's limit of a lane, as last set by this node.
func (h *hall) limit(lane int) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if lane >= len(h.lanes) {
		return 0
	}
	return h.lanes[lane].limit
}

// raise makes more numbers of a lane possible than limit allowed: first durably in the ledger, then in the store (C2). One
// does it for all who need it. A block lasts for about a second at the present rate of joining, and is at most a quarter of what
// was given: a store that is lost leaves so many numbers void, and people are called for each.
func (s *Service) raise(ctx context.Context, h *hall, lane int, limit int64) error {
	select {
	case h.raise <- struct{}{}:
		defer func() { <-h.raise }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if h.limit(lane) > limit {
		return nil // somebody else did
	}
	h.mu.Lock()
	l := &h.lanes[lane]
	now := s.o.Now()
	switch since := now.Sub(l.raised); {
	case since < time.Second:
		l.block = min(2*l.block, blockMost, max(l.seen/4, blockLeast))
	case since > 10*time.Second:
		l.block = max(l.block/2, blockLeast)
	}
	room := &h.picture.Load().room
	upto := max(room.Lanes[lane].HighWater, l.seen) + l.block
	h.mu.Unlock()
	result, err := s.o.Ledger.Do(ctx, ledger.RoomNumbers{Event: h.event, Lane: room.Lanes[lane].Key, Upto: min(upto, ledger.RoomNumbersMax)})
	if err != nil {
		return s.away("raise the high-water mark", err)
	}
	s.learn(h, *result.Room, true)
	limits := make([]LaneState, lane+1)
	limits[lane].Limit = result.Room.Lanes[lane].HighWater
	// Closed and Next = 0 raise nothing: a store that has lost the event meanwhile lets nobody join by this.
	if err := s.o.Store.Restore(ctx, h.event, State{Lanes: limits}); err != nil {
		return s.away("raise the store's limit", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lanes[lane].limit, h.lanes[lane].raised = max(h.lanes[lane].limit, limits[lane].Limit), now
	return nil
}
