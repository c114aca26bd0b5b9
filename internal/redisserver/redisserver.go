// Package redisserver starts private Redis servers for tests and benchmarks: one alone, a cluster, or a primary with its
// replica under three sentinels.
//
// The one idea: a server belongs to the process that started it. It has a fresh folder and free loopback ports of its own,
// it never meets a server that was already running, and it goes when its owner goes, also when the owner is killed. It keeps
// nothing on disk unless asked to, so a crash here loses what a crash of an operator's Redis can lose at worst.
//
// Start reading at Start; cluster.go and sentinel.go have the larger forms, and tests want ForTest, ClusterForTest and
// WatchedForTest in fortest.go.
package redisserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	readyMax     = 20 * time.Second // how long a server may take to answer
	stopMax      = 10 * time.Second // how long a shutdown may take before it becomes a kill
	portTriesMax = 5                // another process may take a free port before the server does
	pollEach     = 10 * time.Millisecond
	folderPrefix = "redis-"
	program      = "redis-server" // which is redis-sentinel, too
)

// ErrUnavailable says that this machine cannot start a server; the error around it says what to do.
var ErrUnavailable = errors.New("no private Redis server can be started here")

// Options of a private server.
type Options struct {
	// Dir is the folder in which the server makes its own fresh folder; it is created where it is missing. Defaults to the
	// system's temporary folder.
	Dir string
	// Settings are lines of redis.conf on top of the built-in ones. Defaults to none.
	Settings map[string]string
}

// settings are those of every server here: it listens on loopback alone, and keeps nothing.
var settings = map[string]string{
	"bind":             "127.0.0.1",
	"daemonize":        "no",
	"save":             `""`,
	"appendonly":       "no",
	"maxmemory-policy": "noeviction",
	"loglevel":         "notice",
	// A replica that asks again is served at once, not after the five seconds in which others might come.
	"repl-diskless-sync-delay": "0",
}

// Server is one Redis server or sentinel. Its methods may be called from several goroutines.
type Server struct {
	program  string
	dir      string   // the fresh folder, removed by Stop
	lock     *os.File // held as long as the owner lives, so that a later run knows what it may remove
	port     int
	bus      int // a cluster's second port; 0 without one
	sentinel bool

	mu      sync.Mutex // guards process
	process *process   // nil when the server is down
}

// Start makes a fresh server and returns when it answers.
func Start(o Options) (*Server, error) { return start(o, kind{}) }

// kind is what a server is started as.
type kind struct{ cluster, sentinel bool }

func start(o Options, as kind) (*Server, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("%w: %s is not on PATH: `make test` installs it as root on Debian; elsewhere install the package redis-server", ErrUnavailable, program)
	}
	s := &Server{program: path, sentinel: as.sentinel}
	if err := s.makeFolder(o.Dir); err != nil {
		return nil, err
	}
	for range portTriesMax {
		if err = s.configure(o.Settings, as); err != nil {
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

// configure writes redis.conf with free ports.
func (s *Server) configure(extra map[string]string, as kind) error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	s.port = ports[0]
	all := map[string]string{"bind": settings["bind"], "daemonize": "no"}
	if !as.sentinel { // which knows little of the rest
		all = maps.Clone(settings)
	}
	if as.cluster {
		s.bus = ports[1]
		all["cluster-enabled"], all["cluster-config-file"], all["cluster-port"] = "yes", "nodes.conf", strconv.Itoa(s.bus)
	}
	maps.Copy(all, extra)
	all["port"], all["dir"] = strconv.Itoa(s.port), strconv.Quote(s.dir)
	var conf strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&conf, "%s %s\n", name, all[name])
	}
	return os.WriteFile(s.conf(), []byte(conf.String()), 0o600)
}

// Dir is the server's own folder, which holds its configuration, its log and what it was asked to keep.
func (s *Server) Dir() string { return s.dir }

// Log is the path of the server's log.
func (s *Server) Log() string { return filepath.Join(s.dir, "log") }

func (s *Server) conf() string { return filepath.Join(s.dir, "redis.conf") }

// Address is where the server listens, host:port. It stays the same over Kill and Restart.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Restart starts the server again, on the same ports and with what it kept on disk (usually nothing), after Kill or Halt,
// and returns when it answers. On a running server it does nothing.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && s.process.running() {
		return nil
	}
	log, err := os.Create(s.Log())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	args := []string{s.conf()}
	if s.sentinel {
		args = append(args, "--sentinel")
	}
	cmd := exec.Command(s.program, args...)
	cmd.Dir = s.dir
	cmd.Stdout, cmd.Stderr = log, log
	p, err := startProcess(cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	if err := s.waitReady(p); err != nil {
		p.kill()
		said, _ := os.ReadFile(s.Log()) // only to explain err
		return fmt.Errorf("%w\n%s", err, said)
	}
	s.process = p
	return nil
}

// Kill ends the server as a crash does, by SIGKILL, and returns when it is gone. On a server that is down it does nothing.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.kill()
		s.process = nil
	}
	return nil
}

// Halt ends the server cleanly and keeps its folder for Restart.
func (s *Server) Halt() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	err := s.process.stop(stopMax)
	s.process = nil
	return err
}

// Stop ends the server, if it still runs, and removes its folder.
func (s *Server) Stop() error { return errors.Join(s.Halt(), s.removeFolder()) }

// FlushAll makes the server forget everything; its run goes on.
func (s *Server) FlushAll(ctx context.Context) error {
	_, err := s.Do(ctx, "FLUSHALL")
	return err
}

// Info is one field of INFO, "" where it has none.
func (s *Server) Info(ctx context.Context, field string) (string, error) {
	text, err := s.Do(ctx, "INFO")
	return fieldOf(text, field), err
}

func fieldOf(text, field string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// PID is the server's process, 0 while it is down.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.pid
}

// waitReady returns when the server answers, or with an error as soon as it has died.
func (s *Server) waitReady(p *process) error {
	return poll(context.Background(), p.done, func(ctx context.Context) error {
		if p.running() {
			_, err := s.Do(ctx, "PING")
			return err
		}
		return fmt.Errorf("%s ended before it was ready: %w", program, p.err)
	})
}

// poll asks again until there is no error, the time is over, or the process that is asked about has died.
func poll(ctx context.Context, died <-chan struct{}, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyMax)
	defer cancel()
	tick := time.NewTicker(pollEach)
	defer tick.Stop()
	for {
		last := ask(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-died:
			return ask(ctx)
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", readyMax, last)
		case <-tick.C:
		}
	}
}

// freePorts are ports that nobody listens on now, all different.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // all held until the last is found
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
