package waitingroom_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/waitingroom"
)

// opened makes a world whose room is open with so many people, all drawn.
func opened(t *testing.T, people int, change func(e *ledger.Event), nodes int) (*world, []*node, []*fan) {
	t.Helper()
	w := newWorld(t, nil, change)
	var all []*node
	for range nodes {
		all = append(all, w.node(nil))
	}
	fans := w.joinAll(all[0], people, "")
	w.open()
	for _, n := range all {
		w.until("every node knows", func() bool {
			v, err := n.View(context.Background(), w.event)
			return err == nil && v.Room.Phase == ledger.RoomOpen
		})
	}
	return w, all, fans
}

// C12: the store loses everything in the middle of waiting, and again in the middle of the sale, with or without telling so
// by its run id. No number of a signed ticket is lost or given twice, nobody is called before a smaller position, no cap is
// broken, no number enters twice, and people go on entering all the while.
func TestStoreIsLost(t *testing.T) {
	for name, run := range map[string]string{"its run id changes": "another", "it says nothing": "one"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, func(e *ledger.Event) { e.Room.ActiveMax = 300 })
				w.store.run = "one"
				n, other := w.node(nil), w.node(nil)
				fans := w.joinAll(n, 1_000, "")
				w.store.lose(run)
				more := w.joinAll(other, 1_000, "") // at once: the store is empty, and nobody has noticed yet
				fans = append(fans, more...)
				same(w, other, fans)
				w.open()
				for _, n := range []*node{n, other} {
					w.until("every node knows", func() bool {
						v, err := n.View(context.Background(), w.event)
						return err == nil && v.Room.Phase == ledger.RoomOpen
					})
				}
				r := newRush(w, []*node{n, other}, fans)
				r.run(3 * time.Second)
				entered := len(r.orders)
				w.store.lose(run + " more")
				r.run(5 * time.Second)
				if len(r.orders) < entered+rateOfTest/2 {
					t.Errorf("only %d entered in 5 s after the loss", len(r.orders)-entered)
				}
				late := w.joinAll(n, 50, "")
				same(w, n, append(r.stillWaiting(), late...))
				r.come(late...)
				r.run(60 * time.Second)
				r.busyShare(0, 1000, rateOfTest)
				if r.most > 300 {
					t.Errorf("%d people were inside", r.most)
				}
				r.inOrder()
				checkDraw(t, w, n, len(fans))
			})
		})
	}
}

// same checks that everybody has the number of their ticket, and nobody another's.
func same(w *world, n *node, fans []*fan) {
	w.t.Helper()
	type key struct {
		lane   string
		number int64
	}
	seen := map[key]bool{}
	for _, f := range fans {
		if seen[key{f.place.Lane, f.place.Number}] {
			w.t.Fatalf("%+v is there twice", f.place)
		}
		seen[key{f.place.Lane, f.place.Number}] = true
		again := &fan{customer: f.customer}
		w.join(n, again, "")
		if again.place.Number != f.place.Number || again.place.Lane != f.place.Lane || again.place.Drawn != f.place.Drawn {
			w.t.Fatalf("%+v became %+v", f.place, again.place)
		}
	}
}

// stillWaiting are those who are not called yet.
func (r *rush) stillWaiting() (fans []*fan) {
	for _, f := range r.waiting {
		fans = append(fans, f)
	}
	return fans
}

// inOrder judges I10 on the stored calls: in the lane the watermark only grows, and nobody entered before they were called.
func (r *rush) inOrder() {
	r.w.t.Helper()
	calls, err := r.w.shard.Calls(context.Background(), r.w.event, "general", 0, 1_000_000)
	if err != nil {
		r.w.t.Fatal(err)
	}
	last := ledger.Call{}
	for _, c := range calls {
		if c.Watermark < last.Watermark || c.At < last.At {
			r.w.t.Fatalf("I10: %+v after %+v", c, last)
		}
		last = c
	}
	sessions, err := r.w.shard.Sessions(context.Background(), r.w.event, 0, 1_000_000)
	if err != nil {
		r.w.t.Fatal(err)
	}
	numbers := map[int64]bool{}
	for _, s := range sessions {
		i, _ := slices.BinarySearchFunc(calls, s.Position+1, func(c ledger.Call, p int64) int { return int(c.Watermark - p) })
		if i == len(calls) || calls[i].At > s.Entered {
			r.w.t.Fatalf("I10: position %d entered at %d and was called after", s.Position, s.Entered)
		}
		if numbers[s.Number] {
			r.w.t.Fatalf("I10: number %d entered twice", s.Number)
		}
		numbers[s.Number] = true
	}
}

// I10: two nodes on one store and ledger, each with its own worker, keep R and ActiveMax together.
func TestTwoNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, nodes, fans := opened(t, 4_000, func(e *ledger.Event) { e.Room.ActiveMax = 150 }, 2)
		r := newRush(w, nodes, fans)
		start := now()
		r.run(20 * time.Second)
		if share := r.busyShare(start, start+20_000, rateOfTest); share > 1 {
			t.Errorf("%.2f of R", share)
		}
		if r.most > 150 || r.most < 120 {
			t.Errorf("%d people inside at most; 150 may be", r.most)
		}
		r.inOrder()
	})
}

// C8: a pause stops calls, entries and the turns' clock.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, nodes, fans := opened(t, 2_000, nil, 1)
		n := nodes[0]
		time.Sleep(2 * time.Second)
		var called *fan
		for _, f := range fans {
			if st, err := n.Place(f.place.QueueID); err == nil && st.Called {
				called = f
				break
			}
		}
		w.change(func(e *ledger.Event) { e.Room.Paused = true }, n)
		if _, err := n.Claim(context.Background(), called.place.QueueID, called.customer); fault.CodeOf(err) != fault.Paused {
			t.Fatalf("a claim in a pause: %v", err)
		}
		mark := w.room().Lanes[0].Watermark
		before, _ := n.Place(called.place.QueueID)
		time.Sleep(time.Minute) // six turns
		after, err := n.Place(called.place.QueueID)
		if err != nil || !after.Called || before.TurnMS-after.TurnMS > 1_500 || w.room().Lanes[0].Watermark != mark {
			t.Fatalf("before %+v, after %+v, %v; %d people were called", before, after, err, w.room().Lanes[0].Watermark-mark)
		}
		status(t, w, n, "paused")
		w.change(func(e *ledger.Event) { e.Room.Paused = false }, n)
		if _, err := n.Claim(context.Background(), called.place.QueueID, called.customer); err != nil {
			t.Fatalf("a claim after the pause: %v", err)
		}
		time.Sleep(2 * time.Second)
		if w.room().Lanes[0].Watermark <= mark {
			t.Error("nobody is called after the pause")
		}
		status(t, w, n, "open")
	})
}

// C8: whoever comes too late enters where nobody called waits; the turn that is left is told, and then none.
func TestLateClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, nodes, fans := opened(t, 100, nil, 1)
		n := nodes[0]
		w.until("all are called", func() bool { return w.room().Lanes[0].Watermark == w.room().Lanes[0].N })
		time.Sleep(500 * time.Millisecond)
		if st, err := n.Place(fans[0].place.QueueID); err != nil || !st.Called || st.TurnMS < 8_000 || st.TurnMS > 10_000 || st.Ahead != 0 {
			t.Fatalf("%+v, %v", st, err)
		}
		time.Sleep(15 * time.Second)
		if st, err := n.Place(fans[0].place.QueueID); err != nil || !st.Called || st.TurnMS != 0 {
			t.Fatalf("%+v, %v", st, err)
		}
		if _, err := n.Claim(context.Background(), fans[0].place.QueueID, fans[0].customer); err != nil {
			t.Fatal(err)
		}
	})
}

// C5: lanes share R by weight, and what one cannot use goes to the other.
func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(e *ledger.Event) {
			e.Room.Lanes = []ledger.LaneRule{{Key: "presale", Weight: 3}, {Key: "general", Weight: 1}}
		})
		n := w.node(nil)
		w.joinAll(n, 1_500, "presale")
		w.joinAll(n, 3_000, "general")
		if _, err := n.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: 5, Lane: "members"}); fault.CodeOf(err) != fault.Invalid {
			t.Fatalf("a lane that is not there: %v", err)
		}
		w.open()
		time.Sleep(3 * time.Second)
		lanes := w.room().Lanes
		if share := float64(lanes[0].Watermark) / float64(lanes[0].Watermark+lanes[1].Watermark); share < 0.74 || share > 0.76 {
			t.Errorf("the presale has %.2f of the calls", share)
		}
		w.until("the presale is through", func() bool { return w.room().Lanes[0].Watermark == 1_500 })
		before := w.room().Lanes[1].Watermark
		time.Sleep(2 * time.Second)
		if got := w.room().Lanes[1].Watermark - before; got < 350 {
			t.Errorf("the other lane has %d calls in 2 s of R = 200", got)
		}
	})
}

// C10: with auto everybody joins and claims too, and nobody notices: the call comes with the next step.
func TestAuto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(e *ledger.Event) { e.Room.Mode = ledger.RoomAuto })
		n := w.node(nil)
		w.open()
		time.Sleep(10 * time.Second) // nothing is going on
		for range 5 {
			f := &fan{}
			w.join(n, f, "")
			began := time.Now()
			for {
				_, err := n.Claim(context.Background(), f.place.QueueID, f.customer)
				if err == nil {
					break
				}
				if fault.CodeOf(err) != fault.NotAdmitted {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			if waited := time.Since(began); waited > 250*time.Millisecond {
				t.Errorf("somebody waited %v in an empty room", waited)
			}
		}
		if inside := w.room().Inside; inside != 5 {
			t.Errorf("%d are counted inside", inside)
		}
	})
}

// C7, C9: the same claim is the same session; a used number is good for nothing, and a new join is at the tail.
func TestNumberIsUsedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, nodes, fans := opened(t, 20, nil, 2)
		n, f := nodes[0], fans[0]
		w.until("all are called", func() bool { return w.room().Lanes[0].Watermark == w.room().Lanes[0].N })
		ctx := context.Background()
		if _, err := n.Claim(ctx, f.place.QueueID, fans[1].customer); fault.CodeOf(err) != fault.WrongCustomer {
			t.Fatalf("another's ticket: %v", err)
		}
		first, err := n.Claim(ctx, f.place.QueueID, f.customer)
		if err != nil {
			t.Fatal(err)
		}
		again, err := nodes[1].Claim(ctx, f.place.QueueID, f.customer)
		if err != nil || again.Session != first.Session {
			t.Fatalf("%+v, %v", again, err)
		}
		same(w, n, fans[:1]) // inside, the number is still theirs
		if err := n.Leave(ctx, first.Session, fans[1].customer); fault.CodeOf(err) != fault.NotAdmitted {
			t.Fatalf("another ends the session: %v", err)
		}
		if err := n.Leave(ctx, first.Session, f.customer); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Claim(ctx, f.place.QueueID, f.customer); fault.CodeOf(err) != fault.Conflict {
			t.Fatalf("a used number: %v", err)
		}
		tail := &fan{customer: f.customer}
		w.join(n, tail, "")
		if tail.place.Drawn || tail.place.Number < 20 {
			t.Fatalf("%+v after %+v", tail.place, f.place)
		}
		same(w, nodes[1], []*fan{tail})
	})
}

// Nobody joins and leaves until a good number comes: with the number its ticket is given up.
func TestLeavingGivesTheTicketUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		n := w.node(nil)
		ctx := context.Background()
		others := w.joinAll(n, 10, "")
		customer := w.made.MustNext(0)
		var tickets []*fan
		for range 5 {
			f := &fan{customer: customer}
			w.join(n, f, "")
			tickets = append(tickets, f)
			if err := n.LeaveQueue(ctx, f.place.QueueID, others[0].customer); fault.CodeOf(err) != fault.WrongCustomer {
				t.Fatalf("another gives the number up: %v", err)
			}
			if err := n.LeaveQueue(ctx, f.place.QueueID, customer); err != nil {
				t.Fatal(err)
			}
		}
		last := &fan{customer: customer}
		w.join(n, last, "")
		w.open()
		checkDraw(t, w, n, len(others)+1)
		w.until("all are called", func() bool { return w.room().Lanes[0].Watermark == w.room().Lanes[0].N })
		for _, f := range tickets {
			if _, err := n.Claim(ctx, f.place.QueueID, customer); fault.CodeOf(err) != fault.QueueUnknown {
				t.Fatalf("a number that was given up: %v", err)
			}
		}
		a, err := n.Claim(ctx, last.place.QueueID, customer)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.LeaveQueue(ctx, last.place.QueueID, customer); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Admit(ctx, a.Token, customer, w.event); fault.CodeOf(err) != fault.NotAdmitted {
			t.Fatalf("after leaving the line: %v", err)
		}
		checkDraw(t, w, n, len(others)+1) // the list stays as it was published
	})
}

// C1: a second account with the same document is told so, and nothing else.
func TestSameDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		n := w.node(nil)
		w.joinAll(n, 1, "")
		join := func(customer id.ID) error {
			_, err := n.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: customer, Identity: waitingroom.Identity{1}})
			return err
		}
		if err := join(5); err != nil {
			t.Fatal(err)
		}
		if err := join(6); fault.CodeOf(err) != fault.AlreadyInLine || fault.Of(err).Detail != "" {
			t.Fatal(err)
		}
		w.store.lose("")
		w.until("it is mended", func() bool { return fault.CodeOf(join(6)) == fault.AlreadyInLine })
	})
}

// When nobody may join.
func TestNobodyJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(e *ledger.Event) { e.Room.Opens = now() + 30_000 })
		n := w.node(nil)
		join := func(event id.ID) fault.Code {
			_, err := n.Join(context.Background(), waitingroom.JoinRequest{Event: event, Customer: 9})
			return fault.CodeOf(err)
		}
		want := func(what string, got, code fault.Code) {
			t.Helper()
			if got != code {
				t.Errorf("%s: %q, not %q", what, got, code)
			}
		}
		synctest.Wait()
		want("an event that is not", join(12345), fault.EventUnknown)
		want("before it opens", join(w.event), fault.NotOnSale)
		time.Sleep(32 * time.Second)
		want("open", join(w.event), "")
		w.change(func(e *ledger.Event) { e.Room.Mode = ledger.RoomOff }, n)
		want("off", join(w.event), fault.Conflict)
		w.change(func(e *ledger.Event) { e.Room.Mode = ledger.RoomOn }, n)
		want("on again", join(w.event), "")
		w.change(func(e *ledger.Event) { e.State = ledger.Cancelled }, n)
		want("cancelled", join(w.event), fault.NotOnSale)
		w.change(func(e *ledger.Event) { e.State, e.Room.Closed = ledger.OnSale, true }, n)
		want("closed", join(w.event), fault.NotOnSale)
		status(t, w, n, "ended")
		w.change(func(e *ledger.Event) { e.Room.Closed = false }, n)
		time.Sleep(time.Until(w.rule.SaleCloses.Std()) + time.Second)
		want("the sale is over", join(w.event), fault.NotOnSale)
	})
}

// Where log or store are away joins are busy, and nobody gets a ticket that is not written down.
func TestJoinsNeedLogAndStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		n := w.node(nil)
		w.joinAll(n, 3, "")
		join := func() error {
			_, err := n.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: 9})
			return err
		}
		down := errors.New("it is away")
		var mu sync.Mutex
		logDown := down
		w.log.Before = func([]waitingroom.Record) error { mu.Lock(); defer mu.Unlock(); return logDown }
		if err := join(); fault.CodeOf(err) != fault.Busy || fault.Of(err).RetryAfter == 0 {
			t.Fatalf("without the log: %v", err)
		}
		mu.Lock()
		logDown = nil
		mu.Unlock()
		w.store.fail(down)
		if err := join(); fault.CodeOf(err) != fault.Busy {
			t.Fatalf("without the store: %v", err)
		}
		w.store.fail(nil)
		if err := join(); err != nil {
			t.Fatal(err)
		}
		if r, ok, err := w.log.Of(context.Background(), w.event, 9); err != nil || !ok || r.Number != 3 {
			t.Fatalf("%+v, %v, %v", r, ok, err)
		}
	})
}

// I13: joins that wait for the log are bounded; the rest is told to come again.
func TestJoinQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, people = 8, 40
		w := newWorld(t, nil, nil)
		hang := make(chan struct{})
		n := w.node(func(o *waitingroom.Options) { o.JoinQueueMax = most; o.Log = &hangingLog{o.Log, hang} })
		w.until("ready", n.Ready)
		time.Sleep(time.Second)
		codes := make(chan fault.Code, people)
		for i := range people {
			go func() {
				_, err := n.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: id.ID(i + 1)})
				codes <- fault.CodeOf(err)
			}()
		}
		synctest.Wait()
		if got := len(codes); got < people-most-people/2 || n.Stats().JoinsWaiting > most {
			t.Errorf("%d were told to come again, %d wait", got, n.Stats().JoinsWaiting)
		}
		close(hang)
		counts := map[fault.Code]int{}
		for range people {
			counts[<-codes]++
		}
		if counts[""]+counts[fault.Busy] != people || counts[""] < most || counts[fault.Busy] == 0 {
			t.Errorf("%v", counts)
		}
	})
}
