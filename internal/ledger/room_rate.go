package ledger

// How R follows what the nodes report, where the rule says so: a little more each second while holds are answered quickly and R
// is used, much less at once when they are not. Holds are to be answered within holdSlow at the 99th percentile.

const (
	holdSlow = Duration(100) // from here on R falls
	holdStop = Duration(200) // from here on it falls faster
	holdEasy = Duration(70)  // below it R grows a little; between this and holdSlow it stays
	holdIdle = Duration(40)  // below it R grows faster
)

// NextRate is R for the next second, from the R in force, how many entered in the last second, and what the nodes reported since R
// last fell. The node with the slowest holds decides.
func NextRate(rule *RoomRule, rate, entered int, reports []RoomReport) int {
	var slowest Duration
	holds, shed := 0, 0
	for _, r := range reports {
		holds += r.Holds
		shed += r.Shed
		if r.Holds > 0 {
			slowest = max(slowest, r.P99)
		}
	}
	switch {
	case shed > 0 || slowest >= holdStop:
		rate -= max(1, rate*3/10)
	case slowest >= holdSlow:
		rate -= max(1, rate/10)
	case holds == 0 || entered*10 < rate*8: // an R that is not used says nothing about more
	case slowest < holdIdle:
		rate += max(1, rate/10)
	case slowest < holdEasy:
		rate += max(1, rate/40)
	}
	return rule.RateNow(max(rate, 1))
}

// rate moves R, once a second.
func (r *Room) rate(rule *RoomRule, now Time) {
	if !rule.RateAuto {
		return
	}
	var fresh []RoomReport
	for _, report := range r.Reports {
		if now-report.At <= Time(RoomReportMax) {
			fresh = append(fresh, report)
		}
	}
	r.Reports = fresh
	next := NextRate(rule, r.Rate, r.Before, fresh)
	if next < r.Rate {
		r.Reports = nil // what was seen before it fell does not make it fall again
	}
	r.Rate = next
}
