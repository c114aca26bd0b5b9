package ledger

import (
	"cmp"
	"context"
	"math"
	"slices"

	"onsale/internal/id"
)

// Looking at what became of money and tickets.

// page sorts what was found and takes the first so many.
func page[T any](found []T, maxCount int, order func(a, b T) int) []T {
	slices.SortFunc(found, order)
	return found[:min(len(found), maxCount)]
}

func (m *Model) refundsWhere(maxCount int, which func(*Refund) bool, order func(a, b Refund) int) []Refund {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Refund
	for _, r := range m.refunds {
		if which(r) {
			found = append(found, *m.refundNow(r.ID))
		}
	}
	return page(found, maxCount, order)
}

func oldestFirst(a, b Refund) int { return cmp.Compare(a.ID, b.ID) }
func newestFirst(a, b Refund) int { return cmp.Compare(b.ID, a.ID) }

// Refund is a refund as it is now.
func (m *Model) Refund(_ context.Context, refund id.ID) (Refund, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.refundNow(refund); r != nil {
		return *r, nil
	}
	return Refund{}, ErrNotFound
}

// RefundsOf are those of an order's tickets and money.
func (m *Model) RefundsOf(_ context.Context, order id.ID) ([]Refund, error) {
	return m.refundsWhere(math.MaxInt, func(r *Refund) bool { return r.Order == order }, oldestFirst), nil
}

// UnreleasedRefunds are those whose tickets' places are still to be given back.
func (m *Model) UnreleasedRefunds(_ context.Context, maxCount int) ([]Refund, error) {
	return m.refundsWhere(maxCount, func(r *Refund) bool { return r.State == RefundDone && len(r.Tickets) > 0 }, oldestFirst), nil
}

// RefusedRefunds are those that the provider refused.
func (m *Model) RefusedRefunds(_ context.Context, before id.ID, maxCount int) ([]Refund, error) {
	return m.refundsWhere(maxCount, func(r *Refund) bool {
		return r.State == RefundRequested && r.Refused != "" && (before == 0 || r.ID < before)
	}, newestFirst), nil
}

// OrdersOfEvent are an event's orders.
func (m *Model) OrdersOfEvent(_ context.Context, event id.ID, find OrderFilter, maxCount int) ([]Order, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ordersWhere(maxCount, func(o *Order) bool {
		return o.Event == event && o.ID > find.After && (find.Customer == 0 || o.Customer == find.Customer) &&
			(find.State == 0 || o.State == find.State)
	}, func(a, b *Order) int { return cmp.Compare(a.ID, b.ID) }), nil
}

// TicketsOf are the tickets that a customer has now.
func (m *Model) TicketsOf(_ context.Context, customer, before id.ID, maxCount int) ([]Ticket, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Ticket
	for _, t := range m.tickets {
		if t.Customer == customer && t.State != TicketVoid && (before == 0 || t.ID < before) {
			found = append(found, *t)
		}
	}
	return page(found, maxCount, func(a, b Ticket) int { return cmp.Compare(b.ID, a.ID) }), nil
}

func byTime(a, b CheckedIn) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Ticket, b.Ticket), cmp.Compare(a.Device, b.Device))
}

// CheckIns are the uses of an event's tickets.
func (m *Model) CheckIns(_ context.Context, event id.ID, after CheckInCursor, conflicts bool, maxCount int) ([]CheckedIn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := CheckedIn{At: after.At, Ticket: after.Ticket, Device: after.Device}
	var found []CheckedIn
	for _, row := range m.checkIns {
		if row.Event == event && byTime(*row, last) > 0 && (!conflicts || row.Conflict != "") {
			found = append(found, *row)
		}
	}
	return page(found, maxCount, byTime), nil
}

// CheckInsOf are the uses of one ticket.
func (m *Model) CheckInsOf(_ context.Context, ticket id.ID) ([]CheckedIn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []CheckedIn
	for _, row := range m.checkIns {
		if row.Ticket == ticket {
			found = append(found, *row)
		}
	}
	return page(found, math.MaxInt, byTime), nil
}

// Figures count an event. Tickets that were passed on are not counted: those that they became are.
func (m *Model) Figures(_ context.Context, event id.ID) (Figures, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.events[event] == nil {
		return Figures{}, ErrNotFound
	}
	var f Figures
	for _, o := range m.orders {
		if o.Event == event {
			f.Orders[o.State]++
		}
	}
	for _, p := range m.payments {
		if m.orders[p.Order].Event == event {
			f.Paid += p.Captured
			f.Refunded += p.Refunded
		}
	}
	for _, r := range m.refunds {
		if m.orders[r.Order].Event != event {
			continue
		}
		f.Kept += r.FeeKept
		switch {
		case r.State == RefundRequested && r.Refused == "":
			f.RefundsRequested++
		case r.State == RefundRequested:
			f.RefundsRefused++
		}
	}
	f.Conflicts = countIf(m.checkIns, func(row *CheckedIn) bool { return row.Event == event && row.Conflict != "" })
	f.Tickets = m.ticketFigures(event)
	return f, nil
}

func (m *Model) ticketFigures(event id.ID) []TicketFigures {
	byCategory := map[int16]*TicketFigures{}
	for _, t := range m.tickets {
		if t.Event != event || t.State == TicketVoid && t.Refund == 0 {
			continue
		}
		f := byCategory[t.Category]
		if f == nil {
			f = &TicketFigures{Category: t.Category}
			byCategory[t.Category] = f
		}
		switch t.State {
		case TicketValid:
			f.Valid++
		case TicketUsed:
			f.Used++
		case TicketVoid:
			f.Void++
		}
		if t.State != TicketVoid {
			f.Total += t.Total
		}
	}
	var all []TicketFigures
	for _, f := range byCategory {
		all = append(all, *f)
	}
	return page(all, math.MaxInt, func(a, b TicketFigures) int { return cmp.Compare(a.Category, b.Category) })
}

// ClaimHistory is what became of claims.
func (m *Model) ClaimHistory(_ context.Context, holds []id.ID) ([]ClaimStep, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var steps []ClaimStep
	for _, s := range m.history {
		if slices.Contains(holds, s.Hold) {
			s.Seats = slices.Clone(s.Seats)
			steps = append(steps, s)
		}
	}
	return steps, nil
}

// NoticesOf are an order's notices that are still kept.
func (m *Model) NoticesOf(_ context.Context, order id.ID) ([]Notice, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var of []Notice
	for _, n := range m.notices {
		if n.Order == order {
			copied := n.Notice
			copied.Body = slices.Clone(n.Body)
			of = append(of, copied)
		}
	}
	return of, nil
}
