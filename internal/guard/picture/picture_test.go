package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/png"
	"math"
	random "math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"onsale/internal/fault"
	"onsale/internal/guard"
)

var (
	noon  = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	mine  = guard.Bind{Event: 7, Subject: guard.SubjectOf(9, guard.Device{})}
	other = guard.Bind{Event: 8, Subject: mine.Subject}
)

func secrets(all ...string) guard.Secrets {
	return func() (out [][]byte) {
		for _, s := range all {
			out = append(out, []byte(s))
		}
		return out
	}
}

// answers are what a person would read and hear.
func answers(t *testing.T, c *Check, token string) (letters, digits string) {
	t.Helper()
	read, err := c.read(noon, token)
	if err != nil {
		t.Fatal(err)
	}
	return read.letters(), read.digits()
}

func check(c *Check, at time.Time, b guard.Bind, token, answer string) error {
	return c.Check(context.Background(), at, b, netip.Addr{}, guard.PersonAnswer{Provider: "picture", Token: token, Answer: answer})
}

func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(letters, digits string) string
		want   bool
	}{
		"the letters":       {func(l, _ string) string { return l }, true},
		"in small letters":  {func(l, _ string) string { return strings.ToLower(l) }, true},
		"in groups":         {func(l, _ string) string { return " " + l[:3] + " - " + l[3:] + " " }, true},
		"the digits":        {func(_, d string) string { return d }, true},
		"in full width":     {func(_, d string) string { return strings.Map(func(r rune) rune { return r - '0' + '０' }, d) }, true},
		"nothing":           {func(string, string) string { return "" }, false},
		"both":              {func(l, d string) string { return l + d }, false},
		"the letters twice": {func(l, _ string) string { return l + l }, false},
		"one letter less":   {func(l, _ string) string { return l[1:] }, false},
		"another letter":    {func(l, _ string) string { return "?" + l[1:] }, false},
	} {
		ours := New(secrets("s"), noon)
		token := ours.Ask(noon, mine).Token
		letters, digits := answers(t, ours, token)
		err := check(ours, noon, mine, token, c.answer(letters, digits))
		if (err == nil) != c.want || err != nil && fault.CodeOf(err) != fault.PersonRequired {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A right answer is good once, for whom it was asked, in its time, after few tries, on any node with the secret.
func TestGoodOnce(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(c *Check, token, right string) error
		want string // a part of the refusal; "": let in
	}{
		"at once": {func(c *Check, token, right string) error { return check(c, noon, mine, token, right) }, ""},
		"in time": {func(c *Check, token, right string) error {
			return check(c, noon.Add(Life-time.Second), mine, token, right)
		}, ""},
		"late": {func(c *Check, token, right string) error { return check(c, noon.Add(Life), mine, token, right) }, "run out"},
		"before": {func(c *Check, token, right string) error {
			return check(c, noon.Add(-ahead-time.Second), mine, token, right)
		}, "run out"},
		"other event": {func(c *Check, token, right string) error { return check(c, noon, other, token, right) }, "somebody else"},
		"other node": {func(_ *Check, token, right string) error {
			return check(New(secrets("s"), noon), noon, mine, token, right)
		}, ""},
		"after rotation": {func(_ *Check, token, right string) error {
			return check(New(secrets("new", "s"), noon), noon, mine, token, right)
		}, ""},
		"foreign": {func(_ *Check, token, right string) error {
			return check(New(secrets("new"), noon), noon, mine, token, right)
		}, "not ours"},
		"twice": {func(c *Check, token, right string) error {
			_ = check(c, noon, mine, token, right)
			return check(c, noon, mine, token, right)
		}, "used already"},
		"at the last try": {func(c *Check, token, right string) error {
			for range TriesMax - 1 {
				_ = check(c, noon, mine, token, "wrong")
			}
			return check(c, noon, mine, token, right)
		}, ""},
		"after too many": {func(c *Check, token, right string) error {
			for range TriesMax {
				_ = check(c, noon, mine, token, "wrong")
			}
			return check(c, noon, mine, token, right)
		}, "too many tries"},
	} {
		ours := New(secrets("s"), noon)
		token := ours.Ask(noon, mine).Token
		letters, _ := answers(t, ours, token)
		err := c.do(ours, token, letters)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Tries at once are no more than tries one after the other.
func TestTriesAtOnce(t *testing.T) {
	c := New(secrets("s"), noon)
	token := c.Ask(noon, mine).Token
	right, _ := answers(t, c, token)
	results := make(chan error, 50)
	for range 50 {
		go func() { results <- check(c, noon, mine, token, right) }()
	}
	passed := 0
	for range 50 {
		if <-results == nil {
			passed++
		}
	}
	if passed != 1 {
		t.Errorf("%d of 50 pass with one picture", passed)
	}
}

// The same token is always the same picture and the same sound; another's are others.
func TestDrawing(t *testing.T) {
	c := New(secrets("s"), noon)
	one, two := c.Ask(noon, mine), c.Ask(noon, mine)
	if one.Length != Length || one.SoundLength != SoundLength || one.Provider != "picture" {
		t.Errorf("%+v", one)
	}
	first, err := c.Picture(noon, one.Token)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := New(secrets("s"), noon).Picture(noon.Add(time.Minute), one.Token)
	second, _ := c.Picture(noon, two.Token)
	if !bytes.Equal(first, again) || bytes.Equal(first, second) {
		t.Error("a token is not one picture")
	}
	img, err := png.Decode(bytes.NewReader(first))
	if err != nil || img.Bounds().Dx() != Width || img.Bounds().Dy() != Height || len(first) > 64<<10 {
		t.Errorf("%v, %v, %d bytes", err, img.Bounds(), len(first))
	}
	sound, err := c.Sound(noon, one.Token)
	if err != nil || len(sound) < 44 || string(sound[:4]) != "RIFF" || int(binary.LittleEndian.Uint32(sound[40:])) != len(sound)-44 {
		t.Fatalf("%v, %d bytes", err, len(sound))
	}
	if seconds := float64(len(sound)-44) / 2 / sampleRate; seconds < 3 || seconds > 9 {
		t.Errorf("the sound lasts %.1f s", seconds)
	}
	soundAgain, _ := c.Sound(noon, one.Token)
	if !bytes.Equal(sound, soundAgain) {
		t.Error("a token is not one sound")
	}
	for _, f := range []func(time.Time, string) ([]byte, error){c.Picture, c.Sound} {
		for name, token := range map[string]string{"none": "", "too long": one.Token + "A", "changed": "B" + one.Token[1:], "another mac": one.Token[:len(one.Token)-2] + "AA"} {
			if _, err := f(noon, token); fault.CodeOf(err) != fault.PersonRequired {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Gaps do not tell the letters apart: the lines go through all columns, and letters mostly touch without them, too.
func TestNoGapsBetweenLetters(t *testing.T) {
	touch, all := 0, 0
	for seed := range uint64(40) {
		r := random.New(random.NewPCG(seed, 1))
		img, err := png.Decode(bytes.NewReader(draw(pick(r, alphabet, Length), r)))
		if err != nil {
			t.Fatal(err)
		}
		p := img.(*image.Paletted)
		for x := range Width {
			dark := 0
			for y := range Height {
				if p.ColorIndexAt(x, y) > shades*3/4 {
					dark++
				}
			}
			if dark == 0 {
				t.Fatalf("picture %d: column %d is empty", seed, x)
			}
			if x > 40 && x < Width-40 {
				if all++; float64(dark) > 2*(stroke+1) { // more than the two lines
					touch++
				}
			}
		}
	}
	if touch < all/2 {
		t.Errorf("only %d of %d columns have a letter's ink", touch, all)
	}
}

// Each letter has strokes inside its box, and no two letters are the same.
func TestGlyphs(t *testing.T) {
	if len(glyphs) != len(alphabet) {
		t.Errorf("%d glyphs of %d letters", len(glyphs), len(alphabet))
	}
	seen := map[string]byte{}
	for i := range len(alphabet) {
		c := alphabet[i]
		if same, twice := seen[glyphs[c]]; twice {
			t.Errorf("%c is drawn as %c", c, same)
		}
		seen[glyphs[c]] = c
		all := strokesOf(c)
		if len(all) == 0 {
			t.Errorf("%c has no strokes", c)
		}
		for _, s := range all {
			for _, p := range []point{s.a, s.b} {
				if math.Abs(p.x) > 0.5 || math.Abs(p.y) > 0.51 {
					t.Errorf("%c reaches out of its box: %v", c, p)
				}
			}
		}
	}
}

// Each digit can be heard: it has its length, is no silence, and is not clipped.
func TestVoice(t *testing.T) {
	for d := byte('0'); d <= '9'; d++ {
		for seed := range uint64(5) {
			b := speak(string(d), random.New(random.NewPCG(seed, 1)))
			var loud, clipped, n int
			for i := 44; i+1 < len(b); i += 2 {
				x := int16(binary.LittleEndian.Uint16(b[i:]))
				if n++; x > 3_000 || x < -3_000 {
					loud++
				}
				if x > 31_900 || x < -31_900 {
					clipped++
				}
			}
			if loud < sampleRate/30 || clipped > n/1000 {
				t.Errorf("%c: %d of %d samples are loud, %d are clipped", d, loud, n, clipped)
			}
		}
	}
}

func FuzzToken(f *testing.F) {
	c := New(secrets("s"), noon)
	good := c.Ask(noon, mine).Token
	for _, s := range []string{"", good, good[1:], good + "=", strings.Repeat("A", len(good))} {
		f.Add(s, "abc")
	}
	f.Fuzz(func(t *testing.T, token, answer string) {
		fresh := New(secrets("s"), noon)
		if _, err := fresh.read(noon, token); err == nil && token != good && len(token) != len(good) {
			t.Errorf("%q is read", token)
		}
		if err := check(fresh, noon, mine, token, answer); err != nil && fault.CodeOf(err) != fault.PersonRequired {
			t.Errorf("%q: %v", token, err)
		}
	})
}

func BenchmarkPicture(b *testing.B) {
	c := New(secrets("s"), noon)
	token := c.Ask(noon, mine).Token
	for b.Loop() {
		if _, err := c.Picture(noon, token); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSound(b *testing.B) {
	c := New(secrets("s"), noon)
	token := c.Ask(noon, mine).Token
	for b.Loop() {
		if _, err := c.Sound(noon, token); err != nil {
			b.Fatal(err)
		}
	}
}
