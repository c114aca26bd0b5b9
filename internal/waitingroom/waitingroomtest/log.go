package waitingroomtest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"onsale/internal/id"
	"onsale/internal/waitingroom"
)

func timeNow() time.Time { return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) }

// A Log is a waitingroom.Log in memory, plainly right. Its zero value is empty. What happens to it can be watched and stopped.
type Log struct {
	// Before, if set, is called before an Append takes effect, outside the lock: an error is the answer. It may wait.
	Before func(records []waitingroom.Record) error

	mu      sync.Mutex
	events  map[id.ID]*logEvent
	appends int
}

type logEvent struct {
	records []waitingroom.Record
	of      map[id.ID]waitingroom.Record
	numbers map[number]id.ID
	sealed  int // how many records there were when it was sealed, -1 before
}

type number struct {
	lane   int
	number int64
}

func (l *Log) event(event id.ID) *logEvent {
	if l.events == nil {
		l.events = map[id.ID]*logEvent{}
	}
	e := l.events[event]
	if e == nil {
		e = &logEvent{of: map[id.ID]waitingroom.Record{}, numbers: map[number]id.ID{}, sealed: -1}
		l.events[event] = e
	}
	return e
}

// Append is Log's.
func (l *Log) Append(ctx context.Context, records []waitingroom.Record) ([]waitingroom.Appended, error) {
	if l.Before != nil {
		if err := l.Before(records); err != nil {
			return nil, err
		}
	}
	if err := waitingroom.CheckRecords(records); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appends++
	answers := make([]waitingroom.Appended, len(records))
	for i, r := range records {
		answers[i] = l.event(r.Event).append(r)
	}
	return answers, nil
}

func (e *logEvent) append(r waitingroom.Record) waitingroom.Appended {
	has, in := e.of[r.Customer]
	if r.Left {
		if in && has.Lane == r.Lane && has.Number == r.Number {
			delete(e.of, r.Customer)
			e.records = append(e.records, r)
		}
		return waitingroom.Appended{Record: r}
	}
	if in {
		return waitingroom.Appended{Record: has}
	}
	key := number{r.Lane, r.Number}
	if _, taken := e.numbers[key]; taken { // also by who has given it up
		return waitingroom.Appended{Record: r, Err: waitingroom.ErrNumberTaken}
	}
	if r.Drawn && e.sealed >= 0 {
		return waitingroom.Appended{Record: r, Err: waitingroom.ErrSealed}
	}
	e.of[r.Customer], e.numbers[key] = r, r.Customer
	e.records = append(e.records, r)
	return waitingroom.Appended{Record: r}
}

// Seal is Log's.
func (l *Log) Seal(_ context.Context, event id.ID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.event(event); e.sealed < 0 {
		e.sealed = len(e.records)
	}
	return nil
}

// Replay is Log's.
func (l *Log) Replay(_ context.Context, event id.ID, sorted bool, each func(waitingroom.Record) error) error {
	l.mu.Lock()
	records := slices.Clone(l.event(event).records)
	if n := l.event(event).sealed; sorted && n >= 0 {
		records = records[:n]
	}
	l.mu.Unlock()
	if sorted {
		in := map[id.ID]waitingroom.Record{}
		for _, r := range records {
			if in[r.Customer] = r; r.Left || !r.Drawn {
				delete(in, r.Customer)
			}
		}
		records = records[:0]
		for _, r := range in {
			records = append(records, r)
		}
		slices.SortFunc(records, func(a, b waitingroom.Record) int {
			return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Number, b.Number))
		})
	}
	for _, r := range records {
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}

// Of is Log's.
func (l *Log) Of(_ context.Context, event, customer id.ID) (waitingroom.Record, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.event(event).of[customer]
	return r, ok, nil
}

// Next is Log's.
func (l *Log) Next(_ context.Context, event id.ID) ([]waitingroom.Count, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := map[int]int64{}
	for key := range l.event(event).numbers {
		next[key.lane] = max(next[key.lane], key.number+1)
	}
	var counts []waitingroom.Count
	for lane, n := range next {
		counts = append(counts, waitingroom.Count{Lane: lane, Count: n})
	}
	slices.SortFunc(counts, func(a, b waitingroom.Count) int { return cmp.Compare(a.Lane, b.Lane) })
	return counts, nil
}

// Close is Log's.
func (l *Log) Close() error { return nil }

// Appends is how many there were.
func (l *Log) Appends() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.appends
}
