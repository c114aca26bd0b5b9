package ledgertest

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// The readers of the shop.

// refundIDs and the like are what a reader found, by id.
func refundIDs(refunds []ledger.Refund, err error) ([]id.ID, error) {
	var ids []id.ID
	for _, r := range refunds {
		ids = append(ids, r.ID)
	}
	return ids, err
}

func (w *world) must(ids []id.ID, err error) []id.ID {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return ids
}

// bodies are what the notices of an order say, by kind; of several of one kind the last.
func (w *world) bodies(order id.ID) map[string]map[string]any {
	w.Helper()
	notices, err := w.ledger.NoticesOf(context.Background(), order)
	if err != nil {
		w.Fatal(err)
	}
	bodies := map[string]map[string]any{}
	for _, n := range notices {
		var body map[string]any
		if err := json.Unmarshal(n.Body, &body); err != nil {
			w.Fatalf("%s: %v", n.Body, err)
		}
		bodies[n.Kind] = body
	}
	return bodies
}

var lookingScenarios = []scenario{
	{"what is not there is not found, or none", func(w *world) {
		ctx := context.Background()
		_, errRefund := w.ledger.Refund(ctx, 999)
		_, errFigures := w.ledger.Figures(ctx, 999)
		for i, err := range []error{errRefund, errFigures} {
			if !errors.Is(err, ledger.ErrNotFound) {
				w.Errorf("reader %d: %v, want ErrNotFound", i, err)
			}
		}
		w.same("refunds", w.must(refundIDs(w.ledger.RefundsOf(ctx, 999))), []id.ID(nil))
		orders, err := w.ledger.OrdersOfEvent(ctx, 999, ledger.OrderFilter{}, 10)
		w.same("orders", []any{len(orders), err}, []any{0, nil})
		tickets, err := w.ledger.TicketsOf(ctx, 999, 0, 10)
		w.same("tickets", []any{len(tickets), err}, []any{0, nil})
		steps, err := w.ledger.ClaimHistory(ctx, []id.ID{999})
		w.same("history", []any{len(steps), err}, []any{0, nil})
		notices, err := w.ledger.NoticesOf(ctx, 999)
		w.same("notices", []any{len(notices), err}, []any{0, nil})
	}},
	{"refunds that somebody has to do something about", func(w *world) {
		ctx := context.Background()
		w.allow()
		var refunds []*ledger.Refund
		for seat := range int32(4) {
			refunds = append(refunds, w.given(w.refund(w.paid(alice, seat))).Refund)
		}
		o := w.paid(bob, 5)
		twice := w.given(w.pay(o, "twice")).Refund
		unreleased := func(most int) []id.ID {
			w.Helper()
			return w.must(refundIDs(w.ledger.UnreleasedRefunds(ctx, most)))
		}
		refused := func(before id.ID, most int) []id.ID {
			w.Helper()
			return w.must(refundIDs(w.ledger.RefusedRefunds(ctx, before, most)))
		}
		w.same("none", unreleased(10), []id.ID(nil))
		w.given(back(twice)) // it has no tickets
		for _, r := range []*ledger.Refund{refunds[2], refunds[0]} {
			w.given(back(r))
		}
		w.same("oldest first", unreleased(10), []id.ID{refunds[0].ID, refunds[2].ID})
		w.same("so many", unreleased(1), []id.ID{refunds[0].ID})
		w.given(ledger.ReleaseSeats{Refund: refunds[0].ID})
		w.same("released", unreleased(10), []id.ID{refunds[2].ID})

		w.same("none", refused(0, 10), []id.ID(nil))
		for _, r := range []*ledger.Refund{refunds[1], refunds[3]} {
			w.given(ledger.RefuseRefund{Refund: r.ID, Reason: "no"})
		}
		w.reopen()
		w.same("newest first", refused(0, 10), []id.ID{refunds[3].ID, refunds[1].ID})
		w.same("so many", refused(0, 1), []id.ID{refunds[3].ID})
		w.same("the next page", refused(refunds[3].ID, 1), []id.ID{refunds[1].ID})
		w.given(ledger.RetryRefund{Refund: refunds[3].ID, Try: 1})
		w.given(back(refunds[1]))
		w.same("tried again, and done after all", refused(0, 10), []id.ID(nil))
		open, err := w.ledger.OpenPayments(ctx, 10)
		if err != nil || len(open) != 1 || open[0].Refund.ID != refunds[3].ID || open[0].Refund.Try != 1 {
			w.Errorf("due: %+v, %v", open, err)
		}
	}},
	{"what is due for one payment may be several refunds", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1, 2)
		for _, t := range o.Tickets {
			w.given(w.refund(o, t.ID))
		}
		open, err := w.ledger.OpenPayments(context.Background(), 2)
		w.same("so many", []any{len(open), err}, []any{2, nil})
		open, err = w.ledger.OpenPayments(context.Background(), 10)
		if err != nil {
			w.Fatal(err)
		}
		var due []ledger.Refund
		for _, p := range open {
			w.same("the payment", p.Payment, w.paymentsOf(o.ID)[0])
			due = append(due, *p.Refund)
		}
		w.same("the refunds", due, w.refundsOf(o.ID))
	}},
	{"an event's orders, by customer and state, page by page", func(w *world) {
		ctx := context.Background()
		w.allow()
		first := w.paid(alice, 0)
		second := w.pending(w.held(alice, 1))
		third := w.paid(bob, 2)
		w.given(w.transfer(first.Tickets[0], bob))
		elsewhere := w.holdSeats(alice, 0)
		elsewhere.Event = otherEvent
		w.confirmed(w.pending(w.given(elsewhere).Hold))
		find := func(filter ledger.OrderFilter, most int) (ids []id.ID) {
			w.Helper()
			orders, err := w.ledger.OrdersOfEvent(ctx, mainEvent, filter, most)
			if err != nil {
				w.Fatal(err)
			}
			for _, o := range orders {
				w.same("the order", o, w.orderNow(o.ID))
				ids = append(ids, o.ID)
			}
			return ids
		}
		w.same("all", find(ledger.OrderFilter{}, 10), []id.ID{first.ID, second.ID, third.ID})
		w.same("a page", find(ledger.OrderFilter{After: first.ID}, 1), []id.ID{second.ID})
		w.same("of a customer", find(ledger.OrderFilter{Customer: alice}, 10), []id.ID{first.ID, second.ID})
		w.same("paid", find(ledger.OrderFilter{State: ledger.OrderPaid}, 10), []id.ID{first.ID, third.ID})
		w.same("both", find(ledger.OrderFilter{State: ledger.OrderPaid, Customer: bob, After: first.ID}, 10), []id.ID{third.ID})
	}},
	{"the tickets that a customer has, newest first", func(w *world) {
		ctx := context.Background()
		w.allow()
		o := w.paid(alice, 0, 1, 2)
		bobs := w.paid(bob, 3)
		received := w.given(w.transfer(bobs.Tickets[0], alice)).Ticket
		w.given(w.transfer(o.Tickets[0], bob))
		w.given(w.refund(o, o.Tickets[1].ID))
		w.given(w.checkIn(o.Tickets[2]))
		page := func(before id.ID, most int) (ids []id.ID) {
			w.Helper()
			tickets, err := w.ledger.TicketsOf(ctx, alice, before, most)
			if err != nil {
				w.Fatal(err)
			}
			for _, t := range tickets {
				w.same("the ticket", t, w.ticketNow(t.ID))
				ids = append(ids, t.ID)
			}
			return ids
		}
		w.same("all", page(0, 10), []id.ID{received.ID, o.Tickets[2].ID})
		w.same("a page", page(0, 1), []id.ID{received.ID})
		w.same("the next page", page(received.ID, 1), []id.ID{o.Tickets[2].ID})
		w.same("the end", page(o.Tickets[2].ID, 1), []id.ID(nil))
	}},
	{"the figures of an event", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1, 8)
		free := w.confirmed(w.pending(w.given(w.holdPlaces(alice, 0, 2)).Hold))
		w.pending(w.held(bob, 5))
		w.given(ledger.FailPayment{Order: w.pending(w.held(bob, 6)).ID, Reason: "no"})
		authorized := w.pending(w.held(carol, 9))
		c := w.pay(authorized, "later")
		c.Captured = false
		w.given(c)
		w.given(w.pay(o, "twice")) // to be given back whole
		done := w.given(w.refund(o, o.Tickets[0].ID)).Refund
		w.given(back(done))
		refused := w.given(w.refundBy(o, 50, o.Tickets[1].ID)).Refund
		w.given(ledger.RefuseRefund{Refund: refused.ID, Reason: "no"})
		passed := *w.given(w.transfer(o.Tickets[2], bob)).Ticket
		w.given(w.checkIn(passed))
		w.given(w.offline(o.Tickets[2], "d", start-1))
		e := w.exchange(free, []id.ID{free.Tickets[1].ID}, 0)
		e.Event = otherEvent
		next := w.confirmed(w.pending(w.given(e).Hold))
		w.reopen()
		figures := func(event id.ID, want ledger.Figures) {
			w.Helper()
			got, err := w.ledger.Figures(context.Background(), event)
			if err != nil {
				w.Fatal(err)
			}
			w.same("the figures", got, want)
		}
		const total = 2*priceA + priceB
		want := ledger.Figures{
			Tickets: []ledger.TicketFigures{
				{Category: 0, Void: 2}, {Category: 1, Valid: 1, Used: 1, Total: 2 * priceB}, {Category: 2, Valid: 1, Void: 1},
			},
			Paid: 2 * total, Refunded: priceA - keptA, Kept: keptA + 50, RefundsRequested: 1, RefundsRefused: 1, Conflicts: 1,
		}
		want.Orders[ledger.OrderPaid], want.Orders[ledger.OrderPending], want.Orders[ledger.OrderFailed] = 3, 1, 1
		figures(mainEvent, want)
		want = ledger.Figures{Tickets: []ledger.TicketFigures{{Category: 0, Valid: 1, Total: priceA}}, Paid: next.Amount}
		want.Orders[ledger.OrderPaid] = 1
		figures(otherEvent, want)
	}},
	{"A25: what became of an order's claims", func(w *world) {
		w.allow()
		h := w.held(alice, 0, 8)
		o := w.confirmed(w.pending(h))
		w.pass(second)
		n := w.pending(w.given(w.exchangeForPlaces(o, []id.ID{o.Tickets[1].ID}, 1, 2)).Hold)
		n = w.confirmed(n)
		w.pass(second)
		r := w.given(w.refund(o)).Refund
		w.given(back(r))
		w.given(ledger.ReleaseSeats{Refund: r.ID})
		w.held(bob, 5) // another's
		w.reopen()
		steps, err := w.ledger.ClaimHistory(context.Background(), []id.ID{h.ID, n.Hold})
		if err != nil {
			w.Fatal(err)
		}
		byHold := func(hold id.ID) (of []ledger.ClaimStep) {
			for _, s := range steps {
				if s.Hold == hold {
					of = append(of, s)
				}
			}
			return of
		}
		w.same("how many", len(steps), 6)
		if !slices.IsSortedFunc(steps, func(a, b ledger.ClaimStep) int { return int(a.At - b.At) }) {
			w.Errorf("not by time: %+v", steps)
		}
		w.same("the first claim", byHold(h.ID), []ledger.ClaimStep{
			{Hold: h.ID, To: "live", Why: "hold", Seats: []int32{0, 8}, At: start},
			{Hold: h.ID, From: "live", To: "sold", Why: "confirm", Seats: []int32{0, 8}, At: start},
			{Hold: h.ID, From: "sold", To: "released", Why: "exchanged", Seats: []int32{8}, At: start + 1000},
			{Hold: h.ID, From: "sold", To: "released", Why: "customer", Seats: []int32{0}, At: start + 2000},
		})
		w.same("the second", byHold(n.Hold), []ledger.ClaimStep{
			{Hold: n.Hold, To: "live", Why: "hold", Places: 2, At: start + 1000},
			{Hold: n.Hold, From: "live", To: "sold", Why: "confirm", Places: 2, At: start + 1000},
		})
	}},
	{"A24: an order's notices are kept until they are pruned, and name what they are about", func(w *world) {
		ctx := context.Background()
		w.allow()
		o := w.paid(alice, 0, 1, 2)
		n := w.pending(w.given(w.exchange(o, []id.ID{o.Tickets[0].ID}, 8)).Hold)
		swap := w.pay(n, "")
		w.given(swap)
		r := w.given(w.refund(o, o.Tickets[1].ID)).Refund
		w.given(ledger.RefuseRefund{Refund: r.ID, Reason: "no"})
		w.given(back(r))
		w.given(ledger.ReleaseSeats{Refund: r.ID})
		passed := *w.given(w.transfer(o.Tickets[2], bob)).Ticket
		w.given(w.checkIn(passed))
		w.given(w.offline(passed, "d", start))
		w.given(ledger.UndoCheckIn{Ticket: passed.ID, Event: mainEvent, By: dave, Reason: "why"})
		lease := w.lease("relay", "one")
		notices, err := w.ledger.NoticesOf(ctx, o.ID)
		if err != nil {
			w.Fatal(err)
		}
		if err := w.ledger.MarkPublished(ctx, lease, notices[:5]); err != nil {
			w.Fatal(err)
		}
		kept, err := w.ledger.NoticesOf(ctx, o.ID)
		w.same("marked ones too", []any{kept, err}, []any{notices, nil})
		bodies := w.bodies(o.ID)
		refund, ticket := r.ID.Text(id.Refund), passed.ID.Text(id.Ticket)
		for kind, about := range map[string]map[string]any{
			ledger.NoticeExchanged:       {"refund_id": swap.Exchange[0].Text(id.Refund), "exchange": n.ID.Text(id.Order)},
			ledger.NoticeRefundRequested: {"refund_id": refund},
			ledger.NoticeRefundRefused:   {"refund_id": refund},
			ledger.NoticeRefundDone:      {"refund_id": refund},
			ledger.NoticeSeatsReleased:   {"refund_id": refund},
			ledger.NoticeTransferred:     {"ticket_id": ticket, "was": o.Tickets[2].ID.Text(id.Ticket), "to": bob.Text(id.Customer)},
			ledger.NoticeCheckedIn:       {"ticket_id": ticket},
			ledger.NoticeCheckInConflict: {"ticket_id": ticket},
			ledger.NoticeCheckInUndone:   {"ticket_id": ticket},
		} {
			about["booking_id"] = o.ID.Text(id.Order)
			for name, want := range about {
				w.same(kind+": "+name, bodies[kind][name], want)
			}
		}
		for _, n := range notices {
			alert := n.Kind == ledger.NoticeRefundRefused || n.Kind == ledger.NoticeCheckInConflict
			w.same(n.Kind+": somebody should look", n.Alert, alert)
		}
		w.pass(hour)
		lease = w.lease("relay", "one")
		pruned, err := w.ledger.PrunePublished(ctx, lease, math.MaxInt64, 3)
		w.same("pruned", []any{pruned, err}, []any{3, nil})
		kept, err = w.ledger.NoticesOf(ctx, o.ID)
		w.same("the rest", []any{kept, err}, []any{notices[3:], nil})
	}},
	{"I12: an event tells of each change of its row, in order", func(w *world) {
		w.same("it was made", w.kinds(mainEvent), []string{ledger.NoticeEvent})
		e := w.set(func(e *ledger.Event) { e.State, e.Sequence = ledger.Paused, 40 })
		w.again(ledger.SetEvent{Event: e})
		w.ok(ledger.Stop{Event: mainEvent}, anEvent...)
		w.again(ledger.Stop{Event: mainEvent})
		e.Version++
		w.given(ledger.SetEvent{Event: e}) // it stays stopped
		w.reopen()
		w.given(ledger.SetEvent{Event: e, Looked: true})
		notices, err := w.ledger.NoticesOf(context.Background(), mainEvent)
		if err != nil {
			w.Fatal(err)
		}
		var got []any
		for _, n := range notices {
			var body struct {
				Event   string `json:"event_id"`
				State   string
				Version int64
			}
			if err := json.Unmarshal(n.Body, &body); err != nil {
				w.Fatal(err)
			}
			got = append(got, []any{n.Sequence, n.Alert, body.Event == mainEvent.Text(id.Event), body.State, body.Version})
		}
		w.same("the notices", got, []any{
			[]any{int64(1), false, true, "on_sale", int64(1)}, []any{int64(2), false, true, "paused", int64(2)},
			[]any{int64(3), false, true, "stopped", int64(2)}, []any{int64(4), false, true, "stopped", int64(3)},
			[]any{int64(5), false, true, "paused", int64(3)},
		})
		row, err := w.ledger.Event(context.Background(), mainEvent)
		w.same("the row's", []any{row.Sequence, err}, []any{int64(5), nil})
	}},
	{"SetEvent: rules that cannot be", func(w *world) {
		for _, c := range []struct {
			field  string
			change func(e *ledger.Event)
		}{
			{"refunds", func(e *ledger.Event) { e.Refunds.FeeBP = 10_001 }},
			{"refunds", func(e *ledger.Event) { e.Refunds.FeeBP = -1 }},
			{"refunds", func(e *ledger.Event) { e.Refunds.FeePlace = -1 }},
			{"refunds", func(e *ledger.Event) { e.Refunds.Until = -1 }},
			{"exchanges", func(e *ledger.Event) { e.Exchanges.Fee = -1 }},
			{"exchanges", func(e *ledger.Event) { e.Exchanges.Until = -1 }},
			{"transfers", func(e *ledger.Event) { e.Transfers.Until = -1 }},
		} {
			e := hallEvent(mainEvent)
			e.Version = 2
			c.change(&e)
			w.same("the field", w.no("invalid", ledger.SetEvent{Event: e}).Field, c.field)
		}
	}},
}
