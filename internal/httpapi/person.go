package httpapi

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"onsale/internal/fault"
	"onsale/internal/guard"
	"onsale/internal/id"
	"onsale/internal/identity"
)

// An Authenticator says which customer a bearer token is of. Its faults are token_invalid and unavailable stores.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (id.ID, error)
}

// The cookies. Behind https their names begin with __Host-, so that no other host and no plain connection can set them.
const (
	signInCookie  = "onsale_sign_in" // the token of a sign-in
	browserCookie = "onsale_browser" // which browser asked for a code or went to a provider
	hostPrefix    = "__Host-"
	browserFor    = 30 * 24 * time.Hour
)

func (a *api) cookieName(name string) string {
	if a.https() {
		return hostPrefix + name
	}
	return name
}

// cookie is the value of one of our cookies, "" where it did not come.
func (a *api) cookie(r *http.Request, name string) string {
	c, err := r.Cookie(a.cookieName(name))
	if err != nil {
		return ""
	}
	return c.Value
}

// setCookie gives the browser a cookie for a time; 0 takes it away.
func (a *api) setCookie(w http.ResponseWriter, name, value string, last time.Duration) {
	c := &http.Cookie{
		Name: a.cookieName(name), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: a.https(),
		MaxAge: int(last.Seconds()),
	}
	if last <= 0 {
		c.Value, c.MaxAge = "", -1
	}
	http.SetCookie(w, c)
}

// identify finds out who asks: by a bearer token, else by the cookie of a sign-in. Where both come the token counts: a
// program that sends one means it.
func (a *api) identify(r *request) error {
	values := r.Header.Values("Authorization")
	cookie := a.cookie(r.Request, signInCookie)
	switch {
	case len(values) == 0 && cookie == "":
		return fault.New(fault.SignInRequired, "sign in, or send the header Authorization: Bearer with your token")
	case len(values) == 0:
		if a.People == nil {
			return fault.New(fault.TokenInvalid, "")
		}
		s, err := a.People.SignedIn(r.Context(), cookie)
		if err != nil {
			return err
		}
		r.person = identity.Person{Customer: s.Customer, Via: identity.ViaCookie}
		return nil
	}
	token, err := bearer(values)
	if err != nil {
		return err
	}
	customer, err := a.Identity.Authenticate(r.Context(), token)
	if err != nil {
		return err
	}
	r.person = identity.Person{Customer: customer, Via: identity.ViaBearer}
	return nil
}

// namesSomebody says whether a request carries anything that says who asks.
func (a *api) namesSomebody(r *request) bool {
	return len(r.Header.Values("Authorization")) > 0 || a.cookie(r.Request, signInCookie) != ""
}

// address is the client's; the zero one for a socket of the file system.
func (a *api) address(r *request) netip.Addr {
	return guard.ClientAddress(r.RemoteAddr, r.Header, a.TrustedProxies)
}

// limitAndIdentify finds out who asks, and lets them ask as often as they may. The whole site comes first: to look at a
// token is work. Whose token is none counts by their address, like those who have none.
func (a *api) limitAndIdentify(rt *route, h http.Header, r *request) error {
	if err := a.limitSite(rt, r); err != nil {
		return err
	}
	var stranger error
	if rt.Who.signedIn() || rt.Who.kind == either && a.namesSomebody(r) || a.Limiter != nil && rt.class() != guard.Free && a.namesSomebody(r) {
		stranger = a.identify(r)
	}
	if err := a.limitCaller(rt, h, r); err != nil {
		return err
	}
	if rt.Who.signedIn() {
		r.customer = r.person.Customer
		return stranger
	}
	if rt.Who.kind == either {
		return stranger
	}
	return nil
}
