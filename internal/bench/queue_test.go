package bench

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"onsale/internal/fault"
	"onsale/internal/pgserver"
	"onsale/internal/redisserver"
)

// nodeVariable makes this test program a node of bench queue.
const nodeVariable = "ONSALE_BENCH_TEST_NODE"

func TestQueueNodeProcess(t *testing.T) {
	if os.Getenv(nodeVariable) == "" {
		return // it is no test but the other process of the one below
	}
	out := os.Stdout
	os.Stdout = os.Stderr // where testing prints what it has to say
	if err := QueueNode(context.Background(), os.Stdin, out); err != nil {
		t.Error(err)
	}
}

func TestQueue(t *testing.T) {
	for name, c := range map[string]struct {
		ledger, store string
		processes     int
		designs       []string
	}{
		"in process":      {SQLite, StoreMemory, 1, []string{Onsale, ZSet}},
		"Redis":           {SQLite, StoreRedis, 1, []string{Onsale}},
		"three processes": {Postgres, StoreRedis, 3, []string{Onsale}},
	} {
		t.Run(name, func(t *testing.T) {
			redisserver.ForTest(t) // says so where there is none
			h := &Host{ledger: c.ledger, dir: t.TempDir()}
			if c.ledger == Postgres {
				h.server = pgserver.ForTest(t)
			}
			t.Setenv(nodeVariable, "1")
			results, err := h.Queue(t.Context(), QueueOptions{
				Fans: 3_000, Designs: c.designs, Store: c.store, Processes: c.processes, PollFor: 200 * time.Millisecond, SaleFor: 4 * time.Second,
				Node: []string{os.Args[0], "-test.run=^TestQueueNodeProcess$"},
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range results {
				r := &results[i]
				if err := r.Faulty(); err != nil {
					t.Error(err)
				}
				if r.JoinsPerS <= 0 || r.PollsPerS <= 0 || r.Admitted < queueRoom || r.Processes > 1 && r.Processes != c.processes {
					t.Errorf("%+v", r)
				}
				if ops := r.StoreOpsPerPoll; r.Design == ZSet && ops != 1 || r.Design == Onsale && ops != 0 {
					t.Errorf("%s asks the store %.3f times a poll", r.Design, ops)
				}
			}
			var table strings.Builder
			if err := WriteQueueTable(&table, results); err != nil || !strings.Contains(table.String(), "overtakes") {
				t.Errorf("%v\n%s", err, table.String())
			}
		})
	}
}

func TestQueueOptionsAreChecked(t *testing.T) {
	good := QueueOptions{Fans: 1000, Designs: []string{Onsale}, Store: StoreMemory, Processes: 1}
	for name, change := range map[string]func(*QueueOptions){
		"too few":                      func(o *QueueOptions) { o.Fans = 3 },
		"no store":                     func(o *QueueOptions) { o.Store = "disk" },
		"another design":               func(o *QueueOptions) { o.Designs = []string{Bare} },
		"processes that share nothing": func(o *QueueOptions) { o.Processes = 3 },
		"no process":                   func(o *QueueOptions) { o.Processes = 0 },
	} {
		o := good
		change(&o)
		if _, err := (&Host{ledger: SQLite, dir: t.TempDir()}).Queue(t.Context(), o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestQueueFaultsAreTold(t *testing.T) {
	good := QueueResult{Design: Onsale, Rate: 5, ActiveMax: 7, AdmittedMax: 5, MaxActiveSeen: 7, Admitted: 1}
	if err := good.Faulty(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*QueueResult){
		"overtake": func(r *QueueResult) { r.Overtakes = 1 },
		"inside":   func(r *QueueResult) { r.MaxActiveSeen++ },
		"within":   func(r *QueueResult) { r.AdmittedMax++ },
		"store":    func(r *QueueResult) { r.StoreOpsPerPoll = 0.001 },
		"nobody":   func(r *QueueResult) { r.Admitted = 0 },
		"errors":   func(r *QueueResult) { r.Errors = 1 },
	} {
		bad := good
		change(&bad)
		if err := bad.Faulty(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		bad.Design = ZSet
		if err := bad.Faulty(); (err != nil) != (name == "errors") {
			t.Errorf("%s of a design that promises nothing: %v", name, err)
		}
	}
}

func TestUntilFree(t *testing.T) {
	asked := 0
	got, err := untilFree(t.Context(), func() (int, error) {
		if asked++; asked < 3 {
			return 0, &fault.Error{Code: fault.NextIn}
		}
		return asked, nil
	})
	if got != 3 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := untilFree(over, func() (int, error) { return 0, &fault.Error{Code: fault.Busy} }); fault.CodeOf(err) != fault.Busy {
		t.Error(err)
	}
	if _, err := untilFree(t.Context(), func() (int, error) { return 0, errors.New("no") }); err == nil {
		t.Error("an error was not told")
	}
}
