package demo

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"onsale/internal/payment/sandbox"
)

// playAll lets all buyers in, so many at a time, and returns when the last has left the counter.
func (s *sale) playAll(ctx context.Context, buyers []buyer) {
	queue := make(chan *buyer)
	var counter sync.WaitGroup
	for range min(s.AtOnce, len(buyers)) {
		counter.Go(func() {
			for b := range queue {
				s.play(ctx, b)
				s.done.Add(1)
			}
		})
	}
	s.admit(ctx, buyers, queue)
	close(queue)
	counter.Wait()
}

// admit hands the buyers to the counter, in order. They wait where the next kill is still to come, so that each falls at
// its moment of the sale; a small house is sold slowly enough for late money to find seats.
func (s *sale) admit(ctx context.Context, buyers []buyer, queue chan<- *buyer) {
	defer s.arrived.Store(math.MaxInt64) // whoever waits for somebody to arrive waits no more
	gentle := s.late() + paceMargin
	rate := float64(s.Seats) / seatsPerBuyer / gentle.Seconds()
	for i := range buyers {
		for int64(i) >= s.allowed.Load() {
			if !sleep(ctx, 5*time.Millisecond) {
				return
			}
		}
		if since := time.Since(s.began); since < gentle {
			due := time.Duration(float64(i) / rate * float64(time.Second))
			if !sleep(ctx, min(due, gentle)-since) {
				return
			}
		}
		if time.Since(s.began) > intakeMax+time.Duration(s.downtime.Load()) {
			s.turnedAway = len(buyers) - i
			return
		}
		select {
		case queue <- &buyers[i]:
			s.arrived.Store(int64(i) + 1)
		case <-ctx.Done():
			return
		}
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
