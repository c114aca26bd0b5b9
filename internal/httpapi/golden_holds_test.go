package httpapi

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

func (w *world) post(body string, customer string) ask {
	return ask{method: "POST", path: "/v1/holds", customer: customer, body: body}
}

// best is a body that asks for the best available.
func (w *world) best(event, wish string) string {
	return fmt.Sprintf(`{"event_id":%q,"best_available":%s}`, w.event(event), wish)
}

func TestGoldenHoldMake(t *testing.T) {
	w := newWorld(t)
	w.golden("hold_make/seats", w.post(w.seatsBody("now", "A-A-1", "A-A-2"), "ann"))
	w.golden("hold_make/area", w.post(fmt.Sprintf(`{"event_id":%q,"area_id":"FLOOR","quantity":3}`, w.event("now")), "ann"))
	w.golden("hold_make/best", w.post(w.best("now", `{"quantity":3,"category":"CAT1","section":"A","adjacency":"together"}`), "ann"))
	w.golden("hold_make/best_accessible", w.post(w.best("cheap", `{"quantity":2,"accessible":1}`), "ann"))
	w.golden("hold_make/orphan_warned", w.post(w.seatsBody("now", "A-A-4", "A-A-5"), "ben"))
	w.golden("hold_make/seats_taken", w.post(w.seatsBody("now", "A-A-2", "A-A-9", "A-A-1"), "ben"))
	w.golden("hold_make/places_taken", w.post(fmt.Sprintf(`{"event_id":%q,"area_id":"FLOOR","quantity":4}`, w.event("now")), "ben"))
	w.golden("hold_make/limit_reached", w.post(w.seatsBody("now", "A-B-1", "A-B-2", "A-B-3"), "ann"))
	w.golden("hold_make/orphan_refused", w.post(w.seatsBody("refuse", "A-A-2", "A-A-3"), "ann"))
	w.golden("hold_make/no_seats_found", w.post(w.best("now", `{"quantity":5,"category":"PREMIUM","adjacency":"together","accessible":5}`), "ben"))
	w.golden("hold_make/scheduled", w.post(w.seatsBody("later", "A-A-2"), "ann"))
	w.golden("hold_make/draft", w.post(w.seatsBody("draft", "A-A-2"), "ann"))
	w.golden("hold_make/draft_no_seat", w.post(w.seatsBody("draft", "Z"), "ann"))
	w.golden("hold_make/draft_best", w.post(w.best("draft", `{"quantity":2}`), "ann"))
	w.golden("hold_make/unknown_event", w.post(fmt.Sprintf(`{"event_id":%q,"seat_ids":["A-A-1"]}`, id.ID(5).Text(id.Event)), "ann"))
	w.golden("hold_make/seat_unknown", w.post(w.seatsBody("now", "A-A-1", "A-Z-\u202e99"), "ann"))
	w.golden("hold_make/area_unknown", w.post(fmt.Sprintf(`{"event_id":%q,"area_id":"BALCONY","quantity":1}`, w.event("now")), "ann"))
	w.golden("hold_make/no_token", w.post(w.seatsBody("now", "A-A-9"), ""))
	invalid := w.post(w.seatsBody("now", "A-A-9"), "")
	invalid.header = map[string][]string{"Authorization": {"Bearer x.y.z"}}
	w.golden("hold_make/token_invalid", invalid)
	_, err := w.catalog.Change(t.Context(), w.events["refuse"], "pause")
	w.must(err)
	w.golden("hold_make/paused", w.post(w.seatsBody("refuse", "A-A-1"), "ann"))
	w.inventory.Unload(w.events["later"])
	w.golden("hold_make/best_not_loaded_yet", w.post(w.best("later", `{"quantity":2}`), "ann"))
	w.inventory.Unload(w.events["now"])
	w.golden("hold_make/best_being_loaded", w.post(w.best("now", `{"quantity":2}`), "ann"))
}

func TestGoldenHoldKeys(t *testing.T) {
	w := newWorld(t)
	keyed := func(body string) ask {
		a := w.post(body, "ann")
		a.key = `"1f3c"`
		return a
	}
	body := w.seatsBody("now", "A-A-1", "A-A-2")
	var first, again Hold
	w.into(w.golden("hold_make/keyed", keyed(body)), 201, &first)
	w.into(w.golden("hold_make/keyed_again", keyed(body)), 201, &again)
	if again.ID != first.ID {
		t.Errorf("I5: a repeat made %s, the first %s", again.ID, first.ID)
	}
	// The same in other words: white space, order, escapes, a field that says nothing.
	other := strings.Replace(body, `{"event_id"`, "{ \"quantity\": 0,\n\t\"event_\\u0069d\"", 1)
	w.into(w.ask(keyed(other)), 201, &again)
	if again.ID != first.ID {
		t.Errorf("I5: the same in other words made %s, the first %s", again.ID, first.ID)
	}
	w.golden("hold_make/key_reused", keyed(w.seatsBody("now", "A-A-1", "A-A-3")))
	w.golden("hold_make/key_reused_way", keyed(w.best("now", `{"quantity":2}`)))
	w.golden("hold_make/key_of_another", ask{method: "POST", path: "/v1/holds", customer: "ben", key: "1f3c", body: w.seatsBody("now", "A-A-5", "A-A-6")})
	// A12: a refusal is not kept.
	taken := ask{method: "POST", path: "/v1/holds", customer: "ben", key: "second", body: body}
	w.problemOf(w.ask(taken), "seats_taken")
	w.into(w.ask(ask{method: "DELETE", path: "/v1/holds/" + first.ID, customer: "ann"}), 200, &again)
	w.into(w.ask(taken), 201, &again)
	w.golden("hold_make/keyed_released", keyed(body))
	w.pass(11 * time.Minute)
	var late Hold
	w.into(w.ask(taken), 201, &late)
	if late.ID != again.ID || late.State != "expired" {
		t.Errorf("A12: a repeated hold is the hold as it is now: %+v", late)
	}
}

func TestGoldenHoldInvalid(t *testing.T) {
	w := newWorld(t)
	now := w.event("now")
	for name, body := range map[string]string{
		"nothing_named":     fmt.Sprintf(`{"event_id":%q}`, now),
		"two_ways":          fmt.Sprintf(`{"event_id":%q,"seat_ids":["A-A-1"],"area_id":"FLOOR","quantity":1}`, now),
		"quantity_alone":    fmt.Sprintf(`{"event_id":%q,"seat_ids":["A-A-1"],"quantity":1}`, now),
		"quantity_zero":     fmt.Sprintf(`{"event_id":%q,"area_id":"FLOOR"}`, now),
		"quantity_negative": fmt.Sprintf(`{"event_id":%q,"area_id":"FLOOR","quantity":-1}`, now),
		"quantity_huge":     fmt.Sprintf(`{"event_id":%q,"area_id":"FLOOR","quantity":9223372036854775807}`, now),
		"quantity_too_big":  fmt.Sprintf(`{"event_id":%q,"area_id":"FLOOR","quantity":9223372036854775808}`, now),
		"quantity_half":     fmt.Sprintf(`{"event_id":%q,"area_id":"FLOOR","quantity":1.5}`, now),
		"quantity_text":     fmt.Sprintf(`{"event_id":%q,"area_id":"FLOOR","quantity":"1"}`, now),
		"seats_object":      fmt.Sprintf(`{"event_id":%q,"seat_ids":{"A-A-1":true}}`, now),
		"seats_nested":      fmt.Sprintf(`{"event_id":%q,"seat_ids":[["A-A-1"]]}`, now),
		"seat_twice":        fmt.Sprintf(`{"event_id":%q,"seat_ids":["A-A-1","A-A-1"]}`, now),
		"seat_nul":          fmt.Sprintf(`{"event_id":%q,"seat_ids":["A-A-1\u0000"]}`, now),
		"seats_too_many":    fmt.Sprintf(`{"event_id":%q,"seat_ids":["A-A-1"%s]}`, now, strings.Repeat(`,"A-A-1"`, 500)),
		"event_no_id":       `{"event_id":"tonight","seat_ids":["A-A-1"]}`,
		"event_null":        `{"event_id":null,"seat_ids":["A-A-1"]}`,
		"event_missing":     `{"seat_ids":["A-A-1"]}`,
		"event_hold_id":     fmt.Sprintf(`{"event_id":%q,"seat_ids":["A-A-1"]}`, id.ID(7).Text(id.Hold)),
		"best_zero":         w.best("now", `{"quantity":0}`),
		"best_many":         w.best("now", `{"quantity":9}`),
		"best_category":     w.best("now", `{"quantity":1,"category":"GOLD"}`),
		"best_section":      w.best("now", `{"quantity":1,"section":"Z"}`),
		"best_adjacency":    w.best("now", `{"quantity":1,"adjacency":"near"}`),
		"best_accessible_3": w.best("now", `{"quantity":1,"accessible":2}`),
		"best_array":        w.best("now", `[]`),
		"best_unknown":      w.best("now", `{"quantity":1,"row":"A"}`),
		"unknown_field":     fmt.Sprintf(`{"event_id":%q,"seat_ids":["A-A-1"],"seats":["A-A-1"]}`, now),
		"other_letters":     fmt.Sprintf(`{"event_id":%q,"SEAT_IDS":["A-A-1"]}`, now),
		"field_twice":       fmt.Sprintf(`{"event_id":%q,"seat_ids":["A-A-1"],"seat_ids":["A-A-2"]}`, now),
		"body_array":        `[]`,
		"body_null":         `null`,
		"body_text":         `"hello"`,
		"body_broken":       `{"event_id":`,
		"body_behind":       fmt.Sprintf(`{"event_id":%q,"seat_ids":["A-A-1"]} {}`, now),
		"body_no_json":      `event_id=evt_1`,
		"body_not_utf8":     "{\"event_id\":\"\xff\"}",
		"body_deep":         strings.Repeat(`[`, 30_000),
		"body_deep_field":   `{"event_id":` + strings.Repeat(`[`, 30_000),
		"body_too_large":    `{"event_id":"` + strings.Repeat("a", BodyBytesMax) + `"}`,
	} {
		w.golden("hold_make/"+name, w.post(body, "ann"))
	}
	plain := w.post(w.seatsBody("now", "A-A-1"), "ann")
	for name, kind := range map[string]string{"type_text": "text/plain", "type_form": "application/x-www-form-urlencoded", "type_none": "", "type_charset": "application/json; charset=utf-16"} {
		plain.header = map[string][]string{"Content-Type": {kind}}
		w.golden("hold_make/"+name, plain)
	}
	for name, keys := range map[string][]string{
		"key_empty": {""}, "key_quotes": {`""`}, "key_twice": {"a", "b"}, "key_joined": {"a, b"}, "key_long": {strings.Repeat("k", 256)},
		"key_letters": {"schlüssel"}, "key_inner_quote": {`"a"b"`},
	} {
		plain.header = map[string][]string{"Idempotency-Key": keys}
		w.golden("hold_make/"+name, plain)
	}
	var h Hold
	plain.header = map[string][]string{"Content-Type": {"application/json; Charset=UTF-8"}, "Idempotency-Key": {strings.Repeat("k", 255)}}
	w.into(w.ask(plain), 201, &h)
}

func TestGoldenHoldWithoutLedger(t *testing.T) {
	w := newWorld(t)
	a := w.post(w.seatsBody("now", "A-A-1"), "ann")
	h := w.hold("ann", w.seatsBody("now", "A-B-1", "A-B-2")).ID
	w.ledger.failWith(fmt.Errorf("the line went dead: %w", ledger.ErrOutcomeUnknown))
	w.golden("hold_make/outcome_unknown", a)
	w.golden("hold_release/outcome_unknown", ask{method: "DELETE", path: "/v1/holds/" + h, customer: "ann"})
	w.golden("hold_extend/outcome_unknown", ask{method: "POST", path: "/v1/holds/" + h + "/extend", customer: "ann"})
	w.golden("booking_make/outcome_unknown", ask{method: "POST", path: "/v1/bookings", customer: "ann", key: "k", body: fmt.Sprintf(`{"hold_id":%q,"payment_token":"t"}`, h)})
	w.ledger.failWith(errors.New("sqlite: INSERT INTO holds: disk I/O error at /var/lib/onsale/shard.db"))
	w.golden("hold_make/internal", a)
	w.ledger.failWith(nil)

	// I13: the queue has room for 8; what comes then is told to come back.
	release, at := w.ledger.block()
	var waiting sync.WaitGroup
	for k := range 9 {
		waiting.Go(func() { w.ask(w.post(w.seatsBody("now", fmt.Sprintf("A-B-%d", k+1)), fmt.Sprint("customer", k))) })
		if k == 0 {
			<-at // it is being applied, not waiting
		}
	}
	until(t, func() bool { return w.batcher.Stats().Queue == 8 })
	w.drain()
	w.golden("hold_make/busy", a)
	w.drain()
	w.golden("booking_make/busy", ask{method: "POST", path: "/v1/bookings", customer: "ann", key: "k", body: fmt.Sprintf(`{"hold_id":%q,"payment_token":"t"}`, h)})
	release()
	waiting.Wait()
	w.golden("hold_make/busy_is_over", a)
}

// until waits for what another goroutine brings about, without a sleep.
func until(t testing.TB, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it did not come about")
		}
	}
}

func TestGoldenHoldLife(t *testing.T) {
	w := newWorld(t)
	at := func(h string) string { return "/v1/holds/" + h }
	one := w.hold("ann", w.seatsBody("now", "A-A-1", "A-A-2"))
	w.golden("hold_get/live", ask{path: at(one.ID), customer: "ann"})
	w.golden("hold_get/wrong_customer", ask{path: at(one.ID), customer: "ben"})
	w.golden("hold_get/unknown", ask{path: at(id.ID(3).Text(id.Hold)), customer: "ann"})
	w.golden("hold_get/no_id", ask{path: at("mine"), customer: "ann"})
	w.golden("hold_get/no_token", ask{path: at(one.ID)})
	w.golden("hold_get/token_invalid", ask{path: at(one.ID), header: map[string][]string{"Authorization": {"Bearer a"}}})
	w.pass(5 * time.Minute)
	w.golden("hold_extend/once", ask{method: "POST", path: at(one.ID) + "/extend", customer: "ann"})
	w.golden("hold_extend/twice", ask{method: "POST", path: at(one.ID) + "/extend", customer: "ann"})
	w.golden("hold_extend/wrong_customer", ask{method: "POST", path: at(one.ID) + "/extend", customer: "ben"})
	w.golden("hold_extend/unknown", ask{method: "POST", path: at("hold_0000000000003") + "/extend", customer: "ann"})
	w.golden("hold_extend/no_token", ask{method: "POST", path: at(one.ID) + "/extend"})
	w.golden("hold_extend/token_invalid", ask{method: "POST", path: at(one.ID) + "/extend", header: map[string][]string{"Authorization": {"bearer a"}}})
	w.golden("hold_release/wrong_customer", ask{method: "DELETE", path: at(one.ID), customer: "ben"})
	w.golden("hold_release/once", ask{method: "DELETE", path: at(one.ID), customer: "ann"})
	w.golden("hold_release/again", ask{method: "DELETE", path: at(one.ID), customer: "ann"})
	w.golden("hold_release/unknown", ask{method: "DELETE", path: at("hold_0000000000003"), customer: "ann"})
	w.golden("hold_release/no_token", ask{method: "DELETE", path: at(one.ID)})
	w.golden("hold_release/token_invalid", ask{method: "DELETE", path: at(one.ID), header: map[string][]string{"Authorization": {"Bearer a"}}})
	w.golden("hold_get/released", ask{path: at(one.ID), customer: "ann"})

	two := w.hold("ann", w.seatsBody("now", "A-A-1"))
	w.into(w.book("ann", two.ID, pendingToken, "two"), 202, &Booking{})
	w.golden("hold_get/being_paid", ask{path: at(two.ID), customer: "ann"})
	w.golden("hold_release/payment_in_progress", ask{method: "DELETE", path: at(two.ID), customer: "ann"})
	w.golden("hold_extend/payment_in_progress", ask{method: "POST", path: at(two.ID) + "/extend", customer: "ann"})
	b := w.paid("ann", "A-B-1")
	w.golden("hold_get/sold", ask{path: at(b.Hold), customer: "ann"})
	w.golden("hold_release/sold", ask{method: "DELETE", path: at(b.Hold), customer: "ann"})
	three := w.hold("ann", w.seatsBody("now", "A-B-5"))
	w.pass(10 * time.Minute)
	w.golden("hold_get/expired", ask{path: at(three.ID), customer: "ann"}) // I4: though nobody has swept it
	w.golden("hold_extend/expired", ask{method: "POST", path: at(three.ID) + "/extend", customer: "ann"})
	w.golden("hold_release/expired", ask{method: "DELETE", path: at(three.ID), customer: "ann"})
}
