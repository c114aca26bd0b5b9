package postgres

import (
	"context"

	"onsale/internal/ledger"
)

var _ ledger.Webhooks = (*Ledger)(nil)

// WebhookKnown implements ledger.Webhooks.
func (r *reader) WebhookKnown(ctx context.Context, provider, event string) (known bool, err error) {
	err = r.pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM shard.webhooks WHERE provider = $1 AND event_id = $2)`, provider, event).Scan(&known)
	return known, err
}

// WebhookKeep implements ledger.Webhooks.
func (r *reader) WebhookKeep(ctx context.Context, w ledger.Webhook) error {
	_, err := r.pool.Exec(ctx, `INSERT INTO shard.webhooks (at, provider, event_id, order_ref, payment_id, amount, currency, dead)
	    VALUES (`+sqlNow+`, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (provider, event_id) DO UPDATE SET dead = excluded.dead`,
		r.given(), w.Provider, w.Event, w.Order, w.Payment, w.Amount, w.Currency, bit(w.Dead))
	return err
}

// DeadWebhooks implements ledger.Webhooks.
func (r *reader) DeadWebhooks(ctx context.Context, before ledger.Time, most int) ([]ledger.Webhook, error) {
	var w ledger.Webhook
	var dead int16
	var at int64
	return list(ctx, r.pool, []any{&w.Provider, &w.Event, &w.Order, &w.Payment, &w.Amount, &w.Currency, &dead, &at}, func() (ledger.Webhook, error) {
		w.Dead, w.At = dead != 0, ledger.Time(at)
		return w, nil
	}, `SELECT provider, event_id, order_ref, payment_id, amount, currency, dead, at FROM shard.webhooks
	    WHERE dead = 1 AND at < $1 ORDER BY at, event_id LIMIT $2`, int64(before), clip(most))
}

// PruneWebhooks implements ledger.Webhooks.
func (r *reader) PruneWebhooks(ctx context.Context, before ledger.Time, most int) (int, error) {
	tag, err := r.pool.Exec(ctx, `DELETE FROM shard.webhooks WHERE (provider, event_id) IN
	    (SELECT provider, event_id FROM shard.webhooks WHERE dead = 0 AND at < $1 ORDER BY at LIMIT $2)`, int64(before), clip(most))
	return int(tag.RowsAffected()), err
}
