//go:build unix && !linux

package demo

import (
	"os/exec"
	"syscall"
)

// alone keeps a Ctrl-C meant for us from the server.
func alone() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// run starts a command and waits for its end beside.
func run(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}
