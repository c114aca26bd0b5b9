// Package joinlog keeps joins in files: the waitingroom.Log of a house that runs on one machine.
//
// The one idea: a join is acknowledged when the group in which it was written is on disk. All that wait while one group is
// written make the next one, so there is no timer, one fsync serves thousands, and somebody alone is answered at once. A
// file for each event is only ever added to; what was being written when the machine went down is cut off, and was never
// acknowledged to anybody.
//
// Start reading at Open, then group.go (deciding and writing), frame.go (the bytes), index.go (finding).
package joinlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/waitingroom"
)

const (
	// Suffix of the files' names; before it stands the event.
	Suffix = ".joins"

	// CallRecordsMax is how many records one Append may have.
	CallRecordsMax = 16_384
	// QueueMax is how many records of one event may wait for the disk.
	QueueMax = 131_072
	// OpenMax is how many events' files are open at once, with their index in memory.
	OpenMax = 256

	retryAfter = time.Second
)

// A Log is a folder of files, one for each event.
type Log struct {
	dir      string
	unlock   func() error
	readOnly bool
	files    func(path string, flags int) (file, error)

	mu     sync.Mutex
	open   map[id.ID]*entry
	turn   uint64
	closed bool
	runs   sync.WaitGroup
}

// A file is what is needed of one; tests make it fail.
type file interface {
	ReadAt(b []byte, offset int64) (int, error)
	WriteAt(b []byte, offset int64) (int, error)
	Size() (int64, error)
	Sync() error
	Truncate(size int64) error
	Close() error
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func openOS(path string, flags int) (file, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// An entry is an event's log that is open, or is being opened.
type entry struct {
	ready chan struct{} // closed when log or err is there
	log   *eventLog
	err   error
	users int    // who may not be disturbed by closing it
	used  uint64 // when it was last given out, in turns
}

// Open opens the log in a folder, which is made where it is missing. Nobody else may have it open; reading does no harm.
func Open(dir string) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the log of joins: %w", err)
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	return &Log{dir: dir, unlock: unlock, files: openOS, open: map[id.ID]*entry{}}, nil
}

// OpenRead opens the log for reading only, also while a server writes it: each event is read as it is when it is first
// asked for.
func OpenRead(dir string) *Log {
	return &Log{dir: dir, readOnly: true, unlock: func() error { return nil }, files: openOS, open: map[id.ID]*entry{}}
}

// Close waits for what is being written, and ends the right to the folder.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	l.runs.Wait()
	l.mu.Lock()
	open := slices.Collect(maps.Values(l.open))
	l.mu.Unlock()
	var errs []error
	for _, e := range open {
		<-e.ready
		if e.log != nil {
			errs = append(errs, e.log.file.Close())
		}
	}
	return errors.Join(append(errs, l.unlock())...)
}

// Path is the file of an event.
func (l *Log) Path(event id.ID) string { return filepath.Join(l.dir, event.Text(id.Event)+Suffix) }

// Events are those that have a file in a folder.
func Events(dir string) ([]id.ID, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var events []id.ID
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), Suffix)
		if event, err := id.Parse(id.Event, name); ok && err == nil {
			events = append(events, event)
		}
	}
	slices.Sort(events)
	return events, nil
}

var errClosed = errors.New("the log of joins is closed")

// acquire opens an event's log, or waits until somebody else has. Without create, nil is an event that has none. Give it
// back with release.
func (l *Log) acquire(event id.ID, create bool) (*entry, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, errClosed
	}
	e := l.open[event]
	opener := e == nil
	if opener {
		if _, err := os.Stat(l.Path(event)); errors.Is(err, fs.ErrNotExist) && (!create || l.readOnly) {
			l.mu.Unlock()
			return nil, nil
		}
		if err := l.makeRoom(); err != nil {
			l.mu.Unlock()
			return nil, err
		}
		e = &entry{ready: make(chan struct{})}
		l.open[event] = e
	}
	e.users++
	l.turn++
	e.used = l.turn
	l.mu.Unlock()
	if opener {
		e.log, e.err = l.openEvent(event)
		if e.err != nil {
			l.mu.Lock()
			delete(l.open, event) // the next one tries again
			l.mu.Unlock()
		} else {
			e.log.entry = e
		}
		close(e.ready)
	}
	<-e.ready
	if e.err != nil {
		return nil, e.err
	}
	return e, nil
}

func (l *Log) release(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.users--
}

// makeRoom closes the log that nobody uses for the longest time, where there are too many.
func (l *Log) makeRoom() error {
	if len(l.open) < OpenMax {
		return nil
	}
	var oldest id.ID
	for event, e := range l.open {
		if e.users == 0 && (oldest == 0 || e.used < l.open[oldest].used) {
			oldest = event
		}
	}
	if oldest == 0 {
		return busy(errors.New("as many logs of joins as may be open are in use"))
	}
	e := l.open[oldest]
	delete(l.open, oldest)
	return e.log.file.Close()
}

func busy(cause error) error {
	f := fault.Wrap(fault.Busy, cause)
	f.RetryAfter = retryAfter
	return f
}

// openEvent opens a file, or makes it, and reads all of it.
func (l *Log) openEvent(event id.ID) (*eventLog, error) {
	flags := os.O_RDWR | os.O_CREATE
	if l.readOnly {
		flags = os.O_RDONLY
	}
	f, err := l.files(l.Path(event), flags)
	if err != nil {
		return nil, busy(err)
	}
	e := &eventLog{log: l, event: event, file: f, index: newIndex()}
	if err := e.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", l.Path(event), err), f.Close())
	}
	return e, nil
}

// Append is waitingroom.Log's. Records of several events are groups of their own.
func (l *Log) Append(ctx context.Context, records []waitingroom.Record) ([]waitingroom.Appended, error) {
	if len(records) > CallRecordsMax {
		return nil, fault.New(fault.Invalid, "%d joins at once; at most %d are taken", len(records), CallRecordsMax)
	}
	if err := waitingroom.CheckRecords(records); err != nil {
		return nil, err
	}
	places := map[id.ID][]int{} // of each event's records
	for i := range records {
		places[records[i].Event] = append(places[records[i].Event], i)
	}
	var calls []*call
	for event, at := range places {
		c := &call{records: make([]waitingroom.Record, len(at)), at: at, done: make(chan struct{})} // a copy: who gives up waiting may change theirs
		for i, place := range at {
			c.records[i] = records[place]
		}
		if err := l.submit(event, c); err != nil {
			c.err = err
			close(c.done)
		}
		calls = append(calls, c)
	}
	all := make([]waitingroom.Appended, len(records))
	var errs []error
	for _, c := range calls {
		if err := c.wait(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		for i, place := range c.at {
			all[place] = c.answers[i]
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return all, nil
}

// Seal is waitingroom.Log's.
func (l *Log) Seal(ctx context.Context, event id.ID) error {
	if event <= 0 {
		return fault.New(fault.Invalid, "a list without an event")
	}
	c := &call{seal: true, done: make(chan struct{})}
	if err := l.submit(event, c); err != nil {
		return err
	}
	return c.wait(ctx)
}

// submit lets a call wait for its group.
func (l *Log) submit(event id.ID, c *call) error {
	if l.readOnly {
		return errors.New("the log of joins is open for reading only")
	}
	e, err := l.acquire(event, true)
	if err != nil {
		return err
	}
	defer l.release(e)
	return e.log.submit(c)
}

// Replay is waitingroom.Log's. Records that are added meanwhile may be missing.
func (l *Log) Replay(ctx context.Context, event id.ID, sorted bool, each func(waitingroom.Record) error) error {
	e, err := l.acquire(event, false)
	if err != nil || e == nil {
		return err
	}
	defer l.release(e)
	if sorted {
		return e.log.replayList(ctx, each)
	}
	return e.log.replayAll(ctx, each)
}

// Of is waitingroom.Log's: it answers only what is on disk.
func (l *Log) Of(_ context.Context, event, customer id.ID) (r waitingroom.Record, ok bool, err error) {
	e, err := l.acquire(event, false)
	if err != nil || e == nil {
		return r, false, err
	}
	defer l.release(e)
	return e.log.of(customer)
}

// Next is waitingroom.Log's.
func (l *Log) Next(_ context.Context, event id.ID) ([]waitingroom.Count, error) {
	e, err := l.acquire(event, false)
	if err != nil || e == nil {
		return nil, err
	}
	defer l.release(e)
	return e.log.next(), nil
}
