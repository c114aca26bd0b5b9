package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/catalog/eventfile"
	"onsale/internal/control"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
	"onsale/internal/venue"
)

// books is a ledger that knows only SetEvent, refuses what the real ones refuse, and can be away.
type books struct {
	mu       sync.Mutex
	events   map[id.ID]ledger.Event
	layouts  int
	commands int
	away     error
}

func (b *books) Do(_ context.Context, command ledger.Command) (ledger.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.commands++
	if b.away != nil {
		return ledger.Result{}, b.away
	}
	c := command.(ledger.SetEvent)
	refuse := func(f *fault.Error) (ledger.Result, error) { return ledger.Result{Fault: f}, f } // both, as the batcher says it
	old, there := b.events[c.Event.ID]
	switch {
	case there && c.Event.Version < old.Version:
		return refuse(fault.New(fault.Conflict, "older"))
	case there && c.Event.Version == old.Version:
		return ledger.Result{Repeat: true}, nil
	case !there && c.Layout == nil:
		return refuse(&fault.Error{Code: fault.Invalid, Field: "layout"})
	}
	if err := decide.Validate(&c.Event, c.Layout); err != nil {
		return refuse(fault.Of(err))
	}
	if !there {
		b.layouts++
	}
	b.events[c.Event.ID] = c.Event
	return ledger.Result{}, nil
}

func (b *books) event(e id.ID) ledger.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.events[e]
}

type world struct {
	*catalog.Service
	store     catalog.Store
	books     *books
	plan      *venue.Plan
	hash      string
	organizer id.ID
	now       time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db, err := control.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	w := &world{store: db.Catalog(), books: &books{events: map[id.ID]ledger.Event{}}, now: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.Service = w.service(w.store)
	o, err := w.EnsureOrganizer(t.Context(), "house", "The House")
	if err != nil {
		t.Fatal(err)
	}
	w.organizer = o.ID
	w.plan = venue.Generate(venue.GenerateOptions{Seats: 300, Seed: 1})
	if w.hash, err = w.PutPlan(t.Context(), o.ID, w.plan); err != nil {
		t.Fatal(err)
	}
	return w
}

// service is another node on the same database and ledger.
func (w *world) service(store catalog.Store) *catalog.Service {
	return catalog.New(catalog.Options{Store: store, Ledger: w.books, NewID: id.NewGenerator(0, time.Now, 0, nil).Next,
		Now: func() time.Time { return w.now }})
}

// file is an event file of this world's plan.
func (w *world) file(t *testing.T, edit func(text string) string) catalog.Import {
	t.Helper()
	text := fmt.Sprintf(`
venue: {name: Hall, city: Hamburg, country: DE, zone: Europe/Berlin, plan: %s}
show: {key: aurora, title: Aurora}
currency: EUR
tiers:
  - {category: %s, name: First, face: "50.00", fee: "2.50", tax_percent: 7}
sale: {opens: 2027-03-01T10:00}
limits: {event: 4, show: 6, document: 1, categories: {%[2]s: 2}}
quotas: [{section: %s, on_sale_max: 10, steps: [{at: 2027-04-01T10:00, on_sale_max: 20}]}]
performances:
  - {key: one, starts: 2027-06-12T20:00}
  - {key: two, starts: 2027-06-13T20:00, state: draft}
`, w.hash, w.plan.Categories[0].Key, w.plan.Sections[0].Key)
	if edit != nil {
		text = edit(text)
	}
	f, err := eventfile.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	hash, ok := f.PlanHash()
	if !ok {
		t.Fatalf("plan %q", f.Plan)
	}
	return f.Import(hash)
}

func (w *world) mustImport(t *testing.T, edit func(string) string) []catalog.Imported {
	t.Helper()
	done, err := w.Import(t.Context(), w.organizer, w.file(t, edit))
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func actions(done []catalog.Imported) string {
	var all []string
	for _, d := range done {
		all = append(all, fmt.Sprint(d.Event.Key, " ", d.Action, " ", d.Event.Version))
	}
	return strings.Join(all, ", ")
}

func TestImportTwiceChangesNothing(t *testing.T) {
	w := newWorld(t)
	first := w.mustImport(t, nil)
	if got := actions(first); got != "one created 1, two created 1" {
		t.Fatal(got)
	}
	if again := w.mustImport(t, nil); actions(again) != "one unchanged 1, two unchanged 1" || again[0].Event.ID != first[0].Event.ID {
		t.Error(actions(again))
	}
	if w.books.layouts != 2 || len(w.books.events) != 2 {
		t.Errorf("%d layouts, %d events in the ledger", w.books.layouts, len(w.books.events))
	}
	dearer := w.mustImport(t, func(s string) string { return strings.Replace(s, "50.00", "55.00", 1) })
	if got := actions(dearer); got != "one updated 2, two updated 2" {
		t.Error(got)
	}
	if got := w.books.event(first[0].Event.ID); got.Version != 2 || got.Tiers[0].Face != 5500 {
		t.Errorf("the ledger has %+v", got)
	}
	renamed := w.mustImport(t, func(s string) string {
		return strings.Replace(strings.Replace(s, "50.00", "55.00", 1), "title: Aurora", "title: Borealis", 1)
	})
	if got := actions(renamed); got != "one updated 3, two updated 3" {
		t.Error(got)
	}
	page, err := w.Events(t.Context(), catalog.Query{Text: "BOREALIS hall"})
	if err != nil || len(page.Events) != 1 || page.Events[0].Key != "one" {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestTheLedgerIsToldAll(t *testing.T) {
	w := newWorld(t)
	done := w.mustImport(t, nil)
	got := w.books.event(done[0].Event.ID)
	at := func(s string) ledger.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return ledger.TimeOf(v)
	}
	want := ledger.Event{
		ID: done[0].Event.ID, Organizer: w.organizer, Show: done[0].Event.Show, Version: 1, State: ledger.OnSale, PlanHash: w.hash,
		SaleOpens: at("2027-03-01T09:00:00Z"), SaleCloses: at("2027-06-12T18:00:00Z"),
		HoldTTL: 600_000, PaymentWindow: 300_000, ExtendMax: 1, SeatsPerHoldMax: 4, Currency: "EUR", TaxIncluded: true,
		Tiers: []ledger.Tier{{Category: 0, Name: "First", Face: 5000, Fee: 250, TaxBP: 700}},
		Limits: []ledger.Limit{{Scope: ledger.PerEvent, Max: 4}, {Scope: ledger.PerCategory, Category: 0, Max: 2},
			{Scope: ledger.PerShow, Max: 6}, {Scope: ledger.PerDocument, Max: 1}},
		Quotas:  []ledger.Quota{{Category: -1, Section: 0, Max: 10, Steps: []ledger.QuotaStep{{At: at("2027-04-01T08:00:00Z"), Max: 20}}}},
		Holding: ledger.HoldingRule{UnpaidMax: 3, Rest: 600_000, SeatRest: 60_000},
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if draft := w.books.event(done[1].Event.ID); draft.State != ledger.Draft {
		t.Errorf("the draft is %s", draft.State)
	}
}

func TestLedgerLayout(t *testing.T) {
	plan := venue.Generate(venue.GenerateOptions{Seats: 2000, Seed: 3})
	l, err := catalog.LedgerLayout(plan, plan.Hash())
	if err != nil {
		t.Fatal(err)
	}
	layout := plan.Layout()
	for i := range plan.Seats {
		if int(l.Section[i]) != plan.SectionOf(int32(i)) || l.Category[i] != plan.Seats[i].Category || l.Quality[i] != layout.Quality[i] {
			t.Fatalf("seat %d differs", i)
		}
		if i > 0 && layout.Joined.Has(int32(i)) != (l.Run[i] == l.Run[i-1]) {
			t.Fatalf("seats %d and %d: joined %v, runs %d and %d", i-1, i, layout.Joined.Has(int32(i)), l.Run[i-1], l.Run[i])
		}
	}
	if len(l.Areas) != len(plan.Areas) || len(l.Areas) == 0 || l.Areas[0].Capacity != plan.Areas[0].Capacity {
		t.Errorf("areas %+v", l.Areas)
	}
}

func TestImportRefusesAllAtOnceAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.mustImport(t, nil)
	in := w.file(t, func(s string) string {
		s = strings.Replace(s, "currency: EUR", "currency: CHF", 1)
		s = strings.Replace(s, "{category: "+w.plan.Categories[0].Key+", name", "{category: nowhere, name", 1)
		return strings.Replace(s, "key: two", "key: one", 1)
	})
	in.Events[0].PlanHash = strings.Repeat("0", 64)
	_, err := w.Import(t.Context(), w.organizer, in)
	var refused *catalog.RefusedError
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"performances[0].plan: an event keeps its plan", "performances[0].plan: there is no plan \"0000", "name the plan's file in the event's file",
		"performances[0].currency: an event keeps its currency (EUR)", "performances[1].key: \"one\" is there twice",
		"performances[1].tiers[0].category: the plan has no category \"nowhere\"; it has ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
	if again := w.mustImport(t, nil); actions(again) != "one unchanged 1, two unchanged 1" {
		t.Errorf("the refused import changed something: %s", actions(again))
	}
}

func TestVerbs(t *testing.T) {
	w := newWorld(t)
	done := w.mustImport(t, nil)
	scheduled, draft := done[0].Event.ID, done[1].Event.ID
	do := func(e id.ID, verb catalog.Verb, want catalog.State, version int64) {
		t.Helper()
		got, err := w.Change(t.Context(), e, verb)
		if err != nil {
			t.Fatalf("%s: %v", verb, err)
		}
		if state := got.StateAt(w.now, 0, false); state != want || got.Version != version {
			t.Fatalf("%s: %s, version %d; want %s, %d", verb, state, got.Version, want, version)
		}
		if l := w.books.event(e); l.Version != version {
			t.Fatalf("%s: the ledger has version %d", verb, l.Version)
		}
	}
	refuse := func(e id.ID, verbs ...catalog.Verb) {
		t.Helper()
		before := w.books.event(e)
		for _, verb := range verbs {
			if got, err := w.Change(t.Context(), e, verb); fault.CodeOf(err) != fault.Conflict {
				t.Errorf("%s: %+v, %v; want conflict", verb, got, err)
			}
		}
		if after := w.books.event(e); after.Version != before.Version {
			t.Errorf("a refused verb changed the ledger")
		}
	}
	refuse(draft, catalog.VerbPause, catalog.VerbResume, catalog.VerbClose)
	do(scheduled, catalog.VerbPause, catalog.Paused, 2)
	do(scheduled, catalog.VerbPause, catalog.Paused, 2) // again: nothing
	refuse(scheduled, catalog.VerbOpen)
	do(scheduled, catalog.VerbResume, catalog.Scheduled, 3)
	do(scheduled, catalog.VerbOpen, catalog.OnSale, 4)
	if opens := w.books.event(scheduled).SaleOpens; opens != ledger.TimeOf(w.now) {
		t.Errorf("opened at %s", opens.Std())
	}
	do(scheduled, catalog.VerbOpen, catalog.OnSale, 4)
	do(scheduled, catalog.VerbClose, catalog.Ended, 5)
	refuse(scheduled, catalog.VerbOpen, catalog.VerbPause, catalog.VerbResume)
	do(scheduled, catalog.VerbCancel, catalog.Cancelled, 6)
	do(scheduled, catalog.VerbCancel, catalog.Cancelled, 6)
	refuse(scheduled, catalog.VerbOpen, catalog.VerbPause, catalog.VerbResume, catalog.VerbClose)

	do(draft, catalog.VerbOpen, catalog.OnSale, 2)
	w.now = time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)
	refuse(draft, catalog.VerbOpen, catalog.VerbPause)
	if _, err := w.Change(t.Context(), 4711, catalog.VerbOpen); fault.CodeOf(err) != fault.EventUnknown {
		t.Errorf("an event that is not there: %v", err)
	}
	// An import does not open what was closed by hand.
	if again := w.mustImport(t, nil); again[0].Event.State != catalog.Cancelled || again[1].Event.State != catalog.OnSale {
		t.Errorf("after an import: %s, %s", again[0].Event.State, again[1].Event.State)
	}
}

// A sale that was opened by hand before its time stays open, whatever its file says is imported again.
func TestAnImportDoesNotCloseWhatWasOpenedEarly(t *testing.T) {
	w := newWorld(t)
	event := w.mustImport(t, nil)[0].Event.ID
	later := func(text string) string {
		return strings.Replace(text, "opens: 2027-03-01T10:00", "opens: 2027-03-02T10:00", 1)
	}
	moved := w.mustImport(t, later)[0].Event // before it has begun an opening can still be moved
	if !moved.SaleOpens.Equal(time.Date(2027, 3, 2, 9, 0, 0, 0, time.UTC)) {
		t.Fatalf("it opens at %s", moved.SaleOpens)
	}
	if _, err := w.Change(t.Context(), event, catalog.VerbOpen); err != nil {
		t.Fatal(err)
	}
	opened := w.now
	w.now = w.now.Add(time.Hour)
	for name, edit := range map[string]func(string) string{
		"the same file":  later,
		"another price":  func(text string) string { return strings.Replace(later(text), `"50.00"`, `"55.00"`, 1) },
		"a later moment": func(text string) string { return strings.Replace(text, "opens: 2027-03-01", "opens: 2027-03-09", 1) },
	} {
		e := w.mustImport(t, edit)[0].Event
		if e.StateAt(w.now, 0, false) != catalog.OnSale || !e.SaleOpens.Equal(opened) || w.books.event(event).SaleOpens != ledger.TimeOf(opened) {
			t.Errorf("%s: it is %s and opens at %s", name, e.StateAt(w.now, 0, false), e.SaleOpens)
		}
	}
	// The other one has not begun: its opening is the file's.
	if e := w.mustImport(t, later)[1].Event; !e.SaleOpens.Equal(moved.SaleOpens) {
		t.Errorf("the other one opens at %s", e.SaleOpens)
	}
	e := w.mustImport(t, func(text string) string { return strings.Replace(text, "opens: 2027-03-01", "opens: 2026-12-01", 1) })[0].Event
	if !e.SaleOpens.Equal(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)) {
		t.Errorf("an earlier one is not taken over: %s", e.SaleOpens)
	}
}

func TestACrashBetweenTheTwoWritesHeals(t *testing.T) {
	w := newWorld(t)
	w.books.away = errors.New("away")
	if _, err := w.Import(t.Context(), w.organizer, w.file(t, nil)); err == nil {
		t.Fatal("the ledger is away and nobody says so")
	}
	page, err := w.Events(t.Context(), catalog.Query{Drafts: true})
	if err != nil || len(page.Events) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	one := page.Events[0].ID
	if _, err := w.Change(t.Context(), one, catalog.VerbPause); err == nil {
		t.Error("the ledger is away and nobody says so")
	}
	w.books.away = nil
	// The program starts again. The ledger never heard of version 1, so that version 2 brings the seats.
	node := w.service(w.store)
	if sent, err := node.Heal(t.Context()); sent != 2 || err != nil {
		t.Errorf("healed %d, %v", sent, err)
	}
	if got := w.books.event(one); got.Version != 2 || got.State != ledger.Paused || w.books.layouts != 2 {
		t.Errorf("the ledger has %+v, %d layouts", got, w.books.layouts)
	}
	commands := w.books.commands
	if sent, err := node.Heal(t.Context()); sent != 0 || err != nil || w.books.commands != commands {
		t.Errorf("healed again: %d, %v", sent, err)
	}
	// A ledger restored from an old backup has lost an event that the catalog believes to be sent.
	delete(w.books.events, one)
	if sent, refused, err := node.Restore(t.Context()); sent != 2 || len(refused) != 0 || err != nil {
		t.Errorf("restored %d, %v, %v", sent, refused, err)
	}
	if got := w.books.event(one); got.Version != 2 {
		t.Errorf("the ledger has %+v", got)
	}
	// One that the ledger will not have holds up no other; a ledger that is away is another matter.
	two := page.Events[1].ID
	delete(w.books.events, two)
	w.books.events[one] = ledger.Event{ID: one, Version: 9}
	sent, refused, err := node.Restore(t.Context())
	if sent != 1 || len(refused) != 1 || refused[0].Event != one || fault.CodeOf(refused[0]) != fault.Conflict || err != nil {
		t.Errorf("restored %d, %v, %v", sent, refused, err)
	}
	if got := w.books.event(two); got.Version != 1 {
		t.Errorf("the ledger has %+v", got)
	}
	w.books.away = &fault.Error{Code: fault.Busy}
	if sent, refused, err := node.Restore(t.Context()); sent != 0 || len(refused) != 0 || fault.CodeOf(err) != fault.Busy {
		t.Errorf("with the ledger away: %d, %v, %v", sent, refused, err)
	}
}

func TestHealingGoesOnByItself(t *testing.T) {
	w := newWorld(t)
	w.books.away = errors.New("away")
	if _, err := w.Import(t.Context(), w.organizer, w.file(t, nil)); err == nil {
		t.Fatal("the ledger is away and nobody says so")
	}
	unsent, err := w.store.Unsent(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		node := w.service(&memoryStore{Store: w.store, unsent: unsent, plan: w.stored(t)})
		ctx, stop := context.WithCancel(t.Context())
		rounds := make(chan string, 10)
		var wg sync.WaitGroup
		wg.Go(func() {
			node.Run(ctx, time.Minute, func(sent int, err error) { rounds <- fmt.Sprint(sent, err != nil) })
		})
		if got := <-rounds; got != "0 true" {
			t.Errorf("first round: %s", got)
		}
		w.books.mu.Lock()
		w.books.away = nil
		w.books.mu.Unlock()
		if got := <-rounds; got != "2 false" {
			t.Errorf("second round: %s", got)
		}
		stop()
		wg.Wait()
	})
}

// memoryStore answers from memory, for tests that own the clock.
type memoryStore struct {
	catalog.Store
	unsent []catalog.Event
	plan   catalog.Plan
}

func (w *world) stored(t *testing.T) catalog.Plan {
	p, err := w.store.Plan(context.Background(), w.hash)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (m *memoryStore) Unsent(context.Context, id.ID, int) ([]catalog.Event, error) {
	return m.unsent, nil
}
func (m *memoryStore) Plan(context.Context, string) (catalog.Plan, error) { return m.plan, nil }
func (m *memoryStore) MarkSent(context.Context, id.ID, int64) error       { return nil }

// brokenStore is a control database that is away.
type brokenStore struct {
	catalog.Store
	mu    sync.Mutex
	err   error
	reads int
}

func (b *brokenStore) Event(ctx context.Context, event id.ID) (catalog.Event, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads++
	if b.err != nil {
		return catalog.Event{}, b.err
	}
	return b.Store.Event(ctx, event)
}

func TestWithTheStoreAwayTheCatalogGoesOnFromMemory(t *testing.T) {
	w := newWorld(t)
	one := w.mustImport(t, nil)[0].Event.ID
	broken := &brokenStore{Store: w.store}
	node := w.service(broken)
	if _, err := node.Event(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	broken.err = errors.New("away")
	w.now = w.now.Add(time.Hour)
	for range 100 {
		if e, err := node.Event(t.Context(), one); err != nil || e.ID != one {
			t.Fatalf("%+v, %v", e, err)
		}
	}
	if broken.reads != 2 {
		t.Errorf("the store that is away was asked %d times", broken.reads)
	}
	broken.err = catalog.ErrNotFound
	w.now = w.now.Add(time.Hour)
	if _, err := node.Event(t.Context(), one); fault.CodeOf(err) != fault.EventUnknown {
		t.Errorf("gone is not away: %v", err)
	}
}

func TestAChangeOfAnotherNodeIsSeen(t *testing.T) {
	w := newWorld(t)
	one := w.mustImport(t, nil)[0].Event.ID
	node := w.service(w.store)
	version := func() int64 {
		t.Helper()
		e, err := node.Event(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		return e.Version
	}
	version()
	if _, err := w.Change(t.Context(), one, catalog.VerbPause); err != nil {
		t.Fatal(err)
	}
	if v := version(); v != 1 {
		t.Errorf("version %d at once: the cache does nothing", v)
	}
	node.Forget(one)
	if v := version(); v != 2 {
		t.Errorf("version %d after Forget", v)
	}
	if _, err := w.Change(t.Context(), one, catalog.VerbResume); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(2 * time.Second)
	if v := version(); v != 3 {
		t.Errorf("version %d after two seconds", v)
	}
}

func TestPages(t *testing.T) {
	w := newWorld(t)
	w.mustImport(t, func(s string) string {
		for i := range 7 {
			s += fmt.Sprintf("  - {key: more-%d, starts: 2027-06-14T20:00}\n", i)
		}
		return s
	})
	var seen []string
	q := catalog.Query{Max: 3}
	for {
		page, err := w.Events(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			seen = append(seen, e.Key)
		}
		text := page.Next.String()
		if text == "" {
			break
		}
		if q.After, err = catalog.ParseCursor(text); err != nil || q.After != page.Next {
			t.Fatalf("%v, %v", q.After, err)
		}
	}
	if got := strings.Join(seen, " "); got != "one more-0 more-1 more-2 more-3 more-4 more-5 more-6" {
		t.Error(got)
	}
	for _, bad := range []catalog.Query{{Max: 201}, {Max: -1}, {Text: "a b c d e f g h i"}, {Text: "a\x00"}, {Text: "\xff"},
		{Text: strings.Repeat("a", 1000)}, {From: w.now, To: w.now}} {
		if _, err := w.Events(t.Context(), bad); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for _, bad := range []string{".", "x", "1.-1", "-1.1", "zzzzzzzzzzzzzzzzz.1", "1.2.3"} {
		if c, err := catalog.ParseCursor(bad); err == nil {
			t.Errorf("%q is %+v", bad, c)
		}
	}
}

func TestPlans(t *testing.T) {
	w := newWorld(t)
	node := w.service(w.store)
	plan, err := node.Plan(t.Context(), w.hash)
	if err != nil || plan.Hash() != w.hash {
		t.Fatalf("%v", err)
	}
	if again, err := node.Plan(t.Context(), w.hash); err != nil || again != plan {
		t.Error("the plan was read twice")
	}
	if _, err := node.Plan(t.Context(), "none"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	if body, err := node.PlanBody(t.Context(), w.hash); err != nil || len(body) < 100 || body[0] != 0x1f {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	list, err := node.Plans(t.Context(), w.organizer)
	if err != nil || len(list) != 1 || list[0].SeatCount != 300 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestStoredEventsKeepTheirForm(t *testing.T) {
	w := newWorld(t)
	e := w.mustImport(t, nil)[0].Event
	e.ID, e.Organizer, e.Show, e.PlanHash = 1, 2, 3, "hash"
	got, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "event.golden.json")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	// D5: what is stored is read by the next version too, so a change of form is a change of FormatVersion.
	if string(got)+"\n" != string(want) {
		t.Errorf("the stored form has changed (UPDATE_GOLDEN=1 writes it):\n%s", got)
	}
}

// A draft may leave out when its sale opens: the ledger takes it all the same, and later versions too.
func TestADraftWithoutAnOpeningIsSent(t *testing.T) {
	w := newWorld(t)
	draft := w.file(t, func(text string) string {
		text = strings.Replace(text, "sale: {opens: 2027-03-01T10:00}", "state: draft", 1)
		return text
	})
	done, err := w.Import(t.Context(), w.organizer, draft)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range done {
		if l := w.books.event(d.Event.ID); l.Version != 1 || l.State != ledger.Draft || l.SaleOpens >= l.SaleCloses {
			t.Errorf("the ledger has %+v", l)
		}
	}
	if _, err := w.Import(t.Context(), w.organizer, w.file(t, func(text string) string { return text })); err != nil {
		t.Errorf("the sale's opening is said later: %v", err)
	}
	// What the ledger has never heard of is told to it with its seats, whichever change comes next.
	delete(w.books.events, done[0].Event.ID)
	if _, err := w.Change(t.Context(), done[0].Event.ID, catalog.VerbPause); err != nil && fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a change after a crash: %v", err)
	}
	if _, err := w.Heal(t.Context()); err != nil {
		t.Error(err)
	}
	if l := w.books.event(done[0].Event.ID); l.Version == 0 {
		t.Error("the ledger still does not know the event")
	}
}
