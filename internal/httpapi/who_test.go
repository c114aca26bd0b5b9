package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
)

// routesByID is the table as it is written, whatever a test serves.
func routesByID() map[string]route {
	all := map[string]route{}
	for _, r := range (&api{}).table() {
		all[r.ID] = r
	}
	return all
}

// A walker is somebody who tries every route.
type walker struct {
	name  string // of the customer; "" for nobody
	house identity.Role
	rival identity.Role
}

// walkers are nobody, the customer of the things, another, each role of the things' organizer and of another, and one who
// is both: whose things they are and a member of another organizer.
func walkers() []walker {
	all := []walker{{}, {name: "ann"}, {name: "ben"}, {name: "cleo", rival: identity.Owner}}
	for _, role := range identity.Roles {
		all = append(all, walker{name: "house-" + string(role), house: role}, walker{name: "rival-" + string(role), rival: role},
			walker{name: "both-" + string(role), house: role, rival: identity.Owner})
	}
	return append(all, walker{name: "ann", house: identity.Door}, walker{name: "ann", rival: identity.Owner}, walker{name: "ann", house: identity.Viewer})
}

// may is what the roles mean, said a second time: who has the first may do what needs one of the others.
var may = map[identity.Role][]identity.Role{
	identity.Owner:    {identity.Owner, identity.Operator, identity.Viewer, identity.Door},
	identity.Operator: {identity.Operator, identity.Viewer, identity.Door},
	identity.Viewer:   {identity.Viewer},
	identity.Door:     {identity.Door},
}

// expected is the code with which a walker is turned away, "" where they are let in.
func (p walker) expected(w who) fault.Code {
	switch {
	case w.kind == everybody, w.kind == either:
		return ""
	case w.kind == nobody:
		return fault.NotFound
	case p.name == "":
		return fault.SignInRequired
	case w.kind == customer, w.kind == owner && p.name == "ann":
		return ""
	case w.kind == owner:
		return fault.WrongCustomer
	case p.house == "":
		return things[w.thing].unknown
	case w.kind == member && !slices.Contains(may[p.house], w.role):
		return fault.RoleMissing
	}
	return ""
}

// letIn is what a probe answers in the place of a handler.
const letIn = http.StatusTeapot

// tryAll asks every route (or only one) as every walker and holds who was let in against the table as it is written.
func (w *world) tryAll(named map[string]string, only string) (wrong []string, tried int) {
	declared := routesByID()
	whole := w.api.routes
	w.api.routes = slices.Clone(whole)
	for i := range w.api.routes {
		w.api.routes[i].Key = keyNone
		w.api.routes[i].handle = func(rw http.ResponseWriter, _ *request) error {
			send(rw, letIn, plainText, nil)
			return nil
		}
	}
	handler := w.api.handler()
	w.api.routes = whole
	for _, p := range walkers() {
		w.roles.set(w.customer("ann"), nil)
		if p.name != "" {
			w.roles.set(w.customer(p.name), map[id.ID]identity.Role{w.house: p.house, w.rival: p.rival})
		}
		for _, r := range whole {
			if only != "" && r.ID != only {
				continue
			}
			tried++
			want := p.expected(declared[r.ID].Who)
			got := w.askHandler(handler, ask{method: r.Method, path: filled(r.Path, named), customer: p.name})
			var problem Problem
			if got.status != letIn {
				w.must(json.Unmarshal(got.body, &problem))
			}
			if (got.status == letIn) != (want == "") || problem.Code != string(want) {
				wrong = append(wrong, fmt.Sprintf("%s as %+v: status %d %s, want %q", r.ID, p, got.status, problem.Code, want))
			}
			if problem.Detail != "" && want != fault.RoleMissing && want != fault.SignInRequired {
				wrong = append(wrong, fmt.Sprintf("%s as %+v: too much is said: %s", r.ID, p, got.body))
			}
		}
	}
	return wrong, tried
}

func TestWhoMayDoWhat(t *testing.T) {
	w := newWorld(t)
	wrong, tried := w.tryAll(w.things(), "")
	for _, text := range wrong {
		t.Error(text)
	}
	t.Logf("%d combinations of route and person", tried)
}

// Every route has an entry that names a thing which its path has and the table of things knows.
func TestEveryRouteHasAnEntry(t *testing.T) {
	table := (&api{}).table()
	for _, text := range withoutEntry(table) {
		t.Error(text)
	}
	if len(withoutEntry(append(table, route{Method: "GET", Path: "/v1/new", ID: "new"}))) != 1 {
		t.Error("a new route without an entry is overlooked")
	}
}

func withoutEntry(table []route) (wrong []string) {
	for _, r := range table {
		known := true
		if r.Who.thing != "" {
			_, known = things[r.Who.thing]
			known = known && strings.Contains(r.Path, "{"+r.Who.thing+"}")
		}
		switch {
		case r.Who.kind == nobody, !known, r.Who.kind == member && !r.Who.role.Known(), r.Who.kind == owner && r.Who.thing == "":
			wrong = append(wrong, fmt.Sprintf("%s %s: nobody has said who may use it (%s)", r.Method, r.Path, r.Who))
		case r.Key != keyNone && !r.Who.signedIn():
			wrong = append(wrong, r.ID+" takes a key, and nobody to whom it belongs")
		}
	}
	return wrong
}

// The whole list, to be read by whoever changes it: an entry that was made too wide is seen in the diff.
func TestListOfWho(t *testing.T) {
	var text bytes.Buffer
	for _, r := range (&api{}).table() {
		fmt.Fprintf(&text, "%-6s %-70s %s\n", r.Method, r.Path, r.Who)
	}
	const file = "testdata/who.txt"
	if *update {
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(kept, text.Bytes()) {
		t.Errorf("%s is not the table (%v; with -update it is written anew):\n%s", file, err, text.Bytes())
	}
}

// Negative controls: each of these mistakes makes the walk complain.
func TestWalkFindsMistakes(t *testing.T) {
	w := newWorld(t)
	named := w.things()
	whole := w.api.routes
	for i, r := range whole {
		if !r.Who.signedIn() {
			continue
		}
		for _, mistake := range []who{public, {}, signedIn} {
			if mistake == r.Who {
				continue
			}
			w.api.routes = slices.Clone(whole)
			w.api.routes[i].Who = mistake
			if wrong, _ := w.tryAll(named, r.ID); len(wrong) == 0 {
				t.Errorf("%s for %s instead of %s: the walk finds nothing", r.ID, mistake, r.Who)
			}
		}
	}
	w.api.routes = whole
	if !slices.ContainsFunc(whole, func(r route) bool { return r.Who.kind == member }) {
		return
	}
	w.api.Roles = anybody{}
	if wrong, _ := w.tryAll(named, ""); len(wrong) == 0 {
		t.Error("everybody has every role: the walk finds nothing")
	}
}

// anybody gives everybody every role.
type anybody struct{}

func (anybody) Role(context.Context, id.ID, id.ID) (identity.Role, error) { return identity.Owner, nil }
