package demo

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
	_ "modernc.org/sqlite"             // registers "sqlite"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A store is the ledger's database, opened for reading beside the server and with queries of our own: what the journal is
// compared with must not come from the code that is on trial.
type store struct {
	db     *sql.DB
	schema string // before each table's name
}

const sqliteKind = "sqlite"

// openStore opens it. where is a file for SQLite, else a URL.
func openStore(kind, where string) (*store, error) {
	s := &store{}
	driver, dsn := "pgx", where
	if kind == sqliteKind {
		driver = sqliteKind
		dsn = "file:" + (&url.URL{Path: where}).EscapedPath() + "?mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(10000)"
	} else {
		s.schema = "shard."
	}
	var err error
	if s.db, err = sql.Open(driver, dsn); err != nil {
		return nil, fmt.Errorf("the ledger, for reading: %w", err)
	}
	s.db.SetMaxOpenConns(2)
	return s, nil
}

func (s *store) close() error { return s.db.Close() }

// A stored is what the ledger has, at one instant.
type stored struct {
	holds    map[id.ID]*storedHold
	orders   map[id.ID]*storedOrder
	back     map[id.ID]*storedRefund
	checkIns map[id.ID][]storedUse // by ticket
	sessions map[id.ID]*storedSession
	refunds  int64 // payments that were given back because they came too late, twice or wrong
	rescued  int64
	expired  int64
}

type storedHold struct {
	event    id.ID
	customer id.ID
	state    ledger.HoldState
	area     int32
	seats    []int32
	places   int
	gone     int // of them: given back or exchanged
	amount   int64
	expires  int64
	order    id.ID
	history  []storedStep
}

// A storedStep is one row of a claim's history.
type storedStep struct {
	becomes string
	at      int64
}

type storedOrder struct {
	hold     id.ID
	customer id.ID
	state    ledger.OrderState
	reason   string
	amount   int64
	rescued  bool
	tickets  map[id.ID]storedTicket
}

// places is how many places an order has or had: a ticket that was passed on stands for the same place as before.
func (o *storedOrder) places() int {
	count := 0
	for _, t := range o.tickets {
		if t.was == 0 {
			count++
		}
	}
	return count
}

type storedTicket struct {
	state    ledger.TicketState
	customer id.ID
	was      id.ID // the ticket as which it was passed on
	refund   id.ID
}

type storedRefund struct {
	order   id.ID
	tickets []id.ID
	state   ledger.RefundState
	amount  int64
	kept    int64
	refused bool
}

type storedUse struct {
	at                        int64
	device                    string
	offline, conflict, undone bool
}

const readPatience = 30 * time.Second

// read takes all of it in one read transaction. Right after a restart the database may not answer at once.
func (s *store) read(ctx context.Context) (*stored, error) {
	for end := time.Now().Add(readPatience); ; {
		r, err := s.readOnce(ctx)
		if err == nil || time.Now().After(end) || !sleep(ctx, 200*time.Millisecond) {
			return r, err
		}
	}
}

func (s *store) readOnce(ctx context.Context) (_ *stored, err error) {
	options := &sql.TxOptions{ReadOnly: true}
	if s.schema != "" {
		options.Isolation = sql.LevelRepeatableRead
	}
	tx, err := s.db.BeginTx(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	defer func() {
		if e := tx.Rollback(); !errors.Is(e, sql.ErrTxDone) {
			err = errors.Join(err, e)
		}
	}()
	r := &stored{holds: map[id.ID]*storedHold{}, orders: map[id.ID]*storedOrder{}, back: map[id.ID]*storedRefund{}, checkIns: map[id.ID][]storedUse{}, sessions: map[id.ID]*storedSession{}}
	for _, step := range []func(context.Context, *sql.Tx, *stored) error{s.readHolds, s.readHistory, s.readOrders, s.readTickets, s.readRefunds, s.readCheckIns, s.readSessions, s.readSums} {
		if err := step(ctx, tx, r); err != nil {
			return nil, fmt.Errorf("reading the ledger: %w", err)
		}
	}
	return r, nil
}

// each runs a query and gives every row to scan.
func (s *store) each(ctx context.Context, tx *sql.Tx, query string, scan func(*sql.Rows) error) (err error) {
	rows, err := tx.QueryContext(ctx, strings.ReplaceAll(query, "#", s.schema))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *store) readHolds(ctx context.Context, tx *sql.Tx, r *stored) error {
	return s.each(ctx, tx, "SELECT hold_id, event_id, customer_id, state, area, lines, expires_at, order_id FROM #holds", func(rows *sql.Rows) error {
		var hold id.ID
		var lines string
		h := &storedHold{}
		if err := rows.Scan(&hold, &h.event, &h.customer, &h.state, &h.area, &lines, &h.expires, &h.order); err != nil {
			return err
		}
		r.holds[hold] = h
		return h.parse(lines)
	})
}

// parse reads [[1],[seat,epoch,category,face,fee,tax,total],…]; in version 2 a line that is gone has an eighth number, 1.
func (h *storedHold) parse(text string) error {
	var lines [][]int64
	if err := json.Unmarshal([]byte(text), &lines); err != nil {
		return err
	}
	if len(lines) == 0 || len(lines[0]) != 1 || lines[0][0] != 1 && lines[0][0] != 2 {
		return errors.New("the lines of a hold are of another version")
	}
	for _, l := range lines[1:] {
		switch {
		case len(l) == 8 && l[7] == 1 && lines[0][0] == 2:
			h.gone++
		case len(l) != 7:
			return errors.New("a line of a hold does not have 7 numbers")
		}
		if h.area < 0 {
			h.seats = append(h.seats, int32(l[0]))
		}
		h.places++
		h.amount += l[6]
	}
	return nil
}

func (s *store) readHistory(ctx context.Context, tx *sql.Tx, r *stored) error {
	return s.each(ctx, tx, "SELECT claim_id, becomes, at FROM #history WHERE claim_id <> 0 ORDER BY history_id", func(rows *sql.Rows) error {
		var claim id.ID
		var step storedStep
		if err := rows.Scan(&claim, &step.becomes, &step.at); err != nil {
			return err
		}
		if h := r.holds[claim]; h != nil {
			h.history = append(h.history, step)
		}
		return nil
	})
}

func (s *store) readOrders(ctx context.Context, tx *sql.Tx, r *stored) error {
	return s.each(ctx, tx, "SELECT order_id, hold_id, customer_id, state, reason, amount, rescued FROM #orders", func(rows *sql.Rows) error {
		var order id.ID
		o := &storedOrder{}
		if err := rows.Scan(&order, &o.hold, &o.customer, &o.state, &o.reason, &o.amount, &o.rescued); err != nil {
			return err
		}
		r.orders[order] = o
		if o.rescued {
			r.rescued++
		}
		return nil
	})
}

func (s *store) readTickets(ctx context.Context, tx *sql.Tx, r *stored) error {
	return s.each(ctx, tx, "SELECT ticket_id, order_id, state, customer_id, was_id, refund_id FROM #tickets", func(rows *sql.Rows) error {
		var ticket, order id.ID
		var t storedTicket
		if err := rows.Scan(&ticket, &order, &t.state, &t.customer, &t.was, &t.refund); err != nil {
			return err
		}
		if o := r.orders[order]; o != nil {
			if o.tickets == nil {
				o.tickets = map[id.ID]storedTicket{}
			}
			o.tickets[ticket] = t
		}
		return nil
	})
}

func (s *store) readSums(ctx context.Context, tx *sql.Tx, r *stored) error {
	for _, h := range r.holds {
		if h.state == ledger.HoldExpired {
			r.expired++
		}
	}
	return tx.QueryRowContext(ctx, strings.ReplaceAll("SELECT count(*) FROM #refunds WHERE state > 1 AND reason IN ('late_payment', 'second_payment', 'wrong_amount')", "#", s.schema)).Scan(&r.refunds)
}

// A flight is what is still under way.
type flight struct {
	holds, orders, payments, refunds, notices int64 // in the ledger
	due, webhooks                             int64 // in the provider's books
}

func (f flight) none() bool { return f == flight{} }

func (f flight) String() string {
	var parts []string
	for _, p := range []struct {
		count int64
		what  string
	}{
		{f.holds, "live holds"}, {f.orders, "pending bookings"}, {f.payments, "captures"}, {f.refunds, "refunds"}, {f.notices, "notices"},
		{f.due, "pending payments at the provider"}, {f.webhooks, "webhooks"},
	} {
		if p.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.count, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// inFlight counts it.
func (s *store) inFlight(ctx context.Context) (f flight, err error) {
	for _, q := range []struct {
		query string
		into  *int64
	}{
		{"SELECT count(*) FROM #holds WHERE state = 1", &f.holds},
		{"SELECT count(*) FROM #orders WHERE state = 1", &f.orders},
		{"SELECT count(*) FROM #payments p JOIN #orders o ON o.order_id = p.order_id WHERE p.state = 1 AND o.state = 2", &f.payments},
		{"SELECT count(*) FROM #refunds WHERE state = 1 AND refused = '' OR state = 2 AND tickets <> '[]'", &f.refunds},
		{"SELECT count(*) FROM #outbox WHERE published_at IS NULL", &f.notices},
	} {
		if e := s.db.QueryRowContext(ctx, strings.ReplaceAll(q.query, "#", s.schema)).Scan(q.into); e != nil {
			return f, fmt.Errorf("reading the ledger: %w", e)
		}
	}
	return f, nil
}
