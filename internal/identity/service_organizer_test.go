package identity_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
)

func organizerOf(number id.ID, key string) catalog.Organizer {
	return catalog.Organizer{ID: number, Key: key, Name: "The " + key}
}

func (h *house) customer(s *identity.Service, email identity.Email) id.ID {
	h.t.Helper()
	customer, err := s.EnsureCustomer(h.t.Context(), email)
	if err != nil {
		h.t.Fatal(err)
	}
	return customer
}

func TestE5RolesByPower(t *testing.T) {
	const o, p, v, d, none = identity.Owner, identity.Operator, identity.Viewer, identity.Door, identity.Role("")
	for _, c := range []struct {
		role identity.Role
		may  []identity.Role
	}{{o, []identity.Role{o, p, v, d}}, {p, []identity.Role{p, v, d}}, {v, []identity.Role{v}}, {d, []identity.Role{d}}, {none, nil}, {"boss", nil}} {
		for _, needed := range append(identity.Roles, none, "boss") {
			want := false
			for _, m := range c.may {
				want = want || m == needed
			}
			if c.role.May(needed) != want {
				t.Errorf("%q may what needs %q: %v", c.role, needed, !want)
			}
		}
	}
}

func TestE5TheLastOwnerStays(t *testing.T) {
	h := newHouse(t)
	s := h.still()
	ctx := t.Context()
	house, other := h.organizer("house"), h.organizer("other")
	ann, bob := h.customer(s, "ann@example.com"), h.customer(s, "bob@example.com")
	by := identity.Actor{Customer: ann, Role: identity.Owner}
	for _, m := range []identity.Membership{{Customer: ann, Organizer: house, Role: identity.Owner}, {Customer: bob, Organizer: house, Role: identity.Viewer}, {Customer: bob, Organizer: other, Role: identity.Owner}} {
		if err := s.SetRole(ctx, by, m.Customer, m.Organizer, m.Role); err != nil {
			t.Fatal(err)
		}
	}
	wantFault(t, s.RemoveRole(ctx, by, ann, house), fault.Conflict)
	wantFault(t, s.SetRole(ctx, by, ann, house, identity.Operator), fault.Conflict)
	wantFault(t, s.Erase(ctx, by, ann), fault.Conflict)
	wantFault(t, s.SetRole(ctx, by, ann, house, "boss"), fault.Invalid)
	wantFault(t, s.SetRole(ctx, by, ann, h.ids.MustNext(0), identity.Owner), fault.NotFound)
	wantFault(t, s.SetRole(ctx, by, h.ids.MustNext(0), house, identity.Owner), fault.NotFound)
	wantFault(t, s.RemoveRole(ctx, by, ann, other), fault.NotFound)
	if role, err := s.Role(ctx, ann, house); err != nil || role != identity.Owner {
		t.Errorf("ann is %q, %v", role, err)
	}
	if role, err := s.Role(ctx, ann, other); err != nil || role != "" {
		t.Errorf("ann is %q of the other, %v", role, err)
	}
	if err := s.SetRole(ctx, by, bob, house, identity.Owner); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveRole(ctx, by, ann, house); err != nil {
		t.Fatal(err)
	}
	members, err := s.Members(ctx, house)
	if err != nil || len(members) != 1 || members[0].Customer != bob || members[0].Emails[0] != "bob@example.com" {
		t.Errorf("%+v, %v", members, err)
	}
	log, err := s.AuditLog(ctx, house, 0, 10)
	if err != nil || len(log) != 4 { // what was refused is not there
		t.Fatalf("%+v, %v", log, err)
	}
	if e := log[0]; e.Action != "role.remove" || e.Actor != ann || e.Role != identity.Owner || e.Target != ann.Text(id.Customer) || !e.At.Equal(h.clock.now()) {
		t.Errorf("%+v", e)
	}
	if e := log[1]; e.Action != "role.set" || e.Details["role"] != "owner" {
		t.Errorf("%+v", e)
	}
}

func TestE5OwnersWhoRemoveEachOtherLeaveOne(t *testing.T) {
	h := newHouse(t)
	s := h.still()
	for range 10 {
		organizer := h.organizer(string(rune('a' + h.ids.MustNext(0)%26)))
		var owners []id.ID
		for _, email := range []identity.Email{"a@example.com", "b@example.com", "c@example.com"} {
			customer := h.customer(s, email)
			owners = append(owners, customer)
			if err := s.SetRole(t.Context(), identity.Actor{}, customer, organizer, identity.Owner); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for i, customer := range owners {
			all.Go(func() {
				var err error
				if i == 0 {
					err = s.SetRole(context.Background(), identity.Actor{}, customer, organizer, identity.Viewer)
				} else {
					err = s.RemoveRole(context.Background(), identity.Actor{}, customer, organizer)
				}
				if err != nil && fault.CodeOf(err) != fault.Conflict {
					t.Error(err)
				}
			})
		}
		all.Wait()
		members, err := s.Members(t.Context(), organizer)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, m := range members {
			if m.Role == identity.Owner {
				count++
			}
		}
		if count != 1 {
			t.Fatalf("%d owners are left: %+v", count, members)
		}
	}
}

func TestInvitations(t *testing.T) {
	h := newHouse(t)
	s := h.node()
	ctx := t.Context()
	house := h.organizer("house")
	invite := identity.Invite{Organizer: house, Name: "The House", Email: "Ann@example.com", Role: identity.Operator, Locale: "en"}
	_, first, err := s.Invite(ctx, identity.Actor{}, invite)
	if err != nil {
		t.Fatal(err)
	}
	i, token, err := s.Invite(ctx, identity.Actor{}, invite)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{(<-h.mail.invites).Token: true}
	mail := <-h.mail.invites
	got[mail.Token] = true
	if !got[token] || !got[first] || mail.To != "ann@example.com" || mail.Role != identity.Operator || mail.Name != "The House" {
		t.Errorf("%+v", mail)
	}
	open, err := s.Invitations(ctx, house)
	if err != nil || len(open) != 1 || open[0].ID != i.ID {
		t.Errorf("open: %+v, %v", open, err)
	}
	if number, err := identity.ParseInvitation(i.Text()); err != nil || number != i.ID {
		t.Errorf("%s is %d, %v", i.Text(), number, err)
	}
	ann, bob := h.signIn(s, "ann@example.com").SignIn.Customer, h.signIn(s, "bob@example.com").SignIn.Customer
	refused := func(what string, customer id.ID, token string) {
		t.Helper()
		if m, err := s.AcceptInvitation(ctx, customer, token); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s: %+v, %v", what, m, err)
		}
	}
	refused("the earlier one", ann, first)
	refused("another's", bob, token)
	refused("no token", ann, "")
	m, err := s.AcceptInvitation(ctx, ann, token)
	if err != nil || m.Role != identity.Operator || m.Organizer != house {
		t.Fatalf("%+v, %v", m, err)
	}
	refused("used", ann, token)

	// One that offers less takes nothing away.
	invite.Role = identity.Viewer
	if _, token, err = s.Invite(ctx, identity.Actor{}, invite); err != nil {
		t.Fatal(err)
	}
	if m, err := s.AcceptInvitation(ctx, ann, token); err != nil || m.Role != identity.Operator {
		t.Errorf("%+v, %v", m, err)
	}
	if role, err := s.Role(ctx, ann, house); err != nil || role != identity.Operator {
		t.Errorf("ann is %q, %v", role, err)
	}
	invite.Email = "bob@example.com"
	if i, token, err = s.Invite(ctx, identity.Actor{}, invite); err != nil {
		t.Fatal(err)
	}
	h.clock.forward(identity.InvitationFor)
	refused("expired", bob, token)
	if i, token, err = s.Invite(ctx, identity.Actor{}, invite); err != nil {
		t.Fatal(err)
	}
	wantFault(t, s.WithdrawInvitation(ctx, identity.Actor{}, h.organizer("other"), i.ID), fault.NotFound)
	if err := s.WithdrawInvitation(ctx, identity.Actor{}, house, i.ID); err != nil {
		t.Fatal(err)
	}
	refused("taken back", bob, token)
	log, err := s.AuditLog(ctx, house, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, e := range log {
		actions = append(actions, e.Action)
	}
	want := []string{"invitation.withdraw", "invitation.make", "invitation.make", "invitation.accept", "invitation.make", "invitation.accept", "invitation.make", "invitation.make"}
	if len(actions) != len(want) {
		t.Fatalf("%v", actions)
	}
	for i := range want {
		if actions[i] != want[i] {
			t.Errorf("%v", actions)
		}
	}
}

func TestI13InvitationsAreBounded(t *testing.T) {
	h := newHouse(t)
	// What is refused keeps no place for its mail.
	s := h.still(func(o *identity.ServiceOptions) { o.Settings.MailQueueMax = identity.InvitationsMax + 2 })
	house := h.organizer("house")
	for i := range identity.InvitationsMax + 1 {
		_, _, err := s.Invite(t.Context(), identity.Actor{}, identity.Invite{Organizer: house, Email: string(rune('a'+i%26)) + string(rune('a'+i/26)) + "@example.com", Role: identity.Door})
		if i < identity.InvitationsMax && err != nil {
			t.Fatal(err)
		}
		if i == identity.InvitationsMax {
			wantFault(t, err, fault.LimitReached)
		}
	}
	h.clock.forward(identity.InvitationFor)
	if _, _, err := s.Invite(t.Context(), identity.Actor{}, identity.Invite{Organizer: house, Email: "late@example.com", Role: identity.Door}); err != nil {
		t.Errorf("when the others have expired: %v", err)
	}
	_, _, err := s.Invite(t.Context(), identity.Actor{}, identity.Invite{Organizer: h.ids.MustNext(0), Email: "late@example.com", Role: identity.Door})
	wantFault(t, err, fault.NotFound)
}

func TestProfile(t *testing.T) {
	h := newHouse(t)
	s := h.still()
	ctx := t.Context()
	ann := h.customer(s, "ann@example.com")
	if err := s.SetProfile(ctx, ann, " 李安 ", "zh-CN"); err != nil {
		t.Fatal(err)
	}
	p, err := s.Profile(ctx, ann)
	if err != nil || p.Name != "李安" || p.Locale != "zh-CN" || p.Email() != "ann@example.com" || time.Since(p.Created) > time.Hour {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range [][2]string{{"a\nb", "en"}, {string(make([]rune, 201)), ""}, {"a", "fr"}, {"\xff", ""}} {
		wantFault(t, s.SetProfile(ctx, ann, bad[0], bad[1]), fault.Invalid)
	}
	wantFault(t, s.SetProfile(ctx, h.ids.MustNext(0), "a", "en"), fault.NotFound)
	if err := s.SetProfile(ctx, ann, "", ""); err != nil {
		t.Error(err)
	}
	if customer, err := s.CustomerOf(ctx, "ann@example.com"); err != nil || customer != ann {
		t.Errorf("%d, %v", customer, err)
	}
	_, err = s.CustomerOf(ctx, "eve@example.com")
	wantFault(t, err, fault.NotFound)
}

func (a *away) Role(ctx context.Context, customer, organizer id.ID) (identity.Role, error) {
	if a.gone.Load() {
		return "", errAway
	}
	return a.PeopleStore.Role(ctx, customer, organizer)
}

// DESIGN 9: a door checks in while the control database is away. A role that is taken away ends here at once, on another
// node in time.
func TestRolesGoOnWithoutTheDatabase(t *testing.T) {
	h := newHouse(t)
	store := &away{PeopleStore: h.store}
	s, other := h.still(func(o *identity.ServiceOptions) { o.Store = store }), h.still()
	ctx := t.Context()
	house := h.organizer("house")
	ann, bob := h.customer(s, "ann@example.com"), h.customer(s, "bob@example.com")
	has := func(s *identity.Service, customer id.ID, want identity.Role) {
		t.Helper()
		if role, err := s.Role(ctx, customer, house); err != nil || role != want {
			t.Errorf("role %q, %v, want %q", role, err, want)
		}
	}
	has(s, ann, "")
	has(other, ann, "")
	for customer, role := range map[id.ID]identity.Role{ann: identity.Door, bob: identity.Owner} {
		if err := s.SetRole(ctx, identity.Actor{}, customer, house, role); err != nil {
			t.Fatal(err)
		}
		has(s, customer, role) // at once, though it was asked for before
	}
	h.clock.forward(time.Second)
	has(other, ann, identity.Door)

	store.gone.Store(true)
	h.clock.forward(6 * time.Hour)
	has(s, ann, identity.Door)
	if _, err := s.Role(ctx, ann, h.organizer("another")); err == nil {
		t.Error("a role that nobody could look up")
	}
	store.gone.Store(false)
	h.clock.forward(time.Minute)

	if err := s.RemoveRole(ctx, identity.Actor{}, ann, house); err != nil {
		t.Fatal(err)
	}
	has(s, ann, "")
	h.clock.forward(time.Second)
	has(other, ann, "")

	_, token, err := s.Invite(ctx, identity.Actor{}, identity.Invite{Organizer: house, Name: "House", Email: "ann@example.com", Role: identity.Viewer})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AcceptInvitation(ctx, ann, token); err != nil {
		t.Fatal(err)
	}
	has(s, ann, identity.Viewer)
	if err := s.Erase(ctx, identity.Actor{}, ann); err != nil {
		t.Fatal(err)
	}
	has(s, ann, "")
}
