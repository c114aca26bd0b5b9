package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"onsale/internal/booking"
	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/guard"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// Waitlist keeps the wishes of those who found nothing; booking.Waitlist is it.
type Waitlist interface {
	Add(ctx context.Context, r booking.WishRequest) (ledger.Wish, error)
	Withdraw(ctx context.Context, event, customer id.ID) (ledger.Wish, error)
	Mine(ctx context.Context, event, customer id.ID) (booking.Standing, error)
}

// A WaitlistRequest is what a customer wishes for.
type WaitlistRequest struct {
	Quantity   int      `json:"quantity" doc:"places"`
	Least      int      `json:"least_quantity,omitempty" doc:"fewer will do, down to this; all or nothing where it is missing"`
	Categories []string `json:"categories,omitempty" doc:"keys; any where it is missing"`
	Sections   []string `json:"sections,omitempty" doc:"keys; any where it is missing"`
	Together   bool     `json:"together,omitempty" doc:"only neighbours"`
	PriceMax   int64    `json:"price_max_minor,omitempty" doc:"of one place, with everything; any where it is missing"`
	Queue      string   `json:"queue_id,omitempty" doc:"who stood in the line goes before who came later"`
}

// A Wish is how a wish stands.
type Wish struct {
	ID         string    `json:"wish_id"`
	Event      string    `json:"event_id"`
	State      string    `json:"state" enum:"waiting,offered,taken,ended,withdrawn"`
	Quantity   int       `json:"quantity"`
	Least      int       `json:"least_quantity"`
	Categories []string  `json:"categories,omitempty"`
	Sections   []string  `json:"sections,omitempty"`
	Together   bool      `json:"together,omitempty"`
	PriceMax   int64     `json:"price_max_minor,omitempty"`
	Offers     int       `json:"offer_count" doc:"so far; after three that were not taken the wish ends"`
	Hold       *Hold     `json:"offer,omitempty" doc:"pay for it like for any hold, before it expires"`
	Created    time.Time `json:"created_at"`
	Updated    time.Time `json:"updated_at"`
}

const waitlistPath = "/v1/events/{event_id}/waitlist"

func (a *api) waitlistRoutes() []route {
	const tag = "Waitlist"
	return []route{
		{Method: "POST", Path: waitlistPath, ID: "waitlist_join", Class: guard.Sale, Who: signedIn, Key: keyOptional, Tag: tag, Summary: "Leave a wish for seats that come back",
			Notes: "One wish for each customer and event: another one replaces it, and keeps its place. Who gets an offer is told by mail, and sees it here.",
			Body:  WaitlistRequest{}, Answer: Wish{}, Status: []int{201},
			Faults: []fault.Code{fault.EventUnknown, fault.Invalid, fault.NotOnSale, fault.Conflict, fault.Blocked, fault.KeyReused, fault.OutcomeUnknown}, handle: a.waitlistJoin},
		{Method: "GET", Path: waitlistPath, ID: "waitlist_get", Who: signedIn, Tag: tag, Summary: "Your wish, and what is offered to you", Answer: Wish{},
			Faults: []fault.Code{fault.EventUnknown, fault.WishUnknown}, handle: a.waitlistGet},
		{Method: "DELETE", Path: waitlistPath, ID: "waitlist_leave", Who: signedIn, Tag: tag, Summary: "Take your wish back",
			Notes: "Twice is harmless. While something is offered to you release its hold first.", Answer: Wish{},
			Faults: []fault.Code{fault.EventUnknown, fault.WishUnknown, fault.Conflict, fault.OutcomeUnknown}, handle: a.waitlistLeave},
	}
}

var errNoWaitlist = fault.New(fault.Conflict, "the event has no waitlist")

func (a *api) waitlistJoin(w http.ResponseWriter, r *request) error {
	e, err := a.eventOf(r)
	if err != nil {
		return err
	}
	var body WaitlistRequest
	fields, err := read(w, r, &body)
	if err != nil {
		return err
	}
	if a.Waitlist == nil || !e.Waitlist {
		return errNoWaitlist
	}
	if err := a.notBlocked(r, e); err != nil {
		return err
	}
	names, err := a.withPlanOf(r, e)
	if err != nil {
		return err
	}
	asked, err := wishRequest(names.plan, &body)
	if err != nil {
		return err
	}
	asked.Event, asked.Customer, asked.Key = e.ID, r.customer, a.key(r, fields)
	asked.Position = a.inLine(e, r.customer, body.Queue)
	wish, err := a.Waitlist.Add(r.Context(), asked)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/events/"+e.ID.Text(id.Event)+"/waitlist")
	return write(w, http.StatusCreated, showWish(names, &booking.Standing{Wish: wish}))
}

// inLine is a customer's position in an event's line, by their queue ticket; -1 where there is none.
func (a *api) inLine(e *catalog.Event, customer id.ID, queueID string) int64 {
	if a.Rooms == nil || queueID == "" || len(queueID) > queueIDBytesMax {
		return -1
	}
	s, err := a.Rooms.Place(queueID)
	if err != nil || s.Event != e.ID || s.Customer != customer || !s.Known {
		return -1
	}
	return s.Position
}

// wishRequest reads categories and sections by the plan.
func wishRequest(plan *venue.Plan, body *WaitlistRequest) (asked booking.WishRequest, err error) {
	asked = booking.WishRequest{Quantity: body.Quantity, Least: body.Least, Together: body.Together, PriceMax: body.PriceMax}
	bad := func(field, detail string) error {
		return &fault.Error{Code: fault.Invalid, Field: field, Detail: detail}
	}
	switch {
	case body.Quantity < 1 || body.Quantity > ledger.SeatsPerHoldCap:
		return asked, bad("quantity", "how many places, at least 1")
	case body.Least < 0 || body.Least > body.Quantity:
		return asked, bad("least_quantity", "at most quantity")
	case body.PriceMax < 0:
		return asked, bad("price_max_minor", "not below 0")
	case len(body.Categories) > ledger.WishNamesMax || len(body.Sections) > ledger.WishNamesMax:
		return asked, bad("categories", "at most 64 categories and as many sections; leave them out for any")
	}
	for _, key := range body.Categories {
		i := slices.IndexFunc(plan.Categories, func(c venue.Category) bool { return c.Key == key })
		if i < 0 {
			return asked, bad("categories", "the plan has no category "+quoted(key))
		}
		asked.Categories = append(asked.Categories, int16(i))
	}
	for _, key := range body.Sections {
		i := slices.IndexFunc(plan.Sections, func(s venue.Section) bool { return s.Key == key })
		if i < 0 {
			return asked, bad("sections", "the plan has no section "+quoted(key))
		}
		asked.Sections = append(asked.Sections, int16(i))
	}
	return asked, nil
}

func showWish(names planNames, s *booking.Standing) Wish {
	w := &s.Wish
	shown := Wish{
		ID: w.ID.Text(id.Wish), Event: w.Event.Text(id.Event), State: w.State.String(), Quantity: w.Quantity, Least: w.Least, Together: w.Together,
		PriceMax: w.PriceMax, Offers: w.Offers, Created: w.Created.Std(), Updated: w.Updated.Std(),
	}
	for _, c := range w.Categories {
		shown.Categories = append(shown.Categories, names.plan.Categories[c].Key)
	}
	for _, k := range w.Sections {
		shown.Sections = append(shown.Sections, names.plan.Sections[k].Key)
	}
	if s.Hold != nil {
		hold := showHold(names, s.Hold)
		shown.Hold = &hold
	}
	return shown
}

// listed is the event of the path, for routes about a wish.
func (a *api) listed(r *request) (*catalog.Event, planNames, error) {
	e, err := a.eventOf(r)
	if err != nil {
		return nil, planNames{}, err
	}
	if a.Waitlist == nil {
		return nil, planNames{}, fault.New(fault.WishUnknown, "")
	}
	names, err := a.withPlanOf(r, e)
	return e, names, err
}

func (a *api) waitlistGet(w http.ResponseWriter, r *request) error {
	e, names, err := a.listed(r)
	if err != nil {
		return err
	}
	mine, err := a.Waitlist.Mine(r.Context(), e.ID, r.customer)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, showWish(names, &mine))
}

func (a *api) waitlistLeave(w http.ResponseWriter, r *request) error {
	e, names, err := a.listed(r)
	if err != nil {
		return err
	}
	wish, err := a.Waitlist.Withdraw(r.Context(), e.ID, r.customer)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, showWish(names, &booking.Standing{Wish: wish}))
}
