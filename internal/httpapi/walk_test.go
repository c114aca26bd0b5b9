package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/outbox/webhook"
)

// things are what the customer "ann" has, by the name of the parameter that names it.
func (w *world) things() map[string]string {
	w.t.Helper()
	b := w.paid("ann", "A-A-1", "A-A-2")
	hook, _, err := w.hooks.Add(w.t.Context(), w.house, "https://hooks.example/things", nil)
	w.must(err)
	return map[string]string{
		"organizer_id": w.house.Text(id.Org), "event_id": w.event("now"), "plan_hash": w.plan.Hash(), "provider": "sandbox",
		"hold_id": w.hold("ann", w.seatsBody("now", "A-B-1", "A-B-2")).ID, "booking_id": b.ID, "ticket_id": b.Tickets[0].ID,
		"show_id": w.show.Text(id.Show), "refund_id": w.ledger.plant(w, b.ID).Text(id.Refund),
		"customer_id": w.customer("ann").Text(id.Customer), "invitation_id": id.ID(5).Text("inv"), "endpoint_id": hook.ID.Text(webhook.Prefix), "queue_id": "none", "block_id": id.ID(5).Text(id.Block),
	}
}

// filled is a route's path with things in it.
func filled(path string, things map[string]string) string {
	for name, value := range things {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	return strings.TrimSuffix(path, "{$}")
}

// bodies are what a route is asked with.
func (w *world) bodyOf(r route, things map[string]string) string {
	switch r.ID {
	case "hold_make":
		return w.seatsBody("now", "A-A-9")
	case "booking_make":
		return fmt.Sprintf(`{"hold_id":%q,"payment_token":"tok_sure"}`, things["hold_id"])
	}
	return ""
}

// walk asks every route that has to do with a customer in the name of everybody but her, and says what was wrong.
func (w *world) walk(things map[string]string, only string) (wrong []string) {
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	declared := routesByID()
	for _, r := range w.api.routes {
		if declared[r.ID].Who.kind <= either || only != "" && r.ID != only {
			continue
		}
		paths := []string{filled(r.Path, things)}
		if r.ID == "ticket_get" {
			paths = append(paths, paths[0]+".png")
		}
		for _, path := range paths {
			a := ask{method: r.Method, path: path, body: w.bodyOf(r, things)}
			if r.Key != keyNone {
				a.key = "walk"
			}
			for name, authorization := range w.badTokens() {
				a.header = http.Header{"Authorization": {authorization}}
				if got := w.ask(a); got.status != http.StatusUnauthorized || bytes.Contains(got.body, []byte("A-B-1")) {
					complain("%s %s with %s: status %d, %s", r.Method, path, name, got.status, got.body)
				}
			}
			a.header, a.customer = nil, "ben"
			got := w.ask(a)
			switch who := declared[r.ID].Who; {
			case who.kind == customer && r.ID != "booking_make": // may be used by anybody, but hers is not shown
				for _, hers := range things {
					if r.ID != "hold_make" && bytes.Contains(got.body, []byte(hers)) {
						complain("%s %s shows another customer hers: %s", r.Method, path, got.body)
					}
				}
			case got.status == http.StatusForbidden, got.status == http.StatusNotFound:
				var p Problem
				if err := json.Unmarshal(got.body, &p); err != nil || p.Booking != "" || p.Seats != nil || p.Detail != "" {
					complain("%s %s for another customer: too much is said: %s", r.Method, path, got.body)
				}
			default:
				complain("%s %s for another customer: status %d, %s", r.Method, path, got.status, got.body)
			}
		}
	}
	return wrong
}

// badTokens are values of Authorization that are nobody's, by what is wrong with them.
func (w *world) badTokens() map[string]string {
	stranger, err := identity.NewThrowaway()
	w.must(err)
	forged, err := stranger.Mint("ann", w.now(), time.Hour)
	w.must(err)
	old, err := w.throwaway.Mint("ann", w.now().Add(-2*time.Hour), time.Hour)
	w.must(err)
	good := w.token("ann")
	return map[string]string{
		"nothing": "", "no scheme": good, "another scheme": "Basic " + good, "only a scheme": "Bearer", "an empty token": "Bearer ", "noise": "Bearer noise",
		"another's signature": "Bearer " + forged, "an old token": "Bearer " + old, "a cut token": "Bearer " + good[:len(good)-6],
	}
}

func TestWrongCustomersGetNothing(t *testing.T) {
	w := newWorld(t)
	things := w.things()
	for _, wrong := range w.walk(things, "") {
		t.Error(wrong)
	}
	// And nothing was done in her name.
	var h Hold
	w.into(w.ask(ask{path: "/v1/holds/" + things["hold_id"], customer: "ann"}), 200, &h)
	if h.State != "live" || h.Booking != "" {
		t.Errorf("her hold is %+v", h)
	}
	var list BookingList
	w.into(w.ask(ask{path: "/v1/bookings", customer: "ann"}), 200, &list)
	if len(list.Bookings) != 1 {
		t.Errorf("she has %d bookings", len(list.Bookings))
	}
}

// Negative control: a route that was opened to everybody makes the walk fail, whichever it is.
func TestForgottenAuthIsFound(t *testing.T) {
	w := newWorld(t)
	things := w.things()
	whole := w.api.routes
	for i, r := range whole {
		if !r.Who.signedIn() {
			continue
		}
		w.api.routes = slices.Clone(whole)
		w.api.routes[i].Who = public
		w.server.Close()
		w.serve()
		if len(w.walk(things, r.ID)) == 0 {
			t.Errorf("%s for everybody: the walk finds nothing", r.ID)
		}
	}
}

func TestHeadAnswersAsGetWithoutABody(t *testing.T) {
	w := newWorld(t)
	things := w.things()
	w.scripted()
	w.ask(w.joining("line", "ann", ""))
	lines := maps.Clone(things)
	lines["event_id"], lines["queue_id"] = w.event("line"), "ticket-0"
	w.roles.set(w.customer("ann"), map[id.ID]identity.Role{w.house: identity.Owner})
	for _, r := range w.api.routes {
		if r.Method != http.MethodGet || r.ID == "seats_stream" || r.ID == "draw_list" || r.ID == "codes_list" || r.ID == "booking_evidence" || unshown(r) || strings.HasPrefix(r.ID, "sign_in_") {
			continue
		}
		for _, header := range []http.Header{nil, {"Accept-Encoding": {"gzip"}, "Accept": {octets}}} {
			a := ask{path: filled(r.Path, things), header: header}
			if r.Tag == "Waiting room" || r.ID == "room_get" {
				a.path = filled(r.Path, lines)
			}
			if r.Who.signedIn() {
				a.customer = "ann"
			}
			get := w.ask(a)
			a.method = http.MethodHead
			head := w.ask(a)
			if get.status != http.StatusOK && r.ID != "exchange_quote" || head.status != get.status || len(head.body) != 0 {
				t.Errorf("%s: GET %d, HEAD %d with %d bytes", r.ID, get.status, head.status, len(head.body))
			}
			for _, name := range append([]string{"Content-Length"}, shownHeaders...) {
				if got, want := head.header.Values(name), get.header.Values(name); !slices.Equal(got, want) {
					t.Errorf("%s: %s of HEAD is %q, of GET %q", r.ID, name, got, want)
				}
			}
		}
	}
}

func TestOtherMethodsAreRefused(t *testing.T) {
	w := newWorld(t)
	things := w.things()
	allowed := map[string][]string{}
	for _, r := range w.api.routes {
		allowed[r.Path] = append(allowed[r.Path], r.Method)
		if r.Method == http.MethodGet {
			allowed[r.Path] = append(allowed[r.Path], http.MethodHead)
		}
	}
	for path, methods := range allowed {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			if slices.Contains(methods, method) {
				continue
			}
			got := w.ask(ask{method: method, path: filled(path, things), customer: "ann"})
			if got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != strings.Join(methods, ", ") {
				t.Errorf("%s %s: status %d, Allow %q, want %q", method, path, got.status, got.header.Get("Allow"), methods)
			}
			if method != "HEAD" {
				w.problemOf(got, "method_not_allowed")
				leaksNothing(t, path, got)
			}
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{
		"/v1", "/v1/", "/v1/holds/", "//", "//v1/events", "/v1/../etc/passwd", "/./v1/events", "/v1/events/..", "/v1/events/x/seats/y",
		"/favicon.ico", "/metrics", "/readyz", "/debug/pprof/", "/v1/tickets/a%2Fb", "/%00", "/v1/holds/hold_0000000000001/extend/again",
	} {
		for _, method := range []string{"GET", "POST"} {
			got := w.ask(ask{method: method, path: path, customer: "ann"})
			if got.status != http.StatusNotFound && got.status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: status %d", method, path, got.status)
			}
			leaksNothing(t, method+" "+path, got)
		}
	}
}

func TestUnknownThings(t *testing.T) {
	w := newWorld(t)
	things := w.things()
	for _, strange := range []string{"0", "hold_", "hold_0000000000000", "hold_8000000000000", id.ID(9).Text(id.Refund), "%00", "%ff%fe", "..%2f..", strings.Repeat("a", 5000), "' OR 1=1 --", "null", "%F0%9F%8E%AB"} {
		strange = strings.ReplaceAll(strange, " ", "%20")
		for _, r := range w.api.routes {
			if !strings.Contains(r.Path, "_id}") && !strings.Contains(r.Path, "_hash}") {
				continue
			}
			made := map[string]string{}
			for name := range things {
				made[name] = strange
			}
			got := w.ask(ask{method: r.Method, path: filled(r.Path, made), customer: "ann"})
			if got.status != http.StatusNotFound {
				t.Errorf("%s with %.20q: status %d: %s", r.ID, strange, got.status, got.body)
			}
			leaksNothing(t, r.ID, got)
		}
	}
}
