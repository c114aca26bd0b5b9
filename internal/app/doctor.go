package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"onsale/internal/disk"
)

// Bounds of what the doctor finds healthy.
const (
	diskFreeLow = 1 << 30 // bytes
	fsyncSlow   = 20 * time.Millisecond
	clockAhead  = 2 * time.Second
	doctorTime  = 30 * time.Second
)

// A Finding is one thing that the doctor looked at. Mend says what to do where it is not well.
type Finding struct {
	What string
	Well bool
	Warn bool // not well, but it runs
	Says string
	Mend string
}

// PrintFindings writes findings for people, and says whether something must be mended before selling.
func PrintFindings(w io.Writer, all []Finding) (ill bool, err error) {
	for _, f := range all {
		sign := "ok  "
		switch {
		case f.Warn:
			sign = "look"
		case !f.Well:
			sign, ill = "MEND", true
		}
		head := fmt.Sprintf("%s  %-14s  ", sign, f.What)
		width := utf8.RuneCountInString(head)
		lines := Wrap(f.Says, terminalColumns-width)
		if f.Mend != "" {
			lines = append(lines, Wrap("→ "+f.Mend, terminalColumns-width)...)
		}
		for _, text := range lines {
			if _, err := fmt.Fprintln(w, head+text); err != nil {
				return ill, err
			}
			head = strings.Repeat(" ", width)
		}
	}
	return ill, nil
}

// A Check asks somebody outside, as the doctor and the start do. See CheckStripe, CheckSMTP.
type Check struct {
	What string
	Says string // where it is well
	Mend string // where it is not
	Ask  func(context.Context) error
}

// Doctor looks at what the settings name, changing nothing but for a file in the data folder that it takes away again, and
// then asks whoever else is to be asked.
func Doctor(ctx context.Context, s Settings, outside ...Check) []Finding {
	return (&doctor{Settings: s, now: time.Now, free: freeBytes, measure: disk.Measure}).look(ctx, outside)
}

type doctor struct {
	Settings
	findings []Finding

	now     func() time.Time
	free    func(dir string) (uint64, error)
	measure func(dir string) (disk.Report, error)
}

func (d *doctor) look(ctx context.Context, outside []Check) []Finding {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	usable := d.folder()
	d.disk()
	switch {
	case d.Ledger == Postgres:
		d.postgres(ctx)
	case usable:
		d.sqlite(ctx)
	}
	if usable {
		d.key(ctx)
	}
	d.signIn()
	d.proxies()
	d.prices(ctx)
	for _, c := range outside {
		d.ask(ctx, c)
	}
	d.ports()
	return d.findings
}

func (d *doctor) ask(ctx context.Context, c Check) {
	if err := c.Ask(ctx); err != nil {
		d.ill(c.What, err, c.Mend)
		return
	}
	d.well(c.What, "%s", c.Says)
}

func (d *doctor) well(what, format string, args ...any) {
	d.findings = append(d.findings, Finding{What: what, Well: true, Says: fmt.Sprintf(format, args...)})
}

func (d *doctor) ill(what string, err error, mend string) {
	var lines []string // of a cause that comes in several, each once, in one line
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	d.findings = append(d.findings, Finding{What: what, Says: strings.Join(lines, " "), Mend: mend})
}

func (d *doctor) warn(what, says, mend string) {
	d.findings = append(d.findings, Finding{What: what, Warn: true, Says: says, Mend: mend})
}

// folder says whether what lies in the data folder can be looked at.
func (d *doctor) folder() (usable bool) {
	const what = "data folder"
	info, err := os.Stat(d.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.warn(what, d.Data+" does not exist yet", "serve makes it; check that this is the path you mean")
		return true
	case err != nil:
		d.ill(what, err, "give this user the right to read it")
		return false
	case !info.IsDir():
		d.ill(what, fmt.Errorf("%s is no folder", d.Data), "name a folder with --data")
		return false
	}
	f, err := os.CreateTemp(d.Data, "doctor-*")
	if err != nil {
		d.ill(what, fmt.Errorf("%s cannot be written to: %w", d.Data, cause(err)), "give this user the right to write into it, or make room on its disk")
		return false
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	if info.Mode().Perm()&0o077 != 0 {
		d.warn(what, fmt.Sprintf("%s can be read by others (%v)", d.Data, info.Mode().Perm()), "chmod 700 "+d.Data)
		return true
	}
	state, err := (&App{Settings: d.Settings}).restoring()
	if err != nil {
		d.ill(what, err, "empty the folder and restore a backup into it")
		return false
	}
	if state != nil {
		d.ill(what, fmt.Errorf("the restore of backup %s into %s was interrupted", state.Backup, d.Data), "run onsale restore with the same backup again: it goes on where it was")
		return false
	}
	d.locked(what)
	return true
}

// cause is the error without the path, which may be of a random name.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// locked says whether another process has the folder.
func (d *doctor) locked(what string) {
	unlock, err := lockFolder(d.Data)
	switch {
	case errors.Is(err, ErrLocked):
		conn, err := net.Dial("unix", socketPath(d.Data))
		if err != nil {
			d.warn(what, d.Data+" is in use by another process, which answers no commands", "a command or a restore that is running is fine; else find it (fuser "+filepath.Join(d.Data, lockName)+") and stop it before you start a server")
			return
		}
		_ = conn.Close()
		d.well(what, "%s, in use by a running server", d.Data)
	case err != nil:
		d.ill(what, cause(err), "give this user the right to write into it")
	default:
		_ = unlock()
		d.well(what, "%s", d.Data)
	}
}

func freeBytes(dir string) (uint64, error) {
	var room syscall.Statfs_t
	if err := syscall.Statfs(dir, &room); err != nil {
		return 0, err
	}
	return room.Bavail * uint64(room.Bsize), nil
}

func (d *doctor) disk() {
	const what = "disk"
	dir := d.Data
	for dir != filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			break
		}
		dir = filepath.Dir(dir)
	}
	if free, err := d.free(dir); err == nil && free < diskFreeLow {
		d.ill(what, fmt.Errorf("%d MiB are free", free>>20), "make room, at least 1 GiB: a full disk stops the sale")
		return
	}
	report, err := d.measure(dir)
	switch {
	case errors.Is(err, disk.ErrMemory):
		d.ill(what, err, "put the data folder on a disk: what is sold would be lost with the power")
	case err != nil:
		d.warn(what, err.Error(), "the figures of the disk are not known; the sale runs all the same")
	case report.Fsync > fsyncSlow:
		d.warn(what, report.String(), "a disk that syncs in a few milliseconds lets more be sold a second")
	default:
		d.well(what, "%s", report)
	}
}

func (d *doctor) ports() {
	for _, port := range []struct{ what, flag, address string }{{"listen", "--listen", d.Listen}, {"metrics_listen", "--metrics-listen", d.InternalListen}} {
		if port.address == "" {
			continue
		}
		l, err := net.Listen("tcp", port.address)
		if err != nil {
			d.warn(port.what, err.Error(), "a server of this data folder that runs already is fine; else stop who has the address, or choose another with "+port.flag)
			continue
		}
		_ = l.Close()
		d.well(port.what, "%s is free", port.address)
	}
}

// Migrate brings the databases up to date.
func Migrate(ctx context.Context, s Settings) error {
	a, err := Open(ctx, s)
	if err != nil {
		return err
	}
	return a.Close(ctx)
}
