package controltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"onsale/internal/id"
	"onsale/internal/identity"
)

func entry(action string) identity.Entry {
	return identity.Entry{ID: next(), At: at(0), Actor: 7, Role: identity.Owner, Action: action, Target: "cus_1"}
}

func membership(customer, organizer id.ID, role identity.Role, hours int) identity.Membership {
	return identity.Membership{Customer: customer, Organizer: organizer, Role: role, Since: at(hours)}
}

func roles(t *testing.T, p Ports, again func() Ports) {
	ctx, s := t.Context(), p.People
	house, other := newOrganizer(t, p, "house"), newOrganizer(t, p, "other")
	ann, bob, eve := newCustomer(t, p, "ann@x.de"), newCustomer(t, p, "bob@x.de"), newCustomer(t, p, "eve@x.de")
	all := []identity.Membership{
		membership(ann, house, identity.Owner, 2), membership(bob, house, identity.Door, 0), membership(eve, house, identity.Owner, 1),
		membership(ann, other, identity.Viewer, 3),
	}
	for _, m := range all {
		ok(t, s.PutRole(ctx, m, entry("role.set")))
	}
	of, err := again().People.RolesOf(ctx, ann)
	ok(t, err)
	same(t, "ann's roles", of, []identity.Membership{all[0], all[3]})
	members, err := s.Members(ctx, house)
	ok(t, err)
	var listed []identity.Membership
	for _, m := range members {
		listed = append(listed, m.Membership)
	}
	same(t, "members", listed, []identity.Membership{all[2], all[0], all[1]})
	same(t, "eve", members[0].Emails, []identity.Email{"eve@x.de"})
	for customer, role := range map[id.ID]identity.Role{ann: identity.Owner, bob: identity.Door, next(): ""} {
		got, err := s.Role(ctx, customer, house)
		ok(t, err)
		if got != role {
			t.Errorf("%d is %q, want %q", customer, got, role)
		}
	}
	if role, err := s.Role(ctx, bob, other); err != nil || role != "" {
		t.Errorf("bob is %q of the other, %v", role, err)
	}
	// Another role is the same membership.
	ok(t, s.PutRole(ctx, membership(bob, house, identity.Operator, 9), entry("role.set")))
	of, err = s.RolesOf(ctx, bob)
	ok(t, err)
	same(t, "bob's roles", of, []identity.Membership{membership(bob, house, identity.Operator, 0)})
	ok(t, s.RemoveRole(ctx, bob, house, entry("role.remove")))
	want(t, s.RemoveRole(ctx, bob, house, entry("role.remove")), identity.ErrUnknown)
	want(t, s.PutRole(ctx, membership(next(), house, identity.Door, 0), entry("x")), identity.ErrUnknown)
	want(t, s.PutRole(ctx, membership(ann, next(), identity.Door, 0), entry("x")), identity.ErrUnknown)
}

func lastOwner(t *testing.T, p Ports, _ func() Ports) {
	ctx, s := t.Context(), p.People
	house := newOrganizer(t, p, "house")
	ann, bob := newCustomer(t, p, "ann@x.de"), newCustomer(t, p, "bob@x.de")
	ok(t, s.PutRole(ctx, membership(bob, house, identity.Viewer, 0), entry("role.set"))) // an organizer may be without any
	ok(t, s.PutRole(ctx, membership(ann, house, identity.Owner, 0), entry("role.set")))
	ok(t, s.PutRole(ctx, membership(ann, house, identity.Owner, 0), entry("role.set")))
	want(t, s.RemoveRole(ctx, ann, house, entry("refused")), identity.ErrLastOwner)
	want(t, s.PutRole(ctx, membership(ann, house, identity.Operator, 0), entry("refused")), identity.ErrLastOwner)
	want(t, s.EraseCustomer(ctx, ann, at(0), false), identity.ErrLastOwner)
	ok(t, s.RemoveRole(ctx, bob, house, entry("role.remove")))
	log, err := s.List(ctx, 0, 0, 100)
	ok(t, err)
	for _, e := range log {
		if e.Action == "refused" {
			t.Error("what was refused is in the log")
		}
	}
	if len(log) != 4 {
		t.Errorf("%d entries", len(log))
	}
}

func ownersAtOnce(t *testing.T, p Ports, again func() Ports) {
	handles := []identity.PeopleStore{p.People, again().People}
	ann, bob := newCustomer(t, p, "ann@x.de"), newCustomer(t, p, "bob@x.de")
	for round := range 8 {
		house := newOrganizer(t, p, fmt.Sprint("house", round))
		for _, customer := range []id.ID{ann, bob} {
			ok(t, p.People.PutRole(t.Context(), membership(customer, house, identity.Owner, 0), entry("role.set")))
		}
		var wg sync.WaitGroup
		for i, customer := range []id.ID{ann, bob} {
			wg.Go(func() {
				err := handles[i].RemoveRole(context.Background(), customer, house, entry("role.remove"))
				if err != nil && !errors.Is(err, identity.ErrLastOwner) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		members, err := p.People.Members(t.Context(), house)
		ok(t, err)
		if len(members) != 1 {
			t.Fatalf("%d owners are left", len(members))
		}
	}
}

func invitation(organizer id.ID, address, token string, role identity.Role, hours int) identity.Invitation {
	return identity.Invitation{
		ID: next(), Token: hash(token), Organizer: organizer, Email: identity.Email(address), Role: role, By: 5, Created: at(hours), Expires: at(hours + 10),
	}
}

func invitations(t *testing.T, p Ports, again func() Ports) {
	ctx, s := t.Context(), p.People
	house, other := newOrganizer(t, p, "house"), newOrganizer(t, p, "other")
	put := func(i identity.Invitation, max int) error {
		return s.PutInvitation(ctx, i, max, entry("invitation.make"))
	}
	first := invitation(house, "ann@x.de", "one", identity.Viewer, 0)
	ok(t, put(first, 2))
	open, err := again().People.Invitations(ctx, house, at(1))
	ok(t, err)
	same(t, "open", open, []identity.Invitation{first})
	second := invitation(house, "ann@x.de", "two", identity.Operator, 1)
	ok(t, put(second, 1)) // in its place
	want(t, put(invitation(house, "bob@x.de", "three", identity.Door, 1), 1), identity.ErrTooMany)
	ok(t, put(invitation(other, "ann@x.de", "other", identity.Door, 1), 1))
	want(t, put(invitation(next(), "ann@x.de", "x", identity.Door, 1), 1), identity.ErrUnknown)
	open, err = s.Invitations(ctx, house, at(1))
	ok(t, err)
	same(t, "open", open, []identity.Invitation{second})
	if open, err := s.Invitations(ctx, house, at(11)); err != nil || len(open) != 0 {
		t.Errorf("expired: %+v, %v", open, err)
	}
	ann, bob := newCustomer(t, p, "ann@x.de"), newCustomer(t, p, "bob@x.de")
	accept := func(token string, customer id.ID, hours int) (identity.Membership, error) {
		return s.AcceptInvitation(ctx, hash(token), customer, at(hours), entry("invitation.accept"))
	}
	for what, c := range map[string]struct {
		token    string
		customer id.ID
		hours    int
	}{"replaced": {"one", ann, 1}, "another's": {"two", bob, 1}, "expired": {"two", ann, 11}, "none": {"none", ann, 1}} {
		if m, err := accept(c.token, c.customer, c.hours); !errors.Is(err, identity.ErrUnknown) {
			t.Errorf("%s: %+v, %v", what, m, err)
		}
	}
	m, err := accept("two", ann, 2)
	ok(t, err)
	same(t, "the role", m, membership(ann, house, identity.Operator, 2))
	_, err = accept("two", ann, 2)
	want(t, err, identity.ErrUnknown)
	log, err := s.List(ctx, house, 0, 1)
	ok(t, err)
	if len(log) != 1 || log[0].Action != "invitation.accept" || log[0].Organizer != house || log[0].Role != identity.Operator {
		t.Errorf("%+v", log)
	}
	ok(t, put(invitation(house, "ann@x.de", "less", identity.Viewer, 3), 5))
	m, err = accept("less", ann, 4)
	ok(t, err)
	same(t, "the role that she had", m, membership(ann, house, identity.Operator, 2))
	gone := invitation(house, "bob@x.de", "gone", identity.Door, 3)
	ok(t, put(gone, 5))
	want(t, s.RemoveInvitation(ctx, other, gone.ID, entry("x")), identity.ErrUnknown)
	ok(t, s.RemoveInvitation(ctx, house, gone.ID, entry("invitation.withdraw")))
	_, err = accept("gone", bob, 4)
	want(t, err, identity.ErrUnknown)
}

// Whoever may no longer invite has let nobody in for the time after.
func invitationsOfFormerOwners(t *testing.T, p Ports, _ func() Ports) {
	ctx, s := t.Context(), p.People
	house, other := newOrganizer(t, p, "house"), newOrganizer(t, p, "other")
	for name, end := range map[string]func(customer id.ID) error{
		"lowered": func(customer id.ID) error {
			return s.PutRole(ctx, membership(customer, house, identity.Operator, 2), entry("role.set"))
		},
		"removed": func(customer id.ID) error { return s.RemoveRole(ctx, customer, house, entry("role.remove")) },
		"erased":  func(customer id.ID) error { return s.EraseCustomer(ctx, customer, at(2), false) },
	} {
		stays, goes := newCustomer(t, p, "stays."+name+"@x.de"), newCustomer(t, p, "goes."+name+"@x.de")
		friend := newCustomer(t, p, "friend."+name+"@x.de")
		for _, m := range []identity.Membership{membership(stays, house, identity.Owner, 0), membership(goes, house, identity.Owner, 0)} {
			ok(t, s.PutRole(ctx, m, entry("role.set")))
		}
		put := func(organizer, by id.ID, who string) {
			i := invitation(organizer, who+"."+name+"@x.de", who+name, identity.Owner, 0)
			i.By = by
			ok(t, s.PutInvitation(ctx, i, 10, entry("invitation.make")))
		}
		put(house, goes, "friend")
		put(house, stays, "another")
		put(other, stays, "elsewhere")
		ok(t, s.PutRole(ctx, membership(goes, house, identity.Owner, 1), entry("role.set"))) // nothing changes
		ok(t, end(goes))
		if m, err := s.AcceptInvitation(ctx, hash("friend"+name), friend, at(3), entry("invitation.accept")); !errors.Is(err, identity.ErrUnknown) {
			t.Errorf("%s: their invitation made %+v, %v", name, m, err)
		}
		for _, of := range []struct {
			organizer id.ID
			who       string
		}{{house, "another"}, {other, "elsewhere"}} {
			if _, err := s.AcceptInvitation(ctx, hash(of.who+name), newCustomer(t, p, of.who+"."+name+"@x.de"), at(3), entry("invitation.accept")); err != nil {
				t.Errorf("%s: %s's invitation ended: %v", name, of.who, err)
			}
		}
	}
}

func acceptedAtOnce(t *testing.T, p Ports, again func() Ports) {
	handles := []identity.PeopleStore{p.People, again().People}
	house := newOrganizer(t, p, "house")
	ann := newCustomer(t, p, "ann@x.de")
	ok(t, p.People.PutInvitation(t.Context(), invitation(house, "ann@x.de", "one", identity.Viewer, 0), 5, entry("invitation.make")))
	var wg sync.WaitGroup
	var accepted atomic.Int32
	for i := range 6 {
		wg.Go(func() {
			_, err := handles[i%2].AcceptInvitation(context.Background(), hash("one"), ann, at(1), entry("invitation.accept"))
			if err == nil {
				accepted.Add(1)
			} else if !errors.Is(err, identity.ErrUnknown) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := accepted.Load(); n != 1 {
		t.Errorf("accepted %d times", n)
	}
}

func auditLog(t *testing.T, p Ports, again func() Ports) {
	ctx, s := t.Context(), p.People
	var all []identity.Entry
	for i := range 5 {
		e := identity.Entry{ID: next(), At: at(i), Actor: id.ID(i), Organizer: id.ID(1 + i%2), Role: identity.Operator, Action: "event.pause", Target: "evt_1"}
		if i == 3 {
			e.Details = map[string]string{"from": "on_sale", "why": `"quoted" ☃`}
		}
		ok(t, s.Write(ctx, e))
		all = append(all, e)
	}
	slices.Reverse(all)
	list := func(organizer, before id.ID, max int) []identity.Entry {
		got, err := again().People.List(ctx, organizer, before, max)
		ok(t, err)
		return got
	}
	same(t, "all", list(0, 0, 10), all)
	same(t, "one organizer's", list(2, 0, 10), []identity.Entry{all[1], all[3]})
	same(t, "before", list(0, all[1].ID, 2), []identity.Entry{all[2], all[3]})
	same(t, "of one before", list(2, all[1].ID, 10), []identity.Entry{all[3]})
}
