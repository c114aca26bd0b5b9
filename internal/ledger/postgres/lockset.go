package postgres

import (
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

type set[K comparable] map[K]struct{}

func (s set[K]) add(k K) { s[k] = struct{}{} }

func (s set[K]) has(k K) bool {
	_, ok := s[k]
	return ok
}

// expiredOf is a question for holds whose time is up, without how many.
type expiredOf struct {
	Customer id.ID
	Event    id.ID
	Area     int32
}

// wants names rows.
type wants struct {
	events     set[id.ID]
	keys       set[decide.IdemKey]
	limits     set[decide.LimitKey]
	quotas     set[decide.QuotaKey]
	orders     set[id.ID]
	refunds    set[id.ID]
	allRefunds set[id.ID] // orders of which all refunds are wanted
	tickets    set[id.ID] // of which the order is wanted
	uses       set[id.ID] // by ticket
	holds      set[id.ID]
	areas      set[decide.AreaKey]
	seats      set[decide.SeatKey]
	wishes     set[id.ID]
	wishOf     set[decide.WishKey] // of which the newest is wanted
	expired    map[expiredOf]int   // and the most that is asked for

	rooms    set[id.ID]
	sessions set[id.ID]
	numbers  set[ledger.SessionNumber]
	codes    set[codeOf]
	unpaid   set[decide.UnpaidKey]
	outlived map[id.ID]int // events whose sessions are wanted that have run out, and the most that are
}

func newWants() wants {
	return wants{
		events: set[id.ID]{}, keys: set[decide.IdemKey]{}, limits: set[decide.LimitKey]{}, quotas: set[decide.QuotaKey]{},
		orders: set[id.ID]{}, refunds: set[id.ID]{}, allRefunds: set[id.ID]{}, tickets: set[id.ID]{}, uses: set[id.ID]{}, holds: set[id.ID]{}, areas: set[decide.AreaKey]{}, seats: set[decide.SeatKey]{},
		wishes: set[id.ID]{}, wishOf: set[decide.WishKey]{},
		expired: map[expiredOf]int{},
		rooms:   set[id.ID]{}, sessions: set[id.ID]{}, numbers: set[ledger.SessionNumber]{}, codes: set[codeOf]{},
		unpaid: set[decide.UnpaidKey]{}, outlived: map[id.ID]int{},
	}
}

// A lockset is the guess of what a batch will read or change. Whatever it leaves out costs another round, never a wrong
// answer.
type lockset struct {
	wants
	facts     *facts
	now       ledger.Time // about
	exclusive bool        // an event's own row is going to change

	known   map[id.ID]*ledger.Wish // wishes as a plain read saw them
	newest  map[decide.WishKey]id.ID
	ended   set[id.ID]    // holds whose end is in the set with all that it frees
	scratch []ledger.Line // of a hold that is only asked for
}

func newLockset(f *facts, now ledger.Time) *lockset {
	return &lockset{wants: newWants(), facts: f, now: now, ended: set[id.ID]{}}
}

// command adds what a command will look at.
func (s *lockset) command(c ledger.Command) {
	switch c := c.(type) {
	case ledger.SetEvent:
		s.exclusive = true
		s.events.add(c.Event.ID)
		if c.Event.Room.Mode != ledger.RoomOff {
			s.room(c.Event.ID)
		}
	case ledger.Stop:
		s.exclusive = true
		s.events.add(c.Event)
	case ledger.HoldSeats:
		s.holdSeats(c)
	case ledger.HoldPlaces:
		s.holdPlaces(c)
	case ledger.Extend:
		s.sessionOf(s.hold(c.Hold))
	case ledger.Release:
		s.hold(c.Hold)
		s.end(c.Hold)
	case ledger.BeginPayment:
		s.beginPayment(c)
	case ledger.Confirm:
		s.confirm(c)
	case ledger.FailPayment:
		s.order(c.Order)
		s.documentsOf(c.Order)
	case ledger.RecordPayment:
		s.recordPayment(c)
	case ledger.BeginRefund:
		s.refund(s.key(decide.IdemKey{Customer: c.Customer, Operation: ledger.OpRefund, Value: c.Key.Value}))
		s.order(c.Order)
		s.allRefunds.add(c.Order)
	case ledger.RefuseRefund:
		s.refund(c.Refund)
	case ledger.RetryRefund:
		s.refund(c.Refund)
	case ledger.ReleaseSeats:
		s.releaseSeats(c)
	case ledger.Transfer:
		s.transfer(c)
	case ledger.CheckIn:
		s.ticket(c.Ticket)
		s.uses.add(c.Ticket)
	case ledger.UndoCheckIn:
		s.ticket(c.Ticket)
		s.uses.add(c.Ticket)
	case ledger.Sweep:
		s.sweep(c)
	case ledger.Block:
		s.organizer(c.Event, c.Seats)
	case ledger.Unblock:
		s.organizer(c.Event, c.Seats)
	case ledger.AddWish:
		s.addWish(c)
	case ledger.WithdrawWish:
		s.wish(c.Wish)
	case ledger.Offer:
		s.offer(c)
	case ledger.SettleWish:
		s.wish(c.Wish)
	case ledger.ReleaseReturned:
		s.releaseReturned(c)
	case ledger.SetReturns:
		s.exclusive = true
		s.events.add(c.Event)
		if e, ok := s.facts.events.Get(c.Event); ok && e.Room.Mode != ledger.RoomOff && c.Returns == ledger.ReturnsWaitlist {
			s.room(c.Event)
		}
	default:
		s.roomCommand(c)
	}
}

// more adds what an earlier round found missing.
func (s *lockset) more(m *wants) {
	for k := range m.events {
		s.events.add(k)
	}
	for k := range m.keys {
		s.keys.add(k)
	}
	for k := range m.limits {
		s.limits.add(k)
	}
	for k := range m.quotas {
		s.quotas.add(k)
	}
	for k := range m.wishes {
		s.wish(k)
	}
	for k := range m.wishOf {
		s.newestWish(k)
	}
	for k := range m.refunds {
		s.refund(k)
	}
	for k := range m.allRefunds {
		s.allRefunds.add(k)
	}
	for k := range m.tickets {
		s.ticket(k)
	}
	for k := range m.uses {
		s.uses.add(k)
	}
	for k := range m.orders {
		s.order(k)
	}
	for k := range m.holds {
		s.hold(k)
	}
	for k := range m.areas {
		s.areas.add(k)
		s.events.add(k.Event)
	}
	for k := range m.seats {
		s.seat(k)
	}
	s.moreRooms(m)
}

// key adds an idempotency key, and what it was used for.
func (s *lockset) key(k decide.IdemKey) (subject id.ID) {
	if k.Value == "" {
		return 0
	}
	s.keys.add(k)
	subject, _ = s.facts.keys.Get(k)
	return subject
}

func (s *lockset) holdSeats(c ledger.HoldSeats) {
	s.events.add(c.Event)
	if subject := s.key(decide.IdemKey{Customer: c.Customer, Operation: ledger.OpHold, Value: c.Key.Value}); subject != 0 {
		s.hold(subject)
		return
	}
	s.exchange(c.Exchange)
	e, layout := s.facts.event(c.Event)
	if e == nil {
		return
	}
	s.newHold(e, c.Session, c.Customer)
	if len(c.Seats) > e.SeatsPerHoldMax {
		return
	}
	s.scratch = s.scratch[:0]
	for _, index := range c.Seats {
		if index < 0 || int(index) >= len(layout.Category) {
			return // it will be refused
		}
		s.scratch = append(s.scratch, ledger.Line{Seat: index, Category: layout.Category[index]})
	}
	for _, index := range c.Seats {
		s.seat(decide.SeatKey{Event: c.Event, Index: index})
	}
	s.counters(e, layout, &ledger.Hold{Event: c.Event, Customer: c.Customer, Area: -1, Lines: s.scratch})
}

func (s *lockset) holdPlaces(c ledger.HoldPlaces) {
	s.events.add(c.Event)
	if subject := s.key(decide.IdemKey{Customer: c.Customer, Operation: ledger.OpHold, Value: c.Key.Value}); subject != 0 {
		s.hold(subject)
		return
	}
	s.exchange(c.Exchange)
	e, layout := s.facts.event(c.Event)
	if e == nil {
		return
	}
	s.newHold(e, c.Session, c.Customer)
	if c.Area < 0 || int(c.Area) >= len(layout.Areas) || c.Quantity < 1 || c.Quantity > e.SeatsPerHoldMax {
		return
	}
	s.areas.add(decide.AreaKey{Event: c.Event, Area: c.Area})
	s.scratch = s.scratch[:0]
	for range c.Quantity {
		s.scratch = append(s.scratch, ledger.Line{Seat: -1, Category: layout.Areas[c.Area].Category})
	}
	s.counters(e, layout, &ledger.Hold{Event: c.Event, Customer: c.Customer, Area: c.Area, Lines: s.scratch})
}

func (s *lockset) counters(e *ledger.Event, layout *ledger.Layout, h *ledger.Hold) {
	decide.Counters(e, layout, h, s.limits.add, s.quotas.add)
}

func (s *lockset) documents(event id.ID, documents []string) {
	if e, ok := s.facts.events.Get(event); ok {
		decide.DocumentCounters(e, documents, s.limits.add)
	}
}

func (s *lockset) documentsOf(order id.ID) {
	if o, ok := s.facts.orders.Get(order); ok {
		s.documents(o.Event, o.Documents)
	}
}

func (s *lockset) beginPayment(c ledger.BeginPayment) {
	if subject := s.key(decide.IdemKey{Customer: c.Customer, Operation: ledger.OpBooking, Value: c.Key.Value}); subject != 0 {
		s.order(subject)
	}
	if h := s.hold(c.Hold); h != nil {
		s.sessionOf(h)
		s.order(h.Exchange)
		s.documents(h.Event, c.Documents)
	}
}

func (s *lockset) confirm(c ledger.Confirm) {
	s.order(c.Order)
	o, ok := s.facts.orders.Get(c.Order)
	if !ok {
		return
	}
	h, ok := s.facts.holds.Get(o.Hold)
	if !ok || o.State != ledger.OrderPending {
		return
	}
	s.places(&h.Hold)
	s.sold(h)
	if o.Exchange != 0 {
		s.swap(o, h)
	}
	if h.State == ledger.HoldLive && !s.due(h) {
		return
	}
	s.documents(o.Event, o.Documents)
	if e, layout := s.facts.event(h.Event); e != nil { // a rescue counts again
		s.counters(e, layout, &h.Hold)
	}
	for _, index := range h.Seats() {
		s.seat(decide.SeatKey{Event: h.Event, Index: index})
	}
}

func (s *lockset) sweep(c ledger.Sweep) {
	most := c.Max
	if most <= 0 {
		most = ledger.ExpireBoundMax
	}
	q := expiredOf{Event: c.Event, Area: -1}
	s.expired[q] = max(s.expired[q], most+1)
	if c.Event == 0 {
		return
	}
	s.events.add(c.Event)
	if e, layout := s.facts.event(c.Event); e != nil {
		for area := range layout.Areas {
			s.areas.add(decide.AreaKey{Event: c.Event, Area: int32(area)})
		}
	}
}

func (s *lockset) organizer(event id.ID, seats []int32) {
	s.events.add(event)
	_, layout := s.facts.event(event)
	if layout == nil {
		return
	}
	for _, index := range seats {
		if index >= 0 && int(index) < len(layout.Category) {
			s.seat(decide.SeatKey{Event: event, Index: index})
		}
	}
}

// seat adds a seat and the hold that may be on it.
func (s *lockset) seat(k decide.SeatKey) {
	s.seats.add(k)
	s.events.add(k.Event)
	if claim := s.facts.claim(k); claim != 0 {
		s.hold(claim)
	}
}

// hold adds a hold with its event (RULES A3: whoever writes a row of an event has the event's row locked), and its end
// where that is due. It answers nil where nothing is known of it.
func (s *lockset) hold(hold id.ID) *decide.Hold {
	if hold == 0 {
		return nil
	}
	s.holds.add(hold)
	h, ok := s.facts.holds.Get(hold)
	if !ok {
		return nil
	}
	s.events.add(h.Event)
	if s.due(h) {
		s.end(hold)
	}
	return h
}

// due says whether a hold's time may be up when the batch is decided.
func (s *lockset) due(h *decide.Hold) bool {
	return h.State == ledger.HoldLive && h.Expires <= s.now+margin
}

// end adds what the end of a hold frees.
func (s *lockset) end(hold id.ID) {
	h, ok := s.facts.holds.Get(hold)
	if !ok || s.ended.has(hold) {
		return
	}
	s.ended.add(hold)
	s.places(&h.Hold)
	if e, layout := s.facts.event(h.Event); e != nil {
		s.counters(e, layout, &h.Hold)
	}
	if h.Order != 0 {
		s.orders.add(h.Order)
		s.documentsOf(h.Order)
	}
}

// places adds what a hold has.
func (s *lockset) places(h *ledger.Hold) {
	if h.Area >= 0 {
		s.areas.add(decide.AreaKey{Event: h.Event, Area: h.Area})
		return
	}
	for i := range h.Lines {
		s.seats.add(decide.SeatKey{Event: h.Event, Index: h.Lines[i].Seat})
	}
}

// order adds an order, its hold and its event.
func (s *lockset) order(order id.ID) (hold id.ID) {
	if order == 0 {
		return 0
	}
	s.orders.add(order)
	o, ok := s.facts.orders.Get(order)
	if !ok {
		return 0
	}
	s.events.add(o.Event)
	s.hold(o.Hold)
	return o.Hold
}
