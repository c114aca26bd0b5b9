package decide

import (
	"cmp"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

func (w *Work) releaseSeats(c ledger.ReleaseSeats) (ledger.Result, error) {
	r, o, err := w.refundOf(c.Refund)
	switch {
	case err != nil:
		return ledger.Result{}, err
	case r.State == ledger.RefundRequested:
		return ledger.Result{}, fault.New(fault.Conflict, "the refund is %s", r.State)
	case r.State == ledger.RefundSeatReleased && on(GuardReleaseEpoch), len(r.Tickets) == 0:
		return w.ticketsAnswer(o, ledger.Result{Repeat: true, Refund: r.view()})
	}
	all, err := w.ticketsOf(o.ID)
	if err != nil {
		return ledger.Result{}, err
	}
	var tickets []*Ticket
	for _, t := range all {
		if slices.Contains(r.Tickets, t.ID) {
			tickets = append(tickets, t)
		}
	}
	if err := w.placesGone(o, tickets, r.Reason); err != nil {
		return ledger.Result{}, err
	}
	w.refundSet(r).State = ledger.RefundSeatReleased
	w.notice(o, ledger.NoticeSeatsReleased, false, r.ID)
	return w.ticketsAnswer(o, ledger.Result{Refund: r.view()})
}

// placesGone gives back the places of an order's tickets, which are VOID: the seats, what counts under limits and quotas,
// the documents. The lines of its hold are Gone, and a hold all of whose lines are is released.
func (w *Work) placesGone(o *Order, tickets []*Ticket, why string) error {
	h, err := w.hold(o.Hold)
	if err != nil {
		return err
	}
	e, err := w.event(o.Event)
	if err != nil {
		return err
	}
	layout, err := w.layout(e)
	if err != nil {
		return err
	}
	tickets = slices.SortedFunc(slices.Values(tickets), func(a, b *Ticket) int { return cmp.Compare(a.Place, b.Place) })
	lines, err := goneLines(o, h, tickets)
	if err != nil {
		return err
	}
	var m lacking
	if err := m.note(w.uncount(e, layout, o, h, tickets, lines)); err != nil {
		return err
	}
	if h.Area < 0 {
		err = w.seatsGone(e, h, tickets)
	} else {
		err = w.areaGone(e, h, int32(len(lines)))
	}
	if err := m.note(err); err != nil {
		return err
	}
	if m.err != nil {
		return m.err
	}
	w.holdRemake(h)
	h.Lines = slices.Clone(h.Lines)
	documents := slices.Clone(o.Documents)
	for _, t := range tickets {
		h.Lines[t.Place].Gone = true
		if int(t.Place) < len(documents) {
			documents[t.Place] = ""
		}
		w.ticketSet(t).Gone = true
	}
	w.orderRemake(o).Documents = documents
	w.noteLines(h, lines, "sold", "released", why)
	if !slices.ContainsFunc(h.Lines, func(l ledger.Line) bool { return !l.Gone }) {
		h.State, h.Order = ledger.HoldReleased, 0
	}
	return nil
}

// goneLines are the lines of a sold hold that tickets are for.
func goneLines(o *Order, h *Hold, tickets []*Ticket) ([]ledger.Line, error) {
	if h == nil || h.State != ledger.HoldSold && on(GuardReleaseEpoch) {
		return nil, invariant(o.Event, "order %d has tickets of a hold that is not sold", o.ID)
	}
	var lines []ledger.Line
	for _, t := range tickets {
		switch {
		case int(t.Place) >= len(h.Lines):
			return nil, invariant(o.Event, "ticket %d is for a place that its hold does not have", t.ID)
		case !h.Lines[t.Place].Gone:
			lines = append(lines, h.Lines[t.Place])
		case on(GuardReleaseEpoch):
			return nil, invariant(o.Event, "the place of ticket %d has gone back before", t.ID)
		}
	}
	return lines, nil
}

// uncount takes lines of a sold hold from the counters under which they count; what was passed on, from those of whoever
// has it too.
func (w *Work) uncount(e *eventRow, layout *ledger.Layout, o *Order, h *Hold, tickets []*Ticket, lines []ledger.Line) error {
	part := h.Hold
	part.Lines, part.Exchanged = lines, nil
	var m lacking
	if err := m.note(w.count(e, layout, &part, -1)); err != nil {
		return err
	}
	var documents []string
	for _, t := range tickets {
		if int(t.Place) < len(o.Documents) {
			documents = append(documents, o.Documents[t.Place])
		}
		if t.Customer == o.Customer || t.Gone {
			continue
		}
		if err := m.note(w.countLimits(e, PlaceOf(t), -1)); err != nil {
			return err
		}
	}
	if err := m.note(w.countDocuments(e.Event, documents, -1)); err != nil {
		return err
	}
	return m.err
}

// PlaceOf is the place of a ticket as a claim of whoever has it, for counting.
func PlaceOf(t *Ticket) *ledger.Hold {
	return &ledger.Hold{
		Event: t.Event, Customer: t.Customer, State: ledger.HoldSold, Area: t.Area, Lines: []ledger.Line{{Seat: t.Seat, Category: t.Category}},
	}
}

// seatsGone frees the seats of tickets, each only of the very claim that the tickets are of (A8).
func (w *Work) seatsGone(e *eventRow, h *Hold, tickets []*Ticket) error {
	var m lacking
	var seats []*Seat
	for _, t := range tickets {
		l := h.Lines[t.Place]
		s, err := w.seat(h.Event, l.Seat)
		if err := m.note(err); err != nil {
			return err
		}
		if err != nil {
			continue
		}
		if owns := s.State == ledger.Sold && s.Claim == h.ID && s.Epoch == l.Epoch; !owns && on(GuardReleaseEpoch) {
			return invariant(h.Event, "seat %d is not sold by hold %d, whose ticket is given back", l.Seat, h.ID)
		}
		seats = append(seats, s)
	}
	if m.err != nil {
		return m.err
	}
	for _, s := range seats {
		w.seatFree(e, s)
	}
	return nil
}

// areaGone gives places of a sold hold back to the buckets that they came from.
func (w *Work) areaGone(e *eventRow, h *Hold, n int32) error {
	buckets, err := w.area(h.Event, h.Area)
	if err != nil {
		return err
	}
	var rest []Draw
	for _, d := range h.Draws {
		k := min(n, d.Count)
		n -= k
		if d.Count > k {
			rest = append(rest, Draw{d.Bucket, d.Count - k})
		}
		if k == 0 {
			continue
		}
		i := slices.IndexFunc(buckets, func(b *Bucket) bool { return b.Number == d.Bucket })
		if i < 0 || buckets[i].Sold < k {
			return invariant(e.ID, "bucket %d of area %d has not sold what hold %d drew", d.Bucket, h.Area, h.ID)
		}
		w.bucketSet(buckets[i]).Sold -= k
		w.placesFree(e, buckets, buckets[i], k)
	}
	if n > 0 {
		return invariant(e.ID, "hold %d drew fewer places than it has", h.ID)
	}
	w.holdRemake(h).Draws = rest
	return nil
}

// unmarked refuses tickets that a live hold is to take the place of; the one given does not count.
func (w *Work) unmarked(tickets []*Ticket, but id.ID) error {
	var m lacking
	for _, t := range tickets {
		if t.Exchange == 0 || t.Exchange == but || !on(GuardExchangeMark) {
			continue
		}
		h, err := w.hold(t.Exchange)
		if err := m.note(err); err != nil {
			return err
		}
		if h != nil && h.Live(w.Now) {
			return fault.New(fault.Conflict, "a ticket is being exchanged")
		}
	}
	return m.err
}
