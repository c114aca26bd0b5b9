package identity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// memory is a Store in memory, which counts.
type memory struct {
	mu    sync.Mutex
	known map[Named]id.ID
	made  int
	reads int
	err   error
}

func (m *memory) Customer(_ context.Context, who Named) (id.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	if m.err != nil {
		return 0, m.err
	}
	if customer, ok := m.known[who]; ok {
		return customer, nil
	}
	return 0, ErrUnknown
}

func (m *memory) PutCustomer(_ context.Context, who Named, candidate id.ID) (id.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if customer, ok := m.known[who]; ok {
		return customer, nil
	}
	m.made++
	m.known[who] = candidate
	return candidate, nil
}

var now = time.Date(2027, 3, 1, 10, 0, 0, 0, time.UTC)

func verifier(t testing.TB, store *memory, issuers ...Issuer) *Verifier {
	t.Helper()
	store.known = map[Named]id.ID{}
	v, err := New(Options{Issuers: issuers, Store: store, NewID: id.NewGenerator(0, time.Now, 0, nil).Next, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// signed is a token with what a test wants in it.
func signed(t testing.TB, method jwt.SigningMethod, key any, header map[string]any, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	for k, v := range header {
		if token.Header[k] = v; v == nil {
			delete(token.Header, k)
		}
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestThrowawayTokensAreBelieved(t *testing.T) {
	store := &memory{}
	issuer, err := NewThrowaway()
	if err != nil {
		t.Fatal(err)
	}
	v := verifier(t, store, issuer.Issuer())
	token, err := issuer.Mint("ann", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	first, err := v.Authenticate(t.Context(), token)
	if err != nil || first.ID == 0 || !first.Expires.Equal(now.Add(time.Hour)) {
		t.Fatalf("%+v, %v", first, err)
	}
	another, err := issuer.Mint("ann", now, 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := v.Authenticate(t.Context(), another); err != nil || again.ID != first.ID {
		t.Errorf("another token of the same person: %+v, %v", again, err)
	}
	bob, err := issuer.Mint("bob", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := v.Authenticate(t.Context(), bob); err != nil || c.ID == first.ID {
		t.Errorf("bob is ann: %+v, %v", c, err)
	}
	if store.made != 2 || store.reads != 2 {
		t.Errorf("%d customers made and %d reads, want 2 and 2", store.made, store.reads)
	}
}

func TestOneCustomerHoweverManyAtOnce(t *testing.T) {
	store := &memory{}
	issuer, err := NewThrowaway()
	if err != nil {
		t.Fatal(err)
	}
	v := verifier(t, store, issuer.Issuer())
	var wg sync.WaitGroup
	for i := range 200 {
		token, err := issuer.Mint("ann", now, time.Hour+time.Duration(i)*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if _, err := v.Authenticate(context.Background(), token); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if store.made != 1 {
		t.Errorf("%d customers made", store.made)
	}
}

func TestE4WhatIsNotNamedBeforehandIsNotBelieved(t *testing.T) {
	throwaway, err := NewThrowaway()
	if err != nil {
		t.Fatal(err)
	}
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := func() jwt.MapClaims {
		return jwt.MapClaims{"iss": ThrowawayIssuer, "aud": ThrowawayAudience, "sub": "ann", "exp": now.Add(time.Hour).Unix()}
	}
	header := map[string]any{"typ": ThrowawayTyp, "kid": throwawayKID}
	with := func(key string, value any) jwt.MapClaims {
		c := good()
		if c[key] = value; value == nil {
			delete(c, key)
		}
		return c
	}
	headerWith := func(key string, value any) map[string]any {
		return map[string]any{"typ": ThrowawayTyp, "kid": throwawayKID, key: value}
	}
	ours := func(header map[string]any, c jwt.MapClaims) string {
		return signed(t, jwt.SigningMethodEdDSA, throwaway.key, header, c)
	}
	whole := ours(header, good())
	parts := strings.Split(whole, ".")
	for what, token := range map[string]string{
		"an admission token":      ours(headerWith("typ", "admission+jwt"), good()),
		"a queue token":           ours(headerWith("typ", "queue+jwt"), good()),
		"plain JWT":               ours(headerWith("typ", "JWT"), good()),
		"no typ":                  ours(headerWith("typ", nil), good()),
		"typ is no text":          ours(headerWith("typ", 7), good()),
		"another kid":             ours(headerWith("kid", "other"), good()),
		"no kid":                  ours(headerWith("kid", nil), good()),
		"crit":                    ours(headerWith("crit", []string{"b64"}), good()),
		"another audience":        ours(header, with("aud", "elsewhere")),
		"no audience":             ours(header, with("aud", nil)),
		"another issuer":          ours(header, with("iss", "https://elsewhere")),
		"no issuer":               ours(header, with("iss", nil)),
		"expired":                 ours(header, with("exp", now.Add(-time.Second).Unix())),
		"expires now":             ours(header, with("exp", now.Unix())),
		"never expires":           ours(header, with("exp", nil)),
		"absurd expiry":           ours(header, with("exp", math.MaxFloat64)),
		"not yet":                 ours(header, with("nbf", now.Add(time.Minute).Unix())),
		"issued tomorrow":         ours(header, with("iat", now.Add(24*time.Hour).Unix())),
		"lasts two years":         ours(header, jwt.MapClaims{"iss": ThrowawayIssuer, "aud": ThrowawayAudience, "sub": "a", "iat": now.Unix(), "exp": now.Add(2 * 366 * 24 * time.Hour).Unix()}),
		"no sub":                  ours(header, with("sub", nil)),
		"empty sub":               ours(header, with("sub", "")),
		"sub with NUL":            ours(header, with("sub", "a\x00b")),
		"long sub":                ours(header, with("sub", strings.Repeat("a", SubBytesMax+1))),
		"a stranger's key":        signed(t, jwt.SigningMethodEdDSA, stranger, header, good()),
		"alg none":                signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, header, good()),
		"HMAC with the public":    signed(t, jwt.SigningMethodHS256, []byte(throwaway.key.Public().(ed25519.PublicKey)), header, good()),
		"another algorithm":       signed(t, jwt.SigningMethodRS256, rsaKey, header, good()),
		"no signature":            parts[0] + "." + parts[1] + ".",
		"another's signature":     parts[0] + "." + strings.Split(ours(header, with("sub", "bob")), ".")[1] + "." + parts[2],
		"padded":                  whole + "=",
		"a space":                 " " + whole,
		"longer than it may be":   ours(header, with("x", strings.Repeat("x", TokenBytesMax))),
		"no JWT":                  "hello",
		"dots":                    "..",
		"an encrypted one":        "a.b.c.d.e",
		"something after the dot": whole + ".x",
	} {
		t.Run(what, func(t *testing.T) {
			store := &memory{}
			v := verifier(t, store, throwaway.Issuer())
			c, err := v.Authenticate(t.Context(), token)
			if fault.CodeOf(err) != fault.TokenInvalid {
				t.Errorf("%+v, %v; want token_invalid", c, err)
			}
			if store.made != 0 || store.reads != 0 {
				t.Error("the store was asked")
			}
		})
	}
	// The negative control: with nothing wrong, it is believed.
	if _, err := verifier(t, &memory{}, throwaway.Issuer()).Authenticate(t.Context(), whole); err != nil {
		t.Errorf("the good token: %v", err)
	}
}

func TestAnEarlierBeliefDoesNotOutliveTheToken(t *testing.T) {
	issuer, err := NewThrowaway()
	if err != nil {
		t.Fatal(err)
	}
	at := now
	v, err := New(Options{Issuers: []Issuer{issuer.Issuer()}, Store: &memory{known: map[Named]id.ID{}},
		NewID: id.NewGenerator(0, time.Now, 0, nil).Next, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	token, err := issuer.Mint("ann", now, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Authenticate(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	at = now.Add(10 * time.Second)
	if _, err := v.Authenticate(t.Context(), token); fault.CodeOf(err) != fault.TokenInvalid {
		t.Errorf("after its end: %v", err)
	}
}

func TestEachAlgorithm(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuers := []Issuer{
		{Name: "r", Audience: "a", Algorithm: "RS256", Keys: OneKey{Public: rsaKey.Public()}, Leeway: time.Minute},
		{Name: "e", Audience: "a", Algorithm: "ES256", Typ: "at+jwt", Keys: OneKey{Public: ecKey.Public()}},
	}
	v := verifier(t, &memory{}, issuers...)
	claims := func(issuer string, after time.Duration) jwt.MapClaims {
		return jwt.MapClaims{"iss": issuer, "aud": []string{"b", "a"}, "sub": "x", "exp": now.Add(after).Unix()}
	}
	for what, token := range map[string]string{
		"RS256":             signed(t, jwt.SigningMethodRS256, rsaKey, nil, claims("r", time.Hour)),
		"within the leeway": signed(t, jwt.SigningMethodRS256, rsaKey, nil, claims("r", -30*time.Second)),
		"ES256":             signed(t, jwt.SigningMethodES256, ecKey, map[string]any{"typ": "application/AT+JWT"}, claims("e", time.Hour)),
	} {
		if _, err := v.Authenticate(t.Context(), token); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	// One issuer's key does not speak for another.
	if _, err := v.Authenticate(t.Context(), signed(t, jwt.SigningMethodRS256, rsaKey, nil, claims("e", time.Hour))); err == nil {
		t.Error("r spoke for e")
	}
}

func TestTroubleOfOursIsNotTheTokens(t *testing.T) {
	issuer, err := NewThrowaway()
	if err != nil {
		t.Fatal(err)
	}
	token, err := issuer.Mint("ann", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	store := &memory{err: errors.New("away")}
	if _, err := verifier(t, store, issuer.Issuer()).Authenticate(t.Context(), token); err == nil || fault.CodeOf(err) == fault.TokenInvalid {
		t.Errorf("with the store away: %v", err)
	}
	i := issuer.Issuer()
	i.Keys = awayKeys{}
	if _, err := verifier(t, &memory{}, i).Authenticate(t.Context(), token); fault.CodeOf(err) != fault.Busy {
		t.Errorf("with the keys away: %v", err)
	}
	if _, err := verifier(t, &memory{}, i).Authenticate(t.Context(), ""); fault.CodeOf(err) != fault.SignInRequired {
		t.Errorf("without a token: %v", err)
	}
}

type awayKeys struct{}

func (awayKeys) Key(context.Context, string) (crypto.PublicKey, error) {
	return nil, errors.New("away")
}

func TestIssuersThatCannotBeTrustedAreRefused(t *testing.T) {
	good := Issuer{Name: "n", Audience: "a", Algorithm: "EdDSA", Keys: OneKey{}}
	for what, change := range map[string]func(*Issuer){
		"no name":      func(i *Issuer) { i.Name = "" },
		"no audience":  func(i *Issuer) { i.Audience = "" },
		"none":         func(i *Issuer) { i.Algorithm = "none" },
		"HMAC":         func(i *Issuer) { i.Algorithm = "HS256" },
		"no keys":      func(i *Issuer) { i.Keys = nil },
		"leeway":       func(i *Issuer) { i.Leeway = time.Hour },
		"our own typ":  func(i *Issuer) { i.Typ = "application/Admission+JWT" },
		"our own typ2": func(i *Issuer) { i.Typ = "queue+jwt" },
	} {
		i := good
		change(&i)
		if _, err := New(Options{Issuers: []Issuer{i}}); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	if _, err := New(Options{Issuers: []Issuer{good, good}}); err == nil {
		t.Error("one issuer twice was accepted")
	}
}

func TestTheThrowawayKeyStaysInItsFolder(t *testing.T) {
	dir := t.TempDir()
	const starters = 8
	tokens := make([]string, starters)
	var wg sync.WaitGroup
	for i := range starters {
		wg.Go(func() {
			issuer, err := LoadThrowaway(dir)
			if err != nil {
				t.Error(err)
				return
			}
			if tokens[i], err = issuer.Mint("ann", now, time.Hour); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, token := range tokens { // Ed25519 is deterministic
		if token != tokens[0] {
			t.Errorf("starter %d has another key", i)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(dir+"/"+throwawayFile, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadThrowaway(dir); err == nil {
		t.Error("junk was taken for a key")
	}
}

func FuzzToken(f *testing.F) {
	issuer := &Throwaway{key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
	good, err := issuer.Mint("ann", now, time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJpc3MiOiJvbnNhbGU6dGhyb3ctYXdheSJ9.")
	f.Add(signed(f, jwt.SigningMethodEdDSA, issuer.key, map[string]any{"typ": "queue+jwt"}, jwt.MapClaims{"exp": 1e308, "iss": ThrowawayIssuer}))
	v := verifier(f, &memory{}, issuer.Issuer())
	f.Fuzz(func(t *testing.T, token string) {
		c, err := v.Authenticate(t.Context(), token)
		if err != nil {
			if code := fault.CodeOf(err); code != fault.TokenInvalid && code != fault.SignInRequired {
				t.Fatalf("%q: %v", token, err)
			}
			return
		}
		// Nobody but the issuer can sign, so what is believed says what the good token says.
		if !c.Expires.Equal(now.Add(time.Hour)) || strings.Count(token, ".") != 2 {
			t.Fatalf("%q was believed: %+v", token, c)
		}
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	issuer, err := NewThrowaway()
	if err != nil {
		b.Fatal(err)
	}
	v := verifier(b, &memory{}, issuer.Issuer())
	var tokens []string
	for i := range 1000 {
		token, err := issuer.Mint(fmt.Sprint("sub", i), now, time.Hour)
		if err != nil {
			b.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	i := 0
	for b.Loop() {
		if _, err := v.Authenticate(b.Context(), tokens[i%len(tokens)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
