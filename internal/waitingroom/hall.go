package waitingroom

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/draw"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A hall is what a node has in memory of one event: a picture of what the ledger says, the ready status, and how it stands with
// the store. Whoever waits is answered from it alone.
type hall struct {
	event   id.ID
	listKey []byte // of the entries in its list
	picture atomic.Pointer[picture]
	status  atomic.Pointer[StatusPage]
	figures atomic.Pointer[ledger.RoomFigures]
	holds   holdMeter

	nudge chan struct{} // holds one token while the keeper should look before its time

	raise chan struct{} // one slot, taken by whoever raises a high-water mark

	flights flights // joins between the store's answer and the log's: who freezes waits for them

	mu      sync.Mutex
	kept    bool         // its keeper runs
	state   storeState   // of the store, as far as this event goes
	suspect bool         // the store has lost something of the event: looking is not enough
	run     string       // the store's life when it was last found good
	lanes   []laneCounts // by lane
	learned time.Time    // when the last picture was taken over
	turns   [][]turn     // by lane
	called  []int64      // by lane: the watermark up to which turns are written down

	building sync.Mutex // of the status: one builds for all
}

func newHall(event id.ID, listKey []byte) *hall {
	return &hall{event: event, listKey: listKey, nudge: make(chan struct{}, 1), raise: make(chan struct{}, 1)}
}

// storeState is how it stands with the store.
type storeState uint8

const (
	storeUnknown storeState = iota // not looked at yet, or known to have lost something: no joins
	storeMending                   // somebody is at it
	storeGood
)

// laneCounts are a lane's numbers as this node knows them.
type laneCounts struct {
	seen    int64 // above every number that the store gave this node, and every count that it told
	limit   int64 // of the store, as last set
	block   int64 // how many numbers the next raise allows
	raised  time.Time
	raising bool
}

// A turn says when positions were called: those from from on and below watermark.
type turn struct {
	clock           ledger.Duration // Room.Clock
	from, watermark int64
}

// A picture is what the ledger said at an instant. It is never changed.
type picture struct {
	rule      ledger.Event
	room      ledger.Room
	committed bool          // there is a row of the room
	orders    []*draw.Order // by lane; nil before the draw, and with the order of arrival
	draw      DrawDoc       // what is published of it
	outlook   outlook
}

// order says where a number of a lane stands; ok is false before the draw.
func (p *picture) position(lane int, number int64) (position int64, ok bool) {
	room := &p.room
	switch {
	case room.Phase == ledger.RoomClosed || lane >= len(room.Lanes):
		return 0, false
	case room.Arrival:
		return number, true
	case room.Phase == ledger.RoomWaiting:
		return 0, false
	case number >= room.Lanes[lane].N:
		return number, true
	case p.orders == nil:
		return 0, false
	}
	return p.orders[lane].Position(number), true
}

// lane finds a lane by its key; "" is the general one, else the last.
func (p *picture) lane(key string) (int, bool) {
	lanes := p.room.Lanes
	for i := range lanes {
		if lanes[i].Key == key || key == "" && lanes[i].Key == ledger.LaneDefault {
			return i, true
		}
	}
	return len(lanes) - 1, key == "" && len(lanes) > 0
}

// joinable says what somebody who wants to join is told, nil where they may.
func (p *picture) joinable(now ledger.Time) *fault.Error {
	rule := &p.rule
	switch {
	case rule.Room.Mode == ledger.RoomOff:
		return fault.New(fault.Conflict, "the event has no waiting room")
	case rule.Room.Closed:
		return fault.New(fault.NotOnSale, "the waiting room is closed")
	case rule.State != ledger.OnSale && rule.State != ledger.Paused:
		return fault.New(fault.NotOnSale, "the event is %s", rule.State)
	case now >= rule.SaleCloses:
		return fault.New(fault.NotOnSale, "the sale is over")
	case now < rule.Room.Opens:
		return &fault.Error{Code: fault.NotOnSale, Detail: "the waiting room is not open yet", RetryAfter: min(ledger.Duration(rule.Room.Opens-now).Std(), retryLate)}
	}
	return nil
}

// over says that nobody joins or is called any more.
func (p *picture) over(now ledger.Time) bool {
	rule := &p.rule
	return rule.Room.Mode == ledger.RoomOff || rule.Room.Closed || now >= rule.SaleCloses || rule.State != ledger.OnSale && rule.State != ledger.Paused
}

// The halls of a service.
type halls struct {
	all atomic.Pointer[map[id.ID]*hall] // replaced, never written into: reading takes no lock and no memory
	mu  sync.Mutex                      // of replacing
}

func (h *halls) get(event id.ID) *hall {
	if all := h.all.Load(); all != nil {
		return (*all)[event]
	}
	return nil
}

// put keeps a hall, or answers the one that is kept already. A node that has RoomsMax keeps no more.
func (h *halls) put(fresh *hall) *hall {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.get(fresh.event); old != nil {
		return old
	}
	all := map[id.ID]*hall{}
	if old := h.all.Load(); old != nil {
		all = maps.Clone(*old)
	}
	if len(all) < RoomsMax {
		all[fresh.event] = fresh
		h.all.Store(&all)
	}
	return fresh
}

func (h *halls) drop(event id.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.get(event) == nil {
		return
	}
	all := maps.Clone(*h.all.Load())
	delete(all, event)
	h.all.Store(&all)
}

func (h *halls) list() map[id.ID]*hall {
	if all := h.all.Load(); all != nil {
		return *all
	}
	return nil
}

// hall is an event's, read from the ledger where it is not in memory.
func (s *Service) hall(ctx context.Context, event id.ID) (*hall, error) {
	if h := s.halls.get(event); h != nil {
		return h, nil
	}
	p, err := s.look(ctx, event)
	if err != nil {
		return nil, err
	}
	h := s.halls.put(newHall(event, listKey(s.o.ListKey, event)))
	s.learnRule(h, p.rule)
	s.learn(h, p.room, p.committed)
	return h, nil
}

// look reads an event and its room from the ledger.
func (s *Service) look(ctx context.Context, event id.ID) (*picture, error) {
	rule, err := s.o.Reader.Event(ctx, event)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, &fault.Error{Code: fault.EventUnknown}
	}
	if err != nil {
		return nil, s.away("read an event", err)
	}
	room, committed, err := s.readRoom(ctx, event)
	if err != nil {
		return nil, err
	}
	return &picture{rule: rule, room: room, committed: committed}, nil
}

// readRoom is the room's row; committed is false where there is none yet.
func (s *Service) readRoom(ctx context.Context, event id.ID) (room ledger.Room, committed bool, err error) {
	room, err = s.o.Reader.Room(ctx, event)
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.Room{Event: event}, false, nil
	}
	if err != nil {
		return ledger.Room{}, false, s.away("read a room", err)
	}
	return room, true, nil
}

// away is the answer where something that is needed does not answer.
func (s *Service) away(what string, err error) error {
	if ctxEnded(err) {
		return err
	}
	return &fault.Error{Code: fault.Busy, RetryAfter: retrySoon, Cause: errors.Join(errors.New("waiting room: "+what), err)}
}

func ctxEnded(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// How long a client is asked to wait.
const (
	retrySoon = time.Second
	retryLate = time.Minute
)

// learnRule takes over an event's row, unless it is older than what is known.
func (s *Service) learnRule(h *hall, rule ledger.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.picture.Load()
	fresh := &picture{rule: rule}
	if old != nil {
		if rule.Version < old.rule.Version {
			return
		}
		*fresh = *old
		fresh.rule = rule
	}
	h.picture.Store(fresh)
}

// stubborn is how long a picture that looks older than the one in memory is refused: two answers may overtake each other on
// the way, but a ledger that says the same for long is right.
const stubborn = 5 * time.Second

// learn takes over what the ledger said of a room.
func (s *Service) learn(h *hall, room ledger.Room, committed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.picture.Load()
	now := s.o.Now()
	if old != nil && old.committed && now.Sub(h.learned) < stubborn &&
		(!committed || room.Phase < old.room.Phase || room.Tick < old.room.Tick) {
		return
	}
	fresh := &picture{room: room, committed: committed}
	if old != nil {
		fresh.rule, fresh.outlook = old.rule, old.outlook
		if sameDraw(&old.room, &room) {
			fresh.orders = old.orders
		}
	}
	for len(h.lanes) < len(room.Lanes) {
		h.lanes = append(h.lanes, laneCounts{block: blockLeast})
		h.turns, h.called = append(h.turns, nil), append(h.called, 0)
	}
	if fresh.orders == nil {
		fresh.orders = ordersOf(&room)
	}
	if old != nil && sameDraw(&old.room, &room) && old.room.Phase == room.Phase {
		fresh.draw = old.draw
	} else if doc, err := NewDrawDoc(&room); err == nil {
		fresh.draw = doc
	} else {
		s.o.Logger.Error("waiting room: a draw cannot be shown", "event", int64(h.event), "error", err)
	}
	h.learnTurns(fresh, old == nil || !old.committed)
	h.learned = now
	h.picture.Store(fresh)
}

func sameDraw(a, b *ledger.Room) bool {
	return a.K == b.K && a.Value == b.Value && a.ListHash == b.ListHash && len(a.Lanes) == len(b.Lanes)
}

// ordersOf makes the tables of a draw.
func ordersOf(room *ledger.Room) []*draw.Order {
	if room.Phase != ledger.RoomOpen || room.Arrival {
		return nil
	}
	k, errK := hex32(room.K)
	list, errList := hex32(room.ListHash)
	if errK != nil || errList != nil {
		return nil // the ledger has checked them: positions stay unknown
	}
	total := int64(0)
	for _, l := range room.Lanes {
		total += l.N
	}
	seed := draw.Seed(k, room.Value, total, list)
	orders := make([]*draw.Order, len(room.Lanes))
	for i, l := range room.Lanes {
		orders[i] = draw.NewOrder(draw.LaneKey(seed, l.Key), l.N)
	}
	return orders
}

// turnsMax bounds the turns that a lane keeps: one for each second of the longest.
const turnsMax = 1_024

// learnTurns writes down who was called since the last picture. A row as it is read has it exactly, an answer to a command only
// how far the calls have come, at most a step ago. Of those called before the first picture only the row knows. It is called
// under mu.
func (h *hall) learnTurns(p *picture, first bool) {
	for i := range p.room.Lanes {
		l := &p.room.Lanes[i]
		for _, c := range l.Open {
			h.addTurn(i, c.Clock, c.Watermark)
		}
		if first {
			h.called[i] = max(h.called[i], l.Watermark)
		}
		h.addTurn(i, p.room.Clock, l.Watermark)
		turns, over := h.turns[i], 0
		for over < len(turns) && (p.room.Clock-turns[over].clock > p.rule.Room.TurnFor() || len(turns)-over > turnsMax) {
			over++
		}
		h.turns[i] = turns[over:]
	}
}

// addTurn puts a turn behind the others, merged by second as the ledger does.
func (h *hall) addTurn(lane int, clock ledger.Duration, watermark int64) {
	from := h.called[lane]
	if watermark <= from {
		return
	}
	h.called[lane] = watermark
	turns := h.turns[lane]
	if last := len(turns) - 1; last >= 0 && turns[last].clock/1000 == clock/1000 {
		turns[last].clock, turns[last].watermark = clock, watermark
		return
	}
	h.turns[lane] = append(turns, turn{clock, from, watermark})
}

// turnLeft is how much of somebody's turn is left.
func (h *hall) turnLeft(p *picture, lane int, position int64) ledger.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if lane >= len(h.turns) {
		return 0
	}
	for _, t := range h.turns[lane] {
		if t.from <= position && position < t.watermark {
			return max(0, p.rule.Room.TurnFor()-(p.room.Clock-t.clock))
		}
	}
	return 0
}

// flights counts joins that are under way, so that somebody can wait for those that began before.
type flights struct {
	mu  sync.Mutex
	now *flightsBegun
}

// flightsBegun are those that began between two waits.
type flightsBegun struct {
	count  int
	waited bool
	landed chan struct{} // closed when waited for and none is left
}

// begin says that a join is under way until end is called.
func (f *flights) begin() (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now == nil {
		f.now = &flightsBegun{landed: make(chan struct{})}
	}
	own := f.now
	own.count++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if own.count--; own.waited && own.count == 0 {
			close(own.landed)
		}
	}
}

// land waits for the joins that are under way; those that begin later are not waited for.
func (f *flights) land(ctx context.Context) error {
	f.mu.Lock()
	all := f.now
	f.now = nil
	if all == nil || all.count == 0 {
		f.mu.Unlock()
		return nil
	}
	all.waited = true
	f.mu.Unlock()
	select {
	case <-all.landed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wake lets the keeper look now.
func (h *hall) wake() {
	select {
	case h.nudge <- struct{}{}:
	default: // it is going to look anyway
	}
}
