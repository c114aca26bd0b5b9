package waitingroomtest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/waitingroom"
)

// Logs are handles on one storage of joins, which may be one that others use too.
type Logs struct {
	// Open opens a handle. The test closes it.
	Open func(t *testing.T) waitingroom.Log
	// Shared says that several may be open at once, as those of two nodes are.
	Shared bool
}

// ExerciseLog is the contract of a Log as tests.
func ExerciseLog(t *testing.T, storage func(t *testing.T) Logs) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, w *logWorld)
	}{
		{"an empty log", logEmpty},
		{"what is appended is there, whole", logWhole},
		{"a customer has one number of an event", logOneNumber},
		{"a number has one customer", logOneCustomer},
		{"records count in the order given", logInOrder},
		{"who leaves is gone, and may come again with another number", logLeaving},
		{"a sealed list stays what it is", logSealing},
		{"nonsense is refused", logNonsense},
		{"parallel joins: one number each, and no two answers", logParallel},
		{"C3: no acknowledged drawn join is missing in the sealed list", logSealingUnderLoad},
		{"random histories are answered as the plain log does", logRandom},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &logWorld{logs: storage(t), event: newEvent()}
			w.log = w.open(t)
			c.run(t, w)
		})
	}
}

type logWorld struct {
	logs  Logs
	log   waitingroom.Log
	event id.ID
}

func (w *logWorld) open(t *testing.T) waitingroom.Log {
	l := w.logs.Open(t)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// again closes the log and opens it, as a restart does.
func (w *logWorld) again(t *testing.T) {
	t.Helper()
	if err := w.log.Close(); err != nil {
		t.Fatal(err)
	}
	w.log = w.open(t)
}

// record is a drawn join with something in every field.
func (w *logWorld) record(customer id.ID, lane int, number int64) waitingroom.Record {
	r := waitingroom.Record{Event: w.event, Customer: customer, Lane: lane, Number: number, At: 1_800_000_000_000 + number, Drawn: true,
		Entry: [16]byte{1, byte(customer), 255, 0}}
	if customer%2 == 0 {
		r.Identity = waitingroom.Identity{9, byte(customer), 0, 7}
	}
	return r
}

func (w *logWorld) tail(customer id.ID, lane int, number int64) waitingroom.Record {
	r := w.record(customer, lane, number)
	r.Drawn = false
	return r
}

func (w *logWorld) left(r waitingroom.Record) waitingroom.Record {
	r.Left, r.At = true, r.At+1
	return r
}

// append appends, and answers with what became of each.
func (w *logWorld) append(t *testing.T, records ...waitingroom.Record) []waitingroom.Appended {
	t.Helper()
	asked := slices.Clone(records)
	answers, err := w.log.Append(t.Context(), records)
	if err != nil {
		t.Fatal(err)
	}
	if len(answers) != len(asked) || !slices.Equal(records, asked) {
		t.Fatalf("%d records were answered by %d, or changed", len(asked), len(answers))
	}
	return answers
}

// appended appends and expects each to be the record that counts.
func (w *logWorld) appended(t *testing.T, records ...waitingroom.Record) {
	t.Helper()
	for i, a := range w.append(t, records...) {
		if a.Err != nil || a.Record != records[i] {
			t.Fatalf("record %d, %+v, is answered with %+v, %v", i, records[i], a.Record, a.Err)
		}
	}
}

func (w *logWorld) list(t *testing.T) []waitingroom.Record { t.Helper(); return w.replay(t, true) }

func (w *logWorld) replay(t *testing.T, sorted bool) (all []waitingroom.Record) {
	t.Helper()
	err := w.log.Replay(t.Context(), w.event, sorted, func(r waitingroom.Record) error {
		all = append(all, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// present is who has which number, as an unsorted replay leaves it.
func (w *logWorld) present(t *testing.T) map[id.ID]waitingroom.Record {
	t.Helper()
	now := map[id.ID]waitingroom.Record{}
	for _, r := range w.replay(t, false) {
		if now[r.Customer] = r; r.Left {
			delete(now, r.Customer)
		}
	}
	return now
}

func (w *logWorld) wantOf(t *testing.T, customer id.ID, want waitingroom.Record, wantOK bool) {
	t.Helper()
	if r, ok, err := w.log.Of(t.Context(), w.event, customer); err != nil || ok != wantOK || wantOK && r != want {
		t.Fatalf("customer %d: %+v, %v, %v; want %+v, %v", customer, r, ok, err, want, wantOK)
	}
	if r, ok := w.present(t)[customer]; ok != wantOK || wantOK && r != want {
		t.Fatalf("customer %d by replay: %+v, %v; want %+v, %v", customer, r, ok, want, wantOK)
	}
}

func (w *logWorld) wantNext(t *testing.T, want ...waitingroom.Count) {
	t.Helper()
	if got, err := w.log.Next(t.Context(), w.event); err != nil || !slices.Equal(got, want) {
		t.Fatalf("next numbers are %v, %v; want %v", got, err, want)
	}
}

func wantList(t *testing.T, got []waitingroom.Record, want ...waitingroom.Record) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("the list is\n%+v, want\n%+v", got, want)
	}
}

func logEmpty(t *testing.T, w *logWorld) {
	w.wantOf(t, 1, waitingroom.Record{}, false)
	w.wantNext(t)
	wantList(t, w.list(t))
	if answers, err := w.log.Append(t.Context(), nil); err != nil || len(answers) != 0 {
		t.Errorf("nothing appended: %v, %v", answers, err)
	}
	for range 2 {
		if err := w.log.Seal(t.Context(), w.event); err != nil {
			t.Fatal(err)
		}
	}
	wantList(t, w.list(t))
	w.wantNext(t)
}

func logWhole(t *testing.T, w *logWorld) {
	a, b, c := w.record(10, 1, 3), w.record(11, 0, 1<<39), w.tail(1<<62, 1, 2)
	d := w.record(12, 0, 7)
	other := w.record(10, 1, 3) // the same customer and number elsewhere
	other.Event = newEvent()
	w.appended(t, a, b, other, c, d)
	for range 2 {
		for _, r := range []waitingroom.Record{a, b, c, d} {
			w.wantOf(t, r.Customer, r, true)
		}
		w.wantOf(t, 13, waitingroom.Record{}, false)
		w.wantNext(t, waitingroom.Count{Lane: 0, Count: 1<<39 + 1}, waitingroom.Count{Lane: 1, Count: 4})
		wantList(t, w.list(t), d, b, a)
		if n := len(w.replay(t, false)); n != 4 {
			t.Errorf("%d records of the event", n)
		}
		if r, ok, err := w.log.Of(t.Context(), other.Event, 10); err != nil || !ok || r != other {
			t.Errorf("the other event: %+v, %v, %v", r, ok, err)
		}
		w.again(t)
	}
	stop := errors.New("stop")
	for _, sorted := range []bool{true, false} {
		if err := w.log.Replay(t.Context(), w.event, sorted, func(waitingroom.Record) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("each's error: %v", err)
		}
	}
}

func logOneNumber(t *testing.T, w *logWorld) {
	first := w.record(10, 0, 5)
	w.appended(t, first)
	for range 2 {
		later := first
		later.At += 9999
		for _, r := range []waitingroom.Record{first, later, w.record(10, 0, 6), w.record(10, 1, 5), w.tail(10, 0, 9)} {
			if a := w.append(t, r)[0]; a.Err != nil || a.Record != first {
				t.Errorf("%+v is answered with %+v, %v", r, a.Record, a.Err)
			}
		}
		w.wantNext(t, waitingroom.Count{Lane: 0, Count: 6})
		wantList(t, w.list(t), first)
		w.again(t)
	}
	w.appended(t, w.record(11, 0, 6), w.record(12, 1, 5)) // what was refused is nobody's
}

func logOneCustomer(t *testing.T, w *logWorld) {
	w.appended(t, w.record(10, 0, 5))
	for range 2 {
		answers := w.append(t, w.record(11, 0, 4), w.record(12, 0, 5), w.record(13, 0, 6))
		if answers[0].Err != nil || answers[2].Err != nil || !errors.Is(answers[1].Err, waitingroom.ErrNumberTaken) {
			t.Errorf("%+v", answers)
		}
		w.wantOf(t, 12, waitingroom.Record{}, false)
		wantList(t, w.list(t), w.record(11, 0, 4), w.record(10, 0, 5), w.record(13, 0, 6))
		w.again(t)
	}
}

func logInOrder(t *testing.T, w *logWorld) {
	a, b := w.record(10, 0, 1), w.record(10, 0, 2)
	c, d := w.record(11, 0, 3), w.record(12, 0, 3)
	e := w.record(13, 0, 4)
	f := w.record(13, 0, 5)
	answers := w.append(t, a, b, c, d, e, w.left(e), f, f)
	for i, want := range []waitingroom.Appended{{Record: a}, {Record: a}, {Record: c}, {Err: waitingroom.ErrNumberTaken}, {Record: e}, {Record: w.left(e)}, {Record: f}, {Record: f}} {
		if !errors.Is(answers[i].Err, want.Err) || want.Err == nil && (answers[i].Err != nil || answers[i].Record != want.Record) {
			t.Errorf("record %d: %+v, want %+v", i, answers[i], want)
		}
	}
	wantList(t, w.list(t), a, c, f)
	w.again(t)
	wantList(t, w.list(t), a, c, f)
}

func logLeaving(t *testing.T, w *logWorld) {
	first, other := w.record(10, 0, 5), w.record(11, 0, 6)
	w.appended(t, first, other)
	for _, r := range []waitingroom.Record{w.record(10, 0, 6), w.record(10, 1, 5), w.record(99, 0, 5), w.record(11, 0, 5)} { // not theirs, or not there
		if a := w.append(t, w.left(r))[0]; a.Err != nil {
			t.Errorf("leaving %+v: %v", r, a.Err)
		}
	}
	w.wantOf(t, 10, first, true)
	w.wantOf(t, 11, other, true)
	w.appended(t, w.left(first))
	for range 2 {
		w.wantOf(t, 10, waitingroom.Record{}, false)
		w.append(t, w.left(first))                                          // said twice
		for _, r := range []waitingroom.Record{first, w.record(12, 0, 5)} { // a late copy of the join; somebody else
			if a := w.append(t, r)[0]; !errors.Is(a.Err, waitingroom.ErrNumberTaken) {
				t.Errorf("a number that was given up is given again: %+v", a)
			}
		}
		w.again(t)
	}
	second := w.record(10, 1, 0) // in another lane, which comes before the first by any order of numbers
	w.appended(t, second)
	w.append(t, w.left(first)) // late
	w.wantOf(t, 10, second, true)
	third := w.record(10, 0, 9)
	w.appended(t, w.left(second), third)
	w.again(t)
	w.wantOf(t, 10, third, true)
	w.wantNext(t, waitingroom.Count{Lane: 0, Count: 10}, waitingroom.Count{Lane: 1, Count: 1})
	wantList(t, w.list(t), other, third)
}

func logSealing(t *testing.T, w *logWorld) {
	a, b, gone := w.record(10, 0, 1), w.record(11, 0, 2), w.record(12, 0, 3)
	early := w.tail(13, 0, 4)
	w.appended(t, b, a, gone, early, w.left(gone))
	want := []waitingroom.Record{a, b}
	wantList(t, w.list(t), want...)
	if err := w.log.Seal(t.Context(), w.event); err != nil {
		t.Fatal(err)
	}
	late := w.record(14, 0, 5)
	for range 2 {
		if x := w.append(t, late)[0]; !errors.Is(x.Err, waitingroom.ErrSealed) {
			t.Errorf("a drawn join comes after the seal: %+v", x)
		}
		w.appended(t, a) // it was in time
		if x := w.append(t, w.record(13, 0, 9))[0]; x.Err != nil || x.Record != early {
			t.Errorf("who is in the line already: %+v", x)
		}
		if err := w.log.Seal(t.Context(), w.event); err != nil {
			t.Fatal(err)
		}
		wantList(t, w.list(t), want...)
		w.again(t)
	}
	behind := w.tail(14, 0, 6)
	w.appended(t, behind, w.left(b)) // b stays in the list
	for range 2 {
		wantList(t, w.list(t), want...)
		w.wantOf(t, 11, waitingroom.Record{}, false)
		w.wantOf(t, 14, behind, true)
		w.again(t)
	}
	if x := w.append(t, w.record(11, 0, 8))[0]; !errors.Is(x.Err, waitingroom.ErrSealed) {
		t.Errorf("who left comes back into the draw: %+v", x)
	}
	w.appended(t, w.tail(11, 0, 8))
	wantList(t, w.list(t), want...)
}

func logNonsense(t *testing.T, w *logWorld) {
	good := w.record(10, 0, 1)
	for name, change := range map[string]func(r *waitingroom.Record){
		"no event": func(r *waitingroom.Record) { r.Event = 0 }, "no customer": func(r *waitingroom.Record) { r.Customer = 0 },
		"negative number": func(r *waitingroom.Record) { r.Number = -1 }, "huge number": func(r *waitingroom.Record) { r.Number = 1 << 40 },
		"negative lane": func(r *waitingroom.Record) { r.Lane = -1 }, "huge lane": func(r *waitingroom.Record) { r.Lane = 1 << 20 },
	} {
		r := good
		change(&r)
		var f *fault.Error
		if _, err := w.log.Append(t.Context(), []waitingroom.Record{good, r}); !errors.As(err, &f) || f.Code != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.wantOf(t, 10, waitingroom.Record{}, false) // not the good one beside it, either
}

// handles are several nodes' handles where that is possible.
func (w *logWorld) handles(t *testing.T, n int) []waitingroom.Log {
	all := []waitingroom.Log{w.log}
	for len(all) < n {
		if w.logs.Shared {
			all = append(all, w.open(t))
		} else {
			all = append(all, w.log)
		}
	}
	return all
}

func logParallel(t *testing.T, w *logWorld) {
	const nodes, rounds, batch, customers, numbers = 4, 12, 25, 120, 200
	type answer struct {
		customer id.ID
		lane     int
		number   int64
	}
	var mu sync.Mutex
	given := map[id.ID]answer{}
	var all sync.WaitGroup
	for node, l := range w.handles(t, nodes) {
		all.Go(func() {
			for round := range rounds {
				var records []waitingroom.Record
				for i := range batch {
					k := node*7919 + round*104729 + i*31
					records = append(records, w.record(id.ID(1+k%customers), k/3%2, int64(k/7%numbers)))
				}
				answers, err := l.Append(t.Context(), records)
				if err != nil {
					t.Errorf("node %d: %v", node, err)
					return
				}
				mu.Lock()
				for i, a := range answers {
					if a.Err != nil {
						if !errors.Is(a.Err, waitingroom.ErrNumberTaken) {
							t.Errorf("node %d: %v", node, a.Err)
						}
						continue
					}
					got := answer{records[i].Customer, a.Record.Lane, a.Record.Number}
					if was, twice := given[got.customer]; twice && was != got {
						t.Errorf("customer %d has %+v and %+v", got.customer, was, got)
					}
					given[got.customer] = got
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	w.again(t)
	owners := map[number]id.ID{}
	for customer, r := range w.present(t) {
		if other, twice := owners[number{r.Lane, r.Number}]; twice {
			t.Errorf("number %d of lane %d is %d's and %d's", r.Number, r.Lane, customer, other)
		}
		owners[number{r.Lane, r.Number}] = customer
		if got := given[customer]; got.lane != r.Lane || got.number != r.Number {
			t.Errorf("customer %d was told %+v and has %+v", customer, got, r)
		}
	}
	if len(owners) != len(given) || len(given) == 0 {
		t.Errorf("%d have a number, %d were told so", len(owners), len(given))
	}
}

func logSealingUnderLoad(t *testing.T, w *logWorld) {
	const nodes, rounds = 4, 20
	var mu sync.Mutex
	acknowledged := map[int64]bool{}
	half := make(chan struct{})
	var once sync.Once
	var all sync.WaitGroup
	handles := w.handles(t, nodes+1)
	for node, l := range handles[1:] {
		all.Go(func() {
			for round := range rounds {
				n := int64(round*nodes + node)
				answers, err := l.Append(t.Context(), []waitingroom.Record{w.record(id.ID(n+1), 0, 2*n), w.record(id.ID(n+1000), 0, 2*n+1)})
				if err != nil {
					t.Errorf("node %d: %v", node, err)
					return
				}
				mu.Lock()
				for _, a := range answers {
					if a.Err == nil {
						acknowledged[a.Record.Number] = true
					} else if !errors.Is(a.Err, waitingroom.ErrSealed) {
						t.Errorf("node %d: %v", node, a.Err)
					}
				}
				mu.Unlock()
				if round == rounds/3 {
					once.Do(func() { close(half) })
				}
			}
		})
	}
	<-half
	if err := handles[0].Seal(t.Context(), w.event); err != nil {
		t.Fatal(err)
	}
	first := w.list(t) // while others still append
	all.Wait()
	wantList(t, w.list(t), first...)
	in := map[int64]bool{}
	for _, r := range first {
		in[r.Number] = true
	}
	for number := range acknowledged {
		if !in[number] {
			t.Errorf("number %d was acknowledged and is not in the list", number)
		}
	}
	if len(in) != len(acknowledged) {
		t.Errorf("%d in the list, %d acknowledged", len(in), len(acknowledged))
	}
}

func logRandom(t *testing.T, w *logWorld) {
	rapid.Check(t, func(rt *rapid.T) {
		w.event = newEvent()
		plain := &Log{}
		for step := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			if rapid.IntRange(0, 11).Draw(rt, "seal") == 0 {
				if err := errors.Join(w.log.Seal(t.Context(), w.event), plain.Seal(t.Context(), w.event)); err != nil {
					rt.Fatal(err)
				}
			}
			var records []waitingroom.Record
			for range rapid.IntRange(1, 6).Draw(rt, "records") {
				r := w.record(id.ID(rapid.IntRange(1, 5).Draw(rt, "customer")), rapid.IntRange(0, 1).Draw(rt, "lane"), rapid.Int64Range(0, 6).Draw(rt, "number"))
				r.At, r.Drawn = int64(step), rapid.Bool().Draw(rt, "drawn")
				r.Left = rapid.IntRange(0, 3).Draw(rt, "left") == 0
				if has, ok, _ := plain.Of(t.Context(), w.event, r.Customer); ok && r.Left && rapid.Bool().Draw(rt, "really") {
					r.Lane, r.Number, r.Drawn = has.Lane, has.Number, has.Drawn
				}
				records = append(records, r)
			}
			want, _ := plain.Append(t.Context(), records)
			got, err := w.log.Append(t.Context(), records)
			if err != nil {
				rt.Fatal(err)
			}
			for i := range want {
				if !errors.Is(got[i].Err, want[i].Err) || (want[i].Err == nil && (got[i].Err != nil || !records[i].Left && got[i].Record != want[i].Record)) {
					rt.Fatalf("record %d, %+v: %+v, %v; want %+v, %v", i, records[i], got[i].Record, got[i].Err, want[i].Record, want[i].Err)
				}
			}
		}
		w.sameAs(rt, t, plain)
	})
}

// sameAs compares everything that can be read.
func (w *logWorld) sameAs(rt *rapid.T, t *testing.T, plain *Log) {
	p := &logWorld{log: plain, event: w.event}
	if got, want := w.list(t), p.list(t); !slices.Equal(got, want) {
		rt.Fatalf("the list is\n%+v, want\n%+v", got, want)
	}
	got, want := w.present(t), p.present(t)
	if fmt.Sprint(got) != fmt.Sprint(want) { // maps are printed in order
		rt.Fatalf("present are\n%v, want\n%v", got, want)
	}
	gotNext, err := w.log.Next(t.Context(), w.event)
	wantNext, _ := plain.Next(t.Context(), w.event)
	if err != nil || !slices.Equal(gotNext, wantNext) {
		rt.Fatalf("next %v, %v; want %v", gotNext, err, wantNext)
	}
	for customer := id.ID(1); customer <= 5; customer++ {
		r, ok, err := w.log.Of(t.Context(), w.event, customer)
		if has, in := want[customer]; err != nil || ok != in || in && r != has {
			rt.Fatalf("customer %d: %+v, %v, %v; want %+v", customer, r, ok, err, has)
		}
	}
	ends := func(records []waitingroom.Record) (all []waitingroom.Record) {
		for _, r := range records {
			if r.Left {
				all = append(all, r)
			}
		}
		slices.SortFunc(all, func(a, b waitingroom.Record) int {
			return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Number, b.Number))
		})
		return all
	}
	gotEnds, wantEnds := ends(w.replay(t, false)), ends(p.replay(t, false))
	if len(gotEnds) != len(wantEnds) {
		rt.Fatalf("ends are\n%+v, want\n%+v", gotEnds, wantEnds)
	}
}
