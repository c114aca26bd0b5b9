package control

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"

	"onsale/internal/id"
	"onsale/internal/identity"
)

// Identities is the port of identities.
func (d *DB) Identities() identity.Store { return identityStore{d} }

type identityStore struct{ *DB }

func (s identityStore) Customer(ctx context.Context, issuer, sub string) (id.ID, error) {
	var customer int64
	err := s.read.QueryRowContext(ctx, s.q(`SELECT customer_id FROM {identities} WHERE issuer = $1 AND sub = $2`), issuer, sub).Scan(&customer)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, identity.ErrUnknown
	}
	return id.ID(customer), wrap("reading an identity", err)
}

// identityBatchMax is how many new customers one transaction makes at most.
const identityBatchMax = 256

// identityTimeout bounds one transaction of new customers.
const identityTimeout = 10 * time.Second

// An identityQueue gathers those who sign in for the first time: in the minute before a sale everybody does, and one
// transaction for each would be the bottleneck. Whoever finds nobody at work does the work for all who wait.
type identityQueue struct {
	mu      sync.Mutex
	working bool
	waiting []*newIdentity
}

type newIdentity struct {
	issuer, sub string
	customer    id.ID
	done        chan struct{}
	answer      id.ID
	err         error
}

func (s identityStore) PutCustomer(ctx context.Context, issuer, sub string, candidate id.ID) (id.ID, error) {
	n := &newIdentity{issuer: issuer, sub: sub, customer: candidate, done: make(chan struct{})}
	queue := &s.DB.identities
	queue.mu.Lock()
	queue.waiting = append(queue.waiting, n)
	lead := !queue.working
	queue.working = true
	queue.mu.Unlock()
	if lead {
		// Not under the caller's context: it works for others, too.
		go s.work()
	}
	select {
	case <-n.done:
		return n.answer, wrap("storing an identity", n.err)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (s identityStore) work() {
	queue := &s.DB.identities
	for {
		queue.mu.Lock()
		count := min(len(queue.waiting), identityBatchMax)
		batch := slices.Clone(queue.waiting[:count])
		queue.waiting = slices.Delete(queue.waiting, 0, count)
		queue.working = count > 0
		queue.mu.Unlock()
		if count == 0 {
			return
		}
		s.commit(batch)
	}
}

func (s identityStore) commit(batch []*newIdentity) {
	// In one order on all nodes, so that they do not wait for each other in a circle.
	slices.SortFunc(batch, func(a, b *newIdentity) int {
		return cmp.Or(cmp.Compare(a.issuer, b.issuer), cmp.Compare(a.sub, b.sub), cmp.Compare(a.customer, b.customer))
	})
	ctx, cancel := context.WithTimeout(context.Background(), identityTimeout)
	defer cancel()
	err := s.tx(ctx, func(tx *sql.Tx) error {
		for _, n := range batch {
			if err := s.put(ctx, tx, n); err != nil {
				return err
			}
		}
		return nil
	})
	for _, n := range batch {
		n.err = err
		close(n.done)
	}
}

func (s identityStore) put(ctx context.Context, tx *sql.Tx, n *newIdentity) error {
	now := millis(s.now())
	result, err := tx.ExecContext(ctx, s.q(`INSERT INTO {identities} (issuer, sub, customer_id, created_ms) VALUES ($1, $2, $3, $4)
		ON CONFLICT (issuer, sub) DO NOTHING`), n.issuer, n.sub, int64(n.customer), now)
	if err != nil {
		return err
	}
	made, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if made == 1 {
		n.answer = n.customer
		_, err = tx.ExecContext(ctx, s.q(`INSERT INTO {customers} (id, created_ms) VALUES ($1, $2)`), int64(n.customer), now)
		return err
	}
	return tx.QueryRowContext(ctx, s.q(`SELECT customer_id FROM {identities} WHERE issuer = $1 AND sub = $2`), n.issuer, n.sub).
		Scan((*int64)(&n.answer))
}
