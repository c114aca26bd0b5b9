package audit

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// reportVersion is raised when a field of the report changes its meaning (D5).
const reportVersion = 1

// A Report is what an audit found.
type Report struct {
	Version  int             `json:"v"`
	Good     bool            `json:"ok"`
	Ledger   string          `json:"ledger"`          // sqlite or postgres
	Event    string          `json:"event,omitempty"` // where only one was looked at
	At       time.Time       `json:"at"`              // by the shard's clock
	Seconds  float64         `json:"seconds"`
	Checks   []Check         `json:"checks"`
	Events   []EventTotals   `json:"events"`
	InFlight InFlight        `json:"in_flight"`
	Provider *ProviderTotals `json:"provider,omitempty"` // where its list was compared
}

// A Check is one promise, and where it is broken.
type Check struct {
	Name       string      `json:"name"`
	Says       string      `json:"says"`
	Examined   int64       `json:"examined_count"`
	Violations int64       `json:"violation_count"`
	List       []Violation `json:"violations,omitempty"` // the first ones
}

// A Violation is one thing that is not as it should be.
type Violation struct {
	Event   string `json:"event,omitempty"`
	Subject string `json:"subject"` // a seat, an area, or an id as people see it
	What    string `json:"what"`
}

// InFlight are orders for which something is still to be done: no fault.
type InFlight struct {
	Count  int64         `json:"order_count"`
	Orders []FlightOrder `json:"orders,omitempty"` // the first ones
}

// A FlightOrder is one of them.
type FlightOrder struct {
	Order string `json:"order"`
	Why   string `json:"why"`
}

// EventTotals is how one event stands.
type EventTotals struct {
	Event        string       `json:"event"`
	State        string       `json:"state"`
	Seats        SeatTotals   `json:"seats"`
	Places       PlaceTotals  `json:"places"`
	HoldsLive    int64        `json:"holds_live_count"`
	HoldsUnswept int64        `json:"holds_unswept_count"` // of them those whose time is up
	Orders       OrderTotals  `json:"orders"`
	Tickets      TicketTotals `json:"tickets"`
	Conflicts    int64        `json:"use_conflict_count"` // uses decided offline that should not have been
	Refunds      RefundTotals `json:"refunds"`
	Currency     string       `json:"currency"`
	Captured     int64        `json:"captured_minor"`
	Refunded     int64        `json:"refunded_minor"`
	Kept         int64        `json:"kept_minor"` // fees of refunds and exchanges
	Room         *RoomTotals  `json:"room,omitempty"`
}

// RefundTotals are an event's refunds whose money is still to go back.
type RefundTotals struct {
	Requested int64 `json:"requested_count"`
	Refused   int64 `json:"refused_count"` // finally, by the provider: people must look
}

// RoomTotals are an event's waiting room.
type RoomTotals struct {
	Mode       string `json:"mode"`
	Phase      string `json:"phase"`
	Joined     int64  `json:"joined_count"` // numbers that people have, where the log of joins was read
	Drawn      int64  `json:"drawn_count"`
	Called     int64  `json:"called_count"`
	Entered    int64  `json:"entered_count"`
	EnteredMax int64  `json:"entered_per_s_max"`
	Inside     int64  `json:"inside_count"`
	InsideMax  int64  `json:"inside_max"`
	CodeUses   int64  `json:"code_use_count"`
}

// SeatTotals are an event's seats by state.
type SeatTotals struct {
	Total     int64 `json:"total"`
	Available int64 `json:"available"`
	Held      int64 `json:"held"`
	Sold      int64 `json:"sold"`
	Blocked   int64 `json:"blocked"`
	Returned  int64 `json:"returned"`
}

// PlaceTotals are the places of an event's areas.
type PlaceTotals struct {
	Total int64 `json:"total"`
	Held  int64 `json:"held"`
	Sold  int64 `json:"sold"`
}

// OrderTotals are an event's orders by state.
type OrderTotals struct {
	Pending  int64 `json:"PENDING"`
	Paid     int64 `json:"PAID"`
	Failed   int64 `json:"FAILED"`
	Expired  int64 `json:"EXPIRED"`
	Refunded int64 `json:"REFUNDED"`
}

// TicketTotals are an event's tickets by state.
type TicketTotals struct {
	Valid int64 `json:"VALID"`
	Used  int64 `json:"USED"`
	Void  int64 `json:"VOID"`
}

// ProviderTotals sum up the provider's list as far as it was compared.
type ProviderTotals struct {
	Payments int64 `json:"payment_count"`
	Captured int64 `json:"captured_minor"` // over all currencies
	Refunded int64 `json:"refunded_minor"`
}

// OK says whether nothing is broken.
func (r *Report) OK() bool { return r.Good }

// Violations counts what is broken.
func (r *Report) Violations() (n int64) {
	for i := range r.Checks {
		n += r.Checks[i].Violations
	}
	return n
}

// Broken are the names of the checks that found something.
func (r *Report) Broken() (names []string) {
	for i := range r.Checks {
		if r.Checks[i].Violations > 0 {
			names = append(names, r.Checks[i].Name)
		}
	}
	return names
}

// eventTotals are an event's, with what its notices are held against.
type eventTotals struct {
	EventTotals
	id      id.ID
	known   bool // its row is there
	version int64
	notices int64 // the number of the last one
	told    bool  // one was found
}

func newEventTotals(e eventRow) *eventTotals {
	state := "unknown"
	if e.version > 0 && e.state <= ledger.Stopped {
		state = e.state.String()
	}
	return &eventTotals{
		id: e.id, version: e.version, notices: e.notices,
		EventTotals: EventTotals{Event: e.id.Text(id.Event), State: state},
	}
}

func (t *eventTotals) seat(s ledger.Availability) {
	t.Seats.Total++
	switch s {
	case ledger.Available:
		t.Seats.Available++
	case ledger.Held:
		t.Seats.Held++
	case ledger.Sold:
		t.Seats.Sold++
	case ledger.Blocked:
		t.Seats.Blocked++
	case ledger.Returned:
		t.Seats.Returned++
	}
}

func (p *PlaceTotals) add(total, held, sold int64) {
	p.Total, p.Held, p.Sold = p.Total+total, p.Held+held, p.Sold+sold
}

func (o *OrderTotals) add(s ledger.OrderState) {
	switch s {
	case ledger.OrderPending:
		o.Pending++
	case ledger.OrderPaid:
		o.Paid++
	case ledger.OrderFailed:
		o.Failed++
	case ledger.OrderExpired:
		o.Expired++
	case ledger.OrderRefunded:
		o.Refunded++
	}
}

func newReport(dialect string, o Options) *Report {
	r := &Report{Version: reportVersion, Ledger: dialect, Events: []EventTotals{}}
	if o.Event != 0 {
		r.Event = o.Event.Text(id.Event)
	}
	if o.Provider != nil {
		r.Provider = &ProviderTotals{}
	}
	for _, c := range about {
		r.Checks = append(r.Checks, Check{Name: c.name, Says: c.says})
	}
	return r
}

func (r *Report) provider(p *payment.Payment) {
	r.Provider.Payments++
	r.Provider.Captured += p.CapturedMinor
	r.Provider.Refunded += p.RefundedMinor
}

func (r *Report) inFlight(order id.ID, why string) {
	r.InFlight.Count++
	if len(r.InFlight.Orders) < listMax {
		r.InFlight.Orders = append(r.InFlight.Orders, FlightOrder{Order: orderText(order), Why: why})
	}
}

func (r *Report) finish(now ledger.Time, events map[id.ID]*eventTotals) {
	totals := make([]*eventTotals, 0, len(events))
	for _, t := range events {
		totals = append(totals, t)
	}
	slices.SortFunc(totals, func(a, b *eventTotals) int { return cmp.Compare(a.id, b.id) })
	for _, t := range totals {
		r.Events = append(r.Events, t.EventTotals)
	}
	r.At = now.Std()
	r.Good = r.Violations() == 0
}

func itoa(n int) string { return strconv.Itoa(n) }
