package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// Money is an amount in minor units of its currency.
type Money struct {
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency" doc:"ISO 4217"`
}

// An Event as the API shows it.
type Event struct {
	ID         string        `json:"event_id"`
	Show       string        `json:"show_id"`
	Title      string        `json:"title"`
	State      string        `json:"state" enum:"draft,scheduled,on_sale,paused,ended,cancelled,stopped"`
	Venue      catalog.Venue `json:"venue"`
	PlanHash   string        `json:"plan_hash"`
	Starts     time.Time     `json:"starts_at" doc:"with the venue's offset"`
	Doors      *time.Time    `json:"doors_at,omitempty"`
	SaleOpens  time.Time     `json:"sale_opens_at"`
	SaleCloses time.Time     `json:"sale_closes_at"`
	Currency   string        `json:"currency"`
	Tiers      []Tier        `json:"tiers"`
	LimitEvent int           `json:"limit_per_customer" doc:"0: no limit"`
	HoldMax    int           `json:"seats_per_hold_max"`
	HoldTTLMS  int64         `json:"hold_ttl_ms"`
	Left       *Left         `json:"left,omitempty" doc:"missing where the event is not loaded on this node"`
}

// A Tier is what a category costs.
type Tier struct {
	Category string `json:"category"`
	Name     string `json:"name"`
	Face     Money  `json:"face"`
	Fee      Money  `json:"fee"`
	Tax      Money  `json:"tax"`
	Total    Money  `json:"total" doc:"what is to be paid for a place, with everything"`
}

// Left is how much is left, as far as this node has heard.
type Left struct {
	Seats  int `json:"seats_available"`
	Places int `json:"places_available"`
}

// EventList is a page of events.
type EventList struct {
	Events []Event `json:"events"`
	Next   string  `json:"next_cursor,omitempty"`
}

func (a *api) eventsList(w http.ResponseWriter, r *request) error {
	q := catalog.Query{Text: r.FormValue("query"), City: r.FormValue("city")}
	var err error
	if q.From, err = timeOf(r, "from"); err != nil {
		return err
	}
	if q.To, err = timeOf(r, "to"); err != nil {
		return err
	}
	if text := r.FormValue("cursor"); text != "" {
		if q.After, err = catalog.ParseCursor(text); err != nil {
			return &fault.Error{Code: fault.Invalid, Field: "cursor", Detail: "not a cursor that this API gave out", Cause: err}
		}
	}
	page, err := a.Catalog.Events(r.Context(), q)
	if err != nil {
		return err
	}
	list := EventList{Events: make([]Event, 0, len(page.Events))}
	for i := range page.Events {
		e, err := a.event(r.Context(), &page.Events[i])
		if err != nil {
			return err
		}
		list.Events = append(list.Events, e)
	}
	if page.Next != (catalog.Cursor{}) {
		list.Next = page.Next.String()
	}
	w.Header().Set("Cache-Control", "public, max-age=2")
	return write(w, http.StatusOK, list)
}

func timeOf(r *request, name string) (time.Time, error) {
	text := r.FormValue(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, &fault.Error{Code: fault.Invalid, Field: name, Detail: "a time as 2026-05-01T20:00:00+02:00", Cause: err}
	}
	return t, nil
}

func (a *api) eventGet(w http.ResponseWriter, r *request) error {
	e, err := a.eventOf(r)
	if err != nil {
		return err
	}
	shown, err := a.event(r.Context(), e)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=1")
	return write(w, http.StatusOK, shown)
}

// eventOf is the event that the path names; drafts are not shown.
func (a *api) eventOf(r *request) (*catalog.Event, error) {
	event, err := pathID(r, "event_id", id.Event, fault.EventUnknown)
	if err != nil {
		return nil, err
	}
	e, err := a.Catalog.Event(r.Context(), event)
	if err == nil && e.State == catalog.Draft {
		return nil, fault.New(fault.EventUnknown, "")
	}
	return e, err
}

// event is an event as people see it.
func (a *api) event(ctx context.Context, e *catalog.Event) (Event, error) {
	plan, err := a.Catalog.Plan(ctx, e.PlanHash)
	if err != nil {
		return Event{}, err
	}
	row, err := e.LedgerEvent(plan)
	if err != nil {
		return Event{}, fmt.Errorf("event %s: %w", e.ID.Text(id.Event), err)
	}
	var left *Left
	var state ledger.EventState
	var heard bool
	if b := a.Inventory.Board(e.ID); b != nil {
		if state, heard = b.EventState(); heard {
			left = &Left{}
			left.Seats, left.Places = b.Left()
		}
	}
	zone := e.Venue.Location()
	shown := Event{
		ID: e.ID.Text(id.Event), Show: e.Show.Text(id.Show), Title: e.Title, State: string(e.StateAt(a.Now(), state, heard)),
		Venue: e.Venue, PlanHash: e.PlanHash, Starts: e.Starts.In(zone), SaleOpens: e.SaleOpens.In(zone), SaleCloses: e.SaleCloses.In(zone),
		Currency: e.Currency, LimitEvent: e.Limits.Event, HoldMax: e.SeatsPerHoldMax, HoldTTLMS: int64(e.HoldTTL), Left: left,
		Tiers: make([]Tier, 0, len(row.Tiers)),
	}
	if !e.Doors.IsZero() {
		doors := e.Doors.In(zone)
		shown.Doors = &doors
	}
	for _, t := range row.Tiers {
		p := row.Price(t.Category)
		money := func(amount int64) Money { return Money{amount, e.Currency} }
		shown.Tiers = append(shown.Tiers, Tier{Category: plan.Categories[t.Category].Key, Name: t.Name,
			Face: money(p.Face), Fee: money(p.Fee), Tax: money(p.Tax), Total: money(p.Total)})
	}
	return shown, nil
}

func (a *api) planGet(w http.ResponseWriter, r *request) error {
	hash := r.PathValue("plan_hash")
	body, err := a.Catalog.PlanBody(r.Context(), hash)
	if err != nil {
		return err
	}
	return shared(w, r, "application/json", `"`+hash+`"`, "public, max-age=31536000, immutable", body, true)
}

// planOfRequest is the key under which a request's context has the plan, for naming seats in problems.
type planOfRequest struct{}

// planNames turns seats' and areas' indexes into the plan's labels and back.
type planNames struct{ plan *venue.Plan }

func (p planNames) seat(index int32) string {
	if index < 0 || int(index) >= len(p.plan.Seats) {
		return ""
	}
	return p.plan.Seats[index].ID
}

func (p planNames) area(index int32) string {
	if index < 0 || int(index) >= len(p.plan.Areas) {
		return ""
	}
	return p.plan.Areas[index].ID
}

// areaIndex is -1 where there is no such area.
func (p planNames) areaIndex(name string) int32 {
	return int32(slices.IndexFunc(p.plan.Areas, func(a venue.Area) bool { return a.ID == name }))
}

// withPlan remembers the event's plan for the rest of the request.
func (a *api) withPlan(r *request, event id.ID) (planNames, error) {
	e, err := a.Catalog.Event(r.Context(), event)
	if err != nil {
		return planNames{}, err
	}
	plan, err := a.Catalog.Plan(r.Context(), e.PlanHash)
	if err != nil {
		return planNames{}, err
	}
	names := planNames{plan}
	r.Request = r.WithContext(context.WithValue(r.Context(), planOfRequest{}, names))
	return names, nil
}

// Seats is the answer of GET seats as JSON; with since it has the members of the difference instead.
type Seats struct {
	Event   string  `json:"event_id"`
	Version int64   `json:"version"`
	Count   int     `json:"seat_count"`
	Seats   string  `json:"seats" doc:"base64; seat i has bits 2·(i mod 4) of byte i/4"`
	Areas   []int32 `json:"areas" doc:"free places of each area, in the plan's order"`
}

const octets = "application/octet-stream"

func (a *api) seatsGet(w http.ResponseWriter, r *request) error {
	e, err := a.eventOf(r)
	if err != nil {
		return err
	}
	if text := r.FormValue("since"); text != "" {
		return a.seatsSince(w, r, e.ID, text)
	}
	p, err := a.Inventory.Picture(e.ID)
	if err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	if accepts(r.Header.Get("Accept"), octets) {
		return shared(w, r, octets, p.ETag(false), "public, max-age=1", p.Octets(), false)
	}
	return shared(w, r, "application/json", p.ETag(true), "public, max-age=1", p.JSON(), false)
}

func (a *api) seatsSince(w http.ResponseWriter, r *request, event id.ID, text string) error {
	since, err := strconv.ParseInt(text, 10, 64)
	if err != nil || since < 0 {
		return &fault.Error{Code: fault.Invalid, Field: "since", Detail: "a version that GET seats answered"}
	}
	d, ok, err := a.Inventory.Delta(event, since)
	if err != nil {
		return err
	}
	if !ok {
		return fault.New(fault.Gone, "the difference to version %d is not known any more: ask again without since", since)
	}
	etag := fmt.Sprintf("%q", fmt.Sprintf("%d-%dj", since, d.Version))
	return shared(w, r, "application/json", etag, "public, max-age=1", d.JSON(), false)
}

func (a *api) seatsStream(w http.ResponseWriter, r *request) error {
	e, err := a.eventOf(r)
	if err != nil {
		return err
	}
	since := int64(-1)
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		if since, err = strconv.ParseInt(text, 10, 64); err != nil || since < 0 {
			return &fault.Error{Code: fault.BadRequest, Field: "Last-Event-ID", Detail: "the id of an event of this stream"}
		}
	}
	sub, err := a.Inventory.Subscribe(e.ID, since)
	if err != nil {
		return err
	}
	defer sub.Close()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	life := time.NewTimer(streamLifeMax)
	defer life.Stop()
	for {
		// A client that does not read is cut off by the write's deadline, or before that by its full queue (B3).
		if err := control.Flush(); err != nil {
			return nil
		}
		select {
		case frame, more := <-sub.Frames():
			if !more {
				return nil
			}
			if control.SetWriteDeadline(a.Now().Add(streamWriteMax)) != nil {
				return nil
			}
			if _, err := w.Write(frame); err != nil {
				return nil
			}
		case <-life.C:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}
