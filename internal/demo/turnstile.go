package demo

import (
	"context"
	"math"
	"sync"
)

// A turnstile counts who comes, to the line and then inside, and holds people back where a kill is still to come: so each kill
// falls at its moment of the sale, however fast the machine is.
type turnstile struct {
	mu      sync.Mutex
	counted chan struct{} // closed and made anew when a count moves
	bounded chan struct{} // the same when a bound does
	joined  int64         // on the way to the line, so far
	inside  int64         // let in, so far
	joinMax int64         // may come to the line before the next kill
	letMax  int64         // may be let in before the next kill
}

func newTurnstile() *turnstile {
	return &turnstile{counted: make(chan struct{}), bounded: make(chan struct{}), joinMax: math.MaxInt64, letMax: math.MaxInt64}
}

// until waits until something holds, looking again whenever what is signalled has moved; false where ctx ends first. take is
// called with the lock held.
func (t *turnstile) until(ctx context.Context, moved *chan struct{}, holds func() bool, take func()) bool {
	for {
		t.mu.Lock()
		changed := *moved
		if holds() {
			take()
			t.mu.Unlock()
			return true
		}
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// move wakes whoever waits; t.mu is held.
func (t *turnstile) move(moved *chan struct{}) {
	close(*moved)
	*moved = make(chan struct{})
}

// joins lets one more come to the line.
func (t *turnstile) joins(ctx context.Context) bool {
	return t.until(ctx, &t.bounded, func() bool { return t.joined < t.joinMax }, func() { t.joined++; t.move(&t.counted) })
}

// enters lets one more in.
func (t *turnstile) enters(ctx context.Context) bool {
	return t.until(ctx, &t.bounded, func() bool { return t.inside < t.letMax }, func() { t.inside++; t.move(&t.counted) })
}

// bound says how many may come and be let in before the next kill.
func (t *turnstile) bound(join, let int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.joinMax, t.letMax = join, let
	t.move(&t.bounded)
}

// reached waits until so many have come to the line, and so many were let in.
func (t *turnstile) reached(ctx context.Context, join, let int64) bool {
	return t.until(ctx, &t.counted, func() bool { return t.joined >= join && t.inside >= let }, func() {})
}

// open ends it: nobody is held back any more, and whoever waits for somebody to come is told that all have.
func (t *turnstile) open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.joined, t.inside, t.joinMax, t.letMax = math.MaxInt64/2, math.MaxInt64/2, math.MaxInt64, math.MaxInt64
	t.move(&t.counted)
	t.move(&t.bounded)
}
