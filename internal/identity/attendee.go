package identity

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"onsale/internal/fault"
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

// A DocumentVerifier is an outside service that knows documents. It answers ErrDocumentRefused where name and number are not
// of one person, and another error where it cannot say.
type DocumentVerifier interface {
	VerifyDocument(ctx context.Context, a Attendee) error
}

// ErrDocumentRefused is a DocumentVerifier's no.
var ErrDocumentRefused = errors.New("identity: the document was refused")

// Limits of attendees.
const (
	AttendeesMax      = 500              // of one order; the ledger's greatest hold
	verifyTimeMax     = 10 * time.Second // for all attendees of one order
	AttendeePageMax   = 1000
	pruneDocumentsMax = 1000
	// DocumentsFor is how long documents are kept after an event's day (E8).
	DocumentsFor = 30 * 24 * time.Hour
	eventDay     = 24 * time.Hour
)

// CheckAttendee is an attendee as it is kept: the name trimmed, the number normalised. Fault: invalid, with the field.
func CheckAttendee(a Attendee) (Attendee, error) {
	a.Name = strings.TrimSpace(a.Name)
	if bad := checkName(a.Name); bad != "" {
		return a, &fault.Error{Code: fault.Invalid, Field: "name", Detail: "the name " + bad}
	}
	number, bad := "", ""
	switch a.DocumentType {
	case NoDocument:
		if strings.TrimSpace(a.DocumentNumber) != "" {
			return a, &fault.Error{Code: fault.Invalid, Field: "document_type", Detail: "say which kind of document this is the number of"}
		}
		a.DocumentNumber = ""
		return a, nil
	case CNResidentID:
		number, bad = residentID(a.DocumentNumber)
	case Passport:
		number, bad = passport(a.DocumentNumber)
	default:
		return a, &fault.Error{Code: fault.Invalid, Field: "document_type", Detail: fmt.Sprintf("the kind of document must be %s or %s", CNResidentID, Passport)}
	}
	if bad != "" {
		return a, &fault.Error{Code: fault.Invalid, Field: "document_number", Detail: bad}
	}
	a.DocumentNumber = number
	return a, nil
}

// CheckAttendees checks those of an order of count places, and asks the outside service, if there is one, about their
// documents. With document each needs one, and no document may be there twice; without attendees nothing is said of the
// order's places, which is good where no document is needed. Faults: invalid, with the field, as attendees[1].name; busy.
func (s *Service) CheckAttendees(ctx context.Context, count int, document bool, all []Attendee) ([]Attendee, error) {
	if len(all) == 0 && !document {
		return nil, nil
	}
	if len(all) != count || count > AttendeesMax {
		return nil, &fault.Error{Code: fault.Invalid, Field: "attendees", Detail: fmt.Sprintf("name %d attendees, one for each place, in their order", count)}
	}
	checked := make([]Attendee, 0, len(all))
	seen := map[Attendee]bool{}
	for i, a := range all {
		a, err := CheckAttendee(a)
		if err != nil {
			return nil, at(i, err)
		}
		if document && a.DocumentType == NoDocument {
			return nil, at(i, &fault.Error{Code: fault.Invalid, Field: "document_number", Detail: "this event needs each attendee's identity document"})
		}
		of := Attendee{DocumentType: a.DocumentType, DocumentNumber: a.DocumentNumber}
		if document && seen[of] {
			return nil, at(i, &fault.Error{Code: fault.Invalid, Field: "document_number", Detail: "this document is another attendee's already"})
		}
		seen[of] = true
		checked = append(checked, a)
	}
	return checked, s.verifyDocuments(ctx, checked)
}

// at says whose field is wrong.
func at(i int, err error) error {
	f := *fault.Of(err)
	f.Field = fmt.Sprintf("attendees[%d].%s", i, f.Field)
	return &f
}

func (s *Service) verifyDocuments(ctx context.Context, all []Attendee) error {
	if s.o.Documents == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeMax)
	defer cancel()
	for i, a := range all {
		if a.DocumentType == NoDocument {
			continue
		}
		err := s.o.Documents.VerifyDocument(ctx, a)
		if errors.Is(err, ErrDocumentRefused) {
			return at(i, &fault.Error{Code: fault.Invalid, Field: "document_number", Detail: "name and document do not belong together: write both as the document shows them"})
		}
		if err != nil { // its words may hold what was asked: not even the log gets them (E10)
			return &fault.Error{Code: fault.Busy, Detail: "identity documents cannot be checked at the moment", RetryAfter: 5 * time.Second}
		}
	}
	return nil
}

// DocumentHash is a document as the ledger counts it, for one event: keyed, so that nobody without the pepper can try all
// numbers, and with the event, so that two events cannot be compared. The number is one that CheckAttendee answered; ""
// for no document.
func (s *Service) DocumentHash(event id.ID, kind DocumentType, number string) string {
	if kind == NoDocument || number == "" {
		return ""
	}
	m := hmac.New(sha256.New, s.pepper)
	m.Write([]byte("identity document 1\x00"))
	var eight [8]byte
	binary.BigEndian.PutUint64(eight[:], uint64(event))
	m.Write(eight[:])
	m.Write([]byte(string(kind) + "\x00" + number))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// DocumentHashes are those of attendees that CheckAttendees answered, "" for none: what BeginPayment takes as Documents.
func (s *Service) DocumentHashes(event id.ID, all []Attendee) []string {
	hashes := make([]string, len(all))
	for i, a := range all {
		hashes[i] = s.DocumentHash(event, a.DocumentType, a.DocumentNumber)
	}
	return hashes
}

// A Place is a place of an order, and to whom its ticket belongs.
type Place struct {
	Order, Event, Customer id.ID
	Place                  int32
}

func (s *Service) attending(p Place, a Attendee) Attending {
	return Attending{
		Order: p.Order, Event: p.Event, Customer: p.Customer, Place: p.Place, Name: a.Name, DocumentType: a.DocumentType,
		DocumentHash: s.DocumentHash(p.Event, a.DocumentType, a.DocumentNumber), DocumentLast4: last4(a.DocumentNumber),
	}
}

func last4(number string) string { return number[max(0, len(number)-4):] } // ASCII, once checked

// PutAttendees keeps those of an order, as CheckAttendees answered them. Again is harmless, also late: a place keeps who
// was put there first, until MoveAttendee. Fault: not_found (the customer was erased).
func (s *Service) PutAttendees(ctx context.Context, order, event, customer id.ID, all []Attendee) error {
	if len(all) == 0 {
		return nil
	}
	stored := make([]Attending, len(all))
	for i, a := range all {
		stored[i] = s.attending(Place{Order: order, Event: event, Customer: customer, Place: int32(i)}, a)
	}
	return known(s.o.Store.PutAttendees(ctx, stored), "there is no such customer")
}

// Attendees are an order's, by place.
func (s *Service) Attendees(ctx context.Context, order id.ID) ([]Attending, error) {
	return s.o.Store.Attendees(ctx, order)
}

// AttendeesOf are an event's, by order and place after the given (zero: from the first), at most max: for the door's list.
func (s *Service) AttendeesOf(ctx context.Context, event, afterOrder id.ID, afterPlace int32, max int) ([]Attending, error) {
	return s.o.Store.AttendeesOf(ctx, event, afterOrder, afterPlace, min(max, AttendeePageMax))
}

// MoveAttendee puts another, as CheckAttendee answered them, in a place: a ticket was passed on. Again is harmless. Fault:
// not_found (the customer was erased).
func (s *Service) MoveAttendee(ctx context.Context, p Place, a Attendee) error {
	return known(s.o.Store.MoveAttendee(ctx, s.attending(p, a)), "there is no such customer")
}

// DropAttendees removes those of an order that came to nothing.
func (s *Service) DropAttendees(ctx context.Context, order id.ID) error {
	return s.o.Store.DropAttendees(ctx, order)
}

// PruneDocuments removes the documents (not the names) of events whose day is DocumentsFor past, and says of how many
// places.
func (s *Service) PruneDocuments(ctx context.Context) (int, error) {
	total := 0
	for {
		n, err := s.o.Store.PruneDocuments(ctx, s.o.Now().Add(-DocumentsFor-eventDay), pruneDocumentsMax)
		total += n
		if err != nil || n < pruneDocumentsMax {
			return total, err
		}
	}
}

// Export is everything that the control database knows of a customer (F2). Fault: not_found.
func (s *Service) Export(ctx context.Context, customer id.ID) (Personal, error) {
	p, err := s.o.Store.ExportCustomer(ctx, customer)
	return p, known(err, "there is no such customer")
}

// Erase removes what names a customer; the id stays, under which orders and money go on (F2). It is written on the list of
// erasures in the same step. On other nodes the customer's sign-ins end within endedWithin. Fault: conflict (an
// organizer's last owner).
func (s *Service) Erase(ctx context.Context, by Actor, customer id.ID) error {
	e, err := s.entry(by, 0, "customer.erase", customer.Text(id.Customer), nil)
	if err != nil {
		return err
	}
	if err := s.erase(ctx, customer, e.At, false); err != nil {
		return roleFault(err)
	}
	return s.o.Store.Write(ctx, e)
}

func (s *Service) erase(ctx context.Context, customer id.ID, at time.Time, evenLastOwner bool) error {
	roles, err := s.o.Store.RolesOf(ctx, customer)
	if err != nil {
		return err
	}
	err = s.endSignIns(ctx, customer, func(SignIn) bool { return true }, func() error {
		return s.o.Store.EraseCustomer(ctx, customer, at, evenLastOwner)
	})
	for _, m := range roles {
		s.roles.Forget(member{customer, m.Organizer})
	}
	return err
}

// Erasures are all that were. A restored backup has only those before it: keep the list beside backups, too.
func (s *Service) Erasures(ctx context.Context) ([]Erasure, error) { return s.o.Store.Erasures(ctx) }

// EraseAgain erases those of a list after a restore, and says how many they were. Again is harmless.
func (s *Service) EraseAgain(ctx context.Context, all []Erasure) (int, error) {
	for i, e := range all {
		if err := s.erase(ctx, e.Customer, e.At, true); err != nil {
			return i, err
		}
	}
	return len(all), nil
}
