package controltest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/id"
	"onsale/internal/identity"
)

// people are the tests of identity.PeopleStore.
var people = map[string]func(*testing.T, Ports, func() Ports){
	"addresses":           addresses,
	"addresses at once":   addressesAtOnce,
	"profiles":            profiles,
	"codes":               codes,
	"tries at once":       triesAtOnce,
	"mail limits":         mailLimits,
	"mail limits at once": mailLimitsAtOnce,
	"sign-ins":            signIns,
	"one code, one":       oneCodeOneSignIn,
	"tidying":             tidying,
	"roles":               roles,
	"last owner":          lastOwner,
	"owners at once":      ownersAtOnce,
	"invitations":         invitations,
	"accepted at once":    acceptedAtOnce,
	"audit log":           auditLog,
	"attendees":           attendees,
	"documents":           documents,
	"erase":               erase,
	"erased at once":      erasedAtOnce,
}

func hash(text string) (h identity.Hash) { copy(h[:], text); return h }

func emailOf(address string) identity.Named {
	return identity.Named{Issuer: identity.EmailIssuer, Sub: address, Email: identity.Email(address)}
}

func newCustomer(t *testing.T, p Ports, address string) id.ID {
	t.Helper()
	customer, err := p.People.PutCustomer(t.Context(), emailOf(address), next())
	ok(t, err)
	return customer
}

func newOrganizer(t *testing.T, p Ports, key string) id.ID {
	t.Helper()
	o, err := p.Catalog.EnsureOrganizer(t.Context(), catalog.Organizer{ID: next(), Key: key, Name: key})
	ok(t, err)
	return o.ID
}

// same compares what was read with what was kept.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got  %+v\nwant %+v", what, got, want)
	}
}

func addresses(t *testing.T, p Ports, again func() Ports) {
	ctx, s := t.Context(), p.People
	stand := func(who identity.Named) id.ID {
		t.Helper()
		customer, err := s.PutCustomer(ctx, who, next())
		ok(t, err)
		read, err := again().People.Customer(ctx, who)
		ok(t, err)
		if read != customer {
			t.Errorf("%+v is %d, and read as %d", who, customer, read)
		}
		return customer
	}
	token := func(sub, address string) identity.Named {
		return identity.Named{Issuer: "iss", Sub: sub, Email: identity.Email(address)}
	}
	ann := stand(emailOf("ann@x.de"))
	if got := stand(token("ann", "ann@x.de")); got != ann {
		t.Error("a token with ann's address is not ann")
	}
	if got := stand(token("ann", "")); got != ann {
		t.Error("ann's token without the address is not ann")
	}
	bob := stand(token("bob", "bob@x.de"))
	if got := stand(emailOf("bob@x.de")); got != bob || bob == ann {
		t.Error("bob's address is not bob")
	}
	eve := stand(token("eve", ""))
	if _, err := s.Customer(ctx, token("eve", "eve@x.de")); !errors.Is(err, identity.ErrUnknown) {
		t.Errorf("an address that is nobody's is not seen: %v", err)
	}
	if got := stand(token("eve", "eve@x.de")); got != eve || stand(emailOf("eve@x.de")) != eve {
		t.Error("an address that came later is not eve's")
	}
	if got := stand(token("eve", "ann@x.de")); got != eve || stand(emailOf("ann@x.de")) != ann {
		t.Error("eve with ann's address: two customers became one")
	}
	profile, err := s.Profile(ctx, eve)
	ok(t, err)
	same(t, "eve's addresses", profile.Emails, []identity.Email{"eve@x.de"})
}

// addressesAtOnce has the same people come by code, and by tokens of two issuers, at once, on three nodes.
func addressesAtOnce(t *testing.T, p Ports, again func() Ports) {
	handles := []identity.PeopleStore{p.People, again().People, again().People}
	var wg sync.WaitGroup
	var mu sync.Mutex
	found := map[int]map[id.ID]bool{}
	const persons = 12
	for round := range 3 {
		for i := range persons {
			address := fmt.Sprintf("p%d@x.de", i)
			for n, who := range []identity.Named{
				emailOf(address), {Issuer: "a", Sub: fmt.Sprint(i), Email: identity.Email(address)}, {Issuer: "b", Sub: fmt.Sprint(persons - i), Email: identity.Email(address)},
			} {
				wg.Go(func() {
					customer, err := handles[(n+round)%3].PutCustomer(context.Background(), who, next())
					if err != nil {
						t.Errorf("%+v: %v", who, err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if found[i] == nil {
						found[i] = map[id.ID]bool{}
					}
					found[i][customer] = true
				})
			}
		}
	}
	wg.Wait()
	all := map[id.ID]bool{}
	for i, customers := range found {
		if len(customers) != 1 {
			t.Errorf("person %d is %d customers", i, len(customers))
		}
		for customer := range customers {
			all[customer] = true
			if _, err := p.People.Profile(t.Context(), customer); err != nil {
				t.Errorf("customer %d has no row: %v", customer, err)
			}
		}
	}
	if len(all) != persons {
		t.Errorf("%d customers for %d persons", len(all), persons)
	}
}

func profiles(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	ann := newCustomer(t, p, "ann@x.de")
	ok(t, p.People.SetProfile(ctx, ann, "Ann ’A’", "zh-CN"))
	got, err := again().People.Profile(ctx, ann)
	ok(t, err)
	if got.Customer != ann || got.Name != "Ann ’A’" || got.Locale != "zh-CN" || got.Created.IsZero() || !got.Erased.IsZero() || got.Email() != "ann@x.de" {
		t.Errorf("%+v", got)
	}
	_, err = p.People.Profile(ctx, next())
	want(t, err, identity.ErrUnknown)
	want(t, p.People.SetProfile(ctx, next(), "a", ""), identity.ErrUnknown)
}

func code(ask, sum string, expires time.Time) identity.Code {
	return identity.Code{Ask: hash(ask), KID: "KID00000", Sum: hash(sum), Expires: expires}
}

func putCode(t *testing.T, s identity.SignInStore, c identity.Code, now time.Time, limits ...identity.MailLimit) (int, time.Time) {
	t.Helper()
	reached, free, err := s.PutCode(t.Context(), c, limits, now)
	ok(t, err)
	return reached, free
}

func codes(t *testing.T, p Ports, again func() Ports) {
	ctx, s := t.Context(), p.People
	_, err := s.TryCode(ctx, hash("none"), 5, at(0))
	want(t, err, identity.ErrNoCode)
	c := code("a", "sum", at(1))
	putCode(t, s, c, at(0))
	for n := 1; n <= 3; n++ {
		got, err := again().People.TryCode(ctx, c.Ask, 3, at(0))
		ok(t, err)
		c.Tries = n
		same(t, "the code", got, c)
	}
	_, err = s.TryCode(ctx, c.Ask, 3, at(0))
	want(t, err, identity.ErrNoCode)
	// A new one in its place has all its tries.
	c = code("a", "other", at(1))
	putCode(t, s, c, at(0))
	_, err = s.TryCode(ctx, c.Ask, 3, at(1))
	want(t, err, identity.ErrNoCode) // its time is up
	got, err := s.TryCode(ctx, c.Ask, 3, at(1).Add(-time.Millisecond))
	ok(t, err)
	if got.Sum != c.Sum || got.Tries != 1 {
		t.Errorf("%+v", got)
	}
}

func triesAtOnce(t *testing.T, p Ports, again func() Ports) {
	handles := []identity.PeopleStore{p.People, again().People}
	c := code("a", "sum", at(1))
	putCode(t, p.People, c, at(0))
	var wg sync.WaitGroup
	var mu sync.Mutex
	numbers := map[int]int{}
	for i := range 30 {
		wg.Go(func() {
			got, err := handles[i%2].TryCode(context.Background(), c.Ask, 5, at(0))
			if err != nil {
				if !errors.Is(err, identity.ErrNoCode) {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			numbers[got.Tries]++
		})
	}
	wg.Wait()
	same(t, "tries by their number", numbers, map[int]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 1})
}

func mailLimits(t *testing.T, p Ports, _ func() Ports) {
	s := p.People
	wide := identity.MailLimit{Subject: hash("z network"), Max: 3, Window: time.Hour}
	narrow := identity.MailLimit{Subject: hash("address"), Max: 2, Window: time.Hour}
	put := func(hours float64, limits ...identity.MailLimit) (int, time.Time) {
		now := at(0).Add(time.Duration(hours * float64(time.Hour)))
		return putCode(t, s, code(fmt.Sprint("c", hours), "s", now.Add(time.Hour)), now, limits...)
	}
	for n, c := range []struct {
		hours   float64
		limits  []identity.MailLimit
		reached int
		free    float64
	}{
		{0, []identity.MailLimit{wide, narrow}, -1, 0},
		{0.5, []identity.MailLimit{wide, narrow}, -1, 0},
		{0.6, []identity.MailLimit{wide, narrow}, 1, 1},
		{0.7, []identity.MailLimit{wide, narrow}, 1, 1}, // what was refused was not counted
		{0.8, []identity.MailLimit{wide}, -1, 0},
		{0.9, []identity.MailLimit{wide, narrow}, 0, 1}, // of two the first
		{1, []identity.MailLimit{wide, narrow}, -1, 0},  // the one of 0 is an hour ago
		{1.2, []identity.MailLimit{wide, narrow}, 0, 1.5},
		{1.5, []identity.MailLimit{narrow}, -1, 0},
		{1.6, []identity.MailLimit{narrow}, 0, 2},
	} {
		reached, free := put(c.hours, c.limits...)
		var wantFree time.Time
		if c.reached >= 0 {
			wantFree = at(0).Add(time.Duration(c.free * float64(time.Hour)))
		}
		if reached != c.reached || !free.Equal(wantFree) {
			t.Errorf("%d: limit %d, free at %s; want %d, %s", n, reached, free, c.reached, wantFree)
		}
	}
	// What was refused left no code behind.
	if _, err := s.TryCode(t.Context(), hash("c1.6"), 5, at(1)); !errors.Is(err, identity.ErrNoCode) {
		t.Errorf("a code whose mail is not sent: %v", err)
	}
}

func mailLimitsAtOnce(t *testing.T, p Ports, again func() Ports) {
	handles := []identity.PeopleStore{p.People, again().People}
	limits := []identity.MailLimit{{Subject: hash("n"), Max: 7, Window: time.Hour}, {Subject: hash("a"), Max: 5, Window: time.Hour}}
	var wg sync.WaitGroup
	var sent atomic.Int32
	for i := range 24 {
		wg.Go(func() {
			mine := limits
			if i%2 == 1 {
				mine = []identity.MailLimit{limits[1], limits[0]} // another order does not end in a circle
			}
			reached, _, err := handles[i%2].PutCode(context.Background(), code(fmt.Sprint("c", i), "s", at(1)), mine, at(0))
			if err != nil {
				t.Error(err)
			} else if reached < 0 {
				sent.Add(1)
			}
		})
	}
	wg.Wait()
	if n := sent.Load(); n != 5 {
		t.Errorf("%d mails were sent, 5 are allowed", n)
	}
}

func opening(who identity.Named, token string, hours int) identity.Opening {
	return identity.Opening{
		Who: who, Candidate: next(), Max: 3,
		SignIn: identity.SignIn{ID: next(), Token: hash(token), Method: identity.MethodOIDC, Created: at(hours), Seen: at(hours), Expires: at(hours + 100)},
	}
}

func signIns(t *testing.T, p Ports, again func() Ports) {
	ctx, s := t.Context(), p.People
	_, err := s.SignIn(ctx, hash("none"))
	want(t, err, identity.ErrUnknown)
	first := opening(identity.Named{Issuer: "iss", Sub: "ann", Email: "ann@x.de"}, "one", 0)
	ann, err := s.OpenSignIn(ctx, first)
	ok(t, err)
	if ann != first.Candidate {
		t.Errorf("ann is %d", ann)
	}
	first.SignIn.Customer = ann
	got, err := again().People.SignIn(ctx, hash("one"))
	ok(t, err)
	same(t, "the sign-in", got, first.SignIn)
	second := opening(emailOf("ann@x.de"), "two", 1)
	second.Replaces = hash("one")
	if again, err := s.OpenSignIn(ctx, second); err != nil || again != ann {
		t.Fatalf("by her address: %d, %v", again, err)
	}
	_, err = s.SignIn(ctx, hash("one"))
	want(t, err, identity.ErrUnknown)
	ok(t, s.SeeSignIns(ctx, map[identity.Hash]time.Time{hash("two"): at(5), hash("none"): at(5)}))
	ok(t, s.SeeSignIns(ctx, map[identity.Hash]time.Time{hash("two"): at(4)}))
	got, err = s.SignIn(ctx, hash("two"))
	ok(t, err)
	if !got.Seen.Equal(at(5)) || !got.Created.Equal(at(1)) {
		t.Errorf("%+v", got)
	}
	// More than a customer may have: the oldest end.
	for i, token := range []string{"three", "four", "five"} {
		_, err := s.OpenSignIn(ctx, opening(emailOf("ann@x.de"), token, 2+i))
		ok(t, err)
	}
	bob, err := s.OpenSignIn(ctx, opening(emailOf("bob@x.de"), "bob", 0))
	ok(t, err)
	tokens := func(customer id.ID) (all []identity.Hash) {
		list, err := s.SignInsOf(ctx, customer)
		ok(t, err)
		for _, si := range list {
			all = append(all, si.Token)
		}
		return all
	}
	same(t, "ann's", tokens(ann), []identity.Hash{hash("five"), hash("four"), hash("three")})
	four, err := s.SignIn(ctx, hash("four"))
	ok(t, err)
	ok(t, s.EndSignInOf(ctx, bob, four.ID)) // another's
	ok(t, s.EndSignIn(ctx, hash("three")))
	ok(t, s.EndSignIn(ctx, hash("three")))
	same(t, "ann's", tokens(ann), []identity.Hash{hash("five"), hash("four")})
	ok(t, s.EndSignInOf(ctx, ann, four.ID))
	ok(t, s.EndSignIns(ctx, bob))
	same(t, "ann's", tokens(ann), []identity.Hash{hash("five")})
	if len(tokens(bob)) != 0 {
		t.Error("bob is still in")
	}
}

func oneCodeOneSignIn(t *testing.T, p Ports, again func() Ports) {
	handles := []identity.PeopleStore{p.People, again().People}
	c := code("a", "sum", at(1))
	putCode(t, p.People, c, at(0))
	var wg sync.WaitGroup
	var opened atomic.Int32
	for i := range 6 {
		wg.Go(func() {
			o := opening(emailOf("ann@x.de"), fmt.Sprint("t", i), 0)
			o.Code = &c
			_, err := handles[i%2].OpenSignIn(context.Background(), o)
			if err == nil {
				opened.Add(1)
			} else if !errors.Is(err, identity.ErrNoCode) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := opened.Load(); n != 1 {
		t.Errorf("one code opened %d sign-ins", n)
	}
	// A code that was asked for again is another.
	putCode(t, p.People, code("a", "newer", at(1)), at(0))
	o := opening(emailOf("ann@x.de"), "late", 0)
	o.Code = &c
	_, err := p.People.OpenSignIn(t.Context(), o)
	want(t, err, identity.ErrNoCode)
	if _, err := p.People.SignIn(t.Context(), hash("late")); !errors.Is(err, identity.ErrUnknown) {
		t.Errorf("half of it was kept: %v", err)
	}
}

func tidying(t *testing.T, p Ports, _ func() Ports) {
	ctx, s := t.Context(), p.People
	limit := func(subject string) identity.MailLimit {
		return identity.MailLimit{Subject: hash(subject), Max: 1, Window: 2 * time.Hour}
	}
	putCode(t, s, code("old", "s", at(1)), at(0), limit("old"))
	putCode(t, s, code("new", "s", at(9)), at(5), limit("new"))
	for token, hours := range map[string]int{"idle": 0, "in": 3} {
		_, err := s.OpenSignIn(ctx, opening(emailOf(token+"@x.de"), token, hours))
		ok(t, err)
	}
	over := opening(emailOf("over@x.de"), "over", 5)
	over.SignIn.Expires = at(5)
	_, err := s.OpenSignIn(ctx, over)
	ok(t, err)
	n, err := s.PruneSignIns(ctx, at(5), at(3), at(2), 100)
	ok(t, err)
	if n != 4 { // a code, a mail, two sign-ins
		t.Errorf("%d were removed", n)
	}
	for token, stays := range map[string]bool{"idle": false, "over": false, "in": true} {
		if _, err := s.SignIn(ctx, hash(token)); stays != (err == nil) {
			t.Errorf("%s: %v", token, err)
		}
	}
	if _, err := s.TryCode(ctx, hash("new"), 5, at(5)); err != nil {
		t.Errorf("a code that is good: %v", err)
	}
	if reached, _ := putCode(t, s, code("x", "s", at(9)), at(6), limit("new")); reached != 0 {
		t.Error("a mail that counts was forgotten")
	}
	for i := range 5 {
		putCode(t, s, code(fmt.Sprint("many", i), "s", at(1)), at(0))
	}
	if n, err := s.PruneSignIns(ctx, at(5), at(0), at(0), 3); err != nil || n != 3 {
		t.Errorf("at most three: %d, %v", n, err)
	}
}

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

func attending(order, event, customer id.ID, place int32, name string) identity.Attending {
	return identity.Attending{
		Order: order, Event: event, Customer: customer, Place: place, Name: name,
		DocumentType: identity.Passport, DocumentHash: "hash of " + name, DocumentLast4: "1234",
	}
}

func attendees(t *testing.T, p Ports, again func() Ports) {
	ctx, s := t.Context(), p.People
	ann, bob, event := newCustomer(t, p, "ann@x.de"), newCustomer(t, p, "bob@x.de"), next()
	order, later := next(), next()
	all := []identity.Attending{attending(order, event, ann, 0, "Ann"), attending(order, event, ann, 1, "李安")}
	for range 2 {
		ok(t, s.PutAttendees(ctx, all))
	}
	moved := attending(order, event, bob, 1, "Bob")
	for range 2 {
		ok(t, s.MoveAttendee(ctx, moved))
	}
	ok(t, s.PutAttendees(ctx, all)) // late: the transfer stays
	got, err := again().People.Attendees(ctx, order)
	ok(t, err)
	same(t, "attendees", got, []identity.Attending{all[0], moved})
	// Where nobody was named yet; of a customer whom only the ledger knows.
	unknown := attending(later, event, next(), 2, "Eve")
	ok(t, s.MoveAttendee(ctx, unknown))
	ok(t, s.PutAttendees(ctx, []identity.Attending{attending(next(), next(), ann, 0, "Elsewhere")}))
	page, err := s.AttendeesOf(ctx, event, 0, 0, 2)
	ok(t, err)
	same(t, "the first page", page, []identity.Attending{all[0], moved})
	page, err = s.AttendeesOf(ctx, event, order, 0, 2)
	ok(t, err)
	same(t, "from within an order", page, []identity.Attending{moved, unknown})
	ok(t, s.DropAttendees(ctx, order))
	if got, err := s.Attendees(ctx, order); err != nil || len(got) != 0 {
		t.Errorf("dropped: %+v, %v", got, err)
	}
	if got, err := s.Attendees(ctx, later); err != nil || len(got) != 1 {
		t.Errorf("another order's: %+v, %v", got, err)
	}
}

func documents(t *testing.T, p Ports, _ func() Ports) {
	ctx, s := t.Context(), p.People
	g := setUp(t, p.Catalog)
	past, coming := g.event("past", 0), g.event("coming", 50)
	ok(t, p.Catalog.PutEvents(ctx, nil, []catalog.Event{past, coming}, []string{"", ""}))
	ann := newCustomer(t, p, "ann@x.de")
	old, young := next(), next()
	for place := range int32(3) {
		ok(t, s.PutAttendees(ctx, []identity.Attending{attending(old, past.ID, ann, place, "Ann"), attending(young, coming.ID, ann, place, "Ann")}))
	}
	for _, step := range []struct {
		before time.Time
		max, n int
	}{{at(0), 10, 0}, {at(1), 2, 2}, {at(1), 2, 1}, {at(1), 2, 0}, {at(50), 10, 0}} {
		n, err := s.PruneDocuments(ctx, step.before, step.max)
		ok(t, err)
		if n != step.n {
			t.Errorf("before %s: %d places, want %d", step.before, n, step.n)
		}
	}
	for order, kept := range map[id.ID]bool{old: false, young: true} {
		all, err := s.Attendees(ctx, order)
		ok(t, err)
		for _, a := range all {
			if a.Name != "Ann" || (a.DocumentHash != "") != kept || (a.DocumentLast4 != "") != kept || (a.DocumentType != "") != kept {
				t.Errorf("%+v", a)
			}
		}
	}
}

func erase(t *testing.T, p Ports, again func() Ports) {
	ctx, s := t.Context(), p.People
	house, event := newOrganizer(t, p, "house"), next()
	fill := func(name string, role identity.Role) id.ID {
		o := opening(identity.Named{Issuer: "iss", Sub: name, Email: identity.Email(name + "@x.de")}, name, 0)
		customer, err := s.OpenSignIn(ctx, o)
		ok(t, err)
		ok(t, s.SetProfile(ctx, customer, name, "en"))
		ok(t, s.PutRole(ctx, membership(customer, house, role, 0), entry("role.set")))
		ok(t, s.PutInvitation(ctx, invitation(newOrganizer(t, p, "of-"+name), name+"@x.de", "to "+name, identity.Door, 0), 5, entry("invitation.make")))
		ok(t, s.PutAttendees(ctx, []identity.Attending{attending(next(), event, customer, 0, name)}))
		return customer
	}
	ann, bob := fill("ann", identity.Owner), fill("bob", identity.Operator)
	before, err := s.ExportCustomer(ctx, ann)
	ok(t, err)
	if before.Profile.Name != "ann" || len(before.Identities) != 2 || len(before.SignIns) != 1 || len(before.Roles) != 1 || len(before.Attendees) != 1 {
		t.Errorf("exported: %+v", before)
	}
	_, err = s.ExportCustomer(ctx, next())
	want(t, err, identity.ErrUnknown)
	bobBefore, err := s.ExportCustomer(ctx, bob)
	ok(t, err)
	want(t, s.EraseCustomer(ctx, ann, at(1), false), identity.ErrLastOwner)
	if now, err := s.ExportCustomer(ctx, ann); err != nil || !reflect.DeepEqual(now, before) {
		t.Errorf("what was refused did something: %+v, %v", now, err)
	}
	for _, hours := range []int{1, 2} { // again is harmless, and keeps the time
		ok(t, s.EraseCustomer(ctx, ann, at(hours), true))
	}
	after, err := again().People.ExportCustomer(ctx, ann)
	ok(t, err)
	same(t, "what is left of ann", after, identity.Personal{Profile: identity.Profile{Customer: ann, Created: before.Profile.Created, Erased: at(1)}})
	same(t, "bob", func() identity.Personal { p, _ := s.ExportCustomer(ctx, bob); return p }(), bobBefore)
	_, err = s.SignIn(ctx, hash("ann"))
	want(t, err, identity.ErrUnknown)
	_, err = s.AcceptInvitation(ctx, hash("to ann"), ann, at(1), entry("x"))
	want(t, err, identity.ErrUnknown)
	// Nothing comes back.
	want(t, s.SetProfile(ctx, ann, "Ann", ""), identity.ErrErased)
	want(t, s.PutAttendees(ctx, []identity.Attending{attending(next(), event, ann, 0, "Ann")}), identity.ErrErased)
	want(t, s.MoveAttendee(ctx, attending(next(), event, ann, 0, "Ann")), identity.ErrErased)
	want(t, s.PutRole(ctx, membership(ann, house, identity.Door, 0), entry("x")), identity.ErrUnknown)
	if again := newCustomer(t, p, "ann@x.de"); again == ann {
		t.Error("who comes back is the erased customer")
	}
	// One whom this database does not know: a restored backup is older.
	stranger := next()
	ok(t, s.EraseCustomer(ctx, stranger, at(3), true))
	list, err := s.Erasures(ctx)
	ok(t, err)
	same(t, "erasures", list, []identity.Erasure{{Customer: ann, At: at(1)}, {Customer: stranger, At: at(3)}})
}

// erasedAtOnce has a customer sign in in all ways while being erased: afterwards nothing leads to the erased customer.
func erasedAtOnce(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	handles := []identity.PeopleStore{p.People, again().People}
	for round := range 10 {
		address := fmt.Sprintf("ann%d@x.de", round)
		ann := newCustomer(t, p, address)
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				name := fmt.Sprintf("%d-%d", round, i)
				who := identity.Named{Issuer: "iss", Sub: name, Email: identity.Email(address)}
				var err error
				if i%2 == 0 {
					_, err = handles[i/3].PutCustomer(context.Background(), who, next())
				} else {
					_, err = handles[i/3].OpenSignIn(context.Background(), opening(who, name, 0))
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if err := handles[round%2].EraseCustomer(context.Background(), ann, at(1), false); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		left, err := p.People.ExportCustomer(ctx, ann)
		ok(t, err)
		if len(left.Identities) != 0 || len(left.SignIns) != 0 || left.Profile.Erased.IsZero() {
			t.Fatalf("after erasing: %+v", left)
		}
	}
}
