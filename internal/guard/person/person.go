// Package person asks Cloudflare Turnstile or hCaptcha whether somebody is a person.
//
// The one idea: what a widget on a page gives is worth nothing until the provider was asked about it, with our secret, once,
// within a bounded time; and an answer counts only for our own site, for what it was asked for, and soon after. Everything
// that is no clear answer is guard.ErrAway, after which the gate shows its own picture: it lets nobody in.
//
// Start reading at Check.
package person

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"onsale/internal/fault"
	"onsale/internal/guard"
)

// Bounds of a question to a provider.
const (
	Timeout        = 4 * time.Second
	answerBytesMax = 16 << 10
	tokenBytesMax  = 4 << 10
	ageMax         = 5 * time.Minute // of the challenge, as the provider says
	ahead          = time.Minute     // how far its clock may be before ours

	// Action is what a widget is told that it is for, where the provider knows actions.
	Action = "join"
)

// Options are an account with a provider.
type Options struct {
	SiteKey string
	Secret  string
	// Hostnames are those on which our pages are. At least one.
	Hostnames []string
	// SendAddress says that the provider is told the client's address.
	SendAddress bool
	URL         string       // of siteverify. Defaults to the provider's
	Client      *http.Client // Defaults to one of its own, which follows no redirects
}

// A provider is what the two differ in.
type provider struct {
	name, url string
	action    bool // it says for which action the widget was shown
	siteKey   bool // it takes the site key, and says no to tokens of another
	// unnamed is what it says for a host that it does not know: good enough where it has checked the site key.
	unnamed string
	// ours are errors that say that we asked wrongly: nobody else is to blame.
	ours []string
}

var (
	turnstile = provider{name: "turnstile", url: "https://challenges.cloudflare.com/turnstile/v0/siteverify", action: true,
		ours: []string{"missing-input-secret", "invalid-input-secret", "bad-request", "internal-error"}}
	hcaptcha = provider{name: "hcaptcha", url: "https://api.hcaptcha.com/siteverify", siteKey: true, unnamed: "not-provided",
		ours: []string{"missing-input-secret", "invalid-input-secret", "bad-request", "sitekey-secret-mismatch", "invalid-remoteip", "missing-remoteip"}}
)

// A Check is a guard.PersonCheck.
type Check struct {
	provider
	Options
}

// Turnstile asks Cloudflare.
func Turnstile(o Options) (*Check, error) { return newCheck(turnstile, o) }

// HCaptcha asks hCaptcha.
func HCaptcha(o Options) (*Check, error) { return newCheck(hcaptcha, o) }

func newCheck(p provider, o Options) (*Check, error) {
	if o.SiteKey == "" || o.Secret == "" || len(o.Hostnames) == 0 {
		return nil, fmt.Errorf("person check %s: a site key, a secret and at least one host name are needed", p.name)
	}
	if o.URL == "" {
		o.URL = p.url
	}
	if o.Client == nil {
		o.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Check{p, o}, nil
}

// Name is the provider's.
func (c *Check) Name() string { return c.name }

// Ask is what the widget needs.
func (c *Check) Ask(time.Time, guard.Bind) guard.PersonTask {
	t := guard.PersonTask{Provider: c.name, SiteKey: c.SiteKey}
	if c.action {
		t.Action = Action
	}
	return t
}

// verdict is what siteverify answers.
type verdict struct {
	Success  *bool     `json:"success"`
	At       time.Time `json:"challenge_ts"`
	Hostname string    `json:"hostname"`
	Action   string    `json:"action"`
	Errors   []string  `json:"error-codes"`
}

// Check asks the provider. The bind counts for nothing here: a token is good once, and the gate's pass is bound.
func (c *Check) Check(ctx context.Context, now time.Time, _ guard.Bind, from netip.Addr, a guard.PersonAnswer) error {
	if a.Token == "" || len(a.Token) > tokenBytesMax {
		return fault.New(fault.PersonRequired, "")
	}
	v, err := c.ask(ctx, a.Token, from)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", guard.ErrAway, c.name, err)
	}
	no := func(why string) error {
		return &fault.Error{Code: fault.PersonRequired, Detail: "the check was not passed; please try again", Cause: errors.New(c.name + ": " + why)}
	}
	switch {
	case !*v.Success && slices.ContainsFunc(v.Errors, func(e string) bool { return slices.Contains(c.ours, e) }):
		return fmt.Errorf("%w: %s says %q", guard.ErrAway, c.name, v.Errors)
	case !*v.Success:
		return no(fmt.Sprintf("%.200q", v.Errors))
	case (c.unnamed == "" || v.Hostname != c.unnamed) && !slices.ContainsFunc(c.Hostnames, func(h string) bool { return strings.EqualFold(h, v.Hostname) }):
		return no(fmt.Sprintf("solved on %.100q", v.Hostname))
	case c.action && v.Action != Action:
		return no(fmt.Sprintf("solved for %.100q", v.Action))
	case v.At.Before(now.Add(-ageMax)) || v.At.After(now.Add(ahead)):
		return no("solved at another time")
	}
	return nil
}

func (c *Check) ask(ctx context.Context, token string, from netip.Addr) (v verdict, err error) {
	form := url.Values{"secret": {c.Secret}, "response": {token}}
	if c.siteKey {
		form.Set("sitekey", c.SiteKey)
	}
	if c.SendAddress && from.IsValid() {
		form.Set("remoteip", from.String())
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return v, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := c.Client.Do(r)
	if err != nil {
		var where *url.Error
		if errors.As(err, &where) {
			err = where.Err
		}
		return v, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax+1))
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return v, err
	case len(body) > answerBytesMax:
		return v, errors.New("the answer is too long")
	case kind != "application/json":
		return v, fmt.Errorf("status %d with %.60q", answer.StatusCode, kind)
	}
	if err := json.Unmarshal(body, &v); err != nil || v.Success == nil {
		return v, fmt.Errorf("status %d, and the answer cannot be read: %v", answer.StatusCode, err)
	}
	if answer.StatusCode >= 500 || *v.Success && answer.StatusCode != http.StatusOK {
		return v, fmt.Errorf("status %d", answer.StatusCode)
	}
	return v, nil
}
