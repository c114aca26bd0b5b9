package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A pipeline is statements that go to the server in one round trip. The server runs them in order, and none after one
// that fails.
type pipeline struct {
	l     *Ledger
	batch pgx.Batch
}

func (l *Ledger) pipeline() *pipeline { return &pipeline{l: l} }

// exec queues a statement of which only the success matters.
func (p *pipeline) exec(sql string, args ...any) { p.batch.Queue(sql, args...) }

// affected queues a statement and tells how many rows it touched.
func (p *pipeline) affected(tell func(int64), sql string, args ...any) {
	p.batch.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		tell(tag.RowsAffected())
		return nil
	})
}

// rows queues a query; each is called for every row, after one Scan into dest.
func (p *pipeline) rows(sql string, args []any, dest []any, each func() error) {
	p.rowsThen(sql, args, dest, each, func() error { return nil })
}

// rowsThen is rows with something to be done after the last row.
func (p *pipeline) rowsThen(sql string, args []any, dest []any, each, then func() error) {
	p.batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(dest...); err != nil {
				return err
			}
			if err := each(); err != nil {
				return err
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return then()
	})
}

// must queues a statement that has to touch exactly so many rows, else broken says what that means.
func (p *pipeline) must(count int, broken func() error, sql string, args ...any) {
	p.batch.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(count) {
			return broken()
		}
		return nil
	})
}

// send runs what was queued. On an error the transaction, if one is open, is good for ROLLBACK only.
func (p *pipeline) send(ctx context.Context, conn *pgx.Conn) error {
	n := p.batch.Len()
	if n == 0 {
		return nil
	}
	p.l.statements.Add(int64(n))
	return conn.SendBatch(ctx, &p.batch).Close()
}
