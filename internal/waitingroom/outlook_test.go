package waitingroom

import (
	"math"
	"math/rand/v2"
	"testing"

	"onsale/internal/ledger"
)

// The tail against plain summing of logarithms, and against what everybody knows.
func TestBinomialTail(t *testing.T) {
	for _, c := range []struct {
		n    int64
		q    float64
		k    int64
		want float64
	}{
		{0, 0.5, 0, 1}, {1, 0.5, 0, 0.5}, {10, 0.5, 4, 386.0 / 1024}, {3, 0.1, 3, 1}, {2, 0.9, 0, 0.01},
	} {
		if got := binomialTail(c.n, c.q, c.k); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("P(Bin(%d, %g) ≤ %d) = %g, not %g", c.n, c.q, c.k, got, c.want)
		}
	}
	random := rand.New(rand.NewPCG(3, 3))
	for range 2_000 {
		n := 1 + random.Int64N(5_000)
		q := 0.01 + 0.98*random.Float64()
		k := int64(float64(n)*q + 3*random.NormFloat64()*math.Sqrt(float64(n)*q*(1-q)))
		if k < 0 || k >= n {
			continue
		}
		want := 0.0
		for j := int64(0); j <= k; j++ {
			want += math.Exp(logChoose(n, j) + float64(j)*math.Log(q) + float64(n-j)*math.Log1p(-q))
		}
		if got := binomialTail(n, q, k); math.Abs(got-want) > 0.01 {
			t.Fatalf("P(Bin(%d, %g) ≤ %d) = %g, not %g", n, q, k, got, want)
		}
	}
}

// C11: the limit is where the probability crosses the level.
func TestMostBefore(t *testing.T) {
	for _, c := range []struct {
		k     int64
		q     float64
		level float64
	}{{0, 0.49, likely}, {1, 0.49, possible}, {40, 0.49, likely}, {2_000, 0.49, possible}, {80_000, 0.3, likely}} {
		n := mostBefore(c.k, c.q, c.level)
		if at, behind := binomialTail(n, c.q, c.k), binomialTail(n+1, c.q, c.k); at < c.level || behind >= c.level {
			t.Errorf("k %d: %d people have %g, one more %g", c.k, n, at, behind)
		}
	}
	if mostBefore(-1, 0.5, likely) != 0 {
		t.Error("nothing left, and there is hope")
	}
}

func pictureOf(lanes ...ledger.Lane) *picture {
	p := &picture{committed: true}
	p.room.Phase, p.room.Lanes = ledger.RoomOpen, lanes
	for _, l := range lanes {
		p.rule.Room.Lanes = append(p.rule.Room.Lanes, ledger.LaneRule{Key: l.Key, Weight: 1})
	}
	return p
}

func TestOutlook(t *testing.T) {
	one := pictureOf(ledger.Lane{Key: "general", Joined: 1_000_000, Watermark: 500})
	o := outlookOf(one, nil, Left{Available: 2_000}, true, 0, 100)
	// 800 buyers; of n people 49 % buy.
	expected := int64(500 + 1632) // 800 ÷ 0.49
	if l, p := o.likely[0], o.possible[0]; l >= expected || l < expected-100 || p <= expected || p > expected+100 {
		t.Errorf("likely before %d, possible before %d; half would be %d", l, p, expected)
	}
	for position, want := range map[int64]Outlook{0: OutlookLikely, o.likely[0] - 1: OutlookLikely, o.likely[0]: OutlookPossible, o.possible[0]: OutlookUnlikely} {
		if got := o.of(0, position); got != want {
			t.Errorf("position %d: %s, not %s", position, got, want)
		}
	}
	// With two lanes of one weight each reaches half as far, until one has nobody left.
	two := outlookOf(pictureOf(ledger.Lane{Key: "a", Joined: 1_000_000}, ledger.Lane{Key: "b", Joined: 1_000_000}), nil, Left{Available: 2_000}, true, 0, 100)
	if half := (o.likely[0] - 500) / 2; two.likely[0] < half-1 || two.likely[0] > half+1 || two.likely[0] != two.likely[1] {
		t.Errorf("two lanes: %v; one alone %d", two.likely, o.likely[0]-500)
	}
	short := outlookOf(pictureOf(ledger.Lane{Key: "a", Joined: 1_000_000}, ledger.Lane{Key: "b", Joined: 100}), nil, Left{Available: 2_000}, true, 0, 100)
	if want := o.likely[0] - 500 - 100; short.likely[0] < want-1 || short.likely[0] > want+1 {
		t.Errorf("beside a short lane: %v, want about %d", short.likely, want)
	}
	// C11: all held is unlikely, not sold out; a board that is not known says nothing.
	held := outlookOf(one, nil, Left{Held: 20}, true, 0, 100)
	if got := held.of(0, 5_000); got != OutlookUnlikely {
		t.Errorf("all held: %s", got)
	}
	gone := outlookOf(one, nil, Left{Gone: true}, true, 0, 100)
	if got := gone.of(0, 500); got != OutlookSoldOut {
		t.Errorf("nothing left: %s", got)
	}
	unknown := outlookOf(one, nil, Left{Gone: true}, false, 0, 100)
	if got := unknown.of(0, 0); got != OutlookUnknown || unknown.soldOut {
		t.Errorf("not known: %s", got)
	}
}

// What was measured counts alone from 200 outcomes on.
func TestBlend(t *testing.T) {
	for _, c := range []struct {
		hits, of int64
		want     float64
	}{{0, 0, 0.7}, {0, 100, 0.35}, {100, 100, 0.85}, {50, 200, 0.25}, {500, 1000, 0.5}} {
		if got := blend(0.7, c.hits, c.of); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d of %d: %g, not %g", c.hits, c.of, got, c.want)
		}
	}
}

// C13: nobody asks so seldom that most of a turn passes unnoticed, and the nearer the more often.
func TestPollTable(t *testing.T) {
	p := pictureOf(ledger.Lane{Key: "general"})
	p.rule.Room.Turn = 20_000
	p.rule.SaleOpens = 10_000_000
	o := outlook{}
	for _, rate := range []float64{0, 1, 50, 2000} {
		o.polls, o.pollEarly = pollTable(p, 0, rate)
		last := o.poll(0)
		for distance := int64(0); distance < 5_000_000; distance = distance*3/2 + 1 {
			at := o.poll(distance)
			if at < last || at > 5e9 || at < 1e9 {
				t.Fatalf("rate %g, %d ahead: %v after %v", rate, distance, at, last)
			}
			last = at
		}
	}
	if o.pollEarly.Seconds() != 60 {
		t.Errorf("hours before opening: %v", o.pollEarly)
	}
}
