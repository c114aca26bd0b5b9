package ledger

import (
	"cmp"
	"slices"
	"time"

	"onsale/internal/fault"
)

// How somebody called enters: what Enter does to a room's row.
//
// A claim is refused by next_in while there is no place for it in this second or inside, and then stands among the knocks: those
// on time before those who are late, and among them whoever was called first. A place is given to a claim only if there
// are more places than knocks that go before it, so that nobody called later slips in between two claims of somebody who waits.

// Checks are the conditions of a claim that a negative control takes out. The zero value is all in force.
type Checks struct {
	NoRate   bool // R
	NoActive bool // ActiveMax
	NoCall   bool // the watermark
	NoOrder  bool // who knocked before
}

// secondOf is the second of the shard's clock that an instant is in.
func secondOf(t Time) Time { return t - t%1000 }

// second makes the room count the entries of the second that now is in. The clock never goes back: a now before the second that
// is counted is taken for that one. It gives the instant by which entries happen.
func (r *Room) second(now Time) Time {
	at := secondOf(now)
	if at <= r.Second {
		return max(now, r.Second)
	}
	before := 0
	if at == r.Second+1000 {
		before = r.Entered
	}
	if r.Second != 0 && r.Phase == RoomOpen {
		r.carry(before)
	}
	r.Second, r.Entered, r.Before = at, 0, before
	return now
}

// forget drops the knocks of those who have not come again.
func (r *Room) forget(now Time) {
	stale := func(k Knock) bool { return now-k.Last > Time(RoomKnockPatience) }
	if slices.ContainsFunc(r.Knocks, stale) { // mostly there are none
		r.Knocks = slices.DeleteFunc(r.Knocks, stale)
	}
}

// hold lets those who knock keep their place over a pause, in which their claims are not heard.
func (r *Room) hold(paused Time) {
	for i := range r.Knocks {
		r.Knocks[i].Last += paused
	}
}

// places is how many may enter now.
func (r *Room) places(rule *RoomRule, check Checks) int {
	left := RoomActiveMax
	if !check.NoRate {
		left = r.Rate - r.Entered
	}
	if !check.NoActive {
		left = min(left, rule.ActiveMax-r.Inside)
	}
	return max(left, 0)
}

// compareKnocks is the order in which knocks go.
func (r *Room) compareKnocks(a, b Knock) int {
	late := func(k Knock) int {
		if k.Late {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(late(a), late(b)), cmp.Compare(a.Called, b.Called), cmp.Compare(a.Position, b.Position),
		cmp.Compare(r.lane(a.Lane), r.lane(b.Lane)), cmp.Compare(a.Number, b.Number))
}

// call finds the open call that called a position, -1 where its turn is over.
func (l *Lane) call(position int64) int {
	i, _ := slices.BinarySearchFunc(l.Open, position+1, func(c Call, p int64) int { return cmp.Compare(c.Watermark, p) })
	if i == len(l.Open) || l.Open[i].From > position {
		return -1
	}
	return i
}

// knock is the claim as a knock: the one that is remembered, or a new one.
func (r *Room) knock(rule *RoomRule, lane int, number, position int64, now Time) Knock {
	l := &r.Lanes[lane]
	for _, k := range r.Knocks {
		if k.Number == number && k.Lane == l.Key {
			k.Last = now
			return k
		}
	}
	k := Knock{Lane: l.Key, Number: number, Position: position, Late: true, Called: r.Clock, Last: now}
	if i := l.call(position); i >= 0 && r.Clock-l.Open[i].Clock <= rule.TurnFor() {
		k.Late, k.Called = false, l.Open[i].Clock
	}
	return k
}

// remember puts a knock in its place, if it is among the first RoomKnocksMax.
func (r *Room) remember(k Knock) {
	same := func(o Knock) bool { return o.Number == k.Number && o.Lane == k.Lane }
	if i := slices.IndexFunc(r.Knocks, same); i >= 0 {
		r.Knocks[i] = k // its place depends on nothing that changes
		return
	}
	i, _ := slices.BinarySearchFunc(r.Knocks, k, r.compareKnocks)
	if i == RoomKnocksMax {
		return
	}
	r.Knocks = slices.Insert(r.Knocks, i, k)
	r.Knocks = r.Knocks[:min(len(r.Knocks), RoomKnocksMax)]
}

// Claim is Enter, but for the session: it gives the position and the instant of the entry. makeRoom ends sessions whose time is
// up, at most SessionsEnterMax, and is called where nobody could enter else because the room is full. An error of it ends the
// claim. On next_in the room has changed (the knock), on other faults it has not.
func (r *Room) Claim(e *Event, c Enter, now Time, check Checks, makeRoom func() error) (position int64, at Time, err error) {
	rule := &e.Room
	if f := r.entering(e, now); f != nil {
		return 0, 0, f
	}
	lane := r.lane(c.Lane)
	position, ok := r.Position(c.Lane, c.Number)
	if !ok || c.Number < 0 || c.Number >= r.Lanes[lane].HighWater || position >= r.Lanes[lane].Watermark && !check.NoCall {
		return 0, 0, fault.New(fault.NotAdmitted, "it is not your turn yet")
	}
	at = r.second(now)
	r.forget(at)
	k := r.knock(rule, lane, c.Number, position, at)
	before := 0
	if !check.NoOrder {
		before, _ = slices.BinarySearchFunc(r.Knocks, k, r.compareKnocks)
	}
	if rule.ActiveMax-r.Inside <= before && !check.NoActive {
		if err := makeRoom(); err != nil {
			return 0, 0, err
		}
	}
	if r.places(rule, check) > before {
		r.enter(lane, k)
		return position, at, nil
	}
	r.remember(k)
	retry := time.Second
	if rule.ActiveMax-r.Inside > before { // R alone is in the way
		retry = max(Duration(r.Second+1000-at), 1).Std()
	}
	return 0, 0, &fault.Error{Code: fault.NextIn, RetryAfter: retry}
}

// entering is the fault with which everybody's claim is refused, nil where it is not.
func (r *Room) entering(e *Event, now Time) *fault.Error {
	if e.Room.Mode == RoomOff { // it goes on only until those inside have left
		return e.Room.Gone()
	}
	if e.Room.Paused {
		return fault.New(fault.Paused, "the waiting room is paused")
	}
	if f := e.Selling(now); f != nil {
		return f
	}
	switch {
	case e.Room.Closed:
		return fault.New(fault.NotOnSale, "the waiting room is closed")
	case r.Phase != RoomOpen:
		return fault.New(fault.NotOnSale, "nobody is called yet")
	}
	return nil
}

// enter counts an entry.
func (r *Room) enter(lane int, k Knock) {
	l := &r.Lanes[lane]
	l.Entered++
	r.Entered++
	r.Inside++
	if i := l.call(k.Position); i >= 0 {
		l.Open[i].Entered++
	} else {
		r.Shown = min(r.Shown+1, r.Decided) // counted as one who did not come
	}
	r.Knocks = slices.DeleteFunc(r.Knocks, func(o Knock) bool { return o.Number == k.Number && o.Lane == k.Lane })
}
