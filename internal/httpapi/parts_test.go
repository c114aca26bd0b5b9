package httpapi

import (
	"strings"
	"testing"
	"unicode/utf8"

	"onsale/internal/fault"
)

func TestTitleInTheReadersLanguage(t *testing.T) {
	entry := fault.Lookup(fault.SeatsTaken)
	for accept, want := range map[string]string{
		"": "en", "en": "en", "zh": "zh-CN", "zh-CN": "zh-CN", "ZH-Hant-TW": "zh-CN", "fr": "en", "*": "en", "fr, zh;q=0.2": "zh-CN",
		"en;q=0.5, zh;q=0.9": "zh-CN", "zh;q=0.5, en;q=0.9": "en", "en, zh": "en", "zh, en": "zh-CN", "zh;q=0": "en", "zh;q=0, en": "en",
		"zha": "en", "zh;q=x": "en", "zh;q=2": "en", "en-GB,en;q=0.8,zh;q=0.6": "en", "zh ; q=1": "zh-CN", ",,;q=": "en",
	} {
		language, text := title(entry, []string{accept})
		if language != want || (text == entry.Zh) != (want == "zh-CN") {
			t.Errorf("Accept-Language %q: %s, want %s", accept, language, want)
		}
	}
	if language, _ := title(entry, []string{"fr", "zh"}); language != "zh-CN" {
		t.Error("the second of two headers is overlooked")
	}
}

func TestQuality(t *testing.T) {
	for _, c := range []struct {
		header, value string
		want          wish
	}{
		{"", "gzip", wish{}}, {"gzip", "gzip", wish{1, true}}, {"GZIP", "gzip", wish{1, true}}, {"br, gzip;q=0.5", "gzip", wish{0.5, true}},
		{"gzip;q=0", "gzip", wish{0, true}}, {"gzip;q=0.0", "gzip", wish{0, true}}, {"gzip;q=0.000", "gzip", wish{0, true}}, {"*", "gzip", wish{1, false}},
		{"*, gzip;q=0", "gzip", wish{0, true}}, {"x-gzip", "gzip", wish{}}, {"gzip; foo=1 ;Q=0.3", "gzip", wish{0.3, true}}, {"gzip;q=NaN", "gzip", wish{0, true}},
		{"*/*", octets, wish{1, false}}, {"application/*;q=0.2, */*;q=0.1", octets, wish{0.2, false}}, {"text/html, " + octets, octets, wish{1, true}},
	} {
		if got := quality(c.header, c.value); got != c.want {
			t.Errorf("%q wants %s as %+v, want %+v", c.header, c.value, got, c.want)
		}
	}
}

func TestIfNoneMatch(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, `"1"`: true, `W/"1"`: true, `"2"`: false, `"2", "1"`: true, "*": true, `1`: false, `"11"`: false, `"2",W/"1" `: true,
	} {
		for _, etag := range []string{`"1"`, `W/"1"`} {
			if got := matches([]string{`"0"`, header}, etag); got != want {
				t.Errorf("If-None-Match %q against %s: %v", header, etag, got)
			}
		}
	}
}

func TestRequestIDs(t *testing.T) {
	for _, good := range []string{"a", "01HZX-abc_DEF", strings.Repeat("a", 64)} {
		if got := requestID(good); got != good {
			t.Errorf("a proxy's %q became %q", good, got)
		}
	}
	seen := map[string]bool{}
	for _, bad := range []string{"", "a b", "a\r\nSet-Cookie: x=1", "a\x00", "é", `"`, "<b>", strings.Repeat("a", 65)} {
		got := requestID(bad)
		if got == bad || len(got) != 20 || seen[got] {
			t.Errorf("%q became %q", bad, got)
		}
		seen[got] = true
	}
}

func TestClipped(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "A-12": "A-12", "座位": "座位", "a\x00b\u202ec\n": "a\ufffdb\ufffdc\ufffd", strings.Repeat("é", 40): strings.Repeat("é", 40),
		strings.Repeat("é", 41): strings.Repeat("é", 40) + "…", "\xff": "\ufffd",
	} {
		if got := clipped(text); got != want || !utf8.ValidString(got) {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestCleanPaths(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a/b": true, "/a/": true, "": false, "a": false, "//": false, "/a//b": false, "/./a": false, "/a/..": false, "*": false, "/a%2Fb": true,
	} {
		if got := cleanPath(path); got != want {
			t.Errorf("%q is clean: %v", path, got)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := New(Options{FieldKey: []byte("short")}); err == nil {
		t.Error("a FieldKey of 5 bytes is taken")
	}
	if h, err := New(Options{FieldKey: make([]byte, 16)}); err != nil || h == nil {
		t.Error(err)
	}
}
