package decide

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/ledger"
)

// rescue makes a new claim for an order that was paid after its hold was lost (A17): on the same seats where all are
// free, else on as good ones where the customer allowed it. It answers nil where neither is possible.
func (w *Work) rescue(e *eventRow, o *Order, lost *Hold, c ledger.Confirm) (*Hold, error) {
	if c.RescueHold == 0 {
		return nil, nil
	}
	layout, err := w.layout(e)
	if err != nil {
		return nil, err
	}
	h := &Hold{Row: Row{New: true}, Hold: lost.Hold}
	h.ID, h.State, h.Created, h.Expires = c.RescueHold, ledger.HoldSold, w.Now, w.Now
	h.Order, h.Extended, h.Window, h.Lines = o.ID, 0, true, slices.Clone(lost.Lines)
	h.Exchange, h.Offer, h.Ended = 0, 0, 0 // the session is still the one in which it was chosen
	var found bool
	if lost.Area >= 0 {
		found, err = w.rescuePlaces(e, layout, h)
	} else {
		found, err = w.rescueSeats(e, layout, o, lost, h)
	}
	if err != nil || !found {
		return nil, err
	}
	if err := w.count(e, layout, &h.Hold, 1); err != nil {
		return nil, err
	}
	w.holdSet(h)
	w.note(h, "", "sold", "rescue")
	return h, nil
}

// refused tells a refusal from an error.
func refused(err error) (bool, error) {
	var f *fault.Error
	if errors.As(err, &f) {
		return true, nil
	}
	return false, err
}

func (w *Work) rescuePlaces(e *eventRow, layout *ledger.Layout, h *Hold) (bool, error) {
	n := int32(len(h.Lines))
	buckets, err := w.places(AreaKey{h.Event, h.Area}, n, true)
	if err == nil {
		err = w.allow(e, layout, &h.Hold)
	}
	if no, err := refused(err); no || err != nil {
		return false, err
	}
	h.Draws = w.draw(buckets, n, func(b *Bucket, n int32) { b.Sold += n })
	return true, nil
}

func (w *Work) rescueSeats(e *eventRow, layout *ledger.Layout, o *Order, lost, h *Hold) (bool, error) {
	seats, err := w.freed(e, lost.Seats())
	if err != nil {
		return false, err
	}
	same := !slices.ContainsFunc(seats, func(s *Seat) bool { return s.State != ledger.Available && s.State != ledger.Returned })
	if same {
		no, err := refused(w.allow(e, layout, &lost.Hold))
		if err != nil {
			return false, err
		}
		same = !no
	}
	if !same {
		if !o.AllowOther {
			return false, nil
		}
		if seats, err = w.asGood(e, layout, lost); err != nil || seats == nil {
			return false, err
		}
		// Another seat's section may be under another quota.
		moved := lost.Hold
		moved.Lines = slices.Clone(h.Lines)
		for i, s := range seats {
			moved.Lines[i].Seat = s.Index
		}
		if no, err := refused(w.allow(e, layout, &moved)); no || err != nil {
			return false, err
		}
	}
	for i, s := range seats {
		h.Lines[i].Seat, h.Lines[i].Epoch = s.Index, s.Epoch+1
		w.take(s, h, s.Epoch+1, ledger.Sold)
	}
	return true, nil
}

// asGood finds seats of the same category that are no worse than the lost ones (see ledger.Confirm); nil where there are
// none.
func (w *Work) asGood(e *eventRow, layout *ledger.Layout, lost *Hold) ([]*Seat, error) {
	category := lost.Lines[0].Category
	quality := make([]int32, len(lost.Lines))
	for i, l := range lost.Lines {
		if l.Category != category {
			return nil, nil
		}
		quality[i] = layout.Quality[l.Seat]
	}
	slices.Sort(quality)
	free, err := w.free(e, layout, category, quality[len(quality)-1])
	if err != nil {
		return nil, err
	}
	for { // a seat that turns out not to be free is left out, and the choice made again
		chosen := choose(layout, free, quality, neighbours(layout, lost.Seats()))
		if chosen == nil {
			return nil, nil
		}
		seats := make([]*Seat, len(chosen))
		var missing error
		lostOne := false
		for i, index := range chosen {
			s, err := w.seat(e.ID, index)
			switch {
			case err != nil:
				missing = err
			case s.State != ledger.Available:
				free = slices.DeleteFunc(free, func(f int32) bool { return f == index })
				lostOne = true
			default:
				seats[i] = s
			}
		}
		if missing != nil {
			return nil, missing
		}
		if !lostOne {
			return seats, nil
		}
	}
}

// free are the best available seats of a category that are no worse than worst, by quality, then index.
func (w *Work) free(e *eventRow, layout *ledger.Layout, category int16, worst int32) ([]int32, error) {
	stored, err := w.src.Free(e.ID)
	if err != nil {
		return nil, err
	}
	set := make(map[int32]struct{}, len(stored))
	for _, i := range stored {
		set[i] = struct{}{}
	}
	for k, s := range w.seats { // what this batch has changed
		if k.Event != e.ID {
			continue
		}
		if s.State == ledger.Available {
			set[k.Index] = struct{}{}
		} else {
			delete(set, k.Index)
		}
	}
	free := slices.DeleteFunc(slices.Collect(maps.Keys(set)), func(i int32) bool {
		return layout.Category[i] != category || layout.Quality[i] > worst
	})
	slices.SortFunc(free, func(a, b int32) int {
		return cmp.Or(cmp.Compare(layout.Quality[a], layout.Quality[b]), cmp.Compare(a, b))
	})
	return free[:min(len(free), ledger.CandidatesMax)], nil
}

// neighbours says whether ascending seats are a run of neighbours.
func neighbours(layout *ledger.Layout, seats []int32) bool {
	for i := 1; i < len(seats); i++ {
		if seats[i] != seats[i-1]+1 || layout.Run[seats[i]] != layout.Run[seats[i-1]] {
			return false
		}
	}
	return true
}

// choose picks as many of the candidates as quality has, each (sorted) no worse than quality's, ascending by index.
func choose(layout *ledger.Layout, candidates, quality []int32, together bool) []int32 {
	n := len(quality)
	if len(candidates) < n {
		return nil
	}
	good := func(seats []int32) (sum int64, ok bool) {
		q := make([]int32, n)
		for i, s := range seats {
			q[i] = layout.Quality[s]
			sum += int64(q[i])
		}
		slices.Sort(q)
		for i := range q {
			if q[i] > quality[i] {
				return 0, false
			}
		}
		return sum, true
	}
	if !together {
		best := slices.Sorted(slices.Values(candidates[:n]))
		if _, ok := good(best); !ok {
			return nil
		}
		return best
	}
	sorted := slices.Sorted(slices.Values(candidates))
	var best []int32
	var least int64
	for i := 0; i+n <= len(sorted); i++ {
		seats := sorted[i : i+n]
		if seats[n-1]-seats[0] != int32(n-1) || !neighbours(layout, seats) {
			continue
		}
		if sum, ok := good(seats); ok && (best == nil || sum < least) {
			best, least = seats, sum
		}
	}
	return best
}
