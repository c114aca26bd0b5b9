package bench

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"onsale/internal/disk"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/inventory"
	"onsale/internal/ledger"
	"onsale/internal/pgserver"
)

func TestMain(m *testing.M) { pgserver.Main(m) }

// onBoth runs a test on both databases. What lies under them is not measured here, so it may be anything.
func onBoth(t *testing.T, test func(t *testing.T, h *Host)) {
	t.Run(SQLite, func(t *testing.T) {
		test(t, &Host{ledger: SQLite, dir: t.TempDir()})
	})
	t.Run(Postgres, func(t *testing.T) {
		test(t, &Host{ledger: Postgres, server: pgserver.ForTest(t)})
	})
}

// stormed checks what must hold of every storm in which each group of seats was wanted by somebody.
func stormed(t *testing.T, r Result, groups, perHold, buyers int64) {
	t.Helper()
	if err := r.Faulty(); err != nil {
		t.Error(err)
	}
	if r.Won != groups || r.SeatsHeld != groups*perHold || r.Lost != buyers-groups || r.Attempts != buyers {
		t.Errorf("%s on %s: %d won, %d lost of %d, %d seats held; want %d groups of %d to be won", r.Design, r.Ledger, r.Won, r.Lost, r.Attempts, r.SeatsHeld, groups, perHold)
	}
	if r.Design == Onsale && (r.AuditOK == nil || !*r.AuditOK) {
		t.Errorf("the audit says %v, broken: %v", r.AuditOK, r.AuditBroken)
	}
}

// 100,000 buyers at once for 2,000 seats, singly and in aligned pairs: exactly 2,000 are held, and every loser is told
// which of its seats are taken (anything else counts as an error).
func TestStormNoRace(t *testing.T) {
	perHold := map[string]int{SQLite: 1, Postgres: 2}
	if soak := os.Getenv("ONSALE_SOAK"); soak != "" { // the long form: the other way round
		perHold = map[string]int{SQLite: 2, Postgres: 1}
	}
	onBoth(t, func(t *testing.T, h *Host) {
		each := perHold[h.ledger]
		results, err := h.Holds(t.Context(), HoldsOptions{Seats: 2000, Buyers: 100_000, PerHold: each, Designs: []string{Onsale}})
		if err != nil {
			t.Fatal(err)
		}
		stormed(t, results[0], int64(2000/each), int64(each), 100_000)
	})
}

// The same in small, with the reference design beside it; its runs are counted and its medians are of them.
func TestHolds(t *testing.T) {
	onBoth(t, func(t *testing.T, h *Host) {
		results, err := h.Holds(t.Context(), HoldsOptions{Seats: 60, Buyers: 600, PerHold: 3, Designs: []string{Onsale, Conditional}, Runs: 2})
		if err != nil {
			t.Fatal(err)
		}
		for i := range results {
			if len(results[i].Runs) != 2 {
				t.Fatalf("%d runs", len(results[i].Runs))
			}
			for _, r := range results[i].Runs {
				stormed(t, r, 20, 3, 600)
			}
		}
	})
}

// 50 at once for one seat, 1,000 times: one winner each, through the board and straight at the ledger.
func TestOneSeatManyTimes(t *testing.T) {
	const rounds, lanes, buyers = 1000, 25, 50
	onBoth(t, func(t *testing.T, h *Host) {
		withNode(t, h, rounds, func(hall *hall, n *node) {
			var next atomic.Int32
			var all sync.WaitGroup
			for range lanes {
				all.Go(func() {
					for seat := next.Add(1) - 1; seat < rounds; seat = next.Add(1) - 1 {
						if won := oneSeat(t, hall, n, seat, buyers); won != 1 {
							t.Errorf("seat %d: %d winners", seat, won)
						}
					}
				})
			}
			all.Wait()
		})
	})
}

// oneSeat lets so many customers ask for one seat at once and counts those who get it.
func oneSeat(t *testing.T, hall *hall, n *node, seat int32, buyers int) int64 {
	var won atomic.Int64
	var all sync.WaitGroup
	open := make(chan struct{})
	for range buyers {
		all.Go(func() {
			hold, customer := hall.ids.MustNext(0), hall.ids.MustNext(0)
			<-open
			var err error
			if seat%2 == 0 {
				_, err = n.inventory.HoldSeats(t.Context(), inventory.Claim{ID: hold, Event: hall.event.ID, Customer: customer}, []int32{seat})
			} else {
				_, err = n.batcher.Do(t.Context(), ledger.HoldSeats{ID: hold, Event: hall.event.ID, Customer: customer, Seats: []int32{seat}})
			}
			switch f := fault.Of(err); {
			case err == nil:
				won.Add(1)
			case f.Code != fault.SeatsTaken || len(f.Seats) != 1 || f.Seats[0] != seat:
				t.Errorf("seat %d: a loser is told %v %v", seat, f, f.Seats)
			}
		})
	}
	close(open)
	all.Wait()
	return won.Load()
}

// withNode gives our design on a fresh database, and looks afterwards whether anything was sold twice.
func withNode(t *testing.T, h *Host, seats int, use func(*hall, *node)) {
	t.Helper()
	ctx := context.Background()
	hall, err := newHall(seats, PartyMax)
	if err != nil {
		t.Fatal(err)
	}
	at, err := h.fresh(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l, err := at.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n, err := hall.node(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	use(hall, n)
	r := Result{Design: Onsale, Ledger: h.ledger}
	if err := errors.Join(n.close(ctx), at.claims(ctx, &r), at.audit(ctx, nil, &r), l.Close(), at.remove(ctx), r.Faulty()); err != nil {
		t.Error(err)
	}
}

// A whole sale by both designs: everything is sold, once, and both leave books that pass the audit.
func TestSale(t *testing.T) {
	onBoth(t, func(t *testing.T, h *Host) {
		results, err := h.Sale(t.Context(), SaleOptions{Seats: 400, Callers: 32, Party: 2, Designs: []string{Onsale, Bare}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if err := r.Faulty(); err != nil {
				t.Error(err)
			}
			if r.Won != 200 || r.SeatsSold != 400 || r.AuditOK == nil {
				t.Errorf("%s: %d sales of %d seats, audited: %v", r.Design, r.Won, r.SeatsSold, r.AuditOK != nil)
			}
		}
	})
}

// What is sold twice is found: a negative control of the query that looks for it.
func TestClaimsFindsWhatIsSoldTwice(t *testing.T) {
	h := &Host{ledger: SQLite, dir: t.TempDir()}
	ctx := context.Background()
	at, err := h.fresh(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r := Result{}
	if err := at.saleBare(ctx, SaleOptions{Seats: 20, Party: 2}, &r); err != nil {
		t.Fatal(err)
	}
	if r.DoubleSold != 0 || r.SeatsSold != 20 {
		t.Fatalf("%d sold, %d twice", r.SeatsSold, r.DoubleSold)
	}
	db, err := at.db()
	if err != nil {
		t.Fatal(err)
	}
	for _, plant := range []string{
		`DROP INDEX tickets_one_per_seat`,
		`INSERT INTO tickets (ticket_id, order_id, event_id, customer_id, state, seat_index, area, category, total)
			SELECT ticket_id + 1000000, order_id, event_id, customer_id, state, seat_index, area, category, total FROM tickets WHERE seat_index = 3`,
		`INSERT INTO holds (hold_id, event_id, customer_id, state, area, lines, draws, currency, created_at, expires_at)
			SELECT hold_id + 1000000, event_id, customer_id, 1, area, lines, draws, currency, created_at, expires_at
			FROM holds WHERE lines LIKE '%[6,%'`,
	} {
		if _, err := db.Exec(plant); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Close(), at.claims(ctx, &r), at.audit(ctx, nil, &r)); err != nil {
		t.Fatal(err)
	}
	if r.DoubleSold != 3 { // the ticket's seat, and both of the hold's
		t.Errorf("%d seats sold twice, want 3", r.DoubleSold)
	}
	if r.Faulty() == nil || *r.AuditOK {
		t.Errorf("not a fault: %+v", r)
	}
}

func TestBounds(t *testing.T) {
	h := &Host{ledger: SQLite, dir: t.TempDir()}
	good := HoldsOptions{Seats: 10, Buyers: 10, PerHold: 2, Designs: []string{Onsale}}
	for name, change := range map[string]func(*HoldsOptions){
		"seats":      func(o *HoldsOptions) { o.Seats = 1 },
		"buyers":     func(o *HoldsOptions) { o.Buyers = BuyersMax + 1 },
		"per hold":   func(o *HoldsOptions) { o.PerHold = PartyMax + 1 },
		"design":     func(o *HoldsOptions) { o.Designs = []string{Bare} },
		"no design":  func(o *HoldsOptions) { o.Designs = nil },
		"the same":   func(o *HoldsOptions) { o.Designs = []string{Onsale, Onsale} },
		"not enough": func(o *HoldsOptions) { o.PerHold = 8; o.Seats = 7 },
	} {
		o := good
		change(&o)
		if _, err := h.Holds(t.Context(), o); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
	for name, o := range map[string]SaleOptions{
		"party":   {Seats: 10, Party: 0, Callers: 1, Designs: []string{Onsale}},
		"seats":   {Seats: 1, Party: 2, Callers: 1, Designs: []string{Onsale}},
		"callers": {Seats: 10, Party: 2, Callers: CallersMax + 1, Designs: []string{Onsale}},
		"design":  {Seats: 10, Party: 2, Callers: 1, Designs: []string{Conditional}},
	} {
		if _, err := h.Sale(t.Context(), o); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
	if _, err := OpenHost(HostOptions{Ledger: "paper"}); err == nil {
		t.Error("an unknown ledger: not refused")
	}
}

// F6: nothing is measured on a file system in memory.
func TestRefusesMemory(t *testing.T) {
	const shm = "/dev/shm"
	if _, err := disk.Measure(shm); !errors.Is(err, disk.ErrMemory) {
		t.Skipf("%s is no file system in memory here: %v", shm, err)
	}
	for _, l := range []string{SQLite, Postgres} {
		if _, err := OpenHost(HostOptions{Ledger: l, Dir: shm}); !errors.Is(err, disk.ErrMemory) {
			t.Errorf("%s: %v", l, err)
		}
	}
	if left, err := os.ReadDir(shm); err == nil {
		for _, e := range left {
			if strings.HasPrefix(e.Name(), "onsale-bench-") {
				t.Errorf("%s was left behind", e.Name())
			}
		}
	}
}

func TestMedian(t *testing.T) {
	bad := false
	m := medianOf([]Result{
		{Seconds: 3, SeatsSoldPerS: 10, P99MS: 7}, {Seconds: 1, SeatsSoldPerS: 30, P99MS: 9, DoubleSold: 1, AuditOK: &bad, AuditBroken: []string{"I1"}},
		{Seconds: 2, SeatsSoldPerS: 15, P99MS: 8},
	})
	if m.Seconds != 2 || m.SeatsSoldPerS != 15 || m.P99MS != 8 || len(m.Runs) != 3 {
		t.Errorf("%+v", m)
	}
	if m.DoubleSold != 1 || m.AuditOK == nil || *m.AuditOK {
		t.Error("a fault of one run is not the median's")
	}
	if got := median([]float64{4, 1}); got != 2.5 {
		t.Errorf("median of two is %v", got)
	}
}

// The table fits in 80 columns, and the JSON has the promised names.
func TestShown(t *testing.T) {
	ok := true
	run := Result{Bench: "holds", Design: Onsale, Ledger: SQLite, Attempts: 1_000_000, Won: 1000, AttemptsPerS: 123_456.7, AuditOK: &ok}
	results := []Result{run, {Bench: "holds", Design: Conditional, Ledger: SQLite, AttemptsPerS: 12_345.6}}
	for i := range results {
		results[i].Runs = []Result{run, run}
	}
	var table strings.Builder
	if err := WriteTable(&table, results); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table.String()) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	for _, want := range []string{"1,000,000", "123,457", "10.00 times the attempts/s of conditional", "run 2"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &table)
		}
	}
	text, err := json.Marshal(results[1])
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(`design ledger attempts won lost board_refused errors seconds attempts_per_s ledger_attempts_per_s
		seats_sold_per_s p50_ms p99_ms cpu_seconds double_sold audit_ok`) {
		if _, ok := fields[name]; !ok {
			t.Errorf("the JSON lacks %s: %s", name, text)
		}
	}
	if fields["audit_ok"] != nil {
		t.Errorf("audit_ok of a design without our books is %v", fields["audit_ok"])
	}
}

// A shed request is made again until it is answered; a repeat is no attempt.
func TestShedRequestsComeAgain(t *testing.T) {
	var retries atomic.Int64
	d := &shedding{left: 3}
	taken, err := persist(t.Context(), d, 1, []int32{4, 5}, &retries)
	if err != nil || len(taken) != 1 || retries.Load() != 3 {
		t.Errorf("taken %v, %v after %d repeats", taken, err, retries.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := persist(ctx, &shedding{left: 1 << 30}, 1, []int32{4}, &retries); !errors.Is(err, context.Canceled) {
		t.Errorf("it goes on for ever: %v", err)
	}
	if within([]int32{6}, []int32{4, 5}) || !within(nil, []int32{4}) {
		t.Error("a loser told of seats that it did not ask for must count as an error")
	}
}

type shedding struct{ left int }

func (d *shedding) hold(context.Context, id.ID, []int32) ([]int32, error) {
	if d.left--; d.left >= 0 {
		return nil, &fault.Error{Code: fault.Busy}
	}
	return []int32{4}, nil
}
