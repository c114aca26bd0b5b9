package booking

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Everybody gets their money back when an event is cancelled (A6): a job that goes through its orders, a page at a time,
// until no ticket is valid any more. Nothing is remembered but where this process is: after a crash it begins anew, and
// what is refunded already is no order of the list any more.

// cancelledPage is how many orders of cancelled events one round refunds.
const cancelledPage = 128

// cancelledAgain is how long an event whose orders are all refunded is left alone. Payments that come late are given back
// by Confirm itself.
const cancelledAgain = time.Minute

// cancelledWalk is how far this process is with the cancelled events.
type cancelledWalk struct {
	mu     sync.Mutex
	events map[id.ID]*cancelledPass
}

// A cancelledPass is one way through the orders of a cancelled event.
type cancelledPass struct {
	after id.ID       // the last order seen
	owing bool        // an order was met for which money was owed
	clean ledger.Time // when a whole pass last met none; 0: never
}

// cancelled refunds a page of orders of each cancelled event.
func (r *round) cancelled(ctx context.Context) error {
	events, err := r.o.Shard.Ledger().Events(ctx)
	if err != nil {
		return err
	}
	r.passes.mu.Lock()
	defer r.passes.mu.Unlock()
	for _, e := range events {
		if e.State != ledger.Cancelled {
			delete(r.passes.events, e.ID)
			continue
		}
		pass := r.passes.events[e.ID]
		if pass == nil {
			pass = &cancelledPass{}
			r.passes.events[e.ID] = pass
		}
		if pass.clean != 0 && r.now < pass.clean+ledger.Time(cancelledAgain.Milliseconds()) {
			continue
		}
		if err := r.cancelledEvent(ctx, e.ID, pass); err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return nil
}

func (r *round) cancelledEvent(ctx context.Context, event id.ID, pass *cancelledPass) error {
	find := ledger.OrderFilter{After: pass.after, State: ledger.OrderPaid}
	orders, err := r.o.Shard.Ledger().OrdersOfEvent(ctx, event, find, cancelledPage)
	if err != nil {
		return err
	}
	pass.owing = pass.owing || slices.ContainsFunc(orders, owed)
	err = each(ctx, r, orders, func(o ledger.Order) {
		if !owed(o) {
			return
		}
		r.try(ctx, doCancelled, o.ID.Text(id.Order), o.ID, func(ctx context.Context) error {
			return r.cancelledOrder(ctx, o.ID)
		})
	})
	if err != nil {
		return err
	}
	if len(orders) == cancelledPage {
		pass.after = orders[len(orders)-1].ID
		r.full = true
		return nil
	}
	clean := ledger.Time(0)
	if !pass.owing {
		clean = r.now
	}
	*pass = cancelledPass{clean: clean} // begin anew until a whole pass meets nothing
	return nil
}

// cancelledOrder makes the tickets of a cancelled event's order void. Its money goes back in the next round, with all that is
// to be given back: a provider that is away must not keep orders waiting here.
func (r *round) cancelledOrder(ctx context.Context, order id.ID) error {
	_, err := r.beginRefund(ctx, RefundRequest{Order: order, By: ledger.ByEvent, Reason: ledger.ReasonEventCancelled})
	switch fault.CodeOf(err) {
	case "":
		r.count(&r.done.Returned)
	case fault.PaymentInProgress: // the money is not captured yet
		return errPending
	case fault.Conflict:
		now, failed := r.o.Shard.Ledger().Order(ctx, order)
		if failed != nil {
			return failed
		}
		if now.State != ledger.OrderPaid || !owed(now) { // another node was first
			return nil
		}
		exchanging, failed := r.exchanging(ctx, now)
		if failed != nil {
			return failed
		}
		if exchanging {
			return errPending
		}
	}
	return err
}

// exchanging says whether a live hold is to take the place of tickets of an order: until it ends they stay as they are.
func (r *round) exchanging(ctx context.Context, o ledger.Order) (bool, error) {
	for _, t := range o.Tickets {
		if !valid(t) || t.Exchange == 0 {
			continue
		}
		h, err := r.o.Shard.Ledger().Hold(ctx, t.Exchange)
		if err == nil && h.Live(r.now) {
			return true, nil
		}
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return false, err
		}
	}
	return false, nil
}

// owed says whether an order has tickets that a cancelled event owes money for.
func owed(o ledger.Order) bool { return slices.ContainsFunc(o.Tickets, valid) }

// valid says whether a ticket is, in the sense of A4.
func valid(t ledger.Ticket) bool {
	return t.State == ledger.TicketValid || t.State == ledger.TicketUsed
}
