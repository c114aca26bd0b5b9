package control

import (
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/id"
)

// What an older program folded in its own way is found as soon as the database is opened by this one; pages do not hide any.
func TestOlderRowsAreFoldedAnew(t *testing.T) {
	eachDialect(t, func(t *testing.T, open func() *DB) {
		ctx := t.Context()
		d := open()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		house, err := d.Catalog().EnsureOrganizer(ctx, catalog.Organizer{ID: 1, Key: "house", Name: "House"})
		must(err)
		now := time.Date(2027, 3, 1, 10, 0, 0, 0, time.UTC)
		must(d.Catalog().PutPlan(ctx, catalog.Plan{Hash: "h", Organizer: house.ID, Name: "Plan", Body: []byte("x"), Created: now}))
		show := catalog.Show{ID: 2, Organizer: house.ID, Key: "s", Title: "Soirée", Updated: now}
		var all []catalog.Event
		var texts []string
		for i := range id.ID(foldPage + 3) {
			e := catalog.Event{ID: 10 + i, Organizer: house.ID, Show: 2, Key: (10 + i).Text(id.Event), Version: 1, State: catalog.OnSale, PlanHash: "h", Starts: now, Updated: now}
			e.Venue.City = "Köln"
			all, texts = append(all, e), append(texts, "")
		}
		must(d.Catalog().PutEvents(ctx, &show, all, texts))
		must(d.exec(ctx, `UPDATE {events} SET city = 'köln', search = 'soirée köln', fold_version = 0`))
		found := func(d *DB, q catalog.Query) int {
			t.Helper()
			q.Max = 1000
			events, err := d.Catalog().Events(ctx, q)
			must(err)
			return len(events)
		}
		if n := found(d, catalog.Query{City: "koln"}); n != 0 {
			t.Fatalf("%d found before: this test shows nothing", n)
		}
		again := open()
		for name, q := range map[string]catalog.Query{"city": {City: "koln"}, "accents": {City: "KÖLN"}, "words": {Text: "soiree Köln"}} {
			if n := found(again, q); n != len(all) {
				t.Errorf("%s: %d of %d events", name, n, len(all))
			}
		}
	})
}
