package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/inventory"
)

// HoldsOptions say what `bench holds` does: so many buyers at once, each with one wish for hand-picked seats.
type HoldsOptions struct {
	Seats   int
	Buyers  int
	PerHold int // aligned groups of so many seats; what is left of the plan nobody wants
	Designs []string
	Runs    int
	Seed    uint64
	// Progress is called after every run. Defaults to nil.
	Progress func(Result)
}

// holdsDesigns are the designs of Holds.
var holdsDesigns = []string{Onsale, Conditional}

// connections is how many connections to PostgreSQL the conditional design has.
const connections = 50

// retryFirst and retryMost bound how long a shed request waits before it is made again, each time twice as long. A browser
// would wait for Retry-After (1 s) at once; here that would measure the waiting.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = time.Second
)

// A holder is a design as Holds sees it. hold answers the seats that were taken: none where the buyer won.
type holder interface {
	hold(ctx context.Context, customer id.ID, seats []int32) (taken []int32, err error)
}

// Holds measures every design, each on a fresh database of the host.
func (h *Host) Holds(ctx context.Context, o HoldsOptions) ([]Result, error) {
	switch {
	case o.PerHold < 1 || o.PerHold > PartyMax:
		return nil, fmt.Errorf("a hold has 1 to %d seats here, not %d", PartyMax, o.PerHold)
	case o.Seats < max(2, o.PerHold):
		return nil, fmt.Errorf("%d seats are too few", o.Seats)
	case o.Buyers < 1 || o.Buyers > BuyersMax:
		return nil, fmt.Errorf("1 to %d buyers, not %d", BuyersMax, o.Buyers)
	}
	if err := checkDesigns(o.Designs, holdsDesigns); err != nil {
		return nil, err
	}
	return repeat(ctx, o.Designs, o.Runs, o.Progress, func(ctx context.Context, design string) (Result, error) {
		r := Result{Bench: "holds", Design: design, Ledger: h.ledger, Seats: o.Seats, Machine: &h.Machine}
		at, err := h.fresh(ctx)
		if err != nil {
			return r, err
		}
		run := at.holdsOnsale
		if design == Conditional {
			run = at.holdsConditional
		}
		return r, errors.Join(run(ctx, o, &r), at.remove(ctx))
	})
}

// onsaleHolder is our own way of a hold.
type onsaleHolder struct {
	inventory *inventory.Service
	event     id.ID
	ids       *id.Generator
}

func (d onsaleHolder) hold(ctx context.Context, customer id.ID, seats []int32) ([]int32, error) {
	_, err := d.inventory.HoldSeats(ctx, inventory.Claim{ID: d.ids.MustNext(0), Event: d.event, Customer: customer}, seats)
	if f := fault.Of(err); f != nil && f.Code == fault.SeatsTaken && len(f.Seats) > 0 {
		return f.Seats, nil
	}
	return nil, err
}

func (p *place) holdsOnsale(ctx context.Context, o HoldsOptions, r *Result) (err error) {
	hall, err := newHall(o.Seats, PartyMax)
	if err != nil {
		return err
	}
	l, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	n, err := hall.node(ctx, l)
	if err != nil {
		return err
	}
	p.storm(ctx, o, onsaleHolder{n.inventory, hall.event.ID, hall.ids}, hall.ids, r)
	r.BoardRefused = n.inventory.Stats().BoardRefused
	if err := n.close(ctx); err != nil {
		return err
	}
	if err := p.claims(ctx, r); err != nil {
		return err
	}
	return p.audit(ctx, nil, r)
}

// A buyer is one of those who come at the opening.
type buyer struct {
	customer id.ID
	group    int32 // of seats
	took     time.Duration
}

// storm lets all buyers loose at once and fills in what they met.
func (p *place) storm(ctx context.Context, o HoldsOptions, d holder, ids *id.Generator, r *Result) {
	random := rand.New(rand.NewPCG(o.Seed, 1))
	buyers := make([]buyer, o.Buyers)
	for i := range buyers {
		buyers[i].customer = ids.MustNext(0) // signed in long before
		buyers[i].group = random.Int32N(int32(o.Seats / o.PerHold))
	}
	// A hundred thousand stacks belong to the buyers, not to what is measured: they are grown before the opening, as those
	// of connections that have been served before, and collected rarely. So it is for every design.
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	var won, lost, retries, errs atomic.Int64
	var ready, done sync.WaitGroup
	open := make(chan struct{})
	ready.Add(len(buyers))
	for i := range buyers {
		done.Go(func() {
			b := &buyers[i]
			seats := make([]int32, o.PerHold)
			for k := range seats {
				seats[k] = b.group*int32(o.PerHold) + int32(k)
			}
			growStack(i)
			ready.Done()
			<-open
			began := time.Now()
			taken, err := persist(ctx, d, b.customer, seats, &retries)
			b.took = time.Since(began)
			switch {
			case err != nil || !within(taken, seats):
				errs.Add(1)
			case len(taken) > 0:
				lost.Add(1)
			default:
				won.Add(1)
			}
		})
	}
	ready.Wait()
	cpu, began := p.host.cpu(), time.Now()
	close(open)
	done.Wait()
	r.Seconds, r.CPUSeconds = time.Since(began).Seconds(), cpu.seconds()
	r.Attempts, r.Won, r.Lost, r.Retries, r.Errors = int64(len(buyers)), won.Load(), lost.Load(), retries.Load(), errs.Load()
	times := make([]time.Duration, len(buyers))
	for i := range buyers {
		times[i] = buyers[i].took
	}
	r.P50MS, r.P99MS = percentiles(times)
}

const (
	gcPercent = 400
	stackSize = 6 << 10
)

// growStack makes room on the goroutine's stack.
//
//go:noinline
func growStack(i int) byte {
	var room [stackSize]byte
	return room[i%stackSize]
}

// persist makes a request until it is answered yes or no: one that is shed is made again.
func persist(ctx context.Context, d holder, customer id.ID, seats []int32, retries *atomic.Int64) (taken []int32, err error) {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		taken, err = d.hold(ctx, customer, seats)
		if fault.CodeOf(err) != fault.Busy {
			return taken, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		retries.Add(1)
		time.Sleep(wait/2 + rand.N(wait))
	}
}

// within says whether the seats that a loser was told of are ones that it asked for.
func within(taken, asked []int32) bool {
	for _, seat := range taken {
		if !slices.Contains(asked, seat) {
			return false
		}
	}
	return true
}
