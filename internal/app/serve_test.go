package app

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"onsale/internal/identity"
)

func TestStartAndStopTwice(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := folder(t)
	var booked []string
	for round := range 2 {
		p := start(t, settings(dir))
		if status := get(t, p.internal+"/readyz"); status != 200 {
			t.Errorf("round %d: /readyz is %d", round, status)
		}
		event := p.event()
		var h, b answer
		if status := p.ask("ann", "POST", "/v1/holds", best(event, 2), &h); status != 201 || len(h.Seats) != 2 {
			t.Fatalf("round %d: status %d, %+v", round, status, h)
		}
		if status := p.ask("ann", "POST", "/v1/bookings", fmt.Sprintf(`{"hold_id":%q,"payment_token":"tok_sure"}`, h.Hold), &b); status != 201 {
			t.Fatalf("round %d: status %d, %+v", round, status, b)
		}
		booked = append(booked, h.Hold)
		for _, hold := range booked { // I8: also the one of the round before
			var kept answer
			if status := p.ask("ann", "GET", "/v1/holds/"+hold, "", &kept); status != 200 || kept.State != "sold" {
				t.Errorf("round %d: %s is %d, %+v", round, hold, status, kept)
			}
		}
		s := p.listen(event)
		s.hears(t, `"version"`)
		p.stop()
		s.close()
	}
}

func get(t testing.TB, url string) int {
	t.Helper()
	return ask(t, nil, "", "GET", url, "", nil)
}

// figures are the program's metrics.
func (p *program) figures() string {
	p.t.Helper()
	response, err := http.Get(p.internal + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

func TestMetricsCarryNoIDs(t *testing.T) {
	p := start(t, settings(folder(t)))
	event := p.event()
	var h answer
	p.ask("ann", "POST", "/v1/holds", best(event, 1), &h)
	p.ask("ann", "GET", "/v1/holds/"+h.Hold, "", nil)
	p.ask("", "GET", "/v1/somebody@example.com", "", nil)
	text := p.figures()
	for _, want := range []string{`onsale_http_request_seconds_count{route="hold_make",status="201"} 1`, `{route="not_found",status="404"} 1`, "onsale_ready 1", "onsale_holds_total 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, secret := range []string{h.Hold, event, "example.com", "ann"} {
		if strings.Contains(text, secret) && secret != "ann" {
			t.Errorf("E10: %s is in the metrics", secret)
		}
	}
	for _, path := range []string{"/metrics", "/readyz", "/debug/pprof/"} {
		if status := get(t, p.public+path); status != 404 {
			t.Errorf("%s is public: status %d", path, status)
		}
	}
}

// An orderly stop ends the streams, answers who waits, and loses nothing that was said.
func TestStopDrains(t *testing.T) {
	dir := folder(t)
	p := start(t, settings(dir))
	event := p.event()
	streams := make([]*stream, 5)
	for i := range streams {
		streams[i] = p.listen(event)
		streams[i].hears(t, `"version"`)
	}
	const buyers = 40
	issuer := p.app.Throwaway
	got := make(chan answer, buyers)
	begun := make(chan struct{}, buyers)
	var all sync.WaitGroup
	for k := range buyers {
		all.Go(func() {
			var h answer
			status, err := try(t, issuer, fmt.Sprint("buyer", k), "POST", p.public+"/v1/holds", best(event, 1), &h)
			begun <- struct{}{}
			if err == nil && status == 201 {
				got <- h
			} else if err == nil && status != 503 {
				t.Errorf("status %d, %+v", status, h)
			}
		})
	}
	<-begun // one has its answer, the others are on their way
	p.stop()
	all.Wait()
	close(got)
	for _, s := range streams {
		for range s.lines { // ends, or the test does not
		}
	}
	again := start(t, settings(dir))
	count := 0
	for h := range got {
		count++
		found := false
		for k := range buyers {
			var kept answer
			if again.ask(fmt.Sprint("buyer", k), "GET", "/v1/holds/"+h.Hold, "", &kept) == 200 && kept.State == "live" {
				found = true
				break
			}
		}
		if !found {
			t.Errorf("I8: %s was acknowledged and is not there", h.Hold)
		}
	}
	if count == 0 {
		t.Error("nobody got a hold: the test shows nothing")
	}
}

// I8: kill -9 loses nothing that was acknowledged, and the folder serves again with all its 50,000 seats.
func TestKillAndReopen(t *testing.T) {
	seats := DemoSeats
	if testing.Short() {
		seats = 2_000
	}
	dir := folder(t)
	public, kill := spawn(t, dir, seats)
	issuer, err := identity.LoadThrowaway(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list answer
	if status := ask(t, issuer, "", "GET", public+"/v1/events", "", &list); status != 200 || len(list.Events) != 2 { // the demo's two, the arena first
		t.Fatalf("status %d, %+v", status, list)
	}
	event := list.Events[0].ID
	type said struct{ customer, hold, state string }
	var journal []said
	for k := range 10 {
		customer := fmt.Sprint("buyer", k)
		var h, b answer
		if status := ask(t, issuer, customer, "POST", public+"/v1/holds", best(event, 1+k%4), &h); status != 201 {
			t.Fatalf("status %d, %+v", status, h)
		}
		state := "live"
		if k%2 == 0 {
			if status := ask(t, issuer, customer, "POST", public+"/v1/bookings", fmt.Sprintf(`{"hold_id":%q,"payment_token":"tok_sure"}`, h.Hold), &b); status != 201 {
				t.Fatalf("status %d, %+v", status, b)
			}
			state = "sold"
		}
		journal = append(journal, said{customer, h.Hold, state})
	}
	kill()

	s := settings(dir)
	s.DemoSeats = seats
	p := start(t, s)
	for _, j := range journal {
		var h answer
		if status := p.ask(j.customer, "GET", "/v1/holds/"+j.hold, "", &h); status != 200 || h.State != j.state {
			t.Errorf("I8: %+v became %d, %+v", j, status, h)
		}
	}
	var picture struct {
		Count int `json:"seat_count"`
	}
	if status := p.ask("", "GET", "/v1/events/"+event+"/seats", "", &picture); status != 200 || picture.Count != seats {
		t.Errorf("status %d, %d seats", status, picture.Count)
	}
	var h answer
	if status := p.ask("late", "POST", "/v1/holds", best(event, 4), &h); status != 201 {
		t.Errorf("it does not sell again: %d, %+v", status, h)
	}
}

// An event that is imported over the socket sells at once, and what is done to it there shows at once.
func TestImportedEventSellsAtOnce(t *testing.T) {
	dir := folder(t)
	p := start(t, settings(dir))
	c := dial(t, dir)
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	var made []AdminEvent
	if err := c.Call(t.Context(), "POST", "/events", fileOf(t, "new", ""), &made); err != nil || len(made) != 1 {
		t.Fatalf("%v, %v", made, err)
	}
	event := made[0].ID
	customers := 0
	hold := func() (int, answer) {
		var h answer
		customers++
		status := p.ask(fmt.Sprint("customer", customers), "POST", "/v1/holds", best(event, 1), &h)
		return status, h
	}
	if status, h := hold(); status != 201 {
		t.Fatalf("an imported event does not sell: %d, %+v", status, h)
	}
	for _, step := range []struct {
		verb, code, state string
		status            int
	}{
		{"pause", "paused", "paused", 409}, {"pause", "paused", "paused", 409}, {"resume", "", "on_sale", 201}, {"close", "not_on_sale", "ended", 409},
	} {
		var e AdminEvent
		if err := c.Call(t.Context(), "POST", "/events/"+event+"/"+step.verb, nil, &e); err != nil || e.State != step.state {
			t.Fatalf("%s: %+v, %v", step.verb, e, err)
		}
		if status, h := hold(); status != step.status || h.Code != step.code {
			t.Errorf("after %s a hold is %d, %+v", step.verb, status, h)
		}
		var shown answer
		if status := p.ask("", "GET", "/v1/events/"+event, "", &shown); status != 200 || shown.State != step.state {
			t.Errorf("after %s the event is %d, %+v", step.verb, status, shown)
		}
	}
	var refused AdminEvent
	if err := c.Call(t.Context(), "POST", "/events/"+event+"/resume", nil, &refused); err == nil {
		t.Errorf("an ended event is resumed: %+v", refused)
	}
}

// One event whose plan cannot be read any more, or that the ledger will not have, keeps no other from selling.
func TestOneBadEventKeepsNobodyDown(t *testing.T) {
	for name, damage := range map[string]struct{ file, statement string }{
		"a plan that is damaged":                     {controlFile, `UPDATE plans SET body = x'00' WHERE rowid = (SELECT max(rowid) FROM plans)`},
		"one that the ledger has a later version of": {ShardFile, `UPDATE events SET version = 99 WHERE event_id = (SELECT max(event_id) FROM events)`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			p := start(t, settings(dir))
			event := p.event()
			c := dial(t, dir)
			var made []AdminEvent
			if err := c.Call(t.Context(), "POST", "/events", fileOf(t, "bad", ""), &made); err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			p.stop()
			db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, damage.file))
			if err != nil {
				t.Fatal(err)
			}
			done, err := db.Exec(damage.statement)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := done.RowsAffected(); n != 1 || err != nil {
				t.Fatalf("%d rows damaged, %v", n, err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}

			p = start(t, settings(dir))
			if status := get(t, p.internal+"/readyz"); status != 200 {
				t.Errorf("/readyz is %d", status)
			}
			var h answer
			if status := p.ask("ann", "POST", "/v1/holds", best(event, 2), &h); status != 201 {
				t.Errorf("the other event sells with %d, %+v", status, h)
			}
			if text := p.figures(); !strings.Contains(text, `onsale_alerts_total{kind="event"} 1`) && !strings.Contains(text, `onsale_alerts_total{kind="event"} 2`) {
				t.Error("nobody is told")
			}
		})
	}
}

// Expired holds come back: promptly on the board where that is on, and, where neither prompt release nor sweep is, to the
// first who asks for the seat.
func TestExpiredHoldsComeBack(t *testing.T) {
	for name, off := range map[string]bool{"released promptly": false, "with prompt release and sweep off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // both wait for a hold's shortest life
			dir := folder(t)
			s := settings(dir)
			s.NoPromptRelease, s.NoSweep = off, off
			p := start(t, s)
			c := dial(t, dir)
			var made []AdminEvent
			if err := c.Call(t.Context(), "POST", "/events", fileOf(t, "short", "5s"), &made); err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			event := made[0].ID
			changes := p.listen(event)
			changes.hears(t, `"version"`)
			var h answer
			if status := p.ask("ann", "POST", "/v1/holds", best(event, 1), &h); status != 201 || len(h.Seats) != 1 {
				t.Fatalf("status %d, %+v", status, h)
			}
			changes.hears(t, `"held":`)
			seat := fmt.Sprintf(`{"event_id":%q,"seat_ids":[%q]}`, event, h.Seats[0])
			var other answer
			if status := p.ask("ben", "POST", "/v1/holds", seat, &other); status != 409 || other.Code != "seats_taken" {
				t.Fatalf("I1: a held seat is %d, %+v", status, other)
			}
			if !off {
				changes.hears(t, `"available":`)
				if status := p.ask("ben", "POST", "/v1/holds", seat, &other); status != 201 {
					t.Errorf("a seat that is shown as available is %d, %+v", status, other)
				}
			} else {
				until(t, "a hold of a seat whose hold has expired", func() bool {
					return p.ask("ben", "POST", "/v1/holds", seat, &other) == 201
				})
			}
			// I4: the expired hold buys nothing.
			var b answer
			body := fmt.Sprintf(`{"hold_id":%q,"payment_token":"tok_sure"}`, h.Hold)
			if status := p.ask("ann", "POST", "/v1/bookings", body, &b); status != 409 || b.Code != "hold_expired" {
				t.Errorf("I4: an expired hold is paid: %d, %+v", status, b)
			}
		})
	}
}
