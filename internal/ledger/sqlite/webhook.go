package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"sync"

	"onsale/internal/ledger"
)

// WebhookKnown implements ledger.Webhooks.
func (l *Ledger) WebhookKnown(ctx context.Context, provider, event string) (known bool, err error) {
	err = l.reader.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM webhooks WHERE provider = ? AND event_id = ?)`, provider, event).Scan(&known)
	return known, err
}

// webhooksMax is how many webhooks one transaction keeps at most.
const webhooksMax = 256

// A webhookQueue gathers webhooks to be kept: after a hot sale there are two for every booking, and a transaction for each
// would hold up the batches. Whoever finds nobody at work does the work for all who wait. The zero value is ready.
type webhookQueue struct {
	mu      sync.Mutex
	working bool
	waiting []*keptWebhook
}

type keptWebhook struct {
	ledger.Webhook
	done chan error // capacity 1
}

// WebhookKeep implements ledger.Webhooks.
func (l *Ledger) WebhookKeep(ctx context.Context, w ledger.Webhook) error {
	k := &keptWebhook{Webhook: w, done: make(chan error, 1)}
	q := &l.webhooks
	q.mu.Lock()
	q.waiting = append(q.waiting, k)
	lead := !q.working
	q.working = true
	q.mu.Unlock()
	if lead {
		go l.keepWebhooks() // beside: it works for others, too, and this caller may leave
	}
	select {
	case err := <-k.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keepWebhooks keeps all that wait, until none does.
func (l *Ledger) keepWebhooks() {
	q := &l.webhooks
	for {
		q.mu.Lock()
		count := min(len(q.waiting), webhooksMax)
		batch := slices.Clone(q.waiting[:count])
		q.waiting = slices.Delete(q.waiting, 0, count)
		q.working = count > 0
		q.mu.Unlock()
		if count == 0 {
			return
		}
		err := l.inside(context.Background(), func(now ledger.Time) error {
			for _, w := range batch {
				_, err := l.conn.ExecContext(context.Background(), `INSERT INTO webhooks (provider, event_id, order_ref, payment_id, amount, currency, dead, at)
					VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (provider, event_id) DO UPDATE SET dead = excluded.dead`,
					w.Provider, w.Event, w.Order, w.Payment, w.Amount, w.Currency, w.Dead, int64(now))
				if err != nil {
					return err
				}
			}
			return nil
		})
		for _, w := range batch {
			w.done <- err
		}
	}
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
