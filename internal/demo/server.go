package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

const (
	readyMax  = 60 * time.Second // of a start; more is a failure
	readyWish = 5 * time.Second  // of a restart: what is promised
	stopMax   = 40 * time.Second
	tailBytes = 4 << 10
)

// A server is the onsale program as a child process of ours, which can be killed and started again on the same data and
// ports. Only the process that we started is ever signalled.
type server struct {
	program  string
	args     []string
	env      []string
	log      string
	public   string // host:port
	internal string

	mu      sync.Mutex
	process *process // nil while it is down
}

// A process is one run of the program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how; read after done
}

// freeAddress is a loopback address that nobody listens on now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// start runs the program and returns how long it took to be ready.
func (s *server) start(ctx context.Context) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := exec.Command(s.program, s.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, log, log
	cmd.SysProcAttr = alone()
	began := time.Now()
	p, err := run(cmd)
	if err != nil {
		return 0, fmt.Errorf("starting the server: %w", err)
	}
	s.process = p
	if err := s.ready(ctx, p); err != nil {
		p.kill()
		s.process = nil
		return 0, fmt.Errorf("%w\n%s", err, tail(s.log))
	}
	return time.Since(began), nil
}

// ready waits until the server says that it is.
func (s *server) ready(ctx context.Context, p *process) error {
	end := time.Now().Add(readyMax)
	for {
		if s.isReady(ctx) {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("the server ended before it was ready: %w", p.err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(15 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("the server was not ready within %s", readyMax)
		}
	}
}

func (s *server) isReady(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.internal+"/readyz", nil)
	if err != nil {
		return false
	}
	w, err := readiness.Do(r)
	if err != nil {
		return false
	}
	defer w.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(w.Body, tailBytes)) // only the status counts
	return w.StatusCode == http.StatusOK
}

// readiness has connections of its own: they tell nothing of a server that was there before.
var readiness = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// kill ends the server as a crash does.
func (s *server) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.kill()
		s.process = nil
	}
}

// stop asks the server to end in order. One that has ended by itself, or does not end in time, is an error.
func (s *server) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.process
	if p == nil {
		return nil
	}
	s.process = nil
	select {
	case <-p.done:
		return fmt.Errorf("the server had ended by itself: %v\n%s", p.err, tail(s.log))
	default:
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.kill()
		return err
	}
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("the server did not end in order: %w\n%s", p.err, tail(s.log))
		}
		return nil
	case <-time.After(stopMax):
		p.kill()
		return fmt.Errorf("the server did not stop within %s and was killed", stopMax)
	}
}

// pid is the present process's, 0 while the server is down.
func (s *server) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.cmd.Process.Pid
}

// gone is closed when the present run has ended; nil while the server is down.
func (s *server) gone() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	return s.process.done
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// tail is the end of a log, for an error message.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-tailBytes), tailBytes))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("the end of %s:\n%s", filepath.Base(path), text)
}
