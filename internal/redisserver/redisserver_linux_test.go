package redisserver

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func do(t *testing.T, s *Server, args ...string) string {
	t.Helper()
	answer, err := s.Do(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, s *Server) string {
	t.Helper()
	name, err := s.Info(t.Context(), "run_id")
	if err != nil || name == "" {
		t.Fatalf("run %q, %v", name, err)
	}
	return name
}

func TestAKilledServerForgetsAndAnswersAgain(t *testing.T) {
	s := ForTest(t)
	do(t, s, "SET", "a", "1")
	first, pid := run(t, s), s.PID()
	must(t, s.FlushAll(t.Context()))
	if got := do(t, s, "GET", "a"); got != "" || run(t, s) != first {
		t.Errorf("after FLUSHALL a is %q in run %s, want nothing in the same run %s", got, run(t, s), first)
	}
	do(t, s, "SET", "a", "2")
	must(t, s.Kill())
	if syscall.Kill(pid, 0) == nil {
		t.Error("the killed server still runs")
	}
	if _, err := s.Do(t.Context(), "PING"); err == nil {
		t.Error("a killed server answered")
	}
	must(t, s.Restart())
	if got := do(t, s, "GET", "a"); got != "" || run(t, s) == first {
		t.Errorf("after a crash a is %q in run %s, want nothing in another run", got, run(t, s))
	}
	must(t, s.Halt())
	must(t, s.Restart())
	must(t, s.Restart()) // of a running one: nothing
	dir := s.Dir()
	must(t, s.Stop())
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stop left the folder: %v", err)
	}
}

func TestASettingIsTakenOrRefusedInTheServersWords(t *testing.T) {
	dir := t.TempDir()
	s, err := Start(Options{Dir: dir, Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"}})
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	must(t, err)
	do(t, s, "SET", "a", "kept")
	must(t, s.Kill())
	must(t, s.Restart())
	if got := do(t, s, "GET", "a"); got != "kept" {
		t.Errorf("with an append-only file a is %q after a crash", got)
	}
	must(t, s.Stop())
	if _, err = Start(Options{Dir: dir, Settings: map[string]string{"no-such-setting": "1"}}); err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("got %v, want the server's own words", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("what was started left %v", left)
	}
}

func TestClusterSpreadsItsKeys(t *testing.T) {
	c := ClusterForTest(t)
	seen := map[*Server]bool{}
	for i := range 64 {
		key := fmt.Sprint("key", i)
		s, err := c.NodeOf(t.Context(), key)
		must(t, err)
		do(t, s, "SET", key, "1") // a node that does not hold it would refuse
		seen[s] = true
	}
	if len(seen) != 3 {
		t.Errorf("64 keys lie on %d nodes of 3", len(seen))
	}
	must(t, c.Nodes[1].Kill())
	must(t, c.Nodes[1].Restart())
	must(t, c.WaitWhole(t.Context()))
	must(t, c.FlushAll(t.Context()))
	for _, s := range c.Nodes {
		if n := do(t, s, "DBSIZE"); n != "0" {
			t.Errorf("%s keys are left", n)
		}
	}
}

func TestFailoverLosesWhatTheReplicaDidNotHear(t *testing.T) {
	w := WatchedForTest(t)
	do(t, w.Primary, "SET", "before", "1")
	must(t, w.WaitReplicated(t.Context()))
	must(t, w.CutOff(t.Context()))
	do(t, w.Primary, "SET", "lost", "1") // acknowledged
	must(t, w.Failover(t.Context()))
	if got := do(t, w.Replica, "GET", "before"); got != "1" {
		t.Errorf("before is %q", got)
	}
	if got := do(t, w.Replica, "GET", "lost"); got != "" {
		t.Errorf("lost is %q: the replica was not cut off", got)
	}
}

// The owner is this test program, run again; it dies by SIGKILL, so nothing it deferred can run.
func TestServerDiesWithItsOwner(t *testing.T) {
	const variable = "ONSALE_REDISSERVER_TEST_OWNER"
	if dir := os.Getenv(variable); dir != "" {
		s, err := Start(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("ready %s %s\n", s.Dir(), s.Address())
		select {}
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	owner := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithItsOwner$")
	owner.Env = append(os.Environ(), variable+"="+dir)
	out, err := owner.StdoutPipe()
	must(t, err)
	must(t, owner.Start())
	var folder, address string
	_, scanErr := fmt.Fscanf(out, "ready %s %s\n", &folder, &address)
	must(t, owner.Process.Kill())
	_ = owner.Wait() // killed, as meant
	must(t, scanErr)
	for dead := &(Server{}); ; { // go test's own time limit ends a hang
		if _, err := fmt.Sscanf(address, "127.0.0.1:%d", &dead.port); err != nil {
			t.Fatal(err)
		}
		if _, err := dead.Do(t.Context(), "PING"); err != nil {
			break
		}
		<-time.After(pollEach)
	}
	s, err := Start(Options{Dir: dir})
	must(t, err)
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the leftover %s is still there: %v", folder, err)
	}
	must(t, s.Stop())
}

func TestLeftoversOfTheLivingAreKept(t *testing.T) {
	dir := t.TempDir()
	held, free, other := filepath.Join(dir, "redis-held"), filepath.Join(dir, "redis-free"), filepath.Join(dir, "other")
	for _, d := range []string{held, free, other} {
		must(t, os.Mkdir(d, 0o700))
	}
	lock, err := lockFolder(held)
	must(t, err)
	defer func() { _ = lock.Close() }()
	removeLeftovers(dir)
	for _, d := range []string{held, other} {
		if _, err := os.Stat(d); err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
	if _, err := os.Stat(free); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s was kept: %v", free, err)
	}
}

func FuzzReadReply(f *testing.F) {
	for _, text := range []string{"+OK\r\n", ":12\r\n", "-ERR no\r\n", "$3\r\nabc\r\n", "$-1\r\n", "*2\r\n$1\r\na\r\n:2\r\n", "*-1\r\n", "$9999999999\r\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		answer, err := readReply(bufio.NewReader(strings.NewReader(text)))
		if err != nil && answer != "" {
			t.Errorf("%q gives both %q and %v", text, answer, err)
		}
	})
}
