// Package id makes and prints the numbers by which everything in Onsale is known.
//
// An ID has 63 bits and is ordered by time: 41 bits of milliseconds since 2025-01-01 UTC, 5 of the shard that keeps the
// thing, 6 of the node that made the number and 11 of a sequence. So any node makes unique numbers without asking
// anybody, and a request is routed to its shard by looking at the number alone. People see it as a prefix that says
// what it names and 13 Crockford base32 digits, "hold_0A1B2C3D4E5F6".
package id

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ID is a number as described above; 0 means none. It is written to JSON as a number by default: use Text for people.
type ID int64

// The prefixes in use.
const (
	Event    = "evt"
	Show     = "show"
	Org      = "org"
	Customer = "cus"
	Hold     = "hold"
	Order    = "ord"
	Ticket   = "tkt"
	Refund   = "rfd"
	Session  = "ses"
	Wish     = "wsh"
	Block    = "blk"
)

const (
	sequenceBits = 11
	nodeBits     = 6
	shardBits    = 5
	millisBits   = 41

	// ShardMax and NodeMax are the greatest shard and node numbers.
	ShardMax = 1<<shardBits - 1
	NodeMax  = 1<<nodeBits - 1

	nodeShift   = sequenceBits
	shardShift  = sequenceBits + nodeBits
	millisShift = sequenceBits + nodeBits + shardBits
	digits      = 13
	alphabet    = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

var epoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// Shard is the number of the shard that keeps the thing.
func (i ID) Shard() int { return int(i>>shardShift) & ShardMax }

// Time is when the number was made, by the clock of the node that made it.
func (i ID) Time() time.Time { return time.UnixMilli(int64(i)>>millisShift + epoch).UTC() }

// Text is the number with a prefix, as people and the API see it.
func (i ID) Text(prefix string) string {
	return string(i.AppendText(make([]byte, 0, 2*digits), prefix))
}

// AppendText writes what Text gives.
func (i ID) AppendText(b []byte, prefix string) []byte {
	b = append(append(b, prefix...), '_')
	for shift := 5 * (digits - 1); shift >= 0; shift -= 5 {
		b = append(b, alphabet[uint64(i)>>shift&31])
	}
	return b
}

// ErrSyntax is the cause of every error of Parse.
var ErrSyntax = errors.New("not an id")

// Parse reads what Text wrote. Letters may be in either case; O, I and L are read as 0, 1 and 1.
func Parse(prefix, text string) (ID, error) {
	rest, ok := strings.CutPrefix(text, prefix+"_")
	if !ok || len(rest) != digits {
		return 0, fmt.Errorf("%w: want %s_ and %d digits", ErrSyntax, prefix, digits)
	}
	var v uint64
	for k := range digits {
		d := value[rest[k]]
		if d < 0 {
			return 0, fmt.Errorf("%w: %q is not a digit of it", ErrSyntax, rest[k])
		}
		if k == 0 && d > 7 { // 13 digits hold 65 bits; an id has 63
			return 0, fmt.Errorf("%w: too large", ErrSyntax)
		}
		v = v<<5 | uint64(d)
	}
	if v == 0 {
		return 0, fmt.Errorf("%w: zero", ErrSyntax)
	}
	return ID(v), nil
}

var value = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i := range len(alphabet) {
		t[alphabet[i]] = int8(i)
		t[strings.ToLower(alphabet[i : i+1])[0]] = int8(i)
	}
	t['O'], t['o'], t['I'], t['i'], t['L'], t['l'] = 0, 0, 1, 1, 1, 1
	return t
}()

// A Reserve stores durably that no number up to and including millisecond until (of the id's own clock) may be given
// out by a later generator of the same node, and returns once that is so.
type Reserve func(untilMillis int64) error

// A Generator makes IDs. It never goes back when the clock does, and with a Reserve not after a restart either: it gives
// out only numbers below a durable high-water mark, which it raises ahead of need.
type Generator struct {
	node    int
	now     func() time.Time
	reserve Reserve

	last  atomic.Int64 // milliseconds and sequence of the last number, in one, so that no caller waits for another
	limit atomic.Int64 // numbers of milliseconds >= limit are not reserved yet

	reserving sync.Mutex // one Reserve at a time
}

// reserveAhead is how many milliseconds one Reserve covers.
const reserveAhead = 10_000

// NewGenerator makes a generator for a node (0…NodeMax). floor is the high-water mark stored by the node's last
// Reserve, or 0; reserve may be nil where uniqueness over restarts does not matter (tests, benchmarks).
func NewGenerator(node int, now func() time.Time, floor int64, reserve Reserve) *Generator {
	if node < 0 || node > NodeMax {
		panic(fmt.Sprintf("id: node %d is not in 0…%d", node, NodeMax))
	}
	g := &Generator{node: node, now: now, reserve: reserve}
	g.last.Store((floor+1)<<sequenceBits - 1)
	g.limit.Store(floor)
	return g
}

// Next makes a number for a thing of the given shard. It fails only when the high-water mark cannot be stored.
func (g *Generator) Next(shard int) (ID, error) {
	if shard < 0 || shard > ShardMax {
		panic(fmt.Sprintf("id: shard %d is not in 0…%d", shard, ShardMax))
	}
	for {
		last := g.last.Load()
		// Where a millisecond has no number left it goes ahead of the clock rather than waiting for it.
		next := max(last+1, (g.now().UnixMilli()-epoch)<<sequenceBits)
		millis := next >> sequenceBits
		if millis >= 1<<millisBits {
			return 0, errors.New("id: the clock is past the last number (year 2094)")
		}
		if err := g.reserved(millis); err != nil {
			return 0, err
		}
		if g.last.CompareAndSwap(last, next) {
			sequence := next & (1<<sequenceBits - 1)
			return ID(millis<<millisShift | int64(shard)<<shardShift | int64(g.node)<<nodeShift | sequence), nil
		}
	}
}

// reserved makes sure that numbers of a millisecond may be given out.
func (g *Generator) reserved(millis int64) error {
	if g.reserve == nil || millis < g.limit.Load() {
		return nil
	}
	g.reserving.Lock()
	defer g.reserving.Unlock()
	if millis < g.limit.Load() {
		return nil
	}
	if err := g.reserve(millis + reserveAhead); err != nil {
		return fmt.Errorf("id: storing the high-water mark: %w", err)
	}
	g.limit.Store(millis + reserveAhead)
	return nil
}

// MustNext is Next for generators without a Reserve.
func (g *Generator) MustNext(shard int) ID {
	v, err := g.Next(shard)
	if err != nil {
		panic(err)
	}
	return v
}

// Floor is the smallest number that can have been made at or after an instant; the greatest ID past the last number.
func Floor(t time.Time) ID {
	millis := max(0, t.UnixMilli()-epoch)
	if millis >= 1<<millisBits {
		return math.MaxInt64
	}
	return ID(millis << millisShift)
}
