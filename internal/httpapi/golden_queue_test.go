package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"onsale/internal/booking"
	"onsale/internal/fault"
	"onsale/internal/guard"
	"onsale/internal/guard/picture"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
	"onsale/internal/presale"
	"onsale/internal/waitingroom"
)

// A script is waiting rooms that say what a test tells them to.
type script struct {
	Rooms
	w    *world
	fail fault.Code // of the next call
	room ledger.Room
	mine map[id.ID]waitingroom.Place
}

func (s *script) failing() error {
	if s.fail == "" {
		return nil
	}
	f := &fault.Error{Code: s.fail}
	if e := fault.Lookup(s.fail); e.Status == 503 {
		f.RetryAfter = 2 * time.Second
	}
	s.fail = ""
	return f
}

func (s *script) Join(_ context.Context, r waitingroom.JoinRequest) (waitingroom.Place, error) {
	if err := s.failing(); err != nil {
		return waitingroom.Place{}, err
	}
	p, had := s.mine[r.Customer]
	if !had {
		p = waitingroom.Place{QueueID: fmt.Sprint("ticket-", len(s.mine)), Lane: r.Lane, Number: int64(len(s.mine)), Drawn: true, Entry: "00112233445566778899aabbccddeeff", New: true}
		kept := p
		kept.New = false
		s.mine[r.Customer] = kept
	}
	return p, nil
}

func (s *script) Place(queueID string) (waitingroom.Standing, error) {
	for customer, p := range s.mine {
		if p.QueueID == queueID {
			called := p.Number > 0
			return waitingroom.Standing{Event: s.w.events["line"], Customer: customer, Lane: p.Lane, Number: p.Number, Drawn: true, Known: true, Position: 41, Ahead: 17,
				Called: called, TurnMS: 60_000, Outlook: waitingroom.OutlookLikely, Poll: 5 * time.Second}, nil
		}
	}
	return waitingroom.Standing{}, fault.New(fault.QueueUnknown, "")
}

func (s *script) ClaimFor(_ context.Context, queueID string, holder, customer id.ID) (waitingroom.Admission, error) {
	if err := s.failing(); err != nil {
		return waitingroom.Admission{}, err
	}
	if s.mine[holder].QueueID != queueID {
		return waitingroom.Admission{}, fault.New(fault.WrongCustomer, "")
	}
	return waitingroom.Admission{Token: "a.signed.token", Session: id.ID(77), Expires: ledger.TimeOf(morning.Add(10 * time.Minute))}, nil
}

func (s *script) LeaveQueue(_ context.Context, queueID string, customer id.ID) error {
	if s.mine[customer].QueueID != queueID {
		return fault.New(fault.WrongCustomer, "")
	}
	return nil
}

func (s *script) Leave(context.Context, id.ID, id.ID) error { return s.failing() }

func (s *script) Admit(_ context.Context, token string, _, _ id.ID) (id.ID, error) {
	if err := s.failing(); err != nil {
		return 0, err
	}
	if token != "a.signed.token" {
		return 0, fault.New(fault.NotAdmitted, "")
	}
	return id.ID(77), nil
}

func (s *script) Status(context.Context, id.ID) (*waitingroom.StatusPage, error) {
	return &waitingroom.StatusPage{JSON: []byte(`{"phase":"open"}`), ETag: `"one"`}, nil
}

func (s *script) SetDrawValue(context.Context, id.ID, string) error { return s.failing() }

func (s *script) WriteList(_ context.Context, _ id.ID, to io.Writer) error {
	_, err := io.WriteString(to, "general 0 00112233445566778899aabbccddeeff\n")
	return err
}

func (s *script) View(_ context.Context, event id.ID) (waitingroom.RoomView, error) {
	room := s.room
	room.Event = event
	return waitingroom.RoomView{Room: room, Figures: ledger.RoomFigures{Entered: 60, Inside: 20, Holding: 12, Paid: 30, HoldsEnded: 40, HoldsSold: 30, PlacesSold: 75},
		Joined: []waitingroom.Count{{Lane: 0, Count: 100}}, Left: waitingroom.Left{Available: 50, Held: 12}, Known: true}, nil
}

func (s *script) Changed(id.ID) {}

// scripted adds rooms by a script, and a gate that asks everybody for a proof of work.
func (w *world) scripted() *script {
	w.t.Helper()
	w.importLines()
	s := &script{w: w, mine: map[id.ID]waitingroom.Place{}, room: ledger.Room{
		Phase: ledger.RoomOpen, Commitment: "66", Frozen: ledger.TimeOf(morning.Add(-time.Minute)), ListHash: "77", Rate: 500, Inside: 20, Decided: 80, Shown: 60,
		Arrival: true, Lanes: []ledger.Lane{{Key: "general", N: 90, Joined: 100, Watermark: 80, Entered: 60}},
	}}
	w.api.Rooms = s
	secrets := func() [][]byte { return [][]byte{[]byte("a secret of a test, long enough!")} }
	w.api.Pictures = picture.New(secrets, w.now())
	w.api.Gate = guard.NewGate(guard.GateOptions{Secrets: secrets, Blocks: w.blocks(), Persons: &guard.Persons{Fallback: w.api.Pictures}, Difficulty: 1, Now: w.now()})
	w.api.Presale = presale.New(w.controls.Presale(), []byte("pepper"), w.now)
	w.api.Waitlist = booking.NewWaitlist(booking.WaitlistOptions{Shard: w.batcher, IDs: numbers(w.newID)})
	w.roles.set(w.customer("owner"), map[id.ID]identity.Role{w.house: identity.Owner})
	w.server.Close()
	w.serve()
	return s
}

func (w *world) blocks() *guard.Blocks {
	w.api.Blocks = guard.NewBlocks(w.controls.Blocks(), func() (id.ID, error) { return w.newID(0) }, w.now)
	w.api.EvidenceStore = w.controls.Evidence()
	return w.api.Blocks
}

func (w *world) joining(event, customer, more string) ask {
	w.t.Helper()
	proof, _ := w.proof(event, customer, http.Header{"User-Agent": {"Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"}})
	a := ask{method: "POST", path: w.queue(event, ""), customer: customer, body: fmt.Sprintf(`{"proof":%q%s}`, proof, more), quiet: true}
	a.header = http.Header{"User-Agent": {"Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"}}
	return a
}

func TestGoldenQueueJoin(t *testing.T) {
	w := newWorld(t)
	s := w.scripted()
	post := func(event, customer, body string) ask {
		return ask{method: "POST", path: w.queue(event, ""), customer: customer, body: body}
	}
	first := w.joining("line", "ann", "")
	w.golden("queue_join/new", first)
	w.golden("queue_join/again", first)
	w.golden("queue_join/no_proof", post("line", "ann", `{}`))
	w.golden("queue_join/no_room", post("now", "ann", `{}`))
	w.golden("queue_join/unknown_event", ask{method: "POST", path: "/v1/events/" + id.ID(5).Text(id.Event) + "/queue", customer: "ann", body: `{}`})
	w.golden("queue_join/nobody", post("line", "", `{}`))
	w.golden("queue_join/lane", post("line", "ann", `{"lane":"vip"}`))
	w.golden("queue_join/code_wrong", w.joining("presale", "ann", `,"lane":"codes","code":"NONE-1"`))
	w.golden("queue_join/no_member", w.joining("presale", "ann", `,"lane":"friends"`))
	for name, code := range map[string]fault.Code{"not_on_sale": fault.NotOnSale, "already_in_line": fault.AlreadyInLine} {
		a := w.joining("line", "ben", "")
		s.fail = code
		w.golden("queue_join/"+name, a)
	}
	// A code with one use is used up by the first, also where they send it twice.
	upload := ask{method: "POST", path: "/v1/organizer/events/" + w.event("presale") + "/room/codes", customer: "owner", body: `{"lane":"codes","codes":[{"code":"SUN-7H2K"}]}`}
	var added Uploaded
	w.into(w.ask(upload), 200, &added)
	w.golden("queue_join/code", w.joining("presale", "ann", `,"lane":"codes","code":"sun 7h2k"`))
	w.golden("queue_join/code_used_up", w.joining("presale", "ben", `,"lane":"codes","code":"sun 7h2k"`))
	// Who looks like a machine is asked to be a person.
	robot := post("line", "cleo", "")
	robot.header = http.Header{"User-Agent": {"HeadlessChrome"}}
	proof, _ := w.proof("line", "cleo", robot.header)
	robot.body, robot.quiet = fmt.Sprintf(`{"proof":%q}`, proof), true
	w.golden("queue_join/person_required", robot)
	_, err := w.api.Blocks.Add(t.Context(), guard.Block{Organizer: w.house, Kind: guard.BlockCustomer, Customer: w.customer("dan"), Reason: "resale", Until: w.now().Add(time.Hour)}, identity.Entry{})
	w.must(err)
	w.must(w.api.Blocks.Refresh(t.Context()))
	w.golden("queue_join/blocked", w.joining("line", "dan", ""))
	w.problemOf(w.holdWith("line", "dan", "a.signed.token", "A-A-1"), "blocked")
}

func TestGoldenQueue(t *testing.T) {
	w := newWorld(t)
	s := w.scripted()
	w.ask(w.joining("line", "ann", ""))
	w.ask(w.joining("line", "ben", ""))
	unknown := "/v1/events/" + id.ID(5).Text(id.Event) + "/queue"
	del := func(path, customer string) ask { return ask{method: "DELETE", path: path, customer: customer} }
	claim := func(customer string) ask {
		return ask{method: "POST", path: w.queue("line", "/ticket-1/claim"), customer: customer}
	}
	for _, route := range []struct{ id, rest string }{{"queue_status", ""}, {"queue_challenge", "/challenge"}, {"queue_position", "/ticket-0"}} {
		w.golden(route.id+"/no_room", ask{path: w.queue("now", route.rest)})
		w.golden(route.id+"/unknown_event", ask{path: unknown + route.rest})
	}
	for _, route := range []struct{ id, rest, method string }{{"queue_position", "", "GET"}, {"queue_claim", "/claim", "POST"}, {"queue_leave", "", "DELETE"}} {
		w.golden(route.id+"/queue_unknown", ask{method: route.method, path: w.queue("line", "/none"+route.rest), customer: "ben"})
		if route.method != "GET" {
			w.golden(route.id+"/no_room", ask{method: route.method, path: w.queue("now", "/none"+route.rest), customer: "ben"})
			w.golden(route.id+"/unknown_event", ask{method: route.method, path: unknown + "/none" + route.rest, customer: "ben"})
		}
	}
	// With a query they go the way of all requests, which the golden files show; without one, the short way: the same bytes.
	for name, rest := range map[string]string{"queue_status/open": "", "queue_position/waiting": "/ticket-0", "queue_position/called": "/ticket-1"} {
		slow, fast := w.golden(name, ask{path: w.queue("line", rest) + "?x=1"}), w.ask(ask{path: w.queue("line", rest)})
		if string(slow.body) != string(fast.body) || slow.header.Get("Cache-Control") != fast.header.Get("Cache-Control") || slow.header.Get("ETag") != fast.header.Get("ETag") {
			t.Errorf("%s: the short way answers %s, the other %s", name, fast.body, slow.body)
		}
	}
	if got := w.ask(ask{path: w.queue("line", ""), header: http.Header{"If-None-Match": {`"one"`}}}); got.status != 304 || len(got.body) != 0 {
		t.Errorf("who has it is answered %d %s", got.status, got.body)
	}
	var asked guard.Ask
	w.into(w.ask(ask{path: w.queue("line", "/challenge"), customer: "ann"}), 200, &asked)
	w.golden("queue_claim/entered", claim("ben"))
	w.golden("queue_claim/wrong_customer", claim("ann"))
	for _, code := range []fault.Code{fault.NotAdmitted, fault.NotOnSale, fault.Paused, fault.NextIn, fault.OutcomeUnknown} {
		s.fail = code
		w.golden("queue_claim/"+string(code), claim("ben"))
	}
	w.golden("queue_leave/nobody", del(w.queue("line", "/ticket-0"), ""))
	w.golden("queue_leave/wrong_customer", del(w.queue("line", "/ticket-0"), "ben"))
	w.golden("queue_leave/left", del(w.queue("line", "/ticket-0"), "ann"))

	session := func(event, token string) ask {
		a := del("/v1/events/"+event+"/session", "ben")
		a.header = http.Header{AdmissionHeader: {token}}
		return a
	}
	w.golden("session_leave/left", session(w.event("line"), "a.signed.token"))
	w.golden("session_leave/not_admitted", session(w.event("line"), "x"))
	w.golden("session_leave/unknown_event", session(id.ID(5).Text(id.Event), "x"))
	w.golden("session_leave/no_room", session(w.event("now"), "x"))
	s.fail = fault.AdmissionExpired
	w.golden("session_leave/expired", session(w.event("line"), "x"))

	draw := func(event, rest string) ask { return ask{path: "/v1/events/" + event + "/draw" + rest} }
	w.golden("draw_get/arrival", draw(w.event("line"), ""))
	w.golden("draw_list/list", draw(w.event("line"), "/list"))
	for _, rest := range []string{"", "/list"} {
		name := map[string]string{"": "draw_get", "/list": "draw_list"}[rest]
		w.golden(name+"/unknown_event", draw(id.ID(5).Text(id.Event), rest))
		w.golden(name+"/no_room", draw(w.event("now"), rest))
	}
	s.room.Phase, s.room.Frozen = ledger.RoomClosed, 0
	w.golden("draw_get/before", draw(w.event("line"), ""))
	w.golden("draw_list/before", draw(w.event("line"), "/list"))
	w.golden("person_picture/run_out", ask{path: "/v1/person-check/picture?token=x"})
	w.golden("person_sound/run_out", ask{path: "/v1/person-check/sound?token=x"})
}

func TestGoldenOrganizerRoom(t *testing.T) {
	w := newWorld(t)
	s := w.scripted()
	at := func(event, rest string) string { return "/v1/organizer/events/" + w.event(event) + rest }
	mine := func(method, path, body string) ask {
		return ask{method: method, path: path, customer: "owner", body: body}
	}
	w.golden("room_get/open", mine("GET", at("line", "/room"), ""))
	w.golden("room_get/no_room", mine("GET", at("now", "/room"), ""))
	w.golden("room_change/rate", mine("PATCH", at("line", "/room"), `{"rate":300,"active_max":80}`))
	w.golden("room_change/invalid", mine("PATCH", at("line", "/room"), `{"rate":-1,"turn_ms":1}`))
	for _, verb := range []string{"pause", "resume", "open"} {
		w.golden("room_"+verb+"/done", mine("POST", at("line", "/room/"+verb), ""))
		w.golden("room_"+verb+"/no_room", mine("POST", at("now", "/room/"+verb), ""))
	}
	w.golden("room_close/done", mine("POST", at("other", "/room/close"), ""))
	w.golden("room_close/no_room", mine("POST", at("now", "/room/close"), ""))
	w.golden("room_draw_value/entered", mine("POST", at("line", "/room/draw-value"), `{"value":"4 8 15 16 23 42"}`))
	w.golden("room_draw_value/no_room", mine("POST", at("now", "/room/draw-value"), `{"value":"4"}`))
	for _, code := range []fault.Code{fault.Invalid, fault.OutcomeUnknown} {
		s.fail = code
		w.golden("room_draw_value/"+string(code), mine("POST", at("line", "/room/draw-value"), `{"value":"4"}`))
	}
	w.golden("event_log/room", mine("GET", at("line", "/log"), ""))
	w.golden("event_log/cursor", mine("GET", at("line", "/log?cursor=x"), ""))

	w.golden("codes_upload/added", mine("POST", at("presale", "/room/codes"), `{"lane":"codes","codes":[{"code":"SUN-7H2K","uses_max":3,"label":"press"},{"code":"fans2027"}]}`))
	table := mine("POST", at("presale", "/room/codes?lane=codes"), "code;uses_max;label\nSUN-7H2K;5;press\nmoon-1x;2;fans\n")
	table.header = http.Header{"Content-Type": {"text/csv"}}
	w.golden("codes_upload/csv", table)
	w.golden("codes_upload/lane", mine("POST", at("presale", "/room/codes"), `{"lane":"all","codes":[{"code":"abcd"}]}`))
	w.golden("codes_upload/no_room", mine("POST", at("now", "/room/codes"), `{"lane":"all","codes":[{"code":"abcd"}]}`))
	w.golden("codes_list/page", mine("GET", at("presale", "/room/codes?lane=codes"), ""))
	w.golden("codes_list/cursor", mine("GET", at("presale", "/room/codes?lane=codes&cursor=zz"), ""))
	w.golden("codes_list/no_room", mine("GET", at("now", "/room/codes?lane=codes"), ""))
	w.golden("members_upload/added", mine("POST", at("presale", "/room/members"), `{"lane":"friends","members":["ada@example.com","bob@example.com"]}`))
	w.golden("members_upload/invalid", mine("POST", at("presale", "/room/members"), `{"lane":"friends","members":["ada"]}`))
	w.golden("members_upload/no_room", mine("POST", at("now", "/room/members"), `{"lane":"friends","members":["ada@example.com"]}`))

	blocks := "/v1/organizer/organizers/" + w.house.Text(id.Org) + "/blocks"
	var made Block
	w.into(w.golden("block_make/made", mine("POST", blocks, `{"kind":"network","target":"203.0.113.0/24","reason":"bots","until":"2027-03-02T10:00:00Z"}`)), 201, &made)
	w.golden("block_make/invalid", mine("POST", blocks, `{"kind":"network","target":"0.0.0.0/0","reason":"all","until":"2027-03-02T10:00:00Z"}`))
	w.golden("blocks_list/page", mine("GET", blocks, ""))
	w.golden("blocks_list/cursor", mine("GET", blocks+"?cursor=x", ""))
	w.golden("block_remove/removed", mine("DELETE", blocks+"/"+made.ID, ""))

	b := w.paid("ann", "A-A-1", "A-A-2")
	order, err := id.Parse(id.Order, b.ID)
	w.must(err)
	w.golden("booking_evidence/none", mine("GET", "/v1/organizer/bookings/"+b.ID+"/evidence", ""))
	w.must(w.controls.Evidence().PutEvidence(t.Context(), []guard.OrderEvidence{{Order: order, Event: w.events["now"], At: w.now(),
		Evidence: guard.Evidence{Version: 1, Score: 70, Step: "person_check", Signals: guard.Signals{Headless: true}}}}))
	w.golden("booking_evidence/seen", mine("GET", "/v1/organizer/bookings/"+b.ID+"/evidence", ""))
	w.golden("evidence_list/page", mine("GET", at("now", "/evidence"), ""))
	w.golden("evidence_list/score", mine("GET", at("now", "/evidence?score=x"), ""))
}
