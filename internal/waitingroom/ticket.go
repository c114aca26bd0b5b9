package waitingroom

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/id"
	"onsale/internal/keys"
)

// The queue ticket: who has which number of which event, signed, so that a number outlives whatever stores it. It is base64url
// (70 characters) of
//
//	 0  1  version
//	 1  8  kid, the name of the key
//	 9  8  event
//	17  8  customer
//	25  1  lane, its place among the room's
//	26  1  1: drawn
//	27  5  number
//	32  5  when it was issued, seconds
//	37 16  the first 16 bytes of HMAC-SHA-256 of all before
//
// all numbers big-endian. Reading one costs two blocks of SHA-256 and no memory. A version is written and the one before it is
// read (D5); version 1 is the first.
const (
	ticketVersion = 1

	ticketKID      = 1
	ticketEvent    = ticketKID + keys.KIDLength
	ticketCustomer = ticketEvent + 8
	ticketLane     = ticketCustomer + 8
	ticketFlags    = ticketLane + 1
	ticketNumber   = ticketFlags + 1
	ticketIssued   = ticketNumber + 5
	ticketMAC      = ticketIssued + 5
	ticketBytes    = ticketMAC + macBytes
	macBytes       = 16

	ticketDrawn = 1

	// QueueIDLength is how long a queue ticket is as text.
	QueueIDLength = (ticketBytes*8 + 5) / 6
)

// A queueTicket is what one says.
type queueTicket struct {
	event    id.ID
	customer id.ID
	lane     int
	number   int64
	drawn    bool
	issued   int64 // Unix seconds
}

// errTicket says that a text is no queue ticket of ours. It does not say why: nobody honest needs to know.
var errTicket = errors.New("not a queue ticket of ours")

// ticketEncoding is strict, so that a ticket has one spelling.
var ticketEncoding = base64.RawURLEncoding.Strict()

// A sealer signs and checks queue tickets. Its keys' hash states are made once; whoever uses one borrows it.
type sealer struct {
	keys   Keys
	macs   atomic.Pointer[map[string]*macs] // by kid; replaced, never written into
	mu     sync.Mutex                       // of replacing
	active atomic.Pointer[activeKey]
}

type activeKey struct {
	kid  string
	read time.Time
}

// activeFor is how long the key to sign with is used before the ring is asked again.
const activeFor = time.Second

// macs are idle hashes of one key: the states after the key's block are kept in them.
type macs struct{ idle sync.Pool }

func newMacs(secret []byte) *macs {
	m := &macs{}
	m.idle.New = func() any { return &mac{hash: hmac.New(sha256.New, secret)} }
	return m
}

// A mac is a hash with the ticket that it is of: through the interface of hashes, what is hashed lies on the heap.
type mac struct {
	hash hash.Hash
	raw  [ticketBytes]byte
	sum  [sha256.Size]byte
}

// of is the MAC of the ticket; it is overwritten by the next.
func (m *mac) of() []byte {
	m.hash.Reset()
	m.hash.Write(m.raw[:ticketMAC])
	return m.hash.Sum(m.sum[:0])[:macBytes]
}

// sign makes a queue ticket.
func (s *sealer) sign(t queueTicket, now time.Time) (string, error) {
	kid, pool, err := s.signing(now)
	if err != nil {
		return "", err
	}
	m := pool.idle.Get().(*mac)
	defer pool.idle.Put(m)
	raw := &m.raw
	raw[0] = ticketVersion
	copy(raw[ticketKID:ticketEvent], kid)
	binary.BigEndian.PutUint64(raw[ticketEvent:], uint64(t.event))
	binary.BigEndian.PutUint64(raw[ticketCustomer:], uint64(t.customer))
	raw[ticketLane] = byte(t.lane)
	raw[ticketFlags] = 0
	if t.drawn {
		raw[ticketFlags] = ticketDrawn
	}
	put40(raw[ticketNumber:], t.number)
	put40(raw[ticketIssued:], t.issued)
	copy(raw[ticketMAC:], m.of())
	return ticketEncoding.EncodeToString(raw[:]), nil
}

func put40(b []byte, n int64) {
	b[0] = byte(n >> 32)
	binary.BigEndian.PutUint32(b[1:], uint32(n))
}

func get40(b []byte) int64 { return int64(b[0])<<32 | int64(binary.BigEndian.Uint32(b[1:])) }

// signing is the key to sign with.
func (s *sealer) signing(now time.Time) (string, *macs, error) {
	if a := s.active.Load(); a != nil && now.Sub(a.read) < activeFor && !now.Before(a.read) {
		if m := s.known(a.kid); m != nil {
			return a.kid, m, nil
		}
	}
	key, err := s.keys.Active(keys.Queue)
	if err != nil {
		return "", nil, err
	}
	s.active.Store(&activeKey{key.KID, now})
	if m := s.known(key.KID); m != nil {
		return key.KID, m, nil
	}
	return key.KID, s.learn(key), nil
}

func (s *sealer) known(kid string) *macs {
	if all := s.macs.Load(); all != nil {
		return (*all)[kid]
	}
	return nil
}

// learn keeps a key's hashes. There are few keys: what is kept is thrown away where it has grown.
func (s *sealer) learn(key keys.Key) *macs {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.known(key.KID); m != nil {
		return m
	}
	const most = 64
	all := map[string]*macs{}
	if old := s.macs.Load(); old != nil && len(*old) < most {
		for kid, m := range *old {
			all[kid] = m
		}
	}
	m := newMacs(key.Secret())
	all[key.KID] = m
	s.macs.Store(&all)
	return m
}

// read checks a queue ticket and says what it says. Where its key is not known yet the ring is asked.
func (s *sealer) read(ctx context.Context, text string) (queueTicket, error) {
	t, err := s.readKnown(text)
	if err != errUnknownKey {
		return t, err
	}
	raw, _ := decodeTicket(text)
	key, err := s.keys.Find(ctx, keys.Queue, string(raw[ticketKID:ticketEvent]))
	if err != nil {
		return queueTicket{}, errTicket
	}
	s.learn(key)
	return s.readKnown(text)
}

var errUnknownKey = errors.New("a queue ticket of a key that is not known")

func decodeTicket(text string) (raw [ticketBytes]byte, ok bool) {
	var digits [QueueIDLength]byte
	if len(text) != QueueIDLength {
		return raw, false
	}
	copy(digits[:], text)
	n, err := ticketEncoding.Decode(raw[:], digits[:])
	return raw, err == nil && n == ticketBytes && raw[0] == ticketVersion
}

// readKnown is read from memory alone.
func (s *sealer) readKnown(text string) (queueTicket, error) {
	raw, ok := decodeTicket(text)
	if !ok {
		return queueTicket{}, errTicket
	}
	all := s.macs.Load()
	if all == nil {
		return queueTicket{}, errUnknownKey
	}
	pool := (*all)[string(raw[ticketKID:ticketEvent])]
	if pool == nil {
		return queueTicket{}, errUnknownKey
	}
	m := pool.idle.Get().(*mac)
	m.raw = raw
	good := subtle.ConstantTimeCompare(m.of(), raw[ticketMAC:]) == 1
	pool.idle.Put(m)
	if !good {
		return queueTicket{}, errTicket
	}
	return queueTicket{
		event:    id.ID(binary.BigEndian.Uint64(raw[ticketEvent:])),
		customer: id.ID(binary.BigEndian.Uint64(raw[ticketCustomer:])),
		lane:     int(raw[ticketLane]),
		number:   get40(raw[ticketNumber:]),
		drawn:    raw[ticketFlags]&ticketDrawn != 0,
		issued:   get40(raw[ticketIssued:]),
	}, nil
}
