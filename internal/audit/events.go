package audit

import (
	"encoding/json"
	"fmt"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// cachedLayout is the layout read last: events of a show share one.
type cachedLayout struct {
	hash   string
	layout *ledger.Layout
}

// byEvent are the tables that no index orders by event. They are read once, sorted, side by side.
type byEvent struct {
	orders  *table[orderRow]
	holds   *table[holdRow]
	history *table[historyRow]
	tickets *table[ticketRow]
	uses    *table[useRow]

	rooms    *table[roomRow]
	rules    *table[ruleRow]
	calls    *table[callRow]
	sessions *table[sessionRow]
	codes    *table[codeRow]
}

// next is the smallest event that any of them has rows of, 0 at the end.
func (t *byEvent) next() id.ID {
	least := id.ID(0)
	take := func(event id.ID) {
		if least == 0 || event < least {
			least = event
		}
	}
	if r := t.orders.peek(); r != nil {
		take(r.event)
	}
	if r := t.holds.peek(); r != nil {
		take(r.event)
	}
	if r := t.history.peek(); r != nil {
		take(r.event)
	}
	if r := t.tickets.peek(); r != nil {
		take(r.event)
	}
	if r := t.uses.peek(); r != nil {
		take(r.event)
	}
	if r := t.rooms.peek(); r != nil {
		take(r.event)
	}
	if r := t.rules.peek(); r != nil {
		take(r.event)
	}
	if r := t.calls.peek(); r != nil {
		take(r.event)
	}
	if r := t.sessions.peek(); r != nil {
		take(r.event)
	}
	if r := t.codes.peek(); r != nil {
		take(r.event)
	}
	return least
}

// walkEvents goes through claims, seats, places, history and limits, event by event.
func (a *audit) walkEvents() {
	only := ""
	if a.opts.Event != 0 {
		only = " WHERE event_id = " + number(a.opts.Event)
	}
	events := read(a.snap, `SELECT event_id, version, state, body, sequence FROM #events`+only+` ORDER BY event_id`, scanEvent)
	side := byEvent{
		orders:  read(a.snap, `SELECT `+orderColumns+` FROM #orders o`+only+` ORDER BY o.event_id, o.order_id`, scanOrder),
		holds:   read(a.snap, `SELECT `+holdColumns+` FROM #holds`+only+` ORDER BY event_id, hold_id`, scanHold),
		history: read(a.snap, `SELECT event_id, claim_id, history_id, was, becomes, seats, places, at FROM #history`+only+` ORDER BY event_id, claim_id, history_id`, scanHistory),
		tickets: read(a.snap, `SELECT `+ticketColumns+` FROM #tickets`+only+` ORDER BY event_id, ticket_id`, scanTicket),
		uses:    read(a.snap, `SELECT `+useColumns+` FROM #checkins`+only+` ORDER BY event_id, ticket_id, at`, scanUse),

		rooms:    read(a.snap, `SELECT event_id, body FROM #rooms`+only+` ORDER BY event_id`, scanRoom),
		rules:    read(a.snap, `SELECT `+ruleColumns+` FROM #room_rules`+only+` ORDER BY event_id, rule_id`, scanRule),
		calls:    read(a.snap, `SELECT `+callColumns+` FROM #room_calls`+only+` ORDER BY event_id, call_id`, scanCall),
		sessions: read(a.snap, `SELECT `+sessionColumns+` FROM #sessions`+only+` ORDER BY event_id, session_id`, scanSession),
		codes:    read(a.snap, `SELECT `+codeColumns+` FROM #code_uses`+only+` ORDER BY event_id, lane, code, number`, scanCode),
	}
	for e := range events.all() {
		for unknown := side.next(); unknown != 0 && unknown < e.id; unknown = side.next() {
			a.walkEvent(&side, eventRow{id: unknown}, false)
		}
		a.walkEvent(&side, e, true)
	}
	for unknown := side.next(); unknown != 0; unknown = side.next() {
		a.walkEvent(&side, eventRow{id: unknown}, false)
	}
	if a.opts.Event == 0 {
		a.showLimits()
	}
}

func (a *audit) walkEvent(side *byEvent, e eventRow, known bool) {
	h := &hall{
		a: a, id: e.id, known: known, totals: newEventTotals(e),
		orders: map[id.ID]*orderBrief{}, claims: map[id.ID]*claim{}, layout: &ledger.Layout{},
		limits: map[limitKey]int64{}, above: map[limitKey]int64{}, quotas: map[quotaKey]int64{}, newest: map[any]ledger.Time{},
	}
	h.totals.known = known
	a.events[e.id] = h.totals
	if known {
		h.readEvent(e)
	}
	a.saw(CheckReferences, 1)
	h.readRoom(side)
	h.slots = make([]slot, len(h.layout.Category))
	h.areas = make([]areaCount, len(h.layout.Areas))
	for i := range h.areas {
		h.areas[i].byBucket = map[int64]int64{}
	}
	for o := range side.orders.while(func(r *orderRow) bool { return r.event == e.id }) {
		h.order(&o)
	}
	h.holdsWithHistory(side)
	for t := range side.tickets.while(func(r *ticketRow) bool { return r.event == e.id }) {
		a.saw(CheckReferences, 1)
		h.known1(known, ticketText(&t))
		h.ticket(&t)
		h.received(&t)
		h.uses(&t, side.uses)
	}
	h.usesOfNothing(side.uses, 0)
	if known {
		where := ` WHERE event_id = ` + number(e.id)
		h.seats(read(a.snap, `SELECT seat_index, state, claim_id, epoch, returned_at FROM #seats`+where+` ORDER BY seat_index`, scanSeat))
		h.buckets(read(a.snap, `SELECT area, number, capacity, held, sold, returned FROM #buckets`+where+` ORDER BY area, number`, scanBucket))
		h.waitlist(read(a.snap, `SELECT `+wishColumns+` FROM #wishes`+where+` ORDER BY wish_id`, scanWish))
		h.compareLimits()
		h.compareQuotas()
	}
	h.timeline()
}

// known1 reports a row whose event is not there.
func (h *hall) known1(known bool, subject string) {
	if !known {
		h.bad(CheckReferences, subject, "its event is not there")
	}
}

func (h *hall) readEvent(e eventRow) {
	a := h.a
	if err := json.Unmarshal([]byte(e.body), &h.event); err != nil {
		h.bad(CheckReferences, h.id.Text(id.Event), "its body cannot be read: %v", err)
		h.known = false
		return
	}
	h.event.ID, h.event.Version, h.event.State = e.id, e.version, e.state
	h.totals.Currency = h.event.Currency
	if a.layout.hash != h.event.PlanHash || a.layout.layout == nil {
		l, err := a.readLayout(h.event.PlanHash)
		if err != nil {
			h.bad(CheckReferences, h.id.Text(id.Event), "its seating plan %q: %v", h.event.PlanHash, err)
			return
		}
		a.layout = cachedLayout{h.event.PlanHash, l}
	}
	h.layout = a.layout.layout
}

func (a *audit) readLayout(hash string) (*ledger.Layout, error) {
	if a.snap.err != nil {
		return nil, a.snap.err
	}
	place := "?"
	if a.snap.dialect.cursors {
		place = "$1"
	}
	var packed []byte
	if err := a.snap.tx.QueryRowContext(a.snap.ctx, a.snap.text(`SELECT body FROM #layouts WHERE plan_hash = `+place), hash).Scan(&packed); err != nil {
		return nil, err
	}
	l, err := parseLayout(packed)
	if err != nil {
		return nil, err
	}
	if n := len(l.Category); len(l.Section) != n || len(l.Run) != n || len(l.Quality) != n {
		return nil, fmt.Errorf("it says different numbers of seats")
	}
	return l, nil
}

func (h *hall) order(v *orderRow) {
	h.a.saw(CheckReferences, 1)
	h.known1(h.known, orderText(v.id))
	h.orders[v.id] = &orderBrief{hold: v.hold, state: v.state, customer: v.customer, rescued: v.rescued}
	h.totals.Orders.add(v.state)
	// Of places that have gone back none stands there any more, but where the money was refused all went at once.
	if v.state == ledger.OrderPending || v.sold() && v.reason != ledger.ReasonCaptureRefused {
		h.countDocuments(v)
	}
}

// holdsWithHistory walks the holds of the event with the rows of each in the history.
func (h *hall) holdsWithHistory(side *byEvent) {
	for {
		var claim id.ID
		hold, row := side.holds.peek(), side.history.peek()
		if hold != nil && hold.event != h.id {
			hold = nil
		}
		if row != nil && row.event != h.id {
			row = nil
		}
		switch {
		case hold == nil && row == nil:
			return
		case hold == nil, row != nil && row.claim < hold.id:
			claim, hold = row.claim, nil
		default:
			claim = hold.id
		}
		var v *holdRow
		if hold != nil {
			copied := *hold
			v = &copied
			side.holds.at++
			h.hold(v)
		}
		h.chain(claim, v, side.history.while(func(r *historyRow) bool { return r.event == h.id && r.claim == claim }))
	}
}

// hold checks one hold's own row and counts it where it is a claim.
func (h *hall) hold(v *holdRow) {
	name := holdText(v.id)
	h.a.saw(CheckReferences, 1)
	h.a.saw(CheckI3, 1)
	h.a.saw(CheckMoney, 1)
	h.known1(h.known, name)
	lines, err := parseLines(v.text)
	if err != nil {
		h.bad(CheckReferences, name, "%v", err)
	}
	v.lines = lines
	if len(lines) == 0 && err == nil {
		h.bad(CheckI3, name, "it is of no seat and no place")
	}
	if h.known {
		h.holdPlaces(v)
	}
	h.offered(v)
	h.holdPrice(v)
	h.holdExchange(v)
	h.holdGone(v)
	switch v.state {
	case ledger.HoldLive, ledger.HoldSold:
		h.holdOrder(v)
		h.claimAdd(v)
	case ledger.HoldReleased, ledger.HoldExpired:
		if o := h.orders[v.order]; v.order != 0 && o == nil {
			h.bad(CheckReferences, name, "its order %s is not there", orderText(v.order))
		}
	default:
		h.bad(CheckReferences, name, "it has no state (%d)", v.state)
	}
}

// holdPlaces checks what the hold names against the seating plan.
func (h *hall) holdPlaces(v *holdRow) {
	name := holdText(v.id)
	if v.area >= 0 {
		if int(v.area) >= len(h.layout.Areas) {
			h.bad(CheckReferences, name, "there is no %s", areaText(v.area))
			return
		}
	}
	for i, l := range v.lines {
		switch {
		case v.area >= 0:
			if l.seat != -1 || l.epoch != 0 || l.category != h.layout.Areas[v.area].Category {
				h.bad(CheckReferences, name, "place %d is not of its area", i)
			}
		case l.seat < 0 || int(l.seat) >= len(h.layout.Category):
			h.bad(CheckReferences, name, "there is no %s", seatText(l.seat))
		case l.category != h.layout.Category[l.seat]:
			h.bad(CheckReferences, name, "%s is of category %d, not %d", seatText(l.seat), h.layout.Category[l.seat], l.category)
		case i > 0 && l.seat <= v.lines[i-1].seat:
			h.bad(CheckReferences, name, "its seats are not in order, each once")
		}
	}
}

// holdPrice checks the arithmetic of its lines (A15).
func (h *hall) holdPrice(v *holdRow) {
	for _, l := range v.lines {
		if l.total != l.face+l.fee && l.total != l.face+l.fee+l.tax {
			h.bad(CheckMoney, holdText(v.id), "a line of face %d, fee %d and tax %d totals %d", l.face, l.fee, l.tax, l.total)
		}
		if l.face < 0 || l.fee < 0 || l.tax < 0 {
			h.bad(CheckMoney, holdText(v.id), "a line has an amount below 0")
		}
	}
	if len(v.currency) != 3 { // the event's own may have changed since
		h.bad(CheckMoney, holdText(v.id), "it is in no currency (%q)", v.currency)
	}
}

// holdOrder checks that a claim and its order name each other.
func (h *hall) holdOrder(v *holdRow) {
	name := holdText(v.id)
	if v.order == 0 {
		if v.state == ledger.HoldSold {
			h.bad(CheckReferences, name, "it is sold without an order")
		}
		return
	}
	o := h.orders[v.order]
	switch {
	case o == nil:
		h.bad(CheckReferences, name, "its order %s is not there", orderText(v.order))
	case o.hold != v.id:
		h.bad(CheckReferences, name, "its order %s is of %s", orderText(v.order), holdText(o.hold))
	case v.state == ledger.HoldLive && o.state != ledger.OrderPending:
		h.bad(CheckReferences, name, "it is live, its order %s is %s", orderText(v.order), orderState(o.state))
	case v.state == ledger.HoldSold && o.state != ledger.OrderPaid && o.state != ledger.OrderRefunded:
		h.bad(CheckReferences, name, "it is sold, its order %s is %s", orderText(v.order), orderState(o.state))
	}
}

// holdExchange reads what the hold is to take the place of: that it says until the swap, and no longer.
func (h *hall) holdExchange(v *holdRow) {
	name := holdText(v.id)
	places, err := parseExchanged(v.places)
	if err != nil {
		h.bad(CheckReferences, name, "what it exchanges: %v", err)
		return
	}
	v.exchanged = places
	switch {
	case v.exchange == 0 && len(places) > 0:
		h.bad(CheckExchange, name, "it is to take the place of %d tickets, of no order", len(places))
	case v.state == ledger.HoldSold && len(places) > 0:
		h.bad(CheckExchange, name, "it is sold, and still to take the place of %d tickets", len(places))
	case v.state == ledger.HoldLive && v.exchange != 0 && len(places) == 0:
		h.bad(CheckExchange, name, "it exchanges %s, and is to take the place of no ticket", orderText(v.exchange))
	}
}

// holdGone checks which of its places may have gone back: those that were sold, and not all of what is sold still.
func (h *hall) holdGone(v *holdRow) {
	gone := 0
	for _, l := range v.lines {
		if l.gone {
			gone++
		}
	}
	switch {
	case gone > 0 && v.state != ledger.HoldSold && (v.state != ledger.HoldReleased || gone < len(v.lines)):
		h.bad(CheckI3, holdText(v.id), "it is in state %d, and %d of its %d places have gone back", v.state, gone, len(v.lines))
	case gone > 0 && gone == len(v.lines) && v.state == ledger.HoldSold:
		h.bad(CheckI3, holdText(v.id), "it is sold, and all its places have gone back")
	}
}

func orderState(s ledger.OrderState) string {
	if s < ledger.OrderPending || s > ledger.OrderRefunded {
		return fmt.Sprintf("in no state (%d)", s)
	}
	return s.String()
}
