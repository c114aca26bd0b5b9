package beacon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"onsale/internal/waitingroom"
)

var genesis = time.Date(2027, 3, 1, 10, 0, 0, 0, time.UTC)

const signature = "a1b2c3"

func randomness() string {
	raw, _ := hex.DecodeString(signature)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// stand is a stand-in for a beacon.
func stand(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) (*Beacon, *int, *time.Time) {
	t.Helper()
	asked, now := 0, genesis
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++; answer(w, r) }))
	t.Cleanup(server.Close)
	b, err := New([]Source{{Name: "quick", URL: server.URL + "/public/{round}", Genesis: genesis, Period: 3 * time.Second}}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b, &asked, &now
}

func TestAValueIsThereFromItsTimeOn(t *testing.T) {
	b, asked, now := stand(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/public/101" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		fmt.Fprintf(w, `{"round":101,"randomness":%q,"signature":%q}`, strings.ToUpper(randomness()), signature)
	})
	at := genesis.Add(300 * time.Second)
	*now = at.Add(-time.Millisecond)
	if _, _, err := b.Value(t.Context(), "beacon: quick 101"); !errors.Is(err, waitingroom.ErrNoValue) || *asked != 0 {
		t.Errorf("before its time: %v, asked %d times", err, *asked)
	}
	*now = at
	value, public, err := b.Value(t.Context(), "beacon: quick 101")
	if err != nil || value != randomness() || !public.Equal(at) {
		t.Errorf("%q, %s, %v", value, public, err)
	}
}

func TestOtherSourcesAreNotFetched(t *testing.T) {
	b, asked, now := stand(t, func(http.ResponseWriter, *http.Request) {})
	*now = genesis.Add(time.Hour)
	for _, source := range []string{"", "none", "organizer: the lottery", "beacon quick 1", "beacon: quick 0", "beacon: quick 999999999999999999"} {
		if _, _, err := b.Value(t.Context(), source); !errors.Is(err, waitingroom.ErrNoValue) {
			t.Errorf("%q: %v", source, err)
		}
	}
	if _, _, err := b.Value(t.Context(), "beacon: other 1"); err == nil || errors.Is(err, waitingroom.ErrNoValue) {
		t.Errorf("a beacon that nobody knows: %v", err)
	}
	if *asked != 0 {
		t.Errorf("asked %d times", *asked)
	}
}

func TestWrongAnswersAreNoValues(t *testing.T) {
	other := strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		status int
		body   string
		late   bool // it is worth asking again
	}{
		"not there yet":     {404, `{}`, true},
		"too early":         {425, ``, true},
		"busy":              {503, ``, true},
		"moved":             {302, ``, false},
		"broken":            {500, ``, false},
		"no JSON":           {200, `<html>`, false},
		"another round":     {200, fmt.Sprintf(`{"round":2,"randomness":%q}`, other), false},
		"no randomness":     {200, `{"round":1}`, false},
		"short":             {200, `{"round":1,"randomness":"ab"}`, false},
		"another signature": {200, fmt.Sprintf(`{"round":1,"randomness":%q,"signature":%q}`, other, signature), false},
		"long":              {200, `{"round":1,"randomness":"` + strings.Repeat("a", AnswerBytesMax) + `"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, _ := stand(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			})
			value, _, err := b.Value(t.Context(), "beacon: quick 1")
			if err == nil || errors.Is(err, waitingroom.ErrNoValue) != c.late {
				t.Errorf("%q, %v", value, err)
			}
		})
	}
	// Without a signature the randomness is taken as it is.
	b, _, _ := stand(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, `{"round":1,"randomness":%q}`, other) })
	if value, _, err := b.Value(t.Context(), "beacon: quick 1"); err != nil || value != other {
		t.Errorf("%q, %v", value, err)
	}
}

func TestSourcesAreChecked(t *testing.T) {
	good := Source{Name: "quick", URL: "https://beacon.example/public/{round}", Genesis: genesis, Period: time.Second}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Source){
		"name":    func(s *Source) { s.Name = "Quick Net" },
		"no name": func(s *Source) { s.Name = "" },
		"plain":   func(s *Source) { s.URL = "http://beacon.example/{round}" },
		"round":   func(s *Source) { s.URL = "https://beacon.example/latest" },
		"no URL":  func(s *Source) { s.URL = "{round}" },
		"genesis": func(s *Source) { s.Genesis = time.Time{} },
		"period":  func(s *Source) { s.Period = 0 },
	} {
		bad := good
		change(&bad)
		if err := bad.Check(); err == nil {
			t.Errorf("%s: %+v is accepted", name, bad)
		}
	}
	if _, err := New([]Source{good, good}, nil); err == nil {
		t.Error("two of one name are accepted")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(`{"round":1,"randomness":%q,"signature":%q}`, randomness(), signature)))
	f.Add([]byte(`{"round":1,"randomness":"zz"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if value, err := read(body, 1); err == nil && len(value) != 2*valueBytes {
			t.Errorf("%q is read as %q", body, value)
		}
	})
}
