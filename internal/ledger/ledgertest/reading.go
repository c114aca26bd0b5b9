package ledgertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

var readingScenarios = []scenario{
	{"the layout is as it came with the event", func(w *world) {
		l, err := w.ledger.Layout(context.Background(), planHash)
		w.same("the layout", []any{l, err}, []any{hallLayout(), error(nil)})
		_, err = w.ledger.Layout(context.Background(), "none")
		w.same("no such plan", isNotFound(err), true)
	}},
	{"what is not there is not found", func(w *world) {
		ctx := context.Background()
		_, errEvent := w.ledger.Event(ctx, 999)
		_, errSnapshot := w.ledger.Snapshot(ctx, 999)
		_, errHold := w.ledger.Hold(ctx, 999)
		_, errOrder := w.ledger.Order(ctx, 999)
		_, errTicket := w.ledger.Ticket(ctx, 999)
		for i, err := range []error{errEvent, errSnapshot, errHold, errOrder, errTicket} {
			if !errors.Is(err, ledger.ErrNotFound) {
				w.Errorf("reader %d: %v, want ErrNotFound", i, err)
			}
		}
	}},
	{"B2: changes can be read after any version, ascending, so many at a time", func(w *world) {
		ctx := context.Background()
		from := w.snapshot(mainEvent).Version
		var want []ledger.Change
		for seat := range int32(4) {
			want = append(want, w.batch(w.holdSeats(alice, seat)).Changes...)
		}
		w.reopen()
		for _, c := range []struct {
			after int64
			max   int
			want  []ledger.Change
		}{
			{from, 10, want}, {from, 2, want[:2]}, {from + 3, 10, want[3:]}, {from + 4, 10, nil},
		} {
			got, gap, err := w.ledger.ChangesSince(ctx, mainEvent, c.after, c.max)
			if err != nil || gap {
				w.Errorf("after %d: gap %v, %v", c.after, gap, err)
			}
			w.same("the changes", got, c.want)
		}
		w.same("the last version", want[3].Version, w.snapshot(mainEvent).Version)
	}},
	{"B2: a version that the ledger does not have any more is a gap", func(w *world) {
		version := w.snapshot(mainEvent).Version
		for after, want := range map[int64]bool{version: false, version + 1: true, version + 1000: true} {
			changes, gap, err := w.ledger.ChangesSince(context.Background(), mainEvent, after, 10)
			if err != nil || gap != want || len(changes) > 0 {
				w.Errorf("at %d, after %d: gap %v, %d changes, %v", version, after, gap, len(changes), err)
			}
		}
	}},
	{"B2: changes read while others are committed have no gap", func(w *world) {
		ctx := context.Background()
		version := w.snapshot(mainEvent).Version
		const count = 60
		written := make(chan error, 1)
		last := version + 2*count
		go func() {
			var err error
			for range count {
				hold := w.holdSeats(alice, 1)
				for _, c := range []ledger.Command{hold, ledger.Release{Hold: hold.ID, Customer: alice}} {
					if _, e := w.ledger.Apply(ctx, []ledger.Command{c}); e != nil {
						err = errors.Join(err, e)
					}
				}
			}
			written <- err
		}()
		for done := false; !done || version < last; {
			select {
			case err := <-written:
				if done = true; err != nil {
					w.Fatal(err)
				}
			default:
			}
			changes, gap, err := w.ledger.ChangesSince(ctx, mainEvent, version, 100)
			if err != nil || gap {
				w.Fatalf("after %d: gap %v, %v", version, gap, err)
			}
			version += int64(len(changes))
			if done && len(changes) == 0 {
				break
			}
		}
		w.same("the last version", version, last)
	}},
	{"a batch that changes several events tells of each", func(w *world) {
		elsewhere := w.holdPlaces(alice, 0, 2)
		elsewhere.Event = otherEvent
		batch := w.batch(elsewhere, w.holdSeats(bob, 5), w.holdSeats(bob, 2))
		expires := start + ledger.Time(holdTTL)
		for i := range batch.Changes {
			batch.Changes[i].Version = 0
		}
		w.same("the changes", batch.Changes, []ledger.Change{
			{Event: mainEvent, At: start, Seats: []ledger.SeatChange{{Index: 2, State: ledger.Held, Expires: expires}, {Index: 5, State: ledger.Held, Expires: expires}}},
			{Event: otherEvent, At: start, Areas: []ledger.AreaChange{{Area: 0, Free: 4}}},
		})
	}},
	{"a customer's orders, newest first, page by page", func(w *world) {
		ctx := context.Background()
		var ids []id.ID
		for seat := range int32(4) {
			ids = append(ids, w.pending(w.held(alice, seat)).ID)
			w.pending(w.held(bob, seat+4))
		}
		w.given(w.pay(&ledger.Order{ID: ids[0], Hold: w.orderNow(ids[0]).Hold, Amount: 5250, Currency: "EUR"}, "p"))
		page := func(before id.ID, maxCount int) []id.ID {
			orders, err := w.ledger.OrdersOf(ctx, alice, before, maxCount)
			if err != nil {
				w.Fatal(err)
			}
			var got []id.ID
			for _, o := range orders {
				got = append(got, o.ID)
			}
			return got
		}
		w.same("the first page", page(0, 3), []id.ID{ids[3], ids[2], ids[1]})
		w.same("the next page", page(ids[1], 3), []id.ID{ids[0]})
		w.same("the end", page(ids[0], 3), []id.ID(nil))
	}},
	{"A19: pending orders untouched since an instant, oldest first", func(w *world) {
		first := w.pending(w.held(alice, 0))
		w.pass(second)
		next := w.pending(w.held(alice, 1))
		w.paid(alice, 2)
		find := func(before ledger.Time, maxCount int) []id.ID {
			orders, err := w.ledger.PendingOrders(context.Background(), before, maxCount)
			if err != nil {
				w.Fatal(err)
			}
			var got []id.ID
			for _, o := range orders {
				got = append(got, o.ID)
			}
			return got
		}
		w.same("none", find(start, 10), []id.ID(nil))
		w.same("one", find(start+1, 10), []id.ID{first.ID})
		w.same("both", find(start+1001, 10), []id.ID{first.ID, next.ID})
		w.same("so many", find(start+1001, 1), []id.ID{first.ID})
		w.pass(holdTTL)
		w.given(ledger.Sweep{})
		w.same("after Sweep", find(start+1001, 10), []id.ID{first.ID, next.ID})
	}},
	{"the next expiry", func(w *world) {
		next := func() ledger.Time {
			at, err := w.ledger.NextExpiry(context.Background())
			if err != nil {
				w.Fatal(err)
			}
			return at
		}
		w.same("none", next(), ledger.Time(0))
		h := w.held(alice, 0)
		w.pass(second)
		places := w.given(w.holdPlaces(bob, 0, 1)).Hold
		w.same("the first", next(), h.Expires)
		w.given(ledger.Release{Hold: h.ID, Customer: alice})
		w.same("the second", next(), places.Expires)
		w.pass(holdTTL)
		w.given(ledger.Sweep{})
		w.same("none", next(), ledger.Time(0))
	}},
	{"A24: notices are handed out in order for each order, until they are marked", func(w *world) {
		ctx := context.Background()
		a := w.paid(alice, 0)
		b := w.pending(w.held(bob, 1))
		lease := w.lease("relay", "one")
		read := func(maxCount int, skip ...id.ID) []ledger.Notice {
			notices, err := w.ledger.Unpublished(ctx, maxCount, append(skip, mainEvent, otherEvent))
			if err != nil {
				w.Fatal(err)
			}
			for _, n := range notices {
				if !json.Valid(n.Body) || bytes.Contains(n.Body, []byte("@")) || n.At != start {
					w.Errorf("notice %+v with body %s", n, n.Body)
				}
			}
			return notices
		}
		notices := read(10)
		w.same("how many", len(notices), 3)
		w.same("one at a time", read(1), notices[:1])
		for _, n := range read(10, a.ID) {
			w.same("whose", n.Order, b.ID)
		}
		w.same("how many of the other", len(read(10, a.ID)), 1)
		if err := w.ledger.MarkPublished(ctx, lease, notices[:1]); err != nil {
			w.Fatal(err)
		}
		w.same("the rest", read(10), notices[1:])
		w.reopen()
		w.same("the rest, after the program ended", read(10), notices[1:])
		if err := w.ledger.MarkPublished(ctx, lease, notices); err != nil {
			w.Fatal(err)
		}
		if err := w.ledger.MarkPublished(ctx, lease, notices); err != nil {
			w.Fatalf("marking twice: %v", err)
		}
		w.same("the rest", len(read(10)), 0)
		w.pass(hour)
		now := w.clock.Now()
		prune := func(before ledger.Time, maxCount, want int) {
			n, err := w.ledger.PrunePublished(ctx, w.lease("relay", "one"), before, maxCount)
			if err != nil || n != want {
				w.Errorf("pruned %d (%v), want %d", n, err, want)
			}
		}
		prune(start, 10, 0)
		prune(now, 2, 2)
		prune(now, 10, 1)
		prune(now, 10, 0)
	}},
	{"A24: published notices that are kept do not come again, unpublished ones are not pruned", func(w *world) {
		ctx := context.Background()
		o := w.pending(w.held(alice, 0))
		n, err := w.ledger.PrunePublished(ctx, w.lease("relay", "one"), start+ledger.Time(hour), 10)
		if err != nil || n != 0 {
			w.Errorf("pruned %d, %v", n, err)
		}
		w.same("the notices", w.kinds(o.ID), []string{ledger.NoticePending})
	}},
	{"A24, D1: only who holds the lease may mark", func(w *world) {
		ctx := context.Background()
		o := w.pending(w.held(alice, 0))
		notices, err := w.ledger.Unpublished(ctx, 10, []id.ID{mainEvent, otherEvent})
		if err != nil {
			w.Fatal(err)
		}
		fenced := func(what string, l ledger.Lease) {
			if err := w.ledger.MarkPublished(ctx, l, notices); !errors.Is(err, ledger.ErrFenced) {
				w.Errorf("%s: MarkPublished: %v, want ErrFenced", what, err)
			}
			if _, err := w.ledger.PrunePublished(ctx, l, math.MaxInt64, 10); !errors.Is(err, ledger.ErrFenced) {
				w.Errorf("%s: PrunePublished: %v, want ErrFenced", what, err)
			}
		}
		fenced("never held", ledger.Lease{Name: "relay", Holder: "one", Fence: 1, Until: start + 1000})
		one := w.lease("relay", "one")
		if _, ok, err := w.ledger.Acquire(ctx, "relay", "two", minute); err != nil || ok {
			w.Errorf("two took what one holds: %v, %v", ok, err)
		}
		w.lease("sweep", "two") // another lease is another matter
		w.same("renewing keeps the fence", w.lease("relay", "one").Fence, one.Fence)
		w.pass(minute)
		fenced("run out", one)
		two := w.lease("relay", "two")
		if two.Fence <= one.Fence {
			w.Errorf("the new holder's fence is %d, not greater than %d", two.Fence, one.Fence)
		}
		w.reopen()
		fenced("lost to another", one)
		fenced("forged", ledger.Lease{Name: "relay", Holder: "one", Fence: two.Fence + 1, Until: two.Until})
		if err := w.ledger.ReleaseLease(ctx, one); err != nil {
			w.Errorf("giving back what was lost: %v", err)
		}
		if _, ok, err := w.ledger.Acquire(ctx, "relay", "one", minute); err != nil || ok {
			w.Errorf("one took what two holds: %v, %v", ok, err)
		}
		if err := w.ledger.ReleaseLease(ctx, two); err != nil {
			w.Error(err)
		}
		fenced("given back", two)
		if three := w.lease("relay", "one"); three.Fence <= two.Fence {
			w.Errorf("the new holder's fence is %d, not greater than %d", three.Fence, two.Fence)
		}
		w.same("the notices", w.kinds(o.ID), []string{ledger.NoticePending})
	}},
}

// lease acquires a lease for a minute.
func (w *world) lease(name, holder string) ledger.Lease {
	w.Helper()
	l, ok, err := w.ledger.Acquire(context.Background(), name, holder, minute)
	if err != nil || !ok {
		w.Fatalf("the lease %s was not to be had: %v, %v", name, ok, err)
	}
	if l.Name != name || l.Holder != holder || l.Until != w.clock.Now()+ledger.Time(minute) {
		w.Errorf("the lease is %+v", l)
	}
	return l
}
