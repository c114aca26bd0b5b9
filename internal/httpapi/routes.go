package httpapi

import (
	"net/http"
	"slices"
	"time"

	"onsale/internal/fault"
	"onsale/internal/guard"
	"onsale/internal/payment"
)

// keyRule says whether a route takes an Idempotency-Key.
type keyRule uint8

const (
	keyNone keyRule = iota
	keyOptional
	keyRequired
)

// A route is a line of the table.
type route struct {
	Method, Path string
	ID           string // in metrics, logs and the OpenAPI document
	Tag          string
	Summary      string
	Notes        string
	Who          who         // may use it; see who.go
	Class        guard.Class // to the limits. Defaults to Staff for members, else Plain
	Foreign      bool        // programs of other origins may send it: it is signed, and cookies mean nothing to it
	Key          keyRule
	Query        []parameter
	LongQuery    bool     // up to callbackBytesMax
	Body         any      // a value of the request's type, nil for none
	BodyMax      int64    // bytes. Defaults to BodyBytesMax
	AlsoBody     string   // another type that the body may have
	BodyType     string   // of a body that is read as it is
	Answer       any      // a value of the answer's type, nil where it has none of ours
	Or           any      // of its other type, nil for none
	AnswerType   string   // where Answer is nil
	AlsoTypes    []string // that it can have, too
	Status       []int    // on success; the first is the usual one
	Faults       []fault.Code
	Hidden       bool // not in the OpenAPI document

	Takes   time.Duration // at most, to find the answer. Defaults to answerTimeMax
	Sending time.Duration // at most, to send it. Defaults to sendTimeMax

	handle func(http.ResponseWriter, *request) error
}

// A parameter of a query.
type parameter struct {
	Name, Doc, Kind string
}

var (
	pageQuery  = parameter{"cursor", "where to go on: next_cursor of the page before", "string"}
	holdFaults = []fault.Code{
		fault.EventUnknown, fault.SeatUnknown, fault.SeatsTaken, fault.PlacesTaken, fault.NoSeatsFound, fault.LimitReached,
		fault.NotAdmitted, fault.AdmissionExpired, fault.HoldRest, fault.Blocked,
		fault.SoldOut, fault.NotOnSale, fault.Paused, fault.OrphanSeat, fault.KeyReused, fault.Invalid, fault.OutcomeUnknown,
		// Of the tickets that it is to take the place of.
		fault.OrderUnknown, fault.WrongCustomer, fault.TicketUnknown, fault.NotExchangeable, fault.Conflict, fault.PaymentInProgress,
	}
)

// table is the API: every route there is.
func (a *api) table() []route {
	all := []route{
		{Method: "GET", Path: "/{$}", ID: "home", Who: public, Hidden: true, handle: a.home},
		{Method: "GET", Path: "/openapi.json", ID: "openapi", Who: public, Hidden: true, handle: a.openapi},
		{Method: "GET", Path: "/docs", ID: "docs", Who: public, Hidden: true, handle: a.readable},
		{Method: "GET", Path: "/healthz", ID: "health", Class: guard.Free, Who: public, Tag: "Running", Summary: "Whether the program runs", AnswerType: "text/plain", handle: a.health},
		{Method: "GET", Path: "/.well-known/jwks.json", ID: "jwks", Who: public, Tag: "Tickets", Summary: "The public keys that check tickets",
			AnswerType: "application/json", handle: a.jwks},

		{Method: "GET", Path: "/v1/events", ID: "events_list", Who: public, Tag: "Events", Summary: "Find events, by start",
			Query: []parameter{{"query", "words in title, show, performers, venue or city, best first; case, accents and a typo do not matter", "string"},
				{"city", "only this city", "string"}, {"availability", "on_sale: can be bought now; available: and has something left", "string"},
				{"from", "starting at or after this time (RFC 3339)", "date-time"}, {"to", "starting before this time", "date-time"}, pageQuery},
			Answer: EventList{}, Faults: []fault.Code{fault.Invalid}, handle: a.eventsList},
		{Method: "GET", Path: "/v1/events/{event_id}", ID: "event_get", Who: public, Tag: "Events", Summary: "One event: when, where, prices, rules",
			Answer: Event{}, Faults: []fault.Code{fault.EventUnknown}, handle: a.eventGet},
		{Method: "GET", Path: "/v1/plans/{plan_hash}", ID: "plan_get", Who: public, Tag: "Events", Summary: "A seating plan, immutable",
			Notes:      "Seats stand in the order of their index. Cacheable for ever.",
			AnswerType: "application/json", Faults: []fault.Code{fault.NotFound}, Sending: planSendTimeMax, handle: a.planGet},
		{Method: "GET", Path: "/v1/events/{event_id}/seats", ID: "seats_get", Who: public, Tag: "Events", Summary: "Which seats are available",
			Notes: "2 bits a seat, in the order of the plan: 0 available, 1 held, 2 sold or not for sale. The same for everybody. " +
				"As JSON (base64) or application/octet-stream, by Accept. With since: what has changed, or 410 where that is not known any more.",
			Query:  []parameter{{"since", "answer the difference to this version", "integer"}},
			Answer: Seats{}, Or: SeatsDelta{}, AlsoTypes: []string{octets}, Faults: []fault.Code{fault.EventUnknown, fault.NotOnSale, fault.Invalid, fault.Gone},
			handle: a.seatsGet},
		{Method: "GET", Path: "/v1/events/{event_id}/seats/stream", ID: "seats_stream", Who: public, Tag: "Events", Summary: "Changes of seats as they happen",
			Notes:      "Server-sent events: seats (id is the version), version (each second), reset (take a new picture). Resumes by Last-Event-ID.",
			AnswerType: "text/event-stream", Faults: []fault.Code{fault.EventUnknown, fault.NotOnSale}, Takes: untilClosed, handle: a.seatsStream},

		{Method: "POST", Path: "/v1/holds", ID: "hold_make", Class: guard.Sale, Who: signedIn, Tag: "Holds", Summary: "Hold seats or places for a few minutes", Key: keyOptional,
			Notes: "Name seats (seat_ids), or an area and a quantity, or ask for the best available. All or nothing.",
			Body:  HoldRequest{}, Answer: Hold{}, Status: []int{201}, Faults: holdFaults, handle: a.holdMake},
		{Method: "GET", Path: "/v1/holds/{hold_id}", ID: "hold_get", Who: ownerOf("hold_id"), Tag: "Holds", Summary: "A hold as it is now",
			Answer: Hold{}, Faults: []fault.Code{fault.HoldUnknown, fault.WrongCustomer}, handle: a.holdGet},
		{Method: "DELETE", Path: "/v1/holds/{hold_id}", ID: "hold_release", Who: ownerOf("hold_id"), Tag: "Holds", Summary: "Give a hold back",
			Answer: Hold{}, Faults: []fault.Code{fault.HoldUnknown, fault.WrongCustomer, fault.PaymentInProgress, fault.Conflict, fault.OutcomeUnknown},
			handle: a.holdRelease},
		{Method: "POST", Path: "/v1/holds/{hold_id}/extend", ID: "hold_extend", Who: ownerOf("hold_id"), Tag: "Holds", Summary: "Ask for more time, once",
			Answer: Hold{}, Faults: []fault.Code{fault.HoldUnknown, fault.WrongCustomer, fault.HoldExpired, fault.HoldNotExtendable, fault.PaymentInProgress,
				fault.OutcomeUnknown},
			handle: a.holdExtend},

		{Method: "POST", Path: "/v1/bookings", ID: "booking_make", Class: guard.Sale, Who: signedIn, Tag: "Bookings", Summary: "Pay for a hold", Key: keyRequired,
			Notes: "201: paid. 202: the provider has not decided, ask again. 402: declined; another card is another booking of the same hold. " +
				"After a lost answer send the same request with the same key.",
			Body: BookingRequest{}, Answer: Booking{}, Status: []int{201, 202},
			Faults: []fault.Code{fault.KeyMissing, fault.PaymentDeclined, fault.HoldUnknown, fault.WrongCustomer, fault.HoldExpired, fault.PaymentInProgress,
				fault.NotOnSale, fault.LimitReached, fault.KeyReused, fault.Invalid, fault.Conflict, fault.PaymentUnavailable, fault.OutcomeUnknown},
			Takes: payment.AttemptTimeoutMax + answerTimeMax, handle: a.bookingMake},
		{Method: "GET", Path: "/v1/bookings", ID: "bookings_list", Who: signedIn, Tag: "Bookings", Summary: "Your bookings, newest first",
			Query: []parameter{pageQuery}, Answer: BookingList{}, Faults: []fault.Code{fault.Invalid}, handle: a.bookingsList},
		{Method: "GET", Path: "/v1/bookings/{booking_id}", ID: "booking_get", Who: ownerOf("booking_id"), Tag: "Bookings", Summary: "A booking as it is now",
			Answer: Booking{}, Faults: []fault.Code{fault.OrderUnknown, fault.WrongCustomer}, handle: a.bookingGet},

		{Method: "GET", Path: "/v1/tickets/{ticket_id}", ID: "ticket_get", Who: who{kind: owner, thing: "ticket_id", behind: ".png"}, Tag: "Tickets", Summary: "A ticket, with the text of its QR code",
			Notes:  "With .png behind the id: the QR code as a picture. Both only for the ticket's customer.",
			Answer: Ticket{}, AlsoTypes: []string{"image/png"}, Faults: []fault.Code{fault.TicketUnknown, fault.WrongCustomer, fault.Conflict},
			handle: a.ticketGet},

		{Method: "POST", Path: "/v1/payments/{provider}/webhook", ID: "payment_webhook", Class: guard.Free, Foreign: true, Who: public, Tag: "Running", Summary: "Notices of a payment provider",
			Notes: "Signed by the provider; harmless twice, late or out of order.", AnswerType: "text/plain",
			Faults: []fault.Code{fault.BodyTooLarge, fault.NotFound, fault.PaymentUnavailable, fault.OutcomeUnknown}, handle: a.paymentWebhook},
	}
	return slices.Concat(all, a.queueRoutes(), a.waitlistRoutes(), a.signInRoutes(), a.meRoutes(), a.refundRoutes(), a.exchangeRoutes(), a.transferRoutes(), a.checkInRoutes(),
		a.organizerRoutes(), a.organizerEventRoutes(), a.organizerSaleRoutes(), a.organizerRoomRoutes(), a.organizerGateRoutes(), a.organizerPeopleRoutes(), a.endpointRoutes())
}
