//go:build negativecontrol

package ledgertest

import (
	"context"
	"fmt"

	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// shopControls are those of refunds, exchanges, transfers and the door.
var shopControls = []control{
	{decide.GuardRefundOnce, func(w *world) []ledger.Command {
		o := w.paid(alice, 0, 1)
		w.given(w.refundBy(o, 0, o.Tickets[0].ID))
		return []ledger.Command{w.refundBy(o, 0, o.Tickets[0].ID)}
	}, broken},
	{decide.GuardRefundAmount, func(w *world) []ledger.Command {
		o := authorized(w)
		w.given(record(o, ledger.PaymentCaptured, 10499, 0))
		w.given(w.refundBy(o, 0, o.Tickets[0].ID))
		return []ledger.Command{w.refundBy(o, 0, o.Tickets[1].ID)}
	}, broken},
	{decide.GuardRefundCaptured, func(w *world) []ledger.Command {
		o := authorized(w)
		return []ledger.Command{w.refundBy(o, o.Amount)} // all is kept, so that nothing is missing
	}, func(w *world, tried []ledger.Command) error {
		o := w.orderNow(tried[0].(ledger.BeginRefund).Order)
		if p := w.paymentsOf(o.ID)[0]; o.State != ledger.OrderPaid && p.State == ledger.PaymentAuthorized {
			return fmt.Errorf("I6: order %d is %s, so nobody captures what is kept of it", o.ID, o.State)
		}
		return nil
	}},
	{decide.GuardExchangeMark, func(w *world) []ledger.Command {
		w.allow()
		o := w.paid(alice, 0)
		w.given(w.exchange(o, nil, 5))
		return []ledger.Command{w.exchange(o, nil, 6)}
	}, unwanted("A22: another hold exchanges the ticket")},
	{decide.GuardExchangeValid, func(w *world) []ledger.Command {
		w.allow()
		o := w.paid(alice, 0)
		n := w.pending(w.given(w.exchange(o, nil, 5)).Hold)
		w.given(w.checkIn(o.Tickets[0]))
		return []ledger.Command{w.pay(n, "top")}
	}, paidWrongly("A22: the old ticket was used")},
	{decide.GuardReleaseEpoch, func(w *world) []ledger.Command {
		o := w.paid(alice, 0)
		r := w.given(w.refundBy(o, 0)).Refund
		w.given(back(r))
		w.given(ledger.ReleaseSeats{Refund: r.ID})
		w.paid(bob, 0)
		return []ledger.Command{ledger.ReleaseSeats{Refund: r.ID}}
	}, broken},
	{decide.GuardTransferValid, func(w *world) []ledger.Command {
		w.allow()
		o := w.paid(alice, 0)
		w.given(w.transfer(o.Tickets[0], bob))
		return []ledger.Command{w.transfer(o.Tickets[0], carol)}
	}, broken},
	{decide.GuardCheckInOnce, func(w *world) []ledger.Command {
		t := w.paid(alice, 0).Tickets[0]
		w.given(w.checkIn(t))
		w.pass(minute)
		return []ledger.Command{w.checkIn(t)}
	}, func(w *world, tried []ledger.Command) error {
		uses, err := w.ledger.CheckInsOf(context.Background(), tried[0].(ledger.CheckIn).Ticket)
		if err != nil {
			w.Fatal(err)
		}
		if len(uses) != 1 {
			return fmt.Errorf("E6: the ticket let in %d times", len(uses))
		}
		return nil
	}},
}
