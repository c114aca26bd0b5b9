package door

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/ledgertest"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/ticket"
	"onsale/internal/venue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	tonight  id.ID = 1
	tomorrow id.ID = 2
	ann      id.ID = 101
	bea      id.ID = 102
	dora     id.ID = 201 // works at the door
	otto     id.ID = 202 // an owner
	minute         = ledger.Duration(60_000)
)

// A world is two events of one show in one hall, whose tickets cost nothing, and their door. The gate north leads to the
// seats (section A), south to the standing places (section FLOOR), stage to both.
type world struct {
	*testing.T
	clock   *ledgertest.Clock
	ledger  ledger.Ledger
	batcher *ledger.Batcher
	plan    *venue.Plan
	events  events
	door    *Service
	last    id.ID
}

// events are what a catalog would say.
type events struct {
	plan *venue.Plan
	of   map[id.ID]*catalog.Event
}

func (e events) Event(_ context.Context, event id.ID) (*catalog.Event, error) {
	if e.of[event] == nil {
		return nil, fault.New(fault.EventUnknown, "")
	}
	return e.of[event], nil
}

func (e events) Plan(context.Context, string) (*venue.Plan, error) { return e.plan, nil }

// onModel and onSQLite open the ledger of a world.
func onModel(_ *testing.T, clock *ledgertest.Clock) ledger.Ledger { return ledger.NewModel(clock.Now) }

func onSQLite(t *testing.T, clock *ledgertest.Clock) ledger.Ledger {
	l, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "shard.db"), sqlite.Options{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newWorld(t *testing.T, open func(*testing.T, *ledgertest.Clock) ledger.Ledger, seats int) *world {
	t.Helper()
	w := &world{T: t, clock: ledgertest.NewClock(1_800_000_000_000), plan: venue.Generate(venue.GenerateOptions{Seats: seats}), last: 1000}
	w.ledger = open(t, w.clock)
	w.batcher = ledger.NewBatcher(w.ledger, ledger.BatcherOptions{})
	t.Cleanup(func() {
		if err := errors.Join(w.batcher.Close(context.Background()), w.ledger.Close()); err != nil {
			t.Error(err)
		}
	})
	w.events = events{w.plan, map[id.ID]*catalog.Event{}}
	gates := []catalog.Gate{{Key: "north", Sections: []string{"A"}}, {Key: "south", Sections: []string{"FLOOR"}}, {Key: "stage"}}
	layout, err := catalog.LedgerLayout(w.plan, "plan")
	w.must(err)
	for _, event := range []id.ID{tonight, tomorrow} {
		w.events.of[event] = &catalog.Event{ID: event, PlanHash: "plan", Gates: gates}
		w.do(ledger.SetEvent{Layout: layout, Event: w.row(event, 1, ledger.OnSale)})
	}
	w.door = w.another()
	return w
}

func (w *world) row(event id.ID, version int64, state ledger.EventState) ledger.Event {
	now := w.clock.Now()
	row := ledger.Event{
		ID: event, Show: 9, Version: version, State: state, PlanHash: "plan", SaleOpens: now - 1, SaleCloses: now + ledger.Time(1_000*minute),
		HoldTTL: 10 * minute, PaymentWindow: 5 * minute, SeatsPerHoldMax: 10, Currency: "EUR",
		Transfers: ledger.TransferRule{Until: now + ledger.Time(1_000*minute)},
	}
	for i := range w.plan.Categories {
		row.Tiers = append(row.Tiers, ledger.Tier{Category: int16(i), Name: w.plan.Categories[i].Name})
	}
	return row
}

// seed makes the keys of these tests.
func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

const (
	realKID = "0A1B2C3D"
	testKID = "0T1B2C3D"
)

// another is the door as another node has it.
func (w *world) another() *Service {
	public := ticket.PublicKeys{
		realKID: {Key: key(1).Public().(ed25519.PublicKey)}, testKID: {Key: key(2).Public().(ed25519.PublicKey), Test: true},
	}
	return New(Options{Shard: w.batcher, Events: w.events, Keys: func() ticket.PublicKeys { return public }, CountsFor: time.Nanosecond})
}

// code is what the QR code of a ticket says.
func (w *world) code(t ledger.Ticket) string {
	w.Helper()
	said := ticket.Ticket{ID: int64(t.ID), EventID: int64(t.Event), Index: t.Seat}
	if t.Area >= 0 {
		said.Area, said.Index = true, t.Area
	}
	text, err := ticket.Sign(ticket.Key{KID: realKID, Private: key(1)}, said)
	w.must(err)
	return text
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) id() id.ID {
	w.last++
	return w.last
}

func (w *world) ids(n int) []id.ID {
	all := make([]id.ID, n)
	for i := range all {
		all[i] = w.id()
	}
	return all
}

func (w *world) do(c ledger.Command) ledger.Result {
	w.Helper()
	r, err := w.batcher.Do(context.Background(), c)
	if err != nil {
		w.Fatalf("%T: %v", c, err)
	}
	return r
}

// buy sells seats.
func (w *world) buy(event, customer id.ID, seats ...int32) []ledger.Ticket {
	w.Helper()
	return w.sold(w.do(ledger.HoldSeats{ID: w.id(), Event: event, Customer: customer, Seats: seats}))
}

// stand sells places in the only area.
func (w *world) stand(event, customer id.ID, quantity int) []ledger.Ticket {
	w.Helper()
	return w.sold(w.do(ledger.HoldPlaces{ID: w.id(), Event: event, Customer: customer, Quantity: quantity}))
}

func (w *world) sold(held ledger.Result) []ledger.Ticket {
	w.Helper()
	order := w.id()
	w.do(ledger.BeginPayment{Order: order, Hold: held.Hold.ID, Customer: held.Hold.Customer, Provider: "none"})
	r := w.do(ledger.Confirm{Order: order, Currency: "EUR", Captured: true, Tickets: w.ids(len(held.Hold.Lines)), Refund: w.id(), RescueHold: w.id()})
	return r.Order.Tickets
}

// void gives a ticket back.
func (w *world) void(t ledger.Ticket) {
	w.Helper()
	w.do(ledger.BeginRefund{
		IDs: w.ids(ledger.RefundPartsMax), Order: t.Order, Customer: otto, By: ledger.ByOrganizer, Tickets: []id.ID{t.ID}, Reason: "ill", Used: true,
	})
}

func (w *world) scan(t ledger.Ticket, gate, device string) (Entry, error) {
	w.Helper()
	return w.door.CheckIn(context.Background(), Scan{Event: tonight, Code: w.code(t), Gate: gate, Device: device, By: dora})
}

// refused wants a fault.
func (w *world) refused(err error, code fault.Code, field string) *fault.Error {
	w.Helper()
	f := fault.Of(err)
	if err == nil || f.Code != code || f.Field != field {
		w.Fatalf("got %v, not the fault %s %s", err, code, field)
	}
	return f
}

// uses are all that is written down about a ticket.
func (w *world) uses(t ledger.Ticket) []ledger.CheckedIn {
	w.Helper()
	uses, err := w.ledger.CheckInsOf(context.Background(), t.ID)
	w.must(err)
	return uses
}

func (w *world) state(t ledger.Ticket, want ledger.TicketState) {
	w.Helper()
	now, err := w.ledger.Ticket(context.Background(), t.ID)
	w.must(err)
	if now.State != want {
		w.Fatalf("ticket %d is %s, not %s", t.ID, now.State, want)
	}
}
