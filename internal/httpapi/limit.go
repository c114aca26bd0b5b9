package httpapi

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"onsale/internal/fault"
	"onsale/internal/guard"
	"onsale/internal/id"
)

// A Limiter says whether somebody asks too often; guard.Limiter is one. The zero verdict lets a request pass.
type Limiter interface {
	// Site comes before anybody looks at who asks; Caller afterwards; Event where only the body says which event it is about.
	Site(now time.Time, class guard.Class, event id.ID) guard.Verdict
	Caller(ctx context.Context, now time.Time, c guard.Caller) guard.Verdict
	Event(now time.Time, class guard.Class, event id.ID) guard.Verdict
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
func (a *api) limitSite(rt *route, r *request) error {
	if a.Limiter == nil {
		return nil
	}
	event, _ := id.Parse(id.Event, r.PathValue("event_id")) // what names none is counted with those that name none
	return a.refused(nil, a.Limiter.Site(a.Now(), rt.class(), event))
}

// limitEvent refuses what is more than one event may ask for while the site is busy, where only the body said which it is.
func (a *api) limitEvent(class guard.Class, event id.ID) error {
	if a.Limiter == nil {
		return nil
	}
	return a.refused(nil, a.Limiter.Event(a.Now(), class, event))
}

// limitCaller refuses what is more than this customer, or this address, may ask for, and says how they stand.
func (a *api) limitCaller(rt *route, h http.Header, r *request) error {
	if a.Limiter == nil {
		return nil
	}
	v := a.Limiter.Caller(r.Context(), a.Now(), guard.Caller{Customer: r.person.Customer, Address: a.address(r), Class: rt.class()})
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
