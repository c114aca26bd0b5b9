package ledger

// LineEmpty says whether nobody is left in a room's line whom freed seats are to wait for (A23): everybody who has taken a number
// was called, nobody's turn is open, and nobody who was told to come again is waited for. line is how many numbers each lane has
// given out, as far as the caller knows; what the room itself has heard of counts too. A room that is closed for good has no
// line; one that does not call yet may have one.
func (r *Room) LineEmpty(rule *RoomRule, line []LaneCount, now Time) bool {
	if rule.Mode == RoomOff || rule.Closed {
		return true
	}
	if r.Phase != RoomOpen {
		return false
	}
	for i := range r.Lanes {
		l := &r.Lanes[i]
		joined := l.Joined
		for _, c := range line {
			if c.Lane == l.Key {
				joined = max(joined, c.Count)
			}
		}
		if joined > l.Watermark {
			return false
		}
	}
	people, entered := r.turns(func(c *Call) bool { return r.Clock-c.Clock <= rule.TurnFor() })
	if people > entered {
		return false
	}
	for _, k := range r.Knocks {
		if now-k.Last <= Time(RoomKnockPatience) {
			return false
		}
	}
	return true
}
