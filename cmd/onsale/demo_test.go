package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"onsale/internal/demo"
	"onsale/internal/pgserver"
)

// The short forms of `onsale demo --kills`: the built program, on both ledgers (the long forms are `make soak`).
func TestDemoKillsSQLiteNoRace(t *testing.T) { playDemo(t, "--ledger", "sqlite") }

func TestDemoKillsPostgresNoRace(t *testing.T) {
	if os.Getenv(pgserver.TestVariable) == "off" {
		t.Skipf("%s is off", pgserver.TestVariable)
	}
	arguments := []string{"--ledger", "postgres"}
	if rawURL := os.Getenv(pgserver.TestURLVariable); rawURL != "" {
		arguments = append(arguments, "--postgres", rawURL) // then only the server is killed, not the database
	}
	playDemo(t, arguments...)
}

func playDemo(t *testing.T, ledger ...string) {
	t.Helper()
	t.Parallel() // most of the time it waits for holds to run out
	program := filepath.Join(t.TempDir(), "onsale")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	arguments := append([]string{"demo", "--seats", "1200", "--buyers", "800", "--kills", "4", "--hold-ttl", "5s", "--payment-window", "10s"}, ledger...)
	cmd := exec.CommandContext(t.Context(), program, arguments...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("onsale demo: %v\n%s", err, &out)
	}
	text := out.String()
	for _, want := range []string{"The draw is provable", "Kill 4 of 4", "4 kills", "\nWaiting room: ", "\naudit: ok", "\njournal: ok", "\npersonal data: ok"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestDemoChecksItsArguments(t *testing.T) {
	good := DemoCmd{Seats: 2000, Buyers: 800, Kills: 4, AtOnce: 256}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for _, spoil := range []func(*DemoCmd){
		func(c *DemoCmd) { c.Seats = 1 }, func(c *DemoCmd) { c.Seats = 1_000_000 }, func(c *DemoCmd) { c.Buyers = 1 },
		func(c *DemoCmd) { c.Kills = -1 }, func(c *DemoCmd) { c.AtOnce = 0 },
	} {
		bad := good
		spoil(&bad)
		if bad.check() == nil {
			t.Errorf("%+v is not refused", bad)
		}
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "something"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	used := good
	used.Data = full
	if _, err := used.folder(&demo.Options{}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder that is in use: %v", err)
	}
}
