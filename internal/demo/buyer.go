package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/httpapi"
)

// How long people take, and how often they try.
const (
	holdTriesMax = 4
	thinkLeast   = 60 * time.Millisecond
	thinkMost    = 450 * time.Millisecond
	followMax    = 4 * time.Minute // of a pending payment
	staleWaitMax = 5 * time.Second
)

// A visit is a buyer at the sale.
type visit struct {
	*sale
	*buyer
	house *house // whose event it is
	who   caller
	keys  int

	place     place  // in line
	admission string // the token for the gate; "" outside
	session   string
	code      string // for the presale
	// attending are who comes with the tickets of the last booking, where the event wants to know.
	attending []httpapi.Attendee
}

// play leads a buyer to the line. What comes after goes on in s.present when it is the buyer's turn.
func (s *sale) play(ctx context.Context, b *buyer) {
	v := s.visit(b)
	if !v.arrive(ctx) {
		s.done.Add(1)
		return
	}
	if b.named { // there is no line
		s.present.Go(func() {
			defer s.done.Add(1)
			v.shop(ctx)
		})
		return
	}
	v.code = s.codeFor(b)
	if !v.join(ctx) || b.rejoins && !v.rejoin(ctx) {
		s.done.Add(1)
		return
	}
	if b.noShow {
		return
	}
	s.present.Add(1)
	s.line.wait(&waiter{place: v.place, random: fork(v.random), turn: func(called bool) {
		go func() {
			defer s.present.Done()
			defer s.done.Add(1)
			v.itIsTime(ctx, called)
		}()
	}})
}

func (s *sale) visit(b *buyer) *visit {
	v := &visit{sale: s, buyer: b, house: s.house, who: caller{from: address(b.number)}}
	if b.named {
		v.house = s.named
	}
	return v
}

// itIsTime is what somebody does who waited: goes in, or, where it is over, home.
func (v *visit) itIsTime(ctx context.Context, called bool) {
	if !called {
		v.figures.did(soldOutInLine)
		v.wishFor(ctx)
		return
	}
	if v.oversleeps {
		if !sleep(ctx, turnLasts+time.Second) {
			return
		}
		v.figures.did(oversleepers)
	}
	if !v.turnstile.enters(ctx) {
		return
	}
	done, again := v.claim(ctx)
	if !done && again {
		done = v.takeTurn(ctx)
	}
	if done {
		v.figures.cameIn()
		v.shop(ctx)
		v.leave(ctx)
	}
}

// shop is what a buyer does inside.
func (v *visit) shop(ctx context.Context) {
	hold := v.hold(ctx)
	if hold == nil {
		return
	}
	if v.extend {
		v.think(ctx)
		v.extendHold(ctx, hold)
	}
	switch v.ending {
	case endWalks:
		v.figures.did(abandoned)
		v.forgets = true
	case endReleases:
		v.think(ctx)
		v.release(ctx, hold)
	default:
		v.think(ctx)
		v.pay(ctx, hold, tokens[v.card], true)
	}
}

func (v *visit) think(ctx context.Context) {
	sleep(ctx, thinkLeast+time.Duration(v.random.Int64N(int64(thinkMost-thinkLeast))))
}

// key is a new Idempotency-Key.
func (v *visit) key(what string) string {
	v.keys++
	return fmt.Sprintf("%s-%s-%d", v.name, what, v.keys)
}

// hold tries to get seats or places, and gives nil where the buyer leaves without.
func (v *visit) hold(ctx context.Context) *httpapi.Hold {
	for try := range holdTriesMax {
		if try > 0 {
			v.think(ctx)
		}
		first := try == 0
		q := call{name: "hold", method: http.MethodPost, path: "/v1/holds", who: v.who, pass: v.admission, body: v.wish(ctx, first), drop: first && v.dropHeld}
		if v.keyless {
			q.once = true
		} else {
			q.key = v.key("hold")
		}
		a, err := v.twice(ctx, q, first && v.doubleHeld, doubleHolds, sameHold)
		switch {
		case errors.Is(err, errNoAnswer):
			continue // perhaps there is a hold now that nobody knows of: it will run out
		case err != nil:
			return nil
		case a.status == http.StatusCreated:
			return v.holds(&a, q)
		}
		switch a.code() {
		case fault.SeatsTaken, fault.PlacesTaken, fault.NoSeatsFound:
			v.figures.did(conflicts)
		case fault.Busy, fault.OrphanSeat:
		case fault.NotAdmitted, fault.AdmissionExpired:
			if v.isNamed() || !v.comeAgain(ctx) {
				return nil
			}
		case fault.HoldRest:
			v.figures.did(rested)
			return nil
		case fault.SoldOut:
			v.figures.did(soldOuts)
			v.wishFor(ctx)
			return nil
		case fault.LimitReached:
			v.figures.did(limited)
			return nil
		default:
			v.odd(q, &a)
			return nil
		}
	}
	return nil
}

// wish is what the buyer asks for.
func (v *visit) wish(ctx context.Context, first bool) httpapi.HoldRequest {
	r := httpapi.HoldRequest{Event: v.house.event.ID}
	switch v.way {
	case wayStanding:
		if r.Area = v.house.area(v.random, v.party); r.Area != "" {
			r.Quantity = v.party
			return r
		}
	case wayPicked:
		if r.Seats = v.choose(ctx, first && v.stale); r.Seats != nil {
			return r
		}
	}
	r.Best = &httpapi.BestRequest{Quantity: v.party}
	if v.middle {
		r.Best.Category = v.house.middle()
		return r
	}
	if v.random.IntN(3) == 0 {
		seats := v.house.plan.Seats
		r.Best.Category = v.house.plan.Categories[seats[v.random.IntN(len(seats))].Category].Key
	}
	if v.random.IntN(4) == 0 {
		r.Best.Adjacency = "together"
	}
	return r
}

// choose picks seats by hand. Who looks at an old picture waits until there is something wrong with it.
func (v *visit) choose(ctx context.Context, stale bool) []string {
	if stale {
		for end := time.Now().Add(staleWaitMax); time.Now().Before(end); {
			if seats := v.house.choose(v.random, v.party, true); seats != nil {
				return seats
			}
			if !sleep(ctx, 100*time.Millisecond) {
				return nil
			}
		}
	}
	return v.house.choose(v.random, v.party, false)
}

// twice makes a call, or makes it twice at once with the same key: then both answers must agree.
func (v *visit) twice(ctx context.Context, q call, double bool, what behaviour, same func(a, b *answer) string) (answer, error) {
	if q.drop {
		if q.name == "hold" {
			v.figures.did(droppedHolds)
		} else {
			v.figures.did(droppedBookings)
		}
	}
	if !double {
		return v.client.do(ctx, q, v.random)
	}
	var answers [2]answer
	var errs [2]error
	var both sync.WaitGroup
	for i := range answers {
		random := fork(v.random)
		both.Go(func() { answers[i], errs[i] = v.client.do(ctx, q, random) })
	}
	both.Wait()
	if errs[0] != nil || errs[1] != nil {
		if errs[0] == nil {
			return answers[0], nil
		}
		return answers[1], errs[1]
	}
	v.figures.did(what)
	if difference := same(&answers[0], &answers[1]); difference != "" {
		v.wrong("buyer %d clicked twice on %s under the key %s, and the answers differ: %s", v.number, q.name, q.key, difference)
	}
	if answers[1].status < answers[0].status {
		return answers[1], nil
	}
	return answers[0], nil
}

// sameHold compares two answers under one key. One refusal beside a success is no contradiction: refusals are not kept,
// and seats may have come free between the two.
func sameHold(a, b *answer) string {
	var x, y httpapi.Hold
	if a.status != http.StatusCreated || b.status != http.StatusCreated {
		return ""
	}
	if a.read(&x) != nil || b.read(&y) != nil || x.ID != y.ID {
		return x.ID + " and " + y.ID
	}
	return ""
}

// holds takes note of a hold that was acknowledged, and looks whether it is what was asked for.
func (v *visit) holds(a *answer, q call) *httpapi.Hold {
	h := &httpapi.Hold{}
	if err := a.read(h); err != nil {
		v.wrong("buyer %d: %v", v.number, err)
		return nil
	}
	asked := q.body.(httpapi.HoldRequest)
	if err := v.journal.held(v.number, "hold", h); err != nil {
		v.wrong("buyer %d: %v", v.number, err)
	}
	if h.State != "live" {
		return nil // the answer came so late that the hold has run out meanwhile
	}
	v.figures.held()
	var sum int64
	for i := range h.Lines {
		sum += h.Lines[i].Total
	}
	switch {
	case h.Quantity != v.party || len(h.Lines) != v.party || asked.Area == "" && len(h.Seats) != v.party:
		v.wrong("buyer %d asked for %d places and got %d in %s", v.number, v.party, h.Quantity, h.ID)
	case sum != h.Price.AmountMinor:
		v.wrong("the lines of %s sum to %d, its price is %d", h.ID, sum, h.Price.AmountMinor)
	case asked.Area != h.Area:
		v.wrong("buyer %d asked for area %q and got %q in %s", v.number, asked.Area, h.Area, h.ID)
	case asked.Seats != nil && !sameSeats(asked.Seats, h.Seats):
		v.wrong("buyer %d picked %v and got %v in %s", v.number, asked.Seats, h.Seats, h.ID)
	}
	switch {
	case asked.Area != "":
		v.figures.did(standing)
	case asked.Seats != nil:
		v.figures.did(picked)
	default:
		v.figures.did(bestHeld)
	}
	return h
}

func sameSeats(a, b []string) bool {
	in := map[string]int{}
	for _, s := range a {
		in[s]++
	}
	for _, s := range b {
		in[s]--
	}
	for _, n := range in {
		if n != 0 {
			return false
		}
	}
	return true
}

// extendHold asks for more time.
func (v *visit) extendHold(ctx context.Context, h *httpapi.Hold) {
	q := call{name: "extend", method: http.MethodPost, path: "/v1/holds/" + h.ID + "/extend", who: v.who}
	a, err := v.client.do(ctx, q, v.random)
	switch {
	case err != nil:
	case a.status == http.StatusOK:
		v.figures.did(extended)
		v.shown("extend", &a)
	case a.code() == fault.HoldNotExtendable || a.code() == fault.HoldExpired: // after a lost answer, or a long wait
	default:
		v.odd(q, &a)
	}
}

// release gives a hold back.
func (v *visit) release(ctx context.Context, h *httpapi.Hold) {
	v.journal.asksRelease(v.number, h.ID)
	q := call{name: "release", method: http.MethodDelete, path: "/v1/holds/" + h.ID, who: v.who}
	a, err := v.client.do(ctx, q, v.random)
	switch {
	case err != nil:
	case a.status == http.StatusOK:
		v.figures.did(released)
		v.shown("release", &a)
	default:
		v.odd(q, &a)
	}
}

// shown takes note of how a hold was shown.
func (v *visit) shown(what string, a *answer) {
	var h httpapi.Hold
	err := a.read(&h)
	if err == nil {
		err = v.journal.held(v.number, what, &h)
	}
	if err != nil {
		v.wrong("buyer %d, %s: %v", v.number, what, err)
	}
}

// odd complains of an answer that no rule allows.
func (v *visit) odd(q call, a *answer) {
	v.wrong("buyer %d: %s %s answered %d %s (%s)", v.number, q.method, q.path, a.status, a.problem.Code, a.problem.Detail)
}
