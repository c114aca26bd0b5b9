package audit

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files")

// golden compares a report's two forms with files.
func golden(t *testing.T, name string, r Report) {
	t.Helper()
	r.Seconds = 0.1
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(&r); err != nil {
		t.Fatal(err)
	}
	for file, got := range map[string]string{name + ".json": b.String(), name + ".txt": render(t, &r)} {
		path := filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is not what is printed any more (-update writes it):\n%s", path, got)
		}
	}
}

// The report of a world in which all is well, and of the same with a few faults.
func TestReportGolden(t *testing.T) {
	w, path := sqliteWorld(t)
	w.publish("pending")
	options := Options{Provider: w.list, Joins: w.log, Now: *w.clock}
	r, err := Run(t.Context(), open1(t, path), options)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "ok", r)

	if err := w.l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"more given back than is due", "a ticket passed on for another price", "a mark that the ticket does not have", "let in twice",
		"an event's notice gone", "two keys of one refund", "a seat free before it was released", "another seat given back",
		"an entry before the call", "a hold without a session", "another K", "a code used too often",
	} {
		w.exec(faultNamed(t, name).sql)
	}
	if r, err = Run(t.Context(), open1(t, path), options); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Broken(), " "); got != "I1 I5 I6 I10 I11 I12 draw room money tickets exchange door history" {
		t.Errorf("broken: %s", got)
	}
	golden(t, "broken", r)
}

func faultNamed(t *testing.T, name string) *fault {
	t.Helper()
	all := faults()
	for i := range all {
		if all[i].name == name {
			return &all[i]
		}
	}
	t.Fatalf("no fault is called %q", name)
	return nil
}
