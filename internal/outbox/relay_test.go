package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A shop is a ledger whose commands write notices, with a clock of its own.
type shop struct {
	t   testing.TB
	l   *sqlite.Ledger
	ids *id.Generator
	ms  atomic.Int64
}

const (
	theEvent = id.ID(1)
	seats    = 2000
)

func newShop(t testing.TB) *shop {
	s := &shop{t: t}
	s.ms.Store(1_800_000_000_000)
	s.ids = id.NewGenerator(0, s.now, 0, nil)
	var err error
	s.l, err = sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "shard.db"), sqlite.Options{Now: func() ledger.Time { return ledger.Time(s.ms.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.l.Close(); err != nil {
			t.Error(err)
		}
	})
	n := make([]int16, seats)
	s.apply(ledger.SetEvent{
		Event: ledger.Event{ID: theEvent, Version: 1, State: ledger.OnSale, PlanHash: "x", SaleOpens: 1, SaleCloses: 1 << 60, HoldTTL: 1 << 50,
			PaymentWindow: 1, SeatsPerHoldMax: 1, Currency: "EUR", Tiers: []ledger.Tier{{Face: 100}}},
		Layout: &ledger.Layout{PlanHash: "x", Section: n, Category: n, Run: make([]int32, seats), Quality: make([]int32, seats)},
	})
	s.forget()
	return s
}

// forget publishes what is waiting, to nobody, and deletes it: the news of the event is none of the tests' business.
func (s *shop) forget() {
	ctx := context.Background()
	waiting, err := s.l.Unpublished(ctx, 10, nil)
	lease, ok, err2 := s.l.Acquire(ctx, "a test's", "it", 1000)
	if err != nil || err2 != nil || !ok || len(waiting) != 1 || waiting[0].Order != theEvent {
		s.t.Fatalf("%v, %v, %v: %+v", err, err2, ok, waiting)
	}
	if err := s.l.MarkPublished(ctx, lease, waiting); err != nil {
		s.t.Fatal(err)
	}
	if n, err := s.l.PrunePublished(ctx, lease, ledger.Time(s.ms.Load()+1), 10); n != 1 || err != nil {
		s.t.Fatal(n, err)
	}
}

func (s *shop) now() time.Time { return time.UnixMilli(s.ms.Load()).UTC() }

func (s *shop) pass(d time.Duration) { s.ms.Add(d.Milliseconds()) }

func (s *shop) apply(commands ...ledger.Command) {
	s.t.Helper()
	b, err := s.l.Apply(context.Background(), commands)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range b.Results {
		if r.Fault != nil {
			s.t.Fatal(r.Fault)
		}
	}
}

// order makes one order with three notices: pending, paid, capture due.
func (s *shop) order(seat int32) id.ID {
	s.t.Helper()
	hold, order := s.ids.MustNext(0), s.ids.MustNext(0)
	s.apply(
		ledger.HoldSeats{ID: hold, Event: theEvent, Customer: 9, Seats: []int32{seat}},
		ledger.BeginPayment{Order: order, Hold: hold, Customer: 9, Provider: "p"},
		ledger.Confirm{Order: order, Payment: "pay", Amount: 100, Currency: "EUR", Tickets: []id.ID{s.ids.MustNext(0)}, Refund: s.ids.MustNext(0)},
	)
	return order
}

func (s *shop) options(name string) Options {
	return Options{Holder: name, Now: s.now, Log: slog.New(slog.DiscardHandler), Tick: make(chan time.Time)}
}

func (s *shop) left() int {
	s.t.Helper()
	n, err := s.l.Unpublished(context.Background(), 100_000, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return len(n)
}

// A book writes down what it is given, and fails where it is told to.
type book struct {
	mu   sync.Mutex
	got  map[id.ID][]int64
	all  int
	fail func(n ledger.Notice) error
}

func (b *book) Handle(_ context.Context, n ledger.Notice) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		if err := b.fail(n); err != nil {
			return err
		}
	}
	if b.got == nil {
		b.got = map[id.ID][]int64{}
	}
	b.got[n.Order] = append(b.got[n.Order], n.Sequence)
	b.all++
	return nil
}

// whole fails unless each order came exactly once and in order.
func (b *book) whole(t testing.TB, orders ...id.ID) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range orders {
		if !slices.Equal(b.got[o], []int64{1, 2, 3}) {
			t.Errorf("order %d came as %v", o, b.got[o])
		}
	}
	if b.all != 3*len(orders) {
		t.Errorf("%d notices came of %d orders", b.all, len(orders))
	}
}

func (s *shop) once(r *Relay) Pass {
	s.t.Helper()
	p := r.pass(context.Background())
	r.report(context.Background(), p)
	return p
}

func TestEachNoticeGoesToEachHandlerInOrder(t *testing.T) {
	s := newShop(t)
	var orders []id.ID
	for i := range int32(40) {
		orders = append(orders, s.order(i))
	}
	var a, b book
	o := s.options("a")
	o.BatchMax = 7
	r := NewRelay(s.l, []Handler{&a, &b}, o)
	if p := s.once(r); p.Err != nil || p.Published != 120 || !p.Leader {
		t.Errorf("%+v", p)
	}
	a.whole(t, orders...)
	b.whole(t, orders...)
	if p := s.once(r); p.Err != nil || p.Published != 0 || s.left() != 0 {
		t.Errorf("%+v, %d left", p, s.left())
	}
	if st := r.Stats(); st.Published != 120 || st.Passes != 2 || !st.Leader || st.Failures != 0 {
		t.Errorf("%+v", st)
	}
}

func TestAFailingReceiverDelaysItsOwnOrderOnly(t *testing.T) {
	s := newShop(t)
	bad, good := s.order(0), s.order(1)
	tries := 0
	b := &book{fail: func(n ledger.Notice) error {
		if n.Order == bad && n.Sequence == 2 && tries < 3 {
			tries++
			return errors.New("no")
		}
		return nil
	}}
	r := NewRelay(s.l, []Handler{b}, s.options("a"))
	if p := s.once(r); p.Published != 4 || p.Failed != 1 || p.Err != nil {
		t.Errorf("%+v", p)
	}
	later := s.order(2)
	if p := s.once(r); p.Published != 3 || p.Failed != 0 || tries != 1 {
		t.Errorf("%+v: the failed order is tried again at once (%d)", p, tries)
	}
	for i, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		s.pass(pause - time.Millisecond)
		if s.once(r); tries != min(i+1, 3) {
			t.Errorf("try %d came before its time", i)
		}
		s.pass(time.Millisecond)
		s.once(r)
	}
	b.whole(t, bad, good, later)
	if st := r.Stats(); st.Waiting != 0 || st.Failures != 3 || s.left() != 0 {
		t.Errorf("%+v, %d left", st, s.left())
	}
}

func TestReceiversThatAreDownStopTheReading(t *testing.T) {
	s := newShop(t)
	var orders []id.ID
	for i := range int32(10) {
		orders = append(orders, s.order(i))
	}
	down := true
	calls := 0
	b := &book{fail: func(ledger.Notice) error {
		calls++
		if down {
			panic("no receiver")
		}
		return nil
	}}
	o := s.options("a")
	o.SkipMax = 4
	r := NewRelay(s.l, []Handler{b}, o)
	if p := s.once(r); p.Failed != 4 || p.Published != 0 || p.Err != nil {
		t.Errorf("%+v", p)
	}
	if s.once(r); calls != 4 || r.Stats().Waiting != 4 {
		t.Errorf("%d calls, %+v", calls, r.Stats())
	}
	s.pass(time.Second)
	if s.once(r); calls != 8 || r.Stats().Waiting > 8 {
		t.Errorf("%d calls, %+v", calls, r.Stats())
	}
	down = false
	s.pass(10 * time.Minute)
	if p := s.once(r); p.Published != 30 || r.Stats().Waiting != 0 {
		t.Errorf("%+v %+v", p, r.Stats())
	}
	b.whole(t, orders...)
}

// unmarked fails to mark, as after a crash.
type unmarked struct {
	*sqlite.Ledger
	err error
}

func (u *unmarked) MarkPublished(ctx context.Context, l ledger.Lease, n []ledger.Notice) error {
	if u.err != nil {
		return u.err
	}
	return u.Ledger.MarkPublished(ctx, l, n)
}

func TestWhatWasNotMarkedComesAgain(t *testing.T) {
	s := newShop(t)
	order := s.order(0)
	var twice, once book
	src := &unmarked{Ledger: s.l, err: errors.New("the power is gone")}
	r := NewRelay(src, []Handler{&twice, Dedup(&once, 10)}, s.options("a"))
	if p := s.once(r); p.Published != 0 || !errors.Is(p.Err, src.err) {
		t.Errorf("%+v", p)
	}
	src.err = nil
	if p := s.once(r); p.Published != 3 || p.Err != nil {
		t.Errorf("%+v", p)
	}
	once.whole(t, order)
	if got := twice.got[order]; !slices.Equal(got, []int64{1, 2, 3, 1, 2, 3}) {
		t.Errorf("%v", got)
	}
}

func TestALostLeaseMarksNothing(t *testing.T) {
	s := newShop(t)
	order := s.order(0)
	var b book
	second := NewRelay(s.l, []Handler{&b}, s.options("second"))
	paused := HandlerFunc(func(_ context.Context, n ledger.Notice) error {
		if n.Sequence == 3 { // the first relay sleeps longer than its lease lasts
			s.pass(time.Minute)
			if p := s.once(second); p.Published != 3 || !p.Leader {
				t.Errorf("%+v", p)
			}
		}
		return nil
	})
	first := NewRelay(s.l, []Handler{paused}, s.options("first"))
	if p := s.once(first); p.Published != 0 || !errors.Is(p.Err, ledger.ErrFenced) {
		t.Errorf("%+v", p)
	}
	if st := first.Stats(); st.Leader || st.Fenced != 1 {
		t.Errorf("%+v", st)
	}
	b.whole(t, order)
	if p := s.once(first); p.Leader || p.Err != nil {
		t.Errorf("%+v", p)
	}
	second.giveUp()
	if p := s.once(first); !p.Leader || p.Err != nil {
		t.Errorf("%+v", p)
	}
}

// The lease is renewed while notices are handed on, however many there are.
func TestTheLeaseLastsThroughALongBatch(t *testing.T) {
	s := newShop(t)
	var orders []id.ID
	for i := range int32(20) {
		orders = append(orders, s.order(i))
	}
	b := &book{fail: func(ledger.Notice) error { s.pass(3 * time.Second); return nil }}
	other := NewRelay(s.l, nil, s.options("other"))
	r := NewRelay(s.l, []Handler{b, HandlerFunc(func(context.Context, ledger.Notice) error {
		if p := s.once(other); p.Leader {
			t.Error("another took the lease")
		}
		return nil
	})}, s.options("a"))
	if p := s.once(r); p.Err != nil || p.Published != 60 {
		t.Errorf("%+v", p)
	}
	b.whole(t, orders...)
}

func TestAHandlerHasItsTime(t *testing.T) {
	s := newShop(t)
	s.order(0)
	o := s.options("a")
	o.Timeout = time.Millisecond
	r := NewRelay(s.l, []Handler{HandlerFunc(func(ctx context.Context, _ ledger.Notice) error {
		<-ctx.Done()
		return ctx.Err()
	})}, o)
	if p := s.once(r); p.Failed != 1 || p.Err != nil {
		t.Errorf("%+v", p)
	}
}

func TestPublishedNoticesAreKeptSevenDays(t *testing.T) {
	s := newShop(t)
	s.order(0)
	r := NewRelay(s.l, nil, s.options("a"))
	s.once(r)
	s.pass(Keep - time.Minute)
	if p := s.once(r); p.Pruned != 0 || p.Err != nil {
		t.Errorf("%+v", p)
	}
	s.pass(30 * time.Second)
	s.order(1)
	s.pass(time.Hour)
	if p := s.once(r); p.Pruned != 3 || p.Published != 3 || p.Err != nil {
		t.Errorf("%+v", p)
	}
	if p := s.once(r); p.Pruned != 0 || r.Stats().Pruned != 3 {
		t.Errorf("%+v", p)
	}
}

// relayed is a running relay that tells of its passes.
func relayed(s *shop, name string, tick chan time.Time, handlers ...Handler) (*Relay, chan Pass) {
	passes := make(chan Pass, 1000)
	o := s.options(name)
	o.Tick, o.Passed = tick, func(p Pass) {
		select {
		case passes <- p:
		default:
		}
	}
	return NewRelay(s.l, handlers, o), passes
}

func TestItWakesByNudgeAndByTick(t *testing.T) {
	s := newShop(t)
	tick := make(chan time.Time)
	var b book
	r, passes := relayed(s, "a", tick, &b)
	s.order(0)
	r.Start()
	r.Start() // twice is once
	if p := <-passes; p.Published != 3 {
		t.Errorf("at start: %+v", p)
	}
	s.order(1)
	r.Nudge()
	if p := <-passes; p.Published != 3 {
		t.Errorf("by nudge: %+v", p)
	}
	s.order(2)
	tick <- time.Time{}
	if p := <-passes; p.Published != 3 {
		t.Errorf("by tick: %+v", p)
	}
	r.Stop()
	r.Stop()
	if _, ok, err := s.l.Acquire(t.Context(), "outbox", "next", 1000); !ok || err != nil {
		t.Error("the lease was not given back", err)
	}
}

func TestStartAndStopUnderStress(t *testing.T) {
	s := newShop(t)
	var b book
	r, _ := relayed(s, "a", make(chan time.Time), Dedup(&b, 1000))
	var orders []id.ID
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					r.Start()
					r.Nudge()
					r.Stop()
				}
			}
		})
	}
	for i := range int32(60) {
		orders = append(orders, s.order(i))
	}
	close(stop)
	wg.Wait()
	r.Stop()
	s.once(r)
	b.whole(t, orders...)
	if s.left() != 0 {
		t.Errorf("%d left", s.left())
	}
}

// Two relays, of two names or by mistake of the same, publish everything and nothing out of order.
func TestTwoRelaysAreHarmless(t *testing.T) {
	for _, names := range [][2]string{{"a", "b"}, {"a", "a"}} {
		t.Run(fmt.Sprint(names), func(t *testing.T) {
			s := newShop(t)
			var b book
			once := Dedup(&b, 1000)
			ticks := [2]chan time.Time{make(chan time.Time), make(chan time.Time)}
			var relays [2]*Relay
			for i := range relays {
				relays[i], _ = relayed(s, names[i], ticks[i], once)
				relays[i].Start()
			}
			var orders []id.ID
			for i := range int32(60) {
				orders = append(orders, s.order(i))
				for k := range relays {
					relays[k].Nudge()
					if i%8 == 0 {
						ticks[k] <- time.Time{}
					}
				}
				if i == 30 { // the one that leads goes, the other takes over
					relays[0].Stop()
					ticks[1] <- time.Time{}
					relays[0].Start()
				}
			}
			for i := range relays {
				ticks[i] <- time.Time{}
				relays[i].Stop()
			}
			s.once(relays[1])
			b.whole(t, orders...)
			if s.left() != 0 {
				t.Errorf("%d left", s.left())
			}
		})
	}
}
