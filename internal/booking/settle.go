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

// settle makes the ledger agree with what the provider says of one payment, and gives the order as it is then. It may be
// called any number of times, in any order of pictures: what is final at the provider is final here.
//
// places is how many tickets the order gives, 0 where the caller does not know.
func (s *Service) settle(ctx context.Context, o ledger.Order, p payment.Payment, places int) (ledger.Order, error) {
	switch p.State {
	case payment.Authorized, payment.Captured:
		o, err := s.confirm(ctx, o, ledger.Confirm{
			Payment: p.ID, Amount: p.AmountMinor, Currency: p.Currency, Captured: p.State == payment.Captured,
		}, places)
		if err == nil && p.State == payment.Captured && places == 0 { // it may have been authorized before
			err = s.recordCaptured(ctx, o, p)
		}
		return o, err
	case payment.Declined:
		if p.Decline.Final {
			return s.fail(ctx, o, false, p.Decline.Code)
		}
		return s.cancel(ctx, o) // only a final no ends an order
	case payment.Cancelled:
		return s.fail(ctx, o, true, "cancelled")
	case payment.Voided:
		return s.voided(ctx, o, p)
	}
	return o, nil // Pending: a webhook or recovery will tell
}

// confirm tells the ledger of a payment, with all the ids that may be needed, and gives the payment back at once where
// it does not buy anything.
func (s *Service) confirm(ctx context.Context, o ledger.Order, c ledger.Confirm, places int) (ledger.Order, error) {
	if places == 0 {
		hold, err := s.o.Shard.Ledger().Hold(ctx, o.Hold)
		if err != nil {
			return ledger.Order{}, fmt.Errorf("the hold of order %d: %w", o.ID, err)
		}
		places = len(hold.Lines)
	}
	c.Order = o.ID
	c.Tickets = make([]id.ID, places)
	for _, slot := range append([]*id.ID{&c.Refund, &c.RescueHold}, pointers(c.Tickets)...) {
		var err error
		if *slot, err = s.o.IDs.Next(s.o.Number); err != nil {
			return ledger.Order{}, err
		}
	}
	r, err := s.do(ctx, c)
	if err != nil {
		return ledger.Order{}, err
	}
	if r.Refund != nil {
		if !r.Repeat {
			s.o.Alert(ctx, "a payment is given back: "+r.Refund.Reason, o.ID, nil)
		}
		if r.Refund.State == ledger.RefundRequested {
			if err := s.giveBack(ctx, o.ID, c.Payment, *r.Refund); err != nil {
				// It is written down: the recovery job goes on with it.
				s.o.Logger.WarnContext(ctx, "giving a payment back has to be tried again", "refund", r.Refund.ID.Text(id.Refund), "error", err)
			}
		}
	}
	return *r.Order, nil
}

func pointers(ids []id.ID) []*id.ID {
	p := make([]*id.ID, len(ids))
	for i := range ids {
		p[i] = &ids[i]
	}
	return p
}

// recordCaptured writes down that a payment that was authorized before has been captured. It is a repeat, without
// effect, for one that Confirm saw captured.
func (s *Service) recordCaptured(ctx context.Context, o ledger.Order, p payment.Payment) error {
	_, err := s.do(ctx, ledger.RecordPayment{Order: o.ID, Payment: p.ID, State: ledger.PaymentCaptured, Amount: p.CapturedMinor})
	return err
}

// fail ends an order after the provider's final no.
func (s *Service) fail(ctx context.Context, o ledger.Order, cancelled bool, reason string) (ledger.Order, error) {
	r, err := s.do(ctx, ledger.FailPayment{Order: o.ID, Cancelled: cancelled, Reason: reason})
	if fault.CodeOf(err) == fault.Conflict { // it is PAID: a late no of one attempt changes nothing
		return s.now(ctx, o)
	}
	if err != nil {
		return ledger.Order{}, err
	}
	return *r.Order, nil
}

func (s *Service) now(ctx context.Context, o ledger.Order) (ledger.Order, error) {
	return s.o.Shard.Ledger().Order(ctx, o.ID)
}

// voided settles a payment that was let go. Where the ledger asked for that it knows already; else the order gets no
// money from it any more.
func (s *Service) voided(ctx context.Context, o ledger.Order, p payment.Payment) (ledger.Order, error) {
	now, err := s.now(ctx, o)
	if err != nil {
		return ledger.Order{}, err
	}
	switch {
	case now.State == ledger.OrderPending:
		return s.cancel(ctx, now)
	case now.State == ledger.OrderPaid && now.Payment == p.ID:
		// Its capture is due and cannot come any more.
		return now, s.captureRefused(ctx, now.ID, p.ID, "voided_by_provider")
	}
	return now, nil
}

// cancel makes every attempt of an order impossible at the provider, and then ends the order (A19).
func (s *Service) cancel(ctx context.Context, o ledger.Order) (ledger.Order, error) {
	end, err := s.o.Provider.Cancel(ctx, o.ID.Text(id.Order))
	if err != nil {
		return ledger.Order{}, &fault.Error{Code: fault.PaymentUnavailable, Order: o.ID, Cause: err}
	}
	switch end.Result {
	case payment.EndingCancelled:
		return s.fail(ctx, o, true, "cancelled")
	case payment.EndingDeclined:
		reason := "declined"
		for _, p := range end.Payments {
			if p.State == payment.Declined && p.Decline.Code != "" {
				reason = p.Decline.Code
			}
		}
		return s.fail(ctx, o, false, reason)
	case payment.EndingPaid:
		return s.settleAll(ctx, o, end.Payments)
	}
	return o, nil // EndingPending: ask again
}

// settleAll settles every payment that took or reserved money under an order id: the first may buy, a second is given
// back.
func (s *Service) settleAll(ctx context.Context, o ledger.Order, payments []payment.Payment) (ledger.Order, error) {
	var all error
	for _, p := range payments {
		if !p.State.Paid() {
			continue
		}
		now, err := s.settle(ctx, o, p, 0)
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		o = now
	}
	return o, all
}

// ask looks up what became of an order's attempts. settled says that there was an answer.
func (s *Service) ask(ctx context.Context, o ledger.Order) (now ledger.Order, settled bool, err error) {
	payments, err := s.o.Provider.Lookup(ctx, o.ID.Text(id.Order))
	if err != nil || len(payments) == 0 {
		return o, false, nil
	}
	if o, err = s.settleAll(ctx, o, payments); err != nil || o.State != ledger.OrderPending {
		return o, true, err
	}
	o, err = s.settle(ctx, o, payments[len(payments)-1], 0)
	return o, true, err
}

// giveBack voids or refunds one payment and writes that down. A final refusal leaves the refund REQUESTED, with an alert
// (A21).
func (s *Service) giveBack(ctx context.Context, order id.ID, paymentID string, r ledger.Refund) error {
	payments, err := s.o.Provider.Lookup(ctx, order.Text(id.Order))
	if err != nil {
		return err
	}
	for _, p := range payments {
		if p.ID == paymentID {
			return s.givePayment(ctx, order, p, r)
		}
	}
	return fmt.Errorf("the provider does not list payment %s of order %d: %w", paymentID, order, payment.ErrUnknown)
}

func (s *Service) givePayment(ctx context.Context, order id.ID, p payment.Payment, r ledger.Refund) error {
	record := ledger.RecordPayment{Order: order, Payment: p.ID, Amount: r.Amount, Refund: r.ID}
	switch p.State {
	case payment.Authorized:
		authorizer, ok := s.o.Provider.(payment.Authorizer)
		if !ok {
			return errors.New("the provider reserved money that it cannot let go")
		}
		if _, err := authorizer.Void(ctx, p.ID); err != nil {
			return s.refused(ctx, order, err)
		}
		record.State = ledger.PaymentVoided
	case payment.Voided:
		record.State = ledger.PaymentVoided
	case payment.Captured:
		refunder, ok := s.o.Provider.(payment.Refunder)
		if !ok {
			return errors.New("the provider took money that it cannot give back")
		}
		if _, err := s.do(ctx, ledger.RecordPayment{Order: order, Payment: p.ID, State: ledger.PaymentCaptured, Amount: p.CapturedMinor}); err != nil {
			return err
		}
		if _, err := refunder.Refund(ctx, p.ID, r.ID.Text(id.Refund), r.Amount); err != nil {
			return s.refused(ctx, order, err)
		}
		record.State = ledger.PaymentRefunded
	default:
		return fmt.Errorf("payment %s is %s: there is nothing to give back yet", p.ID, p.State)
	}
	_, err := s.do(ctx, record)
	return err
}

// refused raises the alert that a final refusal to give money back needs.
func (s *Service) refused(ctx context.Context, order id.ID, err error) error {
	var final *payment.Refused
	if errors.As(err, &final) {
		s.o.Alert(ctx, "the provider refuses to give money back", order, err)
	}
	return err
}

// capture takes the money of a PAID order that was only reserved (A18).
func (s *Service) capture(ctx context.Context, p ledger.Payment) error {
	authorizer, ok := s.o.Provider.(payment.Authorizer)
	if !ok {
		return errors.New("a payment is authorized at a provider that cannot capture")
	}
	got, err := authorizer.Capture(ctx, p.ID, p.Authorized)
	var final *payment.Refused
	if errors.As(err, &final) {
		return s.captureRefused(ctx, p.Order, p.ID, final.Code)
	}
	if err != nil {
		return err
	}
	_, err = s.do(ctx, ledger.RecordPayment{Order: p.Order, Payment: p.ID, State: ledger.PaymentCaptured, Amount: got.CapturedMinor})
	return err
}

// captureRefused undoes the sale.
func (s *Service) captureRefused(ctx context.Context, order id.ID, paymentID, code string) error {
	refund, err := s.o.IDs.Next(s.o.Number)
	if err != nil {
		return err
	}
	r, err := s.do(ctx, ledger.RecordPayment{Order: order, Payment: paymentID, State: ledger.PaymentCaptureRefused, Refund: refund})
	if err == nil && !r.Repeat {
		s.o.Alert(ctx, "capture refused ("+code+"): the tickets are void", order, nil)
	}
	return err
}
