package draw

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"slices"
)

const (
	// RankedMax is the greatest N whose positions are ranks of hashes. The walk that larger ones take shuffles well only
	// where its halves are not small.
	RankedMax = 4096
	// NMax is the greatest N. Its tables have 32 MB.
	NMax = int64(1) << 40

	rounds = 8
)

// Position is the position of a number in a draw of n, straight from the formula: what a browser computes for its own user. It
// costs 8 hashes, or n where n ≤ RankedMax. Numbers outside 0…n-1 are their own position. It panics where n > NMax.
func Position(key [KeyBytes]byte, n, number int64) int64 {
	checkN(n)
	switch h := newHasher(key); {
	case number < 0 || number >= n:
		return number
	case n <= RankedMax:
		return h.rank(n, number)
	default:
		return h.walk(n, number)
	}
}

func checkN(n int64) {
	if n > NMax {
		panic(fmt.Sprintf("draw: N is %d; at most %d can be drawn", n, NMax))
	}
}

// A hasher computes HMACs with one key.
type hasher struct {
	mac  hash.Hash
	text [9]byte
	sum  [sha256.Size]byte
}

func newHasher(key [KeyBytes]byte) *hasher { return &hasher{mac: hmac.New(sha256.New, key[:])} }

// of is the HMAC of a number as 8 bytes big-endian. It is valid until the next call.
func (h *hasher) of(number int64) []byte {
	binary.BigEndian.PutUint64(h.text[1:], uint64(number))
	return h.hash(h.text[1:])
}

// f is F(round, half): the first 8 bytes, big-endian, of the HMAC of the round's byte and the half as 8 bytes big-endian.
func (h *hasher) f(round int, half uint64) uint64 {
	h.text[0] = byte(round)
	binary.BigEndian.PutUint64(h.text[1:], half)
	return binary.BigEndian.Uint64(h.hash(h.text[:]))
}

func (h *hasher) hash(text []byte) []byte {
	h.mac.Reset()
	h.mac.Write(text)
	return h.mac.Sum(h.sum[:0])
}

// rank is how many numbers of 0…n-1 have a smaller hash, or the same and are smaller.
func (h *hasher) rank(n, number int64) (rank int64) {
	own := slices.Clone(h.of(number))
	for other := range n {
		if c := bytes.Compare(h.of(other), own); c < 0 || c == 0 && other < number {
			rank++
		}
	}
	return rank
}

// walk takes a number through eight rounds, each of which moves one half by what the other says, and again while the result
// is outside 0…n-1. The rounds are a permutation of 0…a·b-1, so the walk comes back to where it began at the latest, and
// that is inside.
func (h *hasher) walk(n, number int64) int64 {
	a, b := halves(n)
	for x := uint64(number); ; {
		l, r := x/b, x%b
		for round := range rounds {
			if round%2 == 0 {
				l = (l + h.f(round, r)%a) % a
			} else {
				r = (r + h.f(round, l)%b) % b
			}
		}
		if x = l*b + r; x < uint64(n) {
			return int64(x)
		}
	}
}

// halves are the sizes of the halves of a number: a = ⌈√n⌉ and b = ⌈n/a⌉, so that a·b ≥ n.
func halves(n int64) (a, b uint64) {
	a = uint64(math.Sqrt(float64(n)))
	for a*a < uint64(n) { // floating point may be off by one, either way
		a++
	}
	for a > 1 && (a-1)*(a-1) >= uint64(n) {
		a--
	}
	return a, (uint64(n) + a - 1) / a
}

// An Order is a drawn order of n numbers, with tables, so that a position costs nanoseconds. It never changes and may be
// used by many at once.
type Order struct {
	n    int64
	a, b uint64 // of n > RankedMax

	// position and number are each other's inverse, of n ≤ RankedMax.
	position, number []int32

	// f has F of each round and half, modulo a in even rounds and b in odd ones.
	f [rounds][]uint32
}

// NewOrder makes an order's tables: about 8·√n hashes, or n where n ≤ RankedMax (3 ms for 2,000,000). With n ≤ 1 it is the identity. It
// panics where n > NMax.
func NewOrder(key [KeyBytes]byte, n int64) *Order {
	checkN(n)
	o := &Order{n: max(n, 0)}
	h := newHasher(key)
	if n <= RankedMax {
		o.sort(h)
		return o
	}
	o.a, o.b = halves(n)
	for round := range o.f {
		halfs, modulus := o.b, o.a // an even round moves L by what R says
		if round%2 == 1 {
			halfs, modulus = o.a, o.b
		}
		o.f[round] = make([]uint32, halfs)
		for half := range o.f[round] {
			o.f[round][half] = uint32(h.f(round, uint64(half)) % modulus)
		}
	}
	return o
}

func (o *Order) sort(h *hasher) {
	sums := make([][sha256.Size]byte, o.n)
	o.position, o.number = make([]int32, o.n), make([]int32, o.n)
	for number := range sums {
		sums[number] = [sha256.Size]byte(h.of(int64(number)))
		o.number[number] = int32(number)
	}
	slices.SortStableFunc(o.number, func(x, y int32) int { return bytes.Compare(sums[x][:], sums[y][:]) })
	for position, number := range o.number {
		o.position[number] = int32(position)
	}
}

// N is how many numbers are drawn.
func (o *Order) N() int64 { return o.n }

// Position is the position of a number. Numbers outside 0…N-1 are their own.
func (o *Order) Position(number int64) int64 {
	switch {
	case number < 0 || number >= o.n:
		return number
	case o.position != nil:
		return int64(o.position[number])
	}
	a, b := uint32(o.a), uint32(o.b)
	for x := uint64(number); ; {
		l, r := uint32(x/o.b), uint32(x%o.b)
		for round := 0; round < rounds; round += 2 {
			l = sum(l, o.f[round][r], a)
			r = sum(r, o.f[round+1][l], b)
		}
		if x = uint64(l)*o.b + uint64(r); x < uint64(o.n) {
			return int64(x)
		}
	}
}

// Number is the number that has a position: the inverse of Position.
func (o *Order) Number(position int64) int64 {
	switch {
	case position < 0 || position >= o.n:
		return position
	case o.number != nil:
		return int64(o.number[position])
	}
	a, b := uint32(o.a), uint32(o.b)
	for x := uint64(position); ; {
		l, r := uint32(x/o.b), uint32(x%o.b)
		for round := rounds - 2; round >= 0; round -= 2 {
			r = sum(r, b-o.f[round+1][l], b)
			l = sum(l, a-o.f[round][r], a)
		}
		if x = uint64(l)*o.b + uint64(r); x < uint64(o.n) {
			return int64(x)
		}
	}
}

// sum is x + y modulo m, of x < m and y ≤ m.
func sum(x, y, m uint32) uint32 {
	s := x + y
	if less := s - m; s >= m {
		s = less
	}
	return s
}
