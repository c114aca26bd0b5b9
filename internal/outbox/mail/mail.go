// Package mail writes to people: tickets, codes, what became of their money, news of their events; and to owners, alerts.
//
// The one idea: a mail is composed when it is sent, from ids. The Handler turns a notice of the outbox into jobs, rows that
// say "the tickets of this order, to this customer", each at most once (Job.Key), so that neither a slow mail server nor a
// notice that comes twice holds up or doubles anything. The Desk takes the jobs, reads names, seats and amounts through
// Facts, composes (Compose is pure) and gives the mail to a Sender. What is secret, a sign-in code or an invitation, is
// never a row: it waits in memory and goes first. News of an event goes to all its customers by a run with a cursor.
//
// Between the server's "taken" and our note of it lies a gap that SMTP cannot close: a crash there sends a mail again,
// with the same Message-ID, by which mail programs know it.
//
// Start reading at Message and Compose, then Handler, then Desk. Senders are outbox/mail/smtp and outbox/mail/mailbox.
package mail

import (
	"context"
	"errors"
	"time"

	"onsale/internal/id"
)

// Limits of what a mail holds.
const (
	SubjectRunesMax    = 120
	TextRunesMax       = 200 // of any name, title or label in a mail; longer ones end in "…"
	TicketsPerMailMax  = 50  // with their codes; the page shows the rest
	OwnersPerAlertMax  = 20
	qrPixels           = 480
	calendarHoursShown = 3 // an event's end is not known; calendars get this length
)

// An Address is who a mail goes to.
type Address struct {
	Name  string
	Email string
}

// An Attachment is a file of a mail. One with a ContentID is a picture that the HTML shows in place (cid:).
type Attachment struct {
	Name      string
	Type      string // "image/png", "text/calendar; charset=utf-8; method=PUBLISH"
	ContentID string
	Data      []byte
}

// A Mail is ready to be sent. Its texts have no line breaks or other control characters where a header is made of them.
type Mail struct {
	ID          string // Message-ID without <>; the same mail again has the same
	To          Address
	Locale      string
	Subject     string
	HTML        string
	Text        string
	Attachments []Attachment
}

// A Sender hands mails to a mail server. It may be called at once from many goroutines, and returns when the server has
// taken the mail. A *PermanentError: never. Any other error: later, perhaps.
type Sender interface {
	Send(ctx context.Context, m Mail) error
}

// A PermanentError is the mail server's final no. It says no address (E10).
type PermanentError struct {
	Status string // the server's code, "550 5.1.1"
}

func (e *PermanentError) Error() string {
	return "the mail server refuses the mail for good: " + e.Status
}

// A TemporaryError is the mail server's no for now. Senders may answer others as well.
type TemporaryError struct {
	Status string // the server's code, "451 4.3.2"
}

func (e *TemporaryError) Error() string {
	return "the mail server does not take the mail now: " + e.Status
}

// permanent says whether an error is the final no, and its status.
func permanent(err error) (string, bool) {
	var p *PermanentError
	if errors.As(err, &p) {
		return p.Status, true
	}
	return "", false
}

// A Site is what all mails of an installation share.
type Site struct {
	Name string // of the shop, as people know it
	URL  string // where its pages are, "https://tickets.example.com"; "": no links
	Host string // for Message-IDs and calendar entries: a name that stays, "tickets.example.com"
}

// The pages that mails lead to.
const (
	bookingPath    = "/bookings/"
	invitationPath = "/invitation#" // what follows # reaches no server on the way, and so no log
	ticketsPath    = "/tickets"
	alertPath      = "/console/orders/"
)

func (s Site) link(path string) string {
	if s.URL == "" {
		return ""
	}
	return s.URL + path
}

// A Kind is what a mail says.
type Kind string

// The kinds.
const (
	KindCode            Kind = "code"
	KindInvitation      Kind = "invitation"
	KindTickets         Kind = "tickets"
	KindExchanged       Kind = "exchanged"
	KindGivenBack       Kind = "given_back"
	KindFailed          Kind = "failed"
	KindExpired         Kind = "expired"
	KindRefundRequested Kind = "refund_requested"
	KindRefundDone      Kind = "refund_done"
	KindReceived        Kind = "received"  // a ticket, from somebody else
	KindPassedOn        Kind = "passed_on" // to who passed it on
	KindCaptureRefused  Kind = "capture_refused"
	KindEventChanged    Kind = "event_changed"
	KindEventCancelled  Kind = "event_cancelled"
	KindOffered         Kind = "offered"       // seats that came back, to somebody of the waitlist
	KindWishEnded       Kind = "waitlist_over" // their wish waits no more, though it was not fulfilled
	KindAlert           Kind = "alert"
)

// The alerts, words of KindAlert.
const (
	AlertGiveBack       = "give_back"
	AlertCaptureRefused = "capture_refused"
	AlertRefundRefused  = "refund_refused"
	AlertConflict       = "conflict"
	AlertInvariant      = "invariant"
	AlertDeadLetter     = "dead_letter"
)

// A Message is what is to be said. Each kind uses the fields that its text speaks of.
type Message struct {
	Key     string // of the job, for the Message-ID
	Kind    Kind
	Locale  string // of identity.Locales; "" or another: English
	To      Address
	Event   Event
	Was     *Event // KindEventChanged: as it was told before
	Changes int    // how often customers were told of a change: the calendar entry's SEQUENCE

	Order    id.ID
	Amount   int64 // minor units: the order's, the refund's
	Currency string
	Kept     int64  // of a refund
	Rule     string // by which it is kept: "customer …", "organizer", "exchange"
	Reason   string // of a refund
	Back     int64  // KindExchanged: what is given back of the old price
	Tickets  []Ticket
	Other    string // the name of the customer on the other side of a transfer, "" where not known

	Code      string // digits
	Expires   time.Time
	Organizer string // its name
	Role      string
	Token     string

	Alert string
	Count int // of an alert: how many; KindOffered: places
}

// An Event is what mails say of one.
type Event struct {
	ID        id.ID     `json:"-"`
	Organizer id.ID     `json:"-"`
	Version   int64     `json:"-"`
	Test      bool      `json:"-"` // sold for a sandbox's money: every mail about it says so
	Cancelled bool      `json:"cancelled,omitempty"`
	Title     string    `json:"title"`
	Starts    time.Time `json:"starts_at"`
	Doors     time.Time `json:"doors_at,omitzero"` // zero: not said
	Venue     string    `json:"venue"`
	City      string    `json:"city"`
	Zone      string    `json:"zone"` // IANA
}

// moved says whether somebody who knows an event as it was must be told of how it is.
func (e *Event) moved(was *Event) bool {
	return !e.Starts.Equal(was.Starts) || !e.Doors.Equal(was.Doors) || e.Venue != was.Venue || e.City != was.City || e.Zone != was.Zone
}

// A Ticket is what mails say of one.
type Ticket struct {
	ID       id.ID
	Section  string
	Row      string // "" for a place in an area
	Seat     string // the seat's label within its row, "" for a place
	Area     string // "" for a seat
	Category string
	Attendee string // "" where none is named
	Total    int64
	Code     string // the QR code's text
	Test     bool
}
