package control

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"onsale/internal/control/controltest"
	"onsale/internal/id"
	"onsale/internal/keys"
	"onsale/internal/keys/keystest"
	"onsale/internal/pgserver"
	"onsale/internal/sqlmigrate"
)

func TestMain(m *testing.M) { pgserver.Main(m) }

// dialects open handles on one fresh database.
var dialects = map[sqlmigrate.Dialect]func(t *testing.T) (open func() *DB){
	sqlmigrate.SQLite: func(t *testing.T) func() *DB {
		path := filepath.Join(t.TempDir(), "with ? and % in it.db")
		return func() *DB {
			return openForTest(t, func() (*DB, error) { return OpenSQLite(context.Background(), path) })
		}
	},
	sqlmigrate.Postgres: func(t *testing.T) func() *DB {
		options := PostgresOptions{URL: pgserver.DatabaseForTest(t), ConnectionsMax: 4}
		return func() *DB {
			return openForTest(t, func() (*DB, error) { return OpenPostgres(context.Background(), options) })
		}
	},
}

func openForTest(t *testing.T, open func() (*DB, error)) *DB {
	t.Helper()
	d, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func eachDialect(t *testing.T, test func(t *testing.T, open func() *DB)) {
	for dialect, fresh := range dialects {
		t.Run(string(dialect), func(t *testing.T) { test(t, fresh(t)) })
	}
}

func TestConformance(t *testing.T) {
	for dialect, fresh := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			controltest.Exercise(t, func(t *testing.T) (controltest.Ports, func() controltest.Ports) {
				open := fresh(t)
				again := func() controltest.Ports {
					d := open()
					return controltest.Ports{Catalog: d.Catalog(), Identities: d.Identities(), People: d.People(), Presale: d.Presale(), Blocks: d.Blocks(), Evidence: d.Evidence()}
				}
				return again(), again
			})
			keystest.Exercise(t, func(t *testing.T) keys.Store { return fresh(t)().Keys() })
		})
	}
}

func TestMetaIsPutOnce(t *testing.T) {
	eachDialect(t, func(t *testing.T, open func() *DB) {
		d := open()
		if value, err := d.Meta(t.Context(), "a"); value != nil || err != nil {
			t.Errorf("%q, %v", value, err)
		}
		for _, value := range []string{"first\x00", "second"} {
			got, err := open().PutMetaOnce(t.Context(), "a", []byte(value))
			if err != nil || string(got) != "first\x00" {
				t.Errorf("%q, %v", got, err)
			}
		}
	})
}

func TestA7NodeNumbersAreLeased(t *testing.T) {
	eachDialect(t, func(t *testing.T, open func() *DB) {
		ctx := t.Context()
		first, err := open().ClaimNode(ctx, "a", time.Hour)
		if err != nil || first.Number != 0 {
			t.Fatalf("%+v, %v", first, err)
		}
		clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		last := first.Generator(func() time.Time { return clock }).MustNext(0)

		d := open()
		if d.dialect == sqlmigrate.Postgres {
			second, err := d.ClaimNode(ctx, "b", time.Hour)
			if err != nil || second.Number != 1 {
				t.Fatalf("while 0 is held: %+v, %v", second, err)
			}
			if err := first.Renew(ctx, 0); err != nil {
				t.Fatal(err)
			}
		}
		// Taken over, with a clock that has gone back.
		heir, err := d.ClaimNode(ctx, "c", time.Hour)
		if err != nil || heir.Number != 0 {
			t.Fatalf("%+v, %v", heir, err)
		}
		clock = clock.Add(-time.Hour)
		if after := heir.Generator(func() time.Time { return clock }).MustNext(0); after <= last {
			t.Errorf("%d was made after %d", after, last)
		}
		for what, err := range map[string]error{
			"renew": first.Renew(ctx, time.Hour), "reserve": first.Reserve(1 << 40), "release": first.Release(ctx),
		} {
			if !errors.Is(err, ErrNodeLost) {
				t.Errorf("%s by who has lost the number: %v", what, err)
			}
		}
		if err := heir.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestA7AllNodeNumbersInUse(t *testing.T) {
	d := dialects[sqlmigrate.Postgres](t)()
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[int]bool{}
	for range id.NodeMax + 1 {
		wg.Go(func() {
			n, err := d.ClaimNode(context.Background(), "x", time.Hour)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[n.Number] {
				t.Errorf("node %d twice", n.Number)
			}
			seen[n.Number] = true
		})
	}
	wg.Wait()
	if n, err := d.ClaimNode(t.Context(), "x", time.Hour); !errors.Is(err, ErrNoNode) {
		t.Errorf("one more than there are: %+v, %v", n, err)
	}
}

func TestD1FourNodesStartAtOnce(t *testing.T) {
	options := PostgresOptions{URL: pgserver.DatabaseForTest(t), ConnectionsMax: 2}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			d, err := OpenPostgres(context.Background(), options)
			if err != nil {
				t.Error(err)
				return
			}
			if state, err := d.Status(context.Background()); err != nil || state.Pending() {
				t.Errorf("%+v, %v", state, err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestF3ANewerDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.db")
	d, err := OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.exec(t.Context(), `INSERT INTO {goose_db_version} (version_id, is_applied) VALUES (99999, 1)`); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSQLite(t.Context(), path); !errors.Is(err, sqlmigrate.ErrNewer) {
		t.Errorf("got %v, want ErrNewer", err)
	}
}

func TestF1ForgetfulDatabasesAreRefused(t *testing.T) {
	forgetful := pgserver.DatabaseForTest(t) + "&options=-c%20synchronous_commit%3Doff"
	if !strings.Contains(forgetful, "?") {
		forgetful = strings.Replace(forgetful, "&", "?", 1)
	}
	if d, err := OpenPostgres(t.Context(), PostgresOptions{URL: forgetful}); err == nil || !strings.Contains(err.Error(), "synchronous_commit is off") {
		t.Errorf("%v, %v", d, err)
	}
	d := dialects[sqlmigrate.SQLite](t)()
	if _, err := d.write.Exec(`PRAGMA synchronous = NORMAL`); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckDurable(t.Context()); err == nil {
		t.Error("synchronous=NORMAL was accepted")
	}
}

func TestAPasswordIsNotInErrors(t *testing.T) {
	_, err := OpenPostgres(t.Context(), PostgresOptions{URL: "postgres://u:hunter2@host:port/db"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

// A column as both dialects can be compared by.
type column struct {
	Type    string
	NotNull bool
}

type shape struct {
	Columns map[string]column // by table.column
	Unique  []string          // "table(columns)", with " where" for partial ones
	Foreign []string          // "table(column) -> table(column)"
	Indexes []string
}

func TestBothSchemasAreTheSame(t *testing.T) {
	lite := shapeOfSQLite(t, dialects[sqlmigrate.SQLite](t)().write)
	pg := shapeOfPostgres(t, dialects[sqlmigrate.Postgres](t)().write)
	if len(lite.Columns) < 98 || len(lite.Unique) < 25 || len(lite.Foreign) < 11 || len(lite.Indexes) < 37 {
		t.Errorf("the comparison sees too little: %d columns, %v, %v, %v", len(lite.Columns), lite.Unique, lite.Foreign, lite.Indexes)
	}
	if diff := cmp.Diff(lite, pg); diff != "" {
		t.Errorf("SQLite (-) and PostgreSQL (+) differ:\n%s", diff)
	}
}

func TestBothDialectsHaveTheSameNumbers(t *testing.T) {
	names := map[sqlmigrate.Dialect][]string{}
	for dialect := range dialects {
		entries, err := files.ReadDir("migrations/" + string(dialect))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names[dialect] = append(names[dialect], e.Name())
		}
	}
	if diff := cmp.Diff(names[sqlmigrate.SQLite], names[sqlmigrate.Postgres]); diff != "" {
		t.Error(diff)
	}
}

func textRows(t *testing.T, db *sql.DB, query string) (all [][]string) {
	t.Helper()
	r, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer r.Close()
	columns, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for r.Next() {
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := r.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var row []string
		for _, v := range values {
			row = append(row, v.String)
		}
		all = append(all, row)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func shapeOfSQLite(t *testing.T, db *sql.DB) shape {
	s := shape{Columns: map[string]column{}}
	for _, row := range textRows(t, db, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'goose_db_version'`) {
		name := row[0]
		var primary []string
		for _, c := range textRows(t, db, `SELECT name, type, "notnull", pk FROM pragma_table_info('`+name+`') ORDER BY pk`) {
			s.Columns[name+"."+c[0]] = column{Type: c[1], NotNull: c[2] == "1"}
			if c[3] != "0" {
				primary = append(primary, c[0])
			}
		}
		indexes := map[string]bool{fmt.Sprintf("%s(%s)", name, strings.Join(primary, ", ")): true} // an integer key has no index of its own
		unique := map[string]bool{fmt.Sprintf("%s(%s)", name, strings.Join(primary, ", ")): true}
		for _, i := range textRows(t, db, `SELECT name, "unique", partial FROM pragma_index_list('`+name+`')`) {
			var columns []string
			for _, c := range textRows(t, db, `SELECT name FROM pragma_index_info('`+i[0]+`') ORDER BY seqno`) {
				columns = append(columns, c[0])
			}
			text := fmt.Sprintf("%s(%s)", name, strings.Join(columns, ", "))
			if i[2] == "1" {
				text += " where"
			}
			indexes[text] = true
			if i[1] == "1" {
				unique[text] = true
			}
		}
		for text := range indexes {
			s.Indexes = append(s.Indexes, text)
		}
		for text := range unique {
			s.Unique = append(s.Unique, text)
		}
		for _, f := range textRows(t, db, `SELECT "from", "table", "to" FROM pragma_foreign_key_list('`+name+`')`) {
			s.Foreign = append(s.Foreign, fmt.Sprintf("%s(%s) -> %s(%s)", name, f[0], f[1], f[2]))
		}
	}
	return s.sorted()
}

func shapeOfPostgres(t *testing.T, db *sql.DB) shape {
	s := shape{Columns: map[string]column{}}
	types := map[string]string{"bigint": "INTEGER", "text": "TEXT", "bytea": "BLOB"}
	for _, c := range textRows(t, db, `SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns
		WHERE table_schema = 'control' AND table_name <> 'goose_db_version'`) {
		s.Columns[c[0]+"."+c[1]] = column{Type: types[c[2]], NotNull: c[3] == "NO"}
	}
	for _, i := range textRows(t, db, `SELECT c.relname, x.indisunique::text, (x.indpred IS NOT NULL)::text,
		(SELECT string_agg(a.attname, ', ' ORDER BY k.n) FROM unnest(x.indkey) WITH ORDINALITY k(number, n) JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number)
		FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'control' AND c.relname <> 'goose_db_version'`) {
		text := fmt.Sprintf("%s(%s)", i[0], i[3])
		if i[2] == "true" {
			text += " where"
		}
		s.Indexes = append(s.Indexes, text)
		if i[1] == "true" {
			s.Unique = append(s.Unique, text)
		}
	}
	for _, f := range textRows(t, db, `SELECT c.relname, a.attname, fc.relname, fa.attname FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
		JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_class fc ON fc.oid = k.confrelid
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1] JOIN pg_attribute fa ON fa.attrelid = fc.oid AND fa.attnum = k.confkey[1]
		WHERE n.nspname = 'control' AND k.contype = 'f'`) {
		s.Foreign = append(s.Foreign, fmt.Sprintf("%s(%s) -> %s(%s)", f[0], f[1], f[2], f[3]))
	}
	return s.sorted()
}

func (s shape) sorted() shape {
	slices.Sort(s.Unique)
	slices.Sort(s.Foreign)
	slices.Sort(s.Indexes)
	return s
}
