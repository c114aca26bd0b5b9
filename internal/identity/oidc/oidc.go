// Package oidc lets people sign in at an OpenID Connect provider: the authorization code flow with PKCE, state and nonce.
//
// The one idea: nothing is stored while somebody is away at the provider. What has to come back unchanged (nonce, PKCE
// verifier, where to go on) travels in the state, sealed under a key of ours and bound to the browser's cookie: any node
// reads it, after a restart too, and in another browser it does not open. So a callback that was sent to somebody else (to
// sign them in as the sender) ends there, and so does a code that was caught on its way.
//
// Start reading at Provider.Start and Provider.Callback; routes translate both to HTTP.
package oidc

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"onsale/internal/cache"
	"onsale/internal/fault"
	"onsale/internal/identity"
	"onsale/internal/keys"
)

// Limits of what is asked and taken.
const (
	AwayMax        = 10 * time.Minute // at the provider
	ReturnBytesMax = 512
	codeBytesMax   = 4 << 10
	bodyBytesMax   = 1 << 20
	talkMax        = 10 * time.Second
	readAgainAfter = 24 * time.Hour // the provider's description of itself
	askAgainAfter  = 5 * time.Second
)

// Keyring is what is needed of keys.Ring.
type Keyring interface {
	Active(purpose keys.Purpose) (keys.Key, error)
	Find(ctx context.Context, purpose keys.Purpose, kid string) (keys.Key, error)
}

// Options say which provider, and who we are there.
type Options struct {
	Name         string // by which routes name it: "google"
	Issuer       string // https://…, exactly as its tokens say
	ClientID     string
	ClientSecret string // secret; "" for a public client
	RedirectURL  string // our callback, as registered there
	Algorithm    string // of its tokens, the only one. Defaults to RS256
	// TrustEmail says that the provider has verified the addresses that it calls so: they then stand for the customer who
	// signs in with a code. Not for a provider where people choose their own claims.
	TrustEmail bool
	Keys       Keyring
	Now        func() time.Time // defaults to time.Now
	Client     *http.Client     // defaults to one that follows no redirects
}

// A Provider is an OpenID Connect provider. Its methods may be called from many goroutines.
type Provider struct {
	o     Options
	known *cache.Cache[struct{}, *described]
}

// described is what the provider says of itself.
type described struct {
	oauth    oauth2.Config
	verifier *gooidc.IDTokenVerifier
}

// New makes a provider. It asks it nothing yet: one that is away keeps nobody else from signing in.
func New(o Options) (*Provider, error) {
	if o.Algorithm == "" {
		o.Algorithm = "RS256"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Client == nil {
		o.Client = &http.Client{
			Timeout: talkMax, Transport: bounded{http.DefaultTransport},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("oidc: provider %q: %w", o.Name, err)
	}
	return &Provider{o: o, known: cache.New[struct{}, *described](cache.Options{
		CountMax: 1, FreshFor: readAgainAfter, Now: o.Now, UseOld: func(error) bool { return true }, RetryAfter: askAgainAfter,
	})}, nil
}

func (o Options) check() error {
	switch {
	case o.Name == "" || strings.ContainsFunc(o.Name, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-') }):
		return errors.New("the name must be of small letters, digits and hyphens: it stands in URLs")
	case !private(o.Issuer):
		return errors.New("the issuer must be an https URL (http only on this machine)")
	case !private(o.RedirectURL):
		return errors.New("the redirect URL must be an https URL (http only on this machine)")
	case o.ClientID == "":
		return errors.New("a client id is needed; the provider gives one")
	case !slices.Contains(identity.Algorithms, o.Algorithm):
		return fmt.Errorf("algorithm %q must be one of %v", o.Algorithm, identity.Algorithms)
	case o.Keys == nil:
		return errors.New("keys are needed")
	}
	return nil
}

// private says whether nobody on the way reads what goes to a URL.
func private(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// Name is how routes name the provider.
func (p *Provider) Name() string { return p.o.Name }

// Start is the URL at which a browser signs in; returnTo is the path of ours where it goes on afterwards. Faults:
// bad_request (no browser); busy (the provider is away).
func (p *Provider) Start(ctx context.Context, browser, returnTo string) (string, error) {
	if !identity.CheckBrowser(browser) {
		return "", fault.New(fault.BadRequest, "the browser's cookie is missing or damaged: allow cookies, and begin again")
	}
	d, err := p.describe(ctx)
	if err != nil {
		return "", err
	}
	f := flow{
		Provider: p.o.Name, Nonce: identity.NewBrowser(), Verifier: oauth2.GenerateVerifier(), Return: ownPath(returnTo),
		Expires: p.o.Now().Add(AwayMax).UnixMilli(),
	}
	state, err := seal(p.o.Keys, browser, f)
	if err != nil {
		return "", err
	}
	return d.oauth.AuthCodeURL(state, gooidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), nil
}

// ownPath is a path of ours, "/" for anything that could lead elsewhere.
func ownPath(text string) string {
	u, err := url.Parse(text)
	plain := !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '\\' || r > '~' })
	if err != nil || len(text) > ReturnBytesMax || !plain || u.IsAbs() || u.Host != "" || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") {
		return "/"
	}
	return text
}

// Callback is who came back from the provider, and where they go on. query is the callback's. Faults: token_invalid (it was
// refused there, or began in another browser, or too long ago, or anything about the answer is not as it should be);
// bad_request (no browser); busy (the provider is away).
func (p *Provider) Callback(ctx context.Context, browser string, query url.Values) (identity.Named, string, error) {
	if !identity.CheckBrowser(browser) {
		return identity.Named{}, "", fault.New(fault.BadRequest, "the browser's cookie is missing or damaged: allow cookies, and begin again")
	}
	for _, name := range []string{"state", "code", "error", "iss"} {
		if len(query[name]) > 1 || len(query.Get(name)) > codeBytesMax {
			return identity.Named{}, "", refuse("the provider's answer cannot be read", nil)
		}
	}
	f, err := open(ctx, p.o.Keys, browser, query.Get("state"))
	if err != nil {
		return identity.Named{}, "", err
	}
	switch {
	case f.Provider != p.o.Name:
		return identity.Named{}, "", refuse("this answer is of another provider", nil)
	case p.o.Now().UnixMilli() >= f.Expires:
		return identity.Named{}, "", refuse("it took too long: begin again", nil)
	case query.Has("iss") && query.Get("iss") != p.o.Issuer: // RFC 9207
		return identity.Named{}, "", refuse("this answer is of another provider", nil)
	case query.Has("error"):
		return identity.Named{}, "", refuse("the provider did not sign you in", errors.New("the provider answered an error"))
	case query.Get("code") == "":
		return identity.Named{}, "", refuse("the provider's answer has no code", nil)
	}
	who, err := p.redeem(ctx, f, query.Get("code"))
	return who, f.Return, err
}

// redeem changes the code for a token, and believes that.
func (p *Provider) redeem(ctx context.Context, f flow, code string) (identity.Named, error) {
	d, err := p.describe(ctx)
	if err != nil {
		return identity.Named{}, err
	}
	ctx, cancel := context.WithTimeout(gooidc.ClientContext(ctx, p.o.Client), talkMax)
	defer cancel()
	token, err := d.oauth.Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	var answered *oauth2.RetrieveError
	switch {
	case errors.As(err, &answered) && answered.Response != nil && answered.Response.StatusCode < http.StatusInternalServerError:
		return identity.Named{}, refuse("the provider does not know this code: begin again", fmt.Errorf("token endpoint: %s %.40q", answered.Response.Status, answered.ErrorCode))
	case err != nil:
		return identity.Named{}, p.away(err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" || len(raw) > identity.TokenBytesMax {
		return identity.Named{}, refuse("the provider's answer holds no proper token", nil)
	}
	return p.believe(ctx, d, f, raw)
}

func (p *Provider) believe(ctx context.Context, d *described, f flow, raw string) (identity.Named, error) {
	token, err := d.verifier.Verify(ctx, raw) // signature by the pinned algorithm, issuer, audience, expiry
	if err != nil {
		return identity.Named{}, refuse("the provider's token does not hold", err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(f.Nonce)) != 1 {
		return identity.Named{}, refuse("the provider's token was made for another sign-in", nil)
	}
	var claims struct {
		Party         string `json:"azp"`
		Email         any    `json:"email"`
		EmailVerified any    `json:"email_verified"`
	}
	if err := token.Claims(&claims); err != nil {
		return identity.Named{}, refuse("the provider's token cannot be read", err)
	}
	if len(token.Audience) > 1 && claims.Party == "" || claims.Party != "" && claims.Party != p.o.ClientID {
		return identity.Named{}, refuse("the provider's token was made for another program", nil)
	}
	who := identity.Named{Issuer: token.Issuer, Sub: token.Subject}
	if p.o.TrustEmail {
		who.Email = identity.VerifiedEmail(claims.Email, claims.EmailVerified)
	}
	return who, nil
}

// describe asks the provider where its endpoints and keys are, once a day.
func (p *Provider) describe(ctx context.Context) (*described, error) {
	d, err := p.known.Load(ctx, struct{}{}, func(ctx context.Context) (*described, error) {
		ctx, cancel := context.WithTimeout(gooidc.ClientContext(ctx, p.o.Client), talkMax)
		defer cancel()
		provider, err := gooidc.NewProvider(ctx, p.o.Issuer)
		if err != nil {
			return nil, err
		}
		endpoint := provider.Endpoint()
		var at struct {
			Keys string `json:"jwks_uri"`
		}
		if err := provider.Claims(&at); err != nil {
			return nil, err
		}
		for _, u := range []string{endpoint.AuthURL, endpoint.TokenURL, at.Keys} {
			if !private(u) {
				return nil, fmt.Errorf("%q is not an https URL", u)
			}
		}
		return &described{
			oauth: oauth2.Config{
				ClientID: p.o.ClientID, ClientSecret: p.o.ClientSecret, RedirectURL: p.o.RedirectURL, Endpoint: endpoint,
				Scopes: []string{gooidc.ScopeOpenID, "email"},
			},
			verifier: provider.Verifier(&gooidc.Config{ClientID: p.o.ClientID, SupportedSigningAlgs: []string{p.o.Algorithm}, Now: p.o.Now}),
		}, nil
	})
	if err != nil {
		return nil, p.away(err)
	}
	return d, nil
}

// Check asks the provider whether it is there, for doctor.
func (p *Provider) Check(ctx context.Context) error {
	_, err := p.describe(ctx)
	return err
}

func (p *Provider) away(cause error) error {
	return &fault.Error{Code: fault.Busy, Detail: "the sign-in provider does not answer as it should at the moment", RetryAfter: askAgainAfter, Cause: cause}
}

func refuse(why string, cause error) error {
	return &fault.Error{Code: fault.TokenInvalid, Detail: why, Cause: cause}
}

// bounded reads no more of an answer than it should have.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, bodyBytesMax), answer.Body}
	}
	return answer, err
}
