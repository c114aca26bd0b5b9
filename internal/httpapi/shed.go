package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/fault"
	"onsale/internal/guard"
)

// Bounds of load shedding (I13).
const (
	shedWait    = 100 * time.Millisecond // for a place; then 503
	shedBack    = time.Second            // earliest that a shed one is to come again; up to twice as much later, so that not all do at once
	bodyTimeMax = 5 * time.Second        // for a body to arrive
	smallBody   = 4 << 10                // bytes: what customers send is smaller
	largeBodies = 1_024                  // larger ones in memory that are not whole yet; 64 MiB of them
)

// ShedSettings are how many requests may be under way at once, and as many again may wait for a moment; 0 is no bound.
type ShedSettings struct {
	Sale   int // holds and bookings
	Queue  int // joins and claims
	Browse int // everything else of people who buy
	Staff  int // of organizers' people
}

// DefaultShed leaves the ledger's queue and the talks with the provider as what bounds holds and bookings.
func DefaultShed() ShedSettings {
	return ShedSettings{Sale: 8_192, Queue: 4_096, Browse: 2_048, Staff: 512}
}

// A Shed bounds how many requests are under way. Each class has places of its own, so that a flood of one takes none from
// the others; and while more than half of the places for holds and bookings are taken, browsing has a quarter of its own:
// who is about to pay goes before who looks.
//
// Who finds no place waits shedWait at most and is then told to come back. Streams have bounds of their own; whether the
// program runs and what providers tell us are never shed.
type Shed struct {
	sale, queue, browse, staff places
	large                      atomic.Int64
	shed                       atomic.Int64

	bodyTime time.Duration // bodyTimeMax; tests have less of it
	ungather bool          // tests show what happens where bodies are not gathered first
}

// NewShed makes one.
func NewShed(s ShedSettings) *Shed {
	h := &Shed{bodyTime: bodyTimeMax}
	h.sale.max, h.queue.max, h.browse.max, h.staff.max = s.Sale, s.Queue, s.Browse, s.Staff
	h.browse.fewer = func() bool { return h.sale.pressed() }
	return h
}

// Count is how many requests were shed since the start.
func (h *Shed) Count() int64 { return h.shed.Load() }

// Load is how much of the places for buying and waiting is taken, 0–1.
func (h *Shed) Load() float64 { return max(h.sale.load(), h.queue.load()) }

func (h *Shed) places(c guard.Class) *places {
	switch c {
	case guard.Free:
		return nil
	case guard.Sale:
		return &h.sale
	case guard.Queue:
		return &h.queue
	case guard.Staff:
		return &h.staff
	}
	return &h.browse
}

// enter takes a place for a request. Fault: busy.
func (h *Shed) enter(ctx context.Context, c guard.Class) (leave func(), err error) {
	p := h.places(c)
	if p == nil || p.max == 0 {
		return func() {}, nil
	}
	if !p.enter(ctx) {
		h.shed.Add(1)
		return func() {}, &fault.Error{Code: fault.Busy, RetryAfter: shedBack + rand.N(shedBack)}
	}
	return p.leave, nil
}

// places are those of one class, given in the order in which they are asked for.
type places struct {
	max   int
	fewer func() bool // there is only a quarter of them now; may be nil

	mu      sync.Mutex
	taken   int
	waiting []*waiter
}

type waiter struct {
	given chan struct{}
	has   bool
}

// now is how many there are now.
func (p *places) now() int {
	if p.fewer != nil && p.fewer() {
		return max(1, p.max/4)
	}
	return p.max
}

func (p *places) pressed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.max > 0 && 2*p.taken > p.max
}

func (p *places) load() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.max == 0 {
		return 0
	}
	return min(1, float64(p.taken+len(p.waiting))/float64(p.max))
}

func (p *places) enter(ctx context.Context) bool {
	most := p.now()
	p.mu.Lock()
	if p.taken < most && len(p.waiting) == 0 {
		p.taken++
		p.mu.Unlock()
		return true
	}
	if len(p.waiting) >= p.max {
		p.mu.Unlock()
		return false
	}
	w := &waiter{given: make(chan struct{})}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	patience := time.NewTimer(shedWait)
	defer patience.Stop()
	select {
	case <-w.given:
		return true
	case <-patience.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.waiting {
		if other == w {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			break
		}
	}
	return w.has // it was given at the last moment
}

func (p *places) leave() {
	most := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	for len(p.waiting) > 0 && p.taken < most {
		w := p.waiting[0]
		p.waiting = p.waiting[1:]
		w.has = true
		close(w.given)
		p.taken++
	}
}

// enter gathers the body, so that a client who sends slowly holds a connection and no place, and takes a place.
func (a *api) enter(rt *route, w http.ResponseWriter, r *request) (leave func(), err error) {
	if a.Shed == nil || rt.Takes == untilClosed {
		return func() {}, nil
	}
	if rt.Body != nil && r.Body != nil && r.Body != http.NoBody && !a.Shed.ungather {
		if err := a.Shed.gather(w, r); err != nil {
			return func() {}, err
		}
	}
	return a.Shed.enter(r.Context(), rt.class())
}

// gather reads the body within bodyTimeMax: after it the connection is closed, without an answer. What else is wrong with the
// body is told when the route reads it: who may not ask at all is told that first.
func (h *Shed) gather(w http.ResponseWriter, r *request) error {
	control := http.NewResponseController(w)
	timed := control.SetReadDeadline(time.Now().Add(h.bodyTime)) == nil // a test's writer knows no deadlines
	from := http.MaxBytesReader(bare(w), r.Body, BodyBytesMax)
	body, err := io.ReadAll(io.LimitReader(from, smallBody))
	if err == nil && len(body) == smallBody {
		if h.large.Add(1) > largeBodies {
			h.large.Add(-1)
			h.shed.Add(1)
			return &fault.Error{Code: fault.Busy, RetryAfter: shedBack + rand.N(shedBack)}
		}
		var rest []byte
		rest, err = io.ReadAll(from)
		h.large.Add(-1)
		body = append(body, rest...)
	}
	if timed && err == nil { // the next request has deadlines of its own; this one's handler may take longer than its body
		_ = control.SetReadDeadline(time.Time{})
	}
	late := errors.As(err, new(interface{ Timeout() bool }))
	r.Body = &gathered{Reader: bytes.NewReader(body), err: err}
	if late {
		return &fault.Error{Code: fault.BadRequest, Detail: "the body did not arrive in time", Cause: err}
	}
	return nil
}

// gathered is a body that was read before, with the error that came behind it.
type gathered struct {
	*bytes.Reader
	err error
}

func (g *gathered) Read(b []byte) (int, error) {
	n, err := g.Reader.Read(b)
	if err == io.EOF && g.err != nil {
		err = g.err
	}
	return n, err
}

func (g *gathered) Close() error { return nil }

// WriteTo would tell nothing of err.
func (g *gathered) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{g})
}
