package ledger

import (
	"cmp"
	"slices"

	"onsale/internal/fault"
)

// How people are called: what Advance does to a room's row (C6). All sums are whole numbers, of people × 1e6 where there
// are fractions, so that every ledger gets the same.
//
// The aim is that R stays busy and the room full, without calling more people than can come in or than there are seats for. Not
// all come: the share of those who do (show) is measured, so that 1 ÷ show people are called for each place.

const (
	million = 1_000_000

	showPrior    = 700_000 // of a million called, who come, while nothing else is known
	showOutcomes = 200     // the prior's weight falls to 0 over so many outcomes
	showMin      = 200_000
	showAfter    = Duration(10 * 1000) // of the room's clock: by then most of those called who will come have come

	stepMax = Duration(1000) // the most time that one step makes up for

	perBuyerPrior = 2_500 // seats that a buyer takes, × 1000
	seatsMargin   = 1_200 // × 1000: so many times the people are called for whom there are seats
)

// Due says whether a step is to be made: once in each RoomTick.
func (r *Room) Due(now Time) bool { return now/Time(RoomTick) > r.Tick/Time(RoomTick) }

// Report keeps a node's report, one a second of each, and says whether the room changed. The oldest goes where there are too
// many.
func (r *Room) Report(report RoomReport, now Time) bool {
	if report.Node < 0 {
		return false
	}
	report.At = now
	old := slices.IndexFunc(r.Reports, func(o RoomReport) bool { return o.Node == report.Node })
	switch {
	case old >= 0 && now < r.Reports[old].At+1000:
		return false
	case old >= 0:
		r.Reports[old] = report
	case len(r.Reports) < RoomNodesMax:
		r.Reports = append(r.Reports, report)
	default:
		oldest := slices.MinFunc(r.Reports, func(a, b RoomReport) int { return cmp.Compare(a.At, b.At) })
		r.Reports[slices.Index(r.Reports, oldest)] = report
	}
	return true
}

// Stepping is the fault with which Advance is refused, nil where it is not. A room that is switched off with people inside
// goes on until their sessions have ended.
func (r *Room) Stepping(rule *RoomRule) *fault.Error {
	switch {
	case rule.Mode == RoomOff && r.Inside == 0:
		return rule.Gone()
	case r.Phase != RoomOpen:
		return fault.New(fault.Conflict, "the room is %s", r.Phase)
	}
	return nil
}

// Step is Advance in a tick that is due, after sessions whose time is up were ended. It answers the calls, one of each lane
// that moved.
func (r *Room) Step(e *Event, a Advance, now Time) (calls []Call, called int) {
	rule := &e.Room
	last, elapsed := r.Tick, min(Duration(now-r.Tick), stepMax)
	r.Tick = now
	r.second(now)
	r.joined(a.Joined)
	if secondOf(now) > secondOf(last) {
		r.rate(rule, now)
	}
	stands := r.entering(e, now)
	if stands != nil && stands.Code == fault.Paused {
		r.hold(now - last)
	} else {
		r.forget(now)
	}
	if stands != nil { // and with it the turns' clock
		r.Debt = 0
		return nil, 0
	}
	if r.Inside < rule.ActiveMax {
		r.Clock += elapsed
	}
	r.close(rule)
	if len(r.Knocks) < r.Rate { // else R has enough to do with those who are at the door already
		r.Debt += int64(r.Rate) * int64(elapsed) * (million / 1000)
	}
	show := r.show()
	people := min(max(r.Debt/show, 0), r.callable(rule, a, show))
	calls = r.share(rule, people, now)
	for _, c := range calls {
		called += int(c.Watermark - c.From)
	}
	r.Debt = min(r.Debt-int64(called)*show, int64(r.Rate)*million)
	return calls, called
}

// joined takes over how many numbers were given out, as far as the high-water mark says that it can be.
func (r *Room) joined(counts []LaneCount) {
	for _, c := range counts {
		if i := r.lane(c.Lane); i >= 0 {
			l := &r.Lanes[i]
			l.Joined = max(l.Joined, min(c.Count, l.HighWater))
		}
	}
}

// close counts the outcome of the turns that are over.
func (r *Room) close(rule *RoomRule) {
	for i := range r.Lanes {
		l := &r.Lanes[i]
		over := 0
		for over < len(l.Open) && r.Clock-l.Open[over].Clock > rule.TurnFor() {
			r.Decided += l.Open[over].people()
			r.Shown += l.Open[over].Entered
			over++
		}
		if over > 0 {
			l.Open = slices.Clone(l.Open[over:])
		}
	}
}

// people is how many a call called.
func (c *Call) people() int64 { return c.Watermark - c.From }

// turns counts the people called in open turns for which is says so, and those of them who entered.
func (r *Room) turns(is func(c *Call) bool) (people, entered int64) {
	for i := range r.Lanes {
		for j := range r.Lanes[i].Open {
			if c := &r.Lanes[i].Open[j]; is(c) {
				people += c.people()
				entered += c.Entered
			}
		}
	}
	return people, entered
}

func (r *Room) aged(c *Call) bool { return r.Clock-c.Clock >= showAfter }

// show is how many of a million people called come.
func (r *Room) show() int64 {
	people, entered := r.turns(r.aged)
	people, entered = people+r.Decided, entered+r.Shown
	prior := max(0, showOutcomes-people)
	share := (entered*million + prior*showPrior) / max(people+prior, 1)
	return min(max(share, showMin), million)
}

// carry lets calling make up for what the last second's entries fell short of R, while nobody knocked and no more than
// that are on their way: those called lately of whom it is not known yet whether they come.
func (r *Room) carry(entered int) {
	if len(r.Knocks) > 0 {
		return
	}
	people, came := r.turns(func(c *Call) bool { return !r.aged(c) })
	coming := max(0, people*r.show()-came*million)
	short := int64(r.Rate-entered)*million - coming
	r.Debt = min(r.Debt+max(0, short), int64(r.Rate)*million)
}

// callable is how many people may be called at most: those for whom there is a place inside, and those for whom there are
// seats.
func (r *Room) callable(rule *RoomRule, a Advance, show int64) int64 {
	inside, knocks := int64(r.Inside), int64(len(r.Knocks))
	places := int64(rule.ActiveMax) - inside - knocks
	if places <= 0 {
		return 0
	}
	people, entered := r.turns(func(*Call) bool { return true })
	byPlaces := (places+entered)*million/show - people

	perBuyer := int64(min(max(a.PerBuyer, 0), SeatsPerHoldCap*1000))
	if perBuyer == 0 {
		perBuyer = perBuyerPrior
	}
	wanted := max(1, (int64(max(a.Available, 0))*seatsMargin+perBuyer-1)/perBuyer)
	// Whoever is not at the door long after being called most likely will not come: of them a quarter count, or at the end of a
	// sale each would keep the last seats from the line for a whole turn.
	old, came := r.turns(func(c *Call) bool { return r.Clock-c.Clock > 2*showAfter })
	away := max(0, old-came-knocks)
	without := people - entered - (away - away/4) + max(0, inside-int64(max(a.Holding, 0)))
	return max(0, min(byPlaces, wanted-without))
}

// share moves the lanes' watermarks by so many people in all: each gets its weight's share, and what one cannot use goes to
// the others. Over many steps the shares are exact, whatever the number in each: a lane's Credit keeps how far it is behind.
func (r *Room) share(rule *RoomRule, people int64, now Time) []Call {
	give := make([]int64, len(r.Lanes))
	waiting := func(i int) int64 { return r.Lanes[i].Joined - r.Lanes[i].Watermark - give[i] }
	for people > 0 {
		var open []int
		total := int64(0)
		for i := range r.Lanes {
			if waiting(i) > 0 {
				open = append(open, i)
				total += int64(rule.weight(r.Lanes[i].Key))
			} else {
				r.Lanes[i].Credit = 0
			}
		}
		if len(open) == 0 {
			break
		}
		// Whole rounds give each its weight and change no credit; what is left goes one by one to whoever is furthest behind.
		rounds := people / total
		for _, i := range open {
			rounds = min(rounds, waiting(i)/int64(rule.weight(r.Lanes[i].Key)))
		}
		used := false // whether a lane has nobody left
		for _, i := range open {
			n := rounds * int64(rule.weight(r.Lanes[i].Key))
			give[i] += n
			people -= n
			used = used || waiting(i) == 0
		}
		for people > 0 && !used {
			behind := open[0]
			for _, i := range open {
				r.Lanes[i].Credit += int64(rule.weight(r.Lanes[i].Key))
				if r.Lanes[i].Credit > r.Lanes[behind].Credit {
					behind = i
				}
			}
			r.Lanes[behind].Credit -= total
			give[behind]++
			people--
			used = waiting(behind) == 0
		}
	}
	return r.called(give, now)
}

// called writes down who is called.
func (r *Room) called(give []int64, now Time) (calls []Call) {
	for i, n := range give {
		if n == 0 {
			continue
		}
		l := &r.Lanes[i]
		c := Call{Lane: l.Key, At: now, Clock: r.Clock, From: l.Watermark, Watermark: l.Watermark + n}
		l.Watermark = c.Watermark
		calls = append(calls, c)
		if last := len(l.Open) - 1; last >= 0 && l.Open[last].Clock/1000 == c.Clock/1000 {
			// The earlier ones of the second get as long as the last ones.
			l.Open[last].Watermark, l.Open[last].Clock, l.Open[last].At = c.Watermark, c.Clock, c.At
		} else {
			l.Open = append(l.Open, c)
		}
	}
	return calls
}
