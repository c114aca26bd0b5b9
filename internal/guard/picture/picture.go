// Package picture is the built-in person check: a picture of letters, and digits read aloud for who cannot see it.
//
// The one idea: nothing is stored. A token names a task; what it shows is a keyed hash of the token, so any node can draw it,
// read it aloud and check the answer, and the same token is always the same picture (who asks for it again learns nothing by
// comparing two). What is remembered is only which tokens were tried and used, bounded and on each node by itself.
//
// Start reading at Check; draw.go has the picture, glyphs.go its letters, speak.go the voice.
package picture

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	random "math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"onsale/internal/fault"
	"onsale/internal/guard"
)

// Bounds of a task.
const (
	Life        = 5 * time.Minute
	TriesMax    = 5 // of one token, on one node
	Length      = 6 // letters of the picture
	SoundLength = 5 // digits that are read aloud

	version    = 1
	ahead      = time.Minute // how far a node's clock may be behind another's
	macBytes   = 16
	idBytes    = 16
	tokenBytes = 1 + idBytes + 8 + 8 + macBytes
)

// A Check is a guard.PersonCheck.
type Check struct {
	secrets guard.Secrets
	tries   *guard.Tries
	used    *guard.Tries
}

// New signs with the gate's secrets.
func New(s guard.Secrets, now time.Time) *Check {
	const keep = Life + 2*ahead
	return &Check{s, guard.NewTries(now, TriesMax, keep, guard.UsedKeysDefault), guard.NewTries(now, 1, keep, guard.UsedKeysDefault)}
}

// Name is "picture".
func (c *Check) Name() string { return "picture" }

// Ask makes a task.
func (c *Check) Ask(now time.Time, b guard.Bind) guard.PersonTask {
	key := c.secrets.Of("picture")[0]
	t := make([]byte, 1+idBytes, tokenBytes)
	t[0] = version
	rand.Read(t[1:]) // never fails
	t = binary.BigEndian.AppendUint64(t, uint64(now.Add(Life).Unix()))
	t = append(t, b.Sum(key)...)
	t = append(t, guard.MAC(key, t)[:macBytes]...)
	return guard.PersonTask{Provider: c.Name(), Token: base64.RawURLEncoding.EncodeToString(t), Length: Length, SoundLength: SoundLength}
}

// A task is a token that was read.
type task struct {
	id   [idBytes]byte
	key  []byte
	bind []byte
}

// read is a token of ours that has not run out. Fault: person_required.
func (c *Check) read(now time.Time, token string) (task, error) {
	bad := fault.New(fault.PersonRequired, "this picture is not ours; ask for another")
	if len(token) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return task{}, bad
	}
	t, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || t[0] != version {
		return task{}, bad
	}
	signed, sum := t[:tokenBytes-macBytes], t[tokenBytes-macBytes:]
	for _, key := range c.secrets.Of("picture") {
		if !hmac.Equal(sum, guard.MAC(key, signed)[:macBytes]) {
			continue
		}
		left := int64(binary.BigEndian.Uint64(t[1+idBytes:])) - now.Unix()
		if left <= 0 || left > int64((Life+ahead)/time.Second) {
			return task{}, fault.New(fault.PersonRequired, "this picture has run out; ask for another")
		}
		return task{id: [idBytes]byte(t[1:]), key: key, bind: t[1+idBytes+8 : tokenBytes-macBytes]}, nil
	}
	return task{}, bad
}

// source is where all that a task shows comes from.
func (t task) source(what string) *random.Rand {
	return random.New(random.NewChaCha8([32]byte(guard.MAC(t.key, []byte(what), t.id[:]))))
}

func (t task) letters() string { return pick(t.source("letters"), alphabet, Length) }
func (t task) digits() string  { return pick(t.source("digits"), "0123456789", SoundLength) }

func pick(r *random.Rand, from string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[r.IntN(len(from))]
	}
	return string(b)
}

// Picture is a task's picture, a PNG. Fault: person_required.
func (c *Check) Picture(now time.Time, token string) ([]byte, error) {
	t, err := c.read(now, token)
	if err != nil {
		return nil, err
	}
	return draw(t.letters(), t.source("drawing")), nil
}

// Sound is a task read aloud, a WAV of some seconds. Fault: person_required.
func (c *Check) Sound(now time.Time, token string) ([]byte, error) {
	t, err := c.read(now, token)
	if err != nil {
		return nil, err
	}
	return speak(t.digits(), t.source("voice")), nil
}

// Check takes the picture's letters, in either case, or the digits. A right answer is good once, on the node that had it.
// Fault: person_required.
func (c *Check) Check(_ context.Context, now time.Time, b guard.Bind, _ netip.Addr, a guard.PersonAnswer) error {
	t, err := c.read(now, a.Token)
	if err != nil {
		return err
	}
	if !hmac.Equal(t.bind, b.Sum(t.key)) {
		return fault.New(fault.PersonRequired, "this picture is of somebody else; ask for another")
	}
	if !c.tries.Take(now, t.id) {
		return fault.New(fault.PersonRequired, "too many tries; ask for another picture")
	}
	said := plain(a.Answer)
	seen := subtle.ConstantTimeCompare([]byte(said), []byte(t.letters()))
	heard := subtle.ConstantTimeCompare([]byte(said), []byte(t.digits()))
	if seen|heard != 1 {
		return fault.New(fault.PersonRequired, "this is not what it says")
	}
	if !c.used.Take(now, t.id) {
		return fault.New(fault.PersonRequired, "this picture was used already; ask for another")
	}
	return nil
}

// plain is an answer without what people put between letters, and with what they type for what is not in the alphabet.
func plain(answer string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-' || r == '.' || r == ',':
			return -1
		case '０' <= r && r <= '９': // full width, as Chinese keyboards have them
			return '0' + r - '０'
		case 'ａ' <= r && r <= 'ｚ':
			return 'A' + r - 'ａ'
		case 'Ａ' <= r && r <= 'Ｚ':
			return 'A' + r - 'Ａ'
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		}
		return r
	}, answer)
}
