package redis

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/keys"
	"onsale/internal/keys/keystest"
	"onsale/internal/ledger"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/redisclient"
	"onsale/internal/redisserver"
	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/joinlog"
)

// The sale of the tests below.
const (
	lossFans   = 240 // who come before the opening; as many again come while it sells
	lossRate   = 200
	lossActive = 100
	lossTurn   = 500 // ms: numbers that a loss made void do not hold the line up for long
	lossStays  = 400 * time.Millisecond
	lossWait   = 60 * time.Second // for anything at all
	goesOnIn   = 5 * time.Second  // admission, after a loss
	askEvery   = 20 * time.Millisecond
)

// A sale is real parts on a real clock: an SQLite ledger, the log of joins on disk, and two nodes in front of one Redis.
type sale struct {
	t       *testing.T
	shard   *sqlite.Ledger
	batcher *ledger.Batcher
	log     *joinlog.Log
	ring    *keys.Ring
	made    *id.Generator
	event   id.ID
	nodes   []*waitingroom.Service

	entered atomic.Int64
	last    atomic.Int64  // when somebody last entered, Unix nanoseconds
	enters  chan struct{} // told of entries; full: nobody listens
}

func newSale(t *testing.T, o redisclient.Options) *sale {
	t.Helper()
	s := &sale{t: t, made: id.NewGenerator(3, time.Now, 0, nil), enters: make(chan struct{}, 1)}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	var err error
	s.shard, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "shard.db"), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { _ = s.shard.Close() })
	s.batcher = ledger.NewBatcher(s.shard, ledger.BatcherOptions{Logger: quiet})
	t.Cleanup(func() { _ = s.batcher.Close(context.Background()) })
	s.log, err = joinlog.Open(t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = s.log.Close() })
	master, err := keys.NewMaster(bytes.Repeat([]byte{7}, keys.MasterBytes))
	must(t, err)
	s.ring, err = keys.Load(t.Context(), &keystest.Memory{}, master, keys.Options{Now: time.Now})
	must(t, err)
	for _, p := range []keys.Purpose{keys.Queue, keys.Admission} {
		_, err := s.ring.EnsureActive(t.Context(), p)
		must(t, err)
	}
	s.begin()
	secret := sha256.Sum256([]byte("the secret of the test"))
	for n := range 2 {
		service, err := waitingroom.New(waitingroom.Options{
			Store: open(t, o), Log: s.log, Ledger: s.batcher, Reader: s.shard, Keys: s.ring, ListKey: []byte("the key of all lists"), Node: n,
			Draw:  func(context.Context, id.ID) ([32]byte, error) { return secret, nil },
			NewID: func(event id.ID) (id.ID, error) { return s.made.Next(event.Shard()) }, Issuer: "https://tickets.example", Logger: quiet,
		})
		must(t, err)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- service.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			service.Close()
			must(t, <-ended)
		})
		s.nodes = append(s.nodes, service)
	}
	return s
}

// begin makes the event: people join from now on, and it sells once somebody says so.
func (s *sale) begin() {
	s.event = s.made.MustNext(0)
	s.set(1, ledger.TimeOf(time.Now().Add(time.Hour)))
}

// set writes the event's row with an opening.
func (s *sale) set(version int64, opens ledger.Time) {
	s.t.Helper()
	now := ledger.TimeOf(time.Now())
	_, err := s.batcher.Do(s.t.Context(), ledger.SetEvent{Event: ledger.Event{
		ID: s.event, Organizer: 1, Show: 2, Version: version, State: ledger.OnSale, PlanHash: "plan",
		SaleOpens: opens, SaleCloses: now + 48*60*60*1000, HoldTTL: 600_000, PaymentWindow: 300_000, ExtendMax: 1, SeatsPerHoldMax: 10, Currency: "EUR",
		Tiers: []ledger.Tier{{Category: 0, Name: "A", Face: 5000}},
		Room: ledger.RoomRule{Mode: ledger.RoomOn, Opens: now - 1000, Rate: lossRate, ActiveMax: lossActive, Turn: lossTurn, Stay: 600_000,
			Lanes: []ledger.LaneRule{{Key: "general", Weight: 1}}},
	}, Layout: &ledger.Layout{PlanHash: "plan", Section: []int16{0}, Category: []int16{0}, Run: []int32{0}, Quality: []int32{0}}})
	must(s.t, err)
	for _, n := range s.nodes {
		n.Changed(s.event)
	}
}

// A fan joins, waits, enters and leaves.
type fan struct {
	customer id.ID
	node     *waitingroom.Service
	other    *waitingroom.Service
	place    waitingroom.Place
	entered  atomic.Bool
}

// again asks until it is answered something else than to come again.
func again[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		answer, err := ask()
		if c := fault.CodeOf(err); c != fault.Busy && c != fault.NextIn && c != fault.NotAdmitted {
			return answer, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return answer, errors.Join(ctx.Err(), err)
		}
	}
}

// fans join, in parallel; done is called after each with how many have.
func (s *sale) fans(n int, done func(joined int64)) []*fan {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), lossWait)
	defer cancel()
	all := make([]*fan, n)
	var next, joined atomic.Int64
	var crowd sync.WaitGroup
	for range 8 {
		crowd.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				f := &fan{customer: s.made.MustNext(0), node: s.nodes[i%2], other: s.nodes[1-i%2]}
				place, err := again(ctx, func() (waitingroom.Place, error) {
					return f.node.Join(ctx, waitingroom.JoinRequest{Event: s.event, Customer: f.customer})
				})
				if err != nil {
					s.t.Errorf("join: %v", err)
				}
				f.place, all[i] = place, f
				done(joined.Add(1))
			}
		})
	}
	crowd.Wait()
	return all
}

// enter lets a fan wait for their turn, enter, and leave after a while.
func (s *sale) enter(ctx context.Context, f *fan) {
	admission, err := again(ctx, func() (waitingroom.Admission, error) {
		if st, err := f.node.Place(f.place.QueueID); err != nil || !st.Called {
			return waitingroom.Admission{}, errors.Join(err, &fault.Error{Code: fault.NotAdmitted})
		}
		return f.node.Claim(ctx, f.place.QueueID, f.customer)
	})
	if err != nil {
		s.t.Errorf("number %d: claim: %v", f.place.Number, err)
		return
	}
	f.entered.Store(true)
	s.entered.Add(1)
	s.last.Store(time.Now().UnixNano())
	select {
	case s.enters <- struct{}{}:
	default:
	}
	select {
	case <-time.After(lossStays): // inside
	case <-ctx.Done():
	}
	_, err = again(ctx, func() (struct{}, error) { return struct{}{}, f.node.Leave(ctx, admission.Session, f.customer) })
	if err != nil {
		s.t.Errorf("leave: %v", err)
	}
}

// keeps looks that fans who wait have the number of their ticket, whichever node they ask.
func (s *sale) keeps(all []*fan) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), lossWait)
	defer cancel()
	seen := map[int64]bool{}
	for _, f := range all {
		if seen[f.place.Number] {
			s.t.Errorf("number %d is on two tickets", f.place.Number)
		}
		seen[f.place.Number] = true
		if f.entered.Load() {
			continue
		}
		place, err := again(ctx, func() (waitingroom.Place, error) {
			return f.other.Join(ctx, waitingroom.JoinRequest{Event: s.event, Customer: f.customer})
		})
		if err != nil || (place.Number != f.place.Number || place.Drawn != f.place.Drawn) && !f.entered.Load() {
			s.t.Errorf("the number %d (drawn: %v) of a signed ticket is now %d (drawn: %v), %v", f.place.Number, f.place.Drawn, place.Number, place.Drawn, err)
		}
	}
}

// judge recomputes the promises from the ledger's rows.
func (s *sale) judge(fans int) {
	s.t.Helper()
	sessions, err := s.shard.Sessions(s.t.Context(), s.event, 0, 10_000)
	must(s.t, err)
	if len(sessions) != fans {
		s.t.Errorf("%d sessions of %d people", len(sessions), fans)
	}
	calls, err := s.shard.Calls(s.t.Context(), s.event, "general", 0, 10_000)
	must(s.t, err)
	calledAt := func(position int64) ledger.Time {
		for _, c := range calls {
			if c.Watermark > position {
				return c.At
			}
		}
		return 1 << 60
	}
	for i := 1; i < len(calls); i++ {
		if calls[i].Watermark < calls[i-1].Watermark || calls[i].At < calls[i-1].At {
			s.t.Errorf("the watermark went from %+v to %+v", calls[i-1], calls[i])
		}
	}
	perSecond, numbers := map[ledger.Time]int{}, map[int64]bool{}
	for i := range sessions {
		one := &sessions[i]
		if numbers[one.Number] {
			s.t.Errorf("number %d entered twice", one.Number)
		}
		numbers[one.Number] = true
		if at := calledAt(one.Position); at > one.Entered {
			s.t.Errorf("position %d entered at %d and was called at %d: before smaller ones", one.Position, one.Entered, at)
		}
		if perSecond[one.Entered/1000]++; perSecond[one.Entered/1000] > lossRate {
			s.t.Errorf("%d entered in one second, R is %d", perSecond[one.Entered/1000], lossRate)
		}
		inside := 0
		for k := range sessions {
			if sessions[k].Entered <= one.Entered && (sessions[k].Ended == 0 || sessions[k].Ended > one.Entered) {
				inside++
			}
		}
		if inside > lossActive {
			s.t.Errorf("%d were inside, at most %d may be", inside, lossActive)
		}
	}
}

// loses runs a sale in which Redis loses what it knows while people join, and again while they enter. lose may let others
// join on the way, and answers them.
func loses(t *testing.T, o redisclient.Options, lose func(s *sale, round int) []*fan) {
	s := newSale(t, o)
	var others []*fan
	early := s.fans(lossFans, func(joined int64) {
		if joined == lossFans/2 {
			others = lose(s, 0)
		}
	})
	s.keeps(append(others, early...))
	s.set(2, ledger.TimeOf(time.Now()))

	ctx, cancel := context.WithTimeout(t.Context(), lossWait)
	defer cancel()
	var inside sync.WaitGroup
	enter := func(all []*fan) {
		for _, f := range all {
			inside.Go(func() { s.enter(ctx, f) })
		}
	}
	enter(early)
	enter(others)
	s.haveEntered(ctx, lossFans/4)
	lost, before := time.Now(), s.entered.Load()
	ended := make(chan []*fan)
	go func() { ended <- lose(s, 1) }()
	s.haveEntered(ctx, before+lossFans/8)
	if took := time.Since(lost); took > goesOnIn {
		t.Errorf("admission went on after %s", took)
	}
	late := append(<-ended, s.fans(lossFans, func(int64) {})...)
	enter(late)
	all := slices.Concat(early, others, late)
	s.keeps(all)
	inside.Wait()
	s.judge(len(all))
}

// haveEntered waits until so many have.
func (s *sale) haveEntered(ctx context.Context, n int64) {
	s.t.Helper()
	for s.entered.Load() < n {
		select {
		case <-s.enters:
		case <-ctx.Done():
			s.t.Fatalf("only %d have entered, want %d", s.entered.Load(), n)
		}
	}
}

func TestC12FlushAll(t *testing.T) {
	t.Parallel() // they mostly wait
	server := redisserver.ForTest(t)
	loses(t, redisclient.Options{Addresses: []string{server.Address()}}, func(*sale, int) []*fan {
		must(t, server.FlushAll(context.Background()))
		return nil
	})
}

func TestC12Restart(t *testing.T) {
	t.Parallel() // they mostly wait
	server := redisserver.ForTest(t)
	loses(t, redisclient.Options{Addresses: []string{server.Address()}}, func(*sale, int) []*fan {
		must(t, server.Kill())
		must(t, server.Restart())
		return nil
	})
}

func TestC12FailoverWhileTheyEnter(t *testing.T) {
	t.Parallel() // they mostly wait
	w := redisserver.WatchedForTest(t)
	loses(t, redisclient.Options{Addresses: w.Addresses(), SentinelMaster: redisserver.MasterName}, func(s *sale, round int) []*fan {
		if round == 0 {
			return nil
		}
		must(t, w.CutOff(context.Background()))
		forgotten := s.fans(lossFans/8, func(int64) {}) // by the replica
		must(t, w.Failover(context.Background()))
		return forgotten
	})
}

func TestC12FailoverWhileTheyJoin(t *testing.T) {
	t.Parallel() // they mostly wait
	w := redisserver.WatchedForTest(t)
	loses(t, redisclient.Options{Addresses: w.Addresses(), SentinelMaster: redisserver.MasterName}, func(s *sale, round int) []*fan {
		if round == 1 { // there is nobody left to fail over to
			must(t, w.Replica.FlushAll(context.Background()))
			return nil
		}
		must(t, w.WaitReplicated(context.Background()))
		must(t, w.CutOff(context.Background()))
		forgotten := s.fans(lossFans/8, func(int64) {})
		must(t, w.Failover(context.Background()))
		return forgotten
	})
}

func TestC12ClusterNodesRestart(t *testing.T) {
	t.Parallel() // they mostly wait
	c := redisserver.ClusterForTest(t)
	loses(t, redisclient.Options{Addresses: c.Addresses(), Cluster: true}, func(s *sale, round int) []*fan {
		n := c.Nodes[2] // whatever it has; then the one that has the event's counters
		if round == 1 {
			var err error
			n, err = c.NodeOf(context.Background(), roomKey(s.event))
			must(t, err)
		}
		must(t, n.Kill())
		must(t, n.Restart())
		must(t, c.WaitWhole(context.Background()))
		return nil
	})
}
