package ledgertest

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Bounds of a random history.
const (
	historiesCount  = 40 // in the short form
	shopCount       = 14 // of those about the shop
	listCount       = 24 // of those about the waitlist
	batchesMin      = 4
	batchesMax      = 14
	batchSizeMax    = 40
	transcriptLines = 400 // the last so many are printed
	shopFirst       = 5   // what a history about the shop begins with, of each kind
	probeEach       = 6   // how much each customer asks for of each event in the end
	historyTTL      = 60 * second
	historyWindow   = 40 * second
)

// The kinds of histories beside the ordinary one.
const (
	shopHistory = "shop" // most of what is done is done with what was bought
	roomHistory = "room" // everybody goes through a waiting room
	listHistory = "list" // nearly all is gone, and what comes back goes to the waitlist
)

// exerciseHistories runs random batches on a ledger and on the model, and compares all that can be seen of both. The model
// gets the commands one by one, the ledger as a batch, so that A1 is tested too. Those of a kind about the shop are longer.
func exerciseHistories(t *testing.T, open Open, kind string) {
	count, longer := historiesCount, 0
	switch kind {
	case shopHistory:
		count, longer = shopCount, batchesMin
	case listHistory:
		count = listCount
	case roomHistory:
		count, longer = roomCount, batchesMax
	}
	setChecks(t, times(count))
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(t, rt, open, kind)
		defer func() {
			if err := h.ledger.Close(); err != nil {
				rt.Errorf("closing: %v", err)
			}
		}()
		for range longer + batchesMin + h.among(batchesMax-batchesMin+1, "batches") {
			h.step()
		}
		h.probe()
	})
}

// A history is one run of random batches.
type history struct {
	*rapid.T
	clock      *Clock
	harness    Harness
	ledger     ledger.Ledger
	model      *ledger.Model
	book       *book
	lastID     id.ID
	sent       []ledger.Command
	holds      []id.ID
	orders     []id.ID
	tickets    []id.ID
	refunds    []id.ID
	transcript []string
	late       bool // money mostly comes after its hold has run out
	shop       bool // most of it is about what was bought
	list       bool // most of it is about the waitlist
	wishes     []id.ID
	kind       string
	sessions   []id.ID
}

func newHistory(t *testing.T, rt *rapid.T, open Open, kind string) *history {
	clock := NewClock(start)
	harness := open(t, clock)
	h := &history{
		T: rt, clock: clock, harness: harness, ledger: harness.Ledger, model: ledger.NewModel(clock.Now),
		book: newBook(rt), lastID: 1000,
	}
	h.kind, h.shop, h.list = kind, kind == shopHistory, kind == listHistory
	h.late = kind == "" && h.oneIn(3, "late money")
	h.run(2, func(i int) ledger.Command {
		e := hallEvent([]id.ID{mainEvent, otherEvent}[i])
		e.HoldTTL, e.PaymentWindow = historyTTL, historyWindow
		e.TaxIncluded = i == 0
		h.drawRules(&e)
		return ledger.SetEvent{Event: e, Layout: hallLayout()}
	})
	if h.list {
		h.fill()
	}
	if h.kind == roomHistory {
		h.openRoom()
	}
	if h.shop { // something is sold already
		for _, draw := range []func() ledger.Command{h.drawHoldSeats, h.drawHoldPlaces, h.drawBeginPayment, h.drawConfirm} {
			h.run(shopFirst, func(int) ledger.Command { return draw() })
		}
	}
	return h
}

// step lets time go by, perhaps ends the program, and runs a batch.
func (h *history) step() {
	passed := oneOf(h, "time", 0, 0, 0, 1, second, 10*second, 29_999, 30*second, 41*second, 60*second, 70*second, -5*second)
	if h.harness.WaitsForClock {
		passed = max(passed, 0) // what it does when the clock goes back is a scenario of its own
	}
	if h.late {
		passed = oneOf(h, "time", 0, 0, 30*second, 61*second, 70*second)
	}
	if h.shop {
		passed = oneOf(h, "time", 0, 0, 1, second, 10*second, 70*second)
	}
	if h.list {
		passed = oneOf(h, "time", 0, 0, 1, second, 10*second, 20*second, 31*second, 60*second, 70*second)
	}
	if h.kind == roomHistory {
		passed = oneOf(h, "time", 0, 1, 99, 100, 100, 400, second, second, 5*second, 16*second, 41*second)
	}
	h.clock.Advance(passed)
	h.say("— %+d ms", passed)
	if h.harness.Reopen != nil && h.oneIn(8, "reopen") {
		h.say("— the program ends and starts again")
		h.ledger = h.harness.Reopen()
	}
	size := 1 + h.among(oneOf(h, "size", 3, 12, batchSizeMax), "size")
	if h.shop {
		size = 4 + h.among(batchSizeMax, "size")
	}
	h.run(size, func(int) ledger.Command { return h.drawCommand() })
}

func (h *history) say(format string, args ...any) {
	h.transcript = append(h.transcript, fmt.Sprintf(format, args...))
}

// fail ends the history, with all that led to it.
func (h *history) fail(format string, args ...any) {
	h.Helper()
	lines := h.transcript[max(0, len(h.transcript)-transcriptLines):]
	h.Fatalf("%s\n\nThe history (answers are the model's):\n%s", fmt.Sprintf(format, args...), strings.Join(lines, "\n"))
}

// run draws a batch and compares what the ledger and the model make of it. Each command is run on the model as soon as it
// is drawn, so that the next one can refer to what it did.
func (h *history) run(size int, draw func(i int) ledger.Command) {
	ctx := context.Background()
	var commands []ledger.Command
	var want []ledger.Result
	var now ledger.Time
	h.say("a batch of %d", size)
	for i := range size {
		c := draw(i)
		batch, err := h.model.Apply(ctx, []ledger.Command{c})
		if err != nil {
			h.fail("the model: %v", err)
		}
		commands, want, now = append(commands, c), append(want, batch.Results...), batch.Now
		h.say("  %s\n      → %s", describe(c), describeResult(batch.Results[0]))
		h.learn(c)
	}
	if err := Broken(ctx, h.model, h.holds, h.orders); err != nil {
		h.fail("the model breaks an invariant: %v", err)
	}
	got, err := h.ledger.Apply(ctx, commands)
	if err != nil {
		h.fail("Apply: %v", err)
	}
	if got.Now != now {
		h.fail("the batch was decided at %d, by the model at %d", got.Now, now)
	}
	for i, c := range commands {
		if diff := cmp.Diff(comparable(want[i]), comparable(got.Results[i]), cmpopts.EquateEmpty()); diff != "" {
			h.fail("the answer to command %d of the last batch, %s, differs (-model +ledger)\n%s", i+1, describe(c), diff)
		}
	}
	h.book.note(noting{h}, h.ledger, commands, got)
	h.comparePictures()
}

// noting lets the book's complaints end the history with its transcript.
type noting struct{ h *history }

func (n noting) Helper()                           {}
func (n noting) Errorf(format string, args ...any) { n.h.fail(format, args...) }
func (n noting) Fatalf(format string, args ...any) { n.h.fail(format, args...) }

// learn remembers what there may be now, for later commands to refer to.
func (h *history) learn(c ledger.Command) {
	h.sent = append(h.sent, c)
	switch c := c.(type) {
	case ledger.HoldSeats:
		h.holds = append(h.holds, c.ID)
	case ledger.HoldPlaces:
		h.holds = append(h.holds, c.ID)
	case ledger.BeginPayment:
		h.orders = append(h.orders, c.Order)
	case ledger.Confirm:
		h.holds = append(h.holds, c.RescueHold)
		h.tickets = append(h.tickets, c.Tickets...)
		h.refunds = append(append(h.refunds, c.Refund), c.Exchange...)
	case ledger.BeginRefund:
		h.refunds = append(h.refunds, c.IDs...)
	case ledger.RecordPayment:
		if c.State == ledger.PaymentCaptureRefused {
			h.refunds = append(h.refunds, c.Refund)
		}
	case ledger.Transfer:
		h.tickets = append(h.tickets, c.ID)
	case ledger.AddWish:
		h.wishes = append(h.wishes, c.Wish.ID)
	case ledger.Offer:
		h.holds = append(h.holds, c.Hold)
	case ledger.Enter:
		h.sessions = append(h.sessions, c.Session)
	}
}

// comparable is what of an answer must be equal: all but the texts for people.
func comparable(r ledger.Result) ledger.Result {
	if r.Fault != nil {
		r.Fault = &fault.Error{Code: r.Fault.Code, Field: r.Fault.Field, Seats: r.Fault.Seats, Order: r.Fault.Order, RetryAfter: r.Fault.RetryAfter}
	}
	return r
}

// A seen is everything that can be read of a ledger.
type seen struct {
	Picture   map[string]string
	Events    []ledger.Event
	Tickets   []ledger.Ticket
	OrdersOf  map[id.ID][]id.ID
	Pending   []id.ID
	NextAfter ledger.Time
	Now       ledger.Time
	Shop      shopSeen
	List      listSeen
	Room      ledger.RoomFigures
}

func (h *history) comparePictures() {
	want, err := h.look(h.model)
	if err != nil {
		h.fail("the model: %v", err)
	}
	got, err := h.look(h.ledger)
	if err != nil {
		h.fail("reading: %v", err)
	}
	if reflect.DeepEqual(want, got) { // Diff is slow
		return
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		h.fail("what can be read differs (-model +ledger)\n%s", diff)
	}
}

func (h *history) look(l ledger.Ledger) (seen, error) {
	ctx := context.Background()
	var s seen
	var err error
	if s.Picture, err = h.book.picture(l); err != nil {
		return s, err
	}
	if s.Events, err = l.Events(ctx); err != nil {
		return s, err
	}
	slices.SortFunc(s.Events, func(a, b ledger.Event) int { return int(a.ID - b.ID) })
	for _, ticket := range h.tickets {
		t, err := l.Ticket(ctx, ticket)
		if isNotFound(err) {
			continue
		} else if err != nil {
			return s, err
		}
		s.Tickets = append(s.Tickets, t)
	}
	s.OrdersOf = map[id.ID][]id.ID{}
	for _, customer := range []id.ID{alice, bob, carol, dave} {
		orders, err := l.OrdersOf(ctx, customer, 0, 5)
		if err != nil {
			return s, err
		}
		for _, o := range orders {
			s.OrdersOf[customer] = append(s.OrdersOf[customer], o.ID)
		}
	}
	pending, err := l.PendingOrders(ctx, math.MaxInt64, math.MaxInt32)
	if err != nil {
		return s, err
	}
	for _, o := range pending {
		s.Pending = append(s.Pending, o.ID)
	}
	slices.Sort(s.Pending)
	if s.Shop, err = h.lookAtShop(l); err != nil {
		return s, err
	}
	if s.List, err = h.lookAtList(l); err != nil {
		return s, err
	}
	if s.Room, err = l.RoomFigures(ctx, mainEvent); err != nil {
		return s, err
	}
	if s.NextAfter, err = l.NextExpiry(ctx); err != nil {
		return s, err
	}
	s.Now, err = l.Now(ctx)
	return s, err
}

func describeResult(r ledger.Result) string {
	if r.Fault != nil {
		return fmt.Sprintf("%s field %q seats %v order %d", r.Fault.Code, r.Fault.Field, r.Fault.Seats, r.Fault.Order)
	}
	var parts []string
	if r.Repeat {
		parts = append(parts, "repeat")
	}
	if r.Hold != nil {
		parts = append(parts, fmt.Sprintf("hold %d %s until %d", r.Hold.ID, r.Hold.State, r.Hold.Expires))
	}
	if r.Order != nil {
		parts = append(parts, fmt.Sprintf("order %d %s %s", r.Order.ID, r.Order.State, r.Order.Reason))
	}
	if r.Refund != nil {
		parts = append(parts, fmt.Sprintf("refund %d %s of %d from %d", r.Refund.ID, r.Refund.State, r.Refund.Amount, r.Refund.From))
	}
	if r.Ticket != nil {
		parts = append(parts, fmt.Sprintf("ticket %d %s", r.Ticket.ID, r.Ticket.State))
	}
	if r.CheckIn != nil {
		parts = append(parts, fmt.Sprintf("use at %d %q", r.CheckIn.At, r.CheckIn.Conflict))
	}
	if r.Wish != nil {
		parts = append(parts, fmt.Sprintf("wish %d %s, offer %d of hold %d", r.Wish.ID, r.Wish.State, r.Wish.Offers, r.Wish.Hold))
	}
	if r.Count > 0 || r.More {
		parts = append(parts, fmt.Sprintf("count %d more %v", r.Count, r.More))
	}
	return "ok " + strings.Join(parts, ", ")
}
