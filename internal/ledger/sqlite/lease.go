package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"onsale/internal/ledger"
)

// inside runs a small writing transaction between batches.
func (l *Ledger) inside(ctx context.Context, do func(now ledger.Time) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return errors.New("the ledger is closed")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if _, err := l.stmts.begin.ExecContext(ctx); err != nil {
		return disk(err)
	}
	err := do(l.clock())
	if err == nil {
		_, err = l.stmts.commit.ExecContext(ctx)
	}
	if err != nil {
		_, rollback := l.conn.ExecContext(ctx, `ROLLBACK`)
		return disk(errors.Join(err, rollback))
	}
	return nil
}

// Acquire implements ledger.Leases.
func (l *Ledger) Acquire(ctx context.Context, name, holder string, ttl ledger.Duration) (lease ledger.Lease, ok bool, err error) {
	err = l.inside(ctx, func(now ledger.Time) error {
		lease = ledger.Lease{Name: name}
		err := l.stmts.leaseGet.QueryRowContext(ctx, name).Scan(&lease.Holder, &lease.Fence, &lease.Until)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if lease.Holder != holder || lease.Until <= now {
			if lease.Until > now {
				return nil
			}
			lease.Fence++
		}
		lease.Holder, lease.Until = holder, now+ledger.Time(ttl)
		ok = true
		_, err = l.stmts.leasePut.ExecContext(ctx, name, holder, lease.Fence, int64(lease.Until))
		return err
	})
	if err != nil || !ok {
		return ledger.Lease{}, false, err
	}
	return lease, true, nil
}

// ReleaseLease implements ledger.Leases.
func (l *Ledger) ReleaseLease(ctx context.Context, lease ledger.Lease) error {
	return l.inside(ctx, func(now ledger.Time) error {
		if err := l.fence(ctx, lease, now); err != nil {
			return ignoreFenced(err)
		}
		_, err := l.stmts.leasePut.ExecContext(ctx, lease.Name, lease.Holder, lease.Fence, int64(now))
		return err
	})
}

func ignoreFenced(err error) error {
	if errors.Is(err, ledger.ErrFenced) {
		return nil
	}
	return err
}

// fence fails unless the lease is still held.
func (l *Ledger) fence(ctx context.Context, lease ledger.Lease, now ledger.Time) error {
	var one int
	err := l.stmts.leaseFence.QueryRowContext(ctx, lease.Name, lease.Fence, int64(now)).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.ErrFenced
	}
	return err
}

// MarkPublished implements ledger.Outbox.
func (l *Ledger) MarkPublished(ctx context.Context, lease ledger.Lease, notices []ledger.Notice) error {
	return l.inside(ctx, func(now ledger.Time) error {
		if err := l.fence(ctx, lease, now); err != nil {
			return err
		}
		for _, n := range notices {
			if _, err := l.stmts.published.ExecContext(ctx, int64(now), int64(n.Order), n.Sequence); err != nil {
				return err
			}
		}
		return nil
	})
}

// PrunePublished implements ledger.Outbox.
func (l *Ledger) PrunePublished(ctx context.Context, lease ledger.Lease, before ledger.Time, most int) (deleted int, err error) {
	err = l.inside(ctx, func(now ledger.Time) error {
		if err := l.fence(ctx, lease, now); err != nil {
			return err
		}
		r, err := l.stmts.pruneSent.ExecContext(ctx, int64(before), most)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		deleted = int(n)
		return err
	})
	return deleted, err
}

var _ ledger.Ledger = (*Ledger)(nil)
