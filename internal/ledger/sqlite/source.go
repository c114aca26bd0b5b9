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
	var version, sequence int64
	var state ledger.EventState
	var body string
	err := s.s.event.QueryRowContext(s.ctx, int64(event)).Scan(&version, &state, &sequence, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e, err := decide.DecodeEvent(body, event, version, state, sequence)
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
		return b, rows.Scan(&b.Number, &b.Capacity, &b.Held, &b.Sold, &b.Returned, &b.ReturnedAt)
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
	var lines, draws, exchanged string
	err := row.Scan(&h.Event, &h.Customer, &h.State, &h.Area, &lines, &draws, &h.Currency, &h.Created, &h.Expires,
		&h.Extended, &h.Window, &h.Order, &h.Session, &h.Exchange, &h.Offer, &exchanged, &h.Ended)
	if err != nil {
		return nil, err
	}
	h.WasState, h.WasExpires = h.State, h.Expires
	if h.Lines, err = decide.ParseLines(lines); err != nil {
		return nil, err
	}
	if h.Draws, err = decide.ParseDraws(draws); err != nil {
		return nil, err
	}
	h.Exchanged, err = decide.ParseExchanged(exchanged)
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
	var documents, funds string
	err := row.Scan(&o.Hold, &o.Event, &o.Customer, &o.State, &o.Reason, &o.Amount, &o.Currency, &o.Provider, &o.Payment,
		&o.AllowOther, &o.Rescued, &o.AttemptOpen, &documents, &o.Created, &o.Updated, &o.Sequence, &o.Exchange, &o.Credit, &funds)
	if err != nil {
		return nil, err
	}
	if o.Documents, err = decide.DecodeDocuments(documents); err != nil {
		return nil, err
	}
	o.Funds, err = decide.DecodeFunds(funds)
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
		&p.Currency, &p.State, &p.Authorized, &p.Captured, &p.Voided, &p.Refunded, &p.Refund, &p.Promised))
}

func scanRefund(row scanner) (*decide.Refund, error) {
	r := &decide.Refund{}
	var tickets string
	err := row.Scan(&r.ID, &r.Order, &r.From, &r.Provider, &r.Payment, &tickets, &r.State, &r.Amount, &r.FeeKept, &r.Rule, &r.Currency,
		&r.Reason, &r.By, &r.Refused, &r.Try, &r.Created)
	if err != nil {
		return nil, err
	}
	r.Tickets, err = decide.DecodeTickets(tickets)
	return r, err
}

func (s *source) Refund(refund id.ID) (*decide.Refund, error) {
	return none(scanRefund(s.s.refund.QueryRowContext(s.ctx, int64(refund))))
}

func (s *source) RefundsOf(order id.ID) ([]*decide.Refund, error) {
	return list(s.ctx, s.s.refundsOf, func(rows *sql.Rows) (*decide.Refund, error) { return scanRefund(rows) }, int64(order))
}

func scanTicket(row scanner) (*decide.Ticket, error) {
	t := &decide.Ticket{}
	var seat, area sql.NullInt32
	err := row.Scan(&t.ID, &t.Order, &t.Event, &t.Customer, &t.State, &seat, &area, &t.Category, &t.Total, &t.Place, &t.Was,
		&t.Exchange, &t.Refund, &t.Gone)
	t.Seat, t.Area = -1, -1
	if seat.Valid {
		t.Seat = seat.Int32
	}
	if area.Valid {
		t.Area = area.Int32
	}
	return t, err
}

func scanTickets(rows *sql.Rows) (*decide.Ticket, error) { return scanTicket(rows) }

func (s *source) Tickets(order id.ID) ([]*decide.Ticket, error) {
	return list(s.ctx, s.s.tickets, scanTickets, int64(order))
}

func (s *source) TicketOrder(ticket id.ID) (order id.ID, err error) {
	if err = s.s.ticketOf.QueryRowContext(s.ctx, int64(ticket)).Scan(&order); errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return order, err
}

func (s *source) Received(event id.ID) ([]*decide.Ticket, error) {
	return list(s.ctx, s.s.received, scanTickets, int64(event))
}

func scanUse(rows *sql.Rows) (*decide.CheckIn, error) {
	u := &decide.CheckIn{}
	return u, rows.Scan(&u.Event, &u.At, &u.Ticket, &u.Device, &u.Gate, &u.By, &u.Offline, &u.Conflict, &u.Undone, &u.UndoneBy, &u.Why)
}

func (s *source) CheckIns(ticket id.ID) ([]*decide.CheckIn, error) {
	return list(s.ctx, s.s.uses, scanUse, int64(ticket))
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

func scanWish(row scanner) (*decide.Wish, error) {
	w := &decide.Wish{}
	var categories, sections string
	err := row.Scan(&w.ID, &w.Event, &w.Customer, &w.State, &w.Quantity, &w.Least, &categories, &sections, &w.Together, &w.PriceMax, &w.Order,
		&w.Hold, &w.Offers, &w.Created, &w.Updated, &w.Sequence)
	if err != nil {
		return nil, err
	}
	if w.Categories, err = decide.DecodeNames(categories); err != nil {
		return nil, err
	}
	w.Sections, err = decide.DecodeNames(sections)
	return w, err
}

func (s *source) Wish(wish id.ID) (*decide.Wish, error) {
	return none(scanWish(s.s.wish.QueryRowContext(s.ctx, int64(wish))))
}

func (s *source) WishOf(k decide.WishKey) (*decide.Wish, error) {
	return none(scanWish(s.s.wishOf.QueryRowContext(s.ctx, int64(k.Customer), int64(k.Event))))
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

func (s *source) Documents(event id.ID) ([]decide.OrderDocuments, error) {
	return list(s.ctx, s.s.documents, func(rows *sql.Rows) (d decide.OrderDocuments, err error) {
		var text string
		if err := rows.Scan(&d.Order, &text); err != nil {
			return d, err
		}
		d.Documents, err = decide.DecodeDocuments(text)
		return d, err
	}, int64(event))
}
