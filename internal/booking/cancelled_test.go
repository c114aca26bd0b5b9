package booking

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/sandbox"
)

// A watched shard counts what is asked of it, and lets a test come between.
type watched struct {
	Shard
	mu      sync.Mutex
	refunds map[id.ID]int // tries to refund an order
	lists   int           // of orders of an event
	listed  func()        // called after each list; may be nil
}

func (s *watched) Do(ctx context.Context, c ledger.Command) (ledger.Result, error) {
	if c, ok := c.(ledger.BeginRefund); ok {
		s.mu.Lock()
		s.refunds[c.Order]++
		s.mu.Unlock()
	}
	return s.Shard.Do(ctx, c)
}

func (s *watched) Ledger() ledger.Reader { return watchedReader{s.Shard.Ledger(), s} }

type watchedReader struct {
	ledger.Reader
	s *watched
}

func (r watchedReader) OrdersOfEvent(ctx context.Context, event id.ID, find ledger.OrderFilter, most int) ([]ledger.Order, error) {
	orders, err := r.Reader.OrdersOfEvent(ctx, event, find, most)
	r.s.lists++
	if r.s.listed != nil {
		r.s.listed()
	}
	return orders, err
}

// watch puts a watched shard before the service.
func (w *world) watch() *watched {
	s := &watched{Shard: w.options.Shard, refunds: map[id.ID]int{}}
	w.options.Shard = s
	w.restart()
	return s
}

func (w *world) cancelEvent() {
	w.Helper()
	w.setEvent(func(e *ledger.Event) { e.State = ledger.Cancelled })
}

func TestCancelledEvents(t *testing.T) {
	inWorlds(t, []scenario{
		{"two nodes at once, and nobody is called", func(w *world) []int64 {
			o := w.bought(alice, 0, 1)
			w.cancelEvent()
			other := New(w.options)
			s := w.watch()
			s.listed = func() { // the other node refunds them all after this one has read the list
				if _, err := other.Recover(w.ctx()); err != nil {
					w.Errorf("the other node: %v", err)
				}
			}
			if done := w.recover(); done.Failed != 0 {
				w.Errorf("%d tries failed", done.Failed)
			}
			w.wantAlerts()
			w.recover()
			w.wantNow(o.ID, ledger.OrderRefunded, ledger.ReasonEventCancelled)
			w.wantMoney(o, 0, payment.Captured)
			w.wantRefundsAtMost(o.ID, 1)
			w.bobs = ledger.Order{}
			return nil
		}},
		{"A22: an exchange is in flight: the order waits for it, and nobody is called", func(w *world) []int64 {
			w.opened()
			o := w.bought(alice, 0)
			h := w.swapHold(o, 1)
			w.cancelEvent()
			w.pass(second)
			if done := w.recover(); done.Failed != 0 {
				w.Errorf("%d tries failed", done.Failed)
			}
			w.wantAlerts()
			w.wantNow(o.ID, ledger.OrderPaid, "")
			w.recover()
			w.wantNow(w.bobs.ID, ledger.OrderRefunded, ledger.ReasonEventCancelled) // others do not wait
			w.pass(ledger.Duration(h.Expires - w.clock.Now()))
			w.recover()
			w.recover()
			w.wantNow(o.ID, ledger.OrderRefunded, ledger.ReasonEventCancelled)
			w.bobs = ledger.Order{}
			return nil
		}},
		{"A22: an exchange is being paid when the event is cancelled: both payments go back", func(w *world) []int64 {
			w.opened()
			o := w.bought(alice, 0)
			w.setEvent(func(e *ledger.Event) { e.Tiers[0].Face += 1000 })
			h := w.swapHold(o, 1)
			r := w.request(h, sandbox.Token(sandbox.FaultPending), "x")
			n := w.mustBook(r)
			w.wantState(n, ledger.OrderPending)
			w.cancelEvent()
			w.recover()
			w.wantNow(o.ID, ledger.OrderPaid, "")
			w.pass(payAfter)
			w.run() // the webhook says that the difference is paid
			w.wantNow(n.ID, ledger.OrderFailed, ledger.ReasonEventCancelled)
			w.wantAlerts("a payment is given back: event_cancelled")
			w.pass(20 * minute)
			w.recover()
			w.recover()
			w.wantNow(o.ID, ledger.OrderRefunded, ledger.ReasonEventCancelled)
			w.wantMoney(o, 0, payment.Captured)
			w.wantMoney(n, 0, payment.Captured)
			w.bobs = ledger.Order{}
			return nil
		}},
		{"a ticket that was passed on is paid back to the buyer, used or not", func(w *world) []int64 {
			w.opened()
			o := w.bought(alice, 0, 1)
			passed := *w.command(ledger.Transfer{ID: w.ids.MustNext(0), Ticket: o.Tickets[0].ID, Customer: alice, To: carol}).Ticket
			w.command(ledger.CheckIn{Ticket: passed.ID, Event: theEvent})
			w.cancelEvent()
			w.recover()
			w.recover()
			w.wantNow(o.ID, ledger.OrderRefunded, ledger.ReasonEventCancelled)
			w.wantMoney(o, 0, payment.Captured)
			w.bobs = ledger.Order{}
			return nil
		}},
	})
}

// TestCancelledEventWithAPoisonedOrder: one order that can never be refunded does not keep others from it, is told of once,
// and is not hammered.
func TestCancelledEventWithAPoisonedOrder(t *testing.T) {
	l := newLab(t)
	store, webhooks := openers["model"](t, l)
	w := newWorld(t, l, store, webhooks, true)
	defer w.close()
	// Less was captured than the ticket costs.
	h := w.hold(alice, 0)
	poisoned := w.command(ledger.BeginPayment{Order: w.ids.MustNext(0), Hold: h.ID, Customer: alice, Provider: "sandbox"}).Order.ID
	w.command(ledger.Confirm{Order: poisoned, Payment: "short", Amount: seatPrice, Currency: "EUR", Tickets: []id.ID{w.ids.MustNext(0)}, Refund: w.ids.MustNext(0)})
	w.command(ledger.RecordPayment{Order: poisoned, Payment: "short", State: ledger.PaymentCaptured, Amount: 1})
	good := w.bought(bob, 1)
	w.cancelEvent()
	s := w.watch()
	for range 10 * 60 {
		w.recover()
		w.pass(second)
	}
	w.wantNow(good.ID, ledger.OrderRefunded, ledger.ReasonEventCancelled)
	w.wantNow(poisoned, ledger.OrderPaid, "")
	w.wantAlerts("cannot refund a booking of a cancelled event")
	if n := s.refunds[poisoned]; n < 5 || n > 20 {
		t.Errorf("in ten minutes it was tried %d times", n)
	}
}

// TestCancelledEventWhileTheProviderIsAway: tickets are void all the same, without a wait for each, and the money follows.
func TestCancelledEventWhileTheProviderIsAway(t *testing.T) {
	l := newLab(t)
	store, webhooks := openers["model"](t, l)
	w := newWorld(t, l, store, webhooks, false)
	defer w.close()
	o := w.bought(alice, 0, 1)
	w.cancelEvent()
	asked := 0
	w.meddling(func(op string, call func() error) error {
		if op == "Lookup" || op == "Refund" {
			asked++
			return payment.Unknown(op, errAway)
		}
		return call()
	})
	w.recover()
	if now := w.order(o.ID); now.State != ledger.OrderPaid || owed(now) || asked != 0 {
		t.Errorf("the order is %s, its tickets %+v, the provider was asked %d times", now.State, now.Tickets, asked)
	}
	w.recover()
	w.meddling(nil)
	w.pass(minute)
	w.recover()
	w.wantNow(o.ID, ledger.OrderRefunded, ledger.ReasonEventCancelled)
	w.wantMoney(o, 0, payment.Captured)
}

// TestCancelledEventAtRest: an event is left alone once nothing is owed, also when more orders than a page holds stay PAID
// because the provider refused their refunds.
func TestCancelledEventAtRest(t *testing.T) {
	l := newLab(t)
	store, webhooks := openers["model"](t, l)
	w := newWorld(t, l, store, webhooks, false)
	defer w.close()
	const big id.ID = 2
	e := hallEvent()
	e.ID = big
	layout := hallLayout()
	layout.Areas[areaPaid].Capacity = 2 * cancelledPage
	w.command(ledger.SetEvent{Event: e, Layout: layout})
	var last id.ID
	for k := range cancelledPage + 1 {
		h := *w.command(ledger.HoldPlaces{ID: w.ids.MustNext(0), Event: big, Customer: carol, Area: areaPaid, Quantity: 1}).Hold
		last = w.ids.MustNext(0)
		w.command(ledger.BeginPayment{Order: last, Hold: h.ID, Customer: carol, Provider: "sandbox"})
		w.command(ledger.Confirm{
			Order: last, Payment: fmt.Sprint("p", k), Amount: 3000, Currency: "EUR", Captured: true, Tickets: []id.ID{w.ids.MustNext(0)}, Refund: w.ids.MustNext(0),
		})
	}
	e.Version, e.State = 2, ledger.Cancelled
	w.command(ledger.SetEvent{Event: e})
	p := w.twist(nil)
	p.lookup = func(order string) ([]payment.Payment, error) {
		number, err := id.Parse(id.Order, order)
		if err != nil {
			return nil, err
		}
		known, err := store.Payments(context.Background(), number)
		if err != nil || len(known) == 0 {
			return nil, err
		}
		return []payment.Payment{{ID: known[0].ID, OrderID: order, State: payment.Captured, CapturedMinor: 3000, AmountMinor: 3000, Currency: "EUR"}}, nil
	}
	p.refund = func(string) error { return &payment.Refused{Op: "refund", Code: "no"} }
	s := w.watch()
	for range 6 {
		w.recover()
		w.pass(second)
	}
	s.lists = 0
	for range 10 {
		w.recover()
		w.pass(second)
	}
	if s.lists != 0 {
		t.Errorf("nothing is owed, and its orders were read %d times in ten seconds", s.lists)
	}
	for _, told := range w.alerts {
		if !strings.HasPrefix(told, "the provider refused a refund") {
			t.Errorf("alert %q", told)
		}
	}
	if n := len(s.refunds); n != cancelledPage+1 || s.refunds[last] != 1 {
		t.Errorf("%d orders were refunded, the last %d times", n, s.refunds[last])
	}
}
