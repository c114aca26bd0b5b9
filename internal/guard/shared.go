package guard

import (
	"context"
	"sync/atomic"
	"time"
)

// Bounds of limits that nodes share.
const (
	SharedWait  = 50 * time.Millisecond // for one round trip; then the node decides alone
	SharedRest  = time.Second           // for which a node asks nobody after a round trip failed
	SharedTakes = 3                     // limits asked for in one round trip, at most
	// siteEvery is how often a node tells the others what it let pass, and hears of them.
	siteEvery = 20 * time.Millisecond
)

// Shared are cells that all nodes of an installation share: guard/redis is one.
type Shared interface {
	// Take is one round trip. It takes Count requests from the cell of each take, or where one refuses from none of those that
	// may refuse; takes with Always neither refuse nor are refused. Those that may refuse have one Key, so that they can lie
	// beside each other.
	//
	// ahead is, for each take, how far its arrival time lies ahead of now by the store's own clock, after the step: what was
	// taken is used up then. Refused is the first take that refuses, -1 for none. A clock that goes back locks nobody out for
	// longer than the whole quota. Cells that nobody asks for are forgotten once their time has come.
	Take(ctx context.Context, takes []Take) (ahead [SharedTakes]time.Duration, refused int, err error)
}

// A Take asks for requests of a cell.
type Take struct {
	Name  string        // of the limit
	Key   [16]byte      // whose cell it is
	Each  time.Duration // one request each
	Quota int64         // so many at once
	Count int64
	// Always says that it is counted whatever the quota, up to the whole of it: what a node has let pass already.
	Always bool
}

// sharing is a limiter's side of the cells that nodes share.
type sharing struct {
	store  Shared
	failed func(error)

	restUntil atomic.Int64 // nanoseconds since the limiter's start
	siteAt    atomic.Int64 // when the site's count is told next
	sitePass  atomic.Int64 // requests let pass and not told yet
}

// Share makes a limiter count together with those of other nodes. It must be called before the first request. failed is
// told of each round trip that failed, and may be nil.
//
// The rule where the store is away: a round trip that fails or takes longer than SharedWait lets the node's own cells decide,
// which have counted everything that came here all the time; after one that failed the store is not asked for SharedRest. So
// a caller who spreads over n nodes is let pass up to n times as often meanwhile, and nobody is refused who would not have been.
//
// The site's limit is each node's own, and counts what others let pass with a delay of up to 20 ms. The shares of events are
// each node's own.
func (l *Limiter) Share(store Shared, failed func(error)) {
	if failed == nil {
		failed = func(error) {}
	}
	l.shared = &sharing{store: store, failed: failed}
	l.site.rate.debt = l.site.rate.quota
}

// caller asks for the limits that the node's own cells have granted. On a refusal what those took is given back.
func (s *sharing) caller(ctx context.Context, l *Limiter, now time.Time, a *asked, v *Verdict) {
	at := l.since(now)
	if at < s.restUntil.Load() {
		return
	}
	if l.site.cells != nil {
		s.sitePass.Add(1)
	}
	var takes [SharedTakes]Take
	var limits [SharedTakes]*limit
	n := 0
	for _, lim := range a.limits {
		if lim != nil && lim.cells != nil {
			takes[n] = Take{Name: lim.policy.Name, Key: a.key, Each: time.Duration(lim.rate.each), Quota: lim.rate.quota, Count: 1}
			limits[n] = lim
			n++
		}
	}
	own, told := n, s.tellSite(l, at, &takes[n])
	if told > 0 {
		n++
	}
	if n == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, SharedWait)
	ahead, refused, err := s.store.Take(bounded, takes[:n])
	cancel()
	if err != nil {
		if ctx.Err() == nil { // else the caller went away: nothing is wrong with the store
			s.restUntil.Store(at + int64(SharedRest))
			s.failed(err)
		}
		return
	}
	if told > 0 {
		l.site.cells.raise(key{}, at, at+min(int64(ahead[own]), l.site.rate.each*(l.site.rate.quota+l.site.rate.debt)))
	}
	if refused >= 0 && refused < own {
		for _, lim := range limits[:own] {
			lim.giveBack(a.key)
		}
		lim := limits[refused]
		*v = Verdict{Refused: true, RetryAfter: lim.rate.wait(int64(ahead[refused]), 0), Standings: [2]Standing{lim.standing(int64(ahead[refused]))}}
		s.sitePass.Add(-1)
		return
	}
	for i, lim := range limits[:own] {
		v.Standings[i] = lim.standing(int64(ahead[i]))
	}
}

// tellSite fills in what the node has let pass since it last told, where it is time to; else 0.
func (s *sharing) tellSite(l *Limiter, at int64, t *Take) (told int64) {
	due := s.siteAt.Load()
	if l.site.cells == nil || at < due || !s.siteAt.CompareAndSwap(due, at+int64(siteEvery)) {
		return 0
	}
	if told = max(0, s.sitePass.Swap(0)); told == 0 {
		return 0
	}
	*t = Take{Name: l.site.policy.Name, Each: time.Duration(l.site.rate.each), Quota: l.site.rate.quota + l.site.rate.debt, Count: told, Always: true}
	return told
}
