package booking

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/ledgertest"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/payment/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tb is what tests of both kinds (testing and rapid) have.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

const (
	second = ledger.Duration(1000)
	minute = 60 * second
	hour   = 60 * minute

	theEvent id.ID = 1
	alice    id.ID = 101
	bob      id.ID = 102
	carol    id.ID = 103

	seatPrice = 5250
	areaFree  = 0 // places that cost nothing
	areaPaid  = 1
	seatBob   = 7 // sold to a bystander whom nothing may touch

	payAfter  = 5 * second  // of the sandbox: a pending payment ends
	lateAfter = 20 * minute // a late one is paid, long after its hold is lost
)

var (
	testSecret = bytes.Repeat([]byte("s"), 32)
	testKey    = "an-api-key-for-tests"
)

// A lab is the payment service, with books of its own, and the clock that it shares with every ledger. Its webhooks are
// caught and lie in the inbox until a test delivers them.
type lab struct {
	clock   *ledgertest.Clock
	ids     *id.Generator
	service *sandbox.Service
	client  *sandbox.AuthorizingClient

	mu    sync.Mutex
	inbox [][]byte
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{clock: ledgertest.NewClock(1_800_000_000_000)}
	l.ids = id.NewGenerator(1, l.now, 0, nil)
	caught := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Errorf("webhook: %v", err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.inbox = append(l.inbox, body)
	}))
	t.Cleanup(caught.Close)
	var err error
	l.service, err = sandbox.Open(sandbox.Config{
		Path: filepath.Join(t.TempDir(), "books.db"), APIKey: testKey, WebhookSecret: testSecret, WebhookURL: caught.URL, Now: l.now,
		Delays: sandbox.Delays{Pending: payAfter.Std(), Late: lateAfter.Std()},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(l.service.Handler())
	l.client, err = sandbox.NewAuthorizingClient(sandbox.ClientConfig{
		URL: server.URL, APIKey: testKey, WebhookSecrets: [][]byte{testSecret}, Now: l.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.client.Close()
		server.Close()
		if err := l.service.Close(); err != nil {
			t.Errorf("closing the sandbox: %v", err)
		}
	})
	return l
}

func (l *lab) now() time.Time { return l.clock.Now().Std() }

// runDue lets the payment service do what is due by the clock.
func (l *lab) runDue(t tb) {
	t.Helper()
	for {
		n, err := l.service.RunDue(context.Background())
		if err != nil {
			t.Fatalf("sandbox: %v", err)
		}
		if n == 0 {
			return
		}
	}
}

// take empties the inbox.
func (l *lab) take() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.inbox
	l.inbox = nil
	return all
}

// signed is the header of a webhook that the payment service sends now.
func (l *lab) signed(body []byte) http.Header {
	seconds := strconv.FormatInt(l.now().Unix(), 10)
	mac := hmac.New(sha256.New, testSecret)
	fmt.Fprintf(mac, "%s.%s", seconds, body)
	h := http.Header{}
	h.Set(sandbox.SignatureHeader, "t="+seconds+",v1="+hex.EncodeToString(mac.Sum(nil)))
	return h
}

// A world is a ledger with one event, a provider and a service between them, with a place to interfere at each call.
type world struct {
	tb
	*lab
	store    ledger.Ledger
	batcher  *ledger.Batcher
	provider *meddled
	options  Options
	service  *Service

	mu      sync.Mutex
	meddle  func(op string, call func() error) error // around each call with an effect; nil: just call
	ops     []string
	alerts  []string
	begun   []id.ID // orders
	holds   []id.ID
	noticed map[string]bool // orders whose webhooks are ours to deliver, by their text; nil: all
	bobs    ledger.Order
	aliases []string // other names under which the provider was asked for the money of our orders
}

// openers are the ledgers that the scenarios run on.
var openers = map[string]func(t *testing.T, l *lab) (ledger.Ledger, ledger.Webhooks){
	"model": func(_ *testing.T, l *lab) (ledger.Ledger, ledger.Webhooks) {
		return ledger.NewModel(l.clock.Now), &memoryWebhooks{now: l.clock.Now}
	},
	"sqlite": func(t *testing.T, l *lab) (ledger.Ledger, ledger.Webhooks) {
		path := filepath.Join(t.TempDir(), "ledger.db")
		if err := os.WriteFile(path, emptyLedger(t, l), 0o600); err != nil {
			t.Fatal(err)
		}
		s := openLedger(t, l, path)
		return s, s
	},
}

func openLedger(t *testing.T, l *lab, path string) *sqlite.Ledger {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{Now: l.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// emptyLedger is the file of a ledger with nothing in it, made once: making it anew takes most of a scenario's time.
func emptyLedger(t *testing.T, l *lab) []byte {
	t.Helper()
	emptyOnce.Lock()
	defer emptyOnce.Unlock()
	if empty == nil {
		path := filepath.Join(t.TempDir(), "empty.db")
		if err := openLedger(t, l, path).Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if empty, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return empty
}

var (
	emptyOnce sync.Mutex
	empty     []byte
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// newWorld makes a world; close it.
func newWorld(t tb, l *lab, store ledger.Ledger, webhooks ledger.Webhooks, authorize bool) *world {
	t.Helper()
	w := &world{tb: t, lab: l, store: store, noticed: map[string]bool{}}
	w.batcher = ledger.NewBatcher(store, ledger.BatcherOptions{Logger: quiet()})
	w.provider = &meddled{AuthorizingClient: l.client, w: w}
	w.options = Options{
		Shard: shard{w}, Webhooks: keeper{webhooks, w}, Provider: w.provider, IDs: l.ids, Authorize: authorize, Logger: quiet(),
		RecoverAtOnce: 1, // so that each line of recovery can be the last
		Alert: func(_ context.Context, what string, _ id.ID, _ error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.alerts = append(w.alerts, what)
		},
	}
	w.restart()
	w.command(ledger.SetEvent{Event: hallEvent(), Layout: hallLayout()})
	return w
}

// bystander lets bob buy a ticket, which nothing that happens to others may touch.
func (w *world) bystander() {
	w.Helper()
	o := w.mustBook(w.request(w.hold(bob, seatBob), sandbox.TokenSure, "bob's"))
	w.wantState(o, ledger.OrderPaid)
	w.run()
	w.recover()
	w.run()
	w.bobs = w.order(o.ID)
}

func (w *world) close() {
	w.Helper()
	if err := w.batcher.Close(context.Background()); err != nil {
		w.Errorf("closing the batcher: %v", err)
	}
	if err := w.store.Close(); err != nil {
		w.Errorf("closing the ledger: %v", err)
	}
}

// restart makes a new process: a service that remembers nothing.
func (w *world) restart() { w.service = New(w.options) }

func hallLayout() *ledger.Layout {
	return &ledger.Layout{
		PlanHash: "hall",
		Section:  []int16{0, 0, 0, 0, 0, 0, 0, 0},
		Category: []int16{0, 0, 0, 0, 0, 0, 0, 0},
		Run:      []int32{0, 0, 0, 0, 1, 1, 1, 1},
		Quality:  []int32{10, 20, 30, 40, 12, 22, 32, 42},
		Areas:    []ledger.AreaLayout{{Section: 1, Category: 1, Capacity: 4}, {Section: 2, Category: 2, Capacity: 4}},
	}
}

func hallEvent() ledger.Event {
	return ledger.Event{
		ID: theEvent, Organizer: 50, Show: 60, Version: 1, State: ledger.OnSale, PlanHash: "hall",
		SaleOpens: 1, SaleCloses: 3_000_000_000_000,
		HoldTTL: 10 * minute, PaymentWindow: 5 * minute, ExtendMax: 1, SeatsPerHoldMax: 6, Currency: "EUR", TaxIncluded: true,
		Tiers: []ledger.Tier{
			{Category: 0, Name: "A", Face: 5000, Fee: 250, TaxBP: 700},
			{Category: 1, Name: "free"},
			{Category: 2, Name: "B", Face: 3000, TaxBP: 700},
		},
	}
}

// The verbs of the scenarios.

func (w *world) command(c ledger.Command) ledger.Result {
	w.Helper()
	r, err := w.batcher.Do(context.Background(), c)
	if err != nil {
		w.Fatalf("%T: %v", c, err)
	}
	return r
}

func (w *world) hold(customer id.ID, seats ...int32) ledger.Hold {
	w.Helper()
	return w.held(ledger.HoldSeats{ID: w.ids.MustNext(0), Event: theEvent, Customer: customer, Seats: seats})
}

func (w *world) holdPlaces(customer id.ID, area int32, n int) ledger.Hold {
	w.Helper()
	return w.held(ledger.HoldPlaces{ID: w.ids.MustNext(0), Event: theEvent, Customer: customer, Area: area, Quantity: n})
}

func (w *world) held(c ledger.Command) ledger.Hold {
	w.Helper()
	h := *w.command(c).Hold
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds = append(w.holds, h.ID)
	return h
}

// request is as the API makes it: the key knows the content.
func (w *world) request(h ledger.Hold, token, key string) Request {
	return Request{Customer: h.Customer, Hold: h.ID, Token: token, Key: ledger.Key{Value: key, Fields: []ledger.KeyField{
		{Name: "hold_id", Hash: h.ID.Text(id.Hold)}, {Name: "payment_token", Hash: token},
	}}}
}

func (w *world) book(r Request) (ledger.Order, error) {
	b, err := w.service.Book(context.Background(), r)
	return b.Order, err
}

func (w *world) mustBook(r Request) ledger.Order {
	w.Helper()
	o, err := w.book(r)
	if err != nil {
		w.Fatalf("booking: %v", err)
	}
	return o
}

// bookFails books in vain, with a fault.
func (w *world) bookFails(r Request, code fault.Code) *fault.Error {
	w.Helper()
	o, err := w.book(r)
	if fault.CodeOf(err) != code {
		w.Fatalf("booking: order %d %s, %v; want %s", o.ID, o.State, err, code)
	}
	return fault.Of(err)
}

func (w *world) order(order id.ID) ledger.Order {
	w.Helper()
	o, err := w.store.Order(context.Background(), order)
	if err != nil {
		w.Fatalf("order %d: %v", order, err)
	}
	return o
}

func (w *world) wantState(o ledger.Order, state ledger.OrderState) {
	w.Helper()
	if o.State != state {
		w.Fatalf("order %d is %s (%s), want %s", o.ID, o.State, o.Reason, state)
	}
}

func (w *world) wantNow(order id.ID, state ledger.OrderState, reason string) ledger.Order {
	w.Helper()
	o := w.order(order)
	w.wantState(o, state)
	if o.Reason != reason {
		w.Fatalf("order %d is %s because of %q, want %q", o.ID, o.State, o.Reason, reason)
	}
	return o
}

// wantAlerts checks how often each alert was raised since the last time, by how it begins.
func (w *world) wantAlerts(begins ...string) {
	w.Helper()
	w.mu.Lock()
	got := w.alerts
	w.alerts = nil
	w.mu.Unlock()
	ok := len(got) == len(begins)
	for i := range min(len(got), len(begins)) {
		ok = ok && strings.HasPrefix(got[i], begins[i])
	}
	if !ok {
		w.Errorf("alerts %q, want %q", got, begins)
	}
}

func (w *world) ctx() context.Context { return context.Background() }

func (w *world) pass(d ledger.Duration) { w.clock.Advance(d) }

// post delivers what is in the inbox, in its order.
func (w *world) post() {
	w.Helper()
	for _, body := range w.mail() {
		if err := w.deliver(body); err != nil {
			w.Fatalf("webhook %s: %v", body, err)
		}
	}
}

// mail is what is in the inbox for this world. A lab serves many worlds, one after the other.
func (w *world) mail() (own [][]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, body := range w.take() {
		if w.noticed == nil || w.noticed[orderOfBody(body)] {
			own = append(own, body)
		}
	}
	return own
}

func orderOfBody(body []byte) string {
	var v struct {
		Payment struct {
			Order string `json:"order_id"`
		} `json:"payment"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		panic(err)
	}
	return v.Payment.Order
}

func (w *world) deliver(body []byte) error {
	return w.service.Webhook(context.Background(), w.signed(body), body)
}

// run lets the payment service do what is due, and delivers its webhooks.
func (w *world) run() {
	w.Helper()
	w.runDue(w)
	w.post()
}

func (w *world) recover() Recovered {
	w.Helper()
	done, err := w.service.Recover(context.Background())
	if err != nil {
		w.Fatalf("recover: %v", err)
	}
	return done
}
