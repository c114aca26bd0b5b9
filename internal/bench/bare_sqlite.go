package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"onsale/internal/ledger"
	"onsale/internal/ledger/sqlite"
)

// bareSQLite runs prepared statements on the one writing connection, with the ledger's own pragmas (WAL, FULL).
type bareSQLite struct {
	hall *hall
	db   *sql.DB
	conn *sql.Conn
	err  error

	beginTx, commitTx, seatHold, seatSell, holdAdd, holdBegin, holdSell, limitAdd, historyAdd, orderAdd, orderPaid,
	paymentAdd, ticketAdd, noticeAdd, versionUp, changeAdd, clock *sql.Stmt
}

func openBareSQLite(ctx context.Context, path string, h *hall) (*bareSQLite, error) {
	db, err := sql.Open("sqlite", sqlite.DSN(path))
	if err != nil {
		return nil, err
	}
	s := &bareSQLite{hall: h, db: db}
	if s.conn, err = db.Conn(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	for _, p := range []struct {
		into **sql.Stmt
		text string
	}{
		{&s.beginTx, `BEGIN IMMEDIATE`},
		{&s.commitTx, `COMMIT`},
		{&s.seatHold, `UPDATE seats SET state = 1, claim_id = ?, epoch = epoch + 1 WHERE event_id = ? AND seat_index = ? AND state = 0`},
		{&s.seatSell, `UPDATE seats SET state = 2 WHERE event_id = ? AND seat_index = ? AND state = 1 AND claim_id = ?`},
		{&s.holdAdd, `INSERT INTO holds (hold_id, event_id, customer_id, state, area, lines, draws, currency, created_at, expires_at)
			VALUES (?, ?, ?, 1, -1, ?, '[]', ?, ?, ?)`},
		{&s.holdBegin, `UPDATE holds SET order_id = ?, window_used = 1, expires_at = max(expires_at, ?) WHERE hold_id = ? AND state = 1`},
		{&s.holdSell, `UPDATE holds SET state = 4 WHERE hold_id = ? AND state = 1`},
		{&s.limitAdd, `INSERT INTO limits (scope, of_id, category, subject, count) VALUES (1, ?, -1, ?, ?)`},
		{&s.historyAdd, `INSERT INTO history (event_id, claim_id, was, becomes, why, seats, places, at) VALUES (?, ?, ?, ?, ?, ?, 0, ?)`},
		{&s.orderAdd, `INSERT INTO orders (order_id, hold_id, event_id, customer_id, state, amount, currency, provider, attempt_open, created_at, updated_at, sequence)
			VALUES (?, ?, ?, ?, 1, ?, ?, 'instant', 1, ?, ?, 1)`},
		{&s.orderPaid, `UPDATE orders SET state = 2, payment_id = ?, attempt_open = 0, updated_at = ?, sequence = 2 WHERE order_id = ? AND state = 1`},
		{&s.paymentAdd, `INSERT INTO payments (order_id, provider, payment_id, currency, state, authorized, captured) VALUES (?, 'instant', ?, ?, 2, ?, ?)`},
		{&s.ticketAdd, `INSERT INTO tickets (ticket_id, order_id, event_id, customer_id, state, seat_index, category, total, place) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?)`},
		{&s.noticeAdd, `INSERT INTO outbox (order_id, sequence, kind, body, created_at) VALUES (?, ?, ?, ?, ?)`},
		{&s.versionUp, `UPDATE seats_versions SET version = version + 1 WHERE event_id = ?`},
		{&s.changeAdd, `INSERT INTO changes (event_id, version, body, at) SELECT event_id, version, ?, ? FROM seats_versions WHERE event_id = ?`},
		{&s.clock, `UPDATE clock SET now = ?`},
	} {
		if *p.into, err = s.conn.PrepareContext(ctx, p.text); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", p.text, err), s.close(ctx))
		}
	}
	return s, nil
}

// do runs a statement that changes one row, unless one before it has failed.
func (s *bareSQLite) do(ctx context.Context, stmt *sql.Stmt, args ...any) {
	if s.err != nil {
		return
	}
	done, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		s.err = err
		return
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		s.err = errors.Join(err, fmt.Errorf("a bare statement changed %d rows instead of one", n))
	}
}

// in runs a transaction that ends with the change row, as a batch of ours does.
func (s *bareSQLite) in(ctx context.Context, now ledger.Time, change string, do func()) error {
	if _, err := s.beginTx.ExecContext(ctx); err != nil {
		return err
	}
	do()
	event := int64(s.hall.event.ID)
	s.do(ctx, s.versionUp, event)
	s.do(ctx, s.changeAdd, change, int64(now), event)
	s.do(ctx, s.clock, int64(now))
	if s.err == nil {
		_, s.err = s.commitTx.ExecContext(ctx)
	}
	return s.err
}

func (s *bareSQLite) hold(ctx context.Context, parties []party, now ledger.Time) error {
	event, expires := int64(s.hall.event.ID), s.hall.expires(now)
	return s.in(ctx, now, s.hall.change(parties, ledger.Held, expires), func() {
		for i := range parties {
			p := &parties[i]
			for _, seat := range p.seats {
				s.do(ctx, s.seatHold, int64(p.hold), event, seat)
			}
			s.do(ctx, s.holdAdd, int64(p.hold), event, int64(p.customer), p.linesText, currency, int64(now), int64(expires))
			s.do(ctx, s.limitAdd, event, p.subject, len(p.seats))
			s.do(ctx, s.historyAdd, event, int64(p.hold), "", "live", "hold", p.claimsText, int64(now))
		}
	})
}

func (s *bareSQLite) begin(ctx context.Context, parties []party, now ledger.Time) error {
	event, window := int64(s.hall.event.ID), int64(now)+int64(s.hall.event.PaymentWindow)
	return s.in(ctx, now, s.hall.change(nil, 0, 0), func() {
		for i := range parties {
			p := &parties[i]
			s.do(ctx, s.orderAdd, int64(p.order), int64(p.hold), event, int64(p.customer), p.amount, currency, int64(now), int64(now))
			s.do(ctx, s.holdBegin, int64(p.order), window, int64(p.hold))
			s.do(ctx, s.noticeAdd, int64(p.order), 1, ledger.NoticePending, p.pending, int64(now))
		}
	})
}

func (s *bareSQLite) confirm(ctx context.Context, parties []party, now ledger.Time) error {
	event := int64(s.hall.event.ID)
	return s.in(ctx, now, s.hall.change(parties, ledger.Sold, 0), func() {
		for i := range parties {
			p := &parties[i]
			for k, seat := range p.seats {
				s.do(ctx, s.seatSell, event, seat, int64(p.hold))
				s.do(ctx, s.ticketAdd, int64(p.tickets[k]), int64(p.order), event, int64(p.customer), seat, p.lines[k].Category, p.lines[k].Total, k)
			}
			s.do(ctx, s.holdSell, int64(p.hold))
			s.do(ctx, s.orderPaid, p.payment, int64(now), int64(p.order))
			s.do(ctx, s.paymentAdd, int64(p.order), p.payment, currency, p.amount, p.amount)
			s.do(ctx, s.noticeAdd, int64(p.order), 2, ledger.NoticePaid, p.paid, int64(now))
			s.do(ctx, s.historyAdd, event, int64(p.hold), "live", "sold", "confirm", p.claimsText, int64(now))
		}
	})
}

func (s *bareSQLite) close(context.Context) error {
	return errors.Join(s.conn.Close(), s.db.Close()) // the statements end with their connection
}
