package ledgertest

import (
	"fmt"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// orderOnly is an order of which nothing is told: its tickets were marked.
func orderOnly(order id.ID) string { return fmt.Sprintf("order %d", order) }

var exchangeScenarios = []scenario{
	{"A22: an exchange with a difference due, step by step", func(w *world) {
		w.allow()
		old := w.paid(alice, 8, 9) // 30.00 each
		given := old.Tickets[0].ID
		c := w.exchange(old, []id.ID{given}, 0)
		h := w.ok(c, things(orderOnly(old.ID), aSeat(0), aHold(c.ID))...).Hold
		w.same("the hold", []any{h.Exchange, h.Exchanged}, []any{old.ID, []ledger.ExchangedPlace{{Ticket: given, Event: mainEvent, Category: 1}}})
		w.same("the mark", []id.ID{w.ticketNow(given).Exchange, w.orderNow(old.ID).Tickets[1].Exchange}, []id.ID{c.ID, 0})

		begin := w.begin(h)
		o := w.ok(begin, things(anOrder(begin.Order), aHold(h.ID))...).Order
		const due = priceA + exchangeFee - priceB
		w.same("the order", []any{o.Amount, o.Exchange, o.Credit, o.Funds, o.AttemptOpen}, []any{int64(due), old.ID, int64(0), []ledger.Fund(nil), true})
		w.wantTickets(old.ID, ledger.TicketValid, ledger.TicketValid)
		w.wantSeats(ledger.Sold, 8, 9)

		confirm := w.pay(o, "top")
		r := w.ok(confirm, things(anOrder(o.ID), anOrder(old.ID), aHold(h.ID), aHold(old.Hold), aSeat(0, 8))...)
		w.same("the new order", []any{r.Order.State, r.Order.Payment, r.Order.Credit, r.Order.Funds, r.Refund == nil}, []any{ledger.OrderPaid, "top",
			int64(priceB - exchangeFee), []ledger.Fund{{Order: old.ID, Provider: "sandbox", Payment: "pay", Left: priceB - exchangeFee}}, true})
		w.same("the hold", []any{r.Hold.State, r.Hold.Exchanged}, []any{ledger.HoldSold, []ledger.ExchangedPlace(nil)})
		w.wantTickets(o.ID, ledger.TicketValid)
		w.wantTickets(old.ID, ledger.TicketVoid, ledger.TicketValid)
		w.wantOrder(old.ID, ledger.OrderPaid, "")
		w.wantSeats(ledger.Sold, 0, 9)
		w.wantSeats(ledger.Available, 8)
		w.same("the refund", w.refundsOf(old.ID), []ledger.Refund{{
			ID: confirm.Exchange[0], Order: old.ID, From: old.ID, Tickets: []id.ID{given}, State: ledger.RefundSeatReleased, FeeKept: exchangeFee,
			Rule: "exchange", Currency: "EUR", Reason: ledger.ReasonExchanged, By: alice, Created: start,
		}})
		w.same("what is promised", w.paymentsOf(old.ID)[0].Promised, int64(priceB-exchangeFee))
		w.same("the notices", w.since(old.ID, 2), []string{ledger.NoticeExchanged})
		w.same("the notices", w.kinds(o.ID), []string{ledger.NoticePending, ledger.NoticePaid})
		w.again(confirm)
		w.reopen()
		w.again(confirm)
		w.given(w.holdSeats(bob, 8))
		w.same("what there is", w.balance(), int64(2*priceB+due))
	}},
	{"A22: an exchange with a difference back", func(w *world) {
		w.allow()
		old := w.paid(alice, 0, 1)
		o := w.pending(w.given(w.exchange(old, []id.ID{old.Tickets[1].ID}, 8)).Hold)
		w.same("the order", []any{o.Amount, o.AttemptOpen}, []any{int64(0), false})
		confirm := w.pay(o, "")
		confirm.Captured = false
		const over = priceA - exchangeFee - priceB
		w.ok(confirm, things(anOrder(o.ID), anOrder(old.ID), aHold(o.Hold), aHold(old.Hold), aSeat(1, 8), aDue(old.ID, "pay"))...)
		r := w.refundsOf(old.ID)[1]
		w.same("the difference", r, ledger.Refund{
			ID: confirm.Exchange[1], Order: old.ID, From: old.ID, Provider: "sandbox", Payment: "pay", State: ledger.RefundRequested,
			Amount: over, Currency: "EUR", Reason: ledger.ReasonDifference, By: alice, Created: start,
		})
		w.same("the notices", w.since(old.ID, 2), []string{ledger.NoticeExchanged, ledger.NoticeRefundRequested})
		w.again(confirm)
		w.given(ledger.RefuseRefund{Refund: r.ID, Reason: "no"})
		w.given(ledger.RetryRefund{Refund: r.ID, Try: 1})
		w.ok(back(&r), things(anOrder(old.ID), aDue(old.ID, "pay"))...)
		w.wantOrder(old.ID, ledger.OrderPaid, "")
		w.again(ledger.ReleaseSeats{Refund: r.ID}) // it is of money alone
		w.same("what there is", w.balance(), int64(2*priceA-over))
	}},
	{"A22: an exchange of all ends the old order, with nothing due either way", func(w *world) {
		w.allow()
		w.set(func(e *ledger.Event) { e.Exchanges.Fee = 0 })
		old := w.paid(alice, 0, 1)
		o := w.pending(w.given(w.exchange(old, nil, 5, 6)).Hold)
		w.same("due", o.Amount, int64(0))
		o = w.confirmed(o)
		w.same("the credit", []any{o.Credit, o.Payment}, []any{int64(2 * priceA), ""})
		w.wantOrder(old.ID, ledger.OrderRefunded, ledger.ReasonExchanged)
		w.same("the old hold", []any{w.holdNow(old.Hold).State, w.holdNow(old.Hold).Order}, []any{ledger.HoldReleased, id.ID(0)})
		w.same("the notices", w.since(old.ID, 2), []string{ledger.NoticeExchanged, ledger.NoticeRefunded})
		w.wantSeats(ledger.Available, 0, 1)
		w.wantSeats(ledger.Sold, 5, 6)
		w.no(fault.Conflict, w.refund(old))
		r := w.given(w.refundBy(o, 0)).Refund
		w.same("whose money", []any{r.Order, r.From, r.Payment, r.Amount}, []any{o.ID, old.ID, "pay", int64(2 * priceA)})
	}},
	{"A22: a difference that comes back last ends nothing twice", func(w *world) {
		w.allow()
		old := w.paid(alice, 0)
		w.exchanged(old, nil, 8)
		w.wantOrder(old.ID, ledger.OrderRefunded, ledger.ReasonExchanged)
		w.allBack(old.ID)
		w.same("the notices", w.since(old.ID, 2), []string{ledger.NoticeExchanged, ledger.NoticeRefundRequested, ledger.NoticeRefunded,
			ledger.NoticePayment, ledger.NoticeRefundDone})
	}},
	{"A22: to another event of the show", func(w *world) {
		w.allow()
		old := w.paid(alice, 0)
		c := w.exchange(old, nil, 0)
		c.Event = otherEvent
		h := w.given(c).Hold
		o := w.pending(h)
		confirm := w.pay(o, "top")
		w.ok(confirm, things(anOrder(o.ID), anOrder(old.ID), aHold(h.ID), aHold(old.Hold), aSeat(0), "seat 0 of 2")...)
		w.same("the event", []id.ID{w.orderNow(o.ID).Event, w.orderNow(o.ID).Tickets[0].Event}, []id.ID{otherEvent, otherEvent})
		w.wantSeats(ledger.Available, 0)
	}},
	{"A9, A22: areas as well as seats", func(w *world) {
		w.allow()
		old := w.confirmed(w.pending(w.given(w.holdPlaces(alice, 1, 3)).Hold))
		w.no(fault.PlacesTaken, w.exchangeForPlaces(old, nil, 1, 1)) // the old places are sold until the swap
		c := w.exchangeForPlaces(old, []id.ID{old.Tickets[0].ID, old.Tickets[2].ID}, 0, 4)
		h := w.ok(c, things(orderOnly(old.ID), anArea(0), aHold(c.ID))...).Hold
		o := w.pending(h)
		swap := w.pay(o, "")
		o = w.ok(swap, things(anOrder(o.ID), anOrder(old.ID), aHold(h.ID), aHold(old.Hold), anArea(0), anArea(1),
			aDue(old.ID, fmt.Sprintf("p%d", old.ID)))...).Order
		w.wantArea(0, 0, 4)
		w.wantArea(1, 0, 1)
		w.exchanged(o, []id.ID{o.Tickets[3].ID}, 0)
		w.wantArea(0, 0, 3)
		back := w.confirmed(w.pending(w.given(w.exchangeForPlaces(old, []id.ID{old.Tickets[1].ID}, 1, 2)).Hold))
		w.wantArea(1, 0, 2)
		w.wantTickets(back.ID, ledger.TicketValid, ledger.TicketValid)
	}},
	{"refusals of a hold that is to exchange come in their order", func(w *world) {
		w.allow()
		old := w.paid(alice, 0, 1, 8)
		one, two := old.Tickets[0].ID, old.Tickets[1].ID
		other := w.paid(alice, 2)
		c := w.exchange(old, nil, 5)
		c.Event = 999
		w.no(fault.EventUnknown, c)
		w.same("the field", w.no(fault.Invalid, w.exchange(old, []id.ID{one, one}, 5)).Field, "tickets")
		c = w.exchange(old, []id.ID{one}, 5)
		c.Exchange.Order = 0
		w.no(fault.OrderUnknown, c)
		w.no(fault.TicketUnknown, w.exchange(old, []id.ID{999, other.Tickets[0].ID}, 5))
		w.same("the field", w.no(fault.Invalid, w.exchange(old, []id.ID{one, other.Tickets[0].ID, 999}, 5)).Field, "tickets")
		c = w.exchange(old, nil, 5)
		c.Customer = bob
		w.no(fault.WrongCustomer, c)
		w.given(w.transfer(old.Tickets[2], bob))
		w.no(fault.WrongCustomer, w.exchange(old, []id.ID{w.orderNow(old.ID).Tickets[3].ID}, 5))
		w.no(fault.Conflict, w.exchange(old, []id.ID{one, old.Tickets[2].ID}, 5)) // VOID

		w.setOf(otherEvent, func(e *ledger.Event) { e.Show++ })
		c = w.exchange(old, nil, 5)
		c.Event = otherEvent
		w.no(fault.NotExchangeable, c)
		w.setOf(otherEvent, func(e *ledger.Event) { e.Show, e.Currency = theShow, "USD" })
		w.no(fault.NotExchangeable, c)
		w.given(w.checkIn(old.Tickets[0]))
		w.no(fault.Conflict, w.exchange(old, []id.ID{one}, 5))
		w.given(w.exchange(old, nil, 5)) // all: the VALID one that is still hers
		w.no(fault.Conflict, w.exchange(old, []id.ID{two}, 6))
		w.no(fault.Conflict, w.exchange(old, nil, 6))
		pending := w.pending(w.held(alice, 7))
		w.no(fault.Conflict, w.exchange(pending, nil, 6))
		w.set(func(e *ledger.Event) { e.State = ledger.Paused })
		w.no(fault.Paused, w.exchange(other, nil, 6))
		w.set(func(e *ledger.Event) { e.State = ledger.OnSale })
		w.no(fault.SeatsTaken, w.exchange(other, nil, 2)) // the very seat: sold until the swap
		w.given(w.refundBy(other, 0))
		w.no(fault.Conflict, w.exchange(other, nil, 6))
		w.pass(2 * hour)
		w.no(fault.NotExchangeable, w.exchange(old, []id.ID{two}, 6))
	}},
	{"A18, A22: what is not captured yet is not exchanged, and an exchange is captured at once", func(w *world) {
		w.allow()
		old := authorized(w)
		w.same("the order in the way", w.no(fault.PaymentInProgress, w.exchange(old, nil, 5, 6)).Order, old.ID)
		w.given(record(old, ledger.PaymentCaptured, 10500, 0))
		o := w.pending(w.given(w.exchange(old, nil, 5, 6)).Hold)
		c := w.pay(o, "top")
		c.Captured = false
		w.same("the field", w.no(fault.Invalid, c).Field, "captured")
		few := w.pay(o, "top")
		few.Exchange = few.Exchange[1:]
		w.same("the field", w.no(fault.Invalid, few).Field, "exchange")
		w.given(ledger.RecordPayment{Order: o.ID, Payment: "top", State: ledger.PaymentCaptured, Amount: o.Amount})
		w.given(c) // it is known to be captured
		w.wantOrder(o.ID, ledger.OrderPaid, "")
	}},
	{"A22: while a live hold exchanges tickets they go nowhere else; after it they are as before", func(w *world) {
		w.allow()
		old := w.paid(alice, 0)
		t := old.Tickets[0]
		first := w.given(w.exchange(old, nil, 5)).Hold
		w.no(fault.Conflict, w.exchange(old, nil, 6))
		w.no(fault.Conflict, w.refund(old))
		w.no(fault.Conflict, w.refundBy(old, 0))
		w.no(fault.Conflict, w.transfer(t, bob))
		w.given(ledger.Release{Hold: first.ID, Customer: alice})
		second := w.given(w.exchange(old, nil, 6)).Hold
		w.pass(holdTTL) // nobody has swept it
		third := w.given(w.exchange(old, nil, 7)).Hold
		w.no(fault.HoldExpired, w.begin(second), "seat 6", aHold(second.ID))
		w.given(ledger.Release{Hold: third.ID, Customer: alice})
		w.wantTickets(old.ID, ledger.TicketValid)
		w.given(w.transfer(t, bob))
		w.wantSeats(ledger.Sold, 0)
		w.wantSeats(ledger.Available, 5, 6, 7)
	}},
	{"A22: on expiry the old tickets stay; what is paid late goes back, and nothing is rescued", func(w *world) {
		w.allow()
		old := w.paid(alice, 0)
		o := w.pending(w.given(w.exchange(old, nil, 5)).Hold)
		w.pass(holdTTL)
		w.ok(ledger.Sweep{}, things("seat 5", aHold(o.Hold))...)
		w.wantOrder(o.ID, ledger.OrderPending, "") // A19: its attempt is open
		c := w.pay(o, "late")
		r := w.ok(c, things(anOrder(o.ID), aHold(o.Hold), aDue(o.ID, "late"))...)
		w.same("the refund", []any{r.Refund.Amount, r.Refund.Reason, r.Refund.From}, []any{int64(exchangeFee), ledger.ReasonLate, o.ID})
		w.wantOrder(o.ID, ledger.OrderExpired, ledger.ReasonLate)
		w.wantTickets(old.ID, ledger.TicketValid)
		w.wantSeats(ledger.Sold, 0)
		w.wantSeats(ledger.Available, 5)
		w.given(back(r.Refund))
		w.given(w.refund(old))

		free := w.confirmed(w.pending(w.given(w.holdPlaces(bob, 0, 1)).Hold))
		next := w.pending(w.given(w.exchangeForPlaces(free, nil, 0, 1)).Hold)
		w.pass(holdTTL)
		w.given(w.pay(next, ""))
		w.wantOrder(next.ID, ledger.OrderExpired, "hold_expired")
		w.wantTickets(free.ID, ledger.TicketValid)
		authorizedLate := w.pending(w.given(w.exchange(free, nil, 6)).Hold)
		w.pass(holdTTL)
		c = w.pay(authorizedLate, "late")
		c.Captured = false
		w.same("the refund", w.given(c).Refund.Reason, ledger.ReasonLate) // not refused as uncaptured: it is to be voided
	}},
	{"A22: a payment that failed leaves the old tickets, and the hold for another card", func(w *world) {
		w.allow()
		old := w.paid(alice, 0)
		h := w.given(w.exchange(old, nil, 5)).Hold
		first := w.pending(h)
		w.ok(ledger.FailPayment{Order: first.ID, Reason: "declined"}, things(anOrder(first.ID), aHold(h.ID))...)
		w.wantTickets(old.ID, ledger.TicketValid)
		w.no(fault.Conflict, w.refund(old))
		o := w.confirmed(w.pending(h))
		w.wantTickets(o.ID, ledger.TicketValid)
		late := w.given(w.pay(first, "late")).Refund
		w.same("the first card's", late.Reason, ledger.ReasonLate)
		w.wantTickets(old.ID, ledger.TicketVoid)
	}},
	{"A22: a ticket that was used in between is not swapped; the payment goes back", func(w *world) {
		w.allow()
		old := w.paid(alice, 0, 1)
		o := w.pending(w.given(w.exchange(old, nil, 5, 6)).Hold)
		w.given(w.checkIn(old.Tickets[1]))
		c := w.pay(o, "top")
		r := w.ok(c, things(anOrder(o.ID), aHold(o.Hold), aDue(o.ID, "top"))...)
		w.same("the refund", r.Refund.Reason, ledger.ReasonNotExchangeable)
		w.wantOrder(o.ID, ledger.OrderFailed, ledger.ReasonNotExchangeable)
		w.wantTickets(old.ID, ledger.TicketValid, ledger.TicketUsed)
		w.wantTickets(o.ID)
		w.wantSeats(ledger.Sold, 0, 1)
		w.wantSeats(ledger.Held, 5, 6)
		w.no(fault.Conflict, w.begin(r.Hold))
		w.same("a late word", w.again(c).Refund.ID, r.Refund.ID)
		w.given(ledger.UndoCheckIn{Ticket: old.Tickets[1].ID, Event: mainEvent, By: dave, Reason: "the wrong person"})
		w.confirmed(w.pending(r.Hold))

		free := w.confirmed(w.pending(w.given(w.holdPlaces(bob, 0, 1)).Hold))
		o = w.pending(w.given(w.exchangeForPlaces(free, nil, 0, 1)).Hold)
		w.given(w.checkIn(free.Tickets[0]))
		w.same("nothing goes back", w.given(w.pay(o, "")).Refund == nil, true)
		w.wantOrder(o.ID, ledger.OrderFailed, ledger.ReasonNotExchangeable)
	}},
	{"A6, A22: an event that is cancelled in the middle", func(w *world) {
		w.allow()
		for i, c := range []struct {
			cancelled id.ID
			reason    string
			begin     fault.Code
		}{{otherEvent, ledger.ReasonEventCancelled, fault.NotOnSale}, {mainEvent, ledger.ReasonNotExchangeable, fault.NotExchangeable}} {
			old := w.paid(alice, int32(i), int32(4+i))
			hold := w.exchange(old, []id.ID{old.Tickets[0].ID}, int32(i))
			begun := w.exchange(old, []id.ID{old.Tickets[1].ID}, int32(4+i))
			hold.Event, begun.Event = otherEvent, otherEvent
			h := w.given(hold).Hold
			o := w.pending(w.given(begun).Hold)
			w.setOf(c.cancelled, func(e *ledger.Event) { e.State = ledger.Cancelled })
			w.no(c.begin, w.begin(h))
			r := w.given(w.pay(o, "top"))
			w.same("the refund", r.Refund.Reason, c.reason)
			w.wantOrder(o.ID, ledger.OrderFailed, c.reason)
			w.wantTickets(old.ID, ledger.TicketValid, ledger.TicketValid)
			w.setOf(c.cancelled, func(e *ledger.Event) { e.State = ledger.OnSale })
			if c.cancelled == mainEvent { // and then all of its tickets go back, when nobody exchanges them any more
				w.set(func(e *ledger.Event) { e.State = ledger.Cancelled })
				all := w.refund(old)
				all.By = ledger.ByEvent
				w.no(fault.Conflict, all)
				w.pass(holdTTL)
				w.given(all)
				w.allBack(old.ID)
				w.wantOrder(old.ID, ledger.OrderRefunded, ledger.ReasonEventCancelled)
			}
		}
	}},
	{"A22: who has begun may finish, at what was agreed", func(w *world) {
		w.allow()
		old := w.paid(alice, 0, 1)
		h := w.given(w.exchange(old, []id.ID{old.Tickets[0].ID}, 5)).Hold
		w.set(func(e *ledger.Event) { e.Exchanges.Until = start })
		w.no(fault.NotExchangeable, w.begin(h))
		w.set(func(e *ledger.Event) { e.Exchanges.Until = shopUntil })
		o := w.pending(h)
		w.set(func(e *ledger.Event) { e.Exchanges = ledger.ExchangeRule{Until: start, Fee: 5000} })
		w.setOf(otherEvent, func(e *ledger.Event) { e.Show++ })
		w.confirmed(o)
		w.same("what is kept", w.refundsOf(old.ID)[0].FeeKept, int64(exchangeFee))

		w.set(func(e *ledger.Event) { e.Exchanges = ledger.ExchangeRule{Until: shopUntil, Fee: 1000} })
		o = w.pending(w.given(w.exchange(old, []id.ID{old.Tickets[1].ID}, 8)).Hold)
		w.set(func(e *ledger.Event) { e.Exchanges.Fee = 5000 })
		w.confirmed(o) // nothing was due, and nothing is
		r := w.refundsOf(old.ID)[1]
		w.same("what is kept", []any{r.FeeKept, len(w.refundsOf(old.ID))}, []any{int64(priceA - priceB), 2})
	}},
	{"A10: under a limit max(0, new − exchanged) places count, and after the swap the new ones", func(w *world) {
		w.allow()
		for _, event := range []id.ID{mainEvent, otherEvent} {
			w.setOf(event, func(e *ledger.Event) {
				e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 3}, {Scope: ledger.PerCategory, Category: 1, Max: 2}, {Scope: ledger.PerShow, Max: 3}}
			})
		}
		old := w.paid(alice, 0, 1)
		w.same("which limit", w.no(fault.LimitReached, w.exchange(old, nil, 4, 5, 6, 7)).Field, "event")
		w.same("which limit", w.no(fault.LimitReached, w.exchange(old, nil, 8, 9, 10)).Field, "category")
		h := w.given(w.exchange(old, nil, 4, 5, 6)).Hold // counts one
		w.no(fault.LimitReached, w.holdSeats(alice, 7))
		w.given(ledger.Release{Hold: h.ID, Customer: alice})
		w.given(ledger.Release{Hold: w.held(alice, 7).ID, Customer: alice})

		elsewhere := w.exchange(old, nil, 0, 1, 2)
		elsewhere.Event = otherEvent
		h = w.given(elsewhere).Hold // three of that event, and one more of the show
		more := w.holdSeats(alice, 3)
		more.Event = otherEvent
		w.same("which limit", w.no(fault.LimitReached, more).Field, "event")
		w.same("which limit", w.no(fault.LimitReached, w.holdSeats(alice, 3)).Field, "show")
		o := w.confirmed(w.pending(h))
		w.same("which limit", w.no(fault.LimitReached, w.holdSeats(alice, 3)).Field, "show")
		r := w.given(w.refundBy(o, 0, o.Tickets[0].ID)).Refund
		w.given(back(r))
		w.given(ledger.ReleaseSeats{Refund: r.ID})
		w.given(w.holdSeats(alice, 3))
		w.same("which limit", w.no(fault.LimitReached, w.holdSeats(alice, 0)).Field, "show")
	}},
	{"A9, A10: a hold that exchanges and runs out counts no more", func(w *world) {
		w.allow()
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 3}} })
		old := w.paid(alice, 0)
		w.given(w.exchange(old, nil, 4, 5)) // counts one
		w.no(fault.LimitReached, w.holdSeats(alice, 6, 7))
		w.pass(holdTTL)
		w.given(w.holdSeats(alice, 6, 7))
		w.no(fault.LimitReached, w.holdSeats(alice, 8))
		w.no(fault.LimitReached, w.exchange(old, nil, 9, 10))
		w.given(w.exchange(old, nil, 9)) // counts nothing, even at the limit
	}},
	{"A10: limits that come while an exchange is under way count it so too", func(w *world) {
		w.allow()
		old := w.paid(alice, 0, 1)
		h := w.given(w.exchange(old, []id.ID{old.Tickets[0].ID}, 4, 5)).Hold // counts one
		w.set(func(e *ledger.Event) {
			e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 4}, {Scope: ledger.PerShow, Max: 4}}
		})
		w.given(ledger.Release{Hold: w.held(alice, 6).ID, Customer: alice})
		w.no(fault.LimitReached, w.holdSeats(alice, 6, 7))
		w.confirmed(w.pending(h)) // now she has seats 1, 4, 5
		w.no(fault.LimitReached, w.holdSeats(alice, 6, 7))
		w.held(alice, 6)
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 5}} })
		w.held(alice, 7)
		w.no(fault.LimitReached, w.holdSeats(alice, 8))
	}},
	{"A11: a quota counts old and new seats, until the swap", func(w *world) {
		w.allow()
		w.set(func(e *ledger.Event) { e.Quotas = []ledger.Quota{{Category: 0, Section: -1, Max: 3}} })
		old := w.paid(alice, 0, 1)
		w.no(fault.PlacesTaken, w.exchange(old, nil, 4, 5))
		o := w.exchanged(old, []id.ID{old.Tickets[0].ID}, 4)
		w.given(ledger.Release{Hold: w.held(bob, 5).ID, Customer: bob})
		w.no(fault.PlacesTaken, w.holdSeats(bob, 5, 6))
		w.exchanged(o, nil, 8)
		w.held(bob, 5, 6)
	}},
	{"A10: documents move with the tickets", func(w *world) {
		w.allow()
		for _, event := range []id.ID{mainEvent, otherEvent} {
			w.setOf(event, func(e *ledger.Event) {
				e.Documents, e.Limits = true, []ledger.Limit{{Scope: ledger.PerDocument, Max: 1}}
			})
		}
		c := w.begin(w.held(alice, 0, 1))
		c.Documents = []string{"x"}
		w.same("the field", w.no(fault.Invalid, c).Field, "documents")
		c.Documents = []string{"x", ""}
		w.same("the field", w.no(fault.Invalid, c).Field, "documents")
		c.Documents = []string{"x", "y", "z"}
		w.same("the field", w.no(fault.Invalid, c).Field, "documents")
		c.Documents = []string{"x", "y"}
		old := w.confirmed(w.given(c).Order)
		h := w.given(w.exchange(old, []id.ID{old.Tickets[0].ID}, 4)).Hold
		c = w.begin(h)
		c.Documents = []string{"y"}
		w.same("which limit", w.no(fault.LimitReached, c).Field, "document") // that one stays with the other ticket
		c.Documents = []string{"x"}
		o := w.confirmed(w.given(c).Order)
		w.same("the documents", []any{o.Documents, w.orderNow(old.ID).Documents}, []any{[]string{"x"}, []string{"", "y"}})
		taken := w.begin(w.held(bob, 5))
		taken.Documents = []string{"x"}
		w.no(fault.LimitReached, taken)
		elsewhere := w.exchange(o, nil, 5)
		elsewhere.Event = otherEvent
		c = w.begin(w.given(elsewhere).Hold)
		c.Documents = []string{"x"}
		w.confirmed(w.given(c).Order)
		w.given(taken) // free here, and taken there
	}},
	{"A22: the rest of an order is exchanged after a part of it was given back", func(w *world) {
		w.allow()
		old := w.paid(alice, 0, 1)
		r := w.given(w.refund(old, old.Tickets[0].ID)).Refund
		o := w.exchanged(old, nil, 8)
		w.wantTickets(o.ID, ledger.TicketValid)
		w.wantOrder(old.ID, ledger.OrderRefunded, ledger.ReasonExchanged)
		w.given(back(r))
		w.wantSeats(ledger.Sold, 0) // that one waits for its ReleaseSeats
		w.ok(ledger.ReleaseSeats{Refund: r.ID}, things(anOrder(old.ID), aSeat(0), aHold(old.Hold))...)
		w.same("the hold", w.holdNow(old.Hold).State, ledger.HoldReleased)
	}},
}
