package booking

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/sandbox"
)

// setChecks makes rapid run so many histories, unless the command line said how many.
func setChecks(t *testing.T, n int) {
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	if checks := flag.Lookup("rapid.checks"); !said && checks != nil {
		old := checks.Value.String()
		if err := checks.Value.Set(strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = checks.Value.Set(old) })
	}
}

// A history is a random schedule in a world.
type history struct {
	*world
	*rapid.T
	requests []Request
	effects  map[string]id.ID // of keys
	holding  []ledger.Hold
	letters  [][]byte
	crashes  int
}

func (h *history) Helper()                           { h.T.Helper() }
func (h *history) Errorf(format string, args ...any) { h.T.Helper(); h.T.Errorf(format, args...) }
func (h *history) Fatalf(format string, args ...any) { h.T.Helper(); h.T.Fatalf(format, args...) }

var tokens = []string{
	sandbox.TokenSure, sandbox.TokenSure, sandbox.Token(sandbox.FaultPending), sandbox.Token(sandbox.FaultPendingDeclined),
	sandbox.Token(sandbox.FaultPayLate), sandbox.Token(sandbox.FaultDeclined), sandbox.Token(sandbox.FaultDeclinedSoft),
	sandbox.Token(sandbox.FaultLostAnswer), sandbox.Token(sandbox.FaultServerError), sandbox.Token(sandbox.FaultCaptureRefused),
	sandbox.Token(sandbox.FaultWrongAmount), sandbox.Token(sandbox.FaultSecondPayment),
	sandbox.Token(sandbox.FaultPayLate, sandbox.FaultSecondPayment), sandbox.Token(sandbox.FaultPending, sandbox.FaultWrongAmount),
	sandbox.Token(sandbox.FaultPending, sandbox.FaultLostAnswer, sandbox.FaultWebhookRepeat, sandbox.FaultWebhookReorder),
	sandbox.Token(sandbox.FaultPending, sandbox.FaultWebhookNever), sandbox.Token(sandbox.FaultPayLate, sandbox.FaultWebhookNever),
	sandbox.Token(sandbox.FaultLostAnswer, sandbox.FaultWebhookNever),
}

func (h *history) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"hold": func(*rapid.T) { h.takeSome() },
		"book": func(t *rapid.T) {
			if len(h.holding) == 0 {
				h.takeSome()
			}
			if len(h.holding) == 0 {
				t.Skip("nothing is held")
			}
			of := rapid.SampledFrom(h.holding).Draw(t, "hold")
			r := h.request(of, rapid.SampledFrom(tokens).Draw(t, "token"), fmt.Sprint("key ", len(h.requests)))
			r.AllowOther = rapid.Bool().Draw(t, "allow other")
			h.requests = append(h.requests, r)
			h.process(func() { h.click(r) })
		},
		"book again": func(t *rapid.T) {
			if len(h.requests) == 0 {
				t.Skip("nothing was asked for")
			}
			r := rapid.SampledFrom(h.requests).Draw(t, "request")
			h.process(func() { h.click(r) })
		},
		"post": func(t *rapid.T) { h.postSome(t) },
		"recover": func(*rapid.T) {
			h.process(func() { h.world.recover() })
		},
		"time": func(t *rapid.T) {
			h.pass(rapid.SampledFrom([]ledger.Duration{second, payAfter, 15 * second, minute, 5 * minute, 11 * minute, lateAfter}).Draw(t, "time"))
			h.runDue(h)
		},
		"sweep":       func(*rapid.T) { h.command(ledger.Sweep{}) },
		"new process": func(*rapid.T) { h.restart() },
		"interfere": func(t *rapid.T) {
			n := rapid.IntRange(1, 14).Draw(t, "line")
			if rapid.Bool().Draw(t, "kill") {
				h.crashes++
				h.killAt(n)
				return
			}
			h.cutOff(n, n+rapid.IntRange(0, 3).Draw(t, "calls"), rapid.Bool().Draw(t, "after"))
		},
	}
}

// cutOff makes the calls from first to last meet a dead line, before their effect or after.
func (w *world) cutOff(first, last int, after bool) {
	calls := 0
	w.meddling(func(op string, call func() error) error {
		calls++
		if calls < first || calls > last {
			return call()
		}
		if after {
			_ = call()
		}
		switch op {
		case "Charge", "Lookup", "Cancel", "Capture", "Void", "Refund":
			return payment.Unknown(op, errAway)
		case "WebhookKeep":
			return errAway
		}
		return fault.Wrap(fault.OutcomeUnknown, errAway)
	})
}

func (h *history) takeSome() {
	customer := rapid.SampledFrom([]id.ID{alice, carol}).Draw(h.T, "customer")
	first := rapid.Int32Range(0, 6).Draw(h.T, "seat")
	seats := []int32{first}
	if first < 6 && rapid.Bool().Draw(h.T, "two") {
		seats = append(seats, first+1)
	}
	r, err := h.batcher.Do(h.ctx(), ledger.HoldSeats{ID: h.ids.MustNext(0), Event: theEvent, Customer: customer, Seats: seats})
	if err == nil {
		h.holding = append(h.holding, *r.Hold)
	}
}

// click books, and remembers which order the key made.
func (h *history) click(r Request) {
	o, err := h.book(r)
	switch fault.CodeOf(err) {
	case "":
		h.madeBy(r, o.ID)
	case fault.PaymentUnavailable:
		h.madeBy(r, fault.Of(err).Order)
	case fault.OutcomeUnknown, fault.HoldExpired, fault.PaymentInProgress:
	default:
		h.Errorf("booking is refused: %v", err)
	}
}

func (h *history) madeBy(r Request, order id.ID) {
	if before, ok := h.effects[r.Key.Value]; ok && before != order {
		h.Errorf("I5: %s made order %d, and then %d", r.Key.Value, before, order)
	}
	h.effects[r.Key.Value] = order
}

// postSome delivers some of the letters, in any order, some twice.
func (h *history) postSome(t *rapid.T) {
	h.runDue(h)
	h.letters = append(h.letters, h.mail()...)
	for range rapid.IntRange(0, 6).Draw(t, "letters") {
		if len(h.letters) == 0 {
			return
		}
		k := rapid.IntRange(0, len(h.letters)-1).Draw(t, "letter")
		body := h.letters[k]
		taken := false
		h.process(func() { taken = h.deliver(body) == nil })
		if taken && rapid.IntRange(0, 3).Draw(t, "not again") > 0 {
			h.letters = slices.Delete(h.letters, k, k+1)
		}
	}
}

// TestRandomHistories: whatever is booked, repeated, lost, killed, delivered late, twice and in any order, and whoever
// takes the seats meanwhile: when all is healed and done, money, tickets and seats agree.
func TestRandomHistories(t *testing.T) {
	histories := 60
	if racing {
		histories = 20
	}
	setChecks(t, histories*soak())
	l := newLab(t)
	rapid.Check(t, func(rt *rapid.T) {
		on := "model"
		if rapid.IntRange(0, 9).Draw(rt, "ledger") == 0 {
			on = "sqlite"
		}
		store, webhooks := openers[on](t, l)
		w := newWorld(rt, l, store, webhooks, rapid.Bool().Draw(rt, "authorize"))
		defer w.close()
		h := &history{world: w, T: rt, effects: map[string]id.ID{}}
		rt.Repeat(h.actions())
		w.meddling(nil)
		for _, body := range h.letters {
			if err := w.deliver(body); err != nil {
				h.Errorf("webhook: %v", err)
			}
		}
		w.check()
		for _, r := range h.requests { // also those that were refused, or whose answer nobody saw
			h.click(r)
		}
		w.check()
		h.repeats()
	})
}

// repeats checks that each key that had an effect is answered with it, and nothing more happens.
func (h *history) repeats() {
	h.Helper()
	for _, r := range h.requests {
		before := h.did("Charge")
		o, err := h.book(r)
		if _, made := h.effects[r.Key.Value]; !made {
			continue
		}
		if err != nil {
			h.Errorf("I5: the repeat of %s is refused: %v", r.Key.Value, err)
			continue
		}
		h.madeBy(r, o.ID)
		if o.State == ledger.OrderPending || h.did("Charge") != before {
			h.Errorf("I5: the repeat of %s begins anew: order %d is %s", r.Key.Value, o.ID, o.State)
		}
	}
}

// TestGuards are the negative controls: with one of the rules broken by what stands between, the check of money must
// fail. Where it does not, it proves nothing.
func TestGuards(t *testing.T) {
	guards := []struct {
		name  string
		token string
		run   func(w *world, r Request)
	}{
		{"the provider is not idempotent", sandbox.Token(sandbox.FaultWebhookNever), func(w *world, r Request) {
			w.options.Provider = forgetful{w.provider}
			w.restart()
			w.killAt(4) // after the first charge
			w.process(func() { w.clicks(r) })
			w.clicks(r)
		}},
		{"what is to be given back is forgotten", sandbox.Token(sandbox.FaultWrongAmount), func(w *world, r Request) {
			w.options.Shard = forgetfulShard{shard{w}}
			w.restart()
			w.clicks(r)
		}},
		{"a time-out is taken for a decline", sandbox.Token(sandbox.FaultLostAnswer, sandbox.FaultWebhookNever), func(w *world, r Request) {
			w.options.Provider = hasty{w.provider}
			w.restart()
			w.clicks(r)
		}},
	}
	l := newLab(t)
	for _, g := range guards {
		for _, broken := range []bool{true, false} {
			t.Run(fmt.Sprint(g.name, "/", broken), func(t *testing.T) {
				store, webhooks := openers["model"](t, l)
				w := newWorld(t, l, store, webhooks, false)
				defer w.close()
				r := w.request(w.hold(alice, 0), g.token, "k")
				if broken {
					g.run(w, r)
				} else {
					w.clicks(r)
				}
				for range 20 {
					w.pass(minute)
					w.run()
					w.recover()
				}
				found := w.problems(0)
				if broken && len(found) == 0 {
					t.Error("the check finds nothing")
				}
				if !broken && len(found) > 0 {
					t.Errorf("the check finds %q", found)
				}
			})
		}
	}
}

// forgetful is a provider that takes each attempt for a new one.
type forgetful struct{ *meddled }

func (f forgetful) Charge(ctx context.Context, a payment.Attempt) (payment.Payment, error) {
	w := f.w
	if w.did("Charge") > 0 {
		a.OrderID += "-again"
		w.aliases = append(w.aliases, a.OrderID)
	}
	return f.meddled.Charge(ctx, a)
}

// forgetfulShard is a ledger that does not say what is to be given back.
type forgetfulShard struct{ shard }

type forgetfulReader struct{ ledger.Reader }

func (forgetfulReader) OpenPayments(context.Context, int) ([]ledger.OpenPayment, error) {
	return nil, nil
}

func (f forgetfulShard) Ledger() ledger.Reader { return forgetfulReader{f.shard.Ledger()} }

func (f forgetfulShard) Do(ctx context.Context, c ledger.Command) (ledger.Result, error) {
	r, err := f.shard.Do(ctx, c)
	r.Refund = nil
	return r, err
}

// hasty is a provider's client that takes no answer for a no.
type hasty struct{ *meddled }

func (h hasty) Charge(ctx context.Context, a payment.Attempt) (payment.Payment, error) {
	p, err := h.meddled.Charge(ctx, a)
	if errors.Is(err, payment.ErrUnknown) {
		return payment.Payment{ID: "none", State: payment.Declined, Decline: payment.Decline{Code: "timeout", Final: true}}, nil
	}
	return p, err
}
