package httpapi

import (
	"net/http"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
)

// A Member is who has a role with an organizer.
type Member struct {
	Customer string    `json:"customer_id"`
	Name     string    `json:"name,omitempty"`
	Emails   []string  `json:"emails"`
	Role     string    `json:"role" enum:"owner,operator,viewer,door"`
	Since    time.Time `json:"since"`
}

// MemberList are an organizer's.
type MemberList struct {
	Members []Member `json:"members"`
}

// A RoleEdit gives a role.
type RoleEdit struct {
	Role string `json:"role" enum:"owner,operator,viewer,door"`
}

// An InvitationRequest offers a role by mail.
type InvitationRequest struct {
	Email  string `json:"email"`
	Role   string `json:"role" enum:"owner,operator,viewer,door"`
	Locale string `json:"locale,omitempty" enum:"en,zh-CN" doc:"the language of the mail"`
}

// An Invitation is one that is open. What opens it is in the mail alone.
type Invitation struct {
	ID      string    `json:"invitation_id"`
	Email   string    `json:"email"`
	Role    string    `json:"role" enum:"owner,operator,viewer,door"`
	By      string    `json:"invited_by,omitempty" doc:"customer_id; missing: the operator of this server"`
	Created time.Time `json:"created_at"`
	Expires time.Time `json:"expires_at"`
}

// InvitationList are an organizer's open ones.
type InvitationList struct {
	Invitations []Invitation `json:"invitations"`
}

// A LogEntry is one change that somebody made.
type LogEntry struct {
	At      time.Time         `json:"at"`
	Actor   string            `json:"customer_id,omitempty" doc:"who; missing: the operator of this server"`
	Role    string            `json:"role,omitempty"`
	Action  string            `json:"action"`
	Target  string            `json:"target,omitempty"`
	Details map[string]string `json:"details,omitempty"`
}

// LogList is a page of the audit log.
type LogList struct {
	Entries []LogEntry `json:"entries"`
	Next    string     `json:"next_cursor,omitempty"`
}

func (a *api) organizerPeopleRoutes() []route {
	const tag = "Organizers"
	mine := atLeast(identity.Owner, "organizer_id")
	return []route{
		{Method: "GET", Path: organizerPath + "/members", ID: "members_list", Who: mine, Tag: tag, Summary: "Who may do what", Answer: MemberList{}, handle: a.membersList},
		{Method: "PUT", Path: organizerPath + "/members/{customer_id}", ID: "member_set", Who: mine, Tag: tag, Summary: "Give somebody another role",
			Notes: "Of who has a role already; others are invited.", Body: RoleEdit{}, Answer: MemberList{}, Faults: []fault.Code{fault.Invalid, fault.Conflict}, handle: a.memberSet},
		{Method: "DELETE", Path: organizerPath + "/members/{customer_id}", ID: "member_remove", Who: mine, Tag: tag, Summary: "Take somebody's role away",
			Answer: MemberList{}, Faults: []fault.Code{fault.Conflict}, handle: a.memberRemove},
		{Method: "GET", Path: organizerPath + "/invitations", ID: "invitations_list", Who: mine, Tag: tag, Summary: "Open invitations", Answer: InvitationList{}, handle: a.invitationsList},
		{Method: "POST", Path: organizerPath + "/invitations", ID: "invitation_make", Who: mine, Tag: tag, Summary: "Offer a role by mail",
			Notes: "An earlier invitation of the same address ends: a repeat sends another mail, and only its token is good.",
			Body:  InvitationRequest{}, Answer: Invitation{}, Status: []int{201}, Faults: []fault.Code{fault.Invalid, fault.LimitReached}, handle: a.invitationMake},
		{Method: "DELETE", Path: organizerPath + "/invitations/{invitation_id}", ID: "invitation_withdraw", Who: mine, Tag: tag, Summary: "Take an invitation back",
			Answer: InvitationList{}, handle: a.invitationWithdraw},
		{Method: "GET", Path: organizerPath + "/log", ID: "audit_log", Who: mine, Tag: tag, Summary: "Who changed what, newest first",
			Query: []parameter{pageQuery}, Answer: LogList{}, Faults: []fault.Code{fault.Invalid}, handle: a.auditLog},
	}
}

// actor is who changes something, for the audit log.
func (r *request) actor() identity.Actor { return identity.Actor{Customer: r.customer, Role: r.role} }

func (a *api) membersList(w http.ResponseWriter, r *request) error {
	if a.People == nil {
		return noProfile
	}
	members, err := a.People.Members(r.Context(), r.organizer)
	if err != nil {
		return err
	}
	list := MemberList{Members: []Member{}}
	for _, m := range members {
		shown := Member{Customer: m.Customer.Text(id.Customer), Name: m.Name, Emails: []string{}, Role: string(m.Role), Since: m.Since}
		for _, e := range m.Emails {
			shown.Emails = append(shown.Emails, string(e))
		}
		list.Members = append(list.Members, shown)
	}
	return write(w, http.StatusOK, list)
}

// memberOf is the member that the path names; who has no role with the organizer is nobody here.
func (a *api) memberOf(r *request) (id.ID, error) {
	if a.People == nil {
		return 0, noProfile
	}
	number, err := pathID(r, "customer_id", id.Customer, fault.NotFound)
	if err != nil {
		return 0, fault.New(fault.NotFound, "")
	}
	role, err := a.People.Role(r.Context(), number, r.organizer)
	if err == nil && role == "" {
		err = fault.New(fault.NotFound, "")
	}
	return number, err
}

func (a *api) memberSet(w http.ResponseWriter, r *request) error {
	var body RoleEdit
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	number, err := a.memberOf(r)
	if err != nil {
		return err
	}
	if err := a.People.SetRole(r.Context(), r.actor(), number, r.organizer, identity.Role(body.Role)); err != nil {
		return err
	}
	return a.membersList(w, r)
}

func (a *api) memberRemove(w http.ResponseWriter, r *request) error {
	number, err := a.memberOf(r)
	if err != nil {
		return err
	}
	if err := a.People.RemoveRole(r.Context(), r.actor(), number, r.organizer); err != nil {
		return err
	}
	return a.membersList(w, r)
}

func showInvitation(i *identity.Invitation) Invitation {
	shown := Invitation{ID: i.Text(), Email: string(i.Email), Role: string(i.Role), Created: i.Created, Expires: i.Expires}
	if i.By != 0 {
		shown.By = i.By.Text(id.Customer)
	}
	return shown
}

func (a *api) invitationsList(w http.ResponseWriter, r *request) error {
	if a.People == nil {
		return noProfile
	}
	open, err := a.People.Invitations(r.Context(), r.organizer)
	if err != nil {
		return err
	}
	list := InvitationList{Invitations: []Invitation{}}
	for i := range open {
		list.Invitations = append(list.Invitations, showInvitation(&open[i]))
	}
	return write(w, http.StatusOK, list)
}

func (a *api) invitationMake(w http.ResponseWriter, r *request) error {
	var body InvitationRequest
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	if a.People == nil || !a.Codes {
		return fault.New(fault.NotFound, "no mail is sent from here: use onsale organizer invite")
	}
	o, err := a.Catalog.Organizer(r.Context(), r.organizer)
	if err != nil {
		return err
	}
	made, _, err := a.People.Invite(r.Context(), r.actor(), identity.Invite{
		Organizer: o.ID, Name: o.Name, Email: body.Email, Role: identity.Role(body.Role), Locale: body.Locale,
	})
	if err != nil {
		return err
	}
	return write(w, http.StatusCreated, showInvitation(&made))
}

func (a *api) invitationWithdraw(w http.ResponseWriter, r *request) error {
	if a.People == nil {
		return noProfile
	}
	number, err := identity.ParseInvitation(r.PathValue("invitation_id"))
	if err != nil {
		return fault.New(fault.NotFound, "")
	}
	if err := a.People.WithdrawInvitation(r.Context(), r.actor(), r.organizer, number); err != nil {
		return err
	}
	return a.invitationsList(w, r)
}

const (
	logPage   = 50
	logPrefix = "log"
)

func (a *api) auditLog(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	before, err := cursorID(asked.Get("cursor"), logPrefix)
	if err != nil {
		return err
	}
	if a.People == nil {
		return noProfile
	}
	entries, err := a.People.AuditLog(r.Context(), r.organizer, before, logPage+1)
	if err != nil {
		return err
	}
	list := LogList{Entries: []LogEntry{}}
	for _, e := range entries[:min(len(entries), logPage)] {
		shown := LogEntry{At: e.At, Role: string(e.Role), Action: e.Action, Target: e.Target, Details: e.Details}
		if e.Actor != 0 {
			shown.Actor = e.Actor.Text(id.Customer)
		}
		list.Entries = append(list.Entries, shown)
	}
	if len(entries) > logPage {
		list.Next = entries[logPage-1].ID.Text(logPrefix)
	}
	return write(w, http.StatusOK, list)
}
