package ledgertest

import (
	"fmt"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

var exchangeMoneyScenarios = []scenario{
	{"I6: what goes back after an exchange is drawn from the order's own payment, then from the earlier ones", func(w *world) {
		w.allow()
		old := w.paid(alice, 0, 1)
		o := w.exchanged(old, nil, 4, 5) // 6.00 on top
		top := o.Payment
		c := w.refundBy(o, 50, o.Tickets[0].ID)
		w.ok(c, things(anOrder(o.ID), aDue(o.ID, top), aDue(old.ID, "pay"))...)
		refunds := w.refundsOf(o.ID)
		var got []any
		for _, r := range refunds {
			got = append(got, []any{r.From, r.Payment, r.Amount, r.FeeKept, r.Rule, len(r.Tickets)})
		}
		w.same("the parts", got, []any{
			[]any{o.ID, top, int64(2 * exchangeFee), int64(50), "organizer", 1},
			[]any{old.ID, "pay", int64(priceA - 50 - 2*exchangeFee), int64(0), "", 0},
		})
		w.same("the notices", w.since(o.ID, 2), []string{ledger.NoticeRefundRequested, ledger.NoticeRefundRequested})
		second := back(&refunds[1])
		w.no(fault.Conflict, func() ledger.Command { c := second; c.Order = o.ID; return c }()) // it is not that order's payment
		w.ok(second, things(anOrder(o.ID), anOrder(old.ID), aDue(old.ID, "pay"))...)
		w.same("the notices", w.since(old.ID, 4), []string{ledger.NoticePayment})
		w.same("the notices", w.since(o.ID, 4), []string{ledger.NoticeRefundDone})
		w.again(second)
		w.no(fault.Conflict, ledger.ReleaseSeats{Refund: refunds[0].ID}) // its own part is not back yet
		w.given(back(&refunds[0]))
		w.given(ledger.ReleaseSeats{Refund: refunds[0].ID})
		w.again(ledger.ReleaseSeats{Refund: refunds[1].ID})
		w.given(w.refund(o))
		w.wantOrder(o.ID, ledger.OrderPaid, "")
		w.allBack(o.ID)
		w.wantOrder(o.ID, ledger.OrderRefunded, ledger.ReasonCustomer)
		w.same("what stays", w.balance(), int64(2*exchangeFee+50+keptA))
	}},
	{"I6, A22: an exchange of an exchange, until the money lies in too many payments", func(w *world) {
		w.allow()
		o := w.paid(alice, 0)
		seats := []int32{1, 0}
		for parts := 2; parts <= ledger.RefundPartsMax; parts++ {
			o = w.exchanged(o, nil, seats[parts%2])
			w.same("parts", 1+len(o.Funds), parts)
			w.sound()
		}
		w.no(fault.NotExchangeable, w.exchange(o, nil, 5))
		w.given(w.refundBy(o, 0))
		refunds := w.refundsOf(o.ID)
		w.same("refunds", len(refunds), ledger.RefundPartsMax)
		for i := range refunds {
			w.wantOrder(o.ID, ledger.OrderPaid, "")
			w.given(back(&refunds[len(refunds)-1-i])) // in whatever order they come
		}
		w.wantOrder(o.ID, ledger.OrderRefunded, "goodwill")
		w.same("what stays", w.balance(), int64((ledger.RefundPartsMax-1)*exchangeFee))
	}},
	{"I6: what nobody paid on top of makes no part", func(w *world) {
		w.allow()
		w.set(func(e *ledger.Event) { e.Exchanges.Fee = 0 })
		o := w.paid(alice, 0)
		seats := []int32{1, 0}
		for i := range 2 * ledger.RefundPartsMax {
			o = w.exchanged(o, nil, seats[i%2])
			w.same("parts", len(o.Funds), 1)
		}
		w.given(w.refundBy(o, 0))
		w.allBack(o.ID)
		w.same("what stays", w.balance(), int64(0))
	}},
	{"A18: a refused capture of nothing takes nothing away", func(w *world) {
		w.allow()
		w.set(func(e *ledger.Event) { e.Exchanges.Fee = 0 })
		old := w.paid(alice, 0)
		o := w.pending(w.given(w.exchange(old, nil, 5)).Hold)
		w.given(ledger.RecordPayment{Order: o.ID, Payment: "nothing", State: ledger.PaymentAuthorized})
		w.given(w.pay(o, "nothing"))
		w.given(ledger.RecordPayment{Order: o.ID, Payment: "nothing", State: ledger.PaymentCaptureRefused, Refund: w.id()})
		w.wantTickets(o.ID, ledger.TicketValid)
		w.wantOrder(o.ID, ledger.OrderPaid, "")
		w.same("what comes back", w.given(w.refundBy(o, 0)).Refund.Amount, int64(priceA))
	}},
	{"I6, I7: every order of exchanges and refunds", func(w *world) {
		for i, from := range places {
			for j, to := range places {
				for k, fee := range []int64{0, exchangeFee, 4000} {
					last := places[(i+j+k)%len(places)]
					w.Run(fmt.Sprintf("%s to %s to %s for %d", from.name, to.name, last.name, fee), func(t *testing.T) {
						w.chain(t, from, to, last, fee)
					})
				}
			}
		}
	}},
}

// A placed is something to buy, of which there are always two that are free, in turn.
type placed struct {
	name  string
	price int64
	hold  func(w *world, event id.ID, n int, x ledger.Exchange) ledger.Command
}

func someSeats(first int32) func(w *world, event id.ID, n int, x ledger.Exchange) ledger.Command {
	return func(w *world, event id.ID, n int, x ledger.Exchange) ledger.Command {
		c := w.holdSeats(alice)
		c.Event, c.Exchange = event, x
		for seat := first; len(c.Seats) < n; seat++ {
			if w.snapshot(event).Seats[seat].State == ledger.Available {
				c.Seats = append(c.Seats, seat)
			}
		}
		return c
	}
}

var places = []placed{
	{"A", priceA, someSeats(0)},
	{"B", priceB, someSeats(8)},
	{"free", 0, func(w *world, event id.ID, n int, x ledger.Exchange) ledger.Command {
		c := w.holdPlaces(alice, 0, n)
		c.Event, c.Exchange = event, x
		return c
	}},
}

// chain buys two places, exchanges one of them for another event's, that one for one of the first event, and gives all back, by
// the organizer. At each step the invariants are looked at, and in the end what stays must be the fees.
func (w *world) chain(t *testing.T, from, to, last placed, fee int64) {
	outer := w.T
	w.T = t
	defer func() { w.T = outer }()
	for _, event := range []id.ID{mainEvent, otherEvent} {
		w.setOf(event, func(e *ledger.Event) { e.Exchanges = ledger.ExchangeRule{Until: shopUntil, Fee: fee} })
	}
	kept := int64(0)
	next := func(o *ledger.Order, old, new placed, event id.ID) *ledger.Order {
		w.Helper()
		x := ledger.Exchange{Order: o.ID, Tickets: []id.ID{o.Tickets[0].ID}}
		n := w.confirmed(w.pending(w.given(new.hold(w, event, 1, x)).Hold))
		keep := min(fee, old.price)
		kept += keep
		w.same("due", n.Amount, max(0, new.price+keep-old.price))
		w.same("credit", n.Credit, new.price-n.Amount)
		w.sound()
		return n
	}
	first := w.confirmed(w.pending(w.given(from.hold(w, mainEvent, 2, ledger.Exchange{})).Hold))
	second := next(first, from, to, otherEvent)
	third := next(second, to, last, mainEvent)
	for _, o := range []*ledger.Order{first, third} {
		r := w.given(w.refundBy(o, 0)).Refund
		w.sound()
		w.allBack(o.ID)
		w.given(ledger.ReleaseSeats{Refund: r.ID})
	}
	w.allBack(second.ID) // a difference
	w.sound()
	for _, o := range []*ledger.Order{first, second, third} {
		w.same("the order", w.orderNow(o.ID).State, ledger.OrderRefunded)
		w.same("the hold", w.holdNow(o.Hold).State, ledger.HoldReleased)
	}
	w.same("what stays", w.balance(), kept)
	w.book.holds, w.book.orders = map[id.ID]bool{}, map[id.ID]bool{} // all is free again, and the next chain need not read it
}
