package joinlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/waitingroom"
)

// An eventLog is one event's file.
type eventLog struct {
	log   *Log
	entry *entry
	event id.ID
	file  file

	queueLock sync.Mutex
	queue     []*call
	queued    int // records in it
	running   bool

	// lock protects what is on disk and acknowledged. Only run writes it, so run reads it without.
	lock   sync.RWMutex
	index  *index
	tail   tail
	broken error // why nothing can be written any more, until the program starts again

	group group
}

// A call is an Append or a Seal that waits.
type call struct {
	records []waitingroom.Record
	at      []int // their places in what was asked
	seal    bool

	answers []waitingroom.Appended
	pending bool // what is answered is not on disk before the group is
	err     error
	done    chan struct{}
}

// wait is for the group. Who gives up does not know what became of it.
func (c *call) wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return fault.Wrap(fault.OutcomeUnknown, ctx.Err())
	}
}

// A group is what is written at once: an overlay over the index until it is on disk.
type group struct {
	bytes     []byte
	customers map[id.ID]waitingroom.Record // as they will be; Left: they will have none
	numbers   map[uint64]bool
	seal      bool
	effects   []effect
}

// An effect is a record that is written.
type effect struct {
	kind     byte
	customer id.ID
	lane     int
	number   int64
	drawn    bool
}

func (g *group) reset() {
	if g.customers == nil {
		g.customers, g.numbers = map[id.ID]waitingroom.Record{}, map[uint64]bool{}
	}
	clear(g.customers)
	clear(g.numbers)
	g.bytes, g.effects, g.seal = append(g.bytes[:0], make([]byte, groupBytes)...), g.effects[:0], false
}

func (g *group) add(kind byte, r *waitingroom.Record) {
	g.bytes = appendRecord(g.bytes, kind, r)
	g.effects = append(g.effects, effect{kind, r.Customer, r.Lane, r.Number, r.Drawn})
}

func (e *eventLog) submit(c *call) error {
	e.queueLock.Lock()
	defer e.queueLock.Unlock()
	if e.queued+len(c.records) > QueueMax {
		return busy(fmt.Errorf("%d joins wait for the disk", e.queued))
	}
	if !e.running {
		if err := e.log.begin(e.entry); err != nil {
			return err
		}
		e.running = true
		go e.run()
	}
	e.queue = append(e.queue, c)
	e.queued += len(c.records)
	return nil
}

// begin lets a run start, which Close and makeRoom wait for.
func (l *Log) begin(e *entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	e.users++
	l.runs.Add(1)
	return nil
}

// run makes groups until nobody waits.
func (e *eventLog) run() {
	defer e.log.runs.Done()
	defer e.log.release(e.entry)
	for {
		calls := e.take()
		if calls == nil {
			return
		}
		e.commit(calls)
	}
}

// take takes the calls of the next group; nil ends the run.
func (e *eventLog) take() []*call {
	e.queueLock.Lock()
	defer e.queueLock.Unlock()
	count, records := 0, 0
	for count < len(e.queue) && records+max(1, len(e.queue[count].records)) <= groupRecordsMax {
		records += max(1, len(e.queue[count].records)) // a seal is one
		e.queued -= len(e.queue[count].records)
		count++
	}
	calls := slices.Clone(e.queue[:count])
	e.queue = slices.Delete(e.queue, 0, count)
	if count == 0 {
		e.running = false
		return nil
	}
	return calls
}

// commit decides the calls in their order, makes what is new durable, and only then answers.
func (e *eventLog) commit(calls []*call) {
	g := &e.group
	g.reset()
	for _, c := range calls {
		c.err = e.decide(g, c)
	}
	if err := e.write(g); err != nil {
		for _, c := range calls {
			if c.pending && c.err == nil {
				c.err = err
			}
		}
	}
	for _, c := range calls {
		close(c.done)
	}
}

func (e *eventLog) decide(g *group, c *call) error {
	if c.seal {
		c.pending = g.seal // another call's, of this group
		if !e.index.sealed && !g.seal {
			g.seal, c.pending = true, true
			g.add(kindSeal, &waitingroom.Record{})
		}
		return nil
	}
	if e.index.count+len(g.effects)+len(c.records) > recordsMax {
		return busy(errors.New("as many joins as an event may have"))
	}
	c.answers = make([]waitingroom.Appended, len(c.records))
	for i := range c.records {
		a, pending, err := e.decideOne(g, c.records[i])
		if err != nil {
			return err
		}
		c.answers[i] = a
		c.pending = c.pending || pending
	}
	return nil
}

// decideOne answers one record, by what is on disk and what the group has so far. pending says that the answer rests on
// the group.
func (e *eventLog) decideOne(g *group, r waitingroom.Record) (a waitingroom.Appended, pending bool, err error) {
	is, found, pending, err := e.currentIn(g, r.Customer)
	if err != nil {
		return a, false, err
	}
	if r.Left {
		if found && is.Lane == r.Lane && is.Number == r.Number {
			r.Drawn, r.Identity, r.Entry = is.Drawn, is.Identity, is.Entry
			g.add(kindLeft, &r)
			g.customers[r.Customer] = r
			return waitingroom.Appended{Record: r}, true, nil
		}
		if found {
			r = is
		}
		return waitingroom.Appended{Record: r}, pending, nil
	}
	switch number := pack(r.Lane, r.Number); {
	case found:
		return waitingroom.Appended{Record: is}, pending, nil
	case e.index.taken(r.Lane, r.Number) || g.numbers[number]:
		return waitingroom.Appended{Record: r, Err: waitingroom.ErrNumberTaken}, pending, nil
	case r.Drawn && (e.index.sealed || g.seal):
		return waitingroom.Appended{Record: r, Err: waitingroom.ErrSealed}, pending, nil
	default:
		g.add(kindJoin, &r)
		g.customers[r.Customer], g.numbers[number] = r, true
		return waitingroom.Appended{Record: r}, true, nil
	}
}

// currentIn is a customer's record with the group's effects.
func (e *eventLog) currentIn(g *group, customer id.ID) (r waitingroom.Record, found, pending bool, err error) {
	if r, ok := g.customers[customer]; ok {
		return r, !r.Left, true, nil
	}
	s := e.index.current(customer)
	if s == nil {
		return r, false, false, nil
	}
	r, err = e.read(s.offset())
	return r, err == nil, false, err
}

// read reads a record of the file.
func (e *eventLog) read(offset int64) (r waitingroom.Record, err error) {
	var b [recordBytes]byte
	if _, err := e.file.ReadAt(b[:], offset); err != nil {
		return r, busy(fmt.Errorf("reading the log of joins: %w", err))
	}
	_, r = readRecord(b[:], e.event)
	return r, nil
}

// write makes a group durable and then known. When it fails the file is as it was, or nothing is ever written to it again: what
// a disk that has refused once to sync has really kept is only seen by reading it anew.
func (e *eventLog) write(g *group) error {
	if len(g.effects) == 0 {
		return nil
	}
	if e.broken != nil {
		return busy(e.broken)
	}
	next := e.tail.seal(g.bytes)
	if _, err := e.file.WriteAt(g.bytes, e.tail.offset); err != nil {
		if undo := errors.Join(e.file.Truncate(e.tail.offset), e.file.Sync()); undo != nil {
			e.breakDown(undo)
		}
		return busy(fmt.Errorf("writing the log of joins: %w", err))
	}
	if err := e.file.Sync(); err != nil {
		e.breakDown(err)
		return busy(e.broken)
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	at := e.tail.offset + groupBytes
	for _, f := range g.effects {
		e.index.apply(f, at)
		at += recordBytes
	}
	e.tail = next
	return nil
}

func (e *eventLog) breakDown(err error) {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.broken = fmt.Errorf("the disk under the log of joins has failed; start the program again when it is mended: %w", err)
}

func (x *index) apply(f effect, offset int64) {
	switch f.kind {
	case kindJoin:
		x.join(f.customer, f.lane, f.number, f.drawn, offset)
	case kindLeft:
		x.leave(f.customer)
	case kindSeal:
		x.sealed = true
	}
}

// load reads the file into the index, and cuts off what was never acknowledged.
func (e *eventLog) load() error {
	size, err := e.file.Size()
	if err != nil {
		return err
	}
	if size < headBytes { // it was never made durable, so nobody was told of anything in it
		return e.create()
	}
	e.tail, err = scan(e.file, size, e.event, func(offset int64, b []byte) error {
		kind, r := readRecord(b, e.event)
		switch {
		case kind != kindJoin && kind != kindLeft && kind != kindSeal:
			return fmt.Errorf("%w: a record of kind %d at byte %d", ErrDamaged, kind, offset)
		case kind != kindSeal && waitingroom.CheckRecords([]waitingroom.Record{r}) != nil:
			return fmt.Errorf("%w: no record can be like the one at byte %d", ErrDamaged, offset)
		}
		e.index.apply(effect{kind, r.Customer, r.Lane, r.Number, r.Drawn}, offset)
		return nil
	})
	if err != nil || e.tail.offset == size || e.log.readOnly {
		return err
	}
	return errors.Join(e.file.Truncate(e.tail.offset), e.file.Sync())
}

// create writes the head, durably with the file's name.
func (e *eventLog) create() error {
	e.tail = tail{offset: headBytes}
	if e.log.readOnly {
		return nil
	}
	if err := e.file.Truncate(0); err != nil {
		return busy(err)
	}
	if _, err := e.file.WriteAt(head(e.event), 0); err != nil {
		return busy(err)
	}
	if err := errors.Join(e.file.Sync(), syncFolder(e.log.dir)); err != nil {
		return busy(err)
	}
	return nil
}

func (e *eventLog) of(customer id.ID) (r waitingroom.Record, ok bool, err error) {
	e.lock.RLock()
	defer e.lock.RUnlock()
	s := e.index.current(customer)
	if s == nil {
		return r, false, nil
	}
	r, err = e.read(s.offset())
	return r, err == nil, err
}

func (e *eventLog) next() (counts []waitingroom.Count) {
	e.lock.RLock()
	defer e.lock.RUnlock()
	for lane, next := range e.index.next {
		counts = append(counts, waitingroom.Count{Lane: lane, Count: next})
	}
	slices.SortFunc(counts, func(a, b waitingroom.Count) int { return a.Lane - b.Lane })
	return counts
}

// replayAll reads the file from its beginning to what is on disk now.
func (e *eventLog) replayAll(ctx context.Context, each func(waitingroom.Record) error) error {
	e.lock.RLock()
	end := e.tail.offset
	e.lock.RUnlock()
	if end <= headBytes {
		return ctx.Err()
	}
	count := 0
	_, err := scan(e.file, end, e.event, func(_ int64, b []byte) error {
		if count++; count%numbersPage == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		kind, r := readRecord(b, e.event)
		if kind == kindSeal {
			return nil
		}
		return each(r)
	})
	return err
}

// replayList reads the list, page by page, so that nobody who joins waits for it.
func (e *eventLog) replayList(ctx context.Context, each func(waitingroom.Record) error) error {
	e.lock.RLock()
	pages := e.index.pagesInOrder()
	e.lock.RUnlock()
	w := window{in: e.file}
	var offsets []int64
	for _, page := range pages {
		if err := ctx.Err(); err != nil {
			return err
		}
		e.lock.RLock()
		offsets = e.index.listed(page, offsets[:0])
		e.lock.RUnlock()
		for _, offset := range offsets {
			b, err := w.record(offset)
			if err != nil {
				return fmt.Errorf("reading the log of joins: %w", err)
			}
			_, r := readRecord(b, e.event)
			if err := each(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// A window reads records that lie near each other, in almost any order, with few calls of the disk: numbers are given in
// nearly the order in which they are written.
type window struct {
	in     io.ReaderAt
	blocks [windowBlocks]struct {
		start int64
		data  []byte
	}
	turn int
}

const (
	windowBlocks = 16
	windowBytes  = 256 << 10
)

func (w *window) record(offset int64) ([]byte, error) {
	start := offset / windowBytes * windowBytes
	for i := range w.blocks {
		if b := &w.blocks[i]; b.data != nil && b.start == start && int(offset-start)+recordBytes <= len(b.data) {
			return b.data[offset-start:][:recordBytes], nil
		}
	}
	b := &w.blocks[w.turn]
	w.turn = (w.turn + 1) % windowBlocks
	if cap(b.data) == 0 {
		b.data = make([]byte, windowBytes+recordBytes) // a record may begin in a block and end behind it
	}
	n, err := w.in.ReadAt(b.data[:cap(b.data)], start)
	if n < int(offset-start)+recordBytes {
		b.data = b.data[:0]
		return nil, err
	}
	b.start, b.data = start, b.data[:n]
	return b.data[offset-start:][:recordBytes], nil
}
