package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"onsale/internal/catalog/eventfile"
)

// runEvent runs `event` with the arguments and answers what it printed.
func runEvent(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	parser, err := kong.New(&EventCmd{}, kong.Writers(&out, &out))
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := parser.Parse(arguments)
	if err != nil {
		return out.String(), err
	}
	err = ctx.Run()
	return out.String(), err
}

func TestEventConvert(t *testing.T) {
	sample, err := filepath.Abs("../../internal/catalog/importer/testdata/programmes.json")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // so that what is printed holds short names
	out, err := runEvent(t, "convert", sample, "--out", "files", "--zone", "Asia/Shanghai", "--country", "CN", "--city", "上海", "--plan", "hall.json")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"files/programme-7.yaml\n", "asks about show.performers, ", "is not a programme", "3 event files, 18 questions."} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	for name, good := range map[string]bool{"programme-7.yaml": true, "programme-8.yaml": false} {
		data, err := os.ReadFile(filepath.Join("files", name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := eventfile.Parse(data); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Nothing is written over, and then nothing at all.
	if err := os.Remove("files/programme-7.yaml"); err != nil {
		t.Fatal(err)
	}
	if _, err := runEvent(t, "convert", sample, "--out", "files"); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("files that are there: %v", err)
	}
	if _, err := os.Stat("files/programme-7.yaml"); err == nil {
		t.Error("half of the files were written")
	}
	if _, err := runEvent(t, "convert", sample, "--out", "files", "--force"); err != nil {
		t.Error(err)
	}
	if _, err := runEvent(t, "convert", sample, "--format", "ics"); err == nil {
		t.Error("a format that there is not")
	}
}
