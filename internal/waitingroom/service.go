package waitingroom

import (
	"context"
	"io"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A Service is one node's waiting rooms. Its methods may be called from many goroutines at once. Run does its work in the
// background; every node of an installation runs one, and they need not know of each other.
type Service struct{ options Options }

var errNotBuilt = fault.New(fault.Internal, "not built yet")

// New makes a service. Close ends it; store, log and ledger stay the caller's.
func New(o Options) (*Service, error) { return &Service{options: o}, nil }

// Run makes the rooms go on until ctx ends: it opens them for waiting, freezes, draws, calls, ends what is over, and mends a
// store that has lost something (C12). Each step may be done twice, by several nodes at once, or be left in the middle.
func (s *Service) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Ready says whether every room that is open for joining is known to the store and in memory (B4).
func (s *Service) Ready() bool { return true }

// Changed says that an event's row in the ledger has changed: what is known of it is read again at once, not a second
// later.
func (s *Service) Changed(event id.ID) {}

// Close ends the streams and the background parts that joins use.
func (s *Service) Close() {}

// A JoinRequest asks for a number. Whoever sends it has looked at codes, proofs and blocks before.
type JoinRequest struct {
	Event    id.ID
	Customer id.ID
	Lane     string   // its key; "": "general", else the last lane
	Identity Identity // of a verified document; zero: none
}

// A Place is a customer's place in a line.
type Place struct {
	// QueueID is the queue ticket: signed, good for asking for the position and, for its customer alone, for claiming. It
	// identifies nobody, and may stand in a URL (E4).
	QueueID string
	Lane    string
	Number  int64
	Drawn   bool   // the number means nothing before the draw; else it is the position
	Entry   string // hex: the customer's line in the published list
	New     bool   // taken by this call
}

// Join gives a customer a number, or the one that they have, whatever lane is asked for. What it answers is durable.
//
// Faults: event_unknown; conflict (the event has no waiting room); not_on_sale (not open for joining yet, or over); invalid
// (lane); already_in_line; busy, with RetryAfter (store, log or ledger away, being mended, too many joins at once, or the draw is
// just being frozen).
func (s *Service) Join(ctx context.Context, r JoinRequest) (Place, error) {
	return Place{}, errNotBuilt
}

// A Standing is how a queue ticket stands, computed from memory alone.
type Standing struct {
	Event    id.ID
	Customer id.ID
	Lane     string
	Number   int64
	Drawn    bool
	Known    bool  // Position is: the draw has been, or the number is not drawn
	Position int64 // 0 is the first of the lane
	Ahead    int64 // people of the lane who are not called yet and go before: 0 when called
	Called   bool
	TurnMS   int64 // of the turn that is left, on the room's clock; 0: over, claim all the same: late ones go where there is room
	Outlook  Outlook
	Poll     time.Duration // when to ask again
}

// An Outlook is what somebody who waits can hope for (C11).
type Outlook string

// The outlooks.
const (
	OutlookUnknown  Outlook = "unknown"  // the draw has not been, or what is left is not known
	OutlookLikely   Outlook = "likely"   // at least 90 %
	OutlookPossible Outlook = "possible" // at least 20 %
	OutlookUnlikely Outlook = "unlikely"
	OutlookSoldOut  Outlook = "sold_out"
)

// Place tells how a queue ticket stands, without asking anything but memory.
//
// Faults: queue_unknown (not a ticket of ours; its event is not known here).
func (s *Service) Place(queueID string) (Standing, error) { return Standing{}, errNotBuilt }

// An Admission is the right to hold seats for a while.
type Admission struct {
	Token   string // for the header X-Admission-Token
	Session id.ID
	Expires ledger.Time // of the session; it is prolonged by holds, and the token by claiming again
}

// Claim enters somebody whose turn it is. During the session the same claim answers the same session.
//
// Faults: queue_unknown; wrong_customer; those of ledger.Enter; busy.
func (s *Service) Claim(ctx context.Context, queueID string, customer id.ID) (Admission, error) {
	return Admission{}, errNotBuilt
}

// LeaveQueue gives a number up. A later join is at the tail.
//
// Faults: queue_unknown; wrong_customer; busy.
func (s *Service) LeaveQueue(ctx context.Context, queueID string, customer id.ID) error {
	return errNotBuilt
}

// Leave ends a session.
//
// Faults: those of ledger.Leave; busy.
func (s *Service) Leave(ctx context.Context, session, customer id.ID) error { return errNotBuilt }

// Admit is the gate's filter in front of new holds (I11): it reads an admission token and looks at the session, at most
// SessionFresh old. The ledger decides again, in the hold's transaction. An event without a waiting room (mode off) needs no
// token: the answer is 0.
//
// Faults: not_admitted (no token, not one of ours, another customer's or event's, left or paid); admission_expired; event_unknown;
// busy.
func (s *Service) Admit(ctx context.Context, token string, customer, event id.ID) (session id.ID, err error) {
	return 0, errNotBuilt
}

// JWKS is the public keys by which an edge may check admission tokens, as the JSON of a JWK set.
func (s *Service) JWKS() ([]byte, error) { return nil, errNotBuilt }

// A StatusPage is the public status of an event as JSON, with its entity tag (quoted). Neither may be changed.
type StatusPage struct {
	JSON []byte
	ETag string
}

// Status is the same for everybody and cheap: the bytes are ready. It may be StatusEvery old.
//
// Faults: event_unknown; conflict (no waiting room); busy (not known yet, and the ledger is away).
func (s *Service) Status(ctx context.Context, event id.ID) (*StatusPage, error) {
	return nil, errNotBuilt
}

// A Subscription is one client's stream of server-sent events, to be written as they are.
//
//	event: status   data: the public status, whenever it has changed (at most every StatusEvery)
//	event: turn     data: {"called":true,"turn_ms":…}, once, when the ticket's turn comes
type Subscription struct{ frames chan []byte }

// Frames are what to send. The channel is closed when the subscription ends.
func (s *Subscription) Frames() <-chan []byte { return s.frames }

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {}

// Subscribe begins a stream of an event's status; with a queue ticket also of its turn. It begins with the present status.
//
// Faults: those of Status and Place; busy (SubscribersMax).
func (s *Service) Subscribe(ctx context.Context, event id.ID, queueID string) (*Subscription, error) {
	return nil, errNotBuilt
}

// SetDrawValue enters the public value of an event whose room is drawing, as an organizer read it from the named source. It
// counts as provable: the list's hash was public before.
//
// Faults: those of ledger.RoomDraw; invalid (empty or longer than 256 bytes).
func (s *Service) SetDrawValue(ctx context.Context, event id.ID, value string) error {
	return errNotBuilt
}

// WriteList writes the list of joins whose hash is published, as package draw's ListWriter does.
//
// Faults: event_unknown; conflict (not frozen yet); busy.
func (s *Service) WriteList(ctx context.Context, event id.ID, to io.Writer) error { return errNotBuilt }

// A CallPoint is how far a lane was called at the end of a second: JSON.
type CallPoint struct {
	At        int64 `json:"at"` // Unix seconds
	Watermark int64 `json:"watermark"`
}

// Calls are the last 15 minutes of calling, by lane (C8), at most a second old.
func (s *Service) Calls(ctx context.Context, event id.ID) (map[string][]CallPoint, error) {
	return nil, errNotBuilt
}

// ObserveHold is told of every hold request of this node: how long it took, and whether it was refused as busy. The automatic
// rate follows it.
func (s *Service) ObserveHold(event id.ID, took time.Duration, shed bool) {}

// Stats are counts since the start, and how things stand.
type Stats struct {
	Joins        int64 // answered with a number
	JoinsNew     int64 // of them new ones
	JoinsBusy    int64 // refused as busy
	JoinBatches  int64 // appends to the log
	Claims       int64
	Entered      int64
	Recoveries   int64 // times that the store was mended
	Rooms        int   // in memory
	Subscribers  int
	SlowDropped  int64
	JoinsWaiting int // for the log
}

// Stats are the figures so far.
func (s *Service) Stats() Stats { return Stats{} }

// A RoomView is how a room stands, for people who run the sale and for metrics.
type RoomView struct {
	Event   ledger.Event
	Room    ledger.Room
	Figures ledger.RoomFigures
	Joined  []Count
	Left    Left
	Known   bool // Left is
	Mending bool // the store is being restored: no joins meanwhile
}

// View is how an event's room stands, from memory.
//
// Faults: event_unknown; conflict (no waiting room).
func (s *Service) View(ctx context.Context, event id.ID) (RoomView, error) {
	return RoomView{}, errNotBuilt
}

// Views are all rooms in memory.
func (s *Service) Views() []RoomView { return nil }
