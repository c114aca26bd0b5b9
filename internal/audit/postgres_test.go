package audit

import (
	"context"
	"testing"

	"onsale/internal/ledger"
	"onsale/internal/ledger/postgres"
	"onsale/internal/pgserver"
)

func TestMain(m *testing.M) { pgserver.Main(m) }

func postgresWorld(t *testing.T) (*world, string) {
	t.Helper()
	url := pgserver.DatabaseForTest(t)
	clock := opening
	w := newWorld(t, &clock, func(now func() ledger.Time) ledger.Ledger {
		l, err := postgres.Open(context.Background(), postgres.Options{URL: url, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	})
	return w, url
}

func TestPostgres(t *testing.T) {
	w, url := postgresWorld(t)
	w.publish("pending")
	src, err := OpenPostgres(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	r, err := Run(t.Context(), src, Options{Provider: w.list, Joins: w.log, Now: *w.clock})
	if err != nil || !r.OK() {
		t.Fatal(err, render(t, &r))
	}
	if r.Ledger != "postgres" || r.Events[0].Tickets.Valid != 15 || r.InFlight.Count != 7 {
		t.Error(render(t, &r))
	}
	if r, err = Run(t.Context(), src, Options{Provider: w.list, Now: *w.clock, Event: w.names["event"]}); err != nil || !r.OK() || len(r.Events) != 1 {
		t.Error(err, render(t, &r))
	}
	// By the server's own clock the world lies in the future: nothing has run out, and nothing is wrong.
	if r, err = Run(t.Context(), src, Options{}); err != nil || !r.OK() {
		t.Error(err, render(t, &r))
	}
	w.pass(1)
	plant(t, w, postgresDialect, src.db)
}
