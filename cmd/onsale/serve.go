package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
	"onsale/internal/config"
	"onsale/internal/outbox/mail/smtp"
	"onsale/internal/payment/stripe"
)

// configFlags are what every command takes that works on a data folder or its databases.
type configFlags struct {
	Config   string            `type:"existingfile" placeholder:"FILE" help:"A configuration file (YAML); onsale config prints one."`
	Data     string            `type:"path" placeholder:"DIR" help:"The data folder."`
	Ledger   string            `placeholder:"KIND" help:"What keeps the ledger: sqlite or postgres."`
	Postgres string            `placeholder:"URL" help:"Where PostgreSQL is, with --ledger postgres."`
	Set      map[string]string `placeholder:"KEY=VALUE" help:"Any other setting, as --set log.level=debug."`
}

// load reads the configuration: defaults, file, environment, flags.
func (f configFlags) load(more map[string]string) (config.Config, error) {
	flags := map[string]string{}
	for key, value := range map[string]string{"data": f.Data, "ledger.kind": f.Ledger, "ledger.url": f.Postgres} {
		if value != "" {
			flags[key] = value
		}
	}
	for _, given := range []map[string]string{f.Set, more} {
		for key, value := range given {
			flags[key] = value
		}
	}
	return config.Load(config.Sources{File: f.Config, Env: os.Environ(), Flags: flags})
}

// settings are what a configuration means to the app.
func settings(c config.Config) (app.Settings, error) {
	issuers, err := c.IdentityIssuers(time.Now)
	if err != nil {
		return app.Settings{}, err
	}
	providers, err := c.SignInProviders()
	if err != nil {
		return app.Settings{}, err
	}
	return app.Settings{
		PublicURL: c.PublicURL, TrustedProxies: c.TrustedProxies, Rates: c.Rates(), Providers: signInProviders(providers),
		Mail: mailSettings(c.Mail), WebhooksAllowed: c.WebhooksTo,
		Data: c.Data, Ledger: app.LedgerKind(c.Ledger.Kind), PostgresURL: c.Ledger.URL, PostgresDirectURL: c.Ledger.DirectURL,
		Redis:   c.RedisOptions(),
		Beacons: c.Room.Beacons, ProofDifficulty: c.Room.ProofDifficulty, JoinQueueMax: c.Room.JoinQueueMax,
		Person:    app.PersonSettings{Check: c.Room.PersonCheck, SiteKey: c.Room.PersonSiteKey, Secret: c.Room.PersonSecret},
		MasterKey: c.MasterKey, MasterKeyFile: c.MasterKeyFile, Listen: c.Listen, InternalListen: c.MetricsListen,
		Demo: c.Demo, Throwaway: c.Throwaway, Issuers: issuers,
		Payment: app.PaymentSettings{
			Provider: c.Payment.Provider, Authorize: c.Payment.Mode == "authorize", AttemptTimeout: c.Payment.AttemptTimeout,
			RecoverAfter: c.Payment.RecoverAfter, Stripe: stripeConfig(c.Payment), TalksMax: c.Limits.PaymentTalksMax, Plan: c.FaultPlan(), SandboxListen: c.Payment.Sandbox.Listen,
		},
		QueueMax: c.Limits.LedgerQueueMax, SubscribersMax: c.Limits.SubscribersMax, ShutdownGrace: c.ShutdownGrace,
		ReadTimeout: c.Timeouts.Read, IdleTimeout: c.Timeouts.Idle, Version: versionText(), Logger: logger(c.Log),
	}, nil
}

// stripeConfig is the account as its adapter takes it.
func stripeConfig(p config.Payment) stripe.Config {
	c := stripe.Config{
		SecretKey: p.Stripe.SecretKey, Account: p.Stripe.Account, SharedAccount: p.Stripe.SharedAccount, House: p.Stripe.House, ReturnURL: p.Stripe.ReturnURL,
		Timeout: p.AttemptTimeout,
	}
	for secret := range strings.SplitSeq(p.Stripe.WebhookSecrets, ",") {
		if secret = strings.TrimSpace(secret); secret != "" {
			c.WebhookSecrets = append(c.WebhookSecrets, secret)
		}
	}
	return c
}

// mailSettings are how mails go out.
func mailSettings(m config.Mail) app.MailSettings {
	return app.MailSettings{Name: m.Name, SMTP: smtp.Options{
		Host: m.SMTP.Host, Port: m.SMTP.Port, Encryption: smtp.Encryption(m.SMTP.Encryption), User: m.SMTP.User, Password: m.SMTP.Password,
		From: m.From, ReplyTo: m.ReplyTo,
	}}
}

func signInProviders(all []config.SignInProvider) []app.SignInProvider {
	var providers []app.SignInProvider
	for _, p := range all {
		providers = append(providers, app.SignInProvider(p))
	}
	return providers
}

// logger is how the program logs: to standard error, as text for people or JSON for machines.
func logger(l config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // the configuration has checked it
	o := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(stderr, o))
	}
	return slog.New(slog.NewTextHandler(stderr, o))
}

// call gives one command to the data folder: to the server that runs on it, else by opening it. A folder with nothing in it
// is refused.
func (f configFlags) call(ctx context.Context, method, path string, in, out any) error {
	return f.ask(ctx, app.CheckHouse, method, path, in, out)
}

// begin is call for commands that may be the first in a folder.
func (f configFlags) begin(ctx context.Context, method, path string, in, out any) error {
	return f.ask(ctx, func(app.Settings) error { return nil }, method, path, in, out)
}

func (f configFlags) ask(ctx context.Context, check func(app.Settings) error, method, path string, in, out any) (err error) {
	c, err := f.load(nil)
	if err != nil {
		return err
	}
	s, err := settings(c)
	if err != nil {
		return err
	}
	if err := check(s); err != nil {
		return err
	}
	client, err := app.Dial(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return client.Call(ctx, method, path, in, out)
}

// ServeCmd is `onsale serve`.
type ServeCmd struct {
	configFlags
	Listen        string        `placeholder:"ADDR" help:"Where customers are served, host:port."`
	MetricsListen *string       `placeholder:"ADDR" help:"Where /readyz and /metrics are, on loopback; empty for nowhere."`
	Demo          bool          `help:"Demo events, a sandbox instead of a payment provider, tokens for everybody."`
	DemoPublic    bool          `help:"Let a demo listen on other interfaces than loopback."`
	DemoSeats     int           `default:"50000" help:"Seats of the demo's arena."`
	DemoHoldTTL   time.Duration `default:"10m" name:"demo-hold-ttl" help:"How long a hold lasts at the demo's event."`
	DemoWindow    time.Duration `default:"5m" name:"demo-payment-window" hidden:"" help:"How long a hold lasts at least once a payment has begun."`
	DemoRate      int           `name:"demo-room-rate" hidden:"" help:"People a second whom the waiting room of the demo's arena lets in; 0: there is none."`
	DemoActive    int           `default:"5000" name:"demo-room-active" hidden:"" help:"People inside at once."`
	DemoTurn      time.Duration `default:"2m" name:"demo-room-turn" hidden:"" help:"In which somebody called may enter."`
	DemoLate      time.Duration `default:"30s" name:"demo-late" hidden:"" help:"When the sandbox takes money that comes late."`
}

// Run serves until it is told to stop.
func (c *ServeCmd) Run(ctx context.Context, k *kong.Context) (err error) {
	flags := map[string]string{}
	if c.Listen != "" {
		flags["listen"] = c.Listen
	}
	if c.MetricsListen != nil {
		flags["metrics_listen"] = *c.MetricsListen
	}
	if c.Demo {
		flags["demo"] = "true"
	}
	if c.DemoPublic {
		flags["demo_public"] = "true"
	}
	configured, err := c.load(flags)
	if err != nil {
		return err
	}
	if err := configured.CheckServe(); err != nil {
		return err
	}
	s, err := settings(configured)
	if err != nil {
		return err
	}
	slog.SetDefault(s.Logger)
	s.DemoSeats, s.DemoHoldTTL, s.DemoPaymentWindow = c.DemoSeats, c.DemoHoldTTL, c.DemoWindow
	s.DemoRoom = app.DemoRoom{Rate: c.DemoRate, ActiveMax: c.DemoActive, Turn: c.DemoTurn}
	s.Payment.Delays.Late = c.DemoLate
	s.Started = func(at app.Addresses) {
		fmt.Fprintf(k.Stdout, "Onsale %s is at http://%s\n", s.Version, at.Public)
	}
	a, err := app.Open(ctx, s)
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		err = errors.Join(err, a.Close(stop))
	}()
	return a.Serve(ctx)
}
