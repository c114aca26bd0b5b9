package inventory

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// The states of a seat as people see them, two bits each: the waitlist's seats look held, the organizer's sold.
const (
	ShownAvailable = 0
	ShownHeld      = 1
	ShownSold      = 2
)

var shown = [5]byte{
	ledger.Available: ShownAvailable,
	ledger.Held:      ShownHeld,
	ledger.Sold:      ShownSold,
	ledger.Blocked:   ShownSold,
	ledger.Returned:  ShownHeld,
}

func (b *Board) pack(seat int32, state ledger.Availability) {
	shift := uint(seat&3) * 2
	b.packed[seat>>2] = b.packed[seat>>2]&^(3<<shift) | shown[state]<<shift
}

// A Picture is an event's availability at one version, the same for everybody. Seat i has bits 2·(i mod 4) and the next
// of byte i/4: 0 available, 1 held, 2 sold or not for sale.
type Picture struct {
	Event   id.ID
	Version int64
	Seats   int
	Packed  []byte
	Areas   []int32 // free places of each area, by its place in the plan

	octetsOnce sync.Once
	octets     []byte
	jsonOnce   sync.Once
	json       []byte
}

// Seat is what is shown of a seat.
func (p *Picture) Seat(seat int32) byte { return p.Packed[seat>>2] >> (uint(seat&3) * 2) & 3 }

// ETag names the content; the two representations share the version and differ in the letter.
func (p *Picture) ETag(json bool) string {
	letter := byte('b')
	if json {
		letter = 'j'
	}
	return fmt.Sprintf("%q", fmt.Sprintf("%d%c", p.Version, letter))
}

const (
	octetsMagic  = "OSB\x01" // the last byte is the version of the format (D5)
	octetsHeader = len(octetsMagic) + 8 + 4 + 4
)

// Octets is the picture as application/octet-stream: "OSB", 1, then big-endian the version (8 bytes), the number of seats
// and of areas (4 each), free places of each area (4 each), and Packed. It is encoded once; do not write into it.
func (p *Picture) Octets() []byte {
	p.octetsOnce.Do(func() {
		o := make([]byte, 0, octetsHeader+4*len(p.Areas)+len(p.Packed))
		o = append(o, octetsMagic...)
		o = binary.BigEndian.AppendUint64(o, uint64(p.Version))
		o = binary.BigEndian.AppendUint32(o, uint32(p.Seats))
		o = binary.BigEndian.AppendUint32(o, uint32(len(p.Areas)))
		for _, free := range p.Areas {
			o = binary.BigEndian.AppendUint32(o, uint32(free))
		}
		p.octets = append(o, p.Packed...)
	})
	return p.octets
}

// ParseOctets reads what Octets wrote.
func ParseOctets(o []byte) (*Picture, error) {
	if len(o) < octetsHeader || string(o[:len(octetsMagic)]) != octetsMagic {
		return nil, errors.New("not a picture of seats, or of another version")
	}
	p := &Picture{Version: int64(binary.BigEndian.Uint64(o[4:])), Seats: int(binary.BigEndian.Uint32(o[12:]))}
	areas := int(binary.BigEndian.Uint32(o[16:]))
	if rest := len(o) - octetsHeader; rest != 4*areas+(p.Seats+3)/4 {
		return nil, fmt.Errorf("a picture of %d seats and %d areas does not have %d bytes", p.Seats, areas, len(o))
	}
	for k := range areas {
		p.Areas = append(p.Areas, int32(binary.BigEndian.Uint32(o[octetsHeader+4*k:])))
	}
	p.Packed = o[octetsHeader+4*areas:]
	return p, nil
}

// JSON is the picture as application/json: event_id, version, seat_count, seats (Packed in base64), areas (free places of
// each). It is encoded once; do not write into it.
func (p *Picture) JSON() []byte {
	p.jsonOnce.Do(func() {
		j := append([]byte(`{"event_id":"`), p.Event.Text(id.Event)...)
		j = strconv.AppendInt(append(j, `","version":`...), p.Version, 10)
		j = strconv.AppendInt(append(j, `,"seat_count":`...), int64(p.Seats), 10)
		j = base64.StdEncoding.AppendEncode(append(j, `,"seats":"`...), p.Packed)
		j = append(j, `","areas":[`...)
		j = appendNumbers(j, p.Areas)
		p.json = append(j, "]}"...)
	})
	return p.json
}

func appendNumbers(j []byte, numbers []int32) []byte {
	for k, n := range numbers {
		if k > 0 {
			j = append(j, ',')
		}
		j = strconv.AppendInt(j, int64(n), 10)
	}
	return j
}

// Picture is the board's present picture, made once for each version; nil while it has none.
func (b *Board) Picture() *Picture {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.loaded {
		return nil
	}
	if b.picture == nil || b.picture.Version != b.version {
		p := &Picture{Event: b.event, Version: b.version, Seats: len(b.states), Packed: slices.Clone(b.packed)}
		for _, a := range b.areas {
			p.Areas = append(p.Areas, a.free)
		}
		b.picture = p
	}
	return b.picture
}

// A Delta is what has changed between two versions: seats and areas as they are at Version.
type Delta struct {
	Since     int64
	Version   int64
	Config    bool // the event itself has changed too: read it again
	Available []int32
	Held      []int32
	Sold      []int32
	Areas     [][2]int32 // area, free places
}

// JSON is the delta as it is sent: since, version, then available, held, sold, areas, config where there are any.
func (d *Delta) JSON() []byte {
	j := strconv.AppendInt([]byte(`{"since":`), d.Since, 10)
	j = strconv.AppendInt(append(j, `,"version":`...), d.Version, 10)
	for _, list := range []struct {
		name  string
		seats []int32
	}{{"available", d.Available}, {"held", d.Held}, {"sold", d.Sold}} {
		if len(list.seats) > 0 {
			j = append(append(append(j, `,"`...), list.name...), `":[`...)
			j = append(appendNumbers(j, list.seats), ']')
		}
	}
	if len(d.Areas) > 0 {
		j = append(j, `,"areas":[`...)
		for k, a := range d.Areas {
			if k > 0 {
				j = append(j, ',')
			}
			j = append(appendNumbers(append(j, '['), a[:]), ']')
		}
		j = append(j, ']')
	}
	if d.Config {
		j = append(j, `,"config":true`...)
	}
	return append(j, '}')
}

// Delta is the difference since a version; ok is false where the board does not remember that far back.
func (b *Board) Delta(since int64) (d Delta, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d = Delta{Since: since, Version: max(b.version, since)}
	if !b.loaded || since < b.recent.from {
		return d, false
	}
	if since > b.version && since <= b.recent.back {
		d.Version = b.version
		return d, false
	}
	var seats, areas []int32
	for i := len(b.recent.list) - 1; i >= 0 && b.recent.list[i].version > since; i-- {
		r := &b.recent.list[i]
		seats, areas, d.Config = append(seats, r.seats...), append(areas, r.areas...), d.Config || r.config
	}
	slices.Sort(seats)
	for _, seat := range slices.Compact(seats) {
		switch shown[b.states[seat]] {
		case ShownAvailable:
			d.Available = append(d.Available, seat)
		case ShownHeld:
			d.Held = append(d.Held, seat)
		default:
			d.Sold = append(d.Sold, seat)
		}
	}
	slices.Sort(areas)
	for _, a := range slices.Compact(areas) {
		d.Areas = append(d.Areas, [2]int32{a, b.areas[a].free})
	}
	return d, true
}

// Version is the version of the board's picture.
func (b *Board) Version() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.version
}

// Recent are the last changes, as far back as there is room: what changed in which version.
type recent struct {
	from  int64 // differences since this version are known
	back  int64 // the ledger has lost versions up to this one: who has one that is above the board's has what is not so
	list  []recentChange
	count int // of seats in list
}

type recentChange struct {
	version int64
	seats   []int32
	areas   []int32
	config  bool
}

func (r *recent) add(c *ledger.Change) {
	n := recentChange{version: c.Version, config: c.Config, seats: make([]int32, 0, len(c.Seats))}
	for _, s := range c.Seats {
		n.seats = append(n.seats, s.Index)
	}
	for _, a := range c.Areas {
		n.areas = append(n.areas, a.Area)
	}
	r.push(n)
}

func (r *recent) push(n recentChange) {
	r.list = append(r.list, n)
	r.count += len(n.seats)
	drop := 0
	for drop < len(r.list) && (len(r.list)-drop > RecentVersionsMax || r.count > RecentSeatsMax) {
		r.from = r.list[drop].version
		r.count -= len(r.list[drop].seats)
		r.list[drop] = recentChange{}
		drop++
	}
	r.list = r.list[drop:]
}

// fall begins anew at a snapshot that is older than what the board has, of a ledger that has lost the rest.
func (r *recent) fall(b *Board, s *ledger.Snapshot) {
	*r = recent{from: s.Version, back: max(r.back, b.version)}
}

// jump bridges a gap by comparing a snapshot with what the board has.
func (r *recent) jump(b *Board, s *ledger.Snapshot) {
	if !b.loaded {
		*r = recent{from: s.Version}
		return
	}
	n := recentChange{version: s.Version, config: s.Event.Version != b.config.Version}
	for i := range s.Seats {
		if shown[s.Seats[i].State] != shown[b.states[i]] {
			n.seats = append(n.seats, int32(i))
		}
	}
	for i, a := range s.Areas {
		if i >= len(b.areas) || b.areas[i].free != a.Free() {
			n.areas = append(n.areas, int32(i))
		}
	}
	if s.Version > b.version || len(n.seats)+len(n.areas) > 0 {
		r.push(n)
	}
}
