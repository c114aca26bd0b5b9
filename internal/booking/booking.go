// Package booking leads a customer from a hold to paid tickets, and money back to where it belongs.
//
// The one idea: every step is one atomic command of the ledger or one idempotent call of the provider, never both at
// once, and each may be the last before a crash. So there is one function, settle, that takes what the provider says of a
// payment and makes the ledger agree; the request itself, the webhook and the recovery job all end in it, in any order
// and any number of times.
//
// Start reading at Service.Book, then settle (settle.go) and Recover (recover.go).
package booking

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// A Shard is where the orders of one shard live: a ledger.Batcher.
type Shard interface {
	Do(ctx context.Context, c ledger.Command) (ledger.Result, error)
	Ledger() ledger.Reader
}

// IDs makes numbers for new things.
type IDs interface {
	Next(shard int) (id.ID, error)
}

// Alert tells somebody that money moved otherwise than planned, or could not be moved (I6). It must not block.
type Alert func(ctx context.Context, what string, order id.ID, err error)

// Options say how a Service works. Shard, Webhooks, Provider and IDs are required.
type Options struct {
	Shard    Shard
	Webhooks ledger.Webhooks
	Provider payment.Provider
	IDs      IDs
	Number   int // the shard's number, for new ids

	// Authorize asks to reserve money and to take it only after the tickets are made, where the provider can (A18).
	Authorize bool
	// AttemptTimeout bounds one booking's talk with the provider. It must be less than the payment window. Defaults to
	// 30 s, at most payment.AttemptTimeoutMax.
	AttemptTimeout time.Duration
	// RecoverAfter is how long a PENDING order is left alone before recovery asks the provider. One that the provider has
	// not heard of by AttemptTimeout later is given up. Defaults to 10 s.
	RecoverAfter time.Duration
	// RecoverAtOnce is how many calls to the provider recovery makes at once. Defaults to 16.
	RecoverAtOnce int
	// DeadAfter is how long a payment for an unknown order waits before it is given back. Defaults to 1 h.
	DeadAfter time.Duration
	// CompareAfter is how old a payment must be before it is missed in the ledger. Defaults to 2 min.
	CompareAfter time.Duration
	// TalksMax is how many bookings and refunds talk with the provider at once (I13); more bookings are refused as busy, and
	// the money of more refunds is left to recovery. Defaults to 4,096.
	TalksMax int

	Logger *slog.Logger // Defaults to slog.Default()
	Alert  Alert        // Defaults to logging an error
}

// A Service books. Its methods may be called from many goroutines and on many nodes at once.
type Service struct {
	o     Options
	talks chan struct{}

	mu      sync.Mutex
	talking map[id.ID]int // orders that a request of this process talks about with the provider right now

	retries retries
	pruned  atomic.Int64 // when webhooks were pruned last, by the ledger's clock
	books   walk
	passes  cancelledWalk
}

// settleTime is what an attempt has, after its talk with the provider, to write down what came of it.
const settleTime = 10 * time.Second

// New makes a service.
func New(o Options) *Service {
	o.AttemptTimeout = min(cmp.Or(o.AttemptTimeout, 30*time.Second), payment.AttemptTimeoutMax)
	o.RecoverAfter = cmp.Or(o.RecoverAfter, 10*time.Second)
	o.RecoverAtOnce = cmp.Or(o.RecoverAtOnce, 16)
	o.CompareAfter = cmp.Or(o.CompareAfter, 2*time.Minute)
	o.DeadAfter = cmp.Or(o.DeadAfter, time.Hour)
	o.TalksMax = cmp.Or(o.TalksMax, 4096)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Alert == nil {
		o.Alert = func(ctx context.Context, what string, order id.ID, err error) {
			o.Logger.ErrorContext(ctx, "alert: "+what, "order", order.Text(id.Order), "error", err)
		}
	}
	return &Service{o: o, talks: make(chan struct{}, o.TalksMax), talking: map[id.ID]int{}, retries: retries{after: map[string]*retry{}},
		passes: cancelledWalk{events: map[id.ID]*cancelledPass{}}}
}

// A Request is a customer's wish to pay for a hold, or to exchange tickets for it.
type Request struct {
	Customer   id.ID
	Hold       id.ID
	Token      string   // names the means of payment at the provider; may be empty for a hold that costs nothing
	AllowOther bool     // take other seats as good where these are lost while paying (A17)
	Documents  []string // keyed hashes of the attendees' identity documents, by place
	Key        ledger.Key

	// Before is told the order's number before the order is begun, so that what must be known of it (who attends) is
	// written down before any money moves; may be nil. Unused is told a number that no order came of; may be nil.
	Before func(ctx context.Context, order id.ID) error
	Unused func(ctx context.Context, order id.ID)
}

// A Booked is an order as it is after an attempt, and what its customer has to do before the payment can go on (3-D
// Secure), nil where nothing. The action is for that customer alone and is never stored or logged.
type Booked struct {
	ledger.Order
	Action *payment.Action
}

// booked is an order with the action that a pending payment of it waits for.
func booked(o ledger.Order, p payment.Payment) Booked {
	b := Booked{Order: o}
	if o.State == ledger.OrderPending && p.State == payment.Pending {
		b.Action = p.Action
	}
	return b
}

// Book pays for a hold. The answer is the order as it is now: PAID, PENDING (the provider will tell), FAILED (declined:
// the hold goes on, another card is another order) or EXPIRED. Repeated with the same key it goes on from wherever the
// order is. Once the order is begun it goes on even when ctx ends.
//
// Faults: those of ledger.BeginPayment; invalid; busy; payment_unavailable (the provider does not answer: the order stays
// PENDING and the same request with the same key goes on); outcome_unknown (the same).
func (s *Service) Book(ctx context.Context, r Request) (Booked, error) {
	select {
	case s.talks <- struct{}{}:
		defer func() { <-s.talks }()
	default:
		return Booked{}, &fault.Error{Code: fault.Busy, RetryAfter: time.Second}
	}
	if err := s.checkToken(ctx, r); err != nil {
		return Booked{}, err
	}
	o, places, err := s.begin(ctx, r)
	if err != nil || o.State != ledger.OrderPending {
		return Booked{Order: o}, err
	}
	// From here on the customer may hang up: the attempt still comes to its end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.AttemptTimeout+settleTime)
	defer cancel()
	defer s.talk(o.ID)()
	after, err := s.attempt(ctx, o, r.Token, places)
	if err != nil && ctx.Err() != nil && fault.CodeOf(err) == fault.Internal {
		err = &fault.Error{Code: fault.OutcomeUnknown, Order: o.ID, Cause: err}
	}
	return after, err
}

// checkToken refuses a token that cannot be sent, before anything is begun: a refusal has no effect (A12).
func (s *Service) checkToken(ctx context.Context, r Request) error {
	if r.Token != "" && len(r.Token) <= payment.TokenBytesMax {
		return nil
	}
	h, err := s.o.Shard.Ledger().Hold(ctx, r.Hold)
	if err != nil || h.Total() == 0 || h.State != ledger.HoldLive {
		return nil // BeginPayment says what is wrong with the hold, if anything is, and answers a repeat
	}
	if len(h.Exchanged) > 0 {
		if q, err := s.Quote(ctx, r.Customer, r.Hold); err != nil || q.Due == 0 {
			return err
		}
	}
	return &fault.Error{Code: fault.Invalid, Field: "payment_token", Detail: "a payment token is needed"}
}

// begin makes the order, or finds the one that the key made before, and says how many tickets it gives.
func (s *Service) begin(ctx context.Context, r Request) (o ledger.Order, places int, err error) {
	order, err := s.o.IDs.Next(s.o.Number)
	if err != nil {
		return o, 0, err
	}
	if r.Before != nil {
		if err := r.Before(ctx, order); err != nil {
			return o, 0, err
		}
	}
	begun, err := s.do(ctx, ledger.BeginPayment{
		Order: order, Hold: r.Hold, Customer: r.Customer, Key: r.Key, Provider: s.o.Provider.Name(),
		AllowOther: r.AllowOther, Documents: r.Documents,
	})
	if f := fault.Of(err); f != nil && f.Code == fault.PaymentInProgress && f.Order == order {
		// It is our own: the commit's outcome was unknown, and without a key the second try met the first.
		o, err = s.o.Shard.Ledger().Order(ctx, order)
		return o, 0, err
	}
	if r.Unused != nil && fault.CodeOf(err) != fault.OutcomeUnknown && (err != nil || begun.Order.ID != order) {
		r.Unused(ctx, order)
	}
	if err != nil {
		return o, 0, err
	}
	if begun.Hold != nil {
		places = len(begun.Hold.Lines)
	}
	return *begun.Order, places, nil
}

// talk marks an order as being talked about, until the returned function is called.
func (s *Service) talk(order id.ID) func() {
	s.mu.Lock()
	s.talking[order]++
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.talking[order]--; s.talking[order] == 0 {
			delete(s.talking, order)
		}
	}
}

// attempt asks the provider for an order's money and settles what it says.
func (s *Service) attempt(ctx context.Context, o ledger.Order, token string, places int) (Booked, error) {
	if o.Amount == 0 {
		o, err := s.confirmFree(ctx, o, places)
		return Booked{Order: o}, err
	}
	if s.foreign(o.Provider) {
		return Booked{}, s.unavailable(o, errForeign)
	}
	a := payment.Attempt{
		OrderID: o.ID.Text(id.Order), AmountMinor: o.Amount, Currency: o.Currency, Token: token,
		CustomerRef: o.Customer.Text(id.Customer), AuthorizeOnly: s.authorizes() && !exchanges(o),
	}
	charge, cancel := context.WithTimeout(ctx, s.o.AttemptTimeout)
	p, err := s.o.Provider.Charge(charge, a)
	cancel()
	if err == nil {
		o, err = s.settle(ctx, o, p, places)
		return booked(o, p), err
	}
	s.o.Logger.WarnContext(ctx, "the provider did not take an attempt", "order", a.OrderID, "error", err)
	// The answer was lost, or is about an earlier attempt with other content: ask what has become of the order.
	if now, settled, err := s.ask(ctx, o); settled || err != nil {
		return now, err
	}
	if errors.Is(err, payment.ErrConflict) || errors.Is(err, payment.ErrInvalid) {
		// It can never be made as it is, so the order must not wait for it; the hold goes on.
		s.o.Alert(ctx, "the provider cannot take a payment as it is asked", o.ID, err)
		o, err = s.cancel(ctx, o, "invalid_request")
		return Booked{Order: o}, err
	}
	return Booked{}, s.unavailable(o, err)
}

func (s *Service) unavailable(o ledger.Order, cause error) error {
	return &fault.Error{Code: fault.PaymentUnavailable, RetryAfter: 2 * time.Second, Order: o.ID, Cause: cause}
}

// foreign says whether money is at another provider than the one in use, who would know nothing of it.
func (s *Service) foreign(provider string) bool { return provider != s.o.Provider.Name() }

func (s *Service) authorizes() bool {
	_, can := s.o.Provider.(payment.Authorizer)
	return can && s.o.Authorize
}

// Order is a customer's order as it is now. Faults: booking_unknown, wrong_customer.
func (s *Service) Order(ctx context.Context, customer, order id.ID) (ledger.Order, error) {
	o, err := s.o.Shard.Ledger().Order(ctx, order)
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.Order{}, fault.New(fault.OrderUnknown, "")
	}
	if err == nil && o.Customer != customer {
		return ledger.Order{}, fault.New(fault.WrongCustomer, "")
	}
	return o, err
}

// doAgainMax is how often a command whose commit has an unknown outcome is given again: all that booking sends are
// idempotent.
const doAgainMax = 3

// do gives a command to the ledger; a refusal is an error. Where one try had an unknown outcome and no later one could tell,
// the outcome stays unknown.
func (s *Service) do(ctx context.Context, c ledger.Command) (ledger.Result, error) {
	return do(ctx, s.o.Shard, c)
}

func do(ctx context.Context, shard Shard, c ledger.Command) (ledger.Result, error) {
	var r ledger.Result
	var err error
	unknown := false
	for range doAgainMax {
		r, err = shard.Do(ctx, c)
		if fault.CodeOf(err) != fault.OutcomeUnknown || ctx.Err() != nil {
			break
		}
		unknown = true
	}
	if err == nil && r.Fault != nil {
		err = r.Fault
	}
	if code := fault.CodeOf(err); unknown && (code == fault.Busy || code == fault.Internal) {
		err = fault.Wrap(fault.OutcomeUnknown, err)
	}
	return r, err
}
