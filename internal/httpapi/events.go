package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
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
	Performers []string      `json:"performers,omitempty"`
	State      string        `json:"state" enum:"draft,scheduled,on_sale,paused,ended,cancelled,stopped"`
	Venue      catalog.Venue `json:"venue"`
	PlanHash   string        `json:"plan_hash"`
	Starts     time.Time     `json:"starts_at" doc:"with the venue's offset"`
	Doors      *time.Time    `json:"doors_at,omitempty"`
	SaleOpens  time.Time     `json:"sale_opens_at,omitzero" doc:"missing of a draft that does not say it yet"`
	SaleCloses time.Time     `json:"sale_closes_at"`
	Currency   string        `json:"currency"`
	Tiers      []Tier        `json:"tiers"`
	LimitEvent int           `json:"limit_per_customer" doc:"0: no limit"`
	HoldMax    int           `json:"seats_per_hold_max"`
	HoldTTLMS  int64         `json:"hold_ttl_ms"`
	Refunds    *RefundRule   `json:"refunds,omitempty" doc:"missing: customers cannot give tickets back by themselves"`
	Exchanges  *ExchangeRule `json:"exchanges,omitempty" doc:"missing: customers cannot exchange tickets"`
	Transfers  *time.Time    `json:"transfers_until,omitempty" doc:"missing: customers cannot pass tickets on"`
	Documents  bool          `json:"documents_required,omitempty" doc:"each ticket names its attendee and their identity document"`
	Room       *WaitingRoom  `json:"room,omitempty" doc:"people wait for it; missing: nobody does"`
	Waitlist   bool          `json:"waitlist,omitempty" doc:"who finds nothing may leave a wish"`
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

// A RefundRule says until when customers may give tickets back, and what is kept of each.
type RefundRule struct {
	Until    time.Time `json:"until"`
	FeeBP    int64     `json:"fee_bp,omitempty" doc:"a share of what the ticket cost, in basis points: 1000 is 10 %"`
	FeePlace int64     `json:"fee_minor,omitempty" doc:"beside that"`
}

// An ExchangeRule says until when customers may exchange tickets, and what is kept of each.
type ExchangeRule struct {
	Until time.Time `json:"until"`
	Fee   int64     `json:"fee_minor,omitempty"`
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
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	q := catalog.Query{Text: asked.Get("query"), City: asked.Get("city"), Availability: catalog.Availability(asked.Get("availability"))}
	if q.From, err = timeOf(asked, "from"); err != nil {
		return err
	}
	if q.To, err = timeOf(asked, "to"); err != nil {
		return err
	}
	if text := asked.Get("cursor"); text != "" {
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
		list.Events = append(list.Events, a.event(&page.Events[i]))
	}
	if page.Next != (catalog.Cursor{}) {
		list.Next = page.Next.String()
	}
	w.Header().Set("Cache-Control", "public, max-age=2")
	return write(w, http.StatusOK, list)
}

func timeOf(asked url.Values, name string) (time.Time, error) {
	text := asked.Get(name)
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
	w.Header().Set("Cache-Control", "public, max-age=1")
	return write(w, http.StatusOK, a.event(e))
}

// eventOf is the event that the path names.
func (a *api) eventOf(r *request) (*catalog.Event, error) {
	event, err := pathID(r, "event_id", id.Event, fault.EventUnknown)
	if err != nil {
		return nil, err
	}
	return a.published(r.Context(), event)
}

// published is an event that customers may know of: drafts are not there for them, whichever way they ask.
func (a *api) published(ctx context.Context, event id.ID) (*catalog.Event, error) {
	e, err := a.Catalog.Event(ctx, event)
	if err != nil {
		return nil, err
	}
	if e.State == catalog.Draft {
		return nil, fault.New(fault.EventUnknown, "")
	}
	return e, nil
}

// notLoaded turns the inventory's event_unknown, which says that this node has no board of the event, into what a client
// can do about it. Any other error stays.
func (a *api) notLoaded(e *catalog.Event, err error) error {
	if fault.CodeOf(err) != fault.EventUnknown {
		return err
	}
	if state := e.StateAt(a.Now(), 0, false); state != catalog.OnSale {
		return fault.New(fault.NotOnSale, "the event is %s", state)
	}
	return &fault.Error{Code: fault.Busy, Detail: "the event is being made ready", RetryAfter: time.Second, Cause: err}
}

// event is an event as people see it. It reads no plan: a list has many events, each perhaps with another plan.
func (a *api) event(e *catalog.Event) Event {
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
		ID: e.ID.Text(id.Event), Show: e.Show.Text(id.Show), Title: e.Title, Performers: e.Performers, State: string(e.StateAt(a.Now(), state, heard)),
		Venue: e.Venue, PlanHash: e.PlanHash, Starts: e.Starts.In(zone), SaleOpens: e.SaleOpens.In(zone), SaleCloses: e.SaleCloses.In(zone),
		Currency: e.Currency, LimitEvent: e.Limits.Event, HoldMax: e.SeatsPerHoldMax, HoldTTLMS: int64(e.HoldTTL), Left: left,
		Tiers: make([]Tier, 0, len(e.Tiers)),
	}
	if !e.Doors.IsZero() {
		doors := e.Doors.In(zone)
		shown.Doors = &doors
	}
	if r := e.Refunds; !r.Until.IsZero() {
		shown.Refunds = &RefundRule{Until: r.Until.In(zone), FeeBP: r.FeeBP, FeePlace: r.FeePlace}
	}
	if r := e.Exchanges; !r.Until.IsZero() {
		shown.Exchanges = &ExchangeRule{Until: r.Until.In(zone), Fee: r.Fee}
	}
	if r := e.Transfers; !r.Until.IsZero() {
		until := r.Until.In(zone)
		shown.Transfers = &until
	}
	shown.Documents, shown.Room, shown.Waitlist = e.Documents, room(e), e.Waitlist
	for _, t := range e.Tiers {
		// Priced as the ledger prices it, with a category of its own.
		row := ledger.Event{TaxIncluded: e.TaxIncluded, Tiers: []ledger.Tier{{Face: t.Face, Fee: t.Fee, TaxBP: t.TaxBP}}}
		p := row.Price(0)
		money := func(amount int64) Money { return Money{amount, e.Currency} }
		shown.Tiers = append(shown.Tiers, Tier{Category: t.Category, Name: t.Name,
			Face: money(p.Face), Fee: money(p.Fee), Tax: money(p.Tax), Total: money(p.Total)})
	}
	return shown
}

// planHash is what venue.Plan.Hash answers.
var planHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (a *api) planGet(w http.ResponseWriter, r *request) error {
	hash := r.PathValue("plan_hash")
	if !planHash.MatchString(hash) {
		return fault.New(fault.NotFound, "") // not worth a question to the database
	}
	body, err := a.Catalog.PlanBody(r.Context(), hash)
	if err != nil {
		return err
	}
	// Weak, since the packed and the plain bytes share it.
	return shared(w, r, sharedBody{kind: "application/json", etag: `W/"` + hash + `"`, cache: "public, max-age=31536000, immutable", body: body, packed: true})
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

// withPlan remembers the plan of a customer's event for the rest of the request.
func (a *api) withPlan(r *request, event id.ID) (planNames, error) {
	e, err := a.Catalog.Event(r.Context(), event)
	if err != nil {
		return planNames{}, err
	}
	return a.withPlanOf(r, e)
}

func (a *api) withPlanOf(r *request, e *catalog.Event) (planNames, error) {
	plan, err := a.Catalog.Plan(r.Context(), e.PlanHash)
	if err != nil {
		return planNames{}, err
	}
	names := planNames{plan}
	r.Request = r.WithContext(context.WithValue(r.Context(), planOfRequest{}, names))
	return names, nil
}

// Seats is the answer of GET seats as JSON.
type Seats struct {
	Event   string  `json:"event_id"`
	Version int64   `json:"version"`
	Count   int     `json:"seat_count"`
	Seats   string  `json:"seats" doc:"base64; seat i has bits 2·(i mod 4) of byte i/4"`
	Areas   []int32 `json:"areas" doc:"free places of each area, in the plan's order"`
}

// SeatsDelta is the answer of GET seats with since, and the data of a stream's event seats: what is otherwise at Version
// than it was at Since, by seat index.
type SeatsDelta struct {
	Since     int64     `json:"since"`
	Version   int64     `json:"version"`
	Available []int32   `json:"available,omitempty"`
	Held      []int32   `json:"held,omitempty"`
	Sold      []int32   `json:"sold,omitempty" doc:"sold or not for sale"`
	Areas     [][]int32 `json:"areas,omitempty" doc:"pairs of area and free places"`
	Config    bool      `json:"config,omitempty" doc:"the event itself has changed: read it again"`
}

const octets = "application/octet-stream"

func (a *api) seatsGet(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	e, err := a.eventOf(r)
	if err != nil {
		return err
	}
	if text := asked.Get("since"); text != "" {
		return a.seatsSince(w, r, e, text)
	}
	p, err := a.Inventory.Picture(e.ID)
	if err != nil {
		return a.notLoaded(e, err)
	}
	w.Header().Add("Vary", "Accept")
	answer := sharedBody{kind: "application/json", cache: "public, max-age=1"}
	accept := r.Header.Get("Accept")
	if packed := quality(accept, octets); packed.named && packed.q > 0 && packed.q >= quality(accept, answer.kind).q {
		answer.kind, answer.etag, answer.body = octets, p.ETag(false), p.Octets()
	} else {
		answer.etag, answer.body = p.ETag(true), p.JSON()
	}
	return shared(w, r, answer)
}

func (a *api) seatsSince(w http.ResponseWriter, r *request, e *catalog.Event, text string) error {
	since, err := strconv.ParseInt(text, 10, 64)
	if err != nil || since < 0 {
		return &fault.Error{Code: fault.Invalid, Field: "since", Detail: "a version that GET seats answered"}
	}
	d, ok, err := a.Inventory.Delta(e.ID, since)
	if err != nil {
		return a.notLoaded(e, err)
	}
	if !ok {
		return fault.New(fault.Gone, "the difference to version %d is not known any more: ask again without since", since)
	}
	etag := fmt.Sprintf("%q", fmt.Sprintf("%d-%dj", since, d.Version))
	return shared(w, r, sharedBody{kind: "application/json", etag: etag, cache: "public, max-age=1", body: d.JSON()})
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
		return a.notLoaded(e, err)
	}
	defer sub.Close()
	beginStream(w)
	if r.Method != http.MethodHead {
		stream(r.Context(), w, sub.Frames())
	}
	return nil
}

// beginStream says that server-sent events come, which no proxy may keep back.
func beginStream(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
}

// stream sends frames until they end, the client goes away or does not read, or the stream has lived long enough. A
// client that does not read is cut off by the write's deadline, or before that by its full queue (B3).
func stream(ctx context.Context, w http.ResponseWriter, frames <-chan []byte) {
	control := http.NewResponseController(w)
	life := time.NewTimer(streamLifeMax)
	defer life.Stop()
	for {
		select {
		case frame, more := <-frames:
			if !more {
				return
			}
			if control.SetWriteDeadline(time.Now().Add(streamWriteMax)) != nil {
				return
			}
			if _, err := w.Write(frame); err != nil {
				return
			}
			if control.Flush() != nil {
				return
			}
		case <-life.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
