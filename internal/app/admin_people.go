package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
)

// What commands do with organizers and their people. The operator may do everything (identity.Actor's zero value), and the
// audit log says that it was the operator's command.

// An AdminOrganizer is an organizer as commands show it.
type AdminOrganizer struct {
	ID   string `json:"organizer_id"`
	Key  string `json:"key"`
	Name string `json:"name"`
}

// An AdminMember is who has a role with an organizer.
type AdminMember struct {
	Customer string    `json:"customer_id"`
	Role     string    `json:"role"`
	Name     string    `json:"name"`
	Emails   []string  `json:"emails"`
	Since    time.Time `json:"since"`
}

// An AdminInvitation is an open invitation; Token is there where it was just made.
type AdminInvitation struct {
	ID      string    `json:"invitation_id"`
	Email   string    `json:"email"`
	Role    string    `json:"role"`
	Expires time.Time `json:"expires_at"`
	Token   string    `json:"token,omitempty"`
}

// AdminPeople are an organizer's members and open invitations.
type AdminPeople struct {
	Members     []AdminMember     `json:"members"`
	Invitations []AdminInvitation `json:"invitations"`
}

// An OrganizerRequest makes an organizer.
type OrganizerRequest struct {
	Key   string `json:"key"`
	Name  string `json:"name"`
	Owner string `json:"owner"` // an e-mail address; "": nobody yet
}

// A MemberRequest names somebody, by an e-mail address or a customer's id, and a role.
type MemberRequest struct {
	Who    string `json:"who"`
	Role   string `json:"role,omitempty"`
	Locale string `json:"locale,omitempty"`
}

// commandBodyMax bounds the body of a command, but for files.
const commandBodyMax = 64 << 10

// openPeople makes the service of people, which the caller runs where its mails are to be sent.
func (a *App) openPeople(ctx context.Context, mail identity.Sender) (*identity.Service, error) {
	return identity.NewService(ctx, identity.ServiceOptions{Store: a.Control.People(), Keys: a.Keys, Mail: mail, NewID: a.NewID, Log: a.Log})
}

// logged writes into the audit log what a command has done, by the words that the API has for it. What was done is done: a log
// that is away is an error of ours. organizer is 0 for what is the whole program's.
func (a *App) logged(ctx context.Context, organizer id.ID, action, target string) {
	number, err := a.NewID(0)
	if err == nil {
		err = a.Control.People().Write(ctx, identity.Entry{
			ID: number, At: time.Now().UTC().Truncate(time.Millisecond), Organizer: organizer, Action: action, Target: target,
		})
	}
	if err != nil {
		a.Log.ErrorContext(ctx, "alert: the audit log could not be written", "action", action, "target", target, "error", err)
	}
}

// noMail is the sender of a program that sends none: the command shows what a mail would bring.
type noMail struct{}

var errNoMail = errors.New("this program sends no mail")

func (noMail) SendCode(context.Context, identity.CodeMail) error             { return errNoMail }
func (noMail) SendInvitation(context.Context, identity.InvitationMail) error { return errNoMail }

// peopleRoutes adds the commands about organizers. people is the running service, nil where none runs.
func (a *App) peopleRoutes(mux *http.ServeMux, people *identity.Service) {
	p := &adminPeople{a: a, service: func() (*identity.Service, error) { return people, nil }}
	if people == nil {
		p.service = sync.OnceValues(func() (*identity.Service, error) { return a.openPeople(context.Background(), noMail{}) })
	}
	for pattern, do := range map[string]func(*http.Request, *identity.Service) (any, error){
		"GET /organizers":                            p.list,
		"POST /organizers":                           p.add,
		"GET /organizers/{key}/members":              p.members,
		"POST /organizers/{key}/members":             p.setRole,
		"POST /organizers/{key}/members/remove":      p.removeRole,
		"POST /organizers/{key}/invitations":         p.invite,
		"DELETE /organizers/{key}/invitations/{inv}": p.withdraw,
	} {
		mux.HandleFunc(pattern, a.admin(func(r *http.Request) (any, error) {
			s, err := p.service()
			if err != nil {
				return nil, err
			}
			return do(r, s)
		}))
	}
}

type adminPeople struct {
	a       *App
	service func() (*identity.Service, error)
}

func readBody(r *http.Request, into any) error {
	if err := json.NewDecoder(io.LimitReader(r.Body, commandBodyMax)).Decode(into); err != nil {
		return fault.New(fault.BadRequest, "the command's body cannot be read: %v", err)
	}
	return nil
}

func (p *adminPeople) organizer(r *http.Request) (catalog.Organizer, error) {
	return p.a.organizerByKey(r.Context(), r.PathValue("key"))
}

// organizerByKey is one. Fault: not_found.
func (a *App) organizerByKey(ctx context.Context, key string) (catalog.Organizer, error) {
	all, err := a.Control.Catalog().Organizers(ctx)
	for _, o := range all {
		if o.Key == key {
			return o, nil
		}
	}
	if err == nil {
		err = fault.New(fault.NotFound, "there is no organizer %q; see onsale organizer list", key)
	}
	return catalog.Organizer{}, err
}

// organizerOrHouse is the organizer of a key, "" for the house.
func (a *App) organizerOrHouse(ctx context.Context, key string) (catalog.Organizer, error) {
	if key == "" {
		return a.organizer(ctx)
	}
	return a.organizerByKey(ctx, key)
}

func adminOrganizer(o catalog.Organizer) AdminOrganizer {
	return AdminOrganizer{ID: o.ID.Text(id.Org), Key: o.Key, Name: o.Name}
}

func (p *adminPeople) list(r *http.Request, _ *identity.Service) (any, error) {
	all, err := p.a.Control.Catalog().Organizers(r.Context())
	shown := make([]AdminOrganizer, 0, len(all))
	for _, o := range all {
		shown = append(shown, adminOrganizer(o))
	}
	return shown, err
}

// add makes an organizer and its owner. Again is harmless: what a crash left half is finished.
func (p *adminPeople) add(r *http.Request, s *identity.Service) (any, error) {
	var in OrganizerRequest
	if err := readBody(r, &in); err != nil {
		return nil, err
	}
	var owner identity.Email
	if in.Owner != "" { // before anything is made
		var err error
		if owner, err = identity.ParseEmail(in.Owner); err != nil {
			return nil, err
		}
	}
	ctx := r.Context()
	o, err := p.a.organizerByKey(ctx, in.Key)
	found := err == nil
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return nil, err
	}
	if found && o.Name != in.Name {
		return nil, fault.New(fault.Conflict, "there is an organizer %q already, called %q: give another key, or that name", o.Key, o.Name)
	}
	if o, err = p.a.Catalog.EnsureOrganizer(ctx, in.Key, in.Name); err != nil {
		return nil, err
	}
	if !found {
		if err := s.Record(ctx, identity.Actor{}, o.ID, "organizer.add", o.ID.Text(id.Org), nil); err != nil {
			return nil, err
		}
	}
	if owner != "" {
		customer, err := s.EnsureCustomer(ctx, owner)
		if err != nil {
			return nil, err
		}
		if err := s.SetRole(ctx, identity.Actor{}, customer, o.ID, identity.Owner); err != nil {
			return nil, err
		}
	}
	return adminOrganizer(o), nil
}

func (p *adminPeople) members(r *http.Request, s *identity.Service) (any, error) {
	o, err := p.organizer(r)
	if err != nil {
		return nil, err
	}
	return people(r.Context(), s, o)
}

func people(ctx context.Context, s *identity.Service, o catalog.Organizer) (AdminPeople, error) {
	shown := AdminPeople{Members: []AdminMember{}, Invitations: []AdminInvitation{}}
	members, err := s.Members(ctx, o.ID)
	if err != nil {
		return shown, err
	}
	for _, m := range members {
		member := AdminMember{Customer: m.Customer.Text(id.Customer), Role: string(m.Role), Name: m.Name, Emails: []string{}, Since: m.Since}
		for _, e := range m.Emails {
			member.Emails = append(member.Emails, string(e))
		}
		shown.Members = append(shown.Members, member)
	}
	open, err := s.Invitations(ctx, o.ID)
	for _, i := range open {
		shown.Invitations = append(shown.Invitations, adminInvitation(i))
	}
	return shown, err
}

func adminInvitation(i identity.Invitation) AdminInvitation {
	return AdminInvitation{ID: i.Text(), Email: string(i.Email), Role: string(i.Role), Expires: i.Expires}
}

// who reads an address or a customer's id. An address of nobody becomes a customer where make is set.
func who(ctx context.Context, s *identity.Service, text string, make bool) (id.ID, error) {
	if strings.HasPrefix(text, id.Customer+"_") {
		customer, err := id.Parse(id.Customer, text)
		if err != nil {
			return 0, fault.New(fault.Invalid, "%q is not a customer's id; see onsale organizer members", text)
		}
		return customer, nil
	}
	email, err := identity.ParseEmail(text)
	if err != nil {
		return 0, err
	}
	if make {
		return s.EnsureCustomer(ctx, email)
	}
	return s.CustomerOf(ctx, email)
}

func (p *adminPeople) setRole(r *http.Request, s *identity.Service) (any, error) {
	return p.change(r, s, true, func(ctx context.Context, customer, organizer id.ID, role identity.Role) error {
		return s.SetRole(ctx, identity.Actor{}, customer, organizer, role)
	})
}

func (p *adminPeople) removeRole(r *http.Request, s *identity.Service) (any, error) {
	return p.change(r, s, false, func(ctx context.Context, customer, organizer id.ID, _ identity.Role) error {
		return s.RemoveRole(ctx, identity.Actor{}, customer, organizer)
	})
}

func (p *adminPeople) change(r *http.Request, s *identity.Service, giving bool, do func(ctx context.Context, customer, organizer id.ID, role identity.Role) error) (any, error) {
	o, err := p.organizer(r)
	if err != nil {
		return nil, err
	}
	var in MemberRequest
	if err := readBody(r, &in); err != nil {
		return nil, err
	}
	role := identity.Role(in.Role)
	if giving && !role.Known() { // before a customer is made for it
		return nil, fault.New(fault.Invalid, "the role must be one of %v", identity.Roles)
	}
	customer, err := who(r.Context(), s, in.Who, giving)
	if err != nil {
		return nil, err
	}
	if err := do(r.Context(), customer, o.ID, role); err != nil {
		return nil, err
	}
	return people(r.Context(), s, o)
}

func (p *adminPeople) invite(r *http.Request, s *identity.Service) (any, error) {
	o, err := p.organizer(r)
	if err != nil {
		return nil, err
	}
	var in MemberRequest
	if err := readBody(r, &in); err != nil {
		return nil, err
	}
	i, token, err := s.Invite(r.Context(), identity.Actor{}, identity.Invite{
		Organizer: o.ID, Name: o.Name, Email: in.Who, Role: identity.Role(in.Role), Locale: in.Locale,
	})
	shown := adminInvitation(i)
	shown.Token = token
	return shown, err
}

func (p *adminPeople) withdraw(r *http.Request, s *identity.Service) (any, error) {
	o, err := p.organizer(r)
	if err != nil {
		return nil, err
	}
	number, err := identity.ParseInvitation(r.PathValue("inv"))
	if err != nil {
		return nil, fault.New(fault.NotFound, "%q is not an invitation's id; see onsale organizer members", r.PathValue("inv"))
	}
	if err := s.WithdrawInvitation(r.Context(), identity.Actor{}, o.ID, number); err != nil {
		return nil, err
	}
	return people(r.Context(), s, o)
}
