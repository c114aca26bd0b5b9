package app

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/identity"
	"onsale/internal/pgserver"
	"onsale/internal/venue"
)

// childFolder, where it is set, makes this test program a server of that folder, which somebody is going to kill.
const childFolder = "ONSALE_TEST_SERVE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(pgserver.Wrap(m))
}

const wait = 2 * time.Minute // for what must come; a test that works never waits so long

func settings(dir string) Settings {
	return Settings{
		Data: dir, Ledger: SQLite, Listen: "127.0.0.1:0", InternalListen: "127.0.0.1:0", Demo: true, DemoSeats: 60,
		Payment: PaymentSettings{Provider: "sandbox"}, Version: "test", Logger: slog.New(slog.DiscardHandler),
	}
}

// A program is a server that runs in this process.
type program struct {
	t        testing.TB
	app      *App
	public   string
	internal string
	cancel   context.CancelFunc
	ended    chan error
}

func start(t testing.TB, s Settings) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	started := make(chan Addresses, 1)
	s.Started = func(a Addresses) { started <- a }
	a, err := Open(ctx, s)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	p := &program{t: t, app: a, cancel: cancel, ended: make(chan error, 1)}
	go func() {
		err := a.Serve(ctx)
		stop, done := context.WithTimeout(context.Background(), wait)
		defer done()
		p.ended <- errors.Join(err, a.Close(stop))
	}()
	select {
	case at := <-started:
		p.public, p.internal = "http://"+at.Public.String(), "http://"+at.Internal.String()
	case err := <-p.ended:
		cancel()
		t.Fatal(err)
	case <-time.After(wait):
		t.Fatal("the server did not become ready")
	}
	t.Cleanup(p.stop)
	return p
}

// stop ends the server in order, once.
func (p *program) stop() {
	p.t.Helper()
	p.cancel()
	select {
	case err, more := <-p.ended:
		if more {
			close(p.ended)
		}
		if err != nil {
			p.t.Error(err)
		}
	case <-time.After(wait):
		p.t.Fatal("the server did not end")
	}
}

// keyNumber numbers idempotency keys: none of these tests repeats a request.
var keyNumber atomic.Int64

// ask sends a request as a customer ("" for nobody) and reads the answer into v, which may be nil.
func ask(t testing.TB, issuer *identity.Throwaway, customer, method, url, body string, v any) int {
	t.Helper()
	status, err := try(t, issuer, customer, method, url, body, v)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func try(t testing.TB, issuer *identity.Throwaway, customer, method, url, body string, v any) (int, error) {
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", fmt.Sprintf("%d-%d", os.Getpid(), keyNumber.Add(1)))
	if customer != "" {
		token, err := issuer.Mint(customer, time.Now(), time.Hour)
		if err != nil {
			return 0, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && v != nil {
		err = json.Unmarshal(answer, v)
	}
	return response.StatusCode, err
}

func (p *program) ask(customer, method, path, body string, v any) int {
	p.t.Helper()
	return ask(p.t, p.app.Throwaway, customer, method, p.public+path, body, v)
}

// An answer has what these tests look at, of whatever kind it is.
type answer struct {
	Code   string   `json:"code"`
	Hold   string   `json:"hold_id"`
	Event  string   `json:"event_id"`
	State  string   `json:"state"`
	Seats  []string `json:"seat_ids"`
	Events []struct {
		ID    string `json:"event_id"`
		Title string `json:"title"`
		State string `json:"state"`
	} `json:"events"`
	Bookings []struct {
		ID    string `json:"booking_id"`
		State string `json:"state"`
	} `json:"bookings"`
}

// event is the first event on sale.
func (p *program) event() string {
	p.t.Helper()
	var a answer
	if status := p.ask("", "GET", "/v1/events", "", &a); status != 200 || len(a.Events) == 0 {
		p.t.Fatalf("status %d, %+v", status, a)
	}
	return a.Events[0].ID
}

func best(event string, quantity int) string {
	return fmt.Sprintf(`{"event_id":%q,"best_available":{"quantity":%d}}`, event, quantity)
}

// until waits for what others bring about.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(wait)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s did not come about", what)
		}
	}
}

// A stream is a seat stream as its client hears it.
type stream struct {
	lines chan string // closed when it ends
	close func()
}

func (p *program) listen(event string) *stream {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", p.public+"/v1/events/"+event+"/seats/stream", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil || response.StatusCode != 200 {
		p.t.Fatalf("%v, %v", response, err)
	}
	s := &stream{lines: make(chan string, 10_000)}
	go func() {
		defer close(s.lines)
		defer response.Body.Close()
		scan := bufio.NewScanner(response.Body)
		for scan.Scan() {
			s.lines <- scan.Text()
		}
	}()
	s.close = func() {
		cancel()
		for range s.lines { // until it has ended
		}
	}
	p.t.Cleanup(s.close)
	return s
}

// hears waits for a line of the stream.
func (s *stream) hears(t testing.TB, part string) {
	t.Helper()
	deadline := time.After(wait)
	for {
		select {
		case line, more := <-s.lines:
			if !more {
				t.Fatalf("the stream ended without %q", part)
			}
			if strings.Contains(line, part) {
				return
			}
		case <-deadline:
			t.Fatalf("the stream does not say %q", part)
		}
	}
}

// child serves a folder until it is killed. Its first line of output is where it listens.
func child(dir string) error {
	s := settings(dir)
	if seats := os.Getenv("ONSALE_TEST_SEATS"); seats != "" {
		if _, err := fmt.Sscan(seats, &s.DemoSeats); err != nil {
			return err
		}
	}
	s.Started = func(a Addresses) { fmt.Printf("http://%s\n", a.Public) }
	a, err := Open(context.Background(), s)
	if err != nil {
		return err
	}
	return a.Serve(context.Background())
}

// spawn starts a child and gives its address; kill ends it as a power cut would.
func spawn(t testing.TB, dir string, seats int) (public string, kill func()) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childFolder+"="+dir, fmt.Sprintf("ONSALE_TEST_SEATS=%d", seats))
	var problems bytes.Buffer
	c.Stderr = &problems
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = c.Process.Kill() // SIGKILL; where it has ended by itself, Wait says why
			_ = c.Wait()
		}
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		kill()
		t.Fatalf("%v: %s", err, &problems)
	}
	return strings.TrimSpace(line), kill
}

// fileOf is an event file and its plan, for a small hall.
func fileOf(t testing.TB, key string, holdTTL string) ImportRequest {
	t.Helper()
	hall := venue.Generate(venue.GenerateOptions{Seats: 40, NoStanding: true, Name: "Hall of " + key})
	plan, err := hall.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var tiers strings.Builder
	for _, c := range hall.Categories {
		fmt.Fprintf(&tiers, "  - { category: %q, face: \"20.00\" }\n", c.Key)
	}
	now := time.Now().UTC()
	return ImportRequest{Plan: plan, File: fmt.Appendf(nil, `format: 1
venue: { name: Hall, city: Kiel, country: DE, zone: Europe/Berlin, plan: hall.json }
show: { key: %q, title: Show %s }
currency: EUR
hold_ttl: %s
payment_window: 10s
orphans: { mode: "off" }
sale: { opens: %q, closes: %q }
performances: [{ key: first, starts: %q }]
tiers:
%s`, key, key, cmp.Or(holdTTL, "10m"), now.Add(-time.Minute).Format(time.RFC3339), now.AddDate(0, 1, 0).Format(time.RFC3339),
		now.AddDate(0, 1, 1).Format(time.RFC3339), tiers.String())}
}

// dial gives commands to a folder.
func dial(t testing.TB, dir string) *Client {
	t.Helper()
	s := settings(dir)
	c, err := Dial(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func folder(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "data")
}
