package ledger

import "onsale/internal/id"

// Limits of a waitlist.
const (
	WishesPerEventMax = 200_000
	WishNamesMax      = 64 // categories, and as many sections, that a wish names
	WishOffersMax     = 3  // offers that one wish gets; after as many that were not taken it ends
	OfferSeatsMax     = 500
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
	Order      int64   // the smaller goes first: the number in the line, else after all numbers in the order of coming
	Hold       id.ID   // the last offer, 0 none
	Offers     int
	Created    Time
	Updated    Time
	Sequence   int64 // of the last notice published about it
}

// AddWish puts a wish on the waitlist. The customer's own, still waiting, is replaced but keeps its Order and Offers.
//
// Result: Wish. Faults: key_reused; event_unknown; invalid; not_on_sale (cancelled, ended, window over); conflict (one is
// offered to them now; the event has no waitlist); busy (WishesPerEventMax).
type AddWish struct {
	Wish Wish // ID, Event, Customer, what is wished, Order
	Key  Key
}

// WithdrawWish takes a wish back. One that has ended is a repeat.
//
// Faults: wish_unknown; wrong_customer; conflict (offered: release the hold first).
type WithdrawWish struct {
	Wish     id.ID
	Customer id.ID
}

// Offer turns returned seats, or returned places of one area, into a hold for a waiting wish, for TTL. It needs no session. The
// customer's limits apply. The seats must be Returned, and fit the wish.
//
// Result: Hold (with Offer = the wish), Wish. Faults: wish_unknown; conflict (not waiting); event_unknown; paused, not_on_sale;
// invalid (does not fit); seats_taken; places_taken; limit_reached.
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
// WishOffersMax. One whose hold is still live is a repeat, as is one that is not offered.
//
// Result: Wish. Faults: wish_unknown.
type SettleWish struct {
	Wish id.ID
}

// ReleaseReturned gives returned seats and places that nobody on the waitlist wants back to the sale. Those that are not
// returned stay as they are.
//
// Result: Count. Faults: event_unknown; invalid; seat_unknown.
type ReleaseReturned struct {
	Event    id.ID
	Seats    []int32
	Area     int32 // with Quantity > 0: so many returned places of it, at most those there are
	Quantity int
}

// SetReturns says what becomes of seats that are freed (A23). To the waitlist only while nobody called or waiting is left in the
// event's room: Line is how many numbers each lane has given out, as far as the sender knows.
//
// Faults: event_unknown; conflict (somebody is left in the line; the event has no waitlist).
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
