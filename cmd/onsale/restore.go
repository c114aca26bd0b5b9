package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
)

// RestoreCmd is `onsale restore`: a backup comes back into an empty data folder (and, with PostgreSQL, an empty database).
type RestoreCmd struct {
	File        string   `arg:"" type:"existingfile" help:"The backup."`
	Erasures    []string `type:"existingfile" placeholder:"FILE" help:"Who was erased since: erasures.json of the lost data folder (which may also lie in the new one), or a newer backup; may be repeated."`
	Demo        bool     `help:"It is of a demo: compare with the sandbox's books."`
	Resume      bool     `help:"Events that were on sale sell on at once; else they come back paused."`
	KeepUnknown bool     `help:"Do not give back payments whose bookings the backup does not have."`
	JSON        bool     `help:"The report as JSON."`
	configFlags
}

// errNotSound ends a restore whose audit found something broken.
var errNotSound = errors.New("restore: everything is in place, but the audit found something broken: run onsale audit before you resume an event")

// Run restores and prints the report.
func (c *RestoreCmd) Run(ctx context.Context, k *kong.Context) error {
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
	report, err := app.Restore(ctx, s, app.RestoreOptions{File: c.File, Erasures: c.Erasures, Resume: c.Resume, KeepUnknown: c.KeepUnknown})
	if err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(k.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(report)
	} else {
		err = printRestored(k.Stdout, report, configured.Data)
	}
	if err == nil && !report.Sound {
		err = errNotSound
	}
	return err
}

func printRestored(w io.Writer, r *app.RestoreReport, data string) error {
	out := func(format string, args ...any) { _ = app.PrintWrapped(w, format, args...) }
	out("Restored into %s: %s.", data, manifestText(r.Backup))
	if r.Resumed {
		out("An interrupted restore was finished.")
	}
	out("What happened after %s is not in it: bookings, refunds and check-ins of that time are lost.", r.Began.Format(time.RFC3339))
	out("")
	if r.Sound {
		out("Audit     ok")
	} else {
		out("Audit     BROKEN: see onsale audit")
	}
	out("Erased    %s again", counted(r.Erased, "customer"))
	if r.Lists == 0 {
		out("          No list of those erased since was given (--erasures): if anybody was, erase them again by hand (onsale customer erase).")
	}
	printMoney(w, &r.Money)
	if len(r.Paused) > 0 {
		out("Paused    %s; once you have looked: onsale event resume ID", counted(len(r.Paused), "event"))
		for _, e := range r.Paused {
			out("            %s", e)
		}
	}
	return nil
}

func printMoney(w io.Writer, m *app.MoneyReport) {
	out := func(format string, args ...any) { _ = app.PrintWrapped(w, format, args...) }
	if !m.Listed || m.Provider == "none" {
		out("Money     the provider (%s) shows no books: nothing was compared", m.Provider)
		return
	}
	out("Money     %d payments in the books of %s were compared; %d are not ours or older than the backup", m.Payments, m.Provider, m.Strange)
	list := func(kind, says string, rows []app.MoneyRow) {
		n := m.Counts[kind]
		if n == 0 {
			return
		}
		out("  %d %s", n, says)
		for _, r := range rows {
			state := ""
			if r.State != "" {
				state = "  now " + r.State
			}
			out("    %s  %s  %d %s (minor units)  %s%s", r.Booking, r.Payment, r.Amount, r.Money, r.At.Format(time.RFC3339), state)
		}
		if n > len(rows) {
			out("    … and %d more", n-len(rows))
		}
	}
	list("settled", "paid bookings that were not paid yet in the backup (PENDING ones are settled by the server):", m.Settled)
	unknown := "are of bookings that the backup does not have; they are left alone (--keep-unknown): give them back at the provider:"
	if !m.GivenBackFrom.IsZero() {
		unknown = "are of bookings that the backup does not have; from " + m.GivenBackFrom.Format(time.RFC3339) + " on the server gives them back:"
	}
	list("unknown", unknown, m.Unknown)
	list("rebuilt", "got all of their money back after the backup: they are refunded here, too:", m.Rebuilt)
	list("refunded_since", "got a part of their money back after the backup, which does not say for which tickets: they are valid still. Decide by hand:", m.Refunded)
}
