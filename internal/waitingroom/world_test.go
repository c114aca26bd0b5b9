package waitingroom_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/keys"
	"onsale/internal/keys/keystest"
	"onsale/internal/ledger"
	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/waitingroomtest"
)

// A world is a sale in simulated time: it must be made inside a synctest bubble. Several nodes may run in front of its ledger,
// store and log.
type world struct {
	t      testing.TB
	event  id.ID
	rule   ledger.Event
	shard  ledger.Ledger
	log    *waitingroomtest.Log
	store  *flaky
	ring   *keys.Ring
	made   *id.Generator
	k      [32]byte
	beacon atomic.Pointer[string]
	left   atomic.Pointer[waitingroom.Left]

	batcher *ledger.Batcher
	version int64
}

// rateOfTest and so on are the sale of most tests: joins from now on, the sale in a minute.
const (
	joinsFor   = time.Minute
	rateOfTest = 200
)

// newWorld makes a world in front of a ledger, the model where it is nil.
func newWorld(t testing.TB, shard ledger.Ledger, change func(e *ledger.Event)) *world {
	t.Helper()
	w := &world{
		t: t, log: &waitingroomtest.Log{}, store: &flaky{Store: waitingroom.NewMemory()}, shard: shard,
		made: id.NewGenerator(3, time.Now, 0, nil), k: sha256.Sum256([]byte("the secret of the test")), ring: newKeys(t),
	}
	if shard == nil {
		w.shard = ledger.NewModel(now)
	}
	w.batcher = ledger.NewBatcher(w.shard, ledger.BatcherOptions{Logger: quiet})
	t.Cleanup(func() { _ = w.batcher.Close(context.Background()) })
	w.event = w.made.MustNext(0)
	w.rule = ledger.Event{
		ID: w.event, Organizer: w.made.MustNext(0), Show: w.made.MustNext(0), State: ledger.OnSale, PlanHash: "plan",
		SaleOpens: now() + ledger.Time(joinsFor.Milliseconds()), SaleCloses: now() + 24*60*60*1000,
		HoldTTL: 600_000, PaymentWindow: 300_000, ExtendMax: 1, SeatsPerHoldMax: 10, Currency: "EUR",
		Tiers: []ledger.Tier{{Category: 0, Name: "A", Face: 5000}},
		Room: ledger.RoomRule{
			Mode: ledger.RoomOn, Opens: now(), Rate: rateOfTest, ActiveMax: 20_000, Turn: 10_000, Stay: 600_000,
			Lanes: []ledger.LaneRule{{Key: "general", Weight: 1}},
		},
	}
	if change != nil {
		change(&w.rule)
	}
	w.set()
	return w
}

func newKeys(t testing.TB) *keys.Ring {
	t.Helper()
	master, err := keys.NewMaster(bytes.Repeat([]byte{7}, keys.MasterBytes))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keys.Load(context.Background(), &keystest.Memory{}, master, keys.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []keys.Purpose{keys.Queue, keys.Admission} {
		if _, err := ring.EnsureActive(context.Background(), p); err != nil {
			t.Fatal(err)
		}
	}
	return ring
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func now() ledger.Time { return ledger.TimeOf(time.Now()) }

// set sends the event's row to the ledger.
func (w *world) set() {
	w.t.Helper()
	w.version++
	w.rule.Version = w.version
	layout := &ledger.Layout{PlanHash: "plan", Section: []int16{0}, Category: []int16{0}, Run: []int32{0}, Quality: []int32{0}}
	if _, err := w.batcher.Do(context.Background(), ledger.SetEvent{Event: w.rule, Layout: layout}); err != nil {
		w.t.Fatal(err)
	}
}

// change edits the event's rule and tells the nodes, as the catalog does.
func (w *world) change(edit func(e *ledger.Event), nodes ...*node) {
	w.t.Helper()
	edit(&w.rule)
	w.set()
	for _, n := range nodes {
		n.Changed(w.event)
	}
	synctest.Wait()
}

// A node is one program.
type node struct {
	*waitingroom.Service
	stop func()
}

// node starts a node; it is ended with the test, if not before.
func (w *world) node(change func(o *waitingroom.Options)) *node {
	w.t.Helper()
	o := waitingroom.Options{
		Store: w.store, Log: w.log, Ledger: w.batcher, Reader: w.shard, Keys: w.ring, ListKey: []byte("the key of all lists"),
		Draw:   func(context.Context, id.ID) ([32]byte, error) { return w.k, nil },
		NewID:  func(event id.ID) (id.ID, error) { return w.made.Next(event.Shard()) },
		Beacon: beacon{w}, Issuer: "https://tickets.example", Logger: quiet,
		Left: func(id.ID) (waitingroom.Left, bool) {
			if l := w.left.Load(); l != nil {
				return *l, true
			}
			return waitingroom.Left{}, false
		},
	}
	if change != nil {
		change(&o)
	}
	s, err := waitingroom.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	n := &node{Service: s, stop: sync.OnceFunc(func() {
		cancel()
		s.Close()
		if err := <-ended; err != nil {
			w.t.Errorf("run: %v", err)
		}
	})}
	w.t.Cleanup(n.stop)
	return n
}

// beacon is the world's source of public values.
type beacon struct{ w *world }

func (b beacon) Value(context.Context, string) (string, time.Time, error) {
	if v := b.w.beacon.Load(); v != nil {
		return *v, time.Now(), nil
	}
	return "", time.Time{}, waitingroom.ErrNoValue
}

// flaky is a store that can be away, and lose things.
type flaky struct {
	mu sync.Mutex
	waitingroom.Store
	away error
	run  string
}

func (f *flaky) now() (waitingroom.Store, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Store, f.away
}

// lose puts an empty store in its place. run "" says nothing of it.
func (f *flaky) lose(run string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Store, f.run = waitingroom.NewMemory(), run
}

func (f *flaky) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = err
}

func (f *flaky) Join(ctx context.Context, j waitingroom.Join) (waitingroom.Joined, error) {
	s, err := f.now()
	if err != nil {
		return waitingroom.Joined{}, err
	}
	return s.Join(ctx, j)
}

func (f *flaky) Freeze(ctx context.Context, event id.ID) ([]waitingroom.Count, error) {
	s, err := f.now()
	if err != nil {
		return nil, err
	}
	return s.Freeze(ctx, event)
}

func (f *flaky) Restore(ctx context.Context, event id.ID, state waitingroom.State) error {
	s, err := f.now()
	if err != nil {
		return err
	}
	return s.Restore(ctx, event, state)
}

func (f *flaky) Remember(ctx context.Context, records []waitingroom.Record) error {
	s, err := f.now()
	if err != nil {
		return err
	}
	return s.Remember(ctx, records)
}

func (f *flaky) Counts(ctx context.Context, event id.ID) ([]waitingroom.Count, error) {
	s, err := f.now()
	if err != nil {
		return nil, err
	}
	return s.Counts(ctx, event)
}

func (f *flaky) Leave(ctx context.Context, event, customer id.ID, number int64) error {
	s, err := f.now()
	if err != nil {
		return err
	}
	return s.Leave(ctx, event, customer, number)
}

func (f *flaky) Run(context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run, f.away
}

// A fan is somebody who wants in.
type fan struct {
	customer id.ID
	place    waitingroom.Place
}

// join lets a fan join, again where they are told to come again.
func (w *world) join(n *node, f *fan, lane string) {
	w.t.Helper()
	if f.customer == 0 {
		f.customer = w.made.MustNext(0)
	}
	for range 100 {
		place, err := n.Join(context.Background(), waitingroom.JoinRequest{Event: w.event, Customer: f.customer, Lane: lane})
		if err == nil {
			f.place = place
			return
		}
		if fault.CodeOf(err) != fault.Busy {
			w.t.Fatalf("join: %v", err)
		}
		time.Sleep(fault.Of(err).RetryAfter)
	}
	w.t.Fatal("the line stays busy")
}

// joinAll lets many join at once.
func (w *world) joinAll(n *node, count int, lane string) []*fan {
	w.t.Helper()
	fans := make([]*fan, count)
	for i := range fans {
		fans[i] = &fan{customer: w.made.MustNext(0)}
	}
	var all sync.WaitGroup
	for _, part := range slices.Collect(slices.Chunk(fans, max(1, count/64))) {
		all.Go(func() {
			for _, f := range part {
				w.join(n, f, lane)
			}
		})
	}
	all.Wait()
	return fans
}

// room is the room's row.
func (w *world) room() ledger.Room {
	w.t.Helper()
	r, err := w.shard.Room(context.Background(), w.event)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// until waits until something is so, in simulated time.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	for range 6_000 {
		if is() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatalf("never: %s", what)
}

func (w *world) open() {
	w.t.Helper()
	w.until("the room opens", func() bool {
		r, err := w.shard.Room(context.Background(), w.event)
		return err == nil && r.Phase == ledger.RoomOpen
	})
}
