package booking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
		if !hasMoney(p) { // it went back already
			return s.gone(ctx, o)
		}
		return s.paid(ctx, o, p, places)
	case payment.Declined:
		if p.Decline.Final {
			return s.fail(ctx, o, false, p.Decline.Code)
		}
		return s.cancel(ctx, o, "cancelled") // only a final no ends an order
	case payment.Cancelled:
		return s.fail(ctx, o, true, "cancelled")
	case payment.Voided:
		return s.voided(ctx, o, p)
	}
	return o, nil // Pending: a webhook or recovery will tell
}

// hasMoney says whether money is reserved or kept by a payment.
func hasMoney(p payment.Payment) bool {
	return p.State == payment.Authorized || p.State == payment.Captured && p.CapturedMinor > p.RefundedMinor
}

// paid settles a payment by which money is there. What counts is what is there, whatever was asked for.
func (s *Service) paid(ctx context.Context, o ledger.Order, p payment.Payment, places int) (ledger.Order, error) {
	c := ledger.Confirm{Payment: p.ID, Amount: p.AuthorizedMinor, Currency: p.Currency}
	if p.State == payment.Captured {
		c.Captured, c.Amount = true, p.CapturedMinor-p.RefundedMinor
	}
	o, repeat, err := s.confirm(ctx, o, c, places)
	if err != nil || !repeat || !c.Captured {
		return o, err
	}
	// The ledger knew it, maybe as authorized: without effect where it knew it captured.
	_, err = s.do(ctx, ledger.RecordPayment{Order: o.ID, Payment: p.ID, State: ledger.PaymentCaptured, Amount: p.CapturedMinor})
	if fault.CodeOf(err) == fault.Conflict {
		s.o.Alert(ctx, "the provider took money that it had let go, or more than it had reserved", o.ID, err)
		err = nil
	}
	return o, err
}

// confirmFree sells what costs nothing.
func (s *Service) confirmFree(ctx context.Context, o ledger.Order, places int) (ledger.Order, error) {
	o, _, err := s.confirm(ctx, o, ledger.Confirm{Currency: o.Currency, Captured: true}, places)
	return o, err
}

// confirm tells the ledger of a payment, with all the ids that may be needed, and gives the payment back at once where
// it does not buy anything.
func (s *Service) confirm(ctx context.Context, o ledger.Order, c ledger.Confirm, places int) (now ledger.Order, repeat bool, err error) {
	if places == 0 {
		hold, err := s.o.Shard.Ledger().Hold(ctx, o.Hold)
		if err != nil {
			return now, false, fmt.Errorf("the hold of order %d: %w", o.ID, err)
		}
		places = len(hold.Lines)
	}
	c.Order = o.ID
	parts := 0
	if exchanges(o) {
		parts = ledger.RefundPartsMax + 1
	}
	ids, err := s.newIDs(2 + places + parts)
	if err != nil {
		return now, false, err
	}
	c.Refund, c.RescueHold, c.Tickets, c.Exchange = ids[0], ids[1], ids[2:2+places], ids[2+places:]
	r, err := s.do(ctx, c)
	if err != nil {
		return now, false, err
	}
	if r.Refund != nil {
		if r.Refund.ID == c.Refund { // made by this call, even where its answer was lost once
			s.o.Alert(ctx, "a payment is given back: "+r.Refund.Reason, o.ID, nil)
		}
		if r.Refund.State == ledger.RefundRequested {
			s.giveBackNow(ctx, *r.Refund)
		}
	}
	s.swapped(ctx, *r.Order)
	return *r.Order, r.Repeat, nil
}

// giveBackNow is the first try to give a payment back. It is written down: where it fails the recovery job goes on.
func (s *Service) giveBackNow(ctx context.Context, r ledger.Refund) {
	now, err := s.o.Shard.Ledger().Now(ctx)
	if err != nil || !s.retries.due(retryKey(r), now) {
		return
	}
	s.ended(ctx, doGiveBack, r.Key(), r.Order, now, s.giveBack(ctx, r))
}

// fail ends an order after the provider's final no.
func (s *Service) fail(ctx context.Context, o ledger.Order, cancelled bool, reason string) (ledger.Order, error) {
	r, err := s.do(ctx, ledger.FailPayment{Order: o.ID, Cancelled: cancelled, Reason: word(reason)})
	if fault.CodeOf(err) == fault.Conflict { // it is PAID: a late no of one attempt changes nothing
		return s.now(ctx, o)
	}
	if err != nil {
		return ledger.Order{}, err
	}
	return *r.Order, nil
}

// word is a provider's word as the ledger takes it.
func word(text string) string {
	const most = 64
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
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
		return s.cancel(ctx, now, "voided")
	case now.State == ledger.OrderPaid && now.Payment == p.ID:
		// Its capture is due and cannot come any more.
		if err := s.captureRefused(ctx, now.ID, p.ID, "voided_by_provider"); err != nil {
			return now, err
		}
		return s.now(ctx, now)
	}
	return now, nil
}

// gone settles a payment whose money went back already: the order gets none from it any more.
func (s *Service) gone(ctx context.Context, o ledger.Order) (ledger.Order, error) {
	now, err := s.now(ctx, o)
	if err != nil || now.State != ledger.OrderPending {
		return now, err
	}
	return s.cancel(ctx, now, "refunded")
}

// cancel makes every attempt of an order impossible at the provider, and then ends the order (A19). reason is why, where
// the provider did not decline.
func (s *Service) cancel(ctx context.Context, o ledger.Order, reason string) (ledger.Order, error) {
	end, err := s.o.Provider.Cancel(ctx, o.ID.Text(id.Order))
	if err != nil {
		return ledger.Order{}, s.unavailable(o, err)
	}
	switch end.Result {
	case payment.EndingCancelled:
		return s.fail(ctx, o, true, reason)
	case payment.EndingDeclined:
		declined := "declined"
		for _, p := range end.Payments {
			if p.State == payment.Declined {
				declined = cmp.Or(p.Decline.Code, declined)
			}
		}
		return s.fail(ctx, o, false, declined)
	case payment.EndingPaid:
		after, err := s.settleAll(ctx, o, end.Payments)
		if err != nil || after.State != ledger.OrderPending || slices.ContainsFunc(end.Payments, moneyOrHope) {
			return after, err
		}
		return s.fail(ctx, after, true, reason) // money was there and went back: no more can come
	}
	return o, nil // EndingPending: ask again
}

// moneyOrHope says that a payment is no reason to end an order.
func moneyOrHope(p payment.Payment) bool { return hasMoney(p) || p.State == payment.Pending }

// settleAll settles every payment that took or reserved money under an order id: the first may buy, a second is given
// back.
func (s *Service) settleAll(ctx context.Context, o ledger.Order, payments []payment.Payment) (ledger.Order, error) {
	var all error
	for _, p := range payments {
		if !hasMoney(p) {
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
func (s *Service) ask(ctx context.Context, o ledger.Order) (now Booked, settled bool, err error) {
	payments, err := s.o.Provider.Lookup(ctx, o.ID.Text(id.Order))
	if err != nil || len(payments) == 0 {
		return Booked{Order: o}, false, nil
	}
	if o, err = s.settleAll(ctx, o, payments); err != nil || o.State != ledger.OrderPending {
		return Booked{Order: o}, true, err
	}
	last := payments[len(payments)-1]
	o, err = s.settle(ctx, o, last, 0)
	return booked(o, last), true, err
}

// giveBack gives the money of one refund back: a whole payment that should not have been made, or a part of one for
// tickets. A final refusal leaves the refund REQUESTED, with an alert (A21).
func (s *Service) giveBack(ctx context.Context, r ledger.Refund) error {
	if s.foreign(r.Provider) {
		return errForeign
	}
	p, err := s.find(ctx, r.From, r.Payment)
	if err != nil {
		return err
	}
	whole, err := s.whole(ctx, r)
	switch {
	case err != nil:
		return err
	case whole:
		err = s.givePayment(ctx, p, r)
	default:
		err = s.refundTickets(ctx, p, r)
	}
	var final *payment.Refused
	if errors.As(err, &final) {
		return s.refused(ctx, r, final.Code)
	}
	return err
}

// whole says whether a refund is of a payment that should not have been made, all of it.
func (s *Service) whole(ctx context.Context, r ledger.Refund) (bool, error) {
	payments, err := s.o.Shard.Ledger().Payments(ctx, r.From)
	for _, p := range payments {
		if p.Provider == r.Provider && p.ID == r.Payment {
			return p.Refund == r.ID, err
		}
	}
	return false, err
}

// find looks one payment up.
func (s *Service) find(ctx context.Context, order id.ID, paymentID string) (payment.Payment, error) {
	payments, err := s.o.Provider.Lookup(ctx, order.Text(id.Order))
	if err != nil {
		return payment.Payment{}, err
	}
	for _, p := range payments {
		if p.ID == paymentID {
			return p, nil
		}
	}
	return payment.Payment{}, fmt.Errorf("payment %s of order %d: %w", paymentID, order, payment.ErrNotFound)
}

func (s *Service) givePayment(ctx context.Context, p payment.Payment, r ledger.Refund) error {
	record := ledger.RecordPayment{Order: r.From, Payment: p.ID, Amount: r.Amount, Refund: r.ID}
	switch p.State {
	case payment.Authorized:
		if err := s.void(ctx, p.ID); err != nil {
			return err
		}
		record.State = ledger.PaymentVoided
	case payment.Voided:
		record.State = ledger.PaymentVoided
	case payment.Captured:
		taken := ledger.RecordPayment{Order: r.From, Payment: p.ID, State: ledger.PaymentCaptured, Amount: p.CapturedMinor}
		if _, err := s.do(ctx, taken); err != nil {
			return err
		}
		if err := s.refund(ctx, p, r.Key(), r.Amount); err != nil {
			return err
		}
		record.State = ledger.PaymentRefunded
	default:
		return fmt.Errorf("payment %s is %s: %w", p.ID, p.State, errNoMoney)
	}
	_, err := s.do(ctx, record)
	return err
}

func (s *Service) void(ctx context.Context, paymentID string) error {
	authorizer, ok := s.o.Provider.(payment.Authorizer)
	if !ok {
		return fmt.Errorf("letting reserved money go: %w", errUnable)
	}
	_, err := authorizer.Void(ctx, paymentID)
	var captured *payment.Refused
	if errors.As(err, &captured) { // not final: it was captured meanwhile, and can be refunded
		return fmt.Errorf("payment %s cannot be let go: %s", paymentID, captured.Code)
	}
	return err
}

// refund gives money of a captured payment back, unless all of it went back otherwise, by somebody's hand. While the
// provider does not know yet whether it will, the error is errPending: it is asked again, and nothing is written down.
func (s *Service) refund(ctx context.Context, p payment.Payment, refundID string, amount int64) error {
	refunder, ok := s.o.Provider.(payment.Refunder)
	if !ok {
		return fmt.Errorf("giving taken money back: %w", errUnable)
	}
	if !hasMoney(p) {
		return nil
	}
	given, err := refunder.Refund(ctx, p.ID, refundID, amount)
	if err == nil && given.State == payment.RefundPending {
		return fmt.Errorf("refund %s: %w", refundID, errPending)
	}
	return err
}

// capture takes the money of a PAID order that was only reserved (A18).
func (s *Service) capture(ctx context.Context, p ledger.Payment) error {
	authorizer, ok := s.o.Provider.(payment.Authorizer)
	if !ok {
		return fmt.Errorf("taking reserved money: %w", errUnable)
	}
	got, err := authorizer.Capture(ctx, p.ID, p.Authorized)
	var final *payment.Refused
	switch {
	case errors.As(err, &final):
		return s.captureRefused(ctx, p.Order, p.ID, final.Code)
	case errors.Is(err, payment.ErrConflict):
		// Somebody captured another amount by hand. It is what it is, and somebody must look.
		if got, err = s.find(ctx, p.Order, p.ID); err != nil {
			return err
		}
		s.o.Alert(ctx, "another amount was captured than the tickets cost", p.Order, nil)
	case err != nil:
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
	switch {
	case fault.CodeOf(err) == fault.Conflict: // it was captured before: then it is not the capture that is refused
		s.o.Alert(ctx, "the provider let go what it had taken ("+word(code)+")", order, err)
		return nil
	case err == nil && !r.Repeat:
		s.o.Alert(ctx, "capture refused ("+word(code)+"): the tickets are void", order, nil)
	}
	return err
}
