package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Two nodes want the same seats, in crossed order and in batches that hold many: one winner each, nobody waits in a
// circle, nothing fails.
func TestTwoNodesForTheSameSeats(t *testing.T) {
	s := newStage(t, "", nil)
	nodes := []*Ledger{s.l, s.open(nil)}
	const callers, rounds = 8, 10
	won := make([]sync.Map, callers)
	for round := range rounds {
		from := int32(round * 10)
		atOnce(callers, func(i int) {
			var commands []ledger.Command
			for k := range int32(10) {
				a, b := from+k, from+(k+1)%10
				if i%2 == 1 {
					a, b = b, a
				}
				commands = append(commands, s.hold(id.ID(100+i+round*callers), a, b))
			}
			if i%4 > 1 { // and from the other end
				for x, y := 0, len(commands)-1; x < y; x, y = x+1, y-1 {
					commands[x], commands[y] = commands[y], commands[x]
				}
			}
			for k, r := range s.apply(nodes[i%2], commands...) {
				switch {
				case r.Fault == nil:
					for _, seat := range commands[k].(ledger.HoldSeats).Seats {
						won[i].Store(seat, true)
					}
				case r.Fault.Code != fault.SeatsTaken:
					t.Errorf("refused with %v", r.Fault)
				}
			}
		})
	}
	winners := map[int32]int{}
	for i := range won {
		won[i].Range(func(seat, _ any) bool {
			winners[seat.(int32)]++
			return true
		})
	}
	for seat := range int32(seatsAll) {
		if winners[seat] > 1 {
			t.Errorf("seat %d was won %d times", seat, winners[seat])
		}
	}
	if len(winners) < seatsAll/2 {
		t.Errorf("only %d seats were won", len(winners))
	}
	if n := s.value(`SELECT count(*) FROM shard.seats WHERE state = 1`); int(n) != len(winners) {
		t.Errorf("%d seats are held, %d were won", n, len(winners))
	}
	if n := s.value(`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
	if n := s.value(`SELECT count FROM shard.quotas`); int(n) != len(winners) {
		t.Errorf("the quota counts %d, %d seats are held", n, len(winners))
	}
}

// Two nodes get the same key at once, for other seats: one effect (I5), and the other node answers with it.
func TestKeyRacedFromTwoNodes(t *testing.T) {
	s := newStage(t, "", nil)
	nodes := []*Ledger{s.l, s.open(nil)}
	for round := range int32(40) {
		results := make([]ledger.Result, 2)
		atOnce(2, func(i int) {
			c := s.hold(id.ID(200+round), 2*round, 2*round+1)
			c.Key = ledger.Key{Value: "k"}
			results[i] = s.apply(nodes[i], c)[0]
		})
		repeats := 0
		for _, r := range results {
			if r.Fault != nil {
				t.Fatalf("round %d: %v", round, r.Fault)
			}
			if r.Repeat {
				repeats++
			}
		}
		if repeats != 1 || results[0].Hold.ID != results[1].Hold.ID {
			t.Errorf("round %d: %d repeats, holds %d and %d", round, repeats, results[0].Hold.ID, results[1].Hold.ID)
		}
	}
	if n := s.value(`SELECT count(*) FROM shard.holds`); n != 40 {
		t.Errorf("40 keys had %d effects", n)
	}
}

// The same request comes to a second node, for the same hold, while the first is committing: it is told of its own order,
// not that a payment is in progress.
func TestKeyRacedForTheSameHold(t *testing.T) {
	s := newStage(t, "", nil)
	other := s.open(nil)
	c := s.begin(s.ok(s.hold(7, 0, 1)).Hold)
	c.Key = ledger.Key{Value: "k"}
	again := c
	again.Order = s.id()
	second := make(chan ledger.Result, 1)
	s.l.beforeCommit = func() {
		go func() { second <- s.apply(other, again)[0] }()
		for s.value(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
			runtime.Gosched()
		}
	}
	s.ok(c)
	if r := <-second; r.Fault != nil || !r.Repeat || r.Order.ID != c.Order {
		t.Errorf("the second was answered %+v", r)
	}
}

// A key that is older than 24 hours is deleted, or used anew, by another node between being read and being written: the
// batch begins again, and no event is stopped.
func TestOldKeyRaced(t *testing.T) {
	for name, race := range map[string]string{
		"deleted":   `DELETE FROM shard.idempotency_keys WHERE key = 'old'`,
		"used anew": `UPDATE shard.idempotency_keys k SET subject_id = o.subject_id, fields = o.fields, created_at = o.created_at FROM shard.idempotency_keys o WHERE k.key = 'old' AND o.key = 'other'`,
	} {
		t.Run(name, func(t *testing.T) {
			var locked func() // called once, between the locks and the decision
			s := newStage(t, "", func(o *Options) {
				now := o.Now
				o.Now = func() ledger.Time {
					if f := locked; f != nil {
						locked = nil
						f()
					}
					return now()
				}
			})
			beside := s.conn()
			exec := func(sql string, args ...any) {
				if tag, err := beside.Exec(context.Background(), sql, args...); err != nil || tag.RowsAffected() != 1 {
					t.Errorf("%s: %s, %v", sql, tag, err)
				}
			}
			keyed := func(key string, seat int32) ledger.HoldSeats {
				c := s.hold(7, seat)
				c.Key.Value = key
				return c
			}
			worn := func(key string, seat int32) { // a key whose hold has been pruned
				h := s.ok(keyed(key, seat)).Hold
				s.ok(ledger.Release{Hold: h.ID, Customer: 7})
				exec(`DELETE FROM shard.holds WHERE hold_id = $1`, int64(h.ID))
			}
			other := s.ok(keyed("other", 2)).Hold
			rounds, last := 0, 0
			s.l.beforeLock = func() {
				if rounds++; rounds == last {
					locked = func() { exec(race) }
				}
			}
			worn("old", 1)
			worn("like it", 1)
			rounds = 0
			s.ok(keyed("like it", 4))
			last, rounds = rounds, 0 // only what happens in the last round matters
			again := keyed("old", 3)
			r := s.ok(again)
			want := again.ID
			if name == "used anew" {
				want = other.ID
			}
			if rounds <= last || r.Hold.ID != want || r.Repeat != (want == other.ID) {
				t.Errorf("in %d rounds: hold %d, repeat %v; want hold %d", rounds, r.Hold.ID, r.Repeat, want)
			}
			if n := s.value(`SELECT count(*) FROM shard.idempotency_keys WHERE key = 'old' AND subject_id = $1`, int64(want)); n != 1 {
				t.Error("the key does not say what it did")
			}
		})
	}
}

// The first count of a limit is made by two nodes at once: both places count (I9).
func TestLimitRacedFromTwoNodes(t *testing.T) {
	s := newStage(t, "", nil)
	e := stageEvent()
	e.Version, e.Limits = 2, []ledger.Limit{{Scope: ledger.PerEvent, Max: 1}}
	s.ok(ledger.SetEvent{Event: e})
	nodes := []*Ledger{s.l, s.open(nil)}
	for round := range int32(40) {
		won := make([]bool, 2)
		atOnce(2, func(i int) {
			won[i] = s.apply(nodes[i], s.hold(id.ID(200+round), 2*round+int32(i)))[0].Fault == nil
		})
		if won[0] == won[1] {
			t.Errorf("round %d: %v of one place", round, won)
		}
	}
}

// What one node learnt, another has changed: it decides by what is stored.
func TestStaleMemory(t *testing.T) {
	s := newStage(t, "", nil)
	other := s.open(nil)
	h := s.ok(s.hold(7, 3)).Hold
	o := s.ok(s.begin(h)).Order
	pay := s.confirm(o, 1)
	if r := s.apply(other, pay)[0]; r.Fault != nil || r.Order.State != ledger.OrderPaid {
		t.Fatalf("the other node: %+v", r)
	}
	if r := s.ok(pay); !r.Repeat || len(r.Order.Tickets) != 1 {
		t.Errorf("a repeat on the node that remembers the order as PENDING: %+v", r)
	}
	if f := s.apply(s.l, ledger.Release{Hold: h.ID, Customer: 7})[0].Fault; f == nil || f.Code != fault.Conflict {
		t.Errorf("releasing what the other node sold: %v", f)
	}
	e := stageEvent()
	e.Version, e.State = 2, ledger.Paused
	s.apply(other, ledger.SetEvent{Event: e})
	if f := s.apply(s.l, s.hold(8, 4))[0].Fault; f == nil || f.Code != fault.Paused {
		t.Errorf("holding in an event that the other node paused: %v", f)
	}
	e.Version, e.State, e.Limits = 3, ledger.OnSale, []ledger.Limit{{Scope: ledger.PerShow, Max: 1}}
	s.apply(other, ledger.SetEvent{Event: e})
	if f := s.apply(s.l, s.hold(7, 5))[0].Fault; f == nil || f.Code != fault.LimitReached {
		t.Errorf("a limit that the other node set, and counted what was sold: %v", f)
	}
}

// Many orders lose their holds and are paid all the same: one batch rescues them all, on seats as good, in few rounds.
func TestManyRescuesInOneBatch(t *testing.T) {
	s := newStage(t, "", nil)
	var pays []ledger.Command
	for i := range int32(20) {
		begin := s.begin(s.ok(s.hold(id.ID(300+i), 40+2*i, 41+2*i)).Hold)
		begin.AllowOther = true
		pays = append(pays, s.confirm(s.ok(begin).Order, 2))
	}
	s.now.Add(700_000)
	var takers []ledger.Command
	for i := range int32(20) {
		takers = append(takers, s.hold(id.ID(400+i), 40+2*i, 41+2*i))
	}
	for _, r := range s.apply(s.l, takers...) {
		if r.Fault != nil {
			t.Fatal(r.Fault)
		}
	}
	rounds := 0
	s.l.beforeLock = func() { rounds++ }
	for i, r := range s.apply(s.l, pays...) {
		if r.Fault != nil || r.Order.State != ledger.OrderPaid || !r.Order.Rescued {
			t.Errorf("order %d: %+v", i, r)
		}
	}
	if rounds > 3 {
		t.Errorf("it took %d rounds", rounds)
	}
}

// A5: after a jump back of over a second nothing is decided, loudly, until the clock has caught up.
func TestClockGoesBack(t *testing.T) {
	var log logged
	s := newStage(t, "", func(o *Options) { o.Logger = slog.New(&log) })
	s.ok(s.hold(7, 3))
	s.now.Add(-1000)
	if h := s.ok(s.hold(7, 4)).Hold; h.Created != noon {
		t.Errorf("a second behind it was decided at %d", h.Created)
	}
	s.now.Add(-1)
	batch, err := s.l.Apply(context.Background(), []ledger.Command{s.hold(7, 5), s.hold(7, 6)})
	if err != nil || batch.Now != noon {
		t.Fatalf("%+v, %v", batch, err)
	}
	for _, r := range batch.Results {
		if r.Fault == nil || r.Fault.Code != fault.Busy {
			t.Errorf("answered %+v", r)
		}
	}
	if !log.has("clock") {
		t.Error("nothing was logged as an error")
	}
	if again := s.open(nil); !errors.Is(s.sold(again), errRefused) {
		t.Error("a node that starts now does not know the time")
	}
	s.now.Add(1001)
	s.ok(s.hold(7, 5))
}

var errRefused = errors.New("refused as busy")

func (s *stage) sold(l *Ledger) error {
	if f := s.apply(l, s.hold(7, 50))[0].Fault; f != nil && f.Code == fault.Busy {
		return errRefused
	}
	return nil
}

// logged keeps errors that were logged.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Level >= slog.LevelError {
		l.lines = append(l.lines, r.Message)
	}
	return nil
}

func (l *logged) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(strings.Join(l.lines, "\n"), text)
}

// A2: a text that the database cannot keep is refused alone.
func TestTextThatCannotBeKept(t *testing.T) {
	s := newStage(t, "", nil)
	nul, latin := s.hold(7, 1), s.hold(7, 2)
	nul.Key.Value, latin.Key.Value = "a\x00b", "caf\xe9"
	results := s.apply(s.l, nul, s.hold(7, 3), latin)
	for i, want := range []fault.Code{fault.Invalid, "", fault.Invalid} {
		if f := results[i].Fault; (f == nil) != (want == "") || f != nil && f.Code != want {
			t.Errorf("command %d was answered %v, want %q", i, f, want)
		}
	}
}

// Without prepared statements (behind PgBouncer) everything works the same.
func TestExecMode(t *testing.T) {
	s := newStage(t, "", func(o *Options) { o.Exec = true })
	first := s.hold(7, 3, 4)
	first.Key = ledger.Key{Value: "k", Fields: []ledger.KeyField{{Name: "seats", Hash: "x"}}}
	h := s.ok(first).Hold
	if r := s.ok(first); !r.Repeat {
		t.Error("no repeat")
	}
	o := s.ok(s.begin(h)).Order
	r := s.ok(s.confirm(o, 2))
	places := s.ok(ledger.HoldPlaces{ID: s.id(), Event: theEvent, Customer: 7, Area: 0, Quantity: 3}).Hold
	s.ok(ledger.Release{Hold: places.ID, Customer: 7})
	s.ok(ledger.Block{Event: theEvent, Seats: []int32{9}})
	s.now.Add(700_000)
	s.ok(ledger.Sweep{Event: theEvent})
	ctx := context.Background()
	stored, err := s.l.Order(ctx, o.ID)
	if err != nil || len(stored.Tickets) != 2 || stored.State != ledger.OrderPaid {
		t.Errorf("%+v, %v", stored, err)
	}
	if _, err := s.l.Ticket(ctx, r.Order.Tickets[0].ID); err != nil {
		t.Error(err)
	}
	snapshot, err := s.l.Snapshot(ctx, theEvent)
	if err != nil || snapshot.Seats[3].State != ledger.Sold || snapshot.Seats[9].State != ledger.Blocked || snapshot.Areas[0].Held != 0 {
		t.Errorf("%+v, %v", snapshot.Areas, err)
	}
	lease, ok, err := s.l.Acquire(ctx, "relay", "me", 1000)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	notices, err := s.l.Unpublished(ctx, 10, []id.ID{1})
	if err != nil || len(notices) == 0 {
		t.Fatal(notices, err)
	}
	if err := s.l.MarkPublished(ctx, lease, notices); err != nil {
		t.Error(err)
	}
	if err := s.l.WebhookKeep(ctx, ledger.Webhook{Provider: "p", Event: "e", Dead: true}); err != nil {
		t.Error(err)
	}
	if dead, err := s.l.DeadWebhooks(ctx, noon*2, 10); err != nil || len(dead) != 1 {
		t.Error(dead, err)
	}
}

// A12, B2: what was kept long enough goes, and only that.
func TestPruning(t *testing.T) {
	s := newStage(t, "", nil)
	old := s.hold(7, 1)
	old.Key.Value = "old"
	h := s.ok(old).Hold
	s.ok(ledger.Release{Hold: h.ID, Customer: 7})
	failed := s.ok(s.begin(s.ok(s.hold(7, 2)).Hold)).Order
	s.ok(ledger.FailPayment{Order: failed.ID})
	s.now.Add(int64(ledger.KeepAnswers) + int64(stageEvent().HoldTTL) + 300_001)
	s.ok(ledger.SetEvent{Event: func() ledger.Event {
		e := stageEvent()
		e.Version, e.SaleCloses = 2, noon*2
		return e
	}()})
	young := s.hold(7, 3)
	young.Key.Value = "young"
	s.ok(young)
	s.ok(ledger.Sweep{Event: theEvent})
	s.now.Add(int64(pruneEvery))
	s.ok(ledger.Sweep{Event: theEvent})
	for sql, want := range map[string]int64{
		`SELECT count(*) FROM shard.idempotency_keys`:                            1,
		`SELECT count(*) FROM shard.idempotency_keys WHERE key = 'young'`:        1,
		fmt.Sprintf(`SELECT count(*) FROM shard.holds WHERE hold_id = %d`, h.ID): 0,
		// An order is kept, and so is its hold.
		fmt.Sprintf(`SELECT count(*) FROM shard.holds WHERE hold_id = %d`, failed.Hold):              1,
		`SELECT count(*) FROM shard.changes WHERE at < (SELECT max(at) - 600000 FROM shard.changes)`: 0,
	} {
		if n := s.value(sql); n != want {
			t.Errorf("%s: %d, want %d", sql, n, want)
		}
	}
	// Its hold is gone, so the key may be used anew.
	again := s.hold(7, 1)
	again.Key.Value = "old"
	if r := s.ok(again); r.Repeat {
		t.Error("a key whose hold is gone is a repeat")
	}
	if _, gap, err := s.l.ChangesSince(context.Background(), theEvent, 1, 10); err != nil || !gap {
		t.Errorf("changes since version 1, deleted: gap %v, %v", gap, err)
	}
}
