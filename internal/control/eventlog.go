package control

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/id"
)

// logTriesMax is how often a line that is no edit is written anew after another one took its number.
const logTriesMax = 5

// logChange writes an edit's line into the event's log, in the edit's transaction, which has the event's row locked.
func (s catalogStore) logChange(ctx context.Context, tx *sql.Tx, before, after *catalog.Event) error {
	e, err := catalog.NewLogEntry(ctx, before, after)
	if err != nil {
		return err
	}
	return s.writeLog(ctx, tx, after.ID, e)
}

func (s catalogStore) writeLog(ctx context.Context, tx *sql.Tx, event id.ID, e catalog.LogEntry) error {
	changes, err := json.Marshal(e.Changes)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, s.q(`INSERT INTO {event_log} (event_id, seq, at_ms, actor_id, role, action, version, changes)
		SELECT $1, COALESCE(MAX(seq), 0) + 1, $2, $3, $4, $5, $6, $7 FROM {event_log} WHERE event_id = $1`),
		int64(event), millis(e.At), int64(e.Actor), e.Role, e.Action, e.Version, string(changes))
	return err
}

// AddLog writes a line that is no edit.
func (s catalogStore) AddLog(ctx context.Context, event id.ID, e catalog.LogEntry) error {
	for range logTriesMax {
		err := s.tx(ctx, func(tx *sql.Tx) error { return s.writeLog(ctx, tx, event, e) })
		if !contested(err) {
			return wrap("writing an event's log", err)
		}
	}
	return catalog.ErrConflict
}

// Log is a page of an event's log, newest first.
func (s catalogStore) Log(ctx context.Context, event id.ID, before int64, max int) ([]catalog.LogEntry, error) {
	all, err := rows(ctx, s.DB, func(scan func(...any) error) (e catalog.LogEntry, err error) {
		var at int64
		var changes string
		if err = scan(&e.Seq, &at, (*int64)(&e.Actor), &e.Role, &e.Action, &e.Version, &changes); err != nil {
			return e, err
		}
		e.At = time.UnixMilli(at).UTC()
		return e, json.Unmarshal([]byte(changes), &e.Changes)
	}, `SELECT seq, at_ms, actor_id, role, action, version, changes FROM {event_log}
		WHERE event_id = $1 AND (seq < $2 OR $2 = 0) ORDER BY seq DESC LIMIT $3`, int64(event), before, max)
	return all, wrap("reading an event's log", err)
}

// before is an event's document as it is stored, read in the transaction that replaces it.
func (s catalogStore) before(ctx context.Context, tx *sql.Tx, event id.ID, version int64) (catalog.Event, error) {
	var document []byte
	err := tx.QueryRowContext(ctx, s.q(`SELECT document FROM {events} WHERE id = $1 AND version = $2`), int64(event), version).Scan(&document)
	if errors.Is(err, sql.ErrNoRows) {
		return catalog.Event{}, catalog.ErrConflict
	}
	var e catalog.Event
	if err == nil {
		err = json.Unmarshal(document, &e)
	}
	return e, err
}
