// Package inventory stands in front of a shard's ledger while seats are being sold: it answers most questions from
// memory, finds the best free seats, and tells everyone who looks at a seat map what has changed.
//
// The one idea: a Board is a picture of an event's availability, kept by the ledger's changes. It is a filter and a view,
// never the truth. It says no only where it is sure (RULES B1), it never says yes: whatever it lets through, the ledger
// decides. So a board that lags, or is lost, costs a wasted question and never a seat.
//
// Start reading at Service.HoldSeats (hold.go), which is the way of one request; then board.go, and find.go for how the
// best seats are found. stream.go is the stream of changes, refresh.go what goes on in the background.
package inventory

import (
	"fmt"
	"log/slog"
	"time"

	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// Limits of this package.
const (
	FreshFor          = 2 * time.Second // how long after it last heard the ledger's version a board may say no (B1)
	LooksMax          = 8               // how often a best-available request looks for seats, having lost those it found
	TurnsMax          = 8               // how often a hand-picked request lets others who want its seats go first
	WaitersMax        = 131_072         // hand-picked requests of one node that wait for that at once (I13)
	SubscribersMax    = 20_000          // seat streams of one node, all events together (I13)
	FramesMax         = 64              // frames that wait for one slow subscriber before it is dropped
	RecentVersionsMax = 1024            // versions of which a board can tell the difference
	RecentSeatsMax    = 65_536          // seat changes that it keeps for that
	RefreshChangesMax = 512             // change rows read at once
	SweepMax          = 512             // expired holds that one Sweep ends
	SweepsMax         = 64              // Sweeps that one expiry sends, one after the other
	ReloadsMax        = 4               // snapshots taken in a row where the board's event moves on meanwhile

	// RefreshMax is how long the ledger may take to tell a board what has changed, and whoever waits for that: what comes
	// later than FreshFor is of no use.
	RefreshMax = 1500 * time.Millisecond
	// SnapshotMax is how long an event's whole picture may take in the background: a large hall must come through on a
	// slow day, and nobody waits for it.
	SnapshotMax = 10 * time.Second

	// sweepAgain is how long after a Sweep that left an expired hold behind the next is sent.
	sweepAgain = time.Second
	// clockMargin is how much the estimate of the ledger's clock may be behind: a hold that runs out within it is not a
	// sure no.
	clockMargin = ledger.Duration(250)
)

// Adjacency is how closely a party sits: as a wish the most relaxed step that will do, as an answer the step that was
// taken. Steps are tried in this order; the zero value wishes Anywhere.
type Adjacency uint8

// The steps, from strict to relaxed.
const (
	Together    Adjacency = iota + 1 // one run of neighbours
	SameRow                          // in one row, with others or an aisle between
	SameSection                      // in one section, in as few groups as may be
	Anywhere                         // in as few sections as may be, adjoining ones first
)

var adjacencyWords = [...]string{"", "together", "same_row", "same_section", "anywhere"}

// String is the step's word as the API says it.
func (a Adjacency) String() string { return adjacencyWords[a] }

// ParseAdjacency reads what String wrote; "" is Anywhere.
func ParseAdjacency(word string) (Adjacency, error) {
	for a := Together; a <= Anywhere; a++ {
		if word == a.String() {
			return a, nil
		}
	}
	if word == "" {
		return Anywhere, nil
	}
	return 0, fmt.Errorf("adjacency %q is not one of together, same_row, same_section, anywhere", word)
}

// OrphanMode says what becomes of a hand-picked choice that leaves a single seat alone.
type OrphanMode uint8

// The modes of the orphan rule.
const (
	OrphanOff    OrphanMode = iota
	OrphanWarn              // held, and told
	OrphanRefuse            // fault orphan_seat
)

// Rules are an event's settings about single seats. An orphan is a free seat whose neighbours are not free (or that has
// none, by breaks and row ends) and which had a free neighbour before.
type Rules struct {
	// HandPicked is what becomes of choices that leave an orphan. Best available avoids orphans in every mode.
	HandPicked OrphanMode
	// FewSeats lifts the rules while no more seats than this are free. Defaults to 2 % of the plan's; -1: never.
	FewSeats int
	// SplitReleaseBefore lifts the rules this long before the sale closes. Defaults to 24 h; -1: never.
	SplitReleaseBefore time.Duration
}

func (r Rules) withDefaults(layout *venue.Layout) Rules {
	if r.FewSeats == 0 {
		r.FewSeats = layout.SeatCount / 50
	}
	if r.SplitReleaseBefore == 0 {
		r.SplitReleaseBefore = 24 * time.Hour
	}
	return r
}

// Options are the settings of a Service. The zero value is good.
type Options struct {
	Now    func() time.Time // Defaults to time.Now
	Tick   Tick             // Defaults to time.NewTicker
	Logger *slog.Logger     // Defaults to slog.Default()

	RefreshEvery time.Duration // how often each board asks for others' changes. Defaults to 1 s; must be below FreshFor
	GatherEvery  time.Duration // how long changes are gathered for the stream (B3). Defaults to 100 ms
	BeatEvery    time.Duration // the stream's heartbeat (B2). Defaults to 1 s
	SweepEvery   time.Duration // the periodic sweep, a safety net. Defaults to 30 s
	ReleaseEvery time.Duration // how promptly an expired hold is released. Defaults to 100 ms

	NoPromptRelease bool // nothing's correctness depends on either of these
	NoSweep         bool

	LooksMax       int // Defaults to LooksMax
	WaitersMax     int // Defaults to WaitersMax
	SubscribersMax int // Defaults to SubscribersMax
}

// A Tick starts a ticker: ticks come on the channel until stop is called.
type Tick func(every time.Duration) (ticks <-chan time.Time, stop func())

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Tick == nil {
		o.Tick = func(every time.Duration) (<-chan time.Time, func()) {
			t := time.NewTicker(every)
			return t.C, t.Stop
		}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&o.RefreshEvery, time.Second}, {&o.GatherEvery, 100 * time.Millisecond}, {&o.BeatEvery, time.Second},
		{&o.SweepEvery, 30 * time.Second}, {&o.ReleaseEvery, 100 * time.Millisecond},
	} {
		if *d.value <= 0 {
			*d.value = d.fallback
		}
	}
	if o.LooksMax <= 0 {
		o.LooksMax = LooksMax
	}
	if o.WaitersMax <= 0 {
		o.WaitersMax = WaitersMax
	}
	if o.SubscribersMax <= 0 {
		o.SubscribersMax = SubscribersMax
	}
	return o
}
