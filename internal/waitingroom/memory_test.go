package waitingroom_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"onsale/internal/id"
	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/waitingroomtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemoryStore(t *testing.T) {
	waitingroomtest.ExerciseStore(t, func(*testing.T) waitingroom.Store { return waitingroom.NewMemory() })
}

// A long history of joins and ends against a plain map.
func TestMemoryStoreAgainstMap(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	s := waitingroom.NewMemory()
	state := waitingroom.State{Phase: waitingroom.Waiting, Lanes: []waitingroom.LaneState{{Limit: 1 << 30}}}
	if err := s.Restore(t.Context(), 1, state); err != nil {
		t.Fatal(err)
	}
	numbers, papers := map[id.ID]int64{}, map[waitingroom.Identity]id.ID{}
	next := int64(0)
	for range 200_000 {
		customer := id.ID(1 + random.Int64N(5_000))
		number, in := numbers[customer]
		if random.IntN(3) == 0 {
			if err := s.Leave(t.Context(), 1, customer, number); err != nil {
				t.Fatal(err)
			}
			delete(numbers, customer)
			continue
		}
		var identity waitingroom.Identity
		binary.LittleEndian.PutUint64(identity[:], uint64(random.IntN(4_000)))
		owner := papers[identity]
		_, ownerIn := numbers[owner]
		got, err := s.Join(t.Context(), waitingroom.Join{Event: 1, Customer: customer, Identity: identity})
		switch {
		case in:
			if err != nil || got.New || got.Number != number {
				t.Fatalf("%+v, %v; want number %d", got, err, number)
			}
		case identity != (waitingroom.Identity{}) && ownerIn && owner != customer:
			if err != waitingroom.ErrIdentityTaken {
				t.Fatalf("%+v, %v", got, err)
			}
		default:
			if err != nil || !got.New || got.Number != next {
				t.Fatalf("%+v, %v; want number %d", got, err, next)
			}
			numbers[customer] = next
			next++
			if identity != (waitingroom.Identity{}) {
				papers[identity] = customer
			}
		}
	}
}

// BenchmarkBytesPerFan is what one person costs of heap in the in-process store, an identity included, at several counts: the
// worst is just after tables have grown.
func BenchmarkBytesPerFan(b *testing.B) {
	for _, fans := range []int{10_000, 100_000, 2_000_000} {
		b.Run(fmt.Sprint(fans), func(b *testing.B) {
			worst := 0.0
			for b.Loop() {
				before := heap()
				s := waitingroom.NewMemory()
				state := waitingroom.State{Phase: waitingroom.Waiting, Lanes: []waitingroom.LaneState{{Limit: 1 << 30}}}
				if err := s.Restore(b.Context(), 1, state); err != nil {
					b.Fatal(err)
				}
				for n := range fans {
					var identity waitingroom.Identity
					binary.LittleEndian.PutUint64(identity[:], rand.Uint64())
					if _, err := s.Join(b.Context(), waitingroom.Join{Event: 1, Customer: id.ID(n + 1), Identity: identity}); err != nil {
						b.Fatal(err)
					}
					if n+1 >= fans*8/10 && (n+1)%(fans/20) == 0 {
						worst = max(worst, float64(heap()-before)/float64(n+1))
					}
				}
				runtime.KeepAlive(s)
			}
			b.ReportMetric(worst, "bytes/fan")
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
