package httpapi

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"onsale/internal/control"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/keys"
	"onsale/internal/keys/keystest"
	"onsale/internal/payment/sandbox"
)

// namedTicket is a ticket of an event that asks for names.
func (w *world) namedTicket(customer, seat string) Booking {
	w.t.Helper()
	var b Booking
	h := w.hold(customer, w.seatsBody("named", seat))
	w.into(w.ask(post("/v1/bookings", customer, seat, `{"hold_id":"`+h.ID+`","payment_token":"`+sandbox.TokenSure+`",`+named+`}`)), 201, &b)
	return b
}

// passOn is a transfer of a ticket to somebody who is to come with it.
func passOn(ticket, customer, key, email, name string) ask {
	return post("/v1/tickets/"+ticket+"/transfer", customer, key,
		`{"email":"`+email+`","attendee":{"name":"`+name+`","document_type":"passport","document_number":"`+strings.ToUpper(name)+`12345"}}`)
}

// A transfer that is sent again is answered as it was, when the time for it is over too, and it does not take the place
// from whom the receiver has passed the ticket on to.
func TestTransferSentAgain(t *testing.T) {
	w := newWorld(t)
	b := w.namedTicket("ann", "A-A-1")
	number, err := id.Parse(id.Order, b.ID)
	w.must(err)
	comes := func(want string) {
		t.Helper()
		all, err := w.people.Attendees(t.Context(), number)
		if err != nil || len(all) != 1 || all[0].Name != want {
			t.Errorf("who comes is %+v, %v, not %s", all, err, want)
		}
	}
	var first, again Transferred
	w.into(w.ask(passOn(b.Tickets[0].ID, "ann", "one", "cleo@example.com", "Cleo")), 201, &first)
	comes("Cleo")
	cleo := browser{}
	w.enter(cleo, "cleo@example.com")
	onward := passOn(first.Ticket, "", "two", "dan@example.com", "Dan")
	var further Transferred
	w.into(w.visit(cleo, onward), 201, &further)
	comes("Dan")
	w.into(w.ask(passOn(b.Tickets[0].ID, "ann", "one", "cleo@example.com", "Cleo")), 201, &again)
	if again != first {
		t.Errorf("I5: the repeat answers %+v, not %+v", again, first)
	}
	comes("Dan")
}

func TestTransferSentAgainTooLate(t *testing.T) {
	w := newWorld(t)
	b := w.paid("ann", "A-A-1", "A-A-2")
	row, err := w.ledger.Event(t.Context(), w.events["now"])
	w.must(err)
	w.pass(row.Transfers.Until.Std().Sub(w.now()) - time.Minute)
	one := post("/v1/tickets/"+b.Tickets[0].ID+"/transfer", "ann", "one", `{"email":"cleo@example.com"}`)
	var first, again Transferred
	w.into(w.ask(one), 201, &first)
	w.pass(2 * time.Minute)
	w.into(w.ask(one), 201, &again)
	if again != first {
		t.Errorf("I5: the repeat answers %+v, not %+v", again, first)
	}
	w.problemOf(w.ask(post("/v1/tickets/"+b.Tickets[1].ID+"/transfer", "ann", "two", `{"email":"cleo@example.com"}`)), "not_transferable")
}

// Whoever is let in is let in, also while nobody can say what their name is.
func TestCheckInWhileNamesAreAway(t *testing.T) {
	w := newWorld(t)
	w.staff("dora", identity.Door)
	b := w.namedTicket("ann", "A-A-1")
	away, err := control.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "away.db"))
	w.must(err)
	master, err := keys.NewMaster([]byte(strings.Repeat("k", 32)))
	w.must(err)
	ring, err := keys.Load(t.Context(), &keystest.Memory{}, master, keys.Options{})
	w.must(err)
	people, err := identity.NewService(t.Context(), identity.ServiceOptions{Store: away.People(), Keys: ring, Mail: w.mails, NewID: w.newID, Now: w.now})
	w.must(err)
	w.must(away.Close())
	h := w.as(func(o *Options) { o.People = people })
	var in CheckIn
	w.into(w.askHandler(h, post("/v1/organizer/events/"+w.event("named")+"/checkins", "dora", "", `{"ticket_id":"`+b.Tickets[0].ID+`"}`)), 201, &in)
	if in.State != "USED" || in.Attendee != "" {
		t.Errorf("let in as %+v", in)
	}
}

// Undoing what was undone says so, and tells of no use in 1970.
func TestUndoSentAgain(t *testing.T) {
	w := newWorld(t)
	w.staff("otto", identity.Owner)
	b := w.paid("ann", "A-A-1")
	var in, undone, again CheckIn
	w.into(w.ask(post("/v1/organizer/events/"+w.event("now")+"/checkins", "otto", "", `{"ticket_id":"`+b.Tickets[0].ID+`"}`)), 201, &in)
	undo := post("/v1/organizer/tickets/"+b.Tickets[0].ID+"/undo-checkin", "otto", "", `{"reason":"went out"}`)
	w.into(w.ask(undo), 200, &undone)
	got := w.ask(undo)
	w.into(got, 200, &again)
	var fields map[string]any
	w.must(json.Unmarshal(got.body, &fields))
	if again.Ticket != b.Tickets[0].ID || again.State != "VALID" || undone.Undone.IsZero() || fields["at"] != nil {
		t.Errorf("undone as %+v, again %s", undone, got.body)
	}
}
