package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"onsale/internal/id"
	"onsale/internal/waitingroom"
)

// JoinsTable is the log of joins where it is a table of the control schema in the source's own database, as in houses of
// several nodes.
func (s *Source) JoinsTable() Joins { return joinsTable{s.db} }

type joinsTable struct{ db *sql.DB }

// Replay reads the table. A number that was given up is told twice: as it was given out, and as its end.
func (t joinsTable) Replay(ctx context.Context, event id.ID, sorted bool, each func(waitingroom.Record) error) (err error) {
	query := `SELECT lane, number, customer_id, at_ms, drawn, entry, present, left_ms FROM control.joins WHERE event_id = ` + number(event)
	if sorted {
		query += ` AND drawn = 1 AND listed = 1`
	}
	rows, err := t.db.QueryContext(ctx, query+` ORDER BY lane, number`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		r := waitingroom.Record{Event: event}
		var entry []byte
		var present bool
		var left int64
		if err := rows.Scan(&r.Lane, &r.Number, &r.Customer, &r.At, &r.Drawn, &entry, &present, &left); err != nil {
			return err
		}
		if len(entry) != len(r.Entry) {
			return fmt.Errorf("number %d has an entry of %d bytes", r.Number, len(entry))
		}
		copy(r.Entry[:], entry)
		if err := each(r); err != nil {
			return err
		}
		if !present && !sorted {
			r.Left, r.At = true, left
			if err := each(r); err != nil {
				return err
			}
		}
	}
	return rows.Err()
}
