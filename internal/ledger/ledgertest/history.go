package ledgertest

import (
	"context"
	"fmt"
	"maps"
	"math"
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
	historiesCount  = 60 // in the short form
	batchesMax      = 10
	batchSizeMax    = 40
	transcriptLines = 400 // the last so many are printed
	historyTTL      = 60 * second
	historyWindow   = 40 * second
)

// exerciseHistories runs random batches on a ledger and on the model, and compares all that can be seen of both. The model
// gets the commands one by one, the ledger as a batch, so that A1 is tested too.
func exerciseHistories(t *testing.T, open Open) {
	setChecks(t, historiesCount*soak())
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(t, rt, open)
		defer func() {
			if err := h.ledger.Close(); err != nil {
				rt.Errorf("closing: %v", err)
			}
		}()
		batches := rapid.IntRange(1, batchesMax).Draw(rt, "batches")
		for range batches {
			h.step()
		}
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
	transcript []string
}

func newHistory(t *testing.T, rt *rapid.T, open Open) *history {
	clock := NewClock(start)
	harness := open(t, clock)
	h := &history{
		T: rt, clock: clock, harness: harness, ledger: harness.Ledger, model: ledger.NewModel(clock.Now),
		book: newBook(rt), lastID: 1000,
	}
	var setup []ledger.Command
	for _, event := range []id.ID{mainEvent, otherEvent} {
		e := hallEvent(event)
		e.HoldTTL, e.PaymentWindow = historyTTL, historyWindow
		e.TaxIncluded = event == mainEvent
		h.drawRules(&e)
		setup = append(setup, ledger.SetEvent{Event: e, Layout: hallLayout()})
	}
	h.run(setup)
	return h
}

// step lets time go by, perhaps ends the program, and runs a batch.
func (h *history) step() {
	passed := rapid.SampledFrom([]ledger.Duration{
		0, 0, 0, 1, second, 10 * second, 29_999, 30 * second, 41 * second, 60 * second, 70 * second, 3 * minute, -5 * second,
	}).Draw(h.T, "time")
	h.clock.Advance(passed)
	h.say("— %+d ms", passed)
	if h.harness.Reopen != nil && rapid.IntRange(0, 7).Draw(h.T, "reopen") == 0 {
		h.say("— the program ends and starts again")
		h.ledger = h.harness.Reopen()
	}
	size := rapid.OneOf(rapid.IntRange(1, 4), rapid.IntRange(1, batchSizeMax)).Draw(h.T, "size")
	h.run(h.draw(size))
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

// draw makes the commands of a batch. Each is run on the model at once, so that the next one can refer to what it did.
func (h *history) draw(size int) []ledger.Command {
	var commands []ledger.Command
	for range size {
		commands = append(commands, h.drawCommand())
	}
	return commands
}

// run is the batch on the ledger, its commands one by one on the model, and the comparison.
func (h *history) run(commands []ledger.Command) {
	ctx := context.Background()
	var want []ledger.Result
	var now ledger.Time
	h.say("a batch of %d", len(commands))
	for _, c := range commands {
		batch, err := h.model.Apply(ctx, []ledger.Command{c})
		if err != nil {
			h.fail("the model: %v", err)
		}
		want, now = append(want, batch.Results...), batch.Now
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
	}
}

// comparable is what of an answer must be equal: all but the texts for people.
func comparable(r ledger.Result) ledger.Result {
	if r.Fault != nil {
		r.Fault = &fault.Error{Code: r.Fault.Code, Field: r.Fault.Field, Seats: r.Fault.Seats, Order: r.Fault.Order}
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
		parts = append(parts, fmt.Sprintf("refund %d %s of %d", r.Refund.ID, r.Refund.State, r.Refund.Amount))
	}
	if r.Count > 0 || r.More {
		parts = append(parts, fmt.Sprintf("count %d more %v", r.Count, r.More))
	}
	return "ok " + strings.Join(parts, ", ")
}

// Drawing commands.

func (h *history) id() id.ID {
	h.lastID++
	return h.lastID
}

func (h *history) oneIn(n int, label string) bool { return rapid.IntRange(1, n).Draw(h.T, label) == n }

func (h *history) drawEvent() id.ID {
	if h.oneIn(40, "unknown event") {
		return 999
	}
	return rapid.SampledFrom([]id.ID{mainEvent, mainEvent, mainEvent, otherEvent}).Draw(h.T, "event")
}

func (h *history) drawCustomer() id.ID {
	return rapid.SampledFrom([]id.ID{alice, bob, carol, dave}).Draw(h.T, "customer")
}

// drawFrom picks one of what there is, late ones more often, or one that is not there.
func (h *history) drawFrom(ids []id.ID, label string) id.ID {
	if len(ids) == 0 || h.oneIn(25, "unknown "+label) {
		return 999
	}
	back := rapid.OneOf(rapid.IntRange(0, min(4, len(ids)-1)), rapid.IntRange(0, len(ids)-1)).Draw(h.T, label)
	return ids[len(ids)-1-back]
}

func (h *history) drawKey(fields ...string) ledger.Key {
	if !h.oneIn(3, "with a key") {
		return ledger.Key{}
	}
	return keyOf(rapid.SampledFrom([]string{"k1", "k2", "k3"}).Draw(h.T, "key"), fields...)
}

func (h *history) drawSeats(most int) []int32 {
	if h.oneIn(40, "odd seats") {
		return rapid.SampledFrom([][]int32{nil, {seatNone, 1}, {3, 3}, {seatUnpriced}, {-1}, {0, 1, 2, 3, 4, 5, 6}}).Draw(h.T, "seats")
	}
	n := rapid.IntRange(1, most).Draw(h.T, "how many seats")
	if h.oneIn(2, "side by side") {
		first := rapid.IntRange(0, hallSeats-1-n).Draw(h.T, "first seat")
		var seats []int32
		for i := range n {
			seats = append(seats, int32(first+i))
		}
		return seats
	}
	seat := rapid.Int32Range(0, hallSeats-2)
	return rapid.SliceOfNDistinct(seat, n, n, func(s int32) int32 { return s }).Draw(h.T, "seats")
}

func (h *history) drawCommand() ledger.Command {
	if len(h.sent) > 2 && h.oneIn(12, "send again") {
		if c := h.sent[len(h.sent)-1-rapid.IntRange(0, len(h.sent)-1).Draw(h.T, "which")]; repeatable(c) {
			return c
		}
	}
	type choice struct {
		weight int
		draw   func() ledger.Command
	}
	choices := []choice{
		{22, h.drawHoldSeats}, {8, h.drawHoldPlaces}, {4, h.drawExtend}, {7, h.drawRelease}, {16, h.drawBeginPayment},
		{18, h.drawConfirm}, {5, h.drawFailPayment}, {12, h.drawRecordPayment}, {3, h.drawSweep}, {3, h.drawBlock},
		{3, h.drawUnblock}, {4, h.drawSetEvent},
	}
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	at := rapid.IntRange(0, total-1).Draw(h.T, "kind")
	for _, c := range choices {
		if at -= c.weight; at < 0 {
			return c.draw()
		}
	}
	panic("unreachable")
}

// repeatable says whether a command may come twice: a hold or order is made by its id once, so only a key makes its
// repetition harmless.
func repeatable(c ledger.Command) bool {
	switch c := c.(type) {
	case ledger.HoldSeats:
		return c.Key.Value != ""
	case ledger.HoldPlaces:
		return c.Key.Value != ""
	case ledger.BeginPayment:
		return c.Key.Value != ""
	}
	return true
}

func (h *history) drawHoldSeats() ledger.Command {
	c := ledger.HoldSeats{ID: h.id(), Event: h.drawEvent(), Customer: h.drawCustomer(), Seats: h.drawSeats(4)}
	c.Key = h.drawKey("event", fmt.Sprint(c.Event), "seats", fmt.Sprint(len(c.Seats)))
	if h.oneIn(5, "with a session") {
		c.Session, c.Exchange, c.Offer = 7, 8, 9
	}
	return c
}

func (h *history) drawHoldPlaces() ledger.Command {
	c := ledger.HoldPlaces{
		ID: h.id(), Event: h.drawEvent(), Customer: h.drawCustomer(),
		Area: rapid.SampledFrom([]int32{0, 0, 1, 1, areaNone}).Draw(h.T, "area"), Quantity: rapid.IntRange(0, 4).Draw(h.T, "quantity"),
	}
	c.Key = h.drawKey("event", fmt.Sprint(c.Event), "quantity", fmt.Sprint(c.Quantity))
	return c
}

// drawHoldOf picks a hold and mostly its customer.
func (h *history) drawHoldOf() (hold, customer id.ID) {
	hold, customer = h.drawFrom(h.holds, "hold"), h.drawCustomer()
	if known, err := h.model.Hold(context.Background(), hold); err == nil && !h.oneIn(12, "another customer") {
		customer = known.Customer
	}
	return hold, customer
}

func (h *history) drawExtend() ledger.Command {
	hold, customer := h.drawHoldOf()
	return ledger.Extend{Hold: hold, Customer: customer}
}

func (h *history) drawRelease() ledger.Command {
	hold, customer := h.drawHoldOf()
	return ledger.Release{Hold: hold, Customer: customer}
}

func (h *history) drawBeginPayment() ledger.Command {
	hold, customer := h.drawHoldOf()
	return ledger.BeginPayment{
		Order: h.id(), Hold: hold, Customer: customer, Key: h.drawKey("hold", fmt.Sprint(hold)), Provider: "sandbox",
		AllowOther: h.oneIn(2, "allow other"),
		Documents:  rapid.SliceOfN(rapid.SampledFrom([]string{"d1", "d2", "d3"}), 0, 2).Draw(h.T, "documents"),
	}
}

func (h *history) drawPayment() string {
	return rapid.SampledFrom([]string{"p1", "p1", "p1", "p2"}).Draw(h.T, "payment")
}

func (h *history) drawConfirm() ledger.Command {
	c := ledger.Confirm{
		Order: h.drawFrom(h.orders, "order"), Payment: h.drawPayment(), Currency: "EUR",
		Captured: h.oneIn(2, "captured"), Refund: h.id(), RescueHold: h.id(),
	}
	lines := 1
	if o, err := h.model.Order(context.Background(), c.Order); err == nil {
		hold, _ := h.model.Hold(context.Background(), o.Hold)
		lines, c.Amount = len(hold.Lines), o.Amount
		if o.Amount == 0 {
			c.Payment, c.Captured = "", false
		}
	}
	if h.oneIn(15, "another amount") {
		c.Amount++
		c.Payment = "p2"
	}
	if h.oneIn(30, "too few tickets") {
		lines--
	}
	for range lines {
		c.Tickets = append(c.Tickets, h.id())
	}
	return c
}

func (h *history) drawFailPayment() ledger.Command {
	return ledger.FailPayment{Order: h.drawFrom(h.orders, "order"), Cancelled: h.oneIn(3, "cancelled"), Reason: "declined"}
}

func (h *history) drawRecordPayment() ledger.Command {
	ctx := context.Background()
	c := ledger.RecordPayment{
		Order: h.drawFrom(h.orders, "order"), Payment: h.drawPayment(),
		State: rapid.SampledFrom([]ledger.PaymentState{
			ledger.PaymentAuthorized, ledger.PaymentCaptured, ledger.PaymentCaptured, ledger.PaymentVoided,
			ledger.PaymentRefunded, ledger.PaymentCaptureRefused,
		}).Draw(h.T, "state"),
	}
	if o, err := h.model.Order(ctx, c.Order); err == nil {
		c.Amount = o.Amount
	}
	if c.State == ledger.PaymentCaptureRefused && !h.oneIn(8, "no refund") {
		c.Refund = h.id()
	}
	open, err := h.model.OpenPayments(ctx, math.MaxInt32)
	if err != nil {
		h.fail("the model: %v", err)
	}
	if len(open) > 0 && h.oneIn(2, "what is due") {
		due := rapid.SampledFrom(open).Draw(h.T, "due")
		c.Order, c.Payment, c.Amount = due.Payment.Order, due.Payment.ID, due.Payment.Captured+due.Payment.Authorized
		if due.Refund != nil {
			c.State, c.Refund, c.Amount = ledger.PaymentRefunded, due.Refund.ID, due.Refund.Amount
			if due.Payment.State == ledger.PaymentAuthorized {
				c.State = ledger.PaymentVoided
			}
		}
	}
	if h.oneIn(12, "another amount") {
		c.Amount += rapid.SampledFrom([]int64{-1, 1}).Draw(h.T, "by")
	}
	return c
}

func (h *history) drawSweep() ledger.Command {
	return ledger.Sweep{
		Event: rapid.SampledFrom([]id.ID{0, mainEvent, otherEvent}).Draw(h.T, "event"), Max: rapid.IntRange(0, 3).Draw(h.T, "max"),
	}
}

func (h *history) drawBlock() ledger.Command {
	return ledger.Block{Event: h.drawEvent(), Seats: h.drawSeats(3), WhenFree: h.oneIn(2, "when free")}
}

func (h *history) drawUnblock() ledger.Command {
	return ledger.Unblock{Event: h.drawEvent(), Seats: h.drawSeats(4)}
}

func (h *history) drawSetEvent() ledger.Command {
	event := rapid.SampledFrom([]id.ID{mainEvent, otherEvent}).Draw(h.T, "event")
	if h.oneIn(8, "stop") {
		return ledger.Stop{Event: event}
	}
	e, err := h.model.Event(context.Background(), event)
	if err != nil {
		h.fail("the model: %v", err)
	}
	e.Version += rapid.SampledFrom([]int64{1, 1, 1, 1, 0, -1}).Draw(h.T, "version")
	h.drawRules(&e)
	return ledger.SetEvent{Event: e}
}

// drawRules sets what an organizer may change.
func (h *history) drawRules(e *ledger.Event) {
	e.State = rapid.SampledFrom([]ledger.EventState{
		ledger.OnSale, ledger.OnSale, ledger.OnSale, ledger.OnSale, ledger.OnSale, ledger.OnSale, ledger.Paused, ledger.Ended, ledger.Cancelled,
	}).Draw(h.T, "event state")
	e.Returns = rapid.SampledFrom([]ledger.ReturnsMode{0, 0, 1}).Draw(h.T, "returns")
	e.ExtendMax = rapid.IntRange(0, 2).Draw(h.T, "extend max")
	e.SeatsPerHoldMax = rapid.SampledFrom([]int{6, 6, 3}).Draw(h.T, "seats per hold max")
	e.Limits, e.Quotas = nil, nil
	for _, l := range []ledger.Limit{
		{Scope: ledger.PerEvent}, {Scope: ledger.PerCategory, Category: 0}, {Scope: ledger.PerCategory, Category: 1},
		{Scope: ledger.PerShow}, {Scope: ledger.PerDocument},
	} {
		if h.oneIn(3, "with a limit") {
			l.Max = rapid.IntRange(1, 6).Draw(h.T, "limit")
			e.Limits = append(e.Limits, l)
		}
	}
	for _, q := range []ledger.Quota{{Category: 0, Section: -1}, {Category: 1, Section: 1}, {Category: -1, Section: -1}} {
		if h.oneIn(4, "with a quota") {
			q.Max = rapid.IntRange(0, 10).Draw(h.T, "quota")
			if h.oneIn(2, "with a step") {
				q.Steps = []ledger.QuotaStep{{At: start + ledger.Time(minute), Max: rapid.IntRange(0, 12).Draw(h.T, "step")}}
			}
			e.Quotas = append(e.Quotas, q)
		}
	}
	e.Show = rapid.SampledFrom([]id.ID{theShow, theShow, theShow, theShow + 1}).Draw(h.T, "show")
	prices := []int64{5000, 5000, 4999}
	e.Tiers = slices.Clone(e.Tiers)
	e.Tiers[0].Face = rapid.SampledFrom(prices).Draw(h.T, "price")
}

// Broken names the first invariant (DESIGN 3) that does not hold in a ledger, by reading the named holds and orders of
// it. It shares nothing with the ledger's own decisions.
func Broken(ctx context.Context, l ledger.Ledger, holds, orders []id.ID) error {
	events, err := l.Events(ctx)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := brokenIn(ctx, l, e, holds, orders); err != nil {
			return fmt.Errorf("event %d: %w", e.ID, err)
		}
	}
	return nil
}

func brokenIn(ctx context.Context, l ledger.Ledger, e ledger.Event, holds, orders []id.ID) error {
	s, err := l.Snapshot(ctx, e.ID)
	if err != nil {
		return err
	}
	claims := map[int32][]string{} // who has each seat
	areas := make([]ledger.AreaState, len(s.Areas))
	states := make([]ledger.Availability, len(s.Seats))
	pendingOf := map[id.ID]int{}
	for _, hold := range slices.Compact(slices.Sorted(slices.Values(holds))) {
		h, err := l.Hold(ctx, hold)
		if isNotFound(err) || err == nil && (h.Event != e.ID || h.State != ledger.HoldLive) {
			continue
		} else if err != nil {
			return err
		}
		for _, line := range h.Lines {
			if h.Area >= 0 {
				areas[h.Area].Held++
				continue
			}
			states[line.Seat] = ledger.Held
			claims[line.Seat] = append(claims[line.Seat], fmt.Sprintf("hold %d", hold))
		}
	}
	for _, order := range slices.Compact(slices.Sorted(slices.Values(orders))) {
		o, err := l.Order(ctx, order)
		if isNotFound(err) || err == nil && o.Event != e.ID {
			continue
		} else if err != nil {
			return err
		}
		if o.State == ledger.OrderPending || o.State == ledger.OrderPaid {
			pendingOf[o.Hold]++
		}
		h, err := l.Hold(ctx, o.Hold)
		if err != nil {
			return err
		}
		if err := brokenOrder(o, h); err != nil {
			return err
		}
		for _, t := range o.Tickets {
			if t.State == ledger.TicketVoid {
				continue
			}
			if t.Area >= 0 {
				areas[t.Area].Sold++
				continue
			}
			states[t.Seat] = ledger.Sold
			claims[t.Seat] = append(claims[t.Seat], fmt.Sprintf("ticket %d", t.ID))
		}
	}
	for _, seat := range slices.Sorted(maps.Keys(claims)) {
		if len(claims[seat]) > 1 {
			return fmt.Errorf("I1: seat %d has %v", seat, claims[seat])
		}
	}
	for i, seat := range s.Seats {
		if held := seat.State == ledger.Held || seat.State == ledger.Sold; (held || states[i] != 0) && states[i] != seat.State {
			return fmt.Errorf("I1: seat %d is %s, by its claims %s", i, seat.State, states[i])
		}
	}
	for i, a := range s.Areas {
		if a.Held != areas[i].Held || a.Sold != areas[i].Sold || a.Held+a.Sold > a.Capacity {
			return fmt.Errorf("I2: area %d is %+v, by its claims %+v", i, a, areas[i])
		}
	}
	for hold, n := range pendingOf {
		if n > 1 {
			return fmt.Errorf("A13: hold %d has %d orders PENDING or PAID", hold, n)
		}
	}
	return nil
}

// brokenOrder is what is wrong with an order by itself.
func brokenOrder(o ledger.Order, h ledger.Hold) error {
	valid := 0
	var paid int64
	for _, t := range o.Tickets {
		if t.State != ledger.TicketVoid {
			valid++
			paid += t.Total
		}
	}
	switch {
	case o.State == ledger.OrderPaid && (valid != len(h.Lines) || paid != o.Amount || h.State != ledger.HoldSold):
		return fmt.Errorf("I7: order %d is PAID with %d tickets of %d, for %d of %d, and a hold that is %s",
			o.ID, valid, len(h.Lines), paid, o.Amount, h.State)
	case o.State != ledger.OrderPaid && valid > 0:
		return fmt.Errorf("I7: order %d is %s with %d valid tickets", o.ID, o.State, valid)
	case o.State != ledger.OrderPending && o.AttemptOpen:
		return fmt.Errorf("A19: order %d is %s with an open attempt", o.ID, o.State)
	}
	return nil
}
