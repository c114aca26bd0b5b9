package decide

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// What the databases keep as text is JSON made of nothing but lists of numbers, so that it can be read by eye and by any
// SQL dialect, and written and read here without reflection: this is on the path of every hold.

// errList is the cause of every error of the parsers below.
var errList = errors.New("not a list of lists of numbers as written by this program")

// The versions of a hold's lines: the second is written where some are gone, and the first is read by older programs.
const (
	linesVersion     = 1
	linesGoneVersion = 2
)

// AppendLines writes a hold's lines: [[1],[seat,epoch,category,face,fee,tax,total],…]. The first number is the version
// of the format (D5): with 2, a line that is gone has an eighth number, 1.
func AppendLines(b []byte, lines []ledger.Line) []byte {
	version := int64(linesVersion)
	for i := range lines {
		if lines[i].Gone {
			version = linesGoneVersion
		}
	}
	b = appendRow(append(b, '['), version)
	for _, l := range lines {
		b = appendRow(append(b, ','), int64(l.Seat), l.Epoch, int64(l.Category), l.Face, l.Fee, l.Tax, l.Total)
		if l.Gone {
			b = append(b[:len(b)-1], ",1]"...)
		}
	}
	return append(b, ']')
}

// ParseLines reads what AppendLines wrote.
func ParseLines(text string) ([]ledger.Line, error) {
	p := parser{text: text}
	var row [8]int64
	var lines []ledger.Line
	for i := 0; p.next(); i++ {
		switch n := p.row(row[:]); {
		case i == 0 && n == 1 && (row[0] == linesVersion || row[0] == linesGoneVersion):
		case i > 0 && (n == 7 || n == 8):
			lines = append(lines, ledger.Line{
				Seat: int32(row[0]), Epoch: row[1], Category: int16(row[2]), Face: row[3], Fee: row[4], Tax: row[5], Total: row[6],
				Gone: n == 8 && row[7] == 1,
			})
		default:
			return nil, errList
		}
	}
	return lines, p.end()
}

// AppendExchanged writes the places that a hold exchanges: [[ticket,event,category],…].
func AppendExchanged(b []byte, places []ledger.ExchangedPlace) []byte {
	b = append(b, '[')
	for i, x := range places {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRow(b, int64(x.Ticket), int64(x.Event), int64(x.Category))
	}
	return append(b, ']')
}

// ParseExchanged reads what AppendExchanged wrote.
func ParseExchanged(text string) ([]ledger.ExchangedPlace, error) {
	if text == "[]" {
		return nil, nil
	}
	p := parser{text: text}
	var row [3]int64
	var places []ledger.ExchangedPlace
	for p.next() {
		if p.row(row[:]) != 3 {
			return nil, errList
		}
		places = append(places, ledger.ExchangedPlace{Ticket: id.ID(row[0]), Event: id.ID(row[1]), Category: int16(row[2])})
	}
	return places, p.end()
}

// AppendDraws writes [[bucket,count],…].
func AppendDraws(b []byte, draws []Draw) []byte {
	b = append(b, '[')
	for i, d := range draws {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRow(b, int64(d.Bucket), int64(d.Count))
	}
	return append(b, ']')
}

// ParseDraws reads what AppendDraws wrote.
func ParseDraws(text string) ([]Draw, error) {
	p := parser{text: text}
	var row [2]int64
	var draws []Draw
	for p.next() {
		if p.row(row[:]) != 2 {
			return nil, errList
		}
		draws = append(draws, Draw{int16(row[0]), int32(row[1])})
	}
	return draws, p.end()
}

// AppendClaims writes the seats of a Transition: [[seat,epoch],…].
func (t *Transition) AppendClaims(b []byte) []byte {
	b = append(b, '[')
	for i := range t.Seats {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRow(b, int64(t.Seats[i]), t.Epoch[i])
	}
	return append(b, ']')
}

// ParseClaims reads the seats of what AppendClaims wrote, nil for none.
func ParseClaims(text string) ([]int32, error) {
	p := parser{text: text}
	var row [2]int64
	var seats []int32
	for p.next() {
		if p.row(row[:]) != 2 {
			return nil, errList
		}
		seats = append(seats, int32(row[0]))
	}
	return seats, p.end()
}

// AppendChange writes a change's body: [[1,config],[index,state,expires],…,[area,free],…].
func AppendChange(b []byte, c *ledger.Change) []byte {
	config := int64(0)
	if c.Config {
		config = 1
	}
	b = appendRow(append(b, '['), 1, config)
	for _, s := range c.Seats {
		b = appendRow(append(b, ','), int64(s.Index), int64(s.State), int64(s.Expires))
	}
	for _, a := range c.Areas {
		b = appendRow(append(b, ','), int64(a.Area), int64(a.Free))
	}
	return append(b, ']')
}

// ParseChange reads what AppendChange wrote into c.
func ParseChange(text string, c *ledger.Change) error {
	p := parser{text: text}
	var row [3]int64
	for i := 0; p.next(); i++ {
		switch n := p.row(row[:]); {
		case i == 0 && n == 2 && row[0] == 1:
			c.Config = row[1] == 1
		case i > 0 && n == 3:
			c.Seats = append(c.Seats, ledger.SeatChange{Index: int32(row[0]), State: ledger.Availability(row[1]), Expires: ledger.Time(row[2])})
		case i > 0 && n == 2:
			c.Areas = append(c.Areas, ledger.AreaChange{Area: int32(row[0]), Free: int32(row[1])})
		default:
			return errList
		}
	}
	return p.end()
}

func appendRow(b []byte, numbers ...int64) []byte {
	b = append(b, '[')
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return append(b, ']')
}

// A parser reads a list of lists of numbers without spaces.
type parser struct {
	text string
	at   int
	bad  bool
}

// next goes to the next inner list; false at the end.
func (p *parser) next() bool {
	if p.bad || p.at >= len(p.text) {
		p.bad = true
		return false
	}
	c := p.text[p.at]
	p.at++
	if (p.at == 1) != (c == '[') || (c != '[' && c != ',' && c != ']') {
		p.bad = true
		return false
	}
	if c == ']' {
		return false
	}
	if p.at == 1 && p.at < len(p.text) && p.text[p.at] == ']' { // an empty list
		p.at++
		return false
	}
	return true
}

// row reads an inner list into numbers and says how many there were, -1 where it is none or has more.
func (p *parser) row(numbers []int64) int {
	if p.at >= len(p.text) || p.text[p.at] != '[' {
		p.bad = true
		return -1
	}
	p.at++
	for n := 0; n < len(numbers); n++ {
		start := p.at
		for p.at < len(p.text) && p.text[p.at] != ',' && p.text[p.at] != ']' {
			p.at++
		}
		v, err := strconv.ParseInt(p.text[start:p.at], 10, 64)
		if err != nil || p.at >= len(p.text) {
			break
		}
		numbers[n] = v
		p.at++
		if p.text[p.at-1] == ']' {
			return n + 1
		}
	}
	p.bad = true
	return -1
}

func (p *parser) end() error {
	if p.bad || p.at != len(p.text) {
		return errList
	}
	return nil
}

// EncodeFields and DecodeFields turn an idempotency key's field hashes into text and back.
func EncodeFields(fields []ledger.KeyField) string { return encodeJSON(fields, "[]") }

// DecodeFields reads what EncodeFields wrote.
func DecodeFields(text string) (fields []ledger.KeyField, err error) {
	err = json.Unmarshal([]byte(text), &fields)
	return fields, err
}

// EncodeDocuments turns an order's documents into text.
func EncodeDocuments(documents []string) string { return encodeJSON(documents, "[]") }

// DecodeDocuments reads what EncodeDocuments wrote.
func DecodeDocuments(text string) (documents []string, err error) {
	if text == "[]" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &documents)
	return documents, err
}

// A fund is how a ledger.Fund is kept.
type fund struct {
	Order    id.ID  `json:"order"`
	Provider string `json:"provider"`
	Payment  string `json:"payment"`
	Left     int64  `json:"left"`
}

// EncodeFunds turns an order's funds into text.
func EncodeFunds(funds []ledger.Fund) string {
	list := make([]fund, len(funds))
	for i, f := range funds {
		list[i] = fund(f)
	}
	return encodeJSON(list, "[]")
}

// DecodeFunds reads what EncodeFunds wrote.
func DecodeFunds(text string) (funds []ledger.Fund, err error) {
	if text == "[]" {
		return nil, nil
	}
	var list []fund
	err = json.Unmarshal([]byte(text), &list)
	for _, f := range list {
		funds = append(funds, ledger.Fund(f))
	}
	return funds, err
}

// EncodeNames and DecodeNames turn the categories or sections of a wish into text and back: a list of numbers.
func EncodeNames(names []int16) string { return encodeJSON(names, "[]") }

// DecodeNames reads what EncodeNames wrote.
func DecodeNames(text string) (names []int16, err error) {
	if text == "[]" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &names)
	return names, err
}

// EncodeTickets turns a refund's tickets into text: a list of their numbers.
func EncodeTickets(tickets []id.ID) string {
	list := make([]int64, len(tickets))
	for i, t := range tickets {
		list[i] = int64(t)
	}
	return encodeJSON(list, "[]")
}

// DecodeTickets reads what EncodeTickets wrote.
func DecodeTickets(text string) (tickets []id.ID, err error) {
	if text == "[]" {
		return nil, nil
	}
	var list []int64
	err = json.Unmarshal([]byte(text), &list)
	for _, t := range list {
		tickets = append(tickets, id.ID(t))
	}
	return tickets, err
}

func encodeJSON[T any](list []T, empty string) string {
	if len(list) == 0 {
		return empty
	}
	b, err := json.Marshal(list)
	if err != nil {
		panic(err) // plain structs of strings: it cannot fail
	}
	return string(b)
}

// EncodeEvent and DecodeEvent turn an event's row into text and back.
func EncodeEvent(e *ledger.Event) (string, error) {
	b, err := json.Marshal(e)
	return string(b), err
}

// DecodeEvent reads what EncodeEvent wrote. The columns beside it win: they are what is locked.
func DecodeEvent(text string, event id.ID, version int64, state ledger.EventState, sequence int64) (*ledger.Event, error) {
	var e ledger.Event
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return nil, fmt.Errorf("event %s: %w", event.Text(id.Event), err)
	}
	e.ID, e.Version, e.State, e.Sequence = event, version, state, sequence
	return &e, nil
}

// EncodeLayout packs a layout (a version byte, then gzipped JSON); DecodeLayout unpacks it.
func EncodeLayout(l *ledger.Layout) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte(1)
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(l); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// DecodeLayout reads what EncodeLayout wrote.
func DecodeLayout(packed []byte) (*ledger.Layout, error) {
	if len(packed) == 0 || packed[0] != 1 {
		return nil, errors.New("layout: not a version that this program reads")
	}
	z, err := gzip.NewReader(bytes.NewReader(packed[1:]))
	if err != nil {
		return nil, fmt.Errorf("layout: %w", err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("layout: %w", err)
	}
	var l ledger.Layout
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, fmt.Errorf("layout: %w", err)
	}
	return &l, nil
}
