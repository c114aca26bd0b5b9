// Package sqlmigrate brings a database to the schema that this program knows.
//
// The one idea: the numbered files are goose's, but what makes many nodes starting at once safe is ours. On PostgreSQL a
// transaction of its own holds an advisory lock for as long as the files are applied: it ends with its connection,
// whatever happens to its owner, and it survives PgBouncer's transaction mode, which session locks (goose's own) do not.
// On SQLite the data folder has one owner (F1), so that a lock inside the process is enough.
//
// Start reading at Up.
package sqlmigrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"sync"

	"github.com/pressly/goose/v3"
)

// A Dialect is a kind of database.
type Dialect string

// The dialects.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// Table is the table in which goose keeps the numbers of the files applied.
const Table = "goose_db_version"

// ErrNewer says that the database was written by a newer program than this one (F3). It is left as it was.
var ErrNewer = errors.New("the database is newer than this program: run the program that wrote it, or a newer one")

// A State is how a database stands against this program's files.
type State struct {
	Current int64 // the greatest number applied; 0 for an empty database
	Target  int64 // the greatest number that this program has
}

// Pending says whether Up would do something.
func (s State) Pending() bool { return s.Current < s.Target }

// Up applies, in order, every file of migrations (*.sql at its root, as goose writes them) that the database does not
// have yet, each in its transaction, and says how it found the database. Many nodes may call it at once: one does the
// work, the others wait for it. A database with a number that this program does not have is refused with ErrNewer and
// nothing is changed.
//
// With PostgreSQL schema is the schema that holds everything, made where it is missing: the files name their tables
// without it, and must not say NO TRANSACTION. db needs room for two connections, and a direct line to the server (not
// for the lock's sake: files may use what PgBouncer does not pass on). With SQLite schema must be "".
func Up(ctx context.Context, db *sql.DB, dialect Dialect, schema string, migrations fs.FS) (State, error) {
	if err := check(db, dialect, schema); err != nil {
		return State{}, err
	}
	unlock, err := lock(ctx, db, dialect, schema)
	if err != nil {
		return State{}, fmt.Errorf("sqlmigrate: waiting for the lock: %w", err)
	}
	defer unlock()
	state, err := Status(ctx, db, dialect, schema, migrations)
	if err != nil || !state.Pending() {
		return state, err
	}
	if dialect == Postgres {
		if _, err := db.ExecContext(ctx, `CREATE SCHEMA IF NOT EXISTS `+quote(schema)); err != nil {
			return state, fmt.Errorf("sqlmigrate: making schema %s: %w", schema, err)
		}
	}
	provider, err := newProvider(db, dialect, schema, migrations)
	if err != nil {
		return state, err
	}
	if _, err := provider.Up(ctx); err != nil {
		return state, fmt.Errorf("sqlmigrate: %w", err)
	}
	return state, nil
}

// Status says how the database stands, changing nothing. The error is ErrNewer (with a State) where this program must
// not use it.
func Status(ctx context.Context, db *sql.DB, dialect Dialect, schema string, migrations fs.FS) (State, error) {
	if err := check(db, dialect, schema); err != nil {
		return State{}, err
	}
	provider, err := newProvider(db, dialect, schema, migrations)
	if err != nil {
		return State{}, err
	}
	var state State
	known := map[int64]bool{0: true} // goose's own first row
	for _, s := range provider.ListSources() {
		known[s.Version] = true
		state.Target = max(state.Target, s.Version)
	}
	applied, err := appliedVersions(ctx, db, dialect, schema)
	if err != nil {
		return State{}, fmt.Errorf("sqlmigrate: reading %s: %w", Table, err)
	}
	var unknown int64
	for _, version := range applied {
		state.Current = max(state.Current, version)
		if !known[version] {
			unknown = version
		}
	}
	if unknown != 0 {
		return state, fmt.Errorf("sqlmigrate: number %d is applied and this program knows %d at most: %w", unknown, state.Target, ErrNewer)
	}
	return state, nil
}

var schemaName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

func check(db *sql.DB, dialect Dialect, schema string) error {
	switch dialect {
	case SQLite:
		if schema != "" {
			return fmt.Errorf("sqlmigrate: SQLite has no schemas, so %q cannot be used", schema)
		}
	case Postgres:
		if !schemaName.MatchString(schema) {
			return fmt.Errorf("sqlmigrate: %q is not a schema's name (a-z, 0-9, _)", schema)
		}
		if db.Stats().MaxOpenConnections == 1 {
			return errors.New("sqlmigrate: one connection is not enough: one holds the lock, another applies the files")
		}
	default:
		return fmt.Errorf("sqlmigrate: unknown dialect %q", dialect)
	}
	return nil
}

func newProvider(db *sql.DB, dialect Dialect, schema string, migrations fs.FS) (*goose.Provider, error) {
	kind, table := goose.DialectSQLite3, Table
	if dialect == Postgres {
		kind, table = goose.DialectPostgres, schema+"."+Table
		migrations = inSchema{files: migrations, schema: schema}
	}
	provider, err := goose.NewProvider(kind, db, migrations,
		goose.WithTableName(table), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("sqlmigrate: %w", err)
	}
	return provider, nil
}

var sqliteLock = make(chan struct{}, 1)

// lock waits until no other starter migrates this schema. The function that it returns ends that.
func lock(ctx context.Context, db *sql.DB, dialect Dialect, schema string) (func(), error) {
	if dialect == SQLite {
		select {
		case sqliteLock <- struct{}{}:
			return func() { <-sqliteLock }, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	unlock := sync.OnceFunc(func() { _ = tx.Rollback() }) // it wrote nothing; the lock goes with it
	for _, statement := range []string{
		// It is idle for as long as the files take.
		`SET LOCAL idle_in_transaction_session_timeout = 0`,
		`SET LOCAL lock_timeout = 0`,
		`SET LOCAL statement_timeout = 0`,
		`SELECT pg_advisory_xact_lock(hashtextextended('onsale.sqlmigrate.` + schema + `', 0))`,
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			unlock()
			return nil, err
		}
	}
	return unlock, nil
}

// appliedVersions reads goose's table, which is not there in an empty database.
func appliedVersions(ctx context.Context, db *sql.DB, dialect Dialect, schema string) ([]int64, error) {
	exists := `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '` + Table + `'`
	table := Table
	if dialect == Postgres {
		exists = `SELECT count(*) FROM pg_tables WHERE schemaname = '` + schema + `' AND tablename = '` + Table + `'`
		table = quote(schema) + "." + Table
	}
	var count int
	if err := db.QueryRowContext(ctx, exists).Scan(&count); err != nil || count == 0 {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT version_id FROM `+table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var versions []int64
	for rows.Next() {
		var v int64
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		versions = append(versions, v)
	}
	return versions, rows.Err()
}

func quote(schema string) string { return `"` + schema + `"` }
