package booking

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/stripe"
	"onsale/internal/payment/stripe/stripetest"
)

// atStripe is a world whose provider is Stripe's stand-in.
type atStripe struct {
	*world
	stripe *stripetest.Server
	client *stripe.Client
}

// newAtStripe makes one; close it.
func newAtStripe(t *testing.T, l *lab, ledgerName string, authorize bool) *atStripe {
	t.Helper()
	store, webhooks := openers[ledgerName](t, l)
	w := &atStripe{world: newWorld(t, l, store, webhooks, authorize), stripe: stripetest.New(stripetest.Config{Now: l.now})}
	t.Cleanup(w.stripe.Close)
	var err error
	w.client, err = stripe.New(stripe.Config{
		SecretKey: w.stripe.Key(), WebhookSecrets: []string{w.stripe.WebhookSecret()}, URL: w.stripe.URL(), Now: l.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	w.options.Provider = w.client
	w.restart()
	return w
}

// at is what Stripe has of an order.
func (w *atStripe) at(order id.ID) []payment.Payment {
	w.Helper()
	found, err := w.client.Lookup(context.Background(), order.Text(id.Order))
	if err != nil {
		w.Fatalf("lookup: %v", err)
	}
	return found
}

// hook delivers an event as it comes in now.
func (w *atStripe) hook(e stripetest.Event) {
	w.Helper()
	if err := w.service.Webhook(context.Background(), w.stripe.Header(e.Body), e.Body); err != nil {
		w.Fatalf("webhook %s: %v", e.Type, err)
	}
}

// rest lets time pass until nothing is due.
func (w *atStripe) rest() {
	w.Helper()
	for k := range 60 {
		w.recover()
		if w.open() == 0 && w.pending() == 0 && w.unreleased() == 0 {
			return
		}
		w.pass(min(15*second<<min(k, 8), 4*minute))
	}
	w.Fatalf("after hours %d orders are PENDING and %d payments open", w.pending(), w.open())
}

// balance checks I1, I6 and I7 of all orders.
func (w *atStripe) balance() {
	w.Helper()
	seats := map[int32]int{}
	for _, order := range w.all() {
		o := w.order(order)
		var price, money int64
		for _, t := range o.Tickets {
			if t.State == ledger.TicketValid {
				price += t.Total
				seats[t.Seat]++
			}
		}
		for _, p := range w.at(order) {
			money += p.CapturedMinor - p.RefundedMinor
			if p.State == payment.Authorized || p.State == payment.Pending {
				w.Errorf("payment %s of order %d is left %s", p.ID, o.ID, p.State)
			}
		}
		if money != price || (o.State == ledger.OrderPaid) != (price > 0) {
			w.Errorf("order %d is %s with tickets for %d; Stripe keeps %d", o.ID, o.State, price, money)
		}
	}
	for seat, tickets := range seats {
		if tickets > 1 {
			w.Errorf("I1: seat %d has %d valid tickets", seat, tickets)
		}
	}
}

// hooks are the ways in which webhooks come in.
var hooks = map[string]func(w *atStripe){
	"once":      func(w *atStripe) { w.hooks(w.stripe.Events()) },
	"twice":     func(w *atStripe) { w.hooks(w.stripe.Events()); w.hooks(w.stripe.Events()) },
	"never":     func(w *atStripe) {},
	"late":      func(w *atStripe) { w.rest(); w.hooks(w.stripe.Events()) },
	"reordered": func(w *atStripe) { all := w.stripe.Events(); slices.Reverse(all); w.hooks(all) },
}

func (w *atStripe) hooks(all []stripetest.Event) {
	w.Helper()
	for _, e := range all {
		w.hook(e)
	}
}

// Every order of {answer, webhook}, whatever the payment does and whatever has become of the hold meanwhile (issue 3, 3).
func TestMoneyAtStripe(t *testing.T) {
	for _, authorize := range []bool{false, true} {
		for how, deliver := range hooks {
			t.Run(fmt.Sprintf("authorize %v/webhooks %s", authorize, how), func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				for _, token := range []string{stripetest.Visa, stripetest.Declined, stripetest.NeedsAction, "action fails"} {
					for _, answer := range []string{"arrives", "lost"} {
						for _, hold := range []string{"live", "expired", "retaken"} {
							if answer == "arrives" && hold != "live" && token != stripetest.NeedsAction && token != "action fails" {
								continue // the order has ended before the hold does
							}
							t.Run(token+"/answer "+answer+"/hold "+hold, func(t *testing.T) {
								name := "model"
								if how == "reordered" {
									name = "sqlite"
								}
								w := newAtStripe(t, l, name, authorize)
								defer w.close()
								w.story(token, answer == "lost", hold)
								deliver(w)
								w.rest()
								deliver(w)
								w.rest()
								w.balance()
							})
						}
					}
				}
			})
		}
	}
}

// story is one customer's attempt, up to where webhooks and recovery take over.
func (w *atStripe) story(token string, lost bool, hold string) {
	w.Helper()
	good := token != "action fails"
	if !good {
		token = stripetest.NeedsAction
	}
	if lost { // the answer, and the one to the question what has become of it
		w.stripe.Inject(stripetest.Fault{Kind: stripetest.LoseAnswer, Call: "confirm"})
		w.stripe.Inject(stripetest.Fault{Kind: stripetest.Unavailable, Call: "retrieve"})
	}
	r := w.request(w.held(ledger.HoldSeats{ID: w.ids.MustNext(0), Event: theEvent, Customer: alice, Seats: []int32{0, 1}}), token, "k")
	if lost {
		w.bookFails(r, fault.PaymentUnavailable)
		if w.stripe.Open() > 0 {
			w.Fatalf("the answer was not lost")
		}
	} else {
		b, err := w.service.Book(context.Background(), r)
		if err != nil {
			w.Fatalf("booking: %v", err)
		}
		if waits := token == stripetest.NeedsAction; waits != (b.Action != nil) || waits != (b.State == ledger.OrderPending) {
			w.Fatalf("order %s, action told %v", b.State, b.Action != nil)
		}
	}
	if hold != "live" {
		w.pass(20 * minute)
	}
	if hold == "retaken" {
		w.mustBook(w.request(w.hold(carol, 0, 1), stripetest.Visa, "c"))
	}
	if token == stripetest.NeedsAction {
		for _, p := range w.at(w.all()[0]) {
			w.stripe.Authenticate(p.ID, good)
		}
	}
}

// What no code can put right is told to somebody, once for each webhook; what is of no concern to nobody.
func TestWebhooksThatOnlyTell(t *testing.T) {
	l := newLab(t)
	w := newAtStripe(t, l, "model", false)
	defer w.close()
	o := w.mustBook(w.request(w.hold(alice, 0), stripetest.RefundFails, "k"))
	w.wantState(o, ledger.OrderPaid)
	p := w.at(o.ID)[0]
	w.hooks(w.stripe.Events())
	w.wantAlerts()
	w.stripe.Dispute(p.ID)
	for range 2 {
		w.hooks(w.stripe.Events("charge.dispute.created"))
	}
	w.wantAlerts("payment " + p.ID + " is disputed")
	w.stripe.RefundByHand(p.ID, 100)
	w.stripe.FinishRefund(p.ID, false)
	w.hooks(w.stripe.Events("refund.failed"))
	w.hooks(w.stripe.Events("refund.created"))
	w.wantAlerts("refund re_")
	w.wantNow(o.ID, ledger.OrderPaid, "")
}

// A refund that the bank has not decided stays REQUESTED; its money is not written down as given back.
func TestAPendingRefundIsNotDone(t *testing.T) {
	for _, good := range []bool{true, false} {
		l := newLab(t)
		w := newAtStripe(t, l, "model", false)
		w.stripe.Inject(stripetest.Fault{Kind: stripetest.LoseAnswer, Call: "confirm"})
		w.stripe.Inject(stripetest.Fault{Kind: stripetest.Unavailable, Call: "retrieve"})
		w.bookFails(w.request(w.hold(alice, 0), stripetest.RefundPending, "k"), fault.PaymentUnavailable)
		w.pass(20 * minute)
		w.mustBook(w.request(w.hold(carol, 0), stripetest.Visa, "c"))
		order := w.all()[0]
		for range 5 { // the money came too late, and is on its way back
			w.recover()
			w.pass(4 * minute)
			if refunds := w.refundsOf(order); len(refunds) != 1 || refunds[0].State != ledger.RefundRequested || refunds[0].Refused != "" {
				t.Fatalf("%+v", refunds)
			}
		}
		w.stripe.FinishRefund(w.at(order)[0].ID, good)
		w.pass(hour)
		w.recover()
		if r := w.refundsOf(order)[0]; (r.State != ledger.RefundRequested) != good || (r.Refused == "") != good {
			t.Fatalf("the bank's answer is %v: %+v", good, r)
		}
		if good {
			w.rest()
			w.balance()
		}
		w.close()
	}
}
