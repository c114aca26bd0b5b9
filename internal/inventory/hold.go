package inventory

import (
	"context"
	"errors"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A Claim is who wants a hold, and of which event. The fields are those of ledger.HoldSeats.
type Claim struct {
	ID       id.ID // of the hold to be made
	Event    id.ID
	Customer id.ID
	Key      ledger.Key
	Session  id.ID
	Exchange ledger.Exchange
}

// Held is a hold that was made, or (Repeat) had been made under the same key.
type Held struct {
	Hold    ledger.Hold
	Repeat  bool
	Step    Adjacency // how closely the seats are together; 0 for places in an area
	Orphans []int32   // free seats that the choice leaves alone, where the event's rule is to warn
}

// HoldSeats holds hand-picked seats. The board's sure no comes first (with the seats that are taken); where somebody else
// is asking the ledger for one of the seats, his answer is waited for and the board asked again; then comes the event's
// orphan rule. Whatever passes is decided by the ledger.
//
// A request with an idempotency key always goes to the ledger: it may be a repeat, and the seats its own (I5).
//
// Faults: those of ledger.HoldSeats and of Batcher.Do; orphan_seat, with the seats left alone.
func (s *Service) HoldSeats(ctx context.Context, claim Claim, seats []int32) (Held, error) {
	s.counters.asked.Add(1)
	b := s.Board(claim.Event)
	if b == nil {
		return s.hold(ctx, nil, claim, seats)
	}
	if claim.Key.Value != "" {
		claimed := b.Claim(seats)
		defer b.Unclaim(claimed)
		return s.holdPicked(ctx, b, claim, seats)
	}
	for turn := 0; ; turn++ {
		if taken := b.Taken(seats, s.options.Now()); len(taken) > 0 {
			s.counters.boardRefused.Add(1)
			return Held{}, &fault.Error{Code: fault.SeatsTaken, Seats: taken}
		}
		claimed, others := b.ClaimAll(seats)
		if others == nil || turn == TurnsMax {
			defer b.Unclaim(claimed)
			return s.holdPicked(ctx, b, claim, seats)
		}
		if err := s.await(ctx, others); err != nil {
			return Held{}, err
		}
	}
}

// await waits until others, who are asking the ledger for some of the same seats, have their answer: then the board knows
// it too, and of the many who want the same seats only the first has troubled the ledger.
func (s *Service) await(ctx context.Context, others <-chan struct{}) error {
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > int64(s.options.WaitersMax) {
		return &fault.Error{Code: fault.Busy, RetryAfter: ledger.Duration(1000).Std()}
	}
	select {
	case <-others:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// holdPicked asks the ledger for hand-picked seats, after the event's orphan rule.
func (s *Service) holdPicked(ctx context.Context, b *Board, claim Claim, seats []int32) (Held, error) {
	var alone []int32
	if mode := b.handPicked(); mode != OrphanOff {
		alone = b.Orphans(seats, s.options.Now())
		if len(alone) > 0 {
			s.counters.orphans.Add(1)
		}
		if len(alone) > 0 && mode == OrphanRefuse {
			return s.repeatOr(ctx, b, claim, &fault.Error{Code: fault.OrphanSeat, Seats: alone})
		}
	}
	held, err := s.hold(ctx, b, claim, seats)
	held.Orphans = alone
	return held, err
}

// HoldPlaces holds places in an area. The ledger alone knows whether expired holds are left in it (I2), so it is always
// asked.
//
// Faults: those of ledger.HoldPlaces and of Batcher.Do.
func (s *Service) HoldPlaces(ctx context.Context, claim Claim, area int32, quantity int) (Held, error) {
	s.counters.asked.Add(1)
	r, err := s.batcher.Do(ctx, ledger.HoldPlaces{
		ID: claim.ID, Event: claim.Event, Customer: claim.Customer, Key: claim.Key, Area: area, Quantity: quantity,
		Session: claim.Session, Exchange: claim.Exchange,
	})
	return s.held(nil, r, err)
}

// HoldBest holds the best seats that fulfil a wish. Where they are lost on the way to the ledger it looks again, a bounded
// number of times.
//
// Faults: those of ledger.HoldSeats (but seats_taken) and of Batcher.Do; event_unknown where the event is not loaded;
// invalid; no_seats_found; sold_out, only where nothing can come back (C11); busy where seats were lost too often.
func (s *Service) HoldBest(ctx context.Context, claim Claim, wish Wish) (Held, error) {
	s.counters.asked.Add(1)
	b := s.Board(claim.Event)
	if b == nil { // its sale may be over, and this a repeat
		return s.repeatOr(ctx, nil, claim, &fault.Error{Code: fault.EventUnknown})
	}
	if f := b.check(wish); f != nil { // the event's limits may have changed since
		return s.repeatOr(ctx, b, claim, f)
	}
	var lost []int32
	refreshed := false
	for look := 0; look < s.options.LooksMax; {
		var seed uint64
		if look >= 2 { // others look at the same seats, perhaps on other nodes: look elsewhere
			seed = uint64(claim.ID)<<3 | uint64(look)
		}
		s.counters.looks.Add(1)
		seats, step, claimed := b.Find(wish, s.options.Now(), lost, seed)
		if seats == nil && !refreshed && !b.Fresh(s.options.Now()) {
			refreshed = true
			if err := s.refreshStale(ctx, b); err != nil {
				s.options.Logger.Warn("a board cannot be refreshed", "event", int64(b.event), "error", err)
			}
			continue
		}
		if seats == nil {
			return s.noneFound(ctx, b, claim)
		}
		held, err := s.holdFound(ctx, b, claim, seats, claimed)
		if !errors.Is(err, &fault.Error{Code: fault.SeatsTaken}) {
			if err == nil && !held.Repeat {
				held.Step = step
			}
			return held, err
		}
		s.counters.lost.Add(1)
		if taken := fault.Of(err).Seats; len(taken) > 0 {
			seats = taken
		}
		lost = append(lost, seats...)
		look++
		s.refreshSoon() // somebody else's changes have not come yet
	}
	return Held{}, &fault.Error{Code: fault.Busy, RetryAfter: ledger.Duration(1000).Std()}
}

// holdFound asks the ledger for seats that were found and claimed on the board.
func (s *Service) holdFound(ctx context.Context, b *Board, claim Claim, seats, claimed []int32) (Held, error) {
	defer b.Unclaim(claimed)
	return s.hold(ctx, b, claim, seats)
}

// noneFound is the answer to a wish for which there are no seats.
func (s *Service) noneFound(ctx context.Context, b *Board, claim Claim) (Held, error) {
	if held, ok, err := s.repeat(ctx, b, claim); ok || err != nil {
		return held, err
	}
	s.counters.noSeats.Add(1)
	if !s.anythingLeft(ctx, b) {
		s.counters.soldOut.Add(1)
		return Held{}, &fault.Error{Code: fault.SoldOut}
	}
	return Held{}, &fault.Error{Code: fault.NoSeatsFound}
}

// anythingLeft is false only where it is sure that nothing is left and nothing can come back (C11). Where the board
// cannot tell, a snapshot is looked at, once for each version.
func (s *Service) anythingLeft(ctx context.Context, b *Board) bool {
	left, sure := b.anythingLeft(s.options.Now())
	if sure {
		return left
	}
	select {
	case b.refreshing <- struct{}{}:
		defer b.endRefreshing()
	default:
		return true // somebody is asking already
	}
	ctx, cancel := context.WithTimeout(ctx, RefreshMax)
	defer cancel()
	s.counters.snapshots.Add(1)
	picture, err := s.batcher.Ledger().Snapshot(ctx, b.event)
	if err != nil {
		return true
	}
	return b.judge(&picture)
}

// repeat asks the ledger whether the claim's key had its effect before. It asks with a claim on no seats, which is
// refused as invalid where the key is new.
func (s *Service) repeat(ctx context.Context, b *Board, claim Claim) (held Held, ok bool, err error) {
	if claim.Key.Value == "" {
		return Held{}, false, nil
	}
	held, err = s.hold(ctx, b, claim, nil)
	if errors.Is(err, &fault.Error{Code: fault.Invalid}) {
		return Held{}, false, nil
	}
	return held, err == nil, err
}

// repeatOr refuses a claim, unless its key had its effect before: a repeat gets that effect's answer, whatever has become
// of the event since (I5).
func (s *Service) repeatOr(ctx context.Context, b *Board, claim Claim, refusal *fault.Error) (Held, error) {
	if held, ok, err := s.repeat(ctx, b, claim); ok || err != nil {
		return held, err
	}
	return Held{}, refusal
}

func (s *Service) hold(ctx context.Context, b *Board, claim Claim, seats []int32) (Held, error) {
	r, err := s.batcher.Do(ctx, ledger.HoldSeats{
		ID: claim.ID, Event: claim.Event, Customer: claim.Customer, Key: claim.Key, Seats: seats,
		Session: claim.Session, Exchange: claim.Exchange,
	})
	return s.held(b, r, err)
}

func (s *Service) held(b *Board, r ledger.Result, err error) (Held, error) {
	if err != nil {
		return Held{}, err
	}
	if r.Hold == nil {
		return Held{}, fault.Wrap(fault.Internal, errors.New("the ledger made a hold and did not say which"))
	}
	s.counters.held.Add(1)
	held := Held{Hold: *r.Hold, Repeat: r.Repeat}
	if b != nil && held.Hold.Area < 0 {
		held.Step = b.finder.step(held.Hold.Seats())
	}
	return held, nil
}

// check is the fault of a wish that makes no sense for this event.
func (b *Board) check(w Wish) *fault.Error {
	b.mu.Lock()
	perHold := b.config.SeatsPerHoldMax
	b.mu.Unlock()
	if perHold <= 0 || perHold > ledger.SeatsPerHoldCap {
		perHold = ledger.SeatsPerHoldCap
	}
	invalid := func(field, format string, args ...any) *fault.Error {
		f := fault.New(fault.Invalid, format, args...)
		f.Field = field
		return f
	}
	switch {
	case w.Quantity < 1 || w.Quantity > perHold:
		return invalid("quantity", "quantity must be 1 to %d", perHold)
	case w.Category < -1 || w.Category >= len(b.layout.Categories):
		return invalid("category", "there is no such category")
	case w.Section < -1 || w.Section >= len(b.layout.Sections):
		return invalid("section", "there is no such section")
	case w.Accessible < 0 || w.Accessible > w.Quantity:
		return invalid("accessible", "accessible must be 0 to the quantity")
	case w.Adjacency > Anywhere:
		return invalid("adjacency", "there is no such step")
	}
	return nil
}

// step is how closely seats are together.
func (f *finder) step(seats []int32) Adjacency {
	sorted := slices.Sorted(slices.Values(seats))
	step := Together
	for k, seat := range sorted {
		if seat < 0 || int(seat) >= f.layout.SeatCount {
			return Anywhere
		}
		if k == 0 {
			continue
		}
		before := sorted[k-1]
		switch {
		case f.layout.SectionOf(seat) != f.layout.SectionOf(before):
			return Anywhere
		case f.rowOf(seat) != f.rowOf(before):
			step = max(step, SameSection)
		case seat != before+1 || !f.layout.Joined.Has(seat):
			step = max(step, SameRow)
		}
	}
	return step
}

// rowOf is the place of a seat's row in the plan.
func (f *finder) rowOf(seat int32) int {
	row, _ := slices.BinarySearchFunc(f.rows.all, seat, func(l lane, seat int32) int {
		switch {
		case l.span.End <= seat:
			return -1
		case l.span.First > seat:
			return 1
		}
		return 0
	})
	return row
}
