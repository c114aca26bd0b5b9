package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// Two nodes may make the same row at once, though neither saw it: an event, an idempotency key, a limit's or quota's
// first count. These inserts are sorted, so that the nodes wait for each other in one order; the second fails on the
// primary key, and its batch begins again and finds the row.
var racedKeys = []string{
	"events_pkey", "idempotency_keys_pkey", "limits_pkey", "quotas_pkey", "wishes_one_open", "rooms_pkey", "code_uses_pkey", "code_uses_customer",
}

// A writer queues the statements that write what a batch changed: one for what is new and one for what is changed of
// each table, however much there is.
type writer struct {
	*pipeline
	t      *transaction
	out    *decide.Output
	buffer []byte
}

// write writes everything but COMMIT, in one round trip. It answers false where there was nothing to write.
func (t *transaction) write(ctx context.Context) (bool, error) {
	w := &writer{pipeline: t.pipeline(), t: t, out: &t.work.Out}
	if err := w.events(); err != nil {
		return false, err
	}
	w.keys()
	w.limits()
	w.quotas()
	w.sessions()
	if err := w.rooms(); err != nil {
		return false, err
	}
	w.orders()
	w.payments()
	w.refunds()
	w.holds()
	w.buckets()
	w.seats()
	w.tickets()
	w.uses()
	w.wishes()
	w.notices()
	w.history()
	if w.out.Prune {
		w.prune()
	}
	w.changes()
	if w.batch.Len() == 0 {
		return false, nil
	}
	return true, w.told(w.send(ctx, t.conn))
}

// told turns what the database says about unique rows into what it means.
func (w *writer) told(err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case "23505": // unique_violation
		if slices.Contains(racedKeys, e.ConstraintName) {
			return fmt.Errorf("%w: %w", errRaced, err)
		}
		var event, seat int64
		if e.ConstraintName == "sessions_number" {
			var number int64
			var lane string
			if _, scan := fmt.Sscanf(e.Detail, "Key (event_id, lane, number)=(%d, %s %d)", &event, &lane, &number); scan == nil {
				return &ledger.InvariantError{Event: id.ID(event), What: fmt.Sprintf("number %d of a lane would enter twice", number)}
			}
		}
		if e.ConstraintName == "tickets_one_per_seat" {
			if _, scan := fmt.Sscanf(e.Detail, "Key (event_id, seat_index)=(%d, %d)", &event, &seat); scan == nil {
				return &ledger.InvariantError{Event: id.ID(event), What: fmt.Sprintf("seat %d would have a second valid ticket", seat)}
			}
		}
	case "53100", "53400", "58030": // disk_full, configuration_limit_exceeded, io_error
		return &fault.Error{Code: fault.Busy, Detail: "the database's disk is full or failing", Cause: err}
	}
	return err
}

// changed is what to say where a locked row is not as it was read.
func changed(what string, event func() id.ID) func() error {
	return func() error {
		return &ledger.InvariantError{Event: event(), What: what + " changed under the lock of the batch that decided on it"}
	}
}

// orderEvent is the event of an order that the batch has locked.
func (w *writer) orderEvent(order id.ID) id.ID {
	if o := w.t.source.orders[order]; o != nil {
		return o.Event
	}
	return 0
}

// split gives the new and the changed rows of a table.
func split[T any](rows []*T, isNew func(*T) bool) (added, set []*T) {
	for _, r := range rows {
		if isNew(r) {
			added = append(added, r)
		} else {
			set = append(set, r)
		}
	}
	return added, set
}

func bit(b bool) int16 {
	if b {
		return 1
	}
	return 0
}

func (w *writer) events() error {
	added, set := split(w.out.Events, func(e *decide.EventWrite) bool { return e.New })
	byID := func(a, b *decide.EventWrite) int { return cmp.Compare(a.Event.ID, b.Event.ID) }
	slices.SortFunc(added, byID)
	slices.SortFunc(set, byID)
	bodies := map[id.ID]string{}
	for _, e := range w.out.Events {
		body, err := decide.EncodeEvent(e.Event)
		if err != nil {
			return err
		}
		bodies[e.Event.ID] = body
	}
	columns := func(r *rowset, list []*decide.EventWrite) {
		r.big("version", func(i int) int64 { return list[i].Event.Version })
		r.small("state", func(i int) int16 { return int16(list[i].Event.State) })
		r.big("sequence", func(i int) int64 { return list[i].Event.Sequence })
		r.text("body", func(i int) string { return bodies[list[i].Event.ID] })
	}
	r := w.rowset("events", len(set))
	r.match("event_id", r.int64s(func(i int) int64 { return int64(set[i].Event.ID) }))
	columns(r, set)
	r.update(changed("the event's row", func() id.ID { return set[0].Event.ID }))
	if len(added) == 0 {
		return nil
	}
	r = w.rowset("events", len(added)).big("event_id", func(i int) int64 { return int64(added[i].Event.ID) })
	columns(r, added)
	r.insert("")
	w.exec(`INSERT INTO shard.seats_versions (event_id, version) SELECT e, 0 FROM unnest($1::bigint[]) AS e`,
		column(added, func(e *decide.EventWrite) int64 { return int64(e.Event.ID) }))
	return w.layouts(added)
}

// layouts makes the seats and the areas' buckets of new events.
func (w *writer) layouts(added []*decide.EventWrite) error {
	plans := map[string]*ledger.Layout{}
	var counts []int32
	var events []int64
	var areas, capacities []int32
	var numbers []int16
	for _, e := range added {
		plans[e.Layout.PlanHash] = e.Layout
		counts = append(counts, int32(len(e.Layout.Category)))
		for area, a := range e.Layout.Areas {
			for number, capacity := range decide.BucketCapacities(a.Capacity) {
				events, areas = append(events, int64(e.Event.ID)), append(areas, int32(area))
				numbers, capacities = append(numbers, int16(number)), append(capacities, capacity)
			}
		}
	}
	var hashes []string
	var bodies [][]byte
	for hash := range plans {
		hashes = append(hashes, hash)
	}
	slices.Sort(hashes)
	for _, hash := range hashes {
		body, err := decide.EncodeLayout(plans[hash])
		if err != nil {
			return err
		}
		bodies = append(bodies, body)
	}
	w.exec(`INSERT INTO shard.layouts (plan_hash, body) SELECT * FROM unnest($1::text[], $2::bytea[]) ON CONFLICT (plan_hash) DO NOTHING`, hashes, bodies)
	w.exec(`INSERT INTO shard.seats (event_id, seat_index) SELECT u.event_id, i FROM unnest($1::bigint[], $2::integer[]) AS u(event_id, count),
 generate_series(0, u.count - 1) AS i`, column(added, func(e *decide.EventWrite) int64 { return int64(e.Event.ID) }), counts)
	if len(events) > 0 {
		w.exec(`INSERT INTO shard.buckets (event_id, area, number, capacity) SELECT * FROM unnest($1::bigint[], $2::integer[], $3::smallint[], $4::integer[])`,
			events, areas, numbers, capacities)
	}
	return nil
}

func (w *writer) keys() {
	added, set := split(w.out.Keys, func(k *decide.Key) bool { return w.t.source.keys[k.IdemKey] == nil })
	columns := func(r *rowset, list []*decide.Key) {
		r.big("subject_id", func(i int) int64 { return int64(list[i].Subject) })
		r.word("fields", func(i int) string { return decide.EncodeFields(list[i].Fields) })
		r.big("created_at", func(i int) int64 { return int64(list[i].Created) })
	}
	// A key is there and yet was used anew where its hold has been deleted: its 24 hours are over. Its row is not locked:
	// meanwhile another node may have deleted it, or used it anew itself.
	r := w.rowset("idempotency_keys", len(set))
	r.match("customer_id", r.int64s(func(i int) int64 { return int64(set[i].Customer) }))
	r.match("operation", r.own(func(i int) string { return set[i].Operation }))
	r.match("key", r.own(func(i int) string { return set[i].Value }))
	r.match("subject_id", r.int64s(func(i int) int64 { return int64(w.t.source.keys[set[i].IdemKey].Subject) }))
	columns(r, set)
	r.update(func() error { return errRaced })

	slices.SortFunc(added, func(a, b *decide.Key) int { return compareKeys(a.IdemKey, b.IdemKey) })
	r = w.rowset("idempotency_keys", len(added))
	r.big("customer_id", func(i int) int64 { return int64(added[i].Customer) })
	r.word("operation", func(i int) string { return added[i].Operation })
	r.text("key", func(i int) string { return added[i].Value })
	columns(r, added)
	r.insert("")
}

func (w *writer) limits() {
	type counter = decide.Counter[decide.LimitKey]
	added, set := split(w.out.Limits, func(c *counter) bool { return w.t.source.limits[c.Key] == nil })
	r := w.rowset("limits", len(set))
	r.match("scope", r.int16s(func(i int) int16 { return int16(set[i].Key.Scope) }))
	r.match("of_id", r.int64s(func(i int) int64 { return int64(set[i].Key.Of) }))
	r.match("category", r.int16s(func(i int) int16 { return set[i].Key.Category }))
	r.match("subject", r.ownBytes(func(i int) []byte { return []byte(set[i].Key.Subject) }))
	r.mid("count", func(i int) int32 { return int32(set[i].Count) })
	r.update(changed("a limit", func() id.ID { return set[0].Key.Of }))

	slices.SortFunc(added, func(a, b *counter) int { return compareLimits(a.Key, b.Key) })
	r = w.rowset("limits", len(added))
	r.small("scope", func(i int) int16 { return int16(added[i].Key.Scope) })
	r.big("of_id", func(i int) int64 { return int64(added[i].Key.Of) })
	r.small("category", func(i int) int16 { return added[i].Key.Category })
	r.set("subject", r.ownBytes(func(i int) []byte { return []byte(added[i].Key.Subject) }))
	r.mid("count", func(i int) int32 { return int32(added[i].Count) })
	r.insert("")
}

func (w *writer) quotas() {
	type counter = decide.Counter[decide.QuotaKey]
	added, set := split(w.out.Quotas, func(c *counter) bool { return w.t.source.quotas[c.Key] == nil })
	r := w.rowset("quotas", len(set))
	r.match("event_id", r.int64s(func(i int) int64 { return int64(set[i].Key.Event) }))
	r.match("category", r.int16s(func(i int) int16 { return set[i].Key.Category }))
	r.match("section", r.int16s(func(i int) int16 { return set[i].Key.Section }))
	r.mid("count", func(i int) int32 { return int32(set[i].Count) })
	r.update(changed("a quota", func() id.ID { return set[0].Key.Event }))

	slices.SortFunc(added, func(a, b *counter) int { return compareQuotas(a.Key, b.Key) })
	r = w.rowset("quotas", len(added))
	r.big("event_id", func(i int) int64 { return int64(added[i].Key.Event) })
	r.small("category", func(i int) int16 { return added[i].Key.Category })
	r.small("section", func(i int) int16 { return added[i].Key.Section })
	r.mid("count", func(i int) int32 { return int32(added[i].Count) })
	r.insert("")
}

// changes raises the version of each touched event as the last lock and writes the change under it (B2).
func (w *writer) changes() {
	list := w.out.Changes // by event id
	if len(list) == 0 {
		return
	}
	events := column(list, func(c ledger.Change) int64 { return int64(c.Event) })
	w.exec(`SELECT 1 FROM unnest($1::bigint[]) WITH ORDINALITY AS k(event_id, n) JOIN shard.seats_versions v ON v.event_id = k.event_id
 ORDER BY k.n FOR UPDATE OF v`, events)
	bodies := make([]string, len(list))
	for i := range list {
		bodies[i] = w.string(decide.AppendChange(w.buffer[:0], &list[i]))
	}
	var event, version int64
	raised := 0
	w.rowsThen(`WITH raised AS (UPDATE shard.seats_versions v SET version = v.version + 1 FROM unnest($1::bigint[], $2::text[]) AS u(event_id, body)
 WHERE v.event_id = u.event_id RETURNING v.event_id, v.version, u.body)
 INSERT INTO shard.changes (event_id, version, body, at) SELECT event_id, version, body, $3::bigint FROM raised RETURNING event_id, version`,
		[]any{events, bodies, int64(w.t.now)}, []any{&event, &version}, func() error {
			i, ok := slices.BinarySearchFunc(list, id.ID(event), func(c ledger.Change, e id.ID) int { return cmp.Compare(c.Event, e) })
			if !ok {
				return fmt.Errorf("the version of event %d was raised unasked", event)
			}
			list[i].Version = version
			raised++
			return nil
		}, func() error {
			if raised != len(list) {
				return changed("the version of the seats", func() id.ID { return list[0].Event })()
			}
			return nil
		})
}
