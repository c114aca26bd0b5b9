package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"onsale/internal/httpapi"
	"onsale/internal/id"
)

// A journal keeps what buyers were told, outside the server: a line is in the file before the buyer takes the next step.
// What stands in it must be true of the ledger ever after (I8), whatever was killed. What a buyer asked for and got no
// answer to is not in it, except where it explains an end (asked to release): such a thing may or may not have happened.
type journal struct {
	mu    sync.Mutex
	file  *os.File
	holds map[id.ID]*heldSaid
	paid  map[id.ID]*bookingSaid
	later later
	line  lineSaid
	odd   []string // what was said contradicts itself
	err   error
}

// A heldSaid is what was said of one hold.
type heldSaid struct {
	Hold     id.ID
	Buyer    int
	Event    id.ID
	Seats    []string // labels, nil for places
	Area     string
	Quantity int
	Amount   int64
	Expires  int64 // the latest that was said, Unix milliseconds
	Asked    bool  // the buyer asked to give it back
	Released bool  // and was told that it is
	Expired  bool  // the buyer was told that it has run out
}

// A bookingSaid is what was last said of one booking.
type bookingSaid struct {
	Booking id.ID
	Hold    id.ID
	Buyer   int
	State   string // as the API says it
	Amount  int64  // -1: not told
	Rescued bool
	Tickets []id.ID // by PAID
}

// A line of the journal.
type journalLine struct {
	At       time.Time `json:"at"`
	Buyer    int       `json:"buyer"`
	What     string    `json:"what"`
	Hold     string    `json:"hold_id,omitempty"`
	Booking  string    `json:"booking_id,omitempty"`
	State    string    `json:"state,omitempty"`
	Seats    []string  `json:"seat_ids,omitempty"`
	Area     string    `json:"area_id,omitempty"`
	Quantity int       `json:"quantity,omitempty"`
	Amount   int64     `json:"amount_minor,omitempty"`
	Expires  time.Time `json:"expires_at,omitzero"`
	Used     time.Time `json:"used_at,omitzero"`
	Tickets  []string  `json:"ticket_ids,omitempty"`
	Refund   string    `json:"refund_id,omitempty"`
	Customer string    `json:"customer_id,omitempty"`
	Lane     string    `json:"lane,omitempty"`
	Number   *int64    `json:"number,omitempty"`
	Queue    string    `json:"queue_id,omitempty"`
	Session  string    `json:"session_id,omitempty"`
}

func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the journal: %w", err)
	}
	return &journal{file: file, holds: map[id.ID]*heldSaid{}, paid: map[id.ID]*bookingSaid{}, later: newLater(), line: newLineSaid()}, nil
}

// close ends it and says whether all of it could be written.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(j.err, j.file.Close())
}

// write appends a line; j.mu is held.
func (j *journal) write(l journalLine) {
	l.At = time.Now().UTC()
	text, err := json.Marshal(l)
	if err == nil {
		_, err = j.file.Write(append(text, '\n'))
	}
	j.err = errors.Join(j.err, err)
}

// held writes down a hold as the server showed it: made, extended, released or looked at.
func (j *journal) held(buyer int, what string, h *httpapi.Hold) error {
	hold, err := id.Parse(id.Hold, h.ID)
	if err != nil {
		return err
	}
	event, err := id.Parse(id.Event, h.Event)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(journalLine{Buyer: buyer, What: what, Hold: h.ID, State: h.State, Seats: h.Seats, Area: h.Area, Quantity: h.Quantity,
		Amount: h.Price.AmountMinor, Expires: h.Expires})
	said := j.holds[hold]
	if said == nil {
		said = &heldSaid{Hold: hold, Buyer: buyer, Event: event, Seats: h.Seats, Area: h.Area, Quantity: h.Quantity, Amount: h.Price.AmountMinor}
		j.holds[hold] = said
	}
	said.Expires = max(said.Expires, h.Expires.UnixMilli())
	said.Released = said.Released || h.State == "released"
	said.Expired = said.Expired || h.State == "expired"
	return nil
}

// asksRelease writes down that a buyer is about to give a hold back.
func (j *journal) asksRelease(buyer int, hold string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(journalLine{Buyer: buyer, What: "asks to release", Hold: hold})
	if number, err := id.Parse(id.Hold, hold); err == nil && j.holds[number] != nil {
		j.holds[number].Asked = true
	}
}

// booked writes down a booking as the server showed it.
func (j *journal) booked(buyer int, b *httpapi.Booking) error {
	booking, err := id.Parse(id.Order, b.ID)
	if err != nil {
		return err
	}
	hold, err := id.Parse(id.Hold, b.Hold)
	if err != nil {
		return err
	}
	said := &bookingSaid{Booking: booking, Hold: hold, Buyer: buyer, State: b.State, Amount: b.Price.AmountMinor, Rescued: b.Rescued}
	line := journalLine{Buyer: buyer, What: "booking", Booking: b.ID, Hold: b.Hold, State: b.State, Amount: b.Price.AmountMinor}
	for i := range b.Tickets {
		ticket, err := id.Parse(id.Ticket, b.Tickets[i].ID)
		if err != nil {
			return err
		}
		said.Tickets = append(said.Tickets, ticket)
		line.Tickets = append(line.Tickets, b.Tickets[i].ID)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(line)
	j.keep(said)
	return nil
}

// keep remembers the latest word on a booking: answers of one booking may overtake each other, but what is final stays
// so, and PAID becomes nothing but REFUNDED. j.mu is held.
func (j *journal) keep(b *bookingSaid) {
	const pending, paid, refunded = "PENDING", "PAID", "REFUNDED"
	before := j.paid[b.Booking]
	switch {
	case before == nil || before.State == pending, before.State == paid && b.State == refunded, before.State == b.State:
		j.paid[b.Booking] = b
	case b.State == pending, before.State == refunded && b.State == paid:
	default:
		j.odd = append(j.odd, fmt.Sprintf("%s was said to be %s, then %s", b.Booking.Text(id.Order), before.State, b.State))
	}
}

// refused writes down that a booking was said to have FAILED. The refusal tells no more of it than its id.
func (j *journal) refused(buyer int, booking string, hold *httpapi.Hold) error {
	return j.failed(buyer, booking, hold, hold.Price.AmountMinor)
}

// refusedExchange is the same of an exchange, which cost what it cost.
func (j *journal) refusedExchange(buyer int, booking string, hold *httpapi.Hold) error {
	return j.failed(buyer, booking, hold, -1)
}

func (j *journal) failed(buyer int, booking string, hold *httpapi.Hold, amount int64) error {
	order, err := id.Parse(id.Order, booking)
	if err != nil {
		return err
	}
	of, err := id.Parse(id.Hold, hold.ID)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(journalLine{Buyer: buyer, What: "booking", Booking: booking, Hold: hold.ID, State: "FAILED"})
	j.keep(&bookingSaid{Booking: order, Hold: of, Buyer: buyer, State: "FAILED", Amount: amount})
	return nil
}

// A said is a copy of all that was said until some instant.
type said struct {
	holds []heldSaid
	paid  []bookingSaid
	later later
	line  lineSaid
	odd   []string
}

// all copies what stands in the journal. A picture of the ledger taken after it must have all of that.
func (j *journal) all() said {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := said{holds: make([]heldSaid, 0, len(j.holds)), paid: make([]bookingSaid, 0, len(j.paid)), later: j.later.copy(), line: j.line.copy(), odd: slices.Clone(j.odd)}
	for _, k := range slices.Sorted(maps.Keys(j.holds)) {
		s.holds = append(s.holds, *j.holds[k])
	}
	for _, k := range slices.Sorted(maps.Keys(j.paid)) {
		s.paid = append(s.paid, *j.paid[k])
	}
	return s
}
