package ledgertest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// shopRounds is how many tickets are fought over, each by several at once.
const shopRounds = 30

// A fight is over something that may be done once with a ticket.
type fight struct {
	name   string
	tries  func(w *world, o *ledger.Order) []ledger.Command       // what is tried at once with the ticket of an order
	losing []fault.Code                                           // with which losers are refused
	won    func(w *world, o *ledger.Order, winner ledger.Command) // what must be true afterwards
}

// exerciseShopRaces sells tickets, and lets several at once, through all doors, each in its own order, do to every one of them what
// may be done once.
func exerciseShopRaces(t *testing.T, open Open) {
	for _, f := range fights {
		t.Run(f.name, func(t *testing.T) { f.run(t, open) })
	}
}

func (f fight) run(t *testing.T, open Open) {
	rounds := times(shopRounds)
	c := newCrowd(t, open, 2*rounds)
	c.setOf(3, func(e *ledger.Event) {
		e.Refunds = ledger.RefundRule{Until: shopUntil, FeeBP: 1000, FeePlace: 100}
		e.Exchanges, e.Transfers = ledger.ExchangeRule{Until: shopUntil}, ledger.TransferRule{Until: shopUntil}
	})
	var orders []*ledger.Order
	var tries [][]ledger.Command
	for i := range rounds {
		hold := c.holdSeats(id.ID(200+i), int32(2*i))
		hold.Event = 3
		orders = append(orders, c.confirmed(c.pending(c.given(hold).Hold)))
		tries = append(tries, f.tries(c.world, orders[i]))
	}
	sides := len(tries[0])
	results := make([][]ledger.Result, rounds)
	for i := range results {
		results[i] = make([]ledger.Result, sides)
	}
	var mu sync.Mutex
	c.atOnce(sides, func(side int, door ledger.Ledger) error {
		for k := range rounds {
			round := (k + side*rounds/sides) % rounds
			if side%2 == 1 {
				round = rounds - 1 - round
			}
			r, err := applyOne(door, tries[round][side])
			if err != nil {
				return err
			}
			mu.Lock()
			results[round][side] = r
			mu.Unlock()
		}
		return nil
	})
	for i := range rounds {
		f.won(c.world, orders[i], f.winner(c.world, tries[i], results[i]))
	}
	c.sound()
}

// winner is the one try that had its effect. All others were refused as they may be, or answered as a repeat of it.
func (f fight) winner(w *world, tries []ledger.Command, results []ledger.Result) ledger.Command {
	w.Helper()
	var winner ledger.Command
	for side, r := range results {
		if c, ok := tries[side].(ledger.HoldSeats); ok {
			w.book.holds[c.ID] = true // it was made past the book
		}
		failed := r.Order != nil && r.Order.State == ledger.OrderFailed
		switch {
		case r.Fault != nil && !slices.Contains(f.losing, r.Fault.Code):
			w.Fatalf("%s lost by %v", describe(tries[side]), r.Fault)
		case r.Fault != nil || r.Repeat || failed:
		case winner != nil:
			w.Fatalf("both %s and %s won", describe(winner), describe(tries[side]))
		default:
			winner = tries[side]
		}
	}
	if winner == nil {
		w.Fatalf("nobody won: %+v", results)
	}
	return winner
}

// exchangePending is an order that is to exchange all tickets of another for the seat beside it, with nothing due.
func exchangePending(w *world, o *ledger.Order) *ledger.Order {
	c := w.exchange(o, nil, w.orderNow(o.ID).Tickets[0].Seat+1)
	c.Event = o.Event
	return w.pending(w.given(c).Hold)
}

func oneRefund(w *world, o *ledger.Order) {
	w.Helper()
	tickets := 0
	for _, r := range w.refundsOf(o.ID) {
		tickets += len(r.Tickets)
	}
	w.same("tickets in refunds", tickets, 1)
}

var fights = []fight{
	{
		"A21: parallel partial refunds of one ticket refund it once",
		func(w *world, o *ledger.Order) (tries []ledger.Command) {
			for i := range 4 {
				tries = append(tries, w.refund(o, o.Tickets[0].ID), w.refundBy(o, int64(i), o.Tickets[0].ID))
			}
			return tries
		}, []fault.Code{fault.Conflict},
		func(w *world, o *ledger.Order, winner ledger.Command) {
			oneRefund(w, o)
			w.same("whose", w.refundsOf(o.ID)[0].ID, winner.(ledger.BeginRefund).IDs[0])
			w.same("what is promised", w.paymentsOf(o.ID)[0].Promised, w.refundsOf(o.ID)[0].Amount)
		},
	},
	{
		"A22: holds that want to exchange the same ticket",
		func(w *world, o *ledger.Order) (tries []ledger.Command) {
			for range 4 {
				c := w.exchange(o, nil, w.orderNow(o.ID).Tickets[0].Seat+1)
				c.Event = 3
				tries = append(tries, c, w.refund(o), w.transfer(o.Tickets[0], bob))
			}
			return tries
		}, []fault.Code{fault.Conflict},
		func(w *world, o *ledger.Order, winner ledger.Command) {
			seat := w.snapshot(3).Seats[w.orderNow(o.ID).Tickets[0].Seat+1]
			_, held := winner.(ledger.HoldSeats)
			w.same("the seat wanted for it is held", seat.State == ledger.Held, held)
		},
	},
	{
		"A22: two cannot use a ticket and swap it",
		func(w *world, o *ledger.Order) []ledger.Command {
			return []ledger.Command{w.pay(exchangePending(w, o), ""), w.checkIn(o.Tickets[0])}
		}, []fault.Code{fault.TicketVoid},
		func(w *world, o *ledger.Order, winner ledger.Command) {
			_, used := winner.(ledger.CheckIn)
			w.same("the ticket is used", w.ticketNow(o.Tickets[0].ID).State == ledger.TicketUsed, used)
		},
	},
	{
		"E6: of many check-ins at once one lets in",
		func(w *world, o *ledger.Order) (tries []ledger.Command) {
			for i := range 6 {
				c := w.checkIn(o.Tickets[0])
				c.Device = fmt.Sprint("d", i)
				tries = append(tries, c)
			}
			return tries
		}, []fault.Code{fault.TicketUsed},
		func(w *world, o *ledger.Order, winner ledger.Command) {
			uses := w.usesOf(o.Tickets[0])
			w.same("uses", []any{len(uses), uses[0].Device}, []any{1, winner.(ledger.CheckIn).Device})
		},
	},
	{
		"I7: a ticket is passed on to one, or given back",
		func(w *world, o *ledger.Order) []ledger.Command {
			return []ledger.Command{w.transfer(o.Tickets[0], bob), w.refund(o), w.transfer(o.Tickets[0], carol), w.refund(o, o.Tickets[0].ID)}
		}, []fault.Code{fault.Conflict},
		func(w *world, o *ledger.Order, winner ledger.Command) {
			refunds := 0
			if _, refunded := winner.(ledger.BeginRefund); refunded {
				refunds = 1
			}
			w.same("refunds", len(w.refundsOf(o.ID)), refunds)
		},
	},
	{
		"A12: one key refunds once, through whatever door",
		func(w *world, o *ledger.Order) (tries []ledger.Command) {
			c := w.refund(o)
			c.Key = keyOf("k", "order", "1")
			for range 4 {
				again := c
				again.IDs = w.ids(ledger.RefundPartsMax)
				tries = append(tries, again)
			}
			return tries
		}, nil,
		func(w *world, o *ledger.Order, _ ledger.Command) { oneRefund(w, o) },
	},
}
