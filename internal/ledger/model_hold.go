package ledger

import (
	"cmp"
	"slices"

	"onsale/internal/fault"
)

func (m *Model) holdSeats(c HoldSeats) Result {
	if answer, ok := m.known(c.Customer, OpHold, c.Key); ok {
		return answer
	}
	e := m.events[c.Event]
	if e == nil {
		return refuse(fault.EventUnknown, "")
	}
	given, f := m.ticketsToExchange(e, c.Customer, c.Exchange)
	if f != nil {
		return Result{Fault: f}
	}
	if f := e.Selling(m.now); f != nil {
		return Result{Fault: f}
	}
	session, f := m.inside(e, c.Session, c.Customer)
	if f != nil {
		return Result{Fault: f}
	}
	seats := slices.Sorted(slices.Values(c.Seats))
	if len(seats) == 0 || len(seats) > e.SeatsPerHoldMax {
		return refuseField(fault.Invalid, "seat_ids")
	}
	if unknown := e.unknownOf(seats); len(unknown) > 0 {
		return refuseSeats(fault.SeatUnknown, unknown)
	}
	if twice(seats) {
		return refuseField(fault.Invalid, "seat_ids")
	}
	var places []modelPlace
	for _, seat := range seats {
		place := e.seatPlace(seat)
		if _, priced := e.Tier(place.category); !priced {
			return refuseField(fault.Invalid, "seat_ids")
		}
		places = append(places, place)
	}
	for _, seat := range seats {
		m.expireHolderOf(e, seat)
	}
	var taken []int32
	for _, seat := range seats {
		s := &e.seats[seat]
		if s.state != Available && (s.state != Returned || s.returnedAt+Time(ReturnedPatience) > m.now) {
			taken = append(taken, seat)
		}
	}
	if len(taken) > 0 {
		return refuseSeats(fault.SeatsTaken, taken)
	}
	if f := m.resting(e, c.Customer, seats, c.Exchange); f != nil {
		return Result{Fault: f}
	}
	if f := m.overBounds(e, c.Customer, places, exchangedPlaces(given)); f != nil {
		return Result{Fault: f}
	}
	h := &Hold{
		ID: c.ID, Event: e.ID, Customer: c.Customer, State: HoldLive, Area: -1, Currency: e.Currency,
		Created: m.now, Expires: m.now + Time(e.HoldTTL), Session: session, Exchange: c.Exchange.Order,
	}
	for _, place := range places {
		h.Lines = append(h.Lines, e.price(place))
	}
	m.claimSeats(e, h, Held)
	m.holds[h.ID] = h
	m.stays(h)
	m.markExchanged(h, given)
	m.step(h, "", "live", "hold", h.Lines)
	m.remember(c.Customer, OpHold, c.Key, h.ID)
	return Result{Hold: m.holdNow(h.ID)}
}

func (m *Model) holdPlaces(c HoldPlaces) Result {
	if answer, ok := m.known(c.Customer, OpHold, c.Key); ok {
		return answer
	}
	e := m.events[c.Event]
	if e == nil {
		return refuse(fault.EventUnknown, "")
	}
	given, f := m.ticketsToExchange(e, c.Customer, c.Exchange)
	if f != nil {
		return Result{Fault: f}
	}
	if f := e.Selling(m.now); f != nil {
		return Result{Fault: f}
	}
	session, f := m.inside(e, c.Session, c.Customer)
	if f != nil {
		return Result{Fault: f}
	}
	if c.Quantity < 1 || c.Quantity > e.SeatsPerHoldMax {
		return refuseField(fault.Invalid, "quantity")
	}
	if c.Area < 0 || int(c.Area) >= len(e.layout.Areas) {
		return refuse(fault.SeatUnknown, "no area %d", c.Area)
	}
	place := e.areaPlace(c.Area)
	if _, priced := e.Tier(place.category); !priced {
		return refuseField(fault.Invalid, "area_id")
	}
	if !m.areaServes(e, c.Area, c.Quantity, false) {
		return refuse(fault.PlacesTaken, "area %d", c.Area)
	}
	if f := m.resting(e, c.Customer, nil, c.Exchange); f != nil {
		return Result{Fault: f}
	}
	places := slices.Repeat([]modelPlace{place}, c.Quantity)
	if f := m.overBounds(e, c.Customer, places, exchangedPlaces(given)); f != nil {
		return Result{Fault: f}
	}
	h := &Hold{
		ID: c.ID, Event: e.ID, Customer: c.Customer, State: HoldLive, Area: c.Area, Currency: e.Currency,
		Created: m.now, Expires: m.now + Time(e.HoldTTL), Session: session, Exchange: c.Exchange.Order,
	}
	for _, place := range places {
		h.Lines = append(h.Lines, e.price(place))
	}
	m.takePlaces(e, c.Area, c.Quantity)
	m.holds[h.ID] = h
	m.stays(h)
	m.markExchanged(h, given)
	m.step(h, "", "live", "hold", h.Lines)
	m.remember(c.Customer, OpHold, c.Key, h.ID)
	return Result{Hold: m.holdNow(h.ID)}
}

// price is the line of a place at the event's present prices (A15). The tax is rounded half up.
func (e *modelEvent) price(p modelPlace) Line {
	t, _ := e.Tier(p.category)
	net := t.Face + t.Fee
	line := Line{Seat: p.seat, Category: p.category, Face: t.Face, Fee: t.Fee}
	if e.TaxIncluded {
		whole := 10_000 + t.TaxBP
		line.Tax = (2*net*t.TaxBP + whole) / (2 * whole)
		line.Total = net
	} else {
		line.Tax = (2*net*t.TaxBP + 10_000) / (2 * 10_000)
		line.Total = net + line.Tax
	}
	return line
}

// claimSeats gives the hold the seats of its lines, each by a new claim whose number its line keeps.
func (m *Model) claimSeats(e *modelEvent, h *Hold, state Availability) {
	for i := range h.Lines {
		s := &e.seats[h.Lines[i].Seat]
		s.state, s.claim, s.epoch, s.returnedAt = state, h.ID, s.epoch+1, 0
		h.Lines[i].Epoch = s.epoch
	}
}

func (m *Model) extend(c Extend) Result {
	h := m.holds[c.Hold]
	if h == nil {
		return refuse(fault.HoldUnknown, "")
	}
	if h.Customer != c.Customer {
		return refuse(fault.WrongCustomer, "")
	}
	if !h.Live(m.now) {
		m.expireIfDue(h)
		return refuse(fault.HoldExpired, "")
	}
	if h.Order != 0 {
		return Result{Fault: &fault.Error{Code: fault.PaymentInProgress, Order: h.Order}}
	}
	e := m.events[h.Event]
	expires := min(m.now+Time(e.HoldTTL), h.Created+2*Time(e.HoldTTL))
	if h.Extended >= e.ExtendMax || expires <= h.Expires || h.Offer != 0 {
		return refuse(fault.HoldNotExtendable, "")
	}
	h.Expires = expires
	h.Extended++
	m.stays(h)
	return Result{Hold: m.holdNow(h.ID)}
}

func (m *Model) release(c Release) Result {
	h := m.holds[c.Hold]
	if h == nil {
		return refuse(fault.HoldUnknown, "")
	}
	if h.Customer != c.Customer {
		return refuse(fault.WrongCustomer, "")
	}
	if h.State == HoldSold {
		return refuse(fault.Conflict, "sold")
	}
	if o := m.orders[h.Order]; o != nil && o.State == OrderPending {
		return Result{Fault: &fault.Error{Code: fault.PaymentInProgress, Order: o.ID}}
	}
	m.expireIfDue(h)
	if h.State != HoldLive {
		return Result{Repeat: true, Hold: m.holdNow(h.ID)}
	}
	h.State, h.Ended = HoldReleased, m.now
	m.freeSeats(h)
	m.step(h, "live", "released", "release", h.Lines)
	return Result{Hold: m.holdNow(h.ID)}
}

// The end of holds.

// expire ends a hold whose time is up, and its order unless a payment may still come for it (A19).
func (m *Model) expire(h *Hold) {
	h.State, h.Ended = HoldExpired, h.Expires
	m.freeSeats(h)
	m.step(h, "live", "expired", "expired", h.Lines)
	if o := m.orders[h.Order]; o != nil && o.State == OrderPending && !o.AttemptOpen {
		m.endOrder(o, OrderExpired, "hold_expired")
	}
}

func (m *Model) due(h *Hold) bool { return h.State == HoldLive && h.Expires <= m.now }

func (m *Model) expireIfDue(h *Hold) {
	if m.due(h) {
		m.expire(h)
	}
}

// expireHolderOf ends the hold that has a seat, wholly, if its time is up.
func (m *Model) expireHolderOf(e *modelEvent, seat int32) {
	if s := e.seats[seat]; s.state == Held {
		m.expireIfDue(m.holds[s.claim])
	}
}

// expireSome ends holds whose time is up, those that ran out first first, at most max, and says how many.
func (m *Model) expireSome(maxCount int, which func(*Hold) bool) int {
	var ended []*Hold
	for _, h := range m.holds {
		if m.due(h) && which(h) {
			ended = append(ended, h)
		}
	}
	slices.SortFunc(ended, func(a, b *Hold) int {
		return cmp.Or(cmp.Compare(a.Expires, b.Expires), cmp.Compare(a.ID, b.ID))
	})
	ended = ended[:min(len(ended), maxCount)]
	for _, h := range ended {
		m.expire(h)
	}
	return len(ended)
}

// freeSeats gives back the seats that still belong to the hold, or its places.
func (m *Model) freeSeats(h *Hold) {
	if h.Area >= 0 {
		m.freePlaces(m.events[h.Event], h.Area, countIf(h.Lines, func(l Line) bool { return !l.Gone }))
	}
	for _, seat := range m.owned(h) {
		m.freeSeat(m.events[h.Event], seat)
	}
}

func (m *Model) freeSeat(e *modelEvent, seat int32) {
	s := &e.seats[seat]
	s.claim = 0
	switch {
	case s.whenFree:
		s.state, s.whenFree = Blocked, false
	case e.Returns == ReturnsWaitlist:
		s.state, s.returnedAt = Returned, m.now
	default:
		s.state = Available
	}
}

// owned are those seats of a hold that nobody else has claimed since (A8).
func (m *Model) owned(h *Hold) []int32 {
	var seats []int32
	e := m.events[h.Event]
	for _, line := range h.Lines {
		if line.Seat >= 0 && e.seats[line.Seat].claim == h.ID && e.seats[line.Seat].epoch == line.Epoch {
			seats = append(seats, line.Seat)
		}
	}
	return seats
}

func (m *Model) sweep(c Sweep) Result {
	maxCount := c.Max
	if maxCount == 0 {
		maxCount = ExpireBoundMax
	}
	here := func(h *Hold) bool { return c.Event == 0 || h.Event == c.Event }
	count := m.expireSome(maxCount, here)
	more := false
	for _, h := range m.holds {
		more = more || m.due(h) && here(h)
	}
	return Result{Count: count, More: more}
}
