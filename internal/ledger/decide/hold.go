package decide

import (
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// repeat finds the effect of an idempotency key: 0 where it has had none yet.
func (w *Work) repeat(k IdemKey, fields []ledger.KeyField) (id.ID, error) {
	if k.Value == "" || !on(GuardKey) {
		return 0, nil
	}
	row, err := w.key(k)
	if err != nil || row == nil {
		return 0, err
	}
	if name := differing(row.Fields, fields); name != "" {
		f := fault.New(fault.KeyReused, "the field %q differs from the first request with this key", name)
		f.Field = name
		return 0, f
	}
	return row.Subject, nil
}

// differing is the first field that is not the same in both, "" where all are.
func differing(was, is []ledger.KeyField) string {
	find := func(fields []ledger.KeyField, name string) (string, bool) {
		for _, f := range fields {
			if f.Name == name {
				return f.Hash, true
			}
		}
		return "", false
	}
	for _, f := range was {
		if hash, ok := find(is, f.Name); !ok || hash != f.Hash {
			return f.Name
		}
	}
	for _, f := range is {
		if _, ok := find(was, f.Name); !ok {
			return f.Name
		}
	}
	return ""
}

// repeatHold answers a Hold whose key has had its effect.
func (w *Work) repeatHold(customer id.ID, key ledger.Key) (*ledger.Result, error) {
	subject, err := w.repeat(IdemKey{customer, ledger.OpHold, key.Value}, key.Fields)
	if err != nil || subject == 0 {
		return nil, err
	}
	h, err := w.hold(subject)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, nil // its hold has been deleted, and with it its 24 hours are over
	}
	return &ledger.Result{Repeat: true, Hold: h.view()}, nil
}

// view is a copy of the hold as it is now, for an answer.
func (h *Hold) view() *ledger.Hold {
	v := h.Hold
	return &v
}

// selling gives the event that a new hold is for.
func (w *Work) selling(event id.ID) (*eventRow, *ledger.Layout, error) {
	e, err := w.event(event)
	if err != nil {
		return nil, nil, err
	}
	if e == nil {
		return nil, nil, fault.New(fault.EventUnknown, "")
	}
	if f := e.Selling(w.Now); f != nil && on(GuardWindow) {
		return nil, nil, f
	}
	l, err := w.layout(e)
	return e, l, err
}

func (w *Work) holdSeats(c ledger.HoldSeats) (ledger.Result, error) {
	if r, err := w.repeatHold(c.Customer, c.Key); err != nil || r != nil {
		return deref(r), err
	}
	x, err := w.exchange(c.Event, c.Customer, c.Exchange)
	if err != nil {
		return ledger.Result{}, err
	}
	e, layout, err := w.selling(c.Event)
	if err != nil {
		return ledger.Result{}, err
	}
	session, err := w.inside(e, c.Session, c.Customer)
	if err != nil {
		return ledger.Result{}, err
	}
	indexes, err := seatList(c.Seats, layout, e.SeatsPerHoldMax)
	if err != nil {
		return ledger.Result{}, err
	}
	categories := make([]int16, len(indexes))
	for i, index := range indexes {
		categories[i] = layout.Category[index]
		if _, ok := e.Tier(categories[i]); !ok {
			return ledger.Result{}, invalid("seat_ids", "a seat's category has no price in this event")
		}
	}
	seats, err := w.freed(e, indexes)
	if err != nil {
		return ledger.Result{}, err
	}
	if taken := w.taken(seats); len(taken) > 0 && on(GuardSeatFree) {
		return ledger.Result{}, &fault.Error{Code: fault.SeatsTaken, Seats: taken}
	}
	if err := w.rested(e, c.Customer, indexes, c.Exchange); err != nil {
		return ledger.Result{}, err
	}
	h := &Hold{Row: Row{New: true}, Hold: ledger.Hold{
		ID: c.ID, Event: c.Event, Customer: c.Customer, State: ledger.HoldLive, Area: -1, Currency: e.Currency,
		Created: w.Now, Expires: w.Now + ledger.Time(e.HoldTTL), Session: session, Exchange: c.Exchange.Order,
		Exchanged: x.places(),
	}}
	h.Lines = make([]ledger.Line, len(indexes))
	for i, s := range seats {
		h.Lines[i] = e.Price(categories[i])
		h.Lines[i].Seat, h.Lines[i].Epoch = s.Index, s.Epoch+1
	}
	if err := w.allow(e, layout, &h.Hold); err != nil {
		return ledger.Result{}, err
	}
	for i, s := range seats {
		w.take(s, h, h.Lines[i].Epoch, ledger.Held)
	}
	return w.claimed(e, layout, h, x, c.Key)
}

// claimed finishes a new hold.
func (w *Work) claimed(e *eventRow, layout *ledger.Layout, h *Hold, x *exchange, key ledger.Key) (ledger.Result, error) {
	if err := w.count(e, layout, &h.Hold, 1); err != nil {
		return ledger.Result{}, err
	}
	if err := w.stays(h); err != nil {
		return ledger.Result{}, err
	}
	w.holdSet(h)
	w.mark(x, h.ID)
	w.keyAdd(IdemKey{h.Customer, ledger.OpHold, key.Value}, h.ID, key.Fields)
	w.note(h, "", "live", "hold")
	return ledger.Result{Hold: h.view()}, nil
}

// seatList checks and sorts the seats that a command names.
func seatList(seats []int32, layout *ledger.Layout, most int) ([]int32, error) {
	switch {
	case len(seats) == 0:
		return nil, invalid("seat_ids", "name at least one seat")
	case len(seats) > most:
		return nil, invalid("seat_ids", "at most %d seats at once", most)
	}
	sorted := slices.Clone(seats)
	slices.Sort(sorted)
	var unknown []int32
	for _, s := range sorted {
		if s < 0 || int(s) >= len(layout.Category) {
			unknown = append(unknown, s)
		}
	}
	if len(unknown) > 0 {
		return nil, &fault.Error{Code: fault.SeatUnknown, Seats: unknown}
	}
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return nil, invalid("seat_ids", "a seat is named twice")
		}
	}
	return sorted, nil
}

func invalid(field, format string, args ...any) error {
	f := fault.New(fault.Invalid, format, args...)
	f.Field = field
	return f
}

func deref(r *ledger.Result) ledger.Result {
	if r == nil {
		return ledger.Result{}
	}
	return *r
}

// freed gives the seats' rows, after ending the holds on them whose time is up (lazy expiry).
func (w *Work) freed(e *eventRow, indexes []int32) ([]*Seat, error) {
	seats := make([]*Seat, len(indexes))
	var missing error
	for i, index := range indexes {
		s, err := w.seat(e.ID, index)
		if err != nil {
			missing = err
			continue
		}
		seats[i] = s
	}
	if missing != nil {
		return nil, missing
	}
	for _, s := range seats {
		if s.State != ledger.Held {
			continue
		}
		h, err := w.hold(s.Claim)
		if err != nil {
			missing = err
			continue
		}
		if h == nil || (h.State != ledger.HoldLive && on(GuardOwner)) {
			return nil, invariant(e.ID, "seat %d is held by %d, which is no live hold", s.Index, s.Claim)
		}
		if h.Expires <= w.Now {
			if err := w.expire(h, "taken over"); err != nil {
				missing = err
			}
		}
	}
	return seats, missing
}

// taken are those seats that a new hold may not have.
func (w *Work) taken(seats []*Seat) []int32 {
	var taken []int32
	for _, s := range seats {
		switch {
		case s.State == ledger.Available:
		case s.State == ledger.Returned && (s.ReturnedAt+ledger.Time(ledger.ReturnedPatience) <= w.Now || !on(GuardReturned)):
		default:
			taken = append(taken, s.Index)
		}
	}
	return taken
}

// take gives a seat to a claim.
func (w *Work) take(s *Seat, h *Hold, epoch int64, state ledger.Availability) {
	w.seatSet(s)
	s.State, s.Claim, s.Epoch, s.ReturnedAt = state, h.ID, epoch, 0
}

func (w *Work) holdPlaces(c ledger.HoldPlaces) (ledger.Result, error) {
	if r, err := w.repeatHold(c.Customer, c.Key); err != nil || r != nil {
		return deref(r), err
	}
	x, err := w.exchange(c.Event, c.Customer, c.Exchange)
	if err != nil {
		return ledger.Result{}, err
	}
	e, layout, err := w.selling(c.Event)
	if err != nil {
		return ledger.Result{}, err
	}
	session, err := w.inside(e, c.Session, c.Customer)
	if err != nil {
		return ledger.Result{}, err
	}
	if c.Quantity < 1 || c.Quantity > e.SeatsPerHoldMax {
		return ledger.Result{}, invalid("quantity", "1 to %d places at once", e.SeatsPerHoldMax)
	}
	if c.Area < 0 || int(c.Area) >= len(layout.Areas) {
		return ledger.Result{}, fault.New(fault.SeatUnknown, "there is no such area")
	}
	category := layout.Areas[c.Area].Category
	if _, ok := e.Tier(category); !ok {
		return ledger.Result{}, invalid("area_id", "the area's category has no price in this event")
	}
	buckets, err := w.places(AreaKey{c.Event, c.Area}, int32(c.Quantity), false)
	if err != nil {
		return ledger.Result{}, err
	}
	if err := w.rested(e, c.Customer, nil, c.Exchange); err != nil {
		return ledger.Result{}, err
	}
	h := &Hold{Row: Row{New: true}, Hold: ledger.Hold{
		ID: c.ID, Event: c.Event, Customer: c.Customer, State: ledger.HoldLive, Area: c.Area, Currency: e.Currency,
		Created: w.Now, Expires: w.Now + ledger.Time(e.HoldTTL), Session: session, Exchange: c.Exchange.Order,
		Exchanged: x.places(),
	}}
	line := e.Price(category)
	line.Seat = -1
	h.Lines = slices.Repeat([]ledger.Line{line}, c.Quantity)
	if err := w.allow(e, layout, &h.Hold); err != nil {
		return ledger.Result{}, err
	}
	h.Draws = w.draw(buckets, int32(c.Quantity), func(b *Bucket, n int32) { b.Held += n })
	return w.claimed(e, layout, h, x, c.Key)
}

// places gives an area's buckets, after ending expired holds where they have too little. Returned places are among those
// that serve where nobody has seen to them for long, and for a rescue.
func (w *Work) places(k AreaKey, n int32, rescue bool) ([]*Bucket, error) {
	buckets, err := w.area(k.Event, k.Area)
	if err != nil {
		return nil, err
	}
	serve := func() int32 {
		returned, at := returnedPlaces(buckets)
		if !rescue && at+ledger.Time(ledger.ReturnedPatience) > w.Now && on(GuardReturned) {
			returned = 0
		}
		return freePlaces(buckets) + returned
	}
	if serve() < n {
		if err := w.expireAll(ExpiredKey{Event: k.Event, Area: k.Area, Max: ledger.ExpireBoundMax}, "taken over"); err != nil {
			return nil, err
		}
	}
	if serve() < n && on(GuardPlaces) {
		return nil, fault.New(fault.PlacesTaken, "%d places are left", serve())
	}
	return buckets, nil
}

func freePlaces(buckets []*Bucket) (free int32) {
	for _, b := range buckets {
		free += b.Free()
	}
	return free
}

// returnedPlaces are those of an area that are promised to the waitlist, and when anybody has seen to them last.
func returnedPlaces(buckets []*Bucket) (n int32, at ledger.Time) {
	for _, b := range buckets {
		n, at = n+b.Returned, max(at, b.ReturnedAt)
	}
	return n, at
}

// draw takes n places, from as few buckets as serve: the smallest that has enough, else the fullest first. Where too few are
// free, returned ones are taken.
func (w *Work) draw(buckets []*Bucket, n int32, take func(*Bucket, int32)) []Draw {
	for _, b := range buckets {
		if k := min(b.Returned, n-freePlaces(buckets)); k > 0 {
			w.bucketSet(b).Returned -= k
		}
	}
	var best *Bucket
	for _, b := range buckets {
		if b.Free() >= n && (best == nil || b.Free() < best.Free()) {
			best = b
		}
	}
	if best != nil {
		take(w.bucketSet(best), n)
		return []Draw{{best.Number, n}}
	}
	sorted := slices.Clone(buckets)
	slices.SortStableFunc(sorted, func(a, b *Bucket) int { return int(b.Free() - a.Free()) })
	var draws []Draw
	for i, b := range sorted {
		k := min(b.Free(), n)
		if i == len(sorted)-1 {
			k = n // only without GuardPlaces more than is free
		}
		if k <= 0 {
			continue
		}
		take(w.bucketSet(b), k)
		draws = append(draws, Draw{b.Number, k})
		n -= k
	}
	return draws
}

func (w *Work) extend(c ledger.Extend) (ledger.Result, error) {
	h, err := w.holdOf(c.Hold, c.Customer)
	if err != nil {
		return ledger.Result{}, err
	}
	if err := w.live(h); err != nil {
		return ledger.Result{}, err
	}
	if h.Order != 0 {
		return ledger.Result{}, &fault.Error{Code: fault.PaymentInProgress, Order: h.Order}
	}
	e, err := w.event(h.Event)
	if err != nil {
		return ledger.Result{}, err
	}
	ttl := ledger.Time(e.HoldTTL)
	until := min(w.Now+ttl, h.Created+2*ttl)
	if (h.Extended >= e.ExtendMax && on(GuardExtend)) || until <= h.Expires || h.Offer != 0 {
		return ledger.Result{}, fault.New(fault.HoldNotExtendable, "")
	}
	w.holdSet(h)
	h.Extended++
	w.expiryMove(h, until)
	return ledger.Result{Hold: h.view()}, w.stays(h)
}

// expiryMove sets when a hold runs out and lets the boards know.
func (w *Work) expiryMove(h *Hold, until ledger.Time) {
	if until == h.Expires {
		return
	}
	h.Expires = until
	t := w.touch(h.Event)
	for _, index := range h.Seats() {
		t.expiry[index] = until
	}
}

// holdOf gives a customer's hold.
func (w *Work) holdOf(hold, customer id.ID) (*Hold, error) {
	h, err := w.hold(hold)
	switch {
	case err != nil:
		return nil, err
	case h == nil:
		return nil, fault.New(fault.HoldUnknown, "")
	case h.Customer != customer && on(GuardCustomer):
		return nil, fault.New(fault.WrongCustomer, "")
	}
	return h, nil
}

// live refuses a hold that is not; one whose time is up ends for good (A5).
func (w *Work) live(h *Hold) error {
	if h.Live(w.Now) {
		return nil
	}
	if h.State == ledger.HoldLive {
		if !on(GuardHoldLive) {
			return nil
		}
		if err := w.expire(h, "refused"); err != nil {
			return err
		}
	}
	return fault.New(fault.HoldExpired, "")
}

func (w *Work) release(c ledger.Release) (ledger.Result, error) {
	h, err := w.holdOf(c.Hold, c.Customer)
	if err != nil {
		return ledger.Result{}, err
	}
	if h.State == ledger.HoldSold {
		return ledger.Result{}, fault.New(fault.Conflict, "it is sold; ask for a refund of the booking")
	}
	if h.Order != 0 {
		o, err := w.order(h.Order)
		if err != nil {
			return ledger.Result{}, err
		}
		if o != nil && o.State == ledger.OrderPending {
			return ledger.Result{}, &fault.Error{Code: fault.PaymentInProgress, Order: h.Order}
		}
	}
	switch {
	case h.State != ledger.HoldLive:
		return ledger.Result{Repeat: true, Hold: h.view()}, nil
	case h.Expires <= w.Now:
		err = w.expire(h, "released late")
		return ledger.Result{Repeat: true, Hold: h.view()}, err
	}
	err = w.end(h, ledger.HoldReleased, "release")
	return ledger.Result{Hold: h.view()}, err
}
