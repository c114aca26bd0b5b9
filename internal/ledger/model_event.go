package ledger

import (
	"cmp"
	"reflect"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
)

func (m *Model) setEvent(c SetEvent) Result {
	old := m.events[c.Event.ID]
	switch {
	case old != nil && c.Event.Version < old.Version:
		return refuse(fault.Conflict, "version %d is older than %d", c.Event.Version, old.Version)
	case old != nil && c.Event.Version == old.Version && !(c.Looked && old.State == Stopped):
		return Result{Repeat: true}
	case old != nil && c.Event.PlanHash != old.PlanHash:
		return refuse(fault.Conflict, "another plan")
	case old == nil && c.Layout == nil:
		return refuseField(fault.Invalid, "layout")
	}
	if field := eventProblem(c.Event); field != "" {
		return refuseField(fault.Invalid, field)
	}
	if old != nil {
		stopped := old.State == Stopped && !c.Looked
		limitsAt := m.now
		if slices.Equal(old.Limits, c.Event.Limits) && reflect.DeepEqual(cloneEvent(old.Event).Quotas, cloneEvent(c.Event).Quotas) {
			limitsAt = old.LimitsAt
		}
		row := cloneEvent(c.Event)
		row.LimitsAt, row.Sequence, row.Returns = limitsAt, old.Sequence, old.Returns
		if stopped {
			row.State = Stopped
		}
		old.Event = row
		m.ruled(old)
		m.publishEvent(old)
		return Result{}
	}
	l := c.Layout
	n := len(l.Section)
	if l.PlanHash != c.Event.PlanHash || len(l.Category) != n || len(l.Run) != n || len(l.Quality) != n {
		return refuseField(fault.Invalid, "layout")
	}
	for i := range n {
		if l.Section[i] < 0 || l.Category[i] < 0 {
			return refuseField(fault.Invalid, "layout")
		}
	}
	for _, a := range l.Areas {
		if a.Capacity < 0 || a.Section < 0 || a.Category < 0 {
			return refuseField(fault.Invalid, "layout")
		}
	}
	row := cloneEvent(c.Event)
	row.LimitsAt, row.Sequence = m.now, 0
	m.events[c.Event.ID] = &modelEvent{
		Event: row,
		seats: make([]modelSeat, n),
		areas: make([]modelArea, len(l.Areas)),
		layout: Layout{
			PlanHash: l.PlanHash, Section: slices.Clone(l.Section), Category: slices.Clone(l.Category),
			Run: slices.Clone(l.Run), Quality: slices.Clone(l.Quality), Areas: slices.Clone(l.Areas),
		},
	}
	m.ruled(m.events[c.Event.ID])
	m.publishEvent(m.events[c.Event.ID])
	return Result{}
}

// eventProblem is the first field of an event that cannot be, "" where all can.
func eventProblem(e Event) string {
	const priceMax = 1_000_000_000_000
	for i, t := range e.Tiers {
		same := func(o Tier) bool { return o.Category == t.Category }
		if t.Category < 0 || slices.ContainsFunc(e.Tiers[:i], same) ||
			t.Face < 0 || t.Face > priceMax || t.Fee < 0 || t.Fee > priceMax || t.TaxBP < 0 || t.TaxBP > 10_000 {
			return "tiers"
		}
	}
	for i, l := range e.Limits {
		same := func(o Limit) bool {
			return o.Scope == l.Scope && (l.Scope != PerCategory || o.Category == l.Category)
		}
		if l.Scope < PerEvent || l.Scope > PerDocument || l.Max < 0 || slices.ContainsFunc(e.Limits[:i], same) ||
			l.Scope == PerShow && e.Show == 0 {
			return "limits"
		}
	}
	for i, q := range e.Quotas {
		same := func(o Quota) bool { return o.Category == q.Category && o.Section == q.Section }
		byTime := func(a, b QuotaStep) int { return cmp.Compare(a.At, b.At) }
		if q.Category < -1 || q.Section < -1 || q.Max < 0 || slices.ContainsFunc(e.Quotas[:i], same) ||
			!slices.IsSortedFunc(q.Steps, byTime) || slices.ContainsFunc(q.Steps, func(s QuotaStep) bool { return s.Max < 0 }) {
			return "quotas"
		}
	}
	switch {
	case e.ID <= 0:
		return "id"
	case e.Version <= 0:
		return "version"
	case e.State > Stopped:
		return "state"
	case e.PlanHash == "":
		return "plan_hash"
	case e.PaymentWindow < 0:
		return "payment_window_ms"
	case e.ExtendMax < 0:
		return "extend_max"
	case e.Returns > ReturnsWaitlist:
		return "returns"
	case e.HoldTTL <= 0:
		return "hold_ttl_ms"
	case e.SeatsPerHoldMax < 1 || e.SeatsPerHoldMax > SeatsPerHoldCap:
		return "seats_per_hold_max"
	case e.SaleCloses <= e.SaleOpens:
		return "sale_closes"
	case len(e.Currency) != 3:
		return "currency"
	case e.Refunds.Until < 0 || e.Refunds.FeeBP < 0 || e.Refunds.FeeBP > 10_000 || e.Refunds.FeePlace < 0 || e.Refunds.FeePlace > priceMax:
		return "refunds"
	case e.Exchanges.Until < 0 || e.Exchanges.Fee < 0 || e.Exchanges.Fee > priceMax:
		return "exchanges"
	case e.Transfers.Until < 0:
		return "transfers"
	}
	return cmp.Or(e.Room.Problem(), e.Holding.Problem())
}

func (m *Model) stop(c Stop) Result {
	e := m.events[c.Event]
	if e == nil {
		return refuse(fault.EventUnknown, "")
	}
	if e.State == Stopped {
		return Result{Repeat: true}
	}
	e.State = Stopped
	m.publishEvent(e)
	return Result{}
}

func (m *Model) block(c Block) Result {
	e, seats, problem := m.seatsNamed(c.Event, c.Seats)
	if problem.Fault != nil {
		return problem
	}
	for _, seat := range seats {
		m.expireHolderOf(e, seat)
	}
	var taken []int32
	for _, seat := range seats {
		if state := e.seats[seat].state; state != Available && state != Blocked {
			taken = append(taken, seat)
		}
	}
	if len(taken) > 0 && !c.WhenFree {
		return refuseSeats(fault.SeatsTaken, taken)
	}
	count := 0
	for _, seat := range seats {
		s := &e.seats[seat]
		switch {
		case s.state == Available:
			s.state = Blocked
			count++
		case s.state != Blocked && !s.whenFree:
			s.whenFree = true
			count++
		}
	}
	return Result{Count: count}
}

func (m *Model) unblock(c Unblock) Result {
	e, seats, problem := m.seatsNamed(c.Event, c.Seats)
	if problem.Fault != nil {
		return problem
	}
	count := 0
	for _, seat := range seats {
		s := &e.seats[seat]
		switch {
		case s.state == Blocked && e.Returns == ReturnsWaitlist:
			s.state, s.returnedAt = Returned, m.now
			count++
		case s.state == Blocked:
			s.state = Available
			count++
		case s.whenFree:
			s.whenFree = false
			count++
		}
	}
	return Result{Count: count}
}

// seatsNamed looks up the event and seats of a command of the organizer; problem has a Fault where it cannot.
func (m *Model) seatsNamed(event id.ID, named []int32) (e *modelEvent, seats []int32, problem Result) {
	e = m.events[event]
	if e == nil {
		return nil, nil, refuse(fault.EventUnknown, "")
	}
	seats = slices.Sorted(slices.Values(named))
	if len(seats) == 0 || len(seats) > BatchSeatsMax || twice(seats) {
		return nil, nil, refuseField(fault.Invalid, "seat_ids")
	}
	if unknown := e.unknownOf(seats); len(unknown) > 0 {
		return nil, nil, refuseSeats(fault.SeatUnknown, unknown)
	}
	return e, seats, Result{}
}

// unknownOf are those of the sorted seats that the plan has not.
func (e *modelEvent) unknownOf(seats []int32) []int32 {
	var unknown []int32
	for _, seat := range slices.Compact(slices.Clone(seats)) {
		if seat < 0 || int(seat) >= len(e.seats) {
			unknown = append(unknown, seat)
		}
	}
	return unknown
}

// twice says whether one of the sorted seats is named more than once.
func twice(seats []int32) bool {
	return len(slices.Compact(slices.Clone(seats))) < len(seats)
}
