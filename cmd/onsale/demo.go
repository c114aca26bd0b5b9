package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
	"onsale/internal/demo"
	"onsale/internal/pgserver"
)

// DemoCmd is `onsale demo`: it sells an arena to simulated buyers and proves afterwards that nothing was sold twice.
type DemoCmd struct {
	Seats    int           `default:"50000" help:"Seats of the arena, 200 to 200000; standing places come on top."`
	Buyers   int           `default:"30000" help:"How many buyers come, at least 80."`
	Kills    int           `default:"0" help:"Kill the server so many times during the sale (on PostgreSQL in half of them the database) and prove that nothing acknowledged was lost."`
	Ledger   string        `default:"sqlite" enum:"sqlite,postgres" help:"What keeps the ledger: sqlite or postgres."`
	Postgres string        `env:"ONSALE_DEMO_POSTGRES_URL" placeholder:"URL" help:"An existing PostgreSQL server, on which a database is made and dropped. Without it a private one is started."`
	Seed     uint64        `default:"1" help:"Another number brings other buyers, and other moments of kills."`
	AtOnce   int           `default:"256" help:"How many buyers are at the counter at once."`
	HoldTTL  time.Duration `default:"20s" name:"hold-ttl" help:"How long a hold lasts."`
	Payment  time.Duration `default:"15s" name:"payment-window" hidden:"" help:"How long a hold lasts at least once a payment has begun."`
	Data     string        `type:"path" placeholder:"DIR" help:"An empty folder to work in, which is kept. Without it a temporary one is used and removed."`
	Listen   string        `placeholder:"ADDR" help:"Where the server listens; a free port on loopback without it."`
}

// Limits of a demo.
const (
	demoSeatsMin  = 200
	demoSeatsMax  = 200_000
	demoBuyersMin = 80
	demoBuyersMax = 1_000_000
	demoKillsMax  = 100
	demoAtOnceMax = 5_000
)

func (c *DemoCmd) check() error {
	for _, limit := range []struct {
		name               string
		value, least, most int
	}{
		{"--seats", c.Seats, demoSeatsMin, demoSeatsMax}, {"--buyers", c.Buyers, demoBuyersMin, demoBuyersMax},
		{"--kills", c.Kills, 0, demoKillsMax}, {"--at-once", c.AtOnce, 1, demoAtOnceMax},
	} {
		if limit.value < limit.least || limit.value > limit.most {
			return fmt.Errorf("%s is %d; it must be %d to %d", limit.name, limit.value, limit.least, limit.most)
		}
	}
	return nil
}

// Run plays the demo.
func (c *DemoCmd) Run(ctx context.Context, k *kong.Context) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	o := demo.Options{
		Program: program, Listen: c.Listen, Seats: c.Seats, Buyers: c.Buyers, Kills: c.Kills, Seed: c.Seed, AtOnce: c.AtOnce,
		HoldTTL: c.HoldTTL, PaymentWindow: c.Payment, Out: k.Stdout, Terminal: isTerminal(k.Stdout),
	}
	remove, err := c.folder(&o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove(err == nil || ctx.Err() != nil)) }()
	if c.Ledger == string(app.Postgres) {
		stop, err := c.database(ctx, &o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	return demo.Run(ctx, o)
}

// folder makes the data folder. A temporary one is removed afterwards, unless something went wrong.
func (c *DemoCmd) folder(o *demo.Options) (remove func(good bool) error, err error) {
	o.Data = c.Data
	remove = func(bool) error { return nil }
	if c.Data == "" {
		if o.Data, err = os.MkdirTemp("", "onsale-demo-"); err != nil {
			return nil, err
		}
		remove = func(good bool) error {
			if good {
				return os.RemoveAll(o.Data)
			}
			fmt.Fprintln(stderr, "what is left of it is in", o.Data)
			return nil
		}
	} else {
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			return nil, err
		}
		if entries, err := os.ReadDir(c.Data); err != nil || len(entries) > 0 {
			return nil, errors.Join(err, fmt.Errorf("%s is not empty: a demo starts with an empty folder", c.Data))
		}
	}
	o.Shard, o.Books = filepath.Join(o.Data, app.ShardFile), filepath.Join(o.Data, app.SandboxFile)
	o.Joins = filepath.Join(o.Data, app.JoinsFolder)
	return remove, nil
}

// database starts a private server, or makes a database on an existing one.
func (c *DemoCmd) database(ctx context.Context, o *demo.Options) (stop func() error, err error) {
	if c.Postgres == "" {
		o.Postgres, err = pgserver.Start(pgserver.Options{})
	} else {
		o.Postgres, err = pgserver.Adopt(c.Postgres)
	}
	if err != nil {
		return nil, err
	}
	var name string
	if o.PostgresURL, name, err = o.Postgres.FreshDatabase(ctx); err != nil {
		return nil, errors.Join(err, o.Postgres.Stop())
	}
	return func() error {
		var dropped error
		if c.Postgres != "" {
			dropped = o.Postgres.DropDatabase(context.WithoutCancel(ctx), name)
		}
		return errors.Join(dropped, o.Postgres.Stop())
	}, nil
}

// isTerminal says whether something can be drawn upon.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
