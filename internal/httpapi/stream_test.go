package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"onsale/internal/inventory"
)

// A frame is one server-sent event.
type frame struct{ event, id, data string }

// listener is a client of a seat stream.
type listener struct {
	w      *world
	lines  *bufio.Scanner
	cancel context.CancelFunc
	ended  func()
}

// listen opens a stream; last is the Last-Event-ID, "" for none.
func (w *world) listen(event, last string) *listener {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", w.server.URL+"/v1/events/"+w.event(event)+"/seats/stream", nil)
	w.must(err)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	w.must(err)
	if kind := response.Header.Get("Content-Type"); response.StatusCode != 200 || kind != "text/event-stream" {
		w.t.Fatalf("status %d, %s", response.StatusCode, kind)
	}
	l := &listener{w: w, lines: bufio.NewScanner(response.Body), cancel: cancel, ended: func() { response.Body.Close() }}
	w.t.Cleanup(l.close)
	return l
}

func (l *listener) close() {
	l.cancel()
	l.ended()
}

// next reads a frame; ok is false where the stream has ended.
func (l *listener) next() (f frame, ok bool) {
	for l.lines.Scan() {
		name, value, _ := strings.Cut(l.lines.Text(), ": ")
		switch name {
		case "event":
			f.event = value
		case "id":
			f.id = value
		case "data":
			f.data = value
		case "":
			return f, true
		default:
			l.w.t.Errorf("a line %q is in the stream", l.lines.Text())
		}
	}
	return f, false
}

// want reads a frame, which must be this event, and its data.
func (l *listener) want(event string, v any) frame {
	l.w.t.Helper()
	f, ok := l.next()
	if !ok || f.event != event || (f.id != "") != (event == "seats") {
		l.w.t.Fatalf("%+v (%v), want %s", f, ok, event)
	}
	l.w.must(json.Unmarshal([]byte(f.data), v))
	return f
}

type version struct{ Version int64 }

func TestStreamTellsChangesAndResumes(t *testing.T) {
	w := newWorld(t)
	l := w.listen("now", "")
	var at version
	l.want("version", &at)
	w.hold("ann", w.seatsBody("now", "A-A-1", "A-A-2"))
	w.inventory.Flush()
	var d SeatsDelta
	told := l.want("seats", &d)
	if d.Since != at.Version || d.Version != at.Version+1 || fmt.Sprint(d.Held) != "[0 1]" || told.id != fmt.Sprint(d.Version) {
		t.Errorf("%+v after version %d: %+v", d, at.Version, told)
	}
	w.inventory.Beat()
	if l.want("version", &at); at.Version != d.Version {
		t.Errorf("the heartbeat says %d, want %d", at.Version, d.Version)
	}
	l.close()

	// While it is away, more happens: it resumes where it was, with all of it and nothing twice.
	b := w.paid("ben", "A-B-1")
	r := w.listen("now", told.id)
	d = SeatsDelta{}
	r.want("seats", &d)
	if fmt.Sprint(d.Since) != told.id || fmt.Sprint(d.Sold) != "[13]" || len(d.Held) != 0 {
		t.Errorf("after %s and %s: %+v", told.id, b.ID, d)
	}
	again := w.listen("now", fmt.Sprint(d.Version))
	if again.want("version", &at); at.Version != d.Version {
		t.Errorf("a client that has all is told %d", at.Version)
	}
	// A version that is not remembered: take a new picture.
	gap := w.listen("now", "0")
	if gap.want("reset", &at); at.Version != d.Version {
		t.Errorf("a gap leads to a reset to %d, want %d", at.Version, d.Version)
	}
}

func TestStreamEndsWithTheInventory(t *testing.T) {
	w := newWorld(t)
	l := w.listen("now", "")
	l.want("version", &version{})
	w.inventory.Close()
	if f, ok := l.next(); ok {
		t.Errorf("%+v after the end", f)
	}
	if observed := <-w.answered; observed != "seats_stream 200" {
		t.Errorf("counted as %s", observed)
	}
}

// stuck is a client that takes what fits into its buffers and then reads no more.
type stuck struct {
	header http.Header
	begun  chan struct{}
	once   sync.Once
	free   chan struct{}
	mu     sync.Mutex
	until  time.Time
}

func (s *stuck) Header() http.Header { return s.header }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.free
	return len(b), nil
}
func (s *stuck) Flush() {}
func (s *stuck) SetWriteDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = at
	return nil
}

// B3: a slow client is dropped, holds nobody back, and its write has a deadline.
func TestStuckClientIsDropped(t *testing.T) {
	w := newWorld(t)
	s := &stuck{header: http.Header{}, begun: make(chan struct{}), free: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/events/"+w.event("now")+"/seats/stream", nil)
		w.handler.ServeHTTP(s, r)
	}()
	<-s.begun
	good := w.listen("now", "")
	good.want("version", &version{})
	for range inventory.FramesMax + 2 {
		w.inventory.Beat()
		good.want("version", &version{})
	}
	if stats := w.inventory.Stats(); stats.SlowDropped != 1 || stats.Subscribers != 1 {
		t.Errorf("%d are dropped, %d listen", stats.SlowDropped, stats.Subscribers)
	}
	s.mu.Lock()
	if s.until.IsZero() || s.until.After(time.Now().Add(streamWriteMax)) {
		t.Errorf("its write may last until %v", s.until)
	}
	s.mu.Unlock()
	close(s.free)
	<-ended
}

// short serves with limits that are over before a slow answer comes, and gives the limit.
func (w *world) short() time.Duration {
	const limit = 100 * time.Millisecond
	w.server.Close()
	w.server = httptest.NewUnstartedServer(w.handler)
	w.server.Config.ReadTimeout = limit
	w.server.Config.WriteTimeout = limit
	w.server.Start()
	w.t.Cleanup(w.server.Close)
	return limit
}

// The server's own limits are for clients that do nothing: they end neither a stream nor an answer that takes long.
func TestAnswersOutliveTheServersLimits(t *testing.T) {
	w := newWorld(t)
	limit := w.short()
	release, at := w.ledger.block()
	var got reply
	var waiting sync.WaitGroup
	waiting.Go(func() { got = w.ask(w.post(w.seatsBody("now", "A-A-1"), "ann")) })
	<-at
	l := w.listen("now", "")
	l.want("version", &version{})
	end := time.NewTimer(4 * limit)
	defer end.Stop()
	tick := time.NewTicker(limit / 4)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-end.C:
			running = false
		case <-tick.C:
		}
		w.inventory.Beat()
		l.want("version", &version{})
	}
	release()
	waiting.Wait()
	if got.status != 201 {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}
