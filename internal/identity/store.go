package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/netip"
	"time"

	"onsale/internal/id"
)

// EmailIssuer is the issuer of verified addresses: (EmailIssuer, address) is an identity like (issuer, sub) of a token. No
// real issuer may have this name.
const EmailIssuer = "email"

// Errors of the stores.
var (
	ErrUnknown   = errors.New("identity: nobody is known by this name")
	ErrErased    = errors.New("identity: this customer was erased")
	ErrNoCode    = errors.New("identity: there is no such code, or no tries are left")
	ErrLastOwner = errors.New("identity: the last owner of an organizer cannot be taken away")
	ErrTooMany   = errors.New("identity: there are too many of these")
)

// A Hash is how secrets that we have made (cookies, invitations) are stored: SHA-256. They have 256 random bits, so that no
// salt and no slow hash is needed.
type Hash [sha256.Size]byte

// Named is by what somebody is known: an issuer's word for who it is, and the verified address that comes with it.
type Named struct {
	Issuer, Sub string
	Email       Email // "" for none; for EmailIssuer it is Sub
}

// A Store keeps which customer somebody stands for. Each method of the stores is atomic and durable when it returns, and
// all may be called at once, from many nodes. controltest.Exercise is this contract as tests.
type Store interface {
	// Customer is who a name stands for. ErrUnknown, also where its e-mail address stands for nobody yet: PutCustomer adds it.
	Customer(ctx context.Context, who Named) (id.ID, error)
	// PutCustomer makes a name stand for a customer, and answers which: the one that (issuer, sub) stands for; else the
	// one of the address; else a new one, candidate: the same to all who ask at once. An address that stands for nobody is
	// added to that customer. One that stands for somebody else is left: two customers are never made one, for their
	// orders and limits are two. Fault: busy, where too many wait to be made.
	PutCustomer(ctx context.Context, who Named, candidate id.ID) (id.ID, error)
}

// A ProfileStore keeps what customers say of themselves.
type ProfileStore interface {
	// Profile is a customer's, of an erased one what is left. ErrUnknown.
	Profile(ctx context.Context, customer id.ID) (Profile, error)
	// SetProfile changes name and locale. ErrUnknown; ErrErased.
	SetProfile(ctx context.Context, customer id.ID, name, locale string) error
}

// A Code is a one-time code as it is stored: nothing in it tells the address or the digits.
type Code struct {
	Ask     Hash   // of browser and address: whoever asks again replaces the code
	KID     string // of the key under which Sum was made
	Sum     Hash   // keyed
	Tries   int    // so far
	Expires time.Time
}

// A MailLimit bounds the mails of one subject in any window of time.
type MailLimit struct {
	Subject Hash // keyed: of an address or of a network
	Max     int
	Window  time.Duration
}

// A SignInStore keeps codes and sign-ins. now is the asking node's clock: nodes whose clocks differ by seconds change ten
// minutes by seconds.
type SignInStore interface {
	// PutCode keeps a code, in place of an earlier one of the same Ask, and counts a mail for each limit. Where a limit is
	// reached nothing is kept or counted; reached is its index (the first of several) and free when it has room again. -1:
	// none is.
	PutCode(ctx context.Context, c Code, limits []MailLimit, now time.Time) (reached int, free time.Time, err error)
	// TryCode counts a try and answers the code to compare with: the count is durable before the caller compares.
	// ErrNoCode where there is none, its time is up or it was tried triesMax times.
	TryCode(ctx context.Context, ask Hash, triesMax int, now time.Time) (Code, error)
	// OpenSignIn keeps a sign-in of the customer that who stands for (see PutCustomer), which it answers. With a code, that
	// one is used up in the same step: ErrNoCode where it is no longer there. The sign-in `replaces` (zero: none) ends.
	OpenSignIn(ctx context.Context, o Opening) (id.ID, error)
	// SignIn is one by its token's hash. ErrUnknown.
	SignIn(ctx context.Context, token Hash) (SignIn, error)
	// SignInsOf are a customer's, newest first.
	SignInsOf(ctx context.Context, customer id.ID) ([]SignIn, error)
	// SeeSignIns keeps when sign-ins were seen last; an earlier time changes nothing.
	SeeSignIns(ctx context.Context, seen map[Hash]time.Time) error
	// EndSignIn ends one, EndSignIns all of a customer; EndSignInOf one of a customer by its number. What has ended is no
	// error.
	EndSignIn(ctx context.Context, token Hash) error
	EndSignIns(ctx context.Context, customer id.ID) error
	EndSignInOf(ctx context.Context, customer, number id.ID) error
	// PruneSignIns removes codes whose time is up, mails counted up to mailsBefore, sign-ins that expired or were seen last
	// up to idleBefore, and expired invitations; at most max of each.
	PruneSignIns(ctx context.Context, now, mailsBefore, idleBefore time.Time, max int) (int, error)
}

// An Opening is a sign-in to be.
type Opening struct {
	Code      *Code // nil: none was used
	Who       Named
	Candidate id.ID // of a new customer
	SignIn    SignIn
	Replaces  Hash
	Max       int // sign-ins that the customer keeps, the newest
}

// A RoleStore keeps who may do what for which organizer. What changes something takes the entry of the audit log, which is
// written in the same step, or nothing is.
type RoleStore interface {
	// RolesOf are a customer's roles, by organizer.
	RolesOf(ctx context.Context, customer id.ID) ([]Membership, error)
	// Role is a customer's with an organizer, "" for none.
	Role(ctx context.Context, customer, organizer id.ID) (Role, error)
	// Members are an organizer's, the mightiest and oldest first.
	Members(ctx context.Context, organizer id.ID) ([]Member, error)
	// PutRole gives a role, in place of the one that the customer has with that organizer. Who is no owner afterwards has no
	// open invitations of theirs there. ErrLastOwner; ErrUnknown (no such customer or organizer).
	PutRole(ctx context.Context, m Membership, e Entry) error
	// RemoveRole takes it away, and the customer's open invitations there. ErrUnknown; ErrLastOwner.
	RemoveRole(ctx context.Context, customer, organizer id.ID, e Entry) error

	// PutInvitation keeps one, in place of an earlier one of the same organizer and address. ErrTooMany where openMax
	// others are open; ErrUnknown (no such organizer).
	PutInvitation(ctx context.Context, i Invitation, openMax int, e Entry) error
	// Invitations are those of an organizer that are open at now.
	Invitations(ctx context.Context, organizer id.ID, now time.Time) ([]Invitation, error)
	// RemoveInvitation takes one back. ErrUnknown.
	RemoveInvitation(ctx context.Context, organizer, number id.ID, e Entry) error
	// AcceptInvitation uses one up for a customer who has its address verified, and answers the role that they have then:
	// the invitation's, or the one that they had where that is as mighty. ErrUnknown: no such one, expired, another's.
	AcceptInvitation(ctx context.Context, token Hash, customer id.ID, now time.Time, e Entry) (Membership, error)
}

// An AuditLog keeps who changed what for which organizer, for ever, as ids.
type AuditLog interface {
	Write(ctx context.Context, e Entry) error
	// List is an organizer's log (0: of all), newest first, at most max entries with ids below `before` (0: from the newest).
	List(ctx context.Context, organizer, before id.ID, max int) ([]Entry, error)
}

// An AttendeeStore keeps who is named on tickets.
type AttendeeStore interface {
	// PutAttendees keeps those of an order's places; a place that has one keeps it (a late repeat undoes no transfer).
	// ErrErased.
	PutAttendees(ctx context.Context, all []Attending) error
	// Attendees are an order's, by place; AttendeesOf an event's, by order and place after the given, at most max.
	Attendees(ctx context.Context, order id.ID) ([]Attending, error)
	AttendeesOf(ctx context.Context, event, afterOrder id.ID, afterPlace int32, max int) ([]Attending, error)
	// MoveAttendee puts another in the place of who is there, or is not. ErrErased.
	MoveAttendee(ctx context.Context, a Attending) error
	// DropAttendees removes those of an order that came to nothing.
	DropAttendees(ctx context.Context, order id.ID) error
	// PruneDocuments removes documents (not names) of events that started before, of at most max places, and says of how
	// many: call again while it is max.
	PruneDocuments(ctx context.Context, startedBefore time.Time, max int) (int, error)
}

// An EraseStore gives a customer's personal data out and removes it (F2).
type EraseStore interface {
	// ExportCustomer is everything that the control database knows of a customer. ErrUnknown.
	ExportCustomer(ctx context.Context, customer id.ID) (Personal, error)
	// EraseCustomer removes names, addresses, documents, identities, sign-ins, roles, invitations of and by them, and keeps
	// the id and the time on the list of erasures, also of a customer that is not there (a restored backup may be older).
	// Again is no error. ErrLastOwner, unless evenLastOwner.
	EraseCustomer(ctx context.Context, customer id.ID, now time.Time, evenLastOwner bool) error
	// Erasures are all that were, by time.
	Erasures(ctx context.Context) ([]Erasure, error)
}

// A PeopleStore is everything of people that the control database keeps.
type PeopleStore interface {
	Store
	ProfileStore
	SignInStore
	RoleStore
	AuditLog
	AttendeeStore
	EraseStore
}

// A Person is who asks.
type Person struct {
	Customer id.ID
	Via      Via
}

// Via is how a person was recognized.
type Via string

// The ways. A device is a door's: it acts for an organizer, not for a customer.
const (
	ViaCookie Via = "cookie"
	ViaBearer Via = "bearer"
	ViaDevice Via = "device"
)

// A Profile is what is known of a customer.
type Profile struct {
	Customer id.ID
	Name     string // "" where they have not said
	Locale   string // one of Locales, "" where they have not said
	Emails   []Email
	Created  time.Time
	Erased   time.Time // zero: not
}

// Email is the address to write to, the one that was verified first; "" for none.
func (p Profile) Email() Email {
	if len(p.Emails) == 0 {
		return ""
	}
	return p.Emails[0]
}

// A SignIn is an authenticated browser.
type SignIn struct {
	ID       id.ID // by which its customer may end it; says nothing of the token
	Token    Hash
	Customer id.ID
	Method   Method
	Created  time.Time
	Seen     time.Time
	Expires  time.Time // whatever happens
}

// Method is how a sign-in came about.
type Method string

// The methods.
const (
	MethodCode Method = "code"
	MethodOIDC Method = "oidc"
)

// A CodeMail brings a one-time code to whoever reads the mail of an address.
type CodeMail struct {
	To        Email
	Code      string // digits only
	Locale    string // one of Locales
	Organizer bool   // the address has power over a sale: the code has 12 digits
	Expires   time.Time
}

// An InvitationMail brings an invitation.
type InvitationMail struct {
	To        Email
	Organizer id.ID
	Name      string // the organizer's
	Role      Role
	Token     string // for the link: /invitation#TOKEN, so that no server on the way logs it
	Locale    string
	Expires   time.Time
}

// A CodeSender sends one-time codes. It returns when the mail server has taken the mail; an error is tried again while the
// code is good.
type CodeSender interface {
	SendCode(ctx context.Context, m CodeMail) error
}

// An InvitationSender sends invitations, likewise.
type InvitationSender interface {
	SendInvitation(ctx context.Context, m InvitationMail) error
}

// A Sender sends all mails of this package.
type Sender interface {
	CodeSender
	InvitationSender
}

// A Begin asks for a code.
type Begin struct {
	Email   string // as typed
	Browser string // NewBrowser's, from a cookie
	IP      netip.Addr
	Locale  string // one of Locales, "" or another: English
}

// A Finish brings the code.
type Finish struct {
	Email, Browser, Code string
	Replaces             string // the token of the sign-in that the browser had, "" for none: it ends
}

// Locales are the languages that people can choose; the first is the default.
var Locales = []string{"en", "zh-CN"}
