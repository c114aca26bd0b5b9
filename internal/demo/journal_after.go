package demo

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"onsale/internal/httpapi"
	"onsale/internal/id"
)

// What buyers are told of tickets after they are paid for. What they asked for is written down, too, before they ask: a
// ticket may be VOID, or USED, only where somebody asked for that.

// A later is what was asked for and said after a sale.
type later struct {
	voids    map[id.ID]string    // tickets that may be VOID, and by what
	entries  map[id.ID]bool      // tickets whose holder was at a door
	undos    map[id.ID]bool      // whose check-in may be undone
	people   map[int]id.ID       // who signed in, by buyer
	refunds  map[id.ID]*backSaid // by refund
	passed   []passedSaid
	checkIns []checkInSaid
}

func newLater() later {
	return later{voids: map[id.ID]string{}, entries: map[id.ID]bool{}, undos: map[id.ID]bool{}, people: map[int]id.ID{}, refunds: map[id.ID]*backSaid{}}
}

// A backSaid is what was last said of a refund.
type backSaid struct {
	Refund  id.ID
	Booking id.ID
	Buyer   int
	State   string
	Tickets []id.ID
	Amount  int64
	Kept    int64
	Refused bool // by the bank: it stays REQUESTED
}

// A passedSaid is a ticket that was passed on.
type passedSaid struct {
	Ticket, Was, Booking id.ID
	To                   int // the buyer who has it now
}

// A checkInSaid is a use of a ticket that was acknowledged.
type checkInSaid struct {
	Ticket   id.ID
	At       int64 // Unix milliseconds
	Device   string
	Offline  bool
	Conflict bool
	Undone   bool
}

// asks writes down that a buyer is about to ask for something after which tickets are void.
func (j *journal) asks(buyer int, what string, tickets []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(journalLine{Buyer: buyer, What: "asks for " + what, Tickets: tickets})
	for _, text := range tickets {
		if t, err := id.Parse(id.Ticket, text); err == nil {
			j.later.voids[t] = what
		}
	}
}

func (j *journal) asksEntry(buyer int, ticket string) {
	j.asksFor(buyer, "is at a door", ticket, j.later.entries)
}

func (j *journal) asksUndo(buyer int, ticket string) {
	j.asksFor(buyer, "asks for undo", ticket, j.later.undos)
}

func (j *journal) asksFor(buyer int, what, ticket string, into map[id.ID]bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(journalLine{Buyer: buyer, What: what, Tickets: []string{ticket}})
	if t, err := id.Parse(id.Ticket, ticket); err == nil {
		into[t] = true
	}
}

// signedIn writes down who somebody is.
func (j *journal) signedIn(buyer int, in *httpapi.SignIn) error {
	customer, err := id.Parse(id.Customer, in.Customer)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(journalLine{Buyer: buyer, What: "signed in", Customer: in.Customer})
	j.later.people[buyer] = customer
	return nil
}

// stages are the states of a refund, in order.
var stages = []string{"REQUESTED", "REFUNDED", "SEAT_RELEASED"}

// refunded writes down a refund as the server showed it.
func (j *journal) refunded(buyer int, r *httpapi.Refund) error {
	refund, err := id.Parse(id.Refund, r.ID)
	if err != nil {
		return err
	}
	booking, err := id.Parse(id.Order, r.Booking)
	if err != nil {
		return err
	}
	said := &backSaid{Refund: refund, Booking: booking, Buyer: buyer, State: r.State, Amount: r.Amount.AmountMinor, Kept: r.Kept, Refused: r.Refused != ""}
	for _, text := range r.Tickets {
		t, err := id.Parse(id.Ticket, text)
		if err != nil {
			return err
		}
		said.Tickets = append(said.Tickets, t)
	}
	stage := slices.Index(stages, r.State)
	if stage < 0 {
		return fmt.Errorf("%s is %q", r.ID, r.State)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(journalLine{Buyer: buyer, What: "refund", Refund: r.ID, Booking: r.Booking, State: r.State, Amount: r.Amount.AmountMinor, Tickets: r.Tickets})
	if before := j.later.refunds[refund]; before == nil || slices.Index(stages, before.State) <= stage {
		j.later.refunds[refund] = said
	}
	return nil
}

// passed writes down that a ticket belongs to somebody else now, as another one.
func (j *journal) passed(buyer, to int, booking string, p *httpapi.Transferred) error {
	said := passedSaid{To: to}
	for _, part := range []struct {
		into         *id.ID
		prefix, text string
	}{{&said.Ticket, id.Ticket, p.Ticket}, {&said.Was, id.Ticket, p.Was}, {&said.Booking, id.Order, booking}} {
		var err error
		if *part.into, err = id.Parse(part.prefix, part.text); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(journalLine{Buyer: buyer, What: "passed on", Booking: booking, Tickets: []string{p.Was, p.Ticket}})
	if !slices.Contains(j.later.passed, said) {
		j.later.passed = append(j.later.passed, said)
	}
	return nil
}

// entered writes down that a ticket was let in.
func (j *journal) entered(buyer int, in *httpapi.CheckIn) error {
	t, err := id.Parse(id.Ticket, in.Ticket)
	if err != nil {
		return err
	}
	j.checkedIn(buyer, in.Ticket, checkInSaid{Ticket: t, At: in.At.UnixMilli(), Device: in.Device})
	return nil
}

// synced writes down that what a door did without a network was taken.
func (j *journal) synced(buyer int, ticket, device string, fact *httpapi.SyncFact, conflict bool) {
	t, err := id.Parse(id.Ticket, ticket)
	if err != nil {
		return // it was parsed before
	}
	j.checkedIn(buyer, ticket, checkInSaid{Ticket: t, At: fact.At.UnixMilli(), Device: device, Offline: true, Conflict: conflict})
}

func (j *journal) checkedIn(buyer int, ticket string, said checkInSaid) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(journalLine{Buyer: buyer, What: "let in", Tickets: []string{ticket}, Used: time.UnixMilli(said.At)})
	if !slices.Contains(j.later.checkIns, said) {
		j.later.checkIns = append(j.later.checkIns, said)
	}
}

// undone writes down that all uses of a ticket so far were taken back.
func (j *journal) undone(buyer int, ticket string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(journalLine{Buyer: buyer, What: "undone", Tickets: []string{ticket}})
	for i := range j.later.checkIns {
		if c := &j.later.checkIns[i]; c.Ticket.Text(id.Ticket) == ticket {
			c.Undone = true
		}
	}
}

// copy is all that was said until now; j.mu is held.
func (l *later) copy() later {
	c := later{
		voids: maps.Clone(l.voids), entries: maps.Clone(l.entries), undos: maps.Clone(l.undos), people: maps.Clone(l.people),
		passed: slices.Clone(l.passed), checkIns: slices.Clone(l.checkIns), refunds: map[id.ID]*backSaid{},
	}
	for k, v := range l.refunds {
		said := *v
		c.refunds[k] = &said
	}
	return c
}

// withAsked adds what was asked for until now to what was said until earlier. What is in the ledger, which was read in
// between, somebody had asked for before.
func (j *journal) withAsked(s said) said {
	j.mu.Lock()
	defer j.mu.Unlock()
	s.later.voids, s.later.entries, s.later.undos = maps.Clone(j.later.voids), maps.Clone(j.later.entries), maps.Clone(j.later.undos)
	for i := range s.holds {
		s.holds[i].Asked = j.holds[s.holds[i].Hold].Asked
	}
	return s
}
