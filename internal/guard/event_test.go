package guard

import (
	"context"
	"errors"
	"testing"
	"time"

	"onsale/internal/id"
)

// flood is how many of n requests of an event pass.
func (b *bench) flood(n int, class Class, event id.ID) (passed int) {
	for range n {
		if !b.l.Site(b.now, class, event).Refused {
			passed++
		}
	}
	return passed
}

// A hot event takes what the others leave, and never the reserve: those that ask for less than their share find it.
func TestHotEventStarvesNoOther(t *testing.T) {
	const hot, quiet = id.ID(1), id.ID(2)
	s := Settings{Site: 1_000, Event: 100, Burst: time.Second}
	b := newBench(t, s)
	if got := b.flood(5_000, Plain, hot); got < 500 || got > 600 {
		t.Errorf("the hot event gets %d of a quiet site at once", got)
	}
	for second := range 5 {
		b.now = b.now.Add(time.Second)
		passed := 0
		for range 100 { // all the time more than there is
			passed += b.flood(50, Plain, hot)
			if b.l.Site(b.now, Plain, quiet).Refused {
				t.Fatalf("second %d: another event is refused", second)
			}
			b.now = b.now.Add(time.Millisecond)
		}
		if passed < 400 {
			t.Errorf("second %d: the hot event gets %d though nobody else wants much", second, passed)
		}
	}
	if b.l.Site(b.now, SignIn, 0).Refused || b.l.Site(b.now, Queue, hot).Refused {
		t.Error("what names no event, or is of another class, is refused")
	}
	// Control: without shares the hot one takes all.
	s.Event = 0
	b = newBench(t, s)
	b.flood(5_000, Plain, hot)
	if !b.l.Site(b.now, Plain, quiet).Refused {
		t.Error("control: without shares another event still passes")
	}
}

// Where only the body says which event it is, it is looked at afterwards: the same rule.
func TestEventOfTheBody(t *testing.T) {
	const hot, quiet = id.ID(1), id.ID(2)
	b := newBench(t, Settings{Site: 1_000, Event: 100, Burst: time.Second})
	hold := func(event id.ID) bool {
		return !b.l.Site(b.now, Sale, 0).Refused && !b.l.Event(b.now, Sale, event).Refused
	}
	for range 5_000 {
		hold(hot)
	}
	for range 100 {
		if !hold(quiet) {
			t.Fatal("another event's hold is refused")
		}
	}
	if hold(hot) {
		t.Error("the hot event takes the reserve")
	}
}

func TestRefusedWaitsForTheReserve(t *testing.T) {
	b := newBench(t, Settings{Site: 1_000, Event: 100, Burst: time.Second})
	b.flood(5_000, Plain, 1)
	v := b.l.Site(b.now, Plain, 1)
	if !v.Refused || v.RetryAfter <= 0 || v.RetryAfter > time.Second {
		t.Fatalf("%+v", v)
	}
	b.now = b.now.Add(v.RetryAfter)
	if b.l.Site(b.now, Plain, 1).Refused {
		t.Error("still refused at the time that was told")
	}
}

// together is what nodes share, in memory, with a clock of its own.
type together struct {
	now   func() time.Time
	tats  map[string]time.Time
	err   error
	asked int
	slow  bool
}

func (s *together) Take(ctx context.Context, takes []Take) (ahead [SharedTakes]time.Duration, refused int, err error) {
	s.asked++
	if s.slow {
		<-ctx.Done()
		return ahead, -1, ctx.Err()
	}
	if s.err != nil {
		return ahead, -1, s.err
	}
	refused = -1
	next := make([]time.Time, len(takes))
	for i, t := range takes {
		full := time.Duration(t.Quota) * t.Each
		tat := s.tats[t.Name+string(t.Key[:])]
		if tat.Before(s.now()) {
			tat = s.now()
		}
		next[i] = tat.Add(time.Duration(t.Count) * t.Each)
		switch {
		case t.Always:
			if next[i].Sub(s.now()) > full {
				next[i] = s.now().Add(full)
			}
		case next[i].Sub(s.now()) > full && refused < 0:
			refused = i
		}
		ahead[i] = tat.Sub(s.now())
	}
	for i, t := range takes {
		if refused < 0 || t.Always {
			s.tats[t.Name+string(t.Key[:])] = next[i]
			ahead[i] = next[i].Sub(s.now())
		}
	}
	return ahead, refused, nil
}

// nodes are limiters that share.
func nodes(t *testing.T, n int, s Settings, failed func(error)) ([]*bench, *together) {
	clock := start
	shared := &together{now: func() time.Time { return clock }, tats: map[string]time.Time{}}
	var all []*bench
	for range n {
		b := newBench(t, s)
		b.l.Share(shared, failed)
		all = append(all, b)
	}
	shared.now = func() time.Time { return all[0].now }
	return all, shared
}

// Who spreads over nodes is let pass as often as at one.
func TestNodesShare(t *testing.T) {
	all, _ := nodes(t, 3, Default(), nil)
	passed := 0
	for i := range 60 {
		if v := all[i%3].ask(Caller{Customer: 7, Class: Sale}); !v.Refused {
			passed++
			if v.Standings[0].Policy.Name != "sale" || v.Standings[0].Remaining != 6-passed {
				t.Errorf("request %d is told %+v", i, v.Standings)
			}
		} else if v.RetryAfter <= 0 || v.Standings[0].Policy == nil {
			t.Errorf("refused with %+v", v)
		}
	}
	if passed != 6 {
		t.Errorf("%d pass at three nodes, want 6", passed)
	}
	// Control: alone each node lets as many pass.
	passed = 0
	for range 3 {
		b := newBench(t, Default())
		passed += b.passing(20, Caller{Customer: 7, Class: Sale})
	}
	if passed != 18 {
		t.Errorf("control: %d", passed)
	}
}

// One over its own node's limit costs no round trip; what the store refuses is given back everywhere.
func TestSharedRefusals(t *testing.T) {
	all, shared := nodes(t, 2, Default(), nil)
	all[0].passing(100, Caller{Customer: 7, Class: Sale})
	asked := shared.asked
	all[0].passing(100, Caller{Customer: 7, Class: Sale})
	if shared.asked != asked {
		t.Errorf("a flood made %d round trips", shared.asked-asked)
	}
	// The second node's own cells would let 6 pass: refused by the store, they take nothing there, nor from the customer's.
	if got := all[1].passing(50, Caller{Customer: 7, Class: Sale}); got != 0 {
		t.Errorf("%d pass", got)
	}
	if got := all[1].passing(50, Caller{Customer: 7}); got != 4 {
		t.Errorf("%d of the customer's other requests pass, want 4", got)
	}
}

// Away: the node decides alone by what it has counted all the time, and rests before it asks again.
func TestSharedStoreAway(t *testing.T) {
	failures := 0
	all, shared := nodes(t, 1, Default(), func(error) { failures++ })
	b := all[0]
	b.passing(4, Caller{Customer: 7, Class: Sale})
	shared.err = errors.New("gone")
	if got := b.passing(50, Caller{Customer: 7, Class: Sale}); got != 2 {
		t.Errorf("%d pass while the store is away, want the 2 that were left", got)
	}
	if got := b.passing(50, Caller{Customer: 8, Class: Sale}); got != 6 || failures != 1 {
		t.Errorf("another: %d pass, %d failures told", got, failures)
	}
	asked := shared.asked
	shared.err = nil
	b.now = b.now.Add(SharedRest)
	b.ask(Caller{Customer: 9})
	if shared.asked != asked+1 {
		t.Error("it is not asked again after the rest")
	}
	shared.slow = true
	if v := b.ask(Caller{Customer: 10}); v.Refused || failures != 2 {
		t.Errorf("a slow store: %+v, %d failures", v, failures)
	}
	shared.slow = false
	b.now = b.now.Add(SharedRest)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	shared.err = context.Canceled
	b.l.Caller(gone, b.now, Caller{Customer: 11})
	if failures != 2 {
		t.Error("a caller who went away is taken for a failing store")
	}
}

// What other nodes let pass counts for the site's limit.
func TestNodesShareTheSite(t *testing.T) {
	all, _ := nodes(t, 2, Settings{Site: 100, Customer: 1_000_000, Burst: time.Second}, nil)
	passed := 0
	for i := range 400 {
		for _, b := range all {
			b.now = start.Add(time.Duration(i) * 2500 * time.Microsecond)
		}
		if !all[i%2].ask(Caller{Customer: id.ID(i + 1)}).Refused {
			passed++
		}
	}
	if passed > 230 { // 100 at once and 100 in that second, and what passed within the delay
		t.Errorf("%d of 400 pass two nodes in a second", passed)
	}
}
