package httpapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"onsale/internal/guard"
)

// A stream begins with the status, and tells the turn when it comes.
func TestStreamOfALine(t *testing.T) {
	w := newWorld(t)
	w.line()
	place := w.join("line", "ann")
	for rest, events := range map[string][]string{"/stream": {"status"}, "/" + place.ID + "/stream": {"status", "turn"}} {
		response, err := http.DefaultClient.Do(w.request(w.server.URL, ask{path: w.queue("line", rest)}))
		w.must(err)
		if kind := response.Header.Get("Content-Type"); response.StatusCode != 200 || kind != "text/event-stream" {
			t.Fatalf("status %d, %s", response.StatusCode, kind)
		}
		lines := bufio.NewScanner(response.Body)
		heard := map[string]bool{}
		for _, event := range events {
			for !heard[event] && lines.Scan() {
				name, ok := strings.CutPrefix(lines.Text(), "event: ")
				heard[name] = heard[name] || ok
			}
			if !heard[event] {
				t.Errorf("%s: no %s: %v", rest, event, lines.Err())
			}
		}
		w.must(response.Body.Close())
	}
	http.DefaultClient.CloseIdleConnections()
	w.problemOf(w.ask(ask{path: w.queue("line", "/none/stream")}), "queue_unknown")
	w.problemOf(w.ask(ask{path: w.queue("other", "/"+place.ID+"/stream")}), "queue_unknown")
	w.problemOf(w.ask(ask{path: w.queue("now", "/stream")}), "conflict")
}

// Who looks like a machine is shown a picture and a sound, and joins with what they say; another answer does not do.
func TestThePersonCheck(t *testing.T) {
	w := newWorld(t)
	w.scripted()
	robot := http.Header{"User-Agent": {"HeadlessChrome"}}
	var task guard.Ask
	w.into(w.ask(ask{path: w.queue("line", "/challenge"), customer: "ann", header: robot}), 200, &task)
	if task.Person == nil || task.Person.Provider != "picture" {
		t.Fatalf("%+v", task)
	}
	picture := w.ask(ask{path: "/v1/person-check/picture?token=" + task.Person.Token})
	if _, err := png.Decode(bytes.NewReader(picture.body)); err != nil || picture.header.Get("Content-Type") != "image/png" || picture.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the picture: %d %v %v", picture.status, err, picture.header)
	}
	sound := w.ask(ask{path: "/v1/person-check/sound?token=" + task.Person.Token})
	if sound.status != 200 || !bytes.HasPrefix(sound.body, []byte("RIFF")) {
		t.Errorf("the sound: %d", sound.status)
	}
	proof, _ := task.Proof.Solve()
	body := fmt.Sprintf(`{"proof":%q,"person":{"provider":"picture","token":%q,"answer":"?"}}`, proof, task.Person.Token)
	w.problemOf(w.ask(ask{method: "POST", path: w.queue("line", ""), customer: "ann", header: robot, body: body}), "person_required")
}

// A wish is left, seen, changed and taken back; who stood in the line keeps their place in it.
func TestTheWaitlist(t *testing.T) {
	w := newWorld(t)
	w.line()
	path := "/v1/events/" + w.event("line") + "/waitlist"
	w.problemOf(w.ask(ask{path: path, customer: "ann"}), "wish_unknown")
	w.problemOf(w.ask(ask{method: "POST", path: "/v1/events/" + w.event("now") + "/waitlist", customer: "ann", body: `{"quantity":2}`}), "conflict")
	for _, body := range []string{`{}`, `{"quantity":2,"least_quantity":3}`, `{"quantity":1,"categories":["GOLD"]}`, `{"quantity":1,"sections":["Z"]}`, `{"quantity":1,"price_max_minor":-1}`} {
		w.problemOf(w.ask(ask{method: "POST", path: path, customer: "ann", body: body}), "invalid")
	}
	place := w.join("line", "ann")
	body, err := json.Marshal(WaitlistRequest{Quantity: 2, Least: 1, Categories: []string{"CAT1"}, Sections: []string{"A"}, Together: true, Queue: place.ID})
	w.must(err)
	var wish, again Wish
	w.into(w.ask(ask{method: "POST", path: path, customer: "ann", body: string(body)}), 201, &wish)
	if wish.State != "waiting" || wish.Quantity != 2 || wish.Least != 1 || len(wish.Categories) != 1 || wish.Categories[0] != "CAT1" || !wish.Together {
		t.Errorf("%+v", wish)
	}
	stored, err := w.ledger.WishOf(t.Context(), w.events["line"], w.customer("ann"))
	w.must(err)
	if stored.Order != place.Number {
		t.Errorf("her place in the line was %d, on the list it is %d", place.Number, stored.Order)
	}
	w.into(w.ask(ask{path: path, customer: "ann"}), 200, &again)
	if again.ID != wish.ID {
		t.Errorf("%+v", again)
	}
	w.problemOf(w.ask(ask{path: path, customer: "ben"}), "wish_unknown")
	w.into(w.ask(ask{method: "DELETE", path: path, customer: "ann"}), 200, &again)
	w.into(w.ask(ask{method: "DELETE", path: path, customer: "ann"}), 200, &again) // twice is harmless
	if again.State != "withdrawn" {
		t.Errorf("%+v", again)
	}
}
