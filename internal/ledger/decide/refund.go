package decide

import (
	"cmp"
	"fmt"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A draw of money is what one payment gives: for a refund, or for an order that tickets were exchanged for.
type moneyDraw struct {
	from     id.ID // the order whose payment it is
	provider string
	payment  string
	amount   int64
}

// A purse is the money of an order that is not promised to anybody: in its own payment, and in its funds.
type purse struct {
	order   *Order
	payment *Payment // its own, nil where it cost nothing
	funds   []ledger.Fund
}

// purseOf opens an order's purse. It is refused while the order's payment is not captured.
func (w *Work) purseOf(o *Order) (*purse, error) {
	p := &purse{order: o, funds: o.Funds}
	if o.Amount == 0 {
		return p, nil
	}
	payment, err := w.payment(PaymentKey{o.ID, o.Provider, o.Payment})
	if err != nil {
		return nil, err
	}
	if payment == nil {
		return nil, invariant(o.Event, "order %d is %s by a payment that is not there", o.ID, o.State)
	}
	if payment.State != ledger.PaymentCaptured && payment.State != ledger.PaymentRefunded && on(GuardRefundCaptured) {
		return nil, &fault.Error{Code: fault.PaymentInProgress, Order: o.ID}
	}
	p.payment = payment
	return p, nil
}

// own is what is left of the order's own payment.
func (p *purse) own() int64 {
	if p.payment == nil {
		return 0
	}
	captured := p.payment.Captured
	if !on(GuardRefundCaptured) {
		captured = max(captured, p.payment.Authorized)
	}
	return max(0, captured-p.payment.Promised)
}

// left is what is in it.
func (p *purse) left() int64 {
	sum := p.own()
	for _, f := range p.funds {
		sum += f.Left
	}
	return sum
}

// lacks refuses to take more out of it than there is: where less was captured than the tickets cost.
func (p *purse) lacks(amount int64) error {
	if left := p.left(); amount > left && on(GuardRefundAmount) {
		return fault.New(fault.Conflict, "only %d is left of the booking's money", left)
	}
	return nil
}

// promise sets an amount aside: of the own payment first, then of the funds in their order.
func (w *Work) promise(p *purse, amount int64) []moneyDraw {
	var draws []moneyDraw
	n := min(amount, p.own())
	if amount > p.left() && p.payment != nil { // only without GuardRefundAmount
		n = amount
	}
	if n > 0 {
		w.paymentSet(p.payment).Promised += n
		draws = append(draws, moneyDraw{p.order.ID, p.payment.Provider, p.payment.ID, n})
		amount -= n
	}
	for i, f := range p.funds {
		n := min(amount, f.Left)
		if n <= 0 {
			continue
		}
		p.funds = slices.Clone(p.funds)
		p.funds[i].Left -= n
		w.orderRemake(p.order).Funds = p.funds
		draws = append(draws, moneyDraw{f.Order, f.Provider, f.Payment, n})
		amount -= n
	}
	return draws
}

// refundsNew makes a refund row for each draw of money, all of them after the model of the first.
func (w *Work) refundsNew(ids []id.ID, model ledger.Refund, draws []moneyDraw) []*Refund {
	var made []*Refund
	for i, d := range draws {
		r := model
		r.ID, r.From, r.Provider, r.Payment, r.Amount = ids[i], d.from, d.provider, d.payment, d.amount
		r.State, r.Created = ledger.RefundRequested, w.Now
		if i > 0 {
			r.Tickets, r.FeeKept, r.Rule = nil, 0, ""
		}
		made = append(made, w.refundSet(&Refund{Row: Row{New: true}, Refund: r}))
	}
	return made
}

func (w *Work) beginRefund(c ledger.BeginRefund) (ledger.Result, error) {
	key := IdemKey{c.Customer, ledger.OpRefund, c.Key.Value}
	subject, err := w.repeat(key, c.Key.Fields)
	if err != nil {
		return ledger.Result{}, err
	}
	if subject != 0 {
		r, o, err := w.refundOf(subject)
		if err != nil {
			return ledger.Result{}, err
		}
		return w.ticketsAnswer(o, ledger.Result{Repeat: true, Refund: r.view()})
	}
	o, tickets, err := w.refunding(c)
	if err != nil {
		return ledger.Result{}, err
	}
	kept, rule, err := w.kept(c, o, tickets)
	if err != nil {
		return ledger.Result{}, err
	}
	if err := w.refundable(c, o, tickets); err != nil {
		return ledger.Result{}, err
	}
	money, err := w.purseOf(o)
	if err != nil {
		return ledger.Result{}, err
	}
	amount := totalOf(tickets) - kept
	if err := money.lacks(amount); err != nil {
		return ledger.Result{}, err
	}
	r := w.give(c, o, tickets, ledger.Refund{
		Order: o.ID, Tickets: ticketIDs(tickets), FeeKept: kept, Rule: rule, Currency: o.Currency, Reason: refundReason(c), By: c.Customer,
	}, w.promise(money, amount))
	w.keyAdd(key, r.ID, c.Key.Fields)
	if err := w.orderMayEnd(o, r); err != nil {
		return ledger.Result{}, err
	}
	return w.ticketsAnswer(o, ledger.Result{Refund: r.view()})
}

// give writes a refund: its rows, its tickets VOID.
func (w *Work) give(c ledger.BeginRefund, o *Order, tickets []*Ticket, model ledger.Refund, draws []moneyDraw) *Refund {
	made := w.refundsNew(c.IDs, model, draws)
	kind := ledger.NoticeRefundRequested
	if len(made) == 0 { // nothing is due
		model.ID, model.From, model.State, model.Created = c.IDs[0], o.ID, ledger.RefundDone, w.Now
		made = []*Refund{w.refundSet(&Refund{Row: Row{New: true}, Refund: model})}
		kind = ledger.NoticeRefundDone
	}
	for _, t := range tickets {
		w.ticketSet(t)
		t.State, t.Refund = ledger.TicketVoid, made[0].ID
	}
	for _, r := range made {
		w.notice(o, kind, false, r.ID)
	}
	return made[0]
}

// refundReason is what is written down as the reason.
func refundReason(c ledger.BeginRefund) string {
	switch c.By {
	case ledger.ByCustomer:
		return ledger.ReasonCustomer
	case ledger.ByEvent:
		return ledger.ReasonEventCancelled
	}
	return c.Reason
}

// refunding finds what a BeginRefund names: the order, and its tickets by id.
func (w *Work) refunding(c ledger.BeginRefund) (*Order, []*Ticket, error) {
	o, err := w.order(c.Order)
	if err != nil {
		return nil, nil, err
	}
	if o == nil {
		return nil, nil, fault.New(fault.OrderUnknown, "")
	}
	if c.By == ledger.ByCustomer && o.Customer != c.Customer && on(GuardCustomer) {
		return nil, nil, fault.New(fault.WrongCustomer, "")
	}
	all, err := w.ticketsOf(o.ID)
	if err != nil {
		return nil, nil, err
	}
	var tickets []*Ticket
	for _, named := range c.Tickets {
		i := slices.IndexFunc(all, func(t *Ticket) bool { return t.ID == named })
		if i < 0 {
			return nil, nil, fault.New(fault.TicketUnknown, "")
		}
		tickets = append(tickets, all[i])
	}
	if len(c.Tickets) == 0 {
		for _, t := range all {
			if t.State == ledger.TicketValid && (c.By != ledger.ByCustomer || t.Customer == o.Customer) ||
				t.State == ledger.TicketUsed && c.By != ledger.ByCustomer {
				tickets = append(tickets, t)
			}
		}
	}
	ticketsSort(tickets)
	return o, tickets, nil
}

// kept checks the form of a BeginRefund and says what is kept, and by which rule.
func (w *Work) kept(c ledger.BeginRefund, o *Order, tickets []*Ticket) (kept int64, rule string, err error) {
	used := slices.ContainsFunc(tickets, func(t *Ticket) bool { return t.State == ledger.TicketUsed })
	switch {
	case c.By < ledger.ByCustomer || c.By > ledger.ByEvent:
		return 0, "", invalid("by", "say on whose word")
	case len(slices.Compact(ticketIDs(tickets))) < len(tickets):
		return 0, "", invalid("tickets", "a ticket is named twice")
	case len(c.IDs) < ledger.RefundPartsMax:
		return 0, "", invalid("ids", "%d ids are needed", ledger.RefundPartsMax)
	case c.By == ledger.ByOrganizer && (c.Fee < 0 || c.Fee > totalOf(tickets)):
		return 0, "", invalid("fee", "0 to what the tickets cost, %d", totalOf(tickets))
	case c.By == ledger.ByOrganizer && c.Used && used && c.Reason == "":
		return 0, "", invalid("reason", "used tickets are given back for a reason")
	case c.By == ledger.ByOrganizer:
		return c.Fee, "organizer", nil
	case c.By == ledger.ByEvent:
		return 0, "event", nil
	}
	e, err := w.event(o.Event)
	if err != nil {
		return 0, "", err
	}
	for _, t := range tickets {
		kept += e.Refunds.Kept(t.Total)
	}
	return kept, fmt.Sprintf("customer %d bp + %d", e.Refunds.FeeBP, e.Refunds.FeePlace), nil
}

// refundable refuses what may not be given back.
func (w *Work) refundable(c ledger.BeginRefund, o *Order, tickets []*Ticket) error {
	e, err := w.event(o.Event)
	if err != nil {
		return err
	}
	passedOn := slices.ContainsFunc(tickets, func(t *Ticket) bool { return t.Customer != o.Customer })
	switch {
	case c.By == ledger.ByCustomer && e.Refunds.Until <= w.Now:
		return fault.New(fault.NotRefundable, "the event does not allow it now")
	case c.By == ledger.ByCustomer && passedOn:
		return fault.New(fault.NotRefundable, "a ticket was passed on")
	case c.By == ledger.ByEvent && e.State != ledger.Cancelled:
		return fault.New(fault.NotRefundable, "the event is %s", e.State)
	case o.State != ledger.OrderPaid:
		return fault.New(fault.Conflict, "the booking is %s", o.State)
	case len(tickets) == 0:
		return fault.New(fault.Conflict, "the booking has no ticket that could be given back")
	}
	for _, t := range tickets {
		switch {
		case t.State == ledger.TicketVoid && on(GuardRefundOnce),
			t.State == ledger.TicketUsed && (c.By == ledger.ByCustomer || c.By == ledger.ByOrganizer && !c.Used):
			return fault.New(fault.Conflict, "a ticket is %s", t.State)
		}
	}
	return w.unmarked(tickets, 0)
}

func ticketsSort(tickets []*Ticket) {
	slices.SortFunc(tickets, func(a, b *Ticket) int { return cmp.Compare(a.ID, b.ID) })
}

func ticketIDs(tickets []*Ticket) []id.ID {
	ids := make([]id.ID, len(tickets))
	for i, t := range tickets {
		ids[i] = t.ID
	}
	return ids
}

func totalOf(tickets []*Ticket) (sum int64) {
	for _, t := range tickets {
		sum += t.Total
	}
	return sum
}

// refundOf gives a refund with the order whose tickets or money it gives back.
func (w *Work) refundOf(refund id.ID) (*Refund, *Order, error) {
	r, err := w.refund(refund)
	if err != nil {
		return nil, nil, err
	}
	if r == nil {
		return nil, nil, fault.New(fault.RefundUnknown, "")
	}
	o, err := w.order(r.Order)
	if err != nil {
		return nil, nil, err
	}
	if o == nil {
		return nil, nil, fmt.Errorf("refund %d is of order %d, which is not there", r.ID, r.Order)
	}
	return r, o, nil
}

// orderMayEnd ends a PAID order all of whose tickets are given back, once no refund of it is on its way.
func (w *Work) orderMayEnd(o *Order, by *Refund) error {
	if o.State != ledger.OrderPaid {
		return nil
	}
	tickets, err := w.ticketsOf(o.ID)
	if err != nil || slices.ContainsFunc(tickets, valid) {
		return err
	}
	refunds, err := w.refundsOf(o.ID)
	if err != nil {
		return err
	}
	for _, r := range refunds {
		if r.State != ledger.RefundRequested {
			continue
		}
		if whole, err := w.givesWhole(r); err != nil || !whole {
			return err
		}
	}
	w.orderGone(o, by.Reason, by.ID)
	return nil
}

// valid says whether a ticket is, in the sense of A4.
func valid(t *Ticket) bool { return t.State == ledger.TicketValid || t.State == ledger.TicketUsed }

// orderGone ends a PAID order that has no valid ticket.
func (w *Work) orderGone(o *Order, reason string, refund id.ID) {
	w.orderSet(o)
	o.State, o.Reason = ledger.OrderRefunded, reason
	w.notice(o, ledger.NoticeRefunded, false, refund)
}

// givesWhole says whether a refund gives back a whole payment that should not have been made.
func (w *Work) givesWhole(r *Refund) (bool, error) {
	if r.From != r.Order || len(r.Tickets) > 0 || r.Payment == "" {
		return false, nil
	}
	p, err := w.payment(PaymentKey{r.From, r.Provider, r.Payment})
	return p != nil && p.Refund == r.ID, err
}

func (w *Work) refuseRefund(c ledger.RefuseRefund) (ledger.Result, error) {
	r, o, err := w.refundOf(c.Refund)
	switch {
	case err != nil:
		return ledger.Result{}, err
	case r.State != ledger.RefundRequested:
		return ledger.Result{}, fault.New(fault.Conflict, "the refund is %s", r.State)
	case c.Try > r.Try:
		return ledger.Result{}, fault.New(fault.Conflict, "the refund has had %d tries", r.Try)
	case c.Try < r.Try || r.Refused != "":
		return w.ticketsAnswer(o, ledger.Result{Repeat: true, Refund: r.view()})
	}
	w.refundSet(r).Refused = cmp.Or(c.Reason, "refused")
	w.notice(o, ledger.NoticeRefundRefused, true, r.ID)
	return w.ticketsAnswer(o, ledger.Result{Refund: r.view()})
}

func (w *Work) retryRefund(c ledger.RetryRefund) (ledger.Result, error) {
	r, o, err := w.refundOf(c.Refund)
	switch {
	case err != nil:
		return ledger.Result{}, err
	case r.State != ledger.RefundRequested || r.Refused == "":
		return ledger.Result{}, fault.New(fault.Conflict, "the refund was not refused")
	case c.Try != r.Try+1:
		return ledger.Result{}, fault.New(fault.Conflict, "the next try is number %d", r.Try+1)
	}
	w.refundSet(r)
	r.Try, r.Refused = c.Try, ""
	w.notice(o, ledger.NoticeRefundRequested, false, r.ID)
	return w.ticketsAnswer(o, ledger.Result{Refund: r.view()})
}
