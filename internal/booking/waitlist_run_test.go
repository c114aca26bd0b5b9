package booking

import (
	"context"
	"testing"
	"time"

	"onsale/internal/ledger"
	"onsale/internal/ledger/ledgertest"
)

// Of two workers one serves, and when it ends the other goes on.
func TestOneNodeServesAtATime(t *testing.T) {
	clock := ledgertest.NewClock(1_800_000_000_000)
	w := newListWorld(t, ledger.NewModel(clock.Now), clock, nil)
	type node struct {
		tick   chan time.Time
		passed chan Served
		end    func()
	}
	start := func() node {
		n := node{tick: make(chan time.Time), passed: make(chan Served)}
		ctx, cancel := context.WithCancel(context.Background())
		list := NewWaitlist(WaitlistOptions{Shard: w, IDs: w.ids, Logger: quiet(), Tick: n.tick, Passed: func(d Served, err error) {
			if err != nil {
				t.Error(err)
			}
			n.passed <- d
		}})
		done := make(chan struct{})
		go func() { list.Run(ctx); close(done) }()
		n.end = func() { cancel(); <-done }
		return n
	}
	pass := func(n node) Served { n.tick <- time.Time{}; return <-n.passed }
	one, two := start(), start()
	defer func() { two.end() }()
	pass(one)
	h := w.hold(bob, 0, 1, 2, 3)
	w.hold(bob, 4, 5, 6, 7)
	w.wish(alice, 1, 0)
	if done := pass(two); done.Turned {
		t.Error("two serve at once")
	}
	clock.Advance(3 * second) // time to renew the lease
	if done := pass(one); !done.Turned {
		t.Error("the one that holds the lease does not serve")
	}
	w.ok(ledger.Release{Hold: h.ID, Customer: bob})
	one.end()
	if done := pass(two); done.Offered != 1 {
		t.Errorf("the other one does not go on: %+v", done)
	}
	one = start()
	one.end()
	one.end = func() {}
}
