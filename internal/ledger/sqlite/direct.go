package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// A direct is a prepared statement that is executed without database/sql between: a sale writes 17 rows, and for each of
// them the locks, closures and reflection there cost a seventh of the whole. It belongs to the one writing connection,
// which is never given back to the pool, and is used by whoever holds the ledger's lock.
type direct struct {
	stmt   driver.Stmt
	execer driver.StmtExecContext // the same
	args   []driver.NamedValue
}

// prepareDirect prepares a statement on the driver's own connection.
func prepareDirect(ctx context.Context, conn *sql.Conn, text string) (*direct, error) {
	d := &direct{}
	err := conn.Raw(func(c any) error {
		preparer, ok := c.(driver.ConnPrepareContext)
		if !ok {
			return errors.New("the driver cannot prepare statements")
		}
		stmt, err := preparer.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		execer, ok := stmt.(driver.StmtExecContext)
		if !ok {
			return errors.Join(errors.New("the driver cannot execute statements"), stmt.Close())
		}
		d.stmt, d.execer = stmt, execer
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// exec runs the statement and says how many rows it changed.
func (d *direct) exec(ctx context.Context, args ...any) (int64, error) {
	d.args = d.args[:0]
	for i, a := range args {
		v, err := plain(a)
		if err != nil {
			return 0, err
		}
		d.args = append(d.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	r, err := d.execer.ExecContext(ctx, d.args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// plain turns an argument into one of the types that a driver takes.
func plain(a any) (driver.Value, error) {
	switch a := a.(type) {
	case int64, string, []byte, bool, nil:
		return a, nil
	case int:
		return int64(a), nil
	case int32:
		return int64(a), nil
	case int16:
		return int64(a), nil
	case sql.NullInt32:
		return a.Value()
	}
	return nil, fmt.Errorf("an argument of type %T", a)
}
