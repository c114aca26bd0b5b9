package app

import (
	"errors"
	"os"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/pgserver"
	"onsale/internal/venue"
)

func TestAFolderWithNothingInItIsRefused(t *testing.T) {
	s := settings(folder(t))
	if err := CheckHouse(s); !errors.Is(err, ErrNoHouse) {
		t.Errorf("an empty folder: %v", err)
	}
	if left, err := os.ReadDir(s.Data); err == nil && len(left) > 0 {
		t.Errorf("looking made %v", left)
	}
	a, err := Open(t.Context(), s)
	must(t, err)
	must(t, a.Close(t.Context()))
	must(t, CheckHouse(s))
	s.Ledger, s.PostgresURL, s.Data = Postgres, pgserver.DatabaseForTest(t), folder(t)
	must(t, CheckHouse(s))
}

// Events are imported for whom it is said, and prices that nobody takes are told of.
func TestImportForAnOrganizer(t *testing.T) {
	s := settings(folder(t))
	s.Demo, s.Payment.Provider = false, noProvider
	a, err := Open(t.Context(), s)
	must(t, err)
	defer func() { must(t, a.Close(t.Context())) }()
	plan, err := venue.Generate(venue.GenerateOptions{Seats: 60}).Encode()
	must(t, err)
	in := ImportRequest{File: []byte(`format: 1
venue: { name: Hall, city: Hamburg, country: DE, zone: Europe/Berlin, plan: hall.json }
show: { key: night, title: Night }
currency: EUR
tiers: [{ category: CAT1, face: "20.00" }]
sale: { opens: "2026-01-01T10:00" }
performances: [{ key: one, starts: "2089-06-01T20:00" }]
`), Plan: plan, Organizer: "hall"}
	if _, err := a.ImportEvents(t.Context(), in); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("for an organizer that is not there: %v", err)
	}
	made, err := a.Catalog.EnsureOrganizer(t.Context(), "hall", "The Hall")
	must(t, err)
	events, err := a.ImportEvents(t.Context(), in)
	must(t, err)
	if len(events) != 1 || events[0].Warn == "" {
		t.Errorf("nobody is told that nobody can pay: %+v", events)
	}
	shows, err := a.Catalog.Shows(t.Context(), made.ID, 0, 10)
	if err != nil || len(shows) != 1 {
		t.Errorf("the organizer has %d shows, %v", len(shows), err)
	}
}
