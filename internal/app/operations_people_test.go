package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
)

// F2: who was erased before a backup, or after it as a list says, is erased again by restoring it.
func TestErasedAgainAfterRestore(t *testing.T) {
	s := settings(folder(t))
	a, err := Open(t.Context(), s)
	must(t, err)
	people, err := a.openPeople(t.Context(), noMail{})
	must(t, err)
	numbers := map[string]id.ID{}
	for _, name := range []string{"early", "late", "list", "stays"} {
		numbers[name], err = people.EnsureCustomer(t.Context(), identity.Email(name+"@example.com"))
		must(t, err)
		must(t, people.SetProfile(t.Context(), numbers[name], "Name of "+name, "en"))
	}
	must(t, a.Close(t.Context()))
	erase := func(name string) {
		t.Helper()
		c := dialed(t, s)
		var done Erased
		must(t, c.Call(t.Context(), "POST", "/customers/erase", CustomerRequest{Who: name + "@example.com"}, &done))
		if done.Customer != numbers[name].Text(id.Customer) || done.At.IsZero() || done.Before {
			t.Errorf("%+v", done)
		}
		must(t, c.Call(t.Context(), "POST", "/customers/erase", CustomerRequest{Who: done.Customer}, &done)) // again is harmless
		if !done.Before {
			t.Errorf("%+v", done)
		}
		must(t, c.Close())
	}
	erase("early")
	file, newer := filepath.Join(t.TempDir(), "one.tar.gz"), filepath.Join(t.TempDir(), "two.tar.gz")
	_, err = Backup(t.Context(), s, file)
	must(t, err)
	erase("late")
	_, err = Backup(t.Context(), s, newer)
	must(t, err)
	erase("list")
	list := filepath.Join(t.TempDir(), "list.json")
	copyFile(t, filepath.Join(s.Data, ErasuresFile), list)

	names := func(o RestoreOptions, own bool) (left []string, erased int) {
		t.Helper()
		into := settings(folder(t))
		copyFile(t, filepath.Join(s.Data, masterFile), filepath.Join(into.Data, masterFile))
		if own {
			copyFile(t, list, filepath.Join(into.Data, ErasuresFile))
		}
		o.File = file
		report, err := Restore(t.Context(), into, o)
		must(t, err)
		a, err := Open(t.Context(), into)
		must(t, err)
		for _, name := range []string{"early", "late", "list", "stays"} {
			p, err := a.Control.People().Profile(t.Context(), numbers[name])
			must(t, err)
			if p.Name != "" || len(p.Emails) > 0 {
				left = append(left, name)
			}
		}
		must(t, a.Close(t.Context()))
		return left, report.Erased
	}
	for _, c := range []struct {
		lists []string
		own   bool // the list lies in the folder
		want  []string
	}{
		{nil, false, []string{"late", "list", "stays"}}, // nobody said that they were erased
		{[]string{newer}, false, []string{"list", "stays"}},
		{[]string{list}, false, []string{"stays"}},
		{[]string{list, newer}, false, []string{"stays"}},
		{nil, true, []string{"stays"}},
		{[]string{newer}, true, []string{"stays"}},
	} {
		if left, erased := names(RestoreOptions{Erasures: c.lists}, c.own); !slices.Equal(left, c.want) || erased != 4-len(c.want) {
			t.Errorf("F2: with %d lists %v are there, want %v; %d erased", len(c.lists), left, c.want, erased)
		}
	}
}

// F2: where the database was brought back from before by other means than ours, the file goes on saying who was erased.
func TestTheListOfErasuresForgetsNobody(t *testing.T) {
	s := settings(folder(t))
	path := filepath.Join(s.Data, ErasuresFile)
	must(t, os.MkdirAll(s.Data, 0o700))
	const since = `{"format":1,"erasures":[{"customer_id":"cus_0000000000001","at":"2027-05-01T10:00:00Z"}]}`
	must(t, os.WriteFile(path, []byte(since), 0o600))
	a, err := Open(t.Context(), s)
	must(t, err)
	must(t, a.Control.People().EraseCustomer(t.Context(), 2, time.Now(), false))
	must(t, a.keepErasures(t.Context()))
	all, err := a.ownErasures()
	must(t, err)
	if len(all) != 2 || !slices.ContainsFunc(all, func(e identity.Erasure) bool { return e.Customer == 1 }) {
		t.Errorf("F2: the list forgot somebody: %v", all)
	}
	must(t, os.WriteFile(path, []byte(`{"format":1,"erasu`), 0o600))
	if err := a.keepErasures(t.Context()); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("a damaged list was replaced: %v", err)
	}
	must(t, a.Close(t.Context()))
}

// F2: everything about a person can be asked for; nobody with tickets for events to come is erased by the way; money stays.
func TestExportAndEraseOfAPerson(t *testing.T) {
	p := start(t, settings(folder(t)))
	event := p.event()
	var h, b answer
	p.ask("ann", "POST", "/v1/holds", best(event, 2), &h)
	if status := p.ask("ann", "POST", "/v1/bookings", fmt.Sprintf(`{"hold_id":%q,"payment_token":"tok_sure"}`, h.Hold), &b); status != 201 {
		t.Fatalf("%d %+v", status, b)
	}
	token, err := p.app.Throwaway.Mint("ann", time.Now(), time.Hour)
	must(t, err)
	ann, err := p.app.Identity.Authenticate(t.Context(), token)
	must(t, err)
	number := ann.ID.Text(id.Customer)
	c := dialed(t, p.app.Settings)
	defer func() { must(t, c.Close()) }()
	var e CustomerExport
	must(t, c.Call(t.Context(), "POST", "/customers/export", CustomerRequest{Who: number}, &e))
	if e.Customer != number || len(e.Bookings) != 1 || e.Bookings[0].State != "PAID" || len(e.Bookings[0].Payments) != 1 || len(e.Tickets) != 2 || len(e.Identities) != 1 || e.Identities[0].Sub != "ann" {
		t.Errorf("%+v", e)
	}
	var done Erased
	err = c.Call(t.Context(), "POST", "/customers/erase", CustomerRequest{Who: number}, &done)
	if err == nil || !strings.Contains(err.Error(), "has 2 tickets for events to come") || !strings.Contains(err.Error(), "--even-so") {
		t.Errorf("%v", err)
	}
	must(t, c.Call(t.Context(), "POST", "/customers/erase", CustomerRequest{Who: number, EvenSo: true}, &done))
	must(t, c.Call(t.Context(), "POST", "/customers/export", CustomerRequest{Who: number}, &e))
	if len(e.Identities) != 0 || e.Erased == nil || len(e.Bookings) != 1 || len(e.Tickets) != 2 {
		t.Errorf("%+v", e)
	}
	for who, says := range map[string]string{"nobody@example.com": "", "cus_0000000000001": "no such customer", "cus_?": "is not a customer's id"} {
		if err := c.Call(t.Context(), "POST", "/customers/erase", CustomerRequest{Who: who}, &done); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", who, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(p.app.Settings.Data, ErasuresFile))
	must(t, err)
	if !strings.Contains(string(text), number) {
		t.Errorf("the list does not name %s: %s", number, text)
	}
	until(t, "capture", func() bool { return captured(t, p) })
	p.stop()
	audited(t, p.app.Settings)
}

// Names are kept for who comes in. Of a booking that came to nothing they are forgotten.
func TestNamesOfADeclinedBookingAreForgotten(t *testing.T) {
	p := start(t, settings(folder(t)))
	defer p.stop()
	event := p.event()
	named := func(token string, status int) id.ID {
		t.Helper()
		var h, b answer
		p.ask("ann", "POST", "/v1/holds", best(event, 1), &h)
		body := fmt.Sprintf(`{"hold_id":%q,"payment_token":%q,"attendees":[{"name":"Ann Example"}]}`, h.Hold, token)
		if got := p.ask("ann", "POST", "/v1/bookings", body, &b); got != status {
			t.Fatalf("%d %+v", got, b)
		}
		orders := 0
		var last id.ID
		token, err := p.app.Throwaway.Mint("ann", time.Now(), time.Hour)
		must(t, err)
		ann, err := p.app.Identity.Authenticate(t.Context(), token)
		must(t, err)
		must(t, p.app.ordersOf(t.Context(), ann.ID, func(o *ledger.Order) error { // the newest first
			if orders++; orders == 1 {
				last = o.ID
			}
			return nil
		}))
		return last
	}
	names := func(order id.ID) int {
		all, err := p.app.People.Attendees(t.Context(), order)
		must(t, err)
		return len(all)
	}
	paid := named("tok_sure", 201)
	declined := named("tok_sure_not", 402)
	if paid == declined {
		t.Fatal("one order")
	}
	until(t, "the names to be forgotten", func() bool { return names(declined) == 0 })
	if names(paid) != 1 {
		t.Error("the name of who comes in is gone, too")
	}
}
