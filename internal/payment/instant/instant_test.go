package instant_test

import (
	"strconv"
	"sync/atomic"
	"testing"

	"onsale/internal/payment"
	"onsale/internal/payment/instant"
	"onsale/internal/payment/paymenttest"
)

func TestContract(t *testing.T) {
	p := instant.New(nil)
	if err := payment.Check(p); err != nil {
		t.Fatal(err)
	}
	paymenttest.Exercise(t, paymenttest.Subject{Provider: p, TokenPaid: "tok_ok", TokenDeclined: instant.TokenDeclined})
}

func BenchmarkCharge(b *testing.B) {
	p := instant.New(nil)
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			a := payment.Attempt{OrderID: "ord_" + strconv.FormatInt(n.Add(1), 10), AmountMinor: 100, Currency: "EUR", Token: "tok_ok"}
			if _, err := p.Charge(b.Context(), a); err != nil {
				b.Fatal(err)
			}
		}
	})
}
