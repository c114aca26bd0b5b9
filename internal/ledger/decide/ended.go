package decide

import (
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// How holds end, and what they give back.

// expire ends a hold whose time is up. An order of it without open attempt ends with it (A19).
func (w *Work) expire(h *Hold, why string) error {
	var o *Order
	if h.Order != 0 {
		var err error
		if o, err = w.order(h.Order); err != nil {
			return err
		}
	}
	if err := w.end(h, ledger.HoldExpired, why); err != nil {
		return err
	}
	if o != nil && o.State == ledger.OrderPending && !o.AttemptOpen {
		return w.orderEnd(o, ledger.OrderExpired, "hold_expired")
	}
	return nil
}

// end takes a live hold's claim away: seats and places free, counters down.
func (w *Work) end(h *Hold, to ledger.HoldState, why string) error {
	from := h.State
	if err := w.giveBack(h, ledger.Held); err != nil {
		return err
	}
	w.holdSet(h)
	h.State, h.Ended = to, min(h.Expires, w.Now)
	w.note(h, from.String(), to.String(), why)
	return nil
}

// giveBack frees what a hold has, which is in the given state, and lowers the counters.
func (w *Work) giveBack(h *Hold, state ledger.Availability) error {
	e, err := w.event(h.Event)
	if err != nil {
		return err
	}
	layout, err := w.layout(e)
	if err != nil {
		return err
	}
	if err := w.count(e, layout, &h.Hold, -1); err != nil {
		return err
	}
	if h.Area >= 0 {
		return w.placesBack(e, h, state)
	}
	var missing error
	for _, l := range h.Lines {
		s, err := w.seat(h.Event, l.Seat)
		if err != nil {
			missing = err
			continue
		}
		if !owns(h, l, s, state) {
			return invariant(h.Event, "hold %d does not own its seat %d", h.ID, l.Seat)
		}
		w.seatFree(e, s)
	}
	return missing
}

func (w *Work) placesBack(e *eventRow, h *Hold, state ledger.Availability) error {
	buckets, err := w.area(h.Event, h.Area)
	if err != nil {
		return err
	}
	for _, d := range h.Draws {
		i := slices.IndexFunc(buckets, func(b *Bucket) bool { return b.Number == d.Bucket })
		if i < 0 {
			return invariant(e.ID, "hold %d drew from bucket %d, which is not there", h.ID, d.Bucket)
		}
		b := w.bucketSet(buckets[i])
		if state == ledger.Held {
			b.Held -= d.Count
		} else {
			b.Sold -= d.Count
		}
		if b.Held < 0 || b.Sold < 0 {
			return invariant(e.ID, "bucket %d of area %d would have fewer than no places", b.Number, b.Area)
		}
		w.placesFree(e, buckets, b, d.Count)
	}
	return nil
}

// placesFree lets n places of one of an area's buckets go, to where the event sends what is freed. They are neither held nor
// sold any more.
func (w *Work) placesFree(e *eventRow, buckets []*Bucket, b *Bucket, n int32) {
	if e.Returns != ledger.ReturnsWaitlist || n == 0 {
		return
	}
	if returned, _ := returnedPlaces(buckets); returned == 0 {
		b.ReturnedAt = w.Now
	}
	w.bucketSet(b).Returned += n
}

// seatFree lets a seat go, to where the event sends what is freed.
func (w *Work) seatFree(e *eventRow, s *Seat) {
	w.seatSet(s)
	s.Claim, s.ReturnedAt = 0, 0
	switch {
	case s.WhenFree:
		s.State, s.WhenFree = ledger.Blocked, false
	case e.Returns == ledger.ReturnsWaitlist:
		s.State, s.ReturnedAt = ledger.Returned, w.Now
	default:
		s.State = ledger.Available
	}
}

// expireAll ends expired holds, as many as the key bounds.
func (w *Work) expireAll(k ExpiredKey, why string) error {
	holds, err := w.expired(k)
	if err != nil {
		return err
	}
	for _, h := range holds {
		if _, err := w.expireSound(h, why); err != nil {
			return err
		}
	}
	return nil
}

// expired are holds whose time is up, that this batch has not ended yet and that are not set aside, in order.
func (w *Work) expired(k ExpiredKey) ([]*Hold, error) {
	most := k.Max
	k.Max += len(w.Out.Holds) // the database does not know yet which ones this batch has ended
	for {
		ids, err := w.src.Expired(k, w.Now)
		if err != nil {
			return nil, err
		}
		holds, err := w.expiredOf(ids, most)
		if err != nil || len(holds) == most || len(ids) < k.Max || k.Max >= asideMax {
			return holds, err
		}
		k.Max *= 2 // some are set aside, and more may stand behind them
	}
}

func (w *Work) expiredOf(ids []id.ID, most int) ([]*Hold, error) {
	var holds []*Hold
	var missing error
	for _, i := range ids {
		if len(holds) == most {
			break
		}
		h, err := w.hold(i)
		if err != nil {
			missing = err
			continue
		}
		if h == nil || h.State != ledger.HoldLive || h.Expires > w.Now {
			continue
		}
		switch aside, err := w.setAside(h); {
		case err != nil:
			missing = err
		case !aside:
			holds = append(holds, h)
		}
	}
	return holds, missing
}
