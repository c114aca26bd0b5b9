package ticket

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/skip2/go-qrcode"
	"pgregory.net/rapid"

	"onsale/internal/keys"
	"onsale/internal/keys/keystest"
)

func keyPair(kid string, fill byte, test bool) (Key, PublicKeys) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{fill}, ed25519.SeedSize))
	return Key{KID: kid, Private: private, Test: test}, PublicKeys{kid: {Key: private.Public().(ed25519.PublicKey), Test: test}}
}

// golden are codes that doors already have on paper: they must be read for ever, and be made alike.
var golden = []struct {
	ticket Ticket
	text   string
}{
	{Ticket{ID: 0x0123456789ABCDEF, EventID: 42, Index: 49_999}, "V50CE00IM5ZDTK404DGWLT9U000000000.D5F40J4AM/NHOBR+R6ZAQ 5Y-8LGUQ7TGB2L0RDBIGQR4Q1+RRO2I-P5D*5H$UI/MSSN*0LN1A87DTRO3RCJ%BV:B/IR RH1/9:AOB0"},
	{Ticket{ID: 1, EventID: math.MaxInt64, Index: 3, Area: true}, "X50CE00IM4ZD000000000N80FGWFGWFGWUAW000BK0492+IV+Y4GLHVJUI%9$AIS+TD CB5029L8SS630XWB-YOSX8*R7 D3HALHOML77J3QOWGZ1DLX1RRM: 7QR3MD896533WB0"},
}

func TestGolden(t *testing.T) {
	key, public := keyPair("0A1B2C3D", 1, false)
	for _, g := range golden {
		text, err := Sign(key, g.ticket)
		if err != nil || text != g.text {
			t.Errorf("%+v: %q, %v; want %q", g.ticket, text, err, g.text)
		}
		if got, err := Verify(g.text, public); err != nil || got != g.ticket {
			t.Errorf("%q: %+v, %v", g.text, got, err)
		}
	}
}

func TestSignVerify(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		test := rapid.Bool().Draw(r, "test")
		key, public := keyPair("ZZZZZZZ0", 2, test)
		want := Ticket{ID: rapid.Int64Range(1, math.MaxInt64).Draw(r, "id"), EventID: rapid.Int64Range(1, math.MaxInt64).Draw(r, "event"),
			Index: rapid.Int32Range(0, math.MaxInt32).Draw(r, "index"), Area: rapid.Bool().Draw(r, "area"), Test: test}
		text, err := Sign(key, want)
		if err != nil {
			r.Fatal(err)
		}
		if got, err := Verify(text, public); err != nil || got != want {
			r.Fatalf("%+v, %v; want %+v", got, err, want)
		}
		// Whatever single character is changed, it is no ticket any more.
		i := rapid.IntRange(0, len(text)-1).Draw(r, "position")
		c := digits45[rapid.IntRange(0, 44).Draw(r, "character")]
		if changed := text[:i] + string(c) + text[i+1:]; changed != text {
			if got, err := Verify(changed, public); err == nil || got != (Ticket{}) {
				r.Fatalf("%q was taken: %+v, %v", changed, got, err)
			}
		}
	})
}

func TestVerifyRefuses(t *testing.T) {
	key, public := keyPair("0A1B2C3D", 1, false)
	_, other := keyPair("0A1B2C3D", 2, false)
	text, err := Sign(key, Ticket{ID: 7, EventID: 8, Index: 9})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := decode(text)
	resigned := func(change func(content []byte)) string {
		content := bytes.Clone(b[:contentSize])
		change(content)
		return encode(append(content, ed25519.Sign(key.Private, signed(content))...))
	}
	bare := encode(append(bytes.Clone(b[:contentSize]), ed25519.Sign(key.Private, b[:contentSize])...))
	for name, c := range map[string]struct {
		text   string
		public PublicKeys
		want   error
	}{
		"empty":                     {"", public, ErrFormat},
		"short":                     {text[:len(text)-3], public, ErrFormat},
		"long":                      {text + "000", public, ErrFormat},
		"small letters":             {strings.ToLower(text), public, ErrFormat},
		"other version":             {resigned(func(c []byte) { c[0] = 2 }), public, ErrVersion},
		"no keys":                   {text, nil, ErrUnknownKey},
		"other key, same name":      {text, other, ErrSignature},
		"signature of content only": {bare, public, ErrSignature},
		"unknown flag":              {resigned(func(c []byte) { c[1] = 4 }), public, ErrFormat},
		"ticket 0":                  {resigned(func(c []byte) { clear(c[7:15]) }), public, ErrFormat},
		"negative event":            {resigned(func(c []byte) { c[15] = 0x80 }), public, ErrFormat},
		"negative index":            {resigned(func(c []byte) { c[23] = 0x80 }), public, ErrFormat},
		"E1: TEST by a real key":    {resigned(func(c []byte) { c[1] |= flagTest }), public, ErrMark},
	} {
		if got, err := Verify(c.text, c.public); !errors.Is(err, c.want) || got != (Ticket{}) {
			t.Errorf("%s: %+v, %v; want %v", name, got, err, c.want)
		}
	}

	testKey, testPublic := keyPair("TESTKEY0", 3, true)
	if _, err := Sign(testKey, Ticket{ID: 7, EventID: 8, Index: 9}); !errors.Is(err, ErrMark) {
		t.Errorf("E1: a test key signed a real ticket: %v", err)
	}
	if _, err := Sign(key, Ticket{ID: 7, EventID: 8, Index: 9, Test: true}); !errors.Is(err, ErrMark) {
		t.Errorf("E1: a real key signed a test ticket: %v", err)
	}
	forged, err := Sign(Key{KID: testKey.KID, Private: testKey.Private}, Ticket{ID: 7, EventID: 8, Index: 9})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(forged, testPublic); !errors.Is(err, ErrMark) {
		t.Errorf("E1: a real ticket by a test key was taken: %v", err)
	}
	for name, k := range map[string]Key{"no key": {KID: "0A1B2C3D"}, "long kid": {KID: "0A1B2C3D4", Private: key.Private}, "I in kid": {KID: "IIIIIIII", Private: key.Private}} {
		if _, err := Sign(k, Ticket{ID: 7, EventID: 8, Index: 9}); err == nil {
			t.Errorf("%s signed", name)
		}
	}
	for _, bad := range []Ticket{{EventID: 1}, {ID: 1}, {ID: -1, EventID: 1}, {ID: 1, EventID: 1, Index: -1}} {
		if _, err := Sign(key, bad); err == nil {
			t.Errorf("%+v was signed", bad)
		}
	}
}

func TestRingKeys(t *testing.T) {
	m, err := keys.NewMaster(bytes.Repeat([]byte{9}, keys.MasterBytes))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keys.Load(t.Context(), &keystest.Memory{}, m, keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := SigningKey(ring, false); !errors.Is(err, keys.ErrNone) {
		t.Fatalf("key of an empty ring: %v", err)
	}
	codes := map[Ticket]string{}
	for _, test := range []bool{false, true} {
		if _, err := ring.EnsureActive(t.Context(), purpose(test)); err != nil {
			t.Fatal(err)
		}
		k, err := SigningKey(ring, test)
		if err != nil {
			t.Fatal(err)
		}
		ticket := Ticket{ID: 1, EventID: 2, Index: 3, Test: test}
		if codes[ticket], err = Sign(k, ticket); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ring.Rotate(t.Context(), keys.Ticket); err != nil {
		t.Fatal(err)
	}
	for want, text := range codes { // E3: also by the old key
		if got, err := Verify(text, CheckingKeys(ring)); err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
}

func TestPNG(t *testing.T) {
	key, _ := keyPair("0A1B2C3D", 1, false)
	text, err := Sign(key, Ticket{ID: math.MaxInt64, EventID: math.MaxInt64, Index: math.MaxInt32})
	if err != nil {
		t.Fatal(err)
	}
	picture, err := PNG(text, 320)
	if err != nil {
		t.Fatal(err)
	}
	image, err := png.Decode(bytes.NewReader(picture))
	if err != nil || image.Bounds().Dx() != 320 || image.Bounds().Dy() != 320 {
		t.Fatalf("%v, %v", image.Bounds(), err)
	}
	code, err := qrcode.New(text, qrcode.Medium)
	if err != nil || code.VersionNumber != 6 {
		t.Fatalf("a code of version %d, %v; base45 was chosen for 6", code.VersionNumber, err)
	}
	for _, pixels := range []int{-1, 0, PixelsMin - 1, PixelsMax + 1} {
		if _, err := PNG(text, pixels); err == nil {
			t.Errorf("a picture of %d pixels", pixels)
		}
	}
	if _, err := PNG("HTTP://EVIL.EXAMPLE", 320); !errors.Is(err, ErrFormat) {
		t.Errorf("a picture of another text: %v", err)
	}
}

func TestBase45(t *testing.T) {
	for plain, want := range map[string]string{"AB": "BB8", "Hello!!": "%69 VD92EX0", "base-45": "UJCLQE7W581", "ietf!": "QED8WEX0", "": ""} {
		if got := encode([]byte(plain)); got != want { // the examples of RFC 9285
			t.Errorf("%q: %q, want %q", plain, got, want)
		}
		if got, ok := decode(want); !ok || string(got) != plain {
			t.Errorf("%q: %q, %v", want, got, ok)
		}
	}
	for _, bad := range []string{"A", "GGW", ":::", "::", "bb8", "BB8A", "é00"} {
		if got, ok := decode(bad); ok {
			t.Errorf("%q was read as %q", bad, got)
		}
	}
}

// FuzzVerify: nothing crashes it, and what is taken is exactly what Sign makes.
func FuzzVerify(f *testing.F) {
	key, public := keyPair("0A1B2C3D", 1, false)
	for _, g := range golden {
		f.Add(g.text)
	}
	f.Add("")
	f.Add("BB8")
	f.Add(strings.Repeat(":", 137))
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Verify(text, public)
		if err != nil {
			if got != (Ticket{}) {
				t.Fatalf("%+v beside %v", got, err)
			}
			return
		}
		if again, err := Sign(key, got); err != nil || again != text {
			t.Fatalf("%q was taken; the ticket's code is %q, %v", text, again, err)
		}
	})
}
