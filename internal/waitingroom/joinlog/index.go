package joinlog

import (
	"math/bits"
	"slices"

	"onsale/internal/id"
)

// An index finds an event's records by customer and by number. It has about 36 bytes a record, so that two million fit
// anywhere: the rest of a record is read from the file.
type index struct {
	slots   []*[slotsChunk]slot
	count   int
	table   []uint32 // open addressing by customer: the slot of their last record, plus 1; 0 is empty
	filled  int
	pages   map[pageKey]*[numbersPage]uint32 // by number: the slot, plus 1
	next    map[int]int64                    // of each lane, the number behind the greatest
	sealed  bool
	hashing uint // shift of the table's hash
}

const (
	slotsChunk  = 1 << 12
	numbersPage = 1 << 10
	tableMin    = 1 << 8

	// recordsMax is how many records an event may have.
	recordsMax = 1 << 31
)

// A slot is a record. The fields are packed: 24 bytes.
type slot struct {
	customer id.ID
	number   uint64 // lane in the upper 16 bits
	place    uint64 // offset in the file, flags in the upper 8 bits
}

const (
	slotDrawn    = uint64(1) << 63
	slotLeft     = uint64(1) << 62
	slotUnlisted = uint64(1) << 61 // left before the list was sealed

	placeMask = uint64(1)<<56 - 1
	laneShift = 48
)

type pageKey struct {
	lane int
	page int64
}

func newIndex() *index {
	x := &index{pages: map[pageKey]*[numbersPage]uint32{}, next: map[int]int64{}}
	x.grow(tableMin)
	return x
}

func pack(lane int, number int64) uint64 { return uint64(lane)<<laneShift | uint64(number) }

func (s *slot) offset() int64 { return int64(s.place & placeMask) }

func (x *index) slot(i uint32) *slot { return &x.slots[i/slotsChunk][i%slotsChunk] }

// current is a customer's record that has not ended; nil for none.
func (x *index) current(customer id.ID) *slot {
	if s := x.last(customer); s != nil && s.place&slotLeft == 0 {
		return s
	}
	return nil
}

func (x *index) last(customer id.ID) *slot {
	for at := x.hash(customer); ; at = (at + 1) & (len(x.table) - 1) {
		i := x.table[at]
		if i == 0 {
			return nil
		}
		if s := x.slot(i - 1); s.customer == customer {
			return s
		}
	}
}

// taken says whether a number was ever given.
func (x *index) taken(lane int, number int64) bool {
	page := x.pages[pageKey{lane, number / numbersPage}]
	return page != nil && page[number%numbersPage] != 0
}

// join adds a record.
func (x *index) join(customer id.ID, lane int, number int64, drawn bool, offset int64) {
	if x.count%slotsChunk == 0 {
		x.slots = append(x.slots, new([slotsChunk]slot))
	}
	i := uint32(x.count)
	x.count++
	place := uint64(offset)
	if drawn {
		place |= slotDrawn
	}
	*x.slot(i) = slot{customer, pack(lane, number), place}
	key := pageKey{lane, number / numbersPage}
	page := x.pages[key]
	if page == nil {
		page = new([numbersPage]uint32)
		x.pages[key] = page
	}
	page[number%numbersPage] = i + 1
	x.next[lane] = max(x.next[lane], number+1)
	if x.filled*5 >= len(x.table)*4 {
		x.grow(2 * len(x.table))
	}
	x.place(customer, i)
}

// leave ends a customer's record.
func (x *index) leave(customer id.ID) {
	if s := x.current(customer); s != nil {
		s.place |= slotLeft
		if !x.sealed {
			s.place |= slotUnlisted
		}
	}
}

func (x *index) place(customer id.ID, i uint32) {
	at := x.hash(customer)
	for x.table[at] != 0 && x.slot(x.table[at]-1).customer != customer {
		at = (at + 1) & (len(x.table) - 1)
	}
	if x.table[at] == 0 {
		x.filled++
	}
	x.table[at] = i + 1
}

func (x *index) grow(size int) {
	old := x.table
	x.table, x.filled, x.hashing = make([]uint32, size), 0, uint(64-bits.TrailingZeros(uint(size)))
	for _, i := range old {
		if i != 0 {
			x.place(x.slot(i-1).customer, i-1)
		}
	}
}

// hash spreads ids, which follow each other closely: the upper bits of a product with the golden ratio.
func (x *index) hash(customer id.ID) int {
	return int(uint64(customer) * 0x9e3779b97f4a7c15 >> x.hashing)
}

// pagesInOrder are the keys of the pages, by lane and number.
func (x *index) pagesInOrder() []pageKey {
	keys := make([]pageKey, 0, len(x.pages))
	for k := range x.pages {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b pageKey) int {
		if a.lane != b.lane {
			return a.lane - b.lane
		}
		return int(a.page - b.page)
	})
	return keys
}

// listed are the offsets of a page's records that stand in the list, by number.
func (x *index) listed(key pageKey, into []int64) []int64 {
	for _, i := range x.pages[key] {
		if i == 0 {
			continue
		}
		if s := x.slot(i - 1); s.place&slotDrawn != 0 && s.place&slotUnlisted == 0 {
			into = append(into, s.offset())
		}
	}
	return into
}
