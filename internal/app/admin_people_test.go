package app

import (
	"context"
	"strings"
	"testing"

	"onsale/internal/identity"
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

func TestAProgramWithoutMailSendsNone(t *testing.T) {
	if err := (noMail{}).SendCode(context.Background(), identity.CodeMail{}); err == nil {
		t.Error("a mail went nowhere, and nobody was told")
	}
}
