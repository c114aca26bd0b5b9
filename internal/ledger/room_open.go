package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"onsale/internal/draw"
	"onsale/internal/fault"
	"onsale/internal/id"
)

// How a room comes to be open: what RoomCommit, RoomNumbers, RoomFreeze and RoomDraw do to its row. Each method is the whole
// meaning of its command but for finding the rows; the model and the databases' adapters share it. A method that answers a
// fault has changed nothing that is to be written.

// NewRoom is the room of an event before anything was said about it.
func NewRoom(e *Event) *Room {
	r := &Room{Event: e.ID}
	r.Ruled(e)
	return r
}

// Ruled takes the event's rule over, when it is new or has changed: lanes that are new come behind, and R.
func (r *Room) Ruled(e *Event) {
	for _, l := range e.Room.LaneRules() {
		if r.lane(l.Key) < 0 && len(r.Lanes) < RoomLanesMax {
			r.Lanes = append(r.Lanes, Lane{Key: l.Key})
		}
	}
	r.Rate = e.Room.RateNow(r.Rate)
}

// lane is a lane's place, -1 where there is none.
func (r *Room) lane(key string) int {
	return slices.IndexFunc(r.Lanes, func(l Lane) bool { return l.Key == key })
}

// Clone shares nothing with the room.
func (r *Room) Clone() *Room {
	c := *r
	c.Lanes = slices.Clone(r.Lanes)
	for i := range c.Lanes {
		c.Lanes[i].Open = slices.Clone(r.Lanes[i].Open)
	}
	c.Knocks, c.Reports = slices.Clone(r.Knocks), slices.Clone(r.Reports)
	return &c
}

// View is the room as answers have it: without what may be long, and shared with nothing.
func (r *Room) View() *Room {
	c := *r
	c.Lanes = slices.Clone(r.Lanes)
	for i := range c.Lanes {
		c.Lanes[i].Open = nil
	}
	c.Knocks, c.Reports = nil, nil
	return &c
}

// Gone is the fault with which a room's commands are refused where the event has none, nil where it has.
func (r *RoomRule) Gone() *fault.Error {
	switch {
	case r.Mode == RoomOff:
		return fault.New(fault.Conflict, "the event has no waiting room")
	case r.Closed:
		return fault.New(fault.Conflict, "the waiting room is closed")
	}
	return nil
}

// Commit is RoomCommit.
func (r *Room) Commit(e *Event, c RoomCommit, now Time) (repeat bool, f *fault.Error) {
	if f := e.Room.Gone(); f != nil {
		return false, f
	}
	if r.Phase != RoomClosed {
		if c.Commitment != r.Commitment || c.Source != r.Source {
			return false, fault.New(fault.Conflict, "the room has opened with another commitment")
		}
		return true, nil
	}
	switch {
	case e.Room.Arrival && (c.Commitment != "" || c.Source != ""):
		return false, badField("commitment", "there is no draw to commit to")
	case !e.Room.Arrival && !isHash(c.Commitment):
		return false, badField("commitment", "the hash of K, 64 hex digits")
	case now < e.Room.Opens:
		return false, fault.New(fault.Conflict, "the waiting room opens later")
	}
	r.Phase, r.Arrival, r.Commitment, r.Source = RoomWaiting, e.Room.Arrival, c.Commitment, c.Source
	return false, nil
}

// Number is RoomNumbers.
func (r *Room) Number(e *Event, c RoomNumbers) (repeat bool, f *fault.Error) {
	if f := e.Room.Gone(); f != nil {
		return false, f
	}
	lane := r.lane(c.Lane)
	switch {
	case r.Phase == RoomClosed:
		return false, fault.New(fault.Conflict, "the waiting room is not open yet")
	case lane < 0:
		return false, badField("lane", "there is no such lane")
	case c.Upto < 0 || c.Upto > RoomNumbersMax:
		return false, badField("upto", "too many numbers")
	case c.Upto <= r.Lanes[lane].HighWater:
		return true, nil
	}
	r.Lanes[lane].HighWater = c.Upto
	return false, nil
}

// Freeze is RoomFreeze.
func (r *Room) Freeze(e *Event, c RoomFreeze, now Time) (repeat bool, f *fault.Error) {
	if f := e.Room.Gone(); f != nil {
		return false, f
	}
	switch {
	case r.Phase == RoomClosed:
		return false, fault.New(fault.Conflict, "the waiting room is not open yet")
	case r.Phase > RoomWaiting:
		return true, nil
	case len(c.Lanes) != len(r.Lanes):
		return false, badField("lanes", "every lane is named once")
	case c.ListHash != "" && !isHash(c.ListHash) || c.ListHash == "" && !r.Arrival:
		return false, badField("list_hash", "64 hex digits")
	}
	n := make([]int64, len(r.Lanes))
	seen := make([]bool, len(r.Lanes))
	for _, count := range c.Lanes {
		lane := r.lane(count.Lane)
		if lane < 0 || seen[lane] || count.Count < 0 {
			return false, badField("lanes", "every lane is named once")
		}
		n[lane], seen[lane] = count.Count, true
	}
	if now < e.SaleOpens {
		return false, fault.New(fault.Conflict, "the sale opens later")
	}
	for lane := range r.Lanes {
		if n[lane] > r.Lanes[lane].HighWater {
			return false, fault.New(fault.Conflict, "lane %s never had so many numbers", r.Lanes[lane].Key)
		}
	}
	for lane := range r.Lanes {
		l := &r.Lanes[lane]
		l.N, l.Joined = n[lane], max(l.Joined, n[lane])
	}
	r.Phase, r.Frozen, r.ListHash = RoomDrawing, now, c.ListHash
	if r.Arrival {
		r.open(now)
	}
	return false, nil
}

func (r *Room) open(now Time) { r.Phase, r.Drawn, r.Tick = RoomOpen, now, now }

// Draw is RoomDraw.
func (r *Room) Draw(e *Event, c RoomDraw, now Time) (repeat bool, f *fault.Error) {
	if f := e.Room.Gone(); f != nil {
		return false, f
	}
	k, isKey := parseHash(c.K)
	switch {
	case r.Phase == RoomOpen:
		return true, nil
	case r.Phase != RoomDrawing:
		return false, fault.New(fault.Conflict, "the room is %s", r.Phase)
	case !isKey || draw.Commitment(k) != r.Commitment:
		return false, badField("k", "it is not what the room has committed to")
	case c.Provable && (c.Value == "" || r.Source == ""):
		return false, badField("provable", "only a value from the named source proves a draw")
	case c.Value == "" && r.Source != "" && now < r.Frozen+Time(e.Room.DrawWaitFor()):
		return false, fault.New(fault.Conflict, "the public value is still waited for")
	}
	r.Value, r.Provable, r.K = c.Value, c.Provable, hex.EncodeToString(k[:])
	r.open(now)
	return false, nil
}

func badField(field, detail string) *fault.Error {
	return &fault.Error{Code: fault.Invalid, Field: field, Detail: detail}
}

// isHash says whether a text is 32 bytes as lower-case hex.
func isHash(text string) bool {
	_, ok := parseHash(text)
	return ok
}

func parseHash(text string) (sum [sha256.Size]byte, ok bool) {
	if len(text) != hex.EncodedLen(len(sum)) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(text))
	return sum, err == nil && hex.EncodeToString(sum[:]) == text
}

// numbered says whether an event's rule has a lane.
func (r *RoomRule) numbered(lane string) bool {
	return slices.ContainsFunc(r.LaneRules(), func(l LaneRule) bool { return l.Key == lane })
}

// CodeProblem is the field of a TakeCode that its event's rule refuses, "" where there is none.
func (r *RoomRule) CodeProblem(c TakeCode) string {
	switch {
	case !r.numbered(c.Lane):
		return "lane"
	case c.Code == "":
		return "code"
	case c.Max < 1 || c.Max > CodeUsesMax:
		return "max"
	}
	return ""
}

// A SessionNumber names the one session that a number of a lane may have.
type SessionNumber struct {
	Event  id.ID
	Lane   string
	Number int64
}
