package sandbox

import (
	"bytes"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/payment"
	"onsale/internal/payment/paymenttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "an-api-key-for-tests"

var testSecret = bytes.Repeat([]byte("s"), secretBytesMin)

// clock is a clock that stands until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bench is a service over HTTP with its clients, on a clock that stands.
type bench struct {
	*clock
	service *Service
	client  *AuthorizingClient
	config  Config
	url     string
}

func open(t *testing.T, change func(*Config)) *bench {
	t.Helper()
	b := &bench{clock: newClock()}
	b.config = Config{Path: filepath.Join(t.TempDir(), "books ?#%41.db"), APIKey: testKey, WebhookSecret: testSecret, Now: b.Now,
		Random: bytes.NewReader([]byte("books id, long enough"))}
	if change != nil {
		change(&b.config)
	}
	b.start(t)
	return b
}

// start opens the books, again after a Close.
func (b *bench) start(t *testing.T) {
	t.Helper()
	service, err := Open(b.config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(service.Handler())
	client, err := NewAuthorizingClient(ClientConfig{URL: server.URL, APIKey: testKey, WebhookSecrets: [][]byte{testSecret}, Now: b.Now})
	if err != nil {
		t.Fatal(err)
	}
	b.service, b.client, b.url = service, client, server.URL
	t.Cleanup(func() {
		client.Close()
		server.Close()
		if err := service.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// runDue does everything that is due now.
func (b *bench) runDue(t *testing.T) {
	t.Helper()
	for {
		count, err := b.service.RunDue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if count == 0 {
			return
		}
	}
}

// wantFaults checks that exactly these have happened.
func (b *bench) wantFaults(t *testing.T, want map[Fault]int64) {
	t.Helper()
	counts, err := b.client.FaultCounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Faults() {
		if counts[f] != want[f] {
			t.Errorf("fault %s happened %d times, want %d", f, counts[f], want[f])
		}
	}
}

func TestContract(t *testing.T) {
	b := open(t, nil)
	for name, p := range map[string]payment.Provider{"authorizing": b.client, "charging": b.client.Client} {
		t.Run(name, func(t *testing.T) {
			if err := payment.Check(p); err != nil {
				t.Fatal(err)
			}
			paymenttest.Exercise(t, paymenttest.Subject{Provider: p, TokenPaid: TokenOK, TokenDeclined: Token(FaultDeclined)})
		})
	}
}
