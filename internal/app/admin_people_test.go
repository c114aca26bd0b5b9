package app

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/venue"
)

// The commands about organizers' people, on a folder and on a running server.
func TestCommandsAboutPeople(t *testing.T) {
	for name, serve := range map[string]bool{"without a server": false, "with a server": true} {
		t.Run(name, func(t *testing.T) {
			s := settings(folder(t))
			if serve {
				start(t, s)
			}
			c, err := Dial(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			peopleCommands(t, c)
		})
	}
}

func peopleCommands(t *testing.T, c *Client) {
	call := func(method, path string, in, out any) {
		t.Helper()
		if err := c.Call(t.Context(), method, path, in, out); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	refused := func(method, path string, in any, words string) {
		t.Helper()
		var out any
		if err := c.Call(t.Context(), method, path, in, &out); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s %s %+v: got %v, want %q", method, path, in, err, words)
		}
	}
	var o AdminOrganizer
	arena := OrganizerRequest{Key: "arena", Name: "The Arena", Owner: "Ann@Example.com"}
	for range 2 { // again is harmless
		call("POST", "/organizers", arena, &o)
	}
	refused("POST", "/organizers", OrganizerRequest{Key: "arena", Name: "Another", Owner: "ann@example.com"}, "called \"The Arena\"")
	refused("POST", "/organizers", OrganizerRequest{Key: "hall", Name: "The Hall", Owner: "ann"}, "has no @")
	var people AdminPeople
	call("POST", "/organizers/arena/members", MemberRequest{Who: "bob@example.com", Role: "door"}, &people)
	if len(people.Members) != 2 || people.Members[0].Role != "owner" || people.Members[0].Emails[0] != "ann@example.com" || people.Members[1].Role != "door" {
		t.Fatalf("%+v", people)
	}
	bob := people.Members[1].Customer
	call("POST", "/organizers/arena/members", MemberRequest{Who: bob, Role: "viewer"}, &people)
	refused("POST", "/organizers/arena/members", MemberRequest{Who: bob, Role: "boss"}, "must be one of")
	refused("POST", "/organizers/arena/members", MemberRequest{Who: "cus_X", Role: "door"}, "not a customer's id")
	refused("POST", "/organizers/arena/members/remove", MemberRequest{Who: "ann@example.com"}, "last owner")
	refused("POST", "/organizers/arena/members/remove", MemberRequest{Who: "eve@example.com"}, "nobody has signed in")
	refused("GET", "/organizers/none/members", nil, "onsale organizer list")
	call("POST", "/organizers/arena/members/remove", MemberRequest{Who: bob}, &people)
	var i AdminInvitation
	call("POST", "/organizers/arena/invitations", MemberRequest{Who: "bob@example.com", Role: "operator"}, &i)
	call("GET", "/organizers/arena/members", nil, &people)
	if len(people.Members) != 1 || len(people.Invitations) != 1 || people.Invitations[0].ID != i.ID || i.Token == "" || people.Invitations[0].Token != "" {
		t.Fatalf("%+v, %+v", people, i)
	}
	refused("DELETE", "/organizers/arena/invitations/x", nil, "not an invitation's id")
	call("DELETE", "/organizers/arena/invitations/"+i.ID, nil, &people)
	if len(people.Invitations) != 0 {
		t.Errorf("%+v", people)
	}
	var all []AdminOrganizer
	call("GET", "/organizers", nil, &all)
	found := 0
	for _, listed := range all {
		if listed == o {
			found++
		}
		if listed.Key == "hall" {
			t.Error("what was refused was made")
		}
	}
	if found != 1 {
		t.Errorf("%+v is %d times in %+v", o, found, all)
	}
}

// What an operator's command changes stands in the audit log beside what organizers change, by the same words.
func TestCommandsAreInTheAuditLog(t *testing.T) {
	s := settings(folder(t))
	c := dialed(t, s)
	ctx := t.Context()
	arena := venue.Generate(venue.GenerateOptions{Seats: 100})
	plan, err := arena.Encode()
	must(t, err)
	file := ImportRequest{File: DemoFile(arena, time.Now(), DemoSale{HoldTTL: time.Minute, PaymentWindow: time.Minute}), Plan: plan}
	var events []AdminEvent
	for range 2 { // what changes nothing is no entry
		must(t, c.Call(ctx, "POST", "/events", file, &events))
	}
	event := events[0].ID
	must(t, c.Call(ctx, "POST", "/events/"+event+"/pause", nil, &AdminEvent{}))
	var hook AdminWebhook
	must(t, c.Call(ctx, "POST", "/webhooks/add", WebhookRequest{URL: "https://example.com/hook"}, &hook))
	for _, verb := range []string{"rotate", "off", "remove"} {
		must(t, c.Call(ctx, "POST", "/webhooks/"+hook.ID+"/"+verb, WebhookRequest{}, &AdminWebhook{}))
	}
	must(t, c.Call(ctx, "POST", "/keys/rotate", RotateRequest{Purpose: "ticket"}, &[]AdminKey{}))
	must(t, c.Call(ctx, "POST", "/organizers", OrganizerRequest{Key: "hall", Name: "Hall", Owner: "ann@example.com"}, &AdminOrganizer{}))
	must(t, c.Call(ctx, "POST", "/customers/export", CustomerRequest{Who: "ann@example.com"}, &CustomerExport{}))
	must(t, c.Close())

	a, err := Open(ctx, s)
	must(t, err)
	defer func() { must(t, a.Close(ctx)) }()
	house, err := a.organizer(ctx)
	must(t, err)
	actions := func(organizer id.ID) (all []string) {
		log, err := a.Control.People().List(ctx, organizer, 0, 100)
		must(t, err)
		for _, e := range log {
			if e.Actor != 0 || e.Target == "" || e.At.IsZero() {
				t.Errorf("%+v", e)
			}
			all = append([]string{e.Action}, all...)
		}
		return all
	}
	if got, want := actions(house.ID), []string{"event.make", "event.pause", "webhook.make", "webhook.rotate", "webhook.change", "webhook.remove"}; !slices.Equal(got, want) {
		t.Errorf("the house's log has %q, want %q", got, want)
	}
	for _, want := range []string{"keys.rotate", "customer.export"} {
		if all := actions(0); !slices.Contains(all, want) {
			t.Errorf("%q is not in %q", want, all)
		}
	}
}

func TestAProgramWithoutMailSendsNone(t *testing.T) {
	if err := (noMail{}).SendCode(context.Background(), identity.CodeMail{}); err == nil {
		t.Error("a mail went nowhere, and nobody was told")
	}
}
