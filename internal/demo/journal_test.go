package demo

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"onsale/internal/httpapi"
	"onsale/internal/id"
)

func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	expires := time.UnixMilli(5000).UTC()
	hold := &httpapi.Hold{ID: id.ID(1).Text(id.Hold), Event: id.ID(7).Text(id.Event), State: "live", Seats: []string{"A-1"}, Quantity: 1,
		Price: httpapi.Money{AmountMinor: 100, Currency: "EUR"}, Expires: expires}
	paid := &httpapi.Booking{ID: id.ID(2).Text(id.Order), Hold: hold.ID, State: "PENDING", Price: hold.Price}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(j.held(3, "hold", hold))
	before := j.all()
	later := *hold
	later.Expires = expires.Add(time.Second)
	do(j.held(3, "extend", &later))
	do(j.held(3, "look", hold)) // an answer that was overtaken takes nothing back
	do(j.booked(3, paid))
	paid.State, paid.Tickets = "PAID", []httpapi.Ticket{{ID: id.ID(9).Text(id.Ticket)}}
	do(j.booked(3, paid))
	early := *paid
	early.State = "PENDING"
	do(j.booked(3, &early))
	j.asksRelease(3, hold.ID)
	s := j.all()
	if len(before.holds) != 1 || before.holds[0].Expires != 5000 || len(before.paid) != 0 {
		t.Errorf("the copy changed with the journal: %+v", before)
	}
	if len(s.holds) != 1 || s.holds[0].Expires != 6000 || !s.holds[0].Asked || s.holds[0].Released {
		t.Errorf("holds %+v", s.holds)
	}
	if len(s.paid) != 1 || s.paid[0].State != "PAID" || len(s.paid[0].Tickets) != 1 || len(s.odd) != 0 {
		t.Errorf("bookings %+v, odd %q", s.paid, s.odd)
	}
	do(j.refused(3, paid.ID, hold))
	if s := j.all(); len(s.odd) != 1 || s.paid[0].State != "PAID" {
		t.Errorf("PAID and then FAILED: %+v, odd %q", s.paid, s.odd)
	}
	if j.held(3, "hold", &httpapi.Hold{ID: "nonsense"}) == nil {
		t.Error("a hold without an id was written down")
	}
	do(j.close())
	file, err := os.Open(path)
	do(err)
	defer file.Close()
	lines := 0
	for scan := bufio.NewScanner(file); scan.Scan(); lines++ {
		var l journalLine
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil || l.Buyer != 3 {
			t.Errorf("line %q: %v", scan.Text(), err)
		}
	}
	if lines != 8 {
		t.Errorf("%d lines", lines)
	}
}

// What was said after the sale is kept, the latest word of each, and what is asked for afterwards is added to a copy.
func TestJournalAfterTheSale(t *testing.T) {
	j, err := openJournal(filepath.Join(t.TempDir(), "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ticket := func(n id.ID) string { return n.Text(id.Ticket) }
	j.asks(3, "refund", []string{ticket(1)})
	refund := httpapi.Refund{ID: id.ID(9).Text(id.Refund), Booking: id.ID(2).Text(id.Order), State: "REFUNDED", Tickets: []string{ticket(1)}}
	do(j.refunded(3, &refund))
	early := refund
	early.State = "REQUESTED"
	do(j.refunded(3, &early)) // an answer that was overtaken
	do(j.signedIn(3, &httpapi.SignIn{Customer: id.ID(5).Text(id.Customer)}))
	for range 2 {
		do(j.passed(3, 4, refund.Booking, &httpapi.Transferred{Ticket: ticket(12), Was: ticket(11)}))
	}
	j.asksEntry(4, ticket(12))
	do(j.entered(4, &httpapi.CheckIn{Ticket: ticket(12), At: time.UnixMilli(77), Device: "a"}))
	before := j.all()
	j.asksUndo(4, ticket(12))
	j.undone(4, ticket(12))
	for range 2 {
		j.synced(4, ticket(12), "off", &httpapi.SyncFact{At: time.UnixMilli(99)}, true)
	}
	j.asks(3, "exchange", []string{ticket(8)})
	now := j.all().later
	if r := now.refunds[9]; r == nil || r.State != "REFUNDED" || now.people[3] != 5 || len(now.passed) != 1 || len(now.checkIns) != 2 {
		t.Errorf("%+v", now)
	}
	if !now.checkIns[0].Undone || now.checkIns[1].Undone || !now.checkIns[1].Conflict || now.checkIns[0].At != 77 {
		t.Errorf("%+v", now.checkIns)
	}
	if before.later.checkIns[0].Undone || before.later.undos[12] || before.later.voids[8] != "" {
		t.Error("the copy changed with the journal")
	}
	if with := j.withAsked(before).later; !with.undos[12] || with.voids[8] != "exchange" || with.checkIns[0].Undone {
		t.Errorf("%+v", with)
	}
	for _, bad := range []error{
		j.refunded(1, &httpapi.Refund{ID: "nonsense"}), j.refunded(1, &httpapi.Refund{ID: refund.ID, Booking: refund.Booking, State: "GONE"}),
		j.signedIn(1, &httpapi.SignIn{}), j.passed(1, 2, refund.Booking, &httpapi.Transferred{}), j.entered(1, &httpapi.CheckIn{}),
	} {
		if bad == nil {
			t.Error("nonsense was written down")
		}
	}
	do(j.close())
}
