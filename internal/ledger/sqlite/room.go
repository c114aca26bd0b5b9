package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// Waiting rooms: what a batch reads and writes of them, and the Reader.

// Room implements decide.Source. A room that is changed and then not committed is forgotten with the whole cache.
func (s *source) Room(event id.ID) (*decide.Room, error) {
	if r, ok := s.cache.rooms.get(event); ok {
		return r, nil
	}
	r, err := none(scanRoom(s.s.room.QueryRowContext(s.ctx, int64(event)), event))
	if r != nil {
		s.cache.rooms.put(event, r)
	}
	return r, err
}

func scanRoom(row scanner, event id.ID) (*decide.Room, error) {
	var body string
	r := &decide.Room{}
	if err := row.Scan(&r.Version, &body); err != nil {
		return nil, err
	}
	room, err := decide.DecodeRoom(body, event)
	if err != nil {
		return nil, err
	}
	r.Room = *room
	return r, nil
}

func scanSession(row scanner) (*decide.Session, error) {
	s := &decide.Session{}
	return s, row.Scan(&s.ID, &s.Event, &s.Customer, &s.Lane, &s.Number, &s.Position, &s.Entered, &s.Expires, &s.Ended, &s.Why)
}

// Session implements decide.Source.
func (s *source) Session(session id.ID) (*decide.Session, error) {
	if r, ok := s.cache.sessions.get(session); ok {
		return r, nil
	}
	return none(scanSession(s.s.session.QueryRowContext(s.ctx, int64(session))))
}

// SessionOf implements decide.Source.
func (s *source) SessionOf(n ledger.SessionNumber) (*decide.Session, error) {
	return none(scanSession(s.s.sessionOf.QueryRowContext(s.ctx, int64(n.Event), n.Lane, n.Number)))
}

// ExpiredSessions implements decide.Source.
func (s *source) ExpiredSessions(event id.ID, now ledger.Time, most int) ([]id.ID, error) {
	return list(s.ctx, s.s.sessionsDue, scanID, int64(event), int64(now), most)
}

// CodeUses implements decide.Source.
func (s *source) CodeUses(k decide.CodeKey, customer id.ID) (n int, used bool, err error) {
	if n, err = count(s.s.codeCount.QueryRowContext(s.ctx, int64(k.Event), k.Lane, k.Code)); err != nil {
		return 0, false, err
	}
	one, err := count(s.s.codeUsed.QueryRowContext(s.ctx, int64(k.Event), k.Lane, k.Code, int64(customer)))
	return n, one == 1, err
}

// Unpaid implements decide.Source.
func (s *source) Unpaid(k decide.UnpaidKey) ([]decide.Unpaid, error) {
	return list(s.ctx, s.s.unpaid, func(rows *sql.Rows) (u decide.Unpaid, err error) {
		var h ledger.Hold
		var lines string
		if err = rows.Scan(&u.Hold, &u.Ended, &h.Area, &lines); err != nil {
			return u, err
		}
		h.Lines, err = decide.ParseLines(lines)
		u.Seats = h.Seats()
		return u, err
	}, int64(k.Customer), int64(k.Event), int64(k.Since), decide.UnpaidReadMax)
}

// rooms writes what a batch changed of waiting rooms.
func (w *writer) rooms(o *decide.Output) {
	for _, r := range o.Rooms {
		body, err := decide.EncodeRoom(&r.Room)
		if err != nil && w.err == nil {
			w.err = err
		}
		w.do(w.s.roomPut, int64(r.Event), r.Version+1, body)
	}
	for _, s := range o.Sessions {
		if s.New {
			w.do(w.s.sessionAdd, int64(s.ID), int64(s.Event), int64(s.Customer), s.Lane, s.Number, s.Position, int64(s.Entered),
				int64(s.Expires), int64(s.Ended), s.Why)
		} else {
			w.do(w.s.sessionSet, int64(s.Expires), int64(s.Ended), s.Why, int64(s.ID))
		}
	}
	for _, f := range o.Forces {
		w.do(w.s.ruleAdd, int64(f.Event), int64(f.At), int64(f.Mode), f.Rate, f.ActiveMax, int64(f.Turn), f.Paused, f.Closed)
	}
	for _, c := range o.Calls {
		w.do(w.s.callAdd, int64(c.Event), c.Lane, int64(c.At), int64(c.Clock), c.From, c.Watermark)
	}
	for _, u := range o.Codes {
		w.do(w.s.codeAdd, int64(u.Event), u.Lane, u.Code, u.Number, int64(u.Customer), u.Max, int64(u.At))
	}
}

// Room implements ledger.Reader.
func (r *reader) Room(ctx context.Context, event id.ID) (ledger.Room, error) {
	room, err := scanRoom(r.db.QueryRowContext(ctx, `SELECT version, body FROM rooms WHERE event_id = ?`, int64(event)), event)
	if err != nil {
		return ledger.Room{}, found(err)
	}
	return room.Room, nil
}

// Rooms implements ledger.Reader.
func (r *reader) Rooms(ctx context.Context) ([]ledger.Room, error) {
	return query(ctx, r.db, func(rows *sql.Rows) (ledger.Room, error) {
		var event id.ID
		var body string
		if err := rows.Scan(&event, &body); err != nil {
			return ledger.Room{}, err
		}
		room, err := decide.DecodeRoom(body, event)
		if err != nil {
			return ledger.Room{}, err
		}
		return *room, nil
	}, `SELECT event_id, body FROM rooms ORDER BY event_id`)
}

const sessionColumns = `session_id, event_id, customer_id, lane, number, position, entered_at, expires_at, ended_at, why`

// Session implements ledger.Reader.
func (r *reader) Session(ctx context.Context, session id.ID) (ledger.Session, error) {
	return readSession(r.db.QueryRowContext(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE session_id = ?`, int64(session)))
}

func readSession(row scanner) (ledger.Session, error) {
	s, err := scanSession(row)
	if err != nil {
		return ledger.Session{}, found(err)
	}
	return s.Session, nil
}

// SessionOfNumber implements ledger.Reader.
func (r *reader) SessionOfNumber(ctx context.Context, n ledger.SessionNumber) (ledger.Session, error) {
	return readSession(r.db.QueryRowContext(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE event_id = ? AND lane = ? AND number = ?`,
		int64(n.Event), n.Lane, n.Number))
}

// Sessions implements ledger.Reader.
func (r *reader) Sessions(ctx context.Context, event, after id.ID, most int) ([]ledger.Session, error) {
	return query(ctx, r.db, func(rows *sql.Rows) (ledger.Session, error) { return readSession(rows) },
		`SELECT `+sessionColumns+` FROM sessions WHERE event_id = ? AND session_id > ? ORDER BY session_id LIMIT ?`, int64(event), int64(after), most)
}

// Calls implements ledger.Reader.
func (r *reader) Calls(ctx context.Context, event id.ID, lane string, since ledger.Time, most int) ([]ledger.Call, error) {
	return query(ctx, r.db, func(rows *sql.Rows) (ledger.Call, error) {
		c := ledger.Call{Lane: lane}
		return c, rows.Scan(&c.At, &c.Clock, &c.From, &c.Watermark)
	}, `SELECT at, clock, was, watermark FROM room_calls WHERE event_id = ? AND lane = ? AND at >= ? ORDER BY at, call_id LIMIT ?`,
		int64(event), lane, int64(since), most)
}

// Forces implements ledger.Reader.
func (r *reader) Forces(ctx context.Context, event id.ID) ([]ledger.RoomForce, error) {
	return query(ctx, r.db, func(rows *sql.Rows) (ledger.RoomForce, error) {
		f := ledger.RoomForce{Event: event}
		return f, rows.Scan(&f.At, &f.Mode, &f.Rate, &f.ActiveMax, &f.Turn, &f.Paused, &f.Closed)
	}, `SELECT at, mode, rate, active_max, turn, paused, closed FROM room_rules WHERE event_id = ? ORDER BY rule_id`, int64(event))
}

// RoomFigures implements ledger.Reader: at one instant, by one read transaction. A line of a hold stands behind a "],[".
func (r *reader) RoomFigures(ctx context.Context, event id.ID) (f ledger.RoomFigures, err error) {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, ignoreDone(tx.Rollback())) }()
	err = tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(ended_at = 0), 0) FROM sessions WHERE event_id = ?`, int64(event)).Scan(&f.Entered, &f.Inside)
	if err != nil {
		return f, err
	}
	err = tx.QueryRowContext(ctx, `SELECT count(*) FROM sessions s INDEXED BY sessions_open WHERE s.event_id = ?1 AND s.ended_at = 0 AND EXISTS
	      (SELECT 1 FROM holds h INDEXED BY holds_session WHERE h.event_id = ?1 AND h.session_id <> 0 AND h.session_id = s.session_id AND h.state = 1 AND h.expires_at > ?2)`,
		int64(event), int64(r.ledger.clock())).Scan(&f.Holding)
	if err != nil {
		return f, err
	}
	err = tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(ended_at = 0), 0), count(DISTINCT CASE WHEN ended_at = 0 THEN session_id END),
	      coalesce(sum(CASE WHEN ended_at = 0 THEN (length(lines) - length(replace(lines, '],[', ''))) / 3 ELSE 0 END), 0)
	    FROM holds INDEXED BY holds_session WHERE event_id = ? AND session_id <> 0 AND state <> 1`, int64(event)).Scan(&f.HoldsEnded, &f.HoldsSold, &f.Paid, &f.PlacesSold)
	return f, err
}

// CodeUses implements ledger.Reader.
func (r *reader) CodeUses(ctx context.Context, event id.ID, lane, code string) (int, error) {
	return count(r.db.QueryRowContext(ctx, `SELECT number FROM code_uses WHERE event_id = ? AND lane = ? AND code = ? ORDER BY number DESC LIMIT 1`,
		int64(event), lane, code))
}
