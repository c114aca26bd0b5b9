package booking

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// calm heals the world and lets time pass until nothing is due any more: the liveness half of every test. refused is how
// many payments the provider refuses to give back: they stay, for people to look at.
func (w *world) calm(refused int) {
	w.Helper()
	w.meddling(nil)
	for k := range 60 {
		w.run()
		w.recover()
		if w.open() <= refused && w.pending() == 0 && w.unreleased() == 0 {
			w.quiet(refused)
			return
		}
		w.pass(min(15*second<<min(k, 8), 4*minute))
	}
	w.Fatalf("after hours %d orders are PENDING and %d payments open; last calls %v", w.pending(), w.open(), w.ops[max(0, len(w.ops)-20):])
}

// quiet checks that what has come to rest stays so: nothing is left to do for recovery, nor for a webhook.
func (w *world) quiet(refused int) {
	w.Helper()
	orders := map[id.ID]ledger.Order{}
	for _, order := range w.all() {
		orders[order] = w.order(order)
	}
	for range 2 {
		w.pass(2 * minute)
		w.run()
		if done := w.recover(); done.Orders != 0 || done.Captured != 0 || done.Returned != 0 || done.Failed > refused {
			w.Errorf("nothing is due, but recovery did %+v", done)
		}
	}
	for order, before := range orders {
		if now := w.order(order); !reflect.DeepEqual(before, now) {
			w.Errorf("order %d changed after all was done: %+v, before %+v", order, now, before)
		}
	}
}

// all are the orders of this world, also those begun by a process that crashed before it could say so.
func (w *world) all() []id.ID {
	w.Helper()
	for _, customer := range []id.ID{alice, bob, carol} {
		orders, err := w.store.OrdersOf(context.Background(), customer, 0, math.MaxInt32)
		if err != nil {
			w.Fatalf("orders: %v", err)
		}
		for _, o := range orders {
			w.know(o.ID)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]id.ID(nil), w.begun...)
}

func (w *world) pending() (n int) {
	w.Helper()
	for _, order := range w.all() {
		if w.order(order).State == ledger.OrderPending {
			n++
		}
	}
	return n
}

func (w *world) open() int {
	w.Helper()
	open, err := w.store.OpenPayments(context.Background(), math.MaxInt32)
	if err != nil {
		w.Fatalf("open payments: %v", err)
	}
	return len(open)
}

func (w *world) unreleased() int {
	w.Helper()
	list, err := w.store.UnreleasedRefunds(context.Background(), math.MaxInt32)
	if err != nil {
		w.Fatalf("refunds: %v", err)
	}
	return len(list)
}

// wantRefused checks how many refunds wait for people because the provider refused them.
func (w *world) wantRefused(n int) {
	w.Helper()
	list, err := w.store.RefusedRefunds(context.Background(), 0, math.MaxInt32)
	if err != nil || len(list) != n || w.open() != 0 {
		w.Errorf("%d refunds are refused, and %d payments open; want %d and none (%v)", len(list), w.open(), n, err)
	}
}

// refundsOf are the refunds of an order's tickets and money.
func (w *world) refundsOf(order id.ID) []ledger.Refund {
	w.Helper()
	list, err := w.store.RefundsOf(context.Background(), order)
	if err != nil {
		w.Fatalf("refunds of order %d: %v", order, err)
	}
	return list
}

// books are the payments under an order as the provider has them.
func (w *world) books(order id.ID) []payment.Payment {
	w.Helper()
	found, err := w.client.Lookup(context.Background(), order.Text(id.Order))
	if err != nil {
		w.Fatalf("lookup: %v", err)
	}
	for _, ref := range w.aliases {
		more, err := w.client.Lookup(context.Background(), ref)
		if err != nil {
			w.Fatalf("lookup: %v", err)
		}
		if strings.HasPrefix(ref, order.Text(id.Order)) {
			found = append(found, more...)
		}
	}
	return found
}

// check is calm, and then everything that must be true of money and tickets (I1, I6, I7). kept is money of refunds that
// the provider refuses, in how many payments.
func (w *world) check(kept ...int64) {
	w.Helper()
	w.calm(len(kept))
	var left int64
	for _, k := range kept {
		left += k
	}
	for _, problem := range w.problems(left) {
		w.Errorf("%s", problem)
	}
}

// problems are the broken invariants, once nothing is due. left is money that the provider should have given back.
func (w *world) problems(left int64) (found []string) {
	w.Helper()
	problem := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	snapshot, err := w.store.Snapshot(context.Background(), theEvent)
	if err != nil {
		w.Fatalf("snapshot: %v", err)
	}
	sold := map[int32]int{}
	soldIn := map[int32]int32{}
	ofHold := map[id.ID]int{}
	var surplus, kept, credits int64
	for _, order := range w.all() {
		o := w.order(order)
		var price int64
		valid := 0
		for _, t := range o.Tickets {
			if t.State != ledger.TicketValid && t.State != ledger.TicketUsed {
				continue
			}
			valid++
			price += t.Total
			if t.Seat >= 0 {
				sold[t.Seat]++
			} else {
				soldIn[t.Area]++
			}
		}
		h, err := w.store.Hold(context.Background(), o.Hold)
		if err != nil {
			w.Fatalf("hold %d: %v", o.Hold, err)
		}
		paid := o.State == ledger.OrderPaid
		lines := 0
		for _, l := range h.Lines {
			if !l.Gone {
				lines++
			}
		}
		if paid && (valid != lines || valid == 0) || !paid && valid != 0 {
			problem("I7: order %d is %s with %d valid tickets for %d places that were not given back", o.ID, o.State, valid, lines)
		}
		for _, f := range w.refundsOf(order) {
			kept += f.FeeKept
			if f.State == ledger.RefundRequested && f.Refused == "" || f.State == ledger.RefundDone && len(f.Tickets) > 0 {
				problem("refund %d of order %d is still %s", f.ID, o.ID, f.State)
			}
		}
		credits += o.Credit
		if paid {
			ofHold[o.Hold]++
			if h.State != ledger.HoldSold {
				problem("I7: order %d is PAID, its hold %s", o.ID, h.State)
			}
		}
		if o.State == ledger.OrderPending {
			problem("order %d is still PENDING", o.ID)
		}
		var money int64
		for _, p := range w.books(order) {
			money += p.CapturedMinor - p.RefundedMinor
			if p.State == payment.Authorized || p.State == payment.Pending {
				problem("I6: payment %s of order %d (%s) is still %s", p.ID, o.ID, o.State, p.State)
			}
		}
		if money < price && credits == 0 {
			problem("I6: order %d (%s, %s): the provider keeps %d, the valid tickets cost %d", o.ID, o.State, o.Reason, money, price)
		}
		surplus += money - price
	}
	surplus -= kept // by recorded rules
	if surplus != left {
		problem("I6: the provider keeps %d more than the valid tickets cost, want %d", surplus, left)
	}
	for hold, n := range ofHold {
		if n > 1 {
			problem("A13: hold %d is sold %d times", hold, n)
		}
	}
	for i, seat := range snapshot.Seats {
		n := sold[int32(i)]
		if n > 1 || (n == 1) != (seat.State == ledger.Sold) {
			problem("I1: seat %d is %s, valid tickets %d", i, seat.State, n)
		}
		if seat.State == ledger.Held && seat.Expires <= snapshot.Now-ledger.Time(hour) {
			problem("seat %d is held since long ago", i)
		}
	}
	for i, area := range snapshot.Areas {
		if area.Sold != soldIn[int32(i)] {
			problem("I2: area %d has %d sold, valid tickets %d", i, area.Sold, soldIn[int32(i)])
		}
	}
	if w.bobs.ID != 0 {
		if now := w.order(w.bobs.ID); now.State != ledger.OrderPaid || now.Tickets[0].Seat != seatBob || now.Payment != w.bobs.Payment {
			problem("the bystander's order changed: %+v", now)
		}
	}
	return found
}
