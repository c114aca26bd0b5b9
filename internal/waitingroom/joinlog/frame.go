package joinlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"onsale/internal/id"
	"onsale/internal/waitingroom"
)

// A file is a head and then groups, each of which was made durable as one. All numbers are little-endian.
//
//	head    "onsale-joins" | version u32 | event i64 | 0 u32 | sum u32 of the bytes before
//	group   magic u32 | records u32 | sequence u64 | body u32 | sum u32 of the bytes before, then the records
//	record  kind u8 | flags u8 | lane u16 | customer i64 | number i64 | at i64 | identity 16 | entry 16
//
// body is the sum over the records, begun with the body of the group before: a group that was left over from an earlier
// attempt never fits behind another. Sums are CRC-32C.
const (
	version     = 1 // D5
	headBytes   = 32
	groupBytes  = 24
	recordBytes = 60

	// groupRecordsMax is how many records are made durable at once.
	groupRecordsMax = 32_768
	groupBytesMax   = groupBytes + groupRecordsMax*recordBytes
)

var (
	headMagic  = []byte("onsale-joins")
	groupMagic = []byte{0xf6, 'O', 'J', 'G'} // no text begins so
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// The kinds of records.
const (
	kindJoin byte = 1
	kindLeft byte = 2
	kindSeal byte = 3
)

const (
	flagDrawn    = 1 << 0
	flagIdentity = 1 << 1 // identity is not zero; for people who look at the file
)

// ErrDamaged says that something in the middle of a file is not what was written there.
var ErrDamaged = errors.New("the log of joins is damaged")

func head(event id.ID) []byte {
	b := append(make([]byte, 0, headBytes), headMagic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint64(b, uint64(event))
	b = binary.LittleEndian.AppendUint32(b, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// checkHead says whether a file is a log of joins that this program can read, and of the event.
func checkHead(b []byte, event id.ID) error {
	if len(b) != headBytes || !bytes.HasPrefix(b, headMagic) || crc32.Checksum(b[:headBytes-4], castagnoli) != binary.LittleEndian.Uint32(b[headBytes-4:]) {
		return fmt.Errorf("%w: it does not begin as one", ErrDamaged)
	}
	if v := binary.LittleEndian.Uint32(b[12:]); v > version {
		return fmt.Errorf("the log of joins was written by a newer program (version %d, this one reads %d)", v, version)
	}
	if of := id.ID(binary.LittleEndian.Uint64(b[16:])); of != event {
		return fmt.Errorf("%w: it is of event %s", ErrDamaged, of.Text(id.Event))
	}
	return nil
}

// appendRecord writes a record.
func appendRecord(b []byte, kind byte, r *waitingroom.Record) []byte {
	var flags byte
	if r.Drawn {
		flags |= flagDrawn
	}
	if r.Identity != (waitingroom.Identity{}) {
		flags |= flagIdentity
	}
	b = append(b, kind, flags)
	b = binary.LittleEndian.AppendUint16(b, uint16(r.Lane))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Customer))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Number))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.At))
	b = append(b, r.Identity[:]...)
	return append(b, r.Entry[:]...)
}

// readRecord reads what appendRecord wrote.
func readRecord(b []byte, event id.ID) (kind byte, r waitingroom.Record) {
	r = waitingroom.Record{
		Event:    event,
		Lane:     int(binary.LittleEndian.Uint16(b[2:])),
		Customer: id.ID(binary.LittleEndian.Uint64(b[4:])),
		Number:   int64(binary.LittleEndian.Uint64(b[12:])),
		At:       int64(binary.LittleEndian.Uint64(b[20:])),
		Drawn:    b[1]&flagDrawn != 0,
		Left:     b[0] == kindLeft,
		Identity: waitingroom.Identity(b[28:44]),
		Entry:    [16]byte(b[44:60]),
	}
	return b[0], r
}

// tail is where the next group goes, and what it continues.
type tail struct {
	offset   int64
	sequence uint64
	body     uint32
}

// seal makes a group of records ready to be written: group has room for its head in front. The tail is the one after it.
func (t tail) seal(group []byte) tail {
	records := group[groupBytes:]
	body := crc32.Update(t.body, castagnoli, records)
	h := append(group[:0], groupMagic...)
	h = binary.LittleEndian.AppendUint32(h, uint32(len(records)/recordBytes))
	h = binary.LittleEndian.AppendUint64(h, t.sequence)
	h = binary.LittleEndian.AppendUint32(h, body)
	binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli))
	return tail{t.offset + int64(len(group)), t.sequence + 1, body}
}

// groupHead reads a group's head: how many records it has. ok is false where there is none.
func groupHead(b []byte) (records int, sequence uint64, body uint32, ok bool) {
	if len(b) < groupBytes || !bytes.HasPrefix(b, groupMagic) || crc32.Checksum(b[:groupBytes-4], castagnoli) != binary.LittleEndian.Uint32(b[groupBytes-4:]) {
		return 0, 0, 0, false
	}
	n := binary.LittleEndian.Uint32(b[4:])
	return int(n), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint32(b[16:]), n > 0 && n <= groupRecordsMax
}

// scan reads all groups of a file of size bytes: each gets every record with its offset, in order. What is behind the tail
// that it answers was never acknowledged: a group that was being written when the machine went down. ErrDamaged where that
// cannot be, since more follows than one group, or another whole one.
func scan(in io.ReaderAt, size int64, event id.ID, each func(offset int64, record []byte) error) (tail, error) {
	first := make([]byte, headBytes)
	if _, err := in.ReadAt(first, 0); err != nil {
		return tail{}, fmt.Errorf("reading the log of joins: %w", err)
	}
	if err := checkHead(first, event); err != nil {
		return tail{}, err
	}
	t := tail{offset: headBytes}
	buffer := make([]byte, 0, 1<<20)
	for t.offset < size {
		group, next, err := readGroup(in, size, t, &buffer)
		if err != nil {
			return t, err
		}
		if group == nil {
			return t, checkTorn(in, size, t)
		}
		for at := 0; at < len(group); at += recordBytes {
			if err := each(t.offset+groupBytes+int64(at), group[at:at+recordBytes]); err != nil {
				return t, err
			}
		}
		t = next
	}
	return t, nil
}

// readGroup reads the records of the group at a tail, nil where there is no whole one.
func readGroup(in io.ReaderAt, size int64, t tail, buffer *[]byte) (records []byte, next tail, err error) {
	var h [groupBytes]byte
	if size-t.offset < groupBytes {
		return nil, t, nil
	}
	if _, err := in.ReadAt(h[:], t.offset); err != nil {
		return nil, t, fmt.Errorf("reading the log of joins: %w", err)
	}
	n, sequence, body, ok := groupHead(h[:])
	length := int64(n) * recordBytes
	if !ok || sequence != t.sequence || size-t.offset-groupBytes < length {
		return nil, t, nil
	}
	if int64(cap(*buffer)) < length {
		*buffer = make([]byte, length)
	}
	records = (*buffer)[:length]
	if _, err := in.ReadAt(records, t.offset+groupBytes); err != nil {
		return nil, t, fmt.Errorf("reading the log of joins: %w", err)
	}
	if crc32.Update(t.body, castagnoli, records) != body {
		return nil, t, nil
	}
	return records, tail{t.offset + groupBytes + length, sequence + 1, body}, nil
}

// checkTorn says whether what follows a tail can be a group that was never acknowledged.
func checkTorn(in io.ReaderAt, size int64, t tail) error {
	left := size - t.offset
	if left > groupBytesMax {
		return fmt.Errorf("%w at byte %d: %d bytes follow, and no group is so large", ErrDamaged, t.offset, left)
	}
	rest := make([]byte, left)
	if _, err := in.ReadAt(rest, t.offset); err != nil {
		return fmt.Errorf("reading the log of joins: %w", err)
	}
	for at := 1; at < len(rest); at++ {
		next := bytes.Index(rest[at:], groupMagic)
		if next < 0 {
			return nil
		}
		at += next
		if _, sequence, _, ok := groupHead(rest[at:]); ok && sequence > t.sequence {
			return fmt.Errorf("%w at byte %d: a whole group follows at byte %d", ErrDamaged, t.offset, t.offset+int64(at))
		}
	}
	return nil
}
