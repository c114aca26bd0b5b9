package ledger

import (
	"onsale/internal/fault"
	"onsale/internal/id"
)

// What becomes of a ticket beside going back: it is passed on to somebody else, and used at a door.

func (m *Model) transfer(c Transfer) Result {
	if answer, ok := m.known(c.Customer, OpTransfer, c.Key); ok {
		return answer
	}
	t := m.tickets[c.Ticket]
	if t == nil {
		return refuse(fault.TicketUnknown, "")
	}
	if t.Customer != c.Customer {
		return refuse(fault.WrongCustomer, "")
	}
	e, o := m.events[t.Event], m.orders[t.Order]
	if c.To <= 0 || c.To == c.Customer {
		return refuseField(fault.Invalid, "to")
	}
	if e.Documents && c.Document == "" {
		return refuseField(fault.Invalid, "document")
	}
	if e.Transfers.Until <= m.now || e.Paying() != nil {
		return refuse(fault.NotTransferable, "the event does not allow it now")
	}
	if t.State != TicketValid || m.marked(t) {
		return refuse(fault.Conflict, "the ticket is %s, or being exchanged", t.State)
	}
	if c.To != o.Customer { // what the buyer bought counts for them already
		if f := m.overLimits(e, c.To, []modelPlace{e.placeOf(t)}, nil); f != nil {
			return Result{Fault: f}
		}
	}
	if c.Document != "" && c.Document != m.documentOf(t) {
		for _, l := range e.Limits {
			if l.Scope == PerDocument && m.hasDocument(e, c.Document)+1 > l.Max {
				return refuseField(fault.LimitReached, "document")
			}
		}
	}
	next := *t
	next.ID, next.Customer, next.Was, next.Exchange = c.ID, c.To, t.ID, 0
	t.State, t.Gone = TicketVoid, true
	m.tickets[next.ID] = &next
	for c.Document != "" && len(o.Documents) <= int(t.Place) {
		o.Documents = append(o.Documents, "")
	}
	if int(t.Place) < len(o.Documents) {
		o.Documents[t.Place] = c.Document
	}
	m.publish(o, NoticeTransferred, "ticket_id", next.ID.Text(id.Ticket), "was", t.ID.Text(id.Ticket), "to", c.To.Text(id.Customer))
	m.remember(c.Customer, OpTransfer, c.Key, next.ID)
	return Result{Ticket: m.ticketNow(next.ID)}
}

func (m *Model) checkIn(c CheckIn) Result {
	t := m.tickets[c.Ticket]
	switch {
	case t == nil:
		return refuse(fault.TicketUnknown, "")
	case t.Event != c.Event:
		return refuse(fault.WrongEvent, "")
	case c.Offline:
		return m.checkInFact(c, t)
	case t.State == TicketVoid:
		return refuse(fault.TicketVoid, "")
	case t.State == TicketUsed:
		r := refuse(fault.TicketUsed, "")
		r.CheckIn = m.accepted(t)
		return r
	}
	c.At = m.now
	for m.checkedIn(c) != nil { // used, undone and used again within one millisecond
		c.At++
	}
	return m.admitted(c, t)
}

// checkInFact writes down what a door decided by itself. The facts are not judged again: the first one that came in counts,
// whatever the clocks say.
func (m *Model) checkInFact(c CheckIn, t *Ticket) Result {
	if c.Device == "" {
		return refuseField(fault.Invalid, "device")
	}
	if before := m.checkedIn(c); before != nil {
		copied := *before
		return Result{Repeat: true, Ticket: m.ticketNow(t.ID), CheckIn: &copied}
	}
	if c.At <= m.now-Time(CheckInPastMax) || c.At > m.now+Time(CheckInAheadMax) {
		return refuseField(fault.Invalid, "at")
	}
	if t.State == TicketValid {
		return m.admitted(c, t)
	}
	before := 0
	for _, row := range m.checkIns {
		if row.Ticket == t.ID && row.Conflict != "" {
			before++
		}
	}
	if before >= ConflictsMax {
		return refuse(fault.Conflict, "%d conflicts are written down", before)
	}
	row := m.writeCheckIn(c)
	row.Conflict = map[TicketState]string{TicketUsed: ConflictUsed, TicketVoid: ConflictVoid}[t.State]
	m.publish(m.orders[t.Order], NoticeCheckInConflict, "ticket_id", t.ID.Text(id.Ticket))
	copied := *row
	return Result{Ticket: m.ticketNow(t.ID), CheckIn: &copied}
}

func (m *Model) admitted(c CheckIn, t *Ticket) Result {
	row := *m.writeCheckIn(c)
	t.State = TicketUsed
	m.publish(m.orders[t.Order], NoticeCheckedIn, "ticket_id", t.ID.Text(id.Ticket))
	return Result{Ticket: m.ticketNow(t.ID), CheckIn: &row}
}

func (m *Model) writeCheckIn(c CheckIn) *CheckedIn {
	row := &CheckedIn{Ticket: c.Ticket, Event: c.Event, At: c.At, Device: c.Device, Gate: c.Gate, By: c.By, Offline: c.Offline}
	m.checkIns = append(m.checkIns, row)
	return row
}

// checkedIn is the row of this very use, nil where there is none.
func (m *Model) checkedIn(c CheckIn) *CheckedIn {
	for _, row := range m.checkIns {
		if row.Ticket == c.Ticket && row.Device == c.Device && row.At == c.At {
			return row
		}
	}
	return nil
}

// accepted is the use by which a ticket is USED.
func (m *Model) accepted(t *Ticket) *CheckedIn {
	for _, row := range m.checkIns {
		if row.Ticket == t.ID && row.Conflict == "" && row.Undone == 0 {
			copied := *row
			return &copied
		}
	}
	return nil
}

func (m *Model) undoCheckIn(c UndoCheckIn) Result {
	t := m.tickets[c.Ticket]
	switch {
	case t == nil:
		return refuse(fault.TicketUnknown, "")
	case t.Event != c.Event:
		return refuse(fault.WrongEvent, "")
	case t.State == TicketVoid:
		return refuse(fault.Conflict, "the ticket is VOID")
	case t.State == TicketValid:
		return Result{Repeat: true, Ticket: m.ticketNow(t.ID)}
	}
	t.State = TicketValid
	m.publish(m.orders[t.Order], NoticeCheckInUndone, "ticket_id", t.ID.Text(id.Ticket))
	for _, row := range m.checkIns {
		if row.Ticket == t.ID && row.Conflict == "" && row.Undone == 0 {
			row.Undone, row.UndoneBy, row.Why = m.now, c.By, c.Reason
			undone := *row
			return Result{Ticket: m.ticketNow(t.ID), CheckIn: &undone}
		}
	}
	panic("ledger: a USED ticket without its use")
}
