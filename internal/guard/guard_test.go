package guard

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"onsale/internal/id"
)

var start = time.Date(2027, 3, 1, 10, 0, 0, 0, time.UTC)

// A clock and a limiter on it.
type bench struct {
	t   *testing.T
	l   *Limiter
	now time.Time
}

func newBench(t *testing.T, s Settings) *bench {
	t.Helper()
	l, err := New(s, start)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, l, start}
}

// ask asks as the API does.
func (b *bench) ask(c Caller) Verdict {
	if v := b.l.Site(b.now, c.Class, 0); v.Refused {
		return v
	}
	return b.l.Caller(b.t.Context(), b.now, c)
}

// passing is how many of n requests at once pass.
func (b *bench) passing(n int, c Caller) (passed int) {
	for range n {
		if !b.ask(c).Refused {
			passed++
		}
	}
	return passed
}

func TestEachLimit(t *testing.T) {
	here := netip.MustParseAddr("198.51.100.7")
	for name, c := range map[string]struct {
		caller Caller
		burst  int // at once
		second int // in each second after it
	}{
		"a customer":              {Caller{Customer: 1, Address: here}, 10, 5},
		"a customer who buys":     {Caller{Customer: 1, Address: here, Class: Sale}, 6, 3},
		"somebody at work":        {Caller{Customer: 1, Address: here, Class: Staff}, 100, 50},
		"an address":              {Caller{Address: here}, 40, 20},
		"an address that buys":    {Caller{Address: here, Class: Sale}, 40, 20},
		"who waits in line":       {Caller{Ticket: 7, Address: here}, 10, 5},
		"a provider's notices":    {Caller{Address: here, Class: Free}, 1000, 1000},
		"an address that is none": {Caller{}, 40, 20},
	} {
		s := Default()
		s.Site = 100
		b := newBench(t, s)
		if got := b.passing(1000, c.caller); got != c.burst {
			t.Errorf("%s: %d at once, want %d", name, got, c.burst)
		}
		for range 3 {
			b.now = b.now.Add(time.Second)
			if got := b.passing(1000, c.caller); got != c.second {
				t.Errorf("%s: %d in a second, want %d", name, got, c.second)
			}
		}
	}
}

// A limit that is off limits nothing: each of the tests above would fail without its limit.
func TestLimitsThatAreOff(t *testing.T) {
	b := newBench(t, Settings{})
	for _, c := range []Caller{{Customer: 1}, {Customer: 1, Class: Sale}, {Customer: 1, Class: Staff}, {}} {
		if got := b.passing(1000, c); got != 1000 {
			t.Errorf("%+v: %d of 1000 pass without limits", c, got)
		}
		if v := b.ask(c); v.Standings != [2]Standing{} {
			t.Errorf("%+v stands %+v with limits that are not there", c, v.Standings)
		}
	}
}

func TestOneIsNotAnother(t *testing.T) {
	b := newBench(t, Default())
	for _, c := range []Caller{
		{Customer: 1}, {Customer: 2}, {Customer: 1 << 62},
		{Address: netip.MustParseAddr("198.51.100.7")}, {Address: netip.MustParseAddr("198.51.100.8")},
		{Address: netip.MustParseAddr("2001:db8:0:1::1")}, {Address: netip.MustParseAddr("2001:db8:0:2::1")},
	} {
		want := 10
		if c.Customer == 0 {
			want = 40
		}
		if got := b.passing(100, c); got != want {
			t.Errorf("%+v: %d of 100, want %d: somebody else's were counted", c, got, want)
		}
	}
	// And these are one.
	for _, c := range []Caller{
		{Customer: 1, Address: netip.MustParseAddr("203.0.113.9")}, {Address: netip.MustParseAddr("::ffff:198.51.100.7")},
		{Address: netip.MustParseAddr("2001:db8:0:1:ffff::7")}, {Address: netip.MustParseAddr("2001:db8:0:1::1%eth0")},
	} {
		if got := b.passing(10, c); got != 0 {
			t.Errorf("%+v: %d pass, after the limit was used up by the same", c, got)
		}
	}
}

// What a refused one is told is true to the nanosecond, and what remains is what passes.
func TestWhatIsToldIsTrue(t *testing.T) {
	b := newBench(t, Default())
	c := Caller{Customer: 7, Class: Sale}
	for i := range 6 {
		v := b.ask(c)
		sale, all := v.Standings[0], v.Standings[1]
		if v.Refused || sale.Policy.Name != "sale" || sale.Remaining != 5-i || all.Policy.Name != "customer" || all.Remaining != 9-i {
			t.Fatalf("request %d: %+v", i, v)
		}
		if sale.Policy.Quota != 6 || sale.Policy.Window.Round(time.Millisecond) != 2*time.Second {
			t.Errorf("the policy says %+v", sale.Policy)
		}
	}
	v := b.ask(c)
	if !v.Refused || v.Standings[0].Remaining != 0 || v.RetryAfter <= 0 || v.RetryAfter > time.Second/3 {
		t.Fatalf("refused with %+v", v)
	}
	b.now = b.now.Add(v.RetryAfter - 1)
	if !b.ask(c).Refused {
		t.Error("it passes before its time")
	}
	b.now = b.now.Add(1)
	if v := b.ask(c); v.Refused {
		t.Errorf("at its time it is refused: %+v", v)
	}
	v = b.ask(Caller{Customer: 7})
	b.now = b.now.Add(v.Standings[0].Reset)
	if v := b.ask(Caller{Customer: 7}); v.Standings[0].Remaining != 9 {
		t.Errorf("after the reset %+v is left", v)
	}
}

// A refused request takes nothing: not from the customer where the sale's limit refused, nor from the site.
func TestRefusedOnesTakeNothing(t *testing.T) {
	s := Default()
	s.Site = 10 // 20 at once
	b := newBench(t, s)
	if got := b.passing(500, Caller{Customer: 1, Class: Sale}); got != 6 {
		t.Fatalf("%d pass", got)
	}
	if got := b.passing(500, Caller{Customer: 1}); got != 4 {
		t.Errorf("%d more of the customer pass, want 4", got)
	}
	// The customer's own limit is used up, and refuses a purchase that the sale's limit would let pass.
	b.now = b.now.Add(time.Second / 3)
	b.passing(1, Caller{Customer: 1})
	if v := b.ask(Caller{Customer: 1, Class: Sale}); !v.Refused || v.Standings[0].Policy.Name != "customer" {
		t.Errorf("%+v", v)
	}
	b.now = b.now.Add(time.Second / 5)
	if v := b.ask(Caller{Customer: 1, Class: Sale}); v.Refused {
		t.Errorf("the refused purchase was counted: %+v", v)
	}
	b.now = start.Add(10 * time.Second)
	if got := b.passing(500, Caller{Customer: 2}); got != 10 {
		t.Errorf("%d pass for another: the flood has used up the site", got)
	}
	if got := b.passing(500, Caller{Customer: 3}); got != 10 {
		t.Errorf("%d pass for a third", got)
	}
	if v := b.ask(Caller{Customer: 4}); !v.Refused || v.RetryAfter <= 0 {
		t.Errorf("the site's limit lets more than 20 pass: %+v", v)
	}
}

func TestClockThatGoesBackLocksNobodyOut(t *testing.T) {
	s := Default()
	s.Site = 0
	b := newBench(t, s)
	b.now = start.Add(time.Hour)
	b.passing(100, Caller{Customer: 1})
	b.now = start
	v := b.ask(Caller{Customer: 1})
	if v.RetryAfter > 2*time.Second {
		t.Errorf("locked out for %s", v.RetryAfter)
	}
	b.now = b.now.Add(2 * time.Second)
	if b.ask(Caller{Customer: 1}).Refused {
		t.Error("still refused after the whole window")
	}
}

// The limit of memory: the youngest stay, the oldest start afresh.
func TestMemoryIsBounded(t *testing.T) {
	s := Default()
	s.Keys, s.Site = 10*shards, 0
	b := newBench(t, s)
	b.passing(100, Caller{Customer: 1})
	for i := range 100 * shards {
		b.ask(Caller{Customer: id.ID(i + 2)})
		if i%5 == 0 && !b.ask(Caller{Customer: 1}).Refused { // heard of all the time
			t.Fatalf("the youngest was forgotten after %d others", i)
		}
		b.ask(Caller{Address: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})})
	}
	for _, c := range []*cells{b.l.customer.cells, b.l.address.cells} {
		if n := c.len(); n > s.Keys || n < s.Keys/2 {
			t.Errorf("%d keys are remembered, the limit is %d", n, s.Keys)
		}
		for i := range c.parts {
			if p := &c.parts[i]; len(p.entries) > p.max+1 {
				t.Errorf("a part has %d entries", len(p.entries))
			}
		}
	}
	if b.passing(20, Caller{Customer: 2}) != 10 {
		t.Error("the oldest is remembered")
	}
}

func TestManyAtOnce(t *testing.T) {
	s := Default()
	s.Keys = shards
	b := newBench(t, s)
	var passed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if v := b.l.Site(start, Plain, 0); v.Refused {
					continue
				}
				if !b.l.Caller(t.Context(), start, Caller{Customer: 1, Class: Sale}).Refused {
					passed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if got := passed.Load(); got != 6 {
		t.Errorf("%d pass at once, want 6", got)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for name, s := range map[string]Settings{
		"a rate below 0": {Customer: -1}, "a rate that is too large": {Site: RateMax + 1}, "a burst below 0": {Burst: -1},
		"a burst that is too long": {Burst: BurstMax + 1}, "no keys": {Keys: -1}, "fewer keys than parts": {Keys: shards - 1}, "too many keys": {Keys: KeysMax + 1},
	} {
		if _, err := New(s, start); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for _, s := range []Settings{Default(), {}, {Customer: RateMax, Burst: BurstMax}, {Address: 1, Burst: time.Nanosecond}} {
		if _, err := New(s, start); err != nil {
			t.Error(err)
		}
	}
}
