package postgres

import (
	"cmp"
	"context"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// Which rows of waiting rooms a batch locks, and reads behind the locks. A room's row is locked only by those who change it: its
// own commands, a Confirm that ends a session, and SetEvent. A hold locks its session alone, so that holds of one event on
// several nodes do not wait for each other.

// codeOf is a presale code and a customer.
type codeOf struct {
	decide.CodeKey
	customer id.ID
}

// room adds a room with its event (RULES A3: whoever writes a row of an event has the event's row locked).
func (s *lockset) room(event id.ID) {
	s.events.add(event)
	s.rooms.add(event)
}

// session adds a session with its event.
func (s *lockset) session(session id.ID) {
	if session == 0 {
		return
	}
	s.sessions.add(session)
	if known, ok := s.facts.sessions.Get(session); ok {
		s.events.add(known.Event)
	}
}

// sessionOf adds the session of a hold whose expiry may move.
func (s *lockset) sessionOf(h *decide.Hold) {
	if h != nil {
		s.session(h.Session)
	}
}

// newHold adds what a new hold needs: its customer's session, and which of their holds ended unpaid.
func (s *lockset) newHold(e *ledger.Event, session, customer id.ID) {
	if e.Room.Mode != ledger.RoomOff {
		s.session(session)
	}
	if _, bound := e.Holding.Since(s.now); bound {
		s.unpaid.add(decide.UnpaidKey{Customer: customer, Event: e.ID})
	}
}

// sold adds what ends with a sale: the session, where the customer may buy no more.
func (s *lockset) sold(h *decide.Hold) {
	if h.Session == 0 {
		return
	}
	s.session(h.Session)
	e, ok := s.facts.events.Get(h.Event)
	if !ok {
		return
	}
	bounded := false
	decide.Staying(e, h.Customer, func(_ ledger.Limit, k decide.LimitKey) {
		s.limits.add(k)
		bounded = true
	})
	if bounded {
		s.room(h.Event)
	}
}

// roomCommand adds what a waiting room's command will look at.
func (s *lockset) roomCommand(c ledger.Command) {
	switch c := c.(type) {
	case ledger.RoomCommit, ledger.RoomNumbers, ledger.RoomFreeze, ledger.RoomDraw:
		s.room(c.EventHint())
	case ledger.Advance:
		s.room(c.Event)
	case ledger.Enter:
		s.room(c.Event)
		s.numbers.add(ledger.SessionNumber{Event: c.Event, Lane: c.Lane, Number: c.Number})
	case ledger.Leave:
		s.session(c.Session)
		if known, ok := s.facts.sessions.Get(c.Session); ok {
			s.room(known.Event)
		}
	case ledger.TakeCode:
		s.room(c.Event)
		s.codes.add(codeOf{decide.CodeKey{Event: c.Event, Lane: c.Lane, Code: c.Code}, c.Customer})
	}
}

// moreRooms adds what an earlier round found missing.
func (s *lockset) moreRooms(m *wants) {
	for k := range m.rooms {
		s.room(k)
	}
	for k := range m.sessions {
		s.session(k)
	}
	for k := range m.numbers {
		s.numbers.add(k)
		s.room(k.Event)
	}
	for k := range m.codes {
		s.codes.add(k)
		s.room(k.Event)
	}
	for k := range m.unpaid {
		s.unpaid.add(k)
	}
}

const sqlSessionsDue = `SELECT k.event_id, s.session_id FROM unnest($1::bigint[], $2::integer[]) AS k(event_id, most),
 LATERAL (SELECT session_id, expires_at FROM shard.sessions WHERE event_id = k.event_id AND ended_at = 0 AND expires_at <= $3
  ORDER BY expires_at, session_id LIMIT k.most) AS s ORDER BY k.event_id, s.expires_at, s.session_id`

// learnRooms finds, before the locks, the sessions that Advance will end, and of which event the sessions are that commands
// name.
func (t *transaction) learnRooms(ctx context.Context, commands []ledger.Command) error {
	u := unknown[*decide.Session]{get: t.l.facts.sessions.Get}
	for q, most := range t.batch.missed.outlived {
		t.set.outlived[q] = max(t.set.outlived[q], most)
	}
	for _, c := range commands {
		switch c := c.(type) {
		case ledger.Leave:
			u.ask(c.Session)
		case ledger.Advance:
			t.set.outlived[c.Event] = max(t.set.outlived[c.Event], ledger.SessionsEndMax)
		}
	}
	for s := range t.batch.missed.sessions {
		u.ask(s)
	}
	p := t.pipeline()
	if len(u.ids) > 0 {
		var row sessionScan
		p.rows(`SELECT `+sessionColumns+` FROM shard.sessions WHERE session_id = ANY ($1::bigint[])`, []any{u.ids}, row.dest(), func() error {
			s := row.take()
			t.l.facts.sessions.Put(s.ID, &decide.Session{Session: s})
			return nil
		})
	}
	t.findOutlived(p)
	return p.send(ctx, t.conn)
}

func (t *transaction) findOutlived(p *pipeline) {
	if len(t.set.outlived) == 0 {
		return
	}
	until := t.set.now + margin
	var events []int64
	var most []int32
	t.source.outlived = map[id.ID]*outlived{}
	for event, n := range t.set.outlived {
		events, most = append(events, int64(event)), append(most, int32(n))
		t.source.outlived[event] = &outlived{until: until, complete: true}
	}
	var event, session int64
	p.rows(sqlSessionsDue, []any{events, most, int64(until)}, []any{&event, &session}, func() error {
		f := t.source.outlived[id.ID(event)]
		f.sessions = append(f.sessions, id.ID(session))
		f.complete = len(f.sessions) < t.set.outlived[id.ID(event)]
		t.set.session(id.ID(session))
		return nil
	})
}

const (
	sqlSessions = `SELECT k.n, s.event_id, s.customer_id, s.lane, s.number, s.position, s.entered_at, s.expires_at, s.ended_at, s.why
 FROM unnest($1::bigint[]) WITH ORDINALITY AS k(session_id, n) JOIN shard.sessions s ON s.session_id = k.session_id ORDER BY k.n FOR UPDATE OF s`

	// A room is read anew each time: after a fail-over another one may have the version that was seen last.
	sqlRooms = `SELECT k.n, r.version, r.body FROM unnest($1::bigint[]) WITH ORDINALITY AS k(event_id, n)
 JOIN shard.rooms r ON r.event_id = k.event_id ORDER BY k.n FOR UPDATE OF r`

	// Whoever makes or ends a session has its room's row locked, so these are read behind that lock without one of their own.
	// Where the session that runs out first is not due, none is.
	sqlNumbers = `SELECT ` + sessionColumns + ` FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS k(event, lane_key, nr)
 JOIN shard.sessions s ON s.event_id = k.event AND s.lane = k.lane_key AND s.number = k.nr`
	sqlSoonest = `SELECT k.event, coalesce((SELECT expires_at FROM shard.sessions WHERE event_id = k.event AND ended_at = 0
  ORDER BY expires_at, session_id LIMIT 1), 0) FROM unnest($1::bigint[]) AS k(event)`
	sqlCodes = `SELECT k.n, coalesce((SELECT number FROM shard.code_uses u WHERE u.event_id = k.event AND u.lane = k.lane_key AND u.code = k.code_key
  ORDER BY u.event_id DESC, u.lane DESC, u.code DESC, u.number DESC LIMIT 1), 0),
 (SELECT count(*) FROM shard.code_uses u WHERE u.event_id = k.event AND u.lane = k.lane_key AND u.code = k.code_key AND u.customer_id = k.customer)
 FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY AS k(event, lane_key, code_key, customer, n)`
	sqlUnpaid = `SELECT k.n, h.hold_id, h.ended_at, h.area, h.lines FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS k(customer, event, n),
 LATERAL (SELECT hold_id, ended_at, area, lines FROM shard.holds WHERE customer_id = k.customer AND event_id = k.event AND ended_at > 0
  AND offer_id = 0 AND exchange_of = 0 ORDER BY ended_at DESC LIMIT $3) AS h`
)

// lockSessions locks sessions: behind the limits and before the rooms.
func (t *transaction) lockSessions(p *pipeline) {
	keys := sorted(t.set.sessions, cmp.Compare[id.ID])
	t.source.sessions = make(map[id.ID]*decide.Session, len(keys))
	if len(keys) == 0 {
		return
	}
	for _, k := range keys {
		t.source.sessions[k] = nil
	}
	var n int64
	var row sessionScan
	p.rows(sqlSessions, []any{column(keys, asInt64)}, append([]any{&n}, row.dest()[1:]...), func() error {
		row.session = int64(keys[n-1])
		s := &decide.Session{Session: row.take()}
		t.source.sessions[s.ID] = s
		seen := *s
		t.l.facts.sessions.Put(s.ID, &seen)
		return nil
	})
}

// lockRooms locks rooms and reads what hangs on them.
func (t *transaction) lockRooms(p *pipeline) {
	keys := sorted(t.set.rooms, cmp.Compare[id.ID])
	t.source.rooms = make(map[id.ID]*decide.Room, len(keys))
	if len(keys) == 0 {
		return
	}
	for _, k := range keys {
		t.source.rooms[k] = nil
	}
	ids := column(keys, asInt64)
	var n, version int64
	var body string
	p.rows(sqlRooms, []any{ids}, []any{&n, &version, &body}, func() error {
		r, err := decide.DecodeRoom(body, keys[n-1])
		if err != nil {
			return err
		}
		t.source.rooms[r.Event] = &decide.Room{Room: *r, Version: version}
		return nil
	})
	t.source.runsOut = make(map[id.ID]ledger.Time, len(keys))
	var event, soonest int64
	p.rows(sqlSoonest, []any{ids}, []any{&event, &soonest}, func() error {
		t.source.runsOut[id.ID(event)] = ledger.Time(soonest)
		return nil
	})
	t.readNumbers(p)
	t.readCodes(p)
}

func (t *transaction) readNumbers(p *pipeline) {
	if len(t.set.numbers) == 0 {
		return
	}
	keys := make([]ledger.SessionNumber, 0, len(t.set.numbers))
	t.source.numbers = make(map[ledger.SessionNumber]*decide.Session, len(t.set.numbers))
	for k := range t.set.numbers {
		keys = append(keys, k)
		t.source.numbers[k] = nil
	}
	var row sessionScan
	p.rows(sqlNumbers, []any{
		column(keys, func(k ledger.SessionNumber) int64 { return int64(k.Event) }),
		column(keys, func(k ledger.SessionNumber) string { return k.Lane }),
		column(keys, func(k ledger.SessionNumber) int64 { return k.Number }),
	}, row.dest(), func() error {
		s := row.take()
		t.source.numbers[ledger.SessionNumber{Event: s.Event, Lane: s.Lane, Number: s.Number}] = &decide.Session{Session: s}
		return nil
	})
}

func (t *transaction) readCodes(p *pipeline) {
	if len(t.set.codes) == 0 {
		return
	}
	keys := make([]codeOf, 0, len(t.set.codes))
	t.source.codes = make(map[codeOf]codeUses, len(t.set.codes))
	for k := range t.set.codes {
		keys = append(keys, k)
	}
	var n, number, used int64
	p.rows(sqlCodes, []any{
		column(keys, func(k codeOf) int64 { return int64(k.Event) }),
		column(keys, func(k codeOf) string { return k.Lane }),
		column(keys, func(k codeOf) string { return k.Code }),
		column(keys, func(k codeOf) int64 { return int64(k.customer) }),
	}, []any{&n, &number, &used}, func() error {
		t.source.codes[keys[n-1]] = codeUses{count: int(number), used: used > 0}
		return nil
	})
}

// readUnpaid reads which holds of customers ended unpaid, without a lock: two holds of a customer at once on two nodes may
// each not see that the other's last one has just ended.
func (t *transaction) readUnpaid(p *pipeline) {
	if len(t.set.unpaid) == 0 {
		return
	}
	keys := make([]decide.UnpaidKey, 0, len(t.set.unpaid))
	t.source.unpaid = make(map[decide.UnpaidKey][]decide.Unpaid, len(t.set.unpaid))
	for k := range t.set.unpaid {
		keys = append(keys, k)
		t.source.unpaid[k] = nil
	}
	var n, hold, ended int64
	var area int32
	var lines string
	p.rows(sqlUnpaid, []any{
		column(keys, func(k decide.UnpaidKey) int64 { return int64(k.Customer) }),
		column(keys, func(k decide.UnpaidKey) int64 { return int64(k.Event) }),
		int32(decide.UnpaidReadMax),
	}, []any{&n, &hold, &ended, &area, &lines}, func() (err error) {
		h := ledger.Hold{Area: area}
		if h.Lines, err = decide.ParseLines(lines); err != nil {
			return err
		}
		k := keys[n-1]
		t.source.unpaid[k] = append(t.source.unpaid[k], decide.Unpaid{Hold: id.ID(hold), Ended: ledger.Time(ended), Seats: h.Seats()})
		return nil
	})
}
