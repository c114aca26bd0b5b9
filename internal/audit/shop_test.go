package audit

import (
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// The shop is a second show of two events, in which what was bought is given back, exchanged, passed on and used. A seat of
// category 0 costs 52.50, one of category 1 30.00. Of a refund 10 % and 1.00 a ticket are kept, of an exchange 3.00.

func (w *world) openShop() {
	w.new("shop")
	w.new("matinee")
	w.new("run")
	for _, name := range []string{"shop", "matinee"} {
		w.do(ledger.SetEvent{Event: hallEvent(w.names[name], w.names["run"]), Layout: hallLayout()})
		until := opening + ledger.Time(20*24*hour)
		e := hallEvent(w.names[name], w.names["run"])
		e.Version = 2
		e.Refunds = ledger.RefundRule{Until: until, FeeBP: 1000, FeePlace: 100}
		e.Exchanges = ledger.ExchangeRule{Until: until, Fee: 300}
		e.Transfers = ledger.TransferRule{Until: until}
		w.do(ledger.SetEvent{Event: e})
	}
	w.pass(second)
}

// buy makes a PAID order {name}o on seats, captured, with tickets {name}t0, ….
func (w *world) buy(name string, seats ...int32) *ledger.Order {
	w.t.Helper()
	return w.confirm(name, w.begin(name, w.hold(name, seats...)), true).Order
}

// refund gives tickets back on the customer's word: refunds {name}r0, ….
func (w *world) refund(name string, o *ledger.Order, tickets ...id.ID) []ledger.Refund {
	w.t.Helper()
	return w.refundAs(name, ledger.BeginRefund{
		Order: o.ID, Customer: o.Customer, By: ledger.ByCustomer, Tickets: tickets, Key: ledger.Key{Value: name},
	})
}

func (w *world) refundAs(name string, c ledger.BeginRefund) []ledger.Refund {
	w.t.Helper()
	for i := range ledger.RefundPartsMax {
		c.IDs = append(c.IDs, w.new(name+"r"+itoa(i)))
	}
	w.do(c)
	return w.refundsOf(c.Order)
}

func (w *world) refundsOf(order id.ID) []ledger.Refund {
	w.t.Helper()
	list, err := w.l.RefundsOf(w.t.Context(), order)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// back puts a refund that is done in the provider's books.
func (w *world) back(p *payment.Payment, r ledger.Refund) {
	p.RefundedMinor += r.Amount
	p.Refunds = append(p.Refunds, payment.Refund{ID: r.Key(), PaymentID: p.ID, AmountMinor: r.Amount, State: payment.RefundDone, CreatedAt: w.clock.Std()})
}

// settle does what is still to be done of refunds, at the provider and in the ledger.
func (w *world) settle(refunds ...ledger.Refund) {
	w.t.Helper()
	for _, r := range refunds {
		if r.State != ledger.RefundRequested {
			continue
		}
		w.back(listed(w.list, r.Payment), r)
		w.do(ledger.RecordPayment{Order: r.From, Payment: r.Payment, State: ledger.PaymentRefunded, Amount: r.Amount, Refund: r.ID})
	}
}

func (w *world) release(r ledger.Refund) {
	w.t.Helper()
	w.do(ledger.ReleaseSeats{Refund: r.ID})
}

// exchangeHold holds seats in the place of tickets of an order: {name}h.
func (w *world) exchangeHold(name string, o *ledger.Order, tickets []id.ID, seats ...int32) *ledger.Hold {
	w.t.Helper()
	return w.do(ledger.HoldSeats{ID: w.new(name + "h"), Event: w.names[w.in], Customer: o.Customer, Seats: seats,
		Exchange: ledger.Exchange{Order: o.ID, Tickets: tickets}}).Hold
}

// swap exchanges tickets of an order: {name}o by pay-{name}.
func (w *world) swap(name string, o *ledger.Order, tickets []id.ID, seats ...int32) *ledger.Order {
	w.t.Helper()
	return w.confirm(name, w.begin(name, w.exchangeHold(name, o, tickets, seats...)), true).Order
}

func (w *world) transfer(name string, ticket, from, to id.ID) id.ID {
	w.t.Helper()
	return w.do(ledger.Transfer{ID: w.new(name), Ticket: ticket, Customer: from, To: to, Document: "doc-" + name, Key: ledger.Key{Value: name}}).Ticket.ID
}

func (w *world) checkIn(ticket id.ID) {
	w.t.Helper()
	w.do(ledger.CheckIn{Ticket: ticket, Event: w.names[w.in], Gate: "north", Device: "d1", By: 9})
}

func (w *world) checkInOffline(ticket id.ID, device string) {
	w.t.Helper()
	w.do(ledger.CheckIn{Ticket: ticket, Event: w.names[w.in], Gate: "south", Device: device, By: 9, Offline: true, At: *w.clock - 5000})
}

func ids(tickets []ledger.Ticket, which ...int) (list []id.ID) {
	for _, i := range which {
		list = append(list, tickets[i].ID)
	}
	return list
}

// shop goes each way of a ticket once.
func (w *world) shop() {
	w.in = "shop"
	defer func() { w.in = "event" }()
	w.giveBack()
	w.exchange()
	w.passOn()
	w.door()
	w.marked = w.buy("marked", 19, 29)
	w.exchangeHold("stale", w.marked, nil, 27)
}

func (w *world) giveBack() {
	one := w.buy("back", 0, 1)
	r := w.refund("back", one, one.Tickets[0].ID)
	w.settle(r...)
	w.release(r[0])

	all := w.buy("allback", 18)
	r = w.refund("allback", all)
	w.settle(r...)
	w.release(r[0])

	w.refund("wait", w.buy("wait", 2, 3))
	no := w.refund("no", w.buy("no", 4))[0]
	w.do(ledger.RefuseRefund{Refund: no.ID, Reason: "charge_disputed"})

	again := w.buy("again", 5, 6)
	r = w.refund("again", again, again.Tickets[1].ID)
	w.do(ledger.RefuseRefund{Refund: r[0].ID, Reason: "insufficient_funds"})
	w.do(ledger.RetryRefund{Refund: r[0].ID, Try: 1})
	w.settle(w.refundsOf(again.ID)...)

	stand := w.confirm("stand", w.begin("stand", w.holdPlaces("stand", 0, 3)), true).Order
	r = w.refund("stand", stand, stand.Tickets[1].ID)
	w.settle(r...)
	w.release(r[0])
	free := w.confirm("gratis", w.begin("gratis", w.holdPlaces("gratis", 2, 2)), true).Order
	w.refund("gratis", free, free.Tickets[0].ID)
}

func (w *world) exchange() {
	// On top: what is given back then lies in two payments.
	swapped := w.swap("dearer", w.buy("swap", 10, 11), nil, 7, 8)
	r := w.refundAs("dearer", ledger.BeginRefund{
		Order: swapped.ID, Customer: 7, By: ledger.ByOrganizer, Tickets: ids(swapped.Tickets, 0), Fee: 50, Reason: "goodwill", Key: ledger.Key{Value: "g"},
	})
	w.settle(r...)
	// Back: a part of two tickets.
	down := w.buy("down", 9, 21)
	w.swap("cheaper", down, ids(down.Tickets, 0), 22)
	w.settle(w.refundsOf(down.ID)...)
	// To the other event, and once more.
	w.in = "matinee"
	cross := w.swap("cross", w.onceIn("shop", "old", 20), nil, 12)
	w.swap("crossed", cross, nil, 13)
	w.in = "shop"
	// Begun, and not paid.
	failed := w.begin("unpaid", w.exchangeHold("unpaid", w.buy("kept", 25), nil, 26))
	w.do(ledger.FailPayment{Order: failed.ID, Reason: "card_declined"})
	w.do(ledger.Release{Hold: failed.Hold, Customer: failed.Customer})
}

// onceIn buys in another event.
func (w *world) onceIn(event, name string, seats ...int32) *ledger.Order {
	was := w.in
	w.in = event
	defer func() { w.in = was }()
	return w.buy(name, seats...)
}

func (w *world) passOn() {
	give := w.buy("give", 13, 14)
	friend, stranger := w.new("friendc"), w.new("strangerc")
	one := w.transfer("given", give.Tickets[0].ID, give.Customer, friend)
	w.transfer("regiven", one, friend, stranger)
	two := w.transfer("lent", give.Tickets[1].ID, give.Customer, friend)
	w.transfer("returned", two, friend, give.Customer)
	// Passed on, and given back by the organizer.
	gone := w.buy("gone", 23)
	w.transfer("gonet", gone.Tickets[0].ID, gone.Customer, friend)
	w.settle(w.refundAs("gone", ledger.BeginRefund{Order: gone.ID, Customer: 7, By: ledger.ByOrganizer, Reason: "goodwill"})...)
}

func (w *world) door() {
	used := w.buy("used", 15, 16, 17).Tickets
	w.checkIn(used[0].ID)
	w.checkInOffline(used[0].ID, "d2")
	w.checkIn(used[1].ID)
	w.do(ledger.UndoCheckIn{Ticket: used[1].ID, Event: w.names["shop"], By: 9, Reason: "wrong person"})
	w.checkInOffline(used[2].ID, "d3")
	w.checkInOffline(w.names["backt0"], "d3")
	// USED, and given back (A4).
	late := w.buy("usedback", 24)
	w.checkIn(late.Tickets[0].ID)
	w.refundAs("usedback", ledger.BeginRefund{Order: late.ID, Customer: 7, By: ledger.ByOrganizer, Used: true, Reason: "fell ill", Key: ledger.Key{Value: "u"}})
}

// shopUnderWay leaves exchanges that are not decided yet: one whose time is up, and another of the same ticket.
func (w *world) shopUnderWay() {
	w.in = "shop"
	defer func() { w.in = "event" }()
	w.in = "matinee"
	w.begin("marking", w.exchangeHold("marking", w.marked, ids(w.marked.Tickets, 0), 14, 15))
	if !slices.ContainsFunc(w.list, func(p payment.Payment) bool { return len(p.Refunds) > 0 }) {
		w.t.Fatal("nothing was given back")
	}
}
