package ledger

import (
	"sync"

	"onsale/internal/cache"
	"onsale/internal/draw"
)

// ordersMax is how many lanes' drawn orders are kept: 100 KB each for two million numbers.
const ordersMax = 64

// orders keeps the tables of drawn orders. They are pure functions of what was published, so that it does not matter who
// shares them.
var orders = struct {
	sync.Mutex
	kept cache.Generations[orderKey, *draw.Order]
}{kept: cache.Generations[orderKey, *draw.Order]{Most: ordersMax}}

type orderKey struct {
	k, value, list, lane string
	total, n             int64
}

// Position is the place of a number in the order of its lane: what the draw says of those below N, else the number itself. ok is
// false where there is no such lane, or the draw is not made yet.
func (r *Room) Position(lane string, number int64) (position int64, ok bool) {
	at := r.lane(lane)
	if at < 0 || r.Phase != RoomOpen {
		return 0, false
	}
	n := r.Lanes[at].N
	if r.Arrival || number < 0 || number >= n {
		return number, true
	}
	var total int64
	for i := range r.Lanes {
		total += r.Lanes[i].N
	}
	key := orderKey{r.K, r.Value, r.ListHash, lane, total, n}
	orders.Lock()
	defer orders.Unlock()
	o, kept := orders.kept.Get(key)
	if !kept {
		k, _ := parseHash(r.K)
		list, _ := parseHash(r.ListHash)
		o = draw.NewOrder(draw.LaneKey(draw.Seed(k, r.Value, total, list), lane), n)
		orders.kept.Put(key, o)
	}
	return o.Position(number), true
}
