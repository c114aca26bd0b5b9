package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
	"onsale/internal/audit"
	"onsale/internal/id"
)

// AuditDrawCmd is `onsale audit draw`. It needs no rights: with --url it has what everybody has.
type AuditDrawCmd struct {
	configFlags
	Event  string `required:"" placeholder:"ID" help:"The event."`
	URL    string `placeholder:"URL" help:"Of a server, whose published draw is checked; without it what is stored in the data folder is."`
	Lane   string `default:"general" help:"With --number: of which line."`
	Number int64  `default:"-1" placeholder:"N" help:"Also print the position of this number."`
}

// errDrawDiffers is what a draw that is not what was published ends the command with.
var errDrawDiffers = errors.New("audit draw: not as published")

// drawPatience is how long a server may take for the list of millions of joins.
const drawPatience = 10 * time.Minute

// Run recomputes the draw.
func (c *AuditDrawCmd) Run(ctx context.Context, k *kong.Context) error {
	event, err := id.Parse(id.Event, c.Event)
	if err != nil {
		return fmt.Errorf("--event: %w; see onsale event list", err)
	}
	report, err := c.report(ctx, event)
	if err != nil {
		return err
	}
	if err := report.Render(k.Stdout); err != nil {
		return err
	}
	if !report.OK() {
		return errDrawDiffers
	}
	if c.Number < 0 {
		return nil
	}
	order, err := report.Doc.Order(c.Lane)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(k.Stdout, "number %d of lane %s has position %d\n", c.Number, c.Lane, order.Position(c.Number))
	return err
}

func (c *AuditDrawCmd) report(ctx context.Context, event id.ID) (_ *audit.DrawReport, err error) {
	if c.URL != "" {
		return audit.DrawOfServer(ctx, &http.Client{Timeout: drawPatience}, c.URL, event)
	}
	configured, err := c.load(nil)
	if err != nil {
		return nil, err
	}
	source, err := auditSource(configured)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	joins, closeJoins := app.AuditJoins(app.LedgerKind(configured.Ledger.Kind), configured.Data, source)
	defer func() { err = errors.Join(err, closeJoins()) }()
	return audit.DrawOfHouse(ctx, source, joins, event)
}
