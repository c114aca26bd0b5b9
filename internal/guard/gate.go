package guard

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// A Gate says who may join a line: who is not blocked, brings a proof of work, and shows to be a person where the evidence
// asks for that. Its methods may be called from many goroutines.
type Gate struct {
	Devices *Devices
	Prover  *Prover
	Passes  *Passes
	Watch   *Watch
	Blocks  *Blocks // nil: nobody is blocked
	Persons *Persons

	secrets Secrets
	base    int
	off     bool // asks nobody to be a person
	load    atomic.Uint64
}

// GateOptions are what a Gate is made of.
type GateOptions struct {
	Secrets Secrets
	Blocks  *Blocks  // nil: nobody is blocked
	Persons *Persons // nil: nobody is asked to be a person
	// Difficulty is the MaxNumber of a proof of work in quiet times. Defaults to DifficultyBase; 1 is for simulators on
	// throw-away instances.
	Difficulty int
	WatchKeys  int // Defaults to WatchKeysDefault
	Now        time.Time
}

// NewGate makes one.
func NewGate(o GateOptions) *Gate {
	if o.WatchKeys == 0 {
		o.WatchKeys = WatchKeysDefault
	}
	return &Gate{
		Devices: NewDevices(o.Secrets), Prover: NewProver(o.Secrets), Passes: NewPasses(o.Secrets), Watch: NewWatch(o.Now, o.WatchKeys),
		Blocks: o.Blocks, Persons: o.Persons, secrets: o.Secrets, base: o.Difficulty, off: o.Persons == nil,
	}
}

// SetLoad tells how busy the gate is: 0 quiet, 1 as much as it may bear. It makes proofs harder for everybody.
func (g *Gate) SetLoad(load float64) { g.load.Store(math.Float64bits(load)) }

// An Ask is what a page has to bring with a join.
type Ask struct {
	Proof  Challenge   `json:"proof"`
	Person *PersonTask `json:"person,omitempty"` // to be shown to a person
}

// Ask is what somebody who is going to join has to bring.
func (g *Gate) Ask(now time.Time, v Visit) Ask {
	s := g.Watch.Look(now, v)
	a := Ask{Proof: g.Prover.Challenge(now, v.Bind(), g.difficulty(s))}
	if !g.off && s.Step() == Person {
		task := g.Persons.Ask(now, v.Bind())
		a.Person = &task
	}
	return a
}

func (g *Gate) difficulty(s Signals) int {
	return Difficulty(Pressure{Base: g.base, Load: math.Float64frombits(g.load.Load()), Heat: s.Heat, Flagged: s.Step() != Nothing})
}

// least is how hard a proof must have been: that of a flagged one is a harder one also where it was asked for before there
// was anything to flag.
func (g *Gate) least(s Signals) int {
	if s.Step() == Nothing {
		return 1
	}
	return Difficulty(Pressure{Base: g.base, Flagged: true})
}

// Brought is what came with a join.
type Brought struct {
	Proof  string        // ALTCHA payload
	Pass   string        // of a person check passed before
	Person *PersonAnswer // nil for none
}

// Passed is what the gate answers who may join.
type Passed struct {
	Evidence Evidence // to be kept with what comes of it
	Pass     string   // new, where a person check was passed now; the page sends it with a repeat
}

// Join lets somebody join or says what is missing. A repeat with the same proof is let in again (C14).
//
// Faults: blocked; proof_required; person_required. After the last two Ask says what to bring.
func (g *Gate) Join(ctx context.Context, now time.Time, organizer id.ID, v Visit, b Brought) (Passed, error) {
	if g.Blocked(now, organizer, v) {
		return Passed{}, fault.New(fault.Blocked, "")
	}
	solved, err := g.Prover.Check(now, v.Bind(), b.Proof)
	if err != nil {
		return Passed{}, err
	}
	s := g.Watch.See(now, v)
	s.ProofFast = solved.TooFast()
	if solved.Max < g.least(s) {
		return Passed{}, fault.New(fault.ProofRequired, "a harder proof is needed; ask for another challenge")
	}
	p := Passed{Evidence: g.evidence(v, s)}
	if g.off || s.Step() != Person || g.Passes.Good(now, v.Bind(), b.Pass) {
		return p, nil
	}
	if b.Person == nil {
		return Passed{}, fault.New(fault.PersonRequired, "")
	}
	if err := g.Persons.Check(ctx, now, v.Bind(), v.Address, *b.Person); err != nil {
		if !errors.Is(err, ErrAway) {
			g.Watch.Replay(now, v)
		}
		return Passed{}, err
	}
	p.Pass = g.Passes.Issue(now, v.Bind())
	return p, nil
}

// Blocked says whether somebody is blocked from an organizer's events.
func (g *Gate) Blocked(now time.Time, organizer id.ID, v Visit) bool {
	return g.Blocks != nil && g.Blocks.Blocked(now, organizer, v.Customer, v.Mark.Device, v.Address)
}

// Seen is the evidence of a later step: a hold, a booking. It lets nobody in and keeps nobody out.
func (g *Gate) Seen(now time.Time, v Visit) Evidence { return g.evidence(v, g.Watch.See(now, v)) }
