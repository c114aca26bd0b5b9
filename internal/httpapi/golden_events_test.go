package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"onsale/internal/id"
)

func TestGoldenEvents(t *testing.T) {
	w := newWorld(t)
	for name, query := range map[string]string{
		"all": "", "words": "?query=OPEN+rehearsal", "none": "?query=elsewhere", "city": "?city=hamburg&from=2027-06-03T00:00:00%2B02:00",
		"until": "?to=2027-06-02T00:00:00Z", "from_wrong": "?from=tomorrow", "to_before_from": "?from=2027-06-02T00:00:00Z&to=2027-06-01T00:00:00Z",
		"cursor_wrong": "?cursor=x", "query_unreadable": "?query=%zz", "query_not_text": "?query=%00", "query_too_long": "?query=" + strings.Repeat("a", QueryBytesMax),
		"too_many_words": "?query=a+b+c+d+e+f+g+h+i",
	} {
		w.golden("events_list/"+name, ask{path: "/v1/events" + query})
	}
	w.golden("event_get/on_sale", ask{path: "/v1/events/" + w.event("now")})
	w.golden("event_get/free", ask{path: "/v1/events/" + w.event("cheap")})
	w.golden("event_get/scheduled", ask{path: "/v1/events/" + w.event("later")})
	w.golden("event_get/draft", ask{path: "/v1/events/" + w.event("draft")})
	w.golden("event_get/no_id", ask{path: "/v1/events/tomorrow"})
	w.golden("event_get/unknown", ask{path: "/v1/events/" + id.ID(77).Text(id.Event)})
	_, err := w.catalog.Change(t.Context(), w.events["refuse"], "pause")
	w.must(err)
	w.golden("event_get/paused", ask{path: "/v1/events/" + w.event("refuse")})
}

func TestGoldenPlan(t *testing.T) {
	w := newWorld(t)
	path := "/v1/plans/" + w.plan.Hash()
	plain := w.golden("plan_get/plain", ask{path: path})
	packed := w.golden("plan_get/gzip", ask{path: path, header: http.Header{"Accept-Encoding": {"br, gzip;q=0.8"}}})
	if len(packed.body) >= len(plain.body) {
		t.Errorf("packed it has %d bytes, plain %d", len(packed.body), len(plain.body))
	}
	w.golden("plan_get/not_modified", ask{path: path, header: http.Header{"If-None-Match": {plain.header.Get("ETag")}}})
	w.golden("plan_get/unknown", ask{path: "/v1/plans/" + strings.Repeat("0", 64)})
	w.golden("plan_get/no_hash", ask{path: "/v1/plans/..%00"})
}

func TestGoldenSeats(t *testing.T) {
	w := newWorld(t)
	path := "/v1/events/" + w.event("now") + "/seats"
	before := w.golden("seats_get/json", ask{path: path})
	w.golden("seats_get/octets", ask{path: path, header: http.Header{"Accept": {octets}}})
	w.golden("seats_get/not_modified", ask{path: path, header: http.Header{"If-None-Match": {`"9j", ` + before.header.Get("ETag")}}})
	var seats Seats
	w.into(before, 200, &seats)
	w.hold("ann", w.seatsBody("now", "A-A-1", "A-A-2"))
	w.hold("ann", fmt.Sprintf(`{"event_id":%q,"area_id":"FLOOR","quantity":2}`, w.event("now")))
	w.paid("ben", "A-B-3")
	w.golden("seats_get/later", ask{path: path, header: http.Header{"If-None-Match": {before.header.Get("ETag")}}})
	w.golden("seats_get/since", ask{path: fmt.Sprintf("%s?since=%d", path, seats.Version)})
	w.golden("seats_get/since_nothing", ask{path: fmt.Sprintf("%s?since=%d", path, seats.Version+4)})
	w.golden("seats_get/since_gone", ask{path: path + "?since=0"})
	w.golden("seats_get/since_negative", ask{path: path + "?since=-1"})
	w.golden("seats_get/since_huge", ask{path: path + "?since=99999999999999999999"})
	w.golden("seats_get/draft", ask{path: "/v1/events/" + w.event("draft") + "/seats"})
	w.golden("seats_get/query_unreadable", ask{path: path + "?since=%"})

	stream := path + "/stream"
	w.golden("seats_stream/draft", ask{path: "/v1/events/" + w.event("draft") + "/seats/stream"})
	w.golden("seats_stream/last_event_wrong", ask{path: stream, header: http.Header{"Last-Event-Id": {"x"}}})
	w.golden("seats_stream/head", ask{method: "HEAD", path: stream})
	for range 4 {
		sub, err := w.inventory.Subscribe(w.events["now"], -1)
		w.must(err)
		defer sub.Close()
	}
	w.golden("seats_stream/busy", ask{path: stream})
	w.inventory.Unload(w.events["cheap"])
	w.inventory.Unload(w.events["later"])
	w.golden("seats_get/not_loaded_yet", ask{path: "/v1/events/" + w.event("later") + "/seats"})
	w.golden("seats_get/since_not_loaded_yet", ask{path: "/v1/events/" + w.event("later") + "/seats?since=1"})
	w.golden("seats_stream/not_loaded_yet", ask{path: "/v1/events/" + w.event("later") + "/seats/stream"})
	w.golden("seats_get/not_loaded", ask{path: "/v1/events/" + w.event("cheap") + "/seats"})
	w.golden("event_get/not_loaded", ask{path: "/v1/events/" + w.event("cheap")})
}

func TestGoldenRunning(t *testing.T) {
	w := newWorld(t)
	w.golden("home/page", ask{path: "/"})
	w.golden("docs/page", ask{path: "/docs"})
	w.golden("openapi/document", ask{path: "/openapi.json"})
	w.golden("health/ok", ask{path: "/healthz"})
	w.golden("jwks/keys", ask{path: "/.well-known/jwks.json"})
	w.golden("not_found/path", ask{path: "/v2/events"})
	w.golden("not_found/chinese", ask{path: "/v2/events", header: http.Header{"Accept-Language": {"fr, zh-TW;q=0.8, en;q=0.5"}}})
	w.golden("not_found/not_clean", ask{method: "POST", path: "/v1//holds", body: "{}"})
	w.golden("not_found/slash_behind", ask{path: "/v1/events/"})
	w.golden("method_not_allowed/put", ask{method: "PUT", path: "/v1/holds/hold_0000000000001", body: "{}"})
	w.golden("method_not_allowed/options", ask{method: "OPTIONS", path: "/v1/events"})
}
