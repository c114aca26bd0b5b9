package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/booking"
	"onsale/internal/catalog"
	"onsale/internal/catalog/eventfile"
	"onsale/internal/control"
	"onsale/internal/door"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/inventory"
	"onsale/internal/keys"
	"onsale/internal/ledger"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/outbox/webhook"
	"onsale/internal/payment"
	"onsale/internal/payment/sandbox"
	"onsale/internal/ticket"
	"onsale/internal/venue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world is a small hall that is sold over HTTP: everything is real but the clock, which moves when told, and what the
// sandbox does by itself, which is done when told. Its events are on sale by key: "now", "cheap" (all is free), "refuse"
// (no single seats), "later" (scheduled), "draft".
type world struct {
	t         testing.TB
	api       *api
	handler   http.Handler
	server    *httptest.Server
	plan      *venue.Plan
	events    map[string]id.ID
	ledger    *tampered
	batcher   *ledger.Batcher
	catalog   *catalog.Service
	inventory *inventory.Service
	booking   *booking.Service
	sandbox   *sandbox.Service
	throwaway *identity.Throwaway
	newID     func(int) (id.ID, error)
	show      id.ID
	house     id.ID // the organizer of everything
	rival     id.ID // another one
	roles     *roles
	people    *identity.Service
	mails     *mailbox
	hooks     *webhook.Service
	log       *log
	answered  chan string // routes, as they are answered; dropped where nobody listens

	controls *control.DB
	ring     *keys.Ring

	mu      sync.Mutex
	time    time.Time
	running time.Time // since when the clock runs by itself; zero: it stands
}

// tampered is a real ledger that can be told to fail.
type tampered struct {
	*sqlite.Ledger
	mu   sync.Mutex
	fail error
	hold chan struct{} // an Apply waits for it, where it is there
	at   chan struct{} // hears that it waits

	unread  error
	planted map[id.ID]ledger.Refund // beside those that it has
}

// plant makes a refund of an order that the ledger knows nothing of.
func (l *tampered) plant(w *world, booking string) id.ID {
	order, err := id.Parse(id.Order, booking)
	w.must(err)
	number, err := w.newID(0)
	w.must(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.planted = map[id.ID]ledger.Refund{number: {ID: number, Order: order, State: ledger.RefundRequested, Currency: "EUR"}}
	return number
}

func (l *tampered) Refund(ctx context.Context, refund id.ID) (ledger.Refund, error) {
	l.mu.Lock()
	r, ok := l.planted[refund]
	l.mu.Unlock()
	if ok {
		return r, nil
	}
	return l.Ledger.Refund(ctx, refund)
}

func (l *tampered) Apply(ctx context.Context, commands []ledger.Command) (ledger.Batch, error) {
	l.mu.Lock()
	fail, hold := l.fail, l.hold
	l.mu.Unlock()
	if hold != nil {
		l.at <- struct{}{}
		<-hold
	}
	if fail != nil {
		return ledger.Batch{}, fail
	}
	return l.Ledger.Apply(ctx, commands)
}

// failReading lets the reading of an event's orders fail.
func (l *tampered) failReading(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unread = err
}

func (l *tampered) OrdersOfEvent(ctx context.Context, event id.ID, find ledger.OrderFilter, max int) ([]ledger.Order, error) {
	l.mu.Lock()
	unread := l.unread
	l.mu.Unlock()
	if unread != nil {
		return nil, unread
	}
	return l.Ledger.OrdersOfEvent(ctx, event, find, max)
}

func (l *tampered) failWith(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

// block lets the next batches wait until release is called; at hears of each.
func (l *tampered) block() (release func(), at <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hold := make(chan struct{})
	l.hold, l.at = hold, make(chan struct{}, 100)
	return func() {
		l.mu.Lock()
		l.hold = nil
		l.mu.Unlock()
		close(hold)
	}, l.at
}

// log keeps what was logged.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var morning = time.Date(2027, 3, 1, 10, 0, 0, 0, time.UTC)

const worldFile = `format: 1
venue: { name: Kleine Halle, city: Hamburg, country: DE, zone: Europe/Berlin, plan: hall.json }
show: { key: night, title: A night at the harbour }
currency: EUR
tax_included: true
tax_percent: 7
hold_ttl: 10m
limits: { event: 8, categories: { STANDING: 4 } }
holding: { unpaid_max: 0, rest: 0s, seat_rest: 0s }
sale: { opens: "2027-03-01T09:00:00Z", closes: "2027-06-01T18:00:00Z" }
orphans: { mode: warn, few_seats_left: 5 }
tiers:
  - { category: PREMIUM, name: Premium, face: "120.00", fee: "4.50" }
  - { category: CAT1, name: Category 1, face: "80.00", fee: "4.50" }
  - { category: CAT2, name: Category 2, face: "40.00", fee: "2.50" }
  - { category: STANDING, name: Standing, face: "30.00" }
performances:
  - key: now
    starts: "2027-06-01T20:00"
    doors: "2027-06-01T19:00"
    refunds: { until_before: 24h, fee_percent: 10 }
    exchanges: { until_before: 24h, fee: "2.00" }
    transfers: { until_before: 3h }
    gates: [{ key: north, name: North, sections: [A] }, { key: south, name: South, sections: [FLOOR] }]
  - key: cheap
    starts: "2027-06-02T20:00"
    title: Open rehearsal
    limits: { event: 0 }
    tiers: [{ category: PREMIUM, face: "0" }, { category: CAT1, face: "0" }, { category: CAT2, face: "0" }, { category: STANDING, face: "0" }]
  - { key: refuse, starts: "2027-06-03T20:00", orphans: { mode: refuse } }
  - { key: later, starts: "2027-06-04T20:00", sale: { opens: "2027-04-01T10:00" } }
  - { key: named, starts: "2027-06-06T20:00", documents: true, limits: { event: 2, document: 1 }, transfers: { until_before: 3h }, exchanges: { until: "2027-03-01T10:05:00Z" } }
  - { key: draft, starts: "2027-06-05T20:00", state: draft }
`

func newWorld(t testing.TB) *world {
	w := &world{t: t, events: map[string]id.ID{}, time: morning, log: &log{}, roles: &roles{of: map[id.ID]map[id.ID]identity.Role{}}, answered: make(chan string, 1000)}
	ctx := t.Context()
	dir := t.TempDir()
	logger := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	file, err := sqlite.Open(ctx, filepath.Join(dir, "shard.db"), sqlite.Options{Now: func() ledger.Time { return ledger.TimeOf(w.now()) }})
	w.must(err)
	t.Cleanup(func() { w.must(file.Close()) })
	w.ledger = &tampered{Ledger: file}
	w.batcher = ledger.NewBatcher(w.ledger, ledger.BatcherOptions{QueueMax: 8, Logger: logger})
	t.Cleanup(func() { w.must(w.batcher.Close(context.Background())) })
	controls, err := control.OpenSQLite(ctx, filepath.Join(dir, "control.db"))
	w.must(err)
	t.Cleanup(func() { w.must(controls.Close()) })
	w.controls = controls
	w.newID = id.NewGenerator(0, w.now, 0, nil).Next
	w.catalog = catalog.New(catalog.Options{Store: controls.Catalog(), Ledger: w.batcher, NewID: w.newID, Now: w.now, Log: logger})
	w.inventory = inventory.New(w.batcher, inventory.Options{Now: w.now, Logger: logger, SubscribersMax: 4})
	t.Cleanup(w.inventory.Close)
	w.sell()
	w.pay(filepath.Join(dir, "sandbox.db"), logger)
	w.throwaway, err = identity.NewThrowaway()
	w.must(err)
	verifier, err := identity.New(identity.Options{Issuers: []identity.Issuer{w.throwaway.Issuer()}, Store: controls.Identities(), NewID: w.newID, Now: w.now})
	w.must(err)
	w.meet(controls, logger)
	w.hooks = webhook.NewService(controls.Webhooks(), plainSealer{}, w.newID, nil, w.now, nil)
	seed := bytes.Repeat([]byte{7}, ed25519.SeedSize)
	w.api, err = newAPI(Options{
		Catalog: w.catalog, Inventory: w.inventory, Booking: w.booking, Ledger: w.ledger, Commands: w.batcher,
		Identity: authenticator{verifier}, People: w.people, Endpoints: w.hooks, Codes: true, Roles: w.roles, NewID: w.newID, FieldKey: []byte("a key of a test, long enough"),
		TicketKey: func() (ticket.Key, error) {
			return ticket.Key{KID: "0A1B2C3D", Private: ed25519.NewKeyFromSeed(seed), Test: true}, nil
		},
		Door: door.New(door.Options{Shard: w.batcher, Events: w.catalog, Test: true, Keys: func() ticket.PublicKeys {
			return ticket.PublicKeys{"0A1B2C3D": {Key: ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey), Test: true}}
		}}),
		JWKS:     func() ([]byte, error) { return []byte(`{"keys":[]}`), nil },
		Webhooks: map[string]func(context.Context, payment.Header, []byte) error{"sandbox": w.booking.Webhook},
		Observe: func(route string, status int, _ time.Duration) {
			select {
			case w.answered <- fmt.Sprint(route, " ", status):
			default:
			}
		},
		Demo: true, Data: "data/demo", Version: "v1", Now: w.now, Logger: logger,
	})
	w.must(err)
	w.serve()
	w.must(w.sandbox.SetWebhookURL(w.server.URL + "/v1/payments/sandbox/webhook"))
	return w
}

// serve starts the server for the table as it is now.
func (w *world) serve() {
	w.handler = w.api.handler()
	w.server = httptest.NewServer(w.handler)
	w.t.Cleanup(w.server.Close)
}

type authenticator struct{ v *identity.Verifier }

func (a authenticator) Authenticate(ctx context.Context, token string) (id.ID, error) {
	c, err := a.v.Authenticate(ctx, token)
	return c.ID, err
}

// plainSealer seals nothing.
type plainSealer struct{}

func (plainSealer) Seal(_ string, secret []byte) ([]byte, error) { return secret, nil }
func (plainSealer) Open(_ string, sealed []byte) ([]byte, error) { return sealed, nil }

// roles are who may do what for whom.
type roles struct {
	mu sync.Mutex
	of map[id.ID]map[id.ID]identity.Role // by customer and organizer
}

func (r *roles) Role(_ context.Context, customer, organizer id.ID) (identity.Role, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[customer][organizer], nil
}

func (r *roles) set(customer id.ID, all map[id.ID]identity.Role) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[customer] = all
}

// customer is the number of who a test calls by a name.
func (w *world) customer(name string) id.ID {
	w.t.Helper()
	number, err := w.api.Identity.Authenticate(w.t.Context(), w.token(name))
	w.must(err)
	return number
}

// sell imports the events and loads those that people may see.
func (w *world) sell() {
	ctx := w.t.Context()
	w.plan = venue.Generate(venue.GenerateOptions{Seats: 60})
	organizer, err := w.catalog.EnsureOrganizer(ctx, "house", "House")
	w.must(err)
	other, err := w.catalog.EnsureOrganizer(ctx, "rival", "Rival")
	w.must(err)
	w.house, w.rival = organizer.ID, other.ID
	hash, err := w.catalog.PutPlan(ctx, organizer.ID, w.plan)
	w.must(err)
	file, err := eventfile.Parse([]byte(worldFile))
	w.must(err)
	done, err := w.catalog.Import(ctx, organizer.ID, file.Import(hash))
	w.must(err)
	for _, d := range done {
		w.events[d.Event.Key], w.show = d.Event.ID, d.Event.Show
		if d.Event.State == catalog.Draft {
			continue
		}
		rules := inventory.Rules{HandPicked: inventory.OrphanWarn, FewSeats: d.Event.Orphans.FewSeatsLeft}
		if d.Event.Orphans.Mode == catalog.OrphansRefuse {
			rules.HandPicked = inventory.OrphanRefuse
		}
		w.must(w.inventory.Load(ctx, d.Event.ID, w.plan, rules))
	}
}

// pay sets the sandbox up: a stranger behind HTTP, as always.
func (w *world) pay(path string, logger *slog.Logger) {
	secret := bytes.Repeat([]byte{1}, 32)
	var err error
	w.sandbox, err = sandbox.Open(sandbox.Config{Path: path, APIKey: "a key of a test, long enough", WebhookSecret: secret, Now: w.now})
	w.must(err)
	w.t.Cleanup(func() { w.must(w.sandbox.Close()) })
	stranger := httptest.NewServer(w.sandbox.Handler())
	w.t.Cleanup(stranger.Close)
	client, err := sandbox.NewClient(sandbox.ClientConfig{
		URL: stranger.URL, APIKey: "a key of a test, long enough", WebhookSecrets: [][]byte{secret}, Now: w.now,
	})
	w.must(err)
	w.t.Cleanup(client.Close)
	w.booking = booking.New(booking.Options{
		Shard: w.batcher, Webhooks: w.ledger, Provider: client, IDs: numbers(w.newID), Logger: logger,
	})
}

type numbers func(int) (id.ID, error)

func (n numbers) Next(shard int) (id.ID, error) { return n(shard) }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.running.IsZero() {
		return w.time.Add(time.Since(w.running))
	}
	return w.time
}

// pass moves the clock.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.time = w.time.Add(d)
}

// event is an event's id as the API says it.
func (w *world) event(key string) string { return w.events[key].Text(id.Event) }

// token is a customer's, valid for long.
func (w *world) token(customer string) string {
	w.t.Helper()
	token, err := w.throwaway.Mint(customer, w.now(), 24*time.Hour)
	w.must(err)
	return token
}

// An ask is a request as a test writes it.
type ask struct {
	method, path string
	customer     string // whose token; "" for none
	key          string // Idempotency-Key
	body         string // JSON where it is not empty
	header       http.Header
	quiet        bool // golden files do not have the body
}

// A reply is what came back.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// request is the ask as a request to a server.
func (w *world) request(server string, a ask) *http.Request {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), cmp.Or(a.method, "GET"), server+a.path, strings.NewReader(a.body))
	w.must(err)
	if a.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if a.customer != "" {
		r.Header.Set("Authorization", "Bearer "+w.token(a.customer))
	}
	if a.key != "" {
		r.Header.Set("Idempotency-Key", a.key)
	}
	for name, values := range a.header {
		r.Header[name] = values
	}
	return r
}

// askHandler asks in process.
func (w *world) askHandler(h http.Handler, a ask) reply {
	w.t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, w.request("http://onsale.test", a))
	return reply{rec.Code, rec.Header(), rec.Body.Bytes()}
}

// ask sends a request over the wire.
func (w *world) ask(a ask) reply {
	w.t.Helper()
	r := w.request(w.server.URL, a)
	// No redirects, and no unpacking: a test sees what was sent.
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	w.must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	w.must(err)
	return reply{response.StatusCode, response.Header, body}
}

// into reads a JSON answer, which must have this status.
func (w *world) into(got reply, status int, v any) {
	w.t.Helper()
	if got.status != status {
		w.t.Fatalf("status %d, want %d: %s", got.status, status, got.body)
	}
	if err := json.Unmarshal(got.body, v); err != nil {
		w.t.Fatalf("%v: %s", err, got.body)
	}
}

// problemOf reads a problem, which must have this code.
func (w *world) problemOf(got reply, code string) Problem {
	w.t.Helper()
	var p Problem
	if kind := got.header.Get("Content-Type"); kind != problemType {
		w.t.Fatalf("status %d is a %s, not a problem: %s", got.status, kind, got.body)
	}
	w.into(got, got.status, &p)
	if p.Code != code || p.Status != got.status {
		w.t.Fatalf("status %d, %+v: want the code %s", got.status, p, code)
	}
	return p
}

// hold holds seats of the event "now", or as the body says.
func (w *world) hold(customer, body string) Hold {
	w.t.Helper()
	var h Hold
	w.into(w.ask(ask{method: "POST", path: "/v1/holds", customer: customer, body: body}), 201, &h)
	return h
}

func (w *world) seatsBody(event string, seats ...string) string {
	body, err := json.Marshal(HoldRequest{Event: w.event(event), Seats: seats})
	w.must(err)
	return string(body)
}

// book pays for a hold and gives the answer, whatever it is.
func (w *world) book(customer, hold, token, key string) reply {
	w.t.Helper()
	return w.ask(w.payFor(customer, hold, token, key))
}

// paid books a hold of seats.
func (w *world) paid(customer string, seats ...string) Booking {
	w.t.Helper()
	var b Booking
	h := w.hold(customer, w.seatsBody("now", seats...))
	w.into(w.book(customer, h.ID, sandbox.TokenSure, "key-"+h.ID), 201, &b)
	return b
}

// settle lets the sandbox do what is due.
func (w *world) settle() {
	w.t.Helper()
	for {
		n, err := w.sandbox.RunDue(w.t.Context())
		w.must(err)
		if n == 0 {
			return
		}
	}
}
