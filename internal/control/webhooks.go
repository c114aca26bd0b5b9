package control

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"onsale/internal/id"
	"onsale/internal/outbox/webhook"
)

// Webhooks is the port of webhooks out.
func (d *DB) Webhooks() webhook.Store { return webhookStore{d} }

type webhookStore struct{ *DB }

const endpointColumns = `id, organizer_id, url, kinds, state, sealed, old_sealed, old_until_ms, created_ms`

func scanEndpoint(scan func(...any) error) (e webhook.Endpoint, err error) {
	var kinds, state string
	var until, created int64
	err = scan((*int64)(&e.ID), (*int64)(&e.Organizer), &e.URL, &kinds, &state, &e.Sealed, &e.OldSealed, &until, &created)
	e.Kinds, e.On = strings.Fields(kinds), state == "on"
	if len(e.Kinds) == 0 {
		e.Kinds = nil
	}
	if len(e.OldSealed) == 0 {
		e.OldSealed = nil
	}
	if until != 0 {
		e.OldUntil = time.UnixMilli(until).UTC()
	}
	e.Created = time.UnixMilli(created).UTC()
	return e, err
}

// endpointValues are the columns from url to old_until_ms.
func endpointValues(e webhook.Endpoint) []any {
	state, until, old := "off", int64(0), e.OldSealed
	if e.On {
		state = "on"
	}
	if !e.OldUntil.IsZero() {
		until = millis(e.OldUntil)
	}
	if old == nil {
		old = []byte{}
	}
	return []any{e.URL, strings.Join(e.Kinds, " "), state, e.Sealed, old, until}
}

func (s webhookStore) Endpoints(ctx context.Context, organizer id.ID) ([]webhook.Endpoint, error) {
	all, err := rows(ctx, s.DB, scanEndpoint, `SELECT `+endpointColumns+` FROM {webhook_endpoints} WHERE organizer_id = $1 OR $1 = 0 ORDER BY id`, int64(organizer))
	return all, wrap("reading webhooks", err)
}

func (s webhookStore) Endpoint(ctx context.Context, endpoint id.ID) (webhook.Endpoint, error) {
	all, err := rows(ctx, s.DB, scanEndpoint, `SELECT `+endpointColumns+` FROM {webhook_endpoints} WHERE id = $1`, int64(endpoint))
	if err != nil {
		return webhook.Endpoint{}, wrap("reading a webhook", err)
	}
	if len(all) == 0 {
		return webhook.Endpoint{}, webhook.ErrUnknown
	}
	return all[0], nil
}

func (s webhookStore) AddEndpoint(ctx context.Context, e webhook.Endpoint, max int) error {
	err := s.tx(ctx, func(tx *sql.Tx) error {
		// The organizer's row is the lock: two that add at once count one after the other.
		if _, err := tx.ExecContext(ctx, s.q(`UPDATE {organizers} SET name = name WHERE id = $1`), int64(e.Organizer)); err != nil {
			return err
		}
		var count int
		if err := tx.QueryRowContext(ctx, s.q(`SELECT count(*) FROM {webhook_endpoints} WHERE organizer_id = $1`), int64(e.Organizer)).Scan(&count); err != nil {
			return err
		}
		if count >= max {
			return webhook.ErrTooMany
		}
		args := append([]any{int64(e.ID), int64(e.Organizer), millis(e.Created)}, endpointValues(e)...)
		_, err := tx.ExecContext(ctx, s.q(`INSERT INTO {webhook_endpoints} (id, organizer_id, created_ms, url, kinds, state, sealed, old_sealed, old_until_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`), args...)
		return err
	})
	return endpointError("storing a webhook", err)
}

func endpointError(what string, err error) error {
	switch {
	case errors.Is(err, webhook.ErrTooMany), errors.Is(err, webhook.ErrUnknown):
		return err
	case contested(err):
		return webhook.ErrTaken
	}
	return wrap(what, err)
}

func (s webhookStore) SetEndpoint(ctx context.Context, e webhook.Endpoint) error {
	args := append([]any{int64(e.ID)}, endpointValues(e)[:3]...)
	return s.setEndpoint(ctx, `UPDATE {webhook_endpoints} SET url = $2, kinds = $3, state = $4 WHERE id = $1`, args)
}

func (s webhookStore) RotateEndpoint(ctx context.Context, e webhook.Endpoint, was []byte) error {
	args := append([]any{int64(e.ID), was}, endpointValues(e)[3:]...)
	return s.setEndpoint(ctx, `UPDATE {webhook_endpoints} SET sealed = $3, old_sealed = $4, old_until_ms = $5 WHERE id = $1 AND sealed = $2`, args)
}

func (s webhookStore) setEndpoint(ctx context.Context, query string, args []any) error {
	found, err := changed(s.write.ExecContext(ctx, s.q(query), args...))
	if err == nil && !found {
		err = webhook.ErrUnknown
	}
	return endpointError("storing a webhook", err)
}

func (s webhookStore) RemoveEndpoint(ctx context.Context, endpoint id.ID) error {
	return endpointError("removing a webhook", s.tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, s.q(`DELETE FROM {webhook_deliveries} WHERE endpoint_id = $1`), int64(endpoint)); err != nil {
			return err
		}
		found, err := changed(tx.ExecContext(ctx, s.q(`DELETE FROM {webhook_endpoints} WHERE id = $1`), int64(endpoint)))
		if err == nil && !found {
			err = webhook.ErrUnknown
		}
		return err
	}))
}

const deliveryColumns = `endpoint_id, message, kind, body, state, tries, fence, status, last, created_ms, due_ms`

func scanDelivery(scan func(...any) error) (d webhook.Delivery, err error) {
	var created, due int64
	err = scan((*int64)(&d.Endpoint), &d.Message, &d.Kind, &d.Body, &d.State, &d.Tries, &d.Fence, &d.Status, &d.Last, &created, &due)
	d.Created, d.Due = time.UnixMilli(created).UTC(), time.UnixMilli(due).UTC()
	return d, err
}

func (s webhookStore) Put(ctx context.Context, all []webhook.Delivery, max int) error {
	return wrap("storing webhooks to be delivered", s.tx(ctx, func(tx *sql.Tx) error {
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		for _, d := range all {
			state, last := webhook.Due, ""
			full, err := s.full(ctx, tx, d.Endpoint, max)
			if err != nil {
				return err
			}
			if full {
				state, last = webhook.Dead, "too many were waiting"
			}
			// One whose endpoint was removed meanwhile is nobody's.
			_, err = tx.ExecContext(ctx, s.q(`INSERT INTO {webhook_deliveries} (`+deliveryColumns+`)
				SELECT id, $2, $3, $4, $5, 0, 0, 0, $6, $7, $8 FROM {webhook_endpoints} WHERE id = $1 ON CONFLICT (endpoint_id, message) DO NOTHING`),
				int64(d.Endpoint), d.Message, d.Kind, d.Body, state, last, millis(d.Created), now)
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// full says whether max deliveries wait for an endpoint. It looks for the max-th: nothing is counted while few wait.
func (s webhookStore) full(ctx context.Context, tx *sql.Tx, endpoint id.ID, max int) (bool, error) {
	var one int
	err := tx.QueryRowContext(ctx, s.q(`SELECT 1 FROM {webhook_deliveries} WHERE endpoint_id = $1 AND state = 'due' ORDER BY due_ms LIMIT 1 OFFSET $2`),
		int64(endpoint), max-1).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (s webhookStore) DueEndpoints(ctx context.Context, max int) (all []webhook.Endpoint, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		all, err = rowsIn(ctx, s.DB, tx, scanEndpoint, `SELECT `+endpointColumns+` FROM (
			SELECT e.*, (SELECT min(d.due_ms) FROM {webhook_deliveries} d WHERE d.endpoint_id = e.id AND d.state = 'due') AS first_ms
			FROM {webhook_endpoints} e WHERE e.state = 'on') AS waiting WHERE first_ms <= $1 ORDER BY first_ms, id LIMIT $2`, now, max)
		return err
	})
	return all, wrap("looking for webhooks to be delivered", err)
}

func (s webhookStore) Claim(ctx context.Context, endpoint id.ID, hold time.Duration, max int) (all []webhook.Delivery, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		all, err = rowsIn(ctx, s.DB, tx, scanDelivery, `SELECT `+deliveryColumns+` FROM {webhook_deliveries}
			WHERE endpoint_id = $1 AND state = 'due' AND due_ms <= $2 ORDER BY due_ms, message LIMIT $3`+s.skipLocked(), int64(endpoint), now, max)
		if err != nil {
			return err
		}
		for i := range all {
			all[i].Fence++
			if _, err := tx.ExecContext(ctx, s.q(`UPDATE {webhook_deliveries} SET fence = $1, due_ms = $2 WHERE endpoint_id = $3 AND message = $4`),
				all[i].Fence, now+hold.Milliseconds(), int64(endpoint), all[i].Message); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, wrap("taking webhooks to be delivered", err)
	}
	return all, nil
}

func (s webhookStore) Settle(ctx context.Context, d webhook.Delivery, after time.Duration) error {
	return wrap("storing what became of a webhook", s.tx(ctx, func(tx *sql.Tx) error {
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, s.q(`UPDATE {webhook_deliveries} SET state = $1, tries = $2, status = $3, last = $4, due_ms = $5
			WHERE endpoint_id = $6 AND message = $7 AND fence = $8 AND state = 'due'`),
			d.State, d.Tries, d.Status, d.Last, now+after.Milliseconds(), int64(d.Endpoint), d.Message, d.Fence)
		return err
	}))
}

func (s webhookStore) List(ctx context.Context, endpoint id.ID, state string, max int) ([]webhook.Delivery, error) {
	all, err := rows(ctx, s.DB, scanDelivery, `SELECT `+deliveryColumns+` FROM {webhook_deliveries}
		WHERE endpoint_id = $1 AND (state = $2 OR $2 = '') ORDER BY created_ms DESC, message DESC LIMIT $3`, int64(endpoint), state, max)
	return all, wrap("reading webhooks", err)
}

func (s webhookStore) Count(ctx context.Context, endpoint id.ID) (c webhook.Counts, err error) {
	err = s.read.QueryRowContext(ctx, s.q(`SELECT count(CASE WHEN state = 'due' THEN 1 END), count(CASE WHEN state = 'dead' THEN 1 END)
		FROM {webhook_deliveries} WHERE endpoint_id = $1 AND state <> 'ended'`), int64(endpoint)).Scan(&c.Waiting, &c.Dead)
	return c, wrap("counting webhooks", err)
}

func (s webhookStore) Replay(ctx context.Context, endpoint id.ID, r webhook.Replay) (count int, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		query, args := `state = 'dead'`, []any{now, int64(endpoint)}
		switch {
		case r.Message != "":
			query, args = `state <> 'due' AND message = $3`, append(args, r.Message)
		case !r.Since.IsZero():
			query, args = `state <> 'due' AND created_ms >= $3`, append(args, millis(r.Since))
		}
		n, err := affected(tx.ExecContext(ctx, s.q(`UPDATE {webhook_deliveries} SET state = 'due', tries = 0, due_ms = $1 WHERE endpoint_id = $2 AND `+query), args...))
		count = int(n)
		return err
	})
	if err != nil {
		return 0, wrap("replaying webhooks", err)
	}
	return count, nil
}

func (s webhookStore) Prune(ctx context.Context, ended, died time.Time, max int) (count int, err error) {
	for state, before := range map[string]time.Time{webhook.Ended: ended, webhook.Dead: died} {
		n, err := affected(s.write.ExecContext(ctx, s.q(`DELETE FROM {webhook_deliveries} WHERE (endpoint_id, message) IN
			(SELECT endpoint_id, message FROM {webhook_deliveries} WHERE state = $1 AND due_ms < $2 LIMIT $3)`), state, millis(before), max))
		if err != nil {
			return count, wrap("deleting old webhooks", err)
		}
		count += int(n)
	}
	return count, nil
}
