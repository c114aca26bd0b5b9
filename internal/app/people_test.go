package app

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"onsale/internal/guard"
	"onsale/internal/identity"
	"onsale/internal/outbox/mail"
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

// A slowServer takes no mail before it is let.
type slowServer struct {
	let  chan struct{}
	mu   sync.Mutex
	sent map[string]bool
}

func (s *slowServer) Send(ctx context.Context, m mail.Mail) error {
	select {
	case <-s.let:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[m.To.Email] = true
	return nil
}

// Codes that wait for the mail server while the program is told to stop are still sent: people look at their mail for them.
func TestCodesThatWaitAreSentBeforeStopping(t *testing.T) {
	a, err := Open(t.Context(), settings(folder(t)))
	must(t, err)
	defer func() { must(t, a.Close(t.Context())) }()
	server := &slowServer{let: make(chan struct{}), sent: map[string]bool{}}
	a.desk = mail.NewDesk(mail.Options{Site: a.site(), Sender: server, Facts: mailFacts{a}, Store: a.Control.Mail(), Workers: 1})
	a.People, err = a.openPeople(t.Context(), a.desk)
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.writeToPeople(ctx) }()
	const codes = 12 // more than are sent at once
	for i := range codes {
		must(t, a.People.BeginSignIn(t.Context(), identity.Begin{Email: fmt.Sprintf("buyer%d@example.com", i), Browser: identity.NewBrowser()}))
	}
	stop()
	close(server.let)
	<-done
	if n := len(server.sent); n != codes {
		t.Errorf("%d of %d codes were sent", n, codes)
	}
}
