package decide

import (
	"errors"
	"slices"

	"onsale/internal/ledger"
)

// asideMax is behind how many expired holds in all one command looks for some that are not set aside.
const asideMax = 8192

// expireSound ends a hold whose time is up, unless it is set aside.
func (w *Work) expireSound(h *Hold, why string) (ended bool, err error) {
	if aside, err := w.setAside(h); err != nil || aside {
		return false, err
	}
	return true, w.expire(h, why)
}

// setAside says that a hold whose time is up is left as it is: the rows contradict each other, and its event is stopped
// for that. It waits for somebody to look, and must not fail everybody's Sweep until then.
func (w *Work) setAside(h *Hold) (bool, error) {
	e, err := w.event(h.Event)
	if err != nil || e == nil || e.State != ledger.Stopped {
		return false, err
	}
	err = w.sound(e, h)
	var broken *ledger.InvariantError
	if errors.As(err, &broken) {
		return true, nil
	}
	return false, err
}

// sound is nil where a live hold can be ended: what giveBack would find, without a change.
func (w *Work) sound(e *eventRow, h *Hold) error {
	layout, err := w.layout(e)
	if err != nil {
		return err
	}
	if err := w.counted(e, layout, &h.Hold); err != nil {
		return err
	}
	if h.Area >= 0 {
		return w.drawn(h)
	}
	var missing error
	for _, l := range h.Lines {
		s, err := w.seat(h.Event, l.Seat)
		switch {
		case err != nil:
			missing = err
		case !owns(h, l, s, ledger.Held):
			return invariant(h.Event, "hold %d does not own its seat %d", h.ID, l.Seat)
		}
	}
	return missing
}

// owns says whether a line of a hold is the claim on a seat, which is in the given state.
func owns(h *Hold, l ledger.Line, s *Seat, state ledger.Availability) bool {
	return s.State == state && s.Claim == h.ID && s.Epoch == l.Epoch || !on(GuardOwner)
}

// counted fails where a counter is below what a claim counts under it.
func (w *Work) counted(e *eventRow, layout *ledger.Layout, h *ledger.Hold) error {
	for _, q := range e.Quotas {
		n := covered(q, layout, h)
		if n == 0 {
			continue
		}
		c, err := w.quota(QuotaKey{e.ID, q.Category, q.Section})
		if err != nil {
			return err
		}
		if c.count < n {
			return invariant(e.ID, "the quota of category %d, section %d counts too little", q.Category, q.Section)
		}
	}
	for _, limit := range e.Limits {
		k, n := limited(e.Event, limit, h)
		if n == 0 {
			continue
		}
		c, err := w.limit(k)
		if err != nil {
			return err
		}
		if c.count < n {
			return invariant(e.ID, "a limit of customer %d counts too little", h.Customer)
		}
	}
	return nil
}

// drawn fails where an area's buckets do not hold what a hold drew from them.
func (w *Work) drawn(h *Hold) error {
	buckets, err := w.area(h.Event, h.Area)
	if err != nil {
		return err
	}
	for _, d := range h.Draws {
		i := slices.IndexFunc(buckets, func(b *Bucket) bool { return b.Number == d.Bucket })
		if i < 0 || buckets[i].Held < d.Count {
			return invariant(h.Event, "bucket %d of area %d does not hold what hold %d drew", d.Bucket, h.Area, h.ID)
		}
	}
	return nil
}
