package httpapi

import (
	"context"
	"net/http"
	"time"

	"onsale/internal/booking"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
)

// An Attendee is who will come with a ticket. The number of a document is checked and never stored: what is kept is a keyed
// hash of it and its last four characters.
type Attendee struct {
	Name           string `json:"name"`
	DocumentType   string `json:"document_type,omitempty" enum:"cn_resident_id,passport"`
	DocumentNumber string `json:"document_number,omitempty"`
}

// attendees checks who will come: one for each place, where any are named or the event wants documents.
func (a *api) attendees(r *request, documents bool, places int, named []Attendee) ([]identity.Attendee, error) {
	if len(named) == 0 && !documents {
		return nil, nil
	}
	all := make([]identity.Attendee, len(named))
	for i, n := range named {
		all[i] = identity.Attendee{Name: n.Name, DocumentType: identity.DocumentType(n.DocumentType), DocumentNumber: n.DocumentNumber}
	}
	return a.People.CheckAttendees(r.Context(), places, documents, all)
}

// book pays for a hold, or exchanges tickets for it, and answers with the booking.
func (a *api) book(w http.ResponseWriter, r *request, asked booking.Request, named []Attendee) error {
	if err := a.withAttendees(r, &asked, named); err != nil {
		return err
	}
	booked, err := a.Booking.Book(r.Context(), asked)
	if err != nil {
		return err
	}
	o := booked.Order
	a.evidence(r, o.ID, o.Event, time.Time{})
	switch o.State {
	case ledger.OrderPaid, ledger.OrderRefunded:
		return a.booking(w, r, http.StatusCreated, o)
	case ledger.OrderPending:
		return a.bookingPending(w, r, booked)
	case ledger.OrderFailed:
		switch o.Reason {
		case ledger.ReasonWrongAmount, ledger.ReasonEventCancelled, ledger.ReasonNotExchangeable:
			return &fault.Error{Code: fault.Conflict, Detail: "the payment is given back: " + o.Reason, Order: o.ID}
		}
		return &fault.Error{Code: fault.PaymentDeclined, Detail: "the provider said: " + o.Reason, Order: o.ID}
	}
	return a.bookingEnded(r, &o)
}

// withAttendees adds who will come. Their names are written down, under the order's number, before anything is begun, and
// their documents count in the ledger.
func (a *api) withAttendees(r *request, asked *booking.Request, named []Attendee) error {
	h, err := a.Ledger.Hold(r.Context(), asked.Hold)
	if err != nil || h.Customer != r.customer {
		return nil // the ledger says what is wrong with the hold
	}
	e, err := a.Catalog.Event(r.Context(), h.Event)
	if err != nil {
		return err
	}
	all, err := a.attendees(r, e.Documents, len(h.Lines), named)
	if err != nil || len(all) == 0 {
		return err
	}
	asked.Documents = a.People.DocumentHashes(h.Event, all)
	asked.Before = func(ctx context.Context, order id.ID) error {
		return a.People.PutAttendees(ctx, order, h.Event, h.Customer, all)
	}
	asked.Unused = func(ctx context.Context, order id.ID) {
		if err := a.People.DropAttendees(context.WithoutCancel(ctx), order); err != nil {
			a.Logger.WarnContext(ctx, "names of an order that was not made will be deleted later", "order", order.Text(id.Order), "error", err)
		}
	}
	return nil
}

// record writes what an organizer did into the audit log. What was done is done: a log that is away is an error of ours.
func (a *api) record(r *request, action, target string, details map[string]string) {
	if a.People == nil {
		return
	}
	actor := identity.Actor{Customer: r.customer, Role: r.role}
	if err := a.People.Record(context.WithoutCancel(r.Context()), actor, r.organizer, action, target, details); err != nil {
		a.Logger.ErrorContext(r.Context(), "alert: the audit log could not be written", "action", action, "target", target, "request", r.id, "error", err)
	}
}
