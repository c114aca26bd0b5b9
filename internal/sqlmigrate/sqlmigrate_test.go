package sqlmigrate

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"onsale/internal/pgserver"
)

func TestMain(m *testing.M) { pgserver.Main(m) }

const (
	first  = "-- +goose Up\nCREATE TABLE seats (id bigint PRIMARY KEY);\n-- +goose Down\nDROP TABLE seats;\n"
	second = "-- +goose Up\nALTER TABLE seats ADD COLUMN epoch bigint NOT NULL DEFAULT 0;\n"
	broken = "-- +goose Up\nCREATE TABLE gates (id bigint);\nALTER TABLE nothing ADD COLUMN x bigint;\n"
)

func files(texts ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i, text := range texts {
		m["0000"+string(rune('1'+i))+"_step.sql"] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// database is a fresh database of a dialect, and how many tables of a name its schema has.
type database struct {
	dialect Dialect
	schema  string
	open    func() *sql.DB
}

func databases(t *testing.T) map[string]database {
	open := func(driver, dsn string) func() *sql.DB {
		return func() *sql.DB {
			db, err := sql.Open(driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			return db
		}
	}
	file := "file:" + filepath.Join(t.TempDir(), "test.db") + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)"
	return map[string]database{
		"sqlite":   {SQLite, "", open("sqlite", file)},
		"postgres": {Postgres, "shard", open("pgx", pgserver.DatabaseForTest(t))},
	}
}

func (d database) tableCount(t *testing.T, db *sql.DB, name string) (count int) {
	t.Helper()
	query := `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '` + name + `'`
	if d.dialect == Postgres {
		query = `SELECT count(*) FROM pg_tables WHERE schemaname = '` + d.schema + `' AND tablename = '` + name + `'`
	}
	if err := db.QueryRow(query).Scan(&count); err != nil {
		t.Fatal(err)
	}
	return count
}

func TestUp(t *testing.T) {
	ctx := context.Background()
	for name, d := range databases(t) {
		t.Run(name, func(t *testing.T) {
			db := d.open()
			state, err := Status(ctx, db, d.dialect, d.schema, files(first))
			if err != nil || state != (State{Current: 0, Target: 1}) {
				t.Fatalf("status of an empty database: %+v, %v", state, err)
			}
			if n := d.tableCount(t, db, Table); n != 0 {
				t.Error("Status made a table")
			}
			for step, want := range []State{{0, 1}, {1, 1}} {
				if state, err := Up(ctx, db, d.dialect, d.schema, files(first)); err != nil || state != want {
					t.Fatalf("Up %d: %+v, %v; want %+v", step, state, err, want)
				}
			}
			if state, err := Up(ctx, db, d.dialect, d.schema, files(first, second)); err != nil || state != (State{1, 2}) {
				t.Fatalf("Up to 2: %+v, %v", state, err)
			}
			// A file that fails half way leaves nothing of itself.
			if _, err := Up(ctx, db, d.dialect, d.schema, files(first, second, broken)); err == nil {
				t.Fatal("a broken file was applied")
			}
			if n := d.tableCount(t, db, "gates"); n != 0 {
				t.Error("half of a broken file stayed")
			}
			if state, err := Status(ctx, db, d.dialect, d.schema, files(first, second)); err != nil || state.Pending() {
				t.Errorf("after a broken file: %+v, %v", state, err)
			}
		})
	}
}

func TestF3ANewerDatabaseIsRefused(t *testing.T) {
	ctx := context.Background()
	for name, d := range databases(t) {
		t.Run(name, func(t *testing.T) {
			db := d.open()
			if _, err := Up(ctx, db, d.dialect, d.schema, files(first, second)); err != nil {
				t.Fatal(err)
			}
			for what, f := range map[string]func(context.Context, *sql.DB, Dialect, string, fstest.MapFS) (State, error){
				"Up": func(ctx context.Context, db *sql.DB, d Dialect, s string, f fstest.MapFS) (State, error) {
					return Up(ctx, db, d, s, f)
				},
				"Status": func(ctx context.Context, db *sql.DB, d Dialect, s string, f fstest.MapFS) (State, error) {
					return Status(ctx, db, d, s, f)
				},
			} {
				state, err := f(ctx, db, d.dialect, d.schema, files(first))
				if !errors.Is(err, ErrNewer) || state != (State{Current: 2, Target: 1}) {
					t.Errorf("%s: %+v, %v; want ErrNewer", what, state, err)
				}
			}
		})
	}
}

func TestD1ManyStartersAtOnce(t *testing.T) {
	ctx := context.Background()
	for name, d := range databases(t) {
		t.Run(name, func(t *testing.T) {
			const starters = 8
			var wg sync.WaitGroup
			errs := make([]error, starters)
			found := make([]State, starters)
			for i := range starters {
				db := d.open() // each node has its own pool
				wg.Go(func() { found[i], errs[i] = Up(ctx, db, d.dialect, d.schema, files(first, second)) })
			}
			wg.Wait()
			workers := 0
			for i := range starters {
				if errs[i] != nil {
					t.Errorf("starter %d: %v", i, errs[i])
				}
				if found[i].Pending() {
					workers++
				}
			}
			if workers != 1 {
				t.Errorf("%d starters found something to do, want 1", workers)
			}
			if n := d.tableCount(t, d.open(), "seats"); n != 1 {
				t.Errorf("%d tables seats", n)
			}
		})
	}
}

func TestSchemasDoNotMeet(t *testing.T) {
	ctx := context.Background()
	db, err := sql.Open("pgx", pgserver.DatabaseForTest(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(2)
	for _, schema := range []string{"control", "shard"} {
		if _, err := Up(ctx, db, Postgres, schema, files(first)); err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
	}
	var path string
	if err := db.QueryRow(`SHOW search_path`).Scan(&path); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(path, "shard") || strings.Contains(path, "control") {
		t.Errorf("search_path %q was left on a pooled connection", path)
	}
}

func TestWhatCannotWorkIsRefused(t *testing.T) {
	ctx := context.Background()
	db, err := sql.Open("pgx", pgserver.DatabaseForTest(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	noTransaction := "-- +goose NO TRANSACTION\n" + first
	if _, err := Up(ctx, db, Postgres, "shard", files(noTransaction)); err == nil || !strings.Contains(err.Error(), "NO TRANSACTION") {
		t.Errorf("NO TRANSACTION: %v", err)
	}
	if _, err := Up(ctx, db, Postgres, `x"; DROP`, files(first)); err == nil {
		t.Error("a hostile schema's name was accepted")
	}
	if _, err := Up(ctx, db, SQLite, "shard", files(first)); err == nil {
		t.Error("SQLite with a schema was accepted")
	}
	if _, err := Up(ctx, db, "oracle", "", files(first)); err == nil {
		t.Error("an unknown dialect was accepted")
	}
	db.SetMaxOpenConns(1)
	if _, err := Up(ctx, db, Postgres, "shard", files(first)); err == nil {
		t.Error("one connection was accepted, and would have waited for ever")
	}
}
