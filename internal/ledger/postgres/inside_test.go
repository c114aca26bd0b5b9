package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/pgserver"
)

// What the tests of this package's inside share: an event with 100 seats in 10 runs and an area of 20 places, and a clock
// that stands still.

const (
	theEvent id.ID       = 1
	noon     ledger.Time = 1_800_000_000_000
	seatsAll             = 100
)

type stage struct {
	*testing.T
	url  string
	l    *Ledger
	now  atomic.Int64
	last atomic.Int64
}

// newStage opens a ledger on a database, "" for a fresh one.
func newStage(t *testing.T, url string, more func(*Options)) *stage {
	t.Helper()
	if url == "" {
		url = pgserver.DatabaseForTest(t)
	}
	s := &stage{T: t, url: url}
	s.now.Store(int64(noon))
	s.last.Store(1000)
	s.l = s.open(more)
	s.ok(ledger.SetEvent{Event: stageEvent(), Layout: stageLayout()})
	return s
}

func (s *stage) open(more func(*Options)) *Ledger {
	s.Helper()
	o := Options{URL: s.url, Now: func() ledger.Time { return ledger.Time(s.now.Load()) }}
	if more != nil {
		more(&o)
	}
	l, err := Open(context.Background(), o)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := l.Close(); err != nil {
			s.Error(err)
		}
	})
	return l
}

func stageEvent() ledger.Event {
	return ledger.Event{
		ID: theEvent, Show: 60, Version: 1, State: ledger.OnSale, PlanHash: "stage", SaleOpens: noon - 1000, SaleCloses: noon + 1_000_000_000,
		HoldTTL: 600_000, PaymentWindow: 300_000, ExtendMax: 1, SeatsPerHoldMax: 10, Currency: "EUR",
		Tiers:  []ledger.Tier{{Category: 0, Face: 5000}, {Category: 1, Face: 3000}},
		Limits: []ledger.Limit{{Scope: ledger.PerEvent, Max: 50}},
		Quotas: []ledger.Quota{{Category: 0, Section: -1, Max: 1000}},
	}
}

func stageLayout() *ledger.Layout {
	l := &ledger.Layout{PlanHash: "stage", Areas: []ledger.AreaLayout{{Section: 1, Category: 1, Capacity: 20}}}
	for i := range int32(seatsAll) {
		l.Section, l.Category = append(l.Section, 0), append(l.Category, 0)
		l.Run, l.Quality = append(l.Run, i/10), append(l.Quality, i)
	}
	return l
}

func (s *stage) id() id.ID { return id.ID(s.last.Add(1)) }

func (s *stage) apply(l *Ledger, commands ...ledger.Command) []ledger.Result {
	s.Helper()
	batch, err := l.Apply(context.Background(), commands)
	if err != nil {
		s.Fatal(err)
	}
	return batch.Results
}

func (s *stage) ok(c ledger.Command) ledger.Result {
	s.Helper()
	r := s.apply(s.l, c)[0]
	if r.Fault != nil {
		s.Fatalf("%T: %v", c, r.Fault)
	}
	return r
}

func (s *stage) hold(customer id.ID, seats ...int32) ledger.HoldSeats {
	return ledger.HoldSeats{ID: s.id(), Event: theEvent, Customer: customer, Seats: seats}
}

func (s *stage) begin(h *ledger.Hold) ledger.BeginPayment {
	return ledger.BeginPayment{Order: s.id(), Hold: h.ID, Customer: h.Customer, Provider: "instant"}
}

func (s *stage) confirm(o *ledger.Order, lines int) ledger.Confirm {
	c := ledger.Confirm{Order: o.ID, Payment: "pay", Amount: o.Amount, Currency: o.Currency, Captured: true, Refund: s.id(), RescueHold: s.id()}
	for range lines {
		c.Tickets = append(c.Tickets, s.id())
	}
	return c
}

// conn is a connection beside the ledgers.
func (s *stage) conn() *pgx.Conn {
	s.Helper()
	c, err := pgx.Connect(context.Background(), s.url)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// value reads one number.
func (s *stage) value(sql string, args ...any) (n int64) {
	s.Helper()
	if err := s.l.reader.pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

// atOnce runs n goroutines, started together.
func atOnce(n int, do func(i int)) {
	var wait sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		wait.Go(func() {
			<-begin
			do(i)
		})
	}
	close(begin)
	wait.Wait()
}
