package decide

import (
	"cmp"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// ticketAt gives a ticket that is shown at the door of an event.
func (w *Work) ticketAt(ticket, event id.ID) (*Ticket, *Order, []*CheckIn, error) {
	t, o, err := w.ticket(ticket)
	switch {
	case err != nil:
		return nil, nil, nil, err
	case t == nil:
		return nil, nil, nil, fault.New(fault.TicketUnknown, "")
	case t.Event != event:
		return nil, nil, nil, fault.New(fault.WrongEvent, "")
	}
	uses, err := w.usesOf(t.ID)
	return t, o, uses, err
}

// accepted is the use of a ticket by which its holder was let in, nil where there is none.
func accepted(uses []*CheckIn) *CheckIn {
	i := slices.IndexFunc(uses, func(u *CheckIn) bool { return u.Conflict == "" && u.Undone == 0 })
	if i < 0 {
		return nil
	}
	return uses[i]
}

// conflicts counts the uses that should not have been.
func conflicts(uses []*CheckIn) (n int) {
	for _, u := range uses {
		if u.Conflict != "" {
			n++
		}
	}
	return n
}

// view is a copy of the use as it is now, for an answer.
func (u *CheckIn) view() *ledger.CheckedIn {
	if u == nil {
		return nil
	}
	v := u.CheckedIn
	return &v
}

func (w *Work) checkIn(c ledger.CheckIn) (ledger.Result, error) {
	t, o, uses, err := w.ticketAt(c.Ticket, c.Event)
	if err != nil {
		return ledger.Result{}, err
	}
	at := func(when ledger.Time) *CheckIn {
		i := slices.IndexFunc(uses, func(u *CheckIn) bool { return u.At == when && u.Device == c.Device })
		if i < 0 {
			return nil
		}
		return uses[i]
	}
	if c.Offline {
		switch known := at(c.At); {
		case c.Device == "":
			return ledger.Result{}, invalid("device", "say which device decided it")
		case known != nil:
			return ledger.Result{Repeat: true, Ticket: t.view(), CheckIn: known.view()}, nil
		case c.At <= w.Now-ledger.Time(ledger.CheckInPastMax) || c.At > w.Now+ledger.Time(ledger.CheckInAheadMax):
			return ledger.Result{}, invalid("at", "the device's clock is wrong, or it was too long ago")
		case t.State != ledger.TicketValid && conflicts(uses) >= ledger.ConflictsMax:
			return ledger.Result{}, fault.New(fault.Conflict, "%d uses of this ticket that should not have been are written down: another says nothing new", ledger.ConflictsMax)
		}
		return w.used(t, o, uses, c, c.At)
	}
	switch {
	case t.State == ledger.TicketUsed && on(GuardCheckInOnce):
		return ledger.Result{CheckIn: accepted(uses).view()}, fault.New(fault.TicketUsed, "")
	case t.State == ledger.TicketVoid:
		return ledger.Result{}, fault.New(fault.TicketVoid, "")
	}
	now := w.Now
	for at(now) != nil { // one that was undone within the same millisecond
		now++
	}
	return w.used(t, o, uses, c, now)
}

// used writes a use down: the ticket is USED by it, or it is a conflict (E6).
func (w *Work) used(t *Ticket, o *Order, uses []*CheckIn, c ledger.CheckIn, when ledger.Time) (ledger.Result, error) {
	u := w.useSet(&CheckIn{Row: Row{New: true}, CheckedIn: ledger.CheckedIn{
		Ticket: t.ID, Event: t.Event, At: when, Device: c.Device, Gate: c.Gate, By: c.By, Offline: c.Offline,
	}})
	kind := ledger.NoticeCheckInConflict
	switch {
	case t.State == ledger.TicketVoid:
		u.Conflict = ledger.ConflictVoid
	case t.State == ledger.TicketUsed && c.Offline:
		u.Conflict = ledger.ConflictUsed
	default:
		kind = ledger.NoticeCheckedIn
		w.ticketSet(t).State = ledger.TicketUsed
	}
	uses = append(slices.Clip(uses), u)
	slices.SortFunc(uses, func(a, b *CheckIn) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Device, b.Device)) })
	w.uses[t.ID] = uses
	w.notice(o, kind, u.Conflict != "", 0, fact{"ticket_id", t.ID, id.Ticket})
	return ledger.Result{Ticket: t.view(), CheckIn: u.view()}, nil
}

func (w *Work) undoCheckIn(c ledger.UndoCheckIn) (ledger.Result, error) {
	t, o, uses, err := w.ticketAt(c.Ticket, c.Event)
	switch {
	case err != nil:
		return ledger.Result{}, err
	case t.State == ledger.TicketVoid:
		return ledger.Result{}, fault.New(fault.Conflict, "the ticket is %s", t.State)
	case t.State == ledger.TicketValid:
		return ledger.Result{Repeat: true, Ticket: t.view()}, nil
	}
	u := accepted(uses)
	if u == nil {
		return ledger.Result{}, invariant(t.Event, "ticket %d is USED without a use", t.ID)
	}
	w.useSet(u)
	u.Undone, u.UndoneBy, u.Why = w.Now, c.By, c.Reason
	w.ticketSet(t).State = ledger.TicketValid
	w.notice(o, ledger.NoticeCheckInUndone, false, 0, fact{"ticket_id", t.ID, id.Ticket})
	return ledger.Result{Ticket: t.view(), CheckIn: u.view()}, nil
}
