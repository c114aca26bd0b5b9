package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
	"onsale/internal/audit"
	"onsale/internal/config"
	"onsale/internal/id"
	"onsale/internal/payment/sandbox"
)

// AuditCmd is `onsale audit`, without a word behind it the audit of everything.
type AuditCmd struct {
	All  AuditAllCmd  `cmd:"" default:"withargs" help:"Everything that is stored."`
	Draw AuditDrawCmd `cmd:"" help:"The draw of an event's line: recompute every position, and say what differs."`
}

// AuditAllCmd is `onsale audit`. It only reads, also while a server runs.
type AuditAllCmd struct {
	configFlags
	Event string `placeholder:"ID" help:"Only this event."`
	JSON  bool   `help:"The whole report as JSON."`
}

// errBroken is what a broken promise ends the command with.
var errBroken = errors.New("audit: broken")

// Run audits the shard, against the log of joins, and the sandbox's books where there are any.
func (c *AuditAllCmd) Run(ctx context.Context, k *kong.Context) (err error) {
	var o audit.Options
	if c.Event != "" {
		if o.Event, err = id.Parse(id.Event, c.Event); err != nil {
			return fmt.Errorf("--event: %w; see onsale event list", err)
		}
	}
	configured, err := c.load(nil)
	if err != nil {
		return err
	}
	source, err := auditSource(configured)
	if err != nil {
		return err
	}
	defer source.Close()
	joins, closeJoins := app.AuditJoins(app.LedgerKind(configured.Ledger.Kind), configured.Data, source)
	defer func() { err = errors.Join(err, closeJoins()) }()
	o.Joins = joins
	books, err := sandbox.ReadBooks(filepath.Join(configured.Data, app.SandboxFile))
	switch {
	case err == nil:
		defer books.Close()
		o.Provider = books
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	report, err := audit.Run(ctx, source, o)
	if err != nil {
		return err
	}
	if c.Event != "" && len(report.Events) == 0 {
		return fmt.Errorf("there is no event %s in %s; see onsale event list", c.Event, configured.Data)
	}
	if c.JSON {
		e := json.NewEncoder(k.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(report)
	} else {
		err = report.Render(k.Stdout)
	}
	if err == nil && !report.OK() {
		err = errBroken
	}
	return err
}

// auditSource opens the shard for reading only.
func auditSource(c config.Config) (*audit.Source, error) {
	if app.LedgerKind(c.Ledger.Kind) == app.Postgres {
		return audit.OpenPostgres(c.Ledger.URL)
	}
	source, err := audit.OpenSQLite(filepath.Join(c.Data, app.ShardFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("nothing was ever sold in %s (is --data right?): %w", c.Data, err)
	}
	return source, err
}
