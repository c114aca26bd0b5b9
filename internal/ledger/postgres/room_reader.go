package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// rooms reads waiting rooms.
func (r *reader) rooms(ctx context.Context, where string, args ...any) ([]ledger.Room, error) {
	var event int64
	var body string
	return list(ctx, r.pool, []any{&event, &body}, func() (ledger.Room, error) {
		room, err := decide.DecodeRoom(body, id.ID(event))
		if err != nil {
			return ledger.Room{}, err
		}
		return *room, nil
	}, `SELECT event_id, body FROM shard.rooms `+where+` ORDER BY event_id`, args...)
}

// Room implements ledger.Reader.
func (r *reader) Room(ctx context.Context, event id.ID) (ledger.Room, error) {
	all, err := r.rooms(ctx, `WHERE event_id = $1`, int64(event))
	if err == nil && len(all) == 0 {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Room{}, err
	}
	return all[0], nil
}

// Rooms implements ledger.Reader.
func (r *reader) Rooms(ctx context.Context) ([]ledger.Room, error) { return r.rooms(ctx, "") }

func (r *reader) session(ctx context.Context, where string, args ...any) (ledger.Session, error) {
	var row sessionScan
	return one(ctx, r.pool, row.dest(), func() (ledger.Session, error) { return row.take(), nil },
		`SELECT `+sessionColumns+` FROM shard.sessions WHERE `+where, args...)
}

// Session implements ledger.Reader.
func (r *reader) Session(ctx context.Context, session id.ID) (ledger.Session, error) {
	return r.session(ctx, `session_id = $1`, int64(session))
}

// SessionOfNumber implements ledger.Reader.
func (r *reader) SessionOfNumber(ctx context.Context, n ledger.SessionNumber) (ledger.Session, error) {
	return r.session(ctx, `event_id = $1 AND lane = $2 AND number = $3`, int64(n.Event), n.Lane, n.Number)
}

// Sessions implements ledger.Reader.
func (r *reader) Sessions(ctx context.Context, event, after id.ID, most int) ([]ledger.Session, error) {
	var row sessionScan
	return list(ctx, r.pool, row.dest(), func() (ledger.Session, error) { return row.take(), nil },
		`SELECT `+sessionColumns+` FROM shard.sessions WHERE event_id = $1 AND session_id > $2 ORDER BY session_id LIMIT $3`, int64(event), int64(after), most)
}

// Calls implements ledger.Reader.
func (r *reader) Calls(ctx context.Context, event id.ID, lane string, since ledger.Time, most int) ([]ledger.Call, error) {
	var at, clock, was, watermark int64
	return list(ctx, r.pool, []any{&at, &clock, &was, &watermark}, func() (ledger.Call, error) {
		return ledger.Call{Lane: lane, At: ledger.Time(at), Clock: ledger.Duration(clock), From: was, Watermark: watermark}, nil
	}, `SELECT at, clock, was, watermark FROM shard.room_calls WHERE event_id = $1 AND lane = $2 AND at >= $3 ORDER BY at, call_id LIMIT $4`,
		int64(event), lane, int64(since), most)
}

// Forces implements ledger.Reader.
func (r *reader) Forces(ctx context.Context, event id.ID) ([]ledger.RoomForce, error) {
	var at, rate, active, turn int64
	var mode, paused, closed int16
	return list(ctx, r.pool, []any{&at, &mode, &rate, &active, &turn, &paused, &closed}, func() (ledger.RoomForce, error) {
		return ledger.RoomForce{
			Event: event, At: ledger.Time(at), Mode: ledger.RoomMode(mode), Rate: int(rate), ActiveMax: int(active),
			Turn: ledger.Duration(turn), Paused: paused != 0, Closed: closed != 0,
		}, nil
	}, `SELECT at, mode, rate, active_max, turn, paused, closed FROM shard.room_rules WHERE event_id = $1 ORDER BY rule_id`, int64(event))
}

// RoomFigures implements ledger.Reader: at one instant, by one read transaction. A line of a hold stands behind a "],[".
func (r *reader) RoomFigures(ctx context.Context, event id.ID) (f ledger.RoomFigures, err error) {
	tx, err := r.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, ignoreClosed(tx.Rollback(context.WithoutCancel(ctx)))) }()
	err = tx.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE ended_at = 0) FROM shard.sessions WHERE event_id = $1`, int64(event)).Scan(&f.Entered, &f.Inside)
	if err != nil {
		return f, err
	}
	// Sessions last at least as long as their holds, so one that has a live hold and has not ended is among those inside.
	err = tx.QueryRow(ctx, `SELECT count(DISTINCT h.session_id) FROM shard.holds h JOIN shard.sessions s ON s.session_id = h.session_id AND s.ended_at = 0
	    WHERE h.event_id = $2 AND h.session_id <> 0 AND h.state = 1 AND h.expires_at > greatest(`+sqlNow+`, $3)`, r.given(), int64(event), int64(r.last())).Scan(&f.Holding)
	if err != nil {
		return f, err
	}
	err = tx.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE ended_at = 0), count(DISTINCT session_id) FILTER (WHERE ended_at = 0),
	      coalesce(sum((length(lines) - length(replace(lines, '],[', ''))) / 3) FILTER (WHERE ended_at = 0), 0)
	    FROM shard.holds WHERE event_id = $1 AND session_id <> 0 AND state <> 1`, int64(event)).Scan(&f.HoldsEnded, &f.HoldsSold, &f.Paid, &f.PlacesSold)
	return f, err
}

// CodeUses implements ledger.Reader.
func (r *reader) CodeUses(ctx context.Context, event id.ID, lane, code string) (n int, err error) {
	err = r.pool.QueryRow(ctx, `SELECT coalesce((SELECT number FROM shard.code_uses WHERE event_id = $1 AND lane = $2 AND code = $3
	    ORDER BY number DESC LIMIT 1), 0)`, int64(event), lane, code).Scan(&n)
	return n, err
}
