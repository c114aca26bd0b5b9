package inventory

import (
	"math"
	"slices"

	"onsale/internal/venue"
)

// A Wish is what a best-available request asks for.
type Wish struct {
	Quantity  int
	Category  int       // index in the plan; -1 any
	Section   int       // index in the plan; -1 any. Only the step Anywhere leaves it
	Adjacency Adjacency // the most relaxed step that will do; 0: Anywhere
	// Accessible is how many of the places must be accessible ones. The others are then companions' places beside them
	// where there are any. A wish for none is given accessible and companions' places only where it could not be
	// fulfilled at all without them.
	Accessible int
}

// A finder knows a plan's lanes. It is immutable and shared by all searches of all events on the plan.
type finder struct {
	layout *venue.Layout
	runs   *lanes
	rows   *lanes
	sum    []int64 // sum[i] is the quality of all seats before i
	access []int32 // access[i] is the number of accessible seats before i
	plain  []int32 // plain[i] is the number of seats before i that are neither accessible nor companions'
}

func newFinder(layout *venue.Layout) *finder {
	f := &finder{
		layout: layout,
		runs:   newLanes(layout, layout.Runs),
		rows:   newLanes(layout, layout.Rows),
		sum:    make([]int64, layout.SeatCount+1),
		access: make([]int32, layout.SeatCount+1),
		plain:  make([]int32, layout.SeatCount+1),
	}
	for i, q := range layout.Quality {
		f.sum[i+1] = f.sum[i] + int64(q)
		f.access[i+1], f.plain[i+1] = f.access[i], f.plain[i]
		if layout.Accessible.Has(int32(i)) {
			f.access[i+1]++
		} else if !layout.Companion.Has(int32(i)) {
			f.plain[i+1]++
		}
	}
	return f
}

// Masks are the seats of one category (or of all) that an event sells.
type masks struct {
	all        venue.Bits
	stepped    venue.Bits // without accessible places
	ordinary   venue.Bits // without accessible and companions' places
	hasSpecial bool
}

func (f *finder) newMasks(sold venue.Bits) masks {
	m := masks{all: sold, stepped: slices.Clone(sold), ordinary: slices.Clone(sold)}
	for w := range sold {
		m.stepped[w] &^= f.layout.Accessible[w]
		m.ordinary[w] = m.stepped[w] &^ f.layout.Companion[w]
		m.hasSpecial = m.hasSpecial || m.ordinary[w] != sold[w]
	}
	return m
}

// A search is one look for seats. Its free set is its own copy: those that are available, or held by a hold that has run
// out, and not about to be taken by another request. Orphans are judged by it.
type search struct {
	*finder
	free   venue.Bits
	mask   venue.Bits // who may be chosen
	masks  masks
	lifted bool   // orphans do not matter
	shun   uint64 // not 0: passes over half of the lanes, chosen by this seed
	row    []int32
}

// A choice is what a step found, with what makes it better than another, in this order.
type choice struct {
	first   int32 // its first seat
	waste   int   // where accessible places are asked for: see wasted
	orphans int
	sum     int64 // of qualities
}

// wasted is how badly a choice suits a wish for accessible places: by accessible places nobody asked for, then by other
// places that are not companions'.
func wasted(surplus, plain int) int { return surplus*(venue.SeatsMax+1) + plain }

var noChoice = choice{waste: math.MaxInt}

func (c *choice) found() bool { return c.waste != math.MaxInt }

func (c *choice) better(than *choice) bool {
	switch {
	case c.waste != than.waste:
		return c.waste < than.waste
	case c.orphans != than.orphans:
		return c.orphans < than.orphans
	case c.sum != than.sum:
		return c.sum < than.sum
	}
	return c.first < than.first
}

// beyond says that no choice whose sum is at least bound can be better.
func (c *choice) beyond(bound int64) bool { return c.waste == 0 && c.orphans == 0 && bound > c.sum }

// find answers the seats, ascending, and the step by which they were found; nil where there are none.
func (s *search) find(w Wish) ([]int32, Adjacency) {
	if w.Adjacency == 0 {
		w.Adjacency = Anywhere
	}
	if w.Accessible > 0 {
		s.mask = s.masks.all
		return s.relax(w)
	}
	s.mask = s.masks.ordinary
	seats, step := s.relax(w)
	if seats == nil && s.masks.hasSpecial {
		s.mask = s.masks.all
		seats, step = s.relax(w)
	}
	return seats, step
}

// relax tries the steps one after the other.
func (s *search) relax(w Wish) ([]int32, Adjacency) {
	if whole := (venue.Span{First: 0, End: int32(s.layout.SeatCount)}); countIn(s.free, s.mask, whole) < w.Quantity {
		return nil, 0
	}
	if seats := s.together(w); seats != nil {
		return seats, Together
	}
	if w.Adjacency >= SameRow {
		if seats := s.sameRow(w); seats != nil {
			return seats, SameRow
		}
	}
	if w.Adjacency >= SameSection {
		if seats := s.sameSection(w); seats != nil {
			return seats, SameSection
		}
	}
	if w.Adjacency >= Anywhere {
		if seats := s.anywhere(w); seats != nil {
			return seats, Anywhere
		}
	}
	return nil, 0
}

// list is the shortest list of lanes that holds all in which the wish can be fulfilled. They follow each other by best
// quality.
func (l *lanes) list(w Wish) []int32 {
	switch {
	case w.Section >= 0:
		return l.bySection[w.Section]
	case w.Accessible > 0:
		return l.accessible
	case w.Category >= 0:
		return l.byCategory[w.Category]
	}
	return l.order
}

func (s *search) shunned(lane int32) bool {
	return s.shun != 0 && (uint64(lane)+s.shun)*0x9E3779B97F4A7C15>>63 == 1
}

// together finds the best run of neighbours.
func (s *search) together(w Wish) []int32 {
	best := s.window(w.Quantity, w.Accessible, s.runs.list(w))
	if !best.found() {
		return nil
	}
	seats := make([]int32, w.Quantity)
	for k := range seats {
		seats[k] = best.first + int32(k)
	}
	return seats
}

// window finds the best run of size neighbours, with at least so many accessible ones, in the lanes listed.
func (s *search) window(size, accessible int, list []int32) choice {
	best := noChoice
	for _, i := range list {
		l := &s.runs.all[i]
		n := l.span.Count()
		if best.beyond(int64(size) * int64(l.best)) {
			break
		}
		if n < size || (n <= 64 && !hasRun(s.free, s.mask, l.span, size)) || s.shunned(i) {
			continue
		}
		end := l.span.End
		for first := nextIn(s.free, s.mask, l.span.First, end); first < end; {
			last := lastIn(s.free, s.mask, first, end)
			if int(last-first) >= size {
				s.slide(l.span, venue.Span{First: first, End: last}, size, accessible, &best)
			}
			first = nextIn(s.free, s.mask, last, end)
		}
	}
	return best
}

// slide moves a window along a run of seats that may be chosen. What is left of the free seats on either side of it is
// an orphan where it is one seat.
func (s *search) slide(lane, run venue.Span, size, accessible int, best *choice) {
	left, right := 0, 0 // free seats beyond the run that may not be chosen, as far as they matter
	if run.First > lane.First && s.free.Has(run.First-1) {
		left = 1
		if run.First-1 > lane.First && s.free.Has(run.First-2) {
			left = 2
		}
	}
	if run.End < lane.End && s.free.Has(run.End) {
		right = 1
		if run.End+1 < lane.End && s.free.Has(run.End+1) {
			right = 2
		}
	}
	for first := run.First; int(run.End-first) >= size; first++ {
		c := choice{first: first, sum: s.sum[int(first)+size] - s.sum[first]}
		if accessible > 0 {
			surplus := int(s.access[int(first)+size]-s.access[first]) - accessible
			if surplus < 0 {
				continue
			}
			c.waste = wasted(surplus, int(s.plain[int(first)+size]-s.plain[first]))
		}
		if !s.lifted {
			if int(first-run.First)+left == 1 {
				c.orphans++
			}
			if int(run.End-first)-size+right == 1 {
				c.orphans++
			}
		}
		if c.better(best) {
			*best = c
		}
	}
}

// sameRow finds the best choice of seats that follow each other in one row, with none that could have been chosen left
// out between them.
func (s *search) sameRow(w Wish) []int32 {
	best := noChoice
	var seats []int32
	for _, i := range s.rows.list(w) {
		l := &s.rows.all[i]
		if best.beyond(int64(w.Quantity) * int64(l.best)) {
			break
		}
		if l.span.Count() < w.Quantity || countIn(s.free, s.mask, l.span) < w.Quantity || s.shunned(i) {
			continue
		}
		s.row = s.row[:0]
		for seat := nextIn(s.free, s.mask, l.span.First, l.span.End); seat < l.span.End; seat = nextIn(s.free, s.mask, seat+1, l.span.End) {
			s.row = append(s.row, seat)
		}
		for k := 0; k+w.Quantity <= len(s.row); k++ {
			if c := s.rate(s.row[k:k+w.Quantity], w.Accessible); c.better(&best) {
				best = c
				seats = append(seats[:0], s.row[k:k+w.Quantity]...)
			}
		}
	}
	return seats
}

// rate is how good a choice of seats is.
func (s *search) rate(seats []int32, accessible int) choice {
	c := choice{first: seats[0]}
	has, plain := 0, 0
	for _, seat := range seats {
		c.sum += int64(s.layout.Quality[seat])
		has += int(s.access[seat+1] - s.access[seat])
		plain += int(s.plain[seat+1] - s.plain[seat])
	}
	if accessible > 0 {
		if has < accessible {
			return noChoice
		}
		c.waste = wasted(has-accessible, plain)
	}
	if !s.lifted {
		c.orphans = len(orphans(s.layout, s.free, seats))
	}
	return c
}

// sections lists the sections in the order in which to look for seats.
func (s *search) sections(w Wish) []int {
	if w.Section >= 0 {
		return []int{w.Section}
	}
	return s.layout.SectionsBestFirst
}

func (s *search) fits(section int, w Wish) bool {
	span := s.layout.Sections[section]
	return countIn(s.free, s.mask, span) >= w.Quantity &&
		(w.Accessible == 0 || s.countAccessible(span) >= w.Accessible)
}

// sameSection takes the first section, by quality, that has room for all.
func (s *search) sameSection(w Wish) []int32 {
	for _, section := range s.sections(w) {
		if s.fits(section, w) {
			return s.gather([]int{section}, w)
		}
	}
	return nil
}

// anywhere looks beyond the section asked for, adjoining ones first: the first that has room for all, who then sit as
// near to each other as may be; where none has, seats are gathered section by section. Where no section was asked for, it
// begins at that of the best seat.
func (s *search) anywhere(w Wish) []int32 {
	if s.countAccessible(venue.Span{First: 0, End: int32(s.layout.SeatCount)}) < w.Accessible {
		return nil
	}
	start := w.Section
	if start < 0 {
		list := s.runs.list(w)
		best := s.window(1, min(1, w.Accessible), list)
		if !best.found() {
			return nil // all lanes that have some are shunned
		}
		start = s.layout.SectionOf(best.first)
	}
	near := s.layout.SectionsNear(start)
	if w.Section >= 0 {
		for _, section := range near {
			if section == w.Section || !s.fits(section, w) {
				continue
			}
			there := w
			there.Section, there.Adjacency = section, SameSection
			if seats, _ := s.relax(there); seats != nil {
				return seats
			}
		}
	}
	return s.gather(near, w)
}

// gather takes seats section by section, in each as few and as large groups as there are, best ones first. The accessible
// places come first, then companions' places beside them.
func (s *search) gather(sections []int, w Wish) []int32 {
	var seats []int32
	take := func(seat int32) {
		seats = append(seats, seat)
		s.free.Clear(seat)
	}
	groups := func(mask venue.Bits, quantity int) {
		before := s.mask
		s.mask = mask
		for _, section := range sections {
			for len(seats) < quantity {
				size := s.longest(section, quantity-len(seats))
				if size == 0 {
					break
				}
				c := s.window(size, 0, s.runs.bySection[section])
				if !c.found() {
					break // only shunned lanes are left
				}
				for k := range size {
					take(c.first + int32(k))
				}
			}
		}
		s.mask = before
	}
	if w.Accessible > 0 {
		groups(s.accessibleOf(s.mask), w.Accessible)
		for _, seat := range slices.Clone(seats) {
			for _, beside := range s.neighbours(seat) {
				if len(seats) < w.Quantity && s.layout.Companion.Has(beside) && s.free.Has(beside) && s.masks.stepped.Has(beside) {
					take(beside)
				}
			}
		}
		groups(s.masks.stepped, w.Quantity)
	}
	groups(s.mask, w.Quantity)
	accessible := 0
	for _, seat := range seats {
		s.free.Set(seat)
		accessible += int(s.access[seat+1] - s.access[seat])
	}
	if len(seats) < w.Quantity || accessible < w.Accessible {
		return nil // those left are in lanes that are shunned
	}
	slices.Sort(seats)
	return seats
}

// longest is the length of the longest run of seats of a section that may be chosen, at most enough.
func (s *search) longest(section, enough int) int {
	longest := 0
	for _, i := range s.runs.bySection[section] {
		span := s.runs.all[i].span
		if span.Count() <= longest || s.shunned(i) {
			continue
		}
		for first := nextIn(s.free, s.mask, span.First, span.End); first < span.End; {
			last := lastIn(s.free, s.mask, first, span.End)
			longest = max(longest, int(last-first))
			if longest >= enough {
				return enough
			}
			first = nextIn(s.free, s.mask, last, span.End)
		}
	}
	return longest
}

func (s *search) accessibleOf(mask venue.Bits) venue.Bits {
	b := slices.Clone(mask)
	for w := range b {
		b[w] &= s.layout.Accessible[w]
	}
	return b
}

func (s *search) countAccessible(span venue.Span) int {
	count := 0
	for seat := nextIn(s.free, s.layout.Accessible, span.First, span.End); seat < span.End; seat = nextIn(s.free, s.layout.Accessible, seat+1, span.End) {
		if s.mask.Has(seat) {
			count++
		}
	}
	return count
}

func (s *search) neighbours(seat int32) (beside []int32) {
	if s.layout.Joined.Has(seat) {
		beside = append(beside, seat-1)
	}
	if int(seat)+1 < s.layout.SeatCount && s.layout.Joined.Has(seat+1) {
		beside = append(beside, seat+1)
	}
	return beside
}

// orphans are the free seats that the choice (ascending) would leave alone: they have a free neighbour now, and none once
// the choice is taken.
func orphans(layout *venue.Layout, free venue.Bits, seats []int32) (alone []int32) {
	chosen := func(seat int32) bool {
		_, found := slices.BinarySearch(seats, seat)
		return found
	}
	// joined to the seat before it, and that one free
	leftFree := func(seat int32) bool { return layout.Joined.Has(seat) && free.Has(seat-1) && !chosen(seat-1) }
	rightFree := func(seat int32) bool {
		return int(seat)+1 < layout.SeatCount && layout.Joined.Has(seat+1) && free.Has(seat+1) && !chosen(seat+1)
	}
	for _, seat := range seats {
		if !free.Has(seat) {
			continue // it was no free neighbour to anybody before
		}
		if leftFree(seat) && !leftFree(seat-1) && (len(alone) == 0 || alone[len(alone)-1] != seat-1) {
			alone = append(alone, seat-1)
		}
		if rightFree(seat) && !rightFree(seat+1) {
			alone = append(alone, seat+1)
		}
	}
	return alone
}
