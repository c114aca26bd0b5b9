package ledgertest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Drawing what a shop does with orders that are paid. It needs long stories (bought, exchanged, exchanged again, passed on,
// used, given back, released), so each command mostly names what it may be done with.

func (h *history) ids(n int) []id.ID {
	list := make([]id.ID, n)
	for i := range list {
		list[i] = h.id()
	}
	return list
}

// paidOrders are the orders that have a valid ticket.
func (h *history) paidOrders() []id.ID {
	return h.ordersWhere(func(o ledger.Order) bool {
		for _, t := range o.Tickets {
			if t.State != ledger.TicketVoid {
				return true
			}
		}
		return false
	})
}

// someTickets are tickets of an order, mostly of one state; none means all.
func (h *history) someTickets(o ledger.Order, state ledger.TicketState) (named []id.ID) {
	if h.oneIn(4, "all of them") {
		return nil
	}
	for _, t := range o.Tickets {
		if t.Customer != o.Customer && !h.oneIn(6, "a passed on ticket") {
			continue
		}
		if (t.State == state || h.oneIn(12, "a wrong ticket")) && h.oneIn(2, "this ticket") {
			named = append(named, t.ID)
		}
	}
	switch {
	case len(named) > 1 && h.oneIn(20, "one twice"):
		named = append(named, named[0])
	case h.oneIn(25, "another's ticket"):
		named = append(named, h.drawFrom(h.tickets, nil, "ticket"))
	}
	return named
}

func (h *history) drawBeginRefund() ledger.Command {
	if len(h.paidOrders()) == 0 && !h.oneIn(6, "nothing is sold") {
		return h.drawConfirm()
	}
	order := h.drawFrom(h.orders, h.paidOrders(), "order")
	c := ledger.BeginRefund{
		Order: order, IDs: h.ids(ledger.RefundPartsMax), Customer: h.drawCustomer(), Used: h.oneIn(3, "used too"),
		By: oneOf(h, "by", ledger.ByCustomer, ledger.ByCustomer, ledger.ByOrganizer, ledger.ByOrganizer, ledger.ByEvent),
	}
	if o, err := h.model.Order(context.Background(), order); err == nil {
		c.Tickets = h.someTickets(o, oneOf(h, "state", ledger.TicketValid, ledger.TicketValid, ledger.TicketUsed))
		if e, err := h.model.Event(context.Background(), o.Event); err == nil && e.State == ledger.Cancelled {
			c.By = ledger.ByEvent
		}
		if !h.oneIn(15, "another customer") {
			c.Customer = o.Customer
		}
	}
	if c.By == ledger.ByOrganizer {
		c.Customer, c.Fee, c.Reason = organizer, oneOf[int64](h, "fee", 0, 0, 1, 700, 2999, 9000), oneOf(h, "reason", "goodwill", "goodwill", "")
	}
	if h.oneIn(30, "too few ids") {
		c.IDs = c.IDs[2:]
	}
	c.Key = h.drawKey("order", fmt.Sprint(order), "tickets", fmt.Sprint(len(c.Tickets)))
	return c
}

func (h *history) refundsWhere(is func(ledger.Refund) bool) (fitting []id.ID) {
	for _, refund := range h.refunds {
		if r, err := h.model.Refund(context.Background(), refund); err == nil && is(r) {
			fitting = append(fitting, refund)
		}
	}
	return fitting
}

func (h *history) drawRefuseRefund() ledger.Command {
	refused := h.refundsWhere(func(r ledger.Refund) bool { return r.State == ledger.RefundRequested && r.Refused != "" })
	if len(refused) > 0 && h.oneIn(2, "retry") {
		c := ledger.RetryRefund{Refund: h.drawFrom(h.refunds, refused, "refund"), Try: 1}
		if r, err := h.model.Refund(context.Background(), c.Refund); err == nil {
			c.Try = r.Try + oneOf(h, "try", 1, 1, 1, 0, 2)
		}
		return c
	}
	requested := h.refundsWhere(func(r ledger.Refund) bool { return r.State == ledger.RefundRequested })
	if len(requested) == 0 && !h.oneIn(4, "nothing is due") {
		return h.drawBeginRefund()
	}
	c := ledger.RefuseRefund{Refund: h.drawFrom(h.refunds, requested, "refund"), Reason: oneOf(h, "reason", "closed", "")}
	if r, err := h.model.Refund(context.Background(), c.Refund); err == nil {
		c.Try = r.Try + oneOf(h, "try", 0, 0, 0, 1, -1)
	}
	return c
}

func (h *history) drawReleaseSeats() ledger.Command {
	done := h.refundsWhere(func(r ledger.Refund) bool { return r.State == ledger.RefundDone && len(r.Tickets) > 0 })
	if len(done) == 0 && !h.oneIn(4, "nothing to release") {
		return h.drawRecordPayment()
	}
	return ledger.ReleaseSeats{Refund: h.drawFrom(h.refunds, done, "refund")}
}

// drawExchange holds something in the place of tickets.
func (h *history) drawExchange() ledger.Command {
	ctx := context.Background()
	now, _ := h.model.Now(ctx)
	if len(h.paidOrders()) == 0 && !h.oneIn(6, "nothing is sold") {
		return h.drawConfirm()
	}
	fitting := h.paidOrders()
	if again := h.ordersWhere(func(o ledger.Order) bool { return o.State == ledger.OrderPaid && o.Exchange != 0 }); len(again) > 0 && h.oneIn(3, "once more") {
		fitting = again
	}
	order := h.drawFrom(h.orders, fitting, "order")
	x := ledger.Exchange{Order: order}
	customer := h.drawCustomer()
	if o, err := h.model.Order(ctx, order); err == nil {
		x.Tickets = h.someTickets(o, ledger.TicketValid)
		if !h.oneIn(15, "another customer") {
			customer = o.Customer
		}
		for _, t := range o.Tickets { // mostly not what is being exchanged already
			if hold, err := h.model.Hold(ctx, t.Exchange); err == nil && hold.Live(now) && !h.oneIn(5, "being exchanged") {
				return h.drawBeginPayment()
			}
		}
	}
	if h.oneIn(3, "for places") {
		c := h.drawHoldPlaces().(ledger.HoldPlaces)
		c.Customer, c.Exchange = customer, x
		return c
	}
	c := h.drawHoldSeats().(ledger.HoldSeats)
	c.Customer, c.Exchange = customer, x
	return c
}

func (h *history) ticketsWhere(is func(ledger.Ticket) bool) (fitting []id.ID) {
	for _, ticket := range h.tickets {
		if t, err := h.model.Ticket(context.Background(), ticket); err == nil && is(t) {
			fitting = append(fitting, ticket)
		}
	}
	return fitting
}

// drawTicket picks a ticket, mostly one in a state.
func (h *history) drawTicket(state ledger.TicketState) ledger.Ticket {
	ticket := h.drawFrom(h.tickets, h.ticketsWhere(func(t ledger.Ticket) bool { return t.State == state }), "ticket")
	t, err := h.model.Ticket(context.Background(), ticket)
	if err != nil {
		return ledger.Ticket{ID: ticket, Event: mainEvent, Customer: alice}
	}
	return t
}

func (h *history) drawTransfer() ledger.Command {
	if len(h.paidOrders()) == 0 && !h.oneIn(6, "nothing is sold") {
		return h.drawConfirm()
	}
	t := h.drawTicket(ledger.TicketValid)
	c := ledger.Transfer{
		ID: h.id(), Ticket: t.ID, Customer: t.Customer, To: h.drawCustomer(), Document: oneOf(h, "document", "", "d1", "d2", "d4"),
		Key: h.drawKey("ticket", fmt.Sprint(t.ID)),
	}
	if h.oneIn(15, "another customer") {
		c.Customer = h.drawCustomer()
	}
	return c
}

func (h *history) drawCheckIn() ledger.Command {
	now, _ := h.model.Now(context.Background())
	if len(h.paidOrders()) == 0 && !h.oneIn(6, "nothing is sold") {
		return h.drawConfirm()
	}
	t := h.drawTicket(oneOf(h, "state", ledger.TicketValid, ledger.TicketValid, ledger.TicketUsed, ledger.TicketVoid))
	c := ledger.CheckIn{
		Ticket: t.ID, Event: t.Event, Gate: oneOf(h, "gate", "north", "south", ""), Device: oneOf(h, "device", "d1", "d2", ""), By: dave,
		Offline: h.oneIn(2, "offline"),
	}
	if c.Offline {
		c.At = now - oneOf[ledger.Time](h, "how long ago", 0, 1, 1000, 1000, 61_000, -1000, -300_001, ledger.Time(ledger.CheckInPastMax))
	}
	if h.oneIn(15, "another event") {
		c.Event = otherEvent
	}
	return c
}

func (h *history) drawUndoCheckIn() ledger.Command {
	if used := h.ticketsWhere(func(t ledger.Ticket) bool { return t.State == ledger.TicketUsed }); len(used) == 0 && !h.oneIn(6, "none is used") {
		return h.drawCheckIn()
	}
	t := h.drawTicket(ledger.TicketUsed)
	return ledger.UndoCheckIn{Ticket: t.ID, Event: t.Event, By: dave, Reason: "undone"}
}

// drawShopRules sets what customers may do. Mostly they may.
func (h *history) drawShopRules(e *ledger.Event) {
	until := func(label string) ledger.Time {
		if h.oneIn(12, "not "+label) {
			return oneOf[ledger.Time](h, label, 0, start+ledger.Time(minute))
		}
		return shopUntil
	}
	e.Refunds = ledger.RefundRule{
		Until: until("refunds"), FeeBP: oneOf[int64](h, "fee bp", 0, 1000, 333, 10_000), FeePlace: oneOf[int64](h, "fee a place", 0, 0, 100),
	}
	e.Exchanges = ledger.ExchangeRule{Until: until("exchanges"), Fee: oneOf[int64](h, "exchange fee", 0, 300, 4000, 300)}
	e.Transfers = ledger.TransferRule{Until: until("transfers")}
	e.Documents = h.oneIn(12, "with documents")
}

// comparableSteps are steps by time and claim: those of different claims in one batch have no order. Why a hold's time was
// noticed to be up depends on who looked.
func comparableSteps(steps []ledger.ClaimStep) []ledger.ClaimStep {
	for i := range steps {
		if steps[i].To == ledger.HoldExpired.String() {
			steps[i].Why = ""
		}
	}
	slices.SortStableFunc(steps, func(a, b ledger.ClaimStep) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Hold, b.Hold))
	})
	return steps
}

// probe asks for what is still free, for all customers, until bounds refuse it, and then for all documents: so every count
// that a ledger keeps of areas, quotas, limits and documents is compared with the model's, which keeps none.
func (h *history) probe() {
	type want struct{ event, customer id.ID }
	var wants []want
	for _, event := range []id.ID{mainEvent, otherEvent} {
		for _, customer := range []id.ID{alice, bob, carol, dave} {
			wants = append(wants, want{event, customer})
		}
	}
	h.say("— the probe")
	h.run(probeEach*len(wants), func(i int) ledger.Command {
		w := wants[i%len(wants)]
		if i%3 == 0 {
			return ledger.HoldPlaces{ID: h.id(), Event: w.event, Customer: w.customer, Area: int32(i / 3 % 2), Quantity: 1}
		}
		return ledger.HoldSeats{ID: h.id(), Event: w.event, Customer: w.customer, Seats: []int32{int32(i*5) % (hallSeats - 1)}}
	})
	pay := h.payable()
	if len(pay) == 0 {
		return
	}
	h.run(min(len(pay), probeEach), func(i int) ledger.Command {
		c := ledger.BeginPayment{Order: h.id(), Hold: pay[i], Provider: "sandbox"}
		if known, err := h.model.Hold(context.Background(), pay[i]); err == nil {
			c.Customer = known.Customer
			for range known.Lines {
				c.Documents = append(c.Documents, fmt.Sprint("d", 1+i%6))
			}
		}
		return c
	})
}

// A shopSeen is what the shop's readers say.
type shopSeen struct {
	Unreleased, Refused []ledger.Refund
	Last                []ledger.Refund // the refunds of the last commands, one by one
	OrdersOf            []ledger.Order
	TicketsOf           map[id.ID][]ledger.Ticket
	Conflicts           map[id.ID][]ledger.CheckedIn
	Figures             map[id.ID]ledger.Figures
	Steps               []ledger.ClaimStep
	Notices             []ledger.Notice // of the last order, without their bodies
}

func (h *history) lookAtShop(l ledger.Ledger) (s shopSeen, err error) {
	ctx := context.Background()
	if s.Unreleased, err = l.UnreleasedRefunds(ctx, math.MaxInt32); err != nil {
		return s, err
	}
	if s.Refused, err = l.RefusedRefunds(ctx, 0, 3); err != nil {
		return s, err
	}
	there := h.refundsWhere(func(ledger.Refund) bool { return true })
	for _, refund := range there[max(0, len(there)-3):] {
		r, err := l.Refund(ctx, refund)
		if err != nil {
			return s, err
		}
		s.Last = append(s.Last, r)
	}
	if s.OrdersOf, err = l.OrdersOfEvent(ctx, mainEvent, ledger.OrderFilter{State: ledger.OrderPaid}, 4); err != nil {
		return s, err
	}
	s.TicketsOf = map[id.ID][]ledger.Ticket{}
	for _, customer := range []id.ID{alice, bob, carol, dave} {
		if s.TicketsOf[customer], err = l.TicketsOf(ctx, customer, 0, 5); err != nil {
			return s, err
		}
	}
	s.Conflicts, s.Figures = map[id.ID][]ledger.CheckedIn{}, map[id.ID]ledger.Figures{}
	for _, event := range []id.ID{mainEvent, otherEvent} {
		if s.Conflicts[event], err = l.CheckIns(ctx, event, ledger.CheckInCursor{}, true, 5); err != nil {
			return s, err
		}
		if s.Figures[event], err = l.Figures(ctx, event); err != nil {
			return s, err
		}
	}
	if s.Steps, err = l.ClaimHistory(ctx, h.holds); err != nil {
		return s, err
	}
	s.Steps = comparableSteps(s.Steps)
	if len(h.orders) > 0 {
		s.Notices, err = l.NoticesOf(ctx, h.orders[len(h.orders)-1])
		for i := range s.Notices {
			s.Notices[i].Body = nil
		}
	}
	return s, err
}
