package control

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fold"
	"onsale/internal/id"
)

// Catalog is the port of the catalog.
func (d *DB) Catalog() catalog.Store { return catalogStore{d} }

type catalogStore struct{ *DB }

func (s catalogStore) EnsureOrganizer(ctx context.Context, o catalog.Organizer) (catalog.Organizer, error) {
	err := s.exec(ctx, `INSERT INTO {organizers} (id, key, name, created_ms) VALUES ($1, $2, $3, $4) ON CONFLICT (key) DO NOTHING`,
		int64(o.ID), o.Key, o.Name, millis(s.now()))
	if err != nil {
		return catalog.Organizer{}, wrap("making an organizer", err)
	}
	all, err := rows(ctx, s.DB, scanOrganizer, `SELECT id, key, name FROM {organizers} WHERE key = $1`, o.Key)
	if err != nil || len(all) != 1 {
		return catalog.Organizer{}, wrap("reading an organizer", errors.Join(err, noRow(len(all))))
	}
	return all[0], nil
}

func (s catalogStore) Organizers(ctx context.Context) ([]catalog.Organizer, error) {
	all, err := rows(ctx, s.DB, scanOrganizer, `SELECT id, key, name FROM {organizers} ORDER BY id`)
	return all, wrap("reading organizers", err)
}

func scanOrganizer(scan func(...any) error) (o catalog.Organizer, err error) {
	err = scan((*int64)(&o.ID), &o.Key, &o.Name)
	return o, err
}

func (s catalogStore) PutPlan(ctx context.Context, p catalog.Plan) error {
	return wrap("storing a plan", s.tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, s.q(`INSERT INTO {plans} (hash, seat_count, body, created_ms) VALUES ($1, $2, $3, $4)
			ON CONFLICT (hash) DO NOTHING`), p.Hash, p.SeatCount, p.Body, millis(p.Created))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, s.q(`INSERT INTO {plan_owners} (organizer_id, hash, name, created_ms) VALUES ($1, $2, $3, $4)
			ON CONFLICT (organizer_id, hash) DO NOTHING`), int64(p.Organizer), p.Hash, p.Name, millis(p.Created))
		return err
	}))
}

func (s catalogStore) Plan(ctx context.Context, hash string) (catalog.Plan, error) {
	all, err := rows(ctx, s.DB, func(scan func(...any) error) (p catalog.Plan, err error) {
		var created int64
		err = scan(&p.Hash, (*int64)(&p.Organizer), &p.Name, &p.SeatCount, &p.Body, &created)
		p.Created = time.UnixMilli(created).UTC()
		return p, err
	}, `SELECT p.hash, o.organizer_id, o.name, p.seat_count, p.body, p.created_ms FROM {plans} p JOIN {plan_owners} o ON o.hash = p.hash
		WHERE p.hash = $1 ORDER BY o.created_ms, o.organizer_id LIMIT 1`, hash)
	return first(all, "reading a plan", err)
}

func (s catalogStore) Plans(ctx context.Context, organizer id.ID) ([]catalog.Plan, error) {
	all, err := rows(ctx, s.DB, func(scan func(...any) error) (p catalog.Plan, err error) {
		var created int64
		err = scan(&p.Hash, (*int64)(&p.Organizer), &p.Name, &p.SeatCount, &created)
		p.Created = time.UnixMilli(created).UTC()
		return p, err
	}, `SELECT p.hash, o.organizer_id, o.name, p.seat_count, o.created_ms FROM {plans} p JOIN {plan_owners} o ON o.hash = p.hash
		WHERE o.organizer_id = $1 ORDER BY o.created_ms DESC, p.hash`, int64(organizer))
	return all, wrap("reading plans", err)
}

func (s catalogStore) Show(ctx context.Context, show id.ID) (catalog.Show, error) {
	all, err := rows(ctx, s.DB, scanDocument[catalog.Show], `SELECT document FROM {shows} WHERE id = $1`, int64(show))
	return first(all, "reading a show", err)
}

func (s catalogStore) ShowByKey(ctx context.Context, organizer id.ID, key string) (catalog.Show, error) {
	all, err := rows(ctx, s.DB, scanDocument[catalog.Show], `SELECT document FROM {shows} WHERE organizer_id = $1 AND key = $2`, int64(organizer), key)
	return first(all, "reading a show", err)
}

func (s catalogStore) Shows(ctx context.Context, organizer, after id.ID, max int) ([]catalog.Show, error) {
	all, err := rows(ctx, s.DB, scanDocument[catalog.Show], `SELECT document FROM {shows} WHERE organizer_id = $1 AND id > $2 ORDER BY id LIMIT $3`,
		int64(organizer), int64(after), max)
	return all, wrap("reading shows", err)
}

func (s catalogStore) PutEvents(ctx context.Context, show *catalog.Show, events []catalog.Event, search []string) error {
	if len(search) != len(events) {
		return fmt.Errorf("control database: %d events with %d search texts", len(events), len(search))
	}
	// By id, so that two who change the same events do not wait for each other in a circle.
	order := make([]int, len(events))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(events[a].ID, events[b].ID) })
	err := s.tx(ctx, func(tx *sql.Tx) error {
		if show != nil {
			if err := s.putShow(ctx, tx, show); err != nil {
				return err
			}
		}
		for _, i := range order {
			if err := s.putEvent(ctx, tx, &events[i], search[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if contested(err) {
		return catalog.ErrConflict
	}
	return wrap("storing events", err)
}

func (s catalogStore) putShow(ctx context.Context, tx *sql.Tx, show *catalog.Show) error {
	document, err := json.Marshal(show)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, s.q(`INSERT INTO {shows} (id, organizer_id, key, document, updated_ms) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (id) DO UPDATE SET document = excluded.document, updated_ms = excluded.updated_ms`),
		int64(show.ID), int64(show.Organizer), show.Key, string(document), millis(show.Updated))
	return err
}

func (s catalogStore) putEvent(ctx context.Context, tx *sql.Tx, e *catalog.Event, search string) error {
	document, err := json.Marshal(e)
	if err != nil {
		return err
	}
	city, search := folded(e.Venue.City), folded(search)
	var result sql.Result
	var before *catalog.Event
	if e.Version > 1 {
		old, err := s.before(ctx, tx, e.ID, e.Version-1)
		if err != nil {
			return err
		}
		before = &old
	}
	if e.Version == 1 {
		result, err = tx.ExecContext(ctx, s.q(`INSERT INTO {events} (id, organizer_id, show_id, key, version, sent_version, state, plan_hash,
			city, search, starts_ms, document, updated_ms, fold_version) VALUES ($1, $2, $3, $4, 1, 0, $5, $6, $7, $8, $9, $10, $11, $12)`),
			int64(e.ID), int64(e.Organizer), int64(e.Show), e.Key, string(e.State), e.PlanHash,
			city, search, millis(e.Starts), string(document), millis(e.Updated), fold.Version)
	} else {
		result, err = tx.ExecContext(ctx, s.q(`UPDATE {events} SET version = $2, state = $3, city = $4, search = $5, starts_ms = $6,
			document = $7, updated_ms = $8, fold_version = $10 WHERE id = $1 AND version = $9`),
			int64(e.ID), e.Version, string(e.State), city, search, millis(e.Starts), string(document), millis(e.Updated), e.Version-1, fold.Version)
	}
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, catalog.ErrConflict)
	}
	return s.logChange(ctx, tx, before, e)
}

func (s catalogStore) Event(ctx context.Context, event id.ID) (catalog.Event, error) {
	all, err := rows(ctx, s.DB, scanDocument[catalog.Event], `SELECT document FROM {events} WHERE id = $1`, int64(event))
	return first(all, "reading an event", err)
}

func (s catalogStore) EventsOf(ctx context.Context, show id.ID) ([]catalog.Event, error) {
	all, err := rows(ctx, s.DB, scanDocument[catalog.Event], `SELECT document FROM {events} WHERE show_id = $1 ORDER BY starts_ms, id`, int64(show))
	return all, wrap("reading events", err)
}

func (s catalogStore) Events(ctx context.Context, q catalog.Query) ([]catalog.Event, error) {
	var args []any
	where := []string{"TRUE"}
	add := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "@", fmt.Sprintf("$%d", len(args)), 1)
		}
		where = append(where, condition)
	}
	contains := "instr(search, @) > 0"
	if s.schema() != "" {
		contains = "strpos(search, @) > 0"
	}
	for _, word := range strings.Fields(folded(q.Text)) {
		add(contains, word)
	}
	if q.City != "" {
		add("city = @", folded(q.City))
	}
	if !q.From.IsZero() {
		add("starts_ms >= @", millis(q.From))
	}
	if !q.To.IsZero() {
		add("starts_ms < @", millis(q.To))
	}
	if q.Organizer != 0 {
		add("organizer_id = @", int64(q.Organizer))
	}
	if !q.Drafts {
		add("state <> @", string(catalog.Draft))
	}
	if q.After != (catalog.Cursor{}) {
		add("(starts_ms, id) > (@, @)", millis(q.After.Starts), int64(q.After.Event))
	}
	args = append(args, q.Max)
	query := fmt.Sprintf(`SELECT document FROM {events} WHERE %s ORDER BY starts_ms, id LIMIT $%d`, strings.Join(where, " AND "), len(args))
	all, err := rows(ctx, s.DB, scanDocument[catalog.Event], query, args...)
	return all, wrap("looking for events", err)
}

func (s catalogStore) Versions(ctx context.Context, since time.Time, after id.ID, max int) ([]catalog.EventVersion, error) {
	changed, args := "", []any{int64(after), max}
	if !since.IsZero() {
		changed = `AND e.id IN (SELECT id FROM {events} WHERE updated_ms >= $3
			UNION SELECT x.id FROM {shows} w JOIN {events} x ON x.show_id = w.id WHERE w.updated_ms >= $3)`
		args = append(args, millis(since))
	}
	all, err := rows(ctx, s.DB, func(scan func(...any) error) (v catalog.EventVersion, err error) {
		var show int64
		err = scan((*int64)(&v.Event), &v.Version, &show)
		v.ShowUpdated = time.UnixMilli(show).UTC()
		return v, err
	}, `SELECT e.id, e.version, s.updated_ms FROM {events} e JOIN {shows} s ON s.id = e.show_id
		WHERE e.id > $1 `+changed+` ORDER BY e.id LIMIT $2`, args...)
	return all, wrap("reading versions of events", err)
}

func (s catalogStore) Listings(ctx context.Context, events []id.ID) ([]catalog.Listing, error) {
	if len(events) == 0 {
		return nil, nil
	}
	if len(events) > catalog.ListingsMax {
		return nil, fmt.Errorf("control database: %d listings at once; at most %d", len(events), catalog.ListingsMax)
	}
	marks, args := make([]string, len(events)), make([]any, len(events))
	for i, event := range events {
		marks[i], args[i] = fmt.Sprintf("$%d", i+1), int64(event)
	}
	all, err := rows(ctx, s.DB, func(scan func(...any) error) (l catalog.Listing, err error) {
		var event, show []byte
		if err = scan(&event, &show); err == nil {
			err = errors.Join(json.Unmarshal(event, &l.Event), json.Unmarshal(show, &l.Show))
		}
		return l, err
	}, `SELECT e.document, s.document FROM {events} e JOIN {shows} s ON s.id = e.show_id WHERE e.id IN (`+strings.Join(marks, ", ")+`)`, args...)
	return all, wrap("reading listings", err)
}

func (s catalogStore) MarkSent(ctx context.Context, event id.ID, version int64) error {
	return wrap("marking an event as sent", s.exec(ctx, `UPDATE {events} SET sent_version = $2 WHERE id = $1 AND sent_version < $2`, int64(event), version))
}

func (s catalogStore) Unsent(ctx context.Context, after id.ID, max int) ([]catalog.Event, error) {
	all, err := rows(ctx, s.DB, scanDocument[catalog.Event],
		`SELECT document FROM {events} WHERE sent_version < version AND id > $1 ORDER BY id LIMIT $2`, int64(after), max)
	return all, wrap("reading events not sent", err)
}

func scanDocument[T any](scan func(...any) error) (value T, err error) {
	var document []byte
	if err = scan(&document); err == nil {
		err = json.Unmarshal(document, &value)
	}
	return value, err
}

func first[T any](all []T, what string, err error) (T, error) {
	var none T
	if err != nil {
		return none, wrap(what, err)
	}
	if len(all) == 0 {
		return none, catalog.ErrNotFound
	}
	return all[0], nil
}

func noRow(count int) error {
	if count == 1 {
		return nil
	}
	return fmt.Errorf("%d rows instead of one", count)
}
