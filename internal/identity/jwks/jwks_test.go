package jwks

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"onsale/internal/identity"
)

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func okp(t testing.TB, kid string) (jwk, ed25519.PublicKey) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return jwk{Kty: "OKP", Crv: "Ed25519", Kid: kid, Use: "sig", X: b64(public)}, public
}

func set(t testing.TB, keys ...jwk) []byte {
	data, err := json.Marshal(document{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParse(t *testing.T) {
	ed, edPublic := okp(t, "ed")
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := ec.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := Parse(set(t, ed,
		jwk{Kty: "EC", Crv: "P-256", Kid: "ec", X: b64(point[1:33]), Y: b64(point[33:])},
		jwk{Kty: "RSA", Kid: "rsa", N: b64(rsaKey.N.Bytes()), E: b64(big.NewInt(int64(rsaKey.E)).Bytes())},
		jwk{Kty: "RSA", Kid: "sealing", Use: "enc", N: "junk"},
		jwk{Kty: "EC", Crv: "P-521", Kid: "unused", X: "junk"}))
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 3 {
		t.Errorf("%d keys", len(keys))
	}
	for kid, want := range map[string]interface{ Equal(crypto.PublicKey) bool }{"ed": edPublic, "ec": &ec.PublicKey, "rsa": &rsaKey.PublicKey} {
		if got, err := keys.Key(t.Context(), kid); err != nil || !want.Equal(got) {
			t.Errorf("%s: %v, %v", kid, got, err)
		}
	}
	if _, err := keys.Key(t.Context(), ""); !errors.Is(err, identity.ErrNoKey) {
		t.Errorf("no kid with three keys: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	good, _ := okp(t, "a")
	many := make([]jwk, KeysMax+1)
	for name, data := range map[string][]byte{
		"junk":           []byte("{"),
		"none":           []byte("{}"),
		"many":           set(t, many...),
		"twice":          set(t, good, good),
		"short key":      set(t, jwk{Kty: "OKP", Crv: "Ed25519", X: "AAAA"}),
		"off the curve":  set(t, jwk{Kty: "EC", Crv: "P-256", X: b64(make([]byte, 32)), Y: b64(make([]byte, 32))}),
		"small RSA":      set(t, jwk{Kty: "RSA", N: b64(big.NewInt(1).Lsh(big.NewInt(1), 1023).Bytes()), E: "AQAB"}),
		"exponent of 1":  set(t, jwk{Kty: "RSA", N: b64(new(big.Int).Lsh(big.NewInt(1), 2047).Bytes()), E: "AQ"}),
		"large exponent": set(t, jwk{Kty: "RSA", N: b64(new(big.Int).Lsh(big.NewInt(1), 2047).Bytes()), E: b64(make([]byte, 9))}),
	} {
		if keys, err := Parse(data); err == nil {
			t.Errorf("%s: %v", name, keys)
		}
	}
}

func TestPEM(t *testing.T) {
	_, public := okp(t, "")
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParsePEM(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	if err != nil || !public.Equal(key.Public) {
		t.Errorf("%v, %v", key, err)
	}
	for _, text := range []string{"", "hello", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der[1:]}))} {
		if key, err := ParsePEM([]byte(text)); err == nil {
			t.Errorf("%q was read as %v", text, key)
		}
	}
}

func TestOnlySafeURLs(t *testing.T) {
	for rawURL, good := range map[string]bool{
		"https://idp.example/keys": true, "http://127.0.0.1:8080/keys": true, "http://localhost/keys": true, "http://[::1]/keys": true,
		"http://idp.example/keys": false, "ftp://idp.example": false, "/keys": false, "": false, "https://": false, "http://localhost.evil.example/": false,
	} {
		if err := CheckURL(rawURL); (err == nil) != good {
			t.Errorf("%q: %v", rawURL, err)
		}
	}
}

// issuer is a server of keys whose answer and clock a test moves.
type issuer struct {
	keys    atomic.Pointer[[]byte] // nil: away
	fetched atomic.Int32
	now     atomic.Int64
	remote  *Remote
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{}
	i.now.Store(1_800_000_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.fetched.Add(1)
		if body := i.keys.Load(); body != nil {
			_, _ = w.Write(*body)
			return
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	remote, err := FromURL(server.URL, func() time.Time { return time.Unix(i.now.Load(), 0) })
	if err != nil {
		t.Fatal(err)
	}
	i.remote = remote
	return i
}

func (i *issuer) publish(t *testing.T, keys ...jwk) {
	body := set(t, keys...)
	i.keys.Store(&body)
}

func TestRemote(t *testing.T) {
	i := newIssuer(t)
	a, _ := okp(t, "a")
	b, _ := okp(t, "b")
	expect := func(kid string, known bool, fetched int32) {
		t.Helper()
		_, err := i.remote.Key(t.Context(), kid)
		if (err == nil) != known || i.fetched.Load() != fetched {
			t.Errorf("key %s: %v, %d fetched; want known %v, %d fetched", kid, err, i.fetched.Load(), known, fetched)
		}
	}
	expect("a", false, 1) // away at first
	if _, err := i.remote.Key(t.Context(), "a"); errors.Is(err, identity.ErrNoKey) || !strings.Contains(err.Error(), "502") {
		t.Errorf("away is not the same as unknown: %v", err)
	}
	i.publish(t, a)
	i.now.Add(int64(askAgainAfter / time.Second))
	expect("a", true, 2)
	expect("a", true, 2)
	for range 5 { // made-up kids
		expect("b", false, 2)
	}
	i.publish(t, a, b)
	i.now.Add(int64(askAgainAfter / time.Second))
	expect("b", true, 3)
	i.publish(t, b) // a is taken back
	i.now.Add(int64(refreshAfter / time.Second))
	expect("a", false, 4)
	expect("b", true, 4)
	i.keys.Store(nil) // away: what is known goes on
	i.now.Add(int64(refreshAfter / time.Second))
	expect("b", true, 5)
	expect("b", true, 5)
}

func TestRemoteRefusesWhatIsTooLong(t *testing.T) {
	i := newIssuer(t)
	long := make([]byte, BodyBytesMax+1)
	i.keys.Store(&long)
	if _, err := i.remote.Key(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "longer") {
		t.Errorf("%v", err)
	}
}
