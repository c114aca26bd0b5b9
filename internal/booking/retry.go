package booking

import (
	"context"
	"errors"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// How work that failed is tried again: each failure doubles the wait.
const (
	retryFirst  = time.Second
	retryMost   = time.Minute
	retryFactor = 2
	// retryRefused is the wait after a final refusal, which only people can mend: it is tried, and told, again once a day.
	retryRefused = 24 * time.Hour
	retriesKept  = 10_000
)

// retries remembers work that failed, by what it is. What it forgets is only tried sooner.
type retries struct {
	mu    sync.Mutex
	after map[string]*retry
}

type retry struct {
	wait time.Duration
	next ledger.Time
	told bool // an alert was raised
}

// due says whether work may be tried: it never failed, or its wait is over.
func (r *retries) due(key string, now ledger.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.after[key]
	return f == nil || f.next <= now
}

func (r *retries) done(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.after, key)
}

// failed puts work off. tell says that somebody should hear of it, for the first time.
func (r *retries) failed(key string, now ledger.Time, err error) (tell bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.after[key]
	if f == nil {
		f = &retry{wait: retryFirst}
		if len(r.after) < retriesKept {
			r.after[key] = f
		}
	}
	wait := f.wait
	f.wait = min(retryFactor*f.wait, retryMost)
	var final *payment.Refused
	if errors.As(err, &final) {
		wait, f.told = retryRefused, false
	}
	f.next = now + ledger.Time(wait.Milliseconds())
	tell = !f.told && lasting(err)
	f.told = f.told || tell
	return tell
}

func (r *retries) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.after)
}

// forget drops what has been due for long and did not fail again: it has ended otherwise.
func (r *retries) forget(now ledger.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, f := range r.after {
		if f.next+ledger.Time(time.Hour.Milliseconds()) < now {
			delete(r.after, key)
		}
	}
}

var (
	// errPending puts an order off about which there is no news.
	errPending = errors.New("the provider does not know yet")
	// errForeign is met by work that another provider than the configured one must do.
	errForeign = errors.New("it was begun with another payment provider than the one in use")
	// errUnable is met by work that needs what the provider in use cannot do.
	errUnable = errors.New("the payment provider in use cannot do this")
)

// lasting says that trying again does not help by itself, so that somebody must look.
func lasting(err error) bool {
	for _, e := range []error{errForeign, errUnable, errNoMoney, payment.ErrConflict, payment.ErrInvalid, payment.ErrNotFound} {
		if errors.Is(err, e) {
			return true
		}
	}
	var final *payment.Refused
	if errors.As(err, &final) {
		return true
	}
	code := fault.CodeOf(err)
	return code == fault.Conflict || code == fault.Invalid
}

// ended writes down how a try of some work went, and says whether it failed.
func (s *Service) ended(ctx context.Context, what, key string, order id.ID, now ledger.Time, err error) (failed bool) {
	if err == nil {
		s.retries.done(what + key)
		return false
	}
	tell := s.retries.failed(what+key, now, err)
	if errors.Is(err, errPending) {
		return false
	}
	if tell {
		s.o.Alert(ctx, "cannot "+what, order, err)
	}
	s.o.Logger.WarnContext(ctx, "will be tried again: "+what, "order", order.Text(id.Order), "payment", key, "error", err)
	return true
}
