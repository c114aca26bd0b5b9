package waitingroom

import (
	"math"
	"time"

	"onsale/internal/ledger"
)

// What somebody who waits can hope for (C11): how many of those before them will buy is binomial, and there is hope as long as
// what they buy leaves something. Because fewer before is never worse, one position in each lane says it for all: whoever stands
// before it is likely to get something.

const (
	likely   = 0.90
	possible = 0.20

	outcomesKnown   = 200  // outcomes from which on what was measured counts alone
	showPrior       = 0.70 // of those called, who come
	conversionPrior = 0.70 // of those who came, who buy
	perBuyerPrior   = 2.5  // seats that a buyer takes
	outlookFar      = 1 << 24
)

// An outlook is computed with each status.
type outlook struct {
	known   bool
	soldOut bool

	show, conversion, perBuyer float64
	available, held            int
	likely, possible           []int64 // by lane: positions before it

	polls     []pollStep
	pollEarly time.Duration // while nobody knows their position
}

// A pollStep says how often to ask from a distance (in people who go before) on.
type pollStep struct {
	distance int64
	seconds  int64
}

// blend is a measured share, leaning on a prior until enough is known.
func blend(prior float64, hits, of int64) float64 {
	of = max(of, 0)
	weight := float64(max(0, outcomesKnown-of))
	return (prior*weight + float64(hits)) / (weight + float64(of))
}

// outlookOf looks at a room. p.room and figures need not be of the same instant.
func outlookOf(p *picture, figures *ledger.RoomFigures, left Left, known bool, now ledger.Time, aheadRate float64) outlook {
	room := &p.room
	o := outlook{known: known, soldOut: known && left.Gone, available: left.Available, held: left.Held}
	o.polls, o.pollEarly = pollTable(p, now, aheadRate)
	o.show = min(max(blend(showPrior, room.Shown, room.Decided), 0.2), 1)
	o.conversion, o.perBuyer = conversionPrior, perBuyerPrior
	holdsKept := conversionPrior
	undecided := 0.0
	if figures != nil {
		o.conversion = blend(conversionPrior, figures.Paid, figures.Entered-int64(figures.Inside))
		holdsKept = blend(conversionPrior, figures.HoldsSold, figures.HoldsEnded)
		if figures.HoldsSold > 0 {
			weight := float64(max(0, outcomesKnown-figures.HoldsSold))
			o.perBuyer = (perBuyerPrior*weight + float64(figures.PlacesSold)) / (weight + float64(figures.HoldsSold))
		}
		undecided = float64(max(0, figures.Inside-figures.Holding)) / o.show
	}
	if !known {
		return o
	}
	seats := float64(left.Available) + float64(left.Held)*(1-holdsKept)
	buyers := int64(seats / max(o.perBuyer, 1))
	q := o.show * o.conversion
	likelyBefore := float64(mostBefore(buyers, q, likely)) - undecided
	possibleBefore := float64(mostBefore(buyers, q, possible)) - undecided
	if left.Available == 0 {
		likelyBefore = min(likelyBefore, 0) // all held is unlikely, until something has come back
	}
	for i := range room.Lanes {
		o.likely = append(o.likely, room.Lanes[i].Watermark+reach(p, i, likelyBefore))
		o.possible = append(o.possible, room.Lanes[i].Watermark+reach(p, i, possibleBefore))
	}
	return o
}

// of is the outlook of a position.
func (o *outlook) of(lane int, position int64) Outlook {
	switch {
	case o.soldOut:
		return OutlookSoldOut
	case !o.known || lane >= len(o.likely):
		return OutlookUnknown
	case position < o.likely[lane]:
		return OutlookLikely
	case position < o.possible[lane]:
		return OutlookPossible
	}
	return OutlookUnlikely
}

// mostBefore is the greatest n for which Binomial(n, q) ≤ k has at least this probability.
func mostBefore(k int64, q, level float64) int64 {
	if k < 0 || q <= 0 {
		return 0
	}
	low, high := int64(0), int64(outlookFar) // binomialTail(low) ≥ level
	for low < high {
		mid := (low + high + 1) / 2
		if binomialTail(mid, q, k) >= level {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// binomialTail is the probability of at most k hits in n tries of probability q: summed where it is narrow, else by the normal
// distribution, which is then right to less than a hundredth.
func binomialTail(n int64, q float64, k int64) float64 {
	mean, variance := float64(n)*q, float64(n)*q*(1-q)
	switch {
	case k >= n:
		return 1
	case variance > 400:
		return 0.5 * math.Erfc(-(float64(k)+0.5-mean)/math.Sqrt(2*variance))
	}
	term := math.Exp(logChoose(n, k) + float64(k)*math.Log(q) + float64(n-k)*math.Log1p(-q))
	sum, odds := term, (1-q)/q
	for j := k; j > 0; j-- {
		term *= float64(j) / float64(n-j+1) * odds
		sum += term
		if float64(j) < mean && term < 1e-12*sum {
			break
		}
	}
	return min(sum, 1)
}

func logChoose(n, k int64) float64 {
	a, _ := math.Lgamma(float64(n) + 1)
	b, _ := math.Lgamma(float64(k) + 1)
	c, _ := math.Lgamma(float64(n-k) + 1)
	return a - b - c
}

// reach is how far behind its watermark a lane comes when so many people of all lanes are called: the lanes move together, by
// weight, as long as they have people.
func reach(p *picture, lane int, people float64) int64 {
	if people <= 0 {
		return 0
	}
	low, high := int64(0), int64(people)+1 // before(low) ≤ people
	for low < high {
		mid := (low + high + 1) / 2
		if before(p, lane, mid) <= people {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low + 1 // the position behind so many has them before it
}

// before is how many people of all lanes are called while one lane moves by distance.
func before(p *picture, lane int, distance int64) float64 {
	sum := float64(distance)
	own := weightOf(p, lane)
	for i := range p.room.Lanes {
		if i != lane {
			rest := float64(p.room.Lanes[i].Joined - p.room.Lanes[i].Watermark)
			sum += min(max(rest, 0), float64(distance)*weightOf(p, i)/own)
		}
	}
	return sum
}

func weightOf(p *picture, lane int) float64 {
	for _, l := range p.rule.Room.Lanes {
		if l.Key == p.room.Lanes[lane].Key {
			return float64(max(l.Weight, 1))
		}
	}
	return 1
}

// pollTable says how often to ask (C13): often when the turn is near, and never so seldom that most of the turn would pass
// unnoticed.
func pollTable(p *picture, now ledger.Time, aheadRate float64) (steps []pollStep, early time.Duration) {
	most := min(max(int64(p.rule.Room.TurnFor().Std()/time.Second)/4, 1), 60)
	rate := max(aheadRate, 1)
	for _, s := range []struct {
		until   float64 // seconds until the turn, as things go
		seconds int64
	}{{0, 2}, {30, 5}, {120, 15}, {600, 30}, {1800, 60}} {
		steps = append(steps, pollStep{int64(s.until * rate), min(s.seconds, most)})
	}
	left := ledger.Duration(p.rule.SaleOpens - now).Std()
	switch {
	case left > time.Hour:
		early = time.Minute
	case left > 10*time.Minute:
		early = 30 * time.Second
	case left > time.Minute:
		early = 15 * time.Second
	default:
		early = 5 * time.Second
	}
	return steps, early
}

// poll is when somebody at a distance asks again.
func (o *outlook) poll(distance int64) time.Duration {
	seconds := int64(2)
	for _, s := range o.polls {
		if distance >= s.distance {
			seconds = s.seconds
		}
	}
	return time.Duration(seconds) * time.Second
}
