package sqlite

import (
	"cmp"
	"context"
	"database/sql"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

const wishColumns = `wish_id, event_id, customer_id, state, quantity, least, categories, sections, together, price_max, line_order, hold_id, offer_count, created_at, updated_at, sequence`

func (r *reader) wishes(ctx context.Context, where string, args ...any) ([]ledger.Wish, error) {
	return query(ctx, r.db, func(rows *sql.Rows) (ledger.Wish, error) {
		w, err := scanWish(rows)
		if err != nil {
			return ledger.Wish{}, err
		}
		return w.Wish, nil
	}, `SELECT `+wishColumns+` FROM wishes WHERE `+where, args...)
}

func (r *reader) oneWish(ctx context.Context, where string, args ...any) (ledger.Wish, error) {
	found, err := r.wishes(ctx, where, args...)
	if err != nil {
		return ledger.Wish{}, err
	}
	if len(found) == 0 {
		return ledger.Wish{}, ledger.ErrNotFound
	}
	return found[0], nil
}

// Wish implements ledger.Reader.
func (r *reader) Wish(ctx context.Context, wish id.ID) (ledger.Wish, error) {
	return r.oneWish(ctx, `wish_id = ?`, int64(wish))
}

// WishOf implements ledger.Reader.
func (r *reader) WishOf(ctx context.Context, event, customer id.ID) (ledger.Wish, error) {
	return r.oneWish(ctx, `customer_id = ? AND event_id = ? ORDER BY wish_id DESC LIMIT 1`, int64(customer), int64(event))
}

// Wishes implements ledger.Reader.
func (r *reader) Wishes(ctx context.Context, event id.ID, state ledger.WishState, after ledger.WishCursor, most int) ([]ledger.Wish, error) {
	return r.wishes(ctx, `event_id = ? AND state = ? AND (offer_count, line_order, wish_id) > (?, ?, ?) ORDER BY offer_count, line_order, wish_id LIMIT ?`,
		int64(event), int64(state), after.Offers, after.Order, int64(after.Wish), most)
}

// WishesOfCustomer implements ledger.Reader.
func (r *reader) WishesOfCustomer(ctx context.Context, customer, before id.ID, most int) ([]ledger.Wish, error) {
	return r.wishes(ctx, `customer_id = ? AND wish_id < ? ORDER BY wish_id DESC LIMIT ?`, int64(customer), int64(cmp.Or(before, maxID)), most)
}

// Returned implements ledger.Reader.
func (r *reader) Returned(ctx context.Context, event id.ID, most int) (p ledger.ReturnedPlaces, err error) {
	if _, err = r.Event(ctx, event); err != nil {
		return p, err
	}
	number := func(rows *sql.Rows) (v int32, err error) { err = rows.Scan(&v); return v, err }
	p.Seats, err = query(ctx, r.db, number, `SELECT seat_index FROM seats WHERE event_id = ? AND state = 4 ORDER BY seat_index LIMIT ?`, int64(event), most)
	if err != nil {
		return p, err
	}
	p.Areas, err = query(ctx, r.db, number, `SELECT sum(returned) FROM buckets WHERE event_id = ? GROUP BY area ORDER BY area`, int64(event))
	return p, err
}
