package ledger

import (
	"cmp"
	"context"
	"slices"

	"onsale/internal/id"
)

// Limits of a waitlist.
const (
	WishesPerEventMax = 200_000
	WishNamesMax      = 64 // categories, and as many sections, that a wish names
	WishOffersMax     = 3  // offers that one wish gets; after as many that were not taken it ends
	OfferSeatsMax     = 500

	// OfferTTLMax is how long an offer lasts at most.
	OfferTTLMax = Duration(24 * 60 * 60 * 1000)
)

// WishState is how a wish stands.
type WishState uint8

// The states of a wish.
const (
	WishWaiting   WishState = iota + 1
	WishOffered             // Hold is its offer, live or not settled yet
	WishTaken               // bought
	WishEnded               // after WishOffersMax offers, or the sale's end
	WishWithdrawn           // by its customer
)

// String is the state's word as the API says it.
func (s WishState) String() string {
	return [...]string{"", "waiting", "offered", "taken", "ended", "withdrawn"}[s]
}

// A Wish is what a customer leaves on the waitlist of an event that has nothing for them (RULES A23). At most one of a customer
// and event is waiting or offered.
type Wish struct {
	ID         id.ID
	Event      id.ID
	Customer   id.ID
	State      WishState
	Quantity   int
	Least      int     // fewer than Quantity will do, down to this; = Quantity: all or nothing
	Categories []int16 // none: any with a price
	Sections   []int16 // none: any
	Together   bool    // only neighbours
	PriceMax   int64   // of one place, its total in minor units; 0: any
	Order      int64   // the number in the line, else after all numbers in the order of coming. See WishCursor.Compare
	Hold       id.ID   // the last offer, 0 none
	Offers     int
	Created    Time
	Updated    Time
	Sequence   int64 // of the last notice published about it
}

// Open says whether a wish is on the list.
func (w *Wish) Open() bool { return w.State == WishWaiting || w.State == WishOffered }

// Wants says whether a place of a category and section would do for the wish, at the event's prices.
func (w *Wish) Wants(e *Event, category, section int16) bool {
	if _, priced := e.Tier(category); !priced {
		return false
	}
	return (len(w.Categories) == 0 || slices.Contains(w.Categories, category)) &&
		(len(w.Sections) == 0 || slices.Contains(w.Sections, section)) &&
		(w.PriceMax == 0 || e.Price(category).Total <= w.PriceMax)
}

// A WishCursor is a place on the list, and where a page of wishes ends. The zero value begins.
type WishCursor struct {
	Offers int
	Order  int64
	Wish   id.ID
}

// Cursor is the wish's place on the list.
func (w *Wish) Cursor() WishCursor { return WishCursor{w.Offers, w.Order, w.ID} }

// Compare says which place is served first: who has had fewer offers (what somebody does not take is passed on to the next),
// then who has the smaller Order, then who came first.
func (c WishCursor) Compare(o WishCursor) int {
	return cmp.Or(cmp.Compare(c.Offers, o.Offers), cmp.Compare(c.Order, o.Order), cmp.Compare(c.Wish, o.Wish))
}

// ReturnedPlaces are what is promised to an event's waitlist and not offered to anybody yet.
type ReturnedPlaces struct {
	Seats []int32 // ascending
	Areas []int32 // places of each area
}

// Wishing is the part of a Reader that knows the waitlists.
type Wishing interface {
	Wish(ctx context.Context, wish id.ID) (Wish, error)
	// WishOf is a customer's newest wish for an event.
	WishOf(ctx context.Context, event, customer id.ID) (Wish, error)
	// Wishes are an event's in a state, in the order in which they are served, after a place on the list, at most max.
	Wishes(ctx context.Context, event id.ID, state WishState, after WishCursor, max int) ([]Wish, error)
	// WishesOfCustomer are one customer's, newest first, before the given id (0: from the newest), at most max.
	WishesOfCustomer(ctx context.Context, customer, before id.ID, max int) ([]Wish, error)
	// Returned are the places of an event that are returned, at most max seats.
	Returned(ctx context.Context, event id.ID, max int) (ReturnedPlaces, error)
}

// AddWish puts a wish on the waitlist. Where the customer's own is still waiting, that one changes: what it asks for, not its
// ID, Order and Offers. An offer whose hold is over is settled first.
//
// A new one of somebody who let offers lapse before, or withdrew, has as many offers fewer to come.
//
// Result: Wish. Faults: key_reused; event_unknown; invalid; not_on_sale (also draft and stopped); conflict (the event has no
// waitlist; one is offered to them now; they let WishOffersMax offers lapse); busy (WishesPerEventMax).
type AddWish struct {
	Wish Wish // ID, Event, Customer, what is wished, Order
	Key  Key
}

// WithdrawWish takes a wish back. One that has ended is a repeat. An offer whose hold is over is settled first.
//
// Result: Wish. Faults: wish_unknown; wrong_customer; conflict (offered: release the hold first).
type WithdrawWish struct {
	Wish     id.ID
	Customer id.ID
}

// Offer turns returned seats, or returned places of one area, into a hold for a waiting wish, for TTL. It needs no session. The
// customer's limits apply, and the event's quotas. The seats must be Returned, or held by a hold whose time is up (which then
// ends, and they are), and fit the wish. The hold cannot be extended but by paying. The same offer again is a repeat.
//
// Result: Hold (with Offer = the wish), Wish. Faults: wish_unknown; conflict (not waiting); paused, not_on_sale; invalid (does
// not fit); seats_taken; places_taken (the area has not so many returned; a quota); limit_reached.
type Offer struct {
	Hold  id.ID
	Wish  id.ID
	Seats []int32
	Area  int32 // with Quantity, where Seats is empty
	// Quantity is how many places of the area.
	Quantity int
	TTL      Duration
}

// SettleWish writes down what became of an offer: bought → Taken; its hold over → Waiting again, or Ended after
// WishOffersMax. One whose hold is still live, or may still be paid for, is a repeat. Where the sale is over (ended, cancelled,
// window over) a wish that waits is Ended.
//
// Result: Wish. Faults: wish_unknown.
type SettleWish struct {
	Wish id.ID
}

// ReleaseReturned gives returned seats and places that nobody on the waitlist wants back to the sale. Those that are not
// returned stay as they are.
//
// Result: Count. Faults: event_unknown; invalid (neither seats nor a quantity; a seat twice); seat_unknown (or area).
type ReleaseReturned struct {
	Event    id.ID
	Seats    []int32
	Area     int32 // with Quantity > 0: so many returned places of it, at most those there are
	Quantity int
}

// SetReturns says what becomes of seats that are freed (A23). To the waitlist only while nobody called or waiting is left in the
// event's room: Line is how many numbers each lane has given out, as far as the sender knows. What it is already is a repeat.
//
// Faults: event_unknown; invalid; conflict (somebody is left in the line; the event has no waitlist).
type SetReturns struct {
	Event   id.ID
	Returns ReturnsMode
	Line    []LaneCount
}

func (c AddWish) EventHint() id.ID         { return c.Wish.Event }
func (c WithdrawWish) EventHint() id.ID    { return 0 }
func (c Offer) EventHint() id.ID           { return 0 }
func (c SettleWish) EventHint() id.ID      { return 0 }
func (c ReleaseReturned) EventHint() id.ID { return c.Event }
func (c SetReturns) EventHint() id.ID      { return c.Event }

func (c AddWish) SeatCount() int         { return 0 }
func (c WithdrawWish) SeatCount() int    { return 0 }
func (c Offer) SeatCount() int           { return max(1, len(c.Seats)) }
func (c SettleWish) SeatCount() int      { return 0 }
func (c ReleaseReturned) SeatCount() int { return len(c.Seats) }
func (c SetReturns) SeatCount() int      { return 0 }
