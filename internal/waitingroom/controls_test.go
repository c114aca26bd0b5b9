package waitingroom_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"testing"
	"testing/synctest"
	"time"

	"onsale/internal/draw"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/waitingroom"
)

// The negative controls: with a guard switched off behind its port, what it guards against happens. Should one of these not fail
// any more, the test of the guard beside it has come to look at something else.

// unsealed is a log that is never sealed.
type unsealed struct{ waitingroom.Log }

func (unsealed) Seal(context.Context, id.ID) error { return nil }

// Without the seal somebody holds a drawn number that the published list lacks (see TestJoinTooLateForTheList).
func TestControlNoSeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		w.store.run = "one life"
		freezing := w.node(func(o *waitingroom.Options) { o.Log = unsealed{o.Log} })
		hang := make(chan struct{})
		other := w.node(func(o *waitingroom.Options) { o.Log = unsealed{&hangingLog{o.Log, hang}} })
		w.joinAll(freezing, 50, "")
		w.until("the other node is ready", other.Ready)
		time.Sleep(time.Until(w.rule.SaleOpens.Std()) - time.Second)
		f, joined := &fan{customer: w.made.MustNext(0)}, make(chan struct{})
		go func() {
			defer close(joined)
			w.join(other, f, "")
		}()
		w.open()
		close(hang)
		<-joined
		if !f.place.Drawn {
			t.Fatal("the number is of the tail all the same: the control controls nothing")
		}
		room := w.room()
		var list bytes.Buffer
		if err := freezing.WriteList(context.Background(), w.event, &list); err != nil {
			t.Fatal(err)
		}
		hash, err := draw.ReadList(&list, func(string, int64, [16]byte) error { return nil })
		if err != nil || hex.EncodeToString(hash[:]) == room.ListHash {
			t.Fatalf("the list is the published one all the same, %v", err)
		}
	})
}

// forgetful is a log that says of everybody that they have the number they ask with.
type forgetful struct {
	waitingroom.Log
	last map[id.ID]waitingroom.Record
}

func (f forgetful) Append(ctx context.Context, records []waitingroom.Record) ([]waitingroom.Appended, error) {
	for _, r := range records {
		if !r.Left && f.last[r.Customer].Customer == 0 {
			f.last[r.Customer] = r // the first number of each
		}
	}
	return f.Log.Append(ctx, records)
}

func (f forgetful) Of(_ context.Context, _, customer id.ID) (waitingroom.Record, bool, error) {
	r, ok := f.last[customer]
	return r, ok, nil
}

// Without the log's word a number that was given up still enters (see TestLeavingGivesTheTicketUp).
func TestControlGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		w := newWorld(t, nil, nil)
		n := w.node(func(o *waitingroom.Options) { o.Log = forgetful{o.Log, map[id.ID]waitingroom.Record{}} })
		f := &fan{}
		w.join(n, f, "")
		if err := n.LeaveQueue(ctx, f.place.QueueID, f.customer); err != nil {
			t.Fatal(err)
		}
		w.open()
		w.until("all are called", func() bool { return w.room().Lanes[0].Watermark == w.room().Lanes[0].N })
		if _, err := n.Claim(ctx, f.place.QueueID, f.customer); err != nil {
			t.Fatalf("it is refused all the same: %v", err)
		}
	})
}

// trusting is a log that takes every number, whoever has it.
type trusting struct{ waitingroom.Log }

func (trusting) Append(_ context.Context, records []waitingroom.Record) ([]waitingroom.Appended, error) {
	done := make([]waitingroom.Appended, len(records))
	for i, r := range records {
		done[i].Record = r
	}
	return done, nil
}

func (trusting) Of(context.Context, id.ID, id.ID) (waitingroom.Record, bool, error) {
	return waitingroom.Record{}, false, nil
}

// Without a log that knows numbers a store that has lost writes gives them twice (see TestStoreIsLost).
func TestControlNumberTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		n := w.node(func(o *waitingroom.Options) { o.Log = trusting{o.Log} })
		first := w.joinAll(n, 10, "")
		// It comes back with its counters of before, and nobody has noticed yet.
		w.store.lose("")
		state := waitingroom.State{Phase: waitingroom.Waiting, Lanes: []waitingroom.LaneState{{Next: 5, Limit: 256}}}
		if err := w.store.Restore(context.Background(), w.event, state); err != nil {
			t.Fatal(err)
		}
		second := w.joinAll(n, 10, "")
		numbers := map[int64]bool{}
		twice := 0
		for _, f := range append(first, second...) {
			if numbers[f.place.Number] {
				twice++
			}
			numbers[f.place.Number] = true
		}
		if twice == 0 {
			t.Fatal("no number was given twice all the same")
		}
	})
}

// With the log of the world the same store gives no number twice.
func TestNumberTwiceIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		n := w.node(nil)
		fans := w.joinAll(n, 10, "")
		w.store.lose("")
		state := waitingroom.State{Phase: waitingroom.Waiting, Lanes: []waitingroom.LaneState{{Next: 5, Limit: 256}}}
		if err := w.store.Restore(context.Background(), w.event, state); err != nil {
			t.Fatal(err)
		}
		fans = append(fans, w.joinAll(n, 10, "")...)
		same(w, n, fans)
		if n.Stats().Recoveries == 0 {
			t.Error("nobody noticed")
		}
	})
}

// hasty is a ledger whose answers to RoomFreeze come before they are so: the room looks frozen, and is not.
type hasty struct{ waitingroom.Ledger }

func (h hasty) Do(ctx context.Context, c ledger.Command) (ledger.Result, error) {
	if f, ok := c.(ledger.RoomFreeze); ok {
		room := &ledger.Room{Event: f.Event, Phase: ledger.RoomDrawing, Commitment: "00", ListHash: f.ListHash}
		for _, l := range f.Lanes {
			room.Lanes = append(room.Lanes, ledger.Lane{Key: l.Lane, N: l.Count, HighWater: l.Count + 1_000})
		}
		return ledger.Result{Room: room}, nil
	}
	return h.Ledger.Do(ctx, c)
}

// Without waiting for N to be durable somebody of the tail is drawn when the store is lost (see TestFreezeDiesInBetween).
func TestControlTailBeforeN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		first := w.node(func(o *waitingroom.Options) { o.Ledger = hasty{o.Ledger} })
		w.joinAll(first, 10, "")
		time.Sleep(time.Until(w.rule.SaleOpens.Std()) + 500*time.Millisecond)
		place, err := first.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: 7})
		if err != nil || place.Drawn {
			t.Fatalf("%+v, %v", place, err)
		}
		first.stop()
		w.store.lose("another life")
		second := w.node(nil)
		w.open()
		if n := w.room().Lanes[0].N; place.Number >= n {
			t.Fatalf("number %d stays behind N = %d all the same", place.Number, n)
		}
		if _, err := second.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: 7}); fault.CodeOf(err) == fault.Internal {
			t.Fatal(err)
		}
	})
}
