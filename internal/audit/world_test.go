package audit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

const (
	second  = ledger.Duration(1000)
	minute  = 60 * second
	hour    = 60 * minute
	opening = ledger.Time(1_800_000_000_000)
)

// A world is a ledger in which each way of a hold, an order and its money has been gone once.
type world struct {
	t     *testing.T
	l     ledger.Ledger
	clock *ledger.Time
	ids   *id.Generator
	names map[string]id.ID
	list  books2
	path  string // the file, where it is one
	in    string // the event in which holds are made
	log   joinLog

	marked *ledger.Order // whose tickets are being exchanged in the end
}

// books2 is a provider's list, two payments a page.
type books2 []payment.Payment

func (b books2) Name() string { return "sandbox" }

func (b books2) List(_ context.Context, cursor string) (payment.Page, error) {
	at := 0
	if cursor != "" {
		if _, err := fmt.Sscanf(cursor, "%d", &at); err != nil {
			return payment.Page{}, payment.ErrInvalid
		}
	}
	p := payment.Page{Payments: b[at:min(len(b), at+2)]}
	if at+2 < len(b) {
		p.Next = fmt.Sprint(at + 2)
	}
	return p, nil
}

// hallLayout has 30 seats, 0–9 of category 0, the rest of category 1, and 3 areas, the last of them free of charge.
func hallLayout() *ledger.Layout {
	l := &ledger.Layout{PlanHash: "hall", Areas: []ledger.AreaLayout{
		{Section: 2, Category: 2, Capacity: 40}, {Section: 2, Category: 2, Capacity: 3}, {Section: 3, Category: 3, Capacity: 5},
	}}
	for i := range 30 {
		section := int16(0)
		if i >= 10 {
			section = 1
		}
		l.Section, l.Category = append(l.Section, section), append(l.Category, section)
		l.Run, l.Quality = append(l.Run, int32(i/10)), append(l.Quality, int32(i))
	}
	return l
}

func hallEvent(event, show id.ID) ledger.Event {
	return ledger.Event{
		ID: event, Organizer: 7, Show: show, Version: 1, State: ledger.OnSale, PlanHash: "hall",
		SaleOpens: opening - 1, SaleCloses: opening + ledger.Time(30*24*hour), HoldTTL: 10 * minute, PaymentWindow: 5 * minute,
		ExtendMax: 1, SeatsPerHoldMax: 6, Currency: "EUR", TaxIncluded: true,
		Tiers: []ledger.Tier{{Category: 0, Face: 5000, Fee: 250, TaxBP: 700}, {Category: 1, Face: 3000, TaxBP: 700}, {Category: 2, Face: 2000}, {Category: 3}},
		Limits: []ledger.Limit{
			{Scope: ledger.PerEvent, Max: 8}, {Scope: ledger.PerCategory, Category: 0, Max: 4}, {Scope: ledger.PerShow, Max: 10}, {Scope: ledger.PerDocument, Max: 2},
		},
		Quotas: []ledger.Quota{{Category: -1, Section: -1, Max: 60}, {Category: 0, Section: 0, Max: 10}},
	}
}

func (w *world) new(name string) id.ID {
	v := w.ids.MustNext(0)
	if name != "" {
		w.names[name] = v
	}
	return v
}

func (w *world) do(c ledger.Command) ledger.Result {
	w.t.Helper()
	b, err := w.l.Apply(context.Background(), []ledger.Command{c})
	if err != nil {
		w.t.Fatalf("%T: %v", c, err)
	}
	if f := b.Results[0].Fault; f != nil {
		w.t.Fatalf("%T: %v", c, f)
	}
	return b.Results[0]
}

// hold makes a hold {name}h of a customer {name}c.
func (w *world) hold(name string, seats ...int32) *ledger.Hold {
	w.t.Helper()
	return w.do(ledger.HoldSeats{ID: w.new(name + "h"), Event: w.names[w.in], Customer: w.new(name + "c"), Seats: seats,
		Key: ledger.Key{Value: name, Fields: []ledger.KeyField{{Name: "seat_ids", Hash: "x"}}}}).Hold
}

func (w *world) holdPlaces(name string, area int32, n int) *ledger.Hold {
	w.t.Helper()
	return w.do(ledger.HoldPlaces{ID: w.new(name + "h"), Event: w.names[w.in], Customer: w.new(name + "c"), Area: area, Quantity: n}).Hold
}

// begin makes an order {name}o for a hold.
func (w *world) begin(name string, h *ledger.Hold) *ledger.Order {
	w.t.Helper()
	return w.do(ledger.BeginPayment{Order: w.new(name + "o"), Hold: h.ID, Customer: h.Customer, Provider: "sandbox",
		Key: ledger.Key{Value: name}, Documents: []string{"doc-" + name, "doc-all"}[:1]}).Order
}

// confirm pays an order by payment pay-{name}.
func (w *world) confirm(name string, o *ledger.Order, captured bool) ledger.Result {
	w.t.Helper()
	return w.confirmBy(name, "pay-"+name, o, captured)
}

func (w *world) confirmBy(name, pay string, o *ledger.Order, captured bool) ledger.Result {
	w.t.Helper()
	tickets := make([]id.ID, 6)
	for i := range tickets {
		tickets[i] = w.new(fmt.Sprintf("%st%d", name, i))
	}
	swapped := make([]id.ID, ledger.RefundPartsMax+1)
	for i := range swapped {
		swapped[i] = w.new(fmt.Sprintf("%sx%d", name, i))
	}
	if o.Amount == 0 {
		pay = ""
	}
	r := w.do(ledger.Confirm{Order: o.ID, Payment: pay, Amount: o.Amount, Currency: "EUR", Captured: captured, Tickets: tickets,
		Refund: w.new(name + "r"), RescueHold: w.new(name + "rescue"), Exchange: swapped})
	if pay == "" {
		return r
	}
	p := payment.Payment{ID: pay, OrderID: o.ID.Text(id.Order), State: payment.Authorized, Currency: "EUR", AmountMinor: o.Amount,
		AuthorizedMinor: o.Amount, CreatedAt: w.clock.Std()}
	if captured {
		p.State, p.CapturedMinor = payment.Captured, o.Amount
	}
	w.list = append(w.list, p)
	return r
}

// record tells both the ledger and the provider's list what became of a payment.
func (w *world) record(name string, o *ledger.Order, state ledger.PaymentState, refund id.ID) {
	w.t.Helper()
	w.do(ledger.RecordPayment{Order: o.ID, Payment: "pay-" + name, State: state, Amount: o.Amount, Refund: refund})
	for i := range w.list {
		p := &w.list[i]
		if p.ID != "pay-"+name {
			continue
		}
		switch state {
		case ledger.PaymentCaptured:
			p.State, p.CapturedMinor = payment.Captured, o.Amount
		case ledger.PaymentVoided, ledger.PaymentCaptureRefused:
			p.State = payment.Voided
		case ledger.PaymentRefunded:
			w.back(p, ledger.Refund{ID: refund, Amount: o.Amount})
		}
	}
}

func (w *world) pass(d ledger.Duration) { *w.clock += ledger.Time(d) }

func newWorld(t *testing.T, clock *ledger.Time, open func(now func() ledger.Time) ledger.Ledger) *world {
	w := &world{t: t, clock: clock, names: map[string]id.ID{}, in: "event", log: joinLog{}}
	w.ids = id.NewGenerator(0, func() time.Time { return clock.Std() }, 0, nil)
	w.l = open(func() ledger.Time { return *clock })
	w.new("event")
	w.new("other")
	w.new("show")
	w.do(ledger.SetEvent{Event: hallEvent(w.names["event"], w.names["show"]), Layout: hallLayout()})
	w.do(ledger.SetEvent{Event: hallEvent(w.names["other"], w.names["show"]), Layout: hallLayout()})
	w.openShop()
	w.shop()
	w.sell()
	w.shopUnderWay()
	w.queue()
	w.waitlist()
	return w
}

// sell goes each way once.
func (w *world) sell() {
	// Ended long ago, and the seats went on.
	taken := w.hold("takenover", 20)
	late := w.begin("late", w.hold("late", 21))
	rescued := w.begin("rescued", w.hold("rescued", 22, 23))
	voided := w.begin("voided", w.hold("voided", 24))
	w.pass(11 * minute)
	w.hold("taker", taken.Lines[0].Seat)
	w.hold("quick", 21)
	w.hold("quicker", 24)
	if w.confirm("late", late, true); true {
		w.record("late", late, ledger.PaymentRefunded, w.names["later"])
	}
	if r := w.confirm("rescued", rescued, true); !r.Order.Rescued {
		w.t.Fatalf("not rescued: %+v", r.Order)
	}
	w.confirm("voided", voided, false)
	w.record("voided", voided, ledger.PaymentVoided, w.names["voidedr"])

	// Paid, by money taken at once and by money taken later.
	paid := w.begin("paid", w.hold("paid", 0, 1))
	w.confirm("paid", paid, true)
	auth := w.begin("auth", w.hold("auth", 2, 3))
	w.confirm("auth", auth, false)
	w.record("auth", auth, ledger.PaymentCaptured, 0)
	due := w.begin("due", w.hold("due", 25))
	w.confirm("due", due, false)
	refused := w.begin("refused", w.hold("refused", 26))
	w.confirm("refused", refused, false)
	w.record("refused", refused, ledger.PaymentCaptureRefused, w.new("refusedr"))
	w.confirm("standing", w.begin("standing", w.holdPlaces("standing", 0, 6)), true)
	w.confirm("free", w.begin("free", w.holdPlaces("free", 2, 2)), false)
	w.confirmBy("second", "pay-second", paid, true)

	// Not paid.
	w.do(ledger.FailPayment{Order: w.begin("failed", w.hold("failed", 27)).ID, Reason: "card_declined"})
	w.do(ledger.FailPayment{Order: w.begin("cancelled", w.hold("cancelled", 28)).ID, Cancelled: true})
	released := w.hold("released", 29)
	w.do(ledger.Release{Hold: released.ID, Customer: released.Customer})
	w.do(ledger.Block{Event: w.names["event"], Seats: []int32{17, 18}})
	w.do(ledger.Unblock{Event: w.names["event"], Seats: []int32{17}})
	w.hold("unswept", 7, 8)
	w.pass(9 * minute)

	// Still under way.
	w.begin("pending", w.hold("pending", 4, 5))
	w.hold("live", 6, 9)
	w.holdPlaces("room", 0, 3)
	w.pass(3 * minute)
}

// publish marks all notices but those of the order named.
func (w *world) publish(but string) {
	w.t.Helper()
	ctx := context.Background()
	lease, ok, err := w.l.Acquire(ctx, "outbox", "test", 10*minute)
	if err != nil || !ok {
		w.t.Fatal(ok, err)
	}
	notices, err := w.l.Unpublished(ctx, 1000, []id.ID{w.names[but]})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.l.MarkPublished(ctx, lease, notices); err != nil {
		w.t.Fatal(err)
	}
}

// fill puts the ids in the place of {name} in SQL.
func (w *world) fill(text string) string {
	pairs := make([]string, 0, 2*len(w.names))
	for name, v := range w.names {
		pairs = append(pairs, "{"+name+"}", number(v))
	}
	return strings.NewReplacer(append(pairs, "{now}", fmt.Sprint(*w.clock))...).Replace(text)
}
