package demo

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/draw"
)

// How the line is looked at.
const (
	originEvery = time.Second            // the CDN asks the server for the status this often, whoever asks the CDN
	lineTick    = 100 * time.Millisecond // whose poll is due is looked at this often
	pollJitter  = 0.2                    // of an interval, by which a client's poll may be earlier or later
	pollFirst   = 2 * time.Second        // before anything is known
)

// A queueStatus is the public status of a line, as far as the page of somebody who waits needs it.
type queueStatus struct {
	Phase string `json:"phase"`
	Draw  struct {
		State      string `json:"state"`
		Commitment string `json:"commitment"`
		N          int64  `json:"n"`
		ListHash   string `json:"list_hash"`
		Value      string `json:"value"`
		K          string `json:"k"`
	} `json:"draw"`
	Lanes []struct {
		Key       string `json:"key"`
		N         int64  `json:"n"`
		Joined    int64  `json:"joined"`
		Watermark int64  `json:"watermark"`
	} `json:"lanes"`
	Rate   int        `json:"rate_per_s"`
	Inside int        `json:"inside"`
	Poll   [][2]int64 `json:"poll"` // from this distance on, so many seconds
}

// over says that nobody is called any more.
func (q *queueStatus) over() bool {
	return q.Phase == "sold_out" || q.Phase == "ended"
}

// A place is a number in a lane, as a queue ticket says it.
type place struct {
	queue  string // the queue ticket
	lane   string
	number int64
	drawn  bool
}

// A line is the waiting room as people outside see it, through a simulated CDN: whoever polls gets the status that the CDN has,
// which is up to a second old, and works out their own position from it as a page does in a browser.
type line struct {
	client  *client
	path    string
	latest  atomic.Pointer[queueStatus]
	fetched atomic.Int64 // by the CDN
	polls   atomic.Int64 // of people
	called  atomic.Int64 // people who saw that it is their turn

	mu      sync.Mutex
	orders  map[string]*draw.Order // by lane, once the draw is public
	marks   map[string]int64       // the greatest watermark seen of each lane
	waiting []*waiter
	back    []string // what was seen to go back
}

// A waiter is somebody who polls.
type waiter struct {
	place  place
	next   time.Time
	random *rand.Rand
	turn   func(called bool) // once: it is their turn, or will never be
}

func newLine(c *client, event string) *line {
	return &line{client: c, path: "/v1/events/" + event + "/queue", marks: map[string]int64{}}
}

// wait lets somebody poll until it is their turn.
func (l *line) wait(w *waiter) {
	w.next = time.Now().Add(time.Duration(w.random.Float64() * float64(pollFirst)))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, w)
}

// length is how many wait.
func (l *line) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// watch is the CDN, and the clock by which people poll, until ctx ends.
func (l *line) watch(ctx context.Context) {
	var asked time.Time
	for sleep(ctx, lineTick) {
		if time.Since(asked) >= originEvery {
			asked = time.Now()
			if err := l.fetch(ctx); err != nil && ctx.Err() == nil {
				l.client.figures.failed("no_status") // the old one stays, as it would at a CDN
			}
		}
		l.poll(time.Now())
	}
	l.sendHome()
}

// fetch asks the server for the status.
func (l *line) fetch(ctx context.Context) error {
	a, _, err := l.client.try(ctx, call{name: "queue status", method: http.MethodGet, path: l.path}, nil)
	if err != nil {
		return err
	}
	l.fetched.Add(1)
	if a.status != http.StatusOK {
		return fmt.Errorf("status %d, %s", a.status, a.problem.Code)
	}
	q := &queueStatus{}
	if err := json.Unmarshal(a.body, q); err != nil {
		return err
	}
	l.take(q)
	return nil
}

// take makes a status the one that people see, and notes what cannot be.
func (l *line) take(q *queueStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range q.Lanes {
		lane := &q.Lanes[i]
		if before := l.marks[lane.Key]; lane.Watermark < before {
			l.back = append(l.back, fmt.Sprintf("the watermark of lane %s was shown as %d after %d", lane.Key, lane.Watermark, before))
		}
		l.marks[lane.Key] = max(l.marks[lane.Key], lane.Watermark)
	}
	if l.orders == nil {
		var err error
		if l.orders, err = q.orders(); err != nil {
			l.back = append(l.back, err.Error())
		}
	}
	l.latest.Store(q)
}

// orders are the permutations of the lanes, nil before they are public.
func (q *queueStatus) orders() (map[string]*draw.Order, error) {
	if q.Draw.K == "" {
		return nil, nil
	}
	k, err := key32(q.Draw.K)
	list, err2 := key32(q.Draw.ListHash)
	if err = errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("what is published of the draw: %w", err)
	}
	if draw.Commitment(k) != q.Draw.Commitment {
		return nil, errors.New("the K that is published is not what was committed to")
	}
	total := int64(0)
	for i := range q.Lanes {
		total += q.Lanes[i].N
	}
	if total != q.Draw.N {
		return nil, fmt.Errorf("%d numbers of lanes are drawn, and %d in all", total, q.Draw.N)
	}
	seed := draw.Seed(k, q.Draw.Value, total, list)
	orders := map[string]*draw.Order{}
	for i := range q.Lanes {
		orders[q.Lanes[i].Key] = draw.NewOrder(draw.LaneKey(seed, q.Lanes[i].Key), q.Lanes[i].N)
	}
	return orders, nil
}

func key32(text string) (key [32]byte, err error) {
	b, err := hex.DecodeString(text)
	if err == nil && len(b) != len(key) {
		err = fmt.Errorf("%d bytes instead of %d", len(b), len(key))
	}
	copy(key[:], b)
	return key, err
}

// position is where a number stands in its lane; false before the draw. l.mu is held.
func (l *line) position(p place) (int64, bool) {
	switch order := l.orders[p.lane]; {
	case !p.drawn:
		return p.number, true
	case order == nil:
		return 0, false
	default:
		return order.Position(p.number), true
	}
}

// standing is what a page works out for itself.
func (l *line) standing(p place) (position int64, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.position(p)
}

// mayGo says whether a place was shown as called.
func (l *line) mayGo(p place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	position, known := l.position(p)
	return known && position < l.marks[p.lane]
}

// poll lets those poll whose time it is, and tells those whose turn it is.
func (l *line) poll(now time.Time) {
	q := l.latest.Load()
	if q == nil {
		return
	}
	var called, gone []*waiter
	l.mu.Lock()
	kept := l.waiting[:0]
	for _, w := range l.waiting {
		if w.next.After(now) {
			kept = append(kept, w)
			continue
		}
		l.polls.Add(1)
		position, known := l.position(w.place)
		ahead := position - l.marks[w.place.lane]
		switch {
		case q.Phase == "open" && known && ahead < 0:
			called = append(called, w)
		case q.over():
			gone = append(gone, w)
		default:
			w.next = now.Add(q.pause(ahead, known, w.random))
			kept = append(kept, w)
		}
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
	l.mu.Unlock()
	l.called.Add(int64(len(called)))
	for _, w := range called {
		w.turn(true)
	}
	for _, w := range gone {
		w.turn(false)
	}
}

// pause is when to poll again, by how far away one's turn is.
func (q *queueStatus) pause(ahead int64, known bool, random *rand.Rand) time.Duration {
	pause := pollFirst
	far := int64(-1)
	for _, step := range q.Poll {
		if known && ahead >= step[0] && step[0] > far {
			far, pause = step[0], time.Duration(step[1])*time.Second
		}
	}
	return time.Duration(float64(pause) * (1 - pollJitter + 2*pollJitter*random.Float64()))
}

// sendHome tells everybody who still waits that it is over, and answers how many that were.
func (l *line) sendHome() int {
	l.mu.Lock()
	rest := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	for _, w := range rest {
		w.turn(false)
	}
	return len(rest)
}
