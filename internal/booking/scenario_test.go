package booking

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/sandbox"
)

// A scenario is one small story. After it everything is healed, time passes, and money, tickets and seats are checked.
type scenario struct {
	name string
	run  func(w *world) (kept []int64)
}

// inWorlds runs scenarios on each ledger, charging at once and authorizing first.
func inWorlds(t *testing.T, scenarios []scenario) {
	for _, name := range slices.Sorted(maps.Keys(openers)) {
		for mode, authorize := range map[string]bool{"charge": false, "authorize": true} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				for i, s := range scenarios {
					if racing && soak() == 1 && name == "sqlite" && authorize == (i%2 == 0) {
						continue // each scenario runs on SQLite in one of the modes
					}
					t.Run(s.name, func(t *testing.T) {
						store, webhooks := openers[name](t, l)
						w := newWorld(t, l, store, webhooks, authorize)
						defer w.close()
						w.bystander()
						kept := s.run(w)
						w.check(kept...)
						w.wantAlerts()
					})
				}
			})
		}
	}
}

func (w *world) wantSeats(state ledger.Availability, seats ...int32) {
	w.Helper()
	s, err := w.store.Snapshot(context.Background(), theEvent)
	if err != nil {
		w.Fatalf("snapshot: %v", err)
	}
	for _, seat := range seats {
		if got := s.Seats[seat].State; got != state {
			w.Errorf("seat %d is %s, want %s", seat, got, state)
		}
	}
}

// wantMoney checks the states of an order's payments at the provider, and what it keeps of them.
func (w *world) wantMoney(o ledger.Order, keeps int64, states ...payment.State) {
	w.Helper()
	var got []payment.State
	var money int64
	for _, p := range w.books(o.ID) {
		got = append(got, p.State)
		money += p.CapturedMinor - p.RefundedMinor
	}
	if !slices.Equal(got, states) || money != keeps {
		w.Errorf("the provider has %v and keeps %d of order %d; want %v and %d", got, money, o.ID, states, keeps)
	}
}

// gone is the state of a payment that was given back.
func (w *world) gone() payment.State {
	if w.options.Authorize {
		return payment.Voided
	}
	return payment.Captured
}

func (w *world) setEvent(change func(e *ledger.Event)) {
	w.Helper()
	e, err := w.store.Event(context.Background(), theEvent)
	if err != nil {
		w.Fatalf("event: %v", err)
	}
	e.Version++
	change(&e)
	w.command(ledger.SetEvent{Event: e})
}

func TestBook(t *testing.T) {
	inWorlds(t, []scenario{
		{"DESIGN 8: from hold to tickets, once", func(w *world) []int64 {
			h := w.hold(alice, 0, 1)
			o := w.mustBook(w.request(h, sandbox.TokenSure, "k"))
			w.wantState(o, ledger.OrderPaid)
			if len(o.Tickets) != 2 || o.Amount != 2*seatPrice {
				w.Errorf("order %+v", o)
			}
			again := w.mustBook(w.request(h, sandbox.TokenSure, "k"))
			if again.ID != o.ID || len(again.Tickets) != 2 || again.Tickets[0] != o.Tickets[0] {
				w.Errorf("the repeat answers %+v, first %+v", again, o)
			}
			f := w.bookFails(w.request(h, sandbox.TokenSure, "another key"), fault.PaymentInProgress)
			if f.Order != o.ID {
				w.Errorf("the fault names order %d, want %d", f.Order, o.ID)
			}
			w.run()
			w.pass(minute)
			w.recover()
			w.wantMoney(o, 2*seatPrice, payment.Captured)
			w.wantSeats(ledger.Available, 2, 3, 4, 5, 6)
			if n := w.did("Charge"); n != 2 { // one is bob's
				w.Errorf("charged %d times", n)
			}
			return nil
		}},
		{"A15: nothing to pay, no provider", func(w *world) []int64 {
			h := w.holdPlaces(alice, areaFree, 2)
			o := w.mustBook(w.request(h, "", "k"))
			w.wantState(o, ledger.OrderPaid)
			if len(o.Tickets) != 2 || w.did("Charge") != 1 || w.did("Lookup") != 0 {
				w.Errorf("%d tickets, %d charges", len(o.Tickets), w.did("Charge"))
			}
			w.wantMoney(o, 0)
			return nil
		}},
		{"A15: nothing to pay, but the hold ran out", func(w *world) []int64 {
			h := w.holdPlaces(alice, areaFree, 2)
			w.meddling(func(op string, call func() error) error {
				if op == "Confirm" {
					w.pass(hour)
				}
				return call()
			})
			o := w.mustBook(w.request(h, "", "k"))
			w.wantState(o, ledger.OrderExpired)
			w.wantMoney(o, 0)
			return nil
		}},
		{"places of an area", func(w *world) []int64 {
			o := w.mustBook(w.request(w.holdPlaces(alice, areaPaid, 3), sandbox.TokenSure, "k"))
			w.wantState(o, ledger.OrderPaid)
			return nil
		}},
		{"A13: declined, and another card is another order on the same hold", func(w *world) []int64 {
			h := w.hold(alice, 0)
			o := w.mustBook(w.request(h, sandbox.Token(sandbox.FaultDeclined), "k"))
			w.wantNow(o.ID, ledger.OrderFailed, "card_declined")
			again := w.mustBook(w.request(h, sandbox.Token(sandbox.FaultDeclined), "k"))
			if again.ID != o.ID {
				w.Errorf("the repeat is order %d, want %d", again.ID, o.ID)
			}
			w.wantState(again, ledger.OrderFailed)
			w.wantSeats(ledger.Held, 0)
			w.run()
			other := w.mustBook(w.request(h, sandbox.TokenSure, "k2"))
			w.wantState(other, ledger.OrderPaid)
			if other.ID == o.ID {
				w.Errorf("it is the same order")
			}
			w.wantMoney(o, 0, payment.Declined)
			return nil
		}},
		{"A13: a soft decline is made final before the order fails", func(w *world) []int64 {
			h := w.hold(alice, 0)
			soft := w.request(h, sandbox.Token(sandbox.FaultDeclinedSoft), "k")
			o := w.mustBook(soft)
			w.wantNow(o.ID, ledger.OrderFailed, "try_again_later")
			w.wantState(w.mustBook(soft), ledger.OrderFailed)
			w.wantMoney(o, 0, payment.Declined)
			if p := w.books(o.ID)[0]; !p.Decline.Final {
				w.Errorf("the decline is not final at the provider: %+v", p)
			}
			w.wantState(w.mustBook(w.request(h, sandbox.TokenSure, "k2")), ledger.OrderPaid)
			return nil
		}},
		{"a token that no bank knows", func(w *world) []int64 {
			o := w.mustBook(w.request(w.hold(alice, 0), "stolen", "k"))
			w.wantNow(o.ID, ledger.OrderFailed, "token_unknown")
			return nil
		}},
		{"A12: what cannot be sent to a provider is refused each time and has no effect", func(w *world) []int64 {
			h := w.hold(alice, 0)
			for range 2 {
				if f := w.bookFails(w.request(h, "", "k"), fault.Invalid); f.Field != "payment_token" {
					w.Errorf("field %q", f.Field)
				}
			}
			long := w.request(h, string(make([]byte, payment.TokenBytesMax+1)), "k")
			w.bookFails(long, fault.Invalid)
			if n := w.did("BeginPayment"); n != 1 {
				w.Errorf("%d payments begun, one is bob's", n)
			}
			w.wantState(w.mustBook(w.request(h, sandbox.TokenSure, "k")), ledger.OrderPaid)
			return nil
		}},
		{"A12: a key for another request", func(w *world) []int64 {
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.TokenSure, "k"))
			h := w.hold(alice, 1)
			if f := w.bookFails(w.request(h, sandbox.TokenSure, "k"), fault.KeyReused); f.Field != "hold_id" {
				w.Errorf("field %q", f.Field)
			}
			w.wantNow(o.ID, ledger.OrderPaid, "")
			w.wantState(w.mustBook(w.request(h, sandbox.TokenSure, "k2")), ledger.OrderPaid)
			return nil
		}},
		{"what the ledger refuses costs nothing", func(w *world) []int64 {
			h := w.hold(alice, 0)
			wrong := w.request(h, sandbox.TokenSure, "k")
			wrong.Customer = carol
			w.bookFails(wrong, fault.WrongCustomer)
			w.pass(10 * minute)
			w.bookFails(w.request(h, sandbox.TokenSure, "k"), fault.HoldExpired)
			w.bookFails(Request{Customer: alice, Hold: 12345, Token: sandbox.TokenSure}, fault.HoldUnknown)
			if n := w.did("Charge"); n != 1 {
				w.Errorf("charged %d times, once for bob", n)
			}
			return nil
		}},
		{"only its customer sees an order", func(w *world) []int64 {
			_, err := w.service.Order(context.Background(), alice, w.bobs.ID)
			if fault.CodeOf(err) != fault.WrongCustomer {
				w.Errorf("bob's order for alice: %v", err)
			}
			if _, err = w.service.Order(context.Background(), bob, 12345); fault.CodeOf(err) != fault.OrderUnknown {
				w.Errorf("no order: %v", err)
			}
			if o, err := w.service.Order(context.Background(), bob, w.bobs.ID); err != nil || o.State != ledger.OrderPaid {
				w.Errorf("bob's order for bob: %+v, %v", o, err)
			}
			return nil
		}},
	})
}

func TestLater(t *testing.T) {
	inWorlds(t, []scenario{
		{"DESIGN 8.4: pending, told by webhook", func(w *world) []int64 {
			r := w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultPending), "k")
			o := w.mustBook(r)
			w.wantState(o, ledger.OrderPending)
			w.wantState(w.mustBook(r), ledger.OrderPending)
			w.bookFails(w.request(w.holdOf(o), sandbox.TokenSure, "k2"), fault.PaymentInProgress)
			w.run()
			w.wantNow(o.ID, ledger.OrderPending, "")
			w.pass(payAfter)
			w.run()
			w.wantNow(o.ID, ledger.OrderPaid, "")
			w.wantState(w.mustBook(r), ledger.OrderPaid)
			return nil
		}},
		{"DESIGN 8.4: pending, told to nobody", func(w *world) []int64 {
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultPending, sandbox.FaultWebhookNever), "k"))
			w.pass(20 * second)
			if done := w.recover(); done.Orders != 1 || done.Ended != 0 {
				w.Errorf("it is not over: %+v", done)
			}
			w.runDue(w)
			w.pass(20 * second)
			if done := w.recover(); done.Orders != 1 || done.Ended != 1 {
				w.Errorf("it is over: %+v", done)
			}
			w.wantNow(o.ID, ledger.OrderPaid, "")
			return nil
		}},
		{"pending, then declined", func(w *world) []int64 {
			h := w.hold(alice, 0)
			o := w.mustBook(w.request(h, sandbox.Token(sandbox.FaultPendingDeclined), "k"))
			w.wantState(o, ledger.OrderPending)
			w.pass(payAfter)
			w.run()
			w.wantNow(o.ID, ledger.OrderFailed, "card_declined")
			w.wantState(w.mustBook(w.request(h, sandbox.TokenSure, "k2")), ledger.OrderPaid)
			return nil
		}},
		{"A20: webhooks twice, late and in the wrong order", func(w *world) []int64 {
			faults := []sandbox.Fault{sandbox.FaultPending, sandbox.FaultWebhookRepeat, sandbox.FaultWebhookReorder}
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.Token(faults...), "k"))
			for range 30 {
				w.pass(second)
				w.runDue(w)
			}
			mail := w.mail()
			if len(mail) < 3 {
				w.Fatalf("%d webhooks", len(mail))
			}
			w.pass(9 * minute) // beyond the payment window, within the hold
			for _, body := range slices.Backward(mail) {
				for range 2 {
					if err := w.deliver(body); err != nil {
						w.Errorf("webhook: %v", err)
					}
				}
			}
			if n := w.did("WebhookKeep"); n < 3 {
				w.Errorf("%d webhooks kept", n)
			}
			w.wantNow(o.ID, ledger.OrderPaid, "")
			return nil
		}},
		{"A19: the provider works on it after the hold has gone: it is cancelled there", func(w *world) []int64 {
			h := w.hold(alice, 0)
			o := w.mustBook(w.request(h, sandbox.Token(sandbox.FaultPending), "k"))
			w.pass(5 * minute)
			w.recover()
			w.wantNow(o.ID, ledger.OrderPending, "")
			w.wantSeats(ledger.Held, 0)
			w.pass(5 * minute)
			w.recover()
			w.wantNow(o.ID, ledger.OrderExpired, "cancelled")
			w.wantMoney(o, 0, payment.Cancelled)
			w.hold(carol, 0)
			return nil
		}},
		{"A17: paid late, and the same seats are free", func(w *world) []int64 {
			o := w.late(w.request(w.hold(alice, 0, 1), "", "k"))
			w.command(ledger.Sweep{})
			w.wantSeats(ledger.Available, 0, 1)
			w.paidLate()
			now := w.wantNow(o.ID, ledger.OrderPaid, "")
			if !now.Rescued || now.Tickets[0].Seat != 0 || now.Tickets[1].Seat != 1 {
				w.Errorf("order %+v", now)
			}
			return nil
		}},
		{"A17: paid late, and as good seats are allowed", func(w *world) []int64 {
			r := w.request(w.hold(alice, 2, 3), "", "k")
			r.AllowOther = true
			o := w.late(r)
			w.wantState(w.mustBook(w.request(w.hold(carol, 3), sandbox.TokenSure, "carol's")), ledger.OrderPaid)
			w.paidLate()
			now := w.wantNow(o.ID, ledger.OrderPaid, "")
			if !now.Rescued || len(now.Tickets) != 2 || now.Tickets[0].Seat == 2 || now.Tickets[1].Seat == 3 {
				w.Errorf("order %+v", now)
			}
			w.wantSeats(ledger.Sold, 3)
			return nil
		}},
		{"A16: paid late, seats lost: given back", func(w *world) []int64 {
			o := w.late(w.request(w.hold(alice, 0, 1), "", "k"))
			w.wantState(w.mustBook(w.request(w.hold(carol, 1), sandbox.TokenSure, "carol's")), ledger.OrderPaid)
			w.paidLate()
			w.wantNow(o.ID, ledger.OrderExpired, ledger.ReasonLate)
			w.wantMoney(o, 0, w.gone())
			w.wantAlerts("a payment is given back: late_payment")
			w.wantSeats(ledger.Available, 0)
			w.wantSeats(ledger.Sold, 1)
			return nil
		}},
	})
}

// holdOf is the hold of an order as it is now.
func (w *world) holdOf(o ledger.Order) ledger.Hold {
	w.Helper()
	h, err := w.store.Hold(context.Background(), o.Hold)
	if err != nil {
		w.Fatalf("hold: %v", err)
	}
	return h
}

// late books with a payment that will come when the hold is lost, and lets the hold be lost.
func (w *world) late(r Request) ledger.Order {
	w.Helper()
	r.Token = sandbox.Token(sandbox.FaultPayLate)
	o := w.mustBook(r)
	w.wantState(o, ledger.OrderPending)
	w.pass(11 * minute)
	w.run()
	w.recover()
	w.wantNow(o.ID, ledger.OrderPending, "") // the provider cannot stop it and does not know yet
	return o
}

func (w *world) paidLate() {
	w.Helper()
	w.pass(lateAfter)
	w.run()
}

var errAway = errors.New("nobody is there")

func TestWrong(t *testing.T) {
	inWorlds(t, []scenario{
		{"DESIGN 8.6: a lost answer is asked for at once", func(w *world) []int64 {
			r := w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultLostAnswer), "k")
			o := w.mustBook(r)
			w.wantState(o, ledger.OrderPaid)
			if again := w.mustBook(r); again.ID != o.ID {
				w.Errorf("the repeat is order %d, want %d", again.ID, o.ID)
			}
			w.wantMoney(o, w.taken(), w.booked())
			return nil
		}},
		{"a lost answer of a payment that is pending", func(w *world) []int64 {
			r := w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultPending, sandbox.FaultLostAnswer), "k")
			w.wantState(w.mustBook(r), ledger.OrderPending)
			w.pass(payAfter)
			w.run()
			w.wantState(w.mustBook(r), ledger.OrderPaid)
			return nil
		}},
		{"a lost answer, and lost again when asked for: the same key goes on", func(w *world) []int64 {
			w.meddling(func(op string, call func() error) error {
				if op == "Lookup" {
					return payment.Unknown(op, errAway)
				}
				return call()
			})
			r := w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultLostAnswer), "k")
			f := w.bookFails(r, fault.PaymentUnavailable)
			if f.RetryAfter == 0 {
				w.Errorf("the customer is not told when to come again")
			}
			w.wantNow(f.Order, ledger.OrderPending, "")
			o := w.mustBook(r)
			w.wantState(o, ledger.OrderPaid)
			if o.ID != f.Order {
				w.Errorf("order %d, first %d", o.ID, f.Order)
			}
			return nil
		}},
		{"server error: nothing was charged, the same key charges", func(w *world) []int64 {
			r := w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultServerError), "k")
			w.bookFails(r, fault.PaymentUnavailable)
			w.wantState(w.mustBook(r), ledger.OrderPaid)
			return nil
		}},
		{"server error, and the customer has gone: the order ends and the hold is free again", func(w *world) []int64 {
			h := w.hold(alice, 0)
			f := w.bookFails(w.request(h, sandbox.Token(sandbox.FaultServerError), "k"), fault.PaymentUnavailable)
			w.pass(minute)
			w.recover()
			w.wantNow(f.Order, ledger.OrderExpired, "cancelled")
			w.wantState(w.mustBook(w.request(h, sandbox.TokenSure, "k2")), ledger.OrderPaid)
			return nil
		}},
		{"A16: a wrong amount is given back", func(w *world) []int64 {
			h := w.hold(alice, 0)
			r := w.request(h, sandbox.Token(sandbox.FaultWrongAmount), "k")
			o := w.mustBook(r)
			w.wantNow(o.ID, ledger.OrderFailed, ledger.ReasonWrongAmount)
			w.wantMoney(o, 0, w.gone())
			w.wantAlerts("a payment is given back: wrong_amount")
			w.wantState(w.mustBook(r), ledger.OrderFailed)
			w.run()
			w.wantState(w.mustBook(w.request(h, sandbox.TokenSure, "k2")), ledger.OrderPaid)
			return nil
		}},
		{"A16: a second payment is given back, the tickets stay", func(w *world) []int64 {
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultSecondPayment), "k"))
			w.wantState(o, ledger.OrderPaid)
			w.run()
			w.wantNow(o.ID, ledger.OrderPaid, "")
			w.wantMoney(o, w.taken(), w.booked(), w.gone())
			w.wantAlerts("a payment is given back: second_payment")
			return nil
		}},
		{"I6: a second payment that nobody tells of is found in the books", func(w *world) []int64 {
			token := sandbox.Token(sandbox.FaultSecondPayment, sandbox.FaultWebhookNever)
			o := w.mustBook(w.request(w.hold(alice, 0), token, "k"))
			w.wantState(o, ledger.OrderPaid)
			w.run()
			if more, err := w.service.Compare(context.Background()); more || err != nil {
				w.Fatalf("more %v, %v", more, err)
			}
			w.wantAlerts() // its webhook may still be on its way
			w.pass(3 * minute)
			for range 2 {
				if more, err := w.service.Compare(context.Background()); more || err != nil {
					w.Fatalf("more %v, %v", more, err)
				}
				w.run()
			}
			w.wantNow(o.ID, ledger.OrderPaid, "")
			w.wantMoney(o, w.taken(), w.booked(), w.gone())
			w.wantAlerts("a payment stands in the provider's books that nobody told of", "a payment is given back: second_payment")
			return nil
		}},
		{"A18: capture refused: tickets VOID, seats back", func(w *world) []int64 {
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultCaptureRefused), "k"))
			w.wantState(o, ledger.OrderPaid)
			w.run()
			w.recover()
			if !w.options.Authorize {
				return nil
			}
			now := w.wantNow(o.ID, ledger.OrderRefunded, ledger.ReasonCaptureRefused)
			if now.Tickets[0].State != ledger.TicketVoid {
				w.Errorf("the ticket is %s", now.Tickets[0].State)
			}
			w.wantSeats(ledger.Available, 0)
			w.wantAlerts("capture refused (capture_refused)")
			w.wantMoney(o, 0, payment.Voided)
			w.run()
			w.wantState(w.mustBook(w.request(w.hold(carol, 0), sandbox.TokenSure, "carol's")), ledger.OrderPaid)
			return nil
		}},
		{"A21: a refused refund stays REQUESTED, with one alert", func(w *world) []int64 {
			if w.options.Authorize {
				return nil // a void is never refused
			}
			o := w.mustBook(w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultWrongAmount, sandbox.FaultRefundRefused), "k"))
			w.wantNow(o.ID, ledger.OrderFailed, ledger.ReasonWrongAmount)
			w.wantAlerts("a payment is given back", "the provider refused a refund")
			for range 20 {
				w.pass(minute)
				w.run()
				w.recover()
			}
			w.wantAlerts()
			w.wantRefused(1)
			w.wantMoney(o, seatPrice-1, payment.Captured)
			return []int64{seatPrice - 1}
		}},
		{"A6: the event is cancelled while the payment is made", func(w *world) []int64 {
			r := w.request(w.hold(alice, 0), sandbox.Token(sandbox.FaultPending), "k")
			o := w.mustBook(r)
			w.setEvent(func(e *ledger.Event) { e.State = ledger.Cancelled })
			w.pass(payAfter)
			w.run()
			w.wantNow(o.ID, ledger.OrderFailed, ledger.ReasonEventCancelled)
			w.wantMoney(o, 0, w.gone())
			w.wantAlerts("a payment is given back: event_cancelled")
			w.bobs = ledger.Order{} // bob's ticket goes back too, like everybody's
			return nil
		}},
		{"A6: paused: live holds may pay", func(w *world) []int64 {
			h := w.hold(alice, 0)
			w.setEvent(func(e *ledger.Event) { e.State = ledger.Paused })
			w.wantState(w.mustBook(w.request(h, sandbox.TokenSure, "k")), ledger.OrderPaid)
			return nil
		}},
		{"the provider is away, and comes back", func(w *world) []int64 {
			away := func(op string, call func() error) error {
				switch op {
				case "Charge", "Lookup", "Cancel":
					return payment.Unknown(op, errAway)
				}
				return call()
			}
			w.meddling(away)
			r := w.request(w.hold(alice, 0), sandbox.TokenSure, "k")
			f := w.bookFails(r, fault.PaymentUnavailable)
			w.pass(30 * second)
			if done := w.recover(); done.Failed != 1 {
				w.Errorf("recovery did %+v", done)
			}
			if done := w.recover(); done.Orders != 0 {
				w.Errorf("recovery does not wait: %+v", done)
			}
			w.wantNow(f.Order, ledger.OrderPending, "")
			w.meddling(nil)
			o := w.mustBook(r)
			w.wantState(o, ledger.OrderPaid)
			if o.ID != f.Order {
				w.Errorf("order %d, first %d", o.ID, f.Order)
			}
			return nil
		}},
	})
}

// taken is what the provider has taken for a seat that has just been paid.
func (w *world) taken() int64 {
	if w.options.Authorize {
		return 0
	}
	return seatPrice
}

// booked is the state of a payment that has just been made.
func (w *world) booked() payment.State {
	if w.options.Authorize {
		return payment.Authorized
	}
	return payment.Captured
}
