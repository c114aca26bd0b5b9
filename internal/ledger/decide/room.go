package decide

import (
	"cmp"
	"errors"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// The waiting room. What a command does to a room's row is ledger.Room's own (room_open.go, room_enter.go, room_step.go there);
// here are the rows: the room, which whoever changes it has locked, sessions, and the evidence that is only ever added.

// A Room is a room's row.
type Room struct {
	Row
	ledger.Room
	Version int64 // as loaded: the fence of its write. The adapter raises it
}

// A Session is a session's row.
type Session struct {
	Row
	ledger.Session
}

// A Call is a row of the evidence of calls.
type Call struct {
	Event id.ID
	ledger.Call
}

// A CodeKey names a presale code.
type CodeKey struct {
	Event      id.ID
	Lane, Code string
}

// A CodeUse is a customer's use of a presale code: the Number-th.
type CodeUse struct {
	CodeKey
	Number   int
	Customer id.ID
	Max      int
	At       ledger.Time
}

// codeUses is what is known of a code's uses.
type codeUses struct {
	count int
	used  map[id.ID]bool // whether a customer has; only of those who were asked for
}

// An UnpaidKey asks for a customer's holds of an event that ended without a sale since an instant.
type UnpaidKey struct {
	Customer id.ID
	Event    id.ID
	Since    ledger.Time
}

// An Unpaid is such a hold.
type Unpaid struct {
	Hold  id.ID
	Ended ledger.Time
	Seats []int32
}

// UnpaidReadMax is how many of them are looked at, those that ended last.
const UnpaidReadMax = 4 * ledger.UnpaidHoldsMax

// RoomSource is the part of a Source that gives the rows of waiting rooms.
type RoomSource interface {
	Room(event id.ID) (*Room, error)
	Session(session id.ID) (*Session, error)
	// SessionOf is the session of a number. Only who has the room's row locked may ask: nobody else makes or ends one then.
	SessionOf(ledger.SessionNumber) (*Session, error)
	// ExpiredSessions are an event's sessions not ended with Expires <= now, by (Expires, ID), at most max. Asked under the
	// room's lock.
	ExpiredSessions(event id.ID, now ledger.Time, max int) ([]id.ID, error)
	// CodeUses is how often a presale code was used, and whether by this customer.
	CodeUses(code CodeKey, customer id.ID) (count int, used bool, err error)
	// Unpaid are holds that ended without a sale, were no offers and no exchanges, and ended behind Since: those that ended
	// last, UnpaidReadMax at most. It is a plain read.
	Unpaid(UnpaidKey) ([]Unpaid, error)
}

func (w *Work) room(event id.ID) (*Room, error) {
	if r, ok := w.rooms[event]; ok {
		return r, nil
	}
	r, err := w.src.Room(event)
	if err != nil {
		return nil, err
	}
	if w.rooms == nil {
		w.rooms = map[id.ID]*Room{}
	}
	w.rooms[event] = r
	return r, nil
}

func (w *Work) roomSet(r *Room) *Room {
	if !r.Dirty {
		r.Dirty = true
		w.rooms[r.Event] = r
		w.Out.Rooms = append(w.Out.Rooms, r)
	}
	return r
}

// roomOf is an event and its room, which is new where nothing was said about it yet.
func (w *Work) roomOf(event id.ID) (*eventRow, *Room, error) {
	e, err := w.event(event)
	if err != nil {
		return nil, nil, err
	}
	if e == nil {
		return nil, nil, fault.New(fault.EventUnknown, "")
	}
	r, err := w.room(event)
	if err == nil && r == nil {
		r = &Room{Row: Row{New: true}, Room: *ledger.NewRoom(e.Event)}
	}
	return e, r, err
}

func (w *Work) session(session id.ID) (*Session, error) {
	if session == 0 {
		return nil, nil
	}
	if s, ok := w.sessions[session]; ok {
		return s, nil
	}
	s, err := w.src.Session(session)
	if err != nil {
		return nil, err
	}
	w.sessionKeep(session, s)
	return s, nil
}

func (w *Work) sessionKeep(session id.ID, s *Session) {
	if w.sessions == nil {
		w.sessions = map[id.ID]*Session{}
	}
	w.sessions[session] = s
}

func (w *Work) sessionSet(s *Session) *Session {
	if !s.Dirty {
		s.Dirty = true
		w.sessionKeep(s.ID, s)
		w.Out.Sessions = append(w.Out.Sessions, s)
	}
	return s
}

// view is a copy of the session as it is now, for an answer.
func (s *Session) view() *ledger.Session {
	v := s.Session
	return &v
}

// sessionOf is the session of a number as this batch has left it, nil where the number has not entered. It is for looking at
// only.
func (w *Work) sessionOf(n ledger.SessionNumber) (*Session, error) {
	if s := w.numbers[n]; s != nil {
		return s, nil
	}
	s, err := w.src.SessionOf(n)
	if err != nil || s == nil {
		return nil, err
	}
	if known := w.sessions[s.ID]; known != nil {
		return known, nil
	}
	return s, nil
}

// opening runs a command that brings a room nearer to being open.
func (w *Work) opening(event id.ID, do func(e *ledger.Event, r *ledger.Room) (repeat bool, f *fault.Error)) (ledger.Result, error) {
	e, r, err := w.roomOf(event)
	if err != nil {
		return ledger.Result{}, err
	}
	repeat, f := do(e.Event, &r.Room)
	if f != nil {
		return ledger.Result{}, f
	}
	if !repeat {
		w.roomSet(r)
	}
	return ledger.Result{Repeat: repeat, Room: r.View()}, nil
}

func (w *Work) advance(c ledger.Advance) (ledger.Result, error) {
	e, r, err := w.roomOf(c.Event)
	if err != nil {
		return ledger.Result{}, err
	}
	if f := r.Stepping(&e.Room); f != nil {
		return ledger.Result{}, f
	}
	if r.Report(c.Report, w.Now) {
		w.roomSet(r)
	}
	if !r.Due(w.Now) {
		return ledger.Result{Repeat: true, Room: r.View()}, nil
	}
	if err := w.endSessions(r, ledger.SessionsEndMax); err != nil {
		return ledger.Result{}, err
	}
	before := e.Room.Force(e.Event, r.Rate, w.Now)
	calls, called := w.roomSet(r).Step(e.Event, c, w.Now)
	for _, call := range calls {
		w.Out.Calls = append(w.Out.Calls, Call{Event: e.ID, Call: call})
	}
	w.enforce(before, e.Room.Force(e.Event, r.Rate, w.Now))
	return ledger.Result{Room: r.View(), Count: called}, nil
}

// enforce writes down what is in force in a room from now on, where it differs from what was.
func (w *Work) enforce(was, is ledger.RoomForce) {
	if !is.Same(was) && (is.Mode != ledger.RoomOff || was.Mode != ledger.RoomOff) {
		w.Out.Forces = append(w.Out.Forces, is)
	}
}

// ruled takes up an event's rule, new or changed. was is the row before, nil for a new one.
func (w *Work) ruled(was, is *ledger.Event) error {
	before, rate := ledger.RoomForce{Event: is.ID}, 0
	if is.Room.Mode == ledger.RoomOff && (was == nil || was.Room.Mode == ledger.RoomOff) {
		return nil
	}
	if was != nil {
		r, err := w.room(is.ID)
		if err != nil {
			return err
		}
		if r != nil {
			rate = r.Rate
		}
		before = was.Room.Force(was, rate, w.Now)
		if r != nil {
			w.roomSet(r).Ruled(is)
			rate = r.Rate
		}
	}
	w.enforce(before, is.Room.Force(is, rate, w.Now))
	return nil
}

// endSessions ends a room's sessions whose time is up, those that ran out first first, at most so many.
func (w *Work) endSessions(r *Room, most int) error {
	if r.New {
		return nil
	}
	// The database does not know yet which ones this batch has ended.
	ids, err := w.src.ExpiredSessions(r.Event, w.Now, most+len(w.Out.Sessions))
	if err != nil {
		return err
	}
	var m lacking
	for _, i := range ids {
		if most == 0 {
			break
		}
		s, err := w.session(i)
		if err := m.note(err); err != nil {
			return err
		}
		if err != nil || s == nil || s.Ended != 0 || s.Expires > w.Now {
			continue
		}
		if err := w.sessionEnd(r, s, ledger.SessionExpired); err != nil {
			return err
		}
		most--
	}
	return m.err
}

// sessionEnd ends a session of a room.
func (w *Work) sessionEnd(r *Room, s *Session, why string) error {
	if r == nil || r.Inside < 1 {
		return invariant(s.Event, "session %d ends in a room in which nobody is", s.ID)
	}
	w.sessionSet(s)
	s.Ended, s.Why = max(w.Now, s.Entered), why // another node's clock may have been a little ahead
	w.roomSet(r).Inside--
	return nil
}

func (w *Work) enter(c ledger.Enter) (ledger.Result, error) {
	e, r, err := w.roomOf(c.Event)
	if err != nil {
		return ledger.Result{}, err
	}
	if e.Room.Mode == ledger.RoomOff {
		return ledger.Result{}, fault.New(fault.Conflict, "the event has no waiting room")
	}
	number := ledger.SessionNumber{Event: c.Event, Lane: c.Lane, Number: c.Number}
	s, err := w.sessionOf(number)
	if err != nil {
		return ledger.Result{}, err
	}
	if s != nil && on(GuardNumberOnce) {
		if s.Customer != c.Customer || !s.Live(w.Now) {
			return ledger.Result{}, fault.New(fault.Conflict, "the number has been used")
		}
		return ledger.Result{Repeat: true, Session: s.view(), Room: r.View()}, nil
	}
	check := ledger.Checks{NoRate: !on(GuardRate), NoActive: !on(GuardActive), NoCall: !on(GuardCalled), NoOrder: !on(GuardKnockOrder)}
	position, at, err := r.Claim(e.Event, c, w.Now, check, func() error { return w.endSessions(r, ledger.SessionsEnterMax) })
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.NextIn {
		w.roomSet(r) // the knock
	}
	if err != nil {
		return ledger.Result{}, err
	}
	w.roomSet(r)
	s = w.sessionSet(&Session{Row: Row{New: true}, Session: ledger.Session{
		ID: c.Session, Event: c.Event, Customer: c.Customer, Lane: c.Lane, Number: c.Number, Position: position,
		Entered: at, Expires: at + ledger.Time(e.Room.StayFor()),
	}})
	if w.numbers == nil {
		w.numbers = map[ledger.SessionNumber]*Session{}
	}
	w.numbers[number] = s
	return ledger.Result{Session: s.view(), Room: r.View()}, nil
}

func (w *Work) leave(c ledger.Leave) (ledger.Result, error) {
	s, err := w.session(c.Session)
	if err != nil {
		return ledger.Result{}, err
	}
	if s == nil || s.Customer != c.Customer && on(GuardCustomer) {
		return ledger.Result{}, fault.New(fault.NotAdmitted, "")
	}
	live := s.Live(w.Now)
	if s.Ended == 0 {
		why := ledger.SessionLeft
		if !live {
			why = ledger.SessionExpired
		}
		if _, err := w.event(s.Event); err != nil {
			return ledger.Result{}, err
		}
		r, err := w.room(s.Event)
		if err != nil {
			return ledger.Result{}, err
		}
		if err := w.sessionEnd(r, s, why); err != nil {
			return ledger.Result{}, err
		}
	}
	return ledger.Result{Repeat: !live, Session: s.view()}, nil
}

func (w *Work) takeCode(c ledger.TakeCode) (ledger.Result, error) {
	e, _, err := w.roomOf(c.Event) // under the room's lock no two uses are counted at once
	if err != nil {
		return ledger.Result{}, err
	}
	if field := e.Room.CodeProblem(c); field != "" {
		return ledger.Result{}, invalid(field, "a lane, a code, and how often it may be used")
	}
	key := CodeKey{c.Event, c.Lane, c.Code}
	uses, err := w.codeUses(key, c.Customer)
	if err != nil {
		return ledger.Result{}, err
	}
	if uses.used[c.Customer] {
		return ledger.Result{Repeat: true, Count: uses.count}, nil
	}
	if uses.count >= c.Max && on(GuardCodeMax) {
		return ledger.Result{}, fault.New(fault.CodeUsedUp, "")
	}
	uses.count++
	uses.used[c.Customer] = true
	w.Out.Codes = append(w.Out.Codes, CodeUse{CodeKey: key, Number: uses.count, Customer: c.Customer, Max: c.Max, At: w.Now})
	return ledger.Result{Count: uses.count}, nil
}

func (w *Work) codeUses(key CodeKey, customer id.ID) (*codeUses, error) {
	uses := w.codes[key]
	if uses != nil {
		if _, asked := uses.used[customer]; asked {
			return uses, nil
		}
	}
	count, used, err := w.src.CodeUses(key, customer)
	if err != nil {
		return nil, err
	}
	if uses == nil {
		if w.codes == nil {
			w.codes = map[CodeKey]*codeUses{}
		}
		uses = &codeUses{count: count, used: map[id.ID]bool{}}
		w.codes[key] = uses
	}
	uses.used[customer] = used
	return uses, nil
}

// Holds and sessions.

// inside refuses a customer's new hold for want of a session (I11), and gives the one that it is made in, 0 where the event
// needs none.
func (w *Work) inside(e *eventRow, session, customer id.ID) (id.ID, error) {
	if e.Room.Mode == ledger.RoomOff || !on(GuardSession) {
		return 0, nil
	}
	s, err := w.session(session)
	switch {
	case err != nil:
		return 0, err
	case s == nil || s.Event != e.ID || s.Customer != customer:
		return 0, fault.New(fault.NotAdmitted, "")
	case !s.Live(w.Now):
		return 0, fault.New(fault.AdmissionExpired, "")
	}
	return session, nil
}

// stays lets a hold's session last as long as the hold.
func (w *Work) stays(h *Hold) error {
	s, err := w.session(h.Session)
	if err != nil {
		return err
	}
	if s != nil && s.Ended == 0 && s.Expires < h.Expires {
		w.sessionSet(s).Expires = h.Expires
	}
	return nil
}

// bought ends the session of a hold that was sold, unless its customer may buy more.
func (w *Work) bought(h *Hold) error {
	s, err := w.session(h.Session)
	if err != nil || s == nil || s.Ended != 0 {
		return err
	}
	e, err := w.event(h.Event)
	if err != nil {
		return err
	}
	r, err := w.room(h.Event)
	if err != nil {
		return err
	}
	var m lacking
	full := false
	Staying(e.Event, h.Customer, func(limit ledger.Limit, k LimitKey) {
		c, err := w.limit(k)
		if err != nil {
			m.err = err
			return
		}
		full = full || c.count >= limit.Max
	})
	if m.err != nil || !full {
		return m.err
	}
	return w.sessionEnd(r, s, ledger.SessionPaid)
}

// Staying names the limits, with their counters, that decide whether a customer who has bought may stay to buy more.
func Staying(e *ledger.Event, customer id.ID, each func(ledger.Limit, LimitKey)) {
	for _, l := range e.Limits {
		switch l.Scope {
		case ledger.PerEvent:
			each(l, LimitKey{Scope: l.Scope, Of: e.ID, Category: -1, Subject: CustomerSubject(customer)})
		case ledger.PerShow:
			each(l, LimitKey{Scope: l.Scope, Of: e.Show, Category: -1, Subject: CustomerSubject(customer)})
		}
	}
}

// rested refuses a new hold because its customer let others end unpaid (C15). seats are those wanted, nil for places.
func (w *Work) rested(e *eventRow, customer id.ID, seats []int32, x ledger.Exchange) error {
	since, bound := e.Holding.Since(w.Now)
	if !bound || x.Order != 0 || !on(GuardHoldRest) {
		return nil
	}
	ended, err := w.src.Unpaid(UnpaidKey{Customer: customer, Event: e.ID, Since: since})
	if err != nil {
		return err
	}
	ended = slices.Clone(ended)
	for _, h := range w.Out.Holds { // those that this batch has ended
		known := func(u Unpaid) bool { return u.Hold == h.ID }
		if h.Event == e.ID && h.Customer == customer && h.Ended > since && h.Offer == 0 && h.Exchange == 0 && !slices.ContainsFunc(ended, known) {
			ended = append(ended, Unpaid{Hold: h.ID, Ended: h.Ended, Seats: h.Seats()})
		}
	}
	slices.SortFunc(ended, func(a, b Unpaid) int { return cmp.Compare(b.Ended, a.Ended) })
	if n := e.Holding.UnpaidMax; n > 0 && len(ended) >= n {
		last, first := ended[0].Ended, ended[n-1].Ended
		if until := last + ledger.Time(e.Holding.Rest); until > w.Now && first > last-ledger.Time(e.Holding.Rest) {
			return &fault.Error{Code: fault.HoldRest, RetryAfter: ledger.Duration(until - w.Now).Std()}
		}
	}
	var lost []int32
	var until ledger.Time
	for _, u := range ended {
		free := u.Ended + ledger.Time(e.Holding.SeatRest)
		if free <= w.Now {
			continue
		}
		for _, seat := range u.Seats {
			if slices.Contains(seats, seat) {
				lost = append(lost, seat)
				until = max(until, free)
			}
		}
	}
	if len(lost) == 0 {
		return nil
	}
	slices.Sort(lost)
	return &fault.Error{Code: fault.HoldRest, RetryAfter: ledger.Duration(until - w.Now).Std(), Seats: slices.Compact(lost)}
}
