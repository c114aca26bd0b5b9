package booking

import (
	"context"
	"errors"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// Bounds of one round of recovery.
const (
	recoverMax   = 256
	deadMax      = 64
	pruneMax     = 1000
	retryFirst   = time.Second
	retryMost    = time.Minute
	retriesKept  = 10_000
	retryFarFrom = 2
)

// A lastRetry says when work that failed may be tried again.
type lastRetry struct {
	wait time.Duration
	next ledger.Time
}

// Recovered counts what one round of recovery did.
type Recovered struct {
	Orders   int // PENDING orders asked about
	Ended    int // of them, not PENDING any more
	Captured int
	Returned int // payments given back
	Failed   int // tries that failed and will be repeated
}

// Recover is one round of the recovery job (DESIGN 8, step 5): PENDING orders that nobody talks about any more are
// settled by asking the provider, authorized payments of PAID orders are captured, what is to be given back is, and dead
// letters old enough are refunded. It may run on many nodes at once; that only wastes calls.
func (s *Service) Recover(ctx context.Context) (Recovered, error) {
	var done Recovered
	now, err := s.o.Shard.Ledger().Now(ctx)
	if err != nil {
		return done, err
	}
	err = errors.Join(s.recoverOrders(ctx, now, &done), s.recoverPayments(ctx, now, &done), s.recoverDead(ctx, now, &done))
	s.forget(now)
	return done, err
}

func (s *Service) recoverOrders(ctx context.Context, now ledger.Time, done *Recovered) error {
	orders, err := s.o.Shard.Ledger().PendingOrders(ctx, now-ledger.Time(s.o.RecoverAfter.Milliseconds()), recoverMax)
	if err != nil {
		return err
	}
	for _, o := range orders {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.busyWith(o.ID) || !s.due("order", o.ID, now) {
			continue
		}
		done.Orders++
		after, err := s.recoverOrder(ctx, o, now)
		s.tried("order", o.ID, now, err == nil && after.State != ledger.OrderPending)
		switch {
		case err != nil:
			done.Failed++
			s.o.Logger.WarnContext(ctx, "an order could not be settled yet", "order", o.ID.Text(id.Order), "error", err)
		case after.State != ledger.OrderPending:
			done.Ended++
		}
	}
	return nil
}

func (s *Service) busyWith(order id.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.talking[order] > 0
}

// recoverOrder settles one PENDING order. One whose provider still works on it is left alone while its hold lives; else
// the provider is first made to forget it.
func (s *Service) recoverOrder(ctx context.Context, o ledger.Order, now ledger.Time) (ledger.Order, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.AttemptTimeout)
	defer cancel()
	if o.Amount == 0 {
		return s.confirm(ctx, o, ledger.Confirm{Currency: o.Currency, Captured: true}, 0)
	}
	payments, err := s.o.Provider.Lookup(ctx, o.ID.Text(id.Order))
	if err != nil {
		return o, err
	}
	after, err := s.settleAll(ctx, o, payments)
	if err != nil || after.State != ledger.OrderPending {
		return after, err
	}
	hold, err := s.o.Shard.Ledger().Hold(ctx, o.Hold)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return o, err
	}
	working := len(payments) > 0 && payments[len(payments)-1].State == payment.Pending
	if working && hold.Live(now) {
		return o, nil
	}
	return s.cancel(ctx, o)
}

func (s *Service) recoverPayments(ctx context.Context, now ledger.Time, done *Recovered) error {
	open, err := s.o.Shard.Ledger().OpenPayments(ctx, recoverMax)
	if err != nil {
		return err
	}
	for _, p := range open {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		kind := "capture"
		if p.Refund != nil {
			kind = "give back"
		}
		if !s.due(kind, p.Payment.Order, now) {
			continue
		}
		talk, cancel := context.WithTimeout(ctx, s.o.AttemptTimeout)
		count := &done.Captured
		if p.Refund != nil {
			count = &done.Returned
			err = s.giveBack(talk, p.Payment.Order, p.Payment.ID, *p.Refund)
		} else {
			err = s.capture(talk, p.Payment)
		}
		cancel()
		s.tried(kind, p.Payment.Order, now, err == nil)
		if err != nil {
			done.Failed++
			s.o.Logger.WarnContext(ctx, "a payment could not be settled yet", "step", kind, "order", p.Payment.Order.Text(id.Order), "error", err)
			continue
		}
		*count++
	}
	return nil
}

// recoverDead gives back payments whose order nobody knows, once it is sure that it will not appear (A20).
func (s *Service) recoverDead(ctx context.Context, now ledger.Time, done *Recovered) error {
	dead, err := s.o.Webhooks.DeadWebhooks(ctx, now-ledger.Time(s.o.DeadAfter.Milliseconds()), deadMax)
	if err != nil {
		return err
	}
	for _, w := range dead {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := s.refundDead(ctx, w)
		if err == nil {
			w.Dead = false
			err = s.o.Webhooks.WebhookKeep(ctx, w)
		}
		if err != nil {
			done.Failed++
			s.o.Alert(ctx, "a payment for an unknown order cannot be given back: "+w.Payment, 0, err)
			continue
		}
		done.Returned++
	}
	_, err = s.o.Webhooks.PruneWebhooks(ctx, now-ledger.Time(ledger.KeepWebhooks), pruneMax)
	return err
}

func (s *Service) refundDead(ctx context.Context, w ledger.Webhook) error {
	if w.Provider != s.o.Provider.Name() || w.Payment == "" {
		return nil
	}
	if _, err := s.orderOf(ctx, w.Order); err == nil {
		return nil // it is known by now: its own recovery settles it
	} else if fault.CodeOf(err) != fault.OrderUnknown {
		return err
	}
	payments, err := s.o.Provider.Lookup(ctx, w.Order)
	if err != nil {
		return err
	}
	for _, p := range payments {
		switch {
		case p.ID != w.Payment:
		case p.State == payment.Authorized:
			if a, ok := s.o.Provider.(payment.Authorizer); ok {
				_, err := a.Void(ctx, p.ID)
				return err
			}
		case p.State == payment.Captured && p.RefundedMinor < p.CapturedMinor:
			if r, ok := s.o.Provider.(payment.Refunder); ok {
				_, err := r.Refund(ctx, p.ID, "dead-"+p.ID, p.CapturedMinor-p.RefundedMinor)
				return err
			}
		}
	}
	return nil
}

// due says whether work that failed before may be tried again.
func (s *Service) due(kind string, order id.ID, now ledger.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.later[kind+order.Text("")]
	return r == nil || r.next <= now
}

// tried remembers how a try went: each failure doubles the wait before the next.
func (s *Service) tried(kind string, order id.ID, now ledger.Time, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := kind + order.Text("")
	if ended {
		delete(s.later, key)
		return
	}
	r := s.later[key]
	if r == nil {
		r = &lastRetry{wait: retryFirst}
		s.later[key] = r
	}
	r.next = now + ledger.Time(r.wait.Milliseconds())
	r.wait = min(retryFarFrom*r.wait, retryMost)
}

// forget bounds what is remembered of failures.
func (s *Service) forget(now ledger.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, r := range s.later {
		if len(s.later) > retriesKept || r.next+ledger.Time(retryMost.Milliseconds()) < now {
			delete(s.later, key)
		}
	}
}
