// Package jwks reads an issuer's public keys: a JSON Web Key Set from a file or from behind a URL, or one PEM.
//
// The one idea: keys change rarely and their server may be away, so what was read once is used until it is read again;
// only a kid that nobody has seen asks at once, and at most every half minute, since anybody can make kids up.
//
// Start reading at FromURL.
package jwks

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"onsale/internal/identity"
)

// Limits of what is read.
const (
	BodyBytesMax  = 256 << 10
	KeysMax       = 100
	fetchTimeout  = 5 * time.Second
	refreshAfter  = 10 * time.Minute
	askAgainAfter = 30 * time.Second
	rsaBitsMin    = 2048
	rsaBitsMax    = 8192
)

// A Set is keys by their kid. It is identity.Keys.
type Set map[string]crypto.PublicKey

// Key is the key with a kid; a token without kid takes the only key there is.
func (s Set) Key(_ context.Context, kid string) (crypto.PublicKey, error) {
	if key, ok := s[kid]; ok {
		return key, nil
	}
	if kid == "" && len(s) == 1 {
		for _, key := range s {
			return key, nil
		}
	}
	return nil, identity.ErrNoKey
}

type document struct {
	Keys []jwk `json:"keys"`
}

type jwk struct {
	Kty string `json:"kty"`
	Use string `json:"use"`
	Kid string `json:"kid"`
	Crv string `json:"crv"`
	X   string `json:"x"`
	Y   string `json:"y"`
	N   string `json:"n"`
	E   string `json:"e"`
}

// Parse reads a JSON Web Key Set. Keys of kinds that we do not use, and those not for signatures, are left out.
func Parse(data []byte) (Set, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("jwks: %w", err)
	}
	if len(d.Keys) > KeysMax {
		return nil, fmt.Errorf("jwks: %d keys are too many; at most %d", len(d.Keys), KeysMax)
	}
	set := Set{}
	for i, k := range d.Keys {
		if k.Use != "" && k.Use != "sig" {
			continue
		}
		key, err := k.public()
		if err != nil {
			return nil, fmt.Errorf("jwks: keys[%d]: %w", i, err)
		}
		if key == nil {
			continue
		}
		if _, twice := set[k.Kid]; twice {
			return nil, fmt.Errorf("jwks: keys[%d]: kid %.60q is there twice", i, k.Kid)
		}
		set[k.Kid] = key
	}
	if len(set) == 0 {
		return nil, errors.New("jwks: no key that can be used (Ed25519, P-256 or RSA, for signatures)")
	}
	return set, nil
}

// public is the key, nil for a kind that we do not use.
func (k jwk) public() (crypto.PublicKey, error) {
	switch {
	case k.Kty == "OKP" && k.Crv == "Ed25519":
		x, err := decode("x", k.X, ed25519.PublicKeySize)
		return ed25519.PublicKey(x), err
	case k.Kty == "EC" && k.Crv == "P-256":
		x, errX := decode("x", k.X, 32)
		y, errY := decode("y", k.Y, 32)
		if err := errors.Join(errX, errY); err != nil {
			return nil, err
		}
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	case k.Kty == "RSA":
		n, errN := decode("n", k.N, 0)
		e, errE := decode("e", k.E, 0)
		if err := errors.Join(errN, errE); err != nil {
			return nil, err
		}
		key := &rsa.PublicKey{N: new(big.Int).SetBytes(n)}
		if exponent := new(big.Int).SetBytes(e); exponent.BitLen() <= 31 {
			key.E = int(exponent.Int64())
		}
		return key, checkRSA(key)
	}
	return nil, nil
}

func checkRSA(key *rsa.PublicKey) error {
	if bits := key.N.BitLen(); bits < rsaBitsMin || bits > rsaBitsMax {
		return fmt.Errorf("an RSA key of %d bits; %d to %d are used", bits, rsaBitsMin, rsaBitsMax)
	}
	if key.E < 3 || key.E%2 == 0 {
		return errors.New("the exponent of an RSA key must be odd and at least 3")
	}
	return nil
}

func decode(name, text string, length int) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) == 0 || length > 0 && len(b) != length {
		return nil, fmt.Errorf("%s is not right", name)
	}
	return b, nil
}

// ParsePEM reads one public key (PUBLIC KEY or CERTIFICATE).
func ParsePEM(data []byte) (identity.OneKey, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return identity.OneKey{}, errors.New("no PEM block: give -----BEGIN PUBLIC KEY-----")
	}
	var key any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "CERTIFICATE":
		var c *x509.Certificate
		if c, err = x509.ParseCertificate(block.Bytes); err == nil {
			key = c.PublicKey
		}
	default:
		return identity.OneKey{}, fmt.Errorf("a PEM block %q: give a PUBLIC KEY or a CERTIFICATE", block.Type)
	}
	if err != nil {
		return identity.OneKey{}, err
	}
	if rsaKey, ok := key.(*rsa.PublicKey); ok {
		if err := checkRSA(rsaKey); err != nil {
			return identity.OneKey{}, err
		}
	}
	return identity.OneKey{Public: key}, nil
}

// Remote is a set behind a URL. It is identity.Keys; nothing runs in the background.
type Remote struct {
	url    string
	client *http.Client
	now    func() time.Time

	fetching sync.Mutex // one fetches at a time

	mu    sync.Mutex // guards what follows
	set   Set
	asked time.Time
	err   error // of the last time
}

// CheckURL says what is wrong with where keys come from: https, or http on this machine.
func CheckURL(rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return errors.New("is not a URL: write https://…")
	}
	if u.Scheme == "https" {
		return nil
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return errors.New("must begin with https:// (http:// only on this machine): who can change the keys can be anybody")
}

// FromURL is the set behind a URL, fetched when it is first needed. now defaults to time.Now.
func FromURL(rawURL string, now func() time.Time) (*Remote, error) {
	if err := CheckURL(rawURL); err != nil {
		return nil, fmt.Errorf("jwks: %q %w", rawURL, err)
	}
	if now == nil {
		now = time.Now
	}
	client := &http.Client{Timeout: fetchTimeout, CheckRedirect: func(r *http.Request, _ []*http.Request) error { return CheckURL(r.URL.String()) }}
	return &Remote{url: rawURL, client: client, now: now}, nil
}

// Key is the key with a kid, fetched again where it is not known or what is known is old. Who has a key does not wait
// for another who fetches.
func (r *Remote) Key(ctx context.Context, kid string) (crypto.PublicKey, error) {
	key, due, err := r.known(ctx, kid)
	switch {
	case err == nil && due:
		if r.fetching.TryLock() {
			defer r.fetching.Unlock()
			r.fetch(ctx)
			if fresh, _, err := r.known(ctx, kid); err == nil || !errors.Is(err, identity.ErrNoKey) {
				return fresh, err
			}
			return nil, identity.ErrNoKey // taken back by the issuer
		}
	case err != nil && due:
		r.fetching.Lock()
		defer r.fetching.Unlock()
		if key, due, err = r.known(ctx, kid); err != nil && due { // nobody fetched meanwhile
			r.fetch(ctx)
			key, _, err = r.known(ctx, kid)
		}
	}
	return key, err
}

// known is what is known of a key, and whether the issuer may be asked about it now.
func (r *Remote) known(ctx context.Context, kid string) (key crypto.PublicKey, due bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, err = r.set.Key(ctx, kid)
	age := r.now().Sub(r.asked)
	due = r.asked.IsZero() || age >= refreshAfter || (err != nil || r.err != nil) && age >= askAgainAfter
	if err != nil && r.set == nil && r.err != nil {
		err = fmt.Errorf("jwks: %s: %w", r.url, r.err)
	}
	return key, due, err
}

func (r *Remote) fetch(ctx context.Context) {
	set, err := r.get(ctx)
	if errors.Is(ctx.Err(), context.Canceled) {
		return // the caller has gone; the next one asks
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked, r.err = r.now(), err
	if err == nil {
		r.set = set // else what is known goes on, their server being away
	}
}

func (r *Remote) get(ctx context.Context) (Set, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %s", answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, BodyBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(body) > BodyBytesMax {
		return nil, fmt.Errorf("the answer is longer than %d bytes", BodyBytesMax)
	}
	return Parse(body)
}
