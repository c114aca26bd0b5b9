package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"onsale/internal/id"
)

// The conditional design: each request is a transaction of its own. It takes its seats one by one in their order, so that
// no two requests wait for each other in a circle, each by an update that says under which condition; where one changes
// no row, somebody else has the seat and the transaction is rolled back.

// conditionalTables are fresh tables of its own, in both dialects. It writes less than ours: no limits, no history.
var conditionalTables = []string{
	`CREATE TABLE conditional_seats (seat_index integer PRIMARY KEY, state smallint NOT NULL, hold_id bigint NOT NULL, expires_at bigint NOT NULL)`,
	`CREATE TABLE conditional_holds (hold_id bigint PRIMARY KEY, customer_id bigint NOT NULL, created_at bigint NOT NULL, expires_at bigint NOT NULL)`,
	`CREATE TABLE conditional_lines (hold_id bigint NOT NULL, seat_index integer NOT NULL, PRIMARY KEY (hold_id, seat_index))`,
}

const (
	conditionalTake = `UPDATE conditional_seats SET state = 1, hold_id = $1, expires_at = $2 WHERE seat_index = $3 AND (state = 0 OR state = 1 AND expires_at <= $4)`
	conditionalHold = `INSERT INTO conditional_holds (hold_id, customer_id, created_at, expires_at) VALUES ($1, $2, $3, $4)`
	conditionalLine = `INSERT INTO conditional_lines (hold_id, seat_index) VALUES ($1, $2)`
)

const conditionalTTL = 600_000 // ms

func (p *place) holdsConditional(ctx context.Context, o HoldsOptions, r *Result) (err error) {
	db, err := p.db()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	fill := `INSERT INTO conditional_seats SELECT i, 0, 0, 0 FROM generate_series(0, %d) AS i`
	if p.path != "" {
		fill = `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO conditional_seats SELECT i, 0, 0, 0 FROM n`
	}
	for _, statement := range append(conditionalTables, fmt.Sprintf(fill, o.Seats-1)) {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	hall, err := newHall(o.Seats, PartyMax)
	if err != nil {
		return err
	}
	d := &conditional{next: func() int64 { return int64(hall.ids.MustNext(0)) }}
	closeAll, err := d.connect(ctx, p)
	defer func() { err = errors.Join(err, closeAll()) }()
	if err != nil {
		return err
	}
	p.storm(ctx, o, d, hall.ids, r)
	return conditionalClaims(ctx, db, r)
}

// conditional is the design: sessions are the connections that are free.
type conditional struct {
	next     func() int64
	sessions chan session
}

// A session is a connection with a transaction at a time.
type session interface {
	exec(ctx context.Context, statement string, args ...any) (rows int64, err error)
	close() error
}

func (d *conditional) connect(ctx context.Context, p *place) (closeAll func() error, err error) {
	count := connections
	if p.path != "" {
		count = 1 // SQLite has one writer
	}
	d.sessions = make(chan session, count)
	closeAll = func() (err error) {
		for range len(d.sessions) {
			err = errors.Join(err, (<-d.sessions).close())
		}
		return err
	}
	for range count {
		s, err := p.session(ctx)
		if err != nil {
			return closeAll, err
		}
		d.sessions <- s
	}
	return closeAll, nil
}

func (d *conditional) hold(ctx context.Context, customer id.ID, seats []int32) (taken []int32, err error) {
	s := <-d.sessions
	defer func() { d.sessions <- s }()
	if _, err := s.exec(ctx, `BEGIN`); err != nil {
		return nil, err
	}
	hold, now := d.next(), time.Now().UnixMilli()
	for _, seat := range seats {
		rows, err := s.exec(ctx, conditionalTake, hold, now+conditionalTTL, seat, now)
		if err != nil || rows != 1 {
			_, rollback := s.exec(ctx, `ROLLBACK`)
			return []int32{seat}, errors.Join(err, rollback)
		}
	}
	if _, err = s.exec(ctx, conditionalHold, hold, int64(customer), now, now+conditionalTTL); err == nil {
		for _, seat := range seats {
			if _, err = s.exec(ctx, conditionalLine, hold, seat); err != nil {
				break
			}
		}
	}
	if err != nil {
		_, rollback := s.exec(ctx, `ROLLBACK`)
		return nil, errors.Join(err, rollback)
	}
	_, err = s.exec(ctx, `COMMIT`)
	return nil, err
}

func (p *place) session(ctx context.Context) (session, error) {
	if p.path == "" {
		conn, err := pgx.Connect(ctx, p.url)
		return pgSession{conn}, err
	}
	db, err := p.db()
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &sqliteSession{db: db, conn: conn, prepared: map[string]*sql.Stmt{}}, nil
}

// pgSession prepares every statement once, by pgx's own cache.
type pgSession struct{ conn *pgx.Conn }

func (s pgSession) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	tag, err := s.conn.Exec(ctx, statement, args...)
	return tag.RowsAffected(), err
}

func (s pgSession) close() error { return s.conn.Close(context.Background()) }

type sqliteSession struct {
	db       *sql.DB
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
}

func (s *sqliteSession) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	if statement == `BEGIN` {
		statement = `BEGIN IMMEDIATE`
	}
	stmt := s.prepared[statement]
	if stmt == nil {
		var err error
		if stmt, err = s.conn.PrepareContext(ctx, statement); err != nil {
			return 0, err
		}
		s.prepared[statement] = stmt
	}
	done, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

func (s *sqliteSession) close() error {
	var err error
	for _, stmt := range s.prepared {
		err = errors.Join(err, stmt.Close())
	}
	return errors.Join(err, s.conn.Close(), s.db.Close())
}

// conditionalClaims counts the seats that are held, and those that more than one hold lists.
func conditionalClaims(ctx context.Context, db *sql.DB, r *Result) error {
	held := map[int32]int{}
	err := each(ctx, db, `SELECT seat_index FROM conditional_lines`, func(rows *sql.Rows) error {
		var seat int32
		err := rows.Scan(&seat)
		held[seat]++
		return err
	})
	r.SeatsHeld, r.DoubleSold = int64(len(held)), double(held)
	return err
}
