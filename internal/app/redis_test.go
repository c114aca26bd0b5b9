package app

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"onsale/internal/guard"
	"onsale/internal/redisclient"
	"onsale/internal/redisserver"
	"onsale/internal/waitingroom"
)

// The doctor asks a Redis that is fit, one that would throw numbers away, and one that is not there.
func TestDoctorAsksRedis(t *testing.T) {
	server := redisserver.ForTest(t)
	check := CheckRedis(redisclient.Options{Addresses: []string{server.Address()}})
	if err := check.Ask(t.Context()); err != nil {
		t.Errorf("a server that is fit: %v", err)
	}
	if _, err := server.Do(t.Context(), "CONFIG", "SET", "maxmemory-policy", "allkeys-lru"); err != nil {
		t.Fatal(err)
	}
	if err := check.Ask(t.Context()); err == nil || !strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("a server that throws away: %v", err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := check.Ask(t.Context()); !errors.Is(err, redisclient.ErrAway) {
		t.Errorf("a server that is not there: %v", err)
	}
}

// Two nodes with one Redis give a customer one quota. While it is away each decides alone, and says so once.
func TestNodesHaveRedisInCommon(t *testing.T) {
	server := redisserver.ForTest(t)
	var said atomic.Int64
	logger := slog.New(slog.NewTextHandler(countingWriter{&said}, nil))
	now := time.Now()
	limiters := make([]*guard.Limiter, 2)
	for i := range limiters {
		a := &App{Log: logger, Settings: Settings{Redis: redisclient.Options{Addresses: []string{server.Address()}}}}
		t.Cleanup(func() { _ = a.Close(t.Context()) })
		common, err := a.common()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := a.common(); again != common || err != nil {
			t.Error("what is in common was made twice")
		}
		if _, err := common.client.Run(t.Context()); err != nil { // connected, so that the first request is not late
			t.Fatal(err)
		}
		if limiters[i], err = guard.New(guard.Settings{Customer: 5, Burst: 2 * time.Second}, now); err != nil {
			t.Fatal(err)
		}
		common.limit(limiters[i])
	}
	passed := func(customer guard.Caller) (n int) {
		for i := range 40 {
			if v := limiters[i%2].Caller(t.Context(), now, customer); !v.Refused {
				n++
			}
		}
		return n
	}
	// A machine that is slow for a moment lets a node decide alone, so up to the quota of both may pass.
	if n := passed(guard.Caller{Customer: 1}); n < 10 || n > 20 {
		t.Errorf("%d requests passed a quota of 10 on two nodes", n)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	said.Store(0)
	if n := passed(guard.Caller{Customer: 2}); n != 20 {
		t.Errorf("without Redis %d requests passed a quota of 10 on two nodes", n)
	}
	if n := said.Load(); n > 2 {
		t.Errorf("it was said %d times", n)
	}
}

// Without addresses there is one node, and nothing to share.
func TestOneNodeKeepsWhatIsCommonInProcess(t *testing.T) {
	a := &App{Log: slog.Default()}
	common, err := a.common()
	if err != nil {
		t.Fatal(err)
	}
	store, err := common.Store()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Counts(t.Context(), 1); !errors.Is(err, waitingroom.ErrUnknown) {
		t.Errorf("%v", err)
	}
	if _, err := (&App{Settings: Settings{Redis: redisclient.Options{Addresses: []string{"nowhere"}}}}).common(); err == nil {
		t.Error("an address without a port was taken")
	}
}

type countingWriter struct{ n *atomic.Int64 }

func (w countingWriter) Write(p []byte) (int, error) { w.n.Add(1); return len(p), nil }
