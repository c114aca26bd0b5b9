package search

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time of this thread so far: what a search costs, however busy the machine is with others.
func threadTime() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		return 0
	}
	return time.Duration(at.Nano())
}
