package postgres

import (
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// A scan is how the columns of a query become a row: dest is where each is put, take makes the row of it.
// Plain types are scanned, since pgx is quick with them.

const holdColumns = `hold_id, event_id, customer_id, state, area, lines, draws, currency, created_at, expires_at,
 extended_count, window_used, order_id, session_id, exchange_of, offer_id, exchanged, ended_at`

type holdScan struct {
	hold, event, customer, created, expires, order, session, exchange, offer, ended int64
	state, window                                                                   int16
	area, extended                                                                  int32
	lines, draws, currency, exchanged                                               string
}

func (s *holdScan) dest() []any {
	return []any{&s.hold, &s.event, &s.customer, &s.state, &s.area, &s.lines, &s.draws, &s.currency, &s.created, &s.expires,
		&s.extended, &s.window, &s.order, &s.session, &s.exchange, &s.offer, &s.exchanged, &s.ended}
}

func (s *holdScan) take() (h *decide.Hold, err error) {
	h = &decide.Hold{Hold: ledger.Hold{
		ID: id.ID(s.hold), Event: id.ID(s.event), Customer: id.ID(s.customer), State: ledger.HoldState(s.state), Area: s.area,
		Currency: s.currency, Created: ledger.Time(s.created), Expires: ledger.Time(s.expires), Extended: int(s.extended),
		Window: s.window != 0, Order: id.ID(s.order), Session: id.ID(s.session), Exchange: id.ID(s.exchange), Offer: id.ID(s.offer), Ended: ledger.Time(s.ended),
	}}
	return h, s.takeLists(&h.Hold, &h.Draws)
}

// takeLists gives a hold what the columns of lists say.
func (s *holdScan) takeLists(h *ledger.Hold, draws *[]decide.Draw) (err error) {
	if h.Lines, err = decide.ParseLines(s.lines); err != nil {
		return err
	}
	if *draws, err = decide.ParseDraws(s.draws); err != nil {
		return err
	}
	h.Exchanged, err = decide.ParseExchanged(s.exchanged)
	return err
}

const orderColumns = `order_id, hold_id, event_id, customer_id, state, reason, amount, currency, provider, payment_id,
 allow_other, rescued, attempt_open, documents, created_at, updated_at, sequence, exchange_of, credit, funds`

type orderScan struct {
	order, hold, event, customer, amount, created, updated, sequence, exchange, credit int64
	state, other, rescued, open                                                        int16
	reason, currency, provider, payment, documents, funds                              string
}

func (s *orderScan) dest() []any {
	return []any{&s.order, &s.hold, &s.event, &s.customer, &s.state, &s.reason, &s.amount, &s.currency, &s.provider, &s.payment,
		&s.other, &s.rescued, &s.open, &s.documents, &s.created, &s.updated, &s.sequence, &s.exchange, &s.credit, &s.funds}
}

func (s *orderScan) take() (o *decide.Order, err error) {
	o = &decide.Order{Order: ledger.Order{
		ID: id.ID(s.order), Hold: id.ID(s.hold), Event: id.ID(s.event), Customer: id.ID(s.customer), State: ledger.OrderState(s.state),
		Reason: s.reason, Amount: s.amount, Currency: s.currency, Provider: s.provider, Payment: s.payment, AllowOther: s.other != 0,
		Rescued: s.rescued != 0, AttemptOpen: s.open != 0, Created: ledger.Time(s.created), Updated: ledger.Time(s.updated), Sequence: s.sequence,
		Exchange: id.ID(s.exchange),
	}}
	return o, s.takeMoney(&o.Order)
}

// takeMoney gives an order what the columns of documents, credit and funds say.
func (s *orderScan) takeMoney(o *ledger.Order) (err error) {
	o.Credit = s.credit
	if o.Documents, err = decide.DecodeDocuments(s.documents); err != nil {
		return err
	}
	o.Funds, err = decide.DecodeFunds(s.funds)
	return err
}

const ticketColumns = `t.ticket_id, t.order_id, t.event_id, t.customer_id, t.state, coalesce(t.seat_index, -1), coalesce(t.area, -1), t.category, t.total,
 t.place, t.was_id, t.exchange_hold, t.refund_id, t.gone`

type ticketScan struct {
	ticket, order, event, customer, total, was, exchange, refund int64
	state, category, gone                                        int16
	seat, area, place                                            int32
}

func (s *ticketScan) dest() []any {
	return []any{&s.ticket, &s.order, &s.event, &s.customer, &s.state, &s.seat, &s.area, &s.category, &s.total,
		&s.place, &s.was, &s.exchange, &s.refund, &s.gone}
}

func (s *ticketScan) take() ledger.Ticket {
	return ledger.Ticket{
		ID: id.ID(s.ticket), Order: id.ID(s.order), Event: id.ID(s.event), Customer: id.ID(s.customer), State: ledger.TicketState(s.state),
		Seat: s.seat, Area: s.area, Category: s.category, Total: s.total, Place: s.place,
		Was: id.ID(s.was), Exchange: id.ID(s.exchange), Refund: id.ID(s.refund), Gone: s.gone != 0,
	}
}

const paymentColumns = `p.order_id, p.provider, p.payment_id, p.currency, p.state, p.authorized, p.captured, p.voided, p.refunded, p.refund_id, p.promised`

type paymentScan struct {
	order, authorized, captured, voided, refunded, refund, promised int64
	state                                                           int16
	provider, payment, currency                                     string
}

func (s *paymentScan) dest() []any {
	return []any{&s.order, &s.provider, &s.payment, &s.currency, &s.state, &s.authorized, &s.captured, &s.voided, &s.refunded, &s.refund, &s.promised}
}

func (s *paymentScan) take() ledger.Payment {
	return ledger.Payment{
		Order: id.ID(s.order), Provider: s.provider, ID: s.payment, Currency: s.currency, State: ledger.PaymentState(s.state),
		Authorized: s.authorized, Captured: s.captured, Voided: s.voided, Refunded: s.refunded, Refund: id.ID(s.refund), Promised: s.promised,
	}
}

// A refund may come from an outer join: all its columns have a value then, and the id is 0.
const refundColumns = `coalesce(r.refund_id, 0), coalesce(r.order_id, 0), coalesce(r.from_order, 0), coalesce(r.provider, ''), coalesce(r.payment_id, ''),
 coalesce(r.tickets, '[]'), coalesce(r.state, 0::smallint), coalesce(r.amount, 0), coalesce(r.fee_kept, 0), coalesce(r.rule, ''),
 coalesce(r.currency, ''), coalesce(r.reason, ''), coalesce(r.by_id, 0), coalesce(r.refused, ''), coalesce(r.try_count, 0), coalesce(r.created_at, 0)`

type refundScan struct {
	refund, order, from, amount, fee, by, created               int64
	state                                                       int16
	try                                                         int32
	provider, payment, tickets, rule, currency, reason, refused string
}

func (s *refundScan) dest() []any {
	return []any{&s.refund, &s.order, &s.from, &s.provider, &s.payment, &s.tickets, &s.state, &s.amount, &s.fee, &s.rule, &s.currency,
		&s.reason, &s.by, &s.refused, &s.try, &s.created}
}

func (s *refundScan) take() (r ledger.Refund, err error) {
	r = ledger.Refund{
		ID: id.ID(s.refund), Order: id.ID(s.order), From: id.ID(s.from), Provider: s.provider, Payment: s.payment,
		State: ledger.RefundState(s.state), Amount: s.amount, FeeKept: s.fee, Rule: s.rule, Currency: s.currency, Reason: s.reason,
		By: id.ID(s.by), Refused: s.refused, Try: int(s.try), Created: ledger.Time(s.created),
	}
	r.Tickets, err = decide.DecodeTickets(s.tickets)
	return r, err
}

// row is take as a row for the decisions.
func (s *refundScan) row() (*decide.Refund, error) {
	r, err := s.take()
	return &decide.Refund{Refund: r}, err
}

const useColumns = `c.event_id, c.at, c.ticket_id, c.device, c.gate, c.by_id, c.offline, c.conflict, c.undone_at, c.undone_by, c.why`

type useScan struct {
	event, at, ticket, by, undone, undoneBy int64
	offline                                 int16
	device, gate, conflict, why             string
}

func (s *useScan) dest() []any {
	return []any{&s.event, &s.at, &s.ticket, &s.device, &s.gate, &s.by, &s.offline, &s.conflict, &s.undone, &s.undoneBy, &s.why}
}

func (s *useScan) take() ledger.CheckedIn {
	return ledger.CheckedIn{
		Ticket: id.ID(s.ticket), Event: id.ID(s.event), At: ledger.Time(s.at), Device: s.device, Gate: s.gate, By: id.ID(s.by),
		Offline: s.offline != 0, Conflict: s.conflict, Undone: ledger.Time(s.undone), UndoneBy: id.ID(s.undoneBy), Why: s.why,
	}
}

const eventColumns = `event_id, version, state, sequence, body`

type eventScan struct {
	event, version, sequence int64
	state                    int16
	body                     string
}

func (s *eventScan) dest() []any { return []any{&s.event, &s.version, &s.state, &s.sequence, &s.body} }

func (s *eventScan) take() (*ledger.Event, error) {
	return decide.DecodeEvent(s.body, id.ID(s.event), s.version, ledger.EventState(s.state), s.sequence)
}
