package audit

import (
	"database/sql"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// The rows of orders, and of what belongs to them.

// An orderRow has what the walk by events and the walk by orders need of an order.
type orderRow struct {
	id        id.ID
	event     id.ID
	hold      id.ID
	customer  id.ID
	state     ledger.OrderState
	reason    string
	amount    int64
	currency  string
	provider  string
	payment   string
	rescued   bool
	open      bool // the provider's attempt
	documents string
	created   ledger.Time
	updated   ledger.Time
	sequence  int64
	exchange  id.ID // the order it exchanges
	credit    int64
	fundsText string
}

const orderColumns = `o.order_id, o.event_id, o.hold_id, o.customer_id, o.state, o.reason, o.amount, o.currency, o.provider, o.payment_id, o.rescued, o.attempt_open, o.documents, o.created_at, o.updated_at, o.sequence, o.exchange_of, o.credit, o.funds`

func (v *orderRow) fields() []any {
	return []any{
		&v.id, &v.event, &v.hold, &v.customer, &v.state, &v.reason, &v.amount, &v.currency, &v.provider, &v.payment, &v.rescued, &v.open,
		&v.documents, &v.created, &v.updated, &v.sequence, &v.exchange, &v.credit, &v.fundsText,
	}
}

func scanOrder(r *sql.Rows, v *orderRow) error { return r.Scan(v.fields()...) }

// sold says whether the order came to have tickets, whatever became of them.
func (v *orderRow) sold() bool { return v.state == ledger.OrderPaid || v.state == ledger.OrderRefunded }

type ticketRow struct {
	id       id.ID
	order    id.ID
	event    id.ID
	customer id.ID
	state    ledger.TicketState
	seat     int32 // -1: a place
	area     int32 // -1: a seat
	category int16
	total    int64
	place    int32 // the line of its hold
	was      id.ID // the ticket it was passed on as
	mark     id.ID // the hold that exchanges it, or did
	refund   id.ID
	gone     bool
}

// Every column of a ticket; NULL becomes -1.
const ticketColumns = `ticket_id, order_id, event_id, customer_id, state, COALESCE(seat_index, -1), COALESCE(area, -1), category, total, place, was_id, exchange_hold, refund_id, gone`

func scanTicket(r *sql.Rows, v *ticketRow) error {
	return r.Scan(&v.id, &v.order, &v.event, &v.customer, &v.state, &v.seat, &v.area, &v.category, &v.total, &v.place, &v.was, &v.mark,
		&v.refund, &v.gone)
}

// valid: USED counts (A4).
func (v *ticketRow) valid() bool {
	return v.state == ledger.TicketValid || v.state == ledger.TicketUsed
}

func ticketText(v *ticketRow) string { return v.id.Text(id.Ticket) }

const paymentColumns = `order_id, provider, payment_id, currency, state, authorized, captured, voided, refunded, refund_id, promised`

type paymentRow struct {
	order      id.ID
	provider   string
	id         string
	currency   string
	state      ledger.PaymentState
	authorized int64
	captured   int64
	voided     int64
	refunded   int64
	refund     id.ID
	promised   int64
}

func scanPayment(r *sql.Rows, v *paymentRow) error {
	return r.Scan(&v.order, &v.provider, &v.id, &v.currency, &v.state, &v.authorized, &v.captured, &v.voided, &v.refunded, &v.refund, &v.promised)
}

const refundColumns = `refund_id, order_id, from_order, provider, payment_id, tickets, state, amount, fee_kept, currency, reason, refused, try_count`

type refundRow struct {
	id       id.ID
	order    id.ID // whose tickets or money
	from     id.ID // whose payment
	provider string
	payment  string
	text     string
	state    ledger.RefundState
	amount   int64
	feeKept  int64
	currency string
	reason   string
	refused  string
	try      int

	tickets []id.ID
}

func scanRefund(r *sql.Rows, v *refundRow) error {
	return r.Scan(&v.id, &v.order, &v.from, &v.provider, &v.payment, &v.text, &v.state, &v.amount, &v.feeKept, &v.currency, &v.reason,
		&v.refused, &v.try)
}

func (v *refundRow) name() string { return v.id.Text(id.Refund) }

// of says whether the refund gives back money of a payment.
func (v *refundRow) of(p *paymentRow) bool {
	return v.from == p.order && v.payment == p.id && v.provider == p.provider
}

type noticeRow struct {
	order     id.ID
	sequence  int64
	kind      string
	body      string
	created   ledger.Time
	published sql.NullInt64
}

func scanNotice(r *sql.Rows, v *noticeRow) error {
	return r.Scan(&v.order, &v.sequence, &v.kind, &v.body, &v.created, &v.published)
}

// A useRow is one use of a ticket at a door.
type useRow struct {
	event    id.ID
	ticket   id.ID
	at       ledger.Time
	device   string
	offline  bool
	conflict string
	undone   ledger.Time
}

const useColumns = `event_id, ticket_id, at, device, offline, conflict, undone_at`

func scanUse(r *sql.Rows, v *useRow) error {
	return r.Scan(&v.event, &v.ticket, &v.at, &v.device, &v.offline, &v.conflict, &v.undone)
}
