// Package catalog knows what is sold: shows, their events (performances), where and when they are, what each category
// costs and by which rules it is sold.
//
// The one idea: the catalog is what people edit, in the control database; what decides a sale is the ledger's own row of
// the event. Every change of an event has a version, is written here first and then sent to the ledger as a SetEvent; a
// crash between the two is mended by sending the current version again, which is harmless (Service.Heal).
//
// Start reading at Event, then Service (service.go). Event files are read by the package eventfile; the database is
// behind Store (store.go).
package catalog

import (
	"time"
	_ "time/tzdata" // venues have zones, also on machines without a zone database

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Limits of what the catalog takes.
const (
	EventsPerImportMax = 1_000
	KeyBytesMax        = 64
	NameRunesMax       = 200
	TextRunesMax       = 10_000
	PerformersMax      = 50
	TiersMax           = 100
	QuotasMax          = 200
	QuotaStepsMax      = 50
	AmountMax          = 100_000_000_000 // minor units of one face or fee
	TaxBPMax           = 10_000
	LimitMax           = 10_000
	PlacesMax          = 1_000_000_000

	HoldTTLMin       = ledger.Duration(5_000)
	HoldTTLMax       = ledger.Duration(24 * 60 * 60 * 1000)
	PaymentWindowMin = ledger.Duration(10_000)
	PaymentWindowMax = ledger.Duration(60 * 60 * 1000)
	ExtendMaxMax     = 5
)

// Defaults of an event.
const (
	DefaultLimitPerEvent      = 4
	DefaultSeatsPerHoldMax    = 10 // where no limit per event applies
	DefaultHoldTTL            = ledger.Duration(10 * 60 * 1000)
	DefaultPaymentWindow      = ledger.Duration(5 * 60 * 1000)
	DefaultExtendMax          = 1
	DefaultFewSeatsLeft       = 50
	DefaultSplitReleaseBefore = ledger.Duration(24 * 60 * 60 * 1000)
)

// An Organizer sells. Every show, event and plan belongs to one.
type Organizer struct {
	ID   id.ID  `json:"id"`
	Key  string `json:"key"` // unique
	Name string `json:"name"`
}

// A Show is a production or tour: what its events have in common.
type Show struct {
	ID          id.ID     `json:"id"`
	Organizer   id.ID     `json:"organizer_id"`
	Key         string    `json:"key"` // the organizer's own name for it, unique among theirs
	Title       string    `json:"title"`
	Description string    `json:"description,omitempty"`
	Performers  []string  `json:"performers,omitempty"` // who plays, as people know them
	Updated     time.Time `json:"updated_at"`
}

// A Venue is where an event takes place.
type Venue struct {
	Name    string `json:"name"`
	City    string `json:"city"`
	Country string `json:"country"` // ISO 3166-1, two letters
	Zone    string `json:"zone"`    // IANA, "Europe/Berlin"
}

// Location is the venue's zone; UTC for one that Validate refuses.
func (v Venue) Location() *time.Location {
	if zone, err := LoadZone(v.Zone); err == nil {
		return zone
	}
	return time.UTC
}

// FormatVersion is the version of the JSON of an Event as it is stored.
const FormatVersion = 1

// An Event is one performance of a show at one date; it is what is sold. It is not changed in place: a change is a copy
// with the next version.
type Event struct {
	Format    int    `json:"format"` // FormatVersion
	ID        id.ID  `json:"id"`
	Organizer id.ID  `json:"organizer_id"`
	Show      id.ID  `json:"show_id"`
	Key       string `json:"key"`     // the organizer's own name for it, unique in the show
	Version   int64  `json:"version"` // raised by each change, from 1
	State     State  `json:"state"`   // as stored: never Scheduled or Stopped

	Title      string    `json:"title"`                // the show's, unless the event has its own
	Performers []string  `json:"performers,omitempty"` // the show's, unless the event has its own
	Venue      Venue     `json:"venue"`
	PlanHash   string    `json:"plan_hash"`
	Doors      time.Time `json:"doors_at,omitzero"` // zero: not said
	Starts     time.Time `json:"starts_at"`

	SaleOpens  time.Time `json:"sale_opens_at,omitzero"` // zero: only for a draft
	SaleCloses time.Time `json:"sale_closes_at"`

	Currency    string `json:"currency"` // ISO 4217
	TaxIncluded bool   `json:"tax_included"`
	Tiers       []Tier `json:"tiers"`
	Limits      Limits `json:"limits"`

	SeatsPerHoldMax int             `json:"seats_per_hold_max"`
	HoldTTL         ledger.Duration `json:"hold_ttl_ms"`
	PaymentWindow   ledger.Duration `json:"payment_window_ms"`
	ExtendMax       int             `json:"extend_max"`
	Orphans         Orphans         `json:"orphans"`
	Quotas          []Quota         `json:"quotas,omitempty"`

	Refunds   RefundRule   `json:"refunds,omitzero"`
	Exchanges ExchangeRule `json:"exchanges,omitzero"`
	Transfers TransferRule `json:"transfers,omitzero"`
	Documents bool         `json:"documents_required,omitempty"` // each ticket names its attendee and their identity document
	Gates     []Gate       `json:"gates,omitempty"`

	Room     RoomRule        `json:"room,omitzero"`
	Waitlist bool            `json:"waitlist,omitempty"`     // who finds nothing may leave a wish
	OfferTTL ledger.Duration `json:"offer_ttl_ms,omitempty"` // how long a returned seat is offered to each; 0: 15 min
	Holding  Holding         `json:"holding,omitzero"`

	Updated time.Time `json:"updated_at"`
}

// A Tier is what one category of the plan costs at this event. A category without a tier is not sold.
type Tier struct {
	Category string `json:"category"` // the key of the plan's category
	Name     string `json:"name"`     // for people
	Face     int64  `json:"face_minor"`
	Fee      int64  `json:"fee_minor"`
	TaxBP    int64  `json:"tax_bp"` // basis points: 700 is 7 %
}

// Limits bound how many places a customer may hold and have bought together; 0: no such limit.
type Limits struct {
	Event      int             `json:"event"`                // per customer, in this event
	Show       int             `json:"show,omitempty"`       // per customer, in all events of the show
	Document   int             `json:"document,omitempty"`   // per identity document, in this event
	Categories []CategoryLimit `json:"categories,omitempty"` // per customer, in one category of this event
}

// A CategoryLimit is the limit of one category.
type CategoryLimit struct {
	Category string `json:"category"`
	Max      int    `json:"max"`
}

// OrphanMode says what becomes of a hand-picked choice that would leave a single seat alone.
type OrphanMode string

// The modes of the orphan rule.
const (
	OrphansOff    OrphanMode = "off"    // nothing is said
	OrphansWarn   OrphanMode = "warn"   // it is held, and the answer names the seats left alone
	OrphansRefuse OrphanMode = "refuse" // it is not held
)

// Orphans is the rule about single seats left alone. Best available avoids them whatever the mode. The rule is lifted
// when few seats are left or the sale soon ends.
type Orphans struct {
	Mode               OrphanMode      `json:"mode"`
	FewSeatsLeft       int             `json:"few_seats_left"`          // lifted when at most so many are available
	SplitReleaseBefore ledger.Duration `json:"split_release_before_ms"` // lifted so long before the sale closes
}

// OrphansApply says whether the orphan rule is in force with so many seats left.
func (e *Event) OrphansApply(now time.Time, available int) bool {
	return available > e.Orphans.FewSeatsLeft && now.Before(e.SaleCloses.Add(-e.Orphans.SplitReleaseBefore.Std()))
}

// A Quota bounds how much of a category and section is on sale (on_sale_max), changed at set times. An empty Category or
// Section means all.
type Quota struct {
	Category string      `json:"category,omitempty"`
	Section  string      `json:"section,omitempty"` // the key of the plan's section
	Max      int         `json:"on_sale_max"`
	Steps    []QuotaStep `json:"steps,omitempty"` // ascending by At
}

// A QuotaStep sets a quota's maximum from an instant on.
type QuotaStep struct {
	At  time.Time `json:"at"`
	Max int       `json:"on_sale_max"`
}
