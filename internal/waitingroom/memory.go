package waitingroom

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"onsale/internal/id"
)

// memoryShards is over how many locks the customers of an event are spread.
const memoryShards = 64

// memory is the in-process Store. It lives and dies with the program, which fills it from the Log at start.
//
// The counters of an event are behind one lock, held for nanoseconds, so that a join and the freeze come one after the
// other. Who has which number is spread over shards. Locks are taken in the order paper, person, counters.
type memory struct {
	seed uint64

	mu    sync.RWMutex
	lines map[id.ID]*line
}

// A line is one event's.
type line struct {
	mu     sync.Mutex
	known  bool // Restore has been
	phase  Phase
	lanes  []LaneState
	frozen []Count // the answer of Freeze, nil before

	people [memoryShards]struct {
		sync.Mutex
		table peopleTable
	}
	papers [memoryShards]struct {
		sync.Mutex
		table paperTable
	}
}

// NewMemory makes the in-process Store. It is empty: the service fills it from the Log.
func NewMemory() Store { return &memory{seed: rand.Uint64(), lines: map[id.ID]*line{}} }

func (m *memory) line(event id.ID) *line {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.lines[event]
}

// begin is the line of an event, made where there is none.
func (m *memory) begin(event id.ID) *line {
	if l := m.line(event); l != nil {
		return l
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lines[event]
	if l == nil {
		l = new(line)
		m.lines[event] = l
	}
	return l
}

// mix spreads a number over 64 bits. The seed keeps the tables' order from being known outside.
func (m *memory) mix(x uint64) uint64 {
	x ^= m.seed
	x = (x ^ x>>32) * 0x9e3779b97f4a7c15
	x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	return x ^ x>>32
}

// Join is Store's.
func (m *memory) Join(_ context.Context, j Join) (Joined, error) {
	l := m.line(j.Event)
	if l == nil {
		return Joined{}, ErrUnknown
	}
	hash := m.mix(uint64(j.Customer))
	people := &l.people[hash%memoryShards]
	var paper *paperTable
	var paperHash uint64
	if j.Identity != (Identity{}) {
		// Whoever has a number keeps it, whatever paper they bring.
		if v, ok := m.of(l, j.Customer); ok {
			return v.joined(), nil
		}
		paperHash = m.mix(j.Identity.low())
		papers := &l.papers[paperHash%memoryShards]
		papers.Lock()
		defer papers.Unlock()
		paper = &papers.table
		if owner := paper.get(paperHash, j.Identity); owner != 0 && owner != j.Customer {
			if _, there := m.of(l, owner); there { // of whoever left, the paper counts no more
				return Joined{}, ErrIdentityTaken
			}
		}
	}
	people.Lock()
	defer people.Unlock()
	if v, ok := people.table.get(hash, j.Customer); ok {
		return v.joined(), nil
	}
	v, err := l.take(j.Lane)
	if err != nil {
		return Joined{}, err
	}
	people.table.put(m, hash, j.Customer, v)
	if paper != nil {
		paper.put(m, paperHash, j.Identity, j.Customer)
	}
	answer := v.joined()
	answer.New = true
	return answer, nil
}

// of is a customer's number.
func (m *memory) of(l *line, customer id.ID) (person, bool) {
	hash := m.mix(uint64(customer))
	people := &l.people[hash%memoryShards]
	people.Lock()
	defer people.Unlock()
	return people.table.get(hash, customer)
}

// take is the next number of a lane.
func (l *line) take(lane int) (person, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.known:
		return 0, ErrUnknown
	case l.phase != Waiting && l.phase != Tail:
		return 0, ErrClosed
	case lane < 0 || lane >= laneCap:
		return 0, fmt.Errorf("there is no lane %d", lane)
	case lane >= len(l.lanes):
		return 0, ErrLimit // it was added since
	}
	s := &l.lanes[lane]
	if s.Next >= s.Limit {
		return 0, ErrLimit
	}
	s.Next++
	return personOf(lane, s.Next-1, l.phase == Waiting), nil
}

// Freeze is Store's.
func (m *memory) Freeze(_ context.Context, event id.ID) ([]Count, error) {
	l := m.line(event)
	if l == nil {
		return nil, ErrUnknown
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		return nil, ErrUnknown
	}
	l.phase = max(l.phase, Tail)
	if l.frozen == nil {
		l.frozen = l.counts()
	}
	return append([]Count(nil), l.frozen...), nil
}

// counts is called under mu.
func (l *line) counts() []Count {
	counts := make([]Count, len(l.lanes))
	for i, s := range l.lanes {
		counts[i] = Count{Lane: i, Count: s.Next}
	}
	return counts
}

// Restore is Store's.
func (m *memory) Restore(_ context.Context, event id.ID, s State) error {
	l := m.begin(event)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = true
	l.phase = max(l.phase, s.Phase)
	for len(l.lanes) < len(s.Lanes) {
		l.lanes = append(l.lanes, LaneState{})
	}
	for i, lane := range s.Lanes {
		l.lanes[i].Next = max(l.lanes[i].Next, lane.Next)
		l.lanes[i].Limit = max(l.lanes[i].Limit, lane.Limit)
	}
	return nil
}

// Remember is Store's.
func (m *memory) Remember(_ context.Context, records []Record) error {
	for i := range records {
		r := &records[i]
		if r.Lane < 0 || r.Lane >= laneCap || r.Number < 0 || r.Number >= numberCap {
			return fmt.Errorf("a record has number %d of lane %d", r.Number, r.Lane)
		}
		l := m.begin(r.Event)
		if r.Left {
			m.forget(l, r.Customer, r.Number)
			continue
		}
		hash := m.mix(uint64(r.Customer))
		people := &l.people[hash%memoryShards]
		people.Lock()
		people.table.put(m, hash, r.Customer, personOf(r.Lane, r.Number, r.Drawn))
		people.Unlock()
		if r.Identity != (Identity{}) {
			hash := m.mix(r.Identity.low())
			papers := &l.papers[hash%memoryShards]
			papers.Lock()
			papers.table.put(m, hash, r.Identity, r.Customer)
			papers.Unlock()
		}
	}
	return nil
}

// Counts is Store's.
func (m *memory) Counts(_ context.Context, event id.ID) ([]Count, error) {
	l := m.line(event)
	if l == nil {
		return nil, ErrUnknown
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		return nil, ErrUnknown
	}
	return l.counts(), nil
}

// Leave is Store's.
func (m *memory) Leave(_ context.Context, event, customer id.ID, number int64) error {
	if l := m.line(event); l != nil {
		m.forget(l, customer, number)
	}
	return nil
}

func (m *memory) forget(l *line, customer id.ID, number int64) {
	hash := m.mix(uint64(customer))
	people := &l.people[hash%memoryShards]
	people.Lock()
	defer people.Unlock()
	if v, ok := people.table.get(hash, customer); ok && v.number() == number {
		people.table.remove(m, hash, customer)
	}
}

// Run is Store's: what is in process has one life.
func (m *memory) Run(context.Context) (string, error) { return "", nil }

// Close is Store's.
func (m *memory) Close() error { return nil }
