package booking

import (
	"context"
	"errors"
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
	mu    sync.Mutex
	after map[id.ID]id.ID       // the last order seen of an event
	clean map[id.ID]ledger.Time // when an event was found without anything to refund
}

// cancelled refunds a page of orders of cancelled events.
func (r *round) cancelled(ctx context.Context) error {
	events, err := r.o.Shard.Ledger().Events(ctx)
	if err != nil {
		return err
	}
	r.walk.mu.Lock()
	defer r.walk.mu.Unlock()
	for _, e := range events {
		if e.State != ledger.Cancelled {
			delete(r.walk.clean, e.ID)
			delete(r.walk.after, e.ID)
			continue
		}
		if at, ok := r.walk.clean[e.ID]; ok && r.now < at+ledger.Time(cancelledAgain.Milliseconds()) {
			continue
		}
		if err := r.cancelledEvent(ctx, e.ID); err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return nil
}

func (r *round) cancelledEvent(ctx context.Context, event id.ID) error {
	find := ledger.OrderFilter{After: r.walk.after[event], State: ledger.OrderPaid}
	orders, err := r.o.Shard.Ledger().OrdersOfEvent(ctx, event, find, cancelledPage)
	if err != nil {
		return err
	}
	err = each(ctx, r, orders, func(o ledger.Order) {
		if !owed(o) {
			return
		}
		r.try(ctx, doCancelled, o.ID.Text(id.Order), o.ID, func(ctx context.Context) error {
			_, err := r.Refund(ctx, RefundRequest{Order: o.ID, By: ledger.ByEvent, Reason: ledger.ReasonEventCancelled})
			switch fault.CodeOf(err) {
			case fault.PaymentInProgress: // the money is not captured yet, or an exchange is being paid
				return errPending
			case "":
				r.count(&r.done.Returned)
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	if len(orders) < cancelledPage { // begin anew until a whole pass finds nothing
		delete(r.walk.after, event)
		if find.After == 0 && !anyOwed(orders) {
			r.walk.clean[event] = r.now
		}
		return nil
	}
	r.walk.after[event] = orders[len(orders)-1].ID
	r.full = true
	return nil
}

// owed says whether an order has tickets that a cancelled event owes money for.
func owed(o ledger.Order) bool {
	for _, t := range o.Tickets {
		if t.State == ledger.TicketValid || t.State == ledger.TicketUsed {
			return true
		}
	}
	return false
}

func anyOwed(orders []ledger.Order) bool {
	for _, o := range orders {
		if owed(o) {
			return true
		}
	}
	return false
}
