package payment

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// An Authorizer can reserve money first and take it later.
type Authorizer interface {
	// Capture takes an authorized payment, amountMinor in minor units, 0 < amountMinor ≤ authorized; the rest is let go.
	// Idempotent: a payment captured with the same amount answers as it stands.
	// Errors: ErrUnknown, ErrNotFound, ErrInvalid (also while Pending), ErrConflict (captured with another amount),
	// *Refused (final: the money will not come, the payment is or will be Voided).
	Capture(ctx context.Context, paymentID string, amountMinor int64) (Payment, error)

	// Void lets an authorized payment go. Idempotent: a voided one answers as it stands.
	// Errors: ErrUnknown, ErrNotFound, ErrInvalid (also while Pending), *Refused (it was captured, or never authorized).
	Void(ctx context.Context, paymentID string) (Payment, error)
}

// A Refunder can give captured money back.
type Refunder interface {
	// Refund gives amountMinor of a captured payment back, once per refund id, amountMinor > 0 and at most what is left.
	// Repeated with the same content it answers the same refund as it stands now, also a refusal. The answer is pending or
	// done; only done is money given back. One that failed is *Refused.
	// Errors: ErrUnknown, ErrNotFound, ErrInvalid (also while Pending or Authorized), ErrConflict, *Refused (final: under
	// this refund id it never happens; more than is left, or the bank's no).
	Refund(ctx context.Context, paymentID, refundID string, amountMinor int64) (Refund, error)
}

// A PartialRefunder says whether its refunds may be less than the whole payment. A Refunder that is none refunds any part.
type PartialRefunder interface {
	Refunder
	RefundsParts() bool
}

// A Lister can show its whole books, for the audit.
type Lister interface {
	// List answers all payments with their refunds, at most PageMax from cursor on; the empty cursor starts. Each payment
	// that was there when the walk began comes exactly once, one made meanwhile at most once; each is shown as it is when
	// its page is read.
	// Errors: ErrUnknown, ErrInvalid (a cursor that this provider did not give).
	List(ctx context.Context, cursor string) (Page, error)
}

// Capabilities are what a provider can do.
type Capabilities struct {
	Authorize     bool // reserve first, take later
	Refund        bool
	PartialRefund bool // part of a payment
	Cancel        bool // make an attempt impossible: in the core, so always
	Notify        bool // tells by webhook
	List          bool // shows its books
}

// CapabilitiesOf says what a provider can do.
func CapabilitiesOf(p Provider) Capabilities {
	c := Capabilities{Cancel: true}
	_, c.Authorize = p.(Authorizer)
	_, c.Refund = p.(Refunder)
	_, c.Notify = p.(Notifier)
	_, c.List = p.(Lister)
	c.PartialRefund = c.Refund
	if partial, ok := p.(PartialRefunder); ok {
		c.PartialRefund = partial.RefundsParts()
	}
	return c
}

// String names them, for people: "authorize, refund, partial refund, cancel".
func (c Capabilities) String() string {
	var can []string
	for _, one := range []struct {
		can  bool
		name string
	}{
		{c.Authorize, "authorize"}, {c.Refund, "refund"}, {c.PartialRefund, "partial refund"}, {c.Cancel, "cancel"},
		{c.Notify, "notify"}, {c.List, "list"},
	} {
		if one.can {
			can = append(can, one.name)
		}
	}
	return strings.Join(can, ", ")
}

// Check says whether a provider can do enough to be sold with: money that came too late must be given back by code (I6),
// so charged money needs a Refunder, and the audit a Lister. The error names what is missing.
func Check(p Provider) error {
	var missing []error
	if _, ok := p.(Refunder); !ok {
		missing = append(missing, fmt.Errorf("payment: provider %s cannot refund, so late payments could not be given back", p.Name()))
	}
	if _, ok := p.(Lister); !ok {
		missing = append(missing, fmt.Errorf("payment: provider %s cannot list its payments, so the audit could not check them", p.Name()))
	}
	return errors.Join(missing...)
}
