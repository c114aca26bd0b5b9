package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/waitingroom"
)

// Joins are the durable log of who has which number. It lies outside the shard, and is read after the snapshot was taken: so
// it has the join of everybody who came in, and perhaps later ones.
type Joins interface {
	// Replay is that of waitingroom.Log.
	Replay(ctx context.Context, event id.ID, sorted bool, each func(waitingroom.Record) error) error
}

// A joinList is what the log says of a lane.
type joinList struct {
	owner []id.ID // by number
	left  []bool
}

// grow makes room for a number.
func (l *joinList) grow(number int64) {
	for int64(len(l.owner)) <= number {
		l.owner = append(l.owner, 0)
		l.left = append(l.left, false)
	}
}

// joins compares the log with who came in, with the high-water marks and with what was published.
func (h *hall) joins() error {
	f := h.foyer
	if h.a.opts.Joins == nil || f.says == nil {
		return nil
	}
	lists := make([]joinList, len(f.says.lanes))
	late := ledger.Time(h.a.began) - ledger.Time(clocksApart)
	err := h.a.opts.Joins.Replay(h.a.snap.ctx, h.id, false, func(r waitingroom.Record) error {
		h.a.saw(CheckRoom, 1)
		if r.Lane < 0 || r.Lane >= len(lists) {
			h.bad(CheckRoom, "number "+strconv.FormatInt(r.Number, 10), "it is of lane %d, which there is not", r.Lane)
			return nil
		}
		h.join(&f.says.lanes[r.Lane], &lists[r.Lane], &r, ledger.Time(r.At) < late)
		return nil
	})
	if err != nil {
		return fmt.Errorf("the log of joins: %w", err)
	}
	h.oneNumberEach(lists)
	for i := range f.says.lanes {
		h.joinsOfEntries(&f.says.lanes[i], &lists[i])
	}
	if f.says.listHash == "" {
		return nil
	}
	return h.listOfJoins(lists)
}

// join takes one record.
func (h *hall) join(lane *laneSays, l *joinList, r *waitingroom.Record, before bool) {
	name := fmt.Sprintf("number %d of %s", r.Number, laneText(lane.key))
	if r.Number < 0 || r.Number >= lane.highWater {
		if before || r.Number < 0 {
			h.bad(CheckI10, name, "it was given out, and the mark stands at %d", lane.highWater)
		}
		return
	}
	l.grow(r.Number)
	owner := &l.owner[r.Number]
	switch {
	case r.Left && *owner == r.Customer:
		l.left[r.Number] = true
		return
	case *owner != 0 && *owner != r.Customer:
		h.bad(CheckI10, name, "%s and %s both have it", owner.Text(id.Customer), r.Customer.Text(id.Customer))
	case *owner == 0 && r.Left:
		h.bad(CheckRoom, name, "it was given back and never given out")
	}
	*owner = r.Customer
	if lane.n > 0 && r.Drawn != (r.Number < lane.n) {
		h.bad(CheckDraw, name, "its ticket says drawn %v, and %d numbers were drawn", r.Drawn, lane.n)
	}
}

// oneNumberEach finds customers with two numbers at once.
func (h *hall) oneNumberEach(lists []joinList) {
	var customers []id.ID
	for i := range lists {
		for number, owner := range lists[i].owner {
			if owner != 0 && !lists[i].left[number] {
				customers = append(customers, owner)
			}
		}
	}
	slices.Sort(customers)
	h.foyer.totals.Joined = int64(len(customers))
	for i := 1; i < len(customers); i++ {
		if customers[i] == customers[i-1] {
			h.bad(CheckI10, customers[i].Text(id.Customer), "it has two numbers at once")
		}
	}
}

// joinsOfEntries checks that everybody who came in did so by their own number.
func (h *hall) joinsOfEntries(lane *laneSays, l *joinList) {
	numbers := h.foyer.lane(lane.key).numbers
	for _, number := range sortedKeys(numbers) {
		s := numbers[number]
		switch {
		case number < 0 || number >= int64(len(l.owner)) || l.owner[number] == 0:
			h.bad(CheckI10, sessionText(s), "number %d of %s came in, and nobody has joined by it", number, laneText(lane.key))
		case l.owner[number] != s.customer:
			h.bad(CheckI10, sessionText(s), "number %d of %s is of another customer", number, laneText(lane.key))
		}
	}
}

// listOfJoins writes the list as it was published, and compares its hash.
func (h *hall) listOfJoins(lists []joinList) error {
	says := h.foyer.says
	sum := sha256.New()
	var line []byte
	err := h.a.opts.Joins.Replay(h.a.snap.ctx, h.id, true, func(r waitingroom.Record) error {
		if r.Lane < 0 || r.Lane >= len(lists) {
			return nil // reported before
		}
		if r.Number >= says.lanes[r.Lane].n {
			h.bad(CheckDraw, fmt.Sprintf("number %d of %s", r.Number, laneText(says.lanes[r.Lane].key)), "it is in the list, and %d were drawn", says.lanes[r.Lane].n)
		}
		line = fmt.Appendf(line[:0], "%s %d %x\n", says.lanes[r.Lane].key, r.Number, r.Entry)
		sum.Write(line)
		return nil
	})
	if err != nil {
		return fmt.Errorf("the list of joins: %w", err)
	}
	h.a.saw(CheckDraw, 1)
	if got := hex.EncodeToString(sum.Sum(nil)); got != says.listHash {
		h.bad(CheckDraw, "room", "the list of joins has the hash %.16s…, %.16s… was published", got, says.listHash)
	}
	return nil
}
