package ledgertest

import (
	"context"
	"encoding/hex"

	"onsale/internal/draw"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Drawing the waiting room's commands. ("Draw" is rapid's word here; the lottery is what RoomDraw publishes.)

const (
	roomCount   = 12 // histories about the room, in the short form
	roomNumbers = 30 // of each lane, at first
)

// openRoom opens the main event's room, mostly.
func (h *history) openRoom() {
	e, err := h.model.Event(context.Background(), mainEvent)
	if err != nil {
		h.fail("the model: %v", err)
	}
	commit := ledger.RoomCommit{Event: mainEvent, Commitment: draw.Commitment(roomKey)}
	if e.Room.Arrival {
		commit.Commitment = ""
	}
	freeze := ledger.RoomFreeze{Event: mainEvent, ListHash: listHash}
	commands := []ledger.Command{commit}
	for _, l := range e.Room.LaneRules() {
		commands = append(commands, ledger.RoomNumbers{Event: mainEvent, Lane: l.Key, Upto: roomNumbers})
		freeze.Lanes = append(freeze.Lanes, ledger.LaneCount{Lane: l.Key, Count: roomNumbers - int64(h.among(20, "void"))})
	}
	commands = append(commands, freeze, ledger.RoomDraw{Event: mainEvent, K: hex.EncodeToString(roomKey[:])})
	h.run(len(commands), func(i int) ledger.Command { return commands[i] })
}

// drawRoomRule is narrow in every way, so that all of it is met.
func (h *history) drawRoomRule(e *ledger.Event) {
	if h.kind != roomHistory {
		return
	}
	r := &e.Room
	r.Mode = oneOf(h, "mode", ledger.RoomOn, ledger.RoomOn, ledger.RoomOn, ledger.RoomOn, ledger.RoomAuto, ledger.RoomOff)
	r.Arrival = h.oneIn(3, "arrival")
	r.Rate = oneOf(h, "rate", 3, 5, 1, 40)
	r.RateAuto, r.RateMin = h.oneIn(4, "automatic"), 1
	r.ActiveMax = oneOf(h, "active max", 4, 6, 2, 40)
	r.Turn = oneOf(h, "turn", 0, 500, 2*second) // a step lets at most a second of it go by
	r.Stay = oneOf(h, "stay", 0, second, 15*second)
	r.Lanes = oneOf(h, "lanes", nil, []ledger.LaneRule{{Key: general, Weight: 1}, {Key: presale, Weight: 2}})
	r.Paused, r.Closed = h.oneIn(15, "paused"), h.oneIn(60, "closed")
	e.Holding = ledger.HoldingRule{
		UnpaidMax: oneOf(h, "unpaid max", 0, 0, 3), Rest: oneOf(h, "rest", second, 60*second), SeatRest: oneOf(h, "seat rest", 0, 0, 20*second),
	}
}

// liveSessions are those in which a customer may hold now.
func (h *history) liveSessions() (live []ledger.Session) {
	now, _ := h.model.Now(context.Background())
	for _, session := range h.sessions {
		if s, err := h.model.Session(context.Background(), session); err == nil && s.Live(now) {
			live = append(live, s)
		}
	}
	return live
}

// inSession gives a new hold a session, mostly a live one, and then mostly its customer.
func (h *history) inSession(event id.ID, customer, session *id.ID) {
	if h.kind != roomHistory || event != mainEvent || h.oneIn(12, "without a session") {
		return
	}
	live := h.liveSessions()
	switch {
	case len(live) > 0 && !h.oneIn(10, "any session"):
		s := oneOf(h, "session", live...)
		*session = s.ID
		if !h.oneIn(12, "another customer") {
			*customer = s.Customer
		}
	case len(h.sessions) > 0:
		*session = oneOf(h, "session", h.sessions...)
	}
}

func (h *history) drawLane() string { return oneOf(h, "lane", general, general, presale, "none") }

func (h *history) drawNumber() int64 {
	if h.oneIn(20, "odd number") {
		return oneOf[int64](h, "number", -1, 1000)
	}
	return int64(h.among(roomNumbers+5, "number"))
}

func (h *history) drawAdvance() ledger.Command {
	c := ledger.Advance{
		Event:     oneOf(h, "event", mainEvent, mainEvent, mainEvent, mainEvent, mainEvent, mainEvent, mainEvent, otherEvent, 999),
		Available: oneOf(h, "available", 1000, 1000, 13, 3, 0), Holding: h.among(4, "holding"),
		PerBuyer: oneOf(h, "per buyer", 0, 1000, 4000), Report: ledger.RoomReport{Node: -1},
	}
	for _, lane := range []string{general, presale} {
		c.Joined = append(c.Joined, ledger.LaneCount{Lane: lane, Count: int64(roomNumbers - 5 + h.among(15, "joined"))})
	}
	if h.oneIn(3, "with a report") {
		c.Report = ledger.RoomReport{
			Node: h.among(3, "node"), P99: oneOf[ledger.Duration](h, "p99", 10, 80, 120, 500), Holds: h.among(2, "holds"), Shed: h.among(12, "shed") / 11,
		}
	}
	return c
}

func (h *history) drawEnter() ledger.Command {
	return ledger.Enter{Session: h.id(), Event: mainEvent, Customer: h.drawCustomer(), Lane: h.drawLane(), Number: h.drawNumber()}
}

func (h *history) drawLeave() ledger.Command {
	c := ledger.Leave{Session: h.drawFrom(h.sessions, h.sessions, "session"), Customer: h.drawCustomer()}
	if s, err := h.model.Session(context.Background(), c.Session); err == nil && !h.oneIn(8, "another customer") {
		c.Customer = s.Customer
	}
	return c
}

func (h *history) drawRoomNumbers() ledger.Command {
	return ledger.RoomNumbers{Event: h.drawEvent(), Lane: h.drawLane(), Upto: int64(roomNumbers + h.among(10, "upto"))}
}

func (h *history) drawTakeCode() ledger.Command {
	return ledger.TakeCode{
		Event: h.drawEvent(), Lane: h.drawLane(), Code: oneOf(h, "code", "a", "b", ""), Max: h.among(4, "max"), Customer: h.drawCustomer(),
	}
}

// drawOpening are the commands that come once, out of their order.
func (h *history) drawOpening() ledger.Command {
	return oneOf[ledger.Command](h, "opening",
		ledger.RoomCommit{Event: mainEvent, Commitment: draw.Commitment(roomKey)}, ledger.RoomCommit{Event: otherEvent},
		ledger.RoomFreeze{Event: mainEvent, Lanes: []ledger.LaneCount{{Lane: general, Count: 3}}, ListHash: listHash},
		ledger.RoomDraw{Event: mainEvent, K: hex.EncodeToString(roomKey[:])})
}
