package app

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWhatIsPrintedFitsATerminal(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 60))
	var out bytes.Buffer
	for _, line := range []string{long, "Paused    " + long, "  " + long} {
		if err := PrintWrapped(&out, "%s", line); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := PrintFindings(&out, []Finding{{What: "payment", Says: long, Mend: long}, {What: "a name longer than its column", Well: true, Says: long}}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > terminalColumns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if n := strings.Count(out.String(), "word"); n != 6*60 {
		t.Errorf("%d words of %d", n, 6*60)
	}
	out.Reset()
	if err := PrintWrapped(&out, "Audit     ok"); err != nil || out.String() != "Audit     ok\n" {
		t.Errorf("%q, %v", &out, err)
	}
}
