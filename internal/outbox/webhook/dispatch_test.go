package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/catalog"
	"onsale/internal/control"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/outbox/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seals is a sealer that binds secrets to names.
type seals struct{}

func (seals) Seal(name string, secret []byte) ([]byte, error) {
	return append([]byte(name+"\x00"), secret...), nil
}

func (seals) Open(name string, sealed []byte) ([]byte, error) {
	secret, ok := strings.CutPrefix(string(sealed), name+"\x00")
	if !ok {
		return nil, errors.New("sealed for another")
	}
	return []byte(secret), nil
}

type posted struct {
	url     string
	headers map[string]string
	body    string
}

// receiver answers as told; by default 200.
type receiver struct {
	mu     sync.Mutex
	got    []posted
	answer func(ctx context.Context, p posted) (int, error)
}

func (r *receiver) Post(ctx context.Context, url string, headers map[string]string, body string) (int, error) {
	p := posted{url, headers, body}
	r.mu.Lock()
	r.got = append(r.got, p)
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		return answer(ctx, p)
	}
	return 200, nil
}

func (r *receiver) posts() []posted {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]posted(nil), r.got...)
}

type world struct {
	t          *testing.T
	store      webhook.Store
	service    *webhook.Service
	handler    *webhook.Handler
	dispatcher *webhook.Dispatcher
	receiver   *receiver
	tick       chan time.Time
	organizer  id.ID
	dead       atomic.Int64
}

var ids = id.NewGenerator(1, time.Now, 0, nil)

const event id.ID = 77

func newWorld(t *testing.T) *world {
	t.Helper()
	db, err := control.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := db.Catalog().EnsureOrganizer(t.Context(), catalog.Organizer{ID: ids.MustNext(0), Key: "house", Name: "House"})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: db.Webhooks(), receiver: &receiver{}, tick: make(chan time.Time), organizer: o.ID}
	w.dispatcher = webhook.NewDispatcher(webhook.Options{
		Store: w.store, Poster: w.receiver, Sealer: seals{}, Tick: w.tick, Chance: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler),
		Dead: func(string) { w.dead.Add(1) },
	})
	w.service = webhook.NewService(w.store, seals{}, ids.Next, nil, nil, w.dispatcher.Wake)
	w.handler = webhook.NewHandler(w.store, func(_ context.Context, e id.ID) (id.ID, error) {
		if e != event {
			return 0, webhook.ErrUnknown
		}
		return o.ID, nil
	}, w.dispatcher.Wake, nil)
	t.Cleanup(func() {
		w.dispatcher.Stop()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) add(url string, kinds ...string) (webhook.Endpoint, string) {
	w.t.Helper()
	e, secret, err := w.service.Add(w.t.Context(), w.organizer, url, kinds)
	w.ok(err)
	return e, secret
}

func notice(order id.ID, sequence int64, kind string) ledger.Notice {
	return ledger.Notice{
		Order: order, Sequence: sequence, Kind: kind, At: ledger.TimeOf(time.Now()),
		Body: fmt.Appendf(nil, `{"v":1,"booking_id":%q,"event_id":%q}`, order.Text(id.Order), event.Text(id.Event)),
	}
}

// publish hands notices on, each twice.
func (w *world) publish(all ...ledger.Notice) {
	w.t.Helper()
	for _, n := range all {
		for range 2 {
			w.ok(w.handler.Handle(w.t.Context(), n))
		}
	}
}

// until ticks until something is so.
func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	for range 2000 {
		if so() {
			return
		}
		w.tick <- time.Time{}
		time.Sleep(time.Millisecond)
	}
	w.t.Fatal("it never comes that", what)
}

func (w *world) count(e webhook.Endpoint) webhook.Counts {
	w.t.Helper()
	c, err := w.store.Count(w.t.Context(), e.ID)
	w.ok(err)
	return c
}

func (w *world) delivered(e webhook.Endpoint) {
	w.t.Helper()
	w.until("all is delivered", func() bool { return w.count(e).Waiting == 0 && w.dispatcher.Stats().Talking == 0 })
}

func TestWhoIsToldWhat(t *testing.T) {
	w := newWorld(t)
	all, secret := w.add("https://a.example.com/x")
	paid, _ := w.add("https://b.example.com/x", ledger.NoticePaid, ledger.NoticePayment)
	off, _ := w.add("https://c.example.com/x")
	_, err := w.service.Change(t.Context(), w.organizer, off.ID, off.URL, nil, false)
	w.ok(err)
	w.dispatcher.Start()
	strange := notice(9, 1, ledger.NoticePaid)
	strange.Body = fmt.Appendf(nil, `{"event_id":%q}`, id.ID(78).Text(id.Event)) // an event that is gone
	ofEvent := notice(event, 1, ledger.NoticeEvent)
	w.publish(notice(5, 1, ledger.NoticePending), notice(5, 2, ledger.NoticePaid), notice(5, 3, ledger.NoticePayment), strange, ofEvent)
	w.delivered(all)
	w.delivered(paid)
	w.dispatcher.Stop()
	got := map[string]int{}
	for _, p := range w.receiver.posts() {
		var m struct {
			SpecVersion, ID, Type, Subject string
			Sequence                       int64
			Data                           map[string]any
		}
		if err := json.Unmarshal([]byte(p.body), &m); err != nil {
			t.Fatal(err)
		}
		got[p.url+" "+m.Type+" "+m.Subject]++
		if m.SpecVersion != "1.0" || m.ID != p.headers[webhook.HeaderID] || strings.Contains(m.ID, ".") || m.Data["event_id"] != event.Text(id.Event) {
			t.Errorf("%s", p.body)
		}
		if p.url == all.URL {
			seconds := time.Now()
			for range 5 { // the clock may have gone on
				want, err := webhook.Headers(m.ID, seconds, p.body, secret)
				w.ok(err)
				if want[webhook.HeaderSignature] == p.headers[webhook.HeaderSignature] {
					seconds = time.Time{}
					break
				}
				seconds = seconds.Add(-time.Second)
			}
			if !seconds.IsZero() {
				t.Errorf("its signature is wrong: %v", p.headers)
			}
		}
	}
	want := map[string]int{
		all.URL + " booking.paid " + id.ID(5).Text(id.Order): 1, all.URL + " event.changed " + event.Text(id.Event): 1,
		paid.URL + " booking.paid " + id.ID(5).Text(id.Order): 1, paid.URL + " payment.recorded " + id.ID(5).Text(id.Order): 1,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestASlowEndpointDelaysOnlyItself(t *testing.T) {
	w := newWorld(t)
	slow, _ := w.add("https://slow.example.com/")
	quick, _ := w.add("https://quick.example.com/")
	w.receiver.answer = func(ctx context.Context, p posted) (int, error) {
		if p.url == slow.URL {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return 200, nil
	}
	for i := range id.ID(20) {
		w.publish(notice(i+1, 1, ledger.NoticePaid))
	}
	w.dispatcher.Start()
	w.until("the quick one has all", func() bool { return w.count(quick).Waiting == 0 })
	n := 0
	for _, p := range w.receiver.posts() {
		if p.url == slow.URL {
			n++
		}
	}
	if n > webhook.ParallelMax {
		t.Errorf("%d posts at once", n)
	}
	w.dispatcher.Stop()
	// The stop broke them off: that is no failed try, and they are due at once.
	if c := w.count(slow); c.Waiting != 20 || c.Dead != 0 {
		t.Errorf("%+v", c)
	}
	w.receiver.answer = nil
	w.dispatcher.Start()
	w.delivered(slow)
}

func TestScheduleLastsThreeDays(t *testing.T) {
	var sum time.Duration
	for i, wait := range webhook.Schedule {
		sum += wait
		if i > 0 && wait < webhook.Schedule[i-1] {
			t.Error("a wait is shorter than the one before")
		}
	}
	if sum < 71*time.Hour || sum > 73*time.Hour {
		t.Errorf("it lasts %s", sum)
	}
}

func TestAfterTheScheduleItIsADeadLetterAndCanBeReplayed(t *testing.T) {
	w := newWorld(t)
	e, _ := w.add("https://a.example.com/")
	w.receiver.answer = func(context.Context, posted) (int, error) { return 503, nil }
	schedule := append([]time.Duration(nil), webhook.Schedule...)
	defer copy(webhook.Schedule, schedule)
	for i := range webhook.Schedule {
		webhook.Schedule[i] = 0
	}
	w.dispatcher.Start()
	w.publish(notice(1, 1, ledger.NoticePaid), notice(2, 1, ledger.NoticePaid))
	w.until("both are dead", func() bool { return w.count(e).Dead == 2 && w.dispatcher.Stats().Talking == 0 })
	if n := len(w.receiver.posts()); n != 2*(len(schedule)+1) || w.dead.Load() != 2 {
		t.Errorf("%d tries, told of %d", n, w.dead.Load())
	}
	dead, err := w.service.Deliveries(t.Context(), w.organizer, e.ID, webhook.Dead, 10)
	w.ok(err)
	if len(dead) != 2 || dead[0].Status != 503 {
		t.Fatalf("%+v", dead)
	}
	first := w.receiver.posts()[0]
	w.receiver.mu.Lock()
	w.receiver.answer, w.receiver.got = nil, nil
	w.receiver.mu.Unlock()
	replay := func(want int, r webhook.Replay) {
		t.Helper()
		n, err := w.service.Replay(t.Context(), w.organizer, e.ID, r)
		if err != nil || n != want {
			t.Fatalf("%d replayed, want %d: %v", n, want, err)
		}
		w.delivered(e)
	}
	replay(1, webhook.Replay{Message: first.headers[webhook.HeaderID]})
	if again := w.receiver.posts(); len(again) != 1 || again[0].body != first.body || again[0].headers[webhook.HeaderID] != first.headers[webhook.HeaderID] {
		t.Errorf("%+v is not the same message as %+v", again, first)
	}
	replay(1, webhook.Replay{Dead: true})
	replay(2, webhook.Replay{Since: time.Now().Add(-time.Hour)}) // also what was delivered
	replay(0, webhook.Replay{Since: time.Now().Add(time.Hour)})
	for _, wrong := range []webhook.Replay{{}, {Dead: true, Message: "x"}, {Message: "none"}} {
		if _, err := w.service.Replay(t.Context(), w.organizer, e.ID, wrong); err == nil {
			t.Errorf("%+v was replayed", wrong)
		}
	}
}

func TestGoneSwitchesOff(t *testing.T) {
	w := newWorld(t)
	e, _ := w.add("https://a.example.com/")
	w.receiver.answer = func(context.Context, posted) (int, error) { return 410, nil }
	w.dispatcher.Start()
	w.publish(notice(1, 1, ledger.NoticePaid))
	w.until("it is off", func() bool {
		now, err := w.store.Endpoint(t.Context(), e.ID)
		return err == nil && !now.On
	})
}

func TestRotation(t *testing.T) {
	w := newWorld(t)
	e, old := w.add("https://a.example.com/")
	fresh, err := w.service.Rotate(t.Context(), w.organizer, e.ID)
	w.ok(err)
	w.dispatcher.Start()
	w.publish(notice(1, 1, ledger.NoticePaid))
	w.delivered(e)
	if s := strings.Fields(w.receiver.posts()[0].headers[webhook.HeaderSignature]); len(s) != 2 || s[0] == s[1] || old == fresh {
		t.Errorf("%v", s)
	}
	stored, err := w.store.Endpoint(t.Context(), e.ID)
	w.ok(err)
	stored.OldUntil = time.Now().Add(-time.Second)
	w.ok(w.store.RotateEndpoint(t.Context(), stored, stored.Sealed))
	w.publish(notice(2, 1, ledger.NoticePaid))
	w.delivered(e)
	if s := strings.Fields(w.receiver.posts()[1].headers[webhook.HeaderSignature]); len(s) != 1 {
		t.Errorf("the old secret signs for ever: %v", s)
	}
}

func TestServiceRefuses(t *testing.T) {
	w := newWorld(t)
	e, _ := w.add("https://a.example.com/")
	ctx := t.Context()
	code := func(err error, want fault.Code) {
		t.Helper()
		if got := fault.CodeOf(err); err == nil || got != want {
			t.Errorf("%v (%s), want %s", err, got, want)
		}
	}
	_, _, err := w.service.Add(ctx, w.organizer, "http://a.example.com/", nil)
	code(err, fault.Invalid)
	_, _, err = w.service.Add(ctx, w.organizer, "https://b.example.com/", []string{"booking.dreamt_of"})
	code(err, fault.Invalid)
	_, _, err = w.service.Add(ctx, w.organizer, e.URL, nil)
	code(err, fault.Conflict)
	for i := range webhook.EndpointsPerOrganizerMax - 1 {
		w.add(fmt.Sprintf("https://a.example.com/%d", i))
	}
	_, _, err = w.service.Add(ctx, w.organizer, "https://z.example.com/", nil)
	code(err, fault.Conflict)
	// Another organizer's is not there (E5).
	other := w.organizer + 1
	code(w.service.Remove(ctx, other, e.ID), fault.NotFound)
	_, err = w.service.Rotate(ctx, other, e.ID)
	code(err, fault.NotFound)
	_, err = w.service.Change(ctx, other, e.ID, e.URL, nil, false)
	code(err, fault.NotFound)
	_, err = w.service.Deliveries(ctx, other, e.ID, "", 1)
	code(err, fault.NotFound)
	_, err = w.service.Replay(ctx, other, e.ID, webhook.Replay{Dead: true})
	code(err, fault.NotFound)
	w.ok(w.service.Remove(ctx, w.organizer, e.ID))
	_, err = w.service.Get(ctx, w.organizer, e.ID)
	code(err, fault.NotFound)
	list, counts, err := w.service.List(ctx, w.organizer)
	if err != nil || len(list) != webhook.EndpointsPerOrganizerMax-1 || len(counts) != len(list) {
		t.Errorf("%d endpoints, %v", len(list), err)
	}
}

func TestStartAndStopTwice(t *testing.T) {
	w := newWorld(t)
	w.add("https://a.example.com/")
	for i := range id.ID(10) {
		w.publish(notice(i+1, 1, ledger.NoticePaid))
		w.dispatcher.Start()
		w.dispatcher.Start()
		w.dispatcher.Stop()
		w.dispatcher.Stop()
	}
}
