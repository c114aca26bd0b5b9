package waitingroom

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"onsale/internal/id"
	"onsale/internal/keys"
	"onsale/internal/ledger"
)

// Limits of a service. What Options leave open defaults to these.
const (
	RoomsMax       = 4_096           // events whose rooms a node keeps in memory; the one asked for longest ago goes first
	JoinQueueMax   = 65_536          // joins that wait for the log (I13)
	JoinBatchMax   = 8_192           // joins that one Append takes
	JoinPatience   = 5 * time.Second // how long one join waits for store, log and ledger together
	SubscribersMax = 50_000          // streams of a node
	SessionsCached = 65_536          // sessions that the gate keeps for SessionFresh
	SessionFresh   = time.Second     // C9
	StatusEvery    = 250 * time.Millisecond
	FramesMax      = 8 // frames that wait for one stream; one that has more is dropped
	TokenBytesMax  = 1_024

	blockLeast = int64(256)     // numbers that one raise of the high-water mark allows, at least
	blockMost  = int64(1) << 18 // and at most: what a lost store makes void
)

// Options are what a Service is made of. Those without a default must be set.
type Options struct {
	Store  Store
	Log    Log
	Ledger Ledger
	Reader Reader
	Keys   Keys

	// ListKey is the secret of the published lists' entries: each event's own is made from it.
	ListKey []byte
	// Draw is an event's K: made once, sealed, and each read of it is logged. Whoever has it before the freeze could know
	// the order: it is asked for when a room opens for waiting (for its hash), and at the draw.
	Draw func(ctx context.Context, event id.ID) ([32]byte, error)
	// Beacon fetches public values. nil: they are entered by SetDrawValue.
	Beacon Beacon
	// Left is what is left of an event as far as this node's board knows; ok is false where it does not. nil: never known.
	Left func(event id.ID) (left Left, ok bool)
	// NewID makes a session's id for the shard of an event.
	NewID func(event id.ID) (id.ID, error)

	Issuer string // of admission tokens: this installation's public address
	Node   int    // this node's number, for its reports

	Leeway time.Duration // how long after its end an admission token is still looked at; defaults to 5 s
	Now    func() time.Time
	Logger *slog.Logger

	JoinQueueMax   int
	SubscribersMax int
	StatusEvery    time.Duration
}

// complete sets the defaults and says what is missing.
func (o *Options) complete() error {
	switch {
	case o.Store == nil, o.Log == nil, o.Ledger == nil, o.Reader == nil, o.Keys == nil:
		return errors.New("waiting room: store, log, ledger, reader and keys must be set")
	case o.Draw == nil, o.NewID == nil:
		return errors.New("waiting room: Draw and NewID must be set")
	case len(o.ListKey) < 16:
		return errors.New("waiting room: ListKey must have at least 16 bytes")
	case o.Issuer == "":
		return errors.New("waiting room: Issuer must be set")
	}
	setIfZero(&o.Leeway, 5*time.Second)
	setIfZero(&o.JoinQueueMax, JoinQueueMax)
	setIfZero(&o.SubscribersMax, SubscribersMax)
	setIfZero(&o.StatusEvery, StatusEvery)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}

func setIfZero[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// A Ledger takes commands, as a ledger.Batcher does: the error is nil exactly where the command has taken effect.
type Ledger interface {
	Do(ctx context.Context, c ledger.Command) (ledger.Result, error)
}

// A Reader is as much of a ledger.Reader as a waiting room reads.
type Reader interface {
	Event(ctx context.Context, event id.ID) (ledger.Event, error)
	Events(ctx context.Context) ([]ledger.Event, error)
	Now(ctx context.Context) (ledger.Time, error)
	// Room is an event's room; ledger.ErrNotFound where it has not been committed yet.
	Room(ctx context.Context, event id.ID) (ledger.Room, error)
	Session(ctx context.Context, session id.ID) (ledger.Session, error)
	// SessionOfNumber is the session that a number has entered by; ledger.ErrNotFound for none.
	SessionOfNumber(ctx context.Context, number ledger.SessionNumber) (ledger.Session, error)
	RoomFigures(ctx context.Context, event id.ID) (ledger.RoomFigures, error)
	// Calls are the steps of a lane since an instant, by time, at most max.
	Calls(ctx context.Context, event id.ID, lane string, since ledger.Time, max int) ([]ledger.Call, error)
}

// Keys are the keys of queue tickets and admission tokens, as a keys.Ring has them.
type Keys interface {
	Active(purpose keys.Purpose) (keys.Key, error)
	Find(ctx context.Context, purpose keys.Purpose, kid string) (keys.Key, error)
	Checking(purpose keys.Purpose) []keys.Key
}

// A Beacon fetches the public value of a source that was named beforehand.
type Beacon interface {
	// Value is the value and the instant at which it became public. ErrNoValue where it is not public yet, or where the
	// source is none that is fetched (an organizer enters it).
	Value(ctx context.Context, source string) (value string, public time.Time, err error)
}

// ErrNoValue says that a public value is not there yet.
var ErrNoValue = errors.New("the public value is not there yet")

// Left is what is left of an event, from a board.
type Left struct {
	Available  int  // seats and places that can be bought now
	Held       int  // in live holds, or promised: what may come back
	Gone       bool // nothing is left and nothing can come back: no live hold, no PENDING order (C11)
	Categories []CategoryLeft
}

// A CategoryLeft is one category of an event with a price.
type CategoryLeft struct {
	Category   int16
	Key        string // the plan's
	Available  int
	Capacity   int // seats and places of it that were ever for sale
	TotalMinor int64
	Name       string
}
