package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"onsale/internal/guard"
)

// looksSecure looks for the headers that every answer has.
func looksSecure(t testing.TB, name string, got reply) {
	t.Helper()
	for header, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if value := got.header.Get(header); value != want {
			t.Errorf("%s: %s is %q", name, header, value)
		}
	}
	policy := got.header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("%s: Content-Security-Policy is %q", name, policy)
	}
	html := strings.HasPrefix(got.header.Get("Content-Type"), "text/html")
	if strings.Contains(policy, "unsafe-inline") != html {
		t.Errorf("%s: Content-Security-Policy of a %s is %q", name, got.header.Get("Content-Type"), policy)
	}
}

// as serves the table with other options.
func (w *world) as(change func(*Options)) http.Handler {
	w.t.Helper()
	o := w.api.Options
	change(&o)
	h, err := New(o)
	w.must(err)
	return h
}

// Behind https browsers are told to stay there, and cookies go nowhere else.
func TestStrictTransport(t *testing.T) {
	w := newWorld(t)
	a := ask{path: "/healthz"}
	if got := w.askHandler(w.handler, a); got.header.Get("Strict-Transport-Security") != "" {
		t.Error("a plain server speaks of https")
	}
	h := w.as(func(o *Options) { o.PublicURL = "https://tickets.example" })
	if got := w.askHandler(h, a); got.header.Get("Strict-Transport-Security") != strictTransport {
		t.Error("no Strict-Transport-Security behind https")
	}
	for name, url := range map[string]string{"a path": "https://tickets.example/x", "no origin": "tickets"} {
		if _, err := New(Options{FieldKey: make([]byte, 16), PublicURL: url}); err == nil {
			t.Errorf("%s is taken for a public URL", name)
		}
	}
}

// What a page of another site lets a browser send is refused, whatever the route; a provider's notices are not.
func TestCrossOrigin(t *testing.T) {
	w := newWorld(t)
	h := w.as(func(o *Options) { o.PublicURL = "https://tickets.example" })
	foreign := []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.example"}}, {"Origin": {"null"}}}
	own := []http.Header{{}, {"Sec-Fetch-Site": {"same-origin"}}, {"Sec-Fetch-Site": {"none"}}, {"Origin": {"http://onsale.test"}},
		{"Origin": {"https://tickets.example"}, "Sec-Fetch-Site": {"cross-site"}}}
	named := w.things()
	for _, r := range w.api.routes {
		for i, header := range append(foreign, own...) {
			got := w.askHandler(h, ask{method: r.Method, path: filled(r.Path, named), header: header})
			refused := got.status == http.StatusForbidden && strings.Contains(string(got.body), `"cross_origin"`)
			if want := r.Method != "GET" && !r.Foreign && i < len(foreign); refused != want && r.ID != "seats_stream" {
				t.Errorf("%s with %v: refused %v, status %d", r.ID, header, refused, got.status)
			}
		}
		if r.Foreign && r.ID != "payment_webhook" {
			t.Errorf("%s is open to pages of other sites", r.ID)
		}
	}
}

// limited serves with limits of the design.
func (w *world) limited() http.Handler {
	limits, err := guard.New(guard.Default(), w.now())
	w.must(err)
	return w.as(func(o *Options) {
		o.Limiter = limits
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	})
}

// from is a request from an address, by a proxy where forwarded says something.
func (w *world) from(h http.Handler, address, forwarded string, a ask) reply {
	w.t.Helper()
	r := w.request("http://onsale.test", a)
	r.RemoteAddr = address + ":4711"
	if forwarded != "" {
		r.Header.Set("X-Forwarded-For", forwarded)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return reply{rec.Code, rec.Header(), rec.Body.Bytes()}
}

// passing is how many of n pass.
func passing(n int, f func() reply) (passed int) {
	for range n {
		if f().status != http.StatusTooManyRequests {
			passed++
		}
	}
	return passed
}

func TestLimits(t *testing.T) {
	w := newWorld(t)
	list := ask{path: "/v1/events"}
	for name, c := range map[string]struct {
		ask  func(h http.Handler) reply
		want int
	}{
		"an address": {func(h http.Handler) reply { return w.from(h, "198.51.100.7", "", list) }, 40},
		"an address with a bad token": {func(h http.Handler) reply {
			return w.from(h, "198.51.100.7", "", ask{path: "/v1/bookings", header: http.Header{"Authorization": {"Bearer x.y.z"}}})
		}, 40},
		"an address with a bad cookie": {func(h http.Handler) reply {
			return w.from(h, "198.51.100.7", "", ask{path: "/v1/events", header: http.Header{"Cookie": {signInCookie + "=x"}}})
		}, 40},
		"a customer": {func(h http.Handler) reply {
			return w.from(h, "198.51.100.7", "", ask{path: "/v1/bookings", customer: "ann"})
		}, 10},
		"a customer who reads": {func(h http.Handler) reply {
			return w.from(h, "198.51.100.7", "", ask{path: "/v1/events", customer: "ann"})
		}, 10},
		"a customer who buys": {func(h http.Handler) reply {
			return w.from(h, "198.51.100.7", "", ask{method: "POST", path: "/v1/holds", customer: "ann", body: "{}"})
		}, 6},
		"behind a proxy": {func(h http.Handler) reply { return w.from(h, "10.0.0.1", "198.51.100.7", list) }, 40},
		"what only a stranger says": {func(h http.Handler) reply {
			return w.from(h, "198.51.100.7", fmt.Sprintf("203.0.113.%d", time.Now().UnixNano()%250), list)
		}, 40},
		"whether it runs": {func(h http.Handler) reply { return w.from(h, "198.51.100.7", "", ask{path: "/healthz"}) }, 60},
		"a provider's notices": {func(h http.Handler) reply {
			return w.from(h, "198.51.100.7", "", ask{method: "POST", path: "/v1/payments/sandbox/webhook", body: "{}"})
		}, 60},
	} {
		h := w.limited()
		if got := passing(60, func() reply { return c.ask(h) }); got != c.want {
			t.Errorf("%s: %d of 60 pass, want %d", name, got, c.want)
		}
		// Control: without limits all pass.
		if got := passing(60, func() reply { return c.ask(w.handler) }); got != 60 {
			t.Errorf("%s: %d of 60 pass without limits", name, got)
		}
	}
	// Thousands behind one address are not one.
	h := w.limited()
	for i := range 30 {
		customer := fmt.Sprint("customer", i)
		if got := w.from(h, "198.51.100.7", "", ask{path: "/v1/bookings", customer: customer}); got.status != 200 {
			t.Fatalf("the customer %d of an address: status %d: %s", i, got.status, got.body)
		}
	}
}

func TestLimitsAreTold(t *testing.T) {
	w := newWorld(t)
	h := w.limited()
	a := ask{method: "POST", path: "/v1/holds", customer: "ann", body: w.seatsBody("now", "A-A-1")}
	first := w.from(h, "198.51.100.7", "", a)
	if first.status != 201 || first.header.Get("RateLimit") != `"sale";r=5;t=1, "customer";r=9;t=1` || first.header.Get("RateLimit-Policy") != `"sale";q=6;w=2, "customer";q=10;w=2` {
		t.Errorf("status %d, %q, %q", first.status, first.header.Get("RateLimit"), first.header.Get("RateLimit-Policy"))
	}
	passing(10, func() reply { return w.from(h, "198.51.100.7", "", a) })
	got := w.from(h, "198.51.100.7", "", a)
	w.problemOf(got, "too_many_requests")
	leaksNothing(t, "refused", got)
	if got.header.Get("RateLimit") != `"sale";r=0;t=2` || got.header.Get("Retry-After") != "1" {
		t.Errorf("%q, Retry-After %q", got.header.Get("RateLimit"), got.header.Get("Retry-After"))
	}
	// What caches may keep for others says nothing of one.
	if got := w.from(h, "198.51.100.9", "", ask{path: "/v1/events"}); got.header.Get("RateLimit") != "" || got.header.Get("Cache-Control") == "" {
		t.Errorf("%v", got.header)
	}
	w.pass(time.Second)
	if got := w.from(h, "198.51.100.7", "", a); got.status == http.StatusTooManyRequests {
		t.Error("a second later it is still refused")
	}
}

// The whole site's limit comes before anybody looks at who asks.
func TestSiteLimit(t *testing.T) {
	w := newWorld(t)
	limits, err := guard.New(guard.Settings{Site: 5}, w.now())
	w.must(err)
	h := w.as(func(o *Options) { o.Limiter = limits })
	i := 0
	if got := passing(30, func() reply {
		i++
		return w.from(h, fmt.Sprintf("198.51.100.%d", i), "", ask{path: "/v1/bookings", customer: fmt.Sprint("c", i)})
	}); got != 10 {
		t.Errorf("%d of 30 pass, want 10", got)
	}
}
