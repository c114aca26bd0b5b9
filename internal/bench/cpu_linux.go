package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticksPerS is the unit of the times in /proc/PID/stat: USER_HZ, which is 100 wherever Go runs.
const ticksPerS = 100

// A cpuMeter adds up the processor time of this process and of a PostgreSQL server with its children.
type cpuMeter struct {
	pidFile string
	began   int64
}

func newCPUMeter(pidFile string) *cpuMeter {
	m := &cpuMeter{pidFile: pidFile}
	m.began = m.ticks()
	return m
}

// seconds since the meter was made. What cannot be read counts as nothing.
func (m *cpuMeter) seconds() float64 { return float64(m.ticks()-m.began) / ticksPerS }

func (m *cpuMeter) ticks() int64 {
	_, own, _ := cpuOf(strconv.Itoa(os.Getpid()))
	return own + m.serverTicks()
}

// serverTicks are those of the postmaster, of its children, and of those that have ended and that it has waited for.
func (m *cpuMeter) serverTicks() (sum int64) {
	if m.pidFile == "" {
		return 0
	}
	text, err := os.ReadFile(m.pidFile)
	if err != nil {
		return 0
	}
	postmaster, _, _ := strings.Cut(string(text), "\n")
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		parent, own, waited := cpuOf(e.Name())
		switch {
		case e.Name() == postmaster:
			sum += own + waited
		case parent == postmaster:
			sum += own
		}
	}
	return sum
}

// cpuOf reads a process's parent and times, its own and those of children that it has waited for.
func cpuOf(pid string) (parent string, own, waited int64) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
	if err != nil {
		return "", 0, 0
	}
	// The second field is the program's name in brackets, which may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		return "", 0, 0
	}
	at := func(i int) int64 {
		n, err := strconv.ParseInt(string(fields[i]), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return string(fields[1]), at(11) + at(12), at(13) + at(14)
}
