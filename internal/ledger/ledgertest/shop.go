package ledgertest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// The verbs of the shop: giving back, exchanging, passing on, the door. A seat of category 0 costs 52.50 (5250), a seat or
// place of category 1 30.00 (3000), a place of area 0 nothing. Of a refund 10 % and 1.00 a ticket are kept (625 and 400), of
// an exchange 3.00 a ticket.

const (
	keptA       = 625
	keptB       = 400
	exchangeFee = 300
	priceA      = 5250
	priceB      = 3000
)

// shopUntil is when customers may do nothing by themselves any more.
const shopUntil = start + ledger.Time(2*hour)

// allow lets customers of both events give back, exchange and pass on.
func (w *world) allow() {
	w.Helper()
	for _, event := range []id.ID{mainEvent, otherEvent} {
		w.setOf(event, func(e *ledger.Event) {
			e.Refunds = ledger.RefundRule{Until: shopUntil, FeeBP: 1000, FeePlace: 100}
			e.Exchanges = ledger.ExchangeRule{Until: shopUntil, Fee: exchangeFee}
			e.Transfers = ledger.TransferRule{Until: shopUntil}
		})
	}
}

// refund gives tickets back on the customer's word, all where none is named.
func (w *world) refund(o *ledger.Order, tickets ...id.ID) ledger.BeginRefund {
	return ledger.BeginRefund{
		IDs: w.ids(ledger.RefundPartsMax), Order: o.ID, Customer: o.Customer, By: ledger.ByCustomer, Tickets: tickets,
	}
}

// refundBy gives tickets back on the organizer's word.
func (w *world) refundBy(o *ledger.Order, fee int64, tickets ...id.ID) ledger.BeginRefund {
	c := w.refund(o, tickets...)
	c.By, c.Customer, c.Fee, c.Reason = ledger.ByOrganizer, organizer, fee, "goodwill"
	return c
}

// back says that a refund's money is back.
func back(r *ledger.Refund) ledger.RecordPayment {
	return ledger.RecordPayment{Order: r.From, Payment: r.Payment, State: ledger.PaymentRefunded, Amount: r.Amount, Refund: r.ID}
}

// allBack settles all that is due of an order's refunds.
func (w *world) allBack(order id.ID) {
	w.Helper()
	for _, r := range w.refundsOf(order) {
		if r.State == ledger.RefundRequested {
			w.given(back(&r))
		}
	}
}

// exchange holds seats in the place of tickets of an order, of all where none is named.
func (w *world) exchange(o *ledger.Order, tickets []id.ID, seats ...int32) ledger.HoldSeats {
	c := w.holdSeats(o.Customer, seats...)
	c.Exchange = ledger.Exchange{Order: o.ID, Tickets: tickets}
	return c
}

// exchangeForPlaces is exchange for places of an area.
func (w *world) exchangeForPlaces(o *ledger.Order, tickets []id.ID, area int32, quantity int) ledger.HoldPlaces {
	c := w.holdPlaces(o.Customer, area, quantity)
	c.Exchange = ledger.Exchange{Order: o.ID, Tickets: tickets}
	return c
}

// confirmed pays what is to be paid for an order, in one captured payment named for the order.
func (w *world) confirmed(o *ledger.Order) *ledger.Order {
	w.Helper()
	payment := ""
	if o.Amount > 0 {
		payment = fmt.Sprintf("p%d", o.ID)
	}
	r := w.given(w.pay(o, payment))
	if r.Order.State != ledger.OrderPaid {
		w.Fatalf("order %d is %s: %s", o.ID, r.Order.State, r.Order.Reason)
	}
	return r.Order
}

// exchanged swaps tickets of an order for seats, and is the new order.
func (w *world) exchanged(o *ledger.Order, tickets []id.ID, seats ...int32) *ledger.Order {
	w.Helper()
	return w.confirmed(w.pending(w.given(w.exchange(o, tickets, seats...)).Hold))
}

func (w *world) transfer(t ledger.Ticket, to id.ID) ledger.Transfer {
	return ledger.Transfer{ID: w.id(), Ticket: t.ID, Customer: t.Customer, To: to}
}

func (w *world) checkIn(t ledger.Ticket) ledger.CheckIn {
	return ledger.CheckIn{Ticket: t.ID, Event: t.Event, Gate: "north", Device: "d1", By: dave}
}

func (w *world) ticketNow(ticket id.ID) ledger.Ticket {
	w.Helper()
	t, err := w.ledger.Ticket(context.Background(), ticket)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

func (w *world) refundNow(refund id.ID) ledger.Refund {
	w.Helper()
	r, err := w.ledger.Refund(context.Background(), refund)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) refundsOf(order id.ID) []ledger.Refund {
	w.Helper()
	refunds, err := w.ledger.RefundsOf(context.Background(), order)
	if err != nil {
		w.Fatal(err)
	}
	return refunds
}

func (w *world) paymentsOf(order id.ID) []ledger.Payment {
	w.Helper()
	payments, err := w.ledger.Payments(context.Background(), order)
	if err != nil {
		w.Fatal(err)
	}
	return payments
}

// wantTickets compares the states of an order's tickets, by id.
func (w *world) wantTickets(order id.ID, states ...ledger.TicketState) {
	w.Helper()
	var got []ledger.TicketState
	for _, t := range w.orderNow(order).Tickets {
		got = append(got, t.State)
	}
	w.same(fmt.Sprintf("the tickets of order %d", order), got, states)
}

// wantOrder compares the state of an order, and why it is so.
func (w *world) wantOrder(order id.ID, state ledger.OrderState, reason string) {
	w.Helper()
	o := w.orderNow(order)
	w.same(fmt.Sprintf("order %d", order), []any{o.State.String(), o.Reason}, []any{state.String(), reason})
}

// since are the kinds of notices of an order after the first so many.
func (w *world) since(order id.ID, first int) []string {
	w.Helper()
	return w.kinds(order)[first:]
}

// sound looks for a broken invariant in all that the scenario made.
func (w *world) sound() {
	w.Helper()
	holds, orders := slices.Collect(maps.Keys(w.book.holds)), slices.Collect(maps.Keys(w.book.orders))
	if err := Broken(context.Background(), w.ledger, holds, orders); err != nil {
		w.Fatal(err)
	}
}

// balance is all that was captured, less all that went back, of all orders of the scenario.
func (w *world) balance() int64 {
	w.Helper()
	var sum int64
	for order := range w.book.orders {
		for _, p := range w.paymentsOf(order) {
			sum += p.Captured - p.Refunded
		}
	}
	return sum
}
