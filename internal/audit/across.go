package audit

import (
	"database/sql"
	"maps"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// across is what ties orders to each other since tickets are exchanged: an order has money in another's payment, a refund
// of one order is done with another's, a hold of one event marks tickets of another. There is little of it beside the
// orders, so it is read first and kept, and each order finds what concerns it. What nobody asked for in the end belongs to
// nothing.
type across struct {
	exchangeOf map[id.ID]id.ID       // orders by the order that took their place
	later      map[id.ID][]successor // orders that exchanged an order, by that one
	lent       map[id.ID][]lent      // by the order whose payment it is
	given      map[id.ID][]refundRow // refunds of other orders, by the order whose payment it is
	marks      map[id.ID]mark        // by ticket
}

// A successor is an order for which tickets of an earlier one were given up, or are to be.
type successor struct {
	id       id.ID
	exchange id.ID
	customer id.ID
	state    ledger.OrderState
	currency string
	credit   int64
	funds    string
}

func scanSuccessor(r *sql.Rows, v *successor) error {
	return r.Scan(&v.id, &v.exchange, &v.customer, &v.state, &v.currency, &v.credit, &v.funds)
}

// lent is money of a payment that counts for a later order.
type lent struct {
	fund
	to       id.ID
	currency string
}

// A mark is a live hold's on a ticket that it is to take the place of.
type mark struct {
	exchanged
	hold     id.ID
	order    id.ID
	customer id.ID
	expires  ledger.Time
}

// readAcross reads it, of all events: what an event's orders are tied to may be of another event.
func (a *audit) readAcross() {
	x := &across{
		exchangeOf: map[id.ID]id.ID{}, later: map[id.ID][]successor{}, lent: map[id.ID][]lent{}, given: map[id.ID][]refundRow{},
		marks: map[id.ID]mark{},
	}
	a.across = x
	orders := read(a.snap, `SELECT order_id, exchange_of, customer_id, state, currency, credit, funds FROM #orders
		WHERE exchange_of <> 0 OR funds <> '[]' ORDER BY order_id`, scanSuccessor)
	for o := range orders.all() {
		x.exchangeOf[o.id] = o.exchange
		x.later[o.exchange] = append(x.later[o.exchange], o)
		funds, err := parseFunds(o.funds)
		if err != nil {
			continue // reported by the walk over orders
		}
		for _, f := range funds {
			x.lent[f.Order] = append(x.lent[f.Order], lent{f, o.id, o.currency})
		}
	}
	refunds := read(a.snap, `SELECT `+refundColumns+` FROM #refunds WHERE from_order <> order_id ORDER BY refund_id`, scanRefund)
	for r := range refunds.all() {
		x.given[r.from] = append(x.given[r.from], r)
	}
	a.readMarks()
}

// readMarks reads which live holds are to take the place of which tickets. Another hold may do so once the time of the one
// before is up, also where nobody has ended that yet.
func (a *audit) readMarks() {
	holds := read(a.snap, `SELECT `+holdColumns+` FROM #holds WHERE state = 1 AND exchanged <> '[]' ORDER BY created_at, hold_id`, scanHold)
	for h := range holds.all() {
		places, err := parseExchanged(h.places)
		if err != nil {
			continue // reported by the walk over events
		}
		for _, p := range places {
			if m, ok := a.across.marks[p.ticket]; ok && m.expires > h.created {
				a.bad(CheckExchange, h.event, p.ticket.Text(id.Ticket), "%s and %s are both to take its place", holdText(m.hold), holdText(h.id))
			}
			a.across.marks[p.ticket] = mark{exchanged: p, hold: h.id, order: h.exchange, customer: h.customer, expires: h.expires}
		}
	}
	maps.DeleteFunc(a.across.marks, func(_ id.ID, m mark) bool { return m.expires <= a.now })
}

// began is when the claim that an order's tickets go back to was made, through all exchanges: under what limits was judged
// what was exchanged one for one since then.
func (x *across) began(order id.ID) ledger.Time {
	for range len(x.exchangeOf) {
		earlier := x.exchangeOf[order]
		if earlier == 0 {
			break
		}
		order = earlier
	}
	return madeAt(order)
}

// clocksApart is by how much the clock that made an id may be ahead of the shard's.
const clocksApart = ledger.Duration(60 * 1000)

// madeAt is when an id was made at the latest, by the shard's clock.
func madeAt(v id.ID) ledger.Time { return ledger.TimeOf(v.Time()) - ledger.Time(clocksApart) }

// acrossLeft reports what is tied to orders and tickets that are not there.
func (a *audit) acrossLeft() {
	if a.opts.Event != 0 {
		return
	}
	for _, order := range sortedKeys(a.across.later) {
		if order == 0 {
			continue // reported by the walk over orders
		}
		for _, l := range a.across.later[order] {
			a.bad(CheckReferences, 0, orderText(l.id), "it exchanges %s, which is not there", orderText(order))
		}
	}
	for _, order := range sortedKeys(a.across.lent) {
		for _, l := range a.across.lent[order] {
			a.bad(CheckReferences, 0, orderText(l.to), "it has money of payment %s of %s, which is not there", l.Payment, orderText(order))
		}
	}
	for _, order := range sortedKeys(a.across.given) {
		for _, r := range a.across.given[order] {
			a.bad(CheckReferences, 0, r.name(), "it gives back payment %s of %s, which is not there", r.payment, orderText(order))
		}
	}
	for _, ticket := range sortedKeys(a.across.marks) {
		a.bad(CheckExchange, 0, holdText(a.across.marks[ticket].hold), "it is to take the place of %s, which is not there", ticket.Text(id.Ticket))
	}
}

// acrossHere takes what is tied to the order, and checks it from this side.
func (s *sale) acrossHere() {
	x := s.a.across
	s.later, s.lent, s.given = x.later[s.id], x.lent[s.id], x.given[s.id]
	delete(x.later, s.id)
	delete(x.lent, s.id)
	delete(x.given, s.id)
	for i := range s.later {
		if l := &s.later[i]; l.customer != s.customer || l.currency != s.currency {
			s.bad(CheckExchange, "it is exchanged by %s, of another customer or currency", orderText(l.id))
		}
	}
	for i := range s.lent {
		l := &s.lent[i]
		switch p := s.paymentBy(l.Provider, l.Payment); {
		case p == nil:
			s.bad(CheckReferences, "%s has money of its payment %s, which is not there", orderText(l.to), l.Payment)
		case p.currency != l.currency:
			s.bad(CheckMoney, "%s has money of its payment %s, in another currency", orderText(l.to), l.Payment)
		}
	}
	for i := range s.given {
		r := &s.given[i]
		switch p := s.paymentBy(r.provider, r.payment); {
		case p == nil:
			s.bad(CheckReferences, "%s gives back its payment %s, which is not there", r.name(), r.payment)
		case p.currency != r.currency:
			s.bad(CheckMoney, "%s is in %s, its payment in %s", r.name(), r.currency, p.currency)
		}
	}
	for i := range s.tickets {
		s.marked(&s.tickets[i])
	}
}

// marked compares a ticket with the hold that is to take its place (A22).
func (s *sale) marked(t *ticketRow) {
	m, ok := s.a.across.marks[t.id]
	if !ok {
		return
	}
	delete(s.a.across.marks, t.id)
	s.a.saw(CheckExchange, 1)
	what := ""
	switch {
	case t.mark != m.hold:
		what = "does not say so"
	case m.order != s.id:
		what = "is of another order than the hold exchanges"
	case m.customer != s.customer || t.customer != s.customer:
		what = "is of another customer"
	case m.event != t.event || m.category != t.category:
		what = "is of another event or category than the hold says"
	case !t.valid(): // used meanwhile it may be: then the swap will be refused
		what = "is VOID"
	}
	if what != "" {
		s.bad(CheckExchange, "%s is to take the place of %s, which %s", holdText(m.hold), ticketText(t), what)
	}
}

// ownExchange checks what the order itself says of its exchange.
func (s *sale) ownExchange() {
	funds, err := parseFunds(s.fundsText)
	if err != nil {
		s.bad(CheckReferences, "its funds cannot be read")
	}
	s.funds = funds
	left := int64(0)
	for _, f := range funds {
		left += f.Left
		if f.Left < 0 {
			s.bad(CheckMoney, "%d are left of what it has in payment %s", f.Left, f.Payment)
		}
	}
	switch {
	case s.exchange == 0 && (s.credit != 0 || len(funds) > 0):
		s.bad(CheckExchange, "it exchanges nothing, and has a credit of %d and %d funds", s.credit, len(funds))
	case !s.sold() && (s.credit != 0 || len(funds) > 0):
		s.bad(CheckI6, "it is %s, and has a credit of %d", s.state, s.credit)
	case s.credit < 0 || left > s.credit:
		s.bad(CheckMoney, "its credit is %d, of which %d are left", s.credit, left)
	}
	if s.exchange != 0 {
		s.a.saw(CheckExchange, 1)
	}
	if h := s.hold; h != nil && h.exchange != s.exchange {
		s.bad(CheckExchange, "it exchanges %s, its hold %s", exchangeText(s.exchange), exchangeText(h.exchange))
	}
}

func exchangeText(order id.ID) string {
	if order == 0 {
		return "nothing"
	}
	return orderText(order)
}
