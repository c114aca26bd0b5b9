// Package app builds the whole program from its settings: it is the only place that knows every part.
//
// The one idea: parts are opened in the order in which they need each other, each leaves its way of closing behind, and
// closing goes the other way round. Whatever runs in the background is started by Run and has ended when Run returns.
//
// Start reading at Open, then Run.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/booking"
	"onsale/internal/catalog"
	"onsale/internal/catalog/search"
	"onsale/internal/control"
	"onsale/internal/guard"
	"onsale/internal/guard/picture"
	"onsale/internal/httpapi"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/inventory"
	"onsale/internal/keys"
	"onsale/internal/ledger"
	"onsale/internal/ledger/postgres"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/outbox/mail"
	"onsale/internal/outbox/mail/mailbox"
	"onsale/internal/outbox/webhook"
	"onsale/internal/payment"
	"onsale/internal/presale"
	"onsale/internal/redisclient"
	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/beacon"
)

// Names of what lies in a data folder.
const (
	ShardFile     = "shard.db"
	controlFile   = "control.db"
	SandboxFile   = "sandbox.db"
	masterFile    = "master.key"
	nodeTTL       = time.Minute
	healEvery     = 15 * time.Second
	recoverEvery  = time.Second
	compareEvery  = 30 * time.Second
	loadEvery     = 5 * time.Second
	searchEvery   = time.Second // how late a change of the catalog is found at most
	loadAhead     = time.Hour   // events are loaded this long before their sale opens (B4)
	shardNumber   = 0
	stopPartsTime = 10 * time.Second
)

// A Store is where a shard's ledger lies, whichever database keeps it.
type Store interface {
	ledger.Ledger
	ledger.Webhooks
}

// An App is the whole program, opened. Its parts are there for commands and tests.
type App struct {
	Settings  Settings
	Log       *slog.Logger
	Control   *control.DB
	Keys      *keys.Ring
	Store     Store
	Batcher   *ledger.Batcher
	Catalog   *catalog.Service
	Search    *search.Index
	Inventory *inventory.Service
	Identity  *identity.Verifier
	People    *identity.Service   // nil where the app was not opened for serving
	Throwaway *identity.Throwaway // the demo's own issuer, nil otherwise
	Provider  payment.Provider    // nil where the app was not opened for serving
	Booking   *booking.Service
	Rooms     *waitingroom.Service // and the parts below it: nil where the app was not opened for serving
	Gate      *guard.Gate
	Presale   *presale.Service
	Waitlist  *booking.Waitlist
	NewID     func(shard int) (id.ID, error)

	joins    waitingroom.Log
	beacon   *beacon.Beacon
	blocks   *guard.Blocks
	evidence *guard.Recorder
	pictures *picture.Check // nil: none are shown

	Mailbox *mailbox.Mailbox // where a demo's mails go, nil otherwise

	stopped   chan id.ID    // events whose invariants were found broken, for their owners
	desk      *mail.Desk    // nil: no mail is sent
	mails     *mail.Handler // with it
	providers map[string]httpapi.OIDC

	hooks      *webhook.Handler // what organizers' own systems are told, by
	dispatcher *webhook.Dispatcher
	endpoints  *webhook.Service

	shared  *shared // nil until common makes it
	node    *control.Node
	relay   *relay
	closers []func(context.Context) error // in the order of opening
	metrics *metrics
	ready   atomic.Bool
	loading sync.Mutex
	loaded  map[id.ID]int64 // events loaded, and the version of their rules
}

// Open opens the parts for a command or a server: everything but what serves (Serve). The data folder is locked: another
// process with it is refused (F1).
func Open(ctx context.Context, s Settings) (*App, error) {
	a := &App{Settings: s, Log: s.Logger, loaded: map[id.ID]int64{}, stopped: make(chan id.ID, 64)}
	if a.Log == nil {
		a.Log = slog.Default()
	}
	if err := a.open(ctx); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPartsTime)
		defer cancel()
		return nil, errors.Join(err, a.Close(stop))
	}
	return a, nil
}

func (a *App) open(ctx context.Context) error {
	for _, part := range []func(context.Context) error{a.openFolder, a.openControl, a.openLedger, a.openCatalog} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the parts, last opened first. It drains the batcher: what was taken is answered.
func (a *App) Close(ctx context.Context) error {
	var err error
	for len(a.closers) > 0 {
		last := len(a.closers) - 1
		err = errors.Join(err, a.closers[last](ctx))
		a.closers = a.closers[:last]
	}
	return err
}

func (a *App) onClose(f func(context.Context) error) { a.closers = append(a.closers, f) }

func (a *App) path(name string) string { return filepath.Join(a.Settings.Data, name) }

func (a *App) openFolder(context.Context) error {
	if err := os.MkdirAll(a.Settings.Data, 0o700); err != nil {
		return fmt.Errorf("the data folder: %w", err)
	}
	unlock, err := lockFolder(a.Settings.Data)
	if err != nil {
		return err
	}
	a.onClose(func(context.Context) error { return unlock() })
	if err := a.refuseHalfRestored(); err != nil {
		return err
	}
	return a.closeToOthers()
}

// closeToOthers keeps other users of the machine from reading names and addresses, whatever the folder's own mode is: SQLite
// makes files that all may read. Its logs have the mode of their database.
func (a *App) closeToOthers() error {
	if a.Settings.Ledger == Postgres {
		return nil
	}
	for _, name := range []string{controlFile, ShardFile} {
		f, err := os.OpenFile(a.path(name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		for _, end := range []string{"", "-wal", "-shm"} {
			info, err := os.Stat(a.path(name + end))
			if err != nil { // not there
				continue
			}
			if mode := info.Mode().Perm(); mode&0o007 != 0 { // of an earlier version
				if err := os.Chmod(a.path(name+end), mode&^0o007); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (a *App) openControl(ctx context.Context) error {
	var err error
	switch a.Settings.Ledger {
	case Postgres:
		a.Control, err = control.OpenPostgres(ctx, control.PostgresOptions{URL: a.Settings.PostgresURL, DirectURL: a.Settings.PostgresDirectURL})
	default:
		a.Control, err = control.OpenSQLite(ctx, a.path(controlFile))
	}
	if err != nil {
		return err
	}
	a.onClose(func(context.Context) error { return a.Control.Close() })
	if err := a.refuseHalfRestoredControl(ctx); err != nil {
		return err
	}
	if a.node, err = a.Control.ClaimNode(ctx, holder(), nodeTTL); err != nil {
		return err
	}
	a.onClose(func(ctx context.Context) error { return a.node.Release(ctx) })
	a.NewID = a.node.Generator(time.Now).Next
	return a.openKeys(ctx)
}

// holder names this process to others who look at a lease.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

func (a *App) openKeys(ctx context.Context) error {
	master, err := a.master()
	if err != nil {
		return err
	}
	if a.Keys, err = keys.Load(ctx, a.Control.Keys(), master, keys.Options{}); err != nil {
		return err
	}
	for _, purpose := range []keys.Purpose{keys.Ticket, keys.TicketTest, keys.Webhook, keys.Idempotency, keys.Guard} {
		if _, err := a.Keys.EnsureActive(ctx, purpose); err != nil {
			return fmt.Errorf("key for %s: %w", purpose, err)
		}
	}
	return nil
}

func (a *App) master() (keys.Master, error) {
	switch {
	case a.Settings.MasterKey != "":
		return keys.ParseMaster("the environment", a.Settings.MasterKey)
	case a.Settings.MasterKeyFile != "":
		return keys.LoadMaster(a.Settings.MasterKeyFile)
	}
	return keys.LoadOrCreateMaster(a.path(masterFile))
}

func (a *App) openLedger(ctx context.Context) error {
	var err error
	switch a.Settings.Ledger {
	case Postgres:
		a.Store, err = a.openPostgres(ctx)
	default:
		a.Store, err = sqlite.Open(ctx, a.path(ShardFile), sqlite.Options{})
	}
	if err != nil {
		return err
	}
	a.onClose(func(context.Context) error { return a.Store.Close() })
	a.metrics = newMetrics()
	a.Batcher = ledger.NewBatcher(a.Store, ledger.BatcherOptions{
		QueueMax: a.Settings.QueueMax, Logger: a.Log, OnBatch: a.metrics.batch,
		OnInvariant: func(e *ledger.InvariantError) {
			a.metrics.alerts.WithLabelValues("invariant").Inc()
			select {
			case a.stopped <- e.Event:
			default: // so many at once that owners hear of enough
			}
		},
	})
	a.onClose(a.Batcher.Close)
	return nil
}

func (a *App) openPostgres(ctx context.Context) (Store, error) {
	l, err := postgres.Open(ctx, postgres.Options{
		URL: a.Settings.PostgresURL, DirectURL: a.Settings.PostgresDirectURL, Shard: shardNumber, Logger: a.Log,
	})
	if err != nil {
		return nil, err
	}
	if err := l.CheckDurability(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (a *App) openCatalog(context.Context) error {
	var err error
	if a.Search, err = search.New(search.Options{Store: a.Control.Catalog(), Log: a.Log, Left: a.left}); err != nil {
		return err
	}
	a.onClose(func(context.Context) error { return a.Search.Close() })
	a.Catalog = catalog.New(catalog.Options{Store: a.Control.Catalog(), Ledger: a.Batcher, NewID: a.NewID, Log: a.Log, Search: a.Search})
	return nil
}

// left is how an event stands on this node, as far as it has heard.
func (a *App) left(event id.ID) (state ledger.EventState, left int, heard bool) {
	if a.Inventory == nil {
		return 0, 0, false
	}
	b := a.Inventory.Board(event)
	if b == nil {
		return 0, 0, false
	}
	if state, heard = b.EventState(); heard {
		seats, places := b.Left()
		left = seats + places
	}
	return state, left, heard
}

// Settings say what the program is made of. config.Config turns into it.
type Settings struct {
	Data              string
	Ledger            LedgerKind
	PostgresURL       string
	PostgresDirectURL string
	Redis             redisclient.Options // no addresses: what nodes would share is in this process
	MasterKey         string              // from the environment; else MasterKeyFile; else a file in Data, made where missing
	MasterKeyFile     string

	Listen         string        // "127.0.0.1:8080"
	InternalListen string        // for /readyz and /metrics; "" for none
	Demo           bool          // sandbox, demo content, throw-away issuer
	DemoSeats      int           // of the demo's arena. Defaults to DemoSeats
	DemoHoldTTL    time.Duration // of the demo's event. Defaults to 10 min
	// DemoPaymentWindow is how long a hold of the demo's event lasts at least once it is being paid. Defaults to 5 min
	DemoPaymentWindow time.Duration
	DemoRoom          DemoRoom // of the demo's arena
	Throwaway         bool     // also take tokens of the throw-away issuer; always so in a demo
	Issuers           []identity.Issuer
	Providers         []SignInProvider // need PublicURL
	Mail              MailSettings
	WebhooksAllowed   []netip.Prefix // private networks to which webhooks may go all the same (E7)
	PublicURL         string         // the origin under which browsers come, "https://tickets.example"; "" is not known
	TrustedProxies    []netip.Prefix // whose word on where a request comes from is believed
	Rates             guard.Settings // the zero value limits nothing
	Payment           PaymentSettings
	Beacons           []beacon.Source // where public values of draws come from
	Person            PersonSettings
	ProofDifficulty   int // of a proof of work in quiet times; 0 is the gate's own. Always 1 with a throw-away issuer
	JoinQueueMax      int // joins that may wait for the log. Defaults to waitingroom.JoinQueueMax
	QueueMax          int
	SubscribersMax    int
	ShutdownGrace     time.Duration // how long requests under way may take to end. Defaults to 15 s
	ReadTimeout       time.Duration // of a request. Defaults to 15 s
	IdleTimeout       time.Duration // of a connection. Defaults to 60 s
	NoPromptRelease   bool          // for tests: nothing's correctness depends on it
	NoSweep           bool
	Version           string
	Logger            *slog.Logger
	restore           bool // opened by Restore, which alone may use what is half restored
	// Started is told the addresses once everything listens and is ready; may be nil.
	Started func(Addresses)
}

// LedgerKind is which database keeps the ledger.
type LedgerKind string

// The kinds of ledgers.
const (
	SQLite   LedgerKind = "sqlite"
	Postgres LedgerKind = "postgres"
)

// Addresses are where the program listens.
type Addresses struct {
	Public, Internal, Sandbox net.Addr
}
