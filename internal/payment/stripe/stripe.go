// Package stripe is the adapter from the payment port to Stripe: payment intents, refunds and webhooks, with the library
// stripe-go.
//
// The one idea: an order is one payment intent, found again by the idempotency key of its creation. Stripe has no lookup
// by a number of ours that sees what was just written (its search lags), and no way to forbid a number that it has never
// seen. So the intent is created without anything that depends on the attempt: the same call, with the same parameters,
// under the order's key, whoever makes it. Charge, Lookup and Cancel all begin with it, and all get the same intent:
//
//	create (key of the order; no means of payment, a placeholder's amount)   ── an empty intent; nothing can be paid
//	  ├─ Charge: begin (key; amount, currency, token's hash) ── confirm (key; token) ──► money, a decline, or an action
//	  ├─ Lookup: retrieve
//	  └─ Cancel: cancel ── whoever comes later meets a cancelled intent (A19)
//
// From then on Stripe's own rules hold: an intent takes money at most once, a cancelled one never. "begin" pins what is
// asked: the first content under its key wins, another is ErrConflict. An intent that was never begun is shown to nobody
// here; at Stripe it stands as incomplete and is worth nothing.
//
// What is relied on, and what for:
//
//   - A key is kept for 24 hours at least, for the account and mode, and a repeat gets the stored answer with the header
//     Idempotent-Replayed, at other parameters an idempotency_error. An order is young for 12 hours by its id: then the key
//     alone finds its intent. Later, or where the id does not say, Stripe's search is asked first: it lags by a minute,
//     an hour when Stripe is ill, so what it does not find after 12 hours was never made.
//   - Stripe stores its own errors under a key too. Such a key is spent for everybody alike, so all go on to the next
//     (keyed). What the spent call may have made is an empty intent, at most. A refund never goes on to another key.
//   - Cancelling and confirming one intent exclude each other at Stripe. Between looking at an open intent and cancelling
//     it, an authorization can come: then it is let go, and the answer says so (EndingPaid, Voided). A capture cannot.
//   - Lists and retrieves see what was written; refunds are searched by their metadata before one is made, so that a refund
//     id works once also when its key is forgotten. A refusal is not stored: it is judged anew by what is left.
//
// A token is a payment method (pm_…) or a confirmation token (ctoken_…). 3-D Secure is a Pending payment with an Action.
//
// Start reading at Client.Charge (intent.go), then Cancel; picture.go says what Stripe's words mean in the port's.
package stripe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"onsale/internal/payment"
)

// Config is what a Client needs. SecretKey and WebhookSecrets are required.
type Config struct {
	// SecretKey is the account's: sk_test_…, sk_live_…, or a restricted key rk_… that may write payment intents and refunds
	// and read charges and the balance. It says whether money is real.
	SecretKey string
	// WebhookSecrets (whsec_…) are all that may have signed a webhook: while one is being changed, the old and the new.
	WebhookSecrets []string
	// Account is the connected account (acct_…) for which a platform's key acts. Its webhooks must name it; without it they
	// must name none. Defaults to the key's own account.
	Account string
	// SharedAccount says that other programs take money on the account too: then webhooks about payments that name no order
	// of ours are ignored, else they are alerts. Defaults to false.
	SharedAccount bool
	// House tells the installations of this program that share one account: each looks only at what bears its name, else one
	// would give back what another took. It must not change while there are open orders. Letters, digits, - and _, at most
	// 40. Defaults to none.
	House string
	// ReturnURL is where a bank sends the customer back after 3-D Secure, https; {order} in it is the order id. Defaults to
	// none: then the page's Stripe.js goes through it with the client secret.
	ReturnURL string
	// MethodTypes are Stripe's kinds of means of payment that are taken. Defaults to "card". Those that cannot be reserved
	// need bookings that charge at once; those that lead to another site need a ReturnURL.
	MethodTypes []string
	// Timeout of one operation with all its calls, at most payment.AttemptTimeoutMax. Defaults to 30 s
	Timeout time.Duration
	// ConnectionsMax is how many calls are on their way at once; more wait. Defaults to 64
	ConnectionsMax int
	URL            string           // of the API, for tests. Defaults to Stripe's
	Now            func() time.Time // Defaults to time.Now
}

// Client is the adapter. It can do all that the port knows.
type Client struct {
	c    Config
	mode payment.Mode
	api  *sdk.Client
	http *http.Client

	mu     sync.Mutex
	oldest string // the id of the account's first payment intent, once known
}

var (
	_ payment.Provider        = (*Client)(nil)
	_ payment.Authorizer      = (*Client)(nil)
	_ payment.PartialRefunder = (*Client)(nil)
	_ payment.Notifier        = (*Client)(nil)
	_ payment.Lister          = (*Client)(nil)
)

var (
	keyForm     = regexp.MustCompile(`^(sk|rk)_(test|live)_[A-Za-z0-9_]{1,240}$`)
	secretForm  = regexp.MustCompile(`^whsec_[A-Za-z0-9+/=_-]{8,240}$`)
	accountForm = regexp.MustCompile(`^acct_[A-Za-z0-9]{1,58}$`)
	methodForm  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,40}$`)
)

// New makes a client. It sends nothing yet: Check does. Close it.
func New(c Config) (*Client, error) {
	c.URL = cmp.Or(c.URL, sdk.APIURL)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.ConnectionsMax = cmp.Or(c.ConnectionsMax, 64)
	if c.Now == nil {
		c.Now = time.Now
	}
	if len(c.MethodTypes) == 0 {
		c.MethodTypes = []string{"card"}
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxConnsPerHost: c.ConnectionsMax, MaxIdleConnsPerHost: c.ConnectionsMax,
		IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
	}
	client := &Client{c: c, mode: modeOf(c.SecretKey), http: &http.Client{
		Transport:     bounded{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	backends := sdk.NewBackendsWithConfig(&sdk.BackendConfig{
		HTTPClient: client.http, URL: &c.URL, EnableTelemetry: sdk.Bool(false),
		MaxNetworkRetries: sdk.Int64(0), // it would sleep through a cancelled context; call retries what is safe
		LeveledLogger:     &sdk.LeveledLogger{Level: sdk.LevelNull},
	})
	client.api = sdk.NewClient(c.SecretKey, sdk.WithBackends(backends))
	return client, nil
}

func modeOf(secretKey string) payment.Mode {
	if strings.Contains(secretKey, "_live_") {
		return payment.Live
	}
	return payment.Test
}

// unlike says what is wrong with a secret or a name that should begin with one of the prefixes and have so many letters,
// digits and others after it, without its value.
func unlike(value, others string, least int, prefixes ...string) string {
	if value == "" {
		return "is empty"
	}
	for _, p := range prefixes {
		rest, begins := strings.CutPrefix(value, p)
		odd := strings.ContainsFunc(rest, func(c rune) bool {
			return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune(others, c)
		})
		switch {
		case !begins:
		case odd:
			return "has characters that none has, such as a blank or a line's end"
		case len(rest) < least:
			return fmt.Sprintf("is too short (%d characters after %s): part of it is missing", len(rest), p)
		default:
			return "is too long"
		}
	}
	return "must begin with " + strings.Join(prefixes, " or ")
}

// validate names what is wrong and in which setting, never a secret's value.
func (c *Config) validate() error {
	var wrong []error
	check := func(good bool, format string, args ...any) {
		if !good {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	const setting = "payment.stripe."
	check(keyForm.MatchString(c.SecretKey), setting+"secret_key %s; copy it from Developers, API keys",
		unlike(c.SecretKey, "_", 1, "sk_test_", "sk_live_", "rk_test_", "rk_live_"))
	check(len(c.WebhookSecrets) > 0, setting+"webhook_secrets is empty; copy the endpoint's signing secret from Developers, Webhooks")
	for i, secret := range c.WebhookSecrets {
		check(secretForm.MatchString(secret), setting+"webhook_secrets: number %d %s; copy it from Developers, Webhooks", i+1, unlike(secret, "+/=_-", 8, "whsec_"))
	}
	check(c.Account == "" || accountForm.MatchString(c.Account), setting+"account %s", unlike(c.Account, "", 1, "acct_"))
	check(c.House == "" || len(c.House) <= 40 && payment.ValidateID("house", c.House) == nil, setting+"house may have 40 letters, digits, - and _")
	for _, method := range c.MethodTypes {
		check(methodForm.MatchString(method), "stripe: MethodTypes has %.40q; use Stripe's words, such as card", method)
	}
	check(len(c.MethodTypes) <= 20, "stripe: MethodTypes has more than 20")
	check(c.Timeout > 0 && c.Timeout <= payment.AttemptTimeoutMax, "stripe: Timeout is %v; use up to %v, so that it ends before the payment window", c.Timeout, payment.AttemptTimeoutMax)
	check(c.ConnectionsMax > 0, "stripe: ConnectionsMax is %d; use at least 1", c.ConnectionsMax)
	live := modeOf(c.SecretKey) == payment.Live
	back, err := url.Parse(strings.ReplaceAll(c.ReturnURL, "{order}", "order"))
	check(c.ReturnURL == "" || err == nil && back.Host != "" && (back.Scheme == "https" || back.Scheme == "http" && !live),
		setting+"return_url must be an https address (http only with a test key)")
	base, err := url.Parse(c.URL)
	check(err == nil && base.Host != "" && base.Path == "" && (base.Scheme == "https" || base.Scheme == "http" && !live),
		"stripe: URL must be an https address without a path (http only with a test key)")
	return errors.Join(wrong...)
}

// Close drops idle connections.
func (c *Client) Close() {
	c.http.Transport.(bounded).RoundTripper.(*http.Transport).CloseIdleConnections()
}

// Name implements payment.Provider.
func (c *Client) Name() string { return "stripe" }

// Mode implements payment.Provider.
func (c *Client) Mode() payment.Mode { return c.mode }

// Check asks Stripe whether the key works and is of the mode that it says. For the start and the doctor.
func (c *Client) Check(ctx context.Context) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	balance, f := call(ctx, func() (*sdk.Balance, error) {
		return c.api.V1Balance.Retrieve(ctx, &sdk.BalanceRetrieveParams{Params: c.params("")})
	})
	if f != nil {
		return fmt.Errorf("stripe: the account cannot be read; check the secret key: %w", f)
	}
	if balance.Livemode != (c.mode == payment.Live) {
		return fmt.Errorf("stripe: the account answers with live mode %v, the key says %s", balance.Livemode, c.mode)
	}
	return nil
}

// within is a context for one operation.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.c.Timeout)
}

// params are those of every writing call. Without a key of ours the library makes one up.
func (c *Client) params(key string) sdk.Params {
	p := sdk.Params{StripeAccount: c.account()}
	if key != "" {
		p.IdempotencyKey = &key
	}
	return p
}

// key is the idempotency key of a step of something of this house's.
func (c *Client) key(id, step string) string {
	key := "onsale-" + id + step
	if c.c.House != "" {
		key = "onsale-" + c.c.House + "/" + id + step
	}
	return key
}

// named is the metadata of something of this house's.
func (c *Client) named(orderID string) map[string]string {
	m := map[string]string{metaOrder: orderID}
	if c.c.House != "" {
		m[metaHouse] = c.c.House
	}
	return m
}

// ours says whether metadata names an order of this house's.
func (c *Client) ours(metadata map[string]string) bool {
	return metadata[metaHouse] == c.c.House && payment.ValidateID("order id", metadata[metaOrder]) == nil
}

func (c *Client) account() *string {
	if c.c.Account == "" {
		return nil
	}
	return &c.c.Account
}
