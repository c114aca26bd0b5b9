package stripe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	sdk "github.com/stripe/stripe-go/v86"

	"onsale/internal/payment"
)

// refundsMax is how many refunds of one payment are read. Stripe's own limit is far lower in practice.
const refundsMax = 1000

// Capture implements payment.Authorizer. Stripe's own rule, that an intent is captured once, is its idempotency.
func (c *Client) Capture(ctx context.Context, paymentID string, amountMinor int64) (payment.Payment, error) {
	if err := errors.Join(payment.ValidateID("payment id", paymentID), payment.ValidateAmount(amountMinor)); err != nil {
		return payment.Payment{}, err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	pi, f := c.retrieve(ctx, paymentID)
	if f != nil {
		return payment.Payment{}, notFound("capture", f)
	}
	p := picture(pi, nil)
	if p.State == payment.Authorized && amountMinor <= p.AuthorizedMinor {
		amount, err := toStripe(amountMinor, p.Currency)
		if err != nil {
			return payment.Payment{}, err
		}
		captured, failed := call(ctx, func() (*sdk.PaymentIntent, error) {
			return c.api.V1PaymentIntents.Capture(ctx, paymentID, &sdk.PaymentIntentCaptureParams{
				Params: c.params(""), AmountToCapture: &amount, Expand: expanded(),
			})
		})
		switch {
		case failed == nil:
			pi = captured
		case !failed.refusal():
			return payment.Payment{}, failed.unknown("capture")
		default: // somebody else was first, or the authorization is gone
			if pi, f = c.retrieve(ctx, paymentID); f != nil {
				return payment.Payment{}, f.unknown("capture")
			}
			if pi.Status == sdk.PaymentIntentStatusRequiresCapture {
				return payment.Payment{}, stillReserved(failed)
			}
		}
	}
	return c.captured(ctx, pi, amountMinor)
}

// stillReserved is what a refused capture means while Stripe still shows the money as reserved: the end where it is said
// to have run out (Stripe cancels the intent by itself), else something to be tried again.
func stillReserved(f *failure) error {
	switch sdk.ErrorCode(f.code) {
	case sdk.ErrorCodeChargeExpiredForCapture, sdk.ErrorCodeCaptureChargeAuthorizationExpired:
		return &payment.Refused{Op: "capture", Code: f.code}
	}
	return f.unknown("capture")
}

// captured answers a capture of an intent that needs no call any more.
func (c *Client) captured(ctx context.Context, pi *sdk.PaymentIntent, amountMinor int64) (payment.Payment, error) {
	p, err := c.whole(ctx, "capture", pi)
	switch {
	case err != nil:
		return payment.Payment{}, err
	case p.State == payment.Captured && p.CapturedMinor == amountMinor:
		return p, nil
	case p.State == payment.Captured:
		return payment.Payment{}, fmt.Errorf("%w: payment %s is captured with another amount", payment.ErrConflict, p.ID)
	case p.State == payment.Authorized:
		return payment.Payment{}, fmt.Errorf("%w: more than is authorized", payment.ErrInvalid)
	case p.State == payment.Pending, p.State == payment.Declined && !p.Decline.Final:
		return payment.Payment{}, fmt.Errorf("%w: payment is %s", payment.ErrInvalid, p.State)
	}
	return payment.Payment{}, &payment.Refused{Op: "capture", Code: string(p.State)}
}

// Void implements payment.Authorizer.
func (c *Client) Void(ctx context.Context, paymentID string) (payment.Payment, error) {
	if err := payment.ValidateID("payment id", paymentID); err != nil {
		return payment.Payment{}, err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	pi, f := c.retrieve(ctx, paymentID)
	if f != nil {
		return payment.Payment{}, notFound("void", f)
	}
	if pi.Status == sdk.PaymentIntentStatusRequiresCapture {
		ended, failed := c.cancelIntent(ctx, paymentID)
		if failed != nil && failed.refusal() { // captured meanwhile
			ended, failed = c.retrieve(ctx, paymentID)
		}
		if failed != nil {
			return payment.Payment{}, failed.unknown("void")
		}
		pi = ended
	}
	switch p, err := c.whole(ctx, "void", pi); {
	case err != nil:
		return payment.Payment{}, err
	case p.State == payment.Voided:
		return p, nil
	case p.State == payment.Authorized:
		return payment.Payment{}, payment.Unknown("void", errors.New("the payment intent is still authorized"))
	case p.State == payment.Pending, p.State == payment.Declined && !p.Decline.Final:
		return payment.Payment{}, fmt.Errorf("%w: payment is %s", payment.ErrInvalid, p.State)
	default:
		return payment.Payment{}, &payment.Refused{Op: "void", Code: string(p.State)}
	}
}

// RefundsParts implements payment.PartialRefunder.
func (c *Client) RefundsParts() bool { return true }

// Refund implements payment.Refunder.
func (c *Client) Refund(ctx context.Context, paymentID, refundID string, amountMinor int64) (payment.Refund, error) {
	err := errors.Join(payment.ValidateID("payment id", paymentID), payment.ValidateID("refund id", refundID), payment.ValidateAmount(amountMinor))
	if err != nil {
		return payment.Refund{}, err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	pi, f := c.retrieve(ctx, paymentID)
	if f != nil {
		return payment.Refund{}, notFound("refund", f)
	}
	p, err := c.whole(ctx, "refund", pi)
	if err != nil {
		return payment.Refund{}, err
	}
	if i := slices.IndexFunc(p.Refunds, func(r payment.Refund) bool { return r.ID == refundID }); i >= 0 {
		return sameRefund(p.Refunds[i], amountMinor)
	}
	left := p.CapturedMinor
	for _, r := range p.Refunds {
		if r.State != payment.RefundFailed {
			left -= r.AmountMinor
		}
	}
	switch {
	case p.State == payment.Pending, p.State == payment.Authorized, p.State == payment.Declined && !p.Decline.Final:
		return payment.Refund{}, fmt.Errorf("%w: payment is %s", payment.ErrInvalid, p.State)
	case p.State != payment.Captured:
		return payment.Refund{}, &payment.Refused{Op: "refund", Code: "not_captured"}
	case amountMinor > left:
		return payment.Refund{}, &payment.Refused{Op: "refund", Code: "more_than_left"}
	}
	amount, err := toStripe(amountMinor, p.Currency)
	if err != nil {
		return payment.Refund{}, err
	}
	made, f := c.refund(ctx, p, refundID, amount)
	if f != nil {
		return payment.Refund{}, refundError(f)
	}
	if replayed(made.LastResponse) { // as it was when it was made
		if made, f = c.retrieveRefund(ctx, made.ID); f != nil {
			return payment.Refund{}, f.unknown("refund")
		}
	}
	return sameRefund(refundOf(made, paymentID), amountMinor)
}

// refund makes one. The key gives way to another one only where it is known that nothing was done under it, and that it
// may be done later: never after an error of Stripe's own.
func (c *Client) refund(ctx context.Context, p payment.Payment, refundID string, amount int64) (*sdk.Refund, *failure) {
	spent := func(f *failure) bool { return f.replayed && noBalance(f) }
	metadata := c.named(p.OrderID)
	metadata[metaRefund] = refundID
	return keyed(ctx, c.key(refundID, "-refund"), spent, func(key string) (*sdk.Refund, error) {
		return c.api.V1Refunds.Create(ctx, &sdk.RefundCreateParams{
			Params: c.params(key), PaymentIntent: &p.ID, Amount: &amount, Metadata: metadata,
		})
	})
}

func (c *Client) retrieveRefund(ctx context.Context, id string) (*sdk.Refund, *failure) {
	return call(ctx, func() (*sdk.Refund, error) {
		return c.api.V1Refunds.Retrieve(ctx, id, &sdk.RefundRetrieveParams{Params: c.params("")})
	})
}

// sameRefund answers a refund that is there under the id asked for.
func sameRefund(r payment.Refund, amountMinor int64) (payment.Refund, error) {
	switch {
	case r.AmountMinor != amountMinor:
		return payment.Refund{}, fmt.Errorf("%w: refund %s: amount_minor differs", payment.ErrConflict, r.ID)
	case r.State == payment.RefundFailed:
		return payment.Refund{}, &payment.Refused{Op: "refund", Code: "refund_failed"}
	}
	return r, nil
}

// refundError says what a refund that was not made means.
func refundError(f *failure) error {
	switch {
	case f.conflict():
		return fmt.Errorf("%w: refund: %w", payment.ErrConflict, f)
	case noBalance(f): // there will be money again
		return f.unknown("refund")
	case f.missing():
		return fmt.Errorf("%w: refund: %w", payment.ErrNotFound, f)
	case f.refusal():
		return &payment.Refused{Op: "refund", Code: f.reason()}
	}
	return f.unknown("refund")
}

// noBalance says that the account has no money to give back now.
func noBalance(f *failure) bool { return sdk.ErrorCode(f.code) == sdk.ErrorCodeBalanceInsufficient }

// notFound says what it means that an intent cannot be read.
func notFound(op string, f *failure) error {
	if f.missing() {
		return fmt.Errorf("%w: %s", payment.ErrNotFound, op)
	}
	return f.unknown(op)
}

// pictures are the begun ones of an order's intents, with their refunds.
func (c *Client) pictures(ctx context.Context, op string, all []*sdk.PaymentIntent) ([]payment.Payment, error) {
	var payments []payment.Payment
	for _, pi := range all {
		if !begun(pi) {
			continue
		}
		p, err := c.whole(ctx, op, pi)
		if err != nil {
			return nil, err
		}
		payments = append(payments, p)
	}
	return payments, nil
}

// whole is an intent's picture with its refunds.
func (c *Client) whole(ctx context.Context, op string, pi *sdk.PaymentIntent) (payment.Payment, error) {
	if pi.Status != sdk.PaymentIntentStatusSucceeded {
		return picture(pi, nil), nil
	}
	list := []*sdk.Refund(nil)
	if ch := pi.LatestCharge; ch != nil && ch.Refunds != nil && !ch.Refunds.HasMore {
		list = ch.Refunds.Data
	} else {
		var f *failure
		if list, f = c.refundsOf(ctx, pi.ID); f != nil {
			return payment.Payment{}, f.unknown(op)
		}
	}
	var refunds []payment.Refund
	for _, r := range list {
		refunds = append(refunds, refundOf(r, pi.ID))
	}
	slices.Reverse(refunds) // Stripe shows the newest first
	slices.SortStableFunc(refunds, func(a, b payment.Refund) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return picture(pi, refunds), nil
}

// refundsOf lists all refunds of an intent, newest first.
func (c *Client) refundsOf(ctx context.Context, intentID string) ([]*sdk.Refund, *failure) {
	return call(ctx, func() ([]*sdk.Refund, error) {
		list := c.api.V1Refunds.List(ctx, &sdk.RefundListParams{
			ListParams: sdk.ListParams{Limit: sdk.Int64(100), StripeAccount: c.account()}, PaymentIntent: &intentID,
		})
		var all []*sdk.Refund
		for r, err := range list.All(ctx) {
			if err != nil {
				return nil, err
			}
			if all = append(all, r); len(all) > refundsMax {
				return nil, fmt.Errorf("more than %d refunds of one payment", refundsMax)
			}
		}
		return all, nil
	})
}
