package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// A Model is a plain in-memory ledger that is obviously right: the commands' meaning in code, and what every adapter is
// compared with. It keeps maps under one mutex and has no counters; whatever bounds a claim is counted from scratch by
// going through all holds and tickets. It forgets nothing and is durable only as long as the process lives.
//
// Read Apply, then holdSeats and expire (model_hold.go), overBounds (model_bounds.go) and confirm (model_pay.go); then how
// money goes back, beginRefund (model_refund.go), and swap (model_exchange.go).
type Model struct {
	mu     sync.Mutex
	source func() Time
	now    Time // of the batch that runs, or ran last; never goes back

	events   map[id.ID]*modelEvent
	holds    map[id.ID]*Hold
	orders   map[id.ID]*Order
	tickets  map[id.ID]*Ticket
	payments map[modelPayment]*Payment
	refunds  map[id.ID]*Refund
	checkIns []*CheckedIn
	history  []ClaimStep
	wishes   map[id.ID]*Wish
	keys     map[modelKey]modelEffect
	notices  []modelNotice
	leases   map[string]Lease

	rooms    map[id.ID]*Room
	sessions map[id.ID]*Session
	calls    []modelCall
	codes    map[modelCode]map[id.ID]bool // who has used each
}

// A modelEvent is an event with its seats and what was said about their changes.
type modelEvent struct {
	Event
	layout  Layout
	seats   []modelSeat
	areas   []modelArea
	version int64
	changes []Change
	forces  []RoomForce
}

// A modelSeat is one seat. Who holds or bought it is claim, in the epoch-th claim on this seat.
type modelSeat struct {
	state      Availability
	claim      id.ID // the hold, 0 where it is neither held nor sold
	epoch      int64 // how many claims there were, this one included (A8)
	returnedAt Time
	whenFree   bool // to be blocked when it is freed
}

// A modelArea is what of an area is promised to the waitlist; the rest is counted from holds.
type modelArea struct {
	returned   int
	returnedAt Time // since when there are some, or when some were offered or released last
}

// A modelPayment is by what a payment is known: two orders never share one.
type modelPayment struct {
	order id.ID
	id    string
}

// A modelKey is the scope of an idempotency key (A12), a modelEffect what it had.
type modelKey struct {
	customer  id.ID
	operation string
	value     string
}

type modelEffect struct {
	fields  []KeyField
	subject id.ID // OpHold: the hold; OpBooking: the order; OpRefund: the first refund; OpTransfer: the new ticket; OpWish: the wish
}

// NewModel makes an empty ledger that takes the time from now.
func NewModel(now func() Time) *Model {
	return &Model{
		source:   now,
		events:   map[id.ID]*modelEvent{},
		holds:    map[id.ID]*Hold{},
		orders:   map[id.ID]*Order{},
		tickets:  map[id.ID]*Ticket{},
		payments: map[modelPayment]*Payment{},
		refunds:  map[id.ID]*Refund{},
		wishes:   map[id.ID]*Wish{},
		keys:     map[modelKey]modelEffect{},
		leases:   map[string]Lease{},
		rooms:    map[id.ID]*Room{},
		sessions: map[id.ID]*Session{},
		codes:    map[modelCode]map[id.ID]bool{},
	}
}

// Close does nothing.
func (m *Model) Close() error { return nil }

// Apply runs the commands one by one.
func (m *Model) Apply(ctx context.Context, commands []Command) (Batch, error) {
	if err := ctx.Err(); err != nil {
		return Batch{}, err
	}
	seats := 0
	for _, c := range commands {
		seats += c.SeatCount()
	}
	if len(commands) > BatchCommandsMax || len(commands) > 1 && seats > BatchSeatsMax {
		return Batch{}, fmt.Errorf("ledger: a batch of %d commands naming %d seats is too large", len(commands), seats)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = max(m.now, m.source())
	before := m.pictures()
	batch := Batch{Now: m.now}
	configured := map[id.ID]bool{}
	for _, c := range commands {
		result := m.apply(c)
		switch c.(type) {
		case SetEvent, Stop, SetReturns:
			if result.Fault == nil && !result.Repeat {
				configured[c.EventHint()] = true
			}
		}
		batch.Results = append(batch.Results, result)
	}
	batch.Changes = m.changesSince(before, configured)
	return batch, nil
}

func (m *Model) apply(c Command) Result {
	if field := textProblem(c); field != "" {
		return refuseField(fault.Invalid, field)
	}
	switch c := c.(type) {
	case SetEvent:
		return m.setEvent(c)
	case HoldSeats:
		return m.holdSeats(c)
	case HoldPlaces:
		return m.holdPlaces(c)
	case Extend:
		return m.extend(c)
	case Release:
		return m.release(c)
	case BeginPayment:
		return m.beginPayment(c)
	case Confirm:
		return m.confirm(c)
	case FailPayment:
		return m.failPayment(c)
	case RecordPayment:
		return m.recordPayment(c)
	case BeginRefund:
		return m.beginRefund(c)
	case RefuseRefund:
		return m.refuseRefund(c)
	case RetryRefund:
		return m.retryRefund(c)
	case ReleaseSeats:
		return m.releaseSeats(c)
	case Transfer:
		return m.transfer(c)
	case CheckIn:
		return m.checkIn(c)
	case UndoCheckIn:
		return m.undoCheckIn(c)
	case Sweep:
		return m.sweep(c)
	case Block:
		return m.block(c)
	case Unblock:
		return m.unblock(c)
	case Stop:
		return m.stop(c)
	case AddWish:
		return m.addWish(c)
	case WithdrawWish:
		return m.withdrawWish(c)
	case Offer:
		return m.offer(c)
	case SettleWish:
		return m.settleWish(c)
	case ReleaseReturned:
		return m.releaseReturned(c)
	case SetReturns:
		return m.setReturns(c)
	case RoomCommit:
		return m.roomCommit(c)
	case RoomNumbers:
		return m.roomNumbers(c)
	case RoomFreeze:
		return m.roomFreeze(c)
	case RoomDraw:
		return m.roomDraw(c)
	case Advance:
		return m.advance(c)
	case Enter:
		return m.enter(c)
	case Leave:
		return m.leave(c)
	case TakeCode:
		return m.takeCode(c)
	}
	panic(fmt.Sprintf("ledger: %T is not a command", c))
}

// refuse is the answer that nothing was done.
func refuse(code fault.Code, format string, args ...any) Result {
	return Result{Fault: fault.New(code, format, args...)}
}

func refuseField(code fault.Code, field string) Result {
	return Result{Fault: &fault.Error{Code: code, Field: field, Detail: field}}
}

func refuseSeats(code fault.Code, seats []int32) Result {
	return Result{Fault: &fault.Error{Code: code, Detail: "these seats", Seats: seats}}
}

// Keys (A12).

// known answers a key that has had its effect; ok is false where it had none.
func (m *Model) known(customer id.ID, operation string, key Key) (answer Result, ok bool) {
	effect, ok := m.keys[modelKey{customer, operation, key.Value}]
	if key.Value == "" || !ok {
		return Result{}, false
	}
	if field := fieldDiffering(effect.fields, key.Fields); field != "" {
		return refuseField(fault.KeyReused, field), true
	}
	switch operation {
	case OpHold:
		answer = Result{Hold: m.holdNow(effect.subject)}
	case OpBooking:
		answer = m.answer(m.orders[effect.subject])
	case OpRefund:
		answer = m.refundAnswer(m.refunds[effect.subject])
	case OpTransfer:
		answer = Result{Ticket: m.ticketNow(effect.subject)}
	case OpWish:
		answer = Result{Wish: m.wishNow(effect.subject)}
	}
	answer.Repeat = true
	return answer, true
}

// fieldDiffering is the name of the first field that is not the same in both, "" where all are.
func fieldDiffering(stored, given []KeyField) string {
	byName := map[string]string{}
	for _, f := range given {
		byName[f.Name] = f.Hash
	}
	for _, f := range stored {
		if hash, there := byName[f.Name]; !there || hash != f.Hash {
			return f.Name
		}
		delete(byName, f.Name)
	}
	for _, f := range given {
		if _, left := byName[f.Name]; left {
			return f.Name
		}
	}
	return ""
}

func (m *Model) remember(customer id.ID, operation string, key Key, subject id.ID) {
	if key.Value != "" {
		m.keys[modelKey{customer, operation, key.Value}] = modelEffect{slices.Clone(key.Fields), subject}
	}
}

// Changes: an event's picture before a batch is compared with the one after it.

type modelPicture struct {
	seats    []SeatState
	free     []int32
	returned []int32
}

func (m *Model) pictures() map[id.ID]modelPicture {
	all := map[id.ID]modelPicture{}
	for _, e := range m.events {
		p := modelPicture{seats: m.seatStates(e)}
		for area := range e.layout.Areas {
			p.free = append(p.free, int32(m.areaFree(e, int32(area))))
			p.returned = append(p.returned, int32(e.areas[area].returned))
		}
		all[e.ID] = p
	}
	return all
}

func (m *Model) changesSince(before map[id.ID]modelPicture, configured map[id.ID]bool) []Change {
	var changes []Change
	after := m.pictures()
	for _, event := range slices.Sorted(maps.Keys(after)) {
		c := Change{Event: event, At: m.now, Config: configured[event]}
		for i, s := range after[event].seats {
			if old := before[event].seats; i < len(old) && old[i] != s {
				c.Seats = append(c.Seats, SeatChange{int32(i), s.State, s.Expires})
			}
		}
		for i, free := range after[event].free {
			if old := before[event]; i < len(old.free) && (old.free[i] != free || old.returned[i] != after[event].returned[i]) {
				c.Areas = append(c.Areas, AreaChange{int32(i), free})
			}
		}
		if c.Config || len(c.Seats) > 0 || len(c.Areas) > 0 {
			e := m.events[event]
			e.version++
			c.Version = e.version
			e.changes = append(e.changes, c)
			changes = append(changes, c)
		}
	}
	return changes
}

func (m *Model) seatStates(e *modelEvent) []SeatState {
	states := make([]SeatState, len(e.seats))
	for i, s := range e.seats {
		states[i].State = s.state
		if s.state == Held {
			states[i].Expires = m.holds[s.claim].Expires
		}
	}
	return states
}
