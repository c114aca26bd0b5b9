package postgres

import (
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// roomRows are the rows of waiting rooms that a transaction has locked, or read behind the lock of a room.
type roomRows struct {
	rooms    map[id.ID]*decide.Room
	sessions map[id.ID]*decide.Session
	numbers  map[ledger.SessionNumber]*decide.Session
	codes    map[codeOf]codeUses
	unpaid   map[decide.UnpaidKey][]decide.Unpaid // without Since
	outlived map[id.ID]*outlived                  // found before the locks
	runsOut  map[id.ID]ledger.Time                // when a room's first session runs out, 0 where nobody is inside
}

type codeUses struct {
	count int
	used  bool
}

// outlived is what a plain read said about an event's sessions whose time is up.
type outlived struct {
	sessions []id.ID     // by (Expires, ID)
	until    ledger.Time // those with Expires <= until were asked for
	complete bool        // there are no more
}

// Room implements decide.Source.
func (s *source) Room(event id.ID) (*decide.Room, error) {
	if r, ok := s.rooms[event]; ok {
		return r, nil
	}
	s.missed.rooms.add(event)
	return nil, decide.ErrMissing
}

// Session implements decide.Source.
func (s *source) Session(session id.ID) (*decide.Session, error) {
	if r, ok := s.sessions[session]; ok {
		return r, nil
	}
	s.missed.sessions.add(session)
	return nil, decide.ErrMissing
}

// SessionOf implements decide.Source.
func (s *source) SessionOf(n ledger.SessionNumber) (*decide.Session, error) {
	if r, ok := s.numbers[n]; ok {
		return r, nil
	}
	s.missed.numbers.add(n)
	return nil, decide.ErrMissing
}

// ExpiredSessions implements decide.Source. What stands in the way of an answer is as with Expired.
func (s *source) ExpiredSessions(event id.ID, now ledger.Time, most int) ([]id.ID, error) {
	if _, locked := s.rooms[event]; !locked {
		s.missed.rooms.add(event)
		return nil, decide.ErrMissing
	}
	if soonest := s.runsOut[event]; soonest == 0 || soonest > now {
		return nil, nil
	}
	f := s.outlived[event]
	if f == nil || now > f.until || !f.complete && len(f.sessions) < most {
		s.missed.outlived[event] = max(s.missed.outlived[event], most)
		return nil, decide.ErrMissing
	}
	return f.sessions, nil // some may not be due after all: that is decided on the locked rows
}

// CodeUses implements decide.Source.
func (s *source) CodeUses(k decide.CodeKey, customer id.ID) (int, bool, error) {
	of := codeOf{k, customer}
	if u, ok := s.codes[of]; ok {
		return u.count, u.used, nil
	}
	s.missed.codes.add(of)
	return 0, false, decide.ErrMissing
}

// Unpaid implements decide.Source.
func (s *source) Unpaid(k decide.UnpaidKey) ([]decide.Unpaid, error) {
	since := k.Since
	k.Since = 0
	all, ok := s.unpaid[k]
	if !ok {
		s.missed.unpaid.add(k)
		return nil, decide.ErrMissing
	}
	return slices.DeleteFunc(slices.Clone(all), func(u decide.Unpaid) bool { return u.Ended <= since }), nil
}

const sessionColumns = `session_id, event_id, customer_id, lane, number, position, entered_at, expires_at, ended_at, why`

type sessionScan struct {
	session, event, customer, number, position, entered, expires, ended int64
	lane, why                                                           string
}

func (s *sessionScan) dest() []any {
	return []any{&s.session, &s.event, &s.customer, &s.lane, &s.number, &s.position, &s.entered, &s.expires, &s.ended, &s.why}
}

func (s *sessionScan) take() ledger.Session {
	return ledger.Session{
		ID: id.ID(s.session), Event: id.ID(s.event), Customer: id.ID(s.customer), Lane: s.lane, Number: s.number, Position: s.position,
		Entered: ledger.Time(s.entered), Expires: ledger.Time(s.expires), Ended: ledger.Time(s.ended), Why: s.why,
	}
}
