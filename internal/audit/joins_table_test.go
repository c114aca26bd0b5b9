package audit

import (
	"cmp"
	"slices"
	"testing"

	"onsale/internal/control"
	"onsale/internal/id"
	"onsale/internal/pgserver"
	"onsale/internal/waitingroom"
)

// The table of joins is read as the log says of itself, before the list is sealed and after, with numbers given up at both
// times.
func TestJoinsTable(t *testing.T) {
	url := pgserver.DatabaseForTest(t)
	db, err := control.OpenPostgres(t.Context(), control.PostgresOptions{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	src, err := OpenPostgres(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	const event = id.ID(70)
	log := db.Joins()
	put := func(customer int, lane int, number int64, drawn, left bool) {
		t.Helper()
		r := waitingroom.Record{Event: event, Customer: id.ID(customer), Lane: lane, Number: number, At: 5, Drawn: drawn, Left: left, Entry: [16]byte{byte(customer)}}
		if a, err := log.Append(t.Context(), []waitingroom.Record{r}); err != nil || a[0].Err != nil {
			t.Fatal(err, a)
		}
	}
	same := func(count int) {
		t.Helper()
		for _, sorted := range []bool{false, true} {
			var lists [2][]waitingroom.Record
			for i, from := range []Joins{log, src.JoinsTable()} {
				if err := from.Replay(t.Context(), event, sorted, func(r waitingroom.Record) error {
					r.Identity = waitingroom.Identity{}
					lists[i] = append(lists[i], r)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			if !sorted {
				for _, l := range lists {
					slices.SortStableFunc(l, func(a, b waitingroom.Record) int {
						return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Number, b.Number))
					})
				}
			}
			if sorted && len(lists[0]) != count || !slices.Equal(lists[0], lists[1]) {
				t.Errorf("sorted %v: the log says\n%v\nthe audit reads\n%v", sorted, lists[0], lists[1])
			}
		}
	}
	same(0)
	put(1, 0, 0, true, false)
	put(2, 1, 0, true, false)
	put(3, 1, 1, true, false)
	put(2, 1, 0, true, true)
	same(2)
	if err := log.Seal(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	put(3, 1, 1, true, true)
	put(4, 1, 2, false, false)
	same(2)
}
