package redisclient

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"onsale/internal/redisserver"
)

func TestMain(m *testing.M) {
	// The library closes connections to nodes that a cluster has lost five seconds later, also when it was closed itself.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1")) // a refresh that waits its second, and ends by itself
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"no address":           {},
		"no port":              {Addresses: []string{"localhost"}},
		"several of one":       {Addresses: []string{"a:1", "b:1"}},
		"sentinels, a cluster": {Addresses: []string{"a:1"}, SentinelMaster: "m", Cluster: true},
		"too patient":          {Addresses: []string{"a:1"}, Timeout: time.Hour},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// Many who ask at once share one dial, and a server that is not there is not dialled by each of them.
func TestConnecting(t *testing.T) {
	server := redisserver.ForTest(t)
	c, err := New(Options{Addresses: []string{server.Address()}})
	if err != nil {
		t.Fatal(err)
	}
	var crowd sync.WaitGroup
	for range 32 {
		crowd.Go(func() {
			if _, err := c.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	crowd.Wait()
	if text, err := server.Info(t.Context(), "total_connections_received"); err != nil || len(text) > 2 {
		t.Errorf("%s connections were made for one client, %v", text, err)
	}
	c.Close()
	c.Close()
	if _, err := c.Run(t.Context()); !errors.Is(err, ErrAway) {
		t.Errorf("after Close: %v", err)
	}

	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	away, err := New(Options{Addresses: []string{server.Address()}})
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	start := time.Now()
	for range 1000 {
		if _, err := away.Run(t.Context()); !errors.Is(err, ErrAway) {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("a thousand refusals took %s", took)
	}
}

// A command that is not answered ends in its time.
func TestASilentServer(t *testing.T) {
	server := redisserver.ForTest(t)
	c, err := New(Options{Addresses: []string{server.Address()}, Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Do(t.Context(), "CLIENT", "PAUSE", "2000", "ALL"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := c.Run(t.Context()); !errors.Is(err, ErrAway) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent server: %v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("silence was suffered for %s", took)
	}
}

func TestPasswordAndWrongAnswers(t *testing.T) {
	server := redisserver.ForTest(t)
	if _, err := server.Do(t.Context(), "ACL", "SETUSER", "shop", "on", ">secret", "~onsale:*", "+@all"); err != nil {
		t.Fatal(err)
	}
	for password, good := range map[string]bool{"secret": true, "wrong": false} {
		c, err := New(Options{Addresses: []string{server.Address()}, Username: "shop", Password: password})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Run(t.Context())
		if good != (err == nil) {
			t.Errorf("with password %q: %v", password, err)
		}
		if err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("the password is in %v", err)
		}
		if good {
			_, err := c.Ints(t.Context(), rueidis.NewLuaScript(`return redis.call('SET', KEYS[1], 'x')`), []string{"else:1"}, nil)
			if e, ok := rueidis.IsRedisErr(err); !errors.Is(err, ErrAway) || (ok && e == nil) {
				t.Errorf("a key that the user may not touch: %v", err)
			}
		}
		c.Close()
	}
}

func TestCheck(t *testing.T) {
	server := redisserver.ForTest(t)
	c, err := New(Options{Addresses: []string{server.Address()}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if version, err := c.Check(t.Context()); err != nil || version == "" {
		t.Errorf("version %q, %v", version, err)
	}
	if _, err := server.Do(t.Context(), "CONFIG", "SET", "maxmemory-policy", "allkeys-lru"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("a server that throws away: %v", err)
	}
	for info, good := range map[string]bool{
		"redis_version:6.2.0\r\nmaxmemory_policy:noeviction\r\n":  true,
		"redis_version:10.1.0\r\nmaxmemory_policy:noeviction\r\n": true,
		"redis_version:6.0.16\r\nmaxmemory_policy:noeviction\r\n": false,
		"redis_version:7.0.0\r\n":                                 false,
		"redis_version:new\r\nmaxmemory_policy:noeviction\r\n":    false,
		"": false,
	} {
		if _, err := fit(info); good != (err == nil) {
			t.Errorf("%q: %v", info, err)
		}
	}
}

// TestTopologies asks whether a cluster, and a primary under sentinels, are fit, and a cluster that lacks a node is not.
func TestTopologies(t *testing.T) {
	w := redisserver.WatchedForTest(t)
	watched, err := New(Options{Addresses: w.Addresses(), SentinelMaster: redisserver.MasterName})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Close()
	if _, err := watched.Check(t.Context()); err != nil {
		t.Error(err)
	}
	c := redisserver.ClusterForTest(t)
	spread, err := New(Options{Addresses: c.Addresses(), Cluster: true})
	if err != nil {
		t.Fatal(err)
	}
	defer spread.Close()
	if _, err := spread.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := spread.Check(t.Context()); err == nil {
		t.Error("a cluster without one of its nodes is called fit")
	}
}

func FuzzFit(f *testing.F) {
	f.Add("redis_version:6.2.0\r\nmaxmemory_policy:noeviction\r\n")
	f.Add("redis_version:.\nmaxmemory_policy:")
	f.Fuzz(func(t *testing.T, info string) {
		if version, err := fit(info); err == nil && (version == "" || !strings.Contains(info, "noeviction")) {
			t.Errorf("%q is fit, version %q", info, version)
		}
	})
}
