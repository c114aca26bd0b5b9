// Package guard stands at the gate: how often somebody may ask (E9), what proof of work they show before they join a line
// (C14), when a person is asked for, who is blocked, and what evidence is kept of machines.
//
// The one idea of the limits: a limit remembers one number for each customer or address, the instant until which what they
// have asked for so far is used up (the generic cell rate algorithm: a token bucket without a clockwork). It is written
// here, and not taken from golang.org/x/time/rate, for three reasons: that number is 8 bytes where a rate.Limiter is ten
// times that, and there are hundreds of thousands; how long to wait and what is left, which the answer must say, fall out
// of it exactly and without taking anything; and what was taken can be given back when another limit refuses.
//
// The one idea of the rest: everything that a client carries is signed and says itself for whom, for what and until when it
// holds (proof.go, device.go, person.go), so that nothing of it is stored; what is remembered is bounded and may be
// forgotten.
//
// A guard is a filter: it keeps nothing on disk and forgets those it has not heard of for longest. What must be exact
// (limits of places, hits of a code, who enters) is the databases' business.
//
// Start reading at Limiter for the limits (cells.go has the number and where it lies, shared.go how nodes share it,
// address.go whose address a request is of), and at Gate (gate.go) for who may join.
package guard

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"time"

	"onsale/internal/id"
)

// Bounds of settings.
const (
	RateMax       = 1_000_000        // requests a second
	BurstMax      = 60 * time.Second // of a rate that may come at once
	KeysDefault   = 200_000          // customers, and as many addresses, that are remembered
	KeysMax       = 10_000_000
	eventKeys     = 4_096 // events and classes whose share of the site is remembered
	reserveOfSite = 2     // 1/2 of the site's burst is kept for events that ask for less than their share
)

// A Class is what a request does, as far as limits go.
type Class uint8

// The classes.
const (
	Plain  Class = iota // everything that has no class of its own
	Sale                // holds and bookings
	Staff               // an organizer's people: a door scans faster than a buyer clicks
	Free                // not limited: a provider's notices, whether the program runs
	Queue               // joins a line, claims one's entry, leaves
	SignIn              // asks for a code or brings one
	Check               // asks for a proof of work or a picture, or brings what it says: to make and look at them is work
	classes
)

// Settings say how much is allowed: requests a second; 0 is no limit.
type Settings struct {
	Customer int // each customer
	Sale     int // each customer, of class Sale; they count as the customer's, too
	Queue    int // each customer, of class Queue; they count as the customer's, too
	Staff    int // each customer, of class Staff, which count as nothing else
	SignIn   int // each customer or address, of class SignIn; they count as the customer's or the address's, too
	Check    int // the same of class Check
	Address  int // each address, of requests without a signed-in customer or valid queue ticket; IPv6 by /64
	Site     int // all together, on this node
	// Event is what one event may ask for in one class whatever the others do, on this node. What is more than that it may
	// take from the site only down to a reserve of half the site's burst: a hot event starves no other.
	Event int
	// Burst is for how long of silence one may make up at once. Defaults to 2 s.
	Burst time.Duration
	// Keys is how many customers, and how many addresses, are remembered: beyond that those not heard of for longest are
	// forgotten, and start afresh. Defaults to KeysDefault.
	Keys int
}

// Default is DESIGN 1.
func Default() Settings {
	return Settings{Customer: 5, Sale: 3, Queue: 3, Staff: 50, SignIn: 5, Check: 5, Address: 20, Site: 20_000, Event: 4_000, Burst: 2 * time.Second, Keys: KeysDefault}
}

// A Caller is who asks, for what.
type Caller struct {
	Customer id.ID // 0: nobody is signed in
	// Ticket is whose valid queue ticket came with the request, 0 for none. It takes the place of the address where nobody
	// is signed in: carriers put thousands who wait behind one.
	Ticket  id.ID
	Address netip.Addr
	Class   Class
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
	// The limits of the whole site and of an event are not told.
	Standings [2]Standing
}

// A Limiter counts. Its methods may be called from many goroutines.
type Limiter struct {
	start time.Time // times are kept since then, on the monotonic clock

	customer, ticket, address limit
	class, classAddress       [classes]limit // of a customer, of an address; without a limit where a class has none
	site, event               limit
	reserve                   int64 // of the site's burst

	shared *sharing // nil: this node alone
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
		{&l.customer, "customer", s.Customer, s.Keys}, {&l.ticket, "ticket", s.Customer, s.Keys}, {&l.address, "address", s.Address, s.Keys},
		{&l.class[Sale], "sale", s.Sale, s.Keys}, {&l.class[Queue], "queue", s.Queue, s.Keys}, {&l.class[Staff], "staff", s.Staff, s.Keys},
		{&l.class[SignIn], "sign_in", s.SignIn, s.Keys}, {&l.classAddress[SignIn], "sign_in", s.SignIn, s.Keys},
		{&l.class[Check], "check", s.Check, s.Keys}, {&l.classAddress[Check], "check", s.Check, s.Keys},
		{&l.site, "site", s.Site, shards}, {&l.event, "event", s.Event, eventKeys},
	} {
		if part.perSecond < 0 || part.perSecond > RateMax {
			return nil, fmt.Errorf("guard: a rate of %d requests a second (%s) is not between 0 and %d", part.perSecond, part.name, RateMax)
		}
		if part.perSecond > 0 {
			*part.into = newLimit(part.name, part.perSecond, s.Burst, part.keys)
		}
	}
	l.reserve = l.site.rate.quota / reserveOfSite
	return l, nil
}

func newLimit(name string, perSecond int, burst time.Duration, keys int) limit {
	quota := max(1, int(math.Round(float64(perSecond)*burst.Seconds())))
	r := rate{each: int64(time.Second) / int64(perSecond), quota: int64(quota)}
	return limit{policy: Policy{Name: name, Quota: quota, Window: time.Duration(r.each * r.quota)}, rate: r, cells: newCells(keys)}
}

// Site takes a request from what all together may ask for. It comes before anybody looks at who asks, which is work, too.
//
// Event is the one that the request names, 0 where it names none: such requests are among themselves as those of one event.
// One whose event stands in its body (class Sale) is asked about again by Event, once that was read.
func (l *Limiter) Site(now time.Time, class Class, event id.ID) Verdict {
	if class == Free {
		return Verdict{}
	}
	at, reserve := l.since(now), int64(0)
	if event != 0 || class != Sale {
		reserve = l.above(at, class, event)
	}
	ok, wait := l.site.take(key{}, at, reserve, nil)
	if !ok && reserve == 0 && l.event.cells != nil && (event != 0 || class != Sale) {
		l.event.giveBack(eventKey(event, class))
	}
	return Verdict{Refused: !ok, RetryAfter: wait}
}

// Event takes a request that Site let pass, when it was not known for which event, from what that event may ask for.
func (l *Limiter) Event(now time.Time, class Class, event id.ID) Verdict {
	at := l.since(now)
	reserve := l.above(at, class, event)
	if class == Free || reserve == 0 || l.site.cells == nil {
		return Verdict{}
	}
	// It has its place in the site already, and gives it back where that was of the reserve.
	l.site.giveBack(key{})
	ok, wait := l.site.take(key{}, at, reserve, nil)
	return Verdict{Refused: !ok, RetryAfter: wait}
}

// above is how much of the site's burst a request must leave: nothing as long as its event asks for no more than its share.
func (l *Limiter) above(at int64, class Class, event id.ID) (reserve int64) {
	if l.event.cells == nil {
		return 0
	}
	if ok, _ := l.event.take(eventKey(event, class), at, 0, nil); ok {
		return 0
	}
	return l.reserve
}

// Caller takes a request that Site let pass from what its caller may ask for: a customer, or (unless they wait in line) an
// address. What is refused takes nothing, also not from the site.
//
// Where nodes share their limits the node's own come first, since who is over them is over the shared ones; then one round
// trip, of at most SharedWait, asks for all. See Share for what is done while it cannot be made.
func (l *Limiter) Caller(ctx context.Context, now time.Time, c Caller) Verdict {
	if c.Class == Free {
		return Verdict{}
	}
	asked := l.limitsOf(c)
	v := l.callerHere(l.since(now), &asked)
	if !v.Refused && l.shared != nil {
		l.shared.caller(ctx, l, now, &asked, &v)
	}
	if v.Refused {
		l.site.giveBack(key{})
	}
	return v
}

// asked are the limits that a caller's request is counted by, the one that most often refuses first.
type asked struct {
	key    key
	limits [2]*limit
}

func (l *Limiter) limitsOf(c Caller) asked {
	switch {
	case c.Customer != 0 && c.Class == Staff:
		return asked{customerKey(c.Customer), [2]*limit{&l.class[Staff]}}
	case c.Customer != 0:
		return asked{customerKey(c.Customer), [2]*limit{&l.class[c.Class], &l.customer}}
	case c.Ticket != 0: // not the customer's own: whoever has seen a queue ticket could use that up
		return asked{customerKey(c.Ticket), [2]*limit{&l.ticket}}
	}
	return asked{addressKey(c.Address), [2]*limit{&l.classAddress[c.Class], &l.address}}
}

// callerHere asks this node's own cells: all limits, or none.
func (l *Limiter) callerHere(at int64, a *asked) (v Verdict) {
	n := 0
	for i, lim := range a.limits {
		if lim == nil || lim.cells == nil {
			continue
		}
		ok, wait := lim.take(a.key, at, 0, &v.Standings[n])
		if ok {
			n++
			continue
		}
		for _, taken := range a.limits[:i] {
			taken.giveBack(a.key)
		}
		return Verdict{Refused: true, RetryAfter: wait, Standings: [2]Standing{v.Standings[n]}}
	}
	return v
}

// since is an instant as the cells keep it: on the monotonic clock, so that a clock that is put back locks nobody out.
func (l *Limiter) since(now time.Time) int64 { return int64(now.Sub(l.start)) }

func (l *limit) take(k key, at, reserve int64, s *Standing) (ok bool, wait time.Duration) {
	if l.cells == nil {
		return true, 0
	}
	ok, tat := l.cells.take(k, at, l.rate, reserve)
	if s != nil {
		*s = l.standing(tat - at)
	}
	if ok {
		return true, 0
	}
	return false, l.rate.wait(tat+reserve*l.rate.each, at)
}

// standing is how somebody stands whose arrival time lies so far ahead.
func (l *limit) standing(ahead int64) Standing {
	return Standing{Policy: &l.policy, Remaining: l.rate.left(ahead, 0), Reset: time.Duration(max(0, ahead))}
}

func (l *limit) giveBack(k key) {
	if l != nil && l.cells != nil {
		l.cells.giveBack(k, l.rate)
	}
}
