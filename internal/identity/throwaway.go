package identity

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// What a throw-away issuer writes into its tokens.
const (
	ThrowawayIssuer   = "onsale:throw-away"
	ThrowawayAudience = "onsale"
	ThrowawayTyp      = "customer+jwt"
	throwawayKID      = "throw-away"
	throwawayFile     = "throwaway-issuer.key"
)

// A Throwaway is an issuer of our own, which believes anybody to be anybody: for demos, tests, benches and rehearsals on
// throw-away instances (F4).
type Throwaway struct{ key ed25519.PrivateKey }

// NewThrowaway makes an issuer with a fresh key.
func NewThrowaway() (*Throwaway, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return &Throwaway{key: key}, err
}

// LoadThrowaway is the issuer whose key lies in a data folder, made there the first time, so that `onsale token` and a
// running server know each other's tokens.
func LoadThrowaway(dir string) (*Throwaway, error) {
	path := filepath.Join(dir, throwawayFile)
	if t, err := readThrowaway(path); !errors.Is(err, fs.ErrNotExist) {
		return t, err
	}
	t, err := NewThrowaway()
	if err != nil {
		return nil, err
	}
	// Written whole beside it, then linked: of two who do so at once, one wins and both read the same.
	file, err := os.CreateTemp(dir, throwawayFile+".*") // 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(base64.StdEncoding.EncodeToString(t.key.Seed()) + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return readThrowaway(path)
}

func readThrowaway(path string) (*Throwaway, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("identity: %s is not a key: remove it, and a new one is made", path)
	}
	return &Throwaway{key: ed25519.NewKeyFromSeed(seed)}, nil
}

// Mint makes a token that says that its bearer is sub.
func (t *Throwaway) Mint(sub string, now time.Time, ttl time.Duration) (string, error) {
	if bad := checkSub(sub); bad != "" {
		return "", fmt.Errorf("identity: the sub %s", bad)
	}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.RegisteredClaims{
		Issuer: ThrowawayIssuer, Audience: jwt.ClaimStrings{ThrowawayAudience}, Subject: sub,
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(ttl)),
	})
	token.Header["typ"], token.Header["kid"] = ThrowawayTyp, throwawayKID
	return token.SignedString(t.key)
}

// Issuer is how a Verifier comes to believe its tokens.
func (t *Throwaway) Issuer() Issuer {
	return Issuer{
		Name: ThrowawayIssuer, Audience: ThrowawayAudience, Typ: ThrowawayTyp, Algorithm: "EdDSA",
		Keys: OneKey{KID: throwawayKID, Public: t.key.Public()},
	}
}

// OneKey is an issuer's only key.
type OneKey struct {
	KID    string // "": whatever the token names
	Public crypto.PublicKey
}

// Key is the only one.
func (k OneKey) Key(_ context.Context, kid string) (crypto.PublicKey, error) {
	if k.KID != "" && kid != k.KID {
		return nil, ErrNoKey
	}
	return k.Public, nil
}
