// Package ticket writes and reads the QR code of a ticket: the signed right of entry for one seat or place, which a door
// can check without a network.
//
// The one idea: the code holds numbers only, no name and nothing else about a person, and an Ed25519 signature over them.
// It is made whenever the ticket is shown, so selling never waits for it and no picture is stored. Tickets paid in a
// sandbox say TEST inside the signed part and are signed by other keys; neither kind of key is believed about the other
// kind of ticket.
//
// The code says that a ticket was issued, not that it is still valid or was not used: that the ledger knows.
//
// Start reading at Ticket, then Sign and Verify; base45.go is how bytes become the text of the code.
package ticket

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/skip2/go-qrcode"

	"onsale/internal/keys"
)

// The layout, version 1, numbers big-endian:
//
//	 0      version, 1
//	 1      flags: 1 TEST, 2 place in an area; others 0
//	 2..6   kid: 8 digits of 5 bits
//	 7..14  ticket id
//	15..22  event id
//	23..26  seat index, or index of the area in the plan
//	27..90  signature of signedPrefix and bytes 0..26
const (
	version     = 1
	flagTest    = 1
	flagArea    = 2
	contentSize = 27
	size        = contentSize + ed25519.SignatureSize

	// signedPrefix keeps the signature from meaning anything elsewhere.
	signedPrefix = "onsale ticket 1\x00"
)

// Limits of pictures, in pixels a side.
const (
	PixelsMin = 128
	PixelsMax = 2048
)

// A Ticket is what the code says.
type Ticket struct {
	ID      int64 // > 0
	EventID int64 // > 0
	Index   int32 // seat index, or the index of the area in the plan; ≥ 0
	Area    bool  // Index is an area's
	Test    bool  // paid in a sandbox: no right of entry to anything real
}

// A Key signs. Get it with SigningKey.
type Key struct {
	KID     string
	Private ed25519.PrivateKey
	Test    bool // signs Test tickets, and only these
}

// A PublicKey checks.
type PublicKey struct {
	Key  ed25519.PublicKey
	Test bool // of Test tickets, and only of these
}

// PublicKeys are all keys that may have signed, by kid.
type PublicKeys map[string]PublicKey

// Errors of Verify.
var (
	ErrFormat     = errors.New("ticket: not a ticket's code")
	ErrVersion    = errors.New("ticket: code of another version")
	ErrUnknownKey = errors.New("ticket: signed by an unknown key")
	ErrSignature  = errors.New("ticket: signature is wrong")
	ErrMark       = errors.New("ticket: TEST mark and key do not agree")
)

// SigningKey is the ring's active key for real or for test tickets.
func SigningKey(r *keys.Ring, test bool) (Key, error) {
	k, err := r.Active(purpose(test))
	if err != nil {
		return Key{}, err
	}
	return Key{KID: k.KID, Private: k.Private(), Test: test}, nil
}

// CheckingKeys are all of the ring's keys that may have signed tickets, real and test.
func CheckingKeys(r *keys.Ring) PublicKeys {
	all := PublicKeys{}
	for _, test := range []bool{false, true} {
		for _, k := range r.Checking(purpose(test)) {
			all[k.KID] = PublicKey{Key: k.PublicKey(), Test: test}
		}
	}
	return all
}

func purpose(test bool) keys.Purpose {
	if test {
		return keys.TicketTest
	}
	return keys.Ticket
}

// Sign makes the code's text, which the same ticket and key always give alike. Errors: a ticket that cannot be one, a key
// that is none, ErrMark.
func Sign(k Key, t Ticket) (string, error) {
	if t.ID <= 0 || t.EventID <= 0 || t.Index < 0 {
		return "", fmt.Errorf("ticket: %+v is not a ticket", t)
	}
	if k.Test != t.Test {
		return "", ErrMark
	}
	if len(k.Private) != ed25519.PrivateKeySize {
		return "", fmt.Errorf("ticket: key %q has no private half", k.KID)
	}
	kid, ok := packKID(k.KID)
	if !ok {
		return "", fmt.Errorf("ticket: kid %q is not one of package keys", k.KID)
	}
	b := make([]byte, 0, size)
	b = append(b, version, flags(t))
	b = append(b, kid[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(t.ID))
	b = binary.BigEndian.AppendUint64(b, uint64(t.EventID))
	b = binary.BigEndian.AppendUint32(b, uint32(t.Index))
	b = append(b, ed25519.Sign(k.Private, signed(b))...)
	return encode(b), nil
}

func flags(t Ticket) (f byte) {
	if t.Test {
		f |= flagTest
	}
	if t.Area {
		f |= flagArea
	}
	return f
}

func signed(content []byte) []byte { return append([]byte(signedPrefix), content...) }

// Verify reads a code's text and says whether one of the keys signed it. Nothing of a ticket is answered beside an error.
// Errors: ErrFormat, ErrVersion, ErrUnknownKey, ErrSignature, ErrMark.
func Verify(text string, public PublicKeys) (Ticket, error) {
	if len(text) > encodedSize(size) {
		return Ticket{}, ErrFormat
	}
	b, ok := decode(text)
	if !ok || len(b) == 0 {
		return Ticket{}, ErrFormat
	}
	if b[0] != version {
		return Ticket{}, fmt.Errorf("%w: %d", ErrVersion, b[0])
	}
	if len(b) != size {
		return Ticket{}, ErrFormat
	}
	kid := unpackKID([5]byte(b[2:7]))
	key, ok := public[kid]
	if !ok || len(key.Key) != ed25519.PublicKeySize {
		return Ticket{}, fmt.Errorf("%w: %s", ErrUnknownKey, kid)
	}
	if !ed25519.Verify(key.Key, signed(b[:contentSize]), b[contentSize:]) {
		return Ticket{}, ErrSignature
	}
	id, eventID, index := binary.BigEndian.Uint64(b[7:]), binary.BigEndian.Uint64(b[15:]), binary.BigEndian.Uint32(b[23:])
	if b[1]&^(flagTest|flagArea) != 0 || id-1 >= math.MaxInt64 || eventID-1 >= math.MaxInt64 || index > math.MaxInt32 {
		return Ticket{}, ErrFormat // signed, but not by Sign
	}
	t := Ticket{ID: int64(id), EventID: int64(eventID), Index: int32(index), Area: b[1]&flagArea != 0, Test: b[1]&flagTest != 0}
	if t.Test != key.Test {
		return Ticket{}, ErrMark
	}
	return t, nil
}

// PNG is the code as a picture, black on white, with its quiet zone, `pixels` a side.
func PNG(text string, pixels int) ([]byte, error) {
	if pixels < PixelsMin || pixels > PixelsMax {
		return nil, fmt.Errorf("ticket: a picture of %d pixels; use %d to %d", pixels, PixelsMin, PixelsMax)
	}
	if len(text) != encodedSize(size) {
		return nil, ErrFormat
	}
	code, err := qrcode.New(text, qrcode.Medium)
	if err != nil {
		return nil, fmt.Errorf("ticket: QR: %w", err)
	}
	return code.PNG(pixels)
}
