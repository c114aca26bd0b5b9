package app

import (
	"context"
	"net/http"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/httpapi"
	"onsale/internal/id"
)

// A RoomRequest is what a command does to a waiting room beside its verb.
type RoomRequest struct {
	Edit  httpapi.RoomEdit `json:"edit"`
	Value string           `json:"value,omitempty"` // of the draw
}

// AdminRoom is a waiting room as commands show it. Live is missing where no server runs: then nothing but the rule is known.
type AdminRoom struct {
	Event string                 `json:"event_id"`
	Title string                 `json:"title"`
	Rule  catalog.RoomRule       `json:"rule"`
	Live  *httpapi.OrganizerRoom `json:"live,omitempty"`
}

// roomRoutes adds the live controls of waiting rooms.
func (a *App) roomRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /rooms/{event}", a.admin(func(r *http.Request) (any, error) {
		e, err := a.adminEventOf(r)
		if err != nil {
			return nil, err
		}
		return a.adminRoom(r.Context(), &e)
	}))
	mux.HandleFunc("POST /rooms/{event}/{verb}", a.admin(func(r *http.Request) (any, error) {
		var in RoomRequest
		if err := readBody(r, &in); err != nil {
			return nil, err
		}
		return a.roomVerb(r, r.PathValue("verb"), in)
	}))
}

func (a *App) adminEventOf(r *http.Request) (catalog.Event, error) {
	event := r.PathValue("event")
	number, err := id.Parse(id.Event, event)
	if err != nil {
		return catalog.Event{}, fault.New(fault.EventUnknown, "%q is not an event's id; see onsale event list", event)
	}
	return a.Catalog.Current(r.Context(), number)
}

func (a *App) adminRoom(ctx context.Context, e *catalog.Event) (AdminRoom, error) {
	shown := AdminRoom{Event: e.ID.Text(id.Event), Title: e.Title, Rule: e.Room.Filled()}
	if a.Rooms == nil || !e.Room.Active() {
		return shown, nil
	}
	view, err := a.Rooms.View(ctx, e.ID)
	if err != nil {
		return shown, err
	}
	live := httpapi.ShowRoom(e, &view, time.Now())
	shown.Live = &live
	return shown, nil
}

func (a *App) roomVerb(r *http.Request, verb string, in RoomRequest) (AdminRoom, error) {
	e, err := a.adminEventOf(r)
	if err != nil {
		return AdminRoom{}, err
	}
	action := "room." + verb
	ctx := catalog.WithActor(r.Context(), catalog.Actor{Action: action})
	edit, known := httpapi.RoomVerbs[verb]
	switch {
	case verb == "change":
		var unread error
		edit = func(e *catalog.Event) { unread = in.Edit.Apply(e) }
		if e, err = a.Catalog.EditEvent(ctx, e.ID, 0, edit); err == nil {
			err = unread
		}
	case !e.Room.Active():
		err = fault.New(fault.Conflict, "the event has no waiting room: onsale room change --mode on gives it one")
	case verb == "open":
		e, err = a.Catalog.Change(ctx, e.ID, catalog.VerbOpen)
	case verb == "value":
		if a.Rooms == nil {
			return AdminRoom{}, fault.New(fault.Conflict, "no server runs on this folder: a value is entered while the room draws")
		}
		if err = a.Catalog.Note(ctx, e.ID, catalog.NewChange("draw_value", nil, in.Value)); err == nil {
			err = a.Rooms.SetDrawValue(ctx, e.ID, in.Value)
		}
	case known:
		e, err = a.Catalog.EditEvent(ctx, e.ID, 0, edit)
	default:
		err = fault.New(fault.Invalid, "unknown verb %q", verb)
	}
	if err != nil {
		return AdminRoom{}, err
	}
	a.logged(ctx, e.Organizer, action, e.ID.Text(id.Event))
	if a.Rooms != nil {
		a.Rooms.Changed(e.ID)
	}
	if err := a.loadIfServing(ctx); err != nil {
		return AdminRoom{}, err
	}
	return a.adminRoom(ctx, &e)
}
