package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
)

// An OrganizerShow is a show as its organizer edits it.
type OrganizerShow struct {
	ID          string   `json:"show_id"`
	Organizer   string   `json:"organizer_id"`
	Version     int64    `json:"version" doc:"sent back with a change, so that nobody's is lost"`
	Key         string   `json:"key" doc:"your own name for it"`
	Title       string   `json:"title"`
	Description string   `json:"description,omitempty"`
	Performers  []string `json:"performers,omitempty"`
}

// ShowList is a page of shows.
type ShowList struct {
	Shows []OrganizerShow `json:"shows"`
	Next  string          `json:"next_cursor,omitempty"`
}

// A ShowEdit makes a show, or changes what is there.
type ShowEdit struct {
	Version     int64     `json:"version,omitempty" doc:"of the show that this change was made from; needed for a change"`
	Key         string    `json:"key,omitempty" doc:"only of a new show"`
	Title       *string   `json:"title,omitempty"`
	Description *string   `json:"description,omitempty"`
	Performers  *[]string `json:"performers,omitempty"`
}

// An OrganizerEvent is an event as its organizer edits it: beside what everybody sees, everything by which it is sold.
type OrganizerEvent struct {
	Event
	Organizer       string            `json:"organizer_id"`
	Key             string            `json:"key" doc:"your own name for it"`
	Version         int64             `json:"version" doc:"sent back with a change, so that nobody's is lost"`
	TaxIncluded     bool              `json:"tax_included"`
	Prices          []Price           `json:"prices" doc:"the tiers as they were set"`
	Limits          catalog.Limits    `json:"limits"`
	PaymentWindowMS int64             `json:"payment_window_ms"`
	ExtendMax       int               `json:"extend_max"`
	Orphans         catalog.Orphans   `json:"orphans"`
	Quotas          []catalog.Quota   `json:"quotas"`
	Gates           []catalog.Gate    `json:"gates"`
	Performers      []string          `json:"performers"`
	RoomRule        *catalog.RoomRule `json:"room_rule,omitempty" doc:"the waiting room with everything that can be set"`
	OfferTTLMS      int64             `json:"offer_ttl_ms,omitempty" doc:"of the waitlist"`
	Holding         catalog.Holding   `json:"holding"`
	Updated         time.Time         `json:"updated_at"`
}

// OrganizerEventList is a page of events.
type OrganizerEventList struct {
	Events []OrganizerEvent `json:"events"`
	Next   string           `json:"next_cursor,omitempty"`
}

// An EventEdit makes an event, or changes what is there. Times are RFC 3339, or the venue's local time; empty takes one
// away.
type EventEdit struct {
	Version         int64             `json:"version,omitempty" doc:"of the event that this change was made from; needed for a change"`
	Key             string            `json:"key,omitempty" doc:"only of a new event"`
	State           *string           `json:"state,omitempty" enum:"draft,scheduled" doc:"of a new event or a draft; afterwards use open, pause and so on"`
	Title           *string           `json:"title,omitempty" doc:"the show's where it is missing"`
	Performers      *[]string         `json:"performers,omitempty" doc:"the show's where they are missing"`
	Venue           *catalog.Venue    `json:"venue,omitempty"`
	PlanHash        *string           `json:"plan_hash,omitempty" doc:"only of a new event"`
	Starts          *string           `json:"starts_at,omitempty"`
	Doors           *string           `json:"doors_at,omitempty"`
	SaleOpens       *string           `json:"sale_opens_at,omitempty"`
	SaleCloses      *string           `json:"sale_closes_at,omitempty" doc:"the start where it is missing"`
	Currency        *string           `json:"currency,omitempty" doc:"only of a new event"`
	TaxIncluded     *bool             `json:"tax_included,omitempty"`
	Prices          *[]Price          `json:"prices,omitempty"`
	Limits          *catalog.Limits   `json:"limits,omitempty"`
	HoldMax         *int              `json:"seats_per_hold_max,omitempty"`
	HoldTTLMS       *int64            `json:"hold_ttl_ms,omitempty"`
	PaymentWindowMS *int64            `json:"payment_window_ms,omitempty"`
	ExtendMax       *int              `json:"extend_max,omitempty"`
	Orphans         *catalog.Orphans  `json:"orphans,omitempty"`
	Quotas          *[]QuotaEdit      `json:"quotas,omitempty" doc:"how much of a category and section is on sale, and from when on how much"`
	Refunds         *RefundRuleEdit   `json:"refunds,omitempty"`
	Exchanges       *ExchangeRuleEdit `json:"exchanges,omitempty"`
	Transfers       *string           `json:"transfers_until,omitempty" doc:"until when customers may pass tickets on"`
	Documents       *bool             `json:"documents_required,omitempty"`
	Gates           *[]catalog.Gate   `json:"gates,omitempty"`
	Room            *RoomEdit         `json:"room,omitempty" doc:"how people wait for it"`
	Waitlist        *bool             `json:"waitlist,omitempty" doc:"who finds nothing may leave a wish; seats that come back are offered to them"`
	OfferTTLMS      *int64            `json:"offer_ttl_ms,omitempty" doc:"how long each of them has"`
	Holding         *catalog.Holding  `json:"holding,omitempty" doc:"bounds holds that are not paid for; unpaid_max 0: no bound"`
}

// A Price is what a category costs at an event. A category without one is not sold.
type Price struct {
	Category string `json:"category"`
	Name     string `json:"name" doc:"for people"`
	Face     int64  `json:"face_minor"`
	Fee      int64  `json:"fee_minor,omitempty"`
	TaxBP    int64  `json:"tax_bp,omitempty" doc:"basis points: 700 is 7 %"`
}

// A QuotaEdit sets how much of a category and section is on sale.
type QuotaEdit struct {
	Category string          `json:"category,omitempty" doc:"all where it is missing"`
	Section  string          `json:"section,omitempty" doc:"all where it is missing"`
	Max      int             `json:"on_sale_max"`
	Steps    []QuotaStepEdit `json:"steps,omitempty"`
}

// A QuotaStepEdit changes that from an instant on.
type QuotaStepEdit struct {
	At  string `json:"at"`
	Max int    `json:"on_sale_max"`
}

// A RefundRuleEdit says what customers may give back; without until nothing.
type RefundRuleEdit struct {
	Until    string `json:"until,omitempty"`
	FeeBP    int64  `json:"fee_bp,omitempty"`
	FeePlace int64  `json:"fee_minor,omitempty"`
}

// An ExchangeRuleEdit says whether customers may exchange; without until not.
type ExchangeRuleEdit struct {
	Until string `json:"until,omitempty"`
	Fee   int64  `json:"fee_minor,omitempty"`
}

// A SeatsEdit names seats to be blocked or given back to the sale.
type SeatsEdit struct {
	Seats    []string `json:"seat_ids"`
	WhenFree bool     `json:"when_free,omitempty" doc:"those that are taken are blocked as soon as they are free"`
}

// SeatsChanged says how many were.
type SeatsChanged struct {
	Changed int `json:"changed_count"`
}

// seatsEditMax is how many seats one request may name.
const seatsEditMax = 5_000

const organizerEvent = "/v1/organizer/events/{event_id}"

func (a *api) organizerEventRoutes() []route {
	const tag = "Organizers"
	edits := []fault.Code{fault.Invalid, fault.Conflict, fault.OutcomeUnknown}
	routes := []route{
		{Method: "GET", Path: organizerPath + "/shows", ID: "shows_list", Who: atLeast(identity.Viewer, "organizer_id"), Tag: tag, Summary: "Shows",
			Query: []parameter{pageQuery}, Answer: ShowList{}, Faults: []fault.Code{fault.Invalid}, handle: a.showsList},
		{Method: "POST", Path: organizerPath + "/shows", ID: "show_make", Who: atLeast(identity.Operator, "organizer_id"), Tag: tag, Summary: "Make a show",
			Notes: "Its key keeps a repeat from making another.", Body: ShowEdit{}, Answer: OrganizerShow{}, Status: []int{201}, Faults: []fault.Code{fault.Invalid, fault.Conflict}, handle: a.showMake},
		{Method: "GET", Path: "/v1/organizer/shows/{show_id}", ID: "show_get", Who: atLeast(identity.Viewer, "show_id"), Tag: tag, Summary: "A show", Answer: OrganizerShow{}, handle: a.showGet},
		{Method: "PATCH", Path: "/v1/organizer/shows/{show_id}", ID: "show_change", Who: atLeast(identity.Operator, "show_id"), Tag: tag, Summary: "Change a show",
			Notes: "Events that have the show's title and performers get the new ones.", Body: ShowEdit{}, Answer: OrganizerShow{}, Faults: edits, handle: a.showChange},
		{Method: "POST", Path: "/v1/organizer/shows/{show_id}/events", ID: "event_make", Who: atLeast(identity.Operator, "show_id"), Tag: tag, Summary: "Make an event of a show",
			Notes: "Its key keeps a repeat from making another. It is a draft unless state says scheduled.",
			Body:  EventEdit{}, Answer: OrganizerEvent{}, Status: []int{201}, Faults: edits, handle: a.eventMake},
		{Method: "GET", Path: organizerPath + "/events", ID: "organizer_events", Who: anyRole("organizer_id"), Tag: tag, Summary: "Events by start, drafts too",
			Notes:  "Door staff get no drafts, and of each event what everybody sees, its key and its gates; the rest is empty.",
			Query:  []parameter{{"query", "words in show, title, venue or city", "string"}, {"from", "starting at or after this time", "date-time"}, {"to", "starting before this time", "date-time"}, pageQuery},
			Answer: OrganizerEventList{}, Faults: []fault.Code{fault.Invalid}, handle: a.organizerEvents},
		{Method: "GET", Path: organizerEvent, ID: "organizer_event", Who: atLeast(identity.Viewer, "event_id"), Tag: tag, Summary: "An event with everything by which it is sold",
			Answer: OrganizerEvent{}, handle: a.organizerEventGet},
		{Method: "PATCH", Path: organizerEvent, ID: "event_change", Who: atLeast(identity.Operator, "event_id"), Tag: tag, Summary: "Change an event",
			Notes: "Only what is named changes; lists are replaced whole. Plan and currency stay.", Body: EventEdit{}, Answer: OrganizerEvent{}, Faults: edits, handle: a.eventChange},
		{Method: "POST", Path: organizerEvent + "/block", ID: "seats_block", Who: atLeast(identity.Operator, "event_id"), Tag: tag, Summary: "Keep seats back",
			Notes: "All or none; twice is harmless.", Body: SeatsEdit{}, Answer: SeatsChanged{}, Faults: []fault.Code{fault.Invalid, fault.SeatUnknown, fault.SeatsTaken, fault.OutcomeUnknown}, handle: a.seatsBlock},
		{Method: "POST", Path: organizerEvent + "/unblock", ID: "seats_unblock", Who: atLeast(identity.Operator, "event_id"), Tag: tag, Summary: "Give seats back to the sale",
			Body: SeatsEdit{}, Answer: SeatsChanged{}, Faults: []fault.Code{fault.Invalid, fault.SeatUnknown, fault.OutcomeUnknown}, handle: a.seatsUnblock},
	}
	for _, v := range []struct {
		verb    catalog.Verb
		role    identity.Role
		summary string
	}{
		{catalog.VerbOpen, identity.Operator, "Open the sale at once"}, {catalog.VerbPause, identity.Operator, "Take no new holds; live ones may pay"},
		{catalog.VerbResume, identity.Operator, "Go on after a pause"}, {catalog.VerbClose, identity.Operator, "End the sale for good"},
		{catalog.VerbCancel, identity.Owner, "Cancel the event: everything sold is to be refunded"},
	} {
		routes = append(routes, route{Method: "POST", Path: organizerEvent + "/" + string(v.verb), ID: "event_" + string(v.verb), Who: atLeast(v.role, "event_id"), Tag: tag,
			Summary: v.summary, Notes: "Twice is harmless.", Answer: OrganizerEvent{}, Faults: []fault.Code{fault.Conflict, fault.OutcomeUnknown}, handle: a.eventVerb(v.verb)})
	}
	return append(routes, route{Method: "POST", Path: organizerEvent + "/restart", ID: "event_restart", Who: atLeast(identity.Owner, "event_id"), Tag: tag,
		Summary: "Sell again after a broken invariant stopped the event, once somebody has looked", Answer: OrganizerEvent{},
		Faults: []fault.Code{fault.Conflict, fault.OutcomeUnknown}, handle: a.eventRestart})
}

const showsPage = 50

func (a *api) showsList(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	after, err := cursorID(asked.Get("cursor"), id.Show)
	if err != nil {
		return err
	}
	shows, err := a.Catalog.Shows(r.Context(), r.organizer, after, showsPage+1)
	if err != nil {
		return err
	}
	list := ShowList{Shows: []OrganizerShow{}}
	for i := range shows[:min(len(shows), showsPage)] {
		list.Shows = append(list.Shows, showShow(&shows[i]))
	}
	if len(shows) > showsPage {
		list.Next = list.Shows[showsPage-1].ID
	}
	return write(w, http.StatusOK, list)
}

// cursorID is the id after which (or before which) a page goes on, 0 for the first page.
func cursorID(text, prefix string) (id.ID, error) {
	if text == "" {
		return 0, nil
	}
	return bodyID("cursor", prefix, text)
}

func showShow(s *catalog.Show) OrganizerShow {
	return OrganizerShow{
		ID: s.ID.Text(id.Show), Organizer: s.Organizer.Text(id.Org), Version: s.Updated.UnixMilli(), Key: s.Key, Title: s.Title,
		Description: s.Description, Performers: s.Performers,
	}
}

func (e *ShowEdit) apply(s *catalog.Show) {
	set(&s.Title, e.Title)
	set(&s.Description, e.Description)
	set(&s.Performers, e.Performers)
}

// set changes what was named.
func set[T any](into, named *T) {
	if named != nil {
		*into = *named
	}
}

func (a *api) showMake(w http.ResponseWriter, r *request) error {
	var body ShowEdit
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	made := catalog.Show{Key: body.Key}
	body.apply(&made)
	made, err := a.Catalog.NewShow(r.Context(), r.organizer, made)
	if err != nil {
		return err
	}
	shown := showShow(&made)
	a.record(r, "show.make", shown.ID, nil)
	w.Header().Set("Location", "/v1/organizer/shows/"+shown.ID)
	return write(w, http.StatusCreated, shown)
}

// showOf is the show that the path names.
func showOf(r *request) (id.ID, error) { return pathID(r, "show_id", id.Show, fault.NotFound) }

func (a *api) showGet(w http.ResponseWriter, r *request) error {
	number, err := showOf(r)
	if err != nil {
		return err
	}
	s, err := a.Catalog.Show(r.Context(), number)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, showShow(s))
}

// errNoVersion is answered to a change that does not say from what it was made.
var errNoVersion = &fault.Error{Code: fault.Invalid, Field: "version", Detail: "say the version that this change was made from: read the thing first"}

func (a *api) showChange(w http.ResponseWriter, r *request) error {
	var body ShowEdit
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	number, err := showOf(r)
	switch {
	case err != nil:
		return err
	case body.Version <= 0:
		return errNoVersion
	case body.Key != "":
		return &fault.Error{Code: fault.Invalid, Field: "key", Detail: "a show keeps its key"}
	}
	s, err := a.Catalog.EditShow(r.acting("show.change"), number, time.UnixMilli(body.Version), body.apply)
	if err != nil {
		return err
	}
	a.record(r, "show.change", s.ID.Text(id.Show), nil)
	return write(w, http.StatusOK, showShow(&s))
}

// showEvent is an event as its organizer sees it.
func (a *api) showEvent(e *catalog.Event) OrganizerEvent {
	shown := OrganizerEvent{
		Event: a.event(e), Organizer: e.Organizer.Text(id.Org), Key: e.Key, Version: e.Version, TaxIncluded: e.TaxIncluded, Prices: []Price{}, Limits: e.Limits,
		PaymentWindowMS: int64(e.PaymentWindow), ExtendMax: e.ExtendMax, Orphans: e.Orphans, Quotas: e.Quotas, Gates: e.Gates, Performers: e.Performers, Updated: e.Updated,
	}
	shown.Holding = e.Holding
	if e.Waitlist {
		shown.OfferTTLMS = e.OfferLasts().Milliseconds()
	}
	if e.Room.Mode != "" {
		shown.RoomRule = &e.Room
	}
	for _, t := range e.Tiers {
		shown.Prices = append(shown.Prices, Price(t))
	}
	if shown.Quotas == nil {
		shown.Quotas = []catalog.Quota{}
	}
	if shown.Gates == nil {
		shown.Gates = []catalog.Gate{}
	}
	if shown.Performers == nil {
		shown.Performers = []string{}
	}
	return shown
}

func (a *api) organizerEvents(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	looks := r.role.May(identity.Viewer) // door staff do not: they look for the event at whose door they stand
	q := catalog.Query{Text: asked.Get("query"), Organizer: r.organizer, Drafts: looks}
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
	list := OrganizerEventList{Events: []OrganizerEvent{}, Next: page.Next.String()}
	for i := range page.Events {
		e := a.showEvent(&page.Events[i])
		if !looks {
			e = e.atTheDoor()
		}
		list.Events = append(list.Events, e)
	}
	return write(w, http.StatusOK, list)
}

// atTheDoor is what door staff see of an event.
func (e *OrganizerEvent) atTheDoor() OrganizerEvent {
	return OrganizerEvent{
		Event: e.Event, Organizer: e.Organizer, Key: e.Key, Prices: []Price{}, Quotas: []catalog.Quota{}, Gates: e.Gates, Performers: e.Performers,
	}
}

func (a *api) organizerEventGet(w http.ResponseWriter, r *request) error {
	e, err := a.Catalog.Current(r.Context(), r.event.ID)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, a.showEvent(&e))
}

// defaultEvent is what a new event has where nothing is said.
func defaultEvent() catalog.Event {
	return catalog.Event{
		State: catalog.Draft, TaxIncluded: true, Limits: catalog.Limits{Event: catalog.DefaultLimitPerEvent}, HoldTTL: catalog.DefaultHoldTTL,
		PaymentWindow: catalog.DefaultPaymentWindow, ExtendMax: catalog.DefaultExtendMax,
		Orphans: catalog.Orphans{Mode: catalog.OrphansWarn, FewSeatsLeft: catalog.DefaultFewSeatsLeft, SplitReleaseBefore: catalog.DefaultSplitReleaseBefore},
		Holding: catalog.DefaultHolding(),
	}
}

func (a *api) eventMake(w http.ResponseWriter, r *request) error {
	var body EventEdit
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	number, err := showOf(r)
	if err != nil {
		return err
	}
	e := defaultEvent()
	e.Key = body.Key
	set(&e.PlanHash, body.PlanHash)
	set(&e.Currency, body.Currency)
	if err := body.apply(&e); err != nil {
		return err
	}
	if e.SaleCloses.IsZero() {
		e.SaleCloses = e.Starts
	}
	if body.HoldMax == nil {
		e.SeatsPerHoldMax = min(cmp.Or(e.Limits.Event, catalog.DefaultSeatsPerHoldMax), ledger.SeatsPerHoldCap)
	}
	made, err := a.Catalog.NewEvent(r.acting("event.make"), number, e)
	if err != nil {
		return err
	}
	a.changed(r.Context(), made.ID)
	shown := a.showEvent(&made)
	a.record(r, "event.make", shown.ID, nil)
	w.Header().Set("Location", "/v1/organizer/events/"+shown.ID)
	return write(w, http.StatusCreated, shown)
}

func (a *api) eventChange(w http.ResponseWriter, r *request) error {
	var body EventEdit
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	if body.Version <= 0 {
		return errNoVersion
	}
	for field, said := range map[string]bool{"key": body.Key != "", "plan_hash": body.PlanHash != nil, "currency": body.Currency != nil} {
		if said {
			return &fault.Error{Code: fault.Invalid, Field: field, Detail: "an event keeps it: make another event"}
		}
	}
	if body.State != nil && r.event.State != catalog.Draft {
		return &fault.Error{Code: fault.Invalid, Field: "state", Detail: "only a draft's: use open, pause, resume, close or cancel"}
	}
	trial := *r.event
	if err := body.apply(&trial); err != nil { // what cannot be read is said before anything is tried
		return err
	}
	var failed error
	e, err := a.Catalog.EditEvent(r.acting("event.change"), r.event.ID, body.Version, func(e *catalog.Event) { failed = body.apply(e) })
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	a.changed(r.Context(), e.ID)
	a.record(r, "event.change", e.ID.Text(id.Event), nil)
	return write(w, http.StatusOK, a.showEvent(&e))
}

func (a *api) eventVerb(verb catalog.Verb) func(http.ResponseWriter, *request) error {
	return func(w http.ResponseWriter, r *request) error {
		e, err := a.Catalog.Change(r.acting("event."+string(verb)), r.event.ID, verb)
		if err != nil {
			return err
		}
		a.changed(r.Context(), e.ID)
		a.record(r, "event."+string(verb), e.ID.Text(id.Event), nil)
		return write(w, http.StatusOK, a.showEvent(&e))
	}
}

func (a *api) eventRestart(w http.ResponseWriter, r *request) error {
	if a.Restart == nil {
		return fault.New(fault.Conflict, "use onsale event restart")
	}
	if err := a.Restart(r.Context(), r.event.ID); err != nil {
		return err
	}
	a.record(r, "event.restart", r.event.ID.Text(id.Event), nil)
	return a.organizerEventGet(w, r)
}

// seatsOf are the seats that a body names, by their index.
func (a *api) seatsOf(w http.ResponseWriter, r *request) (SeatsEdit, []int32, error) {
	var body SeatsEdit
	if _, err := read(w, r, &body); err != nil {
		return body, nil, err
	}
	if len(body.Seats) == 0 || len(body.Seats) > seatsEditMax {
		return body, nil, &fault.Error{Code: fault.Invalid, Field: "seat_ids", Detail: "1 to 5,000 seats"}
	}
	names, err := a.withPlanOf(r, r.event)
	if err != nil {
		return body, nil, err
	}
	seats := make([]int32, len(body.Seats))
	for i, name := range body.Seats {
		index, ok := names.plan.Layout().Lookup(name)
		if !ok {
			return body, nil, &fault.Error{Code: fault.SeatUnknown, Field: "seat_ids", Detail: "the plan has no seat " + quoted(name)}
		}
		seats[i] = index
	}
	return body, seats, nil
}

func (a *api) seatsBlock(w http.ResponseWriter, r *request) error {
	body, seats, err := a.seatsOf(w, r)
	if err != nil {
		return err
	}
	return a.seatsCommand(w, r, "seats.block", ledger.Block{Event: r.event.ID, Seats: seats, WhenFree: body.WhenFree})
}

func (a *api) seatsUnblock(w http.ResponseWriter, r *request) error {
	body, seats, err := a.seatsOf(w, r)
	if err != nil {
		return err
	}
	if body.WhenFree {
		return &fault.Error{Code: fault.Invalid, Field: "when_free", Detail: "goes with block"}
	}
	return a.seatsCommand(w, r, "seats.unblock", ledger.Unblock{Event: r.event.ID, Seats: seats})
}

func (a *api) seatsCommand(w http.ResponseWriter, r *request, action string, c ledger.Command) error {
	result, err := a.Commands.Do(r.Context(), c)
	if err != nil {
		return err
	}
	if result.Fault != nil {
		return result.Fault
	}
	a.record(r, action, r.event.ID.Text(id.Event), nil)
	return write(w, http.StatusOK, SeatsChanged{Changed: result.Count})
}
