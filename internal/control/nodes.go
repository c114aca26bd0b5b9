package control

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"onsale/internal/id"
	"onsale/internal/sqlmigrate"
)

// ErrNodeLost says that a node number was taken by another process, because it was not renewed in time.
var ErrNodeLost = errors.New("another process has taken this node number")

// ErrNoNode says that all node numbers are in use.
var ErrNoNode = errors.New("all node numbers are in use")

const reserveTimeout = 10 * time.Second

// A Node is the right to make ids under a node number (A7). It is safe whatever the clocks do: numbers are given out
// only below a high-water mark that is raised under a fence, and whoever takes the number over begins above it. Renew
// only keeps it from being taken over.
type Node struct {
	db        *DB
	Number    int
	HighWater int64 // milliseconds since the epoch of ids
	fence     int64
}

// ClaimNode takes the least node number that is free for a while. The embedded database has one process: it is node 0,
// whatever was left of the last one.
func (d *DB) ClaimNode(ctx context.Context, holder string, ttl time.Duration) (*Node, error) {
	var node *Node
	err := d.tx(ctx, func(tx *sql.Tx) error {
		if d.dialect == sqlmigrate.Postgres {
			if _, err := tx.ExecContext(ctx, d.q(`LOCK TABLE {nodes} IN EXCLUSIVE MODE`)); err != nil {
				return err
			}
		}
		now, err := d.clock(ctx, tx)
		if err != nil {
			return err
		}
		if node, err = d.freeNode(ctx, tx, now); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, d.q(`INSERT INTO {nodes} (node, high_water_ms, holder, fence, until_ms) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (node) DO UPDATE SET holder = excluded.holder, fence = excluded.fence, until_ms = excluded.until_ms`),
			node.Number, node.HighWater, holder, node.fence, now+ttl.Milliseconds())
		return err
	})
	return node, wrap("claiming a node number", err)
}

func (d *DB) freeNode(ctx context.Context, tx *sql.Tx, now int64) (*Node, error) {
	r, err := tx.QueryContext(ctx, d.q(`SELECT node, high_water_ms, fence, until_ms FROM {nodes} ORDER BY node`))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	next := 0
	for r.Next() {
		n := Node{db: d}
		var until int64
		if err := r.Scan(&n.Number, &n.HighWater, &n.fence, &until); err != nil {
			return nil, err
		}
		if n.Number != next {
			break
		}
		if until <= now || d.dialect == sqlmigrate.SQLite {
			n.fence++
			return &n, nil
		}
		next++
	}
	if next > id.NodeMax {
		return nil, ErrNoNode
	}
	return &Node{db: d, Number: next, fence: 1}, r.Err()
}

// clock is the database's own.
func (d *DB) clock(ctx context.Context, tx *sql.Tx) (now int64, err error) {
	if d.dialect == sqlmigrate.SQLite {
		return millis(d.now()), nil
	}
	err = tx.QueryRowContext(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint`).Scan(&now)
	return now, err
}

// Renew keeps the number for another while. ErrNodeLost: stop making ids.
func (n *Node) Renew(ctx context.Context, ttl time.Duration) error {
	return n.update(ctx, func(now int64) (string, []any) {
		return `UPDATE {nodes} SET until_ms = $3 WHERE node = $1 AND fence = $2`, []any{now + ttl.Milliseconds()}
	})
}

// Release lets others have the number at once.
func (n *Node) Release(ctx context.Context) error {
	return n.update(ctx, func(now int64) (string, []any) {
		return `UPDATE {nodes} SET until_ms = $3 WHERE node = $1 AND fence = $2`, []any{now}
	})
}

// Reserve is the id.Reserve of the node's generator.
func (n *Node) Reserve(untilMillis int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), reserveTimeout)
	defer cancel()
	return n.update(ctx, func(int64) (string, []any) {
		return `UPDATE {nodes} SET high_water_ms = $3 WHERE node = $1 AND fence = $2`, []any{untilMillis}
	})
}

// Generator makes ids under the node's number.
func (n *Node) Generator(now func() time.Time) *id.Generator {
	return id.NewGenerator(n.Number, now, n.HighWater, n.Reserve)
}

func (n *Node) update(ctx context.Context, statement func(now int64) (string, []any)) error {
	err := n.db.tx(ctx, func(tx *sql.Tx) error {
		now, err := n.db.clock(ctx, tx)
		if err != nil {
			return err
		}
		query, args := statement(now)
		result, err := tx.ExecContext(ctx, n.db.q(query), append([]any{n.Number, n.fence}, args...)...)
		if err != nil {
			return err
		}
		if count, err := result.RowsAffected(); err != nil || count != 1 {
			return errors.Join(err, ErrNodeLost)
		}
		return nil
	})
	return wrap(fmt.Sprintf("node number %d", n.Number), err)
}
