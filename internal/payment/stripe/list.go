package stripe

import (
	"context"
	"fmt"
	"regexp"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"onsale/internal/payment"
)

// listPageSize is how many payment intents one page reads: Stripe's own limit. A page shows those of ours, maybe none.
const listPageSize = 100

var intentForm = regexp.MustCompile(`^pi_[A-Za-z0-9_]{1,61}$`)

// firstEver is before any payment at Stripe.
var firstEver = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)

// List implements payment.Lister. The cursor is the newest intent of the page before: Stripe lists backwards in time, so
// pages are read with ending_before, from the account's first intent on. Intents without an order of ours, and those that
// were never begun, are left out.
func (c *Client) List(ctx context.Context, cursor string) (payment.Page, error) {
	if cursor != "" && !intentForm.MatchString(cursor) {
		return payment.Page{}, fmt.Errorf("%w: cursor", payment.ErrInvalid)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	var intents []*sdk.PaymentIntent
	if cursor == "" {
		first, f := c.first(ctx)
		if f != nil {
			return payment.Page{}, f.unknown("list")
		}
		if first == "" {
			return payment.Page{}, nil
		}
		pi, f := c.retrieve(ctx, first)
		if f != nil {
			return payment.Page{}, f.unknown("list")
		}
		intents, cursor = append(intents, pi), first
	}
	next, more, f := c.list(ctx, sdk.PaymentIntentListParams{
		ListParams: sdk.ListParams{EndingBefore: &cursor, Limit: sdk.Int64(listPageSize)},
		Expand:     []*string{sdk.String("data.latest_charge.refunds")},
	})
	switch {
	case f != nil && f.missing():
		return payment.Page{}, fmt.Errorf("%w: cursor", payment.ErrInvalid)
	case f != nil:
		return payment.Page{}, f.unknown("list")
	}
	intents = append(intents, next...)
	var ours []*sdk.PaymentIntent
	for _, pi := range intents {
		if c.ours(pi.Metadata) {
			ours = append(ours, pi)
		}
	}
	payments, err := c.pictures(ctx, "list", ours)
	if err != nil {
		return payment.Page{}, err
	}
	page := payment.Page{Payments: payments}
	if more {
		page.Next = intents[len(intents)-1].ID
	}
	return page, nil
}

// list reads one page, oldest first where it is read with ending_before, else newest first.
func (c *Client) list(ctx context.Context, p sdk.PaymentIntentListParams) (page []*sdk.PaymentIntent, more bool, f *failure) {
	p.Single, p.StripeAccount = true, c.account()
	page, f = call(ctx, func() ([]*sdk.PaymentIntent, error) {
		list := c.api.V1PaymentIntents.List(ctx, &p)
		more = list.Meta().HasMore && len(list.Data()) > 0
		return list.Data(), list.Err()
	})
	return page, more, f
}

// first finds the account's oldest intent, "" where there is none. It is searched for by its time, and kept: intents are
// never deleted.
func (c *Client) first(ctx context.Context) (string, *failure) {
	c.mu.Lock()
	oldest := c.oldest
	c.mu.Unlock()
	if oldest != "" {
		return oldest, nil
	}
	// Invariant: none is older than from, at least one is older than to.
	from, to := firstEver.Unix(), c.c.Now().Add(24*time.Hour).Unix()
	var found *sdk.PaymentIntent
	for to-from > 1 {
		middle := from + (to-from)/2
		if found == nil {
			middle = to // is there any at all?
		}
		page, _, f := c.list(ctx, before(middle, 1))
		switch {
		case f != nil:
			return "", f
		case len(page) > 0:
			found = page[0]
			to = min(middle, found.Created+1)
		case found == nil:
			return "", nil
		default:
			from = middle
		}
	}
	// All that are left were made within one second.
	p := before(to, listPageSize)
	for {
		page, more, f := c.list(ctx, p)
		if f != nil {
			return "", f
		}
		if len(page) > 0 {
			found = page[len(page)-1]
		}
		if !more {
			break
		}
		p.StartingAfter = &found.ID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.oldest = found.ID
	return found.ID, nil
}

// before asks for the newest intents made before a second.
func before(unix int64, limit int64) sdk.PaymentIntentListParams {
	return sdk.PaymentIntentListParams{
		ListParams: sdk.ListParams{Limit: &limit}, CreatedRange: &sdk.RangeQueryParams{LesserThan: unix},
	}
}
