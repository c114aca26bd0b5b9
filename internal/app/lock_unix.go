//go:build unix

package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockName is the file whose lock is the right to use a data folder.
const lockName = "onsale.lock"

// ErrLocked says that another process uses the data folder.
var ErrLocked = errors.New("the data folder is in use by another process")

// lockFolder takes the exclusive right to a data folder. The lock goes with the process, whatever becomes of it.
func lockFolder(dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s (stop it, or use --data with another folder)", ErrLocked, dir), f.Close())
	}
	return f.Close, nil
}
