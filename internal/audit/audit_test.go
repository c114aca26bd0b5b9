package audit

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onsale/internal/ledger"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/payment"
)

// sqliteWorld is a world on a file, with the file's path.
func sqliteWorld(t *testing.T) (*world, string) {
	t.Helper()
	clock := opening
	path := filepath.Join(t.TempDir(), "shard.db")
	w := newWorld(t, &clock, func(now func() ledger.Time) ledger.Ledger {
		l, err := sqlite.Open(context.Background(), path, sqlite.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	})
	w.path = path
	return w, path
}

// exec plants something in the file by hand.
func (w *world) exec(statements string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, s := range (&fault{sql: statements}).statements(w, sqliteDialect) {
		if _, err := db.Exec(s); err != nil {
			w.t.Fatal(s, err)
		}
	}
}

func render(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Render(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if n := len([]rune(line)); n > width {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	return b.String()
}

func TestNothingIsWrong(t *testing.T) {
	w, path := sqliteWorld(t)
	w.publish("pending")
	src, err := OpenSQLite(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	r, err := Run(context.Background(), src, Options{Provider: w.list, Joins: w.log, Now: *w.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + render(t, &r))
	if !r.OK() {
		t.Fatal("broken")
	}
}

// plant tries every fault in a transaction that is rolled back, and audits inside it.
func plant(t *testing.T, w *world, d dialect, db *sql.DB) {
	names := map[string]bool{}
	found := map[string]bool{}
	for _, f := range faults() {
		if names[f.name] {
			t.Errorf("%s: twice", f.name)
		}
		names[f.name] = true
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			for _, s := range f.statements(w, d) {
				r, err := tx.ExecContext(t.Context(), s)
				if err != nil {
					t.Fatal(s, err)
				}
				if n, err := r.RowsAffected(); err == nil && n == 0 && !strings.Contains(s, "DROP") {
					t.Fatal("nothing was planted by", s)
				}
			}
			list := slices.Clone(w.list)
			for i := range list {
				list[i].Refunds = slices.Clone(list[i].Refunds)
			}
			if f.list != nil {
				list = f.list(w, list)
			}
			joins := joinLog{w.names["line"]: slices.Clone(w.log[w.names["line"]])}
			if f.joins != nil {
				joins[w.names["line"]] = f.joins(w, joins[w.names["line"]])
			}
			a := newAudit(d, Options{Provider: books2(list), Joins: joins})
			if f.list == nil && f.want != "" {
				a = newAudit(d, Options{Joins: joins})
			} else if a.books, err = readBooks(t.Context(), books2(list)); err != nil {
				t.Fatal(err)
			}
			a.now, a.began = *w.clock, *w.clock
			a.snap = &snapshot{ctx: t.Context(), dialect: d, tx: tx}
			if err := a.walk(); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(a.report.Broken(), " "); got != f.want {
				t.Errorf("broken: %q, want %q\n%s", got, f.want, render(t, a.report))
			}
			for _, n := range a.report.Broken() {
				found[n] = true
			}
		})
	}
	for _, c := range about {
		if !found[c.name] {
			t.Errorf("no fault breaks %s", c.name)
		}
	}
}

func TestEachFaultIsFound(t *testing.T) {
	w, path := sqliteWorld(t)
	w.publish("pending")
	w.pass(1)
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	plant(t, w, sqliteDialect, db)
}

func open1(t *testing.T, path string) *Source {
	t.Helper()
	src, err := OpenSQLite(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	return src
}

func TestOneEvent(t *testing.T) {
	w, path := sqliteWorld(t)
	r, err := Run(t.Context(), open1(t, path), Options{Provider: w.list, Now: *w.clock, Event: w.names["event"]})
	if err != nil || !r.OK() {
		t.Fatal(err, render(t, &r))
	}
	if len(r.Events) != 1 || r.Events[0].Tickets.Valid != 15 || r.Event != r.Events[0].Event {
		t.Errorf("%+v", r.Events)
	}
	for _, name := range []string{"shop", "matinee"} { // each has money and tickets of the other
		if r, err = Run(t.Context(), open1(t, path), Options{Provider: w.list, Now: *w.clock, Event: w.names[name]}); err != nil || !r.OK() {
			t.Fatal(name, err, render(t, &r))
		}
	}
	if r, err = Run(t.Context(), open1(t, path), Options{Joins: w.log, Now: *w.clock, Event: w.names["line"]}); err != nil || !r.OK() || r.Events[0].Room == nil || r.Events[0].Room.Entered != 6 {
		t.Fatal(err, render(t, &r))
	}
	r, err = Run(t.Context(), open1(t, path), Options{Provider: w.list, Now: *w.clock, Event: w.names["other"]})
	if err != nil || !r.OK() || r.Events[0].Seats.Available != 30 || r.Events[0].Orders != (OrderTotals{}) {
		t.Fatal(err, render(t, &r))
	}
}

// A closed file is read too, and not changed.
func TestItOnlyReads(t *testing.T) {
	w, path := sqliteWorld(t)
	if err := w.l.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	src := open1(t, path)
	if r, err := Run(t.Context(), src, Options{Now: *w.clock}); err != nil || !r.OK() {
		t.Fatal(err, render(t, &r))
	}
	if _, err := src.db.Exec(`DELETE FROM seats`); err == nil {
		t.Error("it could write")
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Error("the file is not as it was", err)
	}
	if _, err := OpenSQLite(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// While the audit reads, the ledger goes on: what it sees is one instant.
func TestItReadsOneInstant(t *testing.T) {
	w, path := sqliteWorld(t)
	src := open1(t, path)
	snap, err := src.snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := snap.close(); err != nil {
			t.Error(err)
		}
	}()
	a := newAudit(src.dialect, Options{})
	a.snap, a.now, a.began = snap, *w.clock, *w.clock
	if seats := read(snap, `SELECT seat_index, state, claim_id, epoch, returned_at FROM #seats`, scanSeat); seats.peek() == nil {
		t.Fatal(snap.err)
	}
	w.confirm("meanwhile", w.begin("meanwhile", w.hold("meanwhile", 14, 15)), true)
	if err := a.walk(); err != nil || !a.report.OK() {
		t.Fatal(err, render(t, a.report))
	}
	if got := a.report.Events[0].Tickets.Valid; got != 15 {
		t.Errorf("%d tickets, 15 were there when it began", got)
	}
	if r, err := Run(t.Context(), src, Options{Now: *w.clock, Provider: w.list}); err != nil || !r.OK() || r.Events[0].Tickets.Valid != 17 {
		t.Error(err, render(t, &r))
	}
}

// The report lists the first violations and counts all.
func TestTheReportIsBounded(t *testing.T) {
	w, path := sqliteWorld(t)
	if err := w.l.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`UPDATE seats SET claim_id = 9 WHERE state = 0`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), open1(t, path), Options{Now: *w.clock})
	if err != nil {
		t.Fatal(err)
	}
	if r.OK() || r.Violations() != 130 || len(r.Checks[0].List) != listMax || !slices.Equal(r.Broken(), []string{CheckI1}) {
		t.Error(render(t, &r))
	}
	text := render(t, &r)
	for _, want := range []string{"I1 is broken 130 times:", "seat 10: it is available, but claimed by hold_0000000000009", "… and 105 more", "audit: broken (I1)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"ok":false`, `"ledger":"sqlite"`, `"violation_count":130`, `"PAID":6`, `"captured_minor":52500`, `"currency":"EUR"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is not in %s", want, data)
		}
	}
}

type failing struct{ err error }

func (f failing) List(context.Context, string) (payment.Page, error) {
	return payment.Page{Next: "x"}, f.err
}

func TestAProviderThatDoesNotAnswer(t *testing.T) {
	w, path := sqliteWorld(t)
	if _, err := Run(t.Context(), open1(t, path), Options{Now: *w.clock, Provider: failing{payment.ErrUnknown}}); !errors.Is(err, payment.ErrUnknown) {
		t.Errorf("%v", err)
	}
	if _, err := Run(t.Context(), open1(t, path), Options{Now: *w.clock, Provider: failing{}}); err == nil {
		t.Error("a list that never ends was read to its end")
	}
}

// A text that is no database, or lacks tables, is an error and no report.
func TestAFileThatIsNoLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), open1(t, path), Options{Now: 1}); err == nil {
		t.Error("an empty file passed the audit")
	}
}
