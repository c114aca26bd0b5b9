package postgres

import (
	"onsale/internal/cache"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// Bounds of what is kept in memory.
const (
	layoutsMax = 64     // about 2.5 MB each at 200,000 seats
	eventsMax  = 4_096  //
	boardsMax  = 64     // 8 bytes a seat
	rowsMax    = 65_536 // of each kind, twice; about 300 bytes each
)

// facts is what a node remembers, so that it mostly knows what to lock without asking. Of a hold, an order, a refund and a ticket what never
// changes is true for good (seats, customer, price), and so is an event's row of one version and state. The rest is how
// it was last seen: a hint of what to lock, never a reason to decide anything. It is used inside batches only.
type facts struct {
	events   cache.Generations[id.ID, *ledger.Event]
	layouts  cache.Generations[string, *ledger.Layout]
	holds    cache.Generations[id.ID, *decide.Hold]
	orders   cache.Generations[id.ID, *decide.Order]
	refunds  cache.Generations[id.ID, *decide.Refund] // its order, payment and tickets
	tickets  cache.Generations[id.ID, *decide.Ticket] // its order, customer and place
	keys     cache.Generations[decide.IdemKey, id.ID]
	sessions cache.Generations[id.ID, *decide.Session] // its event
	claims   cache.Generations[id.ID, []id.ID]         // by event: who was last seen to hold each seat, 0 nobody
}

func newFacts() facts {
	return facts{
		events:   cache.Generations[id.ID, *ledger.Event]{Most: eventsMax},
		layouts:  cache.Generations[string, *ledger.Layout]{Most: layoutsMax},
		holds:    cache.Generations[id.ID, *decide.Hold]{Most: rowsMax},
		orders:   cache.Generations[id.ID, *decide.Order]{Most: rowsMax},
		refunds:  cache.Generations[id.ID, *decide.Refund]{Most: rowsMax},
		tickets:  cache.Generations[id.ID, *decide.Ticket]{Most: rowsMax},
		keys:     cache.Generations[decide.IdemKey, id.ID]{Most: rowsMax},
		sessions: cache.Generations[id.ID, *decide.Session]{Most: rowsMax},
		claims:   cache.Generations[id.ID, []id.ID]{Most: boardsMax},
	}
}

// event gives an event's row and layout as last seen, nil where either is not known.
func (f *facts) event(event id.ID) (*ledger.Event, *ledger.Layout) {
	e, ok := f.events.Get(event)
	if !ok {
		return nil, nil
	}
	l, ok := f.layouts.Get(e.PlanHash)
	if !ok {
		return nil, nil
	}
	return e, l
}

// claim is who was last seen to hold a seat.
func (f *facts) claim(k decide.SeatKey) id.ID {
	if seats, ok := f.claims.Get(k.Event); ok && k.Index >= 0 && int(k.Index) < len(seats) {
		return seats[k.Index]
	}
	return 0
}

// sawSeat remembers who holds a seat.
func (f *facts) sawSeat(s *decide.Seat) {
	seats, ok := f.claims.Get(s.Event)
	if !ok {
		_, l := f.event(s.Event)
		if l == nil {
			return
		}
		seats = make([]id.ID, len(l.Category))
		f.claims.Put(s.Event, seats)
	}
	if int(s.Index) >= len(seats) {
		return
	}
	seats[s.Index] = 0
	if s.State == ledger.Held {
		seats[s.Index] = s.Claim
	}
}

// committed takes up what a batch has written.
func (f *facts) committed(o *decide.Output) {
	for _, e := range o.Events {
		f.events.Put(e.Event.ID, e.Event)
		if e.Layout != nil {
			f.layouts.Put(e.Layout.PlanHash, e.Layout)
		}
	}
	for _, h := range o.Holds {
		h.Row, h.Remade = decide.Row{}, false
		f.holds.Put(h.ID, h)
	}
	for _, r := range o.Orders {
		r.Row, r.Remade = decide.Row{}, false
		f.orders.Put(r.ID, r)
	}
	for _, r := range o.Refunds {
		r.Row = decide.Row{}
		f.refunds.Put(r.ID, r)
	}
	for _, s := range o.Sessions {
		s.Row = decide.Row{}
		f.sessions.Put(s.ID, s)
	}
	for _, k := range o.Keys {
		f.keys.Put(k.IdemKey, k.Subject)
	}
	for _, s := range o.Seats {
		f.sawSeat(s)
	}
}
