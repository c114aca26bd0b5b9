package booking

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"onsale/internal/ledger"
)

// A wide hall for matching: 4 sections of 3 rows of 6 seats, of 3 categories, and two areas.
func matchLayout() *ledger.Layout {
	l := &ledger.Layout{PlanHash: "wide", Areas: []ledger.AreaLayout{{Section: 0, Category: 0, Capacity: 9}, {Section: 4, Category: 2, Capacity: 9}}}
	for i := range 72 {
		l.Section = append(l.Section, int16(i/18))
		l.Category = append(l.Category, int16(i/24))
		l.Run = append(l.Run, int32(i/6))
		l.Quality = append(l.Quality, int32((i*7919)%101))
	}
	return l
}

func matchEvent() *ledger.Event {
	e := hallEvent()
	e.Tiers = []ledger.Tier{{Category: 0, Face: 5000}, {Category: 1, Face: 3000}, {Category: 2, Face: 1000}}
	return &e
}

func drawWish(t *rapid.T) *ledger.Wish {
	w := &ledger.Wish{ID: 1, Quantity: rapid.IntRange(1, 6).Draw(t, "quantity"), Together: rapid.Bool().Draw(t, "together")}
	w.Least = rapid.IntRange(1, w.Quantity).Draw(t, "least")
	w.Categories = rapid.SliceOfNDistinct(rapid.Int16Range(0, 2), 0, 2, rapid.ID[int16]).Draw(t, "categories")
	w.Sections = rapid.SliceOfNDistinct(rapid.Int16Range(0, 4), 0, 2, rapid.ID[int16]).Draw(t, "sections")
	w.PriceMax = rapid.SampledFrom([]int64{0, 0, 1000, 3000, 4999}).Draw(t, "price max")
	return w
}

func drawReturned(t *rapid.T) ledger.ReturnedPlaces {
	return ledger.ReturnedPlaces{
		Seats: rapid.SliceOfNDistinct(rapid.Int32Range(0, 71), 0, 24, rapid.ID[int32]).Draw(t, "seats"),
		Areas: []int32{rapid.Int32Range(0, 3).Draw(t, "area 0"), rapid.Int32Range(0, 3).Draw(t, "area 1")},
	}
}

// fits says in plain words whether a pick is what a wish asks for, out of what there is.
func fits(e *ledger.Event, l *ledger.Layout, w *ledger.Wish, r ledger.ReturnedPlaces, p pick) string {
	n := len(p.seats)
	if n == 0 {
		n = p.quantity
		a := l.Areas[p.area]
		if int(r.Areas[p.area]) < n || !w.Wants(e, a.Category, a.Section) {
			return "the area has not so many, or is not wanted"
		}
	}
	if n < w.Least || n > w.Quantity {
		return "the number"
	}
	for i, seat := range p.seats {
		switch {
		case !slices.Contains(r.Seats, seat):
			return "a seat that is not returned"
		case i > 0 && seat <= p.seats[i-1]:
			return "not ascending, or twice"
		case len(w.Categories) > 0 && !slices.Contains(w.Categories, l.Category[seat]):
			return "a category"
		case len(w.Sections) > 0 && !slices.Contains(w.Sections, l.Section[seat]):
			return "a section"
		case w.PriceMax > 0 && e.Price(l.Category[seat]).Total > w.PriceMax:
			return "a price"
		case w.Together && i > 0 && (seat != p.seats[i-1]+1 || l.Run[seat] != l.Run[seat-1]):
			return "not together"
		}
	}
	return ""
}

// possible is the greatest number of places, in seats or in one area, that a wish could get, by trying all.
func possible(e *ledger.Event, l *ledger.Layout, w *ledger.Wish, r ledger.ReturnedPlaces) int {
	wanted := func(seat int32) bool {
		return slices.Contains(r.Seats, seat) && w.Wants(e, l.Category[seat], l.Section[seat])
	}
	most, run, all := 0, 0, 0
	for seat := range int32(len(l.Category)) {
		if !wanted(seat) {
			run = 0
			continue
		}
		if run > 0 && l.Run[seat] == l.Run[seat-1] {
			run++
		} else {
			run = 1
		}
		all++
		most = max(most, run)
	}
	if !w.Together {
		most = all
	}
	for i, a := range l.Areas {
		if w.Wants(e, a.Category, a.Section) {
			most = max(most, int(r.Areas[i]))
		}
	}
	return min(most, w.Quantity, e.SeatsPerHoldMax)
}

func TestMatchPicksWhatFitsAndAsMuchAsCanBe(t *testing.T) {
	e, l := matchEvent(), matchLayout()
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		w, r := drawWish(t), drawReturned(t)
		p, ok := newStock(e, l, r).match(w)
		most := possible(e, l, w, r)
		if ok != (most >= w.Least) {
			t.Fatalf("matched %v, but %d places could be had of %d to %d wished for", ok, most, w.Least, w.Quantity)
		}
		if !ok {
			return
		}
		found++
		if why := fits(e, l, w, r, p); why != "" {
			t.Fatalf("%+v does not fit %+v: %s", p, w, why)
		}
		if n := max(len(p.seats), p.quantity); n != most {
			t.Fatalf("%d places, %d could be had", n, most)
		}
	})
	if found == 0 {
		t.Error("nothing was ever found: the test says nothing")
	}
}

// Of wishes that are served one after the other each gets what the ones before it left, nothing twice, and what is left over
// fits nobody.
func TestMatchingLeavesNothingThatAnybodyWaitsFor(t *testing.T) {
	e, l := matchEvent(), matchLayout()
	rapid.Check(t, func(t *rapid.T) {
		r := drawReturned(t)
		wishes := rapid.SliceOfN(rapid.Custom(drawWish), 1, 8).Draw(t, "wishes")
		left := newStock(e, l, r)
		given := map[int32]bool{}
		places := slices.Clone(r.Areas)
		var waiting []*ledger.Wish
		for _, w := range wishes {
			now := ledger.ReturnedPlaces{Seats: left.all(), Areas: slices.Clone(left.areas)}
			p, ok := left.match(w)
			if !ok {
				waiting = append(waiting, w)
				continue
			}
			if why := fits(e, l, w, now, p); why != "" {
				t.Fatalf("%+v does not fit %+v: %s", p, w, why)
			}
			left.take(p)
			for _, seat := range p.seats {
				if given[seat] {
					t.Fatalf("seat %d is offered twice", seat)
				}
				given[seat] = true
			}
			if len(p.seats) == 0 {
				places[p.area] -= int32(p.quantity)
			}
		}
		for _, w := range waiting {
			if p, ok := left.match(w); ok {
				t.Fatalf("%+v is left over, and %+v waits for it", p, w)
			}
		}
		if len(left.all())+len(given) != len(r.Seats) || !slices.Equal(left.areas, places) {
			t.Fatalf("%d seats are left and %d given, of %d", len(left.all()), len(given), len(r.Seats))
		}
	})
}

func TestMatchPrefersTheBestAndLeavesNobodyAlone(t *testing.T) {
	e, l := matchEvent(), matchLayout()
	for i := range l.Quality {
		l.Quality[i] = int32(i)
	}
	for name, c := range map[string]struct {
		wish  ledger.Wish
		seats []int32
		want  []int32
	}{
		"two together of four: none alone":        {ledger.Wish{Quantity: 2, Least: 2, Together: true}, []int32{0, 1, 2, 3}, []int32{0, 1}},
		"two together of three: one alone":        {ledger.Wish{Quantity: 2, Least: 2, Together: true}, []int32{0, 1, 2}, []int32{0, 1}},
		"a pair before part of three":             {ledger.Wish{Quantity: 2, Least: 2, Together: true}, []int32{0, 1, 2, 12, 13}, []int32{12, 13}},
		"not over the end of a row":               {ledger.Wish{Quantity: 2, Least: 2, Together: true}, []int32{5, 6, 8, 9}, []int32{8, 9}},
		"all that there are, where fewer will do": {ledger.Wish{Quantity: 4, Least: 1, Together: true}, []int32{0, 1, 7}, []int32{0, 1}},
		"apart, in one section":                   {ledger.Wish{Quantity: 2, Least: 2}, []int32{0, 18, 20}, []int32{18, 20}},
		"apart, in several where none has enough": {ledger.Wish{Quantity: 3, Least: 3}, []int32{0, 18, 20}, []int32{0, 18, 20}},
		"the best ones":                           {ledger.Wish{Quantity: 2, Least: 1}, []int32{3, 8, 1}, []int32{1, 3}},
	} {
		p, ok := newStock(e, l, ledger.ReturnedPlaces{Seats: c.seats, Areas: []int32{0, 0}}).match(&c.wish)
		if !ok || !slices.Equal(p.seats, c.want) {
			t.Errorf("%s: %v %v, want %v", name, p, ok, c.want)
		}
	}
}

// A hundred thousand who want something else cost little: a seat that nobody wants must be back in the sale within 2 s.
func TestWhoWantsSomethingElseIsPassedOverQuickly(t *testing.T) {
	e, l := matchEvent(), matchLayout()
	r := ledger.ReturnedPlaces{Areas: []int32{0, 0}}
	for i := range int32(24) {
		r.Seats = append(r.Seats, i)
	}
	left := newStock(e, l, r)
	w := &ledger.Wish{Quantity: 2, Least: 2, Categories: []int16{1}, PriceMax: math.MaxInt64}
	if n := testing.AllocsPerRun(100, func() { left.match(w) }); n > 0 {
		t.Errorf("%v allocations for a wish that nothing fits", n)
	}
}
