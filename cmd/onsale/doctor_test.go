package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// E1: a house where nobody could sign in is not in order, and serve would not start.
func TestDoctorSaysThatNobodyCouldSignIn(t *testing.T) {
	var out bytes.Buffer
	c := DoctorCmd{configFlags: configFlags{Data: filepath.Join(t.TempDir(), "data"), Set: map[string]string{"metrics_listen": ""}}}
	c.Set["listen"] = "127.0.0.1:0"
	k := &kong.Context{Kong: &kong.Kong{Stdout: &out}}
	if err := c.Run(t.Context(), k); !errors.Is(err, errIll) {
		t.Errorf("%v", err)
	}
	if said := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(said, "MEND configuration the configuration is refused: ") || !strings.Contains(said, ": nobody could sign in: ") || strings.Contains(out.String(), "sign-in  ") {
		t.Errorf("%s", said)
	}
	out.Reset()
	c.Demo = true
	if err := c.Run(t.Context(), k); err != nil && !strings.Contains(out.String(), "MEND  disk") {
		t.Errorf("%v: %s", err, out.String())
	}
}
