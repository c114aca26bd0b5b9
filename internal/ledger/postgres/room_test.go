package postgres

import (
	"context"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// room makes an event with an open waiting room in which everybody with a number is called, and lets customer 7 in with number 0.
func (s *stage) room(event id.ID, numbers int64) *ledger.Session {
	s.Helper()
	e := stageEvent()
	e.ID = event
	e.Room = ledger.RoomRule{Mode: ledger.RoomOn, Arrival: true, Rate: 10_000, ActiveMax: 10_000}
	e.Holding = ledger.HoldingRule{UnpaidMax: 3, Rest: 60_000, SeatRest: 60_000}
	lane := ledger.LaneCount{Lane: ledger.LaneDefault, Count: numbers}
	s.ok(ledger.SetEvent{Event: e, Layout: stageLayout()})
	s.ok(ledger.RoomCommit{Event: event})
	s.ok(ledger.RoomNumbers{Event: event, Lane: lane.Lane, Upto: numbers})
	s.ok(ledger.RoomFreeze{Event: event, Lanes: []ledger.LaneCount{lane}})
	for range 10 {
		s.now.Add(int64(ledger.RoomTick))
		s.ok(ledger.Advance{Event: event, Available: 1 << 30, Report: ledger.RoomReport{Node: -1}})
	}
	return s.ok(s.enter(event, 7, 0)).Session
}

func (s *stage) enter(event, customer id.ID, number int64) ledger.Enter {
	return ledger.Enter{Session: s.id(), Event: event, Customer: customer, Lane: ledger.LaneDefault, Number: number}
}

// roomSale is a sale through a waiting room, with all that may happen on the way.
func (s *stage) roomSale() {
	s.Helper()
	const event = 3
	session := s.room(event, 100)
	s.ok(ledger.TakeCode{Event: event, Lane: ledger.LaneDefault, Code: "c", Max: 5, Customer: 7})
	c := s.hold(7, 1)
	c.Event, c.Session = event, session.ID
	h := s.ok(c).Hold
	s.now.Add(1000)
	h = s.ok(ledger.Extend{Hold: h.ID, Customer: 7}).Hold
	s.ok(s.confirm(s.ok(s.begin(h)).Order, 1))
	c = s.hold(7, 2)
	c.Event, c.Session = event, session.ID
	s.ok(ledger.Release{Hold: s.ok(c).Hold.ID, Customer: 7})
	s.ok(ledger.Leave{Session: session.ID, Customer: 7})
	s.ok(s.enter(event, 8, 1))
	s.now.Add(int64(ledger.RoomStayDefault))
	s.ok(ledger.Advance{Event: event, Report: ledger.RoomReport{Node: 1, P99: 5, Holds: 1}})
}

// A hold waits for nobody who changes the room: holds of one event on several nodes would else wait for each other and for
// each step of calling.
func TestHoldsDoNotWaitForTheRoom(t *testing.T) {
	s := newStage(t, "", nil)
	session := s.room(3, 10)
	ctx := context.Background()
	other, err := s.conn().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(ctx, `SELECT 1 FROM shard.rooms FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	c := s.hold(7, 1)
	c.Event, c.Session = 3, session.ID
	h := s.ok(c).Hold // it would wait for ever
	s.ok(s.begin(h))
	if err := other.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
}

// Claims of one batch cost as many statements as one.
func TestClaimsDoNotGrowStatements(t *testing.T) {
	s := newStage(t, "", nil)
	const many = 500
	s.room(3, 2*many)
	count := func(first, n int64) int64 {
		var batch []ledger.Command
		for number := first; number < first+n; number++ {
			batch = append(batch, s.enter(3, id.ID(1000+number), number))
		}
		before := s.l.statements.Load()
		for i, r := range s.apply(s.l, batch...) {
			if r.Fault != nil {
				t.Fatalf("claim %d: %v", i, r.Fault)
			}
		}
		return s.l.statements.Load() - before
	}
	if one, all := count(1, 1), count(2, many); one != all {
		t.Errorf("%d statements for a claim, %d for %d", one, all, many)
	}
}

// A node whose connection dies with a claim under way lets nobody in, and does not count anybody.
func TestClaimThatIsNotCommittedCountsNobody(t *testing.T) {
	s := newStage(t, "", nil)
	s.room(3, 10)
	failed := false
	s.l.beforeCommit = func() {
		if !failed {
			failed = true
			s.value(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`)
		}
	}
	c := s.enter(3, 8, 5)
	_, err := s.l.Apply(context.Background(), []ledger.Command{c})
	s.l.beforeCommit = nil
	if err == nil {
		t.Fatal("the connection was lost, and the claim succeeded")
	}
	if n := s.value(`SELECT count(*) FROM shard.sessions WHERE event_id = 3`); n != 1 {
		t.Errorf("%d sessions", n)
	}
	r := s.ok(c)
	if r.Repeat || r.Room.Inside != 2 {
		t.Errorf("the claim again: %+v", r)
	}
	if r = s.ok(s.enter(3, 8, 5)); !r.Repeat || r.Session.ID != c.Session {
		t.Errorf("a third time: %+v", r)
	}
}

// A node whose clock is a little behind another's, and which has not heard of it, neither gives R again nor makes a step again.
func TestNodeWithAClockBehind(t *testing.T) {
	s := newStage(t, "", nil)
	s.room(3, 10)
	s.now.Store(int64(noon) + 60_000)
	e, err := s.l.Event(context.Background(), 3)
	if err != nil {
		t.Fatal(err)
	}
	e.Version++
	e.Room.Rate = 1
	s.ok(ledger.SetEvent{Event: e})
	behind := s.open(func(o *Options) { o.Now = func() ledger.Time { return ledger.Time(s.now.Load() - 800) } })
	s.ok(ledger.Advance{Event: 3, Report: ledger.RoomReport{Node: -1}})
	first := s.ok(s.enter(3, 8, 1)).Session
	results := s.apply(behind, s.enter(3, 9, 2), ledger.Advance{Event: 3, Report: ledger.RoomReport{Node: -1}}, ledger.Leave{Session: first.ID, Customer: 8})
	if f := results[0].Fault; f == nil || f.Code != fault.NextIn || f.RetryAfter.Milliseconds() != 1000 {
		t.Errorf("a second entry in the second: %+v", results[0])
	}
	if !results[1].Repeat {
		t.Errorf("a second step in the tick: %+v", results[1])
	}
	if left := results[2].Session; left == nil || left.Ended < left.Entered {
		t.Errorf("left before it was entered: %+v", results[2])
	}
	s.now.Add(1000)
	if r := s.apply(behind, s.enter(3, 9, 2))[0]; r.Fault == nil {
		t.Errorf("by its own clock it is still the same second: %+v", r)
	}
	s.ok(s.enter(3, 9, 2))
}
