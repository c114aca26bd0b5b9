package inventory

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// A Board is a picture of one event's availability. Its own lock is held for microseconds; a search works on a copy.
type Board struct {
	event  id.ID
	layout *venue.Layout
	finder *finder
	rules  Rules
	no     sureNo

	refreshing chan struct{} // one slot, taken by whoever asks the ledger for this board
	tried      time.Time     // when the ledger was last begun to be asked; guarded by refreshing

	mu       sync.Mutex
	config   ledger.Event
	version  int64
	loaded   bool  // it holds a picture at all
	seen     int64 // the greatest version heard of; above version there is a gap
	reread   bool  // the event's own row has changed
	distrust bool  // a commit's outcome is unknown, or changes are lost: only a snapshot will do

	ledgerNow ledger.Time // the ledger's clock when last heard of it
	clockNow  time.Time   // our clock then
	heard     time.Time   // when version was last known to be the ledger's

	states  []ledger.Availability
	until   []ledger.Time // of a held seat its expiry; of a returned one the end of the patience for it, 0 where not known
	packed  []byte        // two bits a seat, as sent
	counts  [5]int        // seats by Availability
	areas   []area
	free    venue.Bits              // available, or held past its expiry (lapsed)
	claimed venue.Bits              // about to be taken by a request that is on its way to the ledger
	waited  map[int32]chan struct{} // of claimed seats that others wait for: closed when the claim ends
	lapses  lapseHeap
	sold    map[int]masks // by category, -1 for all; built when first asked for, anew when the event's row changes
	recent  recent
	goneAt  int64    // the version of which a snapshot said that nothing was left and nothing could come back
	leftAt  int64    // the version of which a snapshot said that something was
	picture *Picture // the last one encoded
}

type area struct {
	capacity int32
	free     int32
}

func newBoard(event id.ID, finder *finder, rules Rules) *Board {
	n := finder.layout.SeatCount
	b := &Board{
		event: event, layout: finder.layout, finder: finder, rules: rules.withDefaults(finder.layout),
		states:  make([]ledger.Availability, n),
		until:   make([]ledger.Time, n),
		packed:  make([]byte, (n+3)/4),
		free:    venue.NewBits(n),
		claimed: venue.NewBits(n),
		waited:  map[int32]chan struct{}{},
		no:      sureNo{until: make([]atomic.Int64, n)},

		refreshing: make(chan struct{}, 1),
	}
	b.publish()
	return b
}

// load replaces the picture by a snapshot that was asked for and had at these instants, unless it is older than what the
// board has. A board that does not trust itself takes any: the ledger may have lost what it had told (a fail-over). The
// board may still not be complete then, where the event has moved on meanwhile.
func (b *Board) load(s *ledger.Snapshot, asked, had time.Time) error {
	if len(s.Seats) != b.layout.SeatCount {
		return fmt.Errorf("event %s has %d seats in the ledger, %d in the plan", b.event.Text(id.Event), len(s.Seats), b.layout.SeatCount)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	back := b.loaded && s.Version < b.version
	if back && !b.distrust {
		return nil
	}
	if back {
		b.recent.fall(b, s)
		b.heard, b.goneAt, b.leftAt, b.picture = asked, 0, 0, nil
	} else {
		b.recent.jump(b, s)
	}
	for i := range s.Seats {
		seat := &s.Seats[i]
		until := seat.Expires
		if seat.State == ledger.Returned && b.loaded && b.states[i] == ledger.Returned {
			until = b.until[i]
		}
		b.states[i], b.until[i] = seat.State, until
	}
	b.areas = b.areas[:0]
	for _, a := range s.Areas {
		b.areas = append(b.areas, area{capacity: a.Capacity, free: a.Free()})
	}
	b.config, b.sold, b.reread = s.Event, nil, false
	b.version, b.loaded, b.distrust = s.Version, true, false
	b.seen = max(b.seen, s.Version)
	b.hear(s.Now, had, false)
	b.refreshed(asked)
	b.rebuild(s.Now)
	b.publish()
	return nil
}

// mistrust says that only a snapshot will do. What was heard of before does not count any more, since the ledger may have
// lost it: a snapshot that is taken from now on knows better. What is heard from now on counts.
func (b *Board) mistrust() { b.distrust, b.seen = true, 0 }

func (b *Board) complete() bool { return b.loaded && !b.distrust && b.seen == b.version }

// rebuild makes everything that follows from states, until and config.
func (b *Board) rebuild(now ledger.Time) {
	clear(b.free)
	b.counts = [5]int{}
	b.lapses = b.lapses[:0]
	for i, state := range b.states {
		b.counts[state]++
		b.pack(int32(i), state)
		b.no.set(int32(i), state, b.until[i])
		if state == ledger.Available {
			b.free.Set(int32(i))
		}
		b.expect(int32(i), now)
	}
}

// apply takes over a committed change, if it is the next one. heard is when it was the ledger's last; own says that this
// node has just committed it, at the ledger's time now.
func (b *Board) apply(c *ledger.Change, now ledger.Time, heard time.Time, own bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.publish()
	b.seen = max(b.seen, c.Version)
	if !b.loaded || b.distrust || c.Version != b.version+1 {
		return // known already, or a gap: complete says so; one that does not trust itself waits for a snapshot
	}
	if !b.fits(c) {
		b.mistrust() // it is of another plan: loading will say so
		return
	}
	for _, s := range c.Seats {
		b.counts[b.states[s.Index]]--
		b.counts[s.State]++
		b.states[s.Index], b.until[s.Index] = s.State, s.Expires
		b.pack(s.Index, s.State)
		b.no.set(s.Index, s.State, s.Expires)
		if s.State == ledger.Available {
			b.free.Set(s.Index)
		} else {
			b.free.Clear(s.Index)
		}
		if s.State == ledger.Returned {
			b.until[s.Index] = c.At + ledger.Time(ledger.ReturnedPatience)
		}
		b.expect(s.Index, now)
	}
	for _, a := range c.Areas {
		b.areas[a.Area].free = a.Free
	}
	b.version = c.Version
	b.reread = b.reread || c.Config
	b.recent.add(c)
	b.hear(now, heard, own)
	b.refreshed(heard)
	if len(b.lapses) > 4*len(b.states)+1024 {
		b.rebuild(now) // most of them are out of date
	}
}

func (b *Board) fits(c *ledger.Change) bool {
	for _, s := range c.Seats {
		if s.Index < 0 || int(s.Index) >= len(b.states) {
			return false
		}
	}
	for _, a := range c.Areas {
		if a.Area < 0 || int(a.Area) >= len(b.areas) {
			return false
		}
	}
	return true
}

// confirm says that the ledger, asked at an instant, had nothing after this version.
func (b *Board) confirm(version int64, asked time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.version >= version && b.complete() {
		b.refreshed(asked)
		b.publish()
	}
}

// reconfigure takes over the event's own row.
func (b *Board) reconfigure(e ledger.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Version < b.config.Version {
		return
	}
	b.config, b.sold, b.reread = e, nil, false
	b.rebuild(b.ledgerNow)
}

// hear takes note of the ledger's clock, as it was no later than at. A time that is exact wins over the estimate.
func (b *Board) hear(now ledger.Time, at time.Time, exact bool) {
	if exact || b.clockNow.IsZero() || now >= b.now(at) {
		b.ledgerNow, b.clockNow = now, at
	}
}

func (b *Board) refreshed(heard time.Time) {
	if heard.After(b.heard) {
		b.heard = heard
	}
}

// now is the ledger's clock as far as can be told. It is never ahead.
func (b *Board) now(clock time.Time) ledger.Time {
	return nowAt(b.ledgerNow, b.clockNow, clock)
}

// expect remembers when a seat becomes free by itself.
func (b *Board) expect(seat int32, now ledger.Time) {
	switch at := b.until[seat]; {
	case b.states[seat] == ledger.Held:
		b.lapses.push(lapse{at: at, seat: seat})
	case b.states[seat] == ledger.Returned && at == 0:
		b.lapses.push(lapse{at: now + ledger.Time(ledger.ReturnedPatience), seat: seat})
	case b.states[seat] == ledger.Returned:
		b.lapses.push(lapse{at: at, seat: seat})
	}
}

// lapse frees the seats whose time is up. While freed seats go to the waitlist, expired holds free none: not for us.
func (b *Board) lapse(now ledger.Time) {
	for len(b.lapses) > 0 && b.lapses[0].at <= now {
		seat := b.lapses.pop().seat
		if b.until[seat] > now {
			continue // extended, or held anew
		}
		switch b.states[seat] {
		case ledger.Held:
			if b.config.Returns == ledger.ReturnsAvailable {
				b.free.Set(seat)
			}
		case ledger.Returned:
			b.free.Set(seat)
		}
	}
}

func (b *Board) fresh(clock time.Time) bool {
	return b.complete() && clock.Sub(b.heard) < FreshFor
}

// Orphans are the free seats that a hand-picked choice would leave alone; none where the rule is lifted.
func (b *Board) Orphans(seats []int32, clock time.Time) []int32 {
	for _, seat := range seats {
		if seat < 0 || int(seat) >= b.layout.SeatCount {
			return nil
		}
	}
	sorted := slices.Sorted(slices.Values(seats))
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.loaded {
		return nil
	}
	now := b.now(clock)
	b.lapse(now)
	if b.liftedAt(now) {
		return nil
	}
	return orphans(b.layout, b.free, sorted)
}

// liftedAt says whether orphans do not matter.
func (b *Board) liftedAt(now ledger.Time) bool {
	if before := b.rules.SplitReleaseBefore; before >= 0 && now >= b.config.SaleCloses-ledger.Time(before.Milliseconds()) {
		return true
	}
	return b.rules.FewSeats >= 0 && countIn(b.free, b.masksOf(-1).all, venue.Span{First: 0, End: int32(b.layout.SeatCount)}) <= b.rules.FewSeats
}

// masksOf are the seats of a category (-1: all) that have a price.
func (b *Board) masksOf(category int) masks {
	if m, ok := b.sold[category]; ok {
		return m
	}
	sold := venue.NewBits(b.layout.SeatCount)
	for c := range b.layout.Categories {
		if _, priced := b.config.Tier(int16(c)); priced && (category < 0 || category == c) {
			for w, word := range b.layout.Categories[c] {
				sold[w] |= word
			}
		}
	}
	if b.sold == nil {
		b.sold = map[int]masks{}
	}
	b.sold[category] = b.finder.newMasks(sold)
	return b.sold[category]
}

// searches are kept for their memory.
var searches = sync.Pool{New: func() any { return &search{} }}

// Find looks for the best seats for a wish and claims them, so that no other request is sent after them: Unclaim gives
// back what it answers in claimed. avoid are seats known to be lost. A seed other than 0 makes it look away from where
// all others look. Nil seats: there are none.
func (b *Board) Find(w Wish, clock time.Time, avoid []int32, seed uint64) (seats []int32, step Adjacency, claimed []int32) {
	s := searches.Get().(*search)
	defer searches.Put(s)
	b.mu.Lock()
	b.prepare(s, w, clock, avoid, true)
	b.mu.Unlock()
	s.shun = seed
	seats, step = s.find(w)
	if seats == nil && seed != 0 {
		s.shun = 0
		seats, step = s.find(w)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if seats != nil && b.open(seats) {
		return seats, step, b.mark(seats)
	}
	if seats != nil {
		// Somebody was faster. Once more, and nobody can be while we hold the lock.
		b.prepare(s, w, clock, avoid, true)
		if seats, step = s.find(w); seats != nil {
			return seats, step, b.mark(seats)
		}
	}
	if b.anyClaimed() {
		// What others are about to take they may not get: the ledger decides.
		b.prepare(s, w, clock, avoid, false)
		seats, step = s.find(w)
	}
	return seats, step, b.mark(seats)
}

// prepare gives a search its own picture.
func (b *Board) prepare(s *search, w Wish, clock time.Time, avoid []int32, respectClaims bool) {
	now := b.now(clock)
	b.lapse(now)
	s.finder, s.shun, s.masks, s.lifted = b.finder, 0, b.masksOf(w.Category), b.liftedAt(now)
	s.free = append(s.free[:0], b.free...)
	if respectClaims {
		for i, word := range b.claimed {
			s.free[i] &^= word
		}
	}
	for _, seat := range avoid {
		if seat >= 0 && int(seat) < b.layout.SeatCount {
			s.free.Clear(seat)
		}
	}
}

// open says that all seats are free and nobody is about to take one.
func (b *Board) open(seats []int32) bool {
	for _, seat := range seats {
		if !b.free.Has(seat) || b.claimed.Has(seat) {
			return false
		}
	}
	return true
}

func (b *Board) anyClaimed() bool {
	for w, word := range b.claimed {
		if word&b.free[w] != 0 {
			return true
		}
	}
	return false
}

// mark claims seats, and answers those that were not claimed before.
func (b *Board) mark(seats []int32) (claimed []int32) {
	for _, seat := range seats {
		if seat >= 0 && int(seat) < b.layout.SeatCount && !b.claimed.Has(seat) {
			b.claimed.Set(seat)
			claimed = append(claimed, seat)
		}
	}
	return claimed
}

// Claim marks hand-picked seats as about to be taken; Unclaim gives back what it answers.
func (b *Board) Claim(seats []int32) (claimed []int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mark(seats)
}

// ClaimAll is Claim where nobody else has a claim on any of the seats. Else it answers others, which is closed as soon as
// the claim on one of them has ended, and claims nothing. Who waits has no claim, so nobody waits in a circle.
func (b *Board) ClaimAll(seats []int32) (claimed []int32, others <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, seat := range seats {
		if seat < 0 || int(seat) >= b.layout.SeatCount || !b.claimed.Has(seat) {
			continue
		}
		end := b.waited[seat]
		if end == nil {
			end = make(chan struct{})
			b.waited[seat] = end
		}
		return nil, end
	}
	return b.mark(seats), nil
}

// Unclaim gives claims back, once the ledger has answered.
func (b *Board) Unclaim(seats []int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, seat := range seats {
		b.claimed.Clear(seat)
		if end := b.waited[seat]; end != nil {
			delete(b.waited, seat)
			close(end)
		}
	}
}

// anythingLeft says whether anything is there or can come back (C11), as far as the board can tell: sure is false where
// it cannot, because it is not fresh, or because it does not know how much of an area is held and how much sold.
func (b *Board) anythingLeft(clock time.Time) (left, sure bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	whole := venue.Span{First: 0, End: int32(b.layout.SeatCount)}
	if b.counts[ledger.Held] > 0 || b.counts[ledger.Returned] > 0 || countIn(b.free, b.masksOf(-1).all, whole) > 0 {
		return true, true
	}
	for _, a := range b.areas {
		if a.free > 0 {
			return true, true
		}
	}
	if !b.fresh(clock) {
		return true, false
	}
	if len(b.areas) == 0 || b.goneAt == b.version {
		return false, true
	}
	return true, b.leftAt == b.version
}

// judge remembers what a snapshot says of the same question.
func (b *Board) judge(s *ledger.Snapshot) (left bool) {
	for _, seat := range s.Seats {
		left = left || seat.State == ledger.Held || seat.State == ledger.Returned
	}
	for _, a := range s.Areas {
		left = left || a.Sold < a.Capacity
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if left {
		b.leftAt = s.Version
	} else {
		b.goneAt = s.Version
	}
	return left
}

// EventState is the ledger's state of the event, as far as this board has heard; ok is false while it has no picture.
func (b *Board) EventState() (state ledger.EventState, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.config.State, b.loaded
}

// Left is how many seats are available and how many places are free, as far as this board has heard.
func (b *Board) Left() (seats, places int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.areas {
		places += int(a.free)
	}
	return b.counts[ledger.Available], places
}
