package postgres

import (
	"cmp"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger/decide"
)

// sessions are written before rooms, as they are locked.
func (w *writer) sessions() {
	added, set := split(w.out.Sessions, func(s *decide.Session) bool { return s.New })
	r := w.rowset("sessions", len(set))
	r.match("session_id", r.int64s(func(i int) int64 { return int64(set[i].ID) }))
	r.big("expires_at", func(i int) int64 { return int64(set[i].Expires) })
	r.big("ended_at", func(i int) int64 { return int64(set[i].Ended) })
	r.word("why", func(i int) string { return set[i].Why })
	r.update(changed("a session", func() id.ID { return set[0].Event }))

	r = w.rowset("sessions", len(added))
	r.big("session_id", func(i int) int64 { return int64(added[i].ID) })
	r.big("event_id", func(i int) int64 { return int64(added[i].Event) })
	r.big("customer_id", func(i int) int64 { return int64(added[i].Customer) })
	r.word("lane", func(i int) string { return added[i].Lane })
	r.big("number", func(i int) int64 { return added[i].Number })
	r.big("position", func(i int) int64 { return added[i].Position })
	r.big("entered_at", func(i int) int64 { return int64(added[i].Entered) })
	r.big("expires_at", func(i int) int64 { return int64(added[i].Expires) })
	r.big("ended_at", func(i int) int64 { return int64(added[i].Ended) })
	r.word("why", func(i int) string { return added[i].Why })
	r.insert("")
}

// rooms writes rooms, fenced by the version that was decided on, and the evidence.
func (w *writer) rooms() error {
	added, set := split(w.out.Rooms, func(r *decide.Room) bool { return r.New })
	bodies := map[id.ID]string{}
	for _, r := range w.out.Rooms {
		body, err := decide.EncodeRoom(&r.Room)
		if err != nil {
			return err
		}
		bodies[r.Event] = body
	}
	r := w.rowset("rooms", len(set))
	r.match("event_id", r.int64s(func(i int) int64 { return int64(set[i].Event) }))
	r.match("version", r.int64s(func(i int) int64 { return set[i].Version }))
	r.big("version", func(i int) int64 { return set[i].Version + 1 })
	r.text("body", func(i int) string { return bodies[set[i].Event] })
	r.update(changed("a waiting room", func() id.ID { return set[0].Event }))

	slices.SortFunc(added, func(a, b *decide.Room) int { return cmp.Compare(a.Event, b.Event) })
	r = w.rowset("rooms", len(added))
	r.big("event_id", func(i int) int64 { return int64(added[i].Event) })
	r.big("version", func(i int) int64 { return added[i].Version + 1 })
	r.text("body", func(i int) string { return bodies[added[i].Event] })
	r.insert("")
	w.evidence()
	return nil
}

func (w *writer) evidence() {
	forces := w.out.Forces
	r := w.rowset("room_rules", len(forces))
	r.big("event_id", func(i int) int64 { return int64(forces[i].Event) })
	r.big("at", func(i int) int64 { return int64(forces[i].At) })
	r.small("mode", func(i int) int16 { return int16(forces[i].Mode) })
	r.big("rate", func(i int) int64 { return int64(forces[i].Rate) })
	r.big("active_max", func(i int) int64 { return int64(forces[i].ActiveMax) })
	r.big("turn", func(i int) int64 { return int64(forces[i].Turn) })
	r.yes("paused", func(i int) bool { return forces[i].Paused })
	r.yes("closed", func(i int) bool { return forces[i].Closed })
	r.insert("")

	calls := w.out.Calls
	r = w.rowset("room_calls", len(calls))
	r.big("event_id", func(i int) int64 { return int64(calls[i].Event) })
	r.text("lane", func(i int) string { return calls[i].Lane })
	r.big("at", func(i int) int64 { return int64(calls[i].At) })
	r.big("clock", func(i int) int64 { return int64(calls[i].Clock) })
	r.big("was", func(i int) int64 { return calls[i].From })
	r.big("watermark", func(i int) int64 { return calls[i].Watermark })
	r.insert("")

	// The uses of a code are numbered under the room's lock; where there is no room yet, two nodes may give the same number.
	codes := slices.SortedFunc(slices.Values(w.out.Codes), func(a, b decide.CodeUse) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Number, b.Number))
	})
	r = w.rowset("code_uses", len(codes))
	r.big("event_id", func(i int) int64 { return int64(codes[i].Event) })
	r.text("lane", func(i int) string { return codes[i].Lane })
	r.text("code", func(i int) string { return codes[i].Code })
	r.big("number", func(i int) int64 { return int64(codes[i].Number) })
	r.big("customer_id", func(i int) int64 { return int64(codes[i].Customer) })
	r.big("max", func(i int) int64 { return int64(codes[i].Max) })
	r.big("at", func(i int) int64 { return int64(codes[i].At) })
	r.insert("")
}
