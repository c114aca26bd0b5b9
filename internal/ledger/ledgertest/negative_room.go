//go:build negativecontrol

package ledgertest

import (
	"context"
	"fmt"

	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// enteredWrongly is wrong where the last Enter made a session.
func enteredWrongly(why string) func(*world, []ledger.Command) error {
	return func(w *world, tried []ledger.Command) error {
		c := tried[len(tried)-1].(ledger.Enter)
		if s, err := w.ledger.Session(context.Background(), c.Session); err == nil {
			return fmt.Errorf("%s: session %+v", why, s)
		}
		return nil
	}
}

// roomControls are those of the waiting room and of holds that are not paid.
var roomControls = []control{
	{decide.GuardSession, func(w *world) []ledger.Command {
		w.called(4, nil)
		w.pass(second)
		return []ledger.Command{w.holdSeats(alice, 0)}
	}, broken},
	{decide.GuardRate, func(w *world) []ledger.Command {
		w.called(4, func(e *ledger.Event) { e.Room.Rate = 1 })
		w.nextSecond()
		w.pass(second)
		w.entered(alice, 0)
		return []ledger.Command{w.enter(bob, 1)}
	}, broken},
	{decide.GuardActive, func(w *world) []ledger.Command {
		w.called(4, func(e *ledger.Event) { e.Room.ActiveMax = 1 })
		w.pass(second)
		w.entered(alice, 0)
		return []ledger.Command{w.enter(bob, 1)}
	}, broken},
	{decide.GuardNumberOnce, func(w *world) []ledger.Command {
		w.called(4, nil)
		s := w.entered(alice, 0)
		w.given(ledger.Leave{Session: s.ID, Customer: alice})
		return []ledger.Command{w.enter(alice, 0)}
	}, broken},
	{decide.GuardCalled, func(w *world) []ledger.Command {
		w.called(4, nil)
		w.given(ledger.RoomNumbers{Event: mainEvent, Lane: general, Upto: 10})
		return []ledger.Command{w.enter(alice, 7)}
	}, broken},
	{decide.GuardKnockOrder, func(w *world) []ledger.Command {
		w.called(4, func(e *ledger.Event) { e.Room.Rate = 1 })
		w.nextSecond()
		w.entered(alice, 3)
		w.apply(w.enter(bob, 0)) // refused for now, and remembered
		w.nextSecond()
		return []ledger.Command{w.enter(carol, 2)}
	}, enteredWrongly("C7: bob was called before and waits")},
	{decide.GuardCodeMax, func(w *world) []ledger.Command {
		w.roomed(1, nil)
		c := ledger.TakeCode{Event: mainEvent, Lane: general, Code: "c", Max: 1, Customer: alice}
		w.given(c)
		c.Customer = bob
		return []ledger.Command{c}
	}, func(w *world, _ []ledger.Command) error {
		if n, err := w.ledger.CodeUses(context.Background(), mainEvent, general, "c"); err != nil || n > 1 {
			return fmt.Errorf("C1: the code was used %d times, of at most 1 (%v)", n, err)
		}
		return nil
	}},
	{decide.GuardHoldRest, func(w *world) []ledger.Command {
		w.set(func(e *ledger.Event) { e.Holding = ledger.HoldingRule{UnpaidMax: 1, Rest: minute} })
		w.unpaid(alice, true, 0)
		return []ledger.Command{w.holdSeats(alice, 1)}
	}, unwanted("C15: alice has just let a hold go")},
}
