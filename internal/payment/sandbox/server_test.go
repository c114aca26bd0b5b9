package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"onsale/internal/payment"
)

// startServer is a real server with its background part, on the real clock with short delays.
func startServer(t *testing.T, path, webhookURL string) (*Server, *AuthorizingClient) {
	t.Helper()
	s, err := Start(Config{Path: path, APIKey: testKey, WebhookSecret: testSecret, WebhookURL: webhookURL,
		Delays: Delays{Pending: time.Millisecond, Late: time.Millisecond, Repeat: time.Millisecond, HoldBack: time.Minute, Retry: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewAuthorizingClient(ClientConfig{URL: s.URL(), APIKey: testKey, WebhookSecrets: [][]byte{testSecret}})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// The background part does by itself what RunDue does, starts and stops twice on the same books under load, and leaves
// nothing running (goleak in TestMain).
func TestServerStartsAndStopsTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "books.db")
	b := open(t, nil) // its client verifies webhooks, on its clock
	b.clock.now = time.Now()
	r := b.receive(t)
	for round := range 2 {
		s, client := startServer(t, path, r.url)
		var all sync.WaitGroup
		const orders = 20
		for i := range orders {
			all.Go(func() {
				id := fmt.Sprintf("r%d_%d", round, i)
				if _, err := client.Charge(t.Context(), orderOf(id, "tok_pending+webhook_reorder")); err != nil {
					t.Errorf("charge: %v", err)
				}
			})
		}
		for count := 0; count < 2*orders; { // one pending and one captured each
			// What the last round was stopped in the middle of comes too.
			if n := <-r.arrived; strings.HasPrefix(n.OrderID, fmt.Sprintf("r%d_", round)) {
				count++
			}
		}
		all.Wait()
		for i := range orders {
			r.want(t, fmt.Sprintf("r%d_%d", round, i), "payment.captured", "payment.pending")
		}
		// Stopped in the middle of work.
		for i := range orders {
			all.Go(func() {
				_, err := client.Charge(t.Context(), orderOf(fmt.Sprintf("stop%d_%d", round, i), TokenSure))
				if err != nil && !errors.Is(err, payment.ErrUnknown) {
					t.Errorf("charge at stop: %v", err)
				}
			})
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := s.Stop(ctx); err != nil {
			t.Fatalf("stop: %v", err)
		}
		cancel()
		all.Wait()
		client.Close()
		if _, err := s.charge(t.Context(), orderOf("after", TokenSure)); !errors.Is(err, errClosed) {
			t.Fatalf("charge after stop: %v", err)
		}
		drain(r.arrived)
	}
}

func drain(c chan payment.Notice) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}

const childPath = "ONSALE_TEST_SANDBOX_CHILD"

// TestChild is the program that TestKill kills; by itself it does nothing.
func TestChild(t *testing.T) {
	path := os.Getenv(childPath)
	if path == "" {
		return
	}
	s, err := Open(Config{Path: path, APIKey: testKey, WebhookSecret: testSecret})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	for worker := range 8 {
		all.Go(func() {
			for i := range 100_000 {
				id := fmt.Sprintf("w%d_%d", worker, i)
				if _, err := s.charge(context.Background(), orderOf(id, TokenSure)); err != nil {
					panic(err)
				}
				mu.Lock()
				fmt.Println("acknowledged", id)
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

// I8: what was acknowledged survives kill -9.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "books.db")
	child := exec.Command(os.Args[0], "-test.run=^TestChild$")
	child.Env = append(os.Environ(), childPath+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "acknowledged "); ok {
			acknowledged = append(acknowledged, id)
		}
		if len(acknowledged) == 500 {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = child.Wait() // killed
	if len(acknowledged) < 500 {
		t.Fatalf("only %d charges before the child ended", len(acknowledged))
	}
	if n := len(acknowledged); strings.Count(acknowledged[n-1], "_") != 1 {
		acknowledged = acknowledged[:n-1] // cut by the kill
	}
	s, err := Open(Config{Path: path, APIKey: testKey, WebhookSecret: testSecret})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, id := range acknowledged {
		found, err := s.lookup(t.Context(), id)
		if err != nil || len(found) != 1 || found[0].State != payment.Captured {
			t.Fatalf("%s was acknowledged: %+v, %v", id, found, err)
		}
	}
}

// The money of every payment adds up, whatever is asked in whatever order; nobody gets back more than was taken, and
// what was answered is what the books list.
func TestMoneyIsConserved(t *testing.T) {
	b := open(t, nil)
	// Thousands of commits, and nothing here is about power loss. Before the first job the connection is ours.
	if err := b.service.books.writer.exec("PRAGMA synchronous = OFF"); err != nil {
		t.Fatal(err)
	}
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		tokens := []string{TokenSure}
		for _, f := range Faults() {
			tokens = append(tokens, Token(f))
		}
		tokens = append(tokens, "tok_pending+second_payment+wrong_amount", "tok_lost_answer+capture_refused")
		type asked struct {
			attempt   payment.Attempt
			cancelled bool // Cancel answered that no money will ever move
		}
		orders := make([]asked, rapid.IntRange(1, 3).Draw(r, "orders"))
		for i := range orders {
			orders[i].attempt = payment.Attempt{OrderID: fmt.Sprintf("o%d_%d", run, i), AmountMinor: rapid.Int64Range(1, 50).Draw(r, "amount"),
				Currency: "EUR", Token: rapid.SampledFrom(tokens).Draw(r, "token"), AuthorizeOnly: rapid.Bool().Draw(r, "authorize")}
		}
		given := map[string]int64{} // by refund id, as answered
		check := func(r *rapid.T, o *asked, p payment.Payment) {
			sum := int64(0)
			for _, back := range p.Refunds {
				sum += back.AmountMinor
			}
			if p.RefundedMinor != sum || sum > p.CapturedMinor || p.CapturedMinor > p.AmountMinor ||
				p.CapturedMinor > 0 != (p.State == payment.Captured) {
				r.Fatalf("money does not add up: %+v", p)
			}
			if o.cancelled && (p.CapturedMinor > 0 || p.AuthorizedMinor > 0 || !p.State.Ended()) {
				r.Fatalf("money moved after the final ending: %+v", p)
			}
		}
		paymentOf := func(r *rapid.T, o *asked) (payment.Payment, bool) {
			found, err := b.service.lookup(t.Context(), o.attempt.OrderID)
			if err != nil {
				r.Fatal(err)
			}
			if len(found) == 0 {
				return payment.Payment{}, false
			}
			for _, p := range found {
				check(r, o, p)
			}
			return found[rapid.IntRange(0, len(found)-1).Draw(r, "payment")], true
		}
		pick := func(r *rapid.T) *asked { return &orders[rapid.IntRange(0, len(orders)-1).Draw(r, "order")] }
		mayFail := func(r *rapid.T, err error) {
			var refused *payment.Refused
			if err != nil && !errors.As(err, &refused) && !errors.Is(err, payment.ErrInvalid) && !errors.Is(err, payment.ErrConflict) {
				r.Fatal(err)
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"charge": func(r *rapid.T) {
				_, err := b.service.charge(t.Context(), pick(r).attempt)
				mayFail(r, err)
			},
			"cancel": func(r *rapid.T) {
				o := pick(r)
				e, err := b.service.cancel(t.Context(), o.attempt.OrderID)
				mayFail(r, err)
				if o.cancelled && e.Result != payment.EndingCancelled && e.Result != payment.EndingDeclined {
					r.Fatalf("a final ending became %s", e.Result)
				}
				o.cancelled = e.Result == payment.EndingCancelled || e.Result == payment.EndingDeclined
			},
			"capture": func(r *rapid.T) {
				if p, ok := paymentOf(r, pick(r)); ok {
					_, err := b.service.capture(t.Context(), p.ID, rapid.Int64Range(1, 60).Draw(r, "amount"))
					mayFail(r, err)
				}
			},
			"void": func(r *rapid.T) {
				if p, ok := paymentOf(r, pick(r)); ok {
					_, err := b.service.void(t.Context(), p.ID)
					mayFail(r, err)
				}
			},
			"refund": func(r *rapid.T) {
				if p, ok := paymentOf(r, pick(r)); ok {
					id := fmt.Sprintf("r%d_%d", run, rapid.IntRange(0, 5).Draw(r, "refund"))
					back, err := b.service.refund(t.Context(), p.ID, id, rapid.Int64Range(1, 60).Draw(r, "amount"))
					mayFail(r, err)
					if err == nil {
						given[id] = back.AmountMinor
					}
				}
			},
			"time": func(r *rapid.T) {
				b.Advance(time.Duration(rapid.Int64Range(0, 40_000).Draw(r, "ms")) * time.Millisecond)
				if _, err := b.service.RunDue(t.Context()); err != nil {
					r.Fatal(err)
				}
			},
		})
		listed := map[string]int64{}
		for _, o := range orders {
			found, err := b.service.lookup(t.Context(), o.attempt.OrderID)
			if err != nil {
				r.Fatal(err)
			}
			for _, p := range found {
				check(r, &o, p)
				for _, back := range p.Refunds {
					listed[back.ID] = back.AmountMinor
				}
			}
		}
		if !maps.Equal(listed, given) {
			r.Fatalf("refunds answered %v, listed %v", given, listed)
		}
	})
}

// Whatever stands in the service's place, nonsense is unknown, never a decline and never a success.
func TestClientDistrusts(t *testing.T) {
	stop := make(chan struct{})
	for name, handler := range map[string]http.HandlerFunc{
		"empty 200":    func(w http.ResponseWriter, _ *http.Request) {},
		"not JSON":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"empty object": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
		"other order": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"payment_id":"p","order_id":"other","state":"captured"}`)
		},
		"redirect":    func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, "/elsewhere", http.StatusFound) },
		"proxy's 404": func(w http.ResponseWriter, q *http.Request) { http.NotFound(w, q) },
		"proxy's 422": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(422); fmt.Fprint(w, `{"code":"other"}`) },
		"refused charge": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(422)
			fmt.Fprint(w, `{"code":"refused","op":"refund","refusal":"x"}`)
		},
		"429": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) },
		"503": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
		"half an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"payment_id"`)
		},
		"too large": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"payment_id":"p","order_id":"o","state":"captured"%s}`, strings.Repeat(" ", responseBytesMax))
		},
		"no answer": func(http.ResponseWriter, *http.Request) { <-stop },
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(handler)
			defer server.Close()
			timeout := 5 * time.Second
			if name == "no answer" {
				timeout = 20 * time.Millisecond
				defer close(stop) // before the server waits for its handlers
			}
			c, err := NewAuthorizingClient(ClientConfig{URL: server.URL, APIKey: testKey, WebhookSecrets: [][]byte{testSecret}, Timeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if p, err := c.Charge(t.Context(), orderOf("o", TokenOK)); !errors.Is(err, payment.ErrUnknown) || p.ID != "" {
				t.Errorf("charge: %+v, %v", p, err)
			}
			if e, err := c.Cancel(t.Context(), "o"); !errors.Is(err, payment.ErrUnknown) || e.Result != "" {
				if name != "too large" || err == nil {
					t.Errorf("cancel: %+v, %v", e, err)
				}
			}
			if p, err := c.Capture(t.Context(), "pay_1", 1); !errors.Is(err, payment.ErrUnknown) || p.ID != "" {
				t.Errorf("capture: %+v, %v", p, err)
			}
			if name == "refused charge" {
				return // to a refund this is an answer
			}
			if r, err := c.Refund(t.Context(), "pay_1", "rfd_1", 1); !errors.Is(err, payment.ErrUnknown) || r.ID != "" {
				t.Errorf("refund: %+v, %v", r, err)
			}
		})
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	url := gone.URL
	gone.Close()
	c, err := NewClient(ClientConfig{URL: url, APIKey: testKey, WebhookSecrets: [][]byte{testSecret}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Charge(t.Context(), orderOf("o", TokenOK)); !errors.Is(err, payment.ErrUnknown) {
		t.Errorf("nobody there: %v", err)
	}
	for name, bad := range map[string]ClientConfig{
		"no URL": {WebhookSecrets: [][]byte{testSecret}}, "no secret": {URL: url}, "short secret": {URL: url, WebhookSecrets: [][]byte{{1}}},
		"long timeout": {URL: url, WebhookSecrets: [][]byte{testSecret}, Timeout: payment.AttemptTimeoutMax + 1},
	} {
		if _, err := NewClient(bad); err == nil {
			t.Errorf("client with %s was made", name)
		}
	}
}

func BenchmarkCharge(b *testing.B) {
	s, err := Open(Config{Path: filepath.Join(b.TempDir(), "books.db"), APIKey: testKey, WebhookSecret: testSecret})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var mu sync.Mutex
	n := 0
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			mu.Lock()
			n++
			id := strconv.Itoa(n)
			mu.Unlock()
			if _, err := s.charge(context.Background(), orderOf(id, TokenSure)); err != nil {
				b.Error(err)
			}
		}
	})
}
