package inventory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"onsale/internal/venue"
)

// smallPlan is a random plan of a few short rows, with aisles, categories and accessible places.
func smallPlan(r *rand.Rand) *venue.Plan {
	p := &venue.Plan{Format: venue.FormatVersion, Name: "small"}
	for c := range 1 + r.IntN(3) {
		p.Categories = append(p.Categories, venue.Category{Key: fmt.Sprint("c", c), Name: "c"})
	}
	sections := 1 + r.IntN(4)
	for s := range sections {
		section := venue.Section{Key: fmt.Sprint("s", s), Name: "s", RowFirst: len(p.Rows), SeatFirst: len(p.Seats)}
		for range 1 + r.IntN(3) {
			row := venue.Row{Section: s, SeatFirst: len(p.Seats), SeatCount: 1 + r.IntN(9)}
			if r.IntN(40) == 0 {
				row.SeatCount += 70 // longer than a word
			}
			for k := range row.SeatCount {
				i := len(p.Seats)
				if k > 0 && r.IntN(8) == 0 {
					row.Breaks = append(row.Breaks, int32(i))
				}
				seat := venue.Seat{ID: fmt.Sprint(i), Row: int32(len(p.Rows)), Category: int16(r.IntN(len(p.Categories))),
					X: float32(r.IntN(30)), Y: float32(r.IntN(30))}
				if r.IntN(3) > 0 && k > 0 {
					seat.Category = p.Seats[i-1].Category
				}
				switch r.IntN(12) {
				case 0:
					seat.Flags = venue.Accessible
				case 1:
					seat.Flags = venue.Companion
				case 2:
					seat.Flags = venue.RestrictedView
				}
				p.Seats = append(p.Seats, seat)
			}
			section.RowCount++
			section.SeatCount += row.SeatCount
			p.Rows = append(p.Rows, row)
		}
		p.Sections = append(p.Sections, section)
	}
	for s := range p.Sections {
		for _, other := range r.Perm(sections) {
			if other != s && r.IntN(2) == 0 {
				p.Sections[s].Adjoining = append(p.Sections[s].Adjoining, other)
			}
		}
	}
	return p
}

// An oracle finds seats by trying everything, on plain slices.
type oracle struct {
	layout  *venue.Layout
	free    []bool
	sold    []bool // priced, and of the category wished for
	lifted  bool
	allowed []bool
}

type oracleChoice struct {
	seats                      []int32
	waste, plain, orphans, sum int
}

func (o *oracle) joined(i int) bool {
	return i > 0 && i < o.layout.SeatCount && o.layout.Joined.Has(int32(i))
}

// alone lists the free seats without a free neighbour.
func (o *oracle) alone(without []int32) map[int]bool {
	free := slices.Clone(o.free)
	for _, s := range without {
		free[s] = false
	}
	alone := map[int]bool{}
	for i := range free {
		left := o.joined(i) && free[i-1]
		right := o.joined(i+1) && free[i+1]
		if free[i] && !left && !right {
			alone[i] = true
		}
	}
	return alone
}

func (o *oracle) rate(seats []int32, accessible int) (oracleChoice, bool) {
	c := oracleChoice{seats: slices.Clone(seats)}
	has, plain := 0, 0
	for _, s := range seats {
		c.sum += int(o.layout.Quality[s])
		if o.layout.Accessible.Has(s) {
			has++
		} else if !o.layout.Companion.Has(s) {
			plain++
		}
	}
	if has < accessible {
		return c, false
	}
	if accessible > 0 {
		c.waste, c.plain = has-accessible, plain
	}
	if !o.lifted {
		before := o.alone(nil)
		for i := range o.alone(seats) {
			if !before[i] {
				c.orphans++
			}
		}
	}
	return c, true
}

func (o *oracle) bestOf(candidates [][]int32, accessible int) []int32 {
	var best *oracleChoice
	for _, seats := range candidates {
		c, ok := o.rate(seats, accessible)
		if !ok {
			continue
		}
		if best == nil || slices.Compare([]int{c.waste, c.plain, c.orphans, c.sum, int(seats[0])}, []int{best.waste, best.plain, best.orphans, best.sum, int(best.seats[0])}) < 0 {
			best = &c
		}
	}
	if best == nil {
		return nil
	}
	return best.seats
}

func (o *oracle) runsIn(span venue.Span, size int) (runs [][]int32) {
	for first := span.First; int(first)+size <= int(span.End); first++ {
		var run []int32
		for i := first; int(i) < int(first)+size && o.free[i] && o.allowed[i] && (i == first || o.joined(int(i))); i++ {
			run = append(run, i)
		}
		if len(run) == size {
			runs = append(runs, run)
		}
	}
	return runs
}

func (o *oracle) choosable(span venue.Span) (seats []int32) {
	for i := span.First; i < span.End; i++ {
		if o.free[i] && o.allowed[i] {
			seats = append(seats, i)
		}
	}
	return seats
}

func (o *oracle) spanOf(section int) venue.Span {
	if section < 0 {
		return venue.Span{End: int32(o.layout.SeatCount)}
	}
	return o.layout.Sections[section]
}

func (o *oracle) fits(section int, w Wish) bool {
	seats := o.choosable(o.spanOf(section))
	accessible := 0
	for _, s := range seats {
		if o.layout.Accessible.Has(s) {
			accessible++
		}
	}
	return len(seats) >= w.Quantity && accessible >= w.Accessible
}

func (o *oracle) find(w Wish) ([]int32, Adjacency) {
	o.allowed = slices.Clone(o.sold)
	if w.Accessible > 0 {
		return o.relax(w)
	}
	for i := range o.allowed {
		o.allowed[i] = o.sold[i] && !o.layout.Accessible.Has(int32(i)) && !o.layout.Companion.Has(int32(i))
	}
	if seats, step := o.relax(w); seats != nil {
		return seats, step
	}
	o.allowed = slices.Clone(o.sold)
	return o.relax(w)
}

func (o *oracle) relax(w Wish) ([]int32, Adjacency) {
	if seats := o.bestOf(o.runsIn(o.spanOf(w.Section), w.Quantity), w.Accessible); seats != nil {
		return seats, Together
	}
	if w.Adjacency == Together {
		return nil, 0
	}
	var inRow [][]int32
	for _, row := range o.layout.Rows {
		if !o.spanOf(w.Section).Has(row.First) {
			continue
		}
		list := o.choosable(row)
		for k := 0; k+w.Quantity <= len(list); k++ {
			inRow = append(inRow, list[k:k+w.Quantity])
		}
	}
	if seats := o.bestOf(inRow, w.Accessible); seats != nil {
		return seats, SameRow
	}
	if w.Adjacency == SameRow {
		return nil, 0
	}
	for _, section := range o.layout.SectionsBestFirst {
		if (w.Section < 0 || section == w.Section) && o.fits(section, w) {
			return o.gather([]int{section}, w), SameSection
		}
	}
	if w.Adjacency == SameSection || !o.fits(-1, w) {
		return nil, 0
	}
	start := w.Section
	if start < 0 {
		best := o.bestOf(o.runsIn(o.spanOf(-1), 1), min(1, w.Accessible))
		start = o.layout.SectionOf(best[0])
	}
	near := o.layout.SectionsNear(start)
	for _, section := range near {
		if w.Section >= 0 && section != w.Section && o.fits(section, w) {
			there := w
			there.Section, there.Adjacency = section, SameSection
			seats, _ := o.relax(there)
			return seats, Anywhere
		}
	}
	return o.gather(near, w), Anywhere
}

// gather takes group after group, as large and as good as there are.
func (o *oracle) gather(sections []int, w Wish) []int32 {
	var seats []int32
	free, allowed := slices.Clone(o.free), o.allowed
	take := func(quantity int, allow func(i int) bool) {
		o.allowed = make([]bool, len(allowed))
		for i := range allowed {
			o.allowed[i] = allowed[i] && allow(i)
		}
		for _, section := range sections {
			for size := quantity - len(seats); size > 0; {
				run := o.bestOf(o.runsIn(o.spanOf(section), size), 0)
				if run == nil {
					size--
					continue
				}
				for _, s := range run {
					o.free[s] = false
				}
				seats = append(seats, run...)
				size = min(size, quantity-len(seats))
			}
		}
	}
	if w.Accessible > 0 {
		take(w.Accessible, func(i int) bool { return o.layout.Accessible.Has(int32(i)) })
		for _, s := range slices.Clone(seats) {
			for _, beside := range []int{int(s) - 1, int(s) + 1} {
				if !o.joined(max(int(s), beside)) || len(seats) == w.Quantity {
					continue
				}
				if o.free[beside] && allowed[beside] && o.layout.Companion.Has(int32(beside)) && !o.layout.Accessible.Has(int32(beside)) {
					o.free[beside] = false
					seats = append(seats, int32(beside))
				}
			}
		}
		take(w.Quantity, func(i int) bool { return !o.layout.Accessible.Has(int32(i)) })
	}
	take(w.Quantity, func(int) bool { return true })
	o.free, o.allowed = free, allowed
	slices.Sort(seats)
	return seats
}

// The finder against the oracle, on 10,000 random small plans.
func TestFindAgainstOracle(t *testing.T) {
	steps := map[Adjacency]int{}
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		layout := smallPlan(r).Layout()
		f := newFinder(layout)
		o := &oracle{layout: layout, free: make([]bool, layout.SeatCount), sold: make([]bool, layout.SeatCount), lifted: r.IntN(4) == 0}
		w := Wish{Quantity: 1 + r.IntN(6), Category: -1, Section: -1, Adjacency: Adjacency(1 + r.IntN(4))}
		if r.IntN(3) == 0 {
			w.Category = r.IntN(len(layout.Categories))
		}
		if r.IntN(3) == 0 {
			w.Section = r.IntN(len(layout.Sections))
		}
		if r.IntN(4) == 0 {
			w.Accessible = 1 + r.IntN(w.Quantity)
		}
		unpriced := r.IntN(6) // often none
		sold, percent := venue.NewBits(layout.SeatCount), 20+r.IntN(81)
		s := &search{finder: f, free: venue.NewBits(layout.SeatCount), lifted: o.lifted}
		for i := range layout.SeatCount {
			o.free[i] = r.IntN(100) < percent
			for c := range layout.Categories {
				if layout.Categories[c].Has(int32(i)) {
					o.sold[i] = c != unpriced && (w.Category < 0 || w.Category == c)
				}
			}
			if o.free[i] {
				s.free.Set(int32(i))
			}
			if o.sold[i] {
				sold.Set(int32(i))
			}
		}
		s.masks = f.newMasks(sold)
		before := slices.Clone(s.free)
		seats, step := s.find(w)
		wantSeats, wantStep := o.find(w)
		steps[step]++
		if step != wantStep || !slices.Equal(seats, wantSeats) {
			t.Fatalf("seed %d, %+v: found %v %s, want %v %s", seed, w, seats, step, wantSeats, wantStep)
		}
		if !slices.Equal(s.free, before) {
			t.Fatalf("seed %d: the search has changed its picture", seed)
		}
		if seats == nil {
			continue
		}
		if tight := f.step(seats); tight > step && step != Anywhere {
			t.Fatalf("seed %d: said %s of %v, which are %s", seed, step, seats, tight)
		}
		checkChoice(t, seed, o, w, seats)
		s.shun = seed | 1
		if others, _ := s.find(w); others != nil {
			checkChoice(t, seed, o, w, others)
		}
	}
	for step := Adjacency(0); step <= Anywhere; step++ {
		if steps[step] < 100 {
			t.Errorf("step %q was taken only %d times: the test does not test it", step, steps[step])
		}
	}
}

// checkChoice says what must hold of every choice, whatever the oracle would have taken.
func checkChoice(t *testing.T, seed uint64, o *oracle, w Wish, seats []int32) {
	t.Helper()
	accessible := 0
	for k, seat := range seats {
		if !o.free[seat] || !o.sold[seat] || (k > 0 && seats[k-1] >= seat) {
			t.Fatalf("seed %d, %+v: seat %d of %v may not be chosen", seed, w, seat, seats)
		}
		if o.layout.Accessible.Has(seat) {
			accessible++
		}
		if w.Section >= 0 && w.Adjacency < Anywhere && o.layout.SectionOf(seat) != w.Section {
			t.Fatalf("seed %d, %+v: seat %d is not in the section", seed, w, seat)
		}
	}
	if len(seats) != w.Quantity || accessible < w.Accessible {
		t.Fatalf("seed %d, %+v: %v are %d seats, %d accessible", seed, w, seats, len(seats), accessible)
	}
}

// The orphans of hand-picked choices against the definition.
func TestOrphansAgainstDefinition(t *testing.T) {
	some := 0
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 2))
		layout := smallPlan(r).Layout()
		o := &oracle{layout: layout, free: make([]bool, layout.SeatCount)}
		free := venue.NewBits(layout.SeatCount)
		var seats []int32
		for i := range layout.SeatCount {
			if o.free[i] = r.IntN(3) > 0; o.free[i] {
				free.Set(int32(i))
			}
			if r.IntN(5) == 0 {
				seats = append(seats, int32(i))
			}
		}
		before := o.alone(nil)
		var want []int32
		for i := range o.alone(seats) {
			if !before[i] {
				want = append(want, int32(i))
			}
		}
		slices.Sort(want)
		if got := orphans(layout, free, seats); !slices.Equal(got, want) {
			t.Fatalf("seed %d: choosing %v leaves %v alone, want %v", seed, seats, got, want)
		}
		some += len(want)
	}
	if some < 1000 {
		t.Errorf("only %d orphans in all: the test does not test much", some)
	}
}

func TestAdjacencyWords(t *testing.T) {
	for _, a := range []Adjacency{Together, SameRow, SameSection, Anywhere} {
		if got, err := ParseAdjacency(a.String()); got != a || err != nil {
			t.Errorf("%s: %v, %v", a, got, err)
		}
	}
	if got, err := ParseAdjacency(""); got != Anywhere || err != nil {
		t.Errorf("no word: %v, %v", got, err)
	}
	if _, err := ParseAdjacency("near"); err == nil {
		t.Error("an unknown word was read")
	}
}
