package booking

import (
	"fmt"
	"testing"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// TestNothingStarves: more work than fits into a round, all of which fails or must wait, does not keep other work from
// its turn.
func TestNothingStarves(t *testing.T) {
	l := newLab(t)
	newOne := func(t *testing.T) (*world, *twisted) {
		store, webhooks := openers["model"](t, l)
		w := newWorld(t, l, store, webhooks, true)
		return w, w.twist(nil)
	}
	order := func(w *world, h ledger.Hold) id.ID {
		return w.command(ledger.BeginPayment{Order: w.ids.MustNext(0), Hold: h.ID, Customer: h.Customer, Provider: "sandbox"}).Order.ID
	}

	t.Run("A21: hundreds of refused refunds, and one payment to capture", func(t *testing.T) {
		w, p := newOne(t)
		defer w.close()
		h := w.hold(alice, 0)
		for k := range recoverMax + 10 {
			w.command(ledger.Confirm{
				Order: order(w, h), Payment: fmt.Sprint("refused-", k), Amount: 1, Currency: "EUR", Captured: true,
				Tickets: []id.ID{w.ids.MustNext(0)}, Refund: w.ids.MustNext(0),
			})
		}
		last := order(w, w.hold(bob, 1))
		w.command(ledger.Confirm{
			Order: last, Payment: "good", Amount: seatPrice, Currency: "EUR", Tickets: []id.ID{w.ids.MustNext(0)}, Refund: w.ids.MustNext(0),
		})
		p.lookup = func(order string) (found []payment.Payment, _ error) {
			for k := range recoverMax + 10 {
				found = append(found, payment.Payment{ID: fmt.Sprint("refused-", k), OrderID: order, State: payment.Captured, CapturedMinor: 1})
			}
			return found, nil
		}
		p.refund = func(string) error { return &payment.Refused{Op: "refund", Code: "no"} }
		captured := 0
		p.capture = func(_ string, amount int64) (payment.Payment, error) {
			captured++
			return payment.Payment{State: payment.Captured, CapturedMinor: amount}, nil
		}
		for range 3 {
			w.recover()
			w.pass(10 * minute)
		}
		if captured != 1 {
			t.Errorf("captured %d times", captured)
		}
		if n := len(w.alerts); n != recoverMax+10 {
			t.Errorf("%d alerts, want one for each refusal", n)
		}
	})

	t.Run("A19: hundreds of orders that the provider works on, and one that is paid", func(t *testing.T) {
		w, p := newOne(t)
		defer w.close()
		w.setEvent(func(e *ledger.Event) { e.HoldTTL = minute })
		for range recoverMax + 10 { // each loses its hold to the next; the provider does not let go of any
			order(w, w.hold(alice, 0))
			w.pass(6 * minute)
		}
		last := order(w, w.hold(carol, 1))
		p.lookup = func(order string) ([]payment.Payment, error) {
			state := payment.Pending
			if order == last.Text(id.Order) {
				state = payment.Captured
			}
			return []payment.Payment{{
				ID: "p" + order, OrderID: order, State: state, AmountMinor: seatPrice, CapturedMinor: seatPrice, Currency: "EUR",
			}}, nil
		}
		p.cancel = func(string) (payment.Ending, error) { return payment.Ending{Result: payment.EndingPending}, nil }
		for range 3 {
			w.pass(20 * second)
			w.recover()
		}
		w.wantNow(last, ledger.OrderPaid, "")
		if n := w.pending(); n != recoverMax+10 {
			t.Errorf("%d orders are PENDING", n)
		}
	})
}
