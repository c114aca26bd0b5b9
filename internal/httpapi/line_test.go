package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"onsale/internal/booking"
	"onsale/internal/catalog/eventfile"
	"onsale/internal/guard"
	"onsale/internal/id"
	"onsale/internal/inventory"
	"onsale/internal/keys"
	"onsale/internal/ledger"
	"onsale/internal/presale"
	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/joinlog"
)

// lineFile has events for which people wait: "line" (the sale is open), "early" (people may join), "presale" (lanes), "device".
const lineFile = `format: 1
venue: { name: Kleine Halle, city: Hamburg, country: DE, zone: Europe/Berlin, plan: hall.json }
show: { key: waiting, title: Waiting }
currency: EUR
limits: { event: 8 }
sale: { opens: "2027-03-01T09:59:00Z", closes: "2027-06-01T18:00:00Z" }
orphans: { mode: "off" }
waitlist: true
tiers: [{ category: PREMIUM, face: "0" }, { category: CAT1, face: "0" }, { category: CAT2, face: "0" }, { category: STANDING, face: "0" }]
room: { rate: 500, active_max: 200, turn: 60s, stay: 5m, joins_open_before: 2h, draw_wait: 1s }
exchanges: { until_before: 24h }
performances:
  - { key: line, starts: "2027-06-01T20:00" }
  - { key: other, starts: "2027-06-02T20:00" }
  - { key: early, starts: "2027-06-03T20:00", sale: { opens: "2027-03-01T11:00:00Z" } }
  - key: presale
    starts: "2027-06-04T20:00"
    room: { lanes: [{ key: codes, access: codes, weight: 2 }, { key: friends, access: members }, { key: all }] }
  - { key: device, starts: "2027-06-05T20:00", room: { join_requires: device, rate: 500, active_max: 100 } }
`

// importLines brings the events for which people wait.
func (w *world) importLines() {
	w.t.Helper()
	file, err := eventfile.Parse([]byte(lineFile))
	w.must(err)
	done, err := w.catalog.Import(w.t.Context(), w.house, file.Import(w.plan.Hash()))
	w.must(err)
	for _, d := range done {
		w.events[d.Event.Key] = d.Event.ID
		w.must(w.inventory.Load(w.t.Context(), d.Event.ID, w.plan, inventory.Rules{}))
	}
}

// line adds waiting rooms to a world, whose clock runs from now on.
func (w *world) line() *waitingroom.Service {
	w.t.Helper()
	ctx := w.t.Context()
	w.mu.Lock()
	w.running = time.Now()
	w.mu.Unlock()
	w.importLines()
	var guards keys.Key
	var err error
	for _, purpose := range []keys.Purpose{keys.Queue, keys.Admission, keys.Guard} {
		guards, err = w.ring.EnsureActive(ctx, purpose)
		w.must(err)
	}
	joins, err := joinlog.Open(w.t.TempDir())
	w.must(err)
	rooms, err := waitingroom.New(waitingroom.Options{
		Store: waitingroom.NewMemory(), Log: joins, Ledger: w.batcher, Reader: w.ledger, Keys: w.ring, ListKey: []byte("a key of a test, long enough"),
		Draw: func(context.Context, id.ID) (k [32]byte, err error) {
			copy(k[:], "the secret of a draw in a test ..")
			return k, nil
		},
		NewID: func(event id.ID) (id.ID, error) { return w.newID(event.Shard()) }, Issuer: "https://tickets.example", Now: w.now,
	})
	w.must(err)
	w.api.Rooms = rooms
	w.api.Gate = guard.NewGate(guard.GateOptions{Secrets: func() [][]byte { return [][]byte{guards.Secret()} }, Difficulty: 1, Now: w.now()})
	w.api.Presale = presale.New(w.controls.Presale(), []byte("pepper"), w.now)
	w.api.Waitlist = booking.NewWaitlist(booking.WaitlistOptions{Shard: w.batcher, IDs: numbers(w.newID)})
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- rooms.Run(running) }()
	w.t.Cleanup(func() {
		stop()
		w.must(<-ended)
		rooms.Close()
		w.must(joins.Close())
	})
	w.server.Close()
	w.serve()
	w.until("the rooms are ready", rooms.Ready)
	for _, event := range []string{"line", "other", "presale", "device"} {
		w.until(event+" opens", func() bool {
			v, err := rooms.View(ctx, w.events[event])
			return err == nil && v.Room.Phase == ledger.RoomOpen
		})
	}
	w.until("people may join early", func() bool {
		v, err := rooms.View(ctx, w.events["early"])
		return err == nil && v.Room.Phase == ledger.RoomWaiting
	})
	return rooms
}

// until waits for what the background brings about.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			w.t.Fatalf("%s did not come about", what)
		}
	}
}

func (w *world) queue(event, rest string) string {
	return "/v1/events/" + w.event(event) + "/queue" + rest
}

// proof is the answer to a challenge, with the cookies that came with it.
func (w *world) proof(event, customer string, header http.Header) (proof string, cookies []string) {
	w.t.Helper()
	got := w.ask(ask{path: w.queue(event, "/challenge"), customer: customer, header: header})
	var c guard.Ask
	w.into(got, 200, &c)
	proof, ok := c.Proof.Solve()
	if !ok {
		w.t.Fatal("the challenge has no answer")
	}
	for _, cookie := range got.header.Values("Set-Cookie") {
		pair, _, _ := strings.Cut(cookie, ";")
		cookies = append(cookies, pair)
	}
	return proof, cookies
}

// join is a customer's place in an event's line.
func (w *world) join(event, customer string) QueuePlace {
	w.t.Helper()
	proof, _ := w.proof(event, customer, nil)
	got := w.ask(ask{method: "POST", path: w.queue(event, ""), customer: customer, body: fmt.Sprintf(`{"proof":%q}`, proof)})
	var place QueuePlace
	if got.status != 200 && got.status != 201 {
		w.t.Fatalf("status %d: %s", got.status, got.body)
	}
	w.must(json.Unmarshal(got.body, &place))
	return place
}

// admit joins, waits to be called and claims.
func (w *world) admit(event, customer string) Admission {
	w.t.Helper()
	place := w.join(event, customer)
	w.called(event, place.ID)
	var in Admission
	w.into(w.ask(ask{method: "POST", path: w.queue(event, "/"+place.ID+"/claim"), customer: customer}), 200, &in)
	return in
}

func (w *world) called(event, queueID string) {
	w.t.Helper()
	w.until("the turn", func() bool {
		var at QueuePosition
		w.into(w.ask(ask{path: w.queue(event, "/"+queueID)}), 200, &at)
		return at.Called
	})
}

// holdWith asks for a seat with an admission token.
func (w *world) holdWith(event, customer, token, seat string) reply {
	a := ask{method: "POST", path: "/v1/holds", customer: customer, body: w.seatsBody(event, seat)}
	if token != "" {
		a.header = http.Header{AdmissionHeader: {token}}
	}
	return w.ask(a)
}

func TestThroughTheRoom(t *testing.T) {
	w := newWorld(t)
	w.line()
	w.problemOf(w.holdWith("line", "ann", "", "A-A-1"), "not_admitted")
	place := w.join("line", "ann")
	if again := w.join("line", "ann"); again.Number != place.Number || again.Lane != place.Lane {
		t.Errorf("C1: the same customer has %+v and %+v", place, again)
	}
	in := w.admit("line", "ann")
	if again := w.admit("line", "ann"); again.Session != in.Session {
		t.Errorf("C7: a repeated claim made another session: %s, %s", in.Session, again.Session)
	}
	var h Hold
	w.into(w.holdWith("line", "ann", in.Token, "A-A-1"), 201, &h)

	// Leaving ends the right to hold, and nothing that is held.
	leave := ask{method: "DELETE", path: "/v1/events/" + w.event("line") + "/session", customer: "ann", header: http.Header{AdmissionHeader: {in.Token}}}
	if got := w.ask(leave); got.status != 204 {
		t.Fatalf("leaving: %d %s", got.status, got.body)
	}
	w.problemOf(w.holdWith("line", "ann", in.Token, "A-A-3"), "not_admitted")
	var b Booking
	w.into(w.book("ann", h.ID, "", "pay"), 201, &b)
	if b.State != "PAID" {
		t.Errorf("what was held before leaving is %+v", b)
	}
}
