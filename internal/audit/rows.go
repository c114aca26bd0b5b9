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
	gone     bool // given back since it was sold
}

// parseLines reads [[1],[seat,epoch,category,face,fee,tax,total],…]; under version 2 an eighth number, 1, says gone.
func parseLines(text string) ([]line, error) {
	rows, err := parseNumbers(text)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || len(rows[0]) != 1 || (rows[0][0] != 1 && rows[0][0] != 2) {
		return nil, errors.New("its lines do not start with version 1 or 2")
	}
	lines := make([]line, 0, len(rows)-1)
	for _, r := range rows[1:] {
		if len(r) != 7 && (rows[0][0] != 2 || len(r) != 8) {
			return nil, fmt.Errorf("a line of %d numbers instead of 7", len(r))
		}
		lines = append(lines, line{
			seat: int32(r[0]), epoch: r[1], category: int16(r[2]), face: r[3], fee: r[4], tax: r[5], total: r[6], gone: len(r) == 8 && r[7] == 1,
		})
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

// An exchanged is a ticket that a hold is to take the place of.
type exchanged struct {
	ticket   id.ID
	event    id.ID
	category int16
}

// parseExchanged reads [[ticket,event,category],…].
func parseExchanged(text string) ([]exchanged, error) {
	if text == "[]" {
		return nil, nil
	}
	rows, err := parseNumbers(text)
	if err != nil {
		return nil, err
	}
	list := make([]exchanged, len(rows))
	for i, r := range rows {
		if len(r) != 3 {
			return nil, fmt.Errorf("an exchanged ticket of %d numbers instead of 3", len(r))
		}
		list[i] = exchanged{id.ID(r[0]), id.ID(r[1]), int16(r[2])}
	}
	return list, nil
}

// A fund is money that an order has in an earlier one's payment.
type fund struct {
	Order    id.ID  `json:"order"`
	Provider string `json:"provider"`
	Payment  string `json:"payment"`
	Left     int64  `json:"left"`
}

// parseFunds reads [{"order":…,"provider":…,"payment":…,"left":…},…].
func parseFunds(text string) (funds []fund, err error) {
	if text == "[]" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &funds)
	return funds, err
}

// parseDocuments reads ["keyed hash",…].
func parseDocuments(text string) (documents []string, err error) {
	if text == "[]" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &documents)
	return documents, err
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
	notices int64 // the number of the last one
}

func scanEvent(r *sql.Rows, v *eventRow) error {
	return r.Scan(&v.id, &v.version, &v.state, &v.body, &v.notices)
}

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
	returned int64 // promised to the waitlist
}

func scanBucket(r *sql.Rows, v *bucketRow) error {
	return r.Scan(&v.area, &v.number, &v.capacity, &v.held, &v.sold, &v.returned)
}

const holdColumns = `hold_id, event_id, customer_id, state, area, lines, draws, currency, created_at, expires_at, order_id, exchange_of, exchanged, session_id, offer_id`

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
	exchange id.ID  // the order it exchanges
	places   string // the tickets of it
	session  id.ID  // of the waiting room
	offer    id.ID  // the wish it serves

	lines     []line
	exchanged []exchanged
}

func scanHold(r *sql.Rows, v *holdRow) error {
	return r.Scan(&v.id, &v.event, &v.customer, &v.state, &v.area, &v.text, &v.draws, &v.currency, &v.created, &v.expires, &v.order, &v.exchange, &v.places, &v.session, &v.offer)
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
	made      sql.NullInt64 // when the subject was made, where that is written down
}

func scanKey(r *sql.Rows, v *keyRow) error {
	return r.Scan(&v.customer, &v.operation, &v.key, &v.subject, &v.created, &v.owner, &v.made)
}

func scanID(r *sql.Rows, v *id.ID) error { return r.Scan(v) }
