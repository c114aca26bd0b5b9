package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"onsale/internal/audit"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment/sandbox"
	"onsale/internal/pgserver"
	"onsale/internal/waitingroom/joinlog"
)

// A killing is one kill, planned: when so many have come to the line and so many were let in, and a moment later.
type killing struct {
	join     int64
	let      int64
	moment   time.Duration
	database bool
}

// A killed is one kill that happened.
type killed struct {
	killing
	ready    time.Duration // from starting it again until it said that it is ready
	audit    time.Duration
	holds    int
	bookings int
	numbers  int
	entries  int
}

const (
	killFrom     = 0.04 // of the buyers: the first kill comes after so many
	killTo       = 0.90
	killMomentMs = 300
	killAhead    = 0.02 // of the buyers are let in beyond the next kill, so that the sale goes on until it comes
)

// planKills decides where the kills fall: a fifth while people join (one at least, of three), one when the doors have just opened, the
// others during the sale. On PostgreSQL half of them hit the database server.
func (s *sale) planKills(early, let int) []killing {
	random := rand.New(rand.NewPCG(s.Seed, 0x6b696c6c))
	plan := make([]killing, s.Kills)
	joining := max(len(plan)/5, min(len(plan)/3, 1))
	within := func(all int) int64 { return int64(float64(all) * (killFrom + (killTo-killFrom)*random.Float64())) }
	for i := range plan {
		k := &plan[i]
		k.moment = time.Duration(random.IntN(killMomentMs)) * time.Millisecond
		switch {
		case i < joining:
			k.join = within(early)
		case i == joining && len(plan) > 1:
			k.join = int64(early) + 1
		default:
			k.join, k.let = int64(early)+1, within(let)
		}
	}
	slices.SortFunc(plan, func(a, b killing) int { return cmp.Or(cmp.Compare(a.join, b.join), cmp.Compare(a.let, b.let)) })
	if s.Postgres != nil && s.Postgres.Dir() != "" { // one that we started
		for i, k := range random.Perm(len(plan)) {
			plan[k].database = i < len(plan)/2
		}
	}
	return plan
}

// hold holds people back until the next kill of the plan.
func (s *sale) hold(plan []killing, early, let int) {
	ahead := func(all int) int64 { return 1 + int64(killAhead*float64(all)) }
	switch {
	case len(plan) == 0:
		s.turnstile.bound(math.MaxInt64, math.MaxInt64)
	case plan[0].let == 0:
		s.turnstile.bound(plan[0].join+ahead(early), ahead(let))
	default:
		s.turnstile.bound(math.MaxInt64, plan[0].let+ahead(let))
	}
}

// killAll kills as planned, and after each restart compares the journal with the ledger and runs the audit.
func (s *sale) killAll(ctx context.Context, early, let int) error {
	plan := s.planKills(early, let)
	s.hold(plan, early, let)
	for i, k := range plan {
		if !s.turnstile.reached(ctx, k.join, k.let) || !sleep(ctx, k.moment) {
			return nil
		}
		done, err := s.killOnce(ctx, k)
		if err != nil {
			return fmt.Errorf("kill %d of %d: %w", i+1, len(plan), err)
		}
		s.hold(plan[i+1:], early, let)
		if err := s.inspect(ctx, &done); err != nil {
			return fmt.Errorf("after kill %d of %d: %w", i+1, len(plan), err)
		}
		s.kills = append(s.kills, done)
		s.tellKill(i, len(plan), &done)
	}
	return nil
}

func (s *sale) tellKill(i, of int, done *killed) {
	what := "the server"
	if done.database {
		what = "the database"
	}
	late := ""
	if done.ready > readyWish {
		late = fmt.Sprintf(" (more than %s)", readyWish)
	}
	s.screen.say("Kill %d of %d: %s. Ready in %.2f s%s, audit ok in %.1f s;", i+1, of, what, done.ready.Seconds(), late, done.audit.Seconds())
	s.screen.say("  The journal's %s numbers, %s entries, %s holds, %s bookings are there.", thousands(int64(done.numbers)),
		thousands(int64(done.entries)), thousands(int64(done.holds)), thousands(int64(done.bookings)))
}

// killOnce kills and starts again, on the same data and ports.
func (s *sale) killOnce(ctx context.Context, k killing) (killed, error) {
	done := killed{killing: k}
	down := time.Now()
	defer func() { s.downtime.Add(int64(time.Since(down))) }()
	if !k.database {
		s.server.kill()
		var err error
		done.ready, err = s.server.start(ctx)
		return done, err
	}
	if err := s.Postgres.Kill(); err != nil {
		return done, err
	}
	began := time.Now()
	if err := s.Postgres.Restart(); err != nil && !errors.Is(err, pgserver.ErrNotOurs) {
		return done, err
	}
	for !s.server.isReady(ctx) {
		if time.Since(began) > readyMax {
			return done, fmt.Errorf("the server was not ready within %s after its database was", readyMax)
		}
		if !sleep(ctx, 15*time.Millisecond) {
			return done, ctx.Err()
		}
	}
	done.ready = time.Since(began)
	return done, nil
}

// inspect compares the journal with the ledger and runs the audit, while the sale goes on.
func (s *sale) inspect(ctx context.Context, k *killed) error {
	said := s.journal.all()
	stored, err := s.store.read(ctx)
	if err != nil {
		return err
	}
	said = s.journal.withAsked(said)
	for _, contradiction := range check(said, stored, s.seat) {
		s.wrong("after kill %d: %s", len(s.kills)+1, contradiction)
	}
	began := time.Now()
	report, err := s.audit(ctx)
	if err != nil {
		return err
	}
	k.audit, k.holds, k.bookings = time.Since(began), len(said.holds), len(said.paid)
	k.numbers, k.entries = len(said.line.numbers), len(said.line.entries)
	if err := s.honoured(ctx, &said.line); err != nil {
		return err
	}
	if !report.OK() {
		s.wrong("after kill %d the audit is broken: %v", len(s.kills)+1, report.Broken())
		return errors.Join(report.Render(s.screen), errors.New("the audit is broken"))
	}
	return nil
}

// refusedOrders are those of which a refund stays REQUESTED, because the bank refuses it: that is for people to mend.
func (s *sale) refusedOrders() map[string]bool {
	orders := map[string]bool{}
	for _, r := range s.stored.back {
		if r.refused && r.state == ledger.RefundRequested {
			orders[r.order.Text(id.Order)] = true
		}
	}
	return orders
}

// seat is the number of a seat of an event.
func (s *sale) seat(event id.ID, label string) (int32, bool) {
	if event.Text(id.Event) == s.named.event.ID {
		return s.named.layout.Lookup(label)
	}
	return s.house.layout.Lookup(label)
}

// audit recomputes the promises from what is stored, against the log of joins and the provider's books. It only reads, also
// beside the server.
func (s *sale) audit(ctx context.Context) (report audit.Report, err error) {
	var source *audit.Source
	if s.Postgres != nil {
		source, err = audit.OpenPostgres(s.PostgresURL)
	} else {
		source, err = audit.OpenSQLite(s.Shard)
	}
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	books, err := sandbox.ReadBooks(s.Books)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, books.Close()) }()
	o := audit.Options{Provider: books}
	if s.Postgres != nil {
		o.Joins = source.JoinsTable()
	} else {
		log := joinlog.OpenRead(s.Joins)
		defer func() { err = errors.Join(err, log.Close()) }()
		o.Joins = log
	}
	return audit.Run(ctx, source, o)
}

// judge looks at everything after the end: the server is stopped, the journal compared, the audit run.
func (s *sale) judge(ctx context.Context) error {
	if err := s.server.stop(); err != nil {
		return err
	}
	var err error
	if s.stored, err = s.store.read(ctx); err != nil {
		return err
	}
	for _, contradiction := range check(s.journal.all(), s.stored, s.seat) {
		s.wrong("the journal: %s", contradiction)
	}
	if err := s.private(ctx); err != nil {
		return err
	}
	if s.verdict, err = s.audit(ctx); err != nil {
		return err
	}
	refused := s.refusedOrders()
	for _, o := range s.verdict.InFlight.Orders {
		if refused[o.Order] {
			continue
		}
		s.wrong("%s is still in flight at the end: %s", o.Order, o.Why)
	}
	books, err := sandbox.ReadBooks(s.Books)
	if err != nil {
		return err
	}
	s.faults, err = books.FaultCounts(ctx)
	return errors.Join(err, books.Close())
}
