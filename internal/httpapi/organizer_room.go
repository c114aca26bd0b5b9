package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
	"onsale/internal/waitingroom"
)

// An OrganizerRoom is how a waiting room stands, for those who run it.
type OrganizerRoom struct {
	Event      string              `json:"event_id"`
	Rule       catalog.RoomRule    `json:"rule" doc:"as it is set"`
	Phase      string              `json:"phase" enum:"closed,waiting,drawing,open"`
	Draw       string              `json:"draw" enum:"none,committed,provable"`
	Source     string              `json:"draw_source,omitempty"`
	Rate       int                 `json:"rate" doc:"in force: people a second"`
	Binds      string              `json:"binds" enum:"nobody_waits,paused,rate,active_max,seats" doc:"what holds people back now"`
	ActiveRate float64             `json:"active_rate,omitempty" doc:"active_max ÷ mean stay: people a second who can enter once it is full"`
	MeanStayMS int64               `json:"mean_stay_ms,omitempty" doc:"from those who entered and left; missing before enough have"`
	Inside     int                 `json:"inside_count"`
	Holding    int                 `json:"holding_count" doc:"of them with a live hold"`
	Entered    int64               `json:"entered_count"`
	ThisSecond int                 `json:"entered_this_second"`
	Paid       int64               `json:"paid_count" doc:"people who entered and bought"`
	Conversion *float64            `json:"conversion,omitempty" doc:"of holds that ended, the share that was paid"`
	PerBuyer   *float64            `json:"places_per_buyer,omitempty"`
	ShowRate   *float64            `json:"show_rate,omitempty" doc:"of those whose turn is over or who entered, the share that entered"`
	Lanes      []OrganizerRoomLane `json:"lanes"`
	Left       *RoomLeft           `json:"left,omitempty" doc:"missing where this node does not know it"`
	Mending    bool                `json:"mending,omitempty" doc:"the store of numbers is being restored: nobody can join meanwhile"`
}

// An OrganizerRoomLane is how a lane stands.
type OrganizerRoomLane struct {
	Lane      string `json:"lane"`
	Weight    int    `json:"weight"`
	Joined    int64  `json:"joined_count"`
	Drawn     int64  `json:"drawn_count" doc:"of them before the sale opened"`
	Watermark int64  `json:"watermark" doc:"everybody with a smaller position is called"`
	Entered   int64  `json:"entered_count"`
	Waiting   int64  `json:"waiting_count" doc:"not called yet"`
	Codes     int    `json:"code_count,omitempty"`
	Members   int    `json:"member_count,omitempty"`
}

// A RoomLeft is what is left to sell.
type RoomLeft struct {
	Available int `json:"available_count"`
	Held      int `json:"held_count"`
}

// A DrawValue is the public value of a draw, as it was announced.
type DrawValue struct {
	Value string `json:"value"`
}

// An EventLogEntry is something that was done to an event.
type EventLogEntry struct {
	Seq     int64            `json:"seq"`
	At      time.Time        `json:"at"`
	Actor   string           `json:"actor_id,omitempty" doc:"the customer; missing: the operator's command, or the program itself"`
	Role    string           `json:"role,omitempty"`
	Action  string           `json:"action"`
	Version int64            `json:"version,omitempty" doc:"of the event after it"`
	Changes []EventLogChange `json:"changes"`
}

// An EventLogChange is a field before and after.
type EventLogChange struct {
	Field  string `json:"field"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// EventLog is a page of what was done to an event, newest first.
type EventLog struct {
	Entries []EventLogEntry `json:"entries"`
	Next    string          `json:"next_cursor,omitempty"`
}

const roomPath = organizerEvent + "/room"

func (a *api) organizerRoomRoutes() []route {
	const tag = "Organizers"
	look, do := atLeast(identity.Viewer, "event_id"), atLeast(identity.Operator, "event_id")
	edits := []fault.Code{fault.Invalid, fault.Conflict, fault.OutcomeUnknown}
	routes := []route{
		{Method: "GET", Path: roomPath, ID: "room_get", Who: look, Tag: tag, Summary: "The waiting room, live", Answer: OrganizerRoom{}, Faults: []fault.Code{fault.Conflict}, handle: a.roomGet},
		{Method: "PATCH", Path: roomPath, ID: "room_change", Who: do, Tag: tag, Summary: "Change the waiting room, live",
			Notes: "Only what is named changes; it is in force within a second, and in the event's log for ever.", Body: RoomEdit{}, Answer: OrganizerRoom{}, Faults: edits, handle: a.roomChange},
		{Method: "POST", Path: roomPath + "/draw-value", ID: "room_draw_value", Who: do, Tag: tag, Summary: "Enter the public value of the draw",
			Notes: "From the source that was named before anybody could know it, once the sale has opened. It cannot be changed.", Body: DrawValue{}, Answer: OrganizerRoom{},
			Faults: edits, handle: a.roomDrawValue},
		{Method: "GET", Path: organizerEvent + "/log", ID: "event_log", Who: look, Tag: tag, Summary: "What was done to an event, by whom, newest first",
			Query: []parameter{pageQuery}, Answer: EventLog{}, Faults: []fault.Code{fault.Invalid}, handle: a.eventLog},
	}
	for _, v := range []struct{ verb, summary, notes string }{
		{"open", "Open the sale at once", "Whoever came before is drawn now. The same as opening the event."},
		{"pause", "Call nobody and let nobody in", "Turns stand still; who is inside goes on."},
		{"resume", "Go on", ""},
		{"close", "Let nobody in any more, for good", "Who is inside goes on. To sell to everybody without a line set the mode to off."},
	} {
		routes = append(routes, route{Method: "POST", Path: roomPath + "/" + v.verb, ID: "room_" + v.verb, Who: do, Tag: tag, Summary: v.summary, Notes: v.notes,
			Answer: OrganizerRoom{}, Faults: edits, handle: a.roomVerb(v.verb)})
	}
	return append(routes, a.presaleRoutes()...)
}

// acting says in the context who changes an event, for its log.
func (r *request) acting(action string) context.Context {
	return catalog.WithActor(r.Context(), catalog.Actor{Customer: r.customer, Role: string(r.role), Action: action})
}

func (a *api) roomGet(w http.ResponseWriter, r *request) error {
	if a.Rooms == nil || !r.event.Room.Active() {
		return errNoRoom
	}
	view, err := a.Rooms.View(r.Context(), r.event.ID)
	if err != nil {
		return err
	}
	shown := showRoom(r.event, &view, a.Now())
	if a.Presale != nil {
		counts, err := a.Presale.Counts(r.Context(), r.event.ID)
		if err != nil {
			return err
		}
		for _, c := range counts {
			for i := range shown.Lanes {
				if shown.Lanes[i].Lane == c.Lane {
					shown.Lanes[i].Codes, shown.Lanes[i].Members = c.Codes, c.Members
				}
			}
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	return write(w, http.StatusOK, shown)
}

// leftMin is how many must have left before their mean stay says anything.
const leftMin = 20

// ShowRoom is how a room stands, as organizers see it.
func ShowRoom(e *catalog.Event, v *waitingroom.RoomView, now time.Time) OrganizerRoom {
	return showRoom(e, v, now)
}

func showRoom(e *catalog.Event, v *waitingroom.RoomView, now time.Time) OrganizerRoom {
	room, f := &v.Room, v.Figures
	shown := OrganizerRoom{
		Event: e.ID.Text(id.Event), Rule: e.Room.Filled(), Phase: room.Phase.String(), Source: room.Source, Rate: room.Rate, Inside: room.Inside,
		Holding: f.Holding, Entered: f.Entered, Paid: f.Paid, Lanes: []OrganizerRoomLane{}, Mending: v.Mending, Draw: waitingroom.DrawCommitted,
	}
	if shown.Rate == 0 {
		shown.Rate = shown.Rule.Rate
	}
	if room.Second == ledger.TimeOf(now.Truncate(time.Second)) {
		shown.ThisSecond = room.Entered
	}
	switch {
	case room.Arrival:
		shown.Draw = waitingroom.DrawNone
	case room.Provable || room.K == "" && room.Source != "":
		shown.Draw = waitingroom.DrawProvable
	}
	shown.Conversion = share(f.HoldsSold, f.HoldsEnded)
	shown.PerBuyer = share(f.PlacesSold, f.HoldsSold)
	shown.ShowRate = share(room.Shown, room.Decided)
	joined := map[int]int64{}
	for _, c := range v.Joined {
		joined[c.Lane] = c.Count
	}
	var waiting int64
	for i, l := range room.Lanes {
		lane := OrganizerRoomLane{Lane: l.Key, Weight: 1, Joined: max(joined[i], l.Joined), Drawn: l.N, Watermark: l.Watermark, Entered: l.Entered}
		lane.Waiting = max(0, lane.Joined-l.Watermark)
		for _, rule := range shown.Rule.Lanes {
			if rule.Key == l.Key {
				lane.Weight = rule.Weight
			}
		}
		waiting += lane.Waiting
		shown.Lanes = append(shown.Lanes, lane)
	}
	if v.Known {
		shown.Left = &RoomLeft{Available: v.Left.Available, Held: v.Left.Held}
	}
	shown.meanStay(room, f, now)
	shown.binding(waiting, v)
	return shown
}

func share(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	s := float64(part) / float64(whole)
	return &s
}

// meanStay is what Little's law says of those who entered: inside = entering × stay.
func (o *OrganizerRoom) meanStay(room *ledger.Room, f ledger.RoomFigures, now time.Time) {
	opened := room.Drawn
	if room.Arrival {
		opened = room.Frozen
	}
	elapsed := now.Sub(opened.Std())
	left := f.Entered - int64(room.Inside)
	if opened == 0 || left < leftMin || elapsed <= 0 || room.Inside == 0 {
		return
	}
	stay := time.Duration(float64(elapsed) * float64(room.Inside) / float64(left))
	o.MeanStayMS = min(stay.Milliseconds(), int64(o.Rule.Stay)*2)
	o.ActiveRate = float64(o.Rule.ActiveMax) * 1000 / float64(max(1, o.MeanStayMS))
}

// binding says what holds people back.
func (o *OrganizerRoom) binding(waiting int64, v *waitingroom.RoomView) {
	switch {
	case o.Rule.Paused, o.Rule.Closed:
		o.Binds = "paused"
	case v.Room.Phase == ledger.RoomOpen && waiting == 0:
		o.Binds = "nobody_waits"
	case v.Known && v.Room.Phase == ledger.RoomOpen && v.Left.Available < o.Inside-o.Holding:
		o.Binds = "seats" // those inside who hold nothing yet could take all that is left
	case o.ActiveRate > 0 && o.ActiveRate < float64(o.Rate), o.Inside >= o.Rule.ActiveMax:
		o.Binds = "active_max"
	default:
		o.Binds = "rate"
	}
}

func (a *api) roomChange(w http.ResponseWriter, r *request) error {
	var body RoomEdit
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	trial := &clockReader{zone: r.event.Venue.Location()}
	var rule catalog.RoomRule
	if body.apply(&rule, trial); trial.err != nil {
		return trial.err
	}
	return a.editRoom(w, r, "room.change", func(e *catalog.Event) {
		body.apply(&e.Room, &clockReader{zone: e.Venue.Location()})
	})
}

// editRoom changes an event's room whatever its version: who pauses a line must not be told that somebody else was faster.
func (a *api) editRoom(w http.ResponseWriter, r *request, action string, edit func(*catalog.Event)) error {
	e, err := a.Catalog.EditEvent(r.acting(action), r.event.ID, 0, edit)
	if err != nil {
		return err
	}
	return a.roomChanged(w, r, &e, action)
}

func (a *api) roomChanged(w http.ResponseWriter, r *request, e *catalog.Event, action string) error {
	a.changed(r.Context(), e.ID)
	a.record(r, action, e.ID.Text(id.Event), nil)
	r.event = e
	if a.Rooms == nil || !e.Room.Active() { // it was turned off
		return write(w, http.StatusOK, OrganizerRoom{Event: e.ID.Text(id.Event), Rule: e.Room, Phase: ledger.RoomClosed.String(), Draw: waitingroom.DrawNone,
			Binds: "nobody_waits", Lanes: []OrganizerRoomLane{}})
	}
	return a.roomGet(w, r)
}

func (a *api) roomVerb(verb string) func(http.ResponseWriter, *request) error {
	action := "room." + verb
	return func(w http.ResponseWriter, r *request) error {
		if !r.event.Room.Active() {
			return errNoRoom
		}
		if verb == "open" {
			e, err := a.Catalog.Change(r.acting(action), r.event.ID, catalog.VerbOpen)
			if err != nil {
				return err
			}
			return a.roomChanged(w, r, &e, action)
		}
		return a.editRoom(w, r, action, RoomVerbs[verb])
	}
}

// RoomVerbs are the live controls that are edits of the room.
var RoomVerbs = map[string]func(*catalog.Event){
	"pause":  func(e *catalog.Event) { e.Room.Paused = true },
	"resume": func(e *catalog.Event) { e.Room.Paused = false },
	"close":  func(e *catalog.Event) { e.Room.Closed = true },
}

func (a *api) roomDrawValue(w http.ResponseWriter, r *request) error {
	var body DrawValue
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	if a.Rooms == nil || !r.event.Room.Active() {
		return errNoRoom
	}
	const action = "room.draw_value"
	if err := a.Catalog.Note(r.acting(action), r.event.ID, catalog.NewChange("draw_value", nil, body.Value)); err != nil {
		return err
	}
	if err := a.Rooms.SetDrawValue(r.Context(), r.event.ID, body.Value); err != nil {
		return err
	}
	a.record(r, action, r.event.ID.Text(id.Event), nil)
	return a.roomGet(w, r)
}

const eventLogPage = 50

func (a *api) eventLog(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	var before int64
	if text := asked.Get("cursor"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			return &fault.Error{Code: fault.Invalid, Field: "cursor", Detail: "not a cursor that this API gave out", Cause: err}
		}
	}
	entries, err := a.Catalog.Log(r.Context(), r.event.ID, before, eventLogPage+1)
	if err != nil {
		return err
	}
	list := EventLog{Entries: []EventLogEntry{}}
	for _, e := range entries[:min(len(entries), eventLogPage)] {
		shown := EventLogEntry{Seq: e.Seq, At: e.At, Role: e.Role, Action: e.Action, Version: e.Version, Changes: []EventLogChange{}}
		if e.Actor != 0 {
			shown.Actor = e.Actor.Text(id.Customer)
		}
		for _, c := range e.Changes {
			shown.Changes = append(shown.Changes, EventLogChange{Field: c.Field, Before: json.RawMessage(c.Before), After: json.RawMessage(c.After)})
		}
		list.Entries = append(list.Entries, shown)
	}
	if len(entries) > eventLogPage {
		list.Next = strconv.FormatInt(entries[eventLogPage-1].Seq, 10)
	}
	return write(w, http.StatusOK, list)
}
