package id

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A clock stands still until it is told to move, in either direction.
type clock struct{ at time.Time }

func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }

func newClock() *clock { return &clock{at: time.Date(2027, 3, 1, 10, 0, 0, 0, time.UTC)} }

func sequenceOf(i ID) int64 { return int64(i) & (1<<sequenceBits - 1) }
func nodeOf(i ID) int       { return int(i>>nodeShift) & NodeMax }

func TestTextAndParse(t *testing.T) {
	for _, c := range []struct {
		id   ID
		text string
	}{
		{1, "hold_0000000000001"},
		{31, "hold_000000000000Z"},
		{32, "hold_0000000000010"},
		{1<<63 - 1, "hold_7ZZZZZZZZZZZZ"},
	} {
		if got := c.id.Text(Hold); got != c.text {
			t.Errorf("Text of %d is %s, want %s", c.id, got, c.text)
		}
		if got, err := Parse(Hold, c.text); err != nil || got != c.id {
			t.Errorf("Parse(%s) is %d, %v", c.text, got, err)
		}
	}
	for text, want := range map[string]ID{"hold_000000000000z": 31, "hold_ooooooooooo1O": 32, "hold_000000000000l": 1, "hold_000000000000I": 1} {
		if got, err := Parse(Hold, text); err != nil || got != want {
			t.Errorf("as people write it: Parse(%s) is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "hold", "hold_", "0000000000001", "ord_0000000000001", "hold_000000000001", "hold_00000000000001", "HOLD_0000000000001",
		"hold_0000000000000", "hold_8000000000000", "hold_ZZZZZZZZZZZZZ", "hold_000000000000U", "hold_000000000000-", "hold_00000000000 1",
		"hold_00000000000é", " hold_0000000000001", "hold_0000000000001\n", "hold_\x00000000000001",
	} {
		if got, err := Parse(Hold, text); !errors.Is(err, ErrSyntax) || got != 0 {
			t.Errorf("Parse(%q) is %d, %v: want ErrSyntax and no id", text, got, err)
		}
	}
}

func TestTextSortsAsNumbersDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := ID(rapid.Int64Min(1).Draw(t, "a")), ID(rapid.Int64Min(1).Draw(t, "b"))
		if (a < b) != (a.Text(Order) < b.Text(Order)) {
			t.Fatalf("%d and %d sort otherwise as %s and %s", a, b, a.Text(Order), b.Text(Order))
		}
		if got, err := Parse(Order, a.Text(Order)); err != nil || got != a {
			t.Fatalf("%d comes back as %d, %v", a, got, err)
		}
	})
}

// A7: 41 bits of ms since 2025, 5 shard, 6 node, 11 sequence.
func TestBits(t *testing.T) {
	c := newClock()
	for _, node := range []int{0, 1, NodeMax} {
		g := NewGenerator(node, c.now, 0, nil)
		for k, shard := range []int{0, 1, ShardMax, 0} {
			i := g.MustNext(shard)
			if i <= 0 || i.Shard() != shard || nodeOf(i) != node || sequenceOf(i) != int64(k) || !i.Time().Equal(c.at) {
				t.Errorf("node %d, shard %d, number %d: shard %d, node %d, sequence %d, %s", node, shard, k, i.Shard(), nodeOf(i), sequenceOf(i), i.Time())
			}
		}
	}
	for _, wrong := range []func(){
		func() { NewGenerator(-1, c.now, 0, nil) }, func() { NewGenerator(NodeMax+1, c.now, 0, nil) },
		func() { NewGenerator(0, c.now, 0, nil).MustNext(-1) }, func() { NewGenerator(0, c.now, 0, nil).MustNext(ShardMax + 1) },
	} {
		if !panics(wrong) {
			t.Error("a node or shard out of bounds is taken")
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestOrderAndOverflowOfTheSequence(t *testing.T) {
	c := newClock()
	g := NewGenerator(3, c.now, 0, nil)
	const count = 3*(1<<sequenceBits) + 5 // the clock stands: it must run ahead of it
	last := ID(0)
	for k := range count {
		i := g.MustNext(0)
		if i <= last {
			t.Fatalf("number %d is %d, after %d", k, i, last)
		}
		if want := c.at.Add(time.Duration(k>>sequenceBits) * time.Millisecond); !i.Time().Equal(want) {
			t.Fatalf("number %d says %s, want %s", k, i.Time(), want)
		}
		last = i
	}
	// The clock has not caught up yet: numbers go on where they were.
	c.pass(2 * time.Millisecond)
	if i := g.MustNext(0); i <= last || i.Time().Sub(c.at) != time.Millisecond {
		t.Errorf("%s follows %s with the clock at %s", i.Time(), last.Time(), c.at)
	}
}

func TestClockGoesBack(t *testing.T) {
	c := newClock()
	g := NewGenerator(0, c.now, 0, nil)
	before := g.MustNext(0)
	c.pass(-time.Hour)
	for range 10_000 {
		i := g.MustNext(0)
		if i <= before {
			t.Fatalf("%d after %d", i, before)
		}
		before = i
	}
	c.pass(2 * time.Hour)
	if i := g.MustNext(0); !i.Time().Equal(c.at) {
		t.Errorf("with the clock ahead again numbers say %s, not %s", i.Time(), c.at)
	}
}

// A7: unique over restarts by a stored high-water mark, whatever the clock did meanwhile.
func TestUniqueOverRestarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		stored := int64(0)
		reserve := func(until int64) error {
			if until <= stored {
				t.Fatalf("the mark goes back from %d to %d", stored, until)
			}
			stored = until
			return nil
		}
		last := ID(0)
		for range rapid.IntRange(1, 6).Draw(t, "lives") {
			g := NewGenerator(1, c.now, stored, reserve)
			for range rapid.IntRange(0, 5000).Draw(t, "numbers") {
				i, err := g.Next(0)
				if err != nil {
					t.Fatal(err)
				}
				if i <= last {
					t.Fatalf("%d after %d", i, last)
				}
				if int64(i)>>millisShift > stored {
					t.Fatalf("%s was given out before the mark %d was stored", i.Text(Hold), stored)
				}
				last = i
			}
			c.pass(time.Duration(rapid.Int64Range(-3_600_000, 30_000).Draw(t, "clock")) * time.Millisecond)
		}
	})
}

// The negative control: without the stored mark a restart with a clock gone back gives numbers out twice.
func TestWithoutReserveARestartRepeats(t *testing.T) {
	c := newClock()
	first := NewGenerator(0, c.now, 0, nil).MustNext(0)
	if again := NewGenerator(0, c.now, 0, nil).MustNext(0); again != first {
		t.Fatalf("%d and %d: the test above would not notice", first, again)
	}
}

func TestReserveFails(t *testing.T) {
	c := newClock()
	broken := errors.New("disk full")
	fail := true
	calls := 0
	g := NewGenerator(0, c.now, 0, func(int64) error {
		calls++
		if fail {
			return broken
		}
		return nil
	})
	for range 2 {
		if i, err := g.Next(0); !errors.Is(err, broken) || i != 0 {
			t.Fatalf("a number %d was given out (%v) without its mark", i, err)
		}
	}
	fail, calls = false, 0
	for range 100 {
		if _, err := g.Next(0); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 1 {
		t.Errorf("the mark was stored %d times for 100 numbers", calls)
	}
	c.pass(reserveAhead * time.Millisecond)
	if _, err := g.Next(0); err != nil || calls != 2 {
		t.Errorf("%d marks, %v: the next stretch needs its own", calls, err)
	}
	if !panics(func() {
		NewGenerator(0, c.now, 0, func(int64) error { return broken }).MustNext(0)
	}) {
		t.Error("MustNext hides that the mark could not be stored")
	}
}

func TestLastNumber(t *testing.T) {
	c := &clock{at: time.UnixMilli(epoch + 1<<millisBits - 1)}
	g := NewGenerator(NodeMax, c.now, 0, nil)
	if i, err := g.Next(ShardMax); err != nil || i <= 0 {
		t.Fatalf("%d, %v", i, err)
	}
	c.pass(time.Millisecond)
	if i, err := g.Next(0); err == nil {
		t.Errorf("%d is past the last number", i)
	}
}

func TestManyAtOnce(t *testing.T) {
	g := NewGenerator(0, time.Now, 0, nil)
	const callers, each = 8, 2000
	got := make([][]ID, callers)
	var all sync.WaitGroup
	for k := range callers {
		all.Go(func() {
			for range each {
				got[k] = append(got[k], g.MustNext(k))
			}
		})
	}
	all.Wait()
	numbers := slices.Concat(got...)
	slices.Sort(numbers)
	if n := len(slices.Compact(numbers)); n != callers*each {
		t.Errorf("%d different numbers of %d", n, callers*each)
	}
}

func TestFloor(t *testing.T) {
	c := newClock()
	i := NewGenerator(0, c.now, 0, nil).MustNext(0)
	if floor := Floor(c.at); floor > i || floor != i&^(1<<millisShift-1) {
		t.Errorf("Floor is %d, the first number then %d", floor, i)
	}
	if Floor(c.at.Add(time.Millisecond)) <= i {
		t.Error("a number is at or above the floor of the next millisecond")
	}
	if Floor(time.Time{}) != 0 || Floor(time.Date(2024, 12, 31, 0, 0, 0, 0, time.UTC)) != 0 {
		t.Error("before the epoch the floor is not 0")
	}
	for _, year := range []int{2095, 2200, 3000, 5000, 9999} { // bits that are shifted out must not bring it back
		if floor := Floor(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)); floor != 1<<63-1 {
			t.Errorf("the floor of %d is %d", year, floor)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"hold_0000000000001", "hold_7ZZZZZZZZZZZZ", "hold_8000000000000", "hold_oOiIlL0000000", "ord_0000000000001", "", "hold_\xff"} {
		f.Add(Hold, seed)
	}
	f.Fuzz(func(t *testing.T, prefix, text string) {
		i, err := Parse(prefix, text)
		if err != nil {
			if !errors.Is(err, ErrSyntax) || i != 0 {
				t.Fatalf("%d, %v", i, err)
			}
			return
		}
		if i <= 0 || i.Shard() > ShardMax || nodeOf(i) > NodeMax {
			t.Fatalf("%q is %d", text, i)
		}
		again := i.Text(prefix)
		if back, err := Parse(prefix, again); err != nil || back != i || len(again) != len(text) || !strings.HasPrefix(again, prefix+"_") {
			t.Fatalf("%q is %d, written as %q, which is %d, %v", text, i, again, back, err)
		}
	})
}
