package redisserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// lockFolder takes the folder's lock, which the kernel gives back when this process ends however.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "owner.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// process is a child that dies with this process.
type process struct {
	pid  int
	done chan struct{} // closed when the child has been waited for
	err  error         // how it ended; read after done
}

// startProcess starts the command in a process group of its own, so that a Ctrl-C meant for us does not reach it.
func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
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

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop asks for a shutdown; one that takes longer than max becomes a kill and an error.
func (p *process) stop(max time.Duration) error {
	if !p.running() {
		return fmt.Errorf("the server had already ended: %w", p.err)
	}
	_ = syscall.Kill(p.pid, syscall.SIGTERM) // it may have ended since: then done is closed
	timer := time.NewTimer(max)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-timer.C:
		p.kill()
		return fmt.Errorf("the server did not shut down within %s and was killed", max)
	}
}

// kill ends the process and what it forked, and returns when it is gone.
func (p *process) kill() {
	if p.running() {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL) // the group: a child that saves is in it
		<-p.done
	}
}
