package booking

import (
	"context"
	"errors"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A Quote is what an exchange costs, in minor units: New = what the new places cost, Old = what the old tickets did, Fee =
// what is kept of that. One of Due and Back is 0.
type Quote struct {
	Currency string
	New      int64
	Old      int64
	Fee      int64
	Due      int64 // to be paid
	Back     int64 // given back
}

// Quote says what the exchange that a hold is for would cost now. It promises nothing: the ledger fixes it when the
// payment begins. Faults: hold_unknown, wrong_customer; invalid (the hold exchanges nothing, or has done so).
func (s *Service) Quote(ctx context.Context, customer, hold id.ID) (Quote, error) {
	read := s.o.Shard.Ledger()
	h, err := read.Hold(ctx, hold)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return Quote{}, fault.New(fault.HoldUnknown, "")
	case err != nil:
		return Quote{}, err
	case h.Customer != customer:
		return Quote{}, fault.New(fault.WrongCustomer, "")
	case len(h.Exchanged) == 0:
		return Quote{}, &fault.Error{Code: fault.Invalid, Field: "hold_id", Detail: "this hold is not for an exchange: make one with exchange_of"}
	}
	old, err := read.Order(ctx, h.Exchange)
	if err != nil {
		return Quote{}, err
	}
	e, err := read.Event(ctx, old.Event)
	if err != nil {
		return Quote{}, err
	}
	q := Quote{Currency: h.Currency, New: h.Total()}
	for _, x := range h.Exchanged {
		for _, t := range old.Tickets {
			if t.ID == x.Ticket {
				q.Old += t.Total
				q.Fee += min(e.Exchanges.Fee, t.Total)
			}
		}
	}
	q.Due = max(0, q.New-(q.Old-q.Fee))
	q.Back = max(0, q.Old-q.Fee-q.New)
	return q, nil
}

// exchanges says whether a booking is the second half of an exchange: its payment is taken at once, since nothing is to be
// undone after the swap.
func exchanges(o ledger.Order) bool { return o.Exchange != 0 }

// swapped ends what an exchange leaves to be done: what is too much goes back.
func (s *Service) swapped(ctx context.Context, o ledger.Order) {
	if !exchanges(o) || o.State != ledger.OrderPaid {
		return
	}
	if err := s.moneyBack(ctx, o.Exchange); err != nil {
		s.o.Logger.WarnContext(ctx, "the rest of an exchange will be given back later", "order", o.ID.Text(id.Order), "error", err)
	}
}
