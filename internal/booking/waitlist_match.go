package booking

import (
	"cmp"
	"slices"

	"onsale/internal/ledger"
)

// A stock is what an event has to offer: what is returned and promised to nobody yet.
type stock struct {
	event  *ledger.Event
	layout *ledger.Layout
	groups []group
	areas  []int32 // places of each
}

// A group is the seats of one category and section. There are few of them, so that a wish that nothing fits is passed over
// without a look at the seats.
type group struct {
	category, section int16
	seats             []int32 // ascending
}

// A pick is what of a stock fits a wish: seats, or (none) a quantity of places in an area.
type pick struct {
	seats    []int32 // ascending
	area     int32
	quantity int
}

func newStock(e *ledger.Event, l *ledger.Layout, r ledger.ReturnedPlaces) *stock {
	s := &stock{event: e, layout: l, areas: slices.Clone(r.Areas)}
	for _, seat := range slices.Sorted(slices.Values(r.Seats)) {
		g := s.group(seat)
		g.seats = append(g.seats, seat)
	}
	return s
}

// group is the one of a seat, made where it is the first.
func (s *stock) group(seat int32) *group {
	category, section := s.layout.Category[seat], s.layout.Section[seat]
	i := slices.IndexFunc(s.groups, func(g group) bool { return g.category == category && g.section == section })
	if i < 0 {
		i = len(s.groups)
		s.groups = append(s.groups, group{category: category, section: section})
	}
	return &s.groups[i]
}

func (s *stock) empty() bool {
	return !slices.ContainsFunc(s.groups, func(g group) bool { return len(g.seats) > 0 }) &&
		!slices.ContainsFunc(s.areas, func(n int32) bool { return n > 0 })
}

// all are the seats that are left, ascending.
func (s *stock) all() (seats []int32) {
	for _, g := range s.groups {
		seats = append(seats, g.seats...)
	}
	slices.Sort(seats)
	return seats
}

// has says whether a seat is there.
func (s *stock) has(seat int32) bool {
	if seat < 0 || int(seat) >= len(s.layout.Category) {
		return false
	}
	_, found := slices.BinarySearch(s.group(seat).seats, seat)
	return found
}

// take removes a pick.
func (s *stock) take(p pick) {
	if len(p.seats) == 0 {
		s.areas[p.area] -= int32(p.quantity)
	}
	s.drop(p.seats)
}

// drop removes seats, also such as are not there.
func (s *stock) drop(seats []int32) {
	for _, seat := range seats {
		g := s.group(seat)
		if i, found := slices.BinarySearch(g.seats, seat); found {
			g.seats = slices.Delete(g.seats, i, i+1)
		}
	}
}

// match picks what fits a wish, as many places as it asks for, and fewer only as it allows. Seats go before places of areas.
// Of seats that must be together the best run of neighbours is picked that leaves the fewest single ones behind; of others
// the best ones of one section, where one has enough. ok is false where nothing fits.
func (s *stock) match(w *ledger.Wish) (p pick, ok bool) {
	most := min(w.Quantity, s.event.SeatsPerHoldMax, ledger.OfferSeatsMax)
	wanted := s.wanted(w)
	have := 0
	for _, g := range wanted {
		have += len(g.seats)
	}
	for _, n := range s.areas {
		have = max(have, int(n))
	}
	for n := min(most, have); n >= max(1, w.Least); n-- {
		var seats []int32
		if w.Together {
			seats = s.together(wanted, n)
		} else {
			seats = s.apart(wanted, n)
		}
		if seats != nil {
			return pick{seats: seats}, true
		}
		for area, left := range s.areas {
			a := s.layout.Areas[area]
			if int(left) >= n && w.Wants(s.event, a.Category, a.Section) {
				return pick{area: int32(area), quantity: n}, true
			}
		}
	}
	return pick{}, false
}

// wanted are the groups whose seats would do for a wish.
func (s *stock) wanted(w *ledger.Wish) (wanted []group) {
	for _, g := range s.groups {
		if len(g.seats) > 0 && w.Wants(s.event, g.category, g.section) {
			wanted = append(wanted, g)
		}
	}
	return wanted
}

func (s *stock) quality(seats []int32) (sum int64) {
	for _, seat := range seats {
		sum += int64(s.layout.Quality[seat])
	}
	return sum
}

// neighbours says whether two seats are side by side, the second after the first.
func (s *stock) neighbours(a, b int32) bool {
	return a >= 0 && int(b) < len(s.layout.Run) && b == a+1 && s.layout.Run[a] == s.layout.Run[b]
}

// together is the best run of n neighbours, nil where there is none.
func (s *stock) together(wanted []group, n int) []int32 {
	var seats []int32
	for _, g := range wanted {
		seats = append(seats, g.seats...)
	}
	slices.Sort(seats)
	var best []int32
	var bestAlone int
	var bestSum int64
	run := 0 // how many neighbours end at i
	for i := range seats {
		if i > 0 && s.neighbours(seats[i-1], seats[i]) {
			run++
		} else {
			run = 1
		}
		if run < n {
			continue
		}
		choice := seats[i-n+1 : i+1]
		alone, sum := s.alone(choice), s.quality(choice)
		if best == nil || cmp.Or(cmp.Compare(alone, bestAlone), cmp.Compare(sum, bestSum)) < 0 {
			best, bestAlone, bestSum = choice, alone, sum
		}
	}
	return slices.Clone(best)
}

// alone counts the seats of the stock that a run of neighbours would leave without one: they had one and fit one person only
// afterwards.
func (s *stock) alone(run []int32) int {
	first, last := run[0], run[len(run)-1]
	n := 0
	if before := first - 1; s.neighbours(before, first) && s.has(before) && !(s.neighbours(before-1, before) && s.has(before-1)) {
		n++
	}
	if after := last + 1; s.neighbours(last, after) && s.has(after) && !(s.neighbours(after, after+1) && s.has(after+1)) {
		n++
	}
	return n
}

// apart are the best n seats: of the section where they are best together, else of several. nil where there are too few.
func (s *stock) apart(wanted []group, n int) []int32 {
	sections := map[int16][]int32{}
	var all []int32
	for _, g := range wanted {
		sections[g.section] = append(sections[g.section], g.seats...)
		all = append(all, g.seats...)
	}
	if len(all) < n {
		return nil
	}
	var best []int32
	var bestSum int64
	for _, seats := range sections {
		if len(seats) < n {
			continue
		}
		choice := s.bestOf(seats, n)
		sum := s.quality(choice)
		if best == nil || cmp.Or(cmp.Compare(sum, bestSum), cmp.Compare(choice[0], best[0])) < 0 {
			best, bestSum = choice, sum
		}
	}
	if best == nil {
		best = s.bestOf(all, n)
	}
	return best
}

// bestOf are the best n of some seats, ascending.
func (s *stock) bestOf(seats []int32, n int) []int32 {
	seats = slices.SortedFunc(slices.Values(seats), func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.layout.Quality[a], s.layout.Quality[b]), cmp.Compare(a, b))
	})[:n]
	slices.Sort(seats)
	return seats
}
