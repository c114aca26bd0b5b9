package httpapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"onsale/internal/fault"
	"onsale/internal/guard"
)

func (w *world) mustEnter(h *Shed, c guard.Class) (leave func()) {
	w.t.Helper()
	leave, err := h.enter(w.t.Context(), c)
	w.must(err)
	return leave
}

// Each class has places of its own: a flood of those who look keeps nobody from buying, and takes none of the work of doors.
func TestShedClassesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		h := NewShed(ShedSettings{Sale: 2, Queue: 2, Browse: 2, Staff: 2})
		for range 2 {
			w.mustEnter(h, guard.Plain)
		}
		began := time.Now()
		for _, c := range []guard.Class{guard.Plain, guard.SignIn, guard.Check} {
			_, err := h.enter(t.Context(), c)
			f := fault.Of(err)
			if f == nil || f.Code != fault.Busy || f.RetryAfter < shedBack || f.RetryAfter > 2*shedBack {
				t.Errorf("class %d finds a place, or hears %+v", c, f)
			}
		}
		if waited := time.Since(began); waited != 3*shedWait {
			t.Errorf("three waited %s", waited)
		}
		for _, c := range []guard.Class{guard.Sale, guard.Queue, guard.Staff, guard.Free, guard.Free, guard.Free} {
			w.mustEnter(h, c)
		}
		if h.Count() != 3 || h.Load() != 0.5 {
			t.Errorf("%d shed, load %v", h.Count(), h.Load())
		}
	})
}

// Who waits gets the place of who leaves, in order; more do not wait than there are places.
func TestShedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		h := NewShed(ShedSettings{Sale: 2})
		leave := []func(){w.mustEnter(h, guard.Sale), w.mustEnter(h, guard.Sale)}
		var order []int
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() {
				if _, err := h.enter(t.Context(), guard.Sale); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			})
			synctest.Wait()
		}
		began := time.Now()
		if _, err := h.enter(t.Context(), guard.Sale); err == nil || time.Since(began) != 0 {
			t.Errorf("a third waits: %v after %s", err, time.Since(began))
		}
		leave[0]()
		synctest.Wait()
		leave[1]()
		all.Wait()
		if fmt.Sprint(order) != "[0 1]" {
			t.Errorf("in order %v", order)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := h.enter(gone, guard.Sale); err == nil {
			t.Error("one who has gone away got a place")
		}
		if h.sale.taken != 2 || len(h.sale.waiting) != 0 {
			t.Errorf("%d taken, %d wait", h.sale.taken, len(h.sale.waiting))
		}
	})
}

// While buying is busy, browsing has a quarter of its places; buying has all of its own.
func TestShedBuyingFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		h := NewShed(ShedSettings{Sale: 4, Browse: 8})
		passing := func() (n int) {
			var leave []func()
			for {
				l, err := h.enter(t.Context(), guard.Plain)
				if err != nil {
					break
				}
				leave = append(leave, l)
			}
			for _, l := range leave {
				l()
			}
			return len(leave)
		}
		if n := passing(); n != 8 {
			t.Errorf("%d browse in quiet times", n)
		}
		leave := []func(){w.mustEnter(h, guard.Sale), w.mustEnter(h, guard.Sale), w.mustEnter(h, guard.Sale)}
		if n := passing(); n != 2 {
			t.Errorf("%d browse while many buy, want 2", n)
		}
		h.browse.fewer = nil // Control: without the rule all do.
		if n := passing(); n != 8 {
			t.Errorf("%d browse without the rule", n)
		}
		w.mustEnter(h, guard.Sale)
		for _, l := range leave {
			l()
		}
	})
}

// Places are given back whatever happens: many come, wait, go away and leave at once.
func TestShedLosesNoPlace(t *testing.T) {
	h := NewShed(ShedSettings{Browse: 3})
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for n := range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				if (i+n)%3 == 0 {
					cancel()
				}
				if leave, err := h.enter(ctx, guard.Plain); err == nil {
					leave()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if h.browse.taken != 0 || len(h.browse.waiting) != 0 {
		t.Errorf("%d taken, %d wait", h.browse.taken, len(h.browse.waiting))
	}
}

// A full server sheds with 503 and Retry-After, and still says that it runs and takes what providers tell.
func TestShedOverHTTP(t *testing.T) {
	w := newWorld(t)
	shed := NewShed(ShedSettings{Sale: 1, Queue: 1, Browse: 1, Staff: 1})
	h := w.as(func(o *Options) { o.Shed = shed })
	leave := w.mustEnter(shed, guard.Plain)
	got := w.askHandler(h, ask{path: "/v1/events"})
	w.problemOf(got, "busy")
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", got.status, got.header.Get("Retry-After"))
	}
	if got := w.askHandler(h, ask{path: "/healthz"}); got.status != 200 {
		t.Errorf("whether it runs: status %d", got.status)
	}
	if got := w.askHandler(h, ask{method: "POST", path: "/v1/payments/sandbox/webhook", body: "{}"}); got.status == 503 {
		t.Error("a provider's notice was shed")
	}
	if got := w.askHandler(h, ask{method: "POST", path: "/v1/holds", customer: "ann", body: w.seatsBody("now", "A-A-1")}); got.status != 201 {
		t.Errorf("a hold beside the flood: status %d: %s", got.status, got.body)
	}
	leave()
	if got := w.askHandler(h, ask{path: "/v1/events"}); got.status != 200 {
		t.Errorf("after it: status %d", got.status)
	}
}

// slow begins a hold and sends a part of its body.
func (w *world) slow(address string) net.Conn {
	w.t.Helper()
	conn, err := net.Dial("tcp", address)
	w.must(err)
	w.t.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /v1/holds HTTP/1.1\r\nHost: onsale.test\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{", w.token("bob"))
	w.must(err)
	return conn
}

// A client who sends slowly holds a connection and no place; his time for it is bounded.
func TestSlowBodiesHoldNoPlace(t *testing.T) {
	w := newWorld(t)
	shed := NewShed(ShedSettings{Sale: 1})
	arrived := make(chan struct{}, 10)
	serve := func() *httptest.Server {
		h := w.as(func(o *Options) { o.Shed = shed })
		s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.ContentLength == 100 {
				r.Body = &told{r.Body, arrived}
			}
			h.ServeHTTP(rw, r)
		}))
		t.Cleanup(s.Close)
		return s
	}
	s := serve()
	for range 3 {
		w.slow(s.Listener.Addr().String())
		<-arrived // its body is being read
	}
	buy := func(seat string) int {
		r := w.request(s.URL, ask{method: "POST", path: "/v1/holds", customer: "ann", body: w.seatsBody("now", seat)})
		answer, err := s.Client().Do(r)
		w.must(err)
		defer answer.Body.Close()
		io.Copy(io.Discard, answer.Body) //nolint:errcheck // only the status counts
		return answer.StatusCode
	}
	if status := buy("A-A-1"); status != 201 {
		t.Errorf("beside three slow ones: status %d", status)
	}

	// Control: where bodies are not gathered first one slow client has the only place.
	shed.ungather = true
	w.slow(s.Listener.Addr().String())
	<-arrived
	if status := buy("A-A-2"); status != 503 {
		t.Errorf("control: status %d", status)
	}
	shed.ungather = false
}

// told says when a body begins to be read.
type told struct {
	io.ReadCloser
	reading chan<- struct{}
}

func (b *told) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.reading <- struct{}{}
	}
	return n, err
}

func TestSlowBodiesEnd(t *testing.T) {
	w := newWorld(t)
	shed := NewShed(DefaultShed())
	shed.bodyTime = 20 * time.Millisecond
	h := w.as(func(o *Options) { o.Shed = shed })
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	conn := w.slow(s.Listener.Addr().String())
	if answer, err := io.ReadAll(conn); err != nil || len(answer) != 0 {
		t.Errorf("answered %q, %v; want the connection closed", answer, err)
	}
	if got := <-w.answered; got != "hold_make 499" {
		t.Errorf("counted as %s", got)
	}
	// One that arrives in time takes as long as its handler needs, whatever is left of the body's time.
	if got := w.askHandler(h, ask{method: "POST", path: "/v1/holds", customer: "ann", body: w.seatsBody("now", "A-A-1")}); got.status != 201 {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}

// What is wrong with a body is told as it was without gathering.
func TestGatheredBodies(t *testing.T) {
	w := newWorld(t)
	h := w.as(func(o *Options) { o.Shed = NewShed(DefaultShed()) })
	large := `{"event_id":"` + strings.Repeat("x", BodyBytesMax) + `"}`
	for name, a := range map[string]ask{
		"too large":                {method: "POST", path: "/v1/holds", customer: "ann", body: large},
		"too large, of a stranger": {method: "POST", path: "/v1/holds", body: large},
		"just larger than small":   {method: "POST", path: "/v1/holds", customer: "ann", body: `{"event_id":"` + strings.Repeat("x", smallBody) + `"}`},
		"no JSON":                  {method: "POST", path: "/v1/holds", customer: "ann", body: "{"},
		"none":                     {method: "POST", path: "/v1/holds", customer: "ann"},
	} {
		with, without := w.askHandler(h, a), w.askHandler(w.handler, a)
		if with.status != without.status || w.codeOf(with) != w.codeOf(without) {
			t.Errorf("%s: %d %s, without gathering %d %s", name, with.status, w.codeOf(with), without.status, w.codeOf(without))
		}
	}
}

func (w *world) codeOf(got reply) string {
	var p Problem
	w.into(got, got.status, &p)
	return string(p.Code)
}
