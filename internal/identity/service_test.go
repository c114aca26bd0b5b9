package identity_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"onsale/internal/control"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/keys"
	"onsale/internal/keys/keystest"
)

// A clock that tests move.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMilli(c.at.Load()).UTC() }
func (c *clock) forward(d time.Duration) { c.at.Add(d.Milliseconds()) }

// A mailbox is a Sender that keeps what was sent.
type mailbox struct {
	codes   chan identity.CodeMail
	invites chan identity.InvitationMail
	fail    func() error
}

func (m *mailbox) SendCode(_ context.Context, c identity.CodeMail) error {
	if m.fail != nil {
		if err := m.fail(); err != nil {
			return err
		}
	}
	m.codes <- c
	return nil
}

func (m *mailbox) SendInvitation(_ context.Context, i identity.InvitationMail) error {
	m.invites <- i
	return nil
}

// A house is several nodes on one control database.
type house struct {
	t     *testing.T
	clock *clock
	mail  *mailbox
	keys  keys.Store
	path  string
	log   *strings.Builder
	logMu sync.Mutex
	ids   *id.Generator
	store identity.PeopleStore
	db    *control.DB
}

func newHouse(t *testing.T) *house {
	h := &house{
		t: t, clock: &clock{}, mail: &mailbox{codes: make(chan identity.CodeMail, 100), invites: make(chan identity.InvitationMail, 100)},
		keys: &keystest.Memory{}, path: filepath.Join(t.TempDir(), "control.db"), log: &strings.Builder{},
	}
	h.clock.at.Store(time.Date(2027, 3, 1, 10, 0, 0, 0, time.UTC).UnixMilli())
	h.ids = id.NewGenerator(0, time.Now, 0, nil)
	db, err := control.OpenSQLite(t.Context(), h.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	h.db, h.store = db, db.People()
	return h
}

// Write is the log's.
func (h *house) Write(b []byte) (int, error) {
	h.logMu.Lock()
	defer h.logMu.Unlock()
	return h.log.Write(b)
}

func (h *house) ring() *keys.Ring {
	m, err := keys.NewMaster([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		h.t.Fatal(err)
	}
	ring, err := keys.Load(h.t.Context(), h.keys, m, keys.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	return ring
}

// node is a service whose mails are sent.
func (h *house) node(change ...func(*identity.ServiceOptions)) *identity.Service {
	h.t.Helper()
	s := h.still(change...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	h.t.Cleanup(func() { cancel(); <-done })
	return s
}

// still is a service that does not run.
func (h *house) still(change ...func(*identity.ServiceOptions)) *identity.Service {
	h.t.Helper()
	o := identity.ServiceOptions{
		Store: h.store, Keys: h.ring(), Mail: h.mail, NewID: h.ids.Next, Now: h.clock.now, Log: slog.New(slog.NewTextHandler(h, nil)),
	}
	for _, c := range change {
		c(&o)
	}
	s, err := identity.NewService(h.t.Context(), o)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

var home = netip.MustParseAddr("192.0.2.7")

func begin(email, browser string) identity.Begin {
	return identity.Begin{Email: email, Browser: browser, IP: home, Locale: "zh-CN"}
}

// code asks for one and waits for the mail.
func (h *house) code(s *identity.Service, email, browser string) identity.CodeMail {
	h.t.Helper()
	if err := s.BeginSignIn(h.t.Context(), begin(email, browser)); err != nil {
		h.t.Fatal(err)
	}
	return <-h.mail.codes
}

func (h *house) signIn(s *identity.Service, email string) identity.Opened {
	h.t.Helper()
	browser := identity.NewBrowser()
	mail := h.code(s, email, browser)
	opened, err := s.FinishSignIn(h.t.Context(), identity.Finish{Email: email, Browser: browser, Code: mail.Code})
	if err != nil {
		h.t.Fatal(err)
	}
	return opened
}

func wantFault(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if got := fault.CodeOf(err); got != code {
		t.Fatalf("got %q (%v), want %q", got, err, code)
	}
}

func wrong(code string) string {
	last := code[len(code)-1]
	return code[:len(code)-1] + string('0'+(last-'0'+1)%10)
}

func TestE2SignInByCode(t *testing.T) {
	h := newHouse(t)
	a, b := h.node(), h.node()
	browser := identity.NewBrowser()
	mail := h.code(a, " Ann@Example.COM ", browser)
	if mail.To != "ann@example.com" || len(mail.Code) != 8 || mail.Organizer || mail.Locale != "zh-CN" || !mail.Expires.Equal(h.clock.now().Add(10*time.Minute)) {
		t.Fatalf("mail %+v", mail)
	}
	// On another node, as people type.
	typed := mail.Code[:4] + " " + mail.Code[4:]
	opened, err := b.FinishSignIn(t.Context(), identity.Finish{Email: "ann@example.com", Browser: browser, Code: typed})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*identity.Service{a, b} {
		si, err := s.SignedIn(t.Context(), opened.Token)
		if err != nil || si.Customer != opened.SignIn.Customer || si.Customer == 0 || si.Method != identity.MethodCode {
			t.Fatalf("%+v, %v", si, err)
		}
	}
	// Used once.
	_, err = a.FinishSignIn(t.Context(), identity.Finish{Email: "ann@example.com", Browser: browser, Code: mail.Code})
	wantFault(t, err, fault.CodeWrong)
	// The same person again is the same customer, with another token; the old one ends where the browser had it.
	mail = h.code(b, "ann@example.com", browser)
	again, err := a.FinishSignIn(t.Context(), identity.Finish{Email: "ANN@example.com", Browser: browser, Code: mail.Code, Replaces: opened.Token})
	if err != nil || again.SignIn.Customer != opened.SignIn.Customer || again.Token == opened.Token {
		t.Fatalf("%+v, %v", again, err)
	}
	_, err = a.SignedIn(t.Context(), opened.Token)
	wantFault(t, err, fault.TokenInvalid)
	p, err := a.Profile(t.Context(), again.SignIn.Customer)
	if err != nil || p.Email() != "ann@example.com" || len(p.Emails) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if other := h.signIn(a, "bob@example.com"); other.SignIn.Customer == again.SignIn.Customer {
		t.Error("bob is ann")
	}
}

func TestE2WhatIsNotTheCodeIsRefused(t *testing.T) {
	h := newHouse(t)
	s := h.node()
	browser := identity.NewBrowser()
	for name, c := range map[string]struct {
		change func(*identity.Finish)
		before func()
	}{
		"another code":    {change: func(f *identity.Finish) { f.Code = wrong(f.Code) }},
		"no digits":       {change: func(f *identity.Finish) { f.Code = "abcdefgh" }},
		"empty":           {change: func(f *identity.Finish) { f.Code = "" }},
		"a longer code":   {change: func(f *identity.Finish) { f.Code += "0000" }},
		"another browser": {change: func(f *identity.Finish) { f.Browser = identity.NewBrowser() }},
		"another address": {change: func(f *identity.Finish) { f.Email = "eve@example.com" }},
		"a tag":           {change: func(f *identity.Finish) { f.Email = "ann+x@example.com" }},
		"too late":        {before: func() { h.clock.forward(10 * time.Minute) }, change: func(*identity.Finish) {}},
	} {
		h.clock.forward(time.Hour)
		mail := h.code(s, "ann@example.com", browser)
		if c.before != nil {
			c.before()
		}
		f := identity.Finish{Email: "ann@example.com", Browser: browser, Code: mail.Code}
		c.change(&f)
		_, err := s.FinishSignIn(t.Context(), f)
		if got := fault.CodeOf(err); got != fault.CodeWrong {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Just in time.
	h.clock.forward(time.Hour)
	mail := h.code(s, "ann@example.com", browser)
	h.clock.forward(10*time.Minute - time.Millisecond)
	if _, err := s.FinishSignIn(t.Context(), identity.Finish{Email: "ann@example.com", Browser: browser, Code: mail.Code}); err != nil {
		t.Error(err)
	}
	_, err := s.FinishSignIn(t.Context(), identity.Finish{Email: "ann@example.com", Browser: "short", Code: mail.Code})
	wantFault(t, err, fault.BadRequest)
	wantFault(t, s.BeginSignIn(t.Context(), begin("ann@example.com", "")), fault.BadRequest)
	wantFault(t, s.BeginSignIn(t.Context(), begin("ann", browser)), fault.Invalid)
}

func TestE2FiveTriesHoweverTheyAreSent(t *testing.T) {
	h := newHouse(t)
	nodes := []*identity.Service{h.node(), h.node()}
	browser := identity.NewBrowser()
	mail := h.code(nodes[0], "ann@example.com", browser)
	finish := func(n int, code string) error {
		_, err := nodes[n%2].FinishSignIn(context.Background(), identity.Finish{Email: "ann@example.com", Browser: browser, Code: code})
		return err
	}
	for i := range 4 {
		wantFault(t, finish(i, wrong(mail.Code)), fault.CodeWrong)
	}
	if err := finish(0, mail.Code); err != nil {
		t.Fatalf("the fifth try: %v", err)
	}
	// All at once: five of many are looked at, so that the right code among the later ones is refused.
	h.clock.forward(time.Hour)
	mail = h.code(nodes[0], "ann@example.com", browser)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if err := finish(i, wrong(mail.Code)); fault.CodeOf(err) != fault.CodeWrong {
				t.Error(err)
			}
		})
	}
	all.Wait()
	wantFault(t, finish(0, mail.Code), fault.CodeWrong)
}

// A stranger who asks for and tries codes of ann's address stands in nobody's way.
func TestE2OtherBrowsersAreInNobodysWay(t *testing.T) {
	h := newHouse(t)
	s := h.node()
	mine, strange := identity.NewBrowser(), identity.NewBrowser()
	mail := h.code(s, "ann@example.com", mine)
	h.code(s, "ann@example.com", strange)
	for range 10 {
		_, err := s.FinishSignIn(t.Context(), identity.Finish{Email: "ann@example.com", Browser: strange, Code: wrong(mail.Code)})
		wantFault(t, err, fault.CodeWrong)
	}
	if _, err := s.FinishSignIn(t.Context(), identity.Finish{Email: "ann@example.com", Browser: mine, Code: mail.Code}); err != nil {
		t.Error(err)
	}
}

func TestE2ACodeOpensOneSignIn(t *testing.T) {
	h := newHouse(t)
	nodes := []*identity.Service{h.node(), h.node()}
	browser := identity.NewBrowser()
	mail := h.code(nodes[0], "ann@example.com", browser)
	var all sync.WaitGroup
	var opened atomic.Int32
	for i := range 4 {
		all.Go(func() {
			_, err := nodes[i%2].FinishSignIn(context.Background(), identity.Finish{Email: "ann@example.com", Browser: browser, Code: mail.Code})
			if err == nil {
				opened.Add(1)
			} else if fault.CodeOf(err) != fault.CodeWrong {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := opened.Load(); n != 1 {
		t.Errorf("%d sign-ins were opened", n)
	}
}

func TestE2MailsPerAddress(t *testing.T) {
	h := newHouse(t)
	nodes := []*identity.Service{h.node(), h.node()}
	ask := func(i int, email string) {
		t.Helper()
		b := begin(email, identity.NewBrowser())
		b.IP = netip.AddrFrom4([4]byte{10, 0, byte(i / 250), byte(i % 250)})
		if err := nodes[i%2].BeginSignIn(t.Context(), b); err != nil {
			t.Fatalf("the answer tells that a limit was reached: %v", err)
		}
	}
	// One mailbox, however it is spelt, from anywhere.
	for i, email := range []string{"a.nn@gmail.com", "ann+1@gmail.com", "Ann@googlemail.com", "an.n+x@gmail.com", "ann@gmail.com", "ann@gmail.com", "ann+2@gmail.com"} {
		ask(i, email)
	}
	ask(9, "other@gmail.com")
	seen := map[identity.Email]int{}
	for range 6 {
		seen[(<-h.mail.codes).To]++
	}
	if len(h.mail.codes) != 0 || seen["other@gmail.com"] != 1 {
		t.Errorf("mails to %v, and %d more", seen, len(h.mail.codes))
	}
	h.clock.forward(time.Hour)
	ask(10, "ann@gmail.com")
	if mail := <-h.mail.codes; mail.To != "ann@gmail.com" {
		t.Errorf("after an hour: %+v", mail)
	}
}

func TestE2MailsPerNetwork(t *testing.T) {
	h := newHouse(t)
	s := h.node()
	for _, c := range []struct {
		ip    func(i int) netip.Addr
		bound bool
	}{
		{func(int) netip.Addr { return home }, true},
		{func(int) netip.Addr { return netip.MustParseAddr("::ffff:192.0.2.8") }, true},
		{func(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("2001:db8:1:2:%x::1", i)) }, true},
		{func(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("2001:db8:1:%x::1", i+100)) }, false},
		{func(int) netip.Addr { return netip.Addr{} }, true},
	} {
		for i := range 21 {
			b := begin(fmt.Sprintf("p%d@example.com", h.ids.MustNext(0)), identity.NewBrowser())
			b.IP = c.ip(i)
			err := s.BeginSignIn(t.Context(), b)
			if over := i == 20 && c.bound; over {
				wantFault(t, err, fault.TooManyRequests)
				if wait := fault.Of(err).RetryAfter; wait != time.Hour {
					t.Errorf("retry after %s", wait)
				}
			} else if err != nil {
				t.Fatalf("%s, mail %d: %v", b.IP, i, err)
			} else {
				<-h.mail.codes
			}
		}
	}
}

func TestE2OrganizersGetLongerCodes(t *testing.T) {
	h := newHouse(t)
	s := h.node()
	organizer := h.organizer("house")
	for role, digits := range map[identity.Role]int{identity.Owner: 12, identity.Operator: 12, identity.Viewer: 8, identity.Door: 8} {
		email := string(role) + "@example.com"
		customer, err := s.EnsureCustomer(t.Context(), identity.Email(email))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SetRole(t.Context(), identity.Actor{}, customer, organizer, role); err != nil {
			t.Fatal(err)
		}
		mail := h.code(s, email, identity.NewBrowser())
		if len(mail.Code) != digits || mail.Organizer != (digits == 12) {
			t.Errorf("%s: %d digits", role, len(mail.Code))
		}
	}
	if opened := h.signIn(s, "owner@example.com"); opened.Token == "" {
		t.Error("a code of 12 digits does not open")
	}
}

func TestI13MailsThatWaitAreBounded(t *testing.T) {
	h := newHouse(t)
	s := h.still(func(o *identity.ServiceOptions) { o.Settings.MailQueueMax = 2 })
	for i := range 3 {
		err := s.BeginSignIn(t.Context(), begin(fmt.Sprintf("p%d@example.com", i), identity.NewBrowser()))
		if i < 2 && err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			wantFault(t, err, fault.Busy)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Run(ctx) // what waits is sent before it stops
	if n := len(h.mail.codes); n != 2 {
		t.Errorf("%d mails were sent at the end", n)
	}
	if err := s.BeginSignIn(t.Context(), begin("p3@example.com", identity.NewBrowser())); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}

func TestE10AMailServersWordsDoNotTellTheAddress(t *testing.T) {
	h := newHouse(t)
	var tries atomic.Int32
	h.mail.fail = func() error {
		if tries.Add(1) == 1 {
			return errors.New(`550 <ann@example.com>: mailbox "ann@example.com" unavailable`)
		}
		return nil
	}
	s := h.still()
	if err := s.BeginSignIn(t.Context(), begin("ann@example.com", identity.NewBrowser())); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Run(ctx)
	if n := tries.Load(); n != 2 || len(h.mail.codes) != 1 {
		t.Errorf("%d tries, %d mails", n, len(h.mail.codes))
	}
	if text := h.log.String(); strings.Contains(text, "ann") || !strings.Contains(text, "550") {
		t.Errorf("the log: %s", text)
	}
}

func TestKeysRotateWhileCodesAreOut(t *testing.T) {
	h := newHouse(t)
	ring := h.ring()
	old := h.node(func(o *identity.ServiceOptions) { o.Keys = ring })
	browser := identity.NewBrowser()
	before := h.code(old, "ann@example.com", browser)
	if _, err := h.ring().Rotate(t.Context(), keys.SignIn); err != nil {
		t.Fatal(err)
	}
	young := h.node()
	if _, err := young.FinishSignIn(t.Context(), identity.Finish{Email: "ann@example.com", Browser: browser, Code: before.Code}); err != nil {
		t.Errorf("a code of the old key: %v", err)
	}
	after := h.code(young, "bob@example.com", browser)
	if _, err := old.FinishSignIn(t.Context(), identity.Finish{Email: "bob@example.com", Browser: browser, Code: after.Code}); err != nil {
		t.Errorf("a code of a key that this node has not seen: %v", err)
	}
}

func TestSignInsEnd(t *testing.T) {
	h := newHouse(t)
	s, other := h.node(), h.node()
	ctx := t.Context()
	good := func(token string, on *identity.Service) bool {
		_, err := on.SignedIn(ctx, token)
		if err != nil && fault.CodeOf(err) != fault.TokenInvalid {
			t.Fatal(err)
		}
		return err == nil
	}
	one, two, bob := h.signIn(s, "ann@example.com"), h.signIn(s, "ann@example.com"), h.signIn(s, "bob@example.com")
	if !good(one.Token, other) || !good(two.Token, s) || !good(bob.Token, s) {
		t.Fatal("not signed in")
	}
	if err := s.SignOut(ctx, one.Token); err != nil {
		t.Fatal(err)
	}
	if good(one.Token, s) {
		t.Error("signed out, and still in")
	}
	h.clock.forward(30 * time.Second)
	if good(one.Token, other) {
		t.Error("signed out, and on another node in after 30 s")
	}
	three := h.signIn(s, "ann@example.com")
	if err := s.EndSignIn(ctx, bob.SignIn.Customer, three.SignIn.ID); err != nil || !good(three.Token, s) {
		t.Errorf("bob ended ann's: %v", err)
	}
	if err := s.EndSignIn(ctx, three.SignIn.Customer, three.SignIn.ID); err != nil || good(three.Token, s) || !good(two.Token, s) {
		t.Errorf("one of several: %v", err)
	}
	list, err := s.SignIns(ctx, two.SignIn.Customer)
	if err != nil || len(list) != 1 || list[0].ID != two.SignIn.ID {
		t.Errorf("%+v, %v", list, err)
	}
	if err := s.SignOutAll(ctx, two.SignIn.Customer); err != nil || good(two.Token, s) || !good(bob.Token, s) {
		t.Errorf("all of ann's: %v", err)
	}
	for _, token := range []string{"x", strings.Repeat("A", 43), bob.Token + "A", bob.Token[:42] + "-"} {
		if good(token, s) {
			t.Errorf("%q is signed in", token)
		}
	}
	_, err = s.SignedIn(ctx, "")
	wantFault(t, err, fault.SignInRequired)
}

func TestSignInsRunOut(t *testing.T) {
	h := newHouse(t)
	s := h.still()
	ctx := t.Context()
	run := func() { // stores what was seen, and sends
		ended, cancel := context.WithCancel(ctx)
		cancel()
		s.Run(ended)
	}
	open := func(email string) identity.Opened {
		browser := identity.NewBrowser()
		if err := s.BeginSignIn(ctx, begin(email, browser)); err != nil {
			t.Fatal(err)
		}
		run()
		opened, err := s.FinishSignIn(ctx, identity.Finish{Email: email, Browser: browser, Code: (<-h.mail.codes).Code})
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
	idle, used := open("idle@example.com"), open("used@example.com")
	const day = 24 * time.Hour
	for d := time.Duration(0); d < 30*day; d += 6 * day {
		if _, err := s.SignedIn(ctx, used.Token); err != nil {
			t.Fatalf("used, after %s: %v", d, err)
		}
		run()
		h.clock.forward(6 * day)
	}
	_, err := s.SignedIn(ctx, used.Token)
	wantFault(t, err, fault.TokenInvalid) // 30 days, whatever happens
	_, err = s.SignedIn(ctx, idle.Token)
	wantFault(t, err, fault.TokenInvalid)

	// Seven days idle, to the millisecond, without anybody asking in between; and asking at the end does not bring it back.
	edge := open("edge@example.com")
	h.clock.forward(7*day - time.Millisecond)
	if _, err := h.still().SignedIn(ctx, edge.Token); err != nil {
		t.Errorf("a moment before: %v", err)
	}
	h.clock.forward(time.Millisecond)
	for range 2 {
		_, err = s.SignedIn(ctx, edge.Token)
		wantFault(t, err, fault.TokenInvalid)
		run()
	}
	if err := s.Prune(ctx); err != nil {
		t.Fatal(err)
	}
	for _, o := range []identity.Opened{idle, used, edge} {
		if list, err := s.SignIns(ctx, o.SignIn.Customer); err != nil || len(list) != 0 {
			t.Errorf("after tidying: %+v, %v", list, err)
		}
	}
}

// away is a store whose database is away.
type away struct {
	identity.PeopleStore
	gone atomic.Bool
}

var errAway = errors.New("the database is away")

func (a *away) SignIn(ctx context.Context, token identity.Hash) (identity.SignIn, error) {
	if a.gone.Load() {
		return identity.SignIn{}, errAway
	}
	return a.PeopleStore.SignIn(ctx, token)
}

func TestWhoIsSignedInGoesOnWithoutTheDatabase(t *testing.T) {
	h := newHouse(t)
	store := &away{PeopleStore: h.store}
	s := h.node(func(o *identity.ServiceOptions) { o.Store = store })
	in, out := h.signIn(s, "in@example.com"), h.signIn(s, "out@example.com")
	for _, o := range []identity.Opened{in, out} {
		if _, err := s.SignedIn(t.Context(), o.Token); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.still().SignOut(t.Context(), out.Token); err != nil { // on another node
		t.Fatal(err)
	}
	h.clock.forward(time.Minute)
	_, err := s.SignedIn(t.Context(), out.Token)
	wantFault(t, err, fault.TokenInvalid)
	store.gone.Store(true)
	h.clock.forward(time.Minute)
	if _, err := s.SignedIn(t.Context(), in.Token); err != nil {
		t.Errorf("known here: %v", err)
	}
	if _, err := s.SignedIn(t.Context(), out.Token); err == nil {
		t.Error("ended, and in again because the database is away")
	}
}

func (h *house) organizer(key string) id.ID {
	h.t.Helper()
	o, err := h.db.Catalog().EnsureOrganizer(h.t.Context(), organizerOf(h.ids.MustNext(0), key))
	if err != nil {
		h.t.Fatal(err)
	}
	return o.ID
}
