package booking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// Webhook takes a provider's signed notice. It may come twice, late or in the wrong order: what it tells is settled like
// any other answer. nil means that the provider need not send it again.
//
// Errors: those of payment.Notifier (who sends it must mend it); faults of the ledger (send it again later).
func (s *Service) Webhook(ctx context.Context, header payment.Header, body []byte) error {
	notifier, ok := s.o.Provider.(payment.Notifier)
	if !ok {
		return fault.New(fault.NotFound, "this provider sends no webhooks")
	}
	n, err := notifier.ParseWebhook(header, body)
	var ignored *payment.Ignored
	if errors.As(err, &ignored) {
		s.o.Logger.DebugContext(ctx, "a webhook is of no concern", "kind", ignored.Kind, "why", ignored.Why)
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.AttemptTimeout)
	defer cancel()
	known, err := s.o.Webhooks.WebhookKnown(ctx, s.o.Provider.Name(), n.EventID)
	if err != nil || known {
		return err
	}
	keep := ledger.Webhook{
		Provider: s.o.Provider.Name(), Event: n.EventID, Order: n.OrderID, Payment: n.Payment.ID,
		Amount: n.Payment.AmountMinor, Currency: n.Payment.Currency,
	}
	o, err := s.orderOf(ctx, n.OrderID)
	if err == nil || fault.CodeOf(err) == fault.OrderUnknown {
		s.noted(ctx, o.ID, n)
	}
	switch {
	case fault.CodeOf(err) == fault.OrderUnknown:
		keep.Dead = s.stray(ctx, n)
	case err != nil:
		return err
	default:
		if err := s.noticed(ctx, o, n.Payment); err != nil {
			return err
		}
		if n.Refund != nil {
			s.refundNoticed(ctx, n.Refund)
		}
	}
	return s.o.Webhooks.WebhookKeep(ctx, keep) // a crash before this settles it once more, without effect
}

// noted raises the alerts for what no code here can put right.
func (s *Service) noted(ctx context.Context, order id.ID, n payment.Notice) {
	if d := n.Dispute; d != nil {
		what := fmt.Sprintf("payment %s is disputed at the customer's bank (%s: %s, %s); the provider's console answers it",
			cmp.Or(n.Payment.ID, d.ChargeID, "of unknown id"), word(n.Kind), word(d.State), word(d.Reason))
		s.o.Alert(ctx, what, order, nil)
	}
	if r := n.Refund; r != nil && r.State == payment.RefundFailed {
		what := fmt.Sprintf("refund %s of payment %s failed at the provider: the customer does not have the money", r.ID, r.PaymentID)
		s.o.Alert(ctx, what, order, nil)
	}
}

// stray says whether a notice about an order that is not known is a dead letter: somebody's money is there for nothing. A
// payment without any order id was never asked for by us: it is not ours to give back.
func (s *Service) stray(ctx context.Context, n payment.Notice) bool {
	if !hasMoney(n.Payment) {
		return false
	}
	if n.OrderID == "" {
		s.o.Alert(ctx, "a payment came that names no order: "+n.Payment.ID, 0, nil)
		return false
	}
	s.o.Alert(ctx, "a payment came for an order that is not known: "+n.OrderID, 0, nil)
	return true
}

// noticed settles what a notice shows. A picture that is not final, or that an order has left behind, only makes us ask.
func (s *Service) noticed(ctx context.Context, o ledger.Order, p payment.Payment) error {
	defer s.talk(o.ID)()
	var err error
	switch {
	case p.State.Paid(), p.State == payment.Voided, p.State == payment.Declined && p.Decline.Final:
		if _, err = s.settle(ctx, o, p, 0); err == nil {
			err = s.byHand(ctx, o.ID, p)
		}
	case o.State == ledger.OrderPending && p.State.Ended():
		_, _, err = s.ask(ctx, o)
	}
	return err
}

// byHand raises an alert where more of a payment went back than anything here has asked for: somebody did it in the
// provider's console, and the tickets are valid still.
func (s *Service) byHand(ctx context.Context, order id.ID, p payment.Payment) error {
	if p.RefundedMinor == 0 {
		return nil
	}
	payments, err := s.o.Shard.Ledger().Payments(ctx, order)
	if err != nil {
		return err
	}
	for _, known := range payments {
		if known.ID == p.ID && known.Refund == 0 && p.RefundedMinor > known.Promised {
			what := fmt.Sprintf("more of payment %s went back than was asked for here: %d", p.ID, p.RefundedMinor-known.Promised)
			s.o.Alert(ctx, what, order, nil)
		}
	}
	return nil
}

// refundNoticed goes on with a refund that the provider has told of, without waiting for its next turn.
func (s *Service) refundNoticed(ctx context.Context, n *payment.Refund) {
	name, _, _ := strings.Cut(n.ID, "-")
	number, err := id.Parse(id.Refund, name)
	if err != nil {
		return // made by hand, or of a payment without an order
	}
	r, err := s.refundByID(ctx, number)
	if err != nil || r.State != ledger.RefundRequested || r.Refused != "" || r.Key() != n.ID {
		return
	}
	s.retries.done(retryKey(r))
	if err := s.moneyBack(ctx, r.Order); err != nil {
		s.o.Logger.WarnContext(ctx, "a refund will be finished later", "refund", name, "error", err)
	}
}

// orderOf finds the order that the metadata of the provider in use names. One that was begun with another provider is
// another order to it.
func (s *Service) orderOf(ctx context.Context, ref string) (ledger.Order, error) {
	order, err := id.Parse(id.Order, ref)
	if err != nil {
		return ledger.Order{}, fault.New(fault.OrderUnknown, "")
	}
	o, err := s.o.Shard.Ledger().Order(ctx, order)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && s.foreign(o.Provider) {
		return ledger.Order{}, fault.New(fault.OrderUnknown, "")
	}
	return o, err
}
