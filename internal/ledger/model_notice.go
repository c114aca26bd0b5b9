package ledger

import (
	"encoding/json"
	"slices"

	"onsale/internal/id"
)

// publish puts a notice of an order into the outbox, with the next number of that order (A24). about are names and values of
// what it says beside the order.
func (m *Model) publish(o *Order, kind string, about ...string) {
	o.Sequence++
	o.Updated = m.now
	m.notices = append(m.notices, modelNotice{Notice: Notice{
		Order: o.ID, Sequence: o.Sequence, Kind: kind, At: m.now,
		Alert: kind == NoticeGiveBack || kind == NoticeCaptureRefused || kind == NoticeRefundRefused || kind == NoticeCheckInConflict,
		Body:  noticeBody(append(about, "booking_id", o.ID.Text(id.Order))),
	}})
}

// publishEvent tells that an event's row has changed. Its number is kept in the row.
func (m *Model) publishEvent(e *modelEvent) {
	e.Sequence++
	m.notices = append(m.notices, modelNotice{Notice: Notice{
		Order: e.ID, Sequence: e.Sequence, Kind: NoticeEvent, At: m.now,
		Body: noticeBody([]string{"event_id", e.ID.Text(id.Event), "state", e.State.String()}, "version", e.Version),
	}})
}

func noticeBody(texts []string, others ...any) []byte {
	body := map[string]any{}
	for i := 0; i < len(texts); i += 2 {
		body[texts[i]] = texts[i+1]
	}
	for i := 0; i < len(others); i += 2 {
		body[others[i].(string)] = others[i+1]
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // texts and numbers: it cannot fail
	}
	return text
}

// step writes down what became of a claim, wholly or of some of its lines.
func (m *Model) step(h *Hold, from, to, why string, lines []Line) {
	s := ClaimStep{Hold: h.ID, From: from, To: to, Why: why, At: m.now}
	for _, line := range lines {
		if h.Area >= 0 {
			s.Places++
		} else {
			s.Seats = append(s.Seats, line.Seat)
		}
	}
	slices.Sort(s.Seats)
	m.history = append(m.history, s)
}
