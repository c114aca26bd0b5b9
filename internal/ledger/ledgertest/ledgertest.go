// Package ledgertest says what every ledger must do: Exercise is run on the model and on each adapter, in every test run.
//
// The one idea: nothing is only asked for what it should do. A scenario names for each command exactly what it changes,
// and the whole picture (seats, areas, holds, orders, notices, payments) is compared before and after, so that a seat too
// many shows. A random history is run on the model too, and every answer and everything that can be read must be equal.
//
// Start reading at Exercise, then at world.go, which is the language of the scenarios, then at history.go.
package ledgertest

import (
	"flag"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"onsale/internal/ledger"
)

// A Clock is what a ledger under test takes its time from. It moves only when it is told to.
type Clock struct{ now atomic.Int64 }

// NewClock is a clock that stands at an instant.
func NewClock(at ledger.Time) *Clock {
	c := &Clock{}
	c.now.Store(int64(at))
	return c
}

// Now is the time it shows.
func (c *Clock) Now() ledger.Time { return ledger.Time(c.now.Load()) }

// Advance moves it, also back.
func (c *Clock) Advance(d ledger.Duration) { c.now.Add(int64(d)) }

// A Harness is one fresh ledger with what a test may do to it from outside. It takes its time from the Clock alone, and
// Exercise closes it.
type Harness struct {
	Ledger ledger.Ledger
	// Reopen ends the program that has the ledger open, as far as a test can, and opens the same store again. The old
	// value must not be used any more. nil where the ledger does not outlive its process.
	Reopen func() ledger.Ledger
	// Another opens the same store beside the others, as another machine would. nil where only one may have it open.
	Another func() ledger.Ledger
	// WaitsForClock says that after the clock went back by over a second every command is refused as busy until it has
	// caught up (A5: another machine may have decided by the later time); else the ledger stays at its latest time.
	WaitsForClock bool
}

// Open makes a fresh ledger for a test.
type Open func(t *testing.T, clock *Clock) Harness

// Exercise runs everything on the ledgers that open makes.
func Exercise(t *testing.T, open Open) {
	for _, group := range []struct {
		name      string
		scenarios []scenario
	}{
		{"holds", holdScenarios},
		{"bounds", boundScenarios},
		{"keys", keyScenarios},
		{"paying", payScenarios},
		{"rescue", rescueScenarios},
		{"money", moneyScenarios},
		{"organizer", organizerScenarios},
		{"refunds", refundScenarios},
		{"exchange", exchangeScenarios},
		{"exchange money", exchangeMoneyScenarios},
		{"transfer", transferScenarios},
		{"door", doorScenarios},
		{"waitlist", wishScenarios},
		{"room", roomScenarios},
		{"room opens", roomOpenScenarios},
		{"sessions", sessionScenarios},
		{"unpaid holds", restScenarios},
		{"looking", lookingScenarios},
		{"reading", readingScenarios},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, s := range group.scenarios {
				t.Run(s.name, func(t *testing.T) {
					w := newWorld(t, open)
					s.run(w)
					w.sound()
				})
			}
		})
	}
	t.Run("histories", func(t *testing.T) { exerciseHistories(t, open, "") })
	t.Run("shop histories", func(t *testing.T) { exerciseHistories(t, open, shopHistory) })
	t.Run("waitlist histories", func(t *testing.T) { exerciseHistories(t, open, listHistory) })
	t.Run("room histories", func(t *testing.T) { exerciseHistories(t, open, roomHistory) })
	t.Run("races", func(t *testing.T) { exerciseRaces(t, open) })
	t.Run("shop races", func(t *testing.T) { exerciseShopRaces(t, open) })
	t.Run("room races", func(t *testing.T) { exerciseRoomRaces(t, open) })
	t.Run("linearizable", func(t *testing.T) { exerciseLinearizable(t, open) })
}

// A scenario is one small story.
type scenario struct {
	name string
	run  func(w *world)
}

// soak is by how much the environment asks for more than the short form: ONSALE_SOAK, 1 where it is not set.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("ONSALE_SOAK")); err == nil && n > 1 {
		return n
	}
	return 1
}

// times is how often to do what is done n times in the short form.
func times(n int) int {
	if raceDetector {
		n /= 5
	}
	return n * soak()
}

// setChecks makes rapid run so many histories, unless the command line said how many.
func setChecks(t *testing.T, n int) {
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	checks := flag.Lookup("rapid.checks")
	if said || checks == nil {
		return
	}
	old := checks.Value.String()
	if err := checks.Value.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Value.Set(old) })
}
