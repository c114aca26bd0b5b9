package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// An event's waiting room, recomputed from what was in force, who was called and who came in: in each lane nobody was called
// before a smaller position, and nobody came in before being called; never more than R in a second, or than may be
// inside; each number once (I10). What was decided within one millisecond may have been decided in any order: then the
// rule that allows more counts.

// A roomSays is what a room's own row says of it.
type roomSays struct {
	phase      ledger.RoomPhase
	arrival    bool
	commitment string
	source     string
	frozen     ledger.Time
	listHash   string
	value      string
	provable   bool
	k          string
	drawn      ledger.Time
	inside     int64
	lanes      []laneSays
}

// A laneSays is what it says of a lane.
type laneSays struct {
	key       string
	highWater int64
	n         int64
	joined    int64
	watermark int64
	entered   int64
}

// A foyer is what is gathered about an event's waiting room.
type foyer struct {
	says     *roomSays // nil where there is none
	rules    []ruleRow
	lanes    map[string]*laneCount
	sessions map[id.ID]*sessionRow
	entries  []*sessionRow // the same by time
	perCode  map[codeKey]*codeCount
	totals   RoomTotals
}

// A laneCount is what calls and sessions say of a lane.
type laneCount struct {
	calls   []callRow
	numbers map[int64]*sessionRow
}

type codeKey struct{ lane, code string }

type codeCount struct {
	customers map[id.ID]bool
	max       int64
}

func (f *foyer) lane(key string) *laneCount {
	l := f.lanes[key]
	if l == nil {
		l = &laneCount{numbers: map[int64]*sessionRow{}}
		f.lanes[key] = l
	}
	return l
}

// empty says that the event never had a waiting room.
func (f *foyer) empty() bool {
	return f.says == nil && len(f.rules) == 0 && len(f.lanes) == 0 && len(f.sessions) == 0 && len(f.perCode) == 0
}

// during are the rules that were in force at any time from one instant to another, both included. Before the first there was no
// room.
func (f *foyer) during(from, to ledger.Time) []ruleRow {
	first := sort.Search(len(f.rules), func(i int) bool { return f.rules[i].at >= from })
	last := sort.Search(len(f.rules), func(i int) bool { return f.rules[i].at > to })
	if first == 0 {
		return f.rules[:last]
	}
	return f.rules[first-1 : last]
}

// most is the greatest value of something that was in force in a time.
func (f *foyer) most(from, to ledger.Time, of func(*ruleRow) int64) int64 {
	most := int64(0)
	rules := f.during(from, to)
	for i := range rules {
		most = max(most, of(&rules[i]))
	}
	return most
}

// shut says whether a room was paused, closed or off all the time.
func (f *foyer) shut(from, to ledger.Time) bool {
	return !slices.ContainsFunc(f.during(from, to), func(r ruleRow) bool { return r.mode != ledger.RoomOff && !r.paused && !r.closed })
}

// needed says whether a hold that was made at an instant needed a session: not where the room was off, if only for a moment of it.
func (f *foyer) needed(at ledger.Time) bool {
	rules := f.during(at, at)
	opened := len(rules) > 0 && (rules[0].at < at)
	return opened && !slices.ContainsFunc(rules, func(r ruleRow) bool { return r.mode == ledger.RoomOff })
}

// readRoom reads all of it but the holds, and checks it.
func (h *hall) readRoom(side *byEvent) {
	f := &foyer{lanes: map[string]*laneCount{}, sessions: map[id.ID]*sessionRow{}, perCode: map[codeKey]*codeCount{}}
	h.foyer = f
	for r := range side.rooms.while(func(r *roomRow) bool { return r.event == h.id }) {
		says, err := parseRoom(r.body)
		if err != nil {
			h.bad(CheckReferences, "room", "it cannot be read: %v", err)
			continue
		}
		f.says = says
	}
	for r := range side.rules.while(func(r *ruleRow) bool { return r.event == h.id }) {
		if n := len(f.rules); n > 0 && r.at < f.rules[n-1].at {
			h.bad(CheckRoom, "room", "its rules are not in the order of time")
		}
		f.rules = append(f.rules, r)
	}
	for r := range side.calls.while(func(r *callRow) bool { return r.event == h.id }) {
		l := f.lane(r.lane)
		l.calls = append(l.calls, r)
	}
	for r := range side.sessions.while(func(r *sessionRow) bool { return r.event == h.id }) {
		f.sessions[r.id] = &r
		f.entries = append(f.entries, &r)
	}
	for r := range side.codes.while(func(r *codeRow) bool { return r.event == h.id }) {
		h.code(f, &r)
	}
	if f.empty() {
		return
	}
	h.known1(h.known, "room")
	slices.SortFunc(f.entries, func(a, b *sessionRow) int { return cmp.Or(cmp.Compare(a.entered, b.entered), cmp.Compare(a.id, b.id)) })
	for _, key := range sortedKeys(f.lanes) {
		h.calls(key, f.lanes[key])
	}
	h.entries()
	h.seconds()
	h.inside()
	h.draw()
	h.roomAgrees()
	h.a.snap.fail(h.joins())
	h.totals.Room = &f.totals
}

func laneText(key string) string { return "lane " + key }

func sessionText(s *sessionRow) string { return s.id.Text(id.Session) }

// calls checks that a lane's watermark only moved on, and only while the room was open.
func (h *hall) calls(key string, l *laneCount) {
	for i := range l.calls {
		c := &l.calls[i]
		h.a.saw(CheckI10, 1)
		switch {
		case i == 0 && c.was != 0, i > 0 && c.was != l.calls[i-1].watermark:
			h.bad(CheckI10, laneText(key), "its watermark moved from %d to %d, and it did not stand there", c.was, c.watermark)
		case c.watermark <= c.was:
			h.bad(CheckI10, laneText(key), "its watermark moved from %d to %d", c.was, c.watermark)
		case i > 0 && c.at < l.calls[i-1].at:
			h.bad(CheckI10, laneText(key), "its watermark %d was reached before %d", c.watermark, l.calls[i-1].watermark)
		}
		if h.foyer.shut(c.at, c.at) {
			h.bad(CheckI10, laneText(key), "it called up to %d while the room was shut", c.watermark)
		}
		if s := h.foyer.says; s != nil && (s.phase != ledger.RoomOpen || c.at < max(s.frozen, s.drawn)) {
			h.bad(CheckI10, laneText(key), "it called up to %d before the draw", c.watermark)
		}
	}
}

// called is a lane's watermark at an instant.
func (l *laneCount) called(at ledger.Time) int64 {
	i := sort.Search(len(l.calls), func(i int) bool { return l.calls[i].at > at })
	most := int64(0)
	if i > 0 {
		most = l.calls[i-1].watermark
	}
	return most
}

// entries checks each entry: called before, its number used once, the room open.
func (h *hall) entries() {
	for _, s := range h.foyer.entries {
		name := sessionText(s)
		h.a.saw(CheckI10, 1)
		l := h.foyer.lane(s.lane)
		if other := l.numbers[s.number]; other != nil {
			h.bad(CheckI10, name, "number %d of %s had come in by %s", s.number, laneText(s.lane), sessionText(other))
		}
		l.numbers[s.number] = s
		if w := l.called(s.entered); s.position < 0 || s.position >= w {
			h.bad(CheckI10, name, "position %d of %s came in when the watermark was %d", s.position, laneText(s.lane), w)
		}
		if h.foyer.shut(s.entered, s.entered) {
			h.bad(CheckI10, name, "it came in while the room was shut")
		}
		h.stay(s)
	}
}

// stay checks the times of a session.
func (h *hall) stay(s *sessionRow) {
	name := sessionText(s)
	switch {
	case s.expires <= s.entered:
		h.bad(CheckRoom, name, "it runs out at %d and began at %d", s.expires, s.entered)
	case (s.ended == 0) != (s.why == ""), s.ended != 0 && s.ended < s.entered:
		h.bad(CheckRoom, name, "it began at %d and ended at %d, as %q", s.entered, s.ended, s.why)
	case s.why == ledger.SessionExpired && s.ended < s.expires:
		h.bad(CheckRoom, name, "it ended at %d as run out, and could last until %d", s.ended, s.expires)
	}
}

const secondMs = ledger.Time(1000)

// seconds counts entries in each second of the shard's clock.
func (h *hall) seconds() {
	f := h.foyer
	for i := 0; i < len(f.entries); {
		second := f.entries[i].entered / secondMs
		first := i
		for i < len(f.entries) && f.entries[i].entered/secondMs == second {
			i++
		}
		n := int64(i - first)
		f.totals.EnteredMax = max(f.totals.EnteredMax, n)
		if most := f.most(second*secondMs, (second+1)*secondMs-1, func(r *ruleRow) int64 { return r.rate }); n > most {
			h.bad(CheckI10, "the second "+instant(second*secondMs), "%d came in, R was %d", n, most)
		}
	}
}

// inside counts who is inside after each entry: all who came in and whose session was not ended yet.
func (h *hall) inside() {
	f := h.foyer
	ends := make([]ledger.Time, 0, len(f.entries))
	for _, s := range f.entries {
		if s.ended != 0 {
			ends = append(ends, s.ended)
		}
	}
	slices.Sort(ends)
	left := 0
	for i, s := range f.entries {
		if i+1 < len(f.entries) && f.entries[i+1].entered == s.entered {
			continue
		}
		for left < len(ends) && ends[left] <= s.entered {
			left++
		}
		n := int64(i + 1 - left)
		f.totals.InsideMax = max(f.totals.InsideMax, n)
		if most := f.most(s.entered, s.entered, func(r *ruleRow) int64 { return r.activeMax }); n > most {
			h.bad(CheckI10, sessionText(s), "with it %d were inside at %s, %d may be", n, instant(s.entered), most)
		}
	}
	f.totals.Inside = int64(len(f.entries) - len(ends))
}

func instant(t ledger.Time) string { return t.Std().Format(time.RFC3339Nano) }

// code counts a use of a code: by each customer once, and never more than it may be used.
func (h *hall) code(f *foyer, r *codeRow) {
	k := codeKey{r.lane, r.code}
	c := f.perCode[k]
	if c == nil {
		c = &codeCount{customers: map[id.ID]bool{}}
		f.perCode[k] = c
	}
	h.a.saw(CheckRoom, 1)
	f.totals.CodeUses++
	if r.number != int64(len(c.customers))+1 {
		h.bad(CheckRoom, laneText(r.lane), "the use of a code that is written down as number %d is number %d", r.number, len(c.customers)+1)
	}
	if c.customers[r.customer] {
		h.bad(CheckRoom, r.customer.Text(id.Customer), "a code of %s was counted twice", laneText(r.lane))
	}
	c.customers[r.customer] = true
	c.max = max(c.max, r.max)
	if n := int64(len(c.customers)); n == c.max+1 { // said once
		h.bad(CheckRoom, laneText(r.lane), "a code was used more than the %d times that it may be", c.max)
	}
}

// roomAgrees compares what the room's own row says with calls and sessions.
func (h *hall) roomAgrees() {
	f := h.foyer
	h.a.saw(CheckRoom, 1+len(f.sessions))
	if f.says == nil {
		if len(f.lanes) > 0 {
			h.bad(CheckRoom, "room", "people were called or came in, and it is not there")
		}
		return
	}
	f.totals.Phase, f.totals.Entered = f.says.phase.String(), int64(len(f.sessions))
	if n := len(f.rules); n > 0 {
		f.totals.Mode = f.rules[n-1].mode.String()
	} else {
		h.bad(CheckRoom, "room", "what was in force in it is not written down")
	}
	h.roomRule()
	if f.says.inside != f.totals.Inside {
		h.bad(CheckRoom, "room", "it says that %d are inside, %d are", f.says.inside, f.totals.Inside)
	}
	known := map[string]bool{}
	for i := range f.says.lanes {
		s := &f.says.lanes[i]
		known[s.key] = true
		h.laneAgrees(s)
	}
	for _, key := range sortedKeys(f.lanes) {
		if !known[key] {
			h.bad(CheckRoom, laneText(key), "people were called or came in, and the room has no such lane")
		}
	}
}

// roomRule compares the newest rule with the event's own row. R may be less than what that says: it may follow figures.
func (h *hall) roomRule() {
	if n := len(h.foyer.rules); n > 0 && h.known {
		r, e := &h.foyer.rules[n-1], &h.event.Room
		if r.mode != e.Mode || r.activeMax != int64(e.ActiveMax) || r.rate > int64(e.Rate) || r.paused != e.Paused || r.closed != e.Closed {
			h.bad(CheckRoom, "room", "the event says other things than what is written down as in force")
		}
	}
}

func (h *hall) laneAgrees(s *laneSays) {
	name := laneText(s.key)
	l := h.foyer.lane(s.key)
	watermark := l.called(math.MaxInt64)
	h.foyer.totals.Drawn += s.n
	h.foyer.totals.Called += watermark
	switch {
	case s.watermark != watermark:
		h.bad(CheckRoom, name, "its watermark is %d, the last call was up to %d", s.watermark, watermark)
	case s.entered != int64(len(l.numbers)):
		h.bad(CheckRoom, name, "it says that %d came in, %d did", s.entered, len(l.numbers))
	case s.n > s.highWater || s.joined > s.highWater:
		h.bad(CheckRoom, name, "%d numbers are drawn of %d, and no more than %d were given out", s.n, s.joined, s.highWater)
	case s.watermark > s.joined:
		h.bad(CheckRoom, name, "%d were called, and %d have joined", s.watermark, s.joined)
	}
	for _, number := range sortedKeys(l.numbers) {
		if number < 0 || number >= s.highWater {
			h.bad(CheckI10, sessionText(l.numbers[number]), "number %d came in, and no more than %d were given out", number, s.highWater)
		}
	}
}

// admitted checks that a new hold had a session of its customer, live at that instant, where one was needed (I11). Offers
// are holds of their own right, and a rescue goes on from a hold that was there before.
func (h *hall) admitted(v *holdRow, rescued bool) {
	s := h.foyer.sessions[v.session]
	if v.session != 0 && s == nil {
		h.bad(CheckReferences, holdText(v.id), "its session %s is not there", v.session.Text(id.Session))
	}
	if v.offer != 0 || rescued || !h.foyer.needed(v.created) {
		return
	}
	h.a.saw(CheckI11, 1)
	why := ""
	switch {
	case v.session == 0:
		why = "it has no session"
	case s == nil:
		why = "its session is not there"
	case s.customer != v.customer:
		why = fmt.Sprintf("%s is another customer's", sessionText(s))
	case s.entered > v.created:
		why = fmt.Sprintf("%s began later", sessionText(s))
	case s.ended != 0 && s.ended < v.created:
		why = fmt.Sprintf("%s had ended (%s)", sessionText(s), s.why)
	case s.expires <= v.created:
		why = fmt.Sprintf("%s had run out", sessionText(s))
	default:
		return
	}
	h.bad(CheckI11, holdText(v.id), "%s", why)
}
