package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const lockName = "owner.lock"

// lockFolder takes the folder's lock, which the kernel gives back when this process ends however.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// account is the user that a server runs as.
type account struct{ uid, gid int }

// serverAccount is nil for this process's own user. PostgreSQL refuses to run as root, so root runs
// it as the user that the packages made for it.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("%w: PostgreSQL does not run as root, and its usual user is missing (`make test` as root on Debian installs it): %w", ErrUnavailable, err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	return &account{uid: uid, gid: gid}, nil
}

func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// process is a child that dies with this process.
type process struct {
	pid  int
	done chan struct{} // closed when the child has been waited for
	err  error         // how it ended; read after done
}

// startProcess starts the command in a process group of its own, so that a Ctrl-C meant for us does
// not reach it. When this process dies the kernel sends it SIGQUIT, PostgreSQL's immediate shutdown.
func startProcess(cmd *exec.Cmd, as *account) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	if as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	p := &process{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The parent-death signal follows the thread, so the thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) wait() error {
	<-p.done
	return p.err
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop asks for a fast shutdown; one that takes longer than max becomes a kill and an error.
func (p *process) stop(max time.Duration) error {
	if !p.running() {
		return fmt.Errorf("postgres had already ended: %w", p.err)
	}
	_ = syscall.Kill(p.pid, syscall.SIGINT) // it may have ended since: then done is closed
	timer := time.NewTimer(max)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-timer.C:
		p.kill()
		return fmt.Errorf("postgres did not shut down within %s and was killed", max)
	}
}

// kill ends the process and its children with SIGKILL and returns when all are gone. Each child of
// a postmaster leads a session of its own, so the process group does not reach them; the postmaster
// is stopped while they are listed, so that it neither starts another nor notices that some died.
func (p *process) kill() {
	if !p.running() {
		return
	}
	_ = syscall.Kill(p.pid, syscall.SIGSTOP)
	children := childrenOf(p.pid)
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
	for _, c := range children {
		_ = syscall.Kill(c.pid, syscall.SIGKILL)
	}
	<-p.done
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for _, c := range children {
		for c.alive() {
			<-tick.C // SIGKILL cannot be refused: this ends
		}
	}
}

// child is named by pid and start time, since a pid is used again.
type child struct {
	pid   int
	start string
}

func (c child) alive() bool {
	s, err := readStat(c.pid)
	return err == nil && s.start == c.start && s.state != "Z" && s.state != "X"
}

func childrenOf(parent int) []child {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []child
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil && s.parent == parent {
			found = append(found, child{pid: pid, start: s.start})
		}
	}
	return found
}

type stat struct {
	state  string
	parent int
	start  string // in clock ticks since boot
}

// readStat reads /proc/PID/stat; the fields are counted after the name, which may hold anything.
func readStat(pid int) (stat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return stat{}, err
	}
	return stat{state: fields[0], parent: parent, start: fields[19]}, nil
}
