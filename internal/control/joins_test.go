package control

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/sqlmigrate"
	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/waitingroomtest"
)

func TestJoins(t *testing.T) {
	for dialect, fresh := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			waitingroomtest.ExerciseLog(t, func(t *testing.T) waitingroomtest.Logs {
				open := fresh(t)
				return waitingroomtest.Logs{Open: func(*testing.T) waitingroom.Log { return open().Joins() }, Shared: true}
			})
		})
	}
}

func joinsOf(event id.ID, customers ...int) (all []waitingroom.Record) {
	for _, c := range customers {
		all = append(all, waitingroom.Record{Event: event, Customer: id.ID(c), Number: int64(c), At: 5, Drawn: true})
	}
	return all
}

// More than one statement takes.
func TestManyJoinsAtOnce(t *testing.T) {
	eachDialect(t, func(t *testing.T, open func() *DB) {
		l := open().Joins()
		const count = 2*joinRows + 7
		var records []waitingroom.Record
		for i := range count {
			records = append(records, joinsOf(id.ID(70+i%3), i+1)...)
		}
		answers, err := l.Append(t.Context(), records)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range answers {
			if a.Err != nil || a.Record != records[i] {
				t.Fatalf("record %d: %+v", i, a)
			}
		}
		n := 0
		for event := range id.ID(3) {
			if err := l.Replay(t.Context(), 70+event, true, func(waitingroom.Record) error { n++; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if n != count {
			t.Errorf("%d of %d joins are there", n, count)
		}
		var f *fault.Error
		if _, err := l.Append(t.Context(), make([]waitingroom.Record, JoinsMax+1)); !errors.As(err, &f) || f.Code != fault.Invalid {
			t.Errorf("a huge call: %v", err)
		}
	})
}

// Two nodes append the same people in opposite orders, for two events: whoever is in the other's way waits, or tries again.
func TestJoinsOfNodesCrossing(t *testing.T) {
	eachDialect(t, func(t *testing.T, open func() *DB) {
		const rounds, people = 20, 12
		nodes := []waitingroom.Log{open().Joins(), open().Joins()}
		for round := range rounds {
			var all sync.WaitGroup
			told := make([][]waitingroom.Appended, len(nodes))
			for node, l := range nodes {
				all.Go(func() {
					var records []waitingroom.Record
					for i := range people {
						event := id.ID(100 + 2*round + (i+node)%2)
						customer := 1 + i
						if node == 1 {
							customer = people - i
						}
						r := joinsOf(event, customer)[0]
						r.Number = int64((customer*7 + node) % people) // now and then somebody else's
						records = append(records, r)
					}
					answers, err := l.Append(t.Context(), records)
					if err != nil {
						t.Errorf("node %d: %v", node, err)
					}
					told[node] = answers
				})
			}
			all.Wait()
			has := map[string]int64{}
			for _, answers := range told {
				for _, a := range answers {
					key := fmt.Sprint(a.Record.Event, " ", a.Record.Customer)
					if was, twice := has[key]; a.Err == nil && twice && was != a.Record.Number {
						t.Errorf("%s has %d and %d", key, was, a.Record.Number)
					} else if a.Err == nil {
						has[key] = a.Record.Number
					}
				}
			}
		}
	})
}

// Without its unique key a number has two owners: what the suite relies on is the database, not the order of statements.
func TestJoinsNeedTheirKey(t *testing.T) {
	open := dialects[sqlmigrate.SQLite](t)
	d := open()
	if err := d.exec(t.Context(), `DROP INDEX joins_present`); err != nil {
		t.Fatal(err)
	}
	l := d.Joins()
	first := joinsOf(7, 1)[0]
	second := first
	second.Number = 2
	for _, r := range []waitingroom.Record{first, second} {
		if _, err := l.Append(t.Context(), []waitingroom.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	if err := l.Replay(t.Context(), 7, true, func(waitingroom.Record) error { n++; return nil }); err != nil || n != 2 {
		t.Errorf("%d numbers, %v: the key is not what decides", n, err)
	}
}

// What the database refuses is busy: the waiting room asks again.
func TestJoinsWhileTheDatabaseIsAway(t *testing.T) {
	d, err := OpenSQLite(t.Context(), t.TempDir()+"/c.db")
	if err != nil {
		t.Fatal(err)
	}
	l := d.Joins()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	var f *fault.Error
	if _, err := l.Append(t.Context(), joinsOf(7, 1)); !errors.As(err, &f) || f.Code != fault.Busy || f.RetryAfter == 0 {
		t.Errorf("%v", err)
	}
	if err := l.Seal(t.Context(), 7); !errors.As(err, &f) || f.Code != fault.Busy {
		t.Errorf("%v", err)
	}
	if _, _, err := l.Of(t.Context(), 7, 1); err == nil {
		t.Error("nobody noticed")
	}
}

func BenchmarkJoins(b *testing.B) {
	d, err := OpenSQLite(b.Context(), b.TempDir()+"/c.db")
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	l, n := d.Joins(), 0
	for b.Loop() {
		var records []waitingroom.Record
		for range 4000 {
			n++
			records = append(records, joinsOf(7, n)...)
		}
		if _, err := l.Append(b.Context(), records); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "joins/s")
}
