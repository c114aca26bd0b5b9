package inventory

import (
	"math"
	"sync/atomic"
	"time"

	"onsale/internal/ledger"
)

// A sureNo is what a Board must know to say no, kept beside its picture so that it can be read without its lock: in the
// first second of a hot sale nearly everybody is told no, and a lock that a hundred thousand requests queue for would be
// all that the machine does.
type sureNo struct {
	until []atomic.Int64 // of each seat, the ledger's instant before which nobody can have it; 0 where that is not sure
	pulse atomic.Pointer[pulse]
}

// A pulse is how far the board can be trusted. It is replaced, never written into.
type pulse struct {
	complete   bool
	ledgerNow  ledger.Time
	clockNow   time.Time
	heard      time.Time
	handPicked OrphanMode
}

// never is when a seat that is sold or blocked becomes free by itself.
const never = math.MaxInt64

// set takes over a seat's state.
func (n *sureNo) set(seat int32, state ledger.Availability, until ledger.Time) {
	at := int64(0)
	switch state {
	case ledger.Sold, ledger.Blocked:
		at = never
	case ledger.Held:
		at = int64(until)
	}
	n.until[seat].Store(at)
}

// publish lets the readers without lock know how far the board can be trusted now. Whatever changes that ends with it,
// the lock held.
func (b *Board) publish() {
	b.no.pulse.Store(&pulse{
		complete: b.complete(), ledgerNow: b.ledgerNow, clockNow: b.clockNow, heard: b.heard, handPicked: b.rules.HandPicked,
	})
}

// Taken answers those of the seats that the ledger would surely refuse: sold, blocked, or held with time ahead (B1). None
// does not mean that it will not.
func (b *Board) Taken(seats []int32, clock time.Time) (taken []int32) {
	p := b.no.pulse.Load()
	if !p.complete || clock.Sub(p.heard) >= FreshFor {
		return nil
	}
	now := nowAt(p.ledgerNow, p.clockNow, clock) + ledger.Time(clockMargin)
	for _, seat := range seats {
		// A seat that the plan does not have is not taken: the ledger says that there is no such seat.
		if seat >= 0 && int(seat) < len(b.no.until) && b.no.until[seat].Load() > int64(now) {
			taken = append(taken, seat)
		}
	}
	return taken
}

func (b *Board) handPicked() OrphanMode { return b.no.pulse.Load().handPicked }

// nowAt is the ledger's clock as far as can be told, from what it was at an instant of ours. It is never ahead.
func nowAt(ledgerNow ledger.Time, clockNow, clock time.Time) ledger.Time {
	return ledgerNow + ledger.Time(max(0, clock.Sub(clockNow).Milliseconds()))
}
