package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"io"
)

// MasterBytes is the length of a master key.
const MasterBytes = 32

// A Master seals and opens keys. It prints as nothing.
type Master struct{ key [MasterBytes]byte }

// String keeps the master key out of logs.
func (Master) String() string { return "master key" }

// GoString keeps the master key out of logs.
func (Master) GoString() string { return "master key" }

// NewMaster takes 32 random bytes.
func NewMaster(key []byte) (Master, error) {
	var m Master
	if len(key) != MasterBytes {
		return m, fmt.Errorf("keys: a master key has %d bytes, not %d", MasterBytes, len(key))
	}
	copy(m.key[:], key)
	if m == (Master{}) {
		return m, fmt.Errorf("keys: the master key is all zero; make a random one")
	}
	return m, nil
}

// A sealed key is: format byte 1, 12 bytes of nonce, AES-256-GCM of the secret. Additional data: format byte, purpose,
// a zero byte, kid.
const (
	sealFormat = 1
	nonceBytes = 12
)

func (m Master) aead() (cipher.AEAD, error) {
	if m == (Master{}) {
		return nil, fmt.Errorf("keys: no master key; make one with NewMaster or LoadOrCreateMaster")
	}
	block, err := aes.NewCipher(m.key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func additionalData(kid string, purpose Purpose) []byte {
	return append([]byte{sealFormat}, string(purpose)+"\x00"+kid...)
}

// Seal seals a secret for one key's name and purpose.
func (m Master) Seal(random io.Reader, kid string, purpose Purpose, secret []byte) ([]byte, error) {
	aead, err := m.aead()
	if err != nil {
		return nil, err
	}
	sealed := make([]byte, 1+nonceBytes, 1+nonceBytes+len(secret)+aead.Overhead())
	sealed[0] = sealFormat
	if _, err := io.ReadFull(random, sealed[1:]); err != nil {
		return nil, fmt.Errorf("keys: randomness: %w", err)
	}
	return aead.Seal(sealed, sealed[1:], secret, additionalData(kid, purpose)), nil
}

// Open opens what Seal sealed for the same name and purpose. The error names what to do.
func (m Master) Open(kid string, purpose Purpose, sealed []byte) ([]byte, error) {
	aead, err := m.aead()
	if err != nil {
		return nil, err
	}
	if len(sealed) < 1+nonceBytes+aead.Overhead() {
		return nil, fmt.Errorf("%w: %s for %s is damaged (%d bytes)", ErrSealed, kid, purpose, len(sealed))
	}
	if sealed[0] != sealFormat {
		return nil, fmt.Errorf("%w: %s for %s has format %d; this version reads %d", ErrSealed, kid, purpose, sealed[0], sealFormat)
	}
	secret, err := aead.Open(nil, sealed[1:1+nonceBytes], sealed[1+nonceBytes:], additionalData(kid, purpose))
	if err != nil {
		return nil, fmt.Errorf("%w: %s for %s; give the master key that this database was made with", ErrSealed, kid, purpose)
	}
	return secret, nil
}
