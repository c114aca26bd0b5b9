package waitingroom_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"onsale/internal/draw"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/waitingroom"
)

// C3: everything that is published of a draw fits together, for whoever recomputes it from the list, and each ticket's position
// is the one that follows.
func TestDrawFitsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(e *ledger.Event) {
			e.Room.Source, e.Room.DrawWait = "a lottery", 60_000
			e.Room.Lanes = []ledger.LaneRule{{Key: "presale", Weight: 2}, {Key: "general", Weight: 1}}
		})
		n := w.node(nil)
		fans := append(w.joinAll(n, 300, "presale"), w.joinAll(n, 700, "")...)
		for _, f := range fans {
			if st, err := n.Place(f.place.QueueID); err != nil || st.Known || !st.Drawn || st.Outlook != waitingroom.OutlookUnknown {
				t.Fatalf("before the draw: %+v, %v", st, err)
			}
		}
		if err := n.SetDrawValue(context.Background(), w.event, "too early"); fault.CodeOf(err) != fault.Conflict {
			t.Fatalf("a value before the list is fixed: %v", err)
		}
		if err := n.WriteList(context.Background(), w.event, &bytes.Buffer{}); fault.CodeOf(err) != fault.Conflict {
			t.Fatalf("the list before it is fixed: %v", err)
		}
		w.until("N is frozen", func() bool { return w.room().Phase == ledger.RoomDrawing })
		if room := w.room(); room.K != "" || room.Lanes[0].N != 300 || room.Lanes[1].N != 700 {
			t.Fatalf("%+v", room)
		}
		late := &fan{}
		w.join(n, late, "")
		if st, err := n.Place(late.place.QueueID); err != nil || !st.Known || st.Position != 700 || st.Drawn {
			t.Fatalf("behind the drawn: %+v, %v", st, err)
		}
		if err := n.SetDrawValue(context.Background(), w.event, "3 8 19 22 41 47"); err != nil {
			t.Fatal(err)
		}
		if err := n.SetDrawValue(context.Background(), w.event, "another"); fault.CodeOf(err) != fault.Conflict {
			t.Fatalf("a second value: %v", err)
		}
		room := w.room()
		doc, err := waitingroom.NewDrawDoc(&room)
		if err != nil {
			t.Fatal(err)
		}
		var list bytes.Buffer
		if err := n.WriteList(context.Background(), w.event, &list); err != nil {
			t.Fatal(err)
		}
		checks, err := doc.Verify(bytes.NewReader(list.Bytes()))
		if err != nil || !waitingroom.DrawOK(checks) || doc.State != waitingroom.DrawProvable {
			t.Fatalf("%+v, %v", checks, err)
		}
		entries := map[string]bool{}
		if _, err := draw.ReadList(&list, func(lane string, number int64, e [16]byte) error {
			entries[lane+hex.EncodeToString(e[:])] = true
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		w.open()
		for _, f := range fans {
			order, err := doc.Order(f.place.Lane)
			if err != nil {
				t.Fatal(err)
			}
			st, err := n.Place(f.place.QueueID)
			if err != nil || !st.Known || st.Position != order.Position(f.place.Number) || !entries[f.place.Lane+f.place.Entry] {
				t.Fatalf("%+v, %v; %+v", st, err, f.place)
			}
		}
	})
}

// C3: without the public value the draw is made after draw_wait, and does not claim more than it is; one that was public
// before the list was fixed proves nothing.
func TestDrawWithoutValue(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		value  func(w *world)
		wait   time.Duration
		state  string
	}{
		"no source":      {"", func(*world) {}, 0, waitingroom.DrawCommitted},
		"it never comes": {"a beacon", func(*world) {}, 20 * time.Second, waitingroom.DrawCommitted},
		"it comes": {"a beacon", func(w *world) {
			time.Sleep(3 * time.Second)
			v := "a round"
			w.beacon.Store(&v)
		}, 3 * time.Second, waitingroom.DrawProvable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, func(e *ledger.Event) { e.Room.Source, e.Room.DrawWait = c.source, 20_000 })
				n := w.node(nil)
				w.joinAll(n, 10, "")
				w.until("N is frozen", func() bool { return w.room().Phase >= ledger.RoomDrawing })
				c.value(w)
				w.open()
				room := w.room()
				doc, err := waitingroom.NewDrawDoc(&room)
				if err != nil || doc.State != c.state {
					t.Fatalf("%s, %v", doc.State, err)
				}
				if waited := ledger.Duration(room.Drawn - room.Frozen).Std(); waited < c.wait || waited > c.wait+time.Second {
					t.Errorf("drawn %v after freezing, not %v", waited, c.wait)
				}
			})
		})
	}
}

// oldBeacon has a value that everybody knew before.
type oldBeacon struct{}

func (oldBeacon) Value(context.Context, string) (string, time.Time, error) {
	return "known to all", time.Now().Add(-time.Hour), nil
}

func TestOldValueProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(e *ledger.Event) { e.Room.Source = "yesterday's round" })
		n := w.node(func(o *waitingroom.Options) { o.Beacon = oldBeacon{} })
		w.joinAll(n, 10, "")
		w.open()
		if room := w.room(); room.Provable || room.Value != "known to all" {
			t.Fatalf("%+v", room)
		}
	})
}

// C3: what a beacon says is fetched: an organizer cannot enter it, and with it say that the draw is provable.
func TestNobodyEntersTheValueOfABeacon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(e *ledger.Event) { e.Room.Source, e.Room.DrawWait = "beacon: quicknet 12345", 20_000 })
		n := w.node(nil)
		w.joinAll(n, 10, "")
		w.until("N is frozen", func() bool { return w.room().Phase == ledger.RoomDrawing })
		if err := n.SetDrawValue(context.Background(), w.event, "mine"); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("a value of the organizer's: %v", err)
		}
		w.open()
		if room := w.room(); room.Provable || room.Value != "" {
			t.Errorf("%+v", room)
		}
	})
}

// C4: with the order of arrival a number is its position from the first moment on.
func TestOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(e *ledger.Event) { e.Room.Arrival = true })
		n := w.node(nil)
		fans := w.joinAll(n, 100, "")
		for _, f := range fans {
			if st, err := n.Place(f.place.QueueID); err != nil || !st.Known || st.Position != f.place.Number {
				t.Fatalf("%+v, %v", st, err)
			}
		}
		w.open()
		if room := w.room(); room.K != "" || room.Commitment != "" {
			t.Fatalf("there is a draw: %+v", room)
		}
	})
}

// logOf wraps a log so that one of its steps can be stopped.
type logOf struct {
	waitingroom.Log
	seal func() error
}

func (l *logOf) Seal(ctx context.Context, event id.ID) error {
	if l.seal != nil {
		if err := l.seal(); err != nil {
			return err
		}
	}
	return l.Log.Seal(ctx, event)
}

// ledgerOf wraps a ledger so that a command can be lost, before or after it takes effect.
type ledgerOf struct {
	waitingroom.Ledger
	before, after func(c ledger.Command) error
}

func (l *ledgerOf) Do(ctx context.Context, c ledger.Command) (ledger.Result, error) {
	if l.before != nil {
		if err := l.before(c); err != nil {
			return ledger.Result{}, err
		}
	}
	r, err := l.Ledger.Do(ctx, c)
	if err == nil && l.after != nil {
		if lost := l.after(c); lost != nil {
			return ledger.Result{}, lost
		}
	}
	return r, err
}

var errDies = errors.New("the node dies here")

func freezes(c ledger.Command) error {
	if _, ok := c.(ledger.RoomFreeze); ok {
		return errDies
	}
	return nil
}

// A freeze that dies between any two of its steps is done again, by the same node or another, also when the store is lost with
// it; nobody has a number on the wrong side of N, no tail number is signed before N is durable, and the list is one.
func TestFreezeDiesInBetween(t *testing.T) {
	for name, dies := range map[string]func(o *waitingroom.Options){
		"before the list is sealed": func(o *waitingroom.Options) {
			o.Log = &logOf{o.Log, func() error { return errDies }}
		},
		"before N is the ledger's": func(o *waitingroom.Options) { o.Ledger = &ledgerOf{Ledger: o.Ledger, before: freezes} },
		"with the answer lost":     func(o *waitingroom.Options) { o.Ledger = &ledgerOf{Ledger: o.Ledger, after: freezes} },
	} {
		for _, lose := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, nil, nil)
					first := w.node(dies)
					fans := w.joinAll(first, 500, "")
					// Somebody comes while the freeze is stuck.
					time.Sleep(joinsFor)
					synctest.Wait()
					f := &fan{customer: w.made.MustNext(0)}
					place, err := first.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: f.customer})
					if room := w.room(); err == nil && room.Phase == ledger.RoomWaiting {
						t.Fatalf("%+v was signed before N is durable", place)
					}
					first.stop()
					if lose {
						w.store.lose("another life")
					}
					second := w.node(nil)
					w.open()
					w.join(second, f, "")
					room := w.room()
					if f.place.Drawn || f.place.Number < room.Lanes[0].N {
						t.Fatalf("%+v, and N is %d", f.place, room.Lanes[0].N)
					}
					positions := map[int64]bool{}
					for _, f := range fans {
						again, err := second.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: f.customer})
						if err != nil || again.Number != f.place.Number || !again.Drawn || again.New {
							t.Fatalf("%+v became %+v, %v", f.place, again, err)
						}
						st, err := second.Place(f.place.QueueID)
						if err != nil || !st.Known || positions[st.Position] || f.place.Number >= room.Lanes[0].N {
							t.Fatalf("%+v, %v", st, err)
						}
						positions[st.Position] = true
					}
					checkDraw(t, w, second, len(fans))
				})
			})
		}
	}
}

// checkDraw recomputes the draw, and counts the lines of its list.
func checkDraw(t *testing.T, w *world, n *node, lines int) {
	t.Helper()
	room := w.room()
	doc, err := waitingroom.NewDrawDoc(&room)
	if err != nil {
		t.Fatal(err)
	}
	var list bytes.Buffer
	if err := n.WriteList(context.Background(), w.event, &list); err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(list.Bytes(), []byte("\n")); got != lines {
		t.Errorf("the list has %d lines, not %d", got, lines)
	}
	checks, err := doc.Verify(&list)
	if err != nil || !waitingroom.DrawOK(checks) {
		t.Errorf("%+v, %v", checks, err)
	}
}

// A join that has its number before the freeze and reaches the log after it, on another node, gets one of the tail.
func TestJoinTooLateForTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		w.store.run = "one life" // shared by nodes
		freezing := w.node(nil)
		// The other node's log hangs from a moment on.
		hang := make(chan struct{})
		other := w.node(func(o *waitingroom.Options) {
			o.Log = &hangingLog{Log: o.Log, hang: hang}
		})
		fans := w.joinAll(freezing, 50, "")
		w.until("the other node is ready", other.Ready)
		time.Sleep(time.Until(w.rule.SaleOpens.Std()) - time.Second)
		f := &fan{customer: w.made.MustNext(0)}
		joined := make(chan struct{})
		go func() {
			defer close(joined)
			w.join(other, f, "")
		}()
		w.open()
		close(hang)
		<-joined
		if f.place.Drawn || f.place.Number < w.room().Lanes[0].N {
			t.Fatalf("%+v, and N is %d", f.place, w.room().Lanes[0].N)
		}
		checkDraw(t, w, freezing, len(fans))
	})
}

// hangingLog lets Append of drawn joins wait.
type hangingLog struct {
	waitingroom.Log
	hang chan struct{}
}

func (l *hangingLog) Append(ctx context.Context, records []waitingroom.Record) ([]waitingroom.Appended, error) {
	select {
	case <-l.hang:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return l.Log.Append(ctx, records)
}

// A store that is away when the sale opens does not keep it from opening.
func TestOpensWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		n := w.node(nil)
		fans := w.joinAll(n, 100, "")
		w.store.fail(errors.New("the store is away"))
		opens := time.Now().Add(ledger.Duration(w.rule.SaleOpens - now()).Std())
		w.open()
		if late := time.Since(opens); late > 8*time.Second {
			t.Errorf("the sale opened %v late", late)
		}
		room := w.room()
		if room.Lanes[0].N < 100 || room.Lanes[0].N != room.Lanes[0].HighWater {
			t.Fatalf("%+v", room.Lanes[0])
		}
		if _, err := n.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: 77}); fault.CodeOf(err) != fault.Busy {
			t.Fatalf("a join without the store: %v", err)
		}
		r := newRush(w, []*node{n}, fans)
		r.noShow = 0
		r.run(20 * time.Second) // those who wait go on: voids are called too
		if len(r.orders) != len(fans) {
			t.Errorf("%d of %d entered", len(r.orders), len(fans))
		}
		w.store.fail(nil)
		late := &fan{}
		w.join(n, late, "")
		if late.place.Drawn || late.place.Number < room.Lanes[0].N {
			t.Fatalf("%+v, and N is %d", late.place, room.Lanes[0].N)
		}
		checkDraw(t, w, n, len(fans))
	})
}
