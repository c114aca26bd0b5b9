// Package paymenttest is the contract of the payment port as tests: Exercise runs it on one provider. Every adapter
// runs it in its own tests; what only some can do is exercised where the provider has the capability.
//
// Start reading at Exercise.
package paymenttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"onsale/internal/payment"
)

// Subject is a provider under test with tokens of its own.
type Subject struct {
	Provider      payment.Provider
	TokenPaid     string // always pays, at once; its refunds are done at once
	TokenDeclined string // always a final decline, at once
}

var orderCount atomic.Int64

// order is an attempt under an order id that no other test uses.
func (s Subject) order(token string, amountMinor int64) payment.Attempt {
	return payment.Attempt{OrderID: fmt.Sprintf("ord_exercise_%d", orderCount.Add(1)), AmountMinor: amountMinor, Currency: "EUR",
		Token: token, CustomerRef: "cus_1"}
}

// Exercise runs the contract. The subject may hold other payments already.
func Exercise(t *testing.T, s Subject) {
	t.Run("charge", func(t *testing.T) { exerciseCharge(t, s) })
	t.Run("invalid", func(t *testing.T) { exerciseInvalid(t, s) })
	t.Run("cancel", func(t *testing.T) { exerciseCancel(t, s) })
	t.Run("parallel", func(t *testing.T) { exerciseParallel(t, s) })
	if r, ok := s.Provider.(payment.Refunder); ok {
		t.Run("refund", func(t *testing.T) { exerciseRefund(t, s, r) })
	}
	if a, ok := s.Provider.(payment.Authorizer); ok {
		t.Run("authorize", func(t *testing.T) { exerciseAuthorize(t, s, a) })
	} else {
		t.Run("charge only", func(t *testing.T) {
			a := s.order(s.TokenPaid, 100)
			a.AuthorizeOnly = true
			_, err := s.Provider.Charge(t.Context(), a)
			wantError(t, err, payment.ErrInvalid)
			wantPayments(t, s, a.OrderID)
		})
	}
	if l, ok := s.Provider.(payment.Lister); ok {
		t.Run("list", func(t *testing.T) { exerciseList(t, s, l) })
	}
	if n, ok := s.Provider.(payment.Notifier); ok {
		t.Run("webhook", func(t *testing.T) { exerciseWebhook(t, n) })
	}
}

func exerciseCharge(t *testing.T, s Subject) {
	a := s.order(s.TokenPaid, 4250)
	wantPayments(t, s, a.OrderID)
	first := charge(t, s, a)
	if first.State != payment.Captured || first.CapturedMinor != 4250 || first.AmountMinor != 4250 || first.Currency != "EUR" ||
		first.OrderID != a.OrderID || first.ID == "" || first.RefundedMinor != 0 || first.Decline != (payment.Decline{}) {
		t.Fatalf("charged: %+v", first)
	}
	if again := charge(t, s, a); again.ID != first.ID || again.State != payment.Captured {
		t.Fatalf("the same charge again: %+v, first %+v", again, first)
	}
	for name, change := range map[string]func(*payment.Attempt){
		"amount": func(a *payment.Attempt) { a.AmountMinor++ }, "currency": func(a *payment.Attempt) { a.Currency = "CNY" },
		"token": func(a *payment.Attempt) { a.Token = s.TokenDeclined },
	} {
		other := a
		change(&other)
		if _, err := s.Provider.Charge(t.Context(), other); !errors.Is(err, payment.ErrConflict) {
			t.Errorf("same order, other %s: %v", name, err)
		}
	}
	wantPayments(t, s, a.OrderID, payment.Captured)

	no := s.order(s.TokenDeclined, 100)
	p := charge(t, s, no)
	if p.State != payment.Declined || !p.Decline.Final || p.Decline.Code == "" || p.CapturedMinor != 0 || p.AuthorizedMinor != 0 {
		t.Fatalf("declined: %+v", p)
	}
	if again := charge(t, s, no); again.State != payment.Declined || again.ID != p.ID {
		t.Fatalf("declined again: %+v", again)
	}
	wantPayments(t, s, no.OrderID, payment.Declined)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gone := s.order(s.TokenPaid, 100)
	if _, err := s.Provider.Charge(ctx, gone); err != nil && !errors.Is(err, payment.ErrUnknown) {
		t.Fatalf("a charge whose caller has gone is unknown, not: %v", err)
	}
}

func exerciseInvalid(t *testing.T, s Subject) {
	for name, change := range map[string]func(*payment.Attempt){
		"no order":        func(a *payment.Attempt) { a.OrderID = "" },
		"long order":      func(a *payment.Attempt) { a.OrderID = strings.Repeat("a", payment.IDBytesMax+1) },
		"path in order":   func(a *payment.Attempt) { a.OrderID = "../payments" },
		"zero":            func(a *payment.Attempt) { a.AmountMinor = 0 },
		"negative":        func(a *payment.Attempt) { a.AmountMinor = -1 },
		"no currency":     func(a *payment.Attempt) { a.Currency = "" },
		"small currency":  func(a *payment.Attempt) { a.Currency = "eur" },
		"no token":        func(a *payment.Attempt) { a.Token = "" },
		"long token":      func(a *payment.Attempt) { a.Token = strings.Repeat("a", payment.TokenBytesMax+1) },
		"name as a cusId": func(a *payment.Attempt) { a.CustomerRef = "Ada Lovelace" },
	} {
		a := s.order(s.TokenPaid, 100)
		good := a.OrderID
		change(&a)
		if _, err := s.Provider.Charge(t.Context(), a); !errors.Is(err, payment.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		wantPayments(t, s, good)
	}
	_, err := s.Provider.Lookup(t.Context(), "a/b")
	wantError(t, err, payment.ErrInvalid)
	_, err = s.Provider.Cancel(t.Context(), "")
	wantError(t, err, payment.ErrInvalid)
}

func exerciseCancel(t *testing.T, s Subject) {
	t.Run("A19: an order never seen becomes impossible", func(t *testing.T) {
		a := s.order(s.TokenPaid, 100)
		wantEnding(t, s, a.OrderID, payment.EndingCancelled)
		if p := charge(t, s, a); p.State != payment.Cancelled || p.CapturedMinor != 0 {
			t.Fatalf("charged after cancel: %+v", p)
		}
		charge(t, s, a)
		wantEnding(t, s, a.OrderID, payment.EndingCancelled)
	})
	t.Run("a paid order stays paid", func(t *testing.T) {
		a := s.order(s.TokenPaid, 100)
		charge(t, s, a)
		wantEnding(t, s, a.OrderID, payment.EndingPaid)
		wantEnding(t, s, a.OrderID, payment.EndingPaid)
		wantPayments(t, s, a.OrderID, payment.Captured)
	})
	t.Run("a declined order stays declined", func(t *testing.T) {
		a := s.order(s.TokenDeclined, 100)
		charge(t, s, a)
		wantEnding(t, s, a.OrderID, payment.EndingDeclined)
		wantPayments(t, s, a.OrderID, payment.Declined)
	})
}

// exerciseParallel charges and cancels the same orders at once: one payment each, and a cancelled order is never paid.
func exerciseParallel(t *testing.T, s Subject) {
	const callers = 16
	for range 4 {
		a := s.order(s.TokenPaid, 777)
		var ids sync.Map
		var ending payment.Ending
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				if i == callers/2 {
					var err error
					if ending, err = s.Provider.Cancel(t.Context(), a.OrderID); err != nil {
						t.Errorf("cancel: %v", err)
					}
					return
				}
				p, err := s.Provider.Charge(t.Context(), a)
				if err != nil {
					t.Errorf("charge: %v", err)
					return
				}
				ids.Store(p.ID, p.State)
			})
		}
		all.Wait()
		count, state := 0, payment.State("")
		for _, v := range ids.Range {
			count++
			state = v.(payment.State)
		}
		if count != 1 {
			t.Fatalf("%d payments of one order", count)
		}
		want := map[payment.EndingResult]payment.State{payment.EndingCancelled: payment.Cancelled, payment.EndingPaid: payment.Captured}[ending.Result]
		if state != want {
			t.Fatalf("cancel says %s, the payment is %s", ending.Result, state)
		}
	}
}

func exerciseRefund(t *testing.T, s Subject, r payment.Refunder) {
	a := s.order(s.TokenPaid, 1000)
	p := charge(t, s, a)
	id := func(n int) string { return fmt.Sprintf("rfd_%s_%d", a.OrderID, n) }
	first, err := r.Refund(t.Context(), p.ID, id(1), 400)
	if err != nil || first.ID != id(1) || first.PaymentID != p.ID || first.AmountMinor != 400 || first.State != payment.RefundDone {
		t.Fatalf("refund: %+v, %v", first, err)
	}
	again, err := r.Refund(t.Context(), p.ID, id(1), 400)
	if err != nil || again != first {
		t.Fatalf("the same refund again: %+v, %v; first %+v", again, err, first)
	}
	_, err = r.Refund(t.Context(), p.ID, id(1), 401)
	wantError(t, err, payment.ErrConflict)
	other := charge(t, s, s.order(s.TokenPaid, 1000))
	_, err = r.Refund(t.Context(), other.ID, id(1), 400)
	wantError(t, err, payment.ErrConflict)
	for range 2 { // a refusal is kept under its id like a refund
		_, err = r.Refund(t.Context(), p.ID, id(2), 601)
		wantRefused(t, err, "refund")
	}
	if _, err = r.Refund(t.Context(), p.ID, id(3), 600); err != nil {
		t.Fatalf("refund of the rest: %v", err)
	}
	_, err = r.Refund(t.Context(), p.ID, id(4), 1)
	wantRefused(t, err, "refund")
	_, err = r.Refund(t.Context(), p.ID, id(5), 0)
	wantError(t, err, payment.ErrInvalid)
	_, err = r.Refund(t.Context(), p.ID, "", 1)
	wantError(t, err, payment.ErrInvalid)
	_, err = r.Refund(t.Context(), "pay_unknown", id(6), 1)
	wantError(t, err, payment.ErrNotFound)
	no := charge(t, s, s.order(s.TokenDeclined, 1000))
	_, err = r.Refund(t.Context(), no.ID, id(7), 1)
	wantRefused(t, err, "refund")

	found := wantPayments(t, s, a.OrderID, payment.Captured)[0]
	if found.RefundedMinor != 1000 || found.CapturedMinor != 1000 || len(found.Refunds) != 2 || found.Refunds[0] != first {
		t.Fatalf("after the refunds: %+v", found)
	}
	if found := wantPayments(t, s, other.OrderID, payment.Captured)[0]; found.RefundedMinor != 0 || len(found.Refunds) != 0 {
		t.Fatalf("another payment changed: %+v", found)
	}
	wantEnding(t, s, a.OrderID, payment.EndingPaid)

	// At once, only as many as the money is enough for.
	p = charge(t, s, s.order(s.TokenPaid, 500))
	var given, refused atomic.Int64
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			_, err := r.Refund(t.Context(), p.ID, fmt.Sprintf("rfd_%s_%d", p.OrderID, i), 100)
			var no *payment.Refused
			switch {
			case err == nil:
				given.Add(1)
			case errors.As(err, &no):
				refused.Add(1)
			default:
				t.Errorf("refund: %v", err)
			}
		})
	}
	all.Wait()
	if given.Load() != 5 || refused.Load() != 5 {
		t.Fatalf("%d refunds given and %d refused of ten that ask for a fifth", given.Load(), refused.Load())
	}
}

func exerciseAuthorize(t *testing.T, s Subject, c payment.Authorizer) {
	authorize := func(amountMinor int64) payment.Payment {
		t.Helper()
		a := s.order(s.TokenPaid, amountMinor)
		a.AuthorizeOnly = true
		p := charge(t, s, a)
		if p.State != payment.Authorized || p.AuthorizedMinor != amountMinor || p.CapturedMinor != 0 {
			t.Fatalf("authorized: %+v", p)
		}
		a.AuthorizeOnly = false
		_, err := s.Provider.Charge(t.Context(), a)
		wantError(t, err, payment.ErrConflict)
		return p
	}
	p := authorize(1000)
	wantEnding(t, s, p.OrderID, payment.EndingPaid)
	_, err := c.Capture(t.Context(), p.ID, 1001)
	wantError(t, err, payment.ErrInvalid)
	_, err = c.Capture(t.Context(), p.ID, 0)
	wantError(t, err, payment.ErrInvalid)
	for range 2 {
		got, err := c.Capture(t.Context(), p.ID, 900)
		if err != nil || got.State != payment.Captured || got.CapturedMinor != 900 || got.AuthorizedMinor != 1000 {
			t.Fatalf("capture: %+v, %v", got, err)
		}
	}
	_, err = c.Capture(t.Context(), p.ID, 901)
	wantError(t, err, payment.ErrConflict)
	_, err = c.Void(t.Context(), p.ID)
	wantRefused(t, err, "void")
	wantPayments(t, s, p.OrderID, payment.Captured)

	p = authorize(1000)
	for range 2 {
		got, err := c.Void(t.Context(), p.ID)
		if err != nil || got.State != payment.Voided || got.CapturedMinor != 0 {
			t.Fatalf("void: %+v, %v", got, err)
		}
	}
	_, err = c.Capture(t.Context(), p.ID, 1000)
	wantRefused(t, err, "capture")
	wantPayments(t, s, p.OrderID, payment.Voided)

	declined := charge(t, s, s.order(s.TokenDeclined, 100))
	_, err = c.Capture(t.Context(), declined.ID, 100)
	wantRefused(t, err, "capture")
	_, err = c.Void(t.Context(), declined.ID)
	wantRefused(t, err, "void")
	_, err = c.Capture(t.Context(), "pay_unknown", 100)
	wantError(t, err, payment.ErrNotFound)
	_, err = c.Void(t.Context(), "pay_unknown")
	wantError(t, err, payment.ErrNotFound)
}

func exerciseList(t *testing.T, s Subject, l payment.Lister) {
	want := map[string]payment.State{}
	for i := range payment.PageMax + 20 {
		token := s.TokenPaid
		if i%10 == 0 {
			token = s.TokenDeclined
		}
		p := charge(t, s, s.order(token, 100))
		want[p.ID] = p.State
	}
	seen := map[string]bool{}
	for cursor, pages := "", 0; ; pages++ {
		page, err := l.List(t.Context(), cursor)
		if err != nil || len(page.Payments) > payment.PageMax || pages > 1000 {
			t.Fatalf("page %d of %d payments: %v", pages, len(page.Payments), err)
		}
		for _, p := range page.Payments {
			if seen[p.ID] {
				t.Fatalf("payment %s comes twice", p.ID)
			}
			seen[p.ID] = true
			if state, ok := want[p.ID]; ok && state != p.State {
				t.Fatalf("payment %s is %s, want %s", p.ID, p.State, state)
			}
			delete(want, p.ID)
			given := int64(0)
			for _, r := range p.Refunds {
				if r.State == payment.RefundDone {
					given += r.AmountMinor
				}
			}
			if given != p.RefundedMinor || given > p.CapturedMinor {
				t.Fatalf("refunds of %+v are %d", p, given)
			}
		}
		if page.Next == "" {
			break
		}
		cursor = page.Next
	}
	if len(want) > 0 {
		t.Fatalf("%d payments are not listed", len(want))
	}
	_, err := l.List(t.Context(), "not a cursor")
	wantError(t, err, payment.ErrInvalid)
}

type header map[string]string

func (h header) Get(name string) string { return h[name] }

func exerciseWebhook(t *testing.T, n payment.Notifier) {
	_, err := n.ParseWebhook(header{}, []byte(`{}`))
	wantError(t, err, payment.ErrSignature)
	_, err = n.ParseWebhook(header{}, make([]byte, payment.WebhookBytesMax+1))
	wantError(t, err, payment.ErrMalformed)
}

func charge(t *testing.T, s Subject, a payment.Attempt) payment.Payment {
	t.Helper()
	p, err := s.Provider.Charge(t.Context(), a)
	if err != nil {
		t.Fatalf("charge: %v", err)
	}
	return p
}

// wantPayments checks the states of all payments of an order as Lookup lists them.
func wantPayments(t *testing.T, s Subject, orderID string, states ...payment.State) []payment.Payment {
	t.Helper()
	found, err := s.Provider.Lookup(t.Context(), orderID)
	if err != nil || len(found) != len(states) {
		t.Fatalf("lookup of %s: %d payments, %v; want %v", orderID, len(found), err, states)
	}
	for i, p := range found {
		if p.State != states[i] {
			t.Fatalf("payment %d of %s is %s, want %s", i, orderID, p.State, states[i])
		}
	}
	return found
}

func wantEnding(t *testing.T, s Subject, orderID string, want payment.EndingResult) {
	t.Helper()
	if got, err := s.Provider.Cancel(t.Context(), orderID); err != nil || got.Result != want {
		t.Fatalf("cancel of %s: %s, %v; want %s", orderID, got.Result, err, want)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func wantRefused(t *testing.T, err error, op string) {
	t.Helper()
	var refused *payment.Refused
	if !errors.As(err, &refused) || refused.Op != op || refused.Code == "" {
		t.Fatalf("error %v, want a refused %s", err, op)
	}
}
