package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"onsale/internal/booking"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
)

// A RefundRequest asks for tickets to be given back.
type RefundRequest struct {
	Tickets []string `json:"ticket_ids,omitempty" doc:"which; all that can be given back where missing"`
}

// An OrganizerRefundRequest gives a customer's money back.
type OrganizerRefundRequest struct {
	Tickets []string `json:"ticket_ids,omitempty" doc:"which; all that are valid where missing"`
	Fee     int64    `json:"fee_kept_minor,omitempty" doc:"what is kept of all together, in minor units"`
	Reason  string   `json:"reason" doc:"for the books and the customer"`
	Used    bool     `json:"used_too,omitempty" doc:"tickets that were used, too; only for an owner"`
}

// A Refund as the API shows it.
type Refund struct {
	ID      string    `json:"refund_id"`
	Booking string    `json:"booking_id"`
	State   string    `json:"state" enum:"REQUESTED,REFUNDED,SEAT_RELEASED" doc:"REQUESTED: the tickets are void, the money is on its way; REFUNDED: it is back; SEAT_RELEASED: and the seats can be bought again"`
	Back    bool      `json:"money_back" doc:"whether the provider has given all of the amount back"`
	Tickets []string  `json:"ticket_ids,omitempty"`
	Amount  Money     `json:"amount"`
	Kept    int64     `json:"fee_kept_minor,omitempty"`
	Rule    string    `json:"rule,omitempty" doc:"by which that is kept, as text"`
	By      *KeptRule `json:"kept_by,omitempty" doc:"the same for programs"`
	Reason  string    `json:"reason"`
	Refused string    `json:"refused,omitempty" doc:"the provider's final no: the organizer must look"`
	Created time.Time `json:"created_at"`
}

// A KeptRule is the rule by which something was kept of what was given back.
type KeptRule struct {
	Kind     string `json:"kind" enum:"customer,organizer,exchange" doc:"customer: the event's rule of then; organizer: as they said; exchange: it went into another booking"`
	FeeBP    int64  `json:"fee_bp,omitempty" doc:"of customer: a share of what the ticket cost, in basis points: 1000 is 10 %"`
	FeePlace int64  `json:"fee_minor,omitempty" doc:"of customer: beside that, for each ticket"`
}

// Refunds are what one request gives back: more than one where the money comes from several payments.
type Refunds struct {
	Refunds []Refund `json:"refunds"`
	Total   Money    `json:"total"`
}

// RefundList is a page of refunds.
type RefundList struct {
	Refunds []Refund `json:"refunds"`
	Next    string   `json:"next_cursor,omitempty"`
}

var refundFaults = []fault.Code{
	fault.NotRefundable, fault.KeyMissing, fault.KeyReused, fault.TicketUnknown, fault.Conflict, fault.PaymentInProgress, fault.Invalid, fault.OutcomeUnknown,
}

// refundRoutes are those of money that goes back.
func (a *api) refundRoutes() []route {
	return []route{
		{Method: "POST", Path: "/v1/bookings/{booking_id}/refund", ID: "booking_refund", Who: ownerOf("booking_id"), Tag: "Bookings", Summary: "Give tickets back",
			Key: keyRequired, Notes: "Within the event's rule, which says until when and what is kept. The tickets are void at once; the money follows.",
			Body: RefundRequest{}, Answer: Refunds{}, Status: []int{201}, Faults: refundFaults, Takes: refundTimeMax, handle: a.bookingRefund},
		{Method: "GET", Path: "/v1/bookings/{booking_id}/refunds", ID: "booking_refunds", Who: ownerOf("booking_id"), Tag: "Bookings", Summary: "What was given back of a booking",
			Answer: RefundList{}, handle: a.bookingRefunds},
		{Method: "POST", Path: "/v1/organizer/bookings/{booking_id}/refund", ID: "organizer_refund", Who: atLeast(identity.Operator, "booking_id"), Tag: "Organizers",
			Summary: "Give a customer's money back", Key: keyRequired, Notes: "At any time, whatever the event's rule says. Used tickets only by an owner.",
			Body: OrganizerRefundRequest{}, Answer: Refunds{}, Status: []int{201}, Faults: refundFaults[1:], Takes: refundTimeMax, handle: a.organizerRefund},
		{Method: "POST", Path: "/v1/organizer/refunds/{refund_id}/retry", ID: "refund_retry", Who: atLeast(identity.Operator, "refund_id"), Tag: "Organizers",
			Summary: "Try a refund again that the provider refused", Answer: Refund{}, Faults: []fault.Code{fault.Conflict, fault.OutcomeUnknown},
			Takes: refundTimeMax, handle: a.refundRetry},
		{Method: "GET", Path: "/v1/organizer/events/{event_id}/refunds", ID: "refunds_refused", Who: atLeast(identity.Viewer, "event_id"), Tag: "Organizers",
			Summary: "Refunds that the provider refused, newest first", Query: []parameter{pageQuery}, Answer: RefundList{}, Faults: []fault.Code{fault.Invalid},
			handle: a.refundsRefused},
	}
}

const (
	refundTimeMax = time.Minute
	refundsPage   = 50
)

func (a *api) bookingRefund(w http.ResponseWriter, r *request) error {
	var body RefundRequest
	fields, err := read(w, r, &body)
	if err != nil {
		return err
	}
	tickets, err := ticketIDs(body.Tickets)
	if err != nil {
		return err
	}
	return a.refund(w, r, booking.RefundRequest{
		Order: r.order.ID, Customer: r.customer, By: ledger.ByCustomer, Tickets: tickets, Key: a.key(r, withPath(fields, r.order.ID.Text(id.Order))),
	})
}

func (a *api) organizerRefund(w http.ResponseWriter, r *request) error {
	var body OrganizerRefundRequest
	fields, err := read(w, r, &body)
	if err != nil {
		return err
	}
	tickets, err := ticketIDs(body.Tickets)
	if err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(body.Reason) == "" || len(body.Reason) > ledger.TextBytesMax:
		return &fault.Error{Code: fault.Invalid, Field: "reason", Detail: "say why, in at most 512 bytes"}
	case body.Fee < 0:
		return &fault.Error{Code: fault.Invalid, Field: "fee_kept_minor", Detail: "at least 0"}
	case body.Used && !r.role.May(identity.Owner):
		return fault.New(fault.RoleMissing, "used tickets are given back by an owner")
	}
	err = a.refund(w, r, booking.RefundRequest{
		Order: r.order.ID, Customer: r.customer, By: ledger.ByOrganizer, Tickets: tickets, Reason: body.Reason, Fee: body.Fee, Used: body.Used,
		Key: a.key(r, withPath(fields, r.order.ID.Text(id.Order))),
	})
	if err == nil {
		a.record(r, "booking.refund", r.order.ID.Text(id.Order), nil)
	}
	return err
}

func (a *api) refund(w http.ResponseWriter, r *request, asked booking.RefundRequest) error {
	refunds, err := a.Booking.Refund(r.Context(), asked)
	if err != nil {
		return err
	}
	shown := Refunds{Total: Money{Currency: refunds[0].Currency}}
	for i := range refunds {
		shown.Refunds = append(shown.Refunds, showRefund(&refunds[i]))
		shown.Total.AmountMinor += refunds[i].Amount
	}
	return write(w, http.StatusCreated, shown)
}

func showRefund(f *ledger.Refund) Refund {
	shown := Refund{
		ID: f.ID.Text(id.Refund), Booking: f.Order.Text(id.Order), State: f.State.String(), Amount: Money{f.Amount, f.Currency},
		Back: f.State != ledger.RefundRequested, Kept: f.FeeKept, Rule: f.Rule, Reason: f.Reason, Refused: f.Refused, Created: f.Created.Std(), By: keptRule(f.Rule),
	}
	for _, t := range f.Tickets {
		shown.Tickets = append(shown.Tickets, t.Text(id.Ticket))
	}
	return shown
}

// keptRule reads what the ledger wrote down as a refund's rule, "customer 1000 bp + 200". What it does not know, as of a
// refund of money alone, is no rule.
func keptRule(text string) *KeptRule {
	var r KeptRule
	switch {
	case text == "organizer", text == "exchange":
		r.Kind = text
	default:
		if n, err := fmt.Sscanf(text, "customer %d bp + %d", &r.FeeBP, &r.FeePlace); n != 2 || err != nil {
			return nil
		}
		r.Kind = "customer"
	}
	return &r
}

func ticketIDs(texts []string) ([]id.ID, error) {
	if len(texts) > ledger.SeatsPerHoldCap {
		return nil, &fault.Error{Code: fault.Invalid, Field: "ticket_ids", Detail: "too many at once"}
	}
	var all []id.ID
	for _, text := range texts {
		t, err := bodyID("ticket_ids", id.Ticket, text)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (a *api) bookingRefunds(w http.ResponseWriter, r *request) error {
	refunds, err := a.Ledger.RefundsOf(r.Context(), r.order.ID)
	if err != nil {
		return err
	}
	list := RefundList{Refunds: []Refund{}}
	for i := range refunds {
		list.Refunds = append(list.Refunds, showRefund(&refunds[i]))
	}
	return write(w, http.StatusOK, list)
}

func (a *api) refundRetry(w http.ResponseWriter, r *request) error {
	f, err := a.Booking.RetryRefund(r.Context(), r.refund.ID)
	if err != nil {
		return err
	}
	a.record(r, "refund.retry", f.ID.Text(id.Refund), nil)
	return write(w, http.StatusOK, showRefund(&f))
}

// refundsRefused lists an event's refused refunds. There are few in a shard: those of other events are left out here.
func (a *api) refundsRefused(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	var before id.ID
	if text := asked.Get("cursor"); text != "" {
		if before, err = bodyID("cursor", id.Refund, text); err != nil {
			return err
		}
	}
	refunds, err := a.Ledger.RefusedRefunds(r.Context(), before, refundsPage)
	if err != nil {
		return err
	}
	list := RefundList{Refunds: []Refund{}}
	for i := range refunds {
		o, err := a.Ledger.Order(r.Context(), refunds[i].Order)
		if err != nil {
			return err
		}
		if o.Event == r.event.ID {
			list.Refunds = append(list.Refunds, showRefund(&refunds[i]))
		}
	}
	if len(refunds) == refundsPage {
		list.Next = refunds[refundsPage-1].ID.Text(id.Refund)
	}
	return write(w, http.StatusOK, list)
}
