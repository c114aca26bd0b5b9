package booking

import (
	"context"
	"errors"
	"fmt"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// A RefundRequest asks for tickets to be given back. What each By may do is said at ledger.BeginRefund.
type RefundRequest struct {
	Order    id.ID
	Customer id.ID // who asks; for ByOrganizer the organizer's user
	By       ledger.By
	Tickets  []id.ID // none: all there are
	Reason   string
	Fee      int64 // ByOrganizer: kept, minor units
	Used     bool  // ByOrganizer: USED tickets too, by an owner
	Key      ledger.Key
}

// Refund gives tickets back (A21): they are void when it returns. The money is on its way then, or back already: the
// refunds answered say which, the first the one that the request made. Repeated with the same key it answers the same
// refund as it is now.
//
// Faults: those of ledger.BeginRefund; outcome_unknown.
func (s *Service) Refund(ctx context.Context, r RefundRequest) ([]ledger.Refund, error) {
	first, err := s.beginRefund(ctx, r)
	if err != nil {
		return nil, err
	}
	s.moneyBackNow(ctx, first)
	return s.refundsLike(ctx, first)
}

// moneyBackNow is moneyBack while somebody waits for the answer. It goes on even when they hang up. What is not done now,
// recovery does: where as many talk with the provider as may (I13), all of it.
func (s *Service) moneyBackNow(ctx context.Context, r *ledger.Refund) {
	select {
	case s.talks <- struct{}{}:
		defer func() { <-s.talks }()
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.AttemptTimeout+settleTime)
	defer cancel()
	if err := s.moneyBack(ctx, r.Order); err != nil {
		s.o.Logger.WarnContext(ctx, "a refund will be finished later", "refund", r.ID.Text(id.Refund), "error", err)
	}
}

// beginRefund makes the tickets void, and says which refund did.
func (s *Service) beginRefund(ctx context.Context, r RefundRequest) (*ledger.Refund, error) {
	ids, err := s.newIDs(ledger.RefundPartsMax)
	if err != nil {
		return nil, err
	}
	begun, err := s.do(ctx, ledger.BeginRefund{
		IDs: ids, Order: r.Order, Customer: r.Customer, By: r.By, Key: r.Key, Tickets: r.Tickets, Reason: r.Reason, Fee: r.Fee, Used: r.Used,
	})
	return begun.Refund, err
}

// refundsLike are the refunds that one request made, the one with the tickets first.
func (s *Service) refundsLike(ctx context.Context, first *ledger.Refund) ([]ledger.Refund, error) {
	all, err := s.o.Shard.Ledger().RefundsOf(ctx, first.Order)
	if err != nil {
		return nil, err
	}
	var made []ledger.Refund
	for _, r := range all {
		switch {
		case r.ID == first.ID:
			made = append([]ledger.Refund{r}, made...)
		case r.Created == first.Created && r.Reason == first.Reason && len(r.Tickets) == 0 && r.By == first.By:
			made = append(made, r)
		}
	}
	if len(made) == 0 {
		return nil, fmt.Errorf("refund %d is not among those of its order", first.ID)
	}
	return made, nil
}

// moneyBack is the first try to end an order's refunds: money back, then seats back. They are written down: where it fails
// recovery goes on.
func (s *Service) moneyBack(ctx context.Context, order id.ID) error {
	refunds, err := s.o.Shard.Ledger().RefundsOf(ctx, order)
	if err != nil {
		return err
	}
	now, err := s.o.Shard.Ledger().Now(ctx)
	if err != nil {
		return err
	}
	var all error
	for _, r := range refunds {
		if r.State == ledger.RefundRequested && r.Refused == "" && s.retries.due(retryKey(r), now) {
			err := s.giveBack(ctx, r)
			s.ended(ctx, doGiveBack, r.Key(), r.Order, now, err)
			all = errors.Join(all, err)
		}
	}
	return errors.Join(all, s.releaseOf(ctx, order))
}

// retryKey names the work of giving one refund's money back, for retries.
func retryKey(r ledger.Refund) string { return doGiveBack + r.Key() }

// releaseOf gives back the seats of an order's refunds whose money is back.
func (s *Service) releaseOf(ctx context.Context, order id.ID) error {
	refunds, err := s.o.Shard.Ledger().RefundsOf(ctx, order)
	if err != nil {
		return err
	}
	var all error
	for _, r := range refunds {
		if r.State == ledger.RefundDone && len(r.Tickets) > 0 {
			_, err := s.do(ctx, ledger.ReleaseSeats{Refund: r.ID})
			all = errors.Join(all, err)
		}
	}
	return all
}

// refused writes down that the provider will never give a refund's money back (A21): people must look.
func (s *Service) refused(ctx context.Context, r ledger.Refund, code string) error {
	done, err := s.do(ctx, ledger.RefuseRefund{Refund: r.ID, Try: r.Try, Reason: word(code)})
	if err == nil && !done.Repeat {
		s.o.Alert(ctx, "the provider refused a refund ("+word(code)+")", r.Order, nil)
	}
	return err
}

// RetryRefund tries a refused refund again, under a new key at the provider. Faults: refund_unknown; conflict (it was not
// refused); outcome_unknown.
func (s *Service) RetryRefund(ctx context.Context, refund id.ID) (ledger.Refund, error) {
	r, err := s.refundByID(ctx, refund)
	if err != nil {
		return ledger.Refund{}, err
	}
	if r.Refused == "" {
		return ledger.Refund{}, fault.New(fault.Conflict, "the provider has not refused this refund")
	}
	retry := ledger.RetryRefund{Refund: refund, Try: r.Try + 1}
	if _, err := s.do(ctx, retry); fault.CodeOf(err) == fault.Conflict {
		// It may be our own: the commit's outcome was unknown, and the second time it met the first.
		if now, failed := s.refundByID(ctx, refund); failed != nil || now.Try != retry.Try {
			return ledger.Refund{}, err
		}
	} else if err != nil {
		return ledger.Refund{}, err
	}
	s.moneyBackNow(ctx, &r)
	return s.refundByID(ctx, refund)
}

func (s *Service) refundByID(ctx context.Context, refund id.ID) (ledger.Refund, error) {
	r, err := s.o.Shard.Ledger().Refund(ctx, refund)
	if errors.Is(err, ledger.ErrNotFound) {
		return r, fault.New(fault.RefundUnknown, "")
	}
	return r, err
}

// A Transfer asks for a ticket to be passed on.
type Transfer struct {
	Ticket   id.ID
	Customer id.ID // who has it
	To       id.ID
	Document string // the keyed hash of the new attendee's identity document, "" for none
	Key      ledger.Key
}

// Transfer passes a ticket on: the old one is void, the answer is the new one. Faults: those of ledger.Transfer;
// outcome_unknown.
func (s *Service) Transfer(ctx context.Context, t Transfer) (ledger.Ticket, error) {
	ids, err := s.newIDs(1)
	if err != nil {
		return ledger.Ticket{}, err
	}
	r, err := s.do(ctx, ledger.Transfer{ID: ids[0], Ticket: t.Ticket, Customer: t.Customer, To: t.To, Document: t.Document, Key: t.Key})
	if err != nil {
		return ledger.Ticket{}, err
	}
	return *r.Ticket, nil
}

func (s *Service) newIDs(n int) ([]id.ID, error) {
	ids := make([]id.ID, n)
	for i := range ids {
		var err error
		if ids[i], err = s.o.IDs.Next(s.o.Number); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// errNoMoney says that the provider has nothing of a payment that something must be given back of.
var errNoMoney = errors.New("the provider has no money of it")

// refundTickets gives back a part of a captured payment. What is not certain is tried again.
func (s *Service) refundTickets(ctx context.Context, p payment.Payment, r ledger.Refund) error {
	if p.State != payment.Captured {
		return fmt.Errorf("payment %s is %s: %w", p.ID, p.State, errNoMoney)
	}
	if err := s.refund(ctx, p, r.Key(), r.Amount); err != nil {
		return err
	}
	_, err := s.do(ctx, ledger.RecordPayment{Order: r.From, Payment: p.ID, State: ledger.PaymentRefunded, Amount: r.Amount, Refund: r.ID})
	return err
}
