package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
)

// WebhookCmd is `onsale webhook`: it works on a running server through the data folder's socket, else on the folder itself.
type WebhookCmd struct {
	List   webhookList   `cmd:"" help:"List an organizer's endpoints."`
	Add    webhookAdd    `cmd:"" help:"Add an endpoint; its secret is shown once."`
	Rotate webhookRotate `cmd:"" help:"Make a new secret; the old one signs too for a day."`
	On     webhookTurn   `cmd:"" help:"Deliver to an endpoint."`
	Off    webhookTurn   `cmd:"" help:"Deliver no more; what waits is kept."`
	Remove webhookTurn   `cmd:"" help:"Remove an endpoint with all that waits for it."`
	Dead   webhookDead   `cmd:"" help:"List what could not be delivered in three days."`
	Replay webhookReplay `cmd:"" help:"Deliver again what was sent or given up."`
}

type webhookFlags struct {
	Organizer string `help:"The organizer's key; house where it is missing."`
	configFlags
}

type webhookList struct{ webhookFlags }

type webhookAdd struct {
	URL  string   `arg:"" help:"Where to post to, https://…"`
	Kind []string `help:"What to tell, such as booking.paid; again for each. All but the inner workings where it is missing."`
	webhookFlags
}

type webhookEndpoint struct {
	Endpoint string `arg:"" help:"The endpoint's id, as onsale webhook list shows it."`
	webhookFlags
}

type (
	webhookRotate struct{ webhookEndpoint }
	webhookTurn   struct{ webhookEndpoint }
	webhookDead   struct{ webhookEndpoint }
	webhookReplay struct {
		webhookEndpoint
		Message string    `xor:"what" required:"" placeholder:"ID" help:"One message, by its id."`
		Dead    bool      `xor:"what" required:"" help:"All that could not be delivered."`
		Since   time.Time `xor:"what" required:"" help:"All made since a time, delivered or not: 2027-06-12T19:30:00Z."`
	}
)

// Run lists the endpoints.
func (c *webhookList) Run(ctx context.Context, k *kong.Context) error {
	var all []app.AdminWebhook
	if err := c.call(ctx, "POST", "/webhooks/list", app.WebhookRequest{Organizer: c.Organizer}, &all); err != nil {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(k.Stdout, "No webhooks. onsale webhook add URL makes one.")
		return err
	}
	return printWebhooks(k.Stdout, all)
}

func printWebhooks(w io.Writer, all []app.AdminWebhook) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range all {
		state := "off"
		if e.On {
			state = "on"
		}
		fmt.Fprintf(t, "%s\t%s\t%d waiting\t%d dead\n  %s\n", e.ID, state, e.Waiting, e.Dead, e.URL)
		if len(e.Kinds) > 0 {
			fmt.Fprintf(t, "  %s\n", strings.Join(e.Kinds, " "))
		}
		if e.Secret != "" {
			fmt.Fprintf(t, "  secret: %s\n", e.Secret)
		}
	}
	return t.Flush()
}

// Run adds an endpoint and shows its secret.
func (c *webhookAdd) Run(ctx context.Context, k *kong.Context) error {
	var one app.AdminWebhook
	if err := c.call(ctx, "POST", "/webhooks/add", app.WebhookRequest{Organizer: c.Organizer, URL: c.URL, Kinds: c.Kind}, &one); err != nil {
		return err
	}
	return printWebhooks(k.Stdout, []app.AdminWebhook{one})
}

// ask does something to an endpoint.
func (c *webhookEndpoint) ask(ctx context.Context, verb string, in app.WebhookRequest, out any) error {
	in.Organizer = c.Organizer
	return c.call(ctx, "POST", "/webhooks/"+url.PathEscape(c.Endpoint)+"/"+verb, in, out)
}

// Run makes a new secret and shows it.
func (c *webhookRotate) Run(ctx context.Context, k *kong.Context) error {
	var one app.AdminWebhook
	if err := c.ask(ctx, "rotate", app.WebhookRequest{}, &one); err != nil {
		return err
	}
	return printWebhooks(k.Stdout, []app.AdminWebhook{one})
}

// Run does to the endpoint what the subcommand is called.
func (c *webhookTurn) Run(ctx context.Context, k *kong.Context) error {
	var one app.AdminWebhook
	if err := c.ask(ctx, k.Selected().Name, app.WebhookRequest{}, &one); err != nil || one.ID == "" {
		return err
	}
	return printWebhooks(k.Stdout, []app.AdminWebhook{one})
}

// Run lists dead letters.
func (c *webhookDead) Run(ctx context.Context, k *kong.Context) error {
	var all []app.AdminDelivery
	if err := c.ask(ctx, "dead", app.WebhookRequest{}, &all); err != nil {
		return err
	}
	t := tabwriter.NewWriter(k.Stdout, 0, 0, 2, ' ', 0)
	for _, d := range all {
		why := d.Last
		if why == "" {
			why = fmt.Sprintf("answered %d", d.Status)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d tries\t%s\n", d.Message, d.Kind, d.Created.UTC().Format("2006-01-02 15:04"), d.Tries, why)
	}
	return t.Flush()
}

// Run delivers again.
func (c *webhookReplay) Run(ctx context.Context, k *kong.Context) error {
	var n int
	if err := c.ask(ctx, "replay", app.WebhookRequest{Message: c.Message, Dead: c.Dead, Since: c.Since}, &n); err != nil {
		return err
	}
	_, err := fmt.Fprintf(k.Stdout, "%d messages are delivered again.\n", n)
	return err
}
