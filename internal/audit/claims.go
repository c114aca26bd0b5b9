package audit

import (
	"cmp"
	"maps"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// hall is what is gathered about one event while its rows are walked.
type hall struct {
	a      *audit
	id     id.ID
	known  bool // its row is there
	event  ledger.Event
	layout *ledger.Layout
	totals *eventTotals
	foyer  *foyer

	orders map[id.ID]*orderBrief
	claims map[id.ID]*claim // holds live and sold
	slots  []slot           // by seat
	areas  []areaCount
	starts []start
	offers map[id.ID]*offerBrief // by hold
	limits map[limitKey]int64
	above  map[limitKey]int64 // of these, what does not count where it is judged
	quotas map[quotaKey]int64
	newest map[any]ledger.Time // by limitKey or quotaKey: when the last claim under it was judged
}

// orderBrief is what the claims of an event need to know of its orders.
type orderBrief struct {
	hold     id.ID
	state    ledger.OrderState
	customer id.ID
	rescued  bool
}

// A claim is a hold that is live (whatever its time) or sold.
type claim struct {
	state ledger.HoldState
	order id.ID
	lines []line
	owned int // seats whose row names this claim
}

// A slot is what the holds and tickets say of one seat, without its own row.
type slot struct {
	hold   id.ID // a live hold whose time is not up
	ticket id.ID // valid
	order  id.ID // of the ticket
	back   id.ID // a ticket that was refunded while the seat is still to be released
}

// areaCount is what the holds and tickets say of an area. A place that was refunded is sold until it is released.
type areaCount struct {
	held, sold int64
	byBucket   map[int64]int64 // held, by the holds' draws
}

// A start is the beginning of a claim on a seat in the history, with its end.
type start struct {
	seat    int32
	ended   bool
	epoch   int64
	at, end ledger.Time
	claim   id.ID
}

// claimAdd counts a hold that is a claim still.
func (h *hall) claimAdd(v *holdRow) {
	h.claims[v.id] = &claim{state: v.state, order: v.order, lines: v.lines}
	h.count(v)
	if v.state != ledger.HoldLive {
		return
	}
	h.totals.HoldsLive++
	unexpired := v.expires > h.a.now
	if !unexpired {
		h.totals.HoldsUnswept++
	}
	if v.area >= 0 {
		h.placesHeld(v)
		return
	}
	for _, l := range v.lines {
		s := h.slot(l.seat)
		if s == nil || !unexpired {
			continue
		}
		if s.hold != 0 {
			h.bad(CheckI1, seatText(l.seat), "%s and %s both hold it", holdText(s.hold), holdText(v.id))
		}
		s.hold = v.id
	}
}

func (h *hall) placesHeld(v *holdRow) {
	if int(v.area) >= len(h.areas) {
		return // reported as a reference
	}
	area := &h.areas[v.area]
	area.held += int64(len(v.lines))
	draws, err := parsePairs(v.draws)
	sum := int64(0)
	for _, d := range draws {
		sum += d.b
		area.byBucket[d.a] += d.b
	}
	if err != nil || sum != int64(len(v.lines)) {
		h.bad(CheckI3, holdText(v.id), "it is of %d places and drew %d", len(v.lines), sum)
	}
}

// slot is a seat's, nil outside the plan.
func (h *hall) slot(seat int32) *slot {
	if seat < 0 || int(seat) >= len(h.slots) {
		return nil
	}
	return &h.slots[seat]
}

// ticket counts one ticket against the holds and the other tickets (I1, I2).
func (h *hall) ticket(v *ticketRow) {
	switch v.state {
	case ledger.TicketValid:
		h.totals.Tickets.Valid++
	case ledger.TicketUsed:
		h.totals.Tickets.Used++
	case ledger.TicketVoid:
		h.totals.Tickets.Void++
	default:
		h.bad(CheckReferences, ticketText(v), "it has no state (%d)", v.state)
	}
	if (v.seat < 0) == (v.area < 0) {
		h.bad(CheckReferences, ticketText(v), "it must be for a seat or for a place")
		return
	}
	unreleased := v.state == ledger.TicketVoid && v.refund != 0 && !v.gone
	if !v.valid() && !unreleased {
		return
	}
	if v.area >= 0 {
		if int(v.area) >= len(h.areas) {
			h.bad(CheckReferences, ticketText(v), "there is no %s", areaText(v.area))
			return
		}
		h.areas[v.area].sold++
		return
	}
	s := h.slot(v.seat)
	if s == nil {
		h.bad(CheckReferences, ticketText(v), "there is no %s", seatText(v.seat))
		return
	}
	if other := cmp.Or(s.ticket, s.back); other != 0 {
		h.bad(CheckI1, seatText(v.seat), "%s and %s are both for it", other.Text(id.Ticket), ticketText(v))
	}
	if s.hold != 0 {
		h.bad(CheckI1, seatText(v.seat), "%s is for it while %s holds it", ticketText(v), holdText(s.hold))
	}
	s.order = v.order
	if unreleased {
		s.back = v.id
	} else {
		s.ticket = v.id
	}
}

// seats compares each seat's row with what holds and tickets say of it.
func (h *hall) seats(rows *table[seatRow]) {
	next := int32(0)
	for r := range rows.all() {
		for ; next < r.index; next++ {
			h.bad(CheckReferences, seatText(next), "it has no row")
		}
		next = r.index + 1
		h.a.saw(CheckI1, 1)
		h.totals.seat(r.state)
		s := h.slot(r.index)
		if s == nil {
			h.bad(CheckReferences, seatText(r.index), "it is not in the seating plan")
			continue
		}
		h.seat(&r, s)
	}
	for ; int(next) < len(h.slots); next++ {
		h.bad(CheckReferences, seatText(next), "it has no row")
	}
	h.ownership()
}

func (h *hall) seat(r *seatRow, s *slot) {
	name := seatText(r.index)
	if t := cmp.Or(s.ticket, s.back); t != 0 && r.state != ledger.Sold {
		h.bad(CheckI1, name, "%s is for it, but the seat is %s", t.Text(id.Ticket), availability(r.state))
	}
	switch r.state {
	case ledger.Available, ledger.Blocked, ledger.Returned:
		if r.claim != 0 {
			h.bad(CheckI1, name, "it is %s, but claimed by %s", r.state, holdText(r.claim))
		}
	case ledger.Held, ledger.Sold:
		c := h.claims[r.claim]
		want := ledger.HoldLive
		if r.state == ledger.Sold {
			want = ledger.HoldSold
		}
		if c == nil || c.state != want {
			h.bad(CheckI1, name, "it is %s by %s, which is no %s hold", r.state, holdText(r.claim), want)
			return
		}
		i := slices.IndexFunc(c.lines, func(l line) bool { return l.seat == r.index })
		switch {
		case i < 0:
			h.bad(CheckI1, name, "it is %s by %s, which does not name it", r.state, holdText(r.claim))
			return
		case c.lines[i].gone:
			h.bad(CheckI1, name, "it is %s by %s, which has given it back", r.state, holdText(r.claim))
		case c.lines[i].epoch != r.epoch:
			h.bad(CheckI1, name, "its epoch is %d, that of %s is %d", r.epoch, holdText(r.claim), c.lines[i].epoch)
		}
		c.owned++
		if r.state == ledger.Sold {
			h.seatSold(r, s)
		}
	default:
		h.bad(CheckI1, name, "it has no state (%d)", r.state)
	}
}

func (h *hall) seatSold(r *seatRow, s *slot) {
	if s.ticket == 0 && s.back == 0 {
		h.bad(CheckI1, seatText(r.index), "it is sold, but no ticket is valid for it")
		return
	}
	if o := h.orders[s.order]; o != nil && o.hold != r.claim {
		h.bad(CheckI1, seatText(r.index), "it is sold by %s, its ticket by %s", holdText(r.claim), holdText(o.hold))
	}
}

// ownership checks that each live hold owns all its seats (I3). Of sold ones the tickets speak.
func (h *hall) ownership() {
	for _, hold := range sortedKeys(h.claims) {
		c := h.claims[hold]
		if c.state != ledger.HoldLive || len(c.lines) == 0 || c.lines[0].seat < 0 {
			continue
		}
		switch c.owned {
		case len(c.lines):
		case 0:
			h.bad(CheckI1, holdText(hold), "it is live, but none of its %d seats is held by it", len(c.lines))
		default:
			h.bad(CheckI3, holdText(hold), "it holds %d of its %d seats", c.owned, len(c.lines))
		}
	}
}

// buckets compares an area's buckets with the holds and tickets (I2).
func (h *hall) buckets(rows *table[bucketRow]) {
	for row := rows.peek(); row != nil; row = rows.peek() {
		area := row.area
		var capacity, held, sold int64
		for b := range rows.while(func(r *bucketRow) bool { return r.area == area }) {
			capacity, held, sold = capacity+b.capacity, held+b.held, sold+b.sold
			if b.held < 0 || b.sold < 0 || b.returned < 0 || b.held+b.sold+b.returned > b.capacity {
				h.bad(CheckI2, areaText(area), "bucket %d has %d held, %d sold and %d returned of %d", b.number, b.held, b.sold, b.returned, b.capacity)
			}
			if area >= 0 && int(area) < len(h.areas) && h.areas[area].byBucket[b.number] != b.held {
				h.bad(CheckI2, areaText(area), "bucket %d says %d held, the holds drew %d from it", b.number, b.held, h.areas[area].byBucket[b.number])
			}
		}
		h.a.saw(CheckI2, 1)
		h.totals.Places.add(capacity, held, sold)
		if area < 0 || int(area) >= len(h.areas) {
			h.bad(CheckReferences, areaText(area), "it is not in the seating plan")
			continue
		}
		h.area(area, capacity, held, sold)
		h.areas[area].byBucket = nil
	}
	for i := range h.areas {
		if h.areas[i].byBucket != nil && h.layout.Areas[i].Capacity > 0 {
			h.bad(CheckReferences, areaText(int32(i)), "it has no bucket")
		}
	}
}

func (h *hall) area(area int32, capacity, held, sold int64) {
	want, is := int64(h.layout.Areas[area].Capacity), h.areas[area]
	name := areaText(area)
	if capacity != want {
		h.bad(CheckI2, name, "its buckets have %d places, the plan %d", capacity, want)
	}
	if held != is.held {
		h.bad(CheckI2, name, "its buckets say %d held, the live holds %d", held, is.held)
	}
	if sold != is.sold {
		h.bad(CheckI2, name, "its buckets say %d sold, the tickets %d", sold, is.sold)
	}
	if is.held+is.sold > want {
		h.bad(CheckI2, name, "%d are held and %d sold of %d", is.held, is.sold, want)
	}
}

func (h *hall) bad(check, subject, format string, args ...any) {
	h.a.bad(check, h.id, subject, format, args...)
}

func availability(s ledger.Availability) string {
	if s > ledger.Returned {
		return "in no state"
	}
	return s.String()
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
