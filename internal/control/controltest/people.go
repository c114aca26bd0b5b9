package controltest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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
	"former owners":       invitationsOfFormerOwners,
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
