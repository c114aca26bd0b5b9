package booking

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// Bounds of one round of recovery. Work that failed and waits does not count: it must not keep other work from its turn.
const (
	recoverMax = 256
	deadMax    = 64
	pruneMax   = 1000
	pruneEvery = time.Minute
	// awayMax is how many calls, one after the other, may go unanswered before the provider is held to be away, and the
	// round ends.
	awayMax = 8
)

// The kinds of work, as alerts and logs name them.
const (
	doSettle   = "settle a pending order"
	doCapture  = "capture a payment"
	doGiveBack = "give a payment back"
	doDead     = "give back the payment of an unknown order"
)

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
	r := &round{Service: s, now: now, done: &done}
	err = errors.Join(r.orders(ctx), r.payments(ctx), r.dead(ctx), r.prune(ctx))
	s.retries.forget(now)
	return done, err
}

// A round of recovery.
type round struct {
	*Service
	now  ledger.Time
	done *Recovered
	away int // calls that went unanswered, one after the other
}

// over says that the round should end.
func (r *round) over(ctx context.Context) bool { return ctx.Err() != nil || r.away >= awayMax }

// try does one piece of work, unless it failed and must wait; done says that it was done.
func (r *round) try(ctx context.Context, what, key string, order id.ID, work func(context.Context) error) (done bool) {
	if !r.retries.due(what+key, r.now) {
		return false
	}
	talk, cancel := context.WithTimeout(ctx, r.o.AttemptTimeout)
	defer cancel()
	err := work(talk)
	if errors.Is(err, payment.ErrUnknown) {
		r.away++
	} else {
		r.away = 0
	}
	if r.ended(ctx, what, key, order, r.now, err) {
		r.done.Failed++
		return false
	}
	return true
}

func (r *round) orders(ctx context.Context) error {
	before := r.now - ledger.Time(r.o.RecoverAfter.Milliseconds())
	orders, err := r.o.Shard.Ledger().PendingOrders(ctx, before, recoverMax+r.retries.count())
	if err != nil {
		return err
	}
	for _, o := range orders {
		if r.over(ctx) {
			return ctx.Err()
		}
		if r.busyWith(o.ID) {
			continue
		}
		r.try(ctx, doSettle, o.ID.Text(id.Order), o.ID, func(ctx context.Context) error {
			r.done.Orders++
			after, err := r.recoverOrder(ctx, o, r.now)
			if err == nil && after.State != ledger.OrderPending {
				r.done.Ended++
			}
			if err == nil && after.State == ledger.OrderPending {
				err = errPending
			}
			return err
		})
	}
	return nil
}

func (s *Service) busyWith(order id.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.talking[order] > 0
}

// recoverOrder settles one PENDING order. One whose provider still works on it is left alone while its hold lives, and so
// is one that the provider has not heard of while its customer may come back; else the provider is first made to forget
// it.
func (s *Service) recoverOrder(ctx context.Context, o ledger.Order, now ledger.Time) (ledger.Order, error) {
	if o.Amount == 0 {
		return s.confirmFree(ctx, o, 0)
	}
	if s.foreign(o.Provider) {
		return o, errForeign
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
	waiting := now < o.Updated+ledger.Time((s.o.RecoverAfter+s.o.AttemptTimeout).Milliseconds())
	if len(payments) > 0 {
		waiting = payments[len(payments)-1].State == payment.Pending
	}
	if waiting && hold.Live(now) {
		return o, nil
	}
	return s.cancel(ctx, o, "cancelled")
}

func (r *round) payments(ctx context.Context) error {
	open, err := r.o.Shard.Ledger().OpenPayments(ctx, recoverMax+r.retries.count())
	if err != nil {
		return err
	}
	for _, p := range open {
		if r.over(ctx) {
			return ctx.Err()
		}
		if p.Refund != nil {
			done := r.try(ctx, doGiveBack, p.Payment.ID, p.Payment.Order, func(ctx context.Context) error {
				return r.giveBack(ctx, p.Payment.Order, p.Payment.ID, *p.Refund)
			})
			if done {
				r.done.Returned++
			}
			continue
		}
		done := r.try(ctx, doCapture, p.Payment.ID, p.Payment.Order, func(ctx context.Context) error {
			return r.capture(ctx, p.Payment)
		})
		if done {
			r.done.Captured++
		}
	}
	return nil
}

// dead gives back payments whose order nobody knows, once it is sure that it will not appear (A20).
func (r *round) dead(ctx context.Context) error {
	before := r.now - ledger.Time(r.o.DeadAfter.Milliseconds())
	dead, err := r.o.Webhooks.DeadWebhooks(ctx, before, deadMax+r.retries.count())
	if err != nil {
		return err
	}
	for _, w := range dead {
		if r.over(ctx) {
			return ctx.Err()
		}
		done := r.try(ctx, doDead, w.Payment, 0, func(ctx context.Context) error {
			if err := r.refundDead(ctx, w); err != nil {
				return err
			}
			w.Dead = false
			return r.o.Webhooks.WebhookKeep(ctx, w)
		})
		if done {
			r.done.Returned++
		}
	}
	return nil
}

func (s *Service) refundDead(ctx context.Context, w ledger.Webhook) error {
	if s.foreign(w.Provider) {
		return errForeign
	}
	payments, err := s.o.Provider.Lookup(ctx, w.Order)
	if err != nil {
		return err
	}
	if o, err := s.orderOf(ctx, w.Order); err == nil {
		_, err = s.settleAll(ctx, o, payments) // it is known by now
		return err
	} else if fault.CodeOf(err) != fault.OrderUnknown {
		return err
	}
	for _, p := range payments {
		switch {
		case p.ID != w.Payment:
		case p.State == payment.Authorized:
			return s.void(ctx, p.ID)
		case hasMoney(p):
			return s.refund(ctx, p, deadKey(p.ID), p.CapturedMinor-p.RefundedMinor)
		default:
			return nil
		}
	}
	return payment.ErrNotFound
}

// deadKey is the refund id, the provider's idempotency key, of a payment without an order.
func deadKey(paymentID string) string {
	key := "dead-" + paymentID
	if len(key) > payment.IDBytesMax {
		sum := sha256.Sum256([]byte(paymentID))
		key = "dead-" + hex.EncodeToString(sum[:16])
	}
	return key
}

// prune forgets webhooks that are old enough, now and then.
func (r *round) prune(ctx context.Context) error {
	last := r.pruned.Load()
	if int64(r.now) < last+pruneEvery.Milliseconds() || !r.pruned.CompareAndSwap(last, int64(r.now)) {
		return nil
	}
	_, err := r.o.Webhooks.PruneWebhooks(ctx, r.now-ledger.Time(ledger.KeepWebhooks), pruneMax)
	return err
}
