package audit

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// The rows as they are stored, and the texts in them, parsed by the general JSON decoder: slower than what the adapters
// do, and not theirs.

// A line of a hold, as far as it is looked at here.
type line struct {
	seat     int32
	category int16
	epoch    int64
	face     int64
	fee      int64
	tax      int64
	total    int64
}

// parseLines reads [[1],[seat,epoch,category,face,fee,tax,total],…].
func parseLines(text string) ([]line, error) {
	rows, err := parseNumbers(text)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || len(rows[0]) != 1 || rows[0][0] != 1 {
		return nil, errors.New("its lines do not start with version 1")
	}
	lines := make([]line, 0, len(rows)-1)
	for _, r := range rows[1:] {
		if len(r) != 7 {
			return nil, fmt.Errorf("a line of %d numbers instead of 7", len(r))
		}
		lines = append(lines, line{seat: int32(r[0]), epoch: r[1], category: int16(r[2]), face: r[3], fee: r[4], tax: r[5], total: r[6]})
	}
	return lines, nil
}

// A pair is a seat with an epoch, or a bucket with a count.
type pair struct{ a, b int64 }

// parsePairs reads [[a,b],…].
func parsePairs(text string) ([]pair, error) {
	rows, err := parseNumbers(text)
	if err != nil {
		return nil, err
	}
	pairs := make([]pair, len(rows))
	for i, r := range rows {
		if len(r) != 2 {
			return nil, fmt.Errorf("a list of %d numbers instead of 2", len(r))
		}
		pairs[i] = pair{r[0], r[1]}
	}
	return pairs, nil
}

func parseNumbers(text string) ([][]int64, error) {
	var rows [][]int64
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		return nil, fmt.Errorf("not a list of lists of numbers: %w", err)
	}
	return rows, nil
}

// parseIDs reads [id,…].
func parseIDs(text string) (ids []id.ID, err error) {
	err = json.Unmarshal([]byte(text), &ids)
	return ids, err
}

// parseLayout reads a version byte 1 and gzipped JSON.
func parseLayout(packed []byte) (*ledger.Layout, error) {
	if len(packed) == 0 || packed[0] != 1 {
		return nil, errors.New("a layout that does not start with version 1")
	}
	z, err := gzip.NewReader(bytes.NewReader(packed[1:]))
	if err != nil {
		return nil, err
	}
	l := &ledger.Layout{}
	return l, json.NewDecoder(z).Decode(l)
}

type eventRow struct {
	id      id.ID
	version int64
	state   ledger.EventState
	body    string
}

func scanEvent(r *sql.Rows, v *eventRow) error { return r.Scan(&v.id, &v.version, &v.state, &v.body) }

type seatRow struct {
	index    int32
	state    ledger.Availability
	claim    id.ID
	epoch    int64
	returned ledger.Time
}

func scanSeat(r *sql.Rows, v *seatRow) error {
	return r.Scan(&v.index, &v.state, &v.claim, &v.epoch, &v.returned)
}

type bucketRow struct {
	area     int32
	number   int64
	capacity int64
	held     int64
	sold     int64
}

func scanBucket(r *sql.Rows, v *bucketRow) error {
	return r.Scan(&v.area, &v.number, &v.capacity, &v.held, &v.sold)
}

const holdColumns = `hold_id, event_id, customer_id, state, area, lines, draws, currency, created_at, expires_at, order_id`

type holdRow struct {
	id       id.ID
	event    id.ID
	customer id.ID
	state    ledger.HoldState
	area     int32
	text     string
	draws    string
	currency string
	created  ledger.Time
	expires  ledger.Time
	order    id.ID

	lines []line
}

func scanHold(r *sql.Rows, v *holdRow) error {
	return r.Scan(&v.id, &v.event, &v.customer, &v.state, &v.area, &v.text, &v.draws, &v.currency, &v.created, &v.expires, &v.order)
}

type historyRow struct {
	event   id.ID
	claim   id.ID
	id      int64
	was     string
	becomes string
	seats   string
	places  int
	at      ledger.Time
}

func scanHistory(r *sql.Rows, v *historyRow) error {
	return r.Scan(&v.event, &v.claim, &v.id, &v.was, &v.becomes, &v.seats, &v.places, &v.at)
}

// An orderRow has what the walk by events and the walk by orders need of an order.
type orderRow struct {
	id        id.ID
	event     id.ID
	hold      id.ID
	customer  id.ID
	state     ledger.OrderState
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
}

const orderColumns = `o.order_id, o.event_id, o.hold_id, o.customer_id, o.state, o.amount, o.currency, o.provider, o.payment_id, o.rescued, o.attempt_open, o.documents, o.created_at, o.updated_at, o.sequence`

func (v *orderRow) fields() []any {
	return []any{&v.id, &v.event, &v.hold, &v.customer, &v.state, &v.amount, &v.currency, &v.provider, &v.payment, &v.rescued, &v.open,
		&v.documents, &v.created, &v.updated, &v.sequence}
}

func scanOrder(r *sql.Rows, v *orderRow) error { return r.Scan(v.fields()...) }

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
}

// Every column of a ticket; NULL becomes -1.
const ticketColumns = `ticket_id, order_id, event_id, customer_id, state, COALESCE(seat_index, -1), COALESCE(area, -1), category, total`

func scanTicket(r *sql.Rows, v *ticketRow) error {
	return r.Scan(&v.id, &v.order, &v.event, &v.customer, &v.state, &v.seat, &v.area, &v.category, &v.total)
}

// valid: USED counts (A4).
func (v *ticketRow) valid() bool {
	return v.state == ledger.TicketValid || v.state == ledger.TicketUsed
}

func ticketText(v *ticketRow) string { return v.id.Text(id.Ticket) }

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
}

func scanPayment(r *sql.Rows, v *paymentRow) error {
	return r.Scan(&v.order, &v.provider, &v.id, &v.currency, &v.state, &v.authorized, &v.captured, &v.voided, &v.refunded, &v.refund)
}

type refundRow struct {
	id       id.ID
	order    id.ID
	provider string
	payment  string
	text     string
	state    ledger.RefundState
	amount   int64
	feeKept  int64
	currency string

	tickets []id.ID
}

func scanRefund(r *sql.Rows, v *refundRow) error {
	return r.Scan(&v.id, &v.order, &v.provider, &v.payment, &v.text, &v.state, &v.amount, &v.feeKept, &v.currency)
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

type limitRow struct {
	scope    ledger.LimitScope
	of       id.ID
	category int16
	subject  []byte
	count    int64
}

func scanLimit(r *sql.Rows, v *limitRow) error {
	return r.Scan(&v.scope, &v.of, &v.category, &v.subject, &v.count)
}

type quotaRow struct {
	category int16
	section  int16
	count    int64
}

func scanQuota(r *sql.Rows, v *quotaRow) error { return r.Scan(&v.category, &v.section, &v.count) }

type keyRow struct {
	customer  id.ID
	operation string
	key       string
	subject   id.ID
	created   ledger.Time
	owner     sql.NullInt64 // the subject's customer
	made      sql.NullInt64 // when the subject was made
}

func scanKey(r *sql.Rows, v *keyRow) error {
	return r.Scan(&v.customer, &v.operation, &v.key, &v.subject, &v.created, &v.owner, &v.made)
}

func scanID(r *sql.Rows, v *id.ID) error { return r.Scan(v) }
