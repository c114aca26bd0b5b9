package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"onsale/internal/fault"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

const (
	triesMax  = 5 // how often a batch begins anew after a conflict with another node
	roundsMax = 8 // how often it begins anew with more rows locked, before what still misses some is answered busy
	// rescanMax is how many rounds more the rest may need, whose rows nobody but the commands left out had to wait for.
	rescanMax = 8
	// backMax is how far the clock may go back before nothing is sold until it has caught up (A5).
	backMax = ledger.Time(1000)
	// margin is how much later than now a batch may be decided, when it guesses which holds' time will be up by then.
	margin = ledger.Time(2000)
	// rollbackMax is how long a ROLLBACK may take before its connection is given up.
	rollbackMax = 5 * time.Second
)

// errRaced says that another node made a row that was not there when it was looked for.
var errRaced = errors.New("another node was first")

// errBack says that the server's clock has gone back.
var errBack = errors.New("the server's clock has gone back")

// Apply implements ledger.Ledger. Where ctx ends while the batch commits, the outcome is unknown; while the database is
// away, the error is the fault busy.
func (l *Ledger) Apply(ctx context.Context, commands []ledger.Command) (ledger.Batch, error) {
	if err := bounds(commands); err != nil {
		return ledger.Batch{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ledger.Batch{}, errors.New("the ledger is closed")
	}
	b := newBatch(l, commands)
	for try := 1; ; try++ {
		batch, err := b.try(ctx)
		switch {
		case err == nil:
			return batch, nil
		case errors.Is(err, ledger.ErrOutcomeUnknown):
			return ledger.Batch{}, err
		case errors.Is(err, errBack):
			return b.allBusy("the database's clock has gone back"), nil
		case sqlState(err) == "55P03": // lock_timeout: somebody holds a row for very long
			l.log.Error("a batch waited too long for a lock", "commands", len(commands), "error", err)
			return b.allBusy("rows are locked by another node"), nil
		case ctx.Err() != nil || !worthAnother(err):
			return ledger.Batch{}, err
		case try == triesMax:
			return ledger.Batch{}, away(err)
		}
	}
}

func bounds(commands []ledger.Command) error {
	if len(commands) > ledger.BatchCommandsMax {
		return fmt.Errorf("a batch has at most %d commands, not %d", ledger.BatchCommandsMax, len(commands))
	}
	seats := 0
	for _, c := range commands {
		seats += c.SeatCount()
	}
	if len(commands) > 1 && seats > ledger.BatchSeatsMax {
		return fmt.Errorf("a batch names at most %d seats, not %d", ledger.BatchSeatsMax, seats)
	}
	return nil
}

func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// worthAnother says whether a batch of which nothing was committed may succeed when it is tried again at once.
func worthAnother(err error) bool {
	switch sqlState(err) {
	case "40001", "40P01":
		return true
	}
	var lost *lostError
	return errors.Is(err, errRaced) || errors.As(err, &lost)
}

// A lostError is the loss of a connection before COMMIT was sent, or that none was to be had.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// away says, where connections were lost again and again, that no command is guilty of it: the whole batch is busy.
func away(err error) error {
	var lost *lostError
	if !errors.As(err, &lost) {
		return err
	}
	return &fault.Error{Code: fault.Busy, Detail: "the database is away", RetryAfter: time.Second, Cause: err}
}

// A batch is one Apply under way.
type batch struct {
	l        *Ledger
	commands []ledger.Command
	results  []ledger.Result
	run      []int // the commands that are to be decided
	round    int
	missed   wants // what the rounds before found missing
}

func newBatch(l *Ledger, commands []ledger.Command) *batch {
	b := &batch{l: l, commands: commands, results: make([]ledger.Result, len(commands)), missed: newWants()}
	for i, c := range commands {
		if err := decide.CheckText(c); err != nil {
			b.results[i].Fault = fault.Of(err)
			continue
		}
		b.run = append(b.run, i)
	}
	return b
}

// allBusy answers every command that was not answered before.
func (b *batch) allBusy(why string) ledger.Batch {
	for _, i := range b.run {
		b.results[i] = ledger.Result{Fault: &fault.Error{Code: fault.Busy, Detail: why, RetryAfter: time.Second}}
	}
	return ledger.Batch{Now: b.l.reader.last(), Results: b.results}
}

// try decides the batch in as many rounds as it needs, each a transaction of its own of which the last commits.
func (b *batch) try(ctx context.Context) (ledger.Batch, error) {
	conn, err := b.l.writing.Acquire(ctx)
	if err != nil {
		return ledger.Batch{}, &lostError{err}
	}
	defer conn.Release()
	for b.round = 1; len(b.run) > 0 && b.round <= roundsMax+rescanMax; b.round++ {
		t := &transaction{l: b.l, conn: conn.Conn(), batch: b}
		done, err := t.apply(ctx)
		if err == nil {
			return done, nil
		}
		if errors.Is(err, ledger.ErrOutcomeUnknown) {
			return ledger.Batch{}, err
		}
		if lost := t.rollback(ctx); lost != nil && !errors.Is(err, decide.ErrMissing) {
			return ledger.Batch{}, &lostError{errors.Join(err, lost)}
		} else if lost != nil {
			return ledger.Batch{}, &lostError{lost}
		}
		if !errors.Is(err, decide.ErrMissing) {
			return ledger.Batch{}, err
		}
		if b.round >= roundsMax {
			b.leaveOut(t.work.Missed)
		}
	}
	return b.allBusy("too many rows changed meanwhile"), nil
}

// leaveOut answers commands busy whose rows change faster than they can be locked, and lets the rest run.
func (b *batch) leaveOut(missed []int) {
	out := make(set[int], len(missed))
	for _, k := range missed {
		out.add(k)
		b.results[b.run[k]].Fault = &fault.Error{Code: fault.Busy, Detail: "its rows change too fast", RetryAfter: time.Second}
	}
	rest := b.run[:0:0]
	for k, i := range b.run {
		if !out.has(k) {
			rest = append(rest, i)
		}
	}
	b.run = rest
}

func (b *batch) running() []ledger.Command {
	if len(b.run) == len(b.commands) {
		return b.commands
	}
	list := make([]ledger.Command, len(b.run))
	for k, i := range b.run {
		list[k] = b.commands[i]
	}
	return list
}

// A transaction is one round of a batch.
type transaction struct {
	l     *Ledger
	conn  *pgx.Conn
	batch *batch
	begun bool

	now    ledger.Time
	set    *lockset
	source *source
	work   *decide.Work
}

// settings hold for one transaction, so that they hold behind PgBouncer too. A generic plan is made once a connection,
// without statistics; with these it can only go by the primary keys.
const settings = `SELECT set_config('synchronous_commit', 'on', true), set_config('plan_cache_mode', 'force_generic_plan', true),
 set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
 set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true), set_config('lock_timeout', '10s', true),
 set_config('idle_in_transaction_session_timeout', '20s', true)`

// pipeline begins the transaction with the first statements that are sent.
func (t *transaction) pipeline() *pipeline {
	p := t.l.pipeline()
	if !t.begun {
		t.begun = true
		p.exec(`BEGIN ISOLATION LEVEL READ COMMITTED`)
		p.exec(settings)
	}
	return p
}

func (t *transaction) apply(ctx context.Context) (ledger.Batch, error) {
	commands := t.batch.running()
	t.source = newSource(ctx, t)
	if err := t.learn(ctx, commands); err != nil {
		return ledger.Batch{}, err
	}
	if t.l.beforeLock != nil {
		t.l.beforeLock()
	}
	if err := t.lock(ctx); err != nil {
		return ledger.Batch{}, err
	}
	if err := t.clock(); err != nil {
		return ledger.Batch{}, err
	}
	t.work = decide.New(t.source, t.now)
	results, err := t.work.Run(commands)
	if err == nil && t.source.guessed {
		err = decide.ErrMissing
	}
	if err != nil {
		return ledger.Batch{}, err
	}
	done := ledger.Batch{Now: t.now, Results: t.batch.results, Changes: t.work.Out.Changes}
	if wrote, err := t.write(ctx); err != nil {
		return ledger.Batch{}, err
	} else if !wrote {
		// Nothing was changed: there is nothing to wait for.
		if err := t.rollback(ctx); err != nil {
			return ledger.Batch{}, &lostError{err}
		}
	} else if err := t.commit(ctx); err != nil {
		return ledger.Batch{}, err
	}
	for k, i := range t.batch.run {
		done.Results[i] = results[k]
	}
	t.l.facts.committed(&t.work.Out)
	return done, nil
}

// clock judges the time that was read after the locks.
func (t *transaction) clock() error {
	if t.l.options.Now != nil {
		t.now = t.l.options.Now()
	}
	last := t.l.reader.last()
	if t.now < last-backMax {
		t.l.log.Error("the database's clock has gone back: nothing is sold until it has caught up",
			"clock", t.now.Std(), "was", last.Std())
		return errBack
	}
	t.now = max(t.now, last)
	t.l.reader.saw(t.now)
	return nil
}

// commit makes it durable. Only the server's plain refusal means that it is not; a FATAL one may come after the fact.
func (t *transaction) commit(ctx context.Context) error {
	if t.l.beforeCommit != nil {
		t.l.beforeCommit()
	}
	t.l.statements.Add(1)
	t.l.unsure.Store(false)
	t.begun = false
	tag, err := t.conn.Exec(ctx, `COMMIT`)
	var refused *pgconn.PgError
	switch {
	case err == nil && tag.String() != "COMMIT":
		return fmt.Errorf("the server answered COMMIT with %s", tag)
	case err == nil && t.l.unsure.Load():
		return fmt.Errorf("%w: the server stopped waiting for the copy on its standby", ledger.ErrOutcomeUnknown)
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR":
		return err
	}
	return fmt.Errorf("%w: %w", ledger.ErrOutcomeUnknown, err)
}

// rollback ends a transaction that was not committed. An error means that the connection is gone, and with it the
// transaction.
func (t *transaction) rollback(ctx context.Context) error {
	if !t.begun {
		return nil
	}
	t.begun = false
	if t.conn.IsClosed() {
		return errors.New("the connection to the database was lost")
	}
	t.l.statements.Add(1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackMax)
	defer cancel()
	_, err := t.conn.Exec(ctx, `ROLLBACK`)
	if err != nil {
		_ = t.conn.Close(ctx) // the server rolls back what has no connection
	}
	return err
}
