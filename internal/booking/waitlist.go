package booking

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// OfferTTL is how long an offer lasts where nothing else is set.
const OfferTTL = ledger.Duration(15 * 60 * 1000)

// WaitlistOptions say how a Waitlist works. Shard and IDs are required.
type WaitlistOptions struct {
	Shard  Shard
	IDs    IDs
	Number int // the shard's number, for new ids

	// OfferTTL is how long an offer lasts. Defaults to 15 min.
	OfferTTL ledger.Duration
	// OfferTTLOf is how long one of an event lasts; 0: OfferTTL. nil: always that.
	OfferTTLOf func(ctx context.Context, event id.ID) ledger.Duration
	// Line says how many numbers each lane of an event's room has given out, as far as the room knows: while somebody of them
	// waits or may claim, freed seats go to the line and not to the list (A23). nil: only what the ledger itself knows counts.
	Line func(ctx context.Context, event id.ID) ([]ledger.LaneCount, error)

	// Holder tells this worker from others. Defaults to a random text.
	Holder string
	// Tick replaces the ticker of Run, and Passed is told after each pass what it did; both are for tests.
	Tick   <-chan time.Time
	Passed func(Served, error)
	Logger *slog.Logger // Defaults to slog.Default()
}

// A Waitlist keeps the wishes of those who found nothing, and offers them what comes back (A23).
//
// The one idea: what is freed while somebody waits is Returned, which nobody can hold; one worker, Serve, looks at it several
// times a second and makes of it an offer to the first wish that it fits, or gives it back to the sale at once. Every step
// is one command of the ledger, decided there again, so that two workers at once only refuse each other.
//
// Start reading at Serve, then match.
type Waitlist struct {
	o WaitlistOptions

	mu       sync.Mutex // one round at a time
	memories map[id.ID]*memory
	layouts  map[string]*ledger.Layout // by plan
}

// NewWaitlist makes one.
func NewWaitlist(o WaitlistOptions) *Waitlist {
	o.OfferTTL = cmp.Or(o.OfferTTL, OfferTTL)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Holder == "" {
		o.Holder = rand.Text()
	}
	return &Waitlist{o: o, memories: map[id.ID]*memory{}, layouts: map[string]*ledger.Layout{}}
}

// A WishRequest is what a customer wishes for.
type WishRequest struct {
	Event      id.ID
	Customer   id.ID
	Quantity   int     // places
	Least      int     // fewer will do, down to this; 0: all or nothing
	Categories []int16 // of the plan; none: any with a price
	Sections   []int16 // of the plan; none: any
	Together   bool    // only neighbours
	PriceMax   int64   // of one place, its total in minor units; 0: any

	// Position is the customer's place in the event's line (of any lane), -1 where they have none: who stood in the line goes
	// before who came later.
	Position int64
	Key      ledger.Key
}

// A Standing is how a customer's wish stands.
type Standing struct {
	Wish ledger.Wish
	// Hold is the offer, while it lasts: it is paid for like any hold. nil: none.
	Hold *ledger.Hold
}

// Add puts a wish on the list. The customer's own that waits already is replaced, and keeps its place.
//
// Faults: those of ledger.AddWish and of Shard.Do.
func (w *Waitlist) Add(ctx context.Context, r WishRequest) (ledger.Wish, error) {
	wish, err := w.o.IDs.Next(w.o.Number)
	if err != nil {
		return ledger.Wish{}, err
	}
	order := int64(wish) // greater than any number of a line (ledger.RoomNumbersMax)
	if r.Position >= 0 {
		order = r.Position
	}
	answer, err := w.do(ctx, ledger.AddWish{Key: r.Key, Wish: ledger.Wish{
		ID: wish, Event: r.Event, Customer: r.Customer, Quantity: r.Quantity, Least: cmp.Or(r.Least, r.Quantity),
		Categories: r.Categories, Sections: r.Sections, Together: r.Together, PriceMax: r.PriceMax, Order: order,
	}})
	if err != nil {
		return ledger.Wish{}, err
	}
	return *answer.Wish, nil
}

// Withdraw takes a customer's wish for an event back. One that has ended is answered as it is.
//
// Faults: wish_unknown (they have none); conflict (an offer lasts: release its hold first); those of Shard.Do.
func (w *Waitlist) Withdraw(ctx context.Context, event, customer id.ID) (ledger.Wish, error) {
	mine, err := w.Mine(ctx, event, customer)
	if err != nil {
		return ledger.Wish{}, err
	}
	answer, err := w.do(ctx, ledger.WithdrawWish{Wish: mine.Wish.ID, Customer: customer})
	if err != nil {
		return ledger.Wish{}, err
	}
	return *answer.Wish, nil
}

// Mine is a customer's newest wish for an event.
//
// Faults: wish_unknown.
func (w *Waitlist) Mine(ctx context.Context, event, customer id.ID) (Standing, error) {
	r := w.o.Shard.Ledger()
	wish, err := r.WishOf(ctx, event, customer)
	if errors.Is(err, ledger.ErrNotFound) {
		return Standing{}, fault.New(fault.WishUnknown, "")
	}
	if err != nil || wish.State != ledger.WishOffered {
		return Standing{Wish: wish}, err
	}
	h, err := r.Hold(ctx, wish.Hold)
	if errors.Is(err, ledger.ErrNotFound) {
		return Standing{Wish: wish}, nil
	}
	if err != nil {
		return Standing{}, err
	}
	now, err := r.Now(ctx)
	if err != nil || !h.Live(now) {
		return Standing{Wish: wish}, err
	}
	return Standing{Wish: wish, Hold: &h}, nil
}

// do is Service.do.
func (w *Waitlist) do(ctx context.Context, c ledger.Command) (ledger.Result, error) {
	return do(ctx, w.o.Shard, c)
}
