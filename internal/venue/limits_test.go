package venue

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestHostileFiles: each gives a clear error, quickly and without much memory.
func TestHostileFiles(t *testing.T) {
	pretix := func(seats string) string {
		return `{"name":"x","categories":[{"name":"A"}],"zones":[{"name":"z","position":{"x":0,"y":0},"rows":[{"row_number":"1","seats":[` + seats + `]}]}]}`
	}
	seat := func(id string) string {
		return `{"seat_guid":"` + id + `","seat_number":"1","category":"A","position":{"x":0,"y":0}}`
	}
	many := func(n int, each func(i int) string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(each(i))
		}
		return b.String()
	}
	for _, test := range []struct{ name, data, want string }{
		{"empty", "", "the file is empty"},
		{"blank", " \n ", "the file is empty"},
		{"not JSON", "%PDF-1.4", "does not hold a JSON object"},
		{"an array", "[1,2]", "does not hold a JSON object"},
		{"another object", `{"event":1}`, "this is not a seating plan"},
		{"an object cut off", `{"event":1`, "not valid JSON"},
		{"cut off", pretix(seat("1"))[:100], "not valid JSON: unexpected end of JSON input at line 1, column 100"},
		{"cut off in a string", `{"zones":[{"name":"ab`, "not valid JSON"},
		{"rubbish behind", pretix(seat("1")) + "x", "not valid JSON"},
		{"not UTF-8", pretix(seat("a\xff")), "not valid UTF-8"},
		{"deep arrays", `{"zones":` + strings.Repeat("[", 1_000_000), "nested more than 64 levels deep"},
		{"deep objects", strings.Repeat(`{"subChart":`, 1_000_000), "nested more than 64 levels deep"},
		{"a zone that is a number", `{"zones":[5]}`, "stands where a"},
		{"no seats", `{"zones":[]}`, "nothing to sell"},
		{"too large", `{"zones":[` + strings.Repeat(" ", FileBytesMax) + `]}`, "at most 67108864 (64 MiB)"},
		{"too many seats", pretix(many(SeatsMax+1, func(i int) string { return seat(fmt.Sprint(i)) })), "200001 seats; at most 200000"},
		{"millions of nulls", pretix(strings.Repeat("null,", 10_000_000) + "null"), "more than 1000000 elements"},
		{"millions of objects", pretix(strings.Repeat("{},", 10_000_000) + "{}"), "more than 1000000 elements"},
		{"millions of own sections", `{"format":1,"sections":[` + strings.Repeat("{},", 10_000_000) + "{}]}", "more than 1000000 elements"},
		{"many sections", `{"subChart":{"sections":[` + many(SectionsMax+1, func(int) string { return `{"label":"a"}` }) + `]}}`, "2001 sections"},
		{"a long label", pretix(seat(strings.Repeat("x", LabelMax+1))), "has 121 characters"},
		{"a NUL", pretix(seat(`a\u0000`)), "control character U+0000"},
		{"a line break", pretix(seat(`a\nb`)), "control character U+000A"},
		{"a directional override", pretix(seat(`a\u202eb`)), "control character U+202E"},
		{"a huge coordinate", strings.Replace(pretix(seat("1")), `"x":0,"y":0}}]`, `"x":1e999,"y":0}}]`, 1), "out of range"},
		{"a coordinate that is a word", strings.Replace(pretix(seat("1")), `"x":0,"y":0}}]`, `"x":"NaN","y":0}}]`, 1), "out of range"},
		{"own, other version", `{"format":2,"seats":[]}`, "format is 2"},
		{"own, negative index", `{"format":1,"categories":[],"sections":[{"key":"a","row_first":0,"row_count":-1}],"rows":[],"seats":[{"id":"a","row":-1,"category":-1}]}`, "do not follow"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, problems, err := Import([]byte(test.data), ImportOptions{})
			runtime.ReadMemStats(&after)
			var refused *RefusedError
			if p != nil || !errors.As(err, &refused) || len(problems) == 0 {
				t.Fatalf("accepted: %v %v", problems, err)
			}
			all := fmt.Sprint(problems)
			if !strings.Contains(all, test.want) {
				t.Errorf("the problems are %.500s; want %s", all, test.want)
			}
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 1024 {
				t.Errorf("%d MiB were allocated for %d bytes", used, len(test.data))
			}
		})
	}
}

// TestProblemsAreBounded: a file with a thousand faults lists 200 of them and counts the rest.
func TestProblemsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `,{"seat_guid":"%d","seat_number":"1","category":"none","position":{"x":0,"y":0}}`, i)
	}
	_, problems, err := Import([]byte(`{"zones":[{"rows":[{"seats":[`+b.String()[1:]+`]}]}]}`), ImportOptions{})
	if err == nil || len(problems) != problemsMax+1 || problems[problemsMax].Message != "and 800 more errors of the same file" {
		t.Fatalf("%d problems, the last %v (%v)", len(problems), problems[len(problems)-1], err)
	}
	if want := "(and 999 more)"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the error %q does not end in %q", err, want)
	}
}

// TestHostileRows: many rows with one label, all of which seem to go on from the first, and a row that holds everything.
func TestHostileRows(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it reads 200,000 seats of the worst kind")
	}
	row := draftRow{label: "1"}
	for i := range 100_000 {
		row.seats = append(row.seats, draftSeat{Seat: Seat{ID: fmt.Sprint(i), Label: fmt.Sprint(i), X: float32(i % 977), Y: float32(i % 1013)}})
	}
	d := draft{categories: []Category{{Key: "A"}}, sections: []draftSection{{key: "s", rows: []draftRow{row}}}}
	for i := range 33_000 {
		seats := make([]draftSeat, 3)
		for k := range seats {
			seats[k] = draftSeat{Seat: Seat{ID: fmt.Sprintf("%d-%d", i, k), Label: fmt.Sprint(k), X: float32(100_000 + 10*k)}}
		}
		d.sections[0].rows = append(d.sections[0].rows, draftRow{label: "1", seats: seats})
	}
	if p := assemble(&d); len(p.Seats) != 199_000 {
		t.Fatalf("%d seats", len(p.Seats))
	}
}

// TestNestingAtTheLimit: what is not too deep is read, also where it is unknown.
func TestNestingAtTheLimit(t *testing.T) {
	const plan = `{"name":"x","categories":[{"name":"A"}],"zones":[{"name":"z","rows":[{"row_number":"1","seats":[{"seat_guid":"1","seat_number":"1","category":"A","position":{"x":0,"y":0}}]}]}],"unknown":`
	for depth, accepted := range map[int]bool{NestingMax - 1: true, NestingMax: false} {
		data := plan + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}"
		if _, problems, err := Import([]byte(data), ImportOptions{}); (err == nil) != accepted {
			t.Errorf("%d levels in the outermost object: %v", depth, problems)
		}
	}
}
