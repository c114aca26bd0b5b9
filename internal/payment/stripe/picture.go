package stripe

import (
	"slices"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"onsale/internal/payment"
)

// What is written into the metadata of our payment intents and refunds. Stripe copies an intent's to its charges.
const (
	metaOrder    = "onsale_order"    // on all that is ours, since the account may be others' too
	metaHouse    = "onsale_house"    // where more than one share the account
	metaAttempt  = "onsale_attempt"  // a hash of the token; there once the intent is begun
	metaCustomer = "onsale_customer" // a pseudonym
	metaRefund   = "onsale_refund"
	metaDecline  = "onsale_decline" // why we ended it, where Stripe keeps no reason of its own
)

// begun says that an intent asks for money: before, it is an empty one that keeps an order's place.
func begun(pi *sdk.PaymentIntent) bool { return pi.Metadata[metaAttempt] != "" }

// isOpen says that an intent can still take money by a call or by its customer.
func isOpen(pi *sdk.PaymentIntent) bool {
	return pi.Status != sdk.PaymentIntentStatusSucceeded && pi.Status != sdk.PaymentIntentStatusCanceled &&
		pi.Status != sdk.PaymentIntentStatusRequiresCapture
}

// picture is an intent in the port's words. Its latest charge should be expanded; its refunds are given beside it.
func picture(pi *sdk.PaymentIntent, refunds []payment.Refund) payment.Payment {
	currency := strings.ToUpper(string(pi.Currency))
	amount := func(n int64) int64 { return fromStripe(n, currency) }
	p := payment.Payment{
		ID: pi.ID, OrderID: pi.Metadata[metaOrder], State: payment.Pending, Currency: currency, AmountMinor: amount(pi.Amount),
		CreatedAt: time.Unix(pi.Created, 0).UTC(), Refunds: refunds,
	}
	manual := pi.CaptureMethod == sdk.PaymentIntentCaptureMethodManual
	switch pi.Status {
	case sdk.PaymentIntentStatusRequiresCapture:
		p.State, p.AuthorizedMinor = payment.Authorized, amount(pi.AmountCapturable)
	case sdk.PaymentIntentStatusSucceeded:
		p.State, p.CapturedMinor = payment.Captured, amount(pi.AmountReceived)
		if manual {
			p.AuthorizedMinor = amount(pi.Amount)
		}
		for _, r := range refunds {
			if r.State == payment.RefundDone {
				p.RefundedMinor += r.AmountMinor
			}
		}
		p.RefundedMinor = min(p.RefundedMinor, p.CapturedMinor)
	case sdk.PaymentIntentStatusCanceled:
		p.State = payment.Cancelled
		if wasAuthorized(pi) {
			p.State, p.AuthorizedMinor = payment.Voided, amount(pi.Amount)
		} else if code := declineOf(pi); code != "" {
			p.State, p.Decline = payment.Declined, payment.Decline{Code: code, Final: true}
		}
	case sdk.PaymentIntentStatusRequiresPaymentMethod:
		if code := declineOf(pi); code != "" {
			p.State, p.Decline = payment.Declined, payment.Decline{Code: code}
		}
	case sdk.PaymentIntentStatusRequiresAction:
		p.Action = action(pi)
	}
	return p // what is not known to this program may still become anything: Pending
}

// action is what the customer has to do.
func action(pi *sdk.PaymentIntent) *payment.Action {
	a := &payment.Action{ClientSecret: pi.ClientSecret}
	if pi.NextAction != nil && pi.NextAction.RedirectToURL != nil {
		a.RedirectURL = pi.NextAction.RedirectToURL.URL
	}
	return a
}

// wasAuthorized says of a cancelled intent that its money was reserved once: a charge that went through stays so.
func wasAuthorized(pi *sdk.PaymentIntent) bool {
	return pi.LatestCharge != nil && pi.LatestCharge.Status == sdk.ChargeStatusSucceeded
}

// declineOf is why an intent's last attempt failed, or "". Stripe drops last_payment_error when a later attempt goes
// through, so what it says is the last word.
func declineOf(pi *sdk.PaymentIntent) string {
	switch e := pi.LastPaymentError; {
	case pi.Metadata[metaDecline] != "":
		return safeWord(pi.Metadata[metaDecline])
	case e != nil:
		return (&failure{decline: safeWord(string(e.DeclineCode)), code: safeWord(string(e.Code)), kind: safeWord(string(e.Type))}).reason()
	case pi.LatestCharge != nil && pi.LatestCharge.Status == sdk.ChargeStatusFailed:
		return (&failure{code: safeWord(pi.LatestCharge.FailureCode), kind: "charge_failed"}).reason()
	}
	return ""
}

// soft are the declines after which the same attempt may succeed: the bank or the way to it was at fault, not the card.
var soft = []string{"processing_error", "issuer_not_available", "try_again_later", "reenter_transaction"}

func isSoft(code string) bool { return slices.Contains(soft, code) }

// refundOf is a refund of Stripe's in the port's words.
func refundOf(r *sdk.Refund, paymentID string) payment.Refund {
	id := r.Metadata[metaRefund]
	if id == "" {
		id = r.ID // made by hand
	}
	return payment.Refund{
		ID: id, PaymentID: paymentID, AmountMinor: fromStripe(r.Amount, strings.ToUpper(string(r.Currency))),
		State: refundState(string(r.Status)), CreatedAt: time.Unix(r.Created, 0).UTC(),
	}
}

func refundState(status string) payment.RefundState {
	switch sdk.RefundStatus(status) {
	case sdk.RefundStatusSucceeded:
		return payment.RefundDone
	case sdk.RefundStatusFailed, sdk.RefundStatusCanceled:
		return payment.RefundFailed
	}
	return payment.RefundPending // pending, requires_action, and what is not known
}
