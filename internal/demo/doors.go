package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"onsale/internal/fault"
	"onsale/internal/httpapi"
)

// The organizer's side of the line: codes for those who may go before, and the doors.

// presale are the codes that people have.
type presale struct {
	club   string // of as many as it may be used by
	single []string
}

const (
	singleCodes = 20
	codesPath   = "/v1/organizer/events/%s/room/codes"
	openPath    = "/v1/organizer/events/%s/room/open"
	closePath   = "/v1/organizer/events/%s/room/close"
	valuePath   = "/v1/organizer/events/%s/room/draw-value"
	roomPath    = "/v1/organizer/events/%s/room"
	shortTurn   = time.Second
	doorsMax    = 90 * time.Second // from opening the doors until the first may be called, kills included
)

// expected is how many come to the line in time for the draw, and how many of the buyers will be let in at least.
func (s *sale) expected(c *crowd) (early, let int) {
	before, _ := s.arrivals(c)
	room := float64(len(s.house.plan.Seats)+s.house.places) / seatsPerBuyer
	return len(before), int(math.Min(room, float64(len(c.buyers))) * 0.8)
}

// sellCodes uploads codes for the presale: one for everybody of the club, and some for one customer each.
func (s *sale) sellCodes(ctx context.Context, random *rand.Rand) (*presale, error) {
	p := &presale{club: "HARBOUR-CLUB"}
	all := []httpapi.CodeUpload{{Code: p.club, Uses: s.Buyers}}
	for i := range singleCodes {
		p.single = append(p.single, fmt.Sprintf("FRIEND-%02d-%06d", i, random.IntN(1_000_000)))
		all = append(all, httpapi.CodeUpload{Code: p.single[i], Uses: 1})
	}
	return p, s.organize(ctx, "presale codes", codesPath, httpapi.CodesUpload{Lane: presaleLane, Codes: all}, random)
}

// codeFor is the code that a buyer has: some have one that only one customer may use.
func (s *sale) codeFor(b *buyer) string {
	switch {
	case !b.presale:
		return ""
	case b.number%10 == 3:
		return s.presale.single[b.number/10%len(s.presale.single)]
	}
	return s.presale.club
}

// openDoors opens the sale now, whatever the event's window says. Whoever has joined is drawn: the organizer throws the dice that
// were named as the source of the public value, once the list of joins is published.
func (s *sale) openDoors(ctx context.Context) error {
	random := s.chance(0x6f70656e)
	if err := s.organize(ctx, "open", openPath, nil, random); err != nil {
		return err
	}
	thrown := false
	for end := time.Now().Add(doorsMax); time.Now().Before(end); {
		switch q := s.line.latest.Load(); {
		case q == nil:
		case q.Phase == "open":
			s.screen.say("The draw is %s: %s numbers, value %q.", q.Draw.State, thousands(q.Draw.N), q.Draw.Value)
			return nil
		case q.Phase == "drawing" && q.Draw.ListHash != "" && !thrown:
			thrown = true
			value := httpapi.DrawValue{Value: fmt.Sprint(random.Perm(6))}
			if err := s.organize(ctx, "draw value", valuePath, value, random); err != nil {
				return err
			}
		}
		if !sleep(ctx, lineTick) {
			return ctx.Err()
		}
	}
	return fmt.Errorf("the doors were not open after %s", doorsMax)
}

// chance is a source of it for one thing.
func (s *sale) chance(what uint64) *rand.Rand { return rand.New(rand.NewPCG(s.Seed, what)) }

// organize sends a command of the organizer about the line.
func (s *sale) organize(ctx context.Context, name, path string, body any, random *rand.Rand) error {
	q := call{name: name, method: http.MethodPost, path: fmt.Sprintf(path, s.house.event.ID), who: s.staff.owner, body: body}
	a, err := s.client.do(ctx, q, random)
	if err == nil && a.status >= http.StatusBadRequest && a.code() != fault.Conflict { // a conflict: it was done, and the answer lost
		err = fmt.Errorf("%s: %d %s (%s)", name, a.status, a.problem.Code, a.problem.Detail)
	}
	return err
}

// hurry makes turns shorter, live.
func (s *sale) hurry(ctx context.Context) error {
	turn := shortTurn.Milliseconds()
	q := call{name: "room change", method: http.MethodPatch, path: fmt.Sprintf(roomPath, s.house.event.ID), who: s.staff.owner, body: httpapi.RoomEdit{TurnMS: &turn}}
	a, err := s.client.do(ctx, q, s.chance(0x68757272))
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("making turns shorter: %d %s (%s)", a.status, a.problem.Code, a.problem.Detail)
	}
	return err
}

// playBot leads a bot as far as it comes.
func (s *sale) playBot(ctx context.Context, b *bot) {
	v := s.visit(&b.buyer)
	token, err := s.mint(b.name)
	if err != nil {
		s.wrong("bot %d has no token: %v", b.number, err)
		return
	}
	v.who.token, v.who.agent = token, "python-requests/2.32"
	s.figures.did(bots)
	if !v.trickery(ctx, b.trick) {
		return
	}
	s.present.Add(1)
	s.line.wait(&waiter{place: v.place, random: fork(v.random), turn: func(called bool) {
		go func() {
			defer s.present.Done()
			if !called {
				return
			}
			if done, _ := v.claim(ctx); done {
				v.gang(ctx)
			}
		}()
	}})
}

// rejoin gives the number up and takes another.
func (v *visit) rejoin(ctx context.Context) bool {
	before := v.place
	if !v.leaveLine(ctx) || !v.join(ctx) {
		return false
	}
	if v.place.lane == before.lane && v.place.number == before.number {
		v.wrong("buyer %d gave number %d of %s up, and has it again", v.number, before.number, before.lane)
	}
	v.figures.did(rejoined)
	return true
}

const honouredMost = 40 // queue tickets that are looked at after a kill

// honoured looks after a kill whether signed queue tickets are good for the numbers that were said.
func (s *sale) honoured(ctx context.Context, said *lineSaid) error {
	random := rand.New(rand.NewPCG(s.Seed, uint64(len(s.kills))))
	keys := slices.SortedFunc(maps.Keys(said.queues), func(a, b numberKey) int { return compareKeys(a, b) })
	random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, k := range keys[:min(len(keys), honouredMost)] {
		if said.gaveUp[k] {
			continue
		}
		t := said.queues[k]
		q := call{name: "queue place", method: http.MethodGet, path: s.line.path + "/" + t.queue, who: caller{from: address(t.buyer)}}
		a, err := s.client.do(ctx, q, random)
		if err != nil {
			if errors.Is(err, errNoAnswer) {
				continue
			}
			return err
		}
		s.stillMine(k, &a)
	}
	return nil
}

func (s *sale) stillMine(k numberKey, a *answer) {
	var at httpapi.QueuePosition
	if a.status != http.StatusOK || a.read(&at) != nil {
		if a.code() != fault.NotOnSale {
			s.wrong("after kill %d the ticket of %s is not honoured: %d %s", len(s.kills)+1, k, a.status, a.problem.Code)
		}
		return
	}
	if at.Lane != k.lane || at.Number != k.number {
		s.wrong("after kill %d the ticket of %s stands for number %d of lane %s", len(s.kills)+1, k, at.Number, at.Lane)
		return
	}
	position, known := s.line.standing(place{lane: k.lane, number: k.number, drawn: at.Drawn})
	if known && at.Position != nil && *at.Position != position {
		s.wrong("%s stands at %d by the draw, and the server says %d", k, position, *at.Position)
	}
	s.figures.did(honouredNumbers)
}
