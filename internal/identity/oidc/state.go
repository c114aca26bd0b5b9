package oidc

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"onsale/internal/keys"
)

// A flow is one sign-in at a provider, while the browser is there.
type flow struct {
	Provider string `json:"p"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Return   string `json:"r"`
	Expires  int64  `json:"e"` // milliseconds
}

// A state is: the format "1", a dot, the key's kid, a dot, and base64url of 12 bytes of nonce and AES-256-GCM of the flow.
// Additional data: the format, the kid and the browser's name.
const stateFormat = "1"

func stateCipher(key keys.Key) (cipher.AEAD, error) {
	secret, err := hkdf.Key(sha256.New, key.Secret(), nil, "onsale oidc state "+stateFormat, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func stateData(kid, browser string) []byte { return []byte(stateFormat + "." + kid + "." + browser) }

func seal(ring Keyring, browser string, f flow) (string, error) {
	key, err := ring.Active(keys.SignIn)
	if err != nil {
		return "", err
	}
	aead, err := stateCipher(key)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce) // never fails
	sealed := aead.Seal(nonce, nonce, text, stateData(key.KID, browser))
	return stateFormat + "." + key.KID + "." + base64.RawURLEncoding.EncodeToString(sealed), nil
}

func open(ctx context.Context, ring Keyring, browser, state string) (flow, error) {
	const why = "this sign-in began in another browser, or long ago: begin again"
	parts := strings.SplitN(state, ".", 3)
	if len(parts) != 3 || parts[0] != stateFormat || len(parts[1]) != keys.KIDLength {
		return flow{}, refuse(why, nil)
	}
	key, err := ring.Find(ctx, keys.SignIn, parts[1])
	if err != nil && !errors.Is(err, keys.ErrNone) {
		return flow{}, err
	}
	if err != nil {
		return flow{}, refuse(why, err)
	}
	aead, err := stateCipher(key)
	if err != nil {
		return flow{}, err
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil || len(sealed) < aead.NonceSize() {
		return flow{}, refuse(why, err)
	}
	text, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], stateData(parts[1], browser))
	if err != nil {
		return flow{}, refuse(why, nil)
	}
	var f flow
	if err := json.Unmarshal(text, &f); err != nil {
		return flow{}, fmt.Errorf("oidc: a state of ours cannot be read: %w", err)
	}
	return f, nil
}
