package httpapi

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
)

// member gives somebody a role with the house, where checks are made and where people are kept.
func (w *world) member(name string, role identity.Role) {
	w.t.Helper()
	number := w.customer(name)
	w.roles.set(number, map[id.ID]identity.Role{w.house: role})
	w.must(w.people.SetRole(w.t.Context(), identity.Actor{}, number, w.house, role))
}

// mine is a path below the house.
func (w *world) mine(rest string) string {
	return "/v1/organizer/organizers/" + w.house.Text(id.Org) + rest
}

// at is a path below an event.
func (w *world) at(event, rest string) string { return "/v1/organizer/events/" + w.event(event) + rest }

// unknown lets the ledger lose the outcome of what is done.
func (w *world) unknown(do func()) {
	w.ledger.failWith(fmt.Errorf("the line went dead: %w", ledger.ErrOutcomeUnknown))
	do()
	w.ledger.failWith(nil)
}

func TestGoldenPlans(t *testing.T) {
	w := newWorld(t)
	w.member("oper", identity.Operator)
	w.golden("organizers_list/operator", ask{path: "/v1/organizer/organizers", customer: "oper"})
	w.golden("organizers_list/nobody", ask{path: "/v1/organizer/organizers", customer: "ann"})
	w.golden("plans_list/one", ask{path: w.mine("/plans"), customer: "oper"})
	w.golden("plan_parts/one", ask{path: w.mine("/plans/" + w.plan.Hash()), customer: "oper"})
	w.golden("plan_parts/none", ask{path: w.mine("/plans/" + strings.Repeat("0", 64)), customer: "oper"})
	body, err := w.plan.Encode()
	w.must(err)
	upload := func(name, query, file string) {
		w.golden("plan_upload/"+name, ask{method: "POST", path: w.mine("/plans") + query, customer: "oper", body: file, quiet: true})
	}
	upload("check", "?check=true", strings.Replace(string(body), `"name":"`, `"name":"Other `, 1))
	upload("same_again", "", string(body))
	upload("refused", "", strings.Replace(string(body), `"seat_count":`, `"seat_count":1`, 1))
	upload("no_plan", "", `{"hello":1}`)
	var list PlanList
	w.into(w.ask(ask{path: w.mine("/plans"), customer: "oper"}), 200, &list)
	if len(list.Plans) != 1 {
		t.Errorf("there are %d plans: what was only checked, or refused, was kept", len(list.Plans))
	}
	for range planReadersMax {
		w.api.planReaders <- struct{}{}
	}
	upload("busy", "", string(body))
}

func TestGoldenShows(t *testing.T) {
	w := newWorld(t)
	w.member("oper", identity.Operator)
	w.golden("shows_list/one", ask{path: w.mine("/shows"), customer: "oper"})
	w.golden("shows_list/cursor", ask{path: w.mine("/shows?cursor=x"), customer: "oper"})
	post := func(name, body string) reply {
		return w.golden("show_make/"+name, ask{method: "POST", path: w.mine("/shows"), customer: "oper", body: body})
	}
	var made OrganizerShow
	w.into(post("made", `{"key":"gala","title":"Gala","performers":["韦礼安"]}`), 201, &made)
	post("again", `{"key":"gala","title":"Gala","performers":["韦礼安"]}`)
	post("refused", `{"key":"a b","title":""}`)
	path := "/v1/organizer/shows/" + w.show.Text(id.Show)
	var s OrganizerShow
	w.into(w.golden("show_get/one", ask{path: path, customer: "oper"}), 200, &s)
	patch := func(name, body string) reply {
		return w.golden("show_change/"+name, ask{method: "PATCH", path: path, customer: "oper", body: body})
	}
	patch("no_version", `{"title":"New"}`)
	patch("key", fmt.Sprintf(`{"version":%d,"key":"new"}`, s.Version))
	patch("refused", fmt.Sprintf(`{"version":%d,"title":""}`, s.Version))
	w.into(patch("renamed", fmt.Sprintf(`{"version":%d,"title":"A night at the port"}`, s.Version)), 200, &s)
	patch("changed_since", fmt.Sprintf(`{"version":%d,"title":"Late"}`, s.Version-1))
	w.unknown(func() { patch("outcome_unknown", fmt.Sprintf(`{"version":%d,"title":"A night"}`, s.Version)) })
}

func (w *world) newEvent(key string) string {
	return fmt.Sprintf(`{"key":%q,"plan_hash":%q,"currency":"EUR","venue":{"name":"Kleine Halle","city":"Hamburg","country":"DE","zone":"Europe/Berlin"},
		"starts_at":"2027-07-01T20:00","sale_opens_at":"2027-03-28T10:00","prices":[{"category":"CAT1","name":"Category 1","face_minor":5000,"tax_bp":700}],
		"quotas":[{"category":"CAT1","on_sale_max":10,"steps":[{"at":"2027-05-01T12:00","on_sale_max":20}]}],
		"refunds":{"until":"2027-06-30T20:00","fee_bp":1000},"exchanges":{"until":"2027-06-30T20:00"},"transfers_until":"2027-07-01T18:00","gates":[{"key":"north","name":"North"}]}`, key, w.plan.Hash())
}

func TestGoldenEventsOfOrganizers(t *testing.T) {
	w := newWorld(t)
	w.member("oper", identity.Operator)
	path := "/v1/organizer/shows/" + w.show.Text(id.Show) + "/events"
	post := func(name, body string) reply {
		return w.golden("event_make/"+name, ask{method: "POST", path: path, customer: "oper", body: body})
	}
	var made, e OrganizerEvent
	w.into(post("draft", w.newEvent("gala")), 201, &made)
	post("again", w.newEvent("gala"))
	if got := post("no_sale_yet", strings.Replace(w.newEvent("later"), `"sale_opens_at":"2027-03-28T10:00",`, "", 1)); bytes.Contains(got.body, []byte("0001-")) {
		t.Errorf("what a draft does not say is shown as a time: %s", got.body)
	}
	post("refused", `{"key":"x","starts_at":"2027-07-01T20:00"}`)
	post("time_that_is_none", `{"key":"x","starts_at":"2027-07-01T20:00Z"}`)
	post("time_that_does_not_exist", strings.Replace(w.newEvent("hole"), `2027-03-28T10:00`, `2027-03-28T02:30`, 1))
	post("state", strings.Replace(w.newEvent("hole"), `{`, `{"state":"paused",`, 1))
	post("no_plan", strings.Replace(w.newEvent("hole"), w.plan.Hash(), "0000", 1))
	w.unknown(func() { post("outcome_unknown", w.newEvent("lost")) })
	w.golden("organizer_events/all", ask{path: w.mine("/events?query=gala"), customer: "oper"})
	w.member("dora", identity.Door)
	w.golden("organizer_events/door_no_drafts", ask{path: w.mine("/events?from=2027-07-01T00:00:00Z"), customer: "dora"})
	w.golden("organizer_events/cursor", ask{path: w.mine("/events?cursor=x"), customer: "oper"})
	at := "/v1/organizer/events/" + made.ID
	w.into(w.golden("organizer_event/draft", ask{path: at, customer: "oper"}), 200, &e)
	if e.State != "draft" || e.Version != 1 {
		t.Errorf("made %+v", e)
	}
	patch := func(name, body string) reply {
		return w.golden("event_change/"+name, ask{method: "PATCH", path: at, customer: "oper", body: body})
	}
	patch("no_version", `{"title":"New"}`)
	patch("currency", `{"version":1,"currency":"USD"}`)
	w.into(patch("scheduled", `{"version":1,"state":"scheduled","limits":{"event":6,"show":12},"doors_at":"2027-07-01T19:00","documents_required":true}`), 200, &e)
	w.golden("organizer_events/door", ask{path: w.mine("/events?from=2027-07-01T00:00:00Z"), customer: "dora"})
	patch("changed_since", `{"version":1,"extend_max":2}`)
	patch("state", `{"version":2,"state":"draft"}`)
	patch("refused", `{"version":2,"prices":[{"category":"NONE","name":"None","face_minor":-1}],"extend_max":99}`)
	patch("time", `{"version":2,"doors_at":"soon"}`)
	patch("door_open", `{"version":2,"doors_at":"","quotas":[],"refunds":{}}`)
	w.unknown(func() { patch("outcome_unknown", `{"version":3,"extend_max":2}`) })
	if got := w.ask(ask{path: "/v1/events/" + made.ID}); got.status != 200 {
		t.Errorf("what is scheduled is not there for customers: status %d", got.status)
	}
}

func TestGoldenVerbs(t *testing.T) {
	w := newWorld(t)
	w.member("owner", identity.Owner)
	changes := 0
	w.api.EventChanged = func(context.Context) error { changes++; return nil }
	do := func(verb, name, event string) {
		w.golden("event_"+verb+"/"+name, ask{method: "POST", path: w.at(event, "/"+verb), customer: "owner"})
	}
	do("pause", "paused", "now")
	do("pause", "again", "now")
	do("resume", "resumed", "now")
	do("open", "opened", "later")
	do("resume", "of_a_draft", "draft")
	do("pause", "of_a_draft", "draft")
	do("close", "of_a_draft", "draft")
	do("close", "closed", "refuse")
	do("open", "after_its_end", "refuse")
	do("cancel", "cancelled", "cheap")
	do("cancel", "again", "cheap")
	w.unknown(func() {
		for _, verb := range []string{"pause", "resume", "open", "close", "cancel"} {
			do(verb, "outcome_unknown", "later")
		}
	})
	if changes < 7 {
		t.Errorf("the program has heard of %d changes", changes)
	}
	restart := func(name string, err error) {
		w.api.Restart = func(context.Context, id.ID) error { return err }
		do("restart", name, "now")
	}
	do("restart", "not_from_here", "now")
	restart("restarted", nil)
	restart("not_stopped", fault.New(fault.Conflict, "the event is not stopped; it is on_sale"))
	restart("outcome_unknown", fault.New(fault.OutcomeUnknown, ""))
	// Each is in the audit log, with who did it; what was refused is not.
	var log LogList
	w.into(w.golden("audit_log/verbs", ask{path: w.mine("/log"), customer: "owner"}), 200, &log)
	if len(log.Entries) < 8 || log.Entries[0].Action != "event.restart" || log.Entries[0].Actor != w.customer("owner").Text(id.Customer) {
		t.Errorf("%+v", log.Entries)
	}
	w.golden("audit_log/cursor", ask{path: w.mine("/log?cursor=x"), customer: "owner"})
}

func TestGoldenBlocks(t *testing.T) {
	w := newWorld(t)
	w.member("oper", identity.Operator)
	w.hold("ann", w.seatsBody("now", "A-A-1", "A-A-2"))
	do := func(verb, name, body string) {
		w.golden("seats_"+verb+"/"+name, ask{method: "POST", path: w.at("now", "/"+verb), customer: "oper", body: body})
	}
	do("block", "blocked", `{"seat_ids":["A-B-1","A-B-2"]}`)
	w.problemOf(w.ask(w.post(w.seatsBody("now", "A-B-1"), "ben")), "seats_taken")
	do("block", "taken", `{"seat_ids":["A-A-1","A-B-3"]}`)
	do("block", "when_free", `{"seat_ids":["A-A-1"],"when_free":true}`)
	do("block", "none", `{"seat_ids":[]}`)
	do("block", "unknown", `{"seat_ids":["A-B-1","Z-1"]}`)
	do("unblock", "given_back", `{"seat_ids":["A-B-1","A-B-3"]}`)
	do("unblock", "unknown", `{"seat_ids":["Z-1"]}`)
	do("unblock", "when_free", `{"seat_ids":["A-B-1"],"when_free":true}`)
	many := make([]string, seatsEditMax+1)
	body, err := json.Marshal(SeatsEdit{Seats: many})
	w.must(err)
	w.problemOf(w.ask(ask{method: "POST", path: w.at("now", "/block"), customer: "oper", body: string(body)}), "invalid")
	w.unknown(func() {
		do("block", "outcome_unknown", `{"seat_ids":["A-B-5"]}`)
		do("unblock", "outcome_unknown", `{"seat_ids":["A-B-5"]}`)
	})
	w.hold("ben", w.seatsBody("now", "A-B-1"))
}

func TestGoldenOrders(t *testing.T) {
	w := newWorld(t)
	w.member("viewer", identity.Viewer)
	b := browser{}
	w.enter(b, "cleo@example.com")
	w.must(w.people.SetProfile(t.Context(), w.of(b), "=Cleo \"C\" 孙", "en"))
	ann := w.paid("ann", "A-A-1", "A-A-2")
	var h Hold
	w.into(w.visit(b, ask{method: "POST", path: "/v1/holds", body: w.seatsBody("now", "A-B-1")}), 201, &h)
	if got := w.ask(ask{method: "POST", path: "/v1/bookings", header: b.header(), key: "c", body: fmt.Sprintf(`{"hold_id":%q,"payment_token":%q}`, h.ID, declined)}); got.status != 402 {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	find := func(name, query string, count int) {
		var list OrganizerBookingList
		w.into(w.golden("organizer_bookings/"+name, ask{path: w.at("now", "/bookings"+query), customer: "viewer"}), 200, &list)
		if len(list.Bookings) != count {
			t.Errorf("%s: %d bookings, want %d", query, len(list.Bookings), count)
		}
	}
	find("all", "", 2)
	find("state", "?state=PAID", 1)
	find("email", "?email=Cleo@Example.com", 1)
	find("email_unknown", "?email=nobody@example.com", 0)
	find("name", "?name=cleo", 1)
	find("seat", "?seat_id=A-A-2", 1)
	find("one", "?booking_id="+ann.ID, 1)
	find("one_of_another_state", "?state=FAILED&booking_id="+ann.ID, 0)
	find("nothing", "?name=nobody", 0)
	for name, query := range map[string]string{"state": "state=x", "email": "email=x", "name": "name=x", "seat": "seat_id=x", "cursor": "cursor=x", "booking": "booking_id=x", "customer": "customer_id=x"} {
		w.golden("organizer_bookings/bad_"+name, ask{path: w.at("now", "/bookings?"+query), customer: "viewer"})
	}
	w.golden("organizer_booking/paid", ask{path: "/v1/organizer/bookings/" + ann.ID, customer: "viewer"})
	w.golden("booking_history/paid", ask{path: "/v1/organizer/bookings/" + ann.ID + "/history", customer: "viewer"})
	w.golden("event_figures/now", ask{path: w.at("now", "/figures"), customer: "viewer"})
	w.golden("bookings_export/csv", ask{path: w.at("now", "/export"), customer: "viewer"})
	w.golden("bookings_export/json", ask{path: w.at("now", "/export?format=json"), customer: "viewer"})
	w.golden("bookings_export/none", ask{path: w.at("cheap", "/export?format=json"), customer: "viewer"})
	w.golden("bookings_export/format", ask{path: w.at("now", "/export?format=xls"), customer: "viewer"})
	w.member("oper", identity.Operator)
	recount := ask{method: "POST", path: w.at("now", "/audit"), customer: "oper"}
	w.golden("event_audit/not_from_here", recount)
	w.api.Audit = func(_ context.Context, event id.ID) (any, bool, error) {
		return map[string]string{"event": event.Text(id.Event)}, true, nil
	}
	w.golden("event_audit/ok", recount)
	w.api.audits <- struct{}{}
	w.golden("event_audit/busy", recount)
	if strings.Contains(w.log.String(), "example.com") || strings.Contains(w.log.String(), "Cleo") {
		t.Error("E10: the log names somebody")
	}
}

// of is the customer who is signed in with a browser.
func (w *world) of(b browser) id.ID {
	w.t.Helper()
	var me Me
	w.into(w.visit(b, ask{path: "/v1/me"}), 200, &me)
	number, err := id.Parse(id.Customer, me.Customer)
	w.must(err)
	return number
}

func TestGoldenMembers(t *testing.T) {
	w := newWorld(t)
	w.member("owner", identity.Owner)
	w.member("door", identity.Door)
	door := "/members/" + w.customer("door").Text(id.Customer)
	self := "/members/" + w.customer("owner").Text(id.Customer)
	do := func(name, method, rest, body string) reply {
		return w.golden(name, ask{method: method, path: w.mine(rest), customer: "owner", body: body})
	}
	do("members_list/two", "GET", "/members", "")
	do("member_set/viewer", "PUT", door, `{"role":"viewer"}`)
	do("member_set/bad_role", "PUT", door, `{"role":"king"}`)
	do("member_set/last_owner", "PUT", self, `{"role":"viewer"}`)
	do("member_set/stranger", "PUT", "/members/"+w.customer("ann").Text(id.Customer), `{"role":"owner"}`)
	do("member_remove/removed", "DELETE", door, "")
	do("member_remove/again", "DELETE", door, "")
	do("member_remove/last_owner", "DELETE", self, "")

	var made Invitation
	w.into(do("invitation_make/made", "POST", "/invitations", `{"email":"New@Example.com","role":"operator","locale":"zh-CN"}`), 201, &made)
	mail := <-w.mails.invites
	if mail.To != "new@example.com" || mail.Token == "" || mail.Name != "House" {
		t.Errorf("mailed %+v", mail)
	}
	do("invitation_make/no_address", "POST", "/invitations", `{"role":"operator"}`)
	do("invitation_make/bad_role", "POST", "/invitations", `{"email":"new@example.com","role":"king"}`)
	do("invitations_list/one", "GET", "/invitations", "")
	// Of another organizer nothing can be taken, whatever the path names.
	w.roles.set(w.customer("cleo"), map[id.ID]identity.Role{w.rival: identity.Owner})
	theirs := "/v1/organizer/organizers/" + w.rival.Text(id.Org)
	for _, a := range []ask{
		{method: "DELETE", path: theirs + "/invitations/" + made.ID}, {method: "DELETE", path: theirs + self}, {method: "PUT", path: theirs + self, body: `{"role":"door"}`},
		{path: theirs + "/plans/" + w.plan.Hash()},
	} {
		a.customer = "cleo"
		w.problemOf(w.ask(a), "not_found")
	}
	do("invitation_withdraw/withdrawn", "DELETE", "/invitations/"+made.ID, "")
	do("invitation_withdraw/again", "DELETE", "/invitations/"+made.ID, "")
	for i := range identity.InvitationsMax {
		_, _, err := w.people.Invite(t.Context(), identity.Actor{}, identity.Invite{Organizer: w.house, Name: "House", Email: fmt.Sprintf("a%d@example.com", i), Role: identity.Door})
		w.must(err)
		<-w.mails.invites
	}
	do("invitation_make/too_many", "POST", "/invitations", `{"email":"new@example.com","role":"operator"}`)
	w.api.Codes = false
	do("invitation_make/no_mail", "POST", "/invitations", `{"email":"new@example.com","role":"operator"}`)
	if log := w.log.String(); strings.Contains(log, "example.com") || strings.Contains(log, mail.Token) {
		t.Error("E10: the log has an address or a token")
	}
}

func TestGoldenEndpoints(t *testing.T) {
	w := newWorld(t)
	w.member("owner", identity.Owner)
	do := func(name, method, rest, body string) reply {
		return w.golden(name, ask{method: method, path: w.mine("/webhooks" + rest), customer: "owner", body: body})
	}
	var made, other WebhookEndpoint
	w.into(do("endpoint_make/made", "POST", "", `{"url":"https://hooks.example/a","kinds":["booking.paid"]}`), 201, &made)
	do("endpoint_make/again", "POST", "", `{"url":"https://hooks.example/a"}`)
	do("endpoint_make/inside", "POST", "", `{"url":"https://127.0.0.1/a"}`)
	do("endpoint_make/plain", "POST", "", `{"url":"http://hooks.example/a"}`)
	do("endpoint_make/kind", "POST", "", `{"url":"https://hooks.example/b","kinds":["sun.rise"]}`)
	do("endpoint_make/off", "POST", "", `{"url":"https://hooks.example/b","on":false}`)
	w.into(w.ask(ask{method: "POST", path: w.mine("/webhooks"), customer: "owner", body: `{"url":"https://hooks.example/b"}`}), 201, &other)
	do("endpoints_list/two", "GET", "", "")
	at := "/" + made.ID
	do("endpoint_change/off", "PATCH", at, `{"on":false}`)
	do("endpoint_change/taken", "PATCH", at, `{"url":"https://hooks.example/b"}`)
	do("endpoint_change/plain", "PATCH", at, `{"url":"http://hooks.example/a"}`)
	var again WebhookEndpoint
	w.into(do("endpoint_rotate/rotated", "POST", at+"/rotate", ""), 200, &again)
	if again.Secret == "" || again.Secret == made.Secret {
		t.Error("the secret is the old one")
	}
	do("deliveries_list/none", "GET", at+"/deliveries", "")
	do("deliveries_list/state", "GET", at+"/deliveries?state=x", "")
	do("deliveries_replay/dead", "POST", at+"/replay", `{"dead":true}`)
	do("deliveries_replay/what", "POST", at+"/replay", `{}`)
	do("deliveries_replay/when", "POST", at+"/replay", `{"since":"yesterday"}`)
	do("deliveries_replay/unknown", "POST", at+"/replay", `{"message_id":"msg_x"}`)
	// Another organizer's owner has none of it.
	w.roles.set(w.customer("cleo"), map[id.ID]identity.Role{w.rival: identity.Owner})
	theirs := "/v1/organizer/organizers/" + w.rival.Text(id.Org) + "/webhooks" + at
	for _, a := range []ask{
		{method: "PATCH", path: theirs, body: `{"on":true}`}, {method: "DELETE", path: theirs}, {method: "POST", path: theirs + "/rotate"},
		{path: theirs + "/deliveries"}, {method: "POST", path: theirs + "/replay", body: `{"dead":true}`},
	} {
		a.customer = "cleo"
		w.problemOf(w.ask(a), "not_found")
	}
	do("endpoint_remove/removed", "DELETE", at, "")
	do("endpoint_remove/again", "DELETE", at, "")
	w.api.Endpoints = nil
	do("endpoints_list/not_from_here", "GET", "", "")
}

// An export has everything once, whatever its size, and a page of bookings everything after it.
func TestExportHasEverythingOnce(t *testing.T) {
	w := newWorld(t)
	w.member("viewer", identity.Viewer)
	const count = ordersPage + 3
	made := map[string]bool{}
	for k := range count {
		var b Booking
		h := w.hold("ann", w.best("cheap", `{"quantity":1}`))
		w.into(w.book("ann", h.ID, "", fmt.Sprint("key", k)), 201, &b)
		made[b.ID] = true
	}
	got := w.ask(ask{path: w.at("cheap", "/export"), customer: "viewer"})
	rows, err := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(got.body, []byte(byteOrderMark)))).ReadAll()
	w.must(err)
	if len(rows) != count+1 || !slices.Equal(rows[0], exportColumns) {
		t.Fatalf("%d rows of %d bookings: %v", len(rows), count, rows[0])
	}
	for _, row := range rows[1:] {
		if !made[row[0]] {
			t.Errorf("%s is there twice, or is not ours", row[0])
		}
		delete(made, row[0])
	}
	listed := 0
	for cursor, first := "", true; first || cursor != ""; first = false {
		var list OrganizerBookingList
		w.into(w.ask(ask{path: w.at("cheap", "/bookings?cursor="+cursor), customer: "viewer"}), 200, &list)
		listed += len(list.Bookings)
		cursor = list.Next
	}
	if listed != count {
		t.Errorf("the pages have %d bookings, want %d", listed, count)
	}
}

// Half an export is no export: a ledger that goes away in the middle cuts it off.
func TestExportIsWholeOrNone(t *testing.T) {
	w := newWorld(t)
	w.member("viewer", identity.Viewer)
	w.ledger.failReading(fmt.Errorf("sqlite: disk I/O error"))
	got := w.ask(ask{path: w.at("now", "/export"), customer: "viewer"})
	p := w.problemOf(got, "internal")
	if p.Detail != "" || got.header.Get("Content-Disposition") != "" {
		t.Errorf("%+v, %v", p, got.header)
	}
}

// What a cell says is read back as it was, and no spreadsheet takes it for a formula.
func FuzzCell(f *testing.F) {
	for _, text := range []string{"", "Ann", "=1+1", "+49", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'", "''=1", "＝1", "a,b", `a"b`, "a\nb", "=HYPERLINK(\"http://x\")", "孙", "\ufeff=1", " =1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\r\x00") {
			t.Skip("the catalog and people take no such text; encoding/csv reads \\r\\n as \\n")
		}
		var out bytes.Buffer
		w := csv.NewWriter(&out)
		if err := w.Write([]string{safeCell(text), "x"}); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil || len(rows) != 1 || len(rows[0]) != 2 {
			t.Fatalf("%q became %q, %v", text, rows, err)
		}
		cell := rows[0][0]
		if strings.HasPrefix(cell, "=") || strings.HasPrefix(cell, "+") || strings.HasPrefix(cell, "-") || strings.HasPrefix(cell, "@") || strings.HasPrefix(cell, "\t") {
			t.Fatalf("%q is a formula: %q", text, cell)
		}
		if back := strings.TrimPrefix(cell, "'"); back != text {
			t.Fatalf("%q was read back as %q", text, back)
		}
	})
}
