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
