package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/fault"
)

const (
	// QueueMax is how many commands wait in a Batcher before it sheds (A1, I13).
	QueueMax = 16_384
	// ApplyMax is how long one Apply may take: a ledger that hangs must not hang everybody who waits for it (I13).
	ApplyMax = 30 * time.Second
	// guiltyMax is how many commands, one after the other, may fail each alone before the ledger itself is held to be
	// at fault: what is left of the batch then fails untried, instead of meeting the same dead database a thousand times.
	guiltyMax = 8
	// sizeClasses is how many powers of two the histogram of batch sizes needs.
	sizeClasses = 12
)

// BatcherOptions are the settings of a Batcher. The zero value is good.
type BatcherOptions struct {
	QueueMax    int                   // commands that may wait. Defaults to QueueMax
	ApplyMax    time.Duration         // of one Apply. Defaults to ApplyMax
	RetryAfter  time.Duration         // what a shed caller is told. Defaults to 1 s
	Logger      *slog.Logger          // Defaults to slog.Default()
	Now         func() time.Time      // only for measuring. Defaults to time.Now
	OnBatch     func(BatchReport)     // called after every Apply, on the batcher's goroutine; for metrics
	OnInvariant func(*InvariantError) // called after an event was ordered to stop; for metrics and alerts
}

// A BatchReport says how one Apply went.
type BatchReport struct {
	Commands int
	Took     time.Duration
	Err      error
}

// A Listener is told what a Batcher's ledger did, on the batcher's goroutine: it must be quick. Either may be nil.
type Listener struct {
	// Committed is called in commit order, before the callers are answered, so that a board knows before its client.
	Committed func(Batch)
	// Unknown is called where a commit may or may not have happened: whoever keeps a picture must load it again.
	Unknown func()
}

// BatcherStats are counts since the start.
type BatcherStats struct {
	Batches    int64
	Commands   int64
	Failed     int64              // batches that failed as a whole
	Unknown    int64              // batches whose outcome is unknown
	Invariants int64              // commands refused because an event's rows contradict each other
	Shed       int64              // commands refused because the queue was full or closing
	Abandoned  int64              // commands whose caller went away while they waited; not run
	Sizes      [sizeClasses]int64 // Sizes[k] counts batches of 2^(k-1) … 2^k - 1 commands
	Queue      int                // commands waiting now
	ApplyTime  time.Duration      // in all
	ApplyMax   time.Duration
}

// A Batcher turns the commands of many callers into batches of one ledger, on one goroutine. There is no timer: a batch
// starts as soon as the one before has committed, so an idle system answers at once and a loaded one batches by itself.
// It is the only peak shaver in front of a ledger, and it is bounded.
type Batcher struct {
	ledger  Ledger
	options BatcherOptions
	waiters sync.Pool
	wake    chan struct{} // holds one token while the goroutine should look
	ended   chan struct{} // closed when the goroutine has ended
	cancel  context.CancelFunc

	mu      sync.Mutex
	ring    []*waiter
	head    int // of ring
	length  int
	closing bool
	aborted bool // what waits is not run any more
	stats   BatcherStats

	listenMu  sync.Mutex
	listeners []*Listener // replaced, never written into
}

// A waiter is one queued command. Its state moves queued → taken → answered; the caller may move it from queued to
// abandoned and from taken to deserted: whoever loses the race for the waiter gives it back to the pool.
type waiter struct {
	command Command
	result  Result
	err     error
	state   atomic.Uint32
	done    chan struct{} // one token for each answer
}

const (
	waiterQueued uint32 = iota
	waiterTaken
	waiterAnswered
	waiterAbandoned
	waiterDeserted
)

// NewBatcher starts a batcher for a ledger; Close ends it. The ledger stays the caller's to close.
func NewBatcher(l Ledger, options BatcherOptions) *Batcher {
	if options.QueueMax <= 0 {
		options.QueueMax = QueueMax
	}
	if options.ApplyMax <= 0 {
		options.ApplyMax = ApplyMax
	}
	if options.RetryAfter <= 0 {
		options.RetryAfter = time.Second
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &Batcher{
		ledger: l, options: options, cancel: cancel,
		wake:  make(chan struct{}, 1),
		ended: make(chan struct{}),
		ring:  make([]*waiter, options.QueueMax),
	}
	b.waiters.New = func() any { return &waiter{done: make(chan struct{}, 1)} }
	go b.run(ctx)
	return b
}

// Ledger is the ledger behind the batcher, for reading.
func (b *Batcher) Ledger() Reader { return b.ledger }

// Listen adds a listener; stop takes it away. A batch that is being told of while stop runs may still arrive.
func (b *Batcher) Listen(l Listener) (stop func()) {
	b.listenMu.Lock()
	defer b.listenMu.Unlock()
	own := &l
	b.listeners = append(slices.Clip(b.listeners), own)
	return func() {
		b.listenMu.Lock()
		defer b.listenMu.Unlock()
		b.listeners = slices.DeleteFunc(slices.Clone(b.listeners), func(l *Listener) bool { return l == own })
	}
}

// Do has one command applied in the next batch and waits for its answer. The error is nil exactly where the command took
// effect (now or, Result.Repeat, before): a refusal is Result.Fault and the error both.
//
// Faults besides the command's own: busy, with RetryAfter, where the queue is full or the batcher is closing;
// outcome_unknown where the commit may have happened, or where ctx ended while the command was being applied; internal.
// Where ctx ends while the command waits, it is not run and the error is that of ctx.
func (b *Batcher) Do(ctx context.Context, command Command) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	w := b.waiter(command)
	if err := b.push(w); err != nil {
		b.giveBack(w)
		return Result{}, err
	}
	return b.await(ctx, w)
}

// DoAll queues many commands in the order given, all or none of them, and waits for every answer; Fault tells of each
// what the error of Do would have. Others' commands may come between.
func (b *Batcher) DoAll(ctx context.Context, commands []Command) []Result {
	results := make([]Result, len(commands))
	waiters := make([]*waiter, len(commands))
	for i, c := range commands {
		waiters[i] = b.waiter(c)
	}
	if err := b.push(waiters...); err != nil {
		for i, w := range waiters {
			b.giveBack(w)
			results[i].Fault = fault.Of(err)
		}
		return results
	}
	for i, w := range waiters {
		r, err := b.await(ctx, w)
		if r.Fault == nil && err != nil {
			r.Fault = fault.Of(err)
		}
		results[i] = r
	}
	return results
}

// Stats are the figures so far.
func (b *Batcher) Stats() BatcherStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Queue = b.length
	return s
}

// Close refuses new commands, has those that wait applied and ends the batcher. Where ctx ends before, what still waits
// is answered busy without being run, and the running Apply is cancelled. It may be called more than once.
func (b *Batcher) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closing = true
	b.mu.Unlock()
	b.nudge()
	select {
	case <-b.ended:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	b.aborted = true
	b.mu.Unlock()
	b.cancel()
	return ctx.Err()
}

func (b *Batcher) waiter(command Command) *waiter {
	w := b.waiters.Get().(*waiter)
	w.command = command
	w.state.Store(waiterQueued)
	return w
}

func (b *Batcher) giveBack(w *waiter) {
	w.command, w.result, w.err = nil, Result{}, nil
	b.waiters.Put(w)
}

func (b *Batcher) nudge() {
	select {
	case b.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}

func (b *Batcher) push(waiters ...*waiter) error {
	for _, w := range waiters {
		if n := w.command.SeatCount(); n > BatchSeatsMax {
			return fault.New(fault.Invalid, "one command may name %d seats, this one names %d", BatchSeatsMax, n)
		}
	}
	b.mu.Lock()
	if b.closing || b.length+len(waiters) > len(b.ring) {
		b.stats.Shed += int64(len(waiters))
		b.mu.Unlock()
		return &fault.Error{Code: fault.Busy, RetryAfter: b.options.RetryAfter}
	}
	for _, w := range waiters {
		b.ring[(b.head+b.length)%len(b.ring)] = w
		b.length++
	}
	b.mu.Unlock()
	b.nudge()
	return nil
}

func (b *Batcher) await(ctx context.Context, w *waiter) (Result, error) {
	select {
	case <-w.done:
	case <-ctx.Done():
		if w.state.CompareAndSwap(waiterQueued, waiterAbandoned) {
			return Result{}, ctx.Err() // the batcher gives the waiter back when it comes to it
		}
		if w.state.CompareAndSwap(waiterTaken, waiterDeserted) {
			return Result{}, fault.Wrap(fault.OutcomeUnknown, ctx.Err())
		}
		<-w.done // it was answered meanwhile
	}
	result, err := w.result, w.err
	b.giveBack(w)
	if err == nil && result.Fault != nil {
		err = result.Fault
	}
	return result, err
}

func (b *Batcher) run(ctx context.Context) {
	defer close(b.ended)
	defer b.cancel()
	for {
		batch, finished := b.take()
		switch {
		case finished:
			return
		case len(batch) == 0:
			<-b.wake
			// Callers who were answered together come back together: let those that are ready to run queue first, so
			// that one batch serves them. This waits for nobody.
			runtime.Gosched()
		default:
			b.applyHalving(ctx, batch)
			runtime.Gosched()
		}
	}
}

// take moves the commands of the next batch out of the queue. finished says that there will be none.
func (b *Batcher) take() (batch []*waiter, finished bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.length > 0 {
		batch = make([]*waiter, 0, min(b.length, BatchCommandsMax))
	}
	seats := 0
	for b.length > 0 && len(batch) < BatchCommandsMax {
		w := b.ring[b.head]
		count := w.command.SeatCount()
		if seats+count > BatchSeatsMax {
			break
		}
		b.ring[b.head] = nil
		b.head = (b.head + 1) % len(b.ring)
		b.length--
		if !w.state.CompareAndSwap(waiterQueued, waiterTaken) {
			b.stats.Abandoned++
			b.giveBack(w)
			continue
		}
		if b.aborted {
			b.stats.Shed++
			b.answer(w, Result{}, &fault.Error{Code: fault.Busy, RetryAfter: b.options.RetryAfter})
			continue
		}
		seats += count
		batch = append(batch, w)
	}
	return batch, b.closing && b.length == 0 && len(batch) == 0
}

// applyHalving applies a batch; where the ledger fails on it, each half on its own, until the guilty command alone fails
// (A2). The halves run in order, so the answers are still those of the commands run one by one.
func (b *Batcher) applyHalving(ctx context.Context, batch []*waiter) {
	guilty := 0 // commands that failed alone since anything last succeeded
	pending := [][]*waiter{batch}
	for len(pending) > 0 {
		part := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if guilty >= guiltyMax {
			b.answerAll(part, fault.Wrap(fault.Internal, errors.New("not tried: the ledger failed every command before")))
			continue
		}
		err := b.apply(ctx, part)
		var broken *InvariantError
		switch {
		case err == nil:
			guilty = 0
		case errors.Is(err, ErrOutcomeUnknown):
			b.options.Logger.Error("the outcome of a batch is unknown", "commands", len(part), "error", err)
			b.tellUnknown()
			b.answerAll(part, fault.Wrap(fault.OutcomeUnknown, err))
		case fault.CodeOf(err) == fault.Busy: // the ledger cannot write at all (a full disk, away, too slow): no command is guilty of that
			b.options.Logger.Error("the ledger refuses every batch", "commands", len(part), "error", err)
			b.answerAll(part, fault.Of(err))
		case len(part) > 1:
			half := len(part) / 2
			pending = append(pending, part[half:], part[:half])
		case errors.As(err, &broken):
			b.stop(ctx, broken)
			b.answerAll(part, fault.Wrap(fault.Internal, err))
		default:
			guilty++
			b.options.Logger.Error("a command fails in the ledger", "command", fmt.Sprintf("%T", part[0].command), "error", err)
			b.answerAll(part, fault.Wrap(fault.Internal, err))
		}
	}
}

// apply applies one part of a batch and, where it commits, tells the listeners and answers the callers.
func (b *Batcher) apply(ctx context.Context, part []*waiter) error {
	// A slice of its own each time: a ledger may keep it.
	commands := make([]Command, len(part))
	for i, w := range part {
		commands[i] = w.command
	}
	done, err := b.commit(ctx, commands)
	if err != nil {
		return err
	}
	for i, w := range part {
		b.answer(w, done.Results[i], nil)
	}
	return nil
}

// commit calls the ledger, counts, and tells the listeners of what was committed.
func (b *Batcher) commit(ctx context.Context, commands []Command) (Batch, error) {
	start := b.options.Now()
	limited, cancel := context.WithTimeout(ctx, b.options.ApplyMax)
	defer cancel()
	done, err := b.ledger.Apply(limited, commands)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = b.tooLate(err)
	}
	if err == nil && len(done.Results) != len(commands) {
		// It committed, but what it did to whom cannot be said.
		err = fmt.Errorf("%w: %d answers to %d commands", ErrOutcomeUnknown, len(done.Results), len(commands))
	}
	took := b.options.Now().Sub(start)
	b.count(len(commands), took, err)
	if b.options.OnBatch != nil {
		b.options.OnBatch(BatchReport{Commands: len(commands), Took: took, Err: err})
	}
	if err != nil {
		return Batch{}, err
	}
	b.tell(func(l *Listener) {
		if l.Committed != nil {
			l.Committed(done)
		}
	})
	return done, nil
}

// tooLate is the error of an Apply whose time was up. Smaller batches would wait for the same ledger as long.
func (b *Batcher) tooLate(err error) error {
	var broken *InvariantError
	if errors.Is(err, ErrOutcomeUnknown) || errors.As(err, &broken) {
		return err
	}
	return &fault.Error{Code: fault.Busy, Detail: "the ledger takes too long", RetryAfter: b.options.RetryAfter, Cause: err}
}

// stop ends the sale of an event whose rows contradict each other (A6).
func (b *Batcher) stop(ctx context.Context, broken *InvariantError) {
	b.mu.Lock()
	b.stats.Invariants++
	b.mu.Unlock()
	b.options.Logger.Error("INVARIANT BROKEN: the event's sale is being stopped", "event", int64(broken.Event), "what", broken.What)
	done, err := b.commit(ctx, []Command{Stop{Event: broken.Event}})
	if err == nil && done.Results[0].Fault != nil {
		err = done.Results[0].Fault
	}
	if err != nil {
		b.options.Logger.Error("the event could not be stopped", "event", int64(broken.Event), "error", err)
		if errors.Is(err, ErrOutcomeUnknown) {
			b.tellUnknown()
		}
	}
	if b.options.OnInvariant != nil {
		b.options.OnInvariant(broken)
	}
}

func (b *Batcher) count(commands int, took time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.stats
	s.ApplyTime += took
	s.ApplyMax = max(s.ApplyMax, took)
	switch {
	case errors.Is(err, ErrOutcomeUnknown):
		s.Unknown++
	case err != nil:
		s.Failed++
	default:
		s.Batches++
		s.Commands += int64(commands)
		s.Sizes[min(bits.Len(uint(commands)), sizeClasses-1)]++
	}
}

func (b *Batcher) answerAll(part []*waiter, err error) {
	for _, w := range part {
		b.answer(w, Result{}, err)
	}
}

// answer hands a taken command's outcome to its caller, if that is still there.
func (b *Batcher) answer(w *waiter, result Result, err error) {
	w.result, w.err = result, err
	if w.state.CompareAndSwap(waiterTaken, waiterAnswered) {
		w.done <- struct{}{}
		return
	}
	b.giveBack(w)
}

// tell calls the listeners in the order in which they came.
func (b *Batcher) tell(say func(*Listener)) {
	b.listenMu.Lock()
	listeners := b.listeners
	b.listenMu.Unlock()
	for _, l := range listeners {
		say(l)
	}
}

func (b *Batcher) tellUnknown() {
	b.tell(func(l *Listener) {
		if l.Unknown != nil {
			l.Unknown()
		}
	})
}
