// Package decide makes the decisions of the ledger's commands over rows in memory. The databases' adapters share it:
// they lock and load rows, let a Work run the batch one command after the other, and write the rows that changed, set by
// set, in the same transaction.
//
// The one idea: a command is decided on rows that nobody else can change, so the batch gets exactly the answers of its
// commands run one by one (A1), whatever conflicts it is full of, and the number of statements does not grow with it.
// A command first looks at everything that could refuse it and only then changes rows; what ends on the way (holds whose
// time is up) ends wholly.
//
// A Source that has to lock rows before it may read them (PostgreSQL) answers ErrMissing for a row that it was not asked
// for in time; the adapter then starts the transaction again with that row locked too. Start reading at Work.Run.
package decide

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// ErrMissing is answered by a Source that does not have a row locked. The Work goes on to find what else is missing, and
// is then thrown away.
var ErrMissing = errors.New("the row is not locked")

// A SeatKey names a seat's row.
type SeatKey struct {
	Event id.ID
	Index int32
}

// An AreaKey names an area, with all its buckets.
type AreaKey struct {
	Event id.ID
	Area  int32
}

// A LimitKey names a counter of limits. Subject is a customer (CustomerSubject) or a document's keyed hash.
type LimitKey struct {
	Scope    ledger.LimitScope
	Of       id.ID // event or show
	Category int16 // for PerCategory, else -1
	Subject  string
}

// A QuotaKey names a quota's counter.
type QuotaKey struct {
	Event             id.ID
	Category, Section int16
}

// An IdemKey names an idempotency key's row.
type IdemKey struct {
	Customer  id.ID
	Operation string
	Value     string
}

// A WishKey names whose wish it is for what.
type WishKey struct{ Event, Customer id.ID }

// A PaymentKey names a payment's row.
type PaymentKey struct {
	Order    id.ID
	Provider string
	Payment  string
}

// An ExpiredKey asks for holds whose time is up: of a customer, of an area, of an event, or (all zero) of the shard.
type ExpiredKey struct {
	Customer id.ID
	Event    id.ID
	Area     int32 // -1: not by area
	Max      int
}

// A Source gives the rows that a Work asks for, each once. A row that does not exist is nil without error, for a seat
// ledger.ErrNotFound cannot happen: the Work asks only for seats of the layout.
type Source interface {
	Event(id.ID) (*ledger.Event, error)
	Layout(planHash string) (*ledger.Layout, error)
	Seat(SeatKey) (*Seat, error)
	Buckets(AreaKey) ([]*Bucket, error)
	Hold(id.ID) (*Hold, error)
	Order(id.ID) (*Order, error)
	Payment(PaymentKey) (*Payment, error)
	Refund(id.ID) (*Refund, error)
	// RefundsOf are all refunds of an order's tickets and money.
	RefundsOf(order id.ID) ([]*Refund, error)
	Tickets(order id.ID) ([]*Ticket, error)
	// TicketOrder is the order of a ticket, which never changes: 0 where there is no such ticket.
	TicketOrder(ticket id.ID) (id.ID, error)
	// CheckIns are the uses of a ticket, by time.
	CheckIns(ticket id.ID) ([]*CheckIn, error)
	Key(IdemKey) (*Key, error)
	Limit(LimitKey) (int, error)
	Quota(QuotaKey) (int, error)
	Wish(id.ID) (*Wish, error)
	// WishOf is a customer's newest wish for an event.
	WishOf(WishKey) (*Wish, error)

	// Expired are the live holds with Expires <= now, by (Expires, ID).
	Expired(key ExpiredKey, now ledger.Time) ([]id.ID, error)
	// Free are the indexes of the seats of an event that are available or returned, for a rescue.
	Free(event id.ID) ([]int32, error)
	// Claims are the holds live (whatever their time) or sold of an event, for counting under a new limit or quota.
	Claims(event id.ID) ([]id.ID, error)
	// Documents are the documents of an event's orders that count: of those PENDING or PAID, and of those REFUNDED whose
	// hold is still sold.
	Documents(event id.ID) ([]OrderDocuments, error)
	// Received are the places of an event that somebody else than the buyer has, for counting under a new limit: tickets
	// passed on and not Gone.
	Received(event id.ID) ([]*Ticket, error)

	RoomSource
}

// Row is how a row stands to the database.
type Row struct {
	New   bool // to be inserted
	Dirty bool // to be written
}

// A Seat is the mutable part of a seat. The Was fields are as loaded: the fence of its write (A8).
type Seat struct {
	Row
	SeatKey
	State      ledger.Availability
	Claim      id.ID
	Epoch      int64
	WhenFree   bool
	ReturnedAt ledger.Time

	WasState ledger.Availability
	WasClaim id.ID
	WasEpoch int64
}

// A Bucket is a part of an area's places.
type Bucket struct {
	Row
	AreaKey
	Number   int16
	Capacity int32
	Held     int32
	Sold     int32
	Returned int32 // promised to the waitlist (A23)

	// ReturnedAt is when one was returned while the area had none, or offered or released, last; it stays when none is left.
	// The latest of an area's buckets counts for all of them.
	ReturnedAt ledger.Time
}

// Free is how many places are neither held nor sold nor returned.
func (b *Bucket) Free() int32 { return b.Capacity - b.Held - b.Sold - b.Returned }

// A Draw is what a hold took from a bucket.
type Draw struct {
	Bucket int16
	Count  int32
}

// A Hold is a hold's row.
type Hold struct {
	Row
	ledger.Hold
	Draws  []Draw
	Remade bool // its lines, draws or exchanged places changed: with few holds they do

	// As loaded, for an adapter that leaves an index alone where nothing in it changed.
	WasState   ledger.HoldState
	WasExpires ledger.Time
}

// An Order is an order's row.
type Order struct {
	Row
	ledger.Order
	Remade bool // its documents, credit or funds changed: with few orders they do
}

// OrderDocuments are the documents of one order.
type OrderDocuments struct {
	Order     id.ID
	Documents []string
}

// A Payment is a payment's row.
type Payment struct {
	Row
	ledger.Payment
}

// A Refund is a refund's row.
type Refund struct {
	Row
	ledger.Refund
}

// A Ticket is a ticket's row.
type Ticket struct {
	Row
	ledger.Ticket
}

// A CheckIn is the row of a ticket's use.
type CheckIn struct {
	Row
	ledger.CheckedIn
}

// A Wish is a wish's row.
type Wish struct {
	Row
	ledger.Wish
}

// A Key is an idempotency key's row.
type Key struct {
	IdemKey
	Subject id.ID // the hold or order that was its effect
	Fields  []ledger.KeyField
	Created ledger.Time
}

// A Transition is a row of the history: what became of a claim.
type Transition struct {
	Event id.ID
	Claim id.ID // the hold, 0 for an organizer's block
	From  string
	To    string
	Why   string
	Seats []int32 // nil for places
	Epoch []int64 // of each seat
	Count int     // places of an area
	At    ledger.Time
}

// A Work is one batch being decided. It is not for concurrent use.
type Work struct {
	Now ledger.Time
	src Source

	events  map[id.ID]*eventRow
	layouts map[string]*ledger.Layout
	seats   map[SeatKey]*Seat
	buckets map[AreaKey][]*Bucket
	holds   map[id.ID]*Hold
	orders  map[id.ID]*Order
	pays    map[PaymentKey]*Payment
	refunds map[id.ID]*Refund
	tickets map[id.ID][]*Ticket  // by order
	uses    map[id.ID][]*CheckIn // by ticket
	keys    map[IdemKey]*Key
	limits  map[LimitKey]*counter
	quotas  map[QuotaKey]*counter
	wishes  map[id.ID]*Wish
	wishOf  map[WishKey]*Wish // the newest

	rooms    map[id.ID]*Room
	sessions map[id.ID]*Session
	numbers  map[ledger.SessionNumber]*Session // of those that entered in this batch
	codes    map[CodeKey]*codeUses

	touched map[id.ID]*touch
	missing bool
	broken  *ledger.InvariantError

	Out    Output
	Missed []int // where Run answers ErrMissing: the commands that met it
}

// Output is what changed, each row once, in the order in which it first changed.
type Output struct {
	Events  []*EventWrite
	Seats   []*Seat
	Buckets []*Bucket
	Holds   []*Hold
	Orders  []*Order
	Pays    []*Payment
	Refunds []*Refund
	Tickets []*Ticket
	Uses    []*CheckIn
	Keys    []*Key
	Limits  []*Counter[LimitKey]
	Quotas  []*Counter[QuotaKey]
	Wishes  []*Wish

	Rooms    []*Room
	Sessions []*Session
	Calls    []Call
	Forces   []ledger.RoomForce
	Codes    []CodeUse

	History []Transition
	Notices []ledger.Notice
	Changes []ledger.Change // without Version: the adapter raises it last
	Prune   bool            // delete what has been kept long enough
}

// An EventWrite is an event's row to be written; Layout is there when its seats are to be made.
type EventWrite struct {
	New    bool
	Event  *ledger.Event
	Layout *ledger.Layout
}

// A Counter is a counter to be written.
type Counter[K comparable] struct {
	Key   K
	Count int
}

type counter struct {
	count int
	write *int // the output's, once it changed
}

type eventRow struct {
	*ledger.Event
	write *EventWrite
}

type touch struct {
	seats  map[int32]struct{}
	expiry map[int32]ledger.Time // seats whose hold's expiry moved, without a change of the seat
	areas  map[int32]struct{}
	config bool
}

// New starts a batch on a source, at the shard's clock.
func New(src Source, now ledger.Time) *Work {
	return &Work{
		Now: now, src: src,
		events: map[id.ID]*eventRow{}, layouts: map[string]*ledger.Layout{}, seats: map[SeatKey]*Seat{},
		buckets: map[AreaKey][]*Bucket{}, holds: map[id.ID]*Hold{}, orders: map[id.ID]*Order{},
		pays: map[PaymentKey]*Payment{}, refunds: map[id.ID]*Refund{}, tickets: map[id.ID][]*Ticket{},
		uses: map[id.ID][]*CheckIn{}, keys: map[IdemKey]*Key{}, limits: map[LimitKey]*counter{}, quotas: map[QuotaKey]*counter{},
		wishes: map[id.ID]*Wish{}, wishOf: map[WishKey]*Wish{}, touched: map[id.ID]*touch{},
	}
}

// Run decides the commands in order. An error is for the whole batch: ErrMissing, an *ledger.InvariantError, or one of
// the source.
func (w *Work) Run(commands []ledger.Command) ([]ledger.Result, error) {
	results := make([]ledger.Result, len(commands))
	for i, c := range commands {
		r, err := w.decide(c)
		var f *fault.Error
		var broken *ledger.InvariantError
		switch {
		case err == nil:
			results[i] = r
		case errors.Is(err, ErrMissing):
			w.missing = true
			w.Missed = append(w.Missed, i)
		case errors.As(err, &broken):
			w.broken = cmp.Or(w.broken, broken)
		case errors.As(err, &f):
			r.Fault = f
			results[i] = r
		default:
			return nil, err
		}
	}
	if w.missing {
		return nil, ErrMissing
	}
	if w.broken != nil {
		return nil, w.broken
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	return results, nil
}

func (w *Work) decide(c ledger.Command) (ledger.Result, error) {
	if err := CheckText(c); err != nil {
		return ledger.Result{}, err
	}
	switch c := c.(type) {
	case ledger.SetEvent:
		return w.setEvent(c)
	case ledger.HoldSeats:
		return w.holdSeats(c)
	case ledger.HoldPlaces:
		return w.holdPlaces(c)
	case ledger.Extend:
		return w.extend(c)
	case ledger.Release:
		return w.release(c)
	case ledger.BeginPayment:
		return w.beginPayment(c)
	case ledger.Confirm:
		return w.confirm(c)
	case ledger.FailPayment:
		return w.failPayment(c)
	case ledger.RecordPayment:
		return w.recordPayment(c)
	case ledger.BeginRefund:
		return w.beginRefund(c)
	case ledger.RefuseRefund:
		return w.refuseRefund(c)
	case ledger.RetryRefund:
		return w.retryRefund(c)
	case ledger.ReleaseSeats:
		return w.releaseSeats(c)
	case ledger.Transfer:
		return w.transfer(c)
	case ledger.CheckIn:
		return w.checkIn(c)
	case ledger.UndoCheckIn:
		return w.undoCheckIn(c)
	case ledger.Sweep:
		return w.sweep(c)
	case ledger.Block:
		return w.block(c)
	case ledger.Unblock:
		return w.unblock(c)
	case ledger.Stop:
		return w.stop(c)
	case ledger.AddWish:
		return w.addWish(c)
	case ledger.WithdrawWish:
		return w.withdrawWish(c)
	case ledger.Offer:
		return w.offer(c)
	case ledger.SettleWish:
		return w.settleWish(c)
	case ledger.ReleaseReturned:
		return w.releaseReturned(c)
	case ledger.SetReturns:
		return w.setReturns(c)
	}
	return w.decideRoom(c)
}

// decideRoom decides the waiting room's commands.
func (w *Work) decideRoom(c ledger.Command) (ledger.Result, error) {
	switch c := c.(type) {
	case ledger.RoomCommit:
		return w.opening(c.Event, func(e *ledger.Event, r *ledger.Room) (bool, *fault.Error) { return r.Commit(e, c, w.Now) })
	case ledger.RoomNumbers:
		return w.opening(c.Event, func(e *ledger.Event, r *ledger.Room) (bool, *fault.Error) { return r.Number(e, c) })
	case ledger.RoomFreeze:
		return w.opening(c.Event, func(e *ledger.Event, r *ledger.Room) (bool, *fault.Error) { return r.Freeze(e, c, w.Now) })
	case ledger.RoomDraw:
		return w.opening(c.Event, func(e *ledger.Event, r *ledger.Room) (bool, *fault.Error) { return r.Draw(e, c, w.Now) })
	case ledger.Advance:
		return w.advance(c)
	case ledger.Enter:
		return w.enter(c)
	case ledger.Leave:
		return w.leave(c)
	case ledger.TakeCode:
		return w.takeCode(c)
	}
	return ledger.Result{}, fmt.Errorf("decide: unknown command %T", c)
}

// finish turns what was touched into changes.
func (w *Work) finish() error {
	for _, event := range slices.Sorted(maps.Keys(w.touched)) {
		t := w.touched[event]
		ch := ledger.Change{Event: event, At: w.Now, Config: t.config}
		for _, index := range slices.Sorted(maps.Keys(t.seats)) {
			s := w.seats[SeatKey{event, index}]
			sc := ledger.SeatChange{Index: index, State: s.State}
			if s.State == ledger.Held {
				h, err := w.hold(s.Claim)
				if err != nil {
					return err
				}
				sc.Expires = h.Expires
			}
			ch.Seats = append(ch.Seats, sc)
		}
		for _, index := range slices.Sorted(maps.Keys(t.expiry)) {
			if _, done := t.seats[index]; !done {
				ch.Seats = append(ch.Seats, ledger.SeatChange{Index: index, State: ledger.Held, Expires: t.expiry[index]})
			}
		}
		slices.SortFunc(ch.Seats, func(a, b ledger.SeatChange) int { return cmp.Compare(a.Index, b.Index) })
		for _, area := range slices.Sorted(maps.Keys(t.areas)) {
			free := int32(0)
			for _, b := range w.buckets[AreaKey{event, area}] {
				free += b.Free()
			}
			ch.Areas = append(ch.Areas, ledger.AreaChange{Area: area, Free: free})
		}
		w.Out.Changes = append(w.Out.Changes, ch)
	}
	return nil
}

func (w *Work) touch(event id.ID) *touch {
	t := w.touched[event]
	if t == nil {
		t = &touch{seats: map[int32]struct{}{}, expiry: map[int32]ledger.Time{}, areas: map[int32]struct{}{}}
		w.touched[event] = t
	}
	return t
}

// invariant makes the error that stops an event.
func invariant(event id.ID, format string, args ...any) error {
	return &ledger.InvariantError{Event: event, What: fmt.Sprintf(format, args...)}
}

// note writes a transition of all that a hold has into the history.
func (w *Work) note(h *Hold, from, to, why string) { w.noteLines(h, h.Lines, from, to, why) }

// noteLines writes a transition of some lines of a hold.
func (w *Work) noteLines(h *Hold, lines []ledger.Line, from, to, why string) {
	t := Transition{Event: h.Event, Claim: h.ID, From: from, To: to, Why: why, At: w.Now}
	if h.Area >= 0 {
		t.Count = len(lines)
	} else {
		t.Seats = make([]int32, len(lines))
		t.Epoch = make([]int64, len(lines))
		for i, l := range lines {
			t.Seats[i], t.Epoch[i] = l.Seat, l.Epoch
		}
	}
	w.Out.History = append(w.Out.History, t)
}
