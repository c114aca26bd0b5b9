package waitingroom

import (
	"context"
	"errors"

	"onsale/internal/id"
)

// A Store takes joins: who has which number of an event's line. It is fast, and it may lose everything: what is durable is
// the Log, the high-water mark in the ledger, and the number on each signed queue ticket.
//
// Numbers of a lane are given once, in order, below the Limit that the ledger's high-water mark allows.
type Store interface {
	// Join is one atomic step that reads the phase and takes the next number of the lane, or answers with the number that
	// the customer has in this event, whatever lane is asked for and whatever the phase. For a new number with an Identity that
	// another customer with a number of the event has it answers ErrIdentityTaken and tells nothing of the other; else the
	// identity is this customer's from then on, until they leave.
	//
	// Errors: ErrUnknown (the store does not know the event, or has lost it: Restore it); ErrClosed (nobody may join now);
	// ErrLimit (no number below Limit is left, as in a lane that is new: raise the ledger's mark, then Limit, then try again);
	// anything else: the store is away.
	Join(ctx context.Context, j Join) (Joined, error)

	// Freeze ends the waiting phase in one atomic step, and answers how many numbers each lane has given out. Again: the same
	// answer. ErrUnknown.
	Freeze(ctx context.Context, event id.ID) ([]Count, error)

	// Restore makes an event known, or raises what the store has of it, never lowering anything: counters to at least Next,
	// limits to at least Limit, the phase to at least Phase. It is how an event begins, and how a store that has lost something
	// is mended.
	Restore(ctx context.Context, event id.ID, s State) error

	// Remember puts numbers given before, with their identities, into a store that has lost them, from the Log. Later records
	// of a customer win; one that is Left ends that number. It changes no counter, and makes no event known: it comes before
	// Restore, so that nobody who has a number is given another one in between.
	Remember(ctx context.Context, records []Record) error

	// Counts are the numbers given out so far, by lane. ErrUnknown.
	Counts(ctx context.Context, event id.ID) ([]Count, error)

	// Leave forgets a customer's number (if it is still this one): a later join takes a new one, and so may another customer
	// with the same identity.
	Leave(ctx context.Context, event, customer id.ID, number int64) error

	// Run is a name of the store's present life: another one means that it may have lost what it knew (C12). "" where that
	// cannot be.
	Run(ctx context.Context) (string, error)

	Close() error
}

// The errors of a Store.
var (
	ErrUnknown       = errors.New("the store does not know this event")
	ErrClosed        = errors.New("nobody may join this line now")
	ErrLimit         = errors.New("all numbers below the high-water mark are given out")
	ErrIdentityTaken = errors.New("another customer with the same document is in the line")
)

// Phase is as much of a room's phase as a join must know.
type Phase uint8

// The phases, in the order in which they come.
const (
	Closed  Phase = iota
	Waiting       // a number given now is drawn
	Tail          // a number given now goes behind all that were drawn
	Ended         // nobody joins any more
)

// A Join asks for a number.
type Join struct {
	Event    id.ID
	Customer id.ID
	Lane     int      // its place in the room's lanes
	Identity Identity // of their verified document; zero: not looked at
}

// An Identity is the keyed hash of a verified document, cut to 16 bytes. The zero value is none.
type Identity [16]byte

// Joined is the answer: a number of a lane. Drawn says that it was taken in the waiting phase, New that it is not older than
// this call.
type Joined struct {
	Lane   int
	Number int64
	Drawn  bool
	New    bool
}

// State is what a Store must know of an event.
type State struct {
	Phase Phase
	Lanes []LaneState
}

// A LaneState is a lane's counter: the next number, and the limit that it must not reach.
type LaneState struct {
	Next  int64
	Limit int64
}

// A Count is how many numbers a lane has given out.
type Count struct {
	Lane  int
	Count int64
}

// A Log keeps joins durably, outside the store: a queue ticket is signed only after its join is in it (C2). It is also the list
// whose hash is published at opening.
type Log interface {
	// Append makes joins durable, and answers for each the record that counts: its own, or, where that customer has another
	// number in the event already, that one. ErrNumberTaken in Appended.Err where this number was given before, to another customer
	// or to one who has given it up since: the store has lost writes, and must be restored above the greatest number of the log. ErrSealed there for a drawn record that came
	// too late for the list: its customer needs a number of the tail.
	Append(ctx context.Context, records []Record) ([]Appended, error)
	// Seal closes the list of an event's drawn joins, in one atomic step: no drawn record is added to it from then on (a
	// record that is in the log already is answered as before), and who leaves later stays in it. So the list is the same
	// whenever and by whomever it is read, and nobody holds a signed drawn number that it lacks. Again: nothing.
	Seal(ctx context.Context, event id.ID) error
	// Replay reads an event's records. Sorted it is the list: the drawn records by lane and number, without those that had
	// left when it was sealed (or now, where it is not yet). Else all of them in any order, an end (Left set) behind what it
	// ends.
	Replay(ctx context.Context, event id.ID, sorted bool, each func(Record) error) error
	// Of is the number that a customer has now. ok is false for none.
	Of(ctx context.Context, event, customer id.ID) (r Record, ok bool, err error)
	// Next is, for each lane that has records, the number behind the greatest.
	Next(ctx context.Context, event id.ID) ([]Count, error)
	Close() error
}

// ErrNumberTaken says that a number was given out twice, by a store that has lost writes.
var ErrNumberTaken = errors.New("this number belongs to another customer")

// ErrSealed says that a drawn join came after the list was sealed.
var ErrSealed = errors.New("the list of drawn joins is sealed")

// A Record is one join, or its end.
type Record struct {
	Event    id.ID
	Customer id.ID
	Lane     int
	Number   int64
	At       int64 // Unix milliseconds
	Drawn    bool
	Left     bool // the customer has given the number up
	Identity Identity
	// Entry is the keyed hash of the customer as the published list has it: Hex of 16 bytes there.
	Entry [16]byte
}

// Appended is what became of a record.
type Appended struct {
	Record Record
	Err    error
}
