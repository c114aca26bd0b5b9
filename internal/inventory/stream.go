package inventory

import (
	"strconv"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// A Subscription is one client's seat stream: frames of server-sent events, to be written as they are.
//
//	event: seats     id: the version; data: a Delta since an earlier version, which the client has or has passed
//	event: version   data: {"version":n}, as heartbeat (B2): a client that has a smaller one for long has lost a tail
//	event: reset     data: {"version":n}: the difference is not known any more, take a snapshot
//
// A client at version v takes over a seats frame with since <= v < version, ignores one with version <= v, and takes a
// snapshot where since > v.
type Subscription struct {
	hub    *hub
	event  id.ID
	frames chan []byte
	ended  bool // frames is closed; guarded by hub.mu
	slow   bool
}

// Frames are what to send. The channel is closed when the subscription ends: the client comes back with its
// Last-Event-ID.
func (s *Subscription) Frames() <-chan []byte { return s.frames }

// Slow says, once Frames is closed, that it was because the client did not keep up (B3).
func (s *Subscription) Slow() bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.slow
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.end(s)
}

// A hub gathers the changes of every event and encodes them once for all who listen.
type hub struct {
	max int

	mu       sync.Mutex
	channels map[id.ID]*channel
	count    int
	dropped  int64
	closed   bool // for good: a client whose stream has ended comes back at once, and must find another node
}

// A channel is one event's listeners. All frames up to version sent were given to all of them.
type channel struct {
	board     *Board
	sent      int64
	listeners map[*Subscription]struct{}
}

func newHub(max int) *hub { return &hub{max: max, channels: map[id.ID]*channel{}} }

func (h *hub) open(b *Board) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.channels[b.event] = &channel{board: b, sent: b.Version(), listeners: map[*Subscription]struct{}{}}
}

// close ends an event's subscriptions and takes no new ones.
func (h *hub) close(event id.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.channels[event]; c != nil {
		for s := range c.listeners {
			h.end(s)
		}
		delete(h.channels, event)
	}
}

// shut ends every subscription and takes no new ones.
func (h *hub) shut() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.endAll()
}

// endAll ends every subscription.
func (h *hub) endAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.channels {
		for s := range c.listeners {
			h.end(s)
		}
	}
}

func (h *hub) end(s *Subscription) {
	if s.ended {
		return
	}
	s.ended = true
	close(s.frames)
	h.count--
	if c := h.channels[s.event]; c != nil {
		delete(c.listeners, s)
	}
}

// subscribe begins with what has changed since a version; since < 0 begins now.
func (h *hub) subscribe(event id.ID, since int64, retry time.Duration) (*Subscription, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[event]
	if c == nil {
		return nil, &fault.Error{Code: fault.EventUnknown}
	}
	if h.closed || h.count >= h.max {
		return nil, &fault.Error{Code: fault.Busy, RetryAfter: retry}
	}
	s := &Subscription{hub: h, event: event, frames: make(chan []byte, FramesMax)}
	if len(c.listeners) == 0 {
		c.sent = c.board.Version() // nobody listened: nothing was missed
	}
	first := versionFrame(c.board.Version())
	if since >= 0 {
		if d, ok := c.board.Delta(since); !ok {
			first = resetFrame(d.Version)
		} else if d.Version > since {
			first = seatsFrame(&d)
		}
	}
	s.frames <- first
	c.listeners[s] = struct{}{}
	h.count++
	return s, nil
}

// flush sends what has changed since the last time, encoded once an event.
func (h *hub) flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.channels {
		if len(c.listeners) == 0 || c.board.Version() == c.sent {
			continue
		}
		d, ok := c.board.Delta(c.sent)
		frame := seatsFrame(&d)
		if !ok {
			frame = resetFrame(d.Version)
		}
		c.sent = d.Version
		h.send(c, frame)
	}
}

// beat sends every event's version.
func (h *hub) beat() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.channels {
		if len(c.listeners) > 0 {
			h.send(c, versionFrame(c.sent))
		}
	}
}

func (h *hub) send(c *channel, frame []byte) {
	for s := range c.listeners {
		select {
		case s.frames <- frame:
		default: // it does not keep up, and holds nobody else back
			s.slow = true
			h.dropped++
			h.end(s)
		}
	}
}

func (h *hub) figures() (subscribers int, dropped int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count, h.dropped
}

func seatsFrame(d *Delta) []byte {
	f := strconv.AppendInt([]byte("event: seats\nid: "), d.Version, 10)
	f = append(append(f, "\ndata: "...), d.JSON()...)
	return append(f, "\n\n"...)
}

// The frames without id leave the client's Last-Event-ID at what it really has.

func versionFrame(version int64) []byte { return bareFrame("version", version) }

func resetFrame(version int64) []byte { return bareFrame("reset", version) }

func bareFrame(name string, version int64) []byte {
	f := append(append([]byte("event: "), name...), "\ndata: {\"version\":"...)
	return append(strconv.AppendInt(f, version, 10), "}\n\n"...)
}
