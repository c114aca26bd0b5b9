package ledgertest

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"onsale/internal/draw"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// brokenRoom is what is wrong with an event's waiting room: I10 and I11 from calls, sessions, holds and what was in force.
func (s *stock) brokenRoom(ctx context.Context, l ledger.Ledger, e ledger.Event) error {
	forces, err := l.Forces(ctx, e.ID)
	if err != nil || len(forces) == 0 {
		return err
	}
	h := hall{forces: forces}
	if err := s.brokenHolds(ctx, l, h, e); err != nil {
		return err
	}
	room, err := l.Room(ctx, e.ID)
	if isNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	sessions, err := l.Sessions(ctx, e.ID, 0, math.MaxInt32)
	if err != nil {
		return err
	}
	for _, lane := range room.Lanes {
		calls, err := l.Calls(ctx, e.ID, lane.Key, 0, math.MaxInt32)
		if err != nil {
			return err
		}
		if err := brokenCalls(lane, calls); err != nil {
			return err
		}
		if err := brokenEntries(room, lane, calls, sessions); err != nil {
			return err
		}
	}
	return h.brokenCrowd(room, sessions)
}

// A hall is what was in force in a room.
type hall struct{ forces []ledger.RoomForce }

// at are the rows in force at an instant: several where it was changed in that very millisecond.
func (h hall) at(t ledger.Time) (all []ledger.RoomForce) {
	for i, f := range h.forces {
		if f.At <= t && (i+1 == len(h.forces) || h.forces[i+1].At >= t) {
			all = append(all, f)
		}
	}
	return all
}

// within are the rows in force at any time of a span.
func (h hall) within(from, to ledger.Time) (all []ledger.RoomForce) {
	for i, f := range h.forces {
		if f.At <= to && (i+1 == len(h.forces) || h.forces[i+1].At >= from) {
			all = append(all, f)
		}
	}
	return all
}

// brokenHolds is I11: a hold made while the room was not off has a session of its customer that was live.
func (s *stock) brokenHolds(ctx context.Context, l ledger.Ledger, h hall, e ledger.Event) error {
	for _, hold := range s.holds {
		if hold.Event != e.ID || hold.Offer != 0 {
			continue
		}
		on := h.at(hold.Created)
		needed := len(on) > 0 && !slices.ContainsFunc(on, func(f ledger.RoomForce) bool { return f.Mode == ledger.RoomOff }) &&
			h.forces[0].At < hold.Created
		rescued := hold.Created == hold.Expires // it takes the place of one that had a session
		if hold.Session == 0 {
			if needed && !rescued {
				return fmt.Errorf("I11: hold %d was made without a session", hold.ID)
			}
			continue
		}
		session, err := l.Session(ctx, hold.Session)
		if err != nil {
			return fmt.Errorf("I11: hold %d: %w", hold.ID, err)
		}
		switch {
		case session.Event != e.ID || session.Customer != hold.Customer:
			return fmt.Errorf("I11: hold %d of customer %d was made in session %+v", hold.ID, hold.Customer, session)
		case rescued:
		case hold.Created < session.Entered || hold.Created >= session.Expires || session.Ended != 0 && hold.Created > session.Ended:
			return fmt.Errorf("I11: hold %d was made at %d in session %+v", hold.ID, hold.Created, session)
		case session.Ended == 0 && session.Expires < hold.Expires && hold.State == ledger.HoldLive:
			return fmt.Errorf("C9: hold %d until %d outlives session %+v", hold.ID, hold.Expires, session)
		}
	}
	return nil
}

// brokenCalls is what is wrong with a lane's watermark: it never goes back.
func brokenCalls(lane ledger.Lane, calls []ledger.Call) error {
	var last ledger.Call
	for _, c := range calls {
		if c.From != last.Watermark || c.Watermark <= c.From || c.At < last.At || c.Clock < last.Clock {
			return fmt.Errorf("I10: lane %s: after %+v comes %+v", lane.Key, last, c)
		}
		last = c
	}
	if last.Watermark != lane.Watermark || lane.Watermark > lane.Joined || lane.Joined > lane.HighWater || lane.N > lane.HighWater {
		return fmt.Errorf("I10: the last call is %+v of lane %+v", last, lane)
	}
	return nil
}

// brokenEntries is what is wrong with who entered from a lane: each was called before, by the position that the draw gave.
func brokenEntries(room ledger.Room, lane ledger.Lane, calls []ledger.Call, sessions []ledger.Session) error {
	numbers := map[int64]id.ID{}
	for _, s := range sessions {
		if s.Lane != lane.Key {
			continue
		}
		if other, used := numbers[s.Number]; used {
			return fmt.Errorf("I10: number %d entered twice: %d and %d", s.Number, other, s.ID)
		}
		numbers[s.Number] = s.ID
		if want := positionOf(room, lane, s.Number); s.Position != want {
			return fmt.Errorf("C4: number %d has position %d, not %d", s.Number, want, s.Position)
		}
		watermark := int64(0)
		for _, c := range calls {
			if c.At <= s.Entered {
				watermark = c.Watermark
			}
		}
		if s.Position >= watermark || s.Number >= lane.HighWater {
			return fmt.Errorf("I10: session %+v entered at a watermark of %d", s, watermark)
		}
	}
	if int64(len(numbers)) != lane.Entered {
		return fmt.Errorf("I10: %d entered of lane %s, not %d", len(numbers), lane.Key, lane.Entered)
	}
	return nil
}

// positionOf is the position by the formula, not by the tables that the ledger uses.
func positionOf(room ledger.Room, lane ledger.Lane, number int64) int64 {
	if room.Arrival {
		return number
	}
	var k, list [32]byte
	_, errK := hex.Decode(k[:], []byte(room.K))
	_, errList := hex.Decode(list[:], []byte(room.ListHash))
	if errK != nil || errList != nil || draw.Commitment(k) != room.Commitment {
		return -1
	}
	var n int64
	for _, l := range room.Lanes {
		n += l.N
	}
	return draw.Position(draw.LaneKey(draw.Seed(k, room.Value, n, list), lane.Key), lane.N, number)
}

// brokenCrowd is what is wrong with how many entered in a second, and how many were inside.
func (h hall) brokenCrowd(room ledger.Room, sessions []ledger.Session) error {
	seconds := map[ledger.Time]int{}
	inside := 0
	for _, s := range sessions {
		seconds[s.Entered-s.Entered%1000]++
		if s.Ended == 0 {
			inside++
		}
		if s.Ended != 0 && (s.Ended < s.Entered || s.Why == "") || s.Expires < s.Entered {
			return fmt.Errorf("C9: session %+v", s)
		}
	}
	if inside != room.Inside {
		return fmt.Errorf("I10: %d are inside, and %d are counted", inside, room.Inside)
	}
	for at, n := range seconds {
		most := 0
		for _, f := range h.within(at, at+999) {
			most = max(most, f.Rate)
		}
		if n > most {
			return fmt.Errorf("I10: %d entered in the second of %d, R was %d", n, at, most)
		}
	}
	for _, s := range sessions {
		there, most := 0, 0
		for _, o := range sessions { // those who came in the same millisecond came before or after: the last of them sees all
			if o.Entered <= s.Entered && (o.Ended == 0 || o.Ended > s.Entered) {
				there++
			}
		}
		for _, f := range h.at(s.Entered) {
			most = max(most, f.ActiveMax)
		}
		if there > most {
			return fmt.Errorf("I10: %d were inside at %d, of at most %d", there, s.Entered, most)
		}
	}
	return nil
}
