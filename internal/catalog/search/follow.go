package search

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/id"
)

const (
	versionsPage = 5_000
	// overlap is how far back each look goes: an event's time of change is by the clock of the node that changed it, and its
	// commit comes later than that.
	overlap = 30 * time.Second
	// fullEvery is how often all versions are compared, for what a look at the latest changes misses: a clock that is off
	// by more than the overlap, a database restored from a backup.
	fullEvery = time.Minute
	// buildBatch is how many documents are indexed at once while an engine is built.
	buildBatch = 5_000
)

// Sync brings the index up to what the store has and answers how many events were put or taken out. The first Sync reads
// the whole catalog; later ones what has changed. Where it fails, the index stays as it was, or is part of the way.
func (x *Index) Sync(ctx context.Context) (changed int, err error) {
	x.sync.Lock()
	defer x.sync.Unlock()
	if x.closed {
		return 0, errors.New("the search index is closed")
	}
	began := x.o.Now()
	full := x.lastFull.IsZero() || began.Sub(x.lastFull) >= fullEvery || began.Before(x.lastFull)
	since := time.Time{}
	if !full {
		since = x.lastSync.Add(-overlap)
	}
	changed, err = x.read(ctx, since)
	if err != nil {
		return changed, fmt.Errorf("the search index follows the catalog: %w", err)
	}
	x.lastSync = began
	if full {
		x.lastFull = began
	}
	x.mu.Lock()
	x.ready = true
	x.mu.Unlock()
	return changed, nil
}

// Run syncs at once and then once in a while, until the context ends. After each round it calls done (which may be nil).
func (x *Index) Run(ctx context.Context, every time.Duration, done func(changed int, err error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	failing := false
	for {
		changed, err := x.Sync(ctx)
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			failing = failed
			if failed { // once, not each second
				x.o.Log.Warn("search goes on with what it has", "error", err)
			} else {
				x.o.Log.Info("search follows the catalog again")
			}
		}
		if done != nil {
			done(changed, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// read compares versions since an instant (zero: all) with what the index has, and takes in what differs.
func (x *Index) read(ctx context.Context, since time.Time) (changed int, err error) {
	var wanted []catalog.EventVersion
	seen := map[id.ID]bool{}
	for after := id.ID(0); ; {
		page, err := x.o.Store.Versions(ctx, since, after, versionsPage)
		if err != nil {
			return 0, err
		}
		for _, v := range page {
			seen[v.Event] = true
			if !x.has(v) {
				wanted = append(wanted, v)
			}
		}
		if len(page) < versionsPage {
			break
		}
		after = page[len(page)-1].Event
	}
	var gone []id.ID
	if since.IsZero() {
		for event := range x.entries {
			if !seen[event] {
				gone = append(gone, event)
			}
		}
		maps.DeleteFunc(x.hidden, func(event id.ID, _ catalog.EventVersion) bool { return !seen[event] })
	}
	for part := range slices.Chunk(wanted, buildBatch) {
		listings, missing, err := x.listings(ctx, part)
		if err != nil {
			return changed, err
		}
		n, err := x.take(listings, missing)
		changed += n
		if err != nil {
			return changed, err
		}
	}
	n, err := x.take(nil, gone)
	return changed + n, err
}

// has says whether the index has a version already. Only Sync changes entries, so it may read them.
func (x *Index) has(v catalog.EventVersion) bool {
	e, known := x.entries[v.Event]
	if known {
		return e.version == v
	}
	return x.hidden[v.Event] == v
}

type versioned struct {
	catalog.Listing
	version catalog.EventVersion
}

// listings reads events with their shows; missing are those that have gone meanwhile.
func (x *Index) listings(ctx context.Context, wanted []catalog.EventVersion) (found []versioned, missing []id.ID, err error) {
	for part := range slices.Chunk(wanted, catalog.ListingsMax) {
		var ids []id.ID
		versions := map[id.ID]catalog.EventVersion{}
		for _, v := range part {
			ids = append(ids, v.Event)
			versions[v.Event] = v
		}
		page, err := x.o.Store.Listings(ctx, ids)
		if err != nil {
			return nil, nil, err
		}
		for _, l := range page {
			// The version that was announced, though the listing may be newer already: then the next look reads it again.
			found = append(found, versioned{l, versions[l.Event.ID]})
			delete(versions, l.Event.ID)
		}
		for event := range versions {
			missing = append(missing, event)
		}
	}
	return found, missing, nil
}

// public says whether customers may find an event.
func public(e *catalog.Event) bool { return e.State != catalog.Draft && e.State != catalog.Cancelled }

// take puts listings into the index and takes events out. Searches see all of it or nothing.
func (x *Index) take(listings []versioned, gone []id.ID) (changed int, err error) {
	if x.engine.segments >= segmentsMax && len(listings)+len(gone) > 0 {
		if err := x.rebuild(); err != nil {
			return 0, err
		}
	}
	var put []*entry
	free := len(x.slots)
	for _, l := range listings {
		event := l.Event.ID
		if !public(&l.Event) {
			x.hidden[event] = l.version
			gone = append(gone, event)
			continue
		}
		delete(x.hidden, event)
		slot := free
		if old, known := x.entries[event]; known {
			slot = old.slot
		} else {
			free++
		}
		put = append(put, newEntry(l.Listing, l.version, slot))
	}
	var goneSlots []int
	for _, event := range gone {
		if e, known := x.entries[event]; known {
			goneSlots = append(goneSlots, e.slot)
		}
	}
	if len(put)+len(goneSlots) == 0 {
		return 0, nil
	}
	if err := x.engine.change(put, goneSlots); err != nil {
		return 0, err
	}
	view, err := x.engine.fresh()
	if err != nil {
		return 0, err
	}
	x.mu.Lock()
	old := x.engine.view
	x.engine.view = view
	x.slots = append(x.slots, make([]*entry, free-len(x.slots))...)
	for _, e := range put {
		x.entries[e.event.ID], x.slots[e.slot] = e, e
	}
	for _, slot := range goneSlots {
		delete(x.entries, x.slots[slot].event.ID)
		x.slots[slot] = nil
	}
	x.mu.Unlock()
	return len(put) + len(goneSlots), old.reader.Close()
}

// rebuild moves all entries to a new engine, which has few segments and no slot that is empty.
func (x *Index) rebuild() error {
	next, err := newEngine()
	if err != nil {
		return err
	}
	entries, slots := make(map[id.ID]*entry, len(x.entries)), make([]*entry, 0, len(x.entries))
	for event, e := range x.entries {
		moved := *e
		moved.slot = len(slots)
		entries[event], slots = &moved, append(slots, &moved)
	}
	for part := range slices.Chunk(slots, buildBatch) {
		if err := next.change(part, nil); err != nil {
			return errors.Join(err, next.close())
		}
	}
	view, err := next.fresh()
	if err != nil {
		return errors.Join(err, next.close())
	}
	err = next.view.reader.Close()
	next.view = view
	x.mu.Lock()
	old := x.engine
	x.engine, x.entries, x.slots = next, entries, slots
	x.mu.Unlock()
	return errors.Join(err, old.close())
}
