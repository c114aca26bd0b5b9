package ledger

import "slices"

// What a rule says, with the defaults of what it leaves out. They may be asked of any rule, also one that is off.

// TurnFor is how long a turn lasts.
func (r *RoomRule) TurnFor() Duration { return orElse(r.Turn, RoomTurnDefault) }

// StayFor is how long a session lasts at least.
func (r *RoomRule) StayFor() Duration { return orElse(r.Stay, RoomStayDefault) }

// DrawWaitFor is how long the public value is waited for.
func (r *RoomRule) DrawWaitFor() Duration { return orElse(r.DrawWait, RoomDrawWaitDefault) }

// LaneRules are the lanes, at least one.
func (r *RoomRule) LaneRules() []LaneRule {
	if len(r.Lanes) == 0 {
		return []LaneRule{{Key: LaneDefault, Weight: 1}}
	}
	return r.Lanes
}

func orElse(d, otherwise Duration) Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// weight of a lane. One that the rule does not name any more has the least.
func (r *RoomRule) weight(lane string) int {
	for _, l := range r.LaneRules() {
		if l.Key == lane {
			return l.Weight
		}
	}
	return 1
}

// RateNow is the R in force when it was rate: the rule's, or, where it is automatic, rate within the rule's bounds. 0 is a
// room that has none yet: half of the most, since the first rush is when nothing is known.
func (r *RoomRule) RateNow(rate int) int {
	switch {
	case !r.RateAuto:
		return r.Rate
	case rate == 0:
		rate = r.Rate / 2
	}
	return min(max(rate, r.RateMin), r.Rate)
}

// Problem is the field of a rule that no ledger should keep, "" where there is none.
func (r *RoomRule) Problem() string {
	on := r.Mode != RoomOff
	switch {
	case r.Mode > RoomOn:
		return "room.mode"
	case r.Opens < 0:
		return "room.opens"
	case r.Rate < 0 || r.Rate > RoomRateMax || on && r.Rate == 0:
		return "room.rate"
	case r.RateAuto && (r.RateMin < 1 || r.RateMin > r.Rate):
		return "room.rate_min"
	case r.ActiveMax < 0 || r.ActiveMax > RoomActiveMax || on && r.ActiveMax == 0:
		return "room.active_max"
	case r.Turn < 0 || r.Turn > RoomTurnMax:
		return "room.turn_ms"
	case r.Stay < 0 || r.Stay > RoomStayMax:
		return "room.stay_ms"
	case r.DrawWait < 0 || r.DrawWait > RoomStayMax:
		return "room.draw_wait_ms"
	case len(r.Lanes) > RoomLanesMax:
		return "room.lanes"
	}
	for i, l := range r.Lanes {
		same := func(o LaneRule) bool { return o.Key == l.Key }
		if l.Key == "" || len(l.Key) > LaneKeyBytesMax || l.Weight < 1 || l.Weight > LaneWeightMax || slices.ContainsFunc(r.Lanes[:i], same) {
			return "room.lanes"
		}
	}
	return ""
}

// Bounds of a HoldingRule. Ended holds are kept for KeepAnswers, so that no rule looks further back.
const (
	UnpaidHoldsMax = 64
	HoldingRestMax = KeepAnswers / 4
)

// Problem is the field of a rule that no ledger should keep, "" where there is none.
func (r *HoldingRule) Problem() string {
	switch {
	case r.UnpaidMax < 0 || r.UnpaidMax > UnpaidHoldsMax:
		return "holding.unpaid_max"
	case r.Rest < 0 || r.Rest > HoldingRestMax:
		return "holding.rest_ms"
	case r.SeatRest < 0 || r.SeatRest > HoldingRestMax:
		return "holding.seat_rest_ms"
	}
	return ""
}

// Since is how far back from an instant the rule looks at unpaid holds; ok is false where it bounds nothing.
func (r *HoldingRule) Since(now Time) (since Time, ok bool) {
	look := r.SeatRest
	if r.UnpaidMax > 0 {
		look = max(look, 2*r.Rest) // those that ended within Rest before the last one
	}
	return now - Time(look), look > 0
}

// Force is what the rule puts in force from an instant on.
func (r *RoomRule) Force(e *Event, rate int, at Time) RoomForce {
	return RoomForce{
		Event: e.ID, At: at, Mode: r.Mode, Rate: r.RateNow(rate), ActiveMax: r.ActiveMax, Turn: r.TurnFor(), Paused: r.Paused, Closed: r.Closed,
	}
}

// Same says whether two rows say the same, whenever they do.
func (f RoomForce) Same(o RoomForce) bool {
	f.At, o.At = 0, 0
	return f == o
}
