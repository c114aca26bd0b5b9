package venue

import (
	"math"
	"slices"
)

// QualityMax is the quality of the worst seat of a plan. A sum of the qualities of 2,000 seats fits an int32.
const QualityMax = 1_000_000

// What makes a seat worse than its distance to the focal point says, as a share of the plan's greatest distance.
const (
	restrictedViewPenalty = 0.20
	rowOrderPenalty       = 0.05 // of the last row of a section; the rows before it in proportion
)

// A Layout is what selling needs to know of a plan, by seat index, computed once. It is immutable and shared: callers
// must not write into its slices.
type Layout struct {
	SeatCount int

	// Quality is lower for a better seat, 0…QualityMax: the distance to the focal point (of the section, where it has one of
	// its own), and a little for each row further back and for a restricted view. Comparable over the whole plan.
	Quality []int32
	// BestFirst holds all seats, best quality first, equal ones by index.
	BestFirst []SeatIndex

	// Joined holds the seats i whose neighbour in the same row is i-1: not the first of a row, not one behind a break.
	Joined Bits
	// Runs are the maximal runs of neighbours, by index; together they hold every seat once.
	Runs []Span

	Accessible     Bits
	Companion      Bits
	RestrictedView Bits

	Categories []Bits // the seats of each category, by its index in the plan
	Sections   []Span // the seats of each section; Span.Word gives it as a bitmap, word by word
	Rows       []Span // the seats of each row

	// SectionsBestFirst holds the indexes of all sections which have seats, by the mean quality of their seats.
	SectionsBestFirst []int
	// Adjoining holds for each section the indexes of those beside it, nearest first.
	Adjoining [][]int

	sectionOf []int32
	index     map[string]SeatIndex
}

// Layout is the plan's layout, computed at the first call and shared by all later ones. The plan must be valid (see
// Validate) and must not change afterwards. Safe for concurrent use.
func (p *Plan) Layout() *Layout {
	if l := p.layout.Load(); l != nil {
		return l
	}
	// Two first callers may both compute it; all get the same one.
	p.layout.CompareAndSwap(nil, newLayout(p))
	return p.layout.Load()
}

// Lookup finds the index of the seat with this id.
func (l *Layout) Lookup(id string) (SeatIndex, bool) {
	seat, ok := l.index[id]
	return seat, ok
}

// SectionOf is the index of the section of a seat.
func (l *Layout) SectionOf(seat SeatIndex) int { return int(l.sectionOf[seat]) }

// SectionsNear lists every section that has seats in the order in which to look for seats for somebody who asked for this
// one: itself, those beside it, all others by quality.
func (l *Layout) SectionsNear(section int) []int {
	near := make([]int, 0, len(l.SectionsBestFirst))
	listed := make([]bool, len(l.Sections))
	add := func(s int) {
		if !listed[s] && l.Sections[s].Count() > 0 {
			listed[s] = true
			near = append(near, s)
		}
	}
	add(section)
	for _, s := range l.Adjoining[section] {
		add(s)
	}
	for _, s := range l.SectionsBestFirst {
		add(s)
	}
	return near
}

func newLayout(p *Plan) *Layout {
	n := len(p.Seats)
	l := &Layout{
		SeatCount:      n,
		Joined:         NewBits(n),
		Accessible:     NewBits(n),
		Companion:      NewBits(n),
		RestrictedView: NewBits(n),
		Categories:     make([]Bits, len(p.Categories)),
		Sections:       make([]Span, len(p.Sections)),
		Rows:           make([]Span, len(p.Rows)),
		Adjoining:      make([][]int, len(p.Sections)),
		sectionOf:      make([]int32, n),
		index:          make(map[string]SeatIndex, n),
	}
	for c := range l.Categories {
		l.Categories[c] = NewBits(n)
	}
	for i := range p.Seats {
		seat, s := &p.Seats[i], SeatIndex(i)
		l.index[seat.ID] = s
		l.sectionOf[i] = int32(p.Rows[seat.Row].Section)
		l.Categories[seat.Category].Set(s)
		if seat.Flags&Accessible != 0 {
			l.Accessible.Set(s)
		}
		if seat.Flags&Companion != 0 {
			l.Companion.Set(s)
		}
		if seat.Flags&RestrictedView != 0 {
			l.RestrictedView.Set(s)
		}
	}
	for i, section := range p.Sections {
		l.Sections[i] = Span{SeatIndex(section.SeatFirst), SeatIndex(section.SeatFirst + section.SeatCount)}
		l.Adjoining[i] = section.Adjoining
	}
	l.joinRows(p)
	l.rate(p)
	return l
}

// joinRows fills Rows, Joined and Runs.
func (l *Layout) joinRows(p *Plan) {
	for r, row := range p.Rows {
		span := Span{SeatIndex(row.SeatFirst), SeatIndex(row.SeatFirst + row.SeatCount)}
		l.Rows[r] = span
		run := Span{span.First, span.First}
		breaks := row.Breaks
		for seat := span.First; seat < span.End; seat++ {
			switch {
			case len(breaks) > 0 && breaks[0] == seat:
				breaks = breaks[1:]
				l.Runs = append(l.Runs, run)
				run.First = seat
			case seat > span.First:
				l.Joined.Set(seat)
			}
			run.End = seat + 1
		}
		if run.Count() > 0 {
			l.Runs = append(l.Runs, run)
		}
	}
}

// rate fills Quality, BestFirst and SectionsBestFirst.
func (l *Layout) rate(p *Plan) {
	distance := make([]float64, l.SeatCount)
	greatest := 0.0
	for i := range distance {
		distance[i] = p.distance(SeatIndex(i))
		greatest = max(greatest, distance[i])
	}
	if greatest == 0 {
		greatest = 1
	}
	for i := range distance {
		row := int(p.Seats[i].Row)
		section := &p.Sections[p.Rows[row].Section]
		if section.RowCount > 1 {
			distance[i] += greatest * rowOrderPenalty * float64(row-section.RowFirst) / float64(section.RowCount-1)
		}
		if p.Seats[i].Flags&RestrictedView != 0 {
			distance[i] += greatest * restrictedViewPenalty
		}
	}
	scale := QualityMax / (greatest * (1 + restrictedViewPenalty + rowOrderPenalty))
	l.Quality = make([]int32, l.SeatCount)
	l.BestFirst = make([]SeatIndex, l.SeatCount)
	for i, d := range distance {
		l.Quality[i] = int32(math.Round(d * scale))
		l.BestFirst[i] = SeatIndex(i)
	}
	slices.SortFunc(l.BestFirst, func(a, b SeatIndex) int {
		if l.Quality[a] != l.Quality[b] {
			return int(l.Quality[a] - l.Quality[b])
		}
		return int(a - b)
	})
	l.rateSections()
}

func (l *Layout) rateSections() {
	mean := make([]float64, len(l.Sections))
	for s, span := range l.Sections {
		if span.Count() == 0 {
			continue
		}
		sum := 0.0
		for seat := span.First; seat < span.End; seat++ {
			sum += float64(l.Quality[seat])
		}
		mean[s] = sum / float64(span.Count())
		l.SectionsBestFirst = append(l.SectionsBestFirst, s)
	}
	slices.SortStableFunc(l.SectionsBestFirst, func(a, b int) int {
		switch {
		case mean[a] < mean[b]:
			return -1
		case mean[a] > mean[b]:
			return 1
		}
		return 0
	})
}

// focalOf is what the seats of a section look at.
func (p *Plan) focalOf(section int) Point {
	if own := p.Sections[section].Focal; own != nil {
		return *own
	}
	return p.Focal
}

// distance is how far a seat is from what it looks at, in plan units.
func (p *Plan) distance(seat SeatIndex) float64 {
	s := &p.Seats[seat]
	return separation(Point{s.X, s.Y}, p.focalOf(p.Rows[s.Row].Section))
}

// separation is the distance of two points, in float64: coordinates of a plan are large and differences small.
func separation(a, b Point) float64 {
	return math.Hypot(float64(a.X)-float64(b.X), float64(a.Y)-float64(b.Y))
}

// rowDistance is the mean distance of a row's seats from what they look at: rows are ordered by it.
func (p *Plan) rowDistance(row int) float64 {
	r := &p.Rows[row]
	sum := 0.0
	for i := r.SeatFirst; i < r.SeatFirst+r.SeatCount; i++ {
		sum += p.distance(SeatIndex(i))
	}
	return sum / float64(max(1, r.SeatCount))
}
