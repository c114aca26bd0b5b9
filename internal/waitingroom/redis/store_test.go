package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"onsale/internal/id"
	"onsale/internal/redisclient"
	"onsale/internal/redisserver"
	"onsale/internal/waitingroom"
)

func TestMain(m *testing.M) {
	// The library closes connections to nodes that a cluster has lost five seconds later, also when it was closed itself.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1")) // a refresh that waits its second, and ends by itself
}

const event = id.ID(1<<40 + 7)

// open makes a store on a client of its own, as another node would.
func open(t *testing.T, o redisclient.Options) *Store {
	t.Helper()
	client, err := redisclient.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(client, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func single(t *testing.T) (*redisserver.Server, *Store) {
	t.Helper()
	server := redisserver.ForTest(t)
	return server, open(t, redisclient.Options{Addresses: []string{server.Address()}})
}

// spread is a store that joins as in a cluster, on one server.
func spread(t *testing.T) *Store {
	t.Helper()
	_, s := single(t)
	s.spread = true
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func waiting(t *testing.T, s *Store) {
	t.Helper()
	must(t, s.Restore(t.Context(), event, waitingroom.State{Phase: waitingroom.Waiting,
		Lanes: []waitingroom.LaneState{{Next: 0, Limit: 1 << 20}, {Next: 0, Limit: 1 << 20}}}))
}

func join(t *testing.T, s *Store, customer id.ID) waitingroom.Joined {
	t.Helper()
	j, err := s.Join(t.Context(), waitingroom.Join{Event: event, Customer: customer})
	must(t, err)
	return j
}

func count(t *testing.T, s *Store) int64 {
	t.Helper()
	counts, err := s.Counts(t.Context(), event)
	must(t, err)
	return counts[0].Count
}

// manyTabs joins the same customer from many goroutines and two stores at once, and returns the different numbers answered.
func manyTabs(t *testing.T, stores ...*Store) map[int64]int {
	t.Helper()
	var mu sync.Mutex
	numbers := map[int64]int{}
	var tabs sync.WaitGroup
	for i := range 64 {
		tabs.Go(func() {
			j, err := stores[i%len(stores)].Join(t.Context(), waitingroom.Join{Event: event, Customer: 42})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			numbers[j.Number]++
		})
	}
	tabs.Wait()
	return numbers
}

func TestManyTabsTakeOneNumber(t *testing.T) {
	s := spread(t)
	other := open(t, redisclient.Options{Addresses: clientAddresses(s)})
	other.spread = true
	waiting(t, s)
	if numbers := manyTabs(t, s, other); len(numbers) != 1 {
		t.Errorf("64 tabs of one customer have the numbers %v", numbers)
	}
	if n := count(t, s); n != 1 {
		t.Errorf("%d numbers were taken, want 1", n)
	}
}

// Without the claim tabs take a number each, and without looking at who is there already they keep several.
func TestManyTabsWithoutTheClaimNegativeControl(t *testing.T) {
	s := spread(t)
	waiting(t, s)
	claims, settles := claimScript, settleScript
	defer func() { claimScript, settleScript = claims, settles }()
	claimScript, settleScript = rueidis.NewLuaScript(`return {6}`), rueidis.NewLuaScript(`return {0}`)
	if numbers := manyTabs(t, s); len(numbers) < 2 {
		t.Errorf("without the claim 64 tabs have the numbers %v: the test above shows nothing", numbers)
	}
}

func clientAddresses(s *Store) []string { return s.client.Addresses() }

// Whoever dies between two steps leaves at most a number that nobody has; the customer joins again once the claim is over.
func TestAJoinThatDiesBetweenItsSteps(t *testing.T) {
	for _, step := range []string{"claimed", "identified", "taken"} {
		t.Run(step, func(t *testing.T) {
			s := spread(t)
			s.claims = 300 * time.Millisecond
			waiting(t, s)
			who := waitingroom.Join{Event: event, Customer: 42, Identity: waitingroom.Identity{1}}
			died := errors.New("died")
			s.between = func(at string) {
				if at == step {
					panic(died)
				}
			}
			func() {
				defer func() {
					if recover() != died {
						t.Error("the step was not reached")
					}
				}()
				_, _ = s.Join(t.Context(), who)
			}()
			s.between = func(string) {}
			first, err := s.Join(t.Context(), who)
			must(t, err)
			again, err := s.Join(t.Context(), who)
			must(t, err)
			again.New = true
			if first != again || !first.New {
				t.Errorf("joined as %+v, then found %+v", first, again)
			}
			want := int64(1)
			if step == "taken" {
				want = 2 // one of which nobody has
			}
			if n := count(t, s); n != want {
				t.Errorf("%d numbers were taken, want %d", n, want)
			}
			if other := join(t, s, 43); other.Number == first.Number {
				t.Errorf("two customers have number %d", other.Number)
			}
		})
	}
}

// A join that slept so long that another of the same customer has come and gone does not count any more.
func TestAJoinThatSleptOverItsClaim(t *testing.T) {
	s := spread(t)
	s.claims = 50 * time.Millisecond
	waiting(t, s)
	var other waitingroom.Joined
	asleep := false
	s.between = func(at string) {
		if at == "taken" && !asleep {
			asleep = true
			other = join(t, s, 42) // waits until the claim is over
		}
	}
	slept := join(t, s, 42)
	if slept.Number != other.Number || slept.New {
		t.Errorf("the join that slept has %+v, the other %+v: want the other's", slept, other)
	}
}

// Nobody is told that a number is drawn which the freeze did not count.
func TestFreezeAmidJoins(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *Store{
		"one script": func(t *testing.T) *Store { _, s := single(t); return s },
		"steps":      spread,
		"cluster":    clustered,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			waiting(t, s)
			var drawn, tail sync.Map
			var nextCustomer atomic.Int64
			enough := make(chan struct{})
			var crowd sync.WaitGroup
			for range 16 {
				crowd.Go(func() {
					for range 200 {
						n := nextCustomer.Add(1)
						if n == 800 {
							close(enough)
						}
						j, err := s.Join(t.Context(), waitingroom.Join{Event: event, Customer: id.ID(n)})
						if err != nil {
							t.Error(err)
							return
						}
						into := &tail
						if j.Drawn {
							into = &drawn
						}
						if _, twice := into.LoadOrStore(j.Number, true); twice {
							t.Errorf("number %d was given twice", j.Number)
						}
					}
				})
			}
			<-enough
			counts, err := s.Freeze(t.Context(), event)
			must(t, err)
			crowd.Wait()
			n := counts[0].Count
			if n < 1 || n > 3200 {
				t.Fatalf("N is %d", n)
			}
			for i := range int64(3200) {
				_, isDrawn := drawn.Load(i)
				_, isTail := tail.Load(i)
				if isDrawn != (i < n) || isTail != (i >= n) {
					t.Fatalf("of N = %d number %d is drawn: %v, of the tail: %v", n, i, isDrawn, isTail)
				}
			}
			again, err := s.Freeze(t.Context(), event)
			must(t, err)
			if again[0].Count != n {
				t.Errorf("frozen again: %d, before %d", again[0].Count, n)
			}
		})
	}
}

func clustered(t *testing.T) *Store {
	t.Helper()
	return open(t, redisclient.Options{Addresses: redisserver.ClusterForTest(t).Addresses(), Cluster: true})
}

func TestWhatIsKeptGoesInTime(t *testing.T) {
	server, s := single(t)
	waiting(t, s)
	_, err := s.Join(t.Context(), waitingroom.Join{Event: event, Customer: 42, Identity: waitingroom.Identity{1}})
	must(t, err)
	must(t, s.Remember(t.Context(), []waitingroom.Record{{Event: event, Customer: 43, Number: 9, Identity: waitingroom.Identity{2}}}))
	for _, key := range []string{roomKey(event), whoKey(event, 42), documentKey(event, waitingroom.Identity{1}), whoKey(event, 43), documentKey(event, waitingroom.Identity{2})} {
		if left, err := server.Do(t.Context(), "TTL", key); err != nil || left == "-1" || left == "-2" {
			t.Errorf("%s is kept for %s s, %v", key, left, err)
		}
	}
}

// Two million customers lie packed, so that each costs a few dozen bytes.
func TestCustomersLiePacked(t *testing.T) {
	server, s := single(t)
	var records []waitingroom.Record
	for i := range int64(40) {
		for customer := id.ID(i << 20); ; customer++ {
			if bucketOf(uint64(customer)) == 77 {
				records = append(records, waitingroom.Record{Event: event, Customer: customer, Number: 1_500_000 + i, Identity: waitingroom.Identity{byte(i), 1}})
				break
			}
		}
	}
	must(t, s.Remember(t.Context(), records))
	if how, err := server.Do(t.Context(), "OBJECT", "ENCODING", whoKey(event, records[0].Customer)); err != nil || how != "listpack" {
		t.Errorf("customers lie as %s, %v", how, err)
	}
}

func TestRunTellsOfLosses(t *testing.T) {
	server, s := single(t)
	run := func() string {
		t.Helper()
		name, err := s.Run(t.Context())
		must(t, err)
		return name
	}
	first := run()
	if first == "" || run() != first {
		t.Error("a run has not one name")
	}
	must(t, server.FlushAll(t.Context()))
	second := run()
	must(t, server.Kill())
	if name, err := s.Run(t.Context()); !errors.Is(err, redisclient.ErrAway) {
		t.Errorf("without a server the run is %q, %v", name, err)
	}
	must(t, server.Restart())
	third := eventually(t, func() (string, error) { return s.Run(t.Context()) })
	if first == second || second == third || first == third {
		t.Errorf("the runs are %q, emptied %q, restarted %q", first, second, third)
	}

	c := redisserver.ClusterForTest(t)
	spread := open(t, redisclient.Options{Addresses: c.Addresses(), Cluster: true})
	before, err := spread.Run(t.Context())
	must(t, err)
	must(t, c.Nodes[2].Kill())
	must(t, c.Nodes[2].Restart())
	must(t, c.WaitWhole(t.Context()))
	if after := eventually(t, func() (string, error) { return spread.Run(t.Context()) }); after == before || len(after) != len(before) {
		t.Errorf("the cluster's run is %q, before its node was restarted %q", after, before)
	}
}

// eventually asks until there is an answer.
func eventually[T any](t *testing.T, ask func() (T, error)) T {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		answer, err := ask()
		if err == nil {
			return answer
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func TestAFailoverThatLosesJoinsIsSeen(t *testing.T) {
	w := redisserver.WatchedForTest(t)
	s := open(t, redisclient.Options{Addresses: w.Addresses(), SentinelMaster: redisserver.MasterName})
	waiting(t, s)
	kept := join(t, s, 1)
	must(t, w.WaitReplicated(t.Context()))
	before, err := s.Run(t.Context())
	must(t, err)
	must(t, w.CutOff(t.Context()))
	lost := join(t, s, 2)
	must(t, w.Failover(t.Context()))
	again := eventually(t, func() (waitingroom.Joined, error) {
		return s.Join(t.Context(), waitingroom.Join{Event: event, Customer: 3})
	})
	if again.Number != lost.Number {
		t.Errorf("the lost number %d was not given again but %d: the replica was not cut off", lost.Number, again.Number)
	}
	if after, err := s.Run(t.Context()); err != nil || after == before {
		t.Errorf("the run is %q, before the fail-over %q, %v", after, before, err)
	}
	if j := join(t, s, 1); j.Number != kept.Number {
		t.Errorf("the number %d that the replica had is now %d", kept.Number, j.Number)
	}
	// Mended above what the log knows.
	must(t, s.Restore(t.Context(), event, waitingroom.State{Phase: waitingroom.Waiting, Lanes: []waitingroom.LaneState{{Next: 100, Limit: 1 << 20}}}))
	must(t, s.Remember(t.Context(), []waitingroom.Record{{Event: event, Customer: 2, Number: lost.Number, Drawn: true}}))
	if j := join(t, s, 2); j.Number != lost.Number || j.New || !j.Drawn {
		t.Errorf("the customer of the lost number has %+v", j)
	}
	if j := join(t, s, 4); j.Number != 100 {
		t.Errorf("after mending a new customer has number %d", j.Number)
	}
}

func TestAwayIsSaidInTime(t *testing.T) {
	server, s := single(t)
	waiting(t, s)
	must(t, server.Kill())
	for name, do := range map[string]func() error{
		"Join":     func() error { _, err := s.Join(t.Context(), waitingroom.Join{Event: event, Customer: 1}); return err },
		"Freeze":   func() error { _, err := s.Freeze(t.Context(), event); return err },
		"Counts":   func() error { _, err := s.Counts(t.Context(), event); return err },
		"Restore":  func() error { return s.Restore(t.Context(), event, waitingroom.State{}) },
		"Remember": func() error { return s.Remember(t.Context(), []waitingroom.Record{{Event: event}}) },
		"Leave":    func() error { return s.Leave(t.Context(), event, 1, 0) },
		"Run":      func() error { _, err := s.Run(t.Context()); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if err := do(); !errors.Is(err, redisclient.ErrAway) || ctx.Err() != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	must(t, server.Restart())
	_, err := s.Counts(t.Context(), event)
	for errors.Is(err, redisclient.ErrAway) { // a broken connection is noticed by its next use
		_, err = s.Counts(t.Context(), event)
	}
	if !errors.Is(err, waitingroom.ErrUnknown) {
		t.Errorf("of an emptied server: %v", err)
	}
}

// A node may start before Redis does.
func TestAStoreBeforeItsServer(t *testing.T) {
	server := redisserver.ForTest(t)
	must(t, server.Kill())
	s := open(t, redisclient.Options{Addresses: []string{server.Address()}})
	if _, err := s.Run(t.Context()); !errors.Is(err, redisclient.ErrAway) {
		t.Fatalf("without a server: %v", err)
	}
	must(t, server.Restart())
	eventually(t, func() (string, error) { return s.Run(t.Context()) })
}

func TestPacking(t *testing.T) {
	for _, r := range []waitingroom.Record{{}, {Number: 1<<40 - 1, Lane: 15, Drawn: true}, {Number: 7, Lane: 3}} {
		if got, want := unpack(pack(r)), (waitingroom.Joined{Lane: r.Lane, Number: r.Number, Drawn: r.Drawn}); got != want {
			t.Errorf("%+v becomes %+v", want, got)
		}
	}
	seen := map[uint64]int{}
	for i := range uint64(1 << 18) { // ids of one node within a second
		seen[bucketOf(i<<22|7)]++
	}
	for b, n := range seen {
		if n > 40 {
			t.Fatalf("bucket %d has %d of %d customers", b, n, 1<<18)
		}
	}
	if fmt.Sprint(whoKey(event, 5)) == fmt.Sprint(claimKey(event, 5)) {
		t.Error("a claim lies where the numbers do")
	}
}
