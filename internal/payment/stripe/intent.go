package stripe

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"onsale/internal/id"
	"onsale/internal/payment"
)

const (
	// youngFor is for how long after an order was made its key alone finds its intent. Stripe keeps keys for 24 h at least
	// and its search lags by an hour at most, so both have hours to spare, for clocks that differ too.
	youngFor = 12 * time.Hour
	// What an empty intent asks for. Stripe wants an amount; nobody can pay it, since "begin" sets the order's own.
	emptyAmount   = 100
	emptyCurrency = "usd"
	emptyMethod   = "card"
	// stepsMax is how often Charge looks again at an intent that another call has changed meanwhile.
	stepsMax = 4
)

// expanded are the parts of an intent that a picture needs.
func expanded() []*string { return []*string{sdk.String("latest_charge.refunds")} }

// Charge implements payment.Provider, also with AuthorizeOnly.
func (c *Client) Charge(ctx context.Context, a payment.Attempt) (payment.Payment, error) {
	if err := a.Validate(); err != nil {
		return payment.Payment{}, err
	}
	amount, err := toStripe(a.AmountMinor, a.Currency)
	if err != nil {
		return payment.Payment{}, err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	all, f := c.find(ctx, a.OrderID)
	if f != nil {
		return payment.Payment{}, f.unknown("charge")
	}
	pi := chosen(all)
	for range stepsMax {
		switch {
		case begun(pi):
			if field := difference(pi, a, amount); field != "" {
				return payment.Payment{}, fmt.Errorf("%w: order %s: %s differs", payment.ErrConflict, a.OrderID, field)
			}
			return c.attempt(ctx, pi, a)
		case pi.Status == sdk.PaymentIntentStatusCanceled:
			return payment.Payment{ID: pi.ID, OrderID: a.OrderID, State: payment.Cancelled, Currency: a.Currency,
				AmountMinor: a.AmountMinor, CreatedAt: time.Unix(pi.Created, 0).UTC()}, nil
		}
		next, f := c.begin(ctx, pi.ID, a, amount)
		switch {
		case f == nil && !replayed(next.LastResponse):
			pi = next
			continue
		case f != nil && !f.conflict() && !f.refusal():
			return payment.Payment{}, f.unknown("begin")
		}
		// It was begun before, maybe with other content, or cancelled meanwhile: what it is now decides.
		now, failed := c.retrieve(ctx, pi.ID)
		if failed != nil {
			return payment.Payment{}, failed.unknown("begin")
		}
		if f != nil && !begun(now) && now.Status != sdk.PaymentIntentStatusCanceled {
			return payment.Payment{}, notBegun(f)
		}
		pi = now
	}
	return payment.Payment{}, payment.Unknown("charge", errors.New("the payment intent kept changing"))
}

// notBegun is why an empty intent that is still there could not be begun.
func notBegun(f *failure) error {
	if f.conflict() { // the other content is on its way
		return fmt.Errorf("%w: begin: %w", payment.ErrConflict, f)
	}
	return fmt.Errorf("%w: begin: %w", payment.ErrInvalid, f) // an amount too small, a currency that the account lacks
}

// attempt confirms a begun intent where it still waits for that, and answers how it stands.
func (c *Client) attempt(ctx context.Context, pi *sdk.PaymentIntent, a payment.Attempt) (payment.Payment, error) {
	switch {
	case pi.Status != sdk.PaymentIntentStatusRequiresPaymentMethod && pi.Status != sdk.PaymentIntentStatusRequiresConfirmation:
		return c.whole(ctx, "charge", pi)
	case declineOf(pi) != "" && !isSoft(declineOf(pi)):
		return c.decline(ctx, pi, declineOf(pi)) // a crash came before its end
	case !strings.HasPrefix(a.Token, "pm_") && !strings.HasPrefix(a.Token, "ctoken_"):
		return c.decline(ctx, pi, "invalid_token")
	}
	next, f := c.confirm(ctx, pi, a)
	switch {
	case f == nil && !replayed(next.LastResponse):
		return picture(next, nil), nil
	case f != nil && !f.refusal() && !f.conflict():
		return payment.Payment{}, f.unknown("confirm")
	}
	// A stored answer may be old, and a refusal does not say where the intent stands.
	pi, failed := c.retrieve(ctx, pi.ID)
	if failed != nil {
		return payment.Payment{}, failed.unknown("confirm")
	}
	if pi.Status != sdk.PaymentIntentStatusRequiresPaymentMethod && pi.Status != sdk.PaymentIntentStatusRequiresConfirmation {
		return c.whole(ctx, "charge", pi)
	}
	code := declineOf(pi)
	if code == "" && f != nil && !f.conflict() { // a conflict: it was asked otherwise, by other settings, and is on its way
		code = f.reason()
	}
	switch {
	case code == "":
		return picture(pi, nil), nil
	case isSoft(code):
		p := picture(pi, nil)
		p.State, p.Decline = payment.Declined, payment.Decline{Code: code}
		return p, nil
	}
	return c.decline(ctx, pi, code)
}

// decline ends an intent after a no that another attempt with the same token would get again, so that no attempt can
// succeed. Where that does not come through, the decline is not final yet: Cancel makes it so.
func (c *Client) decline(ctx context.Context, pi *sdk.PaymentIntent, code string) (payment.Payment, error) {
	p := picture(pi, nil)
	p.State, p.Decline = payment.Declined, payment.Decline{Code: code}
	if declineOf(pi) == "" { // Stripe keeps no reason where it did not take the token at all
		_, f := call(ctx, func() (*sdk.PaymentIntent, error) {
			return c.api.V1PaymentIntents.Update(ctx, pi.ID, &sdk.PaymentIntentUpdateParams{
				Params: c.params(""), Metadata: map[string]string{metaDecline: code},
			})
		})
		if f != nil {
			return p, nil
		}
	}
	ended, f := c.cancelIntent(ctx, pi.ID)
	if f != nil {
		return p, nil
	}
	return c.whole(ctx, "charge", ended)
}

// Lookup implements payment.Provider. Where Stripe never saw the order it leaves an empty intent there, which is none.
func (c *Client) Lookup(ctx context.Context, orderID string) ([]payment.Payment, error) {
	if err := payment.ValidateID("order id", orderID); err != nil {
		return nil, err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	all, f := c.find(ctx, orderID)
	if f != nil {
		return nil, f.unknown("lookup")
	}
	return c.pictures(ctx, "lookup", all)
}

// Cancel implements payment.Provider.
func (c *Client) Cancel(ctx context.Context, orderID string) (payment.Ending, error) {
	if err := payment.ValidateID("order id", orderID); err != nil {
		return payment.Ending{}, err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	all, f := c.find(ctx, orderID)
	if f != nil {
		return payment.Ending{}, f.unknown("cancel")
	}
	for i, pi := range all {
		if !isOpen(pi) {
			continue
		}
		ended, f := c.cancelIntent(ctx, pi.ID)
		if f != nil && f.refusal() { // it moved on meanwhile, or is under way at a bank
			ended, f = c.retrieve(ctx, pi.ID)
		}
		if f != nil {
			return payment.Ending{}, f.unknown("cancel")
		}
		all[i] = ended
	}
	payments, err := c.pictures(ctx, "cancel", all)
	if err != nil {
		return payment.Ending{}, err
	}
	return ending(all, payments), nil
}

// ending says what has become of an order's attempts after all that could be cancelled was.
func ending(all []*sdk.PaymentIntent, payments []payment.Payment) payment.Ending {
	e := payment.Ending{Result: payment.EndingCancelled, Payments: payments}
	if slices.ContainsFunc(all, isOpen) {
		e.Result = payment.EndingPending
	} else if n := len(payments); n > 0 && payments[n-1].State == payment.Declined {
		e.Result = payment.EndingDeclined
	}
	if slices.ContainsFunc(payments, func(p payment.Payment) bool { return p.State.Paid() || p.State == payment.Voided }) {
		e.Result = payment.EndingPaid
	}
	return e
}

// find gives the intents of an order as they are now, oldest first, at least one: where there is none an empty one is
// made. Only where the key of an order has been spent or forgotten can there be more than one.
func (c *Client) find(ctx context.Context, orderID string) ([]*sdk.PaymentIntent, *failure) {
	if !c.young(orderID) {
		found, f := c.search(ctx, orderID)
		if f != nil || len(found) > 0 {
			return found, f
		}
	}
	pi, f := c.create(ctx, orderID)
	if f == nil && replayed(pi.LastResponse) { // as it was when it was made
		pi, f = c.retrieve(ctx, pi.ID)
	}
	if f != nil {
		return nil, f
	}
	return []*sdk.PaymentIntent{pi}, nil
}

// young says that an order's key cannot have been forgotten yet. What is not an id of ours might be of any age.
func (c *Client) young(orderID string) bool {
	order, err := id.Parse(id.Order, orderID)
	return err == nil && c.c.Now().Sub(order.Time()) < youngFor
}

// chosen is the intent of several that an attempt belongs to: the first that was begun, else the first.
func chosen(all []*sdk.PaymentIntent) *sdk.PaymentIntent {
	if i := slices.IndexFunc(all, begun); i >= 0 {
		return all[i]
	}
	return all[0]
}

// search asks Stripe's index, and then the intents themselves: what the index shows of them may be old.
func (c *Client) search(ctx context.Context, orderID string) ([]*sdk.PaymentIntent, *failure) {
	found, f := call(ctx, func() ([]*sdk.PaymentIntent, error) {
		list := c.api.V1PaymentIntents.Search(ctx, &sdk.PaymentIntentSearchParams{SearchParams: sdk.SearchParams{
			Query: fmt.Sprintf("metadata['%s']:'%s'", metaOrder, orderID), Limit: sdk.Int64(payment.PaymentsOfOrderMax),
			StripeAccount: c.account(), Single: true,
		}})
		var all []*sdk.PaymentIntent
		for pi, err := range list.All(ctx) {
			if err != nil {
				return nil, err
			}
			if all = append(all, pi); len(all) == payment.PaymentsOfOrderMax {
				break
			}
		}
		return all, nil
	})
	if f != nil {
		return nil, f
	}
	found = slices.DeleteFunc(found, func(pi *sdk.PaymentIntent) bool { return pi.Metadata[metaOrder] != orderID || !c.ours(pi.Metadata) })
	for i := range found {
		if found[i], f = c.retrieve(ctx, found[i].ID); f != nil {
			return nil, f
		}
	}
	slices.SortFunc(found, func(a, b *sdk.PaymentIntent) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

// create makes the order's empty intent, or finds it. Its parameters are the same whoever asks, and must stay the same as
// long as there are open orders: a version that changes them must change the key too.
func (c *Client) create(ctx context.Context, orderID string) (*sdk.PaymentIntent, *failure) {
	spent := func(f *failure) bool { return f.replayed && !f.conflict() }
	return keyed(ctx, c.key(orderID, ""), spent, func(key string) (*sdk.PaymentIntent, error) {
		return c.api.V1PaymentIntents.Create(ctx, &sdk.PaymentIntentCreateParams{
			Params: c.params(key), Amount: sdk.Int64(emptyAmount), Currency: sdk.String(emptyCurrency),
			PaymentMethodTypes: []*string{sdk.String(emptyMethod)}, Metadata: c.named(orderID),
		})
	})
}

// begin writes into an empty intent what is asked for, once: the key pins it.
func (c *Client) begin(ctx context.Context, intentID string, a payment.Attempt, amount int64) (*sdk.PaymentIntent, *failure) {
	return keyed(ctx, c.key(a.OrderID, "-begin"), (*failure).stored, func(key string) (*sdk.PaymentIntent, error) {
		p := &sdk.PaymentIntentUpdateParams{
			Params: c.params(key), Amount: &amount, Currency: sdk.String(strings.ToLower(a.Currency)),
			CaptureMethod: sdk.String(captureMethod(a)),
			Metadata:      map[string]string{metaAttempt: tokenHash(a.Token), metaCustomer: a.CustomerRef},
		}
		for _, method := range c.c.MethodTypes {
			p.PaymentMethodTypes = append(p.PaymentMethodTypes, sdk.String(method))
		}
		return c.api.V1PaymentIntents.Update(ctx, intentID, p)
	})
}

// confirm asks for the money. The key holds one attempt: after a soft decline the next has another.
func (c *Client) confirm(ctx context.Context, pi *sdk.PaymentIntent, a payment.Attempt) (*sdk.PaymentIntent, *failure) {
	key := c.key(a.OrderID, "-confirm")
	if pi.LatestCharge != nil {
		key += "-" + pi.LatestCharge.ID
	}
	return keyed(ctx, key, (*failure).stored, func(key string) (*sdk.PaymentIntent, error) {
		p := &sdk.PaymentIntentConfirmParams{Params: c.params(key), Expand: expanded()}
		if strings.HasPrefix(a.Token, "ctoken_") {
			p.ConfirmationToken = &a.Token
		} else {
			p.PaymentMethod = &a.Token
		}
		if c.c.ReturnURL != "" {
			p.ReturnURL = sdk.String(strings.ReplaceAll(c.c.ReturnURL, "{order}", a.OrderID))
		} else {
			p.UseStripeSDK = sdk.Bool(true)
		}
		return c.api.V1PaymentIntents.Confirm(ctx, pi.ID, p)
	})
}

// retrieve reads an intent as it is now.
func (c *Client) retrieve(ctx context.Context, intentID string) (*sdk.PaymentIntent, *failure) {
	return call(ctx, func() (*sdk.PaymentIntent, error) {
		return c.api.V1PaymentIntents.Retrieve(ctx, intentID, &sdk.PaymentIntentRetrieveParams{Params: c.params(""), Expand: expanded()})
	})
}

// cancelIntent ends an open intent, or lets an authorized one go. Only for who has looked which of the two it is.
func (c *Client) cancelIntent(ctx context.Context, intentID string) (*sdk.PaymentIntent, *failure) {
	return call(ctx, func() (*sdk.PaymentIntent, error) {
		return c.api.V1PaymentIntents.Cancel(ctx, intentID, &sdk.PaymentIntentCancelParams{
			Params: c.params(""), CancellationReason: sdk.String(string(sdk.PaymentIntentCancellationReasonAbandoned)), Expand: expanded(),
		})
	})
}

// difference names what an attempt asks otherwise than the intent was begun with, or "".
func difference(pi *sdk.PaymentIntent, a payment.Attempt, amount int64) string {
	switch {
	case pi.Amount != amount:
		return "amount_minor"
	case string(pi.Currency) != strings.ToLower(a.Currency):
		return "currency"
	case pi.Metadata[metaAttempt] != tokenHash(a.Token):
		return "token"
	case string(pi.CaptureMethod) != captureMethod(a):
		return "authorize_only"
	}
	return ""
}

func captureMethod(a payment.Attempt) string {
	if a.AuthorizeOnly {
		return string(sdk.PaymentIntentCaptureMethodManual)
	}
	return string(sdk.PaymentIntentCaptureMethodAutomatic)
}

// tokenHash tells two tokens apart without showing them.
func tokenHash(token string) string {
	sum := sha256.Sum256([]byte("onsale token " + token))
	return hex.EncodeToString(sum[:16])
}
