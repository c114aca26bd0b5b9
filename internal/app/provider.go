package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"onsale/internal/booking"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/sandbox"
	"onsale/internal/payment/stripe"
)

// PaymentSettings say who moves the money.
type PaymentSettings struct {
	Provider       string // "sandbox", "stripe" or "none"
	Stripe         stripe.Config
	Authorize      bool // reserve first, take after the tickets are made
	AttemptTimeout time.Duration
	RecoverAfter   time.Duration
	Plan           sandbox.FaultPlan
	Delays         sandbox.Delays
	TalksMax       int    // bookings that talk with the provider at once. Defaults to 4,096
	SandboxListen  string // loopback. Defaults to "127.0.0.1:0"
}

// openProvider starts the sandbox, a stranger with books of its own, and makes its client.
func (a *App) openProvider(ctx context.Context, public net.Addr) error {
	p := &a.Settings.Payment
	if p.Provider == noProvider {
		a.Provider = free{}
		return nil
	}
	if p.Provider == stripeProvider {
		return a.openStripe()
	}
	if p.Provider != "sandbox" {
		return fmt.Errorf("payment provider %q is not known: use stripe, sandbox with --demo, or none for free events", p.Provider)
	}
	if !a.Settings.Demo {
		return fmt.Errorf("the sandbox moves no real money, so it exists only with --demo (E1)")
	}
	apiKey, secrets := a.sandboxSecrets()
	server, err := sandbox.Start(sandbox.Config{
		Path: a.path(SandboxFile), APIKey: apiKey, WebhookSecret: secrets[0], WebhookURL: webhookURL(public, "sandbox"),
		Plan: p.Plan, Delays: p.Delays, Listen: p.SandboxListen, Log: a.Log,
	})
	if err != nil {
		return err
	}
	a.onClose(server.Stop)
	config := sandbox.ClientConfig{URL: server.URL(), APIKey: apiKey, WebhookSecrets: secrets}
	// It can capture also where bookings charge at once: payments that were only authorized before the setting changed still
	// have to be captured or let go.
	client, err := sandbox.NewAuthorizingClient(config)
	if err != nil {
		return err
	}
	a.Provider = client
	a.onClose(func(context.Context) error { client.Close(); return nil })
	return payment.Check(a.Provider)
}

const stripeProvider = "stripe"

// openStripe makes the client of Stripe. Play money is for a demo, real money is not (E1).
func (a *App) openStripe() error {
	client, err := stripe.New(a.Settings.Payment.Stripe)
	if err != nil {
		return err
	}
	a.onClose(func(context.Context) error { client.Close(); return nil })
	if live := client.Mode() == payment.Live; live == a.Settings.Demo {
		if live {
			return errors.New("payment.stripe.secret_key is a live key, and this is a demo: real money would move; use a test key")
		}
		return errors.New("payment.stripe.secret_key is a test key: tickets would be given out and no money would move; use --demo, or a live key")
	}
	a.Provider = client
	return payment.Check(a.Provider)
}

// shard is the batcher as bookings see it; what they commit is published at once.
type shard struct{ a *App }

var _ booking.Shard = shard{}

func (s shard) Do(ctx context.Context, c ledger.Command) (ledger.Result, error) {
	r, err := s.a.Batcher.Do(ctx, c)
	if err == nil && (r.Order != nil || r.Ticket != nil) && s.a.relay != nil {
		s.a.relay.Nudge()
	}
	return r, err
}

func (s shard) Ledger() ledger.Reader { return s.a.Store }

// noProvider is the name of the provider that moves no money.
const noProvider = "none"

// free is the provider of a house whose events cost nothing: it has never seen a payment and takes none.
type free struct{}

func (free) Name() string       { return noProvider }
func (free) Mode() payment.Mode { return payment.Live }

func (free) Charge(context.Context, payment.Attempt) (payment.Payment, error) {
	return payment.Payment{}, fmt.Errorf("%w: there is no payment provider", payment.ErrInvalid)
}

func (free) Lookup(context.Context, string) ([]payment.Payment, error) { return nil, nil }

func (free) Cancel(context.Context, string) (payment.Ending, error) {
	return payment.Ending{Result: payment.EndingCancelled}, nil
}
