package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A fakeServer answers holds the slower the nearer they come to what it can bear, and queues what is above. Whoever enters asks
// for a hold in each of the next seconds.
type fakeServer struct {
	capacity float64 // holds a second
	queue    float64
	entered  [holdsEach]float64 // in the last seconds
	random   *rand.Rand         // what is measured is not exact
}

const (
	holdsEach = 3
	idleP99   = 15.0 // ms, of a server that has nothing else to do
)

// bestRate is the greatest R, if it is fixed, with which holds are answered in time.
func (s *fakeServer) bestRate() float64 {
	return s.capacity * (1 - idleP99/float64(holdSlow)) / holdsEach
}

// second lets so many people in and reports what their holds, and those of the people before, meet.
func (s *fakeServer) second(rate int) RoomReport {
	copy(s.entered[1:], s.entered[:])
	s.entered[0] = float64(rate)
	holds := 0.0
	for _, n := range s.entered {
		holds += n
	}
	s.queue = max(0, s.queue+holds-s.capacity)
	shed := max(0, s.queue-s.capacity) // what would wait for more than a second is refused
	s.queue -= shed
	busy := min(holds/s.capacity, 0.99)
	p99 := idleP99/(1-busy) + 1000*s.queue/s.capacity
	return RoomReport{Holds: int(holds), Shed: int(shed), P99: Duration(p99 * (0.85 + 0.3*s.random.Float64()))}
}

// RateAuto keeps R near what is best for the server, also when that changes, and holds mostly quick.
func TestRateFollowsTheServer(t *testing.T) {
	for _, most := range []int{4_000, 20_000} {
		for _, capacity := range []float64{300, 3_000, 12_000} {
			t.Run(fmt.Sprintf("at most %d, %v holds a second", most, capacity), func(t *testing.T) {
				e := &Event{Room: RoomRule{Mode: RoomOn, Rate: most, RateAuto: true, RateMin: 5, ActiveMax: RoomActiveMax}}
				r := NewRoom(e)
				s := &fakeServer{capacity: capacity, random: rand.New(rand.NewPCG(3, 4))}
				now := Time(0)
				run := func(seconds int) (average, quick float64) {
					for range seconds {
						now += 1000
						report := s.second(r.Rate)
						if report.P99 < holdSlow && report.Shed == 0 {
							quick++
						}
						average += float64(r.Rate)
						r.Before = r.Rate // everybody waits to enter
						r.Report(report, now)
						r.rate(&e.Room, now)
					}
					return average / float64(seconds), quick / float64(seconds)
				}
				check := func(when string) {
					t.Helper()
					run(60) // to get there
					average, quick := run(300)
					best := min(s.bestRate(), float64(most))
					t.Logf("%s: R is %.0f on average, the best is %.0f; %.0f %% of the seconds are quick", when, average, best, 100*quick)
					if average < 0.8*best || average > 1.2*best {
						t.Errorf("%s: R is %.0f on average, the best is %.0f", when, average, best)
					}
					if quick < 0.9 {
						t.Errorf("%s: holds are quick in %.0f %% of the seconds only", when, 100*quick)
					}
				}
				check("at first")
				s.capacity /= 2
				check("at half the capacity")
				s.capacity *= 2
				check("at the whole capacity again")
			})
		}
	}
}

func TestRateStaysWithinItsBounds(t *testing.T) {
	rule := &RoomRule{Rate: 100, RateAuto: true, RateMin: 20}
	slow, quick := []RoomReport{{P99: 1000, Holds: 1}}, []RoomReport{{P99: 1, Holds: 1}}
	rate := 60
	for range 50 {
		rate = NextRate(rule, rate, rate, slow)
	}
	if rate != 20 {
		t.Errorf("R fell to %d, at least 20", rate)
	}
	for range 50 {
		rate = NextRate(rule, rate, rate, quick)
	}
	if rate != 100 {
		t.Errorf("R rose to %d, at most 100", rate)
	}
	for name, reports := range map[string][]RoomReport{"nobody reports": nil, "no holds": {{P99: 1}}, "neither slow nor quick": {{P99: 90, Holds: 5}}} {
		if got := NextRate(rule, 50, 50, reports); got != 50 {
			t.Errorf("%s: R is %d", name, got)
		}
	}
	if got := NextRate(rule, 50, 10, quick); got != 50 {
		t.Errorf("an R that is not used rose to %d", got)
	}
	if got := NextRate(rule, 50, 50, append(quick, slow...)); got >= 50 {
		t.Errorf("one node is slow, and R is %d", got)
	}
	if got := NextRate(&RoomRule{Rate: 7}, 50, 50, slow); got != 7 {
		t.Errorf("a fixed R is %d", got)
	}
}
