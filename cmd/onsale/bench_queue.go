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

type benchQueue struct {
	Fans      int      `default:"200000" help:"How many people come."`
	Design    []string `default:"onsale,zset" help:"Designs: onsale (ours), zset (the textbook's: a sorted set in Redis)."`
	Store     string   `enum:"memory,redis" default:"memory" help:"Where our own design keeps joins: memory or redis."`
	Ledger    string   `enum:"sqlite,postgres" default:"sqlite" help:"Which database keeps our own design's ledger: sqlite or postgres."`
	Processes int      `default:"1" help:"How many nodes our own design has; several need --store redis --ledger postgres."`
	JSON      bool     `name:"json" help:"One JSON object for each design instead of a table."`
	Data      string   `type:"existingdir" placeholder:"DIR" help:"Folder on a disk in which to make (and remove) the databases. Defaults to the system's temporary folder."`
}

// Run measures and prints.
func (c *benchQueue) Run(ctx *kong.Context) (err error) {
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	host, err := bench.OpenHost(bench.HostOptions{Ledger: c.Ledger, Dir: c.Data, PostgresURL: os.Getenv(BenchPostgresVariable)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	fmt.Fprintln(ctx.Stderr, "machine:", &host.Machine) // not among the results, so that --json stays clean
	results, err := host.Queue(interrupted, bench.QueueOptions{
		Fans: c.Fans, Designs: c.Design, Store: c.Store, Processes: c.Processes, Node: []string{self, "bench", "queue-node"},
	})
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

func (c *benchQueue) print(out io.Writer, results []bench.QueueResult) error {
	if !c.JSON {
		return bench.WriteQueueTable(out, results)
	}
	for i := range results {
		if err := json.NewEncoder(out).Encode(&results[i]); err != nil {
			return err
		}
	}
	return nil
}

type benchQueueNode struct{}

// Run is driven by the process that started it.
func (*benchQueueNode) Run() error {
	return bench.QueueNode(context.Background(), os.Stdin, os.Stdout)
}
