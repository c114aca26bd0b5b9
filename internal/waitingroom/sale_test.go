package waitingroom_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/sqlite"
)

// A rush is what people do once the room is open: they watch the status, and claim when they are called, or never do.
type rush struct {
	w       *world
	nodes   []*node
	random  *rand.Rand
	noShow  float64
	stay    time.Duration
	waiting map[int64]*fan // by position, not called yet
	claims  []claim
	leaving []leaving
	entered map[int64]int  // entries by second
	seen    map[int64]bool // positions that entered
	mark    int64
	orders  []int64 // positions in the order of entering
	inside  int
	most    int // inside at once
}

type claim struct {
	at  time.Time
	fan *fan
	pos int64
}

type leaving struct {
	at      time.Time
	session id.ID
	fan     *fan
}

func newRush(w *world, nodes []*node, fans []*fan) *rush {
	r := &rush{w: w, nodes: nodes, random: rand.New(rand.NewPCG(1, 9)), noShow: 0.4, stay: 2 * time.Second,
		waiting: map[int64]*fan{}, entered: map[int64]int{}, seen: map[int64]bool{}}
	r.come(fans...)
	return r
}

// come adds people, whose positions must be known.
func (r *rush) come(fans ...*fan) {
	for _, f := range fans {
		st, err := r.nodes[0].Place(f.place.QueueID)
		if err != nil || !st.Known {
			r.w.t.Fatalf("%+v, %v", st, err)
		}
		if r.waiting[st.Position] != nil {
			r.w.t.Fatalf("position %d is taken twice", st.Position)
		}
		r.waiting[st.Position] = f
	}
}

// run plays for a time, in steps of 50 ms.
func (r *rush) run(lasts time.Duration) {
	r.w.t.Helper()
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		r.step()
	}
}

func (r *rush) node() *node { return r.nodes[r.random.IntN(len(r.nodes))] }

func (r *rush) step() {
	view, err := r.nodes[0].View(context.Background(), r.w.event)
	if err != nil {
		r.w.t.Fatal(err)
	}
	if mark := view.Room.Lanes[0].Watermark; mark < r.mark {
		r.w.t.Fatalf("I10: the watermark went back from %d to %d", r.mark, mark)
	}
	for ; r.mark < view.Room.Lanes[0].Watermark; r.mark++ {
		f := r.waiting[r.mark]
		delete(r.waiting, r.mark)
		if f != nil && r.random.Float64() >= r.noShow {
			after := time.Duration(r.random.ExpFloat64() * float64(500*time.Millisecond))
			r.claims = append(r.claims, claim{time.Now().Add(min(after, 5*time.Second)), f, r.mark})
		}
	}
	later := r.claims[:0]
	for _, c := range r.claims {
		if c.at.After(time.Now()) || !r.claim(&c) {
			later = append(later, c)
		}
	}
	r.claims = later
	still := r.leaving[:0]
	for _, l := range r.leaving {
		if l.at.After(time.Now()) {
			still = append(still, l)
			continue
		}
		if err := r.node().Leave(context.Background(), l.session, l.fan.customer); err != nil {
			r.w.t.Fatal(err)
		}
		r.inside--
	}
	r.leaving = still
}

// claim says whether it is done with.
func (r *rush) claim(c *claim) bool {
	a, err := r.node().Claim(context.Background(), c.fan.place.QueueID, c.fan.customer)
	switch fault.CodeOf(err) {
	case "":
	case fault.NextIn, fault.Busy:
		c.at = time.Now().Add(fault.Of(err).RetryAfter)
		return false
	case fault.Paused:
		c.at = time.Now().Add(time.Second)
		return false
	default:
		r.w.t.Fatalf("claim of %d: %v", c.pos, err)
	}
	if r.seen[c.pos] {
		r.w.t.Fatalf("position %d entered twice", c.pos)
	}
	r.seen[c.pos] = true
	r.orders = append(r.orders, c.pos)
	r.inside++
	r.most = max(r.most, r.inside)
	r.leaving = append(r.leaving, leaving{time.Now().Add(r.stay), a.Session, c.fan})
	return true
}

// sessions reads who entered from the ledger, and counts by second.
func (r *rush) sessions() {
	r.w.t.Helper()
	clear(r.entered)
	var after id.ID
	for {
		page, err := r.w.shard.Sessions(context.Background(), r.w.event, after, 1000)
		if err != nil {
			r.w.t.Fatal(err)
		}
		for _, s := range page {
			r.entered[int64(s.Entered)/1000]++
			after = s.ID
		}
		if len(page) < 1000 {
			return
		}
	}
}

// busyShare is how much of R entered from one instant to another, whole seconds; it fails where R was exceeded in any.
func (r *rush) busyShare(from, to ledger.Time, rate int) float64 {
	r.w.t.Helper()
	r.sessions()
	sum, seconds := 0, int64(to)/1000-int64(from)/1000
	for second, n := range r.entered {
		if n > rate {
			r.w.t.Errorf("C7: %d people entered in one second; R is %d", n, rate)
		}
		if second >= int64(from)/1000 && second < int64(to)/1000 {
			sum += n
		}
	}
	return float64(sum) / float64(seconds*int64(rate))
}

// With R = 200/s, a stay of 2 s, 20,000 inside at most, turns of 10 s and 40 % who never come: at least 95 % of R enters over a
// minute, and never more than R in any second. In front of the model, and of the real thing.
func TestRateIsKeptBusy(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, dir string) ledger.Ledger{
		"model": func(*testing.T, string) ledger.Ledger { return ledger.NewModel(now) },
		"sqlite": func(t *testing.T, dir string) ledger.Ledger {
			l, err := sqlite.Open(context.Background(), filepath.Join(dir, "shard.db"), sqlite.Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, open(t, dir), nil)
				n := w.node(nil)
				// The first seconds are those in which nobody has had the time to come. In the short form also those before
				// it is known how many come.
				after, lasts := 3*time.Second, 60*time.Second
				if testing.Short() {
					after, lasts = 14*time.Second, 15*time.Second
				}
				fans := w.joinAll(n, int((after+lasts).Seconds()+5)*rateOfTest*10/6, "")
				w.open()
				r := newRush(w, []*node{n}, fans)
				start := now()
				r.run(after + lasts)
				from := start + ledger.Time(after.Milliseconds())
				share := r.busyShare(from, from+ledger.Time(lasts.Milliseconds()), rateOfTest)
				t.Logf("%.1f %% of R entered in %v; %d were called for %d who came; %d inside at most", 100*share, lasts, r.mark, len(r.orders), r.most)
				if share < 0.95 {
					t.Errorf("only %.1f %% of R entered", 100*share)
				}
			})
		})
	}
}
