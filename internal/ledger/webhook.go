package ledger

import "context"

// KeepWebhooks is how long a provider's event ids are remembered (A20).
const KeepWebhooks = Duration(30 * 24 * 60 * 60 * 1000)

// A Webhook is a provider's event as it was dealt with. Dead ones name an order that is not known: somebody's money may
// be there for nothing, so they are looked at again until it is given back.
type Webhook struct {
	Provider string
	Event    string // the provider's id of the event
	Order    string // as the provider's metadata has it
	Payment  string
	Amount   int64
	Currency string
	Dead     bool
	At       Time
}

// Webhooks remembers which of a provider's events have been dealt with. Nothing's correctness depends on it: every
// webhook is harmless twice. It saves work and keeps the dead letters.
type Webhooks interface {
	// WebhookKnown says whether an event was kept before.
	WebhookKnown(ctx context.Context, provider, event string) (bool, error)
	// WebhookKeep writes an event down, over what was kept of it before.
	WebhookKeep(ctx context.Context, w Webhook) error
	// DeadWebhooks are the dead ones kept before an instant, oldest first, at most max.
	DeadWebhooks(ctx context.Context, before Time, max int) ([]Webhook, error)
	// PruneWebhooks forgets events that are not dead and were kept before an instant, at most max, and says how many.
	PruneWebhooks(ctx context.Context, before Time, max int) (int, error)
}
