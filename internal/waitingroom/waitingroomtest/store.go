// Package waitingroomtest holds what tests of a waiting room share: the conformance suite of Stores, and a Log in memory.
//
// The one idea: what a Store promises is written down once, as tests (ExerciseStore), and every adapter must pass them. Start
// reading there.
package waitingroomtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"onsale/internal/id"
	"onsale/internal/waitingroom"
)

// events gives every test events of its own, so that the store may be one that others use too.
var events = struct {
	sync.Mutex
	made *id.Generator
}{}

// ExerciseStore is the contract of a Store as tests. open answers an empty store, or one that others use, whose Close is the
// test's.
func ExerciseStore(t *testing.T, open func(t *testing.T) waitingroom.Store) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, w *world)
	}{
		{"an unknown event", unknown},
		{"numbers come in order, one for each customer", inOrder},
		{"the phases", phases},
		{"C2: no number at or above the limit", limits},
		{"lanes have counters of their own", lanes},
		{"C1: one identity, one number", identities},
		{"who leaves may come again, at the end", leaving},
		{"restoring lowers nothing", restoring},
		{"C12: remembering after a loss", remembering},
		{"C2: the freeze is one atomic step among parallel joins", freezing},
		{"C1: one number for a customer who joins from everywhere at once", everywhere},
		{"C1: one number for an identity that many accounts bring at once", accounts},
		{"events do not touch each other", apart},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newWorld(t, open(t))) })
	}
}

type world struct {
	waitingroom.Store
	event id.ID
	next  id.ID
}

func newWorld(t *testing.T, s waitingroom.Store) *world {
	t.Cleanup(func() { _ = s.Close() })
	return &world{Store: s, event: newEvent(), next: 1 << 40}
}

func newEvent() id.ID {
	events.Lock()
	defer events.Unlock()
	if events.made == nil {
		events.made = id.NewGenerator(1, timeNow, 0, nil)
	}
	return events.made.MustNext(0)
}

func (w *world) customer() id.ID { w.next++; return w.next }

// begin makes the event known, with lanes of which the first limit numbers may be given.
func (w *world) begin(t *testing.T, phase waitingroom.Phase, limit int64, lanes int) {
	t.Helper()
	w.restore(t, phase, slices.Repeat([]waitingroom.LaneState{{Limit: limit}}, lanes)...)
}

func (w *world) restore(t *testing.T, phase waitingroom.Phase, lanes ...waitingroom.LaneState) {
	t.Helper()
	if err := w.Restore(t.Context(), w.event, waitingroom.State{Phase: phase, Lanes: lanes}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) join(ctx context.Context, customer id.ID, lane int, identity waitingroom.Identity) (waitingroom.Joined, error) {
	return w.Join(ctx, waitingroom.Join{Event: w.event, Customer: customer, Lane: lane, Identity: identity})
}

// want joins, and demands the answer.
func (w *world) want(t *testing.T, customer id.ID, lane int, want waitingroom.Joined) {
	t.Helper()
	got, err := w.join(t.Context(), customer, lane, waitingroom.Identity{})
	if err != nil || got != want {
		t.Fatalf("customer %d got %+v, %v; want %+v", customer, got, err, want)
	}
}

func (w *world) refused(t *testing.T, customer id.ID, lane int, identity waitingroom.Identity, want error) {
	t.Helper()
	if got, err := w.join(t.Context(), customer, lane, identity); !errors.Is(err, want) {
		t.Fatalf("customer %d got %+v, %v; want %v", customer, got, err, want)
	}
}

func (w *world) counts(t *testing.T, want ...int64) {
	t.Helper()
	got, err := w.Counts(t.Context(), w.event)
	if err != nil {
		t.Fatal(err)
	}
	sameCounts(t, got, want)
}

func (w *world) freeze(t *testing.T, want ...int64) {
	t.Helper()
	got, err := w.Freeze(t.Context(), w.event)
	if err != nil {
		t.Fatal(err)
	}
	sameCounts(t, got, want)
}

func sameCounts(t *testing.T, got []waitingroom.Count, want []int64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i, c := range got {
		if c.Lane != i || c.Count != want[i] {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

func paper(n uint64) (i waitingroom.Identity) {
	binary.LittleEndian.PutUint64(i[:], n)
	binary.BigEndian.PutUint64(i[8:], n^0xabcdef)
	return i
}

func unknown(t *testing.T, w *world) {
	w.refused(t, w.customer(), 0, waitingroom.Identity{}, waitingroom.ErrUnknown)
	w.refused(t, w.customer(), 0, paper(1), waitingroom.ErrUnknown)
	if _, err := w.Counts(t.Context(), w.event); !errors.Is(err, waitingroom.ErrUnknown) {
		t.Errorf("counts: %v", err)
	}
	if _, err := w.Freeze(t.Context(), w.event); !errors.Is(err, waitingroom.ErrUnknown) {
		t.Errorf("freeze: %v", err)
	}
	if err := w.Leave(t.Context(), w.event, w.customer(), 3); err != nil {
		t.Errorf("leave: %v", err)
	}
	run, err := w.Run(t.Context())
	again, errAgain := w.Run(t.Context())
	if err != nil || errAgain != nil || run != again {
		t.Errorf("run: %q, %v; %q, %v", run, err, again, errAgain)
	}
	w.begin(t, waitingroom.Waiting, 10, 1)
	w.want(t, w.customer(), 0, waitingroom.Joined{Drawn: true, New: true}) // nothing of before has taken a number
}

func inOrder(t *testing.T, w *world) {
	w.begin(t, waitingroom.Waiting, 100, 1)
	var customers []id.ID
	for n := range int64(50) {
		c := w.customer()
		customers = append(customers, c)
		w.want(t, c, 0, waitingroom.Joined{Number: n, Drawn: true, New: true})
	}
	for n, c := range customers {
		w.want(t, c, 0, waitingroom.Joined{Number: int64(n), Drawn: true})
	}
	w.counts(t, 50)
}

func phases(t *testing.T, w *world) {
	w.begin(t, waitingroom.Closed, 100, 1)
	first, second, third := w.customer(), w.customer(), w.customer()
	w.refused(t, first, 0, waitingroom.Identity{}, waitingroom.ErrClosed)
	w.restore(t, waitingroom.Waiting)
	w.want(t, first, 0, waitingroom.Joined{Drawn: true, New: true})
	w.freeze(t, 1)
	w.want(t, second, 0, waitingroom.Joined{Number: 1, New: true})
	w.want(t, first, 0, waitingroom.Joined{Drawn: true})
	w.freeze(t, 1) // again: what counts is the first
	w.counts(t, 2)
	w.restore(t, waitingroom.Ended)
	w.refused(t, third, 0, waitingroom.Identity{}, waitingroom.ErrClosed)
	w.want(t, second, 0, waitingroom.Joined{Number: 1})
	w.restore(t, waitingroom.Waiting)
	w.refused(t, third, 0, waitingroom.Identity{}, waitingroom.ErrClosed)
}

func limits(t *testing.T, w *world) {
	w.begin(t, waitingroom.Waiting, 2, 1)
	a, b, c := w.customer(), w.customer(), w.customer()
	w.want(t, a, 0, waitingroom.Joined{Drawn: true, New: true})
	w.want(t, b, 0, waitingroom.Joined{Number: 1, Drawn: true, New: true})
	for range 3 {
		w.refused(t, c, 0, paper(7), waitingroom.ErrLimit)
	}
	w.want(t, a, 0, waitingroom.Joined{Drawn: true})
	w.counts(t, 2) // a refused join takes no number
	w.restore(t, waitingroom.Waiting, waitingroom.LaneState{Limit: 3})
	w.want(t, c, 0, waitingroom.Joined{Number: 2, Drawn: true, New: true})
	w.refused(t, w.customer(), 0, paper(7), waitingroom.ErrLimit) // nor did it take the identity
}

func lanes(t *testing.T, w *world) {
	w.begin(t, waitingroom.Waiting, 100, 2)
	a, b, c := w.customer(), w.customer(), w.customer()
	w.want(t, a, 0, waitingroom.Joined{Drawn: true, New: true})
	w.want(t, b, 1, waitingroom.Joined{Lane: 1, Drawn: true, New: true})
	w.want(t, b, 0, waitingroom.Joined{Lane: 1, Drawn: true}) // whatever lane is asked for
	w.want(t, c, 1, waitingroom.Joined{Lane: 1, Number: 1, Drawn: true, New: true})
	if got, err := w.join(t.Context(), w.customer(), 2, waitingroom.Identity{}); err == nil {
		t.Errorf("a lane that is not there gave %+v", got)
	}
	w.freeze(t, 1, 2)
	// A lane that a later rule adds comes behind.
	w.restore(t, waitingroom.Tail, waitingroom.LaneState{}, waitingroom.LaneState{}, waitingroom.LaneState{Limit: 5})
	w.want(t, w.customer(), 2, waitingroom.Joined{Lane: 2, New: true})
	w.counts(t, 1, 2, 1)
}

func identities(t *testing.T, w *world) {
	w.begin(t, waitingroom.Waiting, 100, 1)
	a, b, c := w.customer(), w.customer(), w.customer()
	if got, err := w.join(t.Context(), a, 0, paper(1)); err != nil || got.Number != 0 {
		t.Fatal(got, err)
	}
	w.refused(t, b, 0, paper(1), waitingroom.ErrIdentityTaken)
	if got, err := w.join(t.Context(), a, 0, paper(1)); err != nil || got.Number != 0 || got.New {
		t.Fatal(got, err)
	}
	w.counts(t, 1)
	if got, err := w.join(t.Context(), b, 0, paper(2)); err != nil || got.Number != 1 {
		t.Fatal(got, err)
	}
	// Without an identity nobody is looked for, and who has a number keeps it whatever they bring.
	w.want(t, c, 0, waitingroom.Joined{Number: 2, Drawn: true, New: true})
	if got, err := w.join(t.Context(), c, 0, paper(1)); err != nil || got.Number != 2 {
		t.Fatal(got, err)
	}
	w.freeze(t, 3)
	w.refused(t, w.customer(), 0, paper(2), waitingroom.ErrIdentityTaken)
}

func leaving(t *testing.T, w *world) {
	w.begin(t, waitingroom.Waiting, 100, 1)
	a, b := w.customer(), w.customer()
	if _, err := w.join(t.Context(), a, 0, paper(1)); err != nil {
		t.Fatal(err)
	}
	leave := func(customer id.ID, number int64) {
		t.Helper()
		if err := w.Leave(t.Context(), w.event, customer, number); err != nil {
			t.Fatal(err)
		}
	}
	leave(a, 5) // not their number
	w.want(t, a, 0, waitingroom.Joined{Drawn: true})
	leave(b, 0)
	leave(a, 0)
	leave(a, 0)
	if got, err := w.join(t.Context(), b, 0, paper(1)); err != nil || got.Number != 1 || !got.New {
		t.Fatal(got, err)
	}
	w.refused(t, a, 0, paper(1), waitingroom.ErrIdentityTaken)
	w.freeze(t, 2)
	w.want(t, a, 0, waitingroom.Joined{Number: 2, New: true})
	leave(a, 0) // a late message about the number of before
	w.want(t, a, 0, waitingroom.Joined{Number: 2})
}

func restoring(t *testing.T, w *world) {
	w.begin(t, waitingroom.Waiting, 10, 2)
	for range 5 {
		if _, err := w.join(t.Context(), w.customer(), 0, waitingroom.Identity{}); err != nil {
			t.Fatal(err)
		}
	}
	w.restore(t, waitingroom.Closed, waitingroom.LaneState{Next: 3, Limit: 4}, waitingroom.LaneState{Next: 7, Limit: 9})
	w.counts(t, 5, 7)
	w.want(t, w.customer(), 0, waitingroom.Joined{Number: 5, Drawn: true, New: true})
	w.want(t, w.customer(), 1, waitingroom.Joined{Lane: 1, Number: 7, Drawn: true, New: true})
	w.restore(t, waitingroom.Tail, waitingroom.LaneState{Next: 10, Limit: 20})
	w.want(t, w.customer(), 0, waitingroom.Joined{Number: 10, New: true})
}

func remembering(t *testing.T, w *world) {
	a, b, c, d := w.customer(), w.customer(), w.customer(), w.customer()
	record := func(customer id.ID, lane int, number int64, drawn, left bool, identity waitingroom.Identity) waitingroom.Record {
		return waitingroom.Record{Event: w.event, Customer: customer, Lane: lane, Number: number, Drawn: drawn, Left: left, Identity: identity}
	}
	remember := func(records ...waitingroom.Record) {
		t.Helper()
		if err := w.Remember(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	remember(record(a, 0, 4, true, false, paper(1)), record(b, 1, 2, true, false, waitingroom.Identity{}),
		record(c, 0, 1, true, false, paper(3)), record(c, 0, 1, true, true, paper(3)))
	w.refused(t, d, 0, waitingroom.Identity{}, waitingroom.ErrUnknown)
	w.restore(t, waitingroom.Tail, waitingroom.LaneState{Next: 50, Limit: 100}, waitingroom.LaneState{Next: 60, Limit: 100})
	w.want(t, a, 0, waitingroom.Joined{Number: 4, Drawn: true})
	w.want(t, b, 0, waitingroom.Joined{Lane: 1, Number: 2, Drawn: true})
	w.refused(t, d, 0, paper(1), waitingroom.ErrIdentityTaken)
	w.counts(t, 50, 60)
	if got, err := w.join(t.Context(), c, 0, paper(3)); err != nil || got.Number != 50 {
		t.Fatal(got, err)
	}
	remember(record(a, 0, 4, true, true, paper(1)), record(a, 0, 20, false, false, paper(1)), record(b, 1, 1, true, true, waitingroom.Identity{}))
	remember(record(a, 0, 4, true, true, paper(1))) // late and twice: the later number stays
	w.want(t, a, 0, waitingroom.Joined{Number: 20})
	w.want(t, b, 0, waitingroom.Joined{Lane: 1, Number: 2, Drawn: true})
	w.counts(t, 51, 60)
	remember()
}

// parallel is how many do the same at once.
const parallel = 16

func freezing(t *testing.T, w *world) {
	const each = 200
	w.begin(t, waitingroom.Waiting, parallel*each, 2)
	w.next += parallel * each
	first := w.next - parallel*each
	var all sync.WaitGroup
	joined := make([][]waitingroom.Joined, parallel)
	frozen := make([][]waitingroom.Count, 3)
	faults := make([]error, parallel+len(frozen))
	half := make(chan struct{})
	for i := range parallel {
		all.Go(func() {
			for n := range each {
				if i == 0 && n == each/2 {
					close(half)
				}
				got, err := w.join(context.Background(), first+id.ID(i*each+n), n%2, waitingroom.Identity{})
				if err != nil {
					faults[i] = err
					return
				}
				joined[i] = append(joined[i], got)
			}
		})
	}
	for i := range frozen {
		all.Go(func() {
			<-half
			frozen[i], faults[parallel+i] = w.Freeze(context.Background(), w.event)
		})
	}
	all.Wait()
	if err := errors.Join(faults...); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, of := range joined {
		for _, j := range of {
			n := frozen[0][j.Lane].Count
			if j.Drawn != (j.Number < n) {
				t.Fatalf("%+v, but N is %d", j, n)
			}
			if key := fmt.Sprint(j.Lane, j.Number); seen[key] {
				t.Fatalf("%+v was given twice", j)
			} else {
				seen[key] = true
			}
		}
	}
	for _, f := range frozen[1:] {
		if !slices.Equal(f, frozen[0]) {
			t.Fatalf("frozen as %v and as %v", frozen[0], f)
		}
	}
	w.counts(t, parallel*each/2, parallel*each/2)
}

func everywhere(t *testing.T, w *world) {
	w.begin(t, waitingroom.Waiting, 1_000, 2)
	for range 50 {
		customer := w.customer()
		answers := make([]waitingroom.Joined, parallel)
		faults := make([]error, parallel)
		var all sync.WaitGroup
		for i := range parallel {
			all.Go(func() {
				var identity waitingroom.Identity
				if i%2 == 1 {
					identity = paper(uint64(customer))
				}
				answers[i], faults[i] = w.join(context.Background(), customer, i%2, identity)
			})
		}
		all.Wait()
		if err := errors.Join(faults...); err != nil {
			t.Fatal(err)
		}
		fresh := 0
		for _, a := range answers {
			if a.New {
				fresh++
			}
			if a.Number != answers[0].Number || a.Lane != answers[0].Lane {
				t.Fatalf("one customer got %+v and %+v", answers[0], a)
			}
		}
		if fresh != 1 {
			t.Fatalf("%d of the answers were new", fresh)
		}
	}
}

func accounts(t *testing.T, w *world) {
	w.begin(t, waitingroom.Waiting, 1_000, 1)
	for round := range uint64(30) {
		faults := make([]error, parallel)
		var all sync.WaitGroup
		for i := range parallel {
			customer := w.customer()
			all.Go(func() { _, faults[i] = w.join(context.Background(), customer, 0, paper(round+1)) })
		}
		all.Wait()
		in := 0
		for _, err := range faults {
			switch {
			case err == nil:
				in++
			case !errors.Is(err, waitingroom.ErrIdentityTaken):
				t.Fatal(err)
			}
		}
		if in != 1 {
			t.Fatalf("%d accounts with one identity have a number", in)
		}
	}
	w.counts(t, 30)
}

func apart(t *testing.T, w *world) {
	w.begin(t, waitingroom.Waiting, 10, 1)
	a := w.customer()
	if _, err := w.join(t.Context(), a, 0, paper(1)); err != nil {
		t.Fatal(err)
	}
	w.freeze(t, 1)
	other := &world{Store: w.Store, event: newEvent(), next: w.next}
	other.begin(t, waitingroom.Waiting, 10, 1)
	if got, err := other.join(t.Context(), other.customer(), 0, paper(1)); err != nil || !got.Drawn || got.Number != 0 {
		t.Fatal(got, err)
	}
	other.want(t, a, 0, waitingroom.Joined{Number: 1, Drawn: true, New: true})
	other.counts(t, 2)
	w.counts(t, 1)
}
