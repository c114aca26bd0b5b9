package httpapi

import (
	"net/http"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// A Me is who asks, as this server knows them.
type Me struct {
	Customer string   `json:"customer_id"`
	Name     string   `json:"name,omitempty"`
	Locale   string   `json:"locale,omitempty" enum:"en,zh-CN"`
	Emails   []string `json:"emails" doc:"verified; mails go to the first"`
	Via      string   `json:"via" enum:"cookie,bearer,device" doc:"how this request said who asks"`
	Roles    []MyRole `json:"roles"`
}

// A MyRole is what somebody may do for an organizer.
type MyRole struct {
	Organizer string `json:"organizer_id"`
	Name      string `json:"name" doc:"the organizer's"`
	Role      string `json:"role" enum:"owner,operator,viewer,door"`
}

// A MeChange changes what is there.
type MeChange struct {
	Name   *string `json:"name,omitempty" doc:"empty takes it away"`
	Locale *string `json:"locale,omitempty" enum:"en,zh-CN,"`
}

// An InvitationToken is from the mail of an invitation.
type InvitationToken struct {
	Token string `json:"token"`
}

func (a *api) meRoutes() []route {
	return []route{
		{Method: "GET", Path: "/v1/me", ID: "me_get", Who: signedIn, Tag: "People", Summary: "Who you are here, and your roles", Answer: Me{}, handle: a.meGet},
		{Method: "PATCH", Path: "/v1/me", ID: "me_change", Who: signedIn, Tag: "People", Summary: "Change your name or language",
			Body: MeChange{}, Answer: Me{}, Faults: []fault.Code{fault.Invalid}, handle: a.meChange},
		{Method: "POST", Path: "/v1/invitations/accept", ID: "invitation_accept", Who: signedIn, Tag: "People", Summary: "Take a role that you were invited to",
			Notes: "Sign in with the address that the invitation was sent to. A mightier role that you have already stays.",
			Body:  InvitationToken{}, Answer: MyRole{}, Faults: []fault.Code{fault.NotFound}, handle: a.invitationAccept},
	}
}

// noProfile is answered where there is no store of people.
var noProfile = fault.New(fault.NotFound, "nothing is kept of people here")

func (a *api) meGet(w http.ResponseWriter, r *request) error {
	if a.People == nil {
		return noProfile
	}
	p, err := a.People.Profile(r.Context(), r.customer)
	if err != nil {
		return err
	}
	me := Me{Customer: r.customer.Text(id.Customer), Name: p.Name, Locale: p.Locale, Emails: []string{}, Via: string(r.person.Via)}
	for _, e := range p.Emails {
		me.Emails = append(me.Emails, string(e))
	}
	if me.Roles, err = a.rolesOf(r); err != nil {
		return err
	}
	return write(w, http.StatusOK, me)
}

func (a *api) rolesOf(r *request) ([]MyRole, error) {
	all := []MyRole{}
	memberships, err := a.People.RolesOf(r.Context(), r.customer)
	for _, m := range memberships {
		o, err := a.Catalog.Organizer(r.Context(), m.Organizer)
		if err != nil {
			return nil, err
		}
		all = append(all, MyRole{Organizer: m.Organizer.Text(id.Org), Name: o.Name, Role: string(m.Role)})
	}
	return all, err
}

func (a *api) meChange(w http.ResponseWriter, r *request) error {
	var body MeChange
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	if a.People == nil {
		return noProfile
	}
	p, err := a.People.Profile(r.Context(), r.customer)
	if err != nil {
		return err
	}
	if body.Name != nil {
		p.Name = *body.Name
	}
	if body.Locale != nil {
		p.Locale = *body.Locale
	}
	if err := a.People.SetProfile(r.Context(), r.customer, p.Name, p.Locale); err != nil {
		return err
	}
	return a.meGet(w, r)
}

func (a *api) invitationAccept(w http.ResponseWriter, r *request) error {
	var body InvitationToken
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	if a.People == nil {
		return noProfile
	}
	m, err := a.People.AcceptInvitation(r.Context(), r.customer, body.Token)
	if err != nil {
		return err
	}
	o, err := a.Catalog.Organizer(r.Context(), m.Organizer)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, MyRole{Organizer: m.Organizer.Text(id.Org), Name: o.Name, Role: string(m.Role)})
}
