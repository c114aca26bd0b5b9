package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
)

// dataFlags say where a data folder is and what keeps its ledger.
type dataFlags struct {
	Data     string `default:"data" type:"path" help:"The data folder."`
	Ledger   string `default:"sqlite" enum:"sqlite,postgres" help:"What keeps the ledger: sqlite or postgres."`
	Postgres string `env:"ONSALE_POSTGRES_URL" placeholder:"URL" help:"Where PostgreSQL is, with --ledger postgres."`
}

func (f dataFlags) settings() app.Settings {
	return app.Settings{Data: f.Data, Ledger: app.LedgerKind(f.Ledger), PostgresURL: f.Postgres, Version: versionText(), Logger: slog.Default()}
}

// call gives one command to the data folder.
func (f dataFlags) call(ctx context.Context, method, path string, in, out any) (err error) {
	client, err := app.Dial(ctx, f.settings())
	if err != nil {
		return err
	}
	defer func() {
		if e := client.Close(); err == nil {
			err = e
		}
	}()
	return client.Call(ctx, method, path, in, out)
}

// ServeCmd is `onsale serve`.
type ServeCmd struct {
	dataFlags
	Demo           bool          `help:"With demo events, a sandbox instead of a payment provider, and tokens for everybody."`
	DemoSeats      int           `default:"50000" help:"Seats of the demo's arena."`
	DemoHoldTTL    time.Duration `default:"10m" help:"How long a hold lasts at the demo's event."`
	Listen         string        `default:"127.0.0.1:8080" help:"Where to serve."`
	InternalListen string        `default:"127.0.0.1:9090" help:"Where /readyz and /metrics are, for who runs the program; empty for nowhere."`
}

// Run serves until it is told to stop.
func (c *ServeCmd) Run(ctx context.Context, k *kong.Context) error {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	s := c.settings()
	s.Demo, s.DemoSeats, s.DemoHoldTTL, s.Listen, s.InternalListen = c.Demo, c.DemoSeats, c.DemoHoldTTL, c.Listen, c.InternalListen
	s.Payment.Provider = "sandbox"
	s.Started = func(at app.Addresses) {
		fmt.Fprintf(k.Stdout, "Onsale %s is at http://%s\n", s.Version, at.Public)
	}
	a, err := app.Open(ctx, s)
	if err != nil {
		return err
	}
	err = a.Serve(ctx)
	stop, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if e := a.Close(stop); err == nil {
		err = e
	}
	return err
}
