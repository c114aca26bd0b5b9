package ledger

import "onsale/internal/id"

// A Command is one change that is asked of a ledger. The types of this file are all there are. All ids travel in the
// commands, so that a batch can be run again. What is said of faults is in the order in which they are looked for.
type Command interface {
	// EventHint is the event where the command names one, else 0.
	EventHint() id.ID
	// SeatCount is how many seats the command names, for the bound on a batch.
	SeatCount() int
}

// A Key makes a command idempotent (A12): the first effect of (customer, operation, Value) is remembered, and a repeat
// is answered with the thing's present state. Refusals are not remembered. Fields are keyed hashes of the request's
// fields, by name, so that a repeat with other content can be told which field differs.
type Key struct {
	Value  string // "" for none
	Fields []KeyField
}

// A KeyField is the keyed hash of one field of a request.
type KeyField struct {
	Name string
	Hash string
}

// SetEvent makes or changes the shard's row of an event. A Layout makes the seats: it must be there the first time, and
// must name the same plan later (it is then ignored).
//
// An event that is Stopped stays so, whatever state the row has, until a command says that somebody has Looked; that one
// takes effect with the same version too.
//
// Faults: conflict (a smaller version, or another plan); invalid. The same version again is a repeat and changes nothing.
type SetEvent struct {
	Event  Event
	Layout *Layout
	Looked bool
}

// HoldSeats claims seats for a customer, all or none (I3). Each must be available, or held by a hold whose time is up
// (which then ends, wholly), or returned for longer than ReturnedPatience. While the event's Returns are for the waitlist,
// seats freed on the way are returned, not available. It fixes the prices, by line.
//
// Faults: key_reused; event_unknown; paused, not_on_sale; not_admitted, admission_expired (see below); invalid (no seat, too
// many, one twice, one without price); seat_unknown; seats_taken (with those that are); hold_rest with RetryAfter
// (Event.Holding; with the Seats that the customer lost too recently, if it is for them); places_taken (a quota);
// limit_reached. Before a quota or limit refuses, expired holds that count under it end (A9).
//
// While the event's waiting room is not off, Session must be a live session of this customer in this event (I11): not_admitted
// where it is not, admission_expired where it was. The session lasts at least as long as the hold, also when that is extended or
// being paid; a Confirm that makes the order PAID ends it, unless the limits by event and show leave the customer places. An
// exchange needs one too.
//
// With an Exchange it is to take the place of tickets of that order (A22): they are marked as being exchanged by this hold
// for as long as it is live, and under a limit only max(0, new − exchanged) places count (A10). After event_unknown and
// before the rest is looked at: invalid (one twice, too many); booking_unknown; ticket_unknown and invalid (of another
// order), in the order given; wrong_customer (of the order or of a ticket that was passed on); not_exchangeable (the order's
// event does not allow it now; the new event is of another show or currency; exchanged too often: RefundPartsMax); conflict
// (the order is not PAID; no ticket is left; one is not VALID, or is being exchanged by another live hold);
// payment_in_progress (the order's money is not captured yet); conflict (less was captured than the tickets cost).
type HoldSeats struct {
	ID       id.ID
	Event    id.ID
	Customer id.ID
	Key      Key
	Seats    []int32
	Session  id.ID
	Exchange Exchange
}

// An Exchange names the tickets, all of one order, that a hold is to take the place of. The zero value is none.
type Exchange struct {
	Order   id.ID
	Tickets []id.ID // none: all VALID ones of the order that are its customer's
}

// HoldPlaces claims a quantity of places in an area, all or none.
//
// Returned places are not among those that it may take, unless nobody has offered or released any of the area's for
// ReturnedPatience.
//
// Faults: as HoldSeats, with places_taken instead of seats_taken, after the area's expired holds have ended.
type HoldPlaces struct {
	ID       id.ID
	Event    id.ID
	Customer id.ID
	Key      Key
	Area     int32
	Quantity int
	Session  id.ID
	Exchange Exchange
}

// Extend lets a live hold last for the event's HoldTTL from now, at most 2 × HoldTTL in all (A14).
//
// Faults: hold_unknown; wrong_customer; hold_expired (also where it was released or sold); payment_in_progress;
// hold_not_extendable (also an offer).
type Extend struct {
	Hold     id.ID
	Customer id.ID
}

// Release ends a hold. One that was released or has expired is answered as it is (a repeat).
//
// Faults: hold_unknown; wrong_customer; conflict (sold); payment_in_progress.
type Release struct {
	Hold     id.ID
	Customer id.ID
}

// BeginPayment makes an order PENDING for a live hold, and lets the hold live for the payment window at least, once
// (A14). The order's amount is the hold's total; AttemptOpen where it is not 0. Documents are the keyed hashes of the
// attendees' identity documents, by place of the hold, "" for none: each counts as one place under a PerDocument limit.
//
// For a hold that exchanges (A22) the order's amount is the difference due: the hold's total, less what the old tickets
// cost, plus the fee of the old event's rule (at most what they cost); 0 where nothing is due. A document that an exchanged
// ticket has counts as freed.
//
// Faults: key_reused; hold_unknown; wrong_customer; payment_in_progress (with the order PENDING or PAID); hold_expired;
// not_on_sale (cancelled, stopped, draft); not_exchangeable and conflict as HoldSeats says; limit_reached (a document);
// invalid (more documents than places; fewer where the event wants one for each).
type BeginPayment struct {
	Order      id.ID
	Hold       id.ID
	Customer   id.ID
	Key        Key
	Provider   string
	AllowOther bool
	Documents  []string
}

// Confirm says that a provider has authorized or captured a payment for an order (A16). Of a payment that is known already
// the amount and currency written down count, not those said here.
//
//   - PAID or REFUNDED by the same payment: a repeat.
//   - The payment was given back before: a repeat, with that Refund. One that was recorded as voided or refused buys
//     nothing and has nothing to give back: a repeat without a Refund, and the order stays as it is.
//   - PENDING, amount and currency equal, event not cancelled or stopped, and the hold live and still owner of all its
//     seats: seats sold, tickets made, PAID. Where only the hold is lost, a rescue (A17): a new claim, RescueHold, on the
//     same seats (all free, limits allowing), else, if the order AllowOther, on as good ones (see below); PAID.
//   - Anything else: the payment alone is to be given back: Result.Refund, REQUESTED, with an alert. The order, if
//     PENDING, ends: EXPIRED where the hold is lost (ReasonLate), FAILED otherwise (ReasonWrongAmount,
//     ReasonEventCancelled). Of an order PAID by another payment the reason is ReasonSecondPayment, of one FAILED or
//     EXPIRED ReasonLate.
//
// As good ones: only for seats of one category. Among the CandidatesMax best available seats (by quality, then index) of
// that category that are no worse than the worst one lost: where the lost seats were neighbours, the run of neighbours
// whose qualities, sorted, are each no worse than the lost ones' and whose sum is least (then the smallest index); where
// they were not, the best ones under the same comparison.
//
// An order of amount 0 is confirmed with an empty payment. Tickets are ids for as many tickets as the hold has lines.
//
// Of an exchange it is the swap, in this same step: the old tickets are VOID by a refund of amount 0 (Exchange[0],
// ReasonExchanged, SEAT_RELEASED, with the fee kept), their seats and limits go back at once, what they cost and is neither
// kept nor given back moves to this order (Order.Credit, Order.Funds), and what is too much is given back by refunds
// (Exchange[1:], ReasonDifference). Old tickets that are not VALID and this hold's any more: the payment is given back
// (ReasonNotExchangeable). An exchange is never rescued: its old tickets stay, its payment goes back. What was to be paid on
// top was fixed by BeginPayment, and with it what is kept; where nothing was, the rule of this moment says what is kept.
//
// Faults: booking_unknown; invalid (no payment for an amount above 0; too few ids; an exchange's payment that is not
// captured).
type Confirm struct {
	Order      id.ID
	Payment    string
	Amount     int64
	Currency   string
	Captured   bool // else authorized: capture is due after this
	Tickets    []id.ID
	Refund     id.ID   // the id of the refund, should one be needed
	RescueHold id.ID   // the id of the new claim, should one be needed
	Exchange   []id.ID // of an exchange: RefundPartsMax + 1 ids
}

// FailPayment ends a PENDING order after the provider's final answer: FAILED where it declined, EXPIRED where the attempt
// was cancelled there. The hold goes on, and another order may be made for it. An order that has ended already is
// answered as it is.
//
// Faults: booking_unknown; conflict (PAID or REFUNDED).
type FailPayment struct {
	Order     id.ID
	Cancelled bool
	Reason    string // the provider's word
}

// RecordPayment writes what happened to money: Authorized → Captured | Voided | CaptureRefused, Captured → Refunded
// (once for each Refund). A state that was recorded before is a repeat. A void is of the whole, whatever Amount says,
// and settles the refund that gives the payment back; of the payment that made its order PAID it is a conflict: tell it
// as CaptureRefused. A payment that is not known yet is made by PaymentAuthorized or PaymentCaptured. CaptureRefused of
// the payment that made an order PAID (of an amount above 0) voids its tickets, frees its seats and ends it REFUNDED by
// a refund of amount 0, with an alert (A18).
//
// Faults: booking_unknown; conflict (does not follow from the last state; more than is left); invalid.
type RecordPayment struct {
	Order   id.ID
	Payment string
	State   PaymentState
	Amount  int64
	Refund  id.ID // PaymentRefunded and PaymentVoided: the refund that it settles, 0 none; CaptureRefused: its new id
}

// By says on whose word money goes back.
type By uint8

// Who may ask for a refund.
const (
	ByCustomer  By = iota + 1 // within the event's RefundRule, which says what is kept; only tickets that are still theirs
	ByOrganizer               // at any time; keeps Fee; USED tickets only with Used and a reason (A4)
	ByEvent                   // the event is cancelled: everything goes back, USED or not
)

// BeginRefund gives back tickets of a PAID order (A21): they are VOID in this step, and the money is due. The money comes
// from the order's own payment and, after an exchange, from those its Funds name: a refund row for each that is needed, in
// that order, the first with the tickets. What is kept: by the rule (ByCustomer), Fee (ByOrganizer), nothing (ByEvent).
// Refunds of amount 0 are REFUNDED at once. The seats stay sold until ReleaseSeats.
//
// Result: Refund (the first), Order. Faults: key_reused; booking_unknown; wrong_customer; ticket_unknown; invalid (a
// ticket twice, too few ids, a fee above what the tickets cost, no reason for USED ones); not_refundable (the rule does not
// allow it, or not any more; a ticket that was passed on; ByEvent of an event that is not cancelled); conflict (the order is
// not PAID; no ticket is left; a ticket VOID, or USED without the right to it, or being exchanged); payment_in_progress (the
// money is not captured yet); conflict (less was captured than this needs).
//
// The order is REFUNDED when no ticket of it is valid and the money of all its refunds is back.
type BeginRefund struct {
	IDs      []id.ID // RefundPartsMax
	Order    id.ID
	Customer id.ID // who asks: the order's own ByCustomer, else for the key only
	By       By
	Key      Key
	Tickets  []id.ID // none: all that are valid (ByCustomer: VALID and still theirs)
	Reason   string  // "" by the customer
	Fee      int64   // ByOrganizer: kept of all together
	Used     bool
}

// RefuseRefund writes down that the provider finally refused a refund (A21): it stays REQUESTED, with an alert, and is not
// tried again until RetryRefund. Try is the one that was refused: a smaller one is a repeat.
//
// Faults: refund_unknown; conflict (not REQUESTED, or a try that was not made yet).
type RefuseRefund struct {
	Refund id.ID
	Try    int
	Reason string // the provider's word
}

// RetryRefund lets a refused refund be tried again, under a new key at the provider (Refund.Key). Try is the new one.
//
// Faults: refund_unknown; conflict (not refused, or Try is not the next).
type RetryRefund struct {
	Refund id.ID
	Try    int
}

// ReleaseSeats gives the seats of a refund's tickets back to the sale (or to the waitlist, or blocked where they are marked
// so), and with them what counts under limits, quotas and documents: REFUNDED → SEAT_RELEASED. One that is SEAT_RELEASED is
// a repeat. A refund without tickets has nothing to release and stays REFUNDED: a repeat.
//
// Faults: refund_unknown; conflict (REQUESTED).
type ReleaseSeats struct {
	Refund id.ID
}

// Transfer passes a ticket on to another customer: the old one is VOID, a new one (ID) of the same order and place is
// VALID. The places that somebody received count under their limits too; the buyer has still bought them. Document is the
// keyed hash of the new attendee's, in place of the old one's.
//
// Result: Ticket (the new one). Faults: key_reused; ticket_unknown; wrong_customer; invalid (to oneself; a document is
// wanted); not_transferable (the event does not allow it, or not any more; cancelled); conflict (not VALID, being
// exchanged); limit_reached.
type Transfer struct {
	ID       id.ID
	Ticket   id.ID
	Customer id.ID
	To       id.ID
	Document string
	Key      Key
}

// CheckIn lets the holder of a ticket in, once (E6): VALID → USED. A second use is refused by ticket_used, with the first
// (Result.CheckIn). What a device decided Offline is a fact: it is always written down, under (ticket, device, At), and
// where the ticket was used before or is VOID it is a conflict that somebody should look at; repeated it is a repeat.
//
// Faults: ticket_unknown; wrong_event; ticket_used; ticket_void; invalid (an offline one without device, or of longer ago than
// CheckInPastMax or further ahead than CheckInAheadMax).
// One more conflict than ConflictsMax of a ticket is refused: conflict.
type CheckIn struct {
	Ticket  id.ID
	Event   id.ID
	Gate    string
	Device  string
	By      id.ID // the customer who works at the door
	Offline bool
	At      Time // offline: when it was, by the device's clock
}

// UndoCheckIn makes a USED ticket VALID again; the check-in stays written down, as undone. A VALID one is a repeat.
//
// Faults: ticket_unknown; wrong_event; conflict (VOID).
type UndoCheckIn struct {
	Ticket id.ID
	Event  id.ID
	By     id.ID
	Reason string
}

// Sweep ends expired holds, at most Max (0: ExpireBoundMax), of one event or (0) of all; an order without open attempt
// whose hold ends becomes EXPIRED. It also merges an area's buckets where few places are left, and deletes what is kept
// long enough (KeepAnswers, KeepChanges).
type Sweep struct {
	Event id.ID
	Max   int
}

// Block keeps seats back: those available (or held past their expiry) become blocked. Others are marked to be blocked
// when they are freed, with WhenFree, else the command is refused. Blocked ones stay.
//
// Faults: event_unknown; invalid; seat_unknown; seats_taken.
type Block struct {
	Event    id.ID
	Seats    []int32
	WhenFree bool
}

// Unblock gives blocked seats back to the sale and takes marks away. Others stay as they are.
//
// Faults: event_unknown; invalid; seat_unknown.
type Unblock struct {
	Event id.ID
	Seats []int32
}

// Stop ends all selling of an event in which an invariant was found broken (A6).
//
// Faults: event_unknown.
type Stop struct {
	Event id.ID
}

// The operations that an idempotency key may be for.
const (
	OpHold     = "hold"
	OpBooking  = "booking"
	OpRefund   = "refund"
	OpTransfer = "transfer"
	OpWish     = "wish"
)

func (c SetEvent) EventHint() id.ID      { return c.Event.ID }
func (c HoldSeats) EventHint() id.ID     { return c.Event }
func (c HoldPlaces) EventHint() id.ID    { return c.Event }
func (c Extend) EventHint() id.ID        { return 0 }
func (c Release) EventHint() id.ID       { return 0 }
func (c BeginPayment) EventHint() id.ID  { return 0 }
func (c Confirm) EventHint() id.ID       { return 0 }
func (c FailPayment) EventHint() id.ID   { return 0 }
func (c RecordPayment) EventHint() id.ID { return 0 }
func (c BeginRefund) EventHint() id.ID   { return 0 }
func (c RefuseRefund) EventHint() id.ID  { return 0 }
func (c RetryRefund) EventHint() id.ID   { return 0 }
func (c ReleaseSeats) EventHint() id.ID  { return 0 }
func (c Transfer) EventHint() id.ID      { return 0 }
func (c CheckIn) EventHint() id.ID       { return c.Event }
func (c UndoCheckIn) EventHint() id.ID   { return c.Event }
func (c Sweep) EventHint() id.ID         { return c.Event }
func (c Block) EventHint() id.ID         { return c.Event }
func (c Unblock) EventHint() id.ID       { return c.Event }
func (c Stop) EventHint() id.ID          { return c.Event }

func (c SetEvent) SeatCount() int      { return 0 }
func (c HoldSeats) SeatCount() int     { return len(c.Seats) }
func (c HoldPlaces) SeatCount() int    { return c.Quantity }
func (c Extend) SeatCount() int        { return 0 }
func (c Release) SeatCount() int       { return 1 }
func (c BeginPayment) SeatCount() int  { return 0 }
func (c Confirm) SeatCount() int       { return len(c.Tickets) }
func (c FailPayment) SeatCount() int   { return 0 }
func (c RecordPayment) SeatCount() int { return 1 }
func (c BeginRefund) SeatCount() int   { return max(1, len(c.Tickets)) }
func (c RefuseRefund) SeatCount() int  { return 0 }
func (c RetryRefund) SeatCount() int   { return 0 }
func (c ReleaseSeats) SeatCount() int  { return 1 }
func (c Transfer) SeatCount() int      { return 1 }
func (c CheckIn) SeatCount() int       { return 1 }
func (c UndoCheckIn) SeatCount() int   { return 1 }
func (c Sweep) SeatCount() int         { return 0 }
func (c Block) SeatCount() int         { return len(c.Seats) }
func (c Unblock) SeatCount() int       { return len(c.Seats) }
func (c Stop) SeatCount() int          { return 0 }
