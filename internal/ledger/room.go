package ledger

import "onsale/internal/id"

// Limits of a waiting room.
const (
	RoomLanesMax      = 16
	RoomRateMax       = 100_000        // people a second
	RoomActiveMax     = 1_000_000      // people inside at once
	RoomNumbersMax    = int64(1) << 40 // of one lane
	RoomKnocksMax     = 2_048          // people called and refused for now, whose place before the others is remembered
	RoomNodesMax      = 64             // whose reports are kept
	LaneKeyBytesMax   = 64
	LaneWeightMax     = 1_000
	RoomTurnMax       = Duration(15 * 60 * 1000)
	RoomStayMax       = Duration(24 * 60 * 60 * 1000)
	SessionsEndMax    = 512 // sessions whose time is up that one step ends
	SessionsEnterMax  = 64  // and one claim that finds the room full
	CodeUsesMax       = 1_000_000
	RoomTick          = Duration(100)            // one step of calling is made in each
	RoomKnockPatience = Duration(15 * 1000)      // for so long after their last claim somebody who was told next_in keeps their place
	RoomReportMax     = Duration(3 * 1000)       // how old a node's report may be to count
	RoomCallsPublic   = Duration(15 * 60 * 1000) // of calls, the last of which are shown to everybody (C8)
)

// RoomMode says whether an event has a waiting room.
type RoomMode uint8

// The modes of a waiting room.
const (
	RoomOff  RoomMode = iota
	RoomAuto          // people join and claim too, but nobody waits while the limits are not reached (C10)
	RoomOn
)

// String is the mode's word.
func (m RoomMode) String() string { return [...]string{"off", "auto", "on"}[m] }

// A RoomRule is how an event's waiting room works: a part of Event, changed by SetEvent. It opens for the line when the
// sale does (Event.SaleOpens). The zero value is no room.
type RoomRule struct {
	Mode      RoomMode
	Opens     Time       // first instant at which people may join
	Arrival   bool       // opening order: of arrival, else the draw
	Rate      int        // R: people who may enter in one second; with RateAuto the most that R becomes
	RateAuto  bool       // R follows the figures that the nodes report (Advance.Report)
	RateMin   int        // with RateAuto the least that R becomes, at least 1
	ActiveMax int        // people inside at once
	Turn      Duration   // in which somebody called may claim, on the room's clock. 0: RoomTurnDefault
	Stay      Duration   // how long a session lasts at least. 0: RoomStayDefault
	Lanes     []LaneRule // none: one, LaneDefault
	Source    string     // of the public value, named before anybody can know it; "": there will be none, the draw is committed
	DrawWait  Duration   // how long after opening the value is waited for. 0: RoomDrawWaitDefault
	Paused    bool       // nobody is called or enters; clocks of turns stand
	Closed    bool       // for good: nobody joins, is called or enters
}

// What a RoomRule means where it leaves something out.
const (
	RoomTurnDefault     = Duration(120 * 1000)
	RoomStayDefault     = Duration(10 * 60 * 1000)
	RoomDrawWaitDefault = Duration(60 * 1000)
	LaneDefault         = "general"
)

// A LaneRule is one line of a room. What a lane's share of R cannot use goes to the others.
type LaneRule struct {
	Key    string // "general", "presale"
	Weight int    // 1 to LaneWeightMax
}

// RoomPhase is how far a room has come.
type RoomPhase uint8

// The phases of a room.
const (
	RoomClosed  RoomPhase = iota // nobody may join yet
	RoomWaiting                  // joins take numbers that mean nothing yet
	RoomDrawing                  // N is frozen; the public value is awaited; joins go to the tail
	RoomOpen                     // people are called
)

// String is the phase's word.
func (p RoomPhase) String() string { return [...]string{"closed", "waiting", "drawing", "open"}[p] }

// A Room is the shard's row of an event's waiting room: what must be exact. Only RoomCommit, RoomNumbers, RoomFreeze, RoomDraw,
// Advance, Enter, Leave and the end of sessions change it.
type Room struct {
	Event      id.ID
	Phase      RoomPhase
	Arrival    bool   // opening order, as it was when the room opened for waiting
	Commitment string // SHA-256 of K, hex; "" with Arrival
	Source     string // named with it
	Frozen     Time   // when N was frozen
	ListHash   string // SHA-256 of the list of joins, hex
	Value      string // the public value; "" until it is in, and where there was none
	Provable   bool   // Value came from Source after ListHash was public
	K          string // hex; "" until the draw
	Drawn      Time

	Lanes []Lane // in the order of the rule when the room opened for waiting; lanes that a later rule adds come behind

	Clock   Duration // the turns' clock: it stands while the room is paused or full (C7, C8)
	Tick    Time     // the last step of calling
	Rate    int      // R in force
	Second  Time     // the second (of the shard's clock) that Entered counts
	Entered int      // entries in it: never more than Rate
	Before  int      // entries in the second before it
	Inside  int      // sessions not ended: never more than ActiveMax
	Debt    int64    // people × 1e6 that calling may still make up for (see Step)
	Knocks  []Knock  // by the order in which they go
	Reports []RoomReport

	// What became of those whose turn is over or who entered: how many of those called show up.
	Decided, Shown int64
}

// A Lane is one line of a room.
type Lane struct {
	Key       string
	HighWater int64 // no number from here on has been given out: raised before any is (C2)
	N         int64 // numbers below it were given before the freeze and are drawn; 0 before
	Joined    int64 // numbers below it may have been given, as last told
	Watermark int64 // everyone with a smaller position is called; never goes back
	Entered   int64 // entries of the lane
	Credit    int64 // how far it is behind (or, below 0, before) its share of calls
	Open      []Call
}

// A Call is a step of a lane's watermark. Those whose turn may still be open stand in Lane.Open, merged by second of the
// room's clock.
type Call struct {
	Lane      string
	At        Time
	Clock     Duration // Room.Clock then
	From      int64    // the watermark before it
	Watermark int64    // after it
	Entered   int64    // in Lane.Open: of those whom it called
}

// A Knock is somebody called who claimed and was told to come again at once: they go before people called later.
type Knock struct {
	Lane     string
	Number   int64
	Position int64
	Late     bool     // their turn was over: they go after those whose turn is not
	Called   Duration // Room.Clock when they were called
	Last     Time     // their last claim
}

// A RoomReport is what one node saw in the last seconds, for RateAuto.
type RoomReport struct {
	Node  int
	At    Time
	P99   Duration // of holds, from the request to the answer
	Holds int
	Shed  int // requests that were refused as busy
}

// A Session is the time that somebody spends inside (C9): a row of its own. There is one for each number that entered.
type Session struct {
	ID       id.ID
	Event    id.ID
	Customer id.ID
	Lane     string
	Number   int64
	Position int64
	Entered  Time
	Expires  Time // as good as ended from then on, whether or not anybody has written so; never before its hold's
	Ended    Time // 0: not yet written down
	Why      string
}

// A RoomForce is what was in force in an event's room from an instant on. Each command that changes any of it writes one
// (SetEvent, also from and to RoomOff; Advance, where R is automatic), append-only. With calls and sessions it is the
// evidence from which I10 and I11 are recomputed, so it is written in the transaction of what it is about.
//
// The rows of this evidence, alike in both databases, each in the order of its first column (history-like, never changed):
//
//	room_rules(rule_id, event_id, at, mode, rate, active_max, turn, paused, closed)
//	room_calls(call_id, event_id, lane, at, clock, was, watermark)
//	code_uses(event_id, lane, code, number, customer_id, max, at)
type RoomForce struct {
	Event     id.ID
	At        Time
	Mode      RoomMode
	Rate      int // R
	ActiveMax int
	Turn      Duration
	Paused    bool
	Closed    bool
}

// The reasons why sessions end.
const (
	SessionExpired = "expired"
	SessionLeft    = "left"
	SessionPaid    = "paid"
)

// Live says whether a session lets its customer hold seats at an instant.
func (s *Session) Live(now Time) bool { return s.Ended == 0 && s.Expires > now }

// A LaneCount names a lane and a count of its numbers.
type LaneCount struct {
	Lane  string
	Count int64
}

// RoomCommit opens a room for waiting: Closed → Waiting, with the lanes of the event's rule. With a draw it fixes what is
// published about it: the hash of K and the source of the public value. The same again is a repeat.
//
// Result: Room. Faults: event_unknown; conflict (the event has no room, or it is closed for good); invalid (no commitment to a
// draw, or one where there is no draw); conflict (its rule's Opens is still ahead; another commitment).
type RoomCommit struct {
	Event      id.ID
	Commitment string // hex of 32 bytes; "" with Arrival
	Source     string
}

// RoomNumbers raises a lane's high-water mark to Upto before numbers below it are given out. A smaller one is a repeat.
//
// Result: Room. Faults: event_unknown; conflict (no room, Closed, or closed for good); invalid (no such lane; above
// RoomNumbersMax).
type RoomNumbers struct {
	Event id.ID
	Lane  string
	Upto  int64
}

// RoomFreeze ends waiting: Waiting → Drawing, or with opening order of arrival → Open. N of each lane is Lanes' count, and
// all lanes must be named. The same again is a repeat, and so is another N once one is frozen: the answer has the one
// that counts.
//
// Result: Room. Faults: event_unknown; conflict (no room, Closed, or closed for good); invalid (lanes missing or unknown; no
// hash of the list of a draw); conflict (the sale opens later; N above HighWater).
type RoomFreeze struct {
	Event    id.ID
	Lanes    []LaneCount
	ListHash string
}

// RoomDraw publishes K and the public value: Drawing → Open. SHA-256 of K must be the commitment. Provable only with a
// Value. A room that is Open is a repeat.
//
// Result: Room. Faults: event_unknown; conflict (no room, closed for good, not Drawing); invalid (K; Provable without a Value or
// a Source); conflict (without a Value before DrawWait is over, where the room has a Source).
type RoomDraw struct {
	Event    id.ID
	Value    string
	Provable bool
	K        string // hex
}

// Advance makes one step of calling (C6): the watermarks move, sessions whose time is up end. It takes effect once in each
// RoomTick whoever sends it; within the same it is a repeat, of which only the Report may be new (kept once a second for
// each node). It also moves R where that is automatic.
//
// The figures are what its sender knows from reads and its board; they steer and need not be exact.
//
// Result: Room; Count: people called. Faults: event_unknown; conflict (no room, or not Open).
type Advance struct {
	Event      id.ID
	Joined     []LaneCount // how many numbers each lane has given out, as far as the sender knows
	Available  int         // seats and places that can be bought now
	Holding    int         // people inside who have a live hold
	PerBuyer   int         // seats that a buyer takes × 1000; 0: not known yet
	Report     RoomReport  // of the sender; At is the ledger's to set. Node < 0: none
	Conversion int         // of those with a hold who pay, × 1000; 0: not known yet. It steers nothing: held seats count when they fall back
}

// Enter is a claim (C7): it makes the session of a number whose turn is open, at most R in each second of the shard's clock and
// while fewer than ActiveMax are inside. During the session the same claim is answered with the same session (a repeat).
//
// Somebody refused by next_in is remembered (a Knock, the first RoomKnocksMax of them by their order) and goes before those who
// come behind them in it, as long as they come again within RoomKnockPatience.
//
// Position is computed here from the number, by the draw. Result: Session, Room. Faults, in this order: event_unknown;
// conflict (no room; number already used, also after leaving: join again); paused; not_on_sale (closed, sale over, not open
// yet); not_admitted (not called yet; a number that was never given); next_in with RetryAfter (R, ActiveMax, or others who
// go before).
type Enter struct {
	Session  id.ID // the new one's id
	Event    id.ID
	Customer id.ID
	Lane     string
	Number   int64
}

// Leave ends a session. One that has ended, or whose time was up, is a repeat. Holds of it go on.
//
// Result: Session. Faults: not_admitted (no such session, or another customer's).
type Leave struct {
	Session  id.ID
	Customer id.ID
}

// TakeCode counts a use of a presale code (or a place on a list of members: a code with one use), once for each customer.
// Code is a keyed hash.
//
// Result: Count: how often it has been used, by everybody. Faults: event_unknown; invalid (no code, or no such lane in the
// event's rule; Max not 1 to CodeUsesMax); code_used_up.
type TakeCode struct {
	Event    id.ID
	Lane     string
	Code     string
	Max      int
	Customer id.ID
}

func (c RoomCommit) EventHint() id.ID  { return c.Event }
func (c RoomNumbers) EventHint() id.ID { return c.Event }
func (c RoomFreeze) EventHint() id.ID  { return c.Event }
func (c RoomDraw) EventHint() id.ID    { return c.Event }
func (c Advance) EventHint() id.ID     { return c.Event }
func (c Enter) EventHint() id.ID       { return c.Event }
func (c Leave) EventHint() id.ID       { return 0 }
func (c TakeCode) EventHint() id.ID    { return c.Event }

func (c RoomCommit) SeatCount() int  { return 0 }
func (c RoomNumbers) SeatCount() int { return 0 }
func (c RoomFreeze) SeatCount() int  { return 0 }
func (c RoomDraw) SeatCount() int    { return 0 }
func (c Advance) SeatCount() int     { return 0 }
func (c Enter) SeatCount() int       { return 1 }
func (c Leave) SeatCount() int       { return 0 }
func (c TakeCode) SeatCount() int    { return 0 }

// RoomFigures count what became of those called, for Advance and for people who run the sale.
type RoomFigures struct {
	Entered    int64 // sessions ever
	Inside     int
	Holding    int   // sessions with a live hold
	Paid       int64 // sessions with an order PAID or REFUNDED
	HoldsEnded int64 // sold, expired or released, of sessions
	HoldsSold  int64
	PlacesSold int64 // in those
}
