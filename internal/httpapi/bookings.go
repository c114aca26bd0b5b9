package httpapi

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"onsale/internal/booking"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/ticket"
)

// A BookingRequest asks to pay for a hold.
type BookingRequest struct {
	Hold       string     `json:"hold_id"`
	Token      string     `json:"payment_token,omitempty" doc:"names the means of payment at the provider; not needed where nothing is to be paid"`
	AllowOther bool       `json:"accept_other_seats,omitempty" doc:"take other seats of the same price and at least as good, should these be lost while the payment is made"`
	Attendees  []Attendee `json:"attendees,omitempty" doc:"who will come, one for each place; needed where the event wants names and documents"`
}

// A Booking is an order as the API shows it.
type Booking struct {
	ID       string    `json:"booking_id"`
	Hold     string    `json:"hold_id"`
	Event    string    `json:"event_id"`
	State    string    `json:"state" enum:"PENDING,PAID,FAILED,EXPIRED,REFUNDED"`
	Reason   string    `json:"reason,omitempty" doc:"why it is FAILED, EXPIRED or REFUNDED"`
	Price    Money     `json:"price"`
	Rescued  bool      `json:"rescued,omitempty" doc:"the seats were lost while paying and taken again, or others in their place"`
	Tickets  []Ticket  `json:"tickets,omitempty"`
	Created  time.Time `json:"created_at"`
	Updated  time.Time `json:"updated_at"`
	Provider string    `json:"provider,omitempty"`
	Exchange string    `json:"exchange_of,omitempty" doc:"the booking whose tickets it took the place of"`
	Credit   int64     `json:"credit_minor,omitempty" doc:"what came over from there; price is what was paid beside it"`

	Action *PaymentAction `json:"payment_action,omitempty" doc:"what the customer has to do before the payment can go on; in the answer to POST only"`
}

// A PaymentAction is what a customer has to do before a payment can go on (3-D Secure).
type PaymentAction struct {
	ClientSecret string `json:"client_secret,omitempty" doc:"for the provider's script on the page"`
	RedirectURL  string `json:"redirect_url,omitempty" doc:"where the browser goes"`
}

// A Ticket as the API shows it.
type Ticket struct {
	ID       string `json:"ticket_id"`
	Booking  string `json:"booking_id"`
	Event    string `json:"event_id"`
	State    string `json:"state" enum:"VALID,USED,VOID"`
	Seat     string `json:"seat_id,omitempty"`
	Area     string `json:"area_id,omitempty"`
	Category string `json:"category"`
	Price    Money  `json:"price"`
	Test     bool   `json:"test,omitempty" doc:"paid in a sandbox: no right of entry"`
	Was      string `json:"was_ticket_id,omitempty" doc:"the ticket as which it was passed on"`
	QR       string `json:"qr_text,omitempty" doc:"what the QR code says; only where one ticket is asked for"`
}

// BookingList is a page of bookings.
type BookingList struct {
	Bookings []Booking `json:"bookings"`
	Next     string    `json:"next_cursor,omitempty"`
}

const bookingsPage = 20

func (a *api) bookingMake(w http.ResponseWriter, r *request) error {
	var body BookingRequest
	fields, err := read(w, r, &body)
	if err != nil {
		return err
	}
	hold, err := bodyID("hold_id", id.Hold, body.Hold)
	if err != nil {
		return err
	}
	if err := a.checkToken(r, hold, body.Token); err != nil {
		return err
	}
	return a.book(w, r, booking.Request{
		Customer: r.customer, Hold: hold, Token: body.Token, AllowOther: body.AllowOther, Key: a.key(r, fields),
	}, body.Attendees)
}

// bookingPending answers a booking that its provider has not decided, with what the customer has to do for it.
func (a *api) bookingPending(w http.ResponseWriter, r *request, b booking.Booked) error {
	w.Header().Set("Retry-After", "2")
	shown, err := a.showBooking(r, &b.Order)
	if err != nil {
		return err
	}
	if b.Action != nil {
		shown.Action = &PaymentAction{ClientSecret: b.Action.ClientSecret, RedirectURL: b.Action.RedirectURL}
		w.Header().Set("Cache-Control", "no-store")
	}
	w.Header().Set("Location", "/v1/bookings/"+shown.ID)
	return write(w, http.StatusAccepted, shown)
}

// checkToken refuses a means of payment that no provider can take, before a payment begins for it.
func (a *api) checkToken(r *request, hold id.ID, token string) error {
	bad := &fault.Error{Code: fault.Invalid, Field: "payment_token", Detail: "names a means of payment at the provider"}
	if len(token) > payment.TokenBytesMax || strings.ContainsFunc(token, unicode.IsControl) {
		return bad
	}
	h, err := a.Ledger.Hold(r.Context(), hold)
	switch {
	case err != nil || h.Customer != r.customer: // the ledger says what is wrong with the hold
	case h.Exchange != 0:
		return &fault.Error{Code: fault.Invalid, Field: "hold_id", Detail: "this hold is for an exchange: send it to /v1/bookings/" + h.Exchange.Text(id.Order) + "/exchange"}
	case token == "" && h.Total() > 0:
		bad.Detail = "is missing: it " + bad.Detail
		return bad
	}
	return nil
}

// bookingEnded is the fault of a booking that is EXPIRED. Its hold may go on, where only the payment was given up.
func (a *api) bookingEnded(r *request, o *ledger.Order) error {
	ended := &fault.Error{Code: fault.HoldExpired, Detail: "the booking ended: " + o.Reason, Order: o.ID}
	now, err := a.Ledger.Now(r.Context())
	if err != nil {
		return err
	}
	h, err := a.Ledger.Hold(r.Context(), o.Hold)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return ended
	case err != nil:
		return err
	case h.Live(now):
		return &fault.Error{Code: fault.Conflict, Detail: "this payment was given up, and nothing was charged; the hold goes on: book again with a new key", Order: o.ID}
	}
	return ended
}

func (a *api) booking(w http.ResponseWriter, r *request, status int, o ledger.Order) error {
	shown, err := a.showBooking(r, &o)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		w.Header().Set("Location", "/v1/bookings/"+shown.ID)
	}
	return write(w, status, shown)
}

func (a *api) showBooking(r *request, o *ledger.Order) (Booking, error) {
	names, err := a.withPlan(r, o.Event)
	if err != nil {
		return Booking{}, err
	}
	shown := Booking{
		ID: o.ID.Text(id.Order), Hold: o.Hold.Text(id.Hold), Event: o.Event.Text(id.Event), State: o.State.String(), Reason: o.Reason,
		Price: Money{o.Amount, o.Currency}, Rescued: o.Rescued, Created: o.Created.Std(), Updated: o.Updated.Std(), Provider: o.Provider,
	}
	if o.Exchange != 0 {
		shown.Exchange, shown.Credit = o.Exchange.Text(id.Order), o.Credit
	}
	for i := range o.Tickets {
		shown.Tickets = append(shown.Tickets, a.showTicket(names, &o.Tickets[i], o.Currency))
	}
	return shown, nil
}

func (a *api) showTicket(names planNames, t *ledger.Ticket, currency string) Ticket {
	shown := Ticket{
		ID: t.ID.Text(id.Ticket), Booking: t.Order.Text(id.Order), Event: t.Event.Text(id.Event), State: t.State.String(),
		Seat: names.seat(t.Seat), Area: names.area(t.Area), Category: names.plan.Categories[t.Category].Key,
		Price: Money{t.Total, currency}, Test: a.Demo,
	}
	if t.Was != 0 {
		shown.Was = t.Was.Text(id.Ticket)
	}
	return shown
}

func (a *api) bookingGet(w http.ResponseWriter, r *request) error {
	return a.booking(w, r, http.StatusOK, *r.order)
}

func (a *api) bookingsList(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	var before id.ID
	if text := asked.Get("cursor"); text != "" {
		if before, err = bodyID("cursor", id.Order, text); err != nil {
			return err
		}
	}
	orders, err := a.Ledger.OrdersOf(r.Context(), r.customer, before, bookingsPage+1)
	if err != nil {
		return err
	}
	list := BookingList{Bookings: []Booking{}}
	for i := range orders[:min(len(orders), bookingsPage)] {
		shown, err := a.showBooking(r, &orders[i])
		if err != nil {
			return err
		}
		list.Bookings = append(list.Bookings, shown)
	}
	if len(orders) > bookingsPage {
		list.Next = list.Bookings[bookingsPage-1].ID
	}
	return write(w, http.StatusOK, list)
}

func (a *api) ticketGet(w http.ResponseWriter, r *request) error {
	t := r.ticket
	text, err := a.sign(t)
	if err != nil {
		return err
	}
	if strings.HasSuffix(r.PathValue("ticket_id"), ".png") {
		return ticketPicture(w, text)
	}
	names, err := a.withPlan(r, t.Event)
	if err != nil {
		return err
	}
	o, err := a.Ledger.Order(r.Context(), t.Order)
	if err != nil {
		return err
	}
	shown := a.showTicket(names, t, o.Currency)
	shown.QR = text
	return write(w, http.StatusOK, shown)
}

// sign makes the text of a ticket's QR code, when it is shown; a VOID one has none.
func (a *api) sign(t *ledger.Ticket) (string, error) {
	if t.State == ledger.TicketVoid {
		return "", nil
	}
	key, err := a.TicketKey()
	if err != nil {
		return "", err
	}
	said := ticket.Ticket{ID: int64(t.ID), EventID: int64(t.Event), Index: t.Seat, Test: key.Test}
	if t.Area >= 0 {
		said.Index, said.Area = t.Area, true
	}
	return ticket.Sign(key, said)
}

const picturePixels = 512

func ticketPicture(w http.ResponseWriter, text string) error {
	if text == "" {
		return fault.New(fault.Conflict, "a void ticket has no code")
	}
	png, err := ticket.PNG(text, picturePixels)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "private, no-store")
	send(w, http.StatusOK, "image/png", png)
	return nil
}

func (a *api) paymentWebhook(w http.ResponseWriter, r *request) error {
	take, ok := a.Webhooks[r.PathValue("provider")]
	if !ok {
		return fault.New(fault.NotFound, "no such payment provider is in use")
	}
	body, err := io.ReadAll(http.MaxBytesReader(bare(w), r.Body, WebhookBytesMax))
	if err != nil {
		return bodyFault(err)
	}
	err = take(r.Context(), r.Header, body)
	for _, sender := range []error{payment.ErrSignature, payment.ErrStale, payment.ErrWrongAccount, payment.ErrMalformed} {
		if errors.Is(err, sender) {
			return &fault.Error{Code: fault.BadRequest, Detail: strings.TrimPrefix(sender.Error(), "payment: "), Cause: err}
		}
	}
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	send(w, http.StatusOK, plainText, []byte("ok\n"))
	return nil
}
