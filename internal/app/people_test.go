package app

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"onsale/internal/guard"
)

// send asks as a browser would, and gives the status.
func send(t *testing.T, method, url, body string, header http.Header) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// The settings reach the door: rates, believed proxies, the origin.
func TestRatesProxiesAndOriginAreWired(t *testing.T) {
	s := settings(folder(t))
	s.Rates = guard.Settings{Address: 1} // 2 at once
	s.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	s.PublicURL = "https://tickets.example"
	p := start(t, s)
	defer p.stop()
	list := p.public + "/v1/events"
	refused := false
	for i := 0; i < 200 && !refused; i++ { // as long as a request takes less than a second
		refused = send(t, "GET", list, "", http.Header{"X-Forwarded-For": {"198.51.100.7"}}) == http.StatusTooManyRequests
	}
	if !refused {
		t.Error("an address may ask as often as it likes")
	}
	for _, other := range []string{"198.51.100.8", "2001:db8::1", "1.1.1.1, 203.0.113.9"} {
		if got := send(t, "GET", list, "", http.Header{"X-Forwarded-For": {other}}); got != 200 {
			t.Errorf("%s pays for another: status %d", other, got)
		}
	}
	for origin, want := range map[string]int{"https://evil.example": 403, "https://tickets.example": 401} {
		if got := send(t, "POST", p.public+"/v1/holds", "{}", http.Header{"Origin": {origin}, "X-Forwarded-For": {"192.0.2.1"}}); got != want {
			t.Errorf("from %s: status %d, want %d", origin, got, want)
		}
	}
}

// Without settings nothing is limited: the control of the test above.
func TestNoRatesLimitNothing(t *testing.T) {
	p := start(t, settings(folder(t)))
	defer p.stop()
	for range 6 {
		if got := send(t, "GET", p.public+"/v1/events", "", nil); got != 200 {
			t.Fatalf("status %d", got)
		}
	}
}
