package redisserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// TB is what this package needs of a testing.TB, so that the program does not link testing.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// ForTest starts a server for one test, to be emptied, killed and restarted at will. It is stopped when the test ends. Only
// where no server can be started on this machine the test is skipped.
func ForTest(tb TB) *Server {
	tb.Helper()
	s, err := Start(Options{Dir: testFolder()})
	made(tb, err, func() error { return s.Stop() })
	return s
}

// ClusterForTest is ForTest with a cluster of three nodes.
func ClusterForTest(tb TB) *Cluster {
	tb.Helper()
	c, err := StartCluster(context.Background(), Options{Dir: testFolder()}, 3)
	made(tb, err, func() error { return c.Stop() })
	return c
}

// WatchedForTest is ForTest with a primary, its replica and their sentinels.
func WatchedForTest(tb TB) *Watched {
	tb.Helper()
	w, err := StartWatched(context.Background(), Options{Dir: testFolder()})
	made(tb, err, func() error { return w.Stop() })
	return w
}

func made(tb TB, err error, stop func() error) {
	tb.Helper()
	if errors.Is(err, ErrUnavailable) {
		tb.Skipf("a Redis server for the test: %v", err)
	}
	if err != nil {
		tb.Fatalf("a Redis server for the test: %v", err)
	}
	tb.Cleanup(func() {
		if err := stop(); err != nil {
			tb.Errorf("stop Redis: %v", err)
		}
	})
}

// testFolder is .servers in the repository, which git ignores; tests run in their package's folder.
func testFolder() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".servers")
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}
