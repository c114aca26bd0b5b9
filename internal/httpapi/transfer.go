package httpapi

import (
	"net/http"

	"onsale/internal/booking"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
)

// A TransferRequest passes a ticket on.
type TransferRequest struct {
	Email    string    `json:"email" doc:"of whom it goes to: they sign in with this address"`
	Attendee *Attendee `json:"attendee,omitempty" doc:"who will come; needed where the event wants names or documents"`
}

// A Transferred is what became of a ticket that was passed on. The new one is shown to its owner only.
type Transferred struct {
	Ticket string `json:"ticket_id" doc:"the new ticket; the old one is void"`
	Was    string `json:"was_ticket_id"`
}

// TicketList is a page of tickets.
type TicketList struct {
	Tickets []Ticket `json:"tickets"`
	Next    string   `json:"next_cursor,omitempty"`
}

const ticketsPage = 50

// transferRoutes are those of tickets as their owners have them.
func (a *api) transferRoutes() []route {
	return []route{
		{Method: "GET", Path: "/v1/tickets", ID: "tickets_list", Who: signedIn, Tag: "Tickets", Summary: "Your tickets, those passed on to you too, newest first",
			Query: []parameter{pageQuery}, Answer: TicketList{}, Faults: []fault.Code{fault.Invalid}, handle: a.ticketsList},
		{Method: "POST", Path: "/v1/tickets/{ticket_id}/transfer", ID: "ticket_transfer", Who: ownerOf("ticket_id"), Tag: "Tickets", Summary: "Pass a ticket on",
			Key: keyRequired, Notes: "The old ticket is void, its QR code opens no door any more; the new one belongs to whom it went, who gets a mail. It counts under their limits.",
			Body: TransferRequest{}, Answer: Transferred{}, Status: []int{201},
			Faults: []fault.Code{fault.KeyMissing, fault.KeyReused, fault.NotTransferable, fault.Conflict, fault.LimitReached, fault.Invalid, fault.OutcomeUnknown},
			handle: a.ticketTransfer},
		{Method: "POST", Path: "/v1/bookings/{booking_id}/resend", ID: "booking_resend", Who: ownerOf("booking_id"), Tag: "Bookings", Summary: "Send the tickets by mail again",
			Status: []int{202}, AnswerType: "text/plain", Faults: []fault.Code{fault.Conflict, fault.TooManyRequests, fault.Busy}, handle: a.bookingResend},
	}
}

func (a *api) ticketTransfer(w http.ResponseWriter, r *request) error {
	var body TransferRequest
	fields, err := read(w, r, &body)
	if err != nil {
		return err
	}
	email, err := identity.ParseEmail(body.Email)
	if err != nil {
		return err
	}
	t := *r.ticket
	e, err := a.Catalog.Event(r.Context(), t.Event)
	if err != nil {
		return err
	}
	if err := a.mayPassOn(r, &t); err != nil {
		return err
	}
	var attendees []identity.Attendee
	if body.Attendee != nil || e.Documents {
		if attendees, err = a.attendees(r, e.Documents, 1, listOf(body.Attendee)); err != nil {
			return err
		}
	}
	to, err := a.People.EnsureCustomer(r.Context(), email)
	if err != nil {
		return err
	}
	asked := booking.Transfer{Ticket: t.ID, Customer: r.customer, To: to, Key: a.key(r, withPath(fields, t.ID.Text(id.Ticket)))}
	if len(attendees) > 0 {
		asked.Document = a.People.DocumentHashes(t.Event, attendees)[0]
	}
	passed, err := a.Booking.Transfer(r.Context(), asked)
	if err != nil {
		return err
	}
	who := identity.Attendee{}
	if len(attendees) > 0 {
		who = attendees[0]
	}
	// Sent again with the same key it is done again, but not over whom the receiver has passed it on to since.
	if passed.State != ledger.TicketVoid {
		place := identity.Place{Order: passed.Order, Event: passed.Event, Customer: passed.Customer, Place: passed.Place}
		if err := a.People.MoveAttendee(r.Context(), place, who); err != nil {
			return err
		}
	}
	return write(w, http.StatusCreated, Transferred{Ticket: passed.ID.Text(id.Ticket), Was: t.ID.Text(id.Ticket)})
}

// mayPassOn looks before anybody is made, so that one who may not pass a ticket on makes nobody. Of a ticket that was passed
// on already the ledger judges: it may be a repeat, whose answer stays when the time for it is over.
func (a *api) mayPassOn(r *request, t *ledger.Ticket) error {
	if t.State == ledger.TicketVoid {
		return nil
	}
	row, err := a.Ledger.Event(r.Context(), t.Event)
	if err != nil {
		return err
	}
	now, err := a.Ledger.Now(r.Context())
	if err != nil {
		return err
	}
	if row.Transfers.Until <= now {
		return fault.New(fault.NotTransferable, "")
	}
	return nil
}

func listOf(a *Attendee) []Attendee {
	if a == nil {
		return nil
	}
	return []Attendee{*a}
}

func (a *api) ticketsList(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	var before id.ID
	if text := asked.Get("cursor"); text != "" {
		if before, err = bodyID("cursor", id.Ticket, text); err != nil {
			return err
		}
	}
	tickets, err := a.Ledger.TicketsOf(r.Context(), r.customer, before, ticketsPage+1)
	if err != nil {
		return err
	}
	list := TicketList{Tickets: []Ticket{}}
	for i := range tickets[:min(len(tickets), ticketsPage)] {
		t := &tickets[i]
		names, err := a.withPlan(r, t.Event)
		if err != nil {
			return err
		}
		row, err := a.Ledger.Event(r.Context(), t.Event)
		if err != nil {
			return err
		}
		list.Tickets = append(list.Tickets, a.showTicket(names, t, row.Currency))
	}
	if len(tickets) > ticketsPage {
		list.Next = list.Tickets[ticketsPage-1].ID
	}
	return write(w, http.StatusOK, list)
}

func (a *api) bookingResend(w http.ResponseWriter, r *request) error {
	if a.Resend == nil {
		return fault.New(fault.Busy, "no mail is sent from here")
	}
	if err := a.Resend(r.Context(), r.order.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
