package sqlite

import (
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// Bounds of what is kept in memory.
const (
	layoutsMax = 64 // about 2.5 MB each at 200,000 seats
	eventsMax  = 4_096
	rowsMax    = 131_072 // of each kind, twice
	roomsMax   = 1_024
)

// cache keeps rows as they were last committed, so that a hold that was just made is not read and parsed again to be
// paid. That is sound because nothing else writes the file (F1), batches run one after the other, and whatever was not
// committed makes the whole cache be forgotten. Were a row in it wrong all the same, the fence in the write of each seat
// would find it. It is used inside batches only.
type cache struct {
	events  generations[id.ID, *ledger.Event]
	layouts generations[string, *ledger.Layout]
	seats   generations[decide.SeatKey, *decide.Seat]
	holds   generations[id.ID, *decide.Hold]
	orders  generations[id.ID, *decide.Order]
	// payments are all there are of an order, for orders that were made since the cache was empty: a payment that is not
	// among them is not in the file either.
	payments generations[id.ID, []*decide.Payment]
	rooms    generations[id.ID, *decide.Room]
	sessions generations[id.ID, *decide.Session]
}

func newCache() *cache {
	c := &cache{}
	c.forget()
	return c
}

func (c *cache) forget() {
	c.events = generations[id.ID, *ledger.Event]{most: eventsMax}
	c.layouts = generations[string, *ledger.Layout]{most: layoutsMax}
	c.seats = generations[decide.SeatKey, *decide.Seat]{most: rowsMax}
	c.holds = generations[id.ID, *decide.Hold]{most: rowsMax}
	c.orders = generations[id.ID, *decide.Order]{most: rowsMax}
	c.payments = generations[id.ID, []*decide.Payment]{most: rowsMax}
	c.rooms = generations[id.ID, *decide.Room]{most: roomsMax}
	c.sessions = generations[id.ID, *decide.Session]{most: rowsMax}
}

// committed keeps the rows that a batch has written.
func (c *cache) committed(o *decide.Output) {
	for _, e := range o.Events {
		c.events.put(e.Event.ID, e.Event)
		if e.Layout != nil {
			c.layouts.put(e.Layout.PlanHash, e.Layout)
		}
	}
	for _, s := range o.Seats {
		s.Row = decide.Row{}
		s.WasState, s.WasClaim, s.WasEpoch = s.State, s.Claim, s.Epoch
		c.seats.put(s.SeatKey, s)
	}
	for _, h := range o.Holds {
		h.Row, h.Remade = decide.Row{}, false
		h.WasState, h.WasExpires = h.State, h.Expires
		c.holds.put(h.ID, h)
	}
	for _, r := range o.Orders {
		if r.New {
			c.payments.put(r.ID, nil)
		}
		r.Row, r.Remade = decide.Row{}, false
		c.orders.put(r.ID, r)
	}
	for _, p := range o.Pays {
		if all, ok := c.payments.get(p.Order); ok && p.New {
			c.payments.put(p.Order, append(all, p))
		}
		p.Row = decide.Row{}
	}
	for _, r := range o.Rooms {
		r.Row = decide.Row{}
		r.Version++
		c.rooms.put(r.Event, r)
	}
	for _, s := range o.Sessions {
		s.Row = decide.Row{}
		c.sessions.put(s.ID, s)
	}
	if o.Prune { // ended holds may be gone
		c.holds = generations[id.ID, *decide.Hold]{most: rowsMax}
	}
}

// generations is a map that keeps at least the last most things put or got, and at most twice as many.
type generations[K comparable, V any] struct {
	most       int
	young, old map[K]V
}

func (g *generations[K, V]) get(k K) (V, bool) {
	v, ok := g.young[k]
	if !ok {
		if v, ok = g.old[k]; ok {
			g.put(k, v)
		}
	}
	return v, ok
}

func (g *generations[K, V]) put(k K, v V) {
	if g.young == nil || len(g.young) >= g.most {
		g.old, g.young = g.young, make(map[K]V)
	}
	g.young[k] = v
}
