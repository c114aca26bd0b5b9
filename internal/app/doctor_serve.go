package app

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
	"onsale/internal/ledger/postgres"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/outbox/mail/smtp"
	"onsale/internal/payment"
	"onsale/internal/payment/stripe"
)

// signIn says who may sign in. That nobody can is for the configuration's own check to say, which serve asks, too (E1).
func (d *doctor) signIn() {
	const what = "sign-in"
	switch {
	case d.Demo:
		d.well(what, "a demo's: tokens for everybody")
	case d.Throwaway && len(d.Issuers) == 0 && len(d.Providers) == 0 && d.Mail.SMTP.Host == "":
		d.warn(what, "only tokens of the throw-away issuer, which make anybody anybody", "for real customers name an issuer or a mail server")
	default:
		var ways []string
		if d.Mail.SMTP.Host != "" {
			ways = append(ways, "codes by mail")
		}
		if n := len(d.Providers); n > 0 {
			ways = append(ways, fmt.Sprintf("%d OpenID Connect providers", n))
		}
		if n := len(d.Issuers); n > 0 {
			ways = append(ways, fmt.Sprintf("%d issuers of tokens", n))
		}
		if len(ways) > 0 { // else the start refuses, and says so
			d.well(what, "%s", strings.Join(ways, ", "))
		}
	}
}

// proxies says whether people can be told apart. The server itself speaks plain HTTP, so behind an https address is a proxy.
func (d *doctor) proxies() {
	if strings.HasPrefix(d.PublicURL, "https://") && len(d.TrustedProxies) == 0 {
		d.warn("proxy", fmt.Sprintf("public_url is https, so a proxy is in front, and none is trusted: everybody has its address, and all of them together may ask for %d sign-in codes an hour", identity.MailsPerNetwork),
			"set trusted_proxies to the proxy's address")
	}
}

// prices says whether somebody takes the money that events on sale cost, and whether it is real (E1).
func (d *doctor) prices(ctx context.Context) {
	const what = "payment"
	priced, strange, err := d.pricedEvents(ctx)
	if err != nil {
		return // said already where the database is looked at
	}
	switch {
	case d.Payment.Provider == noProvider && len(priced) > 0:
		d.ill(what, fmt.Errorf("events that sell, or will, have prices (%d, the first is %s), and there is no payment provider", len(priced), priced[0]), "set payment.provider, or close them: onsale event close "+priced[0])
	case d.Payment.Provider == noProvider:
		d.well(what, "none: only free events can be sold")
	case d.Payment.Provider == "sandbox" && len(strange) > 0:
		d.warn(what, fmt.Sprintf("the sandbox moves no real money, and events with prices are not the demo's (%d, the first is %s)", len(strange), strange[0]), "for real customers serve without --demo and set payment.provider; tickets sold now are marked TEST")
	default:
		d.well(what, "%s", d.Payment.Provider)
	}
}

// pricedEvents are the events that are or may be on sale for money; strange those of them that are not of the demo's show.
func (d *doctor) pricedEvents(ctx context.Context) (all, strange []string, err error) {
	shard, people, close, err := d.databases()
	if err != nil || shard == nil {
		return nil, nil, err
	}
	defer close()
	demos := map[int64]bool{}
	if err := scanIDs(ctx, people, `SELECT e.id, '' FROM #events e JOIN #shows s ON s.id = e.show_id WHERE s.key IN ('demo', 'demo-named')`, func(n int64, _ string) error {
		demos[n] = true
		return nil
	}); err != nil {
		return nil, nil, err
	}
	closes := ledger.TimeOf(d.now())
	err = scanIDs(ctx, shard, fmt.Sprintf(`SELECT event_id, body FROM #events WHERE state IN (%d, %d) ORDER BY event_id`, ledger.OnSale, ledger.Paused), func(n int64, body string) error {
		var e ledger.Event
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			return err
		}
		if e.SaleCloses <= closes || !costs(&e) {
			return nil
		}
		all = append(all, id.ID(n).Text(id.Event))
		if !demos[n] {
			strange = append(strange, id.ID(n).Text(id.Event))
		}
		return nil
	})
	return all, strange, err
}

func costs(e *ledger.Event) bool {
	for _, t := range e.Tiers {
		if t.Face+t.Fee > 0 {
			return true
		}
	}
	return false
}

// A readable is a database whose tables are written as #table.
type readable struct {
	db     *sql.DB
	schema string
}

// databases opens both for reading; nil where there is nothing yet.
func (d *doctor) databases() (shard, people *readable, close func(), err error) {
	if d.Ledger == Postgres {
		db, err := sql.Open("pgx", d.directURL())
		if err != nil {
			return nil, nil, nil, err
		}
		return &readable{db, postgres.Schema + "."}, &readable{db, "control."}, func() { _ = db.Close() }, nil
	}
	var open []*sql.DB
	for _, name := range []string{ShardFile, controlFile} {
		path := filepath.Join(d.Data, name)
		if _, err := os.Stat(path); err != nil {
			return nil, nil, nil, nil
		}
		db, err := sql.Open("sqlite", sqlite.ReadOnlyDSN(path))
		if err != nil {
			return nil, nil, nil, err
		}
		open = append(open, db)
	}
	return &readable{open[0], ""}, &readable{open[1], ""}, func() { _, _ = open[0].Close(), open[1].Close() }, nil
}

func scanIDs(ctx context.Context, from *readable, query string, each func(int64, string) error) error {
	rows, err := from.db.QueryContext(ctx, strings.ReplaceAll(query, "#", from.schema))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		var text string
		if err := rows.Scan(&n, &text); err != nil {
			return err
		}
		if err := each(n, text); err != nil {
			return err
		}
	}
	return rows.Err()
}

// CheckStripe looks at the settings of Stripe, and asks it whether the key works. demo says whether play money is meant.
func CheckStripe(c stripe.Config, demo bool) Check {
	check := Check{What: "Stripe", Says: "the key works", Mend: "correct the payment.stripe settings; keys and secrets are in Stripe's dashboard under Developers"}
	check.Ask = func(ctx context.Context) error {
		client, err := stripe.New(c)
		if err != nil {
			return err
		}
		defer client.Close()
		switch {
		case client.Mode() == payment.Test && !demo:
			return errors.New("the secret key is a test key (…_test_…): tickets would be given out and no money would move")
		case client.Mode() == payment.Live && demo:
			return errors.New("the secret key is a live key (…_live_…), and this is a demo: real money would move")
		}
		return client.Check(ctx)
	}
	return check
}

// CheckSMTP asks the mail server whether it lets us in.
func CheckSMTP(o smtp.Options) Check {
	return Check{
		What: "mail", Says: fmt.Sprintf("%s:%d lets us in", o.Host, o.Port), Mend: "correct the mail.smtp settings (host, port, encryption, user, password), or let this machine reach it",
		Ask: func(ctx context.Context) error {
			s, err := smtp.New(o)
			if err != nil {
				return err
			}
			err = s.Check(ctx)
			return errors.Join(err, s.Close())
		},
	}
}
