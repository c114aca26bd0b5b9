package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"

	"onsale/internal/bench"
)

// BenchPostgresVariable names an existing PostgreSQL server for the bench, on which it makes databases of its own.
const BenchPostgresVariable = "ONSALE_BENCH_POSTGRES_URL"

// BenchCmd is `onsale bench`: measurements, the reference designs beside ours. It touches nothing but databases that it
// makes and removes.
type BenchCmd struct {
	Holds benchHolds `cmd:"" help:"Buyers at once, each wanting hand-picked seats that many others want too."`
	Sale  benchSale  `cmd:"" help:"A whole arena sold: best available seats held, paid, tickets made."`
	Queue benchQueue `cmd:"" help:"A crowd that joins a line, waits, and is let in."`

	HTTP benchHTTP `cmd:"" name:"http" help:"The status of a line and the position of a number over HTTP, beside a bare handler; and joins."`

	QueueNode benchQueueNode `cmd:"" hidden:"" help:"One of several processes of bench queue."`
}

// benchOn is what every bench has.
type benchOn struct {
	Ledger string `enum:"sqlite,postgres" default:"sqlite" help:"Which database keeps the ledger: sqlite or postgres."`
	Runs   int    `default:"1" help:"How often each design runs, in turn; medians are reported and every run is listed."`
	JSON   bool   `name:"json" help:"One JSON object for each design instead of a table."`
	Data   string `type:"existingdir" placeholder:"DIR" help:"Folder on a disk in which to make (and remove) the databases. Defaults to the system's temporary folder."`
}

type benchHolds struct {
	benchOn
	Seats   int      `default:"2000" help:"How many seats there are."`
	Buyers  int      `default:"100000" help:"How many buyers come at once."`
	PerHold int      `default:"2" help:"How many seats each wants, 1 to 8."`
	Design  []string `default:"onsale,conditional" help:"Designs: onsale (ours), conditional (a transaction for each request)."`
	Seed    uint64   `default:"1" help:"Another number, other wishes."`
}

type benchSale struct {
	benchOn
	Seats   int      `default:"50000" help:"How many seats the arena has."`
	Callers int      `default:"2000" help:"How many customers are under way at once."`
	Party   int      `default:"2" help:"How many seats each buys, 1 to 8."`
	Design  []string `default:"onsale,bare" help:"Designs: onsale (ours), bare (nothing but the statements of the sale)."`
}

// Run measures and prints.
func (c *benchHolds) Run(ctx *kong.Context) error {
	return c.run(ctx, func(run context.Context, h *bench.Host) ([]bench.Result, error) {
		return h.Holds(run, bench.HoldsOptions{
			Seats: c.Seats, Buyers: c.Buyers, PerHold: c.PerHold, Designs: c.Design, Runs: c.Runs, Seed: c.Seed, Progress: c.progress(ctx.Stderr),
		})
	})
}

// Run measures and prints.
func (c *benchSale) Run(ctx *kong.Context) error {
	return c.run(ctx, func(run context.Context, h *bench.Host) ([]bench.Result, error) {
		return h.Sale(run, bench.SaleOptions{
			Seats: c.Seats, Callers: c.Callers, Party: c.Party, Designs: c.Design, Runs: c.Runs, Progress: c.progress(ctx.Stderr),
		})
	})
}

func (c *benchOn) run(ctx *kong.Context, measure func(context.Context, *bench.Host) ([]bench.Result, error)) (err error) {
	if c.Runs < 1 || c.Runs > bench.RunsMax {
		return fmt.Errorf("--runs is %d; it must be 1 to %d", c.Runs, bench.RunsMax)
	}
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	host, err := bench.OpenHost(bench.HostOptions{Ledger: c.Ledger, Dir: c.Data, PostgresURL: os.Getenv(BenchPostgresVariable)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	fmt.Fprintln(ctx.Stderr, "machine:", &host.Machine) // not among the results, so that --json stays clean
	results, err := measure(interrupted, host)
	if err != nil {
		return err
	}
	if err := c.print(ctx.Stdout, results); err != nil {
		return err
	}
	for i := range results {
		err = errors.Join(err, results[i].Faulty())
	}
	return err
}

func (c *benchOn) print(out io.Writer, results []bench.Result) error {
	if !c.JSON {
		return bench.WriteTable(out, results)
	}
	for i := range results {
		if err := json.NewEncoder(out).Encode(&results[i]); err != nil {
			return err
		}
	}
	return nil
}

// progress tells of every run, where there is more than one.
func (c *benchOn) progress(out io.Writer) func(bench.Result) {
	if c.Runs == 1 {
		return nil
	}
	return func(r bench.Result) {
		fmt.Fprintf(out, "%s on %s: %.3f s, %.0f attempts/s, %.0f seats sold/s\n", r.Design, r.Ledger, r.Seconds, r.AttemptsPerS, r.SeatsSoldPerS)
	}
}
