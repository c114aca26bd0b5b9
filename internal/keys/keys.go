// Package keys keeps the secrets that sign and seal: ticket keys, admission and queue keys, webhook secrets, peppers.
//
// The one idea: the database holds keys only sealed. What opens them, the master key, comes from a file or the
// environment and is never in the database or a backup, so that neither alone is worth stealing. Sealing binds a key to
// its name and purpose: a sealed pepper put in the place of a ticket key does not open.
//
// Start reading at Ring, which is what the rest of the program uses; Store is the port to where keys lie, seal.go how
// they are sealed, master.go where the master key comes from.
package keys

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Purpose is what a key is for. A key is never used for two.
type Purpose string

const (
	Ticket      Purpose = "ticket"      // signs tickets
	TicketTest  Purpose = "ticket_test" // signs tickets paid in a sandbox, marked TEST
	Admission   Purpose = "admission"   // signs admission tokens
	Queue       Purpose = "queue"       // signs queue tickets, which only we check
	Webhook     Purpose = "webhook"     // signs webhooks that we send, and those of the sandbox
	Pepper      Purpose = "pepper"      // keyed hashes of identity documents
	Idempotency Purpose = "idempotency" // keyed hashes of idempotent requests
	Guard       Purpose = "guard"       // signs device cookies, proofs of work, pictures
	SignIn      Purpose = "sign_in"     // keyed hashes of sign-in codes, and what an OIDC flow carries through the browser
)

// Algorithm is how a key is used.
type Algorithm string

const (
	Ed25519    Algorithm = "Ed25519"     // the secret is the 32 byte seed
	HMACSHA256 Algorithm = "HMAC-SHA256" // the secret is 32 random bytes
)

// algorithms pins one algorithm to each purpose; it also lists the purposes.
var algorithms = map[Purpose]Algorithm{
	Ticket: Ed25519, TicketTest: Ed25519, Admission: Ed25519,
	Queue: HMACSHA256, Webhook: HMACSHA256, Pepper: HMACSHA256, Idempotency: HMACSHA256, SignIn: HMACSHA256, Guard: HMACSHA256,
}

// State is what a key may still do.
type State string

const (
	Active  State = "active"  // signs and checks; one a purpose
	Public  State = "public"  // only checks what it signed before
	Retired State = "retired" // nothing; kept so that its name is not used again
)

const (
	secretBytes = 32
	// RecordsMax bounds the store; a purpose gets a new key rarely.
	RecordsMax = 10_000
)

// A Record is a key as it is stored.
type Record struct {
	KID       string // 8 characters as NewKID makes them, unique
	Purpose   Purpose
	Algorithm Algorithm
	State     State
	CreatedAt time.Time // UTC, whole milliseconds
	Sealed    []byte    // see Seal
}

// Store is where the records lie, in the control database. keystest.Exercise is this contract as tests.
type Store interface {
	// List answers all records, in order of creation, then of kid.
	List(ctx context.Context) ([]Record, error)

	// Insert adds an active record, atomically, in place of the purpose's active key `replaces`, which becomes Public;
	// empty means that the purpose must have none. Where that is not so (another node was faster) nothing changes and the
	// answer is ErrReplaced. An error that leaves open whether it happened is allowed: the caller lists again.
	Insert(ctx context.Context, r Record, replaces string) error
}

// Errors. See Store and Ring.
var (
	ErrReplaced = errors.New("keys: the purpose's active key is not the one to be replaced")
	ErrNone     = errors.New("keys: no such key")
	ErrSealed   = errors.New("keys: cannot be opened with this master key")
)

// A Key is an opened key.
type Key struct {
	KID       string
	Purpose   Purpose
	Algorithm Algorithm
	State     State
	CreatedAt time.Time
	secret    []byte
}

// String keeps the secret out of logs.
func (k Key) String() string { return fmt.Sprintf("key %s (%s, %s)", k.KID, k.Purpose, k.State) }

// GoString keeps the secret out of logs.
func (k Key) GoString() string { return k.String() }

// Private is an Ed25519 key's private half. It panics for another algorithm, which a purpose pins.
func (k Key) Private() ed25519.PrivateKey {
	if k.Algorithm != Ed25519 {
		panic("keys: Private of a " + string(k.Algorithm) + " key")
	}
	return ed25519.NewKeyFromSeed(k.secret)
}

// PublicKey is an Ed25519 key's public half. It panics for another algorithm.
func (k Key) PublicKey() ed25519.PublicKey { return k.Private().Public().(ed25519.PublicKey) }

// Secret is a copy of an HMAC key's secret. It panics for another algorithm.
func (k Key) Secret() []byte {
	if k.Algorithm != HMACSHA256 {
		panic("keys: Secret of a " + string(k.Algorithm) + " key")
	}
	return slices.Clone(k.secret)
}

// Ring is the opened keys of a store, in memory. It is safe for concurrent use.
type Ring struct {
	store  Store
	master Master
	now    func() time.Time
	random io.Reader

	mu     sync.RWMutex
	keys   map[string]Key
	looked time.Time // when Find read the store last
}

// Options are what a Ring takes from outside.
type Options struct {
	Now    func() time.Time // Defaults to time.Now
	Random io.Reader        // source of secrets and kids. Defaults to crypto/rand
}

// Load opens all keys of a store. One that does not open is an error: rather no start than a pepper or ticket key that
// silently is another one.
func Load(ctx context.Context, store Store, master Master, o Options) (*Ring, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	r := &Ring{store: store, master: master, now: o.Now, random: o.Random}
	return r, r.Reload(ctx)
}

// Reload reads the store again, so that keys made by other nodes are known. On an error the ring stays as it was.
func (r *Ring) Reload(ctx context.Context) error {
	records, err := r.store.List(ctx)
	if err != nil {
		return fmt.Errorf("keys: list: %w", err)
	}
	if len(records) > RecordsMax {
		return fmt.Errorf("keys: %d records are more than %d", len(records), RecordsMax)
	}
	opened := make(map[string]Key, len(records))
	active := map[Purpose]string{}
	for _, rec := range records {
		k, err := r.open(rec)
		if err != nil {
			return err
		}
		if _, twice := opened[k.KID]; twice {
			return fmt.Errorf("keys: %s is stored twice", k.KID)
		}
		if other := active[k.Purpose]; k.State == Active && other != "" {
			return fmt.Errorf("keys: %s and %s are both active for %s", other, k.KID, k.Purpose)
		}
		if k.State == Active {
			active[k.Purpose] = k.KID
		}
		opened[k.KID] = k
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = opened
	return nil
}

func (r *Ring) open(rec Record) (Key, error) {
	if want, known := algorithms[rec.Purpose]; known && want != rec.Algorithm {
		return Key{}, fmt.Errorf("keys: %s is for %s, which uses %s, not %s", rec.KID, rec.Purpose, want, rec.Algorithm)
	}
	if rec.State != Active && rec.State != Public && rec.State != Retired {
		return Key{}, fmt.Errorf("keys: %s has the unknown state %q", rec.KID, rec.State)
	}
	secret, err := r.master.Open(rec.KID, rec.Purpose, rec.Sealed)
	if err != nil {
		return Key{}, err
	}
	if len(secret) != secretBytes {
		return Key{}, fmt.Errorf("keys: %s has a secret of %d bytes, not %d", rec.KID, len(secret), secretBytes)
	}
	return Key{KID: rec.KID, Purpose: rec.Purpose, Algorithm: rec.Algorithm, State: rec.State, CreatedAt: rec.CreatedAt, secret: secret}, nil
}

// Active is the key to sign with; ErrNone where the purpose has none (see EnsureActive).
func (r *Ring) Active(purpose Purpose) (Key, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, k := range r.keys {
		if k.Purpose == purpose && k.State == Active {
			return k, nil
		}
	}
	return Key{}, fmt.Errorf("%w: none is active for %s", ErrNone, purpose)
}

// Public is a key to check with, active or public, by its name; ErrNone where there is none, it is retired, or it is for
// another purpose.
func (r *Ring) Public(purpose Purpose, kid string) (Key, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	k, ok := r.keys[kid]
	if !ok || k.State == Retired || k.Purpose != purpose {
		return Key{}, fmt.Errorf("%w: %q for %s", ErrNone, kid, purpose)
	}
	return k, nil
}

// findAgainAfter is how often Find reads the store at most: anybody can make kids up.
const findAgainAfter = 5 * time.Second

// Find is Public that reads the store again where the key is not known: another node may have just made it.
func (r *Ring) Find(ctx context.Context, purpose Purpose, kid string) (Key, error) {
	k, err := r.Public(purpose, kid)
	if err == nil || !r.mayLook() {
		return k, err
	}
	if err := r.Reload(ctx); err != nil {
		return Key{}, err
	}
	return r.Public(purpose, kid)
}

func (r *Ring) mayLook() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if since := now.Sub(r.looked); since >= 0 && since < findAgainAfter {
		return false
	}
	r.looked = now
	return true
}

// Checking lists the keys of a purpose to check with, active and public, the newest first.
func (r *Ring) Checking(purpose Purpose) []Key {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var found []Key
	for _, k := range r.keys {
		if k.Purpose == purpose && k.State != Retired {
			found = append(found, k)
		}
	}
	slices.SortFunc(found, func(a, b Key) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.KID, a.KID))
	})
	return found
}

// EnsureActive is Active that makes the key where the purpose has none. When several nodes do so at once, one makes it and
// all answer it.
func (r *Ring) EnsureActive(ctx context.Context, purpose Purpose) (Key, error) {
	if k, err := r.Active(purpose); err == nil {
		return k, nil
	}
	return r.replace(ctx, purpose, "")
}

// Rotate makes a new active key; the old one goes on checking. When several nodes do so at once, one new key comes of
// it. For Pepper and Idempotency, whose old hashes cannot be made anew, it is an error.
func (r *Ring) Rotate(ctx context.Context, purpose Purpose) (Key, error) {
	if purpose == Pepper || purpose == Idempotency {
		return Key{}, fmt.Errorf("keys: %s cannot be rotated: what it hashed could not be found again", purpose)
	}
	old, err := r.Active(purpose)
	if err != nil {
		return Key{}, err
	}
	return r.replace(ctx, purpose, old.KID)
}

func (r *Ring) replace(ctx context.Context, purpose Purpose, old string) (Key, error) {
	algorithm, ok := algorithms[purpose]
	if !ok {
		return Key{}, fmt.Errorf("keys: unknown purpose %q", purpose)
	}
	secret := make([]byte, secretBytes)
	if _, err := io.ReadFull(r.random, secret); err != nil {
		return Key{}, fmt.Errorf("keys: randomness: %w", err)
	}
	kid, err := NewKID(r.random)
	if err != nil {
		return Key{}, err
	}
	sealed, err := r.master.Seal(r.random, kid, purpose, secret)
	if err != nil {
		return Key{}, err
	}
	rec := Record{KID: kid, Purpose: purpose, Algorithm: algorithm, State: Active,
		CreatedAt: r.now().UTC().Truncate(time.Millisecond), Sealed: sealed}
	if err := r.store.Insert(ctx, rec, old); err != nil && !errors.Is(err, ErrReplaced) {
		return Key{}, fmt.Errorf("keys: insert: %w", err)
	}
	// Whether ours or a faster node's: what is stored counts.
	if err := r.Reload(ctx); err != nil {
		return Key{}, err
	}
	return r.Active(purpose)
}

// kidDigits is Crockford's base32: no letters that are read as others.
const kidDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// KIDLength is the length of a kid: 8 digits of 5 bits, so that a ticket carries it in 5 bytes.
const KIDLength = 8

// NewKID makes a key's name from randomness.
func NewKID(random io.Reader) (string, error) {
	var raw [KIDLength]byte
	if _, err := io.ReadFull(random, raw[:]); err != nil {
		return "", fmt.Errorf("keys: randomness: %w", err)
	}
	for i, b := range raw {
		raw[i] = kidDigits[b&31]
	}
	return string(raw[:]), nil
}
