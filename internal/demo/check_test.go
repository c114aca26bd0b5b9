package demo

import (
	"strconv"
	"strings"
	"testing"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// seatOf is a plan whose seats are called by their numbers.
func seatOf(_ id.ID, label string) (int32, bool) {
	n, err := strconv.Atoi(label)
	return int32(n), err == nil
}

// good are a journal and a ledger that agree: hold 1 was sold by booking 11, hold 2 released, hold 3 ran out, hold 4 is
// live, hold 5 was lost while paying and rescued as hold 6, and booking 13 of hold 4 was declined.
func good() (said, *stored) {
	s := said{
		holds: []heldSaid{
			{Hold: 1, Buyer: 1, Event: 7, Seats: []string{"8", "9"}, Quantity: 2, Amount: 200, Expires: 5000},
			{Hold: 2, Buyer: 2, Event: 7, Area: "A", Quantity: 3, Amount: 90, Expires: 5000, Asked: true, Released: true},
			{Hold: 3, Buyer: 3, Event: 7, Seats: []string{"1"}, Quantity: 1, Amount: 100, Expires: 5000},
			{Hold: 4, Buyer: 4, Event: 7, Seats: []string{"2"}, Quantity: 1, Amount: 100, Expires: 5000},
			{Hold: 5, Buyer: 5, Event: 7, Seats: []string{"3"}, Quantity: 1, Amount: 100, Expires: 5000},
		},
		paid: []bookingSaid{
			{Booking: 11, Hold: 1, Buyer: 1, State: "PAID", Amount: 200, Tickets: []id.ID{21, 22}},
			{Booking: 12, Hold: 5, Buyer: 5, State: "PENDING", Amount: 100},
			{Booking: 13, Hold: 4, Buyer: 4, State: "FAILED", Amount: 100},
		},
	}
	live := storedStep{"live", 1000}
	l := &stored{
		holds: map[id.ID]*storedHold{
			1: {event: 7, customer: 101, state: ledger.HoldSold, area: -1, seats: []int32{8, 9}, places: 2, amount: 200, expires: 9000, order: 11, history: []storedStep{live, {"sold", 2000}}},
			2: {event: 7, customer: 102, state: ledger.HoldReleased, area: 0, places: 3, amount: 90, expires: 5000, history: []storedStep{live, {"released", 2000}}},
			3: {event: 7, customer: 103, state: ledger.HoldExpired, area: -1, seats: []int32{1}, places: 1, amount: 100, expires: 5000, history: []storedStep{live, {"expired", 5000}}},
			4: {event: 7, customer: 104, state: ledger.HoldLive, area: -1, seats: []int32{2}, places: 1, amount: 100, expires: 5000, history: []storedStep{live}},
			5: {event: 7, customer: 105, state: ledger.HoldExpired, area: -1, seats: []int32{3}, places: 1, amount: 100, expires: 5000, history: []storedStep{live, {"expired", 6000}}},
			6: {event: 7, customer: 105, state: ledger.HoldSold, area: -1, seats: []int32{3}, places: 1, amount: 100, expires: 7000, order: 12, history: []storedStep{{"sold", 7000}}},
		},
		orders: map[id.ID]*storedOrder{
			11: {hold: 1, customer: 101, state: ledger.OrderPaid, amount: 200, tickets: map[id.ID]storedTicket{21: {state: ledger.TicketValid}, 22: {state: ledger.TicketValid}}},
			12: {hold: 6, customer: 105, state: ledger.OrderPaid, amount: 100, rescued: true, tickets: map[id.ID]storedTicket{23: {state: ledger.TicketValid}}},
			13: {hold: 4, customer: 104, state: ledger.OrderFailed, amount: 100, reason: "card_declined"},
		},
		sessions: map[id.ID]*storedSession{
			61: {customer: 101, at: numberKey{"general", 3}, entered: 500},
			62: {customer: 102, at: numberKey{"presale", 3}, entered: 500},
		},
	}
	s.line = newLineSaid()
	s.line.numbers[numberKey{"general", 3}], s.line.numbers[numberKey{"presale", 3}] = 1, 2
	s.line.entries[61] = entrySaid{Session: 61, Buyer: 1, At: numberKey{"general", 3}}
	return s, l
}

func TestCheckAgrees(t *testing.T) {
	s, l := good()
	if found := check(s, l, seatOf); len(found) > 0 {
		t.Errorf("a journal that agrees: %q", found)
	}
	// The money of a booking could not be had: its buyer was told PAID before, and that is no contradiction.
	o, h := l.orders[11], l.holds[1]
	o.state, o.reason = ledger.OrderRefunded, ledger.ReasonCaptureRefused
	o.tickets[21], o.tickets[22] = storedTicket{state: ledger.TicketVoid}, storedTicket{state: ledger.TicketVoid}
	h.state, h.history = ledger.HoldReleased, append(h.history, storedStep{"released", 3000})
	if found := check(s, l, seatOf); len(found) > 0 {
		t.Errorf("a refused capture: %q", found)
	}
}

// The negative control: whatever was acknowledged and is not so is found.
func TestCheckFindsEachLoss(t *testing.T) {
	for _, c := range []struct {
		name, want string
		spoil      func(*said, *stored)
	}{
		{"a hold is gone", "is not in the ledger", func(_ *said, l *stored) { delete(l.holds, 4) }},
		{"a booking is gone", "is not in the ledger", func(_ *said, l *stored) { delete(l.orders, 13) }},
		{"a hold of other seats", "other seats", func(_ *said, l *stored) { l.holds[4].seats[0] = 5 }},
		{"a hold of places became one of seats", "other seats", func(_ *said, l *stored) { l.holds[2].area = -1 }},
		{"fewer places", "places", func(_ *said, l *stored) { l.holds[2].places-- }},
		{"another price", "was said", func(_ *said, l *stored) { l.holds[4].amount++ }},
		{"another event", "another event", func(_ *said, l *stored) { l.holds[4].event++ }},
		{"an extension was lost", "runs out at", func(s *said, _ *stored) { s.holds[3].Expires = 8000 }},
		{"released, and nobody asked", "never asked", func(s *said, _ *stored) { s.holds[1].Asked = false }},
		{"a release was lost", "released and is live", func(s *said, _ *stored) { s.holds[3].Released = true }},
		{"a release was lost, and then it ran out", "released and has expired", func(s *said, _ *stored) { s.holds[2].Released = true }},
		{"released and sold", "released and is sold", func(s *said, _ *stored) { s.holds[0].Released = true }},
		{"it ran out too early", "promised until", func(_ *said, l *stored) { l.holds[3].history[1].at = 4999 }},
		{"the end is not in the history", "history ends with", func(_ *said, l *stored) { l.holds[3].history = l.holds[3].history[:1] }},
		{"no history at all", "history ends with", func(_ *said, l *stored) { l.holds[4].history = nil }},
		{"sold to nobody", "booking is not in the ledger", func(_ *said, l *stored) { l.holds[1].order = 99 }},
		{"paid became pending", "acknowledged as PAID", func(_ *said, l *stored) { l.orders[11].state = ledger.OrderPending }},
		{"paid became refunded for no reason", "acknowledged as PAID", func(_ *said, l *stored) { l.orders[11].state = ledger.OrderRefunded }},
		{"declined became paid", "acknowledged as FAILED", func(_ *said, l *stored) { l.orders[13].state = ledger.OrderPaid }},
		{"a ticket is void", "not there or void", func(_ *said, l *stored) { l.orders[11].tickets[21] = storedTicket{state: ledger.TicketVoid} }},
		{"a ticket is another", "not there or void", func(_ *said, l *stored) {
			delete(l.orders[11].tickets, 21)
			l.orders[11].tickets[29] = storedTicket{state: ledger.TicketValid}
		}},
		{"a ticket more", "tickets", func(_ *said, l *stored) { l.orders[11].tickets[29] = storedTicket{state: ledger.TicketValid} }},
		{"another amount", "costs", func(_ *said, l *stored) { l.orders[12].amount++ }},
		{"another hold without a rescue", "another hold", func(_ *said, l *stored) { l.orders[12].rescued = false }},
		{"paid, and the hold is live", "hold is not sold", func(_ *said, l *stored) {
			l.holds[1].state = ledger.HoldLive
			l.holds[1].history = l.holds[1].history[:1]
		}},
		{"a buyer is two customers", "another customer", func(_ *said, l *stored) { l.orders[13].customer = 999 }},
		{"two buyers are one customer", "are one customer", func(_ *said, l *stored) { l.holds[3].customer = 102 }},
		{"an entry is gone", "is not in the ledger", func(_ *said, l *stored) { delete(l.sessions, 61) }},
		{"an entry by another number", "was said", func(_ *said, l *stored) { l.sessions[61].at.number++ }},
		{"an entry of somebody else", "another customer", func(_ *said, l *stored) { l.sessions[61].customer = 999 }},
		{"a number came in twice", "both came in by", func(_ *said, l *stored) { l.sessions[63] = l.sessions[61] }},
		{"a number came in as another's", "another customer", func(_ *said, l *stored) { l.sessions[62].customer = 999 }},
		{"what was said contradicts itself", "then PAID", func(s *said, _ *stored) { s.odd = []string{"FAILED, then PAID"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, l := good()
			c.spoil(&s, l)
			found := check(s, l, seatOf)
			if len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// afterSale is a journal and a ledger that agree after the sale: of booking 31 ticket 41 was given back (refund 51), 42 was passed
// on to buyer 8 as 43, who came in, went out (which was undone) and came in again; 44 was let in twice, once without a
// network; booking 32 was exchanged, so that its one ticket is void and all of it REFUNDED.
func afterSale() (said, *stored) {
	s, l := good()
	s.holds = append(s.holds, heldSaid{Hold: 21, Buyer: 7, Event: 7, Seats: []string{"11", "12", "13"}, Quantity: 3, Amount: 300})
	s.paid = append(s.paid,
		bookingSaid{Booking: 31, Hold: 21, Buyer: 7, State: "PAID", Amount: 300, Tickets: []id.ID{41, 42, 44}},
		bookingSaid{Booking: 32, Hold: 22, Buyer: 7, State: "PAID", Amount: 100, Tickets: []id.ID{45}})
	s.later = newLater()
	s.later.voids = map[id.ID]string{41: "refund", 42: "transfer", 45: "exchange"}
	s.later.entries = map[id.ID]bool{43: true, 44: true}
	s.later.undos = map[id.ID]bool{43: true}
	s.later.people = map[int]id.ID{7: 107, 8: 108}
	s.later.refunds[51] = &backSaid{Refund: 51, Booking: 31, State: "REFUNDED", Tickets: []id.ID{41}, Amount: 90, Kept: 10}
	s.later.passed = []passedSaid{{Ticket: 43, Was: 42, Booking: 31, To: 8}}
	s.later.checkIns = []checkInSaid{
		{Ticket: 43, At: 100, Device: "a", Undone: true}, {Ticket: 43, At: 200, Device: "c"},
		{Ticket: 44, At: 100, Device: "a"}, {Ticket: 44, At: 150, Device: "off", Offline: true, Conflict: true},
	}
	l.holds[21] = &storedHold{
		event: 7, customer: 107, state: ledger.HoldSold, area: -1, seats: []int32{11, 12, 13}, places: 3, gone: 1, amount: 300, order: 31,
		history: []storedStep{{"live", 1}, {"sold", 2}, {"released", 3}},
	}
	l.holds[22] = &storedHold{
		event: 7, customer: 107, state: ledger.HoldReleased, area: -1, seats: []int32{14}, places: 1, gone: 1, amount: 100,
		history: []storedStep{{"live", 1}, {"sold", 2}, {"released", 3}},
	}
	l.orders[31] = &storedOrder{hold: 21, customer: 107, state: ledger.OrderPaid, amount: 300, tickets: map[id.ID]storedTicket{
		41: {state: ledger.TicketVoid, customer: 107, refund: 51}, 42: {state: ledger.TicketVoid, customer: 107},
		43: {state: ledger.TicketUsed, customer: 108, was: 42}, 44: {state: ledger.TicketUsed, customer: 107},
	}}
	l.orders[32] = &storedOrder{
		hold: 22, customer: 107, state: ledger.OrderRefunded, reason: ledger.ReasonExchanged, amount: 100,
		tickets: map[id.ID]storedTicket{45: {state: ledger.TicketVoid, customer: 107, refund: 52}},
	}
	l.back = map[id.ID]*storedRefund{51: {order: 31, tickets: []id.ID{41}, state: ledger.RefundSeatReleased, amount: 90, kept: 10}}
	l.checkIns = map[id.ID][]storedUse{
		43: {{at: 100, device: "a", undone: true}, {at: 200, device: "c"}},
		44: {{at: 100, device: "a"}, {at: 150, device: "off", offline: true, conflict: true}},
	}
	return s, l
}

func TestCheckAfterTheSale(t *testing.T) {
	s, l := afterSale()
	if found := check(s, l, seatOf); len(found) > 0 {
		t.Errorf("a journal that agrees: %q", found)
	}
	set := func(l *stored, order, ticket id.ID, change func(*storedTicket)) {
		was := l.orders[order].tickets[ticket]
		change(&was)
		l.orders[order].tickets[ticket] = was
	}
	for _, c := range []struct {
		name, want string
		spoil      func(*said, *stored)
	}{
		{"void, and nobody asked", "nobody asked for that", func(s *said, _ *stored) { delete(s.later.voids, 41) }},
		{"void of a booking that nobody was told of", "nobody asked for that", func(s *said, _ *stored) { delete(s.later.voids, 45); s.paid = s.paid[:4] }},
		{"all back, and one was not asked for", "acknowledged as PAID", func(s *said, _ *stored) { delete(s.later.voids, 45) }},
		{"used, and nobody came", "nobody was at a door", func(s *said, _ *stored) { delete(s.later.entries, 44) }},
		{"used without a use", "no use of it", func(_ *said, l *stored) { l.checkIns[44] = l.checkIns[44][1:] }},
		{"undone, and nobody asked", "nobody asked for that", func(s *said, _ *stored) { delete(s.later.undos, 43) }},
		{"a refund is gone", "is not in the ledger", func(_ *said, l *stored) { delete(l.back, 51) }},
		{"a refund of another booking", "another booking", func(_ *said, l *stored) { l.back[51].order = 32 }},
		{"a refund of other tickets", "other tickets", func(_ *said, l *stored) { l.back[51].tickets = []id.ID{44} }},
		{"a refund of less", "were said", func(_ *said, l *stored) { l.back[51].amount-- }},
		{"a refund that keeps more", "were said", func(_ *said, l *stored) { l.back[51].kept++ }},
		{"a refund went back", "acknowledged as REFUNDED", func(_ *said, l *stored) { l.back[51].state = ledger.RefundRequested }},
		{"given back and valid", "is valid", func(_ *said, l *stored) { set(l, 31, 41, func(t *storedTicket) { t.state = ledger.TicketValid }) }},
		{"given back by another refund", "another's", func(_ *said, l *stored) { set(l, 31, 41, func(t *storedTicket) { t.refund = 59 }) }},
		{"passed on and gone", "not there or void", func(_ *said, l *stored) { delete(l.orders[31].tickets, 43) }},
		{"passed on and void", "not there or void", func(_ *said, l *stored) { set(l, 31, 43, func(t *storedTicket) { t.state = ledger.TicketVoid }) }},
		{"passed on, and the old one is valid", "is not void", func(_ *said, l *stored) { set(l, 31, 42, func(t *storedTicket) { t.state = ledger.TicketValid }) }},
		{"passed on to another", "another customer", func(_ *said, l *stored) { set(l, 31, 43, func(t *storedTicket) { t.customer = 999 }) }},
		{"passed on of another", "not there or void", func(_ *said, l *stored) { set(l, 31, 43, func(t *storedTicket) { t.was = 41 }) }},
		{"a use is gone", "is not in the ledger", func(_ *said, l *stored) { l.checkIns[44] = l.checkIns[44][:1] }},
		{"a use at another time", "is not in the ledger", func(_ *said, l *stored) { l.checkIns[44][0].at++ }},
		{"a conflict is none", "another than was said", func(_ *said, l *stored) { l.checkIns[44][1].conflict = false }},
		{"an undo was lost", "acknowledged as undone", func(_ *said, l *stored) { l.checkIns[43][0].undone = false }},
		{"who signed in is another", "another customer", func(s *said, _ *stored) { s.later.people[7] = 999 }},
		{"a ticket more", "tickets", func(_ *said, l *stored) { l.orders[31].tickets[49] = storedTicket{state: ledger.TicketValid} }},
		{"a partial release of nothing", "history ends with", func(_ *said, l *stored) { l.holds[21].gone = 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, l := afterSale()
			c.spoil(&s, l)
			found := check(s, l, seatOf)
			if len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}
