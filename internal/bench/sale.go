package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/booking"
	"onsale/internal/fault"
	"onsale/internal/inventory"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/instant"
)

// SaleOptions say what `bench sale` does: callers hold best available seats, pay and get their tickets, until nothing is
// left.
type SaleOptions struct {
	Seats   int
	Callers int // customers under way at once; each is followed by the next
	Party   int // seats of each
	Designs []string
	Runs    int
	// Progress is called after every run. Defaults to nil.
	Progress func(Result)
}

// saleDesigns are the designs of Sale.
var saleDesigns = []string{Onsale, Bare}

// Sale measures every design, each on a fresh database of the host.
func (h *Host) Sale(ctx context.Context, o SaleOptions) ([]Result, error) {
	switch {
	case o.Party < 1 || o.Party > PartyMax:
		return nil, fmt.Errorf("a party has 1 to %d seats here, not %d", PartyMax, o.Party)
	case o.Seats < max(2, o.Party):
		return nil, fmt.Errorf("%d seats are too few", o.Seats)
	case o.Callers < 1 || o.Callers > CallersMax:
		return nil, fmt.Errorf("1 to %d callers, not %d", CallersMax, o.Callers)
	}
	if err := checkDesigns(o.Designs, saleDesigns); err != nil {
		return nil, err
	}
	return repeat(ctx, o.Designs, o.Runs, o.Progress, func(ctx context.Context, design string) (Result, error) {
		r := Result{Bench: "sale", Design: design, Ledger: h.ledger, Seats: o.Seats, Machine: &h.Machine}
		at, err := h.fresh(ctx)
		if err != nil {
			return r, err
		}
		run := at.saleOnsale
		if design == Bare {
			run = at.saleBare
		}
		return r, errors.Join(run(ctx, o, &r), at.remove(ctx))
	})
}

func (p *place) saleOnsale(ctx context.Context, o SaleOptions, r *Result) (err error) {
	hall, err := newHall(o.Seats, o.Party)
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
	provider := instant.New(nil)
	s := &sale{hall: hall, inventory: n.inventory, party: o.Party, booking: booking.New(booking.Options{
		Shard: n.batcher, Webhooks: n.ledger, Provider: provider, IDs: hall.ids, TalksMax: o.Callers,
	})}
	p.sell(ctx, o, s, r)
	if err := errors.Join(n.close(ctx), s.failure()); err != nil {
		return err
	}
	if err := p.claims(ctx, r); err != nil {
		return err
	}
	var books payment.Lister = provider
	return p.audit(ctx, books, r)
}

// A sale is under way.
type sale struct {
	hall      *hall
	inventory *inventory.Service
	booking   *booking.Service
	party     int

	paid, noSeats, retries, errs atomic.Int64
	first                        atomic.Pointer[error]
}

// sell lets the callers buy until nothing is left, and fills in what they met.
func (p *place) sell(ctx context.Context, o SaleOptions, s *sale, r *Result) {
	var mu sync.Mutex
	times := make([]time.Duration, 0, o.Seats/o.Party+1)
	var done sync.WaitGroup
	open := make(chan struct{})
	for range o.Callers {
		done.Go(func() {
			var own []time.Duration
			<-open
			for {
				began := time.Now()
				if !s.one(ctx) {
					break
				}
				own = append(own, time.Since(began))
			}
			mu.Lock()
			times = append(times, own...)
			mu.Unlock()
		})
	}
	cpu, began := p.host.cpu(), time.Now()
	close(open)
	done.Wait()
	r.Seconds, r.CPUSeconds = time.Since(began).Seconds(), cpu.seconds()
	r.Won, r.Lost, r.Retries, r.Errors = s.paid.Load(), s.noSeats.Load(), s.retries.Load(), s.errs.Load()
	r.Attempts = r.Won + r.Lost + r.Errors
	r.BoardRefused = r.Lost // nothing is left: the board knows
	r.P50MS, r.P99MS = percentiles(times)
}

// one is one customer, from the wish to the tickets; false where there are no seats any more.
func (s *sale) one(ctx context.Context) bool {
	customer := s.hall.ids.MustNext(0)
	held, err := s.hold(ctx, inventory.Claim{ID: s.hall.ids.MustNext(0), Event: s.hall.event.ID, Customer: customer})
	switch fault.CodeOf(err) {
	case fault.SoldOut, fault.NoSeatsFound:
		s.noSeats.Add(1)
		return false
	}
	if err == nil {
		var o booking.Booked
		o, err = s.booking.Book(ctx, booking.Request{Customer: customer, Hold: held.Hold.ID, Token: "tok_bench"})
		if err == nil && (o.State != ledger.OrderPaid || len(o.Tickets) != s.party) {
			err = fmt.Errorf("a booking is %s with %d tickets", o.State, len(o.Tickets))
		}
	}
	if err != nil {
		s.errs.Add(1)
		s.first.CompareAndSwap(nil, &err)
		return ctx.Err() == nil && s.errs.Load() < errorsMax
	}
	s.paid.Add(1)
	return true
}

// errorsMax is how many errors end a sale: it would not end otherwise where every one fails.
const errorsMax = 1000

func (s *sale) hold(ctx context.Context, claim inventory.Claim) (inventory.Held, error) {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		held, err := s.inventory.HoldBest(ctx, claim, inventory.Wish{Quantity: s.party, Category: -1, Section: -1, Adjacency: inventory.Anywhere})
		if fault.CodeOf(err) != fault.Busy {
			return held, err
		}
		s.retries.Add(1)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return held, ctx.Err()
		}
	}
}

// failure is the first error that a customer met.
func (s *sale) failure() error {
	if err := s.first.Load(); err != nil {
		return fmt.Errorf("%d sales failed, the first one: %w", s.errs.Load(), *err)
	}
	return nil
}
