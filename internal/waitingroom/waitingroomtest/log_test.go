package waitingroomtest

import (
	"testing"

	"onsale/internal/waitingroom"
)

// The plain log, to which the others are compared, keeps the contract itself.
func TestPlainLog(t *testing.T) {
	ExerciseLog(t, func(*testing.T) Logs {
		l := &Log{}
		return Logs{Open: func(*testing.T) waitingroom.Log { return l }, Shared: true}
	})
}
