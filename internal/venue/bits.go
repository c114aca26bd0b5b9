package venue

import "math/bits"

// Bits is a set of seats: seat i is bit i%64 of word i/64. Bits beyond the plan's last seat are never set.
type Bits []uint64

// NewBits is an empty set for seatCount seats.
func NewBits(seatCount int) Bits { return make(Bits, (seatCount+63)/64) }

// Has says whether the seat is in the set. The seat must be one of the plan.
func (b Bits) Has(seat SeatIndex) bool { return b[seat>>6]&(1<<(uint(seat)&63)) != 0 }

// Set puts the seat into the set. Sets of a Layout are shared: do not call it on them.
func (b Bits) Set(seat SeatIndex) { b[seat>>6] |= 1 << (uint(seat) & 63) }

// Clear takes the seat out of the set. Sets of a Layout are shared: do not call it on them.
func (b Bits) Clear(seat SeatIndex) { b[seat>>6] &^= 1 << (uint(seat) & 63) }

// Count is the number of seats in the set.
func (b Bits) Count() int {
	count := 0
	for _, word := range b {
		count += bits.OnesCount64(word)
	}
	return count
}

// A Span is the seats [First, End), which are successive numbers: a section, a row, or a run of neighbours.
type Span struct{ First, End SeatIndex }

// Count is the number of seats in the span.
func (s Span) Count() int { return int(s.End - s.First) }

// Has says whether the seat is in the span.
func (s Span) Has(seat SeatIndex) bool { return s.First <= seat && seat < s.End }

// Word is the span's part of word number w of a Bits: with it a span serves as a bitmap without being stored as one.
func (s Span) Word(w int) uint64 {
	first, end := int64(s.First)-int64(w)*64, int64(s.End)-int64(w)*64
	if end <= 0 || first >= 64 || first >= end {
		return 0
	}
	word := ^uint64(0)
	if first > 0 {
		word <<= uint(first)
	}
	if end < 64 {
		word &= 1<<uint(end) - 1
	}
	return word
}

// Bits is the span as a set for seatCount seats.
func (s Span) Bits(seatCount int) Bits {
	b := NewBits(seatCount)
	for w := range b {
		b[w] = s.Word(w)
	}
	return b
}
