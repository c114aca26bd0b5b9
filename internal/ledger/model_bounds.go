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

func (e *modelEvent) placesOf(h *Hold) []modelPlace {
	var places []modelPlace
	for _, line := range h.Lines {
		if h.Area >= 0 {
			places = append(places, e.areaPlace(h.Area))
		} else {
			places = append(places, e.seatPlace(line.Seat))
		}
	}
	return places
}

// claimed counts the places for which counts is true among all that are held (also by holds whose time is up but which
// nobody has ended) and all for which there is a valid ticket.
func (m *Model) claimed(counts func(e *modelEvent, customer id.ID, p modelPlace) bool) int {
	n := 0
	for _, h := range m.holds {
		if h.State != HoldLive {
			continue
		}
		e := m.events[h.Event]
		for _, p := range e.placesOf(h) {
			if counts(e, h.Customer, p) {
				n++
			}
		}
	}
	for _, t := range m.tickets {
		if t.State == TicketVoid {
			continue
		}
		e := m.events[t.Event]
		p := e.placesOf(&Hold{Area: t.Area, Lines: []Line{{Seat: t.Seat}}})[0]
		if counts(e, t.Customer, p) {
			n++
		}
	}
	return n
}

// areaServes says whether an area has so many places left, after ending its expired holds where it has not (A9).
func (m *Model) areaServes(e *modelEvent, area int32, quantity int) bool {
	enough := func() bool {
		return m.areaFree(e, area) >= quantity
	}
	if enough() {
		return true
	}
	m.expireSome(ExpireBoundMax, func(h *Hold) bool { return h.Event == e.ID && h.Area == area })
	return enough()
}

func (m *Model) areaFree(e *modelEvent, area int32) int {
	return e.layout.Areas[area].Capacity - m.claimed(func(of *modelEvent, _ id.ID, p modelPlace) bool {
		return of == e && p.area == area
	})
}

// overBounds is the fault with which a claim on these places is refused by a quota or limit of the event, nil where none
// does. Before one refuses, the expired holds that count under it end (A9).
func (m *Model) overBounds(e *modelEvent, customer id.ID, places []modelPlace) *fault.Error {
	for _, q := range e.Quotas {
		if !m.quotaServes(e, q, places) {
			return &fault.Error{Code: fault.PlacesTaken, Field: "quota"}
		}
	}
	for _, l := range e.Limits {
		if !m.limitServes(e, l, customer, places) {
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
		claimed := m.claimed(func(of *modelEvent, _ id.ID, p modelPlace) bool { return of == e && covers(p) })
		return claimed+wanted <= q.MaxAt(m.now)
	}
	if wanted == 0 || enough() {
		return true
	}
	m.expireSome(ExpireBoundMax, func(h *Hold) bool {
		return h.Event == e.ID && slices.ContainsFunc(e.placesOf(h), covers)
	})
	return enough()
}

// limitServes leaves the limits for documents to beginPayment, where documents are known.
func (m *Model) limitServes(e *modelEvent, l Limit, customer id.ID, places []modelPlace) bool {
	var under func(of *modelEvent, p modelPlace) bool
	switch l.Scope {
	case PerEvent:
		under = func(of *modelEvent, _ modelPlace) bool { return of == e }
	case PerCategory:
		under = func(of *modelEvent, p modelPlace) bool { return of == e && p.category == l.Category }
	case PerShow:
		under = func(of *modelEvent, _ modelPlace) bool { return of.Show == e.Show && of.hasLimit(PerShow) }
	default:
		return true
	}
	wanted := countIf(places, func(p modelPlace) bool { return under(e, p) })
	enough := func() bool {
		claimed := m.claimed(func(of *modelEvent, by id.ID, p modelPlace) bool { return by == customer && under(of, p) })
		return claimed+wanted <= l.Max
	}
	if wanted == 0 || enough() {
		return true
	}
	m.expireSome(ExpireBoundMax, func(h *Hold) bool { return h.Customer == customer })
	return enough()
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
