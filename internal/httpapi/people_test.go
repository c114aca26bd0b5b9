package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"onsale/internal/control"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/keys"
	"onsale/internal/keys/keystest"
)

// A mailbox takes the mails of a test.
type mailbox struct {
	codes   chan identity.CodeMail
	invites chan identity.InvitationMail
}

func (m *mailbox) SendCode(_ context.Context, c identity.CodeMail) error {
	m.codes <- c
	return nil
}

func (m *mailbox) SendInvitation(_ context.Context, i identity.InvitationMail) error {
	m.invites <- i
	return nil
}

// meet sets up everything about people.
func (w *world) meet(controls *control.DB, logger *slog.Logger) {
	master, err := keys.NewMaster([]byte(strings.Repeat("k", 32)))
	w.must(err)
	ring, err := keys.Load(w.t.Context(), &keystest.Memory{}, master, keys.Options{})
	w.must(err)
	w.ring = ring
	w.mails = &mailbox{codes: make(chan identity.CodeMail, 1000), invites: make(chan identity.InvitationMail, 100)}
	w.people, err = identity.NewService(w.t.Context(), identity.ServiceOptions{
		Store: controls.People(), Keys: ring, Mail: w.mails, NewID: w.newID, Now: w.now, Log: logger,
	})
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.people.Run(ctx) }()
	w.t.Cleanup(func() { cancel(); <-done })
}

// A browser keeps cookies.
type browser map[string]string

func (b browser) header() http.Header {
	var all []string
	for name, value := range b {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	if all == nil {
		return nil
	}
	return http.Header{"Cookie": {strings.Join(all, "; ")}}
}

func (b browser) keep(got reply) {
	for _, line := range got.header.Values("Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		switch {
		case err != nil:
		case c.MaxAge < 0:
			delete(b, c.Name)
		default:
			b[c.Name] = c.Value
		}
	}
}

// visit asks as a browser.
func (w *world) visit(b browser, a ask) reply {
	w.t.Helper()
	a.header = b.header()
	got := w.ask(a)
	b.keep(got)
	return got
}

// enter signs a browser in with a code from the mail.
func (w *world) enter(b browser, email string) {
	w.t.Helper()
	got := w.visit(b, ask{method: "POST", path: "/v1/sign-in", body: fmt.Sprintf(`{"email":%q}`, email)})
	w.into(got, 202, &SignInAsked{})
	mail := <-w.mails.codes
	for string(mail.To) != email { // another's, asked for before
		mail = <-w.mails.codes
	}
	got = w.visit(b, ask{method: "POST", path: "/v1/sign-in/code", body: fmt.Sprintf(`{"email":%q,"code":%q}`, email, mail.Code)})
	w.into(got, 200, &SignIn{})
}

func TestGoldenSignIn(t *testing.T) {
	w := newWorld(t)
	b := browser{}
	asking := ask{method: "POST", path: "/v1/sign-in", body: `{"email":"Ann@Example.com","locale":"zh-CN"}`}
	got := w.golden("sign_in_ask/asked", asking)
	b.keep(got)
	mail := <-w.mails.codes
	if mail.To != "ann@example.com" || mail.Locale != "zh-CN" || len(mail.Code) != 8 {
		t.Errorf("mailed %+v", mail)
	}
	for name, body := range map[string]string{"no_address": `{}`, "bad_address": `{"email":"ann"}`, "unknown_field": `{"mail":"ann@example.com"}`} {
		w.golden("sign_in_ask/"+name, ask{method: "POST", path: "/v1/sign-in", body: body})
	}

	w.api.Codes = false
	w.golden("sign_in_ask/no_mail", asking)
	w.api.Codes = true

	code := func(name, code string, header http.Header) reply {
		return w.golden("sign_in/"+name, ask{method: "POST", path: "/v1/sign-in/code", body: fmt.Sprintf(`{"email":"ann@example.com","code":%q}`, code), header: header})
	}
	code("no_browser", "12345678", nil)
	code("wrong", "abc", b.header())
	w.golden("sign_in/no_address", ask{method: "POST", path: "/v1/sign-in/code", body: `{"code":"12345678"}`, header: b.header()})
	other := browser{browserCookie: identity.NewBrowser()}
	if got := w.visit(other, ask{method: "POST", path: "/v1/sign-in/code", body: fmt.Sprintf(`{"email":"ann@example.com","code":%q}`, mail.Code)}); got.status != 401 {
		t.Errorf("another browser uses the code: status %d", got.status)
	}
	b.keep(w.hidden("sign_in/signed_in", ask{method: "POST", path: "/v1/sign-in/code", body: fmt.Sprintf(`{"email":"ann@example.com","code":%q}`, mail.Code), header: b.header()}))
	if got := w.visit(b, ask{method: "POST", path: "/v1/sign-in/code", body: fmt.Sprintf(`{"email":"ann@example.com","code":%q}`, mail.Code)}); got.status != 401 {
		t.Errorf("a code is good twice: status %d", got.status)
	}

	w.golden("me_get/signed_in", ask{path: "/v1/me", header: b.header()})
	change := func(name, body string) {
		w.golden("me_change/"+name, ask{method: "PATCH", path: "/v1/me", body: body, header: b.header()})
	}
	change("name", `{"name":"Ann Example","locale":"zh-CN"}`)
	change("only_the_language", `{"locale":""}`)
	change("bad_language", `{"locale":"de"}`)

	w.golden("sign_out/token", ask{method: "DELETE", path: "/v1/sign-in", customer: "ben"})
	w.golden("sign_out/what", ask{method: "DELETE", path: "/v1/sign-in?all=1", header: b.header()})
	w.golden("sign_out/signed_out", ask{method: "DELETE", path: "/v1/sign-in", header: b.header()})
	if got := w.ask(ask{path: "/v1/me", header: b.header()}); got.status != 401 {
		t.Errorf("after signing out: status %d", got.status)
	}
}

// hidden is golden for a body with a secret of the test.
func (w *world) hidden(name string, a ask) reply {
	a.quiet = true
	return w.golden(name, a)
}

// A sign-in stands for a token in every call, until it ends.
func TestCookieStandsForAToken(t *testing.T) {
	w := newWorld(t)
	phone, desk := browser{}, browser{}
	w.enter(phone, "ann@example.com")
	w.enter(desk, "ann@example.com")
	var h Hold
	w.into(w.visit(phone, ask{method: "POST", path: "/v1/holds", body: w.seatsBody("now", "A-A-1")}), 201, &h)
	w.into(w.visit(desk, ask{path: "/v1/holds/" + h.ID}), 200, &h)
	if got := w.ask(ask{path: "/v1/holds/" + h.ID, customer: "ann"}); got.status != 403 {
		t.Errorf("another customer has it: status %d", got.status)
	}
	// Where both come the token counts.
	var me Me
	w.into(w.ask(ask{path: "/v1/me", customer: "ben", header: desk.header()}), 200, &me)
	if me.Via != "bearer" || me.Customer != w.customer("ben").Text(id.Customer) {
		t.Errorf("with both %+v", me)
	}
	// Signing in again ends the sign-in that the browser had.
	old := browser{signInCookie: desk[signInCookie]}
	w.enter(desk, "ann@example.com")
	w.problemOf(w.ask(ask{path: "/v1/me", header: old.header()}), "token_invalid")
	if got := w.visit(desk, ask{method: "DELETE", path: "/v1/sign-in?all=true"}); got.status != 204 || desk[signInCookie] != "" {
		t.Errorf("status %d, %v", got.status, desk)
	}
	w.problemOf(w.ask(ask{path: "/v1/me", header: phone.header()}), "token_invalid")
	w.pass(31 * 24 * time.Hour)
	w.problemOf(w.ask(ask{path: "/v1/me", header: browser{signInCookie: "x"}.header()}), "token_invalid")
	if strings.Contains(w.log.String(), "example.com") {
		t.Error("E10: the log has an address")
	}
}

func TestCookiesAreKept(t *testing.T) {
	w := newWorld(t)
	h := w.as(func(o *Options) { o.PublicURL = "https://tickets.example" })
	for _, c := range []struct {
		handler http.Handler
		name    string
		secure  bool
	}{{w.handler, browserCookie, false}, {h, hostPrefix + browserCookie, true}} {
		got := w.askHandler(c.handler, ask{method: "POST", path: "/v1/sign-in", body: `{"email":"ann@example.com"}`})
		line := got.header.Get("Set-Cookie")
		cookie, err := http.ParseSetCookie(line)
		if err != nil || cookie.Name != c.name || cookie.Secure != c.secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || cookie.Domain != "" || cookie.MaxAge != 30*24*3600 {
			t.Errorf("%v: %s", err, line)
		}
		if got.header.Get("Cache-Control") != "private, no-store" {
			t.Error("an answer with a cookie may be kept")
		}
	}
	// A cookie that a plain connection could have set is none behind https.
	b := browser{}
	w.enter(b, "cleo@example.com")
	if got := w.askHandler(h, ask{path: "/v1/me", header: b.header()}); got.status != 401 {
		t.Errorf("status %d", got.status)
	}
}

// An elsewhere is a provider of sign-ins that believes everybody.
type elsewhere struct{ browser string }

func (e *elsewhere) Start(_ context.Context, browser, returnTo string) (string, error) {
	e.browser = browser
	return "https://idp.example/authorize?state=" + url.QueryEscape(returnTo), nil
}

func (e *elsewhere) Callback(_ context.Context, browser string, q url.Values) (identity.Named, string, error) {
	if browser == "" || browser != e.browser {
		return identity.Named{}, "", fault.New(fault.TokenInvalid, "begin again in this browser")
	}
	return identity.Named{Issuer: "https://idp.example", Sub: q.Get("code")}, q.Get("state"), nil
}

func TestGoldenOIDC(t *testing.T) {
	w := newWorld(t)
	w.api.Providers = map[string]OIDC{"corp": &elsewhere{}}
	b := browser{}
	b.keep(w.golden("sign_in_start/to_the_provider", ask{path: "/v1/sign-in/corp/start?return_to=/v1/me"}))
	w.golden("sign_in_start/not_found", ask{path: "/v1/sign-in/other/start"})
	for name, to := range map[string]string{"elsewhere": "https://evil.example/", "other_host": "//evil.example/", "backslash": "/%5Cevil.example", "long": "/" + strings.Repeat("a", 600)} {
		w.golden("sign_in_start/return_"+name, ask{path: "/v1/sign-in/corp/start?return_to=" + to})
	}
	w.golden("sign_in_callback/other_browser", ask{path: "/v1/sign-in/corp/callback?code=ann"})
	w.golden("sign_in_callback/not_found", ask{path: "/v1/sign-in/other/callback?code=ann"})
	w.golden("sign_in_callback/signed_in", ask{path: "/v1/sign-in/corp/callback?code=ann&state=/v1/me", header: b.header()})
	got := w.visit(b, ask{path: "/v1/sign-in/corp/callback?code=ann&state=//evil.example"})
	if got.header.Get("Location") != "/" {
		t.Errorf("it sends the browser to %s", got.header.Get("Location"))
	}
	var me Me
	w.into(w.visit(b, ask{path: "/v1/me"}), 200, &me)
	if me.Via != "cookie" || len(me.Emails) != 0 {
		t.Errorf("%+v", me)
	}
}

func TestGoldenInvitation(t *testing.T) {
	w := newWorld(t)
	_, token, err := w.people.Invite(t.Context(), identity.Actor{}, identity.Invite{Organizer: w.house, Name: "House", Email: "ann@example.com", Role: identity.Operator})
	w.must(err)
	ann, ben := browser{}, browser{}
	w.enter(ann, "ann@example.com")
	w.enter(ben, "ben@example.com")
	accept := func(name string, b browser) {
		w.hidden("invitation_accept/"+name, ask{method: "POST", path: "/v1/invitations/accept", body: fmt.Sprintf(`{"token":%q}`, token), header: b.header()})
	}
	accept("anothers", ben)
	accept("accepted", ann)
	accept("used_up", ann)
	w.golden("me_get/with_a_role", ask{path: "/v1/me", header: ann.header()})
}

func FuzzSignIn(f *testing.F) {
	w := newWorld(f)
	b := identity.NewBrowser()
	for _, body := range []string{
		`{"email":"ann@example.com"}`, `{"email":"ann@example.com","code":"12345678"}`, `{"email":"ａｎｎ＠example.com","locale":"zh-CN"}`, `{"email":"a@b.c","code":"１２３４５６７８"}`,
		`{"email":"\u0000@x.y"}`, `{"email":["a"]}`, `{"email":"a@[127.0.0.1]"}`, `{}`, `[]`, ``, `{"email":"a@xn--.com"}`, `{"code":""}`, "{\"email\":\"\xff@a.b\"}",
		`{"email":"ann@example.com","code":"12345678","Code":"1"}`, `{"email":"ann+x@example.com\r\nBcc: ben@example.com"}`,
	} {
		f.Add(body, b, "x")
		f.Add(body, "", "")
		f.Add(body, b+"; "+browserCookie+"=y", strings.Repeat("A", 43))
	}
	f.Fuzz(func(t *testing.T, body, browser, signIn string) {
		w.t = t
		for _, path := range []string{"/v1/sign-in", "/v1/sign-in/code"} {
			r := w.signedPost(path, body)
			r.Header.Del("Authorization")
			r.Header["Cookie"] = []string{browserCookie + "=" + browser + "; " + signInCookie + "=" + signIn}
			got := w.sane(t, r, "sign_in_ask", "sign_in")
			if path == "/v1/sign-in/code" && got.status < 400 {
				t.Fatalf("it signed in: %s", got.body)
			}
			select {
			case mail := <-w.mails.codes:
				if strings.ContainsAny(string(mail.To), "\r\n ,;<>") || strings.Count(string(mail.To), "@") != 1 {
					t.Fatalf("a code goes to %q", mail.To)
				}
			default:
			}
		}
	})
}
