package search

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/control"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// deaf is a ledger that takes everything.
type deaf struct{}

func (deaf) Do(context.Context, ledger.Command) (ledger.Result, error) { return ledger.Result{}, nil }

// database is a fresh catalog on disk, with an organizer and a plan.
func database(t testing.TB) (catalog.Store, *catalog.Service, id.ID, string) {
	t.Helper()
	db, err := control.OpenSQLite(context.Background(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s := catalog.New(catalog.Options{Store: db.Catalog(), Ledger: deaf{}, NewID: id.NewGenerator(0, time.Now, 0, nil).Next})
	o, err := s.EnsureOrganizer(context.Background(), "house", "The House")
	if err != nil {
		t.Fatal(err)
	}
	hash, err := s.PutPlan(context.Background(), o.ID, venue.Generate(venue.GenerateOptions{Seats: 300, Seed: 1}))
	if err != nil {
		t.Fatal(err)
	}
	return db.Catalog(), s, o.ID, hash
}

// What is imported, renamed and cancelled through the catalog is found, found otherwise and not found on each node, after
// one look.
func TestFollowsADatabase(t *testing.T) {
	store, made, organizer, hash := database(t)
	ctx := t.Context()
	plan, err := made.Plan(ctx, hash)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*Index
	var services []*catalog.Service
	for range 2 {
		x, err := New(Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { x.Close() })
		nodes = append(nodes, x)
		services = append(services, catalog.New(catalog.Options{Store: store, Ledger: deaf{}, Search: x, NewID: id.NewGenerator(1, time.Now, 0, nil).Next}))
	}
	expect := func(what, text string, want ...string) {
		t.Helper()
		for i, x := range nodes {
			if _, err := x.Sync(ctx); err != nil {
				t.Fatal(err)
			}
			page, err := services[i].Events(ctx, catalog.Query{Text: text})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range page.Events {
				got = append(got, e.Key)
			}
			if !slices.Equal(got, want) {
				t.Errorf("node %d, %s: %s found %v, want %v", i, what, text, got, want)
			}
		}
	}
	starts := time.Now().Add(30 * 24 * time.Hour).UTC().Truncate(time.Second)
	event := func(key string, state catalog.State) catalog.Event {
		return catalog.Event{Key: key, State: state, Title: "林晚风「星河入梦」音乐会", Performers: []string{"林晚风"}, PlanHash: hash, Starts: starts, SaleOpens: starts.Add(-time.Hour), SaleCloses: starts,
			Venue: catalog.Venue{Name: "海港体育馆", City: "上海", Country: "CN", Zone: "Asia/Shanghai"}, Currency: "CNY", Tiers: []catalog.Tier{{Category: plan.Categories[0].Key, Name: "A", Face: 100}},
			SeatsPerHoldMax: 4, HoldTTL: catalog.DefaultHoldTTL, PaymentWindow: catalog.DefaultPaymentWindow, Orphans: catalog.Orphans{Mode: catalog.OrphansWarn}}
	}
	expect("nothing yet", "林晚风")
	in := catalog.Import{Show: catalog.Show{Key: "stars", Title: "星河入梦", Performers: []string{"林晚风"}}, Events: []catalog.Event{event("one", catalog.OnSale), event("two", catalog.Draft)}}
	done, err := made.Import(ctx, organizer, in)
	if err != nil {
		t.Fatal(err)
	}
	expect("imported", "林晚风", "one")
	if _, err := made.Change(ctx, done[1].Event.ID, catalog.VerbOpen); err != nil {
		t.Fatal(err)
	}
	expect("opened", "星河入梦", "one", "two")
	in.Show.Title, in.Events = "银河之夜", in.Events[:1]
	if _, err := made.Import(ctx, organizer, in); err != nil {
		t.Fatal(err)
	}
	expect("renamed", "银河之夜", "one", "two") // also the event that the import does not have
	if _, err := made.Change(ctx, done[0].Event.ID, catalog.VerbCancel); err != nil {
		t.Fatal(err)
	}
	expect("cancelled", "林晚风", "two")
}

// BenchmarkBuild reports how long a node takes to read 20,000 events from SQLite into its index, how long a look takes that
// finds nothing new, by the latest changes and in full, and what the index weighs.
func BenchmarkBuild(b *testing.B) {
	ctx := context.Background()
	store, _, organizer, hash := database(b)
	for _, l := range programme(20_000, 1) {
		l.Event.Organizer, l.Show.Organizer, l.Event.PlanHash, l.Show.Key = organizer, organizer, hash, fmt.Sprint("show-", l.Show.ID)
		if err := store.PutEvents(ctx, &l.Show, []catalog.Event{l.Event}, []string{""}); err != nil {
			b.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		c := &clock{now: start.Add(24 * time.Hour)}
		x, err := New(Options{Store: store, Now: c.Now})
		if err != nil {
			b.Fatal(err)
		}
		measure := func(name string, want int) {
			began := time.Now()
			if n, err := x.Sync(ctx); err != nil || n != want {
				b.Fatal(n, err)
			}
			b.ReportMetric(float64(time.Since(began).Milliseconds()), name)
		}
		measure("build-ms", 20_000)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
		c.add(2 * overlap / 3)
		measure("look-ms", 0)
		c.add(2 * fullEvery)
		measure("full-look-ms", 0)
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
