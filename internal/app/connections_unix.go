//go:build unix

package app

import "syscall"

// descriptorsMax is how many files and connections the system lets us have open, 0 where it does not say.
func descriptorsMax() int {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil || r.Cur > 1<<30 {
		return 0
	}
	return int(r.Cur)
}
