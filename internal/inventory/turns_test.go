package inventory

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// waitFor lets others run until the service has so many waiting requests.
func waitFor(t *testing.T, n *node, waiting int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); n.Stats().Waiting != waiting; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d requests wait, not %d", n.Stats().Waiting, waiting)
		}
	}
}

// crowd sends so many requests for the same seats and gives their answers.
func crowd(n *node, count int, seats ...int32) (wait func() (held, taken int)) {
	var all sync.WaitGroup
	var mu sync.Mutex
	held, taken := 0, 0
	for i := range count {
		all.Go(func() {
			_, err := n.seats(id.ID(100+i), seats...)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				held++
			case fault.CodeOf(err) == fault.SeatsTaken && len(fault.Of(err).Seats) > 0:
				taken++
			}
		})
	}
	return func() (int, int) { all.Wait(); return held, taken }
}

// Of those who want the same seats one asks the ledger, and the others hear its answer from the board.
func TestOthersWaitForTheAnswer(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"......"}))
	n := w.node(Options{}, Rules{})
	b := n.Board(hotEvent)

	mine := b.Claim([]int32{0, 1})
	wait := crowd(n, 50, 1, 2)
	waitFor(t, n, 50)
	applied, _ := w.ledger.figures()
	n.do(ledger.HoldSeats{ID: w.next(), Event: hotEvent, Customer: 9, Seats: []int32{0, 1}})
	b.Unclaim(mine)
	if held, taken := wait(); held != 0 || taken != 50 {
		t.Fatalf("%d held and %d were told that seat 1 is taken", held, taken)
	}
	if now, _ := w.ledger.figures(); now != applied+1 {
		t.Fatalf("the ledger was asked %d times besides the winner", now-applied-1)
	}

	// Whoever was first gets nothing: one of those who wait is next, and no two of them.
	mine = b.Claim([]int32{4})
	wait = crowd(n, 50, 3, 4)
	waitFor(t, n, 50)
	b.Unclaim(mine)
	if held, taken := wait(); held != 1 || taken != 49 {
		t.Fatalf("%d held, %d taken", held, taken)
	}
	if len(b.waited) != 0 || b.anyClaimed() || n.Stats().Waiting != 0 {
		t.Fatalf("left over: %d awaited, stats %+v", len(b.waited), n.Stats())
	}
}

// I13: waiting is bounded in number and in turns, and ends with its request.
func TestWaitingIsBounded(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"......"}))
	n := w.node(Options{WaitersMax: 1}, Rules{})
	b := n.Board(hotEvent)
	mine := b.Claim([]int32{0})

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := n.HoldSeats(ctx, n.claim(1, ""), []int32{0})
		ended <- err
	}()
	waitFor(t, n, 1)
	_, err := n.seats(2, 0)
	wantFault(t, err, fault.Busy)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("a request that ended while it waited: %v", err)
	}

	// Others are always first: in the end the ledger decides.
	go func() {
		_, err := n.seats(3, 0)
		ended <- err
	}()
	for range TurnsMax {
		waitFor(t, n, 1)
		b.mu.Lock()
		end := b.waited[0]
		delete(b.waited, 0)
		b.mu.Unlock()
		// The claim stays, as if another had it at once. The waiter is counted until it has looked.
		close(end)
		for {
			b.mu.Lock()
			again := b.waited[0] != nil
			b.mu.Unlock()
			if again || len(ended) > 0 {
				break
			}
			runtime.Gosched()
		}
	}
	if err := <-ended; err != nil {
		t.Fatal("after its turns the ledger was not asked:", err)
	}
	b.Unclaim(mine)
}

// Crossed choices do not wait in a circle.
func TestCrossedChoices(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"........"}))
	n := w.node(Options{}, Rules{})
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			for k := range 4 {
				a, b := int32(2*k), int32(2*k+1)
				if i%2 == 0 {
					a, b = b, a
				}
				_, err := n.seats(id.ID(1000+i*10+k), a, b)
				if err != nil && fault.CodeOf(err) != fault.SeatsTaken {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if held := n.Stats().Held; held != 4 {
		t.Fatalf("%d holds of 4 pairs", held)
	}
}
