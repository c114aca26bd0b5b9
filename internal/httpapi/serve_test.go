package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/catalog/eventfile"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/payment"
)

// replace puts another handler behind a route and serves anew.
func (w *world) replace(id string, change func(*route)) {
	w.t.Helper()
	i := slices.IndexFunc(w.api.routes, func(r route) bool { return r.ID == id })
	w.api.routes = slices.Clone(w.api.routes)
	change(&w.api.routes[i])
	w.server.Close()
	w.serve()
}

func TestInternalSaysNothing(t *testing.T) {
	w := newWorld(t)
	w.replace("event_get", func(r *route) {
		r.handle = func(http.ResponseWriter, *request) error {
			return &fault.Error{Code: fault.Internal, Detail: "sqlite: no such table: holds", Field: "rows", Cause: errors.New("at /var/lib/onsale")}
		}
	})
	got := w.golden("event_get/internal", ask{path: "/v1/events/" + w.event("now")})
	p := w.problemOf(got, "internal")
	if !strings.Contains(w.log.String(), p.RequestID) || !strings.Contains(w.log.String(), "no such table") {
		t.Errorf("the log does not have the cause under %s: %s", p.RequestID, w.log)
	}
	if strings.Contains(w.log.String(), w.event("now")) {
		t.Error("E10: the log has the path, which is the client's")
	}
}

func TestPanics(t *testing.T) {
	w := newWorld(t)
	w.replace("event_get", func(r *route) {
		r.handle = func(w http.ResponseWriter, _ *request) error {
			w.Header().Set("ETag", `"x"`)
			w.Header().Set("Location", "/there")
			w.Header().Set("Content-Encoding", "gzip")
			panic("a slice bounds out of range at /srv/onsale")
		}
	})
	w.golden("event_get/panic", ask{path: "/v1/events/" + w.event("now")})
	if !strings.Contains(w.log.String(), "goroutine") || !strings.Contains(w.log.String(), "slice bounds") {
		t.Errorf("the log does not have the panic with its stack: %s", w.log)
	}
	// The next request is served as if nothing had been.
	w.golden("health/after_a_panic", ask{path: "/healthz"})
}

// Half an answer must not look like a whole one: the connection is cut.
func TestBegunAnswersAreCutOff(t *testing.T) {
	for name, end := range map[string]func() error{
		"a panic": func() error { panic("half way") }, "an error": func() error { return errors.New("half way") },
		"an abort": func() error { panic(http.ErrAbortHandler) },
	} {
		w := newWorld(t)
		w.replace("event_get", func(r *route) {
			r.handle = func(w http.ResponseWriter, _ *request) error {
				w.Header().Set("Content-Type", "application/json")
				if _, err := io.WriteString(w, `{"half":`); err != nil {
					t.Error(err)
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
				return end()
			}
		})
		response, err := http.Get(w.server.URL + "/v1/events/" + w.event("now"))
		w.must(err)
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err == nil || string(body) != `{"half":` {
			t.Errorf("after %s the client has %q, and no error", name, body)
		}
		if observed := <-w.answered; observed != "event_get 200" {
			t.Errorf("after %s it was counted as %s", name, observed)
		}
	}
}

func TestClientGoesAway(t *testing.T) {
	w := newWorld(t)
	release, at := w.ledger.block()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", w.server.URL+"/v1/holds", strings.NewReader(w.seatsBody("now", "A-A-1")))
	w.must(err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.token("ann"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if response, err := http.DefaultTransport.RoundTrip(r); err == nil {
			response.Body.Close()
			t.Errorf("there was an answer: %s", response.Status)
		}
	}()
	<-at
	cancel()
	<-ended
	if observed := <-w.answered; observed != "hold_make 499" {
		t.Errorf("counted as %s", observed)
	}
	if strings.Contains(w.log.String(), "level=ERROR") || strings.Contains(w.log.String(), "level=WARN") {
		t.Errorf("somebody is called for a client that went away: %s", w.log)
	}
	release()
}

// Who has closed one half of the connection, or sent too slowly, still reads: no answer is none, never an empty 200.
func TestHalfClosedIsNotAnswered(t *testing.T) {
	w := newWorld(t)
	release, at := w.ledger.block()
	line, err := net.Dial("tcp", w.server.Listener.Addr().String())
	w.must(err)
	defer line.Close()
	body := w.seatsBody("now", "A-A-1")
	_, err = fmt.Fprintf(line, "POST /v1/holds HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		w.token("ann"), len(body), body)
	w.must(err)
	<-at
	w.must(line.(*net.TCPConn).CloseWrite())
	got, _ := io.ReadAll(line) // a reset is as good as an end
	if len(got) > 0 {
		t.Errorf("answered: %q", got)
	}
	if observed := <-w.answered; observed != "hold_make 499" {
		t.Errorf("counted as %s", observed)
	}
	release()
}

// What the batcher has not begun is busy, what it has begun is of unknown outcome; nobody waits longer than the route may.
func TestOurTimeIsUp(t *testing.T) {
	w := newWorld(t)
	w.replace("hold_make", func(r *route) { r.Takes = 300 * time.Millisecond })
	w.token("ann")
	release, at := w.ledger.block()
	var first reply
	var waiting sync.WaitGroup
	waiting.Go(func() { first = w.ask(w.post(w.seatsBody("now", "A-A-1"), "ann")) })
	<-at
	second := w.ask(w.post(w.seatsBody("now", "A-A-3"), "ben"))
	waiting.Wait()
	release()
	w.problemOf(first, "outcome_unknown")
	w.problemOf(second, "busy")
	leaksNothing(t, "first", first)
	leaksNothing(t, "second", second)
}

// deadlines is a writer that remembers which deadlines it was given.
type deadlines struct {
	*httptest.ResponseRecorder
	write []time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error { d.write = append(d.write, at); return nil }

func TestDeadlinesByRoute(t *testing.T) {
	for _, r := range (&api{}).table() {
		d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		request := &request{Request: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)}
		before := time.Now()
		end := r.limitTime(d, request)
		until, limited := request.Context().Deadline()
		if r.Takes == untilClosed && strings.HasSuffix(r.Path, "/stream") {
			if limited || len(d.write) != 0 {
				t.Errorf("a stream is limited: %v, %+v", until, d)
			}
			continue
		}
		most := answerTimeMax
		switch r.ID {
		case "booking_make", "booking_exchange": // they wait for the provider
			most = payment.AttemptTimeoutMax + answerTimeMax
		case "booking_refund", "organizer_refund", "refund_retry", "checkins_sync":
			most = time.Minute
		case "draw_list":
			if most = listTakesMax; len(d.write) == 1 {
				d.write[0] = d.write[0].Add(planSendTimeMax - listTakesMax) // and as long to send it
			}
		case "codes_upload", "members_upload":
			most = uploadTakesMax
		case "plan_upload":
			most = planTakesMax
		case "bookings_export":
			most = exportTimeMax
		case "event_audit":
			most = auditTimeMax
		}
		if !limited || until.Before(before) || until.After(time.Now().Add(most)) {
			t.Errorf("%s may take until %v (%v), want %v", r.ID, until, limited, most)
		}
		if len(d.write) != 1 || !d.write[0].After(until) || d.write[0].After(time.Now().Add(most+planSendTimeMax)) {
			t.Errorf("%s: the client may read until %v", r.ID, d.write)
		}
		if end(); request.Context().Err() == nil {
			t.Errorf("%s: its limit outlives it", r.ID)
		}
	}
}

// A GET has no body for us: parameters come from the query alone, and no upload is read into memory or a file.
func TestQueries(t *testing.T) {
	w := newWorld(t)
	var form bytes.Buffer
	upload := multipart.NewWriter(&form)
	w.must(upload.WriteField("query", "elsewhere"))
	w.must(upload.Close())
	for kind, body := range map[string]string{"application/x-www-form-urlencoded": "query=elsewhere", upload.FormDataContentType(): form.String()} {
		for _, method := range []string{"GET", "HEAD"} {
			read := &counting{Reader: strings.NewReader(body)}
			r := httptest.NewRequestWithContext(t.Context(), method, "/v1/events?query=rehearsal", read)
			r.Header.Set("Content-Type", kind)
			rec := httptest.NewRecorder()
			w.handler.ServeHTTP(rec, r)
			if rec.Code != 200 || !strings.Contains(rec.Body.String(), w.event("cheap")) || read.count != 0 {
				t.Errorf("%s with a body of %s: status %d, %d bytes read: %s", method, kind, rec.Code, read.count, rec.Body)
			}
		}
	}
	for _, r := range w.api.routes {
		most := QueryBytesMax
		if r.LongQuery {
			most = callbackBytesMax
		}
		long := w.ask(ask{method: r.Method, path: filled(r.Path, map[string]string{}) + "?a=" + strings.Repeat("a", most)})
		w.problemOf(long, "bad_request")
	}
}

// Every route that takes JSON takes nothing else, and not too much of it.
func TestBodies(t *testing.T) {
	w := newWorld(t)
	named := w.things()
	w.roles.set(w.customer("ann"), map[id.ID]identity.Role{w.house: identity.Owner})
	for _, r := range w.api.routes {
		if r.Body == nil {
			continue
		}
		a := ask{method: r.Method, path: filled(r.Path, named), customer: "ann", body: "{}", key: "bodies", header: http.Header{"Content-Type": {"text/plain"}}}
		w.problemOf(w.ask(a), "unsupported_media_type")
		a.header, a.body = nil, strings.Repeat(" ", int(cmp.Or(r.BodyMax, BodyBytesMax))+1)
		w.problemOf(w.ask(a), "body_too_large")
	}
}

type counting struct {
	io.Reader
	count int
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.count += n
	return n, err
}

func TestNoHeaderOfOursIsTheClients(t *testing.T) {
	w := newWorld(t)
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.Host = `"><script>alert(1)</script>`
	r.Header["X-Request-Id"] = []string{"a\r\nSet-Cookie: x=1"}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	if rec.Code != 200 || strings.Contains(rec.Body.String(), "<script") || strings.ContainsAny(rec.Header().Get("X-Request-Id"), "\r\n:") {
		t.Errorf("status %d, %v, %s", rec.Code, rec.Header(), rec.Body)
	}
	given := w.ask(ask{path: "/v2", header: http.Header{"X-Request-Id": {"from-the-proxy_1"}}})
	if p := w.problemOf(given, "not_found"); p.RequestID != "from-the-proxy_1" {
		t.Errorf("a proxy's id became %s", p.RequestID)
	}
	// RFC 6750: the scheme is of either case.
	for _, scheme := range []string{"bearer", "BEARER", "Bearer "} {
		var list BookingList
		w.into(w.ask(ask{path: "/v1/bookings", header: http.Header{"Authorization": {scheme + " " + w.token("ann")}}}), 200, &list)
	}
}

func TestSoldOut(t *testing.T) {
	w := newWorld(t)
	for k := range 6 {
		h := w.hold("ann", w.best("cheap", `{"quantity":10}`))
		w.into(w.book("ann", h.ID, "", fmt.Sprint("key", k)), 201, &Booking{})
	}
	h := w.hold("ann", fmt.Sprintf(`{"event_id":%q,"area_id":"FLOOR","quantity":6}`, w.event("cheap")))
	w.problemOf(w.ask(w.post(w.best("cheap", `{"quantity":1}`), "ben")), "no_seats_found") // those may come back
	w.into(w.book("ann", h.ID, "", "area"), 201, &Booking{})
	w.golden("hold_make/sold_out", w.post(w.best("cheap", `{"quantity":1}`), "ben"))
	w.golden("event_get/sold_out", ask{path: "/v1/events/" + w.event("cheap")})
}

// Pages have everything once, in order, and end.
func TestPages(t *testing.T) {
	w := newWorld(t)
	var more strings.Builder
	more.WriteString(worldFile)
	const count = 2*catalog.QueryDefault + 5
	for k := range count {
		fmt.Fprintf(&more, "  - { key: n%d, starts: %q }\n", k, time.Date(2027, 7, 1+k/2, 20, 0, 0, 0, time.UTC).Format("2006-01-02T15:04"))
	}
	organizer, err := w.catalog.EnsureOrganizer(t.Context(), "house", "House")
	w.must(err)
	file, err := eventfile.Parse([]byte(more.String()))
	w.must(err)
	_, err = w.catalog.Import(t.Context(), organizer.ID, file.Import(w.plan.Hash()))
	w.must(err)
	seen := map[string]bool{}
	last, pages := time.Time{}, 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		var list EventList
		w.into(w.ask(ask{path: "/v1/events?cursor=" + cursor}), 200, &list)
		for _, e := range list.Events {
			if seen[e.ID] || e.Starts.Before(last) || len(list.Events) > catalog.QueryDefault {
				t.Fatalf("page %d: %s at %s follows %s", pages, e.ID, e.Starts, last)
			}
			seen[e.ID], last = true, e.Starts
		}
		cursor = list.Next
	}
	if len(seen) != count+5 || pages != 3 {
		t.Errorf("%d events on %d pages, want %d", len(seen), pages, count+5)
	}
	w.pagesOfBookings()
}

func (w *world) pagesOfBookings() {
	w.t.Helper()
	const count = 2*bookingsPage + 1
	var made []string
	for k := range count {
		var b Booking
		h := w.hold("ann", w.best("cheap", `{"quantity":1}`))
		w.into(w.book("ann", h.ID, "", fmt.Sprint("key", k)), 201, &b)
		made = append(made, b.ID)
	}
	slices.Reverse(made)
	var listed []string
	pages := 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		var list BookingList
		w.into(w.ask(ask{path: "/v1/bookings?cursor=" + cursor, customer: "ann"}), 200, &list)
		for _, b := range list.Bookings {
			listed = append(listed, b.ID)
		}
		cursor = list.Next
	}
	if !slices.Equal(listed, made) || pages != 3 {
		w.t.Errorf("%d bookings on %d pages, want %d, newest first", len(listed), pages, count)
	}
}
