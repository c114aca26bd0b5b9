package ledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"onsale/internal/fault"
)

// A fakeCrowd is called and comes, some of it, after a while.
type fakeCrowd struct {
	e      *Event
	r      *Room
	now    Time
	random *rand.Rand
	comes  float64 // of those called
	coming []comer
	inside []Time // when each of those inside leaves
	stay   Duration
}

type comer struct {
	number int64
	at     Time
}

func newFakeCrowd(rule RoomRule, comes float64, stay Duration) *fakeCrowd {
	rule.Mode, rule.Arrival = RoomOn, true
	c := &fakeCrowd{
		e: &Event{State: OnSale, SaleCloses: 1 << 60, Room: rule}, now: 1_000_000, random: rand.New(rand.NewPCG(1, 2)), comes: comes, stay: stay,
	}
	c.r = NewRoom(c.e)
	c.r.Phase = RoomWaiting
	c.r.Arrival = true
	c.r.Lanes[0].HighWater = 1 << 30
	c.r.Freeze(c.e, RoomFreeze{Lanes: []LaneCount{{LaneDefault, 1 << 30}}}, c.now)
	return c
}

// second lets a second go by and says how many entered.
func (c *fakeCrowd) second(t *testing.T, a Advance) (entered int) {
	t.Helper()
	for range 10 {
		c.now += Time(RoomTick)
		for i := 0; i < len(c.inside); i++ {
			if c.inside[i] <= c.now {
				c.inside[i] = c.inside[len(c.inside)-1]
				c.inside = c.inside[:len(c.inside)-1]
				c.r.Inside--
				i--
			}
		}
		calls, _ := c.r.Step(c.e, a, c.now)
		for _, call := range calls {
			for n := call.From; n < call.Watermark; n++ {
				if c.random.Float64() < c.comes {
					c.coming = append(c.coming, comer{n, c.now + Time(c.random.IntN(8000))})
				}
			}
		}
		var later []comer
		for _, who := range c.coming {
			if who.at > c.now {
				later = append(later, who)
				continue
			}
			_, _, err := c.r.Claim(c.e, Enter{Lane: LaneDefault, Number: who.number}, c.now, Checks{}, func() error { return nil })
			var f *fault.Error
			switch {
			case err == nil:
				entered++
				c.inside = append(c.inside, c.now+Time(c.stay))
			case errors.As(err, &f) && f.Code == fault.NextIn:
				later = append(later, comer{who.number, c.now + TimeOf(time.UnixMilli(0).Add(f.RetryAfter))})
			default:
				t.Fatalf("number %d: %v", who.number, err)
			}
		}
		c.coming = later
		if c.r.Entered > c.r.Rate || c.r.Inside > c.e.Room.ActiveMax {
			t.Fatalf("%d entered of %d, %d are inside of %d", c.r.Entered, c.r.Rate, c.r.Inside, c.e.Room.ActiveMax)
		}
	}
	return entered
}

// However few of those called come, R is busy once that is known, and hardly anybody who comes has to knock again and again.
func TestCallingKeepsRateBusy(t *testing.T) {
	for _, comes := range []float64{1, 0.7, 0.3} {
		t.Run(fmt.Sprintf("%.0f %% come", comes*100), func(t *testing.T) {
			c := newFakeCrowd(RoomRule{Rate: 200, ActiveMax: 100_000}, comes, 20_000)
			seats := Advance{Available: 1 << 30}
			for range 40 {
				c.second(t, seats)
			}
			entered, knocks := 0, 0
			for range 60 {
				entered += c.second(t, seats)
				knocks = max(knocks, len(c.r.Knocks))
			}
			t.Logf("%d entered in a minute at 200 a second, at most %d knocked; show is %d", entered, knocks, c.r.show())
			if entered < 60*200*95/100 {
				t.Errorf("%d entered in a minute at 200 a second", entered)
			}
			if knocks > 3*200 {
				t.Errorf("%d knocked at once", knocks)
			}
		})
	}
}

// Where ActiveMax binds, the room is full.
func TestCallingKeepsTheRoomFull(t *testing.T) {
	for _, comes := range []float64{1, 0.7, 0.3} {
		c := newFakeCrowd(RoomRule{Rate: 200, ActiveMax: 500}, comes, 60_000)
		seats := Advance{Available: 1 << 30}
		for range 240 {
			c.second(t, seats)
		}
		least, sum := c.r.Inside, 0
		for range 120 {
			c.second(t, seats)
			least = min(least, c.r.Inside)
			sum += c.r.Inside
		}
		t.Logf("%.0f %% come: %d are inside on average, at least %d of 500; %d knock", comes*100, sum/120, least, len(c.r.Knocks))
		if sum/120 < 425 {
			t.Errorf("%.0f %% come: %d are inside on average, of 500", comes*100, sum/120)
		}
	}
}

// Lane.Open holds one entry for each second of the room's clock within a turn.
func TestOpenCallsAreBounded(t *testing.T) {
	c := newFakeCrowd(RoomRule{Rate: 100, ActiveMax: 1_000_000, Turn: RoomTurnMax}, 0, 1000)
	for range int(RoomTurnMax)/1000 + 100 {
		c.second(t, Advance{Available: 1 << 40})
	}
	if n, most := len(c.r.Lanes[0].Open), int(RoomTurnMax)/1000+2; n > most || n < most-10 {
		t.Errorf("%d open calls, at most %d", n, most)
	}
}

func TestKnocksAreBounded(t *testing.T) {
	c := newFakeCrowd(RoomRule{Rate: 1, ActiveMax: 10}, 1, 1000)
	l := &c.r.Lanes[0]
	l.Watermark = 10_000
	l.Open = []Call{{Lane: l.Key, Watermark: 10_000, Clock: c.r.Clock}}
	claim := func(number int64) error {
		_, _, err := c.r.Claim(c.e, Enter{Lane: l.Key, Number: number}, c.now, Checks{}, func() error { return nil })
		return err
	}
	if err := claim(9_999); err != nil {
		t.Fatal(err)
	}
	for n := range int64(RoomKnocksMax + 10) {
		if claim(5_000-n) == nil {
			t.Fatalf("number %d entered", 5_000-n)
		}
	}
	if len(c.r.Knocks) != RoomKnocksMax || c.r.Knocks[0].Number != 5_000-RoomKnocksMax-9 {
		t.Errorf("%d knocks, the first of %d", len(c.r.Knocks), c.r.Knocks[0].Number)
	}
	if claim(6_000) == nil || len(c.r.Knocks) != RoomKnocksMax {
		t.Errorf("one more: %d knocks", len(c.r.Knocks))
	}
}

func TestReportsAreBounded(t *testing.T) {
	r := &Room{}
	for node := range RoomNodesMax + 5 {
		if !r.Report(RoomReport{Node: node}, Time(node*10)) {
			t.Errorf("the report of node %d is not kept", node)
		}
	}
	if len(r.Reports) != RoomNodesMax || r.Report(RoomReport{Node: RoomNodesMax}, 5000) == false || r.Report(RoomReport{Node: RoomNodesMax}, 5999) {
		t.Errorf("%d reports", len(r.Reports))
	}
	for _, p := range r.Reports {
		if p.Node < 5 {
			t.Errorf("the report of node %d is older than those of others that went", p.Node)
		}
	}
}

// Whatever lanes there are, all who may be called are called, each lane's share is its weight's to within one while all have
// somebody waiting, and nobody is called who has no number.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := &RoomRule{}
		r := &Room{}
		total := int64(0)
		for i := range rapid.IntRange(1, 5).Draw(t, "lanes") {
			l := LaneRule{Key: fmt.Sprint(i), Weight: rapid.IntRange(1, 9).Draw(t, "weight")}
			rule.Lanes = append(rule.Lanes, l)
			total += int64(l.Weight)
			r.Lanes = append(r.Lanes, Lane{Key: l.Key, Joined: 1 << 40})
		}
		called := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			n := int64(rapid.IntRange(0, 40).Draw(t, "people"))
			r.share(rule, n, 0)
			called += n
		}
		for i, l := range r.Lanes {
			if off := l.Watermark*total - called*int64(rule.Lanes[i].Weight); off > total || off < -total {
				t.Fatalf("lane %d of weight %d of %d got %d of %d", i, rule.Lanes[i].Weight, total, l.Watermark, called)
			}
		}
		left := int64(0)
		for i := range r.Lanes {
			n := int64(rapid.IntRange(0, 20).Draw(t, "left"))
			r.Lanes[i].Joined = r.Lanes[i].Watermark + n
			left += n
		}
		got := int64(0)
		for _, c := range r.share(rule, left+5, 0) {
			got += c.Watermark - c.From
		}
		if got != left {
			t.Fatalf("%d were called of %d", got, left)
		}
	})
}
