package ledgertest

import (
	"context"
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Drawing the commands of a history. Most of them name what is there and may succeed, or the history would be one of
// refusals; some name what is dead or was never there.

func (h *history) id() id.ID {
	h.lastID++
	return h.lastID
}

// among draws 0…n-1, each as likely as the others: rapid's own ranges prefer small numbers.
func (h *history) among(n int, label string) int {
	if n == 1 {
		return 0
	}
	return rapid.Custom(func(t *rapid.T) int {
		v, span := 0, 1
		for span < n {
			v, span = 2*v, 2*span
			if rapid.Bool().Draw(t, "bit") {
				v++
			}
		}
		return v * n / span
	}).Draw(h.T, label)
}

func oneOf[T any](h *history, label string, choices ...T) T {
	return choices[h.among(len(choices), label)]
}

func (h *history) oneIn(n int, label string) bool { return h.among(n, label) == n-1 }

func (h *history) drawEvent() id.ID {
	if h.oneIn(40, "unknown event") {
		return 999
	}
	return oneOf(h, "event", mainEvent, mainEvent, mainEvent, otherEvent)
}

func (h *history) drawCustomer() id.ID { return oneOf(h, "customer", alice, bob, carol, dave) }

// drawFrom picks mostly one of those that fit, else one of all, or one that is not there.
func (h *history) drawFrom(all, fitting []id.ID, label string) id.ID {
	from := fitting
	if len(from) == 0 || h.oneIn(5, "any "+label) {
		from = all
	}
	if len(from) == 0 || h.oneIn(25, "unknown "+label) {
		return 999
	}
	return oneOf(h, label, from...)
}

func (h *history) drawKey(fields ...string) ledger.Key {
	if !h.oneIn(4, "with a key") {
		return ledger.Key{}
	}
	return keyOf(oneOf(h, "key", "k1", "k2", "k3", "k4", "k5"), fields...)
}

func (h *history) drawSeats(most int) []int32 {
	if h.oneIn(30, "odd seats") {
		return oneOf(h, "seats", nil, []int32{seatNone, 1}, []int32{3, 3}, []int32{seatUnpriced}, []int32{-1}, []int32{0, 1, 2, 3, 4, 5, 6})
	}
	n := 1 + h.among(most, "how many seats")
	if free := h.freeSeats(); h.shop && len(free) > 0 && !h.oneIn(6, "any seat") {
		at := h.among(len(free), "first seat")
		return free[at:min(len(free), at+n)]
	}
	if !h.oneIn(3, "apart") {
		var seats []int32
		for i := range n {
			seats = append(seats, int32(min(i+h.among(hallSeats-n, "first seat"), hallSeats-2)))
			if i > 0 {
				seats[i] = seats[i-1] + 1
			}
		}
		return seats
	}
	return rapid.Permutation([]int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).Draw(h.T, "seats")[:n]
}

// freeSeats are seats that are free in the main event.
func (h *history) freeSeats() (free []int32) {
	s, err := h.model.Snapshot(context.Background(), mainEvent)
	if err != nil {
		return nil
	}
	for i, seat := range s.Seats {
		if seat.State == ledger.Available && i != seatUnpriced {
			free = append(free, int32(i))
		}
	}
	return free
}

func (h *history) drawCommand() ledger.Command {
	if len(h.sent) > 2 && h.oneIn(14, "send again") {
		if c := h.sent[h.among(len(h.sent), "which")]; repeatable(c) {
			return c
		}
	}
	type choice struct {
		weight int
		draw   func() ledger.Command
	}
	choices := []choice{
		{22, h.drawHoldSeats}, {10, h.drawHoldPlaces}, {4, h.drawExtend}, {6, h.drawRelease}, {22, h.drawBeginPayment},
		{24, h.drawConfirm}, {4, h.drawFailPayment}, {14, h.drawRecordPayment}, {3, h.drawSweep}, {3, h.drawBlock},
		{4, h.drawUnblock}, {4, h.drawSetEvent},
		{8, h.drawBeginRefund}, {4, h.drawRefuseRefund}, {6, h.drawReleaseSeats}, {8, h.drawExchange}, {6, h.drawTransfer},
		{8, h.drawCheckIn}, {3, h.drawUndoCheckIn},
	}
	if h.shop {
		choices = []choice{
			{5, h.drawHoldSeats}, {3, h.drawHoldPlaces}, {1, h.drawRelease}, {16, h.drawBeginPayment}, {20, h.drawConfirm},
			{1, h.drawFailPayment}, {14, h.drawRecordPayment}, {1, h.drawSweep}, {1, h.drawSetEvent},
			{10, h.drawBeginRefund}, {4, h.drawRefuseRefund}, {8, h.drawReleaseSeats}, {20, h.drawExchange}, {7, h.drawTransfer},
			{4, h.drawCheckIn}, {3, h.drawUndoCheckIn},
		}
	}
	if h.list {
		choices = []choice{
			{10, h.drawHoldSeats}, {8, h.drawHoldPlaces}, {10, h.drawRelease}, {1, h.drawExtend}, {10, h.drawBeginPayment}, {12, h.drawConfirm},
			{3, h.drawFailPayment}, {4, h.drawRecordPayment}, {4, h.drawBeginRefund}, {4, h.drawReleaseSeats}, {4, h.drawSweep}, {2, h.drawBlock},
			{2, h.drawUnblock}, {2, h.drawSetEvent}, {14, h.drawAddWish}, {4, h.drawWithdrawWish}, {22, h.drawOffer}, {8, h.drawSettleWish},
			{4, h.drawReleaseReturned}, {3, h.drawSetReturns},
		}
	}
	if h.late {
		choices = []choice{
			{30, h.drawHoldSeats}, {8, h.drawHoldPlaces}, {25, h.drawBeginPayment}, {25, h.drawConfirm}, {3, h.drawSweep},
			{2, h.drawBlock}, {2, h.drawRecordPayment},
		}
	}
	if h.kind == roomHistory {
		choices = []choice{
			{20, h.drawAdvance}, {26, h.drawEnter}, {5, h.drawLeave}, {16, h.drawHoldSeats}, {6, h.drawHoldPlaces}, {2, h.drawExtend},
			{4, h.drawRelease}, {10, h.drawBeginPayment}, {12, h.drawConfirm}, {2, h.drawFailPayment}, {2, h.drawSweep}, {3, h.drawSetEvent},
			{2, h.drawRoomNumbers}, {3, h.drawTakeCode}, {2, h.drawOpening}, {2, h.drawExchange},
		}
	}
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	at := h.among(total, "kind")
	for _, c := range choices {
		if at -= c.weight; at < 0 {
			return c.draw()
		}
	}
	panic("unreachable")
}

// repeatable says whether a command may come twice: a hold or order is made by its id once, so only a key makes its
// repetition harmless.
func repeatable(c ledger.Command) bool {
	switch c := c.(type) {
	case ledger.HoldSeats:
		return c.Key.Value != ""
	case ledger.HoldPlaces:
		return c.Key.Value != ""
	case ledger.BeginPayment:
		return c.Key.Value != ""
	case ledger.BeginRefund:
		return c.Key.Value != ""
	case ledger.AddWish:
		return c.Key.Value != ""
	}
	return true
}

func (h *history) drawHoldSeats() ledger.Command {
	c := ledger.HoldSeats{ID: h.id(), Event: h.drawEvent(), Customer: h.drawCustomer(), Seats: h.drawSeats(3)}
	h.inSession(c.Event, &c.Customer, &c.Session)
	c.Key = h.drawKey("event", fmt.Sprint(c.Event), "seats", fmt.Sprint(len(c.Seats)))
	if h.kind != roomHistory && h.oneIn(5, "with a session") {
		c.Session = 7
	}
	return c
}

func (h *history) drawHoldPlaces() ledger.Command {
	c := ledger.HoldPlaces{
		ID: h.id(), Event: h.drawEvent(), Customer: h.drawCustomer(),
		Area: oneOf[int32](h, "area", 0, 0, 0, 1, 1, 1, areaNone), Quantity: oneOf(h, "quantity", 1, 2, 3, 1, 2, 3, 1, 4, 0),
	}
	h.inSession(c.Event, &c.Customer, &c.Session)
	c.Key = h.drawKey("event", fmt.Sprint(c.Event), "quantity", fmt.Sprint(c.Quantity))
	return c
}

// drawHoldOf picks a hold, mostly one that nobody has ended and that is not being paid, and mostly its customer.
func (h *history) drawHoldOf() (hold, customer id.ID) {
	hold, customer = h.drawFrom(h.holds, h.payable(), "hold"), h.drawCustomer()
	if known, err := h.model.Hold(context.Background(), hold); err == nil && !h.oneIn(15, "another customer") {
		customer = known.Customer
	}
	return hold, customer
}

// payable are the holds for which a payment may begin.
func (h *history) payable() []id.ID {
	now, _ := h.model.Now(context.Background())
	return h.holdsWhere(func(o ledger.Hold) bool { return o.Live(now) && o.Order == 0 })
}

// lost are the orders that wait for a payment, but whose hold is gone.
func (h *history) lost() []id.ID {
	ctx := context.Background()
	now, _ := h.model.Now(ctx)
	return h.ordersWhere(func(o ledger.Order) bool {
		hold, err := h.model.Hold(ctx, o.Hold)
		return err == nil && o.State == ledger.OrderPending && !hold.Live(now)
	})
}

func (h *history) holdsWhere(is func(ledger.Hold) bool) (fitting []id.ID) {
	for _, hold := range h.holds {
		if known, err := h.model.Hold(context.Background(), hold); err == nil && is(known) {
			fitting = append(fitting, hold)
		}
	}
	return fitting
}

func (h *history) ordersWhere(is func(ledger.Order) bool) (fitting []id.ID) {
	for _, order := range h.orders {
		if known, err := h.model.Order(context.Background(), order); err == nil && is(known) {
			fitting = append(fitting, order)
		}
	}
	return fitting
}

func (h *history) drawExtend() ledger.Command {
	hold, customer := h.drawHoldOf()
	return ledger.Extend{Hold: hold, Customer: customer}
}

func (h *history) drawRelease() ledger.Command {
	hold, customer := h.drawHoldOf()
	return ledger.Release{Hold: hold, Customer: customer}
}

func (h *history) drawBeginPayment() ledger.Command {
	if len(h.payable()) == 0 && !h.oneIn(6, "nothing to pay") {
		return h.drawHoldSeats()
	}
	hold, customer := h.drawHoldOf()
	c := ledger.BeginPayment{
		Order: h.id(), Hold: hold, Customer: customer, Key: h.drawKey("hold", fmt.Sprint(hold)), Provider: "sandbox",
		AllowOther: !h.oneIn(3, "no other"),
	}
	places := 1
	if known, err := h.model.Hold(context.Background(), hold); err == nil {
		places = len(known.Lines)
		if e, err := h.model.Event(context.Background(), known.Event); err == nil && !e.Documents && h.oneIn(2, "no documents") {
			places = 0
		}
	}
	for range places + h.among(20, "a document too many")/19 {
		c.Documents = append(c.Documents, oneOf(h, "document", "d1", "d2", "d3", "d4", "d5", "d6", ""))
	}
	return c
}

func (h *history) drawPayment() string { return oneOf(h, "payment", "p1", "p1", "p1", "p1", "p2") }

// drawOrder picks an order, mostly one that is still PENDING; one whose hold is lost is the most interesting.
func (h *history) drawOrder() id.ID {
	fitting := h.ordersWhere(func(o ledger.Order) bool { return o.State == ledger.OrderPending })
	if lost := h.lost(); len(lost) > 0 && (h.late || h.oneIn(2, "of a lost hold")) {
		fitting = lost
	}
	return h.drawFrom(h.orders, fitting, "order")
}

func (h *history) drawConfirm() ledger.Command {
	ctx := context.Background()
	pending := h.ordersWhere(func(o ledger.Order) bool { return o.State == ledger.OrderPending })
	if (len(pending) == 0 || h.late && len(h.lost()) == 0) && !h.oneIn(6, "nothing to confirm") {
		return h.drawBeginPayment()
	}
	c := ledger.Confirm{
		Order: h.drawOrder(), Payment: h.drawPayment(), Currency: "EUR",
		Captured: h.shop || h.oneIn(2, "captured"), Refund: h.id(), RescueHold: h.id(),
	}
	lines := 1
	if o, err := h.model.Order(ctx, c.Order); err == nil {
		hold, _ := h.model.Hold(ctx, o.Hold)
		lines, c.Amount = len(hold.Lines), o.Amount
		if o.Exchange != 0 {
			c.Captured = !h.oneIn(8, "not captured")
			c.Exchange = h.ids(ledger.RefundPartsMax + 1 - h.among(20, "too few ids")/19)
		}
		if o.Amount == 0 && !h.oneIn(8, "paid for nothing") {
			c.Payment, c.Captured = "", false
		}
	}
	if h.oneIn(15, "another amount") {
		c.Amount++
		c.Payment = "p2"
	}
	if h.oneIn(30, "too few tickets") {
		lines--
	}
	for range lines {
		c.Tickets = append(c.Tickets, h.id())
	}
	return c
}

func (h *history) drawFailPayment() ledger.Command {
	return ledger.FailPayment{Order: h.drawOrder(), Cancelled: h.oneIn(3, "cancelled"), Reason: "declined"}
}

func (h *history) drawRecordPayment() ledger.Command {
	ctx := context.Background()
	c := ledger.RecordPayment{
		Order: h.drawFrom(h.orders, h.ordersWhere(func(ledger.Order) bool { return true }), "order"), Payment: h.drawPayment(),
		State: oneOf(h, "state", ledger.PaymentAuthorized, ledger.PaymentCaptured, ledger.PaymentCaptured, ledger.PaymentVoided,
			ledger.PaymentRefunded, ledger.PaymentCaptureRefused),
	}
	if o, err := h.model.Order(ctx, c.Order); err == nil {
		c.Amount = o.Amount
	}
	if c.State == ledger.PaymentCaptureRefused && !h.oneIn(8, "no refund") {
		c.Refund = h.id()
	}
	open, err := h.model.OpenPayments(ctx, math.MaxInt32)
	if err != nil {
		h.fail("the model: %v", err)
	}
	if len(open) > 0 && !h.oneIn(oneOf(h, "of", 3, 8), "what nobody waits for") {
		h.settle(&c, oneOf(h, "due", open...))
	}
	if h.oneIn(12, "another amount") {
		c.Amount += oneOf[int64](h, "by", -1, 1)
	}
	return c
}

// settle makes a record of what is due for a payment, as mostly happens, or of what else may have become of it.
func (h *history) settle(c *ledger.RecordPayment, due ledger.OpenPayment) {
	c.Order, c.Payment, c.Amount = due.Payment.Order, due.Payment.ID, due.Payment.Authorized
	switch {
	case h.oneIn(4, "otherwise"):
	case due.Refund == nil && h.oneIn(2, "capture refused"):
		c.State, c.Refund, c.Amount = ledger.PaymentCaptureRefused, h.id(), 0
	case due.Refund == nil:
		c.State, c.Refund = ledger.PaymentCaptured, 0
	case due.Payment.State == ledger.PaymentAuthorized:
		c.State, c.Refund = ledger.PaymentVoided, oneOf(h, "named", due.Refund.ID, 0)
	default:
		c.State, c.Refund, c.Amount = ledger.PaymentRefunded, due.Refund.ID, due.Refund.Amount
	}
}

func (h *history) drawSweep() ledger.Command {
	return ledger.Sweep{Event: oneOf(h, "event", 0, mainEvent, otherEvent, 999), Max: h.among(4, "max")}
}

func (h *history) drawBlock() ledger.Command {
	return ledger.Block{Event: h.drawEvent(), Seats: h.drawSeats(3), WhenFree: h.oneIn(2, "when free")}
}

func (h *history) drawUnblock() ledger.Command {
	return ledger.Unblock{Event: h.drawEvent(), Seats: h.drawSeats(4)}
}

func (h *history) drawSetEvent() ledger.Command {
	event := oneOf(h, "event", mainEvent, otherEvent)
	if h.oneIn(15, "stop") {
		return ledger.Stop{Event: oneOf(h, "event", event, event, 999)}
	}
	e, err := h.model.Event(context.Background(), event)
	if err != nil {
		h.fail("the model: %v", err)
	}
	e.Version += oneOf[int64](h, "version", 1, 1, 1, 1, 1, 1, 0, -1)
	h.drawRules(&e)
	if h.oneIn(15, "another plan") {
		e.PlanHash = "hall-2"
	}
	if h.oneIn(15, "what cannot be") {
		e.HoldTTL = 0
	}
	return ledger.SetEvent{Event: e, Looked: h.oneIn(2, "looked")}
}

// drawRules sets what an organizer may change. Mostly an event sells, under few bounds.
func (h *history) drawRules(e *ledger.Event) {
	e.State = ledger.OnSale
	if h.oneIn(8, "not on sale") && (!h.shop || h.oneIn(3, "nor the shop")) {
		e.State = oneOf(h, "event state", ledger.Paused, ledger.Ended, ledger.Cancelled, ledger.Draft)
	}
	e.Returns = oneOf(h, "returns", ledger.ReturnsAvailable, ledger.ReturnsAvailable, ledger.ReturnsWaitlist)
	if h.list {
		e.Returns = ledger.ReturnsWaitlist
	}
	e.Waitlist = !h.oneIn(12, "no waitlist")
	e.ExtendMax = h.among(3, "extend max")
	e.SeatsPerHoldMax = oneOf(h, "seats per hold max", 6, 6, 6, 2)
	e.Show = oneOf(h, "show", theShow, theShow, theShow, theShow+1)
	if h.shop && !h.oneIn(5, "another show") {
		e.Show = theShow
	}
	h.drawShopRules(e)
	h.drawRoomRule(e)
	e.Limits, e.Quotas = nil, nil
	if h.late && !h.oneIn(3, "bounded") || h.shop && h.oneIn(2, "not bounded") {
		return
	}
	for _, l := range []ledger.Limit{
		{Scope: ledger.PerEvent}, {Scope: ledger.PerCategory, Category: 0}, {Scope: ledger.PerCategory, Category: 1},
		{Scope: ledger.PerShow}, {Scope: ledger.PerDocument},
	} {
		if h.oneIn(4, "with a limit") {
			l.Max = 2 + h.among(6, "limit")
			e.Limits = append(e.Limits, l)
		}
	}
	for _, q := range []ledger.Quota{{Category: 0, Section: -1}, {Category: 1, Section: 1}, {Category: -1, Section: -1}} {
		if h.oneIn(5, "with a quota") {
			q.Max = 2 + h.among(10, "quota")
			if h.oneIn(2, "with a step") {
				q.Steps = []ledger.QuotaStep{{At: start + ledger.Time(minute), Max: h.among(14, "step")}}
			}
			e.Quotas = append(e.Quotas, q)
		}
	}
	e.Tiers = slices.Clone(e.Tiers)
	e.Tiers[0].Face = oneOf[int64](h, "price", 5000, 5000, 4999)
}
