package mail_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/control"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/outbox/mail"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// facts are a world in memory.
type facts struct {
	mu       sync.Mutex
	orders   map[id.ID]ledger.Order
	payments map[id.ID][]ledger.Payment
	refunds  map[id.ID]ledger.Refund
	events   map[id.ID]mail.Event
	people   map[id.ID]mail.Person
	holds    map[id.ID]ledger.Hold
	owners   []id.ID
	fail     error
}

func (f *facts) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func look[V any](f *facts, all map[id.ID]V, number id.ID) (V, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := all[number]
	if f.fail != nil {
		return v, f.fail
	}
	if !ok {
		return v, mail.ErrUnknown
	}
	return v, nil
}

func (f *facts) Order(_ context.Context, order id.ID) (ledger.Order, error) {
	return look(f, f.orders, order)
}

func (f *facts) Payments(_ context.Context, order id.ID) ([]ledger.Payment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.payments[order], f.fail
}

func (f *facts) Refund(_ context.Context, refund id.ID) (ledger.Refund, error) {
	return look(f, f.refunds, refund)
}

func (f *facts) RefundsOf(_ context.Context, order id.ID) ([]ledger.Refund, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []ledger.Refund
	for _, r := range f.refunds {
		if r.Order == order {
			all = append(all, r)
		}
	}
	return all, f.fail
}

func (f *facts) Ticket(_ context.Context, ticket id.ID) (ledger.Ticket, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.orders {
		for _, t := range o.Tickets {
			if t.ID == ticket {
				return t, f.fail
			}
		}
	}
	return ledger.Ticket{}, mail.ErrUnknown
}

func (f *facts) Hold(_ context.Context, hold id.ID) (ledger.Hold, error) {
	return look(f, f.holds, hold)
}

func (f *facts) Tickets(_ context.Context, all []ledger.Ticket, codes bool) ([]mail.Ticket, error) {
	var shown []mail.Ticket
	for _, t := range all {
		shown = append(shown, mail.Ticket{ID: t.ID, Area: "Floor", Category: "Standing", Total: t.Total, Attendee: "Named"})
	}
	return shown, f.fail
}

func (f *facts) OrdersOfEvent(_ context.Context, event, after id.ID, max int) ([]ledger.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []ledger.Order
	for _, o := range f.orders {
		if o.Event == event && o.ID > after {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b ledger.Order) int { return int(a.ID - b.ID) })
	return all[:min(len(all), max)], f.fail
}

func (f *facts) Event(_ context.Context, event id.ID) (mail.Event, error) {
	return look(f, f.events, event)
}

func (f *facts) Person(_ context.Context, customer id.ID) (mail.Person, error) {
	return look(f, f.people, customer)
}

func (f *facts) Owners(context.Context, id.ID) ([]id.ID, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.owners, "House", f.fail
}

// outbox keeps what was sent, and fails as told.
type outbox struct {
	mu    sync.Mutex
	mails []mail.Mail
	fail  func(mail.Mail) error
}

func (o *outbox) Send(_ context.Context, m mail.Mail) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fail != nil {
		if err := o.fail(m); err != nil {
			return err
		}
	}
	o.mails = append(o.mails, m)
	return nil
}

func (o *outbox) ids() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := []string{}
	for _, m := range o.mails {
		all = append(all, m.ID)
	}
	slices.Sort(all)
	return all
}

// Numbers of the world.
const (
	customer  id.ID = 101
	friend    id.ID = 102
	nobody    id.ID = 103 // has no address
	owner     id.ID = 104
	event     id.ID = 201
	organizer id.ID = 301
	order     id.ID = 401
	oldOrder  id.ID = 402
	refund    id.ID = 501
	ticket    id.ID = 601
)

var start = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

// A world is a handler and a desk on a real database.
type world struct {
	t       *testing.T
	facts   *facts
	out     *outbox
	store   mail.Store
	handler *mail.Handler
	desk    *mail.Desk
	tick    chan time.Time
	passed  chan struct{}

	mu     sync.Mutex
	clock  time.Time
	deadMu sync.Mutex
	dead   []mail.Kind
}

func newWorld(t *testing.T, adapt func(*mail.Options)) *world {
	t.Helper()
	db, err := control.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, out: &outbox{}, store: db.Mail(), tick: make(chan time.Time), passed: make(chan struct{}, 1000), clock: start,
		facts: &facts{
			orders: map[id.ID]ledger.Order{}, payments: map[id.ID][]ledger.Payment{}, refunds: map[id.ID]ledger.Refund{},
			events: map[id.ID]mail.Event{event: {ID: event, Organizer: organizer, Version: 1, Title: "Aurora", Starts: start.AddDate(0, 1, 0), Venue: "Arena", City: "Hamburg", Zone: "Europe/Berlin"}},
			people: map[id.ID]mail.Person{
				customer: {Customer: customer, Name: "Ada", Email: "ada@example.com", Locale: "en"}, friend: {Customer: friend, Name: "李雷", Email: "li@example.com", Locale: "zh-CN"},
				nobody: {Customer: nobody}, owner: {Customer: owner, Email: "owner@example.com"},
			},
			owners: []id.ID{owner},
		},
	}
	o := mail.Options{
		Site: mail.Site{Name: "Onsale", URL: "https://t.example.com", Host: "t.example.com"}, Sender: w.out, Facts: w.facts, Store: w.store,
		Now: w.now, Tick: w.tick, Log: slog.New(slog.DiscardHandler), Dead: func(k mail.Kind) {
			w.deadMu.Lock()
			defer w.deadMu.Unlock()
			w.dead = append(w.dead, k)
		},
		Passed: func() {
			select {
			case w.passed <- struct{}{}:
			default:
			}
		},
	}
	if adapt != nil {
		adapt(&o)
	}
	w.desk = mail.NewDesk(o)
	w.handler = mail.NewHandler(w.facts, w.store, w.desk.Wake)
	t.Cleanup(func() {
		w.desk.Stop()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

func (w *world) wait(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// sell makes a paid order with tickets.
func (w *world) sell(number id.ID, amount int64, state ledger.PaymentState, tickets ...ledger.Ticket) ledger.Order {
	o := ledger.Order{
		ID: number, Event: event, Customer: customer, State: ledger.OrderPaid, Amount: amount, Currency: "EUR", Provider: "p", Payment: fmt.Sprint("pay", number),
		Created: ledger.TimeOf(start), Tickets: tickets,
	}
	if amount == 0 {
		o.Payment = ""
	}
	for i := range o.Tickets {
		t := &o.Tickets[i]
		t.Order, t.Event = number, event
		if t.Customer == 0 {
			t.Customer = customer
		}
		if t.State == 0 {
			t.State = ledger.TicketValid
		}
	}
	w.facts.set(func() {
		w.facts.orders[number] = o
		if amount > 0 {
			w.facts.payments[number] = []ledger.Payment{{Order: number, Provider: "p", ID: o.Payment, State: state}}
		}
	})
	return o
}

// notice hands a notice on, twice: nothing may be doubled by that.
func (w *world) notice(kind string, sequence int64, body string, order id.ID) {
	w.t.Helper()
	if body == "" {
		body = "{}"
	}
	n := ledger.Notice{Order: order, Sequence: sequence, Kind: kind, Body: []byte(body), At: ledger.TimeOf(w.now())}
	for range 2 {
		w.ok(w.handler.Handle(w.t.Context(), n))
	}
}

// settle runs the desk until nothing is waiting that can be sent now.
func (w *world) settle() {
	w.t.Helper()
	w.desk.Start()
	for range 20_000 { // looks at the store: each ends before the next begins
		waiting, _, _, err := w.store.CountJobs(w.t.Context())
		w.ok(err)
		s := w.desk.Stats()
		if waiting == 0 && s.Urgent == 0 {
			break
		}
		if s.Retried > 0 && s.Urgent == 0 {
			break
		}
		select {
		case w.tick <- time.Time{}:
		case <-w.t.Context().Done():
			w.t.Fatal("the desk does not come to an end")
		}
		<-w.passed
	}
	w.desk.Stop()
}

func (w *world) sent(want ...string) {
	w.t.Helper()
	w.settle()
	slices.Sort(want)
	if got := w.out.ids(); !slices.Equal(got, want) {
		w.t.Fatalf("sent %v\nwant %v", got, want)
	}
}

// toldDead are the kinds of mails of which it was told that they will never be delivered.
func (w *world) toldDead() []mail.Kind {
	w.deadMu.Lock()
	defer w.deadMu.Unlock()
	return slices.Clone(w.dead)
}
