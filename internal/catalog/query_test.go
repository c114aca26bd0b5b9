package catalog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
)

// finder is a Searcher that remembers what it was asked.
type finder struct {
	asked []catalog.Query
	err   error
}

func (f *finder) Search(_ context.Context, q catalog.Query) (catalog.Page, error) {
	f.asked = append(f.asked, q)
	return catalog.Page{Events: []catalog.Event{{Key: "found"}}}, f.err
}

// away is a store whose lists fail.
type away struct{ catalog.Store }

func (away) Events(context.Context, catalog.Query) ([]catalog.Event, error) {
	return nil, errors.New("the store is away")
}

func TestWordsAreTheSearchersAndListsTheStores(t *testing.T) {
	w := newWorld(t)
	w.mustImport(t, nil)
	f := &finder{}
	options := catalog.Options{Store: w.store, Ledger: w.books, NewID: id.NewGenerator(0, time.Now, 0, nil).Next, Search: f}
	s := catalog.New(options)
	options.Store = away{w.store}
	without := catalog.New(options)
	options.Search = nil
	nothing := catalog.New(options)
	place := catalog.Cursor{Starts: time.UnixMilli(5).UTC(), Event: 7, Rank: 3, Words: 9}
	for name, c := range map[string]struct {
		service *catalog.Service
		q       catalog.Query
		found   bool // by the searcher
		code    fault.Code
	}{
		"words":                        {s, catalog.Query{Text: "  AURORA ", After: place}, true, ""},
		"availability":                 {s, catalog.Query{Availability: catalog.SellingNow}, true, ""},
		"list":                         {s, catalog.Query{City: "Hamburg"}, false, ""},
		"drafts by words":              {s, catalog.Query{Text: "aurora", Drafts: true}, false, ""},
		"drafts by availability":       {s, catalog.Query{Availability: catalog.Available, Drafts: true}, false, fault.Invalid},
		"a search's cursor for a list": {s, catalog.Query{After: place}, false, fault.Invalid},
		"unknown availability":         {s, catalog.Query{Availability: "maybe"}, false, fault.Invalid},
		"no searcher, words":           {w.Service, catalog.Query{Text: "aurora"}, false, ""},
		"no searcher, availability":    {w.Service, catalog.Query{Availability: catalog.Available}, false, fault.Invalid},
		"store away, list":             {without, catalog.Query{City: "Hamburg"}, true, ""},
		"store away, drafts":           {without, catalog.Query{Drafts: true}, false, fault.Internal},
		"store away and no searcher":   {nothing, catalog.Query{}, false, fault.Internal},
		"many words":                   {s, catalog.Query{Text: "a b c d e f g h i"}, true, ""},
		"too many words for the store": {w.Service, catalog.Query{Text: "a b c d e f g h i"}, false, fault.Invalid},
		"too many, drafts":             {s, catalog.Query{Text: "a b c d e f g h i", Drafts: true}, false, fault.Invalid},
	} {
		f.asked = nil
		page, err := c.service.Events(t.Context(), c.q)
		if c.code != "" {
			if fault.CodeOf(err) != c.code {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || len(page.Events) == 0 || (page.Events[0].Key == "found") != c.found || (len(f.asked) == 1) != c.found {
			t.Errorf("%s: %v, %v", name, page.Events, err)
		}
		if c.found && len(f.asked) == 1 && (f.asked[0].After != c.q.After || f.asked[0].Text == "  AURORA " || f.asked[0].Max != catalog.QueryDefault) {
			t.Errorf("%s: asked for %+v", name, f.asked[0])
		}
	}
	// Where memory is not ready either, the store's error is the answer.
	f.err = fault.New(fault.Busy, "")
	if _, err := without.Events(t.Context(), catalog.Query{}); fault.CodeOf(err) != fault.Internal {
		t.Error(err)
	}
}

func TestCursors(t *testing.T) {
	at := time.UnixMilli(1_830_000_000_123).UTC()
	for _, c := range []catalog.Cursor{{}, {Starts: at, Event: 1 << 62}, {Starts: at, Event: 5, Rank: 93, Words: 1<<32 - 1}, {Starts: time.UnixMilli(0).UTC(), Event: 1, Rank: 1}} {
		if got, err := catalog.ParseCursor(c.String()); err != nil || got != c {
			t.Errorf("%+v became %q and %+v, %v", c, c.String(), got, err)
		}
	}
	for _, text := range []string{"x", ".", "1", "1.", "1.2.", "1.2.3", "1.2.0.4", "1.2.3.4.5", "1.2.3.zzzzzzz", "1.2.zzzzzzz.4", "-1.2", "1.-2", "1.2.3.-4", "zzzzzzzzzzzzz.1", "1.2.3.4.", " 1.2"} {
		if got, err := catalog.ParseCursor(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}
