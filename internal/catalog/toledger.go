package catalog

import (
	"fmt"
	"math"

	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// LedgerEvent is the event as its shard's ledger is to know it. What the plan does not have (a category, a section) is a
// *RefusedError with all of it.
func (e *Event) LedgerEvent(plan *venue.Plan) (ledger.Event, error) {
	var r Report
	names := planNames(plan)
	l := ledger.Event{
		ID: e.ID, Organizer: e.Organizer, Show: e.Show, Version: e.Version, PlanHash: e.PlanHash,
		SaleCloses: ledger.TimeOf(e.SaleCloses),
		HoldTTL:    e.HoldTTL, PaymentWindow: e.PaymentWindow, ExtendMax: e.ExtendMax, SeatsPerHoldMax: e.SeatsPerHoldMax,
		Currency: e.Currency, TaxIncluded: e.TaxIncluded,
		Tiers: names.tiers(&r, e.Tiers), Limits: names.limits(&r, e.Limits), Quotas: names.quotas(&r, e.Quotas),
	}
	if !e.SaleOpens.IsZero() {
		l.SaleOpens = ledger.TimeOf(e.SaleOpens)
	} else { // only a draft, which sells nothing
		l.SaleOpens = l.SaleCloses - 1 // a ledger's window is never empty
	}
	state, ok := e.State.ledgerState()
	if !ok {
		r.Add(0, "state", "%q is not a state of the ledger", string(e.State))
	}
	l.State = state
	e.ruled(&r, &l, plan)
	e.roomed(&l)
	if err := r.Err(); err != nil {
		return ledger.Event{}, err
	}
	return l, nil
}

// names are a plan's keys and their numbers.
type names struct {
	categories, sections map[string]int16
}

func planNames(plan *venue.Plan) names {
	n := names{categories: make(map[string]int16, len(plan.Categories)), sections: make(map[string]int16, len(plan.Sections))}
	for i, c := range plan.Categories {
		n.categories[c.Key] = int16(i)
	}
	for i, s := range plan.Sections {
		n.sections[s.Key] = int16(i)
	}
	return n
}

func (n names) category(r *Report, key, name string) int16 {
	number, ok := n.categories[name]
	if !ok {
		r.Add(0, key, "the plan has no category %.80q; it has %s", name, listed(n.categories))
	}
	return number
}

func (n names) tiers(r *Report, tiers []Tier) []ledger.Tier {
	out := make([]ledger.Tier, len(tiers))
	for i, t := range tiers {
		out[i] = ledger.Tier{
			Category: n.category(r, fmt.Sprintf("tiers[%d].category", i), t.Category),
			Name:     t.Name, Face: t.Face, Fee: t.Fee, TaxBP: t.TaxBP,
		}
	}
	return out
}

func (n names) limits(r *Report, limits Limits) []ledger.Limit {
	var out []ledger.Limit
	add := func(scope ledger.LimitScope, category int16, max int) {
		if max > 0 {
			out = append(out, ledger.Limit{Scope: scope, Category: category, Max: max})
		}
	}
	add(ledger.PerEvent, 0, limits.Event)
	for _, c := range limits.Categories {
		add(ledger.PerCategory, n.category(r, "limits.categories."+c.Category, c.Category), c.Max)
	}
	add(ledger.PerShow, 0, limits.Show)
	add(ledger.PerDocument, 0, limits.Document)
	return out
}

func (n names) quotas(r *Report, quotas []Quota) []ledger.Quota {
	var out []ledger.Quota
	for i, q := range quotas {
		l := ledger.Quota{Category: -1, Section: -1, Max: q.Max}
		if q.Category != "" {
			l.Category = n.category(r, fmt.Sprintf("quotas[%d].category", i), q.Category)
		}
		if q.Section != "" {
			number, ok := n.sections[q.Section]
			if !ok {
				r.Add(0, fmt.Sprintf("quotas[%d].section", i), "the plan has no section %.80q; it has %s", q.Section, listed(n.sections))
			}
			l.Section = number
		}
		for _, s := range q.Steps {
			l.Steps = append(l.Steps, ledger.QuotaStep{At: ledger.TimeOf(s.At), Max: s.Max})
		}
		out = append(out, l)
	}
	return out
}

// LedgerLayout is what the ledger must know of a plan, whose hash the caller knows already.
func LedgerLayout(plan *venue.Plan, hash string) (*ledger.Layout, error) {
	if len(plan.Sections) > math.MaxInt16 || len(plan.Categories) > math.MaxInt16 {
		return nil, fmt.Errorf("plan %s has too many sections or categories", hash)
	}
	from := plan.Layout()
	l := &ledger.Layout{
		PlanHash: hash,
		Section:  make([]int16, from.SeatCount),
		Category: make([]int16, from.SeatCount),
		Run:      make([]int32, from.SeatCount),
		Quality:  from.Quality,
		Areas:    make([]ledger.AreaLayout, len(plan.Areas)),
	}
	for i := range plan.Seats {
		l.Section[i] = int16(from.SectionOf(int32(i)))
		l.Category[i] = plan.Seats[i].Category
	}
	for number, run := range from.Runs {
		for seat := run.First; seat < run.End; seat++ {
			l.Run[seat] = int32(number)
		}
	}
	for i, a := range plan.Areas {
		l.Areas[i] = ledger.AreaLayout{Section: int16(a.Section), Category: a.Category, Capacity: a.Capacity}
	}
	return l, nil
}
