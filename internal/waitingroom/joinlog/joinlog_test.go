package joinlog

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/waitingroomtest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		appendForEver(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	waitingroomtest.ExerciseLog(t, func(t *testing.T) waitingroomtest.Logs {
		dir := t.TempDir()
		return waitingroomtest.Logs{Open: func(t *testing.T) waitingroom.Log { return openForTest(t, dir) }}
	})
}

func openForTest(t *testing.T, dir string) *Log {
	t.Helper()
	l, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}
