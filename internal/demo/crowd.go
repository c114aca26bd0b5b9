package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"onsale/internal/payment/sandbox"
)

// A crowd is everybody who comes.
type crowd struct {
	buyers  []buyer
	noShows []buyer
	bots    []bot
}

// playAll lets everybody join the line, opens the doors when those who came in time have, and returns when nobody waits and
// nobody is inside.
func (s *sale) playAll(ctx context.Context, c *crowd) {
	defer s.turnstile.open() // whoever waits for somebody to arrive waits no more
	early, late := s.arrivals(c)
	s.joinAll(ctx, early)
	s.screen.say("%s stand in line, %s of them by a code; the doors open.", thousands(s.joinedLine.Load()), thousands(s.figures.count(codesTaken)))
	if err := s.openDoors(ctx); err != nil {
		s.doorsShut = err
		return
	}
	s.joinAll(ctx, late)
	s.doorsShut = s.waitForAll(ctx)
}

// An arrival is somebody on the way to the line.
type arrival func(ctx context.Context)

// arrivals are all who come, by chance in time for the draw or later; those with named tickets have no line to stand in.
func (s *sale) arrivals(c *crowd) (early, late []arrival) {
	random := rand.New(rand.NewPCG(s.Seed, 0x6c696e65))
	add := func(a arrival, comesLate bool) {
		if comesLate {
			late = append(late, a)
		} else {
			early = append(early, a)
		}
	}
	for i := range c.buyers {
		b := &c.buyers[i]
		add(func(ctx context.Context) { s.play(ctx, b) }, b.comesLate || b.named)
	}
	for i := range c.noShows {
		b := &c.noShows[i]
		add(func(ctx context.Context) { s.play(ctx, b) }, random.IntN(10) == 0)
	}
	for i := range c.bots {
		b := &c.bots[i]
		add(func(ctx context.Context) { s.playBot(ctx, b) }, b.trick == trickNoTicket || b.trick == trickPass || random.IntN(10) == 0)
	}
	for _, list := range [][]arrival{early, late} {
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return early, late
}

// joinAll lets people come to the line, so many at a time.
func (s *sale) joinAll(ctx context.Context, all []arrival) {
	queue := make(chan arrival)
	var joining sync.WaitGroup
	for range min(s.AtOnce, len(all)) {
		joining.Go(func() {
			for a := range queue {
				a(ctx)
			}
		})
	}
	for _, a := range all {
		if !s.turnstile.joins(ctx) {
			break
		}
		queue <- a
	}
	close(queue)
	joining.Wait()
}

// hurryShare is how much is sold or held when the organizer makes turns shorter, so that those who do not come keep no seat waiting.
const hurryShare = 0.9

// quietMax is for how long nothing may be bought of a house that is nearly full before the organizer closes the line: what is left then
// are single places that nobody in it wants.
const quietMax = 12 * time.Second

// waitForAll waits until nobody is in line or inside. When nothing is free, or nobody wants what is, the organizer closes the line,
// and what comes back is for those who leave a wish; so too after all too long. Who is still outside then is sent home.
func (s *sale) waitForAll(ctx context.Context) error {
	gone := make(chan struct{})
	go func() {
		s.present.Wait()
		close(gone)
	}()
	moved, taken := time.Now(), s.house.taken()
	for {
		select {
		case <-gone:
			return nil
		case <-time.After(time.Second):
		}
		if now := s.house.taken(); now != taken {
			moved, taken = time.Now(), now
		}
		quiet := taken >= hurryShare && time.Since(moved) > quietMax
		late := quiet || ctx.Err() != nil || time.Since(s.began) > intakeMax+time.Duration(s.downtime.Load())
		if !late && !s.house.full() {
			if s.house.taken() >= hurryShare && !s.hurried {
				s.hurried = true
				if err := s.hurry(ctx); err != nil && ctx.Err() == nil {
					return err
				}
			}
			continue
		}
		if s.line.length() > 0 && ctx.Err() == nil {
			s.screen.say("The organizer closes the line: %s people are left in it.", thousands(int64(s.line.length())))
		}
		if err := s.closeLine(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		s.turnedAway += s.line.sendHome()
	}
}

const tellEvery = 15 * time.Second

// drain waits until no hold is live, no booking pending, and no money or notice under way, here and at the provider.
func (s *sale) drain(ctx context.Context) error {
	books, err := sandbox.ReadBooks(s.Books)
	if err != nil {
		return err
	}
	defer books.Close()
	var f flight
	told := time.Now()
	for end := time.Now().Add(drainMax); time.Now().Before(end); {
		f, err = s.store.inFlight(ctx)
		if err == nil {
			f.due, f.webhooks, err = books.Due(ctx)
		}
		if err == nil && f.none() {
			return nil
		}
		if err == nil && time.Since(told) > tellEvery {
			told = time.Now()
			s.screen.say("All buyers are gone; still under way:\n  %s.", f)
		}
		if !sleep(ctx, 250*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	if err == nil {
		err = fmt.Errorf("after %s there are still %s under way", drainMax, f)
	}
	return err
}
