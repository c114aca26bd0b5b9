package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// sane asks the handler in process: never a 500, never a panic, always the answer that the document has, and every refusal
// a problem of the catalogue.
//
// Inputs of one target come one after the other, so the world may speak for the present one.
func (w *world) sane(t *testing.T, r *http.Request, routes ...string) reply {
	t.Helper()
	w.drain()
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	got := reply{rec.Code, rec.Header(), rec.Body.Bytes()}
	route, _, _ := strings.Cut(<-w.answered, " ")
	if !slices.Contains(append(routes, "not_found", "method_not_allowed"), route) {
		t.Fatalf("the route %s answered", route)
	}
	if got.status == http.StatusInternalServerError {
		t.Fatalf("status 500: %s\n%s", got.body, w.log)
	}
	w.described(route, route, got)
	leaksNothing(t, route, got)
	return got
}

func (w *world) signedPost(path, body string) *http.Request {
	r := httptest.NewRequestWithContext(w.t.Context(), "POST", path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.token("fuzz"))
	return r
}

// forget gives back what a hold has taken, so that the hall is never full of one lucky input.
func (w *world) forget(t *testing.T, got reply) {
	t.Helper()
	if got.status != http.StatusCreated {
		return
	}
	var h Hold
	if err := json.Unmarshal(got.body, &h); err != nil || h.Quantity < 1 || len(h.Lines) != h.Quantity || h.Price.Currency == "" {
		t.Fatalf("%v: a hold of nothing: %s", err, got.body)
	}
	r := w.signedPost("/v1/holds/"+h.ID, "")
	r.Method = http.MethodDelete
	if got := w.sane(t, r, "hold_release"); got.status != 200 {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
}

func FuzzHoldBody(f *testing.F) {
	w := newWorld(f)
	for _, body := range []string{
		w.seatsBody("now", "A-A-1", "A-A-2"), w.seatsBody("refuse", "A-A-2"), w.seatsBody("draft", "A-A-2"), w.best("now", `{"quantity":2,"adjacency":"together"}`),
		w.best("cheap", `{"quantity":3,"category":"CAT1","section":"A","accessible":1}`), `{"event_id":"` + w.event("now") + `","area_id":"FLOOR","quantity":2}`,
		`{"event_id":"` + w.event("now") + `","area_id":"FLOOR","quantity":1e400}`, `{"event_id":"evt_0000000000001","seat_ids":[]}`, `{}`, `[]`, `null`, ``, `{"`, "\xff",
		`{"event_id":"\ud800","seat_ids":["\u0000"]}`, `{"best_available":{"best_available":{}}}`, `{"event_id":1}`, `{"EVENT_ID":"x","event_id":"y"}`,
	} {
		f.Add(body, "")
		f.Add(body, `"key"`)
	}
	f.Fuzz(func(t *testing.T, body, key string) {
		w.t = t
		r := w.signedPost("/v1/holds", body)
		if key != "" {
			r.Header["Idempotency-Key"] = []string{key}
		}
		w.forget(t, w.sane(t, r, "hold_make"))
	})
}

func FuzzBookingBody(f *testing.F) {
	w := newWorld(f)
	h := w.hold("ann", w.seatsBody("now", "A-A-1")) // not the fuzzer's: it may never have it
	own := w.hold("fuzz", w.seatsBody("cheap", "A-A-1"))
	for _, body := range []string{
		`{"hold_id":"` + h.ID + `","payment_token":"tok_sure"}`, `{"hold_id":"` + own.ID + `"}`, `{"hold_id":"` + own.ID + `","payment_token":"tok_sure","accept_other_seats":true}`,
		`{"hold_id":"hold_0000000000001","payment_token":""}`, `{"hold_id":"` + own.ID + `","payment_token":"\u0000"}`, `{"accept_other_seats":1}`, `{}`, `[1]`, `"x"`, ``, "{\"hold_id\":\"\xc3\"}",
	} {
		f.Add(body, "key")
		f.Add(body, "")
	}
	f.Fuzz(func(t *testing.T, body, key string) {
		w.t = t
		r := w.signedPost("/v1/bookings", body)
		r.Header["Idempotency-Key"] = []string{key}
		got := w.sane(t, r, "booking_make")
		if got.status >= 400 {
			return
		}
		var b Booking
		if err := json.Unmarshal(got.body, &b); err != nil || b.Hold != own.ID || b.Price.AmountMinor != 0 {
			t.Fatalf("%v: it booked %s", err, got.body)
		}
	})
}

func FuzzQuery(f *testing.F) {
	w := newWorld(f)
	things := map[string]string{"list": "/v1/events", "seats": "/v1/events/" + w.event("now") + "/seats", "bookings": "/v1/bookings", "event": "/v1/events/"}
	for _, query := range []string{
		"", "query=open", "query=%E4%BA%BA&city=Hamburg", "from=2027-06-01T00:00:00Z&to=2027-06-05T00:00:00%2B14:00", "cursor=x", "cursor=", "since=1", "since=0", "since=-1",
		"since=9223372036854775807", "since=1&since=2", "cursor=hold_0000000000001", "cursor=" + id.ID(1<<62).Text(id.Order), "cursor=1y2p0ij32e8e7.1y2p0ij32e8e7", "%zz", "a=%00", ";", "query=\xff",
		"from=0000-01-01T00:00:00Z", "to=9999-12-31T23:59:59-23:59", "cursor=-1.1", "query=" + strings.Repeat("a+", 20),
	} {
		for name := range things {
			f.Add(name, query)
		}
	}
	f.Fuzz(func(t *testing.T, name, query string) {
		w.t = t
		path, ok := things[name]
		if !ok {
			path = things["event"]
		}
		r := w.signedPost("/", "")
		r.Method, r.URL.Path, r.URL.RawQuery = http.MethodGet, path, query
		if path == things["event"] {
			r.URL.Path, r.URL.RawQuery = path+query, "" // as it is, not escaped
		}
		got := w.sane(t, r, "events_list", "event_get", "seats_get", "seats_stream", "bookings_list")
		if p := (Problem{}); got.status >= 400 && (json.Unmarshal(got.body, &p) != nil || fault.Lookup(fault.Code(p.Code)).Status != got.status) {
			t.Fatalf("status %d: %s", got.status, got.body)
		}
	})
}
