package redis

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/guard"
	"onsale/internal/redisclient"
	"onsale/internal/redisserver"
)

func TestMain(m *testing.M) {
	// The library closes connections to nodes that a cluster has lost five seconds later, also when it was closed itself.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1")) // a refresh that waits its second, and ends by itself
}

func open(t *testing.T, o redisclient.Options) *Cells {
	t.Helper()
	client, err := redisclient.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return New(client)
}

func forms(t *testing.T, run func(t *testing.T, open func() *Cells)) {
	t.Run("one server", func(t *testing.T) {
		o := redisclient.Options{Addresses: []string{redisserver.ForTest(t).Address()}}
		run(t, func() *Cells { return open(t, o) })
	})
	t.Run("cluster", func(t *testing.T) {
		o := redisclient.Options{Addresses: redisserver.ClusterForTest(t).Addresses(), Cluster: true}
		run(t, func() *Cells { return open(t, o) })
	})
}

func take(t *testing.T, c *Cells, takes ...guard.Take) ([guard.SharedTakes]time.Duration, int) {
	t.Helper()
	ahead, refused, err := c.Take(t.Context(), takes)
	if err != nil {
		t.Fatal(err)
	}
	return ahead, refused
}

var key = [16]byte{15: 7}

// slow is a limit whose requests do not come back within a test.
func slow(name string, quota int64) guard.Take {
	return guard.Take{Name: name, Key: key, Each: time.Hour, Quota: quota, Count: 1}
}

func TestNodesShareACell(t *testing.T) {
	forms(t, func(t *testing.T, open func() *Cells) {
		nodes := []*Cells{open(), open(), open()}
		var passed atomic.Int64
		var crowd sync.WaitGroup
		for i := range 60 {
			crowd.Go(func() {
				_, refused, err := nodes[i%3].Take(t.Context(), []guard.Take{slow("sale", 20)})
				if err != nil {
					t.Error(err)
				}
				if refused < 0 {
					passed.Add(1)
				}
			})
		}
		crowd.Wait()
		if n := passed.Load(); n != 20 {
			t.Errorf("%d of 60 requests passed a quota of 20", n)
		}
	})
}

func TestWhatOneRefusesTheOtherDoesNotCount(t *testing.T) {
	forms(t, func(t *testing.T, open func() *Cells) {
		c := open()
		site := guard.Take{Name: "site", Each: time.Hour, Quota: 1000, Count: 5, Always: true}
		for i := range 3 {
			if _, refused := take(t, c, slow("sale", 9), site, slow("customer", 3)); refused >= 0 {
				t.Fatalf("request %d was refused", i)
			}
		}
		ahead, refused := take(t, c, slow("sale", 9), site, slow("customer", 3))
		if refused != 2 {
			t.Fatalf("refused by %d, want the third", refused)
		}
		for i, want := range []time.Duration{3 * time.Hour, 20 * time.Hour, 3 * time.Hour} {
			if got := ahead[i].Round(time.Minute); got != want {
				t.Errorf("take %d is %s ahead, want %s", i, got, want)
			}
		}
		other := slow("sale", 9)
		other.Key[0] = 1
		if ahead, refused := take(t, c, other); refused >= 0 || ahead[0].Round(time.Minute) != time.Hour {
			t.Errorf("another's cell: refused %d, %s ahead", refused, ahead[0])
		}
	})
}

func TestWhatIsCountedAlwaysStopsAtTheQuota(t *testing.T) {
	forms(t, func(t *testing.T, open func() *Cells) {
		site := guard.Take{Name: "site", Each: time.Hour, Quota: 10, Count: 25, Always: true}
		for range 2 {
			if ahead, refused := take(t, open(), site); refused >= 0 || ahead[0].Round(time.Minute) != 10*time.Hour {
				t.Errorf("refused %d, %s ahead", refused, ahead[0])
			}
		}
	})
}

// Quota after quota, and not one more, though a request is not a whole number of microseconds.
func TestRatesThatDoNotDivide(t *testing.T) {
	c := open(t, redisclient.Options{Addresses: []string{redisserver.ForTest(t).Address()}})
	for _, perSecond := range []int64{3, 7, 300} {
		l := guard.Take{Name: strconv.FormatInt(perSecond, 10), Key: key, Each: time.Second / time.Duration(perSecond) * 1_000, Quota: 2 * perSecond, Count: 1}
		passed := int64(0)
		for range l.Quota + 3 {
			if _, refused := take(t, c, l); refused < 0 {
				passed++
			}
		}
		if passed != l.Quota {
			t.Errorf("at %d a second %d passed at once, want %d", perSecond, passed, l.Quota)
		}
	}
}

func TestCellsEndAndAClockThatWentBackLocksNobodyOut(t *testing.T) {
	server := redisserver.ForTest(t)
	c := open(t, redisclient.Options{Addresses: []string{server.Address()}})
	name := callsOf([]guard.Take{slow("sale", 2)})[0].keys[0]
	quick := guard.Take{Name: "sale", Key: key, Each: 10 * time.Second, Quota: 2, Count: 1}
	take(t, c, quick)
	left, err := server.Do(t.Context(), "PTTL", name)
	ms, _ := strconv.Atoi(left)
	if err != nil || ms < 8_000 || ms > 10_001 {
		t.Errorf("the cell ends in %s ms, %v", left, err)
	}
	// As a clock that was a day ahead has left it.
	if _, err := server.Do(t.Context(), "SET", name, "99999999999999"); err != nil {
		t.Fatal(err)
	}
	ahead, refused := take(t, c, quick)
	if refused != 0 || ahead[0] > 20*time.Second {
		t.Errorf("refused %d, %s ahead, want to be refused for the quota of 20 s", refused, ahead[0])
	}
	if left, err = server.Do(t.Context(), "PTTL", name); err != nil {
		t.Fatal(err)
	}
	if ms, _ = strconv.Atoi(left); ms < 1 || ms > 20_001 {
		t.Errorf("the cell now ends in %s ms", left)
	}
}

func TestAwayIsAnError(t *testing.T) {
	server := redisserver.ForTest(t)
	c := open(t, redisclient.Options{Addresses: []string{server.Address()}})
	take(t, c, slow("sale", 9))
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), guard.SharedWait)
	defer cancel()
	if _, refused, err := c.Take(ctx, []guard.Take{slow("sale", 9)}); !errors.Is(err, redisclient.ErrAway) || refused != -1 {
		t.Errorf("refused %d, %v", refused, err)
	}
	if err := server.Restart(); err != nil { // without the script
		t.Fatal(err)
	}
	for {
		if _, _, err := c.Take(t.Context(), []guard.Take{slow("sale", 9), slow("customer", 9)}); err == nil {
			break
		} else if !errors.Is(err, redisclient.ErrAway) {
			t.Fatal(err)
		}
	}
	for _, n := range []int{0, guard.SharedTakes + 1} {
		if _, _, err := c.Take(t.Context(), make([]guard.Take, n)); err == nil {
			t.Errorf("%d takes are taken", n)
		}
	}
}

// Two nodes' limiters, one Redis: a customer has one quota; without sharing they have two.
func TestLimitersTogether(t *testing.T) {
	for _, shared := range []bool{true, false} {
		server := redisserver.ForTest(t)
		now := time.Now()
		var nodes []*guard.Limiter
		for range 2 {
			l, err := guard.New(guard.Settings{Customer: 5, Burst: 2 * time.Second}, now)
			if err != nil {
				t.Fatal(err)
			}
			if shared {
				l.Share(patient{open(t, redisclient.Options{Addresses: []string{server.Address()}})}, func(err error) { t.Error(err) })
			}
			nodes = append(nodes, l)
		}
		passed := 0
		for i := range 40 {
			v := nodes[i%2].Caller(t.Context(), now, guard.Caller{Customer: 9, Address: netip.MustParseAddr("192.0.2.1")})
			if !v.Refused {
				passed++
			} else if v.RetryAfter <= 0 {
				t.Error("refused without saying for how long")
			}
		}
		if want := map[bool]int{true: 10, false: 20}[shared]; passed < want || passed > want+1 {
			t.Errorf("shared: %v: %d requests passed, want %d", shared, passed, want)
		}
	}
}

// patient cells wait for a slow machine: what is tested is the count, not the time.
type patient struct{ *Cells }

func (p patient) Take(ctx context.Context, takes []guard.Take) ([guard.SharedTakes]time.Duration, int, error) {
	return p.Cells.Take(context.WithoutCancel(ctx), takes)
}
