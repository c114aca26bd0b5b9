package ledgertest

import (
	"context"
	"fmt"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

func aDue(order id.ID, payment string) string { return fmt.Sprintf("due for %d by %s", order, payment) }

var payScenarios = []scenario{
	{"BeginPayment makes a pending order", func(w *world) {
		h := w.held(alice, 0, 8)
		c := w.begin(h)
		c.AllowOther = true
		r := w.ok(c, things(anOrder(c.Order), aHold(h.ID))...)
		w.same("the order", r.Order, &ledger.Order{
			ID: c.Order, Hold: h.ID, Event: mainEvent, Customer: alice, State: ledger.OrderPending, Amount: 8250,
			Currency: "EUR", Provider: "sandbox", AllowOther: true, AttemptOpen: true, Created: start, Updated: start, Sequence: 1,
		})
		w.same("the hold's order", r.Hold.Order, c.Order)
		w.same("the notices", w.kinds(c.Order), []string{ledger.NoticePending})
	}},
	{"refusals of BeginPayment come in their order", func(w *world) {
		h := w.held(alice, 0)
		c := w.begin(h)
		c.Hold = 999
		w.no(fault.HoldUnknown, c)
		c = w.begin(h)
		c.Customer = bob
		w.no(fault.WrongCustomer, c)
		o := w.pending(h)
		w.pass(holdTTL)
		w.set(func(e *ledger.Event) { e.State = ledger.Cancelled })
		w.same("the order in the way", w.no(fault.PaymentInProgress, w.begin(h)).Order, o.ID)
		w.given(ledger.FailPayment{Order: o.ID, Reason: "declined"})
		w.no(fault.HoldExpired, w.begin(h), "seat 0", aHold(h.ID))
	}},
	{"A13: a hold has at most one order PENDING or PAID", func(w *world) {
		h := w.held(alice, 0)
		o := w.pending(h)
		w.same("the order in the way", w.no(fault.PaymentInProgress, w.begin(h)).Order, o.ID)
		w.given(w.pay(o, "p"))
		w.same("the order in the way", w.no(fault.PaymentInProgress, w.begin(h)).Order, o.ID)
	}},
	{"A13: another card is another order on the same hold", func(w *world) {
		h := w.held(alice, 0)
		first := w.pending(h)
		r := w.ok(ledger.FailPayment{Order: first.ID, Reason: "card_declined"}, things(anOrder(first.ID), aHold(h.ID))...)
		w.same("the first", []any{r.Order.State, r.Order.Reason, r.Order.AttemptOpen}, []any{ledger.OrderFailed, "card_declined", false})
		w.same("the notices", w.kinds(first.ID), []string{ledger.NoticePending, ledger.NoticeFailed})
		second := w.pending(h)
		w.given(w.pay(second, "p2"))
		w.again(ledger.FailPayment{Order: first.ID, Reason: "again"})
		w.same("the reason stays", w.orderNow(first.ID).Reason, "card_declined")
		w.no(fault.Conflict, ledger.FailPayment{Order: second.ID, Reason: "late"})
		w.no(fault.OrderUnknown, ledger.FailPayment{Order: 999})
	}},
	{"FailPayment of a cancelled attempt makes the order EXPIRED", func(w *world) {
		h := w.held(alice, 0)
		o := w.pending(h)
		r := w.ok(ledger.FailPayment{Order: o.ID, Cancelled: true, Reason: "cancelled"}, things(anOrder(o.ID), aHold(h.ID))...)
		w.same("the order", []any{r.Order.State, r.Order.Reason}, []any{ledger.OrderExpired, "cancelled"})
		w.same("the notices", w.kinds(o.ID), []string{ledger.NoticePending, ledger.NoticeExpired})
	}},
	{"A14: paying lets a hold last for the window, once, whatever the number of cards", func(w *world) {
		h := w.held(alice, 0)
		w.pass(8 * minute)
		first := w.begin(h)
		r := w.ok(first, things("seat 0", aHold(h.ID), anOrder(first.Order))...)
		w.same("the expiry", r.Hold.Expires, start+ledger.Time(13*minute))
		w.pass(4 * minute)
		w.ok(ledger.FailPayment{Order: first.Order, Reason: "no"}, things(anOrder(first.Order), aHold(h.ID))...)
		second := w.begin(h)
		r = w.ok(second, things(aHold(h.ID), anOrder(second.Order))...)
		w.same("the expiry", r.Hold.Expires, start+ledger.Time(13*minute))
	}},
	{"A14: paying early shortens nothing and uses the window", func(w *world) {
		h := w.held(alice, 0)
		first := w.begin(h)
		w.ok(first, things(aHold(h.ID), anOrder(first.Order))...)
		w.given(ledger.FailPayment{Order: first.Order, Reason: "no"})
		w.pass(9 * minute)
		second := w.begin(h)
		r := w.ok(second, things(aHold(h.ID), anOrder(second.Order))...)
		w.same("the expiry", r.Hold.Expires, start+ledger.Time(10*minute))
		w.given(ledger.FailPayment{Order: second.Order, Reason: "no"})
		// The customer's own extension is another right.
		w.same("the expiry", w.given(ledger.Extend{Hold: h.ID, Customer: alice}).Hold.Expires, start+ledger.Time(19*minute))
	}},
	{"A15: prices with tax inside and added, rounded half up, by line", func(w *world) {
		for _, c := range []struct {
			included       bool
			face, fee, bp  int64
			tax, lineTotal int64
		}{
			{true, 107, 0, 700, 7, 107},
			{true, 1000, 70, 700, 70, 1070},
			{true, 5, 0, 10000, 3, 5}, // 2.5
			{true, 1, 0, 10000, 1, 1}, // 0.5
			{false, 50, 0, 100, 1, 51},
			{false, 49, 0, 100, 0, 49},
			{false, 150, 0, 100, 2, 152}, // 1.5
			{false, 1000, 250, 1900, 238, 1488},
			{false, 1_000_000_000_000, 1_000_000_000_000, 10000, 2_000_000_000_000, 4_000_000_000_000},
			{true, 1_000_000_000_000, 1_000_000_000_000, 10000, 1_000_000_000_000, 2_000_000_000_000},
			{false, 0, 0, 1900, 0, 0},
		} {
			w.set(func(e *ledger.Event) {
				e.TaxIncluded = c.included
				e.Tiers = []ledger.Tier{{Category: 0, Face: c.face, Fee: c.fee, TaxBP: c.bp}}
			})
			h := w.held(alice, 0, 1)
			for _, line := range h.Lines {
				w.same(fmt.Sprintf("the line for %+v", c), line, ledger.Line{
					Seat: line.Seat, Epoch: line.Epoch, Face: c.face, Fee: c.fee, Tax: c.tax, Total: c.lineTotal,
				})
			}
			w.same("the amount", w.pending(h).Amount, 2*c.lineTotal)
			w.given(ledger.FailPayment{Order: w.holdNow(h.ID).Order, Reason: "no"})
			w.given(ledger.Release{Hold: h.ID, Customer: alice})
		}
	}},
	{"A15: the hold fixes the price, whatever the event says later", func(w *world) {
		h := w.held(alice, 0)
		w.set(func(e *ledger.Event) { e.Tiers[0].Face, e.Currency = 9900, "CHF" })
		o := w.pending(h)
		w.same("the order", []any{o.Amount, o.Currency}, []any{int64(5250), "EUR"})
		r := w.given(w.pay(o, "p"))
		w.same("the ticket", r.Order.Tickets[0].Total, int64(5250))
		later := w.held(alice, 1)
		w.same("the new hold", []any{later.Total(), later.Currency}, []any{int64(10150), "CHF"})
	}},
	{"A15: total 0 is confirmed without a provider", func(w *world) {
		h := w.given(w.holdPlaces(alice, 0, 2)).Hold
		o := w.pending(h)
		w.same("an open attempt", o.AttemptOpen, false)
		c := w.pay(o, "")
		c.Captured = false
		r := w.ok(c, things(anOrder(o.ID), anArea(0), aHold(h.ID))...)
		w.same("the order", []any{r.Order.State, r.Order.Payment, len(r.Order.Tickets)}, []any{ledger.OrderPaid, "", 2})
		w.same("the notices", w.kinds(o.ID), []string{ledger.NoticePending, ledger.NoticePaid})
		w.again(c)
		w.wantArea(0, 0, 2)
	}},
	{"A19: an order without open attempt ends with its hold", func(w *world) {
		h := w.given(w.holdPlaces(alice, 0, 2)).Hold
		o := w.pending(h)
		w.pass(holdTTL)
		w.ok(ledger.Sweep{}, things(anOrder(o.ID), anArea(0), aHold(h.ID))...)
		got := w.orderNow(o.ID)
		w.same("the order", []any{got.State, got.Reason}, []any{ledger.OrderExpired, "hold_expired"})
		w.same("the notices", w.kinds(o.ID), []string{ledger.NoticePending, ledger.NoticeExpired})
		w.same("the hold's order", w.holdNow(h.ID).Order, id.ID(0))
	}},
	{"A19: Sweep frees seats but never ends an order with an open attempt", func(w *world) {
		h := w.held(alice, 0)
		o := w.pending(h)
		w.pass(holdTTL)
		w.ok(ledger.Sweep{}, "seat 0", aHold(h.ID))
		w.same("the order", w.orderNow(o.ID).State, ledger.OrderPending)
		w.same("the hold's order", w.holdNow(h.ID).Order, o.ID)
		w.pass(hour)
		w.ok(ledger.Sweep{})
		w.ok(ledger.FailPayment{Order: o.ID, Cancelled: true, Reason: "cancelled"}, things(anOrder(o.ID), aHold(h.ID))...)
	}},
	{"A16: Confirm sells all of the hold, and makes its tickets", func(w *world) {
		h := w.held(alice, 3, 8)
		w.held(bob, 1)
		o := w.pending(h)
		w.pass(second)
		c := w.pay(o, "p")
		r := w.ok(c, things(anOrder(o.ID), aSeat(3, 8), aHold(h.ID))...)
		want := *o
		want.State, want.Payment, want.AttemptOpen = ledger.OrderPaid, "p", false
		want.Updated, want.Sequence = start+1000, 2
		want.Tickets = []ledger.Ticket{
			{ID: c.Tickets[0], Order: o.ID, Event: mainEvent, Customer: alice, State: ledger.TicketValid, Seat: 3, Area: -1, Category: 0, Total: 5250},
			{ID: c.Tickets[1], Order: o.ID, Event: mainEvent, Customer: alice, State: ledger.TicketValid, Seat: 8, Area: -1, Category: 1, Total: 3000, Place: 1},
		}
		w.same("the order", r.Order, &want)
		w.same("the hold", r.Hold.State, ledger.HoldSold)
		w.wantSeats(ledger.Sold, 3, 8)
		for _, ticket := range want.Tickets {
			got, err := w.ledger.Ticket(context.Background(), ticket.ID)
			if err != nil {
				w.Fatal(err)
			}
			w.same("the stored ticket", got, ticket)
		}
		w.same("the notices", w.kinds(o.ID), []string{ledger.NoticePending, ledger.NoticePaid})
	}},
	{"A16: Confirm of places", func(w *world) {
		h := w.given(w.holdPlaces(alice, 1, 2)).Hold
		o := w.pending(h)
		c := w.pay(o, "p")
		r := w.ok(c, things(anOrder(o.ID), anArea(1), aHold(h.ID))...)
		w.wantArea(1, 0, 2)
		w.same("the tickets", r.Order.Tickets, []ledger.Ticket{
			{ID: c.Tickets[0], Order: o.ID, Event: mainEvent, Customer: alice, State: ledger.TicketValid, Seat: -1, Area: 1, Category: 1, Total: 3000},
			{ID: c.Tickets[1], Order: o.ID, Event: mainEvent, Customer: alice, State: ledger.TicketValid, Seat: -1, Area: 1, Category: 1, Total: 3000, Place: 1},
		})
	}},
	{"A16: the same payment again changes nothing, also after the program ended", func(w *world) {
		o := w.pending(w.held(alice, 0))
		c := w.pay(o, "p")
		first := w.given(c)
		repeat := c
		repeat.Tickets, repeat.Refund, repeat.RescueHold = w.ids(1), w.id(), w.id()
		w.same("the order", w.again(repeat).Order, first.Order)
		w.reopen()
		w.pass(2 * holdTTL)
		w.same("the order", w.again(repeat).Order, first.Order)
		repeat.Amount = 1 // the payment is known, so what it says of itself is not looked at
		w.again(repeat)
	}},
	{"A16: a second payment is given back alone", func(w *world) {
		o := w.pending(w.held(alice, 0))
		w.given(w.pay(o, "p"))
		c := w.pay(o, "q")
		r := w.ok(c, things(anOrder(o.ID), aDue(o.ID, "q"))...)
		w.same("the refund", r.Refund, &ledger.Refund{
			ID: c.Refund, Order: o.ID, From: o.ID, Provider: "sandbox", Payment: "q", State: ledger.RefundRequested, Amount: 5250,
			Currency: "EUR", Reason: ledger.ReasonSecondPayment, Created: start,
		})
		w.same("the order", []any{r.Order.State, r.Order.Payment, len(r.Order.Tickets)}, []any{ledger.OrderPaid, "p", 1})
		w.same("the notices", w.kinds(o.ID), []string{ledger.NoticePending, ledger.NoticePaid, ledger.NoticeGiveBack})
		w.same("the repeat", w.again(c).Refund, r.Refund)
		w.wantSeats(ledger.Sold, 0)
	}},
	{"A16: a wrong amount or currency is given back, and the hold goes on", func(w *world) {
		h := w.held(alice, 0)
		for i, change := range []func(c *ledger.Confirm){
			func(c *ledger.Confirm) { c.Amount-- },
			func(c *ledger.Confirm) { c.Amount++ },
			func(c *ledger.Confirm) { c.Currency = "USD" },
		} {
			o := w.pending(h)
			c := w.pay(o, fmt.Sprint("p", i))
			change(&c)
			r := w.ok(c, things(anOrder(o.ID), aHold(h.ID), aDue(o.ID, c.Payment))...)
			w.same("the order", []any{r.Order.State, r.Order.Reason}, []any{ledger.OrderFailed, ledger.ReasonWrongAmount})
			w.same("the refund", []any{r.Refund.Amount, r.Refund.Currency, r.Refund.Reason}, []any{c.Amount, c.Currency, ledger.ReasonWrongAmount})
			w.same("the notices", w.kinds(o.ID), []string{ledger.NoticePending, ledger.NoticeFailed, ledger.NoticeGiveBack})
			w.again(c)
		}
		w.given(w.pay(w.pending(h), "right"))
	}},
	{"A16: a payment for a FAILED order is given back", func(w *world) {
		h := w.held(alice, 0)
		o := w.pending(h)
		w.given(ledger.FailPayment{Order: o.ID, Reason: "declined"})
		c := w.pay(o, "p")
		r := w.ok(c, things(anOrder(o.ID), aDue(o.ID, "p"))...)
		w.same("the refund", r.Refund.Reason, ledger.ReasonLate)
		w.same("the order", r.Order.State, ledger.OrderFailed)
		w.wantSeats(ledger.Held, 0)
	}},
	{"A6: Confirm is refused when the event is cancelled or stopped, and the money given back", func(w *world) {
		for i, state := range []ledger.EventState{ledger.Cancelled, ledger.Stopped, ledger.Draft} {
			w.set(func(e *ledger.Event) { e.State = ledger.OnSale })
			h := w.held(alice, int32(i))
			o := w.pending(h)
			w.set(func(e *ledger.Event) { e.State = state })
			r := w.ok(w.pay(o, "p"), things(anOrder(o.ID), aHold(h.ID), aDue(o.ID, "p"))...)
			w.same("the order", []any{r.Order.State, r.Order.Reason}, []any{ledger.OrderFailed, ledger.ReasonEventCancelled})
			w.same("the refund", r.Refund.Reason, ledger.ReasonEventCancelled)
			w.wantSeats(ledger.Held, int32(i))
		}
	}},
	{"refusals of Confirm", func(w *world) {
		o := w.pending(w.held(alice, 0, 1))
		unknown := w.pay(o, "p")
		unknown.Order = 999
		w.no(fault.OrderUnknown, unknown)
		few := w.pay(o, "p")
		few.Tickets = few.Tickets[:1]
		w.no(fault.Invalid, few)
		few.Amount = 1 // looked at after
		w.no(fault.Invalid, few)
		w.given(w.pay(o, "p"))
		w.again(few)
		few.Payment = "q"
		w.no(fault.Invalid, few)
	}},
	{"more ticket ids than lines are left unused", func(w *world) {
		o := w.pending(w.held(alice, 0))
		c := w.pay(o, "p")
		c.Tickets = append(c.Tickets, w.id())
		r := w.given(c)
		w.same("the tickets", len(r.Order.Tickets), 1)
		if _, err := w.ledger.Ticket(context.Background(), c.Tickets[1]); !isNotFound(err) {
			w.Errorf("got %v", err)
		}
	}},
}
