package ledgertest

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

const (
	roomRacers  = 12
	roomRacing  = 40 // claims of each
	roomRounds  = 15
	raceRate    = 7
	raceActive  = 25
	raceNumbers = 300
)

// newRush is a room in which everybody is called, with several ways into its ledger.
func newRush(t *testing.T, open Open, change func(e *ledger.Event)) *crowd {
	c := newCrowd(t, open, raceNumbers)
	c.called(raceNumbers, change)
	c.nextSecond()
	return c
}

// sessions are all of the main event.
func (c *crowd) sessions() []ledger.Session {
	c.Helper()
	all, err := c.ledger.Sessions(context.Background(), mainEvent, 0, math.MaxInt32)
	if err != nil {
		c.Fatal(err)
	}
	return all
}

// roomSound checks the room, and that holds were made in sessions.
func (c *crowd) roomSound(holds ...id.ID) {
	c.Helper()
	ctx := context.Background()
	s, err := readStock(ctx, c.ledger, holds, nil)
	if err != nil {
		c.Fatal(err)
	}
	for _, e := range s.events {
		if err := s.brokenRoom(ctx, c.ledger, e); err != nil {
			c.Errorf("event %d: %v", e.ID, err)
		}
	}
}

// claims makes a batch of claims of numbers from a first one on, each by a customer of its own.
func claims(racer, round int, numbers func(k int) int64) []ledger.Command {
	var commands []ledger.Command
	for k := range roomRacing {
		n := numbers(k)
		commands = append(commands, ledger.Enter{
			Session: id.ID(1_000_000 + (round*roomRacers+racer)*1000 + k), Event: mainEvent, Customer: id.ID(5000 + n), Lane: general, Number: n,
		})
	}
	return commands
}

func exerciseRoomRaces(t *testing.T, open Open) {
	t.Run("I10: at all doors together at most R enter in each second", func(t *testing.T) {
		c := newRush(t, open, func(e *ledger.Event) { e.Room.Rate = raceRate })
		for round := range roomRounds {
			var entered atomic.Int64
			c.atOnce(roomRacers, func(i int, door ledger.Ledger) error {
				batch, err := door.Apply(context.Background(), claims(i, round, func(k int) int64 { return int64((k*roomRacers + i + round) % raceNumbers) }))
				if err != nil {
					return err
				}
				for _, r := range batch.Results {
					if r.Fault == nil && !r.Repeat {
						entered.Add(1)
					}
					if r.Fault != nil && r.Fault.Code != fault.NextIn {
						return fmt.Errorf("refused with %w", r.Fault)
					}
				}
				return nil
			})
			if entered.Load() != raceRate {
				t.Errorf("%d entered in one second, R is %d and hundreds wait", entered.Load(), raceRate)
			}
			c.nextSecond()
		}
		c.roomSound()
	})
	t.Run("I10: at all doors together no more than ActiveMax are inside, and a number enters once", func(t *testing.T) {
		c := newRush(t, open, func(e *ledger.Event) { e.Room.ActiveMax = raceActive })
		for round := range roomRounds {
			c.atOnce(roomRacers, func(i int, door ledger.Ledger) error {
				batch, err := door.Apply(context.Background(), claims(i, round, func(k int) int64 { return int64((k*7 + round) % raceNumbers) }))
				if err != nil {
					return err
				}
				var leaving []ledger.Command
				for _, r := range batch.Results {
					if r.Session != nil && (int64(i)+r.Session.Number)%3 == 0 {
						leaving = append(leaving, ledger.Leave{Session: r.Session.ID, Customer: r.Session.Customer})
					}
				}
				_, err = door.Apply(context.Background(), leaving)
				return err
			})
			if inside := c.room().Inside; inside > raceActive {
				t.Errorf("%d are inside, of at most %d", inside, raceActive)
			}
			c.pass(ledger.Duration(100 * (round % 3)))
		}
		c.roomSound()
		if n := len(c.sessions()); n < raceActive {
			t.Errorf("only %d entered", n)
		}
	})
	t.Run("C6: at all doors together one step is made in each tick", func(t *testing.T) {
		c := newCrowd(t, open, 1)
		c.roomed(raceNumbers*1000, nil)
		for range roomRounds {
			c.pass(ledger.RoomTick)
			step := c.advance()
			var steps atomic.Int64
			c.atOnce(roomRacers, func(i int, door ledger.Ledger) error {
				mine := step
				mine.Report = ledger.RoomReport{Node: i, P99: 10, Holds: 1}
				batch, err := door.Apply(context.Background(), []ledger.Command{mine})
				if err == nil && batch.Results[0].Fault == nil && !batch.Results[0].Repeat {
					steps.Add(1)
				}
				return err
			})
			if steps.Load() != 1 {
				t.Errorf("%d steps in a tick", steps.Load())
			}
		}
		c.roomSound()
	})
	t.Run("C1: at all doors together a presale code is used so often", func(t *testing.T) {
		c := newCrowd(t, open, 1)
		c.roomed(1, nil)
		var taken, repeated atomic.Int64
		c.atOnce(roomRacers, func(i int, door ledger.Ledger) error {
			for k := range 10 {
				use := ledger.TakeCode{Event: mainEvent, Lane: general, Code: "c", Max: 20, Customer: id.ID(5000 + (i*10+k)%60)}
				batch, err := door.Apply(context.Background(), []ledger.Command{use})
				if err != nil {
					return err
				}
				switch r := batch.Results[0]; {
				case r.Repeat:
					repeated.Add(1)
				case r.Fault == nil:
					taken.Add(1)
				case r.Fault.Code != fault.CodeUsedUp:
					return r.Fault
				}
			}
			return nil
		})
		n, err := c.ledger.CodeUses(context.Background(), mainEvent, general, "c")
		if err != nil || n != 20 || taken.Load() != 20 {
			t.Errorf("%d uses, %d taken, %d repeated, %v", n, taken.Load(), repeated.Load(), err)
		}
	})
	t.Run("C9: holds, payments, leaving and steps at all doors leave the room as it is counted", func(t *testing.T) {
		c := newRush(t, open, func(e *ledger.Event) {
			e.Room.Stay = 2 * second
			e.HoldTTL, e.PaymentWindow = 3*second, 3*second
			e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 1}}
		})
		for round := range roomRounds {
			c.atOnce(roomRacers, func(i int, door ledger.Ledger) error {
				n := int64(round*roomRacers + i)
				base := id.ID(2_000_000 + n*100)
				commands := []ledger.Command{
					ledger.Enter{Session: base, Event: mainEvent, Customer: id.ID(5000 + n), Lane: general, Number: n},
					ledger.HoldPlaces{ID: base + 1, Event: mainEvent, Customer: id.ID(5000 + n), Area: 0, Quantity: 1, Session: base},
					ledger.BeginPayment{Order: base + 2, Hold: base + 1, Customer: id.ID(5000 + n), Provider: "p"},
					ledger.Advance{Event: mainEvent, Available: 100, Report: ledger.RoomReport{Node: -1}},
					ledger.Confirm{Order: base + 2, Currency: "EUR", Tickets: []id.ID{base + 3}, Refund: base + 4, RescueHold: base + 5},
					ledger.Leave{Session: base, Customer: id.ID(5000 + n)},
					ledger.Sweep{},
				}
				for k := 0; k < len(commands); k += 1 + i%3 {
					if _, err := door.Apply(context.Background(), commands[k:min(len(commands), k+1+i%3)]); err != nil {
						return err
					}
				}
				return nil
			})
			c.pass(second)
		}
		var holds []id.ID
		for n := range roomRounds * roomRacers {
			holds = append(holds, id.ID(2_000_000+n*100+1))
		}
		c.roomSound(holds...)
		if r := c.room(); r.Lanes[0].Entered != roomRounds*roomRacers {
			t.Errorf("%d entered", r.Lanes[0].Entered)
		}
	})
}
