package waitingroom

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"onsale/internal/draw"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A DrawDoc is what is published of an event's draw: the body of GET /v1/events/{event_id}/draw. Fields are filled as the
// parts become known, in the order of docs/FAIRNESS.md, and never change after that.
type DrawDoc struct {
	EventID      string       `json:"event_id"`
	OpeningOrder string       `json:"opening_order" enum:"draw,arrival"`
	State        string       `json:"state" enum:"none,committed,provable" doc:"What the draw is, or will be: provable where a public value that nobody could know came in after the list of joins was fixed."`
	Commitment   string       `json:"commitment,omitempty" doc:"SHA-256 of K, from the moment the room opens for waiting."`
	Source       string       `json:"source,omitempty" doc:"Where the public value comes from, named with the commitment."`
	FrozenAt     time.Time    `json:"frozen_at,omitzero" doc:"When N and the list of joins were fixed."`
	N            int64        `json:"n" doc:"Numbers that are drawn, of all lanes."`
	ListHash     string       `json:"list_hash,omitempty" doc:"SHA-256 of the list of joins."`
	ListURL      string       `json:"list_url,omitempty" doc:"Where the list of joins can be had."`
	Value        string       `json:"value,omitempty" doc:"The public value."`
	K            string       `json:"k,omitempty" doc:"The secret of the commitment, published last."`
	Seed         string       `json:"seed,omitempty" doc:"Follows from K, value, N and the list's hash."`
	Lanes        []DrawLane   `json:"lanes"`
	Vectors      []DrawVector `json:"vectors,omitempty" doc:"Some positions, for whoever writes a checker."`
}

// A DrawLane is one line of a draw.
type DrawLane struct {
	Key     string `json:"key"`
	N       int64  `json:"n" doc:"Numbers below it are drawn; the others are their own position."`
	LaneKey string `json:"lane_key,omitempty" doc:"The key of the lane's permutation."`
}

// A DrawVector is the position of a number.
type DrawVector struct {
	Lane     string `json:"lane"`
	Number   int64  `json:"number"`
	Position int64  `json:"position"`
}

// What State says.
const (
	DrawNone      = "none"
	DrawCommitted = "committed"
	DrawProvable  = "provable"
)

// What OpeningOrder says.
const (
	OrderDraw    = "draw"
	OrderArrival = "arrival"
)

// drawVectorsMax bounds the vectors of a document that somebody else made.
const drawVectorsMax = 1000

// NewDrawDoc writes down what is public of a room's draw. Only what the ledger has made durable is in it, so K is not before
// N is (C3). ListURL is the caller's to set.
func NewDrawDoc(room *ledger.Room) (DrawDoc, error) {
	d := DrawDoc{EventID: room.Event.Text(id.Event), OpeningOrder: OrderDraw, State: DrawCommitted, Commitment: room.Commitment, Source: room.Source,
		Value: room.Value, K: room.K, Lanes: []DrawLane{}}
	switch {
	case room.Arrival:
		d.OpeningOrder, d.State = OrderArrival, DrawNone
	case room.K == "" && room.Source != "", room.Provable:
		d.State = DrawProvable
	}
	if room.Frozen != 0 {
		d.FrozenAt, d.ListHash = room.Frozen.Std(), room.ListHash
	}
	for _, l := range room.Lanes {
		d.Lanes = append(d.Lanes, DrawLane{Key: l.Key, N: l.N})
		d.N += l.N
	}
	if room.K == "" {
		return d, nil
	}
	seed, err := d.seed()
	if err != nil {
		return DrawDoc{}, fmt.Errorf("event %s: the draw as it is stored: %w", d.EventID, err)
	}
	d.Seed = hex.EncodeToString(seed[:])
	for i := range d.Lanes {
		lane := &d.Lanes[i]
		key := draw.LaneKey(seed, lane.Key)
		lane.LaneKey = hex.EncodeToString(key[:])
		d.Vectors = append(d.Vectors, vectors(lane, key)...)
	}
	return d, nil
}

// vectors are the first, the middle and the last number of a lane.
func vectors(lane *DrawLane, key [draw.KeyBytes]byte) (all []DrawVector) {
	last := int64(-1)
	for _, number := range []int64{0, lane.N / 2, lane.N - 1} {
		if number > last && number < lane.N {
			all = append(all, DrawVector{lane.Key, number, draw.Position(key, lane.N, number)})
			last = number
		}
	}
	return all
}

// seed computes the seed from the other fields.
func (d *DrawDoc) seed() (seed [draw.KeyBytes]byte, err error) {
	k, err := hex32(d.K)
	if err != nil {
		return seed, fmt.Errorf("k: %w", err)
	}
	hash, err := hex32(d.ListHash)
	if err != nil {
		return seed, fmt.Errorf("list_hash: %w", err)
	}
	return draw.Seed(k, d.Value, d.N, hash), nil
}

// hex32 reads 32 bytes of hex.
func hex32(text string) (b [32]byte, err error) {
	if len(text) != hex.EncodedLen(len(b)) {
		return b, fmt.Errorf("%.80q are not %d bytes of hex", text, len(b))
	}
	_, err = hex.Decode(b[:], []byte(text))
	return b, err
}

// Order is a lane's order, once K is public; the identity for the order of arrival. The document must have passed Verify.
func (d *DrawDoc) Order(lane string) (*draw.Order, error) {
	for _, l := range d.Lanes {
		switch {
		case l.Key != lane:
		case d.OpeningOrder == OrderArrival:
			return draw.NewOrder([draw.KeyBytes]byte{}, 0), nil
		default:
			key, err := hex32(l.LaneKey)
			if err != nil {
				return nil, fmt.Errorf("lane %s: the draw has not been made yet: %w", lane, err)
			}
			return draw.NewOrder(key, l.N), nil
		}
	}
	return nil, fmt.Errorf("the room has no lane %.80q", lane)
}

// A DrawCheck is one thing that was looked at. With a Fault it is not as it should be; Later says that it cannot be looked at
// yet, since what it needs is not published.
type DrawCheck struct {
	What  string
	Found string // what was recomputed, for people
	Fault string
	Later bool
}

// Verify recomputes everything that a document says, from nothing but the document and the list of joins (nil: the list is
// not looked at). It believes no field that follows from another. The error is one of reading the list, not of what is in it.
func (d *DrawDoc) Verify(list io.Reader) ([]DrawCheck, error) {
	v := drawVerifier{doc: d, drawn: d.OpeningOrder != OrderArrival}
	if !v.shape() {
		return v.checks, nil
	}
	v.commitment()
	v.state()
	if err := v.list(list); err != nil {
		return v.checks, err
	}
	if v.drawn {
		v.keys()
		v.vectors()
	}
	return v.checks, nil
}

// DrawOK says whether nothing was found wrong.
func DrawOK(checks []DrawCheck) bool {
	for _, c := range checks {
		if c.Fault != "" {
			return false
		}
	}
	return true
}

// A drawVerifier gathers the checks of one document.
type drawVerifier struct {
	doc    *DrawDoc
	drawn  bool
	checks []DrawCheck
}

// same adds a check that two texts are the same.
func (v *drawVerifier) same(what, is, should string) {
	c := DrawCheck{What: what, Found: should}
	if is != should {
		c.Fault = fmt.Sprintf("published is %.100q, recomputed %.100q", is, should)
	}
	v.checks = append(v.checks, c)
}

func (v *drawVerifier) fault(what, format string, args ...any) {
	v.checks = append(v.checks, DrawCheck{What: what, Fault: fmt.Sprintf(format, args...)})
}

func (v *drawVerifier) good(what, format string, args ...any) {
	v.checks = append(v.checks, DrawCheck{What: what, Found: fmt.Sprintf(format, args...)})
}

func (v *drawVerifier) later(what, why string) {
	v.checks = append(v.checks, DrawCheck{What: what, Found: why, Later: true})
}

// shape refuses what nothing can be computed from, whoever sent it.
func (v *drawVerifier) shape() bool {
	d := v.doc
	if d.OpeningOrder != OrderDraw && d.OpeningOrder != OrderArrival {
		v.fault("opening order", "%.80q is neither draw nor arrival", d.OpeningOrder)
		return false
	}
	if len(d.Lanes) > draw.LanesMax || len(d.Vectors) > drawVectorsMax {
		v.fault("size", "%d lanes and %d vectors; at most %d and %d are looked at", len(d.Lanes), len(d.Vectors), draw.LanesMax, drawVectorsMax)
		return false
	}
	var n int64
	seen := map[string]bool{}
	for _, l := range d.Lanes {
		if err := draw.CheckLane(l.Key); err != nil || seen[l.Key] || l.N < 0 || l.N > draw.NMax {
			v.fault("lanes", "%.80q with N = %d is no lane, or there twice", l.Key, l.N)
			return false
		}
		seen[l.Key] = true
		n += l.N
	}
	v.same("N, the sum of the lanes", fmt.Sprint(d.N), fmt.Sprint(n))
	return d.N == n
}

func (v *drawVerifier) commitment() {
	d := v.doc
	switch {
	case !v.drawn:
		if d.Commitment != "" || d.K != "" || d.Value != "" {
			v.fault("order of arrival", "there is a draw beside it")
		}
	case d.K == "":
		v.later("commitment, the SHA-256 of K", "K is not public yet")
	default:
		k, err := hex32(d.K)
		if err != nil {
			v.fault("K", "%v", err)
			return
		}
		v.same("commitment, the SHA-256 of K", d.Commitment, draw.Commitment(k))
	}
}

// state checks that nothing was published before what it depends on, and that the draw is called what it is.
func (v *drawVerifier) state() {
	d := v.doc
	if v.drawn && d.K != "" && (d.FrozenAt.IsZero() || d.ListHash == "") {
		v.fault("order of publication", "K is public and N is not fixed yet")
	}
	should := DrawCommitted
	switch {
	case !v.drawn:
		should = DrawNone
	case d.K == "" && d.Source != "":
		should = DrawProvable // or committed, where the value will not have come in time
	case d.Source != "" && d.Value != "" && d.State != DrawCommitted: // to claim less than could be is no fault
		should = DrawProvable
	}
	v.same("state", d.State, should)
}

func (v *drawVerifier) list(list io.Reader) error {
	d := v.doc
	if d.ListHash == "" {
		v.later("list of joins", "N is not fixed yet")
		return nil
	}
	if list == nil {
		v.later("list of joins", "it was not looked at")
		return nil
	}
	lanes := map[string]int{}
	for i, l := range d.Lanes {
		lanes[l.Key] = i
	}
	last, joins := 0, int64(0)
	hash, err := draw.ReadList(list, func(lane string, number int64, _ [draw.EntryBytes]byte) error {
		i, known := lanes[lane]
		if !known || i < last || number >= d.Lanes[i].N {
			return fmt.Errorf("%w: number %d of lane %s was not drawn, or stands out of order", draw.ErrList, number, lane)
		}
		last = i
		joins++
		return nil
	})
	if errors.Is(err, draw.ErrList) {
		v.fault("list of joins", "%v", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the list of joins: %w", err)
	}
	v.same("list_hash, the SHA-256 of the list", d.ListHash, hex.EncodeToString(hash[:]))
	v.good("list of joins", "%d of %d numbers belong to somebody, each to one, in order", joins, d.N)
	return nil
}

func (v *drawVerifier) keys() {
	d := v.doc
	if d.K == "" {
		v.later("seed and lanes' keys", "K is not public yet")
		return
	}
	seed, err := d.seed()
	if err != nil {
		v.fault("seed", "%v", err)
		return
	}
	v.same("seed, from K, value, N and list_hash", d.Seed, hex.EncodeToString(seed[:]))
	for _, l := range d.Lanes {
		key := draw.LaneKey(seed, l.Key)
		v.same("key of lane "+l.Key, l.LaneKey, hex.EncodeToString(key[:]))
	}
}

func (v *drawVerifier) vectors() {
	d := v.doc
	seed, err := d.seed()
	if d.K == "" || err != nil || len(d.Vectors) == 0 {
		return
	}
	positions := map[string]func(int64) int64{}
	for _, l := range d.Lanes {
		key := draw.LaneKey(seed, l.Key)
		positions[l.Key] = func(number int64) int64 { return draw.Position(key, l.N, number) } // no tables: N is what somebody says
		if l.N <= draw.RankedMax {
			positions[l.Key] = draw.NewOrder(key, l.N).Position
		}
	}
	for _, vector := range d.Vectors {
		position := positions[vector.Lane]
		if position == nil {
			v.fault("vectors", "there is no lane %.80q", vector.Lane)
			return
		}
		if p := position(vector.Number); p != vector.Position {
			v.fault("vectors", "number %d of lane %s has position %d, not %d", vector.Number, vector.Lane, p, vector.Position)
			return
		}
	}
	v.good("vectors", "%d positions", len(d.Vectors))
}
