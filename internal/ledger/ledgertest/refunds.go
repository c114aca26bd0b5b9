package ledgertest

import (
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

var refundScenarios = []scenario{
	{"A21: a ticket given back is VOID at once, its seat free only when it is released", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1)
		first, rest := o.Tickets[0].ID, o.Tickets[1].ID
		w.pass(second)
		c := w.refund(o, first)
		r := w.ok(c, things(anOrder(o.ID), aDue(o.ID, "pay"))...)
		want := ledger.Refund{
			ID: c.IDs[0], Order: o.ID, From: o.ID, Tickets: []id.ID{first}, Provider: "sandbox", Payment: "pay",
			State: ledger.RefundRequested, Amount: priceA - keptA, FeeKept: keptA, Rule: "customer 1000 bp + 100", Currency: "EUR",
			Reason: ledger.ReasonCustomer, By: alice, Created: start + 1000,
		}
		w.same("the refund", r.Refund, &want)
		w.same("the stored one", w.refundNow(want.ID), want)
		w.same("the order", []any{r.Order.State, r.Order.Updated}, []any{ledger.OrderPaid, start + 1000})
		w.same("the ticket", []any{w.ticketNow(first).Refund, w.ticketNow(first).Gone}, []any{want.ID, false})
		w.wantTickets(o.ID, ledger.TicketVoid, ledger.TicketValid)
		w.wantSeats(ledger.Sold, 0, 1)
		w.same("what is promised", w.paymentsOf(o.ID)[0].Promised, want.Amount)
		w.same("the notices", w.since(o.ID, 2), []string{ledger.NoticeRefundRequested})
		w.no(fault.Conflict, ledger.ReleaseSeats{Refund: want.ID})
		w.no(fault.Conflict, w.refund(o, first))

		w.no(fault.Invalid, func() ledger.Command { c := back(&want); c.Amount--; return c }())
		done := back(&want)
		r = w.ok(done, things(anOrder(o.ID), aDue(o.ID, "pay"))...)
		w.same("the refund", r.Refund.State, ledger.RefundDone)
		w.again(done)
		w.same("what went back", w.paymentsOf(o.ID)[0].Refunded, want.Amount)
		w.wantSeats(ledger.Sold, 0, 1)
		w.no(fault.SeatsTaken, w.holdSeats(bob, 0))

		r = w.ok(ledger.ReleaseSeats{Refund: want.ID}, things(anOrder(o.ID), aSeat(0), aHold(o.Hold))...)
		w.same("the refund", r.Refund.State, ledger.RefundSeatReleased)
		w.again(ledger.ReleaseSeats{Refund: want.ID})
		w.wantOrder(o.ID, ledger.OrderPaid, "")
		w.same("the line", []bool{w.holdNow(o.Hold).Lines[0].Gone, w.holdNow(o.Hold).Lines[1].Gone}, []bool{true, false})
		w.same("the notices", w.since(o.ID, 3), []string{ledger.NoticePayment, ledger.NoticeRefundDone, ledger.NoticeSeatsReleased})
		w.same("the other ticket", w.ticketNow(rest).State, ledger.TicketValid)
		w.paid(bob, 0)
		w.again(ledger.ReleaseSeats{Refund: want.ID}) // A8: it is bob's now
		w.wantSeats(ledger.Sold, 0, 1)
		w.reopen()
		w.same("after the program ended", w.refundNow(want.ID).State, ledger.RefundSeatReleased)
	}},
	{"A21: an order is REFUNDED when all its tickets are back, and their money", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 8)
		a := w.given(w.refund(o, o.Tickets[0].ID)).Refund
		b := w.given(w.refund(o)).Refund
		w.same("what is left", b.Tickets, []id.ID{o.Tickets[1].ID})
		w.same("the amounts", []int64{a.Amount, b.Amount}, []int64{priceA - keptA, priceB - keptB})
		w.wantOrder(o.ID, ledger.OrderPaid, "")
		w.no(fault.Conflict, w.refund(o))
		w.ok(back(b), things(anOrder(o.ID), aDue(o.ID, "pay"))...)
		w.wantOrder(o.ID, ledger.OrderPaid, "")
		w.ok(back(a), things(anOrder(o.ID), aDue(o.ID, "pay"))...)
		w.wantOrder(o.ID, ledger.OrderRefunded, ledger.ReasonCustomer)
		w.same("the notices", w.since(o.ID, 6), []string{ledger.NoticePayment, ledger.NoticeRefundDone, ledger.NoticeRefunded})
		w.again(back(a))
		w.ok(ledger.ReleaseSeats{Refund: b.ID}, things(anOrder(o.ID), aSeat(8), aHold(o.Hold))...)
		w.same("the hold", w.holdNow(o.Hold).State, ledger.HoldSold)
		w.ok(ledger.ReleaseSeats{Refund: a.ID}, things(anOrder(o.ID), aSeat(0), aHold(o.Hold))...)
		w.same("the hold", []any{w.holdNow(o.Hold).State, w.holdNow(o.Hold).Order}, []any{ledger.HoldReleased, id.ID(0)})
		w.same("the late Confirm", w.again(ledger.Confirm{Order: o.ID, Payment: "pay", Amount: o.Amount, Currency: "EUR"}).Order.State, ledger.OrderRefunded)
		w.same("what stays", w.balance(), int64(keptA+keptB))
	}},
	{"refusals of BeginRefund come in their order", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1, 8)
		other := w.paid(bob, 2)
		one := o.Tickets[0].ID
		c := w.refund(o)
		c.Order = 999
		w.no(fault.OrderUnknown, c)
		c = w.refund(o)
		c.Customer = bob
		w.no(fault.WrongCustomer, c)
		w.no(fault.TicketUnknown, w.refund(o, 999))
		w.no(fault.TicketUnknown, w.refund(o, one, other.Tickets[0].ID))
		field := func(c ledger.BeginRefund, want string) {
			w.Helper()
			w.same("the field", w.no(fault.Invalid, c).Field, want)
		}
		c = w.refund(o, one)
		c.By = 0
		field(c, "by")
		field(w.refund(o, one, one), "tickets")
		c = w.refund(o, one)
		c.IDs = c.IDs[1:]
		field(c, "ids")
		field(w.refundBy(o, -1, one), "fee")
		field(w.refundBy(o, priceA+1, one), "fee")
		field(w.refundBy(o, 2*priceA+priceB+1), "fee")
		c = w.refundBy(o, 0, one)
		c.Reason = "\xff"
		field(c, "reason")
		c = w.refund(o, one)
		c.By = ledger.ByEvent
		w.no(fault.NotRefundable, c) // it is not cancelled
		w.given(w.transfer(o.Tickets[2], bob))
		w.no(fault.Conflict, w.refund(o, one, o.Tickets[2].ID)) // VOID: passed on as another
		passed := w.orderNow(o.ID).Tickets[3]
		w.no(fault.NotRefundable, w.refund(o, passed.ID))
		w.pass(2 * hour)
		w.no(fault.NotRefundable, w.refund(o, one))
		w.given(w.refundBy(o, 0, one)) // the organizer may
		w.set(func(e *ledger.Event) { e.Refunds.Until = 0 })
		w.no(fault.NotRefundable, w.refund(o, o.Tickets[1].ID))
		pending := w.pending(w.held(carol, 5))
		w.no(fault.Conflict, w.refundBy(pending, 0))
	}},
	{"A18: what is not captured yet is not given back", func(w *world) {
		w.allow()
		o := authorized(w)
		w.same("the order in the way", w.no(fault.PaymentInProgress, w.refund(o)).Order, o.ID)
		w.given(record(o, ledger.PaymentCaptured, 10500, 0))
		w.given(w.refund(o))
	}},
	{"I6: no more is given back than was captured", func(w *world) {
		w.allow()
		o := authorized(w)
		w.given(record(o, ledger.PaymentCaptured, 10499, 0)) // the provider took less
		w.given(w.refundBy(o, 0, o.Tickets[0].ID))
		w.no(fault.Conflict, w.refundBy(o, 0, o.Tickets[1].ID))
		w.no(fault.Conflict, w.exchange(o, nil, 5))
		r := w.given(w.refundBy(o, 1, o.Tickets[1].ID))
		w.same("the amount", r.Refund.Amount, int64(5249))
	}},
	{"A21: what the organizer gives back, and what is kept of it", func(w *world) {
		o := w.paid(alice, 0, 1, 8)
		c := w.refundBy(o, 700, o.Tickets[0].ID, o.Tickets[2].ID)
		r := w.ok(c, things(anOrder(o.ID), aDue(o.ID, "pay"))...)
		w.same("the refund", []any{r.Refund.Amount, r.Refund.FeeKept, r.Refund.Rule, r.Refund.Reason, r.Refund.By},
			[]any{int64(priceA + priceB - 700), int64(700), "organizer", "goodwill", organizer})
		w.wantTickets(o.ID, ledger.TicketVoid, ledger.TicketValid, ledger.TicketVoid)
	}},
	{"A4: USED tickets keep the seat, and go back on an owner's word with a reason only", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1)
		used := o.Tickets[0]
		w.given(w.checkIn(used))
		w.wantSeats(ledger.Sold, 0)
		w.no(fault.SeatsTaken, w.holdSeats(bob, 0))
		w.no(fault.Conflict, w.refund(o, used.ID))
		w.no(fault.Conflict, w.refundBy(o, 0, used.ID))
		w.no(fault.Conflict, w.refundBy(o, 0)) // all: it is among them
		w.no(fault.Conflict, w.exchange(o, []id.ID{used.ID}, 5))
		w.no(fault.Conflict, w.transfer(used, bob))
		c := w.refundBy(o, 0, used.ID)
		c.Used, c.Reason = true, ""
		w.same("the field", w.no(fault.Invalid, c).Field, "reason")
		w.same("of the customer's", w.given(w.refund(o)).Refund.Tickets, []id.ID{o.Tickets[1].ID}) // the VALID one
		w.wantOrder(o.ID, ledger.OrderPaid, "")
		c.Reason = "the hall was flooded"
		w.ok(c, things(anOrder(o.ID), aDue(o.ID, "pay"))...)
		w.wantTickets(o.ID, ledger.TicketVoid, ledger.TicketVoid)
		w.wantSeats(ledger.Sold, 0)
		w.allBack(o.ID)
		w.wantOrder(o.ID, ledger.OrderRefunded, ledger.ReasonCustomer) // that one was settled last
	}},
	{"A21: of a cancelled event everything goes back, USED or passed on too", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1, 2)
		w.given(w.checkIn(o.Tickets[0]))
		w.given(w.transfer(o.Tickets[1], bob))
		w.set(func(e *ledger.Event) { e.State = ledger.Cancelled })
		c := w.refund(o)
		c.By, c.Customer = ledger.ByEvent, 0
		r := w.ok(c, things(anOrder(o.ID), aDue(o.ID, "pay"))...)
		w.same("the refund", []any{r.Refund.Amount, r.Refund.FeeKept, r.Refund.Rule, r.Refund.Reason, len(r.Refund.Tickets)},
			[]any{int64(3 * priceA), int64(0), "event", ledger.ReasonEventCancelled, 3})
		w.no(fault.Conflict, c)
		w.given(back(r.Refund))
		w.wantOrder(o.ID, ledger.OrderRefunded, ledger.ReasonEventCancelled)
		w.ok(ledger.ReleaseSeats{Refund: r.Refund.ID}, things(anOrder(o.ID), aSeat(0, 1, 2), aHold(o.Hold))...)
		w.same("what stays", w.balance(), int64(0))
	}},
	{"A21: of free tickets, and where everything is kept, no money goes back", func(w *world) {
		w.allow()
		free := w.confirmed(w.pending(w.given(w.holdPlaces(alice, 0, 2)).Hold))
		c := w.refund(free, free.Tickets[0].ID)
		r := w.ok(c, anOrder(free.ID)...)
		w.same("the refund", r.Refund, &ledger.Refund{
			ID: c.IDs[0], Order: free.ID, From: free.ID, Tickets: []id.ID{free.Tickets[0].ID}, State: ledger.RefundDone,
			Rule: "customer 1000 bp + 100", Currency: "EUR", Reason: ledger.ReasonCustomer, By: alice, Created: start,
		})
		w.wantOrder(free.ID, ledger.OrderPaid, "")
		w.ok(w.refund(free), anOrder(free.ID)...)
		w.wantOrder(free.ID, ledger.OrderRefunded, ledger.ReasonCustomer)
		w.same("the notices", w.since(free.ID, 2), []string{ledger.NoticeRefundDone, ledger.NoticeRefundDone, ledger.NoticeRefunded})
		w.wantArea(0, 0, 2)
		w.ok(ledger.ReleaseSeats{Refund: c.IDs[0]}, things(anOrder(free.ID), anArea(0), aHold(free.Hold))...)
		w.wantArea(0, 0, 1)

		w.set(func(e *ledger.Event) { e.Refunds.FeeBP = 10_000 })
		o := w.paid(bob, 0)
		r = w.ok(w.refund(o), anOrder(o.ID)...)
		w.same("the refund", []any{r.Refund.Amount, r.Refund.FeeKept, r.Refund.Payment, r.Refund.State},
			[]any{int64(0), int64(priceA), "", ledger.RefundDone})
		w.same("what is promised", w.paymentsOf(o.ID)[0].Promised, int64(0))
		w.wantOrder(o.ID, ledger.OrderRefunded, ledger.ReasonCustomer)
	}},
	{"A21: what the provider finally refuses stays REQUESTED, until it is tried again", func(w *world) {
		w.allow()
		o := w.paid(alice, 0)
		r := *w.given(w.refund(o)).Refund
		w.no(fault.RefundUnknown, ledger.RefuseRefund{Refund: 999})
		w.no(fault.RefundUnknown, ledger.RetryRefund{Refund: 999, Try: 1})
		w.no(fault.Conflict, ledger.RetryRefund{Refund: r.ID, Try: 1})
		w.no(fault.Conflict, ledger.RefuseRefund{Refund: r.ID, Try: 1, Reason: "card closed"})
		refused := ledger.RefuseRefund{Refund: r.ID, Reason: "card closed"}
		got := w.ok(refused, things(anOrder(o.ID), aDue(o.ID, "pay"))...)
		w.same("the refund", []any{got.Refund.State, got.Refund.Refused, got.Refund.Try}, []any{ledger.RefundRequested, "card closed", 0})
		if duePayment(w, o.ID) != nil {
			w.Error("it is still tried")
		}
		w.again(refused)
		w.wantOrder(o.ID, ledger.OrderPaid, "")
		w.wantSeats(ledger.Sold, 0)
		w.no(fault.Conflict, ledger.ReleaseSeats{Refund: r.ID})
		w.no(fault.Conflict, ledger.RetryRefund{Refund: r.ID, Try: 2})
		was := r.Key()
		retry := ledger.RetryRefund{Refund: r.ID, Try: 1}
		got = w.ok(retry, things(anOrder(o.ID), aDue(o.ID, "pay"))...)
		w.same("the refund", []any{got.Refund.Refused, got.Refund.Try}, []any{"", 1})
		if got.Refund.Key() == was {
			w.Error("the second try has the key of the first")
		}
		w.no(fault.Conflict, retry)
		w.again(refused) // a late word of the first try
		w.given(ledger.RefuseRefund{Refund: r.ID, Try: 1})
		w.same("why", w.refundNow(r.ID).Refused, "refused")
		w.same("the notices", w.since(o.ID, 3), []string{ledger.NoticeRefundRefused, ledger.NoticeRefundRequested, ledger.NoticeRefundRefused})
		w.given(back(&r)) // it went through after all
		w.wantOrder(o.ID, ledger.OrderRefunded, ledger.ReasonCustomer)
		w.no(fault.Conflict, ledger.RefuseRefund{Refund: r.ID, Try: 1, Reason: "late"})
		w.no(fault.Conflict, ledger.RetryRefund{Refund: r.ID, Try: 2})
	}},
	{"A12: a refund's key has one effect", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1)
		c := w.refund(o, o.Tickets[0].ID)
		c.Key = keyOf("k", "order", "1", "tickets", "0")
		first := w.given(c)
		repeat := c
		repeat.IDs = w.ids(ledger.RefundPartsMax)
		w.same("the repeat's refund", w.again(repeat).Refund, first.Refund)
		w.reopen()
		w.given(back(first.Refund))
		r := w.again(repeat)
		w.same("its present state", []any{r.Refund.State, r.Order.State}, []any{ledger.RefundDone, ledger.OrderPaid})
		other := w.refund(o, o.Tickets[1].ID)
		other.Key = keyOf("k", "order", "1", "tickets", "1")
		w.same("the field", w.no(fault.KeyReused, other).Field, "tickets")
		mine := w.refundBy(o, 0, o.Tickets[1].ID) // of another customer: another key
		mine.Key = other.Key
		w.given(mine)
	}},
	{"A10: limits, quotas and documents are given back by ReleaseSeats, not before", func(w *world) {
		w.allow()
		w.set(func(e *ledger.Event) {
			e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 2}, {Scope: ledger.PerDocument, Max: 1}}
			e.Quotas = []ledger.Quota{{Category: 0, Section: -1, Max: 2}}
		})
		h := w.held(alice, 0, 1)
		c := w.begin(h)
		c.Documents = []string{"x", "y"}
		o := w.confirmed(w.given(c).Order)
		r := w.given(w.refund(o, o.Tickets[1].ID)).Refund
		w.given(back(r))
		w.same("before", w.no(fault.LimitReached, w.holdSeats(alice, 8)).Field, "event")
		w.same("before", w.no(fault.PlacesTaken, w.holdSeats(bob, 5)).Field, "quota")
		other := w.begin(w.given(w.holdSeats(bob, 8)).Hold)
		other.Documents = []string{"y"}
		w.same("before", w.no(fault.LimitReached, other).Field, "document")
		w.given(ledger.ReleaseSeats{Refund: r.ID})
		w.same("the documents", w.orderNow(o.ID).Documents, []string{"x", ""})
		w.given(w.holdSeats(alice, 5))
		w.no(fault.LimitReached, w.holdSeats(alice, 9))
		w.no(fault.PlacesTaken, w.holdSeats(carol, 6))
		w.given(other)
		again := w.begin(w.given(w.holdSeats(carol, 9)).Hold)
		again.Documents = []string{"x"}
		w.no(fault.LimitReached, again)
	}},
	{"A9: places of an area go back to where they came from", func(w *world) {
		w.allow()
		o := w.confirmed(w.pending(w.given(w.holdPlaces(alice, 1, 3)).Hold))
		w.no(fault.PlacesTaken, w.holdPlaces(bob, 1, 1))
		r := w.given(w.refund(o, o.Tickets[1].ID)).Refund
		w.given(back(r))
		w.wantArea(1, 0, 3)
		w.no(fault.PlacesTaken, w.holdPlaces(bob, 1, 1))
		w.ok(ledger.ReleaseSeats{Refund: r.ID}, things(anOrder(o.ID), anArea(1), aHold(o.Hold))...)
		w.wantArea(1, 0, 2)
		w.confirmed(w.pending(w.given(w.holdPlaces(bob, 1, 1)).Hold))
		rest := w.given(w.refund(o)).Refund
		w.given(back(rest))
		w.given(ledger.ReleaseSeats{Refund: rest.ID})
		w.wantArea(1, 0, 1)
		w.again(ledger.ReleaseSeats{Refund: rest.ID})
		w.wantArea(1, 0, 1)
	}},
	{"A23: a released seat goes to the waitlist, or is blocked where it is marked so", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1)
		w.given(ledger.Block{Event: mainEvent, Seats: []int32{1}, WhenFree: true})
		w.returns(ledger.ReturnsWaitlist)
		r := w.given(w.refund(o)).Refund
		w.given(back(r))
		w.ok(ledger.ReleaseSeats{Refund: r.ID}, things(anOrder(o.ID), aSeat(0, 1), aHold(o.Hold))...)
		w.wantSeats(ledger.Returned, 0)
		w.wantSeats(ledger.Blocked, 1)
		w.no(fault.SeatsTaken, w.holdSeats(bob, 0))
		w.pass(ledger.ReturnedPatience)
		w.given(w.holdSeats(bob, 0))
	}},
	{"a payment to be given back whole does not keep an order from being REFUNDED, and the other way round", func(w *world) {
		w.allow()
		o := w.paid(alice, 0)
		second := w.given(w.pay(o, "twice")).Refund
		r := w.given(w.refund(o)).Refund
		w.given(back(r))
		w.wantOrder(o.ID, ledger.OrderRefunded, ledger.ReasonCustomer)
		w.no(fault.Conflict, ledger.ReleaseSeats{Refund: second.ID})
		w.ok(back(second), things(anOrder(o.ID), aDue(o.ID, "twice"))...)
		w.again(ledger.ReleaseSeats{Refund: second.ID}) // there is nothing to release
		w.wantOrder(o.ID, ledger.OrderRefunded, ledger.ReasonCustomer)
		w.same("what stays", w.balance(), int64(keptA))

		early := w.paid(bob, 1)
		twice := w.given(w.pay(early, "twice")).Refund
		w.given(ledger.RefuseRefund{Refund: twice.ID, Reason: "no"})
		w.given(ledger.RetryRefund{Refund: twice.ID, Try: 1})
		w.given(back(twice))
		w.wantOrder(early.ID, ledger.OrderPaid, "")
	}},
	{"A17, A21: a rescued order's seats go back by its new claim", func(w *world) {
		w.allow()
		o := w.pending(w.held(alice, 0))
		w.pass(holdTTL)
		o = w.confirmed(o)
		if !o.Rescued {
			w.Fatal("not rescued")
		}
		r := w.given(w.refund(o)).Refund
		w.given(back(r))
		w.ok(ledger.ReleaseSeats{Refund: r.ID}, things(anOrder(o.ID), aSeat(0), aHold(o.Hold))...)
		w.wantSeats(ledger.Available, 0)
	}},
	{"A1: refunds of one batch are as one by one", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1)
		a, b, c := w.refund(o, o.Tickets[0].ID), w.refund(o, o.Tickets[0].ID, o.Tickets[1].ID), w.refund(o, o.Tickets[1].ID)
		var codes []fault.Code
		r := w.apply(a, b, c, ledger.ReleaseSeats{Refund: a.IDs[0]})
		for _, r := range r {
			code := fault.Code("")
			if r.Fault != nil {
				code = r.Fault.Code
			}
			codes = append(codes, code)
		}
		w.same("the answers", codes, []fault.Code{"", fault.Conflict, "", fault.Conflict})
		done := []ledger.Command{back(r[0].Refund), ledger.ReleaseSeats{Refund: a.IDs[0]}, w.holdSeats(bob, 0), back(r[2].Refund)}
		for i, r := range w.apply(done...) {
			if r.Fault != nil {
				w.Errorf("command %d: %v", i, r.Fault)
			}
		}
		w.wantSeats(ledger.Held, 0)
		w.wantOrder(o.ID, ledger.OrderRefunded, ledger.ReasonCustomer)
	}},
}
