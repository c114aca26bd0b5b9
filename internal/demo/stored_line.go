package demo

import (
	"context"
	"database/sql"

	"onsale/internal/id"
)

// A storedSession is somebody's time inside.
type storedSession struct {
	customer id.ID
	at       numberKey
	entered  int64
	ended    int64
}

func (s *store) readSessions(ctx context.Context, tx *sql.Tx, r *stored) error {
	return s.each(ctx, tx, "SELECT session_id, customer_id, lane, number, entered_at, ended_at FROM #sessions", func(rows *sql.Rows) error {
		var session id.ID
		var v storedSession
		if err := rows.Scan(&session, &v.customer, &v.at.lane, &v.at.number, &v.entered, &v.ended); err != nil {
			return err
		}
		r.sessions[session] = &v
		return nil
	})
}
