package audit

import (
	"math/rand/v2"
	"testing"

	"onsale/internal/draw"
)

// The audit's own lines put everybody where the draw does.
func TestTheDrawIsRecomputed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var key [draw.KeyBytes]byte
	for i := range key {
		key[i] = byte(random.Uint32())
	}
	for _, n := range []int64{0, 1, 2, 7, rankedMax - 1, rankedMax, rankedMax + 1, 70 * 70, 70*71 + 1, 200_000} {
		s, moved := newShuffle(key[:], n), 0
		for range 100 {
			number := random.Int64N(n + 3)
			got, want := s.position(number), draw.Position(key, n, number)
			if got != want {
				t.Fatalf("number %d of %d stands at %d, by the draw at %d", number, n, got, want)
			}
			if got != number {
				moved++
			}
		}
		if n > 100 && moved < 90 {
			t.Errorf("of %d, %d of 100 were moved", n, moved)
		}
	}
}
