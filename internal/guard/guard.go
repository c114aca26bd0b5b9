// Package guard says how often somebody may ask (E9): how many requests a second of one customer, of one address, of all.
//
// The one idea: a limit remembers one number for each customer or address, the instant until which what they have asked for
// so far is used up (the generic cell rate algorithm: a token bucket without a clockwork). It is written here, and not
// taken from golang.org/x/time/rate, for three reasons: that number is 8 bytes where a rate.Limiter is ten times that, and
// there are hundreds of thousands; how long to wait and what is left, which the answer must say, fall out of it exactly
// and without taking anything; and what was taken can be given back when another limit refuses.
//
// A guard is a filter: it keeps nothing on disk, it forgets those it has not heard of for longest, and each node has its
// own. What must be exact (limits of places, hits of a code) is the databases' business.
//
// Start reading at Limiter; cells.go has the number and where it lies, address.go whose address a request is of.
package guard

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"onsale/internal/id"
)

// Bounds of settings.
const (
	RateMax     = 1_000_000        // requests a second
	BurstMax    = 60 * time.Second // of a rate that may come at once
	KeysDefault = 200_000          // customers, and as many addresses, that are remembered
	KeysMax     = 10_000_000
)

// A Class is what a request does, as far as limits go.
type Class uint8

// The classes.
const (
	Plain Class = iota // everything that has no class of its own
	Sale               // holds and bookings
	Staff              // an organizer's people: a door scans faster than a buyer clicks
	Free               // not limited: a provider's notices, whether the program runs
)

// Settings say how much is allowed: requests a second; 0 is no limit.
type Settings struct {
	Customer int // each customer
	Sale     int // each customer, of class Sale; they count as the customer's, too
	Staff    int // each customer, of class Staff, which count as nothing else
	Address  int // each address, of requests without a signed-in customer or valid queue ticket; IPv6 by /64
	Site     int // all together, on this node
	// Burst is for how long of silence one may make up at once. Defaults to 2 s.
	Burst time.Duration
	// Keys is how many customers, and how many addresses, are remembered: beyond that those not heard of for longest are
	// forgotten, and start afresh. Defaults to KeysDefault.
	Keys int
}

// Default is DESIGN 1.
func Default() Settings {
	return Settings{Customer: 5, Sale: 3, Staff: 50, Address: 20, Site: 20_000, Burst: 2 * time.Second, Keys: KeysDefault}
}

// A Caller is who asks, for what.
type Caller struct {
	Customer id.ID // 0: nobody is signed in
	InQueue  bool  // a valid queue ticket came with the request
	Address  netip.Addr
	Class    Class
}

// A Policy is a limit as it is told to clients.
type Policy struct {
	Name   string
	Quota  int           // requests
	Window time.Duration // in which the whole quota comes back
}

// A Standing is how somebody stands with a limit.
type Standing struct {
	Policy    *Policy
	Remaining int
	Reset     time.Duration // until the whole quota is there again
}

// A Verdict is the answer to a request. The zero value lets it pass.
type Verdict struct {
	Refused    bool
	RetryAfter time.Duration // of a refused one: not before
	// Standings are those with the limits that were looked at, at most two; with a refused request the one that refused.
	// The limit of the whole site is not told.
	Standings [2]Standing
}

// A Limiter counts. Its methods may be called from many goroutines.
type Limiter struct {
	start                          time.Time // times are kept since then, on the monotonic clock
	customer, sale, staff, address limit
	site                           limit
}

// A limit is a rate and who uses how much of it.
type limit struct {
	policy Policy
	rate   rate
	cells  *cells // nil: no limit
}

// New makes a limiter. Settings out of their bounds are an error.
func New(s Settings, now time.Time) (*Limiter, error) {
	if s.Burst == 0 {
		s.Burst = Default().Burst
	}
	if s.Keys == 0 {
		s.Keys = KeysDefault
	}
	if s.Burst < 0 || s.Burst > BurstMax {
		return nil, fmt.Errorf("guard: a burst of %s is not between 0 and %s", s.Burst, BurstMax)
	}
	if s.Keys < shards || s.Keys > KeysMax {
		return nil, fmt.Errorf("guard: %d keys are not between %d and %d", s.Keys, shards, KeysMax)
	}
	l := &Limiter{start: now}
	for _, part := range []struct {
		into      *limit
		name      string
		perSecond int
		keys      int
	}{
		{&l.customer, "customer", s.Customer, s.Keys}, {&l.sale, "sale", s.Sale, s.Keys}, {&l.staff, "staff", s.Staff, s.Keys},
		{&l.address, "address", s.Address, s.Keys}, {&l.site, "site", s.Site, shards},
	} {
		if part.perSecond < 0 || part.perSecond > RateMax {
			return nil, fmt.Errorf("guard: a rate of %d requests a second (%s) is not between 0 and %d", part.perSecond, part.name, RateMax)
		}
		if part.perSecond > 0 {
			*part.into = newLimit(part.name, part.perSecond, s.Burst, part.keys)
		}
	}
	return l, nil
}

func newLimit(name string, perSecond int, burst time.Duration, keys int) limit {
	quota := max(1, int(math.Round(float64(perSecond)*burst.Seconds())))
	r := rate{each: int64(time.Second) / int64(perSecond), quota: int64(quota)}
	return limit{policy: Policy{Name: name, Quota: quota, Window: time.Duration(r.each * r.quota)}, rate: r, cells: newCells(keys)}
}

// Site takes a request from what all together may ask for. It comes before anybody looks at who asks, which is work, too.
func (l *Limiter) Site(now time.Time, class Class) Verdict {
	if class == Free {
		return Verdict{}
	}
	ok, wait := l.site.take(key{}, l.since(now), nil)
	return Verdict{Refused: !ok, RetryAfter: wait}
}

// Caller takes a request that Site let pass from what its caller may ask for: a customer, or (unless they wait in line) an
// address. What is refused takes nothing, also not from the site.
func (l *Limiter) Caller(now time.Time, c Caller) Verdict {
	if c.Class == Free {
		return Verdict{}
	}
	at := l.since(now)
	var v Verdict
	ok, wait := true, time.Duration(0)
	who := customerKey(c.Customer)
	switch {
	case c.Customer != 0 && c.Class == Staff:
		ok, wait = l.staff.take(who, at, &v.Standings[0])
	case c.Customer != 0 && c.Class == Sale:
		// The smaller limit first: it is the one that most often refuses.
		if ok, wait = l.sale.take(who, at, &v.Standings[0]); ok {
			if ok, wait = l.customer.take(who, at, &v.Standings[1]); !ok {
				l.sale.giveBack(who)
				v.Standings[0], v.Standings[1] = v.Standings[1], Standing{}
			}
		}
	case c.Customer != 0:
		ok, wait = l.customer.take(who, at, &v.Standings[0])
	case !c.InQueue:
		ok, wait = l.address.take(addressKey(c.Address), at, &v.Standings[0])
	}
	if !ok {
		v.Refused, v.RetryAfter = true, wait
		l.site.giveBack(key{})
	}
	return v
}

// since is an instant as the cells keep it: on the monotonic clock, so that a clock that is put back locks nobody out.
func (l *Limiter) since(now time.Time) int64 { return int64(now.Sub(l.start)) }

func (l *limit) take(k key, at int64, s *Standing) (ok bool, wait time.Duration) {
	if l.cells == nil {
		return true, 0
	}
	ok, tat := l.cells.take(k, at, l.rate)
	if s != nil {
		*s = Standing{Policy: &l.policy, Remaining: l.rate.left(tat, at), Reset: time.Duration(max(0, tat-at))}
	}
	if ok {
		return true, 0
	}
	return false, l.rate.wait(tat, at)
}

func (l *limit) giveBack(k key) {
	if l.cells != nil {
		l.cells.giveBack(k, l.rate)
	}
}
