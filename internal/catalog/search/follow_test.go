package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/catalog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFollowsTheCatalog(t *testing.T) {
	l := listing("one", "Aurora", start.AddDate(0, 1, 0))
	other := listing("two", "Aurora", start.AddDate(0, 2, 0))
	w := newWorld(t, Options{}, l, other)
	expect := func(what, text string, want ...string) {
		t.Helper()
		if got := w.find(catalog.Query{Text: text}); !slices.Equal(got, want) {
			t.Errorf("%s: %s found %v, want %v", what, text, got, want)
		}
	}
	step := func(edit func(*catalog.Listing)) int {
		t.Helper()
		w.clock.add(2 * time.Second)
		l = changed(l, w.clock.Now(), edit)
		w.store.put(l)
		return w.sync()
	}
	expect("at first", "aurora", "one", "two")
	if n := w.sync(); n != 0 {
		t.Errorf("%d changes where there were none", n)
	}
	if n := step(func(l *catalog.Listing) { l.Event.Title = "北极光" }); n != 1 {
		t.Errorf("%d changes", n)
	}
	expect("a new title", "北极光", "one")
	step(func(l *catalog.Listing) { l.Show.Title = "北极光" })
	expect("the old title", "aurora", "two")
	step(func(l *catalog.Listing) { l.Event.Performers = []string{"Beyoncé"} })
	expect("a performer", "beyonce", "one")

	// A show that changes without its events.
	w.clock.add(2 * time.Second)
	l.Show.Description, l.Show.Updated = "With an orchestra", w.clock.Now()
	w.store.put(l)
	w.sync()
	expect("the show's words", "orchestra", "one")

	step(func(l *catalog.Listing) { l.Event.State = catalog.Paused })
	expect("paused", "北极光", "one")
	step(func(l *catalog.Listing) { l.Event.State = catalog.Cancelled })
	expect("cancelled", "北极光")
	reads := w.store.reads
	w.sync()
	if w.store.reads != reads {
		t.Error("what is not shown is read again and again")
	}
	step(func(l *catalog.Listing) { l.Event.State = catalog.Draft })
	expect("draft", "北极光")
	step(func(l *catalog.Listing) { l.Event.State = catalog.OnSale })
	expect("on sale again", "北极光", "one")
	if w.Count() != 2 {
		t.Errorf("%d events", w.Count())
	}

	// An event that vanishes, or was changed by a clock that is far off, is noticed by the full comparison.
	w.clock.add(overlap + 5*time.Second)
	w.sync()
	w.store.remove(other.Event.ID)
	l = changed(l, start.Add(-time.Hour), func(l *catalog.Listing) { l.Event.Performers = []string{"Radiohat"} })
	w.store.put(l)
	w.sync()
	expect("not yet", "radiohat")
	w.clock.add(fullEvery)
	if n := w.sync(); n != 2 {
		t.Errorf("%d changes", n)
	}
	expect("late, but seen", "radiohat", "one")
	expect("gone", "aurora")
}

// A change whose commit came late, and a node whose clock is behind, fall into the overlap.
func TestOverlap(t *testing.T) {
	w := newWorld(t, Options{})
	w.clock.add(10 * time.Second)
	w.sync()
	late := listing("late", "Aurora", start.AddDate(0, 1, 0))
	late.Event.Updated, late.Show.Updated = w.clock.Now().Add(-overlap), w.clock.Now().Add(-overlap)
	w.store.put(late)
	w.clock.add(time.Second)
	if n := w.sync(); n != 1 {
		t.Errorf("%d changes", n)
	}
}

// An engine that has taken many batches is exchanged; nothing is lost.
func TestManySmallChanges(t *testing.T) {
	all := sample(t)
	w := newWorld(t, Options{}, all...)
	before := w.find(catalog.Query{Text: "oasis"})
	w.store.remove(all[0].Event.ID)
	w.clock.add(fullEvery)
	w.sync()
	extra := listing("extra", "Oasis", start.AddDate(1, 0, 0))
	first := w.engine
	for k := range 2*segmentsMax + 3 {
		w.clock.add(time.Second / 2)
		extra = changed(extra, w.clock.Now(), func(l *catalog.Listing) { l.Event.Title = fmt.Sprint("Oasis number", k) })
		w.store.put(extra)
		w.sync()
		if w.engine.segments > segmentsMax {
			t.Fatalf("%d segments", w.engine.segments)
		}
		if got := w.find(catalog.Query{Text: "oasis"}); len(got) != len(before)+1 {
			t.Fatalf("after %d changes: %v", k, got)
		}
		if got := w.find(catalog.Query{Text: fmt.Sprint("number", k)}); !slices.Equal(got, []string{"extra"}) {
			t.Fatalf("after %d changes the last one found %v", k, got)
		}
	}
	if w.engine == first || len(w.slots) != len(w.entries) {
		t.Errorf("the same engine: %v; %d slots for %d events", w.engine == first, len(w.slots), len(w.entries))
	}
}

// Pages while the index changes: what did not change itself comes exactly once.
func TestPagesWhileTheIndexChanges(t *testing.T) {
	const count = 200
	var all []catalog.Listing
	for k := range count {
		title := "Aurora"
		if k%3 == 0 {
			title = "Lights of Aurora"
		}
		all = append(all, listing(fmt.Sprint("e", k), title, start.Add(time.Duration(k/4)*time.Hour)))
	}
	w := newWorld(t, Options{}, all...)
	seen := map[string]int{}
	q := catalog.Query{Text: "aurora", Max: 7}
	touched := map[string]bool{}
	for page := 0; ; page++ {
		p, err := w.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Events {
			seen[e.Key]++
		}
		if p.Next == (catalog.Cursor{}) {
			break
		}
		q.After = p.Next
		// Between pages some vanish, some move, many others come that have the same word.
		w.clock.add(time.Second)
		k := (page * 37) % count
		touched[all[k].Event.Key] = true
		w.store.put(changed(all[k], w.clock.Now(), func(l *catalog.Listing) { l.Event.State = catalog.Cancelled }))
		for n := range 10 {
			fresh := listing(fmt.Sprint("new", page, n), "Aurora for all", start.Add(time.Duration(n*7)*time.Hour))
			fresh.Event.Updated, fresh.Show.Updated = w.clock.Now(), w.clock.Now()
			w.store.put(fresh)
		}
		w.sync()
	}
	for _, l := range all {
		if n := seen[l.Event.Key]; n > 1 || n == 0 && !touched[l.Event.Key] {
			t.Errorf("%s came %d times", l.Event.Key, n)
		}
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("%s came %d times", key, n)
		}
	}
}

// Searches and changes at once: each search sees an event before or after its change, never neither.
func TestSearchesWhileChanging(t *testing.T) {
	l := listing("one", "Common", start.AddDate(0, 1, 0))
	w := newWorld(t, Options{}, l, listing("two", "Beta", start.AddDate(0, 1, 0)))
	var work sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				p, err := w.Search(context.Background(), catalog.Query{Text: "common"})
				if err != nil || len(p.Events) != 1 {
					t.Errorf("%d found, %v", len(p.Events), err)
					return
				}
			}
		})
	}
	defer work.Wait()
	defer close(stop)
	for k := range segmentsMax + 10 {
		w.clock.add(time.Second / 4)
		l = changed(l, w.clock.Now(), func(l *catalog.Listing) { l.Event.Title = fmt.Sprint("Common ", k) })
		w.store.put(l)
		w.sync()
	}
}

func TestRunFollowsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.store.put(listing("one", "Aurora", start.AddDate(0, 1, 0)))
		ctx, cancel := context.WithCancel(t.Context())
		type round struct {
			changed int
			err     error
		}
		rounds := make(chan round, 100)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(ctx, time.Second, func(changed int, err error) { rounds <- round{changed, err} })
		}()
		if r := <-rounds; r.changed != 1 || r.err != nil {
			t.Errorf("%+v", r)
		}
		w.store.fail(errors.New("away"))
		if r := <-rounds; r.err == nil {
			t.Error("the store was away")
		}
		if got := w.find(catalog.Query{Text: "aurora"}); len(got) != 1 {
			t.Errorf("with the store away: %v", got)
		}
		w.store.fail(nil)
		w.store.put(listing("two", "Aurora", start.AddDate(0, 1, 0)))
		if r := <-rounds; r.changed != 1 || r.err != nil {
			t.Errorf("%+v", r)
		}
		cancel()
		<-ended
	})
}
