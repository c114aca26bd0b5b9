// Package postgres keeps a shard's ledger in PostgreSQL, for many nodes at once.
//
// The one idea: a batch first locks every row that it may read or change, in one order that all nodes share, and only
// then decides (ledger/decide) on what it locked, in memory; what changed is written set by set, one statement a table,
// before COMMIT. So the number of statements does not grow with the batch, and two nodes never wait for each other in a
// circle. Which rows to lock is a guess from the commands and from what the node remembers; where it was too small, the
// transaction is rolled back and begins again with what was missing (docs/LOCKING.md).
//
// Start reading at Ledger.Apply (apply.go), then lockset.go (the guess), lock.go, write.go.
package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // database/sql for the migrations

	"onsale/internal/ledger"
	"onsale/internal/sqlmigrate"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the schema that holds the shard's tables. Every statement names it: a search_path would not survive
// PgBouncer's transaction mode.
const Schema = "shard"

// Migrations are the numbered files of the shard's schema in this dialect.
func Migrations() fs.FS {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}

// Options say how a ledger is opened.
type Options struct {
	// URL is the database: postgres://user@host:port/database. With several hosts and target_session_attrs=read-write it
	// follows a fail-over.
	URL string
	// DirectURL goes straight to the server where URL goes through PgBouncer: for migrations and checks. Defaults to URL.
	DirectURL string
	// Exec prepares no statements, for PgBouncer's transaction mode before 1.21.
	Exec bool
	// Shard is the shard's number, for logs and the server's list of connections.
	Shard int
	// MaxConns is how many connections read at once, beside the one that writes. Defaults to 8.
	MaxConns int
	// Now is the clock, for tests. Defaults to the server's clock_timestamp().
	Now func() ledger.Time
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// A Ledger is a shard in a PostgreSQL database. Any number of them, in any number of processes, may have it open.
type Ledger struct {
	reader
	options Options
	log     *slog.Logger
	writing *pgxpool.Pool

	mu     sync.Mutex // one batch at a time
	closed bool
	facts  facts
	pruned ledger.Time // when this node last deleted what is old
	// statements counts what was sent, for the test that a batch's size does not change it.
	statements atomic.Int64
	// unsure is set by the server's warning that a commit is durable here, but perhaps not where it should be copied to.
	unsure atomic.Bool
	// beforeLock and beforeCommit are places for tests to come in between.
	beforeLock, beforeCommit func()
}

var _ ledger.Ledger = (*Ledger)(nil)

// Open connects and brings the schema up to date. It does not judge the server's settings: see CheckDurability.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	if o.DirectURL == "" {
		o.DirectURL = o.URL
	}
	if o.MaxConns <= 0 {
		o.MaxConns = 8
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	l := &Ledger{options: o, log: o.Logger.With("shard", o.Shard), facts: newFacts()}
	if err := l.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("ledger in PostgreSQL, shard %d: %w", o.Shard, err), l.Close())
	}
	return l, nil
}

func (l *Ledger) open(ctx context.Context) (err error) {
	if _, err = Migrate(ctx, l.options.DirectURL); err != nil {
		return err
	}
	if l.writing, err = l.pool(ctx, "batches", 1); err != nil {
		return err
	}
	if l.reader.pool, err = l.pool(ctx, "reading", l.options.MaxConns); err != nil {
		return err
	}
	l.reader.override = l.options.Now
	// A restart does not forget what time it was (A5): every batch that changed something left its time in a change.
	var stored int64
	if err = l.reader.pool.QueryRow(ctx, `SELECT greatest(now, coalesce((SELECT max(at) FROM shard.changes), 0)) FROM shard.clock`).Scan(&stored); err != nil {
		return err
	}
	l.reader.saw(ledger.Time(stored))
	return nil
}

// Migrate brings a database to the schema that this program knows; url must go straight to the server.
func Migrate(ctx context.Context, url string) (state sqlmigrate.State, err error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return state, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return sqlmigrate.Up(ctx, db, sqlmigrate.Postgres, Schema, Migrations())
}

func (l *Ledger) pool(ctx context.Context, what string, conns int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(l.options.URL)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(conns)
	config.MinConns = 0
	config.ConnConfig.OnNotice = l.notice
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		quickArrays(conn)
		return nil
	}
	if l.options.Exec {
		// PgBouncer passes on no settings of a connection: each transaction makes its own.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	} else {
		config.ConnConfig.RuntimeParams["application_name"] = "onsale shard " + strconv.Itoa(l.options.Shard) + " " + what
		config.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// notice hears the warnings with which a server ends the wait for a copy of a commit.
func (l *Ledger) notice(_ *pgconn.PgConn, n *pgconn.Notice) {
	if n.Code == "57014" || n.Code == "57P01" {
		l.unsure.Store(true)
	}
}

// Close waits for a running batch and ends all connections.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.writing != nil {
		l.writing.Close()
	}
	if l.reader.pool != nil {
		l.reader.pool.Close()
	}
	return nil
}

// durability are the settings on which every acknowledged batch hangs, with what is wrong about them.
var durability = []struct {
	setting string
	bad     []string
	why     string
}{
	{"fsync", []string{"off"}, "the loss of power loses or destroys what was sold"},
	{"full_page_writes", []string{"off"}, "the loss of power can leave half-written pages"},
	{"synchronous_commit", []string{"off"}, "a crash of the server loses what was acknowledged"},
}

// CheckDurability refuses a server that would lose acknowledged batches (RULES F1). `serve` and `doctor` ask for it.
func (l *Ledger) CheckDurability(ctx context.Context) (err error) {
	// A connection of its own, without the settings that this ledger makes: it sees the server's.
	conn, err := pgx.Connect(ctx, l.options.DirectURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var wrong []error
	for _, d := range durability {
		var value string
		if err := conn.QueryRow(ctx, `SELECT current_setting($1)`, d.setting).Scan(&value); err != nil {
			return err
		}
		for _, bad := range d.bad {
			if value == bad {
				wrong = append(wrong, fmt.Errorf("PostgreSQL runs with %[1]s = %[2]s: %[3]s. Mend: ALTER SYSTEM SET %[1]s = on; SELECT pg_reload_conf(); and take other settings of it away (ALTER ROLE, ALTER DATABASE)",
					d.setting, value, d.why))
			}
		}
	}
	return errors.Join(wrong...)
}
