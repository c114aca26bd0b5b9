package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"onsale/internal/door"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
)

// A CheckInRequest is a code held before a door.
type CheckInRequest struct {
	Code   string `json:"code,omitempty" doc:"what the QR code says"`
	Ticket string `json:"ticket_id,omitempty" doc:"instead of a code: typed in by somebody who looks at the ticket"`
	Gate   string `json:"gate,omitempty" doc:"the key of a gate of the event; any will do where missing"`
	Device string `json:"device,omitempty" doc:"always the same name for the same device"`
}

// A CheckIn is a use of a ticket. Of a ticket that was used before it is the first use.
type CheckIn struct {
	Ticket   string    `json:"ticket_id"`
	State    string    `json:"state,omitempty" enum:"VALID,USED,VOID"`
	At       time.Time `json:"at,omitzero"`
	Gate     string    `json:"gate,omitempty"`
	Device   string    `json:"device,omitempty"`
	Offline  bool      `json:"offline,omitempty"`
	Conflict string    `json:"conflict,omitempty" enum:"ticket_used,ticket_void" doc:"let in without a network, and should not have been"`
	Undone   time.Time `json:"undone_at,omitzero"`
	Section  string    `json:"section,omitempty"`
	Seat     string    `json:"seat_id,omitempty"`
	Area     string    `json:"area_id,omitempty"`
	Attendee string    `json:"attendee,omitempty" doc:"who is to come, where the event asks for names"`
}

// CheckInList is a page of uses.
type CheckInList struct {
	CheckIns []CheckIn `json:"checkins"`
	Next     string    `json:"next_cursor,omitempty"`
}

// A FirstUse is how a ticket was used that is held before a door again.
type FirstUse struct {
	At     time.Time `json:"at"`
	Gate   string    `json:"gate,omitempty"`
	Device string    `json:"device,omitempty"`
}

// A usedError is ticket_used with that use.
type usedError struct {
	fault *fault.Error
	first FirstUse
}

func (e *usedError) Error() string { return e.fault.Error() }
func (e *usedError) Unwrap() error { return e.fault }

// A DoorList is what a device loads before it goes without a network.
type DoorList struct {
	Tickets []DoorTicket `json:"tickets" doc:"those that the gate lets in, and all void ones"`
	Next    string       `json:"next_cursor,omitempty"`
	Now     time.Time    `json:"as_of"`
}

// A DoorTicket is one line of it.
type DoorTicket struct {
	Ticket  string `json:"ticket_id"`
	State   string `json:"state" enum:"VALID,USED,VOID"`
	Section string `json:"section,omitempty"`
	Seat    string `json:"seat_id,omitempty"`
	Area    string `json:"area_id,omitempty"`
}

// A SyncRequest tells what a device did without a network.
type SyncRequest struct {
	Device string     `json:"device"`
	Facts  []SyncFact `json:"facts" doc:"at most 500"`
}

// A SyncFact is one use.
type SyncFact struct {
	Ticket string    `json:"ticket_id"`
	At     time.Time `json:"at" doc:"by the device's clock"`
	Gate   string    `json:"gate,omitempty"`
}

// A SyncAnswer says what became of each fact, in their order.
type SyncAnswer struct {
	Outcomes []SyncOutcome `json:"outcomes"`
}

// A SyncOutcome is what became of a fact.
type SyncOutcome struct {
	Ticket string   `json:"ticket_id"`
	Result string   `json:"result" enum:"kept,conflict,refused,again" doc:"conflict: kept, and the ticket was used elsewhere or is void; refused: it cannot be kept as it is; again: send it again"`
	Why    string   `json:"why,omitempty"`
	First  *CheckIn `json:"first,omitempty" doc:"of a ticket used elsewhere: that use"`
}

// DoorCounts say how full the house is.
type DoorCounts struct {
	Tickets   int            `json:"ticket_count" doc:"that may come in, or are in"`
	Entered   int            `json:"entered_count"`
	Conflicts int            `json:"conflict_count"`
	Gates     map[string]int `json:"entered_by_gate"`
	Sections  map[string]int `json:"entered_by_section"`
	At        time.Time      `json:"as_of"`
}

// An UndoRequest takes a check-in back.
type UndoRequest struct {
	Reason string `json:"reason"`
}

const (
	checkInsPage = 200
	// attendeeWait is how long a door that has let somebody in waits to be told their name.
	attendeeWait = time.Second
)

// checkInRoutes are those of the door. The event stands in the path, so that the one table says who may.
func (a *api) checkInRoutes() []route {
	return []route{
		{Method: "POST", Path: "/v1/organizer/events/{event_id}/checkins", ID: "checkin", Who: atLeast(identity.Door, "event_id"), Tag: "Door", Summary: "Let the holder of a ticket in, once",
			Notes: "409 ticket_used says in first_use when, at which gate and by which device it was used: a device that asks again because it lost the answer finds its own.",
			Body:  CheckInRequest{}, Answer: CheckIn{}, Status: []int{201},
			Faults: []fault.Code{fault.TicketUnknown, fault.TicketUsed, fault.TicketVoid, fault.WrongEvent, fault.WrongGate, fault.Invalid, fault.OutcomeUnknown}, handle: a.checkIn},
		{Method: "GET", Path: "/v1/organizer/events/{event_id}/checkins", ID: "checkins_list", Who: atLeast(identity.Viewer, "event_id"), Tag: "Door", Summary: "Uses of tickets, oldest first",
			Query: []parameter{{"conflicts", "1: only those that should not have been", "string"}, pageQuery}, Answer: CheckInList{}, Faults: []fault.Code{fault.Invalid}, handle: a.checkInsList},
		{Method: "GET", Path: "/v1/organizer/events/{event_id}/checkins/counts", ID: "checkins_count", Who: atLeast(identity.Door, "event_id"), Tag: "Door", Summary: "How full the house is",
			Answer: DoorCounts{}, handle: a.checkInCounts},
		{Method: "GET", Path: "/v1/organizer/events/{event_id}/checkins/offline", ID: "checkins_offline", Who: atLeast(identity.Door, "event_id"), Tag: "Door",
			Summary: "The list for a door without a network", Notes: "Load all pages, and the keys at /.well-known/jwks.json. A door without a network cannot know of copies used at another gate.",
			Query:  []parameter{{"gate", "the key of a gate; all where missing", "string"}, pageQuery},
			Answer: DoorList{}, Faults: []fault.Code{fault.Invalid}, handle: a.checkInOffline},
		{Method: "POST", Path: "/v1/organizer/events/{event_id}/checkins/sync", ID: "checkins_sync", Who: atLeast(identity.Door, "event_id"), Tag: "Door", Summary: "Tell what was done without a network",
			Notes: "Each fact alone; harmless when sent again.", Body: SyncRequest{}, Answer: SyncAnswer{}, Faults: []fault.Code{fault.Invalid}, Takes: time.Minute, handle: a.checkInSync},
		{Method: "POST", Path: "/v1/organizer/tickets/{ticket_id}/undo-checkin", ID: "checkin_undo", Who: atLeast(identity.Owner, "ticket_id"), Tag: "Door", Summary: "Take a check-in back",
			Body: UndoRequest{}, Answer: CheckIn{}, Faults: []fault.Code{fault.Conflict, fault.Invalid, fault.OutcomeUnknown}, handle: a.checkInUndo},
	}
}

func (a *api) checkIn(w http.ResponseWriter, r *request) error {
	var body CheckInRequest
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	scan := door.Scan{Event: r.event.ID, Code: body.Code, Gate: body.Gate, Device: body.Device, By: r.customer}
	if body.Code == "" {
		var err error
		if scan.Ticket, err = bodyID("ticket_id", id.Ticket, body.Ticket); err != nil {
			return err
		}
	}
	entry, err := a.Door.CheckIn(r.Context(), scan)
	if fault.CodeOf(err) == fault.TicketUsed && entry.Use.At != 0 {
		f := *fault.Of(err)
		f.Detail = "it was used at " + entry.Use.At.Std().Format(time.RFC3339)
		if entry.Use.Gate != "" {
			f.Detail += ", gate " + entry.Use.Gate
		}
		if entry.Use.Device != "" {
			f.Detail += ", by " + entry.Use.Device
		}
		return &usedError{&f, FirstUse{At: entry.Use.At.Std(), Gate: entry.Use.Gate, Device: entry.Use.Device}}
	}
	if err != nil {
		return err
	}
	shown := showEntry(&entry)
	if shown.Attendee, err = a.attendeeOf(r, &entry.Ticket); err != nil { // whoever it is, they are in
		a.Logger.WarnContext(r.Context(), "the name of an attendee could not be read", "request", r.id, "error", err)
	}
	return write(w, http.StatusCreated, shown)
}

// attendeeOf is who is to come with a ticket, where its event asks for names.
func (a *api) attendeeOf(r *request, t *ledger.Ticket) (string, error) {
	if a.People == nil || !r.event.Documents {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), attendeeWait)
	defer cancel()
	all, err := a.People.Attendees(ctx, t.Order)
	if err != nil {
		return "", err
	}
	for _, who := range all {
		if who.Place == t.Place {
			return who.Name, nil
		}
	}
	return "", nil
}

// showEntry shows a ticket at the door. Where nothing was to be undone there is no use, only the ticket.
func showEntry(e *door.Entry) CheckIn {
	shown := CheckIn{Ticket: e.Ticket.ID.Text(id.Ticket)}
	if e.Use.At != 0 {
		shown = showUse(&e.Use)
	}
	shown.State, shown.Section, shown.Seat, shown.Area = e.Ticket.State.String(), e.Place.Section, e.Place.Seat, e.Place.Area
	return shown
}

func showUse(u *ledger.CheckedIn) CheckIn {
	shown := CheckIn{Ticket: u.Ticket.Text(id.Ticket), At: u.At.Std(), Gate: u.Gate, Device: u.Device, Offline: u.Offline, Conflict: u.Conflict}
	if u.Undone != 0 {
		shown.Undone = u.Undone.Std()
	}
	return shown
}

func (a *api) checkInsList(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	after, err := checkInCursor(asked.Get("cursor"))
	if err != nil {
		return err
	}
	uses, err := a.Ledger.CheckIns(r.Context(), r.event.ID, after, asked.Get("conflicts") == "1", checkInsPage)
	if err != nil {
		return err
	}
	list := CheckInList{CheckIns: []CheckIn{}}
	for i := range uses {
		list.CheckIns = append(list.CheckIns, showUse(&uses[i]))
	}
	if len(uses) == checkInsPage {
		last := uses[len(uses)-1]
		list.Next = strconv.FormatInt(int64(last.At), 10) + "." + last.Ticket.Text(id.Ticket) + "." + last.Device
	}
	return write(w, http.StatusOK, list)
}

func checkInCursor(text string) (c ledger.CheckInCursor, err error) {
	if text == "" {
		return c, nil
	}
	at, rest, _ := strings.Cut(text, ".")
	number, device, _ := strings.Cut(rest, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || len(device) > door.DeviceBytesMax {
		return c, &fault.Error{Code: fault.Invalid, Field: "cursor", Detail: "take next_cursor of the page before"}
	}
	c.At, c.Device = ledger.Time(ms), device
	c.Ticket, err = bodyID("cursor", id.Ticket, number)
	return c, err
}

func (a *api) checkInCounts(w http.ResponseWriter, r *request) error {
	c, err := a.Door.Counts(r.Context(), r.event.ID)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, DoorCounts{c.Tickets, c.Entered, c.Conflicts, c.Gates, c.Sections, c.At.Std()})
}

func (a *api) checkInOffline(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	var after id.ID
	if text := asked.Get("cursor"); text != "" {
		if after, err = bodyID("cursor", id.Order, text); err != nil {
			return err
		}
	}
	page, err := a.Door.List(r.Context(), r.event.ID, asked.Get("gate"), after)
	if err != nil {
		return err
	}
	list := DoorList{Tickets: []DoorTicket{}, Now: page.Now.Std()}
	for _, t := range page.Tickets {
		list.Tickets = append(list.Tickets, DoorTicket{t.Ticket.Text(id.Ticket), t.State.String(), t.Place.Section, t.Place.Seat, t.Place.Area})
	}
	if page.Next != 0 {
		list.Next = page.Next.Text(id.Order)
	}
	return write(w, http.StatusOK, list)
}

func (a *api) checkInSync(w http.ResponseWriter, r *request) error {
	var body SyncRequest
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	facts := make([]door.Fact, len(body.Facts))
	for i, f := range body.Facts {
		number, err := bodyID("facts["+strconv.Itoa(i)+"].ticket_id", id.Ticket, f.Ticket)
		if err != nil {
			return err
		}
		facts[i] = door.Fact{Ticket: number, At: f.At, Gate: f.Gate}
	}
	outcomes, err := a.Door.Sync(r.Context(), r.event.ID, body.Device, r.customer, facts)
	if err != nil {
		return err
	}
	answer := SyncAnswer{Outcomes: []SyncOutcome{}}
	for _, o := range outcomes {
		answer.Outcomes = append(answer.Outcomes, a.showOutcome(r, &o))
	}
	return write(w, http.StatusOK, answer)
}

func (a *api) showOutcome(r *request, o *door.Outcome) SyncOutcome {
	shown := SyncOutcome{Ticket: o.Ticket.Text(id.Ticket), Result: "kept"}
	var f *fault.Error
	switch {
	case o.Err != nil && errors.As(o.Err, &f) && !fault.Lookup(f.Code).Retry:
		shown.Result, shown.Why = "refused", string(f.Code)
		if f.Detail != "" {
			shown.Why += ": " + f.Detail
		}
	case o.Err != nil:
		a.Logger.WarnContext(r.Context(), "a use could not be written down", "request", r.id, "error", o.Err)
		shown.Result = "again"
	case o.Use.Conflict != "":
		shown.Result, shown.Why = "conflict", o.Use.Conflict
		if o.First != nil {
			first := showUse(o.First)
			shown.First = &first
		}
	}
	return shown
}

func (a *api) checkInUndo(w http.ResponseWriter, r *request) error {
	var body UndoRequest
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	entry, err := a.Door.Undo(r.Context(), r.event.ID, r.ticket.ID, r.customer, body.Reason)
	if err != nil {
		return err
	}
	a.record(r, "ticket.undo_checkin", r.ticket.ID.Text(id.Ticket), nil)
	return write(w, http.StatusOK, showEntry(&entry))
}
