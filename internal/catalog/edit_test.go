package catalog_test

import (
	"errors"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
)

// draft is an event as an organizer might make it.
func (w *world) draft(t *testing.T) catalog.Event {
	t.Helper()
	e := w.file(t, func(s string) string { return s }).Events[0]
	e.PlanHash, e.State, e.Key, e.Title = w.hash, catalog.Draft, "made", ""
	return e
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("%v, want %s", err, code)
	}
}

func TestEditingOneByOne(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	show, err := w.NewShow(ctx, w.organizer, catalog.Show{Key: "new", Title: "New"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.NewShow(ctx, w.organizer, catalog.Show{Key: "new", Title: "Other"})
	wantCode(t, err, fault.Conflict)
	var refused *catalog.RefusedError
	if _, err := w.NewShow(ctx, w.organizer, catalog.Show{Key: "a b"}); !errors.As(err, &refused) || len(refused.Problems) != 2 {
		t.Errorf("%v", err)
	}
	e, err := w.NewEvent(ctx, show.ID, w.draft(t))
	if err != nil {
		t.Fatal(err)
	}
	if e.Title != "New" || e.Version != 1 || e.Organizer != w.organizer || w.books.event(e.ID).Version != 1 {
		t.Errorf("made %+v", e)
	}
	_, err = w.NewEvent(ctx, show.ID, w.draft(t))
	wantCode(t, err, fault.Conflict)
	_, err = w.NewEvent(ctx, id.ID(9), w.draft(t))
	wantCode(t, err, fault.NotFound)

	publish := func(e *catalog.Event) { e.State = catalog.OnSale }
	e, err = w.EditEvent(ctx, e.ID, 1, publish)
	if err != nil || e.Version != 2 || e.State != catalog.OnSale || w.books.event(e.ID).Version != 2 {
		t.Fatalf("%+v, %v", e, err)
	}
	// The same again changes nothing; a state is not changed back.
	if again, err := w.EditEvent(ctx, e.ID, 2, func(e *catalog.Event) { e.State = catalog.Draft }); err != nil || again.Version != 2 {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := w.EditEvent(ctx, e.ID, 2, func(e *catalog.Event) { e.Currency, e.PlanHash = "USD", "x" }); !errors.As(err, &refused) {
		t.Errorf("plan and currency were changed: %v", err)
	}
	_, err = w.EditEvent(ctx, id.ID(9), 0, publish)
	wantCode(t, err, fault.EventUnknown)

	renamed, err := w.EditShow(ctx, show.ID, show.Updated, func(s *catalog.Show) { s.Title, s.Key = "Newer", "other" })
	if err != nil || renamed.Key != "new" {
		t.Fatalf("%+v, %v", renamed, err)
	}
	if e, err = w.Current(ctx, e.ID); err != nil || e.Title != "Newer" || e.Version != 3 {
		t.Errorf("%+v, %v", e, err)
	}
	_, err = w.EditShow(ctx, show.ID, show.Updated, func(s *catalog.Show) { s.Title = "Late" })
	wantCode(t, err, fault.Conflict)
}

// Two people edit the same version: the second one is told, and the first one's change stays.
func TestNoUpdateIsLost(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	e := w.mustImport(t, nil)[0].Event
	first, err := w.EditEvent(ctx, e.ID, e.Version, func(e *catalog.Event) {
		e.Limits.Event = 2
		// Meanwhile, between this one's reading and writing, somebody is faster.
		if _, err := w.EditEvent(ctx, e.ID, e.Version, func(e *catalog.Event) { e.Limits.Event = 3 }); err != nil {
			t.Error(err)
		}
	})
	wantCode(t, err, fault.Conflict)
	if now, err := w.Current(ctx, e.ID); err != nil || now.Limits.Event != 3 || now.Version != e.Version+1 {
		t.Errorf("%+v, %v; the loser was told %+v", now, err, first)
	}
	// Who does not say a version decides again on what is there.
	tries := 0
	last, err := w.EditEvent(ctx, e.ID, 0, func(e *catalog.Event) {
		if tries++; tries == 1 {
			if _, err := w.EditEvent(ctx, e.ID, 0, func(e *catalog.Event) { e.Doors = e.Starts.Add(-time.Hour) }); err != nil {
				t.Error(err)
			}
		}
		e.ExtendMax = 3
	})
	if err != nil || tries != 2 || last.Doors.IsZero() || last.ExtendMax != 3 {
		t.Errorf("after %d tries %+v, %v", tries, last, err)
	}
}
