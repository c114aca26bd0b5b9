package decide

import (
	"cmp"
	"maps"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

func (w *Work) setEvent(c ledger.SetEvent) (ledger.Result, error) {
	e, err := w.event(c.Event.ID)
	if err != nil {
		return ledger.Result{}, err
	}
	if e == nil {
		if c.Layout == nil {
			return ledger.Result{}, invalid("layout", "the first time the seats must come along")
		}
		if err := Validate(&c.Event, c.Layout); err != nil {
			return ledger.Result{}, err
		}
		row := c.Event
		row.LimitsAt, row.Sequence = w.Now, 0
		e = &eventRow{Event: &row, write: &EventWrite{New: true, Layout: c.Layout}}
		e.write.Event = e.Event
		w.events[row.ID] = e
		w.layouts[row.PlanHash] = c.Layout
		w.Out.Events = append(w.Out.Events, e.write)
		w.touch(row.ID).config = true
		w.placesNew(row.ID, c.Layout)
		w.eventNotice(e)
		return ledger.Result{}, w.ruled(nil, e.Event)
	}
	switch {
	case c.Event.Version < e.Version:
		return ledger.Result{}, fault.New(fault.Conflict, "version %d is in force", e.Version)
	case c.Event.Version == e.Version && !(c.Looked && e.State == ledger.Stopped):
		return ledger.Result{Repeat: true}, nil
	case c.Event.PlanHash != e.PlanHash:
		return ledger.Result{}, fault.New(fault.Conflict, "an event keeps its seating plan")
	}
	if err := Validate(&c.Event, nil); err != nil {
		return ledger.Result{}, err
	}
	if err := w.recount(e, &c.Event); err != nil {
		return ledger.Result{}, err
	}
	stopped := e.State == ledger.Stopped && !c.Looked
	changed, sequence, returns := w.Now, e.Sequence, e.Returns
	if e.SameLimits(&c.Event) {
		changed = e.LimitsAt
	}
	was := *e.Event
	w.eventSet(e)
	*e.Event = c.Event
	e.LimitsAt, e.Sequence, e.Returns = changed, sequence, returns
	if stopped {
		e.State = ledger.Stopped
	}
	w.eventNotice(e)
	return ledger.Result{}, w.ruled(&was, e.Event)
}

// placesNew gives a new event its places, which the source cannot know: its rows are written with the batch.
func (w *Work) placesNew(event id.ID, layout *ledger.Layout) {
	for area, a := range layout.Areas {
		k := AreaKey{event, int32(area)}
		buckets := []*Bucket{}
		for number, capacity := range BucketCapacities(a.Capacity) {
			buckets = append(buckets, &Bucket{AreaKey: k, Number: int16(number), Capacity: capacity})
		}
		w.buckets[k] = buckets
	}
}

// eventSet marks an event's row as changed. The caller changes the copy that it makes.
func (w *Work) eventSet(e *eventRow) {
	if e.write == nil {
		row := *e.Event
		e.Event = &row
		e.write = &EventWrite{Event: &row}
		w.Out.Events = append(w.Out.Events, e.write)
	}
	w.touch(e.ID).config = true
}

// recount makes the counters right where a change adds or takes away quotas and limits: what is claimed already counts
// under new ones, and no more under those that go. A source that has to lock the counters hears of all of them at once.
func (w *Work) recount(e *eventRow, next *ledger.Event) error {
	layout, err := w.layout(e)
	if err != nil {
		return err
	}
	quotas := func(of *ledger.Event, q ledger.Quota) bool {
		return slices.ContainsFunc(of.Quotas, func(o ledger.Quota) bool { return o.Category == q.Category && o.Section == q.Section })
	}
	limits := func(of *ledger.Event, l ledger.Limit) bool {
		return slices.ContainsFunc(of.Limits, func(o ledger.Limit) bool { return o.Scope == l.Scope && o.Category == l.Category }) &&
			(l.Scope != ledger.PerShow || e.Show == next.Show)
	}
	var claims, received []*Hold
	var documents []string
	loaded := false
	each := func(do func(h *Hold) error) error {
		if !loaded {
			if claims, documents, err = w.claims(e.ID); err != nil {
				return err
			}
			if received, err = w.received(e.ID); err != nil {
				return err
			}
			loaded = true
		}
		var m lacking
		for _, h := range claims {
			if err := m.note(do(h)); err != nil {
				return err
			}
		}
		return m.err
	}
	change := func(a, b *ledger.Event, sign int) error {
		var m lacking
		for _, q := range a.Quotas {
			if !quotas(b, q) {
				if err := m.note(each(func(h *Hold) error { return w.countQuota(e, q, layout, &h.Hold, sign) })); err != nil {
					return err
				}
			}
		}
		for _, l := range a.Limits {
			if limits(b, l) {
				continue
			}
			counts := func(h *Hold) error { return w.countLimit(&eventRow{Event: a}, l, &h.Hold, sign) }
			if err := m.note(each(counts)); err != nil {
				return err
			}
			for _, h := range received {
				if err := m.note(counts(h)); err != nil {
					return err
				}
			}
			if l.Scope == ledger.PerDocument {
				if err := m.note(w.countDocuments(a, documents, sign)); err != nil {
					return err
				}
			}
		}
		return m.err
	}
	var m lacking
	if err := m.note(change(e.Event, next, -1)); err != nil {
		return err
	}
	return cmp.Or(change(next, e.Event, 1), m.err)
}

// claims are the holds live or sold of an event and the documents of its orders, as this batch has left them.
func (w *Work) claims(event id.ID) ([]*Hold, []string, error) {
	ids, err := w.src.Claims(event)
	if err != nil {
		return nil, nil, err
	}
	seen := map[id.ID]bool{}
	var claims []*Hold
	var missing error
	add := func(h *Hold) {
		if h != nil && h.Event == event && !seen[h.ID] && (h.State == ledger.HoldLive || h.State == ledger.HoldSold) {
			claims = append(claims, h)
		}
		if h != nil {
			seen[h.ID] = true
		}
	}
	for _, i := range ids {
		h, err := w.hold(i)
		if err != nil {
			missing = err
			continue
		}
		add(h)
	}
	for _, h := range w.Out.Holds { // made by this batch
		add(h)
	}
	documents, err := w.documents(event)
	if err != nil {
		return nil, nil, err
	}
	return claims, documents, missing
}

// documents are those that count of an event's orders, as this batch has left them.
func (w *Work) documents(event id.ID) ([]string, error) {
	stored, err := w.src.Documents(event)
	if err != nil {
		return nil, err
	}
	byOrder := map[id.ID][]string{}
	for _, d := range stored {
		byOrder[d.Order] = d.Documents
	}
	var m lacking
	for _, o := range w.Out.Orders {
		if o.Event != event {
			continue
		}
		counts := o.State == ledger.OrderPending || o.State == ledger.OrderPaid
		if o.State == ledger.OrderRefunded {
			h, err := w.hold(o.Hold)
			if err := m.note(err); err != nil {
				return nil, err
			}
			counts = h != nil && h.State == ledger.HoldSold
		}
		delete(byOrder, o.ID)
		if counts {
			byOrder[o.ID] = o.Documents
		}
	}
	return slices.Concat(slices.Collect(maps.Values(byOrder))...), m.err
}

// received are the places of an event that somebody else than the buyer has, as this batch has left them: each as a hold
// of one line, for counting.
func (w *Work) received(event id.ID) ([]*Hold, error) {
	stored, err := w.src.Received(event)
	if err != nil {
		return nil, err
	}
	byID := map[id.ID]*Ticket{}
	for _, t := range stored {
		byID[t.ID] = t
	}
	var m lacking
	for _, t := range w.Out.Tickets {
		if t.Event != event {
			continue
		}
		delete(byID, t.ID)
		if t.Gone || t.Was == 0 {
			continue
		}
		o, err := w.order(t.Order)
		if err := m.note(err); err != nil {
			return nil, err
		}
		if o != nil && o.Customer != t.Customer {
			byID[t.ID] = t
		}
	}
	var holds []*Hold
	for _, t := range byID {
		holds = append(holds, &Hold{Hold: *PlaceOf(t)})
	}
	return holds, m.err
}

func (w *Work) stop(c ledger.Stop) (ledger.Result, error) {
	e, err := w.event(c.Event)
	if err != nil {
		return ledger.Result{}, err
	}
	if e == nil {
		return ledger.Result{}, fault.New(fault.EventUnknown, "")
	}
	if e.State == ledger.Stopped {
		return ledger.Result{Repeat: true}, nil
	}
	w.eventSet(e)
	e.State = ledger.Stopped
	w.eventNotice(e)
	return ledger.Result{}, nil
}

func (w *Work) sweep(c ledger.Sweep) (ledger.Result, error) {
	most := cmp.Or(max(c.Max, 0), ledger.ExpireBoundMax)
	holds, err := w.expired(ExpiredKey{Event: c.Event, Area: -1, Max: most + 1})
	if err != nil {
		return ledger.Result{}, err
	}
	r := ledger.Result{More: len(holds) > most}
	var missing error
	for _, h := range holds[:min(len(holds), most)] {
		ended, err := w.expireSound(h, "sweep")
		if err != nil {
			missing = err
			continue
		}
		if ended {
			r.Count++
		}
	}
	if missing != nil {
		return ledger.Result{}, missing
	}
	if c.Event != 0 {
		if err := w.merge(c.Event); err != nil {
			return ledger.Result{}, err
		}
	}
	w.Out.Prune = true
	return r, nil
}

// mergeBelow is the number of free places a bucket below which buckets are merged (A9).
const mergeBelow = 8

// merge moves the last free places of each of an event's areas into few buckets.
func (w *Work) merge(event id.ID) error {
	e, err := w.event(event)
	if err != nil || e == nil {
		return err
	}
	layout, err := w.layout(e)
	if err != nil {
		return err
	}
	for area := range layout.Areas {
		buckets, err := w.area(event, int32(area))
		if err != nil {
			return err
		}
		free := freePlaces(buckets)
		sorted := slices.Clone(buckets)
		slices.SortStableFunc(sorted, func(a, b *Bucket) int { return int(b.Free() - a.Free()) })
		want := max(1, (int(free)+mergeBelow-1)/mergeBelow)
		if len(sorted) <= want || sorted[want].Free() == 0 {
			continue
		}
		for i, b := range sorted[want:] {
			n := b.Free()
			if n <= 0 {
				break
			}
			w.bucketSet(b).Capacity -= n
			w.bucketSet(sorted[i%want]).Capacity += n
		}
	}
	return nil
}

// seatsNamed checks which seats of which event an organizer names.
func (w *Work) seatsNamed(event id.ID, seats []int32) (*eventRow, []int32, error) {
	e, err := w.event(event)
	if err != nil {
		return nil, nil, err
	}
	if e == nil {
		return nil, nil, fault.New(fault.EventUnknown, "")
	}
	layout, err := w.layout(e)
	if err != nil {
		return nil, nil, err
	}
	if len(slices.Compact(slices.Sorted(slices.Values(seats)))) < len(seats) {
		return nil, nil, invalid("seat_ids", "a seat is named twice")
	}
	indexes, err := seatList(seats, layout, ledger.BatchSeatsMax)
	return e, indexes, err
}

// seatsAsTheyAre gives the seats' rows and ends no hold.
func (w *Work) seatsAsTheyAre(e *eventRow, indexes []int32) ([]*Seat, error) {
	seats := make([]*Seat, len(indexes))
	var missing error
	for i, index := range indexes {
		s, err := w.seat(e.ID, index)
		if err != nil {
			missing = err
		}
		seats[i] = s
	}
	return seats, missing
}

func (w *Work) block(c ledger.Block) (ledger.Result, error) {
	e, indexes, err := w.seatsNamed(c.Event, c.Seats)
	if err != nil {
		return ledger.Result{}, err
	}
	seats, err := w.freed(e, indexes)
	if err != nil {
		return ledger.Result{}, err
	}
	var taken []int32
	for _, s := range seats {
		if s.State != ledger.Available && s.State != ledger.Blocked {
			taken = append(taken, s.Index)
		}
	}
	if len(taken) > 0 && !c.WhenFree {
		return ledger.Result{}, &fault.Error{Code: fault.SeatsTaken, Seats: taken}
	}
	t := Transition{Event: e.ID, From: "available", To: "blocked", Why: "block", At: w.Now}
	count := 0
	for _, s := range seats {
		switch {
		case s.State == ledger.Available:
			w.take(s, &Hold{}, s.Epoch, ledger.Blocked)
			t.Seats, t.Epoch = append(t.Seats, s.Index), append(t.Epoch, s.Epoch)
			count++
		case s.State != ledger.Blocked && !s.WhenFree:
			w.seatSet(s).WhenFree = true
			count++
		}
	}
	if len(t.Seats) > 0 {
		w.Out.History = append(w.Out.History, t)
	}
	return ledger.Result{Count: count}, nil
}

func (w *Work) unblock(c ledger.Unblock) (ledger.Result, error) {
	e, indexes, err := w.seatsNamed(c.Event, c.Seats)
	if err != nil {
		return ledger.Result{}, err
	}
	seats, err := w.seatsAsTheyAre(e, indexes)
	if err != nil {
		return ledger.Result{}, err
	}
	t := Transition{Event: e.ID, From: "blocked", To: "available", Why: "unblock", At: w.Now}
	count := 0
	for _, s := range seats {
		switch {
		case s.State == ledger.Blocked:
			w.seatFree(e, s)
			t.Seats, t.Epoch = append(t.Seats, s.Index), append(t.Epoch, s.Epoch)
			count++
		case s.WhenFree:
			w.seatSet(s).WhenFree = false
			count++
		}
	}
	if len(t.Seats) > 0 {
		w.Out.History = append(w.Out.History, t)
	}
	return ledger.Result{Count: count}, nil
}
