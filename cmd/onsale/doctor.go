package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
)

// DoctorCmd is `onsale doctor`: looks at everything that the configuration names, and says what to mend.
type DoctorCmd struct {
	configFlags
	Demo bool `help:"As serve --demo would see it."`
}

// errIll is what the command ends with where something must be mended.
var errIll = errors.New("doctor: something must be mended before selling")

// Run prints the findings. It ends with an error where one must be mended; warnings do not count.
func (c *DoctorCmd) Run(ctx context.Context, k *kong.Context) error {
	flags := map[string]string{}
	if c.Demo {
		flags["demo"] = "true"
	}
	configured, err := c.load(flags)
	if err != nil {
		return err
	}
	s, err := settings(configured)
	if err != nil {
		return err
	}
	serve := app.Check{What: "configuration", Says: "serve takes it", Ask: func(context.Context) error { return configured.CheckServe() }}
	outside := []app.Check{serve}
	if s.Payment.Provider == "stripe" {
		outside = append(outside, app.CheckStripe(s.Payment.Stripe, s.Demo))
	}
	if s.Mail.SMTP.Host != "" {
		outside = append(outside, app.CheckSMTP(s.Mail.SMTP))
	}
	if len(s.Redis.Addresses) > 0 {
		outside = append(outside, app.CheckRedis(s.Redis))
	}
	ill, err := app.PrintFindings(k.Stdout, app.Doctor(ctx, s, outside...))
	if err == nil && ill {
		err = errIll
	}
	return err
}

// MigrateCmd is `onsale migrate`.
type MigrateCmd struct{ configFlags }

// Run brings the databases up to date. serve does the same at its start.
func (c *MigrateCmd) Run(ctx context.Context, k *kong.Context) error {
	configured, err := c.load(nil)
	if err != nil {
		return err
	}
	s, err := settings(configured)
	if err != nil {
		return err
	}
	if err := app.Migrate(ctx, s); err != nil {
		return err
	}
	_, err = fmt.Fprintln(k.Stdout, "The databases are up to date.")
	return err
}
