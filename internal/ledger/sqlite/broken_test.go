package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/ledgertest"
	"onsale/internal/ledger/sqlite"
)

// An event whose rows contradict each other is stopped; what it leaves behind does not keep the others from being swept.
func TestABrokenEventHoldsUpNoOther(t *testing.T) {
	for name, damage := range map[string]string{
		"a seat that another claim owns": `UPDATE seats SET claim_id = 99 WHERE event_id = 1 AND state = 1`,
		"a seat without a row":           `DELETE FROM seats WHERE event_id = 1 AND state = 1`,
		"a bucket that holds too little": `UPDATE buckets SET held = 0 WHERE event_id = 1`,
		"a bucket that is gone":          `DELETE FROM buckets WHERE event_id = 1`,
		"a limit that counts too little": `UPDATE limits SET count = 0 WHERE of_id = 1`,
		"a limit that counts one of two": `UPDATE limits SET count = 2 WHERE of_id = 1`,
		"a quota that counts too little": `UPDATE quotas SET count = 0 WHERE event_id = 1`,
	} {
		t.Run(name, func(t *testing.T) {
			clock := ledgertest.NewClock(1_800_000_000_000)
			path := filepath.Join(t.TempDir(), "ledger.db")
			l := open(t, path, clock)
			seats := func(hold, event id.ID, seat int32) ledger.Command {
				return ledger.HoldSeats{ID: hold, Event: event, Customer: 7, Seats: []int32{seat}}
			}
			places := func(hold, event id.ID) ledger.Command {
				return ledger.HoldPlaces{ID: hold, Event: event, Customer: 7, Area: 0, Quantity: 2}
			}
			event := func(event id.ID) ledger.Command {
				return ledger.SetEvent{Layout: &ledger.Layout{
					PlanHash: "p", Section: []int16{0, 0}, Category: []int16{0, 0}, Run: []int32{0, 0}, Quality: []int32{1, 2},
					Areas: []ledger.AreaLayout{{Capacity: 4}},
				}, Event: ledger.Event{
					ID: event, Version: 1, State: ledger.OnSale, PlanHash: "p", SaleCloses: clock.Now() * 2, HoldTTL: 1000, SeatsPerHoldMax: 4,
					Currency: "EUR", Tiers: []ledger.Tier{{Face: 100}}, Limits: []ledger.Limit{{Scope: ledger.PerEvent, Max: 9}},
					Quotas: []ledger.Quota{{Category: -1, Section: -1, Max: 9}},
				}}
			}
			mustApply(t, l, event(1), event(2))
			mustApply(t, l, seats(11, 1, 0), places(12, 1), seats(21, 2, 0), places(22, 2))
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("sqlite", sqlite.DSN(path))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(damage); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			l = open(t, path, clock)
			defer l.Close()
			clock.Advance(1000)
			var broken *ledger.InvariantError
			if _, err := l.Apply(context.Background(), []ledger.Command{ledger.Sweep{}}); !errors.As(err, &broken) || broken.Event != 1 {
				t.Fatalf("the damage is not seen: %v", err)
			}
			mustApply(t, l, ledger.Stop{Event: 1})
			ended := 0
			for more := true; more; {
				r := mustApply(t, l, ledger.Sweep{Max: 1}) // where those that are set aside take no place
				ended, more = ended+r[0].Count, r[0].More
			}
			if ended != 2 && ended != 3 {
				t.Errorf("swept %d: want the other event's two holds, and what is sound of this one's", ended)
			}
			for _, hold := range []id.ID{21, 22} {
				if h, err := l.Hold(context.Background(), hold); err != nil || h.State != ledger.HoldExpired {
					t.Errorf("hold %d: %s, %v", hold, h.State, err)
				}
			}
			mustApply(t, l, seats(31, 2, 0), places(32, 2))
		})
	}
}

func mustApply(t *testing.T, l ledger.Ledger, commands ...ledger.Command) []ledger.Result {
	t.Helper()
	batch, err := l.Apply(context.Background(), commands)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range batch.Results {
		if r.Fault != nil {
			t.Fatalf("%T: %v", commands[i], r.Fault)
		}
	}
	return batch.Results
}
