package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { Main(m) }

func connect(t *testing.T, rawURL string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), rawURL)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func query[T any](t *testing.T, conn *pgx.Conn, sql string) T {
	t.Helper()
	var v T
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestWhatWasCommittedSurvivesKill(t *testing.T) {
	s := CrashableForTest(t)
	rawURL, _, err := s.FreshDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		conn := connect(t, rawURL)
		if _, err := conn.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS seats (id int PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "INSERT INTO seats VALUES ($1)", round); err != nil {
			t.Fatal(err)
		}
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "INSERT INTO seats VALUES ($1)", 1000+round); err != nil {
			t.Fatal(err)
		}
		postmaster := s.process.pid
		children := childrenOf(postmaster)
		if len(children) < 2 {
			t.Fatalf("only %d children of the postmaster found", len(children))
		}

		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, c := range children {
			if c.alive() {
				t.Errorf("round %d: child %d outlived Kill", round, c.pid)
			}
		}
		if _, err := pgx.Connect(t.Context(), rawURL); err == nil {
			t.Fatal("a killed server answered")
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		if got := query[int](t, connect(t, rawURL), "SELECT count(*) FROM seats"); got != round+1 {
			t.Errorf("round %d: %d rows after the crash, want the %d committed ones", round, got, round+1)
		}
	}
	if err := s.Halt(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if got := query[int](t, connect(t, s.TCPURL(strings.TrimPrefix(dbOf(t, rawURL), "/"))), "SELECT count(*) FROM seats"); got != 2 {
		t.Errorf("%d rows after a clean stop, want 2", got)
	}
	dir := s.Dir()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stop left the folder: %v", err)
	}
}

func dbOf(t *testing.T, rawURL string) string {
	t.Helper()
	c, err := pgx.ParseConfig(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	return c.Database
}

func TestEachTestGetsItsOwnDatabase(t *testing.T) {
	first, second := DatabaseForTest(t), DatabaseForTest(t)
	if first == second {
		t.Fatal("two databases have the same URL")
	}
	if _, err := connect(t, first).Exec(t.Context(), "CREATE TABLE only_here ()"); err != nil {
		t.Fatal(err)
	}
	if query[bool](t, connect(t, second), "SELECT to_regclass('only_here') IS NOT NULL") {
		t.Error("a table of one database shows in the other")
	}
}

func TestDurabilityIsOn(t *testing.T) {
	conn := connect(t, DatabaseForTest(t))
	for _, name := range durable {
		if got := query[string](t, conn, "SHOW "+name); got != "on" {
			t.Errorf("%s is %s", name, got)
		}
		_, err := Start(Options{Dir: t.TempDir(), Settings: map[string]string{name: "off"}})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=off: got %v, want a refusal that names it", name, err)
		}
	}
}

func TestASettingThatTheServerRefusesIsShown(t *testing.T) {
	if _, err := findPrograms(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err := Start(Options{Dir: dir, Settings: map[string]string{"no_such_setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("got %v, want the server's own words", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, folderPrefix+"*")); len(left) != 0 {
		t.Errorf("a failed start left %v", left)
	}
}

func TestAnAdoptedServerIsNeitherKilledNorStopped(t *testing.T) {
	own := ForTest(t)
	s, err := Adopt(own.adminURL())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); !errors.Is(err, ErrNotOurs) {
		t.Errorf("Kill: %v", err)
	}
	if err := s.Restart(); !errors.Is(err, ErrNotOurs) {
		t.Errorf("Restart: %v", err)
	}
	if err := s.Halt(); !errors.Is(err, ErrNotOurs) {
		t.Errorf("Halt: %v", err)
	}
	rawURL, name, err := s.FreshDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := dbOf(t, rawURL); got != name {
		t.Errorf("the URL leads to %s, want %s", got, name)
	}
	if err := s.DropDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	query[int](t, connect(t, own.adminURL()), "SELECT 1")
	if _, err := Adopt("host=localhost password=secret"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a connection string that is no URL: %v", err)
	}
}

// The owner is this test program, run again; it dies by SIGKILL, so nothing it deferred can run.
func TestServerDiesWithItsOwner(t *testing.T) {
	const variable = "ONSALE_PGSERVER_TEST_OWNER"
	if dir := os.Getenv(variable); dir != "" {
		s, err := Start(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("ready %s %d\n", s.Dir(), s.process.pid)
		select {}
	}
	dir := testFolder()
	owner := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithItsOwner$")
	owner.Env = append(os.Environ(), variable+"="+dir)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	var folder string
	var pid int
	_, scanErr := fmt.Fscanf(out, "ready %s %d\n", &folder, &pid)
	if scanErr != nil {
		_ = owner.Process.Kill()
		_ = owner.Wait()
		t.Fatalf("the owner did not report its server: %v", scanErr)
	}
	postmaster, err := readStat(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // killed, as meant
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for server := (child{pid: pid, start: postmaster.start}); server.alive(); {
		<-tick.C // go test's own time limit ends a hang
	}

	// The folder is still there; the next start in the same place tidies it away.
	s := CrashableForTest(t)
	if filepath.Dir(s.Dir()) != filepath.Dir(folder) {
		t.Fatalf("%s and %s lie in different folders", s.Dir(), folder)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the leftover %s is still there: %v", folder, err)
	}
}

func TestLeftoversOfTheLivingAreKept(t *testing.T) {
	dir := t.TempDir()
	held, free, other := filepath.Join(dir, "pg-held"), filepath.Join(dir, "pg-free"), filepath.Join(dir, "other")
	for _, d := range []string{held, free, other} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := lockFolder(held)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if l, err := lockFolder(free); err != nil || l.Close() != nil {
		t.Fatal("cannot lock and unlock", err)
	}
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

func TestAFolderOutOfReachIsReplaced(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if passable(closed) {
		t.Error("a folder of mode 0700 counts as passable")
	}
	s := &Server{account: &account{uid: 1, gid: 1}}
	if err := s.makeFolder(closed); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.removeFolder(); err != nil {
			t.Error(err)
		}
	}()
	if strings.HasPrefix(s.Dir(), closed) {
		t.Errorf("%s lies where the account cannot reach it", s.Dir())
	}
	s2 := &Server{}
	if s2.usable("/" + strings.Repeat("long/", 20)) {
		t.Error("a path too long for a socket counts as usable")
	}
}

func TestVersionOf(t *testing.T) {
	for dir, want := range map[string]int{"/usr/lib/postgresql/15/bin": 15, "/usr/lib/postgresql/9/bin": 9, "/usr/pgsql-17/bin": 17, "/usr/local/bin": 0} {
		if got := versionOf(dir); got != want {
			t.Errorf("%s is version %d, want %d", dir, got, want)
		}
	}
}
