package ledger

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"onsale/internal/id"
)

// Room is a room's row.
func (m *Model) Room(_ context.Context, event id.ID) (Room, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rooms[event]
	if r == nil {
		return Room{}, ErrNotFound
	}
	return *r.Clone(), nil
}

// Rooms are all of them, by event.
func (m *Model) Rooms(context.Context) ([]Room, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Room
	for _, event := range slices.Sorted(maps.Keys(m.rooms)) {
		all = append(all, *m.rooms[event].Clone())
	}
	return all, nil
}

// Session is a session's row.
func (m *Model) Session(_ context.Context, session id.ID) (Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[session]
	if s == nil {
		return Session{}, ErrNotFound
	}
	return *s, nil
}

// SessionOfNumber is the session that a number has entered by.
func (m *Model) SessionOfNumber(_ context.Context, n SessionNumber) (Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessionOf(n)
	if s == nil {
		return Session{}, ErrNotFound
	}
	return *s, nil
}

// Sessions are an event's, by id.
func (m *Model) Sessions(_ context.Context, event, after id.ID, maxCount int) ([]Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Session
	for _, s := range m.sessions {
		if s.Event == event && s.ID > after {
			all = append(all, *s)
		}
	}
	slices.SortFunc(all, func(a, b Session) int { return cmp.Compare(a.ID, b.ID) })
	return all[:min(len(all), maxCount)], nil
}

// Calls are those of a lane since an instant, in their order.
func (m *Model) Calls(_ context.Context, event id.ID, lane string, since Time, maxCount int) ([]Call, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Call
	for _, c := range m.calls {
		if c.event == event && c.Lane == lane && c.At >= since {
			all = append(all, c.Call)
		}
	}
	return all[:min(len(all), maxCount)], nil
}

// Forces are what was in force in an event's room, in their order.
func (m *Model) Forces(_ context.Context, event id.ID) ([]RoomForce, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.events[event]; e != nil {
		return slices.Clone(e.forces), nil
	}
	return nil, nil
}

// RoomFigures count what became of those called.
func (m *Model) RoomFigures(_ context.Context, event id.ID) (RoomFigures, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var f RoomFigures
	holding, paid := map[id.ID]bool{}, map[id.ID]bool{}
	for _, s := range m.sessions {
		if s.Event == event {
			f.Entered++
		}
		if s.Event == event && s.Ended == 0 {
			f.Inside++
		}
	}
	for _, h := range m.holds {
		if h.Event != event || h.Session == 0 {
			continue
		}
		switch {
		case h.State == HoldLive:
			if s := m.sessions[h.Session]; s.Ended == 0 && h.Expires > max(m.now, m.source()) {
				holding[h.Session] = true
			}
			continue
		case h.Ended == 0: // sold, or was
			paid[h.Session] = true
			f.HoldsSold++
			f.PlacesSold += int64(len(h.Lines))
		}
		f.HoldsEnded++
	}
	f.Holding, f.Paid = len(holding), int64(len(paid))
	return f, nil
}

// CodeUses is how many customers have used a presale code.
func (m *Model) CodeUses(_ context.Context, event id.ID, lane, code string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.codes[modelCode{event, lane, code}]), nil
}
