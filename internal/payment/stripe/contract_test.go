package stripe

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/id"
	"onsale/internal/payment"
	"onsale/internal/payment/paymenttest"
	"onsale/internal/payment/stripe/stripetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that stands until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bench is a stand-in with a client, on a clock that stands.
type bench struct {
	*clock
	*stripetest.Server
	client *Client
	config Config
	ids    *id.Generator
}

func newBench(t testing.TB, change func(*Config, *stripetest.Config)) *bench {
	t.Helper()
	b := &bench{clock: &clock{now: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)}}
	stand := stripetest.Config{Now: b.Now, SearchLag: time.Minute}
	b.config = Config{SecretKey: "sk_test_standin", WebhookSecrets: []string{"whsec_standinstandin"}, Now: b.Now, Timeout: 20 * time.Second}
	if change != nil {
		change(&b.config, &stand)
	}
	b.Server = stripetest.New(stand)
	b.config.URL = b.URL()
	b.ids = id.NewGenerator(1, b.Now, 0, nil)
	b.client = b.another(t)
	t.Cleanup(b.Server.Close)
	return b
}

// another is a client like the first, as on another node.
func (b *bench) another(t testing.TB) *Client {
	t.Helper()
	c, err := New(b.config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// order is an attempt for an order of now.
func (b *bench) order(token string) payment.Attempt {
	return payment.Attempt{OrderID: b.ids.MustNext(0).Text(id.Order), AmountMinor: 4250, Currency: "EUR", Token: token, CustomerRef: "cus_1"}
}

func (b *bench) charge(t testing.TB, a payment.Attempt, want payment.State) payment.Payment {
	t.Helper()
	p, err := b.client.Charge(context.Background(), a)
	if err != nil || p.State != want {
		t.Fatalf("charge: %+v, %v; want %s", p, err, want)
	}
	return p
}

// books checks the states of an order's payments by Lookup.
func (b *bench) books(t testing.TB, orderID string, states ...payment.State) []payment.Payment {
	t.Helper()
	found, err := b.client.Lookup(context.Background(), orderID)
	if err != nil || len(found) != len(states) {
		t.Fatalf("lookup: %+v, %v; want %v", found, err, states)
	}
	for i, p := range found {
		if p.State != states[i] {
			t.Fatalf("payment %d is %s, want %s", i, p.State, states[i])
		}
	}
	return found
}

func (b *bench) cancel(t testing.TB, orderID string, want payment.EndingResult) payment.Ending {
	t.Helper()
	e, err := b.client.Cancel(context.Background(), orderID)
	if err != nil || e.Result != want {
		t.Fatalf("cancel: %+v, %v; want %s", e, err, want)
	}
	return e
}

// intents is how many payment intents stand in the books.
func (b *bench) intents() int { return len(b.Events("payment_intent.created")) }

func TestContract(t *testing.T) {
	for name, change := range map[string]func(*Config, *stripetest.Config){
		"own account":          nil,
		"connected account":    func(c *Config, s *stripetest.Config) { c.Account, s.Account = "acct_1", "acct_1" },
		"one house of several": func(c *Config, _ *stripetest.Config) { c.House = "north-1" },
		// Order ids that say no time are searched for first; the key holds also while the search finds nothing.
		"search lags for ever": func(_ *Config, s *stripetest.Config) { s.SearchLag = 1000 * time.Hour },
		"search is at once":    func(_ *Config, s *stripetest.Config) { s.SearchLag = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, change)
			if err := payment.Check(b.client); err != nil {
				t.Fatal(err)
			}
			if got := payment.CapabilitiesOf(b.client).String(); got != "authorize, refund, partial refund, cancel, notify, list" {
				t.Errorf("capabilities: %s", got)
			}
			paymenttest.Exercise(t, paymenttest.Subject{Provider: b.client, TokenPaid: stripetest.Visa, TokenDeclined: stripetest.Declined})
		})
	}
}

func TestConfirmationTokensPayToo(t *testing.T) {
	b := newBench(t, nil)
	b.charge(t, b.order("ctoken_card_visa"), payment.Captured)
	b.charge(t, b.order("ctoken_card_chargeDeclined"), payment.Declined)
}

func TestCheckReadsTheAccount(t *testing.T) {
	b := newBench(t, nil)
	if err := b.client.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.config.SecretKey = "sk_test_another"
	if err := b.another(t).Check(t.Context()); err == nil {
		t.Fatal("a wrong key is not found out")
	}
	b.config.SecretKey, b.config.URL = "sk_live_another", "https://api.example"
	live, err := New(b.config)
	if err != nil || live.Mode() != payment.Live {
		t.Fatalf("mode of a live key: %v", err)
	}
	live.Close()
}

// Two installations on one account: the same order id is two orders, and neither sees the other's.
func TestHousesOfOneAccount(t *testing.T) {
	b := newBench(t, nil)
	b.config.House = "south"
	south := b.another(t)
	for _, age := range []time.Duration{0, 25 * time.Hour} {
		a := b.order(stripetest.Visa)
		north := b.charge(t, a, payment.Captured)
		b.Advance(age)
		if found, err := south.Lookup(t.Context(), a.OrderID); err != nil || len(found) > 0 {
			t.Fatalf("%+v, %v", found, err)
		}
		if e, err := south.Cancel(t.Context(), a.OrderID); err != nil || e.Result != payment.EndingCancelled {
			t.Fatalf("%+v, %v", e, err)
		}
		b.books(t, a.OrderID, payment.Captured)
		if _, err := b.client.Refund(t.Context(), north.ID, "rfd_"+a.OrderID, 100); err != nil {
			t.Fatal(err)
		}
	}
	if page, err := south.List(t.Context(), ""); err != nil || len(page.Payments) > 0 {
		t.Fatalf("%+v, %v", page, err)
	}
	if page, err := b.client.List(t.Context(), ""); err != nil || len(page.Payments) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, e := range b.Events("payment_intent.succeeded", "charge.refunded", "refund.created") {
		if got := told(south.ParseWebhook(b.Header(e.Body), e.Body)); got != "ignored: it is another house's" {
			t.Errorf("%s: %s", e.Type, got)
		}
		if _, err := b.deliver(e); err != nil {
			t.Errorf("%s: %v", e.Type, err)
		}
	}
}
