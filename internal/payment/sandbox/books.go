package sandbox

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"

	_ "modernc.org/sqlite"
)

// booksFormat is the version of the schema, kept as SQLite's user_version.
const booksFormat = 1

const schema = `
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- One row per order id that was ever charged or cancelled: what was asked first, what meets it, how often it came.
CREATE TABLE attempts (
	order_id TEXT PRIMARY KEY,
	amount_minor INTEGER NOT NULL,    -- 0: cancelled before any attempt was seen
	currency TEXT NOT NULL,
	token_hash BLOB NOT NULL,
	authorize_only INTEGER NOT NULL,
	faults TEXT NOT NULL,             -- joined by +
	try_count INTEGER NOT NULL,
	answer_lost INTEGER NOT NULL,     -- the lost answer has been lost
	cancelled_ms INTEGER NOT NULL     -- 0: open
) STRICT, WITHOUT ROWID;

CREATE TABLE payments (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	order_id TEXT NOT NULL,
	state TEXT NOT NULL,
	currency TEXT NOT NULL,
	amount_minor INTEGER NOT NULL,
	authorize_only INTEGER NOT NULL,
	authorized_minor INTEGER NOT NULL,
	captured_minor INTEGER NOT NULL CHECK (captured_minor <= amount_minor),
	refunded_minor INTEGER NOT NULL CHECK (refunded_minor <= captured_minor),
	decline_code TEXT NOT NULL,
	decline_final INTEGER NOT NULL,
	refusal TEXT NOT NULL,            -- code of a finally refused capture
	revision INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	due_ms INTEGER,                   -- when a pending one ends; NULL otherwise
	stoppable INTEGER NOT NULL        -- a pending one can be cancelled
) STRICT;
CREATE INDEX payments_order ON payments (order_id);
CREATE INDEX payments_due ON payments (due_ms) WHERE due_ms IS NOT NULL;

CREATE TABLE refunds (
	refund_id TEXT PRIMARY KEY,
	payment_seq INTEGER NOT NULL REFERENCES payments,
	amount_minor INTEGER NOT NULL,
	refusal TEXT NOT NULL,            -- empty: given back
	created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX refunds_payment ON refunds (payment_seq, created_ms, refund_id);

-- One row per webhook to be sent; a repeated one has two.
CREATE TABLE deliveries (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	event_id TEXT NOT NULL,
	order_id TEXT NOT NULL,
	body BLOB NOT NULL,
	held INTEGER NOT NULL,            -- kept back until a later one of its order has gone
	due_ms INTEGER,                   -- NULL: delivered or given up
	try_count INTEGER NOT NULL,
	delivered_ms INTEGER NOT NULL     -- 0: not yet
) STRICT;
CREATE INDEX deliveries_due ON deliveries (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX deliveries_order ON deliveries (order_id);

CREATE TABLE faults (fault TEXT PRIMARY KEY, occurred_count INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`

// errClosed is what work meets that comes after Close.
var errClosed = errors.New("sandbox: the books are closed")

// books is the provider's own durable file. Writes go through one goroutine that commits whatever waits in one
// transaction (so a thousand charges share one fsync); reads see what is committed.
type books struct {
	write  *sql.DB
	writer *tx
	read   *sql.DB
	id     string // tells these books from any others: part of each payment id

	committed func() // called after each commit; must not block

	jobs chan job
	quit chan struct{}
	done chan struct{}
}

// job is one change of the books. run reports its result through its closure; its error undoes this job alone.
type job struct {
	run    func(*tx) error
	answer chan error // capacity 1
}

// openBooks opens the file, or makes it. account must be the one that the file was made for.
func openBooks(path, account string, random io.Reader, committed func()) (*books, error) {
	name := (&url.URL{Path: path}).EscapedPath()
	pragmas := "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	write, err := sql.Open("sqlite", "file:"+name+"?"+pragmas+"&_txlock=immediate")
	if err != nil {
		return nil, fmt.Errorf("sandbox: open books %s: %w", path, err)
	}
	write.SetMaxOpenConns(1)
	b := &books{write: write, committed: committed, jobs: make(chan job, jobsMax), quit: make(chan struct{}), done: make(chan struct{})}
	if err := b.prepare(account, random); err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: books %s: %w", path, err), write.Close())
	}
	if b.read, err = sql.Open("sqlite", "file:"+name+"?"+pragmas+"&_pragma=query_only(1)"); err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: open books %s: %w", path, err), write.Close())
	}
	conn, err := write.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: open books %s: %w", path, err), write.Close(), b.read.Close())
	}
	b.writer = &tx{conn: conn, statements: map[string]*sql.Stmt{}}
	b.read.SetMaxOpenConns(readersMax)
	b.read.SetMaxIdleConns(readersMax)
	go b.loop()
	return b, nil
}

// prepare makes the schema in a new file and checks an old one.
func (b *books) prepare(account string, random io.Reader) error {
	t, err := b.write.Begin()
	if err != nil {
		return err
	}
	defer t.Rollback()
	var format int
	if err := t.QueryRow("PRAGMA user_version").Scan(&format); err != nil {
		return err
	}
	switch format {
	case 0:
		raw := make([]byte, 5)
		if _, err := io.ReadFull(random, raw); err != nil {
			return fmt.Errorf("random id of the books: %w", err)
		}
		if _, err := t.Exec(schema); err != nil {
			return err
		}
		if _, err := t.Exec("INSERT INTO meta VALUES ('id', ?), ('account', ?)", hex.EncodeToString(raw), account); err != nil {
			return err
		}
		if _, err := t.Exec(fmt.Sprintf("PRAGMA user_version = %d", booksFormat)); err != nil {
			return err
		}
	case booksFormat:
	default:
		return fmt.Errorf("written in format %d by another version; this one reads %d", format, booksFormat)
	}
	var kept string
	if err := t.QueryRow("SELECT (SELECT value FROM meta WHERE name = 'id'), (SELECT value FROM meta WHERE name = 'account')").
		Scan(&b.id, &kept); err != nil {
		return err
	}
	if kept != account {
		return fmt.Errorf("belong to account %q, not %q: use another file", kept, account)
	}
	return t.Commit()
}

func (b *books) close() error {
	close(b.quit)
	<-b.done
	for _, s := range b.writer.statements { // the file stays open as long as one of them does
		_ = s.Close()
	}
	return errors.Join(b.writer.conn.Close(), b.write.Close(), b.read.Close())
}

// change runs f inside a transaction and answers once it is on disk. An error of f undoes only what f did. When ctx ends
// first, the change may still happen.
func change[T any](ctx context.Context, b *books, f func(*tx) (T, error)) (T, error) {
	var result T
	j := job{answer: make(chan error, 1), run: func(t *tx) (err error) {
		result, err = f(t)
		return err
	}}
	var none T
	select {
	case <-b.quit: // a queue with room would take the job although nobody serves it
		return none, errClosed
	default:
	}
	select {
	case b.jobs <- j:
	case <-ctx.Done():
		return none, ctx.Err()
	case <-b.quit:
		return none, errClosed
	}
	select {
	case err := <-j.answer:
		if err != nil {
			return none, err
		}
		return result, nil
	case <-ctx.Done():
		return none, ctx.Err()
	case <-b.done:
		// The loop may have answered just before it ended.
		select {
		case err := <-j.answer:
			if err != nil {
				return none, err
			}
			return result, nil
		default:
			return none, errClosed
		}
	}
}

func (b *books) loop() {
	defer close(b.done)
	for {
		var batch []job
		select {
		case <-b.quit:
			return
		case j := <-b.jobs:
			batch = append(batch, j)
		}
	gather:
		for len(batch) < batchMax {
			select {
			case j := <-b.jobs:
				batch = append(batch, j)
			default:
				break gather
			}
		}
		b.apply(batch)
	}
}

// apply runs a batch in one transaction and answers every job.
func (b *books) apply(batch []job) {
	results := make([]error, len(batch))
	err := b.writer.exec("BEGIN IMMEDIATE")
	if err == nil {
		if err = b.applyJobs(batch, results); err == nil {
			err = b.writer.exec("COMMIT")
		}
		if err == nil {
			b.committed()
		} else {
			// SQLite may have rolled back by itself, so an error here tells nothing new.
			_ = b.writer.exec("ROLLBACK")
		}
	}
	for i, j := range batch {
		if err != nil {
			results[i] = fmt.Errorf("sandbox: books: %w", err)
		}
		j.answer <- results[i]
	}
}

func (b *books) applyJobs(batch []job, results []error) error {
	for i, j := range batch {
		if err := b.writer.exec("SAVEPOINT job"); err != nil {
			return err
		}
		if results[i] = j.run(b.writer); results[i] != nil {
			if err := b.writer.exec("ROLLBACK TO job"); err != nil {
				return err
			}
		}
		if err := b.writer.exec("RELEASE job"); err != nil {
			return err
		}
	}
	return nil
}

// tx is the writer's one connection with its prepared statements; it is used by the loop's goroutine alone.
type tx struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
}

func (x *tx) prepared(query string) (*sql.Stmt, error) {
	if s, ok := x.statements[query]; ok {
		return s, nil
	}
	s, err := x.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("%w in %q", err, query)
	}
	x.statements[query] = s
	return s, nil
}

func (x *tx) exec(query string, args ...any) error {
	_, err := x.insert(query, args...)
	return err
}

// insert is exec that answers the new row's number.
func (x *tx) insert(query string, args ...any) (int64, error) {
	s, err := x.prepared(query)
	if err != nil {
		return 0, err
	}
	r, err := s.Exec(args...)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// query is rows of a read inside the transaction, for scanAll.
func (x *tx) query(query string, args ...any) (*sql.Rows, error) {
	s, err := x.prepared(query)
	if err != nil {
		return nil, err
	}
	return s.Query(args...)
}

// querier is who can be read from: the transaction, or the committed state.
type querier interface {
	query(query string, args ...any) (*sql.Rows, error)
}

// reader reads the committed state, through a handle's or a transaction's QueryContext.
type reader struct {
	ctx context.Context
	run func(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (r reader) query(query string, args ...any) (*sql.Rows, error) {
	return r.run(r.ctx, query, args...)
}

// snapshot runs f on one committed state, whatever is written meanwhile.
func (b *books) snapshot(ctx context.Context, f func(querier) error) error {
	t, err := b.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer t.Rollback()
	return f(reader{ctx, t.QueryContext})
}

// scanAll reads all rows of a query with scan.
func scanAll[T any](q querier, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// scanOne is scanAll for a query that finds one row or none; found tells which.
func scanOne[T any](q querier, scan func(*sql.Rows) (T, error), query string, args ...any) (one T, found bool, err error) {
	all, err := scanAll(q, scan, query, args...)
	if err != nil || len(all) == 0 {
		return one, false, err
	}
	return all[0], true, nil
}
