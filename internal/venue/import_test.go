package venue

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func testFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func imported(t *testing.T, name string, options ImportOptions) (*Plan, []Problem) {
	t.Helper()
	p, notes, err := Import(testFile(t, name), options)
	if err != nil {
		t.Fatal(err, notes)
	}
	if errors := Errors(notes); len(errors) > 0 {
		t.Fatalf("accepted with errors: %v", errors)
	}
	return p, notes
}

// rowsOf writes each row as "section/label: ids", | where a break is.
func rowsOf(p *Plan) []string {
	var rows []string
	for _, row := range p.Rows {
		text := p.Sections[row.Section].Key + "/" + row.Label + ":"
		for i := row.SeatFirst; i < row.SeatFirst+row.SeatCount; i++ {
			if slices.Contains(row.Breaks, SeatIndex(i)) {
				text += " |"
			}
			text += " " + p.Seats[i].ID
		}
		rows = append(rows, text)
	}
	return rows
}

func equalLists[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s are\n%v\nwant\n%v", what, got, want)
	}
}

func TestImportPretix(t *testing.T) {
	p, notes := imported(t, "pretix-small.json", ImportOptions{})
	// Front to back although row 2 is listed first; row 1 put together of two parts, one of them listed backwards; row 3 in
	// the order in which its seats stand.
	equalLists(t, "rows", rowsOf(p), []string{
		"stalls/1: s-1-1 s-1-2 | s-1-3 s-1-4",
		"stalls/2: s-2-1 s-2-2 | s-2-3 s-2-4",
		"stalls/3: s-3-1 s-3-2 s-3-3 s-3-4 s-3-5",
	})
	if s := p.Seats[1]; s.X != 120.25 || s.Y != 80 || s.Label != "2" || p.Categories[s.Category].Name != "Front" {
		t.Errorf("seat s-1-2 is %+v", s)
	}
	if s := p.Seats[4]; s.X != 100.5 || s.Y != 110 || p.Categories[s.Category].Name != "Back" {
		t.Errorf("seat s-2-1 is %+v", s)
	}
	if p.Focal != (Point{150, 25}) {
		t.Errorf("focal point is %v, want the middle of the stage", p.Focal)
	}
	var kinds []string
	for _, s := range p.Shapes {
		kinds = append(kinds, fmt.Sprintf("%s %d %s", s.Kind, len(s.Points), s.Text))
	}
	equalLists(t, "shapes", kinds, []string{"polygon 4 ", "text 1 Stage", "circle 1 ", "polygon 24 ", "polygon 3 ", "text 1 Bar"})
	if at := p.Shapes[4].Points[2]; at != (Point{385, 58}) {
		t.Errorf("third corner of the polygon is at %v, want zone + area + point", at)
	}
	if len(p.Areas) != 0 || len(notes) != 0 {
		t.Errorf("areas %v, notes %v; want none: pretix areas are drawings", p.Areas, notes)
	}
	exportsToTheSame(t, p)
}

func TestImportSeatsio(t *testing.T) {
	p, notes := imported(t, "seatsio-small.json", ImportOptions{})
	equalLists(t, "rows", rowsOf(p), []string{
		"Ground/A: A-1 A-2 A-3 | A-4",
		"Ground/T1: T1-1 T1-2 T1-3 T1-4",
		"Balcony/A: Balcony-A-1 Balcony-A-2",
	})
	var seats []string
	for _, s := range p.Seats {
		seats = append(seats, fmt.Sprintf("%v,%v %s %d", s.X, s.Y, p.Categories[s.Category].Name, s.Flags))
	}
	equalLists(t, "seats", seats, []string{
		"100,50 Seated 2", "120,50 Wheelchair 1", "140,50 Seated 4", "200,50 Seated 1",
		"320,300 Seated 0", "300,320 Seated 0", "280,300 Seated 0", "300,280 Seated 0",
		"1010.25,520 Seated 0", "1030.25,520 Wheelchair 1",
	})
	var areas []string
	for _, a := range p.Areas {
		areas = append(areas, fmt.Sprintf("%s %s %s %d %d", p.Sections[a.Section].Key, a.ID, p.Categories[a.Category].Name, a.Capacity, len(a.Outline)))
	}
	equalLists(t, "areas", areas, []string{
		"Ground GA1 Standing 100 24", "Ground GA2 Standing 50 4", "Ground B1 Seated 1 4", "Balcony Balcony-Rail Seated 7 3",
	})
	if at := p.Areas[3].Outline[2]; at != (Point{1009, 509}) {
		t.Errorf("corner of the area in the section is at %v, want section + point", at)
	}
	if p.Focal != (Point{100, 0}) || p.Sections[0].Focal != nil || p.Sections[1].Focal == nil || *p.Sections[1].Focal != (Point{10.5, 20}) {
		t.Errorf("focal points are %v, %v, %v", p.Focal, p.Sections[0].Focal, p.Sections[1].Focal)
	}
	if p.Sections[0].Floor != "Ground" || p.Sections[1].Floor != "1" {
		t.Errorf("floors are %q and %q", p.Sections[0].Floor, p.Sections[1].Floor)
	}
	if len(p.Shapes) != 2 || p.Shapes[0].Text != "Bar" || p.Shapes[1].Text != "Exit" {
		t.Errorf("shapes are %v", p.Shapes)
	}
	if len(notes) != 2 || !strings.Contains(notes[0].Message, `table "T1" is booked as a whole`) || !strings.Contains(notes[1].Message, `booth "B1"`) {
		t.Errorf("notes are %v", notes)
	}
}

func TestImportFaults(t *testing.T) {
	for _, test := range []struct {
		file string
		want []string
	}{
		{"pretix-faults.json", []string{
			`/zones/0/rows/0/seats/1/category [1-2] seat 1-2 is of category "B"`,
			`/zones/0/rows/0/seats/2/category [1-3] seat 1-3 has no category`,
			`/zones/0/rows/0/seats/3/position [1-4] seat 1-4 has no position`,
			`/zones/0/rows/0/seats/4/seat_guid [] the seat_guid is missing`,
			`/zones/0/rows/0/seats/5/seat_number [] the seat_number "6\x00" holds the control character U+0000`,
			`/zones/0/rows/0/seats/6/position [1-7] position of seat 1-7: coordinate 1e+300 is out of range`,
			`/zones/1/rows/0/seats/0 [1-1] seat 1-1 is there twice: first at /zones/0/rows/0/seats/0 (section "Left", row "1")`,
		}},
		{"seatsio-faults.json", []string{
			`/subChart/rows/0/seats/2/label [K-?] seat K-? has the label "?"`,
			`/subChart/rows/0/seats/3 [K-4] seat K-4 has no category`,
			`/subChart/rows/0/seats/4 [K-5] seat K-5 is of category "9"`,
			`/subChart/rows/0/seats/5 [K-6] seat K-6 has no position`,
			`/subChart/rows/1/label [] the row has the label "?"`,
			`/subChart/generalAdmissionAreas/0/capacity [] area "GA" has no capacity`,
			`/subChart/generalAdmissionAreas/1/capacity [] capacity 2.5 of area "GB" is not a whole number`,
			`/subChart/generalAdmissionAreas/2/capacity [] capacity -3 of area "GC" is not a whole number`,
			`/subChart/rows/0/seats/1 [K-1] seat K-1 is there twice`,
		}},
		{"pretix-duplicates.json", []string{
			`/zones/0/rows/0/seats/3 [by-number] seat by-number is there 3 times`,
			`/zones/0/rows/1/seats/0 [by-row] seat by-row is there twice`,
			`/zones/1/rows/0/seats/0 [by-zone] seat by-zone is there twice`,
		}},
	} {
		t.Run(test.file, func(t *testing.T) {
			p, problems, err := Import(testFile(t, test.file), ImportOptions{})
			if p != nil || err == nil {
				t.Fatal("accepted")
			}
			wantProblems(t, problems, test.want)
		})
	}
}

func TestRenameDuplicates(t *testing.T) {
	p, notes := imported(t, "pretix-duplicates.json", ImportOptions{RenameDuplicates: true})
	// Row 2 is nearer to the upper edge, which is the front where there is no stage.
	equalLists(t, "rows", rowsOf(p), []string{
		"Left/2: Left-2-2 by-number~4 alone",
		"Left/1: Left-by-zone Left-1-2 by-number by-number~3 by-number~2",
		"Right/1: Right-by-zone",
	})
	if len(notes) != 1 || !strings.HasPrefix(notes[0].Message, "6 seats which shared an id") {
		t.Errorf("notes are %v", notes)
	}
	plain, _, err := Import(testFile(t, "pretix-small.json"), ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	renamed, _, err := Import(testFile(t, "pretix-small.json"), ImportOptions{RenameDuplicates: true})
	if err != nil || renamed.Hash() != plain.Hash() {
		t.Errorf("renaming changed a plan without duplicates (%v)", err)
	}
}

func TestImportOwn(t *testing.T) {
	p := Generate(GenerateOptions{Seats: 100})
	data, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"as written": data, "with a byte order mark": append([]byte("\xef\xbb\xbf"), data...),
		"with an unknown key": append([]byte(`{"unknown":[{}],`), data[1:]...),
	} {
		back, problems, err := Import(data, ImportOptions{})
		if err != nil || len(problems) > 0 || back.Hash() != p.Hash() {
			t.Errorf("%s: %v %v", name, err, problems)
		}
	}
}

func TestFindFocal(t *testing.T) {
	square := func(x, y, size float32) Shape {
		return Shape{Kind: ShapePolygon, Points: []Point{{x, y}, {x + size, y}, {x + size, y + size}, {x, y + size}}}
	}
	seats := []draftSeat{{Seat: Seat{X: 100, Y: 100}}, {Seat: Seat{X: 200, Y: 100}}, {Seat: Seat{X: 150, Y: 300}}}
	for _, test := range []struct {
		name   string
		shapes []Shape
		stages []int
		want   Point
	}{
		{"nothing drawn", nil, nil, Point{150, 100}},
		{"a stage", []Shape{square(0, 0, 400), square(0, 0, 10)}, []int{1}, Point{5, 5}},
		{"a pitch", []Shape{square(0, 0, 400), square(0, 0, 10), square(120, 120, 60)}, nil, Point{150, 150}},
		{"only a ground with seats on it", []Shape{square(0, 0, 400)}, nil, Point{150, 100}},
	} {
		d := draft{sections: []draftSection{{rows: []draftRow{{seats: seats}}}}, shapes: test.shapes}
		if got := d.findFocal(test.stages); got != test.want {
			t.Errorf("%s: the focal point is %v, want %v", test.name, got, test.want)
		}
	}
}
