package eventfile

import (
	"onsale/internal/catalog"
	"onsale/internal/ledger"
)

// room reads how people wait for an event, what becomes of seats that come back, and the bound on unpaid holds.
func (f *reader) room(s *settings, o *object) {
	e := &s.event
	if o.has("room") {
		e.Room = f.waitingRoom(s, o.object("room"))
	}
	if o.has("waitlist") {
		e.Waitlist = o.flag("waitlist", false)
	}
	e.OfferTTL = o.duration("offer_ttl", e.OfferTTL)
	if o.has("holding") {
		h := o.object("holding")
		e.Holding.UnpaidMax = h.number("unpaid_max", e.Holding.UnpaidMax)
		e.Holding.Rest = h.duration("rest", e.Holding.Rest)
		e.Holding.SeatRest = h.duration("seat_rest", e.Holding.SeatRest)
		h.end()
	}
}

func (f *reader) waitingRoom(s *settings, o *object) catalog.RoomRule {
	r := catalog.RoomRule{
		Mode:         catalog.RoomMode(o.str("mode", string(catalog.RoomOn))),
		Order:        catalog.OpeningOrder(o.str("opening_order", "")),
		RateMin:      o.number("rate_min", 0),
		ActiveMax:    o.number("active_max", 0),
		Turn:         o.duration("turn", 0),
		Stay:         o.duration("stay", 0),
		JoinRequires: catalog.JoinRule(o.str("join_requires", "")),
		Lanes:        f.lanes(o),
		Source:       o.str("draw_source", ""),
		DrawWait:     o.duration("draw_wait", 0),
	}
	if text := o.str("rate", ""); text == "auto" {
		r.RateAuto, r.Rate = true, o.number("rate_max", 0)
	} else {
		r.Rate = o.number("rate", 0)
		if o.has("rate_max") {
			o.report.Add(o.lines["rate_max"], o.path+"rate_max", "goes with rate: auto: take it out")
		}
	}
	s.before.joins = 0
	switch {
	case o.has("joins_open") && o.has("joins_open_before"):
		o.report.Add(o.line, o.path+"joins_open", "and joins_open_before say the same: keep one")
	case o.has("joins_open_before"):
		s.before.joins = o.duration("joins_open_before", ledger.Duration(catalog.DefaultJoinsAhead.Milliseconds())).Std()
	default:
		r.JoinsOpen = f.time(o, "joins_open")
	}
	o.end()
	return r
}

func (f *reader) lanes(o *object) []catalog.Lane {
	nodes, path := o.list("lanes", ledger.RoomLanesMax)
	var lanes []catalog.Lane
	for i, n := range nodes {
		l := newObject(f.report, path(i), n)
		lane := catalog.Lane{Key: l.required("key", "a short name for the lane, such as presale")}
		lane.Name = l.str("name", lane.Key)
		lane.Weight = l.number("weight", 1)
		lane.Access = catalog.LaneAccess(l.str("access", ""))
		l.end()
		lanes = append(lanes, lane)
	}
	return lanes
}
