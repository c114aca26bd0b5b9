//go:build !linux

package pgserver

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Elsewhere nothing ties a child's life to its parent's, and a server left behind is worse than
// none: point ONSALE_TEST_POSTGRES_URL or ONSALE_BENCH_POSTGRES_URL at an existing server.
var errLinuxOnly = fmt.Errorf("%w: they are started on Linux only: "+
	"point ONSALE_TEST_POSTGRES_URL (tests) or ONSALE_BENCH_POSTGRES_URL (bench) at an existing server", ErrUnavailable)

const lockName = "owner.lock"

func lockFolder(string) (*os.File, error) { return nil, errLinuxOnly }

type account struct{}

func serverAccount() (*account, error) { return nil, errLinuxOnly }

func (*account) own(string) error { return errLinuxOnly }

type process struct {
	done chan struct{}
	err  error
}

func startProcess(*exec.Cmd, *account) (*process, error) { return nil, errLinuxOnly }

func (*process) wait() error              { return errLinuxOnly }
func (*process) running() bool            { return false }
func (*process) stop(time.Duration) error { return errLinuxOnly }
func (*process) kill()                    {}
