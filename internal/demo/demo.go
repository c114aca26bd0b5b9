// Package demo sells a whole arena to simulated buyers over HTTP and proves afterwards that nothing was sold twice and
// nothing that was promised was lost, whatever was killed on the way.
//
// The one idea: the buyers are outside. The server is a child process; what buyers are told is written into a journal of
// their own before their next step; at the end (and after each kill) the journal is compared with the ledger's database
// by queries of our own, and the audit recomputes the invariants. So neither the server's word nor its memory counts.
//
// Start reading at Run, then play (buyer.go) for what a buyer does, cast (cast.go) for who comes, afterwards (after.go) for
// what is done with tickets later, and check (check.go) for what must be true of the journal.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/audit"
	"onsale/internal/identity"
	"onsale/internal/payment/sandbox"
	"onsale/internal/pgserver"
)

// Options say what is played. All are required unless said otherwise.
type Options struct {
	Program string // the onsale executable
	Data    string // the data folder; empty, made before
	Shard   string // the ledger's file in it
	Books   string // the sandbox's file in it
	Joins   string // the folder in it where the log of joins is, without PostgreSQL
	// Postgres is the server to keep the ledger on, and URL a database on it. Defaults to nil: SQLite.
	Postgres    *pgserver.Server
	PostgresURL string

	Listen  string // Defaults to a free port on loopback
	Seats   int
	Buyers  int
	Kills   int
	Seed    uint64
	AtOnce  int           // buyers at the counter at once
	HoldTTL time.Duration // how long a hold lasts
	// PaymentWindow is how long a hold lasts at least once a payment has begun. Defaults to 15 s
	PaymentWindow time.Duration

	Out      io.Writer
	Terminal bool // Out can be drawn upon
}

// ErrBroken says that something was not as it must be. The report has told what.
var ErrBroken = errors.New("demo: broken")

// How long things may take.
const (
	intakeMax     = 3*time.Minute + 20*time.Second // then no more buyers are let in; downtime by kills comes on top
	drainMax      = 80 * time.Second
	lateMargin    = 5 * time.Second // late money comes so long after its hold has run out
	paceMargin    = 6 * time.Second
	turnLasts     = 5 * time.Second // in which somebody called may claim
	rateMost      = 400             // people let in each second at most, which two cores bear with everything on them
	rateLeast     = 20
	activeSeconds = 6   // so many seconds of R may be inside at once
	seatsPerBuyer = 1.9 // that are bought or held at last, by the shares of cast.go
	wrongsListed  = 20
)

// late is when late money comes: when the hold that it was for has run out for certain.
func (o *Options) late() time.Duration { return max(o.HoldTTL, o.PaymentWindow) + lateMargin }

// rate is R: a small house is sold slowly enough for late money to find seats.
func (o *Options) rate() int {
	gentle := o.late() + paceMargin
	return min(max(int(float64(o.Seats)/seatsPerBuyer/gentle.Seconds()), rateLeast), rateMost)
}

func (o *Options) kind() string {
	if o.Postgres != nil {
		return "postgres"
	}
	return sqliteKind
}

// A sale is a run of the demo.
type sale struct {
	Options
	server  *server
	house   *house // the arena
	named   *house // the hall for which attendees are named
	staff   *staff
	secrets *secrets
	client  *client
	journal *journal
	line    *line
	figures *figures
	store   *store
	mint    func(name string) (string, error)
	screen  *screen

	turnstile  *turnstile
	presale    *presale
	present    sync.WaitGroup // who waits in line or is inside
	joinedLine atomic.Int64   // numbers taken
	changed    []changedMind  // protected by mu
	hoping     sync.WaitGroup // who has left a wish
	noHope     chan struct{}  // closed when nothing comes back any more
	wishes     atomic.Int64
	done       atomic.Int64 // buyers played
	turnedAway int
	lineClosed bool
	hurried    bool  // turns were made shorter
	doorsShut  error // why the doors could not be opened
	began      time.Time
	downtime   atomic.Int64 // ns, by kills
	waiting    sync.WaitGroup
	kills      []killed
	verdict    audit.Report
	stored     *stored
	faults     map[sandbox.Fault]int64
	sold       houseState
	took       time.Duration // from the first buyer until nothing was in flight

	mu         sync.Mutex
	wrongs     []string
	wrongCount int
}

// wrong writes down something that no rule allows.
func (s *sale) wrong(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wrongCount++; len(s.wrongs) < wrongsListed {
		s.wrongs = append(s.wrongs, fmt.Sprintf(format, args...))
	}
}

// fork makes a source of chance for somebody who goes on beside.
func fork(random *rand.Rand) *rand.Rand {
	return rand.New(rand.NewPCG(random.Uint64(), random.Uint64()))
}

// Run plays the demo and prints what happens and the report. It returns ErrBroken where an invariant is broken, the
// journal contradicts the ledger, or a behaviour was never shown; another error where it could not be played.
func Run(ctx context.Context, o Options) (err error) {
	if o.PaymentWindow == 0 {
		o.PaymentWindow = 15 * time.Second
	}
	buyers, err := cast(o.Seed, o.Buyers, true)
	if err != nil {
		return err
	}
	everybody := &crowd{buyers: buyers, noShows: castNoShows(o.Seed, o.Buyers), bots: castBots(o.Seed, o.Buyers)}
	s := &sale{Options: o, figures: newFigures(), secrets: newSecrets(), screen: newScreen(o.Out, o.Terminal), turnstile: newTurnstile(), noHope: make(chan struct{})}
	defer s.screen.end()
	if err := s.open(ctx); err != nil {
		return errors.Join(err, s.close())
	}
	err = s.perform(ctx, everybody)
	if err == nil {
		err = s.judge(ctx)
	}
	if err = errors.Join(err, s.close()); err != nil {
		return err
	}
	s.screen.end()
	return s.report()
}

// open starts the server and looks at what it sells.
func (s *sale) open(ctx context.Context) error {
	if err := s.prepareServer(); err != nil {
		return err
	}
	s.screen.say("Onsale demo: %s seats, %s buyers, ledger on %s, seed %d", thousands(int64(s.Seats)), thousands(int64(s.Buyers)), s.kind(), s.Seed)
	took, err := s.server.start(ctx)
	if err != nil {
		return err
	}
	s.screen.say("The server (process %d) is at http://%s, ready after %.1f s.", s.server.pid(), s.server.public, took.Seconds())
	s.client = newClient("http://"+s.server.public, 2*s.AtOnce, s.figures)
	random := rand.New(rand.NewPCG(s.Seed, 0))
	if s.house, err = openHouse(ctx, s.client, false, random); err != nil {
		return err
	}
	if s.named, err = openHouse(ctx, s.client, true, random); err != nil {
		return err
	}
	s.line = newLine(s.client, s.house.event.ID)
	issuer, err := identity.LoadThrowaway(s.Data)
	if err != nil {
		return err
	}
	s.mint = func(name string) (string, error) { return issuer.Mint(name, time.Now(), time.Hour) }
	if s.journal, err = openJournal(filepath.Join(s.Data, "demo-journal.jsonl")); err != nil {
		return err
	}
	if s.staff, err = s.hire(ctx, random); err != nil {
		return err
	}
	if s.presale, err = s.sellCodes(ctx, random); err != nil {
		return err
	}
	where := s.Shard
	if s.Postgres != nil {
		where = s.PostgresURL
	}
	s.store, err = openStore(s.kind(), where)
	return err
}

// prepareServer decides how the program is started, now and after each kill.
func (s *sale) prepareServer() error {
	public, err := s.Listen, error(nil)
	if public == "" {
		if public, err = freeAddress(); err != nil {
			return err
		}
	}
	internal, err := freeAddress()
	if err != nil {
		return err
	}
	args := []string{
		"serve", "--demo", "--data", s.Data, "--ledger", s.kind(), "--listen", public, "--metrics-listen", internal,
		"--demo-seats", fmt.Sprint(s.Seats), "--demo-hold-ttl", s.HoldTTL.String(),
		"--demo-room-rate", fmt.Sprint(s.rate()), "--demo-room-active", fmt.Sprint(s.rate() * activeSeconds), "--demo-room-turn", turnLasts.String(),
		"--demo-payment-window", s.PaymentWindow.String(), "--demo-late", s.late().String(),
		"--set", "payment.mode=authorize", "--set", "payment.attempt_timeout=8s", "--set", "payment.recover_after=5s",
		"--set", "shutdown_grace=10s", "--set", "log.level=info",
	}
	env := withoutOurs(os.Environ())
	if s.Postgres != nil {
		env = append(env, "ONSALE_LEDGER_URL="+s.PostgresURL) // not among the arguments: it may hold a password
	}
	s.server = &server{program: s.Program, args: args, env: env, log: filepath.Join(s.Data, "server.log"), public: public, internal: internal}
	return nil
}

// withoutOurs leaves out settings of onsale in the environment: the demo's server takes none.
func withoutOurs(environ []string) []string {
	var kept []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "ONSALE_") {
			kept = append(kept, v)
		}
	}
	return kept
}

// close ends what open began.
func (s *sale) close() error {
	var err error
	if s.server != nil {
		err = s.server.stop()
	}
	if s.client != nil {
		s.client.close()
	}
	if s.journal != nil {
		err = errors.Join(err, s.journal.close())
	}
	if s.store != nil {
		err = errors.Join(err, s.store.close())
	}
	return err
}

// perform lets the buyers in and waits until they are gone and nothing is under way any more.
func (s *sale) perform(ctx context.Context, c *crowd) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.began = time.Now()
	s.figures.start = s.began
	beside, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer func() { stop(); work.Wait() }()
	work.Go(func() { s.house.watch(beside) })
	work.Go(func() { s.line.watch(beside) })
	work.Go(func() { s.screen.watch(beside, s) })
	work.Go(func() { s.guard(beside, cancel) })
	killing := make(chan error, 1)
	early, let := s.expected(c)
	go func() {
		err := s.killAll(ctx, early, let)
		if err != nil {
			cancel(err)
		}
		killing <- err
	}()

	s.playAll(ctx, c)
	if err := errors.Join(<-killing, s.doorsShut); err != nil {
		return err
	}
	if err := s.lastChances(ctx); err != nil {
		return err
	}
	s.waiting.Wait()
	if err := s.drain(ctx); err != nil {
		return err
	}
	s.stillSignedIn(ctx)
	s.took = time.Since(s.began)
	if err := s.house.look(ctx); err != nil {
		return err
	}
	s.sold = s.house.state()
	return context.Cause(ctx)
}

// guard ends everything where the server ends by itself.
func (s *sale) guard(ctx context.Context, cancel context.CancelCauseFunc) {
	for sleep(ctx, 500*time.Millisecond) {
		select {
		case <-s.server.gone():
			cancel(fmt.Errorf("the server ended by itself\n%s", tail(s.server.log)))
			return
		default:
		}
	}
}
