package catalog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"onsale/internal/cache"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// A Ledger takes commands; ledger.Batcher is one.
type Ledger interface {
	Do(ctx context.Context, command ledger.Command) (ledger.Result, error)
}

// Options of a Service.
type Options struct {
	Store  Store
	Ledger Ledger
	NewID  func(shard int) (id.ID, error)
	Now    func() time.Time // defaults to time.Now
	Log    *slog.Logger     // defaults to slog.Default
	Search Searcher         // nil: words are looked for by the store, which ranks nothing and does not know availability

	// PlansMax is how many plans are kept in memory: one of 50,000 seats takes about 15 MB with its layout.
	// Defaults to 16.
	PlansMax int
	// EventsMax is how many events and shows are kept in memory. Defaults to 10,000.
	EventsMax int
	// FreshFor is how old an event in memory may be: how late a change made by another node is seen here.
	// Defaults to 2 s.
	FreshFor time.Duration
}

// A Service is the catalog: reads from memory, changes through the store to the ledger. What Event, Show and Plan
// answer is shared and must not be written to.
type Service struct {
	o      Options
	events *cache.Cache[id.ID, *Event]
	shows  *cache.Cache[id.ID, *Show]
	plans  *cache.Cache[string, *venue.Plan]
	bodies *cache.Cache[string, []byte]
}

// New makes a service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.PlansMax == 0 {
		o.PlansMax = 16
	}
	if o.EventsMax == 0 {
		o.EventsMax = 10_000
	}
	if o.FreshFor == 0 {
		o.FreshFor = 2 * time.Second
	}
	s := &Service{o: o}
	changing := cache.Options{CountMax: o.EventsMax, FreshFor: o.FreshFor, Now: o.Now, RetryAfter: o.FreshFor, UseOld: s.useOld}
	s.events = cache.New[id.ID, *Event](changing)
	s.shows = cache.New[id.ID, *Show](changing)
	s.plans = cache.New[string, *venue.Plan](cache.Options{CountMax: o.PlansMax})
	s.bodies = cache.New[string, []byte](cache.Options{CountMax: o.PlansMax})
	return s
}

// useOld goes on from memory while the store is away (DESIGN 9).
func (s *Service) useOld(err error) bool {
	if errors.Is(err, ErrNotFound) {
		return false
	}
	s.o.Log.Warn("the catalog goes on from memory", "error", err)
	return true
}

// Event is an event by its id. Fault: event_unknown.
func (s *Service) Event(ctx context.Context, event id.ID) (*Event, error) {
	e, err := s.events.Load(ctx, event, func(ctx context.Context) (*Event, error) {
		e, err := s.o.Store.Event(ctx, event)
		return &e, err
	})
	if err != nil {
		return nil, notFound(err, fault.EventUnknown)
	}
	return e, nil
}

// Forget lets the next reader of an event see what another node has changed.
func (s *Service) Forget(event id.ID) { s.events.Forget(event) }

// Show is a show by its id. Fault: not_found.
func (s *Service) Show(ctx context.Context, show id.ID) (*Show, error) {
	w, err := s.shows.Load(ctx, show, func(ctx context.Context) (*Show, error) {
		w, err := s.o.Store.Show(ctx, show)
		return &w, err
	})
	if err != nil {
		return nil, notFound(err, fault.NotFound)
	}
	return w, nil
}

// A Page is some events and where to go on; Next is zero at the end.
type Page struct {
	Events []Event
	Next   Cursor
}

// Events are those that a query asks for. Words and availability are the Searcher's business, plain lists by date (and
// whatever concerns drafts) the store's; with the store away, plain lists come from the Searcher's memory.
// Faults: invalid; busy.
func (s *Service) Events(ctx context.Context, q Query) (Page, error) {
	q, err := q.folded()
	if err != nil {
		return Page{}, err
	}
	if s.o.Search != nil && !q.Drafts && (q.Text != "" || q.Availability != AnyAvailability) {
		return s.o.Search.Search(ctx, q)
	}
	if q.Availability != AnyAvailability {
		return Page{}, &fault.Error{Code: fault.Invalid, Field: "availability", Detail: "cannot be asked for here"}
	}
	if q.After.Rank != 0 {
		return Page{}, &fault.Error{Code: fault.Invalid, Field: "cursor", Detail: "belongs to a query with words: repeat them"}
	}
	page, err := s.list(ctx, q)
	if err != nil && s.o.Search != nil && !q.Drafts && ctx.Err() == nil {
		if kept, busy := s.o.Search.Search(ctx, q); busy == nil {
			s.o.Log.Warn("the list of events comes from memory", "error", err)
			return kept, nil
		}
	}
	return page, err
}

// list is a page of a plain list, from the store.
func (s *Service) list(ctx context.Context, q Query) (Page, error) {
	if n := len(strings.Fields(q.Text)); n > QueryWordsMax {
		return Page{}, &fault.Error{Code: fault.Invalid, Field: "query", Detail: fmt.Sprintf("%d words are too many: use at most %d", n, QueryWordsMax)}
	}
	most := q.Max
	q.Max++ // one more says whether there is a next page
	events, err := s.o.Store.Events(ctx, q)
	if err != nil {
		return Page{}, err
	}
	if len(events) <= most {
		return Page{Events: events}, nil
	}
	events = events[:most]
	last := events[most-1]
	return Page{Events: events, Next: Cursor{Starts: last.Starts, Event: last.ID}}, nil
}

// EnsureOrganizer answers the organizer with a key, made with a name where there is none yet. Fault: invalid.
func (s *Service) EnsureOrganizer(ctx context.Context, key, name string) (Organizer, error) {
	if bad := CheckKey(key); bad != "" {
		return Organizer{}, fault.New(fault.Invalid, "the organizer's key %s", bad)
	}
	if bad := CheckText(name, NameRunesMax); bad != "" {
		return Organizer{}, fault.New(fault.Invalid, "the organizer's name %s", bad)
	}
	number, err := s.o.NewID(0)
	if err != nil {
		return Organizer{}, err
	}
	return s.o.Store.EnsureOrganizer(ctx, Organizer{ID: number, Key: key, Name: name})
}

// PutPlan keeps a plan for an organizer and answers its hash. A plan that is there already is no error.
func (s *Service) PutPlan(ctx context.Context, organizer id.ID, plan *venue.Plan) (string, error) {
	body, err := plan.Encode()
	if err != nil {
		return "", fault.New(fault.Invalid, "%s", err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(body); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	hash := plan.Hash()
	err = s.o.Store.PutPlan(ctx, Plan{
		Hash: hash, Organizer: organizer, Name: plan.Name, SeatCount: len(plan.Seats), Body: packed.Bytes(), Created: s.now(),
	})
	if err != nil {
		return "", err
	}
	s.plans.Put(hash, plan)
	return hash, nil
}

// PlanBody is a plan's JSON, gzipped as it is stored. Fault: not_found.
func (s *Service) PlanBody(ctx context.Context, hash string) ([]byte, error) {
	body, err := s.bodies.Load(ctx, hash, func(ctx context.Context) ([]byte, error) {
		p, err := s.o.Store.Plan(ctx, hash)
		return p.Body, err
	})
	if err != nil {
		return nil, notFound(err, fault.NotFound)
	}
	return body, nil
}

// Plan is a plan by its hash. Fault: not_found.
func (s *Service) Plan(ctx context.Context, hash string) (*venue.Plan, error) {
	plan, err := s.plans.Load(ctx, hash, func(ctx context.Context) (*venue.Plan, error) {
		p, err := s.o.Store.Plan(ctx, hash)
		if err != nil {
			return nil, err
		}
		return unpack(p)
	})
	if err != nil {
		return nil, notFound(err, fault.NotFound)
	}
	return plan, nil
}

// Plans are an organizer's plans, newest first, without their bodies.
func (s *Service) Plans(ctx context.Context, organizer id.ID) ([]Plan, error) {
	return s.o.Store.Plans(ctx, organizer)
}

func unpack(p Plan) (*venue.Plan, error) {
	r, err := gzip.NewReader(bytes.NewReader(p.Body))
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", p.Hash, err)
	}
	body, err := io.ReadAll(io.LimitReader(r, venue.FileBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", p.Hash, err)
	}
	plan, err := venue.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", p.Hash, err)
	}
	if got := plan.Hash(); got != p.Hash {
		return nil, fmt.Errorf("plan %s has become %s in the database", p.Hash, got)
	}
	return plan, nil
}

func (s *Service) now() time.Time { return s.o.Now().UTC().Truncate(time.Millisecond) }

func notFound(err error, code fault.Code) error {
	if errors.Is(err, ErrNotFound) {
		return fault.New(code, "")
	}
	return err
}
