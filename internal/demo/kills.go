package demo

import (
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
)

// A killing is one kill, planned: when so many buyers have been let in, and a moment later.
type killing struct {
	after    int64
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
}

const (
	killFrom     = 0.04 // of the buyers: the first kill comes after so many
	killTo       = 0.90
	killMomentMs = 300
	killAhead    = 0.02 // of the buyers are let in beyond the next kill, so that the sale goes on until it comes
)

// planKills decides where the kills fall. On PostgreSQL half of them hit the database server.
func (s *sale) planKills(buyers int) []killing {
	random := rand.New(rand.NewPCG(s.Seed, 0x6b696c6c))
	plan := make([]killing, s.Kills)
	for i := range plan {
		plan[i].after = int64(float64(buyers) * (killFrom + (killTo-killFrom)*random.Float64()))
		plan[i].moment = time.Duration(random.IntN(killMomentMs)) * time.Millisecond
	}
	slices.SortFunc(plan, func(a, b killing) int { return int(a.after - b.after) })
	if s.Postgres != nil && s.Postgres.Dir() != "" { // one that we started
		for i, k := range random.Perm(len(plan)) {
			plan[k].database = i < len(plan)/2
		}
	}
	s.allow(plan, buyers)
	return plan
}

// allow says how many buyers may come before the first kill of the plan.
func (s *sale) allow(plan []killing, buyers int) {
	if len(plan) == 0 {
		s.allowed.Store(math.MaxInt64)
		return
	}
	s.allowed.Store(plan[0].after + 1 + int64(killAhead*float64(buyers)))
}

// killAll kills as planned, and after each restart compares the journal with the ledger and runs the audit.
func (s *sale) killAll(ctx context.Context, plan []killing) error {
	for i, k := range plan {
		for s.arrived.Load() < k.after {
			if !sleep(ctx, 5*time.Millisecond) {
				return nil
			}
		}
		if !sleep(ctx, k.moment) {
			return nil
		}
		done, err := s.killOnce(ctx, k)
		if err != nil {
			return fmt.Errorf("kill %d of %d: %w", i+1, len(plan), err)
		}
		s.allow(plan[i+1:], s.Buyers)
		if err := s.inspect(ctx, &done); err != nil {
			return fmt.Errorf("after kill %d of %d: %w", i+1, len(plan), err)
		}
		s.kills = append(s.kills, done)
		what := "the server"
		if k.database {
			what = "the database"
		}
		late := ""
		if done.ready > readyWish {
			late = fmt.Sprintf(" (more than %s)", readyWish)
		}
		s.screen.say("Kill %d of %d: %s. Ready in %.2f s%s, audit ok in %.1f s;", i+1, len(plan), what, done.ready.Seconds(), late, done.audit.Seconds())
		s.screen.say("  %s holds and %s bookings of the journal are there.", thousands(int64(done.holds)), thousands(int64(done.bookings)))
	}
	return nil
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

// audit recomputes the promises from what is stored, against the provider's books. It only reads, also beside the server.
func (s *sale) audit(ctx context.Context) (audit.Report, error) {
	var source *audit.Source
	var err error
	if s.Postgres != nil {
		source, err = audit.OpenPostgres(s.PostgresURL)
	} else {
		source, err = audit.OpenSQLite(s.Shard)
	}
	if err != nil {
		return audit.Report{}, err
	}
	books, err := sandbox.ReadBooks(s.Books)
	if err != nil {
		return audit.Report{}, errors.Join(err, source.Close())
	}
	report, err := audit.Run(ctx, source, audit.Options{Provider: books})
	return report, errors.Join(err, books.Close(), source.Close())
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
