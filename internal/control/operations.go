package control

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlitecode "modernc.org/sqlite/lib"

	"onsale/internal/fault"
)

// DeleteMeta forgets a named value. That there is none is no error.
func (d *DB) DeleteMeta(ctx context.Context, name string) error {
	return wrap("forgetting "+name, d.exec(ctx, `DELETE FROM {meta} WHERE name = $1`, name))
}

// full turns a full or failing disk into a fault that says so: nothing was written, nothing is lost, and the same request
// may succeed once there is room (F1).
func full(err error) error {
	var pg *pgconn.PgError
	var lite *sqlite.Error
	failing := false
	switch {
	case errors.As(err, &pg):
		failing = pg.Code == "53100" || pg.Code == "58030" // disk_full, io_error
	case errors.As(err, &lite):
		switch lite.Code() & 0xff {
		case sqlitecode.SQLITE_FULL, sqlitecode.SQLITE_IOERR, sqlitecode.SQLITE_READONLY:
			failing = true
		}
	}
	if !failing {
		return away(err)
	}
	return &fault.Error{Code: fault.Busy, Detail: "the disk is full or failing", Cause: err}
}

// away turns a database that cannot be reached into a fault that says so, where certainly nothing was committed: no
// connection was to be had, or it was gone before the statement was sent.
func away(err error) error {
	var connect *pgconn.ConnectError
	if err == nil || !errors.As(err, &connect) && !pgconn.SafeToRetry(err) {
		return err
	}
	return &fault.Error{Code: fault.Busy, Detail: "the database is away", RetryAfter: time.Second, Cause: err}
}
