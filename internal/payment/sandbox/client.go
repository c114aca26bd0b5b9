package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"onsale/internal/payment"
)

// Client is the adapter from the port to a sandbox service that charges at once. AuthorizingClient is the one that can
// also authorize and capture; which of the two is in use decides how booking takes the money.
type Client struct {
	base    string
	apiKey  string
	account string
	secrets [][]byte
	timeout time.Duration
	now     func() time.Time
	http    *http.Client
}

// AuthorizingClient is a Client that is a payment.Authorizer too.
type AuthorizingClient struct{ *Client }

var (
	_ payment.Provider   = (*Client)(nil)
	_ payment.Refunder   = (*Client)(nil)
	_ payment.Notifier   = (*Client)(nil)
	_ payment.Lister     = (*Client)(nil)
	_ payment.Provider   = (*AuthorizingClient)(nil)
	_ payment.Authorizer = (*AuthorizingClient)(nil)
)

// ClientConfig is what a Client needs. Strings and secrets are those of the service's Config.
type ClientConfig struct {
	URL     string // of the service, without a path
	APIKey  string
	Account string // Defaults to "sandbox"
	// WebhookSecrets are all that may have signed a webhook: while a secret is being changed, the old and the new.
	WebhookSecrets [][]byte
	// Timeout of one call, at most payment.AttemptTimeoutMax. Defaults to 10 s
	Timeout time.Duration
	Now     func() time.Time // Defaults to time.Now
	// ConnectionsMax is how many calls are on their way at once; more wait. Defaults to 64
	ConnectionsMax int
}

// NewClient makes a client that charges at once. Close it.
func NewClient(c ClientConfig) (*Client, error) {
	if err := checkURL(c.URL); err != nil {
		return nil, fmt.Errorf("sandbox: client URL: %w", err)
	}
	if c.Account == "" {
		c.Account = "sandbox"
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Timeout < 0 || c.Timeout > payment.AttemptTimeoutMax {
		return nil, fmt.Errorf("sandbox: client timeout %v; use up to %v, so that it ends before the payment window", c.Timeout, payment.AttemptTimeoutMax)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.ConnectionsMax == 0 {
		c.ConnectionsMax = 64
	}
	if len(c.WebhookSecrets) == 0 {
		return nil, errors.New("sandbox: client has no WebhookSecrets; give it the service's")
	}
	for _, secret := range c.WebhookSecrets {
		if len(secret) < secretBytesMin {
			return nil, fmt.Errorf("sandbox: client webhook secret has %d bytes; use at least %d", len(secret), secretBytesMin)
		}
	}
	return &Client{
		base: c.URL, apiKey: c.APIKey, account: c.Account, secrets: c.WebhookSecrets, timeout: c.Timeout, now: c.Now,
		http: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				MaxConnsPerHost: c.ConnectionsMax, MaxIdleConnsPerHost: c.ConnectionsMax, IdleConnTimeout: 30 * time.Second,
			},
		},
	}, nil
}

// NewAuthorizingClient makes a client that can authorize and capture. Close it.
func NewAuthorizingClient(c ClientConfig) (*AuthorizingClient, error) {
	client, err := NewClient(c)
	if err != nil {
		return nil, err
	}
	return &AuthorizingClient{client}, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Name implements payment.Provider.
func (c *Client) Name() string { return "sandbox" }

// Mode implements payment.Provider.
func (c *Client) Mode() payment.Mode { return payment.Test }

// Charge implements payment.Provider.
func (c *Client) Charge(ctx context.Context, a payment.Attempt) (payment.Payment, error) {
	if a.AuthorizeOnly {
		return payment.Payment{}, fmt.Errorf("%w: this client charges at once; AuthorizeOnly needs an AuthorizingClient", payment.ErrInvalid)
	}
	return c.charge(ctx, a)
}

// Charge implements payment.Provider, also with AuthorizeOnly.
func (c *AuthorizingClient) Charge(ctx context.Context, a payment.Attempt) (payment.Payment, error) {
	return c.charge(ctx, a)
}

func (c *Client) charge(ctx context.Context, a payment.Attempt) (payment.Payment, error) {
	var p payment.Payment
	if err := a.Validate(); err != nil {
		return p, err
	}
	err := c.call(ctx, "charge", http.MethodPost, "/v1/charges", chargeRequest(a), &p)
	if err == nil && (p.OrderID != a.OrderID || p.ID == "") {
		err = payment.Unknown("charge", errors.New("the answer is about another order"))
	}
	return orNone(p, err)
}

// Lookup implements payment.Provider.
func (c *Client) Lookup(ctx context.Context, orderID string) ([]payment.Payment, error) {
	if err := payment.ValidateID("order id", orderID); err != nil {
		return nil, err
	}
	var answer ordersAnswer
	err := c.call(ctx, "lookup", http.MethodGet, "/v1/orders/"+orderID, nil, &answer)
	return orNone(answer.Payments, err)
}

// Cancel implements payment.Provider.
func (c *Client) Cancel(ctx context.Context, orderID string) (payment.Ending, error) {
	if err := payment.ValidateID("order id", orderID); err != nil {
		return payment.Ending{}, err
	}
	var ending payment.Ending
	err := c.call(ctx, "cancel", http.MethodPost, "/v1/orders/"+orderID+"/cancel", nil, &ending)
	if err == nil {
		switch ending.Result {
		case payment.EndingCancelled, payment.EndingDeclined, payment.EndingPaid, payment.EndingPending:
		default:
			err = payment.Unknown("cancel", fmt.Errorf("the answer has the result %q", ending.Result))
		}
	}
	return orNone(ending, err)
}

// Capture implements payment.Authorizer.
func (c *AuthorizingClient) Capture(ctx context.Context, paymentID string, amountMinor int64) (payment.Payment, error) {
	if err := errors.Join(payment.ValidateID("payment id", paymentID), payment.ValidateAmount(amountMinor)); err != nil {
		return payment.Payment{}, err
	}
	return c.onPayment(ctx, "capture", paymentID, amountRequest{amountMinor})
}

// Void implements payment.Authorizer.
func (c *AuthorizingClient) Void(ctx context.Context, paymentID string) (payment.Payment, error) {
	if err := payment.ValidateID("payment id", paymentID); err != nil {
		return payment.Payment{}, err
	}
	return c.onPayment(ctx, "void", paymentID, nil)
}

func (c *Client) onPayment(ctx context.Context, op, paymentID string, body any) (payment.Payment, error) {
	var p payment.Payment
	err := c.call(ctx, op, http.MethodPost, "/v1/payments/"+paymentID+"/"+op, body, &p)
	if err == nil && p.ID != paymentID {
		err = payment.Unknown(op, errors.New("the answer is about another payment"))
	}
	return orNone(p, err)
}

// Refund implements payment.Refunder.
func (c *Client) Refund(ctx context.Context, paymentID, refundID string, amountMinor int64) (payment.Refund, error) {
	err := errors.Join(payment.ValidateID("payment id", paymentID), payment.ValidateID("refund id", refundID), payment.ValidateAmount(amountMinor))
	if err != nil {
		return payment.Refund{}, err
	}
	var r payment.Refund
	err = c.call(ctx, "refund", http.MethodPost, "/v1/payments/"+paymentID+"/refunds", refundRequest{refundID, amountMinor}, &r)
	if err == nil && (r.ID != refundID || r.PaymentID != paymentID || r.AmountMinor != amountMinor) {
		err = payment.Unknown("refund", errors.New("the answer is about another refund"))
	}
	return orNone(r, err)
}

// List implements payment.Lister.
func (c *Client) List(ctx context.Context, cursor string) (payment.Page, error) {
	query := url.Values{"limit": {strconv.Itoa(listPageSize)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var answer listAnswer
	err := c.call(ctx, "list", http.MethodGet, "/v1/payments?"+query.Encode(), nil, &answer)
	return orNone(payment.Page(answer), err)
}

// FaultCounts asks the service how often each fault has happened; see Service.FaultCounts.
func (c *Client) FaultCounts(ctx context.Context) (map[Fault]int64, error) {
	var counts map[Fault]int64
	err := c.call(ctx, "faults", http.MethodGet, "/v1/faults", nil, &counts)
	return orNone(counts, err)
}

// ParseWebhook implements payment.Notifier.
func (c *Client) ParseWebhook(header payment.Header, body []byte) (payment.Notice, error) {
	if len(body) > payment.WebhookBytesMax {
		return payment.Notice{}, fmt.Errorf("%w: more than %d bytes", payment.ErrMalformed, payment.WebhookBytesMax)
	}
	if err := verify(c.secrets, c.now(), header.Get(SignatureHeader), body); err != nil {
		return payment.Notice{}, err
	}
	return parseWebhook(body, c.account)
}

// call sends one request and reads its answer into answer. Whatever is not a clear answer is ErrUnknown.
func (c *Client) call(ctx context.Context, op, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%w: %w", payment.ErrInvalid, err)
		}
		content = bytes.NewReader(text)
	}
	q, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return fmt.Errorf("%w: %w", payment.ErrInvalid, err)
	}
	q.Header.Set("Authorization", "Bearer "+c.apiKey)
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	r, err := c.http.Do(q)
	if err != nil {
		return payment.Unknown(op, err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, responseBytesMax+1))
	if err != nil {
		return payment.Unknown(op, err)
	}
	if len(text) > responseBytesMax {
		return payment.Unknown(op, fmt.Errorf("the answer has more than %d bytes", responseBytesMax))
	}
	if r.StatusCode == http.StatusOK {
		if err := json.Unmarshal(text, answer); err != nil {
			return payment.Unknown(op, err)
		}
		return nil
	}
	return problemError(op, r.StatusCode, text)
}

// problemError reads a problem. Status and code must agree, so that an answer of something in between (a proxy's 404) is
// not taken for the service's.
func problemError(op string, status int, text []byte) error {
	var p problem
	if err := json.Unmarshal(text, &p); err != nil {
		return payment.Unknown(op, fmt.Errorf("status %d without a readable problem: %w", status, err))
	}
	switch {
	case status == http.StatusBadRequest && p.Code == problemInvalid:
		return fmt.Errorf("%w: %s: %s", payment.ErrInvalid, op, p.Message)
	case status == http.StatusConflict && p.Code == problemConflict:
		return fmt.Errorf("%w: %s: %s", payment.ErrConflict, op, p.Message)
	case status == http.StatusNotFound && p.Code == problemNotFound:
		return fmt.Errorf("%w: %s", payment.ErrNotFound, op)
	case status == http.StatusUnprocessableEntity && p.Code == problemRefused && p.Op == op && p.Refusal != "":
		return &payment.Refused{Op: op, Code: p.Refusal}
	}
	return payment.Unknown(op, fmt.Errorf("status %d, problem %q", status, p.Code))
}

// orNone keeps a half-read answer from being used beside an error.
func orNone[T any](answer T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return answer, nil
}
