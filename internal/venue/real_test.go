package venue

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// realFile reads one of the files that people who do this job wrote. They are not part of the project: they lie in
// shared/real beside it, or where ONSALE_REAL_DATA says.
func realFile(t *testing.T, name string) []byte {
	t.Helper()
	folder := os.Getenv("ONSALE_REAL_DATA")
	for dir := "."; folder == ""; dir = filepath.Join(dir, "..") {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			folder = filepath.Join(dir, "..", "shared", "real")
		} else if len(dir) > 60 {
			t.Fatal("no go.mod above the test")
		}
	}
	data, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	if os.IsNotExist(err) {
		t.Skipf("%s is not there; put the real files into ../shared/real or name their folder in ONSALE_REAL_DATA", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRealCounts(t *testing.T) {
	for _, test := range []struct {
		file                            string
		rename                          bool
		seats, rows, sections           int
		breaks, accessible, areas, area int // area is the capacity of each
	}{
		{"pretix/pretix-screenshots-demo.en.json", true, 1057, 35, 2, 90, 0, 0, 0},
		{"pretix/seatmap-canvas-stadium.json", true, 738, 90, 2, 0, 0, 0, 0},
		{"seatsio/sampleChart.json", false, 32, 4, 1, 0, 1, 2, 100},
		{"seatsio/sampleChartWithSections.json", false, 71, 13, 2, 0, 0, 0, 0},
		{"seatsio/sampleChartWithTables.json", false, 12, 2, 1, 0, 0, 0, 0},
		{"seatsio/sampleChartWithFloors.json", false, 4, 2, 2, 0, 0, 0, 0},
		{"seatsio/sampleChartWithZones.json", false, 8897, 131, 4, 0, 0, 0, 0},
	} {
		t.Run(test.file, func(t *testing.T) {
			data := realFile(t, test.file)
			p, _, err := Import(data, ImportOptions{RenameDuplicates: test.rename})
			if err != nil {
				t.Fatal(err)
			}
			breaks := 0
			for _, row := range p.Rows {
				breaks += len(row.Breaks)
			}
			got := [6]int{len(p.Seats), len(p.Rows), len(p.Sections), breaks, p.Layout().Accessible.Count(), len(p.Areas)}
			if want := [6]int{test.seats, test.rows, test.sections, test.breaks, test.accessible, test.areas}; got != want {
				t.Errorf("seats, rows, sections, breaks, accessible, areas are %v, want %v", got, want)
			}
			for _, area := range p.Areas {
				if area.Capacity != test.area {
					t.Errorf("capacity of %s is %d, want %d", area.ID, area.Capacity, test.area)
				}
			}
			again, _, err := Import(data, ImportOptions{RenameDuplicates: test.rename})
			if err != nil || again.Hash() != p.Hash() {
				t.Errorf("a second import gives another plan (%v)", err)
			}
			exportsToTheSame(t, p)
		})
	}
}

func TestRealDuplicatesRefused(t *testing.T) {
	for _, test := range []struct {
		file   string
		errors int // problems listed
		last   string
	}{
		{"pretix/pretix-screenshots-demo.en.json", 84, "seat 19-28 is there twice"},
		{"pretix/seatmap-canvas-stadium.json", 126, "seat FirstFloor-F-7 is there twice"},
	} {
		t.Run(test.file, func(t *testing.T) {
			p, problems, err := Import(realFile(t, test.file), ImportOptions{})
			if p != nil || err == nil {
				t.Fatal("accepted")
			}
			errors := Errors(problems)
			if len(errors) != test.errors || !strings.Contains(errors[len(errors)-1].Message, test.last) {
				t.Errorf("%d errors, the last one %s; want %d, %s", len(errors), errors[len(errors)-1], test.errors, test.last)
			}
		})
	}
}

func TestRealChartWithErrors(t *testing.T) {
	_, problems, err := Import(realFile(t, "seatsio/sampleChartWithErrors.json"), ImportOptions{})
	if err == nil {
		t.Fatal("accepted")
	}
	wantProblems(t, problems, []string{
		`/subChart/rows/0/seats/2/label [A-?] seat A-? has the label "?"`,
		`/subChart/rows/0/seats/3 [A-4] seat A-4 has no category`,
		`/subChart/rows/0/seats/1 [A-1] seat A-1 is there twice`,
	})
}

func TestRealSectionCategory(t *testing.T) {
	p, _, err := Import(realFile(t, "seatsio/sampleChartWithSections.json"), ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, seat := range p.Seats {
		if want := []string{"cat1", "cat2"}[p.SectionOf(SeatIndex(i))]; p.Categories[seat.Category].Name != want {
			t.Fatalf("seat %s has category %s, its section %s", seat.ID, p.Categories[seat.Category].Name, want)
		}
	}
}

// wantProblems compares errors, each written as "path [seats] beginning of the message".
func wantProblems(t *testing.T, problems []Problem, want []string) {
	t.Helper()
	var got []string
	for _, p := range Errors(problems) {
		got = append(got, p.Path+" ["+strings.Join(p.Seats, " ")+"] "+p.Message)
	}
	same := len(got) == len(want) && !slices.ContainsFunc(want, func(w string) bool {
		return !strings.HasPrefix(got[slices.Index(want, w)], w)
	})
	if !same {
		t.Errorf("problems are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// exportsToTheSame writes the plan for pretix, reads that back and compares the seats.
func exportsToTheSame(t *testing.T, p *Plan) {
	t.Helper()
	data, _, err := ExportPretix(p)
	if err != nil {
		t.Fatal(err)
	}
	back, problems, err := Import(data, ImportOptions{})
	if err != nil {
		t.Fatal(err, problems)
	}
	if len(back.Seats) != len(p.Seats) {
		t.Fatalf("%d seats came back of %d", len(back.Seats), len(p.Seats))
	}
	for i := range p.Seats {
		if back.Seats[i] != p.Seats[i] {
			t.Fatalf("seat %d was %v, came back as %v", i, p.Seats[i], back.Seats[i])
		}
	}
	for i := range p.Rows {
		if back.Rows[i].Label != p.Rows[i].Label || !slices.Equal(back.Rows[i].Breaks, p.Rows[i].Breaks) {
			t.Fatalf("row %d was %v, came back as %v", i, p.Rows[i], back.Rows[i])
		}
	}
}
