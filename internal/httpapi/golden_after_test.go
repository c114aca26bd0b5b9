package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
	"onsale/internal/payment/sandbox"
)

// What becomes of tickets after they are sold: refunds, exchange, transfer, the door.

// staff gives somebody a role with the house.
func (w *world) staff(name string, role identity.Role) {
	w.roles.set(w.customer(name), map[id.ID]identity.Role{w.house: role})
}

func post(path, customer, key, body string) ask {
	return ask{method: "POST", path: path, customer: customer, key: key, body: body}
}

func tickets(all ...Ticket) string {
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.ID
	}
	text, _ := json.Marshal(names)
	return string(text)
}

// uncaptured is a booking whose money is reserved only.
func (w *world) uncaptured(customer string, seat string) (booking, ticket string) {
	w.t.Helper()
	h := w.hold(customer, w.seatsBody("now", seat))
	hold, err := id.Parse(id.Hold, h.ID)
	w.must(err)
	var numbers [4]id.ID
	for i := range numbers {
		numbers[i], err = w.newID(0)
		w.must(err)
	}
	for _, c := range []ledger.Command{
		ledger.BeginPayment{Order: numbers[0], Hold: hold, Customer: w.customer(customer), Provider: "sandbox"},
		ledger.Confirm{Order: numbers[0], Payment: "p" + seat, Amount: h.Price.AmountMinor, Currency: "EUR", Tickets: []id.ID{numbers[1]}, Refund: numbers[2], RescueHold: numbers[3]},
	} {
		r, err := w.batcher.Do(w.t.Context(), c)
		w.must(err)
		if r.Fault != nil {
			w.t.Fatal(r.Fault)
		}
	}
	return numbers[0].Text(id.Order), numbers[1].Text(id.Ticket)
}

// outcomeUnknown asks while the ledger cannot say what its commits came to.
func (w *world) outcomeUnknown(name string, a ask) {
	w.t.Helper()
	w.ledger.failWith(fmt.Errorf("gone: %w", ledger.ErrOutcomeUnknown))
	w.golden(name, a)
	w.ledger.failWith(nil)
}

func TestGoldenRefund(t *testing.T) {
	w := newWorld(t)
	b := w.paid("ann", "A-A-1", "A-A-2", "A-A-3")
	path := "/v1/bookings/" + b.ID + "/refund"
	one := post(path, "ann", "one", `{"ticket_ids":`+tickets(b.Tickets[0])+`}`)
	w.outcomeUnknown("booking_refund/outcome_unknown", one)
	var first, again Refunds
	w.into(w.golden("booking_refund/one", one), 201, &first)
	w.into(w.golden("booking_refund/again", one), 201, &again)
	if first.Refunds[0].ID != again.Refunds[0].ID || first.Total.AmountMinor != b.Tickets[0].Price.AmountMinor*9/10 {
		t.Errorf("I5, A21: the first is %+v, the repeat %+v", first, again)
	}
	w.golden("booking_refund/key_reused", post(path, "ann", "one", `{"ticket_ids":`+tickets(b.Tickets[1])+`}`))
	w.golden("booking_refund/no_key", post(path, "ann", "", `{}`))
	w.golden("booking_refund/again_with_another_key", post(path, "ann", "two", `{"ticket_ids":`+tickets(b.Tickets[0])+`}`))
	w.golden("booking_refund/no_ticket", post(path, "ann", "two", `{"ticket_ids":["mine"]}`))
	w.golden("booking_refund/unknown", post(path, "ann", "two", `{"ticket_ids":["tkt_0000000000005"]}`))
	w.golden("booking_refund/rest", post(path, "ann", "rest", `{}`))
	w.golden("booking_refunds/two", ask{path: "/v1/bookings/" + b.ID + "/refunds", customer: "ann"})
	w.golden("booking_get/refunded", ask{path: "/v1/bookings/" + b.ID, customer: "ann"})

	reserved, _ := w.uncaptured("ann", "A-B-1")
	w.golden("booking_refund/payment_in_progress", post("/v1/bookings/"+reserved+"/refund", "ann", "three", `{}`))
	var free Booking
	h := w.hold("ann", w.seatsBody("refuse", "A-A-1"))
	w.into(w.book("ann", h.ID, sandbox.TokenSure, "free"), 201, &free)
	w.golden("booking_refund/not_refundable", post("/v1/bookings/"+free.ID+"/refund", "ann", "four", `{}`))
	late := w.paid("ann", "A-C-1")
	w.pass(92 * 24 * time.Hour)
	w.golden("booking_refund/too_late", post("/v1/bookings/"+late.ID+"/refund", "ann", "five", `{}`))
}

func TestGoldenOrganizerRefund(t *testing.T) {
	w := newWorld(t)
	w.staff("olga", identity.Operator)
	w.staff("otto", identity.Owner)
	b := w.paid("ann", "A-A-1", "A-A-2", "A-A-3")
	path := "/v1/organizer/bookings/" + b.ID + "/refund"
	one := post(path, "olga", "one", `{"reason":"ill","fee_kept_minor":500,"ticket_ids":`+tickets(b.Tickets[0])+`}`)
	w.outcomeUnknown("organizer_refund/outcome_unknown", one)
	w.golden("organizer_refund/one", one)
	w.golden("organizer_refund/again", one)
	w.golden("organizer_booking/refunded", ask{path: strings.TrimSuffix(path, "/refund"), customer: "olga"})
	w.golden("organizer_refund/key_reused", post(path, "olga", "one", `{"reason":"ill"}`))
	w.golden("organizer_refund/no_key", post(path, "olga", "", `{"reason":"ill"}`))
	w.golden("organizer_refund/no_reason", post(path, "olga", "two", `{}`))
	w.golden("organizer_refund/fee_too_high", post(path, "olga", "two", `{"reason":"ill","fee_kept_minor":10000000}`))
	w.golden("organizer_refund/unknown", post(path, "olga", "two", `{"reason":"ill","ticket_ids":["tkt_0000000000005"]}`))
	var in CheckIn
	w.into(w.ask(post("/v1/organizer/events/"+w.event("now")+"/checkins", "olga", "", `{"ticket_id":"`+b.Tickets[1].ID+`"}`)), 201, &in)
	used := `{"reason":"the lights went out","ticket_ids":` + tickets(b.Tickets[1])
	w.golden("organizer_refund/used", post(path, "olga", "three", used+`}`))
	w.golden("organizer_refund/used_by_an_operator", post(path, "olga", "three", used+`,"used_too":true}`))
	w.golden("organizer_refund/used_by_an_owner", post(path, "otto", "three", used+`,"used_too":true}`))
	reserved, _ := w.uncaptured("ann", "A-B-1")
	w.golden("organizer_refund/payment_in_progress", post("/v1/organizer/bookings/"+reserved+"/refund", "olga", "four", `{"reason":"ill"}`))

	// One that the bank refuses waits for people.
	h := w.hold("ann", w.seatsBody("now", "A-C-1"))
	var refused Booking
	w.into(w.book("ann", h.ID, sandbox.Token(sandbox.FaultRefundRefused), "refused"), 201, &refused)
	var made Refunds
	w.into(w.golden("organizer_refund/refused_by_the_bank", post("/v1/organizer/bookings/"+refused.ID+"/refund", "olga", "five", `{"reason":"ill"}`)), 201, &made)
	w.golden("refunds_refused/one", ask{path: "/v1/organizer/events/" + w.event("now") + "/refunds", customer: "olga"})
	w.golden("refunds_refused/none", ask{path: "/v1/organizer/events/" + w.event("cheap") + "/refunds", customer: "olga"})
	w.golden("refunds_refused/cursor_wrong", ask{path: "/v1/organizer/events/" + w.event("now") + "/refunds?cursor=x", customer: "olga"})
	retry := post("/v1/organizer/refunds/"+made.Refunds[0].ID+"/retry", "olga", "", "")
	w.outcomeUnknown("refund_retry/outcome_unknown", retry)
	w.golden("refund_retry/again", retry)
	var done RefundList
	w.into(w.ask(ask{path: "/v1/bookings/" + b.ID + "/refunds", customer: "ann"}), 200, &done)
	w.golden("refund_retry/not_refused", post("/v1/organizer/refunds/"+done.Refunds[0].ID+"/retry", "olga", "", ""))
}

// swap holds seats in the place of a booking's tickets.
func (w *world) swap(customer string, of Booking, event string, seats ...string) Hold {
	w.t.Helper()
	body, err := json.Marshal(HoldRequest{Event: w.event(event), Seats: seats, Exchange: &ExchangeOf{Booking: of.ID}})
	w.must(err)
	return w.hold(customer, string(body))
}

func TestGoldenExchange(t *testing.T) {
	w := newWorld(t)
	b := w.paid("ann", "A-B-1")
	path := "/v1/bookings/" + b.ID + "/exchange"
	h := w.swap("ann", b, "now", "A-A-1")
	w.golden("exchange_quote/due", ask{path: "/v1/holds/" + h.ID + "/exchange", customer: "ann"})
	plain := w.hold("ann", w.seatsBody("now", "A-D-1"))
	w.golden("exchange_quote/no_exchange", ask{path: "/v1/holds/" + plain.ID + "/exchange", customer: "ann"})
	swap := func(hold, token, key string) ask {
		return post(path, "ann", key, fmt.Sprintf(`{"hold_id":%q,"payment_token":%q}`, hold, token))
	}
	w.golden("booking_make/an_exchange", w.payFor("ann", h.ID, sandbox.TokenSure, "zero"))
	w.golden("booking_exchange/no_key", swap(h.ID, sandbox.TokenSure, ""))
	w.golden("booking_exchange/no_exchange", swap(plain.ID, sandbox.TokenSure, "one"))
	w.golden("booking_exchange/hold_unknown", swap("hold_0000000000005", sandbox.TokenSure, "one"))
	w.golden("booking_exchange/declined", swap(h.ID, declined, "one"))
	w.golden("booking_exchange/unavailable", swap(h.ID, sandbox.Token(sandbox.FaultServerError), "two"))
	var n, again Booking
	w.into(w.golden("booking_exchange/due", swap(h.ID, sandbox.Token(sandbox.FaultServerError), "two")), 201, &n)
	w.into(w.golden("booking_exchange/again", swap(h.ID, sandbox.Token(sandbox.FaultServerError), "two")), 201, &again)
	if n.ID != again.ID || n.Exchange != b.ID || n.Price.AmountMinor != 12450-(8450-200) {
		t.Errorf("A22: the new booking is %+v", n)
	}
	w.golden("booking_exchange/key_reused", swap(h.ID, "tok_other", "two"))
	w.golden("booking_get/exchanged", ask{path: "/v1/bookings/" + b.ID, customer: "ann"})

	path = "/v1/bookings/" + n.ID + "/exchange"
	back := w.swap("ann", n, "now", "A-D-3")
	w.golden("exchange_quote/back", ask{path: "/v1/holds/" + back.ID + "/exchange", customer: "ann"})
	w.outcomeUnknown("booking_exchange/outcome_unknown", swap(back.ID, "", "three"))
	w.into(w.golden("booking_exchange/back", swap(back.ID, "", "three")), 201, &n)

	path = "/v1/bookings/" + n.ID + "/exchange"
	dear := w.swap("ann", n, "now", "A-A-5")
	w.golden("booking_exchange/pending", swap(dear.ID, pendingToken, "four"))
	w.golden("booking_exchange/payment_in_progress", swap(dear.ID, sandbox.TokenSure, "five"))
	w.pass(3 * time.Second)
	w.settle()

	c := w.paid("ann", "A-C-1")
	path = "/v1/bookings/" + c.ID + "/exchange"
	lapsed := w.swap("ann", c, "now", "A-A-9")
	body, err := json.Marshal(HoldRequest{Event: w.event("now"), Seats: []string{"A-A-11"}, Exchange: &ExchangeOf{Booking: c.ID}})
	w.must(err)
	w.golden("hold_make/exchange_conflict", post("/v1/holds", "ann", "", string(body))) // the tickets are being exchanged by the hold before
	w.golden("hold_make/exchange_by_another", post("/v1/holds", "ben", "", string(body)))
	w.pass(11 * time.Minute)
	w.golden("booking_exchange/hold_expired", swap(lapsed.ID, sandbox.TokenSure, "six"))

	// Who is in cannot change seats any more.
	w.staff("dora", identity.Door)
	in := w.swap("ann", c, "now", "A-A-9")
	w.into(w.ask(post("/v1/organizer/events/"+w.event("now")+"/checkins", "dora", "", `{"ticket_id":"`+c.Tickets[0].ID+`"}`)), 201, &CheckIn{})
	w.golden("booking_exchange/used_meanwhile", swap(in.ID, sandbox.TokenSure, "seven"))

	// Money that is not taken yet cannot move.
	reserved, _ := w.uncaptured("ann", "A-B-9")
	body, err = json.Marshal(HoldRequest{Event: w.event("now"), Seats: []string{"A-A-11"}, Exchange: &ExchangeOf{Booking: reserved}})
	w.must(err)
	w.golden("hold_make/exchange_uncaptured", post("/v1/holds", "ann", "", string(body)))
	w.golden("hold_make/exchange_of_nothing", post("/v1/holds", "ann", "", strings.Replace(string(body), reserved, "ord_0000000000005", 1)))
	free := w.paidFor("ann", "refuse", "A-A-1")
	w.golden("hold_make/exchange_not_allowed", post("/v1/holds", "ann", "", strings.Replace(string(body), reserved, free.ID, 1)))
	w.golden("hold_make/exchange_of_another_ticket", post("/v1/holds", "ann", "",
		strings.Replace(string(body), `"}}`, `","ticket_ids":["tkt_0000000000005"]}}`, 1)))

	d := w.paid("ben", "A-C-9")
	path = "/v1/bookings/" + d.ID + "/exchange"
	off := w.swap("ben", d, "now", "A-C-11")
	_, err = w.catalog.Change(t.Context(), w.events["now"], catalog.VerbCancel)
	w.must(err)
	cancelled := swap(off.ID, sandbox.TokenSure, "eight")
	cancelled.customer = "ben"
	w.golden("booking_exchange/event_cancelled", cancelled)
}

// paidFor books seats of another event than "now".
func (w *world) paidFor(customer, event string, seats ...string) Booking {
	w.t.Helper()
	var b Booking
	h := w.hold(customer, w.seatsBody(event, seats...))
	w.into(w.book(customer, h.ID, sandbox.TokenSure, "key-"+h.ID), 201, &b)
	return b
}

const named = `"attendees":[{"name":"Ann Example","document_type":"passport","document_number":"C01X00T47"}]`

func TestGoldenAttendees(t *testing.T) {
	w := newWorld(t)
	h := w.hold("ann", w.seatsBody("named", "A-A-1"))
	booking := func(customer, hold, key, attendees string) ask {
		return post("/v1/bookings", customer, key, fmt.Sprintf(`{"hold_id":%q,"payment_token":%q%s}`, hold, sandbox.TokenSure, attendees))
	}
	w.golden("booking_make/attendees_missing", booking("ann", h.ID, "one", ""))
	w.golden("booking_make/document_wrong", booking("ann", h.ID, "one", `,"attendees":[{"name":"Ann","document_type":"cn_resident_id","document_number":"11010519491231002Y"}]`))
	var b, again Booking
	w.into(w.golden("booking_make/attendees", booking("ann", h.ID, "one", ","+named)), 201, &b)
	w.into(w.ask(booking("ann", h.ID, "one", ","+named)), 201, &again)
	if again.ID != b.ID {
		t.Errorf("I5: the repeat made %s beside %s", again.ID, b.ID)
	}
	number, err := id.Parse(id.Order, b.ID)
	w.must(err)
	all, err := w.people.Attendees(t.Context(), number)
	if err != nil || len(all) != 1 || all[0].Name != "Ann Example" || all[0].DocumentLast4 != "0T47" || strings.Contains(w.log.String(), "C01X00T47") || strings.Contains(w.log.String(), "Example") {
		t.Errorf("E8, E10: the attendees are %+v, %v", all, err)
	}
	h2 := w.hold("ben", w.seatsBody("named", "A-A-3"))
	w.golden("booking_make/limit_reached", booking("ben", h2.ID, "two", ","+named)) // one ticket for one document
	row, err := w.ledger.Order(t.Context(), number)
	if err != nil || len(row.Documents) != 1 || row.Documents[0] == "" || strings.Contains(row.Documents[0], "C01X00T47") {
		t.Errorf("E8: the ledger has %v, %v", row.Documents, err)
	}
	// At the door the name is shown; with a transfer there is a new one.
	w.staff("dora", identity.Door)
	var passed Transferred
	w.golden("ticket_transfer/no_attendee", post("/v1/tickets/"+b.Tickets[0].ID+"/transfer", "ann", "t", `{"email":"cleo@example.com"}`))
	w.into(w.golden("ticket_transfer/attendee", post("/v1/tickets/"+b.Tickets[0].ID+"/transfer", "ann", "t",
		`{"email":"cleo@example.com","attendee":{"name":"Cleo Example","document_type":"passport","document_number":"X123456"}}`)), 201, &passed)
	w.golden("checkin/named", post("/v1/organizer/events/"+w.event("named")+"/checkins", "dora", "", `{"ticket_id":"`+passed.Ticket+`"}`))

	c := w.hold("ben", w.seatsBody("named", "A-B-3"))
	var d Booking
	w.into(w.ask(booking("ben", c.ID, "three", `,"attendees":[{"name":"Ben","document_type":"passport","document_number":"B7654321"}]`)), 201, &d)
	late := w.swap("ben", d, "named", "A-B-1")
	w.pass(6 * time.Minute)
	w.golden("booking_exchange/too_late", post("/v1/bookings/"+d.ID+"/exchange", "ben", "four",
		fmt.Sprintf(`{"hold_id":%q,"payment_token":%q,"attendees":[{"name":"Ben","document_type":"passport","document_number":"B7654321"}]}`, late.ID, sandbox.TokenSure)))
}

func TestGoldenTransfer(t *testing.T) {
	w := newWorld(t)
	b := w.paid("ann", "A-A-1", "A-A-2")
	path := "/v1/tickets/" + b.Tickets[0].ID + "/transfer"
	const to = `{"email":"Cleo@Example.com"}`
	w.outcomeUnknown("ticket_transfer/outcome_unknown", post(path, "ann", "one", to))
	var passed, again Transferred
	w.into(w.golden("ticket_transfer/done", post(path, "ann", "one", to)), 201, &passed)
	w.into(w.golden("ticket_transfer/again", post(path, "ann", "one", to)), 201, &again)
	if passed != again {
		t.Errorf("I5: %+v and %+v", passed, again)
	}
	w.golden("ticket_transfer/key_reused", post(path, "ann", "one", `{"email":"dan@example.com"}`))
	w.golden("ticket_transfer/void", post(path, "ann", "two", to))
	w.golden("ticket_transfer/no_key", post(path, "ann", "", to))
	w.golden("ticket_transfer/no_address", post("/v1/tickets/"+b.Tickets[1].ID+"/transfer", "ann", "two", `{"email":"cleo"}`))
	free := w.paidFor("ann", "refuse", "A-A-1")
	w.golden("ticket_transfer/not_transferable", post("/v1/tickets/"+free.Tickets[0].ID+"/transfer", "ann", "three", to))
	w.golden("tickets_list/some", ask{path: "/v1/tickets", customer: "ann"})
	w.golden("tickets_list/none", ask{path: "/v1/tickets", customer: "ben"})
	w.golden("tickets_list/cursor_wrong", ask{path: "/v1/tickets?cursor=x", customer: "ann"})
	w.golden("ticket_get/passed_on", ask{path: "/v1/tickets/" + passed.Ticket, customer: "ann"}) // it is hers no more

	// It counts under the receiver's limits.
	for i := range 4 {
		more := w.paid("ben", fmt.Sprintf("A-C-%d", 2*i+1), fmt.Sprintf("A-C-%d", 2*i+2))
		for k, each := range more.Tickets {
			reply := w.ask(post("/v1/tickets/"+each.ID+"/transfer", "ben", each.ID, to))
			if want := 201; i == 3 && k == 1 {
				w.golden("ticket_transfer/limit_reached", post("/v1/tickets/"+each.ID+"/transfer", "ben", each.ID, to))
			} else if reply.status != want {
				t.Fatalf("ticket %d: status %d: %s", 2*i+k, reply.status, reply.body)
			}
		}
	}

	resend := post("/v1/bookings/"+b.ID+"/resend", "ann", "", "")
	w.golden("booking_resend/no_mail", resend)
	w.api.Resend = func(context.Context, id.ID) error { return nil }
	w.golden("booking_resend/sent", resend)
	w.api.Resend = func(context.Context, id.ID) error { return fault.New(fault.Conflict, "the booking is not paid") }
	w.golden("booking_resend/not_paid", resend)
}

func TestGoldenDoor(t *testing.T) {
	w := newWorld(t)
	w.staff("dora", identity.Door)
	w.staff("otto", identity.Owner)
	b := w.paid("ann", "A-A-1", "A-A-2", "A-A-3", "A-A-4")
	floor := w.hold("ben", fmt.Sprintf(`{"event_id":%q,"area_id":"FLOOR","quantity":1}`, w.event("now")))
	var standing Booking
	w.into(w.book("ben", floor.ID, sandbox.TokenSure, "floor"), 201, &standing)
	path := "/v1/organizer/events/" + w.event("now") + "/checkins"
	var shown Ticket
	w.into(w.ask(ask{path: "/v1/tickets/" + b.Tickets[0].ID, customer: "ann"}), 200, &shown)
	code, err := json.Marshal(CheckInRequest{Code: shown.QR, Gate: "north", Device: "phone-1"})
	w.must(err)
	scan := post(path, "dora", "", string(code))
	scan.quiet = true // the code is signed anew in each run
	w.outcomeUnknown("checkin/outcome_unknown", scan)
	w.golden("checkin/in", scan)
	w.golden("checkin/used", scan)
	forged := scan
	forged.body = strings.Replace(scan.body, shown.QR[:12], shown.QR[1:13], 1)
	w.golden("checkin/forged", forged)
	other := scan
	other.path = "/v1/organizer/events/" + w.event("cheap") + "/checkins"
	w.golden("checkin/wrong_event", other)
	w.golden("checkin/wrong_gate", post(path, "dora", "", `{"gate":"south","ticket_id":"`+b.Tickets[1].ID+`"}`))
	w.golden("checkin/no_gate", post(path, "dora", "", `{"gate":"west","ticket_id":"`+b.Tickets[1].ID+`"}`))
	w.golden("checkin/nothing", post(path, "dora", "", `{}`))
	w.golden("checkin/unknown", post(path, "dora", "", `{"ticket_id":"tkt_0000000000005"}`))
	w.into(w.ask(post("/v1/bookings/"+b.ID+"/refund", "ann", "r", `{"ticket_ids":`+tickets(b.Tickets[3])+`}`)), 201, &Refunds{})
	w.golden("checkin/void", post(path, "dora", "", `{"ticket_id":"`+b.Tickets[3].ID+`"}`))

	w.golden("checkins_offline/north", ask{path: path + "/offline?gate=north", customer: "dora"})
	w.golden("checkins_offline/all", ask{path: path + "/offline", customer: "dora"})
	w.golden("checkins_offline/no_gate", ask{path: path + "/offline?gate=west", customer: "dora"})
	w.golden("checkins_offline/cursor_wrong", ask{path: path + "/offline?cursor=x", customer: "dora"})
	at := w.now().Add(-time.Minute).Format(time.RFC3339)
	fact := func(ticket string) string {
		return fmt.Sprintf(`{"ticket_id":%q,"at":%q,"gate":"north"}`, ticket, at)
	}
	facts := `{"device":"phone-2","facts":[` + strings.Join([]string{fact(b.Tickets[0].ID), fact(b.Tickets[1].ID), fact(b.Tickets[3].ID), fact("tkt_0000000000005")}, ",") + `]}`
	w.golden("checkins_sync/facts", post(path+"/sync", "dora", "", facts))
	w.golden("checkins_sync/again", post(path+"/sync", "dora", "", facts))
	w.golden("checkins_sync/no_device", post(path+"/sync", "dora", "", strings.Replace(facts, "phone-2", "", 1)))
	w.golden("checkins_list/all", ask{path: path, customer: "otto"})
	w.golden("checkins_list/conflicts", ask{path: path + "?conflicts=1", customer: "otto"})
	w.golden("checkins_list/cursor_wrong", ask{path: path + "?cursor=" + url.QueryEscape("x"), customer: "otto"})
	w.golden("checkins_count/some", ask{path: path + "/counts", customer: "dora"})

	undo := "/v1/organizer/tickets/" + b.Tickets[0].ID + "/undo-checkin"
	w.outcomeUnknown("checkin_undo/outcome_unknown", post(undo, "otto", "", `{"reason":"wrong person"}`))
	w.golden("checkin_undo/done", post(undo, "otto", "", `{"reason":"wrong person"}`))
	w.golden("checkin_undo/no_reason", post(undo, "otto", "", `{}`))
	w.golden("checkin_undo/void", post("/v1/organizer/tickets/"+b.Tickets[3].ID+"/undo-checkin", "otto", "", `{"reason":"why not"}`))
	w.golden("checkin/in_again", scan)
}
