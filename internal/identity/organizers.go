package identity

import (
	"context"
	"errors"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// Of invitations.
const (
	InvitationFor  = 7 * 24 * time.Hour
	InvitationsMax = 100 // open ones of an organizer
	AuditPageMax   = 500
)

// An Actor is who changes something, and in which role; the zero value is the operator's command.
type Actor struct {
	Customer id.ID
	Role     Role
}

// RolesOf are a customer's roles.
func (s *Service) RolesOf(ctx context.Context, customer id.ID) ([]Membership, error) {
	return s.o.Store.RolesOf(ctx, customer)
}

// Role is a customer's role with an organizer, "" for none. One that was changed on another node may be believed for
// roleWithin; one that is known here goes on while the control database is away: a door checks in.
func (s *Service) Role(ctx context.Context, customer, organizer id.ID) (Role, error) {
	return s.roles.Load(ctx, member{customer, organizer}, func(ctx context.Context) (Role, error) {
		return s.o.Store.Role(ctx, customer, organizer)
	})
}

// member names a role.
type member struct{ customer, organizer id.ID }

// Members are who has a role with an organizer.
func (s *Service) Members(ctx context.Context, organizer id.ID) ([]Member, error) {
	return s.o.Store.Members(ctx, organizer)
}

// SetRole gives a customer a role with an organizer, in place of the one they have. Faults: invalid; not_found; conflict
// (the last owner).
func (s *Service) SetRole(ctx context.Context, by Actor, customer, organizer id.ID, role Role) error {
	if err := checkRole(role); err != nil {
		return err
	}
	e, err := s.entry(by, organizer, "role.set", customer.Text(id.Customer), map[string]string{"role": string(role)})
	if err != nil {
		return err
	}
	err = s.o.Store.PutRole(ctx, Membership{Customer: customer, Organizer: organizer, Role: role, Since: e.At}, e)
	s.roles.Forget(member{customer, organizer})
	return roleFault(err)
}

// RemoveRole takes it away. Faults: not_found; conflict (the last owner).
func (s *Service) RemoveRole(ctx context.Context, by Actor, customer, organizer id.ID) error {
	e, err := s.entry(by, organizer, "role.remove", customer.Text(id.Customer), nil)
	if err != nil {
		return err
	}
	err = s.o.Store.RemoveRole(ctx, customer, organizer, e)
	s.roles.Forget(member{customer, organizer})
	return roleFault(err)
}

func checkRole(role Role) error {
	if !role.Known() {
		return &fault.Error{Code: fault.Invalid, Field: "role", Detail: "the role must be one of owner, operator, viewer, door"}
	}
	return nil
}

func roleFault(err error) error {
	if errors.Is(err, ErrLastOwner) {
		return fault.New(fault.Conflict, "this is the organizer's last owner: make somebody else an owner first")
	}
	return known(err, "there is no such customer, or no such organizer")
}

// An Invite is an invitation to be.
type Invite struct {
	Organizer id.ID
	Name      string // the organizer's, for the mail
	Email     string // as typed
	Role      Role
	Locale    string
}

// Invite offers a role by mail to whoever can read an address's mail, and signs in with that address. An earlier invitation
// of the address ends. The token is in the mail; a command may show it. Faults: invalid; not_found; limit_reached; busy.
func (s *Service) Invite(ctx context.Context, by Actor, v Invite) (Invitation, string, error) {
	email, err := ParseEmail(v.Email)
	if err != nil {
		return Invitation{}, "", err
	}
	if err := checkRole(v.Role); err != nil {
		return Invitation{}, "", err
	}
	number, err := s.o.NewID(0)
	if err != nil {
		return Invitation{}, "", err
	}
	e, err := s.entry(by, v.Organizer, "invitation.make", invitationText(number), map[string]string{"role": string(v.Role)})
	if err != nil {
		return Invitation{}, "", err
	}
	if !s.mails.take() {
		return Invitation{}, "", &fault.Error{Code: fault.Busy, Detail: "very many mails are waiting to be sent", RetryAfter: 30 * time.Second}
	}
	token := randomText(tokenBytes)
	i := Invitation{
		ID: number, Token: hashOf(token), Organizer: v.Organizer, Email: email, Role: v.Role, By: by.Customer,
		Created: e.At, Expires: e.At.Add(InvitationFor),
	}
	if err := s.o.Store.PutInvitation(ctx, i, InvitationsMax, e); err != nil {
		s.mails.leave()
		if errors.Is(err, ErrTooMany) {
			return Invitation{}, "", fault.New(fault.LimitReached, "%d invitations are open: take some back first", InvitationsMax)
		}
		return Invitation{}, "", known(err, "there is no such organizer")
	}
	mail := InvitationMail{To: email, Organizer: v.Organizer, Name: v.Name, Role: v.Role, Token: token, Locale: locale(v.Locale), Expires: i.Expires}
	s.mails.put(mailJob{kind: "invitation", expires: i.Expires, send: func(ctx context.Context) error { return s.o.Mail.SendInvitation(ctx, mail) }})
	return i, token, nil
}

// invitationPrefix is how people see an invitation's id.
const invitationPrefix = "inv"

func invitationText(number id.ID) string { return number.Text(invitationPrefix) }

// ParseInvitation reads what Invitation.Text wrote.
func ParseInvitation(text string) (id.ID, error) { return id.Parse(invitationPrefix, text) }

// Text is the invitation's id as people see it.
func (i Invitation) Text() string { return invitationText(i.ID) }

// Invitations are an organizer's open ones.
func (s *Service) Invitations(ctx context.Context, organizer id.ID) ([]Invitation, error) {
	return s.o.Store.Invitations(ctx, organizer, s.o.Now())
}

// WithdrawInvitation takes one back. Fault: not_found.
func (s *Service) WithdrawInvitation(ctx context.Context, by Actor, organizer, number id.ID) error {
	e, err := s.entry(by, organizer, "invitation.withdraw", invitationText(number), nil)
	if err != nil {
		return err
	}
	return known(s.o.Store.RemoveInvitation(ctx, organizer, number, e), "there is no such invitation")
}

// AcceptInvitation gives a customer the role that an invitation offers, once, where its address is theirs; a mightier role
// that they have stays. Fault: not_found (also where it has expired, or is another's: which is not told).
func (s *Service) AcceptInvitation(ctx context.Context, customer id.ID, token string) (Membership, error) {
	const none = "there is no such invitation for you: it may have expired, or be for another address; sign in with the address it was sent to"
	if !isRandomText(token, tokenBytes) {
		return Membership{}, fault.New(fault.NotFound, none)
	}
	e, err := s.entry(Actor{Customer: customer}, 0, "invitation.accept", customer.Text(id.Customer), nil)
	if err != nil {
		return Membership{}, err
	}
	m, err := s.o.Store.AcceptInvitation(ctx, hashOf(token), customer, e.At, e)
	s.roles.Forget(member{customer, m.Organizer})
	return m, known(err, none)
}

// entry is an entry of the audit log, to be written with the change that it tells of.
func (s *Service) entry(by Actor, organizer id.ID, action, target string, details map[string]string) (Entry, error) {
	number, err := s.o.NewID(0)
	if err != nil {
		return Entry{}, err
	}
	return Entry{
		ID: number, At: s.o.Now().UTC().Truncate(time.Millisecond), Actor: by.Customer, Organizer: organizer, Role: by.Role,
		Action: action, Target: target, Details: details,
	}, nil
}

// Record writes what somebody changed for an organizer: ids and our own words only (E10).
func (s *Service) Record(ctx context.Context, by Actor, organizer id.ID, action, target string, details map[string]string) error {
	e, err := s.entry(by, organizer, action, target, details)
	if err != nil {
		return err
	}
	return s.o.Store.Write(ctx, e)
}

// AuditLog is an organizer's log (0: everybody's), newest first, below `before` (0: from the newest), at most max entries.
func (s *Service) AuditLog(ctx context.Context, organizer, before id.ID, max int) ([]Entry, error) {
	return s.o.Store.List(ctx, organizer, before, min(max, AuditPageMax))
}
