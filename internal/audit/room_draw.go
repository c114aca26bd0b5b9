package audit

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"

	"onsale/internal/ledger"
)

// The draw recomputed by the formulas of docs/FAIRNESS.md, in lines of our own: a fault in those that the room goes by would be
// a fault here too if they were shared.

const rankedMax = 4096 // numbers up to which a position is the rank of a hash

// A shuffle computes positions of one lane. Halves of numbers are hashed once.
type shuffle struct {
	key  []byte
	n    int64
	rank []int64
	half map[[9]byte]uint64
}

func newShuffle(key []byte, n int64) *shuffle {
	s := &shuffle{key: key, n: n, half: map[[9]byte]uint64{}}
	if n > rankedMax {
		return s
	}
	sums, order := make([][]byte, n), make([]int64, n)
	for i := range order {
		order[i] = int64(i)
		sums[i] = sumOf(key, binary.BigEndian.AppendUint64(nil, uint64(i)))
	}
	slices.SortFunc(order, func(a, b int64) int { return cmp.Or(bytes.Compare(sums[a], sums[b]), cmp.Compare(a, b)) })
	s.rank = make([]int64, n)
	for position, number := range order {
		s.rank[number] = int64(position)
	}
	return s
}

func sumOf(key, text []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(text)
	return m.Sum(nil)
}

// position is where a number stands. Those that were given after the draw stand where they came.
func (s *shuffle) position(number int64) int64 {
	switch {
	case number < 0 || number >= s.n:
		return number
	case s.rank != nil:
		return s.rank[number]
	}
	a := int64(math.Sqrt(float64(s.n)))
	for a*a < s.n {
		a++
	}
	b := (s.n + a - 1) / a
	for {
		left, right := number/b, number%b
		for round := range byte(8) {
			if round%2 == 0 {
				left = int64((uint64(left) + s.f(round, right)%uint64(a)) % uint64(a))
			} else {
				right = int64((uint64(right) + s.f(round, left)%uint64(b)) % uint64(b))
			}
		}
		if number = left*b + right; number < s.n {
			return number
		}
	}
}

func (s *shuffle) f(round byte, half int64) uint64 {
	var text [9]byte
	text[0] = round
	binary.BigEndian.PutUint64(text[1:], uint64(half))
	v, ok := s.half[text]
	if !ok {
		v = binary.BigEndian.Uint64(sumOf(s.key, text[:]))
		s.half[text] = v
	}
	return v
}

// draw checks that what was published fits together, and that everybody who came in stands where the draw has put them.
func (h *hall) draw() {
	s := h.foyer.says
	if s == nil || s.phase != ledger.RoomOpen {
		return
	}
	keys := map[string]*shuffle{}
	if !s.arrival {
		if keys = h.drawKeys(s); keys == nil {
			return
		}
	}
	for _, e := range h.foyer.entries {
		h.a.saw(CheckDraw, 1)
		want := e.number
		if k := keys[e.lane]; k != nil {
			want = k.position(e.number)
		}
		if e.position != want {
			h.bad(CheckDraw, sessionText(e), "number %d of %s stands at %d, by the draw at %d", e.number, laneText(e.lane), e.position, want)
		}
	}
}

// drawKeys are the permutations of a room's lanes; nil where what is published does not fit together.
func (h *hall) drawKeys(s *roomSays) map[string]*shuffle {
	k, err := hex.DecodeString(s.k)
	if err != nil || len(k) != sha256.Size {
		h.bad(CheckDraw, "room", "it is open, and K is not published")
		return nil
	}
	if sum := sha256.Sum256(k); hex.EncodeToString(sum[:]) != s.commitment {
		h.bad(CheckDraw, "room", "K is not what was committed to when it opened for waiting")
	}
	list, err := hex.DecodeString(s.listHash)
	if err != nil || len(list) != sha256.Size {
		h.bad(CheckDraw, "room", "the hash of the list of joins is not published")
		return nil
	}
	if s.provable && (s.value == "" || s.source == "") {
		h.bad(CheckDraw, "room", "it says that it is provable, without a public value of a source named before")
	}
	total := int64(0)
	for i := range s.lanes {
		total += s.lanes[i].n
	}
	text := binary.BigEndian.AppendUint64([]byte(s.value), uint64(total))
	seed := sumOf(k, append(text, list...))
	keys := map[string]*shuffle{}
	for i := range s.lanes {
		keys[s.lanes[i].key] = newShuffle(sumOf(seed, []byte(s.lanes[i].key)), s.lanes[i].n)
	}
	return keys
}
