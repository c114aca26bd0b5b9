package audit

import (
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// The door (E6): a ticket is USED by one use that stands, and a use is never forgotten. Walked ticket by ticket, beside the
// event's tickets.

// uses checks the uses of one ticket against its state.
func (h *hall) uses(t *ticketRow, rows *table[useRow]) {
	h.usesOfNothing(rows, t.id)
	h.a.saw(CheckDoor, 1)
	standing, accepted := 0, false
	twice, void := false, false
	for u := range rows.while(func(r *useRow) bool { return r.event == h.id && r.ticket == t.id }) {
		switch u.conflict {
		case "":
			accepted = true
			if u.undone == 0 {
				standing++
			}
			continue
		case ledger.ConflictUsed:
			twice = true
		case ledger.ConflictVoid:
			void = true
		default:
			h.bad(CheckDoor, ticketText(t), "a use of it is a conflict of no kind (%q)", u.conflict)
		}
		h.totals.Conflicts++
		if !u.offline || u.undone != 0 {
			h.bad(CheckDoor, ticketText(t), "a use of it is a conflict, but was decided online or undone")
		}
	}
	switch {
	case standing > 1:
		h.bad(CheckDoor, ticketText(t), "it let in %d times", standing)
	case t.state == ledger.TicketUsed && standing == 0:
		h.bad(CheckDoor, ticketText(t), "it is USED, and no use of it stands")
	case t.state == ledger.TicketValid && standing > 0:
		h.bad(CheckDoor, ticketText(t), "it is VALID, and a use of it stands")
	case t.state == ledger.TicketVoid && t.refund == 0 && standing > 0:
		h.bad(CheckDoor, ticketText(t), "it was passed on, and a use of it stands")
	case twice && !accepted:
		h.bad(CheckDoor, ticketText(t), "it was used a second time, and never a first time")
	case void && t.state != ledger.TicketVoid:
		h.bad(CheckDoor, ticketText(t), "it was used when it was VOID, and is not")
	}
}

// usesOfNothing reports uses whose tickets are not there, up to the next one that is (0: to the end of the event).
func (h *hall) usesOfNothing(rows *table[useRow], ticket id.ID) {
	for u := range rows.while(func(r *useRow) bool { return r.event == h.id && (ticket == 0 || r.ticket < ticket) }) {
		h.bad(CheckReferences, u.ticket.Text(id.Ticket), "it was used at %d, and is no ticket of this event", u.at)
	}
}
