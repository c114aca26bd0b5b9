package sqlite

import (
	"context"
	"database/sql"

	"onsale/internal/ledger"
)

// WebhookKnown implements ledger.Webhooks.
func (l *Ledger) WebhookKnown(ctx context.Context, provider, event string) (known bool, err error) {
	err = l.reader.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM webhooks WHERE provider = ? AND event_id = ?)`, provider, event).Scan(&known)
	return known, err
}

// WebhookKeep implements ledger.Webhooks.
func (l *Ledger) WebhookKeep(ctx context.Context, w ledger.Webhook) error {
	return l.inside(ctx, func(now ledger.Time) error {
		_, err := l.conn.ExecContext(ctx, `INSERT INTO webhooks (provider, event_id, order_ref, payment_id, amount, currency, dead, at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (provider, event_id) DO UPDATE SET dead = excluded.dead`,
			w.Provider, w.Event, w.Order, w.Payment, w.Amount, w.Currency, w.Dead, int64(now))
		return err
	})
}

// DeadWebhooks implements ledger.Webhooks.
func (l *Ledger) DeadWebhooks(ctx context.Context, before ledger.Time, most int) ([]ledger.Webhook, error) {
	return query(ctx, l.reader.db, func(rows *sql.Rows) (w ledger.Webhook, err error) {
		return w, rows.Scan(&w.Provider, &w.Event, &w.Order, &w.Payment, &w.Amount, &w.Currency, &w.Dead, &w.At)
	}, `SELECT provider, event_id, order_ref, payment_id, amount, currency, dead, at FROM webhooks
	    WHERE dead = 1 AND at < ? ORDER BY at, event_id LIMIT ?`, int64(before), most)
}

// PruneWebhooks implements ledger.Webhooks.
func (l *Ledger) PruneWebhooks(ctx context.Context, before ledger.Time, most int) (deleted int, err error) {
	err = l.inside(ctx, func(ledger.Time) error {
		r, err := l.conn.ExecContext(ctx, `DELETE FROM webhooks WHERE (provider, event_id) IN
			(SELECT provider, event_id FROM webhooks WHERE dead = 0 AND at < ? ORDER BY at LIMIT ?)`, int64(before), most)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		deleted = int(n)
		return err
	})
	return deleted, err
}

var _ ledger.Webhooks = (*Ledger)(nil)
