package booking

import (
	"fmt"
	"slices"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/sandbox"
)

// mails are the ways in which the sandbox's webhooks come in. The first call is when the money has moved, the second when
// all has come to rest.
var mails = map[string]func(w *world, all [][]byte, atRest bool) [][]byte{
	"once":  func(_ *world, all [][]byte, atRest bool) [][]byte { return all },
	"twice": func(_ *world, all [][]byte, atRest bool) [][]byte { return slices.Concat(all, all) },
	"late": func(_ *world, all [][]byte, atRest bool) [][]byte {
		if !atRest {
			return nil
		}
		return all
	},
	"never":     func(*world, [][]byte, bool) [][]byte { return nil },
	"reordered": func(_ *world, all [][]byte, atRest bool) [][]byte { slices.Reverse(all); return all },
}

// Every order of {answer, webhook} × {once, twice, late, never, reordered} × {paid, declined, to be decided later} × {hold
// live, expired, retaken} ends with I6 and I7. TestMoneyAtStripe is the same on the other provider.
func TestMoneyAtTheSandbox(t *testing.T) {
	outcomes := map[string][]sandbox.Fault{
		"paid": nil, "declined": {sandbox.FaultDeclined}, "pays later": {sandbox.FaultPending}, "declined later": {sandbox.FaultPendingDeclined},
		"pays after the hold": {sandbox.FaultPayLate},
	}
	for _, authorize := range []bool{false, true} {
		for how, deliver := range mails {
			if racing && soak() == 1 && authorize != (len(how)%2 == 0) {
				continue // with the race detector each way runs in one of the modes
			}
			t.Run(fmt.Sprintf("authorize %v/webhooks %s", authorize, how), func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				for outcome, faults := range outcomes {
					for _, answer := range []string{"arrives", "lost"} {
						for _, hold := range []string{"live", "expired", "retaken"} {
							t.Run(outcome+"/answer "+answer+"/hold "+hold, func(t *testing.T) {
								on := "model"
								if how == "reordered" {
									on = "sqlite"
								}
								store, webhooks := openers[on](t, l)
								w := newWorld(t, l, store, webhooks, authorize)
								defer w.close()
								w.bystander()
								w.attempted(sandbox.Token(faults...), answer == "lost", hold)
								w.runDue(w)
								sent := w.mail()
								w.deliverAll(deliver(w, sent, false))
								w.recover()
								w.pass(lateAfter)
								w.runDue(w)
								later := w.mail()
								w.deliverAll(deliver(w, later, false))
								for range 8 { // what recovery asks comes to its end without another webhook
									w.recover()
									w.pass(minute)
								}
								w.deliverAll(deliver(w, slices.Concat(sent, later), true))
								w.check()
							})
						}
					}
				}
			})
		}
	}
}

// attempted is one customer's attempt, up to where webhooks and recovery take over.
func (w *world) attempted(token string, lost bool, hold string) {
	w.Helper()
	if lost { // the answer, and the one to the question what has become of it
		w.meddling(func(op string, call func() error) error {
			switch op {
			case "Charge":
				if err := call(); err != nil {
					return err
				}
				return payment.Unknown(op, errAway)
			case "Lookup", "Cancel":
				return payment.Unknown(op, errAway)
			}
			return call()
		})
	}
	r := w.request(w.hold(alice, 0, 1), token, "k")
	o, err := w.book(r)
	switch code := fault.CodeOf(err); {
	case lost && code != fault.PaymentUnavailable:
		w.Fatalf("the answer was lost, and the booking is %s, %v", o.State, err)
	case !lost && err != nil:
		w.Fatalf("booking: %v", err)
	}
	w.meddling(nil)
	if hold != "live" {
		w.pass(20 * minute)
	}
	if hold == "retaken" {
		if taken := w.takeSeat(0); taken != 0 {
			c := w.mustBook(w.request(w.holdBy(taken), sandbox.TokenSure, "c"))
			w.wantState(c, ledger.OrderPaid)
		}
	}
}

func (w *world) deliverAll(bodies [][]byte) {
	w.Helper()
	for _, body := range bodies {
		if err := w.deliver(body); err != nil {
			w.Fatalf("webhook %s: %v", body, err)
		}
	}
}
