package disk

import (
	"errors"
	"os"
	"testing"
)

func TestMeasureLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	r, err := Measure(dir)
	if errors.Is(err, ErrMemory) {
		t.Skipf("the temporary folder: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.Fsync <= 0 || r.FileSystem == "" {
		t.Errorf("report %+v has empty parts", r)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 0 {
		t.Errorf("%d files left in the folder", len(left))
	}
}

func TestMeasureRefusesMemory(t *testing.T) {
	const dir = "/dev/shm"
	if fs, err := fileSystem(dir); err != nil || !inMemory(fs) {
		t.Skipf("%s is no file system in memory here (%s, %v)", dir, fs, err)
	}
	if _, err := Measure(dir); !errors.Is(err, ErrMemory) {
		t.Errorf("got %v, want ErrMemory", err)
	}
}

func TestTypeOf(t *testing.T) {
	const table = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
23 22 0:20 / /tmp rw - tmpfs tmpfs rw
24 23 0:21 / /tmp/a\040b rw master:3 - xfs /dev/x rw
25 22 0:22 / /data rw - btrfs /dev/y rw
26 22 0:23 / /data rw - zfs pool rw
a broken line
`
	for path, want := range map[string]string{
		"/home":      "ext4",
		"/tmp":       "tmpfs",
		"/tmpfile":   "ext4",
		"/tmp/x/y":   "tmpfs",
		"/tmp/a b/c": "xfs",
		"/data/d":    "zfs", // mounted over the other
	} {
		if got := typeOf(path, table); got != want {
			t.Errorf("%s lies on %s, want %s", path, got, want)
		}
	}
	if got := typeOf("/home", ""); got != "unknown" {
		t.Errorf("an empty table gives %s", got)
	}
}
