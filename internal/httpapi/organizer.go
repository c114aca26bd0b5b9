package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/venue"
)

// Limits of what organizers send.
const (
	planTakesMax   = 3 * time.Minute // to send and read a plan
	planReadersMax = 2               // plans read at once on this node: each takes some hundred megabytes for a moment
)

// A ProblemItem is one of several things to mend.
type ProblemItem struct {
	Field   string   `json:"field,omitempty" doc:"the part that is wrong"`
	Line    int      `json:"line,omitempty"`
	Message string   `json:"message" doc:"what is wrong, and how to mend it"`
	Seats   []string `json:"seat_ids,omitempty"`
	Note    bool     `json:"note,omitempty" doc:"worth knowing, and no reason to refuse"`
}

// refusedItems are the problems for which a plan or an event was refused; nil where it is another error.
func refusedItems(err error) (items []ProblemItem) {
	var event *catalog.RefusedError
	var plan *venue.RefusedError
	switch {
	case errors.As(err, &event):
		for _, p := range event.Problems {
			items = append(items, ProblemItem{Field: fieldOf(p.Key), Line: p.Line, Message: p.Message})
		}
	case errors.As(err, &plan):
		return planItems(plan.Problems)
	}
	return items
}

// fileKeys are keys of an event file, and the fields of this API that stand for them.
var fileKeys = strings.NewReplacer(
	"tiers", "prices", ".tax_percent", ".tax_bp", ".face", ".face_minor", ".fee_percent", ".fee_bp", ".fee", ".fee_minor",
	"sale.opens", "sale_opens_at", "sale.closes", "sale_closes_at", "hold_ttl", "hold_ttl_ms", "payment_window", "payment_window_ms", "transfers.until", "transfers_until",
	"room.joins_open", "room.joins_open_at", "room.turn", "room.turn_ms", "room.stay", "room.stay_ms", "room.draw_wait", "room.draw_wait_ms", "offer_ttl", "offer_ttl_ms",
	"holding.rest", "holding.rest_ms", "holding.seat_rest", "holding.seat_rest_ms",
)

// fieldOf is what a key of an event file is called here.
func fieldOf(key string) string {
	switch key {
	case "plan", "starts", "doors":
		return map[string]string{"plan": "plan_hash", "starts": "starts_at", "doors": "doors_at"}[key]
	}
	return fileKeys.Replace(key)
}

func planItems(problems []venue.Problem) (items []ProblemItem) {
	for _, p := range problems {
		items = append(items, ProblemItem{Field: p.Path, Message: p.Message, Seats: p.Seats, Note: p.Note})
	}
	return items
}

// A PlanSummary is a plan as organizers choose it.
type PlanSummary struct {
	Hash    string    `json:"plan_hash"`
	Name    string    `json:"name"`
	Seats   int       `json:"seat_count"`
	Created time.Time `json:"created_at,omitzero"`
}

// PlanList are an organizer's plans.
type PlanList struct {
	Plans []PlanSummary `json:"plans"`
}

// A PlanUploaded is a plan that was taken.
type PlanUploaded struct {
	PlanSummary
	Notes []ProblemItem `json:"notes" doc:"what is worth knowing of it"`
}

// A PlanParts is what an event can give prices and quantities to.
type PlanParts struct {
	PlanSummary
	Categories []PlanPart `json:"categories"`
	Sections   []PlanPart `json:"sections"`
	Areas      []PlanPart `json:"areas"`
}

// A PlanPart is a category, a section or an area.
type PlanPart struct {
	Key   string `json:"key"`
	Name  string `json:"name"`
	Count int    `json:"count" doc:"seats; of an area places"`
}

// MyOrganizers are those for whom somebody may do something.
type MyOrganizers struct {
	Organizers []MyRole `json:"organizers"`
}

const organizerPath = "/v1/organizer/organizers/{organizer_id}"

func (a *api) organizerRoutes() []route {
	const tag = "Organizers"
	return []route{
		{Method: "GET", Path: "/v1/organizer/organizers", ID: "organizers_list", Who: signedIn, Tag: tag, Summary: "For whom you may do something",
			Answer: MyOrganizers{}, handle: a.organizersList},
		{Method: "GET", Path: organizerPath + "/plans", ID: "plans_list", Who: atLeast(identity.Viewer, "organizer_id"), Tag: tag, Summary: "Seating plans, newest first",
			Answer: PlanList{}, handle: a.plansList},
		{Method: "POST", Path: organizerPath + "/plans", ID: "plan_upload", Who: atLeast(identity.Operator, "organizer_id"), Tag: tag, Summary: "Bring a seating plan",
			Notes: "The body is the file, as it is: ours, pretix or seats.io. A plan is named by its content: the same again is the same. All that is wrong is in problems.",
			Query: []parameter{{"check", "true: say what is wrong, and keep nothing", "string"}}, BodyType: "application/json",
			Answer: PlanUploaded{}, Status: []int{201, 200}, Faults: []fault.Code{fault.Invalid, fault.BodyTooLarge}, Takes: planTakesMax, handle: a.planUpload},
		{Method: "GET", Path: organizerPath + "/plans/{plan_hash}", ID: "plan_parts", Who: atLeast(identity.Viewer, "organizer_id"), Tag: tag,
			Summary: "A plan's categories, sections and areas", Notes: "The whole plan is at /v1/plans/{plan_hash}.", Answer: PlanParts{}, handle: a.planParts},
	}
}

func (a *api) organizersList(w http.ResponseWriter, r *request) error {
	all := MyOrganizers{Organizers: []MyRole{}}
	if a.People != nil {
		var err error
		if all.Organizers, err = a.rolesOf(r); err != nil {
			return err
		}
	}
	return write(w, http.StatusOK, all)
}

func (a *api) plansList(w http.ResponseWriter, r *request) error {
	plans, err := a.Catalog.Plans(r.Context(), r.organizer)
	if err != nil {
		return err
	}
	list := PlanList{Plans: []PlanSummary{}}
	for i := range plans {
		list.Plans = append(list.Plans, showPlan(&plans[i]))
	}
	return write(w, http.StatusOK, list)
}

func showPlan(p *catalog.Plan) PlanSummary {
	return PlanSummary{Hash: p.Hash, Name: p.Name, Seats: p.SeatCount, Created: p.Created}
}

func (a *api) planUpload(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	select {
	case a.planReaders <- struct{}{}:
		defer func() { <-a.planReaders }()
	default:
		return &fault.Error{Code: fault.Busy, Detail: "other plans are being read", RetryAfter: 5 * time.Second}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(planTakesMax)) // a test's writer has none
	body, err := io.ReadAll(http.MaxBytesReader(bare(w), r.Body, venue.FileBytesMax))
	if err != nil {
		return bodyFault(err)
	}
	plan, notes, err := venue.Import(body, venue.ImportOptions{})
	if err != nil {
		return err
	}
	shown := PlanUploaded{PlanSummary: PlanSummary{Hash: plan.Hash(), Name: plan.Name, Seats: len(plan.Seats)}, Notes: planItems(notes)}
	if shown.Notes == nil {
		shown.Notes = []ProblemItem{}
	}
	if asked.Get("check") == "true" {
		return write(w, http.StatusOK, shown)
	}
	if _, err := a.Catalog.PutPlan(r.Context(), r.organizer, plan); err != nil {
		return err
	}
	a.record(r, "plan.upload", shown.Hash, nil)
	w.Header().Set("Location", "/v1/plans/"+shown.Hash)
	return write(w, http.StatusCreated, shown)
}

func (a *api) planParts(w http.ResponseWriter, r *request) error {
	plans, err := a.Catalog.Plans(r.Context(), r.organizer)
	if err != nil {
		return err
	}
	var shown PlanParts
	for i := range plans {
		if plans[i].Hash == r.PathValue("plan_hash") {
			shown.PlanSummary = showPlan(&plans[i])
		}
	}
	if shown.Hash == "" {
		return fault.New(fault.NotFound, "")
	}
	plan, err := a.Catalog.Plan(r.Context(), shown.Hash)
	if err != nil {
		return err
	}
	seats := make([]int, len(plan.Categories))
	for i := range plan.Seats {
		seats[plan.Seats[i].Category]++
	}
	shown.Categories, shown.Sections, shown.Areas = []PlanPart{}, []PlanPart{}, []PlanPart{}
	for i, c := range plan.Categories {
		shown.Categories = append(shown.Categories, PlanPart{c.Key, c.Name, seats[i]})
	}
	for _, s := range plan.Sections {
		shown.Sections = append(shown.Sections, PlanPart{s.Key, s.Name, s.SeatCount})
	}
	for _, area := range plan.Areas {
		shown.Areas = append(shown.Areas, PlanPart{area.ID, area.Name, area.Capacity})
	}
	return write(w, http.StatusOK, shown)
}

// changed lets an event be sold as it is now. What fails is tried again by the program.
func (a *api) changed(ctx context.Context, event id.ID) {
	if a.Rooms != nil {
		a.Rooms.Changed(event)
	}
	if a.EventChanged == nil {
		return
	}
	if err := a.EventChanged(context.WithoutCancel(ctx)); err != nil {
		a.Logger.WarnContext(ctx, "an event that was changed could not be loaded; it will be", "event", event.Text(id.Event), "error", err)
	}
}
