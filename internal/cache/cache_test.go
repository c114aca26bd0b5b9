package cache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var errAway = errors.New("the store is away")

func TestManyCallersShareOneLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[string, int](Options{CountMax: 10})
		var loads atomic.Int32
		release := make(chan struct{})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				v, err := c.Load(t.Context(), "a", func(context.Context) (int, error) {
					loads.Add(1)
					<-release
					return 7, nil
				})
				if v != 7 || err != nil {
					t.Errorf("%d, %v", v, err)
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if n := loads.Load(); n != 1 {
			t.Errorf("%d loads, want 1", n)
		}
	})
}

func TestACallerThatLeavesDoesNotTakeTheOthersAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[string, int](Options{CountMax: 10})
		first, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Load(first, "a", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the one who left: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if v, err := c.Load(t.Context(), "a", func(context.Context) (int, error) { return 2, nil }); v != 2 || err != nil {
				t.Errorf("the other: %d, %v", v, err)
			}
		})
		synctest.Wait()
		leave()
		wg.Wait()
	})
}

func TestAnOldValueIsBetterThanNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[string, int](Options{
			CountMax: 10, FreshFor: time.Minute, RetryAfter: time.Second,
			UseOld: func(err error) bool { return errors.Is(err, errAway) },
		})
		loads := 0
		answer := func(v int, err error) func(context.Context) (int, error) {
			return func(context.Context) (int, error) { loads++; return v, err }
		}
		if _, err := c.Load(t.Context(), "a", answer(0, errAway)); !errors.Is(err, errAway) {
			t.Errorf("nothing old to give: %v", err)
		}
		c.Put("a", 1)
		time.Sleep(time.Minute)
		for range 3 {
			if v, err := c.Load(t.Context(), "a", answer(0, errAway)); v != 1 || err != nil {
				t.Errorf("away: %d, %v", v, err)
			}
		}
		if loads != 2 {
			t.Errorf("%d loads, want 2: the store that is away is not asked for each caller", loads)
		}
		time.Sleep(time.Second)
		gone := errors.New("gone")
		if _, err := c.Load(t.Context(), "a", answer(0, gone)); !errors.Is(err, gone) {
			t.Errorf("an error that is an answer was hidden: %v", err)
		}
	})
}

func TestAPutDuringALoadWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, change := range map[string]func(*Cache[string, int]){
			"put":    func(c *Cache[string, int]) { c.Put("a", 2) },
			"forget": func(c *Cache[string, int]) { c.Forget("a") },
		} {
			c := New[string, int](Options{CountMax: 10})
			release := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				_, _ = c.Load(t.Context(), "a", func(context.Context) (int, error) { <-release; return 1, nil })
			})
			synctest.Wait()
			change(c)
			close(release)
			wg.Wait()
			if v, ok := c.Get("a"); ok && v == 1 {
				t.Errorf("%s: the old value of the load was kept", name)
			}
		}
	})
}

func TestTheOneUsedLongestAgoGoes(t *testing.T) {
	c := New[int, int](Options{CountMax: 3})
	for i := range 3 {
		c.Put(i, i)
	}
	c.Get(0)
	c.Put(3, 3)
	if _, ok := c.Get(1); ok {
		t.Error("1 was used longest ago and is still there")
	}
	if _, ok := c.Get(0); !ok || c.Len() != 3 {
		t.Errorf("0 there: %v, %d values", ok, c.Len())
	}
}

func TestAPanicLeavesNobodyWaiting(t *testing.T) {
	c := New[int, int](Options{CountMax: 3})
	func() {
		defer func() { _ = recover() }()
		_, _ = c.Load(t.Context(), 1, func(context.Context) (int, error) { panic("x") })
	}()
	if v, err := c.Load(t.Context(), 1, func(context.Context) (int, error) { return 5, nil }); v != 5 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
}
