//go:build !linux

package redisserver

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Elsewhere nothing ties a child's life to its parent's, and a server left behind is worse than none.
var errLinuxOnly = fmt.Errorf("%w: they are started on Linux only", ErrUnavailable)

func lockFolder(string) (*os.File, error) { return nil, errLinuxOnly }

type process struct {
	pid  int
	done chan struct{}
	err  error
}

func startProcess(*exec.Cmd) (*process, error) { return nil, errLinuxOnly }

func (*process) running() bool            { return false }
func (*process) stop(time.Duration) error { return errLinuxOnly }
func (*process) kill()                    {}
