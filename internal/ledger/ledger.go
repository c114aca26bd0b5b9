// Package ledger is the durable truth about the seats, holds, orders and tickets of one shard.
//
// The one idea: everything that changes is a Command, and a Ledger applies a batch of them in one transaction, each
// succeeding or failing alone, with the answers that they would have had one by one in the order given. Whatever stands
// in front of it (boards, waiting rooms, caches) is a filter; what it committed is what happened.
//
// Start reading at the commands (command.go), then the model (model.go), which says in plain code what each of them
// does. The databases' adapters, ledger/sqlite and ledger/postgres, share the decisions (ledger/decide) and only load
// and store rows. The Batcher turns many callers' commands into batches.
package ledger

import (
	"context"
	"strconv"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// Limits of a batch and of what one command may name.
const (
	BatchCommandsMax = 1024
	BatchSeatsMax    = 8192
	SeatsPerHoldCap  = 500 // the most that an event's SeatsPerHoldMax may be
	ExpireBoundMax   = 64  // expired holds that one command releases before it decides
	CandidatesMax    = 2048
	KeyBytesMax      = 255
	RefundPartsMax   = 8 // payments that one refund may draw from: an order that was exchanged more often is not exchanged again
	TextBytesMax     = 512

	// KeepAnswers is how long ended holds and idempotency keys are kept at least.
	KeepAnswers = Duration(24 * 60 * 60 * 1000)
	// KeepChanges is how long change rows are kept at least.
	KeepChanges = Duration(10 * 60 * 1000)
	// ReturnedPatience is how long a returned seat waits for an offer before a plain Hold may take it.
	ReturnedPatience = Duration(30 * 1000)
	// CheckInPastMax is how old, and CheckInAheadMax how far ahead, a use may be that a door decided offline.
	CheckInPastMax  = Duration(7 * 24 * 60 * 60 * 1000)
	CheckInAheadMax = Duration(5 * 60 * 1000)
	// ConflictsMax is how many conflicts of one ticket are written down: more say nothing new.
	ConflictsMax = 32
)

// Time is Unix milliseconds on the shard's clock, which never goes back.
type Time int64

// Duration is milliseconds.
type Duration int64

// Std is t as a standard library time in UTC.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)).UTC() }

// Std is d as a standard library duration.
func (d Duration) Std() time.Duration { return time.Duration(d) * time.Millisecond }

// TimeOf converts a standard library time, cutting to milliseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// A Ledger keeps one shard. All methods may be called at once from many goroutines; Apply calls of one Ledger run one
// after the other.
type Ledger interface {
	// Apply runs the commands in order in one transaction and answers each. Results[i] is the answer of commands[i].
	// When it returns, what it answered is durable (I8). An error is for the whole batch: nothing took effect, except
	// where errors.Is(err, ErrOutcomeUnknown): then it may have. An *InvariantError names the event whose rows
	// contradict each other. At most BatchCommandsMax commands naming at most BatchSeatsMax seats.
	Apply(ctx context.Context, commands []Command) (Batch, error)

	Reader

	// Close ends it; it waits for a running Apply.
	Close() error
}

// A Batch is what Apply did.
type Batch struct {
	Now     Time // the shard's clock by which everything in it was decided
	Results []Result
	Changes []Change // one for each event that was touched, by event id
}

// A Result is the answer to one command. Fault is nil where the command has taken effect, now or (Repeat) before.
type Result struct {
	Fault   *fault.Error
	Repeat  bool       // a repeat: the effect was there before
	Hold    *Hold      // of Hold commands, Extend, Release; of the payment commands too: the hold as it is now
	Order   *Order     // of the payment commands
	Refund  *Refund    // Confirm: this payment must be given back; RecordPayment: the refund that it settled
	Ticket  *Ticket    // Transfer, CheckIn, UndoCheckIn: as it is now
	CheckIn *CheckedIn // CheckIn: this use of the ticket, or the first one where it is refused; UndoCheckIn: the one undone
	Count   int        // Sweep: holds ended; Block and Unblock: seats changed; Advance: people called; ReleaseReturned: places
	More    bool       // Sweep: there is more to do
	Room    *Room      // of the waiting room's commands: as it is now, without Knocks, Reports and the lanes' Open
	Session *Session   // Enter, Leave
	Wish    *Wish      // of the waitlist's commands: as it is now
}

// A Change says how an event's picture differs since Version-1. It is also the row that other nodes read.
type Change struct {
	Event   id.ID
	Version int64 // seats_version after the batch
	At      Time
	Seats   []SeatChange // by index, each once
	Areas   []AreaChange // by area, each once
	Config  bool         // the event's own row changed: read it again
}

// A SeatChange is a seat's new state. Expires is when its hold runs out, 0 where it is not held.
type SeatChange struct {
	Index   int32
	State   Availability
	Expires Time
}

// An AreaChange is how many places of an area are neither held nor sold nor returned. There is one also where only what is
// returned has changed.
type AreaChange struct {
	Area int32
	Free int32
}

// Availability is the state of a seat.
type Availability uint8

// The states of a seat. Only these numbers are stored.
const (
	Available Availability = iota
	Held
	Sold
	Blocked
	Returned
)

// String is the state's word.
func (a Availability) String() string {
	return [...]string{"available", "held", "sold", "blocked", "returned"}[a]
}

// HoldState is the state of a hold.
type HoldState uint8

// The states of a hold. A HoldLive hold whose time is up is as good as HoldExpired (I4).
const (
	HoldLive HoldState = iota + 1
	HoldReleased
	HoldExpired
	HoldSold
)

// String is the state's word.
func (s HoldState) String() string {
	return [...]string{"", "live", "released", "expired", "sold"}[s]
}

// A Line is one place of a hold, with the price that the hold fixed, in minor units. Total is what is to be paid for
// it: Face + Fee, and Tax where the event's prices do not include it.
type Line struct {
	Seat     int32 // -1 for a place in an area
	Epoch    int64 // the number of the claim on the seat; 0 for a place
	Category int16
	Face     int64
	Fee      int64
	Tax      int64
	Total    int64
	Gone     bool // sold, and given back or exchanged since: it counts no more
}

// A Hold is a customer's exclusive, expiring claim.
type Hold struct {
	ID       id.ID
	Event    id.ID
	Customer id.ID
	State    HoldState
	Area     int32  // -1 where it is seats
	Lines    []Line // never changed, but for Gone
	Currency string
	Created  Time
	Expires  Time
	Extended int   // how often the customer extended it
	Window   bool  // whether BeginPayment has used its one extension
	Order    id.ID // the order PENDING or PAID for it, 0 none
	Session  id.ID // of the waiting room, 0 none: where it was made while the room was off, whatever the command said
	Exchange id.ID // the order it exchanges, 0 none
	Offer    id.ID // the waitlist offer it came from, 0 none
	Ended    Time  // when it ended without a sale: Expires, or its release; 0: it has not, or nobody has written it down yet

	// Exchanged are the tickets that it is to take the place of, until the swap: they count in its stead under limits.
	Exchanged []ExchangedPlace
}

// An ExchangedPlace is a ticket that a hold is to take the place of, with what limits it counts under.
type ExchangedPlace struct {
	Ticket   id.ID
	Event    id.ID
	Category int16
}

// Total is the price of the hold in minor units.
func (h *Hold) Total() int64 {
	var sum int64
	for i := range h.Lines {
		sum += h.Lines[i].Total
	}
	return sum
}

// Seats are the seat indexes of the hold, nil for an area's.
func (h *Hold) Seats() []int32 {
	if h.Area >= 0 {
		return nil
	}
	s := make([]int32, len(h.Lines))
	for i := range h.Lines {
		s[i] = h.Lines[i].Seat
	}
	return s
}

// Live says whether the hold is a claim at an instant.
func (h *Hold) Live(now Time) bool { return h.State == HoldLive && h.Expires > now }

// OrderState is the state of an order.
type OrderState uint8

// The states of an order.
const (
	OrderPending OrderState = iota + 1
	OrderPaid
	OrderFailed
	OrderExpired
	OrderRefunded
)

// String is the state's word as the API says it.
func (s OrderState) String() string {
	return [...]string{"", "PENDING", "PAID", "FAILED", "EXPIRED", "REFUNDED"}[s]
}

// An Order is a customer's attempt to buy one hold.
type Order struct {
	ID          id.ID
	Hold        id.ID // the hold that is (to be) sold: after a rescue the new one
	Event       id.ID
	Customer    id.ID
	State       OrderState
	Reason      string // why it is FAILED or EXPIRED
	Amount      int64  // minor units
	Currency    string
	Provider    string
	Payment     string   // the provider's id of the payment that made it PAID
	AllowOther  bool     // the customer takes other seats as good, where the hold was lost while paying
	Rescued     bool     // PAID by a new claim
	AttemptOpen bool     // the provider has not given a final answer
	Documents   []string // keyed hashes by place, "" for none (and for a place that is given back)
	Exchange    id.ID    // the order whose tickets it exchanges, 0 none
	Credit      int64    // what came over from that order, beside Amount
	Funds       []Fund   // where the credit lies, and what is left of it
	Created     Time
	Updated     Time
	Sequence    int64    // of the last notice published about it
	Tickets     []Ticket // of Confirm's answer and Reader.Order
}

// A Fund is money in a payment of an earlier order that counts for this one since an exchange.
type Fund struct {
	Order    id.ID // whose payment it is
	Provider string
	Payment  string
	Left     int64 // not promised to anybody yet
}

// TicketState is the state of a ticket. VALID and USED both count as valid (A4).
type TicketState uint8

// The states of a ticket.
const (
	TicketValid TicketState = iota + 1
	TicketUsed
	TicketVoid
)

// String is the state's word as the API says it.
func (s TicketState) String() string { return [...]string{"", "VALID", "USED", "VOID"}[s] }

// A Ticket is the right of entry for one seat or place.
type Ticket struct {
	ID       id.ID
	Order    id.ID
	Event    id.ID
	Customer id.ID
	State    TicketState
	Seat     int32 // -1 for a place
	Area     int32 // -1 for a seat
	Category int16
	Total    int64 // minor units paid for it
	Place    int32 // the line of its hold
	Was      id.ID // the ticket it was passed on as, 0 none
	Exchange id.ID // the hold that exchanges it, or did: as long as that one is live it cannot be given back or passed on
	Refund   id.ID // the refund that made it VOID, 0 none
	Gone     bool  // VOID, and its place has gone back, or on to another ticket
}

// CheckedIn is one use of a ticket at a door, as a fact.
type CheckedIn struct {
	Ticket   id.ID
	Event    id.ID
	At       Time
	Device   string
	Gate     string
	By       id.ID
	Offline  bool
	Conflict string // "": let in by right; else why not: ConflictUsed, ConflictVoid
	Undone   Time   // 0: not
	UndoneBy id.ID
	Why      string // it was undone
}

// The conflicts of uses that were decided offline.
const (
	ConflictUsed = "ticket_used"
	ConflictVoid = "ticket_void"
)

// PaymentState is what the provider last said of a payment.
type PaymentState uint8

// The states of a payment.
const (
	PaymentAuthorized PaymentState = iota + 1
	PaymentCaptured
	PaymentVoided
	PaymentRefunded       // some or all of what was captured
	PaymentCaptureRefused // finally
)

// String is the state's word.
func (s PaymentState) String() string {
	return [...]string{"", "authorized", "captured", "voided", "refunded", "capture_refused"}[s]
}

// A Payment is what happened to money at the provider, in minor units.
type Payment struct {
	Order      id.ID
	Provider   string
	ID         string
	Currency   string
	State      PaymentState
	Authorized int64
	Captured   int64
	Voided     int64
	Refunded   int64
	Refund     id.ID // the refund that gives it back whole, because it came too late or wrong; 0 none
	Promised   int64 // of Captured: to refunds of tickets, and to the orders that these were exchanged for
}

// RefundState is the state of a refund.
type RefundState uint8

// The states of a refund.
const (
	RefundRequested RefundState = iota + 1
	RefundDone
	RefundSeatReleased
)

// String is the state's word as the API says it.
func (s RefundState) String() string {
	return [...]string{"", "REQUESTED", "REFUNDED", "SEAT_RELEASED"}[s]
}

// The reasons of refunds that the ledger makes by itself.
const (
	ReasonLate            = "late_payment"
	ReasonSecondPayment   = "second_payment"
	ReasonWrongAmount     = "wrong_amount"
	ReasonEventCancelled  = "event_cancelled"
	ReasonCaptureRefused  = "capture_refused"
	ReasonCustomer        = "customer"
	ReasonExchanged       = "exchanged"
	ReasonDifference      = "exchange_difference"
	ReasonNotExchangeable = "not_exchangeable"
)

// A Refund gives money back: for tickets, or (no tickets) a payment that should not have been made.
type Refund struct {
	ID       id.ID
	Order    id.ID   // whose tickets, or whose money
	From     id.ID   // the order whose payment it is: Order, or after an exchange an earlier one
	Tickets  []id.ID // none: the money alone
	Provider string
	Payment  string // "" where there is nothing to give back
	State    RefundState
	Amount   int64
	FeeKept  int64
	Rule     string // by which that is kept: "customer 1000 bp + 200", "organizer", "exchange"
	Currency string
	Reason   string
	By       id.ID  // the customer or organizer's user who asked for it, 0: the program
	Refused  string // the provider's final no to the last try
	Try      int
	Created  Time
}

// Key is the refund's idempotency key at the provider.
func (r *Refund) Key() string {
	if r.Try == 0 {
		return r.ID.Text(id.Refund)
	}
	return r.ID.Text(id.Refund) + "-" + strconv.Itoa(r.Try)
}

// A Notice is a row of the outbox: one committed change of an order, ticket or refund, published at least once, in order
// of Sequence for each order (I12). One about an event (its kind begins with "event.") has the event's number as Order, one
// about a wish ("waitlist.") the wish's.
type Notice struct {
	Order    id.ID
	Sequence int64
	Kind     string // "booking.paid", …
	Alert    bool   // somebody should look
	Body     []byte // JSON; ids only (E10)
	At       Time
}

// The kinds of notices.
const (
	NoticePending        = "booking.pending"
	NoticePaid           = "booking.paid"
	NoticeFailed         = "booking.failed"
	NoticeExpired        = "booking.expired"
	NoticeRefunded       = "booking.refunded"
	NoticeCaptureDue     = "payment.capture_due"
	NoticeGiveBack       = "payment.give_back"
	NoticePayment        = "payment.recorded"
	NoticeCaptureRefused = "payment.capture_refused"

	NoticeRefundRequested = "refund.requested" // body: refund_id; tickets are VOID
	NoticeRefundDone      = "refund.done"      // the money is back
	NoticeRefundRefused   = "refund.refused"   // finally, by the provider: an alert
	NoticeSeatsReleased   = "refund.seat_released"
	NoticeExchanged       = "booking.exchanged"  // of the old order; body: exchange (the new order), refund_id
	NoticeTransferred     = "ticket.transferred" // body: ticket_id (the new one), was, to
	NoticeCheckedIn       = "ticket.used"        // body: ticket_id
	NoticeCheckInConflict = "ticket.used_twice"  // an alert; body: ticket_id
	NoticeCheckInUndone   = "ticket.use_undone"  // body: ticket_id
	NoticeEvent           = "event.changed"      // state, window, rules, prices or returns; body: event_id, state, version

	NoticeWishAdded   = "waitlist.added"   // also: changed by its customer. Bodies: wish_id, event_id, customer_id, state
	NoticeWishOffered = "waitlist.offered" // body: hold_id too
	NoticeWishLapsed  = "waitlist.lapsed"  // the offer was not taken; the wish waits again
	NoticeWishEnded   = "waitlist.ended"   // taken, ended or withdrawn, as state says

	WishNotices = "waitlist." // with what all of these begin
)
