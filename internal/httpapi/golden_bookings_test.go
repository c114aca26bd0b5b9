package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment/sandbox"
)

// payFor asks to book a hold.
func (w *world) payFor(customer, hold, token, key string) ask {
	body, err := json.Marshal(BookingRequest{Hold: hold, Token: token})
	w.must(err)
	return ask{method: "POST", path: "/v1/bookings", customer: customer, key: key, body: string(body)}
}

func TestGoldenBookingMake(t *testing.T) {
	w := newWorld(t)
	one := w.hold("ann", w.seatsBody("now", "A-A-1", "A-A-2"))
	var b, again Booking
	w.into(w.golden("booking_make/paid", w.payFor("ann", one.ID, sandbox.TokenSure, "one")), 201, &b)
	w.into(w.golden("booking_make/paid_again", w.payFor("ann", one.ID, sandbox.TokenSure, "one")), 201, &again)
	if again.ID != b.ID || len(again.Tickets) != 2 || again.Tickets[0] != b.Tickets[0] {
		t.Errorf("I5: a repeat answers %+v, the first %+v", again, b)
	}
	w.golden("booking_make/key_reused", w.payFor("ann", one.ID, "tok_other", "one"))
	other := w.payFor("ann", one.ID, sandbox.TokenSure, "one")
	other.body = strings.Replace(other.body, "{", `{"accept_other_seats":true,`, 1)
	w.golden("booking_make/key_reused_new_field", other)
	w.golden("booking_make/hold_paid_already", w.payFor("ann", one.ID, sandbox.TokenSure, "two"))
	w.golden("booking_make/wrong_customer", w.payFor("ben", one.ID, sandbox.TokenSure, "one"))
	w.golden("booking_make/hold_unknown", w.payFor("ann", "hold_0000000000005", sandbox.TokenSure, "three"))
	w.golden("booking_make/hold_no_id", w.payFor("ann", "mine", sandbox.TokenSure, "three"))
	w.golden("booking_make/no_key", w.payFor("ann", one.ID, sandbox.TokenSure, ""))
	w.golden("booking_make/no_token", w.payFor("", one.ID, sandbox.TokenSure, "one"))
	basic := w.payFor("", one.ID, sandbox.TokenSure, "one")
	basic.header = http.Header{"Authorization": {"Basic YTpi"}}
	w.golden("booking_make/basic", basic)
	basic.header = http.Header{"Authorization": {"Bearer a.b.c"}}
	w.golden("booking_make/token_invalid", basic)
	basic.header = http.Header{"Authorization": {"Bearer " + w.token("ann"), "Bearer " + w.token("ben")}}
	w.golden("booking_make/two_tokens", basic)

	free := w.hold("ann", w.seatsBody("cheap", "A-A-1"))
	w.golden("booking_make/free", ask{method: "POST", path: "/v1/bookings", customer: "ann", key: "free", body: fmt.Sprintf(`{"hold_id":%q}`, free.ID)})

	text := w.payFor("ann", one.ID, sandbox.TokenSure, "four")
	text.header = http.Header{"Content-Type": {"text/json"}}
	w.golden("booking_make/type", text)
	large := w.payFor("ann", one.ID, strings.Repeat("t", BodyBytesMax), "four")
	w.golden("booking_make/body_too_large", large)
}

func TestGoldenBookingRefused(t *testing.T) {
	w := newWorld(t)
	one := w.hold("ann", w.seatsBody("now", "A-A-1", "A-A-2"))
	for name, token := range map[string]string{"payment_token_missing": "", "payment_token_long": strings.Repeat("t", 257), "payment_token_control": "tok\u0001"} {
		w.golden("booking_make/"+name, w.payFor("ann", one.ID, token, "none"))
	}
	// Nothing has begun by then: no order, and the hold's time is as it was.
	var list BookingList
	w.into(w.ask(ask{path: "/v1/bookings", customer: "ann"}), 200, &list)
	if len(list.Bookings) != 0 {
		t.Errorf("a payment that cannot be made has begun an order: %+v", list)
	}
	w.golden("booking_make/declined", w.payFor("ann", one.ID, declined, "one"))
	w.golden("booking_make/declined_again", w.payFor("ann", one.ID, declined, "one"))
	w.golden("booking_make/declined_other_card", w.payFor("ann", one.ID, sandbox.TokenSure, "two"))

	two := w.hold("ann", w.seatsBody("now", "A-A-3", "A-A-4"))
	pending := w.golden("booking_make/pending", w.payFor("ann", two.ID, pendingToken, "three"))
	w.golden("booking_make/pending_again", w.payFor("ann", two.ID, pendingToken, "three"))
	w.golden("booking_make/payment_in_progress", w.payFor("ann", two.ID, sandbox.TokenSure, "four"))
	w.golden("booking_get/pending", ask{path: pending.header.Get("Location"), customer: "ann"})
	w.pass(3 * time.Second)
	w.settle()
	w.golden("booking_make/pending_then_paid", w.payFor("ann", two.ID, pendingToken, "three"))

	// The provider is away for a moment. A time-out is no decline: the same request goes on.
	lost := sandbox.Token(sandbox.FaultServerError)
	three := w.hold("ann", w.seatsBody("now", "A-B-1"))
	w.golden("booking_make/payment_unavailable", w.payFor("ann", three.ID, lost, "five"))
	w.golden("booking_make/payment_unavailable_then_paid", w.payFor("ann", three.ID, lost, "five"))

	// It is given up by recovery: the hold goes on, and the customer is told so.
	four := w.hold("ann", w.seatsBody("now", "A-B-3"))
	w.problemOf(w.ask(w.payFor("ann", four.ID, lost, "six")), "payment_unavailable")
	w.pass(time.Minute)
	_, err := w.booking.Recover(t.Context())
	w.must(err)
	w.golden("booking_make/given_up", w.payFor("ann", four.ID, lost, "six"))
	w.pass(20 * time.Minute)
	w.golden("booking_make/given_up_and_expired", w.payFor("ann", four.ID, lost, "six"))
	w.golden("booking_make/hold_expired", w.payFor("ann", four.ID, sandbox.TokenSure, "seven"))

	five := w.hold("ben", w.seatsBody("cheap", "A-A-1"))
	_, err = w.catalog.Change(t.Context(), w.events["cheap"], catalog.VerbCancel)
	w.must(err)
	w.golden("booking_make/event_cancelled", w.payFor("ben", five.ID, sandbox.TokenSure, "eight"))
	w.into(w.golden("bookings_list/some", ask{path: "/v1/bookings", customer: "ann"}), 200, &list)
}

func TestGoldenBookingGet(t *testing.T) {
	w := newWorld(t)
	b := w.paid("ann", "A-A-1", "A-A-2")
	path := "/v1/bookings/" + b.ID
	w.golden("booking_get/paid", ask{path: path, customer: "ann"})
	w.golden("booking_get/wrong_customer", ask{path: path, customer: "ben"})
	w.golden("booking_get/unknown", ask{path: "/v1/bookings/ord_0000000000005", customer: "ann"})
	w.golden("booking_get/no_id", ask{path: "/v1/bookings/" + b.Hold, customer: "ann"})
	w.golden("booking_get/no_token", ask{path: path})
	bad := http.Header{"Authorization": {"Bearer a.b.c"}}
	w.golden("booking_get/token_invalid", ask{path: path, header: bad})
	w.golden("bookings_list/none", ask{path: "/v1/bookings", customer: "ben"})
	w.golden("bookings_list/cursor_wrong", ask{path: "/v1/bookings?cursor=hold_0000000000001", customer: "ann"})
	w.golden("bookings_list/query_unreadable", ask{path: "/v1/bookings?cursor=%", customer: "ann"})
	w.golden("bookings_list/no_token", ask{path: "/v1/bookings"})
	w.golden("bookings_list/token_invalid", ask{path: "/v1/bookings", header: bad})

	seat := "/v1/tickets/" + b.Tickets[0].ID
	w.golden("ticket_get/seat", ask{path: seat, customer: "ann"})
	w.golden("ticket_get/picture", ask{path: seat + ".png", customer: "ann"})
	w.golden("ticket_get/wrong_customer", ask{path: seat, customer: "ben"})
	w.golden("ticket_get/picture_wrong_customer", ask{path: seat + ".png", customer: "ben"})
	w.golden("ticket_get/unknown", ask{path: "/v1/tickets/tkt_0000000000005", customer: "ann"})
	w.golden("ticket_get/no_id", ask{path: "/v1/tickets/mine.png", customer: "ann"})
	w.golden("ticket_get/no_token", ask{path: seat})
	w.golden("ticket_get/token_invalid", ask{path: seat, header: bad})
	var area Booking
	h := w.hold("ben", fmt.Sprintf(`{"event_id":%q,"area_id":"FLOOR","quantity":1}`, w.event("now")))
	w.into(w.book("ben", h.ID, sandbox.TokenSure, "area"), 201, &area)
	w.golden("ticket_get/area", ask{path: "/v1/tickets/" + area.Tickets[0].ID, customer: "ben"})
	void := w.voidTicket("ann")
	w.golden("ticket_get/void", ask{path: "/v1/tickets/" + void, customer: "ann"})
	w.golden("ticket_get/void_picture", ask{path: "/v1/tickets/" + void + ".png", customer: "ann"})
	w.golden("bookings_list/refunded", ask{path: "/v1/bookings", customer: "ann"})
}

// voidTicket is a ticket whose payment was authorized, and then refused when it was to be taken (A18).
func (w *world) voidTicket(customer string) string {
	w.t.Helper()
	h := w.hold(customer, w.seatsBody("now", "A-B-5"))
	hold, err := id.Parse(id.Hold, h.ID)
	w.must(err)
	owner, err := w.ledger.Hold(w.t.Context(), hold)
	w.must(err)
	var numbers [4]id.ID
	for i := range numbers {
		numbers[i], err = w.newID(0)
		w.must(err)
	}
	order, ticket := numbers[0], numbers[1]
	for _, c := range []ledger.Command{
		ledger.BeginPayment{Order: order, Hold: hold, Customer: owner.Customer, Provider: "sandbox"},
		ledger.Confirm{Order: order, Payment: "p1", Amount: h.Price.AmountMinor, Currency: "EUR", Tickets: []id.ID{ticket}, Refund: numbers[2], RescueHold: numbers[3]},
		ledger.RecordPayment{Order: order, Payment: "p1", State: ledger.PaymentCaptureRefused, Refund: numbers[2]},
	} {
		_, err := w.batcher.Do(w.t.Context(), c)
		w.must(err)
	}
	return ticket.Text(id.Ticket)
}

func TestGoldenWebhook(t *testing.T) {
	w := newWorld(t)
	const path = "/v1/payments/sandbox/webhook"
	hold := w.hold("ann", w.seatsBody("now", "A-A-1"))
	w.into(w.book("ann", hold.ID, pendingToken, "k"), 202, &Booking{})
	notices := make(chan ask, 10)
	catch := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		notices <- ask{method: "POST", path: path, body: string(body), quiet: true,
			header: http.Header{sandbox.SignatureHeader: r.Header.Values(sandbox.SignatureHeader)}}
	}))
	defer catch.Close()
	w.must(w.sandbox.SetWebhookURL(catch.URL))
	w.pass(3 * time.Second)
	w.settle()
	notice := <-notices
	for !strings.Contains(notice.body, `"captured"`) { // that it is pending was told, too
		notice = <-notices
	}

	forged := notice
	forged.body = strings.Replace(notice.body, "captured", "declined", 1)
	w.golden("payment_webhook/forged", forged)
	unsigned := notice
	unsigned.header = nil
	w.golden("payment_webhook/unsigned", unsigned)
	other := notice
	other.path = "/v1/payments/stripe/webhook"
	w.golden("payment_webhook/other_provider", other)
	large := notice
	large.body = strings.Repeat("x", WebhookBytesMax+1)
	w.golden("payment_webhook/too_large", large)
	w.ledger.failWith(fmt.Errorf("gone: %w", ledger.ErrOutcomeUnknown))
	w.golden("payment_webhook/outcome_unknown", notice)
	w.ledger.failWith(nil)
	w.golden("payment_webhook/ok", notice)
	w.golden("payment_webhook/twice", notice)
	w.pass(6 * time.Minute)
	w.golden("payment_webhook/stale", notice)
	var h Hold
	w.into(w.ask(ask{path: "/v1/holds/" + hold.ID, customer: "ann"}), 200, &h)
	if h.State != "sold" {
		t.Errorf("the hold is %s after its payment came", h.State)
	}
}
