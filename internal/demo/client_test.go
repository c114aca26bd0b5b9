package demo

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"onsale/internal/fault"
)

func problem(w http.ResponseWriter, status int, code fault.Code) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"code":"`+string(code)+`"}`)
}

// A client goes on with the same key until it has an answer, waits as long as it is told to, and repeats nothing that it
// must not.
func TestClientTriesAgain(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	serve := func(t *testing.T, answers ...http.HandlerFunc) (*client, *atomic.Int64) {
		var calls atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n := int(calls.Add(1)) - 1
			if key := r.Header.Get("Idempotency-Key"); key != "k" && key != "" {
				t.Errorf("try %d has the key %q", n, key)
			}
			answers[min(n, len(answers)-1)](w, r)
		}))
		t.Cleanup(server.Close)
		c := newClient(server.URL, 8, newFigures())
		t.Cleanup(c.close)
		return c, &calls
	}
	cut := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	busy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		problem(w, 503, fault.Busy)
	}
	internal := func(w http.ResponseWriter, _ *http.Request) { problem(w, 500, fault.Internal) }
	good := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) }
	post := call{name: "x", method: http.MethodPost, path: "/", key: "k", body: map[string]int{"a": 1}}

	c, calls := serve(t, cut, internal, good)
	if a, err := c.do(t.Context(), post, random); err != nil || a.status != 200 || calls.Load() != 3 {
		t.Errorf("%+v, %v after %d tries", a, err, calls.Load())
	}
	c, calls = serve(t, busy, good)
	began := time.Now()
	if a, err := c.do(t.Context(), post, random); err != nil || a.status != 200 || calls.Load() != 2 || time.Since(began) < time.Second {
		t.Errorf("%+v, %v after %d tries and %s", a, err, calls.Load(), time.Since(began))
	}
	once := post
	once.key, once.once = "", true
	for _, end := range []http.HandlerFunc{cut, internal} {
		c, calls = serve(t, end, good)
		if _, err := c.do(t.Context(), once, random); !errors.Is(err, errNoAnswer) || calls.Load() != 1 || c.figures.count(unknowns) != 1 {
			t.Errorf("without a key: %v after %d tries", err, calls.Load())
		}
	}
	c, calls = serve(t, func(w http.ResponseWriter, _ *http.Request) { problem(w, 409, fault.SeatsTaken) })
	if a, err := c.do(t.Context(), post, random); err != nil || a.code() != fault.SeatsTaken || calls.Load() != 1 {
		t.Errorf("%+v, %v after %d tries", a, err, calls.Load())
	}
	dropped := post
	dropped.drop = true
	c, calls = serve(t, good)
	if a, err := c.do(t.Context(), dropped, random); err != nil || a.status != 200 || calls.Load() < 1 {
		t.Errorf("after hanging up: %+v, %v", a, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.do(ctx, post, random); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
