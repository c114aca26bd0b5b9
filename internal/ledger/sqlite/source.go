package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// source reads rows inside the writing transaction.
type source struct {
	ctx   context.Context
	s     *statements
	cache *cache
}

// none turns "no rows" into nil.
func none[T any](row *T, err error) (*T, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return row, nil
}

func (s *source) Event(event id.ID) (*ledger.Event, error) {
	if e, ok := s.cache.events.get(event); ok {
		return e, nil
	}
	var version int64
	var state ledger.EventState
	var body string
	err := s.s.event.QueryRowContext(s.ctx, int64(event)).Scan(&version, &state, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e, err := decide.DecodeEvent(body, event, version, state)
	if err != nil {
		return nil, err
	}
	s.cache.events.put(event, e)
	return e, nil
}

func (s *source) Layout(hash string) (*ledger.Layout, error) {
	if l, ok := s.cache.layouts.get(hash); ok {
		return l, nil
	}
	var body []byte
	if err := s.s.layout.QueryRowContext(s.ctx, hash).Scan(&body); err != nil {
		return nil, err
	}
	l, err := decide.DecodeLayout(body)
	if err != nil {
		return nil, err
	}
	s.cache.layouts.put(hash, l)
	return l, nil
}

// seatBlock is how many seats are read at once: whoever wants one usually wants its neighbours, and so does the next.
const seatBlock = 16

func (s *source) Seat(k decide.SeatKey) (*decide.Seat, error) {
	if r, ok := s.cache.seats.get(k); ok {
		return r, nil
	}
	first := k.Index &^ (seatBlock - 1)
	block, err := list(s.ctx, s.s.seats, func(rows *sql.Rows) (*decide.Seat, error) {
		r := &decide.Seat{SeatKey: decide.SeatKey{Event: k.Event}}
		err := rows.Scan(&r.Index, &r.State, &r.Claim, &r.Epoch, &r.WhenFree, &r.ReturnedAt)
		r.WasState, r.WasClaim, r.WasEpoch = r.State, r.Claim, r.Epoch
		return r, err
	}, int64(k.Event), first, first+seatBlock)
	var wanted *decide.Seat
	for _, r := range block {
		if r.Index == k.Index {
			wanted = r
		}
		if _, known := s.cache.seats.get(r.SeatKey); !known { // else this batch may have changed it already
			s.cache.seats.put(r.SeatKey, r)
		}
	}
	return wanted, err
}

func (s *source) Buckets(k decide.AreaKey) ([]*decide.Bucket, error) {
	return list(s.ctx, s.s.buckets, func(rows *sql.Rows) (*decide.Bucket, error) {
		b := &decide.Bucket{AreaKey: k}
		return b, rows.Scan(&b.Number, &b.Capacity, &b.Held, &b.Sold)
	}, int64(k.Event), k.Area)
}

// list collects the rows of a query.
func list[T any](ctx context.Context, stmt *sql.Stmt, scan func(*sql.Rows) (T, error), args ...any) (all []T, err error) {
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, scan)
}

func collect[T any](rows *sql.Rows, scan func(*sql.Rows) (T, error)) (all []T, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

type scanner interface{ Scan(...any) error }

func scanHold(row scanner, hold id.ID) (*decide.Hold, error) {
	h := &decide.Hold{}
	h.ID = hold
	var lines, draws string
	err := row.Scan(&h.Event, &h.Customer, &h.State, &h.Area, &lines, &draws, &h.Currency, &h.Created, &h.Expires,
		&h.Extended, &h.Window, &h.Order, &h.Session, &h.Exchange, &h.Offer)
	if err != nil {
		return nil, err
	}
	h.WasState, h.WasExpires = h.State, h.Expires
	if h.Lines, err = decide.ParseLines(lines); err != nil {
		return nil, err
	}
	h.Draws, err = decide.ParseDraws(draws)
	return h, err
}

func (s *source) Hold(hold id.ID) (*decide.Hold, error) {
	if h, ok := s.cache.holds.get(hold); ok {
		return h, nil
	}
	return none(scanHold(s.s.hold.QueryRowContext(s.ctx, int64(hold)), hold))
}

func scanOrder(row scanner, order id.ID) (*decide.Order, error) {
	o := &decide.Order{}
	o.ID = order
	var documents string
	err := row.Scan(&o.Hold, &o.Event, &o.Customer, &o.State, &o.Reason, &o.Amount, &o.Currency, &o.Provider, &o.Payment,
		&o.AllowOther, &o.Rescued, &o.AttemptOpen, &documents, &o.Created, &o.Updated, &o.Sequence)
	if err != nil {
		return nil, err
	}
	o.Documents, err = decide.DecodeDocuments(documents)
	return o, err
}

func (s *source) Order(order id.ID) (*decide.Order, error) {
	if o, ok := s.cache.orders.get(order); ok {
		return o, nil
	}
	return none(scanOrder(s.s.order.QueryRowContext(s.ctx, int64(order)), order))
}

func (s *source) Payment(k decide.PaymentKey) (*decide.Payment, error) {
	if all, ok := s.cache.payments.get(k.Order); ok {
		for _, p := range all {
			if p.Provider == k.Provider && p.ID == k.Payment {
				return p, nil
			}
		}
		return nil, nil
	}
	p := &decide.Payment{}
	p.Payment = ledger.Payment{Order: k.Order, Provider: k.Provider, ID: k.Payment}
	return none(p, s.s.payment.QueryRowContext(s.ctx, int64(k.Order), k.Provider, k.Payment).Scan(
		&p.Currency, &p.State, &p.Authorized, &p.Captured, &p.Voided, &p.Refunded, &p.Refund))
}

func (s *source) Refund(refund id.ID) (*decide.Refund, error) {
	r := &decide.Refund{}
	r.ID = refund
	return none(r, s.s.refund.QueryRowContext(s.ctx, int64(refund)).Scan(
		&r.Order, &r.Provider, &r.Payment, &r.State, &r.Amount, &r.Currency, &r.Reason, &r.Created))
}

func scanTicket(row scanner, t *ledger.Ticket, more ...any) error {
	var seat, area sql.NullInt32
	err := row.Scan(append(more, &t.Event, &t.Customer, &t.State, &seat, &area, &t.Category, &t.Total)...)
	t.Seat, t.Area = -1, -1
	if seat.Valid {
		t.Seat = seat.Int32
	}
	if area.Valid {
		t.Area = area.Int32
	}
	return err
}

func (s *source) Tickets(order id.ID) ([]*decide.Ticket, error) {
	return list(s.ctx, s.s.tickets, func(rows *sql.Rows) (*decide.Ticket, error) {
		t := &decide.Ticket{}
		t.Order = order
		return t, scanTicket(rows, &t.Ticket, &t.ID)
	}, int64(order))
}

func (s *source) Key(k decide.IdemKey) (*decide.Key, error) {
	r := &decide.Key{IdemKey: k}
	var fields string
	err := s.s.key.QueryRowContext(s.ctx, int64(k.Customer), k.Operation, k.Value).Scan(&r.Subject, &fields, &r.Created)
	if err == nil {
		r.Fields, err = decide.DecodeFields(fields)
	}
	return none(r, err)
}

func count(row *sql.Row) (n int, err error) {
	if err = row.Scan(&n); errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

func (s *source) Limit(k decide.LimitKey) (int, error) {
	return count(s.s.limit.QueryRowContext(s.ctx, int64(k.Scope), int64(k.Of), k.Category, []byte(k.Subject)))
}

func (s *source) Quota(k decide.QuotaKey) (int, error) {
	return count(s.s.quota.QueryRowContext(s.ctx, int64(k.Event), k.Category, k.Section))
}

func scanID(rows *sql.Rows) (v id.ID, err error) {
	err = rows.Scan(&v)
	return v, err
}

func (s *source) Expired(k decide.ExpiredKey, now ledger.Time) ([]id.ID, error) {
	return list(s.ctx, s.s.expired, scanID, int64(now), int64(k.Customer), int64(k.Event), k.Area, k.Max)
}

func (s *source) Free(event id.ID) ([]int32, error) {
	return list(s.ctx, s.s.free, func(rows *sql.Rows) (v int32, err error) { err = rows.Scan(&v); return v, err }, int64(event))
}

func (s *source) Claims(event id.ID) ([]id.ID, error) {
	return list(s.ctx, s.s.claims, scanID, int64(event))
}

func (s *source) Documents(event id.ID) ([]string, error) {
	lists, err := list(s.ctx, s.s.documents, func(rows *sql.Rows) ([]string, error) {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		return decide.DecodeDocuments(text)
	}, int64(event))
	var all []string
	for _, l := range lists {
		all = append(all, l...)
	}
	return all, err
}
