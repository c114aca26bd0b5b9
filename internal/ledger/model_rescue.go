package ledger

import (
	"cmp"
	"slices"
)

// rescue makes a new claim for an order whose hold is gone but whose money has come (A17): on the same places, or on
// seats as good, if the customer allowed it. The new claim obeys the same quotas and limits as any. nil: none is possible.
func (m *Model) rescue(c Confirm, o *Order, lost *Hold) *Hold {
	if c.RescueHold == 0 || o.Exchange != 0 { // an exchange is not rescued: the old tickets are still there
		return nil
	}
	e := m.events[lost.Event]
	claim := &Hold{
		ID: c.RescueHold, Event: lost.Event, Customer: lost.Customer, State: HoldSold, Area: lost.Area,
		Lines: slices.Clone(lost.Lines), Currency: lost.Currency, Created: m.now, Expires: m.now,
		Window: true, Order: o.ID, Session: lost.Session,
	}
	if lost.Area >= 0 {
		if !m.areaServes(e, lost.Area, len(lost.Lines), true) || m.overBounds(e, o.Customer, e.placesOf(claim), nil) != nil {
			return nil
		}
		m.takePlaces(e, lost.Area, len(lost.Lines))
		m.holds[claim.ID] = claim
		m.step(claim, "", "sold", "rescue", claim.Lines)
		return claim
	}
	if !m.allFree(e, lost) || m.overBounds(e, o.Customer, e.placesOf(claim), nil) != nil {
		seats := m.seatsAsGood(e, lost)
		if !o.AllowOther || seats == nil {
			return nil
		}
		for i := range claim.Lines {
			claim.Lines[i].Seat = seats[i]
		}
		if m.overBounds(e, o.Customer, e.placesOf(claim), nil) != nil {
			return nil
		}
	}
	m.claimSeats(e, claim, Sold)
	m.holds[claim.ID] = claim
	m.step(claim, "", "sold", "rescue", claim.Lines)
	return claim
}

// allFree says whether nobody has the seats of a lost hold, after ending those of its takers whose time is up.
func (m *Model) allFree(e *modelEvent, lost *Hold) bool {
	for _, line := range lost.Lines {
		m.expireHolderOf(e, line.Seat)
	}
	for _, line := range lost.Lines {
		if s := e.seats[line.Seat].state; s != Available && s != Returned {
			return false
		}
	}
	return true
}

// seatsAsGood finds seats of the same category, each no worse than the lost one of the same rank, ascending by index;
// together where the lost ones were together. nil: there are none.
func (m *Model) seatsAsGood(e *modelEvent, lost *Hold) []int32 {
	quality := func(seat int32) int32 { return e.layout.Quality[seat] }
	var wanted []int32 // the qualities lost, best first
	for _, line := range lost.Lines {
		if line.Category != lost.Lines[0].Category {
			return nil
		}
		wanted = append(wanted, quality(line.Seat))
	}
	slices.Sort(wanted)
	n := len(wanted)

	var candidates []int32
	for i := range e.seats {
		seat := int32(i)
		if e.seats[seat].state == Available && e.layout.Category[seat] == lost.Lines[0].Category && quality(seat) <= wanted[n-1] {
			candidates = append(candidates, seat)
		}
	}
	slices.SortFunc(candidates, func(a, b int32) int {
		return cmp.Or(cmp.Compare(quality(a), quality(b)), cmp.Compare(a, b))
	})
	candidates = candidates[:min(len(candidates), CandidatesMax)]

	// offers are the choices to compare: with the lost seats together every run of n, else the n best.
	var offers [][]int32
	if e.neighbours(lost.Seats()) {
		slices.Sort(candidates)
		for i := 0; i+n <= len(candidates); i++ {
			if run := candidates[i : i+n]; e.neighbours(run) {
				offers = append(offers, run)
			}
		}
	} else if n <= len(candidates) {
		offers = append(offers, candidates[:n])
	}
	var best []int32
	bestSum := 0
	for _, offer := range offers {
		var have []int32
		sum := 0
		for _, seat := range offer {
			have = append(have, quality(seat))
			sum += int(quality(seat))
		}
		slices.Sort(have)
		asGood := true
		for i := range have {
			asGood = asGood && have[i] <= wanted[i]
		}
		if asGood && (best == nil || sum < bestSum) {
			best, bestSum = slices.Sorted(slices.Values(offer)), sum
		}
	}
	return best
}

// neighbours says whether ascending seats are side by side.
func (e *modelEvent) neighbours(seats []int32) bool {
	for i := 1; i < len(seats); i++ {
		if seats[i] != seats[i-1]+1 || e.layout.Run[seats[i]] != e.layout.Run[seats[i-1]] {
			return false
		}
	}
	return true
}
