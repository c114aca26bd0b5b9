package booking

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/sandbox"
)

// open says that customers of the event may give back (10 % and 100 are kept), exchange (300 each is kept) and pass on.
func (w *world) opened() {
	w.Helper()
	w.setEvent(func(e *ledger.Event) {
		e.Refunds = ledger.RefundRule{Until: e.SaleCloses, FeeBP: 1000, FeePlace: 100}
		e.Exchanges = ledger.ExchangeRule{Until: e.SaleCloses, Fee: 300}
		e.Transfers = ledger.TransferRule{Until: e.SaleCloses}
	})
}

// seatKept is what the rule keeps of a seat.
const seatKept = seatPrice/10 + 100

// bought is a paid and captured order.
func (w *world) bought(customer id.ID, seats ...int32) ledger.Order {
	w.Helper()
	o := w.mustBook(w.request(w.hold(customer, seats...), sandbox.TokenSure, fmt.Sprint("bought ", customer, seats)))
	w.wantState(o, ledger.OrderPaid)
	w.run()
	w.recover()
	return w.order(o.ID)
}

// giveBack asks for some of an order's tickets (all: none named) to be given back by its customer.
func (w *world) giveBack(o ledger.Order, key string, tickets ...int) ([]ledger.Refund, error) {
	r := RefundRequest{Order: o.ID, Customer: o.Customer, By: ledger.ByCustomer, Key: ledger.Key{Value: key, Fields: []ledger.KeyField{{Name: "tickets", Hash: fmt.Sprint(tickets)}}}}
	for _, t := range tickets {
		r.Tickets = append(r.Tickets, o.Tickets[t].ID)
	}
	return w.service.Refund(w.ctx(), r)
}

func (w *world) mustGiveBack(o ledger.Order, key string, tickets ...int) ledger.Refund {
	w.Helper()
	refunds, err := w.giveBack(o, key, tickets...)
	if err != nil {
		w.Fatalf("refund: %v", err)
	}
	return refunds[0]
}

// swapHold holds seats in the place of all tickets of an order.
func (w *world) swapHold(o ledger.Order, seats ...int32) ledger.Hold {
	w.Helper()
	return w.held(ledger.HoldSeats{ID: w.ids.MustNext(0), Event: theEvent, Customer: o.Customer, Seats: seats, Exchange: ledger.Exchange{Order: o.ID}})
}

func (w *world) swapPlaces(o ledger.Order, area int32, n int) ledger.Hold {
	w.Helper()
	return w.held(ledger.HoldPlaces{ID: w.ids.MustNext(0), Event: theEvent, Customer: o.Customer, Area: area, Quantity: n, Exchange: ledger.Exchange{Order: o.ID}})
}

func wantRefund(w *world, f ledger.Refund, state ledger.RefundState, amount, kept int64) {
	w.Helper()
	if f.State != state || f.Amount != amount || f.FeeKept != kept {
		w.Errorf("the refund is %s of %d, %d kept; want %s of %d, %d kept", f.State, f.Amount, f.FeeKept, state, amount, kept)
	}
}

func TestRefund(t *testing.T) {
	inWorlds(t, []scenario{
		{"A21: one of two tickets, by the rule, once", func(w *world) []int64 {
			w.opened()
			o := w.bought(alice, 0, 1)
			f := w.mustGiveBack(o, "r", 0)
			wantRefund(w, f, ledger.RefundSeatReleased, seatPrice-seatKept, seatKept)
			again := w.mustGiveBack(o, "r", 0)
			if again.ID != f.ID {
				w.Errorf("the repeat made refund %d beside %d", again.ID, f.ID)
			}
			if _, err := w.giveBack(o, "r", 1); fault.CodeOf(err) != fault.KeyReused {
				w.Errorf("the key for another ticket: %v", err)
			}
			if _, err := w.giveBack(o, "r2", 0); fault.CodeOf(err) != fault.Conflict {
				w.Errorf("the ticket again: %v", err)
			}
			now := w.wantNow(o.ID, ledger.OrderPaid, "")
			if now.Tickets[0].State != ledger.TicketVoid || now.Tickets[1].State != ledger.TicketValid {
				w.Errorf("tickets %+v", now.Tickets)
			}
			w.wantSeats(ledger.Available, 0)
			w.wantSeats(ledger.Sold, 1)
			w.wantMoney(o, seatPrice+seatKept, payment.Captured)
			w.wantState(w.bought(carol, 0), ledger.OrderPaid) // the seat sells again
			return nil
		}},
		{"A21: the last ticket ends the order", func(w *world) []int64 {
			w.opened()
			o := w.bought(alice, 0, 1)
			w.mustGiveBack(o, "a", 0)
			w.mustGiveBack(o, "b", 1)
			w.wantNow(o.ID, ledger.OrderRefunded, ledger.ReasonCustomer)
			w.wantMoney(o, 2*seatKept, payment.Captured)
			return nil
		}},
		{"no rule, no refund; and nobody else's", func(w *world) []int64 {
			o := w.bought(alice, 0)
			if _, err := w.giveBack(o, "r"); fault.CodeOf(err) != fault.NotRefundable {
				w.Errorf("without a rule: %v", err)
			}
			w.opened()
			o.Customer = carol
			if _, err := w.giveBack(o, "r"); fault.CodeOf(err) != fault.WrongCustomer {
				w.Errorf("by another customer: %v", err)
			}
			w.wantMoney(o, seatPrice, payment.Captured)
			return nil
		}},
		{"by the organizer, at any time, with what is kept said", func(w *world) []int64 {
			o := w.bought(alice, 0, 1)
			refunds, err := w.service.Refund(w.ctx(), RefundRequest{Order: o.ID, Customer: carol, By: ledger.ByOrganizer, Reason: "ill", Fee: 700})
			if err != nil {
				w.Fatalf("refund: %v", err)
			}
			wantRefund(w, refunds[0], ledger.RefundSeatReleased, 2*seatPrice-700, 700)
			w.wantNow(o.ID, ledger.OrderRefunded, "ill")
			return nil
		}},
		{"money that cannot be had at once goes back later", func(w *world) []int64 {
			w.opened()
			o := w.bought(alice, 0)
			w.meddling(func(op string, call func() error) error {
				if op == "Refund" {
					return payment.Unknown(op, errAway)
				}
				return call()
			})
			f := w.mustGiveBack(o, "r")
			wantRefund(w, f, ledger.RefundRequested, seatPrice-seatKept, seatKept)
			w.wantSeats(ledger.Sold, 0) // A21: until the money is back
			w.meddling(nil)
			w.pass(2 * second)
			w.recover()
			w.wantNow(o.ID, ledger.OrderRefunded, ledger.ReasonCustomer)
			w.wantSeats(ledger.Available, 0)
			if n := w.did("Refund"); n != 2 {
				w.Errorf("the provider was asked %d times", n)
			}
			return nil
		}},
		{"A21: the provider's final no waits for people, who may try again", func(w *world) []int64 {
			w.opened()
			p := w.twist(nil)
			o := w.bought(alice, 0)
			p.refund = func(string) error { return &payment.Refused{Op: "refund", Code: "account_closed"} }
			f := w.mustGiveBack(o, "r")
			if f.State != ledger.RefundRequested || f.Refused != "account_closed" {
				w.Errorf("the refund is %s, refused %q", f.State, f.Refused)
			}
			w.wantAlerts("the provider refused a refund (account_closed)")
			tried := w.did("Refund")
			for range 5 {
				w.pass(hour)
				w.recover()
			}
			if w.did("Refund") != tried {
				w.Errorf("it was tried again without anybody's word")
			}
			w.wantAlerts()
			p.refund = nil
			if f, err := w.service.RetryRefund(w.ctx(), f.ID); err != nil || f.State != ledger.RefundSeatReleased || f.Key() != f.ID.Text(id.Refund)+"-1" {
				w.Errorf("the second try: %+v, %v", f, err)
			}
			if _, err := w.service.RetryRefund(w.ctx(), f.ID); fault.CodeOf(err) != fault.Conflict {
				w.Errorf("a third try: %v", err)
			}
			w.wantMoney(o, seatKept, payment.Captured)
			return nil
		}},
		{"places of an area, and what was free", func(w *world) []int64 {
			w.opened()
			o := w.mustBook(w.request(w.holdPlaces(alice, areaPaid, 3), sandbox.TokenSure, "k"))
			free := w.mustBook(w.request(w.holdPlaces(alice, areaFree, 2), "", "k2"))
			w.run()
			w.recover()
			w.mustGiveBack(w.order(o.ID), "r", 0, 2)
			f := w.mustGiveBack(free, "r2")
			wantRefund(w, f, ledger.RefundSeatReleased, 0, 0)
			w.wantNow(free.ID, ledger.OrderRefunded, ledger.ReasonCustomer)
			return nil
		}},
		{"A6: everybody gets everything back when the event is cancelled", func(w *world) []int64 {
			w.opened()
			o := w.bought(alice, 0, 1)
			w.mustGiveBack(o, "r", 0)
			free := w.mustBook(w.request(w.holdPlaces(carol, areaFree, 2), "", "k2"))
			w.setEvent(func(e *ledger.Event) { e.State = ledger.Cancelled })
			for range 3 {
				w.pass(second)
				w.recover()
			}
			w.wantNow(o.ID, ledger.OrderRefunded, ledger.ReasonEventCancelled)
			w.wantNow(free.ID, ledger.OrderRefunded, ledger.ReasonEventCancelled)
			w.wantNow(w.bobs.ID, ledger.OrderRefunded, ledger.ReasonEventCancelled)
			w.wantMoney(o, seatKept, payment.Captured) // of what alice gave back before
			w.bobs = ledger.Order{}
			return nil
		}},
	})
}

// TestParallelRefunds: A21. Many requests for one ticket at once give it back once.
func TestParallelRefunds(t *testing.T) {
	inWorlds(t, []scenario{{"parallel", func(w *world) []int64 {
		w.opened()
		o := w.bought(alice, 0, 1)
		var mu sync.Mutex
		var made []id.ID
		var all sync.WaitGroup
		for k := range 16 {
			all.Go(func() {
				refunds, err := w.giveBack(o, fmt.Sprint("r", k), k%2)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					made = append(made, refunds[0].ID)
				case fault.CodeOf(err) != fault.Conflict:
					w.Errorf("request %d: %v", k, err)
				}
			})
		}
		all.Wait()
		if len(made) != 2 {
			w.Errorf("refunds %v were made for two tickets", made)
		}
		w.wantMoney(o, 2*seatKept, payment.Captured)
		return nil
	}}})
}

func TestExchange(t *testing.T) {
	inWorlds(t, []scenario{
		{"A22: a difference is due", func(w *world) []int64 {
			w.opened()
			o := w.mustBook(w.request(w.holdPlaces(alice, areaPaid, 1), sandbox.TokenSure, "k"))
			w.run()
			w.recover()
			h := w.swapHold(w.order(o.ID), 0)
			q, err := w.service.Quote(w.ctx(), alice, h.ID)
			want := Quote{Currency: "EUR", New: seatPrice, Old: 3000, Fee: 300, Due: seatPrice - 2700}
			if err != nil || q != want {
				w.Errorf("the quote is %+v, %v; want %+v", q, err, want)
			}
			r := w.request(h, sandbox.TokenSure, "x")
			n := w.mustBook(r)
			w.wantState(n, ledger.OrderPaid)
			if again := w.mustBook(r); again.ID != n.ID {
				w.Errorf("the repeat made order %d", again.ID)
			}
			if n.Exchange != o.ID || n.Amount != q.Due || n.Credit != 2700 {
				w.Errorf("the new order is %+v", n)
			}
			w.wantNow(o.ID, ledger.OrderRefunded, ledger.ReasonExchanged)
			w.wantMoney(o, 3000, payment.Captured)
			w.wantMoney(n, q.Due, payment.Captured)
			// What was paid for both goes back from both.
			w.mustGiveBack(n, "r")
			w.wantNow(n.ID, ledger.OrderRefunded, ledger.ReasonCustomer)
			w.wantMoney(n, 0, payment.Captured)
			w.wantMoney(o, 300+seatKept, payment.Captured)
			return nil
		}},
		{"A22: too much goes back", func(w *world) []int64 {
			w.opened()
			o := w.bought(alice, 0)
			h := w.swapPlaces(o, areaPaid, 1)
			n := w.mustBook(Request{Customer: alice, Hold: h.ID, Key: ledger.Key{Value: "x"}})
			w.wantState(n, ledger.OrderPaid)
			if n.Amount != 0 || n.Credit != 3000 {
				w.Errorf("the new order is %+v", n)
			}
			w.wantSeats(ledger.Available, 0)
			w.wantMoney(o, 3000+300, payment.Captured)
			return nil
		}},
		{"A22: nothing due and nothing back", func(w *world) []int64 {
			w.setEvent(func(e *ledger.Event) { e.Exchanges = ledger.ExchangeRule{Until: e.SaleCloses} })
			o := w.bought(alice, 0, 1)
			n := w.mustBook(Request{Customer: alice, Hold: w.swapHold(o, 2, 3).ID, Key: ledger.Key{Value: "x"}})
			w.wantState(n, ledger.OrderPaid)
			w.wantSeats(ledger.Available, 0, 1)
			w.wantSeats(ledger.Sold, 2, 3)
			w.wantMoney(o, 2*seatPrice, payment.Captured)
			if w.did("Charge") != 2 { // bob's and alice's first
				w.Errorf("charged %d times", w.did("Charge"))
			}
			// And again: what an order came to by an exchange can be exchanged.
			m := w.mustBook(Request{Customer: alice, Hold: w.swapHold(n, 4, 5).ID, Key: ledger.Key{Value: "y"}})
			w.wantState(m, ledger.OrderPaid)
			return nil
		}},
		{"A22: declined, and the old tickets stay", func(w *world) []int64 {
			w.opened()
			o := w.mustBook(w.request(w.holdPlaces(alice, areaPaid, 1), sandbox.TokenSure, "k"))
			w.run()
			w.recover()
			h := w.swapHold(w.order(o.ID), 0)
			n := w.mustBook(w.request(h, sandbox.Token(sandbox.FaultDeclined), "x"))
			w.wantState(n, ledger.OrderFailed)
			if now := w.wantNow(o.ID, ledger.OrderPaid, ""); now.Tickets[0].State != ledger.TicketValid {
				w.Errorf("the old ticket is %s", now.Tickets[0].State)
			}
			w.wantState(w.mustBook(w.request(h, sandbox.TokenSure, "y")), ledger.OrderPaid) // another card
			return nil
		}},
		{"A22: paid too late: the old tickets stay, the payment goes back", func(w *world) []int64 {
			w.opened()
			o := w.mustBook(w.request(w.holdPlaces(alice, areaPaid, 1), sandbox.TokenSure, "k"))
			w.run()
			w.recover()
			n := w.mustBook(w.request(w.swapHold(w.order(o.ID), 0), sandbox.Token(sandbox.FaultPayLate), "x"))
			w.wantState(n, ledger.OrderPending)
			w.pass(lateAfter)
			w.run()
			w.wantNow(n.ID, ledger.OrderExpired, ledger.ReasonLate)
			w.wantAlerts("a payment is given back: late_payment")
			w.wantNow(o.ID, ledger.OrderPaid, "")
			w.wantMoney(n, 0, payment.Captured)
			w.wantSeats(ledger.Available, 0)
			return nil
		}},
		{"what is being exchanged is not given back beside", func(w *world) []int64 {
			w.opened()
			o := w.bought(alice, 0)
			h := w.swapHold(o, 1)
			if _, err := w.giveBack(o, "r"); fault.CodeOf(err) != fault.Conflict {
				w.Errorf("refund: %v", err)
			}
			w.command(ledger.Release{Hold: h.ID, Customer: alice})
			w.mustGiveBack(o, "r")
			return nil
		}},
	})
}

func TestTransfer(t *testing.T) {
	inWorlds(t, []scenario{{"a ticket is passed on, and is its new owner's", func(w *world) []int64 {
		w.opened()
		o := w.bought(alice, 0, 1)
		r := Transfer{Ticket: o.Tickets[0].ID, Customer: alice, To: carol, Key: ledger.Key{Value: "t"}}
		n, err := w.service.Transfer(w.ctx(), r)
		if err != nil || n.Customer != carol || n.Was != o.Tickets[0].ID || n.Order != o.ID {
			w.Fatalf("the new ticket is %+v, %v", n, err)
		}
		if again, err := w.service.Transfer(w.ctx(), r); err != nil || again.ID != n.ID {
			w.Errorf("the repeat: %+v, %v", again, err)
		}
		if _, err := w.giveBack(o, "r", 0); fault.CodeOf(err) != fault.Conflict {
			w.Errorf("giving back the old one: %v", err)
		}
		if refunds, err := w.giveBack(o, "r"); err != nil || len(refunds[0].Tickets) != 1 || refunds[0].Tickets[0] != o.Tickets[1].ID {
			w.Errorf("giving back all that is left: %+v, %v", refunds, err)
		}
		tickets, err := w.store.TicketsOf(w.ctx(), carol, 0, 10)
		if err != nil || !slices.ContainsFunc(tickets, func(t ledger.Ticket) bool { return t.ID == n.ID }) {
			w.Errorf("carol has %+v, %v", tickets, err)
		}
		return nil
	}}})
}

// What happens after a customer asks to give back or to exchange. Each story is told with the process killed at each line.
var afterwards = map[string]func(w *world, o ledger.Order){
	"refund, and the customer tries again": func(w *world, o ledger.Order) {
		w.process(func() { _, _ = w.giveBack(o, "r", 0) })
		w.process(func() { _, _ = w.giveBack(o, "r", 0) })
		w.wantRefundsAtMost(o.ID, 1)
	},
	"refund, then recovery": func(w *world, o ledger.Order) {
		w.process(func() { _, _ = w.giveBack(o, "r", 0, 1) })
		for range 3 {
			w.pass(minute)
			w.process(func() { w.recover() })
		}
	},
	"exchange with a difference due": func(w *world, o ledger.Order) {
		h := w.swapHold(o, 2, 3)
		r := w.request(h, sandbox.TokenSure, "x")
		w.process(func() { w.clicks(r) })
		w.process(func() { w.clicks(r) })
		w.process(func() { w.recover() })
	},
	"exchange, and the difference is paid late": func(w *world, o ledger.Order) {
		r := w.request(w.swapHold(o, 2, 3), sandbox.Token(sandbox.FaultPayLate), "x")
		w.process(func() { w.clicks(r) })
		w.pass(lateAfter)
		w.postSurely()
		w.process(func() { w.recover() })
	},
	"exchange with money back": func(w *world, o ledger.Order) {
		r := Request{Customer: alice, Hold: w.swapPlaces(o, areaPaid, 1).ID, Key: ledger.Key{Value: "x"}}
		w.process(func() { w.clicks(r) })
		w.process(func() { w.clicks(r) })
		for range 3 {
			w.pass(minute)
			w.process(func() { w.recover() })
		}
	},
	"the event is cancelled": func(w *world, o ledger.Order) {
		w.setEvent(func(e *ledger.Event) { e.State = ledger.Cancelled })
		w.bobs = ledger.Order{}
		for range 4 {
			w.pass(minute)
			w.process(func() { w.recover() })
		}
	},
}

func (w *world) wantRefundsAtMost(order id.ID, n int) {
	w.Helper()
	if got := len(w.refundsOf(order)); got > n {
		w.Errorf("I5: %d refunds were made, want %d at most", got, n)
	}
}

// TestRefundsAndExchangesKilledAtEachLine: A21, A22, I5, I6, I7. kill -9 between any two steps of refund and exchange.
func TestRefundsAndExchangesKilledAtEachLine(t *testing.T) {
	for name, story := range afterwards {
		for k, mode := range []string{"charge", "authorize"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				step := 1
				if soak() == 1 { // the short form takes every second line, with the race detector every sixth
					step = 2
					if racing {
						step = 6
					}
				}
				for line := 1 + k%step; ; line += step {
					if line > 400 {
						t.Fatalf("not over after %d lines", line)
					}
					on := "model"
					if soak() > 1 || line%4 == 0 {
						on = "sqlite"
					}
					store, webhooks := openers[on](t, l)
					w := newWorld(t, l, store, webhooks, mode == "authorize")
					w.bystander()
					w.opened()
					o := w.bought(alice, 0, 1)
					if name == "exchange with a difference due" || name == "exchange, and the difference is paid late" {
						w.setEvent(func(e *ledger.Event) { e.Tiers[0].Face += 1000 })
					}
					reached := w.killAt(line)
					story(w, o)
					over := !reached()
					w.check()
					w.close()
					if t.Failed() {
						t.Fatalf("%s, killed at line %d; calls %v", name, line, w.ops)
					}
					if over {
						return
					}
				}
			})
		}
	}
}
