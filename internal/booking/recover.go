package booking

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
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
	doSettle    = "settle a pending order"
	doCapture   = "capture a payment"
	doGiveBack  = "give a payment back"
	doDead      = "give back the payment of an unknown order"
	doRelease   = "give the seats of a refund back"
	doCancelled = "refund a booking of a cancelled event"
)

// Recovered counts what one round of recovery did.
type Recovered struct {
	Orders   int // PENDING orders asked about
	Ended    int // of them, not PENDING any more
	Captured int
	Returned int // payments given back
	Failed   int // tries that failed and will be repeated

	// More says that a round is not enough for what there is, and that this one was of use: the next need not wait.
	More bool
}

// Recover is one round of the recovery job (DESIGN 8, step 5): PENDING orders that nobody talks about any more are
// settled by asking the provider, authorized payments of PAID orders are captured, what is to be given back is, seats of
// refunds go back to the sale, orders of cancelled events are refunded, and dead letters old enough are. It may run on many
// nodes at once; that only wastes calls.
func (s *Service) Recover(ctx context.Context) (Recovered, error) {
	var done Recovered
	now, err := s.o.Shard.Ledger().Now(ctx)
	if err != nil {
		return done, err
	}
	r := &round{Service: s, now: now, done: &done}
	err = errors.Join(r.orders(ctx), r.payments(ctx), r.releases(ctx), r.cancelled(ctx), r.dead(ctx), r.prune(ctx))
	s.retries.forget(now)
	done.More = r.full && done.Ended+done.Captured+done.Returned > 0
	return done, err
}

// A round of recovery.
type round struct {
	*Service
	now  ledger.Time
	full bool // one of the lists was longer than a round

	mu   sync.Mutex // guards what follows
	done *Recovered
	away int // calls that went unanswered, one after the other
}

// over says that the round should end.
func (r *round) over(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ctx.Err() != nil || r.away >= awayMax
}

// count adds to what the round has done.
func (r *round) count(what *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*what++
}

// unanswered keeps count of how long the provider has said nothing.
func (r *round) unanswered(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, payment.ErrUnknown) {
		r.away++
	} else {
		r.away = 0
	}
}

// each does the work for everything in a list, RecoverAtOnce at a time, until the round should end: nearly all of the time
// is spent waiting for the provider, and after a hot sale a capture is due for every booking.
func each[T any](ctx context.Context, r *round, list []T, work func(T)) error {
	if r.o.RecoverAtOnce == 1 {
		for _, item := range list {
			if r.over(ctx) {
				break
			}
			work(item)
		}
		return ctx.Err()
	}
	next := make(chan T)
	var hands sync.WaitGroup
	for range min(r.o.RecoverAtOnce, len(list)) {
		hands.Go(func() {
			for item := range next {
				work(item)
			}
		})
	}
	for _, item := range list {
		if r.over(ctx) {
			break
		}
		next <- item
	}
	close(next)
	hands.Wait()
	return ctx.Err()
}

// try does one piece of work, unless it failed and must wait; done says that it was done.
func (r *round) try(ctx context.Context, what, key string, order id.ID, work func(context.Context) error) (done bool) {
	if !r.retries.due(what+key, r.now) {
		return false
	}
	talk, cancel := context.WithTimeout(ctx, r.o.AttemptTimeout)
	defer cancel()
	err := work(talk)
	r.unanswered(err)
	if r.ended(ctx, what, key, order, r.now, err) {
		r.count(&r.done.Failed)
		return false
	}
	return true
}

func (r *round) orders(ctx context.Context) error {
	before := r.now - ledger.Time(r.o.RecoverAfter.Milliseconds())
	most := recoverMax + r.retries.count()
	orders, err := r.o.Shard.Ledger().PendingOrders(ctx, before, most)
	if err != nil {
		return err
	}
	r.full = r.full || len(orders) == most
	return each(ctx, r, orders, func(o ledger.Order) {
		if r.busyWith(o.ID) {
			return
		}
		r.try(ctx, doSettle, o.ID.Text(id.Order), o.ID, func(ctx context.Context) error {
			r.count(&r.done.Orders)
			after, err := r.recoverOrder(ctx, o, r.now)
			if err == nil && after.State != ledger.OrderPending {
				r.count(&r.done.Ended)
			}
			if err == nil && after.State == ledger.OrderPending {
				err = errPending
			}
			return err
		})
	})
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
	most := recoverMax + r.retries.count()
	open, err := r.o.Shard.Ledger().OpenPayments(ctx, most)
	if err != nil {
		return err
	}
	r.full = r.full || len(open) == most
	return each(ctx, r, open, func(p ledger.OpenPayment) {
		if p.Refund != nil {
			done := r.try(ctx, doGiveBack, p.Refund.Key(), p.Refund.Order, func(ctx context.Context) error {
				return r.giveBack(ctx, *p.Refund)
			})
			if done {
				r.count(&r.done.Returned)
			}
			return
		}
		done := r.try(ctx, doCapture, p.Payment.ID, p.Payment.Order, func(ctx context.Context) error {
			return r.capture(ctx, p.Payment)
		})
		if done {
			r.count(&r.done.Captured)
		}
	})
}

// releases gives back the seats of refunds whose money is back.
func (r *round) releases(ctx context.Context) error {
	most := recoverMax + r.retries.count()
	refunds, err := r.o.Shard.Ledger().UnreleasedRefunds(ctx, most)
	if err != nil {
		return err
	}
	r.full = r.full || len(refunds) == most
	return each(ctx, r, refunds, func(f ledger.Refund) {
		r.try(ctx, doRelease, f.ID.Text(id.Refund), f.Order, func(ctx context.Context) error {
			_, err := r.do(ctx, ledger.ReleaseSeats{Refund: f.ID})
			return err
		})
	})
}

// dead gives back payments whose order nobody knows, once it is sure that it will not appear (A20).
func (r *round) dead(ctx context.Context) error {
	before := r.now - ledger.Time(r.o.DeadAfter.Milliseconds())
	dead, err := r.o.Webhooks.DeadWebhooks(ctx, before, deadMax+r.retries.count())
	if err != nil {
		return err
	}
	return each(ctx, r, dead, func(w ledger.Webhook) {
		done := r.try(ctx, doDead, w.Payment, 0, func(ctx context.Context) error {
			if err := r.refundDead(ctx, w); err != nil {
				return err
			}
			w.Dead = false
			return r.o.Webhooks.WebhookKeep(ctx, w)
		})
		if done {
			r.count(&r.done.Returned)
		}
	})
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
