package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Unpublished implements ledger.Outbox. An order's notices become visible in their order: whoever adds one has the
// order's row locked until it commits.
func (r *reader) Unpublished(ctx context.Context, most int, skip []id.ID) ([]ledger.Notice, error) {
	var order, sequence, at int64
	var kind, body string
	var alert int16
	return list(ctx, r.pool, []any{&order, &sequence, &kind, &alert, &body, &at}, func() (ledger.Notice, error) {
		return ledger.Notice{Order: id.ID(order), Sequence: sequence, Kind: kind, Alert: alert != 0, Body: []byte(body), At: ledger.Time(at)}, nil
	}, `SELECT order_id, sequence, kind, alert, body, created_at FROM shard.outbox
	    WHERE published_at IS NULL AND order_id <> ALL ($1::bigint[]) ORDER BY order_id, sequence LIMIT $2`, column(skip, asInt64), clip(most))
}

// sqlFenced is the lease, locked so that nobody takes it before this statement has taken effect (D1). $1 is the clock.
const sqlFenced = `WITH lease AS MATERIALIZED (SELECT ` + sqlNow + ` AS now FROM shard.leases
 WHERE name = $2 AND holder = $3 AND fence = $4 AND until_at > ` + sqlNow + ` FOR SHARE)`

func (r *reader) fenced(lease ledger.Lease) []any {
	return []any{r.given(), lease.Name, lease.Holder, lease.Fence}
}

// MarkPublished implements ledger.Outbox.
func (r *reader) MarkPublished(ctx context.Context, lease ledger.Lease, notices []ledger.Notice) error {
	var held bool
	err := r.pool.QueryRow(ctx, sqlFenced+`, marked AS (UPDATE shard.outbox o SET published_at = lease.now FROM lease,
	      unnest($5::bigint[], $6::bigint[]) AS u(order_id, sequence)
	      WHERE o.order_id = u.order_id AND o.sequence = u.sequence AND o.published_at IS NULL)
	    SELECT EXISTS (SELECT 1 FROM lease)`, append(r.fenced(lease),
		column(notices, func(n ledger.Notice) int64 { return int64(n.Order) }),
		column(notices, func(n ledger.Notice) int64 { return n.Sequence }))...).Scan(&held)
	return fencedOff(held, err)
}

func fencedOff(held bool, err error) error {
	if err == nil && !held {
		return ledger.ErrFenced
	}
	return err
}

// PrunePublished implements ledger.Outbox.
func (r *reader) PrunePublished(ctx context.Context, lease ledger.Lease, before ledger.Time, most int) (int, error) {
	var held bool
	var deleted int
	err := r.pool.QueryRow(ctx, sqlFenced+`, old AS (SELECT order_id, sequence FROM shard.outbox WHERE published_at < $5 ORDER BY published_at, order_id, sequence LIMIT $6),
	    deleted AS (DELETE FROM shard.outbox o USING lease, old WHERE o.order_id = old.order_id AND o.sequence = old.sequence RETURNING 1)
	    SELECT EXISTS (SELECT 1 FROM lease), (SELECT count(*) FROM deleted)`, append(r.fenced(lease), int64(before), clip(most))...).Scan(&held, &deleted)
	return deleted, fencedOff(held, err)
}

// Acquire implements ledger.Leases.
func (r *reader) Acquire(ctx context.Context, name, holder string, ttl ledger.Duration) (lease ledger.Lease, ok bool, err error) {
	lease = ledger.Lease{Name: name, Holder: holder}
	var until int64
	err = r.pool.QueryRow(ctx, `WITH clock AS MATERIALIZED (SELECT `+sqlNow+` AS now)
	    INSERT INTO shard.leases AS l (name, holder, fence, until_at) SELECT $2, $3, 1, now + $4 FROM clock
	    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_at = excluded.until_at,
	      fence = CASE WHEN l.holder = excluded.holder AND l.until_at > excluded.until_at - $4 THEN l.fence ELSE l.fence + 1 END
	      WHERE l.holder = excluded.holder OR l.until_at <= excluded.until_at - $4
	    RETURNING fence, until_at`, r.given(), name, holder, int64(ttl)).Scan(&lease.Fence, &until)
	if errors.Is(err, pgx.ErrNoRows) {
		return ledger.Lease{}, false, nil
	}
	if err != nil {
		return ledger.Lease{}, false, err
	}
	lease.Until = ledger.Time(until)
	return lease, true, nil
}

// ReleaseLease implements ledger.Leases.
func (r *reader) ReleaseLease(ctx context.Context, lease ledger.Lease) error {
	_, err := r.pool.Exec(ctx, `UPDATE shard.leases SET until_at = 0 WHERE name = $1 AND holder = $2 AND fence = $3`, lease.Name, lease.Holder, lease.Fence)
	return err
}
