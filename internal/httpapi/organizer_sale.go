package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
)

// Limits of what is looked through for one page: what is not found by then is on the next.
const (
	ordersPage  = 50
	ordersRead  = 200   // at once
	ordersScan  = 2_000 // for one page
	nameFindMin = 2     // letters of a name
)

// A Buyer is a customer as their organizer knows them.
type Buyer struct {
	ID    string `json:"customer_id"`
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
}

// A Named is who comes with a ticket.
type Named struct {
	Place         int32  `json:"place"`
	Name          string `json:"name"`
	DocumentType  string `json:"document_type,omitempty"`
	DocumentLast4 string `json:"document_last4,omitempty"`
}

// An OrganizerBooking is a booking with who made it.
type OrganizerBooking struct {
	Booking
	Buyer     Buyer   `json:"customer"`
	Refunded  int64   `json:"refunded_minor" doc:"what has been given back of it"`
	Attendees []Named `json:"attendees,omitempty"`
}

// OrganizerBookingList is a page of bookings.
type OrganizerBookingList struct {
	Bookings []OrganizerBooking `json:"bookings"`
	Next     string             `json:"next_cursor,omitempty" doc:"there may be more, also where this page has none"`
}

// EventFigures count what became of an event.
type EventFigures struct {
	Event      string            `json:"event_id"`
	Currency   string            `json:"currency"`
	Orders     OrderFigures      `json:"bookings"`
	Categories []CategoryFigures `json:"categories"`
	Paid       int64             `json:"paid_minor" doc:"captured"`
	Refunded   int64             `json:"refunded_minor"`
	Kept       int64             `json:"fees_kept_minor" doc:"of refunds and exchanges"`
	Requested  int               `json:"refunds_requested_count"`
	Refused    int               `json:"refunds_refused_count" doc:"by the provider: somebody must look"`
	Conflicts  int               `json:"checkin_conflicts_count" doc:"let in without a network, and should not have been"`
	Left       *Left             `json:"left,omitempty"`
}

// OrderFigures are bookings by state.
type OrderFigures struct {
	Pending  int `json:"pending_count"`
	Paid     int `json:"paid_count"`
	Failed   int `json:"failed_count"`
	Expired  int `json:"expired_count"`
	Refunded int `json:"refunded_count"`
}

// CategoryFigures are the tickets of a category.
type CategoryFigures struct {
	Category string `json:"category"`
	Valid    int    `json:"valid_count"`
	Used     int    `json:"used_count"`
	Void     int    `json:"void_count"`
	Total    int64  `json:"total_minor" doc:"of those that are not void"`
}

// An EventAudit is what a recount found.
type EventAudit struct {
	OK     bool `json:"ok"`
	Report any  `json:"report"`
}

// auditsMax is how many recounts run at once on this node: each reads everything of an event.
const (
	auditsMax    = 1
	auditTimeMax = 2 * time.Minute
)

func (a *api) organizerSaleRoutes() []route {
	const tag = "Organizers"
	find := []parameter{{"booking_id", "only this one", "string"}, {"customer_id", "only this customer's", "string"}, {"email", "only of the customer with this address", "string"},
		{"name", "the customer's or an attendee's, or a part of it", "string"}, {"state", "PENDING, PAID, FAILED, EXPIRED or REFUNDED", "string"},
		{"seat_id", "with a ticket of this seat, also of one that is void", "string"}, pageQuery}
	return []route{
		{Method: "GET", Path: organizerEvent + "/bookings", ID: "organizer_bookings", Who: atLeast(identity.Viewer, "event_id"), Tag: tag, Summary: "Find bookings of an event",
			Query: find, Answer: OrganizerBookingList{}, Faults: []fault.Code{fault.Invalid}, handle: a.organizerBookings},
		{Method: "GET", Path: organizerEvent + "/export", ID: "bookings_export", Who: atLeast(identity.Viewer, "event_id"), Tag: tag, Summary: "All bookings and tickets of an event",
			Notes: "As CSV, a line for each ticket, for spreadsheets: a cell that a spreadsheet would take for a formula begins with an apostrophe. Or as JSON.",
			Query: []parameter{{"format", "csv (where it is missing) or json", "string"}}, Answer: OrganizerBookingList{}, AlsoTypes: []string{"text/csv"},
			Faults: []fault.Code{fault.Invalid}, Takes: exportTimeMax, handle: a.bookingsExport},
		{Method: "GET", Path: organizerEvent + "/figures", ID: "event_figures", Who: atLeast(identity.Viewer, "event_id"), Tag: tag, Summary: "What became of an event so far",
			Answer: EventFigures{}, handle: a.eventFigures},
		{Method: "POST", Path: organizerEvent + "/audit", ID: "event_audit", Who: atLeast(identity.Operator, "event_id"), Tag: tag, Summary: "Recount an event: whether every promise was kept",
			Answer: EventAudit{}, Faults: []fault.Code{fault.NotFound}, Takes: auditTimeMax, handle: a.eventAudit},
		{Method: "GET", Path: "/v1/organizer/bookings/{booking_id}", ID: "organizer_booking", Who: atLeast(identity.Viewer, "booking_id"), Tag: tag, Summary: "A booking with who made it",
			Answer: OrganizerBooking{}, handle: a.organizerBookingGet},
		{Method: "GET", Path: "/v1/organizer/bookings/{booking_id}/history", ID: "booking_history", Who: atLeast(identity.Viewer, "booking_id"), Tag: tag,
			Summary: "Everything that happened to a booking", Answer: BookingHistory{}, handle: a.bookingHistory},
	}
}

// buyer is a customer as their organizer knows them; who was erased has only their id.
func (a *api) buyer(r *request, number id.ID) (Buyer, error) {
	b := Buyer{ID: number.Text(id.Customer)}
	if a.People == nil {
		return b, nil
	}
	p, err := a.People.Profile(r.Context(), number)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return b, err
	}
	b.Name, b.Email = p.Name, string(p.Email())
	return b, nil
}

func (a *api) showOrganizerBooking(r *request, o *ledger.Order) (OrganizerBooking, error) {
	booking, err := a.showBooking(r, o)
	if err != nil {
		return OrganizerBooking{}, err
	}
	shown := OrganizerBooking{Booking: booking}
	refunds, err := a.Ledger.RefundsOf(r.Context(), o.ID)
	if err != nil {
		return shown, err
	}
	for i := range refunds {
		if refunds[i].State != ledger.RefundRequested {
			shown.Refunded += refunds[i].Amount
		}
	}
	if shown.Buyer, err = a.buyer(r, o.Customer); err != nil || a.People == nil {
		return shown, err
	}
	named, err := a.People.Attendees(r.Context(), o.ID)
	for _, n := range named {
		shown.Attendees = append(shown.Attendees, Named{n.Place, n.Name, string(n.DocumentType), n.DocumentLast4})
	}
	return shown, err
}

// A finder is what bookings are looked for by.
type finder struct {
	filter ledger.OrderFilter
	order  id.ID
	name   string // folded; "" for any
	seat   int32  // -1 for any
	none   bool   // nobody has that address
}

var orderStates = []ledger.OrderState{ledger.OrderPending, ledger.OrderPaid, ledger.OrderFailed, ledger.OrderExpired, ledger.OrderRefunded}

// finder reads a query.
func (a *api) finder(r *request) (f finder, err error) {
	asked, err := parameters(r)
	if err != nil {
		return f, err
	}
	f.seat = -1
	if f.filter.After, err = cursorID(asked.Get("cursor"), id.Order); err != nil {
		return f, err
	}
	if text := asked.Get("booking_id"); text != "" {
		if f.order, err = bodyID("booking_id", id.Order, text); err != nil {
			return f, err
		}
	}
	if text := asked.Get("customer_id"); text != "" {
		if f.filter.Customer, err = bodyID("customer_id", id.Customer, text); err != nil {
			return f, err
		}
	}
	if text := asked.Get("state"); text != "" {
		i := slices.IndexFunc(orderStates, func(s ledger.OrderState) bool { return s.String() == text })
		if i < 0 {
			return f, &fault.Error{Code: fault.Invalid, Field: "state", Detail: "PENDING, PAID, FAILED, EXPIRED or REFUNDED"}
		}
		f.filter.State = orderStates[i]
	}
	if f.name = fold(asked.Get("name")); f.name != "" && len([]rune(f.name)) < nameFindMin {
		return f, &fault.Error{Code: fault.Invalid, Field: "name", Detail: "at least two letters"}
	}
	if text := asked.Get("seat_id"); text != "" {
		names, err := a.withPlanOf(r, r.event)
		if err != nil {
			return f, err
		}
		index, ok := names.plan.Layout().Lookup(text)
		if !ok {
			return f, &fault.Error{Code: fault.Invalid, Field: "seat_id", Detail: "the plan has no seat " + quoted(text)}
		}
		f.seat = index
	}
	return f, a.findEmail(r, &f, asked.Get("email"))
}

// findEmail turns an address into its customer.
func (a *api) findEmail(r *request, f *finder, text string) error {
	if text == "" {
		return nil
	}
	email, err := identity.ParseEmail(text)
	if err != nil {
		return err
	}
	if a.People == nil {
		f.none = true
		return nil
	}
	number, err := a.People.CustomerOf(r.Context(), email)
	switch {
	case fault.CodeOf(err) == fault.NotFound, err == nil && f.filter.Customer != 0 && f.filter.Customer != number:
		f.none = true
		return nil
	case err != nil:
		return err
	}
	f.filter.Customer = number
	return nil
}

// fold makes names comparable.
func fold(text string) string { return strings.Join(strings.Fields(strings.ToLower(text)), " ") }

// fits says whether an order is looked for, as far as the order alone says so.
func (f *finder) fits(o *ledger.Order) bool {
	return (f.order == 0 || o.ID == f.order) &&
		(f.seat < 0 || slices.ContainsFunc(o.Tickets, func(t ledger.Ticket) bool { return t.Seat == f.seat }))
}

// named says whether an order's people have the name that is looked for.
func (f *finder) named(b *OrganizerBooking) bool {
	return f.name == "" || strings.Contains(fold(b.Buyer.Name), f.name) ||
		slices.ContainsFunc(b.Attendees, func(n Named) bool { return strings.Contains(fold(n.Name), f.name) })
}

func (a *api) organizerBookings(w http.ResponseWriter, r *request) error {
	f, err := a.finder(r)
	if err != nil {
		return err
	}
	list := OrganizerBookingList{Bookings: []OrganizerBooking{}}
	if f.none {
		return write(w, http.StatusOK, list)
	}
	if f.order != 0 { // the order itself, wherever it stands
		f.filter.After = max(f.filter.After, f.order-1)
	}
	for scanned := 0; ; {
		orders, err := a.Ledger.OrdersOfEvent(r.Context(), r.event.ID, f.filter, ordersRead)
		if err != nil {
			return err
		}
		for i := range orders {
			o := &orders[i]
			f.filter.After = o.ID
			scanned++
			if f.fits(o) {
				shown, err := a.showOrganizerBooking(r, o)
				if err != nil {
					return err
				}
				if f.named(&shown) {
					list.Bookings = append(list.Bookings, shown)
				}
			}
			if f.order != 0 && o.ID >= f.order {
				return write(w, http.StatusOK, list)
			}
			if len(list.Bookings) == ordersPage || scanned == ordersScan {
				list.Next = o.ID.Text(id.Order)
				return write(w, http.StatusOK, list)
			}
		}
		if len(orders) < ordersRead {
			return write(w, http.StatusOK, list)
		}
	}
}

func (a *api) organizerBookingGet(w http.ResponseWriter, r *request) error {
	shown, err := a.showOrganizerBooking(r, r.order)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, shown)
}

func (a *api) eventFigures(w http.ResponseWriter, r *request) error {
	f, err := a.Ledger.Figures(r.Context(), r.event.ID)
	if err != nil {
		return err
	}
	names, err := a.withPlanOf(r, r.event)
	if err != nil {
		return err
	}
	shown := EventFigures{
		Event: r.event.ID.Text(id.Event), Currency: r.event.Currency, Paid: f.Paid, Refunded: f.Refunded, Kept: f.Kept, Requested: f.RefundsRequested,
		Refused: f.RefundsRefused, Conflicts: f.Conflicts, Left: a.event(r.event).Left, Categories: []CategoryFigures{},
		Orders: OrderFigures{
			Pending: f.Orders[ledger.OrderPending], Paid: f.Orders[ledger.OrderPaid], Failed: f.Orders[ledger.OrderFailed],
			Expired: f.Orders[ledger.OrderExpired], Refunded: f.Orders[ledger.OrderRefunded],
		},
	}
	for _, t := range f.Tickets {
		shown.Categories = append(shown.Categories, CategoryFigures{names.plan.Categories[t.Category].Key, t.Valid, t.Used, t.Void, t.Total})
	}
	return write(w, http.StatusOK, shown)
}

func (a *api) eventAudit(w http.ResponseWriter, r *request) error {
	if a.Audit == nil {
		return fault.New(fault.NotFound, "recounts are not made from here: use onsale audit")
	}
	select {
	case a.audits <- struct{}{}:
		defer func() { <-a.audits }()
	default:
		return &fault.Error{Code: fault.Busy, Detail: "another recount is running", RetryAfter: 10 * time.Second}
	}
	report, ok, err := a.Audit(r.Context(), r.event.ID)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, EventAudit{OK: ok, Report: report})
}
