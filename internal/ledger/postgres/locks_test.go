package postgres

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// A locking statement that had to wait must answer the version that the other one committed, for every table that is
// decided on: what docs/LOCKING.md builds on.
func TestLockedRowsAreTheNewest(t *testing.T) {
	s := newStage(t, "", nil)
	h := s.ok(s.hold(7, 3)).Hold
	o := s.ok(s.begin(h)).Order
	session := s.room(3, 10).ID
	for _, c := range []struct {
		table, change string
		want          func(*wants)
		got           func(*source) any
		value         any
	}{
		{"events", `UPDATE shard.events SET version = 2, body = replace(body, '"HoldTTL":600000', '"HoldTTL":1')`,
			func(w *wants) { w.events.add(theEvent) }, func(s *source) any { return s.events[theEvent].HoldTTL }, ledger.Duration(1)},
		{"limits", `UPDATE shard.limits SET count = 41`,
			func(w *wants) { w.limits.add(limitOf(7)) }, func(s *source) any { return *s.limits[limitOf(7)] }, 41},
		{"quotas", `UPDATE shard.quotas SET count = 42`,
			func(w *wants) { w.quotas.add(decide.QuotaKey{Event: theEvent, Category: 0, Section: -1}) },
			func(s *source) any { return *s.quotas[decide.QuotaKey{Event: theEvent, Category: 0, Section: -1}] }, 42},
		{"sessions", `UPDATE shard.sessions SET expires_at = 45`,
			func(w *wants) { w.sessions.add(session) }, func(s *source) any { return s.sessions[session].Expires }, ledger.Time(45)},
		{"rooms", `UPDATE shard.rooms SET version = version + 1, body = replace(body, '"phase":3', '"phase":2')`,
			func(w *wants) { w.rooms.add(3) }, func(s *source) any { return s.rooms[3].Phase }, ledger.RoomDrawing},
		{"sessions and codes, under the room's lock", `WITH s AS (INSERT INTO shard.sessions (session_id, event_id, customer_id, lane, number, position, entered_at, expires_at)
		      VALUES (902, 3, 8, 'general', 77, 77, 1, 2)),
		    c AS (INSERT INTO shard.code_uses (event_id, lane, code, number, customer_id, max, at) VALUES (3, 'general', 'c', 1, 8, 9, 1))
		    UPDATE shard.rooms SET version = version + 1 WHERE event_id = 3`,
			func(w *wants) {
				w.rooms.add(3)
				w.numbers.add(ledger.SessionNumber{Event: 3, Lane: "general", Number: 77})
				w.codes.add(codeOf{decide.CodeKey{Event: 3, Lane: "general", Code: "c"}, 8})
			}, func(s *source) any {
				return fmt.Sprint(s.numbers[ledger.SessionNumber{Event: 3, Lane: "general", Number: 77}].ID, s.codes[codeOf{decide.CodeKey{Event: 3, Lane: "general", Code: "c"}, 8}], s.runsOut[3])
			}, "902 {1 true} 2"},
		{"orders", `UPDATE shard.orders SET reason = 'changed'`,
			func(w *wants) { w.orders.add(o.ID) }, func(s *source) any { return s.orders[o.ID].Reason }, "changed"},
		{"holds", `UPDATE shard.holds SET expires_at = 43`,
			func(w *wants) { w.holds.add(h.ID) }, func(s *source) any { return s.holds[h.ID].Expires }, ledger.Time(43)},
		{"buckets", `UPDATE shard.buckets SET held = 4 WHERE number = 0`,
			func(w *wants) { w.areas.add(decide.AreaKey{Event: theEvent}) }, func(s *source) any { return s.buckets[decide.AreaKey{Event: theEvent}][0].Held }, int32(4)},
		{"seats", `UPDATE shard.seats SET epoch = 44 WHERE seat_index = 3`,
			func(w *wants) { w.seats.add(decide.SeatKey{Event: theEvent, Index: 3}) },
			func(s *source) any { return s.seats[decide.SeatKey{Event: theEvent, Index: 3}].Epoch }, int64(44)},
		{"events again, in the same version and state", `UPDATE shard.events SET sequence = 9, body = replace(body, '"HoldTTL":1', '"HoldTTL":2')`,
			func(w *wants) { w.events.add(theEvent) }, func(s *source) any { return s.events[theEvent].HoldTTL }, ledger.Duration(2)},
		{"orders with their money", `UPDATE shard.orders SET state = 2, funds = '[{"order":1,"provider":"x","payment":"y","left":5}]', documents = '["d"]'`,
			func(w *wants) { w.orders.add(o.ID) },
			func(s *source) any { return s.orders[o.ID].Funds[0].Payment + s.orders[o.ID].Documents[0] }, "yd"},
		{"holds with their lines", `UPDATE shard.holds SET state = 4, lines = '[[2],[3,1,0,5000,0,0,5000,1]]'`,
			func(w *wants) { w.holds.add(h.ID) }, func(s *source) any { return s.holds[h.ID].Lines[0].Gone }, true},
		{"refunds and uses, under the order's lock", `WITH r AS (INSERT INTO shard.refunds (refund_id, order_id, provider, payment_id, state, amount, currency, reason, created_at)
		      SELECT 900, order_id, 'x', 'y', 1, 5, 'EUR', 'z', 1 FROM shard.orders),
		    c AS (INSERT INTO shard.checkins (event_id, at, ticket_id, device, gate, by_id, offline, conflict) VALUES (1, 2, 901, 'd', 'g', 3, 0, ''))
		    UPDATE shard.orders SET reason = 'refunds'`,
			func(w *wants) { w.orders.add(o.ID); w.refunds.add(900); w.allRefunds.add(o.ID); w.uses.add(901) },
			func(s *source) any {
				return fmt.Sprint(s.refunds[900].Order == o.ID, len(s.allRefunds[o.ID]), len(s.uses[901]))
			}, "true 1 1"},
	} {
		t.Run(c.table, func(t *testing.T) {
			ctx := context.Background()
			other, err := s.conn().Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := other.Exec(ctx, c.change); err != nil {
				t.Fatal(err)
			}
			conn, err := s.l.writing.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
			tx := &transaction{l: s.l, conn: conn.Conn(), batch: newBatch(s.l, nil)}
			tx.source = newSource(ctx, tx)
			tx.set = newLockset(&s.l.facts, noon)
			c.want(&tx.set.wants)
			locked := make(chan error, 1)
			go func() { locked <- tx.lock(ctx) }()
			s.untilBlocked(conn.Conn())
			if err := other.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-locked; err != nil {
				t.Fatal(err)
			}
			if got := c.got(tx.source); got != c.value {
				t.Errorf("got %v, the other committed %v", got, c.value)
			}
			if err := tx.rollback(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func limitOf(customer id.ID) decide.LimitKey {
	return decide.LimitKey{Scope: ledger.PerEvent, Of: theEvent, Category: -1, Subject: decide.CustomerSubject(customer)}
}

// untilBlocked returns when the server says that a connection waits for a lock.
func (s *stage) untilBlocked(c *pgx.Conn) {
	s.Helper()
	for s.value(`SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'`, int64(c.PgConn().PID())) == 0 {
		runtime.Gosched()
	}
}

// A batch sends as many statements for 1,024 commands as for one, whether they hold, pay or lose.
func TestStatementsDoNotGrowWithTheBatch(t *testing.T) {
	s := newStage(t, "", nil)
	const many, hall = ledger.BatchCommandsMax, id.ID(2)
	e, layout := stageEvent(), &ledger.Layout{PlanHash: "hall"}
	e.ID, e.PlanHash, e.Quotas[0].Max = hall, "hall", 2*many
	for i := range int32(many + 2) {
		layout.Section, layout.Category = append(layout.Section, 0), append(layout.Category, 0)
		layout.Run, layout.Quality = append(layout.Run, i), append(layout.Quality, i)
	}
	s.ok(ledger.SetEvent{Event: e, Layout: layout})
	hold := func(seat int32) ledger.Command {
		c := s.hold(id.ID(10_000+seat), seat)
		c.Event, c.Key = hall, ledger.Key{Value: "k"}
		return c
	}
	s.ok(hold(many + 1)) // the quota's first count is made by an INSERT, every later one by an UPDATE
	count := func(commands []ledger.Command) (results []ledger.Result, statements int64) {
		before := s.l.statements.Load()
		results = s.apply(s.l, commands...)
		for i, r := range results {
			if r.Fault != nil {
				t.Fatalf("%T: %v", commands[i], r.Fault)
			}
		}
		return results, s.l.statements.Load() - before
	}
	one, all := []ledger.Command{hold(many)}, []ledger.Command(nil)
	for seat := range int32(many) {
		all = append(all, hold(seat))
	}
	for _, step := range []struct {
		name string
		next func(ledger.Result) ledger.Command // after this step
	}{
		{"hold", func(r ledger.Result) ledger.Command {
			c := s.begin(r.Hold)
			c.Key = ledger.Key{Value: "k"}
			return c
		}},
		{"begin payment", func(r ledger.Result) ledger.Command { return s.confirm(r.Order, 1) }},
		{"confirm", func(ledger.Result) ledger.Command { return nil }},
	} {
		few, a := count(one)
		lots, b := count(all)
		if a != b {
			t.Errorf("%s: %d statements for 1 command, %d for %d", step.name, a, b, many)
		}
		t.Logf("%s: %d statements", step.name, a)
		one[0] = step.next(few[0])
		for i := range lots {
			all[i] = step.next(lots[i])
		}
	}
	s.ok(s.hold(7, 0, 1))
	// Losers: all for seats that are sold.
	losers := func(n int) (list []ledger.Command) {
		for range n {
			list = append(list, s.hold(s.id(), 0, 1))
		}
		return list
	}
	before := s.l.statements.Load()
	s.apply(s.l, losers(1)...)
	a := s.l.statements.Load() - before
	before = s.l.statements.Load()
	for _, r := range s.apply(s.l, losers(ledger.BatchCommandsMax)...) {
		if r.Fault == nil || r.Fault.Code != fault.SeatsTaken {
			t.Fatalf("a loser was answered %+v", r)
		}
	}
	if b := s.l.statements.Load() - before; a != b {
		t.Errorf("%d statements for 1 loser, %d for %d", a, b, ledger.BatchCommandsMax)
	}
}

// Every statement of a batch goes by indexes, on tables that have never been analysed.
func TestPlansNeedNoStatistics(t *testing.T) {
	s := newStage(t, "", nil)
	h := s.ok(s.hold(7, 3)).Hold
	o := s.ok(s.begin(h)).Order
	s.ok(s.confirm(o, 1))
	s.ok(ledger.HoldPlaces{ID: s.id(), Event: theEvent, Customer: 7, Area: 0, Quantity: 2, Key: ledger.Key{Value: "k"}})
	s.ok(s.hold(7, 4))
	s.ok(ledger.Sweep{Event: theEvent})
	s.shop()
	s.roomSale()
	ctx := context.Background()
	conn, err := s.l.writing.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	exec := func(sql string) [][]string {
		rows, err := tx.Query(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) ([]string, error) {
			var row []string
			for _, v := range r.RawValues() {
				row = append(row, string(v))
			}
			return row, nil
		})
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return list
	}
	exec(settings)
	explained := 0
	for _, p := range exec(`SELECT name, statement, cardinality(parameter_types) FROM pg_prepared_statements WHERE statement LIKE '%shard.%'`) {
		var n int
		_, _ = fmt.Sscan(p[2], &n)
		args := ""
		if n > 0 {
			args = "(" + strings.TrimSuffix(strings.Repeat("NULL, ", n), ", ") + ")"
		}
		var plan strings.Builder
		for _, line := range exec(`EXPLAIN EXECUTE "` + p[0] + `"` + args) {
			plan.WriteString(line[0] + "\n")
		}
		explained++
		for _, bad := range []string{"Seq Scan", "Hash Join", "Merge Join"} {
			if strings.Contains(plan.String(), bad) && !strings.Contains(p[1], "shard.clock") {
				t.Errorf("%s\n%s", p[1], plan.String())
			}
		}
	}
	if explained < 45 {
		t.Errorf("only %d statements were looked at", explained)
	}
}

// What changes under a batch's feet in every round is answered busy in the end, alone.
func TestRowsThatChangeTooFast(t *testing.T) {
	s := newStage(t, "", nil)
	other := s.open(nil)
	h := s.ok(s.hold(7, 3)).Hold
	s.now.Add(int64(stageEvent().HoldTTL)) // whoever takes the seat must end the old hold
	_ = h
	rounds := 0
	s.l.beforeLock = func() {
		rounds++
		if rounds > roundsMax {
			return
		}
		s.now.Add(int64(stageEvent().HoldTTL))
		s.apply(other, s.hold(8, 3)) // and there is always another one
		s.now.Add(int64(stageEvent().HoldTTL))
	}
	results := s.apply(s.l, s.hold(9, 3), s.hold(10, 4))
	if f := results[0].Fault; f == nil || f.Code != fault.Busy || f.RetryAfter == 0 {
		t.Errorf("the seat that changes was answered %+v", results[0])
	}
	if results[1].Fault != nil {
		t.Errorf("the other one was answered %v", results[1].Fault)
	}
	if rounds < roundsMax {
		t.Errorf("it gave up after %d rounds", rounds)
	}
}

// A change of an event comes to its turn, however busy two nodes are with it.
func TestSetEventIsNotStarved(t *testing.T) {
	s := newStage(t, "", nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	nodes := []*Ledger{s.l, s.open(nil)}
	third := s.open(nil)
	atOnce(3, func(i int) {
		if i == 2 {
			e := stageEvent()
			for e.Version < 20 {
				e.Version++
				s.apply(third, ledger.SetEvent{Event: e})
			}
			cancel()
			return
		}
		for k := int32(0); ctx.Err() == nil; k++ {
			c := s.hold(s.id(), k%seatsAll)
			r := s.apply(nodes[i], c)[0]
			if r.Fault == nil {
				s.apply(nodes[i], ledger.Release{Hold: c.ID, Customer: c.Customer})
			}
		}
	})
}
