package demo

import (
	"fmt"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// check compares what buyers were told with what the ledger has: every acknowledged hold and booking is there, or its end
// (expiry, release, sale) is in the history. It gives the contradictions. The journal must have been copied before the
// ledger was read: then whatever was said had been committed.
//
// A hold or booking that nobody was told of is none: its answer was lost, so whether it happened was not known.
func check(s said, l *stored, seat func(event id.ID, label string) (int32, bool)) []string {
	c := &checker{ledger: l, later: &s.later, seat: seat, customers: map[int]id.ID{}, buyers: map[id.ID]int{}}
	c.list = append(c.list, s.odd...)
	for buyer, customer := range s.later.people {
		c.customer("the sign-in", buyer, customer)
	}
	for i := range s.holds {
		c.hold(&s.holds[i])
	}
	for i := range s.paid {
		c.booking(&s.paid[i])
	}
	c.afterwards()
	c.line(&s.line)
	return c.list
}

type checker struct {
	ledger    *stored
	later     *later
	seat      func(id.ID, string) (int32, bool)
	customers map[int]id.ID // whose customer a buyer is
	buyers    map[id.ID]int
	list      []string
}

func (c *checker) bad(format string, args ...any) {
	c.list = append(c.list, fmt.Sprintf(format, args...))
}

func (c *checker) hold(s *heldSaid) {
	name := s.Hold.Text(id.Hold)
	h := c.ledger.holds[s.Hold]
	if h == nil {
		c.bad("%s was acknowledged and is not in the ledger", name)
		return
	}
	c.customer(name, s.Buyer, h.customer)
	switch {
	case h.event != s.Event:
		c.bad("%s is of another event than was said", name)
	case h.places != s.Quantity:
		c.bad("%s has %d places, %d were said", name, h.places, s.Quantity)
	case h.amount != s.Amount:
		c.bad("%s costs %d, %d was said", name, h.amount, s.Amount)
	case (h.area >= 0) != (s.Area != "") || s.Area == "" && !c.sameSeats(s.Event, s.Seats, h.seats):
		c.bad("%s is of other seats than was said", name)
	case h.expires < s.Expires:
		c.bad("%s runs out at %d, %d was said", name, h.expires, s.Expires)
	}
	c.end(name, s, h)
}

// end checks that a hold that lives no more has a reason that the buyer could know, and that its history says so.
func (c *checker) end(name string, s *heldSaid, h *storedHold) {
	last := storedStep{}
	if len(h.history) > 0 {
		last = h.history[len(h.history)-1]
	}
	part := h.state == ledger.HoldSold && h.gone > 0 && last.becomes == "released" // of the places, and the others are sold
	if last.becomes != h.state.String() && !part {
		c.bad("%s is %s, and its history ends with %q", name, h.state, last.becomes)
	}
	sold := slices.ContainsFunc(h.history, func(step storedStep) bool { return step.becomes == "sold" })
	switch h.state {
	case ledger.HoldLive:
		if s.Released {
			c.bad("%s was acknowledged as released and is live", name)
		}
	case ledger.HoldReleased:
		if !s.Asked && !sold { // after a sale it is released where the money could not be had
			c.bad("%s is released, and its buyer never asked for that", name)
		}
	case ledger.HoldExpired:
		if last.at < s.Expires {
			c.bad("%s expired at %d, and was promised until %d", name, last.at, s.Expires)
		}
		if s.Released {
			c.bad("%s was acknowledged as released and has expired", name)
		}
	case ledger.HoldSold:
		if s.Released {
			c.bad("%s was acknowledged as released and is sold", name)
		}
		if c.ledger.orders[h.order] == nil {
			c.bad("%s is sold, and its booking is not in the ledger", name)
		}
	default:
		c.bad("%s has the state %d", name, h.state)
	}
}

func (c *checker) sameSeats(event id.ID, labels []string, seats []int32) bool {
	said := make([]int32, 0, len(labels))
	for _, label := range labels {
		seat, ok := c.seat(event, label)
		if !ok {
			return false
		}
		said = append(said, seat)
	}
	slices.Sort(said)
	return slices.Equal(said, slices.Sorted(slices.Values(seats)))
}

// customer checks that a buyer is one customer, and a customer one buyer.
func (c *checker) customer(name string, buyer int, customer id.ID) {
	if was, ok := c.customers[buyer]; ok && was != customer {
		c.bad("%s of buyer %d belongs to another customer than before", name, buyer)
	}
	if was, ok := c.buyers[customer]; ok && was != buyer {
		c.bad("%s: the buyers %d and %d are one customer", name, buyer, was)
	}
	c.customers[buyer], c.buyers[customer] = customer, buyer
}

func (c *checker) booking(s *bookingSaid) {
	name := s.Booking.Text(id.Order)
	o := c.ledger.orders[s.Booking]
	if o == nil {
		c.bad("%s was acknowledged as %s and is not in the ledger", name, s.State)
		return
	}
	c.customer(name, s.Buyer, o.customer)
	if o.amount != s.Amount && s.Amount >= 0 {
		c.bad("%s costs %d, %d was said", name, o.amount, s.Amount)
	}
	if o.hold != s.Hold && !o.rescued {
		c.bad("%s is of another hold than was said", name)
	}
	is := o.state.String()
	refused := o.state == ledger.OrderRefunded && o.reason == ledger.ReasonCaptureRefused
	switch {
	case s.State == "PENDING", s.State == is:
	case s.State == "PAID" && o.state == ledger.OrderRefunded && c.allAsked(s.Tickets): // all were given back
	case s.State == "PAID" && refused: // the money could not be had: the customer is told, and has paid nothing
	default:
		c.bad("%s was acknowledged as %s and is %s (%s)", name, s.State, is, o.reason)
	}
	for _, t := range s.Tickets {
		has, ok := o.tickets[t]
		if !ok || o.state == ledger.OrderPaid && has.state == ledger.TicketVoid && c.later.voids[t] == "" {
			c.bad("%s of %s was acknowledged, and is not there or void", t.Text(id.Ticket), name)
		}
	}
	if len(s.Tickets) > 0 && o.places() != len(s.Tickets) {
		c.bad("%s has %d tickets, %d were said", name, o.places(), len(s.Tickets))
	}
	if o.state == ledger.OrderPaid {
		if h := c.ledger.holds[o.hold]; h == nil || h.state != ledger.HoldSold || h.places != o.places() {
			c.bad("%s is paid, and its hold is not sold, or not of as many places as it has tickets", name)
		}
	}
}
