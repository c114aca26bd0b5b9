package ledgertest

import (
	"context"
	"math"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// payment is what is due about one payment of an order; nil: nothing.
func duePayment(w *world, order id.ID) *ledger.OpenPayment {
	w.Helper()
	open, err := w.ledger.OpenPayments(context.Background(), math.MaxInt32)
	if err != nil {
		w.Fatal(err)
	}
	for i := range open {
		if open[i].Payment.Order == order {
			return &open[i]
		}
	}
	return nil
}

func record(o *ledger.Order, state ledger.PaymentState, amount int64, refund id.ID) ledger.RecordPayment {
	return ledger.RecordPayment{Order: o.ID, Payment: "p", State: state, Amount: amount, Refund: refund}
}

// authorized sells seat 0 and 1 by a payment that is to be captured.
func authorized(w *world) *ledger.Order {
	w.Helper()
	o := w.pending(w.held(alice, 0, 1))
	c := w.pay(o, "p")
	c.Captured = false
	return w.given(c).Order
}

var moneyScenarios = []scenario{
	{"A18: an authorized payment is to be captured, once", func(w *world) {
		o := authorized(w)
		w.same("the notices", w.kinds(o.ID), []string{ledger.NoticePending, ledger.NoticePaid, ledger.NoticeCaptureDue})
		w.same("what is due", duePayment(w, o.ID), &ledger.OpenPayment{Payment: ledger.Payment{
			Order: o.ID, Provider: "sandbox", ID: "p", Currency: "EUR", State: ledger.PaymentAuthorized, Authorized: 10500,
		}})
		w.no(fault.Conflict, record(o, ledger.PaymentCaptured, 10501, 0))
		w.no(fault.Conflict, record(o, ledger.PaymentVoided, 10500, 0)) // there are tickets for it
		captured := record(o, ledger.PaymentCaptured, 10500, 0)
		w.ok(captured, things(anOrder(o.ID), aDue(o.ID, "p"))...)
		w.again(captured)
		w.again(record(o, ledger.PaymentAuthorized, 10500, 0))
		w.no(fault.Conflict, record(o, ledger.PaymentVoided, 10500, 0))
		w.no(fault.Conflict, record(o, ledger.PaymentCaptureRefused, 0, w.id()))
		w.wantSeats(ledger.Sold, 0, 1)
	}},
	{"A18: capture finally refused gives the seats back and ends the order", func(w *world) {
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 2}} })
		o := authorized(w)
		w.no(fault.LimitReached, w.holdSeats(alice, 5))
		w.no(fault.Invalid, record(o, ledger.PaymentCaptureRefused, 0, 0))
		refused := record(o, ledger.PaymentCaptureRefused, 0, w.id())
		r := w.ok(refused, things(anOrder(o.ID), aSeat(0, 1), aHold(o.Hold), aDue(o.ID, "p"))...)
		w.same("the refund", r.Refund, &ledger.Refund{
			ID: refused.Refund, Order: o.ID, From: o.ID, Provider: "sandbox", Payment: "p", State: ledger.RefundSeatReleased,
			Currency: "EUR", Reason: ledger.ReasonCaptureRefused, Created: start,
		})
		w.same("the order", []any{r.Order.State, r.Order.Reason}, []any{ledger.OrderRefunded, ledger.ReasonCaptureRefused})
		w.same("the hold", []any{r.Hold.State, r.Hold.Order}, []any{ledger.HoldReleased, id.ID(0)})
		for _, t := range w.orderNow(o.ID).Tickets {
			w.same("the ticket", t.State, ledger.TicketVoid)
		}
		w.wantSeats(ledger.Available, 0, 1)
		kinds := w.kinds(o.ID)
		w.same("the notices", kinds[len(kinds)-2:], []string{ledger.NoticeCaptureRefused, ledger.NoticeRefunded})
		w.again(refused)
		w.given(w.holdSeats(alice, 0, 1)) // the limit is given back
		again := w.pay(o, "p")
		w.same("the same payment", w.again(again).Order.State, ledger.OrderRefunded)
		c := w.pay(o, "q")
		w.same("another payment", w.given(c).Refund.Reason, ledger.ReasonLate)
		w.wantSeats(ledger.Held, 0, 1)
	}},
	{"A18: capture refused gives places back", func(w *world) {
		o := w.pending(w.given(w.holdPlaces(alice, 1, 3)).Hold)
		c := w.pay(o, "p")
		c.Captured = false
		w.given(c)
		w.no(fault.PlacesTaken, w.holdPlaces(bob, 1, 1))
		w.ok(record(o, ledger.PaymentCaptureRefused, 0, w.id()), things(anOrder(o.ID), anArea(1), aHold(o.Hold), aDue(o.ID, "p"))...)
		w.wantArea(1, 0, 0)
		w.given(w.holdPlaces(bob, 1, 3))
	}},
	{"A8, A18: a seat sold again after a refused capture is not freed by the repeat", func(w *world) {
		o := authorized(w)
		refused := record(o, ledger.PaymentCaptureRefused, 0, w.id())
		w.given(refused)
		w.paid(bob, 0)
		w.again(refused)
		w.wantSeats(ledger.Sold, 0)
	}},
	{"A16: a payment given back is settled once", func(w *world) {
		o := w.pending(w.held(alice, 0))
		w.given(ledger.FailPayment{Order: o.ID, Reason: "declined"})
		c := w.pay(o, "p")
		refund := *w.given(c).Refund
		due := duePayment(w, o.ID)
		w.same("what is due", due, &ledger.OpenPayment{
			Payment: ledger.Payment{Order: o.ID, Provider: "sandbox", ID: "p", Currency: "EUR", State: ledger.PaymentCaptured, Authorized: 5250, Captured: 5250, Refund: c.Refund},
			Refund:  &refund,
		})
		w.no(fault.Conflict, record(o, ledger.PaymentRefunded, 5250, 999))
		w.no(fault.Conflict, record(o, ledger.PaymentRefunded, 5250, 0))
		w.no(fault.Invalid, record(o, ledger.PaymentRefunded, 5249, c.Refund))
		w.no(fault.Conflict, record(o, ledger.PaymentRefunded, 5251, c.Refund))
		back := record(o, ledger.PaymentRefunded, 5250, c.Refund)
		r := w.ok(back, things(anOrder(o.ID), aDue(o.ID, "p"))...)
		w.same("the refund", r.Refund.State, ledger.RefundDone)
		w.again(back)
		w.same("the late Confirm", w.again(c).Refund.State, ledger.RefundDone)
	}},
	{"A16: an authorized payment given back is voided", func(w *world) {
		o := w.pending(w.held(alice, 0))
		w.given(ledger.FailPayment{Order: o.ID, Reason: "declined"})
		c := w.pay(o, "p")
		c.Captured = false
		w.given(c)
		w.same("what is due", duePayment(w, o.ID).Payment.State, ledger.PaymentAuthorized)
		w.no(fault.Conflict, record(o, ledger.PaymentRefunded, 5250, c.Refund))
		w.no(fault.Conflict, record(o, ledger.PaymentVoided, 5250, 999))
		voided := record(o, ledger.PaymentVoided, 5250, c.Refund)
		r := w.ok(voided, things(anOrder(o.ID), aDue(o.ID, "p"))...)
		w.same("the refund", r.Refund.State, ledger.RefundDone)
		w.again(voided)
		w.no(fault.Conflict, record(o, ledger.PaymentCaptured, 5250, 0))
	}},
	{"A16: a payment that is no more buys nothing and is not given back again", func(w *world) {
		h := w.held(alice, 0)
		o := w.pending(h)
		w.given(record(o, ledger.PaymentAuthorized, 5250, 0))
		w.given(record(o, ledger.PaymentVoided, 5250, 0))
		c := w.pay(o, "p")
		r := w.again(c) // a late message
		w.same("the order", []any{r.Order.State, len(r.Order.Tickets), r.Refund == nil}, []any{ledger.OrderPending, 0, true})
		w.given(ledger.FailPayment{Order: o.ID, Cancelled: true, Reason: "cancelled"})
		w.again(c)
		w.wantSeats(ledger.Held, 0)
	}},
	{"A16: a void that nobody asked for settles the refund that was due", func(w *world) {
		o := w.pending(w.held(alice, 0))
		w.given(ledger.FailPayment{Order: o.ID, Reason: "declined"})
		c := w.pay(o, "p")
		c.Captured = false
		w.given(c)
		r := w.ok(record(o, ledger.PaymentVoided, 0, 0), things(anOrder(o.ID), aDue(o.ID, "p"))...)
		w.same("the refund", []any{r.Refund.ID, r.Refund.State}, []any{c.Refund, ledger.RefundDone})
		w.again(record(o, ledger.PaymentVoided, 5250, c.Refund))
	}},
	{"A18: what is recorded of a payment that nobody confirmed yet", func(w *world) {
		o := w.pending(w.held(alice, 0))
		for _, state := range []ledger.PaymentState{ledger.PaymentVoided, ledger.PaymentRefunded, ledger.PaymentCaptureRefused} {
			w.no(fault.Conflict, record(o, state, 5250, w.id()))
		}
		w.no(fault.OrderUnknown, ledger.RecordPayment{Order: 999, Payment: "p", State: ledger.PaymentAuthorized, Amount: 1})
		w.ok(record(o, ledger.PaymentAuthorized, 5250, 0), anOrder(o.ID)...)
		w.again(record(o, ledger.PaymentAuthorized, 5250, 0))
		if due := duePayment(w, o.ID); due != nil {
			w.Errorf("due before the order is PAID: %+v", due)
		}
		c := w.pay(o, "p")
		c.Captured = false
		w.given(c)
		if duePayment(w, o.ID) == nil {
			w.Error("nothing is due after the order is PAID")
		}
	}},
	{"I6: nothing is captured of a payment that did not make its order PAID", func(w *world) {
		o := authorized(w)
		w.given(record(o, ledger.PaymentCaptured, 10500, 0))
		w.given(ledger.RecordPayment{Order: o.ID, Payment: "q", State: ledger.PaymentAuthorized, Amount: 10500})
		if due := duePayment(w, o.ID); due != nil {
			w.Errorf("due: %+v", due)
		}
	}},
	{"a captured payment that was recorded before its Confirm stays captured", func(w *world) {
		o := w.pending(w.held(alice, 0))
		w.given(record(o, ledger.PaymentCaptured, 5250, 0))
		c := w.pay(o, "p")
		c.Captured = false // a message from before
		w.given(c)
		if due := duePayment(w, o.ID); due != nil {
			w.Errorf("due: %+v", due)
		}
		w.same("the notices", w.kinds(o.ID), []string{ledger.NoticePending, ledger.NoticePayment, ledger.NoticePaid})
		w.again(record(o, ledger.PaymentCaptured, 5250, 0))
	}},
	{"two orders' payments of one name are two payments", func(w *world) {
		a, b := w.pending(w.held(alice, 0)), w.pending(w.held(bob, 1))
		w.given(w.pay(a, "p"))
		r := w.given(w.pay(b, "p"))
		w.same("the order", []any{r.Order.State, r.Repeat}, []any{ledger.OrderPaid, false})
	}},
}
