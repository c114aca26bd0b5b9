package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"onsale/internal/booking"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// An ExchangeOf names the tickets that a hold is to take the place of.
type ExchangeOf struct {
	Booking string   `json:"booking_id"`
	Tickets []string `json:"ticket_ids,omitempty" doc:"all valid ones of the booking where missing"`
}

// An ExchangeQuote is what an exchange costs, in minor units of the hold's currency.
type ExchangeQuote struct {
	Booking string `json:"booking_id" doc:"whose tickets are given up"`
	Old     int64  `json:"old_minor" doc:"what they cost"`
	Fee     int64  `json:"fee_minor" doc:"what is kept of that"`
	New     int64  `json:"new_minor" doc:"what the new ones cost"`
	Due     int64  `json:"due_minor" doc:"to be paid"`
	Back    int64  `json:"back_minor" doc:"given back"`
}

// An ExchangeRequest swaps tickets for those of a hold.
type ExchangeRequest struct {
	Hold      string     `json:"hold_id" doc:"made with exchange_of"`
	Token     string     `json:"payment_token,omitempty" doc:"needed where a difference is due"`
	Attendees []Attendee `json:"attendees,omitempty"`
}

// exchangeRoutes are those of tickets that are swapped for others.
func (a *api) exchangeRoutes() []route {
	return []route{
		{Method: "GET", Path: "/v1/holds/{hold_id}/exchange", ID: "exchange_quote", Who: ownerOf("hold_id"), Tag: "Bookings", Summary: "What an exchange costs",
			Answer: ExchangeQuote{}, Faults: []fault.Code{fault.Invalid}, handle: a.exchangeQuote},
		{Method: "POST", Path: "/v1/bookings/{booking_id}/exchange", ID: "booking_exchange", Who: ownerOf("booking_id"), Tag: "Bookings", Summary: "Swap tickets for others",
			Key: keyRequired, Notes: "Hold the new places first, with exchange_of. A difference that is due is paid with payment_token; one that is too much is given back. " +
				"The answer is the new booking. Until it is paid the old tickets stay valid.",
			Body: ExchangeRequest{}, Answer: Booking{}, Status: []int{201, 202},
			Faults: []fault.Code{fault.KeyMissing, fault.PaymentDeclined, fault.HoldUnknown, fault.HoldExpired, fault.PaymentInProgress, fault.NotExchangeable,
				fault.NotOnSale, fault.LimitReached, fault.KeyReused, fault.Invalid, fault.Conflict, fault.PaymentUnavailable, fault.OutcomeUnknown},
			Takes: payment.AttemptTimeoutMax + answerTimeMax, handle: a.bookingExchange},
	}
}

// exchangeOf reads what a hold is to take the place of.
func exchangeOf(of *ExchangeOf) (ledger.Exchange, error) {
	if of == nil {
		return ledger.Exchange{}, nil
	}
	order, err := bodyID("exchange_of.booking_id", id.Order, of.Booking)
	if err != nil {
		return ledger.Exchange{}, err
	}
	tickets, err := ticketIDs(of.Tickets)
	return ledger.Exchange{Order: order, Tickets: tickets}, err
}

func (a *api) exchangeQuote(w http.ResponseWriter, r *request) error {
	q, err := a.Booking.Quote(r.Context(), r.customer, r.hold.ID)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, ExchangeQuote{
		Booking: r.hold.Exchange.Text(id.Order), Old: q.Old, Fee: q.Fee, New: q.New, Due: q.Due, Back: q.Back,
	})
}

func (a *api) bookingExchange(w http.ResponseWriter, r *request) error {
	var body ExchangeRequest
	fields, err := read(w, r, &body)
	if err != nil {
		return err
	}
	hold, err := bodyID("hold_id", id.Hold, body.Hold)
	if err != nil {
		return err
	}
	if len(body.Token) > payment.TokenBytesMax || strings.ContainsFunc(body.Token, unicode.IsControl) {
		return &fault.Error{Code: fault.Invalid, Field: "payment_token", Detail: "names a means of payment at the provider"}
	}
	h, err := a.Ledger.Hold(r.Context(), hold)
	if err == nil && h.Customer == r.customer && h.Exchange != r.order.ID {
		return &fault.Error{Code: fault.Invalid, Field: "hold_id", Detail: "this hold exchanges nothing of this booking; hold with exchange_of"}
	}
	return a.book(w, r, booking.Request{
		Customer: r.customer, Hold: hold, Token: body.Token, Key: a.key(r, withPath(fields, r.order.ID.Text(id.Order))),
	}, body.Attendees)
}

// withPath adds what the path names to the fields of an idempotent request, so that the same key for another thing is told
// from a repeat.
func withPath(fields map[string]json.RawMessage, thing string) map[string]json.RawMessage {
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	fields["path"] = json.RawMessage(strconv.Quote(thing))
	return fields
}
