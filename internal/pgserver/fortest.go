package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// TestURLVariable names an existing server for tests to make their databases on, instead of a
// private one. Tests that crash a server always start their own.
const TestURLVariable = "ONSALE_TEST_POSTGRES_URL"

// TestVariable set to "off" skips the tests on PostgreSQL: `make quick` does so where nothing changed
// that they look at.
const TestVariable = "ONSALE_TEST_POSTGRES"

// TB is what this package needs of a testing.TB, so that the program does not link testing.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

func skipWhereOff(tb TB) {
	tb.Helper()
	if os.Getenv(TestVariable) == "off" {
		tb.Skipf("%s is off", TestVariable)
	}
}

var shared struct {
	mu     sync.Mutex
	server *Server
	err    error
}

// ForTest returns the one server that the tests of this process share: never kill it, see
// CrashableForTest. It fails the test where there is none to be had. The package's TestMain must
// call Main or Wrap, so that the server is stopped.
func ForTest(tb TB) *Server {
	tb.Helper()
	skipWhereOff(tb)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = serverForTests()
	}
	if shared.err != nil {
		tb.Fatalf("PostgreSQL for tests: %v", shared.err)
	}
	return shared.server
}

func serverForTests() (*Server, error) {
	if rawURL := os.Getenv(TestURLVariable); rawURL != "" {
		s, err := Adopt(rawURL)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", TestURLVariable, err)
		}
		return s, nil
	}
	return Start(Options{Dir: testFolder()})
}

// DatabaseForTest returns the URL of an empty database on the shared server. It is dropped, with
// whatever is still connected, when the test ends.
func DatabaseForTest(tb TB) string {
	tb.Helper()
	s := ForTest(tb)
	rawURL, name, err := s.FreshDatabase(context.Background())
	if err != nil {
		tb.Fatalf("create a database for the test: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.DropDatabase(context.Background(), name); err != nil {
			tb.Errorf("drop the test's database: %v", err)
		}
	})
	return rawURL
}

// CrashableForTest starts a private server for one test, to be killed and restarted at will. It is
// stopped when the test ends. Where one cannot be started here, but the other tests have a server by
// ONSALE_TEST_POSTGRES_URL, the test is skipped.
func CrashableForTest(tb TB) *Server {
	tb.Helper()
	skipWhereOff(tb)
	s, err := Start(Options{Dir: testFolder()})
	if errors.Is(err, ErrUnavailable) && os.Getenv(TestURLVariable) != "" {
		tb.Skipf("a server to crash: %v", err)
	}
	if err != nil {
		tb.Fatalf("PostgreSQL for a test: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Errorf("stop PostgreSQL: %v", err)
		}
	})
	return s
}

// Runner is the part of a testing.M that is needed here.
type Runner interface{ Run() int }

// Main is a whole TestMain: it runs the tests, stops the shared server and exits.
func Main(m Runner) { os.Exit(Wrap(m).Run()) }

// Wrap returns a runner that stops the shared server after the tests, for a TestMain that does more:
// goleak.VerifyTestMain(pgserver.Wrap(m)).
func Wrap(m Runner) Runner { return wrapped{m} }

type wrapped struct{ Runner }

func (w wrapped) Run() int {
	code := w.Runner.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the tests' PostgreSQL:", err)
		return max(code, 1)
	}
	return code
}

func stopShared() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	s := shared.server
	shared.server, shared.err = nil, errors.New("the tests have ended")
	if s == nil {
		return nil
	}
	return s.Stop()
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
