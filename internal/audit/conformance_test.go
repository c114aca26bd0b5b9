package audit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/ledgertest"
	"onsale/internal/ledger/sqlite"
)

// audited is a ledger that is audited when it is closed.
type audited struct {
	*sqlite.Ledger
	path string
}

// onPurpose are findings that the conformance suite brings about on purpose: its commands tell of money that no provider
// would move, and delete notices before their time.
var onPurpose = []string{"nothing will capture or void it", "and bought nothing", "were agreed", "notices is there", "its notices before"}

func (a *audited) Close() error {
	now, err := a.Now(context.Background())
	if err != nil {
		return errors.Join(err, a.Ledger.Close())
	}
	src, err := OpenSQLite(a.path)
	if err != nil {
		return errors.Join(err, a.Ledger.Close())
	}
	r, err := Run(context.Background(), src, Options{Now: now})
	for _, c := range r.Checks {
		for _, v := range c.List {
			if !slices.ContainsFunc(onPurpose, func(what string) bool { return strings.Contains(v.What, what) }) {
				err = errors.Join(err, fmt.Errorf("%s: %s %s: %s", c.Name, v.Event, v.Subject, v.What))
			}
		}
	}
	return errors.Join(err, src.Close(), a.Ledger.Close())
}

// Whatever the scenarios and random histories of the conformance suite leave behind, the audit has nothing to say about
// it but what those do on purpose.
func TestWhatTheConformanceSuiteLeavesNoRace(t *testing.T) {
	if testing.Short() {
		t.Skip("the whole suite again")
	}
	ledgertest.Exercise(t, func(t *testing.T, clock *ledgertest.Clock) ledgertest.Harness {
		path := filepath.Join(t.TempDir(), "shard.db")
		l, err := sqlite.Open(context.Background(), path, sqlite.Options{Now: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		return ledgertest.Harness{Ledger: &audited{l, path}}
	})
}

// BenchmarkAudit audits an arena of 200,000 seats, sold in 100,000 orders.
func BenchmarkAudit(b *testing.B) {
	const seats, batch = 200_000, 250
	path := filepath.Join(b.TempDir(), "shard.db")
	l, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ids := id.NewGenerator(0, time.Now, 0, nil)
	now := ledger.TimeOf(time.Now())
	apply := func(commands ...ledger.Command) {
		batch, err := l.Apply(b.Context(), commands)
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range batch.Results {
			if r.Fault != nil {
				b.Fatal(r.Fault)
			}
		}
	}
	n := make([]int16, seats)
	event := ids.MustNext(0)
	apply(ledger.SetEvent{
		Event: ledger.Event{ID: event, Version: 1, State: ledger.OnSale, PlanHash: "x", SaleOpens: now - 1, SaleCloses: now + 1e9, HoldTTL: 600_000,
			PaymentWindow: 300_000, SeatsPerHoldMax: 4, Currency: "EUR", Tiers: []ledger.Tier{{Face: 5000}}, Limits: []ledger.Limit{{Scope: ledger.PerEvent, Max: 4}}},
		Layout: &ledger.Layout{PlanHash: "x", Section: n, Category: n, Run: make([]int32, seats), Quality: make([]int32, seats)},
	})
	for at := int32(0); at < seats; at += 2 * batch {
		var commands []ledger.Command
		for i := range int32(batch) {
			hold, order, customer := ids.MustNext(0), ids.MustNext(0), ids.MustNext(0)
			commands = append(commands,
				ledger.HoldSeats{ID: hold, Event: event, Customer: customer, Seats: []int32{at + 2*i, at + 2*i + 1}, Key: ledger.Key{Value: "k"}},
				ledger.BeginPayment{Order: order, Hold: hold, Customer: customer, Provider: "instant"},
				ledger.Confirm{Order: order, Payment: "pay", Amount: 10_000, Currency: "EUR", Captured: true, Tickets: []id.ID{ids.MustNext(0), ids.MustNext(0)}})
		}
		apply(commands...)
	}
	src, err := OpenSQLite(path)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	for b.Loop() {
		r, err := Run(b.Context(), src, Options{})
		var text strings.Builder
		if err != nil || r.Render(&text) != nil || !r.OK() {
			b.Fatal(err, text.String())
		}
	}
}
