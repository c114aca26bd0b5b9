package postgres

import (
	"context"
	"fmt"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// shopEvent is the stage's event with everything allowed.
func shopEvent(event id.ID, version int64) ledger.SetEvent {
	e := stageEvent()
	e.ID, e.Version = event, version
	e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 50}, {Scope: ledger.PerShow, Max: 80}, {Scope: ledger.PerDocument, Max: 2}}
	e.Refunds = ledger.RefundRule{Until: noon + 1_000_000_000, FeeBP: 1000}
	e.Exchanges = ledger.ExchangeRule{Until: noon + 1_000_000_000, Fee: 100}
	e.Transfers = ledger.TransferRule{Until: noon + 1_000_000_000}
	return ledger.SetEvent{Event: e, Layout: stageLayout()}
}

// bought sells seats of an event on a node.
func (s *stage) bought(l *Ledger, event, customer id.ID, seats ...int32) *ledger.Order {
	s.Helper()
	h := s.hold(customer, seats...)
	h.Event = event
	held := s.applyOK(l, h)
	begin := s.begin(held.Hold)
	for i := range seats {
		begin.Documents = append(begin.Documents, fmt.Sprint(customer, "-", i))
	}
	return s.applyOK(l, s.confirm(s.applyOK(l, begin).Order, len(seats))).Order
}

func (s *stage) applyOK(l *Ledger, c ledger.Command) ledger.Result {
	s.Helper()
	r := s.apply(l, c)[0]
	if r.Fault != nil {
		s.Fatalf("%T: %v", c, r.Fault)
	}
	return r
}

func (s *stage) ids(n int) (list []id.ID) {
	for range n {
		list = append(list, s.id())
	}
	return list
}

func (s *stage) refund(o *ledger.Order, tickets ...id.ID) ledger.BeginRefund {
	return ledger.BeginRefund{IDs: s.ids(ledger.RefundPartsMax), Order: o.ID, Customer: o.Customer, By: ledger.ByCustomer, Tickets: tickets}
}

func (s *stage) exchange(event id.ID, o *ledger.Order, seats ...int32) ledger.HoldSeats {
	h := s.hold(o.Customer, seats...)
	h.Event, h.Exchange = event, ledger.Exchange{Order: o.ID}
	return h
}

// A node that knows nothing of a refund, a ticket or an exchange learns by plain reads what is to be locked, and locks
// it the first time: each of these takes one round.
func TestWhatIsKnownIsLockedTheFirstTime(t *testing.T) {
	s := newStage(t, "", nil)
	s.ok(shopEvent(2, 1))
	s.ok(shopEvent(3, 1))
	rounds := 0
	fresh := func(c ledger.Command) ledger.Result {
		t.Helper()
		l := s.open(nil)
		rounds = 0
		l.beforeLock = func() { rounds++ }
		r := s.applyOK(l, c)
		if rounds != 1 {
			t.Errorf("%T took %d rounds", c, rounds)
		}
		return r
	}
	o := s.bought(s.l, 2, 7, 1, 2, 3, 4)
	ticket := func(i int) id.ID { return o.Tickets[i].ID }
	passed := fresh(ledger.Transfer{ID: s.id(), Ticket: ticket(0), Customer: 7, To: 8, Document: "z"}).Ticket
	passed = fresh(ledger.Transfer{ID: s.id(), Ticket: passed.ID, Customer: 8, To: 9, Document: "y"}).Ticket
	fresh(ledger.CheckIn{Ticket: ticket(1), Event: 2, Gate: "north"})
	fresh(ledger.UndoCheckIn{Ticket: ticket(1), Event: 2})
	refund := s.refund(o, ticket(1), passed.ID)
	refund.By = ledger.ByOrganizer
	r := fresh(refund).Refund
	fresh(ledger.RefuseRefund{Refund: r.ID, Reason: "no"})
	fresh(ledger.RetryRefund{Refund: r.ID, Try: 1})
	fresh(ledger.RecordPayment{Order: r.From, Payment: r.Payment, State: ledger.PaymentRefunded, Amount: r.Amount, Refund: r.ID})
	fresh(ledger.ReleaseSeats{Refund: r.ID})

	held := fresh(s.exchange(3, o, 10, 11)).Hold
	next := fresh(s.begin(held)).Order
	c := s.confirm(next, 2)
	c.Exchange = s.ids(ledger.RefundPartsMax + 1)
	next = fresh(c).Order
	if next.Credit != 10_000-200 || next.Amount != 200 || next.State != ledger.OrderPaid {
		t.Errorf("the exchange ended as %+v", next)
	}
	// What was paid for the first order comes back from it, for the tickets of the second.
	refund = s.refund(next)
	r = fresh(refund).Refund
	parts, err := s.l.RefundsOf(context.Background(), next.ID)
	if err != nil || len(parts) != 2 || parts[0].From != next.ID || parts[1].From != o.ID {
		t.Fatalf("%v: the refund is %+v", err, parts)
	}
	for _, p := range parts {
		fresh(ledger.RecordPayment{Order: p.From, Payment: p.Payment, State: ledger.PaymentRefunded, Amount: p.Amount, Refund: p.ID})
	}
	fresh(ledger.ReleaseSeats{Refund: r.ID})
	if n := s.value(`SELECT coalesce(sum(count), 0) FROM shard.limits`); n != 0 {
		t.Errorf("all is given back, and limits still count %d", n)
	}
	if n := s.value(`SELECT sum(captured) FROM shard.payments`) - s.value(`SELECT sum(refunded) FROM shard.payments`); n != 200+1000 {
		t.Errorf("%d was kept, not the fees", n)
	}
}

// shop does one of everything that may come after a sale.
func (s *stage) shop() {
	s.Helper()
	s.ok(shopEvent(2, 1))
	o := s.bought(s.l, 2, 7, 1, 2, 3)
	passed := s.ok(ledger.Transfer{ID: s.id(), Ticket: o.Tickets[0].ID, Customer: 7, To: 8, Document: "z", Key: ledger.Key{Value: "k"}}).Ticket
	s.ok(ledger.CheckIn{Ticket: passed.ID, Event: 2})
	s.ok(ledger.UndoCheckIn{Ticket: passed.ID, Event: 2})
	r := s.ok(s.refund(o, o.Tickets[1].ID)).Refund
	s.ok(ledger.RefuseRefund{Refund: r.ID})
	s.ok(ledger.RetryRefund{Refund: r.ID, Try: 1})
	s.ok(ledger.RecordPayment{Order: r.From, Payment: r.Payment, State: ledger.PaymentRefunded, Amount: r.Amount, Refund: r.ID})
	s.ok(ledger.ReleaseSeats{Refund: r.ID})
	c := s.confirm(s.ok(s.begin(s.ok(s.exchange(2, o, 4)).Hold)).Order, 1)
	c.Exchange = s.ids(ledger.RefundPartsMax + 1)
	s.ok(c)
}

// One batch gives a seat back whole and sells it anew, on a node that knows all of it and on one that does not.
func TestSeatGivenBackAndSoldInOneBatch(t *testing.T) {
	s := newStage(t, "", nil)
	s.ok(shopEvent(2, 1))
	for i, l := range []*Ledger{s.l, s.open(nil)} {
		seat := int32(20 + i)
		o := s.bought(s.l, 2, 7, seat)
		refund := s.refund(o)
		hold := s.hold(8, seat)
		hold.Event = 2
		begin := ledger.BeginPayment{Order: s.id(), Hold: hold.ID, Customer: 8, Provider: "instant"}
		confirm := s.confirm(&ledger.Order{ID: begin.Order, Amount: 5000, Currency: "EUR"}, 1)
		batch := []ledger.Command{
			refund,
			ledger.RecordPayment{Order: o.ID, Payment: o.Payment, State: ledger.PaymentRefunded, Amount: 4500, Refund: refund.IDs[0]},
			ledger.ReleaseSeats{Refund: refund.IDs[0]},
			hold, begin, confirm,
			ledger.CheckIn{Ticket: confirm.Tickets[0], Event: 2, Gate: "north"},
		}
		for k, r := range s.apply(l, batch...) {
			if r.Fault != nil {
				t.Fatalf("%T: %v", batch[k], r.Fault)
			}
		}
		if n := s.value(`SELECT count(*) FROM shard.tickets WHERE event_id = 2 AND seat_index = $1 AND state = 2`, seat); n != 1 {
			t.Errorf("seat %d has %d used tickets", seat, n)
		}
	}
}

// Two nodes exchange crosswise between two events, each many in a batch, while refunds and check-ins go on: nobody waits
// in a circle, and every ticket ends one way.
func TestExchangesCrosswise(t *testing.T) {
	s := newStage(t, "", nil)
	s.ok(shopEvent(2, 1))
	s.ok(shopEvent(3, 1))
	nodes := []*Ledger{s.l, s.open(nil)}
	const each = 8
	var orders [2][each]*ledger.Order
	for i := range orders {
		for k := range each {
			orders[i][k] = s.bought(s.l, id.ID(2+i), id.ID(100+10*i+k), int32(k))
		}
	}
	good := func(r ledger.Result) bool {
		if r.Fault != nil && r.Fault.Code != fault.Conflict && r.Fault.Code != fault.TicketVoid && r.Fault.Code != fault.Busy {
			t.Errorf("refused with %v", r.Fault)
		}
		return r.Fault == nil
	}
	atOnce(4, func(i int) {
		side := i % 2
		l := nodes[(i+i/2)%2]
		if i < 2 { // the exchanges, from both ends
			var holds []ledger.Command
			for k := range each {
				o := orders[side][(k*(1-2*side)+each)%each]
				holds = append(holds, s.exchange(id.ID(3-side), o, int32(50+k)))
			}
			var begins, confirms []ledger.Command
			for _, r := range s.apply(l, holds...) {
				if good(r) {
					begins = append(begins, s.begin(r.Hold))
				}
			}
			for _, r := range s.apply(l, begins...) {
				if good(r) {
					c := s.confirm(r.Order, 1)
					c.Exchange = s.ids(ledger.RefundPartsMax + 1)
					confirms = append(confirms, c)
				}
			}
			for _, r := range s.apply(l, confirms...) {
				good(r)
			}
			return
		}
		for k := range each {
			o := orders[side][k]
			if k%2 == 0 {
				good(s.apply(l, s.refund(o))[0])
			} else {
				good(s.apply(l, ledger.CheckIn{Ticket: o.Tickets[0].ID, Event: o.Event, Gate: "north"})[0])
			}
		}
	})
	if n := s.value(`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
	if n := s.value(`SELECT count(*) FROM shard.orders WHERE state = 2 AND NOT EXISTS (SELECT 1 FROM shard.tickets t
	    WHERE t.order_id = orders.order_id AND t.state < 3) AND NOT EXISTS (SELECT 1 FROM shard.refunds r WHERE r.order_id = orders.order_id AND r.state = 1)`); n != 0 {
		t.Errorf("%d orders are PAID without a ticket and without a refund on its way", n)
	}
	if n := s.value(`SELECT count(*) FROM (SELECT t.ticket_id FROM shard.tickets t JOIN shard.refunds r ON r.tickets::jsonb @> to_jsonb(t.ticket_id)
	    GROUP BY 1 HAVING count(*) > 1) AS twice`); n != 0 {
		t.Errorf("%d tickets are in two refunds", n)
	}
	if n := s.value(`SELECT count(*) FROM shard.payments WHERE promised > captured`); n != 0 {
		t.Errorf("%d payments promise more than there is", n)
	}
}
