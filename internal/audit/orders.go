package audit

import (
	"database/sql"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A sale is one order with all that belongs to it.
type sale struct {
	a *audit
	orderRow
	hold     *holdRow // nil: not there
	tickets  []ticketRow
	payments []paymentRow
	refunds  []refundRow
	notices  []noticeRow

	funds []fund      // its own, in earlier orders' payments
	later []successor // orders that exchanged it
	lent  []lent      // money of later orders in its payments
	given []refundRow // refunds of later orders, done with its payments

	transferred bool // a ticket was passed on

	due     []string // what is still to be done about its money
	refused bool     // of it, what the provider will not do
}

// orderHold is an order with the hold that it names.
type orderHold struct {
	orderRow
	hold sql.NullInt64
	row  struct {
		event, customer, state, area, order, exchange sql.NullInt64
		lines, currency                               sql.NullString
	}
}

func scanOrderHold(r *sql.Rows, v *orderHold) error {
	return r.Scan(append(v.fields(), &v.hold, &v.row.event, &v.row.customer, &v.row.state, &v.row.area, &v.row.order, &v.row.exchange, &v.row.lines, &v.row.currency)...)
}

// byOrder are the tables of an order's things, each sorted by order.
type byOrder struct {
	tickets  *table[ticketRow]
	payments *table[paymentRow]
	refunds  *table[refundRow]
	notices  *table[noticeRow]
}

// walkOrders goes through tickets, money and notices, order by order.
func (a *audit) walkOrders() {
	which, whose, told := "", "", ""
	if a.opts.Event != 0 {
		which = " WHERE o.event_id = " + number(a.opts.Event)
		whose = " WHERE order_id IN (SELECT o.order_id FROM #orders o" + which + ")"
		told = whose + " OR order_id = " + number(a.opts.Event) +
			" OR order_id IN (SELECT wish_id FROM #wishes WHERE event_id = " + number(a.opts.Event) + ")"
	}
	orders := read(a.snap, `SELECT `+orderColumns+`, h.hold_id, h.event_id, h.customer_id, h.state, h.area, h.order_id, h.exchange_of, h.lines, h.currency
		FROM #orders o LEFT JOIN #holds h ON h.hold_id = o.hold_id`+which+` ORDER BY o.order_id`, scanOrderHold)
	side := byOrder{
		tickets:  read(a.snap, `SELECT `+ticketColumns+` FROM #tickets`+whose+` ORDER BY order_id, ticket_id`, scanTicket),
		payments: read(a.snap, `SELECT `+paymentColumns+` FROM #payments`+whose+` ORDER BY order_id, provider, payment_id`, scanPayment),
		refunds:  read(a.snap, `SELECT `+refundColumns+` FROM #refunds`+whose+` ORDER BY order_id, refund_id`, scanRefund),
		notices:  read(a.snap, `SELECT order_id, sequence, kind, body, created_at, published_at FROM #outbox`+told+` ORDER BY order_id, sequence`, scanNotice),
	}
	for row := range orders.all() {
		s := &sale{a: a, orderRow: row.orderRow, hold: row.holdRow()}
		a.orphans(&side, s.id)
		s.tickets = slices.AppendSeq(s.tickets, side.tickets.while(func(r *ticketRow) bool { return r.order == s.id }))
		s.payments = slices.AppendSeq(s.payments, side.payments.while(func(r *paymentRow) bool { return r.order == s.id }))
		s.refunds = slices.AppendSeq(s.refunds, side.refunds.while(func(r *refundRow) bool { return r.order == s.id }))
		s.notices = slices.AppendSeq(s.notices, side.notices.while(func(r *noticeRow) bool { return r.order == s.id }))
		s.check()
	}
	a.orphans(&side, 1<<63-1)
	a.acrossLeft()
	a.booksLeft()
	a.eventsTold()
	a.turns()
}

// orphans reports what belongs to no order, up to the next one that is there.
func (a *audit) orphans(side *byOrder, order id.ID) {
	const gone = "its order %s is not there"
	for r := range side.tickets.while(func(r *ticketRow) bool { return r.order < order }) {
		a.bad(CheckReferences, r.event, ticketText(&r), gone, orderText(r.order))
	}
	for r := range side.payments.while(func(r *paymentRow) bool { return r.order < order }) {
		a.bad(CheckReferences, 0, "payment "+r.id, gone, orderText(r.order))
	}
	for r := range side.refunds.while(func(r *refundRow) bool { return r.order < order }) {
		a.bad(CheckReferences, 0, r.id.Text(id.Refund), gone, orderText(r.order))
	}
	for r := range side.notices.while(func(r *noticeRow) bool { return r.order < order }) {
		if a.eventNote(&r) || a.wishNote(&r) {
			continue
		}
		a.bad(CheckReferences, 0, "notice "+itoa(int(r.sequence)), gone, orderText(r.order))
	}
}

// holdRow is the order's hold, nil where it is not there. Its lines are still text.
func (v *orderHold) holdRow() *holdRow {
	if !v.hold.Valid {
		return nil
	}
	return &holdRow{
		id: id.ID(v.hold.Int64), event: id.ID(v.row.event.Int64), customer: id.ID(v.row.customer.Int64),
		state: ledger.HoldState(v.row.state.Int64), area: int32(v.row.area.Int64), order: id.ID(v.row.order.Int64), exchange: id.ID(v.row.exchange.Int64),
		text: v.row.lines.String, currency: v.row.currency.String,
	}
}

func (s *sale) bad(check, format string, args ...any) {
	s.a.bad(check, s.event, orderText(s.id), format, args...)
}

func (s *sale) check() {
	for _, name := range []string{CheckI3, CheckI6, CheckI7, CheckI12, CheckReferences} {
		s.a.saw(name, 1)
	}
	if s.state < ledger.OrderPending || s.state > ledger.OrderRefunded {
		s.bad(CheckReferences, "it has no state (%d)", s.state)
		return
	}
	for i := range s.refunds {
		s.refundRow(&s.refunds[i])
	}
	s.transferred = slices.ContainsFunc(s.tickets, func(t ticketRow) bool { return t.was != 0 })
	s.ownExchange()
	s.acrossHere()
	if s.holdThere() {
		s.places()
		s.documentsGone()
	}
	s.pasts()
	s.refundsOfTickets()
	s.money()
	s.provider()
	s.notes()
	s.inFlight()
}

// holdThere checks the order's hold and parses its lines.
func (s *sale) holdThere() bool {
	h := s.hold
	if h == nil {
		s.bad(CheckReferences, "its hold %s is not there", holdText(s.orderRow.hold))
		return false
	}
	lines, err := parseLines(h.text)
	if err != nil {
		return false // reported by the walk over events
	}
	h.lines = lines
	if h.event != s.event {
		s.bad(CheckReferences, "its hold %s is of another event", holdText(h.id))
	}
	if h.customer != s.customer {
		s.bad(CheckReferences, "its hold %s is of another customer", holdText(h.id))
	}
	// A hold that gave all its places back is nobody's, also while money is still on its way.
	given := len(lines) > 0 && !slices.ContainsFunc(lines, func(l line) bool { return !l.gone })
	if active := s.state == ledger.OrderPending || s.state == ledger.OrderPaid && !given; active && h.order != s.id {
		s.bad(CheckReferences, "it is %s, but its hold %s names the order %s", s.state, holdText(h.id), orderText(h.order))
	}
	s.price()
	return true
}

// price compares what the order is over with its hold. Of an exchange a part may come over from the old order.
func (s *sale) price() {
	total := int64(0)
	for _, l := range s.hold.lines {
		total += l.total
	}
	agree := total == s.amount+s.credit
	if s.exchange != 0 && !s.sold() { // what will come over is not fixed yet
		agree = s.amount >= 0 && s.amount <= total
	}
	if !agree || s.hold.currency != s.currency {
		s.bad(CheckMoney, "it is over %d %s, its hold over %d %s", s.amount+s.credit, s.currency, total, s.hold.currency)
	}
}

// inFlight notes what is still under way.
func (s *sale) inFlight() {
	switch {
	case s.refused:
		s.a.report.inFlight(s.id, "refund refused: people must look")
	case s.state == ledger.OrderPending:
		s.a.report.inFlight(s.id, "PENDING")
	case len(s.due) > 0:
		s.a.report.inFlight(s.id, s.due[0])
	}
}
