package waitingroom

import (
	"context"
	"math/bits"
	"sync"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A holdMeter measures one event's holds on this node over the last seconds, for the automatic rate.
type holdMeter struct {
	mu      sync.Mutex
	seconds [meterSeconds]meterSecond
}

// meterSeconds is over how many whole and begun seconds is measured.
const meterSeconds = 3

type meterSecond struct {
	second int64 // Unix
	counts [meterBuckets]int32
	holds  int
	shed   int
}

// Buckets are 4 to each doubling, from 1 ms on: a quarter is exact enough to steer by.
const meterBuckets = 64

func bucketOf(took time.Duration) int {
	ms := uint64(max(took.Milliseconds(), 1))
	power := bits.Len64(ms) - 1
	quarter := int((ms << 2 >> power) & 3)
	return min(power*4+quarter, meterBuckets-1)
}

// bucketEnd is the longest time in a bucket.
func bucketEnd(bucket int) ledger.Duration {
	power, quarter := bucket/4, bucket%4
	return ledger.Duration((uint64(5+quarter)<<power - 1) / 4)
}

func (m *holdMeter) observe(now time.Time, took time.Duration, shed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.seconds[now.Unix()%meterSeconds]
	if s.second != now.Unix() {
		*s = meterSecond{second: now.Unix()}
	}
	if shed {
		s.shed++
		return
	}
	s.holds++
	s.counts[bucketOf(took)]++
}

// report sums the last seconds up.
func (m *holdMeter) report(node int, now time.Time) ledger.RoomReport {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := ledger.RoomReport{Node: node}
	var counts [meterBuckets]int
	for i := range m.seconds {
		s := &m.seconds[i]
		if s.second > now.Unix() || s.second <= now.Unix()-meterSeconds {
			continue
		}
		r.Holds += s.holds
		r.Shed += s.shed
		for b, n := range s.counts {
			counts[b] += int(n)
		}
	}
	left := r.Holds - r.Holds/100 // those up to the 99th percentile
	for b, n := range counts {
		if left -= n; left <= 0 && r.Holds > 0 {
			r.P99 = bucketEnd(b)
			break
		}
	}
	return r
}

// ObserveHold is told of every hold request of this node: how long it took, and whether it was refused as busy. The automatic
// rate follows it.
func (s *Service) ObserveHold(event id.ID, took time.Duration, shed bool) {
	if h := s.halls.get(event); h != nil {
		h.holds.observe(s.o.Now(), took, shed)
	}
}

// callsMax bounds the steps that one look reads: ten a second for as long as they are public.
const callsMax = 10 * int(ledger.RoomCallsPublic/1000)

// Calls are the last 15 minutes of calling, by lane (C8), at most a second old.
func (s *Service) Calls(ctx context.Context, event id.ID) (map[string][]CallPoint, error) {
	h, err := s.hall(ctx, event)
	if err != nil {
		return nil, err
	}
	p := h.picture.Load()
	if p.rule.Room.Mode == ledger.RoomOff {
		return nil, errNoRoom
	}
	return s.calls.Load(ctx, event, func(ctx context.Context) (map[string][]CallPoint, error) {
		points := map[string][]CallPoint{}
		since := s.shardNow() - ledger.Time(ledger.RoomCallsPublic)
		for i := range p.room.Lanes {
			key := p.room.Lanes[i].Key
			calls, err := s.o.Reader.Calls(ctx, event, key, since, callsMax)
			if err != nil {
				return nil, s.away("read the calls", err)
			}
			points[key] = pointsOf(calls)
		}
		return points, nil
	})
}

// pointsOf merges steps by second.
func pointsOf(calls []ledger.Call) []CallPoint {
	points := []CallPoint{}
	for _, c := range calls {
		at := int64(c.At) / 1000
		if last := len(points) - 1; last >= 0 && points[last].At == at {
			points[last].Watermark = c.Watermark
		} else {
			points = append(points, CallPoint{At: at, Watermark: c.Watermark})
		}
	}
	return points
}
