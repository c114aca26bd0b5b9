package httpapi

import (
	"strings"
	"testing"
)

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 50000: "50,000", 1234567: "1,234,567"} {
		if got := count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := words("on_sale"); got != "on sale" {
		t.Error(got)
	}
}

func TestHomeIsForPeople(t *testing.T) {
	w := newWorld(t)
	page := string(w.ask(ask{path: "/"}).body)
	if !strings.Contains(page, "<td>on sale</td>") || strings.Contains(page, "<td>on_sale") {
		t.Errorf("states are shown as programs name them:\n%s", page)
	}
}
