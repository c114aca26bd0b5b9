package ledger

import (
	"slices"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
)

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
	Returns     ReturnsMode // the ledger's own once the event is there: SetReturns changes it, a later SetEvent does not
	Refunds     RefundRule
	Exchanges   ExchangeRule
	Transfers   TransferRule
	Documents   bool // each place needs an attendee's identity document
	Room        RoomRule
	Waitlist    bool // who finds nothing may leave a wish
	Holding     HoldingRule
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

// A HoldingRule bounds holds that nobody means to pay for (C15). Neither offers nor exchanges count or are refused. The zero
// value: no bound.
type HoldingRule struct {
	UnpaidMax int      // after so many unpaid holds of the event that ended within Rest, a customer may not hold again; 0: no bound
	Rest      Duration // until the last of them ended so long ago
	SeatRest  Duration // for so long a customer may not take a seat again that an unpaid hold of theirs lost
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
