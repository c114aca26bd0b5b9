package control

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/sqlmigrate"
)

// People is the port of everything that is kept of people; Identities the part of it that a Verifier needs.
func (d *DB) People() identity.PeopleStore { return peopleStore{d} }

// Identities is the port of identities.
func (d *DB) Identities() identity.Store { return peopleStore{d} }

type peopleStore struct{ *DB }

func (s peopleStore) Customer(ctx context.Context, who identity.Named) (id.ID, error) {
	var customer int64
	err := s.read.QueryRowContext(ctx, s.q(`SELECT customer_id FROM {identities} WHERE issuer = $1 AND sub = $2
		AND ($3 = '' OR EXISTS (SELECT 1 FROM {identities} WHERE issuer = 'email' AND sub = $3))`), who.Issuer, who.Sub, string(address(who))).Scan(&customer)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, identity.ErrUnknown
	}
	return id.ID(customer), wrap("reading an identity", err)
}

// address is the address beside (issuer, sub), "" where there is none, or it is the same.
func address(who identity.Named) identity.Email {
	if who.Issuer == identity.EmailIssuer {
		return ""
	}
	return who.Email
}

// Of making new customers.
const (
	identityBatchMax   = 256              // in one transaction
	identityTimeout    = 10 * time.Second // for it
	identityWaitingMax = 16_384           // for their transaction; more are told to come back
)

var errManyWait = &fault.Error{Code: fault.Busy, Detail: "very many people are signing in for the first time right now", RetryAfter: 5 * time.Second}

// An identityQueue gathers those who sign in for the first time: in the minute before a sale everybody does, and one
// transaction for each would be the bottleneck. Whoever finds nobody at work does the work for all who wait.
type identityQueue struct {
	mu      sync.Mutex
	working bool
	waiting []*newIdentity
}

type newIdentity struct {
	who      identity.Named
	customer id.ID
	done     chan struct{}
	answer   id.ID
	err      error
}

func (s peopleStore) PutCustomer(ctx context.Context, who identity.Named, candidate id.ID) (id.ID, error) {
	n := &newIdentity{who: who, customer: candidate, done: make(chan struct{})}
	queue := &s.DB.identities
	queue.mu.Lock()
	if len(queue.waiting) >= identityWaitingMax {
		queue.mu.Unlock()
		return 0, errManyWait
	}
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

func (s peopleStore) work() {
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

func (s peopleStore) commit(batch []*newIdentity) {
	// In one order on all nodes, so that they seldom wait for each other in a circle. Addresses and issuers are two rows,
	// so that a circle is still possible: the database breaks it, and the batch is done again.
	slices.SortFunc(batch, func(a, b *newIdentity) int {
		return cmp.Or(cmp.Compare(a.who.Email, b.who.Email), cmp.Compare(a.who.Issuer, b.who.Issuer),
			cmp.Compare(a.who.Sub, b.who.Sub), cmp.Compare(a.customer, b.customer))
	})
	ctx, cancel := context.WithTimeout(context.Background(), identityTimeout)
	defer cancel()
	err := s.again(ctx, func(tx *sql.Tx) error {
		for _, n := range batch {
			var err error
			if n.answer, err = s.stand(ctx, tx, n.who, n.customer); err != nil {
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

// contestsMax is how often a transaction is done again that others were in the way of.
const contestsMax = 10

// errMeanwhile says that what a transaction read has changed before it could lock it.
var errMeanwhile = errors.New("changed meanwhile")

// again is tx, done again where others were in the way.
func (d *DB) again(ctx context.Context, f func(*sql.Tx) error) error {
	var err error
	for range contestsMax {
		if err = d.tx(ctx, f); err == nil || !contested(err) && !errors.Is(err, errMeanwhile) {
			return err
		}
	}
	return err
}

// stand makes a name stand for a customer; see identity.Store. The address comes first, always: of all who bring it at
// once, one makes it, and the others wait for that one and see it.
func (s peopleStore) stand(ctx context.Context, tx *sql.Tx, who identity.Named, candidate id.ID) (id.ID, error) {
	customer, email := candidate, address(who)
	madeEmail := false
	var err error
	if email != "" {
		if customer, madeEmail, err = s.stake(ctx, tx, identity.EmailIssuer, string(email), candidate); err != nil {
			return 0, err
		}
	}
	holder, made, err := s.stake(ctx, tx, who.Issuer, who.Sub, customer)
	if err != nil {
		return 0, err
	}
	if madeEmail && holder != customer { // the token's customer was here before the address
		_, err = tx.ExecContext(ctx, s.q(`UPDATE {identities} SET customer_id = $1 WHERE issuer = 'email' AND sub = $2`), int64(holder), string(email))
		if err != nil {
			return 0, err
		}
	}
	if holder == candidate && (made && email == "" || madeEmail) {
		_, err = tx.ExecContext(ctx, s.q(`INSERT INTO {customers} (id, created_ms) VALUES ($1, $2)`), int64(candidate), millis(s.now()))
		return holder, err
	}
	if made || madeEmail {
		err = s.lockCustomer(ctx, tx, holder)
		if errors.Is(err, identity.ErrErased) {
			err = errMeanwhile // erased after its identity was read: that one is gone now
		}
	}
	return holder, err
}

// stake makes one identity stand for a customer unless it stands for one, and answers for which.
func (s peopleStore) stake(ctx context.Context, tx *sql.Tx, issuer, sub string, customer id.ID) (holder id.ID, made bool, err error) {
	result, err := tx.ExecContext(ctx, s.q(`INSERT INTO {identities} (issuer, sub, customer_id, created_ms) VALUES ($1, $2, $3, $4)
		ON CONFLICT (issuer, sub) DO NOTHING`), issuer, sub, int64(customer), millis(s.now()))
	if err != nil {
		return 0, false, err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return customer, true, err
	}
	err = tx.QueryRowContext(ctx, s.q(`SELECT customer_id FROM {identities} WHERE issuer = $1 AND sub = $2`), issuer, sub).Scan((*int64)(&holder))
	if errors.Is(err, sql.ErrNoRows) {
		err = errMeanwhile // erased between the two statements
	}
	return holder, false, err
}

// lockCustomer keeps a customer from being erased until the transaction ends. ErrUnknown; ErrErased.
func (s peopleStore) lockCustomer(ctx context.Context, tx *sql.Tx, customer id.ID) error {
	var erased int64
	err := tx.QueryRowContext(ctx, s.q(`SELECT erased_ms FROM {customers} WHERE id = $1`+s.forUpdate()), int64(customer)).Scan(&erased)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return identity.ErrUnknown
	case err == nil && erased != 0:
		return identity.ErrErased
	}
	return err
}

// forUpdate locks the rows that a query reads. SQLite's transactions have the whole file already.
func (d *DB) forUpdate() string {
	if d.dialect == sqlmigrate.Postgres {
		return " FOR UPDATE"
	}
	return ""
}

func (s peopleStore) Profile(ctx context.Context, customer id.ID) (identity.Profile, error) {
	all, err := rows(ctx, s.DB, func(scan func(...any) error) (p identity.Profile, err error) {
		var created, erased int64
		err = scan((*int64)(&p.Customer), &p.Name, &p.Locale, &created, &erased)
		p.Created = time.UnixMilli(created).UTC()
		if erased != 0 {
			p.Erased = time.UnixMilli(erased).UTC()
		}
		return p, err
	}, `SELECT id, name, locale, created_ms, erased_ms FROM {customers} WHERE id = $1`, int64(customer))
	if err != nil {
		return identity.Profile{}, wrap("reading a profile", err)
	}
	if len(all) == 0 {
		return identity.Profile{}, identity.ErrUnknown
	}
	all[0].Emails, err = rows(ctx, s.DB, scanEmail,
		`SELECT sub FROM {identities} WHERE customer_id = $1 AND issuer = 'email' ORDER BY created_ms, sub`, int64(customer))
	return all[0], wrap("reading addresses", err)
}

func scanEmail(scan func(...any) error) (e identity.Email, err error) {
	err = scan((*string)(&e))
	return e, err
}

func (s peopleStore) SetProfile(ctx context.Context, customer id.ID, name, locale string) error {
	err := s.tx(ctx, func(tx *sql.Tx) error {
		if err := s.lockCustomer(ctx, tx, customer); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, s.q(`UPDATE {customers} SET name = $2, locale = $3 WHERE id = $1`), int64(customer), name, locale)
		return err
	})
	return wrap("storing a profile", err)
}
