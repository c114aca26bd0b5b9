package joinlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/waitingroom"
)

const event = id.ID(7<<40 + 1)

func join(customer int) waitingroom.Record {
	return waitingroom.Record{Event: event, Customer: id.ID(customer), Number: int64(customer), At: 1, Drawn: true, Entry: [16]byte{byte(customer), 15: 0xee}}
}

func mustAppend(t *testing.T, l *Log, records ...waitingroom.Record) {
	t.Helper()
	answers, err := l.Append(t.Context(), records)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if a.Err != nil || a.Record != records[i] {
			t.Fatalf("record %d: %+v", i, a)
		}
	}
}

func listOf(t *testing.T, l *Log) (all []waitingroom.Record) {
	t.Helper()
	err := l.Replay(t.Context(), event, true, func(r waitingroom.Record) error {
		all = append(all, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// written is a file with three groups, and where each ends.
func written(t *testing.T) (content []byte, ends []int, list []waitingroom.Record) {
	t.Helper()
	dir := t.TempDir()
	l, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for group, records := range [][]waitingroom.Record{{join(1), join(2)}, {join(3)}, {join(4), join(5), join(6)}} {
		mustAppend(t, l, records...)
		list = append(list, records...)
		info, err := os.Stat(l.Path(event))
		if err != nil {
			t.Fatal(err)
		}
		if ends = append(ends, int(info.Size())); group == 0 && info.Mode().Perm() != 0o600 {
			t.Errorf("others may read the file: %v", info.Mode())
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	content, err = os.ReadFile(filepath.Join(dir, event.Text(id.Event)+Suffix))
	if err != nil {
		t.Fatal(err)
	}
	return content, ends, list
}

// put makes a folder with a file of that content.
func put(t *testing.T, content []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, event.Text(id.Event)+Suffix), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Wherever the last group was cut off, what was acknowledged before it is there, nothing of it is, and the log goes on.
func TestTornTail(t *testing.T) {
	content, ends, list := written(t)
	for size := ends[1]; size <= ends[2]; size++ {
		want := list[:3]
		if size == ends[2] {
			want = list
		}
		for name, torn := range map[string][]byte{
			"cut off":     content[:size],
			"then zeros":  append(slices.Clone(content[:size]), make([]byte, 100)...),
			"then a mess": append(slices.Clone(content[:size]), 0xf6, 'O', 'J', 'G', 1, 0, 0, 0, 9),
		} {
			if name != "cut off" && size%7 != 0 { // each costs syncs
				continue
			}
			dir := put(t, torn)
			read := OpenRead(dir)
			if got := listOf(t, read); !slices.Equal(got, want) {
				t.Fatalf("%s at byte %d, read only: %+v", name, size, got)
			}
			if err := read.Close(); err != nil {
				t.Fatal(err)
			}
			l := openForTest(t, dir)
			if got := listOf(t, l); !slices.Equal(got, want) {
				t.Fatalf("%s at byte %d: %+v", name, size, got)
			}
			mustAppend(t, l, join(7))
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if got := listOf(t, openForTest(t, dir)); !slices.Equal(got, append(slices.Clone(want), join(7))) {
				t.Fatalf("%s at byte %d, gone on with: %+v", name, size, got)
			}
		}
	}
}

// A file whose head was never made durable was never told anybody of.
func TestTornHead(t *testing.T) {
	content, _, _ := written(t)
	for size := range headBytes {
		l := openForTest(t, put(t, content[:size]))
		mustAppend(t, l, join(1))
		if got := listOf(t, l); len(got) != 1 {
			t.Errorf("%d bytes of head: %+v", size, got)
		}
	}
}

// Damage to what was acknowledged is never taken for a torn tail: the log is not opened, and the file stays as it is.
func TestDamageIsNotCutOff(t *testing.T) {
	content, ends, _ := written(t)
	for at := range ends[1] {
		damaged := slices.Clone(content)
		damaged[at] ^= 0x40
		dir := put(t, damaged)
		l := openForTest(t, dir)
		if _, _, err := l.Of(t.Context(), event, 1); !errors.Is(err, ErrDamaged) && !(at >= 12 && at < 16) { // the version: a newer program's
			t.Fatalf("byte %d: %v", at, err)
		} else if err == nil {
			t.Fatalf("byte %d: opened", at)
		}
		if _, err := l.Append(t.Context(), []waitingroom.Record{join(9)}); err == nil {
			t.Fatalf("byte %d: a join is added to a damaged log", at)
		}
		if now, err := os.ReadFile(l.Path(event)); err != nil || !slices.Equal(now, damaged) {
			t.Fatalf("byte %d: the file has changed: %v", at, err)
		}
	}
	long := append(slices.Clone(content), make([]byte, groupBytesMax+1)...)
	if _, _, err := openForTest(t, put(t, long)).Of(t.Context(), event, 1); !errors.Is(err, ErrDamaged) {
		t.Errorf("more follows than one group: %v", err)
	}
	renamed := put(t, content)
	if err := os.Rename(filepath.Join(renamed, event.Text(id.Event)+Suffix), filepath.Join(renamed, id.ID(5).Text(id.Event)+Suffix)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openForTest(t, renamed).Of(t.Context(), 5, 1); !errors.Is(err, ErrDamaged) {
		t.Errorf("another event's file: %v", err)
	}
}

// A group that is left over from an attempt that failed is never taken for one that was acknowledged: here a shorter group was
// written over the first of two. Its sequence fits; the chain of sums does not.
func TestLeftoversDoNotFit(t *testing.T) {
	group := func(at tail, records ...waitingroom.Record) ([]byte, tail) {
		b := make([]byte, groupBytes)
		for i := range records {
			b = appendRecord(b, kindJoin, &records[i])
		}
		return b, at.seal(b)
	}
	begin := tail{offset: headBytes}
	first, next := group(begin, join(1))
	leftover, _ := group(next, join(2))
	other, otherNext := group(begin, join(3))
	if got := listOf(t, openForTest(t, put(t, slices.Concat(head(event), other, leftover)))); len(got) != 1 || got[0] != join(3) {
		t.Errorf("a leftover is read: %+v", got)
	}
	if got := listOf(t, openForTest(t, put(t, slices.Concat(head(event), first, leftover)))); len(got) != 2 {
		t.Errorf("where it fits it is no leftover: %+v", got)
	}
	// Without the chain it would fit.
	unchained, _ := group(tail{offset: otherNext.offset, sequence: otherNext.sequence, body: otherNext.body}, join(2))
	if got := listOf(t, openForTest(t, put(t, slices.Concat(head(event), other, unchained)))); len(got) != 2 {
		t.Errorf("the test does not see what it is about: %+v", got)
	}
}

// A disk is a file that fails as it is told.
type disk struct {
	file
	mu       sync.Mutex
	room     int64 // bytes the file may have; 0: any
	sync     error
	truncate error
	syncs    int
	entered  chan struct{} // told of each sync, if set, which then waits for
	leave    chan struct{}
}

var errFull = errors.New("no space left on device")

func (d *disk) WriteAt(b []byte, offset int64) (int, error) {
	d.mu.Lock()
	room := d.room
	d.mu.Unlock()
	if room == 0 || offset+int64(len(b)) <= room {
		return d.file.WriteAt(b, offset)
	}
	n, _ := d.file.WriteAt(b[:max(0, room-offset)], offset) // half of it is there
	return n, errFull
}

func (d *disk) Sync() error {
	d.mu.Lock()
	d.syncs++
	err := d.sync
	d.mu.Unlock()
	if d.entered != nil {
		d.entered <- struct{}{}
		<-d.leave
	}
	return errors.Join(err, d.file.Sync())
}

func (d *disk) Truncate(size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.truncate != nil {
		return d.truncate
	}
	return d.file.Truncate(size)
}

func (d *disk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// onDisk opens a log with one event's file on a disk that fails.
func onDisk(t *testing.T, dir string) (*Log, *disk) {
	t.Helper()
	d := &disk{}
	l := openForTest(t, dir)
	l.files = func(path string, flags int) (file, error) {
		f, err := openOS(path, flags)
		d.file = f
		return d, err
	}
	return l, d
}

func wantBusy(t *testing.T, l *Log, records ...waitingroom.Record) {
	t.Helper()
	var f *fault.Error
	if _, err := l.Append(t.Context(), records); !errors.As(err, &f) || f.Code != fault.Busy || f.RetryAfter == 0 {
		t.Fatalf("got %v, want busy", err)
	}
}

// A full disk is busy: nothing is lost, nothing half there, and when there is room again it goes on.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	l, d := onDisk(t, dir)
	mustAppend(t, l, join(1), join(2))
	size, err := d.Size()
	if err != nil {
		t.Fatal(err)
	}
	for extra := range int64(groupBytes + 2*recordBytes) {
		d.set(func() { d.room = size + max(extra, 1) })
		wantBusy(t, l, join(3), join(4))
		mustAppend(t, l, join(1)) // asks nothing of the disk
		if _, ok, err := l.Of(t.Context(), event, 3); ok || err != nil {
			t.Fatalf("a join that was refused is there: %v", err)
		}
		if now, err := d.Size(); err != nil || now != size {
			t.Fatalf("%d bytes are left over, %v", now-size, err)
		}
	}
	d.set(func() { d.room = 0 })
	mustAppend(t, l, join(4))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := listOf(t, openForTest(t, dir)); !slices.Equal(got, []waitingroom.Record{join(1), join(2), join(4)}) {
		t.Errorf("%+v", got)
	}
}

// After a sync that failed nobody knows what the disk has: nothing is acknowledged until the file is read anew.
func TestFailedSync(t *testing.T) {
	for name, fail := range map[string]func(d *disk){
		"sync":             func(d *disk) { d.sync = errors.New("input/output error") },
		"write, then undo": func(d *disk) { d.room, d.truncate = 300, errors.New("input/output error") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, d := onDisk(t, dir)
			mustAppend(t, l, join(1), join(2))
			d.set(func() { fail(d) })
			wantBusy(t, l, join(3), join(4), join(5), join(6))
			d.set(func() { d.sync, d.truncate, d.room = nil, nil, 0 })
			wantBusy(t, l, join(7)) // although the disk says all is well
			if _, ok, err := l.Of(t.Context(), event, 3); ok || err != nil {
				t.Errorf("a join that was refused is there: %v", err)
			}
			mustAppend(t, l, join(1))
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			again := openForTest(t, dir)
			got := listOf(t, again)
			if len(got) < 2 || !slices.Equal(got[:2], []waitingroom.Record{join(1), join(2)}) {
				t.Errorf("%+v", got)
			}
			mustAppend(t, again, join(7))
		})
	}
}

// What waits while a group is written is the next group: one sync for all. Before that nobody knows of it.
func TestGroupsAreSyncedOnce(t *testing.T) {
	l, d := onDisk(t, t.TempDir())
	mustAppend(t, l, join(1))
	d.set(func() { d.syncs, d.entered, d.leave = 0, make(chan struct{}), make(chan struct{}) })
	const callers = 50
	var all sync.WaitGroup
	ask := func(n int) {
		all.Go(func() {
			if answers, err := l.Append(t.Context(), []waitingroom.Record{join(n)}); err != nil || answers[0].Err != nil {
				t.Errorf("%v", err)
			}
		})
	}
	ask(100)
	<-d.entered // the first is being written
	if _, ok, err := l.Of(t.Context(), event, 100); ok || err != nil {
		t.Errorf("a join is known before it is on disk: %v", err)
	}
	for n := range callers {
		ask(200 + n)
	}
	e := l.open[event].log
	for waiting := 0; waiting < callers; { // they queue without any signal of their own; the queue is the sign
		e.queueLock.Lock()
		waiting = len(e.queue)
		e.queueLock.Unlock()
		runtime.Gosched()
	}
	d.leave <- struct{}{}
	<-d.entered
	d.leave <- struct{}{}
	all.Wait()
	d.set(func() {
		if d.syncs != 2 {
			t.Errorf("%d joins took %d syncs", callers+1, d.syncs)
		}
		d.entered = nil
	})
}

// Each bound is reached, and answered.
func TestBounds(t *testing.T) {
	l, d := onDisk(t, t.TempDir())
	var f *fault.Error
	if _, err := l.Append(t.Context(), make([]waitingroom.Record, CallRecordsMax+1)); !errors.As(err, &f) || f.Code != fault.Invalid {
		t.Errorf("a huge call: %v", err)
	}
	mustAppend(t, l, join(1))
	d.set(func() { d.entered, d.leave = make(chan struct{}), make(chan struct{}) })
	var all sync.WaitGroup
	all.Go(func() { mustAppend(t, l, join(2)) })
	<-d.entered
	full := make([]waitingroom.Record, CallRecordsMax)
	for i := range full {
		full[i] = join(1)
	}
	var answers []chan error
	for range QueueMax / CallRecordsMax {
		c := &call{records: full, done: make(chan struct{})}
		if err := l.submit(event, c); err != nil {
			t.Fatal(err)
		}
		answer := make(chan error, 1)
		answers = append(answers, answer)
		all.Go(func() { answer <- c.wait(t.Context()) })
	}
	wantBusy(t, l, join(3))
	d.leave <- struct{}{}
	for _, a := range answers {
		if err := <-a; err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	d.entered = nil
	mustAppend(t, l, join(3))
}

func TestOnlyOneWrites(t *testing.T) {
	dir := t.TempDir()
	l := openForTest(t, dir)
	if _, err := Open(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("two have it open: %v", err)
	}
	mustAppend(t, l, join(1))
	read := OpenRead(dir)
	if got := listOf(t, read); len(got) != 1 {
		t.Errorf("reading beside: %+v", got)
	}
	if _, err := read.Append(t.Context(), []waitingroom.Record{join(2)}); err == nil {
		t.Error("a reader writes")
	}
	if err := errors.Join(read.Close(), l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := l.Append(t.Context(), []waitingroom.Record{join(2)}); err == nil {
		t.Error("it is closed")
	}
	openForTest(t, dir)
}

// More events than may be open at once take turns, in parallel, and lose nothing.
func TestManyEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of files, each synced: not in the short form")
	}
	dir := t.TempDir()
	l := openForTest(t, dir)
	const count = OpenMax + 40
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range count {
				r := join(1 + worker)
				r.Event = id.ID(1000 + (i+worker*77)%count)
				if answers, err := l.Append(t.Context(), []waitingroom.Record{r}); err != nil || answers[0].Record != r {
					t.Errorf("%+v, %v", answers, err)
				}
			}
		})
	}
	all.Wait()
	if len(l.open) > OpenMax {
		t.Errorf("%d files are open", len(l.open))
	}
	events, err := Events(dir)
	if err != nil || len(events) != count {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for _, e := range events {
		n := 0
		if err := l.Replay(t.Context(), e, true, func(waitingroom.Record) error { n++; return nil }); err != nil || n != 4 {
			t.Fatalf("event %d has %d joins, %v", e, n, err)
		}
	}
	if none, err := Events(filepath.Join(dir, "nowhere")); none != nil || err != nil {
		t.Errorf("%v, %v", none, err)
	}
}

// Whatever lies in a file, opening it answers or refuses, and what is read is what can be written.
func FuzzOpen(f *testing.F) {
	group := make([]byte, groupBytes)
	r := join(3)
	group = appendRecord(group, kindJoin, &r)
	tail{offset: headBytes}.seal(group)
	f.Add(slices.Concat(head(event), group))
	f.Add(head(event))
	f.Add(slices.Concat(head(event), group[:30]))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := put(t, content)
		l := openForTest(t, dir)
		if _, _, err := l.Of(t.Context(), event, 3); err != nil {
			return
		}
		before := listOf(t, l)
		answers, err := l.Append(t.Context(), []waitingroom.Record{{Event: event, Customer: 1 << 50, Lane: 15, Number: 1<<40 - 1}})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		again := openForTest(t, dir)
		if got := listOf(t, again); fmt.Sprint(got) != fmt.Sprint(before) {
			t.Errorf("%v is read again as %v", before, got)
		}
		if got, ok, err := again.Of(t.Context(), event, 1<<50); answers[0].Err == nil && (err != nil || !ok || got != answers[0].Record) {
			t.Errorf("%+v, %v, %v", got, ok, err)
		}
	})
}
