package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // registers "sqlite"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A dialect is what differs between the databases. Everything else is one text for both: the tables and columns are the
// same by design.
type dialect struct {
	name    string
	schema  string // before each table's name
	cursors bool   // one statement at a time on a connection: rows are fetched through cursors
	begin   sql.TxOptions
	clock   string
}

var (
	sqliteDialect = dialect{name: "sqlite", begin: sql.TxOptions{ReadOnly: true}, clock: `SELECT now FROM clock`}
	// The node that writes keeps the shard's time; the database's clock is what it goes by.
	postgresDialect = dialect{
		name: "postgres", schema: "shard.", cursors: true,
		begin: sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		clock: `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint`,
	}
)

// A Source is a shard's database, opened for reading only. Close it after use.
type Source struct {
	dialect dialect
	db      *sql.DB
}

// OpenSQLite opens a shard's file. A server may be running on it; nothing is written.
func OpenSQLite(path string) (*Source, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	q := url.Values{"mode": {"ro"}, "_pragma": {"query_only(1)", "busy_timeout(10000)", "cache_size(-32768)", "temp_store(FILE)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return newSource(sqliteDialect, db), nil
}

// OpenPostgres opens a shard's database by its URL.
func OpenPostgres(rawURL string) (*Source, error) {
	config, err := pgx.ParseConfig(rawURL)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	// Nothing is prepared: cursors of one name have other columns the next time, and PgBouncer may stand between (D1).
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return newSource(postgresDialect, stdlib.OpenDB(*config)), nil
}

func newSource(d dialect, db *sql.DB) *Source {
	db.SetMaxOpenConns(2) // the snapshot, and the clock beside it
	return &Source{dialect: d, db: db}
}

// Close ends it.
func (s *Source) Close() error { return s.db.Close() }

// clock is the shard's time, unless an instant is given.
func (s *Source) clock(ctx context.Context, given ledger.Time) (ledger.Time, error) {
	if given != 0 {
		return given, nil
	}
	var now ledger.Time
	if err := s.db.QueryRowContext(ctx, s.dialect.clock).Scan(&now); err != nil {
		return 0, fmt.Errorf("audit: reading the clock: %w", err)
	}
	if !s.dialect.cursors { // SQLite keeps the last batch's time; the clock itself is this machine's
		now = max(now, ledger.TimeOf(time.Now()))
	}
	return now, nil
}

// A snapshot is one read transaction. The first error stays and ends every table.
type snapshot struct {
	ctx     context.Context
	dialect dialect
	tx      *sql.Tx
	opened  int
	open    []*sql.Rows
	err     error
}

func (s *Source) snapshot(ctx context.Context) (*snapshot, error) {
	tx, err := s.db.BeginTx(ctx, &s.dialect.begin)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return &snapshot{ctx: ctx, dialect: s.dialect, tx: tx}, nil
}

func (s *snapshot) close() error {
	var err error
	for _, rows := range s.open {
		err = errors.Join(err, rows.Close())
	}
	if rollback := s.tx.Rollback(); !errors.Is(rollback, sql.ErrTxDone) { // done where the context has ended
		err = errors.Join(err, rollback)
	}
	return err
}

func (s *snapshot) fail(err error) {
	if s.err == nil && err != nil {
		s.err = err
	}
}

// text puts the schema before each table: they are written as #table.
func (s *snapshot) text(query string) string { return strings.ReplaceAll(query, "#", s.dialect.schema) }

// number is an id in a query: cursors take no parameters.
func number(i id.ID) string { return strconv.FormatInt(int64(i), 10) }

// A table streams the rows of a query, some at a time.
type table[T any] struct {
	s     *snapshot
	query string
	scan  func(*sql.Rows, *T) error
	rows  *sql.Rows // kept open where the database allows it
	fetch string    // else the statement that reads on
	buf   []T
	at    int
	done  bool
}

const fetchRows = 2048

// read opens a table. T is filled by scan.
func read[T any](s *snapshot, query string, scan func(*sql.Rows, *T) error) *table[T] {
	t := &table[T]{s: s, query: s.text(query), scan: scan}
	if s.err != nil {
		t.done = true
		return t
	}
	if s.dialect.cursors {
		s.opened++
		name := "audit_" + strconv.Itoa(s.opened)
		_, err := s.tx.ExecContext(s.ctx, "DECLARE "+name+" NO SCROLL CURSOR FOR "+t.query)
		s.fail(err)
		t.fetch = fmt.Sprintf("FETCH FORWARD %d FROM %s", fetchRows, name)
		return t
	}
	rows, err := s.tx.QueryContext(s.ctx, t.query)
	s.fail(err)
	if err == nil {
		t.rows = rows
		s.open = append(s.open, rows)
	}
	return t
}

// fill reads the next rows.
func (t *table[T]) fill() {
	t.buf, t.at = t.buf[:0], 0
	if t.done || t.s.err != nil {
		t.done = true
		return
	}
	rows := t.rows
	if t.fetch != "" {
		var err error
		if rows, err = t.s.tx.QueryContext(t.s.ctx, t.fetch); err != nil {
			t.fail(err)
			return
		}
	}
	for len(t.buf) < fetchRows && rows.Next() {
		var row T
		if err := t.scan(rows, &row); err != nil {
			t.fail(err)
			break
		}
		t.buf = append(t.buf, row)
	}
	if len(t.buf) < fetchRows {
		t.fail(rows.Err())
		t.done = true
	}
	if t.fetch != "" || t.done {
		t.fail(rows.Close())
	}
}

func (t *table[T]) fail(err error) {
	if err != nil {
		t.done = true
		t.s.fail(fmt.Errorf("%s: %w", t.query, err))
	}
}

// peek is the next row, nil at the end.
func (t *table[T]) peek() *T {
	if t.at == len(t.buf) {
		if t.done {
			return nil
		}
		if t.fill(); len(t.buf) == 0 {
			return nil
		}
	}
	return &t.buf[t.at]
}

// all walks the rest.
func (t *table[T]) all() iter.Seq[T] { return t.while(func(*T) bool { return true }) }

// while walks the next rows as long as they are wanted.
func (t *table[T]) while(want func(*T) bool) iter.Seq[T] {
	return func(yield func(T) bool) {
		for row := t.peek(); row != nil && want(row); row = t.peek() {
			v := *row
			t.at++
			if !yield(v) {
				return
			}
		}
	}
}
