package eventfile

import (
	"time"

	"go.yaml.in/yaml/v3"

	"onsale/internal/catalog"
	"onsale/internal/venue"
)

// before are rules that are said as a time before the start, which each performance has for itself.
type before struct {
	refunds, exchanges, transfers time.Duration
	joins                         time.Duration // before the sale opens
}

// rules reads what customers may do with tickets that they have, and the ways into the house.
func (f *reader) rules(s *settings, o *object) {
	e := &s.event
	if o.has("refunds") {
		rule := o.object("refunds")
		e.Refunds.Until, s.before.refunds = f.until(rule)
		e.Refunds.FeeBP = rule.percent("fee_percent", 0)
		e.Refunds.FeePlace = rule.money("fee", f.currency)
		rule.end()
	}
	if o.has("exchanges") {
		rule := o.object("exchanges")
		e.Exchanges.Until, s.before.exchanges = f.until(rule)
		e.Exchanges.Fee = rule.money("fee", f.currency)
		rule.end()
	}
	if o.has("transfers") {
		rule := o.object("transfers")
		e.Transfers.Until, s.before.transfers = f.until(rule)
		rule.end()
	}
	if o.has("documents") {
		e.Documents = o.flag("documents", false)
	}
	if o.has("gates") {
		e.Gates = f.gates(o)
	}
}

// until reads the end of a rule: an instant (until), or a time before the start (until_before).
func (f *reader) until(o *object) (time.Time, time.Duration) {
	switch {
	case o.has("until") && o.has("until_before"):
		o.report.Add(o.line, o.path+"until", "and until_before say the same: keep one")
	case !o.has("until") && !o.has("until_before"):
		o.report.Add(o.line, o.path+"until", "is missing: until when? Give a time, or until_before: 72h")
	case o.has("until_before"):
		return time.Time{}, o.duration("until_before", 0).Std()
	}
	return f.time(o, "until"), 0
}

// from makes instants of what was said as a time before the start.
func (b before) from(e *catalog.Event) {
	for _, r := range []struct {
		until *time.Time
		ahead time.Duration
	}{{&e.Refunds.Until, b.refunds}, {&e.Exchanges.Until, b.exchanges}, {&e.Transfers.Until, b.transfers}} {
		if r.ahead > 0 && !e.Starts.IsZero() {
			*r.until = e.Starts.Add(-r.ahead)
		}
	}
	if b.joins > 0 && !e.SaleOpens.IsZero() {
		e.Room.JoinsOpen = e.SaleOpens.Add(-b.joins)
	}
}

func (f *reader) gates(o *object) []catalog.Gate {
	nodes, path := o.list("gates", catalog.GatesMax)
	var gates []catalog.Gate
	for i, n := range nodes {
		g := newObject(f.report, path(i), n)
		gate := catalog.Gate{Key: g.required("key", "a short name for the gate")}
		gate.Name = g.str("name", gate.Key)
		sections, _ := g.list("sections", venue.SectionsMax)
		for _, n := range sections {
			if n.Kind != yaml.ScalarNode {
				f.report.Add(n.Line, g.path+"sections", "must be keys of the plan's sections")
				continue
			}
			gate.Sections = append(gate.Sections, n.Value)
		}
		g.end()
		gates = append(gates, gate)
	}
	return gates
}
