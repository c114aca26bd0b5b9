package httpapi

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"onsale/internal/fault"
	"onsale/internal/guard"
)

// A Limiter says whether somebody asks too often; guard.Limiter is one. The zero verdict lets a request pass.
type Limiter interface {
	// Site comes before anybody looks at who asks; Caller afterwards.
	Site(now time.Time, class guard.Class) guard.Verdict
	Caller(now time.Time, c guard.Caller) guard.Verdict
}

// class is what a route is to the limits.
func (rt *route) class() guard.Class {
	switch {
	case rt.Class != guard.Plain:
		return rt.Class
	case rt.Who.kind == member, rt.Who.kind == staff:
		return guard.Staff
	}
	return guard.Plain
}

// limitSite refuses what is more than all together may ask for.
func (a *api) limitSite(rt *route) error {
	if a.Limiter == nil {
		return nil
	}
	return a.refused(nil, a.Limiter.Site(a.Now(), rt.class()))
}

// limitCaller refuses what is more than this customer, or this address, may ask for, and says how they stand.
func (a *api) limitCaller(rt *route, h http.Header, r *request) error {
	if a.Limiter == nil {
		return nil
	}
	v := a.Limiter.Caller(a.Now(), guard.Caller{Customer: r.person.Customer, Address: a.address(r), Class: rt.class()})
	if !rt.Who.signedIn() && !v.Refused {
		return nil // the answer may be the same for everybody, and kept by a cache
	}
	return a.refused(h, v)
}

// refused is the fault of a verdict. Where there is a header it is told how the caller stands (the IETF's draft of
// RateLimit fields).
func (a *api) refused(h http.Header, v guard.Verdict) error {
	if h != nil {
		var limits, policies []string
		for _, s := range v.Standings {
			if s.Policy != nil {
				name := strconv.Quote(s.Policy.Name)
				limits = append(limits, name+";r="+strconv.Itoa(s.Remaining)+";t="+seconds(s.Reset))
				policies = append(policies, name+";q="+strconv.Itoa(s.Policy.Quota)+";w="+seconds(s.Policy.Window))
			}
		}
		if limits != nil {
			h.Set("RateLimit", strings.Join(limits, ", "))
			h.Set("RateLimit-Policy", strings.Join(policies, ", "))
		}
	}
	if !v.Refused {
		return nil
	}
	return &fault.Error{Code: fault.TooManyRequests, RetryAfter: v.RetryAfter}
}

func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
