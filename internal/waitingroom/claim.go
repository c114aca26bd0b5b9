package waitingroom

import (
	"context"
	"errors"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/keys"
	"onsale/internal/ledger"
)

// Place tells how a queue ticket stands, without asking anything but memory.
//
// Faults: queue_unknown (not a ticket of ours; its event is not known here).
func (s *Service) Place(queueID string) (Standing, error) {
	t, err := s.sealer.read(s.life, queueID)
	if err != nil {
		return Standing{}, errQueueUnknown
	}
	h := s.halls.get(t.event)
	if h == nil {
		return Standing{}, errQueueUnknown
	}
	return h.standing(&t), nil
}

var errQueueUnknown = &fault.Error{Code: fault.QueueUnknown}

func (h *hall) standing(t *queueTicket) Standing {
	p := h.picture.Load()
	room := &p.room
	st := Standing{Event: t.event, Customer: t.customer, Number: t.number, Drawn: t.drawn, Outlook: OutlookUnknown}
	if t.lane >= len(room.Lanes) {
		return st
	}
	l := &room.Lanes[t.lane]
	st.Lane = l.Key
	st.Position, st.Known = p.position(t.lane, t.number)
	if !st.Known {
		st.Position = 0
		st.Poll = p.outlook.pollEarly
		return st
	}
	st.Outlook = p.outlook.of(t.lane, st.Position)
	if room.Phase == ledger.RoomOpen && st.Position < l.Watermark {
		st.Called = true
		st.TurnMS = int64(h.turnLeft(p, t.lane, st.Position))
		return st
	}
	st.Ahead = st.Position - l.Watermark
	st.Poll = p.outlook.poll(st.Ahead)
	return st
}

// ticket reads a queue ticket that a customer sent.
func (s *Service) ticket(ctx context.Context, queueID string, customer id.ID) (queueTicket, *hall, error) {
	t, err := s.sealer.read(ctx, queueID)
	switch {
	case err != nil:
		return queueTicket{}, nil, errQueueUnknown
	case t.customer != customer:
		return queueTicket{}, nil, &fault.Error{Code: fault.WrongCustomer}
	}
	h, err := s.hall(ctx, t.event)
	if err != nil {
		return queueTicket{}, nil, err
	}
	if t.lane >= len(h.picture.Load().room.Lanes) {
		return queueTicket{}, nil, errQueueUnknown
	}
	return t, h, nil
}

// current says whether a ticket's number is the one that its customer has: who left gave it up, and with it the ticket. Else
// people would join and leave until a good number came.
func (s *Service) current(ctx context.Context, t *queueTicket) (Record, error) {
	r, ok, err := s.o.Log.Of(ctx, t.event, t.customer)
	switch {
	case err != nil:
		return Record{}, s.away("read the log of joins", err)
	case !ok || r.Lane != t.lane || r.Number != t.number:
		return Record{}, errQueueUnknown
	}
	return r, nil
}

// Claim enters somebody whose turn it is. During the session the same claim answers the same session.
//
// Faults: queue_unknown (also a number that was given up); wrong_customer; those of ledger.Enter; busy.
func (s *Service) Claim(ctx context.Context, queueID string, customer id.ID) (Admission, error) {
	return s.ClaimFor(ctx, queueID, customer, customer)
}

// ClaimFor is Claim where the ticket was given to a holder who is no customer yet: a device, whose person has signed in since
// (C1). Who calls it has seen that the device is the customer's. The session is the customer's alone.
func (s *Service) ClaimFor(ctx context.Context, queueID string, holder, customer id.ID) (Admission, error) {
	t, h, err := s.ticket(ctx, queueID, holder)
	if err != nil {
		return Admission{}, err
	}
	s.counters.claims.Add(1)
	p := h.picture.Load()
	if p.rule.Room.Mode == ledger.RoomOff {
		return Admission{}, errNoRoom
	}
	if _, err := s.current(ctx, &t); err != nil {
		return Admission{}, err
	}
	session, err := s.o.NewID(t.event)
	if err != nil {
		return Admission{}, fault.Wrap(fault.Internal, err)
	}
	result, err := s.o.Ledger.Do(ctx, ledger.Enter{
		Session: session, Event: t.event, Customer: customer, Lane: p.room.Lanes[t.lane].Key, Number: t.number,
	})
	if err != nil {
		return Admission{}, err
	}
	if result.Room != nil {
		s.learn(h, *result.Room, true)
	}
	if !result.Repeat {
		s.counters.entered.Add(1)
	}
	s.sessions.Put(result.Session.ID, *result.Session)
	token, err := s.admitter.sign(result.Session, s.shardNow().Std())
	if err != nil {
		return Admission{}, fault.Wrap(fault.Internal, err) // the claim again gives the same session
	}
	return Admission{Token: token, Session: result.Session.ID, Expires: result.Session.Expires}, nil
}

// LeaveQueue gives a number up, and the session that it has entered by. A later join is at the tail.
//
// Faults: queue_unknown; wrong_customer; busy.
func (s *Service) LeaveQueue(ctx context.Context, queueID string, customer id.ID) error {
	t, h, err := s.ticket(ctx, queueID, customer)
	if err != nil {
		return err
	}
	r, err := s.current(ctx, &t)
	if err != nil {
		return err
	}
	lane := h.picture.Load().room.Lanes[t.lane].Key
	session, err := s.o.Reader.SessionOfNumber(ctx, ledger.SessionNumber{Event: t.event, Lane: lane, Number: t.number})
	switch {
	case err == nil && session.Live(s.shardNow()):
		if err := s.Leave(ctx, session.ID, session.Customer); err != nil { // whose browser may have waited before they signed in
			return err
		}
	case err != nil && !errors.Is(err, ledger.ErrNotFound):
		return s.away("read a session", err)
	}
	return s.giveUp(ctx, r)
}

// Leave ends a session.
//
// Faults: those of ledger.Leave; busy.
func (s *Service) Leave(ctx context.Context, session, customer id.ID) error {
	result, err := s.o.Ledger.Do(ctx, ledger.Leave{Session: session, Customer: customer})
	s.sessions.Forget(session)
	if err == nil && result.Session != nil {
		s.sessions.Put(session, *result.Session)
	}
	return err
}

// Admit is the gate's filter in front of new holds (I11): it reads an admission token and looks at the session, at most
// SessionFresh old. The ledger decides again, in the hold's transaction. An event without a waiting room (mode off) needs no
// token: the answer is 0.
//
// Faults: not_admitted (no token, not one of ours, another customer's or event's, left or paid); admission_expired; event_unknown;
// busy.
func (s *Service) Admit(ctx context.Context, token string, customer, event id.ID) (session id.ID, err error) {
	h, err := s.hall(ctx, event)
	if err != nil {
		return 0, err
	}
	if h.picture.Load().rule.Room.Mode == ledger.RoomOff {
		return 0, nil
	}
	a, err := s.admitter.read(ctx, token)
	if err != nil {
		return 0, err
	}
	if a.event != event || a.customer != customer {
		return 0, fault.New(fault.NotAdmitted, "this admission is for another event or customer")
	}
	row, err := s.sessions.Load(ctx, a.session, func(ctx context.Context) (ledger.Session, error) {
		return s.o.Reader.Session(ctx, a.session)
	})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return 0, &fault.Error{Code: fault.NotAdmitted}
	case err != nil:
		return 0, s.away("read a session", err)
	case row.Event != event || row.Customer != customer:
		return 0, &fault.Error{Code: fault.NotAdmitted}
	case row.Ended != 0 && row.Why != ledger.SessionExpired:
		return 0, fault.New(fault.NotAdmitted, "this session has ended: join again")
	case !row.Live(s.shardNow()):
		// A hold may have prolonged it since it was read: what is old is not taken for expired.
		return s.admitFresh(ctx, a)
	}
	return a.session, nil
}

func (s *Service) admitFresh(ctx context.Context, a admission) (id.ID, error) {
	row, err := s.o.Reader.Session(ctx, a.session)
	if err != nil {
		return 0, s.away("read a session", err)
	}
	s.sessions.Put(a.session, row)
	if !row.Live(s.shardNow()) {
		return 0, &fault.Error{Code: fault.AdmissionExpired}
	}
	return a.session, nil
}

// JWKS is the public keys by which an edge may check admission tokens, as the JSON of a JWK set.
func (s *Service) JWKS() ([]byte, error) { return keys.JWKS(s.o.Keys.Checking(keys.Admission)) }
