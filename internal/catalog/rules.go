package catalog

import (
	"fmt"
	"slices"
	"time"

	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// Limits of an event's gates.
const (
	GatesMax        = 100
	GateKeyBytesMax = 64
)

// A RefundRule says until when customers may give tickets back by themselves, and what is then kept. The zero value: they
// may not.
type RefundRule struct {
	Until    time.Time `json:"until,omitzero"`
	FeeBP    int64     `json:"fee_bp,omitempty"`          // of what a ticket cost, in basis points: 1000 is 10 %
	FeePlace int64     `json:"fee_place_minor,omitempty"` // for each ticket, minor units
}

// An ExchangeRule says until when customers may exchange tickets for others of the event or its show. The zero value: they
// may not.
type ExchangeRule struct {
	Until time.Time `json:"until,omitzero"`
	Fee   int64     `json:"fee_minor,omitempty"` // for each ticket given up, minor units
}

// A TransferRule says until when customers may pass tickets on. The zero value: they may not.
type TransferRule struct {
	Until time.Time `json:"until,omitzero"`
}

// A Gate is a way into the house. One without sections leads to all of them.
type Gate struct {
	Key      string   `json:"key"`
	Name     string   `json:"name"`
	Sections []string `json:"sections,omitempty"` // keys of the plan's sections
}

func (e *Event) validateRules(r *Report, path string) {
	between(r, path+"refunds.fee_percent", e.Refunds.FeeBP, 0, 10_000)
	between(r, path+"refunds.fee", e.Refunds.FeePlace, 0, AmountMax)
	between(r, path+"exchanges.fee", e.Exchanges.Fee, 0, AmountMax)
	for _, u := range []struct {
		key   string
		until time.Time
	}{{"refunds", e.Refunds.Until}, {"exchanges", e.Exchanges.Until}} {
		if u.until.After(e.Starts) {
			r.Add(0, path+u.key+".until", "must not be after starts")
		}
	}
	if len(e.Gates) > GatesMax {
		r.Add(0, path+"gates", "has %d gates; at most %d", len(e.Gates), GatesMax)
		return
	}
	for i, g := range e.Gates {
		p := fmt.Sprintf("%sgates[%d].", path, i)
		if fault := CheckKey(g.Key); fault != "" {
			r.Add(0, p+"key", "%s", fault)
		}
		checkName(r, p+"name", g.Name)
		if slices.ContainsFunc(e.Gates[:i], func(o Gate) bool { return o.Key == g.Key }) {
			r.Add(0, p+"key", "%.80q is there twice", g.Key)
		}
	}
}

// ruled puts the event's rules into the ledger's row, and checks its gates against the plan.
func (e *Event) ruled(r *Report, l *ledger.Event, plan *venue.Plan) {
	l.Refunds = ledger.RefundRule{Until: instant(e.Refunds.Until), FeeBP: e.Refunds.FeeBP, FeePlace: e.Refunds.FeePlace}
	l.Exchanges = ledger.ExchangeRule{Until: instant(e.Exchanges.Until), Fee: e.Exchanges.Fee}
	l.Transfers = ledger.TransferRule{Until: instant(e.Transfers.Until)}
	l.Documents = e.Documents
	sections := planNames(plan).sections
	for i, g := range e.Gates {
		for _, s := range g.Sections {
			if _, ok := sections[s]; !ok {
				r.Add(0, fmt.Sprintf("gates[%d].sections", i), "the plan has no section %.80q; it has %s", s, listed(sections))
			}
		}
	}
}

// instant is a time as the ledger has it, 0 where it is not said.
func instant(t time.Time) ledger.Time {
	if t.IsZero() {
		return 0
	}
	return ledger.TimeOf(t)
}
