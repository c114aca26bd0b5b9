// Package disk tells what stands under a database: the file system, and how long it takes to make a
// write durable. Figures mean little without the two, and nothing on a file system in memory.
package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	fsyncCount = 65   // odd, so that the median is one of them
	writeBytes = 8192 // a page of PostgreSQL
)

// ErrMemory says that a folder lies in memory, where fsync does nothing.
var ErrMemory = errors.New("lies on a file system in memory, where nothing survives a power loss; choose a folder on a disk")

// Report of a folder.
type Report struct {
	FileSystem string        // as the kernel names it, "ext4"; "unknown" where it does not say
	Fsync      time.Duration // median time to write and fsync one page
}

func (r Report) String() string {
	return fmt.Sprintf("%s, fsync %s", r.FileSystem, r.Fsync.Round(time.Microsecond))
}

// Measure reports on an existing folder. It refuses one in memory with ErrMemory.
func Measure(dir string) (Report, error) {
	fs, err := fileSystem(dir)
	if err != nil {
		return Report{}, err
	}
	if inMemory(fs) {
		return Report{}, fmt.Errorf("%s (%s) %w", dir, fs, ErrMemory)
	}
	median, err := measureFsync(dir)
	if err != nil {
		return Report{}, err
	}
	return Report{FileSystem: fs, Fsync: median}, nil
}

func inMemory(fs string) bool { return fs == "tmpfs" || fs == "ramfs" || fs == "devtmpfs" }

func measureFsync(dir string) (median time.Duration, err error) {
	f, err := os.CreateTemp(dir, ".fsync-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, writeBytes)
	times := make([]time.Duration, 0, fsyncCount)
	for i := range fsyncCount {
		page[0] = byte(i)
		start := time.Now()
		// The same place each time, as a log that was laid out before: growing the file would cost more.
		if _, err := f.WriteAt(page, 0); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// fileSystem asks the kernel's mount table, since the number that statfs gives does not tell ext2
// from ext4.
func fileSystem(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if errors.Is(err, os.ErrNotExist) {
		return "unknown", nil
	}
	if err != nil {
		return "", err
	}
	return typeOf(path, string(table)), nil
}

// typeOf finds the mount with the longest point above path; of equal ones the last covers the others.
func typeOf(path, mountinfo string) string {
	best, fs := -1, "unknown"
	for line := range strings.Lines(mountinfo) {
		mount, device, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(mount), strings.Fields(device)
		if !ok || len(fields) < 5 || len(kind) < 1 {
			continue
		}
		point := unescape.Replace(fields[4])
		if len(point) >= best && (point == "/" || path == point || strings.HasPrefix(path, point+"/")) {
			best, fs = len(point), kind[0]
		}
	}
	return fs
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
