package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"onsale/internal/fault"
	"onsale/internal/guard"
	"onsale/internal/id"
	"onsale/internal/identity"
)

// A SignInRequest asks for a one-time code by mail.
type SignInRequest struct {
	Email  string `json:"email"`
	Locale string `json:"locale,omitempty" enum:"en,zh-CN" doc:"the language of the mail; by Accept-Language where missing"`
}

// A SignInAsked says what comes next. It is the same whoever's the address is, and whether or not a mail was sent.
type SignInAsked struct {
	CodeTTLMS int64 `json:"code_ttl_ms" doc:"how long a code that was sent is good, in this browser"`
}

// A SignInCode brings the code.
type SignInCode struct {
	Email string `json:"email"`
	Code  string `json:"code" doc:"the digits of the mail"`
}

// A SignIn is an authenticated browser: its cookie came with the answer.
type SignIn struct {
	Customer string    `json:"customer_id"`
	Expires  time.Time `json:"expires_at"`
}

// An OIDC is a provider of sign-ins; oidc.Provider is one.
type OIDC interface {
	// Start is where the browser has to go, to come back to returnTo.
	Start(ctx context.Context, browser, returnTo string) (url string, err error)
	// Callback is who came back with these parameters, and where they wanted to go.
	Callback(ctx context.Context, browser string, query url.Values) (who identity.Named, returnTo string, err error)
}

// callbackBytesMax bounds the query with which a provider sends a browser back: its codes may be long.
const callbackBytesMax = 8 << 10

func (a *api) signInRoutes() []route {
	return []route{
		{Method: "POST", Path: "/v1/sign-in", ID: "sign_in_ask", Who: public, Class: guard.SignIn, Tag: "People", Summary: "Ask for a one-time code by mail",
			Notes: "The answer is the same for every address. It sets the cookie of the browser to which the code is bound.",
			Body:  SignInRequest{}, Answer: SignInAsked{}, Status: []int{202}, Faults: []fault.Code{fault.Invalid, fault.NotFound}, handle: a.signInAsk},
		{Method: "POST", Path: "/v1/sign-in/code", ID: "sign_in", Who: public, Class: guard.SignIn, Tag: "People", Summary: "Sign in with the code",
			Notes: "Five tries a code. It sets the cookie of the sign-in, which stands for the bearer token in all other calls.",
			Body:  SignInCode{}, Answer: SignIn{}, Faults: []fault.Code{fault.Invalid, fault.CodeWrong}, handle: a.signIn},
		{Method: "DELETE", Path: "/v1/sign-in", ID: "sign_out", Who: signedIn, Tag: "People", Summary: "Sign out",
			Query:  []parameter{{"all", "true: every browser of this customer", "string"}},
			Status: []int{204}, Faults: []fault.Code{fault.Invalid, fault.Conflict}, handle: a.signOut},
		{Method: "GET", Path: "/v1/sign-in/{provider}/start", ID: "sign_in_start", Who: public, Tag: "People", Summary: "Sign in at another provider (OpenID Connect)",
			Query: []parameter{{"return_to", "the path to come back to", "string"}}, Status: []int{303}, Faults: []fault.Code{fault.Invalid, fault.NotFound}, handle: a.signInStart},
		{Method: "GET", Path: "/v1/sign-in/{provider}/callback", ID: "sign_in_callback", Who: public, Tag: "People", Summary: "Where the provider sends the browser back to",
			LongQuery: true, Status: []int{303}, Faults: []fault.Code{fault.NotFound, fault.TokenInvalid}, handle: a.signInCallback},
	}
}

// errNoPeople is answered where nobody can sign in by this server itself.
var errNoPeople = fault.New(fault.NotFound, "nobody can sign in here; send a token of your issuer")

// browser is the name of the asking browser, which is given one where it has none.
func (a *api) browser(w http.ResponseWriter, r *request) string {
	name := a.cookie(r.Request, browserCookie)
	if !identity.CheckBrowser(name) {
		name = identity.NewBrowser()
	}
	a.setCookie(w, browserCookie, name, browserFor)
	return name
}

func (a *api) signInAsk(w http.ResponseWriter, r *request) error {
	var body SignInRequest
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	if a.People == nil || !a.Codes {
		return errNoPeople
	}
	if body.Locale == "" {
		body.Locale, _ = title(fault.Entry{}, r.Header.Values("Accept-Language"))
	}
	begin := identity.Begin{Email: body.Email, Browser: a.browser(w, r), IP: a.address(r), Locale: body.Locale}
	if err := a.People.BeginSignIn(r.Context(), begin); err != nil {
		return err
	}
	return write(w, http.StatusAccepted, SignInAsked{CodeTTLMS: identity.CodeFor.Milliseconds()})
}

func (a *api) signIn(w http.ResponseWriter, r *request) error {
	var body SignInCode
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	if a.People == nil {
		return errNoPeople
	}
	opened, err := a.People.FinishSignIn(r.Context(), identity.Finish{
		Email: body.Email, Browser: a.cookie(r.Request, browserCookie), Code: body.Code, Replaces: a.cookie(r.Request, signInCookie),
	})
	if err != nil {
		return err
	}
	a.opened(w, opened)
	return write(w, http.StatusOK, SignIn{Customer: opened.SignIn.Customer.Text(id.Customer), Expires: opened.SignIn.Expires})
}

// opened gives the browser the cookie of its sign-in.
func (a *api) opened(w http.ResponseWriter, o identity.Opened) {
	a.setCookie(w, signInCookie, o.Token, o.SignIn.Expires.Sub(a.Now()))
}

func (a *api) signOut(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	if a.People == nil {
		return errNoPeople
	}
	switch all := asked.Get("all"); {
	case all == "true":
		err = a.People.SignOutAll(r.Context(), r.customer)
	case all != "" && all != "false":
		err = &fault.Error{Code: fault.Invalid, Field: "all", Detail: "true or false"}
	case r.person.Via != identity.ViaCookie:
		err = fault.New(fault.Conflict, "a bearer token is not a sign-in of ours: say all=true to end those of this customer")
	default:
		err = a.People.SignOut(r.Context(), a.cookie(r.Request, signInCookie))
	}
	if err != nil {
		return err
	}
	a.setCookie(w, signInCookie, "", 0)
	return nothing(w)
}

// nothing answers that it is done, and that there is nothing to say.
func nothing(w http.ResponseWriter) error {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *api) provider(r *request) (OIDC, error) {
	if p := a.Providers[r.PathValue("provider")]; p != nil && a.People != nil {
		return p, nil
	}
	return nil, fault.New(fault.NotFound, "no such provider of sign-ins is in use")
}

func (a *api) signInStart(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	p, err := a.provider(r)
	if err != nil {
		return err
	}
	back := asked.Get("return_to")
	if back == "" {
		back = "/"
	}
	if !localPath(back) {
		return &fault.Error{Code: fault.Invalid, Field: "return_to", Detail: "a path of this site, such as /v1/me"}
	}
	to, err := p.Start(r.Context(), a.browser(w, r), back)
	if err != nil {
		return err
	}
	return redirect(w, to)
}

func (a *api) signInCallback(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	p, err := a.provider(r)
	if err != nil {
		return err
	}
	who, back, err := p.Callback(r.Context(), a.cookie(r.Request, browserCookie), asked)
	if err != nil {
		return err
	}
	opened, err := a.People.SignInWith(r.Context(), who, identity.MethodOIDC, a.cookie(r.Request, signInCookie))
	if err != nil {
		return err
	}
	a.opened(w, opened)
	if !localPath(back) {
		back = "/"
	}
	return redirect(w, back)
}

const returnBytesMax = 512

// localPath says whether a browser that is sent there stays on this site: //host and /\host would not.
func localPath(path string) bool {
	return strings.HasPrefix(path, "/") && len(path) <= returnBytesMax && !strings.HasPrefix(path, "//") &&
		!strings.ContainsFunc(path, func(c rune) bool { return c < ' ' || c > '~' || c == '\\' })
}

func redirect(w http.ResponseWriter, to string) error {
	h := w.Header()
	h.Set("Location", to)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}
