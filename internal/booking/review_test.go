package booking

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/sandbox"
)

// twisted is a provider of which single calls are replaced.
type twisted struct {
	*meddled
	name   string
	charge func(ctx context.Context, a payment.Attempt) (payment.Payment, error)
	lookup func(order string) ([]payment.Payment, error)
	refund func(p string) error

	capture func(p string, amount int64) (payment.Payment, error)
	cancel  func(order string) (payment.Ending, error)
}

func (t *twisted) Capture(ctx context.Context, p string, amount int64) (payment.Payment, error) {
	if t.capture != nil {
		return t.capture(p, amount)
	}
	return t.meddled.Capture(ctx, p, amount)
}

func (t *twisted) Cancel(ctx context.Context, order string) (payment.Ending, error) {
	if t.cancel != nil {
		return t.cancel(order)
	}
	return t.meddled.Cancel(ctx, order)
}

func (t *twisted) Name() string {
	if t.name != "" {
		return t.name
	}
	return t.meddled.Name()
}

func (t *twisted) Charge(ctx context.Context, a payment.Attempt) (payment.Payment, error) {
	if t.charge != nil {
		return t.charge(ctx, a)
	}
	return t.meddled.Charge(ctx, a)
}

func (t *twisted) Lookup(ctx context.Context, order string) ([]payment.Payment, error) {
	if t.lookup != nil {
		return t.lookup(order)
	}
	return t.meddled.Lookup(ctx, order)
}

func (t *twisted) Refund(ctx context.Context, p, refund string, amount int64) (payment.Refund, error) {
	if t.refund != nil {
		if err := t.refund(p); err != nil {
			return payment.Refund{}, err
		}
	}
	return t.meddled.Refund(ctx, p, refund, amount)
}

// twist puts a twisted provider before the service.
func (w *world) twist(change func(o *Options)) *twisted {
	p := &twisted{meddled: w.provider}
	w.options.Provider = p
	if change != nil {
		change(&w.options)
	}
	w.restart()
	return p
}

// untwist takes it away again.
func (w *world) untwist() {
	w.options.Provider, w.options.AttemptTimeout = w.provider, 0
	w.restart()
}

// unheard makes lost answers stay lost: the order is PENDING, and what the provider did is not known.
func (w *world) unheard(token string) (ledger.Order, Request) {
	w.Helper()
	w.meddling(func(op string, call func() error) error {
		if op == "Lookup" {
			return payment.Unknown(op, errAway)
		}
		return call()
	})
	r := w.request(w.hold(alice, 0), token, "k")
	f := w.bookFails(r, fault.PaymentUnavailable)
	w.meddling(nil)
	return w.wantNow(f.Order, ledger.OrderPending, ""), r
}

func TestOrdersEnd(t *testing.T) {
	lost := sandbox.Token(sandbox.FaultLostAnswer, sandbox.FaultWebhookNever)
	inWorlds(t, []scenario{
		{"A19: the provider let the money go before the order was PAID", func(w *world) []int64 {
			o, r := w.unheard(lost)
			p := w.books(o.ID)[0]
			if w.options.Authorize {
				if _, err := w.client.Void(w.ctx(), p.ID); err != nil {
					w.Fatalf("void: %v", err)
				}
			} else if _, err := w.client.Refund(w.ctx(), p.ID, "by-hand-"+p.ID, seatPrice); err != nil {
				w.Fatalf("refund: %v", err)
			}
			w.pass(20 * second)
			w.recover() // the hold lives, but no money can come for this order any more
			w.wantNow(o.ID, ledger.OrderExpired, "cancelled")
			w.wantState(w.mustBook(r), ledger.OrderExpired)
			w.wantState(w.mustBook(w.request(w.holdOf(o), sandbox.TokenSure, "k2")), ledger.OrderPaid)
			return nil
		}},
		{"one payment was let go, but another may still come: the order is not ended", func(w *world) []int64 {
			o, _ := w.unheard(sandbox.Token(sandbox.FaultServerError))
			p := w.twist(nil)
			both := []payment.Payment{{ID: "p1", State: payment.Voided}, {ID: "p2", State: payment.Pending}}
			p.lookup = func(string) ([]payment.Payment, error) { return both, nil }
			p.cancel = func(string) (payment.Ending, error) {
				return payment.Ending{Result: payment.EndingPaid, Payments: both}, nil
			}
			w.pass(11 * minute)
			w.recover()
			w.wantNow(o.ID, ledger.OrderPending, "")
			w.untwist()
			return nil
		}},
		{"a notice that the money went back already ends the order", func(w *world) []int64 {
			if w.options.Authorize {
				return nil
			}
			o, _ := w.unheard(sandbox.Token(sandbox.FaultLostAnswer))
			if _, err := w.client.Refund(w.ctx(), w.books(o.ID)[0].ID, "by-hand-"+o.ID.Text(id.Order), seatPrice); err != nil {
				w.Fatalf("refund: %v", err)
			}
			w.runDue(w)
			mail := w.mail()
			slices.Reverse(mail) // the last one comes first
			for _, body := range mail {
				if err := w.deliver(body); err != nil {
					w.Errorf("webhook: %v", err)
				}
				w.wantNow(o.ID, ledger.OrderExpired, "refunded")
			}
			w.wantAlerts("a payment is given back: late_payment") // the old picture of it: it went back already
			return nil
		}},
		{"a webhook that could not be settled is not taken", func(w *world) []int64 {
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultSecondPayment), "k"))
			w.runDue(w)
			mail := w.mail()
			w.meddling(func(op string, call func() error) error {
				if op == "WebhookKeep" {
					return call()
				}
				return fault.New(fault.Busy, "")
			})
			for _, body := range mail {
				if err := w.deliver(body); fault.CodeOf(err) != fault.Busy {
					w.Errorf("webhook %s: %v", body, err)
				}
			}
			w.meddling(nil)
			for _, body := range mail {
				if err := w.deliver(body); err != nil {
					w.Errorf("webhook: %v", err)
				}
			}
			w.wantMoney(o, w.taken(), w.booked(), w.gone())
			w.wantAlerts("a payment is given back: second_payment")
			return nil
		}},
		{"the provider never heard of it: its customer may come back for a while", func(w *world) []int64 {
			r := w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultServerError), "k")
			o := w.bookFails(r, fault.PaymentUnavailable).Order
			w.pass(30 * second)
			w.recover()
			w.wantNow(o, ledger.OrderPending, "")
			w.wantState(w.mustBook(r), ledger.OrderPaid)
			return nil
		}},
		{"ErrConflict: the same order with another token answers what stands", func(w *world) []int64 {
			r := w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultPending), "k")
			r.Key.Fields = nil // a caller whose key does not know the token
			o := w.mustBook(r)
			r.Token = sandbox.TokenSure
			again := w.mustBook(r)
			w.wantState(again, ledger.OrderPending)
			if again.ID != o.ID || len(w.books(o.ID)) != 1 {
				w.Errorf("order %d, first %d", again.ID, o.ID)
			}
			w.pass(payAfter)
			w.run()
			w.wantState(w.mustBook(r), ledger.OrderPaid)
			return nil
		}},
		{"ErrConflict, ErrInvalid: what can never be charged does not wait", func(w *world) []int64 {
			h := w.hold(alice, 0)
			for i, never := range []error{payment.ErrConflict, payment.ErrInvalid} {
				w.twist(nil).charge = func(context.Context, payment.Attempt) (payment.Payment, error) { return payment.Payment{}, never }
				o := w.mustBook(w.request(h, sandbox.TokenSure, fmt.Sprint(i)))
				w.wantNow(o.ID, ledger.OrderExpired, "invalid_request")
				w.wantAlerts("the provider cannot take a payment")
			}
			w.untwist()
			w.wantState(w.mustBook(w.request(h, sandbox.TokenSure, "k")), ledger.OrderPaid)
			return nil
		}},
		{"a decline in words that cannot be stored", func(w *world) []int64 {
			h := w.hold(alice, 0)
			w.twist(nil).charge = func(context.Context, payment.Attempt) (payment.Payment, error) {
				no := payment.Decline{Code: "no\x00\xff" + strings.Repeat("é", 1000), Final: true}
				return payment.Payment{State: payment.Declined, Decline: no}, nil
			}
			o := w.mustBook(w.request(h, sandbox.TokenSure, "k"))
			w.wantState(o, ledger.OrderFailed)
			w.untwist()
			return nil
		}},
		{"begun, but the answer of the ledger is lost", func(w *world) []int64 {
			for i, key := range []string{"k", ""} {
				lost := 0
				w.meddling(func(op string, call func() error) error {
					err := call()
					if op == "BeginPayment" && lost == 0 {
						lost++
						return fault.Wrap(fault.OutcomeUnknown, errAway)
					}
					return err
				})
				r := w.request(w.hold(alice, int32(i)), sandbox.TokenSure, key)
				w.wantState(w.mustBook(r), ledger.OrderPaid)
			}
			return nil
		}},
		{"one alert for one payment, though the answer of the ledger is lost", func(w *world) []int64 {
			lost := 0
			w.meddling(func(op string, call func() error) error {
				err := call()
				if op == "Confirm" && lost == 0 {
					lost++
					return fault.Wrap(fault.OutcomeUnknown, errAway)
				}
				return err
			})
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultWrongAmount), "k"))
			w.wantNow(o.ID, ledger.OrderFailed, ledger.ReasonWrongAmount)
			w.run()
			w.pass(minute)
			w.recover()
			w.wantAlerts("a payment is given back")
			return nil
		}},
		{"the order of another provider is not asked for here, nor cancelled", func(w *world) []int64 {
			other := w.twist(nil)
			other.name = "other"
			r := w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultPending, sandbox.FaultWebhookRepeat), "k")
			o := w.mustBook(r)
			w.wantState(o, ledger.OrderPending)
			w.untwist()
			cancels := w.did("Cancel")
			w.bookFails(r, fault.PaymentUnavailable)
			for range 20 {
				w.pass(minute)
				w.recover()
			}
			w.wantNow(o.ID, ledger.OrderPending, "")
			if n := w.did("Cancel"); n != cancels {
				w.Errorf("cancelled at the wrong provider")
			}
			w.wantAlerts("cannot settle a pending order")
			w.options.Provider = other
			w.restart()
			w.run()
			w.wantState(w.order(o.ID), ledger.OrderPaid)
			return nil
		}},
	})
}

func TestGivingBack(t *testing.T) {
	inWorlds(t, []scenario{
		{"a refused refund does not keep the next from its turn", func(w *world) []int64 {
			if w.options.Authorize {
				return nil
			}
			p := w.twist(nil)
			p.refund = func(string) error { return payment.Unknown("refund", errAway) }
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultWrongAmount, sandbox.FaultSecondPayment), "k"))
			w.wantNow(o.ID, ledger.OrderFailed, ledger.ReasonWrongAmount)
			w.run()
			w.wantAlerts("a payment is given back: wrong_amount", "a payment is given back: late_payment")
			first := w.books(o.ID)[0].ID
			p.refund = func(id string) error {
				if id == first {
					return &payment.Refused{Op: "refund", Code: "no"}
				}
				return nil
			}
			for range 5 {
				w.pass(minute)
				w.recover()
			}
			w.wantMoney(o, seatPrice-1, payment.Captured, payment.Captured)
			w.wantAlerts("the provider refused a refund")
			w.wantRefused(1)
			return []int64{seatPrice - 1}
		}},
		{"money that went back by somebody's hand is not given back again", func(w *world) []int64 {
			if w.options.Authorize {
				return nil
			}
			p := w.twist(nil)
			p.refund = func(string) error { return payment.Unknown("refund", errAway) }
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultWrongAmount), "k"))
			w.wantAlerts("a payment is given back")
			if _, err := w.client.Refund(w.ctx(), w.books(o.ID)[0].ID, "by-hand", seatPrice-1); err != nil {
				w.Fatalf("refund: %v", err)
			}
			w.pass(minute)
			w.recover()
			if w.open() != 0 {
				w.Errorf("%d payments are open", w.open())
			}
			return nil
		}},
		{"A18: an authorization that ran out at the provider", func(w *world) []int64 {
			if !w.options.Authorize {
				return nil
			}
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.TokenSure, "k"))
			if _, err := w.client.Void(w.ctx(), w.books(o.ID)[0].ID); err != nil {
				w.Fatalf("void: %v", err)
			}
			w.run()
			w.wantNow(o.ID, ledger.OrderRefunded, ledger.ReasonCaptureRefused)
			w.wantAlerts("capture refused (voided_by_provider)")
			return nil
		}},
		{"killed after the capture: its webhook says so, and nobody needs to ask again", func(w *world) []int64 {
			if !w.options.Authorize {
				return nil
			}
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.TokenSure, "k"))
			w.killAt(2) // after Capture's effect
			if !w.process(func() { w.recover() }) {
				w.Errorf("not killed")
			}
			if w.open() != 1 {
				w.Errorf("%d payments are open", w.open())
			}
			w.run()
			if w.open() != 0 {
				w.Errorf("%d payments are open after the webhook", w.open())
			}
			w.wantMoney(o, seatPrice, payment.Captured)
			return nil
		}},
		{"captured between the ledger's two looks at it", func(w *world) []int64 {
			if !w.options.Authorize {
				return nil
			}
			// A webhook makes it PAID and it is captured, all while the customer's request waits for its answer.
			w.meddling(func(op string, call func() error) error {
				err := call()
				if op == "Charge" {
					w.meddling(nil)
					w.run()
					w.recover()
				}
				return err
			})
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.TokenSure, "k"))
			w.wantState(o, ledger.OrderPaid)
			w.wantMoney(o, seatPrice, payment.Captured)
			return nil
		}},
	})
}

// Two accounts may lie at one provider's, one after the other in use: an order that was begun with one is none of the
// other's, though its id is right.
func TestWebhookOfAnotherProvider(t *testing.T) {
	l := newLab(t)
	store, webhooks := openers["model"](t, l)
	w := newWorld(t, l, store, webhooks, false)
	defer w.close()
	other := w.twist(nil)
	other.name = "other"
	o := w.mustBook(w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultPending), "k"))
	w.untwist()
	w.pass(payAfter)
	w.run()
	w.wantNow(o.ID, ledger.OrderPending, "")
	w.wantAlerts("a payment came for an order that is not known")
	w.options.Provider = other
	w.restart()
	w.pass(minute)
	w.recover()
	w.wantNow(o.ID, ledger.OrderPaid, "")
}

func TestCapturedByHand(t *testing.T) {
	l := newLab(t)
	store, webhooks := openers["model"](t, l)
	w := newWorld(t, l, store, webhooks, true)
	defer w.close()
	o := w.mustBook(w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultWebhookNever), "k"))
	if _, err := w.client.Capture(w.ctx(), w.books(o.ID)[0].ID, seatPrice-100); err != nil {
		w.Fatalf("capture: %v", err)
	}
	w.calm(0)
	w.wantAlerts("another amount was captured")
	if found := w.problems(0); len(found) != 2 { // the order's, and the sum
		w.Errorf("the check of money finds %q", found)
	}
}

func TestDeadLetters(t *testing.T) {
	inWorlds(t, []scenario{
		{"A20: a payment for an unknown order is given back after a while, and told once", func(w *world) []int64 {
			a := w.strange()
			w.runDue(w)
			mail := w.mail()
			for range 2 {
				for _, body := range mail {
					if err := w.deliver(body); err != nil {
						w.Errorf("webhook: %v", err)
					}
				}
			}
			w.wantAlerts("a payment came for an order that is not known")
			w.pass(59 * minute)
			w.recover()
			if p := w.lookup(a.OrderID); !hasMoney(p) {
				w.Errorf("it was given back at once: %+v", p)
			}
			w.pass(2 * minute)
			w.recover()
			if p := w.lookup(a.OrderID); hasMoney(p) {
				w.Errorf("it is not given back: %+v", p)
			}
			w.run() // of the refund
			w.pass(2 * hour)
			w.recover()
			w.wantAlerts()
			return nil
		}},
		{"A20: the provider refuses to give a dead letter's payment back: told once a day", func(w *world) []int64 {
			if w.options.Authorize {
				return nil
			}
			a := w.strange(sandbox.FaultRefundRefused)
			w.run()
			w.wantAlerts("a payment came for an order that is not known")
			w.pass(2 * hour)
			for range 30 {
				w.recover()
				w.pass(minute)
			}
			w.wantAlerts("cannot give back the payment of an unknown order")
			if p := w.lookup(a.OrderID); !hasMoney(p) {
				w.Errorf("it is given back: %+v", p)
			}
			w.forgive(a)
			return nil
		}},
		{"a dead letter of another provider stays", func(w *world) []int64 {
			other := w.twist(nil)
			other.name = "other"
			a := w.strange()
			w.run()
			w.wantAlerts("a payment came for an order that is not known")
			w.untwist()
			w.pass(2 * hour)
			w.recover()
			w.recover()
			w.wantAlerts("cannot give back the payment of an unknown order")
			w.options.Provider = other
			w.restart()
			w.recover()
			if p := w.lookup(a.OrderID); hasMoney(p) {
				w.Errorf("it is not given back: %+v", p)
			}
			w.untwist()
			return nil
		}},
		{"a payment without an order is not ours to give back", func(w *world) []int64 {
			a := w.strange()
			w.runDue(w)
			for _, body := range w.mail() {
				if err := w.deliver(bytes.ReplaceAll(body, []byte(a.OrderID), nil)); err != nil {
					w.Errorf("webhook: %v", err)
				}
			}
			w.wantAlerts("a payment came that names no order")
			w.pass(2 * hour)
			w.recover()
			if p := w.lookup(a.OrderID); !hasMoney(p) {
				w.Errorf("it is given back: %+v", p)
			}
			return nil
		}},
		{"webhooks that are not the provider's", func(w *world) []int64 {
			w.strange()
			w.runDue(w)
			body := w.mail()[0]
			header := w.signed(body)
			if err := w.service.Webhook(w.ctx(), header, append(body, ' ')); !errors.Is(err, payment.ErrSignature) {
				w.Errorf("changed: %v", err)
			}
			w.pass(6 * minute)
			if err := w.service.Webhook(w.ctx(), header, body); !errors.Is(err, payment.ErrStale) {
				w.Errorf("old: %v", err)
			}
			w.wantAlerts()
			return nil
		}},
	})
}

// strange is a payment at the provider for an order that the ledger does not know.
func (w *world) strange(faults ...sandbox.Fault) payment.Attempt {
	w.Helper()
	a := payment.Attempt{
		OrderID: w.ids.MustNext(0).Text(id.Order), AmountMinor: 777, Currency: "EUR", Token: sandbox.Token(faults...),
		AuthorizeOnly: w.options.Authorize,
	}
	w.noticed[a.OrderID] = true
	if _, err := w.client.Charge(w.ctx(), a); err != nil {
		w.Fatalf("charge: %v", err)
	}
	return a
}

// forgive forgets the webhooks of an order.
func (w *world) forgive(a payment.Attempt) { delete(w.noticed, a.OrderID) }

func (w *world) lookup(order string) payment.Payment {
	w.Helper()
	found, err := w.client.Lookup(w.ctx(), order)
	if err != nil || len(found) != 1 {
		w.Fatalf("lookup: %d payments, %v", len(found), err)
	}
	return found[0]
}

// retries must not grow with what fails, and must forget what has ended.
func TestRetriesAreBounded(t *testing.T) {
	r := &retries{after: map[string]*retry{}}
	for i := range retriesKept + 100 {
		r.failed(fmt.Sprint(i), 1000, errAway)
	}
	if n := r.count(); n != retriesKept {
		t.Errorf("%d kept, want %d", n, retriesKept)
	}
	wait := time.Duration(0)
	for range 20 {
		r.failed("0", 0, errAway)
		wait = time.Duration(r.after["0"].next) * time.Millisecond
	}
	if wait != retryMost {
		t.Errorf("the wait grows to %v, want %v", wait, retryMost)
	}
	r.forget(ledger.Time(3 * hour))
	if n := r.count(); n != 0 {
		t.Errorf("%d kept after hours", n)
	}
}
