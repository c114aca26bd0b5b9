package ledgertest

import (
	"context"

	"onsale/internal/fault"
	"onsale/internal/ledger"
)

// offline is what a device decided by itself at an instant.
func (w *world) offline(t ledger.Ticket, device string, at ledger.Time) ledger.CheckIn {
	c := w.checkIn(t)
	c.Offline, c.Device, c.Gate, c.At = true, device, "south", at
	return c
}

func (w *world) usesOf(t ledger.Ticket) []ledger.CheckedIn {
	w.Helper()
	uses, err := w.ledger.CheckInsOf(context.Background(), t.ID)
	if err != nil {
		w.Fatal(err)
	}
	return uses
}

var doorScenarios = []scenario{
	{"E6: a ticket lets in once; the second use is told the first", func(w *world) {
		o := w.paid(alice, 0, 1)
		t := o.Tickets[0]
		w.pass(minute)
		c := w.checkIn(t)
		r := w.ok(c, anOrder(o.ID)...)
		want := ledger.CheckedIn{Ticket: t.ID, Event: mainEvent, At: start + ledger.Time(minute), Device: "d1", Gate: "north", By: dave}
		used := t
		used.State = ledger.TicketUsed
		w.same("the use", []any{r.CheckIn, r.Ticket}, []any{&want, &used})
		w.pass(minute)
		again := c
		again.Gate, again.Device = "south", "d2"
		before := w.picture()
		refused := w.apply(again)[0]
		w.changedExactly(before, describe(again), nil)
		if refused.Fault == nil || refused.Fault.Code != fault.TicketUsed {
			w.Fatalf("the second use: %+v", refused)
		}
		w.same("the first", refused.CheckIn, &want)
		w.no(fault.TicketUsed, c)
		w.same("the uses", w.usesOf(t), []ledger.CheckedIn{want})
		w.wantTickets(o.ID, ledger.TicketUsed, ledger.TicketValid)
		w.wantSeats(ledger.Sold, 0)
		w.same("the notices", w.since(o.ID, 2), []string{ledger.NoticeCheckedIn})
		w.reopen()
		w.no(fault.TicketUsed, c)
	}},
	{"refusals of the door come in their order", func(w *world) {
		w.allow()
		o := w.paid(alice, 0)
		t := o.Tickets[0]
		unknown := w.checkIn(t)
		unknown.Ticket = 999
		w.no(fault.TicketUnknown, unknown)
		elsewhere := w.checkIn(t)
		elsewhere.Event = otherEvent
		w.no(fault.WrongEvent, elsewhere)
		undo := ledger.UndoCheckIn{Ticket: t.ID, Event: mainEvent, By: dave, Reason: "why"}
		other := undo
		other.Ticket = 999
		w.no(fault.TicketUnknown, other)
		other = undo
		other.Event = otherEvent
		w.no(fault.WrongEvent, other)
		w.set(func(e *ledger.Event) { e.State = ledger.Stopped }) // who has a ticket is let in
		w.given(w.checkIn(t))
		c := w.refundBy(o, 0)
		c.Used = true
		w.given(c)
		w.no(fault.TicketVoid, w.checkIn(t))
		w.no(fault.Conflict, undo)
		for field, c := range map[string]ledger.CheckIn{"gate": {Gate: "\x00"}, "device": {Device: "\xff"}} {
			c.Ticket, c.Event = t.ID, mainEvent
			w.same("the field", w.no(fault.Invalid, c).Field, field)
		}
	}},
	{"E6: a use that is undone stays written down", func(w *world) {
		o := w.paid(alice, 0)
		t := o.Tickets[0]
		first := *w.given(w.checkIn(t)).CheckIn
		w.pass(second)
		undo := ledger.UndoCheckIn{Ticket: t.ID, Event: mainEvent, By: bob, Reason: "the wrong person"}
		r := w.ok(undo, anOrder(o.ID)...)
		first.Undone, first.UndoneBy, first.Why = start+1000, bob, "the wrong person"
		w.same("the use", []any{r.CheckIn, r.Ticket.State}, []any{&first, ledger.TicketValid})
		w.again(undo)
		next := *w.given(w.checkIn(t)).CheckIn
		w.same("the uses", w.usesOf(t), []ledger.CheckedIn{first, next})
		w.same("the notices", w.since(o.ID, 2), []string{ledger.NoticeCheckedIn, ledger.NoticeCheckInUndone, ledger.NoticeCheckedIn})
	}},
	{"E6: used, undone and used again within one millisecond are three facts", func(w *world) {
		t := w.paid(alice, 0).Tickets[0]
		undo := ledger.UndoCheckIn{Ticket: t.ID, Event: mainEvent, By: dave, Reason: "again"}
		for i, r := range w.apply(w.checkIn(t), undo, w.checkIn(t), undo, w.checkIn(t), w.checkIn(t)) {
			if used := i == 5; (r.Fault != nil) != used {
				w.Errorf("command %d: %v", i, r.Fault)
			}
		}
		var at []ledger.Time
		for _, use := range w.usesOf(t) {
			at = append(at, use.At)
		}
		w.same("the times", at, []ledger.Time{start, start + 1, start + 2})
	}},
	{"E6: what a door decided offline is a fact; a second use is a conflict, and nothing is overwritten", func(w *world) {
		w.allow()
		o := w.paid(alice, 0, 1)
		t, other := o.Tickets[0], o.Tickets[1]
		w.pass(hour)
		fact := w.offline(t, "d7", start+5)
		r := w.ok(fact, anOrder(o.ID)...)
		want := ledger.CheckedIn{Ticket: t.ID, Event: mainEvent, At: start + 5, Device: "d7", Gate: "south", By: dave, Offline: true}
		w.same("the use", []any{r.CheckIn, r.Ticket.State}, []any{&want, ledger.TicketUsed})
		w.same("the repeat's use", w.again(fact).CheckIn, &want)
		w.no(fault.TicketUsed, w.checkIn(t))

		earlier := w.offline(t, "d8", start+4) // the clocks say that it was first: the facts are not judged again
		r = w.ok(earlier, anOrder(o.ID)...)
		twice := want
		twice.At, twice.Device, twice.Conflict = start+4, "d8", ledger.ConflictUsed
		w.same("the use", []any{r.CheckIn, r.Ticket.State}, []any{&twice, ledger.TicketUsed})
		w.again(earlier)
		w.same("the uses", w.usesOf(t), []ledger.CheckedIn{twice, want})
		w.same("the notices", w.since(o.ID, 2), []string{ledger.NoticeCheckedIn, ledger.NoticeCheckInConflict})

		passed := *w.given(w.transfer(other, bob)).Ticket
		r = w.ok(w.offline(other, "d7", start+6), anOrder(o.ID)...)
		w.same("the use", []any{r.CheckIn.Conflict, r.Ticket.State}, []any{ledger.ConflictVoid, ledger.TicketVoid})
		w.same("who has it now", w.ticketNow(passed.ID).State, ledger.TicketValid)
		w.given(w.checkIn(passed))

		undo := ledger.UndoCheckIn{Ticket: t.ID, Event: mainEvent, By: bob, Reason: "a copy"}
		w.same("what is undone", w.given(undo).CheckIn.Device, "d7")
		w.again(fact) // it was that use, and it is undone
		w.same("the ticket", w.ticketNow(t.ID).State, ledger.TicketValid)
		w.given(w.offline(t, "d7", start+7))
		w.same("the ticket", w.ticketNow(t.ID).State, ledger.TicketUsed)
	}},
	{"E6: offline uses of too long ago, or of the future, are no facts", func(w *world) {
		t := w.paid(alice, 0).Tickets[0]
		now := start + ledger.Time(10*24*hour)
		w.pass(10 * 24 * hour)
		field := func(c ledger.CheckIn, want string) {
			w.Helper()
			w.same("the field", w.no(fault.Invalid, c).Field, want)
		}
		field(w.offline(t, "", 0), "device")
		field(w.offline(t, "d", 0), "at")
		field(w.offline(t, "d", now-ledger.Time(ledger.CheckInPastMax)), "at")
		field(w.offline(t, "d", now+ledger.Time(ledger.CheckInAheadMax)+1), "at")
		oldest := w.offline(t, "d", now-ledger.Time(ledger.CheckInPastMax)+1)
		w.given(oldest)
		w.given(w.offline(t, "d", now+ledger.Time(ledger.CheckInAheadMax)))
		w.pass(hour)
		w.again(oldest) // it stands, however long ago it was
	}},
	{"I13: conflicts of one ticket are written down up to a bound", func(w *world) {
		t := w.paid(alice, 0).Tickets[0]
		w.pass(hour)
		for i := range ledger.Time(ledger.ConflictsMax + 1) { // the first is no conflict
			w.given(w.offline(t, "d", start+1+i))
		}
		w.no(fault.Conflict, w.offline(t, "d", start+99))
		w.again(w.offline(t, "d", start+1+ledger.Time(ledger.ConflictsMax))) // what stands is a repeat
		w.same("the uses", len(w.usesOf(t)), ledger.ConflictsMax+1)
	}},
	{"the uses of an event, page by page, all or the conflicts", func(w *world) {
		ctx := context.Background()
		o := w.paid(alice, 0, 1, 8)
		a, b, c := o.Tickets[0], o.Tickets[1], o.Tickets[2]
		w.pass(hour)
		w.given(w.offline(b, "d2", start+1))
		w.given(w.offline(a, "d2", start+1))
		w.given(w.offline(b, "d1", start+1)) // a conflict
		w.given(w.offline(c, "d1", start))
		w.given(w.offline(a, "d1", start+9)) // a conflict
		w.reopen()
		read := func(conflicts bool, page int) (got []ledger.CheckInCursor) {
			var after ledger.CheckInCursor
			for {
				uses, err := w.ledger.CheckIns(ctx, mainEvent, after, conflicts, page)
				if err != nil {
					w.Fatal(err)
				}
				for _, use := range uses {
					after = ledger.CheckInCursor{At: use.At, Ticket: use.Ticket, Device: use.Device}
					got = append(got, after)
				}
				if len(uses) < page {
					return got
				}
			}
		}
		at := func(t ledger.Time, ticket ledger.Ticket, device string) ledger.CheckInCursor {
			return ledger.CheckInCursor{At: start + t, Ticket: ticket.ID, Device: device}
		}
		all := []ledger.CheckInCursor{at(0, c, "d1"), at(1, a, "d2"), at(1, b, "d1"), at(1, b, "d2"), at(9, a, "d1")}
		for page := 1; page <= 6; page++ {
			w.same("all", read(false, page), all)
			w.same("the conflicts", read(true, page), []ledger.CheckInCursor{all[2], all[4]})
		}
		none, err := w.ledger.CheckIns(ctx, otherEvent, ledger.CheckInCursor{}, false, 10)
		w.same("of another event", []any{len(none), err}, []any{0, nil})
	}},
}
