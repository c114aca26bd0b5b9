package ledger

import (
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// What bounds a claim: areas, quotas, limits. All of them are counted by claimed.

// A modelPlace is a seat or one place of an area.
type modelPlace struct {
	seat     int32 // -1 for a place
	area     int32 // -1 for a seat
	category int16
	section  int16
}

func (e *modelEvent) seatPlace(seat int32) modelPlace {
	return modelPlace{seat, -1, e.layout.Category[seat], e.layout.Section[seat]}
}

func (e *modelEvent) areaPlace(area int32) modelPlace {
	return modelPlace{-1, area, e.layout.Areas[area].Category, e.layout.Areas[area].Section}
}

// placesOf are the places of a hold that have not gone back since.
func (e *modelEvent) placesOf(h *Hold) []modelPlace {
	var places []modelPlace
	for _, line := range h.Lines {
		switch {
		case line.Gone:
		case h.Area >= 0:
			places = append(places, e.areaPlace(h.Area))
		default:
			places = append(places, e.seatPlace(line.Seat))
		}
	}
	return places
}

// counts says whether a hold's places count: while it is live (also past its time, until somebody ends it), and while they
// are sold. A place that was refunded is sold until it is released.
func (h *Hold) counts() bool { return h.State == HoldLive || h.State == HoldSold }

// claimed counts the places of an event for which is says so, whoever has them.
func (m *Model) claimed(e *modelEvent, is func(p modelPlace) bool) int {
	n := 0
	for _, h := range m.holds {
		if h.Event == e.ID && h.counts() {
			n += countIf(e.placesOf(h), is)
		}
	}
	return n
}

// areaServes says whether an area has so many places left, after ending its expired holds where it has not (A9). Returned
// ones are among them where nobody has seen to them for long, and for a rescue.
func (m *Model) areaServes(e *modelEvent, area int32, quantity int, rescue bool) bool {
	enough := func() bool {
		free := m.areaFree(e, area)
		if a := e.areas[area]; rescue || a.returnedAt+Time(ReturnedPatience) <= m.now {
			free += a.returned
		}
		return free >= quantity
	}
	if enough() {
		return true
	}
	m.expireSome(ExpireBoundMax, func(h *Hold) bool { return h.Event == e.ID && h.Area == area })
	return enough()
}

func (m *Model) areaFree(e *modelEvent, area int32) int {
	return e.layout.Areas[area].Capacity - e.areas[area].returned - m.claimed(e, func(p modelPlace) bool { return p.area == area })
}

// takePlaces says that so many places of an area are about to be claimed: where too few are free, returned ones are taken.
func (m *Model) takePlaces(e *modelEvent, area int32, quantity int) {
	e.areas[area].returned -= max(0, quantity-m.areaFree(e, area))
}

// freePlaces says that so many places of an area are claimed no more.
func (m *Model) freePlaces(e *modelEvent, area int32, quantity int) {
	a := &e.areas[area]
	if e.Returns != ReturnsWaitlist || quantity == 0 {
		return
	}
	if a.returned == 0 {
		a.returnedAt = m.now
	}
	a.returned += quantity
}

// overBounds is the fault with which a claim on these places, in exchange for those, is refused by a quota or limit of the
// event, nil where none does. Before one refuses, the expired holds that count under it end (A9).
func (m *Model) overBounds(e *modelEvent, customer id.ID, places []modelPlace, exchanged []ExchangedPlace) *fault.Error {
	for _, q := range e.Quotas {
		if !m.quotaServes(e, q, places) {
			return &fault.Error{Code: fault.PlacesTaken, Field: "quota"}
		}
	}
	return m.overLimits(e, customer, places, exchanged)
}

func (m *Model) overLimits(e *modelEvent, customer id.ID, places []modelPlace, exchanged []ExchangedPlace) *fault.Error {
	for _, l := range e.Limits {
		if !m.limitServes(e, l, customer, places, exchanged) {
			field := map[LimitScope]string{PerEvent: "event", PerCategory: "category", PerShow: "show"}[l.Scope]
			return &fault.Error{Code: fault.LimitReached, Field: field}
		}
	}
	return nil
}

func (m *Model) quotaServes(e *modelEvent, q Quota, places []modelPlace) bool {
	covers := func(p modelPlace) bool { return q.Covers(p.category, p.section) }
	wanted := countIf(places, covers)
	enough := func() bool {
		return m.claimed(e, covers)+wanted <= q.MaxAt(m.now)
	}
	if wanted == 0 || enough() {
		return true
	}
	m.expireSome(ExpireBoundMax, func(h *Hold) bool {
		return h.Event == e.ID && slices.ContainsFunc(e.placesOf(h), covers)
	})
	return enough()
}

// limitServes leaves the limits for documents to where documents are known.
func (m *Model) limitServes(e *modelEvent, l Limit, customer id.ID, places []modelPlace, exchanged []ExchangedPlace) bool {
	if l.Scope == PerDocument {
		return true
	}
	wanted := m.countUnder(e, l, e, places, exchanged)
	enough := func() bool { return m.has(customer, e, l)+wanted <= l.Max }
	if wanted == 0 || enough() {
		return true
	}
	m.expireSome(ExpireBoundMax, func(h *Hold) bool { return h.Customer == customer })
	return enough()
}

// has is how many places count for a customer under a limit of an event: those of their holds, what they bought (also where
// it was passed on), and what was passed on to them.
func (m *Model) has(customer id.ID, e *modelEvent, l Limit) int {
	n := 0
	for _, h := range m.holds {
		if h.Customer == customer && h.counts() {
			of := m.events[h.Event]
			n += m.countUnder(e, l, of, of.placesOf(h), h.Exchanged)
		}
	}
	for _, t := range m.tickets {
		if t.Customer == customer && m.orders[t.Order].Customer != customer && !t.Gone {
			of := m.events[t.Event]
			n += m.countUnder(e, l, of, []modelPlace{of.placeOf(t)}, nil)
		}
	}
	return n
}

// countUnder counts places of an event (of) under a limit of an event (e). Those that are to be given up for them count in
// their stead: the event's or category's own, and under a show's limit all.
func (m *Model) countUnder(e *modelEvent, l Limit, of *modelEvent, places []modelPlace, exchanged []ExchangedPlace) int {
	n, less := 0, 0
	switch l.Scope {
	case PerEvent:
		if of == e {
			n = len(places)
		}
		less = countIf(exchanged, func(x ExchangedPlace) bool { return x.Event == e.ID })
	case PerCategory:
		if of == e {
			n = countIf(places, func(p modelPlace) bool { return p.category == l.Category })
		}
		less = countIf(exchanged, func(x ExchangedPlace) bool { return x.Event == e.ID && x.Category == l.Category })
	case PerShow:
		if of.Show == e.Show && of.hasLimit(PerShow) {
			n = len(places)
		}
		less = len(exchanged)
	}
	return max(0, n-less)
}

// placeOf is the place of a ticket.
func (e *modelEvent) placeOf(t *Ticket) modelPlace {
	if t.Area >= 0 {
		return e.areaPlace(t.Area)
	}
	return e.seatPlace(t.Seat)
}

// hasDocument counts the places for which an identity document stands: of orders that wait for their payment, and of what
// is sold and has not gone back.
func (m *Model) hasDocument(e *modelEvent, document string) int {
	n := 0
	for _, o := range m.orders {
		sold := (o.State == OrderPaid || o.State == OrderRefunded) && m.holds[o.Hold].State == HoldSold
		if o.Event == e.ID && (o.State == OrderPending || sold) {
			n += countIf(o.Documents, func(d string) bool { return d == document })
		}
	}
	return n
}

func (e *modelEvent) hasLimit(scope LimitScope) bool {
	return slices.ContainsFunc(e.Limits, func(l Limit) bool { return l.Scope == scope })
}

func countIf[T any](list []T, is func(T) bool) int {
	n := 0
	for _, x := range list {
		if is(x) {
			n++
		}
	}
	return n
}
