package inventory

import (
	"time"

	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// A Tally is what is left of an event, as far as its board has heard.
type Tally struct {
	Available  int  // seats and places that can be bought now
	Held       int  // seats that are held, or promised to the waitlist, and may come back
	Gone       bool // surely nothing is left, and nothing can come back (C11)
	Categories []CategoryTally
}

// A CategoryTally is the same of one category with a price.
type CategoryTally struct {
	Category  int
	Available int
	Capacity  int // its seats and places
}

// Tally counts what is left. areas are the categories of the plan's areas. ok is false while the board has no picture.
func (b *Board) Tally(areas []int16, clock time.Time) (t Tally, ok bool) {
	left, sure := b.anythingLeft(clock)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.loaded {
		return Tally{}, false
	}
	t.Held = b.counts[ledger.Held] + b.counts[ledger.Returned]
	t.Gone = sure && !left
	whole := venue.Span{First: 0, End: int32(b.layout.SeatCount)}
	for c := range b.layout.Categories {
		if _, priced := b.config.Tier(int16(c)); !priced {
			continue
		}
		one := CategoryTally{Category: c}
		mask := b.masksOf(c).all
		one.Available = countIn(b.free, mask, whole)
		one.Capacity = countIn(mask, nil, whole)
		for i, a := range b.areas {
			if i < len(areas) && int(areas[i]) == c {
				one.Available += int(a.free)
				one.Capacity += int(a.capacity)
			}
		}
		t.Available += one.Available
		t.Categories = append(t.Categories, one)
	}
	return t, true
}
