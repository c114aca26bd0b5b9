package inventory

import (
	"math/bits"
	"slices"

	"onsale/internal/venue"
)

// A lane is a stretch of seats in which to look: a run of neighbours, or a row.
type lane struct {
	span venue.Span
	best int32 // the least (best) quality of its seats: no choice in it can do better per seat
}

// Lanes are all stretches of one kind, and lists of them (as places in all) by their best quality, so that a search can
// stop where nothing better can follow.
type lanes struct {
	all        []lane
	order      []int32
	bySection  [][]int32
	byCategory [][]int32
	accessible []int32 // those with an accessible seat
}

func newLanes(layout *venue.Layout, spans []venue.Span) *lanes {
	l := &lanes{
		all:        make([]lane, len(spans)),
		order:      make([]int32, len(spans)),
		bySection:  make([][]int32, len(layout.Sections)),
		byCategory: make([][]int32, len(layout.Categories)),
	}
	for i, span := range spans {
		l.all[i] = lane{span: span, best: slices.Min(layout.Quality[span.First:span.End])}
		l.order[i] = int32(i)
	}
	slices.SortStableFunc(l.order, func(a, b int32) int { return int(l.all[a].best - l.all[b].best) })
	for _, i := range l.order {
		span := l.all[i].span
		section := layout.SectionOf(span.First)
		l.bySection[section] = append(l.bySection[section], i)
		for c := range layout.Categories {
			if countIn(layout.Categories[c], nil, span) > 0 {
				l.byCategory[c] = append(l.byCategory[c], i)
			}
		}
		if countIn(layout.Accessible, nil, span) > 0 {
			l.accessible = append(l.accessible, i)
		}
	}
	return l
}

// countIn is the number of seats of a span that are in both sets; a nil mask is all seats.
func countIn(set, mask venue.Bits, span venue.Span) int {
	if span.Count() <= 0 {
		return 0
	}
	count := 0
	for w := int(span.First >> 6); w <= int(span.End-1)>>6; w++ {
		word := set[w] & span.Word(w)
		if mask != nil {
			word &= mask[w]
		}
		count += bits.OnesCount64(word)
	}
	return count
}

// nextIn is the first seat at or after from, before end, that is in both sets; end where there is none.
func nextIn(set, mask venue.Bits, from, end int32) int32 {
	if from >= end {
		return end
	}
	w := int(from >> 6)
	word := set[w] & mask[w] &^ (1<<(uint(from)&63) - 1)
	for word == 0 {
		if w++; w > int(end-1)>>6 {
			return end
		}
		word = set[w] & mask[w]
	}
	return min(end, int32(w<<6+bits.TrailingZeros64(word)))
}

// lastIn is the end of the run of seats in both sets that begins at from, at most end.
func lastIn(set, mask venue.Bits, from, end int32) int32 {
	if from >= end {
		return end
	}
	w := int(from >> 6)
	word := ^(set[w] & mask[w]) &^ (1<<(uint(from)&63) - 1)
	for word == 0 {
		if w++; w > int(end-1)>>6 {
			return end
		}
		word = ^(set[w] & mask[w])
	}
	return min(end, int32(w<<6+bits.TrailingZeros64(word)))
}

// hasRun says quickly that a span of at most 64 seats has no run of size seats in both sets.
func hasRun(set, mask venue.Bits, span venue.Span, size int) bool {
	first, w := uint(span.First)&63, int(span.First>>6)
	word := (set[w] & mask[w]) >> first
	if int(first)+span.Count() > 64 {
		word |= (set[w+1] & mask[w+1]) << (64 - first)
	}
	if n := span.Count(); n < 64 {
		word &= 1<<uint(n) - 1
	}
	// After each step a bit says that the `have` seats from it on are in: double while that does not overshoot.
	have := 1
	for word != 0 && have < size {
		step := min(have, size-have)
		word &= word >> uint(step)
		have += step
	}
	return word != 0
}
