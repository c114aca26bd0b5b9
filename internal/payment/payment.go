// Package payment is the port to whoever moves the money: what booking, recovery and the audit may ask of a payment
// provider, and what each answer means.
//
// The one idea: the order id is the provider's idempotency key. Whatever is repeated, lost, late or out of order, there
// is one question that settles it, Lookup(order id), and one command that ends it, Cancel(order id). Hence a lost answer
// is never a decline: it is ErrUnknown, and who meets it asks again under the same order id.
//
// The core (Provider) is small; what only some providers can do (Authorizer, Refunder, Notifier, Lister) is asked for by
// type assertion (capability.go). Check tells at start whether a provider can do enough to be sold with, CapabilitiesOf
// what it can do at all. notice.go has what its webhooks say.
//
// Start reading at Provider, then State. Adapters: sandbox (an honest little payment service with faults on demand),
// instant (in memory, for the bench), stripe (real money). paymenttest.Exercise is the contract of this package as tests;
// every adapter runs it.
package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Limits of what goes to a provider and comes back.
const (
	AttemptTimeoutMax  = 4 * time.Minute // the payment window is 5: the provider has ended before the hold does
	WebhookTolerance   = 5 * time.Minute // between a webhook's signed time and now, either way
	WebhookBytesMax    = 256 << 10
	IDBytesMax         = 64  // of an order, payment, refund or customer id
	TokenBytesMax      = 256 // of a payment token
	PageMax            = 500 // payments a page of List
	PaymentsOfOrderMax = 32  // payments that Lookup and Cancel list for one order
)

// Mode says whether money is real.
type Mode string

const (
	Test Mode = "test" // nothing is charged; tickets are marked TEST
	Live Mode = "live"
)

// State is where one payment stands. Money has moved, or is reserved, only in Authorized and Captured. A captured
// payment stays Captured when it is refunded; RefundedMinor says how much went back.
//
//	Pending ──► Authorized ──► Captured
//	   │            └────────► Voided
//	   ├──► Captured
//	   ├──► Declined
//	   └──► Cancelled
//
// A Declined payment whose decline is not final may still leave that state: see Decline.
type State string

const (
	Pending    State = "pending"    // the provider does not know yet; a webhook or Lookup will tell
	Authorized State = "authorized" // reserved, to be captured or voided
	Captured   State = "captured"   // taken
	Declined   State = "declined"   // not taken; see Decline.Final
	Voided     State = "voided"     // was authorized, let go, never captured; final
	Cancelled  State = "cancelled"  // ended by Cancel before any money moved; final
)

// Paid says whether money is taken or reserved.
func (s State) Paid() bool { return s == Authorized || s == Captured }

// Ended says that the state can never change again by the provider's own doing (a decline needs Decline.Final too).
func (s State) Ended() bool { return s != Pending && s != Authorized }

// A Decline says why a payment is Declined.
type Decline struct {
	Code string `json:"code"` // the provider's own, stable, safe to log: "card_declined"
	// Final: no attempt under this order id can succeed any more. Only then may an order fail. While false, the same Charge
	// may be repeated under the same order id and may succeed; Cancel makes it final.
	Final bool `json:"final"`
}

// An Attempt is what is asked of a provider for one order. All fields but AuthorizeOnly and CustomerRef are required.
type Attempt struct {
	OrderID     string // the provider's idempotency key, and stored in its metadata; at most IDBytesMax
	AmountMinor int64  // in minor units as the ledger counts them, > 0; an adapter converts to its provider's
	Currency    string // ISO 4217, three capital letters
	Token       string // names the customer's means of payment; never logged
	CustomerRef string // a pseudonym, never a name or address
	// AuthorizeOnly reserves the amount, to be captured or voided later. Only for a provider that is an Authorizer.
	AuthorizeOnly bool
}

// A Payment is one movement of money under an order id as the provider's books have it. An order normally has one; a
// second one under the same order id is a fault of the provider that its caller must find (Lookup) and give back.
type Payment struct {
	ID       string `json:"payment_id"` // the provider's
	OrderID  string `json:"order_id"`   // from the provider's metadata
	State    State  `json:"state"`
	Currency string `json:"currency"`
	// AmountMinor is what the provider took or would take: compare it with what was asked, it may be wrong.
	AmountMinor     int64   `json:"amount_minor"`
	AuthorizedMinor int64   `json:"authorized_minor"` // ever reserved; stays when captured or voided
	CapturedMinor   int64   `json:"captured_minor"`   // ever taken; 0 unless Captured
	RefundedMinor   int64   `json:"refunded_minor"`   // given back of that, ≤ CapturedMinor; refunds that are done only
	Decline         Decline `json:"decline"`          // zero unless Declined
	// Action is what the customer has to do before a Pending payment can go on (3-D Secure); nil where nothing. It comes
	// from Charge and Lookup, is for that customer alone, and is never logged, stored or published.
	Action *Action `json:"-"`
	// Revision grows with every change of this payment, so that of two pictures of it the later is known. 0 where the
	// provider has none.
	Revision  int64     `json:"revision"`
	CreatedAt time.Time `json:"created_at"`
	Refunds   []Refund  `json:"refunds,omitempty"` // filled by List and Lookup, in order of creation
}

// A Refund is money given back, or about to be, of one captured payment.
type Refund struct {
	ID          string      `json:"refund_id"` // the caller's: the idempotency key. The provider's own where it was made by hand
	PaymentID   string      `json:"payment_id"`
	AmountMinor int64       `json:"amount_minor"`
	State       RefundState `json:"state"`
	CreatedAt   time.Time   `json:"created_at"`
}

// RefundState is where one refund stands. A done refund may still fail, days later, where the customer's bank sends the
// money back: the provider then has it again, and somebody must look.
type RefundState string

const (
	RefundPending RefundState = "pending" // asked for and neither done nor refused yet: ask again, it must not be recorded
	RefundDone    RefundState = "done"
	RefundFailed  RefundState = "failed" // nothing was given back, and never will be under this refund id
)

// An Ending is what Cancel answers.
type Ending struct {
	// Result is final unless EndingPending.
	Result   EndingResult `json:"result"`
	Payments []Payment    `json:"payments,omitempty"` // all under the order id, as Lookup lists them
}

// EndingResult is how the attempts of an order ended.
type EndingResult string

const (
	EndingCancelled EndingResult = "cancelled" // no money moved and none ever will under this order id
	EndingDeclined  EndingResult = "declined"  // the same, and the last attempt was declined: the order FAILED
	EndingPaid      EndingResult = "paid"      // at least one payment is or was Authorized or Captured: nothing was changed
	EndingPending   EndingResult = "pending"   // the provider cannot stop it any more and does not know yet: ask again
)

// A Page is a part of all payments.
type Page struct {
	Payments []Payment
	Next     string // the cursor of the next page; empty on the last one
}

// Provider is the core that every adapter has. All methods are safe for concurrent use, honour ctx, and end within
// AttemptTimeoutMax whatever ctx says. Errors are told apart with errors.Is and errors.As:
//
//   - ErrUnknown: no answer that can be trusted (time-out, lost connection, 5xx, nonsense, too many requests). The effect
//     may or may not have happened. Repeat the same call, or Lookup. A *Busy in its chain says when.
//   - ErrConflict: the id was used before with other content. Nothing was done.
//   - ErrNotFound: the provider has no such payment. Nothing was done.
//   - ErrInvalid: the call can never work as it is (empty id, amount ≤ 0). Nothing was done, nothing was sent or kept.
//   - *Refused: the provider's final no to Capture, Void or Refund. Nothing was done.
type Provider interface {
	// Name is the adapter's name as it stands in routes and rows ("sandbox"); lower-case letters.
	Name() string

	// Mode says whether money is real. It never changes.
	Mode() Mode

	// Charge takes (or, with AuthorizeOnly, reserves) the amount once per order id. Repeated with the same content it
	// answers the payment as it stands now, whether or not the first answer arrived. A decline is an answer, not an error.
	// After Cancel, or a final decline, it takes nothing any more and answers Cancelled or Declined.
	// Errors: ErrUnknown, ErrConflict (other amount, currency, token or kind), ErrInvalid.
	Charge(ctx context.Context, a Attempt) (Payment, error)

	// Lookup lists every payment under the order id, oldest first, at most PaymentsOfOrderMax; none where the provider
	// never saw the id (which a Charge on its way may change: only Cancel makes "none" final). It changes nothing.
	// Errors: ErrUnknown, ErrInvalid.
	Lookup(ctx context.Context, orderID string) ([]Payment, error)

	// Cancel ends what is open under the order id and makes every later attempt under it impossible, also where the
	// provider never saw the id. It never gives money back: what is paid stays and is EndingPaid. Repeatable; a
	// final result never changes.
	// Errors: ErrUnknown, ErrInvalid.
	Cancel(ctx context.Context, orderID string) (Ending, error)
}

// Errors of the port; see Provider and Notifier.
var (
	ErrUnknown  = errors.New("payment: outcome unknown")
	ErrConflict = errors.New("payment: id used before with other content")
	ErrNotFound = errors.New("payment: no such payment")
	ErrInvalid  = errors.New("payment: invalid request")

	ErrSignature    = errors.New("payment: webhook signature is wrong or missing")
	ErrStale        = errors.New("payment: webhook was signed too long ago or ahead of time")
	ErrWrongAccount = errors.New("payment: webhook is of another account or mode")
	ErrMalformed    = errors.New("payment: webhook body cannot be read")
)

// Refused is the provider's final no to a capture, void or refund.
type Refused struct {
	Op   string // "capture", "void", "refund"
	Code string // the provider's own, stable, safe to log
}

func (r *Refused) Error() string { return fmt.Sprintf("payment: %s refused: %s", r.Op, r.Code) }

// Busy is why an outcome is unknown (it stands in the chain of an ErrUnknown) where the provider asks to come back later.
type Busy struct {
	Code  string        // the provider's own, stable, safe to log
	After time.Duration // 0 where it does not say
}

func (b *Busy) Error() string {
	return fmt.Sprintf("the provider is busy: %s, again after %v", b.Code, b.After)
}

// An Action is what a customer must do before a payment can go on. Its secret lets whoever has it finish that payment, so
// it goes to that customer only; printed or logged it shows nothing.
type Action struct {
	ClientSecret string // for the provider's own script on the page; may be empty
	RedirectURL  string // where the browser goes instead, if anywhere
}

// String hides what is in it.
func (Action) String() string { return "action(hidden)" }

// GoString hides what is in it.
func (Action) GoString() string { return "payment.Action{hidden}" }

// LogValue hides what is in it.
func (Action) LogValue() slog.Value { return slog.StringValue("action(hidden)") }

// MarshalJSON refuses: who gives an action to its customer names its fields.
func (Action) MarshalJSON() ([]byte, error) {
	return nil, errors.New("payment: an action is not to be stored or published")
}

// Unknown wraps what an adapter met into ErrUnknown, keeping the cause for the log.
func Unknown(op string, cause error) error {
	return fmt.Errorf("%w: %s: %w", ErrUnknown, op, cause)
}

// Validate says whether the attempt can be sent at all: nil or ErrInvalid with the field that is wrong.
func (a Attempt) Validate() error {
	if err := ValidateID("order id", a.OrderID); err != nil {
		return err
	}
	if err := ValidateAmount(a.AmountMinor); err != nil {
		return err
	}
	if !validCurrency(a.Currency) {
		return fmt.Errorf("%w: currency %q is not three capital letters", ErrInvalid, a.Currency)
	}
	if a.Token == "" || len(a.Token) > TokenBytesMax {
		return fmt.Errorf("%w: token must have 1 to %d bytes", ErrInvalid, TokenBytesMax)
	}
	if a.CustomerRef != "" {
		return ValidateID("customer reference", a.CustomerRef)
	}
	return nil
}

// ValidateID says whether an id can stand in a path, a key and a log line: nil or ErrInvalid naming what.
func ValidateID(what, id string) error {
	if id == "" || len(id) > IDBytesMax {
		return fmt.Errorf("%w: %s must have 1 to %d bytes", ErrInvalid, what, IDBytesMax)
	}
	for i := range len(id) {
		c := id[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return fmt.Errorf("%w: %s may hold letters, digits, - and _ only", ErrInvalid, what)
		}
	}
	return nil
}

// ValidateAmount says whether an amount in minor units can be moved: nil or ErrInvalid.
func ValidateAmount(amountMinor int64) error {
	if amountMinor <= 0 {
		return fmt.Errorf("%w: amount %d is not positive", ErrInvalid, amountMinor)
	}
	return nil
}

func validCurrency(c string) bool {
	if len(c) != 3 {
		return false
	}
	for i := range 3 {
		if c[i] < 'A' || c[i] > 'Z' {
			return false
		}
	}
	return true
}
