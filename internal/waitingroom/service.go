package waitingroom

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/cache"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A Service is one node's waiting rooms. Its methods may be called from many goroutines at once. Run does its work in the
// background; every node of an installation runs one, and they need not know of each other.
type Service struct {
	o        Options
	halls    halls
	sealer   sealer
	admitter *admitter
	sessions *cache.Cache[id.ID, ledger.Session]
	calls    *cache.Cache[id.ID, map[string][]CallPoint]
	appender *appender
	hub      *hub
	counters counters

	looked atomic.Bool     // Run has read all events
	ahead  atomic.Int64    // the shard's clock minus ours, nanoseconds
	life   context.Context // until Close
	end    context.CancelFunc
	mu     sync.Mutex // of parts and shut
	parts  sync.WaitGroup
	shut   bool
}

type counters struct {
	joins, joinsNew, joinsBusy, claims, entered, recoveries atomic.Int64
}

// New makes a service. Close ends it; store, log and ledger stay the caller's.
func New(o Options) (*Service, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	s := &Service{o: o, sealer: sealer{keys: o.Keys}, hub: newHub(o.SubscribersMax)}
	s.life, s.end = context.WithCancel(context.Background())
	s.admitter = newAdmitter(o.Keys, o.Issuer, o.Leeway, func() time.Time { return s.shardNow().Std() })
	s.sessions = cache.New[id.ID, ledger.Session](cache.Options{
		CountMax: SessionsCached, FreshFor: SessionFresh, Now: o.Now, RetryAfter: SessionFresh,
		UseOld: func(err error) bool { return !errors.Is(err, ledger.ErrNotFound) }, // the ledger is away: whom we know goes on
	})
	s.calls = cache.New[id.ID, map[string][]CallPoint](cache.Options{CountMax: RoomsMax, FreshFor: time.Second, Now: o.Now})
	s.appender = newAppender(o.Log, o.JoinQueueMax)
	s.background(s.appender.run)
	return s, nil
}

// Close ends the streams and the background parts. Joins that wait are answered busy.
func (s *Service) Close() {
	s.mu.Lock()
	s.shut = true
	s.mu.Unlock()
	s.hub.shut()
	s.end()
	s.parts.Wait()
}

// background runs a part that Close ends and waits for. false: the service is closing, it does not run.
func (s *Service) background(part func(context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return false
	}
	s.parts.Go(func() { part(s.life) })
	return true
}

// shardNow is the shard's clock, as far as we know it.
func (s *Service) shardNow() ledger.Time {
	return ledger.TimeOf(s.o.Now().Add(time.Duration(s.ahead.Load())))
}

// A JoinRequest asks for a number. Whoever sends it has looked at codes, proofs and blocks before.
type JoinRequest struct {
	Event    id.ID
	Customer id.ID
	Lane     string   // its key; "": "general", else the last lane
	Identity Identity // of a verified document; zero: none
}

// A Place is a customer's place in a line.
type Place struct {
	// QueueID is the queue ticket: signed, good for asking for the position and, for its customer alone, for claiming. It
	// identifies nobody, and may stand in a URL (E4).
	QueueID string
	Lane    string
	Number  int64
	Drawn   bool   // the number means nothing before the draw; else it is the position
	Entry   string // hex: the customer's line in the published list
	New     bool   // taken by this call
}

// A Standing is how a queue ticket stands, computed from memory alone.
type Standing struct {
	Event    id.ID
	Customer id.ID
	Lane     string
	Number   int64
	Drawn    bool
	Known    bool  // Position is: the draw has been, or the number is not drawn
	Position int64 // 0 is the first of the lane
	Ahead    int64 // people of the lane who are not called yet and go before: 0 when called
	Called   bool
	TurnMS   int64 // of the turn that is left, on the room's clock; 0: over, claim all the same: late ones go where there is room
	Outlook  Outlook
	Poll     time.Duration // when to ask again
}

// An Outlook is what somebody who waits can hope for (C11).
type Outlook string

// The outlooks.
const (
	OutlookUnknown  Outlook = "unknown"  // the draw has not been, or what is left is not known
	OutlookLikely   Outlook = "likely"   // at least 90 %
	OutlookPossible Outlook = "possible" // at least 20 %
	OutlookUnlikely Outlook = "unlikely"
	OutlookSoldOut  Outlook = "sold_out"
)

// An Admission is the right to hold seats for a while.
type Admission struct {
	Token   string // for the header X-Admission-Token
	Session id.ID
	Expires ledger.Time // of the session; it is prolonged by holds, and the token by claiming again
}

// A StatusPage is the public status of an event as JSON, with its entity tag (quoted). Neither may be changed.
type StatusPage struct {
	JSON []byte
	ETag string

	same  []byte // the JSON without the time
	built time.Time
}

// A CallPoint is how far a lane was called at the end of a second: JSON.
type CallPoint struct {
	At        int64 `json:"at"` // Unix seconds
	Watermark int64 `json:"watermark"`
}

// Stats are counts since the start, and how things stand.
type Stats struct {
	Joins        int64 // answered with a number
	JoinsNew     int64 // of them new ones
	JoinsBusy    int64 // refused as busy
	JoinBatches  int64 // appends to the log
	Claims       int64
	Entered      int64
	Recoveries   int64 // times that the store was mended
	Rooms        int   // in memory
	Subscribers  int
	SlowDropped  int64
	JoinsWaiting int // for the log
}

// Stats are the figures so far.
func (s *Service) Stats() Stats {
	c := &s.counters
	batches, waiting := s.appender.stats()
	subscribers, slow := s.hub.stats()
	return Stats{
		Joins: c.joins.Load(), JoinsNew: c.joinsNew.Load(), JoinsBusy: c.joinsBusy.Load(), JoinBatches: batches, JoinsWaiting: waiting,
		Claims: c.claims.Load(), Entered: c.entered.Load(), Recoveries: c.recoveries.Load(),
		Rooms: len(s.halls.list()), Subscribers: subscribers, SlowDropped: slow,
	}
}

// A RoomView is how a room stands, for people who run the sale and for metrics.
type RoomView struct {
	Event   ledger.Event
	Room    ledger.Room
	Figures ledger.RoomFigures
	Joined  []Count
	Left    Left
	Known   bool // Left is
	Mending bool // the store is being restored: no joins meanwhile
}

// View is how an event's room stands, from memory.
//
// Faults: event_unknown; conflict (no waiting room).
func (s *Service) View(ctx context.Context, event id.ID) (RoomView, error) {
	h, err := s.hall(ctx, event)
	if err != nil {
		return RoomView{}, err
	}
	if h.picture.Load().rule.Room.Mode == ledger.RoomOff {
		return RoomView{}, errNoRoom
	}
	return s.view(h), nil
}

var errNoRoom = fault.New(fault.Conflict, "the event has no waiting room")

func (s *Service) view(h *hall) RoomView {
	p := h.picture.Load()
	v := RoomView{Event: p.rule, Room: p.room}
	if f := h.figures.Load(); f != nil {
		v.Figures = *f
	}
	v.Left, v.Known = s.left(h.event)
	h.mu.Lock()
	defer h.mu.Unlock()
	v.Mending = h.state != storeGood
	for i := range h.lanes {
		v.Joined = append(v.Joined, Count{Lane: i, Count: h.joined(p, i)})
	}
	return v
}

// Views are all rooms in memory that are not off, by event.
func (s *Service) Views() []RoomView {
	var views []RoomView
	for _, h := range s.halls.list() {
		if h.picture.Load().rule.Room.Mode != ledger.RoomOff {
			views = append(views, s.view(h))
		}
	}
	slices.SortFunc(views, func(a, b RoomView) int { return cmp.Compare(a.Event.ID, b.Event.ID) })
	return views
}

func (s *Service) left(event id.ID) (Left, bool) {
	if s.o.Left == nil {
		return Left{}, false
	}
	return s.o.Left(event)
}
