package httpapi

import (
	"time"

	"onsale/internal/catalog"
	"onsale/internal/ledger"
)

// A RoomEdit changes how an event's waiting room works; only what is named changes.
type RoomEdit struct {
	Mode         *string         `json:"mode,omitempty" enum:"off,auto,on"`
	JoinsOpen    *string         `json:"joins_open_at,omitempty" doc:"an hour before the sale where it is empty"`
	Order        *string         `json:"opening_order,omitempty" enum:"draw,arrival" doc:"fixed once people may join"`
	Rate         *int            `json:"rate,omitempty" doc:"people who may enter in one second; with rate_auto the most that it becomes"`
	RateAuto     *bool           `json:"rate_auto,omitempty" doc:"the rate follows how fast holds are answered"`
	RateMin      *int            `json:"rate_min,omitempty" doc:"with rate_auto the least"`
	ActiveMax    *int            `json:"active_max,omitempty" doc:"people inside at once"`
	TurnMS       *int64          `json:"turn_ms,omitempty" doc:"in which somebody called may enter"`
	StayMS       *int64          `json:"stay_ms,omitempty" doc:"how long somebody may stay inside"`
	JoinRequires *string         `json:"join_requires,omitempty" enum:"verified,device"`
	Lanes        *[]catalog.Lane `json:"lanes,omitempty" doc:"access: codes or members, or missing: everybody"`
	Source       *string         `json:"draw_source,omitempty" doc:"none, organizer: and where it is announced, or beacon: a name and a round; fixed once people may join"`
	DrawWaitMS   *int64          `json:"draw_wait_ms,omitempty" doc:"how long after opening the public value is waited for"`
}

// Apply changes an event's room. What cannot be read is a fault; what the catalog does not allow it says itself.
func (b *RoomEdit) Apply(e *catalog.Event) error {
	c := &clockReader{zone: e.Venue.Location()}
	b.apply(&e.Room, c)
	return c.err
}

func (b *RoomEdit) apply(r *catalog.RoomRule, c *clockReader) {
	c.read("room.joins_open_at", b.JoinsOpen, &r.JoinsOpen)
	setAs(&r.Mode, b.Mode)
	setAs(&r.Order, b.Order)
	setAs(&r.JoinRequires, b.JoinRequires)
	set(&r.Rate, b.Rate)
	set(&r.RateAuto, b.RateAuto)
	set(&r.RateMin, b.RateMin)
	if b.RateAuto != nil && !*b.RateAuto && b.RateMin == nil {
		r.RateMin = 0
	}
	set(&r.ActiveMax, b.ActiveMax)
	setMS(&r.Turn, b.TurnMS)
	setMS(&r.Stay, b.StayMS)
	setMS(&r.DrawWait, b.DrawWaitMS)
	set(&r.Lanes, b.Lanes)
	set(&r.Source, b.Source)
}

// setAs changes a word that was named.
func setAs[T ~string](into *T, named *string) {
	if named != nil {
		*into = T(*named)
	}
}

func setMS(into *ledger.Duration, named *int64) {
	if named != nil {
		*into = ledger.Duration(*named)
	}
}

// A WaitingRoom is what everybody may know of how people wait for an event.
type WaitingRoom struct {
	Mode         string     `json:"mode" enum:"auto,on"`
	JoinsOpen    time.Time  `json:"joins_open_at,omitzero"`
	Order        string     `json:"opening_order" enum:"draw,arrival"`
	JoinRequires string     `json:"join_requires" enum:"verified,device"`
	Lanes        []RoomLane `json:"lanes"`
}

// A RoomLane is one of its lines.
type RoomLane struct {
	Key    string `json:"lane"`
	Name   string `json:"name"`
	Access string `json:"access,omitempty" enum:"codes,members" doc:"missing: everybody"`
}

// room is what is shown of an event's waiting room, nil where it has none.
func room(e *catalog.Event) *WaitingRoom {
	if !e.Room.Active() {
		return nil
	}
	r := e.Room.Filled()
	shown := &WaitingRoom{
		Mode: string(r.Mode), JoinsOpen: e.JoinsOpenAt().In(e.Venue.Location()), Order: string(r.Order), JoinRequires: string(r.JoinRequires),
	}
	for _, l := range r.Lanes {
		shown.Lanes = append(shown.Lanes, RoomLane{Key: l.Key, Name: l.Name, Access: string(l.Access)})
	}
	return shown
}
