package ledger

import (
	"context"
	"errors"
	"fmt"

	"onsale/internal/id"
)

// ErrOutcomeUnknown is in the chain of an Apply error where the commit may or may not have happened (A2).
var ErrOutcomeUnknown = errors.New("the outcome of the commit is unknown")

// ErrNotFound is answered by a Reader that has no such row.
var ErrNotFound = errors.New("not found in the ledger")

// An InvariantError says that an event's rows contradict each other. Nothing of the batch took effect; the event must be
// stopped.
type InvariantError struct {
	Event id.ID
	What  string
}

func (e *InvariantError) Error() string {
	return fmt.Sprintf("invariant broken in event %s: %s", e.Event.Text(id.Event), e.What)
}

// A Reader answers from committed state, without locks. What it says may be old by the time it is read: only Apply
// decides.
type Reader interface {
	// Event is the shard's row of an event.
	Event(ctx context.Context, event id.ID) (Event, error)
	// Events are all rows.
	Events(ctx context.Context) ([]Event, error)
	// Layout is what the ledger knows of a seating plan. It never changes.
	Layout(ctx context.Context, planHash string) (*Layout, error)
	// Snapshot is the picture of one event at one instant, with its version.
	Snapshot(ctx context.Context, event id.ID) (Snapshot, error)
	// ChangesSince are the changes after a version, ascending, at most max. gap says that some are not kept any more, or
	// that the ledger has lost that version (a fail-over, a restored backup): take a Snapshot.
	ChangesSince(ctx context.Context, event id.ID, version int64, max int) (changes []Change, gap bool, err error)
	// Hold and Order are as they are now; a HoldLive hold past its time is given as stored.
	Hold(ctx context.Context, hold id.ID) (Hold, error)
	Order(ctx context.Context, order id.ID) (Order, error)
	// OrdersOf are a customer's orders, newest first, before the given id (0: from the newest), at most max.
	OrdersOf(ctx context.Context, customer, before id.ID, max int) ([]Order, error)
	Ticket(ctx context.Context, ticket id.ID) (Ticket, error)
	// PendingOrders are orders PENDING and untouched since before an instant, oldest first, at most max.
	PendingOrders(ctx context.Context, before Time, max int) ([]Order, error)
	// OpenPayments are payments that something is due for: authorized ones of PAID orders (capture), and each refund
	// REQUESTED and not refused, with its payment (give back), oldest first, at most max.
	OpenPayments(ctx context.Context, max int) ([]OpenPayment, error)
	// Payments are those known of an order, by provider and id.
	Payments(ctx context.Context, order id.ID) ([]Payment, error)
	// Refund is one refund; RefundsOf are those of an order's tickets and money, oldest first.
	Refund(ctx context.Context, refund id.ID) (Refund, error)
	RefundsOf(ctx context.Context, order id.ID) ([]Refund, error)
	// UnreleasedRefunds are REFUNDED ones whose tickets' seats are not released yet, oldest first, at most max.
	UnreleasedRefunds(ctx context.Context, max int) ([]Refund, error)
	// RefusedRefunds are REQUESTED ones that the provider refused, newest first, before the given id (0: from the newest).
	RefusedRefunds(ctx context.Context, before id.ID, max int) ([]Refund, error)
	// OrdersOfEvent are an event's orders with all their tickets (those passed on too), by id, at most max.
	OrdersOfEvent(ctx context.Context, event id.ID, find OrderFilter, max int) ([]Order, error)
	// TicketsOf are the tickets that a customer has now, their own and those passed on to them, newest first, before the
	// given id (0: from the newest), at most max.
	TicketsOf(ctx context.Context, customer, before id.ID, max int) ([]Ticket, error)
	// CheckIns are the uses of an event's tickets, by time (and ticket), after the given one, at most max; Conflicts only
	// those that are conflicts. CheckInsOf are one ticket's.
	CheckIns(ctx context.Context, event id.ID, after CheckInCursor, conflicts bool, max int) ([]CheckedIn, error)
	CheckInsOf(ctx context.Context, ticket id.ID) ([]CheckedIn, error)
	// Figures count an event.
	Figures(ctx context.Context, event id.ID) (Figures, error)
	// ClaimHistory is what became of an order's claims, and NoticesOf its notices that are still kept: by time.
	ClaimHistory(ctx context.Context, holds []id.ID) ([]ClaimStep, error)
	NoticesOf(ctx context.Context, order id.ID) ([]Notice, error)
	Wishing
	Outbox
	Leases
	RoomReader
	// Now is the shard's clock.
	Now(ctx context.Context) (Time, error)
	// NextExpiry is when the next live hold runs out, 0 where there is none.
	NextExpiry(ctx context.Context) (Time, error)
}

// A RoomReader answers about waiting rooms.
type RoomReader interface {
	// Room is a room's row, Rooms are all, by event.
	Room(ctx context.Context, event id.ID) (Room, error)
	Rooms(ctx context.Context) ([]Room, error)
	// Session and SessionOfNumber are as they are now; one whose time is up is given as stored.
	Session(ctx context.Context, session id.ID) (Session, error)
	SessionOfNumber(ctx context.Context, number SessionNumber) (Session, error)
	// Sessions are an event's, by id, behind the given one, at most max.
	Sessions(ctx context.Context, event, after id.ID, max int) ([]Session, error)
	// Calls are those of a lane since an instant, in their order, at most max.
	Calls(ctx context.Context, event id.ID, lane string, since Time, max int) ([]Call, error)
	// Forces are what was in force in an event's room, in their order; none where it was always off.
	Forces(ctx context.Context, event id.ID) ([]RoomForce, error)
	// RoomFigures count what became of those called. It reads all holds of sessions: not for every request.
	RoomFigures(ctx context.Context, event id.ID) (RoomFigures, error)
	// CodeUses is how many customers have used a presale code of a lane.
	CodeUses(ctx context.Context, event id.ID, lane, code string) (int, error)
}

// An OrderFilter narrows an event's orders.
type OrderFilter struct {
	After    id.ID
	Customer id.ID      // 0: anybody's
	State    OrderState // 0: any
}

// A CheckInCursor is where a page of uses ends. The zero value begins.
type CheckInCursor struct {
	At     Time
	Ticket id.ID
	Device string
}

// Figures count what became of an event, at one instant.
type Figures struct {
	Orders           [OrderRefunded + 1]int // by state
	Tickets          []TicketFigures        // by category, ascending
	Paid             int64                  // captured, minor units
	Refunded         int64
	Kept             int64 // fees of refunds and exchanges
	RefundsRequested int
	RefundsRefused   int
	Conflicts        int // uses decided offline that should not have been
}

// TicketFigures count the tickets of a category.
type TicketFigures struct {
	Category int16
	Valid    int
	Used     int
	Void     int
	Total    int64 // of the valid ones, USED or not; minor units
}

// A ClaimStep is one transition of a claim.
type ClaimStep struct {
	Hold   id.ID
	From   string
	To     string
	Why    string
	Seats  []int32
	Places int
	At     Time
}

// An OpenPayment is a payment for which something is due, with what asks for it.
type OpenPayment struct {
	Payment Payment
	Refund  *Refund // nil: capture it
}

// An Outbox hands out what was committed, for publishing.
type Outbox interface {
	// Unpublished are notices not marked yet, in order for each order, at most max, leaving out the orders in skip.
	Unpublished(ctx context.Context, max int, skip []id.ID) ([]Notice, error)
	// MarkPublished marks notices as published; marking twice is harmless. It fails with ErrFenced unless the lease is
	// held under this fence.
	MarkPublished(ctx context.Context, lease Lease, notices []Notice) error
	// PrunePublished deletes notices published before an instant, at most max, and says how many.
	PrunePublished(ctx context.Context, lease Lease, before Time, max int) (int, error)
}

// A Lease is the right to do one kind of background work, for a while (D1).
type Lease struct {
	Name   string
	Holder string
	Fence  int64
	Until  Time
}

// ErrFenced is answered to a worker whose lease has gone to another.
var ErrFenced = errors.New("the lease is held by another")

// Leases are rows by which one worker at a time is chosen. They are judged by the database's clock.
type Leases interface {
	// Acquire takes or renews the lease for a time; ok is false while another holds it. A new holder gets a greater
	// fence.
	Acquire(ctx context.Context, name, holder string, ttl Duration) (lease Lease, ok bool, err error)
	// ReleaseLease gives it back early, if it is still held under this fence.
	ReleaseLease(ctx context.Context, lease Lease) error
}

// A Snapshot is the picture of an event: Seats[i] is the seat with index i, Areas[i] the area i.
type Snapshot struct {
	Event   Event
	Version int64
	Now     Time
	Seats   []SeatState
	Areas   []AreaState
}

// A SeatState is a seat's state; Expires is when its hold runs out, 0 where it is not held.
type SeatState struct {
	State   Availability
	Expires Time
}

// An AreaState is how an area stands.
type AreaState struct {
	Capacity int32
	Held     int32
	Sold     int32
	Returned int32 // promised to the waitlist
}

// Free is how many places of the area can be held now.
func (a AreaState) Free() int32 { return a.Capacity - a.Held - a.Sold - a.Returned }
