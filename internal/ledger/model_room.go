package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// The waiting room in the model. What the commands do to a room's row is in room_open.go, room_enter.go and room_step.go; here
// are the sessions, and who needs one.

// A modelCall is a call with the event that it is of, a modelCode by what a presale code is known.
type modelCall struct {
	event id.ID
	Call
}

type modelCode struct {
	event      id.ID
	lane, code string
}

// ruled takes up an event's rule, new or changed.
func (m *Model) ruled(e *modelEvent) {
	if r := m.rooms[e.ID]; r != nil && (e.Room.Mode != RoomOff || e.force().Mode != RoomOff) {
		r.Ruled(&e.Event)
	}
	m.enforce(e)
}

// force is what was in force last.
func (e *modelEvent) force() RoomForce {
	if len(e.forces) == 0 {
		return RoomForce{Event: e.ID}
	}
	return e.forces[len(e.forces)-1]
}

// enforce writes down what is in force, where it differs from what was.
func (m *Model) enforce(e *modelEvent) {
	rate := 0
	if r := m.rooms[e.ID]; r != nil {
		rate = r.Rate
	}
	now, last := e.Room.Force(&e.Event, rate, m.now), e.force()
	if !now.Same(last) && (now.Mode != RoomOff || last.Mode != RoomOff) {
		e.forces = append(e.forces, now)
	}
}

// roomOf is an event and its room, which is new where nothing was said about it yet.
func (m *Model) roomOf(event id.ID) (*modelEvent, *Room) {
	e := m.events[event]
	if e == nil {
		return nil, nil
	}
	if r := m.rooms[event]; r != nil {
		return e, r
	}
	return e, NewRoom(&e.Event)
}

// opening runs a command that brings a room nearer to being open.
func (m *Model) opening(event id.ID, do func(e *Event, r *Room) (repeat bool, f *fault.Error)) Result {
	e, r := m.roomOf(event)
	if e == nil {
		return refuse(fault.EventUnknown, "")
	}
	repeat, f := do(&e.Event, r)
	if f != nil {
		return Result{Fault: f}
	}
	m.rooms[event] = r
	return Result{Repeat: repeat, Room: r.View()}
}

func (m *Model) roomCommit(c RoomCommit) Result {
	return m.opening(c.Event, func(e *Event, r *Room) (bool, *fault.Error) { return r.Commit(e, c, m.now) })
}

func (m *Model) roomNumbers(c RoomNumbers) Result {
	return m.opening(c.Event, func(e *Event, r *Room) (bool, *fault.Error) { return r.Number(e, c) })
}

func (m *Model) roomFreeze(c RoomFreeze) Result {
	return m.opening(c.Event, func(e *Event, r *Room) (bool, *fault.Error) { return r.Freeze(e, c, m.now) })
}

func (m *Model) roomDraw(c RoomDraw) Result {
	return m.opening(c.Event, func(e *Event, r *Room) (bool, *fault.Error) { return r.Draw(e, c, m.now) })
}

func (m *Model) advance(c Advance) Result {
	e, r := m.roomOf(c.Event)
	if e == nil {
		return refuse(fault.EventUnknown, "")
	}
	if f := r.Stepping(&e.Room); f != nil {
		return Result{Fault: f}
	}
	r.Report(c.Report, m.now)
	if !r.Due(m.now) {
		return Result{Repeat: true, Room: r.View()}
	}
	m.endSessions(r, SessionsEndMax)
	calls, called := r.Step(&e.Event, c, m.now)
	for _, call := range calls {
		m.calls = append(m.calls, modelCall{e.ID, call})
	}
	m.enforce(e)
	return Result{Room: r.View(), Count: called}
}

// endSessions ends sessions whose time is up, those that ran out first first, at most max.
func (m *Model) endSessions(r *Room, maxCount int) {
	var due []*Session
	for _, s := range m.sessions {
		if s.Event == r.Event && s.Ended == 0 && s.Expires <= m.now {
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b *Session) int { return cmp.Or(cmp.Compare(a.Expires, b.Expires), cmp.Compare(a.ID, b.ID)) })
	for _, s := range due[:min(len(due), maxCount)] {
		m.endSession(s, SessionExpired)
	}
}

func (m *Model) endSession(s *Session, why string) {
	s.Ended, s.Why = max(m.now, s.Entered), why
	m.rooms[s.Event].Inside--
}

func (m *Model) enter(c Enter) Result {
	e, r := m.roomOf(c.Event)
	if e == nil {
		return refuse(fault.EventUnknown, "")
	}
	if e.Room.Mode == RoomOff {
		return refuse(fault.Conflict, "the event has no waiting room")
	}
	if s := m.sessionOf(SessionNumber{c.Event, c.Lane, c.Number}); s != nil {
		if s.Customer != c.Customer || !s.Live(m.now) {
			return refuse(fault.Conflict, "the number has been used")
		}
		return Result{Repeat: true, Session: m.sessionNow(s.ID), Room: r.View()}
	}
	position, at, err := r.Claim(&e.Event, c, m.now, Checks{}, func() error {
		m.endSessions(r, SessionsEnterMax)
		return nil
	})
	if err != nil {
		return Result{Fault: fault.Of(err)}
	}
	m.sessions[c.Session] = &Session{
		ID: c.Session, Event: c.Event, Customer: c.Customer, Lane: c.Lane, Number: c.Number, Position: position,
		Entered: at, Expires: at + Time(e.Room.StayFor()),
	}
	return Result{Session: m.sessionNow(c.Session), Room: r.View()}
}

// sessionOf is the session of a number, nil where it has not entered.
func (m *Model) sessionOf(n SessionNumber) *Session {
	for _, s := range m.sessions {
		if s.Event == n.Event && s.Lane == n.Lane && s.Number == n.Number {
			return s
		}
	}
	return nil
}

func (m *Model) sessionNow(session id.ID) *Session {
	s := *m.sessions[session]
	return &s
}

func (m *Model) leave(c Leave) Result {
	s := m.sessions[c.Session]
	if s == nil || s.Customer != c.Customer {
		return refuse(fault.NotAdmitted, "")
	}
	live := s.Live(m.now)
	if live {
		m.endSession(s, SessionLeft)
	} else if s.Ended == 0 {
		m.endSession(s, SessionExpired)
	}
	return Result{Repeat: !live, Session: m.sessionNow(s.ID)}
}

func (m *Model) takeCode(c TakeCode) Result {
	e := m.events[c.Event]
	if e == nil {
		return refuse(fault.EventUnknown, "")
	}
	if field := e.Room.CodeProblem(c); field != "" {
		return refuseField(fault.Invalid, field)
	}
	key := modelCode{c.Event, c.Lane, c.Code}
	if m.codes[key][c.Customer] {
		return Result{Repeat: true, Count: len(m.codes[key])}
	}
	if len(m.codes[key]) >= c.Max {
		return refuse(fault.CodeUsedUp, "")
	}
	if m.codes[key] == nil {
		m.codes[key] = map[id.ID]bool{}
	}
	m.codes[key][c.Customer] = true
	return Result{Count: len(m.codes[key])}
}

// Holds and sessions.

// inside is the fault with which a customer's new hold is refused for want of a session, nil where it is not (I11). It gives
// the session that the hold is made in.
func (m *Model) inside(e *modelEvent, session, customer id.ID) (id.ID, *fault.Error) {
	if e.Room.Mode == RoomOff {
		return 0, nil
	}
	s := m.sessions[session]
	switch {
	case s == nil || s.Event != e.ID || s.Customer != customer:
		return 0, fault.New(fault.NotAdmitted, "")
	case !s.Live(m.now):
		return 0, fault.New(fault.AdmissionExpired, "")
	}
	return session, nil
}

// stays lets a hold's session last as long as the hold.
func (m *Model) stays(h *Hold) {
	if s := m.sessions[h.Session]; s != nil && s.Ended == 0 {
		s.Expires = max(s.Expires, h.Expires)
	}
}

// bought ends the session of a hold that was sold, unless its customer may buy more.
func (m *Model) bought(h *Hold) {
	s := m.sessions[h.Session]
	if s == nil || s.Ended != 0 {
		return
	}
	e := m.events[h.Event]
	for _, l := range e.Limits {
		if (l.Scope == PerEvent || l.Scope == PerShow) && m.has(h.Customer, e, l) >= l.Max {
			m.endSession(s, SessionPaid)
			return
		}
	}
}

// resting is the fault with which a new hold is refused because its customer let others run out (C15), nil where it is not.
func (m *Model) resting(e *modelEvent, customer id.ID, seats []int32, x Exchange) *fault.Error {
	if x.Order != 0 {
		return nil
	}
	var ended []*Hold // newest first
	for _, h := range m.holds {
		if h.Event == e.ID && h.Customer == customer && h.Ended != 0 && h.Offer == 0 && h.Exchange == 0 {
			ended = append(ended, h)
		}
	}
	slices.SortFunc(ended, func(a, b *Hold) int { return cmp.Compare(b.Ended, a.Ended) })
	rule := e.Holding
	if n := rule.UnpaidMax; n > 0 && len(ended) >= n {
		last, first := ended[0].Ended, ended[n-1].Ended
		if until := last + Time(rule.Rest); until > m.now && first > last-Time(rule.Rest) {
			return &fault.Error{Code: fault.HoldRest, RetryAfter: Duration(until - m.now).Std()}
		}
	}
	lost := map[int32]bool{}
	var until Time
	for _, h := range ended {
		if free := h.Ended + Time(rule.SeatRest); free > m.now {
			for _, seat := range h.Seats() {
				if slices.Contains(seats, seat) {
					lost[seat] = true
					until = max(until, free)
				}
			}
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return &fault.Error{Code: fault.HoldRest, RetryAfter: time.Duration(until-m.now) * time.Millisecond, Seats: slices.Sorted(maps.Keys(lost))}
}
