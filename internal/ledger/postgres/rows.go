package postgres

import (
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// A scan is how the columns of a query become a row: dest is where each is put, take makes the row of it.
// Plain types are scanned, since pgx is quick with them.

const holdColumns = `hold_id, event_id, customer_id, state, area, lines, draws, currency, created_at, expires_at,
 extended_count, window_used, order_id, session_id, exchange_of, offer_id`

type holdScan struct {
	hold, event, customer, created, expires, order, session, exchange, offer int64
	state, window                                                            int16
	area, extended                                                           int32
	lines, draws, currency                                                   string
}

func (s *holdScan) dest() []any {
	return []any{&s.hold, &s.event, &s.customer, &s.state, &s.area, &s.lines, &s.draws, &s.currency, &s.created, &s.expires,
		&s.extended, &s.window, &s.order, &s.session, &s.exchange, &s.offer}
}

func (s *holdScan) take() (h *decide.Hold, err error) {
	h = &decide.Hold{Hold: ledger.Hold{
		ID: id.ID(s.hold), Event: id.ID(s.event), Customer: id.ID(s.customer), State: ledger.HoldState(s.state), Area: s.area,
		Currency: s.currency, Created: ledger.Time(s.created), Expires: ledger.Time(s.expires), Extended: int(s.extended),
		Window: s.window != 0, Order: id.ID(s.order), Session: id.ID(s.session), Exchange: id.ID(s.exchange), Offer: id.ID(s.offer),
	}}
	if h.Lines, err = decide.ParseLines(s.lines); err != nil {
		return nil, err
	}
	h.Draws, err = decide.ParseDraws(s.draws)
	return h, err
}

const orderColumns = `order_id, hold_id, event_id, customer_id, state, reason, amount, currency, provider, payment_id,
 allow_other, rescued, attempt_open, documents, created_at, updated_at, sequence`

type orderScan struct {
	order, hold, event, customer, amount, created, updated, sequence int64
	state, other, rescued, open                                      int16
	reason, currency, provider, payment, documents                   string
}

func (s *orderScan) dest() []any {
	return []any{&s.order, &s.hold, &s.event, &s.customer, &s.state, &s.reason, &s.amount, &s.currency, &s.provider, &s.payment,
		&s.other, &s.rescued, &s.open, &s.documents, &s.created, &s.updated, &s.sequence}
}

func (s *orderScan) take() (o *decide.Order, err error) {
	o = &decide.Order{Order: ledger.Order{
		ID: id.ID(s.order), Hold: id.ID(s.hold), Event: id.ID(s.event), Customer: id.ID(s.customer), State: ledger.OrderState(s.state),
		Reason: s.reason, Amount: s.amount, Currency: s.currency, Provider: s.provider, Payment: s.payment, AllowOther: s.other != 0,
		Rescued: s.rescued != 0, AttemptOpen: s.open != 0, Created: ledger.Time(s.created), Updated: ledger.Time(s.updated), Sequence: s.sequence,
	}}
	o.Documents, err = decide.DecodeDocuments(s.documents)
	return o, err
}

const ticketColumns = `t.ticket_id, t.order_id, t.event_id, t.customer_id, t.state, coalesce(t.seat_index, -1), coalesce(t.area, -1), t.category, t.total`

type ticketScan struct {
	ticket, order, event, customer, total int64
	state, category                       int16
	seat, area                            int32
}

func (s *ticketScan) dest() []any {
	return []any{&s.ticket, &s.order, &s.event, &s.customer, &s.state, &s.seat, &s.area, &s.category, &s.total}
}

func (s *ticketScan) take() ledger.Ticket {
	return ledger.Ticket{
		ID: id.ID(s.ticket), Order: id.ID(s.order), Event: id.ID(s.event), Customer: id.ID(s.customer), State: ledger.TicketState(s.state),
		Seat: s.seat, Area: s.area, Category: s.category, Total: s.total,
	}
}

const paymentColumns = `p.order_id, p.provider, p.payment_id, p.currency, p.state, p.authorized, p.captured, p.voided, p.refunded, p.refund_id`

type paymentScan struct {
	order, authorized, captured, voided, refunded, refund int64
	state                                                 int16
	provider, payment, currency                           string
}

func (s *paymentScan) dest() []any {
	return []any{&s.order, &s.provider, &s.payment, &s.currency, &s.state, &s.authorized, &s.captured, &s.voided, &s.refunded, &s.refund}
}

func (s *paymentScan) take() ledger.Payment {
	return ledger.Payment{
		Order: id.ID(s.order), Provider: s.provider, ID: s.payment, Currency: s.currency, State: ledger.PaymentState(s.state),
		Authorized: s.authorized, Captured: s.captured, Voided: s.voided, Refunded: s.refunded, Refund: id.ID(s.refund),
	}
}

// A refund may come from an outer join: all its columns have a value then, and the id is 0.
const refundColumns = `coalesce(r.refund_id, 0), coalesce(r.order_id, 0), coalesce(r.provider, ''), coalesce(r.payment_id, ''),
 coalesce(r.state, 0::smallint), coalesce(r.amount, 0), coalesce(r.currency, ''), coalesce(r.reason, ''), coalesce(r.created_at, 0)`

type refundScan struct {
	refund, order, amount, created      int64
	state                               int16
	provider, payment, currency, reason string
}

func (s *refundScan) dest() []any {
	return []any{&s.refund, &s.order, &s.provider, &s.payment, &s.state, &s.amount, &s.currency, &s.reason, &s.created}
}

func (s *refundScan) take() ledger.Refund {
	return ledger.Refund{
		ID: id.ID(s.refund), Order: id.ID(s.order), Provider: s.provider, Payment: s.payment, State: ledger.RefundState(s.state),
		Amount: s.amount, Currency: s.currency, Reason: s.reason, Created: ledger.Time(s.created),
	}
}

type eventScan struct {
	event, version int64
	state          int16
	body           string
}

func (s *eventScan) dest() []any { return []any{&s.event, &s.version, &s.state, &s.body} }

func (s *eventScan) take() (*ledger.Event, error) {
	return decide.DecodeEvent(s.body, id.ID(s.event), s.version, ledger.EventState(s.state))
}
