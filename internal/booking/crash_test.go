package booking

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment/sandbox"
)

// soak is by how much the environment asks for more than the short form: ONSALE_SOAK, 1 where it is not set.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("ONSALE_SOAK")); err == nil && n > 1 {
		return n
	}
	return 1
}

// killed is what a process meets at the line where it ends.
type killed struct{}

// killAt ends the process at the n-th line: before or after the effect of a call to the ledger or the provider. reached
// says whether it came to that.
func (w *world) killAt(n int) (reached func() bool) {
	lines := 0
	line := func() {
		if lines++; lines == n {
			panic(killed{})
		}
	}
	w.meddling(func(_ string, call func() error) error {
		line()
		err := call()
		line()
		return err
	})
	return func() bool { return lines >= n }
}

// process runs what may be killed. Then there is a new process, which nothing interferes with.
func (w *world) process(f func()) (wasKilled bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			wasKilled = true
			w.meddling(nil)
			w.restart()
		}
	}()
	f()
	return false
}

// postSurely delivers the mail; who sends it sends again what was not taken.
func (w *world) postSurely() {
	w.Helper()
	w.runDue(w)
	for _, body := range w.mail() {
		for w.process(func() {
			if err := w.deliver(body); err != nil {
				w.Fatalf("webhook: %v", err)
			}
		}) {
		}
	}
}

// What happens after the customer's first click. Each story is told with the process killed at each line of it.
var stories = map[string]func(w *world, r Request){
	"the customer tries again": func(w *world, r Request) {
		w.process(func() { w.clicks(r) })
		w.process(func() { w.clicks(r) })
		w.postSurely()
	},
	"webhooks, then recovery": func(w *world, r Request) {
		w.process(func() { w.clicks(r) })
		w.pass(payAfter)
		w.postSurely()
		w.pass(20 * second)
		w.process(func() { w.recover() })
		w.process(func() { w.recover() })
		w.process(func() { w.clicks(r) })
	},
	"the seats are lost meanwhile": func(w *world, r Request) {
		w.process(func() { w.clicks(r) })
		w.pass(11 * minute)
		w.command(ledger.Sweep{})
		taken := w.takeSeat(0)
		w.process(func() { w.recover() })
		if taken != 0 {
			w.process(func() { w.clicks(w.request(w.holdBy(taken), sandbox.TokenSure, "carol's")) })
		}
		w.pass(lateAfter)
		w.postSurely()
		w.process(func() { w.recover() })
		w.process(func() { w.clicks(r) })
	},
	"only recovery": func(w *world, r Request) {
		w.process(func() { w.clicks(r) })
		for range 4 {
			w.pass(minute)
			w.process(func() { w.recover() })
		}
	},
}

// clicks books as a browser does: what is refused is shown, what is unavailable is tried again later.
func (w *world) clicks(r Request) {
	w.Helper()
	_, err := w.book(r)
	switch code := fault.CodeOf(err); code {
	case "", fault.PaymentUnavailable, fault.OutcomeUnknown, fault.HoldExpired, fault.PaymentInProgress, fault.NotOnSale:
	default:
		w.Errorf("booking is refused: %v", err)
	}
}

// takeSeat is carol's hold of a seat, 0 where it is not to be had.
func (w *world) takeSeat(seat int32) id.ID {
	w.Helper()
	hold := w.ids.MustNext(0)
	c := ledger.HoldSeats{ID: hold, Event: theEvent, Customer: carol, Seats: []int32{seat}}
	if _, err := w.batcher.Do(w.ctx(), c); err != nil {
		return 0
	}
	return hold
}

func (w *world) holdBy(hold id.ID) ledger.Hold {
	w.Helper()
	h, err := w.store.Hold(w.ctx(), hold)
	if err != nil {
		w.Fatalf("hold: %v", err)
	}
	return h
}

// oneEffect checks that a key has had one effect at most, and that a repeat is answered with it.
func (w *world) oneEffect(r Request) {
	w.Helper()
	var mine []ledger.Order
	for _, order := range w.all() {
		if o := w.order(order); o.Customer == r.Customer {
			mine = append(mine, o)
		}
	}
	if len(mine) > 1 {
		w.Errorf("I5: one key made %d orders", len(mine))
	}
	if len(mine) == 0 {
		return
	}
	charges := w.did("Charge")
	again, err := w.book(r)
	if err != nil || again.ID != mine[0].ID || again.State != mine[0].State {
		w.Errorf("I5: the repeat answers order %d %s, %v; it is %d %s", again.ID, again.State, err, mine[0].ID, mine[0].State)
	}
	if w.did("Charge") != charges {
		w.Errorf("I5: the repeat asked the provider again")
	}
}

// TestKilledAtEachLine: DESIGN 8.5, A12, I5, I6, I7. kill -9 between any two lines of booking, for each behaviour of the
// provider: afterwards there are tickets for the money or there is no money, and one effect.
func TestKilledAtEachLine(t *testing.T) {
	behaviours := [][]sandbox.Fault{
		nil, {sandbox.FaultPending}, {sandbox.FaultPendingDeclined}, {sandbox.FaultPayLate}, {sandbox.FaultDeclined},
		{sandbox.FaultDeclinedSoft}, {sandbox.FaultLostAnswer}, {sandbox.FaultServerError}, {sandbox.FaultCaptureRefused},
		{sandbox.FaultWrongAmount}, {sandbox.FaultSecondPayment},
	}
	names := []string{"the customer tries again", "webhooks, then recovery", "the seats are lost meanwhile", "only recovery"}
	for i, faults := range behaviours {
		for k, mode := range []string{"charge", "authorize"} {
			if mode == "charge" && len(faults) == 1 && faults[0] == sandbox.FaultCaptureRefused {
				continue
			}
			t.Run(strings.TrimPrefix(sandbox.Token(faults...), "tok_")+"/"+mode, func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				if soak() > 1 {
					for _, story := range names {
						killedAtEachLine(t, l, story, sandbox.Token(faults...), mode == "authorize", "model", 1, 1)
						killedAtEachLine(t, l, story, sandbox.Token(faults...), mode == "authorize", "sqlite", 1, 1)
					}
					return
				}
				// The short form tells one story fully, and of the others some lines.
				full, some := 1, 8
				if racing {
					full, some = 2, 16
				}
				for n, story := range names {
					step := some
					if n == (i+2*k)%len(names) {
						step = full
					}
					killedAtEachLine(t, l, story, sandbox.Token(faults...), mode == "authorize", "model", 1+i%step, step)
				}
			})
		}
	}
}

// killedAtEachLine tells a story with the process killed at every step-th line from first on, until it is told to its end.
func killedAtEachLine(t *testing.T, l *lab, story, token string, authorize bool, on string, first, step int) {
	t.Helper()
	const linesMost = 400
	for line := first; line < linesMost; line += step {
		store, webhooks := openers[on](t, l)
		w := newWorld(t, l, store, webhooks, authorize)
		r := w.request(w.hold(alice, 0, 1), token, "k")
		reached := w.killAt(line)
		stories[story](w, r)
		over := !reached()
		w.check()
		w.oneEffect(r)
		w.close()
		if t.Failed() {
			t.Fatalf("%s, killed at line %d; calls %v", story, line, w.ops)
		}
		if over {
			return
		}
	}
	t.Fatalf("%s: not over after %d lines", story, linesMost)
}
