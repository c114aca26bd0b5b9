package stripe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bojanz/currency"

	"onsale/internal/payment"
	"onsale/internal/payment/stripe/stripetest"
)

// authorized is a payment that is reserved.
func (b *bench) authorized(t *testing.T) payment.Payment {
	t.Helper()
	a := b.order(stripetest.Visa)
	a.AuthorizeOnly = true
	return b.charge(t, a, payment.Authorized)
}

func wantRefused(t *testing.T, err error, op, code string) {
	t.Helper()
	var no *payment.Refused
	if !errors.As(err, &no) || *no != (payment.Refused{Op: op, Code: code}) {
		t.Fatalf("%v, want %s refused: %s", err, op, code)
	}
}

// lost are the faults after which nobody knows whether a call was done.
var lost = []stripetest.FaultKind{stripetest.LoseRequest, stripetest.LoseAnswer, stripetest.ErrorKept, stripetest.ErrorAfterKept, stripetest.Garbage}

func TestCaptureThatGetsLost(t *testing.T) {
	for _, kind := range lost {
		b := newBench(t, nil)
		p := b.authorized(t)
		b.Inject(stripetest.Fault{Kind: kind, Call: "capture"})
		if _, err := b.client.Capture(t.Context(), p.ID, 4250); !errors.Is(err, payment.ErrUnknown) {
			t.Fatalf("fault %d: %v", kind, err)
		}
		got, err := b.client.Capture(t.Context(), p.ID, 4250)
		if err != nil || got.State != payment.Captured || got.CapturedMinor != 4250 || got.AuthorizedMinor != 4250 {
			t.Fatalf("fault %d: %+v, %v", kind, got, err)
		}
		if n := len(b.Events("charge.captured")); n != 1 {
			t.Fatalf("captured %d times", n)
		}
	}
}

func TestVoidThatGetsLost(t *testing.T) {
	for _, kind := range lost {
		b := newBench(t, nil)
		p := b.authorized(t)
		b.Inject(stripetest.Fault{Kind: kind, Call: "cancel"})
		if _, err := b.client.Void(t.Context(), p.ID); !errors.Is(err, payment.ErrUnknown) {
			t.Fatalf("fault %d: %v", kind, err)
		}
		if got, err := b.client.Void(t.Context(), p.ID); err != nil || got.State != payment.Voided || got.AuthorizedMinor != 4250 {
			t.Fatalf("fault %d: %+v, %v", kind, got, err)
		}
	}
}

func TestAuthorizationsThatEndOtherwise(t *testing.T) {
	b := newBench(t, nil)
	expired := b.authorized(t)
	b.Expire(expired.ID)
	_, err := b.client.Capture(t.Context(), expired.ID, 4250)
	wantRefused(t, err, "capture", "voided")
	b.books(t, expired.OrderID, payment.Voided)

	a := b.order(stripetest.NeedsAction)
	a.AuthorizeOnly = true
	pending := b.charge(t, a, payment.Pending)
	_, err = b.client.Capture(t.Context(), pending.ID, 4250)
	if !errors.Is(err, payment.ErrInvalid) {
		t.Fatal(err)
	}
	if _, err = b.client.Void(t.Context(), pending.ID); !errors.Is(err, payment.ErrInvalid) {
		t.Fatal(err)
	}
	if _, err = b.client.Refund(t.Context(), pending.ID, "rfd_1", 1); !errors.Is(err, payment.ErrInvalid) {
		t.Fatal(err)
	}
	b.books(t, a.OrderID, payment.Pending) // and was left alone
	b.CancelByHand(pending.ID)
	b.books(t, a.OrderID, payment.Cancelled)
}

// Two nodes at once: one captures, the other lets go. One of them happens, and both know which.
func TestCaptureAndVoidAtOnce(t *testing.T) {
	for range 10 {
		b := newBench(t, nil)
		p := b.authorized(t)
		other := b.another(t)
		var all sync.WaitGroup
		var captureErr, voidErr error
		all.Go(func() { _, captureErr = b.client.Capture(context.Background(), p.ID, 4250) })
		all.Go(func() { _, voidErr = other.Void(context.Background(), p.ID) })
		all.Wait()
		state := b.charge(t, payment.Attempt{OrderID: p.OrderID, AmountMinor: 4250, Currency: "EUR", Token: stripetest.Visa, CustomerRef: "cus_1", AuthorizeOnly: true},
			map[bool]payment.State{true: payment.Captured, false: payment.Voided}[captureErr == nil]).State
		if (captureErr == nil) == (voidErr == nil) {
			t.Fatalf("%s; capture: %v; void: %v", state, captureErr, voidErr)
		}
	}
}

func TestPendingRefund(t *testing.T) {
	for _, good := range []bool{true, false} {
		b := newBench(t, nil)
		p := b.charge(t, b.order(stripetest.RefundPending), payment.Captured)
		for range 2 {
			r, err := b.client.Refund(t.Context(), p.ID, "rfd_1", 4000)
			if err != nil || r.State != payment.RefundPending || r.ID != "rfd_1" || r.AmountMinor != 4000 {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		// Nothing was given back yet, and still it cannot be given twice.
		if found := b.books(t, p.OrderID, payment.Captured)[0]; found.RefundedMinor != 0 || len(found.Refunds) != 1 {
			t.Fatalf("%+v", found)
		}
		_, err := b.client.Refund(t.Context(), p.ID, "rfd_2", 1000)
		wantRefused(t, err, "refund", "more_than_left")
		_, err = b.client.Refund(t.Context(), p.ID, "rfd_1", 4001)
		if !errors.Is(err, payment.ErrConflict) {
			t.Fatal(err)
		}
		b.FinishRefund(p.ID, good)
		r, err := b.client.Refund(t.Context(), p.ID, "rfd_1", 4000)
		found := b.books(t, p.OrderID, payment.Captured)[0]
		if good {
			if err != nil || r.State != payment.RefundDone || found.RefundedMinor != 4000 {
				t.Fatalf("%+v, %v, %+v", r, err, found)
			}
			continue
		}
		wantRefused(t, err, "refund", "refund_failed")
		if found.RefundedMinor != 0 || found.Refunds[0].State != payment.RefundFailed {
			t.Fatalf("%+v", found)
		}
		if _, err := b.client.Refund(t.Context(), p.ID, "rfd_2", 4250); err != nil {
			t.Fatalf("all is left again: %v", err)
		}
	}
}

// The slower of two nodes gets the stored answer of the other, which is old by then.
func TestAStoredRefundIsNotTheLastWord(t *testing.T) {
	b := newBench(t, nil)
	p := b.charge(t, b.order(stripetest.RefundPending), payment.Captured)
	on, reached := make(chan struct{}), make(chan struct{})
	b.Inject(stripetest.Fault{Kind: stripetest.Stall, Call: "refund", Until: on, Reached: reached})
	done := make(chan payment.Refund, 1)
	go func() {
		r, err := b.client.Refund(context.Background(), p.ID, "rfd_1", 1000)
		if err != nil {
			t.Errorf("refund: %v", err)
		}
		done <- r
	}()
	<-reached
	if r, err := b.another(t).Refund(t.Context(), p.ID, "rfd_1", 1000); err != nil || r.State != payment.RefundPending {
		t.Errorf("%+v, %v", r, err)
	}
	b.FinishRefund(p.ID, true)
	close(on)
	if r := <-done; r.State != payment.RefundDone || len(b.Events("refund.created")) != 1 {
		t.Fatalf("%+v", r)
	}
}

func TestRefundThatFailsAfterItWasDone(t *testing.T) {
	b := newBench(t, nil)
	p := b.charge(t, b.order(stripetest.RefundFails), payment.Captured)
	if r, err := b.client.Refund(t.Context(), p.ID, "rfd_1", 4250); err != nil || r.State != payment.RefundDone {
		t.Fatalf("%+v, %v", r, err)
	}
	b.FinishRefund(p.ID, false)
	if found := b.books(t, p.OrderID, payment.Captured)[0]; found.RefundedMinor != 0 {
		t.Fatalf("%+v", found)
	}
	_, err := b.client.Refund(t.Context(), p.ID, "rfd_1", 4250)
	wantRefused(t, err, "refund", "refund_failed")
}

// A refund is made once: whatever was lost, and also when its key is forgotten.
func TestRefundThatGetsLost(t *testing.T) {
	for _, kind := range append(slices.Clone(lost), stripetest.Unavailable, stripetest.RateLimit, stripetest.NoBalance) {
		for _, age := range []time.Duration{time.Second, 25 * time.Hour} {
			b := newBench(t, nil)
			p := b.charge(t, b.order(stripetest.Visa), payment.Captured)
			b.Inject(stripetest.Fault{Kind: kind, Call: "refund"})
			_, err := b.client.Refund(t.Context(), p.ID, "rfd_1", 1000)
			if !errors.Is(err, payment.ErrUnknown) {
				t.Fatalf("fault %d: %v", kind, err)
			}
			b.wantNoSecrets(t, err.Error())
			b.Advance(age)
			r, err := b.another(t).Refund(t.Context(), p.ID, "rfd_1", 1000)
			if kind == stripetest.ErrorKept && age < 24*time.Hour {
				// What Stripe's own error did is not known, so no other key is tried before this one is forgotten.
				if !errors.Is(err, payment.ErrUnknown) || len(b.Events("refund.created")) > 0 {
					t.Fatalf("%+v, %v", r, err)
				}
				continue
			}
			if err != nil || r.State != payment.RefundDone {
				t.Fatalf("fault %d after %v: %+v, %v", kind, age, r, err)
			}
			if n := len(b.Events("refund.created")); n != 1 {
				t.Fatalf("fault %d after %v: %d refunds", kind, age, n)
			}
		}
	}
}

func TestRefundsByHandAndManyOfThem(t *testing.T) {
	b := newBench(t, nil)
	p := b.charge(t, b.order(stripetest.Visa), payment.Captured)
	byHand := b.RefundByHand(p.ID, 50)
	b.Advance(time.Second)
	for i := range 14 { // more than an expanded charge shows
		if _, err := b.client.Refund(t.Context(), p.ID, fmt.Sprintf("rfd_%d", i), 100); err != nil {
			t.Fatal(err)
		}
	}
	found := b.books(t, p.OrderID, payment.Captured)[0]
	if len(found.Refunds) != 15 || found.RefundedMinor != 1450 || found.Refunds[0].ID != byHand || found.Refunds[1].ID != "rfd_0" || found.Refunds[14].ID != "rfd_13" {
		t.Fatalf("%+v", found)
	}
	page, err := b.client.List(t.Context(), "")
	if err != nil || len(page.Payments) != 1 || page.Payments[0].RefundedMinor != 1450 {
		t.Fatalf("%+v, %v", page, err)
	}
	_, err = b.client.Refund(t.Context(), p.ID, "rfd_more", 4250-1450+1)
	wantRefused(t, err, "refund", "more_than_left")
}

func TestAmountsOfAllCurrencies(t *testing.T) {
	for _, c := range []struct {
		code          string
		minor, stripe int64 // 0: refused
	}{
		{"EUR", 1250, 1250}, {"CNY", 8800, 8800}, {"JPY", 12000, 12000}, {"KRW", 50000, 50000}, {"HUF", 250000, 250000},
		{"KWD", 1230, 1230}, {"KWD", 1234, 0}, {"BHD", 10, 10}, {"ISK", 1500, 150000}, {"UGX", 5000, 500000},
		{"MGA", 250000, 2500}, {"MGA", 250050, 0}, {"XXQ", 100, 0}, {"ISK", 1 << 62, 0},
	} {
		got, err := toStripe(c.minor, c.code)
		if (err != nil) != (c.stripe == 0) || err != nil && !errors.Is(err, payment.ErrInvalid) || err == nil && got != c.stripe {
			t.Errorf("%d %s is %d at Stripe, %v; want %d", c.minor, c.code, got, err, c.stripe)
		}
		if err == nil && fromStripe(got, c.code) != c.minor {
			t.Errorf("%d %s comes back as %d", c.minor, c.code, fromStripe(got, c.code))
		}
	}
	for _, code := range strings.Fields(wholeUnits + thousandths) {
		if _, known := currency.GetDigits(code); !known {
			t.Errorf("%s is no currency", code)
		}
	}
	b := newBench(t, nil)
	for code, atStripe := range map[string]string{"JPY": `"amount":500,`, "KWD": `"amount":500,`, "ISK": `"amount":50000,`} {
		a := b.order(stripetest.Visa)
		a.AmountMinor, a.Currency = 500, code
		p := b.charge(t, a, payment.Captured)
		if p.CapturedMinor != 500 || p.Currency != code {
			t.Errorf("%+v", p)
		}
		last := b.Events("payment_intent.succeeded")
		if body := string(last[len(last)-1].Body); !strings.Contains(body, atStripe) {
			t.Errorf("500 minor units of %s: %s", code, body)
		}
		if r, err := b.client.Refund(t.Context(), p.ID, "rfd_"+code, 200); err != nil || r.AmountMinor != 200 {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// The whole books, oldest first, without what is not ours; more of it comes later.
func TestList(t *testing.T) {
	b := newBench(t, nil)
	if page, err := b.client.List(t.Context(), ""); err != nil || len(page.Payments) > 0 || page.Next != "" {
		t.Fatalf("empty books: %+v, %v", page, err)
	}
	var want []string
	for i := range 130 {
		if i%3 == 0 {
			b.PayElsewhere(700, map[string]string{"order_id": "7"})
			b.PayElsewhere(700, map[string]string{metaOrder: "no id", metaAttempt: "x"})
		}
		if i%5 == 0 {
			b.Advance(time.Minute)
		}
		want = append(want, b.charge(t, b.order(stripetest.Visa), payment.Captured).ID)
	}
	b.books(t, b.order(stripetest.Visa).OrderID) // leaves an empty intent
	read := func(cursor string) (ids []string, last string) {
		for pages := 0; ; pages++ {
			page, err := b.client.List(t.Context(), cursor)
			if err != nil || pages > 10 {
				t.Fatal(err)
			}
			for _, p := range page.Payments {
				ids = append(ids, p.ID)
			}
			if page.Next == "" {
				return ids, cursor
			}
			cursor = page.Next
		}
	}
	ids, last := read("")
	if !slices.Equal(ids, want) {
		t.Fatalf("%d of %d payments", len(ids), len(want))
	}
	b.Advance(time.Hour)
	more := b.charge(t, b.order(stripetest.Declined), payment.Declined).ID
	if ids, _ := read(last); len(ids) == 0 || ids[len(ids)-1] != more {
		t.Fatalf("what came later is not found from the last cursor: %v", ids)
	}
	calls := b.Calls("list")
	if ids, _ := read(""); len(ids) != len(want)+1 || b.Calls("list")-calls > 4 {
		t.Fatalf("%d payments, %d calls", len(ids), b.Calls("list")-calls)
	}
	for _, cursor := range []string{"pi_unknown", "cus_1", "pi_" + strings.Repeat("x", 100)} {
		if _, err := b.client.List(t.Context(), cursor); !errors.Is(err, payment.ErrInvalid) {
			t.Errorf("cursor %s: %v", cursor, err)
		}
	}
}

// All made in one second, more than a page: the first is still the first.
func TestListOfOneSecond(t *testing.T) {
	b := newBench(t, nil)
	want := b.charge(t, b.order(stripetest.Visa), payment.Captured).ID
	for range 120 {
		b.PayElsewhere(700, nil)
	}
	page, err := b.client.List(t.Context(), "")
	if err != nil || len(page.Payments) != 1 || page.Payments[0].ID != want || page.Next == "" {
		t.Fatalf("%+v, %v", page, err)
	}
}
