package app

import (
	"context"

	"onsale/internal/id"
	"onsale/internal/outbox/webhook"
	"onsale/internal/outbox/webhook/post"
)

// openWebhooks opens what tells organizers' own systems.
func (a *App) openWebhooks() error {
	master, err := a.master()
	if err != nil {
		return err
	}
	poster := post.New(post.Options{Allowed: a.Settings.WebhooksAllowed})
	a.onClose(func(context.Context) error { poster.Close(); return nil })
	a.dispatcher = webhook.NewDispatcher(webhook.Options{
		Store: a.Control.Webhooks(), Poster: poster, Sealer: webhookSealer{master}, Log: a.Log,
		Dead: func(string) { a.metrics.alerts.WithLabelValues("webhook").Inc() },
	})
	if a.endpoints, err = a.webhookService(a.dispatcher.Wake); err != nil {
		return err
	}
	a.hooks = webhook.NewHandler(a.Control.Webhooks(), a.organizerOf, a.dispatcher.Wake, nil)
	return nil
}

// organizerOf says to whom an event belongs.
func (a *App) organizerOf(ctx context.Context, event id.ID) (id.ID, error) {
	e, err := a.Catalog.Event(ctx, event)
	if err != nil {
		if isUnknown(err) {
			return 0, webhook.ErrUnknown
		}
		return 0, err
	}
	return e.Organizer, nil
}
