package booking

import (
	"context"
	"slices"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/sandbox"
)

// A lossy shard loses the first answer to each retry of a refund, after it has been done.
type lossy struct {
	Shard
	lost bool
}

func (s *lossy) Do(ctx context.Context, c ledger.Command) (ledger.Result, error) {
	r, err := s.Shard.Do(ctx, c)
	if _, ok := c.(ledger.RetryRefund); ok && !s.lost {
		s.lost = true
		return ledger.Result{}, &fault.Error{Code: fault.OutcomeUnknown}
	}
	return r, err
}

func TestRefundsGoneWrong(t *testing.T) {
	inWorlds(t, []scenario{
		{"A2, A21: a retry whose outcome was unknown is no conflict with itself", func(w *world) []int64 {
			w.opened()
			o := w.bought(alice, 0)
			p := w.twist(func(o *Options) { o.Shard = &lossy{Shard: o.Shard} })
			p.refund = func(string) error { return &payment.Refused{Op: "refund", Code: "no"} }
			f := w.mustGiveBack(o, "r")
			w.wantAlerts("the provider refused a refund")
			p.refund = nil
			f, err := w.service.RetryRefund(w.ctx(), f.ID)
			if err != nil || f.State != ledger.RefundSeatReleased || f.Try != 1 {
				w.Errorf("the retry: %+v, %v", f, err)
			}
			if _, err := w.service.RetryRefund(w.ctx(), f.ID); fault.CodeOf(err) != fault.Conflict {
				w.Errorf("a retry of what is done: %v", err)
			}
			w.wantMoney(o, seatKept, payment.Captured)
			w.untwist()
			return nil
		}},
		{"A21: money that the provider never had is told of, once", func(w *world) []int64 {
			w.opened()
			o := w.bought(alice, 0)
			p := w.twist(nil)
			p.lookup = func(order string) ([]payment.Payment, error) {
				return []payment.Payment{{ID: o.Payment, OrderID: order, State: payment.Voided}}, nil
			}
			w.mustGiveBack(o, "r")
			for range 5 {
				w.pass(2 * minute)
				w.recover()
			}
			w.wantAlerts("cannot give a payment back")
			w.untwist()
			return nil
		}},
		{"I6: money that somebody gave back in the provider's console, while the tickets are valid, is told of", func(w *world) []int64 {
			w.opened()
			o := w.bought(alice, 0, 1)
			w.mustGiveBack(o, "r", 0)
			w.run()
			w.wantAlerts() // what was asked for here is no news
			if _, err := w.client.Refund(w.ctx(), o.Payment, "by-hand-"+o.ID.Text(id.Order), 50); err != nil {
				w.Fatalf("refund: %v", err)
			}
			w.run()
			w.wantAlerts("more of payment " + o.Payment + " went back than was asked for here: 50")
			w.wantNow(o.ID, ledger.OrderPaid, "")
			return []int64{-50}
		}},
		{"A16: a payment to be given back, of which the provider says that it never was one, is told of", func(w *world) []int64 {
			if w.options.Authorize { // then it was let go at once
				return nil
			}
			p := w.twist(nil)
			p.refund = func(string) error { return payment.Unknown("refund", errAway) }
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultWrongAmount), "k"))
			w.wantAlerts("a payment is given back")
			p.lookup = func(order string) ([]payment.Payment, error) {
				return []payment.Payment{{ID: w.paymentOf(o.ID), OrderID: order, State: payment.Cancelled}}, nil
			}
			for range 5 {
				w.pass(2 * minute)
				w.recover()
			}
			w.wantAlerts("cannot give a payment back")
			w.untwist()
			return nil
		}},
		{"I13: while as many talk with the provider as may, a refund is begun and its money left to recovery", func(w *world) []int64 {
			w.opened()
			o := w.bought(alice, 0)
			w.options.TalksMax = 1
			w.restart()
			w.service.talks <- struct{}{}
			w.ops = nil
			f := w.mustGiveBack(o, "r")
			if f.State != ledger.RefundRequested || slices.Contains(w.ops, "Refund") {
				w.Errorf("the refund is %s after the calls %v", f.State, w.ops)
			}
			<-w.service.talks
			w.recover()
			w.wantMoney(o, seatKept, payment.Captured)
			w.options.TalksMax = 0
			w.restart()
			return nil
		}},
		{"a payment that is given back whole is no news to its webhook", func(w *world) []int64 {
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultWrongAmount), "k"))
			w.wantAlerts("a payment is given back")
			w.run()
			w.wantAlerts()
			w.wantNow(o.ID, ledger.OrderFailed, ledger.ReasonWrongAmount)
			return nil
		}},
	})
}

// paymentOf is the only payment that the ledger knows of an order.
func (w *world) paymentOf(order id.ID) string {
	w.Helper()
	known, err := w.store.Payments(context.Background(), order)
	if err != nil || len(known) != 1 {
		w.Fatalf("payments of order %d: %v, %v", order, known, err)
	}
	return known[0].ID
}

// A failing shard does the first BeginPayment without saying so, and is then busy for everything.
type failing struct {
	Shard
	busy bool
}

func (s *failing) Do(ctx context.Context, c ledger.Command) (ledger.Result, error) {
	if s.busy {
		return ledger.Result{}, &fault.Error{Code: fault.Busy}
	}
	if _, ok := c.(ledger.BeginPayment); ok {
		s.busy = true
		if _, err := s.Shard.Do(ctx, c); err != nil {
			return ledger.Result{}, err
		}
		return ledger.Result{}, &fault.Error{Code: fault.OutcomeUnknown}
	}
	return s.Shard.Do(ctx, c)
}

// TestBeginUnknown: A2. Who attends an order that may have been begun is not forgotten because a later try failed.
func TestBeginUnknown(t *testing.T) {
	l := newLab(t)
	store, webhooks := openers["model"](t, l)
	w := newWorld(t, l, store, webhooks, false)
	defer w.close()
	whole := w.options.Shard
	w.options.Shard = &failing{Shard: whole}
	w.restart()
	named := map[id.ID]bool{}
	r := w.request(w.hold(alice, 0), sandbox.TokenSure, "k")
	r.Before = func(_ context.Context, order id.ID) error { named[order] = true; return nil }
	r.Unused = func(_ context.Context, order id.ID) { delete(named, order) }
	w.bookFails(r, fault.OutcomeUnknown)
	w.options.Shard = whole
	w.restart()
	o := w.mustBook(r)
	w.wantState(o, ledger.OrderPaid)
	if !named[o.ID] || len(named) != 1 {
		t.Errorf("orders with attendees: %v; the order is %d", named, o.ID)
	}
}
