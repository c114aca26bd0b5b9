package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A batcherLedger is a ledger of which only Apply is used. Every command answers Count = its Max, so that answers can
// be told apart.
type batcherLedger struct {
	ledger.Ledger
	before func(ctx context.Context, commands []ledger.Command) error // nil: nothing fails

	mu      sync.Mutex
	applied [][]ledger.Command
	version int64
}

func (l *batcherLedger) Apply(ctx context.Context, commands []ledger.Command) (ledger.Batch, error) {
	if l.before != nil {
		if err := l.before(ctx, commands); err != nil {
			return ledger.Batch{}, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.applied = append(l.applied, commands)
	l.version++
	done := ledger.Batch{Results: make([]ledger.Result, len(commands)), Changes: []ledger.Change{{Version: l.version}}}
	for i, c := range commands {
		if s, ok := c.(ledger.Sweep); ok {
			done.Results[i].Count = s.Max
		}
	}
	return done, nil
}

func (l *batcherLedger) order() (numbers []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, batch := range l.applied {
		for _, c := range batch {
			if s, ok := c.(ledger.Sweep); ok {
				numbers = append(numbers, s.Max)
			}
		}
	}
	return numbers
}

// gate makes Apply announce each batch on entered and wait for a token of open.
func (l *batcherLedger) gate() (entered chan int, open chan struct{}) {
	entered, open = make(chan int), make(chan struct{})
	l.before = func(_ context.Context, commands []ledger.Command) error {
		entered <- len(commands)
		<-open
		return nil
	}
	return entered, open
}

func numbered(n int) ledger.Command { return ledger.Sweep{Max: n} }

func batcherOptions() ledger.BatcherOptions {
	return ledger.BatcherOptions{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

func closeBatcher(t testing.TB, b *ledger.Batcher) {
	t.Helper()
	if err := b.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestBatcherAppliesInOrderAndTellsListenersBeforeCallers(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l := &batcherLedger{}
	b := ledger.NewBatcher(l, batcherOptions())
	defer closeBatcher(t, b)
	var versions []int64
	var told atomic.Int64
	stop := b.Listen(ledger.Listener{Committed: func(done ledger.Batch) {
		versions = append(versions, done.Changes[0].Version)
		told.Add(int64(len(done.Results)))
	}})
	for i := range 100 {
		r, err := b.Do(t.Context(), numbered(i))
		if err != nil || r.Count != i {
			t.Fatalf("command %d: %+v, %v", i, r, err)
		}
		if told.Load() != int64(i+1) {
			t.Fatalf("command %d was answered before the listener was told", i)
		}
	}
	many := make([]ledger.Command, 3*ledger.BatchCommandsMax+5)
	for i := range many {
		many[i] = numbered(100 + i)
	}
	for i, r := range b.DoAll(t.Context(), many) {
		if r.Fault != nil || r.Count != 100+i {
			t.Fatalf("command %d of many: %+v", i, r)
		}
	}
	if order := l.order(); !slices.IsSorted(order) || len(order) != 100+len(many) {
		t.Fatalf("%d commands applied, in order: %v", len(order), slices.IsSorted(order))
	}
	if !slices.IsSorted(versions) || len(versions) != len(l.applied) {
		t.Fatalf("the listener heard %d of %d batches, or out of order", len(versions), len(l.applied))
	}
	stop()
	heard := told.Load()
	if _, err := b.Do(t.Context(), numbered(1)); err != nil || told.Load() != heard {
		t.Fatalf("a stopped listener was told (%v)", err)
	}
	s := b.Stats()
	if s.Commands != int64(101+len(many)) || s.Batches != int64(len(l.applied)) || s.Sizes[1] < 100 || s.Sizes[11] != 3 || s.Queue != 0 {
		t.Fatalf("stats %+v", s)
	}
}

func TestBatcherBatchesByItselfWithinItsBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &batcherLedger{}
		entered, open := l.gate()
		b := ledger.NewBatcher(l, batcherOptions())
		var callers sync.WaitGroup
		do := func(c ledger.Command) {
			callers.Go(func() {
				if _, err := b.Do(t.Context(), c); err != nil {
					t.Error(err)
				}
			})
		}
		do(numbered(0))
		if n := <-entered; n != 1 {
			t.Fatalf("an idle batcher began with %d commands", n)
		}
		for i := range ledger.BatchCommandsMax + 10 {
			do(numbered(i))
		}
		synctest.Wait()
		seats := make([]int32, ledger.BatchSeatsMax/2)
		for range 3 {
			do(ledger.Block{Seats: seats})
		}
		synctest.Wait()
		var sizes []int
		for range 3 {
			open <- struct{}{}
			sizes = append(sizes, <-entered)
		}
		open <- struct{}{}
		callers.Wait()
		closeBatcher(t, b)
		if want := []int{ledger.BatchCommandsMax, 12, 1}; !slices.Equal(sizes, want) {
			t.Fatalf("batches of %v, want %v", sizes, want)
		}
		if _, err := b.Do(t.Context(), ledger.Block{Seats: make([]int32, ledger.BatchSeatsMax+1)}); fault.CodeOf(err) != fault.Invalid {
			t.Fatalf("a command that fits no batch: %v", err)
		}
	})
}

// I13: nothing waits without bound.
func TestBatcherShedsBeyondItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &batcherLedger{}
		entered, open := l.gate()
		options := batcherOptions()
		options.QueueMax, options.RetryAfter = 3, 7*time.Second
		b := ledger.NewBatcher(l, options)
		var callers sync.WaitGroup
		for range 1 + options.QueueMax {
			callers.Go(func() {
				if _, err := b.Do(t.Context(), numbered(1)); err != nil {
					t.Error(err)
				}
			})
			if b.Stats().Queue == 0 {
				synctest.Wait()
			}
			select {
			case <-entered:
			default:
			}
		}
		synctest.Wait()
		if q := b.Stats().Queue; q != 3 {
			t.Fatalf("%d wait, want 3", q)
		}
		_, err := b.Do(t.Context(), numbered(2))
		if f := fault.Of(err); f == nil || f.Code != fault.Busy || f.RetryAfter != 7*time.Second {
			t.Fatalf("beyond the bound: %v", err)
		}
		if r := b.DoAll(t.Context(), []ledger.Command{numbered(2)}); r[0].Fault == nil || r[0].Fault.Code != fault.Busy {
			t.Fatalf("beyond the bound: %+v", r)
		}
		open <- struct{}{}
		<-entered
		open <- struct{}{}
		callers.Wait()
		closeBatcher(t, b)
		if s := b.Stats(); s.Shed != 2 || s.Commands != 4 || slices.Contains(l.order(), 2) {
			t.Fatalf("stats %+v, applied %v", s, l.order())
		}
	})
}

func TestBatcherCallerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &batcherLedger{}
		entered, open := l.gate()
		b := ledger.NewBatcher(l, batcherOptions())
		takenCtx, cancelTaken := context.WithCancel(t.Context())
		queuedCtx, cancelQueued := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		go func() { _, err := b.Do(takenCtx, numbered(1)); errs <- err }()
		<-entered
		go func() { _, err := b.Do(queuedCtx, numbered(2)); errs <- err }()
		synctest.Wait()
		cancelTaken()
		if err := <-errs; fault.CodeOf(err) != fault.OutcomeUnknown || !errors.Is(err, context.Canceled) {
			t.Fatalf("gone while its command was applied: %v", err)
		}
		cancelQueued()
		if err := <-errs; err != context.Canceled {
			t.Fatalf("gone while its command waited: %v", err)
		}
		if _, err := b.Do(queuedCtx, numbered(3)); err != context.Canceled {
			t.Fatalf("gone before: %v", err)
		}
		open <- struct{}{}
		closeBatcher(t, b)
		if order := l.order(); !slices.Equal(order, []int{1}) || b.Stats().Abandoned != 1 {
			t.Fatalf("applied %v, stats %+v", order, b.Stats())
		}
	})
}

// A2: halving finds the guilty; everyone else is served, in order.
func TestBatcherHalvesUntilTheGuiltyFailsAlone(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	guilty := []int{17, 18, 700}
	l := &batcherLedger{before: func(_ context.Context, commands []ledger.Command) error {
		for _, c := range commands {
			if s, ok := c.(ledger.Sweep); ok && slices.Contains(guilty, s.Max) {
				return errors.New("no such column")
			}
		}
		return nil
	}}
	b := ledger.NewBatcher(l, batcherOptions())
	commands := make([]ledger.Command, ledger.BatchCommandsMax)
	for i := range commands {
		commands[i] = numbered(i)
	}
	for i, r := range b.DoAll(t.Context(), commands) {
		switch {
		case slices.Contains(guilty, i):
			if r.Fault == nil || r.Fault.Code != fault.Internal || r.Fault.Cause == nil {
				t.Fatalf("guilty %d: %+v", i, r)
			}
		case r.Fault != nil || r.Count != i:
			t.Fatalf("innocent %d: %+v", i, r)
		}
	}
	closeBatcher(t, b)
	if order := l.order(); !slices.IsSorted(order) || len(order) != len(commands)-len(guilty) {
		t.Fatalf("%d applied, in order: %v", len(order), slices.IsSorted(order))
	}
}

func TestBatcherGivesUpOnADeadLedger(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	calls := 0
	l := &batcherLedger{before: func(context.Context, []ledger.Command) error { calls++; return errors.New("disk full") }}
	b := ledger.NewBatcher(l, batcherOptions())
	for i, r := range b.DoAll(t.Context(), make1024()) {
		if r.Fault == nil || r.Fault.Code != fault.Internal {
			t.Fatalf("%d: %+v", i, r)
		}
	}
	closeBatcher(t, b)
	if calls > 64 {
		t.Fatalf("a dead ledger was asked %d times for one batch", calls)
	}
}

func TestBatcherAsksAFullDiskOnce(t *testing.T) {
	tries := 0
	l := &batcherLedger{before: func(context.Context, []ledger.Command) error {
		tries++
		return &fault.Error{Code: fault.Busy, Detail: "the disk is full"}
	}}
	b := ledger.NewBatcher(l, batcherOptions())
	defer closeBatcher(t, b)
	for _, r := range b.DoAll(t.Context(), make1024()) {
		if r.Fault == nil || r.Fault.Code != fault.Busy {
			t.Fatalf("answered %v: want busy for everybody, since no command is guilty", r.Fault)
		}
	}
	if tries > 2 { // the first may have come alone
		t.Errorf("the ledger was asked %d times", tries)
	}
}

// I13: a ledger that hangs is given up, whole and once, and the next batch is served.
func TestBatcherGivesUpAHangingLedger(t *testing.T) {
	for name, atCommit := range map[string]bool{"before the commit": false, "at the commit": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				l := &batcherLedger{before: func(ctx context.Context, _ []ledger.Command) error {
					if calls++; calls > 1 {
						return nil
					}
					select {
					case <-ctx.Done():
					case <-time.After(time.Hour):
						return errors.New("it hung for an hour")
					}
					if atCommit {
						return fmt.Errorf("%w: %w", ledger.ErrOutcomeUnknown, ctx.Err())
					}
					return fmt.Errorf("apply: %w", ctx.Err())
				}}
				options := batcherOptions()
				options.RetryAfter = 7 * time.Second
				b := ledger.NewBatcher(l, options)
				start, want := time.Now(), fault.Busy
				if atCommit {
					want = fault.OutcomeUnknown
				}
				for _, r := range b.DoAll(t.Context(), []ledger.Command{numbered(1), numbered(2), numbered(3)}) {
					if r.Fault == nil || r.Fault.Code != want || (want == fault.Busy && r.Fault.RetryAfter != 7*time.Second) {
						t.Errorf("%+v, want %s", r, want)
					}
				}
				if took := time.Since(start); took != ledger.ApplyMax || calls != 1 {
					t.Errorf("%d calls in %s", calls, took)
				}
				if _, err := b.Do(t.Context(), numbered(4)); err != nil {
					t.Errorf("afterwards: %v", err)
				}
				closeBatcher(t, b)
			})
		})
	}
}

func make1024() []ledger.Command {
	commands := make([]ledger.Command, ledger.BatchCommandsMax)
	for i := range commands {
		commands[i] = numbered(i)
	}
	return commands
}

func TestBatcherUnknownOutcome(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l := &batcherLedger{before: func(_ context.Context, commands []ledger.Command) error {
		if commands[0].(ledger.Sweep).Max == 13 {
			return fmt.Errorf("commit: connection lost: %w", ledger.ErrOutcomeUnknown)
		}
		return nil
	}}
	b := ledger.NewBatcher(l, batcherOptions())
	var unknown, committed atomic.Int64
	b.Listen(ledger.Listener{Unknown: func() { unknown.Add(1) }, Committed: func(ledger.Batch) { committed.Add(1) }})
	b.Listen(ledger.Listener{})
	for _, r := range b.DoAll(t.Context(), []ledger.Command{numbered(13), numbered(14)}) {
		if r.Fault == nil || r.Fault.Code != fault.OutcomeUnknown {
			t.Fatalf("%+v", r)
		}
	}
	if unknown.Load() != 1 || committed.Load() != 0 {
		t.Fatalf("listeners: %d unknown, %d committed", unknown.Load(), committed.Load())
	}
	if _, err := b.Do(t.Context(), numbered(1)); err != nil {
		t.Fatal(err)
	}
	closeBatcher(t, b)
	if s := b.Stats(); s.Unknown != 1 || s.Batches != 1 {
		t.Fatalf("stats %+v", s)
	}
}

// A6: a broken invariant stops that event, and that alone.
func TestBatcherStopsAnEventWithABrokenInvariant(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	const broken = id.ID(7)
	l := &batcherLedger{before: func(_ context.Context, commands []ledger.Command) error {
		for _, c := range commands {
			if s, ok := c.(ledger.Sweep); ok && s.Event == broken {
				return fmt.Errorf("apply: %w", &ledger.InvariantError{Event: broken, What: "a seat has two owners"})
			}
		}
		return nil
	}}
	var alarms []id.ID
	options := batcherOptions()
	options.OnInvariant = func(e *ledger.InvariantError) { alarms = append(alarms, e.Event) }
	b := ledger.NewBatcher(l, options)
	results := b.DoAll(t.Context(), []ledger.Command{numbered(1), ledger.Sweep{Event: broken, Max: 2}, numbered(3)})
	if results[0].Fault != nil || results[2].Fault != nil || results[1].Fault == nil || results[1].Fault.Code != fault.Internal {
		t.Fatalf("%+v", results)
	}
	closeBatcher(t, b)
	var stopped []ledger.Command
	for _, batch := range l.applied {
		for _, c := range batch {
			if s, ok := c.(ledger.Stop); ok {
				stopped = append(stopped, s)
			}
		}
	}
	if len(stopped) != 1 || stopped[0].EventHint() != broken || !slices.Equal(alarms, []id.ID{broken}) {
		t.Fatalf("stopped %v, alarms %v", stopped, alarms)
	}
}

func TestBatcherCloseDrainsAndRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &batcherLedger{}
		entered, open := l.gate()
		b := ledger.NewBatcher(l, batcherOptions())
		results := make(chan error, 3)
		do := func(n int) { _, err := b.Do(t.Context(), numbered(n)); results <- err }
		go do(1)
		<-entered
		go do(2)
		synctest.Wait()
		closed := make(chan error, 2)
		go func() { closed <- b.Close(t.Context()) }()
		go func() { closed <- b.Close(t.Context()) }()
		synctest.Wait()
		do(3)
		if err := <-results; fault.CodeOf(err) != fault.Busy {
			t.Fatalf("while closing: %v", err)
		}
		open <- struct{}{}
		<-entered
		open <- struct{}{}
		for range 2 {
			if err := <-results; err != nil {
				t.Fatalf("queued before: %v", err)
			}
			if err := <-closed; err != nil {
				t.Fatalf("close: %v", err)
			}
		}
	})
}

func TestBatcherCloseWithinATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &batcherLedger{}
		entered := make(chan struct{}, 8)
		l.before = func(ctx context.Context, _ []ledger.Command) error {
			entered <- struct{}{}
			<-ctx.Done()
			return fmt.Errorf("%w: %w", ledger.ErrOutcomeUnknown, ctx.Err())
		}
		b := ledger.NewBatcher(l, batcherOptions())
		running, waiting := make(chan error, 1), make(chan error, 1)
		go func() { _, err := b.Do(t.Context(), numbered(1)); running <- err }()
		<-entered
		go func() { _, err := b.Do(t.Context(), numbered(2)); waiting <- err }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Close(ctx); err != context.DeadlineExceeded {
			t.Fatalf("close: %v", err)
		}
		if err := <-running; fault.CodeOf(err) != fault.OutcomeUnknown {
			t.Fatalf("running: %v", err)
		}
		if err := <-waiting; fault.CodeOf(err) != fault.Busy {
			t.Fatalf("waiting: %v", err)
		}
		closeBatcher(t, b)
	})
}

// Many callers, some of whom go away, and a stop in the midst: every answer belongs to its question, and what was
// answered with success was applied once.
func TestBatcherStartsAndStopsUnderStress(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for round := range 4 {
		l := &batcherLedger{}
		options := batcherOptions()
		options.QueueMax = 64
		b := ledger.NewBatcher(l, options)
		var callers sync.WaitGroup
		var done sync.Map
		var served atomic.Int64
		half := make(chan struct{})
		for caller := range 100 {
			callers.Go(func() {
				for k := range 100 {
					n := caller*100 + k
					ctx, cancel := context.WithCancel(t.Context())
					if k%7 == 0 {
						go cancel()
					}
					r, err := b.Do(ctx, numbered(n))
					cancel()
					switch {
					case err == nil && r.Count != n:
						t.Errorf("asked %d, answered %d", n, r.Count)
					case err == nil:
						done.Store(n, true)
						if served.Add(1) == 2000 {
							close(half)
						}
					case errors.Is(err, context.Canceled), fault.CodeOf(err) == fault.Busy:
					default:
						t.Error(err)
					}
				}
			})
		}
		finished := make(chan struct{})
		go func() { callers.Wait(); close(finished) }()
		if round%2 == 0 {
			select {
			case <-half:
			case <-finished:
			}
			closeBatcher(t, b)
		}
		<-finished
		closeBatcher(t, b)
		times := map[int]int{}
		for _, n := range l.order() {
			times[n]++
		}
		done.Range(func(n, _ any) bool {
			if times[n.(int)] != 1 {
				t.Errorf("%d was applied %d times", n, times[n.(int)])
			}
			return true
		})
	}
}

// BenchmarkBatcher measures what the batcher itself costs: 2,000 callers in front of a ledger that takes no time.
func BenchmarkBatcher(b *testing.B) {
	for _, cost := range []time.Duration{0, 2 * time.Millisecond} {
		b.Run("apply="+cost.String(), func(b *testing.B) {
			l := &batcherLedger{}
			l.before = func(context.Context, []ledger.Command) error {
				l.mu.Lock()
				l.applied = nil
				l.mu.Unlock()
				time.Sleep(cost)
				return nil
			}
			batcher := ledger.NewBatcher(l, batcherOptions())
			var next atomic.Int64
			var callers sync.WaitGroup
			b.ReportAllocs()
			for range 2000 {
				callers.Go(func() {
					for next.Add(1) <= int64(b.N) {
						if _, err := batcher.Do(context.Background(), numbered(1)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			callers.Wait()
			closeBatcher(b, batcher)
			s := batcher.Stats()
			b.ReportMetric(float64(s.Commands)/b.Elapsed().Seconds(), "commands/s")
			b.ReportMetric(float64(s.Commands)/float64(max(1, s.Batches)), "commands/batch")
		})
	}
}
