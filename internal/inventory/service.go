package inventory

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// A Service is one node's inventory in front of one shard: a board for each event that is loaded, the way of a hold from
// request to ledger, and the seat streams.
type Service struct {
	batcher *ledger.Batcher
	options Options
	hub     *hub
	nudge   chan struct{} // holds one token while the refresher should look before its time
	forget  func()

	mu     sync.RWMutex
	boards map[id.ID]*Board

	loading  sync.Mutex // one Load at a time
	counters counters
	waiting  atomic.Int64 // hand-picked requests that let others go first
}

type counters struct {
	asked, boardRefused, held, lost, looks, noSeats, soldOut, orphans, refreshes, snapshots, sweeps atomic.Int64
}

// Stats are counts since the start, and how things stand.
type Stats struct {
	Asked        int64 // hold requests
	BoardRefused int64 // of them those that the board answered with a sure no
	Held         int64 // those that got a hold
	Lost         int64 // looks for best available seats that were lost on the way to the ledger
	Looks        int64 // looks for best available seats
	NoSeats      int64 // best-available requests that found none
	SoldOut      int64 // of them those that were told sold_out
	Orphans      int64 // hand-picked choices refused or warned of
	Refreshes    int64 // times that the ledger was asked for changes
	Snapshots    int64
	Sweeps       int64
	Boards       int
	Waiting      int // hand-picked requests that wait for others' answers
	Subscribers  int
	SlowDropped  int64 // subscribers dropped because they did not keep up
}

// New makes a service in front of a batcher. Load its events, then Run it. Close ends it; the batcher stays the caller's.
func New(batcher *ledger.Batcher, options Options) *Service {
	s := &Service{
		batcher: batcher, options: options.withDefaults(), nudge: make(chan struct{}, 1), boards: map[id.ID]*Board{},
	}
	s.hub = newHub(s.options.SubscribersMax)
	s.forget = batcher.Listen(ledger.Listener{Committed: s.committed, Unknown: s.unknown})
	return s
}

// Close stops listening to the ledger, ends every seat stream and begins no new one.
func (s *Service) Close() {
	s.forget()
	s.hub.shut()
}

// Load makes an event's board, so that no request has to (B4). The ledger must know the event, with this plan. Loading it
// again changes its rules.
func (s *Service) Load(ctx context.Context, event id.ID, plan *venue.Plan, rules Rules) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	if b := s.Board(event); b != nil {
		// A plan that the catalog has read anew is the same plan: its content counts, not where it lies.
		if b.layout != plan.Layout() && b.planHash() != plan.Hash() {
			return fmt.Errorf("event %s is loaded with another plan", event.Text(id.Event))
		}
		b.setRules(rules)
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, SnapshotMax)
	defer cancel()
	row, err := s.batcher.Ledger().Event(limited, event)
	if err != nil {
		return fmt.Errorf("load event %s: %w", event.Text(id.Event), err)
	}
	if hash := plan.Hash(); row.PlanHash != hash {
		return fmt.Errorf("event %s is sold on plan %s, not on %s", event.Text(id.Event), row.PlanHash, hash)
	}
	b := newBoard(event, s.finderOf(plan, row.PlanHash), rules)
	// It listens before the snapshot is taken, so that it knows what the snapshot lacks.
	s.mu.Lock()
	s.boards[event] = b
	s.mu.Unlock()
	if err := s.refresh(ctx, b, SnapshotMax); err != nil {
		s.mu.Lock()
		delete(s.boards, event)
		s.mu.Unlock()
		return fmt.Errorf("load event %s: %w", event.Text(id.Event), err)
	}
	s.hub.open(b)
	return nil
}

// finderOf shares the finder, and the layout in it, between the events on a plan.
func (s *Service) finderOf(plan *venue.Plan, hash string) *finder {
	for _, b := range s.all() {
		if b.planHash() == hash {
			return b.finder
		}
	}
	return newFinder(plan.Layout())
}

// planHash names the plan on which the event is sold; "" while the board has no picture.
func (b *Board) planHash() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.config.PlanHash
}

// Unload forgets an event and ends its seat streams.
func (s *Service) Unload(event id.ID) {
	s.loading.Lock()
	defer s.loading.Unlock()
	s.mu.Lock()
	delete(s.boards, event)
	s.mu.Unlock()
	s.hub.close(event)
}

// Board is an event's board, nil where it is not loaded.
func (s *Service) Board(event id.ID) *Board {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.boards[event]
}

func (s *Service) all() []*Board {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*Board, 0, len(s.boards))
	for _, b := range s.boards {
		all = append(all, b)
	}
	return all
}

// Picture is an event's seats as everybody may see them. Fault: event_unknown.
func (s *Service) Picture(event id.ID) (*Picture, error) {
	if b := s.Board(event); b != nil {
		if p := b.Picture(); p != nil {
			return p, nil
		}
	}
	return nil, &fault.Error{Code: fault.EventUnknown}
}

// Delta is what has changed since a version; ok is false where a Picture is needed. Fault: event_unknown.
func (s *Service) Delta(event id.ID, since int64) (d Delta, ok bool, err error) {
	b := s.Board(event)
	if b == nil {
		return Delta{}, false, &fault.Error{Code: fault.EventUnknown}
	}
	d, ok = b.Delta(since)
	return d, ok, nil
}

// Subscribe begins a seat stream: with what has changed since the version that the client has, or, since < 0, now.
// Faults: event_unknown; busy (I13).
func (s *Service) Subscribe(event id.ID, since int64) (*Subscription, error) {
	return s.hub.subscribe(event, since, time.Second)
}

// Stats are the figures so far.
func (s *Service) Stats() Stats {
	c := &s.counters
	st := Stats{
		Asked: c.asked.Load(), BoardRefused: c.boardRefused.Load(), Held: c.held.Load(), Lost: c.lost.Load(),
		Looks: c.looks.Load(), NoSeats: c.noSeats.Load(), SoldOut: c.soldOut.Load(), Orphans: c.orphans.Load(),
		Refreshes: c.refreshes.Load(), Snapshots: c.snapshots.Load(), Sweeps: c.sweeps.Load(),
	}
	st.Waiting = int(s.waiting.Load())
	s.mu.RLock()
	st.Boards = len(s.boards)
	s.mu.RUnlock()
	st.Subscribers, st.SlowDropped = s.hub.figures()
	return st
}

// committed takes over what this node has just committed. It runs on the batcher's goroutine.
func (s *Service) committed(batch ledger.Batch) {
	heard, again := s.options.Now(), false
	for i := range batch.Changes {
		if b := s.Board(batch.Changes[i].Event); b != nil {
			b.apply(&batch.Changes[i], batch.Now, heard, true)
			again = again || b.wants() != wantNothing
		}
	}
	if again {
		s.refreshSoon()
	}
}

// unknown is told that a commit may or may not have happened.
func (s *Service) unknown() {
	for _, b := range s.all() {
		b.doubt()
	}
	s.refreshSoon()
}

func (s *Service) refreshSoon() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}
