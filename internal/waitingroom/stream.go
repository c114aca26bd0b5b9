package waitingroom

import (
	"context"
	"fmt"
	"sync"
	"time"

	"onsale/internal/id"
)

// A Subscription is one client's stream of server-sent events, to be written as they are.
//
//	event: status   data: the public status, whenever it has changed (at most every StatusEvery), and every streamAlive
//	event: turn     data: {"called":true,"position":…,"turn_ms":…}, once, when the ticket's turn comes
type Subscription struct {
	hub    *hub
	event  id.ID
	ticket *queueTicket // nil: the status alone
	frames chan []byte
	told   bool // of its turn
	ended  bool // frames is closed; guarded by hub.mu
	slow   bool
}

// Frames are what to send. The channel is closed when the subscription ends: the client comes back.
func (s *Subscription) Frames() <-chan []byte { return s.frames }

// Slow says, once Frames is closed, that it was because the client did not keep up.
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

// streamAlive is how often a stream says something though nothing has changed, so that a dead connection is noticed.
const streamAlive = 10 * time.Second

// A hub tells all streams of an event what has changed, encoded once.
type hub struct {
	max int

	mu     sync.Mutex
	events map[id.ID]*channel
	count  int
	slow   int64
	closed bool // for good: a client whose stream has ended finds another node
}

type channel struct {
	told      time.Time
	listeners map[*Subscription]struct{}
}

func newHub(max int) *hub { return &hub{max: max, events: map[id.ID]*channel{}} }

func (h *hub) stats() (count int, slow int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count, h.slow
}

func (h *hub) shut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, c := range h.events {
		for s := range c.listeners {
			h.end(s)
		}
	}
}

// end is called under mu.
func (h *hub) end(s *Subscription) {
	if s.ended {
		return
	}
	s.ended = true
	close(s.frames)
	h.count--
	c := h.events[s.event]
	delete(c.listeners, s)
	if len(c.listeners) == 0 {
		delete(h.events, s.event)
	}
}

// Subscribe begins a stream of an event's status; with a queue ticket also of its turn. It begins with the present status.
//
// Faults: those of Status; queue_unknown (no ticket of ours, or of another event); busy (SubscribersMax).
func (s *Service) Subscribe(ctx context.Context, event id.ID, queueID string) (*Subscription, error) {
	page, err := s.Status(ctx, event)
	if err != nil {
		return nil, err
	}
	sub := &Subscription{hub: s.hub, event: event, frames: make(chan []byte, FramesMax)}
	if queueID != "" {
		t, err := s.sealer.read(ctx, queueID)
		if err != nil || t.event != event {
			return nil, errQueueUnknown
		}
		sub.ticket = &t
	}
	sub.frames <- statusFrame(page)
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.count >= h.max {
		return nil, busy("too many streams")
	}
	c := h.events[event]
	if c == nil {
		c = &channel{told: s.o.Now(), listeners: map[*Subscription]struct{}{}}
		h.events[event] = c
	}
	c.listeners[sub] = struct{}{}
	h.count++
	if hall := s.halls.get(event); hall != nil {
		h.tellTurn(hall, sub)
	}
	return sub, nil
}

func statusFrame(page *StatusPage) []byte {
	return fmt.Appendf(nil, "event: status\ndata: %s\n\n", page.JSON)
}

// publish tells an event's streams of its status, where it has changed or nothing was said for long, and whom it concerns of
// their turn.
func (h *hub) publish(of *hall, p *picture, page *StatusPage, changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.events[of.event]
	if c == nil {
		return
	}
	var frame []byte
	if changed || page.built.Sub(c.told) >= streamAlive {
		frame = statusFrame(page)
		c.told = page.built
	}
	for s := range c.listeners {
		if frame != nil {
			h.send(s, frame)
		}
		h.tellTurn(of, s)
	}
}

// tellTurn says once that a ticket is called. It is called under mu.
func (h *hub) tellTurn(of *hall, s *Subscription) {
	if s.ended || s.told || s.ticket == nil {
		return
	}
	st := of.standing(s.ticket)
	if !st.Called {
		return
	}
	s.told = true
	h.send(s, fmt.Appendf(nil, "event: turn\ndata: {\"called\":true,\"position\":%d,\"turn_ms\":%d}\n\n", st.Position, st.TurnMS))
}

// send drops a client that does not keep up: it comes back to the present status. It is called under mu.
func (h *hub) send(s *Subscription, frame []byte) {
	if s.ended {
		return
	}
	select {
	case s.frames <- frame:
	default:
		s.slow = true
		h.slow++
		h.end(s)
	}
}
