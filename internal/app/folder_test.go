package app

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"onsale/internal/catalog"
	"onsale/internal/venue"
)

// F1: a data folder belongs to one process.
func TestOneProcessAFolder(t *testing.T) {
	dir := folder(t)
	first, err := Open(t.Context(), settings(dir))
	if err != nil {
		t.Fatal(err)
	}
	refused := func() {
		t.Helper()
		second, err := Open(t.Context(), settings(dir))
		if !errors.Is(err, ErrLocked) || second != nil {
			t.Fatalf("a second process opens the folder: %v", err)
		}
		if text := err.Error(); !strings.Contains(text, dir) || !strings.Contains(text, "--data") {
			t.Errorf("%q does not name the folder and the mend", text)
		}
	}
	refused()
	refused() // being refused frees nothing
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := start(t, settings(dir))
	refused()
	p.stop()
	again, err := Open(t.Context(), settings(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

var idShape = regexp.MustCompile(`(evt|show)_[0-9A-Z]{13}`)

// commands gives a fixed row of commands and tells all answers, with ids left out.
func commands(t *testing.T, c *Client, file ImportRequest) []string {
	t.Helper()
	var told []string
	call := func(method, path string, in any) (events []AdminEvent) {
		t.Helper()
		var out json.RawMessage
		err := c.Call(t.Context(), method, path, in, &out)
		text := string(out)
		if err != nil {
			text = "refused: " + err.Error()
		}
		if json.Unmarshal(out, &events) != nil {
			events = make([]AdminEvent, 1)
			_ = json.Unmarshal(out, &events[0]) // a refusal has none
		}
		told = append(told, method+" "+idShape.ReplaceAllString(path+": "+text, "$1"))
		return events
	}
	call("GET", "/events", nil)
	made := call("POST", "/events", file)
	if len(made) != 1 || made[0].Action != "created" || made[0].State != string(catalog.OnSale) || made[0].Seats != 40 {
		t.Fatalf("imported: %+v", made)
	}
	call("POST", "/events", file)
	call("POST", "/events", ImportRequest{File: []byte("format: 1\nshow: { key: x }")})
	call("POST", "/events", ImportRequest{File: file.File, Plan: []byte("{")})
	at := "/events/" + made[0].ID
	for _, verb := range []string{"pause", "pause", "open", "resume", "close", "resume", "dance"} {
		call("POST", at+"/"+verb, nil)
	}
	call("POST", "/events/tonight/pause", nil)
	call("POST", "/events/evt_0000000000001/pause", nil)
	call("GET", "/events", nil)
	return told
}

// Names and addresses are for the program's own user, also in a folder that others may read, and after an earlier version
// that did not see to it.
func TestDatabasesAreClosedToOthers(t *testing.T) {
	s := settings(folder(t))
	must(t, os.MkdirAll(s.Data, 0o755))
	must(t, os.Chmod(s.Data, 0o755))
	for range 2 {
		a, err := Open(t.Context(), s)
		must(t, err)
		found := 0
		for _, name := range []string{controlFile, controlFile + "-wal", controlFile + "-shm", ShardFile, ShardFile + "-wal", ShardFile + "-shm"} {
			info, err := os.Stat(filepath.Join(s.Data, name))
			if err != nil {
				continue
			}
			found++
			if mode := info.Mode().Perm(); mode&0o007 != 0 {
				t.Errorf("%s has mode %04o", name, mode)
			}
		}
		if found < 4 {
			t.Errorf("%d files", found)
		}
		must(t, a.Close(t.Context()))
		for _, name := range []string{controlFile, ShardFile} {
			must(t, os.Chmod(filepath.Join(s.Data, name), 0o644))
		}
	}
}

// F1: commands reach a running server over its socket and open the folder themselves where none runs: the answers are the
// same.
func TestCommandsWithAndWithoutAServer(t *testing.T) {
	file := fileOf(t, "one", "")
	without := func() Settings { // a provider: events say so
		s := settings(folder(t))
		s.Demo, s.Payment.Provider, s.Throwaway = false, noProvider, true
		return s
	}
	direct := without()
	c := dialed(t, direct)
	if _, err := Open(t.Context(), direct); !errors.Is(err, ErrLocked) {
		t.Errorf("with no server the client does not hold the folder: %v", err)
	}
	alone := commands(t, c, file)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	s := without()
	start(t, s)
	c = dialed(t, s)
	served := commands(t, c, file)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range max(len(alone), len(served)) {
		if i >= len(alone) || i >= len(served) || alone[i] != served[i] {
			t.Fatalf("answer %d differs:\nalone:  %s\nserved: %s", i, alone[i:], served[i:])
		}
	}
	if len(alone) != 15 || !strings.Contains(alone[3], "refused") || !strings.Contains(alone[11], "refused") {
		t.Errorf("%q", alone)
	}
}

// A killed server leaves its socket behind: commands then open the folder, and the next server takes the socket's place.
func TestSocketLeftBehind(t *testing.T) {
	dir := folder(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socketPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c := dial(t, dir)
	var none []AdminEvent
	if err := c.Call(t.Context(), "GET", "/events", nil, &none); err != nil || len(none) != 0 {
		t.Fatalf("%v, %v", none, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	p := start(t, settings(dir))
	c = dial(t, dir)
	var events []AdminEvent
	if err := c.Call(t.Context(), "GET", "/events", nil, &events); err != nil || len(events) != 2 { // the demo's two
		t.Errorf("%v, %v", events, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(socketPath(dir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may give commands: %v, %v", info.Mode(), err)
	}
	p.stop()
	if _, err := os.Stat(socketPath(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a stopped server leaves its socket behind: %v", err)
	}
}

// What is worth knowing of a plan is no reason to refuse its events: here a category without seats.
func TestPlanWithNotesIsImported(t *testing.T) {
	file := fileOf(t, "one", "")
	plan, _, err := venue.Import(file.Plan, venue.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range plan.Categories {
		plan.Categories[i].Name = plan.Categories[i].Key // pretix has names alone, which the file's tiers must name
	}
	plan.Categories = append(plan.Categories, venue.Category{Key: "EMPTY", Name: "EMPTY", Color: plan.Categories[0].Color})
	if file.Plan, _, err = venue.ExportPretix(plan); err != nil {
		t.Fatal(err)
	}
	if _, notes, err := venue.Import(file.Plan, venue.ImportOptions{}); err != nil || len(notes) == 0 {
		t.Fatalf("the plan has no note: %v, %v", notes, err)
	}
	c := dial(t, folder(t))
	var made []AdminEvent
	if err := c.Call(t.Context(), "POST", "/events", file, &made); err != nil || len(made) != 1 {
		t.Errorf("%v, %v", made, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
