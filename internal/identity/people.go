package identity

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"onsale/internal/cache"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/keys"
)

// Keyring is what a Service needs of keys.Ring.
type Keyring interface {
	EnsureActive(ctx context.Context, purpose keys.Purpose) (keys.Key, error)
	Active(purpose keys.Purpose) (keys.Key, error)
	Find(ctx context.Context, purpose keys.Purpose, kid string) (keys.Key, error)
}

// Settings are the operator's choices.
type Settings struct {
	SignInFor    time.Duration // a sign-in's life, whatever happens. Defaults to 30 days
	IdleFor      time.Duration // its life without being used. Defaults to 7 days
	MailQueueMax int           // mails waiting to be sent on this node; beyond it asking is answered busy. Defaults to 10,000
	MailWorkers  int           // mails being sent at once. Defaults to 16
}

// Defaults and fixed limits (E2).
const (
	signInFor     = 30 * 24 * time.Hour
	idleFor       = 7 * 24 * time.Hour
	mailQueueMax  = 10_000
	mailWorkers   = 16
	SignInsMax    = 100 // a customer's; beyond it the oldest ends
	signInsCached = 200_000
	// endedWithin is how long another node may still believe a sign-in that was ended on this one.
	endedWithin = 30 * time.Second
	// roleWithin is the same of a role, of which rolesCached are remembered: as short as a request takes anyway.
	roleWithin  = 100 * time.Millisecond
	rolesCached = 100_000

	NameRunesMax = 200
)

// ServiceOptions are what a Service is made of.
type ServiceOptions struct {
	Store     PeopleStore
	Keys      Keyring
	Mail      Sender
	NewID     func(shard int) (id.ID, error)
	Documents DocumentVerifier // an outside service asked about documents; nil: none
	Settings  Settings
	Now       func() time.Time // defaults to time.Now
	Log       *slog.Logger     // defaults to slog.Default
}

// A Service is everything about people but tokens (Verifier). Its methods may be called from many goroutines.
type Service struct {
	o       ServiceOptions
	pepper  []byte
	mails   *mailQueue
	signIns *cache.Cache[Hash, SignIn]
	roles   *cache.Cache[member, Role]

	seenMu sync.Mutex
	seen   map[Hash]time.Time // to be stored
}

// NewService makes a service, and the keys that it needs where there are none yet.
func NewService(ctx context.Context, o ServiceOptions) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	set := &o.Settings
	for _, d := range []struct {
		value  *time.Duration
		choice time.Duration
	}{{&set.SignInFor, signInFor}, {&set.IdleFor, idleFor}} {
		if *d.value == 0 {
			*d.value = d.choice
		}
	}
	if set.MailQueueMax == 0 {
		set.MailQueueMax = mailQueueMax
	}
	if set.MailWorkers == 0 {
		set.MailWorkers = mailWorkers
	}
	if set.SignInFor < 0 || set.IdleFor < 0 || set.MailQueueMax < 0 || set.MailWorkers < 0 {
		return nil, errors.New("identity: no time and no count of the settings may be negative")
	}
	if _, err := o.Keys.EnsureActive(ctx, keys.SignIn); err != nil {
		return nil, err
	}
	pepper, err := o.Keys.EnsureActive(ctx, keys.Pepper)
	if err != nil {
		return nil, err
	}
	return &Service{
		o: o, pepper: pepper.Secret(), mails: newMailQueue(set.MailQueueMax, o.Now, o.Log), seen: map[Hash]time.Time{},
		signIns: cache.New[Hash, SignIn](cache.Options{
			CountMax: signInsCached, FreshFor: endedWithin, Now: o.Now, RetryAfter: retryAfter,
			UseOld: func(err error) bool { return !errors.Is(err, ErrUnknown) }, // the database is away: who is signed in goes on
		}),
		roles: cache.New[member, Role](cache.Options{
			CountMax: rolesCached, FreshFor: roleWithin, Now: o.Now, RetryAfter: retryAfter, UseOld: func(error) bool { return true }, // likewise
		}),
	}, nil
}

// Run sends mails, stores when sign-ins were seen and tidies, until ctx ends; then it sends for a moment what still waits.
func (s *Service) Run(ctx context.Context) {
	var work sync.WaitGroup
	for range s.o.Settings.MailWorkers {
		work.Go(func() { s.mails.work(ctx) })
	}
	work.Go(func() { s.tidy(ctx) })
	work.Wait()
}

const (
	flushEvery   = 10 * time.Second // when sign-ins were seen
	pruneEvery   = 10 * time.Minute
	pruneMax     = 1000
	flushMax     = 500 // of one transaction
	flushTimeout = 10 * time.Second
)

func (s *Service) tidy(ctx context.Context) {
	flush, prune := time.NewTicker(flushEvery), time.NewTicker(pruneEvery)
	defer flush.Stop()
	defer prune.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
			defer cancel()
			s.flushSeen(last)
			return
		case <-flush.C:
			s.flushSeen(ctx)
		case <-prune.C:
			if err := s.Prune(ctx); err != nil && ctx.Err() == nil {
				s.o.Log.WarnContext(ctx, "old sign-ins and documents could not be removed; it is tried again", "error", err)
			}
		}
	}
}

// Prune removes what is over: codes, sign-ins, invitations, and the documents of events that are long past.
func (s *Service) Prune(ctx context.Context) error {
	now := s.o.Now()
	for {
		n, err := s.o.Store.PruneSignIns(ctx, now, now.Add(-mailWindow), now.Add(-s.o.Settings.IdleFor), pruneMax)
		if err != nil {
			return err
		}
		if n < pruneMax {
			break
		}
	}
	_, err := s.PruneDocuments(ctx)
	return err
}

// Profile is what is known of a customer. Fault: not_found.
func (s *Service) Profile(ctx context.Context, customer id.ID) (Profile, error) {
	p, err := s.o.Store.Profile(ctx, customer)
	return p, known(err, "there is no such customer")
}

// SetProfile changes a customer's name and language; "" takes either back. Faults: invalid; not_found (also where they
// were erased).
func (s *Service) SetProfile(ctx context.Context, customer id.ID, name, locale string) error {
	name = strings.TrimSpace(name)
	if bad := checkName(name); bad != "" && name != "" {
		return &fault.Error{Code: fault.Invalid, Field: "name", Detail: "the name " + bad}
	}
	if locale != "" && !slices.Contains(Locales, locale) {
		return &fault.Error{Code: fault.Invalid, Field: "locale", Detail: "the language must be one of " + strings.Join(Locales, ", ")}
	}
	return known(s.o.Store.SetProfile(ctx, customer, name, locale), "there is no such customer")
}

// CustomerOf is the customer of a verified address. Fault: not_found.
func (s *Service) CustomerOf(ctx context.Context, email Email) (id.ID, error) {
	customer, err := s.o.Store.Customer(ctx, emailName(email))
	return customer, known(err, "nobody has signed in with this address")
}

// EnsureCustomer is the customer of an address, made where there is none: for the operator, who knows whose it is. It opens
// nothing: to be that customer one has to read the address's mail.
func (s *Service) EnsureCustomer(ctx context.Context, email Email) (id.ID, error) {
	candidate, err := s.o.NewID(0)
	if err != nil {
		return 0, err
	}
	return s.o.Store.PutCustomer(ctx, emailName(email), candidate)
}

func emailName(email Email) Named {
	return Named{Issuer: EmailIssuer, Sub: string(email), Email: email}
}

// known makes a fault of what a store does not know.
func known(err error, detail string) error {
	if errors.Is(err, ErrUnknown) || errors.Is(err, ErrErased) {
		return fault.New(fault.NotFound, "%s", detail)
	}
	return err
}

// checkName says what is wrong with a person's name.
func checkName(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "is missing"
	case !utf8.ValidString(name), strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Co, r) }):
		return "is not plain text"
	case utf8.RuneCountInString(name) > NameRunesMax:
		return "is too long"
	}
	return ""
}

// locale is one of Locales, whatever was asked for.
func locale(wish string) string {
	for _, l := range Locales {
		if strings.EqualFold(l, wish) {
			return l
		}
	}
	return Locales[0]
}
