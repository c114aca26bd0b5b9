// Package control is the control database: organizers, shows, events, plans, customers and their identities, sealed keys
// and node numbers, in SQLite or PostgreSQL.
//
// The one idea: every port that the control database serves (catalog.Store, identity.Store, keys.Store) is written once,
// in SQL that both databases read alike; the dialect is only how to open it and how a query is spelt. Nothing here is in
// the way of a purchase: with this database away, holds and payments go on.
//
// Start reading at OpenSQLite and OpenPostgres, then catalog.go. controltest.Exercise runs on both.
package control

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlitecode "modernc.org/sqlite/lib"

	"onsale/internal/sqlmigrate"
)

//go:embed migrations
var files embed.FS

// Schema is where everything lies in PostgreSQL.
const Schema = "control"

// A DB is an open control database. Catalog, Identities and Keys are the ports that it serves.
type DB struct {
	dialect sqlmigrate.Dialect
	write   *sql.DB // SQLite: one connection
	read    *sql.DB // PostgreSQL: the same as write
	now     func() time.Time

	identities identityQueue
}

// Migrations are the numbered files of a dialect.
func Migrations(dialect sqlmigrate.Dialect) fs.FS {
	sub, err := fs.Sub(files, "migrations/"+string(dialect))
	if err != nil {
		panic(err) // the folder is in the program
	}
	return sub
}

// Close ends all connections.
func (d *DB) Close() error {
	if d.read == d.write {
		return d.write.Close()
	}
	return errors.Join(d.read.Close(), d.write.Close())
}

// Ping says whether the database answers.
func (d *DB) Ping(ctx context.Context) error { return d.read.PingContext(ctx) }

// Status says how the schema stands.
func (d *DB) Status(ctx context.Context) (sqlmigrate.State, error) {
	return sqlmigrate.Status(ctx, d.write, d.dialect, d.schema(), Migrations(d.dialect))
}

func (d *DB) schema() string {
	if d.dialect == sqlmigrate.Postgres {
		return Schema
	}
	return ""
}

var table = regexp.MustCompile(`\{([a-z_]+)\}`)

// q spells a query for the dialect: {events} is the table events, $1 the first argument.
func (d *DB) q(query string) string {
	if d.dialect == sqlmigrate.Postgres {
		return table.ReplaceAllString(query, Schema+".$1")
	}
	return strings.ReplaceAll(table.ReplaceAllString(query, "$1"), "$", "?")
}

// tx runs f in one transaction, which is durable when tx returns nil.
func (d *DB) tx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (d *DB) exec(ctx context.Context, query string, args ...any) error {
	_, err := d.write.ExecContext(ctx, d.q(query), args...)
	return err
}

// contested says whether somebody else's rows were in the way: a unique key is taken, or a deadlock was broken.
func contested(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "23505" || pg.Code == "40001" || pg.Code == "40P01"
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		return lite.Code() == sqlitecode.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlitecode.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return false
}

// rows reads all rows of a query.
func rows[T any](ctx context.Context, d *DB, scan func(func(...any) error) (T, error), query string, args ...any) ([]T, error) {
	r, err := d.read.QueryContext(ctx, d.q(query), args...)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var all []T
	for r.Next() {
		one, err := scan(r.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, r.Err()
}

// Meta is a named value, nil where there is none.
func (d *DB) Meta(ctx context.Context, name string) ([]byte, error) {
	var value []byte
	err := d.read.QueryRowContext(ctx, d.q(`SELECT value FROM {meta} WHERE name = $1`), name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return value, err
}

// PutMetaOnce keeps a named value unless there is one, and answers the one that is kept: the same for all callers.
func (d *DB) PutMetaOnce(ctx context.Context, name string, value []byte) ([]byte, error) {
	if err := d.exec(ctx, `INSERT INTO {meta} (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, name, value); err != nil {
		return nil, err
	}
	return d.Meta(ctx, name)
}

func millis(t time.Time) int64 { return t.UnixMilli() }

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("control database: %s: %w", what, full(err))
}
