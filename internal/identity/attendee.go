package identity

import (
	"time"

	"onsale/internal/id"
)

// A DocumentType is a kind of identity document.
type DocumentType string

// The kinds.
const (
	NoDocument   DocumentType = ""
	CNResidentID DocumentType = "cn_resident_id" // 居民身份证
	Passport     DocumentType = "passport"
)

// An Attendee is the person named on a ticket, as they are typed in. The number is never stored.
type Attendee struct {
	Name           string
	DocumentType   DocumentType
	DocumentNumber string
}

// An Attending is an attendee as stored, at a place of an order (the line of its hold; ledger.Ticket.Place).
type Attending struct {
	Order, Event, Customer id.ID // Customer: to whom the ticket belongs, whose erasure removes this
	Place                  int32
	Name                   string
	DocumentType           DocumentType
	DocumentHash           string // see Service.DocumentHash; "" where there is none, or no more
	DocumentLast4          string
}

// Personal is everything that the control database knows of a customer (F2).
type Personal struct {
	Profile    Profile
	Identities []NamedAt
	SignIns    []SignIn
	Roles      []Membership
	Attendees  []Attending
}

// NamedAt is an identity and since when it stands for its customer.
type NamedAt struct {
	Issuer, Sub string
	Since       time.Time
}

// An Erasure says that a customer was erased, so that a restored backup erases again.
type Erasure struct {
	Customer id.ID     `json:"customer_id"`
	At       time.Time `json:"at"`
}
