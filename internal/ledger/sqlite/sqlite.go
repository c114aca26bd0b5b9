// Package sqlite keeps a shard's ledger in one SQLite file: the embedded default.
//
// The one idea: there is one writer, this process, and one writing connection. Inside BEGIN IMMEDIATE nobody else can
// change a row, so the decisions (ledger/decide) read what they need when they need it; what changed is written by
// prepared statements before COMMIT. WAL with synchronous=FULL: an answered batch has been fsynced. Readers have
// connections of their own and never wait for the writer.
//
// Start reading at Ledger.Apply.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"onsale/internal/fault"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
	"onsale/internal/sqlmigrate"
)

//go:embed migrations/*.sql
var migrations embed.FS

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
	// Now is the clock, in Unix milliseconds. The ledger never goes back even when it does. Defaults to the machine's.
	Now func() ledger.Time
	// Readers is how many connections read at once. Defaults to 4.
	Readers int
}

// A Ledger is a shard's file. The data folder must belong to this process alone (RULES F1).
type Ledger struct {
	reader
	writer *sql.DB
	conn   *sql.Conn
	now    func() ledger.Time

	last atomic.Int64 // the last batch's now: the clock never goes back behind it (A5)

	mu     sync.Mutex  // one batch at a time
	pruned ledger.Time // when what is old was deleted last
	stmts  *statements
	cache  *cache

	webhooks webhookQueue
}

// DSN is the data source name of a file with the pragmas that a ledger needs.
func DSN(path string) string {
	q := url.Values{"_pragma": {
		"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(10000)", "foreign_keys(1)", "temp_store(MEMORY)",
		"cache_size(-65536)", "journal_size_limit(67108864)", "wal_autocheckpoint(4000)",
	}, "_txlock": {"immediate"}}
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String()
}

// Open opens or makes the file, brings its schema up to date and checks that nothing weakens its durability.
func Open(ctx context.Context, path string, o Options) (*Ledger, error) {
	if o.Now == nil {
		o.Now = func() ledger.Time { return ledger.TimeOf(time.Now()) }
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	l := &Ledger{now: o.Now, cache: newCache()}
	if err := l.open(ctx, path, o.Readers); err != nil {
		return nil, errors.Join(fmt.Errorf("ledger %s: %w", path, err), l.Close())
	}
	return l, nil
}

func (l *Ledger) open(ctx context.Context, path string, readers int) (err error) {
	if l.writer, err = sql.Open("sqlite", DSN(path)); err != nil {
		return err
	}
	l.writer.SetMaxOpenConns(1)
	if _, err = sqlmigrate.Up(ctx, l.writer, sqlmigrate.SQLite, "", Migrations()); err != nil {
		return err
	}
	if l.conn, err = l.writer.Conn(ctx); err != nil {
		return err
	}
	if err = l.durable(ctx); err != nil {
		return err
	}
	var last int64
	if err = l.conn.QueryRowContext(ctx, `SELECT now FROM clock`).Scan(&last); err != nil {
		return err
	}
	l.last.Store(last)
	if l.stmts, err = prepare(ctx, l.conn); err != nil {
		return err
	}
	if l.reader.db, err = sql.Open("sqlite", DSN(path)+"&mode=ro"); err != nil {
		return err
	}
	l.reader.db.SetMaxOpenConns(readers)
	l.reader.db.SetMaxIdleConns(readers)
	l.reader.ledger = l
	return nil
}

// durable refuses a file that would lose acknowledged batches.
func (l *Ledger) durable(ctx context.Context) error {
	var mode string
	var level int
	if err := l.conn.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return err
	}
	if err := l.conn.QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&level); err != nil {
		return err
	}
	if mode != "wal" || level < 2 {
		return fmt.Errorf("journal_mode is %s and synchronous %d: the ledger needs wal and FULL (2); use a local file system that supports both", mode, level)
	}
	return nil
}

// Close waits for a running batch.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if l.stmts != nil {
		err = l.stmts.close()
	}
	if l.conn != nil {
		err = errors.Join(err, l.conn.Close())
	}
	if l.writer != nil {
		err = errors.Join(err, l.writer.Close())
	}
	if l.reader.db != nil {
		err = errors.Join(err, l.reader.db.Close())
	}
	l.stmts, l.conn, l.writer, l.reader.db = nil, nil, nil, nil
	return err
}

// Apply implements ledger.Ledger. The context is heard before the batch begins; a batch once begun runs to its end.
func (l *Ledger) Apply(ctx context.Context, commands []ledger.Command) (ledger.Batch, error) {
	if err := bounds(commands); err != nil {
		return ledger.Batch{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return ledger.Batch{}, err
	}
	if l.conn == nil {
		return ledger.Batch{}, errors.New("the ledger is closed")
	}
	ctx = context.WithoutCancel(ctx)
	if _, err := l.stmts.begin.ExecContext(ctx); err != nil {
		return ledger.Batch{}, disk(err)
	}
	batch, out, err := l.run(ctx, commands)
	if err != nil {
		if _, rollback := l.conn.ExecContext(ctx, `ROLLBACK`); rollback != nil {
			err = errors.Join(err, rollback)
		}
		l.cache.forget()
		return ledger.Batch{}, disk(err)
	}
	l.last.Store(int64(batch.Now)) // before anybody can read what it did, also where it should fail
	if _, err := l.stmts.commit.ExecContext(ctx); err != nil {
		l.cache.forget()
		// Where the transaction is still open it has not been committed; else nobody can say.
		if _, rollback := l.conn.ExecContext(ctx, `ROLLBACK`); rollback != nil {
			return ledger.Batch{}, errors.Join(ledger.ErrOutcomeUnknown, err, rollback)
		}
		return ledger.Batch{}, disk(err)
	}
	l.cache.committed(out)
	return batch, nil
}

// clock is the shard's clock (A5).
func (l *Ledger) clock() ledger.Time { return max(l.now(), ledger.Time(l.last.Load())) }

func (l *Ledger) run(ctx context.Context, commands []ledger.Command) (ledger.Batch, *decide.Output, error) {
	now := l.clock()
	work := decide.New(&source{ctx: ctx, s: l.stmts, cache: l.cache}, now)
	results, err := work.Run(commands)
	if err != nil {
		return ledger.Batch{}, nil, err
	}
	work.Out.Prune = work.Out.Prune && now >= l.pruned+pruneEvery
	w := writer{ctx: ctx, s: l.stmts, now: now}
	if err := w.write(&work.Out); err != nil {
		return ledger.Batch{}, nil, err
	}
	if work.Out.Prune && !w.more {
		l.pruned = now
	}
	return ledger.Batch{Now: now, Results: results, Changes: work.Out.Changes}, &work.Out, nil
}

func bounds(commands []ledger.Command) error {
	if len(commands) > ledger.BatchCommandsMax {
		return fmt.Errorf("a batch has at most %d commands, not %d", ledger.BatchCommandsMax, len(commands))
	}
	seats := 0
	for _, c := range commands {
		seats += c.SeatCount()
	}
	if len(commands) > 1 && seats > ledger.BatchSeatsMax {
		return fmt.Errorf("a batch names at most %d seats, not %d", ledger.BatchSeatsMax, seats)
	}
	return nil
}

// disk turns a full or failing disk into a fault that says so: nothing was lost, and nothing can be sold.
func disk(err error) error {
	var e *driver.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY:
			return &fault.Error{Code: fault.Busy, Detail: "the disk is full or failing", Cause: err}
		}
	}
	return err
}

// ReadOnlyDSN is the data source name by which others may look at a file, also while its ledger runs.
func ReadOnlyDSN(path string) string {
	q := url.Values{"mode": {"ro"}, "_pragma": {"query_only(1)", "busy_timeout(10000)"}}
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String()
}
