package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A world is a ledger with the hall's two events in it, and what a scenario says about it. Its verbs:
//
//	w.given(command)            it succeeds; what it changes is not looked at
//	w.ok(command, changed…)     it succeeds and changes exactly the things named
//	w.no(code, command, changed…) it is refused, with exactly these changes (mostly none)
//
// Things are named as in "seat 3", "area 0", "hold 1001", "order 1002"; of another event "seat 3 of 2".
type world struct {
	*testing.T
	clock   *Clock
	harness Harness
	ledger  ledger.Ledger
	book    *book
	lastID  id.ID
}

func newWorld(t *testing.T, open Open) *world {
	clock := NewClock(start)
	h := open(t, clock)
	w := &world{T: t, clock: clock, harness: h, ledger: h.Ledger, book: newBook(t), lastID: 1000}
	t.Cleanup(func() {
		if err := w.ledger.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	w.given(ledger.SetEvent{Event: hallEvent(mainEvent), Layout: hallLayout()})
	w.given(ledger.SetEvent{Event: hallEvent(otherEvent), Layout: hallLayout()})
	return w
}

// id makes a new number.
func (w *world) id() id.ID {
	w.lastID++
	return w.lastID
}

func (w *world) ids(n int) []id.ID {
	list := make([]id.ID, n)
	for i := range list {
		list[i] = w.id()
	}
	return list
}

// pass lets time go by.
func (w *world) pass(d ledger.Duration) { w.clock.Advance(d) }

// apply runs a batch.
func (w *world) apply(commands ...ledger.Command) []ledger.Result {
	w.Helper()
	return w.batch(commands...).Results
}

func (w *world) batch(commands ...ledger.Command) ledger.Batch {
	w.Helper()
	batch, err := w.ledger.Apply(context.Background(), commands)
	if err != nil {
		w.Fatalf("Apply of %v: %v", commands, err)
	}
	w.book.note(w.T, w.ledger, commands, batch)
	return batch
}

func (w *world) given(c ledger.Command) ledger.Result {
	w.Helper()
	r := w.apply(c)[0]
	if r.Fault != nil {
		w.Fatalf("%s was refused: %v", describe(c), r.Fault)
	}
	return r
}

func (w *world) ok(c ledger.Command, changed ...string) ledger.Result {
	w.Helper()
	before := w.picture()
	r := w.given(c)
	w.changedExactly(before, describe(c), changed)
	return r
}

func (w *world) no(code fault.Code, c ledger.Command, changed ...string) *fault.Error {
	w.Helper()
	before := w.picture()
	r := w.apply(c)[0]
	if r.Fault == nil {
		w.Fatalf("%s succeeded, but should be refused: %s", describe(c), code)
	}
	if r.Fault.Code != code {
		w.Fatalf("%s was refused: %v, but should be: %s", describe(c), r.Fault, code)
	}
	if code == fault.TicketUsed {
		r.CheckIn = nil // the first use, which the scenario looks at
	}
	if r.Hold != nil || r.Order != nil || r.Refund != nil || r.Ticket != nil || r.CheckIn != nil || r.Wish != nil || r.Room != nil || r.Session != nil || r.Repeat || r.Count != 0 || r.More {
		w.Errorf("%s was refused with %s, but the answer says more: %+v", describe(c), code, r)
	}
	w.changedExactly(before, describe(c), changed)
	return r.Fault
}

// again is ok for a repeat: the same answer, and nothing changes.
func (w *world) again(c ledger.Command) ledger.Result {
	w.Helper()
	r := w.ok(c)
	if !r.Repeat {
		w.Errorf("%s is not answered as a repeat", describe(c))
	}
	return r
}

// reopen ends the ledger and opens its store again, where it has one.
func (w *world) reopen() {
	if w.harness.Reopen != nil {
		w.ledger = w.harness.Reopen()
	}
}

func (w *world) changedExactly(before map[string]string, doing string, named []string) {
	w.Helper()
	after := w.picture()
	var changed []string
	for thing := range after {
		if before[thing] != after[thing] {
			changed = append(changed, thing)
		}
	}
	for thing := range before {
		if _, there := after[thing]; !there {
			changed = append(changed, thing)
		}
	}
	slices.Sort(changed)
	want := slices.Sorted(slices.Values(named))
	if diff := cmp.Diff(want, changed, cmpopts.EquateEmpty()); diff != "" {
		var detail strings.Builder
		for _, thing := range changed {
			fmt.Fprintf(&detail, "  %s: %s → %s\n", thing, before[thing], after[thing])
		}
		w.Fatalf("%s must change exactly %q, but changed (-want +got)\n%s%s", doing, want, diff, detail.String())
	}
}

// picture is everything that can be read, thing by thing, as text.
func (w *world) picture() map[string]string {
	w.Helper()
	p, err := w.book.picture(w.ledger)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func (w *world) seat(seat int32) ledger.SeatState {
	w.Helper()
	return w.snapshot(mainEvent).Seats[seat]
}

func (w *world) wantSeats(state ledger.Availability, seats ...int32) {
	w.Helper()
	for _, seat := range seats {
		if got := w.seat(seat).State; got != state {
			w.Errorf("seat %d is %s, want %s", seat, got, state)
		}
	}
}

func (w *world) wantArea(area, held, sold int32) {
	w.Helper()
	if a := w.snapshot(mainEvent).Areas[area]; a.Held != held || a.Sold != sold {
		w.Errorf("area %d: %d held, %d sold; want %d and %d", area, a.Held, a.Sold, held, sold)
	}
}

func (w *world) snapshot(event id.ID) ledger.Snapshot {
	w.Helper()
	s, err := w.ledger.Snapshot(context.Background(), event)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

func (w *world) holdNow(hold id.ID) ledger.Hold {
	w.Helper()
	h, err := w.ledger.Hold(context.Background(), hold)
	if err != nil {
		w.Fatal(err)
	}
	return h
}

func (w *world) orderNow(order id.ID) ledger.Order {
	w.Helper()
	o, err := w.ledger.Order(context.Background(), order)
	if err != nil {
		w.Fatal(err)
	}
	return o
}

// kinds are the notices of an order, in their order.
func (w *world) kinds(order id.ID) []string {
	w.Helper()
	notices, err := w.ledger.Unpublished(context.Background(), math.MaxInt32, nil)
	if err != nil {
		w.Fatal(err)
	}
	var kinds []string
	for _, n := range notices {
		if n.Order == order {
			kinds = append(kinds, n.Kind)
		}
	}
	return kinds
}

func (w *world) same(what string, got, want any) {
	w.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

// The commands, with what matters to a scenario.

func (w *world) holdSeats(customer id.ID, seats ...int32) ledger.HoldSeats {
	return ledger.HoldSeats{ID: w.id(), Event: mainEvent, Customer: customer, Seats: seats}
}

func (w *world) holdPlaces(customer id.ID, area int32, quantity int) ledger.HoldPlaces {
	return ledger.HoldPlaces{ID: w.id(), Event: mainEvent, Customer: customer, Area: area, Quantity: quantity}
}

// held holds seats and is their hold.
func (w *world) held(customer id.ID, seats ...int32) *ledger.Hold {
	w.Helper()
	return w.given(w.holdSeats(customer, seats...)).Hold
}

func (w *world) begin(h *ledger.Hold) ledger.BeginPayment {
	return ledger.BeginPayment{Order: w.id(), Hold: h.ID, Customer: h.Customer, Provider: "sandbox"}
}

// pending begins a payment and is its order.
func (w *world) pending(h *ledger.Hold) *ledger.Order {
	w.Helper()
	return w.given(w.begin(h)).Order
}

// pay confirms an order by a captured payment.
func (w *world) pay(o *ledger.Order, payment string) ledger.Confirm {
	w.Helper()
	return ledger.Confirm{
		Order: o.ID, Payment: payment, Amount: o.Amount, Currency: o.Currency, Captured: true,
		Tickets: w.ids(len(w.holdNow(o.Hold).Lines)), Refund: w.id(), RescueHold: w.id(),
		Exchange: w.ids(ledger.RefundPartsMax + 1),
	}
}

// paid sells seats to a customer.
func (w *world) paid(customer id.ID, seats ...int32) *ledger.Order {
	w.Helper()
	o := w.pending(w.held(customer, seats...))
	r := w.given(w.pay(o, "pay"))
	if r.Order.State != ledger.OrderPaid {
		w.Fatalf("the order is %s", r.Order.State)
	}
	return r.Order
}

// set changes the main event's row.
func (w *world) set(change func(e *ledger.Event)) ledger.Event {
	w.Helper()
	return w.setOf(mainEvent, change)
}

func (w *world) setOf(event id.ID, change func(e *ledger.Event)) ledger.Event {
	w.Helper()
	e, err := w.ledger.Event(context.Background(), event)
	if err != nil {
		w.Fatal(err)
	}
	looked := e.State == ledger.Stopped
	e.Version++
	change(&e)
	w.given(ledger.SetEvent{Event: e, Looked: looked})
	return e
}

// returns says what becomes of places of the main event that are freed.
func (w *world) returns(mode ledger.ReturnsMode) {
	w.Helper()
	w.given(ledger.SetReturns{Event: mainEvent, Returns: mode})
}

// The names of things, as changedExactly has them.

func aSeat(seats ...int32) []string {
	var names []string
	for _, seat := range seats {
		names = append(names, fmt.Sprintf("seat %d", seat))
	}
	return names
}

func anArea(area int32) string { return fmt.Sprintf("area %d", area) }
func aHold(hold id.ID) string  { return fmt.Sprintf("hold %d", hold) }

// anEvent is the main event's row with its notices.
var anEvent = []string{"event", fmt.Sprintf("notices %d", mainEvent)}

// anOrder is an order with its tickets, their uses at doors, its payments and refunds, and its notices.
func anOrder(order id.ID) []string {
	return []string{fmt.Sprintf("order %d", order), fmt.Sprintf("notices %d", order)}
}

func things(parts ...any) []string {
	var all []string
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			all = append(all, p)
		case []string:
			all = append(all, p...)
		}
	}
	return all
}

// describe is a command as people read it.
func describe(c ledger.Command) string {
	return strings.TrimPrefix(fmt.Sprintf("%T%+v", c, c), "ledger.")
}

// A book knows the names of everything that commands have made, so that it can all be read. It also checks what every
// batch must keep: that the changes it publishes lead from the picture before it to the one after it (B2).
type book struct {
	holds, orders map[id.ID]bool
	wishes        map[id.ID]bool
	boards        map[id.ID]ledger.Snapshot
	codes         []ledger.TakeCode
}

// tb is what tests of both kinds (testing and rapid) have.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

func newBook(tb) *book {
	return &book{holds: map[id.ID]bool{}, orders: map[id.ID]bool{}, wishes: map[id.ID]bool{}, boards: map[id.ID]ledger.Snapshot{}}
}

// note takes up what a batch did.
func (b *book) note(t tb, l ledger.Ledger, commands []ledger.Command, batch ledger.Batch) {
	t.Helper()
	if len(batch.Results) != len(commands) {
		t.Fatalf("%d answers to %d commands", len(batch.Results), len(commands))
	}
	for _, c := range commands {
		switch c := c.(type) {
		case ledger.SetEvent:
			if _, known := b.boards[c.Event.ID]; !known {
				b.boards[c.Event.ID] = ledger.Snapshot{}
			}
		case ledger.HoldSeats:
			b.holds[c.ID] = true
		case ledger.HoldPlaces:
			b.holds[c.ID] = true
		case ledger.BeginPayment:
			b.orders[c.Order] = true
		case ledger.Confirm:
			b.holds[c.RescueHold] = true
		case ledger.TakeCode:
			b.noteCode(c)
		case ledger.AddWish:
			b.wishes[c.Wish.ID] = true
		case ledger.Offer:
			b.holds[c.Hold] = true
		}
	}
	b.follow(t, l, batch)
}

// follow applies a batch's changes to the pictures and compares them with what the ledger says.
func (b *book) follow(t tb, l ledger.Ledger, batch ledger.Batch) {
	t.Helper()
	ctx := context.Background()
	changed := map[id.ID]ledger.Change{}
	for i, c := range batch.Changes {
		if i > 0 && batch.Changes[i-1].Event >= c.Event {
			t.Errorf("changes are not by event id, each once: %+v", batch.Changes)
		}
		changed[c.Event] = c
	}
	for event, old := range b.boards {
		now, err := l.Snapshot(ctx, event)
		if err != nil {
			continue // refused
		}
		c, said := changed[event]
		version := old.Version
		if said {
			version++
			if c.Version != version || c.At != batch.Now {
				t.Errorf("the change of event %d has version %d at %d, want %d at %d", event, c.Version, c.At, version, batch.Now)
			}
			stored, gap, err := l.ChangesSince(ctx, event, old.Version, 10)
			if err != nil || gap {
				t.Errorf("ChangesSince %d: gap %v, %v", old.Version, gap, err)
			}
			if diff := cmp.Diff([]ledger.Change{c}, stored, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the stored change differs from the answered one (-answered +stored)\n%s", diff)
			}
		}
		if now.Version != version {
			t.Errorf("the snapshot of event %d has version %d, want %d", event, now.Version, version)
		}
		if old.Event.ID != 0 {
			followSeats(t, old, now, c)
		}
		b.boards[event] = now
	}
}

func followSeats(t tb, old, now ledger.Snapshot, c ledger.Change) {
	t.Helper()
	seats := slices.Clone(old.Seats)
	for _, s := range c.Seats {
		seats[s.Index] = ledger.SeatState{State: s.State, Expires: s.Expires}
	}
	free := map[int32]int32{}
	for i, a := range old.Areas {
		free[int32(i)] = a.Free()
	}
	for _, a := range c.Areas {
		free[a.Area] = a.Free
	}
	if !slices.Equal(now.Seats, seats) { // Diff is slow on large halls
		diff := cmp.Diff(now.Seats, seats, cmpopts.EquateEmpty())
		t.Errorf("who follows the changes of event %d sees other seats (-snapshot +followed)\n%s", now.Event.ID, diff)
	}
	for i, a := range now.Areas {
		if f := a.Free(); f != free[int32(i)] {
			t.Errorf("area %d of event %d has %d free, who follows the changes sees %d", i, now.Event.ID, f, free[int32(i)])
		}
	}
	if !c.Config && !cmp.Equal(old.Event, now.Event, cmpopts.EquateEmpty()) {
		t.Errorf("the row of event %d changed, but no change says so", now.Event.ID)
	}
}

// picture is everything that can be read, thing by thing.
func (b *book) picture(l ledger.Ledger) (map[string]string, error) {
	ctx := context.Background()
	p := map[string]string{}
	for event := range b.boards {
		s, err := l.Snapshot(ctx, event)
		if err != nil {
			continue // its SetEvent was refused
		}
		of := ""
		if event != mainEvent {
			of = fmt.Sprintf(" of %d", event)
		}
		p["event"+of] = fmt.Sprintf("%+v", s.Event)
		for i, seat := range s.Seats {
			p[fmt.Sprintf("seat %d%s", i, of)] = fmt.Sprintf("%s until %d", seat.State, seat.Expires)
		}
		for i, area := range s.Areas {
			p[fmt.Sprintf("area %d%s", i, of)] = fmt.Sprintf("%+v", area)
		}
	}
	for hold := range b.holds {
		if h, err := l.Hold(ctx, hold); err == nil {
			p[aHold(hold)] = fmt.Sprintf("%+v", h)
		} else if err != nil && !isNotFound(err) {
			return nil, err
		}
	}
	for wish := range b.wishes {
		if w, err := l.Wish(ctx, wish); err == nil {
			p[fmt.Sprintf("wish %d", wish)] = fmt.Sprintf("%+v", w)
		} else if !isNotFound(err) {
			return nil, err
		}
	}
	if err := b.pictureOrders(l, p); err != nil {
		return nil, err
	}
	if err := b.pictureRooms(l, p); err != nil {
		return nil, err
	}
	notices, err := l.Unpublished(ctx, math.MaxInt32, nil)
	if err != nil {
		return nil, err
	}
	for _, n := range notices {
		key := fmt.Sprintf("notices %d", n.Order)
		p[key] += fmt.Sprintf("%d %s %v; ", n.Sequence, n.Kind, n.Alert)
	}
	open, err := l.OpenPayments(ctx, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	for _, o := range open {
		key := fmt.Sprintf("due for %d by %s", o.Payment.Order, o.Payment.ID)
		p[key] += fmt.Sprintf("%+v", o.Payment)
		if o.Refund != nil {
			p[key] += fmt.Sprintf(" %+v; ", *o.Refund)
		}
	}
	return p, nil
}

// pictureOrders adds the orders, each with all that hangs on it.
func (b *book) pictureOrders(l ledger.Ledger, p map[string]string) error {
	ctx := context.Background()
	of := map[id.ID]string{} // of each ticket: its order's name
	for order := range b.orders {
		o, err := l.Order(ctx, order)
		if isNotFound(err) {
			continue
		} else if err != nil {
			return err
		}
		name := fmt.Sprintf("order %d", order)
		for _, t := range o.Tickets {
			of[t.ID] = name
		}
		p[name] = fmt.Sprintf("%+v", o)
		if o.Sequence == 1 {
			continue // nothing has happened to it yet
		}
		payments, err := l.Payments(ctx, order)
		if err != nil {
			return err
		}
		refunds, err := l.RefundsOf(ctx, order)
		if err != nil {
			return err
		}
		p[name] += fmt.Sprintf(" payments %+v refunds %+v", payments, refunds)
	}
	for event := range b.boards {
		uses, err := l.CheckIns(ctx, event, ledger.CheckInCursor{}, false, math.MaxInt32)
		if err != nil {
			return err
		}
		for _, use := range uses {
			p[of[use.Ticket]] += fmt.Sprintf(" use %+v", use)
		}
	}
	return nil
}

func isNotFound(err error) bool { return errors.Is(err, ledger.ErrNotFound) }
