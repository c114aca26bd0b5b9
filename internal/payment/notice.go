package payment

import (
	"fmt"
	"time"
)

// A Notice is a verified webhook. It says that something happened, not what is true now: notices come twice, late and in
// the wrong order. Payment is the picture at the time of the notice; Revision tells which of two pictures is later, and
// Lookup(OrderID) what is true now. Where the provider told of a refund or a dispute alone, the picture has an ID at most
// and no State: it settles nothing.
type Notice struct {
	EventID string // the provider's, to be remembered for 30 days: the same id is the same notice
	Kind    string // the provider's own word, for logs
	OrderID string // from the provider's metadata; empty where the provider's object has none
	Payment Payment
	Refund  *Refund   // nil unless it is about one refund
	Dispute *Dispute  // nil unless it is about a dispute
	At      time.Time // when it happened, by the provider's clock
}

// A Dispute is a customer's claim at their bank that a payment was wrong. The provider takes the money back meanwhile; no
// code here answers it, so somebody must be told.
type Dispute struct {
	ID          string // the provider's; empty where it told none
	ChargeID    string // what the provider calls the movement that is disputed
	State       string // the provider's own word: "needs_response", "won"
	Reason      string // the same: "fraudulent"
	AmountMinor int64
	Currency    string
}

// Ignored is the answer of ParseWebhook to a webhook that is verified and of no concern. It is to be taken as received.
type Ignored struct {
	Kind string // the provider's own word
	Why  string // for people: "the payment intent's own event says the same"
}

func (i *Ignored) Error() string {
	return fmt.Sprintf("payment: webhook %s ignored: %s", i.Kind, i.Why)
}

// Header is the part of an HTTP header that ParseWebhook needs; http.Header is one.
type Header interface{ Get(name string) string }

// A Notifier reads the provider's webhooks.
type Notifier interface {
	// ParseWebhook verifies the signature over the raw body, its time (WebhookTolerance), mode and account, and then reads
	// the body. It keeps nothing: who calls remembers event ids. Bodies over WebhookBytesMax are ErrMalformed.
	// Errors: ErrSignature, ErrStale, ErrWrongAccount, ErrMalformed; *Ignored where it is verified and of no concern.
	ParseWebhook(header Header, body []byte) (Notice, error)
}
