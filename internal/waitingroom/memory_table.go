package waitingroom

import (
	"encoding/binary"
	"math/bits"

	"onsale/internal/id"
)

// The tables of the in-process store: open addressing in plain arrays without pointers, which the garbage collector does not
// look into, filled to 7/8 and grown by a quarter, so that two million people cost about 55 bytes each, identities included. A
// map of the standard library would double at its worst moment.
//
// An entry's home is where its hash lies in proportion in the table, so that a table grows by any factor. It stands there or
// behind, with no gap between.

const (
	tableLeast = 8
	numberBits = 40
	numberCap  = int64(1) << numberBits
	laneCap    = 1 << 8
)

// A person is a number, its lane, and whether it is drawn, in one word.
type person uint64

const personDrawn = person(1) << 63

func personOf(lane int, number int64, drawn bool) person {
	p := person(number) | person(lane)<<numberBits
	if drawn {
		p |= personDrawn
	}
	return p
}

func (p person) number() int64 { return int64(p) & (numberCap - 1) }

func (p person) joined() Joined {
	return Joined{Lane: int(p>>numberBits) & (laneCap - 1), Number: p.number(), Drawn: p&personDrawn != 0}
}

// home is the place of a hash in a table of some size.
func home(hash uint64, size int) int {
	h, _ := bits.Mul64(hash, uint64(size))
	return int(h)
}

func grown(size int) int { return max(tableLeast, size+size/4) }

func tooFull(count, size int) bool { return count >= size-size/8 }

// A peopleTable finds a customer's number. The customer 0 is nobody.
type peopleTable struct {
	slots []personSlot
	count int
}

type personSlot struct {
	customer id.ID
	person   person
}

// find is where a customer stands, or the gap where they would.
func (t *peopleTable) find(hash uint64, customer id.ID) (at int, found bool) {
	at = home(hash, len(t.slots))
	for t.slots[at].customer != 0 {
		if t.slots[at].customer == customer {
			return at, true
		}
		if at++; at == len(t.slots) {
			at = 0
		}
	}
	return at, false
}

func (t *peopleTable) get(hash uint64, customer id.ID) (person, bool) {
	if t.count == 0 {
		return 0, false
	}
	at, found := t.find(hash, customer)
	return t.slots[at].person, found
}

func (t *peopleTable) put(m *memory, hash uint64, customer id.ID, p person) {
	if tooFull(t.count, len(t.slots)) {
		old := t.slots
		t.slots = make([]personSlot, grown(len(old)))
		for _, s := range old {
			if s.customer != 0 {
				at, _ := t.find(m.mix(uint64(s.customer)), s.customer)
				t.slots[at] = s
			}
		}
	}
	at, found := t.find(hash, customer)
	if !found {
		t.count++
	}
	t.slots[at] = personSlot{customer, p}
}

// remove takes a customer out and puts those behind again, who may have stood there only because of them.
func (t *peopleTable) remove(m *memory, hash uint64, customer id.ID) {
	at, found := t.find(hash, customer)
	if !found {
		return
	}
	t.slots[at] = personSlot{}
	t.count--
	for {
		if at++; at == len(t.slots) {
			at = 0
		}
		s := t.slots[at]
		if s.customer == 0 {
			return
		}
		t.slots[at] = personSlot{}
		to, _ := t.find(m.mix(uint64(s.customer)), s.customer)
		t.slots[to] = s
	}
}

// A paperTable finds whose an identity is. Nothing is taken out of it: an owner without a number counts no more.
type paperTable struct {
	slots []paperSlot
	count int
}

type paperSlot struct {
	identity Identity
	customer id.ID
}

// low is half of an identity, which is a keyed hash already.
func (i Identity) low() uint64 { return binary.LittleEndian.Uint64(i[:8]) }

func (t *paperTable) find(hash uint64, identity Identity) (at int) {
	at = home(hash, len(t.slots))
	for t.slots[at].customer != 0 && t.slots[at].identity != identity {
		if at++; at == len(t.slots) {
			at = 0
		}
	}
	return at
}

// get is the customer with an identity, 0 for none.
func (t *paperTable) get(hash uint64, identity Identity) id.ID {
	if t.count == 0 {
		return 0
	}
	return t.slots[t.find(hash, identity)].customer
}

func (t *paperTable) put(m *memory, hash uint64, identity Identity, customer id.ID) {
	if tooFull(t.count, len(t.slots)) {
		old := t.slots
		t.slots = make([]paperSlot, grown(len(old)))
		for _, s := range old {
			if s.customer != 0 {
				t.slots[t.find(m.mix(s.identity.low()), s.identity)] = s
			}
		}
	}
	at := t.find(hash, identity)
	if t.slots[at].customer == 0 {
		t.count++
	}
	t.slots[at] = paperSlot{identity, customer}
}
