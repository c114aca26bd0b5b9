package catalog

import (
	"context"
	"errors"
	"time"

	"onsale/internal/id"
)

// ErrNotFound is answered by a Store that has no such thing.
var ErrNotFound = errors.New("not found in the catalog")

// ErrConflict is answered by a Store where somebody else was faster: read again, then decide again.
var ErrConflict = errors.New("the catalog has changed meanwhile")

// A Plan is a seating plan as it is stored.
type Plan struct {
	Hash      string // of venue.Plan.Hash
	Organizer id.ID
	Name      string
	SeatCount int
	Body      []byte // gzip of venue.Plan.Encode
	Created   time.Time
}

// A Query asks for events. The zero value is all of them.
type Query struct {
	Text         string       // every word must be in show, title, performers, venue or city
	City         string       // as written, letters in either case
	From, To     time.Time    // starts in [From, To); zero: open
	Organizer    id.ID        // 0: any
	Availability Availability // "": any
	Drafts       bool         // also drafts: for organizers, by the store's own plain search
	After        Cursor       // zero: from the first
	Max          int          // 1…QueryMax; 0: QueryDefault
}

// Availability narrows a query to what can be bought.
type Availability string

// What a query may ask of an event's availability.
const (
	AnyAvailability Availability = ""
	SellingNow      Availability = "on_sale"   // its sale is open
	Available       Availability = "available" // and something is left, as far as this node has heard
)

// Bounds of a query.
const (
	QueryMax      = 200
	QueryDefault  = 50
	QueryWordsMax = 8 // that the store looks for; a Searcher has limits of its own
)

// A Cursor is a place in the order of events: by rank (the best first; 0 for a plain list), then start, then id.
type Cursor struct {
	Rank   int
	Starts time.Time
	Event  id.ID
	Words  uint32 // of a ranked one: the Searcher's mark of the words that ranked it
}

// A Searcher finds events that the public may know of (neither drafts nor cancelled) by words, best first; search.Index
// is one. Text and City of the query are folded. Faults: invalid; busy while it has not read the catalog yet.
type Searcher interface {
	Search(ctx context.Context, q Query) (Page, error)
}

// An EventVersion says how an event stands, for those who follow the catalog.
type EventVersion struct {
	Event       id.ID
	Version     int64
	ShowUpdated time.Time
}

// A Listing is an event with its show.
type Listing struct {
	Event Event
	Show  Show
}

// ListingsMax is how many listings are read at once.
const ListingsMax = 500

// A Store keeps the catalog in the control database. Each method is atomic and durable when it returns; all may be called
// at once. controltest.Exercise is this contract as tests.
type Store interface {
	// EnsureOrganizer answers the organizer with o.Key, made as o where there is none yet.
	EnsureOrganizer(ctx context.Context, o Organizer) (Organizer, error)
	// Organizers are all, by id.
	Organizers(ctx context.Context) ([]Organizer, error)

	// PutPlan keeps a plan and whose it is. A plan that is there stays as it is.
	PutPlan(ctx context.Context, p Plan) error
	// Plan is a plan by its hash (Organizer: the first who had it). ErrNotFound.
	Plan(ctx context.Context, hash string) (Plan, error)
	// Plans are an organizer's plans without their bodies, newest first.
	Plans(ctx context.Context, organizer id.ID) ([]Plan, error)

	// Show is a show by its id, ShowByKey by its organizer's name for it. ErrNotFound.
	Show(ctx context.Context, show id.ID) (Show, error)
	ShowByKey(ctx context.Context, organizer id.ID, key string) (Show, error)
	// Shows are an organizer's, by id after the given one, at most max.
	Shows(ctx context.Context, organizer, after id.ID, max int) ([]Show, error)

	// PutEvents keeps a show (nil: none) and events, all or nothing. An event of version 1 must not be there, one of
	// version v must be there with v-1; a show or event must not take another's key: ErrConflict. search has for each
	// event what queries look in.
	PutEvents(ctx context.Context, show *Show, events []Event, search []string) error
	// Event is an event by its id. ErrNotFound.
	Event(ctx context.Context, event id.ID) (Event, error)
	// EventsOf are all events of a show, by start.
	EventsOf(ctx context.Context, show id.ID) ([]Event, error)
	// Events are those that a query asks for, by start and id, at most q.Max. Text and City are folded already.
	Events(ctx context.Context, q Query) ([]Event, error)

	// Versions are all events that changed at or after an instant, or whose show did, by the clocks of those who changed
	// them (zero: all events), by id after the given one, at most max.
	Versions(ctx context.Context, since time.Time, after id.ID, max int) ([]EventVersion, error)
	// Listings are those of the given events that are there, at most ListingsMax, in any order.
	Listings(ctx context.Context, events []id.ID) ([]Listing, error)

	// AddLog adds a line to an event's log; Seq is the store's to set. Those of PutEvents it writes by itself, in the same
	// step, with what ActorOf says.
	AddLog(ctx context.Context, event id.ID, e LogEntry) error
	// Log are lines of an event's log before the given one (0: from the newest), newest first, at most max.
	Log(ctx context.Context, event id.ID, before int64, max int) ([]LogEntry, error)

	// MarkSent remembers that the ledger has a version of an event; an older one changes nothing.
	MarkSent(ctx context.Context, event id.ID, version int64) error
	// Unsent are events of which the ledger may not have the current version, by id after the given one, at most max.
	Unsent(ctx context.Context, after id.ID, max int) ([]Event, error)
}
