package venue

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// randomPlan draws a small valid plan with sections without rows, rows of one seat, breaks anywhere and all flags.
func randomPlan(t *rapid.T) *Plan {
	d := &draft{name: "random", categories: []Category{{Key: "a"}, {Key: "b"}, {Key: "c"}}}
	seatCount := 0
	for s := range rapid.IntRange(1, 5).Draw(t, "sections") {
		section := draftSection{key: fmt.Sprint("s", s)}
		if rapid.Bool().Draw(t, "own focal point") {
			section.focal = &Point{float32(rapid.IntRange(-50, 50).Draw(t, "focal")), 0}
		}
		for r := range rapid.IntRange(0, 5).Draw(t, "rows") {
			row := draftRow{label: fmt.Sprint(r)}
			x := float32(200 * s)
			for i := range rapid.IntRange(1, 30).Draw(t, "seats") {
				seat := draftSeat{place: i}
				seat.ID, seat.Label = fmt.Sprint(seatCount), fmt.Sprint(i)
				seat.X, seat.Y = x, float32(20*r)
				seat.Category = int16(rapid.IntRange(0, 2).Draw(t, "category"))
				seat.Flags = SeatFlags(rapid.IntRange(0, 7).Draw(t, "flags"))
				row.seats = append(row.seats, seat)
				x += float32(rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(t, "gap"))
				seatCount++
			}
			section.rows = append(section.rows, row)
		}
		section.areas = []Area{{ID: section.key, Capacity: 1}}
		d.sections = append(d.sections, section)
	}
	return assemble(d)
}

// TestLayout compares what a layout says of every seat with what the plan says, looked up the long way.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomPlan(t)
		if problems := p.Validate(); len(problems) > 0 {
			t.Fatal(problems)
		}
		l := p.Layout()
		if l.SeatCount != len(p.Seats) || len(l.Quality) != len(p.Seats) || len(l.BestFirst) != len(p.Seats) {
			t.Fatalf("sizes %d %d %d of %d seats", l.SeatCount, len(l.Quality), len(l.BestFirst), len(p.Seats))
		}
		for i, seat := range p.Seats {
			s := SeatIndex(i)
			row := p.Rows[seat.Row]
			joined := i > row.SeatFirst && !slices.Contains(row.Breaks, s)
			if l.Joined.Has(s) != joined {
				t.Fatalf("seat %d joined: %v, want %v (%+v)", i, l.Joined.Has(s), joined, row)
			}
			for flag, set := range map[SeatFlags]Bits{Accessible: l.Accessible, Companion: l.Companion, RestrictedView: l.RestrictedView} {
				if set.Has(s) != (seat.Flags&flag != 0) {
					t.Fatalf("seat %d has flags %d, its set of %d says %v", i, seat.Flags, flag, set.Has(s))
				}
			}
			for c, set := range l.Categories {
				if set.Has(s) != (int(seat.Category) == c) {
					t.Fatalf("seat %d is of category %d, the set of %d says %v", i, seat.Category, c, set.Has(s))
				}
			}
			for k, span := range l.Sections {
				in := p.SectionOf(s) == k
				if span.Has(s) != in || span.Word(i/64)>>(i%64)&1 == 1 != in || span.Bits(l.SeatCount).Has(s) != in {
					t.Fatalf("seat %d and section %d: the span says %v, want %v", i, k, span.Has(s), in)
				}
			}
			if found, ok := l.Lookup(seat.ID); !ok || found != s || l.SectionOf(s) != p.SectionOf(s) || !l.Rows[seat.Row].Has(s) {
				t.Fatalf("seat %d is found as %d, %v", i, found, ok)
			}
		}
		if _, ok := l.Lookup("nobody's"); ok {
			t.Fatal("an id that is not in the plan was found")
		}
		checkRuns(t, l)
		checkQuality(t, p, l)
	})
}

// checkRuns: the runs hold every seat once, and are cut exactly where neighbours are not joined.
func checkRuns(t *rapid.T, l *Layout) {
	next := SeatIndex(0)
	for _, run := range l.Runs {
		if run.First != next || run.Count() < 1 {
			t.Fatalf("run %v does not follow on seat %d", run, next)
		}
		for seat := run.First; seat < run.End; seat++ {
			if l.Joined.Has(seat) != (seat > run.First) {
				t.Fatalf("seat %d of run %v is joined: %v", seat, run, l.Joined.Has(seat))
			}
		}
		next = run.End
	}
	if int(next) != l.SeatCount {
		t.Fatalf("the runs end at %d of %d seats", next, l.SeatCount)
	}
}

// checkQuality: within the bounds, worse with distance in a row, worse for a restricted view, best first.
func checkQuality(t *rapid.T, p *Plan, l *Layout) {
	for i, q := range l.Quality {
		if q < 0 || q > QualityMax {
			t.Fatalf("quality of seat %d is %d", i, q)
		}
		for k := range i {
			a, b := p.Seats[k], p.Seats[i]
			if a.Row == b.Row && a.Flags&RestrictedView <= b.Flags&RestrictedView &&
				p.distance(SeatIndex(k)) < p.distance(SeatIndex(i)) && l.Quality[k] > q {
				t.Fatalf("seat %d is nearer than %d in the same row, but has quality %d and %d", k, i, l.Quality[k], q)
			}
		}
	}
	order := slices.Clone(l.BestFirst)
	sorted := slices.IsSortedFunc(order, func(a, b SeatIndex) int {
		return int(l.Quality[a]-l.Quality[b])*2 + int(min(1, max(-1, a-b)))
	})
	slices.Sort(order)
	for i, seat := range order {
		if int(seat) != i || !sorted {
			t.Fatalf("BestFirst is not the seats by quality: %v", l.BestFirst)
		}
	}
}

func TestSpanWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "seats")
		first := rapid.IntRange(0, n).Draw(t, "first")
		end := rapid.IntRange(first, n).Draw(t, "end")
		span := Span{SeatIndex(first), SeatIndex(end)}
		want := NewBits(n)
		for i := first; i < end; i++ {
			want.Set(SeatIndex(i))
		}
		got := span.Bits(n)
		if !slices.Equal(got, want) || got.Count() != span.Count() {
			t.Fatalf("%v of %d is %x, want %x", span, n, got, want)
		}
		if end > first {
			got.Clear(span.First)
			if got.Has(span.First) || got.Count() != span.Count()-1 {
				t.Fatalf("clearing %d leaves %x", first, got)
			}
		}
	})
}

func TestLayoutIsShared(t *testing.T) {
	p := Generate(GenerateOptions{Seats: 500})
	layouts := make([]*Layout, 8)
	var group sync.WaitGroup
	for i := range layouts {
		group.Go(func() { layouts[i] = p.Layout() })
	}
	group.Wait()
	for _, l := range layouts {
		if l != layouts[0] {
			t.Fatal("two callers got different layouts")
		}
	}
}

func TestSectionsNear(t *testing.T) {
	p := Generate(GenerateOptions{Seats: 5000})
	l := p.Layout()
	for s, span := range l.Sections {
		near := l.SectionsNear(s)
		if span.Count() > 0 && near[0] != s {
			t.Fatalf("near section %d comes %d first", s, near[0])
		}
		if rest := near[1:]; span.Count() > 0 && !slices.Equal(rest[:len(l.Adjoining[s])], l.Adjoining[s]) {
			t.Fatalf("behind section %d come %v, not those beside it, %v", s, rest, l.Adjoining[s])
		}
		slices.Sort(near)
		if len(near) != len(l.SectionsBestFirst) || len(slices.Compact(near)) != len(l.SectionsBestFirst) {
			t.Fatalf("near section %d are %d sections of %d", s, len(near), len(l.SectionsBestFirst))
		}
	}
}

func TestAdjoining(t *testing.T) {
	row := func(x, y float32) []draftRow {
		var r draftRow
		for i := range 10 {
			seat := draftSeat{}
			seat.ID = fmt.Sprint(x, y, i)
			seat.X, seat.Y = x+float32(i), y
			r.seats = append(r.seats, seat)
		}
		return []draftRow{r}
	}
	p := assemble(&draft{categories: []Category{{Key: "a"}}, sections: []draftSection{
		{key: "left", rows: row(0, 0)},
		{key: "middle", rows: row(11, 0)},
		{key: "right", rows: row(24, 0)},
		{key: "far away", rows: row(500, 0)},
		{key: "above", floor: "1", rows: row(11, 0)},
		{key: "empty"},
	}})
	for i, want := range [][]int{{1}, {0, 2}, {1}, nil, nil, nil} {
		if got := p.Sections[i].Adjoining; !slices.Equal(got, want) {
			t.Errorf("beside %s are %v, want %v", p.Sections[i].Key, got, want)
		}
	}
}

func TestHullGap(t *testing.T) {
	square := func(x, y, size float32) []Point {
		return hullOf([]Point{{x, y}, {x + size, y}, {x + size, y + size}, {x, y + size}, {x + size/2, y + size/2}})
	}
	for _, test := range []struct {
		name string
		a, b []Point
		want float64
	}{
		{"apart", square(0, 0, 10), square(13, 0, 10), 3},
		{"corner to corner", square(0, 0, 10), square(13, 14, 10), 5},
		{"overlapping", square(0, 0, 10), square(5, 5, 10), 0},
		{"one in the other", square(0, 0, 10), square(4, 4, 2), 0},
		{"crossing without a corner inside", square(0, 0, 10), hullOf([]Point{{-5, 4}, {15, 4}, {15, 6}, {-5, 6}}), 0},
		{"a point", square(0, 0, 10), []Point{{10, 12}}, 2},
		{"two lines", []Point{{0, 0}, {10, 0}}, []Point{{0, 7}, {10, 7}}, 7},
	} {
		for _, got := range []float64{hullGap(test.a, test.b), hullGap(test.b, test.a)} {
			if math.Abs(got-test.want) > 1e-9 {
				t.Errorf("%s: gap %v, want %v", test.name, got, test.want)
			}
		}
	}
}

func BenchmarkLayout(b *testing.B) {
	p := Generate(GenerateOptions{Seats: 50_000})
	for b.Loop() {
		newLayout(p)
	}
}

// TestQualityPenalties: at the same distance a restricted view, and a row further back, are worse.
func TestQualityPenalties(t *testing.T) {
	p := twoSections() // the focal point is 0, 0
	for i := range p.Seats {
		p.Seats[i].X, p.Seats[i].Y = 10, 0
	}
	p.Seats[1].Flags = RestrictedView
	q := p.Layout().Quality
	if q[0] != q[2] || q[1] <= q[0] || q[3] <= q[0] || q[3] != q[4] || q[3] >= q[1] {
		t.Errorf("qualities are %v; want the second seat worst, the second row next, the others equal", q[:5])
	}
}
