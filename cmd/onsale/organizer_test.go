package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"onsale/internal/app"
)

func TestPeopleAreATableWithHeads(t *testing.T) {
	var out bytes.Buffer
	people := app.AdminPeople{Members: []app.AdminMember{{Role: "owner", Customer: "cus_1", Emails: []string{"ann@example.com"}}},
		Invitations: []app.AdminInvitation{{ID: "inv_1", Email: "ben@example.com", Role: "door", Expires: time.Unix(1e9, 0)}}}
	if err := printPeople(&out, people); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 4 || strings.Join(strings.Fields(lines[0]), " ") != "ROLE ID EMAIL NAME" || strings.Index(lines[0], "ID") != strings.Index(lines[1], "cus_1") {
		t.Errorf("got\n%s", &out)
	}
	for _, line := range lines {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("blanks at the end of %q", line)
		}
	}
}
