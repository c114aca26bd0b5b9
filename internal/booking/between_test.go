package booking

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/sandbox"
)

// What stands between a service and its ledger, its provider and its webhooks, so that tests can interfere.

// through lets a test interfere with a call.
func (w *world) through(op string, call func() error) error {
	w.mu.Lock()
	w.ops = append(w.ops, op)
	meddle := w.meddle
	w.mu.Unlock()
	if meddle == nil {
		return call()
	}
	return meddle(op, call)
}

func (w *world) meddling(f func(op string, call func() error) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meddle = f
}

// did counts the calls of an operation.
func (w *world) did(op string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.ops {
		if o == op {
			n++
		}
	}
	return n
}

// shard is the ledger as the service sees it.
type shard struct{ w *world }

func (s shard) Ledger() ledger.Reader { return s.w.store }

func (s shard) Do(ctx context.Context, c ledger.Command) (r ledger.Result, err error) {
	err = s.w.through(strings.TrimPrefix(fmt.Sprintf("%T", c), "ledger."), func() (err error) {
		r, err = s.w.batcher.Do(ctx, c)
		return err
	})
	switch c := c.(type) {
	case ledger.BeginPayment:
		if r.Order != nil {
			s.w.know(r.Order.ID)
		}
	case ledger.Confirm:
		s.w.mu.Lock()
		s.w.holds = append(s.w.holds, c.RescueHold)
		s.w.mu.Unlock()
	}
	return r, err
}

// know makes an order one that the checks look at. One that was begun by a process that crashed is found by its customer.
func (w *world) know(order id.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.begun, order) {
		w.begun = append(w.begun, order)
		if w.noticed != nil {
			w.noticed[order.Text(id.Order)] = true
		}
	}
}

// keeper is the store of webhooks as the service sees it.
type keeper struct {
	ledger.Webhooks
	w *world
}

func (k keeper) WebhookKeep(ctx context.Context, v ledger.Webhook) error {
	return k.w.through("WebhookKeep", func() error { return k.Webhooks.WebhookKeep(ctx, v) })
}

// meddled is the sandbox's client with a place to interfere at each call.
type meddled struct {
	*sandbox.AuthorizingClient
	w *world
}

func (m *meddled) Charge(ctx context.Context, a payment.Attempt) (p payment.Payment, err error) {
	err = m.w.through("Charge", func() error { p, err = m.AuthorizingClient.Charge(ctx, a); return err })
	return p, err
}

func (m *meddled) Lookup(ctx context.Context, order string) (p []payment.Payment, err error) {
	err = m.w.through("Lookup", func() error { p, err = m.AuthorizingClient.Lookup(ctx, order); return err })
	return p, err
}

func (m *meddled) Cancel(ctx context.Context, order string) (e payment.Ending, err error) {
	err = m.w.through("Cancel", func() error { e, err = m.AuthorizingClient.Cancel(ctx, order); return err })
	return e, err
}

func (m *meddled) Capture(ctx context.Context, p string, amount int64) (got payment.Payment, err error) {
	err = m.w.through("Capture", func() error { got, err = m.AuthorizingClient.Capture(ctx, p, amount); return err })
	return got, err
}

func (m *meddled) Void(ctx context.Context, p string) (got payment.Payment, err error) {
	err = m.w.through("Void", func() error { got, err = m.AuthorizingClient.Void(ctx, p); return err })
	return got, err
}

func (m *meddled) Refund(ctx context.Context, p, refund string, amount int64) (r payment.Refund, err error) {
	err = m.w.through("Refund", func() error { r, err = m.AuthorizingClient.Refund(ctx, p, refund, amount); return err })
	return r, err
}

// memoryWebhooks goes with the model.
type memoryWebhooks struct {
	now func() ledger.Time
	mu  sync.Mutex
	all []ledger.Webhook
}

func (m *memoryWebhooks) WebhookKnown(_ context.Context, provider, event string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.all, func(w ledger.Webhook) bool { return w.Provider == provider && w.Event == event }), nil
}

func (m *memoryWebhooks) WebhookKeep(_ context.Context, w ledger.Webhook) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.all {
		if m.all[i].Provider == w.Provider && m.all[i].Event == w.Event {
			m.all[i].Dead = w.Dead
			return nil
		}
	}
	w.At = m.now()
	m.all = append(m.all, w)
	return nil
}

func (m *memoryWebhooks) DeadWebhooks(_ context.Context, before ledger.Time, most int) (dead []ledger.Webhook, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.all {
		if w.Dead && w.At < before && len(dead) < most {
			dead = append(dead, w)
		}
	}
	return dead, nil
}

func (m *memoryWebhooks) PruneWebhooks(_ context.Context, before ledger.Time, most int) (n int, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(w ledger.Webhook) bool {
		gone := !w.Dead && w.At < before && n < most
		if gone {
			n++
		}
		return gone
	})
	return n, nil
}
