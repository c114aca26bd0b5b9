package stripe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"onsale/internal/payment"
	"onsale/internal/payment/stripe/stripetest"
)

// Every fault at every call of a charge: the answer is never a wrong no, a repeat (by another node) comes to the end, and
// the money moves once.
func TestFaultsAtEveryCallOfACharge(t *testing.T) {
	kinds := map[string]stripetest.FaultKind{
		"request lost": stripetest.LoseRequest, "answer lost": stripetest.LoseAnswer, "unavailable": stripetest.Unavailable,
		"error kept": stripetest.ErrorKept, "error kept after it was done": stripetest.ErrorAfterKept, "rate limit": stripetest.RateLimit,
		"garbage": stripetest.Garbage, "endless answer": stripetest.Endless,
	}
	for name, kind := range kinds {
		for _, at := range []string{"create", "update", "confirm"} {
			t.Run(name+" at "+at, func(t *testing.T) {
				b := newBench(t, nil)
				a := b.order(stripetest.Visa)
				b.Inject(stripetest.Fault{Kind: kind, Call: at})
				p, err := b.client.Charge(t.Context(), a)
				if !errors.Is(err, payment.ErrUnknown) || b.Open() > 0 {
					t.Fatalf("first answer: %+v, %v", p, err)
				}
				b.wantNoSecrets(t, err.Error())
				again, err := b.another(t).Charge(t.Context(), a)
				if err != nil || again.State != payment.Captured || again.CapturedMinor != a.AmountMinor {
					t.Fatalf("repeated: %+v, %v", again, err)
				}
				if found := b.books(t, a.OrderID, payment.Captured); found[0].ID != again.ID {
					t.Fatalf("lookup finds %s, the charge was %s", found[0].ID, again.ID)
				}
				b.cancel(t, a.OrderID, payment.EndingPaid)
				if n := len(b.Events("charge.succeeded")); n != 1 {
					t.Fatalf("the money moved %d times", n)
				}
			})
			t.Run(name+" at "+at+", then cancelled", func(t *testing.T) {
				b := newBench(t, nil)
				a := b.order(stripetest.Visa)
				b.Inject(stripetest.Fault{Kind: kind, Call: at})
				if _, err := b.client.Charge(t.Context(), a); !errors.Is(err, payment.ErrUnknown) {
					t.Fatal(err)
				}
				e, err := b.another(t).Cancel(t.Context(), a.OrderID)
				if err != nil {
					t.Fatal(err)
				}
				after, err := b.client.Charge(t.Context(), a)
				if err != nil {
					t.Fatal(err)
				}
				moved := len(b.Events("charge.succeeded"))
				switch {
				case e.Result == payment.EndingCancelled && after.State == payment.Cancelled && moved == 0:
				case e.Result == payment.EndingPaid && after.State == payment.Captured && moved == 1:
				default:
					t.Fatalf("cancel says %s, a charge then %s, and the money moved %d times", e.Result, after.State, moved)
				}
			})
		}
	}
}

// wantNoSecrets looks for what must not be shown.
func (b *bench) wantNoSecrets(t *testing.T, text string) {
	t.Helper()
	for _, secret := range append(b.Secrets(), "secret_garbage", "sk_test", "whsec", "pm_card", "would quote") {
		if strings.Contains(text, secret) {
			t.Errorf("%q shows %q", text, secret)
		}
	}
}

// An object or a key that another call is at is waited for; no fault of these is ever seen.
func TestPassingConflictsAreWaitedFor(t *testing.T) {
	b := newBench(t, nil)
	for _, at := range []string{"create", "update", "confirm"} {
		b.Inject(stripetest.Fault{Kind: stripetest.LockTimeout, Call: at, Times: 2})
	}
	b.charge(t, b.order(stripetest.Visa), payment.Captured)
	if b.Open() > 0 {
		t.Fatal("the faults did not happen")
	}
	b.Inject(stripetest.Fault{Kind: stripetest.LockTimeout, Times: 1000}) // but not for ever
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := b.client.Charge(ctx, b.order(stripetest.Visa)); !errors.Is(err, payment.ErrUnknown) {
		t.Fatal(err)
	}
}

func TestTriesEnd(t *testing.T) {
	tries := 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, f := call(ctx, func() (int, error) { tries++; return 0, errors.New("no") })
	if f == nil || tries != 1 {
		t.Fatalf("%d tries of what does not pass by itself", tries)
	}
	keys := 0
	_, f = keyed(t.Context(), "k", func(*failure) bool { return true }, func(string) (int, error) { keys++; return 0, errors.New("no") })
	if f == nil || keys != keysMax {
		t.Fatalf("%d keys, want %d", keys, keysMax)
	}
}

func TestRateLimitSaysWhenToComeBack(t *testing.T) {
	b := newBench(t, nil)
	b.Inject(stripetest.Fault{Kind: stripetest.RateLimit, Call: "create"})
	_, err := b.client.Charge(t.Context(), b.order(stripetest.Visa))
	var busy *payment.Busy
	if !errors.Is(err, payment.ErrUnknown) || !errors.As(err, &busy) || busy.After != 7*time.Second || busy.Code != "rate_limit" {
		t.Fatalf("%v", err)
	}
}

// A19: a charge whose confirmation is on its way, and a cancel from another node meanwhile.
func TestCancelBeforeAConfirmationThatIsOnItsWay(t *testing.T) {
	for _, authorize := range []bool{false, true} {
		t.Run(fmt.Sprintf("authorize %v", authorize), func(t *testing.T) {
			b := newBench(t, nil)
			a := b.order(stripetest.Visa)
			a.AuthorizeOnly = authorize
			on, reached := make(chan struct{}), make(chan struct{})
			b.Inject(stripetest.Fault{Kind: stripetest.Stall, Call: "confirm", Until: on, Reached: reached})
			done := make(chan payment.Payment, 1)
			go func() {
				p, err := b.client.Charge(context.Background(), a)
				if err != nil {
					t.Errorf("charge: %v", err)
				}
				done <- p
			}()
			<-reached
			e, err := b.another(t).Cancel(t.Context(), a.OrderID)
			if err != nil || e.Result != payment.EndingCancelled {
				t.Errorf("cancel: %+v, %v", e, err)
			}
			close(on)
			if p := <-done; p.State != payment.Cancelled || len(b.Events("charge.succeeded")) > 0 {
				t.Fatalf("the charge ended as %s after the cancel", p.State)
			}
		})
	}
}

// The other way round: the money comes between looking and cancelling. What was taken stays; what was only reserved is let
// go, and both say so.
func TestMoneyThatComesWhileCancelling(t *testing.T) {
	for _, authorize := range []bool{false, true} {
		t.Run(fmt.Sprintf("authorize %v", authorize), func(t *testing.T) {
			b := newBench(t, nil)
			a := b.order(stripetest.NeedsAction)
			a.AuthorizeOnly = authorize
			p := b.charge(t, a, payment.Pending)
			on, reached := make(chan struct{}), make(chan struct{})
			b.Inject(stripetest.Fault{Kind: stripetest.Stall, Call: "cancel", Until: on, Reached: reached})
			done := make(chan payment.Ending, 1)
			go func() {
				e, err := b.client.Cancel(context.Background(), a.OrderID)
				if err != nil {
					t.Errorf("cancel: %v", err)
				}
				done <- e
			}()
			<-reached
			b.Authenticate(p.ID, true)
			close(on)
			want := payment.Captured
			if authorize {
				want = payment.Voided
			}
			if e := <-done; e.Result != payment.EndingPaid || e.Payments[0].State != want {
				t.Fatalf("cancel: %+v", e)
			}
			b.books(t, a.OrderID, want)
			b.cancel(t, a.OrderID, payment.EndingPaid)
		})
	}
}

// Two charges of one order with other content at once: one of them is the order's.
func TestTheFirstContentWins(t *testing.T) {
	b := newBench(t, nil)
	a := b.order(stripetest.Visa)
	other := a
	other.AmountMinor = 9900
	on, reached := make(chan struct{}), make(chan struct{})
	b.Inject(stripetest.Fault{Kind: stripetest.StallAnswer, Call: "update", Until: on, Reached: reached})
	done := make(chan error, 1)
	go func() {
		_, err := b.client.Charge(context.Background(), a)
		done <- err
	}()
	<-reached // the first has begun the intent and does not know it yet
	if _, err := b.another(t).Charge(t.Context(), other); !errors.Is(err, payment.ErrConflict) {
		t.Errorf("other content: %v", err)
	}
	close(on)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if p := b.books(t, a.OrderID, payment.Captured)[0]; p.CapturedMinor != a.AmountMinor {
		t.Fatalf("%d was taken, %d asked first", p.CapturedMinor, a.AmountMinor)
	}
}

// Two charges of one order at once: the slower one gets the stored answer of the other, which is old by then.
func TestAStoredAnswerIsNotTheLastWord(t *testing.T) {
	b := newBench(t, nil)
	a := b.order(stripetest.NeedsAction)
	on, reached := make(chan struct{}), make(chan struct{})
	b.Inject(stripetest.Fault{Kind: stripetest.Stall, Call: "confirm", Until: on, Reached: reached})
	done := make(chan payment.Payment, 1)
	go func() {
		p, err := b.client.Charge(context.Background(), a)
		if err != nil {
			t.Errorf("charge: %v", err)
		}
		done <- p
	}()
	<-reached
	p, err := b.another(t).Charge(t.Context(), a)
	if err != nil || p.State != payment.Pending {
		t.Errorf("%+v, %v", p, err)
	} else {
		b.Authenticate(p.ID, true)
	}
	close(on)
	if p := <-done; p.State != payment.Captured || p.Action != nil {
		t.Fatalf("%+v", p)
	}
}

func TestAction(t *testing.T) {
	for _, authorize := range []bool{false, true} {
		paid := payment.Captured
		if authorize {
			paid = payment.Authorized
		}
		b := newBench(t, nil)
		a := b.order(stripetest.NeedsAction)
		a.AuthorizeOnly = authorize
		for range 2 { // the page may be loaded again
			p := b.charge(t, a, payment.Pending)
			if p.Action == nil || p.Action.ClientSecret != b.Secrets()[0] || p.Action.RedirectURL != "" {
				t.Fatalf("action of %+v", p)
			}
		}
		p := b.books(t, a.OrderID, payment.Pending)[0]
		if p.Action == nil || p.Action.ClientSecret == "" {
			t.Fatal("lookup does not tell the action")
		}
		b.Authenticate(p.ID, true)
		if p := b.books(t, a.OrderID, paid)[0]; p.Action != nil {
			t.Fatal("an action is left")
		}
		if p := b.charge(t, a, paid); p.Action != nil {
			t.Fatal("an action is left")
		}
	}
}

func TestActionThatFails(t *testing.T) {
	const code = "payment_intent_authentication_failure"
	b := newBench(t, nil)
	a := b.order(stripetest.NeedsAction)
	p := b.charge(t, a, payment.Pending)
	b.Authenticate(p.ID, false)
	if p := b.books(t, a.OrderID, payment.Declined)[0]; p.Decline != (payment.Decline{Code: code}) {
		t.Fatalf("the page could still try another card: %+v", p.Decline)
	}
	b.cancel(t, a.OrderID, payment.EndingDeclined)
	if p := b.charge(t, a, payment.Declined); p.Decline != (payment.Decline{Code: code, Final: true}) {
		t.Fatalf("%+v", p.Decline)
	}

	other := b.order(stripetest.NeedsAction) // cancelled while the customer is at the bank
	b.charge(t, other, payment.Pending)
	b.cancel(t, other.OrderID, payment.EndingCancelled)
	b.charge(t, other, payment.Cancelled)
}

func TestActionWithRedirect(t *testing.T) {
	b := newBench(t, func(c *Config, _ *stripetest.Config) { c.ReturnURL = "https://tickets.example/orders/{order}/paid" })
	a := b.order(stripetest.NeedsAction)
	p := b.charge(t, a, payment.Pending)
	if p.Action == nil || !strings.HasPrefix(p.Action.RedirectURL, "https://hooks.stripe.example/") {
		t.Fatalf("%#v", p.Action)
	}
	found := false
	for _, e := range b.Events("payment_intent.requires_action") {
		found = found || strings.Contains(string(e.Body), "https://tickets.example/orders/"+a.OrderID+"/paid")
	}
	if !found {
		t.Error("the bank does not know where to send the customer back")
	}
}

func TestDeclines(t *testing.T) {
	for token, want := range map[string]string{
		stripetest.Declined: "generic_decline", stripetest.InsufficientFunds: "insufficient_funds",
		"pm_card_nobodyHas": "resource_missing", "tok_of_another_kind": "invalid_token",
	} {
		b := newBench(t, nil)
		a := b.order(token)
		for range 2 {
			if p := b.charge(t, a, payment.Declined); p.Decline != (payment.Decline{Code: want, Final: true}) {
				t.Errorf("%s: %+v", token, p.Decline)
			}
		}
		if p := b.books(t, a.OrderID, payment.Declined)[0]; p.Decline != (payment.Decline{Code: want, Final: true}) {
			t.Errorf("%s in the books: %+v", token, p.Decline)
		}
		b.cancel(t, a.OrderID, payment.EndingDeclined)
	}
}

// A decline that could not be made final says so, and is made final by the next that comes.
func TestADeclineIsFinalOnlyOnceItIs(t *testing.T) {
	b := newBench(t, nil)
	a := b.order(stripetest.Declined)
	b.Inject(stripetest.Fault{Kind: stripetest.LoseRequest, Call: "cancel"})
	if p := b.charge(t, a, payment.Declined); p.Decline.Final {
		t.Fatal("it is called final while the intent is open")
	}
	if p := b.charge(t, a, payment.Declined); !p.Decline.Final {
		t.Fatal("it is not made final")
	}
	if n := len(b.Events("charge.failed")); n != 1 {
		t.Fatalf("the card was asked %d times", n)
	}
}

func TestASoftDeclineMayBeRepeated(t *testing.T) {
	b := newBench(t, nil)
	a := b.order(stripetest.ProcessingError)
	if p := b.charge(t, a, payment.Declined); p.Decline != (payment.Decline{Code: "processing_error"}) {
		t.Fatalf("%+v", p.Decline)
	}
	b.charge(t, a, payment.Captured)
	b.charge(t, a, payment.Captured)

	ended := b.order(stripetest.ProcessingError)
	b.charge(t, ended, payment.Declined)
	b.cancel(t, ended.OrderID, payment.EndingDeclined)
	if p := b.charge(t, ended, payment.Declined); !p.Decline.Final {
		t.Fatal("not final after cancel")
	}
}

func TestSlowPayment(t *testing.T) {
	for _, good := range []bool{true, false} {
		b := newBench(t, nil)
		a := b.order(stripetest.Slow)
		p := b.charge(t, a, payment.Pending)
		b.cancel(t, a.OrderID, payment.EndingPending)
		b.FinishProcessing(p.ID, good)
		if good {
			b.books(t, a.OrderID, payment.Captured)
			b.cancel(t, a.OrderID, payment.EndingPaid)
			continue
		}
		b.books(t, a.OrderID, payment.Declined)
		b.cancel(t, a.OrderID, payment.EndingDeclined)
	}
}

// What the key alone holds for a day, the search holds afterwards: no second intent, and no money after a cancel.
func TestOrdersOutliveTheirKeys(t *testing.T) {
	for _, age := range []time.Duration{time.Minute, 11 * time.Hour, 13 * time.Hour, 23 * time.Hour, 25 * time.Hour, 400 * 24 * time.Hour} {
		t.Run(age.String(), func(t *testing.T) {
			b := newBench(t, func(_ *Config, s *stripetest.Config) { s.SearchLag = time.Hour })
			paid, gone, open := b.order(stripetest.Visa), b.order(stripetest.Visa), b.order(stripetest.NeedsAction)
			b.charge(t, paid, payment.Captured)
			b.cancel(t, gone.OrderID, payment.EndingCancelled)
			b.charge(t, open, payment.Pending)
			unseen := b.order(stripetest.Visa)
			before := b.intents()

			b.Advance(age)
			b.charge(t, paid, payment.Captured)
			b.books(t, paid.OrderID, payment.Captured)
			b.cancel(t, paid.OrderID, payment.EndingPaid)
			b.charge(t, gone, payment.Cancelled)
			b.cancel(t, gone.OrderID, payment.EndingCancelled)
			b.charge(t, open, payment.Pending)
			b.cancel(t, open.OrderID, payment.EndingCancelled)
			b.charge(t, open, payment.Cancelled)
			if n := b.intents(); n != before {
				t.Fatalf("%d intents more", n-before)
			}
			b.books(t, unseen.OrderID)
			b.cancel(t, unseen.OrderID, payment.EndingCancelled)
			b.charge(t, unseen, payment.Cancelled)
			if n := len(b.Events("charge.succeeded")); n != 1 {
				t.Fatalf("money moved %d times", n)
			}
		})
	}
}

func TestOtherSettingsMeanwhile(t *testing.T) {
	b := newBench(t, nil)
	a := b.order(stripetest.Visa)
	b.Inject(stripetest.Fault{Kind: stripetest.LoseRequest, Call: "confirm"})
	if _, err := b.client.Charge(t.Context(), a); !errors.Is(err, payment.ErrUnknown) {
		t.Fatal(err)
	}
	b.config.ReturnURL, b.config.MethodTypes = "https://tickets.example", []string{"card", "alipay"}
	p, err := b.another(t).Charge(t.Context(), a)
	if err != nil || p.State != payment.Captured {
		t.Fatalf("%+v, %v", p, err)
	}
}

func TestAmountThatStripeDoesNotTake(t *testing.T) {
	b := newBench(t, nil)
	a := b.order(stripetest.Visa)
	a.AmountMinor = 10 // below Stripe's least
	if _, err := b.client.Charge(t.Context(), a); !errors.Is(err, payment.ErrInvalid) {
		t.Fatal(err)
	}
	b.books(t, a.OrderID)
	b.cancel(t, a.OrderID, payment.EndingCancelled)
}

// A call whose caller goes, or whose time is up, ends at once.
func TestContextEndsACall(t *testing.T) {
	b := newBench(t, nil)
	a := b.order(stripetest.Visa)
	reached := make(chan struct{})
	b.Inject(stripetest.Fault{Kind: stripetest.Stall, Call: "create", Until: nil, Reached: reached})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	if _, err := b.client.Charge(ctx, a); !errors.Is(err, payment.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b.config.Timeout = 50 * time.Millisecond
	b.Inject(stripetest.Fault{Kind: stripetest.Stall, Call: "retrieve"})
	b.Inject(stripetest.Fault{Kind: stripetest.Stall, Call: "create"})
	if _, err := b.another(t).Lookup(context.Background(), a.OrderID); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	good := Config{SecretKey: "sk_test_1", WebhookSecrets: []string{"whsec_12345678"}}
	for want, change := range map[string]func(*Config){
		"payment.stripe.secret_key must begin with sk_test_": func(c *Config) { c.SecretKey = "pk_test_1topsecret" },
		"payment.stripe.webhook_secrets is empty":            func(c *Config) { c.WebhookSecrets = nil },
		"payment.stripe.secret_key is empty":                 func(c *Config) { c.SecretKey = "" },
		"secret_key has characters":                          func(c *Config) { c.SecretKey = "sk_test_topsecret\n" },
		"secret_key is too long":                             func(c *Config) { c.SecretKey = "sk_test_topsecret" + strings.Repeat("x", 300) },
		"number 1 is too short (3 characters after whsec_)":  func(c *Config) { c.WebhookSecrets = []string{"whsec_abc"} },
		"webhook_secrets: number 2 must begin with whsec_;":  func(c *Config) { c.WebhookSecrets = []string{"whsec_12345678", "topsecret"} },
		"payment.stripe.account must begin with acct_":       func(c *Config) { c.Account = "me" },
		"payment.stripe.house":                               func(c *Config) { c.House = "a/b" },
		"MethodTypes":                                        func(c *Config) { c.MethodTypes = []string{"Card"} },
		"Timeout":                                            func(c *Config) { c.Timeout = time.Hour },
		"ConnectionsMax":                                     func(c *Config) { c.ConnectionsMax = -1 },
		"payment.stripe.return_url":                          func(c *Config) { c.SecretKey, c.ReturnURL = "sk_live_1", "http://tickets.example" },
		"URL must":                                           func(c *Config) { c.URL = "https://api.example/v1" },
		"URL must be":                                        func(c *Config) { c.SecretKey, c.URL = "sk_live_1", "http://127.0.0.1:1" },
	} {
		c := good
		change(&c)
		_, err := New(c)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: %v", want, err)
		}
	}
	c, err := New(good)
	if err != nil || c.Mode() != payment.Test || c.Name() != "stripe" {
		t.Fatalf("%v", err)
	}
	c.Close()
}
