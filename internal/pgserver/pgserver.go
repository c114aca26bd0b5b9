// Package pgserver starts private PostgreSQL servers for tests, benchmarks and the demo.
//
// The one idea: a server belongs to the process that started it. It has a fresh folder, a free
// loopback port and a private socket of its own, it never meets a server that was already running,
// and it goes when its owner goes, also when the owner is killed. Its durability is never weakened
// (fsync, synchronous_commit and full_page_writes stay on), so what is measured and crashed here is
// what an operator would run.
//
// Start reading at Start; tests want ForTest, DatabaseForTest and CrashableForTest in fortest.go.
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	readyMax      = 60 * time.Second // how long a server may take to answer, crash recovery included
	stopMax       = 30 * time.Second // how long a fast shutdown may take before it becomes a kill
	portTriesMax  = 5                // another process may take the free port before the server does
	socketPathMax = 107              // bytes of sun_path on Linux without the closing NUL
	superuser     = "postgres"
	folderPrefix  = "pg-"
)

// ErrUnavailable says that this machine cannot start a server; the error around it says what to do.
var ErrUnavailable = errors.New("no private PostgreSQL server can be started here")

var errProgramsMissing = fmt.Errorf("%w: initdb and postgres are neither on PATH nor in /usr/lib/postgresql/*/bin: "+
	"`make test` installs them as root on Debian; elsewhere install the package postgresql, or point ONSALE_TEST_POSTGRES_URL (tests) "+
	"or ONSALE_BENCH_POSTGRES_URL (bench) at an existing server", ErrUnavailable)

// ErrNotOurs is the answer to Kill and Restart on a server that this process did not start.
var ErrNotOurs = errors.New("this PostgreSQL server was not started here, so it is neither killed nor restarted")

// Options of a private server.
type Options struct {
	// Dir is the folder in which the server makes its own fresh folder. It is created where it is
	// missing. Where the user that runs the server cannot reach it (as root that is the user
	// postgres), the fresh folder lies in the system's temporary folder instead; Server.Dir tells.
	// Defaults to the system's temporary folder.
	Dir string
	// Settings are lines of postgresql.conf on top of the built-in ones. Those that durability
	// hangs on are refused. Defaults to none.
	Settings map[string]string
}

// Server is a PostgreSQL server. Its methods may be called from several goroutines.
type Server struct {
	dir      string   // the fresh folder, removed by Stop; "" for a server of somebody else
	lock     *os.File // held as long as the owner lives, so that a later run knows what it may remove
	programs programs
	account  *account // the user to run as; nil is this process's own
	port     int
	adopted  *url.URL // of a server that somebody else started
	dbSeq    atomic.Int64

	mu      sync.Mutex // guards process
	process *process   // nil when the server is down
}

// settings are for a machine with 2 cores and 24 GiB. Nothing here trades durability for speed; the
// first three are the server's defaults, written down because measured figures rest on them.
var settings = map[string]string{
	"fsync":              "on",
	"synchronous_commit": "on",
	"full_page_writes":   "on",

	"shared_buffers":       "512MB",
	"effective_cache_size": "8GB",
	"work_mem":             "16MB",
	"maintenance_work_mem": "256MB",
	"max_wal_size":         "4GB",
	"checkpoint_timeout":   "15min",
	"max_connections":      "200",
	"random_page_cost":     "1.1",
	"jit":                  "off",
	"timezone":             "'UTC'",
	"log_timezone":         "'UTC'",
	"log_min_messages":     "warning",
	// In the data folder rather than in /dev/shm, where a killed server would leave its segments.
	"dynamic_shared_memory_type": "mmap",
}

var durable = []string{"fsync", "synchronous_commit", "full_page_writes"}

// Start makes a fresh server and returns when it answers.
func Start(o Options) (*Server, error) {
	for _, name := range durable {
		if v, ok := o.Settings[name]; ok {
			return nil, fmt.Errorf("setting %s=%s: the durability of a private server is not up for choice", name, v)
		}
	}
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	s := &Server{programs: programs, account: account}
	if err := s.makeFolder(o.Dir); err != nil {
		return nil, err
	}
	if err := s.initialise(o.Settings); err != nil {
		return nil, errors.Join(err, s.removeFolder())
	}
	for range portTriesMax {
		if s.port, err = freePort(); err != nil {
			break
		}
		if err = s.Restart(); err == nil {
			return s, nil
		}
		if !strings.Contains(err.Error(), "Address already in use") {
			break
		}
	}
	return nil, errors.Join(err, s.removeFolder())
}

// Adopt wraps a server that somebody else runs: databases can be made on it, but Kill and Restart
// answer ErrNotOurs and Stop leaves it running.
func Adopt(rawURL string) (*Server, error) {
	u, err := url.Parse(rawURL)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return nil, errors.New("not a URL of the form postgres://user:password@host:port/database") // the URL may hold a password
	}
	return &Server{adopted: u}, nil
}

// Dir is the server's own folder, which holds its data, socket and log; "" for an adopted server.
func (s *Server) Dir() string { return s.dir }

// Log is the path of the server's log; "" for an adopted server.
func (s *Server) Log() string {
	if s.adopted != nil {
		return ""
	}
	return filepath.Join(s.dir, "log")
}

// URL connects to a database over the private unix socket, the fastest way. It stays the same over
// Kill and Restart.
func (s *Server) URL(db string) string {
	if s.adopted != nil {
		return s.TCPURL(db)
	}
	q := url.Values{"host": {s.socketDir()}, "port": {strconv.Itoa(s.port)}, "user": {superuser}}
	return "postgres:///" + url.PathEscape(db) + "?" + q.Encode()
}

// TCPURL connects over loopback, for what sits between (proxies that lose or delay answers). It
// stays the same over Kill and Restart.
func (s *Server) TCPURL(db string) string {
	if s.adopted != nil {
		u := *s.adopted
		u.Path = "/" + db
		return u.String()
	}
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", superuser, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), url.PathEscape(db))
}

// adminURL is of the database from which others are made.
func (s *Server) adminURL() string {
	if s.adopted != nil {
		return s.adopted.String()
	}
	return s.URL("postgres")
}

// CreateDatabase makes an empty database.
func (s *Server) CreateDatabase(ctx context.Context, name string) error {
	return s.admin(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
}

// DropDatabase removes a database with whatever is connected to it.
func (s *Server) DropDatabase(ctx context.Context, name string) error {
	return s.admin(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
}

// FreshDatabase makes a database whose name nobody else uses and returns its URL and name.
func (s *Server) FreshDatabase(ctx context.Context) (rawURL, name string, err error) {
	name = fmt.Sprintf("onsale_%d_%d_%d", os.Getpid(), time.Now().UnixNano(), s.dbSeq.Add(1))
	if err := s.CreateDatabase(ctx, name); err != nil {
		return "", "", err
	}
	return s.URL(name), name, nil
}

func (s *Server) admin(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.adminURL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

// Restart starts the server again, on the same data, port and socket, after Kill or Halt, and
// returns when it answers. On a running server it does nothing.
func (s *Server) Restart() error {
	if s.adopted != nil {
		return ErrNotOurs
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && s.process.running() {
		return nil
	}
	logStart, err := fileSize(s.Log())
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(s.programs.postgres, "-D", s.dataDir(), "-p", strconv.Itoa(s.port), "-k", s.socketDir())
	cmd.Dir = s.dataDir()
	cmd.Env = serverEnv()
	cmd.Stdout, cmd.Stderr = log, log
	p, err := startProcess(cmd, s.account)
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	if err := waitReady(p, s.adminURL()); err != nil {
		p.kill()
		return fmt.Errorf("%w\n%s", err, tail(s.Log(), logStart))
	}
	s.process = p
	return nil
}

// Kill ends the server as a crash does: SIGKILL to the postmaster and to all its children at once.
// It returns when none of them is left. On a server that is down it does nothing.
func (s *Server) Kill() error {
	if s.adopted != nil {
		return ErrNotOurs
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.kill()
		s.process = nil
	}
	return nil
}

// Halt ends the server cleanly (a fast shutdown) and keeps its data for Restart.
func (s *Server) Halt() error {
	if s.adopted != nil {
		return ErrNotOurs
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	err := s.process.stop(stopMax)
	s.process = nil
	return err
}

// Stop ends the server and removes its folder. An adopted server runs on.
func (s *Server) Stop() error {
	if s.adopted != nil {
		return nil
	}
	return errors.Join(s.Halt(), s.removeFolder())
}

func (s *Server) dataDir() string { return filepath.Join(s.dir, "data") }

func (s *Server) socketDir() string { return filepath.Join(s.dir, "s") }

// initialise runs initdb and writes the settings.
func (s *Server) initialise(extra map[string]string) error {
	for _, dir := range []string{s.dataDir(), s.socketDir()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if err := s.account.own(dir); err != nil {
			return err
		}
	}
	cmd := exec.Command(s.programs.initdb, "-D", s.dataDir(), "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions")
	cmd.Dir = s.dataDir()
	cmd.Env = serverEnv()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := startProcess(cmd, s.account)
	if err != nil {
		return fmt.Errorf("start initdb: %w", err)
	}
	if err := p.wait(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out.String())
	}

	// A file rather than flags, so that a test of `doctor` may still break a setting by ALTER SYSTEM.
	all := maps.Clone(settings)
	maps.Copy(all, extra)
	all["listen_addresses"] = "'127.0.0.1'"
	all["unix_socket_permissions"] = "0700"
	var conf strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&conf, "%s = %s\n", name, all[name])
	}
	// initdb made the file and the account owns it; writing keeps both.
	return os.WriteFile(filepath.Join(s.dataDir(), "postgresql.conf"), []byte(conf.String()), 0o600)
}

type programs struct{ initdb, postgres string }

// findPrograms prefers PATH; Debian and Red Hat keep the server programs off it, by version.
func findPrograms() (programs, error) {
	var dirs []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(initdb))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return programs{}, err
		}
		slices.SortFunc(found, func(a, b string) int { return versionOf(b) - versionOf(a) })
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		p := programs{initdb: filepath.Join(dir, "initdb"), postgres: filepath.Join(dir, "postgres")}
		if isProgram(p.initdb) && isProgram(p.postgres) {
			return p, nil
		}
	}
	return programs{}, errProgramsMissing
}

// versionOf reads the major version out of a path like /usr/lib/postgresql/15/bin; 0 when there is none.
func versionOf(dir string) int {
	name := filepath.Base(filepath.Dir(dir))
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return 0
	}
	return n
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// serverEnv leaves out PG* variables: they are for clients and could point initdb elsewhere. Messages
// stay English, since Start reads one.
func serverEnv() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "PG") || strings.HasPrefix(kv, "LC_") || strings.HasPrefix(kv, "LANG")
	})
	return append(env, "LC_ALL=C")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// waitReady returns when the server answers a query, or with an error as soon as it has died.
func waitReady(p *process, rawURL string) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyMax)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		last := ping(ctx, rawURL)
		if last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("postgres ended before it was ready: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("postgres was not ready within %s: %w", readyMax, last)
		case <-tick.C:
		}
	}
}

func ping(ctx context.Context, rawURL string) error {
	conn, err := pgx.Connect(ctx, rawURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return conn.Ping(ctx)
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// tail is what the log says after an offset, at most 8 KiB of it, for an error message.
func tail(path string, from int64) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.NewSectionReader(f, from, 8<<10))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
