package person

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/fault"
	"onsale/internal/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

// standIn answers as the providers' documents say: a token is good once.
type standIn struct {
	t      *testing.T
	good   map[string]map[string]any // what is said of a token
	asked  url.Values
	status int
	raw    string
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || r.URL.RawQuery != "" {
		s.t.Errorf("asked by %s as %s", r.Method, r.Header.Get("Content-Type"))
	}
	r.ParseForm()
	s.asked = r.PostForm
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if s.raw != "" {
		w.Header().Set("Content-Type", strings.SplitN(s.raw, "|", 2)[0])
		w.WriteHeader(s.status)
		w.Write([]byte(strings.SplitN(s.raw, "|", 2)[1]))
		return
	}
	no := func(code string) {
		json.NewEncoder(w).Encode(map[string]any{"success": false, "error-codes": []string{code}})
	}
	token := r.PostFormValue("response")
	said, known := s.good[token]
	switch {
	case r.PostFormValue("secret") != "the secret":
		no("invalid-input-secret")
	case !known:
		no("invalid-input-response")
	case said["used"] != nil:
		no("timeout-or-duplicate")
	default:
		answer := map[string]any{"success": true, "challenge_ts": noon.Format("2006-01-02T15:04:05.000Z"), "hostname": "tickets.example", "error-codes": []string{}}
		for k, v := range said {
			answer[k] = v
		}
		s.good[token]["used"] = true
		json.NewEncoder(w).Encode(answer)
	}
}

func options(s *httptest.Server) Options {
	return Options{SiteKey: "the site", Secret: "the secret", Hostnames: []string{"Tickets.example"}, URL: s.URL, Client: s.Client()}
}

func TestProviders(t *testing.T) {
	joined := map[string]any{"action": Action}
	for name, c := range map[string]struct {
		said  map[string]any // of the token; nil: it is not known
		again bool
		both  bool // for hCaptcha, too, which knows no actions
		want  string
	}{
		"a person":         {said: joined, both: true},
		"nobody":           {want: "invalid-input-response", both: true},
		"twice":            {said: joined, again: true, both: true, want: "timeout-or-duplicate"},
		"another site":     {said: map[string]any{"action": Action, "hostname": "evil.example"}, both: true, want: "evil.example"},
		"no host":          {said: map[string]any{"action": Action, "hostname": ""}, both: true, want: "solved on"},
		"another action":   {said: map[string]any{"action": "login"}, want: "login"},
		"no action":        {said: map[string]any{}, want: "solved for"},
		"long ago":         {said: map[string]any{"action": Action, "challenge_ts": noon.Add(-ageMax - time.Second).Format(time.RFC3339)}, both: true, want: "another time"},
		"in the future":    {said: map[string]any{"action": Action, "challenge_ts": noon.Add(ahead + time.Second).Format(time.RFC3339)}, both: true, want: "another time"},
		"without any time": {said: map[string]any{"action": Action, "challenge_ts": time.Time{}}, both: true, want: "another time"},
	} {
		for kind, open := range map[string]func(Options) (*Check, error){"turnstile": Turnstile, "hcaptcha": HCaptcha} {
			if kind == "hcaptcha" && !c.both {
				continue
			}
			stand := &standIn{t: t, good: map[string]map[string]any{}}
			if c.said != nil {
				stand.good["tok"] = map[string]any{}
				for k, v := range c.said {
					stand.good["tok"][k] = v
				}
			}
			server := httptest.NewServer(stand)
			check, err := open(options(server))
			if err != nil {
				t.Fatal(err)
			}
			ask := func() error {
				return check.Check(t.Context(), noon, guard.Bind{}, netip.MustParseAddr("198.51.100.7"), guard.PersonAnswer{Provider: kind, Token: "tok"})
			}
			if c.again {
				if err := ask(); err != nil {
					t.Error(err)
				}
			}
			err = ask()
			if c.want == "" && err != nil || c.want != "" && (fault.CodeOf(err) != fault.PersonRequired || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, %s: %v, want %q", kind, name, err, c.want)
			}
			if errors.Is(err, guard.ErrAway) {
				t.Errorf("%s, %s: taken for away", kind, name)
			}
			if stand.asked.Get("remoteip") != "" || (stand.asked.Get("sitekey") != "") != (kind == "hcaptcha") {
				t.Errorf("%s was told %v", kind, stand.asked)
			}
			server.Close()
		}
	}
}

// Whatever is no clear answer lets nobody in and is told as away.
func TestAway(t *testing.T) {
	stand := &standIn{t: t}
	server := httptest.NewServer(stand)
	defer server.Close()
	o := options(server)
	check, err := Turnstile(o)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(c *Check) error {
		return c.Check(t.Context(), noon, guard.Bind{}, netip.Addr{}, guard.PersonAnswer{Token: "tok"})
	}
	// A host that hCaptcha does not know is good enough, since it has checked the site key; Turnstile always knows it.
	stand.good = map[string]map[string]any{"tok": {"hostname": "not-provided", "action": Action}, "tok2": {"hostname": "not-provided"}}
	other, err := HCaptcha(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Check(t.Context(), noon, guard.Bind{}, netip.Addr{}, guard.PersonAnswer{Token: "tok2"}); err != nil {
		t.Errorf("hCaptcha without a host: %v", err)
	}
	if err := ask(check); fault.CodeOf(err) != fault.PersonRequired {
		t.Errorf("Turnstile without a host: %v", err)
	}
	for name, answer := range map[string]struct {
		status int
		raw    string
	}{
		"an error":       {500, "application/json|{\"success\":true}"},
		"a page":         {200, "text/html|<h1>wait</h1>"},
		"no JSON":        {200, "application/json|{"},
		"no verdict":     {200, "application/json|{}"},
		"null":           {200, "application/json|null"},
		"far too long":   {200, "application/json|" + strings.Repeat(" ", answerBytesMax) + "{}"},
		"a redirect":     {302, "application/json|{\"success\":true}"},
		"our own secret": {200, "application/json|{\"success\":false,\"error-codes\":[\"invalid-input-secret\"]}"},
	} {
		stand.status, stand.raw = answer.status, answer.raw
		if err := ask(check); !errors.Is(err, guard.ErrAway) {
			t.Errorf("%s: %v", name, err)
		}
	}
	server.Close()
	if err := ask(check); !errors.Is(err, guard.ErrAway) || strings.Contains(err.Error(), "the secret") {
		t.Errorf("nobody there: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := check.Check(gone, noon, guard.Bind{}, netip.Addr{}, guard.PersonAnswer{Token: "tok"}); !errors.Is(err, guard.ErrAway) {
		t.Errorf("the client went away: %v", err)
	}
	for _, bad := range []Options{{}, {SiteKey: "a", Secret: "b"}, {SiteKey: "a", Hostnames: []string{"x"}}} {
		if _, err := HCaptcha(bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	for _, token := range []string{"", strings.Repeat("x", tokenBytesMax+1)} {
		if err := check.Check(t.Context(), noon, guard.Bind{}, netip.Addr{}, guard.PersonAnswer{Token: token}); fault.CodeOf(err) != fault.PersonRequired {
			t.Errorf("a token of %d bytes: %v", len(token), err)
		}
	}
}

func TestAddressIsSentWhereAsked(t *testing.T) {
	stand := &standIn{t: t, good: map[string]map[string]any{"tok": {"action": Action}}}
	server := httptest.NewServer(stand)
	defer server.Close()
	o := options(server)
	o.SendAddress = true
	check, err := Turnstile(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Check(t.Context(), noon, guard.Bind{}, netip.MustParseAddr("198.51.100.7"), guard.PersonAnswer{Token: "tok"}); err != nil {
		t.Error(err)
	}
	if stand.asked.Get("remoteip") != "198.51.100.7" {
		t.Errorf("told %v", stand.asked)
	}
	if task := check.Ask(noon, guard.Bind{}); task.SiteKey != "the site" || task.Action != Action || task.Provider != "turnstile" {
		t.Errorf("%+v", task)
	}
}
