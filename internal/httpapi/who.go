package httpapi

import (
	"context"
	"errors"
	"strings"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
)

// A who says who may use a route. It is the one place where that is said: allow checks it before the handler runs, the
// OpenAPI document shows it, and the walk (walk_test.go) tries everybody against it. The zero value is nobody: a route
// whose entry was forgotten is served to nobody, and a test names it.
type who struct {
	kind  whoKind
	role  identity.Role // of member
	thing string        // the path's parameter that names whose thing it is, or of which organizer
	// behind is what may stand behind the id in the path, ".png".
	behind string
}

type whoKind uint8

const (
	nobody whoKind = iota
	everybody
	either   // everybody; who is signed in is looked at
	customer // who is signed in
	owner    // the customer whose thing it is
	member   // who has a role with the thing's organizer
	staff    // who has any
)

var (
	// public routes are for everybody; whoever is signed in is not looked at.
	public = who{kind: everybody}
	// visitor routes are for everybody, and are told who is signed in.
	visitor = who{kind: either}
	// signedIn is any customer.
	signedIn = who{kind: customer}
)

// ownerOf is the customer to whom the thing belongs that this parameter of the path names. Others get wrong_customer.
func ownerOf(parameter string) who { return who{kind: owner, thing: parameter} }

// atLeast is whoever may, for the organizer of the thing that this parameter of the path names, what the role may (E5).
// Who has no role there gets what is answered where the thing does not exist; who has a smaller one, role_missing.
func atLeast(role identity.Role, parameter string) who {
	return who{kind: member, role: role, thing: parameter}
}

// anyRole is whoever has a role with the organizer of the thing that this parameter of the path names: what they are shown
// depends on it (r.role).
func anyRole(parameter string) who { return who{kind: staff, thing: parameter} }

// signedIn says whether a person is needed.
func (w who) signedIn() bool { return w.kind >= customer }

// String is the entry as the documents show it.
func (w who) String() string {
	switch w.kind {
	case everybody, either:
		return "everybody"
	case customer:
		return "a signed-in customer"
	case owner:
		return "the customer of " + w.thing
	case member:
		return string(w.role) + " of the organizer of " + w.thing
	case staff:
		return "any role with the organizer of " + w.thing
	}
	return "nobody"
}

// faults are what a request may be answered because of its who.
func (w who) faults() (all []fault.Code) {
	if w.kind == either {
		all = append(all, fault.TokenInvalid)
	}
	if w.signedIn() {
		all = append(all, fault.SignInRequired, fault.TokenInvalid)
	}
	if w.thing != "" {
		all = append(all, things[w.thing].unknown)
	}
	switch w.kind {
	case owner:
		all = append(all, fault.WrongCustomer)
	case member:
		all = append(all, fault.RoleMissing)
	}
	return all
}

// Roles knows who may do what for which organizer.
type Roles interface {
	// Role is a customer's with an organizer, "" for none.
	Role(ctx context.Context, customer, organizer id.ID) (identity.Role, error)
}

// A belonging is whose a thing is. Of what belongs to a customer the event says which organizer's it is, too.
type belonging struct {
	customer, event, organizer id.ID
}

// A thing is a kind of things that paths name.
type thing struct {
	prefix  string     // of its ids
	unknown fault.Code // where there is none, and for those whom it does not concern
	// find reads one, and keeps it in the request for the handler. ledger.ErrNotFound.
	find func(a *api, r *request, number id.ID) (belonging, error)
}

// things are all that a who can name, by the parameter of the path.
var things = map[string]thing{
	"organizer_id": {id.Org, fault.NotFound, func(_ *api, _ *request, number id.ID) (belonging, error) {
		return belonging{organizer: number}, nil // one that does not exist has no members
	}},
	"show_id": {id.Show, fault.NotFound, func(a *api, r *request, number id.ID) (belonging, error) {
		s, err := a.Catalog.Show(r.Context(), number)
		if err != nil {
			return belonging{}, err
		}
		return belonging{organizer: s.Organizer}, nil
	}},
	"event_id": {id.Event, fault.EventUnknown, func(_ *api, _ *request, number id.ID) (belonging, error) {
		return belonging{event: number}, nil
	}},
	"hold_id": {id.Hold, fault.HoldUnknown, func(a *api, r *request, number id.ID) (belonging, error) {
		h, err := a.Ledger.Hold(r.Context(), number)
		r.hold = &h
		return belonging{customer: h.Customer, event: h.Event}, err
	}},
	"booking_id": {id.Order, fault.OrderUnknown, func(a *api, r *request, number id.ID) (belonging, error) {
		o, err := a.Ledger.Order(r.Context(), number)
		r.order = &o
		return belonging{customer: o.Customer, event: o.Event}, err
	}},
	"ticket_id": {id.Ticket, fault.TicketUnknown, func(a *api, r *request, number id.ID) (belonging, error) {
		t, err := a.Ledger.Ticket(r.Context(), number)
		r.ticket = &t
		return belonging{customer: t.Customer, event: t.Event}, err
	}},
	"refund_id": {id.Refund, fault.RefundUnknown, func(a *api, r *request, number id.ID) (belonging, error) {
		f, err := a.Ledger.Refund(r.Context(), number)
		if err != nil {
			return belonging{}, err
		}
		r.refund = &f
		o, err := a.Ledger.Order(r.Context(), f.Order)
		return belonging{customer: o.Customer, event: o.Event}, err
	}},
}

// allow is nil where the person of the request may use the route. It is the only check of who may do what.
func (a *api) allow(r *request, w who) error {
	switch w.kind {
	case everybody, either, customer: // the person is there: prepare saw to it
		return nil
	case owner, member, staff:
	default:
		return fault.New(fault.NotFound, "")
	}
	kind := things[w.thing]
	number, err := id.Parse(kind.prefix, strings.TrimSuffix(r.PathValue(w.thing), w.behind))
	if err != nil {
		return fault.New(kind.unknown, "")
	}
	found, err := kind.find(a, r, number)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return fault.New(kind.unknown, "")
	case err != nil:
		return err
	case w.kind == owner:
		if found.customer == 0 || found.customer != r.customer {
			return fault.New(fault.WrongCustomer, "")
		}
		return nil
	}
	return a.allowMember(r, w, found)
}

func (a *api) allowMember(r *request, w who, found belonging) error {
	unknown := things[w.thing].unknown
	if found.organizer == 0 {
		e, err := a.Catalog.Event(r.Context(), found.event)
		if fault.CodeOf(err) == fault.EventUnknown {
			return fault.New(unknown, "")
		}
		if err != nil {
			return err
		}
		r.event, found.organizer = e, e.Organizer
	}
	if found.organizer == 0 || a.Roles == nil {
		return fault.New(unknown, "")
	}
	role, err := a.Roles.Role(r.Context(), r.customer, found.organizer)
	switch {
	case err != nil:
		return err
	case !role.Known():
		return fault.New(unknown, "")
	case w.kind == member && !role.May(w.role):
		return fault.New(fault.RoleMissing, "this needs the role %s, and yours is %s", w.role, role)
	}
	r.organizer, r.role = found.organizer, role
	return nil
}
