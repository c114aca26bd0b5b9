package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"onsale/internal/venue"
)

// The same seed brings the same buyers.
func TestCast(t *testing.T) {
	const count = 20_000
	one, err := cast(5, count, true)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := cast(5, count, true)
	other, _ := cast(6, count, true)
	same, differ := 0, 0
	names := map[string]bool{}
	parties := map[int]int{}
	walks, declined, retries, signIns, laters := 0, 0, 0, 0, 0
	for i := range one {
		a, b, c := one[i], again[i], other[i]
		if a.random.Uint64() != b.random.Uint64() {
			t.Fatalf("buyer %d is not as lucky again", i)
		}
		a.random, b.random, c.random = nil, nil, nil
		if a == b {
			same++
		}
		c.name = a.name
		if a != c {
			differ++
		}
		names[a.name] = true
		parties[a.party]++
		if a.ending != endPays {
			walks++
		}
		if a.signsIn {
			signIns++
		}
		if a.after != afterNothing {
			laters++
		}
		if a.card == cardDeclined {
			declined++
			if a.retry {
				retries++
			}
		}
	}
	near := func(what string, got, of int, want float64) {
		t.Helper()
		if share := float64(got) / float64(of); share < want-0.03 || share > want+0.03 {
			t.Errorf("%s: %.3f, want about %.2f", what, share, want)
		}
	}
	if same != count || differ < count/2 || len(names) != count {
		t.Errorf("%d the same, %d differ, %d names", same, differ, len(names))
	}
	near("twos", parties[2], count, 0.40)
	near("fours", parties[4], count, 0.24)
	near("who abandon", walks, count, 0.30)
	near("declined of those who pay", declined, count-walks, 0.09)
	near("who sign in", signIns, count, 0.03)
	near("who do something later", laters, count, 0.04)
	near("who try another card", retries, declined, 0.5)
}

func TestTheFewestBuyersShowEverything(t *testing.T) {
	for _, few := range []int{0, 5, len(roles(true)) - 1} {
		if _, err := cast(5, few, true); err == nil {
			t.Errorf("%d buyers are not too few", few)
		}
	}
	least, err := cast(5, len(roles(true)), true)
	if err != nil {
		t.Fatal(err)
	}
	seen, does := map[card]bool{}, map[after]int{}
	for _, b := range least {
		seen[b.card] = true
		does[b.after]++
	}
	for a := afterNothing; a < afterCount; a++ {
		if does[a] < 2 {
			t.Errorf("the first buyers show what is done later, %d, %d times", a, does[a])
		}
	}
	if len(seen) != len(tokens) {
		t.Errorf("the first buyers show %d of %d cards", len(seen), len(tokens))
	}
}

func TestKillsArePlanned(t *testing.T) {
	const early, let = 2000, 1000
	plan := func(seed uint64) []killing {
		s := &sale{Options: Options{Kills: 20, Seed: seed}}
		return s.planKills(early, let)
	}
	one, again, other := plan(1), plan(1), plan(2)
	if fmt.Sprint(one) != fmt.Sprint(again) || fmt.Sprint(one) == fmt.Sprint(other) {
		t.Error("the seed does not decide the kills")
	}
	joining, opening, selling := 0, 0, 0
	for i, k := range one {
		switch {
		case k.let > 0:
			selling++
		case k.join > early:
			opening++
		default:
			joining++
		}
		if k.join < early*killFrom || k.let > let*killTo || i > 0 && (k.join < one[i-1].join || k.let < one[i-1].let) || k.database {
			t.Errorf("kill %d: %+v", i, k)
		}
	}
	if joining != 4 || opening != 1 || selling != 15 {
		t.Errorf("%d kills while people join, %d when the doors open, %d in the sale", joining, opening, selling)
	}
}

// Nobody passes a turnstile beyond its bound, and whoever waits for a count is told.
func TestTurnstile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTurnstile()
		c.bound(2, 1)
		var passed, in atomic.Int64
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if c.joins(t.Context()) {
					passed.Add(1)
				}
				if c.enters(t.Context()) {
					in.Add(1)
				}
			})
		}
		reached := make(chan bool, 1)
		go func() { reached <- c.reached(t.Context(), 4, 3) }()
		synctest.Wait()
		if passed.Load() != 2 || in.Load() != 1 || len(reached) != 0 {
			t.Errorf("%d joined and %d came in, 2 and 1 may", passed.Load(), in.Load())
		}
		c.bound(4, 3)
		synctest.Wait()
		if passed.Load() != 4 || in.Load() != 3 || !<-reached {
			t.Errorf("%d joined and %d came in, 4 and 3 may", passed.Load(), in.Load())
		}
		c.open()
		all.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		c.bound(0, 0)
		if c.joins(ended) || !c.reached(t.Context(), 1<<40, 1<<40) {
			t.Error("an end is not noticed")
		}
	})
}

func TestHistogram(t *testing.T) {
	var h histogram
	if h.quantile(0.5) != 0 {
		t.Error("nothing has a median")
	}
	for ms := 1; ms <= 1000; ms++ {
		h.add(time.Duration(ms) * time.Millisecond)
	}
	h.add(time.Hour)
	h.add(0)
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{{0.5, 500 * time.Millisecond}, {0.99, 990 * time.Millisecond}} {
		if got := h.quantile(c.q); got < c.want*95/100 || got > c.want*110/100 {
			t.Errorf("quantile %v is %s, want %s", c.q, got, c.want)
		}
	}
}

// What is shown fits 80 columns, also with large figures, and a block is drawn over itself.
func TestScreenFits(t *testing.T) {
	s := &sale{figures: newFigures(), house: &house{plan: &venue.Plan{Seats: make([]venue.Seat, 200_000)}, places: 15_000}, line: newLine(nil, "evt")}
	q := published(1_000_000, 900_000)
	q.Inside, q.Rate = 12_000, 2_000
	s.line.latest.Store(q)
	s.joinedLine.Store(1_666_666)
	s.figures.counts[entries].Store(999_999)
	s.Buyers = 1_000_000
	for _, code := range []string{"seats_taken", "no_seats_found", "payment_declined", "places_taken", "payment_unavailable"} {
		for range 12_345 {
			s.figures.failed(code)
		}
	}
	p := progress{sale: s, seats: houseState{free: 100_000, held: 50_000, sold: 50_000, placesLeft: 14_000}, at: s.figures.now()}
	p.marks = []mark{{time.Second, 1000, time.Second}, {2 * time.Second, 123_456, 20 * time.Second}}
	var out bytes.Buffer
	c := newScreen(&out, true)
	c.draw(p.block())
	c.say("a kill")
	c.draw(append(p.block(), p.line()))
	text := out.String()
	if !strings.Contains(text, "\x1b[5A\x1b[Ja kill\n") {
		t.Errorf("the block stands in the way of what is said:\n%q", text)
	}
	for line := range strings.Lines(strings.ReplaceAll(text, "\x1b[5A\x1b[J", "")) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if bar := p.bar(); utf8.RuneCountInString(bar) != barColumns || strings.Count(bar, "█") != barColumns/4 || strings.Count(bar, "▒") != barColumns/4 {
		t.Errorf("the bar is %s", bar)
	}
	broken := newScreen(failing{}, false)
	broken.say("nobody hears this")
	if broken.err == nil {
		t.Error("an output that fails is not noticed")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
