package guard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"onsale/internal/id"
)

// Secrets are the secrets of the gate, the one that signs first; those behind it only check what they signed before they
// were rotated. There is always one.
type Secrets func() [][]byte

// Of is the secrets for one use, derived from the gate's, so that nothing signed for one is good for another.
func (s Secrets) Of(use string) [][]byte {
	all := s()
	derived := make([][]byte, len(all))
	for i, secret := range all {
		derived[i] = mac(secret, []byte("onsale gate 1: "+use))
	}
	return derived
}

func mac(secret []byte, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, secret)
	var length [4]byte
	for _, part := range parts { // each with its length: no two lists of parts are the same bytes
		binary.BigEndian.PutUint32(length[:], uint32(len(part)))
		m.Write(length[:])
		m.Write(part)
	}
	return m.Sum(nil)
}

// A Subject is whom something signed is for: a customer, or a device where nobody is signed in.
type Subject string

// SubjectOf is the customer's where there is one, else the device's.
func SubjectOf(customer id.ID, d Device) Subject {
	if customer != 0 {
		return Subject("c" + string(binary.BigEndian.AppendUint64(nil, uint64(customer))))
	}
	return Subject("d" + string(d[:]))
}

// A Bind is what something signed holds for: one event, one subject.
type Bind struct {
	Event   id.ID
	Subject Subject
}

// Sum is what a provider of person checks puts into its tokens for a bind: 8 bytes that say nothing without the secret.
func (b Bind) Sum(secret []byte) []byte { return mac(secret, []byte("bind"), b.bytes())[:8] }

// MAC is a keyed hash of parts, each with its length.
func MAC(secret []byte, parts ...[]byte) []byte { return mac(secret, parts...) }

func (b Bind) bytes() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(b.Event)), b.Subject...)
}

func seconds(t time.Time) []byte { return binary.BigEndian.AppendUint64(nil, uint64(t.Unix())) }
