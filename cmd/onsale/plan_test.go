package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"onsale/internal/venue"
)

// runPlan runs `plan` with the arguments and answers what it printed.
func runPlan(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	parser, err := kong.New(&PlanCmd{}, kong.Writers(&out, &out))
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := parser.Parse(arguments)
	if err != nil {
		return out.String(), err
	}
	err = ctx.Run()
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 && strings.Contains(strings.TrimSpace(line[10:]), " ") {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	return out.String(), err
}

func TestPlanCommand(t *testing.T) {
	t.Chdir(t.TempDir()) // so that what is printed holds short names
	if _, err := runPlan(t, "generate", "--seats", "1234", "-o", "arena.json"); err != nil {
		t.Fatal(err)
	}
	out, err := runPlan(t, "check", "arena.json")
	if err != nil || !strings.Contains(out, "seats      1,234 in ") {
		t.Fatalf("check: %v\n%s", err, out)
	}
	if _, err := runPlan(t, "export", "arena.json", "-o", "pretix.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := runPlan(t, "import", "pretix.json", "-o", "again.json"); err != nil {
		t.Fatal(err)
	}
	before, after := decodeFile(t, "arena.json"), decodeFile(t, "again.json")
	for i := range before.Seats {
		if before.Seats[i] != after.Seats[i] {
			t.Fatalf("seat %d was %v, came back as %v", i, before.Seats[i], after.Seats[i])
		}
	}
	left, err := filepath.Glob(".*")
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files left behind: %v %v", left, err)
	}
}

func TestPlanCommandRefuses(t *testing.T) {
	const twice = `{"name":"Twice","categories":[{"name":"A"}],"zones":[{"name":"Stalls","position":{"x":0,"y":0},"rows":[
		{"row_number":"1","seats":[
			{"seat_guid":"1-1","seat_number":"1","category":"A","position":{"x":0,"y":0}},
			{"seat_guid":"1-1","seat_number":"2","category":"A","position":{"x":20,"y":0}},
			{"seat_guid":"1-3","seat_number":"3","category":"B","position":{"x":40,"y":0}}]}]}]}`
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{"twice.json": twice, "out.json": "kept"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := runPlan(t, "import", "twice.json", "-o", "out.json")
	if err == nil {
		t.Fatal("a plan with a duplicate and an unknown category was imported")
	}
	flat := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"seat 1-1 is there twice", "/zones/0/rows/0/seats/1", `seat 1-3 is of category "B"`, "refused 2 errors"} {
		if !strings.Contains(flat, want) {
			t.Errorf("the answer does not say %q:\n%s", want, out)
		}
	}
	if kept, err := os.ReadFile("out.json"); err != nil || string(kept) != "kept" {
		t.Errorf("a refused import changed its target: %q %v", kept, err)
	}
	for _, arguments := range [][]string{
		{"check", "missing.json"},
		{"generate", "--seats", "1", "-o", "out.json"},
		{"generate", "--seats", "200001", "-o", "out.json"},
		{"generate", "--seats", "10"},
		{"generate", "--seats", "10", "-o", "out.json", "--name", "a\tb"},
		{"generate", "--seats", "10", "-o", filepath.Join("missing", "out.json")},
	} {
		if _, err := runPlan(t, arguments...); err == nil {
			t.Errorf("%v was accepted", arguments)
		}
		if kept, err := os.ReadFile("out.json"); err != nil || string(kept) != "kept" {
			t.Errorf("%v changed its target: %q %v", arguments, kept, err)
		}
	}
}

func decodeFile(t *testing.T, name string) *venue.Plan {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := venue.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
