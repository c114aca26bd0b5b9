package waitingroom_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/waitingroom"
)

// Things that go wrong beside a room, and must not keep it from opening, or anybody from joining.

// hangingBeacon takes every request and answers none.
type hangingBeacon struct{}

func (hangingBeacon) Value(ctx context.Context, _ string) (string, time.Time, error) {
	<-ctx.Done()
	return "", time.Time{}, ctx.Err()
}

// C3: a beacon that hangs is one whose value does not come. The ledger refuses a context that has ended, as databases do.
func TestBeaconHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(e *ledger.Event) { e.Room.Source, e.Room.DrawWait = "a beacon", 20_000 })
		n := w.node(func(o *waitingroom.Options) {
			o.Beacon = hangingBeacon{}
			o.Draw = func(ctx context.Context, _ id.ID) ([32]byte, error) { return w.k, ctx.Err() }
		})
		w.joinAll(n, 10, "")
		w.until("N is frozen", func() bool { return w.room().Phase >= ledger.RoomDrawing })
		w.open()
		room := w.room()
		if waited := ledger.Duration(room.Drawn - room.Frozen).Std(); room.Provable || waited < 20*time.Second || waited > 25*time.Second {
			t.Errorf("drawn %v after freezing; provable: %v", waited, room.Provable)
		}
	})
}

// slowLog takes its time to give the list.
type slowLog struct {
	waitingroom.Log
	takes time.Duration
}

func (l *slowLog) Replay(ctx context.Context, event id.ID, sorted bool, each func(waitingroom.Record) error) error {
	if sorted {
		select {
		case <-time.After(l.takes):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return l.Log.Replay(ctx, event, sorted, each)
}

// A list of joins so long that reading it takes longer than a step of a room's background lets the sale open late, not never.
func TestLongListIsFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		n := w.node(func(o *waitingroom.Options) { o.Log = &slowLog{o.Log, 12 * time.Second} })
		fans := w.joinAll(n, 20, "")
		w.open()
		if late := ledger.Duration(w.room().Frozen - w.rule.SaleOpens).Std(); late > 15*time.Second {
			t.Errorf("frozen %v late", late)
		}
		checkDraw(t, w, n, len(fans))
	})
}

// leavingStore stops in Leave until it is let go.
type leavingStore struct {
	waitingroom.Store
	reached, let chan struct{}
	stopped      atomic.Bool
}

func (s *leavingStore) Leave(ctx context.Context, event, customer id.ID, number int64) error {
	if s.stopped.CompareAndSwap(false, true) {
		close(s.reached)
		<-s.let
	}
	return s.Store.Leave(ctx, event, customer, number)
}

// Somebody joins in one tab while they leave in another: between the log's step and the store's they get a new number, and the
// store is not taken for one that has lost something, which would keep everybody from joining.
func TestJoinWhileLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		store := &leavingStore{Store: w.store, reached: make(chan struct{}), let: make(chan struct{})}
		n := w.node(func(o *waitingroom.Options) { o.Store = store })
		others := w.joinAll(n, 20, "")
		f := &fan{}
		w.join(n, f, "")
		left := make(chan error, 1)
		go func() { left <- n.LeaveQueue(context.Background(), f.place.QueueID, f.customer) }()
		<-store.reached
		place, err := n.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: f.customer})
		if err != nil || place.Number == f.place.Number || !place.New {
			t.Errorf("%+v became %+v, %v", f.place, place, err)
		}
		if _, err := n.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: w.made.MustNext(0)}); err != nil {
			t.Errorf("somebody else: %v", err)
		}
		close(store.let)
		if err := <-left; err != nil {
			t.Fatal(err)
		}
		again, err := n.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: f.customer})
		if err != nil || again.Number != place.Number || again.New {
			t.Errorf("%+v became %+v, %v", place, again, err)
		}
		if got := n.Stats().Recoveries; got != 0 {
			t.Errorf("the store was mended %d times", got)
		}
		w.open()
		checkDraw(t, w, n, len(others)+2)
	})
}

// awayToFreeze is a store as a node sees it that cannot freeze it.
type awayToFreeze struct{ waitingroom.Store }

func (awayToFreeze) Freeze(context.Context, id.ID) ([]waitingroom.Count, error) {
	return nil, errors.New("the store is away")
}

// C2: the store is lost after it was frozen and before the list is sealed, and another node mends it and lets somebody join:
// who is on the list is drawn.
func TestStoreIsLostBeforeTheSeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		w.store.run = "one life"
		other := w.node(func(o *waitingroom.Options) { o.Store = awayToFreeze{o.Store} })
		f := &fan{}
		var once sync.Once
		freezing := w.node(func(o *waitingroom.Options) {
			o.Log = &logOf{o.Log, func() error {
				once.Do(func() {
					w.store.lose("another life")
					w.join(other, f, "")
				})
				return nil
			}}
		})
		fans := w.joinAll(freezing, 50, "")
		w.open()
		room := w.room()
		if !f.place.Drawn || f.place.Number >= room.Lanes[0].N {
			t.Errorf("%+v, and N is %d", f.place, room.Lanes[0].N)
		}
		same(w, freezing, append(fans, f))
		checkDraw(t, w, freezing, len(fans)+1)
	})
}

// An hour after a sale its room is forgotten: nothing is read or written for it any more.
func TestRoomIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(e *ledger.Event) { e.SaleCloses = e.SaleOpens + 60_000 })
		var steps atomic.Int64
		n := w.node(func(o *waitingroom.Options) {
			o.Ledger = &ledgerOf{Ledger: o.Ledger, before: func(c ledger.Command) error {
				if _, is := c.(ledger.Advance); is {
					steps.Add(1)
				}
				return nil
			}}
		})
		w.joinAll(n, 5, "")
		w.open()
		time.Sleep(2*time.Minute + time.Hour)
		before := steps.Load()
		time.Sleep(10 * time.Minute)
		if after := steps.Load(); before == 0 || after != before {
			t.Errorf("%d steps, and then %d", before, after-before)
		}
		if _, err := n.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: 7}); fault.CodeOf(err) != fault.NotOnSale {
			t.Errorf("a join: %v", err)
		}
	})
}

// C5: a lane that is added while people wait is joined at once, and nobody else is held up for it.
func TestLaneIsAdded(t *testing.T) {
	for name, when := range map[string]func(w *world){"waiting": func(*world) {}, "open": (*world).open} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, nil)
				n := w.node(nil)
				fans := w.joinAll(n, 20, "")
				when(w)
				w.change(func(e *ledger.Event) { e.Room.Lanes = append(e.Room.Lanes, ledger.LaneRule{Key: "presale", Weight: 3}) }, n)
				w.until("the node knows", func() bool {
					v, err := n.View(context.Background(), w.event)
					return err == nil && len(v.Room.Lanes) == 2
				})
				place, err := n.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: w.made.MustNext(0), Lane: "presale"})
				if err != nil || place.Lane != "presale" || place.Number != 0 || !place.New {
					t.Fatalf("%+v, %v", place, err)
				}
				if got := n.Stats().Recoveries; got != 0 {
					t.Errorf("the store was mended %d times", got)
				}
				same(w, n, fans)
				w.open()
				w.until("everybody is called", func() bool {
					lanes := w.room().Lanes
					return lanes[0].Watermark == 20 && lanes[1].Watermark == 1
				})
			})
		})
	}
}
