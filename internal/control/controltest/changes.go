package controltest

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/id"
)

// changes are what followers of the catalog read: versions since an instant, then the listings themselves.
func changes(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	g := setUp(t, p.Catalog)
	var all []catalog.Event
	for i, key := range []string{"a", "b", "c"} {
		e := g.event(key, i)
		e.Updated = at(i)
		all = append(all, e)
	}
	ok(t, p.Catalog.PutEvents(ctx, nil, all, []string{"", "", ""}))
	other := catalog.Show{ID: next(), Organizer: g.organizer.ID, Key: "other", Title: "Other", Updated: at(0)}
	e := g.event("d", 3)
	e.Show, e.Updated = other.ID, at(0)
	ok(t, p.Catalog.PutEvents(ctx, &other, []catalog.Event{e}, []string{""}))
	all = append(all, e)

	s := again().Catalog
	versions := func(since time.Time, after id.ID, max int) (found []catalog.EventVersion) {
		t.Helper()
		found, err := s.Versions(ctx, since, after, max)
		ok(t, err)
		return found
	}
	expect := func(what string, got []catalog.EventVersion, want ...int) {
		t.Helper()
		var numbers []int
		for _, v := range got {
			numbers = append(numbers, slices.IndexFunc(all, func(e catalog.Event) bool { return e.ID == v.Event }))
		}
		if !slices.Equal(numbers, want) {
			t.Errorf("%s: %v, want %v", what, numbers, want)
		}
	}
	expect("all", versions(time.Time{}, 0, 10), 0, 1, 2, 3)
	expect("a page", versions(time.Time{}, all[0].ID, 2), 1, 2)
	expect("changed at or after the second", versions(at(1), 0, 10), 1, 2)
	expect("a page of those", versions(at(1), all[1].ID, 10), 2)
	expect("none", versions(at(9), 0, 10))

	e.Version, e.Updated = 2, at(9)
	ok(t, p.Catalog.PutEvents(ctx, nil, []catalog.Event{e}, []string{""}))
	if got := versions(at(9), 0, 10); len(got) != 1 || got[0] != (catalog.EventVersion{Event: e.ID, Version: 2, ShowUpdated: at(0)}) {
		t.Errorf("a new version is %+v", got)
	}
	g.show.Description, g.show.Updated = "New words", at(10)
	ok(t, p.Catalog.PutEvents(ctx, &g.show, nil, nil))
	expect("the events of a changed show", versions(at(10), 0, 10), 0, 1, 2)
	if got := versions(at(10), 0, 1); len(got) != 1 || !got[0].ShowUpdated.Equal(at(10)) {
		t.Errorf("a changed show is %+v", got)
	}

	listings, err := s.Listings(ctx, []id.ID{all[1].ID, next(), all[3].ID})
	ok(t, err)
	slices.SortFunc(listings, func(a, b catalog.Listing) int { return int(a.Event.ID - b.Event.ID) })
	want := []catalog.Listing{{Event: all[1], Show: g.show}, {Event: e, Show: other}}
	if !reflect.DeepEqual(listings, want) {
		t.Errorf("got %+v\nwant %+v", listings, want)
	}
	none, err := s.Listings(ctx, nil)
	ok(t, err)
	if len(none) != 0 {
		t.Errorf("nothing is %+v", none)
	}
	if _, err := s.Listings(ctx, make([]id.ID, catalog.ListingsMax+1)); err == nil {
		t.Error("more listings than possible were read")
	}
}
