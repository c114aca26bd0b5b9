package ledgertest

import (
	"testing"

	"onsale/internal/ledger"
)

// The model must do what the suite says, too. Its histories compare it with itself, one command at a time and in batches.
func TestModel(t *testing.T) {
	Exercise(t, func(_ *testing.T, clock *Clock) Harness {
		return Harness{Ledger: ledger.NewModel(clock.Now)}
	})
}
