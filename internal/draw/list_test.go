package draw

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"onsale/internal/id"
)

// A join is a line of a list.
type join struct {
	lane   string
	number int64
	entry  [EntryBytes]byte
}

func readAll(r io.Reader) (joins []join, hash [sha256.Size]byte, err error) {
	hash, err = ReadList(r, func(lane string, number int64, entry [EntryBytes]byte) error {
		joins = append(joins, join{lane, number, entry})
		return nil
	})
	return joins, hash, err
}

func TestListIsReadAsItWasWritten(t *testing.T) {
	var text bytes.Buffer
	lanes := []string{"presale", "empty", "general"}
	w, err := NewListWriter(&text, lanes)
	if err != nil {
		t.Fatal(err)
	}
	var want []join
	for _, j := range []struct {
		lane   int
		number int64
	}{{0, 0}, {0, 1}, {0, 7}, {2, 0}, {2, 5000}, {2, NMax - 1}} {
		entry := Entry([]byte("key"), id.ID(len(want)))
		if err := w.Add(j.lane, j.number, entry); err != nil {
			t.Fatal(err)
		}
		want = append(want, join{lanes[j.lane], j.number, entry})
	}
	hash, lines, err := w.Close()
	if err != nil || lines != int64(len(want)) || hash != sha256.Sum256(text.Bytes()) {
		t.Errorf("%d lines, hash %x, %v", lines, hash, err)
	}
	if first, _, _ := strings.Cut(text.String(), "\n"); first != "presale 0 "+hex.EncodeToString(want[0].entry[:]) {
		t.Errorf("the first line is %q", first)
	}
	got, again, err := readAll(iotest.OneByteReader(&text))
	if err != nil || again != hash || !slices.Equal(got, want) {
		t.Errorf("%v, %x, %v", got, again, err)
	}
}

func TestListWriterRefusesDisorder(t *testing.T) {
	for name, lanes := range map[string][]string{"space": {"a b"}, "empty": {""}, "twice": {"a", "a"}, "line": {"a\n"}, "long": {strings.Repeat("x", LaneBytesMax+1)},
		"letters": {"ä"}, "many": make([]string, LanesMax+1)} {
		if _, err := NewListWriter(io.Discard, lanes); err == nil {
			t.Errorf("%s: lanes %q are taken", name, lanes)
		}
	}
	type add struct {
		lane   int
		number int64
	}
	for name, adds := range map[string][]add{"lane goes back": {{1, 0}, {0, 0}}, "number twice": {{0, 3}, {0, 3}}, "number goes back": {{0, 3}, {0, 2}},
		"negative": {{0, -1}}, "no such lane": {{2, 0}}, "no lane": {{-1, 0}}, "too large": {{0, NMax}}} {
		w, err := NewListWriter(io.Discard, []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range adds {
			if err = w.Add(a.lane, a.number, [EntryBytes]byte{}); err != nil && i < len(adds)-1 {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestReadListRefuses(t *testing.T) {
	const e = "00112233445566778899aabbccddeeff"
	for name, text := range map[string]string{
		"no end": "a 0 " + e, "empty line": "\n", "no entry": "a 0\n", "short entry": "a 0 " + e[1:] + "\n", "long entry": "a 0 " + e + "0\n",
		"capitals": "a 0 " + strings.ToUpper(e) + "\n", "spaces": "a  0 " + e + "\n", "space behind": "a 0 " + e + " \n", "sign": "a +0 " + e + "\n",
		"zeros": "a 00 " + e + "\n", "negative": "a -1 " + e + "\n", "large": "a 1099511627776 " + e + "\n", "huge": "a 99999999999999999999 " + e + "\n",
		"twice": "a 0 " + e + "\na 0 " + e + "\n", "back": "a 1 " + e + "\na 0 " + e + "\n", "lane again": "a 0 " + e + "\nb 0 " + e + "\na 1 " + e + "\n",
		"no lane": " 0 " + e + "\n", "windows": "a 0 " + e + "\r\n", "endless": strings.Repeat("a", 1<<20), "tab": "a\t0\t" + e + "\n",
	} {
		if _, _, err := readAll(strings.NewReader(text)); !errors.Is(err, ErrList) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, hash, err := readAll(strings.NewReader("")); err != nil || hash != sha256.Sum256(nil) {
		t.Errorf("the empty list: %v", err)
	}
	broken := errors.New("broken")
	if _, _, err := readAll(iotest.ErrReader(broken)); !errors.Is(err, broken) || errors.Is(err, ErrList) {
		t.Errorf("a broken reader: %v", err)
	}
	if _, err := ReadList(strings.NewReader("a 0 "+e+"\n"), func(string, int64, [EntryBytes]byte) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("each: %v", err)
	}
}

// What is accepted is the only spelling of its joins, so that one list has one hash.
func FuzzReadList(f *testing.F) {
	f.Add([]byte("a 0 00112233445566778899aabbccddeeff\nb 12 ffeeddccbbaa99887766554433221100\n"))
	f.Add([]byte("a 0 00112233445566778899AABBCCDDEEFF\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		joins, hash, err := readAll(bytes.NewReader(text))
		if err != nil {
			return
		}
		var lanes []string
		for _, j := range joins {
			if !slices.Contains(lanes, j.lane) {
				lanes = append(lanes, j.lane)
			}
		}
		var again bytes.Buffer
		w, err := NewListWriter(&again, lanes)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range joins {
			if err := w.Add(slices.Index(lanes, j.lane), j.number, j.entry); err != nil {
				t.Fatal(err)
			}
		}
		got, _, err := w.Close()
		if err != nil || got != hash || !bytes.Equal(again.Bytes(), text) {
			t.Errorf("%q is written as %q", text, again.Bytes())
		}
	})
}
