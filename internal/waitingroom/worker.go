package waitingroom

import (
	"context"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// How often the background looks.
const (
	rulesEvery   = time.Second // at all events' rows and at the shard's clock
	idleEvery    = time.Second // at a room in which nothing is going on
	drawEvery    = 250 * time.Millisecond
	figuresEvery = time.Second
	storeEvery   = time.Second // whether the store has lost something
	stepPatience = 5 * time.Second
	// freezePatience is how long one attempt to freeze may take: the list of two million joins is read in it, and an attempt that
	// is broken off begins from its first line again.
	freezePatience = time.Minute
	forgetAfter    = time.Hour // a room is forgotten so long after its sale's end
)

// tick is RoomTick as the standard library has it.
var tick = ledger.RoomTick.Std()

// Run makes the rooms go on until ctx ends: it opens them for waiting, freezes, draws, calls, ends what is over, and mends a
// store that has lost something (C12). Each step may be done twice, by several nodes at once, or be left in the middle: what
// is done is decided by the ledger's rows alone.
func (s *Service) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var keepers sync.WaitGroup
	defer keepers.Wait()
	defer cancel()
	timer := time.NewTicker(rulesEvery)
	defer timer.Stop()
	for {
		if err := s.readRules(ctx, &keepers); err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("waiting room: the events cannot be read; those that are known go on", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.life.Done():
			return nil
		case <-timer.C:
		}
	}
}

// readRules takes over the rows of all events and the shard's clock, and begins to keep rooms that are not kept yet.
func (s *Service) readRules(ctx context.Context, keepers *sync.WaitGroup) error {
	limited, cancel := context.WithTimeout(ctx, stepPatience)
	defer cancel()
	if err := s.readClock(limited); err != nil {
		return err
	}
	events, err := s.o.Reader.Events(limited)
	if err != nil {
		return err
	}
	now := s.shardNow()
	for i := range events {
		e := &events[i]
		h := s.halls.get(e.ID)
		if e.Room.Mode == ledger.RoomOff && h == nil || e.SaleCloses+ledger.Time(forgetAfter.Milliseconds()) < now {
			s.halls.drop(e.ID)
			continue
		}
		if h == nil {
			if h, err = s.hall(limited, e.ID); err != nil {
				return err
			}
		}
		s.learnRule(h, *e)
		if e.Room.Mode != ledger.RoomOff {
			s.keepBy(ctx, h, keepers)
		}
	}
	s.looked.Store(true)
	return nil
}

func (s *Service) readClock(ctx context.Context) error {
	before := s.o.Now()
	now, err := s.o.Reader.Now(ctx)
	if err != nil {
		return err
	}
	after := s.o.Now()
	s.ahead.Store(int64(now.Std().Sub(before.Add(after.Sub(before) / 2))))
	return nil
}

// keepBy begins to keep a room, where nobody does.
func (s *Service) keepBy(ctx context.Context, h *hall, keepers *sync.WaitGroup) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept {
		return
	}
	h.kept = true
	keepers.Go(func() {
		defer func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.kept = false
		}()
		k := keeper{s: s, h: h}
		k.run(ctx)
	})
}

// Changed says that an event's row in the ledger has changed: it is read again at once, not a second later.
func (s *Service) Changed(event id.ID) {
	h := s.halls.get(event)
	if h == nil {
		return // Run finds it, or whoever asks for it
	}
	s.background(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, stepPatience)
		defer cancel()
		if rule, err := s.o.Reader.Event(ctx, event); err == nil {
			s.learnRule(h, rule)
			h.wake()
		}
	})
}

// Ready says whether every room that is open for joining is known to the store and in memory (B4). It is so only once Run has
// looked.
func (s *Service) Ready() bool {
	if !s.looked.Load() {
		return false
	}
	now := s.shardNow()
	for _, h := range s.halls.list() {
		p := h.picture.Load()
		if p.joinable(now) != nil {
			continue
		}
		h.mu.Lock()
		good := h.state == storeGood
		h.mu.Unlock()
		if !good {
			return false
		}
	}
	return true
}

// A keeper is the background of one room on one node.
type keeper struct {
	s *Service
	h *hall

	advanced time.Time // by our clock, like all here
	figures  time.Time
	stored   time.Time
	reported time.Time
	read     time.Time
	drawn    time.Time
	frozenAt time.Time // since when freezing has failed for the store's sake
	failed   string    // the last error that was logged, so that each is once
	mending  sync.WaitGroup
}

func (k *keeper) run(ctx context.Context) {
	defer k.mending.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-k.h.nudge:
			timer.Stop()
		}
		next, err := k.step(ctx)
		if ctx.Err() != nil {
			return
		}
		k.log(err)
		k.s.build(k.h)
		if next <= 0 {
			return // the event has no room any more
		}
		timer.Reset(next)
	}
}

// log says an error once, and once that it is over.
func (k *keeper) log(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == k.failed {
		return
	}
	k.failed = text
	if err != nil {
		k.s.o.Logger.Warn("waiting room: a step has to wait", "event", int64(k.h.event), "error", err)
	} else {
		k.s.o.Logger.Info("waiting room: steps go on", "event", int64(k.h.event))
	}
}

// due says whether something that is to be done every so often is due, and notes that it is done.
func (k *keeper) due(last *time.Time, every time.Duration) bool {
	now := k.s.o.Now()
	if since := now.Sub(*last); since >= 0 && since < every {
		return false
	}
	*last = now
	return true
}

// step does what is next for the room, and says when to look again; 0: never.
func (k *keeper) step(all context.Context) (time.Duration, error) {
	s, h := k.s, k.h
	if s.halls.get(h.event) != h {
		return 0, nil // it was forgotten, or there are too many
	}
	ctx, cancel := context.WithTimeout(all, stepPatience)
	defer cancel()
	p := h.picture.Load()
	if p.rule.Room.Mode == ledger.RoomOff && (p.room.Inside == 0 || p.room.Phase != ledger.RoomOpen) {
		return 0, nil
	}
	if k.due(&k.read, idleEvery) { // what other nodes did: numbers, the freeze, who is called
		if room, committed, err := s.readRoom(ctx, h.event); err != nil {
			return idleEvery, err
		} else {
			s.learn(h, room, committed)
		}
		p = h.picture.Load()
	}
	now := s.shardNow()
	if !p.committed {
		return k.commit(ctx, p, now)
	}
	k.watchStore(ctx, p)
	switch p.room.Phase {
	case ledger.RoomClosed:
		return k.commit(ctx, p, now)
	case ledger.RoomWaiting:
		if p.over(now) {
			return idleEvery, nil
		}
		if wait := ledger.Duration(p.rule.SaleOpens - now).Std(); wait > 0 {
			return min(wait, idleEvery), nil
		}
		patient, cancel := context.WithTimeout(all, freezePatience)
		defer cancel()
		return k.freeze(patient, p)
	case ledger.RoomDrawing:
		if p.rule.Room.Closed {
			return idleEvery, nil
		}
		if !k.due(&k.drawn, drawEvery) {
			return drawEvery, nil
		}
		return drawEvery, k.draw(ctx, p, now)
	}
	return k.advance(ctx, p)
}

// commit opens the room for waiting when it is time.
func (k *keeper) commit(ctx context.Context, p *picture, now ledger.Time) (time.Duration, error) {
	s, h := k.s, k.h
	if f := p.joinable(now); f != nil {
		return min(max(ledger.Duration(p.rule.Room.Opens-now).Std(), tick), idleEvery), nil
	}
	command := ledger.RoomCommit{Event: h.event}
	if !p.rule.Room.Arrival {
		secret, err := s.o.Draw(ctx, h.event)
		if err != nil {
			return idleEvery, err
		}
		command.Commitment, command.Source = commitment(secret), p.rule.Room.Source
	}
	result, err := s.o.Ledger.Do(ctx, command)
	if err != nil {
		k.read = time.Time{} // another node may have been faster, with an older rule
		return idleEvery, err
	}
	s.learn(h, *result.Room, true)
	return tick, nil
}

// advance makes a step of calling (C6), and says when the next is due: where nobody waits and nobody is inside, seldom.
func (k *keeper) advance(ctx context.Context, p *picture) (time.Duration, error) {
	s, h := k.s, k.h
	if since := s.o.Now().Sub(k.advanced); since >= 0 && since < tick {
		return tick - since, nil // woken by a join
	}
	k.advanced = s.o.Now()
	if k.due(&k.figures, figuresEvery) {
		figures, err := s.o.Reader.RoomFigures(ctx, h.event)
		if err != nil {
			return tick, err
		}
		h.figures.Store(&figures)
	}
	result, err := s.o.Ledger.Do(ctx, k.figuresOf(p))
	if err != nil {
		if fault.CodeOf(err) == fault.Conflict {
			k.read = time.Time{}
		}
		return idleEvery, err
	}
	s.learn(h, *result.Room, true)
	p = h.picture.Load()
	if p.rule.Room.Paused || p.over(s.shardNow()) || k.empty(p) {
		return idleEvery, nil
	}
	return tick, nil
}

// empty says that nobody waits and nobody is inside.
func (k *keeper) empty(p *picture) bool {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	for i := range p.room.Lanes {
		if k.h.joined(p, i) > p.room.Lanes[i].Watermark {
			return false
		}
	}
	return p.room.Inside == 0
}

// availableUnknown stands for what is left where no board says: R and ActiveMax bind then.
const availableUnknown = 1 << 30

// figuresOf is the command of a step with what this node knows.
func (k *keeper) figuresOf(p *picture) ledger.Advance {
	s, h := k.s, k.h
	a := ledger.Advance{Event: h.event, Available: availableUnknown, Report: ledger.RoomReport{Node: -1}}
	h.mu.Lock()
	for i := range p.room.Lanes {
		a.Joined = append(a.Joined, ledger.LaneCount{Lane: p.room.Lanes[i].Key, Count: h.joined(p, i)})
	}
	h.mu.Unlock()
	if left, known := s.left(h.event); known {
		a.Available = left.Available
	}
	if f := h.figures.Load(); f != nil {
		a.Holding = f.Holding
		if f.HoldsSold >= outcomesKnown {
			a.PerBuyer = int(f.PlacesSold * 1000 / f.HoldsSold)
		}
		if f.HoldsEnded >= outcomesKnown {
			a.Conversion = int(f.HoldsSold * 1000 / f.HoldsEnded)
		}
	}
	if k.due(&k.reported, time.Second) {
		a.Report = h.holds.report(s.o.Node, s.o.Now())
	}
	return a
}
