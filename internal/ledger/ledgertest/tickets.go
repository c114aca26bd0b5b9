package ledgertest

import (
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// by is a transfer that somebody else asks for.
func by(customer id.ID, c ledger.Transfer) ledger.Transfer {
	c.Customer = customer
	return c
}

var transferScenarios = []scenario{
	{"a ticket passed on is VOID, and another of the same place is valid", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1)
		t := o.Tickets[1]
		c := w.transfer(t, bob)
		r := w.ok(c, anOrder(o.ID)...)
		want := t
		want.ID, want.Customer, want.Was = c.ID, bob, t.ID
		w.same("the ticket", r.Ticket, &want)
		w.same("the stored one", w.ticketNow(c.ID), want)
		old := t
		old.State, old.Gone = ledger.TicketVoid, true
		w.same("the old one", w.ticketNow(t.ID), old)
		w.wantOrder(o.ID, ledger.OrderPaid, "")
		w.wantSeats(ledger.Sold, 0, 1)
		w.same("the notices", w.since(o.ID, 2), []string{ledger.NoticeTransferred})
		w.no(fault.WrongCustomer, by(alice, w.transfer(want, carol)))
		w.no(fault.Conflict, w.transfer(t, carol)) // the old one
		w.no(fault.TicketVoid, w.checkIn(t))
		w.given(w.checkIn(want))
		w.reopen()
		w.same("after the program ended", w.ticketNow(c.ID).State, ledger.TicketUsed)
	}},
	{"refusals of Transfer come in their order", func(w *world) {
		w.allow()
		w.set(func(e *ledger.Event) {
			e.Documents, e.Limits = true, []ledger.Limit{{Scope: ledger.PerCategory, Category: 0, Max: 1}, {Scope: ledger.PerDocument, Max: 1}}
		})
		bobs := w.begin(w.held(bob, 5))
		bobs.Documents = []string{"b"}
		w.confirmed(w.given(bobs).Order)
		mine := w.begin(w.held(alice, 0))
		mine.Documents = []string{"a"}
		t := w.confirmed(w.given(mine).Order).Tickets[0]
		c := w.transfer(t, carol)
		c.Ticket = 999
		w.no(fault.TicketUnknown, c)
		w.no(fault.WrongCustomer, by(bob, w.transfer(t, carol)))
		w.same("the field", w.no(fault.Invalid, w.transfer(t, alice)).Field, "to")
		w.same("the field", w.no(fault.Invalid, w.transfer(t, 0)).Field, "to")
		w.same("the field", w.no(fault.Invalid, w.transfer(t, carol)).Field, "document")
		c = w.transfer(t, bob)
		c.Document = "b"
		w.same("which limit", w.no(fault.LimitReached, c).Field, "category")
		c = w.transfer(t, carol)
		c.Document = "b"
		w.same("which limit", w.no(fault.LimitReached, c).Field, "document")
		c.Document = "c"
		w.set(func(e *ledger.Event) { e.State = ledger.Cancelled })
		w.no(fault.NotTransferable, c)
		w.set(func(e *ledger.Event) { e.State, e.Transfers.Until = ledger.Ended, 0 })
		w.no(fault.NotTransferable, c)
		w.set(func(e *ledger.Event) { e.Transfers.Until = start + 1000 })
		w.given(w.checkIn(t))
		w.no(fault.Conflict, c)
		w.given(ledger.UndoCheckIn{Ticket: t.ID, Event: mainEvent, By: dave, Reason: "oops"})
		w.pass(second)
		w.no(fault.NotTransferable, c)
		w.set(func(e *ledger.Event) { e.Transfers.Until = shopUntil })
		w.given(c)
	}},
	{"A10: what somebody received counts under their limits, what they passed on for the buyer still", func(w *world) {
		w.allow()
		for _, event := range []id.ID{mainEvent, otherEvent} {
			w.setOf(event, func(e *ledger.Event) {
				e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 2}, {Scope: ledger.PerShow, Max: 3}}
			})
		}
		o := w.paid(alice, 0, 1)
		passed := *w.given(w.transfer(o.Tickets[0], bob)).Ticket
		w.no(fault.LimitReached, w.holdSeats(alice, 2)) // she has bought two
		w.same("which limit", w.no(fault.LimitReached, w.holdSeats(bob, 2, 3)).Field, "event")
		elsewhere := w.holdSeats(bob, 4, 5)
		elsewhere.Event = otherEvent
		w.given(elsewhere)
		w.same("which limit", w.no(fault.LimitReached, w.holdSeats(bob, 2)).Field, "show")
		w.same("which limit", w.no(fault.LimitReached, w.transfer(o.Tickets[1], bob)).Field, "show")
		w.pass(holdTTL)
		w.ok(w.transfer(o.Tickets[1], bob), things(anOrder(o.ID), aHold(elsewhere.ID), "seat 4 of 2", "seat 5 of 2")...) // A9
		w.same("which limit", w.no(fault.LimitReached, w.holdSeats(bob, 2)).Field, "event")
		again := *w.given(w.transfer(passed, alice)).Ticket // back to the buyer: it counts there already
		w.no(fault.LimitReached, w.holdSeats(alice, 2))
		w.held(bob, 2)
		w.no(fault.LimitReached, w.transfer(again, bob))
		w.given(w.transfer(again, carol))
	}},
	{"A10: limits that come later count what was received; ReleaseSeats gives it back to both", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1)
		w.given(w.transfer(o.Tickets[0], bob))
		next := *w.given(w.transfer(o.Tickets[1], bob)).Ticket
		w.given(w.transfer(next, carol))
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 2}} })
		w.no(fault.LimitReached, w.holdSeats(alice, 2))
		w.no(fault.LimitReached, w.holdSeats(bob, 2, 3))
		w.no(fault.LimitReached, w.holdSeats(carol, 2, 3))
		r := w.given(w.refundBy(o, 0)).Refund
		w.given(back(r))
		w.no(fault.LimitReached, w.holdSeats(bob, 2, 3))
		w.given(ledger.ReleaseSeats{Refund: r.ID})
		w.given(ledger.Release{Hold: w.held(alice, 2, 3).ID, Customer: alice})
		w.given(ledger.Release{Hold: w.held(bob, 2, 3).ID, Customer: bob})
		w.held(carol, 2, 3)
	}},
	{"E8, A10: the new attendee's document takes the old one's place", func(w *world) {
		w.allow()
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerDocument, Max: 1}} })
		o := w.paid(alice, 0, 1) // without documents
		c := w.transfer(o.Tickets[1], bob)
		c.Document = "b"
		w.given(c)
		w.same("the documents", w.orderNow(o.ID).Documents, []string{"", "b"})
		again := w.transfer(w.ticketNow(c.ID), carol)
		again.Document = "b"
		w.given(again) // the same one
		other := w.transfer(o.Tickets[0], bob)
		other.Document = "b"
		w.no(fault.LimitReached, other)
		third := w.transfer(w.ticketNow(again.ID), bob)
		third.Document = "c"
		w.given(third)
		w.given(other)
		w.same("the documents", w.orderNow(o.ID).Documents, []string{"b", "c"})
		last := w.transfer(w.ticketNow(third.ID), carol)
		w.given(last)
		w.same("the documents", w.orderNow(o.ID).Documents, []string{"b", ""})
	}},
	{"I7: a ticket passed on from one to the next, and back", func(w *world) {
		w.allow()
		o := w.confirmed(w.pending(w.given(w.holdPlaces(alice, 1, 2)).Hold))
		t := o.Tickets[0]
		for _, to := range []id.ID{bob, carol, dave, bob, alice} {
			t = *w.given(w.transfer(t, to)).Ticket
			w.sound()
		}
		w.wantArea(1, 0, 2)
		w.same("what it was", len(w.orderNow(o.ID).Tickets), 7)
		w.given(w.refund(o, t.ID)) // it is the buyer's again
		w.allBack(o.ID)
		w.given(ledger.ReleaseSeats{Refund: w.refundsOf(o.ID)[0].ID})
		w.wantArea(1, 0, 1)
	}},
	{"A21, A22: what was passed on is neither its giver's nor its taker's to give back or exchange", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1)
		t := *w.given(w.transfer(o.Tickets[0], bob)).Ticket
		w.no(fault.NotRefundable, w.refund(o, t.ID))
		bobs := w.refund(o, t.ID)
		bobs.Customer = bob
		w.no(fault.WrongCustomer, bobs)
		w.no(fault.WrongCustomer, w.exchange(o, []id.ID{t.ID}, 5))
		c := w.exchange(o, []id.ID{t.ID}, 5)
		c.Customer = bob
		w.no(fault.WrongCustomer, c)
		w.same("the rest", w.given(w.refund(o)).Refund.Tickets, []id.ID{o.Tickets[1].ID})
		w.no(fault.Conflict, w.refund(o))
		w.given(w.refundBy(o, 0))
		w.allBack(o.ID)
		w.wantOrder(o.ID, ledger.OrderRefunded, "goodwill")
	}},
	{"A12: a transfer's key has one effect", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1)
		c := w.transfer(o.Tickets[0], bob)
		c.Key = keyOf("k", "ticket", "0", "to", "bob")
		first := w.given(c).Ticket
		repeat := c
		repeat.ID = w.id()
		w.same("the repeat's ticket", w.again(repeat).Ticket, first)
		w.given(w.checkIn(*first))
		w.same("its present state", w.again(repeat).Ticket.State, ledger.TicketUsed)
		other := w.transfer(o.Tickets[1], carol)
		other.Key = keyOf("k", "ticket", "1", "to", "carol")
		w.same("the field", w.no(fault.KeyReused, other).Field, "ticket")
	}},
	{"A18: a refused capture takes the ticket from whoever has it", func(w *world) {
		w.allow()
		w.set(func(e *ledger.Event) { e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: 2}} })
		o := authorized(w)
		w.given(w.transfer(o.Tickets[0], bob))
		w.given(w.checkIn(o.Tickets[1]))
		w.no(fault.LimitReached, w.holdSeats(bob, 5, 6))
		w.given(record(o, ledger.PaymentCaptureRefused, 0, w.id()))
		w.wantTickets(o.ID, ledger.TicketVoid, ledger.TicketVoid, ledger.TicketVoid)
		w.held(bob, 5, 6)
		w.held(alice, 0, 1)
	}},
}
