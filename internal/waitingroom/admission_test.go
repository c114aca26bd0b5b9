package waitingroom

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/keys"
	"onsale/internal/ledger"
)

const issuerOfTest = "https://tickets.example"

var nowOfTest = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func sessionOfTest() *ledger.Session {
	return &ledger.Session{ID: 1 << 40, Event: 2 << 40, Customer: 3 << 40, Expires: ledger.TimeOf(nowOfTest.Add(10 * time.Minute))}
}

func admitterAt(ring Keys, at *time.Time) *admitter {
	return newAdmitter(ring, issuerOfTest, 5*time.Second, func() time.Time { return *at })
}

func TestAdmissionToken(t *testing.T) {
	ring, at := newRing(t), nowOfTest
	a := admitterAt(ring, &at)
	token, err := a.sign(sessionOfTest(), at)
	if err != nil {
		t.Fatal(err)
	}
	want := admission{event: 2 << 40, customer: 3 << 40, session: 1 << 40}
	if got, err := a.read(t.Context(), token); err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	at = nowOfTest.Add(10*time.Minute + 4*time.Second) // the clocks of two nodes differ
	if got, err := a.read(t.Context(), token); err != nil || got != want {
		t.Fatalf("within the leeway: %+v, %v", got, err)
	}
	at = nowOfTest.Add(10*time.Minute + 6*time.Second)
	if _, err := a.read(t.Context(), token); fault.CodeOf(err) != fault.AdmissionExpired {
		t.Fatalf("too late: %v", err)
	}
	at = nowOfTest.Add(-time.Minute)
	if _, err := a.read(t.Context(), token); fault.CodeOf(err) != fault.NotAdmitted {
		t.Fatalf("before it was made: %v", err)
	}
	// Tokens signed before a rotation go on.
	at = nowOfTest
	if _, err := ring.Rotate(t.Context(), keys.Admission); err != nil {
		t.Fatal(err)
	}
	if got, err := a.read(t.Context(), token); err != nil || got != want {
		t.Fatalf("after a rotation: %+v, %v", got, err)
	}
}

// A forger knows all public keys and the form of everything.
type forger struct {
	header map[string]any
	claims map[string]any
	sign   func(text []byte) []byte
}

func (f *forger) token() string {
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := part(f.header) + "." + part(f.claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(f.sign([]byte(text)))
}

// E4: one algorithm, one kind, one issuer, one audience, an end; and nothing but our keys.
func TestAdmissionTokenTricks(t *testing.T) {
	ring, at := newRing(t), nowOfTest
	a := admitterAt(ring, &at)
	key, err := ring.Active(keys.Admission)
	if err != nil {
		t.Fatal(err)
	}
	ticketKey, err := ring.Active(keys.Ticket)
	if err != nil {
		t.Fatal(err)
	}
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	ours := func(text []byte) []byte { return ed25519.Sign(key.Private(), text) }
	fresh := func() *forger {
		return &forger{
			header: map[string]any{"alg": "EdDSA", "typ": AdmissionTyp, "kid": key.KID},
			claims: map[string]any{
				"iss": issuerOfTest, "aud": id.ID(2 << 40).Text(id.Event), "sub": id.ID(3 << 40).Text(id.Customer),
				"sid": id.ID(1 << 40).Text(id.Session), "iat": at.Unix(), "exp": at.Add(time.Minute).Unix(),
			},
			sign: ours,
		}
	}
	if _, err := a.read(t.Context(), fresh().token()); err != nil {
		t.Fatalf("the forger's form is not ours: %v", err)
	}
	public := key.PublicKey()
	tricks := map[string]func(f *forger){
		"alg none":            func(f *forger) { f.header["alg"], f.sign = "none", func([]byte) []byte { return nil } },
		"alg None":            func(f *forger) { f.header["alg"], f.sign = "None", func([]byte) []byte { return nil } },
		"no alg":              func(f *forger) { delete(f.header, "alg") },
		"HMAC with the key":   func(f *forger) { f.header["alg"], f.sign = "HS256", hmacWith(public) },
		"another algorithm":   func(f *forger) { f.header["alg"] = "ES256" },
		"alg in small":        func(f *forger) { f.header["alg"] = "eddsa" },
		"a stranger's key":    func(f *forger) { f.sign = func(b []byte) []byte { return ed25519.Sign(stranger, b) } },
		"no signature":        func(f *forger) { f.sign = func([]byte) []byte { return nil } },
		"a key in the header": func(f *forger) { f.header["jwk"] = map[string]string{"kty": "OKP"} },
		"crit":                func(f *forger) { f.header["crit"] = []string{"exp"} },
		"a ticket's key": func(f *forger) {
			f.header["kid"], f.sign = ticketKey.KID, func(b []byte) []byte { return ed25519.Sign(ticketKey.Private(), b) }
		},
		"an unknown key": func(f *forger) { f.header["kid"] = "00000000" },
		"no kid":         func(f *forger) { delete(f.header, "kid") },
		"a path as kid":  func(f *forger) { f.header["kid"] = "../../etc" },
		"another kind":   func(f *forger) { f.header["typ"] = "JWT" },
		"no kind":        func(f *forger) { delete(f.header, "typ") },
		"another issuer": func(f *forger) { f.claims["iss"] = "https://evil.example" },
		"no issuer":      func(f *forger) { delete(f.claims, "iss") },
		"no end":         func(f *forger) { delete(f.claims, "exp") },
		"two audiences": func(f *forger) {
			f.claims["aud"] = []string{id.ID(2 << 40).Text(id.Event), id.ID(9 << 40).Text(id.Event)}
		},
		"no audience":        func(f *forger) { delete(f.claims, "aud") },
		"a customer's aud":   func(f *forger) { f.claims["aud"] = id.ID(3 << 40).Text(id.Customer) },
		"no session":         func(f *forger) { delete(f.claims, "sid") },
		"a session of zero":  func(f *forger) { f.claims["sid"] = "ses_0000000000000" },
		"no customer":        func(f *forger) { delete(f.claims, "sub") },
		"not good yet":       func(f *forger) { f.claims["nbf"] = at.Add(time.Minute).Unix() },
		"made in the future": func(f *forger) { f.claims["iat"] = at.Add(time.Minute).Unix() },
	}
	for name, trick := range tricks {
		f := fresh()
		trick(f)
		if got, err := a.read(t.Context(), f.token()); fault.CodeOf(err) != fault.NotAdmitted {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	good := fresh().token()
	for name, text := range map[string]string{
		"nothing": "", "two parts": good[:strings.LastIndex(good, ".")], "four parts": good + ".x", "padded": good + "=",
		"long": good + strings.Repeat("A", TokenBytesMax), "a line break": good + "\n", "a queue ticket": mustSign(t, &sealer{keys: ring}),
	} {
		if got, err := a.read(t.Context(), text); fault.CodeOf(err) != fault.NotAdmitted {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func hmacWith(secret []byte) func([]byte) []byte {
	return func(text []byte) []byte {
		h := hmac.New(sha256.New, secret)
		h.Write(text)
		return h.Sum(nil)
	}
}

func FuzzAdmissionToken(f *testing.F) {
	ring, at := newRing(f), nowOfTest
	a := admitterAt(ring, &at)
	good, err := a.sign(sessionOfTest(), at)
	if err != nil {
		f.Fatal(err)
	}
	parts := strings.Split(good, ".")
	f.Add(parts[0], parts[1], parts[2])
	f.Add("", "", "")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)), parts[1], "")
	f.Fuzz(func(t *testing.T, header, claims, signature string) {
		text := header + "." + claims + "." + signature
		if got, err := a.read(context.Background(), text); err == nil && text != good {
			t.Fatalf("%q admits %+v", text, got)
		}
	})
}

// The keys of queue tickets are no keys of admission, and no secret is public.
func TestJWKS(t *testing.T) {
	ring := newRing(t)
	s := Service{o: Options{Keys: ring}}
	text, err := s.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	active, err := ring.Active(keys.Admission)
	if err != nil || len(set.Keys) != 1 || set.Keys[0]["kid"] != active.KID || set.Keys[0]["d"] != "" {
		t.Fatalf("%s, %v (%v)", text, err, maps.Keys(set.Keys[0]))
	}
}
