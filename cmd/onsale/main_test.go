package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// ask calls the program as far as its command line goes. Help ends it, as far as it knows.
func ask(t *testing.T, arguments ...string) (said string, err error) {
	t.Helper()
	var out bytes.Buffer
	ended := false
	defer func() {
		if r := recover(); r != nil && !ended {
			panic(r)
		}
		said = out.String()
	}()
	_, err = commandLine(&cli{}, arguments, kong.Writers(&out, &out), kong.Exit(func(int) { ended = true; panic("ended") }))
	return
}

func TestHelpIsACommandToo(t *testing.T) {
	for command, want := range map[string]string{"": "Usage: onsale", "event": "Usage: onsale event", "event import": "Usage: onsale event import"} {
		words := strings.Fields(command)
		if said, _ := ask(t, append([]string{"help"}, words...)...); !strings.Contains(said, want) {
			t.Errorf("help %s says %q", command, said)
		}
		if said, _ := ask(t, append(words, "--help")...); !strings.Contains(said, want) {
			t.Errorf("%s --help says %q", command, said)
		}
	}
}

// A command that is not understood is answered in one line, which says where the usage is.
func TestUsageErrorsAreOneLine(t *testing.T) {
	for command, want := range map[string]string{
		"nonsense": "see onsale --help", "event nonsense": "see onsale event --help", "event open --nonsense": "see onsale event open --help", "": "see onsale --help",
		"event open": "see onsale event open --help", "help nonsense": "see onsale --help",
	} {
		said, err := ask(t, strings.Fields(command)...)
		if err == nil || !strings.HasPrefix(err.Error(), "onsale: ") || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "\n") || said != "" {
			t.Errorf("%s: %v, and says %q", command, err, said)
		}
	}
	if _, err := ask(t, "version"); err != nil {
		t.Error(err)
	}
}
