package ledgertest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

const (
	raceRounds  = 1000 // seats that are each wanted at once
	raceBuyers  = 50
	raceBatch   = 20 // rounds in one batch
	crossRounds = 40
)

// A crowd is a big event and several ways into its ledger.
type crowd struct {
	*world
	doors []ledger.Ledger
}

func newCrowd(t *testing.T, open Open, seats int) *crowd {
	w := newWorld(t, open)
	w.given(ledger.SetEvent{Event: bigEvent(3, seats), Layout: bigLayout(seats)})
	c := &crowd{world: w, doors: []ledger.Ledger{w.ledger}}
	if w.harness.Another != nil {
		another := w.harness.Another()
		t.Cleanup(func() {
			if err := another.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
		})
		c.doors = append(c.doors, another)
	}
	return c
}

// atOnce runs n goroutines, started together, each with a door of its own choice.
func (c *crowd) atOnce(n int, do func(i int, door ledger.Ledger) error) {
	c.Helper()
	var wait sync.WaitGroup
	begin := make(chan struct{})
	errs := make([]error, n)
	for i := range n {
		wait.Go(func() {
			<-begin
			errs[i] = do(i, c.doors[i%len(c.doors)])
		})
	}
	close(begin)
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			c.Fatalf("goroutine %d: %v", i, err)
		}
	}
}

func exerciseRaces(t *testing.T, open Open) {
	rounds := times(raceRounds)
	t.Run("I1: many at once for one seat in one batch, one winner each", func(t *testing.T) {
		c := newCrowd(t, open, rounds)
		winners := make([]int, rounds)
		for first := 0; first < rounds; first += raceBatch {
			var commands []ledger.Command
			for buyer := range raceBuyers {
				for seat := first; seat < first+raceBatch; seat++ {
					commands = append(commands, ledger.HoldSeats{
						ID: c.id(), Event: 3, Customer: id.ID(buyer + 200), Seats: []int32{int32(seat)},
					})
				}
			}
			batch, err := c.ledger.Apply(context.Background(), commands)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range batch.Results {
				countWin(t, winners, commands[i].(ledger.HoldSeats).Seats[0], r)
			}
		}
		c.oneWinnerEach(winners)
	})
	t.Run("I1: many goroutines at once for each seat, one winner each", func(t *testing.T) {
		c := newCrowd(t, open, rounds)
		var mu sync.Mutex
		winners := make([]int, rounds)
		c.atOnce(raceBuyers, func(buyer int, door ledger.Ledger) error {
			for first := 0; first < rounds; first += raceBatch {
				var commands []ledger.Command
				for k := range raceBatch {
					seat := int32(first + (k+buyer)%raceBatch) // each in another order
					commands = append(commands, ledger.HoldSeats{
						ID: id.ID(10_000 + buyer*rounds + int(seat)), Event: 3, Customer: id.ID(buyer + 200), Seats: []int32{seat},
					})
				}
				batch, err := door.Apply(context.Background(), commands)
				if err != nil {
					return err
				}
				mu.Lock()
				for i, r := range batch.Results {
					countWin(t, winners, commands[i].(ledger.HoldSeats).Seats[0], r)
				}
				mu.Unlock()
			}
			return nil
		})
		c.oneWinnerEach(winners)
	})
	t.Run("crossed pairs never deadlock, and one of each two wins", func(t *testing.T) {
		exerciseCrossed(t, open)
	})
	t.Run("I9: a customer at many doors never passes a limit", func(t *testing.T) {
		c := newCrowd(t, open, raceBuyers)
		c.setOf(3, func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 4}} })
		var mu sync.Mutex
		won := 0
		c.atOnce(raceBuyers, func(i int, door ledger.Ledger) error {
			r, err := applyOne(door, ledger.HoldSeats{ID: id.ID(10_000 + i), Event: 3, Customer: alice, Seats: []int32{int32(i)}})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if r.Fault == nil {
				won++
			} else if r.Fault.Code != fault.LimitReached {
				return r.Fault
			}
			return nil
		})
		c.same("places held", won, 4)
	})
	t.Run("I2: an area under storm is sold to its last place and no further", func(t *testing.T) {
		c := newCrowd(t, open, 1)
		var mu sync.Mutex
		won := 0
		c.atOnce(raceBuyers, func(i int, door ledger.Ledger) error {
			r, err := applyOne(door, ledger.HoldPlaces{ID: id.ID(10_000 + i), Event: mainEvent, Customer: id.ID(200 + i), Area: 0, Quantity: 1})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if r.Fault == nil {
				won++
			} else if r.Fault.Code != fault.PlacesTaken {
				return r.Fault
			}
			return nil
		})
		c.same("places held", won, 6)
		c.wantArea(0, 6, 0)
	})
	t.Run("I5: one key at many doors has one effect", func(t *testing.T) {
		c := newCrowd(t, open, raceBuyers)
		var mu sync.Mutex
		effects := map[id.ID]int{}
		c.atOnce(raceBuyers, func(i int, door ledger.Ledger) error {
			r, err := applyOne(door, ledger.HoldSeats{
				ID: id.ID(10_000 + i), Event: 3, Customer: alice, Seats: []int32{5}, Key: keyOf("k", "seats", "5"),
			})
			if err != nil {
				return err
			}
			if r.Fault != nil {
				return r.Fault
			}
			mu.Lock()
			defer mu.Unlock()
			effects[r.Hold.ID]++
			return nil
		})
		c.same("different holds", len(effects), 1)
	})
}

func applyOne(l ledger.Ledger, command ledger.Command) (ledger.Result, error) {
	batch, err := l.Apply(context.Background(), []ledger.Command{command})
	if err != nil {
		return ledger.Result{}, err
	}
	return batch.Results[0], nil
}

func countWin(t *testing.T, winners []int, seat int32, r ledger.Result) {
	switch {
	case r.Fault == nil:
		winners[seat]++
	case r.Fault.Code != fault.SeatsTaken || len(r.Fault.Seats) != 1 || r.Fault.Seats[0] != seat:
		t.Errorf("a loser of seat %d was told: %v, seats %v", seat, r.Fault, r.Fault.Seats)
	}
}

func (c *crowd) oneWinnerEach(winners []int) {
	c.Helper()
	for seat, n := range winners {
		if n != 1 {
			c.Errorf("seat %d has %d winners", seat, n)
		}
	}
	for seat, s := range c.snapshot(3).Seats {
		if s.State != ledger.Held {
			c.Errorf("seat %d is %s", seat, s.State)
		}
	}
}

// exerciseCrossed lets two sides want overlapping pairs in opposite orders, alone and in batches.
func exerciseCrossed(t *testing.T, open Open) {
	rounds := times(crossRounds)
	c := newCrowd(t, open, 2*rounds)
	var mu sync.Mutex
	won := make([]int, rounds)
	c.atOnce(8, func(side int, door ledger.Ledger) error {
		for k := range rounds {
			round := k
			if side%4 >= 2 {
				round = rounds - 1 - k
			}
			pair := []int32{int32(2 * round), int32(2*round + 1)}
			if side%2 == 1 {
				pair[0], pair[1] = pair[1], pair[0]
			}
			r, err := applyOne(door, ledger.HoldSeats{
				ID: id.ID(10_000 + side*rounds + round), Event: 3, Customer: id.ID(200 + side), Seats: pair,
			})
			if err != nil {
				return err
			}
			if r.Fault == nil {
				mu.Lock()
				won[round]++
				mu.Unlock()
			} else if r.Fault.Code != fault.SeatsTaken || len(r.Fault.Seats) != 2 {
				return fmt.Errorf("pair %d: %w, seats %v", round, r.Fault, r.Fault.Seats)
			}
		}
		return nil
	})
	for round, n := range won {
		if n != 1 {
			t.Errorf("pair %d has %d winners", round, n)
		}
	}
}
