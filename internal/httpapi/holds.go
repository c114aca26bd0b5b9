package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"onsale/internal/fault"
	"onsale/internal/guard"
	"onsale/internal/id"
	"onsale/internal/inventory"
	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// A HoldRequest names what to hold, in one of three ways.
type HoldRequest struct {
	Event    string       `json:"event_id"`
	Seats    []string     `json:"seat_ids,omitempty" doc:"these seats"`
	Area     string       `json:"area_id,omitempty" doc:"places in this area"`
	Quantity int          `json:"quantity,omitempty" doc:"how many places in the area"`
	Best     *BestRequest `json:"best_available,omitempty" doc:"the best seats there are"`
	Exchange *ExchangeOf  `json:"exchange_of,omitempty" doc:"the tickets that these are to take the place of"`
}

// A BestRequest asks for the best available seats.
type BestRequest struct {
	Quantity   int    `json:"quantity"`
	Category   string `json:"category,omitempty" doc:"key of a category; any where missing"`
	Section    string `json:"section,omitempty" doc:"key of a section; any where missing"`
	Adjacency  string `json:"adjacency,omitempty" enum:"together,same_row,same_section,anywhere" doc:"how far from each other at most; anywhere where missing"`
	Accessible int    `json:"accessible,omitempty" doc:"how many of them must be accessible places"`
}

// A Hold as the API shows it.
type Hold struct {
	ID        string    `json:"hold_id"`
	Event     string    `json:"event_id"`
	State     string    `json:"state" enum:"live,released,expired,sold"`
	Seats     []string  `json:"seat_ids,omitempty"`
	Area      string    `json:"area_id,omitempty"`
	Quantity  int       `json:"quantity"`
	Lines     []Line    `json:"lines"`
	Price     Money     `json:"price" doc:"the sum of the lines, fixed by the hold"`
	Created   time.Time `json:"created_at"`
	Expires   time.Time `json:"expires_at"`
	Adjacency string    `json:"adjacency,omitempty" doc:"how closely the seats are together"`
	Orphans   []string  `json:"orphan_seat_ids,omitempty" doc:"free seats that the choice leaves alone"`
	Booking   string    `json:"booking_id,omitempty" doc:"the booking that pays for it"`
	Exchange  string    `json:"exchange_of,omitempty" doc:"the booking whose tickets it is to take the place of"`
}

// A Line is one place and its price.
type Line struct {
	Seat     string `json:"seat_id,omitempty"`
	Category string `json:"category"`
	Face     int64  `json:"face_minor"`
	Fee      int64  `json:"fee_minor"`
	Tax      int64  `json:"tax_minor"`
	Total    int64  `json:"total_minor"`
}

func (a *api) holdMake(w http.ResponseWriter, r *request) error {
	var body HoldRequest
	fields, err := read(w, r, &body)
	if err != nil {
		return err
	}
	event, err := bodyID("event_id", id.Event, body.Event)
	if err != nil {
		return err
	}
	if err := a.limitEvent(guard.Sale, event); err != nil {
		return err
	}
	e, err := a.published(r.Context(), event)
	if err != nil {
		return err
	}
	names, err := a.withPlanOf(r, e)
	if err != nil {
		return err
	}
	hold, err := a.NewID(event.Shard())
	if err != nil {
		return err
	}
	claim := inventory.Claim{ID: hold, Event: event, Customer: r.customer, Key: a.key(r, fields)}
	if err := a.notBlocked(r, e); err != nil {
		return err
	}
	if claim.Session, err = a.admitted(r, e); err != nil {
		return err
	}
	if claim.Exchange, err = exchangeOf(body.Exchange); err != nil {
		return err
	}
	asked := a.Now()
	held, err := a.claim(r, names, claim, body)
	if a.ObserveHold != nil {
		a.ObserveHold(event, a.Now().Sub(asked), fault.CodeOf(err) == fault.Busy)
	}
	if err != nil {
		return a.notLoaded(e, err)
	}
	if held.Repeat {
		if err := a.asNow(r, &held.Hold); err != nil {
			return err
		}
	}
	shown := showHold(names, &held.Hold)
	if held.Step != 0 {
		shown.Adjacency = held.Step.String()
	}
	for _, s := range held.Orphans {
		shown.Orphans = append(shown.Orphans, names.seat(s))
	}
	w.Header().Set("Location", "/v1/holds/"+shown.ID)
	return write(w, http.StatusCreated, shown)
}

// wishFields are the fields of best_available.
var wishFields = []string{"quantity", "category", "section", "adjacency", "accessible"}

// claim makes the hold in the way that the request asks for.
func (a *api) claim(r *request, names planNames, claim inventory.Claim, body HoldRequest) (inventory.Held, error) {
	ways := 0
	for _, asked := range []bool{len(body.Seats) > 0, body.Area != "", body.Best != nil} {
		if asked {
			ways++
		}
	}
	switch {
	case ways != 1:
		return inventory.Held{}, fault.New(fault.Invalid, "name one of seat_ids, area_id with quantity, best_available")
	case body.Quantity != 0 && body.Area == "":
		return inventory.Held{}, &fault.Error{Code: fault.Invalid, Field: "quantity", Detail: "quantity goes with area_id"}
	case body.Best != nil:
		wish, err := wishOf(names.plan, body.Best)
		if err != nil {
			return inventory.Held{}, err
		}
		held, err := a.Inventory.HoldBest(r.Context(), claim, wish)
		var f *fault.Error
		if errors.As(err, &f) && f.Code == fault.Invalid && slices.Contains(wishFields, f.Field) {
			return held, &fault.Error{Code: f.Code, Field: "best_available." + f.Field, Detail: f.Detail, Cause: f.Cause}
		}
		return held, err
	case body.Area != "":
		if body.Quantity < 1 || body.Quantity > ledger.SeatsPerHoldCap {
			return inventory.Held{}, &fault.Error{Code: fault.Invalid, Field: "quantity", Detail: "how many places in the area, at least 1"}
		}
		area := names.areaIndex(body.Area)
		if area < 0 {
			return inventory.Held{}, &fault.Error{Code: fault.SeatUnknown, Field: "area_id", Detail: "the plan has no such area"}
		}
		return a.Inventory.HoldPlaces(r.Context(), claim, area, body.Quantity)
	}
	if len(body.Seats) > ledger.SeatsPerHoldCap {
		return inventory.Held{}, &fault.Error{Code: fault.Invalid, Field: "seat_ids", Detail: "too many seats"}
	}
	layout := names.plan.Layout()
	seats := make([]int32, len(body.Seats))
	for i, name := range body.Seats {
		index, ok := layout.Lookup(name)
		if !ok {
			return inventory.Held{}, &fault.Error{Code: fault.SeatUnknown, Field: "seat_ids", Detail: "the plan has no seat " + quoted(name)}
		}
		seats[i] = index
	}
	return a.Inventory.HoldSeats(r.Context(), claim, seats)
}

func wishOf(plan *venue.Plan, best *BestRequest) (inventory.Wish, error) {
	wish := inventory.Wish{Quantity: best.Quantity, Category: -1, Section: -1, Accessible: best.Accessible}
	var err error
	if wish.Adjacency, err = inventory.ParseAdjacency(best.Adjacency); err != nil {
		return wish, &fault.Error{Code: fault.Invalid, Field: "best_available.adjacency", Detail: err.Error()}
	}
	if best.Category != "" {
		for i, c := range plan.Categories {
			if c.Key == best.Category {
				wish.Category = i
			}
		}
		if wish.Category < 0 {
			return wish, &fault.Error{Code: fault.Invalid, Field: "best_available.category", Detail: "the plan has no category " + quoted(best.Category)}
		}
	}
	if best.Section != "" {
		for i, s := range plan.Sections {
			if s.Key == best.Section {
				wish.Section = i
			}
		}
		if wish.Section < 0 {
			return wish, &fault.Error{Code: fault.Invalid, Field: "best_available.section", Detail: "the plan has no section " + quoted(best.Section)}
		}
	}
	return wish, nil
}

func quoted(text string) string { return "“" + clipped(text) + "”" }

// showHold is a hold as the API shows it.
func showHold(names planNames, h *ledger.Hold) Hold {
	shown := Hold{
		ID: h.ID.Text(id.Hold), Event: h.Event.Text(id.Event), State: h.State.String(), Area: names.area(h.Area), Quantity: len(h.Lines),
		Price: Money{h.Total(), h.Currency}, Created: h.Created.Std(), Expires: h.Expires.Std(),
	}
	if h.Order != 0 {
		shown.Booking = h.Order.Text(id.Order)
	}
	if h.Exchange != 0 {
		shown.Exchange = h.Exchange.Text(id.Order)
	}
	for _, l := range h.Lines {
		line := Line{Category: names.plan.Categories[l.Category].Key, Face: l.Face, Fee: l.Fee, Tax: l.Tax, Total: l.Total}
		if h.Area < 0 {
			line.Seat = names.seat(l.Seat)
			shown.Seats = append(shown.Seats, line.Seat)
		}
		shown.Lines = append(shown.Lines, line)
	}
	return shown
}

// asNow shows a hold whose time is up as expired, whether or not anybody has swept it (I4).
func (a *api) asNow(r *request, h *ledger.Hold) error {
	if h.State != ledger.HoldLive {
		return nil
	}
	now, err := a.Ledger.Now(r.Context())
	if err == nil && !h.Live(now) {
		h.State = ledger.HoldExpired
	}
	return err
}

// holdNow answers with a hold as it is now.
func (a *api) holdNow(w http.ResponseWriter, r *request, h *ledger.Hold) error {
	names, err := a.withPlan(r, h.Event)
	if err != nil {
		return err
	}
	if err := a.asNow(r, h); err != nil {
		return err
	}
	return write(w, http.StatusOK, showHold(names, h))
}

func (a *api) holdGet(w http.ResponseWriter, r *request) error { return a.holdNow(w, r, r.hold) }

// holdCommand gives a command about a hold to the ledger and answers with the hold.
func (a *api) holdCommand(w http.ResponseWriter, r *request, command ledger.Command) error {
	result, err := a.Commands.Do(r.Context(), command)
	if err != nil {
		return err
	}
	if result.Fault != nil {
		return result.Fault
	}
	return a.holdNow(w, r, result.Hold)
}

func (a *api) holdRelease(w http.ResponseWriter, r *request) error {
	return a.holdCommand(w, r, ledger.Release{Hold: r.hold.ID, Customer: r.customer})
}

func (a *api) holdExtend(w http.ResponseWriter, r *request) error {
	return a.holdCommand(w, r, ledger.Extend{Hold: r.hold.ID, Customer: r.customer})
}
