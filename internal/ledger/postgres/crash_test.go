package postgres

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/pgserver"
)

// I8: the server is killed again and again while batches run. What was acknowledged is there, what was refused is not,
// and what has no answer is said to be unknown.
func TestServerKilled(t *testing.T) {
	server := pgserver.CrashableForTest(t)
	rawURL, _, err := server.FreshDatabase(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, rawURL, nil)
	batcher := ledger.NewBatcher(s.l, ledger.BatcherOptions{Logger: slog.New(slog.DiscardHandler)})
	const kills, buyers = 4, 8
	var mu sync.Mutex
	acknowledged := map[id.ID]ledger.OrderState{} // orders, with the last state that was answered
	commits := make(chan struct{}, 1)
	s.l.beforeCommit = func() {
		select {
		case commits <- struct{}{}:
		default:
		}
	}
	for round := range int32(kills) {
		ctx, stop := context.WithCancel(context.Background())
		var failures atomic.Int64
		var wait sync.WaitGroup
		for b := range int32(buyers) {
			wait.Go(func() {
				for seat := round*20 + b; seat < (round+1)*20 && ctx.Err() == nil; seat += buyers {
					order, state, err := s.buy(batcher, seat)
					mu.Lock()
					if state != 0 {
						acknowledged[order] = state
					}
					mu.Unlock()
					if err != nil {
						if code := fault.Of(err).Code; code != fault.OutcomeUnknown && code != fault.Busy {
							t.Errorf("the killed server made %v", err)
						}
						failures.Add(1)
					}
				}
			})
		}
		<-commits // in the middle of it
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		wait.Wait()
		stop()
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		for order, state := range acknowledged {
			o, err := s.l.Order(context.Background(), order)
			if err != nil || o.State < state {
				t.Errorf("order %d was acknowledged as %s and is %s (%v)", order, state, o.State, err)
			}
		}
		if failures.Load() == 0 {
			t.Error("nobody noticed that the server was killed")
		}
	}
	if err := batcher.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if twice := s.value(`SELECT count(*) FROM (SELECT seat_index FROM shard.tickets WHERE state <> 3 GROUP BY seat_index HAVING count(*) > 1) AS x`); twice != 0 {
		t.Errorf("%d seats were sold twice", twice)
	}
}

// buy tells how far it came: the state of the order that was acknowledged, 0 where none was.
func (s *stage) buy(b *ledger.Batcher, seat int32) (order id.ID, state ledger.OrderState, err error) {
	ctx := context.Background()
	h, err := b.Do(ctx, s.hold(id.ID(500+seat), seat))
	if err != nil {
		return 0, 0, err
	}
	o, err := b.Do(ctx, s.begin(h.Hold))
	if err != nil {
		return 0, 0, err
	}
	c, err := b.Do(ctx, s.confirm(o.Order, 1))
	if err != nil {
		return o.Order.ID, ledger.OrderPending, err
	}
	return o.Order.ID, c.Order.State, nil
}

// The server dies between the last statement and COMMIT: the outcome is unknown (it did not happen), and the same key
// decides.
func TestServerKilledBeforeCommit(t *testing.T) {
	server := pgserver.CrashableForTest(t)
	rawURL, _, err := server.FreshDatabase(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, rawURL, nil)
	c := s.hold(7, 3)
	c.Key.Value = "k"
	s.l.beforeCommit = func() {
		if err := server.Kill(); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.l.Apply(context.Background(), []ledger.Command{c}); !errors.Is(err, ledger.ErrOutcomeUnknown) {
		t.Errorf("killed before COMMIT: %v", err)
	}
	s.l.beforeCommit = nil
	// While it is down nobody's command is at fault: all of a batch are told to come back.
	batcher := ledger.NewBatcher(s.l, ledger.BatcherOptions{Logger: slog.New(slog.DiscardHandler)})
	for _, r := range batcher.DoAll(context.Background(), []ledger.Command{c, s.hold(8, 4), s.hold(9, 5)}) {
		if r.Fault == nil || r.Fault.Code != fault.Busy || r.Fault.RetryAfter <= 0 || r.Fault.Detail != "the database is away" {
			t.Errorf("with the server down: %+v", r.Fault)
		}
	}
	if n := batcher.Stats().Failed; n > 3 {
		t.Errorf("a server that is down was asked for %d batches", n)
	}
	if err := batcher.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if r := s.ok(c); r.Repeat {
		t.Error("what was not committed is a repeat")
	}
}

// The commit happens, but its answer is lost: the outcome is unknown (it did happen), and the same key decides.
func TestAnswerToCommitLost(t *testing.T) {
	p := newProxy(t, pgserver.ForTest(t), pgserver.DatabaseForTest(t))
	s := newStage(t, p.url, nil)
	c := s.hold(7, 3)
	c.Key.Value = "k"
	s.l.beforeCommit = func() { p.deaf.Store(true) }
	if _, err := s.l.Apply(context.Background(), []ledger.Command{c}); !errors.Is(err, ledger.ErrOutcomeUnknown) {
		t.Errorf("an answer that was lost: %v", err)
	}
	s.l.beforeCommit = nil
	p.deaf.Store(false)
	if r := s.ok(c); !r.Repeat || r.Hold.ID != c.ID {
		t.Errorf("what was committed is no repeat: %+v", r)
	}
	// A cancelled wait is as unknown.
	ctx, cancel := context.WithCancel(context.Background())
	s.l.beforeCommit = cancel
	if _, err := s.l.Apply(ctx, []ledger.Command{s.hold(7, 4)}); !errors.Is(err, ledger.ErrOutcomeUnknown) {
		t.Errorf("a cancelled commit: %v", err)
	}
	s.l.beforeCommit = nil
	s.ok(s.hold(7, 5))
}

// A connection that is lost again and again before COMMIT is the database's fault, not a command's.
func TestConnectionsKeepBeingLost(t *testing.T) {
	s := newStage(t, "", nil)
	tries := 0
	s.l.beforeLock = func() {
		tries++
		s.value(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '%batches'`)
	}
	if _, err := s.l.Apply(context.Background(), []ledger.Command{s.hold(7, 3)}); fault.CodeOf(err) != fault.Busy || tries != triesMax {
		t.Errorf("after %d tries: %v", tries, err)
	}
	s.l.beforeLock = nil
	s.ok(s.hold(7, 3))
}

// A connection that was lost before COMMIT costs nothing: the batch runs again on another.
func TestConnectionLostBeforeCommit(t *testing.T) {
	s := newStage(t, "", nil)
	done := false
	s.l.beforeLock = func() {
		if done {
			return
		}
		done = true
		s.value(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '%batches'`)
	}
	s.ok(s.hold(7, 3))
	if !done {
		t.Error("no connection was ended")
	}
}

// A proxy stands between a ledger and the server and can lose what the server answers.
type proxy struct {
	url  string
	deaf atomic.Bool
}

func newProxy(t *testing.T, server *pgserver.Server, database string) *proxy {
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	direct, err := url.Parse(server.TCPURL(strings.TrimPrefix(u.Path, "/")))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, host := &proxy{}, direct.Host
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { p.serve(client, host) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		wait.Wait()
	})
	direct.Host = listener.Addr().String()
	p.url = direct.String()
	return p
}

func (p *proxy) serve(client net.Conn, host string) {
	defer client.Close()
	server, err := net.Dial("tcp", host)
	if err != nil {
		return
	}
	defer server.Close()
	var wait sync.WaitGroup
	wait.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil || p.deaf.Load() { // it has answered, and nobody hears of it
			break
		}
		if _, err := client.Write(buf[:n]); err != nil {
			break
		}
	}
	_ = client.Close()
	wait.Wait()
}
