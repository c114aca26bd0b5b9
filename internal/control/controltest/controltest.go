// Package controltest is the contract of the ports that the control database serves, as tests. Every adapter runs
// Exercise; keys have keystest.
package controltest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/guard"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/presale"
)

// Ports are what one database serves.
type Ports struct {
	Catalog    catalog.Store
	Identities identity.Store
	People     identity.PeopleStore
	Presale    presale.Store
	Blocks     guard.BlockStore
	Evidence   guard.EvidenceStore
}

// Exercise runs everything. open answers the ports of a fresh, empty database, and again, other handles on the same one.
func Exercise(t *testing.T, open func(t *testing.T) (ports Ports, again func() Ports)) {
	for name, test := range map[string]func(*testing.T, Ports, func() Ports){
		"organizers":   organizers,
		"plans":        plans,
		"events":       events,
		"versions":     versions,
		"keys twice":   takenKeys,
		"query":        query,
		"unsent":       unsent,
		"changes":      changes,
		"customers":    customers,
		"first sight":  firstSight,
		"changed once": changedOnce,

		"presale codes":     presaleCodes,
		"members":           laneMembers,
		"event log":         eventLog,
		"event log at once": eventLogAtOnce,
	} {
		t.Run(name, func(t *testing.T) {
			ports, again := open(t)
			test(t, ports, again)
		})
	}
	for name, test := range gate {
		t.Run("gate/"+name, func(t *testing.T) {
			ports, again := open(t)
			test(t, ports, again)
		})
	}
	for name, test := range people {
		t.Run("people/"+name, func(t *testing.T) {
			ports, again := open(t)
			test(t, ports, again)
		})
	}
}

var ids = id.NewGenerator(3, time.Now, 0, nil)

func next() id.ID { return ids.MustNext(0) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("got %v, want %v", err, target)
	}
}

// at is a time as the stores keep them.
func at(hours int) time.Time {
	return time.Date(2027, 6, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(hours) * time.Hour)
}

type stage struct {
	organizer catalog.Organizer
	show      catalog.Show
	plan      catalog.Plan
}

func setUp(t *testing.T, s catalog.Store) stage {
	t.Helper()
	ctx := t.Context()
	o, err := s.EnsureOrganizer(ctx, catalog.Organizer{ID: next(), Key: "house", Name: "The House"})
	ok(t, err)
	plan := catalog.Plan{Hash: "feed", Organizer: o.ID, Name: "Hall", SeatCount: 12, Body: []byte{1, 2, 0, 3}, Created: at(0)}
	ok(t, s.PutPlan(ctx, plan))
	show := catalog.Show{ID: next(), Organizer: o.ID, Key: "aurora", Title: "Aurora", Performers: []string{"韦礼安", "The B’s"}, Updated: at(0)}
	ok(t, s.PutEvents(ctx, &show, nil, nil))
	return stage{organizer: o, show: show, plan: plan}
}

func (g stage) event(key string, hours int) catalog.Event {
	return catalog.Event{
		Format: catalog.FormatVersion, ID: next(), Organizer: g.organizer.ID, Show: g.show.ID, Key: key, Version: 1,
		State: catalog.OnSale, Title: "Aurora", PlanHash: g.plan.Hash, Starts: at(hours), SaleOpens: at(-100), SaleCloses: at(hours),
		Venue:    catalog.Venue{Name: "Arena", City: "Hamburg", Country: "DE", Zone: "Europe/Berlin"},
		Currency: "EUR", Tiers: []catalog.Tier{{Category: "a", Name: "A ’n’ «B»", Face: 1000}}, HoldTTL: 600_000, Updated: at(0),
	}
}

func organizers(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	first, err := p.Catalog.EnsureOrganizer(ctx, catalog.Organizer{ID: next(), Key: "a", Name: "A"})
	ok(t, err)
	second, err := again().Catalog.EnsureOrganizer(ctx, catalog.Organizer{ID: next(), Key: "a", Name: "other"})
	ok(t, err)
	if first != second {
		t.Errorf("%+v became %+v", first, second)
	}
	all, err := p.Catalog.Organizers(ctx)
	ok(t, err)
	if len(all) != 1 || all[0] != first {
		t.Errorf("organizers: %+v", all)
	}
}

func plans(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	g := setUp(t, p.Catalog)
	_, err := p.Catalog.Plan(ctx, "none")
	want(t, err, catalog.ErrNotFound)
	// The same plan again, by its organizer and by another: one plan, which stays as it is.
	other, err := p.Catalog.EnsureOrganizer(ctx, catalog.Organizer{ID: next(), Key: "other", Name: "Other"})
	ok(t, err)
	changed := g.plan
	changed.Body, changed.Created = []byte{9}, at(1)
	ok(t, p.Catalog.PutPlan(ctx, changed))
	changed.Organizer = other.ID
	ok(t, p.Catalog.PutPlan(ctx, changed))
	got, err := again().Catalog.Plan(ctx, g.plan.Hash)
	ok(t, err)
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", g.plan) {
		t.Errorf("got %+v\nwant %+v", got, g.plan)
	}
	for _, organizer := range []id.ID{g.organizer.ID, other.ID} {
		list, err := p.Catalog.Plans(ctx, organizer)
		ok(t, err)
		if len(list) != 1 || list[0].Hash != g.plan.Hash || list[0].Body != nil {
			t.Errorf("plans of %d: %+v", organizer, list)
		}
	}
}

func events(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	g := setUp(t, p.Catalog)
	late, early := g.event("late", 9), g.event("early", 5)
	ok(t, p.Catalog.PutEvents(ctx, nil, []catalog.Event{late, early}, []string{"aurora arena", "aurora arena"}))
	s := again().Catalog
	got, err := s.Event(ctx, late.ID)
	ok(t, err)
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", late) {
		t.Errorf("got %+v\nwant %+v", got, late)
	}
	of, err := s.EventsOf(ctx, g.show.ID)
	ok(t, err)
	if len(of) != 2 || of[0].ID != early.ID || of[1].ID != late.ID {
		t.Errorf("events of the show: %+v", of)
	}
	show, err := s.Show(ctx, g.show.ID)
	ok(t, err)
	byKey, err := s.ShowByKey(ctx, g.organizer.ID, g.show.Key)
	ok(t, err)
	if !reflect.DeepEqual(show, g.show) || !reflect.DeepEqual(byKey, g.show) {
		t.Errorf("shows %+v and %+v, want %+v", show, byKey, g.show)
	}
	_, err = s.Event(ctx, next())
	want(t, err, catalog.ErrNotFound)
	_, err = s.Show(ctx, next())
	want(t, err, catalog.ErrNotFound)
	shows, err := s.Shows(ctx, g.organizer.ID, 0, 10)
	ok(t, err)
	if len(shows) != 1 || shows[0].ID != g.show.ID {
		t.Errorf("shows of the organizer: %+v", shows)
	}
	for _, none := range []struct{ organizer, after id.ID }{{next(), 0}, {g.organizer.ID, g.show.ID}} {
		shows, err := s.Shows(ctx, none.organizer, none.after, 10)
		ok(t, err)
		if len(shows) != 0 {
			t.Errorf("shows of %d after %d: %+v", none.organizer, none.after, shows)
		}
	}
	_, err = s.ShowByKey(ctx, next(), g.show.Key)
	want(t, err, catalog.ErrNotFound)
}

func versions(t *testing.T, p Ports, _ func() Ports) {
	ctx := t.Context()
	g := setUp(t, p.Catalog)
	one, two := g.event("one", 1), g.event("two", 2)
	ok(t, p.Catalog.PutEvents(ctx, nil, []catalog.Event{one, two}, []string{"", ""}))
	put := func(a, b int64) error {
		x, y := one, two
		x.Version, y.Version, x.State, y.State = a, b, catalog.Paused, catalog.Paused
		return p.Catalog.PutEvents(ctx, nil, []catalog.Event{x, y}, []string{"", ""})
	}
	for _, wrong := range [][2]int64{{1, 2}, {2, 1}, {2, 3}, {3, 2}} {
		want(t, put(wrong[0], wrong[1]), catalog.ErrConflict)
		for _, e := range []catalog.Event{one, two} {
			if got, err := p.Catalog.Event(ctx, e.ID); err != nil || got.Version != 1 || got.State != catalog.OnSale {
				t.Errorf("after a conflict %v half was stored: %+v, %v", wrong, got, err)
			}
		}
	}
	ok(t, put(2, 2))
	want(t, put(2, 2), catalog.ErrConflict)
}

func takenKeys(t *testing.T, p Ports, _ func() Ports) {
	ctx := t.Context()
	g := setUp(t, p.Catalog)
	ok(t, p.Catalog.PutEvents(ctx, nil, []catalog.Event{g.event("one", 1)}, []string{""}))
	want(t, p.Catalog.PutEvents(ctx, nil, []catalog.Event{g.event("one", 2)}, []string{""}), catalog.ErrConflict)
	show := catalog.Show{ID: next(), Organizer: g.organizer.ID, Key: g.show.Key, Title: "Another"}
	want(t, p.Catalog.PutEvents(ctx, &show, nil, nil), catalog.ErrConflict)
	// Another organizer may use the same names.
	other, err := p.Catalog.EnsureOrganizer(ctx, catalog.Organizer{ID: next(), Key: "other", Name: "Other"})
	ok(t, err)
	show.Organizer = other.ID
	e := g.event("one", 3)
	e.Organizer, e.Show = other.ID, show.ID
	ok(t, p.Catalog.PutEvents(ctx, &show, []catalog.Event{e}, []string{""}))
}

func query(t *testing.T, p Ports, _ func() Ports) {
	ctx := t.Context()
	g := setUp(t, p.Catalog)
	var all []catalog.Event
	var search []string
	for i := range 7 {
		e := g.event(fmt.Sprint("e", i), i/2) // pairs start together: the id decides
		text := "aurora arena hamburg 100%_"
		if i == 3 {
			e.Venue.City, text = "München", "aurora olympiahalle münchen 春节"
		}
		if i == 6 {
			e.State = catalog.Draft
		}
		all, search = append(all, e), append(search, text)
	}
	ok(t, p.Catalog.PutEvents(ctx, nil, all, search))
	for name, c := range map[string]struct {
		q    catalog.Query
		want []int
	}{
		"all":                {catalog.Query{}, []int{0, 1, 2, 3, 4, 5}},
		"drafts":             {catalog.Query{Drafts: true}, []int{0, 1, 2, 3, 4, 5, 6}},
		"words":              {catalog.Query{Text: "aurora münch"}, []int{3}},
		"chinese":            {catalog.Query{Text: "春"}, []int{3}},
		"no jokers":          {catalog.Query{Text: "a%a"}, nil},
		"percent":            {catalog.Query{Text: "100%_"}, []int{0, 1, 2, 4, 5}},
		"quote":              {catalog.Query{Text: `' OR '1'='1`}, nil},
		"no accent in words": {catalog.Query{Text: "AURORA munch"}, []int{3}},
		"accents":            {catalog.Query{City: "munchen"}, []int{3}},
		"full form":          {catalog.Query{City: "ＭÜＮＣＨＥＮ"}, []int{3}},
		"city":               {catalog.Query{City: "münchen"}, []int{3}},
		"window":             {catalog.Query{From: at(1), To: at(2)}, []int{2, 3}},
		"organizer":          {catalog.Query{Organizer: next()}, nil},
		"after":              {catalog.Query{After: catalog.Cursor{Starts: at(1), Event: all[2].ID}, Max: 2}, []int{3, 4}},
	} {
		if c.q.Max == 0 {
			c.q.Max = 50
		}
		got, err := p.Catalog.Events(ctx, c.q)
		ok(t, err)
		var numbers []int
		for _, e := range got {
			numbers = append(numbers, slices.IndexFunc(all, func(x catalog.Event) bool { return x.ID == e.ID }))
		}
		if !slices.Equal(numbers, c.want) {
			t.Errorf("%s: got %v, want %v", name, numbers, c.want)
		}
	}
}

func unsent(t *testing.T, p Ports, _ func() Ports) {
	ctx := t.Context()
	g := setUp(t, p.Catalog)
	one, two := g.event("one", 2), g.event("two", 1)
	ok(t, p.Catalog.PutEvents(ctx, nil, []catalog.Event{one, two}, []string{"", ""}))
	list := func(after id.ID, max int) (found []id.ID) {
		t.Helper()
		events, err := p.Catalog.Unsent(ctx, after, max)
		ok(t, err)
		for _, e := range events {
			found = append(found, e.ID)
		}
		return found
	}
	if got := list(0, 10); !slices.Equal(got, []id.ID{one.ID, two.ID}) {
		t.Errorf("unsent: %v", got)
	}
	if got := list(one.ID, 10); !slices.Equal(got, []id.ID{two.ID}) {
		t.Errorf("unsent after the first: %v", got)
	}
	if got := list(0, 1); !slices.Equal(got, []id.ID{one.ID}) {
		t.Errorf("unsent, at most one: %v", got)
	}
	ok(t, p.Catalog.MarkSent(ctx, one.ID, 1))
	if got := list(0, 10); !slices.Equal(got, []id.ID{two.ID}) {
		t.Errorf("unsent after one was sent: %v", got)
	}
	one.Version = 2
	ok(t, p.Catalog.PutEvents(ctx, nil, []catalog.Event{one}, []string{""}))
	ok(t, p.Catalog.MarkSent(ctx, one.ID, 1)) // an old answer that comes late
	if got := list(0, 10); len(got) != 2 {
		t.Errorf("a late answer hides a newer version: %v", got)
	}
}

func customers(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	annOf := identity.Named{Issuer: "iss", Sub: "ann"}
	_, err := p.Identities.Customer(ctx, annOf)
	want(t, err, identity.ErrUnknown)
	ann := next()
	got, err := p.Identities.PutCustomer(ctx, annOf, ann)
	ok(t, err)
	if got != ann {
		t.Errorf("ann is %d, want %d", got, ann)
	}
	if got, err := again().Identities.PutCustomer(ctx, annOf, next()); err != nil || got != ann {
		t.Errorf("ann again is %d, %v; want %d", got, err, ann)
	}
	if got, err := again().Identities.Customer(ctx, annOf); err != nil || got != ann {
		t.Errorf("ann is read as %d, %v; want %d", got, err, ann)
	}
	for _, other := range [][2]string{{"other", "ann"}, {"iss", "Ann"}, {"iss", "ann "}, {"is", "sann"}} {
		if got, err := p.Identities.PutCustomer(ctx, identity.Named{Issuer: other[0], Sub: other[1]}, next()); err != nil || got == ann {
			t.Errorf("%q is ann too (%v)", other, err)
		}
	}
}

// firstSight has many handles meet the same new customers at once.
func firstSight(t *testing.T, p Ports, again func() Ports) {
	handles := []identity.Store{p.Identities, again().Identities, again().Identities}
	const subs, callers = 40, 12
	var wg sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]map[id.ID]bool{}
	for c := range callers {
		for i := range subs {
			sub := fmt.Sprint("sub-", (i*7+c*13)%subs)
			wg.Go(func() {
				got, err := handles[c%len(handles)].PutCustomer(context.Background(), identity.Named{Issuer: "iss", Sub: sub}, next())
				if err != nil {
					t.Errorf("%s: %v", sub, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if answers[sub] == nil {
					answers[sub] = map[id.ID]bool{}
				}
				answers[sub][got] = true
			})
		}
	}
	wg.Wait()
	all := map[id.ID]bool{}
	for sub, found := range answers {
		if len(found) != 1 {
			t.Errorf("%s is %d customers", sub, len(found))
		}
		for customer := range found {
			all[customer] = true
		}
	}
	if len(all) != subs {
		t.Errorf("%d customers for %d people", len(all), subs)
	}
}

// changedOnce has many handles change one event at once: each version is made by one of them.
func changedOnce(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	g := setUp(t, p.Catalog)
	e := g.event("one", 1)
	ok(t, p.Catalog.PutEvents(ctx, nil, []catalog.Event{e}, []string{""}))
	handles := []catalog.Store{p.Catalog, again().Catalog}
	const versions = 10
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := map[int64]int{}
	for c := range 4 {
		wg.Go(func() {
			for v := int64(2); v <= versions; v++ {
				mine := e
				mine.Version = v
				switch err := handles[c%len(handles)].PutEvents(ctx, nil, []catalog.Event{mine}, []string{""}); {
				case err == nil:
					mu.Lock()
					won[v]++
					mu.Unlock()
				case !errors.Is(err, catalog.ErrConflict):
					t.Errorf("version %d: %v", v, err)
				}
			}
		})
	}
	wg.Wait()
	last, err := p.Catalog.Event(ctx, e.ID)
	ok(t, err)
	for v := int64(2); v <= last.Version; v++ {
		if won[v] != 1 {
			t.Errorf("version %d was made %d times", v, won[v])
		}
	}
	if len(won) != int(last.Version)-1 {
		t.Errorf("%d versions were made, the last is %d", len(won), last.Version)
	}
}
