// Package instant is a payment provider in memory that charges at once and never fails: what `bench sale` sells with, so
// that a measurement of the ledger is not one of a provider.
//
// The one idea: its books are split by order id over shards of their own lock, so that charges of different orders do
// not wait for each other; they can be listed whole, so that the audit compares them like anybody's. They end with the
// process: for anything that must survive it, use the sandbox.
//
// Start reading at Provider.
package instant

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"onsale/internal/payment"
)

const (
	shardCount          = 64 // a power of two
	refundsOfPaymentMax = 50
)

// TokenDeclined is the one token that is declined; every other pays.
const TokenDeclined = "tok_declined"

// Provider keeps its books in memory. New makes one.
type Provider struct {
	now    func() time.Time
	seed   maphash.Seed
	shards [shardCount]shard
}

var (
	_ payment.Provider = (*Provider)(nil)
	_ payment.Refunder = (*Provider)(nil)
	_ payment.Lister   = (*Provider)(nil)
)

type shard struct {
	mu       sync.Mutex
	orders   map[string]*order
	payments []*order // those with a payment, in order of creation; payment ids name the shard and this index
	refunds  map[string]refund
	_        [64]byte // keeps the locks of two shards off one cache line
}

// order is an order id with the one payment that it has here.
type order struct {
	attempt   payment.Attempt
	payment   payment.Payment // ID is empty where there is none
	cancelled bool
}

type refund struct {
	payment.Refund
	refusal string
}

// New makes an empty provider. now is the clock of CreatedAt; nil is time.Now.
func New(now func() time.Time) *Provider {
	if now == nil {
		now = time.Now
	}
	p := &Provider{now: now, seed: maphash.MakeSeed()}
	for i := range p.shards {
		p.shards[i].orders = map[string]*order{}
		p.shards[i].refunds = map[string]refund{}
	}
	return p
}

// Name implements payment.Provider.
func (p *Provider) Name() string { return "instant" }

// Mode implements payment.Provider.
func (p *Provider) Mode() payment.Mode { return payment.Test }

func (p *Provider) shardOf(orderID string) (int, *shard) {
	i := int(maphash.String(p.seed, orderID) & (shardCount - 1))
	return i, &p.shards[i]
}

// Charge implements payment.Provider.
func (p *Provider) Charge(_ context.Context, a payment.Attempt) (payment.Payment, error) {
	if err := a.Validate(); err != nil {
		return payment.Payment{}, err
	}
	if a.AuthorizeOnly {
		return payment.Payment{}, fmt.Errorf("%w: this provider charges at once", payment.ErrInvalid)
	}
	now := p.now().UTC()
	i, s := p.shardOf(a.OrderID)
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[a.OrderID]
	if o == nil {
		o = &order{}
		s.orders[a.OrderID] = o
	}
	if o.payment.ID != "" {
		if field := difference(o.attempt, a); field != "" {
			return payment.Payment{}, fmt.Errorf("%w: order %s: %s differs", payment.ErrConflict, a.OrderID, field)
		}
		return copyOf(o.payment), nil
	}
	o.attempt = a
	o.payment = payment.Payment{
		ID: fmt.Sprintf("pay_%d_%d", i, len(s.payments)), OrderID: a.OrderID, State: payment.Captured, Currency: a.Currency,
		AmountMinor: a.AmountMinor, CapturedMinor: a.AmountMinor, Revision: 1, CreatedAt: now,
	}
	switch {
	case o.cancelled:
		o.payment.State, o.payment.CapturedMinor = payment.Cancelled, 0
	case a.Token == TokenDeclined:
		o.payment.State, o.payment.CapturedMinor = payment.Declined, 0
		o.payment.Decline = payment.Decline{Code: "card_declined", Final: true}
	}
	s.payments = append(s.payments, o)
	return o.payment, nil
}

func difference(a, b payment.Attempt) string {
	switch {
	case a.AmountMinor != b.AmountMinor:
		return "amount_minor"
	case a.Currency != b.Currency:
		return "currency"
	case a.Token != b.Token:
		return "token"
	}
	return ""
}

// copyOf is a payment that shares no memory with the books.
func copyOf(p payment.Payment) payment.Payment {
	p.Refunds = slices.Clone(p.Refunds)
	return p
}

// Lookup implements payment.Provider.
func (p *Provider) Lookup(_ context.Context, orderID string) ([]payment.Payment, error) {
	if err := payment.ValidateID("order id", orderID); err != nil {
		return nil, err
	}
	_, s := p.shardOf(orderID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.orders[orderID]; o != nil && o.payment.ID != "" {
		return []payment.Payment{copyOf(o.payment)}, nil
	}
	return nil, nil
}

// Cancel implements payment.Provider.
func (p *Provider) Cancel(_ context.Context, orderID string) (payment.Ending, error) {
	if err := payment.ValidateID("order id", orderID); err != nil {
		return payment.Ending{}, err
	}
	_, s := p.shardOf(orderID)
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[orderID]
	if o == nil {
		o = &order{}
		s.orders[orderID] = o
	}
	o.cancelled = true
	ending := payment.Ending{Result: payment.EndingCancelled}
	if o.payment.ID != "" {
		ending.Payments = []payment.Payment{copyOf(o.payment)}
	}
	switch o.payment.State {
	case payment.Captured:
		ending.Result = payment.EndingPaid
	case payment.Declined:
		ending.Result = payment.EndingDeclined
	}
	return ending, nil
}

// Refund implements payment.Refunder.
func (p *Provider) Refund(_ context.Context, paymentID, refundID string, amountMinor int64) (payment.Refund, error) {
	if err := payment.ValidateID("refund id", refundID); err != nil {
		return payment.Refund{}, err
	}
	if err := payment.ValidateAmount(amountMinor); err != nil {
		return payment.Refund{}, err
	}
	i, index, err := parsePosition(paymentID, "pay_")
	if err != nil {
		return payment.Refund{}, payment.ErrNotFound
	}
	now := p.now().UTC()
	// A refund id belongs to the whole provider, so it is kept in the shard that its own text names.
	k, ids := p.shardOf(refundID)
	s := &p.shards[i]
	defer p.lockBoth(i, k)()
	if index >= len(s.payments) {
		return payment.Refund{}, payment.ErrNotFound
	}
	paid := &s.payments[index].payment

	r, found := ids.refunds[refundID]
	if found && (r.PaymentID != paymentID || r.AmountMinor != amountMinor) {
		return payment.Refund{}, fmt.Errorf("%w: refund %s: payment_id or amount_minor differs", payment.ErrConflict, refundID)
	}
	if !found {
		r = refund{Refund: payment.Refund{ID: refundID, PaymentID: paymentID, AmountMinor: amountMinor, State: payment.RefundDone, CreatedAt: now}}
		switch {
		case paid.State != payment.Captured:
			r.refusal = "not_captured"
		case amountMinor > paid.CapturedMinor-paid.RefundedMinor:
			r.refusal = "more_than_left"
		case len(paid.Refunds) >= refundsOfPaymentMax:
			r.refusal = "too_many_refunds"
		default:
			paid.RefundedMinor += amountMinor
			paid.Revision++
			paid.Refunds = append(paid.Refunds, r.Refund)
		}
		ids.refunds[refundID] = r
	}
	if r.refusal != "" {
		return payment.Refund{}, &payment.Refused{Op: "refund", Code: r.refusal}
	}
	return r.Refund, nil
}

// lockBoth locks two shards, which may be the same, always the smaller index first, so that two refunds cannot wait for
// each other.
func (p *Provider) lockBoth(i, k int) (unlock func()) {
	first, second := &p.shards[min(i, k)], &p.shards[max(i, k)]
	first.mu.Lock()
	if first == second {
		return first.mu.Unlock
	}
	second.mu.Lock()
	return func() { second.mu.Unlock(); first.mu.Unlock() }
}

// List implements payment.Lister, shard by shard. A payment made meanwhile in a shard that is done is missed.
func (p *Provider) List(_ context.Context, cursor string) (payment.Page, error) {
	i, index := 0, 0
	if cursor != "" {
		var err error
		if i, index, err = parsePosition(cursor, ""); err != nil {
			return payment.Page{}, fmt.Errorf("%w: cursor", payment.ErrInvalid)
		}
	}
	var page payment.Page
	for ; i < shardCount; i, index = i+1, 0 {
		s := &p.shards[i]
		s.mu.Lock()
		for ; index < len(s.payments); index++ {
			if len(page.Payments) == payment.PageMax {
				s.mu.Unlock()
				page.Next = fmt.Sprintf("%d_%d", i, index)
				return page, nil
			}
			page.Payments = append(page.Payments, copyOf(s.payments[index].payment))
		}
		s.mu.Unlock()
	}
	return page, nil
}

// parsePosition reads "<shard>_<index>" after a prefix.
func parsePosition(text, prefix string) (shardIndex, index int, err error) {
	rest, ok := strings.CutPrefix(text, prefix)
	left, right, okCut := strings.Cut(rest, "_")
	shardIndex, err1 := strconv.Atoi(left)
	index, err2 := strconv.Atoi(right)
	if err := cmp.Or(err1, err2); err != nil {
		return 0, 0, err
	}
	if !ok || !okCut || shardIndex < 0 || shardIndex >= shardCount || index < 0 {
		return 0, 0, strconv.ErrRange
	}
	return shardIndex, index, nil
}
