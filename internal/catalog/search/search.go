// Package search finds the events that the public may know of, by words in Chinese and English, best first.
//
// The one idea: bleve finds, rank orders. Of each event the index knows its words and, in a field of its own, its Chinese
// characters one by one and in pairs; a query's terms give a few candidates. Each of them is then looked at in memory, by
// a function of nothing but the query and the event (clause.points). So the order does not depend on what else there is,
// and a cursor (rank, start, id) stays good while the index changes between two pages: nothing comes twice, and nothing is
// lost but what changed itself.
//
// The index lives in memory only. Sync reads the catalog at the start and Run follows it, on each node for itself; with
// the store away, searches go on.
//
// Start reading at Index.Search, then query.go (what a query means) and rank.go (what is better). fold.go makes texts
// comparable, follow.go follows the catalog, bleve.go is all that knows bleve.
package search

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/fold"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Options of an Index.
type Options struct {
	Store catalog.Store
	Now   func() time.Time // defaults to time.Now
	Log   *slog.Logger     // defaults to slog.Default

	// Left says how an event stands by what this node has heard of its sale: the ledger's state, how many seats and places
	// are left, and whether anything is known at all. It is called often, must be quick, and must not search. Defaults to nothing known: an
	// event is then available as long as its sale is open.
	Left func(event id.ID) (state ledger.EventState, left int, known bool)
}

// An Index is a catalog.Searcher over a copy of the catalog in memory. All methods may be called at once.
type Index struct {
	o    Options
	sync sync.Mutex // held by the one who changes the index

	mu      sync.RWMutex // guards what follows; a search holds it for its whole time
	engine  *engine
	entries map[id.ID]*entry
	slots   []*entry // by slot; nil: its event is gone
	ready   bool
	closed  bool

	// Guarded by sync.
	hidden   map[id.ID]catalog.EventVersion // drafts and cancelled events, so that they are not read again and again
	lastFull time.Time
	lastSync time.Time
}

var _ catalog.Searcher = (*Index)(nil)

// New makes an empty index. Close it.
func New(o Options) (*Index, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Left == nil {
		o.Left = func(id.ID) (ledger.EventState, int, bool) { return 0, 0, false }
	}
	e, err := newEngine()
	if err != nil {
		return nil, err
	}
	return &Index{o: o, engine: e, entries: map[id.ID]*entry{}, hidden: map[id.ID]catalog.EventVersion{}}, nil
}

// Close ends the index. Searches answer busy from then on.
func (x *Index) Close() error {
	x.sync.Lock()
	defer x.sync.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil
	}
	x.closed, x.ready = true, false
	return x.engine.close()
}

// Count is how many events can be found.
func (x *Index) Count() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.entries)
}

// Search answers a page of what a query asks for: with words by rank, then start, then id; without, by start and id. Every
// word must be found. An event that is no draft any more and not cancelled can be found, also one that is over: From
// leaves those out. Faults: invalid; busy while the catalog has not been read.
func (x *Index) Search(ctx context.Context, q catalog.Query) (catalog.Page, error) {
	words, err := parse(q.Text)
	if err != nil {
		return catalog.Page{}, err
	}
	if q.After != (catalog.Cursor{}) && q.After.Words != words.mark() {
		return catalog.Page{}, &fault.Error{Code: fault.Invalid, Field: "cursor", Detail: "belongs to another query: begin at the first page"}
	}
	most := q.Max
	if most <= 0 || most > catalog.QueryMax {
		most = catalog.QueryDefault
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if !x.ready {
		return catalog.Page{}, &fault.Error{Code: fault.Busy, Detail: "the list of events is being read", RetryAfter: time.Second}
	}
	hits, err := x.hits(ctx, q, words, most+1) // one more says whether there is a next page
	if err != nil {
		return catalog.Page{}, fmt.Errorf("searching: %w", err)
	}
	return page(hits, most, words), nil
}

// hits are the first few that a query asks for, in order.
func (x *Index) hits(ctx context.Context, q catalog.Query, words parsed, most int) ([]hit, error) {
	best := newTop(most)
	look := x.filter(q, &words)
	consider := func(e *entry) {
		if h, ok := look(e); ok && best.wants(h) && x.available(e, q.Availability) {
			best.add(h)
		}
	}
	visit := func(slot int32) { consider(x.slots[slot]) }
	switch {
	case q.Text == "":
		for _, e := range x.entries {
			consider(e)
		}
		return best.sorted(), nil
	case len(words.clauses) == 0: // nothing in it can be looked for
		return nil, nil
	case words.namesFirst() && (q.After == (catalog.Cursor{}) || q.After.Rank > textRankMax):
		// A page full of names needs none that merely mention them, which for one character may be nearly all there are.
		if err := x.engine.view.candidates(ctx, words, names, visit); err != nil {
			return nil, err
		}
		if len(best.hits) == most {
			return best.sorted(), nil
		}
		best.hits = best.hits[:0]
	}
	if err := x.engine.view.candidates(ctx, words, everything, visit); err != nil {
		return nil, err
	}
	return best.sorted(), nil
}

// filter answers the function that looks at one event: its rank, and whether the query asks for it and it comes after the
// cursor.
func (x *Index) filter(q catalog.Query, words *parsed) func(*entry) (hit, bool) {
	city := squeeze(fold.Text(q.City))
	from, to := int64(-1<<63), int64(1<<63-1)
	if !q.From.IsZero() {
		from = q.From.UnixMilli()
	}
	if !q.To.IsZero() {
		to = q.To.UnixMilli()
	}
	after := hit{rank: q.After.Rank, starts: q.After.Starts.UnixMilli(), event: q.After.Event}
	return func(e *entry) (hit, bool) {
		if city != "" && e.city != city || e.starts < from || e.starts >= to || q.Organizer != 0 && e.organizer != q.Organizer {
			return hit{}, false
		}
		h := hit{starts: e.starts, event: e.id, entry: e}
		if q.Text != "" {
			if h.rank = words.rank(e); h.rank == 0 {
				return hit{}, false
			}
		}
		return h, q.After == (catalog.Cursor{}) || after.before(h)
	}
}

// available says whether an event is as available as was asked.
func (x *Index) available(e *entry, asked catalog.Availability) bool {
	if asked == catalog.AnyAvailability {
		return true
	}
	if e.event.State != catalog.OnSale {
		return false
	}
	state, left, known := x.o.Left(e.event.ID)
	if e.event.StateAt(x.o.Now(), state, known) != catalog.OnSale {
		return false
	}
	return asked != catalog.Available || !known || left > 0
}

func page(hits []hit, most int, words parsed) catalog.Page {
	var p catalog.Page
	if len(hits) > most {
		hits = hits[:most]
		last := hits[most-1]
		p.Next = catalog.Cursor{Rank: last.rank, Starts: time.UnixMilli(last.starts).UTC(), Event: last.event, Words: words.mark()}
	}
	p.Events = make([]catalog.Event, 0, len(hits))
	for _, h := range hits {
		p.Events = append(p.Events, *h.entry.event)
	}
	return p
}
