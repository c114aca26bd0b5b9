package decide

import (
	"encoding/json"
	"errors"
	"fmt"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A room's row is kept as one JSON text. What there may be many of is rows of numbers.
const roomVersion = 1

type roomBody struct {
	Version    int        `json:"v"`
	Phase      int        `json:"phase"`
	Arrival    bool       `json:"arrival,omitempty"`
	Commitment string     `json:"commitment,omitempty"`
	Source     string     `json:"source,omitempty"`
	ListHash   string     `json:"list,omitempty"`
	Value      string     `json:"value,omitempty"`
	Provable   bool       `json:"provable,omitempty"`
	K          string     `json:"k,omitempty"`
	Figures    [12]int64  `json:"figures"` // see figures
	Lanes      []laneBody `json:"lanes"`
	Knocks     [][6]int64 `json:"knocks,omitempty"`  // lane, number, position, late, called, last
	Reports    [][5]int64 `json:"reports,omitempty"` // node, at, p99, holds, shed
}

type laneBody struct {
	Key     string     `json:"key"`
	Figures [6]int64   `json:"figures"`        // high-water mark, N, joined, watermark, entered, credit
	Open    [][5]int64 `json:"open,omitempty"` // at, clock, from, watermark, entered
}

// EncodeRoom turns a room's row into text.
func EncodeRoom(r *ledger.Room) (string, error) {
	b := roomBody{
		Version: roomVersion, Phase: int(r.Phase), Arrival: r.Arrival, Commitment: r.Commitment, Source: r.Source, ListHash: r.ListHash,
		Value: r.Value, Provable: r.Provable, K: r.K,
		Figures: [12]int64{
			int64(r.Frozen), int64(r.Drawn), int64(r.Clock), int64(r.Tick), int64(r.Rate), int64(r.Second),
			int64(r.Entered), int64(r.Before), int64(r.Inside), r.Debt, r.Decided, r.Shown,
		},
	}
	places := map[string]int64{}
	for i, l := range r.Lanes {
		places[l.Key] = int64(i)
		lane := laneBody{Key: l.Key, Figures: [6]int64{l.HighWater, l.N, l.Joined, l.Watermark, l.Entered, l.Credit}}
		for _, c := range l.Open {
			lane.Open = append(lane.Open, [5]int64{int64(c.At), int64(c.Clock), c.From, c.Watermark, c.Entered})
		}
		b.Lanes = append(b.Lanes, lane)
	}
	for _, k := range r.Knocks {
		late := int64(0)
		if k.Late {
			late = 1
		}
		b.Knocks = append(b.Knocks, [6]int64{places[k.Lane], k.Number, k.Position, late, int64(k.Called), int64(k.Last)})
	}
	for _, p := range r.Reports {
		b.Reports = append(b.Reports, [5]int64{int64(p.Node), int64(p.At), int64(p.P99), int64(p.Holds), int64(p.Shed)})
	}
	text, err := json.Marshal(&b)
	return string(text), err
}

// errRoom is the cause of what DecodeRoom refuses.
var errRoom = errors.New("not a room as written by this program")

// DecodeRoom reads what EncodeRoom wrote.
func DecodeRoom(text string, event id.ID) (*ledger.Room, error) {
	var b roomBody
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return nil, fmt.Errorf("the waiting room of event %s: %w", event.Text(id.Event), err)
	}
	if b.Version != roomVersion || b.Phase < 0 || b.Phase > int(ledger.RoomOpen) || len(b.Lanes) > ledger.RoomLanesMax {
		return nil, fmt.Errorf("the waiting room of event %s: %w", event.Text(id.Event), errRoom)
	}
	f := b.Figures
	r := &ledger.Room{
		Event: event, Phase: ledger.RoomPhase(b.Phase), Arrival: b.Arrival, Commitment: b.Commitment, Source: b.Source,
		Frozen: ledger.Time(f[0]), ListHash: b.ListHash, Value: b.Value, Provable: b.Provable, K: b.K, Drawn: ledger.Time(f[1]),
		Clock: ledger.Duration(f[2]), Tick: ledger.Time(f[3]), Rate: int(f[4]), Second: ledger.Time(f[5]), Entered: int(f[6]),
		Before: int(f[7]), Inside: int(f[8]), Debt: f[9], Decided: f[10], Shown: f[11],
	}
	for _, lane := range b.Lanes {
		n := lane.Figures
		l := ledger.Lane{Key: lane.Key, HighWater: n[0], N: n[1], Joined: n[2], Watermark: n[3], Entered: n[4], Credit: n[5]}
		for _, c := range lane.Open {
			l.Open = append(l.Open, ledger.Call{
				Lane: lane.Key, At: ledger.Time(c[0]), Clock: ledger.Duration(c[1]), From: c[2], Watermark: c[3], Entered: c[4],
			})
		}
		r.Lanes = append(r.Lanes, l)
	}
	for _, k := range b.Knocks {
		if k[0] < 0 || k[0] >= int64(len(r.Lanes)) {
			return nil, fmt.Errorf("the waiting room of event %s: %w", event.Text(id.Event), errRoom)
		}
		r.Knocks = append(r.Knocks, ledger.Knock{
			Lane: r.Lanes[k[0]].Key, Number: k[1], Position: k[2], Late: k[3] != 0, Called: ledger.Duration(k[4]), Last: ledger.Time(k[5]),
		})
	}
	for _, p := range b.Reports {
		r.Reports = append(r.Reports, ledger.RoomReport{
			Node: int(p[0]), At: ledger.Time(p[1]), P99: ledger.Duration(p[2]), Holds: int(p[3]), Shed: int(p[4]),
		})
	}
	return r, nil
}
