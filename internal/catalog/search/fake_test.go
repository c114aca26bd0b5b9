package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/id"
)

// store is the part of a catalog that search reads. Its methods answer as controltest says.
type store struct {
	catalog.Store
	mu       sync.Mutex
	listings map[id.ID]catalog.Listing
	away     error
	reads    int // listings read
}

func newStore() *store { return &store{listings: map[id.ID]catalog.Listing{}} }

func (s *store) put(listings ...catalog.Listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range listings {
		s.listings[l.Event.ID] = l
	}
}

func (s *store) remove(event id.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listings, event)
}

func (s *store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = err
}

func (s *store) Versions(_ context.Context, since time.Time, after id.ID, most int) ([]catalog.EventVersion, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []catalog.EventVersion
	for _, l := range s.listings {
		if l.Event.ID > after && (!l.Event.Updated.Before(since) || !l.Show.Updated.Before(since)) {
			all = append(all, catalog.EventVersion{Event: l.Event.ID, Version: l.Event.Version, ShowUpdated: l.Show.Updated})
		}
	}
	slices.SortFunc(all, func(a, b catalog.EventVersion) int { return cmp.Compare(a.Event, b.Event) })
	return all[:min(len(all), most)], s.away
}

func (s *store) Listings(_ context.Context, events []id.ID) ([]catalog.Listing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(events) > catalog.ListingsMax {
		return nil, fmt.Errorf("%d listings at once", len(events))
	}
	var all []catalog.Listing
	for _, event := range events {
		if l, there := s.listings[event]; there {
			all = append(all, l)
			s.reads++
		}
	}
	return all, s.away
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

var start = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)

// world is an index over a store that tests change.
type world struct {
	*Index
	t     testing.TB
	store *store
	clock *clock
}

func newWorld(t testing.TB, options Options, listings ...catalog.Listing) *world {
	t.Helper()
	w := &world{t: t, store: newStore(), clock: &clock{now: start}}
	w.store.put(listings...)
	options.Store, options.Now, options.Log = w.store, w.clock.Now, slog.New(slog.DiscardHandler)
	x, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	w.Index = x
	w.sync()
	return w
}

func (w *world) sync() int {
	w.t.Helper()
	changed, err := w.Sync(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return changed
}

// find answers the keys of all pages of a query.
func (w *world) find(q catalog.Query) []string {
	w.t.Helper()
	var keys []string
	for {
		p, err := w.Search(context.Background(), q)
		if err != nil {
			w.t.Fatalf("%+v: %v", q, err)
		}
		for _, e := range p.Events {
			keys = append(keys, e.Key)
		}
		if p.Next == (catalog.Cursor{}) {
			return keys
		}
		if q.After, err = catalog.ParseCursor(p.Next.String()); err != nil || q.After != p.Next {
			w.t.Fatalf("the cursor %+v came back as %+v, %v", p.Next, q.After, err)
		}
	}
}

var lastID id.ID

// listing is one event of a show of its own.
func listing(key, title string, starts time.Time) catalog.Listing {
	lastID += 2
	return catalog.Listing{
		Event: catalog.Event{ID: lastID, Show: lastID + 1, Organizer: 1, Key: key, Version: 1, State: catalog.OnSale, Title: title, Starts: starts,
			SaleOpens: start.Add(-time.Hour), SaleCloses: starts, Updated: start,
			Venue: catalog.Venue{Name: "Hall", City: "Hamburg", Country: "DE", Zone: "Europe/Berlin"}},
		Show: catalog.Show{ID: lastID + 1, Organizer: 1, Key: key, Title: title, Updated: start},
	}
}

// changed is a listing with its next version.
func changed(l catalog.Listing, at time.Time, edit func(*catalog.Listing)) catalog.Listing {
	edit(&l)
	l.Event.Version++
	l.Event.Updated = at
	return l
}

// sample is our own small programme list, with the traits of real ones.
func sample(t testing.TB) []catalog.Listing {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "events.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Key, Title, Venue, City, Zone, Starts, Description string
		State                                              catalog.State
		Performers                                         []string
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	var all []catalog.Listing
	for _, r := range rows {
		zone, err := catalog.LoadZone(r.Zone)
		if err != nil {
			t.Fatal(err)
		}
		starts, err := catalog.ParseTime(r.Starts, zone)
		if err != nil {
			t.Fatal(err)
		}
		l := listing(r.Key, r.Title, starts)
		l.Event.Venue = catalog.Venue{Name: r.Venue, City: r.City, Country: "XX", Zone: r.Zone}
		l.Event.Performers, l.Show.Performers, l.Show.Description = r.Performers, r.Performers, r.Description
		if r.State != "" {
			l.Event.State = r.State
		}
		all = append(all, l)
	}
	return all
}
