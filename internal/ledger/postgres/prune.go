package postgres

import (
	"onsale/internal/ledger"
)

const (
	// pruneBound is how many rows of a kind one batch deletes at most.
	pruneBound = 2048
	// pruneEvery is how often a node deletes, unless the last time there was more.
	pruneEvery = ledger.Time(10_000)
)

// Rows that another node has locked are left for another time: deleting must not wait out of order.
const (
	sqlPruneKeys = `DELETE FROM shard.idempotency_keys WHERE (customer_id, operation, key) IN (SELECT customer_id, operation, key
 FROM shard.idempotency_keys WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	// A hold of which an order is kept is kept too. The order's customer is the hold's, and has an index.
	sqlPruneHolds = `DELETE FROM shard.holds WHERE hold_id IN (SELECT h.hold_id FROM shard.holds h WHERE h.state IN (2, 3) AND h.expires_at < $1
 AND NOT EXISTS (SELECT 1 FROM shard.orders o WHERE o.customer_id = h.customer_id AND o.hold_id = h.hold_id)
 ORDER BY h.expires_at LIMIT $2 FOR UPDATE OF h SKIP LOCKED)`
	sqlPruneChanges = `DELETE FROM shard.changes WHERE (event_id, version) IN (SELECT event_id, version FROM shard.changes
 WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	sqlKeepClock = `UPDATE shard.clock SET now = greatest(now, $1)`
)

// prune deletes what has been kept long enough (A12, B2), a bounded number of rows, now and then.
func (w *writer) prune() {
	now := w.t.now
	if now < w.t.l.pruned+pruneEvery {
		return
	}
	w.t.l.pruned = now
	answers := int64(now - ledger.Time(ledger.KeepAnswers))
	for _, p := range []struct {
		sql    string
		before int64
	}{{sqlPruneKeys, answers}, {sqlPruneHolds, answers}, {sqlPruneChanges, int64(now - ledger.Time(ledger.KeepChanges))}} {
		w.affected(func(n int64) {
			if n == pruneBound {
				w.t.l.pruned = 0 // there is more
			}
		}, p.sql, p.before, pruneBound)
	}
	w.exec(sqlKeepClock, int64(now))
}
