package decide

import (
	"cmp"
	"fmt"
	"unicode/utf8"

	"onsale/internal/ledger"
)

// Bounds of an event's figures, so that no sum of prices can overflow.
const (
	priceMax = 1_000_000_000_000
	taxBPMax = 10_000
)

// Validate refuses an event (and layout, where it comes along) that no ledger should keep.
func Validate(e *ledger.Event, layout *ledger.Layout) error {
	switch {
	case e.ID <= 0:
		return invalid("id", "an event has an id")
	case e.Version <= 0:
		return invalid("version", "versions start at 1")
	case e.State > ledger.Stopped:
		return invalid("state", "there is no state %d", e.State)
	case e.PlanHash == "" || len(e.PlanHash) > ledger.TextBytesMax || !utf8.ValidString(e.PlanHash):
		return invalid("plan_hash", "an event names its plan")
	case e.SaleCloses <= e.SaleOpens:
		return invalid("sale_closes", "the sale must close after it opens")
	case e.HoldTTL <= 0:
		return invalid("hold_ttl_ms", "a hold lasts longer than 0")
	case e.PaymentWindow < 0:
		return invalid("payment_window_ms", "not below 0")
	case e.ExtendMax < 0:
		return invalid("extend_max", "not below 0")
	case e.SeatsPerHoldMax < 1 || e.SeatsPerHoldMax > ledger.SeatsPerHoldCap:
		return invalid("seats_per_hold_max", "1 to %d", ledger.SeatsPerHoldCap)
	case len(e.Currency) != 3:
		return invalid("currency", "three letters of ISO 4217")
	case e.Returns > ledger.ReturnsWaitlist:
		return invalid("returns", "there is no mode %d", e.Returns)
	}
	if err := validateTerms(e); err != nil {
		return err
	}
	return validateLayout(e, layout)
}

func validateTerms(e *ledger.Event) error {
	tiers := map[int16]bool{}
	for i, t := range e.Tiers {
		switch {
		case t.Category < 0 || tiers[t.Category]:
			return invalid(fmt.Sprintf("tiers[%d].category", i), "each category has one tier")
		case t.Face < 0 || t.Face > priceMax || t.Fee < 0 || t.Fee > priceMax:
			return invalid(fmt.Sprintf("tiers[%d].face", i), "prices are 0 to %d minor units", int64(priceMax))
		case t.TaxBP < 0 || t.TaxBP > taxBPMax:
			return invalid(fmt.Sprintf("tiers[%d].tax_bp", i), "0 to %d basis points", taxBPMax)
		}
		tiers[t.Category] = true
	}
	limits := map[[2]int]bool{}
	for i, l := range e.Limits {
		k := [2]int{int(l.Scope), 0}
		if l.Scope == ledger.PerCategory {
			k[1] = int(l.Category)
		}
		if l.Scope < ledger.PerEvent || l.Scope > ledger.PerDocument || l.Max < 0 || limits[k] {
			return invalid(fmt.Sprintf("limits[%d]", i), "each limit once, with a maximum of at least 0")
		}
		if l.Scope == ledger.PerShow && e.Show == 0 {
			return invalid(fmt.Sprintf("limits[%d]", i), "a limit by show needs the event's show")
		}
		limits[k] = true
	}
	quotas := map[[2]int16]bool{}
	for i, q := range e.Quotas {
		k := [2]int16{q.Category, q.Section}
		if q.Category < -1 || q.Section < -1 || q.Max < 0 || quotas[k] {
			return invalid(fmt.Sprintf("quotas[%d]", i), "each quota once, with a maximum of at least 0")
		}
		for j, s := range q.Steps {
			if s.Max < 0 || (j > 0 && s.At < q.Steps[j-1].At) {
				return invalid(fmt.Sprintf("quotas[%d].steps[%d]", i, j), "steps go forward in time")
			}
		}
		quotas[k] = true
	}
	return validateRules(e)
}

// validateRules refuses rules of refunds, exchanges and transfers that cannot be.
func validateRules(e *ledger.Event) error {
	switch {
	case e.Refunds.Until < 0 || e.Refunds.FeeBP < 0 || e.Refunds.FeeBP > taxBPMax || e.Refunds.FeePlace < 0 || e.Refunds.FeePlace > priceMax:
		return invalid("refunds", "a time, 0 to %d basis points, and 0 to %d minor units", taxBPMax, int64(priceMax))
	case e.Exchanges.Until < 0 || e.Exchanges.Fee < 0 || e.Exchanges.Fee > priceMax:
		return invalid("exchanges", "a time, and 0 to %d minor units", int64(priceMax))
	case e.Transfers.Until < 0:
		return invalid("transfers", "a time")
	}
	if field := cmp.Or(e.Room.Problem(), e.Holding.Problem()); field != "" {
		return invalid(field, "outside its bounds")
	}
	return nil
}

func validateLayout(e *ledger.Event, layout *ledger.Layout) error {
	if layout == nil {
		return nil
	}
	n := len(layout.Category)
	if layout.PlanHash != e.PlanHash || len(layout.Section) != n || len(layout.Run) != n || len(layout.Quality) != n {
		return invalid("layout", "it must be of the event's plan and say as much of each seat")
	}
	for i := range n {
		if layout.Category[i] < 0 || layout.Section[i] < 0 {
			return invalid("layout", "seat %d has no category or section", i)
		}
	}
	for i, a := range layout.Areas {
		if a.Capacity < 0 || a.Category < 0 || a.Section < 0 {
			return invalid("layout", "area %d has no category or section", i)
		}
	}
	return nil
}

// bucketsMax is in how many buckets an area's places lie at most.
const bucketsMax = 8

// BucketCapacities are the capacities of the buckets that an area is made with: fewer where a bucket would have less
// than mergeBelow places.
func BucketCapacities(capacity int) []int32 {
	n := min(bucketsMax, max(1, capacity/mergeBelow))
	buckets := make([]int32, n)
	for i := range buckets {
		buckets[i] = int32(capacity / n)
		if i < capacity%n {
			buckets[i]++
		}
	}
	return buckets
}
