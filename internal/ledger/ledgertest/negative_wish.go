//go:build negativecontrol

package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"math"

	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// offeredWrongly is wrong where an offer was made.
func offeredWrongly(why string) func(*world, []ledger.Command) error {
	return func(w *world, tried []ledger.Command) error {
		if h := w.exists(tried[len(tried)-1].(ledger.Offer).Hold); h != nil {
			return fmt.Errorf("%s: hold %d of customer %d is %s", why, h.ID, h.Customer, h.State)
		}
		return nil
	}
}

// wishControls are those of the waitlist.
var wishControls = []control{
	{decide.GuardOfferReturned, func(w *world) []ledger.Command {
		w.paid(bob, 0)
		return []ledger.Command{w.offer(w.wished(alice, 1), 0)}
	}, broken},
	{decide.GuardOfferFits, func(w *world) []ledger.Command {
		w.returned(0, 1)
		c := w.wishFor(alice, 2)
		c.Wish.Categories = []int16{1}
		return []ledger.Command{w.offer(w.given(c).Wish, 0, 1)}
	}, offeredWrongly("A23: alice wished for another category")},
	{decide.GuardOneWish, func(w *world) []ledger.Command {
		w.wished(alice, 1)
		return []ledger.Command{w.wishFor(alice, 1)}
	}, func(w *world, _ []ledger.Command) error {
		waiting, err := w.ledger.Wishes(context.Background(), mainEvent, ledger.WishWaiting, ledger.WishCursor{}, math.MaxInt32)
		if err != nil {
			w.Fatal(err)
		}
		if len(waiting) != 1 {
			return fmt.Errorf("A23: alice waits %d times", len(waiting))
		}
		return nil
	}},
	{decide.GuardLineFirst, func(w *world) []ledger.Command {
		w.line()
		w.openLine(3)
		return []ledger.Command{ledger.SetReturns{Event: mainEvent, Returns: ledger.ReturnsWaitlist}}
	}, func(w *world, _ []ledger.Command) error {
		if e := w.snapshot(mainEvent).Event; e.Returns == ledger.ReturnsWaitlist {
			return errors.New("A23: three wait in the line, and freed seats go to the list")
		}
		return nil
	}},
	{decide.GuardOfferMax, func(w *world) []ledger.Command {
		w.returned(0)
		wish := w.wished(alice, 1)
		for range ledger.WishOffersMax {
			c := w.offer(wish, 0)
			w.given(c)
			w.given(ledger.Release{Hold: c.Hold, Customer: alice})
			if w.wishNow(wish.ID).Offers < ledger.WishOffersMax {
				w.given(ledger.SettleWish{Wish: wish.ID})
			}
		}
		return []ledger.Command{ledger.SettleWish{Wish: wish.ID}, w.offer(wish, 0)}
	}, offeredWrongly("A23: three offers were not taken")},
}
