package booking

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/sandbox"
)

func TestAtOnce(t *testing.T) {
	inWorlds(t, []scenario{
		{"I5: a double click, with the same key, is one payment and one answer", func(w *world) []int64 {
			for i, token := range []string{sandbox.TokenSure, sandbox.Token(sandbox.FaultLostAnswer), sandbox.Token(sandbox.FaultDeclinedSoft)} {
				r := w.request(w.hold(alice, int32(i)), token, fmt.Sprint(i))
				const clicks = 6
				answers := make([]ledger.Order, clicks)
				var all sync.WaitGroup
				for k := range clicks {
					all.Go(func() {
						o, err := w.book(r)
						if err != nil {
							w.Errorf("click %d: %v", k, err)
						}
						answers[k] = o
					})
				}
				all.Wait()
				for _, o := range answers {
					if o.ID != answers[0].ID || o.State != answers[0].State {
						w.Errorf("order %d is %s, another click was told %d %s", o.ID, o.State, answers[0].ID, answers[0].State)
					}
				}
				if n := len(w.books(answers[0].ID)); n != 1 {
					w.Errorf("%d payments", n)
				}
			}
			return nil
		}},
		{"A13: two browsers, two keys, one hold: one payment", func(w *world) []int64 {
			h := w.hold(alice, 0)
			var all sync.WaitGroup
			var mu sync.Mutex
			paid := map[id.ID]bool{}
			for k := range 6 {
				all.Go(func() {
					o, err := w.book(w.request(h, sandbox.TokenSure, fmt.Sprint(k)))
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						paid[o.ID] = true
					case fault.CodeOf(err) != fault.PaymentInProgress:
						w.Errorf("click %d: %v", k, err)
					}
				})
			}
			all.Wait()
			if len(paid) != 1 {
				w.Errorf("%d orders are paid", len(paid))
			}
			return nil
		}},
		{"the customer hangs up while the payment is made: it comes to its end", func(w *world) []int64 {
			ctx, hangUp := context.WithCancel(w.ctx())
			w.meddling(func(op string, call func() error) error {
				if op == "Charge" {
					hangUp()
				}
				return call()
			})
			o, err := w.service.Book(ctx, w.request(w.hold(alice, 0), sandbox.TokenSure, "k"))
			if err != nil {
				w.Fatalf("booking: %v", err)
			}
			w.wantNow(o.ID, ledger.OrderPaid, "")
			return nil
		}},
		{"the customer hangs up before anything is begun", func(w *world) []int64 {
			ctx, hangUp := context.WithCancel(w.ctx())
			hangUp()
			h := w.hold(alice, 0)
			if o, err := w.service.Book(ctx, w.request(h, sandbox.TokenSure, "k")); err == nil {
				w.Errorf("order %+v", o)
			}
			if n := w.did("Charge"); n != 1 {
				w.Errorf("charged %d times, once for bob", n)
			}
			w.wantState(w.mustBook(w.request(h, sandbox.TokenSure, "k2")), ledger.OrderPaid)
			return nil
		}},
		{"I13: more talks than may be: busy, and nothing is begun", func(w *world) []int64 {
			w.options.TalksMax = 1
			w.restart()
			talking, goOn := make(chan struct{}), make(chan struct{})
			w.meddling(func(op string, call func() error) error {
				if op == "Charge" {
					talking <- struct{}{}
					<-goOn
				}
				return call()
			})
			first, second := w.request(w.hold(alice, 0), sandbox.TokenSure, "k"), w.request(w.hold(carol, 1), sandbox.TokenSure, "k")
			var all sync.WaitGroup
			all.Go(func() {
				if o, err := w.book(first); err != nil || o.State != ledger.OrderPaid {
					w.Errorf("the first: %s, %v", o.State, err)
				}
			})
			<-talking
			begun := w.did("BeginPayment")
			if f := w.bookFails(second, fault.Busy); f.RetryAfter == 0 {
				w.Errorf("the customer is not told when to come again")
			}
			if n := w.did("BeginPayment"); n != begun {
				w.Errorf("%d payments begun, want %d", n, begun)
			}
			// Recovery leaves an order alone that a request talks about.
			w.pass(2 * minute)
			if done := w.recover(); done.Orders != 0 {
				w.Errorf("recovery did %+v", done)
			}
			close(goOn)
			all.Wait()
			w.meddling(nil)
			w.wantState(w.mustBook(second), ledger.OrderPaid)
			return nil
		}},
		{"the provider takes all the time there is: what it did is still asked for", func(w *world) []int64 {
			p := w.twist(func(o *Options) { o.AttemptTimeout = 5 * time.Millisecond })
			p.charge = func(ctx context.Context, a payment.Attempt) (payment.Payment, error) {
				if _, err := w.client.Charge(context.WithoutCancel(ctx), a); err != nil {
					w.Errorf("charge: %v", err)
				}
				<-ctx.Done()
				return payment.Payment{}, payment.Unknown("charge", ctx.Err())
			}
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.TokenSure, "k"))
			w.wantState(o, ledger.OrderPaid)
			w.untwist()
			return nil
		}},
		{"a provider that is away is not asked hundreds of times a round", func(w *world) []int64 {
			for k := range awayMax + 2 {
				var h ledger.Hold
				if k < 7 {
					h = w.hold(alice, int32(k))
				} else {
					h = w.holdPlaces(alice, areaPaid, 1)
				}
				w.command(ledger.BeginPayment{Order: w.ids.MustNext(0), Hold: h.ID, Customer: alice, Provider: "sandbox"})
			}
			w.meddling(func(op string, call func() error) error {
				if op == "Lookup" || op == "Cancel" {
					return payment.Unknown(op, errAway)
				}
				return call()
			})
			w.pass(minute)
			before := w.did("Lookup")
			w.recover()
			if n := w.did("Lookup") - before; n != awayMax {
				w.Errorf("asked %d times, want %d", n, awayMax)
			}
			w.recover() // those that were not asked about have their turn
			if n := w.did("Lookup") - before; n != awayMax+2 {
				w.Errorf("asked %d times, want %d", n, awayMax+2)
			}
			return nil
		}},
	})
}
