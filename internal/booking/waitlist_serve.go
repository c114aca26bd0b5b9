package booking

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Bounds of the worker's rounds.
const (
	wishPage    = 512  // wishes read at once
	stockSeats  = 4096 // returned seats that one round looks at; what is more waits for the next
	offerTries  = 3    // other seats that a wish is tried with where those it was to get are gone
	turnLook    = 64   // wishes of which one must find nothing before freed seats are kept for the list
	layoutsKept = 64

	// settleEvery is how long an event is left alone that nothing has happened to: an order behind an offer may have ended
	// without a change of any seat.
	settleEvery = ledger.Time(10_000)
	// turnEvery is how often the worker tries to keep freed seats for the list while the line is not empty.
	turnEvery = ledger.Time(1_000)
)

// Served is what one round did for an event.
type Served struct {
	Settled  int // offers and wishes that ended
	Offered  int
	Released int // places that nobody wants
	Turned   bool
	More     bool // the round was full: there is more to do at once
}

// A round of an event, as this process remembers it. All of it may be forgotten.
type memory struct {
	version int64       // of the seats, when everything was seen to last
	at      ledger.Time // then
	turned  ledger.Time // when the turn to the list was tried last
	clean   bool        // nothing is returned, and will not be while Returns is available
}

// A serving is one round.
type serving struct {
	*Waitlist
	event  ledger.Event
	memory *memory
	now    ledger.Time
	done   Served
}

// Serve does one round for an event: it settles the offers that are over, gives what is returned to the first wishes that it
// fits, and what nobody wants back to the sale. While somebody waits who finds nothing, and nobody is left in the line, it
// lets freed places be returned; else they go straight back to the sale. It may be called from several nodes at once.
func (w *Waitlist) Serve(ctx context.Context, event id.ID) (Served, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, err := w.o.Shard.Ledger().Event(ctx, event)
	if err != nil {
		return Served{}, err
	}
	now, err := w.o.Shard.Ledger().Now(ctx)
	if err != nil {
		return Served{}, err
	}
	m := w.memories[event]
	if m == nil {
		m = &memory{version: -1}
		w.memories[event] = m
	}
	s := &serving{Waitlist: w, event: e, memory: m, now: now}
	err = s.round(ctx)
	return s.done, err
}

func (s *serving) round(ctx context.Context) error {
	version, changed, err := s.changed(ctx)
	if err != nil {
		return err
	}
	if changed {
		if err := s.settle(ctx, ledger.WishOffered, s.offerOver); err != nil {
			return err
		}
	}
	if saleOver(&s.event, s.now) {
		if changed {
			err = s.settle(ctx, ledger.WishWaiting, func(context.Context, *ledger.Wish) (bool, error) { return true, nil })
		}
		s.remember(version, changed, err)
		return err
	}
	first, err := s.o.Shard.Ledger().Wishes(ctx, s.event.ID, ledger.WishWaiting, ledger.WishCursor{}, turnLook)
	if err != nil {
		return err
	}
	waits := len(first) > 0 && s.event.Waitlist
	switch {
	case waits && s.event.Returns == ledger.ReturnsAvailable:
		if err := s.turnToList(ctx, first); err != nil {
			return err
		}
	case !waits && s.event.Returns == ledger.ReturnsWaitlist:
		if err := s.turn(ctx, ledger.ReturnsAvailable, nil); err != nil {
			return err
		}
	}
	switch {
	case s.event.Selling(s.now) != nil: // nobody can be offered anything, nor buy
		s.remember(version, changed, nil)
		s.memory.clean = false
		return nil
	case !changed && s.memory.clean:
		return nil
	}
	err = s.serve(ctx, waits)
	s.remember(version, changed, err)
	return err
}

// saleOver says that an event's sale has ended for good.
func saleOver(e *ledger.Event, now ledger.Time) bool {
	return e.State == ledger.Ended || e.State == ledger.Cancelled || e.SaleCloses <= now
}

// changed says whether anything may have happened to the event since the last whole round.
func (s *serving) changed(ctx context.Context) (version int64, changed bool, err error) {
	if s.memory.version < 0 || s.now >= s.memory.at+settleEvery || s.now < s.memory.at {
		changed = true
	}
	version = max(0, s.memory.version)
	for {
		changes, gap, err := s.o.Shard.Ledger().ChangesSince(ctx, s.event.ID, version, wishPage)
		if err != nil {
			return 0, false, err
		}
		if gap {
			snapshot, err := s.o.Shard.Ledger().Snapshot(ctx, s.event.ID)
			return snapshot.Version, true, err
		}
		if len(changes) == 0 {
			return version, changed || version != s.memory.version, nil
		}
		version = changes[len(changes)-1].Version
	}
}

// remember that all was seen to, as of a version.
func (s *serving) remember(version int64, changed bool, err error) {
	if err != nil || s.done.More {
		s.memory.version, s.memory.clean = -1, false
		return
	}
	s.memory.version, s.memory.clean = version, true
	if changed {
		s.memory.at = s.now
	}
}

// offerOver says whether the hold of an offer is no claim any more.
func (s *serving) offerOver(ctx context.Context, w *ledger.Wish) (bool, error) {
	h, err := s.o.Shard.Ledger().Hold(ctx, w.Hold)
	if errors.Is(err, ledger.ErrNotFound) {
		return true, nil
	}
	return !h.Live(s.now), err
}

// settle goes through an event's wishes of a state and settles those of which over says so.
func (s *serving) settle(ctx context.Context, state ledger.WishState, over func(context.Context, *ledger.Wish) (bool, error)) error {
	var after ledger.WishCursor
	for {
		page, err := s.o.Shard.Ledger().Wishes(ctx, s.event.ID, state, after, wishPage)
		if err != nil {
			return err
		}
		for i := range page {
			after = page[i].Cursor()
			is, err := over(ctx, &page[i])
			if err != nil {
				return err
			}
			if !is {
				continue
			}
			r, err := s.do(ctx, ledger.SettleWish{Wish: page[i].ID})
			if err != nil {
				return err
			}
			if !r.Repeat {
				s.done.Settled++
			}
		}
		if len(page) < wishPage {
			return nil
		}
	}
}

// turnToList lets freed places be returned from now on, where one of the first who wait finds nothing that they could buy. The
// ledger refuses it while somebody is left in the line.
func (s *serving) turnToList(ctx context.Context, first []ledger.Wish) error {
	if s.memory.turned != 0 && s.now < s.memory.turned+turnEvery && s.now >= s.memory.turned {
		return nil
	}
	s.memory.turned = s.now
	var line []ledger.LaneCount
	if s.o.Line != nil {
		var err error
		if line, err = s.o.Line(ctx, s.event.ID); err != nil {
			return err
		}
	}
	if s.event.Room.Mode != ledger.RoomOff { // the ledger decides; but to ask it in vain would hold everybody up
		room, err := s.o.Shard.Ledger().Room(ctx, s.event.ID)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if !room.LineEmpty(&s.event.Room, line, s.now) {
			return nil
		}
	}
	snapshot, err := s.o.Shard.Ledger().Snapshot(ctx, s.event.ID)
	if err != nil {
		return err
	}
	var free ledger.ReturnedPlaces
	for i, seat := range snapshot.Seats {
		if seat.State == ledger.Available {
			free.Seats = append(free.Seats, int32(i))
		}
	}
	for _, a := range snapshot.Areas {
		free.Areas = append(free.Areas, a.Free())
	}
	layout, err := s.layout(ctx)
	if err != nil {
		return err
	}
	all := newStock(&s.event, layout, free)
	if !slices.ContainsFunc(first, func(w ledger.Wish) bool { _, ok := all.match(&w); return !ok }) {
		return nil
	}
	return s.turn(ctx, ledger.ReturnsWaitlist, line)
}

func (s *serving) turn(ctx context.Context, to ledger.ReturnsMode, line []ledger.LaneCount) error {
	r, err := s.do(ctx, ledger.SetReturns{Event: s.event.ID, Returns: to, Line: line})
	if fault.CodeOf(err) == fault.Conflict {
		return nil // the line is not empty, or the event has no waitlist any more
	}
	if err != nil {
		return err
	}
	s.event.Returns, s.memory.clean = to, false
	s.done.Turned = s.done.Turned || !r.Repeat
	return nil
}

// serve offers what is returned to the wishes that it fits, the first one first, and releases what nobody wants.
func (s *serving) serve(ctx context.Context, waits bool) error {
	back, err := s.o.Shard.Ledger().Returned(ctx, s.event.ID, stockSeats)
	if err != nil {
		return err
	}
	s.done.More = len(back.Seats) == stockSeats
	layout, err := s.layout(ctx)
	if err != nil {
		return err
	}
	left := newStock(&s.event, layout, back)
	var after ledger.WishCursor
	for waits && !left.empty() {
		page, err := s.o.Shard.Ledger().Wishes(ctx, s.event.ID, ledger.WishWaiting, after, wishPage)
		if err != nil {
			return err
		}
		for i := range page {
			after = page[i].Cursor()
			if err := s.offer(ctx, left, &page[i]); err != nil {
				return err
			}
			if left.empty() {
				break
			}
		}
		if len(page) < wishPage {
			break
		}
	}
	return s.release(ctx, left)
}

// offerTTL is how long an event's offers last.
func (s *serving) offerTTL(ctx context.Context, event id.ID) ledger.Duration {
	if s.o.OfferTTLOf == nil {
		return s.o.OfferTTL
	}
	return cmp.Or(s.o.OfferTTLOf(ctx, event), s.o.OfferTTL)
}

// offer makes one wish the best offer that there is for it. Whoever is refused (a limit; they have just withdrawn) is passed
// over.
func (s *serving) offer(ctx context.Context, left *stock, w *ledger.Wish) error {
	for range offerTries {
		p, ok := left.match(w)
		if !ok {
			return nil
		}
		hold, err := s.o.IDs.Next(s.o.Number)
		if err != nil {
			return err
		}
		_, err = s.do(ctx, ledger.Offer{
			Hold: hold, Wish: w.ID, Seats: p.seats, Area: p.area, Quantity: p.quantity, TTL: s.offerTTL(ctx, w.Event),
		})
		f := fault.Of(err)
		switch fault.CodeOf(err) {
		case "":
			left.take(p)
			s.done.Offered++
			return nil
		case fault.SeatsTaken: // somebody was faster: another node, or whoever waited for longer than ReturnedPatience
			left.drop(f.Seats)
		case fault.PlacesTaken:
			if f.Field == "quota" || len(p.seats) > 0 {
				return nil
			}
			left.areas[p.area] = 0 // what is left of it is found in the next round
			s.done.More = true
		case fault.LimitReached, fault.Conflict, fault.Invalid, fault.WishUnknown:
			return nil
		default:
			return err
		}
	}
	return nil
}

// release gives what is left back to the sale.
func (s *serving) release(ctx context.Context, left *stock) error {
	if seats := left.all(); len(seats) > 0 {
		r, err := s.do(ctx, ledger.ReleaseReturned{Event: s.event.ID, Seats: seats})
		if err != nil {
			return err
		}
		s.done.Released += r.Count
	}
	for area, n := range left.areas {
		if n <= 0 {
			continue
		}
		r, err := s.do(ctx, ledger.ReleaseReturned{Event: s.event.ID, Area: int32(area), Quantity: int(n)})
		if err != nil {
			return err
		}
		s.done.Released += r.Count
	}
	return nil
}

// layout is that of the event's plan.
func (s *serving) layout(ctx context.Context) (*ledger.Layout, error) {
	if l := s.layouts[s.event.PlanHash]; l != nil {
		return l, nil
	}
	l, err := s.o.Shard.Ledger().Layout(ctx, s.event.PlanHash)
	if err != nil {
		return nil, err
	}
	if len(s.layouts) >= layoutsKept {
		clear(s.layouts)
	}
	s.layouts[s.event.PlanHash] = l
	return l, nil
}
