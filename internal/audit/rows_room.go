package audit

import (
	"database/sql"
	"encoding/json"
	"fmt"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// The rows of waiting rooms: what was in force, who was called, who came in, and which codes were used.

// A ruleRow is what was in force in a room from an instant on.
type ruleRow struct {
	event     id.ID
	at        ledger.Time
	mode      ledger.RoomMode
	rate      int64
	activeMax int64
	paused    bool
	closed    bool
}

const ruleColumns = `event_id, at, mode, rate, active_max, paused, closed`

func scanRule(r *sql.Rows, v *ruleRow) error {
	return r.Scan(&v.event, &v.at, &v.mode, &v.rate, &v.activeMax, &v.paused, &v.closed)
}

// A callRow is a step of a lane's watermark.
type callRow struct {
	event     id.ID
	lane      string
	at        ledger.Time
	was       int64 // the watermark before it
	watermark int64
}

const callColumns = `event_id, lane, at, was, watermark`

func scanCall(r *sql.Rows, v *callRow) error {
	return r.Scan(&v.event, &v.lane, &v.at, &v.was, &v.watermark)
}

// A sessionRow is somebody's time inside.
type sessionRow struct {
	id       id.ID
	event    id.ID
	customer id.ID
	lane     string
	number   int64
	position int64
	entered  ledger.Time
	expires  ledger.Time
	ended    ledger.Time
	why      string
}

const sessionColumns = `session_id, event_id, customer_id, lane, number, position, entered_at, expires_at, ended_at, why`

func scanSession(r *sql.Rows, v *sessionRow) error {
	return r.Scan(&v.id, &v.event, &v.customer, &v.lane, &v.number, &v.position, &v.entered, &v.expires, &v.ended, &v.why)
}

// A codeRow is a use of a presale code, or of a place on a list of members.
type codeRow struct {
	event    id.ID
	lane     string
	code     string
	number   int64 // the first is 1
	customer id.ID
	max      int64 // uses allowed, when it was used
}

const codeColumns = `event_id, lane, code, number, customer_id, max`

func scanCode(r *sql.Rows, v *codeRow) error {
	return r.Scan(&v.event, &v.lane, &v.code, &v.number, &v.customer, &v.max)
}

// A roomRow is a room's own row.
type roomRow struct {
	event id.ID
	body  string
}

func scanRoom(r *sql.Rows, v *roomRow) error { return r.Scan(&v.event, &v.body) }

// roomText is the room's row as it is written: texts by name, and figures by their place.
type roomText struct {
	Version    int     `json:"v"`
	Phase      uint8   `json:"phase"`
	Arrival    bool    `json:"arrival"`
	Commitment string  `json:"commitment"`
	Source     string  `json:"source"`
	List       string  `json:"list"`
	Value      string  `json:"value"`
	Provable   bool    `json:"provable"`
	K          string  `json:"k"`
	Figures    []int64 `json:"figures"`
	Lanes      []struct {
		Key     string  `json:"key"`
		Figures []int64 `json:"figures"`
	} `json:"lanes"`
}

// The places of figures.
const (
	figureFrozen, figureDrawn, figureInside, roomFigures                               = 0, 1, 8, 12
	figureHighWater, figureN, figureJoined, figureWatermark, figureEntered, laneFigure = 0, 1, 2, 3, 4, 6
)

// parseRoom reads {"v":1,…}.
func parseRoom(body string) (*roomSays, error) {
	var t roomText
	if err := json.Unmarshal([]byte(body), &t); err != nil {
		return nil, err
	}
	if t.Version != 1 || len(t.Figures) != roomFigures || t.Phase > uint8(ledger.RoomOpen) {
		return nil, fmt.Errorf("version %d, %d figures, phase %d", t.Version, len(t.Figures), t.Phase)
	}
	s := &roomSays{
		phase: ledger.RoomPhase(t.Phase), arrival: t.Arrival, commitment: t.Commitment, source: t.Source, listHash: t.List, value: t.Value,
		provable: t.Provable, k: t.K, frozen: ledger.Time(t.Figures[figureFrozen]), drawn: ledger.Time(t.Figures[figureDrawn]), inside: t.Figures[figureInside],
	}
	for _, l := range t.Lanes {
		if len(l.Figures) != laneFigure {
			return nil, fmt.Errorf("lane %q has %d figures", l.Key, len(l.Figures))
		}
		s.lanes = append(s.lanes, laneSays{
			key: l.Key, highWater: l.Figures[figureHighWater], n: l.Figures[figureN], joined: l.Figures[figureJoined],
			watermark: l.Figures[figureWatermark], entered: l.Figures[figureEntered],
		})
	}
	return s, nil
}
