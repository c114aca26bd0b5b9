package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"onsale/internal/ledger"
)

// Limits of a waiting room and a waitlist.
const (
	RoomTimeMin     = ledger.Duration(1_000)
	TurnMax         = ledger.RoomTurnMax
	StayMax         = ledger.RoomStayMax
	DrawWaitMax     = ledger.Duration(24 * 60 * 60 * 1000)
	OfferTTLMin     = ledger.Duration(60_000)
	OfferTTLMax     = ledger.Duration(24 * 60 * 60 * 1000)
	LaneWeightMax   = 1_000
	SourceRunesMax  = 200
	UnpaidMax       = ledger.UnpaidHoldsMax
	HoldingRestMax  = ledger.HoldingRestMax
	JoinsAheadMax   = 30 * 24 * time.Hour // joins open at most this long before the sale does
	beaconNameBytes = 40
)

// Defaults of a waiting room and a waitlist.
const (
	DefaultRoomRate    = 200 // people a second
	DefaultRoomRateMax = 2_000
	DefaultRoomRateMin = 50
	DefaultActiveMax   = 5_000
	DefaultTurn        = ledger.Duration(120_000)
	DefaultStay        = ledger.Duration(10 * 60 * 1000)
	DefaultDrawWait    = ledger.Duration(60_000)
	DefaultJoinsAhead  = time.Hour
	DefaultOfferTTL    = ledger.Duration(15 * 60 * 1000)
	DefaultLane        = "general"

	DefaultUnpaidMax   = 3
	DefaultHoldingRest = ledger.Duration(10 * 60 * 1000)
	DefaultSeatRest    = ledger.Duration(60_000)
)

// RoomMode says whether an event has a waiting room.
type RoomMode string

// The modes of a waiting room. "" is off.
const (
	RoomOff  RoomMode = "off"
	RoomAuto RoomMode = "auto" // people join and claim too, but nobody waits while the limits are not reached
	RoomOn   RoomMode = "on"
)

// OpeningOrder says in which order those go who came before the sale opened.
type OpeningOrder string

// The opening orders. "" is draw.
const (
	OrderDraw    OpeningOrder = "draw"
	OrderArrival OpeningOrder = "arrival"
)

// JoinRule says who may join a line (C1).
type JoinRule string

// The rules of joining. "" is verified.
const (
	JoinVerified JoinRule = "verified" // who is signed in
	JoinDevice   JoinRule = "device"   // any browser, with proof of work; it signs in before it claims
)

// LaneAccess says who may join a lane.
type LaneAccess string

// The kinds of access to a lane.
const (
	LaneOpen    LaneAccess = ""        // everybody
	LaneCodes   LaneAccess = "codes"   // who has a presale code
	LaneMembers LaneAccess = "members" // whose address is on the list of members
)

// A RoomRule is how an event's waiting room works. The zero value is none. What is 0 or empty has its default once the mode is
// not off (Filled).
type RoomRule struct {
	Mode         RoomMode        `json:"mode,omitempty"`
	JoinsOpen    time.Time       `json:"joins_open_at,omitzero"` // zero: an hour before the sale
	Order        OpeningOrder    `json:"opening_order,omitempty"`
	Rate         int             `json:"rate,omitempty"` // R, people a second; with RateAuto the most that it becomes
	RateAuto     bool            `json:"rate_auto,omitempty"`
	RateMin      int             `json:"rate_min,omitempty"` // with RateAuto the least
	ActiveMax    int             `json:"active_max,omitempty"`
	Turn         ledger.Duration `json:"turn_ms,omitempty"`
	Stay         ledger.Duration `json:"stay_ms,omitempty"`
	JoinRequires JoinRule        `json:"join_requires,omitempty"`
	Lanes        []Lane          `json:"lanes,omitempty"` // none: one, for everybody
	Source       string          `json:"draw_source,omitempty"`
	DrawWait     ledger.Duration `json:"draw_wait_ms,omitempty"`
	Paused       bool            `json:"paused,omitempty"` // nobody is called or enters
	Closed       bool            `json:"closed,omitempty"` // for good
}

// A Lane is one line of a room.
type Lane struct {
	Key    string     `json:"key"`
	Name   string     `json:"name"`             // for people
	Weight int        `json:"weight"`           // of its share of R
	Access LaneAccess `json:"access,omitempty"` // who may join it
}

// Holding bounds holds that nobody means to pay for (C15). The zero value: no bound.
type Holding struct {
	UnpaidMax int             `json:"unpaid_max"`   // after so many unpaid holds of the event a customer rests
	Rest      ledger.Duration `json:"rest_ms"`      // for so long
	SeatRest  ledger.Duration `json:"seat_rest_ms"` // and may not take the same seats again for so long after losing them
}

// DefaultHolding is the bound that a new event has.
func DefaultHolding() Holding {
	return Holding{UnpaidMax: DefaultUnpaidMax, Rest: DefaultHoldingRest, SeatRest: DefaultSeatRest}
}

// Active says whether the event has a waiting room: then no new seat hold is made without a live session (I11).
func (r *RoomRule) Active() bool { return r.Mode == RoomAuto || r.Mode == RoomOn }

// Filled is the room with its defaults, where it is not off.
func (r RoomRule) Filled() RoomRule {
	if !r.Active() {
		return r
	}
	if r.Rate == 0 {
		r.Rate = DefaultRoomRate
		if r.RateAuto {
			r.Rate = DefaultRoomRateMax
		}
	}
	if r.RateMin == 0 && r.RateAuto {
		r.RateMin = min(DefaultRoomRateMin, r.Rate)
	}
	setDefault(&r.Order, OrderDraw)
	setDefault(&r.JoinRequires, JoinVerified)
	setDefault(&r.ActiveMax, DefaultActiveMax)
	setDefault(&r.Turn, DefaultTurn)
	setDefault(&r.Stay, DefaultStay)
	setDefault(&r.DrawWait, DefaultDrawWait)
	if len(r.Lanes) == 0 {
		r.Lanes = []Lane{{Key: DefaultLane, Name: "General", Weight: 1}}
	}
	return r
}

func setDefault[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// Lane finds a lane by its key.
func (r *RoomRule) Lane(key string) (Lane, bool) {
	i := slices.IndexFunc(r.Lanes, func(l Lane) bool { return l.Key == key })
	if i < 0 {
		return Lane{}, false
	}
	return r.Lanes[i], true
}

// JoinsOpenAt is the first instant at which people may join the event's line: never after its sale opens.
func (e *Event) JoinsOpenAt() time.Time {
	if at := e.Room.JoinsOpen; !at.IsZero() && !at.After(e.SaleOpens) {
		return at
	}
	if e.Room.JoinsOpen.IsZero() && !e.SaleOpens.IsZero() {
		return e.SaleOpens.Add(-DefaultJoinsAhead)
	}
	return e.SaleOpens
}

// OfferLasts is how long a returned seat is offered to somebody on the waitlist.
func (e *Event) OfferLasts() time.Duration {
	if e.OfferTTL == 0 {
		return DefaultOfferTTL.Std()
	}
	return e.OfferTTL.Std()
}

// A DrawSource is where the public value of a draw comes from: nowhere (Beacon "" and Organizer ""), an announcement of the
// organizer in words, or a round of a public beacon.
type DrawSource struct {
	Organizer string
	Beacon    string
	Round     uint64
}

var beaconPattern = regexp.MustCompile(`^beacon: ([a-z0-9][a-z0-9-]*) ([1-9][0-9]{0,17})$`)

// ParseDrawSource reads "none", "organizer: lotto of 12 June, the numbers in the order drawn" or "beacon: quicknet 12345".
func ParseDrawSource(text string) (DrawSource, error) {
	if text == "" || text == "none" {
		return DrawSource{}, nil
	}
	if words, ok := strings.CutPrefix(text, "organizer: "); ok && strings.TrimSpace(words) != "" {
		if bad := CheckText(words, SourceRunesMax); bad != "" || strings.ContainsAny(words, "\n\t") {
			return DrawSource{}, fmt.Errorf("must be one line of at most %d characters", SourceRunesMax)
		}
		return DrawSource{Organizer: words}, nil
	}
	if m := beaconPattern.FindStringSubmatch(text); m != nil && len(m[1]) <= beaconNameBytes {
		var s DrawSource
		_, err := fmt.Sscan(m[2], &s.Round)
		s.Beacon = m[1]
		return s, err
	}
	return DrawSource{}, fmt.Errorf("%.80q must be none, organizer: and where the value will be announced, or beacon: a name and a round, such as beacon: quicknet 12345678", text)
}

func (e *Event) validateRoom(r *Report, path string) {
	e.validateHolding(r, path)
	if e.OfferTTL != 0 {
		duration(r, path+"offer_ttl", e.OfferTTL, OfferTTLMin, OfferTTLMax)
	}
	room, path := e.Room.Filled(), path+"room."
	switch room.Mode {
	case "", RoomOff:
		return
	case RoomAuto, RoomOn:
	default:
		r.Add(0, path+"mode", "%.20q must be off, auto or on", string(room.Mode))
		return
	}
	if at := room.JoinsOpen; !at.IsZero() && !e.SaleOpens.IsZero() {
		switch {
		case at.After(e.SaleOpens):
			r.Add(0, path+"joins_open", "must not be after sale.opens")
		case e.SaleOpens.Sub(at) > JoinsAheadMax:
			r.Add(0, path+"joins_open", "is more than 30 days before sale.opens")
		}
	}
	if room.Order != OrderDraw && room.Order != OrderArrival {
		r.Add(0, path+"opening_order", "%.20q must be draw or arrival", string(room.Order))
	}
	if room.JoinRequires != JoinVerified && room.JoinRequires != JoinDevice {
		r.Add(0, path+"join_requires", "%.20q must be verified or device", string(room.JoinRequires))
	}
	between(r, path+"rate", int64(room.Rate), 1, ledger.RoomRateMax)
	if room.RateAuto {
		between(r, path+"rate_min", int64(room.RateMin), 1, int64(room.Rate))
	} else if room.RateMin != 0 {
		r.Add(0, path+"rate_min", "goes with rate: auto: take it out")
	}
	between(r, path+"active_max", int64(room.ActiveMax), 1, ledger.RoomActiveMax)
	duration(r, path+"turn", room.Turn, RoomTimeMin, TurnMax)
	duration(r, path+"stay", room.Stay, RoomTimeMin, StayMax)
	duration(r, path+"draw_wait", room.DrawWait, RoomTimeMin, DrawWaitMax)
	source, err := ParseDrawSource(room.Source)
	if err != nil {
		r.Add(0, path+"draw_source", "%s", err)
	}
	if source != (DrawSource{}) && room.Order == OrderArrival {
		r.Add(0, path+"draw_source", "goes with opening_order: draw, and the order is that of arrival: take it out")
	}
	room.validateLanes(r, path)
}

func (r *RoomRule) validateLanes(report *Report, path string) {
	if len(r.Lanes) > ledger.RoomLanesMax {
		report.Add(0, path+"lanes", "has %d lanes; at most %d", len(r.Lanes), ledger.RoomLanesMax)
		return
	}
	for i, l := range r.Lanes {
		p := fmt.Sprintf("%slanes[%d].", path, i)
		if bad := CheckKey(l.Key); bad != "" {
			report.Add(0, p+"key", "%s", bad)
		}
		if slices.ContainsFunc(r.Lanes[:i], func(o Lane) bool { return o.Key == l.Key }) {
			report.Add(0, p+"key", "%.80q is there twice: keep one", l.Key)
		}
		checkName(report, p+"name", l.Name)
		between(report, p+"weight", int64(l.Weight), 1, LaneWeightMax)
		if l.Access != LaneOpen && l.Access != LaneCodes && l.Access != LaneMembers {
			report.Add(0, p+"access", "%.20q must be codes or members, or left out: then the lane is for everybody", string(l.Access))
		}
	}
}

func (e *Event) validateHolding(r *Report, path string) {
	h := e.Holding
	between(r, path+"holding.unpaid_max", int64(h.UnpaidMax), 0, UnpaidMax)
	duration(r, path+"holding.rest", h.Rest, 0, HoldingRestMax)
	duration(r, path+"holding.seat_rest", h.SeatRest, 0, HoldingRestMax)
	if h.UnpaidMax > 0 && h.Rest == 0 {
		r.Add(0, path+"holding.rest", "is 0: say for how long somebody with unpaid_max unpaid holds is to rest, such as 10m, or set unpaid_max: 0")
	}
}

// roomed puts the event's waiting room, its waitlist and its bound on holding into the ledger's row.
func (e *Event) roomed(l *ledger.Event) {
	l.Waitlist = e.Waitlist
	l.Holding = ledger.HoldingRule{UnpaidMax: e.Holding.UnpaidMax, Rest: e.Holding.Rest, SeatRest: e.Holding.SeatRest}
	room := e.Room.Filled()
	if !room.Active() {
		return
	}
	l.Room = ledger.RoomRule{
		Mode: ledger.RoomOn, Opens: instant(e.JoinsOpenAt()), Arrival: room.Order == OrderArrival,
		Rate: room.Rate, RateAuto: room.RateAuto, RateMin: room.RateMin, ActiveMax: room.ActiveMax,
		Turn: room.Turn, Stay: room.Stay, DrawWait: room.DrawWait, Paused: room.Paused, Closed: room.Closed,
	}
	if room.Mode == RoomAuto {
		l.Room.Mode = ledger.RoomAuto
	}
	if room.Source != "none" {
		l.Room.Source = room.Source
	}
	for _, lane := range room.Lanes {
		l.Room.Lanes = append(l.Room.Lanes, ledger.LaneRule{Key: lane.Key, Weight: lane.Weight})
	}
}
