package draw

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
)

const (
	// LaneBytesMax is the longest name of a lane.
	LaneBytesMax = 64
	// LanesMax is how many lanes a list may have.
	LanesMax = 16

	numberDigitsMax = 13 // of NMax
	lineBytesMax    = LaneBytesMax + 1 + numberDigitsMax + 1 + 2*EntryBytes + 1
)

// A ListWriter writes the list of joins that is published at opening. It is text, so that sha256sum checks it:
//
//	<lane> <number> <entry>\n
//
// one line for each join that is drawn, sorted by lane, in the order of the room's lanes, and then by number. The number is
// decimal, the entry 32 digits of hex in small letters. A number that was never given, or given back before opening, has
// no line.
type ListWriter struct {
	out   *bufio.Writer
	sum   hash.Hash
	lanes []string
	lane  int   // of the last line
	next  int64 // the least number that may come in it
	lines int64
	line  []byte
}

// NewListWriter begins a list of a room with these lanes. Call Close when all joins are added.
func NewListWriter(w io.Writer, lanes []string) (*ListWriter, error) {
	if len(lanes) > LanesMax {
		return nil, fmt.Errorf("draw: %d lanes; at most %d are possible", len(lanes), LanesMax)
	}
	for i, lane := range lanes {
		if err := CheckLane(lane); err != nil {
			return nil, err
		}
		if slices.Contains(lanes[:i], lane) {
			return nil, fmt.Errorf("draw: two lanes are named %q", lane)
		}
	}
	l := &ListWriter{sum: sha256.New(), lanes: slices.Clone(lanes)}
	l.out = bufio.NewWriterSize(io.MultiWriter(w, l.sum), 64<<10)
	return l, nil
}

// CheckLane refuses a lane's name that cannot stand in a list: it has 1 to 64 printable ASCII characters and no space.
func CheckLane(lane string) error {
	if lane == "" || len(lane) > LaneBytesMax {
		return fmt.Errorf("draw: a lane's name has 1 to %d bytes, %.80q has %d", LaneBytesMax, lane, len(lane))
	}
	for _, c := range []byte(lane) {
		if c <= ' ' || c >= 0x7f {
			return fmt.Errorf("draw: the lane %.80q: only printable ASCII characters but the space", lane)
		}
	}
	return nil
}

// Add writes a line. Lanes are named by their place. What comes out of order, or twice, is an error.
func (l *ListWriter) Add(lane int, number int64, entry [EntryBytes]byte) error {
	if lane < l.lane || lane >= len(l.lanes) {
		return fmt.Errorf("draw: a join of lane %d after one of lane %d, of %d", lane, l.lane, len(l.lanes))
	}
	if lane > l.lane {
		l.lane, l.next = lane, 0
	}
	if number < l.next || number >= NMax {
		return fmt.Errorf("draw: number %d of lane %s where at least %d was expected", number, l.lanes[lane], l.next)
	}
	l.next = number + 1
	l.lines++
	l.line = append(l.line[:0], l.lanes[lane]...)
	l.line = append(l.line, ' ')
	l.line = strconv.AppendInt(l.line, number, 10)
	l.line = append(l.line, ' ')
	l.line = hex.AppendEncode(l.line, entry[:])
	l.line = append(l.line, '\n')
	_, err := l.out.Write(l.line)
	return err
}

// Close writes what is left, and answers the list's hash and its lines. It does not close the writer below.
func (l *ListWriter) Close() (hash [sha256.Size]byte, lines int64, err error) {
	err = l.out.Flush()
	l.sum.Sum(hash[:0])
	return hash, l.lines, err
}

// ErrList is the cause of all errors of ReadList about the list itself.
var ErrList = errors.New("this is no list of joins")

// ReadList reads a list that a ListWriter wrote, and answers its hash. Every list that it accepts is the only spelling of
// its joins; the order of the lanes is the list's own. Errors: ErrList with the line, those of each, those of r.
func ReadList(r io.Reader, each func(lane string, number int64, entry [EntryBytes]byte) error) (hash [sha256.Size]byte, err error) {
	sum := sha256.New()
	in := bufio.NewReaderSize(io.TeeReader(r, sum), 64<<10)
	reader := listReader{}
	for line := int64(1); ; line++ {
		text, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			sum.Sum(hash[:0])
			return hash, nil
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return hash, err
		}
		if err != nil || len(text) > lineBytesMax {
			return hash, fmt.Errorf("%w: line %d has no end", ErrList, line)
		}
		number, entry, err := reader.read(text[:len(text)-1])
		if err != nil {
			return hash, fmt.Errorf("%w: line %d: %w", ErrList, line, err)
		}
		if err := each(reader.lanes[len(reader.lanes)-1], number, entry); err != nil {
			return hash, err
		}
	}
}

// A listReader knows the lanes so far and the least number that may come.
type listReader struct {
	lanes []string
	next  int64
}

func (l *listReader) read(line []byte) (number int64, entry [EntryBytes]byte, err error) {
	lane, rest, _ := bytes.Cut(line, []byte{' '})
	digits, code, _ := bytes.Cut(rest, []byte{' '})
	if err := l.enter(lane); err != nil {
		return 0, entry, err
	}
	number, err = strconv.ParseInt(string(digits), 10, 64)
	switch {
	case err != nil || strconv.FormatInt(number, 10) != string(digits):
		return 0, entry, fmt.Errorf("%.80q is no number", digits)
	case number < l.next || number >= NMax:
		return 0, entry, fmt.Errorf("number %d where at least %d was expected", number, l.next)
	}
	l.next = number + 1
	if n, err := hex.Decode(entry[:], code[:min(len(code), 2*EntryBytes)]); err != nil || n != EntryBytes || len(code) != 2*EntryBytes ||
		!bytes.Equal(code, bytes.ToLower(code)) {
		return 0, entry, fmt.Errorf("%.80q is no entry", code)
	}
	return number, entry, nil
}

// enter goes on to a lane, if it is another than the last line's.
func (l *listReader) enter(lane []byte) error {
	if len(l.lanes) > 0 && l.lanes[len(l.lanes)-1] == string(lane) {
		return nil
	}
	name := string(lane)
	if err := CheckLane(name); err != nil {
		return err
	}
	if slices.Contains(l.lanes, name) || len(l.lanes) == LanesMax {
		return fmt.Errorf("lane %s comes after others, again or as one too many", name)
	}
	l.lanes, l.next = append(l.lanes, name), 0
	return nil
}
