package door

import (
	"context"
	"slices"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Limits of what a device loads and sends at once.
const (
	ListOrdersMax = 500 // orders whose tickets are one page of List
	SyncMax       = 500 // facts of one Sync
)

// A Listed is a ticket as a door without a network must know it.
type Listed struct {
	Ticket id.ID
	State  ledger.TicketState
	Place  Place
}

// A ListPage is a part of an event's list. Next is 0 on the last one.
type ListPage struct {
	Tickets []Listed
	Next    id.ID
	Now     ledger.Time // the ledger's clock: what changes later is not in the list
}

// List is what a device loads before it goes without a network: the tickets that its gate lets in ("": all), and every void
// ticket of the event, since a void one is refused at any gate. The codes themselves are not in it: a device checks their
// signature. It cannot know of copies used at another gate; only Sync finds those.
//
// Faults: event_unknown; invalid (no such gate).
func (s *Service) List(ctx context.Context, event id.ID, gate string, after id.ID) (ListPage, error) {
	hall, err := s.hall(ctx, event)
	if err != nil {
		return ListPage{}, err
	}
	if gate != "" {
		if err := hall.allows(gate, Place{Gates: []string{gate}}); err != nil {
			return ListPage{}, err
		}
	}
	read := s.o.Shard.Ledger()
	page := ListPage{}
	if page.Now, err = read.Now(ctx); err != nil {
		return ListPage{}, err
	}
	orders, err := read.OrdersOfEvent(ctx, event, ledger.OrderFilter{After: after}, ListOrdersMax)
	if err != nil {
		return ListPage{}, err
	}
	for _, o := range orders {
		for i := range o.Tickets {
			t := &o.Tickets[i]
			if t.Event != event {
				continue
			}
			p := hall.place(t)
			if t.State == ledger.TicketVoid || gate == "" || slices.Contains(p.Gates, gate) {
				page.Tickets = append(page.Tickets, Listed{Ticket: t.ID, State: t.State, Place: p})
			}
		}
	}
	if len(orders) == ListOrdersMax {
		page.Next = orders[len(orders)-1].ID
	}
	return page, nil
}

// A Fact is a use that a device let happen without a network.
type Fact struct {
	Ticket id.ID
	At     time.Time // by the device's clock
	Gate   string
}

// An Outcome is what became of a Fact.
type Outcome struct {
	Ticket id.ID
	Use    ledger.CheckedIn // as it is written down; where it is a conflict, Conflict says which
	First  *ledger.CheckedIn
	Repeat bool
	Err    error // it could not be written down: the device keeps it and sends it again, unless it is invalid
}

// Sync writes down what a device did without a network, each fact alone, in the order given. Sent again nothing changes.
//
// Faults: invalid (no device; more than SyncMax facts).
func (s *Service) Sync(ctx context.Context, event id.ID, device string, by id.ID, facts []Fact) ([]Outcome, error) {
	switch err := checkNames("", device); {
	case err != nil:
		return nil, err
	case device == "":
		return nil, &fault.Error{Code: fault.Invalid, Field: "device", Detail: "name the device, always by the same name"}
	case len(facts) > SyncMax:
		return nil, &fault.Error{Code: fault.Invalid, Field: "facts", Detail: "at most 500 at once"}
	}
	outcomes := make([]Outcome, len(facts))
	for i, f := range facts {
		outcomes[i] = s.fact(ctx, event, device, by, f)
	}
	s.counts.Forget(event)
	return outcomes, nil
}

func (s *Service) fact(ctx context.Context, event id.ID, device string, by id.ID, f Fact) Outcome {
	out := Outcome{Ticket: f.Ticket}
	if out.Err = checkNames(f.Gate, device); out.Err != nil {
		return out
	}
	r, err := s.o.Shard.Do(ctx, ledger.CheckIn{
		Ticket: f.Ticket, Event: event, Gate: f.Gate, Device: device, By: by, Offline: true, At: ledger.TimeOf(f.At),
	})
	if err != nil {
		out.Err = err
		return out
	}
	out.Use, out.Repeat = *r.CheckIn, r.Repeat
	if out.Use.Conflict == ledger.ConflictUsed {
		out.First = s.first(ctx, f.Ticket)
	}
	return out
}

// first is the use by which a ticket's holder is in by right, nil where it cannot be told now.
func (s *Service) first(ctx context.Context, number id.ID) *ledger.CheckedIn {
	uses, err := s.o.Shard.Ledger().CheckInsOf(ctx, number)
	if err != nil {
		return nil
	}
	for _, u := range uses {
		if u.Conflict == "" && u.Undone == 0 {
			return &u
		}
	}
	return nil
}

// Counts say how full the house is.
type Counts struct {
	Tickets   int // that may come in: valid, used or not
	Entered   int
	Conflicts int
	Gates     map[string]int // entered, by the gate's key; "" where none was said
	Sections  map[string]int // entered, by the section's key
	At        ledger.Time
}

const (
	countsKept = 1000
	countsPage = 5000
)

// Counts counts an event; what it says may be CountsFor old. Fault: event_unknown.
func (s *Service) Counts(ctx context.Context, event id.ID) (*Counts, error) {
	return s.counts.Load(ctx, event, func(ctx context.Context) (*Counts, error) { return s.count(ctx, event) })
}

func (s *Service) count(ctx context.Context, event id.ID) (*Counts, error) {
	hall, err := s.hall(ctx, event)
	if err != nil {
		return nil, err
	}
	c := &Counts{Gates: map[string]int{}, Sections: map[string]int{}}
	if c.At, err = s.o.Shard.Ledger().Now(ctx); err != nil {
		return nil, err
	}
	if err := s.countTickets(ctx, hall, c); err != nil {
		return nil, err
	}
	return c, s.countUses(ctx, event, c)
}

// countTickets counts who may come in and who is in, by section.
func (s *Service) countTickets(ctx context.Context, hall hall, c *Counts) error {
	find := ledger.OrderFilter{}
	for {
		orders, err := s.o.Shard.Ledger().OrdersOfEvent(ctx, hall.event.ID, find, ListOrdersMax)
		if err != nil {
			return err
		}
		for _, o := range orders {
			for i := range o.Tickets {
				switch t := &o.Tickets[i]; t.State {
				case ledger.TicketUsed:
					c.Tickets++
					c.Entered++
					c.Sections[hall.place(t).Section]++
				case ledger.TicketValid:
					c.Tickets++
				}
			}
		}
		if len(orders) < ListOrdersMax {
			return nil
		}
		find.After = orders[len(orders)-1].ID
	}
}

// countUses counts by gate, and the conflicts.
func (s *Service) countUses(ctx context.Context, event id.ID, c *Counts) error {
	var after ledger.CheckInCursor
	for {
		uses, err := s.o.Shard.Ledger().CheckIns(ctx, event, after, false, countsPage)
		if err != nil {
			return err
		}
		for _, u := range uses {
			switch {
			case u.Conflict != "":
				c.Conflicts++
			case u.Undone == 0:
				c.Gates[u.Gate]++
			}
		}
		if len(uses) < countsPage {
			return nil
		}
		last := uses[len(uses)-1]
		after = ledger.CheckInCursor{At: last.At, Ticket: last.Ticket, Device: last.Device}
	}
}
