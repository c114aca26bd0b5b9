package app

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

// A connectionHall is a server behind bounds, whose handler waits at /wait until let go.
type connectionHall struct {
	t       *testing.T
	limits  *connections
	address string
	waiting chan struct{}
	letGo   chan struct{}
	states  chan http.ConnState
}

func newConnectionHall(t *testing.T, most, each int, trusted ...netip.Prefix) *connectionHall {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &connectionHall{t: t, limits: limitConnections(l, most, each, trusted), address: l.Addr().String(),
		waiting: make(chan struct{}, 10), letGo: make(chan struct{}), states: make(chan http.ConnState, 1000)}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				h.waiting <- struct{}{}
				<-h.letGo
			}
			io.WriteString(w, "ok")
		}),
		ConnState: func(c net.Conn, s http.ConnState) { h.limits.state(c, s); h.states <- s },
	}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(h.limits) }()
	t.Cleanup(func() { server.Close(); <-done })
	return h
}

func (h *connectionHall) dial() net.Conn {
	h.t.Helper()
	c, err := net.Dial("tcp", h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a request and says whether it was answered.
func (h *connectionHall) ask(c net.Conn, path string) bool {
	h.t.Helper()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	return answer.StatusCode == 200
}

// until waits for the server to say that a connection is in a state.
func (h *connectionHall) until(s http.ConnState) {
	for got := range h.states {
		if got == s {
			return
		}
	}
}

// Idle connections make room for new ones, the longest first; those at work stay.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	h := newConnectionHall(t, 3, 100)
	busy := h.dial()
	fmt.Fprintf(busy, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
	<-h.waiting
	first, second := h.dial(), h.dial()
	for _, c := range []net.Conn{first, second} {
		if !h.ask(c, "/") {
			t.Fatal("not answered")
		}
		h.until(http.StateIdle)
	}
	if !h.ask(h.dial(), "/") {
		t.Error("a new one is not answered though two are idle")
	}
	h.until(http.StateIdle)
	if h.ask(first, "/") {
		t.Error("the one that was idle for longest is still open")
	}
	if !h.ask(second, "/") {
		t.Error("the other idle one was closed")
	}
	close(h.letGo)
	if answer, err := http.ReadResponse(bufio.NewReader(busy), nil); err != nil || answer.StatusCode != 200 {
		t.Errorf("the one at work: %v", err)
	}
}

// Clients who send their heads slowly keep nobody out: the slowest makes room.
func TestSlowHeadsMakeRoom(t *testing.T) {
	h := newConnectionHall(t, 2, 100)
	slow := []net.Conn{h.dial(), h.dial()}
	for _, c := range slow {
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost")
		h.until(http.StateNew)
	}
	if !h.ask(h.dial(), "/") {
		t.Error("a third is not answered")
	}
	if h.limits.closed.Load() != 1 {
		t.Errorf("%d closed", h.limits.closed.Load())
	}
	if _, err := slow[0].Read(make([]byte, 1)); err == nil {
		t.Error("the slowest is still open")
	}
}

// Where all are at work a new one is closed at once.
func TestConnectionsAreBounded(t *testing.T) {
	h := newConnectionHall(t, 2, 100)
	for range 2 {
		fmt.Fprintf(h.dial(), "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
		<-h.waiting
		h.until(http.StateActive)
	}
	if c := h.dial(); h.ask(c, "/") {
		t.Error("a third is answered")
	}
	if h.limits.closed.Load() != 1 {
		t.Errorf("%d closed", h.limits.closed.Load())
	}
	// Control: with more room it is.
	h.limits.mu.Lock()
	h.limits.most = 3
	h.limits.mu.Unlock()
	if c := h.dial(); !h.ask(c, "/") {
		t.Error("control: not answered though there is room")
	}
	close(h.letGo)
}

// One address has its own bound, and a listed proxy none.
func TestConnectionsOfAnAddress(t *testing.T) {
	h := newConnectionHall(t, 100, 2)
	kept := []net.Conn{h.dial(), h.dial()}
	for _, c := range kept {
		if !h.ask(c, "/") {
			t.Fatal("not answered")
		}
	}
	if h.ask(h.dial(), "/") {
		t.Error("a third of one address is answered")
	}
	kept[0].Close()
	h.until(http.StateClosed)
	if !h.ask(h.dial(), "/") {
		t.Error("after one was closed there is no room")
	}
	proxied := newConnectionHall(t, 100, 2, netip.MustParsePrefix("127.0.0.0/8"))
	for i := range 5 {
		if !proxied.ask(proxied.dial(), "/") {
			t.Errorf("connection %d of a listed proxy is not answered", i)
		}
	}
	h.limits.mu.Lock()
	defer h.limits.mu.Unlock()
	if len(h.limits.of) != 1 || h.limits.of[netip.MustParseAddr("127.0.0.1")] != len(h.limits.open) {
		t.Errorf("counts are %v of %d", h.limits.of, len(h.limits.open))
	}
}
