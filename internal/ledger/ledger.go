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
	"slices"
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
	Count   int        // Sweep: holds ended; Block and Unblock: seats changed
	More    bool       // Sweep: there is more to do
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

// An AreaChange is how many places of an area are neither held nor sold.
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

// EventState is the state of an event in its shard.
type EventState uint8

// The states of an event. In OnSale the window decides whether it sells now.
const (
	Draft EventState = iota
	OnSale
	Paused    // no new holds; live ones may pay
	Ended     // the same, for good
	Cancelled // nothing new, all orders refund
	Stopped   // an invariant is broken: nothing is sold until somebody has looked
)

// String is the state's word.
func (s EventState) String() string {
	return [...]string{"draft", "on_sale", "paused", "ended", "cancelled", "stopped"}[s]
}

// ReturnsMode says what becomes of a seat that is freed.
type ReturnsMode uint8

// The modes of returns.
const (
	ReturnsAvailable ReturnsMode = iota // anybody may take it
	ReturnsWaitlist                     // it becomes Returned and is promised to the waitlist
)

// An Event is the shard's own copy of what decides a sale, changed by SetEvent alone.
type Event struct {
	ID        id.ID
	Organizer id.ID
	Show      id.ID
	Version   int64 // config_version: a SetEvent with a smaller one is refused
	State     EventState
	PlanHash  string

	SaleOpens  Time // first instant at which a hold may be made
	SaleCloses Time // first instant at which it may not any more

	HoldTTL         Duration // how long a hold lasts
	PaymentWindow   Duration // BeginPayment lets the hold live at least this long, once
	ExtendMax       int      // extensions a customer may ask for
	SeatsPerHoldMax int

	Currency    string // ISO 4217
	TaxIncluded bool   // whether a tier's face and fee have the tax inside
	Tiers       []Tier
	Limits      []Limit
	Quotas      []Quota
	Returns     ReturnsMode
	Refunds     RefundRule
	Exchanges   ExchangeRule
	Transfers   TransferRule
	Documents   bool  // each place needs an attendee's identity document
	Sequence    int64 // of the last notice published about it; the ledger's own, whatever a SetEvent says

	// LimitsAt is when Limits or Quotas changed last. The ledger sets it, whatever a SetEvent says: claims made before may
	// be more than is allowed now, those made since may not.
	LimitsAt Time
}

// A RefundRule says what customers may give back by themselves, and what is then kept. The zero value: nothing.
type RefundRule struct {
	Until    Time  // first instant at which they may not any more; 0: never
	FeeBP    int64 // kept of a ticket's total, in basis points
	FeePlace int64 // kept for each ticket, minor units
}

// Kept is what is kept of one ticket, at most what it cost.
func (r RefundRule) Kept(total int64) int64 {
	return min(total, r.FeePlace+roundedShare(total, r.FeeBP, 10_000))
}

// An ExchangeRule says whether customers may exchange tickets for others of the event or its show. The zero value: no.
type ExchangeRule struct {
	Until Time  // first instant at which they may not any more; 0: never
	Fee   int64 // kept for each ticket given up, minor units, at most what it cost
}

// A TransferRule says whether customers may pass tickets on. The zero value: no.
type TransferRule struct {
	Until Time // first instant at which they may not any more; 0: never
}

// A Tier is the price of one category. A category without a tier is not sold.
type Tier struct {
	Category int16
	Name     string
	Face     int64 // minor units
	Fee      int64 // minor units
	TaxBP    int64 // basis points: 700 is 7 %
}

// LimitScope says over what a limit counts.
type LimitScope uint8

// The scopes of limits.
const (
	PerEvent    LimitScope = iota + 1 // a customer's places in this event
	PerCategory                       // a customer's places in one category of this event
	PerShow                           // a customer's places in all events of the show
	PerDocument                       // places in this event for one identity document
)

// A Limit bounds how many places a customer (or document) may hold and have bought together.
type Limit struct {
	Scope    LimitScope
	Category int16 // for PerCategory
	Max      int
}

// A Quota bounds how much of one category and section is on sale: Max at first, changed by Steps at their times.
// Category and Section may be -1: any.
type Quota struct {
	Category int16
	Section  int16
	Max      int
	Steps    []QuotaStep // ascending by At
}

// A QuotaStep sets a quota's maximum from an instant on.
type QuotaStep struct {
	At  Time
	Max int
}

// MaxAt is the quota in force at an instant.
func (q Quota) MaxAt(now Time) int {
	m := q.Max
	for _, s := range q.Steps {
		if s.At <= now {
			m = s.Max
		}
	}
	return m
}

// Covers says whether a place of this category and section counts under the quota.
func (q Quota) Covers(category, section int16) bool {
	return (q.Category < 0 || q.Category == category) && (q.Section < 0 || q.Section == section)
}

// SameLimits says whether two rows of an event bound claims alike.
func (e *Event) SameLimits(o *Event) bool {
	return slices.Equal(e.Limits, o.Limits) && slices.EqualFunc(e.Quotas, o.Quotas, func(a, b Quota) bool {
		return a.Category == b.Category && a.Section == b.Section && a.Max == b.Max && slices.Equal(a.Steps, b.Steps)
	})
}

// Tier finds the price of a category.
func (e *Event) Tier(category int16) (Tier, bool) {
	for _, t := range e.Tiers {
		if t.Category == category {
			return t, true
		}
	}
	return Tier{}, false
}

// Price is the line of a place of a category as its tier costs it (A15): the tax inside Face and Fee, or added to them,
// rounded half up. The category must have a tier.
func (e *Event) Price(category int16) Line {
	t, _ := e.Tier(category)
	l := Line{Category: category, Face: t.Face, Fee: t.Fee, Total: t.Face + t.Fee}
	if e.TaxIncluded {
		l.Tax = roundedShare(l.Total, t.TaxBP, 10_000+t.TaxBP)
	} else {
		l.Tax = roundedShare(l.Total, t.TaxBP, 10_000)
		l.Total += l.Tax
	}
	return l
}

// roundedShare is amount × part ÷ whole, rounded half up.
func roundedShare(amount, part, whole int64) int64 { return (2*amount*part + whole) / (2 * whole) }

// Selling is the fault with which a new hold is refused at an instant, nil where it is not.
func (e *Event) Selling(now Time) *fault.Error {
	switch {
	case e.State == Paused:
		return fault.New(fault.Paused, "the sale is paused")
	case e.State != OnSale:
		return fault.New(fault.NotOnSale, "the event is %s", e.State)
	case now < e.SaleOpens:
		return fault.New(fault.NotOnSale, "the sale opens at %s", e.SaleOpens.Std().Format(time.RFC3339))
	case now >= e.SaleCloses:
		return fault.New(fault.NotOnSale, "the sale ended at %s", e.SaleCloses.Std().Format(time.RFC3339))
	}
	return nil
}

// Paying is the fault with which a payment for a live hold (or its rescue) is refused, nil where it is not.
func (e *Event) Paying() *fault.Error {
	switch e.State {
	case OnSale, Paused, Ended:
		return nil
	}
	return fault.New(fault.NotOnSale, "the event is %s", e.State)
}

// A Layout is what the ledger must know of a seating plan: of seat i its section, category, run and quality, and the
// areas. Two seats are neighbours when their indexes differ by 1 and their runs are equal. Quality: lower is better.
type Layout struct {
	PlanHash string
	Section  []int16
	Category []int16
	Run      []int32
	Quality  []int32
	Areas    []AreaLayout
}

// An AreaLayout is one area of a Layout; its number is its place in Areas.
type AreaLayout struct {
	Section  int16
	Category int16
	Capacity int
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
	Session  id.ID // of the waiting room, 0 none
	Exchange id.ID // the order it exchanges, 0 none
	Offer    id.ID // the waitlist offer it came from, 0 none

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
// of Sequence for each order (I12). One about an event (its kind begins with "event.") has the event's number as Order.
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
	NoticeEvent           = "event.changed"      // state, window, rules or prices; body: event_id, state, version
)
