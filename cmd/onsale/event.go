package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
	"onsale/internal/catalog/eventfile"
	"onsale/internal/venue"
)

// EventCmd is `onsale event`: it works on a running server through the data folder's socket, else on the folder itself.
type EventCmd struct {
	Import eventImport `cmd:"" help:"Make or change a show and its events from an event file (YAML or JSON)."`
	List   eventList   `cmd:"" help:"List all events."`

	Convert eventConvert `cmd:"" help:"Make event files of another system's events, with questions where they are not clear."`

	Open   eventVerb `cmd:"" help:"Open the sale now."`
	Pause  eventVerb `cmd:"" help:"Pause the sale: no new holds, live ones may pay."`
	Resume eventVerb `cmd:"" help:"Go on selling after a pause."`
	Close  eventVerb `cmd:"" help:"End the sale for good."`
	Cancel eventVerb `cmd:"" help:"Cancel the event for good: tickets are void, everybody gets their money back and a mail."`

	Restart eventVerb `cmd:"" help:"Sell on after an event was stopped because its data contradict each other, once you have looked (see onsale audit)."`
}

type eventImport struct {
	File      string `arg:"" type:"existingfile" help:"The event file; see docs/EVENT_FILE.md."`
	Organizer string `placeholder:"KEY" help:"Whose events they are: the key of an organizer that is there. Defaults to house."`
	configFlags
}

type eventList struct{ configFlags }

type eventVerb struct {
	Event string `arg:"" help:"The event's id, as onsale event list shows it."`
	configFlags
}

// Run imports the file with the plan that it names.
func (c *eventImport) Run(ctx context.Context, k *kong.Context) error {
	data, err := readBounded(c.File, eventfile.FileBytesMax)
	if err != nil {
		return err
	}
	file, err := eventfile.Parse(data)
	if err != nil {
		return err
	}
	in := app.ImportRequest{File: data, Organizer: c.Organizer}
	if _, known := file.PlanHash(); !known {
		path := file.Plan
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(c.File), path)
		}
		if in.Plan, err = readBounded(path, venue.FileBytesMax); err != nil {
			return fmt.Errorf("venue.plan: %w (a path is seen from %s)", err, filepath.Dir(c.File))
		}
	}
	var done []app.AdminEvent
	if err := c.begin(ctx, "POST", "/events", in, &done); err != nil {
		return err
	}
	return printEvents(k.Stdout, done)
}

// Run lists the events.
func (c *eventList) Run(ctx context.Context, k *kong.Context) error {
	var events []app.AdminEvent
	if err := c.call(ctx, "GET", "/events", nil, &events); err != nil {
		return err
	}
	if len(events) == 0 {
		configured, err := c.load(nil)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(k.Stdout, "No events in %s (--data names another folder).\nonsale event import FILE brings some.\n", configured.Data)
		return err
	}
	return printEvents(k.Stdout, events)
}

// Run does to the event what the subcommand is called.
func (c *eventVerb) Run(ctx context.Context, k *kong.Context) error {
	var event app.AdminEvent
	if err := c.call(ctx, "POST", "/events/"+c.Event+"/"+k.Selected().Name, nil, &event); err != nil {
		return err
	}
	return printEvents(k.Stdout, []app.AdminEvent{event})
}

func printEvents(w io.Writer, events []app.AdminEvent) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range events {
		action := ""
		if e.Action != "" {
			action = "  " + e.Action
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d seats%s\n", e.ID, e.State, e.Starts.Format("2006-01-02 15:04 MST"), e.Seats, action)
		fmt.Fprintf(t, "  %s, %s\n", cut(e.Title, 44), cut(e.Venue, 28))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, e := range events {
		if e.Warn != "" {
			if _, err := fmt.Fprintf(w, "%s: %s\n", e.ID, e.Warn); err != nil {
				return err
			}
		}
	}
	return nil
}

// cut shortens a text to n runes, for a table of 80 columns.
func cut(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}
